# SPDX-License-Identifier: BSD-3-Clause
"""Runs the EasyBuild easyconfigs and the Spack recipe as Python, on stand-ins, and checks what they say.

recipes.py PACKAGING CMAKELISTS
"""

import pathlib
import re
import sys
import types

packaging, cmakelists = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).read_text()
options = set(re.findall(r"^option\((CONVOY_\w+)", cmakelists, re.M))
problems = []

# ---- EasyBuild: an easyconfig is Python that assigns; these are its required parameters ----
for path in sorted((packaging / "easybuild").glob("*.eb")):
    config = {"SYSTEM": {"name": "system", "version": "system"}, "SHLIB_EXT": "so"}
    exec(compile(path.read_text(), str(path), "exec"), config)
    for name in ("easyblock", "name", "version", "homepage", "description", "toolchain", "sources", "moduleclass"):
        if not config.get(name):
            problems.append(f"{path}: {name} is missing")
    chain = config["toolchain"]
    label = "" if chain["name"] == "system" else "-{name}-{version}".format(**chain)
    wanted = "{name}-{version}".format(**config) + label + config.get("versionsuffix", "") + ".eb"
    if path.name != wanted:
        problems.append(f"{path}: EasyBuild looks for the name {wanted}")

# ---- Spack: the names that the recipe uses, which note what they are given ----
variants, needs, conditions = {}, [], []


class CMakePackage:
    run_tests = False
    chosen = {}
    spec = {"mpi": types.SimpleNamespace(mpicc="/mpi/bin/mpicc")}

    def define(self, name, value):
        return f"-D{name}={'ON' if value is True else 'OFF' if value is False else value}"

    def define_from_variant(self, name, variant):
        return self.define(name, self.chosen[variant])


def variant(name, default, description):
    variants[name] = default


def depends_on(spec, type=None, when=None):
    needs.append(spec)
    conditions.append(when)


def same(*args, **kwargs):
    return lambda function: function


recipe = packaging / "spack" / "package.py"
spack = types.ModuleType("spack")
package = types.ModuleType("spack.package")
for name in ("variant", "depends_on", "CMakePackage"):
    setattr(package, name, globals()[name])
package.version = package.license = lambda *args, **kwargs: None
package.run_after = package.on_package_attributes = same
package.Executable = package.join_path = same
sys.modules.update({"spack": spack, "spack.package": package})
for name in ("spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems", "spack_repo.builtin.build_systems.cmake"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["spack_repo.builtin.build_systems.cmake"].CMakePackage = CMakePackage
scope = {}
exec(compile(recipe.read_text(), str(recipe), "exec"), scope)

for when in filter(None, conditions):
    if when.lstrip("+~") not in variants:
        problems.append(f"{recipe}: when={when}: there is no such variant")
for needed in ("mpi", "libyaml", "c"):
    if needed not in needs:
        problems.append(f"{recipe}: it does not depend on {needed}")
for on in (True, False):
    Convoy = scope["Convoy"]
    Convoy.chosen = dict.fromkeys(variants, on)
    args = Convoy().cmake_args()
    set_by = dict(arg[2:].split("=", 1) for arg in args)
    for name in set_by:
        if name.startswith("CONVOY_") and name not in options:
            problems.append(f"{recipe}: CMakeLists.txt has no option {name}")
    for name in options:
        if name.startswith("CONVOY_WITH_") and set_by.get(name) != ("ON" if on else "OFF"):
            problems.append(f"{recipe}: {name} follows no variant")
    if set_by.get("MPI_C_COMPILER") != "/mpi/bin/mpicc":
        problems.append(f"{recipe}: the MPI of Spack is not used")

print("\n".join(problems))
sys.exit(1 if problems else 0)
