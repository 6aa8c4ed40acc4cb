#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""make_wheel.py SOURCES TREE STAGE OUT: makes a wheel of the package for Python and the tarball's tree.

SOURCES has pyproject.toml, which says what the wheel is, and python/; TREE is what the tarball unpacks to, and STAGE a
folder that is made anew. The tree lies in the package as it lies in the tarball, but without what compilers need and
without the pages: bin/convoy finds lib/convoy, and so does convoy/_library.py. OUT gets the wheel, whose name is printed.
Its tag is linux_x86_64; auditwheel makes it the one of the C library that the files need (make_wheel.sh).

The same files give the same bytes: their time is SOURCE_DATE_EPOCH (1980 without it).
"""
import base64
import hashlib
import os
import pathlib
import re
import runpy
import shutil
import subprocess
import sys
import time
import tomllib
import zipfile

TAG = "py3-none-linux_x86_64"
PARTS = ("bin/convoy", "lib/convoy/*.so*", "lib/convoy/*/*.so", "lib/convoy/*/libconvoy.so.0", "libexec/convoy/*", "share/convoy/frameworks/**/*",
         "share/convoy/jobscripts/*")
LEFT_OUT = "lib/convoy/*/libconvoy.so"  # for linkers; it is libconvoy.so.0 again
# Where further libraries are looked for, after LD_LIBRARY_PATH: an MPI library from the index, such as mpich, lies in lib of the
# environment, and the libgomp of oneDNN beside it.
RUNPATH = {"bin/convoy": "$ORIGIN/../../../..", "lib/convoy/choose.so": "$ORIGIN/../../../../..", "lib/convoy/libdnnl.so.3": "$ORIGIN"}


def version_of(sources):
    header = (sources / "include/convoy/base.h").read_text(encoding="utf-8")
    return ".".join(re.search(rf"#define CVY_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH"))


def metadata(project, version, licences, readme):
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {version}", f"Summary: {project['description']}",
             f"License: {project['license']['text']}", *(f"License-File: {name}" for name in licences),
             f"Requires-Python: {project['requires-python']}", *(f"Requires-Dist: {name}" for name in project["dependencies"])]
    for extra, names in project.get("optional-dependencies", {}).items():
        lines += [f"Provides-Extra: {extra}", *(f'Requires-Dist: {name}; extra == "{extra}"' for name in names)]
    return "\n".join([*lines, "Description-Content-Type: text/markdown", "", readme])


def stage_package(sources, tree, package):
    """Copies what the wheel has of both, without links, which a wheel cannot hold."""
    shutil.copytree(sources / "python/convoy", package, ignore=shutil.ignore_patterns("__pycache__"))
    bindings = runpy.run_path(str(sources / "python/convoy/_bindings.py"))["written"]()
    (package / "_bindings.py").write_text(bindings, encoding="utf-8")
    found = {path for part in PARTS for path in tree.glob(part) if path.is_file()} - set(tree.glob(LEFT_OUT))
    for path in found:
        to = package / path.relative_to(tree)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, to)
    for name, path in RUNPATH.items():
        subprocess.run([os.environ.get("PATCHELF", "patchelf"), "--set-rpath", path, package / name], check=True)


def stage_about(sources, tree, about, project, version):
    """The folder .dist-info without RECORD."""
    licences = {"LICENSE": sources / "LICENSE", **{path.name: path for path in sorted((tree / "share/doc/convoy/licenses").glob("*.txt"))}}
    (about / "licenses").mkdir(parents=True)
    for name, path in licences.items():
        shutil.copyfile(path, about / "licenses" / name)
    texts = {"METADATA": metadata(project, version, licences, (sources / "README.md").read_text(encoding="utf-8")),
             "WHEEL": f"Wheel-Version: 1.0\nGenerator: convoy\nRoot-Is-Purelib: false\nTag: {TAG}\n"}
    for name, text in texts.items():
        (about / name).write_text(text, encoding="utf-8")


def write_wheel(stage, about, wheel):
    stamp = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", 0)), 315532800))[:6]
    record = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
        def add(name, data, executable):
            entry = zipfile.ZipInfo(name, stamp)
            entry.external_attr, entry.compress_type = (0o100755 if executable else 0o100644) << 16, zipfile.ZIP_DEFLATED
            out.writestr(entry, data)
        for path in sorted(path for path in stage.rglob("*") if path.is_file()):
            data, name = path.read_bytes(), path.relative_to(stage).as_posix()
            add(name, data, os.access(path, os.X_OK))
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}\n")
        add(f"{about}/RECORD", "".join([*record, f"{about}/RECORD,,\n"]), False)


def main():
    sources, tree, stage, out = map(pathlib.Path, sys.argv[1:])
    project = tomllib.loads((sources / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = version_of(sources)
    name = f"{project['name']}-{version}"
    shutil.rmtree(stage, ignore_errors=True)
    stage_package(sources, tree, stage / "convoy")
    stage_about(sources, tree, stage / f"{name}.dist-info", project, version)
    scripts = stage / f"{name}.data/scripts"
    scripts.mkdir(parents=True)
    shutil.copy(sources / "python/bin/convoy", scripts)
    out.mkdir(parents=True, exist_ok=True)
    write_wheel(stage, f"{name}.dist-info", out / f"{name}-{TAG}.whl")
    print(out / f"{name}-{TAG}.whl")


main()
