#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan
# level: 2
# caffe_alone.sh: a network of Caffe without a solver is planned, timed and imported as it is: without a loss as a
# forward pass, without its data on generated samples of the shape of its crop or of --input; an `input` beside a layer
# is left out; layers in Python give data, and nothing else; what is not known is named.
. "$CONVOY_SOURCE/tests/shell.inc"
"$CONVOY" info 2>/dev/null | grep -q 'protobuf-c *yes' || { echo "built without protobuf-c"; exit 77; }

works() { "$CONVOY" "$@" >log 2>&1 || fail "convoy $*: $(cat log)"; }
# has WORD...: the log has them.
has() { for word; do contains log "$word" || fail "no '$word': $(cat log)"; done; }
conv() { echo "layer { name: \"$1\" type: \"Convolution\" bottom: \"$2\" top: \"$1\" convolution_param { num_output: 4 kernel_size: 3 pad: 1 } }"; }
ip() { echo "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"$1\" top: \"ip\" inner_product_param { num_output: 5 } }"; }
softmax_loss='layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }'

# ---- without a loss ----
{ echo 'input: "data" input_shape { dim: 2 dim: 3 dim: 12 dim: 12 }'; conv picture data; } >picture.prototxt
{ echo 'input: "data" input_dim: 2 input_dim: 3 input_dim: 12 input_dim: 12'; conv a data; ip a
    echo 'layer { name: "s" type: "Sigmoid" bottom: "a" top: "s" }'; echo 'layer { name: "p" type: "Softmax" bottom: "ip" top: "p" }'; } >heads.prototxt
for net in picture heads; do
    works plan $net.prototxt
    has 'the network has no loss, and there is no target for one: a step is a forward pass up to '
    grep -q '^loss' log && fail "plan puts a loss on $net: $(cat log)"
    works time --net $net.prototxt --steps 1 --threads 1
    has 'network, forward, f32, batch 2'
    works import $net.prototxt --out $net
    works plan $net/job.yaml
    has '2x4x12x12'
    refused 'a loss needs a target, but the data of synthetic have no labels' "$CONVOY" train $net/job.yaml
done
works plan heads.prototxt
has 'up to s, p;' '2x5'
works bench picture.prototxt --steps 1 --threads 1 --json
has '"mode": "forward"'
refused 'the network has no loss, so there is no backward pass' "$CONVOY" bench picture.prototxt --mode forward-backward
refused 'a check compares training steps, and the network has no loss' "$CONVOY" bench picture.prototxt --check
works train picture/job.yaml --out ran --threads 1 --progress none --set train.epochs= --set train.steps=1 --set train.loss=mse \
    --set 'data.train={format: synthetic, shape: [3, 12, 12], targets: [4, 12, 12], samples: 4}'

# ---- input beside a layer ----
{ echo 'input: "data"'; echo 'layer { name: "in" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 dim: 12 dim: 12 } } }'; conv a data; } >twice.prototxt
works plan twice.prototxt
has 'of 3x12x12'
sed 's/^input.*/& input_shape { dim: [2, 3, 9, 9] }/' twice.prototxt >both.prototxt
refused "\`input\` gives 'data' a shape, and layer in (Input) on line 2 makes a blob of this name, too" "$CONVOY" plan both.prototxt
{ echo 'input: "data"'; conv a data; } >open.prototxt
refused "the text does not say the shape of 'data'; give the shape of a sample: --input 3x32x32" "$CONVOY" plan open.prototxt
works plan open.prototxt --input 3x9x9
has 'of 3x9x9'

# ---- data of phase TEST only ----
{ echo 'layer { name: "in" type: "Input" top: "data" include { phase: TEST } input_param { shape { dim: 2 dim: 3 dim: 12 dim: 12 } } }'; conv a data; } >test.prototxt
works plan test.prototxt
has 'no layer of phase TRAIN gives data: the network is that of phase TEST' '2x4x12x12'
sed 's/phase: TEST/stage: "deploy"/' test.prototxt >stage.prototxt
refused "a (Convolution) reads 'data', which no earlier layer of this phase makes" "$CONVOY" plan stage.prototxt
echo 'state { stage: "deploy" }' >>stage.prototxt
works plan stage.prototxt

