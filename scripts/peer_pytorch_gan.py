# SPDX-License-Identifier: BSD-3-Clause
"""Times PyTorch on a pair of turns of CosmoGAN (examples/cosmogan-256.yaml), for scripts/compare_turns.sh.

It needs PyTorch in a separate environment; convoy itself does not use it.
usage: peer_pytorch_gan.py --batch N [--size 256] [--variant eager|channels_last|compiled] [--threads T] [--seconds S]
A step trains the discriminator by real and generated maps, then the generator; both have Adam, and draw the maps of a step
once each. It prints one JSON line: images/s (true maps of all steps over their time), ms of the median step, parameters.
"""
import argparse, json, resource, statistics, time
import torch
import torch.nn as nn


class Generator(nn.Module):
    def __init__(self, side):
        super().__init__()
        self.side = side // 16
        self.fc = nn.Linear(64, 512 * self.side**2, bias=False)
        layers = [nn.BatchNorm2d(512), nn.ReLU(True)]
        for a, b in ((512, 256), (256, 128), (128, 64)):
            layers += [nn.ConvTranspose2d(a, b, 5, 2, 2, output_padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(True)]
        self.rest = nn.Sequential(*layers, nn.ConvTranspose2d(64, 1, 5, 2, 2, output_padding=1), nn.Tanh())

    def forward(self, z):
        return self.rest(self.fc(z).view(-1, 512, self.side, self.side))


def discriminator(side):
    layers = [nn.Conv2d(1, 64, 5, 2, 2), nn.LeakyReLU(0.2, True)]
    for a, b in ((64, 128), (128, 256), (256, 512)):
        layers += [nn.Conv2d(a, b, 5, 2, 2, bias=False), nn.BatchNorm2d(b), nn.LeakyReLU(0.2, True)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(512 * (side // 16)**2, 1))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--batch", type=int, required=True)
    p.add_argument("--size", type=int, default=256)
    p.add_argument("--variant", choices=("eager", "channels_last", "compiled"), default="eager")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seconds", type=float, default=20)
    o = p.parse_args()
    torch.set_num_threads(o.threads)
    torch.manual_seed(1)
    g, d = Generator(o.size), discriminator(o.size)
    parameters = sum(w.numel() for net in (g, d) for w in net.parameters())
    x = torch.rand(o.batch, 1, o.size, o.size) * 2 - 1
    if o.variant == "channels_last":
        g, d, x = g.to(memory_format=torch.channels_last), d.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    run_g, run_d = (torch.compile(g), torch.compile(d)) if o.variant == "compiled" else (g, d)
    by_g = torch.optim.Adam(g.parameters(), lr=2e-4, betas=(0.5, 0.999), fused=True)
    by_d = torch.optim.Adam(d.parameters(), lr=2e-4, betas=(0.5, 0.999), fused=True)
    loss = nn.BCEWithLogitsLoss()
    yes, no = torch.ones(o.batch, 1), torch.zeros(o.batch, 1)

    def step():
        fake = run_g(torch.randn(o.batch, 64))
        by_d.zero_grad(set_to_none=True)
        (loss(run_d(x), yes) + loss(run_d(fake.detach()), no)).backward()
        by_d.step()
        by_g.zero_grad(set_to_none=True)
        for w in d.parameters():  # the generator's turn needs no gradient of these
            w.requires_grad_(False)
        loss(run_d(fake), yes).backward()
        by_g.step()
        for w in d.parameters():
            w.requires_grad_(True)

    for _ in range(3):
        step()
    times, end = [], time.perf_counter() + o.seconds
    while time.perf_counter() < end or len(times) < 3:
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    print(json.dumps({"images_per_s": o.batch / statistics.median(times), "step_ms": 1e3 * statistics.median(times), "steps": len(times),
                      "parameters": parameters, "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
                      "variant": o.variant, "torch": torch.__version__}))


main()
