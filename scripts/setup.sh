#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# setup.sh [--all]: makes sure that the Debian packages are installed which convoy is built from; --all adds those of
# the full test matrix.
#
# Missing ones are installed, as root or through sudo. Without either, their list is printed and the exit code is 1.
# Systems that are not based on Debian are not changed: there the build itself reports what it does not find.
# CONVOY_SETUP=off does the same, for your own libraries.
set -u
packages='gcc libc6-dev make cmake ninja-build pkg-config openmpi-bin libopenmpi-dev libyaml-dev
          libdnnl-dev libjpeg62-turbo-dev libspng-dev liblmdb-dev libhdf5-dev libcfitsio-dev libxxhash-dev libdeflate-dev
          libsimgrid-dev libprotobuf-c-dev protobuf-c-compiler'
[ "${1-}" = --all ] && packages="$packages g++ mpich libmpich-dev clang clang-format libclang-rt-dev libomp-dev python3-venv ccache"
welcome=               # without these, a test is skipped or a package is not made
[ "${1-}" = --all ] && welcome='slurm-wlm munge gridengine-master gridengine-exec gridengine-client libonnx-testdata gfortran python3-numpy gcc-aarch64-linux-gnu qemu-user debootstrap libopenblas-dev ocl-icd-libopencl1 pocl-opencl-icd opencl-c-headers binutils xz-utils nasm dpkg-dev debhelper'

[ "${CONVOY_SETUP-}" = off ] && exit 0
if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo "setup: no apt-get here; going on with what is installed (docs/guide/install.md lists what is needed)"
    exit 0
fi

# lacking PACKAGE...: prints those that are not installed.
lacking() {
    for package in "$@"; do
        dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || printf ' %s' "$package"
    done
}
# shellcheck disable=SC2086
missing=$(lacking $packages) wanted=$(lacking $welcome)
[ -z "$missing$wanted" ] && exit 0

if [ "$(id -u)" -eq 0 ]; then
    as_root=
elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || { [ -t 0 ] && sudo true; }; }; then
    as_root=sudo
else
    [ -n "$missing" ] || exit 0
    echo "setup: these packages are missing, and installing them needs root or sudo. Please have them installed, then try again:" >&2
    echo "    apt-get install$missing" >&2
    echo "Or build them where you like, name the folder in CMAKE_PREFIX_PATH and set CONVOY_SETUP=off (docs/guide/install.md)." >&2
    exit 1
fi

apt() {
    for pause in 5 20 0; do
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 "$@" && return 0
        sleep "$pause"
    done
    return 1
}
echo "setup: installing$missing$wanted"
if [ -n "$wanted" ] && [ -z "$missing" ]; then
    apt update >/dev/null 2>&1
fi
if [ -n "$missing" ] && ! { apt update && apt install -y --no-install-recommends $missing; } >"${TMPDIR:-/tmp}/convoy-setup.$$.log" 2>&1; then
    tail -n 20 "${TMPDIR:-/tmp}/convoy-setup.$$.log" >&2
    echo "setup: apt-get failed, its output is above and in ${TMPDIR:-/tmp}/convoy-setup.$$.log" >&2
    exit 1
fi
rm -f "${TMPDIR:-/tmp}/convoy-setup.$$.log"
if [ -n "$wanted" ] && ! apt install -y --no-install-recommends $wanted >/dev/null 2>&1; then
    echo "setup:$wanted cannot be installed; the test that needs them is skipped"
fi
exit 0
