#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan onednn3 minimal
# bf16.sh: `convoy bench --dtype bf16` if the CPU has it; a clear refusal if it has not, or if oneDNN is told not to use
# it.
. "$CONVOY_SOURCE/tests/shell.inc"

bench() { "$CONVOY" bench --model lenet --batch 4 --steps 2 --warmup 1 --threads 1 --dtype bf16 --json "$@" >"$work/out" 2>"$work/err"; }

if bench; then
    grep -q '"dtype": "bf16"' "$work/out" || fail "not in bf16: $(cat "$work/out")"
    loss=$(sed 's/.*"loss_last": \([0-9.]*\).*/\1/' "$work/out")
    "$CONVOY" bench --model lenet --batch 4 --steps 2 --warmup 1 --threads 1 --json >"$work/f32" || fail "bench fails in f32"
    awk -v a="$loss" -v b="$(sed 's/.*"loss_last": \([0-9.]*\).*/\1/' "$work/f32")" 'BEGIN { exit !(a > 0 && (a - b) ^ 2 < 0.01 * b * b) }' ||
        fail "loss $loss in bf16, f32 has $(cat "$work/f32")"
else
    grep -q 'needs a CPU with AVX512_BF16.*use dtype f32' "$work/err" || fail "refused without a reason: $(cat "$work/err")"
fi
if "$CONVOY" info | grep -qi 'onednn *yes'; then
    ONEDNN_MAX_CPU_ISA=AVX2 bench && fail "runs in bf16 although oneDNN is held to AVX2"
    grep -q 'use dtype f32' "$work/err" || fail "refused without a way out: $(cat "$work/err")"
fi
exit $failed
