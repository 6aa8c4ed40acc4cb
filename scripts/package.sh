#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# package.sh deb|tarball|wheel|rpm|source: makes a package of this tree in build/package.
#
#   deb       convoy_<version>_<arch>.deb and convoy-dev_<version>_<arch>.deb for this Debian or Ubuntu, with builds for
#             Open MPI and for MPICH
#   tarball   convoy-<version>-linux-<arch>.tar.xz, which runs where it is unpacked, on any Linux with glibc 2.28 or
#             newer, with the MPI library that is there
#   wheel     libconvoy-<version>-py3-none-manylinux_2_28_<arch>.whl, the tree of the tarball as a package for Python
#   rpm       convoy-<version>-1.<arch>.rpm
#   source    convoy-<version>.tar.xz, the sources
#
# What is committed is packaged. packaging/README.md says more about each, and about EasyBuild, Spack and Apptainer.
set -eu
cd "$(dirname "$0")/.."
version=$(sed -n 's/^#define CVY_VERSION_[MP][A-Z]* \([0-9]*\)$/\1/p' include/convoy/base.h | paste -sd.)
out=$PWD/build/package
mkdir -p "$out"

need() {
    for command in "$@"; do
        command -v "$command" >/dev/null || { echo "package.sh: there is no $command ($hint)" >&2; exit 1; }
    done
}

# Unpacks what is committed into a folder of its own.
unpack() {
    rm -rf "$1"
    mkdir -p "$1"
    git archive HEAD | tar -x -C "$1"
}

case ${1-} in
deb)
    hint="apt-get install debhelper mpich libmpich-dev"
    need dpkg-buildpackage dh mpicc.openmpi mpicc.mpich
    unpack "$out/deb/convoy-$version"
    cp -r packaging/debian "$out/deb/convoy-$version/debian"
    (cd "$out/deb/convoy-$version" && dpkg-buildpackage -us -uc -b -d >"$out/deb.log" 2>&1) || {
        tail -n 30 "$out/deb.log" >&2
        echo "package.sh: dpkg-buildpackage failed, see $out/deb.log" >&2
        exit 1
    }
    mv "$out/deb/"*.deb "$out"
    ls "$out/"*.deb
    ;;
source) exec sh tools/make_dist.sh "$PWD" "$out" ;;
tarball | wheel | rpm) exec sh "packaging/$1/make_$1.sh" "$version" "$out" ;;
*)
    echo "usage: sh scripts/package.sh deb|tarball|wheel|rpm|source" >&2
    exit 2
    ;;
esac
