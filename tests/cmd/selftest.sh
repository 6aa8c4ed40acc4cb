#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich minimal
# seconds: 60
# level: 2
# selftest.sh: `convoy selftest` passes alone and on two ranks, and leaves nothing. Each of its checks fails, with a line
# that names rank and remedy and with exit code 1, if its fault is planted: another number of ranks, another build,
# clocks, messages that arrive wrong, a folder that is missing, read-only, full, damaged or not shared, signals that
# another library takes.
. "$CONVOY_SOURCE/tests/shell.inc"

# passes N CHECKS COMMAND...: the command ends well, and its last line counts so many checks.
passes() {
    n=$1
    shift
    "$@" >log 2>&1 || fail "exit code $?, expected 0: $*: $(cat log)"
    grep -q "^selftest: $n checks\{0,1\} passed, 0 failed, " log || fail "not $n checks: $*: $(cat log)"
    grep -q '^FAILED' log && fail "a check fails: $(cat log)"
    [ -z "$(ls -d folder/* convoy-selftest-* 2>/dev/null)" ] || fail "it leaves files: $(ls -d folder/* convoy-selftest-*)"
}

# has_failed CHECK TEXT: the log has a line of this check with this text (a basic pattern).
has_failed() { grep -q "^FAILED   $1  *.*$2" log || fail "$1: no line with \"$2\": $(cat log)"; }

# fails CHECK TEXT COMMAND...: the command ends with an error, and the check's line has this text.
fails() {
    check=$1 text=$2
    shift 2
    "$@" >log 2>&1 && fail "$check: exit code 0: $*: $(cat log)"
    has_failed "$check" "$text"
    grep -q '^selftest: [0-9]* checks\{0,1\} passed, [1-9][0-9]* failed, ' log || fail "$check: no last line: $(cat log)"
}

# on N OPTION...: on so many ranks
on() {
    ranks=$1
    shift
    # shellcheck disable=SC2086
    $MPIEXEC_N "$ranks" "$CONVOY" selftest --threads 1 "$@"
}

mkdir folder
passes 12 "$CONVOY" selftest --threads 1 --seconds 1
grep -q '^skipped  reductions  *there is one rank$' log || fail "one rank reduces: $(cat log)"
grep -q '^ok       kernels  *[1-9][0-9]* of [1-9][0-9]* runs on [1-9][0-9]* samples agree' log || fail "no kernels: $(cat log)"
passes 15 on 2 --ranks 2 --seconds 1 --out folder
grep -q '^ok       reductions  *[1-9][0-9]* all-reduces over 2 ranks are exact' log || fail "no reductions: $(cat log)"
grep -q '^ok       deterministic  *weights [0-9a-f]\{16\} on all ranks, twice, and on each rank alone$' log || fail "no bits: $(cat log)"
grep -q '^ok       signals  *SIGUSR1 stops all ranks at step [1-9][0-9]*, and SIGTERM the resumed training' log || fail "no signals: $(cat log)"
passes 3 on 3 --only ranks,groups,reductions
"$CONVOY" selftest --only ranks,system --json >json || fail "it fails with --json"
[ "$(wc -l <json)" = 1 ] && grep -q '^{"passed": 2, "failed": 0, "skipped": 0, "ranks": 1, .*"checks": \[{"name": "ranks", "verdict": "passed", ' json || fail "not JSON: $(cat json)"
refused "there is no check 'fies', did you mean 'files'?" "$CONVOY" selftest --only fies

# ---- ranks ----
fails ranks 'there are 2 ranks, and --ranks asks for 3: start it with the mpiexec' on 2 --ranks 3 --only ranks
fails ranks 'there is 1 rank, and --ranks asks for 4.*each process is alone' "$CONVOY" selftest --ranks 4 --only ranks
contains log 'FAILED' || fail "no line: $(cat log)"

