# SPDX-License-Identifier: BSD-3-Clause
"""torch_habits.py [HABIT...]: what torch_habits.sh checks, on each rank: each habit of PyTorch programs, or those named."""
import copy
import io
import sys
import time
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim import lr_scheduler

import convoy
import convoy.torch as cvy

BATCH, STEPS = 8, 6
ranks = convoy.world(threads=1)
me, several = ranks.rank, ranks.nranks > 1
torch.set_num_threads(1)
HABITS = {}


def habit(function):
    HABITS[function.__name__] = function
    return function


def expect(condition, said):
    if not condition:
        sys.exit(f"rank {me}: {said}")


def refused(said, call, kind=RuntimeError):
    try:
        call()
    except kind as fault:
        expect(said in str(fault) and str(fault).count("\n") == 0, f"wrong text: {fault}, and not {said}")
    else:
        sys.exit(f"rank {me}: it was accepted: {said}")


class Net(nn.Module):
    """Layers with tied weights, a frozen one, and one that is not used."""

    def __init__(self):
        super().__init__()
        self.first, self.last, self.frozen, self.unused = nn.Linear(6, 5), nn.Linear(5, 5), nn.Linear(5, 5), nn.Linear(3, 3)
        self.tied = nn.Linear(5, 5)
        self.tied.weight = self.last.weight
        self.frozen.requires_grad_(False)

    def forward(self, x):
        return self.tied(torch.tanh(self.frozen(self.last(torch.tanh(self.first(x))))))


class Side:
    """One process with whole batches (is_all), or the ranks with a part each."""

    def __init__(self, is_all, net=Net):
        self.is_all, self.made = is_all, []
        torch.manual_seed(3)
        self.net = net()
        numbers = torch.Generator().manual_seed(5)
        self.data = [(torch.randn(BATCH, 6, generator=numbers), torch.randn(BATCH, 5, generator=numbers)) for _ in range(STEPS)]

    def optimizer(self, optimizer, **options):
        if self.is_all:
            return optimizer
        self.made.append(cvy.DistributedOptimizer(optimizer, self.net, **options))
        return self.made[-1]

    def batches(self, parts=1):
        """(x, y) of each step, or of each of its parts."""
        n = BATCH // (1 if self.is_all else ranks.nranks) // parts
        for x, y in self.data:
            for k in range(parts):
                at = slice(((0 if self.is_all else me * parts) + k) * n, ((0 if self.is_all else me * parts) + k + 1) * n)
                yield x[at], y[at]

    def loss(self, batch):
        return F.mse_loss(self.net(batch[0]), batch[1])

    def mean(self, loss):
        return float(loss) if self.is_all else cvy.mean(loss)

    def synchronize(self, optimizer):
        if not self.is_all:
            optimizer.synchronize()


def same(train, tolerance=1e-6, net=Net):
    """train(side) gives the weights of one process."""
    one, all = Side(True, net), Side(False, net)
    first = copy.deepcopy(one.net)
    train(one)
    train(all)
    for optimizer in all.made:
        if hasattr(optimizer, "close"):
            optimizer.close()
    apart = max(float((p - q).detach().abs().max()) for p, q in zip(one.net.parameters(), all.net.parameters()))
    way = max(float((p - q).detach().abs().max()) for p, q in zip(one.net.parameters(), first.parameters()))
    expect(apart < tolerance and way > 1e-3, f"weights are {apart} from those of one process, which moved by {way}")


def sgd(side, lr=0.1, **options):
    return side.optimizer(torch.optim.SGD(side.net.parameters(), lr=lr, momentum=0.9), **options)


def adam(side, **options):
    return side.optimizer(torch.optim.Adam(side.net.parameters(), lr=0.02), **options)


def loop(side, optimizer, before=lambda: None, after=lambda loss: None):
    for batch in side.batches():
        optimizer.zero_grad()
        loss = side.loss(batch)
        loss.backward()
        before()
        optimizer.step()
        after(loss.detach())


