#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# list_exports.sh NM ABI VERSION INCLUDE OUT OBJECT...: writes OUT, the list of the symbols that leave libconvoy.
#
# The functions that the headers in INCLUDE mark with CVY_API leave it for every program, with the version CONVOY_<ABI>.
# What the objects of the laboratory (lab/) need besides leaves it for the command of the same build alone, with the
# version CONVOY_PRIVATE_<VERSION>: the loader refuses a command of another version. OUT is a version script of the
# linker, or for macOS, if its name ends in .txt, the plain list.
set -eu
export LC_ALL=C
nm=$1 abi=$2 version=$3 include=$4 out=$5
shift 5

mkdir -p "$(dirname "$out")"
public=$(sed -n 's/^CVY_API .*[ *]\(cvy_[a-z0-9_]*\)(.*/\1/p' "$include"/*.h | sort)
# Names as the linker sees them begin with '_' on macOS.
private=
if [ $# -gt 0 ]; then
    private=$({
        printf '%s public\n' $public
        "$nm" -g -P "$@" | awk '$1 ~ /^_?cvy_/ { sub(/^_/, "", $1); print $1, $2 ~ /^[Uuw]$/ ? "needed" : "defined" }'
    } | awk '{ is[$2, $1] = 1; name[$1] } END { for (n in name) if (is["needed", n] && !is["defined", n] && !is["public", n]) print n }' | sort)
fi

case $out in
*.txt) printf '_%s\n' $public $private ;;
*)
    printf 'CONVOY_%s {\n    global:\n' "$abi"
    printf '        %s;\n' $public
    printf '    local: *;\n};\n'
    if [ -n "$private" ]; then
        printf 'CONVOY_PRIVATE_%s {\n    global:\n' "$version"
        printf '        %s;\n' $private
        printf '};\n'
    fi
    ;;
esac >"$out.new"
mv "$out.new" "$out"
