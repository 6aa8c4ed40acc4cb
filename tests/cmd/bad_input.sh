#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan
# seconds: 60
# bad_input.sh: the command refuses what it cannot do with exit code 1 and a cause: a run folder that exists, a resume
# with another job, other data to score, damaged checkpoints, numbers that become infinite. Faults in a job itself are
# tested in bad_job.sh and test_job_refused.c, and faults in the data in test_train_damaged_data.c.
. "$CONVOY_SOURCE/tests/cmd/job.inc"

# ---- a run, and what may already be in its folder ----
mkdir empty
: >runs # a message about a folder that cannot be written says what to do, as does one about times that cannot be kept
refused 'runs: cannot make the folder: a file of that name exists; name another with --out' "$CONVOY" train job.yaml
CONVOY_WISDOM=$PWD/runs/wisdom.json "$CONVOY" train job.yaml --out measured --set plan.planning=measure >log 2>&1
contains log 'wisdom could not be saved: ' && contains log '; set CONVOY_WISDOM to a file that can be written, or to off' || fail "wisdom: $(cat log)"
rm runs
"$CONVOY" train job.yaml --out run >log 2>&1 || { fail "a sound job fails"; cat log; }
refused 'run exists already: choose another --out, or continue in it with --resume' "$CONVOY" train job.yaml --out run
if command -v flock >/dev/null; then # as a running training does
    exec 9>>run/lock && flock -x 9
    refused 'run: another run uses this folder' "$CONVOY" train job.yaml --out run --resume
    exec 9<&-
fi
refused 'bad does not exist, so there is nothing to resume' "$CONVOY" train job.yaml --out bad --resume
refused 'empty holds no checkpoint, so there is nothing to resume' "$CONVOY" train job.yaml --out empty --resume
refused 'with train.batch 16, this job has 8' "$CONVOY" train job.yaml --out run --resume --set train.batch=8
refused 'with train.seed 1, this job has 3' "$CONVOY" train job.yaml --out run --resume --set train.seed=3
refused 'with a number of training samples of 48, this job has 60' "$CONVOY" train job.yaml --out run --resume --set data.train.samples=80
refused 'with other training data than this job has' "$CONVOY" train job.yaml --out run --resume --set 'data.train.shape=[3, 10, 10]'
"$CONVOY" train job.yaml --out run --resume --set train.optimizer.lr=0.5 >log 2>&1 || fail "a resume with another learning rate fails: $(cat log)"
contains log 'run was started with another job and continues with this one; changes: train.optimizer.lr: ' || fail "the change is not named: $(cat log)"
"$CONVOY" train job.yaml --out run --resume >log 2>&1 && contains log 'train.optimizer.lr: 0.5 -> ' || fail "the change back is not named: $(cat log)"
"$CONVOY" train job.yaml --out run --resume >log 2>&1 && ! contains log 'another job' || fail "a change where there is none: $(cat log)"
refused 'lacks conv1.bias.exp_avg' "$CONVOY" train job.yaml --out run --resume --set train.optimizer=adam
refused 'conv1.bias is f32 8 in this job and F32 4 in run' "$CONVOY" train job.yaml --out run --resume --set train.epochs=4 --set 'model.layers=[{conv: {channels: 8, kernel: 3}}, {fc: {channels: 4}}]'
contains run/STATUS 'finished step 6 of 6' || fail "a refused resume changes STATUS: $(cat run/STATUS)"
! contains log 'no effect' || fail "a key without effect where there is none: $(cat log)"

# A plan of another network is refused. So are weights of another network, unless the job says that they may differ.
init=run/checkpoints/step-00000006/weights.safetensors
layers='model.layers=[{conv: {channels: 4, kernel: 3, pad: 1}}, relu, {fc: {channels: 4}}]'
refused 'fc1.weight is f32 4x256 in this job and F32 4x64 in' "$CONVOY" train job.yaml --out part --set train.init=$init --set "$layers"
"$CONVOY" train job.yaml --out part --set "train.init={from: $init, on_mismatch: skip}" --set "$layers" >log 2>&1 || fail "a partial train.init fails: $(cat log)"
contains log 'fc1.weight has another shape or dtype in the file and keeps its first values (4x64)' || fail "a partial train.init is silent: $(cat log)"
refused 'none of the 2 variables of this job agrees in name and shape with its' "$CONVOY" train job.yaml --out bad --set train.init=$init \
    --set 'model.layers=[{fc: {name: other, channels: 4}}]'

# ---- data that differ from the training data ----
set='format: synthetic, samples: 20, shape: [3, 8, 8]'
refused 'synthetic has 5 classes, but the training data have 4' "$CONVOY" test run --data "{$set, classes: 5}"
refused 'synthetic has no classes, but the training data have classes' "$CONVOY" test run --data "{$set, targets: 4}"
refused 'random_crop of 8x8 does not fit into a picture of 1x8 with pad 1' "$CONVOY" test run --data '{format: synthetic, samples: 20, shape: [3, 1, 8], classes: 4}'
refused 'synthetic has 5 classes, but the training data have 4' "$CONVOY" train job.yaml --out bad --set "data.val={$set, classes: 5}"
refused 'synthetic has 5 classes, but the training data have 4' "$CONVOY" train job.yaml --out bad --set data.val=10% --set "data.test={$set, classes: 5}"
"$CONVOY" predict run --data "{$set, targets: 4}" --out rows.csv >log 2>&1 && [ "$(wc -l <rows.csv)" = 20 ] || fail "predict looks at targets: $(cat log)"
refused 'rows.txt: predictions are written as .csv, .npy, .h5 or .nc' "$CONVOY" predict run --data "{$set, classes: 4}" --out rows.txt
refused 'nowhere is neither a run folder, nor a checkpoint, nor a .safetensors file' "$CONVOY" test nowhere
head -c -40 run/checkpoints/step-00000006/weights.safetensors >cut.safetensors
refused 'cut.safetensors: tensor' "$CONVOY" test cut.safetensors --job job.yaml --data "{$set, classes: 4}"

