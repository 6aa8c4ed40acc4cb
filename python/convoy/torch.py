# SPDX-License-Identifier: BSD-3-Clause
"""Data-parallel training of PyTorch modules, with gradients summed by convoy's reducer while backward goes on.

    import convoy.torch as cvy
    model = Net()
    optimizer = cvy.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model)
    loader = torch.utils.data.DataLoader(data, batch_size=64, sampler=cvy.sampler(data))

Start it with `mpiexec --bind-to none -n 2 python train.py`. Each rank computes its own batch; step() updates all ranks
with the mean of their gradients, so the weights stay equal. Parameters are on the CPU, in f32 or f64.
"""
import weakref

import torch
import torch.utils.data.distributed

from ._context import world
from ._reducer import F32, F64, Reducer, mean, print, rank

__all__ = ["DistributedOptimizer", "broadcast", "mean", "print", "rank", "sampler"]

_DTYPES = {torch.float32: F32, torch.float64: F64}
_METHODS = ("synchronize", "discard", "flush", "delay", "close")


def broadcast(tensors, root=0, ranks=None):
    """Gives all ranks the values of rank `root`: of a module (parameters and buffers), or of an iterable of tensors.
    Collective."""
    ranks = ranks or world()
    if isinstance(tensors, torch.nn.Module):
        tensors = [*tensors.parameters(), *tensors.buffers()]
    for t in tensors:
        data = t.detach()
        _check(data, "a tensor")
        flat = data.contiguous()
        ranks.broadcast(flat.data_ptr(), flat.numel() * flat.element_size(), root)
        if flat.data_ptr() != data.data_ptr():
            data.copy_(flat)


def _check(tensor, what):
    if tensor.device.type != "cpu":
        raise ValueError(f"{what} is on {tensor.device}; convoy.torch works with tensors on the CPU")


class _Sampler(torch.utils.data.distributed.DistributedSampler):
    def __iter__(self):
        order = super().__iter__()
        self.epoch += 1
        return order


def sampler(dataset, ranks=None, **options):
    """A sampler that gives each rank its share of the samples, in a common random order that is another one in each epoch.
    options: those of PyTorch's DistributedSampler. A program that continues in the middle of a training calls its
    set_epoch() first."""
    ranks = ranks or world()
    return _Sampler(dataset, num_replicas=ranks.nranks, rank=ranks.rank, **options)


def DistributedOptimizer(optimizer, module, ranks=None, backwards=1, delayed=False, **options):
    """Makes step() of an optimizer average the gradients of all ranks first, and returns the optimizer.

    optimizer: any torch.optim.Optimizer over parameters of the module; its step() takes no closure. module: its
    parameters and buffers are set to those of rank 0, and hooks start the reduction of each gradient as soon as backward
    has made it. backwards: backward passes before each step(), whose gradients are added up. delayed: step() does not
    wait for the gradients of this step, but applies those of the step before. options: wire="bf16" halves the bytes
    between nodes; progress="poll", "thread" or "mpi", bucket_bytes and algorithm are those of convoy/reducer.h.
    Collective, like the first step() and every later one.

    The optimizer gets these methods:
    synchronize() waits until the gradients that step() will apply are in .grad, for example to clip them. Before it they
    must not be changed.
    discard() takes the place of a step() that is left out: it throws the gradients of this step away, on all ranks. An
    update of the step before that is delayed is applied. Collective.
    flush() applies a delayed update that is pending, for example before an evaluation. Collective.
    delay(False) does so, and ends the delay for the steps that follow (cool-down). delay(True) begins it again.
    close() flushes, and gives the optimizer back as it was.
    """
    reduction = _Reduction(optimizer, module, ranks or world(), backwards, delayed, options)
    for method in _METHODS:
        setattr(optimizer, method, getattr(reduction, method))
    return optimizer


class _Gradient:
    """A parameter and its buffer in the reducer."""

    def __init__(self, index, name, parameter):
        _check(parameter, name)
        if parameter.dtype not in _DTYPES:
            raise ValueError(f"{name} is {parameter.dtype}; convoy.torch reduces float32 and float64")
        self.index, self.name, self.parameter = index, name, parameter
        self.passes, self.is_started = 0, False
        self.place, self.version = None, 0  # .grad while it is reduced, and its count of changes

    def view(self, array):
        return torch.frombuffer(array, dtype=self.parameter.dtype).view(self.parameter.shape)


