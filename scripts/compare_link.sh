#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# compare_link.sh: measures how much faster a step is over a slow link if ranks share layers (tensor parallelism) than if
# they share the batch alone.
#
#     sh scripts/compare_link.sh [--model vgg-19] [--batch 4] [--hosts 2] [--rate 1gbit] [--rounds 3] [--parallel MAP] [--set KEY=VALUE]
#                                [--build build/release] [--mpiexec mpiexec]
#
# Each host has one rank of one thread; --batch is that of each rank. The hosts are network namespaces whose cards have this rate in each
# direction (scripts/net_ranks.sh: it needs root, ip and tc). MAP is the value of the job's key `parallel` that is compared with data
# parallelism: {tensor: 2, tensor_layers: auto} by default, where the layers that are not split share the samples. --set is given to both.
# In each round both run once. The output has the images/s of all ranks, the exposed communication of a step and the peak memory of a rank as
# medians, the range of the images/s, and the ratio, which is taken in each round. Run nothing else at the same time.
set -eu
usage() { sed -n '2,13s/^# \{0,1\}//p' "$0" >&2; exit 2; }

model=vgg-19 batch=4 hosts=2 rate=1gbit rounds=3 parallel='{tensor: 2, tensor_layers: auto}' set='' build=build/release mpiexec=${MPIEXEC:-mpiexec}
while [ $# -gt 0 ]; do
    case $1 in
    --model | --batch | --hosts | --rate | --rounds | --parallel | --set | --build | --mpiexec)
        [ $# -ge 2 ] || usage
        eval "${1#--}=\$2"
        shift 2 ;;
    *) usage ;;
    esac
done
[ -x "$build/convoy" ] || { echo "compare_link: there is no $build/convoy; build it, or name its folder with --build" >&2; exit 1; }
scripts=$(dirname "$0")
export OMP_NUM_THREADS=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

field() { sed -n "s/.*\"$1\": *\([0-9.eE+-]*\).*/\1/p" "$2" | tail -n 1; }

# run WHO OPTION...: one row: round, who, images/s, exposed ms, GB.
run() {
    who=$1
    shift
    if ! sh "$scripts/net_ranks.sh" --hosts "$hosts" --rate "$rate" --mpiexec "$mpiexec" -- \
        "$build/convoy" bench --model "$model" --batch $((batch * hosts)) --threads 1 --json ${set:+--set "$set"} "$@" >"$work/out" 2>"$work/err"; then
        echo "compare_link: $who fails: $(head -n 3 "$work/err")" >&2
        return 0
    fi
    gb=$(field peak_rss_bytes_largest_rank "$work/out" | awk '{ print $1 / 1e9 }')
    echo "$round $who $(field images_per_s "$work/out") $(field exposed_comm_ms "$work/out") $gb" >>"$work/rows"
    echo "round $round: $(tail -n 1 "$work/rows" | cut -d ' ' -f 2-) (images/s, ms exposed, GB a rank)" >&2
}

round=1
while [ "$round" -le "$rounds" ]; do
    run data
    run mixed --set "parallel=$parallel"
    round=$((round + 1))
done

[ -s "$work/rows" ] || exit 1
printf '%s, %s samples a rank, %s hosts of one rank and one thread, %s; mixed is parallel: %s; %s rounds in turns\n\n' "$model" "$batch" "$hosts" "$rate" "$parallel" "$rounds"
awk '
    function sort(a, n,   i, j, t) { for (i = 2; i <= n; i++) for (j = i; j > 1 && a[j] < a[j - 1]; j--) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t } }
    function median(a, n) { sort(a, n); return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2 }
    function column(who, what,   r, n, list) { for (r = 1; r <= rounds; r++) if ((r, who, what) in value) list[++n] = value[r, who, what]; return n ? median(list, n) : 0 }
    function range(who,   r, n, list) { for (r = 1; r <= rounds; r++) if ((r, who, 3) in value) list[++n] = value[r, who, 3]; sort(list, n); return n ? sprintf("%.3g to %.3g", list[1], list[n]) : "-" }
    { if ($1 > rounds) rounds = $1; for (i = 3; i <= 5; i++) value[$1, $2, i] = $i; if (!($2 in known)) { known[$2] = 1; order[++count] = $2 } }
    END {
        print "| | images/s (range) | exposed communication, ms | GB a rank |\n|---|---|---|---|"
        for (i = 1; i <= count; i++)
            printf "| %s | %.3g (%s) | %.1f | %.2f |\n", order[i], column(order[i], 3), range(order[i]), column(order[i], 4), column(order[i], 5)
        for (r = 1; r <= rounds; r++) if ((r, "data", 3) in value && (r, "mixed", 3) in value) ratio[++n] = value[r, "mixed", 3] / value[r, "data", 3]
        if (n) { m = median(ratio, n); printf "\nmixed to data: %.2f (%.2f to %.2f)\n", m, ratio[1], ratio[n] }
    }' "$work/rows"
