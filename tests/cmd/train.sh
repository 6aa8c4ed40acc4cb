#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich mpi asan onednn3 minimal
# train.sh: a small training from the command, on one rank and on two: the same result; test, predict, inspect, report;
# stop by a signal and resume.
. "$CONVOY_SOURCE/tests/shell.inc"

cat >job.yaml <<END
model: cifar-convnet
data:
  train: {format: synthetic, samples: 130, shape: [3, 12, 12]}
  val: 20%
  test: {format: synthetic, samples: 37, shape: [3, 12, 12]}
train: {batch: 16, epochs: 2, optimizer: {name: adam, lr: 0.001}, precise: true}
log: {every: 1}
END
# precise: if rounding leaves a gradient of zero slightly above zero, Adam makes a whole step of it
# This run starts MPI as a user does, without the settings of tests/CMakeLists.txt that shorten the start.
env -u OMPI_MCA_ess_singleton_isolated -u OMPI_MCA_pml -u OMPI_MCA_btl "$CONVOY" train job.yaml --threads 1 --out one --progress plain >log 2>&1 || fail "train fails: $(cat log)"
grep -q '^done after 14 steps' log || fail "no closing line: $(cat log)"
# The loss of the last line, and that of ls, is the mean of the last epoch; the last batch has 8 samples.
mean=$(sed -n 's/^epoch 2: .*, train loss \([0-9.]*\).*/\1/p' log)
sed -n 's/^done .*; train loss \([0-9.]*\);.*/\1/p' log | awk -v m="$mean" '{ exit !(m > 0 && ($1 - m) ^ 2 < 1e-6) }' || fail "not the loss of the epoch: $(cat log)"
"$CONVOY" ls . --json | sed -n 's/.*"last_loss": \([0-9.]*\).*/\1/p' | awk -v m="$mean" '{ exit !(m > 0 && ($1 - m) ^ 2 < 1e-6) }' || fail "ls has another loss: $("$CONVOY" ls .)"
# The cost of checkpoints is summed up only if they blocked training for a second.
stall=$(tr ',{}' '\n' <one/metrics.jsonl | awk '/"seconds_stall"/ { s += $2 } END { print s + 0 }')
if awk -v s="$stall" 'BEGIN { exit !(s < 1) }'; then
    grep -q 'Young and Daly' log && fail "a short run ends with a line about checkpoints: $(cat log)"
fi
# A training alone on a terminal has a live line, which each new one erases, whatever MPI_Init has put into the
# environment. It has the part of an epoch in two decimals.
if command -v script >/dev/null; then
    script -qec "'$CONVOY' train job.yaml --threads 1 --out live --set train.epochs=0.4" /dev/null >log 2>&1 </dev/null || fail "train fails on a terminal: $(cat log)"
    grep -q "$(printf '\r\033')" log || fail "no live line on a terminal: $(cat log)"
    grep -q 'step 1/3  epoch 0.14/0.43  ' log || fail "the live line has other epochs: $(cat log)"
fi
# shellcheck disable=SC2086
env -u OMPI_MCA_pml -u OMPI_MCA_btl $MPIEXEC_N 2 "$CONVOY" train job.yaml --threads 1 --out two >log 2>&1 || fail "train fails on two ranks: $(cat log)"
for file in job.resolved.yaml plan.json metrics.jsonl STATUS report.html; do
    [ -s "one/$file" ] || fail "no $file"
done
last_loss() { grep '"kind": "step"' "$1/metrics.jsonl" | tail -n 1 | sed 's/.*"loss": \([0-9.e-]*\).*/\1/'; }
awk -v a="$(last_loss one)" -v b="$(last_loss two)" 'BEGIN { exit !(a > 0 && (a - b) ^ 2 < 1e-6) }' ||
    fail "last loss $(last_loss one) on one rank, $(last_loss two) on two"
# The wait for the slowest rank is a part of the exposed time. It is zero if rank 0 is the slowest itself; a single rank
# waits for no other.
for run in one two; do
    tr ',{}' '\n' <"$run/metrics.jsonl" | awk -v run="$run" '
        /"seconds_exposed_comm"/ { exposed += $2; n++ } /"seconds_hidden_comm"/ { hidden += $2 }
        /"seconds_wait_slowest"/ { bad += $2 < 0; waits += $2 } /"seconds_spread"/ { spread += $2 }
        END { exit !(n > 5 && bad == 0 && waits <= exposed && waits <= spread + 1e-6 && (run == "one" ? spread + hidden < 1e-6 : spread > 1e-6)) }' || fail "$run: the split of a step: $(head -n 3 "$run/metrics.jsonl")"
