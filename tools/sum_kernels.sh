#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# sum_kernels.sh OUT FILE...: writes OUT, a C source with the checksum of all FILEs as cvy_kernel_sum.
set -eu
out=$1
shift
printf '/* The checksum (cksum) of the sources of all kernels. */\n#include "plan/plan_wisdom.h"\nconst unsigned cvy_kernel_sum = %su;\n' \
    "$(cat "$@" | cksum | cut -d ' ' -f 1)" >"$out.new"
mv "$out.new" "$out"
