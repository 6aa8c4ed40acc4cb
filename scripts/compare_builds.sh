#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# compare_builds.sh: shows that two builds of convoy train alike, to the bit, by the same short jobs with both commands.
#
#     sh scripts/compare_builds.sh [--record DIR] [--keep DIR] OLD/convoy NEW/convoy [JOB...]
#
# It prints a line for each job, `same` or `DIFFERENT: what`, and a last line that counts them. Exit code 0: all are
# the same. JOB is the name of a job or a pattern such as 'resume*'. All jobs take one to two minutes a build on two
# cores. --record keeps the results of OLD in a folder and uses them the next time, if job and processor are the same;
# then OLD may be -, and is not run. --keep leaves the files of jobs that differ in a folder.
#
# For each job it compares: the losses and learning rates of all steps, as they are written; the tensors of the last
# checkpoint (weights and optimiser state: names, shapes, a hash of all bytes) and of `convoy export`; the scores of
# each epoch and of `convoy test`; the numbers of the report page except times. Numbers are compared without their
# keys if possible, so keys may be renamed. Other kernels or sizes in plan.json are shown, but are no difference.
#
# Jobs resume-* begin with OLD and are ended by NEW, and must end as the uninterrupted run of OLD. In the job
# old-files, NEW reads a whole run of OLD. So both builds must read today's keys and files.
#
# Jobs run with one thread a rank and without measured kernel times, so each gives the same bits in every run. To
# check this, compare a build with itself. CONVOY_MPIEXEC is the launcher, if not mpiexec.
set -u
usage() { sed -n '2,20s/^# \{0,1\}//p' "$0" >&2; exit 2; }

record='' keep=''
while [ $# -gt 0 ]; do
    case $1 in
    --record | --keep)
        [ $# -ge 2 ] || usage
        mkdir -p "$2" || exit 1
        eval "${1#--}=\$(cd \"\$2\" && pwd)"
        shift 2 ;;
    -) break ;;
    -*) usage ;;
    *) break ;;
    esac
done
[ $# -ge 2 ] || usage
# shellcheck source=scripts/mpi_env.sh
. "$(dirname "$0")/mpi_env.sh"

# Prints the full path of a command, for jobs that run in their own folders.
command_at() {
    if [ ! -x "$1" ] || [ -d "$1" ]; then
        echo "compare_builds: there is no command $1" >&2
        return 1
    fi
    echo "$(cd "$(dirname "$1")" && pwd)/$(basename "$1")"
}
new=$(command_at "$2") || exit 2
old=$1
[ "$old" = - ] || old=$(command_at "$1") || exit 2
[ "$old" != - ] || [ -n "$record" ] || usage
shift 2
wanted=${*:-*}

# Two commands may load one library, by their paths or by LD_LIBRARY_PATH. Then nothing would be compared.
library() { ldd "$1" 2>/dev/null | sed -n 's/.*libconvoy[^ ]* => \([^ ]*\) .*/\1/p'; }
loaded=$(library "$new")
if [ "$old" != - ] && [ "$old" != "$new" ] && [ -n "$loaded" ] && [ "$(library "$old")" = "$loaded" ]; then
    echo "compare_builds: $old and $new both load $loaded" >&2
    exit 2
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/convoy-builds.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
[ -n "$record" ] || record=$work/record
mkdir -p "$record" "$work/new" "$work/old"
for variable in $(env | sed -n 's/^\(CONVOY_[A-Z_]*\)=.*/\1/p'); do
    [ "$variable" = CONVOY_MPIEXEC ] || unset "$variable"
done
export CONVOY_WISDOM=off OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive LC_ALL=C

# Open MPI looks for fast networks for a quarter of a second at each start, but these jobs use one machine only.
export OMPI_MCA_pml=ob1 OMPI_MCA_mtl=^ofi OMPI_MCA_btl=self,vader,tcp
# It also keeps a folder in TMPDIR, which another job of the same user may remove while a job starts.
mkdir "$work/tmp"
export TMPDIR="$work/tmp"

# sha256sum if it exists, else a CRC.
if command -v sha256sum >/dev/null; then
    hash() { sha256sum | cut -d ' ' -f 1; }
else
    hash() { cksum | tr ' ' -; }
fi

# The bits also depend on the processor and on the instructions that may be used.
machine=$(sed -n '/^model name/p; /^flags/{p; q;}' /proc/cpuinfo 2>/dev/null | hash)${ONEDNN_MAX_CPU_ISA-}
if [ "$old" != - ]; then
    library=$(library "$old")
    build=$(cat "$old" ${library:+"$library"} | hash)
    if [ -e "$record/build" ] && [ "$(cat "$record/build")" != "$build" ]; then
        echo "compare_builds: $record has records of another build than $old: take another folder, or - for $old" >&2
        exit 2
    fi
    echo "$build" >"$record/build"
fi
bf16=
"$new" plan lenet --dtype bf16 --threads 1 >/dev/null 2>&1 && bf16=yes

# ---- what is compared ----

# Prints the tensors of safetensors files: names, types and shapes of each file, then a hash of all their bytes. The
# rest of the header, such as version and step, is left out.
tensors() {
    for file in "$@"; do
        [ -s "$file" ] || continue
        head=$(od -An -tu8 -N8 "$file" | tr -d ' ')
        tail -c +9 "$file" | head -c "$head" | sed 's/"__metadata__": *{[^}]*}, *//' | tr -d ' \n' | sed 's/},/},\n/g'
        echo
        tail -c +$((9 + head)) "$file" | hash
    done
}

# numbers KIND KEYS FILE: prints the numbers of the matching keys in lines of one kind in metrics.jsonl.
numbers() {
    grep "\"kind\": *\"$1\"" "$3" |
        awk -v keys="^\"($2)\"\$" '{
            n = split($0, part, /[{},] */)
            row = ""
            for (i = 1; i <= n; i++) {
                at = index(part[i], ":")
                value = substr(part[i], at + 1)
                sub(/^ */, "", value)
                if (at && substr(part[i], 1, at - 1) ~ keys) row = row " " value
            }
            print substr(row, 2)
        }'
}

