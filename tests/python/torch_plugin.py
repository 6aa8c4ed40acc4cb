# SPDX-License-Identifier: BSD-3-Clause
"""torch_plugin.py RENDEZVOUS: what torch_plugin.sh checks, on each rank."""
import copy
import gc
import sys
import weakref

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


class Forked(Net):
    """A network of which a rank uses the branch `odd` or not, depending on its samples."""

    def __init__(self, dtype=torch.float32):
        super().__init__(dtype)
        self.odd = nn.Linear(10, 10).to(dtype)

    def forward(self, x):
        y = super().forward(x)
        chosen = x[:, 0, 0, 0] > 1
        return torch.where(chosen[:, None], self.odd(y), y) if chosen.any() else y


def sgd(net):
    return torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)


def adamw(net):
    return torch.optim.AdamW(net.parameters(), lr=0.01, weight_decay=0.5)


class Late:
    """What an optimizer with delayed=True does, in one process: it applies gradients one step late, with the learning rate
    of the step that made them."""

    def __init__(self, optimizer):
        self.optimizer, self.pending, self.is_late = optimizer, None, True
        self.parameters = [p for group in optimizer.param_groups for p in group["params"]]

    def zero_grad(self):
        self.optimizer.zero_grad()

    def apply(self):
        group = self.optimizer.param_groups[0]
        now = group["lr"]
        if self.pending:
            group["lr"], gradients = self.pending
            for p, g in zip(self.parameters, gradients):
                p.grad = g
            self.optimizer.step()
        group["lr"], self.pending = now, None

    def step(self):
        now = self.optimizer.param_groups[0]["lr"], [p.grad for p in self.parameters]
        if self.is_late:
            self.apply()
            self.pending = now
        else:
            self.optimizer.step()

    def delay(self, on):
        self.apply()
        self.is_late = on


def train(net, optimizer, nranks, rank, backwards=1, clip=None, dtype=torch.float32, delays=(), in_place=False):
    """Trains on this rank's part of the batches. Each step has `backwards` parts of a batch. delays: (step, whether updates
    are delayed from there on)."""
    generator = torch.Generator().manual_seed(7)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer.optimizer if isinstance(optimizer, Late) else optimizer, 3, 0.7)
    for step in range(STEPS):
        for _, on in (d for d in delays if d[0] == step):
            optimizer.delay(on)
        x = torch.randn(BATCH, 3, 6, 6, generator=generator).to(dtype)
        y = torch.randint(0, 10, (BATCH,), generator=generator)
        n = BATCH // nranks // backwards
        optimizer.zero_grad(**({"set_to_none": False} if in_place else {}))
        for k in range(backwards):
            at = slice((rank * backwards + k) * n, (rank * backwards + k + 1) * n)
            (F.cross_entropy(net(x[at]), y[at]) / backwards).backward()
        if clip:
            if hasattr(optimizer, "synchronize"):
                optimizer.synchronize()
            nn.utils.clip_grad_norm_(net.parameters(), clip)
        optimizer.step()
        scheduler.step()
    if hasattr(optimizer, "delay"):
        optimizer.delay(False)


def distance(a, b):
    return max(float((p - q).detach().abs().max()) for p, q in zip(a.parameters(), b.parameters()))


def expect(condition, text):
    if not condition:
        sys.exit(f"rank {ranks.rank}: {text}")


def refused(kind, text, call):
    try:
        call()
    except kind as fault:
        expect(text in str(fault), f"wrong text: {fault}")
    else:
        sys.exit(f"it was accepted: {text}")


def check(text, tolerance, dtype=torch.float32, kind=Net, updates=sgd, **options):
    how = {k: options.pop(k) for k in ("backwards", "clip", "delays", "in_place") if k in options}
    torch.manual_seed(1 + ranks.rank)  # ranks begin with other weights, and get those of rank 0
    net = kind(dtype)
    optimizer = cvy.DistributedOptimizer(updates(net), net, backwards=how.get("backwards", 1), **options)
    torch.manual_seed(1)
    alone, first = kind(dtype), copy.deepcopy(net)
    expect(distance(net, alone) == 0 and torch.equal(net.offset, alone.offset), f"{text}: the first weights are not those of rank 0")
    train(net, optimizer, ranks.nranks, ranks.rank, dtype=dtype, **how)
    how.pop("in_place", None)
    train(alone, (Late if options.get("delayed") else lambda o: o)(updates(alone)), 1, 0, dtype=dtype, **how)
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
net = check("bf16 between nodes", 2e-2, wire="bf16", no_node=1)  # as if each rank were on a node of its own
torch.manual_seed(1)
exact = Net()
train(exact, sgd(exact), 1, 0)
expect((distance(net, exact) > 1e-5) == (ranks.nranks > 1), f"bf16 between nodes: {distance(net, exact)} from f32")
check("gradients in place", 1e-6, in_place=True)
check("parameters without gradients", 1e-6, kind=Forked, updates=adamw)
check("delayed", 1e-6, delayed=True)
check("delayed, in place", 1e-6, delayed=True, in_place=True)
check("warm-up and cool-down", 1e-6, delayed=True, updates=adamw, kind=Forked, delays=[(0, False), (2, True), (7, False)])

net = Net()
optimizer = cvy.DistributedOptimizer(sgd(net), net)
refused(ValueError, "DistributedOptimizer already", lambda: cvy.DistributedOptimizer(optimizer, net))
refused(ValueError, "made with delayed=True", lambda: optimizer.delay(True))
net(torch.zeros(1, 3, 6, 6)).sum().backward()
refused(RuntimeError, "after step()", optimizer.flush)
refused(RuntimeError, "more backward passes", net(torch.zeros(1, 3, 6, 6)).sum().backward)
optimizer.discard()
net(torch.zeros(1, 3, 6, 6)).sum().backward()
optimizer.step()
expect(net.unused.weight.grad is None, "a parameter that no rank used got a gradient")
optimizer.close()
expect(not hasattr(optimizer, "close"), "a closed optimizer is not as it was")
expect(cvy.mean(ranks.rank) == (ranks.nranks - 1) / 2 and cvy.mean(1, 2.5) == [1, 2.5], "the mean over ranks is wrong")
cvy.print("only the first rank")


