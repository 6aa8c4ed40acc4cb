#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# make_libraries.sh SYSROOT PREFIX: builds the libraries that are linked into the libconvoy of the tarball, as static
# libraries against the C library in SYSROOT, and puts oneDNN and the runtime of OpenMP into PREFIX/lib.
#
# The sources are those of Debian's source packages (apt-get source, which needs no root), so that their security fixes
# are in. oneDNN is the build that its authors publish on PyPI. PREFIX/licences has the licence of each of them. What is
# complete in PREFIX is not built again.
set -eu
sysroot=$(cd "$1" && pwd)
mkdir -p "$2/include" "$2/lib" "$2/licences" "$2/src"
prefix=$(cd "$2" && pwd)
[ ! -f "$prefix/done" ] || exit 0
jobs=$(getconf _NPROCESSORS_ONLN)
flags="--sysroot=$sysroot -O2 -fPIC -fvisibility=hidden -DNDEBUG -ffile-prefix-map=$prefix/src=."
cc=$(command -v "${CC:-gcc}")
launcher=$(command -v ccache || true)
cd "$prefix/src"

# fetch PACKAGE: unpacks the newest version of Debian's source package into a folder of that name. If the mirror lacks
# Debian's changes, it is the authors' archive, and PREFIX/notes says so.
fetch() {
    [ -d "$1" ] && return
    if apt-get -q -c "$prefix/apt.conf" source --download-only "$1" >&2; then
        dpkg-source --no-check -x "$1"_*.dsc "$1" >&2
    else
        mkdir "$1.new"
        tar -xf "$1"_*.orig.tar.* -C "$1.new" --strip-components=1
        mv "$1.new" "$1"
        echo "$1 is without Debian's changes, which the mirror does not have" >>"$prefix/notes"
    fi
}

