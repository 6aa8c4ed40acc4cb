#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan
# fifos.sh: a FIFO in place of any file that convoy reads or writes ends a command, with a message that says what it is, or
# is left alone; no command waits for its other end.
. "$CONVOY_SOURCE/tests/shell.inc"
export CONVOY_SITE=off CONVOY_WISDOM=off

# ends COMMAND...: it ends by itself, and is not killed.
ends() {
    timeout 60 "$@" >out 2>err
    code=$?
    [ $code -lt 124 ] || fail "code $code (124: it waits for ever): $*"
}

# says COMMAND...: it fails and says what it found.
says() {
    ends "$@"
    [ $code != 0 ] || fail "exit code 0: $*"
    grep -Eq 'FIFO|regular file' out err || { fail "no word of the FIFO: $*"; head -3 err; }
}

printf 'model: {layers: [{fc: {channels: 4}}]}\ndata: {train: {format: synthetic, samples: 32, shape: [8], classes: 4}, val: 25%%}\n' >job.yaml
printf 'train: {batch: 8, epochs: 1}\n' >>job.yaml
"$CONVOY" train job.yaml --out run --threads 1 >log 2>&1 || { cat log; fail "the run fails"; exit $failed; }
step=$(cd run/checkpoints && echo step-*)
mkfifo fifo

# ---- the files of a run ----
for file in STATUS metrics.jsonl job.resolved.yaml "checkpoints/$step/manifest.json" "checkpoints/$step/weights.safetensors" checkpoints/latest; do
    rm -rf other
    cp -r run other
    rm "other/$file"
    mkfifo "other/$file"
    for verb in ls report test "inspect --verify"; do
        ends "$CONVOY" $verb other
    done
    case $file in
    check*s) says "$CONVOY" inspect "other/checkpoints/$step" --verify ;;
    metrics.jsonl) says "$CONVOY" train job.yaml --out other --resume ;;
    esac
done

# ---- what a command is given ----
for word in "train fifo" "study fifo" "sweep fifo" "plan fifo" "report fifo" "bench --model fifo" "inspect fifo" "@fifo"; do
    ends "$CONVOY" $word
    [ $code != 0 ] || fail "exit code 0: $word"
done
says "$CONVOY" train fifo --out a
says "$CONVOY" inspect fifo
mkfifo fifo.yaml
says "$CONVOY" simulate lenet --platform fifo.yaml
says "$CONVOY" train job.yaml --out b --set train.init=fifo
for format in npy csv hdf5 idx tfrecord; do
    ends "$CONVOY" train job.yaml --out c --set "data.train={format: $format, path: fifo}"
    [ $code != 0 ] || fail "exit code 0: format $format"
done
mkdir data
mkfifo data/x.npy data/label.npy study.yaml
ends "$CONVOY" inspect data
ends "$CONVOY" report . .
CONVOY_WISDOM=$work/fifo ends "$CONVOY" bench job.yaml --steps 1 --threads 1
exit $failed
