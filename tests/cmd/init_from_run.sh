#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan
# init_from_run.sh: train.init compares the new job and its data with what the weights were trained on: the order of
# columns and classes and the normalisation, if the job has none, are taken over, and one line says each other
# difference. A resume of the run goes on like that, and a file of weights or an ONNX file is a start as a run is.
. "$CONVOY_SOURCE/tests/shell.inc"

awk 'BEGIN { srand(4); print "a,b,y"
    for (i = 0; i < 100; i++) { a = rand(); b = rand(); printf "%.4f,%.4f,%.4f\n", 1000 + 10 * a, 1000 - 10 * b, 500 + 2 * a - b } }' >ab.csv
awk -F, '{ print $3 "," $2 "," $1 }' ab.csv >yba.csv
sed '1s/a,b/a,c/' ab.csv >ac.csv
awk 'BEGIN { split("ant bee cat", c, " "); print "a,b,label"; for (i = 0; i < 60; i++) printf "%d,%d,%s\n", i % 3, -(i % 3), c[i % 3 + 1] }' >abc.csv
sed 's/ant/dog/' abc.csv >bcd.csv
grep -v ant abc.csv >bc.csv
cat >job.yaml <<'END'
model: {layers: [{fc: {name: out, channels: 1}}]}
data: {train: {path: ab.csv, y: y}, val: {path: ab.csv, y: y}, normalize: auto, normalize_targets: auto}
train: {batch: 20, epochs: 40, optimizer: {name: adam, lr: 0.1}, metrics: [rmse]}
END
sed 's/channels: 1/channels: 3/; s/{path: ab.csv, y: y}/abc.csv/g; s/, normalize_targets: auto//; s/rmse/accuracy/' job.yaml >classes.yaml
"$CONVOY" train job.yaml --threads 1 --out run >log 2>&1 || fail "train: $(cat log)"
"$CONVOY" train classes.yaml --threads 1 --out classes >log 2>&1 || fail "train with classes: $(cat log)"

# begin JOB NAME OPTION ..: trains a little, at a rate that leaves the weights as they are.
begin() {
    job=$1 out=$2
    shift 2
    "$CONVOY" train "$job" --threads 1 --out "$out" --set train.epochs=1 --set train.optimizer.lr=1e-9 "$@" >log 2>&1
}
is_good() { grep 'epoch [0-9]*:' "$1" | awk '{ good = $NF < 0.01 } END { exit !good }'; }
nothing='--set data.normalize= --set data.normalize_targets='

# The same job: there is nothing to say.
begin job.yaml same --set train.init=run && is_good log || fail "the same job: $(cat log)"
grep -q 'was trained' log && fail "a difference is said where there is none: $(cat log)"
# A job without normalisation takes it over, and the run keeps it.
# shellcheck disable=SC2086
begin job.yaml forgot $nothing --set train.init=run && is_good log || fail "normalisation is not taken over: $(cat log)"
contains log 'data.normalize is not given: that of run, which the weights were trained with, is taken over, {mean: [100' || fail "normalize is taken silently: $(cat log)"
contains log 'data.normalize_targets is not given: that of run' || fail "normalize_targets is taken silently: $(cat log)"
"$CONVOY" predict forgot --data ab.csv --out a.csv >log 2>&1 || fail "predict: $(cat log)"
# shellcheck disable=SC2086
"$CONVOY" predict forgot --job job.yaml $nothing --data ab.csv --out b.csv >log 2>&1 && cmp -s a.csv b.csv || fail "with its first job the run predicts other values: $(cat log)"
# shellcheck disable=SC2086
"$CONVOY" train job.yaml --threads 1 --out forgot --resume $nothing --set train.init=run --set train.epochs=2 --set train.optimizer.lr=1e-9 >log 2>&1 && is_good log ||
    fail "a resume loses the normalisation: $(cat log)"
# shellcheck disable=SC2086
begin job.yaml file $nothing --set "train.init=$(echo run/checkpoints/step-*200/weights.safetensors)" && is_good log || fail "from a file: $(cat log)"
if "$CONVOY" export run run.onnx >log 2>&1; then
    sed 's/^model:.*/model: {onnx: run.onnx}/' job.yaml >onnx.yaml
    # shellcheck disable=SC2086
    begin onnx.yaml onnx $nothing && is_good log || fail "from an ONNX file: $(cat log)"
    contains log 'that of the imported network, which' || fail "from an ONNX file, silently: $(cat log)"
else
    contains log 'is not part of this build' || fail "export: $(cat log)"
fi

# Columns in another order are brought into that of the run, which a resume does, too; others are named.
yba='data.train={path: yba.csv, y: y}'
begin job.yaml order --set train.init=run --set "$yba" && is_good log || fail "columns in another order: $(cat log)"
contains log 'yba.csv: its columns are brought into the order of run: a, b' || fail "the order is changed silently: $(cat log)"
"$CONVOY" train job.yaml --threads 1 --out order --resume --set "$yba" --set train.init=run --set train.epochs=2 --set train.optimizer.lr=1e-9 >log 2>&1 && is_good log ||
    fail "a resume of it: $(cat log)"
