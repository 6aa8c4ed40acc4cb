# SPDX-License-Identifier: BSD-3-Clause
"""The command `convoy` of an installation by `pip install .`, which has it in bin/."""
import os
import pathlib
import sys


def main() -> None:
    command = pathlib.Path(__file__).parent / "bin/convoy"
    os.execv(command, ["convoy", *sys.argv[1:]])
