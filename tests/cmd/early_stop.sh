#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# early_stop.sh: what a run remembers of its scores when it ends and is resumed: a run that stopped early has nothing to
# do, the best set keeps its mark, scores of another metric are not compared with it, and the figures of an interrupted
# epoch are those of the whole epoch.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
train() { "$CONVOY" train job.yaml --threads 1 --progress none "$@" >log 2>&1 || fail "train $* fails: $(cat log)"; }
state() { sed -n "s/.*\"$2\": *\([^,}]*\).*/\1/p" "$(find "$1/checkpoints" -path "*$3/state.json" | sort | tail -n 1)"; }

# A run in which nothing improves stops, and stays stopped until it gets more patience.
stopping() { patience=$1; shift; train --out stopped --set train.optimizer.lr=1e-12 --set "train.stop={metric: accuracy, patience: $patience}" --set train.epochs=50 "$@"; }
stopping 2
grep -Eq '^finished step [0-9]+ of 150' stopped/STATUS || fail "no early stop: $(cat stopped/STATUS)"
why='early stop in epoch [0-9]* of 50: the validation accuracy has not become better than [0-9.e-]* for 2 epochs (train.stop)'
grep -q "^$why\$" log || fail "the log does not say why it stopped: $(cat log)"
grep -q "^finished step [0-9]* of 150 at [^ ]*: $why\$" stopped/STATUS || fail "STATUS does not say why: $(cat stopped/STATUS)"
grep -q "^{\"kind\": \"early_stop\", .*\"metric\": \"accuracy\", .*\"text\": \"$why\"}" stopped/metrics.jsonl || fail "metrics.jsonl does not say why: $(tail -n 3 stopped/metrics.jsonl)"
grep -q "It ended at step [0-9]* of 150: $why" stopped/report.html || fail "the report does not say why"
contains log '; validation loss ' || fail "the log has no validation loss: $(cat log)"
at=$(sed 's/^finished step \([0-9]*\) .*/\1/' stopped/STATUS)
lines=$(wc -l <stopped/metrics.jsonl)
[ "$at" -lt 100 ] || fail "stopped late: $(cat stopped/STATUS)"
stopping 2 --resume
grep -q "^finished step $at of 150" stopped/STATUS || fail "a run that stopped early trains on: $(cat stopped/STATUS)"
grep -q "^finished step $at of 150 at [^ ]*: $why\$" stopped/STATUS || fail "after a resume STATUS does not say why: $(cat stopped/STATUS)"
[ "$(wc -l <stopped/metrics.jsonl)" = "$lines" ] || fail "a resume with nothing to do writes: $(tail -n 2 stopped/metrics.jsonl)"
stopping 4 --resume
grep -q "^finished step $((at + 6)) of 150" stopped/STATUS || fail "two more epochs of patience are not two more epochs: $(cat stopped/STATUS), behind $at"

# A run that comes to its last step did not stop early, although its patience ends there.
train --out last --set train.optimizer.lr=1e-12 --set 'train.stop={metric: accuracy, patience: 2}' --set train.epochs=3
grep -q '^finished step 9 of 9 at [^ ]*$' last/STATUS && ! grep -q 'early' log last/metrics.jsonl last/report.html || fail "the last step counts as an early stop: $(cat last/STATUS log)"

# The best set: if a run was killed before it marked the set, the resumed run marks it. Another metric starts again
# without a best set, and so does patience.
train --out best --set checkpoint.best=loss --set 'checkpoint.every=1 epoch'
marked=$(cat best/checkpoints/best)
[ "$marked" = step-00000006 ] && [ "$(state best is_best 6)" = true ] || fail "the last epoch is not the best: $marked, $(state best is_best 6)"
echo step-00000003 >best/checkpoints/best
train --out best --set checkpoint.best=loss --set 'checkpoint.every=1 epoch' --resume
[ "$(cat best/checkpoints/best)" = "$marked" ] || fail "the best set is not marked: $(cat best/checkpoints/best)"
train --out best --set checkpoint.best=accuracy --set 'checkpoint.every=1 epoch' --set train.epochs=3 --set train.optimizer.lr=1e-12 --resume
[ "$(cat best/checkpoints/best)" = step-00000009 ] || fail "an accuracy is compared with a loss: $(cat best/checkpoints/best)"

