# SPDX-License-Identifier: BSD-3-Clause
"""horovod_keras.py: a program as Horovod's users write it. horovod_scripts.sh changes it, and trains it on convoy."""
import sys

import keras
import numpy as np
import tensorflow as tf
import horovod.tensorflow.keras as hvd

hvd.init()
batch_size, rate, out = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
keras.utils.set_random_seed(hvd.rank())  # another one on each rank: rank 0's weights count
x = np.random.default_rng(7).standard_normal((48, 6)).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices((x, (x.sum(1) > 0).astype("int64"))).shard(hvd.size(), hvd.rank()).batch(batch_size)
model = keras.Sequential([keras.layers.Input((6,)), keras.layers.Dense(8, "tanh"), keras.layers.Dense(2)])
optimizer = keras.optimizers.SGD(rate * hvd.size(), momentum=0.9)
optimizer = hvd.DistributedOptimizer(optimizer)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=optimizer, loss=loss)
callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback()]
history = model.fit(dataset, epochs=3, callbacks=callbacks, verbose=0)
if hvd.rank() == 0:
    print("losses", history.history["loss"])
np.savez(f"{out}-{hvd.rank()}.npz", *model.get_weights())
