#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan onednn3 minimal
# bf16.sh: `convoy bench --dtype bf16` works on every CPU, also if oneDNN is held to instruction sets without bf16, and has
# about the loss of f32.
. "$CONVOY_SOURCE/tests/shell.inc"

bench() { "$CONVOY" bench --model lenet --batch 4 --steps 2 --warmup 1 --threads 1 --dtype bf16 --json "$@" >"$work/out" 2>"$work/err"; }

"$CONVOY" bench --model lenet --batch 4 --steps 2 --warmup 1 --threads 1 --json >"$work/f32" || fail "bench fails in f32"
loss() { sed 's/.*"loss_last": \([0-9.]*\).*/\1/' "$1"; }
for limit in '' AVX2; do
    [ -z "$limit" ] || export ONEDNN_MAX_CPU_ISA="$limit"
    bench || fail "bf16 fails with ONEDNN_MAX_CPU_ISA=$limit: $(cat "$work/err")"
    grep -q '"dtype": "bf16"' "$work/out" || fail "not in bf16: $(cat "$work/out")"
    awk -v a="$(loss "$work/out")" -v b="$(loss "$work/f32")" 'BEGIN { exit !(a > 0 && (a - b) ^ 2 < 0.01 * b * b) }' ||
        fail "loss $(loss "$work/out") in bf16, f32 has $(cat "$work/f32")"
done
exit $failed
