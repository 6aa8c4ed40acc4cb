#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# compare_grids.sh: measures how good the search over process grids is: steps of every grid beside their prediction.
#
#     sh scripts/compare_grids.sh [--rounds 3] [--seconds 2] [--grids N] [--latency 60us] [--build build/release] [CASE...]
#
# A CASE is one of
#     NETWORK:BATCH:RANKS            on this node
#     NETWORK:BATCH:RANKS:RATE       every rank in a network namespace of its own, with links of this rate (1gbit;
#                                    scripts/net_ranks.sh, needs root); --latency is that of such a link
#     NETWORK:BATCH:RANKS:simulated  every rank on a node of the simulated platform ethernet-1g, but as fast as a core
#                                    of this machine; such a prediction has no rehearsal, because the clock of the
#                                    simulation has none either
# BATCH is the global batch. Without cases a dozen are run. Each rank has one thread. A row has a grid, its predicted and
# its measured step (median of the rounds' medians) and the difference. After the rows of a case: the grid that
# `parallel: auto` takes, and how much slower it is than the fastest measured one. With --grids a case of more grids tries
# N of them: half of them are those predicted to be the fastest, the others are spread evenly over the rest. Run nothing
# else at the same time, and have a core for each rank that is not simulated.
set -eu
usage() { sed -n '2,20s/^# \{0,1\}//p' "$0" >&2; exit 2; }

rounds=3 seconds=2 grids=100000 latency=60us build=build/release
while [ $# -gt 0 ]; do
    case $1 in
    --rounds | --seconds | --grids | --latency | --build)
        [ $# -ge 2 ] || usage
        eval "${1#--}=\$2"
        shift 2 ;;
    -*) usage ;;
    *) break ;;
    esac
