#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# compare_loader.sh: compares convoy's loader with PyTorch's DataLoader on one folder of JPEGs, in turns.
#
#     sh scripts/compare_loader.sh --pytorch PYTHON [--rounds 3] [--threads '1 2'] [--seconds 5] [--build build/release] FOLDER
#
# PYTHON is an interpreter that has torch and torchvision (scripts/peer_loader.py). FOLDER has one sub-folder for each class. All
# sides decode, do a random resized crop to 224, mirror and normalise, in batches of 32, from files that are in memory. convoy uses
# T threads, and PyTorch T workers with each of its two decoders, of which the faster one counts. A row has the medians of the
# rounds, and the ratio of convoy to the faster peer in each round: median, least and largest. Run nothing else at the same time.
set -eu
usage() { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }

rounds=3 seconds=5 build=build/release threads='1 2' pytorch= folder=
while [ $# -gt 0 ]; do
    case $1 in
    --rounds | --seconds | --build | --threads | --pytorch)
        [ $# -ge 2 ] || usage
        eval "${1#--}=\$2"
        shift 2 ;;
    -*) usage ;;
    *) [ -z "$folder" ] || usage
        folder=$1
        shift ;;
    esac
done
[ -n "$pytorch" ] && [ -n "$folder" ] || usage
scripts=$(dirname "$0")
[ -x "$build/convoy" ] || { echo "compare_loader: there is no $build/convoy; build it, or name its folder with --build" >&2; exit 1; }
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT

# run WHO COMMAND...: writes one row: round, threads, who, images/s.
run() {
    who=$1
    shift
    if ! json=$("$@"); then
        echo "compare_loader: $who fails: $*" >&2
        exit 1
    fi
    speed=$(printf '%s\n' "$json" | sed -n 's/.*"images_per_s": *\([0-9.eE+-]*\).*/\1/p' | tail -n 1)
    echo "$round $t $who ${speed:-0}" >>"$rows"
    echo "round $round, $t threads: $who ${speed:-0} images/s" >&2
}

augment='[{random_resized_crop: 224}, mirror, {normalize: {mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}}]'
round=1
while [ "$round" -le "$rounds" ]; do
    for t in $threads; do
        run convoy "$build/convoy" bench --data "$folder" --augment "$augment" --threads "$t" --batch 32 --seconds "$seconds" --json
        for decoder in torchvision pillow; do
            run "$decoder" "$pytorch" "$scripts/peer_loader.py" "$folder" --workers "$t" --decoder "$decoder" --seconds "$seconds"
        done
    done
    round=$((round + 1))
done

echo '| threads | convoy | torchvision.io | Pillow | ratio (range) |'
echo '|---|---|---|---|---|'
for t in $threads; do
    awk -v t="$t" '
        function sort(a, n,   i, j, x) {
            for (i = 2; i <= n; i++) for (j = i; j > 1 && a[j] < a[j - 1]; j--) { x = a[j]; a[j] = a[j - 1]; a[j - 1] = x }
        }
        function median(a, n) { sort(a, n); return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2 }
        function middle(who,   i, list) {
            for (i = 1; i <= n; i++) list[i] = speed[i, who]
            return median(list, n)
        }
        $2 == t { speed[$1, $3] = $4; if ($1 > n) n = $1 }
        END {
            for (i = 1; i <= n; i++) {
                best = speed[i, "torchvision"] > speed[i, "pillow"] ? speed[i, "torchvision"] : speed[i, "pillow"]
                ratio[i] = best > 0 ? speed[i, "convoy"] / best : 0
            }
            m = median(ratio, n)
            printf "| %s | %.0f | %.0f | %.0f | %.2f (%.2f to %.2f) |\n", t, middle("convoy"), middle("torchvision"), middle("pillow"), m, ratio[1], ratio[n]
        }' "$rows"
done