def backward(side):
    loss = side.loss(next(side.batches()))
    loss.backward()
    return loss


@habit
def schedules():
    def train(side, make):
        optimizer = sgd(side)
        schedule = make(optimizer)
        loop(side, optimizer, after=lambda loss: schedule.step())
    for make in (lambda o: lr_scheduler.OneCycleLR(o, 0.2, total_steps=STEPS + 1), lambda o: lr_scheduler.CosineAnnealingLR(o, STEPS),
                 lambda o: lr_scheduler.LambdaLR(o, lambda k: 0.7**k)):
        same(lambda side: train(side, make))


@habit
def plateau():
    def train(side):  # of the mean of the losses
        optimizer = adam(side)
        schedule = lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.1, patience=0, threshold=0.5)
        loop(side, optimizer, after=lambda loss: schedule.step(side.mean(loss)))
    same(train)
    side = Side(False)
    optimizer = sgd(side)
    schedule = lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.1, patience=0)
    losses = iter([3.0, 2.0 + 2 * me])

    def own_losses():
        loop(side, optimizer, after=lambda loss: schedule.step(next(losses, 1.0)))
    if several:
        refused("the ranks differ: lr of group 0: 0.1 on rank 0, 0.01 on rank 1; set it from values that all ranks have, such as cvy.mean(loss)", own_losses)
    else:
        own_losses()
    optimizer.close()


def scaled(side, optimizer, bad=(), unscale=False, init_scale=1024.0, growth_interval=2, wait=0.0):
    """The loop of PyTorch's pages. bad: steps in which one sample is infinite. Returns the last scale."""
    scaler = torch.amp.GradScaler("cpu", init_scale=init_scale, growth_interval=growth_interval)
    for k, (x, y) in enumerate(side.batches()):
        if k in bad and (side.is_all or me == ranks.nranks - 1):
            x = x.clone()
            x[-1] = float("inf")
        optimizer.zero_grad()
        scaler.scale(side.loss((x, y))).backward()
        time.sleep(wait * me)
        if unscale:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(side.net.parameters(), 0.1)
        scaler.step(optimizer)
        scaler.update()
    return scaler.get_scale()


@habit
def grad_scaler():
    for options in ({}, {"bad": (1, 3)}, {"unscale": True}, {"unscale": True, "bad": (0, STEPS - 1)}):
        for progress in ("poll", "thread"):
            for make in (sgd, adam):
                scales = []
                same(lambda side: scales.append(scaled(side, make(side) if side.is_all else make(side, progress=progress), **options)))
                expect(scales[0] == scales[1], f"the scales are {scales}")
    fused = []
    same(lambda side: fused.append(scaled(side, side.optimizer(torch.optim.SGD(side.net.parameters(), lr=0.1, fused=True)), bad=(2,))))
    side = Side(False)
    optimizer = sgd(side)
    if several:
        refused("the ranks differ: scale of the GradScaler: 1024 on rank 0, 2048 on rank 1", lambda: scaled(side, optimizer, init_scale=1024.0 * (1 + me)))
    optimizer.close()
    side = Side(False)
    optimizer = sgd(side, delayed=True)
    refused("applies those of the step before", lambda: scaled(side, optimizer), ValueError)
    optimizer.discard()
    optimizer.close()


@habit
def races():
    """A GradScaler that begins while gradients are reduced by a thread, on ranks that are not at the same place."""
    same(lambda side: scaled(side, sgd(side) if side.is_all else sgd(side, progress="thread", bucket_bytes=64), wait=0.002))


@habit
def clipping():
    for clip in (lambda p: nn.utils.clip_grad_norm_(p, 0.05), lambda p: nn.utils.clip_grad_value_(p, 0.01)):
        def train(side):
            optimizer = sgd(side)

            def before():
                side.synchronize(optimizer)
                clip(side.net.parameters())
            loop(side, optimizer, before)
        same(train)
        side = Side(False)
        optimizer = sgd(side)
        refused("gradients were changed before synchronize(), while they were reduced; call synchronize() before",
                lambda: loop(side, optimizer, lambda: clip(side.net.parameters())))
        optimizer.close()


