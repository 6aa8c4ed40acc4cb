#!/bin/sh
# bad_input.sh: what a user mistypes or asks too much of is refused before the first step, with place, value, and what was expected.
. "$CONVOY_SOURCE/tests/cmd/faults.inc"

# ---- keys: file, line, column, the nearest known one ----
bad 's/epochs:/epoch:/'                     'bad.yaml:13:3: train: unknown key "epoch"; did you mean "epochs"?'
bad 's/^checkpoint/chekpoint/'              'bad.yaml:18:1: job: unknown key "chekpoint"; did you mean "checkpoint"?'
bad 's/^data/daten: 1\ndata/'               'bad.yaml:7:1: job: unknown key "daten", expected one of: name, model'
bad 's/^  layers/  layerz/'                 "bad.yaml:2:3: unknown key 'layerz' in \`model\`, did you mean 'layers'?"
bad 's/channels: 4, kernel/chanels: 4, kernel/' 'bad.yaml:3:14: conv1: unknown key "chanels"; did you mean "channels"?'
bad 's/kernel: 2/kernal: 2/'                'bad.yaml:5:18: max_pool1: unknown key "kernal"; did you mean "kernel"?'
bad 's/max_pool/max_pol/'                   "bad.yaml:5:7: there is no layer type 'max_pol', did you mean 'max_pool'?"
bad 's/- relu/- relu: {from: nowhere}/'     "layer relu1: there is no input and no earlier layer 'nowhere'"
bad 's/momentum/momemtum/'                  'bad.yaml:14:36: sgd: unknown key "momemtum"; did you mean "momentum"?'
bad 's/name: sgd/name: sdg/'                "bad.yaml:14:14: train.optimizer: there is no optimiser 'sdg', did you mean 'sgd'?"
bad 's/factor/facter/'                      'bad.yaml:15:42: schedule: unknown key "facter"; did you mean "factor"?'
bad 's/name: step/name: stepp/'             "bad.yaml:15:20: there is no schedule 'stepp'; did you mean 'step'?"
bad 's/softmax_cross_entropy/softmax_crossentropy/' "bad.yaml:16:9: train.loss: there is no loss 'softmax_crossentropy', did you mean 'softmax_cross_entropy'?"
bad 's/loss: soft.*/loss: {name: softmax_cross_entropy, label_smothing: 0.1}/' 'bad.yaml:16:39: loss: unknown key "label_smothing"; did you mean "label_smoothing"?'
bad 's/\[accuracy\]/[acuracy]/'             "bad.yaml:17:12: train.metrics: there is no metric 'acuracy'; did you mean 'accuracy'?"
bad 's/\[accuracy\]/[{name: top_k, kk: 3}]/' 'bad.yaml:17:27: top_k: unknown key "kk"; did you mean "k"?'
bad 's/\[accuracy\]/[rmse]/'                'train.metrics: rmse compares numbers, but the truth in synthetic is labels of classes; take accuracy'
bad 's/mirror/miror/'                       'bad.yaml:10:13: unknown augmentation "miror", did you mean "mirror"?'
bad 's/pad: 1}}\]/padd: 1}}]/'              'bad.yaml:10:45: augmentation random_crop: unknown key "padd"; did you mean "pad"?'
bad 's/format: synthetic/format: synthetik/' 'bad.yaml:8:19: unknown data format "synthetik", did you mean "synthetic"?'
bad 's/shape: \[3/shap: [3/'                'bad.yaml:8:43: data format synthetic: unknown key "shap"; did you mean "shape"?'
bad 's/every: 2 steps/every: 2 steps, best: acuracy/' "bad.yaml:18:36: checkpoint.best: validation has no score 'acuracy', did you mean 'accuracy'?"
bad 's/epochs: 2/epochs: 2\n  stop: {metric: los, patience: 1}/' "bad.yaml:14:9: train.stop: validation has no score 'los', did you mean 'loss'?"
bad 's/batch: 16/batch: 16\n  batch: 16/'   'bad.yaml:13:3: key "batch" is given twice, first at bad.yaml:12:3'
bad 's/batch: 16/batch: 16\n  batch_per_rank: 16/' 'train.batch is 16 and train.batch_per_rank is 16; give one of them'
bad 's/val:/: :/'                           'bad.yaml:9:3: did not find expected key, while parsing a block mapping'
refused '--set train.batchh=3: train: unknown key "batchh"; did you mean "batch"?' "$CONVOY" train job.yaml --out bad --set train.batchh=3

