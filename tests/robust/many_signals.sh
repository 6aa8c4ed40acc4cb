#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: onednn3
# many_signals.sh: signals that arrive in the middle of kernels do no harm. Matrix products of oneDNN (issue 4845 there)
# point the stack pointer into the heap, so handlers on the same stack made one run of seven crash, within 60 signals.
. "$CONVOY_SOURCE/tests/shell.inc"

cat >job.yaml <<END
model: {layers: [{fc: {channels: 4}}]}
data: {train: {format: synthetic, samples: 512, shape: [16, 16, 16], classes: 4}, threads: 1, cache: decoded}
train: {batch: 64, steps: 100000000, optimizer: {name: sgd, lr: 0.0001}}
checkpoint: {every: 1 h}
log: {every: 1000000}
END
[ "${CONVOY_TEST_LEVEL:-1}" = 1 ] && most=10 || most=25 # --all makes more runs
runs=0
while [ $runs -lt $most ] && [ $failed = 0 ]; do
    runs=$((runs + 1))
    rm -rf run
    "$CONVOY" train job.yaml --threads 1 --out run --progress none --on-signal USR1=ignore >log 2>&1 &
    pid=$!
    for _ in $(seq 1200); do # the handlers are there after the first step
        grep -q '"step"' run/metrics.jsonl 2>/dev/null && break
        sleep 0.05
    done
    for _ in $(seq 40); do
        for _ in 1 2 3 4 5; do
            kill -USR1 $pid 2>/dev/null
        done
        sleep 0.005
    done
    kill -0 $pid 2>/dev/null || fail "run $runs has ended: $(head -n 20 log)"
    kill -KILL $pid 2>/dev/null
    wait $pid 2>/dev/null
done
exit $failed