done

"$CONVOY" train job.yaml --out one >log 2>&1 && fail "an existing folder is taken"
grep -q 'one exists already' log || fail "the folder is not named: $(cat log)"
# A wrong job leaves no folder, so that the corrected one can have the name.
for set in train.metrics=acc checkpoint.best=acurracy 'train.stop={metric: rmse, patience: 2}' model.name=lent 'train.groups=[{match: none}]'; do
    "$CONVOY" train job.yaml --out wrong --set "$set" >log 2>&1 && fail "--set $set is accepted"
    [ ! -e wrong ] || { fail "--set $set leaves a folder behind"; rm -rf wrong; }
done
(cd "$work" && "$CONVOY" train job.yaml --set train.steps=1 --set train.epochs= >log 2>&1 && [ -d runs/job-001 ]) || fail "no runs/job-001: $(cat log)"

"$CONVOY" test one --json >score || fail "test fails"
grep -q '"samples": 37' score || fail "not all samples are scored: $(cat score)"
# shellcheck disable=SC2086
$MPIEXEC_N 3 "$CONVOY" test one >log || fail "test fails on three ranks"
grep -q '^true class  *predicted class, in the order of the rows$' log || fail "the columns of the confusion matrix have no head: $(cat log)"
grep -q '^37 samples of ' log || fail "three ranks: $(cat log)"

# Samples that chose the checkpoint, or were trained on, are no test.
"$CONVOY" train job.yaml --threads 1 --out chosen --set data.val='{format: synthetic, samples: 30, shape: [3, 12, 12]}' --set checkpoint.best=loss --set train.epochs=1 >log 2>&1 || fail "train with val: $(cat log)"
"$CONVOY" test chosen --data '{format: synthetic, samples: 30, shape: [3, 12, 12]}' >log && contains log 'data.val of the job, which chose the checkpoint' || fail "the samples that chose are taken for a test: $(cat log)"
"$CONVOY" test chosen --data '{format: synthetic, samples: 130, shape: [3, 12, 12]}' >log && contains log 'data.train of the job: this is no test' || fail "the training samples are taken for a test: $(cat log)"
"$CONVOY" test chosen >log && ! contains log 'no test' || fail "the test set is no test: $(cat log)"

source='{format: synthetic, samples: 11, shape: [3, 12, 12]}'
"$CONVOY" predict one --data "$source" --out a.csv || fail "predict fails"
# shellcheck disable=SC2086
$MPIEXEC_N 2 "$CONVOY" predict one --data "$source" --out b.csv || fail "predict fails on two ranks"
[ "$(wc -l <a.csv)" = 11 ] || fail "not a row for each sample: $(cat a.csv)"
paste -d, a.csv b.csv | awk -F, '{ for (i = 1; i <= 10; i++) if (($i - $(i + 10)) ^ 2 > 1e-8) exit 1 }' || fail "two ranks predict other values"
"$CONVOY" predict one --data "$source" --out a.npy && [ "$(wc -c <a.npy)" = $((128 + 11 * 10 * 4)) ] || fail "the .npy has another size: $(wc -c <a.npy)"
weights=$(ls -d one/checkpoints/step-*/ | tail -n 1)weights.safetensors
"$CONVOY" predict "$weights" --job job.yaml --data "$source" --out c.csv && cmp -s a.csv c.csv || fail "weights alone predict other values"

"$CONVOY" inspect one | grep -q 'newest valid checkpoint' || fail "inspect of a run"
"$CONVOY" inspect one/checkpoints | grep -q 'newest valid checkpoint' || fail "inspect of a run's checkpoints"
"$CONVOY" inspect "$weights" | grep -q 'conv1.weight  *F32  *32x3x5x5' || fail "inspect of weights"
"$CONVOY" inspect "$(dirname "$weights")" | grep -q 'step 14, valid' || fail "inspect of a checkpoint"
"$CONVOY" inspect "$source" | grep -q '11 samples' || fail "inspect of data"
"$CONVOY" pack "$source" packed | grep -q '11 samples of 10 classes' || fail "pack"
"$CONVOY" inspect packed | grep -q 'format pack' || fail "inspect of a packed set"
"$CONVOY" predict one --data packed --out d.csv && cmp -s a.csv d.csv || fail "packed data give other values"

