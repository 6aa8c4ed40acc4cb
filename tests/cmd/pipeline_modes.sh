#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# seconds: 40
# level: 2
# pipeline_modes.sh: a training in a pipeline with layers placed by hand, and with other update modes, has the losses of
# one rank, also after it was stopped with an update pending; deterministic runs have the same bits with any number of
# ranks of a stage; a plan repeats cut and kernels on the same grid and not on another.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
echo 'log: {every: 1}' >>job.yaml
two="--set parallel.pipeline=2"

losses() { grep '"kind": "step"' "$1/metrics.jsonl" | sed 's/.*"loss": \([^,]*\),.*/\1/'; }
scores() { grep '"kind": "epoch"' "$1/metrics.jsonl" | sed 's/.*"val_loss": \([^,]*\), "val_accuracy": \([^,]*\),.*/\1 \2/'; }

# close A B: lines of numbers that agree up to rounding.
close() { paste "$1" "$2" | awk '{ n = NF / 2; for (i = 1; i <= n; i++) { d = $i - $(i + n); if (d < 0) d = -d; if (d > 1e-5 * (1 + $i) || NF % 2) bad = 1 } } END { exit bad || NR == 0 }'; }

# same RUN RUN N: the last N losses, and the last scores, agree.
same() {
    losses "$1" | tail -n "$3" >expected
    losses "$2" | tail -n "$3" >got
    [ "$(wc -l <got)" = "$3" ] && close got expected || fail "$2: losses $(tr '\n' ' ' <got), expected those of $1: $(tr '\n' ' ' <expected)"
    scores "$1" | tail -n 1 >expected
    scores "$2" | tail -n 1 >got
    close got expected || fail "$2: scores $(cat got), expected those of $1: $(cat expected)"
}

# run NAME RANKS OPTION...
run() {
    name=$1 ranks=$2
    shift 2
    $MPIEXEC_N $ranks "$CONVOY" train job.yaml --out "$name" --set train.accumulate=4 "$@" >log 2>&1 || fail "$name: $(cat log)"
}

# resume NAME RANKS OPTION...: continues a copy of the run $from after step 4.
resume() {
    cp -r "$from" "$1"
    rm -r "$1/checkpoints/step-00000006"
    echo step-00000004 >"$1/checkpoints/latest"
    run "$@" --resume
    contains log 'resumed after step 4 of 6' || fail "$1: $(cat log)"
}

# ---- by hand ----
run one 1
run first 2 $two --set 'parallel.first_layers=[conv1, fc1]'
contains log 'the stages begin with conv1 and fc1' || fail "first_layers: $(cat log)"
same one first 6
cp job.yaml plain.yaml
sed -e 's|- relu|- relu: {stage: 2}|' -e 's|- fc: {channels: 4}|- fc: {channels: 4, stage: 3}|' plain.yaml >job.yaml
run placed 3 --set parallel.pipeline=3
contains log 'the stages begin with conv1, relu1 and ' || fail "stage: $(cat log)"
same one placed 6
"$CONVOY" test placed --data '{format: synthetic, samples: 8, shape: [3, 8, 8], classes: 4}' >log 2>&1 || fail "test: $(cat log)"
refused 'layer fc1 is placed on stage 3, and there are 2 stages: take a stage from 1 to 2' $MPIEXEC_N 2 "$CONVOY" train job.yaml --out bad $two
sed 's|- relu|- relu: {stage: 0}|' plain.yaml >job.yaml
refused 'stage is 0, expected a stage of the pipeline' "$CONVOY" train job.yaml --out bad
sed 's|- conv: {|- conv: {stage: two, |' plain.yaml >job.yaml
refused 'job.yaml:3:' "$CONVOY" train job.yaml --out bad
cp plain.yaml job.yaml
run woven 2 $two --set parallel.interleave=2
contains log 'pipeline: 4 stages of 1 rank, 2 on each rank, 4 micro-batches' || fail "interleave: $(cat log)"
same one woven 6
refused '12 pipeline stages, but the network has 5 layers' $MPIEXEC_N 2 "$CONVOY" train job.yaml --out bad $two --set parallel.interleave=6
refused "names the layer 'conv2'" $MPIEXEC_N 2 "$CONVOY" train job.yaml --out bad $two --set 'parallel.first_layers=[conv1, conv2]'
contains err "did you mean 'conv1'?" || fail "no nearest name: $(cat err)"

# ---- update modes ----
run zero1 4 $two --set update=zero1 --set 'train.optimizer={name: adam, lr: 0.001}'
run adam 1 --set 'train.optimizer={name: adam, lr: 0.001}'
same adam zero1 6
from=zero1
resume zero1-two 2 $two --set update=zero1 --set 'train.optimizer={name: adam, lr: 0.001}'
same adam zero1-two 2
run forward 2 $two --set comm.overlap=forward
same one forward 6
run_late() {
    name=$1 ranks=$2
    shift 2
    run "$name" $ranks --set 'update={mode: delayed, warm_up: 0 steps, cool_down: 0 steps}' "$@"
}
run_late late 1
run_late late-two 2 $two
same late late-two 6
for grid in '1 1' '4 2'; do # step 4 was saved with an update pending
    ranks=${grid% *} stages=${grid#* }
    from=late-two
    resume late-$ranks-$stages $ranks --set parallel.pipeline=$stages --set 'update={mode: delayed, warm_up: 0 steps, cool_down: 0 steps}'
    same late late-$ranks-$stages 2
done
grep -q '"pending"' late-two/checkpoints/step-00000004/state.json || fail 'no update was pending'

# ---- deterministic ----
for ranks in 2 4; do
    $MPIEXEC_N $ranks "$CONVOY" train job.yaml --out exact-$ranks $two --set deterministic=true >log 2>&1 || fail "deterministic: $(cat log)"
    for part in 1 2; do
        file=checkpoints/step-00000006/weights-0000$part-of-00002.safetensors
        same_tensors exact-2/$file exact-$ranks/$file || fail "deterministic: $ranks ranks have other bits in part $part"
    done
    losses exact-$ranks >got
    losses exact-2 | cmp -s - got || fail "deterministic: $ranks ranks have other losses"
done

# ---- plans ----
grep -q '"first_layers"' late-two/plan.json || fail "plan.json has no cut"
for node in conv1 fc1; do
    [ "$(sed -n '/"choices"/,$p' first/plan.json | grep -c "\"$node\"")" = 1 ] || fail "plan.json has no kernel of $node: $(sed -n '/"choices"/,$p' first/plan.json)"
done
run repeated 2 $two --plan first/plan.json
contains log 'the stages begin with conv1 and fc1' || fail "--plan: $(cat log)" # without it, with max_pool1
from=first
resume kept 2 $two
contains log 'the stages begin with conv1 and fc1' || fail "resume: $(cat log)"
run other 4 $two --plan first/plan.json
contains log 'the plan was made for 2 stages of 1 rank each, and this run has 2 of 2' || fail "--plan on another grid: $(cat log)"
run alone 1 --plan first/plan.json
contains log "and this run has 1 of 1: the plan's cut is not used" || fail "--plan on one rank: $(cat log)"
sed 's/"fc1"\]/"pool"]/; s/"fc1"$/"pool"/' first/plan.json >bad.json
run unfit 2 $two --plan bad.json
contains log 'does not fit the layers of this network' || fail "a plan of another network: $(cat log)"
run against 2 $two --plan first/plan.json --set 'parallel.first_layers=[conv1, relu1]'
contains log 'the stages begin with conv1 and relu1' || fail "places against a plan: $(cat log)"
exit $failed
