#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# level: 2
# uncertainty.sh: a temperature that `convoy test --calibrate` fits lowers nll, is the same on any number of ranks, and is
# applied by predict and kept by export; passes with dropout and ensembles give mean, spread, entropy and mutual
# information as they are defined, with the same bits on one rank and on three, and for any other samples beside.
. "$CONVOY_SOURCE/tests/shell.inc"

awk 'BEGIN { srand(3); for (i = 0; i < 360; i++) { k = i % 3
    printf "%g,%g,%d\n", (k == 1) + 1.2 * rand() + 0.8 * rand(), (k == 2) + 1.2 * rand() + 0.8 * rand(), k } }' >all.csv
sed -n 1,240p all.csv >train.csv
sed -n 241,360p all.csv >test.csv
head -n 7 test.csv >few.csv
cat >job.yaml <<END
model: {layers: [{fc: {channels: 32}}, relu, {dropout: {p: 0.3}}, {fc: {channels: 3}}]}
data:
  train: {path: train.csv, label: 3, header: no}
  val: 25%
  test: {path: test.csv, label: 3, header: no}
train: {batch: 20, epochs: 25, optimizer: {name: adam, lr: 0.02}}
END
test='{path: test.csv, label: 3, header: no}'
for s in 1 2 3; do
    "$CONVOY" train job.yaml --threads 1 --out "trials/$s" --set train.seed=$s >log 2>&1 || fail "train $s: $(cat log)"
done
predict() { "$CONVOY" predict "$@" --threads 1 --data "$test" >log 2>&1 || fail "predict $*: $(cat log)"; }
# shellcheck disable=SC2086
on_three() { $MPIEXEC_N 3 "$CONVOY" "$@" --threads 1 >log 2>&1 || fail "three ranks, $*: $(cat log)"; }

# ---- calibration ----
predict trials/1 --out logits.csv
predict trials/1 --out before.csv --probabilities
"$CONVOY" test trials/1 --calibrate --threads 1 >calibrated 2>&1 || fail "calibrate: $(cat calibrated)"
cp trials/1/calibration.json one.json
awk '/^temperature / { t = 1 } /^nll  / && !n { n = 1; if (NF == 3 && $3 <= $2) ok = 1 } END { exit !(t && ok) }' calibrated || fail "nll does not fall: $(cat calibrated)"
for name in ece nll brier ece_calibrated nll_calibrated; do grep -q "^$name  " calibrated || fail "no $name: $(cat calibrated)"; done
contains trials/1/test.json '"reliability_calibrated"' || fail "no bins after the calibration"
contains trials/1/test.json '"temperature"' || fail "no temperature in test.json"
on_three test trials/1 --calibrate
cmp one.json trials/1/calibration.json || fail "another temperature on three ranks"
predict trials/1 --out after.csv --probabilities
t=$(sed 's/.*"temperature": \([0-9.]*\).*/\1/' one.json)
paste -d, logits.csv after.csv | awk -F, -v t="$t" '{ s = exp($1 / t) + exp($2 / t) + exp($3 / t)
    for (k = 1; k <= 3; k++) if ((exp($k / t) / s - $(k + 3)) ^ 2 > 1e-9) exit 1 }' || fail "not softmax(logits / $t): $(head -n 2 after.csv)"
predict trials/1 --out plain.csv --probabilities --no-calibration
cmp before.csv plain.csv || fail "--no-calibration changes the probabilities"
cmp before.csv after.csv >/dev/null && fail "the temperature changes nothing"
"$CONVOY" export trials/1 one.safetensors >log 2>&1 || fail "export: $(cat log)"
predict one.safetensors --out exported.csv --probabilities
cmp after.csv exported.csv || fail "the exported file has another temperature"
if "$CONVOY" export trials/1 one.onnx >log 2>&1; then
    predict one.onnx --out exported.csv --force --probabilities
    paste -d, after.csv exported.csv | awk -F, '{ for (k = 1; k <= 3; k++) if (($k - $(k + 3)) ^ 2 > 1e-10) exit 1 }' || fail "the ONNX file has another temperature"
else
    grep -q protobuf log || fail "export to ONNX: $(cat log)"
