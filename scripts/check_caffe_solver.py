# SPDX-License-Identifier: BSD-3-Clause
"""check_caffe_solver.py: checks that `convoy train --solver` trains the weights that Caffe trains, in double precision.

    python scripts/check_caffe_solver.py PROGRAM [--build build/release]

PROGRAM is scripts/caffe_steps.cpp, compiled with Caffe 1.0 (CPU_ONLY) and its libraries. For each solver and policy of
the learning rate Caffe makes the first weights and trains 14 steps of 10 samples on 60 samples; convoy trains the same
steps from the same weights, with the same text but for the layer of data. With each solver convoy also continues from
Caffe's solverstate of step 7. The table has the largest difference of a tensor, relative to its largest number. The
exit status is 1 if one is above 1e-12. Numbers in the solvers are sums of powers of two, because Caffe rounds them to
f32. It needs numpy and h5py.
"""
import argparse
import glob
import json
import os
import struct
import subprocess
import sys
import tempfile

import h5py
import numpy

TOLERANCE = 1e-12
SAMPLES, BATCH, STEPS, SNAPSHOT = 60, 10, 14, 7
SHAPE = (3, 12, 12)

FILL = 'weight_filler { type: "xavier" } bias_filler { type: "constant" value: 0.125 }'
NET = """
layer { name: "c" type: "Convolution" bottom: "data" top: "c" param { lr_mult: 1 } param { lr_mult: 2 decay_mult: 0 }
  convolution_param { num_output: 6 kernel_size: 3 pad: 1 %(fill)s } }
layer { name: "r" type: "ReLU" bottom: "c" top: "c" }
layer { name: "p" type: "Pooling" bottom: "c" top: "p" pooling_param { pool: MAX kernel_size: 3 stride: 2 } }
layer { name: "n" type: "LRN" bottom: "p" top: "n" lrn_param { local_size: 3 alpha: 0.125 } }
layer { name: "c2" type: "Convolution" bottom: "n" top: "c2"
  convolution_param { num_output: 4 kernel_size: 3 %(fill)s } }
layer { name: "p2" type: "Pooling" bottom: "c2" top: "p2" pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 } }
layer { name: "f" type: "InnerProduct" bottom: "p2" top: "f" param { lr_mult: 1 } param { lr_mult: 2 }
  inner_product_param { num_output: 5 %(fill)s } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "f" bottom: "label" top: "loss" }
""" % {"fill": FILL}
CAFFE_DATA = ('layer { name: "d" type: "Input" top: "data" top: "label" input_param { shape { dim: 10 dim: 3 dim: 12 '
              'dim: 12 } shape { dim: 10 } } }')
CONVOY_DATA = ('layer { name: "d" type: "HDF5Data" top: "data" top: "label" hdf5_data_param { source: "files.txt" '
               'batch_size: 10 } }')

USUAL = f"max_iter: {STEPS} weight_decay: 0.0078125 "
FIXED, DELTA, MOMENTUM = 'base_lr: 0.0625 lr_policy: "fixed" ', "delta: 0.0009765625 ", "momentum: 0.875 "
SOLVERS = {
    "SGD": 'type: "SGD" ' + MOMENTUM + FIXED,
    "Nesterov": 'type: "Nesterov" ' + MOMENTUM + FIXED,
    "AdaGrad": 'type: "AdaGrad" ' + DELTA + FIXED,
    "RMSProp": 'type: "RMSProp" rms_decay: 0.9375 ' + DELTA + FIXED,
    "AdaDelta": 'type: "AdaDelta" momentum: 0.9375 base_lr: 1 lr_policy: "fixed" ' + DELTA,
    "Adam": 'type: "Adam" momentum2: 0.9375 ' + MOMENTUM + DELTA + FIXED,
}
SGD = "base_lr: 0.0625 " + MOMENTUM
OTHERS = {
    "without momentum": FIXED,
    "step": SGD + 'lr_policy: "step" gamma: 0.25 stepsize: 5',
    "multistep": SGD + 'lr_policy: "multistep" gamma: 0.25 stepvalue: 3 stepvalue: 8',
    "exp": SGD + 'lr_policy: "exp" gamma: 0.9375',
    "inv": SGD + 'lr_policy: "inv" gamma: 0.125 power: 0.75',
    "poly": SGD + 'lr_policy: "poly" power: 0.5',
    "sigmoid": SGD + 'lr_policy: "sigmoid" gamma: 0.5 stepsize: 6',
    "L1": MOMENTUM + FIXED + 'regularization_type: "L1"',
    "clip_gradients": MOMENTUM + FIXED + "clip_gradients: 0.25",
}


def put(name, text):
    with open(name, "w") as file:
        file.write(text)


def make_data():
    rng = numpy.random.default_rng(3)
    x = rng.normal(size=(SAMPLES,) + SHAPE).astype("f4")
    label = rng.integers(0, 5, SAMPLES)
    x.astype("f8").tofile("x.bin")
    label.astype("f8").tofile("label.bin")
    with h5py.File("data.h5", "w") as file:
        file["data"] = x
        file["label"] = label.astype("f4")
    put("files.txt", "data.h5\n")
    put("caffe.prototxt", CAFFE_DATA + NET)
    put("convoy.prototxt", CONVOY_DATA + NET)


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")


def tensors(path):
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    found = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__" and entry["dtype"] in ("F32", "F64"):
            first, end = (8 + size + at for at in entry["data_offsets"])
            found[name] = numpy.frombuffer(data[first:end], "<f8" if entry["dtype"] == "F64" else "<f4")
    return found


def compare(convoy, solver, first):
    """Trains with convoy; `first` are the words that say where it begins."""
    run("rm", "-rf", "run", "last")
    put("convoy_solver.prototxt", f'net: "convoy.prototxt" {solver}')
    run(convoy, "train", "--solver", "convoy_solver.prototxt", *first, "--out", "run", "--threads", "1", "--progress",
        "none", "--set", "train.dtype=f64")
    run(convoy, "import", "convoy.prototxt", "last.caffemodel", "--out", "last")
    caffe, own = (tensors(sorted(glob.glob(pattern))[-1])
                  for pattern in ("last/weights.safetensors", "run/checkpoints/step-*/weights.safetensors"))
    return max(numpy.abs(caffe[name] - own[name]).max() / numpy.abs(caffe[name]).max() for name in caffe)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--build", default="build/release")
    args = parser.parse_args()
    program, convoy = os.path.abspath(args.program), os.path.abspath(os.path.join(args.build, "convoy"))
    worst = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make_data()
        for name, text in {**SOLVERS, **OTHERS}.items():
            put("solver.prototxt", f'net: "caffe.prototxt" {USUAL}{text}')
            run(program, "solver.prototxt", "first.caffemodel", "last.caffemodel", str(STEPS), "x.bin", "label.bin",
                str(BATCH), str(numpy.prod(SHAPE)), str(SAMPLES), str(SNAPSHOT), "state")
            off = compare(convoy, USUAL + text, ["--weights", "first.caffemodel"])
            line = f"{name:18} {off:.1e}"
            worst = max(worst, off)
            if name in SOLVERS:
                off = compare(convoy, USUAL + text, ["--snapshot", f"state_iter_{SNAPSHOT}.solverstate"])
                line += f"   from step {SNAPSHOT}: {off:.1e}"
                worst = max(worst, off)
            print(line, flush=True)
        os.chdir("/")
    sys.exit(int(worst > TOLERANCE))


if __name__ == "__main__":
    main()
