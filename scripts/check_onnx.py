# SPDX-License-Identifier: BSD-3-Clause
"""check_onnx.py: checks that convoy reads the ONNX files of PyTorch's exporters rightly.

    python scripts/check_onnx.py [--build build/release] [--exporter script|dynamo|both] [--train] [--f64] [--size N] NETWORK...

NETWORK is one of torchvision.models. Each is made with random weights and statistics, exported, and applied by
`convoy predict` and by ONNX Runtime; the largest difference is printed, relative to the largest output. With --train,
three steps of SGD (rate 0.01, momentum 0.9) on four samples are done by convoy and by PyTorch, dropout off, and the
weights are compared: the largest difference, relative to the largest weight of a tensor if that is above 1. It needs torch, torchvision,
onnx, onnxruntime, onnxscript and safetensors. Behind the difference stands how far PyTorch's own weights move if the
input changes in its last digits: pictures of few pixels give batch norm few numbers, and small variances amplify each
rounding error, so that no two programs agree. The exit status is 1 if a difference is larger than 1e-4 (--f64: 1e-9).
"""
import argparse
import copy
import json
import logging
import os
import struct
import subprocess
import sys
import tempfile
import warnings

import numpy
import torch
import torchvision

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
TOLERANCE = {"predict": 1e-4, "f32": 1e-4, "f64": 1e-9}


def make(name, training):
    """The network with random weights, and statistics that are not trivial. Dropout is off."""
    torch.manual_seed(1)
    builder = getattr(torchvision.models, name, None) or getattr(torchvision.models.segmentation, name)
    options = {"weights": None}
    if name in ("googlenet", "inception_v3"):
        options.update(aux_logits=False, init_weights=False)
    if name in ("fcn_resnet50", "deeplabv3_resnet50"):
        options.update(weights_backbone=None, aux_loss=False)
    net = builder(**options)
    for key, value in net.state_dict().items():
        if key.endswith("running_mean"):
            value.normal_(0, 0.1)
        if key.endswith("running_var"):
            value.uniform_(0.5, 1.5)
    for module in net.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if hasattr(module, "dropout") and isinstance(module.dropout, float):
            module.dropout = 0.0
        if isinstance(module, torchvision.ops.StochasticDepth):
            module.p = 0.0
    return net.train(training)


