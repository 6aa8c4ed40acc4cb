# SPDX-License-Identifier: BSD-3-Clause
"""keras_plugin.py: what keras_plugin.sh checks, on each rank."""
import sys

import keras
import numpy as np
import tensorflow as tf

import convoy
import convoy.keras as cvy

BATCH, STEPS = 8, 10
ranks = convoy.world()
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)


class Net(keras.Model):
    """A network with a sparse gradient if asked, and with a layer that gets none."""

    def __init__(self, is_sparse):
        super().__init__()
        if is_sparse:
            self.embedding = keras.layers.Embedding(20, 6)
        else:
            self.embedding = keras.Sequential([keras.layers.Lambda(lambda x: keras.ops.one_hot(x, 20)), keras.layers.Dense(6)])
        self.hidden, self.output_layer = keras.layers.Dense(16, activation="tanh"), keras.layers.Dense(3)
        self.unused = keras.layers.Dense(2)
        self.unused.build((None, 4))

    def call(self, words):
        return self.output_layer(self.hidden(keras.ops.reshape(self.embedding(words), (-1, 24))))


def expect(condition, text):
    if not condition:
        sys.exit(f"rank {ranks.rank}: {text}")


def samples():
    generator = np.random.default_rng(5)
    words = generator.integers(0, 20, (BATCH * STEPS + 1, 4))
    return tf.data.Dataset.from_tensor_slices((words, generator.standard_normal((len(words), 3)).astype(keras.config.floatx())))


def made(seed, optimizer, is_sparse=True, **options):
    keras.utils.set_random_seed(seed)
    model = Net(is_sparse)
    model(np.zeros((1, 4), int))
    model.compile(optimizer, loss="mse", jit_compile=False, **options)
    return model


def check(text, tolerance, optimizer, run_eagerly=False, is_sparse=True, **options):
    model = made(1 + ranks.rank, cvy.DistributedOptimizer(optimizer(), **options), is_sparse, run_eagerly=run_eagerly)
    alone = made(1, optimizer(), is_sparse)
    first = [w.copy() for w in alone.get_weights()]
    mine = cvy.shard(samples()).batch(BATCH // ranks.nranks).take(STEPS)
    model.fit(mine, epochs=1, verbose=0, callbacks=[cvy.BroadcastWeights()])
    alone.fit(samples().batch(BATCH).take(STEPS), epochs=1, verbose=0)
    weights = model.get_weights()
    distance = max(abs(a - b).max() for a, b in zip(weights, alone.get_weights()))
    expect(distance < tolerance, f"{text}: {distance} from one process")
    expect(max(abs(a - b).max() for a, b in zip(weights, first)) > 0.01, f"{text}: nothing was learned")
    cvy.broadcast(model)
    expect(all(np.array_equal(a, b) for a, b in zip(weights, model.get_weights())), f"{text}: the weights of the ranks differ")
    expect(int(model.optimizer.iterations) == STEPS, f"{text}: {int(model.optimizer.iterations)} steps")
    return model


check("sgd", 1e-6, lambda: keras.optimizers.SGD(0.1, momentum=0.9))
# Of a sparse gradient, TensorFlow computes the norm before it adds up the rows of one index, and Keras's Adam leaves the
# moments of other rows as they are.
check("clipped", 1e-6, lambda: keras.optimizers.SGD(0.1, momentum=0.9, global_clipnorm=0.2), is_sparse=False)
check("eager", 1e-6, lambda: keras.optimizers.SGD(0.1), run_eagerly=True)
check("bf16", 2e-2, lambda: keras.optimizers.SGD(0.1), wire="bf16", no_node=1)  # as if each rank were on a node of its own
model = check("a schedule", 1e-6, lambda: keras.optimizers.SGD(keras.optimizers.schedules.ExponentialDecay(0.2, 3, 0.5)))
expect(type(model.optimizer) is keras.optimizers.SGD, "the optimizer has another type")
keras.config.set_floatx("float64")
keras.config.set_dtype_policy("float64")
check("adam in f64", 1e-12, lambda: keras.optimizers.Adam(0.01), is_sparse=False)


def refused(text, call):
    try:
        call()
    except ValueError as fault:
        expect(text in str(fault), f"wrong text: {fault}")
    else:
        sys.exit(f"it was accepted: {text}")


loaded = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
loaded.compile(cvy.DistributedOptimizer(keras.optimizers.Adam(0.1)), loss="mse", jit_compile=False)
pairs = tf.data.Dataset.from_tensor_slices((np.arange(16.0).reshape(8, 2) / 16, np.ones((8, 1)))).shard(ranks.nranks, ranks.rank).batch(4)
loaded.fit(pairs, verbose=0, callbacks=[cvy.BroadcastWeights()])
loaded.save(f"loaded-{ranks.rank}.keras")
loaded = keras.models.load_model(f"loaded-{ranks.rank}.keras")
loaded.jit_compile = False
refused("averages no gradients", lambda: loaded.fit(pairs, verbose=0, callbacks=[cvy.BroadcastWeights()]))
cvy.DistributedOptimizer(loaded.optimizer)
loaded.fit(pairs, verbose=0, callbacks=[cvy.BroadcastWeights()])
weights = loaded.get_weights()
cvy.broadcast(loaded)
expect(all(np.array_equal(a, b) for a, b in zip(weights, loaded.get_weights())), "a model that was loaded has other weights on each rank")
model.jit_compile = True
refused("jit_compile=False", lambda: model.fit(samples().batch(4), verbose=0, callbacks=[cvy.BroadcastWeights()]))
refused("not known", lambda: cvy.shard(samples().filter(lambda x, y: True)))
refused("float16", lambda: cvy.DistributedOptimizer(keras.optimizers.SGD(0.1)).apply([tf.zeros(2, tf.float16)], model.weights[:1]))
expect(cvy.mean(ranks.rank) == (ranks.nranks - 1) / 2, "the mean over ranks is wrong")
print("all right")
