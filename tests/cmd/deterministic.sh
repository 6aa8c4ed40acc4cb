#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# level: 2
# deterministic.sh: with deterministic: true a job's weights, losses and scores have the same bits on 1, 2, 3 and 4
# ranks and with one and two threads. It covers convolutions, batch norm, dropout, augmentation, momentum and Adam,
# weights of samples, a last batch with fewer samples than shards, and a run that continues on another number of ranks.
# What does not work with it is refused. The test prints the hash of the weights, to be compared with that of another
# MPI library.
. "$CONVOY_SOURCE/tests/shell.inc"

# 149 samples to train on: four batches of 36 and one of 5, in which some of the eight shards have no sample.
cat >job.yaml <<'END'
model:
  layers:
    - conv: {channels: 16, kernel: 3, pad: 1, bias: false}
    - batch_norm
    - relu
    - max_pool: {kernel: 2}
    - conv: {channels: 24, kernel: 1}
    - batch_norm
    - relu
    - conv: {channels: 20, kernel: 3, stride: 2, pad: 1}
    - relu
    - dropout: {p: 0.3}
    - fc: {channels: 40}
    - relu
    - fc: {channels: 5}
data:
  train: {format: synthetic, samples: 165, shape: [3, 16, 16], classes: 5}
  val: 10%
  augment: [mirror, {random_crop: {size: 16, pad: 2}}]
deterministic: true
train: {batch: 36, epochs: 2, optimizer: {name: sgd, lr: 0.05, momentum: 0.9}, schedule: cosine, clip_norm: 1, metrics: [accuracy]}
checkpoint: {every: 3 steps, keep: 9, best: accuracy}
log: {every: 1}
END

# The numbers of ranks to try with one thread, and with two.
alone='2 3 4' pairs='1 2 3'
[ "${CONVOY_TEST_LEVEL:-1}" -gt 1 ] || { alone='3 4'; pairs='1 3'; }

train() { # train NAME RANKS THREADS OPTIONS...
    out=$1 n=$2 t=$3
    shift 3
    timeout 200 $MPIEXEC_N "$n" "$CONVOY" train job.yaml --threads "$t" --out "$out" "$@" >"$out.log" 2>&1 || fail "$out fails: $(cat "$out.log")"
}
figures() { grep -e '"step"' -e '"epoch"' "$1/metrics.jsonl" | grep -o '"[a-z_]*\(loss\|accuracy\|rmse\)": [-0-9.e]*'; }
same() { # same NAME AS
    [ -n "$(figures "$2")" ] && [ "$(figures "$1")" = "$(figures "$2")" ] || fail "$1: $(figures "$1"); expected, as of $2, $(figures "$2")"
    same_weights "$1" "$2"
}
same_weights() {
    for file in weights.safetensors state.safetensors; do
        theirs=$(find "$2" -name "$file" | sort | tail -n 1)
        [ -n "$theirs" ] || { [ $file = state.safetensors ] || fail "$2 has no $file"; continue; }
        same_tensors "$theirs" "$1/${theirs#*/}" || fail "$1: another $file than $2"
    done
}
on_all() { # on_all NAME OPTIONS...
    name=$1
    shift
    train "$name.1" 1 1 "$@"
    for n in $alone; do
        train "$name.$n" $n 1 "$@"
        same "$name.$n" "$name.1"
    done
    for n in $pairs; do
        train "$name.$n.2" $n 2 "$@"
        same "$name.$n.2" "$name.1"
    done
    echo "$name $(tensors "$(find "$name.1" -name weights.safetensors | sort | tail -n 1)" | cksum)"
}

on_all sgd
on_all adam --set 'train.optimizer={name: adamw, lr: 0.01}' --set data.on_bad_sample=skip --set deterministic_shards=4 --set comm.bucket=4096 --set batch_norm.group=5

# Each rank is a node, and a progress thread does the reductions.
CONVOY_NODE_RANKS=1 train sgd.nodes 3 1 --set comm.progress=thread
same sgd.nodes sgd.1
# Without the key the order of sums changes the result, so this test would notice it.
train plain.1 1 1 --set deterministic=false --set batch_norm.group=5 --set plan.passes_off=fuse-batch-norm
train plain.2 2 1 --set deterministic=false --set batch_norm.group=5 --set plan.passes_off=fuse-batch-norm
[ "$(figures plain.1)" != "$(figures plain.2)" ] || fail "losses are equal to the bit without deterministic: true, too: this test shows nothing"

grep -q 'deterministic: 8 shards of 4 or 5 samples, 8 on this rank, .* MB for their partial sums; kernels by preference' sgd.1.log || fail "no note: $(cat sgd.1.log)"
grep -q '2 on this rank, .* MB for their partial sums; one thread in place of 2 for [0-9]* of [0-9]* kernels' sgd.3.2.log || fail "no note: $(cat sgd.3.2.log)"

# Interrupted twice: four ranks up to step 3, two up to step 6, then three.
cp -r sgd.4 cut
for part in '3 2' '6 3'; do
    # shellcheck disable=SC2086
    set -- $part
    for folder in cut/checkpoints/step-*; do
        [ "${folder#cut/checkpoints/step-}" -le "$1" ] || rm -rf "$folder"
    done
    train cut "$2" 1 --resume
    grep -q "resumed after step $1 of 10" cut.log || fail "not resumed after step $1: $(cat cut.log)"
    same_weights cut sgd.1
done

timeout 60 "$CONVOY" plan job.yaml >plan || fail "plan fails"
grep -q 'deterministic: 8 shards' plan || fail "no shards in the plan: $(cat plan)"
timeout 60 $MPIEXEC_N 2 "$CONVOY" bench job.yaml --threads 1 --steps 2 >bench 2>&1 || fail "bench fails: $(cat bench)"
timeout 60 $MPIEXEC_N 4 "$CONVOY" train job.yaml --threads 1 --out bad --set deterministic_shards=2 >log 2>&1 && fail "four ranks for two shards are accepted"
grep -q '2 shards, but there are 4 ranks: start at most 2, or set deterministic_shards: 4' log || fail "no cause: $(cat log)"
exit $failed
