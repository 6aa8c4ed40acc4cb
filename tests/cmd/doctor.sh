#!/bin/sh
# minimal
# doctor.sh: `convoy doctor` alone, on two ranks of a node, and on two nodes: its tables, its JSON, right sums by every way; no time is judged.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
fail() { echo "$*"; failed=1; }
cd "$work" || exit 1

# parses FILE: one JSON value: strings and scalars become a letter each, then lists and objects of letters become one, from the inside out.
parses() {
    left=$(sed -E 's/"([^"\\]|\\.)*"/s/g; s/-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?|true|false|null/v/g; s/ //g
        :a
        s/\[([sv](,[sv])*)?\]/v/g; s/\{(s:[sv](,s:[sv])*)?\}/v/g
        ta' "$1")
    [ "$left" = v ] || fail "$1 does not parse: $left is left of $(cat "$1")"
}

"$CONVOY" doctor >one || fail "it fails alone"
grep -q '^1 node, 1 rank; ' one || fail "no ranks: $(cat one)"
grep -q '^one rank: there is nothing to sum' one || fail "one rank sums: $(cat one)"

# shellcheck disable=SC2086
$MPIEXEC_N 2 "$CONVOY" doctor --max 64KiB --seconds 20 --threads 1 >two || fail "it fails on two ranks"
grep -q '^1 node, 2 ranks; memory of a node: \(not \)\{0,1\}shared$' two || fail "no nodes: $(cat two)"
grep -q '^node  host  *ranks  *threads  *cores  *processor$' two || fail "no table of nodes: $(cat two)"
grep -q 'thread level \(single\|funneled\|serialized\|multiple\)$' two || fail "no thread level: $(cat two)"
grep -q '^inside a node  *0  *1  *[0-9.]*  *[0-9.]*$' two || fail "no messages: $(cat two)"
grep -q '^ms .*doubling.*halving.*ring.*library' two || fail "not all ways: $(cat two)"
for size in '1 KiB' '4 KiB' '16 KiB' '64 KiB'; do
    [ "$(grep -c "^$size .*[0-9]\*" two)" = 2 ] || fail "not two rows of $size with a mark: $(cat two)"
done
grep -q '^256 KiB' two && fail "--max is passed: $(cat two)"

# Two ranks as two nodes, then four as two nodes of two, whose memory is shared where the system allows it.
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

"$CONVOY" doctor --max many >log 2>&1 && fail "--max many is accepted"
grep -q "the longest sum is 'many', expected a number of bytes" log || fail "--max is not named: $(cat log)"
exit $failed
