# SPDX-License-Identifier: BSD-3-Clause
"""Data-parallel training of Keras models (Keras 3 on TensorFlow), with gradients averaged by convoy's reducer.

    import convoy.keras as cvy
    model.compile(cvy.DistributedOptimizer(keras.optimizers.SGD(0.1)), loss="mse", jit_compile=False)
    model.fit(cvy.shard(dataset).batch(32), epochs=5, callbacks=[cvy.BroadcastWeights()], verbose=2 if cvy.rank() == 0 else 0)

Start it with `mpiexec --bind-to none -n 2 python train.py`. Each rank computes its own batches; each step updates all
ranks with the mean of their gradients, so the weights stay equal. Keras hands over all gradients at once, after backward,
so the reduction does not overlap with it. Tensors are copied to the CPU; gradients are in f32 or f64.
"""
import keras
import numpy as np
import tensorflow as tf

from ._context import world
from ._reducer import F32, F64, Reducer, mean, print, rank

if keras.backend.backend() != "tensorflow":
    raise ImportError(f"convoy.keras works with Keras on tensorflow, and not on {keras.backend.backend()}")

__all__ = ["BroadcastWeights", "DistributedOptimizer", "broadcast", "mean", "print", "rank", "shard"]

_DTYPES = {np.dtype(np.float32): F32, np.dtype(np.float64): F64}


def DistributedOptimizer(optimizer, ranks=None, **options):
    """Makes apply() of a Keras optimizer average the gradients of all ranks first, and returns the optimizer.

    The model is compiled with jit_compile=False: XLA cannot call out of a step. options: wire="bf16" halves the bytes
    between nodes; bucket_bytes and algorithm are those of convoy/reducer.h. Sparse gradients, as of an Embedding, become
    dense, and so are the updates: Adam changes the moments of all rows. Each apply() is collective.
    """
    apply, means = optimizer.apply, _Means(ranks or world(), options)

    def apply_means(grads, trainable_variables=None):
        return apply(means.of(grads), trainable_variables)

    optimizer.apply = apply_means
    return optimizer


def _averages(optimizer):
    """Whether it is a DistributedOptimizer, also inside of the LossScaleOptimizer that Keras adds."""
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    return getattr(optimizer.apply, "__name__", "") == "apply_means"


class _Means:
    """Means of lists of gradients. A list with other shapes, as of another model, gets a reducer of its own."""

    def __init__(self, ranks, options):
        self._ranks, self._options, self._reducers = ranks, options, {}

    def of(self, gradients):
        """The means of tensors, in a graph or at once. None stays None; what is sparse becomes dense."""
        there = [tf.convert_to_tensor(g) for g in gradients if g is not None]
        for g in there:
            if np.dtype(g.dtype.as_numpy_dtype) not in _DTYPES:
                raise ValueError(f"a gradient is {g.dtype.name}; convoy.keras reduces float32 and float64")
        if not there:
            return list(gradients)
        reduced = tf.numpy_function(self._reduced, there, [g.dtype for g in there])
        for mean_of_ranks, g in zip(reduced, there):
            mean_of_ranks.set_shape(g.shape)
        reduced = iter(reduced)
        return [None if g is None else next(reduced) for g in gradients]

    def _reduced(self, *arrays):
        kinds = tuple((a.shape, a.dtype) for a in arrays)
        if kinds not in self._reducers:
            buffers = [(f"gradient {i} {list(a.shape)}", a.size, _DTYPES[a.dtype]) for i, a in enumerate(arrays)]
            self._reducers[kinds] = Reducer(self._ranks, buffers, **self._options)
        reducer = self._reducers[kinds]
        for i, a in enumerate(arrays):
            np.ctypeslib.as_array(reducer.buffer(i))[:] = a.ravel()
            reducer.start(i)
        reducer.wait()
        return [np.ctypeslib.as_array(reducer.sum(i)).reshape(a.shape).copy() for i, a in enumerate(arrays)]


def broadcast(model, root=0, ranks=None):
    """Gives all ranks the weights of rank `root`, and the state of its optimizer if the model has one. Collective."""
    ranks = ranks or world()
    optimizer = getattr(model, "optimizer", None)
    if optimizer is not None and not optimizer.built:
        optimizer.build(model.trainable_variables)
    for variable in [*model.weights, *(optimizer.variables if optimizer is not None else [])]:
        value = np.array(keras.ops.convert_to_numpy(variable), order="C")
        ranks.broadcast(value.ctypes.data, value.nbytes, root)
        variable.assign(value)


class BroadcastWeights(keras.callbacks.Callback):
    """A callback of fit(): all ranks begin with the weights of rank 0."""

    def __init__(self, root=0, ranks=None):
        super().__init__()
        self._root, self._ranks = root, ranks

    def on_train_begin(self, logs=None):
        """Called by fit(). A model that cannot be trained on several ranks is a ValueError."""
        if self.model.jit_compile:
            raise ValueError("compile the model with jit_compile=False: XLA cannot call a DistributedOptimizer")
        if not _averages(self.model.optimizer):
            raise ValueError("the optimizer of this model averages no gradients, as after load_model(): call "
                             "convoy.keras.DistributedOptimizer(model.optimizer) before fit()")
        broadcast(self.model, self._root, self._ranks)


def shard(dataset, ranks=None):
    """This rank's samples of a tf.data.Dataset that is not batched yet: each n-th. All ranks get the same number; up to
    n - 1 samples at the end are left out. A batch of b on n ranks then has the samples of one of b * n in one process."""
    ranks = ranks or world()
    samples = int(dataset.cardinality())
    if samples < 0:
        raise ValueError("the number of samples of this dataset is not known: apply tf.data.experimental.assert_cardinality() to it")
    return dataset.take(samples // ranks.nranks * ranks.nranks).shard(ranks.nranks, ranks.rank)
