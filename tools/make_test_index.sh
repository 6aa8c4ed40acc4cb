#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# make_test_index.sh [--check]: writes docs/internals/tests.md, the index of all tests, from the first comment of each
# test; with --check it fails if the page is not up to date. Run by ctest.
set -u
export LC_ALL=C
cd "$(dirname "$0")/.." || exit 1
page=docs/internals/tests.md

# Prints the first sentence of a test's first comment that is not a "ranks:", "rows:" or "seconds:" line or the licence, without the file's name.
sentence() {
    awk -v name="$(basename "$1")" '
        /^\/\* (ranks|rows):/ || /^#!/ || /^# (rows|seconds):/ || /SPDX-License-Identifier:/ { next }
        /^(\/\*|#)/ { inside = 1 }
        inside && !/^(\/\*| \*|#)/ { exit }
        inside { last = /\*\/ *$/; sub(/^(\/\*| \*\/| \*|#) ?/, ""); sub(/ *\*\/ *$/, ""); text = text " " $0; if (last) exit }
        END {
            sub(/^ +/, "", text)
            if (index(text, name ": ") == 1)
                text = substr(text, length(name) + 3)
            if (match(text, /[.]( |$)/))
                text = substr(text, 1, RSTART)
            gsub(/[|<>]/, "\\\\&", text)
            print text
        }' "$1"
}

# Prints the ranks and rows from the head of a test, in brackets.
runs() {
    ranks=$(sed -n 's|^/\* ranks: \([0-9 ]*[0-9]\) *\*/$|ranks \1|p' "$1" | head -n 1)
    rows=$(sed -n 's|^/\* rows: \(.*\) \*/$|rows \1|p; s|^# rows: \(.*\)$|rows \1|p' "$1" | head -n 1)
    [ -z "$ranks$rows" ] || echo " ($ranks${ranks:+${rows:+; }}$rows)"
}

write() {
    echo '# Index of the tests'
    echo
    echo 'This page is made by `sh tools/make_test_index.sh` from the comment at the head of each test; do not edit it. A test is'
    echo 'in the folder of what it tests. [CONTRIBUTING.md](../../CONTRIBUTING.md) says how tests are run and what rows are.'
    for folder in tests/*/ examples/; do
        shown=
        for file in "$folder"test_*.c "$folder"*.sh "$folder"fuzz_*.c examples/*.c; do
            [ -f "$file" ] && [ "$(dirname "$file")/" = "$folder" ] || continue
            [ -n "$shown" ] || printf '\n## %s\n\n' "${folder%/}"
            shown=1
            printf -- '- `%s`%s: %s\n' "$(basename "$file")" "$(runs "$file")" "$(sentence "$file")" |
                fold -s -w 118 | sed '2,$s/^/  /; s/ *$//'
        done
    done
}

if [ "${1-}" = --check ]; then
    write | diff "$page" - && echo "make_test_index: $page is current" && exit
    echo "make_test_index: $page is not current: run sh tools/make_test_index.sh"
    exit 1
fi
write >"$page"