fi
sed 's/step-[0-9]*/step-00000001/' one.json >trials/1/calibration.json
predict trials/1 --out stale.csv --probabilities
grep -q 'the calibration is of another checkpoint' log || fail "no warning: $(cat log)"
cmp before.csv stale.csv || fail "the temperature of another checkpoint is applied"
echo '{"temperature": -1}' >trials/1/calibration.json
refused 'above 0: remove the file' "$CONVOY" predict trials/1 --threads 1 --data "$test" --out no.csv
cp one.json trials/1/calibration.json
refused 'is not a run folder' "$CONVOY" test one.safetensors --calibrate --threads 1

# A temperature needs answers that are wrong, and others that are right.
predict trials/1 --classes --out classes.csv
paste -d, classes.csv test.csv | awk -F, '$1 == $5 { print $3 "," $4 "," $5 }' >right.csv
paste -d, before.csv test.csv | awk -F, '{ k = 1; for (i = 2; i <= 3; i++) if ($i < $k) k = i; print $4 "," $5 "," k - 1 }' >wrong.csv
refused 'all answers to the samples of the calibration are right' "$CONVOY" test trials/1 --threads 1 --calibrate-on '{path: right.csv, label: 3, header: no}'
refused 'the answers are no better than chance' "$CONVOY" test trials/1 --threads 1 --calibrate-on '{path: wrong.csv, label: 3, header: no}'
cmp one.json trials/1/calibration.json || fail "a calibration that failed has changed the temperature"

# ---- dropout ----
predict trials/2 --uncertainty 30 --header --out u.csv
[ "$(head -n 1 u.csv)" = 0,1,2,entropy,mutual_information ] || fail "header: $(head -n 1 u.csv)"
on_three predict trials/2 --uncertainty 30 --header --out three.csv --data "$test"
cmp u.csv three.csv || fail "other bits on three ranks"
"$CONVOY" predict trials/2 --uncertainty 30 --header --threads 1 --data '{path: few.csv, label: 3, header: no}' --out out_few.csv >log 2>&1 || fail "few: $(cat log)"
head -n 8 u.csv | cmp - out_few.csv || fail "the masks depend on the other samples"
awk -F, 'NR > 1 { h = 0; s = 0; for (k = 1; k <= 3; k++) { s += $k; if ($k > 0) h -= $k * log($k) }
    if ((h - $4) ^ 2 > 1e-9 || (s - 1) ^ 2 > 1e-9 || $5 < 0 || $5 > $4) exit 1; i += $5 }
    END { exit !(i / NR > 0.001) }' u.csv || fail "entropy and mutual information: $(head -n 3 u.csv)"

# ---- ensembles ----
for s in 2 3; do predict trials/$s --probabilities --out p$s.csv; done
predict trials/2 trials/3 --out both.csv
predict trials/2 trials/3 --top 2 --header --names --out top.csv
paste -d, p2.csv p3.csv both.csv | awk -F, '{ h = m = 0
    for (k = 1; k <= 3; k++) { p = ($k + $(k + 3)) / 2; h -= p * log(p); m -= ($k * log($k) + $(k + 3) * log($(k + 3))) / 2
        if ((p - $(k + 6)) ^ 2 > 1e-11) exit 1 }
    if ((h - $10) ^ 2 > 1e-9 || (h - m - $11) ^ 2 > 1e-9) exit 1 }' || fail "mean of two members: $(head -n 2 both.csv)"
[ "$(head -n 1 top.csv)" = sample,class_1,probability_1,class_2,probability_2,entropy,mutual_information ] || fail "header: $(head -n 1 top.csv)"
# Outputs in another order make no ensemble.
awk 'BEGIN { print "a,p,q"; for (i = 0; i < 20; i++) printf "%d,%d,%d\n", i, i, -i }' >pq.csv
for y in p,q q,p; do
    printf 'model: {layers: [{fc: {name: out, channels: 2}}]}\ndata: {train: {path: pq.csv, y: [%s]}}\ntrain: {batch: 20, epochs: 1, optimizer: {name: sgd, lr: 0.01}}\n' $y >pq.yaml
    "$CONVOY" train pq.yaml --threads 1 --out "pq-$y" >log 2>&1 || fail "train: $(cat log)"
