#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan minimal
# predict.sh: outputs, probabilities and classes, with and without header and names of samples, as .csv and .npy; the
# same bits on one rank and on three, and from the single file of export in an empty folder; a bad sample has no answer;
# a path alone is read as the training data were, with targets and without.
. "$CONVOY_SOURCE/tests/shell.inc"

cat >job.yaml <<END
model: {layers: [{conv: {channels: 4, kernel: 3}}, batch_norm, relu, {fc: {channels: 3}}]}
data:
  train: {format: synthetic, samples: 90, shape: [3, 6, 6], classes: 3}
  normalize: auto
train: {batch: 16, epochs: 1, optimizer: {name: sgd, lr: 0.05}}
END
source='{format: synthetic, samples: 50, shape: [3, 6, 6], classes: 3, seed: 7}'
"$CONVOY" train job.yaml --threads 1 --out run >log 2>&1 || fail "train fails: $(cat log)"

predict() { "$CONVOY" predict "$@" --threads 1 --data "$source" >log 2>&1 || fail "predict $*: $(cat log)"; }
predict run --out outputs.csv
predict run --out probabilities.csv --probabilities
predict run --out classes.csv --top 3 --header --names
predict run --out one.csv --classes
[ "$(wc -l <outputs.csv)" = 50 ] && [ "$(wc -l <classes.csv)" = 51 ] || fail "a row for each sample is expected"

# Probabilities are the softmax of the outputs; classes are sorted by them.
paste -d, outputs.csv probabilities.csv | awk -F, '{
    sum = exp($1) + exp($2) + exp($3)
    for (i = 1; i <= 3; i++) if ((exp($i) / sum - $(i + 3)) ^ 2 > 1e-12) exit 1
}' || fail "probabilities are not the softmax of the outputs"
head -n 1 classes.csv | grep -qx 'sample,class_1,probability_1,class_2,probability_2,class_3,probability_3' || fail "header: $(head -n 1 classes.csv)"
tail -n +2 classes.csv | paste -d, - probabilities.csv | awk -F, '
    NF != 10 || $3 < $5 || $5 < $7 || ($3 + $5 + $7 - 1) ^ 2 > 1e-10 { exit 1 }
    { for (i = 2; i <= 6; i += 2) if (($(i + 1) - $(8 + $i)) ^ 2 > 1e-12) exit 1 }' || fail "classes: $(head -n 3 classes.csv)"
[ "$(tail -n +2 classes.csv | cut -d, -f2,3)" = "$(cat one.csv)" ] || fail "the best class alone differs"
sed -n 2p classes.csv | grep -q 'sample 0' || fail "no name of the first sample: $(sed -n 2p classes.csv)"

# Bits: .npy on one rank and on three; an exported file alone; the checkpoint.
predict run --out a.npy
# shellcheck disable=SC2086
$MPIEXEC_N 3 "$CONVOY" predict run --threads 1 --data "$source" --out b.npy >log 2>&1 || fail "on three ranks: $(cat log)"
cmp a.npy b.npy || fail "three ranks give other bits"
"$CONVOY" export run model.safetensors >log 2>&1 || fail "export fails: $(cat log)"
mkdir elsewhere && mv model.safetensors elsewhere
(cd elsewhere && predict model.safetensors --out ../c.npy)
cmp a.npy c.npy || fail "the exported file gives other bits"
predict "$(ls -d run/checkpoints/step-* | tail -n 1)" --out d.npy
cmp a.npy d.npy || fail "the checkpoint gives other bits"
(cd elsewhere && "$CONVOY" test model.safetensors --threads 1 --data "$source" >../score 2>&1) || fail "test of the exported file: $(cat score)"
"$CONVOY" test run --threads 1 --data "$source" >score_run 2>&1 || fail "test fails: $(cat score_run)"
[ "$(grep accuracy score)" = "$(grep accuracy score_run)" ] || fail "other scores: $(cat score score_run)"

# One checkpoint is scored as the run; its scores are printed only.
last=$(ls -d run/checkpoints/step-* | tail -n 1)
cp run/test.json kept.json
for target in "$last" "$last/"; do
    # shellcheck disable=SC2086
    $MPIEXEC_N 2 "$CONVOY" test "$target" --threads 1 --data "$source" >score_set 2>&1 || fail "test of a checkpoint: $(cat score_set)"
    [ "$(grep accuracy score_set)" = "$(grep accuracy score_run)" ] || fail "other scores: $(cat score_set score_run)"
    grep -q warning score_set && fail "a warning: $(cat score_set)"
done
cmp run/test.json kept.json || fail "the scores of a checkpoint are taken for those of the run"
cp -r "$last" elsewhere && "$CONVOY" test elsewhere/step-* --threads 1 --data "$source" --json >score 2>&1 && grep -q '"accuracy"' score ||
    fail "test of a checkpoint alone: $(cat score)"
mkdir empty

# A run's folder that cannot be written: the scores are printed. A folder in the place of a file is in the way of root, too.
cp -r run fixed && rm -f fixed/test.json fixed/report.html && mkdir fixed/test.json fixed/report.html
"$CONVOY" test fixed --threads 1 --data "$source" >score 2>log || fail "no scores without test.json: $(cat log)"
[ "$(grep accuracy score)" = "$(grep accuracy score_run)" ] || fail "other scores: $(cat score score_run)"
contains log 'fixed/test.json was not renewed' && contains log 'the report was not renewed' || fail "no warning: $(cat log)"
predict run --out classes.npy --top 2
[ "$(wc -c <classes.npy)" = $((128 + 50 * 2 * 4)) ] && head -c 128 classes.npy | grep -aq "'<i4'.*(50, 2)" || fail "classes.npy: $(head -c 128 classes.npy)"

