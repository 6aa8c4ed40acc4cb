# SPDX-License-Identifier: BSD-3-Clause
"""The MPI library that libconvoy is linked with: it is initialised here, if nobody has done so, and its communicators
are passed on."""
import ctypes as c
import weakref

from ._library import Error, library

_THREAD_MULTIPLE = 3  # in MPICH and Open MPI
_MPICH_WORLD = 0x44000000


class Communicator:
    """A communicator in the form that the MPI library's C functions take: a pointer in Open MPI, a number in MPICH and
    its relatives."""

    def __init__(self, value):
        self.value = value


def _is_open_mpi():
    try:
        c.c_char.in_dll(library, "ompi_mpi_comm_world")
        return True
    except ValueError:
        return False


def _flag(name):
    value = c.c_int(0)
    getattr(library, name)(c.byref(value))
    return value.value != 0


def _finalize():
    if not _flag("MPI_Finalized"):
        library.MPI_Finalize()


def world():
    """All ranks that mpiexec or srun started. The first call initialises MPI, and the end of Python finalises it."""
    if not hasattr(library, "MPI_Init_thread"):
        raise Error(-8, "this libconvoy was built without MPI")
    if not _flag("MPI_Initialized"):
        library.cvy_mpi_prepare()
        got = c.c_int(0)
        if library.MPI_Init_thread(None, None, _THREAD_MULTIPLE, c.byref(got)) != 0:
            raise Error(-7, "MPI_Init_thread fails")
        # At the end of Python, finalizers run in the opposite order of their creation: contexts of several ranks are destroyed first.
        weakref.finalize(library, _finalize)
    if _is_open_mpi():
        return Communicator(c.addressof(c.c_char.in_dll(library, "ompi_mpi_comm_world")))
    return Communicator(_MPICH_WORLD)


def of_mpi4py(comm):
    """The communicator of an mpi4py.MPI.Comm; mpi4py must use the MPI library that libconvoy is linked with."""
    from mpi4py import MPI
    size = MPI._sizeof(comm)
    handle = c.c_void_p if size == c.sizeof(c.c_void_p) else c.c_int
    return Communicator(handle.from_address(MPI._addressof(comm)).value)


def context_create(communicator, options, out):
    """cvy_context_create_mpi() with the communicator in the right type."""
    create = library.cvy_context_create_mpi
    create.restype = c.c_int
    create.argtypes = [c.c_void_p if _is_open_mpi() else c.c_int, c.c_void_p, c.c_void_p]
    status = create(communicator.value, c.addressof(options), c.addressof(out))
    if status < 0:
        raise Error(status, library.cvy_error_text().decode(errors="replace"))
