# SPDX-License-Identifier: BSD-3-Clause
"""Ranks: the context that everything else is made from."""
from __future__ import annotations

import ctypes as c
from typing import Any

from . import _launch, _mpi
from ._bindings import cvy_context_opts
from ._library import Owner, library, made, taken_text

_world = _alone = None


class Context(Owner):
    """A group of ranks with its threads.

    comm: None for this process alone, or an mpi4py communicator. `world()` gives that of all ranks. Collective over the
    communicator. watchdog: seconds for which a rank waits for others in a call, before it prints which ranks do not come
    and where all were last; 0: no limit. watchdog_ends: it then ends the job. device: where programs compute, as the key
    `device` of a job: "host", "opencl", "opencl:1", "auto"; None: the host. The ranks' memory is freed when the object
    is no longer used, or by close(), which also closes what was made from it.
    """

    def __init__(self, comm: Any = None, threads: int = 0, watchdog: float = 0, watchdog_ends: bool = False, device: str | None = None):
        options = made(cvy_context_opts, threads=threads, log_level=1, watchdog_s=watchdog, device=device)
        handle = c.c_void_p()
        if comm is None:
            library.cvy_context_create(c.byref(options), c.byref(handle))
        else:
            ranks = comm if isinstance(comm, _mpi.Communicator) else _mpi.of_mpi4py(comm)
            self._fatal = _mpi.abort_on_fault(ranks) if watchdog_ends else None
            options.fatal = c.cast(self._fatal, c.c_void_p) if watchdog_ends else None
            _mpi.context_create(ranks, options, handle)
        self._own(handle, library.cvy_context_destroy)

    @property
    def rank(self) -> int:
        """This rank's number, from 0."""
        return library.cvy_context_rank(self.handle)

    @property
    def nranks(self) -> int:
        """Number of ranks."""
        return library.cvy_context_nranks(self.handle)

    @property
    def threads(self) -> int:
        """Compute threads of this rank."""
        return library.cvy_context_threads(self.handle)

    @property
    def device(self) -> str:
        """Where this rank computes: "host", or a device such as "opencl:0"."""
        return library.cvy_context_device(self.handle).decode()

    def broadcast(self, address: int, nbytes: int, root: int = 0) -> None:
        """Sends memory of rank `root` to all ranks. Collective."""
        library.cvy_context_broadcast(self.handle, address, nbytes, root)


def world(threads: int = 0, watchdog: float = 0, watchdog_ends: bool = False, device: str | None = None) -> Context:
    """The context of all ranks that mpiexec or srun started; of one rank without a launcher. threads: of each rank; 0 for as
    many as it may use. watchdog, watchdog_ends, device: see Context. Collective when it is called first; later calls return the same
    object, until it is closed. An exception that nobody catches, and sys.exit(1), then end the job on all ranks."""
    global _world
    if _world is None or _world.is_closed:
        _mpi.warn_of_few_cores()
        _world = Context(_mpi.world(), threads, watchdog, watchdog_ends, device)
    return _world


def alone() -> Context:
    """The context of this process alone, with all threads that it may use; later calls return the same object,
    until it is closed."""
    global _alone
    if _alone is None or _alone.is_closed:
        _alone = Context()
    return _alone


def of_job() -> Context:
    """The context of a whole training that names none: all ranks if MPI is initialised, or a launcher has started several."""
    return world() if _mpi.is_initialized() or _launch.is_launched() else alone()


def devices() -> dict[str, str]:
    """What this process can compute on: the name of each device, as `device` of a Context takes it, with what it is. A driver
    that has none is there by its own name, with the reason."""
    pointer = c.c_void_p()
    library.cvy_device_list(c.byref(pointer))
    return dict(line.split(" ", 1) for line in taken_text(pointer).splitlines())