def backward(net, value=1.0):
    net(torch.full((1, 3, 6, 6), value)).square().sum().backward()


# Gradients that are changed while they are reduced, and steps that are left out.
net = Net()
optimizer = cvy.DistributedOptimizer(sgd(net), net)
before = copy.deepcopy(net)
for change in (lambda: nn.utils.clip_grad_norm_(net.parameters(), 1e-3), optimizer.zero_grad, lambda: optimizer.zero_grad(set_to_none=False)):
    backward(net)
    change()
    refused(RuntimeError, "changed before synchronize()", optimizer.step)
    expect(all(p.grad is None for p in net.parameters()), "a step that is refused leaves gradients")
    backward(net)
    change()
    optimizer.discard()
    expect(all(p.grad is None for p in net.parameters()), "discard() leaves gradients")
backward(net)
optimizer.synchronize()
optimizer.discard()
expect(distance(net, before) == 0, "a step that was left out has changed weights")
backward(net)
optimizer.step()
expect(distance(net, before) > 0, "after discard() nothing is learned")

# Tensors and objects live as long as they are used, and no longer.
kept = net.body[0].weight.grad
values, reducer = kept.clone(), weakref.ref(optimizer.close.__self__._reducer)
optimizer.close()
gc.collect()
expect(torch.equal(kept, values), "close() takes away a gradient that is still used")
expect(reducer() is None, "the reducer of a closed optimizer is kept")
optimizer = cvy.DistributedOptimizer(sgd(net), net)
backward(net)
optimizer.step()
optimizer.zero_grad()
net, reducer = weakref.ref(net), weakref.ref(optimizer.close.__self__._reducer)
del optimizer
gc.collect()
expect(net() is None and reducer() is None, "an optimizer without close() is never freed")

for updated in (False, True):  # an update that is pending is applied
    torch.manual_seed(1)
    net, alone = Net(), None
    optimizer = cvy.DistributedOptimizer(sgd(net), net, delayed=True)
    if updated:
        alone = copy.deepcopy(net)
        for owner, o in ((net, optimizer), (alone, sgd(alone))):
            backward(owner)
            o.step()
    before = alone or copy.deepcopy(net)
    backward(net, 2.0)
    optimizer.discard()
    optimizer.flush()
    expect(distance(net, before) < 1e-6, "discard() of a delayed optimizer")
    optimizer.close()

# Two networks with an optimizer each: the one that a backward pass only goes through is frozen for it.
first, second = nn.Linear(3, 3), nn.Linear(3, 3)
optimizers = [cvy.DistributedOptimizer(torch.optim.SGD(net.parameters(), lr=0.1), net) for net in (first, second)]
before = copy.deepcopy(second)
second.requires_grad_(False)
second(first(torch.ones(1, 3))).sum().backward()
optimizers[0].step()
second.requires_grad_(True)
expect(distance(second, before) == 0, "a frozen network has changed")
second(first(torch.ones(1, 3)).detach()).sum().backward()
optimizers[1].step()
expect(distance(second, before) > 0, "a network that was frozen learns nothing")
for optimizer in optimizers:
    optimizer.close()

# Parameters that the optimizer trains, and nobody averages.
net, other = Net(), nn.Linear(2, 2)
both = torch.optim.SGD([*net.parameters(), *other.parameters()], lr=0.1)
refused(ValueError, "parameter 6 of group 0 is trained", lambda: cvy.DistributedOptimizer(both, net))
net.unused.weight.requires_grad_(False)
optimizer = cvy.DistributedOptimizer(sgd(net), net)
optimizer.add_param_group({"params": other.parameters()})
other(torch.ones(1, 2)).sum().backward()
refused(RuntimeError, "parameter 0 of group 1 is trained", optimizer.step)
other.zero_grad()
net.unused.weight.requires_grad_(True)
net.unused(torch.ones(1, 4)).sum().backward()
refused(RuntimeError, "unused.weight is trained", optimizer.step)
net.unused.weight.grad = None
optimizer.step()
optimizer.close()
words = nn.Embedding(4, 2, sparse=True)
optimizer = cvy.DistributedOptimizer(torch.optim.SGD(words.parameters(), lr=0.1), words)
refused(ValueError, "weight is sparse", lambda: words(torch.tensor([1])).sum().backward())
words.weight.grad = None
optimizer.discard()
optimizer.close()
bad = nn.Linear(2, 2).to(torch.bfloat16)
refused(ValueError, "bias is torch.bfloat16", lambda: cvy.DistributedOptimizer(sgd(bad), bad))
data = torch.utils.data.TensorDataset(torch.arange(10))
expect(len(cvy.sampler(data, shuffle=False)) == 10 // ranks.nranks, "the sampler's share is wrong")
shuffled = cvy.sampler(data, seed=3)
first, second = list(shuffled), list(shuffled)
shuffled.set_epoch(0)
expect(first != second and first == list(shuffled), "the sampler's order of an epoch is wrong")
net = Net()
optimizer = cvy.DistributedOptimizer(sgd(net), net, delayed=True)
backward(net)
optimizer.step()
reducer = weakref.ref(optimizer.close.__self__._reducer)
del net, optimizer
gc.collect()
expect(reducer() is not None, "a reducer is destroyed while it reduces")
torch.distributed.destroy_process_group()
print("all right")
