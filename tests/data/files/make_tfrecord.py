#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes pictures.tfrecord, numbers.tfrecord and names.tfrecord with TensorFlow, for tests/data/test_data_tfrecord.c.

Run it in this folder. The files are checked in, so the tests do not need TensorFlow.
"""
import numpy as np
import tensorflow as tf


def feature(value):
    value = value if isinstance(value, list) else [value]
    if isinstance(value[0], (str, bytes)):
        value = [v.encode() if isinstance(v, str) else v for v in value]
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=value))
    if isinstance(value[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=value))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=value))


def write(path, samples):
    with tf.io.TFRecordWriter(path) as out:
        for sample in samples:
            features = {name: feature(value) for name, value in sample.items()}
            out.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())


def pictures():
    """Makes samples as the scripts of TensorFlow-Slim do: labels begin with 1, and each sample has its class's name."""
    for i in range(4):
        c, y, x = np.meshgrid(range(3), range(12), range(10), indexing="ij")
        pixels = (40 + 10 * i + 30 * c + 3 * y + 2 * x).transpose(1, 2, 0).astype(np.uint8)
        code = tf.io.encode_png if i % 2 else tf.io.encode_jpeg
        yield {
            "image/encoded": code(pixels).numpy(),
            "image/format": "png" if i % 2 else "jpeg",
            "image/height": 12,
            "image/width": 10,
            "image/class/label": 1 + i % 3,
            "image/class/text": ["daisy", "rose", "tulip"][i % 3],
        }


def numbers():
    for i in range(5):
        yield {
            "x": [i + k / 8.0 for k in range(6)],
            "label": i % 3,
            "y": [float(i), -float(i)],
            "weight": 1 + i / 4.0,
        }


def names():
    for i, name in enumerate(["pear", "apple", "pear"]):
        yield {
            "x": np.arange(100 * i - 3, 100 * i + 3, dtype="<i2").tobytes(),
            "x/shape": [2, 3],
            "x/dtype": "i16",
            "label": name,
        }


write("pictures.tfrecord", pictures())
write("numbers.tfrecord", numbers())
write("names.tfrecord", names())
