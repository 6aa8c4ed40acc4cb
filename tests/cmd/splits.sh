#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# seconds: 15
# level: 2
# splits.sh: samples of one patient are on one side of data.val if it groups them: then 20 patients with random labels are
# not learnt, while a share without groups is scored perfectly; the split is the same on 1, 2 and 3 ranks, is said in one
# line, is kept by a resumed run, and is refused if rows were appended.
. "$CONVOY_SOURCE/tests/shell.inc"
export CONVOY_SITE=off

# 20 patients, 20 samples of each that differ little; the diagnosis of a patient is drawn.
LC_ALL=C awk 'function r() { s = (s * 16807) % 2147483647; return s / 2147483647 }
    BEGIN { s = 12345; print "patient,a,b,c,d,e,f,g,h,label"
        for (p = 0; p < 20; p++) { for (k = 0; k < 8; k++) c[p, k] = 6 * r() - 3; l[p] = (p * 7) % 20 < 10 }
        for (i = 0; i < 400; i++) { p = (i * 7) % 20; printf "P%02d", p
            for (k = 0; k < 8; k++) printf ",%.4f", c[p, k] + 0.1 * r(); print "," l[p] } }' >patients.csv
cat >job.yaml <<'END'
model: {layers: [{fc: {channels: 32}}, relu, {fc: {channels: 2}}]}
data: {train: patients.csv, val: {share: 20%, group: patient}}
train:
  batch: 20
  epochs: 12
  loss: softmax_cross_entropy
  metrics: [accuracy]
  optimizer: {name: adam, lr: 0.01}
END
# train OUT OPTION...: the last line of the epochs.
train() {
    out=$1
    shift
    "$CONVOY" train job.yaml --threads 1 --out "$out" --progress none "$@" >log 2>&1 || fail "$out: $(tail -3 log)"
    sed -n 's/.*epoch 12: .*\(train loss.*\)/\1/p' log
}
accuracy() { sed -n 's/.*val accuracy \([0-9.]*\).*/\1/p'; }

share=$(train share --set data.val=20% --set 'data.train={path: patients.csv, drop: patient}' | accuracy)
groups=$(train groups)
line='data.val: 20 groups by patient: 4 in validation with 80 samples (20.0%), 16 in training with 320'
contains log "$line" || fail "the split is not said: $(grep data.val log)"
contains log 'patients.csv: column patient groups or orders samples, and is no input' || fail "the column is not said"
LC_ALL=C awk "BEGIN { exit !($share > 0.99 && $(echo "$groups" | accuracy) < 0.8) }" ||
    fail "accuracy $share of a share, of groups $groups"

# The same on two and three ranks.
for ranks in 2 3; do
    $MPIEXEC_N $ranks "$CONVOY" train job.yaml --threads 1 --out ranks$ranks --progress none >log 2>&1 || fail "$ranks ranks"
    contains log "$line" || fail "$ranks ranks: $(grep data.val log)"
    LC_ALL=C awk -v a="$(sed -n 's/.*epoch 12: .*val loss \([0-9.]*\).*/\1/p' log)" \
        -v b="$(echo "$groups" | sed -n 's/.*val loss \([0-9.]*\).*/\1/p')" 'BEGIN { d = a - b; exit !(a && d * d < 1e-4 * b * b) }' ||
        fail "$ranks ranks have another validation: $(tail -2 log)"
done

# What is planned is said, too.
"$CONVOY" plan job.yaml >out 2>&1 && contains out "$line" || fail "convoy plan: $(grep -c . out) lines without the split"

# A table to test on may have the column or not.
cut -d, -f2- patients.csv >features.csv
for test in patients features; do
    "$CONVOY" test groups --data $test.csv >out 2>&1 || fail "convoy test --data $test.csv: $(cat out)"
done

# A resumed run has the same split; with appended rows it is another one, which is refused.
"$CONVOY" train job.yaml --threads 1 --out groups --resume --progress none --set train.epochs=14 >log 2>&1 || fail "resume: $(tail -2 log)"
contains log "$line" || fail "resumed with another split: $(grep data.val log)"
{ cat patients.csv; sed -n '2,21p' patients.csv; } >more.csv
cp patients.csv kept.csv
cp more.csv patients.csv
refused 'resume with the' "$CONVOY" train job.yaml --threads 1 --out groups --resume --progress none --set train.epochs=16
grep -q 'a number of training samples\|other training data' err || fail "appended rows: $(cat err)"
cp kept.csv patients.csv

# The end of a series, with a gap.
train last --set 'data.val={last: 10%, gap: 5}' --set 'data.train={path: patients.csv, drop: patient}' >/dev/null
contains log 'data.val: the last 40 of 400 samples (10.0%) are for validation, in the order of the source, and 5 between them and the training are left out' ||
    fail "the end: $(grep data.val log)"

