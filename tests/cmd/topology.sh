#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich mpi minimal
# topology.sh: a training on several ranks prints where they are, and warns if they share cores; a single rank prints
# nothing of this.
. "$CONVOY_SOURCE/tests/cmd/job.inc"

# train RANKS OPTION...: on ranks that are bound by the options in `tie`.
tie=
train() {
    ranks=$1
    shift
    rm -rf run
    # shellcheck disable=SC2086
    timeout 120 $MPIEXEC_N "$ranks" $tie "$CONVOY" train job.yaml --out run --progress none "$@" >out 2>err || fail "a training on $ranks ranks fails: $(cat err)"
}

train 2 --threads 1
grep -q '^node [^ ]*: ranks 0-1, [0-9]* cores\{0,1\}.*, 1 thread each, ' out || fail "the ranks' place is not said: $(cat out err)"
[ "$(getconf _NPROCESSORS_ONLN)" -lt 2 ] || ! grep -q 'some threads share a core' err || fail "two threads are too many: $(cat err)"
train 1 --threads 1
grep -q '^node ' out && fail "one rank says where it is: $(cat out)"
CONVOY_NODE_RANKS=1 train 2 --threads 1
[ "$(grep -c '^node [^ ]*: rank [01], ' out)" = 2 ] || fail "two nodes have no two lines: $(cat out)"

train 2 --threads 16
grep -q 'warning: node .* has 32 compute threads on .* some threads share a core, and each step waits for them: ' err || [ "$(getconf _NPROCESSORS_ONLN)" -gt 31 ] || fail "32 threads are not too many: $(cat err)"
if command -v taskset >/dev/null; then
    tie="taskset -c $(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/')"
    train 2
    grep -q 'warning: node .* has 2 compute threads on 1 \(core\|of its [0-9]* cores\), so some threads share a core, and each step waits' err || fail "two ranks on a core are fine: $(cat err)"
    grep -q ', 1 core, 1 thread each, ' out || fail "what they are tied to is not said: $(cat out)"
fi
exit $failed
