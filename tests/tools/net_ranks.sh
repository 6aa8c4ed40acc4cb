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

ranks=$CONVOY_SOURCE/scripts/net_ranks.sh
sh "$ranks" --hosts 2 --rate 1gbit --mpiexec "$MPIEXEC" -- "$CONVOY" doctor --max 16KiB --seconds 10 --threads 1 --json >"$work/json" 2>"$work/log" ||
    fail "it fails: $(cat "$work/log" "$work/json")"
grep -q '"nodes": 2, "ranks": 2' "$work/json" || fail "not two nodes: $(cat "$work/json")"
grep -q '"host": "host0"' "$work/json" && grep -q '"host": "host1"' "$work/json" || fail "no names: $(cat "$work/json")"
grep -q '"wrong": [1-9]' "$work/json" && fail "wrong sums: $(cat "$work/json")"
sh "$ranks" --mpiexec "$MPIEXEC" -- sh -c 'exit 3' >"$work/log" 2>&1 && fail "a command that fails is no fault"
# Only remains of finished runs count, because others may be running.
for left in $(ip netns list | sed -n 's/^cvy\([0-9]*\)-.*/\1/p') $(ip -o link show type bridge | sed -n 's/^[0-9]*: cvy\([0-9]*\):.*/\1/p'); do
    [ -d "/proc/$left" ] || fail "cvy$left is left"
done
sh "$ranks" --hosts many -- true >"$work/log" 2>&1 && fail "--hosts many is accepted"
grep -q 'whole numbers' "$work/log" || fail "--hosts many is not named: $(cat "$work/log")"
exit $failed
