#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan
# normalize.sh: data.normalize: auto finds the mean and deviation of the training part only, with the same numbers on
# one rank and on two; they are kept with the run, and test, predict and resume use them, and an exported network does.
# Each column of a table has its own, whatever their number; one that never changes is named. data.balance and data.shuffle:
# window give the same on two ranks as on one.
. "$CONVOY_SOURCE/tests/shell.inc"

cat >job.yaml <<END
model: {layers: [{fc: {channels: 10}}]}
data:
  train: {format: synthetic, samples: 203, shape: [3, 4, 4]}
  val: 20%
  augment: [{scale: 3}, {mean: [-5, 0, 7]}]
  normalize: auto
train: {batch: 16, epochs: 1, optimizer: {name: sgd, lr: 0.01}, precise: true}
log: {every: 1}
END
"$CONVOY" train job.yaml --threads 1 --out one >log 2>&1 || fail "train fails: $(cat log)"
# shellcheck disable=SC2086
$MPIEXEC_N 2 "$CONVOY" train job.yaml --threads 1 --out two >log 2>&1 || fail "train fails on two ranks: $(cat log)"
section() { sed -n '/^  normalize:/,/^  normalize_samples:/p' "$1/job.resolved.yaml"; }
numbers() { section "$1" | grep -v normalize_samples | grep -Eo '[-]?[0-9][0-9.]*(e[-+]?[0-9]+)?' | tr '\n' ' '; }
section one | grep -q mean: || fail "no numbers in the resolved job: $(cat one/job.resolved.yaml)"
[ "$(section one)" = "$(section two)" ] || fail "other numbers on two ranks: $(section one), $(section two)"
state=$(ls -d one/checkpoints/step-*/ | tail -n 1)
grep -rq '"normalize": *{"mean": *\[' "$state" || fail "the checkpoint lacks the numbers: $(ls "$state")"

