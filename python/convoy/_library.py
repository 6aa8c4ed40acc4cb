# SPDX-License-Identifier: BSD-3-Clause
"""Loads libconvoy and declares its functions.

The library is the file that CONVOY_LIBRARY names, the one in this package, or the one that the system's loader finds. A
folder with builds for several MPI libraries, such as the one in the wheel, chooses as the command does (cmd/loader). The
library is called through ctypes, so nothing is compiled for Python. `library` has every function of the C API; a status
that is a fault becomes an Error. `mpi` has those of the MPI library.
"""
from __future__ import annotations

import ctypes as c
import itertools
import json
import os
import pathlib
import weakref

from . import _bindings


class Error(RuntimeError):
    """A call of the library failed. `status` is the number of cvy_status; the text says what, where and what to do."""

    def __init__(self, status: int, text: str):
        super().__init__(text)
        self.status = status

    def __reduce__(self):  # so that it can be raised in another process, for which it is pickled
        return type(self), (self.status, str(self))


def _checked(result, function, arguments):
    if result < 0:
        raise Error(result, library.cvy_error_text().decode(errors="replace"))
    return result


def _given(result, function, arguments):
    if not result:
        raise Error(_bindings.CVY_E_ARGUMENT, library.cvy_error_text().decode(errors="replace"))
    return result


class _Place(c.Structure):
    """What dladdr() says about an address."""
    _fields_ = [("file", c.c_char_p), ("base", c.c_void_p), ("name", c.c_char_p), ("address", c.c_void_p)]


def _share_mpi(found):
    """Makes the symbols of the MPI library that libconvoy has loaded global: Open MPI loads plug-ins that need them."""
    place = _Place()
    if hasattr(found, "MPI_Init") and c.CDLL(None).dladdr(c.cast(found.MPI_Init, c.c_void_p), c.byref(place)):
        c.CDLL(os.fsdecode(place.file), mode=c.RTLD_GLOBAL)


def _build_in(folder):
    """The library in a folder lib/convoy of builds for several MPI libraries; its MPI library is loaded then."""
    text = c.create_string_buffer(2048)
    if not c.CDLL(os.path.join(folder, "choose.so")).convoy_choose(os.fsencode(folder), text, c.c_size_t(len(text))):
        raise ImportError(text.value.decode(errors="replace"))
    return os.path.join(folder, text.value.decode(), "libconvoy.so.0")


def _open():
    here = pathlib.Path(__file__).parent
    named = os.environ.get("CONVOY_LIBRARY")
    inside = map(str, [*sorted(here.glob("lib/libconvoy.so*")), *here.glob("lib/convoy")])
    names = [named] if named else [*inside, "libconvoy.so.0", "libconvoy.so"]
    faults = []
    for name in names:
        try:
            name = _build_in(name) if os.path.isdir(name) else name
            # Not RTLD_GLOBAL: its HDF5, JPEG and other libraries would take the place of those that h5py, netCDF4 or Pillow bring.
            found = c.CDLL(name)
        except OSError as fault:
            faults.append(str(fault))
            continue
        _share_mpi(found)
        return found
    raise ImportError("libconvoy was not found: " + "; ".join(faults) + ". Set CONVOY_LIBRARY to its file.")


def _check_version():
    """The declarations must be those of the library: a minor version may change them."""
    wanted = (_bindings.CVY_VERSION_MAJOR, _bindings.CVY_VERSION_MINOR, _bindings.CVY_VERSION_PATCH)
    lacks = [name for name in _bindings.FUNCTIONS if not hasattr(library, name)]
    number = 0 if "cvy_version_number" in lacks else library.cvy_version_number()
    if lacks or number // 100 != wanted[0] * 100 + wanted[1]:
        raise ImportError(f"this package is for libconvoy {'.'.join(map(str, wanted))}, but {library._name} is {number // 10000}."
                          f"{number // 100 % 100}.{number % 100}{', and lacks ' + lacks[0] if lacks else ''}. Install both from the "
                          "same sources, or set CONVOY_LIBRARY to another file.")


library = _open()
mpi = library if hasattr(library, "MPI_Init_thread") else c.CDLL(None)
_check_version()
for _name, (_result, _arguments) in _bindings.FUNCTIONS.items():
    _function = getattr(library, _name)
    _function.restype, _function.argtypes = _result, _arguments
    if _name in _bindings.STATUS:
        _function.errcheck = _checked
    if _name in ("cvy_reducer_buffer", "cvy_reducer_sum"):
        _function.errcheck = _given


_numbers = itertools.count()


class Owner:
    """What has a handle of the library. What it was made from (kept: the context, a program) lives as long as it, and
    closes it before itself."""

    def _own(self, handle, destroy, *kept):
        self._raw, self._users = handle, weakref.WeakValueDictionary()
        self._finalizer = weakref.finalize(self, _destroy, handle, destroy, *kept)
        for owner in kept:
            if isinstance(owner, Owner):
                owner._used_by(self)

    def _used_by(self, user):
        self._users[next(_numbers)] = user

    @property
    def is_closed(self) -> bool:
        """Whether it was freed."""
        return not self._finalizer.alive

    @property
    def handle(self):
        """The object of the C API, for functions that have no method here."""
        if self.is_closed:
            raise ValueError(f"this {type(self).__name__} is closed")
        return self._raw

    def close(self) -> None:
        """Frees it now, and what was made from it. Otherwise this happens when it is no longer used."""
        for _, user in sorted(self._users.items(), reverse=True):  # the newest first
            user.close()
        self._finalizer()


def _destroy(handle, destroy, *kept):
    destroy(c.byref(handle))


def text(value):
    """A str, or None, as the library takes it."""
    return None if value is None else str(value).encode()


def taken_text(pointer):
    """A text that a call has returned, which is released here."""
    out = "" if not pointer.value else c.string_at(pointer.value).decode(errors="replace")
    library.cvy_text_release(c.cast(c.byref(pointer), c.POINTER(c.c_void_p)))
    return out


def json_text(value):
    """A value as JSON, also a number or an array of numpy, and a path."""
    def plain(part):
        if hasattr(part, "tolist"):
            return part.tolist()
        return os.fspath(part)
    return json.dumps(value, default=plain)


def made(structure, **fields):
    """Options with their size and these fields; fields that are None stay as they are."""
    out = structure(size=c.sizeof(structure))
    known = [name for name, _ in structure._fields_]
    for name, value in fields.items():
        if name not in known:
            raise TypeError(f"there is no option {name}; the options are {', '.join(known[1:])}")
        if value is not None:
            setattr(out, name, text(value) if isinstance(value, str) else value)
    return out
