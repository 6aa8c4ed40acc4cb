# SPDX-License-Identifier: BSD-3-Clause
"""`pip install .` builds the library and the command by CMake, and puts them into the package for Python (python/).

CMAKE_ARGS has further arguments of cmake, CMAKE_BUILD_PARALLEL_LEVEL the number of compilers that run at a time.
"""
import os
import pathlib
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

HERE = pathlib.Path(__file__).parent.resolve()
HEADER = (HERE / "include/convoy/base.h").read_text(encoding="utf-8")
VERSION = ".".join(re.search(rf"#define CVY_VERSION_{part} (\d+)", HEADER)[1] for part in ("MAJOR", "MINOR", "PATCH"))


WORK = tempfile.TemporaryDirectory(prefix="convoy-pip-")  # nothing is left in the sources


def say(text):
    """pip keeps what a build prints to itself (unless -v is given), so progress goes to the terminal, if there is one."""
    print(text, flush=True)
    try:
        with open("/dev/tty", "w", encoding="utf-8") as terminal:
            terminal.write(f"\r\x1b[K{text}\r\n")
    except OSError:
        pass


def build(folder):
    """Runs the build, and says at each tenth how far it is."""
    command = ["cmake", "--build", folder, "--target", "convoy"]
    said = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as process:
        for line in process.stdout:
            print(line, end="")
            done = re.match(r"\[ *(\d+)(%|/(\d+))", line)  # make: [ 42%], ninja: [42/823]
            tenth = done and 10 * int(done[1]) // int(done[3] or 100)
            if tenth and tenth > said:
                said = tenth
                say(f"convoy: {tenth * 10} % of the library are built")
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)


class Build(build_py):
    def run(self):
        if getattr(self, "editable_mode", False):
            sys.exit("the library cannot be a part of an editable package: build it with CMake, say `pip install -e ./python`, and set "
                     "CONVOY_LIBRARY to its file.")
        super().run()
        folder = pathlib.Path(WORK.name, "cmake")
        options = ["-DCMAKE_BUILD_TYPE=Release", "-DCONVOY_TESTS=OFF", "-DCONVOY_WITH_SIMGRID=OFF", "-DCMAKE_INSTALL_LIBDIR=lib",
                   "-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON", *shlex.split(os.environ.get("CMAKE_ARGS", ""))]
        jobs = os.environ.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", str(os.cpu_count() or 1))
        say(f"convoy: CMake builds the library and the command, {jobs} files at a time; that takes some minutes")
        try:
            subprocess.check_call(["cmake", "-S", HERE, "-B", folder, *options])
            build(folder)
        except (OSError, subprocess.CalledProcessError) as fault:
            sys.exit(f"convoy was not built: {fault}. docs/guide/install.md says what the build needs.")
        if not (folder / "libconvoy.so.0").exists():
            sys.exit(f"convoy was not built: {folder} has no libconvoy.so.0 after the build. Install the library with CMake, and say "
                     "`pip install ./python`.")
        package = pathlib.Path(self.build_lib, "convoy")
        bindings = runpy.run_path(str(HERE / "python/convoy/_bindings.py"))["written"]()
        (package / "_bindings.py").write_text(bindings, encoding="utf-8")
        for name, into in (("libconvoy.so.0", "lib"), ("convoy-hdf5", "lib"), ("convoy", "bin")):
            if (folder / name).exists():
                (package / into).mkdir(exist_ok=True)
                shutil.copy2(folder / name, package / into / name)
                if shutil.which("strip"):
                    subprocess.call(["strip", "--strip-unneeded", package / into / name])


class Platform(Distribution):
    """The wheel is for this system."""

    def has_ext_modules(self):
        return True


setup(version=VERSION, cmdclass={"build_py": Build}, distclass=Platform,
      options={"build": {"build_base": WORK.name}, "egg_info": {"egg_base": WORK.name}, "bdist_wheel": {"bdist_dir": WORK.name + "/wheel"}})
