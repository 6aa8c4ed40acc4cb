#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check_tune.sh: how good `convoy tune` is: its settings beside the best of an exhaustive sweep.
#
#     sh scripts/check_tune.sh [--batch 16,32,64] [--seconds 2] [--build build/release] NETWORK
#
# The sweep measures every batch with every split of two cores, and with two ranks also every combination of comm.overlap
# (true, forward, false), comm.progress (poll, thread) and comm.bucket (auto, 256 KiB, 1, 4 and 16 MiB).
# Then the best of the sweep and the settings of `convoy tune` are measured five times in turns. It prints the medians,
# their ratio, and the numbers of measurements. It takes about a minute for each fifteen settings. Run nothing else.
set -eu
usage() { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }

batches=16,32,64 seconds=2 build=build/release
while [ $# -gt 0 ]; do
    case $1 in
    --batch) [ $# -ge 2 ] || usage; batches=$2; shift 2 ;;
    --seconds | --build) [ $# -ge 2 ] || usage; eval "${1#--}=\$2"; shift 2 ;;
    -*) usage ;;
    *) break ;;
    esac
done
[ $# -eq 1 ] || usage
[ -x "$build/convoy" ] || { echo "check_tune: there is no $build/convoy; build it, or name its folder with --build" >&2; exit 1; }
# shellcheck source=scripts/mpi_env.sh
. "$(dirname "$0")/mpi_env.sh"
CONVOY=$(cd "$build" && pwd)/convoy
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CONVOY_WISDOM="$work/wisdom.json"
cd "$work"

cat >sweep.yaml <<END
title: All settings
experiments:
  one: {model: $1, batch: [$batches], ranks: 1, threads: [1, 2], repeats: 1, seconds: $seconds}
  two:
    model: $1
    batch: [$batches]
    ranks: 2
    threads: 1
    comm.progress: [poll, thread]
    comm.overlap: ["true", forward, "false"]
    comm.bucket: [auto, 256 KiB, 1 MiB, 4 MiB, 16 MiB]
    repeats: 1
    seconds: $seconds
END
"$CONVOY" study sweep.yaml --out sweep
"$CONVOY" tune "$1" --batch "$batches" --seconds "$seconds" --out tune

# The best line of the sweep as a case of a study: "model=.. batch=.. ..", by the median step.
best=$(sed -n 's/^{"key": "\([^"]*\)".*"batch": \([0-9]*\), "mode".*"ms_median": \([0-9.e+-]*\).*/\2 \3 \1/p' sweep/results.jsonl |
    awk '{ speed = $1 / $2; if (speed > most) { most = speed; $1 = $2 = ""; line = $0 } } END { sub(/^ */, "", line); print line }')
value() { echo "$best" | sed -n "s/.* $1=\(.*\)/\1/p" | sed 's/ [a-z.]*=.*//'; }
profile() { sed -n "s/^ *$1: //p" tune/profile.yaml; }
experiment() { # NAME BATCH RANKS THREADS PROGRESS OVERLAP BUCKET
    echo "  $1: {model: $model, batch: $2, ranks: $3, threads: $4, repeats: 5, seconds: $seconds"
    [ -z "$5" ] || echo "    , comm.progress: $5, comm.overlap: \"$6\", comm.bucket: $7"
    echo "  }"
}
model=$1
{
    echo "title: The best of both"
    echo "experiments:"
    experiment sweep "$(value batch)" "$(value ranks)" "$(value threads)" "$(value comm.progress)" "$(value comm.overlap)" "$(value comm.bucket)"
    experiment tune "$(profile train.batch)" "$(profile ranks)" "$(profile threads)" "$(profile comm.progress)" "$(profile comm.overlap)" "$(profile comm.bucket)"
} >both.yaml
"$CONVOY" study both.yaml --out both --quiet >/dev/null
speeds() { # images/s by the median step of each measurement, in order of size
    sed -n "s/^{\"key\": \"$1 .*\"batch\": \([0-9]*\), \"mode\".*\"ms_median\": \([0-9.e+-]*\).*/\1 \2/p" both/results.jsonl |
        awk '{ printf "%.0f\n", 1000 * $1 / $2 }' | sort -g
}
median() { speeds "$1" | sed -n 3p; }
range() { echo "$(median "$1") images/s ($(speeds "$1" | sed -n 1p) to $(speeds "$1" | sed -n 5p))"; }

echo
echo "sweep: $(grep -c . sweep/results.jsonl) measurements, $(range sweep): $best"
echo "tune:  $(grep -c . tune/results.jsonl) measurements, $(range tune): $(tr '\n' ' ' <tune/profile.yaml | sed 's/.*them\. *//')"
awk -v a="$(median tune)" -v b="$(median sweep)" 'BEGIN { printf "tune to sweep: %.3f\n", a / b }'
