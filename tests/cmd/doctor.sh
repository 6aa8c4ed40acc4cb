#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich minimal
# level: 2
# doctor.sh: `convoy doctor` alone, on two ranks of a node, and on two nodes: its tables, its JSON, and right sums with
# every algorithm; times are not checked.
. "$CONVOY_SOURCE/tests/shell.inc"

# parses FILE: it is one JSON value. Strings and scalars are replaced by a letter each, then lists and objects of
# letters by one letter, from the inside out.
parses() {
    left=$(sed -E 's/"([^"\\]|\\.)*"/s/g; s/-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?|true|false|null/v/g; s/ //g
        :a
        s/\[([sv](,[sv])*)?\]/v/g; s/\{(s:[sv](,s:[sv])*)?\}/v/g
        ta' "$1")
    [ "$left" = v ] || fail "$1 does not parse: $left is left of $(cat "$1")"
}

"$CONVOY" doctor >one || fail "it fails alone"
grep -q '^1 node, 1 rank; ' one || fail "no ranks: $(cat one)"
grep -q '^one rank: there is nothing to reduce' one || fail "one rank sums: $(cat one)"

# ---- with a job: its network and memory, or its error and no measurement ----
printf 'model: lenet\ndata: {train: {format: synthetic, shape: [1, 28, 28], samples: 64}}\ntrain: {batch: 16, steps: 2}\n' >job.yaml
"$CONVOY" doctor job.yaml >job || fail "it fails with a job"
grep -q '^network lenet, f32, on synthetic: 64 samples' job || fail "no network: $(cat job)"
grep -q '^memory of this rank' job || fail "no memory: $(cat job)"
grep -q '^1 node, 1 rank; ' job || fail "no ranks after the job: $(cat job)"
grep -q '^conv' job && fail "the layers are shown: $(cat job)"
"$CONVOY" doctor job.yaml --set train.batch=8 --json >job || fail "--json fails with a job"
[ "$(wc -l <job)" = 1 ] || fail "--json with a job is more than a line: $(cat job)"
refused 'unknown key "batchh"; did you mean "batch"?' "$CONVOY" doctor job.yaml --set train.batchh=8
[ -s out ] && fail "a wrong job is measured: $(cat out)"
refused '--set and --device change keys of a job' "$CONVOY" doctor --set train.batch=8
rm -f out err

# shellcheck disable=SC2086
$MPIEXEC_N 2 "$CONVOY" doctor --max 64KiB --seconds 20 --threads 1 >two || fail "it fails on two ranks"
grep -q '^1 node, 2 ranks; memory of a node: \(not \)\{0,1\}shared$' two || fail "no nodes: $(cat two)"
grep -q '^node [^ ]*: ranks 0-1, [0-9]* cores\{0,1\}.*, 1 thread each, \(all \)\{0,1\}\(not \)\{0,1\}bound' two || fail "no line of the node: $(cat two)"
grep -q '^clock: goes forward, a reading takes [0-9]* ns$' two || fail "no clock: $(cat two)"
grep -q '^files in \.: [1-9][0-9]* MiB written at [0-9]* MB/s and read back at [0-9]* MB/s, .* free; seen by all ranks$' two || fail "no files: $(cat two)"
grep -q 'thread level \(single\|funneled\|serialized\|multiple\)$' two || fail "no thread level: $(cat two)"
grep -q '^inside a node  *0  *1  *[0-9.]*  *[0-9.]*$' two || fail "no messages: $(cat two)"
grep -q '^ms .*doubling.*halving.*ring.*library' two || fail "not all methods: $(cat two)"
for size in '1 KiB' '4 KiB' '16 KiB' '64 KiB'; do
    [ "$(grep -c "^$size .*[0-9]\*" two)" = 2 ] || fail "not two rows of $size with a mark: $(cat two)"
done
grep -q '^256 KiB' two && fail "--max is passed: $(cat two)"

# Two ranks as two nodes, then four as two nodes of two ranks, whose memory is shared if the system allows it.
# shellcheck disable=SC2086
CONVOY_NODE_RANKS=1 $MPIEXEC_N 2 "$CONVOY" doctor --max 16KiB --threads 1 --json >nodes || fail "it fails on two nodes"
[ "$(wc -l <nodes)" = 1 ] || fail "not one line: $(cat nodes)"
parses nodes
for part in '"nodes": 2, "ranks": 2' '"node_memory": "one rank a node"' '"between_nodes": {"from": 0, "to": 1, "alpha_us": [0-9]' '"bytes": 16384, "trials": [1-9]' \
    '"auto": "\(ring\|halving\|doubling\|library\)"' '"name": "halving", "ms_best": [0-9.e-]*, "ms_median": [0-9.e-]*, "gb_per_s": [0-9.e-]*, "wrong": 0}' 'are both on host'; do
    grep -q "$part" nodes || fail "no $part in $(cat nodes)"
done
grep -q '"wrong": [1-9]' nodes && fail "wrong sums: $(cat nodes)"
# shellcheck disable=SC2086
CONVOY_NODE_RANKS=2 $MPIEXEC_N 4 "$CONVOY" doctor --max 16KiB --seconds 5 --threads 1 --json >four || fail "it fails on two nodes of two"
parses four
grep -q '"ranks": 4' four || fail "not four ranks: $(cat four)"
grep -q '"wrong": [1-9]' four && fail "wrong sums: $(cat four)"
if grep -q '"node_memory": "shared"' four; then
    grep -q '"leaders": 2' four || fail "not two leaders: $(cat four)"
    grep -q '"name": "node+ring"' four && grep -q '"auto": "node+' four || fail "the node's memory is not used: $(cat four)"
fi

# ---- clocks and files ----
mkdir out
"$CONVOY" doctor --out out >log || fail "it fails in a folder"
grep -q '^files in out: [1-9][0-9]* MiB written' log || fail "the folder is not taken: $(cat log)"
[ -z "$(ls -A out)" ] || fail "it leaves files: $(ls -A out)"
# As a run does, it takes a folder that does not exist yet. Nothing of it is left.
for folder in out/deep/run out/deep/ "$work/out/deep"; do
    "$CONVOY" doctor --out $folder --max 1KiB --seconds 2 >log || fail "a folder that is not there is a fault: $(cat log)"
    grep -q "^files in $(echo $folder | sed 's|/deep.*||'): [1-9][0-9]* MiB written" log || fail "the nearest folder is not taken: $(cat log)"
    [ -z "$(ls -A out)" ] || fail "it leaves files: $(ls -A out)"
done
: >file
"$CONVOY" doctor --out file/run --max 1KiB --seconds 2 >log || fail "a file in the place of a folder ends it"
grep -q 'file: cannot make a folder in it: Not a directory: a run could not write its checkpoints in file' log || fail "the log does not say that there is no folder: $(cat log)"

# apart NAME COMMAND...: two ranks, of which the second one is started by the script NAME; each is a node of its own.
apart() {
    # shellcheck disable=SC2086
    CONVOY_NODE_RANKS=1 $MPIEXEC_N 2 sh "$@" doctor --out out --max 1KiB --seconds 5 --threads 1 >log 2>&1 || fail "it fails: $(cat log)"
}
cat >alone.sh <<'END'
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 0 ] || exec unshare -m sh -c 'mount -t tmpfs none out && exec "$CONVOY" "$@"' sh "$@"
exec "$CONVOY" "$@"
END
if unshare -m mount -t tmpfs none out 2>/dev/null; then
    apart alone.sh
    grep -q '; not seen by all ranks$' log || fail "a folder of two is one: $(cat log)"
    grep -q 'rank 1 on .* (1 rank in all) does not see what rank 0 on .* makes in out: the folder is not shared' log || fail "no word on the folder: $(cat log)"