# With these numbers the training part has mean 0 and standard deviation 1.
# shellcheck disable=SC2046
set -- $(numbers one)
[ $# = 6 ] || fail "expected three means and three deviations, got: $*"
"$CONVOY" train job.yaml --threads 1 --out again --set "data.augment=[{scale: 3}, {mean: [-5, 0, 7]}, {normalize: {mean: [$1, $2, $3], std: [$4, $5, $6]}}]" >log 2>&1 ||
    fail "the numbers given by hand: $(cat log)"
numbers again | tr ' ' '\n' | awk 'NR <= 3 && $1 ^ 2 > 1e-10 { exit 1 } NR > 3 && NF && ($1 - 1) ^ 2 > 1e-8 { exit 1 }' || fail "not mean 0 and deviation 1: $(section again)"

# The same numbers given by hand give the same training. Scores are the same from the run and from weights with the
# resolved job, and a resume finds the numbers again.
last_loss() { grep '"kind": "step"' "$1/metrics.jsonl" | tail -n 1 | sed 's/.*"loss": \([0-9.e-]*\).*/\1/'; }
"$CONVOY" train job.yaml --threads 1 --out given --set "data.normalize={mean: [$1, $2, $3], std: [$4, $5, $6]}" >log 2>&1 || fail "given numbers: $(cat log)"
[ "$(last_loss one)" = "$(last_loss given)" ] || fail "loss $(last_loss one) by itself, $(last_loss given) with the numbers given"
source='{format: synthetic, samples: 11, shape: [3, 4, 4]}'
"$CONVOY" predict one --data "$source" --out a.csv >log 2>&1 || fail "predict fails: $(cat log)"
"$CONVOY" predict one --job job.yaml --data "$source" --out b.csv >log 2>&1 && cmp -s a.csv b.csv || fail "the run with its first job predicts other values: $(cat log)"
"$CONVOY" predict "${state}weights.safetensors" --job one/job.resolved.yaml --data "$source" --out c.csv >log 2>&1 && cmp -s a.csv c.csv || fail "weights alone: $(cat log)"
"$CONVOY" predict "${state}weights.safetensors" --job job.yaml --data "$source" --out d.csv >log 2>&1 && fail "weights without numbers are taken"
grep -q 'data.normalize is auto, but the numbers' log || fail "no cause: $(cat log)"
"$CONVOY" predict one --job job.yaml --set data.normalize=none --data "$source" --out e.csv >log 2>&1 && cmp -s a.csv e.csv && fail "normalize: none is as auto"
"$CONVOY" train job.yaml --threads 1 --out one --resume --set train.epochs=2 >log 2>&1 || fail "resume fails: $(cat log)"
grep -q 'data.normalize' log && fail "the numbers changed with the resume: $(cat log)"
"$CONVOY" train job.yaml --out bad --set data.normalize=always >log 2>&1 && fail "a wrong word is accepted"
grep -q 'neither auto, none nor a map' log || fail "no cause: $(cat log)"

# Other orders, on one rank and on two.
for order in 'data.balance=class' 'data.shuffle=window'; do
    rm -rf one two
    window=$([ "$order" = data.shuffle=window ] && echo '--set data.window=4')
    # shellcheck disable=SC2086
    "$CONVOY" train job.yaml --threads 1 --out one --set "$order" $window >log 2>&1 || fail "$order: $(cat log)"
    # shellcheck disable=SC2086
    $MPIEXEC_N 2 "$CONVOY" train job.yaml --threads 1 --out two --set "$order" $window >log 2>&1 || fail "$order on two ranks: $(cat log)"
    awk -v a="$(last_loss one)" -v b="$(last_loss two)" 'BEGIN { exit !(a > 0 && (a - b) ^ 2 < 1e-8) }' ||
        fail "$order: last loss $(last_loss one) on one rank, $(last_loss two) on two"
done
"$CONVOY" train job.yaml --out bad --set data.window=4 >log 2>&1 && fail "a window without its shuffle is accepted"
grep -q 'data.window goes with data.shuffle: window' log || fail "no cause: $(cat log)"

# Tables: 100 columns of very different units, two of which never change; and 65 numbers, on two ranks.
awk 'BEGIN {
    for (k = 0; k < 100; k++) printf "c%d,", k
    print "label"
    for (i = 0; i < 60; i++) {
        for (k = 0; k < 100; k++) printf "%g,", k % 50 == 3 ? 7.25 : (i * (k % 16 + 1) % 17 + k) * 10 ^ (k % 40 - 20)
        print i % 3
    }
}' >table.csv
cat >table.yaml <<END
model: {layers: [{fc: {name: scores, channels: 3}}]}
data: {train: table.csv, normalize: auto}
train: {batch: 20, epochs: 1, optimizer: {name: sgd, lr: 0.01}}
END
"$CONVOY" train table.yaml --threads 1 --out table >log 2>&1 || fail "train with a table: $(cat log)"
contains log '2 of the 100 columns of x have the same value in all samples (number 3, 53, counted from 0)' || fail "constant columns are not named: $(cat log)"
numbers table | tr ' ' '\n' | awk -v file=table.csv '
    { kept[n++] = $1 }
    END {
        FS = ","
        getline <file
        while ((getline <file) > 0) { for (k = 0; k < 100; k++) { sum[k] += $(k + 1); squares[k] += $(k + 1) ^ 2 } rows++ }
        for (k = 0; k < 100; k++) {
            mean = sum[k] / rows; std = k % 50 == 3 ? 1 : sqrt(squares[k] / rows - mean ^ 2)
            bad += (kept[k] - mean) ^ 2 > 1e-10 * mean ^ 2 || (kept[100 + k] - std) ^ 2 > 1e-10 * std ^ 2
        }
        exit n < 200 || rows != 60 || bad
    }' || fail "not a mean and a deviation for each column: $(section table)"
"$CONVOY" export table table.onnx >log 2>&1 || fail "export of the network of a table: $(cat log)"
for from in table table.onnx; do "$CONVOY" predict $from --data table.csv --out $from.scores.csv >log 2>&1 || fail "predict $from: $(cat log)"; done
cmp -s table.scores.csv table.onnx.scores.csv || fail "the exported network predicts other values"
# shellcheck disable=SC2086
$MPIEXEC_N 2 "$CONVOY" train job.yaml --threads 1 --out long --set data.train.shape=[65] --set data.augment=[] >log 2>&1 || fail "65 numbers on two ranks: $(cat log)"
[ "$(numbers long | wc -w)" = 130 ] || fail "65 numbers on two ranks: $(section long)"
exit $failed
