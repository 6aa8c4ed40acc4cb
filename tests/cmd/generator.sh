#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan
# generator.sh: a generator is scored by its samples as a set, in the units of the data; it draws samples without data, the
# same on one rank and on two; its page shows both statistics; an autoencoder is compared with its input; what is wrong is
# named.
. "$CONVOY_SOURCE/tests/shell.inc"
cat >job.yaml <<'Y'
model:
  networks:
    generator:
      inputs: [z]
      layers: [{fc: {channels: 32}}, relu, {fc: {channels: 64}}, {reshape: {shape: [1, 8, 8]}}, tanh]
    discriminator:
      layers: [{conv: {channels: 4, kernel: 3, pad: 1}}, {leaky_relu: {slope: 0.2}}, {fc: {channels: 1}}]
  layers:
  - noise: {name: z, shape: 5, from: x}
  - generator: {name: fake, from: z}
  - discriminator: {name: real, from: x}
  - discriminator: {name: judged, from: fake}
  - constant: {name: yes_real, value: 1, from: real}
  - constant: {name: no, value: 0, from: judged}
  - constant: {name: yes, value: 1, from: judged}
  - bce: {name: loss_real, from: [real, yes_real]}
  - bce: {name: loss_fake, from: [judged, no]}
  - bce: {name: loss_generator, from: [judged, yes]}
  output: fake
data:
  train: {format: cosmology, size: 16, samples: 64, classes: 1}
  val: {format: cosmology, size: 16, samples: 64, first: 1000, classes: 1}
  test: {format: cosmology, size: 16, samples: 40, first: 2000, classes: 1}
  roles: {x: target}
  augment: [{random_crop: {size: 8}}, {log: 0.05}, {mean: 2.5}, {scale: 0.25}]
train:
  batch: 16
  epochs: 2
  optimizer: {name: adam, lr: 0.002, beta1: 0.5}
  turns:
  - {losses: [loss_real, loss_fake], train: discriminator}
  - {losses: loss_generator, train: generator}
checkpoint: {best: power_spectrum}
Y
"$CONVOY" train job.yaml --out one --threads 1 >log 2>&1 || fail "it does not train: $(cat log)"
for score in power_spectrum pixel_histogram diversity; do
    grep '"kind": "epoch"' one/metrics.jsonl | grep -q "\"val_$score\": [0-9]" || fail "validation has no $score: $(grep '"kind": "epoch"' one/metrics.jsonl)"
done
grep -q '"val_rmse"' one/metrics.jsonl && fail "a generated sample is compared with a true one"
$MPIEXEC_N 2 "$CONVOY" train "$work/job.yaml" --out two --threads 1 >log 2>&1 || fail "it does not train on two ranks: $(cat log)"
value() { grep '"kind": "epoch"' "$1/metrics.jsonl" | tail -n 1 | sed "s/.*\"val_$2\": \([0-9.e-]*\).*/\1/"; }
for score in power_spectrum pixel_histogram; do
    awk -v a="$(value one $score)" -v b="$(value two $score)" 'BEGIN { exit !(a > 0 && a - b < 1e-3 && b - a < 1e-3) }' ||
        fail "$score on two ranks: $(value one $score) and $(value two $score)"
done

# The scores of the test, and the page.
# Names of scores that are long widen their column.
"$CONVOY" test one >scores 2>&1 || fail "it is not tested: $(cat scores)"
awk '/^(loss|power_spectrum_within|pixel_histogram_within) / { at[index($0, $2)] = 1; n++ } END { for (i in at) k++; exit !(n == 3 && k == 1) }' scores ||
    fail "the scores are not in one column: $(cat scores)"
"$CONVOY" test one --json >test 2>&1 || fail "it is not tested: $(cat test)"
for part in '"power_spectrum_within": [0-9]' '"pixel_histogram_within": [0-9]' '"diversity": ' '"wave": ' '"moments": '; do
    grep -q "$part" test one/test.json || fail "the test has no $part: $(cut -c 1-400 test)"
done
"$CONVOY" report one >log 2>&1 || fail "no page: $(cat log)"
for part in 'Power spectrum, generated to true' 'Histogram of pixels' 'Moments of the pixels'; do
    grep -q "$part" one/report.html || fail "the page has no '$part'"
done
grep -q 'root mean square error' one/report.html && fail "the page compares a generated map with a true one"

# Samples without data: in the units of the data.
"$CONVOY" predict one --samples 20 --out a.csv >log 2>&1 || fail "it draws no samples: $(cat log)"
$MPIEXEC_N 2 "$CONVOY" predict "$work/one" --samples 20 --out "$work/b.csv" >log 2>&1 || fail "two ranks draw no samples: $(cat log)"
cmp -s a.csv b.csv || fail "two ranks draw other samples"
awk -F, 'NR == 1 && NF != 64 { bad = 1 } { for (i = 1; i <= NF; i++) { if ($i < -0.2 || $i > 40) bad = 1; if ($i > 1) bright++ } } END { exit bad || NR != 20 || !bright }' a.csv ||
    fail "the samples are not in the units of the data: $(head -n 1 a.csv | cut -c 1-200)"
[ "$(sort -u a.csv | wc -l)" = 20 ] || fail "samples are equal"
"$CONVOY" predict one --data '{format: cosmology, size: 16, samples: 20, classes: 1}' --out c.csv >log 2>&1 || fail "$(cat log)"
cmp -s a.csv c.csv || fail "samples without data differ from those with data, which give their number only"

# An autoencoder: x is the target of its loss and of its scores.
cat >auto.yaml <<'Y'
model: {layers: [{fc: {channels: 6}}, relu, {fc: {channels: 64}}, {reshape: {shape: [1, 8, 8]}}]}
data:
  train: {format: cosmology, size: 8, samples: 64, classes: 1}
  val: {format: cosmology, size: 8, samples: 16, first: 1000, classes: 1}
  roles: {x: target}
  augment: [{mean: 1}, {scale: 0.5}]
train: {batch: 16, epochs: 3, optimizer: {name: adam, lr: 0.01}}
Y
"$CONVOY" train auto.yaml --out auto --threads 1 >log 2>&1 || fail "an autoencoder does not train: $(cat log)"
# The loss is in the units of the network, the score in those of the data: mse * 4 = rmse^2.
awk -v loss="$(value auto loss)" -v rmse="$(value auto rmse)" 'BEGIN { d = rmse * rmse / (4 * loss) - 1; exit !(loss > 0 && d < 1e-4 && d > -1e-4) }' ||
    fail "loss $(value auto loss) and rmse $(value auto rmse)"
"$CONVOY" plan auto.yaml >log 2>&1 || fail "$(cat log)"

# What is wrong.
refuses() { # WHAT TEXT ARGUMENT...
    what=$1 text=$2
    shift 2
    "$CONVOY" "$@" >log 2>&1 && fail "$what is accepted"
    grep -q "$text" log || fail "$what: $(cat log)"
}
refuses "a number of samples of a network that reads data" "reads samples" predict auto --samples 5 --out d.csv
refuses "samples and data" "leave --data out" predict one --samples 5 --data x.npy --out d.csv
refuses "an unknown role of x" "the role that x may have is target" plan job.yaml --set 'data.roles={x: field}'
refuses "units that are lost" "multiplies x with 0" train auto.yaml --out zero --set 'data.augment=[{scale: 0}]'
exit $failed
