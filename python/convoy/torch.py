# SPDX-License-Identifier: BSD-3-Clause
"""Data-parallel training of PyTorch modules, with gradients summed by convoy's reducer while backward goes on.

    import convoy.torch as cvy
    model = Net()
    optimizer = cvy.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model)
    loader = torch.utils.data.DataLoader(data, batch_size=64, sampler=cvy.sampler(data))

Start it with `mpiexec -n 2 python train.py`. Each rank computes its own batch; step() updates all ranks with the mean of
their gradients, so the weights stay equal. Parameters are on the CPU, in f32 or f64.
"""
from __future__ import annotations

import ctypes as c
from typing import Iterable

import torch
import torch.utils.data.distributed

from ._context import Context, world
from ._bindings import cvy_reducer_opts
from ._library import library, made

_DTYPES = {torch.float32: (0, c.c_float), torch.float64: (1, c.c_double)}
_WIRES = {"f32": 0, "bf16": 5}
_ALL = -1


def broadcast(tensors: torch.nn.Module | Iterable[torch.Tensor], root: int = 0, ranks: Context | None = None) -> None:
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


def sampler(dataset: torch.utils.data.Dataset, ranks: Context | None = None,
            **options) -> torch.utils.data.distributed.DistributedSampler:
    """PyTorch's DistributedSampler: each rank gets its share of the samples, in a common random order. options: those of
    DistributedSampler. Call its set_epoch() before each epoch."""
    ranks = ranks or world()
    return torch.utils.data.distributed.DistributedSampler(dataset, num_replicas=ranks.nranks, rank=ranks.rank, **options)


class _Gradient:
    """A parameter and its buffer in the reducer."""

    def __init__(self, index, name, parameter):
        _check(parameter, name)
        if parameter.dtype not in _DTYPES:
            raise ValueError(f"{name} is {parameter.dtype}; convoy.torch reduces float32 and float64")
        self.index, self.name, self.parameter = index, name, parameter
        self.started = False

    def view(self, address):
        kind = _DTYPES[self.parameter.dtype][1]
        n = self.parameter.numel()
        return torch.frombuffer((kind * n).from_address(address), dtype=self.parameter.dtype).view(self.parameter.shape)


class DistributedOptimizer:
    """An optimizer whose step() first averages the gradients of all ranks.

    optimizer: any torch.optim.Optimizer over parameters of the module. module: its parameters and buffers are set to
    those of rank 0, and hooks start the reduction of each gradient as soon as backward has made it. backwards: backward
    passes before each step(), whose gradients are added up. wire: "bf16" halves the bytes between nodes. progress:
    "poll", "thread" or "mpi", as in convoy/reducer.h. bucket_bytes: 0 is chosen by the network. Collective, like the
    first step() and every later one.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, module: torch.nn.Module, ranks: Context | None = None, backwards: int = 1,
                 wire: str = "f32", progress: str = "poll", bucket_bytes: int = 0):
        self.optimizer, self.ranks, self.backwards = optimizer, ranks or world(), backwards
        named = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
        # Backward makes gradients about in the opposite order of the parameters.
        self._gradients = [_Gradient(i, name, p) for i, (name, p) in enumerate(reversed(named))]
        self._of = {g.parameter: g for g in self._gradients}
        self._is_synchronized = False
        self._passes = dict.fromkeys(self._of, 0)
        options = made(cvy_reducer_opts, average=1, wire=_WIRES[wire], progress=progress, bucket_bytes=bucket_bytes)
        self._reducer = c.c_void_p()
        self.ranks._users.add(self)
        library.cvy_reducer_create(self.ranks.handle, c.byref(options), c.byref(self._reducer))
        for g in self._gradients:
            index = c.c_int()
            library.cvy_reducer_add(self._reducer, g.name.encode(), g.parameter.numel(), _DTYPES[g.parameter.dtype][0], c.byref(index))
        library.cvy_reducer_ready(self._reducer)
        for g in self._gradients:
            g.buffer = g.view(library.cvy_reducer_buffer(self._reducer, g.index))
        broadcast(module, ranks=self.ranks)
        self._hooks = [p.register_post_accumulate_grad_hook(self._on_gradient) for p in self._of]

    def _on_gradient(self, parameter):
        self._passes[parameter] += 1
        if self._passes[parameter] == self.backwards:
            self._start(self._of[parameter])
        else:
            library.cvy_reducer_progress(self._reducer)

    def _start(self, g):
        gradient = g.parameter.grad
        if gradient is None:  # the loss did not depend on it
            g.buffer.zero_()
        elif gradient.data_ptr() != g.buffer.data_ptr():
            g.buffer.copy_(gradient)
        g.parameter.grad = g.buffer
        g.started = True
        library.cvy_reducer_start(self._reducer, g.index)

    def synchronize(self) -> None:
        """Waits until the mean of all gradients is in .grad, for example to clip them before step()."""
        for g in self._gradients:
            if not g.started:
                self._start(g)
        library.cvy_reducer_wait(self._reducer, _ALL)
        for g in self._gradients:
            g.started = False
            self._passes[g.parameter] = 0
        self._is_synchronized = True

    def step(self, closure=None):
        if closure is not None:
            raise ValueError("step() of a DistributedOptimizer takes no closure")
        if not self._is_synchronized:
            self.synchronize()
        self._is_synchronized = False
        return self.optimizer.step()

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.optimizer.zero_grad(set_to_none)

    def __getattr__(self, name):  # param_groups, state, state_dict(), ...
        return getattr(self.__dict__["optimizer"], name)

    def close(self) -> None:
        """Ends the use of the reducer; the parameters keep their values."""
        for hook in self._hooks:
            hook.remove()
        for g in self._gradients:
            g.parameter.grad = None
        self._hooks, self._gradients = [], []
        library.cvy_reducer_destroy(c.byref(self._reducer))