@habit
def hooks():
    """A hook of a parameter gets the gradient of a rank: a factor makes no difference, and the program hears of it."""
    def train(side):
        side.net.first.weight.register_hook(lambda g: 2 * g)
        loop(side, sgd(side))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        same(train)
    heard = [str(w.message) for w in heard if "first.weight has a hook" in str(w.message)]
    expect(len(heard) == (several and me == 0), f"warnings: {heard}")


class Pictures(nn.Module):
    """Weights and gradients that do not lie in the order of their shape, in two types, and one without dimensions."""

    def __init__(self):
        super().__init__()
        self.conv, self.factor, self.last = nn.Conv2d(2, 3, 2), nn.Parameter(torch.tensor(1.0)), nn.Linear(6, 5).double()
        self.to(memory_format=torch.channels_last)

    def forward(self, x):
        x = torch.cat([x.view(-1, 1, 2, 3)] * 2, 1).contiguous(memory_format=torch.channels_last)
        return self.last((self.factor * self.conv(x)).flatten(1).double()).float()


@habit
def layouts():
    same(lambda side: loop(side, sgd(side)), net=Pictures)
    same(lambda side: scaled(side, sgd(side)), net=Pictures)
    side = Side(False, Pictures)
    optimizer = sgd(side)
    backward(side)
    side.net.conv.weight.grad.data[0, 0, 0, 0] += 1
    refused("conv.weight: gradients were changed", optimizer.step)
    optimizer.close()


@habit
def accumulation():
    def train(side, parts, every=1):
        optimizer = sgd(side) if side.is_all else sgd(side, backwards=parts * every)
        for k, batch in enumerate(side.batches(parts)):
            (side.loss(batch) / parts).backward()
            if (k + 1) % (parts * every) == 0:
                optimizer.step()
                optimizer.zero_grad()
        optimizer.step()  # what is left of the last batches
    same(lambda side: train(side, 2))
    same(lambda side: train(side, 2, every=4))
    same(lambda side: loop(side, sgd(side), before=lambda: None, after=lambda loss: None))

    def never_zeroed(side):
        optimizer = sgd(side, lr=0.01)
        for batch in side.batches():
            side.loss(batch).backward()
            optimizer.step()
    same(never_zeroed)


@habit
def state_on_one_rank():
    def trained():
        side = Side(True)
        optimizer = adam(side)
        optimizer.param_groups[0]["lr"] = 0.03
        loop(side, optimizer)
        return side.net.state_dict(), optimizer.state_dict()
    weights, moments = trained()

    def train(side, who):  # loaded before DistributedOptimizer() is called
        optimizer = torch.optim.Adam(side.net.parameters(), lr=0.02)
        if side.is_all or who(me):
            side.net.load_state_dict(weights)
            optimizer.load_state_dict(copy.deepcopy(moments))
        loop(side, side.optimizer(optimizer))
    same(lambda side: train(side, lambda rank: rank == 0))
    same(lambda side: train(side, lambda rank: True))

    def later(side, who, what, steps=0):
        optimizer = adam(side)
        for _ in range(steps):
            backward(side)
            optimizer.step()
        if side.is_all or who(me):
            if "weights" in what:
                side.net.load_state_dict(weights)
            if "moments" in what:
                optimizer.load_state_dict(copy.deepcopy(moments))
            if "entries" in what:
                for p in side.net.first.parameters():
                    optimizer.state[p]["exp_avg"] = torch.ones_like(p)
        loop(side, optimizer)
    for steps in (0, 2):
        same(lambda side: later(side, lambda rank: True, "weights, moments", steps))
        for rank in (0, 1) if several else ():
            for what, said in (("moments", "lr of group 0: 0."), ("weights", "weights ")):
                side = Side(False)
                refused("the ranks differ: " + said, lambda: later(side, lambda r: r == rank, what, steps))
                side.made[0].close()
    if several:
        side = Side(False)
        refused("exp_avg of first.weight in the state of the optimizer", lambda: later(side, lambda r: r == 1, "entries"), Exception)
        side.made[0].close()
        side = Side(False)
        side.optimizer(torch.optim.SGD(side.net.parameters(), lr=0.1 * (me + 1)))
        expect(side.made[0].param_groups[0]["lr"] == 0.1, "the rate is not that of rank 0")
        side.made[0].close()
        side = Side(False)
        alone = torch.optim.SGD([p for p in side.net.parameters()][me:], lr=0.1)
        refused("the ranks differ: parameters of group 0", lambda: side.optimizer(alone))


