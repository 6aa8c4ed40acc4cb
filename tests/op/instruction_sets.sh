#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: clang aarch64
# seconds: 25
# instruction_sets.sh: kernels with loops for several instruction sets compute what the reference kernels compute with
# each of them, also with those that the machine would not choose. (Winograd: test_kernel_conv_edges.c.)
. "$CONVOY_SOURCE/tests/shell.inc"

operators='avg_pool batch_norm fc group_norm max_pool'

# with NAME=VALUE...: tests the operators in this environment.
with() {
    # shellcheck disable=SC2086
    env "$@" $EMULATOR "$CONVOY_BUILD/tests/test_op" $operators >log 2>&1 || fail "$*: $(grep -v '^ok' log | tail -n 20)"
    [ "$(grep -c '^ok' log)" = 5 ] || fail "$*: five operators were not tested: $(cat log)"
}

case $EMULATOR in
*aarch64*) # each width of SVE that has loops of its own, and NEON
    with QEMU_CPU=max,sve-default-vector-length=64
    with QEMU_CPU=max,sve-default-vector-length=32
    with ONEDNN_MAX_CPU_ISA=ADVSIMD
    ;;
*)
    with ONEDNN_MAX_CPU_ISA=AVX2
    with ONEDNN_MAX_CPU_ISA=SSE41
    ;;
esac
exit $failed
