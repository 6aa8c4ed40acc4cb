#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# Weights of torchvision and timm: the networks of the zoo give the outputs of PyTorch for the same weights and input,
# with errors like those of PyTorch against f64.
# CONVOY_TEST_PYTORCH names an interpreter with torch, torchvision, safetensors and, for its part, timm. Without it the
# test is skipped. CONVOY_TEST_LEVEL=2 tries all networks, which takes 5 GB of memory and some minutes.
. "$CONVOY_SOURCE/tests/shell.inc"
export CONVOY_SITE=off PYTHONDONTWRITEBYTECODE=1
[ -n "${CONVOY_TEST_PYTORCH-}" ] || { echo "it needs PyTorch: CONVOY_TEST_PYTORCH names an interpreter that has it"; exit 77; }
"$CONVOY_TEST_PYTORCH" -c 'import torch, torchvision, safetensors' 2>why || { echo "$CONVOY_TEST_PYTORCH lacks a package: $(tail -1 why)"; exit 77; }

# check NETWORK SIZE NAMES MODEL [OPTIONS]: one step at a rate of almost zero leaves the weights as they are, and frozen
# statistics stay; then the run predicts.
check() {
    "$CONVOY_TEST_PYTORCH" "$CONVOY_SOURCE/tests/cmd/pytorch_weights.py" make "$1" "$2" net >log 2>&1
    code=$?
    [ $code != 77 ] || { echo "$1 is left out: $(tail -1 log)"; return; }
    [ $code = 0 ] || { fail "$1: $(tail -3 log)"; return; }
    case $4 in vgg* | alexnet*) frozen=false ;; *) frozen=true ;; esac
    case ${5-} in batch_norm*) frozen=true ;; esac
    cat >job.yaml <<END
model: {name: $4${5:+, $5}}
data: {train: {format: synthetic, samples: 2, shape: [3, $2, $2], classes: 1000}}
train:
  batch: 2
  steps: 1
  precise: true
  optimizer: {name: sgd, lr: 1e-30, momentum: 0}
  init: {from: net.safetensors, names: $3}
batch_norm: {frozen: $frozen}
END
    rm -rf run
    "$CONVOY" train job.yaml --out run --progress none >log 2>&1 || { fail "$1: training fails: $(tail -3 log)"; return; }
    "$CONVOY" predict run --data '{path: net.x.npy, format: npy}' --out net.o.npy --force >log 2>&1 || { fail "$1: predict fails: $(tail -3 log)"; return; }
    line=$("$CONVOY_TEST_PYTORCH" "$CONVOY_SOURCE/tests/cmd/pytorch_weights.py" compare net) || fail "$1: the outputs differ"
    echo "$1 as $4${5:+ ($5)}: $line"
}

check resnet18 224 torchvision resnet-18
check timm:resnet18 224 timm resnet-18
check googlenet 224 torchvision googlenet-bn
if [ "${CONVOY_TEST_LEVEL:-1}" -ge 2 ]; then
    check resnet34 224 torchvision resnet-34
    check resnet50 224 torchvision resnet-50
    check resnet101 224 torchvision resnet-101
    check resnet152 224 torchvision resnet-152
    check vgg11 224 torchvision vgg-a
    check vgg13 224 torchvision vgg-13
    check vgg16 224 torchvision vgg-16
    check vgg19 224 torchvision vgg-19
    check vgg16_bn 224 torchvision vgg-16 'batch_norm: true'
    check alexnet 224 torchvision alexnet-v2
    check googlenet 224 torchvision googlenet-bn 'aux: true'
    check inception_v3 299 torchvision inception-v3
    check inception_v3 299 torchvision inception-v3 'aux: true'
    check timm:resnet50 224 timm resnet-50
    check timm:vgg11 224 timm vgg-a
    check timm:inception_v3 299 timm inception-v3
fi
# Weights of another depth are refused, though all names of the smaller network are in the file.
"$CONVOY_TEST_PYTORCH" "$CONVOY_SOURCE/tests/cmd/pytorch_weights.py" make resnet34 64 net >log 2>&1 || fail "resnet34: $(tail -3 log)"
sed -e 's/^model:.*/model: resnet-18/' -e 's/frozen: .*}/frozen: true}/' -e 's/names: .*}/names: torchvision}/' job.yaml >other.yaml
refused 'no variable takes layer1.2.bn1.bias' "$CONVOY" train other.yaml --out other --progress none
exit $failed
