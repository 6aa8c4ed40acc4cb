#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan
# caffe.sh: a solver of Caffe is trained as it is; the job that `convoy import` writes trains the same weights to the
# bit; weights and a solver's state are taken; `convoy time --net` times a network; wrong files have a clear error.
. "$CONVOY_SOURCE/tests/shell.inc"

"$CONVOY" convert '{format: pictures, size: 28, classes: 10, samples: 96}' train_lmdb --format lmdb --resize 28,28 >log 2>&1 || fail "convert: $(cat log)"
"$CONVOY" convert '{format: pictures, size: 28, classes: 10, samples: 40, first: 1000}' test_lmdb --format lmdb --resize 28,28 >log 2>&1 || fail "convert: $(cat log)"

# A small network after LeNet.
fill='weight_filler { type: "xavier" } bias_filler { type: "constant" }'
layers() {
    cat <<END
layer {
  name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  param { lr_mult: 1 } param { lr_mult: 2 decay_mult: 0 }
  convolution_param { num_output: 4 kernel_size: 5 stride: 2 $fill }
}
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1" pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer {
  name: "ip1" type: "InnerProduct" bottom: "pool1" top: "ip1" param { lr_mult: 1 } param { lr_mult: 2 }
  inner_product_param { num_output: 16 $fill }
}
layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2" inner_product_param { num_output: 10 $fill } }
END
}
{
    echo 'name: "small"'
    for phase in TRAIN:train_lmdb:16 TEST:test_lmdb:10; do
        rest=${phase#*:}
        echo "layer { name: \"pictures\" type: \"Data\" top: \"data\" top: \"label\" include { phase: ${phase%%:*} }"
        echo "  transform_param { scale: 0.00390625 mean_value: 128 mirror: true }"
        echo "  data_param { source: \"${rest%:*}\" batch_size: ${rest#*:} backend: LMDB } }"
    done
    layers
    echo 'layer { name: "accuracy" type: "Accuracy" bottom: "ip2" bottom: "label" top: "accuracy" include { phase: TEST } }'
    echo 'layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }'
} >net.prototxt
cat >solver.prototxt <<'END'
# The network is relative to the current folder.
net: "net.prototxt"
test_iter: 3
test_interval: 5
base_lr: 0.05
momentum: 0.9
weight_decay: 0.0005
lr_policy: "inv"
gamma: 0.0001
power: 0.75
display: 4
max_iter: 12
snapshot: 6
snapshot_prefix: "snap/small"
solver_mode: GPU
random_seed: 3
END
train() { timeout 200 "$CONVOY" train "$@" --threads 1 --progress none; }

train --solver solver.prototxt --out one >log 2>&1 || { grep -q 'build it with protobuf-c' log && { echo "skipped: this build has no protobuf-c"; exit 77; }; fail "--solver: $(cat log)"; }
grep -q 'done after 12 steps' log || fail "--solver: $(cat log)"
contains log 'solver_mode is GPU; convoy computes on the processor' || fail "no note on the GPU: $(cat log)"

[ "$(grep '"kind": *"validation"' one/metrics.jsonl | grep -o '"step": *[0-9]*' | tr -dc '0-9\n' | tr '\n' ' ')" = '5 10 ' ] || fail "validation is not at steps 5 and 10: $(cat one/metrics.jsonl)"
grep '"kind": *"validation"' one/metrics.jsonl | grep -q '"val_accuracy"' || fail "validation has no accuracy"

# ---- the job ----
"$CONVOY" import solver.prototxt --out imported >log 2>&1 || fail "import: $(cat log)"
for text in 'steps: 12' 'batch: 16' 'seed: 3' 'limit: 30' 'shuffle: false' '[mirror, {mean: [128]}, {scale: 0.00390625}]' 'metrics: [accuracy]' \
    'validate_every: 5' 'lr_inside: true' 'every: 6 steps' 'log: {every: 4}' '{name: inverse, every: 1 steps, gamma: 0.0001, power: 0.75}' 'conv: {name: conv1, channels: 4'; do
    contains imported/job.yaml "$text" || fail "the job lacks '$text': $(cat imported/job.yaml)"
done
train imported/job.yaml --out two >log 2>&1 || fail "the imported job: $(cat log)"
same_tensors one/checkpoints/step-*12/weights.safetensors two/checkpoints/step-*12/weights.safetensors || fail "the imported job trains other weights than the solver: $(ls one/checkpoints two/checkpoints)"
train solver.prototxt --out three --set train.validate_every=0 >log 2>&1 || fail "a solver in place of a job: $(cat log)"
same_tensors one/checkpoints/step-*12/weights.safetensors three/checkpoints/step-*12/weights.safetensors || fail "a solver in place of a job trains other weights"
refused 'imported/job.yaml exists already: choose another name, or replace it with --force' "$CONVOY" import solver.prototxt --out imported
"$CONVOY" import solver.prototxt --out imported --force >log 2>&1 || fail "import --force: $(cat log)"
"$CONVOY" plan solver.prototxt >log 2>&1 || fail "plan: $(cat log)"
"$CONVOY" test one >log 2>&1 || true

# The solver is found from another folder, with what it names.
mkdir elsewhere
(cd elsewhere && train --solver ../solver.prototxt --out four >log 2>&1) || fail "from another folder: $(cat elsewhere/log)"
contains elsewhere/log 'net.prototxt does not exist relative to the current folder; ' || fail "no note on the folder: $(cat elsewhere/log)"
same_tensors one/checkpoints/step-*12/weights.safetensors elsewhere/four/checkpoints/step-*12/weights.safetensors || fail "from another folder other weights are trained"

# ---- weights and state ----
# field NUMBER: the bytes of stdin as a field of protocol buffers. number NUMBER VALUE: an integer.
varint() { awk -v n="$1" 'BEGIN { for (; n >= 128; n = int(n / 128)) printf "\\%03o", n % 128 + 128; printf "\\%03o", n }'; }
field() {
    body=$(mktemp ./body.XXXXXX)
    cat >"$body"
    printf "$(varint $(($1 * 8 + 2)))$(varint "$(wc -c <"$body")")"
    cat "$body"
}
number() { printf "$(varint $(($1 * 8)))$(varint "$2")"; }
# blob FIELD DIM...: an array of zeros.
blob() {
    at=$1
    shift
    size=1
    for dim; do size=$((size * dim)); done
    { for dim; do printf "$(varint "$dim")"; done | field 1 | field 7; head -c $((4 * size)) /dev/zero | field 5; } | field "$at"
}
layer() { name=$1; { printf '%s' "$name" | field 1; printf '%s' "$2" | field 2; eval "$3"; } | field 100; }
{
    layer conv1 Convolution 'blob 7 4 3 5 5; blob 7 4'
    layer ip1 InnerProduct 'blob 7 16 144; blob 7 16'
    layer ip2 InnerProduct 'blob 7 10 16; blob 7 10'
} >zero.caffemodel
{
    number 1 8
    printf zero.caffemodel | field 2
    blob 3 4 3 5 5; blob 3 4; blob 3 16 144; blob 3 16; blob 3 10 16; blob 3 10
} >zero.solverstate
train --solver solver.prototxt --weights zero.caffemodel --out zero --set train.steps=1 --set log.every=1 >log 2>&1 || fail "--weights: $(cat log)"
grep -q '"loss": *2.302585' zero/metrics.jsonl || fail "with weights of zero the first loss is not ln 10: $(cat zero/metrics.jsonl)"
train --solver solver.prototxt --snapshot zero.solverstate --out later --set log.every=1 >log 2>&1 || fail "--snapshot: $(cat log)"
grep -q 'done after 12 steps' log || fail "--snapshot: $(cat log)"
[ "$(grep -c '"kind": *"step"' later/metrics.jsonl)" = 4 ] || fail "steps 8 to 12 are not four: $(cat later/metrics.jsonl)"
grep -q '"loss": *2.302585' later/metrics.jsonl || fail "the state's weights are not taken: $(cat later/metrics.jsonl)"
refused 'nothing is left to do' "$CONVOY" train --solver solver.prototxt --snapshot zero.solverstate --set train.steps=8
"$CONVOY" import solver.prototxt zero.caffemodel --out weighted >log 2>&1 || fail "import with weights: $(cat log)"
train weighted/job.yaml --out six --set train.steps=1 >log 2>&1 || fail "the job with weights: $(cat log)"
same_tensors zero/checkpoints/step-*1/weights.safetensors six/checkpoints/step-*1/weights.safetensors || fail "import with weights trains other weights than --weights"
{ layer conv1 Convolution 'blob 7 4 3 3 3; blob 7 4'; } >other.caffemodel
refused 'other.caffemodel' "$CONVOY" train --solver solver.prototxt --weights other.caffemodel
{ number 1 8; blob 3 4 3 5 5; } >other.solverstate
refused 'names no caffemodel' "$CONVOY" train --solver solver.prototxt --snapshot other.solverstate
refused 'has 1 arrays of history, and the network has 6 blobs' "$CONVOY" train --solver solver.prototxt --snapshot other.solverstate --weights zero.caffemodel

# ---- a network alone ----
{ echo 'name: "deploy" input: "data" input_dim: 8 input_dim: 3 input_dim: 28 input_dim: 28'; layers; } >deploy.prototxt
"$CONVOY" time --net deploy.prototxt --mode forward --steps 2 --threads 1 >log 2>&1 || fail "time --net: $(cat log)"
grep -q 'conv1' log || fail "time --net lacks conv1: $(cat log)"
"$CONVOY" import deploy.prototxt --out deployed >log 2>&1 || fail "import of a network: $(cat log)"
contains deployed/job.yaml 'The network has no data of its own' || fail "no comment on the data: $(cat deployed/job.yaml)"
train deployed/job.yaml --out five --set data.train.classes=10 --set train.epochs= --set train.steps=2 >log 2>&1 || fail "the job of a network does not train: $(cat log)"

# ---- what does not fit ----
sed 's/max_iter: 12/max_iterr: 12/' solver.prototxt >bad.prototxt
refused "did you mean 'max_iter'" "$CONVOY" train --solver bad.prototxt
sed 's/"inv"/"invv"/' solver.prototxt >bad.prototxt
refused "bad.prototxt:8: lr_policy is \"invv\", did you mean 'inv'?" "$CONVOY" train --solver bad.prototxt
sed 's/net.prototxt/other.prototxt/' solver.prototxt >bad.prototxt
refused 'bad.prototxt:2: net is other.prototxt, which exists neither here nor in .' "$CONVOY" train --solver bad.prototxt
sed 's/train_lmdb/other_lmdb/' net.prototxt >other.prototxt
refused 'source is other_lmdb, which exists neither here nor in .' "$CONVOY" train --solver bad.prototxt
sed 's/InnerProduct/InerProduct/' net.prototxt >other.prototxt
refused "did you mean 'InnerProduct'?" "$CONVOY" train --solver bad.prototxt
cp deploy.prototxt other.prototxt
train --solver bad.prototxt --out seven --set train.steps=2 >log 2>&1 || fail "a solver without data: $(cat log)"
contains log 'other.prototxt: layer input (Input) has a shape and no data: the run trains on generated samples' || fail "no note on generated samples: $(cat log)"
{ echo 'layer { name: "m" type: "MemoryData" top: "data" top: "label" memory_data_param { batch_size: 2 channels: 3 height: 28 width: 28 } }'; layers; } >other.prototxt
refused 'other.prototxt:1: layer m (MemoryData) has no data: a program fills it' "$CONVOY" train --solver bad.prototxt
refused 'nowhere.prototxt' "$CONVOY" train --solver nowhere.prototxt
refused 'give one of them' "$CONVOY" train --solver solver.prototxt imported/job.yaml
refused '--weights and --snapshot go with --solver' "$CONVOY" train imported/job.yaml --weights w.caffemodel
refused 'w.caffemodel' "$CONVOY" train --solver solver.prototxt --weights w.caffemodel
head -c 100 /dev/urandom >w.caffemodel
refused 'w.caffemodel' "$CONVOY" train --solver solver.prototxt --weights w.caffemodel
refused 'is in HDF5' "$CONVOY" train --solver solver.prototxt --snapshot w.solverstate.h5
refused 'name one network' "$CONVOY" time
refused 'name one network' "$CONVOY" time lenet --net deploy.prototxt
exit $failed