# Exact copies between and within the sets, two of them with another label, are counted alike on any number of ranks; a
# link to the file is the same file.
cut -d, -f2- patients.csv >features.csv
{ cat features.csv; sed -n '2,4p' features.csv; } >train.csv
{ sed -n '1p;10,29p' features.csv; sed -n '40,41p' features.csv | sed 's/0$/2/; s/1$/0/; s/2$/1/'; echo 1,2,3,4,5,6,7,8,0; } >val.csv
ln -s train.csv link.csv
copies() { rm -rf copies$1; $MPIEXEC_N $1 "$CONVOY" train job.yaml --threads 1 --out copies$1 --progress none --set train.epochs=1 --set data.train=train.csv --set "data.val=$2" >log 2>&1 || fail "copies: $(cat log)"; }
for ranks in 1 2 3; do
    copies $ranks val.csv
    contains log '22 of 23 samples of data.val are exact copies of training samples, 2 of them with another label or target: val.csv, line 2 is the same as train.csv, line 10' ||
        fail "$ranks ranks: copies are not counted: $(cat log)"
    contains log '3 of 403 training samples are exact copies of others: train.csv, line 402 is the same as train.csv, line 2' ||
        fail "$ranks ranks: copies within the training: $(cat log)"
    ! contains log 'read the same samples' || fail "two files are taken for one"
done
copies 1 link.csv
contains log 'data.train and data.val read the same samples: train.csv and link.csv' || fail "a link is not seen: $(cat log)"
copies 1 '{path: train.csv, range: "90%:"}'
contains log 'data.train and data.val read the same samples: train.csv;' || fail "a range is not seen: $(cat log)"
"$CONVOY" train job.yaml --threads 1 --out ranges --progress none --set train.epochs=1 --set 'data.train={path: train.csv, range: "3:90%"}' \
    --set 'data.val={path: train.csv, range: "90%:"}' >log 2>&1 || fail "ranges: $(cat log)"
! grep 'exact copies\|read the same samples' log | grep -v 'training samples are exact' || fail "ranges apart have common samples"

# Test data that the training does not read are looked at, too.
"$CONVOY" train job.yaml --threads 1 --out tested --progress none --set train.epochs=1 --set data.test=val.csv --set data.val=20% \
    --set 'data.train={path: train.csv, range: ":100"}' >log 2>&1 || fail "a test set: $(cat log)"
grep -q 'of 23 samples of data.test are exact copies of training samples' log || fail "copies in the test data: $(cat log)"

# Groups of two sources with the option `group` are compared.
{ sed -n 1p patients.csv; grep '^P0[0-4]' patients.csv; } >some.csv
{ sed -n 1p patients.csv; grep '^P0[3-9]' patients.csv; } >others.csv
"$CONVOY" train job.yaml --threads 1 --out two_tables --progress none --set train.epochs=1 \
    --set 'data.train={path: some.csv, group: patient}' --set 'data.val={path: others.csv, group: patient}' >log 2>&1 ||
    fail "two tables: $(cat log)"
contains log '2 of the 7 groups of data.val (patient) are also in data.train, such as "P03"' || fail "shared groups: $(cat log)"

# Mistakes.
wrong() { refused "$1" "$CONVOY" train job.yaml --threads 1 --out wrong --progress none --set "data.val=$2" --set "data.train=${3:-patients.csv}"; }
wrong 'data.val has none of share, last and first' '{group: patient}'
wrong 'data.val has two or more of share, last and first' '{share: 20%, last: 10%}'
wrong 'data.val.share is 120%, expected a share of the training data between 0 and 1' '{share: 120%, group: patient}'
wrong 'data.val.last is many, expected a share' '{last: many}'
wrong 'data.val.group goes with data.val.share' '{last: 10%, group: patient}'
wrong 'data.val.order and data.val.gap go with data.val.last' '{share: 10%, gap: 5}'
wrong 'data.val.by goes with data.val.group' '{last: 10%, by: day}'
wrong 'neither a name, such as patient, nor a pattern' '{share: 10%, group: [patient, site]}'
wrong 'no column "patients"' '{share: 10%, group: patients}'
wrong 'its path has no match of "site([0-9])"' '{share: 10%, group: {path: "site([0-9])"}}' features.csv
wrong 'all 400 samples belong to one group, "features"' '{share: 10%, group: {path: "/?([a-z]+).csv"}}' features.csv
wrong 'is no date such as 2019-03-31' '{share: 10%, group: patient, by: year}'
exit $failed
