#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# make_test_index.sh [--check]: writes docs/internals/tests.md, the index of all tests, from the first comment of each
# test; with --check it fails if the page is not up to date. Run by ctest.
set -u
export LC_ALL=C
cd "$(dirname "$0")/.." || exit 1
page=docs/internals/tests.md

# Prints the tests in the order of the page: by folder, in each folder first the programs.
tests() {
    for folder in tests/*/ examples/; do
        for file in "$folder"test_*.c "$folder"*.sh "$folder"fuzz_*.c; do
            [ ! -f "$file" ] || echo "$file"
        done
    done
    printf '%s\n' examples/*.c
}

write() {
    echo '# Index of the tests'
    echo
    echo 'This page is made by `sh tools/make_test_index.sh` from the comment at the head of each test; do not edit it. A test is'
    echo 'in the folder of what it tests. [CONTRIBUTING.md](../../CONTRIBUTING.md) says how tests are run and what rows are.'
    # One process reads all tests: a process for each of them would take seconds.
    tests | xargs awk '
        # The line of the test that has been read: its ranks and rows in brackets, and the first sentence of its comment.
        function print_test(    line, part, n) {
            if (name == "")
                return
            sub(/^ +/, "", text)
            if (index(text, name ": ") == 1)
                text = substr(text, length(name) + 3)
            if (match(text, /[.]( |$)/))
                text = substr(text, 1, RSTART)
            gsub(/[|<>]/, "\\\\&", text)
            line = "- `" name "`"
            if (ranks rows level != "")
                line = line " (" ranks (ranks != "" && rows level != "" ? "; " : "") rows (rows != "" && level != "" ? "; " : "") level ")"
            line = line ": " text
            for (part = ""; line != ""; part = "  ") {
                n = length(line)
                if (n > 118) # break after the last blank that fits
                    for (n = 118; n > 1 && substr(line, n, 1) != " "; n--)
                        continue
                if (n == 1)
                    n = 118
                part = part substr(line, 1, n)
                line = substr(line, n + 1)
                sub(/ *$/, "", part)
                print part
            }
        }
        FNR == 1 {
            print_test()
            name = FILENAME; sub(/.*\//, "", name)
            in_folder = substr(FILENAME, 1, length(FILENAME) - length(name) - 1)
            if (in_folder != folder)
                printf "\n## %s\n\n", in_folder
            folder = in_folder
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
}

if [ "${1-}" = --check ]; then
    write | diff "$page" - && echo "make_test_index: $page is current" && exit
    echo "make_test_index: $page is not current: run sh tools/make_test_index.sh"
    exit 1
fi
write >"$page"
