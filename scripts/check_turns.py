# SPDX-License-Identifier: BSD-3-Clause
"""check_turns.py: compares ten steps of a generative adversarial network with PyTorch, weight by weight.

    python scripts/check_turns.py [--build build/release] [--ranks 1] [--loss bce|mse|wasserstein|hinge] [--spectral]
        [--clip 0.05] [--optimizers] [--penalty]

A generator and a discriminator with batch norm and transposed convolutions start with the same weights and get the same
noise and samples in f64. Each step trains the discriminator, then the generator, both with Adam. It prints the largest
difference of a weight or a running statistic, relative to the largest number of its tensor if that is above 1.
--spectral divides all weights by their largest singular values, which also compares the vectors u and v: one power
iteration in each turn, as in PyTorch inside of torch.nn.utils.parametrize.cached(). --clip clips the weights of the
discriminator. --optimizers gives the generator RMSprop. --penalty adds the gradient penalty at real and at
generated samples, to a discriminator with layer norm in place of batch norm. It needs torch, numpy and safetensors. The
exit status is 1 if a difference is larger than 1e-9.
"""
import argparse
import glob
import os
import subprocess
import sys
import tempfile

import numpy
import torch
from safetensors.torch import load_file, save_file

STEPS, BATCH, TOLERANCE = 10, 8, 1e-9

JOB = """
model:
  networks:
    generator:
      inputs: [z]
      layers:
      - fc: {{name: fc1, channels: 128, bias: false{norm}}}
      - reshape: {{shape: [8, 4, 4]}}
      - batch_norm: {{name: norm1}}
      - relu
      - deconv: {{name: up1, channels: 4, kernel: 4, stride: 2, pad: 1, bias: false{norm}}}
      - batch_norm: {{name: norm2}}
      - relu
      - deconv: {{name: up2, channels: 1, kernel: 4, stride: 2, pad: 1{norm}}}
      - tanh
    discriminator:
      layers:
      - conv: {{name: down1, channels: 4, kernel: 4, stride: 2, pad: 1{norm}}}
      - leaky_relu: {{slope: 0.2}}
      - conv: {{name: down2, channels: 8, kernel: 4, stride: 2, pad: 1, bias: false{norm}}}
      - {norm_layer}
      - leaky_relu: {{slope: 0.2}}
      - fc: {{name: score, channels: 1{norm}}}
  layers:
  - generator: {{name: fake, from: y}}
  - discriminator: {{name: real, from: x}}
  - discriminator: {{name: judged, from: fake}}
  - constant: {{name: yes_real, value: {yes}, from: real}}
  - constant: {{name: no, value: {no}, from: judged}}
  - constant: {{name: yes, value: {yes}, from: judged}}
  - {loss}: {{name: loss_real, from: [real, yes_real]}}
  - {loss}: {{name: loss_fake, from: [judged, no]}}
  - {last}: {{name: loss_generator, from: [judged, yes]}}
{penalty}  output: fake
data: {{train: {{path: data}}, shuffle: false}}
batch_norm: {{group: batch}}
train:
  dtype: f64
  batch: {batch}
  steps: {steps}
  metrics: none
  init: first.safetensors
  optimizer: {{name: adam, lr: 0.002, beta1: 0.5}}
  turns:
  - {{losses: [loss_real, loss_fake{penalties}], train: discriminator{clip}}}
  - {{losses: loss_generator, train: generator{own}}}
"""

PENALTY = """\
  - gradient_penalty: {name: penalty_real, from: [real, x], loss_weight: 10}
  - gradient_penalty: {name: penalty_fake, from: [judged, fake], loss_weight: 10}
"""


def networks(spectral, penalty):
    nn = torch.nn
    generator = nn.ModuleDict({
        "fc1": nn.Linear(6, 128, bias=False), "norm1": nn.BatchNorm2d(8),
        "up1": nn.ConvTranspose2d(8, 4, 4, 2, 1, bias=False), "norm2": nn.BatchNorm2d(4),
        "up2": nn.ConvTranspose2d(4, 1, 4, 2, 1)})
    discriminator = nn.ModuleDict({
        "down1": nn.Conv2d(1, 4, 4, 2, 1), "down2": nn.Conv2d(4, 8, 4, 2, 1, bias=False),
        "norm": nn.LayerNorm([8, 4, 4]) if penalty else nn.BatchNorm2d(8), "score": nn.Linear(8 * 4 * 4, 1)})
    for net in (generator, discriminator) if spectral else ():
        for name, layer in net.items():
            if not name.startswith("norm"):
                torch.nn.utils.parametrizations.spectral_norm(layer)
    return generator.double(), discriminator.double()


def generate(g, z):
    x = torch.relu(g["norm1"](g["fc1"](z).reshape(-1, 8, 4, 4)))
    return torch.tanh(g["up2"](torch.relu(g["norm2"](g["up1"](x)))))


def judge(d, x):
    leaky = torch.nn.functional.leaky_relu
    x = leaky(d["norm"](d["down2"](leaky(d["down1"](x), 0.2))), 0.2)
    return d["score"](x.flatten(1))


def loss_of(kind, score, is_real):
    if kind == "hinge":
        return torch.relu(1 - score if is_real else 1 + score).mean()
    if kind == "wasserstein":
        return -score.mean() if is_real else score.mean()
    target = torch.full_like(score, 1.0 if is_real else 0.0)
    return {"bce": torch.nn.functional.binary_cross_entropy_with_logits, "mse": torch.nn.functional.mse_loss}[kind](score, target)


