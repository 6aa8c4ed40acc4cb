#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan minimal
# tensorboard.sh: a run writes scalars, the graph and histograms into a folder of log.tensorboard; a resumed run goes on
# in a new file without duplicates; histograms are of whole weights if ranks have parts of them; a full disk does not
# end the run.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
train() { timeout 200 "$@" --threads 1 --progress none >log 2>&1 || { fail "fails: $*"; cat log; }; }
show() { "$CONVOY_BUILD/tests/test_monitor_events" --print "$1" >events || fail "the events in $1 are damaged"; }
# has COUNT PATTERN: so many events match.
has() { [ "$(grep -c "$2" events)" = "$1" ] || fail "not $1 events '$2': $(grep "$2" events || head -20 events)"; }

echo 'log: {every: 1, tensorboard: tb, tensorboard_histograms: 2}' >>job.yaml
sed -i 's/^  epochs: 2/  epochs: 4/' job.yaml
if "$CONVOY" train job.yaml --out probe 2>&1 | grep -q 'build it with protobuf-c'; then
    refused 'job.yaml:19:30: log.tensorboard: this build of convoy cannot write event files: build it with protobuf-c' "$CONVOY" train job.yaml --out none
    exit $failed
fi

# 48 samples to train on: 3 steps in an epoch.
train "$CONVOY" train job.yaml --out run
show tb/run
has 12 'scalar train/loss '
has 12 'scalar train/learning_rate '
has 12 'scalar speed/images_per_s '
has 12 'scalar time/seconds_exposed_comm '
has 4 'scalar epoch/train_loss '
has 1 '^12 scalar val/accuracy '
has 1 '^6 histogram weights/conv1.weight 108 of '
has 1 '^12 histogram weights/conv1.weight 108 of '
has 8 ' histogram '
has 1 'node conv1 conv(x, conv1/weight, conv1/bias)'
loss=$(sed -n 's/.*"kind": "step", "step": 7,.*"loss": \([0-9.]*\),.*/\1/p' run/metrics.jsonl)
got=$(sed -n 's/^7 scalar train.loss //p' events)
awk "BEGIN { d = $loss - $got; exit !(d < 1e-5 && d > -1e-5) }" || fail "step 7: $got, expected $loss"
cp events whole

# ---- a resumed run: the last checkpoint is lost, so it repeats steps 11 and 12 ----
rm -r run/checkpoints/step-00000012
train "$CONVOY" train job.yaml --out run --resume
show tb/run
[ "$(find tb/run -name 'events.out.tfevents.*' | wc -l)" = 2 ] || fail "not two files: $(ls tb/run)"
for what in 'scalar train/loss ' 'histogram weights/fc1.bias ' 'node fc1 ' 'scalar val/loss '; do
    [ "$(grep "$what" events)" = "$(grep "$what" whole)" ] || fail "'$what' after a resume: $(grep "$what" events)"
done
has 1 '^11 session 1'

# ---- another run of the same name ----
rm -r run
train "$CONVOY" train job.yaml --out run --set log.tensorboard_histograms=0
contains log 'tb/run holds events of an earlier run of this name' || fail "no warning: $(cat log)"

# ---- ranks that have parts of the network ----
for grid in parallel.pipeline parallel.tensor; do
    train $MPIEXEC_N 2 "$CONVOY" train job.yaml --out $grid --set $grid=2
    show tb/$grid
    sed -n 's/^\([0-9]* histogram [^ ]* [0-9]*\) .*/\1/p' whole >expected
    sed -n 's/^\([0-9]* histogram [^ ]* [0-9]*\) .*/\1/p' events | cmp -s - expected || fail "$grid: $(grep histogram events)"
    [ "$(grep ' node ' events)" = "$(grep ' node ' whole)" ] || fail "$grid: another graph"
done

# ---- faults ----
refused 'log.tensorboard: ' "$CONVOY" train job.yaml --out none --set log.tensorboard=job.yaml
[ -e none ] && fail "a job that cannot begin leaves a folder"
refused "log.tensorboard_histograms" "$CONVOY" train job.yaml --out none --set log.tensorboard_histograms=-1
train "$CONVOY" train job.yaml --out idle --set log.tensorboard=
contains log 'log.tensorboard_histograms has no effect here: it needs log.tensorboard' || fail "no warning: $(cat log)"

# ---- a full disk: one warning, and the training goes on ----
mkdir disk
mount -t tmpfs -o size=12k none disk 2>/dev/null || { echo "no right to mount a small file system: that part is left out"; exit $failed; }
trap 'umount -l "$work/disk"; rm -rf "$work"' EXIT
train "$CONVOY" train job.yaml --out full --set log.tensorboard=disk --set train.epochs=20
[ "$(grep -c 'log.tensorboard: .*No space left on device' log)" = 1 ] || fail "not one warning of a full disk: $(cat log)"
contains full/STATUS 'finished step 60 of 60' || fail "a full disk ends the run: $(cat full/STATUS)"
show disk/full
exit $failed
