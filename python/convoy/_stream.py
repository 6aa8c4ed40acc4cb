# SPDX-License-Identifier: BSD-3-Clause
"""Samples that a simulation makes while it runs: kept for training, and sent to ranks that train."""
from __future__ import annotations

import ctypes as c
from typing import TYPE_CHECKING, Sequence

import numpy as np

from . import _bindings as b
from ._arrays import address, as_given, check_samples, dims_of, shape_of, unmasked
from ._library import Owner, library, made
from ._program import Program, Task, _dtype

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ._context import Context


def _put(handle, field_of, put, fields):
    """New samples of a reservoir or a stream."""
    shapes = {}
    name, shape = c.c_char_p(), b.cvy_shape()
    while field_of(handle, len(shapes), c.byref(name), None, c.byref(shape)) == b.CVY_OK:
        shapes[name.value.decode()] = dims_of(shape)
    if not shapes:
        raise TypeError("there are no fields yet: call field() for each part of a sample first")
    if set(fields) != set(shapes):
        raise TypeError(f"the fields are {', '.join(shapes)}; given are {', '.join(fields) or 'none'}")
    for key, array in fields.items():
        given, kind = as_given(array, key)
        check_samples(given, shapes[key], given.size // max(int(np.prod(shapes[key])), 1), key)
        put(handle, key.encode(), kind, address(given), given.size)


class Reservoir(Owner):
    """Samples of this rank, of which some are kept, and from which training steps draw.

        reservoir = convoy.Reservoir(100_000)
        reservoir.field("x", (9,))
        reservoir.field("y", (1,))
        reservoir.push(x=x, y=y)                      # [samples, ...], as the simulation makes them
        reservoir.draw(train)                         # fills the inputs of a task
        train.step(1e-3)

    keep: "uniform" (each sample so far with the same probability), "newest", or "loss" (see losses()). seed: ranks should
    have different ones.
    """

    def __init__(self, capacity: int, keep: str = "uniform", seed: int = 0):
        handle = c.c_void_p()
        options = made(b.cvy_reservoir_opts, capacity=capacity, keep=keep, seed=seed)
        library.cvy_reservoir_create(c.byref(options), c.byref(handle))
        self._own(handle, library.cvy_reservoir_destroy)

    def field(self, name: str, shape: Sequence[int] = (), dtype: str = "f32") -> None:
        """A part of each sample: the name of an input, the shape of a sample, and the dtype in which it is kept."""
        library.cvy_reservoir_add_field(self.handle, name.encode(), _dtype(dtype), c.byref(shape_of(shape)))

    def push(self, **fields: ArrayLike) -> None:
        """Adds new samples: an array [samples, ...] for each field."""
        _put(self.handle, library.cvy_reservoir_field, library.cvy_reservoir_put, fields)
        library.cvy_reservoir_push(self.handle)

    def draw(self, task: Task) -> None:
        """Fills the inputs of a task with samples drawn at random."""
        library.cvy_reservoir_draw(self.handle, task.program.handle, task.number)

    def losses(self, values: ArrayLike) -> None:
        """Gives the losses of the samples of the latest draw, in their order, to a reservoir that keeps by "loss"."""
        values = np.ascontiguousarray(unmasked(values, "values"), dtype=np.float64)
        library.cvy_reservoir_set_losses(self.handle, values.ctypes.data_as(c.POINTER(c.c_double)), values.size)

    def __len__(self) -> int:
        """Samples that are kept now."""
        return library.cvy_reservoir_held(self.handle)

    @property
    def seen(self) -> int:
        """Samples that were ever added."""
        return library.cvy_reservoir_seen(self.handle)

    def save(self) -> bytes:
        """Its state as bytes, for the program's own checkpoint."""
        memory = c.create_string_buffer(library.cvy_reservoir_bytes(self.handle))
        library.cvy_reservoir_save(self.handle, memory, len(memory))
        return memory.raw

    def load(self, state: bytes) -> None:
        """Goes on from a state of a reservoir that was made alike."""
        state = bytes(state)
        library.cvy_reservoir_load(self.handle, state, len(state))


class Stream(Owner):
    """Samples on their way from solvers to trainers, and weights on their way back.

        stream = convoy.Stream(convoy.world(), "solver", program=program)
        stream.push(x=x, y=y)                         # in each time step
        stream.take()                                 # newer weights, if there are any

        stream = convoy.Stream(convoy.world(), "trainer", reservoir=reservoir, program=program)
        while stream.receive():
            reservoir.draw(train)
            train.step(1e-3)
            stream.publish()

    context: over all solvers and trainers. role: "solver", "trainer" or "both". queue: samples that may wait on a solver.
    when_full: "drop", "thin" or "wait", for up to wait_s seconds. lost_s: after so many seconds without an answer the other
    side is lost. independent: solvers need not take new weights in the same call. convoy/stream.h has the details.
    close() on a rank ends the stream there. Collective.
    """

    def __init__(self, context: Context, role: str = "solver", reservoir: Reservoir | None = None, program: Program | None = None,
                 queue: int = 0, when_full: str = "drop", wait_s: float = 0.0, lost_s: float = 0.0, independent: bool = False):
        handle = c.c_void_p()
        options = made(b.cvy_stream_opts, role=role, queue=queue, when_full=when_full, wait_s=wait_s, lost_s=lost_s, independent=int(independent),
                       reservoir=None if reservoir is None else reservoir.handle, program=None if program is None else program.handle)
        library.cvy_stream_create(context.handle, c.byref(options), c.byref(handle))
        self._own(handle, library.cvy_stream_destroy, context, *(o for o in (reservoir, program) if o is not None))

    def push(self, **fields: ArrayLike) -> bool:
        """Sends new samples: an array [samples, ...] for each field. False: the trainers have ended."""
        _put(self.handle, library.cvy_stream_field, library.cvy_stream_put, fields)
        return library.cvy_stream_push(self.handle) == b.CVY_OK

    def flush(self, seconds: float) -> bool:
        """Waits until all samples have arrived. False: some still wait, or the trainers have ended."""
        return library.cvy_stream_flush(self.handle, seconds) == b.CVY_OK

    def take(self) -> int:
        """Replaces the program's weights by newer ones, if there are any. The number of those that it has now."""
        version = c.c_int64()
        library.cvy_stream_take(self.handle, c.byref(version))
        return version.value

    def receive(self) -> bool:
        """Moves samples that have come into the reservoir. False: all solvers have ended. Collective over the trainers."""
        return library.cvy_stream_receive(self.handle) == b.CVY_OK

    def publish(self) -> None:
        """Sends the program's weights, if the solvers have taken the ones before."""
        library.cvy_stream_publish(self.handle)

    def counts(self) -> dict[str, int | float]:
        """What has happened so far on this rank, as a dict: pushed, delivered, dropped, waiting, received, version, ..."""
        counts = made(b.cvy_stream_counts)
        library.cvy_stream_get_counts(self.handle, c.byref(counts))
        return {name: getattr(counts, name) for name, _ in b.cvy_stream_counts._fields_ if name != "size"}
