#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan
# collider.sh: examples/collider compares a trained network with the classic baselines: table, analysis.json, which the report shows, and what it refuses.
. "$CONVOY_SOURCE/tests/shell.inc"
collider=$CONVOY_BUILD/collider

cat >job.yaml <<END
model: {name: hep-cnn, filters: 4}
data:
  train: {format: collider, events: 600, cells: 32}
  test: {format: collider, events: 400, first: 600, cells: 32}
  augment: [log]
train: {batch: 64, epochs: 1, optimizer: {name: adam, lr: 0.001}}
END
"$CONVOY" train job.yaml --threads 1 --out run >log 2>&1 || fail "train fails: $(cat log)"
"$CONVOY" test run >log 2>&1 || fail "test fails: $(cat log)"
"$collider" run >log 2>&1 || fail "the analysis fails: $(cat log)"
for method in network cuts linear linear-10; do
    grep -Eq "^$method +0\.[0-9]+ \+- 0\.[0-9]+" log || fail "no area of $method: $(cat log)"
done
# The area of the network is that which `convoy test` finds.
area() { sed -n "s/.*\"network\": {.*\"area\": \([0-9.]*\).*/\1/p" run/analysis.json; }
"$CONVOY" test run --json | tr ',{' '\n\n' | sed -n 's/.*"auc": \([0-9.]*\).*/\1/p' >auc
awk -v a="$(area)" -v b="$(cat auc)" 'BEGIN { exit !(a > 0 && (a - b) ^ 2 < 1e-8) }' || fail "area $(area), auc $(cat auc)"
"$CONVOY" report run >log 2>&1 || fail "report fails: $(cat log)"
grep -q 'linear-10' run/report.html || fail "the report does not show the baselines"
ls run | grep -q 'scores\|\.new' && fail "a temporary file is left: $(ls run)"
# The page leaves out an analysis of another checkpoint.
sed -i 's/"checkpoint": "[^"]*"/"checkpoint": "step-00000001"/' run/analysis.json
"$CONVOY" report run >log 2>&1 || fail "report fails: $(cat log)"
grep -q 'linear-10' run/report.html && fail "the report shows an analysis of another checkpoint"
grep -q 'analysis.json is left out' run/report.html || fail "the report does not say that it leaves the analysis out"

"$collider" --features '{format: collider, events: 5}' f.csv || fail "no features"
[ "$(wc -l <f.csv)" = 6 ] && grep -q '^label,ht,njet,jet1_pt,' f.csv || fail "features: $(cat f.csv)"

refused 'usage: collider RUN' "$collider"
refused 'usage: collider RUN' "$collider" --features x
refused 'job.resolved.yaml: cannot open' "$collider" nowhere
refused 'these are no collider events' "$collider" --features '{format: synthetic, samples: 9, shape: [3, 8, 8]}' f.csv
refused 'nowhere/f.csv: No such file' "$collider" --features '{format: collider, events: 5}' nowhere/f.csv
"$CONVOY" train job.yaml --threads 1 --out synthetic --set model=cifar-convnet --set data.train='{format: synthetic, samples: 64, shape: [3, 12, 12]}' \
    --set data.test='{format: synthetic, samples: 64, shape: [3, 12, 12]}' --set data.augment=[] >log 2>&1 || fail "train fails: $(cat log)"
refused 'these are no collider events' "$collider" synthetic
sed -i 's/^  test:.*//' job.yaml
"$CONVOY" train job.yaml --threads 1 --out untested >log 2>&1 || fail "train fails: $(cat log)"
refused 'the job has no data.test' "$collider" untested
rm -r run/checkpoints
refused 'holds no checkpoint' "$collider" run
exit $failed