begin job.yaml other --set train.init=run --set 'data.train={path: ac.csv, y: y}' --set data.val= || fail "other columns: $(cat log)"
contains log 'train.init: run was trained on the columns a, b, and those of this job are a, c' || fail "other columns, silently: $(cat log)"

# What the job says itself is kept, and said.
begin job.yaml none --set train.init=run --set data.normalize=none --set data.normalize_targets=none || fail "none: $(cat log)"
contains log 'train.init: run was trained on x normalised as (x - 100' || fail "another normalisation, silently: $(cat log)"
contains log 'train.init: run was trained with data.normalize_targets: {mean: [500' || fail "other units of the target, silently: $(cat log)"
begin job.yaml missing --set train.init=run --set 'data.train={path: ab.csv, y: y, missing: 0}' || fail "missing: $(cat log)"
contains log 'with `missing: none` in data.train, and this job has missing: 0' || fail "another rule for missing numbers, silently: $(cat log)"
sed 1d ab.csv >plain.csv
begin job.yaml unnamed --set train.init=run --set 'data.train={path: plain.csv, y: 3}' --set 'data.val={path: plain.csv, y: 3}' || fail "no header: $(cat log)"
contains log 'was trained on the columns a, b, and the data of this job have no names: they are taken in that order' || fail "columns without names, silently: $(cat log)"
# Other steps before the normalisation: its numbers would mean something else, so they are not taken over.
begin job.yaml scaled --set train.init=run --set data.normalize= --set 'data.augment=[{scale: 0.1}]' || fail "scale: $(cat log)"
contains log 'data.normalize is not given' && fail "numbers of other units are taken over: $(cat log)"
contains log '(x - 100' && contains log 'and this job makes it (x - 0) * 0.1 (number 0 of x)' || fail "another scale, silently: $(cat log)"

# Classes: some of those of the run keep their numbers, others are named. A layer for fewer classes is begun anew.
begin classes.yaml fewer --set train.init=classes --set data.train=bc.csv --set data.normalize= || fail "fewer classes: $(cat log)"
contains log 'bc.csv: its classes get the numbers that they have in classes: ant, bee, cat' || fail "fewer classes, silently: $(cat log)"
grep -q 'val accuracy 1.0000' log || fail "classes are mistaken: $(cat log)"
sed 's/channels: 3/channels: 2/' classes.yaml >pair.yaml
begin pair.yaml pair --set train.init=classes --set data.train=bc.csv --set data.val=bc.csv && fail "two outputs for the three classes of the weights"
contains log 'the classes are those of classes, which its last layer has weights for' && contains log 'gives 2 outputs for each sample, but the data have 3 classes' || fail "no cause of three classes: $(cat log)"
begin classes.yaml others --set train.init=classes --set data.train=bcd.csv --set data.val=bcd.csv || fail "other classes: $(cat log)"
contains log 'train.init: classes was trained on the classes ant, bee, cat, and those of this job are bee, cat, dog' || fail "other classes, silently: $(cat log)"
# A job that is given for the scores does not change which classes the network has.
"$CONVOY" test classes --job classes.yaml --threads 1 --data bc.csv >log 2>&1 || fail "scores with the job: $(cat log)"
awk '$1 == "accuracy" { good = $2 == 1 } END { exit !good }' log || fail "classes are mistaken with the job: $(cat log)"
# Columns that a layer cannot take are named beside the shapes that differ.
cut -d, -f1,3 abc.csv >al.csv
begin classes.yaml lacking --set train.init=classes --set data.train=al.csv --set data.val= && fail "a network of two columns begins with one"
contains log 'was trained on the columns a, b, and those of this job are a' && contains log 'out.weight is f32 3x1 in this job' || fail "no cause: $(cat log)"
sed 's/{name: out, channels: 3}/{name: body, channels: 4}}, {fc: {name: head, channels: 3}/' classes.yaml >deep.yaml
begin deep.yaml deep || fail "a deeper network: $(cat log)"
sed 's/channels: 3/channels: 2/' deep.yaml >two.yaml
begin two.yaml two --set 'train.init={from: deep, skip: [head.*]}' --set data.train=bc.csv --set data.val=bc.csv || fail "a new last layer: $(cat log)"
contains log 'train.init deep: 2 of 4 variables are taken, 2 skipped' || fail "a new last layer: $(cat log)"

# Weights that say nothing of their data, and a description that cannot be read.
begin job.yaml old --set "train.init=$CONVOY_SOURCE/tests/data/files/version-0.1/sync" && fail "weights of another network are taken"
weights=$(echo run/checkpoints/step-*200/weights.safetensors)
sed 's/"convoy\.network"/"convoy.networK"/' "$weights" >old.safetensors
begin job.yaml plain --set train.init=old.safetensors || fail "weights without a description: $(cat log)"
contains log 'old.safetensors does not say on which data its weights were trained' || fail "nothing is said: $(cat log)"
sed 's/\\"layout\\": *1/\\"layout\\": 9/; s/\\"layout\\":1/\\"layout\\":9/' "$weights" >later.safetensors
begin job.yaml later --set train.init=later.safetensors || fail "a later description: $(cat log)"
contains log 'its layout is 9' && contains log 'so nothing is compared' || fail "nothing is said: $(cat log)"
exit $failed
