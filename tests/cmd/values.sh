#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan
# values.sh: numbers that people read or that a network cannot use: inspect --stats has the right digits far from 0, and
# names values that f32 cannot hold; a training names, once and with the cause, inputs and targets that are far from mean
# 0 and deviation 1, the same on two ranks, and says nothing of pictures, masks, one-hot columns and normalised data.
. "$CONVOY_SOURCE/tests/shell.inc"
export LC_ALL=C

# ---- inspect --stats ----
awk 'BEGIN {
    print "pressure,count,small,large,flag,label"
    for (i = 0; i < 500; i++) {
        u = (i * 7919 % 1009) / 1009
        printf "%.4f,%.0f,%.6e,%.6e,1,%d\n", 101325 + 0.17 * u, 2147483600 + i % 50, (u - 0.5) * 1e-30, (1 + u) * 1e30, i % 2
    }
}' >far.csv
"$CONVOY" inspect --stats far.csv >log 2>&1 || fail "inspect fails: $(cat log)"
field() { awk -v row="$1" -v col="$2" '$1 == row && NF >= 5 { print $col; exit }' log; }
near() { awk -v a="$1" -v b="$2" -v t="$3" 'BEGIN { exit !((a - b) ^ 2 <= (t * b) ^ 2) }' || fail "$4: $1, expected $2: $(cat log)"; }
near "$(field 0 3)" 0.0491 0.01 "deviation of 101325"
near "$(field 0 2)" 101325.085 1e-7 "mean of 101325"
near "$(field 2 3)" 2.888e-31 0.01 "deviation of 1e-30"
near "$(field 3 2)" 1.5e30 0.01 "mean of 1e30"
[ "$(field 4 2) $(field 4 3)" = "1 0" ] || fail "a constant: $(cat log)"
[ "$(field 1 2)" = 2147483648 ] || fail "an integer loses digits: $(cat log)"
[ "$(field 0 6)" = pressure ] || fail "no names of columns: $(cat log)"
grep -q 'number 1 of x: values are read as f32, in which numbers near 2.14748e+09 are 256 apart' log || fail "lost differences are not said: $(cat log)"
grep -q 'number 0 of x' log && fail "0.05 of 101325 is said to be lost: $(cat log)"

# ---- training ----
cat >job.yaml <<END
model: {layers: [flatten, {fc: {channels: 2}}]}
data: {train: {format: synthetic, samples: 200, shape: [3, 8, 8], classes: 2}}
train: {batch: 50, epochs: 1, loss: softmax_cross_entropy, optimizer: {name: sgd, lr: 1e-30}}
END
train() { # arguments of convoy; the lines are in `said`
    rm -rf run
    "$CONVOY" train job.yaml --threads 1 --out run "$@" >log 2>&1 || fail "train $*: $(cat log)"
    grep 'is far from mean 0' log >said || :
}
silent() {
    train "$@"
    [ ! -s said ] || fail "$*: a false alarm: $(cat said)"
}
says() { # text, arguments
    text=$1 && shift && train "$@"
    grep -qF "$text" said || fail "$*: no \"$text\": $(cat log)"
}

# 40 pictures of 8 x 8 bytes, and their labels (IDX)
awk 'BEGIN {
    printf "%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c", 0, 0, 8, 3, 0, 0, 0, 40, 0, 0, 0, 8, 0, 0, 0, 8
    for (i = 0; i < 40 * 64; i++) printf "%c", 1 + i * 7919 % 251
}' >a-images-idx3-ubyte
awk 'BEGIN {
    printf "%c%c%c%c%c%c%c%c", 0, 0, 8, 1, 0, 0, 0, 40
    for (i = 0; i < 40; i++) printf "%c", i % 2
}' >a-labels-idx1-ubyte
pictures=data.train=a-images-idx3-ubyte
if [ "$(wc -c <a-images-idx3-ubyte)" = 2576 ] && [ "$(wc -c <a-labels-idx1-ubyte)" = 48 ]; then # this awk writes bytes
    silent --set $pictures
    silent --set $pictures --set 'data.augment=[{normalize: {mean: 0.13, std: 0.31}}]'
    silent --set $pictures --set 'data.augment=[{scale: 1}, {normalize: {mean: 123.7, std: 58.4}}]'
    says 'are in units of 0 to 255, and the values are 0 to 1, because bytes' --set $pictures --set 'data.augment=[{normalize: {mean: 123.7, std: 58.4}}]'
    says 'the values are 0 to 255, and only bytes' --set $pictures --set 'data.augment=[{scale: 1}]'
    silent --set $pictures --set 'data.augment=[{scale: 1}]' --set 'model.layers=[batch_norm, flatten, {fc: {channels: 2}}]'
fi

