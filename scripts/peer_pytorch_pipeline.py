# SPDX-License-Identifier: BSD-3-Clause
"""Times PyTorch on the CIFAR ResNet with pre-activation bottlenecks, for scripts/compare_pipeline.sh.

It needs PyTorch in a separate environment; convoy itself does not use it.
usage: peer_pytorch_pipeline.py --batch N [--layers 1001] [--mode pipeline|data|single] [--micro 8] [--variant eager|channels_last]
       [--threads T] [--seconds S] [--rank R --ranks N --rendezvous FILE]
pipeline: torch.distributed.pipelining, Schedule1F1B over gloo, one stage a rank. The first rank times each block, and the layers are
cut into stages of equal time, as convoy does. data: DistributedDataParallel over gloo, each rank has a part of the batch.
single: one process. --batch is the global batch in all modes.
Each rank prints one JSON line: images/s of all ranks together, its peak resident memory in GB, what of this was used before the network
was made, and the parameters of the whole network.
"""
import argparse, json, resource, time
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


def bn_relu(c):
    return nn.Sequential(nn.BatchNorm2d(c), nn.ReLU(True))


def conv(c_in, c_out, k, stride=1):
    return nn.Conv2d(c_in, c_out, k, stride, k // 2, bias=False)


class Bottleneck(nn.Module):
    """He et al. 2016, Identity mappings: in the first block of a stage the shortcut is a projection after the common batch norm and ReLU."""

    def __init__(self, c_in, width, stride, is_first):
        super().__init__()
        self.a = bn_relu(c_in)
        self.rest = nn.Sequential(conv(c_in, width, 1, stride), bn_relu(width), conv(width, width, 3), bn_relu(width), conv(width, 4 * width, 1))
        self.short = conv(c_in, 4 * width, 1, stride) if is_first else None

    def forward(self, x):
        active = self.a(x)
        return self.rest(active) + (self.short(active) if self.short else x)


def resnet(layers):
    """The network as a list of modules, between which it may be cut."""
    n, c = (layers - 2) // 9, 16
    if layers != 9 * n + 2:
        raise SystemExit(f"--layers {layers}: expected 9n + 2")
    parts = [conv(3, 16, 3)]
    for stage in range(3):
        for i in range(n):
            parts.append(Bottleneck(c, 16 << stage, 2 if stage > 0 and i == 0 else 1, i == 0))
            c = 4 * (16 << stage)
    return parts + [nn.Sequential(bn_relu(c), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, 10))]


def times(parts, x):
    """Seconds of each module, forward and backward; the shortest of three."""
    seconds = []
    for part in parts:
        best = float("inf")
        for _ in range(3):
            source = x.detach().requires_grad_()
            t = time.perf_counter()
            out = part(source)
            out.backward(torch.ones_like(out))
            best = min(best, time.perf_counter() - t)
        part.zero_grad(set_to_none=True)
        seconds.append(best)
        x = out.detach()
    return seconds


def cut(seconds, stages):
    """The first module of each stage, and the number of modules at the end."""
    total, passed, first = sum(seconds), 0.0, [0]
    for i, s in enumerate(seconds):
        if len(first) < stages and passed + s / 2 >= total * len(first) / stages:
            first.append(i)
        passed += s
    return first + [len(seconds)]


class ToChannelsLast(torch.autograd.Function):
    """Both the value and its gradient are in the plain format outside, because messages need it."""

    @staticmethod
    def forward(_, x):
        return x.contiguous(memory_format=torch.channels_last)

    @staticmethod
    def backward(_, gradient):
        return gradient.contiguous()


class Stage(nn.Module):
    """Values between stages are in the plain format."""

    def __init__(self, parts, channels_last):
        super().__init__()
        self.parts, self.channels_last = nn.Sequential(*parts), channels_last

    def forward(self, x):
        if self.channels_last and x.dim() == 4:
            x = ToChannelsLast.apply(x)
        return self.parts(x).contiguous()


