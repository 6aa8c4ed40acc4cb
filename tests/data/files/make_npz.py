# SPDX-License-Identifier: BSD-3-Clause
"""Made splits.npz, plain.npz and idx-gz by NumPy (make_npz.py FOLDER)."""
import gzip
import os
import struct
import sys

import numpy as np


def pack(name, data):
    os.makedirs(os.path.dirname(name), exist_ok=True)
    with open(name, "wb") as out, gzip.GzipFile("", "wb", 9, out, mtime=0) as packed:
        packed.write(data)


to = sys.argv[1]
x = np.arange(24, dtype="f4").reshape(4, 2, 3)
np.savez_compressed(f"{to}/splits.npz", x_train=x, y_train=np.array([2, 0, 1, 1]), x_test=-x[:2], y_test=np.array([1, 0]),
                    extra=np.arange(3))
np.savez(f"{to}/plain.npz", images=(x * 10).astype("u1"), label=np.array([0.0, 1, 0, 1]), weight=np.array([1, 2, 3, 4], "f4"))
pack(f"{to}/idx-gz/train-images-idx3-ubyte.gz", bytes([0, 0, 8, 3]) + struct.pack(">III", 3, 4, 5) + bytes(range(60)))
pack(f"{to}/idx-gz/train-labels-idx1-ubyte.gz", bytes([0, 0, 8, 1]) + struct.pack(">I", 3) + bytes([7, 0, 3]))
