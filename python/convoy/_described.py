# SPDX-License-Identifier: BSD-3-Clause
"""What an array says of itself beside its numbers: a DataArray of xarray, a DataFrame of pandas. Neither is imported."""
import json

import numpy as np

_ATTRIBUTES = ("units", "calendar", "standard_name", "long_name", "axis", "positive")


def _texts(attrs):
    return {key: attrs[key] for key in _ATTRIBUTES if isinstance(attrs.get(key), str)}


def _axis(x, dim, n, with_numbers):
    """An axis of a DataArray. Its coordinates are left out if they are not numbers, such as dates."""
    out = {"name": str(dim), "n": n}
    coordinate = x.coords[dim] if dim in x.coords else None
    if coordinate is not None:
        out.update(_texts(coordinate.attrs))
        numbers = np.asarray(coordinate.values)
        if with_numbers and numbers.ndim == 1 and numbers.dtype.kind in "iuf" and np.isfinite(numbers).all():
            out["at"] = [float(number) for number in numbers]
    return out


def _names(x, dim):
    """The names along an axis, as those of the variables of Dataset.to_array(); None: it has none."""
    values = np.asarray(x.coords[dim].values) if dim in x.coords else np.empty(0)
    return [str(value) for value in values] if values.dtype.kind in "UO" and values.ndim == 1 and values.size else None


def described(x):
    """The description of x for cvy_network_check_input(); None: it says nothing of itself."""
    out = {}
    dims, attrs = getattr(x, "dims", None), getattr(x, "attrs", None)
    if isinstance(dims, tuple) and dims and isinstance(attrs, dict) and hasattr(x, "coords"):
        axes = [_axis(x, dim, n, True) for dim, n in zip(dims[1:], x.shape[1:])]
        names = _names(x, dims[1]) if len(dims) > 1 else None
        if names:
            out["columns"] = names
            axes[0] = {"n": len(names)}
        variable = {**_texts(attrs), "samples": _axis(x, dims[0], x.shape[0], False), "axes": axes}
        if getattr(x, "name", None) is not None:
            variable["name"] = str(x.name)
        out["described"] = {"x": [variable], "y": []}
    elif hasattr(x, "columns") and hasattr(x, "to_numpy"):
        out["columns"] = [str(name) for name in x.columns]
    return json.dumps(out) if out else None
