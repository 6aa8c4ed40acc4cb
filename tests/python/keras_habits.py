# SPDX-License-Identifier: BSD-3-Clause
"""keras_habits.py: what keras_habits.sh checks, on each rank: habits of Keras programs. Each gives the weights of one process with the
whole batches, or is refused by one sentence on all ranks."""
import sys
import warnings

import keras
import numpy as np
import tensorflow as tf

import convoy
import convoy.keras as cvy

BATCH, STEPS, EPOCHS = 8, 4, 3
ranks = convoy.world()
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(2)  # so that independent reductions could overtake each other
generator = np.random.default_rng(0)
X, Y = (generator.normal(size=(BATCH * STEPS, n)).astype("f") for n in (6, 2))


def expect(condition, text):
    if not condition:
        sys.exit(f"rank {ranks.rank}: {text}")


def samples(x=X):
    return tf.data.Dataset.from_tensor_slices((x, Y))


def plain():
    return keras.Sequential([keras.layers.Input((6,)), keras.layers.Dense(5, activation="tanh"), keras.layers.Dense(2)])


def tied():
    """A layer that is used twice, one that is frozen, and one that is not used."""
    x = keras.layers.Input((6,))
    twice, frozen = keras.layers.Dense(6, activation="tanh"), keras.layers.Dense(5, trainable=False)
    model = keras.Model(x, keras.layers.Dense(2)(frozen(twice(twice(x)))))
    model.unused = keras.layers.Dense(2)
    model.unused.build((None, 4))
    return model


class OwnStep(keras.Model):
    """A train_step of its own, with two optimizers for two parts of the network."""

    def __init__(self):
        super().__init__()
        self.first, self.last = keras.layers.Dense(5, activation="tanh"), keras.layers.Dense(2)

    def build(self, shape):
        self.first.build((None, 6))
        self.last.build((None, 5))

    def call(self, x):
        return self.last(self.first(x))

    def train_step(self, data):
        x, y = data
        with tf.GradientTape(persistent=True) as tape:
            loss = tf.reduce_mean((self(x) - y) ** 2)
        for optimizer, layer in ((self.optimizer, self.first), (self.second, self.last)):
            optimizer.apply(tape.gradient(loss, layer.trainable_variables), layer.trainable_variables)
        return {"loss": loss}


