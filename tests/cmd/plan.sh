#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan onednn3 minimal
# plan.sh: what `convoy plan` prints is what a run then uses; all its formats; groups of weights that match nothing; the
# process grids of ranks that do not exist, and why some cannot be used.
. "$CONVOY_SOURCE/tests/shell.inc"

cat >job.yaml <<END
model: cifar-convnet
data:
  train: {format: synthetic, samples: 50, shape: [3, 12, 12]}
  val: 20%
train: {batch: 16, steps: 3, groups: [{match: "conv1.*", frozen: true}]}
END
"$CONVOY" plan job.yaml --threads 1 >table || fail "plan fails"
grep -q '^conv1  *conv  *16x32x12x12  *2,432 ' table || fail "no line for conv1: $(cat table)"
# A long name widens its column, so that all columns are below their heads.
"$CONVOY" plan job.yaml --threads 1 --set 'model={layers: [{fc: {name: a_layer_with_a_very_long_name, channels: 10}}]}' \
    --set train.groups= >wide || fail "plan fails: $(cat wide)"
awk '/^layer / { at = index($0, "operator") } /^a_layer/ { exit !(at > 20 && index($0, " fc ") == at - 1) }' wide ||
    fail "columns are not below their heads: $(cat wide)"
grep -q 'batch 16 over 1 rank: 16 rows on this rank' table || fail "no head: $(cat table)"
grep -q 'training   batch 8 ' table || fail "no step for the tail: $(cat table)"
grep -q 'forward    batch 10 ' table || fail "no step for validation: $(cat table)"

# Layers that lead nowhere are named, and so is a single one.
branch='model={layers: [{conv: {name: one, channels: 4, kernel: 3}}, {gelu: {name: two}}, {conv: {name: three, channels: 2, kernel: 3}}, {fc: {name: out, channels: 10, from: one}}, {tanh: {name: four}}], output: out}'
"$CONVOY" plan job.yaml --threads 1 --set train.groups= --set "$branch" >/dev/null 2>log || fail "plan with a branch fails: $(cat log)"
grep -q 'warning: layers two, three, four do not lead to the output (out) or a loss, and are left out$' log || fail "layers that lead nowhere are not named: $(cat log)"
branch='model={layers: [relu: {name: one}, fc: {name: out, channels: 10}, tanh: {name: last, from: one}], output: out}'
"$CONVOY" train job.yaml --threads 1 --set train.groups= --set "$branch" >/dev/null 2>log || fail "train with a branch fails: $(cat log)"
grep -q 'warning: layer last does not lead to the output (out) or a loss, and is left out$' log || fail "a layer that leads nowhere is not named: $(cat log)"

# A layer says which of its parameters are trained; a parameter that it does not have is named.
"$CONVOY" plan job.yaml --threads 1 --set train.groups= --set 'model={layers: [{fc: {name: out, channels: 10, trained: [wieght]}}]}' >/dev/null 2>log && fail "an unknown parameter is taken"
grep -q "layer out: .trained. names the parameter 'wieght', which it does not have; its first one is 'weight'" log || fail "the parameter is not named: $(cat log)"
frozen='model={layers: [{fc: {name: one, channels: 10, trained: false}}, {fc: {name: two, channels: 10, trained: [weight]}}]}'
"$CONVOY" train job.yaml --threads 1 --set train.groups= --set "$frozen" --out kept >log 2>&1 || fail "train with constants fails: $(cat log)"
grep -q 'trained: \[weight\]' kept/job.resolved.yaml || fail "the job of the run lacks the parameters that are trained: $(cat kept/job.resolved.yaml)"
"$CONVOY" train job.yaml --threads 1 --set train.groups= --set 'model={layers: [{fc: {name: one, channels: 10, trained: false}}]}' >/dev/null 2>log && fail "a network without a parameter is trained"
grep -q 'no trained variable leads to the loss' log || fail "a network without a parameter: $(cat log)"

# To the byte: the arena in the table, in plan.json and of the run that follows.
arena=$(sed -n 's/^  arena: .* \([0-9,]*\)$/\1/p' table | tr -d ,)
"$CONVOY" plan job.yaml --threads 1 --format json >plan.json || fail "plan --format json fails"
grep -q "\"arena_bytes\": $arena," plan.json || fail "the table has $arena bytes, plan.json another number"
"$CONVOY" train job.yaml --threads 1 --out run >log 2>&1 || fail "the run fails: $(cat log)"
grep -q "\"arena_bytes\": $arena," run/plan.json || fail "the run's plan.json has another arena than $arena"

"$CONVOY" plan job.yaml --format dot | grep -q '^digraph' || fail "no dot"
"$CONVOY" plan job.yaml --format text | grep -q 'conv1' || fail "no text"
"$CONVOY" plan job.yaml --format explain | grep -q 'conv1' || fail "no explanation"
"$CONVOY" plan job.yaml --plan run/plan.json >/dev/null || fail "a plan file is refused"
"$CONVOY" plan job.yaml --plan job.yaml >log 2>&1 && fail "a job is taken for a plan"

