#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# changed_tests.sh: prints the names of the tests of what was changed in the day before the last commit: a test whose own
# file was changed, and test_<file> for a source <file>.c or .h. A file that was only moved is not changed. The last
# changes come first. Not every name is that of a test.
set -u
cd "$(dirname "$0")/.." || exit 1
day_before=$(($(git log -1 --format=%ct) - 86400)) || exit 0
base=$(git rev-list -1 --before=$day_before HEAD)
[ -n "$base" ] || exit 0
git log --format= --name-status -M --diff-filter=AMR "$base"..HEAD -- src lab cmd tests | awk -F '\t' '
    function say(name) {
        if (!said[name]++)
            print name
    }
    $1 != "R100" {
        n = split($NF, part, "/")
        name = part[n]
        if (sub(/\.sh$/, "", name) && part[1] == "tests")
            say(part[n - 1] "_" name)
        else if (sub(/\.[ch]$/, "", name)) {
            sub(/^test_/, "", name)
            for (i = 0; i <= 3; i++)
                say("test_" name (i ? "_n" i : ""))
        }
    }'
