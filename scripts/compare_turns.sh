#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# compare_turns.sh: measures the training of a generator and a discriminator in turns (examples/cosmogan-256.yaml) against PyTorch.
#
#     sh scripts/compare_turns.sh --pytorch PYTHON [--batch 16] [--size 256] [--threads 2] [--rounds 3] [--seconds 20] [--steps 8]
#                                 [--variants 'eager channels_last'] [--build build/release]
#
# PYTHON is an interpreter that has PyTorch (scripts/peer_pytorch_gan.py). In each round both run once, and of PyTorch each of --variants, of
# which the fastest counts. A step is a pair of turns; its time is the median of --steps steps, after two that are left out. The output has
# images/s, medians over the rounds with their range, and the ratio, which is taken in each round. Run nothing else at the same time.
set -eu
usage() { sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2; }

pytorch='' batch=16 size=256 threads=2 rounds=3 seconds=20 steps=8 variants='eager channels_last' build=build/release
while [ $# -gt 0 ]; do
    case $1 in
    --pytorch | --batch | --size | --threads | --rounds | --seconds | --steps | --variants | --build)
        [ $# -ge 2 ] || usage
        eval "${1#--}=\$2"
        shift 2 ;;
    *) usage ;;
    esac
done
command -v "$pytorch" >/dev/null || { echo "compare_turns: name an interpreter that has PyTorch with --pytorch" >&2; exit 2; }
[ -x "$build/convoy" ] || { echo "compare_turns: there is no $build/convoy; build it, or name its folder with --build" >&2; exit 1; }
scripts=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

median() { sort -g | awk '{ x[NR] = $1 } END { if (NR) print NR % 2 ? x[(NR + 1) / 2] : (x[NR / 2] + x[NR / 2 + 1]) / 2 }'; }
field() { sed -n "s/.*\"$1\": *\([0-9.eE+-]*\).*/\1/p"; }

side=$((size / 16))
convoy() {
    rm -rf "$work/run"
    sed -e "s/channels: 131072/channels: $((512 * side * side))/" -e "s/\[512, 16, 16\]/[512, $side, $side]/" \
        -e "s/^  epochs: .*/  steps: $((steps + 2))/" "$scripts/../examples/cosmogan-256.yaml" >"$work/job.yaml"
    "$build/convoy" train "$work/job.yaml" --out "$work/run" --threads "$threads" --set train.batch="$batch" \
        --set log.every=1 --set data.train="{format: synthetic, classes: 1, shape: [1, $size, $size], samples: 256}" \
        --set data.augment='[{scale: 0.3}]' >"$work/out" 2>&1 ||
        { echo "compare_turns: convoy fails: $(tail -n 3 "$work/out")" >&2; exit 1; }
    grep '"kind": "step"' "$work/run/metrics.jsonl" | tail -n "$steps" | field images_per_s | median
}
peer() {
    for variant in $variants; do
        "$pytorch" "$scripts/peer_pytorch_gan.py" --batch "$batch" --size "$size" --threads "$threads" --seconds "$seconds" --variant "$variant" 2>"$work/err" |
            field images_per_s || { echo "compare_turns: PyTorch fails: $(tail -n 3 "$work/err")" >&2; exit 1; }
    done | sort -g | tail -n 1
}

round=1
while [ "$round" -le "$rounds" ]; do
    ours=$(convoy)
    theirs=$(peer)
    echo "$ours $theirs" >>"$work/rows"
    echo "round $round: convoy $ours, PyTorch $theirs images/s" >&2
    round=$((round + 1))
done
awk '
    function sorted(a, n,   i, j, t) { for (i = 2; i <= n; i++) for (j = i; j > 1 && a[j] < a[j - 1]; j--) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t } }
    function text(a, n) { sorted(a, n); return sprintf("%.3g (%.3g to %.3g)", n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2, a[1], a[n]) }
    { ours[NR] = $1; theirs[NR] = $2; ratio[NR] = $1 / $2 }
    END { print "convoy, images/s: " text(ours, NR); print "PyTorch, images/s: " text(theirs, NR); print "ratio: " text(ratio, NR) }' "$work/rows"
