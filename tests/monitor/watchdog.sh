#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich mpi clang asan
# lane: clock
# watchdog.sh: a rank that is stopped (SIGSTOP) is noticed by the watchdogs of the others, which name it, print where
# each rank is, and end the job; the heartbeat file has a line of each rank.
. "$CONVOY_SOURCE/tests/shell.inc"
cat >"$work/job.yaml" <<'Y'
model: {layers: [{fc: {channels: 4}}]}
data: {train: {format: synthetic, samples: 256, shape: [3, 8, 8], classes: 4}}
train: {batch: 30, epochs: 100000}
checkpoint: {every: 1000000 steps}
watchdog: {timeout: 2 s}
Y
timeout 150 $MPIEXEC -n 3 "$CONVOY" train "$work/job.yaml" --out "$work/run" >"$work/log" 2>&1 &
job=$!
waits=0
until [ -s "$work/run/metrics.jsonl" ]; do          # a rank stopped before this would not be the watchdog's case
    waits=$((waits + 1))
    [ $waits -le 120 ] || { echo "no step within 60 s:"; cat "$work/log"; kill $job; exit 1; }
    sleep 0.5
done
sleep 1                                # heartbeats while all is well
rank=2
victim=$(process_of_rank $rank "convoy train $work/job.yaml")
[ "$victim" ] || { echo "no process of rank $rank"; kill $job; exit 1; }
kill -STOP "$victim"
wait "$job"; code=$?
kill -KILL "$victim" 2>/dev/null
tries=0                                # until it is gone, it may hold the lock of the run
while kill -0 "$victim" 2>/dev/null && [ $tries -lt 100 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
grep -aq 'made no progress for' "$work/log" || { echo "no word of the hang:"; cat "$work/log"; exit 1; }
grep -a 'made no progress for' "$work/log" | grep -aq "; rank $rank on .* writes no heartbeat" || { echo "rank $rank, which stands still, is not named:"; cat "$work/log" "$work/run/ranks"; exit 1; }
[ "$(grep -c '^rank [012] host' "$work/run/ranks")" = 3 ] || { echo "not a line of each rank:"; cat "$work/run/ranks"; exit 1; }
[ "$code" -ne 0 ] && [ "$code" -ne 124 ] || { echo "exit code $code"; exit 1; }
# The watchdog does not change STATUS. The next command that looks into the folder reports what happened.
grep -aq '^running' "$work/run/STATUS" || { echo "the watchdog writes to the folder: $(cat "$work/run/STATUS")"; exit 1; }
"$CONVOY" inspect "$work/run" >"$work/seen" 2>&1 || { echo "inspect fails:"; cat "$work/seen"; exit 1; }
grep -aq "the run has ended, although STATUS says \"running " "$work/seen" || { echo "inspect does not say that it ended:"; cat "$work/seen" "$work/run/ranks"; exit 1; }
"$CONVOY" report "$work/run" && grep -aq 'the run has ended, although STATUS says' "$work/run/report.html" || { echo "the page does not say that it ended"; exit 1; }
grep -a 'made no progress for' "$work/log"
