#!/bin/sh
# fuzz.sh [SECONDS [NAME...]]: runs the fuzz targets of tests/fuzz that long each (60 if not given), two at a time; exit code 0: none found anything.
#
# NAME: "tfrecord", "job", ...; without any, all that continuous integration runs for some seconds: all but hdf5. What tells new inputs from known ones is
# kept in build/fuzz/tests/fuzz/found/NAME, from where the next run goes on; the input of a fault lies beside it as NAME-crash-..., and its story is printed.
set -eu
cd "$(dirname "$0")/.."
seconds=${1-60}
[ $# -gt 0 ] && shift
tests=
for name in "$@"; do tests="$tests${tests:+|}^fuzz_$name\$|^by_hand_$name\$"; done
mkdir -p build/fuzz
cmake -B build/fuzz -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_COMPILER="${CC-clang}" -DCONVOY_FUZZ=ON -DCONVOY_FUZZ_SECONDS="$seconds" >build/fuzz/fuzz.log 2>&1 &&
    cmake --build build/fuzz >>build/fuzz/fuzz.log 2>&1 || { tail -n 20 build/fuzz/fuzz.log; exit 1; }
exec ctest --test-dir build/fuzz -j 2 -R "${tests:-^fuzz_}" --output-on-failure
