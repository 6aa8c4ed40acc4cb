#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan
# seconds: 20
# device_resume.sh: on the emulated GPU, a run that is killed (kill -9) and resumed ends with the bits of the unbroken
# run, in deterministic mode; a run that begins on the host is ended on the GPU, and the other way, and learns the same.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
export CONVOY_WISDOM=off
cat >job.yaml <<'END'
model:
  layers:
    - conv: {channels: 8, kernel: 3, pad: 1, bias: false}
    - batch_norm
    - relu
    - max_pool: {kernel: 2}
    - dropout: {p: 0.3}
    - fc: {channels: 4}
data:
  train: {format: synthetic, samples: 128, shape: [3, 8, 8], classes: 4}
train: {batch: 32, epochs: 15, optimizer: {name: adam, lr: 1e-3}}
checkpoint: {every: 7 steps, keep: 3}
log: {every: 1}
END
last=step-00000060

# train DEVICE FOLDER [OPTION...]: trains in the folder.
train() {
    device=$1 folder=$2
    shift 2
    "$CONVOY_EMULATED" train job.yaml --device "$device" --threads 1 --progress none --out "$folder" "$@" >>"log-$folder" 2>&1
}
same_bits() {
    for file in weights.safetensors state.safetensors; do
        cmp -s "whole/checkpoints/$last/$file" "$1/checkpoints/$last/$file" || fail "$file of $1 is not that of the unbroken run"
    done
}

train emulated whole --set deterministic=true || { fail "the unbroken run fails"; cat log-whole; exit 1; }
! grep -q staged log-whole || { fail "operators are staged:"; cat log-whole; }

# Killed when step 20 is done; the last checkpoint is that of step 14.
train emulated killed --set deterministic=true &
job=$!
until grep -q '"step": *20,' killed/metrics.jsonl 2>/dev/null; do
    kill -0 $job 2>/dev/null || { fail "the run ended before step 20"; cat log-killed; exit 1; }
    sleep 0.01
done
pkill -9 -P $job 2>/dev/null || kill -9 $job
wait $job 2>/dev/null
[ ! -e killed/checkpoints/$last ] || fail "the killed run came to its end"
train emulated killed --set deterministic=true --resume || { fail "the killed run does not resume"; cat log-killed; }
same_bits killed

# loss FOLDER: the loss of the last step.
loss() { sed -n 's/.*"step": *60,.*"loss": *\([0-9.e+-]*\).*/\1/p' "$1/metrics.jsonl" | head -n 1; }

train host host || { fail "the run on the host fails"; cat log-host; }
for way in "host emulated" "emulated host"; do
    first=${way% *} second=${way#* }
    train "$first" "from-$first" --set train.epochs=7 || { fail "the first half on $first fails"; cat "log-from-$first"; }
    train "$second" "from-$first" --resume --set train.epochs=15 || { fail "the second half on $second fails"; cat "log-from-$first"; }
    awk -v a="$(loss host)" -v b="$(loss "from-$first")" 'BEGIN { exit !(a > 0 && b > 0 && (a - b) ^ 2 <= (1e-3 * a) ^ 2) }' ||
        fail "begun on $first and ended on $second: the last loss is $(loss "from-$first"), on the host $(loss host)"
done
exit $failed
