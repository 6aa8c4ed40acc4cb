# SPDX-License-Identifier: BSD-3-Clause
"""The reducer of the C API (convoy/reducer.h), and what the plugins for other frameworks share."""
import builtins
import ctypes as c

from ._bindings import cvy_reducer_opts
from ._context import world
from ._library import Owner, library, made

F32, F64 = 0, 1
_WIRES = {"f32": 0, "bf16": 5}
_TYPES = {F32: c.c_float, F64: c.c_double}
_ALL = -1
_under_way = set()  # reducers with reductions that nobody has waited for: they must not be destroyed


class Reducer(Owner):
    """Buffers whose means over the ranks are made in the background. buffers: (name, number of elements, F32 or F64), in
    the order in which they are complete. Collective, like wait()."""

    def __init__(self, ranks, buffers, wire="f32", **options):
        if wire not in _WIRES:
            raise ValueError(f"wire is {wire!r}; it can be {' or '.join(map(repr, _WIRES))}")
        handle = c.c_void_p()
        options = made(cvy_reducer_opts, average=1, wire=_WIRES[wire], **options)
        library.cvy_reducer_create(ranks.handle, c.byref(options), c.byref(handle))
        self._own(handle, library.cvy_reducer_destroy, ranks)
        self._ranks = ranks
        for name, count, dtype in buffers:
            library.cvy_reducer_add(handle, name.encode(), count, dtype, c.byref(c.c_int()))
        library.cvy_reducer_ready(handle)
        self._arrays = [_TYPES[dtype] * count for _, count, dtype in buffers]
        self._started = 0

    def _array(self, index, place):
        array = self._arrays[index].from_address(place)
        array.reducer = self  # which owns the memory
        return array

    def buffer(self, index):
        """Where the next values of a buffer are to be written: an array of ctypes."""
        return self._array(index, library.cvy_reducer_buffer(self.handle, index))

    def sum(self, index):
        """The means that were waited for last."""
        return self._array(index, library.cvy_reducer_sum(self.handle, index))

    def start(self, index):
        _check_idle(self._ranks, "call its step() or synchronize() before a backward pass that makes gradients of another one, and switch off those of "
                    "a network that it only goes through, by requires_grad_(False)", self)
        library.cvy_reducer_start(self.handle, index)
        self._started += 1
        _under_way.add(self)

    def progress(self):
        library.cvy_reducer_progress(self.handle)

    def wait(self):
        """Waits for all buffers of the oldest step that was not waited for."""
        library.cvy_reducer_wait(self.handle, _ALL)
        self._started -= len(self._arrays)
        if not self._started:
            _under_way.discard(self)

    def close(self):
        _under_way.discard(self)
        super().close()


def _check_idle(ranks, advice, reducer=None):
    """Only one reducer of a context can be under way."""
    if any(r is not reducer and r._ranks is ranks for r in _under_way):
        raise RuntimeError(f"the gradients of an optimizer are being reduced: {advice}")


def mean(*values, ranks=None):
    """The mean over the ranks of a number, or of several as a list, for example of a loss on each rank's part of the test
    set. With convoy.torch it is called before backward() or after step(), and with delayed updates after flush(). Collective."""
    ranks = ranks or world()
    _check_idle(ranks, "call mean() before backward(), or after step() or synchronize(), and with delayed=True after flush()")
    values = [v.detach() if hasattr(v, "detach") else v for v in values]  # PyTorch warns of a loss that keeps its graph
    reducer = Reducer(ranks, [("values", len(values), F64)], algorithm="library")
    reducer.buffer(0)[:] = [float(v) for v in values]
    reducer.start(0)
    reducer.wait()
    means = reducer.sum(0)[:]
    reducer.close()
    return means if len(values) > 1 else means[0]


def rank():
    """This rank's number, from 0. `if rank() == 0:` stands before what only one process may do, such as saving."""
    return world().rank


def size():
    """How many ranks there are."""
    return world().nranks


def print(*values, **options):
    """Python's print, on rank 0 alone."""
    if rank() == 0:
        builtins.print(*values, **options)
