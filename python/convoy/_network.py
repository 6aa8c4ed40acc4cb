# SPDX-License-Identifier: BSD-3-Clause
"""Trained networks as functions of arrays."""
from __future__ import annotations

import ctypes as c
import os
import warnings
from typing import TYPE_CHECKING

import numpy as np

from . import _bindings as b
from ._arrays import NAMES, address, as_given, check_samples, dims_of, new_result
from ._context import Context, alone
from ._described import described
from ._library import Owner, library, made, taken_text

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike


class Network(Owner):
    """A trained network.

        network = convoy.Network("runs/demo")
        scores = network(pictures)                    # [samples, ...] -> [samples, classes]

    target: a run's folder, a checkpoint, or a .safetensors, .onnx or .prototxt file. outputs: names of the layers that are
    wanted ("layer1, layer2"); by default the main output. batch: the largest number of samples that are computed at once.
    weights: the caffemodel of a .prototxt. The network does to its inputs what its job did before training (scaling of
    pixels, normalisation), and undoes the scaling of targets. Not collective: each rank opens its own.
    """

    def __init__(self, target: str | os.PathLike, context: Context | None = None, outputs: str | None = None, batch: int = 0,
                 weights: str | os.PathLike | None = None):
        self.context = context or alone()
        handle = c.c_void_p()
        options = made(b.cvy_network_opts, outputs=outputs, batch=batch, weights=None if weights is None else str(weights))
        library.cvy_network_open(self.context.handle, str(target).encode(), c.byref(options), c.byref(handle))
        self._own(handle, library.cvy_network_destroy, self.context)
        about = made(b.cvy_network_about)
        library.cvy_network_describe(self.handle, c.byref(about))
        self.name, self.step, self.parameters = about.name.decode(), about.step, about.parameters
        self.inputs: dict[str, tuple[str, tuple[int, ...]]] = {}  # dtype and shape of a sample
        for i in range(about.inputs):
            name, dtype, shape = c.c_char_p(), c.c_int(), b.cvy_shape()
            library.cvy_network_input(self.handle, i, c.byref(name), c.byref(dtype), c.byref(shape))
            self.inputs[name.value.decode()] = (NAMES[dtype.value], dims_of(shape))
        self.outputs: dict[str, tuple[int, ...]] = {}
        self.kinds: dict[str, str] = {}  # what the numbers of an output are, "probabilities of the classes"
        for i in range(about.outputs):
            name, shape = c.c_char_p(), b.cvy_shape()
            library.cvy_network_output(self.handle, i, c.byref(name), c.byref(shape))
            self.outputs[name.value.decode()] = dims_of(shape)
            kind = c.c_int()
            library.cvy_network_output_kind(self.handle, i, c.byref(kind))
            self.kinds[name.value.decode()] = library.cvy_output_kind_text(kind.value).decode()
        names = (library.cvy_network_class(self.handle, k) for k in range(about.classes))
        self.classes = [name.decode() if name else str(k) for k, name in enumerate(names)]

    def __call__(self, x: ArrayLike | None = None, dtype: DTypeLike | None = None,
                 **inputs: ArrayLike) -> np.ndarray | dict[str, np.ndarray]:
        """The outputs for arrays of samples: an array, or a dict of arrays if the network has several outputs.

        x: [samples, ...], the network's first input; others by name. dtype of the results: np.float32 or np.float64; by
        default that of x, or float32. Of a DataArray of xarray, units, axes and coordinates are compared with those of the
        training data, and of a DataFrame of pandas the names of columns; other arrays have none, and are taken as they are.
        """
        handle = self.handle
        self._check(x if x is not None else inputs.get("x"))
        if x is not None:
            inputs = {next(iter(self.inputs)): x, **inputs}
        if not inputs:
            raise TypeError(f"the network needs arrays for {', '.join(self.inputs)}")
        arrays = {name: as_given(array, name) for name, array in inputs.items()}
        first = next(iter(arrays.values()))[0]
        n = first.shape[0]
        for name, (array, _) in arrays.items():
            if name in self.inputs and array.size == n * int(np.prod(self.inputs[name][1])):
                check_samples(array, self.inputs[name][1], n, name)
        into = dtype if dtype is not None else first.dtype if first.dtype.kind == "f" else np.float32
        results = {name: new_result((n, *shape), into) for name, shape in self.outputs.items()}
        ins, outs = (b.cvy_network_in * len(arrays))(), (b.cvy_network_out * len(results))()
        for to, (name, (array, kind)) in zip(ins, arrays.items()):
            to.name, to.dtype, to.elems, to.data = name.encode(), kind, array.size, address(array)
        for to, (name, (array, kind)) in zip(outs, results.items()):
            to.name, to.dtype, to.elems, to.data = name.encode(), kind, array.size, address(array)
        library.cvy_network_apply(handle, n, ins, len(ins), outs, len(outs))
        arrays = {name: array for name, (array, _) in results.items()}
        return next(iter(arrays.values())) if len(arrays) == 1 else arrays

    def _check(self, x):
        """Raises an error if x says of itself that it is not like the training data, and warns of what may be meant."""
        text = described(x)
        if text:
            notes = c.c_void_p()
            library.cvy_network_check_input(self.handle, text.encode(), c.byref(notes))
            for line in taken_text(notes).splitlines():
                warnings.warn(line, stacklevel=3)

    def export(self, path: str | os.PathLike, replace: bool = False) -> str:
        """Writes an .onnx file, or a .caffemodel. Returns sentences on what is not in the file."""
        notes = c.c_void_p()
        options = made(b.cvy_network_export_opts, replace=int(replace))
        library.cvy_network_export(self.handle, str(path).encode(), c.byref(options), c.byref(notes))
        return taken_text(notes)

    def __repr__(self):
        return f"<convoy.Network {self.name}: {', '.join(self.inputs)} -> {', '.join(self.outputs)}; {self.parameters} weights>"
