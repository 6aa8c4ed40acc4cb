#!/bin/sh
# fuzz.sh [SECONDS]: runs every fuzz target that long (60 if not given), with clang's libFuzzer and sanitizers; exit code 0: none found anything.
#
# What is interesting and new is in build/fuzz/tests/fuzz/found/NAME (copy it to tests/fuzz/corpus/NAME to keep it), the input of a crash beside it.
set -eu
cd "$(dirname "$0")/.."
cmake -B build/fuzz -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_COMPILER="${CC-clang}" -DCONVOY_FUZZ=ON -DCONVOY_FUZZ_SECONDS="${1-60}" >build-fuzz.log 2>&1 &&
    cmake --build build/fuzz >>build-fuzz.log 2>&1 || { tail -n 20 build-fuzz.log; rm -f build-fuzz.log; exit 1; }
rm -f build-fuzz.log
exec ctest --test-dir build/fuzz -R '^fuzz_' --output-on-failure
