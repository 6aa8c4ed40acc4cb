#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: clang minimal
# exports.sh: the shared library defines exactly the functions that the public headers mark with CVY_API.
command -v nm >/dev/null || { echo "no nm"; exit 77; }
. "$CONVOY_SOURCE/tests/shell.inc"
set -e
export LC_ALL=C

# A declaration may have several lines: join them, then take the name before the first bracket.
cat "$CONVOY_SOURCE"/include/convoy/*.h | sed 's,^#.*,,' | tr '\n' ' ' | sed 's,/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/,,g' | tr ';' '\n' |
    sed -n 's/.*CVY_API[^(]*[ *]\(cvy_[a-z0-9_]*\)(.*/\1/p' | sort >"$work/declared"
nm -D --defined-only "$CONVOY_BUILD/libconvoy.so" | awk '$2 ~ /[A-Z]/ && $2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort >"$work/defined"
[ -s "$work/declared" ] || { echo "no declaration found in include/convoy"; exit 1; }

if ! cmp -s "$work/declared" "$work/defined"; then
    echo "declared in include/convoy but not in the library:"
    comm -23 "$work/declared" "$work/defined"
    echo "in the library but not declared in include/convoy:"
    comm -13 "$work/declared" "$work/defined"
    exit 1
fi
