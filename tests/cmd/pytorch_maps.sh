#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# seconds: 60
# level: 2
# unet, cosmoflow and deepcam have the parameters, outputs and gradients of the same networks in PyTorch, with the same weights:
# outputs to 1e-5 and gradients to 1e-4 of the largest, in f32, against PyTorch in f64.
# CONVOY_TEST_PYTORCH names an interpreter with torch and safetensors. Without it the test is skipped.
. "$CONVOY_SOURCE/tests/shell.inc"
export CONVOY_SITE=off PYTHONDONTWRITEBYTECODE=1
[ -n "${CONVOY_TEST_PYTORCH-}" ] || { echo "it needs PyTorch: CONVOY_TEST_PYTORCH names an interpreter that has it"; exit 77; }
"$CONVOY_TEST_PYTORCH" -c 'import torch, safetensors' 2>why || { echo "$CONVOY_TEST_PYTORCH lacks a package: $(tail -1 why)"; exit 77; }

# train RATE FROZEN: one step on the whole batch, from the weights of PyTorch.
train() {
    case $loss in mse) role='' ;; *) role='roles: {y: {role: label_map, classes: 3}}' ;; esac
    cat >job.yaml <<END
model: {name: $network, classes: 3$(for o in $options; do printf ', %s: %s' "${o%%=*}" "${o#*=}"; done)}
data:
  train: {format: npy, x: net.x.npy, y: net.y.npy}
  $role
train:
  batch: 2
  steps: 1
  precise: true
  loss: $loss
  optimizer: {name: sgd, lr: $1, momentum: 0}
  init: net.safetensors
batch_norm: {frozen: $2}
END
    rm -rf run
    "$CONVOY" train job.yaml --out run --progress none >log 2>&1 || { fail "$network $options: training fails: $(tail -3 log)"; return 1; }
}

# check NETWORK SIZE LOSS [OPTION=VALUE ...]: a step at a rate of almost zero keeps the weights, for the outputs. A step
# at a high rate changes them by the gradient, whose rounding errors are then large against those of the weights.
check() {
    network=$1 size=$2 loss=$3
    shift 3
    options=$*
    "$CONVOY_TEST_PYTORCH" "$CONVOY_SOURCE/tests/cmd/pytorch_maps.py" make $network $size $loss net $options >log 2>&1 ||
        { fail "$network $options: $(tail -3 log)"; return; }
    case $network$options in deepcam*|*norm=batch*) frozen=true ;; *) frozen=false ;; esac
    train 1e-30 $frozen || return
    "$CONVOY" predict run --data '{path: net.x.npy, format: npy}' --out net.o.npy --force >log 2>&1 ||
        { fail "$network $options: predict fails: $(tail -3 log)"; return; }
    train 1000 false || return
    line=$("$CONVOY_TEST_PYTORCH" "$CONVOY_SOURCE/tests/cmd/pytorch_maps.py" compare net run/checkpoints/step-00000001/weights.safetensors 1000 2>&1) ||
        fail "$network $options: it differs"
    echo "$network $size $options, $loss: $line"
}

entropy=softmax_cross_entropy
check unet 1x32x48 $entropy depth=3 filters=8 norm=batch
check unet 2x32x32 $entropy depth=2 filters=8 norm=none
check unet 2x32x32 $entropy depth=2 filters=8 norm=batch residual=true attention=true
check unet 3x16x32 dice depth=2 filters=8 norm=group groups=4 residual=true
check unet 1x32x32 focal depth=2 filters=8 norm=instance up=resize attention=true
# Two channels: with one, the projection of the first block is a factor, which batch norm removes, so its gradient is 0.
check unet 2x16x16x8 $entropy depth=2 filters=4 norm=batch residual=true attention=true
check unet 2x8x16x16 dice depth=2 filters=4 norm=group groups=2 up=resize attention=true
# With fewer filters all of pool_relu may be above 0: batch norm then removes pool_affine.shift, whose gradient is 0.
check deepcam 4x32x48 $entropy filters=8 middle=1
check cosmoflow 4x32x32x32 mse depth=5 filters=4 dropout=0
check cosmoflow 2x16x16x16 mse depth=3 filters=8 kernel=2 dropout=0 range=0
exit $failed