# Two classes: the page draws what the test writes.
"$CONVOY" train job.yaml --threads 1 --out pair --set data.val= --set 'data.train={format: synthetic, samples: 48, shape: [3, 12, 12], classes: 2}' \
    --set 'data.test={format: synthetic, samples: 40, shape: [3, 12, 12], classes: 2}' >log 2>&1 || fail "two classes: $(cat log)"
grep -q '<b>ROC' pair/report.html && fail "a curve from nowhere"
"$CONVOY" test pair >log || fail "test fails for two classes"
grep -q '^balanced_accuracy ' log || fail "no balanced accuracy: $(cat log)"
grep -q '<b>ROC' pair/report.html || fail "the page lacks the ROC curve"

rm one/report.html
"$CONVOY" report one >/dev/null && [ -s one/report.html ] || fail "report"

# A signal during the run: exit code 75, then --resume completes it.
"$CONVOY" train job.yaml --threads 1 --set train.epochs=100000 --set log.every=50 --out stopped >log 2>&1 &
pid=$!
tries=0
until grep -q 'first step' log || [ $tries -gt 1200 ]; do sleep 0.1; tries=$((tries + 1)); done
kill -TERM $pid
wait $pid
code=$?
[ $code = 75 ] || fail "exit code $code after SIGTERM: $(cat log)"
grep -q '^stopped' stopped/STATUS || fail "STATUS: $(cat stopped/STATUS)"
at=$(sed -n 's/^stopped step \([0-9]*\) .*/\1/p' stopped/STATUS)
grep '"kind": "step"' stopped/metrics.jsonl | tail -n 1 | grep -q "\"step\": $at," || fail "step $at, the last one, has no line: $(tail -n 2 stopped/metrics.jsonl)"
"$CONVOY" train job.yaml --threads 1 --set train.epochs=100000 --set train.steps=$((at + 3)) --set train.epochs= --out stopped --resume >log 2>&1 ||
    fail "resume fails: $(cat log)"
grep -q "^done after $((at + 3)) steps" log || fail "resume: $(cat log)"

# An end of the allocation that is past is none, and the variable is named. A second start that takes no step does not
# end as one that is to be started again.
ended=$(($(date +%s) - 3600))
SLURM_JOB_END_TIME=$ended "$CONVOY" train job.yaml --threads 1 --out past >log 2>&1 || fail "an end in the past ends the run: $(cat log)"
contains log "SLURM_JOB_END_TIME=$ended was 360" || fail "the variable is not named: $(cat log)"
# A length counts from the start of the session. The session of the test itself may be that of a process that is not seen
# here (a container), so this one has its own.
setsid -w sh -c 'sleep 2; PBS_WALLTIME=1 "$1" train job.yaml --threads 1 --out past_length >log 2>&1; echo $? >code; ps -o etimes= -p $$ >age' sh "$CONVOY"
if [ "$(tr -d ' ' <age)" -ge 2 ]; then
    [ "$(cat code)" = 0 ] || fail "a length that is past ends the run: $(cat log)"
    contains log "the end of the allocation by PBS_WALLTIME=1 was " || fail "PBS_WALLTIME is not named: $(cat log)"
fi
CONVOY_JOB_END=$(($(date +%s) + 2000)) SLURM_JOB_END_TIME=$(($(date +%s) + 1000)) "$CONVOY" train job.yaml --threads 1 --out two_ends >log 2>&1 || fail "two ends: $(cat log)"
contains log "the allocation ends by CONVOY_JOB_END, which is 1000 s later than SLURM_JOB_END_TIME" || fail "ends of two jobs: $(cat log)"
grep -q '^the allocation ends at .*, in [0-9]* s (CONVOY_JOB_END): ' log || fail "the end has no source: $(cat log)"
CONVOY_JOB_END=$ended SLURM_JOB_END_TIME=$(($(date +%s) + 2)) "$CONVOY" train job.yaml --threads 1 --out soon >log 2>&1
code=$?
[ $code = 75 ] && contains log "CONVOY_JOB_END=$ended was" || fail "exit code $code if the next variable has an end: $(cat log)"
refused 'the run stopped before its first step after --resume' "$CONVOY" train job.yaml --threads 1 --out soon --resume --walltime 00:00:02
SLURM_JOB_END_TIME=$(date +%s)000 refused '000 is not a time: expected seconds since 1970, as `date +%s` prints them (are these milliseconds?)' "$CONVOY" train job.yaml --out bad
exit $failed
