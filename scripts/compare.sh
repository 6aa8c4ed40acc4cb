#!/bin/sh
# compare.sh PEER [ROUNDS [MODEL:BATCH ...]]: convoy bench and another trainer's benchmark in turns, with the ratio round by round.
#
# PEER is a command in which NET and BATCH stand for the network and the batch, and which prints JSON with "images_per_s_mean", for example
#     sh scripts/compare.sh 'python3 pytorch_bench.py --net NET --batch BATCH' 5 hep-cnn:16 vgg-a:16
# Prints a row for each round, then the medians with the least and largest ratio. Run nothing else meanwhile.
set -eu
cd "$(dirname "$0")/.."
. scripts/mpi_env.sh
peer=${1:?usage: compare.sh 'PEER COMMAND with NET and BATCH' [ROUNDS [MODEL:BATCH ...]]}
rounds=${2:-3}
[ $# -gt 2 ] && shift 2 || set -- cifar-convnet:128 hep-cnn:16 alexnet-v2:64 vgg-a:16
threads=${OMP_NUM_THREADS:-$(getconf _NPROCESSORS_ONLN)}
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT

# The number behind "KEY": in JSON on standard input.
field() { sed -n "s/.*\"$1\": *\([0-9.eE+-]*\).*/\1/p" | head -n 1; }

round=1
while [ "$round" -le "$rounds" ]; do
    for job in "$@"; do
        net=${job%:*} batch=${job#*:}
        ours=$(build/release/convoy bench --model "$net" --batch "$batch" --threads "$threads" --json | field images_per_s)
        theirs=$(sh -c "$(printf '%s' "$peer" | sed "s/NET/$net/g; s/BATCH/$batch/g")" 2>/dev/null | field images_per_s_mean)
        echo "$net $batch $ours $theirs" | awk '{printf "%-16s batch %4d   convoy %9.2f   peer %9.2f   ratio %.2f\n", $1, $2, $3, $4, $3 / $4}'
        echo "$net $batch $ours $theirs" >>"$rows"
    done
    round=$((round + 1))
done

echo
for job in "$@"; do
    awk -v net="${job%:*}" '
        function median(a, n,   i, j, t) { for (i = 2; i <= n; i++) for (j = i; j > 1 && a[j] < a[j-1]; j--) { t = a[j]; a[j] = a[j-1]; a[j-1] = t }
                                           return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2 }
        $1 == net { n++; x[n] = $3; y[n] = $4; r[n] = $3 / $4; batch = $2 }
        END { printf "%-16s batch %4d   convoy %9.2f   peer %9.2f   ratio %.2f", net, batch, median(x, n), median(y, n), median(r, n)
              printf " (%.2f to %.2f in %d rounds)\n", r[1], r[n], n }' "$rows"
done
