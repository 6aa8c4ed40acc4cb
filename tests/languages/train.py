# SPDX-License-Identifier: BSD-3-Clause
"""The training of train.c, in Python. It prints the bits of a loss and of all weights."""
import struct

import numpy as np

import convoy

WIDE, HIGH, CHANNELS, CLASSES, BATCH, STEPS = 6, 5, 2, 3, 12, 5
context = convoy.world(threads=1)
model = convoy.Model("same")
model.input("x", (CHANNELS, HIGH, WIDE))
model.input("label", dtype="i32")
model.add("conv", "conv", source="x", channels=4, kernel=3, pad=1)
model.add("relu")
model.add("fc", "fc", channels=3)
model.add("softmax_cross_entropy", "loss", source="fc, label")
program = convoy.Program(context, seed=7, options={"plan.wisdom": "off", "train.precise": "true"})
task = program.training(model, BATCH, optimizer="adam", weight_decay=1e-3)
forward = program.forward(model, BATCH, outputs="fc")
program.plan()
n = task.first_row + np.arange(task.rows)
at = n[:, None] * CHANNELS * HIGH * WIDE + np.arange(CHANNELS * HIGH * WIDE)
for step in range(1, STEPS + 1):
    x = (((37 * at + 11 * step) % 64 - 32) / 64).reshape(task.rows, CHANNELS, HIGH, WIDE)
    task.step(0.01, x=x, label=(n + step) % CLASSES)
loss = task.loss()
forward.step(x=x)
scores = forward.output("fc")
if context.rank == 0:
    print("%016X" % struct.unpack("Q", struct.pack("d", loss))[0])
    for array in (scores[0], program["conv.weight"], program["fc.weight"]):
        for bits in array.astype(np.float32).view(np.uint32).ravel():
            print("%08X" % bits)
