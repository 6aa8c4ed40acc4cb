# SPDX-License-Identifier: BSD-3-Clause
"""Compares ONNX files with predictions of convoy: onnx_runtime.py [FILE.onnx X.npy EXPECTED.npy]...

Without arguments it only says whether onnx and onnxruntime are there. Each file must pass the checker of ONNX with shape
inference, and ONNX Runtime must give the expected numbers for each batch size: within 1e-5 of the largest number, since
both compute in f32, with sums in another order.
"""
import sys

import numpy
import onnx
import onnxruntime

TOLERANCE = 1e-5


def check(path, x, expected):
    onnx.checker.check_model(onnx.load(path), full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    (source,) = session.get_inputs()
    if source.type == "tensor(float)":
        x = x.astype("float32")
    whole = session.run(None, {source.name: x})[0]
    alone = session.run(None, {source.name: x[:1]})[0]
    if whole.shape != expected.shape or alone.shape != expected[:1].shape:
        return f"shape {whole.shape}, expected {expected.shape}"
    error = max(abs(whole - expected).max(), abs(alone - expected[:1]).max()) / abs(expected).max()
    return None if error <= TOLERANCE else f"relative error {error:.2g}, expected at most {TOLERANCE}"


def main(words):
    failed = 0
    for i in range(0, len(words), 3):
        fault = check(words[i], numpy.load(words[i + 1]), numpy.load(words[i + 2]))
        if fault:
            print(f"{words[i]}: {fault}")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
