#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# compare.sh: measures convoy and other trainers on the same networks, in turns (docs/results/training-speed.md).
#
#     sh scripts/compare.sh --pytorch PYTHON [--tensorflow PYTHON] [--rounds 5] [--mode train|forward|forward-backward (not TensorFlow)] [--dtype f32|bf16]
#                           [--device host|cuda|cuda:I] [--tf32] [NET:BATCH ...]
#
# PYTHON is an interpreter that has the package (frameworks/run_pytorch.py, frameworks/run_tensorflow.py). --variants 'eager channels_last' names the
# variants of PyTorch to try, of which the fastest counts. --peer 'COMMAND' adds another trainer: NET, BATCH, MODE, DTYPE, THREADS and DEVICE in it are
# replaced, and it prints JSON as those scripts do. --threads T, --seconds S for each run, --build DIR of convoy. --peer-env 'NAME=VALUE ...' is
# set for the peers only: ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 if their bf16 ends with an illegal instruction, as it does on virtual machines that
# hide the geometry of tiles. To limit all sides to AVX2, set ONEDNN_MAX_CPU_ISA=AVX2 and ATEN_CPU_CAPABILITY=avx2 before the command. --json FILE
# adds what each run has printed to the file, a line for each.
#
# --device cuda runs all sides on one GPU, in turns; convoy also on another device, such as opencl, beside --peer. There convoy measures its kernels
# (--planning measure, if nothing else is given), as PyTorch searches for cuDNN's fastest algorithms, and the memory is that of the device. f32 is not
# rounded to TF32 on any side without --tf32. Good variants of PyTorch are 'channels_last compile', and 'graphs' for small networks.
#
# NET is a network of the zoo, or an ONNX file: net/mobilenet-v2.onnx:16. convoy trains the network of the file, and PyTorch the network of
# torchvision with the file's name (frameworks/run_pytorch.py). A file that does not exist is written by PyTorch first.
#
# In each round every trainer runs each network once, so that all run under the same conditions. A row has the medians of the rounds,
# and the ratio of convoy to the fastest peer, taken in each round: median, least and largest. A peer whose parameters or multiply-adds
# differ from those of convoy by more than 1 % did other work: it is named, and gets no ratio. Run nothing else at the same time.
set -eu
cd "$(dirname "$0")/.."
. scripts/mpi_env.sh
usage() { sed -n '2,24s/^# \{0,1\}//p' "$0" >&2; exit 2; }

rounds=3 mode=train dtype=f32 seconds=6 build=build/release variants='eager channels_last' device=host tf32='' json='' planning=''
threads=${OMP_NUM_THREADS:-$(getconf _NPROCESSORS_ONLN)}
pytorch= tensorflow= peer= peer_env=
while [ $# -gt 0 ]; do
    case $1 in
    --tf32) tf32=1 && shift ;;
    --rounds | --mode | --dtype | --seconds | --build | --variants | --threads | --pytorch | --tensorflow | --peer | --peer-env | --device | --json | --planning)
        [ $# -ge 2 ] || usage
        name=$(printf '%s' "${1#--}" | tr - _)
        eval "$name=\$2"
        shift 2 ;;
    -*) usage ;;
    *) break ;;
    esac
done
[ -n "$pytorch$tensorflow$peer" ] || usage
for python in "$pytorch" "$tensorflow"; do
    [ -z "$python" ] || command -v "$python" >/dev/null || { echo "compare: there is no program '$python'" >&2; exit 2; }
done
[ $# -gt 0 ] || set -- hep-cnn:16 vgg-a:16 overfeat:32 googlenet-bn:32 inception-v3:16 resnet-50:16 alexnet-v2:64 cifar-convnet:128
[ -x "$build/convoy" ] || { echo "compare: there is no $build/convoy; build it, or name its folder with --build" >&2; exit 1; }
case $device in *:*) there="^$device " ;; *) there="^$device:" ;; esac
[ "$device" = host ] || "$build/convoy" info | grep -q "$there" ||
    { echo "compare: there is no device $device here: $("$build/convoy" info | grep -m 1 "^${device%:*}" | tr -s ' ')" >&2; exit 1; }
[ -z "$tf32" ] || [ "$dtype" = f32 ] || { echo "compare: --tf32 is for f32, and --dtype is $dtype" >&2; exit 2; }
[ -z "$tf32" ] && precision=$dtype || precision=tf32
rows=$(mktemp) errors=$(mktemp)
trap 'rm -f "$rows" "$errors"' EXIT

# field KEY TEXT: the number after "KEY": in JSON, or 0 if there is none.
field() {
    value=$(printf '%s\n' "$2" | sed -n "s/.*\"$1\": *\([0-9.eE+-]*\).*/\1/p" | tail -n 1)
    echo "${value:-0}"
}

# run WHO COMMAND...: writes one row: round, network, batch, who, images/s, parameters, multiply-adds, peak memory in
# GB.
run() {
    who=$1
    shift
    if ! result=$("$@" 2>"$errors"); then
        echo "compare: $who fails on $net, batch $batch: $(tail -n 1 "$errors" | cut -c 1-300) ($*)" >&2
        return 0
    fi
    [ -z "$json" ] || printf '{"who": "%s", "precision": "%s", "planning": "%s", %s\n' "$who" "$precision" "$planning" "$(printf '%s\n' "$result" | tail -n 1 | cut -c 2-)" >>"$json"
    speed=$(field images_per_s_mean "$result")
    [ "$speed" != 0 ] || speed=$(field images_per_s "$result")
    memory=$(field peak_rss_gb "$result")
    [ "$memory" != 0 ] || memory=$(field peak_rss_bytes "$result" | awk '{ print $1 / 1e9 }')
    [ "$device" = host ] || memory=$(field device_peak_bytes "$result" | awk '{ print $1 / 1e9 }')
    echo "$round $net $batch $who $speed $(field parameters "$result") $(field macs "$result") $memory" >>"$rows"
    echo "round $round: $net batch $batch: $who $speed images/s" >&2
}