# archive NAME SOURCE...: compiles the files and makes lib<NAME>.a.
archive() {
    name=$1
    shift
    [ ! -f "$prefix/lib/lib$name.a" ] || return 0
    rm -rf "$prefix/obj"
    mkdir "$prefix/obj"
    for file in "$@"; do
        # shellcheck disable=SC2086
        $launcher $cc $flags $defines -c "$file" -o "$prefix/obj/$(echo "$file" | tr / _ | sed 's/c$/o/')"
    done
    ar rcD "$prefix/lib/lib$name.a" "$prefix"/obj/*.o
    rm -rf "$prefix/obj"
}

# with_cmake FOLDER argument...: builds and installs with CMake, in a folder of its own: tests of HDF5's write there.
with_cmake() {
    build=$prefix/src/$1/build-convoy
    mkdir -p "$build"
    shift
    (cd "$build" && cmake .. -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER="$cc" ${launcher:+"-DCMAKE_C_COMPILER_LAUNCHER=$launcher"} -DCMAKE_SYSROOT="$sysroot" \
        -DCMAKE_C_FLAGS="$flags" -DCMAKE_C_FLAGS_RELEASE= -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR="$prefix/lib" \
        -DCMAKE_FIND_ROOT_PATH="$prefix" -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY \
        -DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER -DBUILD_SHARED_LIBS=OFF "$@")
    cmake --build "$build" -j "$jobs"
    cmake --install "$build"
}

licence() {
    cp "$2" "$prefix/licences/$1.txt"
}

# The lists of source packages of the sources that this system uses, in a folder of our own.
mkdir -p "$prefix/apt/lists/partial" "$prefix/apt/cache/archives/partial" "$prefix/apt/sources.list.d"
for file in /etc/apt/sources.list.d/*.sources; do
    [ ! -f "$file" ] || sed 's/^Types:.*/Types: deb-src/' "$file" >"$prefix/apt/sources.list.d/$(basename "$file")"
done
cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null | sed -n 's/^deb /deb-src /p' >"$prefix/apt/sources.list" || true
cat >"$prefix/apt.conf" <<EOF
Dir::Etc::sourcelist "$prefix/apt/sources.list";
Dir::Etc::sourceparts "$prefix/apt/sources.list.d";
Dir::State::lists "$prefix/apt/lists";
Dir::Cache "$prefix/apt/cache";
APT::Sandbox::User "";
EOF
[ -n "$(ls "$prefix/apt/lists" | grep _Sources)" ] || apt-get -q -c "$prefix/apt.conf" update >&2

defines=
fetch zlib
defines='-DHAVE_UNISTD_H -DHAVE_STDARG_H -D_LARGEFILE64_SOURCE=1'
(cd zlib && archive z adler32.c compress.c crc32.c deflate.c gz*.c inf*.c trees.c uncompr.c zutil.c && cp zlib.h zconf.h "$prefix/include")
licence zlib zlib/README

fetch libyaml
defines='-Iinclude -DYAML_VERSION_MAJOR=0 -DYAML_VERSION_MINOR=2 -DYAML_VERSION_PATCH=5 -DYAML_VERSION_STRING="0.2.5"'
(cd libyaml && archive yaml src/*.c && cp include/yaml.h "$prefix/include")
licence libyaml libyaml/License

fetch libspng
defines="-I$prefix/include"
(cd libspng && archive spng spng/spng.c && cp spng/spng.h "$prefix/include")
licence libspng libspng/LICENSE

fetch lmdb
defines=
(cd lmdb/libraries/liblmdb && archive lmdb mdb.c midl.c && cp lmdb.h "$prefix/include")
licence lmdb lmdb/libraries/liblmdb/LICENSE

fetch xxhash
(cd xxhash && archive xxhash xxhash.c && cp xxhash.h xxh3.h "$prefix/include")
licence xxhash xxhash/LICENSE

fetch libdeflate
defines=-I.
(cd libdeflate && archive deflate lib/*.c lib/x86/*.c && cp libdeflate.h "$prefix/include")
licence libdeflate libdeflate/COPYING

fetch protobuf-c
defines=-I.
(cd protobuf-c && archive protobuf-c protobuf-c/protobuf-c.c && mkdir -p "$prefix/include/protobuf-c" &&
    cp protobuf-c/protobuf-c.h "$prefix/include/protobuf-c")
licence protobuf-c protobuf-c/LICENSE

fetch libjpeg-turbo
with_cmake libjpeg-turbo -DENABLE_SHARED=OFF -DWITH_TURBOJPEG=OFF -DWITH_JPEG8=OFF -DREQUIRE_SIMD=ON
licence libjpeg-turbo libjpeg-turbo/LICENSE.md

fetch hdf5
with_cmake hdf5 -DBUILD_TESTING=OFF -DHDF5_BUILD_TOOLS=OFF -DHDF5_BUILD_EXAMPLES=OFF -DHDF5_BUILD_HL_LIB=OFF -DHDF5_BUILD_CPP_LIB=OFF \
    -DHDF5_BUILD_FORTRAN=OFF -DHDF5_ENABLE_THREADSAFE=ON -DHDF5_ENABLE_Z_LIB_SUPPORT=ON -DHDF5_ENABLE_SZIP_SUPPORT=OFF \
    -DZLIB_ROOT="$prefix" -DONLY_SHARED_LIBS=OFF -DHDF5_EXTERNALLY_CONFIGURED=OFF
licence hdf5 hdf5/COPYING

fetch cfitsio
with_cmake cfitsio -DTESTS=OFF -DUTILS=OFF -DUSE_CURL=OFF -DUSE_BZIP2=OFF -DUSE_PTHREADS=ON -DZLIB_ROOT="$prefix"
licence cfitsio cfitsio/License.txt

# oneDNN, and the runtime of OpenMP that belongs to the old C library.
if [ ! -f "$prefix/lib/libdnnl.so.3" ]; then
    mkdir -p onednn
    python3 -m venv onednn/venv
    onednn/venv/bin/pip install -q --disable-pip-version-check --retries 5 --no-deps onednn-cpu-gomp==2023.2.0 onednn-devel-cpu-gomp==2023.2.0
    cp -r onednn/venv/include/oneapi "$prefix/include"
    cp -L onednn/venv/lib/libdnnl.so.3 "$prefix/lib/libdnnl.so.3"
    ln -sf libdnnl.so.3 "$prefix/lib/libdnnl.so"
    find onednn/venv -path '*onednn*' -iname '*licen*' -type f -exec cat {} + >"$prefix/licences/onednn.txt"
fi
cp -L "$sysroot/usr/lib/x86_64-linux-gnu/libgomp.so.1" "$prefix/lib/libgomp.so.1"
ln -sf libgomp.so.1 "$prefix/lib/libgomp.so"
licence libgomp "$sysroot/usr/share/doc/libgomp1/copyright"
touch "$prefix/done"
