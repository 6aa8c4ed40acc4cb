#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan onednn3 minimal
# plan.sh: what `convoy plan` prints is what a run then uses; all its formats; groups of weights that match nothing.
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
grep -q 'batch 16 over 1 rank: 16 rows on this rank' table || fail "no head: $(cat table)"
grep -q 'training   batch 8 ' table || fail "no step for the tail: $(cat table)"
grep -q 'forward    batch 10 ' table || fail "no step for validation: $(cat table)"

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
"$CONVOY" plan job.yaml --set train.loss=msee >log 2>&1 && fail "an unknown loss is accepted"
grep -q "no loss 'msee', did you mean 'mse'?" log || fail "the loss is not named: $(cat log)"
"$CONVOY" plan job.yaml --set train.optimizer=adm >log 2>&1 && fail "an unknown optimiser is accepted"
grep -q "no optimiser 'adm', did you mean 'adam'?" log || fail "the optimiser is not named: $(cat log)"
exit $failed
