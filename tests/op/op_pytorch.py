# SPDX-License-Identifier: BSD-3-Clause
"""Writes op_pytorch_<family>.h: results and gradients of operators on small tensors, computed by PyTorch in f64.

test_op_pytorch.c says how the tensors are filled. It needs PyTorch. Run it by hand when a case is added:

    python3 op_pytorch.py
"""
import math
import textwrap

import torch

# The families of operators, with a file each; all others are functions of each element, or softmax.
FAMILIES = {
    "broadcast": ["multiply", "subtract", "maximum", "add", "divide", "expand"],
    "layer": ["matmul", "global_max_pool", "embedding", "prelu"],
}

# Operator, options, sources (as in the samples of operators), shapes of the variables that the layer adds, grid, and
# the same in PyTorch.
CASES = [
    ("multiply", "", "2x3x2,2x3x2", [], 0, lambda a, b: a * b),
    ("multiply", "", "2x3,2x3,2x3", [], 0, lambda a, b, c: a * b * c),
    ("multiply", "", "2x3x2x2,2x3", [], 0, lambda a, b: a * b[:, :, None, None]),
    ("multiply", "", "2x3,2x3x2x2", [], 0, lambda a, b: a[:, :, None, None] * b),
    ("multiply", "", "2x3x2x2,2x3x1x1", [], 0, lambda a, b: a * b),
    ("subtract", "", "2x3x2,2x3x2", [], 0, lambda a, b: a - b),
    ("maximum", "", "2x3x4,2x3x4", [], 2, torch.maximum),
    ("maximum", "", "2x3x4,2x3x4,2x3x4", [], 2, lambda *all: torch.stack(all).amax(0)),
    ("global_max_pool", "", "2x3x4x5", [], 0, lambda a: a.flatten(2).max(2).values),
    ("global_max_pool", "", "2x3x4x5", [], 1, lambda a: a.flatten(2).max(2).values),
    ("global_max_pool", "", "1x2x2x3x2", [], 1, lambda a: torch.nn.functional.adaptive_max_pool3d(a, 1).flatten(1)),
    ("prelu", "", "2x3x2x2", [(1,)], 2, torch.nn.functional.prelu),
    ("prelu", "per_channel: true", "2x3x2x2", [(3,)], 0, torch.nn.functional.prelu),
    ("prelu", "per_channel: true", "4x3", [(3,)], 2, torch.nn.functional.prelu),
    ("matmul", "", "2x3x4,2x4x2", [], 0, torch.matmul),
    ("matmul", "transpose_a: true", "2x4x3,2x4x2", [], 0, lambda a, b: a.mT @ b),
    ("matmul", "transpose_b: true", "2x3x4,2x2x4", [], 0, lambda a, b: a @ b.mT),
    ("matmul", "transpose_a: true, transpose_b: true", "2x4x3,2x2x4", [], 0, lambda a, b: a.mT @ b.mT),
    ("matmul", "", "2x1x3x2,2x3x2x4", [], 0, torch.matmul),
    ("matmul", "transpose_b: true", "2x3x1x3x2,2x1x2x2x2", [], 0, lambda a, b: a @ b.mT),
    ("add", "", "2x3x1x4,2x5x1", [], 0, lambda a, b: a + b[:, None]),
    ("add", "", "2x1,2x2x3,2x4x1x1", [], 0, lambda a, b, c: a[:, None, None] + b[:, None] + c),
    ("subtract", "", "2x3x1,2x4x1x2", [], 0, lambda a, b: a[:, None] - b),
    ("multiply", "", "2x4,2x2x3x4", [], 0, lambda a, b: a[:, None, None] * b),
    ("multiply", "", "2x1x3,2x2x1", [], 0, lambda a, b: a * b),
    ("divide", "", "2x2x3,2x2x3", [], 0, lambda a, b: a / b),
    ("divide", "", "2x1x3,2x2x1", [], 0, lambda a, b: a / b),
    ("maximum", "", "2x4x1,2x1x3", [], 0, torch.maximum),
    ("expand", "shape: [4, 3, 2]", "2x3x1", [], 0, lambda a: a[:, None].expand(2, 4, 3, 2)),
    ("softmax", "axis: 2", "2x3x4x2", [], 0, lambda a: a.softmax(2)),
    ("softmax", "axis: -1", "2x3x4", [], 0, lambda a: a.softmax(2)),
    ("log_softmax", "axis: 2", "2x3x4x2", [], 0, lambda a: a.log_softmax(2)),
    ("exp", "", "2x3", [], 0, torch.exp),
    ("abs", "", "2x3x4", [], 1, torch.abs),
    ("erf", "", "2x3", [], 0, torch.erf),
    ("softsign", "", "2x3", [], 0, torch.nn.functional.softsign),
    ("sin", "", "2x3", [], 0, torch.sin),
    ("cos", "", "2x3", [], 0, torch.cos),
    ("square", "", "2x3", [], 0, torch.square),
    ("reciprocal", "", "2x3", [], 0, torch.reciprocal),
    ("power", "exponent: 3", "2x3", [], 0, lambda a: a ** 3),
    ("power", "exponent: -2", "2x3", [], 0, lambda a: a ** -2),
    ("sqrt", "", "1x1", [], 0, torch.sqrt),
    ("log", "", "1x1", [], 0, torch.log),
    ("power", "exponent: 0.7", "1x1", [], 0, lambda a: a ** 0.7),
    ("embedding", "rows: 5, channels: 3", "2x4:i32", [(5, 3)], 5, torch.nn.functional.embedding),
    ("embedding", "rows: 7, channels: 2", "3:i64", [(7, 2)], 7, torch.nn.functional.embedding),
]


