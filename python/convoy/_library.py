# SPDX-License-Identifier: BSD-3-Clause
"""Loads libconvoy and declares the functions that the package calls.

The library is the file that CONVOY_LIBRARY names, the one in this package's folder, or the one that the system's loader
finds. It is called through ctypes, so nothing is compiled for Python.
"""
import ctypes as c
import os
import pathlib


class Error(RuntimeError):
    """A call of the library failed. `status` is the number of cvy_status; the text says what, where and what to do."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class ContextOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("threads", c.c_int), ("log_level", c.c_int), ("log", c.c_void_p), ("log_user", c.c_void_p),
                ("fatal", c.c_void_p), ("fatal_user", c.c_void_p), ("backend", c.c_char_p)]


class ReducerOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("bucket_bytes", c.c_int64), ("algorithm", c.c_char_p), ("wire", c.c_int), ("progress", c.c_char_p),
                ("no_node", c.c_int), ("average", c.c_int), ("factor", c.c_double), ("depth", c.c_int)]


_pointer = c.POINTER(c.c_void_p)
_functions = {  # name: result, arguments; a result of c_int is a status unless the name is in _numbers
    "cvy_error_text": (c.c_char_p, []),
    "cvy_version": (c.c_char_p, []),
    "cvy_version_number": (c.c_int, []),
    "cvy_build_info": (c.c_char_p, []),
    "cvy_memory_bytes": (c.c_int64, []),
    "cvy_context_create": (c.c_int, [c.POINTER(ContextOptions), _pointer]),
    "cvy_context_destroy": (None, [_pointer]),
    "cvy_context_rank": (c.c_int, [c.c_void_p]),
    "cvy_context_nranks": (c.c_int, [c.c_void_p]),
    "cvy_context_threads": (c.c_int, [c.c_void_p]),
    "cvy_context_broadcast": (c.c_int, [c.c_void_p, c.c_void_p, c.c_size_t, c.c_int]),
    "cvy_reducer_create": (c.c_int, [c.c_void_p, c.POINTER(ReducerOptions), _pointer]),
    "cvy_reducer_destroy": (None, [_pointer]),
    "cvy_reducer_add": (c.c_int, [c.c_void_p, c.c_char_p, c.c_int64, c.c_int, c.POINTER(c.c_int)]),
    "cvy_reducer_ready": (c.c_int, [c.c_void_p]),
    "cvy_reducer_buffer": (c.c_void_p, [c.c_void_p, c.c_int]),
    "cvy_reducer_sum": (c.c_void_p, [c.c_void_p, c.c_int]),
    "cvy_reducer_start": (c.c_int, [c.c_void_p, c.c_int]),
    "cvy_reducer_progress": (c.c_int, [c.c_void_p]),
    "cvy_reducer_wait": (c.c_int, [c.c_void_p, c.c_int]),
}
_numbers = {"cvy_version_number", "cvy_context_rank", "cvy_context_nranks", "cvy_context_threads"}


def _fail(status):
    raise Error(status, library.cvy_error_text().decode(errors="replace"))


def _checked(result, function, arguments):
    if result < 0:
        _fail(result)
    return result


def _given(result, function, arguments):
    if not result:
        _fail(-1)
    return result


def _open():
    here = pathlib.Path(__file__).parent
    named = os.environ.get("CONVOY_LIBRARY")
    names = [named] if named else [*map(str, sorted(here.glob("libconvoy.so*"))), "libconvoy.so.0", "libconvoy.so"]
    faults = []
    for name in names:
        try:
            # The symbols of MPI that the library brings must be global: Open MPI loads its own modules later.
            return c.CDLL(name, mode=c.RTLD_GLOBAL)
        except OSError as fault:
            faults.append(str(fault))
    raise ImportError("libconvoy was not found: " + "; ".join(faults) + ". Set CONVOY_LIBRARY to its file.")


library = _open()
for _name, (_result, _arguments) in _functions.items():
    _function = getattr(library, _name)
    _function.restype, _function.argtypes = _result, _arguments
    if _result is c.c_int and _name not in _numbers:
        _function.errcheck = _checked
    if _name in ("cvy_reducer_buffer", "cvy_reducer_sum"):
        _function.errcheck = _given
