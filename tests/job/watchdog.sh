#!/bin/sh
# A rank that stands still (SIGSTOP) is noticed by the others' watchdogs, which say where and end the job.
set -u
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cat >"$dir/job.yaml" <<'Y'
model: {layers: [{fc: {channels: 4}}]}
data: {train: {format: synthetic, samples: 256, shape: [3, 8, 8], classes: 4}}
train: {batch: 32, epochs: 100000}
checkpoint: {every: 1000000 steps}
watchdog: {timeout: 2 s}
Y
timeout 60 $MPIEXEC -n 2 "$CONVOY" train "$dir/job.yaml" --out "$dir/run" >"$dir/log" 2>&1 &
job=$!
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    [ -s "$dir/run/metrics.jsonl" ] && break
    sleep 0.5
done
victim=$(pgrep -f "convoy train $dir/job.yaml" | tail -n 1)
kill -STOP "$victim"
wait "$job"; code=$?
kill -KILL "$victim" 2>/dev/null
grep -q 'stood still for' "$dir/log" || { echo "no word of the hang:"; cat "$dir/log"; exit 1; }
[ "$code" -ne 0 ] && [ "$code" -ne 124 ] || { echo "exit code $code"; exit 1; }
grep 'stood still for' "$dir/log"
