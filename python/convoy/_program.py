# SPDX-License-Identifier: BSD-3-Clause
"""Networks that are described and trained step by step, inside a program with its own loop."""
from __future__ import annotations

import ctypes as c
import os
import weakref
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, Sequence

import numpy as np

from . import _bindings as b
from ._arrays import address, as_given, check_samples, dims_of, new_result, shape_of, unmasked
from ._context import Context, alone
from ._library import Error, Owner, json_text, library, made, taken_text, text

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike


def _word(value):
    """A value as YAML: True -> "true"."""
    return value if isinstance(value, str) else json_text(value)


def _options(options):
    """Keyword arguments as YAML: channels=64, bias=False -> "channels: 64, bias: false"."""
    return ", ".join(f"{name}: {_word(value)}" for name, value in options.items()) or None


def _dtype(name):
    """The number of a dtype: "f32", "i32"."""
    kind = c.c_int()
    library.cvy_dtype_parse(name.encode(), c.byref(kind))
    return kind


class Model(Owner):
    """The description of a network.

        model = convoy.Model("closure")
        model.input("x", (9,))
        model.add("fc", "hidden", channels=64)
        model.add("tanh")
        model.add("fc", "closure", channels=1)
        model.input("y", (1,))
        model.add("mse", "loss", source="closure, y")
    """

    def __init__(self, name: str = "model", handle: Any = None):
        if handle is None:
            handle = c.c_void_p()
            library.cvy_model_create(name.encode(), c.byref(handle))
        self._own(handle, library.cvy_model_destroy)
        self._programs = weakref.WeakSet()

    def close(self) -> None:
        """Frees it now; a program that uses it must have been planned."""
        if any(self in program._models for program in self._programs):
            raise ValueError("this Model is used by a Program that is not planned yet: call its plan() or close() first")
        super().close()

    @classmethod
    def zoo(cls, name: str, input: Sequence[int], classes: int, **options: Any) -> Model:
        """A network of the zoo ("resnet-20"). input: the shape of a sample, (channels, height, width)."""
        handle = c.c_void_p()
        library.cvy_model_zoo(name.encode(), text(_options(options)), c.byref(shape_of(input)), classes, c.byref(handle))
        return cls(handle=handle)

    @classmethod
    def from_file(cls, path: str | os.PathLike, **options: Any) -> Model:
        """A network in the file of another program: an .onnx file, whose weights Program.load() reads, or a .prototxt file of
        Caffe. options: the keys that `model: {onnx: FILE}` of a job has beside the file."""
        handle = c.c_void_p()
        library.cvy_model_from_file(text(path), text(_options(options)), c.byref(handle))
        return cls(handle=handle)

    def input(self, name: str, shape: Sequence[int] = (), dtype: str = "f32") -> None:
        """An input: its samples are of this shape. dtype: "f32" for real numbers (of the program's own dtype), "i32" for
        labels."""
        library.cvy_model_add_input(self.handle, name.encode(), _dtype(dtype), c.byref(shape_of(shape)))

    def add(self, op: str, name: str | None = None, source: str | None = None, **options: Any) -> None:
        """A layer, with the options of a job file. source: the layers or inputs that it reads, "closure, y"; by default the
        one that was added before."""
        library.cvy_model_add(self.handle, op.encode(), text(name), text(_options(options)), text(source))


