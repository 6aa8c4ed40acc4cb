#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# list_hdf5.sh NM OUT OBJECT...: writes OUT, a list of the functions and variables of HDF5 that the objects use, for
# src/data/hdf5/data_hdf5_private.c. H5open is not among them: that file defines it.
set -eu
nm=$1 out=$2
shift 2
"$nm" -u "$@" | sed -n 's/^ *U \(H5[A-Za-z0-9_]*\)$/\1/p' | LC_ALL=C sort -u | awk '
    $1 == "H5open" { next }
    { print (/_g$/ ? "CVY_H5_NUMBER" : "CVY_H5_FUNCTION") "(" $1 ")" }' >"$out.new"
grep -q H5Fopen "$out.new" || { echo "list_hdf5.sh: $nm lists no H5Fopen among what the objects use" >&2; exit 1; }
mv "$out.new" "$out"