# Prints all numbers of a JSON text, without keys, text and times.
json_numbers() {
    sed 's/"[a-z_]*seconds[a-z_]*": *[-0-9.e+]*//g; s/"[a-z_]*_per_s": *[-0-9.e+]*//g; s/"[^"]*": *//g
        s/"[^"]*"//g' "$1" | tr -c '0-9.e+\n-' '\n' | grep '[0-9]'
}

# Prints the sizes in plan.json, and a line for each layer, without keys.
plan_rows() {
    sed 's/"version": *"[^"]*",*//; s/"machine": *{[^}]*},*//; s/"sums": *{[^}]*},*//
        s/"time[a-z_]*": *[-"0-9.e+TZ:]*,*//g; s/{"name"/\n{"name"/g; s/"[a-z_]*": *//g' "$1"
}

# Prints the numbers of the page: its charts and scores, down to the network. Charts and tiles of times are left out.
page_numbers() {
    sed 's/<h2>Network/\n&/; s/<figure/\n&/g; s/<div><dt>/\n&/g; s/<\/dl>/\n/g' "$1" | awk '
        /class="tiles"/ { on = 1; next }
        /<h2>Network/ { exit }
        /class="notes"/ { notes = 1 }
        /class="soft facts"/ || /<b>[^<]*([Tt]ime|[Tt]hroughput)/ || /<dt>[^<]*(second|time)/ { next }
        on && !notes { print }
        /<\/ul>/ { notes = 0 }' |
        sed 's/ class="[^"]*"//g; s/ id="[^"]*"//g; s/ src="[^"]*"//g; s/url([^)]*)//g' |
        tr -c '0-9.\n-' '\n' | grep '[0-9]'
}

# figures COMMAND RUN FOLDER: writes what is compared of the run to files.
figures() {
    mkdir -p "$3"
    set -- "$1" "$2" "$3" "$2/checkpoints/$(cat "$2/checkpoints/latest")"
    numbers step 'step|samples|loss|learning_rate' "$2/metrics.jsonl" >"$3/losses"
    numbers epoch 'step|(train|val|test)_[a-z0-9_]*' "$2/metrics.jsonl" >"$3/scores"
    tensors "$4"/weights*.safetensors >"$3/weights"
    tensors "$4"/state*.safetensors "$4"/pending*.safetensors >"$3/state"
    plan_rows "$2/plan.json" >"$3/plan"
    "$1" export "$2" "$2/export.safetensors" >>"$log" 2>&1 || { echo "export fails: $(tail -n 1 "$log")"; return 1; }
    tensors "$2/export.safetensors" >"$3/export"
    "$1" test "$2" --threads 1 >>"$log" 2>&1 || { echo "test fails: $(tail -n 1 "$log")"; return 1; }
    json_numbers "$2/test.json" >"$3/test"
    page_numbers "$2/report.html" >"$3/page"
    # Earlier builds analysed collider events as a part of `convoy test`; now examples/collider does it.
    if grep -q 'format: collider' "$2/job.resolved.yaml"; then
        tr '\n' ' ' <"$2/test.json" | sed 's/, *"network": {.*/}/' >"$2/scores.json"
        json_numbers "$2/scores.json" >"$3/test"
        echo "not compared" >"$3/page"
    fi
    for file in losses scores weights export test page plan; do
        [ -s "$3/$file" ] || { echo "there is nothing in $file"; return 1; }
    done
}

# predict COMMAND RUN FILE
predict() {
    rm -f "$3.csv"
    "$1" predict "$2" --data "$predicted" --out "$3.csv" --threads 1 >>"$log" 2>&1 || {
        echo "predict fails: $(tail -n 1 "$log")"
        return 1
    }
    mv "$3.csv" "$3"
}

# same OLD NEW: prints what differs, in words, on one line; nothing if nothing differs.
same() {
    text=
    for file in losses weights state export scores test page predict; do
        [ -e "$1/$file" ] || [ -e "$2/$file" ] || continue
        cmp -s "$1/$file" "$2/$file" && continue
        at=$(diff "$1/$file" "$2/$file" 2>/dev/null | grep -c '^<')
        case $file in
        losses) what="losses ($at of $(($(wc -l <"$1/$file"))) steps, from step $(first_step "$1/$file" "$2/$file"))" ;;
        state) what="the optimiser's state" ;;
        scores) what='scores of epochs' ;;
        test) what='scores of the test' ;;
        page) what="the report page ($at numbers)" ;;
        predict) what='predictions' ;;
        *) what=$file ;;
        esac
        text="$text, $what"
    done
    echo "${text#, }"
}
# Prints the number of the first step that differs, which is at the start of a line.
first_step() {
    diff "$1" "$2" | sed -n 's/^[<>] \([0-9]*\) .*/\1/p' | sort -n | head -n 1
}

