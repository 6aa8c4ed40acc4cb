#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# distributions.sh: a network trained with gaussian_nll or quantile gives means, log variances and quantiles in the units
# of the data, with scaled targets and without; coverage says how many targets are inside; predictions have the same
# bits on two ranks, and a gaussian_nll network keeps its units in an ONNX file.
. "$CONVOY_SOURCE/tests/shell.inc"

# y is near 100 + 20 x; its distance from that is uniform on -10 .. 10, so its standard deviation is 5.77.
awk 'BEGIN { srand(7); for (i = 0; i < 600; i++) { x = 2 * rand() - 1; print x "," 100 + 20 * x + 20 * rand() - 10 } }' >all.csv
sed -n 1,400p all.csv >train.csv
sed -n 401,600p all.csv >test.csv
job() {
    cat <<END
model: {layers: [{fc: {channels: 8}}, tanh, {fc: {channels: $2}}]}
data:
  train: {path: train.csv, y: 2, header: no}
  test: {path: test.csv, y: 2, header: no}
  normalize_targets: $3
train:
  batch: 40
  epochs: 40
  optimizer: {name: adam, lr: 0.02}
  loss: $1
END
}
job gaussian_nll 2 auto >gauss.yaml
job '{name: quantile, levels: [0.1, 0.5, 0.9]}' 3 auto >quantile.yaml
for name in gauss quantile; do
    "$CONVOY" train $name.yaml --threads 1 --out $name >log 2>&1 || fail "$name: train fails: $(cat log)"
    "$CONVOY" test $name --threads 1 >log 2>&1 || fail "$name: test fails: $(cat log)"
    grep -q '^coverage ' log || fail "$name: no coverage: $(cat log)"
    "$CONVOY" predict $name --threads 1 --data '{path: test.csv, y: 2, header: no}' --out $name.csv >log 2>&1 || fail "$name: $(cat log)"
    # shellcheck disable=SC2086
    $MPIEXEC_N 2 "$CONVOY" predict $name --threads 1 --data '{path: test.csv, y: 2, header: no}' --out two.csv --force >log 2>&1 || fail "$name: $(cat log)"
    cmp $name.csv two.csv || fail "$name: other bits on two ranks"
done

# The mean follows the line, and the variance is that of the uniform distribution, 33.3.
paste -d, test.csv gauss.csv | awk -F, '{ d = $3 - 100 - 20 * $1; if (d * d > 16) bad++; v += exp($4) } END {
    exit !(NR == 200 && bad < 10 && v / NR > 22 && v / NR < 45) }' || fail "mean and variance: $(head -n 3 gauss.csv)"
# The quantiles are 8 below the line, on it, and 8 above it.
paste -d, test.csv quantile.csv | awk -F, '{ for (i = 0; i < 3; i++) s[i] += $(3 + i) - 100 - 20 * $1 } END {
    for (i = 0; i < 3; i++) if ((s[i] / NR - 8 * (i - 1)) ^ 2 > 6.25) exit 1 }' || fail "quantiles: $(head -n 3 quantile.csv)"
# The interval of 90 % of a normal distribution has 95 % of a uniform one; of 200 targets.
coverage() { sed -n 's/.*"coverage": \([0-9.]*\).*/\1/p' "$1/test.json" | head -n 1; }
awk -v g="$(coverage gauss)" -v q="$(coverage quantile)" 'BEGIN { exit !(g > 0.85 && g <= 1 && q > 0.68 && q < 0.92) }' ||
    fail "coverage: $(coverage gauss) and $(coverage quantile)"
grep -q '"below": *\[' quantile/test.json || fail "no share below each level"

# A network with the wrong number of outputs is refused before the first step.
sed 's/channels: 3/channels: 4/' quantile.yaml >bad.yaml
refused 'quantile needs 3 numbers for each target along axis 1' "$CONVOY" train bad.yaml --threads 1 --out bad

# Without scaled targets the numbers are in the same units.
job gaussian_nll 2 none >plain.yaml
"$CONVOY" train plain.yaml --threads 1 --out plain --set train.epochs=1 >log 2>&1 || fail "no scaling: $(cat log)"
"$CONVOY" test plain --threads 1 --json >json 2>log && contains json '"expected": 0.9' || fail "scores: $(cat log json)"

if "$CONVOY" export gauss gauss.onnx >log 2>&1; then
    "$CONVOY" predict gauss.onnx --threads 1 --data '{path: test.csv, y: 2, header: no}' --out onnx.csv >log 2>&1 || fail "onnx: $(cat log)"
    paste -d, gauss.csv onnx.csv | awk -F, '{ for (i = 1; i <= 2; i++) if (($i - $(i + 2)) ^ 2 > 1e-4) exit 1 }' || fail "the ONNX file differs: $(head -n 2 onnx.csv)"
else
    grep -q 'protobuf' log || fail "export: $(cat log)"
fi
exit $failed
