#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# sample_norms.sh: a job with group_norm, instance_norm, layer_norm and resize trains, and with deterministic: true its
# weights have the same bits on 1 and 3 ranks and with two threads, in f32 and in bf16.
. "$CONVOY_SOURCE/tests/shell.inc"

cat >job.yaml <<'END'
model:
  layers:
    - conv: {channels: 32, kernel: 3, pad: 1}
    - group_norm: {groups: 8}
    - relu
    - max_pool: {kernel: 2}
    - conv: {channels: 20, kernel: 3, pad: 1}
    - layer_norm: {axes: 1}
    - gelu
    - resize: {scale: 2, mode: bilinear}
    - conv: {channels: 24, kernel: 3, pad: 1}
    - instance_norm: {scale_shift: true}
    - relu
    - resize: {size: 6}
    - fc: {channels: 48}
    - layer_norm
    - relu
    - fc: {channels: 5}
data:
  train: {format: synthetic, samples: 70, shape: [3, 12, 12], classes: 5}
  val: 10%
deterministic: true
train: {batch: 16, epochs: 3, optimizer: {name: adam, lr: 0.002}}
log: {every: 1}
END

# train NAME OPTIONS...: trains, and leaves the weights in NAME.safetensors.
train() {
    name=$1
    shift
    "$@" --out "$name" --progress plain >log 2>&1 || fail "$name: training fails: $(cat log)"
    "$CONVOY" export "$name" "$name.safetensors" >log 2>&1 || fail "$name: export fails: $(cat log)"
}

for dtype in f32 bf16; do
    train "one-$dtype" "$CONVOY" train job.yaml --threads 1 --set train.dtype="$dtype"
    train "team-$dtype" "$CONVOY" train job.yaml --threads 2 --set train.dtype="$dtype"
    # shellcheck disable=SC2086
    train "three-$dtype" $MPIEXEC_N 3 "$CONVOY" train job.yaml --threads 1 --set train.dtype="$dtype"
    same_tensors "one-$dtype.safetensors" "team-$dtype.safetensors" || fail "$dtype: other bits with two threads"
    same_tensors "one-$dtype.safetensors" "three-$dtype.safetensors" || fail "$dtype: other bits on three ranks"
done
first=$(grep '"kind": "step"' one-f32/metrics.jsonl | head -n 1 | sed 's/.*"loss": \([0-9.e-]*\).*/\1/')
last=$(grep '"kind": "step"' one-f32/metrics.jsonl | tail -n 1 | sed 's/.*"loss": \([0-9.e-]*\).*/\1/')
awk -v a="$first" -v b="$last" 'BEGIN { exit !(b > 0 && b < a / 2) }' || fail "the loss goes from $first to $last"
exit $failed