@habit
def set_by_hand():
    """Weights that are changed between steps by other means than load_state_dict()."""
    def train(side):
        optimizer = sgd(side)

        def limit(loss):
            with torch.no_grad():
                for p in side.net.parameters():
                    p.clamp_(-0.3, 0.3)
        loop(side, optimizer, after=limit)
    same(train)
    side = Side(False)
    optimizer = sgd(side)

    def scale(loss):
        if me == 1:
            with torch.no_grad():
                side.net.first.weight.mul_(0.5)
    if several:
        refused("the ranks differ: weights first.weight: [5, 6] of norm", lambda: loop(side, optimizer, after=scale))
    optimizer.close()


@habit
def saved_whole():
    """A network and its optimizer are saved and copied as without ranks."""
    side = Side(False)
    optimizer = sgd(side)
    loop(side, optimizer)
    file = io.BytesIO()
    torch.save((side.net, optimizer), file)
    file.seek(0)
    for net, copied in (torch.load(file, weights_only=False), copy.deepcopy((side.net, optimizer))):
        expect(torch.equal(net.first.weight, side.net.first.weight), "another network was saved")
        expect(not hasattr(copied, "synchronize"), "a copy of an optimizer is a DistributedOptimizer")
        net.load_state_dict(side.net.state_dict())
        F.mse_loss(net(side.data[0][0]), side.data[0][1]).backward()
        copied.step()
    loop(side, optimizer)
    optimizer.close()


@habit
def two_at_once():
    """What other collectives are called between backward and step()."""
    first, second = Side(False), Side(False)
    optimizers = [sgd(first), sgd(second)]
    loss = backward(first)
    refused("the gradients of an optimizer are being reduced: call mean() before backward(), or after step()", lambda: cvy.mean(loss))
    refused("the gradients of an optimizer are being reduced: call its step() or synchronize() before", lambda: backward(second))
    optimizers[0].step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cvy.mean(loss)
    optimizers[1].discard()
    backward(second)
    optimizers[1].step()
    for optimizer in optimizers:
        optimizer.close()


@habit
def kept():
    def train(side):
        optimizer, kept = sgd(side), []
        for batch in side.batches():
            optimizer.zero_grad()
            side.loss(batch).backward()
            local = side.net.first.weight.grad.clone()
            expect(torch.equal(local, torch.autograd.grad(side.loss(batch), side.net.first.weight)[0]), "while it is reduced .grad is not that of the rank")
            side.synchronize(optimizer)
            kept.append((side.net.first.weight.grad, side.net.first.weight.grad.clone()))
            optimizer.step()
        expect(all(torch.equal(a, b) for a, b in kept), "a gradient that is kept changes")
        side.kept = kept
    same(train)
    side = Side(False)
    train(side)
    side.made[0].close()
    expect(all(torch.equal(a, b) for a, b in side.kept), "a gradient that is kept is lost with the optimizer")


