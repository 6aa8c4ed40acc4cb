# SPDX-License-Identifier: BSD-3-Clause
"""The layers of Inception v4 (Szegedy et al. 2017, figures 3 to 9), for run_pytorch.py and run_tensorflow.py; as src/model/model_inception.c writes them.

"1x1-64 | 3x3-96/2v" are two branches that are concatenated; /2: the stride; v: without padding; what follows & reads what the step before has read.
"""
A = "avg3 1x1-96 | 1x1-96 | 1x1-64 3x3-96 | 1x1-64 3x3-96 3x3-96"
B = "avg3 1x1-128 | 1x1-384 | 1x1-192 1x7-224 7x1-256 | 1x1-192 1x7-192 7x1-224 1x7-224 7x1-256"
C = "avg3 1x1-256 | 1x1-256 | 1x1-384 1x3-256 & 3x1-256 | 1x1-384 1x3-448 3x1-512 3x1-256 & 1x3-256"
LINES = ("3x3-32/2v 3x3-32v 3x3-64", "max3/2v | 3x3-96/2v", "1x1-64 3x3-96v | 1x1-64 7x1-64 1x7-64 3x3-96v", "3x3-192/2v | max3/2v", *[A] * 4,
         "3x3-384/2v | 1x1-192 3x3-224 3x3-256/2v | max3/2v", *[B] * 7,
         "1x1-192 3x3-192/2v | 1x1-256 1x7-256 7x1-320 3x3-320/2v | max3/2v", C, C, C)
