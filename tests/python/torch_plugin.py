# SPDX-License-Identifier: BSD-3-Clause
"""torch_plugin.py RENDEZVOUS: what torch_plugin.sh checks, on each rank."""
import copy
import sys

import torch
import torch.distributed
import torch.nn as nn
import torch.nn.functional as F

import convoy
import convoy.torch as cvy

BATCH, STEPS = 8, 10
ranks = convoy.world()
torch.set_num_threads(1)
torch.distributed.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=ranks.rank, world_size=ranks.nranks)


class Net(nn.Module):
    def __init__(self, dtype=torch.float32):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10))
        self.unused = nn.Linear(4, 4)
        self.register_buffer("offset", torch.randn(10))
        self.to(dtype)

    def forward(self, x):
        return self.body(x) + self.offset


def sgd(net):
    return torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)


def train(net, optimizer, nranks, rank, backwards=1, clip=None, dtype=torch.float32):
    """Trains on this rank's part of the batches. Each step has `backwards` parts of a batch."""
    generator = torch.Generator().manual_seed(7)
    for _ in range(STEPS):
        x = torch.randn(BATCH, 3, 6, 6, generator=generator).to(dtype)
        y = torch.randint(0, 10, (BATCH,), generator=generator)
        n = BATCH // nranks // backwards
        optimizer.zero_grad()
        for k in range(backwards):
            at = slice((rank * backwards + k) * n, (rank * backwards + k + 1) * n)
            (F.cross_entropy(net(x[at]), y[at]) / backwards).backward()
        if clip:
            if hasattr(optimizer, "synchronize"):
                optimizer.synchronize()
            nn.utils.clip_grad_norm_(net.parameters(), clip)
        optimizer.step()


def distance(a, b):
    return max(float((p - q).detach().abs().max()) for p, q in zip(a.parameters(), b.parameters()))


def expect(condition, text):
    if not condition:
        sys.exit(f"rank {ranks.rank}: {text}")


def check(text, tolerance, dtype=torch.float32, **options):
    how = {k: options.pop(k) for k in ("backwards", "clip") if k in options}
    torch.manual_seed(1 + ranks.rank)  # ranks begin with other weights, and get those of rank 0
    net = Net(dtype)
    optimizer = cvy.DistributedOptimizer(sgd(net), net, backwards=how.get("backwards", 1), **options)
    torch.manual_seed(1)
    alone, first = Net(dtype), copy.deepcopy(net)
    expect(distance(net, alone) == 0 and torch.equal(net.offset, alone.offset), f"{text}: the first weights are not those of rank 0")
    train(net, optimizer, ranks.nranks, ranks.rank, dtype=dtype, **how)
    train(alone, sgd(alone), 1, 0, dtype=dtype, **how)
    optimizer.close()
    expect(distance(net, alone) < tolerance, f"{text}: {distance(net, alone)} from one process")
    expect(distance(net, first) > 0.01, f"{text}: nothing was learned")
    of_root = copy.deepcopy(net)
    cvy.broadcast(of_root)
    expect(distance(net, of_root) == 0, f"{text}: the weights of the ranks differ")
    return net


net = check("defaults", 1e-6)
torch.manual_seed(1)
peer = Net()
peer = nn.parallel.DistributedDataParallel(peer, find_unused_parameters=True)
train(peer, sgd(peer), ranks.nranks, ranks.rank)
expect(distance(net, peer.module) < 1e-6, f"{distance(net, peer.module)} from DistributedDataParallel")
check("two backward passes", 1e-6, backwards=2)
check("clipped", 1e-6, clip=0.5)
check("f64", 1e-14, dtype=torch.float64)
check("one bucket", 1e-6, bucket_bytes=1 << 30)
check("bf16 between nodes", 1e-6, wire="bf16")  # these ranks share a node

bad = nn.Linear(2, 2).to(torch.bfloat16)
try:
    cvy.DistributedOptimizer(sgd(bad), bad)
    sys.exit("a parameter in bf16 was accepted")
except ValueError as fault:
    expect("bias is torch.bfloat16" in str(fault), f"wrong text: {fault}")
data = torch.utils.data.TensorDataset(torch.arange(10))
expect(len(cvy.sampler(data, shuffle=False)) == 10 // ranks.nranks, "the sampler's share is wrong")
torch.distributed.destroy_process_group()
print("all right")
