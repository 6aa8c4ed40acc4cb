# SPDX-License-Identifier: BSD-3-Clause
"""Writes HDF5 files with random options of h5py, each with a data set x: hdf5_options.py FOLDER COUNT [FIRST_SEED].
hdf5_options.sh compares what convoy and libhdf5 read of them."""
import itertools
import os
import random
import sys

import h5py
import numpy as np

TYPES = ["u1", "i1", "<u2", ">i2", "<i4", ">u4", "<i8", ">i8", "<f2", "<f4", ">f4", "<f8", ">f8", "?", "S3", "c8",
         np.dtype([("a", "f4"), ("b", "i2")])]
LIBVER = ["earliest", "latest", ("earliest", "v108"), ("v110", "v110"), ("earliest", "v110"), ("v108", "latest")]


def filters(r, chunks, dtype):
    out = {}
    if dtype.kind in "iu" and r.random() < 0.1:
        out["scaleoffset"] = True
    out["shuffle"] = r.random() < 0.4
    # szip behind scaleoffset gives other numbers at each read, also by libhdf5 alone
    out["compression"] = r.choice([None, "gzip", "gzip", "lzf"] + ["szip"] * ("scaleoffset" not in out))
    if out["compression"] == "gzip":
        out["compression_opts"] = r.randrange(10)
    out["fletcher32"] = r.random() < 0.3
    return {k: v for k, v in out.items() if v}


def options(r, shape, dtype):
    out = {}
    if r.random() < 0.8:
        grows = r.choice([0, 0, 1, 2])
        out["maxshape"] = tuple(None if i < grows else n for i, n in enumerate(shape))
        out["chunks"] = tuple(r.choice([n, r.randint(1, n + (3 if i < grows else 0))]) for i, n in enumerate(shape))
        if r.random() < 0.7:
            out.update(filters(r, out["chunks"], dtype))
    if dtype.kind in "iuf" and r.random() < 0.4:
        out["fillvalue"] = r.choice([0, 1, 7])
    if r.random() < 0.3:
        out["track_order"] = True
    return out


def values(shape, dtype):
    flat = np.arange(int(np.prod(shape)))
    if dtype.kind in "SVc":
        return np.zeros(shape, dtype)
    return ((flat * 7 + flat // 13) % 101 % (2 if dtype.kind == "b" else 101)).reshape(shape).astype(dtype)


def edge_option(f, shape, dtype, o):
    """Chunks at the edge are not filtered, for which h5py has only its low level."""
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    made.set_chunk(o["chunks"])
    made.set_deflate(4)
    made.set_chunk_opts(2) if hasattr(made, "set_chunk_opts") else None
    space = h5py.h5s.create_simple(shape, tuple(h5py.h5s.UNLIMITED if n is None else n for n in o["maxshape"]))
    return h5py.Dataset(h5py.h5d.create(f.id, b"x", h5py.h5t.py_create(dtype, logical=True), space, made))


def write(path, seed):
    r = random.Random(seed)
    shape = tuple([r.randint(1, 40)] + [r.randint(1, 7) for _ in range(r.randrange(5))])
    dtype = np.dtype(r.choice(TYPES))
    o = options(r, shape, dtype)
    user = {"userblock_size": 512} if r.random() < 0.1 else {}
    with h5py.File(path, "w", libver=r.choice(LIBVER), **user) as f:
        if "chunks" in o and dtype.kind in "iuf" and r.random() < 0.1:
            x = edge_option(f, shape, dtype, o)
        else:
            x = f.create_dataset("x", shape, dtype, **o)
        how = r.random()
        if how < 0.6:
            x[...] = values(shape, dtype)
        elif how < 0.8:
            first = r.randrange(shape[0])
            x[first:] = values(shape, dtype)[first:]
        if "chunks" in o and o.get("maxshape") and o["maxshape"][0] is None and r.random() < 0.3:
            x.resize(shape[0] + r.randint(1, 9), axis=0)
        if o.get("compression") == "gzip" and not o.get("scaleoffset") and dtype.kind in "iu" and r.random() < 0.3:
            raw = np.ones(o["chunks"], dtype).tobytes()
            x.id.write_direct_chunk((0,) * len(shape), raw, filter_mask=0xffff)


def main(folder, count, first=0):
    made = 0
    for seed in itertools.count(int(first)):
        path = os.path.join(folder, f"{seed:05d}.h5")
        try:
            write(path, seed)
            made += 1
        except (ValueError, TypeError, RuntimeError, OSError):  # options that do not go together
            if os.path.exists(path):
                os.remove(path)
        if made == int(count):
            return


main(*sys.argv[1:])
