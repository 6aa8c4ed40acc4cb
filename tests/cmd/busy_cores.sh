#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# level: 2
# lane: clock
# busy_cores.sh: `convoy train` warns once, and `convoy doctor` says it, if another program uses its core. It needs
# taskset.
. "$CONVOY_SOURCE/tests/shell.inc"

command -v taskset >/dev/null && [ -r /proc/stat ] && taskset -c 0 true 2>/dev/null || exit 77
cat >job.yaml <<END
model: {layers: [{fc: {channels: 64}}, relu, {fc: {channels: 10}}]}
data: {train: {format: synthetic, samples: 4096, shape: [3, 16, 16]}, threads: 0}
train: {batch: 64, epochs: 100000}
checkpoint: {every: 100000 epochs}
END
# train LOG: trains on core 0 until it warns, for two minutes at most, and a little longer: it must not warn again.
train() {
    rm -rf run
    taskset -c 0 "$CONVOY" train job.yaml --threads 1 --out run --progress plain >"$1" 2>&1 &
    pid=$!
    tries=0
    until grep -q 'other programs use' "$1" || [ $tries -eq 120 ]; do
        tries=$((tries + 1))
        sleep 1
    done
    sleep 4
    kill -TERM $pid
    wait $pid
}
taskset -c 0 sh -c 'while :; do :; done' &
other=$!
train busy
taskset -c 0 "$CONVOY" doctor --threads 1 --max 1KiB >doctor 2>&1
kill $other
wait $other 2>/dev/null
[ "$(grep -c 'other programs use [01]\.[0-9] of the 1 core of rank 0' busy)" = 1 ] || fail "no warning of a busy core: $(cat busy)"
grep -q 'other programs use [01]\.[0-9] of the 1 core of rank 0 on ' doctor || fail "doctor does not find the busy core: $(cat doctor)"
exit $failed
