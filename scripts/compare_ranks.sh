#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# compare_ranks.sh: measures what summing gradients costs on one node: ranks that train together, and as many alone.
#
#     sh scripts/compare_ranks.sh [--pytorch PYTHON] [--ranks 2] [--rounds 3] [--seconds 5] [--build build/release] [NETWORK:BATCH...]
#
# BATCH is that of each rank. Every process has one thread and a core of its own. A row has, for convoy and for PyTorch
# (DistributedDataParallel on gloo, frameworks/run_pytorch.py), the images/s of all ranks together, the sum of images/s of
# all processes alone, and their ratio as median, least and largest of the rounds. Run nothing else at the same time.
set -eu
usage() { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }

rounds=3 seconds=5 ranks=2 build=build/release pytorch=
while [ $# -gt 0 ]; do
    case $1 in
    --rounds | --seconds | --ranks | --build | --pytorch)
        [ $# -ge 2 ] || usage
        eval "${1#--}=\$2"
        shift 2 ;;
    -*) usage ;;
    *) break ;;
    esac
done
[ $# -gt 0 ] || set -- alexnet-v2:32 vgg-a:8 resnet-50:8 hep-cnn:8
[ -x "$build/convoy" ] || { echo "compare_ranks: there is no $build/convoy; build it, or name its folder with --build" >&2; exit 1; }
scripts=$(dirname "$0")
# shellcheck source=scripts/mpi_env.sh
. "$scripts/mpi_env.sh"
export OMP_NUM_THREADS=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Prints the sum of the numbers after one of KEYS (a regular expression) in the files.
total() {
    keys=$1
    shift
    cat "$@" | sed -nE "s/.*\"($keys)\": *([0-9.eE+-]*).*/\2/p" | awk '{ s += $1 } END { print s + 0 }'
}

# alone COMMAND...: starts one process a core, all at once, and adds their speeds.
alone() {
    rm -f "$work"/out.*
    i=0
    while [ $i -lt "$ranks" ]; do
        taskset -c $i "$@" >"$work/out.$i" 2>"$work/err.$i" &
        i=$((i + 1))
    done
    wait
    total 'images_per_s|images_per_s_mean' "$work"/out.*
}

ours_together() {
    mpiexec -n "$ranks" "$build/convoy" bench --model "$net" --batch $((batch * ranks)) --threads 1 --json >"$work/pair" 2>"$work/err" || cat "$work/err" >&2
    total images_per_s "$work/pair"
}

ddp_together() {
    rm -f "$work"/out.*
    i=0
    while [ $i -lt "$ranks" ]; do
        taskset -c $i "$pytorch" "$scripts/../frameworks/run_pytorch.py" --net "$net" --batch "$batch" --threads 1 --seconds "$seconds" --rank $i --ranks "$ranks" \
            --rendezvous "$work/rendezvous.$round.$net" >"$work/out.$i" 2>"$work/err.$i" &
        i=$((i + 1))
    done
    wait
    total images_per_s_mean "$work"/out.*
}

row() { echo "$net $batch $1 $2 $3" >>"$work/rows"; echo "round $round: $net batch $ranks x $batch: $1 together $2, alone $3 images/s" >&2; }

round=1
while [ "$round" -le "$rounds" ]; do
    for job in "$@"; do
        net=${job%:*} batch=${job#*:}
        apart=$(alone "$build/convoy" bench --model "$net" --batch "$batch" --threads 1 --json)
        row convoy "$(ours_together)" "$apart"
        [ -n "$pytorch" ] || continue
        apart=$(alone "$pytorch" "$scripts/../frameworks/run_pytorch.py" --net "$net" --batch "$batch" --threads 1 --seconds "$seconds")
        row pytorch "$(ddp_together)" "$apart"
    done
    round=$((round + 1))
done

printf '%s ranks of one thread: images/s, medians of %s rounds in turns\n\n' "$ranks" "$rounds"
printf '| network, batch a rank | convoy together | alone | ratio (range) | PyTorch together | alone | ratio (range) |\n|---|---|---|---|---|---|---|\n'
for job in "$@"; do
    awk -v net="${job%:*}" -v batch="${job#*:}" '
        function median(a, n,   i, j, t) {
            for (i = 2; i <= n; i++) for (j = i; j > 1 && a[j] < a[j - 1]; j--) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t }
            return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2
        }
        function columns(who,   i, n, together, alone, ratio) {
            n = rows[who]
            if (!n) return " - | - | - |"
            for (i = 1; i <= n; i++) { together[i] = t[who, i]; alone[i] = a[who, i]; ratio[i] = alone[i] > 0 ? together[i] / alone[i] : 0 }
            return sprintf(" %.4g | %.4g | %.3f (%s) |", median(together, n), median(alone, n), median(ratio, n), sprintf("%.3f to %.3f", ratio[1], ratio[n]))
        }
        $1 == net && $2 == batch { n = ++rows[$3]; t[$3, n] = $4; a[$3, n] = $5 }
        END { printf "| %s, %s |%s%s\n", net, batch, columns("convoy"), columns("pytorch") }' "$work/rows"
done