def trained(is_ours, optimizer, model=plain, x=X, callbacks=(), before=None, second=None, **options):
    """Trains a model with the whole batches, or with this rank's part of them."""
    keras.backend.clear_session()
    keras.utils.set_random_seed(3 + (ranks.rank if is_ours else 0))
    net = model()
    if not net.built:
        net.build((None, 6))
    wrapped = cvy.DistributedOptimizer if is_ours else lambda o: o
    net.compile(wrapped(optimizer()), loss="mse", jit_compile=False, **options)
    if second:
        net.second = wrapped(second())
    if before and (ranks.rank == 0 or not is_ours):
        before(net)
    mine = cvy.shard(samples(x)).batch(BATCH // ranks.nranks) if is_ours else samples(x).batch(BATCH)
    first = [cvy.BroadcastWeights()] if is_ours else []
    net.fit(mine, epochs=EPOCHS, verbose=0, callbacks=[*first, *[make() for make in callbacks]])
    return net


def same(text, optimizer, tolerance=1e-6, **options):
    """The weights, the number of updates and the learning rate are those of one process."""
    ours, alone = trained(True, optimizer, **options), trained(False, optimizer, **options)
    weights, expected = ours.get_weights(), alone.get_weights()
    distance = max(abs(a - b).max() for a, b in zip(weights, expected))
    expect(distance <= tolerance, f"{text}: {distance} from one process")
    expect(int(ours.optimizer.iterations) == int(alone.optimizer.iterations), f"{text}: {int(ours.optimizer.iterations)} updates")
    expect(abs(float(ours.optimizer.learning_rate) - float(alone.optimizer.learning_rate)) < 1e-9, f"{text}: another learning rate")
    cvy.broadcast(ours)
    expect(all(np.array_equal(a, b) for a, b in zip(weights, ours.get_weights())), f"{text}: the weights of the ranks differ")
    return ours


def refused(text, says, call):
    """On several ranks alone: on all of them, with these words."""
    try:
        call()
    except Exception as fault:
        expect(ranks.nranks > 1, f"{text}: refused on one rank: {fault}")
        expect(says in str(fault), f"{text}: wrong words: {fault}")
    else:
        expect(ranks.nranks == 1, f"{text}: it was accepted")


def sgd(**options):
    return lambda: keras.optimizers.SGD(0.1, **options)


def mine(values):
    """Another one on each rank."""
    return values[min(ranks.rank, 1)]


def plain_fit(callbacks, data=None, optimizer=None, epochs=EPOCHS, **options):
    model = plain()
    model.compile(cvy.DistributedOptimizer((optimizer or sgd())()), loss="mse", jit_compile=False)
    model.fit(samples().batch(BATCH) if data is None else data, epochs=epochs, verbose=0, callbacks=callbacks, **options)


def metrics():
    """Schedules and decisions on metrics."""
    same("plateau", sgd(), callbacks=[lambda: keras.callbacks.ReduceLROnPlateau(monitor="loss", min_delta=1e3, patience=1)])
    same("early stop", sgd(), callbacks=[lambda: keras.callbacks.EarlyStopping(monitor="loss", min_delta=1e3, patience=1)])
    same("a schedule over epochs", sgd(), callbacks=[lambda: keras.callbacks.LearningRateScheduler(lambda epoch: 0.1 / (1 + epoch))])
    refused("a schedule of each rank", "the ranks differ: learning rate: 0.1",
            lambda: trained(True, sgd(), callbacks=[lambda: keras.callbacks.LearningRateScheduler(lambda epoch: 0.1 * (1 + ranks.rank))]))
    refused("metrics of each rank", "EarlyStopping, which comes before it",
            lambda: plain_fit([keras.callbacks.EarlyStopping(monitor="loss"), cvy.BroadcastWeights()]) if ranks.nranks > 1 else None)


def gradients():
    """What works on gradients."""
    for name, option in {"clipnorm": {"clipnorm": 0.05}, "global_clipnorm": {"global_clipnorm": 0.05}, "clipvalue": {"clipvalue": 0.01},
                         "accumulation": {"gradient_accumulation_steps": 2, "momentum": 0.9}, "a fixed loss scale": {"loss_scale_factor": 64.0},
                         "a moving average": {"use_ema": True, "ema_momentum": 0.5, "ema_overwrite_frequency": 3}}.items():
        same(name, sgd(**option))
    same("weight decay", lambda: keras.optimizers.AdamW(0.01, weight_decay=0.1))
    same("eager", sgd(), run_eagerly=True)
    same("one variable", sgd(), run_eagerly=True, model=lambda: keras.Sequential([keras.layers.Input((6,)), keras.layers.Dense(2, use_bias=False)]))
    same("several steps in a call", sgd(), steps_per_execution=3)
    same("tied, frozen and unused weights", sgd(momentum=0.9), model=tied)
    two = same("a train_step with two optimizers", sgd(), model=OwnStep, second=lambda: keras.optimizers.Adam(0.01))
    expect(int(two.second.iterations) == EPOCHS * STEPS, "the second optimizer has other steps")


def halves():
    keras.mixed_precision.set_global_policy("mixed_float16")  # until the next clear_session()
    return plain()


def scaled():
    return keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.05, momentum=0.5))


def left_out():
    """Steps that are left out."""
    large = X.copy()
    large[3], large[16] = large[3] * 1e30, large[16] * 1e30  # of two ranks one overflows in the first batch, and the other in the third
    for eagerly in (False, True):
        net = same("a loss scale", scaled, x=large, model=lambda: keras.Sequential([keras.layers.Input((6,)), keras.layers.Dense(2)]), run_eagerly=eagerly)
        expect(int(net.optimizer.iterations) == EPOCHS * (STEPS - 2), f"a loss scale: {int(net.optimizer.iterations)} steps")
        expect(float(net.optimizer.dynamic_scale) == 2.0**(15 - 2 * EPOCHS), "another loss scale")
    net = same("mixed precision", sgd(), 1e-2, model=halves, x=np.where(np.abs(large) > 1e20, 1e6, large).astype("f"))
    expect(type(net.optimizer) is keras.optimizers.LossScaleOptimizer, "Keras scales no loss")


def with_state(model):
    model.optimizer.build(model.trainable_variables)
    for k, variable in enumerate([*model.weights, *model.optimizer.variables[2:]]):
        variable.assign(np.linspace(0.1, 0.2 + 0.01 * k, int(np.prod(variable.shape)), dtype="f").reshape(variable.shape))
    model.optimizer.iterations.assign(20)


class Changes(keras.callbacks.Callback):
    """After an epoch rank 1 does something alone."""

    def __init__(self, what, epoch=0):
        super().__init__()
        self.what, self.epoch = what, epoch

    def on_epoch_end(self, epoch, logs=None):
        if epoch == self.epoch and ranks.rank == ranks.nranks - 1 and ranks.nranks > 1:
            self.what(self.model)


