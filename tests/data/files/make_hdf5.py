# SPDX-License-Identifier: BSD-3-Clause
"""Makes HDF5 files with h5py. It needs numpy and h5py; the tests need neither, because they read the checked-in file.

    python make_hdf5.py small h5py.h5                  the small file of tests/data/test_data_hdf5.c
    python make_hdf5.py showers FOLDER SAMPLES FILES SEED   the showers of docs/guide/your-data.md, as
                                                       tests/data/bench_data_hdf5.c makes them, but from other
                                                       random numbers
    python make_hdf5.py read FOLDER                    reads the images of FOLDER in order, 64 at a time, and
                                                       prints samples/s
"""
import glob
import os
import sys
import time

import h5py
import numpy as np


def small(path):
    n = 10
    with h5py.File(path, "w") as f:
        images = (np.arange(n * 24).reshape(n, 2, 3, 4) - 100) / 8
        f.create_dataset("images", data=images.astype(np.float16), chunks=(4, 2, 3, 4), compression="gzip", shuffle=True)
        i = np.arange(n)
        f.create_dataset("targets", data=np.stack([i, i / 2, -i], axis=1).astype(">f8"))
        kind = f.create_dataset("kind", data=i % 3)
        kind.attrs["class_names"] = ["electron", "muon", "photon"]
        f.create_dataset("rgb", data=(np.arange(n * 90) % 256).astype(np.uint8).reshape(n, 5, 6, 3), chunks=(3, 5, 6, 2), compression="gzip", fletcher32=True)
        f.create_dataset("met", data=(10 * i).astype(np.float32), maxshape=(None,))
        f.create_dataset("good", data=i % 2 == 0)


def shower(rng, out):
    """Makes a shower in a calorimeter of 16 layers of 64 x 64 cells. Its energy and position are the targets."""
    energy, row, column = rng.uniform(0.2, 1), rng.uniform(-0.7, 0.7), rng.uniform(-0.7, 0.7)
    at = np.round(32 + 28 * np.array([row, column])).astype(int)
    offset = np.arange(-6, 7)
    square = offset[:, None] ** 2 + offset[None, :] ** 2
    for layer in range(16):
        depth = (layer + 0.5) / 5
        share = energy * depth * np.exp(1 - depth)
        cells = share * np.exp(-square / (2 * (1 + 0.12 * layer) ** 2)) + 0.02 * rng.random((13, 13))
        r, c = np.clip(at[0] + offset, 0, 63), np.clip(at[1] + offset, 0, 63)
        out[layer][np.ix_(r, c)] = cells
    return energy, row, column


def showers(folder, samples, files, seed):
    rng = np.random.default_rng(seed)
    os.makedirs(folder, exist_ok=True)
    for k in range(files):
        n = samples // files + (k < samples % files)
        with h5py.File(os.path.join(folder, f"run{k:02d}.h5"), "w") as f:
            images = f.create_dataset("images", (n, 16, 64, 64), np.float16, chunks=(min(64, n), 16, 64, 64), compression="gzip", compression_opts=1)
            targets, weights, quality = np.empty((n, 3), np.float32), np.empty(n, np.float32), np.empty(n, np.float32)
            for first in range(0, n, 64):
                block = np.zeros((min(64, n - first), 16, 64, 64), np.float16)
                for i, image in enumerate(block, first):
                    targets[i] = shower(rng, image)
                    weights[i] = 0.5 + targets[i, 0]
                    quality[i] = rng.random()
                images[first:first + len(block)] = block
            f["targets"], f["weights"], f["quality"] = targets, weights, quality


def read(folder):
    began, n = time.perf_counter(), 0
    for path in sorted(glob.glob(os.path.join(folder, "*.h5"))):
        with h5py.File(path, "r") as f:
            images = f["images"]
            for first in range(0, len(images), 64):
                n += len(images[first:first + 64])
                if time.perf_counter() - began > 4:
                    break
        if time.perf_counter() - began > 4:
            break
    print(f"{n} samples, {n / (time.perf_counter() - began):.0f} samples/s")


if __name__ == "__main__":
    if sys.argv[1:2] == ["small"] and len(sys.argv) == 3:
        small(sys.argv[2])
    elif sys.argv[1:2] == ["showers"] and len(sys.argv) == 6:
        showers(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
    elif sys.argv[1:2] == ["read"] and len(sys.argv) == 3:
        read(sys.argv[2])
    else:
        sys.exit(__doc__)
