#!/bin/sh
# test.sh [--all|--soak] [--seed N]: installs what is missing, builds and runs the tests; the last line counts them.
#
# Without arguments: the release build with the system's MPI. --all, which continuous integration runs, treats warnings as errors and
# adds a real Slurm, MPICH, clang, the sanitizers, oneDNN 3, short fuzzing and the minimal build. A row that does not build counts as one failed test; one that
# cannot be built here (an MPI or a library that is not to be had) as one skipped, with the reason. Exit code 0: nothing failed.
#
# Tests by injected faults try a sample that a seed chooses (printed; --seed N repeats one): --all more of it. --soak, by hand, for it takes hours: the fault
# tests alone, all of what they can try, on Open MPI and MPICH; its "count:" lines say how many of how many held (docs/testing.md).
set -u
cd "$(dirname "$0")/.." || exit 1
usage() {
    echo "usage: sh scripts/test.sh [--all|--soak] [--seed N]" >&2
    exit 2
}
all='' CONVOY_TEST_LEVEL=1 CONVOY_TEST_SEED=$(($(date +%s) % 100000))
while [ $# -gt 0 ]; do
    case $1 in
    --all) all=--all CONVOY_TEST_LEVEL=2 ;;
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
echo "seed $CONVOY_TEST_SEED: sh scripts/test.sh${all:+ $all} --seed $CONVOY_TEST_SEED tries the same faults again"

jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
row_jobs=$((2 * jobs))                                  # tests at a time: most wait for processes to start, or for each other
logs=build/test-logs
passed=0 failed=0 skipped=0
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

# row NAME configure-argument...: configures, builds and tests build/NAME; of the tests those that match $only, without those that match $but.
only=. but= test_seconds=600
row() {
    name=$1 log=$logs/$1 start=$(date +%s)
    shift
    if ! cmake -B "build/$name" -DCONVOY_TEST_TIMEOUT=$test_seconds "$@" >"$log.build" 2>&1 || ! cmake --build "build/$name" -j "$jobs" >>"$log.build" 2>&1; then
        grep -nE 'error|Error|warning:|undefined' "$log.build" | head -n 20
        echo "== $name: the build failed, see $log.build"
        failed=$((failed + 1))
        return
    fi
    ctest --test-dir "build/$name" -j "$row_jobs" -R "$only" ${but:+-E "$but"} --output-on-failure >"$log.test" 2>&1
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
    [ "$all" != --soak ] || grep -h '^count: ' "build/$name/Testing/Temporary/LastTest.log"
    echo "== $name: $1 passed, $2 failed, $3 skipped, $(($(date +%s) - start)) s"
}

# A folder with oneDNN 3, made once from the packages that its authors publish for Python; empty where they are not to be had.
onednn3_prefix() {
    prefix=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/convoy/onednn-2023.2.0
    if [ ! -f "$prefix/done" ]; then
        rm -rf "$prefix"
        mkdir -p "$(dirname "$prefix")" && python3 -m venv "$prefix" &&
            "$prefix/bin/pip" install -q --disable-pip-version-check --retries 5 --no-deps \
                onednn-cpu-gomp==2023.2.0 onednn-devel-cpu-gomp==2023.2.0 && touch "$prefix/done"
    fi >"$logs/onednn3.setup" 2>&1
    [ -f "$prefix/done" ] && echo "$prefix"
}

minimal='-DCONVOY_WITH_ONEDNN=OFF -DCONVOY_WITH_OPENMP=OFF -DCONVOY_WITH_JPEG=OFF -DCONVOY_WITH_SPNG=OFF -DCONVOY_WITH_LMDB=OFF
         -DCONVOY_WITH_HDF5=OFF -DCONVOY_WITH_ZLIB=OFF -DCONVOY_WITH_XXHASH=OFF -DCONVOY_WITH_HWLOC=OFF -DCONVOY_WITH_SIMGRID=OFF -DCONVOY_WITH_CMOCKA=OFF'

mpich_row() {
    if command -v mpicc.mpich >/dev/null && command -v mpiexec.mpich >/dev/null; then
        row mpich --preset release $strict -DMPI_C_COMPILER=mpicc.mpich -DMPIEXEC_EXECUTABLE="$(command -v mpiexec.mpich)"
    else
        skip_row mpich "there is no mpicc.mpich with mpiexec.mpich"
    fi
}

if [ -z "$all" ]; then
    row release --preset release
elif [ "$all" = --soak ]; then
    only='^cmd_(save_kill|save_faults|mpi_faults|random_stops|kill_resume|full_disk)$|^test_(checkpoint|no_memory)' test_seconds=86400 row_jobs=1 strict=
    row release --preset release
    mpich_row
else
    strict=-DCONVOY_WERROR=ON
    export CONVOY_TEST_SLURM=1 # minutes: a job that reaches its limit under a Slurm of its own
    row release --preset release $strict
    CONVOY_TEST_LEVEL=1        # the other rows try a few of the faults
    only='_n[23]$|^cmd_|^job_' # what speaks MPI
    but='^cmd_(bad_input|bench|bf16|checkpoint|clock|convert|full_disk|jobscript|large_batch|node_memory|normalize|not_finite|overlap_forward|own_data|plan|planning|server|simulate|stage|time|usage)$' # but not what differs in nothing from the row before
    mpich_row
    unset CONVOY_TEST_SLURM
    but= only=.
    if command -v clang >/dev/null; then
        but='_n[0-9]+$|^cmd_' # another compiler: what computes, not what the rows before have started in many ways
        row clang --preset release $strict -DCMAKE_C_COMPILER=clang
    else
        skip_row clang "there is no clang"
    fi
    but='_n[345]$|^cmd_(full_disk|kill_resume|overlap_forward|server|stage|checkpoint|deterministic|jobscript|places|signals|save_kill|save_faults|mpi_faults|random_stops)' # slow, and other tests go through the same code; the shims are not for it
    row asan --preset asan $strict
    but=
    only='test_(op|zoo|golden|steady|winograd|grad_add|amx|bf16|fuse|wisdom|tune|recompute|slices|program|rounded|batch_norm)|cmd_(plan|bench|bf16|time|train)' # what oneDNN has a part in
    prefix=$(onednn3_prefix)
    if [ -n "$prefix" ]; then
        row onednn3 --preset release $strict -DCMAKE_PREFIX_PATH="$prefix"
    else
        skip_row onednn3 "pip could not install oneDNN 3, see $logs/onednn3.setup"
    fi
    only='^fuzz_'
    if command -v clang >/dev/null && echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' | clang -x c -fsanitize=fuzzer -o "$logs/libfuzzer" - 2>"$logs/fuzz.setup"; then
        row fuzz -G Ninja -DCMAKE_BUILD_TYPE=Debug $strict -DCMAKE_C_COMPILER=clang -DCONVOY_FUZZ=ON -DCONVOY_FUZZ_SECONDS=10 -DCONVOY_FUZZ_SEED=1
    else
        skip_row fuzz "there is no clang with libFuzzer"
    fi
    only=.
    row minimal -G "Unix Makefiles" -DCMAKE_BUILD_TYPE=Release $strict $minimal
fi

[ "$failed" -eq 0 ] || echo "output of the rows: $logs"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