@habit
def changed():
    name = "first.weight: gradients were changed before synchronize()"

    def zero(p):
        p.grad = torch.zeros_like(p.grad)

    def none(p):
        p.grad = None

    def element(p):
        p.grad.data[0, 0] += 1e-3

    def array(p):
        p.grad.numpy()[-1, -1] = 0

    changes = [lambda p: p.grad.mul_(0.5), lambda p: p.grad.data.mul_(0.5), lambda p: p.grad.data.neg_(), lambda p: p.grad.data.zero_(),
               lambda p: p.grad.detach().zero_(), lambda p: p.grad.data.copy_(p.grad.data.flip(0)), zero, none, element, array]
    for progress in ("poll", "thread"):
        for change in changes:
            for who in (lambda rank: True, lambda rank: rank == ranks.nranks - 1):
                side = Side(False)
                optimizer = sgd(side, progress=progress)
                backward(side)
                if who(me):
                    change(side.net.first.weight)
                where = "" if not several else "rank 0: " if who(0) else f"rank {ranks.nranks - 1}: "
                before = copy.deepcopy(side.net)
                refused(where + name, optimizer.step)
                expect(torch.equal(side.net.first.weight, before.first.weight), "a step that is refused was applied")
                backward(side)
                optimizer.step()  # the next one is as ever
                optimizer.close()

    def train(side):  # after synchronize() they may be changed
        optimizer = sgd(side)

        def change():
            side.synchronize(optimizer)
            side.net.first.weight.grad.data[0] = 0
            side.net.last.bias.grad = None
        loop(side, optimizer, change)
    same(train)


@habit
def frozen_and_later():
    def freeze(side):
        optimizer = adam(side)
        for k, batch in enumerate(side.batches()):
            side.net.first.requires_grad_(k % 2 == 0)
            optimizer.zero_grad()
            side.loss(batch).backward()
            optimizer.step()
    same(freeze)

    def more(side, again):
        optimizer = sgd(side)
        backward(side)
        optimizer.step()
        optimizer.zero_grad()
        if again and not side.is_all:
            optimizer.close()
        side.net.frozen.requires_grad_(True)
        optimizer.add_param_group({"params": torch.nn.ParameterList([nn.Parameter(torch.zeros(2))]), "lr": 0.5}) if not again else None
        if again and not side.is_all:
            optimizer = side.optimizer(optimizer)
        loop(side, optimizer)
    same(lambda side: more(side, True))
    side = Side(False)
    refused("frozen.weight is trained by the optimizer, but its gradients are not averaged", lambda: more(side, False))
    side.made[0].close()


@habit
def several_backwards():
    def train(side, retain):
        optimizer = sgd(side) if side.is_all else sgd(side, backwards=2)
        for x, y in side.batches():
            optimizer.zero_grad()
            out = side.net(x)
            F.mse_loss(out, y).backward(retain_graph=True)
            (out.square().mean() if retain else side.net(x).square().mean()).backward()
            optimizer.step()
    same(lambda side: train(side, True))
    same(lambda side: train(side, False))
    side = Side(False)
    optimizer = sgd(side)
    backward(side)
    refused("there were more backward passes before step() than backwards=1", lambda: backward(side))
    optimizer.discard()
    optimizer.close()

    def graph(side):  # a penalty on gradients
        optimizer = sgd(side)
        for x, y in side.batches():
            optimizer.zero_grad()
            loss = F.mse_loss(side.net(x), y)
            penalty = sum(g.square().sum() for g in torch.autograd.grad(loss, [side.net.first.weight], create_graph=True))
            (loss + 0 * penalty).backward()
            optimizer.step()
    same(graph)


@habit
def closures():
    def train(side, make):
        optimizer = side.optimizer(make(side.net.parameters()))
        for batch in side.batches():
            def closure():
                optimizer.zero_grad()
                loss = side.loss(batch)
                loss.backward()
                return loss
            loss = optimizer.step(closure)
        side.last = float(loss.detach())
    for make in (lambda p: torch.optim.SGD(p, lr=0.1), lambda p: torch.optim.Adam(p, lr=0.02), lambda p: torch.optim.LBFGS(p, lr=0.1, max_iter=3),
                 lambda p: torch.optim.LBFGS(p, max_iter=3, line_search_fn="strong_wolfe")):
        sides = []
        same(lambda side: (sides.append(side), train(side, make)), 5e-6)
        expect(abs(sides[0].last - sides[1].last) < 1e-6, "step() gives another loss")
    side = Side(False)
    sgd(side, delayed=True)
    refused("takes no closure", lambda: side.made[0].step(lambda: 0), ValueError)
    side.made[0].close()


