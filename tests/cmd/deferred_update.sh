#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# deferred_update.sh: updates that wait until the next forward pass needs the weight (comm.overlap: forward) give the
# same losses and checkpoints, to the bit, as updates at the end of the step. It covers dropout, clipping, Adam, bf16,
# micro-batches, validation, a smaller last batch, and a run that is interrupted.
. "$CONVOY_SOURCE/tests/shell.inc"

cat >job.yaml <<'END'
model:
  layers:
    - conv: {channels: 12, kernel: 3, pad: 1}
    - batch_norm
    - relu
    - max_pool: {kernel: 2}
    - fc: {channels: 70}
    - relu
    - dropout: {p: 0.3}
    - fc: {channels: 5}
data: {train: {format: synthetic, samples: 90, shape: [3, 8, 8], classes: 5}, val: 20%}
train: {batch: 16, epochs: 2, precise: true, optimizer: {name: sgd, lr: 0.05, momentum: 0.9}}
comm: {bucket: 4096, algorithm: doubling}
log: {every: 1}
END
train() { # train NAME RANKS OPTIONS...
    out=$1 n=$2
    shift 2
    CONVOY_NODE_RANKS=1 $MPIEXEC_N "$n" "$CONVOY" train job.yaml --threads 1 --out "$out" "$@" >"$out.log" 2>&1 || fail "$out fails: $(cat "$out.log")"
}
figures() { grep -e '"step"' -e '"epoch"' "$1/metrics.jsonl" | grep -o '"[a-z_]*loss": [-0-9.e]*'; }
same() { # same NAME RANKS OPTIONS...
    name=$1 ranks=$2
    shift 2
    train "$name.end" "$ranks" "$@"
    train "$name.late" "$ranks" --set comm.overlap=forward "$@"
    compare "$name.end" "$name.late"
}
compare() {
    [ -n "$(figures "$1")" ] && [ "$(figures "$1")" = "$(figures "$2")" ] || fail "$2: $(figures "$2"); expected $(figures "$1")"
    for file in weights.safetensors state.safetensors; do
        ours=$(find "$1" -name "$file" | sort | tail -n 1)
        [ -z "$ours" ] || same_tensors "$ours" "$2/${ours#*/}" || fail "$2: another $file"
    done
}
same sgd 2
same clipped 3 --set train.clip_norm=0.5
same adam 3 --set 'train.optimizer={name: adam, lr: 0.01}' --set train.accumulate=2
same bf16 2 --set train.dtype=bf16

train cut 2 --set comm.overlap=forward --set train.epochs=1
train cut 2 --set comm.overlap=forward --resume
compare sgd.late cut
$MPIEXEC_N 2 "$CONVOY" train job.yaml --threads 1 --out bad --set comm.overlap=forward --set update=delayed >log 2>&1 && fail "delayed updates with overlap: forward are accepted"
grep -q 'comm.overlap: forward goes with update: sync' log || fail "no cause: $(cat log)"
$MPIEXEC_N 2 "$CONVOY" train job.yaml --threads 1 --out bad --set comm.overlap=both >log 2>&1 && fail "comm.overlap: both is accepted"
grep -q 'comm: overlap is "both", expected true|forward|false' log || fail "no cause: $(cat log)"

# bench also waits for pending updates before it begins the next thing.
for late in comm.overlap=forward update=delayed; do
    $MPIEXEC_N 2 "$CONVOY" bench job.yaml --threads 1 --steps 2 --set $late >log 2>&1 || fail "bench with $late fails: $(cat log)"
done
exit $failed