def halve(model):
    model.layers[0].kernel.assign(model.layers[0].kernel * 0.5)


def momenta(model):
    model.optimizer.variables[-1].assign(model.optimizer.variables[-1] + 1)


def later(what, optimizer=None):
    return lambda: plain_fit([cvy.BroadcastWeights(), Changes(what)], optimizer=optimizer)


def steps():
    """A loop of the program's own, without broadcast(). What the first step finds the second one says."""
    weights = [keras.Variable(np.full(3, ranks.rank + 1.0, "f")), keras.Variable(np.ones((2, 2), "f"))]
    optimizer = cvy.DistributedOptimizer(sgd()())
    for _ in range(2):
        optimizer.apply([tf.ones(3), tf.ones((2, 2))], weights)


def state():
    """State of one rank."""
    same("a checkpoint of rank 0", lambda: keras.optimizers.Adam(0.05), before=with_state)
    refused("weights of one rank", "kernel differs between ranks: the sum of the magnitudes is", later(halve))
    refused("momenta of one rank", "differs between ranks", later(momenta, sgd(momentum=0.9)))
    refused("a number of updates", "the ranks differ: number of updates: 4 on rank 0, 7 on rank 1", later(lambda m: m.optimizer.iterations.assign(7)))
    refused("a loop with other weights", "the weights differ between ranks: the sum of the magnitudes is", steps)
    refused("another model", "the ranks differ: weights of the model", lambda: cvy.broadcast(mine([plain, tied])()))


def normalised():
    return keras.Sequential([keras.layers.Input((6,)), keras.Sequential([keras.layers.Dense(5), keras.layers.BatchNormalization()]), keras.layers.Dense(2)])


def alone():
    """What each rank decides alone."""
    refused("options", "the ranks differ: clipnorm of the optimizer: None on rank 0, 0.1 on rank 1",
            lambda: plain_fit([cvy.BroadcastWeights()], optimizer=sgd(clipnorm=mine([None, 0.1]))))
    refused("another optimizer", "the ranks differ: variables of the optimizer",
            lambda: plain_fit([cvy.BroadcastWeights()], optimizer=mine([keras.optimizers.SGD, keras.optimizers.Adam])))
    refused("fewer epochs", "the ranks differ: epochs of fit(): 3 on rank 0, 2 on rank 1", lambda: plain_fit([cvy.BroadcastWeights()], epochs=mine([3, 2])))
    refused("fewer batches", "the ranks differ: batches of an epoch: 4 on rank 0, 3 on rank 1",
            lambda: plain_fit([cvy.BroadcastWeights()], samples().take(mine([32, 24])).batch(BATCH)))
    refused("fewer batches, which nobody knows", "the ranks differ: what comes next: a step on rank 0, the end of epoch 1 on rank 1",
            lambda: plain_fit([cvy.BroadcastWeights()], samples().take(mine([32, 24])).filter(lambda x, y: True).batch(BATCH)))
    refused("a stop of one rank", "the ranks differ: what comes next: a step on rank 0, the end of fit() on rank 1",
            later(lambda model: setattr(model, "stop_training", True)))
    plain_fit([cvy.BroadcastWeights()], validation_data=mine([(X, Y), None]))  # on rank 0 alone
    refused("a gradient of one rank", "the ranks differ: gradients: float32 [2], none on rank 0, float32 [2], float32 [2] on rank 1",
            lambda: cvy.DistributedOptimizer(sgd()()).apply([tf.ones(2), mine([None, tf.ones(2)])], [keras.Variable(np.ones(2, "f")) for _ in range(2)]))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        trained(True, sgd(), model=normalised)
    expect(any("normalises by the statistics" in str(w.message) for w in said) == (ranks.nranks > 1 and ranks.rank == 0), "batch norm is not said")
    try:
        cvy.DistributedOptimizer(cvy.DistributedOptimizer(sgd()()))
        sys.exit("an optimizer was wrapped twice")
    except ValueError as fault:
        expect("is a DistributedOptimizer already" in str(fault), f"wrong words: {fault}")


for section in (metrics, gradients, left_out, state, alone):
    if section.__name__ in sys.argv[1:] or not sys.argv[1:]:
        section()
print("all right", flush=True)
if not sys.argv[1:] and ranks.nranks > 1:
    class Raises(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            if ranks.rank == 1:
                raise RuntimeError("only here")
    plain_fit([cvy.BroadcastWeights(), Raises()])
