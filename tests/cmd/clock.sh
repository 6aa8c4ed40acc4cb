#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan minimal
# clock.sh: with `--kernels clock` a step waits for the measured times of its kernels, on more ranks than there are
# cores; unknown times are named.
. "$CONVOY_SOURCE/tests/shell.inc"
export CONVOY_WISDOM="$work/wisdom.json"

cat >job.yaml <<END
model: {layers: [{conv: {channels: 4, kernel: 3}}, relu, {fc: {channels: 3}}]}
data: {train: {format: synthetic, samples: 40, shape: [3, 8, 8], classes: 3}}
train: {batch_per_rank: 8, steps: 3}
END
bench() { "$@" "$CONVOY" bench job.yaml --threads 1 --kernels clock --steps 5 --warmup 1 --json; }
value() { sed -n "s/.*\"$1\": \\([^,}]*\\).*/\\1/p" "$2"; }
# within FILE KEY LOW HIGH: the value of KEY is between LOW and HIGH times the kernels' time, in ms
within() {
    awk -v x="$(value "$2" "$1")" -v unit="$unit" -v low="$3" -v high="$4" 'BEGIN { exit !(x >= low * unit && x <= high * unit) }' ||
        fail "$2 is $(value "$2" "$1"), expected $3 to $4 times $unit ms: $(cat "$1")"
}

bench >out 2>err && fail "a clock without times"
grep -q 'its time was never measured here.*--batch 8 --threads 1 --planning measure' err || fail "the message does not say what is missing: $(cat err)"
"$CONVOY" train job.yaml --out run --set plan.kernels=clock 2>err && fail "training by the clock"
grep -q 'plan.kernels is clock, which computes nothing' err || fail "training by the clock is not refused by name: $(cat err)"
"$CONVOY" bench job.yaml --kernels clock --set plan.clock_scale=0 2>err && fail "a scale of 0"
grep -q 'plan.clock_scale' err || fail "the scale is not named: $(cat err)"

# The step is scaled to 60 ms, of which the system's own delays are a small part.
"$CONVOY" bench job.yaml --threads 1 --kernels clock --planning measure --steps 1 --warmup 1 --json >out 2>err || fail "measuring fails: $(cat err)"
scale=$(awk -v ms="$(value predicted_ms out)" 'BEGIN { print 60 / ms }')
unit=60
sed -i '$a\
plan: {clock_scale: '"$scale"'}' job.yaml
bench >one 2>err || fail "one rank fails: $(cat err)"
grep -q 'has no effect' err && fail "a key that --kernels clock uses is said to have no effect: $(cat err)"
grep -q '"loss_last": null' one && grep -q 'nothing was computed' one || fail "a loss from nowhere: $(cat one)"
within one ms_best 0.99 1.5
bench $MPIEXEC_N 4 >four 2>err || fail "four ranks fail: $(cat err)"
within four ms_best 0.9 2 # weights are updated in parts
grep -q '"ranks": 4' four || fail "not four ranks: $(cat four)"

# Noise depends on rank and step and leaves the mean unchanged.
sed -i 's/clock_scale/clock_noise: 0.2, &/' job.yaml
bench >noisy 2>err || fail "noise fails: $(cat err)"
within noisy ms_sd 0.01 2
within noisy ms_mean 0.5 2
exit $failed
