#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the golden files of test_golden.c with PyTorch, in double precision. The tests need neither Python nor PyTorch.

    python3 make_golden.py    # writes plain.safetensors, residual.safetensors, regression.safetensors into its folder

Each file holds what test_golden.c reads:

    in.<input>             [batches, N, ...]  inputs (labels too), f32; step s takes batch s mod batches
    init.<variable>                           f32, so that both precisions start from the same point
    grad.<variable>                           gradient of the sum of the losses in the first step
    loss.<loss>            [steps]            each loss before the step's update
    final.<variable>                          after ten steps, running statistics included
    eval.<output>          [N, ...]           output for batch 0 in evaluation mode with the final weights

The networks are written down here again, layer by layer, with the names that they have in test_golden.c.
"""
import os

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

STEPS = 10
BATCHES = 2


def as_f32(t):
    """Rounds to f32 and keeps the numbers in f64."""
    return t.to(torch.float32).to(torch.float64)


class Plain(nn.Module):
    """Grouped, strided and dilated convolutions, LRN, max pooling, a fully connected layer."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(4, 16, 3, padding=1, groups=2)
        self.conv2 = nn.Conv2d(16, 8, 3, padding=2, dilation=2)
        self.conv3 = nn.Conv2d(8, 16, 3, stride=2, padding=1, groups=4)
        self.fc = nn.Linear(16 * 3 * 2, 5)

    def forward(self, inputs):
        x = F.relu(self.conv1(inputs["x"]))
        x = F.local_response_norm(x, 3, alpha=0.5, beta=0.75, k=1.5)
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = F.relu(self.conv3(x))
        x = self.fc(x.flatten(1))
        return x, {"loss": F.cross_entropy(x, inputs["label"], label_smoothing=0.1)}

    @staticmethod
    def inputs():
        return {"x": torch.randn(BATCHES, 5, 4, 10, 7), "label": torch.randint(0, 5, (BATCHES, 5))}

    @staticmethod
    def optimizer(groups):
        return torch.optim.SGD(groups, lr=0.05, momentum=0.9)


class Residual(nn.Module):
    """Batch norm over the whole batch, a strided residual block with a projection, global average pooling."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(16, momentum=0.2, eps=1e-3)
        self.proj = nn.Conv2d(8, 16, 1, stride=2)
        self.fc = nn.Linear(16, 4)

    def forward(self, inputs):
        x = F.relu(self.bn1(self.conv1(inputs["x"])))
        x = F.relu(self.bn2(self.conv2(x)) + self.proj(x))
        x = self.fc(x.mean((2, 3)))
        return x, {"loss": F.cross_entropy(x, inputs["label"])}

    @staticmethod
    def inputs():
        return {"x": torch.randn(BATCHES, 7, 3, 8, 8), "label": torch.randint(0, 4, (BATCHES, 7))}

    @staticmethod
    def optimizer(groups):
        return torch.optim.SGD(groups, lr=0.1, momentum=0.9, nesterov=True)


class Regression(nn.Module):
    """Two inputs, deconvolution, concatenation, average pooling, two heads with three weighted losses, weights of samples, Adam."""

    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(2, 8, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(8, 6, 3, stride=2, padding=1, output_padding=1)
        self.image = nn.Conv2d(8, 1, 3, padding=1)
        self.hidden = nn.Linear(8 * 3 * 3 + 3, 12)
        self.head = nn.Linear(12, 3)

    def forward(self, inputs):
        a, b = inputs["a"], inputs["b"]
        down = torch.tanh(self.down(a))
        both = torch.cat([self.up(down), a], 1)
        pool = F.avg_pool2d(both, 3, stride=1, padding=1, count_include_pad=False)
        image = self.image(torch.sigmoid(pool))
        hidden = F.leaky_relu(self.hidden(torch.cat([down.flatten(1), b], 1)), 0.1)
        head = self.head(hidden)
        weight = inputs["weight"]
        mae = (head - inputs["y"]).abs().mean(1)
        losses = {
            "image_loss": 2.0 * F.mse_loss(image, inputs["target"]),
            "head_loss": 0.5 * F.huber_loss(head, inputs["y"], delta=0.7),
            "weighted_loss": 0.25 * (weight * mae).sum() / weight.sum(),
        }
        return head, losses

    @staticmethod
    def inputs():
        return {
            "a": torch.randn(BATCHES, 6, 2, 6, 6),
            "b": torch.randn(BATCHES, 6, 3),
            "target": torch.randn(BATCHES, 6, 1, 6, 6),
            "y": torch.randn(BATCHES, 6, 3),
            "weight": torch.rand(BATCHES, 6) + 0.5,
        }

    @staticmethod
    def optimizer(groups):
        return torch.optim.Adam(groups, lr=0.01, betas=(0.9, 0.99), eps=1e-4)


def variables(net):
    """Returns parameters and running statistics with the names that convoy gives them."""
    for name, t in list(net.named_parameters()) + list(net.named_buffers()):
        if name.endswith("num_batches_tracked"):
            continue
        layer, kind = name.rsplit(".", 1)
        if isinstance(getattr(net, layer), nn.BatchNorm2d):
            kind = {"weight": "scale", "bias": "shift"}.get(kind, kind)
        yield f"{layer}.{kind}", t


def make(name, kind, seed):
    torch.manual_seed(seed)
    net = kind().to(torch.float64)
    inputs = kind.inputs()
    inputs = {k: as_f32(v) if v.is_floating_point() else v for k, v in inputs.items()}
    out = {f"in.{k}": v.to(torch.float32) for k, v in inputs.items()}
    decayed, free = [], []
    with torch.no_grad():
        for variable, t in variables(net):
            if variable.endswith((".scale", ".shift", ".bias")):
                t.add_(torch.rand_like(t) * 0.2 - 0.1)
            t.copy_(as_f32(t))
            out[f"init.{variable}"] = t.to(torch.float32)
            if t.requires_grad:
                (decayed if variable.endswith(".weight") else free).append(t)
    optimizer = kind.optimizer([{"params": decayed, "weight_decay": 0.01}, {"params": free, "weight_decay": 0.0}])
    history = {}
    for step in range(STEPS):
        batch = {k: v[step % BATCHES] for k, v in inputs.items()}
        optimizer.zero_grad()
        _, losses = net(batch)
        sum(losses.values()).backward()
        for k, v in losses.items():
            history.setdefault(k, []).append(v.item())
        if step == 0:
            for variable, t in variables(net):
                if t.requires_grad:
                    out[f"grad.{variable}"] = t.grad.clone()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        batch = {k: v[0] for k, v in inputs.items()}
        out["eval.output"], _ = net(batch)
    for variable, t in variables(net):
        out[f"final.{variable}"] = t.detach().clone()
    for k, v in history.items():
        out[f"loss.{k}"] = torch.tensor(v, dtype=torch.float64)
        print(name, k, " ".join(f"{x:.4f}" for x in v))
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}.safetensors")
    save_file({k: v.contiguous() for k, v in out.items()}, path, {"made_by": f"make_golden.py, PyTorch {torch.__version__}"})
    print(path, os.path.getsize(path), "bytes")


make("plain", Plain, 1)
make("residual", Residual, 2)
make("regression", Regression, 3)