# ---- samples of another shape than those of the training are named with both shapes ----
for i in 1 2 3 4 5 6 7 8; do echo "$((10 * i)),2,3,4,5,$((i % 4))"; done >five.csv
five='{path: five.csv, label: 5, header: no}' text='five.csv: samples are 5, the network was trained on 3x8x8'
refused "$text" "$CONVOY" predict run --data "$five" --out five-out.csv
refused "$text" "$CONVOY" test run --data "$five"
refused "$text" "$CONVOY" test "$init" --data "$five"
refused "$text" "$CONVOY" train job.yaml --out bad --set "data.val=$five"
refused "$text" "$CONVOY" train job.yaml --out bad --set data.val=25% --set "data.test=$five"
cat >five.yaml <<'END'
model: {layers: [{fc: {channels: 4}}]}
data: {train: {path: five.csv, label: 5, header: no}, normalize: {mean: [1, 2, 3, 4, 5], std: 2}}
train: {batch: 4, epochs: 1, optimizer: {name: sgd, lr: 0.01}}
END
for key in val test; do
    refused 'synthetic: samples are 3x8x8, the network was trained on 5' "$CONVOY" train five.yaml --out bad --set "data.$key={format: synthetic, samples: 20, shape: [3, 8, 8], classes: 4}"
done

# ---- what may not be read is not called something else ----
# shellcheck disable=SC2086
if permissions_count; then
    cp -r run unread && mkdir pictures && : >pictures/a.png && echo 1,2 >table.csv
    chmod 000 pictures table.csv unread/checkpoints/step-00000006/weights.safetensors
    for path in pictures table.csv pictures/a.png; do
        refused "Permission denied" $plain "$CONVOY" inspect $path
        contains err "convoy: error: $path: cannot " || fail "$path is not named: $(cat err)"
    done
    $plain "$CONVOY" test unread --data "{$set, classes: 4}" >log 2>&1 || fail "the older checkpoint is not taken: $(cat log)"
    contains log 'checkpoint step-00000006 cannot be read and was skipped: unread/checkpoints/step-00000006/weights.safetensors: cannot open: Permission denied' ||
        fail "no cause: $(cat log)"
    chmod 755 pictures
else
    echo "permissions do not hold here: files that may not be read are left out"
fi

# ---- a damaged checkpoint is named, and the older one is used; if none is sound, the run is refused ----
printf x >>run/checkpoints/step-00000006/weights.safetensors
timeout 120 "$CONVOY" train job.yaml --out run --resume >log 2>&1 || fail "a damaged checkpoint ends the resume: $(cat log)"
contains log 'checkpoint step-00000006 is damaged and was skipped: run/checkpoints/step-00000006/weights.safetensors' || fail "the damaged one is not named: $(cat log)"
contains run/STATUS 'finished step 6 of 6' || fail "the older checkpoint is not taken: $(cat run/STATUS)"
for set in run/checkpoints/step-*; do printf x >>"$set/state.json"; done
refused 'none of the 2 checkpoints is valid; the newest: ' "$CONVOY" train job.yaml --out run --resume

# ---- files of other programs ----
printf 'PK\003\004 and the rest of an archive' >sd.pt
refused 'sd.pt: a zip archive, as torch.save() writes, and not safetensors' "$CONVOY" train job.yaml --out bad --set train.init=sd.pt
echo "no picture" >text.png
refused 'text.png: is neither a JPEG nor a PNG, though its name says so' "$CONVOY" inspect text.png
printf '\010\012\022\007convoy' >net.onnx
refused 'x?u?: no such file' "$CONVOY" inspect "$(printf 'x\356u\033')"
refused 'net.onnx: is a network and no data: ' "$CONVOY" inspect net.onnx
refused 'net.onnx is an ONNX file, and a job file is expected' "$CONVOY" train net.onnx
refused 'net.onnx is damaged or is no ONNX file' "$CONVOY" plan net.onnx

# ---- numbers that become infinite: the run ends with a cause, and checkpoints are finite ----
timeout 120 "$CONVOY" train job.yaml --out wild --set train.optimizer.lr=1e30 --set 'checkpoint.every=1 steps' >out 2>err
[ $? = 1 ] || fail "a loss that is not finite does not end the run with code 1"
contains err 'holds a number that is not finite' || contains err 'expected a finite number' || fail "no cause: $(cat err)"
contains wild/STATUS 'failed step' || fail "STATUS of a failed run: $(cat wild/STATUS)"
exit $failed
