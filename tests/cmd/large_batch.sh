#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan
# large_batch.sh: the learning rate of a run follows its global batch, for any number of ranks, and its warm-up begins
# at the rate of the base batch; the rate is printed and logged.
. "$CONVOY_SOURCE/tests/shell.inc"
cat >"$work/job.yaml" <<'Y'
model: {layers: [{fc: {channels: 4}}]}
data: {train: {format: synthetic, samples: 256, shape: [3, 8, 8], classes: 4}}
train:
  batch: 64
  lr_rule: linear
  base_batch: 16
  epochs: 4
  optimizer: {name: sgd, lr: 0.01, momentum: 0.9, nesterov: true, weight_decay: 1e-4}
  schedule: {name: multi_step, at: 3 epochs, factor: 0.1, warmup: 2 epochs}
log: {every: 1}
Y

# $1 is the run, then follow pairs: a step and its rate
rates() {
    run=$1; shift
    while [ $# -gt 0 ]; do
        grep '"kind": "step", "step": '"$1"',' "$work/$run/metrics.jsonl" | sed 's/.*"learning_rate": \([^,]*\),.*/\1/' |
            awk -v want="$2" 'BEGIN { off = 1 } { off = $1 - want } END { exit off > 1e-9 || off < -1e-9 }' ||
            { echo "$run: the rate of step $1 is not $2:"; grep '"step": '"$1"',' "$work/$run/metrics.jsonl"; failed=1; }
        shift 2
    done
}

# four times the base batch, 4 steps an epoch: from 0.01 to 0.04 in two epochs, and a tenth of that after the third
"$CONVOY" train "$work/job.yaml" --out "$work/one" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
grep -q 'learning rate 0.04 for a batch of 64: 0.01 for 16, times 4 (train.lr_rule: linear)' "$work/log" || { echo "the log does not give the rate:"; cat "$work/log"; failed=1; }
rates one 1 0.01 5 0.025 9 0.04 12 0.04 13 0.004

# the same batch as 32 on each of two ranks; 32 on a single rank is twice the base batch
$MPIEXEC_N 2 "$CONVOY" train "$work/job.yaml" --out "$work/two" --set train.batch= --set train.batch_per_rank=32 >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
rates two 1 0.01 5 0.025 9 0.04 13 0.004
"$CONVOY" train "$work/job.yaml" --out "$work/half" --set train.batch= --set train.batch_per_rank=32 --set train.lr_rule=sqrt --set train.base_batch=8 >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
rates half 1 0.01 17 0.02 25 0.002

# a warm-up that is longer than the run
"$CONVOY" train "$work/job.yaml" --out "$work/short" --set train.epochs=1 --set 'train.schedule={name: constant, warmup: 2 epochs}' >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
grep -q 'the warm-up takes 512 samples and the run 256: the full rate is never reached' "$work/log" || { echo "a long warm-up is not remarked on:"; cat "$work/log"; failed=1; }

# lars has its own keys; those of sgd are refused
"$CONVOY" train "$work/job.yaml" --out "$work/bad" --set train.optimizer.name=lars >"$work/log" 2>&1 && { echo "nesterov for lars is accepted"; failed=1; }
grep -q 'lars: unknown key "nesterov"' "$work/log" || { cat "$work/log"; failed=1; }
exit $failed
