#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan
# event_weights.sh: samples with negative weights, as event generators give them, train the same on one rank and on two,
# and the log says how losses and scores are divided; weights that are not finite, that sum to less than 0, or that are
# all 0 in a batch are named.
. "$CONVOY_SOURCE/tests/shell.inc"

# events WEIGHT: a table of two classes; WEIGHT is an awk expression of the row i
events() {
    awk 'BEGIN {
        print "a,b,c,label,w"
        for (i = 0; i < 80; i++) { x = sin(7 * i); print x "," cos(3 * i) "," sin(i * i) "," (x > 0) "," ('"$1"') }
    }'
}
events 'i % 4 == 1 ? -0.5 : 1 + i % 3' >events.csv
events 'i % 2 ? -1 : 1' >cancel.csv
events 'i == 61 ? "inf" : 1' >inf.csv
events 'i < 20 ? 0 : 1' >zero.csv
cat >job.yaml <<END
model: {layers: [{fc: {channels: 8}}, tanh, {fc: {name: scores, channels: 2}}]}
data: {train: {path: events.csv, weight: w}, val: 25%, shuffle: false}
train: {batch: 20, epochs: 2, optimizer: {name: sgd, lr: 0.05}, metrics: [accuracy, auc]}
log: {every: 1}
END
for n in 1 2; do
    # shellcheck disable=SC2086
    $MPIEXEC_N $n "$CONVOY" train job.yaml --threads 1 --out run$n >log$n 2>&1 || fail "train on $n ranks: $(cat log$n)"
    grep -q '15 of 60 weights of samples are negative (their sum is -7.5, .*): a loss is divided by the sum of the magnitudes' log$n ||
        fail "the log does not say how losses are divided: $(cat log$n)"
    grep -o '"[a-z_]*\(loss\|accuracy\|auc\)": [0-9.e-]*' run$n/metrics.jsonl >numbers$n
done
paste numbers1 numbers2 | awk '$2 - $4 > 1e-6 || $4 - $2 > 1e-6 || $2 == 0 { exit 1 } END { exit NR < 12 }' ||
    fail "two ranks give other numbers: $(paste numbers1 numbers2)"

refused 'inf.csv, line 63: column 5 (w): "inf" is not a finite number' "$CONVOY" train job.yaml --threads 1 --out inf --set data.train.path=inf.csv
sed 's/ val: 25%,//' job.yaml >all.yaml
"$CONVOY" train all.yaml --threads 1 --out zero --set data.train.path=zero.csv >log 2>&1 || fail "batches of weight 0: $(cat log)"
contains log 'in 1 step of epoch 1 no sample counted' || fail "a batch of weight 0 has a loss without a word: $(cat log)"
"$CONVOY" test run1 --data '{path: cancel.csv, weight: w}' >log 2>&1 || fail "test with weights that cancel: $(cat log)"
contains log 'weights of the samples sum to 0 (the negative ones to -40), so scores other than the loss are not defined' &&
    grep -q 'accuracy *undefined' log || fail "scores of weights that sum to 0: $(cat log)"
exit $failed
