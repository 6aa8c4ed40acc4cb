#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# seconds: 60
# level: 2
# onnx_runtime.sh: ONNX Runtime gives the numbers of `convoy predict` for exported files: every layer type that has an
# ONNX form, with three operator sets, and networks of the zoo; the checker of ONNX accepts the files. Skipped if Python
# has no onnx and onnxruntime; CONVOY_PYTHON names another Python.
. "$CONVOY_SOURCE/tests/exchange/onnx.inc"
python=${CONVOY_PYTHON:-python3}
"$python" "$CONVOY_SOURCE/tests/exchange/onnx_runtime.py" 2>/dev/null || {
    echo "$python has no onnx and onnxruntime: pip install onnx onnxruntime"
    exit 77
}
files=
# compare RUN NAME OPSET X OPTION...: exports, and notes what is to be compared. The prediction is in NAME.npy.
compare() {
    run=$1 name=$2 opset=$3 x=$4
    shift 4
    "$CONVOY" export "$run" "$name-$opset.onnx" --opset "$opset" "$@" >log 2>&1 || fail "export of $name, $opset: $(cat log)"
    files="$files $name-$opset.onnx $x $name.npy"
}

# ---- the layers ----
. "$CONVOY_SOURCE/tests/exchange/onnx_layers.inc"
for opset in 13 17 21; do compare layers.run layers $opset data/x.npy --outputs all; done

# ---- the network of onnx.inc, with the input as bytes and as reals ----
"$CONVOY" predict run --data data --out net.npy >log 2>&1 || fail "predict fails: $(cat log)"
compare run net 21 data/x.npy
compare run net 17 data/x.npy --float-input

# ---- networks of the zoo, with the weights of one step ----
mkdir small
"$python" -c 'import numpy; numpy.save("small/x.npy", numpy.random.default_rng(1).standard_normal((4, 3, 32, 32), "f"))' || fail "no data"
for net in cifar-full resnet-20 vgg-a googlenet-bn; do
    printf '%s\n' "model: {name: $net}" 'data: {train: {format: synthetic, samples: 4, shape: [3, 32, 32], classes: 10}}' \
        'train: {batch: 4, steps: 1, optimizer: {name: sgd, lr: 0.0001}, loss: softmax_cross_entropy}' >zoo.yaml
    "$CONVOY" train zoo.yaml --threads 1 --out $net.run >log 2>&1 || fail "$net: train fails: $(cat log)"
    "$CONVOY" predict $net.run --data small/x.npy --out $net.npy >log 2>&1 || fail "$net: predict fails: $(cat log)"
    compare $net.run $net 21 small/x.npy
done
# shellcheck disable=SC2086
"$python" "$CONVOY_SOURCE/tests/exchange/onnx_runtime.py" $files >log 2>&1 || fail "$(cat log)"
exit $failed
