# SPDX-License-Identifier: BSD-3-Clause
"""convoy beside packages that bring libraries of their own; run by guests.sh in an empty folder.

guests.py MODULE...: imports the modules in this order, and then writes and reads files with each of them and with
convoy. Without arguments it looks whose symbols are global.
"""
import ctypes
import importlib
import sys


def of_convoy(np):
    import convoy
    data = {"format": "synthetic", "shape": [4], "classes": 2, "samples": 8}
    if "h5py" in sys.modules:
        data = {"format": "hdf5", "path": "data.h5", "sandbox": False}
    job = {"model": {"layers": [{"fc": {"channels": 2}}]}, "train": {"batch": 4, "epochs": 1}, "plan": {"wisdom": "off"}, "data": {"train": data}}
    assert convoy.train(job, out="run", progress=False).steps == 2


def of_h5py(np):
    import h5py
    with h5py.File("data.h5", "w") as f:
        f.create_dataset("x", data=np.arange(32, dtype="f4").reshape(8, 4), chunks=(2, 4), compression="gzip")
        f["y"] = np.arange(8) % 2
    with h5py.File("data.h5") as f:
        assert f["x"][7, 3] == 31 and f["y"].dtype == np.int64


def of_netCDF4(np):
    import netCDF4
    with netCDF4.Dataset("data.nc", "w") as f:
        f.createDimension("n", 4)
        f.createVariable("v", "f4", ("n",), zlib=True)[:] = [1, 2, 3, 4]
    with netCDF4.Dataset("data.nc") as f:
        assert f["v"][:].sum() == 10


def of_PIL(np):
    from PIL import Image
    for name in ("picture.png", "picture.jpg"):
        Image.new("RGB", (16, 8), (200, 100, 50)).save(name)
        assert abs(int(np.asarray(Image.open(name))[7, 15, 0]) - 200) < 8


def of_torch(np):
    import torch
    layer = torch.nn.Conv2d(3, 4, 3)
    torch.save(layer.state_dict(), "weights.pt")
    layer.load_state_dict(torch.load("weights.pt"))
    assert layer(torch.ones(2, 3, 8, 8)).shape == (2, 4, 6, 6)


def of_mpi4py(np):
    from mpi4py import MPI

    import convoy
    one = np.ones(1)
    MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, one)
    assert one[0] == MPI.COMM_WORLD.size == convoy.world().nranks


def of_onnxruntime(np):
    import onnxruntime

    import convoy
    convoy.Run.open("run").network().export("network.onnx")
    session = onnxruntime.InferenceSession("network.onnx", providers=["CPUExecutionProvider"])
    out, = session.run(None, {session.get_inputs()[0].name: np.ones((1, 4), np.float32)})
    assert out.shape == (1, 2)


def symbols():
    """Symbols of MPI are global, those of other libraries are not."""
    import convoy
    everywhere = ctypes.CDLL(None)
    assert not hasattr(convoy._library.library, "MPI_Init") or hasattr(everywhere, "MPI_Init"), "MPI_Init is not global"
    for name in ("H5open", "jpeg_std_error", "mdb_env_create", "yaml_parser_initialize", "dnnl_engine_create", "cvy_version"):
        assert not hasattr(everywhere, name), f"{name} is global"


if len(sys.argv) == 1:
    symbols()
else:
    for module in sys.argv[1:]:
        importlib.import_module(module)
    import numpy

    for module in sorted(sys.argv[1:], key=["h5py", "netCDF4", "PIL", "torch", "mpi4py", "convoy", "onnxruntime"].index):
        globals()["of_" + module](numpy)
print("ok", *sys.argv[1:])
