#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# cntk.sh: what docs/guide/coming-from.md says of CNTK: its momentum and rate per sample give the steps of CNTK's own formula,
# the numbers of the example follow from those of its BrainScript, its job trains, and CNTK's text format is read.
. "$CONVOY_SOURCE/tests/shell.inc"
export CONVOY_SITE=off
page=$CONVOY_SOURCE/docs/guide/coming-from.md
awk '/^## / { here = $2 == "CNTK" } here' "$page" >section
# value KEY FILE: the number behind the key.
value() { sed -n "s/.*[ {]$1[ :=]*\([0-9.][0-9.e-]*\).*/\1/p" "$2" | head -n 1; }
near() { awk -v a="$1" -v b="$2" -v t="$3" 'BEGIN { d = a - b; exit !(a != "" && b != "" && d * d <= t * t * b * b) }'; }

# The example.
awk '/^```yaml$/ { inside = 1; next } /^```$/ { inside = 0 } inside' section >example.yaml
awk '/^```text$/ { inside = 1; next } /^```$/ { inside = 0 } inside' section >example.cntk
b=$(value minibatchSize example.cntk) rate=$(value learningRatesPerSample example.cntk) t=$(value momentumAsTimeConstant example.cntk)
near "$(value momentum example.yaml)" "$(awk -v b="$b" -v t="$t" 'BEGIN { print exp(-b / t) }')" 1e-4 || fail "the momentum of the example"
near "$(value lr example.yaml)" "$(awk -v r="$rate" -v b="$b" -v t="$t" 'BEGIN { print r * b * (1 - exp(-b / t)) }')" 1e-3 || fail "the rate of the example"
[ "$(value batch example.yaml)" = "$b" ] && [ "$(value epochs example.yaml)" = "$(value maxEpochs example.cntk)" ] || fail "the batch or the epochs of the example"
sed 's/train: {path.*/train: {format: synthetic, shape: [3, 32, 32], samples: 384, classes: 0, targets: 3}/' example.yaml >made.yaml
"$CONVOY" train made.yaml --out example >log 2>&1 && grep -q '^epoch 2: ' log || fail "the example: $(cat log)"

# The text format.
echo '|regrLabels 0.5 0.2 0.1 |features 59 43 50 68 98 119 139 145 149 149 131 125
|regrLabels 0.4 0.1 0.1 |features 9 4 5 8 9 11 13 14 14 14 13 12' >ctf.txt
sh -c "$(sed -n 's/^    \(sed .*\) Train_cntk_text.txt.*/\1/p' section)" <ctf.txt >train.dat
"$CONVOY" inspect '{path: train.dat, y: [1, 2, 3], shape: [3, 2, 2]}' >log 2>&1 && grep -q '^  x .* 3x2x2$' log && grep -q '^  y .* 3$' log || fail "the text format: $(cat log)"

# CNTK: v = m v + (1 - m) sum of gradients, w -= rate per sample * v; here for y = w x and (y - t)^2, which convoy's mean over
# samples divides by the batch.
awk 'BEGIN { print "x,t"; for (i = 0; i < 12; i++) print (i % 5 - 2) / 4 "," (i % 3) / 2 }' >line.csv
awk -F, -v b=4 -v r=0.02 -v t=10 '
    NR > 1 { x[NR - 2] = $1; y[NR - 2] = $2 }
    END { m = exp(-b / t)
          for (step = 0; step < 15; step++) {
              loss = g = 0
              for (i = 0; i < b; i++) { k = (step * b + i) % 12; d = w * x[k] - y[k]; loss += d * d / b; g += 2 * d * x[k] }
              v = m * v + (1 - m) * g; w -= r * v
              printf "%.9g\n", loss } }' line.csv >cntk.losses
cat >line.yaml <<END
model: {layers: [{fc: {channels: 1, bias: false, init: constant}}]}
data: {train: {path: line.csv, y: t}, shuffle: false}
train:
  batch: 4
  epochs: 5
  loss: mse
  optimizer: {name: sgd, lr: $(awk 'BEGIN { print 0.02 * 4 * (1 - exp(-0.4)) }'), momentum: $(awk 'BEGIN { print exp(-0.4) }')}
log: {every: 1}
END
"$CONVOY" train line.yaml --out line >log 2>&1 || fail "the line: $(cat log)"
sed -n 's/.*"kind": "step".*"loss": \([0-9.e-]*\).*/\1/p' line/metrics.jsonl >convoy.losses
[ "$(wc -l <convoy.losses)" -eq 15 ] || fail "not 15 steps: $(cat log)"
paste cntk.losses convoy.losses | while read -r want got; do near "$got" "$want" 1e-4 || echo "$want $got"; done >far
[ ! -s far ] || fail "other losses than CNTK's: $(cat far)"
exit $failed