# ---- running jobs ----

# train COMMAND RANKS OPTION...: RANKS is 3, for example, or 3n: then each rank is a node, so that they sum by messages.
train() {
    command=$1 ranks=${2%n}
    unset CONVOY_NODE_RANKS
    [ "$ranks" = "$2" ] || export CONVOY_NODE_RANKS=1
    shift 2
    if [ "$ranks" = 1 ]; then
        timeout 100 "$command" train "$@" --threads 1 --progress none >>"$log" 2>&1
    else
        timeout 100 "${CONVOY_MPIEXEC:-mpiexec}" -n "$ranks" \
            "$command" train "$@" --threads 1 --progress none >>"$log" 2>&1
    fi
}
trained() {
    train "$@" && return 0
    cause=$(grep 'convoy.*error' "$log" | tail -n 1)
    echo "train fails: ${cause:-$(grep . "$log" | tail -n 1)}"
    return 1
}

# asked NAME: whether the job is to be run.
asked() {
    set -f
    for pattern in $wanted; do
        # shellcheck disable=SC2254
        case $1 in $pattern) set +f; return 0 ;; esac
    done
    set +f
    return 1
}

jobs=0 different=0 plans=0 skipped=0
# keep_files NAME
keep_files() {
    [ -n "$keep" ] || return 0
    rm -rf "${keep:?}/$1"
    mkdir "$keep/$1"
    cp -r "$work/new" "$record/$1" "$work/log" "$keep/$1"
}
# verdict NAME WHAT: prints a line of the output; WHAT is empty if all is the same.
verdict() {
    ours=$work/new/figures/plan theirs=$record/$1/figures/plan
    jobs=$((jobs + 1))
    if [ -n "$2" ]; then
        different=$((different + 1))
        echo "$1: DIFFERENT: $2"
        keep_files "$1"
    elif [ -e "$ours" ] && [ "$same_ranks" = yes ] && ! cmp -s "$theirs" "$ours"; then
        plans=$((plans + 1))
        echo "$1: same, but the plan differs: $(diff "$theirs" "$ours" | grep -c '^<') rows"
        keep_files "$1"
    else
        echo "$1: same"
    fi
}