# A file is replaced only by --force, also the one that the samples are read from.
cp a.npy kept.npy
for n in 1 2; do
    # shellcheck disable=SC2086
    $MPIEXEC_N $n "$CONVOY" predict run --threads 1 --data a.npy --out a.npy >log 2>&1 && fail "a file is overwritten on $n ranks"
    # One line at most: the launcher may end a rank because another one has left first.
    said=$(grep -c 'a.npy exists already: choose another name, or replace it with --force' log)
    { [ "$said" = 1 ] || { [ $n = 2 ] && [ "$said" = 0 ]; }; } || fail "no cause on $n ranks: $(cat log)"
done
cmp a.npy kept.npy || fail "a refused predict changes the file"
predict run --out a.npy --classes --force
cmp a.npy kept.npy >/dev/null && fail "--force does not replace the file"

# A sample that cannot be read: an error, or no answer in its row.
awk 'BEGIN { for (s = 0; s < 8; s++) { for (i = 0; i < 108; i++) printf "%s,", s == 5 && i == 3 ? "nan" : i % 7; print s % 3 } }' >bad.csv
bad='{path: bad.csv, label: 108, header: no, shape: [3, 6, 6]}'
"$CONVOY" predict run --data "$bad" --out bad.npy >log 2>&1 && fail "a sample with nan is accepted"
[ ! -e bad.npy ] || fail "a file is left after a fault"
"$CONVOY" predict run --data "$bad" --out rows.csv --names --top 2 --job job.yaml --set data.on_bad_sample=skip >log 2>&1 || fail "skip: $(cat log)"
grep -q 'were skipped' log || fail "no warning: $(cat log)"
sed -n 6p rows.csv | grep -q ',,nan,,nan$' || fail "the row of a bad sample: $(cat rows.csv)"
[ "$(grep -c nan rows.csv)" = 1 ] || fail "more than one row without answer: $(cat rows.csv)"

refused() {
    want=$1
    shift
    "$@" >log 2>&1 && fail "accepted: $*"
    grep -q -- "$want" log || fail "$*: $(cat log)"
}
refused 'empty is neither a run folder nor a checkpoint' "$CONVOY" test empty --data "$source"
refused 'net.onnx is an ONNX file, which has neither a loss nor metrics' "$CONVOY" test net.onnx --data "$source"
refused 'only a .csv file has a header' "$CONVOY" predict run --data "$source" --out no.npy --header
refused 'the 4 best of 3 classes' "$CONVOY" predict run --data "$source" --out no.csv --top 4
refused 'leave --probabilities out' "$CONVOY" predict run --data "$source" --out no.csv --classes --probabilities
refused 'samples are 3x7x7, the network was trained on 3x6x6' "$CONVOY" predict run --data '{format: synthetic, samples: 5, shape: [3, 7, 7], classes: 3}' --out no.csv
# Several outputs: the columns of one after those of the other.
cat >two.yaml <<END
model: {layers: [{fc: {name: a, channels: 3}}, relu, {fc: {name: b, channels: 2}}]}
data: {train: {path: train.csv, y: [t, u], drop: [id]}}
train: {batch: 4, epochs: 1, optimizer: {name: sgd, lr: 0.01}}
END
awk 'BEGIN { print "id,p,t,q,u"; for (i = 0; i < 20; i++) print 100 + i "," i % 3 "," i % 5 "," i % 7 "," i % 2 }' >train.csv
cut -d, -f1,2,4 train.csv >plain.csv
"$CONVOY" train two.yaml --threads 1 --out two >log 2>&1 || fail "train on two targets fails: $(cat log)"
table() { "$CONVOY" predict two --threads 1 "$@" >log 2>&1 || fail "predict two $*: $(cat log)"; }
map='{path: train.csv, y: [t, u], drop: [id]}'
table --data "$map" --outputs b,a --header --out both.csv
[ "$(head -n 1 both.csv)" = b_0,b_1,a_0,a_1,a_2 ] || fail "header: $(head -n 1 both.csv)"
table --data "$map" --outputs a --out a.csv
table --data "$map" --out b.csv
[ "$(tail -n +2 both.csv)" = "$(paste -d, b.csv a.csv)" ] || fail "both outputs differ from one after the other"

# A path alone is read with the names and columns of the training, and targets may be missing.
table --data train.csv --out path.csv
cmp b.csv path.csv || fail "a path with targets gives other bits"
table --data plain.csv --out path.csv --force
cmp b.csv path.csv || fail "a path without targets gives other bits"
table --data '[plain.csv, plain.csv]' --out path.csv --force
cat b.csv b.csv | cmp - path.csv || fail "a list of paths gives other bits"
refused 'no such file' "$CONVOY" predict two --data nowhere.csv --out no.csv

cat >numbers.yaml <<END
model: {layers: [{fc: {channels: 1}}]}
data: {train: {format: synthetic, samples: 32, shape: [3, 6, 6], targets: 1}}
train: {batch: 16, epochs: 1, optimizer: {name: sgd, lr: 0.001}}
END
"$CONVOY" train numbers.yaml --threads 1 --out numbers >log 2>&1 || fail "train on numbers fails: $(cat log)"
refused 'was trained on numbers' "$CONVOY" predict numbers --data '{format: synthetic, samples: 5, shape: [3, 6, 6], targets: 1}' --out no.csv --classes
exit $failed
