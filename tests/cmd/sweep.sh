#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich asan
# seconds: 60
# sweep.sh: a hyperparameter search gives the same ranking on 1, 2 and 4 ranks and after kill -9 in the middle; trials
# are run folders; a failed trial is kept and the rest goes on; a stop and the end of the allocation save all; mistakes
# are named before the first trial.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
cat >sweep.yaml <<'Y'
job: job.yaml
set: {train.metrics: [accuracy], log.every: 100}
space:
  train.optimizer.lr: {log_uniform: [1e-3, 1e-1], points: 3}
  train.seed: [1, 2]
metric: val_loss
Y

# sweep RANKS FOLDER [options]: returns the exit code; a hang is cut off.
sweep() {
    ranks=$1 folder=$2
    shift 2
    timeout 120 $MPIEXEC_N "$ranks" "$CONVOY" sweep sweep.yaml --out "$folder" --threads 1 "$@" >log 2>err
}
# ranking FOLDER: rank, trial, score and values, without times.
ranking() { tr '{' '\n' <"$1/sweep.json" | sed -n 's/, "seconds": [^,}]*//; /"rank"/p'; }
count() { grep -o "\"state\": \"$2\"" "$1/sweep.json" | wc -l; }

# The same on any number of ranks.
for n in 1 2 4; do
    sweep $n on$n || fail "on $n ranks: code $?, $(cat log err)"
    ranking on$n >ranking$n
    [ "$(wc -l <ranking$n)" = 6 ] || fail "on $n ranks not all trials have a rank: $(cat on$n/sweep.json)"
    cmp -s ranking1 ranking$n || fail "on $n ranks the ranking differs: $(diff ranking1 ranking$n)"
done
grep -q '^   1 .*' log || fail "there is no table: $(cat log)"
best=$(sed -n 's/.*"trial": \([0-9]*\),.*"rank": 1,.*/\1/p' ranking1)
grep -q "^the best is trial $best: " log || fail "the best trial, $best, is not named: $(cat log)"

# A trial is a run folder, best.yaml is a job, and the page links the trials.
sed 's/^name:.*//' "on1/trial-000$best/job.resolved.yaml" >expected
grep -v '^#' on1/best.yaml | sed 's/^name:.*//' | cmp -s - expected || fail "best.yaml is not the job of trial $best"
"$CONVOY" train on1/best.yaml --threads 1 --progress none --out again >log 2>&1 || fail "best.yaml is no job: $(cat log)"
same_tensors "$(find again/checkpoints -name '*.safetensors' | sort | tail -n 1)" \
    "$(find on1/trial-000$best/checkpoints -name '*.safetensors' | sort | tail -n 1)" || fail "best.yaml trains another network"
"$CONVOY" test "on1/trial-000$best" --data val --threads 1 >log 2>&1 || "$CONVOY" inspect "on1/trial-000$best" >log 2>&1 || fail "a trial is no run: $(cat log)"
for text in 'Importance of the keys' "href=\"trial-000$best/report.html\"" '<svg' 'train.optimizer.lr'; do
    contains on1/sweep.html "$text" || fail "sweep.html lacks: $text"
done
[ -s on1/trial-0001/report.html ] || fail "a trial has no page"
rm on1/sweep.html
"$CONVOY" report on1 >log && [ -s on1/sweep.html ] || fail "report does not write the page again: $(cat log)"

# Killed in the middle, and resumed: nothing that was finished is trained again, and the ranking is the same. Each rank
# notes its process number.
cat >rank.sh <<'Y'
echo $$ >"$PIDS/$$"
exec "$CONVOY" sweep sweep.yaml --threads 1 --out "$@"
Y
start() {
    rm -rf pids
    mkdir pids
    PIDS=$work/pids timeout 120 $MPIEXEC_N 2 sh rank.sh "$@" >log 2>err &
    pid=$!
    tries=0
    until grep -q '"state": "finished"' "$1/sweep.json" 2>/dev/null && grep -q '"state": "running"' "$1/sweep.json"; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || { fail "no trial ends: $(cat log err)"; break; }
        sleep 0.05
    done
}
start killed --set train.epochs=12
for p in pids/*; do kill -9 "${p#pids/}"; done
wait $pid
sweep 1 whole --set train.epochs=12 || fail "whole: $(cat err)"
[ "$(count killed waiting)" -gt 0 ] || fail "the search had ended before it was killed: $(cat killed/sweep.json)"
done_before=$(count killed finished)
sweep 2 killed --set train.epochs=12 --resume || fail "resume after a kill: code $?, $(cat log err)"
[ "$(grep -c '^trial' log)" = $((6 - done_before)) ] || fail "$done_before trials were finished, and then: $(cat log)"
ranking killed >ranking_killed
ranking whole >ranking_whole
cmp -s ranking_killed ranking_whole || fail "a killed search gives another ranking: $(diff ranking_whole ranking_killed)"

# A stop saves all trials; so does the end of the allocation, and no trial is begun that cannot finish.
start stopped --set train.epochs=12
for p in pids/*; do kill -USR1 "${p#pids/}"; break; done
wait $pid
contains log 'all is saved in stopped' || fail "a stop is not noticed: $(cat log err)"
[ "$(count stopped running)" = 0 ] && [ "$(count stopped waiting)" -gt 0 ] || fail "after a stop: $(cat stopped/sweep.json)"
sweep 2 stopped --set train.epochs=12 --resume || fail "resume after a stop: $(cat log err)"
ranking stopped | cmp -s - ranking_whole || fail "a stopped search gives another ranking"
"$CONVOY" sweep sweep.yaml --out short --threads 1 --walltime 00:00:02 >log 2>&1
[ $? = 75 ] || fail "the end of the allocation does not end the search: $(cat log)"
sweep 1 short --resume || fail "resume after the allocation: $(cat log err)"
ranking short | cmp -s - ranking1 || fail "a search in two allocations gives another ranking"

# Successive halving, two ranks for a trial, one rank left over: the rungs stop, and the best goes to the end.
sed 's/^metric.*/search: {successive_halving: {trials: 4, eta: 2, min: 1 epoch, max: 4 epochs}}/' sweep.yaml >halving.yaml
printf 'metric: accuracy\nranks_per_trial: 2\n' >>halving.yaml
for n in 3 5; do
    timeout 120 $MPIEXEC_N $n "$CONVOY" sweep halving.yaml --out halving$n --threads 1 >log 2>err || fail "halving on $n ranks: $(cat log err)"
    contains log 'rank 0 is left over and only coordinates' || fail "left-over ranks are not named: $(cat log)"
    ranking halving$n >ranking_halving$n
