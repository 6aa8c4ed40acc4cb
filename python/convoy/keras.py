# SPDX-License-Identifier: BSD-3-Clause
"""Data-parallel training of Keras models (Keras 3 on TensorFlow), with gradients averaged by convoy's reducer.

    import convoy.keras as cvy
    model.compile(cvy.DistributedOptimizer(keras.optimizers.SGD(0.1)), loss="mse", jit_compile=False)
    model.fit(cvy.shard(dataset).batch(32), epochs=5, callbacks=[cvy.BroadcastWeights()], verbose=2 if cvy.rank() == 0 else 0)

Start it with `mpiexec --bind-to none -n 2 python train.py`. Each rank computes its own batches; each step updates all
ranks with the mean of their gradients, so the weights stay equal. Keras hands over all gradients at once, after backward,
so the reduction does not overlap with it. Tensors are copied to the CPU; gradients are in f32 or f64.
"""
import contextlib
import functools
import math
import sys
import warnings

import keras
import numpy as np
import tensorflow as tf

from . import _agreement
from ._agreement import text
from ._context import world
from ._reducer import F32, F64, Reducer, mean, print, rank, size

if keras.backend.backend() != "tensorflow":
    raise ImportError(f"convoy.keras works with Keras on tensorflow, and not on {keras.backend.backend()}")

__all__ = ["BroadcastWeights", "DistributedOptimizer", "broadcast", "mean", "print", "rank", "shard", "size"]

_DTYPES = {np.dtype(np.float32): F32, np.dtype(np.float64): F64}
_NEXT, _RATE, _GRADIENTS = "what comes next", "learning rate", "gradients"
_ADVICE = {
    _NEXT: "give all ranks the same number of batches and epochs, and let them stop together: what decides it must be the same on all of them",
    _RATE: "set it by a schedule over steps, or by callbacks after BroadcastWeights(), which see the means of the metrics over the ranks",
    _GRADIENTS: "all ranks must train the same variables, and give zeros where they have no gradient",
}
_EVERY = 50  # updates after which a step also compares the weights
_NEAR = 1e-4  # of the sum of magnitudes: ranks on other processors may round differently
_STATE = "give all ranks what rank 0 has, by BroadcastWeights() or convoy.keras.broadcast(model), after it was loaded"


def DistributedOptimizer(optimizer, ranks=None, **options):
    """Makes apply() of a Keras optimizer average the gradients of all ranks first, and returns the optimizer.

    The model is compiled with jit_compile=False: XLA cannot call out of a step. Clipping, accumulation, weight decay and the
    moving average of the weights work on the means. Loss scaling does, too: a step whose gradients are not finite on one rank
    is left out on all. options: wire="bf16" halves the bytes between nodes; bucket_bytes and algorithm are those of
    convoy/reducer.h. Sparse gradients, as of an Embedding, become dense, and so are the updates: Adam changes the moments of
    all rows. Each apply() is collective, and refuses learning rates, numbers of steps and options that differ between ranks.
    """
    _scale_means()
    inner = getattr(optimizer, "inner_optimizer", optimizer)  # of a LossScaleOptimizer
    if _reduction_of(inner):
        raise ValueError("this optimizer is a DistributedOptimizer already")
    apply, reduction = inner.apply, _Reduction(inner, ranks or world(), options)

    def apply_means(grads, trainable_variables=None):
        return apply(reduction.of(grads, trainable_variables), trainable_variables)

    apply_means.reduction = reduction
    inner.apply = apply_means
    return optimizer


def _reduction_of(optimizer):
    """That of a DistributedOptimizer, also inside of the LossScaleOptimizer that Keras adds; else None."""
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    return getattr(getattr(optimizer, "apply", None), "reduction", None)


@functools.cache  # once, for the first DistributedOptimizer
def _scale_means():
    """LossScaleOptimizer, which Keras also adds by itself, leaves a step out if a gradient is not finite. Makes it look at the means of a
    DistributedOptimizer, which all ranks have."""
    apply = keras.optimizers.LossScaleOptimizer.apply

    @functools.wraps(apply)
    def apply_means(self, grads, trainable_variables=None):
        reduction = _reduction_of(self)
        if reduction is None:
            return apply(self, grads, trainable_variables)
        means = reduction.of(grads, trainable_variables, self.dynamic_scale if self.built else self.initial_scale)
        with reduction.is_done():
            return apply(self, means, trainable_variables)

    keras.optimizers.LossScaleOptimizer.apply = apply_means


