#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan
# momentum.sh: sgd has the same momentum by default however a job names it, and a run that was begun without momentum is
# resumed without; the log names the defaults that decide a run.
#
# Version 0.1 had no momentum for `optimizer: sgd`, and its job.resolved.yaml did not say so.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
sed -e '/optimizer:/d' -e '/schedule:/d' job.yaml >plain.yaml
train() {
    run=$1
    shift
    "$CONVOY" train plain.yaml --out "$run" --threads 1 "$@" >"$run.log" 2>&1 || { fail "$run: $(tail -n 3 "$run.log")"; }
}
weights() { echo "$1/checkpoints/step-00000006/weights.safetensors"; }

train open
train named --set train.optimizer=sgd
train map --set 'train.optimizer={name: sgd, lr: 0.01}'
train given --set 'train.optimizer={name: sgd, lr: 0.01, momentum: 0.9}'
train none --set 'train.optimizer={name: sgd, momentum: 0}'
for run in open named map given; do
    grep -q '^    momentum: 0.9$' $run/job.resolved.yaml || fail "$run: $(grep -A 8 optimizer: $run/job.resolved.yaml)"
    same_tensors "$(weights $run)" "$(weights given)" || fail "$run has other weights than momentum: 0.9"
done
for run in open named map; do
    grep -qx 'by default: momentum 0.9 (train.optimizer.momentum)' $run.log || fail "$run: no note: $(cat $run.log)"
done
grep 'by default' given.log none.log && fail "a note on defaults that are not used"
train norms --set 'train.optimizer={name: sgd, momentum: 0, weight_decay: 0.001}' --set train.batch=48 \
    --set 'model.layers=[{conv: {channels: 4, kernel: 3}}, batch_norm, relu, {fc: {channels: 4}}]'
grep -qx 'by default: no weight decay on biases and norms (train.optimizer.decay_on), batch norm by groups of 32 samples (batch_norm.group)' norms.log ||
    fail "norms: no note: $(cat norms.log)"
same_tensors "$(weights none)" "$(weights given)" && fail "momentum: 0 has the weights of momentum: 0.9"

train old --set 'train.optimizer={name: sgd, momentum: 0}' --set train.steps=3 --set train.epochs=
sed -i '/^    momentum: /d' old/job.resolved.yaml
train old --resume
grep -q 'old was begun with sgd without momentum, so it continues with momentum: 0' old.log || fail "no note: $(cat old.log)"
grep -q '^    momentum: 0$' old/job.resolved.yaml || fail "old: $(grep -A 8 optimizer: old/job.resolved.yaml)"
same_tensors "$(weights old)" "$(weights none)" || fail "the resumed run has other weights than one without momentum"
exit $failed
