#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# make_test_index.sh: prints the index of all tests, one a line, from the first comment of each test. A test is in the
# folder of what it tests; CONTRIBUTING.md says how tests are run and what rows are.
set -u
export LC_ALL=C
cd "$(dirname "$0")/.." || exit 1

# Prints the tests by folder, in each folder first the programs.
tests() {
    for folder in tests/*/ examples/; do
        for file in "$folder"test_*.c "$folder"*.sh "$folder"fuzz_*.c; do
            [ ! -f "$file" ] || echo "$file"
        done
    done
    printf '%s\n' examples/*.c
}

# One process reads all tests: a process for each of them would take seconds.
tests | xargs awk '
    # The line of the test that has been read: its ranks and rows in brackets, and the first sentence of its comment.
    function print_test() {
        if (name == "")
            return
        sub(/^ +/, "", text)
        if (index(text, name ": ") == 1)
            text = substr(text, length(name) + 3)
        if (match(text, /[.]( |$)/))
            text = substr(text, 1, RSTART)
        printf "%s", path
        if (ranks rows level != "")
            printf " (%s)", ranks (ranks != "" && rows level != "" ? "; " : "") rows (rows != "" && level != "" ? "; " : "") level
        print ": " text
    }
    FNR == 1 {
        print_test()
        name = FILENAME; sub(/.*\//, "", name)
        path = FILENAME
        text = ranks = rows = level = ""
        inside = ended = 0
    }
    ranks == "" && /^\/\* ranks: [0-9 ]*[0-9] *\*\/$/ { ranks = $0; sub(/^.. /, "", ranks); sub(/:/, "", ranks); sub(/ *\*\/$/, "", ranks) }
    rows == "" && /^\/\* rows: .* \*\/$/ { rows = $0; sub(/^.. rows:/, "rows", rows); sub(/ \*\/$/, "", rows) }
    rows == "" && /^# rows: / { rows = $0; sub(/^# rows:/, "rows", rows) }
    level == "" && /^(\/\*|#) level: 2/ { level = "only --all" }
    # The first comment, without the lines "ranks:", "rows:", "level:", "lane:" and "seconds:", and that of the licence.
    ended || /^\/\* (ranks|rows|level|lane|seconds):/ || /^#!/ || /^# (rows|level|lane|seconds):/ || /SPDX-License-Identifier:/ { next }
    /^(\/\*|#)/ { inside = 1 }
    inside && !/^(\/\*| \*|#)/ { ended = 1; next }
    inside { ended = /\*\/ *$/; sub(/^(\/\*| \*\/| \*|#) ?/, ""); sub(/ *\*\/ *$/, ""); text = text " " $0 }
    END { print_test() }'
