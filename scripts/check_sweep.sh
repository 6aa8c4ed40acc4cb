#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check_sweep.sh: a search that is killed three times ends like its trials one by one, and costs little more core time.
#
#     sh scripts/check_sweep.sh [--build build/release] [--data cifar10-jpeg.tar.gz] [--epochs 6] [--seed N] [--keep FOLDER]
#
# The search has 24 trials of cifar-convnet on 2000 pictures of CIFAR-10 (train/<class>/*.jpg in the archive of --data;
# generated data without it), on two ranks, which train one trial each. kill -9 ends all ranks at three moments that
# depend on --seed, and --resume goes on. Then each trial is trained by itself with `convoy train`. The logs of all
# epochs must be equal, but for times. The script prints the core time of both, which is the user and system time of
# all processes, and fails if the search takes more than 1.1 times that of the trials. Core time says something on a
# busy machine, too; the times in the logs, which are printed for comparison, do not.
set -eu
usage() { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }

build=build/release data=../shared/data/cifar10-jpeg.tar.gz epochs=6 seed=$(date +%s) keep=
while [ $# -gt 0 ]; do
    case $1 in
    --build | --data | --epochs | --seed | --keep)
        [ $# -ge 2 ] || usage
        eval "${1#--}=\$2"
        shift 2 ;;
    *) usage ;;
    esac
done
[ -x "$build/convoy" ] || { echo "check_sweep: there is no $build/convoy; build it, or name its folder with --build" >&2; exit 1; }
# shellcheck source=scripts/mpi_env.sh
. "$(dirname "$0")/mpi_env.sh"
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive CONVOY_WISDOM=off CONVOY_SITE=off
CONVOY=$(cd "$build" && pwd)/convoy
export CONVOY
[ ! -f "$data" ] || data=$(cd "$(dirname "$data")" && pwd)/$(basename "$data")
if [ -n "$keep" ]; then
    mkdir -p "$keep"
    work=$(cd "$keep" && pwd)
else
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
fi

# ---- the job and the search ----
source="{format: synthetic, samples: 2000, shape: [3, 32, 32], classes: 10}"
if [ -f "$data" ]; then
    tar -xzf "$data" -C "$work" --wildcards 'train/*/00[0-9][0-9].jpg' 'train/*/01[0-9][0-9].jpg'
    source=$work/train
fi
cd "$work"
cat >job.yaml <<END
model: cifar-convnet
data: {train: $source, val: 20%, threads: 1, normalize: auto, augment: [{random_crop: {size: 32, pad: 4}}, mirror]}
train: {batch: 64, epochs: $epochs, optimizer: {name: sgd, lr: 0.05, momentum: 0.9}, metrics: [accuracy]}
checkpoint: {every: 1 epoch}
log: {every: 10}
END
cat >sweep.yaml <<'END'
job: job.yaml
space:
  train.optimizer.lr: [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02]
  train.optimizer.momentum: [0.5, 0.9]
  train.batch: [32, 64]
metric: accuracy
END
ntrials=24

# ---- the search, with kills ----
# Each rank notes its process number, so that it can be killed.
cat >rank.sh <<'END'
echo $$ >"pids/$$"
exec "$CONVOY" sweep sweep.yaml --out search --threads 1 "$@"
END

# core_seconds FILE: user and system time of the children, from the output of `times`.
core_seconds() {
    awk 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); s += 60 * t[1] + t[2] } printf "%.2f\n", s }' "$1"
}
# used PID: the core time of a process so far. A launcher whose ranks are killed does not always wait for all of them, so
# their time is read before.
used() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | awk -v hz="$(getconf CLK_TCK)" '{ print ($12 + $13) / hz }'; }
# start NUMBER [OPTION]: runs the search in the background. A subshell that has no other children notes its core time.
start() {
    rm -rf pids
    mkdir pids
    number=$1
    shift
    (
        mpiexec -n 2 sh rank.sh "$@" >"log.$number" 2>&1 && code=0 || code=$?
        times >"times.$number"
        exit $code
    ) &
    pid=$!
}
count() { grep -o "\"state\": \"$1\"" search/sweep.json 2>/dev/null | wc -l; }