class _Reduction:
    """What makes the gradients of an optimizer those of all ranks. A step goes through _on_gradient() for each gradient,
    synchronize(), _before_step(), the optimizer's own step(), and _after_step()."""

    def __init__(self, optimizer, module, ranks, backwards, delayed, options):
        if hasattr(optimizer, "synchronize"):
            raise ValueError("this optimizer is a DistributedOptimizer already")
        self.optimizer, self.module, self.backwards, self._can_delay, self._is_delayed = optimizer, module, backwards, delayed, delayed
        named = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
        # Backward makes gradients about in the opposite order of the parameters.
        self._gradients = [_Gradient(i, name, p) for i, (name, p) in enumerate(reversed(named))]
        self._of = {g.parameter: g for g in self._gradients}
        self._refuse_others(lambda p: p.requires_grad)
        buffers = [(g.name, g.parameter.numel(), _DTYPES[g.parameter.dtype]) for g in self._gradients]
        # The last buffer says of each parameter on which part of the ranks it had a gradient.
        buffers.append(("which parameters have gradients", max(len(named), 1), F32))
        self._reducer = Reducer(ranks, buffers, depth=2 if delayed else 1, **options)
        self._reducer._used_by(self)  # closing the reducer or its context closes this first
        broadcast(module, ranks=ranks)
        self._is_synchronized = False
        self._late_rates = None  # learning rates of the step whose update is pending
        self._rates = None  # those to apply with the gradients in .grad, if they are not the optimizer's
        # A parameter keeps its hooks where Python's collector does not look: a hook that kept this object, which keeps
        # the parameter, would keep both for ever.
        this = weakref.ref(self)
        self._hooks = [p.register_post_accumulate_grad_hook(lambda p: this() and this()._on_gradient(p)) for p in self._of]
        self._hooks += [optimizer.register_step_pre_hook(self._before_step), optimizer.register_step_post_hook(self._after_step)]

    def _refuse_others(self, is_trained):
        """The optimizer must not train a parameter that is not reduced: it would become another one on each rank."""
        for i, group in enumerate(self.optimizer.param_groups):
            for k, p in enumerate(group["params"]):
                if is_trained(p) and p not in self._of:
                    name = next((n for n, q in self.module.named_parameters() if q is p), f"parameter {k} of group {i}")
                    raise ValueError(f"{name} is trained by the optimizer, but its gradients are not averaged: it was not a parameter of the "
                                     "module, or was frozen, when the DistributedOptimizer was made; close() it, and make it again")

    def _on_gradient(self, parameter):
        g = self._of[parameter]
        if g.is_started or self._is_synchronized:
            raise RuntimeError(f"{g.name}: there were more backward passes before step() than backwards={self.backwards}")
        g.passes += 1
        if g.passes == self.backwards:
            self._start(g)
        else:
            self._reducer.progress()

    def _start(self, g):
        gradient = g.parameter.grad
        if gradient is not None and gradient.layout != torch.strided:
            raise ValueError(f"the gradient of {g.name} is sparse; convoy.torch reduces dense ones: make its layer with sparse=False")
        place = g.view(self._reducer.buffer(g.index))
        if gradient is None:  # the loss of this rank did not depend on it
            place.zero_()
        elif gradient.data_ptr() != place.data_ptr():
            place.copy_(gradient)
        g.parameter.grad = place
        g.is_started, g.place, g.version = True, place, place._version
        self._reducer.start(g.index)

    def _refuse_changes(self):
        for g in self._gradients:
            if g.is_started and (g.parameter.grad is not g.place or g.place._version != g.version):
                raise RuntimeError(f"{g.name}: gradients were changed before synchronize(), while they were reduced; call synchronize() before, "
                                   "or discard() in the place of step()")

    def _start_rest(self):
        last = len(self._gradients)
        self._reducer.buffer(last)[:last] = [g.parameter.grad is not None for g in self._gradients]
        for g in self._gradients:
            if not g.is_started:
                self._start(g)
            g.passes, g.is_started, g.place = 0, False, None
        self._reducer.start(last)

    def _take(self):
        """Waits for the oldest gradients. A parameter that had none on any rank gets none, as in one process."""
        self._reducer.wait()
        has_gradient = self._reducer.sum(len(self._gradients))
        for g in self._gradients:
            g.parameter.grad = g.view(self._reducer.sum(g.index)) if has_gradient[g.index] else None

    def _forget(self):
        for g in self._gradients:
            g.parameter.grad = None

    def synchronize(self):
        if not self._is_synchronized:
            self._refuse_changes()
            self._reduce()

    def _reduce(self):
        self._start_rest()
        if not self._is_delayed:
            self._take()
        else:
            self._rates, self._late_rates = self._late_rates, self._rates_now()
            if self._rates:
                self._take()
            else:  # the first step applies nothing
                self._forget()
        self._is_synchronized = True

    def discard(self):
        if not self._is_synchronized:
            self._reduce()
        if self._is_delayed:
            self.optimizer.step()  # applies the update of the step before
            self._take()
            self._late_rates = None
        self._forget()
        self._rates, self._is_synchronized = None, False

    def _rates_now(self):
        return [r.clone() if torch.is_tensor(r) else r for r in (group["lr"] for group in self.optimizer.param_groups)]

    def _exchange_rates(self):
        if self._rates:
            now = self._rates_now()
            for group, late in zip(self.optimizer.param_groups, self._rates):
                group["lr"] = late
            self._rates = now

    def _before_step(self, optimizer, arguments, named):
        if len(arguments) > 1 and arguments[1] is not None or named.get("closure") is not None:
            raise ValueError("step() of a DistributedOptimizer takes no closure")
        self._refuse_others(lambda p: p.grad is not None)
        self.synchronize()
        self._exchange_rates()

    def _after_step(self, optimizer, arguments, named):
        self._exchange_rates()
        self._rates, self._is_synchronized = None, False

    def flush(self):
        if any(g.passes for g in self._gradients) or self._is_synchronized:
            raise RuntimeError("flush() and delay() are called after step(), and before the next backward pass")
        if self._late_rates:
            self._take()
            self._rates, self._late_rates, self._is_synchronized = self._late_rates, None, True
            self.optimizer.step()
            self._forget()

    def delay(self, on):
        if on and not self._can_delay:
            raise ValueError("delay(True) needs a DistributedOptimizer that was made with delayed=True")
        self.flush()
        self._is_delayed = on

    def close(self):
        if not self._hooks:
            return
        self.flush()
        for hook in self._hooks:
            hook.remove()
        self._forget()
        self._hooks, self._gradients, self._of = [], [], {}
        for method in _METHODS:
            delattr(self.optimizer, method)
        self._reducer = None  # tensors of gradients that the program has kept use its memory