done
[ $# -gt 0 ] || set -- cifar-convnet:64:2 resnet-20:64:2 resnet-110:64:2 googlenet:16:2 vgg-a:8:2 alexnet-v2:32:2 hep-cnn:8:2 \
    alexnet-v2:32:2:1gbit vgg-a:8:2:1gbit resnet-20:64:8:simulated alexnet-v2:32:8:simulated resnet-110:64:16:simulated
[ -x "$build/convoy" ] || { echo "compare_grids: there is no $build/convoy; build it, or name its folder with --build" >&2; exit 1; }
scripts=$(dirname "$0")
# shellcheck source=scripts/mpi_env.sh
. "$scripts/mpi_env.sh"
export OMP_NUM_THREADS=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CONVOY_WISDOM="$work/wisdom.json"

# Predictions without a rehearsal let the memory of a rank move 10 GB/s (src/comm/comm_network.c).
sed 's/^memory: .*/memory: 10e9/' "$scripts/../platforms/ethernet-1g.yaml" >"$work/platform.yaml"

plan() { "$build/convoy" plan "$net" --batch "$batch" --ranks "$ranks" --threads 1 --json "$@"; }

# Prints the time of a step in ms: measure NUMBER-OF-MICRO-BATCHES GRID-KEY PREDICTED-MS
measure() {
    if [ "$rate" = simulated ]; then
        "$build/convoy" simulate "$net" --global-batch "$batch" --ranks "$ranks" --platform "$work/platform.yaml" --rate measured \
            --planning measure --json --set "parallel=$2" --set "train.accumulate=$1"
    else
        steps=$(awk "BEGIN { n = int(1000 * $seconds / $3); print n < 5 ? 5 : n }")
        on_ranks "$build/convoy" bench --model "$net" --batch "$batch" --threads 1 --planning measure --steps "$steps" --json \
            --set "parallel=$2" --set "train.accumulate=$1"
    fi </dev/null >"$work/bench.json" 2>"$work/err" || { cat "$work/err" >&2; return 0; }
    sed -n 's/.*"\(ms_median\|step_ms\)": *\([0-9.e+-]*\).*/\2/p' "$work/bench.json" | head -n 1
}

on_ranks() {
    if [ -n "$rate" ]; then
        sh "$scripts/net_ranks.sh" --hosts "$ranks" --rate "$rate" -- "$@"
    else
        mpiexec -n "$ranks" "$@"
    fi
}

# Prints a line for each grid of plan.json that can be used, in the order of the prediction:
# predicted ms, pipeline, tensor, three spatial axes, micro-batches, interleave, name.
list_grids() {
    tr -d '\n' <"$1" | sed 's/{"grid"/\n{"grid"/g' | grep '"step_ms"' |
        sed -n 's/.*"grid": "\([^"]*\)".*"pipeline": \([0-9]*\).*"tensor": \([0-9]*\).*"space0": \([0-9]*\).*"space1": \([0-9]*\).*"space2": \([0-9]*\).*"micro_batches": \([0-9]*\).*"interleave": \([0-9]*\).*"step_ms": \([0-9.e+-]*\).*/\9 \2 \3 \4 \5 \6 \7 \8 \1/p'
}

median() { sort -g | awk '{ x[NR] = $1 } END { print NR ? (NR % 2 ? x[(NR + 1) / 2] : (x[NR / 2] + x[NR / 2 + 1]) / 2) : "nan" }'; }

: >"$work/all"
for case in "$@"; do
    net=${case%%:*} rest=${case#*:}
    batch=${rest%%:*} rest=${rest#*:}
    ranks=${rest%%:*} rate=
    [ "$ranks" = "$rest" ] || rate=${rest#*:}
    link=
    [ -z "$rate" ] || link="--link $latency,$rate"
    # shellcheck disable=SC2086
    case $rate in
    simulated)
        # the platform's links: 25 us to the switch and from it, 2 us for a message, 117.7 MB/s
        plan --node-ranks 1 --link 52us,941.6mbit --planning measure >"$work/plan.json" # times the kernels
        plan --node-ranks 1 --link 52us,941.6mbit --planning estimate >"$work/plan.json" ;;
    *) plan --planning measure $link >"$work/plan.json" ;;
    esac
    list_grids "$work/plan.json" >"$work/all.grids"
    awk -v most="$grids" '{ line[NR] = $0 }
        END { head = NR <= most ? NR : int((most + 1) / 2)
              for (i = 1; i <= head; i++) print line[i]
              for (k = 1; k <= most - head && head < NR; k++) print line[head + int(k * (NR - head) / (most - head))] }' "$work/all.grids" >"$work/grids"
    printf '\n%s\n%-52s %12s %12s %8s\n' "$case" grid "predicted ms" "measured ms" "off %"
    : >"$work/rows"
    round=1
    while [ "$round" -le "$rounds" ]; do # rounds outside, so that other work on the machine meets all grids
        number=0
        while read -r predicted pipeline tensor s0 s1 s2 micro interleave name; do
            number=$((number + 1))
            layers=all # which the tensor axis splits
            [ "$name" = "${name%(auto)*}" ] || layers=auto
            measure "$micro" "{pipeline: $pipeline, tensor: $tensor, spatial: [$s0, $s1, $s2], interleave: $interleave, tensor_layers: $layers}" \
                "$predicted" >>"$work/times.$number"
        done <"$work/grids"
        round=$((round + 1))
    done
    number=0
    while read -r predicted _ _ _ _ _ _ _ name; do
        number=$((number + 1))
        [ -s "$work/times.$number" ] || continue
        measured=$(median <"$work/times.$number")
        rm -f "$work/times.$number"
        off=$(awk "BEGIN { print 100 * ($predicted / $measured - 1) }")
        printf '%-52s %12.2f %12.2f %8.1f\n' "$name" "$predicted" "$measured" "$off"
        echo "$measured $off $number $name" >>"$work/rows"
    done <"$work/grids"
    awk -v all="$work/all" -v case="$case" '
        $3 == 1 { auto = $1 }
        best == "" || $1 < best { best = $1; name = $0; sub(/^[^ ]* [^ ]* [^ ]* /, "", name) }
        { off = $2 < 0 ? -$2 : $2; worst = off > worst ? off : worst }
        END { if (!NR) exit
              printf "auto is %.1f %% slower than the fastest, %s; the worst prediction is off by %.1f %%\n", 100 * (auto / best - 1), name, worst
              print 100 * (auto / best - 1), worst >>all }' "$work/rows"
done
awk '{ choice = $1 > choice ? $1 : choice; worst = $2 > worst ? $2 : worst
       near += $1 <= 5; good += $2 <= 15 }
     END { printf "\n%d cases: auto within 5 %% of the fastest in %d (worst %.1f %%); all predictions within 15 %% in %d (worst %.1f %%)\n", NR, near, choice, good, worst }' "$work/all"