done
refused 'the targets are p, q in pq-p,q and q, p in pq-q,p: they make no ensemble' "$CONVOY" predict pq-p,q pq-q,p --data pq.csv --out pq.out.csv
mkdir two
cp -r trials/2 trials/3 two
predict two --out folder.csv
cmp both.csv folder.csv || fail "a folder of runs is another ensemble"
on_three predict two --out three.csv --force --data "$test"
cmp both.csv three.csv || fail "an ensemble has other bits on three ranks"
"$CONVOY" test trials --threads 1 >scores 2>log || fail "test of an ensemble: $(cat log)"
# shellcheck disable=SC2086
$MPIEXEC_N 3 "$CONVOY" test trials --threads 1 >three 2>log || fail "test of an ensemble on three ranks: $(cat log)"
cmp scores three || fail "other scores on three ranks: $(cat scores three)"
awk 'NR == 2 { for (i = 1; i <= NF; i++) if ($i == "nll") c = i + 1 } NR > 2 && $1 ~ /trials/ { s += $c; n++ }
    $1 == "ensemble" { e = $c } END { exit !(n == 3 && e > 0 && e < s / n) }' scores || fail "the ensemble is not better than its members: $(cat scores)"
"$CONVOY" test trials/2 --threads 1 | sed -n 's/^nll  *//p' >nll
awk -v nll="$(cat nll)" '$1 == "trials/2" { exit !(($4 - nll) ^ 2 < 1e-6) }' scores || fail "nll of a member: $(cat nll scores)"

# ---- an ensemble as JSON and as a page ----
"$CONVOY" test trials --threads 1 --json >one.json 2>log || fail "test --json: $(cat log)"
echo | cat trials/ensemble.json - | cmp one.json - || fail "--json prints something else than ensemble.json"
# shellcheck disable=SC2086
$MPIEXEC_N 3 "$CONVOY" test trials --threads 1 --json >three.json 2>log || fail "test --json on three ranks: $(cat log)"
cmp one.json three.json || fail "other JSON on three ranks"
for key in '"members": \[{"run": "trials/1", "temperature": ' '"mean": {"accuracy": ' '"spread": {"accuracy": ' '"confusion": ' '"calibrated": true'; do
    grep -q "$key" one.json || fail "ensemble.json lacks $key: $(cut -c 1-400 one.json)"
done
page() { grep -q "$1" trials/ensemble.html || fail "the page lacks $1"; }
page 'The ensemble of 3 networks has accuracy' && page 'mean of the networks' && page 'standard deviation' && page 'single networks'
page '1 of 3 networks have a temperature'
mv trials/ensemble.html before.html
"$CONVOY" report trials >log 2>&1 && grep -q 'trials/ensemble.html' log || fail "report of an ensemble: $(cat log)"
sed 's/Written [^b]*by//' before.html >a
sed 's/Written [^b]*by//' trials/ensemble.html | cmp - a || fail "convoy report writes another page"
"$CONVOY" test trials/2 trials/3 --threads 1 --json >two.json 2>log && grep -q '"spread"' two.json || fail "JSON of named runs: $(cat log)"
refused 'calibrate is for one run' "$CONVOY" test trials --calibrate --threads 1
refused 'no-calibration is for an ensemble' "$CONVOY" test trials/1 --no-calibration --threads 1
# A folder that cannot be written: the scores are printed. A folder in the place of the file is in the way of root, too.
rm trials/ensemble.json trials/ensemble.html && mkdir trials/ensemble.json trials/ensemble.html
"$CONVOY" test trials --threads 1 --json >kept.json 2>log && cmp one.json kept.json || fail "no scores without ensemble.json: $(cat log)"
contains log 'trials/ensemble.json was not renewed' || fail "no warning: $(cat log)"
rmdir trials/ensemble.json trials/ensemble.html