class _Meeting:
    """Ranks come here before each of their collectives, and compare what they are about to do, and what each has set alone. So a
    rank that goes another way is named, and the others do not wait for it."""

    def __init__(self, ranks):
        self._agreement = _agreement.Agreement(ranks, self._advice)
        self._reducer = Reducer(ranks, [("what ranks set alone", self._agreement.size, F32), ("weights", 2, F64)], algorithm="library")
        self._fault = ""  # of the step before

    @staticmethod
    def of(ranks):
        if not hasattr(ranks, "_keras_meeting"):
            ranks._keras_meeting = _Meeting(ranks)
        return ranks._keras_meeting

    @staticmethod
    def _advice(name):
        return _ADVICE.get(name, "make the optimizers of all ranks with the same options" if name.endswith("of the optimizer") else _STATE)

    def agree(self, comes_next, values=None, fault="", weights=(0.0, 0.0)):
        """Collective. values: texts by name. fault: what all ranks raise. weights: their magnitudes and values, added up. If they differ,
        all ranks raise it when they meet next."""
        fault, self._fault = fault or self._fault, ""
        self._reducer.buffer(0)[:] = self._agreement.numbers({_NEXT: comes_next, **(values or {})}, fault)
        self._reducer.buffer(1)[:] = weights
        for i in range(2):
            self._reducer.start(i)
        self._reducer.wait()
        self._agreement.check(self._reducer.sum(0)[:])
        self._fault = _difference("the weights differ", weights, self._reducer.sum(1)[:])


def _difference(what, mine, means):
    """What is another one on this rank than in the mean; "": nothing. mine: a sum of magnitudes, and a sum of the same size or less."""
    near = _NEAR * max(mine[0], means[0])
    if (math.isnan(mine[0]) and math.isnan(means[0])) or all(a == b or abs(a - b) <= near for a, b in zip(mine, means)):
        return ""
    return (f"{what} between ranks: the sum of the magnitudes is {mine[0]:.8g} here, and {means[0]:.8g} in the mean; change weights and the "
            "state of the optimizer on all ranks alike, or call convoy.keras.broadcast(model) after it, on all ranks")


