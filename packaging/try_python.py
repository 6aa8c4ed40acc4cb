#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""try_python.py import | train RUN OUT: what try_in_root.sh tries of an installed package for Python.

import: `import convoy` in processes of their own; the fastest of seven must take less than 0.3 s of a core. train: on all ranks,
the job of the folder RUN for some steps, and its scores.
"""
import subprocess
import sys

IMPORT = "import time as t; wall, core = t.perf_counter(), t.process_time(); import convoy; print(t.process_time() - core, t.perf_counter() - wall)"

if sys.argv[1] == "import":
    core, wall = min([float(word) for word in subprocess.check_output([sys.executable, "-c", IMPORT]).split()] for _ in range(7))
    print(f"import convoy: {core:.3f} s of a core, {wall:.3f} s in all")
    sys.exit(core > 0.3)

import convoy

sets = {"data.train.events": 1280, "data.test.events": 64, "train.epochs": 1}
run = convoy.train(sys.argv[2] + "/job.resolved.yaml", out=sys.argv[3], sets=sets, progress=False)
scores = run.test()
if scores:
    print(f"{convoy.world().nranks} ranks in Python, accuracy {scores['metrics']['accuracy']:.3f}")
sys.exit(convoy.world().nranks != 2)
