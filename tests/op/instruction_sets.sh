#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: clang
# seconds: 25
# instruction_sets.sh: kernels with loops for several instruction sets compute what the reference kernels compute with
# each of them, also with those that the machine would not choose. (Winograd: test_kernel_conv_edges.c.)
. "$CONVOY_SOURCE/tests/shell.inc"

for isa in AVX2 SSE41; do
    ONEDNN_MAX_CPU_ISA=$isa "$CONVOY_BUILD/tests/test_op" avg_pool batch_norm fc group_norm max_pool >log 2>&1 || fail "$isa: $(grep -v '^ok' log | tail -n 20)"
    [ "$(grep -c '^ok' log)" = 5 ] || fail "$isa: five operators were not tested: $(cat log)"
done
exit $failed
