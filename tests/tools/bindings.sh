#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# bindings.sh: the declarations of the C API for Fortran and Python are those of the headers (tools/make_bindings.py).
. "$CONVOY_SOURCE/tests/shell.inc"
command -v python3 >/dev/null || { echo "there is no python3"; exit 77; }
PYTHONDONTWRITEBYTECODE=1 python3 "$CONVOY_SOURCE/tools/make_bindings.py" --check || failed=1
exit $failed
