#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich
# no_locks.sh: on a file system whose flock() or fsync() cannot work, train, sweep, pack and doctor say so once, with the
# call, its error and what follows. A second run of the same host is refused, one after a kill is not; a copy on the node
# is refused; an fsync() that fails is an error.
. "$CONVOY_SOURCE/tests/shell.inc"

cat >shim.c <<'END'
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
static int answer(const char *name)
{
    const char *given = getenv(name);
    errno = given ? atoi(given) : 0;
    return errno ? -1 : 0;
}
int flock(int fd, int how) { return (void)fd, (void)how, answer("NO_FLOCK"); }
int setrlimit(__rlimit_resource_t what, const struct rlimit *limit)
{
    return what == RLIMIT_AS && answer("NO_RLIMIT") ? -1 : prlimit(0, what, limit, NULL);
}
int fsync(int fd) { return (void)fd, answer("NO_FSYNC"); }
END
${MPICC:-cc} -shared -fPIC -o shim.so shim.c || { echo "no compiler"; exit 77; }
export LD_PRELOAD="$work/shim.so"
cat >job.yaml <<END
model: {layers: [{fc: {channels: 4}}]}
data: {train: {format: synthetic, samples: 64, shape: [4], classes: 4}, threads: 1, cache: decoded}
train: {batch: 16, steps: 100000000, optimizer: {name: sgd, lr: 0.0001}}
log: {every: 10}
END
# once FILE TEXT: the text is there, once.
once() { [ "$(grep -c "$2" "$1")" = 1 ] || fail "expected once \"$2\": $(cat "$1")"; }
train() { "$CONVOY" train job.yaml --threads 1 --progress none "$@"; }

# ---- a run, a second one in its folder, and one after a kill ----
NO_FLOCK=37 # ENOLCK
export NO_FLOCK
"$CONVOY" train job.yaml --threads 1 --progress none --out run >log 2>&1 &
pid=$!
until grep -q '"step"' run/metrics.jsonl 2>/dev/null; do kill -0 $pid || break; sleep 0.02; done
once log "warning: run: the lock of a run's folder cannot work here: flock(): No locks available; a second run in this folder is refused only if it is on the same host"
refused 'run: another run uses this folder' "$CONVOY" train job.yaml --threads 1 --out run --resume
"$CONVOY" ls run >out 2>&1
grep -q 'has ended' out && fail "a run that lives is said to have ended: $(cat out)"
kill -KILL $pid
wait $pid 2>/dev/null
"$CONVOY" inspect run >out 2>&1
grep -q 'the run has ended, although STATUS says' out || fail "a killed run is not recognised: $(cat out)"
"$CONVOY" train job.yaml --threads 1 --out run --resume >log 2>&1 &
pid=$!
until grep -q 'resumed after step' log; do kill -0 $pid || break; sleep 0.02; done
kill -TERM $pid
wait $pid
[ $? = 75 ] || fail "a folder whose run was killed is refused: $(cat log)"
[ -e run/lock.owner ] && fail "the run that has ended has left lock.owner"

# ---- a search: once for all its trials ----
NO_FLOCK=95 # ENOTSUP
printf 'job: job.yaml\nset: {train.steps: 4, data.val: 10%%}\nspace: {train.seed: [1, 2, 3]}\nmetric: val_loss\n' >sweep.yaml
"$CONVOY" sweep sweep.yaml --out search --threads 1 >log 2>&1
once log 'search: the lock of a run.s folder cannot work here: flock(): Operation not supported'
# ---- the wisdom file ----
NO_FLOCK=38 # ENOSYS
CONVOY_WISDOM="$work/wisdom" train --out tuned --set plan.planning=measure --set train.steps=2 >log 2>&1
once log 'wisdom.lock: the lock of the wisdom file cannot work here: flock(): Function not implemented'
[ -s wisdom ] || fail "the wisdom file is not written without locks"
unset NO_FLOCK

# ---- fsync ----
NO_FSYNC=22 train --out unsafe --set train.steps=20 >log 2>&1 || fail "fsync() that cannot work is taken for a fault: $(cat log)"
once log 'making files durable cannot work here: fsync(): Invalid argument; what was written last may be lost'
NO_FSYNC=5 train --out broken --set train.steps=20 >log 2>&1 && fail "an error of fsync() is hidden: $(cat log)"
grep -q 'cannot sync.*Input/output error' log || fail "an error of fsync() is not named: $(cat log)"
NO_FSYNC=95 "$CONVOY" pack '{format: synthetic, samples: 64, shape: [4], classes: 4}' packed >log 2>&1 || fail "pack: $(cat log)"
once log 'making files durable cannot work here: fsync(): Operation not supported'

# ---- the process that reads HDF5 files ----
if "$CONVOY" info | grep -q '^hdf5  *yes'; then
    "$CONVOY" convert packed h5 --format hdf5 >log 2>&1 || fail "convert: $(cat log)"
    NO_RLIMIT=1 train --out h5run --set data.train=h5 --set train.steps=2 >log 2>&1 || fail "without a limit of memory: $(cat log)"
    once log 'the limit on the memory of the process that reads HDF5 files cannot work here: setrlimit(RLIMIT_AS): Operation not permitted'
fi

# ---- a copy on the node is not made without locks; doctor names what cannot work ----
NO_FLOCK=22
export NO_FLOCK
refused 'flock() fails: Invalid argument; without locks a run could remove the copy' \
    "$CONVOY" train job.yaml --threads 1 --out staged --set data.train=packed --set data.stage="$work/stage" --set train.steps=2
NO_FSYNC=22 "$CONVOY" doctor --out "$work" --threads 1 >log 2>&1
once log "the lock of a run's folder cannot work here: flock(): Invalid argument"
once log 'making files durable cannot work here'
exit $failed
