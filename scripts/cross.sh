#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# cross.sh [FOLDER]: builds convoy for aarch64 with a cross compiler, and runs tests that compute in the emulator of qemu.
#
# It needs Debian's gcc-aarch64-linux-gnu and qemu-user. The libraries of aarch64 come from a Debian system in FOLDER
# (default: build/aarch64-root). If there is none, debootstrap makes it, as root; this machine's own packages are not
# touched. The last line is ctest's, for one rank without MPI's launcher, since an emulated mpiexec does not start.
set -eu
cd "$(dirname "$0")/.."
root=${1:-$PWD/build/aarch64-root}
jobs=$(getconf _NPROCESSORS_ONLN)
for command in aarch64-linux-gnu-gcc qemu-aarch64 cmake ninja; do
    command -v "$command" >/dev/null || { echo "cross.sh: there is no $command: apt-get install gcc-aarch64-linux-gnu qemu-user cmake ninja-build" >&2; exit 1; }
done
if [ ! -e "$root/usr/lib/aarch64-linux-gnu/openmpi/lib/libmpi.so" ]; then
    [ "$(id -u)" -eq 0 ] || { echo "cross.sh: $root is not a system with the libraries, and making one needs root" >&2; exit 1; }
    debootstrap --variant=minbase bookworm "$root"
    chroot "$root" sh -c 'dpkg --add-architecture arm64 && apt-get -q update &&
        DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install libc6-dev:arm64 libopenmpi-dev:arm64 libyaml-dev:arm64'
fi
cmake --preset release -B build/aarch64 -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/toolchain-aarch64-linux.cmake" -DCMAKE_SYSROOT="$root" -DCONVOY_WERROR=ON
tests=$(ls tests/op tests/kernel tests/program tests/format tests/data | sed -n 's/^\(test_.*\)\.c$/\1/p')
# shellcheck disable=SC2086
cmake --build build/aarch64 -j "$jobs" --target $tests
ctest --test-dir build/aarch64 -j "$jobs" -R '^test_(op|kernel|program|format|data)' -E '_n[0-9]+$' --output-on-failure