@habit
def groups():
    def make(side):
        return side.optimizer(torch.optim.AdamW([{"params": side.net.first.parameters(), "lr": 0.01}, {"params": side.net.last.parameters()}], lr=0.02))

    def train(side):
        optimizer = make(side)

        def after(loss):
            optimizer.param_groups[0]["lr"] *= 0.5
            optimizer.param_groups[1]["weight_decay"] = 0.1
            optimizer.param_groups[1]["betas"] = (0.8, 0.9)
        loop(side, optimizer, after=after)
    same(train)
    for key, value, said in (("betas", (0.5, 0.999), "betas of group 1: (0.9, 0.999) on rank 0, (0.5, 0.999) on rank 1"),
                             ("weight_decay", 0.5, "weight_decay of group 1: 0.01 on rank 0, 0.5 on rank 1"),
                             ("lr", torch.tensor(0.25), "lr of group 1: 0.02 on rank 0, 0.25 on rank 1"),
                             ("maximize", True, "maximize of group 1: False on rank 0, True on rank 1")) if several else ():
        side = Side(False)
        optimizer = make(side)

        def after(loss):
            if me == 1:
                optimizer.param_groups[1][key] = value
        before = copy.deepcopy(side.net)
        refused("the ranks differ: " + said, lambda: loop(side, optimizer, after=after))
        expect(not torch.equal(before.first.weight, side.net.first.weight), "the step before is not applied")
        optimizer.close()


@habit
def decided_alone():
    """Steps that one rank leaves out."""
    if not several:
        return
    side = Side(False)
    optimizer = sgd(side)
    backward(side)
    refused("the ranks differ: what ends this step: step() on rank 0, discard() on rank 1", optimizer.step if me == 0 else optimizer.discard)
    backward(side)
    optimizer.synchronize()
    (optimizer.step if me == 0 else optimizer.discard)()
    backward(side)
    refused("the ranks differ: step() calls so far: 1 on rank 0, 0 on rank 1", optimizer.step)
    optimizer.close()


@habit
def delayed():
    if not several:
        return
    side = Side(False)
    optimizer = sgd(side, delayed=True)

    def after(loss):
        if me == 1:
            optimizer.param_groups[0]["lr"] = 0.3
    refused("the ranks differ: lr of group 0: 0.1 on rank 0, 0.3 on rank 1", lambda: loop(side, optimizer, after=after))
    before, optimizer.param_groups[0]["lr"] = copy.deepcopy(side.net), 0.1
    loop(side, optimizer)  # goes on
    optimizer.close()
    expect(not torch.equal(before.first.weight, side.net.first.weight), "after a fault nothing is learned")


@habit
def compiled():
    def train(side, backend):
        side.net = torch.compile(side.net, backend=backend)
        loop(side, sgd(side))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for backend in ("eager", "aot_eager"):
            same(lambda side: train(side, backend))
            torch._dynamo.reset()

        def stepped(side):  # the optimizer's step is compiled, too
            optimizer = sgd(side)
            step = torch.compile(optimizer.step, backend="eager")
            for batch in side.batches():
                optimizer.zero_grad()
                side.loss(batch).backward()
                step()
        same(stepped)


for name in sys.argv[1:] or HABITS:
    began = time.time()
    HABITS[name]()
    if me == 0:
        sys.stdout.write(f"{name}: {time.time() - began:.1f} s\n")
        sys.stdout.flush()
sys.stdout.write("all right\n")
