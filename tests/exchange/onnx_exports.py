# SPDX-License-Identifier: BSD-3-Clause
"""Compares `convoy predict` with ONNX Runtime for networks that PyTorch exports in several ways.

    onnx_exports.py CONVOY FOLDER [NAME]
    onnx_exports.py --write FOLDER

The second form writes the files of tests/exchange/exports and the numbers that ONNX Runtime gives for them.

Networks with attention, masks, moving batch axes and group norms, each by both exporters of PyTorch, in training and
evaluation mode, and with a fixed and a free batch. Each file is read, or refused with a sentence; it prints a line for
each file and the counts. Needs torch, onnx, onnxscript and onnxruntime.
"""
import contextlib
import io
import os
import shutil
import subprocess
import sys
import warnings

import numpy
import onnx
import onnxruntime
import torch
from torch import nn
from torch.nn import functional as F

T, C = 6, 8  # positions and channels of a sequence


class Attention(nn.Module):
    """nn.MultiheadAttention; with batch_first=False the batch moves to second place and back."""

    def __init__(self, batch_first, causal=False):
        super().__init__()
        self.attention = nn.MultiheadAttention(C, 2, batch_first=batch_first)
        self.first, self.causal = batch_first, causal

    def forward(self, x):
        h = x if self.first else x.transpose(0, 1)
        mask = torch.triu(torch.ones(T, T, dtype=torch.bool), 1) if self.causal else None
        h = self.attention(h, h, h, attn_mask=mask, need_weights=False)[0]
        return h if self.first else h.transpose(0, 1)