else
    echo "no right to mount a file system: a folder that is not shared is left out"
fi

cat >clock.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
#include <stdlib.h>
int clock_gettime(clockid_t id, struct timespec *now)
{
    static int (*real)(clockid_t, struct timespec *);
    static int count;
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    const int result = real(id, now);
    if (id == CLOCK_REALTIME && getenv("AHEAD"))
        now->tv_sec += atoi(getenv("AHEAD"));
    if (id == CLOCK_MONOTONIC && getenv("BACK") && ++count % 1000 == 0)
        now->tv_sec -= 1;
    return result;
}
END
cat >other.sh <<'END'
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 0 ] || export LD_PRELOAD="$PWD/clock.so"
exec "$CONVOY" "$@"
END
if [ "$CONVOY_SANITIZE" != ON ]; then
    $CC -shared -fPIC -o clock.so clock.c -ldl || fail "the shim is not built"
    AHEAD=7 apart other.sh
    grep -q 'the clock of .* (rank 1) is [67]\.[0-9] s ahead of that of ' log || fail "a clock that is ahead is not seen: $(cat log)"
    grep -q '; those of the nodes differ by [67]\(\.[0-9]*\)\{0,1\} s at most' log || fail "the log does not say how far the clocks differ: $(cat log)"
    AHEAD=-7 apart other.sh
    grep -q 'the clock of .* (rank 1) is [67]\.[0-9] s behind that of ' log || fail "a clock that is behind is not seen: $(cat log)"
    BACK=1 LD_PRELOAD="$PWD/clock.so" "$CONVOY" doctor >log || fail "it fails when a clock goes back"
    grep -q '^clock: goes back' log && grep -q 'the monotonic clock of .* (rank 0) went back, [1-9][0-9]* times' log || fail "a clock that goes back is not seen: $(cat log)"
fi

# A platform file, which `convoy simulate` takes. It needs two nodes.
$MPIEXEC_N 2 "$CONVOY" doctor --max 64KiB --seconds 3 --platform here.yaml >log 2>&1 && fail "a platform of one node"
grep -q 'a platform is measured between two nodes or more' log || fail "one node: $(cat log)"
if [ "$CONVOY_SANITIZE" != ON ] && "$CONVOY" info 2>/dev/null | grep -q '^onednn *yes'; then # plain kernels would take minutes
    CONVOY_NODE_RANKS=1 $MPIEXEC_N 2 "$CONVOY" doctor --max 64KiB --seconds 3 --platform here.yaml >log 2>err || fail "no platform: $(cat log err)"
    for key in bandwidth latency add memory cores gflop_per_s; do
        grep -q "^$key: [1-9][0-9.e+-]*\$" here.yaml || grep -q "^$key: 0\.[0-9]*[1-9]" here.yaml || fail "here.yaml lacks $key: $(cat here.yaml)"
    done
    grep -q '^rates: {resnet-50: [0-9.]*}$' here.yaml || fail "here.yaml has no rate: $(cat here.yaml)"
    if [ -e "$CONVOY-sim" ] && command -v smpirun >/dev/null; then
        CONVOY_WISDOM="$work/wisdom.json" "$CONVOY" simulate lenet --batch 8 --platform here.yaml --ranks 4 --planning measure >log 2>&1 || fail "simulate does not take here.yaml: $(cat log here.yaml)"
    fi
fi

"$CONVOY" doctor --max many >log 2>&1 && fail "--max many is accepted"
grep -q "the largest all-reduce is 'many', expected a number of bytes" log || fail "--max is not named: $(cat log)"
exit $failed