class Task:
    """One thing that a program can do: a training step, or a forward pass."""

    def __init__(self, program: Program, number: int):
        self.program, self.number = program, number

    @property
    def rows(self) -> int:
        """Samples of this rank."""
        return library.cvy_program_rows(self.program.handle, self.number)

    @property
    def first_row(self) -> int:
        """Number of the first of them in the global batch."""
        return library.cvy_program_first_row(self.program.handle, self.number)

    def set_rows(self, n: int) -> None:
        """Says how many of this rank's rows are samples, until the next call; arrays then have n rows. Ranks may give different
        numbers, also 0, if the losses read the input "weight" of one number for each sample, which is set here."""
        library.cvy_program_set_rows(self.program.handle, self.number, n)

    def write(self, **inputs: ArrayLike) -> None:
        """Copies arrays [rows, ...] into inputs, and converts them."""
        rows = library.cvy_program_samples(self.program.handle, self.number)
        for name, array in inputs.items():
            given, kind = as_given(array, name)
            sample = self._sample(name)
            if sample is not None:
                check_samples(given, sample, rows, name)
            library.cvy_program_write_input(self.program.handle, self.number, name.encode(), kind, address(given), given.size)

    def _sample(self, name):
        """The shape of a sample of an input; None if there is no such input, which the call that follows will say."""
        shape = b.cvy_shape()
        try:
            library.cvy_program_part(self.program.handle, self.number, name.encode(), c.byref(shape), None)
        except Error:
            return None
        return dims_of(shape)

    def step(self, learning_rate: float = 0.0, **inputs: ArrayLike) -> None:
        """Runs the task once, after it has written the inputs. Collective."""
        self.write(**inputs)
        library.cvy_program_step(self.program.handle, self.number, learning_rate)

    def fit(self, batches: Iterable[Mapping[str, ArrayLike]], learning_rate: float | Callable[[int], float],
            loss: str = "loss") -> list[float]:
        """Makes a training step with each batch of a generator, and returns their losses.

        batches: of dicts {"x": x, "y": y} of arrays [rows, ...], this rank's rows. All ranks need the same number of them.
        learning_rate: a number, or a function of the number of the step, from 0. Collective.
        """
        losses = []
        for i, batch in enumerate(batches):
            self.step(learning_rate(i) if callable(learning_rate) else learning_rate, **batch)
            losses.append(self.loss(loss))
        return losses

    def loss(self, name: str = "loss") -> float:
        """A loss in the latest run, until the program runs its next task. Of a training step: over the global batch, equal on all
        ranks. Of a forward pass: this rank's part, to be added over the ranks."""
        value = c.c_double()
        library.cvy_program_loss(self.program.handle, self.number, name.encode(), c.byref(value))
        return value.value

    def output(self, layer: str, dtype: DTypeLike = np.float32) -> np.ndarray:
        """This rank's rows of an output layer, as a new array."""
        data, shape = c.c_void_p(), b.cvy_shape()
        library.cvy_program_output(self.program.handle, self.number, layer.encode(), c.byref(data), c.byref(shape))
        dims = dims_of(shape)
        if dims and dims[0] == self.rows:
            dims = (library.cvy_program_samples(self.program.handle, self.number), *dims[1:])
        out, kind = new_result(dims, dtype)
        library.cvy_program_read_output(self.program.handle, self.number, layer.encode(), kind, address(out), out.size)
        return out


