#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# level: 2
# macos.sh: the sources compile for macOS: none of them uses a call or a constant that only Linux has.
#
# clang compiles for x86-64 and ARM without making code, against darwin/, which declares what convoy uses of the headers
# of macOS. So calls that macOS lacks, or has with other arguments, are found. Nothing is linked or run. Without
# arguments it looks at the sources that use the system's headers, and at all of them with the argument "all".
# rows: clang
. "$CONVOY_SOURCE/tests/shell.inc"
command -v clang >/dev/null || { echo "there is no clang"; exit 77; }
cache=$CONVOY_BUILD/CMakeCache.txt
value() {
    sed -n "s/^$1:[A-Z]*=//p" "$cache" | head -n 1
}
mkdir inc
cp "$(value YAML_INCLUDE_DIR)/yaml.h" inc/ || exit 1
mpi=$(value MPI_C_HEADER_DIR)
[ -f "$mpi/mpi.h" ] || { echo "the folder of mpi.h is not known"; exit 77; }
cp "$mpi"/mpi*.h inc/

# macOS has no optional library here.
sed -E 's/(#define CVY_HAVE_[A-Z0-9_]+) 1/\1 0/; s/CVY_HAVE_MPI 0/CVY_HAVE_MPI 1/' "$CONVOY_BUILD/gen/cvy_config.h" >config.h
cd "$CONVOY_SOURCE" || exit 1 # $work is still the test's folder
# Without protocol buffers there is no generated code: the sources that need it are left out, as CMake does.
files=$(find src lab cmd/convoy -name '*.c' ! -path '*/onednn/*' ! -path '*/exchange/onnx/*' ! -path '*/exchange/caffe/*' ! -path '*/monitor/tensorboard/*' | sort)
[ "${1-}" = all ] || files=$(grep -lE '<(unistd|pthread|sched|signal|dirent|fcntl|time|locale|malloc|glob|fnmatch|ftw|sys/[a-z]+)\.h>' $files)
[ "$(echo "$files" | wc -l)" -gt 50 ] || fail "only these sources were found: $files"
for target in x86_64-apple-macos11 arm64-apple-macos11; do
    # shellcheck disable=SC2086
    clang --target=$target -std=c11 -fsyntax-only -Wall -Wextra -Werror -Wno-pass-failed -fopenmp-simd -D_GNU_SOURCE -nostdlibinc \
        -isystem tests/portability/darwin -isystem "$work/inc" -Ilab -Isrc -Iinclude -DCVY_HAVE_LAB=1 -include "$work/config.h" $files ||
        fail "the sources do not compile for $target"
    echo "$target: $(echo "$files" | wc -l) sources"
done
exit $failed
