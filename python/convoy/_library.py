# SPDX-License-Identifier: BSD-3-Clause
"""Loads libconvoy and declares its functions.

The library is the file that CONVOY_LIBRARY names, the one in this package's folder, or the one that the system's loader
finds. It is called through ctypes, so nothing is compiled for Python. `library` has every function of the C API; a
status that is a fault becomes an Error.
"""
import ctypes as c
import os
import pathlib

from . import _bindings


class Error(RuntimeError):
    """A call of the library failed. `status` is the number of cvy_status; the text says what, where and what to do."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


def _checked(result, function, arguments):
    if result < 0:
        raise Error(result, library.cvy_error_text().decode(errors="replace"))
    return result


def _given(result, function, arguments):
    if not result:
        raise Error(_bindings.CVY_E_ARGUMENT, library.cvy_error_text().decode(errors="replace"))
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
for _name, (_result, _arguments) in _bindings.FUNCTIONS.items():
    _function = getattr(library, _name)
    _function.restype, _function.argtypes = _result, _arguments
    if _name in _bindings.STATUS:
        _function.errcheck = _checked
    if _name in ("cvy_reducer_buffer", "cvy_reducer_sum"):
        _function.errcheck = _given


def text(value):
    """A str, or None, as the library takes it."""
    return None if value is None else str(value).encode()


def taken_text(pointer):
    """A text that a call has returned, which is released here."""
    out = "" if not pointer.value else c.string_at(pointer.value).decode(errors="replace")
    library.cvy_text_release(c.cast(c.byref(pointer), c.POINTER(c.c_void_p)))
    return out


def made(structure, **fields):
    """Options with their size and these fields; fields that are None stay as they are."""
    out = structure(size=c.sizeof(structure))
    for name, value in fields.items():
        if value is not None:
            setattr(out, name, text(value) if isinstance(value, str) else value)
    return out