class Program(Owner):
    """A set of weights, and tasks over them.

        program = convoy.Program(convoy.world(), seed=1)
        train = program.training(model, batch=256, optimizer="adam")
        apply = program.forward(model, batch=256, outputs="closure")
        program.plan()
        train.step(1e-3, x=x, y=y)
        program["closure.weight"]                     # a copy; assignment sets the weights

    dtype: "f32", "bf16" or "f64". options: keys of the job file, {"plan.planning": "measure"}.
    """

    def __init__(self, context: Context | None = None, seed: int = 0, dtype: str = "f32",
                 options: Mapping[str, Any] | None = None):
        self.context = context or alone()
        handle = c.c_void_p()
        given = made(b.cvy_program_opts, seed=seed)
        texts = [(name.encode(), _word(value).encode()) for name, value in {"train.dtype": dtype, **(options or {})}.items()]
        for name, value in texts:
            library.cvy_program_opts_set(c.byref(given), name, value)
        library.cvy_program_create(self.context.handle, c.byref(given), c.byref(handle))
        self._own(handle, library.cvy_program_destroy, self.context, texts)  # texts are borrowed until then
        self._dtype = np.float64 if given.dtype == b.CVY_DTYPE_F64 else np.float32
        self._models = []  # borrowed until the program is planned

    def training(self, model: Model, batch: int, **options: Any) -> Task:
        """A task that makes training steps. batch: samples of all ranks. options: those of cvy_training_opts, such as
        losses, trains, optimizer, optimizer_options, weight_decay, clip_norm, accumulate, outputs."""
        number = c.c_int()
        self._borrow(model)
        given = made(b.cvy_training_opts, **options)
        library.cvy_program_add_training(self.handle, model.handle, batch, c.byref(given), c.byref(number))
        return Task(self, number.value)

    def forward(self, model: Model, batch: int, outputs: str | None = None) -> Task:
        """A task that computes outputs, "layer1, layer2"; by default the model's main output."""
        number = c.c_int()
        self._borrow(model)
        library.cvy_program_add_forward(self.handle, model.handle, batch, text(outputs), c.byref(number))
        return Task(self, number.value)

    def _borrow(self, model):
        self._models.append(model)
        model._programs.add(self)

    def close(self) -> None:
        """Frees it now, and the streams that use it."""
        super().close()
        self._models.clear()

    def plan(self) -> None:
        """After all tasks were added, and before the first step. Collective."""
        library.cvy_program_plan(self.handle)
        self._models.clear()

    def flush(self) -> None:
        """Completes updates that are delayed, and averages the weights of local updates; before weights are read. Collective."""
        library.cvy_program_flush(self.handle)

    def variables(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the weights and of the optimiser's state, by name."""
        out = {}
        while True:
            name, shape = c.c_char_p(), b.cvy_shape()
            if library.cvy_program_variable(self.handle, len(out), c.byref(name), c.byref(shape)) != b.CVY_OK:
                return out
            out[name.value.decode()] = dims_of(shape)

    def __getitem__(self, name: str) -> np.ndarray:
        """A copy of a weight, or of a variable of the optimiser's state: program["fc.weight"]."""
        shape = self.variables().get(name)
        if shape is None:
            raise KeyError(name)
        out = np.empty(shape, self._dtype)
        library.cvy_program_get(self.handle, name.encode(), address(out), out.size)
        return out

    def __setitem__(self, name: str, array: ArrayLike) -> None:
        """Sets a weight, or a variable of the optimiser's state: program["fc.weight"] = array, of its shape."""
        shape = self.variables().get(name)
        if shape is None:
            raise KeyError(name)
        given = np.ascontiguousarray(unmasked(array, name), self._dtype)
        if given.shape != shape:
            raise ValueError(f"{name} has the shape {shape}, the array {given.shape}")
        library.cvy_program_set(self.handle, name.encode(), address(given), given.size)

    def save(self, path: str | os.PathLike) -> None:
        """Writes the weights to a safetensors file. On one rank."""
        library.cvy_program_save(self.handle, str(path).encode())

    def load(self, path: str | os.PathLike) -> None:
        """Reads them. On all ranks."""
        library.cvy_program_load(self.handle, str(path).encode())

    def write_checkpoint(self, folder: str | os.PathLike, step: int, state: str | None = None, keep: int = 0) -> None:
        """Writes weights, optimiser state and counts, crash-safe, as folder/step-N. state: a text of the program's own, of
        rank 0. keep: number of newest checkpoints to keep; 0: 2. Collective."""
        options = made(b.cvy_checkpoint_opts, folder=str(folder), step=step, keep=keep, state=state)
        library.cvy_checkpoint_write(self.handle, c.byref(options))

    def read_checkpoint(self, folder: str | os.PathLike, which: str | None = None) -> tuple[int, str] | None:
        """Goes on from the newest valid checkpoint, or from "best" or "step-N". Returns (step, state), or None if there
        is none. Collective."""
        about = made(b.cvy_checkpoint_about)
        if library.cvy_checkpoint_read(self.handle, text(folder), text(which), c.byref(about)) != b.CVY_OK:
            return None
        taken_text(c.c_void_p(about.notes))
        return about.step, taken_text(c.c_void_p(about.state))
