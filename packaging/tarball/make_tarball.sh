#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# make_tarball.sh VERSION OUT: makes OUT/convoy-VERSION-linux-x86_64.tar.xz (sh scripts/package.sh tarball calls it).
#
# The tarball runs where it is unpacked, on any x86-64 Linux with glibc 2.28 or newer, with the MPI library of that
# system: bin/convoy loads it and then the build for it, lib/convoy/openmpi or lib/convoy/mpich (one rank needs none). Other libraries are
# inside: linked in, or in lib/convoy. What is committed is packaged.
#
# It is built with this system's gcc (10 or newer, for the bf16 kernels) against an older C library: that of Ubuntu
# 18.04, glibc 2.27. CONVOY_SYSROOT names a folder with such a system; without it, debootstrap makes one, as root:
#
#   debootstrap --variant=minbase --include=libc6-dev,libgomp1 bionic FOLDER
#
# At the end every file is checked: which symbols of which glibc it needs, that it does not name an MPI library, and
# that it looks for libraries only relative to itself. What OUT has of this commit is not made again.
set -eu
[ $# -eq 2 ] || { echo "usage: sh packaging/tarball/make_tarball.sh VERSION OUT" >&2; exit 2; }
version=$1
mkdir -p "$2/tarball"
out=$(cd "$2" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
work=$out/tarball
name=convoy-$version-linux-x86_64
stage=$work/$name
cc=$(command -v "${CC:-gcc}")
jobs=$(getconf _NPROCESSORS_ONLN)

fail() {
    echo "make_tarball.sh: $*" >&2
    exit 1
}
for command in cmake ninja git objdump nm strip xz readelf python3 nasm protoc-c dpkg-source apt-get mpicc.openmpi mpicc.mpich; do
    command -v "$command" >/dev/null || fail "there is no $command: apt-get install cmake ninja-build git binutils xz-utils python3-venv nasm protobuf-c-compiler dpkg-dev libopenmpi-dev libmpich-dev"
done
commit=$(git -C "$top" rev-parse HEAD)
[ "$(cat "$work/commit" 2>/dev/null)" != "$commit" ] || { ls -l "$out/$name.tar.xz"; exit; }
[ "$(uname -m)" = x86_64 ] || fail "it is made on x86_64, and this is $(uname -m)"

# ---- the old system ----
sysroot=${CONVOY_SYSROOT:-$work/sysroot}
if [ ! -e "$sysroot/usr/include/stdio.h" ]; then
    command -v debootstrap >/dev/null && [ "$(id -u)" -eq 0 ] ||
        fail "$sysroot is not a system with headers, and debootstrap, run as root, could make one: see the head of this file"
    check=
    [ -e /usr/share/keyrings/ubuntu-archive-keyring.gpg ] || check=--no-check-gpg
    debootstrap $check --variant=minbase --include=libc6-dev,libgomp1 bionic "$sysroot" >"$work/sysroot.log" 2>&1 ||
        fail "debootstrap failed, see $work/sysroot.log"
fi
libs=$work/libs
sh "$here/make_libraries.sh" "$sysroot" "$libs" >"$work/libs.log" 2>&1 || fail "a library was not built, see $work/libs.log"

# ---- sources, as committed ----
rm -rf "$work/src" "$stage" "$work/commit"
mkdir -p "$work/src" "$stage"
git -C "$top" archive "$commit" | tar -x -C "$work/src"
date=$(git -C "$top" log -1 --format=%ct "$commit")

# Debian's gcc looks into its own folders for the start of a program and for libraries, and only then into the sysroot.
multiarch=/usr/lib/x86_64-linux-gnu
old="--sysroot=$sysroot -B$sysroot$multiarch -L$work/links -L$sysroot$multiarch -L$sysroot/lib/x86_64-linux-gnu"
# Links to absolute paths lead out of the sysroot.
mkdir -p "$work/links"
for link in "$sysroot$multiarch"/*.so; do
    case $(readlink "$link") in /*) ln -sfn "$sysroot$(readlink "$link")" "$work/links/${link##*/}" ;; esac
done

# stub VARIANT SONAME LIBRARY: an empty library with the symbols of that MPI library. It stands for MPI when CMake tries
# whether programs can be linked, because this system's own needs a newer C library. Nothing that is packaged keeps it.
stub() {
    folder=$work/mpi-$1
    mkdir -p "$folder"
    nm -D --defined-only "$3" | sed -n 's/@.*//; s/^[0-9a-f]* [TWtVDBR] \(P*MPI_.*\|P*MPIX_.*\|ompi_.*\|MPIR_.*\)$/\1/p' | sort -u |
        awk '{ printf ".globl %s\n.type %s, @function\n%s: ret\n", $1, $1, $1 }' >"$folder/stub.s"
    "$cc" $old -shared -nostdlib -Wl,-soname,"$2" -o "$folder/libmpi.so" "$folder/stub.s"
    ln -sfn "$3" "$folder/$2" # the command of the build folder runs here: it prints the manual pages
}

# ---- a build for each family of MPI libraries ----
build() {
    variant=$1 headers=$2
    log=$work/build-$variant.log
    flags="-ffile-prefix-map=$work/src=convoy-$version -ffile-prefix-map=$work=build"
    rm -rf "$work/build-$variant"
    cmake -S "$work/src" -B "$work/build-$variant" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCONVOY_MPI_VARIANT="$variant" \
        -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="$old $flags" -DCMAKE_FIND_ROOT_PATH="$libs" \
        -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=ONLY \
        -DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER -DCMAKE_C_STANDARD_LIBRARIES="$libs/lib/libz.a -ldl -lpthread" \
        -DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON -DMPI_SKIP_COMPILER_WRAPPER=ON -DMPI_ASSUME_NO_BUILTIN_MPI=ON -DMPI_C_HEADER_DIR="$headers" -DMPI_C_LIB_NAMES=mpi \
        -DMPI_mpi_LIBRARY="$work/mpi-$variant/libmpi.so" -DOpenMP_C_FLAGS=-fopenmp -DOpenMP_C_LIB_NAMES=gomp \
        -DOpenMP_gomp_LIBRARY="$libs/lib/libgomp.so" -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_INSTALL_RPATH="\$ORIGIN/.." \
        -DCMAKE_EXE_LINKER_FLAGS="-Wl,-rpath-link,$libs/lib -Wl,--allow-shlib-undefined" \
        -DCMAKE_INSTALL_RPATH_USE_LINK_PATH=OFF -DCONVOY_WITH_SIMGRID=OFF -DCONVOY_TESTS=OFF >"$log" 2>&1 &&
        cmake --build "$work/build-$variant" -j "$jobs" >>"$log" 2>&1 &&
        cmake --install "$work/build-$variant" --strip --prefix "$stage" >>"$log" 2>&1 || fail "the build for $variant failed, see $log"
    ! grep -qE "^--   [A-Z0-9]+ +not found" "$log" || { grep -E "^--   .*not found" "$log" >&2; fail "a library was not found for $variant, see $log"; }
}
stub openmpi libmpi.so.40 "$multiarch/openmpi/lib/libmpi.so"
stub mpich libmpi.so.12 "$multiarch/libmpich.so"
build openmpi "$multiarch/openmpi/include"
build mpich /usr/include/x86_64-linux-gnu/mpich

# ---- what is inside ----
for file in libdnnl.so.3 libgomp.so.1; do
    cp "$libs/lib/$file" "$stage/lib/convoy/$file"
    strip --strip-unneeded "$stage/lib/convoy/$file"
done
mkdir -p "$stage/share/doc/convoy/licenses"
cp "$libs/licences/"* "$stage/share/doc/convoy/licenses/"
cp "$here/README" "$stage/README"
sed -i 's|^prefix=.*|prefix=${pcfiledir}/../..|' "$stage/lib/pkgconfig/"*.pc
sed -i "s|$stage|/opt/$name|" "$stage/share/modulefiles/convoy/"* # if a copy of the module file lies elsewhere

# ---- checks ----
bad=0
for file in $(find "$stage" -type f); do
    readelf -h "$file" >/dev/null 2>&1 || continue
    newest=$(objdump -T "$file" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1)
    case $(printf '%s\n' GLIBC_2.28 "$newest" | sort -V | tail -n 1) in
    GLIBC_2.28) ;;
    *) echo "${file#"$stage"/} needs $newest" >&2; bad=1 ;;
    esac
    objdump -T "$file" | grep -E '\*UND\*.*GOMP_[5-9]' >&2 && bad=1
    readelf -d "$file" | grep -E 'NEEDED.*libmpi' >&2 && bad=1
    readelf -d "$file" | grep -E '(RPATH|RUNPATH)' | grep -vE '\[\$ORIGIN[^:]*(:\$ORIGIN[^:]*)*\]' >&2 && bad=1
done
! grep -rIl "$work" "$stage" >&2 || bad=1
[ $bad -eq 0 ] || fail "$stage has faults (above)"

# ---- the archive: the same commit gives the same bytes, if the compiler is the same ----
tar -C "$work" --sort=name --mtime="@$date" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -cf "$work/$name.tar" "$name"
xz -9 -T1 -c "$work/$name.tar" >"$out/$name.tar.xz"
rm "$work/$name.tar"
echo "$commit" >"$work/commit" # the wheel is made of this tree
(cd "$out" && sha256sum "$name.tar.xz" | tee "$name.tar.xz.sha256")
ls -l "$out/$name.tar.xz"
[ ! -f "$libs/notes" ] || sed 's/^/make_tarball.sh: note: /' "$libs/notes" >&2