class Wrapped(torch.nn.Module):
    """Segmentation networks give a dictionary."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        y = self.net(x)
        return y["out"] if isinstance(y, dict) else y


def export(net, x, path, exporter):
    """Writes an ONNX file: by the older exporter with a free batch, or by the newer one. Both keep batch norm for training."""
    if exporter == "dynamo":
        torch.onnx.export(net, (x,), path, dynamo=True, optimize=not net.training, opset_version=18, input_names=["input"], verbose=False)
        return
    torch.onnx.export(net, (x,), path, dynamo=False, opset_version=17, input_names=["input"], output_names=["output"],
                      dynamic_axes={"input": {0: "N"}, "output": {0: "N"}}, do_constant_folding=False,
                      training=torch.onnx.TrainingMode.TRAINING if net.training else torch.onnx.TrainingMode.PRESERVE)


def convoy(build, *words):
    subprocess.run([os.path.join(build, "convoy"), *words], check=True, capture_output=True, text=True)


def difference(a, b):
    return float(numpy.abs(a - b).max() / max(numpy.abs(b).max(), 1e-30))


def check_predict(name, exporter, args, folder):
    import onnxruntime

    x = torch.randn(2, 3, args.size or (299 if name == "inception_v3" else 224), args.size or (299 if name == "inception_v3" else 224))
    net, path = Wrapped(make(name, False)).eval(), os.path.join(folder, "net.onnx")
    export(net, x, path, exporter)
    want = onnxruntime.InferenceSession(path).run(None, {"input": x.numpy()})[0]
    numpy.save(os.path.join(folder, "x.npy"), x.numpy())
    convoy(args.build, "predict", path, "--data", os.path.join(folder, "x.npy"), "--out", os.path.join(folder, "y.npy"), "--force")
    got = numpy.load(os.path.join(folder, "y.npy"))
    return difference(got.reshape(want.shape), want)


def read_safetensors(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(length)), file.read()
    dtype = {"F32": numpy.float32, "F64": numpy.float64}
    return {key: numpy.frombuffer(data[entry["data_offsets"][0]:entry["data_offsets"][1]], dtype[entry["dtype"]]).reshape(entry["shape"])
            for key, entry in header.items() if key != "__metadata__"}


def train_torch(net, x, label, steps):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x), label).backward()
        optimizer.step()


def take_statistics(net, path):
    """Exporting a network in training mode runs it, which changes its running statistics: takes those of the file."""
    import onnx

    file = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer}
    for key, value in net.state_dict().items():
        if key in file and "running" in key:
            value.copy_(torch.from_numpy(file[key].copy()))


def check_train(name, exporter, args, folder):
    """Compares all tensors that both have, by PyTorch's name: batch norm's weight is convoy's scale, its bias the shift."""
    dtype = "f64" if args.f64 else "f32"
    size, batch, steps = args.size or 224, 4, 3
    net = make(name, True)
    torch.manual_seed(2)
    x, label = torch.randn(batch, 3, size, size), torch.arange(batch) % 10
    path = os.path.join(folder, "net.onnx")
    export(net, x, path, exporter)
    take_statistics(net, path)
    numpy.save(os.path.join(folder, "x.npy"), x.numpy())
    numpy.save(os.path.join(folder, "label.npy"), label.numpy().astype(numpy.int32))
    job = (f"model: {{onnx: {path}}}\n"
           f"data: {{train: {{path: {folder}, format: npy, classes: 1000, channels: first}}, shuffle: false}}\n"
           f"train: {{batch: {batch}, steps: {steps}, dtype: {dtype}, optimizer: {{name: sgd, lr: 0.01, momentum: 0.9}}, metrics: none}}\n"
           "batch_norm: {group: batch}\n")
    with open(os.path.join(folder, "job.yaml"), "w", encoding="ascii") as file:
        file.write(job)
    run = os.path.join(folder, "run")
    convoy(args.build, "train", os.path.join(folder, "job.yaml"), "--out", run)
    convoy(args.build, "export", run, os.path.join(folder, "weights.safetensors"))
    got = read_safetensors(os.path.join(folder, "weights.safetensors"))
    torch.manual_seed(3)
    if args.f64:
        net, x = net.double(), x.double()
    other = copy.deepcopy(net)
    train_torch(other, x * (1 + (1e-15 if args.f64 else 1e-7)), label, steps)
    train_torch(net, x, label, steps)
    after = zip(net.state_dict().values(), other.state_dict().values())
    moved = max(float((a - b).abs().max() / max(a.abs().max(), 1)) for a, b in after if a.is_floating_point())
    worst, compared = 0.0, 0
    for key, value in net.state_dict().items():
        layer, _, last = key.rpartition(".")
        ours = got.get(key)
        if ours is None:
            ours = got.get(f"{layer}.{ {'weight': 'scale', 'bias': 'shift'}.get(last, last)}")
        if ours is None:
            ours = got.get(key + ".scale")  # a parameter of its own that multiplies
            ours = None if ours is None else ours.reshape(value.shape)
        if ours is not None:
            worst, compared = max(worst, float(numpy.abs(ours - value.numpy()).max() / max(value.abs().max(), 1))), compared + 1
    return worst, moved, compared, sum(1 for key in net.state_dict() if not key.endswith("num_batches_tracked"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--exporter", choices=["script", "dynamo", "both"], default="both")
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--f64", action="store_true")
    parser.add_argument("--size", type=int, default=0, help="rows and columns of the input")
    parser.add_argument("networks", nargs="+")
    args = parser.parse_args()
    failed = 0
    for name in args.networks:
        for exporter in ["script", "dynamo"] if args.exporter == "both" else [args.exporter]:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    if args.train:
                        worst, moved, compared, all_tensors = check_train(name, exporter, args, folder)
                        bad = worst > TOLERANCE["f64" if args.f64 else "f32"] or compared < all_tensors
                        print(f"{name} {exporter}: {worst:.1e} ({moved:.0e}) in {compared} of {all_tensors} tensors{'  FAILED' if bad else ''}", flush=True)
                    else:
                        worst = check_predict(name, exporter, args, folder)
                        bad = worst > TOLERANCE["predict"]
                        print(f"{name} {exporter}: {worst:.1e}{'  FAILED' if bad else ''}", flush=True)
                except subprocess.CalledProcessError as error:
                    bad = True
                    print(f"{name} {exporter}: {error.stderr.strip().splitlines()[-1] if error.stderr.strip() else error}  FAILED", flush=True)
                except Exception as error:  # an exporter may fail, too
                    bad = True
                    print(f"{name} {exporter}: {type(error).__name__}: {str(error).splitlines()[0][:200]}  FAILED", flush=True)
                failed += bad
    sys.exit(1 if failed else 0)


main()