class _Reduction:
    """Means of lists of gradients. A list with other shapes, as of another model, gets a reducer of its own."""

    def __init__(self, optimizer, ranks, options):
        self._optimizer, self.ranks, self._options, self._reducers = optimizer, ranks, options, {}
        self._is_done = False
        self._meeting = _Meeting.of(ranks)

    @contextlib.contextmanager
    def is_done(self):
        """Within it, gradients are means already."""
        self._is_done = True
        try:
            yield
        finally:
            self._is_done = False

    def of(self, gradients, variables=None, scale=None):
        """The means of tensors, in a graph or at once. None stays None; what is sparse becomes dense. variables: what they train. scale: of
        the loss."""
        if self._is_done:
            return gradients
        there = [tf.convert_to_tensor(g) for g in gradients if g is not None]
        for g in there:
            if np.dtype(g.dtype.as_numpy_dtype) not in _DTYPES:
                raise ValueError(f"a gradient is {g.dtype.name}; convoy.keras reduces float32 and float64")
        if not there:
            return list(gradients)
        numbers = {_RATE: self._optimizer.learning_rate, "number of updates": self._optimizer.iterations}
        if scale is not None:
            numbers["loss scale"] = scale
        numbers["magnitudes"], numbers["values"] = self._weights(variables or [])
        call = functools.partial(self._reduced, list(numbers), self._fixed(gradients))
        with _after_earlier() as note:
            reduced = tf.numpy_function(call, [*(tf.cast(n, tf.float64) for n in numbers.values()), *there], [g.dtype for g in there])
            reduced = [reduced] if tf.is_tensor(reduced) else reduced  # of one gradient, at once
            note(reduced[0])
        for mean_of_ranks, g in zip(reduced, there):
            mean_of_ranks.set_shape(g.shape)
        reduced = iter(reduced)
        return [None if g is None else next(reduced) for g in gradients]

    def _weights(self, variables):
        """The sums of their magnitudes and of their values, in some steps; otherwise zeros."""
        values = [tf.convert_to_tensor(v) for v in variables]

        def sums():
            return tuple(tf.add_n([tf.cast(tf.reduce_sum(of(v)), tf.float64) for v in values]) for of in (tf.abs, tf.identity))

        zero = tf.constant(0, tf.float64)
        return tf.cond(tf.equal(self._optimizer.iterations % _EVERY, 0), sums, lambda: (zero, zero)) if values else (zero, zero)

    def _fixed(self, gradients):
        """What the ranks must have alike in each step, and does not change while a graph is used: texts by name."""
        with tf.init_scope():
            options = self._optimizer.get_config()
        if not isinstance(options.get("learning_rate"), dict):
            options.pop("learning_rate", None)  # compared as the number that it is in each step
        options.pop("name", None)
        shapes = ["none" if g is None else f"{g.dtype.name} {list(g.shape)}" for g in gradients]
        return {**{f"{name} of the optimizer": text(value) for name, value in options.items()}, _GRADIENTS: ", ".join(shapes)}

    def _reduced(self, names, fixed, *arrays):
        values = dict(zip(names, map(float, arrays)))
        weights = values.pop("magnitudes"), values.pop("values")
        self._meeting.agree("a step", {**{name: text(v) for name, v in values.items()}, **fixed}, weights=weights)
        arrays = arrays[len(names):]
        kinds = tuple((a.shape, a.dtype) for a in arrays)
        if kinds not in self._reducers:
            buffers = [(f"gradient {i} {list(a.shape)}", a.size, _DTYPES[a.dtype]) for i, a in enumerate(arrays)]
            self._reducers[kinds] = Reducer(self.ranks, buffers, **self._options)
        reducer = self._reducers[kinds]
        for i, a in enumerate(arrays):
            np.ctypeslib.as_array(reducer.buffer(i))[:] = a.ravel()
            reducer.start(i)
        reducer.wait()
        return [np.ctypeslib.as_array(reducer.sum(i)).reshape(a.shape).copy() for i, a in enumerate(arrays)]


@contextlib.contextmanager
def _after_earlier():
    """In a graph, reductions run in the order of the program: that of independent ones would be another one on each rank."""
    graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
    earlier = getattr(graph, "_convoy_latest", None)
    with tf.control_dependencies([earlier] if earlier is not None else []):
        yield lambda tensor: setattr(graph, "_convoy_latest", tensor) if graph is not None else None


def _variables(model):
    """Those that all ranks must have alike at the beginning, with those of its optimizer if it has one."""
    optimizer = getattr(model, "optimizer", None)
    if optimizer is not None and not optimizer.built:
        optimizer.build(model.trainable_variables)
    return model.weights, optimizer.variables if optimizer is not None else []


def broadcast(model, root=0, ranks=None):
    """Gives all ranks the weights of rank `root`, and the state of its optimizer if the model has one. Collective."""
    ranks = ranks or world()
    weights, state = _variables(model)
    shapes = {name: ", ".join(f"{v.dtype} {list(v.shape)}" for v in of) for name, of in
              {"weights of the model": weights, "variables of the optimizer": state}.items()}
    differs = _agreement.difference(ranks, shapes)
    if differs:
        _agreement.refuse(*differs, "make the same model on all ranks, and compile it with the same optimizer")
    for variable in [*weights, *state]:
        value = np.array(keras.ops.convert_to_numpy(variable), order="C")
        ranks.broadcast(value.ctypes.data, value.nbytes, root)
        variable.assign(value)


