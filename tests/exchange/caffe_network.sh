#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan
# caffe_network.sh: a job trains a network of Caffe; its weights, written as a caffemodel, give the predictions of the
# run and go on to the same weights; the multipliers of the network are those of the job; wrong files are named.
. "$CONVOY_SOURCE/tests/shell.inc"
"$CONVOY" info 2>/dev/null | grep -q 'protobuf-c *yes' || { echo "built without protobuf-c"; exit 77; }

cat >net.prototxt <<'END'
name: "small"
layer { name: "data" type: "Data" top: "data" top: "label" data_param { source: "db" batch_size: 8 } }
layer { name: "branch/conv" type: "Convolution" bottom: "data" top: "c" param { lr_mult: 1 } param { lr_mult: 2 decay_mult: 0 }
  convolution_param { num_output: 4 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } bias_filler { value: 0.1 } } }
layer { name: "norm" type: "BatchNorm" bottom: "c" top: "c" batch_norm_param { moving_average_fraction: 0.9 } }
layer { name: "scale" type: "Scale" bottom: "c" top: "c" scale_param { bias_term: true } }
layer { name: "relu" type: "ReLU" bottom: "c" top: "c" }
layer { name: "pool" type: "Pooling" bottom: "c" top: "p" pooling_param { pool: AVE kernel_size: 3 stride: 2 } }
layer { name: "drop" type: "Dropout" bottom: "p" top: "p" include { phase: TRAIN } }
layer { name: "ip" type: "InnerProduct" bottom: "p" top: "ip" inner_product_param { num_output: 4 weight_filler { type: "msra" } } }
layer { name: "acc" type: "Accuracy" bottom: "ip" bottom: "label" top: "acc" include { phase: TEST } }
layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" include { phase: TEST stage: "deploy" } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
END
cat >job.yaml <<'END'
model: {caffe: net.prototxt, input: 3x7x7}
data: {train: {format: synthetic, samples: 64, shape: [3, 7, 7], classes: 4}}
train:
  batch: 16
  steps: 4
  optimizer: {name: sgd, lr: 0.05, momentum: 0.9, weight_decay: 0.01, decay_on: all}
END
train() { timeout 120 "$CONVOY" train "$@" --threads 1 --progress none >log 2>&1 || fail "train $*: $(cat log)"; }

train job.yaml --out run
contains run/job.resolved.yaml 'branch.conv' || fail "the layer branch/conv has no name of its own"
grep -q 'match: *"\?branch.conv.bias"\?' run/job.resolved.yaml || fail "the multipliers are not in the job: $(cat run/job.resolved.yaml)"

# ---- the caffemodel ----
"$CONVOY" export run net.caffemodel --net net.prototxt >log 2>&1 || fail "export fails: $(cat log)"
contains net.caffemodel 'branch/conv' || fail "the caffemodel has no name of Caffe"
sed 's/^layer { name: "data".*/input: "data" input_shape { dim: [1, 3, 7, 7] } input: "label" input_shape { dim: 1 }/' net.prototxt >deploy.prototxt
data='{format: synthetic, samples: 20, shape: [3, 7, 7], classes: 4}'
"$CONVOY" predict run --data "$data" --out run.npy >log 2>&1 || fail "predict fails: $(cat log)"
"$CONVOY" predict deploy.prototxt --weights net.caffemodel --data "$data" --out caffe.npy >log 2>&1 || fail "predict of the network fails: $(cat log)"
cmp -s run.npy caffe.npy || fail "the network with its caffemodel predicts other numbers than the run"

# ---- a text that ends with Softmax gives probabilities: to train, to score and to predict ----
sed '/"acc"/d; /"loss"/d; s/ include { phase: TEST stage: "deploy" }//; s/bottom: "label"//' deploy.prototxt |
    sed 's/ input: "label" input_shape { dim: 1 }//' >prob.prototxt
"$CONVOY" predict run --data "$data" --probabilities --out run.npy --force >log 2>&1 || fail "probabilities fail: $(cat log)"
for ask in '' --probabilities; do
    # shellcheck disable=SC2086
    "$CONVOY" predict prob.prototxt --weights net.caffemodel --data "$data" --out prob$ask.npy $ask >log 2>&1 ||
        fail "predict $ask of the text with Softmax: $(cat log)"
done
cmp -s run.npy prob--probabilities.npy || fail "the text with Softmax has other probabilities than the run"
"$CONVOY" predict prob.prototxt --weights net.caffemodel --data "$data" --classes --out best.csv >log 2>&1 || fail "classes fail: $(cat log)"
train job.yaml --out prob --set 'model={caffe: prob.prototxt, input: 3x7x7, weights: net.caffemodel}' --set data.val="$data" --set 'train.metrics=[nll]'
sed -n 's/.*val loss \([0-9.]*\), val nll \([0-9.]*\).*/\1 \2/p' log | tail -n 1 | awk '{ exit !(NF == 2 && $1 == $2) }' ||
    fail "nll is not the loss: $(cat log)"

# ---- training goes on from both alike; without dropout a step depends on the weights alone ----
grep -v '"drop"' net.prototxt >still.prototxt
"$CONVOY" export run run.safetensors >log 2>&1 || fail "export of weights fails: $(cat log)"
train job.yaml --out a --set 'model={caffe: still.prototxt, input: 3x7x7, weights: net.caffemodel}'
train job.yaml --out b --set 'model={caffe: still.prototxt, input: 3x7x7}' --set train.init=run.safetensors
for run in a b; do "$CONVOY" export $run $run.safetensors >log 2>&1 || fail "$run: $(cat log)"; done
same_tensors a.safetensors b.safetensors || fail "other weights from the caffemodel than from the run"

# ---- wrong files ----
sed 's/type: "ReLU"/type: "ReLu"/; s/"Pooling"/"SPP"/' net.prototxt >wrong.prototxt
refused "2 layers of Caffe are not supported: line 7: relu (ReLu): there is no such type of layer, did you mean 'ReLU'?; line 8: pool (SPP)" \
    "$CONVOY" train job.yaml --set 'model={caffe: wrong.prototxt, input: 3x7x7}'
sed 's/kernel_size: 3 pad/kernel_sizes: 3 pad/' net.prototxt >wrong.prototxt
refused "wrong.prototxt:4:37: ConvolutionParameter has no field 'kernel_sizes', did you mean 'kernel_size'?" \
    "$CONVOY" train job.yaml --set 'model={caffe: wrong.prototxt, input: 3x7x7}'
refused "the text does not say the shape of 'data'" "$CONVOY" train job.yaml --set 'model={caffe: net.prototxt}'
refused 'unknown key "weigths"; did you mean "weights"?' "$CONVOY" train job.yaml --set 'model={caffe: net.prototxt, weigths: a}'
head -c 100 net.caffemodel >cut.caffemodel
refused 'cut.caffemodel is no binary NetParameter of Caffe, or it is truncated' "$CONVOY" predict deploy.prototxt --weights cut.caffemodel --data "$data" --out no.npy
refused 'is a network without weights: give the .caffemodel file, too' "$CONVOY" predict deploy.prototxt --data "$data" --out no.npy
refused 'needs --net NET.prototxt' "$CONVOY" export run other.caffemodel
[ -e other.caffemodel ] || [ -e no.npy ] && fail "a refused command leaves a file"
exit $failed