# A network of the zoo: the same as the step of bench, to the byte.
arena=$("$CONVOY" plan cifar-convnet --batch 6 --threads 1 | sed -n 's/^  arena: .* \([0-9,]*\)$/\1/p' | tr -d ,)
"$CONVOY" bench --model cifar-convnet --batch 6 --threads 1 --steps 1 --json | grep -q "\"arena_bytes\": $arena," || fail "bench has another arena than $arena"
"$CONVOY" plan cifar-convnet --batch 6 --mode forward --planning estimate --explain | grep -q 'ip2' || fail "no explanation of a network's forward step"
"$CONVOY" plan cifar-convnet --set train.batch=6 | grep -q '^batch 6 over 1 rank' || fail "--set with a network sets nothing"
# A network has no job file, so messages name the option.
"$CONVOY" plan cifar-convnet --options 'filtres: 3' 2>log && fail "an unknown option of a network is taken"
grep -q 'error: --options: cifar-convnet: unknown key "filtres"' log || fail "--options is not named: $(cat log)"
# shellcheck disable=SC2086
$MPIEXEC_N 3 "$CONVOY" plan cifar-convnet --batch 2 >log 2>&1 && fail "a batch below the number of ranks is taken"
grep -q 'error: --batch is 2, but there are 3 ranks' log || fail "--batch is not named: $(cat log)"
"$CONVOY" plan job.yaml --batch 6 2>log && fail "--batch with a job is taken"
grep -q 'train.batch' log || fail "--batch with a job: $(cat log)"

# shellcheck disable=SC2086
$MPIEXEC_N 3 "$CONVOY" plan job.yaml --threads 1 >three || fail "plan fails on three ranks"
grep -q 'batch 16 over 3 ranks: 5 rows on this rank' three || fail "three ranks: $(cat three)"

"$CONVOY" plan job.yaml --set 'train.groups=[{match: "cnv*", lr_mult: 2}]' >log 2>&1 && fail "a group that matches nothing is accepted"
grep -q "no weight is called 'cnv\*'" log || fail "the group is not named: $(cat log)"
refused "'conv1.bias' gets no weight: groups before it take all that it matches, '*' the first" "$CONVOY" plan job.yaml --set 'train.groups=[{match: "*", lr_mult: 2}, {match: conv1.bias, frozen: true}]'
refused "'ip1.weight' gets no weight: groups before it take all that it matches, 'ip*, *.bias' the first" "$CONVOY" plan job.yaml --set 'train.groups=[{match: conv*}, {match: "ip*, *.bias"}, {match: ip1.weight}]'
"$CONVOY" plan job.yaml --threads 1 --set 'train.groups=[{match: "*.bias"}, {match: "conv*, ip*"}]' >log 2>&1 || fail "a group that loses some of its weights is refused: $(cat log)"
"$CONVOY" plan job.yaml --set train.loss=msee >log 2>&1 && fail "an unknown loss is accepted"
grep -q "no loss 'msee', did you mean 'mse'?" log || fail "the loss is not named: $(cat log)"
"$CONVOY" plan job.yaml --set train.optimizer=adm >log 2>&1 && fail "an unknown optimiser is accepted"
grep -q "no optimiser 'adm', did you mean 'adam'?" log || fail "the optimiser is not named: $(cat log)"

# ---- process grids of ranks that do not exist ----
"$CONVOY" plan job.yaml --threads 1 --ranks 2 --node-ranks 2 >grids || fail "plan --ranks fails"
grep -q '^data 2 ' grids || fail "no row for data 2: $(cat grids)"
grep -q '^tensor 2 ' grids || fail "no row for tensor 2: $(cat grids)"
grep -q '^pipeline 2, [0-9]* micro-batches ' grids || fail "no row for pipeline 2: $(cat grids)"
grep -q '^best: .* ms a step, of which [0-9]* % is computing' grids || fail "no sentence of why: $(cat grids)"
grep -q '^rough: some kernels have no measured time' grids || fail "estimates are not called rough: $(cat grids)"
"$CONVOY" plan job.yaml --threads 1 --ranks 3 --set 'model={layers: [{fc: {channels: 2}}]}' --set data.train.classes=2 --set train.groups= >grids || fail "plan --ranks with two channels fails"
grep -q '^  tensor 3:$' grids && grep -q '^tensor 3 (auto) ' grids || fail "two channels on three ranks are not refused: $(cat grids)"
# To the byte, the memory is that of the plan of real ranks. With a pipeline it is that of the largest stage, and the
# plan of real ranks prints the first one.
for grid in 'parallel={pipeline: 1}' 'parallel={pipeline: 2}'; do
    # shellcheck disable=SC2086
    real=$($MPIEXEC_N 2 "$CONVOY" plan cifar-convnet --batch 16 --threads 1 --set "$grid" | sed -n 's/^  total *\([0-9,]*\)$/\1/p' | tr -d ,)
    "$CONVOY" plan cifar-convnet --batch 16 --threads 1 --ranks 2 --set "$grid" --json >grids
    need=$(sed -n 's/.*"need_bytes": \([0-9]*\).*/\1/p' grids | head -n 1)
    case $grid in
    *1*) [ "$need" = "$real" ] ;;
    *) [ "$need" -ge "$real" ] && [ "$need" -lt $((2 * real)) ] ;;
    esac || fail "$grid: a rank of two needs $real bytes, the search says $(cat grids)"
