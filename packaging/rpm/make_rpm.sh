#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# make_rpm.sh VERSION OUT: builds the packages of convoy.spec into OUT. scripts/package.sh calls it.
#
# BuildRequires are not looked up (--nodeps), because rpmbuild also works on Debian, whose packages rpm does not know:
# what is missing is reported by CMake.
set -eu
version=$1 out=$2
command -v rpmbuild >/dev/null || { echo "package.sh: there is no rpmbuild (install rpm-build; Debian: rpm)" >&2; exit 1; }
top=$out/rpm
rm -rf "$top"
mkdir -p "$top/SOURCES" "$top/SPECS"
sh tools/make_dist.sh "$PWD" "$top/SOURCES" >/dev/null
sed "s/@version@/$version/" packaging/rpm/convoy.spec >"$top/SPECS/convoy.spec"

# Where the MPI libraries of Debian are, unless the two of Fedora are there.
set --
for variant in openmpi mpich; do
    if [ ! -x "/usr/lib64/$variant/bin/mpicc" ] && command -v "mpicc.$variant" >/dev/null; then
        set -- "$@" --define "mpicc_$variant $(command -v "mpicc.$variant")"
    fi
done
rpmbuild -bb --nodeps --define "_topdir $top" "$@" "$top/SPECS/convoy.spec" >"$out/rpm.log" 2>&1 || {
    tail -n 20 "$out/rpm.log" >&2
    echo "package.sh: rpmbuild failed, see $out/rpm.log" >&2
    exit 1
}
find "$top/RPMS" -name '*.rpm' -exec mv {} "$out" ';'
ls "$out"/*.rpm