# recorded NAME KIND RANKS NET OPTION...: makes the record of OLD for the job if it does not exist, and prints what is
# wrong.
recorded() {
    name=$1 kind=$2 ranks=$3 net=$4 at=$record/$1 log=$work/log
    shift 4
    stamp="$machine $kind $ranks $* $(hash <"$work/$net.yaml")"
    [ -e "$at/stamp" ] && [ "$(cat "$at/stamp")" = "$stamp" ] && return 0
    [ "$old" != - ] || { echo "there is no record of it, for this job on this processor"; return 1; }
    rm -rf "$at" "$work/old"
    mkdir -p "$at" "$work/old"
    cd "$work/old" || return 1
    : >"$log"
    { trained "$old" "${ranks%:*}" "../$net.yaml" --out run "$@" && figures "$old" run "$at/figures"; } || return 1
    case $kind in
    stop)
        # The run is told to stop somewhere in the middle.
        "$old" train "../$net.yaml" --out cut --threads 1 --progress none "$@" >>"$log" 2>&1 &
        pid=$!
        until grep -q '"step": *200,' cut/metrics.jsonl 2>/dev/null; do
            kill -0 $pid 2>/dev/null || break
            sleep 0.02
        done
        kill -TERM $pid 2>/dev/null
        wait $pid
        [ $? = 75 ] || { echo "the run was not stopped: $(cat cut/STATUS)"; return 1; }
        cp -r cut "$at/cut" ;;
    [0-9]*)
        # The files that a run leaves which was killed after this step.
        cp -r run "$at/cut"
        rm -f "$at/cut/report.html" "$at/cut/test.json" "$at/cut/export.safetensors"
        for folder in "$at"/cut/checkpoints/step-*; do
            step=${folder##*step-}
            [ "$(expr "$step" + 0)" -le "$kind" ] || rm -rf "$folder"
        done
        folder=$(find "$at/cut/checkpoints" -name 'step-*' | sort | tail -n 1)
        [ -n "$folder" ] || { echo "there is no checkpoint up to step $kind"; return 1; }
        basename "$folder" >"$at/cut/checkpoints/latest"
        awk -v last="$(expr "${folder##*step-}" + 0)" 'match($0, /"step": *[0-9]+/) {
            step = substr($0, RSTART, RLENGTH)
            sub(/.*: */, "", step)
            if (step + 0 <= last) print
        }' run/metrics.jsonl >"$at/cut/metrics.jsonl" ;;
    files)
        predict "$old" run "$at/figures/predict" || return 1
        cp -r run "$at/run" ;;
    esac
    echo "$stamp" >"$at/stamp"
}

# NEW reads what OLD wrote: its run as it is, then its job and plan for its own run. Prints what is wrong.
old_files() {
    cp -r "$record/$name/run" theirs
    rm -f theirs/report.html theirs/test.json theirs/export.safetensors
    "$new" inspect --verify theirs >>"$log" 2>&1 || { echo "inspect --verify fails: $(tail -n 1 "$log")"; return 1; }
    { figures "$new" theirs old_run && predict "$new" theirs old_run/predict; } || return 1
    text=$(same "$record/$name/figures" old_run)
    [ -z "$text" ] || { echo "read from the old run: $text"; return 1; }
    trained "$new" "$ranks" theirs/job.resolved.yaml --plan theirs/plan.json --out run
}

