#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan
# ls.sh: `convoy ls` lists runs that are running, killed, finished and failed; damaged and foreign folders do not stop
# it; `convoy report` compares runs; and `convoy inspect` of a run begins with its scores.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
train() { "$CONVOY" train job.yaml --threads 1 --progress none "$@" >log 2>&1; }
row() { grep "^runs/$1  *$2 " list >/dev/null || fail "no row of runs/$1 as $2: $(cat list)"; }

train --out runs/good --set checkpoint.best=accuracy --set "data.test={format: synthetic, samples: 32, shape: [3, 8, 8], classes: 4}" || fail "train fails: $(cat log)"
train --out runs/bad --set train.optimizer.lr=1e30 && fail "a rate of 1e30 trains"
"$CONVOY" train job.yaml --threads 1 --progress none --out runs/sub/live --set train.epochs=1000000 >log 2>&1 &
pid=$!
tries=0
until grep -q '"kind": "step"' runs/sub/live/metrics.jsonl 2>/dev/null || [ $tries -gt 200 ]; do sleep 0.1; tries=$((tries + 1)); done
mkdir -p runs/empty runs/foreign runs/damaged
echo 'all is well' >runs/foreign/STATUS
echo 'train: [' >runs/damaged/job.resolved.yaml
head -c 500 /dev/urandom >runs/damaged/metrics.jsonl

"$CONVOY" ls >list 2>err || fail "ls fails: $(cat err)"
row good finished
row bad failed
row sub/live running
row damaged unknown
grep -q 'val_accuracy [0-9.]* ([0-9]*) ' list || fail "no best score: $(cat list)"
grep -A1 '^runs/bad ' list | grep -q '^    the loss of step' || fail "no reason of the failure: $(cat list)"
grep -A1 '^runs/damaged ' list | grep -q 'job.resolved.yaml' || fail "the damaged file is not named: $(cat list)"
grep -q 'foreign\|empty' list && fail "a foreign folder is a run: $(cat list)"
[ "$(wc -l <list)" = 7 ] || fail "not four runs and three reasons: $(cat list)"
kill -KILL $pid
wait $pid 2>/dev/null
"$CONVOY" ls runs/sub >list || fail "ls of a folder fails"
row sub/live killed
"$CONVOY" ls runs/good --json >json || fail "ls --json fails"
grep -q '^{"runs": \[{"folder": "runs/good", "state": "finished", .*"metric": "val_accuracy", .*"nodes": 1, "ranks": 1, .*"unreadable": \[\]}$' json || fail "--json: $(cat json)"
"$CONVOY" ls runs/empty | grep -q 'there are no runs below runs/empty' || fail "an empty folder"
refused 'nowhere: no such folder' "$CONVOY" ls nowhere

# One page about several runs.
"$CONVOY" report runs/good runs/bad --out both.html >out || fail "report of two runs fails"
contains out 'the page is both.html' && contains both.html '<th>train.optimizer.lr</th><td>0.01</td><td>1e+30</td>' || fail "the page lacks what differs: $(cat out)"
contains both.html '<b>Training loss over time</b>' || fail "the page lacks a curve"
refused 'nowhere: not the folder of a run' "$CONVOY" report runs/good nowhere
refused 'is runs/good/report.html' "$CONVOY" report runs/good --out both.html

"$CONVOY" test runs/good >/dev/null || fail "test fails"
"$CONVOY" inspect runs/good >inspected || fail "inspect fails"
sed -n 2p inspected | grep -q '^finished at step 6 of 6, epoch 2 of 2, .* 1 rank on 1 node' || fail "inspect does not begin with the state: $(head inspected)"
sed -n 3p inspected | grep -q '^scores after epoch 2: train loss [0-9.]*, val loss [0-9.]*, val accuracy [0-9.]*$' || fail "no scores: $(head inspected)"
sed -n 4p inspected | grep -q '^best val_accuracy: [0-9.]*, after epoch [12]$' || fail "no best score: $(head inspected)"
sed -n 5p inspected | grep -q '^test.json, step-0000000[0-9]: loss [0-9.]*, accuracy [0-9.]*' || fail "no scores of the test: $(head inspected)"
exit $failed
