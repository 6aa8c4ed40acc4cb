#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# compare_pipeline.sh: measures a pipeline of a CIFAR ResNet against data parallelism on the same ranks and the same global batch, for convoy and
# for PyTorch, in turns.
#
#     sh scripts/compare_pipeline.sh [--pytorch PYTHON] [--layers 1001] [--batch 32] [--micro 8] [--ranks 2] [--rounds 3] [--seconds 20]
#                                    [--variants 'eager channels_last'] [--build build/release]
#
# PYTHON is an interpreter that has PyTorch (scripts/peer_pytorch_pipeline.py: torch.distributed.pipelining with Schedule1F1B, and
# DistributedDataParallel, both over gloo); without --pytorch only convoy runs. Of --variants the fastest counts, in each round and for each
# of the two modes. Every rank has one thread. The pipeline has --micro micro-batches; convoy runs it with one and with two stages on each rank
# (interleaved). A row has the images/s of all ranks together as median, least and largest of the rounds, the share of data parallelism, which is
# taken in each round, and the largest peak memory of a rank. PyTorch alone needs about 0.5 GB, which its row names too. The last lines have
# the ratios of convoy to PyTorch. Run nothing else at the same time.
set -eu
usage() { sed -n '2,14s/^# \{0,1\}//p' "$0" >&2; exit 2; }

layers=1001 batch=32 micro=8 ranks=2 rounds=3 seconds=20 variants='eager channels_last' build=build/release pytorch=
while [ $# -gt 0 ]; do
    case $1 in
    --layers | --batch | --micro | --ranks | --rounds | --seconds | --variants | --build | --pytorch)
        [ $# -ge 2 ] || usage
        eval "${1#--}=\$2"
        shift 2 ;;
    *) usage ;;
    esac
done
[ -z "$pytorch" ] || command -v "$pytorch" >/dev/null || { echo "compare_pipeline: there is no program '$pytorch'" >&2; exit 2; }
[ -x "$build/convoy" ] || { echo "compare_pipeline: there is no $build/convoy; build it, or name its folder with --build" >&2; exit 1; }
scripts=$(dirname "$0")
# shellcheck source=scripts/mpi_env.sh
. "$scripts/mpi_env.sh"
export OMP_NUM_THREADS=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# field KEY FILE: the number after "KEY": in JSON.
field() { sed -n "s/.*\"$1\": *\([0-9.eE+-]*\).*/\1/p" "$2" | tail -n 1; }

# row WHO MODE IMAGES/S GB GB-BEFORE
row() {
    echo "$round $1 $2 $3 $4 $5" >>"$work/rows"
    echo "round $round: $1 $2: $3 images/s, $4 GB a rank" >&2
}

# ours MODE OPTION...
ours() {
    mode=$1
    shift
    if ! mpiexec -n "$ranks" "$build/convoy" bench --model "resnet-$layers" --batch "$batch" --threads 1 --json "$@" >"$work/out" 2>"$work/err"; then
        echo "compare_pipeline: convoy, $mode fails: $(head -n 3 "$work/err")" >&2
        return 0
    fi
    row convoy "$mode" "$(field images_per_s "$work/out")" "$(field peak_rss_bytes_largest_rank "$work/out" | awk '{ print $1 / 1e9 }')" 0
}

# theirs MODE VARIANT: every rank is pinned to a core, if there are enough.
theirs() {
    i=0 pids=
    rm -f "$work"/out.* "$work/rendezvous"
    while [ $i -lt "$ranks" ]; do
        pin=
        [ "$ranks" -gt "$(getconf _NPROCESSORS_ONLN)" ] || pin="taskset -c $i"
        # shellcheck disable=SC2086
        $pin "$pytorch" "$scripts/peer_pytorch_pipeline.py" --layers "$layers" --batch "$batch" --mode "$1" --micro "$micro" --variant "$2" --seconds "$seconds" \
            --rank $i --ranks "$ranks" --rendezvous "$work/rendezvous" >"$work/out.$i" 2>"$work/err.$i" &
        pids="$pids $!"
        i=$((i + 1))
    done
    for pid in $pids; do
        wait "$pid" || { echo "compare_pipeline: PyTorch, $1, $2 fails: $(tail -n 1 "$work"/err.*)" >&2; wait; return 0; }
    done
    cat "$work"/out.* | sed 's/.*"peak_rss_gb": *\([0-9.]*\), "base_rss_gb": *\([0-9.]*\).*/\1 \2/' | sort -n | tail -n 1 >"$work/memory"
    read -r peak before <"$work/memory"
    row pytorch "$1" "$(field images_per_s "$work/out.0")" "$peak" "$before"
}

round=1
while [ "$round" -le "$rounds" ]; do
    ours data
    ours pipeline --set "parallel={pipeline: $ranks}" --set "train.accumulate=$micro"
    ours interleaved --set "parallel={pipeline: $ranks, interleave: 2}" --set "train.accumulate=$micro"
    for variant in ${pytorch:+$variants}; do
        theirs data "$variant"
        theirs pipeline "$variant"
    done
    round=$((round + 1))
done

[ -s "$work/rows" ] || exit 1
printf 'resnet-%s, global batch %s, %s ranks of one thread, %s micro-batches in a pipeline; %s rounds in turns\n\n' "$layers" "$batch" "$ranks" "$micro" "$rounds"
awk '
    function sort(a, n,   i, j, t) { for (i = 2; i <= n; i++) for (j = i; j > 1 && a[j] < a[j - 1]; j--) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t } }
    # "median (least to largest)" of a / b over the rounds in which both ran; b "": of a
    function spread(a, b, format,   r, n, list) {
        for (r = 1; r <= rounds; r++)
            if ((r, a) in speed && (b == "" || (r, b) in speed)) list[++n] = speed[r, a] / (b == "" ? 1 : speed[r, b])
        if (!n) return "-"
        sort(list, n)
        return sprintf(format " (" format " to " format ")", n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2, list[1], list[n])
    }
    {
        k = $2 " " $3
        if ($1 > rounds) rounds = $1
        if (!(($1, k) in speed) || $4 > speed[$1, k]) speed[$1, k] = $4
        if ($5 > memory[k]) { memory[k] = $5; before[k] = $6 }
        if (!(k in known)) { known[k] = 1; order[++count] = k }
    }
    END {
        print "| | images/s (range) | of its data parallelism | GB a rank |\n|---|---|---|---|"
        for (i = 1; i <= count; i++) {
            k = order[i]
            split(k, word, " ")
            share = word[2] == "data" ? "" : spread(k, word[1] " data", "%.3f")
            apart = before[k] ? sprintf(" (%.2f before the network)", before[k]) : ""
            printf "| %s | %s | %s | %.2f%s |\n", k, spread(k, "", "%.3g"), share, memory[k], apart
        }
        if (!("pytorch data" in known)) exit
        print ""
        print "convoy to PyTorch, data parallel: " spread("convoy data", "pytorch data", "%.2f")
        print "convoy to PyTorch, pipeline: " spread("convoy pipeline", "pytorch pipeline", "%.2f")
        print "convoy interleaved to PyTorch, pipeline: " spread("convoy interleaved", "pytorch pipeline", "%.2f")
    }' "$work/rows"