# try NAME KIND RANKS NET OPTION...
try() {
    asked "$1" || return 0
    if [ -z "$bf16" ]; then
        case "$*" in *dtype=bf16*)
            skipped=$((skipped + 1))
            echo "$1: skipped: no bf16 here"
            return 0 ;;
        esac
    fi
    wrong=$(recorded "$@") || { verdict "$1" "OLD: $wrong"; return 0; }
    name=$1 kind=$2 ranks=$3 net=$4 log=$work/log
    shift 4
    case $ranks in *:*) same_ranks= ;; *) same_ranks=yes ;; esac
    rm -rf "$work/new"
    mkdir "$work/new"
    cd "$work/new" || exit 1
    : >"$log"
    case $kind in
    whole) wrong=$(trained "$new" "$ranks" "../$net.yaml" --out run "$@") ;;
    files)
        wrong=$(old_files) ;;
    *)
        cp -r "$record/$name/cut" run
        wrong=$(trained "$new" "${ranks#*:}" "../$net.yaml" --out run --resume "$@") ;;
    esac || { verdict "$name" "$wrong"; return 0; }
    wrong=$(figures "$new" run figures) || { verdict "$name" "$wrong"; return 0; }
    [ "$kind" != files ] || wrong=$(predict "$new" run figures/predict) || { verdict "$name" "$wrong"; return 0; }
    verdict "$name" "$(same "$record/$name/figures" figures)"
}
job() { name=$1; shift; try "$name" whole "$@"; }
# resume NAME STEP RANKS NET OPTION...: RANKS is 3:2, for example: begun on three ranks, resumed on two.
resume() { name=$1; shift; try "resume-$name" "$@"; }

# ---- the networks; the last batch of an epoch is smaller than the others ----

cat >"$work/conv.yaml" <<'END'
model:
  layers:
    - conv: {channels: 16, kernel: 3, pad: 1, bias: false}
    - batch_norm
    - relu
    - max_pool: {kernel: 2}
    - conv: {channels: 32, kernel: 3, pad: 1}
    - relu
    - conv: {channels: 20, kernel: 3, stride: 2, pad: 1}
    - relu
    - dropout: {p: 0.3}
    - fc: {channels: 40}
    - relu
    - fc: {channels: 5}
data:
  train: {format: synthetic, samples: 165, shape: [3, 16, 16], classes: 5, noise: 0.8}
  val: 10%
  test: {format: synthetic, samples: 220, shape: [3, 16, 16], classes: 5, noise: 0.8, range: "165:"}
  augment: [mirror, {random_crop: {size: 16, pad: 2}}]
  normalize: auto
train:
  batch: 32
  epochs: 3
  optimizer: {name: sgd, lr: 0.03, momentum: 0.9, weight_decay: 0.001}
  schedule: {name: cosine, warmup: 3 steps}
  metrics: [accuracy, {name: top_k, k: 2}]
checkpoint: {every: 4 steps, keep: 9}
log: {every: 1}
END
# Without running statistics, ranks of a node share the weights, and each updates a part.
sed '/batch_norm/d; /dropout/d; s/, bias: false//' "$work/conv.yaml" >"$work/plain.yaml"
# One of each layer that the zoo's networks below do not have.
cat >"$work/layers.yaml" <<'END'
model:
  layers:
    - conv: {name: stem, channels: 16, kernel: 3, pad: 1}
    - leaky_relu: {slope: 0.1}
    - repeat:
        count: 2
        layers:
          - conv: {channels: 16, kernel: 3, pad: 2, dilation: 2, groups: 2}
          - batch_norm: {scale_shift: false}
          - relu
    - add: {name: sum, from: [relu2, stem]}
    - lrn: {name: across, size: 3}
    - conv: {name: left, channels: 8, kernel: 1, from: sum}
    - lrn_within: {name: inner, size: 3}
    - avg_pool: {name: right, kernel: 3, stride: 1, pad: 1, from: across}
    - concat: {from: [inner, right]}
    - deconv: {channels: 6, kernel: 2, stride: 2}
    - sigmoid
    - crop: {before: 2, after: 2}
    - pad: {before: 1, after: 1}
    - scale: {by: 1.5}
    - conv: {channels: 12, kernel: 3, stride: 3}
    - tanh
    - slice: {first: 2, count: 8}
    - global_avg_pool
    - fc: {channels: 5, init: xavier}
END
sed '1,/fc: {channels: 5}/d' "$work/conv.yaml" >>"$work/layers.yaml"
# Fully connected, real targets, two losses.
cat >"$work/targets.yaml" <<'END'
model:
  layers:
    - fc: {channels: 48, init: torch}
    - tanh
    - fc: {name: hidden, channels: 32}
    - sigmoid
    - fc: {name: answer, channels: 3}
    - fc: {name: other, channels: 3, from: hidden}
  output: answer
