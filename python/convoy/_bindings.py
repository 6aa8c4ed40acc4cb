# SPDX-License-Identifier: BSD-3-Clause
"""The C API of convoy for ctypes, as tools/make_bindings.awk writes it from the headers in include/convoy/.

That is what an installed package has in the place of this file, which runs the tool where the sources are.
"""
import pathlib
import subprocess

_SOURCES = pathlib.Path(__file__).resolve().parents[2]


def written() -> str:
    """The text of the module."""
    return subprocess.run(["awk", "-v", "to=python", "-v", f"folder={_SOURCES}/include", "-f", f"{_SOURCES}/tools/make_bindings.awk"],
                          check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout


if not (_SOURCES / "tools/make_bindings.awk").exists():
    raise ImportError(f"{__file__} belongs to the sources of convoy: install the package with pip, or let PYTHONPATH name the folder of the sources")
exec(compile(written(), __file__, "exec"))