# ---- data of layers in Python ----
data='layer { name: "d" type: "Python" top: "data" top: "label" python_param { module: "shots" layer: "Shots" param_str: "{}" } }'
{ echo "$data"; conv a data; ip a; echo "$softmax_loss"; } >python.prototxt
cat >job.yaml <<'END'
model: {caffe: python.prototxt, input: 3x12x12}
data: {train: {format: synthetic, shape: [3, 12, 12], classes: 5, samples: 8}}
train: {batch: 4, steps: 1}
END
works train job.yaml --out python --threads 1 --progress none
refused "the text does not say the shape of 'data'" "$CONVOY" import python.prototxt --out no
works import python.prototxt --input 3x12x12 --out imported
contains imported/job.yaml 'from: [ip, label]' || fail "the imported job has no label: $(cat imported/job.yaml)"
works time --net python.prototxt --input 3x12x12 --steps 1 --threads 1
has 'network, training, f32' 'softmax_cross_entropy'
sed 's/"SoftmaxWithLoss"/"Python" loss_weight: 1/' python.prototxt >wrong.prototxt
refused 'loss (Python): convoy runs no Python, unless it gives the data' "$CONVOY" plan wrong.prototxt --input 3x12x12

# Labels and targets of unknown shapes get those that fit: maps, and pictures.
for loss in SoftmaxWithLoss:map EuclideanLoss:targets; do
    { echo "$data"; conv a data; echo "layer { name: \"loss\" type: \"${loss%:*}\" bottom: \"a\" bottom: \"label\" }"; } >dense.prototxt
    works import dense.prototxt --input 3x12x12 --out dense --force
    contains dense/job.yaml "${loss#*:}: [" || fail "no ${loss#*:} of a shape: $(cat dense/job.yaml)"
    works train dense/job.yaml --out "dense-${loss#*:}" --threads 1 --progress none --set train.epochs= --set train.steps=2
done

# Targets of a loss for 0 .. 1, also those that are made of x, are timed with such numbers.
{ echo "$data"; conv a data; ip a; echo 'layer { name: "loss" type: "SigmoidCrossEntropyLoss" bottom: "ip" bottom: "label" }'; } >many.prototxt
{ echo "$data"; conv a data; echo 'layer { name: "flat" type: "Flatten" bottom: "data" top: "flat" }'
    echo 'layer { name: "out" type: "InnerProduct" bottom: "a" top: "out" inner_product_param { num_output: 432 } }'
    echo 'layer { name: "loss" type: "SigmoidCrossEntropyLoss" bottom: "out" bottom: "flat" }'; } >coder.prototxt
for net in many coder; do
    works time --net $net.prototxt --input 3x12x12 --steps 1 --threads 1
    has ' bce '
done

# ---- data that are not here ----
for layer in 'Data:data_param { source: "nowhere" batch_size: 2 }' 'WindowData:window_data_param { source: "nowhere" batch_size: 2 }' \
    'ImageData:image_data_param { source: "nowhere" batch_size: 2 new_height: 99 new_width: 99 }'; do
    { echo "layer { name: \"d\" type: \"${layer%%:*}\" top: \"data\" top: \"label\" transform_param { crop_size: 12 } ${layer#*:} }"
        conv a data; ip a; echo "$softmax_loss"; } >absent.prototxt
    works plan absent.prototxt
    has 'absent.prototxt:1: ' 'the samples are generated instead, --set data.train=DATA gives others' 'of 3x12x12'
    works plan absent.prototxt --input 3x8x8
    has 'of 3x8x8'
    refused 'without its data the network can be planned, and not trained' "$CONVOY" train absent.prototxt
done
{ echo 'layer { name: "d" type: "Data" top: "data" top: "label" transform_param { crop_size: 12 } data_param { source: "nowhere" batch_size: 2 } }'
    conv a data; ip a; echo "$softmax_loss"; } >absent.prototxt
works plan absent.prototxt
has 'and not its channels: 3 are taken; an input of 1x12x12 says another number'
works train absent.prototxt --out own --threads 1 --progress none --set 'data.train={format: synthetic, shape: [3, 12, 12], classes: 5, samples: 4}' --set train.epochs= --set train.steps=1
works import absent.prototxt --out absent
contains absent/job.yaml 'no data of its own that can be read' || fail "no comment on the data: $(cat absent/job.yaml)"
refused '--input is for a network' "$CONVOY" plan absent/job.yaml --input 3x8x8
exit $failed