# convoy with its own number of steps, which take five seconds.
ours() {
    set --
    [ "$device" = host ] || set -- --device "$device" --planning "${planning:-measure}" --seconds "$seconds" ${tf32:+--set plan.tf32=true}
    "$build/convoy" bench --model "$net" --batch "$batch" --mode "$mode" --dtype "$dtype" --threads "$threads" --json "$@"
}

for job in "$@"; do
    net=${job%:*}
    [ "$net" != "$job" ] || { echo "compare: $job has no batch: write $job:16" >&2; exit 2; }
    case $net in
    *.onnx)
        [ -z "$tensorflow" ] || { echo "compare: TensorFlow has no network for $net; it is for networks of the zoo" >&2; exit 2; }
        [ -e "$net" ] && continue
        [ -n "$pytorch" ] || { echo "compare: there is no file $net; with --pytorch it is written" >&2; exit 2; }
        "$pytorch" frameworks/run_pytorch.py --net "$net" --export "$net" >/dev/null ;;
    esac
done

round=1
while [ "$round" -le "$rounds" ]; do
    for job in "$@"; do
        net=${job%:*} batch=${job#*:}
        common="--net $net --batch $batch --mode $mode --dtype $dtype --threads $threads --seconds $seconds --device $device"
        run convoy ours
        for variant in ${pytorch:+$variants}; do
            # shellcheck disable=SC2086
            run pytorch env $peer_env "$pytorch" frameworks/run_pytorch.py $common ${tf32:+--tf32} --variant "$variant"
        done
        # shellcheck disable=SC2086
        [ -z "$tensorflow" ] || run tensorflow env $peer_env "$tensorflow" frameworks/run_tensorflow.py $common
        [ -z "$peer" ] || run peer env $peer_env sh -c "$(printf '%s' "$peer" | sed "s/NET/$net/g; s/BATCH/$batch/g; s/MODE/$mode/g; s/DTYPE/$dtype/g; s/THREADS/$threads/g; s/DEVICE/$device/g")"
    done
    round=$((round + 1))
done

[ "$device" = host ] && where="$threads threads" || where="device $device${tf32:+, TF32}"
printf '%s, %s, %s: images/s, medians of %s rounds in turns\n\n' "$mode" "$dtype" "$where" "$rounds"
printf '| network, batch | convoy | pytorch | tensorflow | peer | ratio (range) | M parameters | M multiply-adds | peak GB |\n|---|---|---|---|---|---|---|---|---|\n'
for job in "$@"; do
    awk -v net="${job%:*}" -v batch="${job#*:}" '
        function median(a, n,   i, j, t) {
            for (i = 2; i <= n; i++) for (j = i; j > 1 && a[j] < a[j - 1]; j--) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t }
            return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2
        }
        function middle(who,   i, n, list) {
            for (i = 1; i <= rounds; i++) if ((i, who) in speed) list[++n] = speed[i, who]
            return n ? sprintf("%.4g", median(list, n)) : "-"
        }
        function apart(a, b) { return a > 0 && b > 0 && (a > 1.01 * b || b > 1.01 * a) }
        $2 == net && $3 == batch {
            if ($1 > rounds) rounds = $1
            if (!(($1, $4) in speed) || $5 > speed[$1, $4]) speed[$1, $4] = $5
            params[$4] = $6; macs[$4] = $7
            if ($8 > memory[$4]) memory[$4] = $8
        }
        END {
            split("pytorch tensorflow peer", peer, " ")
            for (k = 1; k <= 3; k++) {
                who = peer[k]
                if (!(who in params)) continue
                if (apart(params["convoy"], params[who]) || apart(macs["convoy"], macs[who])) note = note "; " who " did other work"
                else fair[who] = 1
                if (params[who] == 0) note = note "; work of " who " is not told"
            }
            for (i = 1; i <= rounds; i++) {
                best = 0
                for (who in fair) if ((i, who) in speed && speed[i, who] > best) { best = speed[i, who]; winner = who }
                if (best > 0 && (i, "convoy") in speed) ratio[++n] = speed[i, "convoy"] / best
            }
            text = "-"
            if (n) { m = median(ratio, n); text = sprintf("%.2f (%.2f to %.2f)", m, ratio[1], ratio[n]) }
            printf "| `%s` %s | %s | %s | %s | %s | %s%s |", net, batch, middle("convoy"), middle("pytorch"), middle("tensorflow"), middle("peer"), text, note
            printf " %.2f", params["convoy"] / 1e6
            for (k = 1; k <= 3; k++) if (params[peer[k]] > 0) printf ", %.2f", params[peer[k]] / 1e6
            printf " | %.1f", macs["convoy"] / 1e6
            for (k = 1; k <= 3; k++) if (macs[peer[k]] > 0) printf ", %.1f", macs[peer[k]] / 1e6
            printf " | %.2f", memory["convoy"]
            for (k = 1; k <= 3; k++) if (memory[peer[k]] > 0) printf ", %.2f", memory[peer[k]]
            print " |"
        }' "$rows"
done