done
$MPIEXEC_N 2 "$CONVOY" plan cifar-convnet --batch 16 --threads 1 --set 'parallel={tensor: 2}' | grep -q '^batch 16 over 1 rank of the data axis of 2 ranks: 16 rows' ||
    fail "the batch of a grid is described otherwise"
# A job with a grid: only this one.
"$CONVOY" plan job.yaml --threads 1 --ranks 2 --set parallel.pipeline=2 --set train.accumulate=4 --json >grids || fail "the job's own grid is not predicted"
[ "$(grep -o '"grid"' grids | wc -l)" = 1 ] || fail "more than the job's own grid: $(cat grids)"
grep -q '"grid": "pipeline 2, 4 micro-batches"' grids || fail "another grid than the job's: $(cat grids)"
"$CONVOY" plan cifar-convnet --batch 16 --threads 1 --ranks 4 --link 50us,1gbit --shown 1 | grep -q '1 on each node' || fail "--link does not separate the nodes"
# The link decides: with a slow one, exchanging gradients costs more.
fast=$("$CONVOY" plan cifar-convnet --batch 16 --threads 1 --ranks 2 --set parallel.pipeline=1 --link 1us,10GB/s --json | sed 's/.*"step_ms": \([0-9]*\).*/\1/')
slow=$("$CONVOY" plan cifar-convnet --batch 16 --threads 1 --ranks 2 --set parallel.pipeline=1 --link 1ms,10mbit --json | sed 's/.*"step_ms": \([0-9]*\).*/\1/')
[ "$slow" -gt "$fast" ] || fail "a slow link takes $slow ms, a fast one $fast ms"
"$CONVOY" plan job.yaml --ranks 2 --memory 1K 2>log && fail "a grid fits into 1 KiB"
grep -q 'no grid of 2 ranks fits into .* the least memory is .* MiB, with ' log || fail "the least memory is not named: $(cat log)"
for wrong in '--ranks 0' '--ranks two' '--ranks 2 --memory much' '--ranks 2 --link 1gbit' '--memory 1G'; do
    # shellcheck disable=SC2086
    "$CONVOY" plan job.yaml $wrong >/dev/null 2>log && fail "$wrong is taken"
    grep -q 'expected\|give --ranks' log || fail "$wrong: $(cat log)"
done
"$CONVOY" plan job.yaml --ranks 3 --set parallel.pipeline=2 2>log && fail "a pipeline of 2 on 3 ranks is taken"
grep -q 'must be a multiple' log || fail "pipeline 2 on 3 ranks: $(cat log)"

# `parallel: auto` on real ranks takes a grid, and compares the prediction with the first steps.
# shellcheck disable=SC2086
$MPIEXEC_N 2 "$CONVOY" train job.yaml --threads 1 --set parallel=auto --set train.steps=14 --out auto >log 2>&1 || fail "parallel: auto fails: $(cat log)"
grep -q 'parallel: auto takes .*, the fastest of [0-9]* grids' log || fail "the choice is not logged: $(cat log)"
grep -q 'parallel: auto: a step takes .* ms, and .* ms were predicted' log || fail "the prediction is not compared: $(cat log)"
grep -q '"kind": "forecast", .*"seconds_predicted": [0-9]' auto/metrics.jsonl || fail "no line of the prediction in metrics.jsonl"
# With little memory data parallelism does not fit.
one=$("$CONVOY" plan job.yaml --threads 1 --ranks 2 --set parallel.pipeline=1 --json | sed 's/.*"need_bytes": \([0-9]*\).*/\1/')
train() {
    ranks=$1
    shift
    # shellcheck disable=SC2086
    $MPIEXEC_N "$ranks" "$CONVOY" train job.yaml --threads 1 "$@" >log 2>&1 || fail "$* on $ranks ranks fails: $(cat log)"
}
train 2 --out small --set parallel=auto --set "plan.memory_limit=$((one * 9 / 10))"
grep -q 'parallel: auto takes [pst]' log || fail "within the limit auto takes the data axis: $(cat log)"
# Other ranks go on with the micro-batches of a pipeline.
train 2 --out stages --set 'parallel={pipeline: 2}' --set train.accumulate=4
train 1 --out stages --resume --set parallel=auto --set train.steps=4
train 3 --out stages --resume --set parallel=auto --set train.steps=5
grep -q 'parallel: auto takes .*, 4 micro-batches' log || fail "a resumed run has other micro-batches: $(cat log)"
"$CONVOY" bench job.yaml --set parallel=auto --kernels clock >/dev/null 2>log && fail "a grid is searched for the clock"
grep -q 'parallel is auto, which is not for the kernel clock' log || fail "auto with the clock: $(cat log)"
"$CONVOY" plan job.yaml --set parallel=automatic 2>log && fail "parallel: automatic is taken"
grep -q 'parallel is "automatic", expected auto or a map' log || fail "parallel: automatic: $(cat log)"
exit $failed
