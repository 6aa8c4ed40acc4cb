#!/bin/sh
# minimal
# bench.sh: the fields of `convoy bench --json`, alone and over two ranks; one channel; a network of one's own from a job file.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
fail() { echo "$*"; failed=1; }

# has FILE FIELD PATTERN
has() {
    grep -q "\"$2\": $3[,}]" "$1" || fail "no \"$2\": $3 in $(cat "$1")"
}

"$CONVOY" bench --model cifar-convnet --batch 4 --steps 2 --warmup 1 --threads 1 --nodes --json >"$work/one" || fail "bench fails"
for field in images_per_s images_per_s_best ms_median ms_sd gflop gflop_per_s peak_rss_bytes plan_s loss; do
    has "$work/one" $field '[0-9][0-9.e+-]*'
done
has "$work/one" model '"cifar-convnet"'
has "$work/one" batch 4
has "$work/one" mode '"train"'
has "$work/one" dtype '"f32"'
has "$work/one" threads 1
has "$work/one" ranks 1
has "$work/one" params 145578
has "$work/one" exposed_comm_ms 0
grep -q '"nodes": \[{"name": "conv1", "op": "conv", "kernel": ' "$work/one" || fail "no times of nodes"

# The same rows whatever the number of ranks: the same loss but for rounding.
# shellcheck disable=SC2086
$MPIEXEC_N 2 "$CONVOY" bench --model cifar-convnet --batch 4 --steps 2 --warmup 1 --threads 1 --json --trace "$work/trace.json" >"$work/two" || fail "bench fails on two ranks"
has "$work/two" ranks 2
has "$work/two" params 145578
loss() { sed 's/.*"loss": \([0-9.]*\).*/\1/' "$1"; }
awk -v a="$(loss "$work/one")" -v b="$(loss "$work/two")" 'BEGIN { exit !(a > 0 && (a - b) ^ 2 < 1e-8) }' ||
    fail "loss $(loss "$work/one") on one rank, $(loss "$work/two") on two"
grep -q '"pid": 1' "$work/trace.json" && grep -q '"name": "conv1"' "$work/trace.json" || fail "the trace lacks rank 1 or conv1"

"$CONVOY" bench --model lenet --batch 5 --steps 1 --warmup 1 --mode forward --json >"$work/forward" || fail "forward fails"
has "$work/forward" mode '"forward"'
has "$work/forward" loss null
"$CONVOY" bench --model lenet --batch 5 --steps 1 --warmup 1 --json >/dev/null || fail "one channel fails"
"$CONVOY" bench --model linear --input 7 --classes 3 --batch 5 --steps 1 --dtype f64 --json >"$work/f64" || fail "f64 fails"
has "$work/f64" dtype '"f64"'
has "$work/f64" params 24

cat >"$work/job.yaml" <<END
model: {layers: [{fc: {channels: 4}}, relu, {fc: {channels: 2}}]}
data: {train: {format: synthetic, shape: [6], targets: 2, samples: 20}}
train: {batch: 10, optimizer: adam}
END
"$CONVOY" bench "$work/job.yaml" --steps 1 --json >"$work/own" || fail "a job's own network fails"
has "$work/own" batch 10
has "$work/own" params 38

"$CONVOY" bench --model lenet --batch 64 --passes-off everything >"$work/log" 2>&1 && fail "an unknown pass is accepted"
grep -q "no pass 'everything'" "$work/log" || fail "an unknown pass is not named: $(cat "$work/log")"
exit $failed
