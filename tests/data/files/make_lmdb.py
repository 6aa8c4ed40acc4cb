#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the LMDB databases that tests/data/test_data_lmdb.c reads, with Python's lmdb and Pillow and not with convoy.

    python3 -m venv venv && venv/bin/pip install lmdb numpy pillow && venv/bin/python make_lmdb.py

The Datum messages are encoded here by the rules of caffe.proto, with the fields that Caffe's own tools write:
  lmdb-imageset  plain pictures as convert_imageset writes them: planes in the order blue, green, red, keys NUMBER_NAME. There are
                 70 pictures of 3 x 5 x 4, but number 69 is 3 x 30 x 40 and has overflow pages of its own.
  lmdb-encoded   as convert_imageset --encoded writes them: JPEG and PNG, no shape in the Datum
  lmdb-floats    float_data: one value for each key as protobuf 2 writes them (samples 0 and 2), and packed (sample 1)
"""
import io
import os
import shutil
import struct
import sys

import lmdb
import numpy as np
from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))


def varint(v):
    v &= (1 << 64) - 1
    out = b""
    while v >= 0x80:
        out += bytes([v & 0x7F | 0x80])
        v >>= 7
    return out + bytes([v])


def number(field, v):
    return varint(field << 3) + varint(v)


def chunk(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def shape(c, h, w):
    return number(1, c) + number(2, h) + number(3, w)


def write(name, records):
    folder = os.path.join(HERE, name)
    shutil.rmtree(folder, ignore_errors=True)
    env = lmdb.open(folder, map_size=1 << 20)
    with env.begin(write=True) as txn:
        for key, value in records:
            txn.put(key.encode(), value)
    env.close()
    os.remove(os.path.join(folder, "lock.mdb"))
    print(name, os.path.getsize(os.path.join(folder, "data.mdb")), "bytes")


def pixel(i, c, y, x):
    """Returns the value that the test expects in sample i at channel c (0 is red), row y, column x."""
    return (7 * i + 50 * c + 3 * y + 2 * x) % 256


def planes(i, h, w):
    return np.array([[[pixel(i, c, y, x) for x in range(w)] for y in range(h)] for c in range(3)], np.uint8)


def imageset():
    for i in range(70):
        h, w = (30, 40) if i == 69 else (5, 4)
        data = planes(i, h, w)[::-1].tobytes()
        yield "%08d_class%d/picture%d.jpg" % (i, i % 3, i), shape(3, h, w) + chunk(4, data) + number(5, i % 3) + number(7, 0)


def encoded():
    for i in range(6):
        y, x = np.mgrid[0:16, 0:24]
        rgb = np.stack([(20 + 8 * i + 20 * c + 3 * y + 2 * x).astype(np.uint8) for c in range(3)], -1)
        file = io.BytesIO()
        Image.fromarray(rgb).save(file, "PNG" if i % 2 else "JPEG", **({} if i % 2 else {"quality": 98, "subsampling": 0}))
        yield "%08d_%d.jpg" % (i, i), chunk(4, file.getvalue()) + number(5, i % 2) + number(7, 1)


def floats():
    for i in range(3):
        x = [0.5 * i + 0.25 * k for k in range(24)]
        if i == 1:
            data = chunk(6, struct.pack("<24f", *x))
        else:
            data = b"".join(varint(6 << 3 | 5) + struct.pack("<f", v) for v in x)
        yield "%08d" % i, shape(2, 3, 4) + data


if __name__ == "__main__":
    print("python", sys.version.split()[0], "lmdb", lmdb.version(), "numpy", np.__version__)
    write("lmdb-imageset", imageset())
    write("lmdb-encoded", encoded())
    write("lmdb-floats", floats())
