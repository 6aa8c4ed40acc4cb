#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Batch norm against PyTorch: writes data and a job, and compares the run with the definition in
docs/guide/networks.md, whose groups PyTorch computes one by one. It belongs to pytorch_batch_norm.sh.

    pytorch_batch_norm.py make N BATCH ACCUMULATE GROUP POSITIONS WEIGHTS    data/, start.safetensors, job.yaml
    pytorch_batch_norm.py compare RUN                                        prints the largest difference

WEIGHTS is none, some (a third of the samples has weight 0) or mask (of the two outputs only the first has one). GROUP is a number, or batch. With GROUP batch all
weights of the network are compared too, after steps of plain gradient descent.
"""
import glob
import json
import os
import sys

import numpy as np
import torch
from torch import nn

RATE, STEPS, CHANNELS, OUTPUTS = 0.05, 3, 3, 2


def write_tensors(path, tensors):
    header, data = {}, b""
    for name, value in tensors.items():
        raw = value.astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + data)


def read_tensors(path):
    with open(path, "rb") as f:
        raw = f.read()
    end = 8 + int.from_bytes(raw[:8], "little")
    out = {}
    for name, t in json.loads(raw[8:end]).items():
        if name != "__metadata__":
            at = [end + i for i in t["data_offsets"]]
            out[name] = np.frombuffer(raw[at[0] : at[1]], "<f4").reshape(t["shape"])
    return out


def make(n, batch, accumulate, group, positions, weights):
    r = np.random.default_rng(n)
    x = r.normal([[[1], [2], [3]]], [[[1], [3], [0.5]]], (n, CHANNELS, positions)).astype("f4")
    y = r.normal(size=(n, OUTPUTS)).astype("f4")
    weight = r.uniform(0.5, 2, n).astype("f4") * (r.uniform(size=n) > 0.35)
    os.makedirs("data", exist_ok=True)
    for f in glob.glob("data/*"):
        os.remove(f)
    if weights != "none":
        x[weight == 0] *= 100
        stored = weight if weights == "some" else weight[:, None] * [1, 0]
        np.save("data/weight.npy", stored.astype("f4"))
    np.save("data/x.npy", x)
    np.save("data/y.npy", y)
    features = CHANNELS * positions
    write_tensors(
        "start.safetensors",
        {
            "norm.scale": np.ones(CHANNELS),
            "norm.shift": np.zeros(CHANNELS),
            "norm.running_mean": np.zeros(CHANNELS),
            "norm.running_var": np.ones(CHANNELS),
            "out.weight": r.normal(size=(OUTPUTS, features)) / features,
            "out.bias": np.zeros(OUTPUTS),
        },
    )
    with open("case.json", "w") as f:
        json.dump([n, batch, accumulate, group, positions, weights], f)
    with open("job.yaml", "w") as f:
        f.write(
            f"""model:
  layers:
    - batch_norm: {{name: norm}}
    - fc: {{name: out, channels: {OUTPUTS}}}
data: {{train: data, shuffle: false}}
train:
  batch: {batch}
  accumulate: {accumulate}
  steps: {STEPS}
  precise: true
  loss: mse
  optimizer: {{name: sgd, lr: {RATE}, momentum: 0, weight_decay: 0}}
  init: start.safetensors
batch_norm: {{group: {group}}}
checkpoint: {{keep: 1}}
"""
        )


def group_ends(n, size):
    fewest = -(-n // size)
    total = max(n // size if size > 1 and n < 2 * fewest else fewest, 1)
    return [(n * g // total, n * (g + 1) // total) for g in range(total)]


def batches(n, batch):
    """The samples of each step; the last step of an epoch may be short."""
    first = 0
    for _ in range(STEPS):
        yield first, min(first + batch, n)
        first = first + batch if first + batch < n else 0


def compare(run):
    with open("case.json") as f:
        n, batch, accumulate, group, positions, weights = json.load(f)
    x, y = (torch.from_numpy(np.load(f"data/{a}.npy")).double() for a in "xy")
    weight = torch.from_numpy(np.load("data/weight.npy")).double() if weights != "none" else torch.ones(n)
    counts = weight.reshape(n, -1).abs().sum(1) > 0
    start = {k: torch.from_numpy(v.copy()).double() for k, v in read_tensors("start.safetensors").items()}
    norm, out = nn.BatchNorm1d(CHANNELS).double(), nn.Linear(CHANNELS * positions, OUTPUTS).double()
    with torch.no_grad():
        out.weight.copy_(start["out.weight"])
        out.bias.copy_(start["out.bias"])
    for first, end in batches(n, batch):
        sums, values, at = [0, 0], 0, first
        micros = min(accumulate, end - first)
        for m in range(micros):
            size = (end - first) // micros + (m < (end - first) % micros)
            for a, b in group_ends(size, size if group == "batch" else int(group)):
                rows = x[at + a : at + b][counts[at + a : at + b]]
                if rows.shape[0] * positions < 2:
                    continue
                one = nn.BatchNorm1d(CHANNELS, momentum=1).double()
                one(rows)
                sums = [s + len(rows) * v for s, v in zip(sums, (one.running_mean, one.running_var))]
                values += len(rows)
            at += size
        if values and (group != "batch" or accumulate > 1):
            norm.running_mean.mul_(0.9).add_(0.1 * sums[0] / values)
            norm.running_var.mul_(0.9).add_(0.1 * sums[1] / values)
        elif values:
            rows = torch.arange(first, end)[counts[first:end]]
            w = weight[rows].reshape(len(rows), -1)
            error = (out(norm(x[rows]).flatten(1)) - y[rows]) ** 2
            loss = (error * w).mean(1).sum() / w.abs().mean(1).sum()
            for p in (*norm.parameters(), *out.parameters()):
                p.grad = None
            loss.backward()
            with torch.no_grad():
                for p in (*norm.parameters(), *out.parameters()):
                    p -= RATE * p.grad
    got = read_tensors(sorted(glob.glob(f"{run}/checkpoints/step-*/weights.safetensors"))[-1])
    expected = {"norm.running_mean": norm.running_mean, "norm.running_var": norm.running_var}
    if group == "batch" and accumulate == 1:
        expected.update({"norm.scale": norm.weight, "norm.shift": norm.bias, "out.weight": out.weight, "out.bias": out.bias})
    worst = 0
    for name, value in expected.items():
        off = np.abs(got[name] - value.detach().numpy()) / np.maximum(1, np.abs(value.detach().numpy()))
        worst = max(worst, off.max())
        if not off.max() < 1e-6:
            print(f"{name}: {got[name].ravel()[:3]}, expected {value.detach().numpy().ravel()[:3]}")
    print(f"{worst:.1e}")
    return not worst < 1e-6


if sys.argv[1] == "make":
    make(*(int(a) for a in sys.argv[2:5]), sys.argv[5], int(sys.argv[6]), sys.argv[7])
else:
    sys.exit(compare(sys.argv[2]))
