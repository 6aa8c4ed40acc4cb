#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Prints tests/golden/moments_golden.h: means and standard deviations of numbers, by numpy in long double.

    python3 tests/golden/make_moments.py >tests/golden/moments_golden.h
"""
import numpy as np

CASES = [(101325.03, 0.17, 1), (0, 1, 1), (0, 1e-30, 1), (0, 1e30, 1), (2147483000, 5e5, 1), (1e9, 3e-3, 0),
         (-1e13, 9, 0), (1e-30, 1e-38, 0), (1e7, 4, 1)]
u = np.arange(1000) * 7919 % 1009 / 1009.0
print("/* SPDX-License-Identifier: BSD-3-Clause */\n/* made by tests/golden/make_moments.py with numpy %s */\n"
      "/* clang-format off */\nstatic const struct moments_golden {\n    double offset, spread, mean, std;\n"
      "    int is_f32;\n} moments_golden[] = {" % np.__version__)
for offset, spread, is_f32 in CASES:
    x = offset + spread * u
    x = (x.astype("f4") if is_f32 else x).astype(np.longdouble)
    mean = x.mean()
    print("    {%r, %r, %.17g, %.17g, %d}," % (float(offset), float(spread), mean, np.sqrt(((x - mean) ** 2).mean()), is_f32))
print("};\n/* clang-format on */")
