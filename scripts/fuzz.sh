#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# fuzz.sh [SECONDS [NAME...]]: runs each fuzz target of tests/fuzz for so many seconds (default 60), two at a time; exit
# code 0: none found anything.
#
# NAME is "tfrecord", "job", ... Without a NAME it runs all targets that continuous integration runs for some seconds:
# all but hdf5. Inputs that add coverage are kept in build/fuzz/tests/fuzz/found/NAME, where the next run continues. The
# input of a fault is written next to them as NAME-crash-..., and the report of the fault is printed.
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