# ---- values: out of range, too much, too little ----
bad 's/batch: 16/batch: -4/'                'bad.yaml:12:10: train: batch is "-4", expected 1.. (samples)'
bad 's/batch: 16/batch: 0/'                 'bad.yaml:12:10: train: batch is "0", expected 1.. (samples)'
bad 's/epochs: 2/epochs: 0/'                'bad.yaml:13:11: train: epochs is "0", expected >0'
bad 's/epochs: 2/epochs: 1e300/'            'bad.yaml:13:11: train.epochs: '
bad 's/lr: 0.01/lr: -1/'                    'bad.yaml:14:30: train.optimizer: lr is "-1", expected >0'
bad 's/lr: 0.01/lr: nan/'                   'bad.yaml:14:30: train.optimizer: lr is "nan", expected a number'
bad 's/seed: 1/seed: -1/;s/epochs: 2/seed: -1/' 'bad.yaml:13:9: train: seed is "-1", expected 0..'
bad 's/val: 25%/val: 250%/'                 'data.val is 250%, expected a share of the training data between 0 and 1'
bad 's/every: 2 steps/every: 2 stepps/'     'bad.yaml:18:21: checkpoint.every: "2 stepps" is no duration, expected a number and a unit: steps'
bad 's/kernel: 2/kernel: 0/'                'bad.yaml:5:26: max_pool1: kernel is "0", expected 1..'
bad 's/channels: 4, kernel/channels: 0, kernel/' 'bad.yaml:3:24: conv1: channels is "0", expected 1..'
bad 's/samples: 64/samples: 0/'             'bad.yaml:8:39: data format synthetic: samples is "0", expected 1..'
bad 's/samples: 64/samples: many/'          'bad.yaml:8:39: data format synthetic: samples is "many", expected a whole number'
bad 's/\[3, 8, 8\]/[3, 0, 8]/'              'bad.yaml:8:54: data format synthetic: shape is "0", expected 1..'
bad 's/classes: 4/classes: 0/'              'bad.yaml:8:70: data format synthetic: classes is "0", expected 1..'
bad 's/size: 8/size: 0/'                    'bad.yaml:10:42: augmentation random_crop: size is "0", expected 1.. (pixels)'
bad 's/size: 8/size: 100/'                  'bad.yaml:10:21: random_crop of 100x100 does not fit into a picture of 8x8 with pad 1'
bad 's/kernel: 2/kernel: 20/'               'layer max_pool1 (max_pool): max_pool: a window of 20 positions does not fit spatial dimension 0 of source 16x4x8x8'
bad 's/- fc: {channels: 4}/- fc: {channels: 3}/' 'gives 3 outputs for each sample, but the data have 4 classes'
bad 's/samples: 64/samples: 4e12/;s/val:.*/val: null/;s/batch: 16/batch: 1e12/' ' bytes of tensor memory'
bad 's/channels: 4, kernel/channels: 1e12, kernel/' 'memory of conv1.weight: cannot map 108000000000000 bytes of tensor memory'
bad 's/\[3, 8, 8\]/[3000000, 3000000, 3000000]/' 'bytes is more than this machine can address'

# ---- files that are not there, or are others ----
mkdir empty none
mkdir none/a none/b
bad 's/train: {format.*/train: nowhere/'    'nowhere: no such file or folder'
bad 's/train: {format.*/train: empty/'      'empty: an empty data folder, expected pictures (*.jpg, *.jpeg, *.png) or one folder of them a class'
bad 's/train: {format.*/train: none/'       'none: this folder is not in any format that is known'
bad 's/train: {format.*/train: job.yaml/'   'job.yaml: this file is not in any format that is known'
bad 's/epochs: 2/init: nowhere.safetensors/' 'nowhere.safetensors: cannot open: No such file or directory'
bad 's/epochs: 2/init: job.yaml/'           'truncated, or not safetensors'
bad 's/epochs: 2/init: empty/'              'empty: not a regular file'
refused 'nowhere.yaml: cannot open: No such file' "$CONVOY" train nowhere.yaml --out bad
refused 'job.yaml: not a plan: the map `choices` is missing' "$CONVOY" train job.yaml --out bad --plan job.yaml

