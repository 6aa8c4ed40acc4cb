#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: clang minimal
# exports.sh: the shared library defines for programs exactly the functions that the public headers mark with CVY_API. What
# it defines for the command besides has the version CONVOY_PRIVATE_.., and the command needs all of it.
command -v nm >/dev/null || { echo "no nm"; exit 77; }
. "$CONVOY_SOURCE/tests/shell.inc"
set -e
export LC_ALL=C

# A declaration may have several lines: join them, then take the name before the first bracket.
cat "$CONVOY_SOURCE"/include/convoy/*.h | sed 's,^#.*,,' | tr '\n' ' ' | sed 's,/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/,,g' | tr ';' '\n' |
    sed -n 's/.*CVY_API[^(]*[ *]\(cvy_[a-z0-9_]*\)(.*/\1/p' | sort >"$work/declared"
nm -D --defined-only "$CONVOY_BUILD/libconvoy.so" | awk '$2 ~ /[A-Z]/ && $2 != "A" { print $3 }' | sort >"$work/exported"
sed -n '/@@CONVOY_PRIVATE_/!s/@.*//p' "$work/exported" >"$work/defined"
sed -n 's/@@CONVOY_PRIVATE_.*//p' "$work/exported" >"$work/private"
[ -s "$work/declared" ] || { echo "no declaration found in include/convoy"; exit 1; }

if ! cmp -s "$work/declared" "$work/defined"; then
    echo "declared in include/convoy but not in the library:"
    comm -23 "$work/declared" "$work/defined"
    echo "in the library but not declared in include/convoy:"
    comm -13 "$work/declared" "$work/defined"
    exit 1
fi
nm -D --undefined-only "$CONVOY" | awk '{ sub(/@.*/, "", $NF); print $NF }' | sort >"$work/needed"
comm -13 "$work/needed" "$work/private" >"$work/unused"
[ ! -s "$work/unused" ] || fail "exported for the command, which does not need it: $(tr '\n' ' ' <"$work/unused")"
exit $failed
