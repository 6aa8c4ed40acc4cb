#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
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

parts_add_up "$work/one"
parts_add_up "$work/two"
awk -v c="$(sed 's/.*"communication_ms": \([^,]*\).*/\1/' "$work/two")" 'BEGIN { exit !(c > 0) }' || fail "two ranks take no time to communicate: $(cat "$work/two")"

# Energy: the counters of two packages, which stand still.
mkdir -p "$work/cap/intel-rapl:0" "$work/cap/intel-rapl:1"
for package in 0 1; do
    echo 5000000 >"$work/cap/intel-rapl:$package/energy_uj"
    echo 9000000 >"$work/cap/intel-rapl:$package/max_energy_range_uj"
done
CONVOY_POWERCAP="$work/cap" "$CONVOY" bench --model lenet --batch 4 --steps 2 --warmup 1 --threads 1 --json >"$work/energy" || fail "bench with energy fails"
has "$work/energy" joules_per_image 0
CONVOY_POWERCAP="$work" "$CONVOY" bench --model lenet --batch 4 --steps 2 --warmup 1 --threads 1 --json | grep -q joules && fail "joules from nowhere"

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
# forward-backward: the work is that of a training step without the update, which is 8 operations for each of the 145578
# weights here; no weight changes, so the loss stays; and nothing is sent.
"$CONVOY" bench --model cifar-convnet --batch 4 --steps 2 --warmup 1 --threads 1 --json --mode forward-backward >"$work/half" || fail "forward-backward fails"
has "$work/half" mode '"forward-backward"'
has "$work/half" update '"none"'
value() { sed "s/.*\"$2\": \([^,}]*\).*/\1/" "$1"; }
awk -v all="$(value "$work/one" gflop)" -v half="$(value "$work/half" gflop)" 'BEGIN { d = all - half - 8e-9 * 145578; exit !(half > 0 && d * d < 1e-20) }' ||
    fail "the work without update is $(value "$work/half" gflop) of $(value "$work/one" gflop) GFLOP"
[ "$(value "$work/half" loss_first)" = "$(value "$work/one" loss_first)" ] || fail "another loss: $(cat "$work/half")"
[ "$(value "$work/half" loss_last)" = "$(value "$work/half" loss_first)" ] || fail "the weights change: $(cat "$work/half")"
# shellcheck disable=SC2086
$MPIEXEC_N 2 "$CONVOY" bench --model cifar-convnet --batch 4 --steps 2 --warmup 1 --threads 1 --json --mode forward-backward >"$work/half2" || fail "forward-backward fails on two ranks"
has "$work/half2" bytes_wire 0
awk -v a="$(value "$work/half" loss_first)" -v b="$(value "$work/half2" loss_first)" 'BEGIN { exit !(a > 0 && (a - b) ^ 2 < 1e-8) }' ||
    fail "loss $(value "$work/half" loss_first) on one rank, $(value "$work/half2" loss_first) on two"
awk -v all="$(value "$work/half2" images_per_s)" -v node="$(value "$work/half2" images_per_s_node)" -v rank="$(value "$work/half2" images_per_s_rank)" -v nodes="$(value "$work/half2" nodes)" \
    'function near(a, b) { return (a / b - 1) ^ 2 < 1e-18 } BEGIN { exit !(nodes >= 1 && near(all, node * nodes) && near(all, rank * 2)) }' ||
    fail "the shares of nodes and ranks: $(cat "$work/half2")"
"$CONVOY" bench --model lenet --batch 8 --mode forward-backward --set deterministic=true --set batch_norm.group=shard >"$work/log" 2>&1 && fail "deterministic forward-backward is accepted"
grep -q 'set deterministic to false' "$work/log" || fail "no advice: $(cat "$work/log")"
"$CONVOY" bench --model lenet --batch 5 --steps 1 --warmup 1 --json >/dev/null || fail "one channel fails"
"$CONVOY" bench --model linear --input 7 --classes 3 --batch 5 --steps 1 --dtype f64 --json >"$work/f64" || fail "f64 fails"
has "$work/f64" dtype '"f64"'
has "$work/f64" parameters 24

# A list gives one row for each entry, in order. An entry that does not fit into memory is refused with numbers, and the
# next one is run.
"$CONVOY" bench --model linear,lenet --batch 4,8 --steps 1 --json >"$work/list" || fail "a list fails"
[ "$(sed 's/.*"model": "\([a-z]*\)", "batch": \([0-9]*\),.*/\1 \2/' "$work/list" | tr '\n' ';')" = 'linear 4;linear 8;lenet 4;lenet 8;' ] || fail "not the list: $(cat "$work/list")"
"$CONVOY" bench --model linear --batch 4,8 --threads 1,2 --steps 1 --json >"$work/list" || fail "a list of threads fails"
[ "$(sed 's/.*"batch": \([0-9]*\),.*"threads": \([0-9]*\),.*/\1 \2/' "$work/list" | tr '\n' ';')" = '4 1;8 1;4 2;8 2;' ] || fail "not the list of threads: $(cat "$work/list")"
"$CONVOY" bench --model linear --batch 4 --threads 1,2 --steps 1 >"$work/list" || fail "a table of threads fails"
[ "$(wc -l <"$work/list")" = 3 ] && grep -q '^linear  *4  *1x2 ' "$work/list" || fail "no row for each number of threads: $(cat "$work/list")"
"$CONVOY" bench --model linear --threads 1,0 >"$work/log" 2>&1 && fail "no threads are accepted"
"$CONVOY" bench --model cifar-convnet,no-such-net --batch 100000000,4 --steps 1 >"$work/table" 2>"$work/log" && fail "a network that fails in a list is no fault"
grep -q "cifar-convnet, batch 100000000: cifar-convnet with a batch of 100000000 needs .* but .* are free by .*: a batch of about [0-9]* would fit" "$work/log" || fail "memory: $(cat "$work/log")"
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