# a field of about mean 0 and deviation 1, and others made of it
silent
silent --set 'data.augment=[{normalize: {mean: [0.5, 0.4, 0.3], std: [0.2, 0.3, 0.2]}}]'
says 'channel 1 has mean' --set 'data.augment=[{mean: [0, -300, 0]}]'
grep -q 'channel 0\|channel 2' said && fail "channels that fit are named: $(cat said)"
says 'so they are normalised already' --set 'data.augment=[{normalize: {mean: 1000, std: 300}}]'

# a table: 0/1 columns, a rare one, one that is normalised and some of other units
awk 'BEGIN {
    print "is_a,rare,normal,year,income,fixed,out"
    for (i = 0; i < 300; i++) {
        u = (i * 7919 % 1009) / 1009 - 0.5; v = (i * 104729 % 997) / 997 - 0.5
        printf "%d,%d,%.5f,%d,%.2f,273.15,%.2f\n", i % 2, i % 150 == 7, 3.4 * u, 2000 + i % 20, 1e6 + 3e5 * v, 2e6 + 1e5 * u
    }
}' >table.csv
cat >job.yaml <<END
model: {layers: [{fc: {channels: 1}}]}
data: {train: {path: table.csv, y: out}}
train: {batch: 50, epochs: 1, loss: mse, optimizer: {name: sgd, lr: 1e-30}}
END
train
[ "$(wc -l <said)" = 2 ] || fail "expected a line about x and one about y: $(cat log)"
grep -q 'column year has mean 2009.* column income has mean .* column fixed is 273.15 in all of the 256 samples' said || fail "not all columns: $(cat said)"
grep -qE 'column (is_a|rare|normal)' said && fail "a column that fits is named: $(cat said)"
grep -q 'y is far from .*data.normalize_targets: auto' said || fail "the target is not named: $(cat said)"
cp said one
# shellcheck disable=SC2086
$MPIEXEC_N 2 "$CONVOY" train job.yaml --threads 1 --out two >log 2>&1 || fail "two ranks: $(cat log)"
grep 'is far from mean 0' log | cmp -s - one || fail "two ranks say something else: $(cat log)"
"$CONVOY" train job.yaml --threads 1 --out run --resume --set train.epochs=2 >log 2>&1 || fail "resume: $(cat log)"
grep -q 'is far from' log && fail "a resume says it again: $(cat log)"
auto='--set data.normalize=auto --set data.normalize_targets=auto'
# shellcheck disable=SC2086
silent $auto
"$CONVOY" predict run --data table.csv --out p.csv >log 2>&1 || fail "predict: $(cat log)"
grep -q 'is far from' log && fail "predict: a false alarm: $(cat log)"
says 'the mean and std of data.normalize_targets are not those' --set data.normalize=auto --set 'data.normalize_targets={mean: 2000, std: 100}'
# values that are normalised in the file already
cut -d, -f3,7 table.csv >normal.csv
already() { "$1" ${2:+"$2"} --set data.train.path=normal.csv --set data.normalize_targets=auto --set "data.normalize={mean: $3, std: $4}"; }
already says 'so they are normalised already' 0.5 0.2
already silent '' 0.5 0.5
# and its columns given another order, or a variance
normal() { silent --set data.normalize_targets=auto --set "data.normalize={mean: [0, 0, 0, $1], std: [1, 1, 1, $2]}"; }
normal '2009, 1000000, 273.15' '6, 90000, 1'
says 'in another order' --set data.normalize_targets=auto --set 'data.normalize={mean: [0, 0, 0, 1000000, 2009, 273.15], std: [1, 1, 1, 90000, 6, 1]}'
says 'is about the variance of the values' --set data.normalize_targets=auto --set 'data.normalize={mean: [0, 0, 0, 2009, 1000000, 273.15], std: [1, 1, 1, 6, 7.5e9, 1]}'

# times in seconds, of which f32 keeps multiples of 128: normalising them does not bring the others back
awk -F, -v OFS=, 'NR > 1 { $3 = 1700000000 + NR } 1' table.csv >times.csv
# shellcheck disable=SC2086
silent $auto --set data.train.path=times.csv
grep -q 'data.train: 1 of 6 numbers of x lose digits: .*near 1.7e+09 are 128 apart' log || fail "lost differences are not said: $(cat log)"

# validation data in other units than those of the training, and a prediction from them
awk -F, -v OFS=, 'NR > 1 { $4 *= 10 } 1' table.csv >other.csv
# shellcheck disable=SC2086
says 'data.val: x is far' $auto --set data.val.path=other.csv --set data.val.y=out
"$CONVOY" predict run --data other.csv --out p.csv --force >log 2>&1 || fail "predict: $(cat log)"
grep -q 'other.csv: x is far from mean 0' log || fail "predict takes other units: $(cat log)"
exit $failed