def penalty_of(d, x):
    x = x.detach().requires_grad_()
    slope = torch.autograd.grad(judge(d, x).sum(), x, create_graph=True)[0]
    return 10 * ((slope.flatten(1).norm(dim=1) - 1) ** 2).mean()


def our_names(net, name):
    """The state of a network under our names: batch norm has scale and shift."""
    out = {}
    for key, value in net.state_dict().items():
        layer, part = key.split(".", 1)
        part = {"parametrizations.weight.original": "weight", "parametrizations.weight.0._u": "weight_u",
                "parametrizations.weight.0._v": "weight_v"}.get(part, part)
        if part == "num_batches_tracked":
            continue
        if layer.startswith("norm"):
            part = {"weight": "scale", "bias": "shift"}.get(part, part)
        out[f"{name}.{layer}.{part}"] = value.detach().clone()
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--loss", choices=["bce", "mse", "wasserstein", "hinge"], default="bce")
    parser.add_argument("--spectral", action="store_true")
    parser.add_argument("--clip", type=float, default=0)
    parser.add_argument("--optimizers", action="store_true")
    parser.add_argument("--penalty", action="store_true")
    options = parser.parse_args()
    convoy = os.path.abspath(os.path.join(options.build, "convoy"))
    torch.manual_seed(1)
    torch.set_default_dtype(torch.float64)
    generator, discriminator = networks(options.spectral, options.penalty)
    x = torch.randn(STEPS * BATCH, 1, 16, 16).float().double() # convoy reads data as f32
    z = torch.randn(STEPS * BATCH, 6).float().double()
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(folder + "/data")
        numpy.save(folder + "/data/x.npy", x.numpy())
        numpy.save(folder + "/data/y.npy", z.numpy())
        save_file({**our_names(generator, "generator"), **our_names(discriminator, "discriminator")}, folder + "/first.safetensors")
        with open(folder + "/job.yaml", "w") as file:
            file.write(JOB.format(
                loss=options.loss, last="wasserstein" if options.loss == "hinge" else options.loss, yes=1,
                no=-1 if options.loss in ("wasserstein", "hinge") else 0, batch=BATCH, steps=STEPS,
                norm_layer="layer_norm: {name: norm, axes: [1, 2, 3]}" if options.penalty else "batch_norm: {name: norm}",
                penalty=PENALTY if options.penalty else "",
                penalties=", penalty_real, penalty_fake" if options.penalty else "",
                norm=", spectral_norm: true" if options.spectral else "",
                clip=f", clip_weights: {options.clip}" if options.clip else "",
                own=", optimizer: {name: rmsprop, lr: 0.003, alpha: 0.9}" if options.optimizers else ""))
        # Launchers say where the library of MPI is and may refuse to run as root; the environment is the caller's.
        command = ["mpiexec", "-n", str(options.ranks)] if options.ranks > 1 else []
        subprocess.run(command + [convoy, "train", "job.yaml", "--out", "run", "--threads", "1"], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL)
        ours = {}
        for path in glob.glob(folder + "/run/checkpoints/*/*.safetensors"):
            ours.update(load_file(path))
        adam = {"lr": 0.002, "betas": (0.5, 0.999)}
        move = {"g": torch.optim.RMSprop(generator.parameters(), lr=0.003, alpha=0.9) if options.optimizers else
                     torch.optim.Adam(generator.parameters(), **adam),
                "d": torch.optim.Adam(discriminator.parameters(), **adam)}
        for step in range(STEPS):
            rows = slice(step * BATCH, (step + 1) * BATCH)
            with torch.nn.utils.parametrize.cached():  # one power iteration in a turn
                move["d"].zero_grad()
                real = judge(discriminator, x[rows])
                made = generate(generator, z[rows]).detach()
                loss = loss_of(options.loss, real, True) + loss_of(options.loss, judge(discriminator, made), False)
                if options.penalty:
                    loss = loss + penalty_of(discriminator, x[rows]) + penalty_of(discriminator, made)
                loss.backward()
            move["d"].step()
            for weight in discriminator.parameters() if options.clip else ():
                weight.data.clamp_(-options.clip, options.clip)
            with torch.nn.utils.parametrize.cached():
                move["g"].zero_grad()
                last = "wasserstein" if options.loss == "hinge" else options.loss
                loss_of(last, judge(discriminator, generate(generator, z[rows])), True).backward()
            move["g"].step()
    theirs = {**our_names(generator, "generator"), **our_names(discriminator, "discriminator")}
    worst, where = 0.0, ""
    for name, value in theirs.items():
        if name not in ours:
            sys.exit(f"{name} is not in the checkpoint; it has {sorted(ours)[:8]}")
        difference = float((ours[name] - value).abs().max() / max(1.0, float(value.abs().max())))
        if difference >= worst:
            worst, where = difference, name
    kind = options.loss + ", spectral norm" * options.spectral + f", clipped to {options.clip}" * (options.clip > 0) + \
        ", own optimizers" * options.optimizers + ", gradient penalty" * options.penalty
    print(f"{kind}, {options.ranks} ranks: {worst:.1e} ({where}), {len(theirs)} tensors after {STEPS} steps")
    return worst > TOLERANCE


if __name__ == "__main__":
    sys.exit(main())
