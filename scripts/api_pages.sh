#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# api_pages.sh [FOLDER]: writes the reference of the API for C, C++, Fortran and Python as web pages into FOLDER
# (build/api); FOLDER/index.html is the first one. It needs python3 alone. What lacks a description is a warning, and
# then the exit code is 1.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$root/build/api}
python3 "$root/tools/make_api_pages.py" "$out"
echo "$out/index.html"