data:
  train: {format: synthetic, samples: 150, shape: [1, 6, 6], targets: 3, noise: 0.2}
  val: {format: synthetic, samples: 190, shape: [1, 6, 6], targets: 3, noise: 0.2, range: "150:"}
  test: {format: synthetic, samples: 230, shape: [1, 6, 6], targets: 3, noise: 0.2, range: "190:"}
train:
  batch: 32
  epochs: 4
  optimizer: {name: adam, lr: 0.01}
  loss: [{name: huber, output: answer}, {name: mse, output: other, weight: 0.3}]
  schedule: {name: step, every: 1 epoch, factor: 0.7}
checkpoint: {every: 4 steps, keep: 9}
log: {every: 1}
END
# Networks of the zoo, which are named by --set.
cat >"$work/zoo.yaml" <<'END'
model: resnet-20
data:
  train: {format: synthetic, samples: 56, shape: [3, 32, 32], noise: 0.8}
  test: {format: synthetic, samples: 72, shape: [3, 32, 32], noise: 0.8, range: "56:"}
  augment: [mirror, {cutout: {size: 6}}, {random_crop: {size: 32, pad: 4}}]
train:
  batch: 16
  epochs: 2
  optimizer: {name: sgd, lr: 0.05, momentum: 0.9, nesterov: true, weight_decay: 0.0005}
  schedule: one_cycle
log: {every: 1}
END
# A rare signal: curves and baselines of the test.
cat >"$work/collider.yaml" <<'END'
model: {name: hep-cnn, filters: 16, depth: 3}
data:
  train: {format: collider, events: 160, cells: 32}
  val: 10%
  test: {format: collider, events: 100, first: 160, cells: 32}
  augment: [log, mirror, rotate90]
  shuffle: window
  window: 16
train: {batch: 32, epochs: 2, optimizer: {name: adam, lr: 0.002}, schedule: polynomial, metrics: [accuracy, auc]}
checkpoint: {best: auc}
log: {every: 1}
END
# Pictures of different sizes that are decoded, cropped and resized.
cat >"$work/pictures.yaml" <<'END'
model: cifar-full
data:
  train: {format: pictures, size: [40, 72], classes: 6, samples: 96, encode: jpeg}
  val: {format: pictures, size: [40, 72], classes: 6, samples: 30, first: 96, encode: jpeg}
  test: {format: pictures, size: [40, 72], classes: 6, samples: 30, first: 126, encode: jpeg}
  augment: [{random_resized_crop: 32}, mirror, {normalize: {mean: [0.48, 0.45, 0.4], std: [0.23, 0.22, 0.22]}}]
  balance: class
  cache: decoded
train:
  batch: 16
  epochs: 2
  optimizer: {name: adamw, lr: 0.001, weight_decay: 0.01}
  loss: {name: softmax_cross_entropy, label_smoothing: 0.1}
  groups: [{match: "conv1.*", frozen: true}, {match: "*.bias", lr_mult: 2, decay_mult: 0}]
log: {every: 1}
END
# Many short steps, to be stopped in the middle.
sed 's/epochs: 4/steps: 2000/; s/every: 4 steps, keep: 9/every: 500 steps/; s/every: 1 epoch,/every: 40 epochs,/' \
    "$work/targets.yaml" >"$work/long.yaml"
predicted='{format: synthetic, samples: 21, shape: [3, 16, 16], classes: 5}'

# ---- the jobs ----

adam='train.optimizer={name: adam, lr: 0.003}'
pipelined='update={mode: pipelined, warm_up: 3 steps, cool_down: 3 steps}'
local='update={mode: local, every: 3}'
server='update={mode: parameter_server, servers: 1}'
servers='update={mode: parameter_server, servers: 2}'

job conv-1 1 conv
job conv-2 2 conv
job conv-3 3 conv
job conv-3-nodes 3n conv --set comm.algorithm=halving --set comm.bucket=4096
job conv-3-ring 3n conv --set comm.algorithm=ring --set comm.bucket=4096 --set comm.wire=bf16 \
    --set comm.progress=thread
