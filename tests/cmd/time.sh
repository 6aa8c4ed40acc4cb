#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: onednn3
# time.sh: `convoy time`: rows for layers with their parts and kernels, totals that add up, a trace; the sweep and the
# check of `convoy bench`.
. "$CONVOY_SOURCE/tests/shell.inc"

"$CONVOY" time cifar-convnet --batch 4 --steps 2 --warmup 1 --threads 1 --trace trace.json >table || fail "time fails"
grep -q '^cifar-convnet, training, f32, batch 4, 1 rank of 1 thread: medians of 2 steps' table || fail "no head: $(cat table)"
grep -q '^layer  *operator  *output  *forward  *bwd data  *bwd wei  *update  *all ' table || fail "no head of columns: $(cat table)"
grep -q '^conv2  *conv  *4x32x16x16 ' table || fail "no row of conv2: $(cat table)"
grep -q '^ip1  *fc  *4x64 ' table || fail "no row of ip1: $(cat table)"
grep -q '^by operator: .*conv [0-9.]* %' table || fail "no totals: $(cat table)"
grep -q '^convolution and fully connected [0-9.]* %, all else [0-9.]* %$' table || fail "no share of convolutions: $(cat table)"
grep -q '"name": "conv1"' trace.json && grep -q '"ph": "X"' trace.json || fail "no trace"

# The limit of the step, below the table and by itself: both kinds add up, and no instruction among the furthest takes less
# than its limit.
grep -q '^limit of the step: [0-9.]* ms, [0-9]* % of the [0-9.]* ms that its instructions take; ' table || fail "no limit: $(cat table)"
"$CONVOY" time cifar-convnet --batch 4 --steps 2 --warmup 1 --threads 1 --limit >limit || fail "time --limit fails"
grep -q '^layer ' limit && fail "--limit prints the table: $(cat limit)"
grep -q '^bytes that are read and written, GB/s a rank: [1-9][0-9]* at 0.1311 MB' limit || fail "no speeds: $(cat limit)"
awk '/^limit of the step/ { d = $5 - $(NF - 8) - $(NF - 2); exit !($5 > 0 && d < 0.003 && d > -0.003) }' limit || fail "the limit does not add up: $(cat limit)"
grep -c '^ [1-5]\. ' limit | grep -q '^[45]$' || fail "the furthest: $(cat limit)"
awk '/^ [1-5]\. / || /: 1\. / { for (i = 1; i < NF; i++) if ($(i + 1) == "ms," && $(i + 2) == "limit" && $i < $(i + 3)) exit 1 }' limit || fail "faster than its limit: $(cat limit)"

# One object a line: the layers' parts add up to the totals, the shares to one, and the instructions to the layers.
"$CONVOY" time lenet --batch 3 --steps 3 --warmup 1 --threads 1 --json >json || fail "time --json fails"
sed 's/.*"layers": \[//; s/\], "instructions".*//' json | sed 's/}, {/\n/g' | sed -n 's/.*"ms": \([0-9.e-]*\), "share": \([0-9.e-]*\),.*/\1 \2/p' >rows
sed 's/.*"instructions": \[//' json | sed 's/}, {/\n/g' | sed -n 's/.*"ms": \([0-9.e-]*\).*/\1/p' >instructions
awk 'NR == FNR { ms += $1; share += $2; rows++; next } { all += $1 } END { exit !(rows > 5 && share > 0.9999 && share < 1.0001 && ms > 0.999 * all && ms < 1.001 * all) }' \
    rows instructions || fail "layers do not add up: $(cat json)"
for field in forward_ms backward_data_ms backward_weights_ms update_ms conv_fc_share peak_share ms_median; do
    grep -q "\"$field\": [0-9]" json || fail "no $field in $(cat json)"
done
grep -q '"name": "conv1", "op": "conv", "output": "3x[0-9x]*", "forward_ms": [0-9.e-]*, "backward_data_ms": 0, ' json || fail "conv1 has a gradient of its source: $(cat json)"
grep -q '"forward_kernel": "' json || fail "no kernels"

"$CONVOY" time lenet --batch 3 --steps 1 --mode forward >forward || fail "forward fails"
grep -q ', backward 0.000 ms ' forward || fail "forward has a backward: $(cat forward)"
cat >job.yaml <<END
model: {layers: [{fc: {channels: 4}}, relu, {fc: {channels: 2}}]}
data: {train: {format: synthetic, shape: [6], targets: 2, samples: 20}}
train: {batch: 10}
END
"$CONVOY" time job.yaml --steps 1 --set train.optimizer=adam >own || fail "a job file fails"
grep -q '^fc1  *fc  *10x4 ' own || fail "no row of fc1: $(cat own)"
# shellcheck disable=SC2086
$MPIEXEC_N 2 "$CONVOY" time lenet --batch 4 --steps 1 --threads 1 >two || fail "time fails on two ranks"
grep -q '^sums over ranks  *allreduce ' two || fail "no row of the sums over ranks: $(cat two)"

"$CONVOY" time lenett >log 2>&1 && fail "an unknown network is accepted"
grep -q "no network 'lenett', did you mean 'lenet'?" log || fail "the network is not named: $(cat log)"
"$CONVOY" time lenet --batch 1,2 >log 2>&1 && fail "a list is accepted"
grep -q 'lists 2 batches, expected one' log || fail "the list is not named: $(cat log)"

# The check: the planned step equals the plain one; forward steps have nothing to check.
"$CONVOY" bench --model lenet --batch 4 --check --against reference --json >check || fail "the check fails: $(cat check)"
grep -q '"agrees": true' check || fail "the plans disagree: $(cat check)"
grep -q '"difference_change": [0-9]' check || fail "no difference: $(cat check)"
"$CONVOY" bench --model lenet --batch 4 --check --mode forward >log 2>&1 && fail "a check of forward steps is accepted"

# The sweep tries every split of the cores that its ranks share, and names the best. If it is started alone, it starts
# its ranks itself.
# shellcheck disable=SC2086
$MPIEXEC_N 2 "$CONVOY" bench --model linear --batch 8 --steps 2 --sweep --json >sweep || fail "the sweep fails"
grep -q '"ranks": 1, ' sweep || fail "the sweep lacks one rank: $(cat sweep)"
grep -q '^{"model": "linear", "batch": 8, "best_ranks": [12], "best_threads": [0-9]*, "best_progress": "[a-z]*", "images_per_s": [0-9.e+]*}$' sweep || fail "no best: $(cat sweep)"
"$CONVOY" bench --model linear --sweep --threads 2 >log 2>&1 && fail "--sweep with --threads is accepted"
CONVOY_MPIEXEC=$MPIEXEC "$CONVOY" bench --model linear --batch 8 --steps 2 --sweep >sweep 2>&1 || fail "the sweep does not start by itself: $(cat sweep)"
grep -q '^best for linear, batch 8: ' sweep || fail "no best: $(cat sweep)"
exit $failed
