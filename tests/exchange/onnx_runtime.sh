#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# seconds: 60
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

# ---- the layers: each result becomes a row, and all rows are one output ----
cat >layers <<'END'
conv: {channels: 4, kernel: [3, 5], stride: [2, 1], pad: [1, 0], dilation: [1, 2], groups: 2, bias: false}
deconv: {channels: 6, kernel: 3, stride: 2, pad: 1, output_pad: 1, groups: 2}
max_pool: {kernel: 3, stride: 2, pad: 1, ceil: true}
max_pool: {kernel: 2, stride: 3, ceil: true}
avg_pool: {kernel: 3, stride: 2, pad: 1}
avg_pool: {kernel: 3, stride: 2, ceil: true}
avg_pool: {kernel: 4, stride: 3, pad: 1, ceil: true}
avg_pool: {kernel: 4, stride: 3, pad: 1, ceil: true, count_include_pad: false}
global_avg_pool
global_max_pool
batch_norm: {eps: 0.01}
batch_norm: {scale_shift: false}
group_norm: {groups: 2}
group_norm: {groups: 2, scale_shift: false}
instance_norm
layer_norm
layer_norm: {axes: 1}
layer_norm: {axes: [1, 2], scale_shift: false}
lrn: {size: 3, alpha: 0.1}
lrn_within: {size: 3, alpha: 0.1}
relu
sigmoid
tanh
leaky_relu: {slope: 0.2}
elu: {alpha: 0.7}
prelu
prelu: {per_channel: true}
silu
hard_swish
softplus
softplus: {beta: 2}
gelu
gelu: {approximate: tanh}
softmax
log_softmax
scale: {by: 0.3}
dropout
fc: {channels: 5}
flatten
reshape: {shape: [2, -1, 3]}
slice: {axis: 2, first: 1, count: 3}
pad: {before: [1, 0], after: [2, 1]}
crop: {before: [1, 0], after: [2, 1]}
pad_slice: {axis: 1, first: 2, whole: 9}
resize: {size: [13, 21]}
resize: {scale: 1.3}
resize: {size: [13, 20], mode: bilinear}
resize: {scale: 2, mode: bilinear, align_corners: true}
add: {from: [a, b, c]}
subtract: {from: [a, b]}
multiply: {from: [a, b, c]}
multiply: {from: [a, d]}
maximum: {from: [a, b, c]}
concat: {axis: 3, from: [a, b]}
matmul: {from: [a, b], transpose_b: true}
matmul: {from: [a, b], transpose_a: true}
END
awk '
BEGIN {
    print "model:\n  layers:"
    for (i = 1; i <= 3; i++)
        print "    - conv: {name: " substr("abc", i, 1) ", channels: 4, kernel: 3, pad: 1, from: x}"
    print "    - global_avg_pool: {name: d, from: b}"
}
{
    op = $0; sub(/:.*/, "", op)
    options = $0; if (!sub(/^[a-z_]*: \{/, "", options)) options = "}"
    if (options !~ /from:/) options = "from: a" (options == "}" ? "" : ", ") options
    print "    - " op ": {name: l" NR ", " options
    print "    - flatten: {name: r" NR ", from: l" NR "}"
    rows[NR] = "r" NR
}
END {
    for (n = NR; n > 1; n = m) { # a concat has at most 8 sources
        m = 0
        for (i = 1; i <= n; i += 8) {
            list = rows[i]; for (k = i + 1; k < i + 8 && k <= n; k++) list = list ", " rows[k]
            name = n <= 8 ? "all" : "j" ++joined
            if (i < n) print "    - concat: {name: " name ", from: [" list "]}"; else name = rows[i]
            rows[++m] = name
        }
    }
    print "    - fc: {name: classes, channels: 4, from: all}"
}' layers >layers.yaml
sed '1,/name: classes/d' job.yaml >>layers.yaml
"$CONVOY" train layers.yaml --threads 1 --out layers.run --set train.optimizer.lr=0.0001 --set data.augment='[{log: 2}, {asinh: {by: [1, 2, 3]}}]' >log 2>&1 || fail "train fails: $(cat log)"
"$CONVOY" predict layers.run --data data --outputs all --out layers.npy >log 2>&1 || fail "predict fails: $(cat log)"
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
