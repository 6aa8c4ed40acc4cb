#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# build_caffe.sh FOLDER [JOBS]: builds the command of Caffe 1.0 for CPUs, as FOLDER/caffe, for `convoy study` (framework caffe).
#
# The sources are those of the package brocolli-caffe, which is Caffe as it was published; pip gets them. pip cannot build
# it itself, because its setup asks for conda. It needs a C++ compiler and, on Debian, libboost-thread-dev
# libboost-filesystem-dev libgoogle-glog-dev libgflags-dev libprotobuf-dev protobuf-compiler libopenblas-dev
# libhdf5-dev. Set CPPFLAGS, LDFLAGS and PROTOC if they are in a folder of their own. It takes about ten minutes on two cores.
set -eu
[ $# -ge 1 ] || { sed -n '3,9s/^# //p' "$0"; exit 2; }
mkdir -p "$1"
cd "$1"
jobs=${2:-$(nproc 2>/dev/null || echo 2)} version=9.0.2 protoc=${PROTOC:-protoc}
command -v "$protoc" >/dev/null || { echo "build_caffe.sh: there is no protoc: install protobuf-compiler, or set PROTOC" >&2; exit 1; }
[ -d "brocolli-caffe-$version" ] || {
    python3 -m pip download -q --no-deps --no-binary :all: --no-build-isolation "brocolli-caffe==$version" ||
        [ -f "brocolli-caffe-$version.tar.gz" ] || { echo "build_caffe.sh: pip cannot get brocolli-caffe $version" >&2; exit 1; }
    tar xzf "brocolli-caffe-$version.tar.gz"
}
source=$PWD/brocolli-caffe-$version
mkdir -p build/include/caffe/proto
"$protoc" --proto_path="$source/src/caffe/proto" --cpp_out=build/include/caffe/proto caffe.proto
{
    find "$source/src/caffe" -name '*.cpp' ! -path '*/test/*'
    echo "$source/tools/caffe.cpp"
    echo "$PWD/build/include/caffe/proto/caffe.pb.cc"
} >build/files
# OpenBLAS has cblas.h in a folder of its own on Debian.
blas=$(dirname "$(find /usr/include -name cblas.h 2>/dev/null | grep -i openblas | head -n 1)" 2>/dev/null || echo /usr/include)
hdf5=$(dirname "$(find /usr/include -name hdf5.h 2>/dev/null | grep -v mpi | head -n 1)" 2>/dev/null || echo /usr/include)
export CPPFLAGS="${CPPFLAGS-} -DCPU_ONLY=1 -DUSE_HDF5 -DCAFFE_VERSION=1.0.0 -I$PWD/build/include -I$source/include -I$source/src -I$blas -I$hdf5"
tr '\n' '\0' <build/files | xargs -0 -P "$jobs" -I{} sh -c '
    object=build/$(echo "$1" | cksum | cut -d" " -f1).o
    [ -s "$object" ] || "${CXX:-c++}" -std=c++14 -O3 -w $CPPFLAGS -c "$1" -o "$object.part" && { [ ! -f "$object.part" ] || mv "$object.part" "$object"; }
' sh {}
library=$(dirname "$(find /usr/lib /usr/lib64 -path '*serial/libhdf5.so' 2>/dev/null | head -n 1)" 2>/dev/null || echo .)
# shellcheck disable=SC2086
"${CXX:-c++}" -o caffe build/*.o ${LDFLAGS-} -L"$library" -lboost_thread -lboost_system -lboost_filesystem -lglog -lgflags -lprotobuf -lopenblas -lhdf5_hl -lhdf5 -lpthread
./caffe --version