# ---- files ----
: >file
fails files 'file: cannot make a folder in it: Not a directory: give another folder by --out' "$CONVOY" selftest --out file/deep/run --only files,checkpoint,data,signals
[ "$(grep -c '^skipped .* there is no folder to write to$' log)" = 3 ] || fail "checks without a folder run: $(cat log)"
# As a run does, it takes a folder that does not exist yet. Nothing of it is left.
passes 1 "$CONVOY" selftest --out nowhere/deep/run --only files
[ ! -e nowhere ] || fail "a folder is left: $(ls -R nowhere)"
fails files 'file: cannot make a folder in it: Not a directory' on 2 --out file --only files
# in_mount OPTIONS COMMAND: with a small file system of its own in folder.
in_mount() {
    mount_options=$1
    shift
    unshare -m sh -c 'options=$1; shift; mount -t tmpfs -o "$options" none folder && exec "$@"' sh "$mount_options" "$@"
}
if in_mount size=1m true 2>/dev/null; then
    fails files 'rank 0 on .*: folder/convoy-selftest-.*/large: .*No space left on device.*: give another folder by --out' in_mount size=1m $MPIEXEC_N 2 "$CONVOY" selftest --out folder --only files --threads 1
    fails checkpoint 'No space left on device.*: give another folder by --out' in_mount size=16k "$CONVOY" selftest --out folder --only checkpoint --threads 1
    fails data 'No space left on device' in_mount size=16k "$CONVOY" selftest --out folder --only data --threads 1
    fails files 'cannot make a folder in it: Read-only file system: give another folder by --out' in_mount ro "$CONVOY" selftest --out folder --only files
else
    echo "no right to mount a file system: full and read-only folders are left out"
fi
if [ "$(id -u)" != 0 ]; then
    mkdir closed && chmod 555 closed
    fails files 'closed: cannot make a folder in it: Permission denied: give another folder by --out' "$CONVOY" selftest --out closed --only files
fi

# other FILE OPTION...: two ranks, each a node of its own; the second one is started by the script FILE.
other() {
    script=$1
    shift
    # shellcheck disable=SC2086
    CONVOY_NODE_RANKS=1 $MPIEXEC_N 2 sh "$script" selftest --threads 1 --out folder "$@"
}
cat >apart.sh <<'END'
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 0 ] || exec unshare -m sh -c 'mount -t tmpfs none folder && exec "$CONVOY" "$@"' sh "$@"
exec "$CONVOY" "$@"
END
if unshare -m mount -t tmpfs none folder 2>/dev/null; then
    fails files 'rank 1 on .*: does not see what rank 0 on .* writes in folder/.*: the folder is not shared' other apart.sh --only files,checkpoint
    grep -q '^FAILED   checkpoint  *rank 1 on .* holds 0 checkpoints here' log || fail "a checkpoint that is not seen: $(cat log)"
fi

# ---- faults by libraries that replace calls; sanitizers must be loaded first themselves ----
[ "$CONVOY_SANITIZE" != ON ] || exit $failed
io="$CONVOY_BUILD/tests/shim_io.so"
if [ -e "$io" ]; then
    # with_io AT FAULT CHECK: the operation number AT in the folder has a fault.
    with_io() { SHIM_IO_DIR="$PWD/folder" SHIM_IO_AT=$1 SHIM_IO_FAULT=$2 LD_PRELOAD="$io" "$CONVOY" selftest --threads 1 --out "$PWD/folder" --only "$3"; }
    fails files 'Input/output error.*: give another folder by --out' with_io 5 EIO files
    fails checkpoint 'Disk quota exceeded.*: give another folder by --out' with_io 8 EDQUOT checkpoint
    fails data 'Input/output error' with_io 9 EIO data
    passes 1 with_io 6 short checkpoint
    passes 1 with_io 6 EINTR checkpoint
fi

cat >wrong.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* Whether the list of faults has this one. No fault is a part of another's name. */
static int is(const char *fault) { return getenv("WRONG") && strstr(getenv("WRONG"), fault); }

