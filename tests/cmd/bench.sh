#!/bin/sh
# rows: asan onednn3 minimal
# bench.sh: the fields of `convoy bench --json`, on one rank and on two; pictures with one channel; a network from a job
# file.
. "$CONVOY_SOURCE/tests/shell.inc"

# has FILE FIELD PATTERN
has() {
    grep -q "\"$2\": $3[,}]" "$1" || fail "no \"$2\": $3 in $(cat "$1")"
}

"$CONVOY" bench --model cifar-convnet --batch 4 --steps 2 --warmup 1 --threads 1 --json >"$work/one" || fail "bench fails"
for field in images_per_s images_per_s_best ms_median ms_mean ms_sd gflop gflop_per_s peak_gflop_per_s peak_share peak_rss_bytes plan_s loss_first loss_last; do
    has "$work/one" $field '[0-9][0-9.e+-]*'
done
has "$work/one" model '"cifar-convnet"'
has "$work/one" batch 4
has "$work/one" mode '"train"'
has "$work/one" dtype '"f32"'
has "$work/one" threads 1
has "$work/one" ranks 1
has "$work/one" parameters 145578
has "$work/one" macs 12354176
has "$work/one" exposed_comm_ms 0

# The rows do not depend on the number of ranks: the loss is the same but for rounding.
# shellcheck disable=SC2086
$MPIEXEC_N 2 "$CONVOY" bench --model cifar-convnet --batch 4 --steps 2 --warmup 1 --threads 1 --json --trace "$work/trace.json" >"$work/two" || fail "bench fails on two ranks"
has "$work/two" ranks 2
has "$work/two" parameters 145578
loss() { sed 's/.*"loss_first": \([0-9.]*\).*/\1/' "$1"; }
awk -v a="$(loss "$work/one")" -v b="$(loss "$work/two")" 'BEGIN { exit !(a > 0 && (a - b) ^ 2 < 1e-8) }' ||
    fail "loss $(loss "$work/one") on one rank, $(loss "$work/two") on two"
grep -q '"pid": 1' "$work/trace.json" && grep -q '"name": "conv1"' "$work/trace.json" || fail "the trace lacks rank 1 or conv1"

# --check: the plain plan has the kernels of the library that is named, and reference kernels.
"$CONVOY" bench --model lenet --batch 4 --threads 1 --check --against native --json >"$work/check" || fail "the check against native fails"
has "$work/check" kernels_plain '"native [0-9]*, reference [0-9]*"'
if "$CONVOY" bench --model lenet --batch 4 --threads 1 --check --against onednn --json >"$work/check" 2>"$work/err"; then
    has "$work/check" kernels_plain '"onednn [0-9]*, reference [0-9]*"'
else
    grep -q 'this build of convoy has no onednn kernels' "$work/err" || fail "the check against onednn fails: $(cat "$work/err")"
fi

"$CONVOY" bench --model lenet --batch 5 --steps 1 --warmup 1 --mode forward --json >"$work/forward" || fail "forward fails"
has "$work/forward" mode '"forward"'
has "$work/forward" loss_first null
has "$work/forward" loss_last null
"$CONVOY" bench --model lenet --batch 5 --steps 1 --warmup 1 --json >/dev/null || fail "one channel fails"
"$CONVOY" bench --model linear --input 7 --classes 3 --batch 5 --steps 1 --dtype f64 --json >"$work/f64" || fail "f64 fails"
has "$work/f64" dtype '"f64"'
has "$work/f64" parameters 24

# A list gives one row for each entry, in order. An entry that does not fit into memory is refused with numbers, and the
# next one is run.
"$CONVOY" bench --model linear,lenet --batch 4,8 --steps 1 --json >"$work/list" || fail "a list fails"
[ "$(sed 's/.*"model": "\([a-z]*\)", "batch": \([0-9]*\),.*/\1 \2/' "$work/list" | tr '\n' ';')" = 'linear 4;linear 8;lenet 4;lenet 8;' ] || fail "not the list: $(cat "$work/list")"
"$CONVOY" bench --model cifar-convnet,no-such-net --batch 100000000,4 --steps 1 >"$work/table" 2>"$work/log" && fail "a network that fails in a list is no fault"
grep -q "cifar-convnet, batch 100000000: cifar-convnet with a batch of 100000000 needs .* but .* are free: a batch of about [0-9]* would fit" "$work/log" || fail "memory: $(cat "$work/log")"
grep -q "no network 'no-such-net'" "$work/log" || fail "an unknown network in a list is not named: $(cat "$work/log")"
grep -q '^cifar-convnet  *4 ' "$work/table" || fail "the list did not go on: $(cat "$work/table")"

cat >"$work/job.yaml" <<END
model: {layers: [{fc: {channels: 4}}, relu, {fc: {channels: 2}}]}
data: {train: {format: synthetic, shape: [6], targets: 2, samples: 20}}
train: {batch: 10, optimizer: adam}
END
"$CONVOY" bench "$work/job.yaml" --steps 1 --json >"$work/own" || fail "a job's own network fails"
has "$work/own" batch 10
has "$work/own" parameters 38

"$CONVOY" bench --model lenet --batch 64 --passes-off everything >"$work/log" 2>&1 && fail "an unknown pass is accepted"
grep -q "no pass 'everything'" "$work/log" || fail "an unknown pass is not named: $(cat "$work/log")"

# A data source without a network.
source='{format: synthetic, shape: [3, 20, 20], samples: 50}'
"$CONVOY" bench --data "$source" --augment '[{random_resized_crop: 12}, mirror]' --threads 1 --batch 8 --seconds 1 --json >"$work/data" || fail "bench --data fails"
has "$work/data" shape '"3x12x12"'
has "$work/data" batch 8
grep -q '"images_per_s": [1-9]' "$work/data" || fail "no speed: $(cat "$work/data")"
"$CONVOY" bench --data "$source" --augment '[mirorr]' >"$work/log" 2>&1 && fail "an unknown augmentation is accepted"
grep -q "did you mean 'mirror'" "$work/log" || fail "an unknown augmentation is not named: $(cat "$work/log")"
for order in window false; do
    "$CONVOY" bench --data "$source" --shuffle $order --threads 1 --batch 8 --seconds 1 --json >"$work/data" || fail "bench --data --shuffle $order fails"
    has "$work/data" shuffle "\"$order\""
done
"$CONVOY" bench --data "$source" --shuffle sorted >"$work/log" 2>&1 && fail "an unknown order is accepted"
"$CONVOY" bench --model lenet --shuffle window >"$work/log" 2>&1 && fail "--shuffle without --data is accepted"
"$CONVOY" bench --data "$source" --model lenet >"$work/log" 2>&1 && fail "a network with --data is accepted"
"$CONVOY" bench --model lenet --augment '[mirror]' >"$work/log" 2>&1 && fail "--augment without --data is accepted"
exit $failed