# A score that the validation data do not define is never the best and counts as no progress, which is said once with
# its reason; so it is in a search. iou is defined as soon as the network predicts class 1, after the second epoch.
printf 'x,label\n2,1\n1,1\n2,1\n-1,0\n' >two.csv
printf 'x,label\n1,0\n-1,0\n' >one.csv
cat >undefined.yaml <<'Y'
model: {layers: [{fc: {channels: 2, init: constant}}]}
data: {train: {path: two.csv, label: label}, val: {path: one.csv, label: label, classes: 2}, normalize: none}
train: {batch: 4, epochs: 6, optimizer: {name: sgd, lr: 0.5}, schedule: {name: constant, warmup: 2 steps}, metrics: [auc, {name: iou, leave_out: [0]}]}
checkpoint: {best: auc, every: 1 epoch, keep: 10}
Y
undefined() { out=$1; shift; "$CONVOY" train undefined.yaml --threads 1 --progress none --out "$out" "$@" >log 2>&1 || fail "train $out fails: $(cat log)"; }
undefined never --set 'train.stop={metric: val_auc, patience: 2}'
why='the validation auc is undefined: only one class occurs: no sample that counts is of class 1'
[ "$(grep -c "epoch 1: $why" log)" = 1 ] && [ "$(grep -c "$why" log)" = 1 ] || fail "it is not said once why auc is undefined: $(cat log)"
contains log 'checkpoint.best and train.stop depend on it'
contains log 'early stop in epoch 2 of 6: the validation auc has not been finite for 2 epochs (train.stop)'
contains log 'no checkpoint is marked as the best'
[ ! -e never/checkpoints/best ] || fail "a checkpoint with an undefined score is the best: $(cat never/checkpoints/best)"
[ "$(state never best 2)" = null ] && grep -q '"val_auc": null' never/metrics.jsonl || fail "an undefined score is no null: $(cat never/metrics.jsonl)"
"$CONVOY" ls . >log && grep -q '^./never .* val_auc - (-) ' log || fail "the list has another score than the one that was asked for: $(cat log)"
"$CONVOY" test never --data one.csv >log 2>&1 && contains log 'one.csv: the auc is undefined: only one class occurs' || fail "test gives no reason: $(cat log)"
undefined later --set checkpoint.best=iou --set train.epochs=3
grep -q '"epoch": 1, .*"val_iou": null' later/metrics.jsonl && grep -q '"epoch": 2, .*"val_iou": 0' later/metrics.jsonl || fail "iou has another course: $(cat later/metrics.jsonl)"
[ "$(cat later/checkpoints/best)" = step-00000002 ] && ! grep -q 'no checkpoint is marked' log || fail "the first epoch with a number is not the best: $(cat later/checkpoints/best log)"
# Two scores of one metric: each is given, watched and ranked by its own name, and has details of its own.
undefined several --set data.val=two.csv --set train.epochs=2 --set 'train.metrics=[{name: auc, positive: 1}, {name: auc, positive: 0}]' --set checkpoint.best=val_auc_positive_0 --set 'train.stop={metric: auc_positive_1, patience: 1}'
grep -q '"val_auc_positive_1": [0-9.]*, "val_auc_positive_0": [0-9]' several/metrics.jsonl || fail "two scores of one metric are not two: $(cat several/metrics.jsonl)"
[ "$(cat several/checkpoints/best)" = step-00000002 ] || fail "the best by the second of two scores is not the second epoch: $(cat several/checkpoints/best log)"
"$CONVOY" ls . >log && grep -q '^./several .* val_auc_positive_0 1 (2) ' log || fail "a score with options in its name is not known: $(cat log)"
"$CONVOY" test several --data two.csv >log 2>&1 && grep -q '"auc_positive_0": {"roc"' several/test.json && [ "$(grep -o '"roc"' several/test.json | wc -l)" = 2 ] || fail "the second score has no details of its own: $(cat log several/test.json)"

printf 'job: undefined.yaml\nspace: {train.optimizer.lr: [0.1, 0.2]}\nsearch: grid\nmetric: auc\n' >undefined_search.yaml
"$CONVOY" sweep undefined_search.yaml --threads 1 --set train.epochs=1 --out searched >log 2>&1 && fail "a search without a score succeeds: $(cat log)"
contains log 'done: 0 of 2 trials have a score' && contains log 'no trial has a finite score, so none is the best' && [ ! -e searched/best.yaml ] || fail "a search without a score has a best trial: $(cat log)"

# An interrupted epoch: its seconds are those of both parts.
train --out parts --set 'checkpoint.every=1 steps' --set checkpoint.keep=100
before=$(state parts epoch_train_seconds 2)
rm -r parts/checkpoints/step-0000000[3-6]
train --out parts --resume
sed -n 's/.*"epoch": 1, .*"images_per_s": \([0-9.]*\).*/\1/p' parts/metrics.jsonl | awk -v s="$before" '{ rate = $1 } END { exit !(rate > 0 && s > 0 && rate <= 48 / s) }' ||
    fail "the first epoch is faster than its first two steps, $before s: $(grep epoch parts/metrics.jsonl)"

# A folder that was prepared for the run counts as no folder, and stays if the run does not begin.
mkdir prepared
refused 'nowhere.csv: cannot be opened' "$CONVOY" train job.yaml --out prepared --set 'data.train={format: csv, path: nowhere.csv}'
[ -d prepared ] || fail "the folder is removed"
train --out prepared
exit $failed