class BroadcastWeights(keras.callbacks.Callback):
    """A callback of fit(), the first one: all ranks begin with the weights of rank 0 and the state of its optimizer, and the
    callbacks after it see the means over the ranks of the metrics of an epoch. It refuses weights that have become different."""

    def __init__(self, root=0, ranks=None):
        super().__init__()
        self._root, self._ranks = root, ranks

    def _check(self):
        if self.model.jit_compile:
            raise ValueError("compile the model with jit_compile=False: XLA cannot call a DistributedOptimizer")
        if not _reduction_of(self.model.optimizer):
            raise ValueError("the optimizer of this model averages no gradients, as after load_model(): call "
                             "convoy.keras.DistributedOptimizer(model.optimizer) before fit()")
        default = keras.callbacks.Callback.on_epoch_end
        for earlier in _callbacks_before(self):
            if type(earlier) is not keras.callbacks.BackupAndRestore and getattr(earlier.on_epoch_end, "__func__", earlier.on_epoch_end) is not default:
                raise ValueError(f"BroadcastWeights must be the first of the callbacks: {type(earlier).__name__}, which comes before it, would see "
                                 "the metrics of each rank's own samples, and decide otherwise on each rank")

    def on_train_begin(self, logs=None):
        """Called by fit(). A model that cannot be trained on several ranks is a ValueError."""
        self._check()
        self._ranks = self._ranks or _reduction_of(self.model.optimizer).ranks
        self._meeting = _Meeting.of(self._ranks)
        plan = {"epochs of fit()": text(self.params.get("epochs")), "batches of an epoch": text(self.params.get("steps"))}
        self._meeting.agree("the beginning of fit()", plan)
        broadcast(self.model, self._root, self._ranks)
        normalised = [layer.name for layer in _layers(self.model) if isinstance(layer, keras.layers.BatchNormalization) and layer.trainable]
        if normalised and self._ranks.nranks > 1 and self._ranks.rank == 0:
            warnings.warn(f"{normalised[0]} normalises by the statistics of each rank's own samples, so the weights are not those of one process "
                          "with all of them; moving averages are another one on each rank until convoy.keras.broadcast(model)")

    def on_epoch_end(self, epoch, logs=None):
        """Called by fit(). Puts the means of the metrics over the ranks into logs, and compares the weights. Collective."""
        self._meeting.agree(f"the end of epoch {epoch + 1}")
        names = self._common([name for name, value in (logs or {}).items() if np.ndim(value) == 0 and np.issubdtype(np.array(value).dtype, np.number)])
        trained = self._trained()
        means = mean(*(float(logs[name]) for name in names), *(n for _, numbers in trained for n in numbers), 0, 0, ranks=self._ranks)
        logs.update(zip(names, means))
        self._meeting.agree("the comparison of weights", fault=self._differing(trained, iter(means[len(names):])))

    def on_train_end(self, logs=None):
        """Called by fit(). A rank that ends alone is an Error on all ranks. Collective."""
        self._meeting.agree("the end of fit()")

    def _common(self, names):
        """The metrics that all ranks have, as not those of validation on rank 0 alone. Collective."""
        if not _agreement.difference(self._ranks, {"metrics": ",".join(names)}):
            return names
        all_names = [_agreement.bytes_of(self._ranks, r, "\n".join(names).encode()).decode().split("\n") for r in range(self._ranks.nranks)]
        return [name for name in all_names[0] if name and all(name in other for other in all_names)]

    def _trained(self):
        """Two sums for each variable that the ranks train alike. The second one depends on the order of the elements."""
        found = []
        for variable in [*self.model.trainable_variables, *self.model.optimizer.variables]:
            flat = np.ravel(keras.ops.convert_to_numpy(variable)).astype(np.float64)
            found.append((variable.path, (float(np.abs(flat).sum()), float(flat @ np.cos(np.arange(flat.size))))))
        return found

    @staticmethod
    def _differing(trained, means):
        return next(filter(None, (_difference(f"{name} differs", sums, (next(means), next(means))) for name, sums in trained)), "")


def _layers(model):
    for layer in getattr(model, "layers", []):
        yield layer
        yield from _layers(layer)


def _callbacks_before(callback):
    """The callbacks that fit() calls before this one, which it is calling."""
    frame = sys._getframe(1)
    while frame is not None:
        caller = frame.f_locals.get("self")
        if isinstance(caller, keras.callbacks.CallbackList) and callback in caller.callbacks:
            return caller.callbacks[:caller.callbacks.index(callback)]
        frame = frame.f_back
    return []


def shard(dataset, ranks=None):
    """This rank's samples of a tf.data.Dataset that is not batched yet: each n-th. All ranks get the same number; up to
    n - 1 samples at the end are left out. A batch of b on n ranks then has the samples of one of b * n in one process."""
    ranks = ranks or world()
    samples = int(dataset.cardinality())
    if samples < 0:
        raise ValueError("the number of samples of this dataset is not known: apply tf.data.experimental.assert_cardinality() to it")
    return dataset.take(samples // ranks.nranks * ranks.nranks).shard(ranks.nranks, ranks.rank)
