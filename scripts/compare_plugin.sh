#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# compare_plugin.sh: measures the training of a PyTorch network on two ranks with convoy.torch and with
# DistributedDataParallel on gloo, in turns.
#
#     sh scripts/compare_plugin.sh --pytorch PYTHON [--network resnet50] [--batch 4] [--rate 1gbit|node] [--rounds 3] [--steps 5] [--build build/release]
#
# PYTHON has torch, torchvision and numpy. --batch is that of a rank; each rank has one thread. --rate: the ranks are on two hosts, which are
# network namespaces whose cards have this rate (scripts/net_ranks.sh: it needs root, ip and tc); "node": both are on this node. "alone" are
# two processes that train at the same time and exchange nothing. The output has the images/s of both ranks as medians with their range, and
# ratios, which are taken in each round. Run nothing else at the same time.
set -eu
cd "$(dirname "$0")/.."
usage() { sed -n '3,12s/^# \{0,1\}//p' "$0" >&2; exit 2; }
pytorch='' network=resnet50 batch=4 rate=1gbit rounds=3 steps=5 build=build/release
while [ $# -gt 0 ]; do
    case $1 in
    --pytorch | --network | --batch | --rate | --rounds | --steps | --build) [ $# -ge 2 ] || usage; eval "${1#--}=\$2"; shift 2 ;;
    *) usage ;;
    esac
done
[ -n "$pytorch" ] || usage
# shellcheck source=scripts/mpi_env.sh
. scripts/mpi_env.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
CONVOY_LIBRARY=$(cd "$build" && pwd)/libconvoy.so
PYTHONPATH=$PWD/python
export CONVOY_LIBRARY PYTHONPATH OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1

# run WHO WAY OPTION...: one row: round, who, images/s of both ranks.
run() {
    who=$1
    shift
    rm -f "$work/rendezvous"
    set -- "$pytorch" frameworks/run_torch_ranks.py --network "$network" --batch "$batch" --steps "$steps" --rendezvous "$work/rendezvous" --way "$@"
    if [ "$rate" = node ]; then
        mpiexec -n 2 "$@" >"$work/out" 2>"$work/err" || { echo "compare_plugin: $who fails: $(tail -n 3 "$work/err")" >&2; return 0; }
    else
        GLOO_SOCKET_IFNAME=eth0 sh scripts/net_ranks.sh --hosts 2 --rate "$rate" -- "$@" >"$work/out" 2>"$work/err" ||
            { echo "compare_plugin: $who fails: $(tail -n 3 "$work/err")" >&2; return 0; }
    fi
    speed=$(grep -o 'images/s [0-9.]*' "$work/out" | awk '{ sum += $2 } END { if (NR == 2) print sum }')
    [ -n "$speed" ] || { echo "compare_plugin: $who does not print the speed of two ranks: $(tail -n 3 "$work/out")" >&2; return 0; }
    echo "$round $who $speed" >>"$work/rows"
    echo "round $round: $who $speed images/s" >&2
}

round=1
while [ "$round" -le "$rounds" ]; do
    [ "$rate" = node ] && run alone alone
    run convoy convoy
    [ "$rate" = node ] || run convoy-bf16 convoy --wire bf16
    [ "$rate" = node ] || run convoy-delayed convoy --wire bf16 --delayed
    run ddp ddp
    round=$((round + 1))
done
[ -s "$work/rows" ] || exit 1
echo "$network, $batch samples a rank, two ranks of one thread, $rate, $rounds rounds in turns"
echo
awk '
    function sort(a, n,   i, j, t) { for (i = 2; i <= n; i++) for (j = i; j > 1 && a[j] < a[j - 1]; j--) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t } }
    function summary(a, n, digits,   m) { sort(a, n); m = n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2; return sprintf("%." digits "f (%." digits "f to %." digits "f)", m, a[1], a[n]) }
    function ratios(who, base,   r, n, list) { for (r = 1; r <= rounds; r++) if ((r, who) in value && (r, base) in value) list[++n] = value[r, who] / value[r, base]; return n ? summary(list, n, 2) : "" }
    { if ($1 > rounds) rounds = $1; value[$1, $2] = $3; if (!($2 in known)) { known[$2] = 1; order[++count] = $2 } }
    END {
        print "| | images/s (range) |\n|---|---|"
        for (i = 1; i <= count; i++) {
            n = 0
            for (r = 1; r <= rounds; r++) if ((r, order[i]) in value) list[++n] = value[r, order[i]]
            printf "| %s | %s |\n", order[i], summary(list, n, 2)
        }
        print ""
        for (i = 1; i <= count; i++) {
            if (order[i] ~ /convoy/ && ratios(order[i], "ddp") != "") print order[i] " to ddp: " ratios(order[i], "ddp")
            if (order[i] != "alone" && ratios(order[i], "alone") != "") print order[i] " to alone: " ratios(order[i], "alone")
        }
    }' "$work/rows"