done
cmp -s ranking_halving3 ranking_halving5 || fail "halving differs: $(diff ranking_halving3 ranking_halving5)"
[ "$(cat halving3/trial-*/STATUS | grep -c '^finished step 12 of 12')" = 1 ] || fail "not one trial goes to the end: $(cat halving3/trial-*/STATUS)"
[ "$(cat halving3/trial-*/STATUS | grep -c '^stopped step 3 of 12')" = 2 ] || fail "not two trials end after one epoch: $(cat halving3/trial-*/STATUS)"

# A trial that fails is kept with its error.
sed 's/{log_uniform.*/[0.01, 1e30]/' sweep.yaml >broken.yaml
timeout 120 "$CONVOY" sweep broken.yaml --out broken --threads 1 >log 2>err || fail "a failed trial ends the search: $(cat log err)"
[ "$(count broken failed)" = 2 ] && [ "$(count broken finished)" = 2 ] || fail "failed trials: $(cat broken/sweep.json)"
contains broken/sweep.json '"error": "the loss of step' || fail "the error is not kept: $(cat broken/sweep.json)"
contains broken/sweep.html 'failed: the loss of step' || fail "the page does not show the error"

# Mistakes.
mistake() { # TEXT SPACE-OR-OTHER-LINES
    printf 'job: job.yaml\nmetric: loss\n%s\n' "$2" >mistake.yaml
    refused "$1" "$CONVOY" sweep mistake.yaml --out mistake --threads 1
    [ ! -e mistake ] || fail "a folder is left by: $2"
}
mistake 'unknown key "bacth"; did you mean "batch"?' 'space: {train.bacth: [1, 2]}'
mistake 'space is empty' 'space: {}'
mistake 'space.train.batch is an empty list' 'space: {train.batch: []}'
mistake 'mistake.yaml:3:9: space.train.batch: --set train.batch=-1: train: batch is "-1"' 'space: {train.batch: [8, -1]}'
mistake 'momentum is "3", expected' 'space: {train.optimizer.momentum: [0.5, 3]}'
mistake 'a grid needs points of it' 'space: {train.optimizer.lr: {uniform: [0.1, 1]}}'
mistake 'has 4 points, but there are only 2 integers' 'space: {train.seed: {int_uniform: [1, 2], points: 4}}'
mistake 'lr is "-1", expected >0' "$(printf 'space: {train.optimizer.lr: {uniform: [-1, 1]}}\nsearch: {random: 3}')"
mistake 'ranks_per_trial is 4, but there is only 1 rank' "$(printf 'space: {train.batch: [8]}\nranks_per_trial: 4')"
mistake 'has no validation data' "$(printf 'space: {train.batch: [8]}\nset: {data.val: null}')"
mistake "did you mean 'random'?" "$(printf 'space: {train.batch: [8]}\nsearch: {randm: 3}')"
mistake 'space.train.batch is fixed by the override train.batch=4' "$(printf 'space: {train.batch: [8]}\nset: {train.batch: 4}')"
mistake 'log.trace is steps.json, and all trials would write that file' "$(printf 'space: {train.batch: [8]}\nset: {log.trace: steps.json}')"
mistake 'train.steps is 4, but the search counts in epochs' "$(printf 'space: {train.batch: [8]}\nset: {train.epochs: null, train.steps: 4}\nsearch: {hyperband: {max: 4 epochs}}')"
sed 's/^metric.*/metric: acuracy/' sweep.yaml >mistake.yaml
refused "validation has no score 'acuracy', did you mean 'accuracy'?" "$CONVOY" sweep mistake.yaml --out mistake --threads 1
sed 's/points: 3/points: 4/' sweep.yaml >mistake.yaml
refused 'on1 holds another search: its space is' "$CONVOY" sweep mistake.yaml --out on1 --resume --threads 1
refused 'on1 holds a search already' "$CONVOY" sweep sweep.yaml --out on1 --threads 1
refused 'needs --out' "$CONVOY" sweep sweep.yaml
exit $failed
