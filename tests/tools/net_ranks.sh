#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich
# net_ranks.sh: scripts/net_ranks.sh makes hosts that MPI takes for nodes, and removes everything afterwards. The test
# is skipped if the system does not allow it.
PATH=$PATH:/usr/sbin:/sbin
[ "$(id -u)" = 0 ] || { echo "needs root"; exit 77; }
for tool in ip tc unshare; do
    command -v $tool >/dev/null || { echo "there is no $tool"; exit 77; }
done
probe=cvyp$$
ip netns add $probe 2>/dev/null || { echo "no network namespaces here"; exit 77; }
able=1
ip netns exec $probe unshare --uts true 2>/dev/null || able=0
{ ip link add $probe type bridge && ip link del $probe; } 2>/dev/null || able=0
ip netns del $probe
[ $able = 1 ] || { echo "no bridges, or no host names of one's own, here"; exit 77; }

. "$CONVOY_SOURCE/tests/shell.inc"

# The process numbers of finished runs of which a namespace or a bridge is left. Others may be running meanwhile.
remains() {
    for run in $(ip netns list | sed -n 's/^cvy\([0-9]*\)-.*/\1/p') $(ip -o link show type bridge | sed -n 's/^[0-9]*: cvy\([0-9]*\):.*/\1/p'); do
        [ -d "/proc/$run" ] || echo "$run"
    done | sort -u
}
remains >before

ranks=$CONVOY_SOURCE/scripts/net_ranks.sh
# start WORDS...: runs net_ranks.sh with them, and returns its exit code. A hang is cut off and shown; then it tries once
# more, because MPICH has hung here once in many runs, before or in its connection of the ranks.
start() {
    for try in 1 2; do
        timeout 100 sh "$ranks" --mpiexec "$MPIEXEC" "$@" >"$work/out" 2>"$work/log"
        code=$?
        [ $code = 124 ] || return $code
        echo "try $try hangs: $*: $(cat "$work/log" "$work/out")"
    done
    return $code
}
start --hosts 2 --rate 1gbit -- "$CONVOY" doctor --max 16KiB --seconds 10 --threads 1 --json ||
    fail "it fails: $(cat "$work/log" "$work/out")"
grep -q '"nodes": 2, "ranks": 2' "$work/out" || fail "not two nodes: $(cat "$work/out")"
grep -q '"host": "host0"' "$work/out" && grep -q '"host": "host1"' "$work/out" || fail "no names: $(cat "$work/out")"
grep -q '"wrong": [1-9]' "$work/out" && fail "wrong sums: $(cat "$work/out")"
start -- sh -c 'exit 3' && fail "a command that fails is no fault"
sh "$ranks" --hosts many -- true >"$work/log" 2>&1 && fail "--hosts many is accepted"
grep -q 'whole numbers' "$work/log" || fail "--hosts many is not named: $(cat "$work/log")"
remains | comm -13 before - >left
[ ! -s left ] || fail "of these runs something is left: $(cat left)"
exit $failed
