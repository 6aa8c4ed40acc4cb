# SPDX-License-Identifier: BSD-3-Clause
"""`pip install ./python` installs the package alone, with the declarations of the C API that the headers beside it give."""
import pathlib
import runpy

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = pathlib.Path(__file__).parent.resolve()


class Build(build_py):
    def run(self):
        super().run()
        if not getattr(self, "editable_mode", False):
            text = runpy.run_path(str(HERE / "convoy/_bindings.py"))["written"]()
            pathlib.Path(self.build_lib, "convoy/_bindings.py").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    setup(cmdclass={"build_py": Build})
