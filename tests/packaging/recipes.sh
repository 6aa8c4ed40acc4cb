#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: minimal
# recipes.sh: the EasyBuild easyconfigs, the recipes for Spack and conda and the Apptainer definition agree with the tree: version,
# options of CMakeLists.txt, files that they expect. The Spack recipe runs on stand-ins for Spack's classes.
set -u
cd "$CONVOY_SOURCE" || exit 1
command -v python3 >/dev/null || exit 77
fail() {
    echo "$*"
    exit 1
}
version=$("$CONVOY" --version | sed 's/^convoy //')
for file in packaging/easybuild/*.eb packaging/spack/package.py packaging/conda/recipe.yaml packaging/apptainer/convoy.def; do
    grep -q "$version" "$file" || fail "$file: it has not the version $version"
    for option in $(grep -o 'CONVOY_[A-Z_]*=' "$file" | tr -d = | sort -u); do
        grep -q "^option($option " CMakeLists.txt || fail "$file: CMakeLists.txt has no option $option"
    done
done
for file in packaging/easybuild/*.eb; do
    case $file in */convoy-"$version"*.eb) ;; *) fail "$file: EasyBuild finds it only under the name convoy-$version*.eb" ;; esac
done
PYTHONDONTWRITEBYTECODE=1 python3 tests/packaging/recipes.py packaging CMakeLists.txt || fail "a recipe is wrong"
# what runs in the image is sh, with -e, as in Apptainer
for part in post test runscript environment; do
    awk -v part="%$part" '/^%/ { on = $1 == part; next } on' packaging/apptainer/convoy.def >"${TMPDIR:-/tmp}/convoy-def.$$"
    [ -s "${TMPDIR:-/tmp}/convoy-def.$$" ] && sh -n "${TMPDIR:-/tmp}/convoy-def.$$" || fail "convoy.def: %$part is empty or no shell script"
    rm -f "${TMPDIR:-/tmp}/convoy-def.$$"
done
