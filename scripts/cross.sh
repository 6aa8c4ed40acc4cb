#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# cross.sh [--options] [FOLDER]: builds convoy for aarch64 with a cross compiler, and runs tests that compute in the
# emulator of qemu.
#
# It needs Debian's gcc-aarch64-linux-gnu and qemu-user. The libraries of aarch64 come from a Debian system in FOLDER
# (default: one in the user's cache). If there is none, debootstrap makes it, as root; this machine's own packages are
# not touched. A folder that holds something else is refused. The last line is ctest's, for one rank without MPI's launcher, since an emulated mpiexec does not start.
# --options builds nothing and prints the options of cmake that name the compiler and this system.
set -eu
here=$PWD
cd "$(dirname "$0")/.."
only_options=
[ "${1-}" != --options ] || { only_options=1; shift; }
root=${1:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/convoy/aarch64-root}
case $root in /*) ;; *) root=$here/$root ;; esac
jobs=$(getconf _NPROCESSORS_ONLN)
for command in aarch64-linux-gnu-gcc qemu-aarch64 cmake ninja; do
    command -v "$command" >/dev/null || { echo "cross.sh: there is no $command: apt-get install gcc-aarch64-linux-gnu qemu-user cmake ninja-build" >&2; exit 1; }
done

make_root() {
    [ "$(id -u)" -eq 0 ] || { echo "cross.sh: $root is not a system with the libraries, and making one needs root" >&2; exit 1; }
    command -v debootstrap >/dev/null || { echo "cross.sh: there is no debootstrap, which makes a system with the libraries: apt-get install debootstrap" >&2; exit 1; }
    # What an interrupted run has left is removed, and nothing else.
    [ ! -e "$root" ] || [ -e "$root.unfinished" ] || { echo "cross.sh: $root is there already, and is no system that this script has made" >&2; exit 1; }
    mkdir -p "$(dirname "$root")"
    touch "$root.unfinished"
    rm -rf "$root"
    { debootstrap --variant=minbase bookworm "$root" &&
        chroot "$root" sh -c 'dpkg --add-architecture arm64 && apt-get -q update &&
            DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install libc6-dev:arm64 libopenmpi-dev:arm64 libyaml-dev:arm64'; } >&2 ||
        { echo "cross.sh: debootstrap could not make a system with the libraries in $root" >&2; exit 1; }
    rm "$root.unfinished"
}
[ -e "$root/usr/lib/aarch64-linux-gnu/openmpi/lib/libmpi.so" ] || make_root
options="-DCMAKE_TOOLCHAIN_FILE=$PWD/cmake/toolchain-aarch64-linux.cmake -DCMAKE_SYSROOT=$root"
if [ -n "$only_options" ]; then
    echo "$options"
    exit
fi
# shellcheck disable=SC2086
cmake --preset release -B build/aarch64 $options -DCONVOY_WERROR=ON
tests=$(ls tests/op tests/kernel tests/program tests/format tests/data | sed -n 's/^\(test_.*\)\.c$/\1/p')
# shellcheck disable=SC2086
cmake --build build/aarch64 -j "$jobs" --target $tests
ctest --test-dir build/aarch64 -j "$jobs" -R '^test_(op|kernel|program|format|data)' -E '_n[0-9]+$' --output-on-failure