def integers(text, bound):
    shape = tuple(map(int, text.split(":")[0].split("x")))
    return torch.tensor([(3 + 7 * i * i) % bound for i in range(math.prod(shape))]).reshape(shape)


def tensor(shape, number, grid):
    """Element i of variable `number`; with a grid a multiple of 1 / grid, so that some elements are equal."""
    count = math.prod(shape)
    values = [math.sin(1 + 1.3 * i + 5 * number) for i in range(count)]
    if grid:
        values = [math.floor(v * grid + 0.5) / grid for v in values]
    return torch.tensor(values, dtype=torch.float64).reshape(shape).requires_grad_()


def family_of(op):
    return next((family for family, ops in FAMILIES.items() if op in ops), "function")


def case_text(case):
    """The numbers of a case, and its row in the table."""
    op, options, src, params, grid, function = CASES[case]
    shapes = [tuple(map(int, text.split("x"))) for text in src.split(",") if ":" not in text] + params
    tensors = [tensor(shape, number, grid) for number, shape in enumerate(shapes)]
    result = function(*[integers(text, grid) for text in src.split(",") if ":" in text], *tensors)
    weights = torch.tensor([math.cos(0.7 * i) for i in range(result.numel())], dtype=torch.float64)
    (result.flatten() * weights).sum().backward()
    numbers = [result] + [t.grad for t in tensors]
    text = ", ".join(f"{x:.17g}" for t in numbers for x in t.flatten().tolist())
    return (textwrap.fill(f"static const double pytorch_{case}[] = {{{text}}};", 118, subsequent_indent="    "),
            f'    {{"{op}", "{options}", "{src}", {grid}, CVY_COUNT(pytorch_{case}), pytorch_{case}}},')


def main():
    for family in list(FAMILIES) + ["function"]:
        cases = [case_text(case) for case in range(len(CASES)) if family_of(CASES[case][0]) == family]
        name = f"op_pytorch_{family}.h"
        with open(name, "w") as file:
            print("/* SPDX-License-Identifier: BSD-3-Clause */", file=file)
            print(f"/* {name}: results and gradients of operators from PyTorch. Written by op_pytorch.py. */\n/* clang-format off */", file=file)
            print("\n".join(text for text, row in cases), file=file)
            print(f"static const struct pytorch_case pytorch_{family}[] = {{", file=file)
            print("\n".join(row for text, row in cases) + "\n};", file=file)


main()
