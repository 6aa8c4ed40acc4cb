#!/bin/sh
# A rank that stands still (SIGSTOP) is noticed by the others' watchdogs, which name it, say where they stand, and end the job; the board has a line of each.
set -u
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cat >"$dir/job.yaml" <<'Y'
model: {layers: [{fc: {channels: 4}}]}
data: {train: {format: synthetic, samples: 256, shape: [3, 8, 8], classes: 4}}
train: {batch: 30, epochs: 100000}
checkpoint: {every: 1000000 steps}
watchdog: {timeout: 2 s}
Y
timeout 60 $MPIEXEC -n 3 "$CONVOY" train "$dir/job.yaml" --out "$dir/run" >"$dir/log" 2>&1 &
job=$!
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    [ -s "$dir/run/metrics.jsonl" ] && break
    sleep 0.5
done
sleep 1                                # of signs that all is well
victim=$(pgrep -f "convoy train $dir/job.yaml" | tail -n 1)
rank=$(tr '\0' '\n' <"/proc/$victim/environ" | sed -n 's/^\(OMPI_COMM_WORLD_RANK\|PMI_RANK\)=//p' | head -n 1)
kill -STOP "$victim"
wait "$job"; code=$?
kill -KILL "$victim" 2>/dev/null
grep -q 'stood still for' "$dir/log" || { echo "no word of the hang:"; cat "$dir/log"; exit 1; }
grep 'stood still for' "$dir/log" | grep -q "; rank $rank on .* gives no sign" || { echo "rank $rank, which stands still, is not named:"; cat "$dir/log" "$dir/run/ranks"; exit 1; }
[ "$(grep -c '^rank [012] host' "$dir/run/ranks")" = 3 ] || { echo "not a line of each rank:"; cat "$dir/run/ranks"; exit 1; }
[ "$code" -ne 0 ] && [ "$code" -ne 124 ] || { echo "exit code $code"; exit 1; }
grep 'stood still for' "$dir/log"
