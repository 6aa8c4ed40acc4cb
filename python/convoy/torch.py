# SPDX-License-Identifier: BSD-3-Clause
"""Data-parallel training of PyTorch modules, with gradients summed by convoy's reducer while backward goes on.

    import convoy.torch as cvy
    model = Net()
    optimizer = cvy.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model)
    loader = torch.utils.data.DataLoader(data, batch_size=64, sampler=cvy.sampler(data))

Start it with `mpiexec --bind-to none -n 2 python train.py`. Each rank computes its own batch; step() updates all ranks
with the mean of their gradients, so the weights stay equal. Parameters are on the CPU, in f32 or f64.
"""
import atexit
import functools
import gc
import itertools
import os
import warnings
import weakref

import torch
import torch.utils.data.distributed

from . import _mpi
from ._agreement import Agreement, text
from ._context import world
from ._reducer import F32, F64, Reducer, mean, print, rank, size
from ._torch_values import checksum, give_state, rates, state, weights

__all__ = ["DistributedOptimizer", "broadcast", "mean", "print", "rank", "sampler", "size"]

_DTYPES = {torch.float32: F32, torch.float64: F64}
_METHODS = ("synchronize", "discard", "flush", "delay", "close")
_STEP, _DISCARD, _PROGRAM = "step()", "discard()", "the end of the program"
_made = weakref.WeakValueDictionary()  # each _Reduction by its number, which is the same on all ranks
_numbers = itertools.count()


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

    optimizer: any torch.optim.Optimizer over parameters of the module. It gets the state and the hyperparameters of rank 0,
    as after a checkpoint that rank 0 alone has loaded. module: its parameters and buffers are set to those of rank 0, and
    hooks start the reduction of each gradient as soon as backward has made it. backwards: backward passes before each
    step(), whose gradients are added up. delayed: step() does not wait for the gradients of this step, but applies those of
    the step before. options: wire="bf16" halves the bytes between nodes; progress="poll" or "thread", bucket_bytes
    and algorithm are those of convoy/reducer.h. Collective, like the first step() and every later one. A closure that
    step() gets is called on all ranks, and gives the mean of their losses.

    In each step the ranks compare their hyperparameters, the numbers of their steps and the scale of a GradScaler. Before the
    first step, and after weights or the state were set by other means than step(), they compare these, too. An Error on all
    ranks names what differs; no rank has applied the step then.

    .grad is the memory of the program, which may keep and read it at any time. It has the gradient of this rank until
    synchronize() or step(), and then the mean. A GradScaler waits for the mean before it unscales, so all ranks leave out
    the same steps.

    The optimizer gets these methods:
    synchronize() waits until the gradients that step() will apply are in .grad, for example to clip them. A change before
    it, such as by clip_grad_norm_() or through .data, comes too late to be averaged; step() refuses it on all ranks, and
    throws the gradients of this step away.
    discard() takes the place of a step() that is left out: it throws the gradients of this step away, on all ranks. An
    update of the step before that is delayed is applied. Collective.
    flush() applies a delayed update that is pending, for example before an evaluation. Collective.
    delay(False) does so, and ends the delay for the steps that follow (cool-down). delay(True) begins it again.
    close() flushes, and gives the optimizer back as it was.
    """
    _unscale_means()
    reduction = _Reduction(optimizer, module, ranks or world(), backwards, delayed, options)
    for method in _METHODS:
        setattr(optimizer, method, getattr(reduction, method))
    return optimizer


def _advice(name):
    """What to do about a value that differs between ranks."""
    if name.startswith("weights "):
        return "load weights before DistributedOptimizer() is called, which gives all ranks those of rank 0, or load them on all ranks"
    if name.endswith(" in the state of the optimizer"):
        return ("load the state of the optimizer before DistributedOptimizer() is called, which gives all ranks that of rank 0, or load it on "
                "all ranks")
    if name in ("what ends this step", "step() calls so far"):
        return ("all ranks must have the same number of batches, as from convoy.torch.sampler(), and leave out a step by discard(), all of them, "
                "for a reason that all know, such as cvy.mean(loss)")
    if "GradScaler" in name:
        return "make the GradScaler with the same numbers on all ranks, and call its update() on all"
    return "set it from values that all ranks have, such as cvy.mean(loss) in the place of the loss of this rank"


def _end():
    """At the end of Python: ranks that go on hear that this one has ended. Otherwise they would wait for it for ever."""
    gc.collect()
    for _, reduction in sorted(_made.items()):
        reduction.end_program()


@functools.cache  # once, for the first DistributedOptimizer
def _unscale_means():
    """Makes a GradScaler wait for the gradients of all ranks before it unscales those of a DistributedOptimizer."""
    scaler = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler
    name = "_unscale_grads_" if hasattr(scaler, "_unscale_grads_") else "unscale_"
    unscale = getattr(scaler, name)

    @functools.wraps(unscale)
    def unscale_means(self, optimizer, *arguments, **named):
        reduction = getattr(getattr(optimizer, "synchronize", None), "__self__", None)
        if isinstance(reduction, _Reduction) and self.is_enabled():
            reduction.unscale(self)
        return unscale(self, optimizer, *arguments, **named)

    setattr(scaler, name, unscale_means)


class _Gradient:
    """A parameter and its buffer in the reducer."""

    def __init__(self, index, name, parameter):
        _check(parameter, name)
        if parameter.dtype not in _DTYPES:
            raise ValueError(f"{name} is {parameter.dtype}; convoy.torch reduces float32 and float64")
        self.index, self.name, self.parameter = index, name, parameter
        self.passes, self.is_started = 0, False
        self._given = None  # .grad when its reduction began, its count of changes, and a checksum

    def view(self, array):
        return torch.frombuffer(array, dtype=self.parameter.dtype).view(self.parameter.shape)

    def give(self, array):
        """Copies .grad into the reducer. Until its mean is taken the program has no reason to change it."""
        gradient, place = self.parameter.grad, self.view(array)
        if gradient is None:  # the loss of this rank did not depend on it
            place.zero_()
        else:
            place.copy_(gradient.detach())
            self._given = gradient, gradient._version, checksum(gradient)

    def is_changed(self):
        if not self.is_started:
            return False
        now = self.parameter.grad
        if now is None or self._given is None:
            return now is not self._given
        gradient, version, bits = self._given
        return now is not gradient or now._version != version or checksum(now) != bits

    def take(self, array):
        """Writes the mean into .grad."""
        mean_of_ranks, gradient = self.view(array), self.parameter.grad
        if gradient is None or gradient.shape != mean_of_ranks.shape or gradient.dtype != mean_of_ranks.dtype:
            self.parameter.grad = mean_of_ranks.clone()
        else:
            gradient.copy_(mean_of_ranks)

    def end(self):
        self.passes, self.is_started, self._given = 0, False, None


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
        alone = self._not_reduced(lambda p: p.requires_grad)
        if alone:
            raise ValueError(alone)
        buffers = [(g.name, g.parameter.numel(), _DTYPES[g.parameter.dtype]) for g in self._gradients]
        # The last buffer says of each parameter on which part of the ranks it had a gradient, and what all ranks must have alike.
        buffers.append(("which parameters have gradients", len(named) + Agreement.size, F32))
        self._ranks, self._reducer = ranks, Reducer(ranks, buffers, depth=2 if delayed else 1, **options)
        self._reducer._used_by(self)  # closing the reducer or its context closes this first
        self._agreement = Agreement(ranks, _advice)
        broadcast(module, ranks=ranks)
        give_state(optimizer, ranks, self._name)
        self._steps = 0  # step() of the optimizer
        self._is_new = True  # weights or state may be others than step() has left
        self._changes = 0  # of the weights, until step() has ended
        self._is_synchronized, self._is_scaled, self._scaler = False, False, None
        self._losses = None  # reducer of the losses of closures
        self._has_warned = False
        self._late_rates = None  # learning rates of the step whose update is pending
        self._rates = None  # those to apply with the gradients in .grad, if they are not the optimizer's
        # A parameter keeps its hooks where Python's collector does not look: a hook that kept this object, which keeps
        # the parameter, would keep both for ever.
        this, self._process = weakref.ref(self), os.getpid()
        atexit.unregister(_end)
        atexit.register(_end)
        _made[next(_numbers)] = self
        self._hooks = [p.register_post_accumulate_grad_hook(lambda p: this() and this()._on_gradient(p)) for p in self._of]
        self._hooks += [optimizer.register_step_pre_hook(self._before_step), optimizer.register_step_post_hook(self._after_step)]
        self._hooks.append(optimizer.register_load_state_dict_post_hook(lambda *_: this() and this()._on_load()))

    def _name(self, parameter):
        g = self._of.get(parameter)
        return g.name if g else next((n for n, q in self.module.named_parameters() if q is parameter), "another parameter")

    def _not_reduced(self, is_trained):
        """The optimizer must not train a parameter that is not reduced: it would become another one on each rank."""
        for i, group in enumerate(self.optimizer.param_groups):
            for k, p in enumerate(group["params"]):
                if p not in self._of and is_trained(p):
                    name = next((n for n, q in self.module.named_parameters() if q is p), f"parameter {k} of group {i}")
                    return (f"{name} is trained by the optimizer, but its gradients are not averaged: it was not a parameter of the "
                            "module, or was frozen, when the DistributedOptimizer was made; close() it, and make it again")
        return ""

    def _on_load(self):
        self._is_new = True

    def _changes_now(self):
        """A number that grows if a weight is changed in place, as by load_state_dict()."""
        return sum(p._version for p in self._of)

    @torch.no_grad()
    def _on_gradient(self, parameter):
        g = self._of[parameter]
        if self._is_synchronized and self._is_scaled:  # a GradScaler has left out step(), on all ranks
            self._end_step()
        if g.is_started or self._is_synchronized:
            raise RuntimeError(f"{g.name}: there were more backward passes before step() than backwards={self.backwards}; if a step is left "
                               "out, call discard() in its place on all ranks")
        g.passes += 1
        if parameter._backward_hooks and not self._has_warned and self._ranks.nranks > 1:
            self._warn_of_hook(g.name)
        if g.passes == self.backwards:
            self._start(g)
        else:
            self._reducer.progress()

    def _warn_of_hook(self, name):
        self._has_warned = True
        if self._ranks.rank == 0:
            warnings.warn(f"{name} has a hook (register_hook) that gets the gradient of each rank before it is averaged: one that clips it gives "
                          "other weights than in one process; clip after synchronize()", stacklevel=2)

    def _start(self, g):
        gradient = g.parameter.grad
        if gradient is not None and gradient.layout != torch.strided:
            raise ValueError(f"the gradient of {g.name} is sparse; convoy.torch reduces dense ones: make its layer with sparse=False")
        g.give(self._reducer.buffer(g.index))
        self._reducer.start(g.index)
        g.is_started = True

    def _fault(self):
        """What is wrong on this rank, for all ranks to raise."""
        changed = next((g.name for g in self._gradients if g.is_changed()), None)
        if changed:
            return (f"{changed}: gradients were changed before synchronize(), while they were reduced; call synchronize() before, or discard() "
                    "in the place of step()")
        return self._not_reduced(lambda p: p.grad is not None)

    def _values(self, end):
        """What all ranks must have alike in this step, which ends by `end`."""
        found = {"what ends this step": end}
        if end == _PROGRAM:
            return found
        found["step() calls so far"] = str(self._steps)
        scaler = self._scaler and self._scaler()
        if scaler is not None:
            found["scale of the GradScaler"] = text(scaler.get_scale())
        return {**found, **rates(self.optimizer, self._name)}

    def _start_rest(self, end):
        n, fault = len(self._gradients), self._fault() if end == _STEP else ""
        changes = self._changes_now()
        is_new = self._is_new or (changes != self._changes and end != _PROGRAM)
        self._reducer.buffer(n)[:] = [*(g.parameter.grad is not None for g in self._gradients),
                                      *self._agreement.numbers(self._values(end), fault, is_new)]
        self._is_new, self._changes = False, changes
        for g in self._gradients:
            if not g.is_started:
                self._start(g)
            g.end()
        self._reducer.start(n)

    def _take(self):
        """Waits for the oldest gradients. A parameter that had none on any rank gets none, as in one process."""
        self._reducer.wait()
        n, last = len(self._gradients), self._reducer.sum(len(self._gradients))
        try:
            if self._agreement.check(last[n:]):
                self._agreement.compare({**weights(self._gradients), **state(self.optimizer, self._name)})
        except RuntimeError:
            self._forget()
            raise
        for g in self._gradients:
            if last[g.index]:
                g.take(self._reducer.sum(g.index))
            else:
                g.parameter.grad = None

    def _forget(self):
        for g in self._gradients:
            g.parameter.grad = None

    @torch.no_grad()
    def synchronize(self):
        if not self._is_synchronized:
            self._reduce(_STEP)

    def _reduce(self, end):
        self._start_rest(end)
        if not self._is_delayed:
            self._take()
        else:
            self._rates, self._late_rates = self._late_rates, self._rates_now()
            if self._rates:
                self._take_late()
            else:  # the first step applies nothing
                self._forget()
        self._is_synchronized = True

    def _take_late(self):
        """The same while the reductions of the next step are under way. A fault ends that step, too."""
        try:
            self._take()
        except RuntimeError as fault:
            self._rates = self._late_rates = None
            if _PROGRAM not in str(fault):  # that rank has no next step
                self._reducer.wait()
                self._agreement.forget()
            raise

    def unscale(self, scaler):
        """Called before a GradScaler unscales gradients: they must be those of all ranks, so that all skip the same steps."""
        if self._is_delayed:
            raise ValueError("a GradScaler unscales gradients of this step, and delayed=True applies those of the step before: make the "
                             "DistributedOptimizer without it, or call delay(False)")
        self._scaler = weakref.ref(scaler)
        self.synchronize()
        self._is_scaled = True

    @torch.no_grad()
    def discard(self):
        if not self._is_synchronized:
            self._reduce(_DISCARD)
        if self._is_delayed:
            self.optimizer.step()  # applies the update of the step before
            self._late_rates = None
            self._take()
        self._forget()
        self._end_step()

    def _rates_now(self):
        return [r.clone() if torch.is_tensor(r) else r for r in (group["lr"] for group in self.optimizer.param_groups)]

    def _exchange_rates(self):
        if self._rates:
            now = self._rates_now()
            for group, late in zip(self.optimizer.param_groups, self._rates):
                group["lr"] = late
            self._rates = now

    def _before_step(self, optimizer, arguments, named):
        closure = named.get("closure") if len(arguments) < 2 else arguments[1]
        if closure is not None:
            if self._can_delay:
                raise ValueError("step() of a DistributedOptimizer with delayed=True takes no closure")
            return (optimizer, self._averaged(closure), *arguments[2:]), {k: v for k, v in named.items() if k != "closure"}
        self.synchronize()
        self._exchange_rates()
        return None

    def _averaged(self, closure):
        """The closure of a step, which an optimizer such as LBFGS calls several times: of all ranks."""
        def call():
            self._changes = self._changes_now()  # by the optimizer
            self._end_step()
            loss = closure()
            self.synchronize()
            if loss is None:
                return None
            if self._losses is None:
                self._losses = Reducer(self._ranks, [("loss", 1, F64)], algorithm="library")
            self._losses.buffer(0)[:] = [float(loss.detach() if torch.is_tensor(loss) else loss)]
            self._losses.start(0)
            self._losses.wait()
            loss_of_all = self._losses.sum(0)[0]
            return torch.full_like(loss, loss_of_all) if torch.is_tensor(loss) else loss_of_all
        return call

    def _after_step(self, optimizer, arguments, named):
        self._exchange_rates()
        self._steps += 1
        self._changes = self._changes_now()
        self._end_step()

    def _end_step(self):
        self._rates, self._is_synchronized, self._is_scaled = None, False, False

    def flush(self):
        if self._is_scaled:  # a GradScaler has left out step()
            self._end_step()
        if any(g.passes for g in self._gradients) or self._is_synchronized:
            raise RuntimeError("flush() and delay() are called after step(), and before the next backward pass")
        if self._late_rates:
            rates_then, self._late_rates = self._late_rates, None
            self._take()
            self._rates, self._is_synchronized = rates_then, True
            self.optimizer.step()
            self._forget()

    def delay(self, on):
        if on and not self._can_delay:
            raise ValueError("delay(True) needs a DistributedOptimizer that was made with delayed=True")
        self.flush()
        self._is_delayed = on

    @torch.no_grad()
    def end_program(self):
        """Takes part in one more step, which says that this rank has ended. A rank that goes on raises the fault."""
        if not self._hooks or self._ranks.is_closed or self._ranks.nranks == 1 or os.getpid() != self._process or not _mpi.is_initialized():
            return
        is_late, self._is_new, self._late_rates = self._late_rates is not None, False, None
        try:
            if is_late:
                self._take()
            self._forget()
            self._start_rest(_PROGRAM)
            self._take()
        except RuntimeError:
            pass

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
        self._reducer = self._losses = None