/* A wrong bit in each 64 bytes: a single one may hit a gradient that is zero, where it changes nothing. */
static void flip(void *data, long bytes)
{
    for (long i = 34; i < bytes; i += 64)
        ((char *)data)[i] ^= 0x10;
}

/* Sends a copy with wrong bits. */
int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    if (!is("send") || type != MPI_BYTE || count < 64)
        return PMPI_Isend(data, count, type, to, tag, comm, request);
    char *copy = malloc((size_t)count);
    memcpy(copy, data, (size_t)count);
    flip(copy, count);
    return PMPI_Isend(copy, count, type, to, tag, comm, request);
}

/* The same for sums by the MPI library, which `auto` may choose: the bits are wrong in the sum of this rank. */
int MPI_Iallreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
    int bytes;
    int result = PMPI_Iallreduce(from, to, count, type, op, comm, request);
    MPI_Type_size(type, &bytes);
    if (result != MPI_SUCCESS || !is("send") || (long)count * bytes < 64)
        return result;
    result = PMPI_Wait(request, MPI_STATUS_IGNORE);
    flip(to, (long)count * bytes);
    return result;
}

/* Gives the first rank a wrong sum. */
int MPI_Allreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    const int result = PMPI_Allreduce(from, to, count, type, op, comm);
    if (is("sum") && count == 1 && type == MPI_DOUBLE && op == MPI_SUM)
        *(double *)to += 1;
    return result;
}

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *out)
{
    return PMPI_Comm_split(comm, color, is("split") ? -key : key, out);
}

/* What is written into memory of the node is not seen by others. */
void *mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
    static void *(*real)(void *, size_t, int, int, int, off_t);
    if (!real)
        real = (void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
    if (is("mmap") && (flags & MAP_POPULATE) && (flags & MAP_SHARED))
        flags = (flags & ~MAP_SHARED) | MAP_PRIVATE;
    return real(at, bytes, prot, flags, fd, offset);
}

int clock_gettime(clockid_t id, struct timespec *now)
{
    static int (*real)(clockid_t, struct timespec *);
    static int count;
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    const int result = real(id, now);
    if (id == CLOCK_REALTIME && is("ahead"))
        now->tv_sec += 7;
    if (id == CLOCK_MONOTONIC && is("back") && ++count % 1000 == 0)
        now->tv_sec -= 1;
    if (id == CLOCK_MONOTONIC && is("coarse"))
        now->tv_nsec -= now->tv_nsec % 4000000;
    return result;
}

