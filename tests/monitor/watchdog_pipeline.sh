#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich mpi
# level: 2
# lane: clock
# watchdog_pipeline.sh: if a rank of a pipeline is stopped (SIGSTOP), the watchdog of the other stage says which stage it
# is, and which message it waits for.
. "$CONVOY_SOURCE/tests/shell.inc"
cat >job.yaml <<'Y'
model: {layers: [{conv: {channels: 32, kernel: 3, pad: 1}}, relu, {conv: {channels: 32, kernel: 3, pad: 1}}, relu, {fc: {channels: 4}}]}
data: {train: {format: synthetic, samples: 8192, shape: [3, 32, 32], classes: 4}}
train: {batch: 256, epochs: 100000, accumulate: 64}
parallel: {pipeline: 2}
checkpoint: {every: 1000000 steps}
log: {every: 1}
Y

# hang STAGE SECONDS: trains with this timeout of the watchdog, stops the rank of this stage, and leaves what the ranks
# print in the file log.
hang() {
    rm -rf run
    timeout 150 $MPIEXEC -n 2 "$CONVOY" train "$work/job.yaml" --out run --threads 1 --set "watchdog.timeout=$2 s" >log 2>&1 &
    job=$!
    waits=0
    until [ -s run/metrics.jsonl ]; do
        waits=$((waits + 1))
        [ $waits -le 240 ] || { echo "no step within 120 s:"; cat log; kill $job; exit 1; }
        sleep 0.5
    done
    sleep 1
    victim=$(process_of_rank $(($1 - 1)) "convoy train $work/job.yaml")
    [ "$victim" ] || { echo "no process of stage $1"; kill $job; exit 1; }
    kill -STOP "$victim"
    wait "$job"
    code=$?
    kill -KILL "$victim" 2>/dev/null
    waits=0
    while kill -0 "$victim" 2>/dev/null && [ $waits -lt 100 ]; do
        waits=$((waits + 1))
        sleep 0.1
    done
    [ "$code" -ne 0 ] && [ "$code" -ne 124 ] || fail "exit code $code"
}

# says STAGE OTHER: log says that OTHER waits for STAGE, whose rank writes no heartbeat.
says() {
    grep -a 'made no progress for' log >said
    grep -q "made no progress for .*, in a training step, stage $2 of 2, wait to [a-z]* [a-z]* stage $1: [a-z0-9_.]*, micro-batch [0-9]" said &&
        grep -q "; rank $(($1 - 1)) on .* writes no heartbeat" said
}

# A step is long and has 64 micro-batches, so nearly always the rank is stopped in the middle of one. Between two steps
# the other rank would wait in a collective. On a busy machine a rank may make no progress before the other is stopped.
# In both cases the test tries again, with a longer timeout.
for stage in 2 1; do
    other=$((3 - stage))
    seconds=2
    until
        hang $stage $seconds
        says $stage $other
    do
        seconds=$((2 * seconds))
        [ $seconds -le 32 ] && [ -s said ] || { fail "stage $stage stands still, and stage $other does not say that it waits for it: $(cat log run/ranks)"; break; }
    done
    grep -aq 'it waits for no other rank' log && fail "$(cat log)"
    grep -aq "stage $stage of 2" run/ranks || fail "no stage in the heartbeats: $(cat run/ranks)"
    cat said
done
exit $failed