# Scores ignore the labels that the loss ignores, also one that is no class of the network.
sed 's/^train: {/train: {loss: {name: softmax_cross_entropy, ignore_label: 2}, /; s/{fc: {channels: 3}}/{fc: {channels: 2}}/' job.yaml >ignore.yaml
"$CONVOY" train ignore.yaml --threads 1 --out ignore --set train.epochs=3 >log 2>&1 || fail "ignore_label: $(cat log)"
"$CONVOY" test ignore --threads 1 --calibrate >ignored 2>&1 || fail "a test with an ignored label: $(cat ignored)"
grep -q '^nll_calibrated  ' ignored || fail "no scores: $(cat ignored)"
refused 'no sample counts for the loss' "$CONVOY" train ignore.yaml --threads 1 --out none --set 'train.loss={name: softmax_cross_entropy, ignore_label: [0, 1, 2]}'

# ---- numbers: mean and standard deviation ----
cat >numbers.yaml <<END
model: {layers: [{fc: {channels: 4}}, tanh, {fc: {channels: 1}}]}
data: {train: {path: train.csv, y: 2, drop: 3, header: no}, test: {path: test.csv, y: 2, drop: 3, header: no}}
train: {batch: 20, epochs: 2, optimizer: {name: adam, lr: 0.02}}
END
test='{path: test.csv, y: 2, drop: 3, header: no}'
for s in 1 2; do
    "$CONVOY" train numbers.yaml --threads 1 --out n$s --set train.seed=$s >log 2>&1 || fail "train numbers: $(cat log)"
    predict n$s --out n$s.csv
done
predict n1 n2 --header --out spread.csv
[ "$(head -n 1 spread.csv)" = output_0,std_0 ] || fail "header: $(head -n 1 spread.csv)"
tail -n +2 spread.csv | paste -d, n1.csv n2.csv - | awk -F, '{ d = $1 - $2
    if ((($1 + $2) / 2 - $3) ^ 2 > 1e-10 || (d * d / 2 - $4 * $4) ^ 2 > 1e-10) exit 1 }' || fail "mean and deviation: $(head -n 3 spread.csv)"
"$CONVOY" test n1 n2 --threads 1 >scores 2>log && grep -q '^ensemble ' scores || fail "scores of numbers: $(cat log scores)"

refused 'has no dropout' "$CONVOY" predict n1 --uncertainty 4 --threads 1 --data "$test" --out no.csv
refused 'they make no ensemble' "$CONVOY" predict n1 trials/1 --threads 1 --data "$test" --out no.csv
refused 'also give their spread' "$CONVOY" predict n1 n2 --threads 1 --data "$test" --out no.npy
refused 'expected 2 .. 100000' "$CONVOY" predict trials/1 --uncertainty 1 --threads 1 --data "$test" --out no.csv
refused 'n1 was trained on numbers: only the probabilities of classes have a temperature' "$CONVOY" test n1 --calibrate --threads 1
refused 'only the probabilities of classes have a temperature' "$CONVOY" test n1 --calibrate-on "$test" --threads 1
sed '/^  val/d' job.yaml >no_val.yaml
"$CONVOY" train no_val.yaml --threads 1 --out no_val --set train.epochs=1 >log 2>&1 || fail "train without val: $(cat log)"
refused 'has no data.val' "$CONVOY" test no_val --calibrate --threads 1

# Outputs of one shape that mean different things.
sed 's/fc: {channels: 1}/fc: {channels: 2}/' numbers.yaml >two.yaml
"$CONVOY" train two.yaml --threads 1 --out q1 --set 'train.loss={name: quantile, levels: [0.1, 0.9]}' >log 2>&1 || fail "quantiles: $(cat log)"
"$CONVOY" train two.yaml --threads 1 --out q2 --set 'train.loss={name: quantile, levels: [0.05, 0.95]}' >log 2>&1 || fail "quantiles: $(cat log)"
"$CONVOY" train two.yaml --threads 1 --out gauss --set train.loss=gaussian_nll >log 2>&1 || fail "gaussian_nll: $(cat log)"
refused 'level 1 of the quantiles is 0.1 in q1 and 0.05 in q2: they make no ensemble' "$CONVOY" test q1 q2 --threads 1
refused 'q1 was trained with the loss quantile and gauss with gaussian_nll, so their outputs mean different things' \
    "$CONVOY" predict q1 gauss --threads 1 --data "$test" --out no.csv
refused 'level 1 is 0, expected a number between 0 and 1' "$CONVOY" train two.yaml --threads 1 --out no --set 'train.loss={name: quantile, levels: [0, 0.9]}'
exit $failed
