#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_abi.py [--write | --strict] [--include FOLDER] [--description FILE] [LIBRARY]: compares the binary interface that
the headers declare, and that the library exports, with its description tests/abi/convoy-VERSION.abi.txt.

A description has a line for each function, structure, field, constant and callback. A change of any of them is a fault,
and so is what is gone. What is new is allowed: functions, types, constants, and fields at the end of a structure that
begins with its size. --strict refuses that, too, so that a release cannot forget it. --write records it.

Offsets and values come from a C program, which $CC (cc) compiles and $EMULATOR runs. Exit code: 0, or 1 after a fault.
"""
import argparse
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from c_headers import FUNCTION_POINTER, ROOT, parse_all, without_names


def version_node(api):
    """The version of the symbols, which tools/list_exports.sh gives them: that of an ABI (docs/reference/policy.md)."""
    known = dict(api.constants)
    major, minor = known["CVY_VERSION_MAJOR"], known["CVY_VERSION_MINOR"]
    return f"{major}.{minor}" if major == 0 else str(major)


def without_const(text):
    """const does not change how a function is called."""
    return re.sub(r"\bconst\s*", "", text)


def type_text(v):
    if v.base == FUNCTION_POINTER:
        return v.prototype
    return f"{'const ' if v.is_const else ''}{v.base} {'*' * v.stars}".strip()


def measured(api, folder):
    """The numbers that the compiler gives: {"sizeof cvy_shape": 56, "offset cvy_shape.dim": 8, "CVY_OK": 0, ..}"""
    lines = ["#include <stdio.h>", "#include <convoy/convoy.h>", "#define SHOW(name, value) printf(\"%s=%lld\\n\", name, (long long)(value))",
             "int main(void)", "{", "SHOW(\"pointer\", sizeof(void *));"]
    for name, _ in api.constants:
        lines.append(f'SHOW("{name}", {name});')
    for name, members in api.structs.items():
        lines.append(f'SHOW("sizeof {name}", sizeof({name}));')
        for v in members:
            lines.append(f'SHOW("offset {name}.{v.name}", offsetof({name}, {v.name}));')
            lines.append(f'SHOW("sizeof {name}.{v.name}", sizeof((({name} *)0)->{v.name}));')
    lines += ["return 0;", "}", ""]
    with tempfile.TemporaryDirectory() as work:
        source, program = pathlib.Path(work, "abi.c"), str(pathlib.Path(work, "abi"))
        source.write_text("\n".join(lines))
        subprocess.run([*shlex.split(os.environ.get("CC") or "cc"), "-std=c11", "-I", str(folder), str(source), "-o", program], check=True)
        output = subprocess.run([*shlex.split(os.environ.get("EMULATOR") or ""), program], check=True, stdout=subprocess.PIPE, text=True).stdout
    return {name: int(value) for name, value in (line.split("=") for line in output.splitlines())}


def describe(api, number):
    """{"function cvy_context_rank": "int (cvy_context *)", ..}: what a description has, in the order of the headers."""
    out = {}
    for name, _ in api.constants:
        if not name.startswith("CVY_VERSION_"):
            out[f"constant {name}"] = str(number[name])
    for d in api.declarations:
        if d.kind in ("callback", "function") and d.name != "convoy_extension":  # which extensions export
            out[f"{d.kind} {d.name}"] = without_names(d.prototype().replace("typedef ", ""))
        elif d.kind == "struct":
            members = api.structs[d.name]
            out[f"struct {d.name}"] = f"{number[f'sizeof {d.name}']} bytes" + (", begins with its size" if members[0].name == "size" else "")
            for v in members:
                at, size = number[f"offset {d.name}.{v.name}"], number[f"sizeof {d.name}.{v.name}"]
                out[f"field {d.name}.{v.name}"] = f"{type_text(v)}, {size} bytes at {at}"
    return out


def read(path):
    return dict(line.split(": ", 1) for line in path.read_text().splitlines() if line and not line.startswith("#"))


def size_of(text):
    return int(text.split()[0])


def compare(was, now):
    """(faults, additions): sentences."""
    faults, new = [], []
    for key, old in was.items():
        grows = "begins with its size" in old and key in now and "begins with its size" in now[key] and size_of(now[key]) > size_of(old)
        counts = key.endswith("_COUNT") and key in now and int(now[key]) > int(old)  # of an enum that has grown
        if key not in now:
            faults.append(f"{key} is gone, was: {old}")
        elif grows or counts:
            new.append(f"{key}: {now[key]}, was {old}")
        elif without_const(now[key]) != without_const(old):
            faults.append(f"{key} is: {now[key]}, was: {old}")
    for key, text in now.items():
        if key in was:
            continue
        owner = key.replace("field ", "struct ").split(".")[0]
        before = was.get(owner, "") if key.startswith("field ") else ""
        if before and "begins with its size" not in before:
            faults.append(f"{key} is new, but {owner} has no size with which a caller says that it knows it")
        elif before and int(text.rsplit(" ", 1)[1]) < size_of(before):
            faults.append(f"{key} is new, but lies within the {before} that older callers know, maybe in their padding: {text}")
        else:
            new.append(f"{key}: {text}")
    return faults, new


def exported(library):
    """{name: version} of what a library defines; the version is "" without one."""
    text = subprocess.run([os.environ.get("NM") or "nm", "-D", "--defined-only", library], check=True, stdout=subprocess.PIPE, text=True).stdout
    symbols = (line.split()[-1].partition("@") for line in text.splitlines() if " A " not in line)
    return {name: version.lstrip("@") for name, _, version in symbols}


def check_library(library, described, node):
    found, faults = exported(library), []
    for key in described:
        kind, name = key.split(" ")
        if kind == "function" and name not in found:
            faults.append(f"function {name} is not exported by {library}")
        elif kind == "function" and found[name] != node:
            faults.append(f"function {name} has the version {found[name] or '(none)'} in {library}, expected {node}")
    return faults


def main():
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--write", action="store_true")
    given.add_argument("--strict", action="store_true")
    given.add_argument("--include", type=pathlib.Path, default=ROOT / "include")
    given.add_argument("--description", type=pathlib.Path)
    given.add_argument("library", nargs="?")
    given = given.parse_args()
    api = parse_all(given.include)
    version = version_node(api)
    path = given.description or ROOT / f"tests/abi/convoy-{version}.abi.txt"
    number = measured(api, given.include)
    if number["pointer"] != 8:
        print("check_abi: pointers do not have 8 bytes here, so offsets are not those of the description")
        sys.exit(77)
    now = describe(api, number)
    if not path.exists() and not given.write:
        sys.exit(f"check_abi: there is no {path.name}: the ABI {version} is new. Record it: python3 tools/check_abi.py --write")
    was = read(path) if path.exists() else {}
    faults, new = compare(was, now)
    if given.library:
        faults += check_library(given.library, now, f"CONVOY_{version}")
    for fault in faults:
        print(f"fault: {fault}")
    if faults:
        sys.exit(f"check_abi: programs that were built with convoy {version} would fail. Undo it, or raise the version in "
                 "include/convoy/base.h (docs/reference/policy.md)")
    if given.write:
        head = [f"# The ABI of libconvoy {version} on 64-bit systems: made by tools/check_abi.py --write. Do not edit it.",
                "# docs/reference/policy.md says what may change."]
        path.write_text("\n".join(head + [f"{key}: {text}" for key, text in now.items()]) + "\n")
        return
    for line in new:
        print(f"new: {line}")
    if new and given.strict:
        sys.exit("check_abi: the version is released, and this is not recorded. Record it: python3 tools/check_abi.py --write")
    print(f"check_abi: {len(was)} lines hold" + (f", {len(new)} are new: a release records them" if new else ""))


main()
