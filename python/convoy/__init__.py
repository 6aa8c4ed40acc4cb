# SPDX-License-Identifier: BSD-3-Clause
"""convoy: training of neural networks on the ranks of an MPI program.

    run = convoy.train("job.yaml", out="runs/demo")      # as `convoy train`
    run.test()["metrics"]                                # as `convoy test`
    network = run.network()                              # a function of numpy arrays; also convoy.Network("runs/demo")
    scores = network(pictures)

    ranks = convoy.world()                               # all ranks that mpiexec started
    program = convoy.Program(ranks)                      # a loop of one's own

    convoy.report("runs/demo")                           # the run's page; also convoy.doctor, selftest, tune, study, sweep

convoy.torch and convoy.keras distribute a program of PyTorch or Keras over the ranks. Networks and programs need numpy.
"""
from . import _library
from ._command import command, doctor, report, selftest, study, sweep, tune
from ._context import Context, alone, devices, world
from ._library import Error
from ._run import Run, metrics, train

__version__ = _library.library.cvy_version().decode()
__all__ = ["Context", "Error", "Model", "Network", "Program", "Reservoir", "Run", "Stream", "Task", "alone", "command", "devices", "doctor", "metrics", "report", "selftest", "study", "sweep", "train", "tune", "world", "__version__"]

_NEED_NUMPY = {"Network": "_network", "Model": "_program", "Program": "_program", "Reservoir": "_stream", "Stream": "_stream", "Task": "_program"}


def __getattr__(name):
    if name not in _NEED_NUMPY:
        raise AttributeError(f"module convoy has no attribute {name}")
    import importlib
    try:
        return getattr(importlib.import_module("." + _NEED_NUMPY[name], __name__), name)
    except ModuleNotFoundError as fault:
        raise ImportError(f"convoy.{name} needs {fault.name}, which is not installed") from fault


def __dir__():
    return sorted({*globals(), *__all__})
