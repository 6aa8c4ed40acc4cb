# SPDX-License-Identifier: BSD-3-Clause
"""The MPI library that libconvoy uses: it is initialised here, if nobody has done so, and its communicators
are passed on."""
import ctypes as c
import os
import sys
import threading
import time
import warnings
import weakref

from . import _launch
from ._library import Error, library, mpi

_THREAD_MULTIPLE = 3  # in MPICH and Open MPI
_MPICH_WORLD = 0x44000000
_COMM = -7  # CVY_E_COMM


class Communicator:
    """A communicator in the form that the MPI library's C functions take: a pointer in Open MPI, a number in MPICH and
    its relatives."""

    def __init__(self, value):
        self.value = value

    def argument(self):
        return (c.c_void_p if _is_open_mpi() else c.c_int)(self.value)


def _is_open_mpi():
    try:
        c.c_char.in_dll(mpi, "ompi_mpi_comm_world")
        return True
    except ValueError:
        return False


def _flag(name):
    value = c.c_int(0)
    getattr(mpi, name)(c.byref(value))
    return value.value != 0


def is_initialized():
    return hasattr(mpi, "MPI_Initialized") and _flag("MPI_Initialized") and not _flag("MPI_Finalized")


def _finalize(process):
    if os.getpid() == process and not _flag("MPI_Finalized"):  # a fork leaves its parent's MPI alone
        mpi.MPI_Finalize()


def warn_of_few_cores():
    """Open MPI binds each of a few ranks to one core. The launcher is our parent process, and its mask still has all."""
    ranks = os.environ.get("OMPI_COMM_WORLD_LOCAL_SIZE", "")
    if not ranks.isdigit() or os.environ.get("OMPI_COMM_WORLD_RANK") != "0" or not hasattr(os, "sched_getaffinity"):
        return
    mine, all = len(os.sched_getaffinity(0)), len(os.sched_getaffinity(os.getppid()))
    if mine < all // int(ranks):
        warnings.warn(f"mpiexec binds this rank to {mine} of the {all} cores that {ranks} ranks share; start it with --bind-to none", stacklevel=3)


class _Exit(SystemExit):
    """What sys.exit() raises on one of several ranks. The interpreter itself reads `code` when nobody has caught it; no
    function of Python is running then."""

    @property
    def code(self):
        code = self.args[0] if len(self.args) == 1 else self.args or None
        if code not in (None, 0) and sys._getframe().f_back is None:
            self.abort(code)
        return code


def _end_all_ranks_on_fault(communicator):
    """Makes an exception that nobody catches, and sys.exit(1), end the job. Otherwise the other ranks would wait for this
    one, and this one for them in MPI_Finalize."""
    process, hook, leave = os.getpid(), sys.excepthook, sys.exit

    def abort(code):
        if os.getpid() != process or _flag("MPI_Finalized"):  # of a child process, or too late
            return
        if not isinstance(code, int):
            print(code, file=sys.stderr)
            code = 1
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        time.sleep(0.2)  # MPICH's launcher ends when a rank aborts, and drops what it has not read yet
        mpi.MPI_Abort(communicator.argument(), code)

    def excepthook(*fault):
        hook(*fault)
        if not hasattr(sys, "ps1"):  # in an interactive session the program goes on
            abort(1)

    def exit(*status):
        if threading.current_thread() is not threading.main_thread():
            leave(*status)
        fault = _Exit(*status)
        fault.abort = abort
        raise fault

    exit.convoy = True
    sys.excepthook, sys.exit = excepthook, exit


def world():
    """All ranks that mpiexec or srun started. The first call initialises MPI, and the end of Python finalises it."""
    if not hasattr(mpi, "MPI_Init_thread"):
        raise Error(-8, "this libconvoy was built without MPI")
    if not _flag("MPI_Initialized"):
        _launch.forget()
        library.cvy_mpi_prepare()
        got = c.c_int(0)
        if mpi.MPI_Init_thread(None, None, _THREAD_MULTIPLE, c.byref(got)) != 0:
            raise Error(_COMM, "MPI_Init_thread fails")
        # At the end of Python, finalizers run in the opposite order of their creation: contexts of several ranks are destroyed first.
        weakref.finalize(library, _finalize, os.getpid())
    all = Communicator(c.addressof(c.c_char.in_dll(mpi, "ompi_mpi_comm_world")) if _is_open_mpi() else _MPICH_WORLD)
    ranks = c.c_int(1)
    mpi.MPI_Comm_size(all.argument(), c.byref(ranks))
    if ranks.value > 1 and not hasattr(sys.exit, "convoy"):
        _end_all_ranks_on_fault(all)
    return all


def of_mpi4py(comm):
    """The communicator of an mpi4py.MPI.Comm; mpi4py must use the same MPI library as libconvoy."""
    from mpi4py import MPI
    size = MPI._sizeof(comm)
    handle = c.c_void_p if size == c.sizeof(c.c_void_p) else c.c_int
    return Communicator(handle.from_address(MPI._addressof(comm)).value)


def abort_on_fault(communicator):
    """A function for the library, which ends the job if ranks do not come. Other faults become exceptions."""
    @c.CFUNCTYPE(None, c.c_void_p, c.c_int, c.c_char_p)
    def abort(_, status, text):
        if status != _COMM:
            return
        print(f"convoy: error: {text.decode(errors='replace')}", file=sys.stderr, flush=True)
        time.sleep(0.2)  # as in _end_all_ranks_on_fault()
        mpi.MPI_Abort(communicator.argument(), 1)
    return abort


def context_create(communicator, options, out):
    """cvy_context_create_mpi() with the communicator in the right type."""
    create = library.cvy_context_create_mpi
    create.restype = c.c_int
    create.argtypes = [c.c_void_p if _is_open_mpi() else c.c_int, c.c_void_p, c.c_void_p]
    status = create(communicator.value, c.addressof(options), c.addressof(out))
    if status < 0:
        raise Error(status, library.cvy_error_text().decode(errors="replace"))
