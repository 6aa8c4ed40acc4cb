#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# seconds: 100
# level: 2
# sweep.sh: a hyperparameter search gives the same ranking on 1, 2 and 4 ranks and after kill -9 in the middle, and so
# does a population; trials are run folders; a failed trial is kept, the rest goes on, and --retry trains it again; a
# stop and the end of the allocation save all; mistakes are named before the first trial.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
cat >sweep.yaml <<'Y'
job: job.yaml
set: {train.metrics: [accuracy], log.every: 100}
space:
  train.optimizer.lr: {log_uniform: [1e-3, 1e-1], points: 3}
  train.seed: [1, 2]
metric: val_loss
Y

sweep=sweep.yaml
# sweep RANKS FOLDER [options]: returns the exit code; a hang is cut off.
sweep() {
    ranks=$1 folder=$2
    shift 2
    timeout 120 $MPIEXEC_N "$ranks" "$CONVOY" sweep $sweep --out "$folder" --threads 1 "$@" >log 2>err
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
echo $$ >"$PIDS-${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}"
exec "$CONVOY" sweep "$SWEEP" --threads 1 --out "$@"
Y
until='"state": "finished"' # what sweep.json has when start returns, besides a running trial
nstart=2                    # ranks that start starts
start() {
    rm -rf pids
    mkdir pids
    SWEEP=$sweep PIDS=$work/pids timeout 120 $MPIEXEC_N $nstart sh rank.sh "$@" >log 2>err &
    pid=$!
    tries=0
    until grep -q "$until" "$1/sweep.json" 2>/dev/null && grep -q '"state": "running"' "$1/sweep.json"; do
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

# A signal to any rank of a group stops all groups.
sed 's/^metric/ranks_per_trial: 2\nmetric/' sweep.yaml >pairs.yaml
sweep=pairs.yaml nstart=4 until='"state": "running".*"state": "running"'
start pairs --set train.epochs=300
kill -USR1 "$(cat pids-3)"
wait $pid
contains log 'all is saved in pairs' || fail "a signal to the last rank is not noticed: $(cat log err)"
contains log '--out pairs --set train.epochs=300 --resume' || fail "the way to continue lacks --set: $(cat log)"
[ "$(count pairs waiting)" = 6 ] || fail "a signal to the last rank stops only one group: $(cat pairs/sweep.json)"
sweep=sweep.yaml nstart=2 until='"state": "finished"'

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
"$CONVOY" ls broken >/dev/null || fail "the folder of a search with failed trials cannot be listed"
contains log '--out broken --retry' || fail "the way to try again is not said: $(cat log)"

# A trial that has all its scores has ended.
cp -r on1 edited
sed '0,/"state": "finished"/s//"state": "waiting"/' on1/sweep.json >edited/sweep.json
refused 'has all its scores and is not finished: the file is damaged' timeout 60 "$CONVOY" sweep sweep.yaml --out edited --threads 1 --resume

# --retry trains failed trials again, and only those. Here a file that the second trial needs is missing at first.
first=$(find on1/trial-0001/checkpoints -name 'weights.safetensors' | sort | head -n 1)
cp "$first" first.safetensors
sed 's/log_uniform.*/log_uniform: [1e-3, 1e-1], points: 2}/; s/train.seed: .*/train.init: [first.safetensors, second.safetensors]/' sweep.yaml >missing.yaml
timeout 120 "$CONVOY" sweep missing.yaml --out missing --threads 1 >log 2>err
[ "$(count missing failed)" = 2 ] && [ "$(count missing finished)" = 2 ] || fail "missing file: $(cat missing/sweep.json)"
contains log 'trial 2 failed: ' || fail "the table does not show the error: $(cat log)"
timeout 120 "$CONVOY" sweep missing.yaml --out missing --threads 1 --resume >log 2>err
[ "$(count missing failed)" = 2 ] || fail "--resume trains failed trials: $(cat missing/sweep.json)"
cp "$first" second.safetensors
timeout 120 "$CONVOY" sweep missing.yaml --out missing --threads 1 --retry >log 2>err || fail "retry: $(cat log err)"
contains log '2 failed trials are tried again' || fail "retry does not say what it does: $(cat log)"
[ "$(count missing finished)" = 4 ] && [ "$(grep -c '^trial .* after' log)" = 2 ] || fail "retry: $(cat log missing/sweep.json)"
contains missing/sweep.json '"error"' && fail "an old error is kept: $(cat missing/sweep.json)"

# A population gives the same on any number of ranks and after a kill; bad members become copies of good ones, also those
# that fail; the page shows it.
cat >population.yaml <<'Y'
job: job.yaml
set: {train.metrics: [accuracy], log.every: 100, checkpoint.keep: 30}
space: {train.optimizer.lr: [0.005, 0.01, 0.02, 1e30], train.optimizer.weight_decay: {log_uniform: [1e-5, 1e-3]}}
search: {population: {size: 5, interval: 2 epochs, max: 9 epochs, share: 0.4, factors: [0.5, 2]}}
metric: val_loss
Y
generations() { tr '{' '\n' <"$1/sweep.json" | sed -n 's/, "\(seconds\|rank\)": [^,}]*//g; /"values"/p'; }
sweep=population.yaml
for n in 1 2 3; do
    sweep $n pop$n || fail "a population on $n ranks: code $?, $(cat log err)"
    generations pop$n >generations$n
    cmp -s generations1 generations$n || fail "on $n ranks the population differs: $(diff generations1 generations$n)"
done
[ "$(grep -c '"parent"' generations1)" -ge 8 ] || fail "not two of five members become copies in each rung: $(cat generations1)"
contains generations1 '"score": null' || fail "no member failed: $(cat generations1)"
tr "{" "\n" <pop1/sweep.json | grep -q '"state": "finished".*"error"' || fail "a member that failed does not go on: $(cat pop1/sweep.json)"
best=$(sed -n 's/^the best is trial \([0-9]*\):.*/\1/p' log)
"$CONVOY" inspect "pop3/trial-000$best" >log 2>&1 || fail "a member is no run: $(cat log)"
[ "$(grep -c '"kind": "epoch"' "pop3/trial-000$best/metrics.jsonl")" = 9 ] || fail "the log of a member is not whole"
for text in '<h2>Lineages</h2>' 'a copy of trial' 'The values on the way to the best trial'; do
    contains pop1/sweep.html "$text" || fail "sweep.html lacks: $text"
done
# Those that became copies in the last rung have the history and the weights of their parents until then. A trial has a
# line in `generations1`, and one for each of its five generations.
epochs() { grep '"kind": "epoch"' "pop1/trial-000$1/metrics.jsonl" | head -n 8 | sed 's/"seconds".*//'; }
weights() { echo "pop1/trial-000$1/checkpoints/step-000000$2/weights.safetensors"; }
copies=0
for i in 1 2 3 4 5; do
    parent=$(sed -n "$((6 * i))s/.*\"parent\": \([0-9]*\).*/\1/p" generations1)
    [ -n "$parent" ] || continue
    copies=$((copies + 1))
    [ "$(epochs "$i")" = "$(epochs "$parent")" ] || fail "trial $i does not have the history of its parent, $parent"
    same_tensors "$(weights "$i" 24)" "$(weights "$parent" 24)" || fail "trial $i does not have the weights of its parent, $parent"
    same_tensors "$(weights "$i" 27)" "$(weights "$parent" 27)" && fail "trial $i trains like its parent, $parent"
done
[ $copies = 2 ] || fail "$copies of five members are copies in the last rung"
until='"parent"'
start killed_pop
for p in pids/*; do kill -9 "${p#pids/}"; done
wait $pid
[ "$(count killed_pop finished)" -lt 5 ] || fail "the population had ended before it was killed: $(cat killed_pop/sweep.json)"
sweep 3 killed_pop --resume || fail "resume of a population: code $?, $(cat log err)"
generations killed_pop | cmp -s - generations1 || fail "a killed population gives another result: $(generations killed_pop | diff generations1 -)"
contains pop1/sweep.json '"copied": 4' || fail "the copies of four rungs are not noted: $(cat pop1/sweep.json)"
sweep=sweep.yaml


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
mistake 'the override train.batch=4 has no effect' "$(printf 'space: {train.batch: [8]}\nset: {train.batch: 4}')"
mistake 'log.trace is steps.json, and all trials would write that file' "$(printf 'space: {train.batch: [8]}\nset: {log.trace: steps.json}')"
mistake 'train.steps is 4, but the search counts in epochs' "$(printf 'space: {train.batch: [8]}\nset: {train.epochs: null, train.steps: 4}\nsearch: {hyperband: {max: 4 epochs}}')"
mistake "unknown key \"lrr\"; did you mean" 'space: {train.optimizer.lrr: [0.1, 0.2]}'
mistake 'space.train.batch has the value 8 twice' 'space: {train.batch: [8, 16, 8]}'
mistake 'goes from 1 down to 0.1: exchange the ends' "$(printf 'space: {train.optimizer.lr: {uniform: [1, 0.1]}}\nsearch: {random: 3}')"
mistake 'mistake.yaml:3:40: space.train.optimizer.lr, the first end of its range: expected a number, got "x"' "$(printf 'space: {train.optimizer.lr: {uniform: [x, 0.1]}}\nsearch: {random: 3}')"
mistake 'batch is "many", expected a whole number' 'space: {train.batch: [8, many]}'
mistake 'is inside the range, for integers take int_uniform: ' "$(printf 'space: {train.batch: {uniform: [8, 16]}}\nsearch: {random: 3}')"
mistake 'would replace the value of train.optimizer.lr: write it before' 'space: {train.optimizer.lr: [0.1], train.optimizer: [{name: sgd}, {name: adam}]}'
mistake 'the override train.optimizer.lr=1 has no effect' "$(printf 'space: {train.optimizer: [sgd, adam]}\nset: {train.optimizer.lr: 1}')"
mistake 'space is no map' 'space: [1, 2]'
mistake 'grid takes no value' "$(printf 'space: {train.batch: [8]}\nsearch: {grid: 3}')"
mistake 'cannot change while a trial trains' "$(printf 'space: {train.batch: [8, 16]}\nsearch: {population: {size: 4, max: 4 epochs}}')"
mistake 'trial 2: its values (train.optimizer.momentum 0.9) give the network or the optimiser other variables' "$(printf 'space: {train.optimizer.momentum: [0.9, 0]}\nsearch: {population: {size: 6, max: 4 epochs}}')"
mistake 'share is "0.7"' "$(printf 'space: {train.optimizer.lr: [0.1, 0.2]}\nsearch: {population: {size: 4, max: 4 epochs, share: 0.7}}')"
sed 's/^metric.*/metric: acuracy/' sweep.yaml >mistake.yaml
refused "validation has no score 'acuracy', did you mean 'accuracy'?" "$CONVOY" sweep mistake.yaml --out mistake --threads 1
sed 's/points: 3/points: 4/' sweep.yaml >mistake.yaml
refused 'on1 holds another search: its space is' "$CONVOY" sweep mistake.yaml --out on1 --resume --threads 1
sed "s/seed: \[1, 2\]/seed: [1, 3]/" sweep.yaml >mistake.yaml
refused "its space is" "$CONVOY" sweep mistake.yaml --out on1 --resume --threads 1
echo "# changed" >>job.yaml
refused "on1 holds another search: its job is" "$CONVOY" sweep sweep.yaml --out on1 --resume --threads 1
sed -i "/^# changed/d" job.yaml
refused "holds no search, so there is nothing to resume" "$CONVOY" sweep sweep.yaml --out nothing --retry --threads 1
printf "job: job.yaml\nmetric: loss\nspace: {train.batch: [8]}\n" >one.yaml
timeout 120 $MPIEXEC_N 2 "$CONVOY" sweep one.yaml --out one --threads 1 >log 2>err || fail "one trial on two ranks: $(cat log err)"
contains log "1 group gets no trial: take fewer ranks" || fail "an idle group is not named: $(cat log)"
refused 'on1 holds a search already' "$CONVOY" sweep sweep.yaml --out on1 --threads 1
refused 'needs --out' "$CONVOY" sweep sweep.yaml
exit $failed