job conv-2-library 2n conv --set comm.algorithm=library --set comm.bucket=4096 --set comm.overlap=false
job conv-f64 1 conv --set train.dtype=f64
job conv-f64-3 3 conv --set train.dtype=f64
job conv-bf16 1 conv --set train.dtype=bf16
job conv-bf16-3 3 conv --set train.dtype=bf16
job plain-2 2 plain
job plain-3 3 plain --set train.clip_norm=0.5 --set "$adam"
job layers-1 1 layers
job layers-2 2 layers --set train.clip_value=0.05 --set 'train.optimizer={name: rmsprop, lr: 0.002}'
job targets-1 1 targets
job targets-f64-2 2 targets --set train.dtype=f64 --set 'train.optimizer={name: adagrad, lr: 0.03}'
job resnet-20 2 zoo
job resnet-20-bf16 2 zoo --set train.dtype=bf16
job resnet-20-lars 2 zoo --set train.lr_rule=sqrt --set train.schedule=cosine \
    --set 'train.optimizer={name: lars, lr: 2, momentum: 0.9, trust_coefficient: 0.01, weight_decay: 5e-4}'
job googlenet-bn 1 zoo --set model=googlenet-bn --set train.epochs= --set train.steps=3 --set train.batch=8
job googlenet 2 zoo --set 'model={name: googlenet, dropout: 0.2}' --set train.epochs= --set train.steps=2 \
    --set 'data.train.shape=[3,80,80]' --set 'data.test.shape=[3,80,80]' --set 'data.augment=[mirror]' \
    --set train.batch=8
job lenet 2 zoo --set model=lenet --set 'data.train.shape=[1,28,28]' --set 'data.test.shape=[1,28,28]' \
    --set data.augment= --set data.normalize=auto
job collider 2 collider
job pictures 2 pictures
job lars-3 3 conv --set 'train.optimizer={name: lars, lr: 2, trust_coefficient: 0.01}' --set train.lr_rule=sqrt
job accumulate-2 2 conv --set train.accumulate=3 --set train.clip_norm=1
job precise 1 conv --set train.precise=true --set plan.kernels=native
job reference 1 conv --set plan.kernels=reference --set plan.passes_off=all
job recompute 1 zoo --set plan.memory_limit=19MiB --set train.epochs=1
job pipelined-2 2 conv --set "$pipelined"
job pipelined-3-nodes 3n plain --set "$pipelined" --set comm.algorithm=halving --set comm.bucket=2048 \
    --set 'train.optimizer={name: sgd, lr: 0.01, momentum: 0.95, nesterov: true, lookahead: 1}'
job local-2 2 conv --set "$local"
job local-3 3 plain --set "$local" --set "$adam"
job sharded-2 2 conv --set update=sharded --set "$adam"
job sharded-3-ring 3n plain --set update=sharded --set comm.algorithm=ring --set comm.bucket=4096
job sharded-bf16-3 3 conv --set update=sharded --set train.dtype=bf16
job server-3 3 conv --set "$server" --set comm.bucket=2048
job servers-3 3n plain --set "$servers" --set comm.bucket=2048 --set "$adam"
job forward-2 2 conv --set comm.overlap=forward --set comm.bucket=4096
job forward-3-nodes 3n conv --set comm.overlap=forward --set comm.bucket=4096 --set comm.algorithm=doubling \
    --set "$adam" --set train.accumulate=2
job exact-1 1 conv --set deterministic=true
job exact-3 3 conv --set deterministic=true
job exact-adam-2 2 layers --set deterministic=true --set deterministic_shards=4 --set "$adam"
resume adam-1 8 1 conv --set "$adam"
resume bf16-2 6 2 conv --set train.dtype=bf16
resume sync-2 9 2 plain
resume accumulate-2 4 2 conv --set train.accumulate=2
resume pipelined-2 8 2 conv --set "$pipelined"
resume local-3 9 3 conv --set "$local"
resume sharded-3 8 3 plain --set update=sharded --set "$adam"
resume server-3 8 3 conv --set "$server"
resume forward-2 7 2 conv --set comm.overlap=forward --set comm.bucket=4096
resume exact 8 3:2 conv --set deterministic=true
resume stopped stop 1 long
try old-files files 2 conv

[ $jobs -gt 0 ] || [ $skipped -gt 0 ] || { echo "compare_builds: no job has such a name: $wanted" >&2; exit 2; }
[ $plans = 0 ] || echo "the plan differs in $plans jobs"
echo "$jobs jobs, $different different"
[ $different = 0 ]
