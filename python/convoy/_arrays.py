# SPDX-License-Identifier: BSD-3-Clause
"""numpy arrays as the library takes them. They are passed without a copy if they are contiguous and of a dtype that the
library knows."""
import ctypes as c

import numpy as np

from . import _bindings as b

_DTYPES = {np.dtype(np.float32): b.CVY_DTYPE_F32, np.dtype(np.float64): b.CVY_DTYPE_F64, np.dtype(np.int64): b.CVY_DTYPE_I64,
           np.dtype(np.int32): b.CVY_DTYPE_I32, np.dtype(np.uint8): b.CVY_DTYPE_U8}
NAMES = {b.CVY_DTYPE_F32: "f32", b.CVY_DTYPE_F64: "f64", b.CVY_DTYPE_I64: "i64", b.CVY_DTYPE_I32: "i32", b.CVY_DTYPE_U8: "u8"}


def unmasked(array, name):
    """The array. NumPy drops the mask of a masked array silently, so one that masks something is refused."""
    if isinstance(array, np.ma.MaskedArray):
        masked = int(np.ma.getmaskarray(array).sum())
        if masked:
            raise ValueError(f"{name} is a masked array, and {masked} of its {array.size} numbers are masked, so they "
                             "have no value: fill them, as by array.filled(0), or leave their samples out")
    return np.asarray(array)


def as_given(array, name):
    """The array and its dtype in the library; other dtypes (bool, float16, small integers) are converted."""
    out = unmasked(array, name)
    if out.dtype not in _DTYPES:
        kinds = {"f": np.float64 if out.dtype.itemsize > 4 else np.float32, "i": np.int64, "u": np.int64, "b": np.int64}
        if out.dtype.kind not in kinds:
            raise TypeError(f"{name} is an array of {out.dtype}, expected numbers")
        out = out.astype(kinds[out.dtype.kind])
    out = np.ascontiguousarray(out)
    return out, _DTYPES[out.dtype]


def new_result(shape, dtype):
    """A new array, which the library fills, and its dtype in the library: float32 or float64."""
    dtype = np.dtype(dtype)
    if dtype.kind != "f" or dtype not in _DTYPES:
        raise TypeError(f"the dtype of results is {dtype.str}, expected float32 or float64")
    return np.empty(shape, dtype), _DTYPES[dtype]


def address(array):
    return c.c_void_p(array.ctypes.data)


def shape_of(dims):
    out = b.cvy_shape(ndim=len(dims))
    if len(dims) > b.CVY_NDIM_MAX:
        raise ValueError(f"the shape {tuple(dims)} has more than {b.CVY_NDIM_MAX} dimensions")
    for i, n in enumerate(dims):
        out.dim[i] = n
    return out


def dims_of(shape):
    return tuple(shape.dim[:shape.ndim])


def check_samples(array, sample, rows, name):
    """The array must be [rows, sample...]; dimensions of 1 may be left out."""
    wanted = (rows, *sample)
    if [n for n in array.shape if n != 1] != [n for n in wanted if n != 1]:
        raise ValueError(f"{name} has the shape {array.shape}, expected {wanted}")