# ---- a run, and what is in its way ----
"$CONVOY" train job.yaml --out run >log 2>&1 || { fail "a sound job fails"; cat log; }
refused 'run exists already: choose another --out, or go on in it with --resume' "$CONVOY" train job.yaml --out run
refused 'bad does not exist, so there is nothing to resume' "$CONVOY" train job.yaml --out bad --resume
refused 'empty holds no checkpoint, so there is nothing to resume' "$CONVOY" train job.yaml --out empty --resume
refused 'with train.batch 16, this job has 8' "$CONVOY" train job.yaml --out run --resume --set train.batch=8
refused 'with train.seed 1, this job has 3' "$CONVOY" train job.yaml --out run --resume --set train.seed=3
refused 'with a number of training samples of 48, this job has 60' "$CONVOY" train job.yaml --out run --resume --set data.train.samples=80
refused 'with other training data than this job has' "$CONVOY" train job.yaml --out run --resume --set 'data.train.shape=[3, 10, 10]'
refused 'lacks fc1.weight.exp_avg' "$CONVOY" train job.yaml --out run --resume --set train.optimizer=adam
refused 'conv1.weight is f32 8x3x3x3 in this job and F32 4x3x3x3 in run' "$CONVOY" train job.yaml --out run --resume --set train.epochs=4 --set 'model.layers=[{conv: {channels: 8, kernel: 3}}, {fc: {channels: 4}}]'
said run/STATUS 'finished step 6 of 6' || fail "a refused resume changes STATUS: $(cat run/STATUS)"

# The plan of another network is no plan of this one; weights of another network start what agrees, and say so.
"$CONVOY" train job.yaml --out part --set train.init=run/checkpoints/step-00000006/weights.safetensors \
    --set 'model.layers=[{conv: {channels: 4, kernel: 3, pad: 1}}, relu, {fc: {channels: 4}}]' >log 2>&1 || fail "a partial train.init fails: $(cat log)"
said log 'fc1.weight has another shape or dtype in the file and keeps its first values (4x64)' || fail "a partial train.init is silent: $(cat log)"
refused 'none of the 2 variables of this job agrees in name and shape with its' "$CONVOY" train job.yaml --out bad --set train.init=run/checkpoints/step-00000006/weights.safetensors \
    --set 'model.layers=[{fc: {name: other, channels: 4}}]'

# ---- damaged checkpoints: named, and the older one is taken; none sound: refused ----
printf x >>run/checkpoints/step-00000006/weights.safetensors
timeout 30 "$CONVOY" train job.yaml --out run --resume >log 2>&1 || fail "a damaged checkpoint ends the resume: $(cat log)"
said log 'checkpoint step-00000006 is damaged and passed over: run/checkpoints/step-00000006/weights.safetensors' || fail "the damaged one is not named: $(cat log)"
said run/STATUS 'finished step 6 of 6' || fail "the older checkpoint is not taken: $(cat run/STATUS)"
for set in run/checkpoints/step-*; do printf x >>"$set/state.json"; done
refused 'none of the 2 checkpoints is sound; the newest: ' "$CONVOY" train job.yaml --out run --resume

# ---- numbers that run away: an end with a cause, and finite checkpoints ----
timeout 30 "$CONVOY" train job.yaml --out wild --set train.optimizer.lr=1e30 --set 'checkpoint.every=1 steps' >out 2>err
[ $? = 1 ] || fail "a loss that is not finite does not end the run with code 1"
said err 'holds a number that is not finite' || said err 'expected a finite number' || fail "no cause: $(cat err)"
said wild/STATUS 'failed step' || fail "STATUS of a failed run: $(cat wild/STATUS)"
exit $failed
