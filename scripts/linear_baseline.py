#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Linear regression of targets from a few statistics of maps or volumes: what a network has to beat.

    convoy convert '{format: cosmology, dimensions: 3, size: 32, samples: 4096}' train --format hdf5
    convoy convert '{format: cosmology, dimensions: 3, size: 32, samples: 1024, first: 200000}' test --format hdf5
    python3 scripts/linear_baseline.py train test

Prints the root of the mean squared error on the test set, with its standard error, of three linear models: none
(the mean of the training targets), moments (mean, standard deviation and skewness of the logarithm of a sample), and
spectrum (the moments, and the logarithm of the power at each wave number). Needs numpy and h5py.
"""
import pathlib
import sys

import h5py
import numpy as np


def shells(shape):
    """The rounded length of each wave vector of a field, in waves a side."""
    along = [np.fft.fftfreq(n, 1 / n) for n in shape]
    return np.rint(np.sqrt(sum(k ** 2 for k in np.meshgrid(*along, indexing="ij")))).astype(int)


def features(folder):
    """Statistics of each sample: [moments], [moments and spectrum], and the targets."""
    moments, powers, targets = [], [], []
    for path in sorted(pathlib.Path(folder).glob("*.h5")):
        file = h5py.File(path)
        targets.extend(file["y"][:])
        shell = shells(file["x"].shape[2:])
        top = min(file["x"].shape[2:]) // 2
        for x in file["x"]:
            g = np.log(x[0].astype(np.float64))
            d = g - g.mean()
            std = d.std()
            moments.append([g.mean(), std, (d ** 3).mean() / std ** 3])
            power = np.bincount(shell.ravel(), (np.abs(np.fft.fftn(d)) ** 2).ravel())
            powers.append(np.log(power[1:top + 1]))
    return np.array(moments), np.hstack([moments, powers]), np.array(targets)


def with_one(x):
    return np.hstack([np.ones((len(x), 1)), x])


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    train, test = features(sys.argv[1]), features(sys.argv[2])
    none = [np.zeros((len(t[2]), 0)) for t in (train, test)]
    for name, x, x_test in (("none", none[0], none[1]), ("moments", train[0], test[0]), ("spectrum", train[1], test[1])):
        weights = np.linalg.lstsq(with_one(x), train[2], rcond=None)[0]
        square = (with_one(x_test) @ weights - test[2]) ** 2
        rmse = np.sqrt(square.mean(axis=0))
        error = square.std(axis=0) / np.sqrt(len(square)) / (2 * rmse)
        print(f"{name:10}", "  ".join(f"{r:.4f} +- {e:.4f}" for r, e in zip(rmse, error)))


main()