class Dot(nn.Module):
    """F.scaled_dot_product_attention on heads that are split by hand."""

    def __init__(self, causal):
        super().__init__()
        self.qkv, self.out, self.causal = nn.Linear(C, 3 * C), nn.Linear(C, C), causal

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        q, k, v = (t.view(-1, T, 2, C // 2).transpose(1, 2) for t in (q, k, v))
        h = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(h.transpose(1, 2).reshape(-1, T, C))


class Masked(nn.Module):
    """A causal mask by masked_fill, from a buffer or made in forward, as minGPT and nanoGPT do."""

    def __init__(self, made):
        super().__init__()
        self.qkv, self.made = nn.Linear(C, 3 * C, bias=False), made
        self.pos = nn.Parameter(torch.randn(1, T, C))
        self.register_buffer("bias", torch.tril(torch.ones(T, T)).view(1, 1, T, T))

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = self.qkv(x + self.pos).split(c, dim=2)
        q, k, v = (h.view(b, t, 2, c // 2).transpose(1, 2) for h in (q, k, v))
        a = q @ k.transpose(-2, -1) / (c // 2) ** 0.5
        mask = torch.tril(torch.ones(t, t)).view(1, 1, t, t) if self.made else self.bias[:, :, :t, :t]
        a = a.masked_fill(mask == 0, float("-inf")).softmax(-1)
        return (a @ v).transpose(1, 2).contiguous().view(b, t, c)


class Merged(nn.Module):
    """Heads are merged with the batch, [N * heads, T, C], as nn.MultiheadAttention's older code does."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(C, C) for _ in range(3))

    def forward(self, x):
        n = x.shape[0]
        q, k, v = (f(x).view(n, T, 2, C // 2).transpose(1, 2).reshape(n * 2, T, C // 2) for f in (self.q, self.k, self.v))
        a = torch.bmm(q, k.transpose(1, 2)).softmax(-1)
        return torch.bmm(a, v).view(n, 2, T, C // 2).transpose(1, 2).reshape(n, T, C)


class Positions(nn.Module):
    """A table of positions from a buffer, as in PyTorch's tutorial, and one that is learned."""

    def __init__(self):
        super().__init__()
        self.lin, self.table = nn.Linear(C, C), nn.Embedding(T + 2, C)
        self.register_buffer("pe", torch.randn(1, T + 4, C))

    def forward(self, x):
        t = x.shape[1]
        return self.lin(x + self.pe[:, :t] + self.table(torch.arange(t, device=x.device))).relu()


class Token(nn.Module):
    """A class token before the sequence, as in ViT."""

    def __init__(self):
        super().__init__()
        self.cls, self.pos = nn.Parameter(torch.randn(1, 1, C)), nn.Parameter(torch.randn(1, T + 1, C))
        self.layer = nn.TransformerEncoderLayer(C, 2, 16, dropout=0, batch_first=True)
        self.head = nn.Linear(C, 5)

    def forward(self, x):
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.pos
        return self.head(self.layer(x)[:, 0])


class Encoder(nn.Module):
    def __init__(self, batch_first, norm_first=False, causal=False):
        super().__init__()
        activation = "gelu" if norm_first else "relu"
        self.net = nn.ModuleList(
            nn.TransformerEncoderLayer(C, 2, 16, 0, activation, batch_first=batch_first, norm_first=norm_first)
            for _ in range(2))
        self.first = batch_first
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(T) if causal else None)

    def forward(self, x):
        h = x if self.first else x.transpose(0, 1)
        for layer in self.net:
            h = layer(h, src_mask=self.mask)
        return h if self.first else h.transpose(0, 1)


class Groups(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(4, 8), nn.ReLU(), nn.Conv2d(8, 6, 3),
                                 nn.GroupNorm(1, 6), nn.SiLU(), nn.InstanceNorm2d(6, affine=True))

    def forward(self, x):
        return self.net(x).square().mean((2, 3))


class Bare(nn.Module):
    """Norms without parameters, and constants as the network's own."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.a, self.b = nn.InstanceNorm2d(8), nn.GroupNorm(2, 8, affine=False)
        self.c, self.d = nn.Conv2d(8, 6, 3), nn.LayerNorm(6, elementwise_affine=False)
        self.register_buffer("pixel_mean", torch.randn(1, 3, 1, 1))
        self.register_buffer("pixel_std", torch.rand(1, 3, 1, 1) + 0.5)

    def forward(self, x):
        h = self.conv((x - self.pixel_mean) / self.pixel_std)
        return self.d(self.c(self.b(self.a(h).relu())).mean((2, 3)))


NETS = {
    "mha-first": (lambda: Attention(True), (T, C)), "mha-second": (lambda: Attention(False), (T, C)),
    "mha-second-causal": (lambda: Attention(False, True), (T, C)),
    "sdpa": (lambda: Dot(False), (T, C)), "sdpa-causal": (lambda: Dot(True), (T, C)),
    "masked": (lambda: Masked(False), (T, C)), "masked-made": (lambda: Masked(True), (T, C)),
    "merged": (Merged, (T, C)), "positions": (Positions, (T, C)), "token": (Token, (T, C)),
    "encoder": (lambda: Encoder(True), (T, C)), "encoder-second-causal": (lambda: Encoder(False, False, True), (T, C)),
    "encoder-norm-first-causal": (lambda: Encoder(True, True, True), (T, C)),
    "groups": (Groups, (3, 7, 6)), "bare": (Bare, (3, 7, 6)),
}


def export(net, shape, path, newer, train, free, opset, batch=2):
    x = torch.randn(batch, *shape)
    options = {"input_names": ["x"], "output_names": ["y"], "dynamo": newer, "opset_version": opset}
    net.train(train)
    if newer:
        options["optimize"] = not train
        if free:
            options["dynamic_shapes"] = ({0: torch.export.Dim("batch")},)
        options["verbose"] = False
    else:
        mode = torch.onnx.TrainingMode
        options.update(training=mode.TRAINING if train else mode.EVAL, do_constant_folding=not train)
        if free:
            options["dynamic_axes"] = {"x": {0: "batch"}, "y": {0: "batch"}}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        torch.onnx.export(net, (x,), path, external_data=False, **options) if newer else torch.onnx.export(
            net, (x,), path, **options)


def convoy_does(convoy, *words):
    run = subprocess.run([convoy, *words], capture_output=True, text=True)
    return None if run.returncode == 0 else run.stderr.strip().splitlines()[-1]


def difference(convoy, what, path, work):
    """Of `convoy predict WHAT` and ONNX Runtime with the file; None: equal."""
    out = os.path.join(work, "out.npy")
    fault = convoy_does(convoy, "predict", what, "--data", os.path.join(work, "data"), "--out", out, "--force")
    if fault:
        return "refused: " + fault
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    expected = session.run(None, {"x": numpy.load(os.path.join(work, "data", "x.npy"))})[0]
    got = numpy.load(out)
    if got.shape != expected.shape:
        return f"wrong: shape {got.shape}, expected {expected.shape}"
    error = abs(got - expected).max() / abs(expected).max()
    return None if error < 1e-5 else f"wrong: relative error {error:.2g}"


def looks_ahead(path, x):
    """Whether the first position of the output depends on the last one of the input."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    other = x.copy()
    other[:, -1] += 1
    return abs(session.run(None, {"x": x})[0][:, 0] - session.run(None, {"x": other})[0][:, 0]).max() > 0


def compare(convoy, path, shape, work, causal):
    """"read", "refused: ..", "wrong: .."; after three steps of training the network is written and compared again."""
    data = os.path.join(work, "data")
    os.makedirs(data, exist_ok=True)
    x = numpy.random.default_rng(1).standard_normal((2, *shape)).astype("float32")
    numpy.save(os.path.join(data, "x.npy"), x)
    fault = difference(convoy, path, path, work)
    if fault:
        return fault
    y = numpy.load(os.path.join(work, "out.npy"))
    train = os.path.join(work, "train")
    os.makedirs(train, exist_ok=True)
    numpy.save(os.path.join(train, "x.npy"), x)
    numpy.save(os.path.join(train, "y.npy"), y + 1)
    job, run, back = (os.path.join(work, name) for name in ("job.yaml", "run", "back.onnx"))
    with open(job, "w") as file:
        file.write(f"model: {{onnx: {path}}}\ndata: {{train: {train}}}\n"
                   "train: {batch: 2, steps: 3, optimizer: {name: adam, lr: 0.01}, loss: mse}\n")
    shutil.rmtree(run, ignore_errors=True)
    fault = convoy_does(convoy, "train", job, "--out", run) or convoy_does(convoy, "export", run, back, "--force")
    if fault:
        return "wrong: not trained and written: " + fault
    fault = difference(convoy, run, back, work)
    if fault:
        return "wrong: as written after training: " + fault
    return "wrong: the mask is none any more" if causal and looks_ahead(back, x) else "read"


def main(convoy, work, only=None):
    count = {"read": 0, "refused": 0, "wrong": 0, "not exported": 0}
    os.makedirs(work, exist_ok=True)
    for number, (name, (make, shape)) in enumerate(NETS.items()):
        for newer in (True, False):
            for train in (False, True):
                if only and only not in name:
                    continue
                free = (number + train) % 2 == 1  # each mode has half of the networks with a free batch
                opset = {(True, False): 18, (True, True): 21, (False, False): 17, (False, True): 14}[newer, free]
                title = f"{name}-{'newer' if newer else 'older'}-{'train' if train else 'eval'}-{'free' if free else 'fixed'}"
                path = os.path.join(work, f"{title}-{opset}.onnx")
                torch.manual_seed(1)
                try:
                    if not os.path.exists(path):
                        export(make(), shape, path, newer, train, free, opset)
                    result = compare(convoy, path, shape, work, "causal" in name or "masked" in name)
                except Exception as e:  # the exporter's own limits
                    result = "not exported: " + " ".join(str(e).split())[:150]
                count[result.split(":")[0]] += 1
                print(f"{title}: {result}", flush=True)
    print(", ".join(f"{n} {what}" for what, n in count.items()))
    return count["wrong"] > 0


WRITTEN = ["mha-first-newer-train-free", "mha-second-causal-older-eval-fixed", "sdpa-causal-newer-eval-fixed",
           "masked-newer-eval-free", "masked-made-older-train-free", "merged-older-eval-free",
           "positions-newer-eval-fixed", "token-older-eval-one", "groups-newer-train-fixed", "bare-newer-eval-fixed"]


def write(folder):
    """Small files without the exporter's remarks, and for each a line: name, shape of a sample, expected numbers."""
    lines = []
    for title in WRITTEN:
        name, exporter, mode, batch = title.rsplit("-", 3)
        make, shape = NETS[name]
        newer, free = exporter == "newer", batch == "free"
        opset = {(True, False): 18, (True, True): 21, (False, False): 17, (False, True): 14}[newer, free]
        path = os.path.join(folder, title + ".onnx")
        torch.manual_seed(1)
        export(make(), shape, path, newer, mode == "train", free, opset, 1 if batch == "one" else 2)
        model = onnx.load(path)
        constants = {t.name for t in model.graph.initializer}
        for node in model.graph.node:
            node.ClearField("doc_string")
            node.ClearField("metadata_props")
        kept = [v for v in model.graph.value_info if v.name in constants]
        del model.graph.value_info[:]
        model.graph.value_info.extend(kept)
        onnx.save(model, path)
        n = int(numpy.prod(shape))
        x = ((numpy.arange(2 * n) * 37 % 101) / 50 - 1).astype("float32").reshape(2, *shape)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        parts = [x[:1], x[1:]] if batch == "one" else [x]
        y = numpy.concatenate([session.run(None, {"x": part})[0] for part in parts])
        lines.append(f"{title} {n} {y.size} " + " ".join(f"{v:.7g}" for v in y.ravel()))
    with open(os.path.join(folder, "expected.txt"), "w") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(write(sys.argv[2]) if sys.argv[1] == "--write" else main(*sys.argv[1:]))