# Three numbers of trials that have ended, in three thirds of the search, and pauses of up to three seconds after them.
moments=$(awk -v seed="$seed" 'BEGIN { srand(seed); for (i = 0; i < 3; i++) printf "%d:%.1f ", 1 + 7 * i + int(6 * rand()), 3 * rand() }')
echo "seed $seed: kills after so many trials, and so many seconds: $moments"
n=0 option=
for moment in $moments; do
    # shellcheck disable=SC2086
    start $n $option
    while kill -0 $pid 2>/dev/null && [ "$(count finished)" -lt "${moment%:*}" ]; do sleep 0.5; done
    sleep "${moment#*:}"
    [ "$(count finished)" -lt $ntrials ] || { echo "check_sweep: the search ended before kill $((n + 1)): take more --epochs" >&2; exit 1; }
    for p in pids/*; do
        used "${p#pids/}"
        kill -9 "${p#pids/}" 2>/dev/null || :
    done >"used.$n"
    wait $pid && { echo "check_sweep: the killed search ended well" >&2; exit 1; }
    echo "kill $((n + 1)): $(count finished) trials had ended, $(count running) were running"
    n=$((n + 1)) option=--resume
done
start $n --resume
wait $pid || { echo "check_sweep: the search ended with code $?" >&2; cat "log.$n" >&2; exit 1; }
[ "$(count finished)" = $ntrials ] || { echo "check_sweep: not all trials have ended" >&2; cat "log.$n" >&2; exit 1; }
search_s=$({ cat used.*; core_seconds "times.$n"; } | awk "{ s += \$1 } END { printf \"%.2f\", s }")

# ---- the trials by themselves ----
mkdir alone
trial=0
for lr in 0.0005 0.001 0.002 0.005 0.01 0.02; do
    for momentum in 0.5 0.9; do
        for batch in 32 64; do
            trial=$((trial + 1))
            echo "$trial --set train.optimizer.lr=$lr --set train.optimizer.momentum=$momentum --set train.batch=$batch"
        done
    done
done >trials
(
    while read -r trial sets; do
        # shellcheck disable=SC2086
        "$CONVOY" train job.yaml $sets --threads 1 --progress none --out "alone/$trial" >"alone/log.$trial" 2>&1 </dev/null ||
            { cat "alone/log.$trial" >&2; exit 1; }
    done <trials
    times >times.alone
)
alone_s=$(core_seconds times.alone)

# ---- comparison ----
# epochs RUN: the lines of the epochs, without times.
epochs() { grep '"kind": *"epoch"' "$1/metrics.jsonl" | sed 's/, *"\(seconds\|images_per_s\)": *[^,}]*//g'; }
different=0
for i in $(seq 1 $ntrials); do
    epochs "alone/$i" >expected
    epochs "$(printf 'search/trial-%04d' "$i")" >got
    [ -s expected ] && cmp -s expected got || { echo "trial $i differs:"; diff expected got || :; different=1; }
done
# The time of all epochs with their validations, by the logs.
logged() { cat "$@" | grep '"kind": *"epoch"' | sed 's/.*"seconds": *\([^,}]*\).*/\1/' | awk '{ s += $1 } END { printf "%.2f\n", s }'; }
awk -v search="$search_s" -v alone="$alone_s" -v log_s="$(logged alone/*/metrics.jsonl)" 'BEGIN {
    printf "core time of the search, %s s; of the trials one by one, %s s: ratio %.3f\n", search, alone, search / alone
    printf "the epochs of the trials one by one, by their logs, %s s: ratio %.3f\n", log_s, search / log_s
    exit !(search <= 1.1 * alone) }' || { echo "check_sweep: the search takes more than 1.1 times the core time of the trials" >&2; exit 1; }
[ $different = 0 ] || { echo "check_sweep: the killed search has other results" >&2; exit 1; }
echo "all $ntrials trials have the same epochs as the trials one by one"