def make_pipeline_step(a, parts, x, y):
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    micro = a.batch // a.micro
    first = [None]
    if a.rank == 0:
        first = [cut(times(parts, x[:micro]), a.ranks)]
    dist.broadcast_object_list(first, 0)
    begin, end = first[0][a.rank], first[0][a.rank + 1]
    net = Stage(parts[begin:end], a.variant == "channels_last")
    stage = PipelineStage(net, a.rank, a.ranks, torch.device("cpu"))
    schedule = Schedule1F1B(stage, n_microbatches=a.micro, loss_fn=F.cross_entropy)
    opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, foreach=True)

    def step():
        opt.zero_grad(set_to_none=True)
        if a.rank == 0:
            schedule.step(x)
        elif a.rank == a.ranks - 1:
            schedule.step(target=y, losses=[])
        else:
            schedule.step()
        opt.step()

    return step


def make_step(a, parts, x, y):
    net = Stage(parts, a.variant == "channels_last")
    if a.ranks > 1:
        net = nn.parallel.DistributedDataParallel(net)
    opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, foreach=True)

    def step():
        opt.zero_grad(set_to_none=True)
        F.cross_entropy(net(x), y).backward()
        opt.step()

    return step


def goes_on(a, steps, seconds):
    """Returns whether another step follows. Rank 0 decides, so that all ranks do the same number of steps."""
    more = torch.tensor(float(steps < 2 or seconds < a.seconds))
    if a.ranks > 1:
        dist.broadcast(more, 0)
    return bool(more)


def peak_gb():
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 3)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--layers", type=int, default=1001)
    p.add_argument("--batch", type=int, required=True, help="of all ranks together")
    p.add_argument("--mode", choices=["pipeline", "data", "single"], default="pipeline")
    p.add_argument("--micro", type=int, default=8, help="micro-batches of a step in a pipeline")
    p.add_argument("--variant", choices=["eager", "channels_last"], default="eager")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seconds", type=float, default=10)
    p.add_argument("--rank", type=int, default=0)
    p.add_argument("--ranks", type=int, default=1)
    p.add_argument("--rendezvous", help="path of a new file through which the ranks find each other")
    a = p.parse_args()
    if a.batch % (a.micro if a.mode == "pipeline" else a.ranks):
        raise SystemExit(f"--batch {a.batch} is not a multiple of the {a.micro} micro-batches or {a.ranks} ranks")
    if (a.mode == "single") != (a.ranks == 1):
        raise SystemExit(f"--mode {a.mode} with --ranks {a.ranks}")
    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    if a.ranks > 1:
        dist.init_process_group("gloo", init_method="file://" + a.rendezvous, rank=a.rank, world_size=a.ranks)
    base_gb = peak_gb()
    parts = resnet(a.layers)
    parameters = sum(w.numel() for part in parts for w in part.parameters())
    if a.variant == "channels_last":
        parts = [part.to(memory_format=torch.channels_last) for part in parts]
    here = a.batch // a.ranks if a.mode == "data" else a.batch
    x, y = torch.randn(here, 3, 32, 32), torch.randint(0, 10, (here,))
    make = make_pipeline_step if a.mode == "pipeline" else make_step
    step = make(a, parts, x, y)
    del parts  # a stage keeps its own
    step()
    seconds, start = [], time.perf_counter()
    while goes_on(a, len(seconds), time.perf_counter() - start):
        t = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - t)
    total = time.perf_counter() - start
    print(json.dumps({"peer": "pytorch " + torch.__version__, **vars(a), "images_per_s": round(a.batch * len(seconds) / total, 3),
                      "steps": len(seconds), "peak_rss_gb": peak_gb(), "base_rss_gb": base_gb, "parameters": parameters}), flush=True)
    if a.ranks > 1:
        dist.barrier()
        dist.destroy_process_group()


main()