/* Another library takes the signal. */
int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    static int (*real)(int, const struct sigaction *, struct sigaction *);
    static const struct sigaction none = {.sa_handler = SIG_IGN};
    const int is_taken = (number == SIGUSR1 && is("usr1")) || (number == SIGTERM && is("term"));
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "sigaction");
    return real(number, action && is_taken ? &none : action, old);
}
END
$MPICC -shared -fPIC -o wrong.so wrong.c -ldl || fail "the shim is not built"
cat >wrong.sh <<'END'
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 0 ] || export LD_PRELOAD="$PWD/wrong.so"
exec "$CONVOY" "$@"
END
# wrong FAULTS CHECK TEXT [CHECK TEXT]...: rank 1 of two has the faults, and each check finds one.
wrong() {
    export WRONG="$1"
    shift
    only=$1${3:+,$3}${5:+,$5}${7:+,$7}
    fails "$1" "$2" other wrong.sh --only "$only"
    unset WRONG
    shift 2
    while [ $# -gt 1 ]; do
        has_failed "$1" "$2"
        shift 2
    done
}
wrong send reductions 'rank 0 on .*: all-reduce of .* elements of f32 by [a-z]*: [1-9][0-9]* elements are wrong, first element .* expected [0-9]*: avoid it by comm.algorithm' \
    training 'rank 1 on .*: sync: after 30 steps this rank has other weights than rank 0 on ' \
    deterministic 'rank [01] on .*: ' updates 'rank [01] on .*: delayed: '
wrong sum reductions 'rank 1 on .*: a blocking all-reduce gives sum 3, .* real sum 3, expected 3, '
wrong 'split ahead usr1' groups 'rank [01] on .*: the group of every 1th rank from 0 has 2 ranks' \
    clocks 'rank 1 on .*: the wall clock is [67]\.[0-9] s ahead of that of rank 0 on ' \
    signals 'rank 1 on .*: SIGUSR1, which this rank sent to itself, did not reach its handler within 5 s'
wrong back clocks 'rank 1 on .*: the monotonic clock went back [1-9][0-9]* times'
wrong coarse clocks 'rank 1 on .*: the monotonic clock \(moves in steps of 0\.[0-9]* s\|stood still\)'
WRONG=term LD_PRELOAD="$PWD/wrong.so"
export WRONG LD_PRELOAD
fails signals 'SIGTERM, which this rank sent to itself, did not reach its handler within 5 s' "$CONVOY" selftest --only signals --threads 1
unset LD_PRELOAD
WRONG=mmap
on 2 --only node-memory >log 2>&1
if grep -q '^ok       node-memory' log; then # ranks can share memory here
    # shellcheck disable=SC2086
    fails node-memory 'is not seen here: do not use this node' $MPIEXEC_N 2 sh wrong.sh selftest --only node-memory --threads 1
fi
unset WRONG

# ---- another build on one rank: the library with another build-id ----
lib=$(ldd "$CONVOY" | sed -n 's/.*=> \(.*libconvoy\.so[^ ]*\) .*/\1/p')
if [ -n "$lib" ] && mkdir old && objcopy -O binary --only-section=.note.gnu.build-id "$lib" id 2>/dev/null && [ -s id ]; then
    head -c 16 id >other-id
    head -c $(($(wc -c <id) - 16)) /dev/zero >>other-id
    objcopy --update-section .note.gnu.build-id=other-id "$lib" "old/${lib##*/}" || fail "no other build"
    echo '[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 0 ] || export LD_LIBRARY_PATH="$PWD/old" LD_PRELOAD="$PWD/old/'"${lib##*/}"'"; exec "$CONVOY" "$@"' >old.sh
    fails versions 'rank 1 on .*: this rank runs another build of convoy .* than rank 0 on .*: load the same module on all nodes' other old.sh --only versions
else
    echo "no build-id in the library: another build is left out"
fi

# ---- a rank that does not answer ends the job, within the limit and the time that the watchdog gives the others ----
mpi="$CONVOY_BUILD/tests/shim_mpi.so"
cat >rank.sh <<'END'
export LD_PRELOAD="$SHIM"
exec "$CONVOY" "$@"
END
if [ -e "$mpi" ]; then
    mkdir apart # an aborted job leaves its folder
    began=$(date +%s)
    # shellcheck disable=SC2086
    SHIM=$mpi SHIM_MPI_RANK=1 SHIM_MPI_AT=40 SHIM_MPI_FAULT=skip timeout 100 $MPIEXEC_N 2 sh rank.sh selftest --threads 1 --limit 4 --out apart --only ranks,versions,clocks,groups,training >log 2>&1 && fail "a skipped call is not noticed: $(cat log)"
    [ $(($(date +%s) - began)) -lt 60 ] || fail "a skipped call is noticed late: $(cat log)"
    grep -v '^shim_mpi' log | grep -q 'rank [01]' || fail "no rank is named: $(cat log)"
fi

# ---- someone stops the job ----
"$CONVOY" selftest --only kernels,files --seconds 4 --threads 1 >log 2>&1 &
pid=$!
sleep 1
kill -USR1 $pid
wait $pid
code=$?
[ $code = 75 ] || fail "a stopped self-test ends with $code: $(cat log)"
contains log 'the self-test was stopped by a signal' || fail "it does not say why it ends: $(cat log)"
[ -z "$(ls -d convoy-selftest-* 2>/dev/null)" ] || fail "a stopped self-test leaves files"
exit $failed
