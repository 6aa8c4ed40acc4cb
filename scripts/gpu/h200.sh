#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# h200.sh: checks and measures convoy on an NVIDIA GPU, in eight minutes at most. Its times are for an H200; others work, too.
#
#     sh scripts/gpu/h200.sh [OPTION...] OUT [STAGE...]
#
# OUT/gpu.txt gets what all stages print, and the last 25 lines of the output are a table. A stage has a limit of time,
# and may be run again alone, in the same OUT:
#
#     build      makes build/gpu, the command without MPI and optional libraries, which may be copied to a machine that has
#                neither; it is no part of the eight minutes, and is left out where a command is found
#     about      the GPU, the driver, the libraries, `convoy info`; cuDNN's properties of the device in OUT/device.json
#     selftest   each operator against the reference kernels, and a training against the host; then without cuDNN
#     losses     networks train on the GPU and on the host: their losses; deterministic trainings, with and without recordings:
#                the same bits
#     bench      images/s of eight networks, in turns with PyTorch, eager and compiled: OUT/bench.jsonl
#     sanitizer  a training under compute-sanitizer: memcheck, racecheck
#     time       small networks with and without recordings; ResNet-50 layer by layer: OUT/time.txt
#     table
#
# The command is $CONVOY, or the one of build/gpu or build/release. --python PYTHON has PyTorch and torchvision (python3);
# without them convoy is measured alone. Its packages of cuDNN, NVRTC and NCCL are found, if the system has none of its own.
# --device cuda:1 is another device; --networks 'NET:BATCH ..' are others for bench, --dtypes 'bf16 f32 tf32' their types;
# --seconds S is the time of each measurement; --losses 'lenet ..' are networks of losses, --steps N the length of a
# training. --slow 3 makes all limits three times as long. The exit code is 1 if a check failed.
set -u
CONVOY_RECORD=${CONVOY_RECORD-}
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
stages='about selftest losses bench sanitizer time table'
python=python3 device=cuda seconds=3 steps=50 slow=1 is_stage='' dtypes='bf16 f32 tf32'
losses='lenet cifar-convnet resnet-20 mixture'
networks='resnet-50:256 lenet:128 resnet-20:128 inception-v3:256 vgg-16:256 alexnet-v2:256 googlenet-bn:256 cifar-convnet:128'
usage() { sed -n '3,29s/^# \{0,1\}//p' "$0" >&2; exit 2; }
while [ $# -gt 0 ]; do
    case $1 in
    --python | --device | --networks | --dtypes | --seconds | --losses | --steps | --slow)
        [ $# -ge 2 ] || usage
        eval "${1#--}=\$2"
        shift 2 ;;
    --stage) is_stage=1 && shift ;; # this script runs a stage by calling itself
    -*) usage ;;
    *) break ;;
    esac
done
[ $# -ge 1 ] || usage
mkdir -p "$1" || exit 2
out=$(cd "$1" && pwd)
shift

# limit STAGE: seconds.
limit() {
    case $1 in
    build) echo $((1200 * slow)) ;;
    about) echo $((30 * slow)) ;;
    selftest) echo $((75 * slow)) ;;
    losses) echo $((60 * slow)) ;;
    bench) echo $((220 * slow)) ;;
    sanitizer) echo $((40 * slow)) ;;
    time) echo $((45 * slow)) ;;
    table) echo 10 ;;
    *) echo "h200: there is no stage '$1': they are build $stages" >&2 && exit 2 ;;
    esac
}
for stage in "$@"; do limit "$stage" >/dev/null; done

# The first command that starts here; an installation for several MPI libraries needs none for one rank.
export CONVOY_MPI="${CONVOY_MPI:-none}"
find_convoy() {
    for file in "${CONVOY-}" "$top/build/gpu/bin/convoy" "$top/build/gpu-objects/convoy" "$top/build/release/convoy"; do
        [ -n "$file" ] && [ -x "$file" ] && "$file" --version >/dev/null 2>&1 && echo "$file" && return
    done
    return 1
}

# verdict STAGE TEXT: what the table says of a stage.
verdict() {
    echo "$1: $2"
    { grep -v "^$1: " "$out/verdicts" 2>/dev/null; echo "$1: $2"; } >"$out/verdicts.new"
    mv "$out/verdicts.new" "$out/verdicts"
}
skip() { verdict "$stage" "skipped: $*"; exit 0; }
failed() { verdict "$stage" "FAILED: $*"; exit 1; }
has_torch() { "$python" -c 'import torch, torchvision, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; }

# ---- stages ----

stage_build() {
    off='' install=''
    for name in ONEDNN JPEG SPNG LMDB HDF5 CFITSIO LIBDEFLATE PROTOBUF_C XXHASH SIMGRID; do off="$off -DCONVOY_WITH_$name=OFF"; done
    command -v cmake >/dev/null || skip "there is no cmake: copy build/gpu from a machine where this stage has made it"
    # With MPICH's headers the build is one that needs no MPI library for one rank; otherwise it stays where it is built.
    ! command -v mpicc.mpich >/dev/null || install=1
    # shellcheck disable=SC2086,SC2015
    cmake -S "$top" -B "$top/build/gpu-objects" -DCMAKE_BUILD_TYPE=Release -DCONVOY_TESTS=OFF $off -DCMAKE_INSTALL_LIBDIR=lib \
        ${install:+-DCONVOY_MPI_VARIANT=mpich -DMPI_C_COMPILER=mpicc.mpich} -DCMAKE_INSTALL_RPATH_USE_LINK_PATH=OFF \
        -DCMAKE_INSTALL_RPATH="\$ORIGIN/.." >"$out/build.log" 2>&1 &&
        cmake --build "$top/build/gpu-objects" -j "$(getconf _NPROCESSORS_ONLN)" >>"$out/build.log" 2>&1 ||
        failed "$(grep -m 1 -A 3 'CMake Error\|error:' "$out/build.log" | tr '\n' ' ' | cut -c 1-300) (OUT/build.log); a machine with MPI and libyaml can make build/gpu for this one"
    [ -n "$install" ] || { verdict build "build/gpu-objects/convoy, which needs this machine's MPI"; return; }
    cmake --install "$top/build/gpu-objects" --strip --prefix "$top/build/gpu" >>"$out/build.log" 2>&1 || failed "it cannot be installed (OUT/build.log)"
    # What the library needs besides the C library is beside it.
    ldd "$top/build/gpu/lib/convoy/mpich/libconvoy.so.0" | sed -n 's/.*=> \(.*\/lib\(yaml\|gomp\)[^ ]*\) .*/\1/p' | while read -r file; do
        cp "$file" "$top/build/gpu/lib/convoy/"
    done
    verdict build "build/gpu, $(du -sm "$top/build/gpu" | cut -f 1) MB, for machines with a C library as new as this one's, $(getconf GNU_LIBC_VERSION)"
}

stage_about() {
    if command -v nvidia-smi >/dev/null; then nvidia-smi; else echo "there is no nvidia-smi"; fi
    "$convoy" info
    "$python" -c 'import torch; print("PyTorch", torch.__version__, "CUDA", torch.version.cuda, "cuDNN", torch.backends.cudnn.version())' 2>/dev/null || echo "$python has no PyTorch"
    echo "libraries of Python's packages: ${wheels:-none}"
    number=${device#cuda}
    "$python" "$here/properties.py" "$out/device.json" ${number:+"${number#:}"} || :
    "$convoy" info | sed -n 's/^cuda[: ]/&/p' >"$out/devices"
    grep -q '^cuda:' "$out/devices" || failed "$(sed -n 1p "$out/devices")"
    verdict about "$(sed -n "s/^\(cuda:${number#:}[0-9]*\)  */\1 /p" "$out/devices" | head -n 1)"
}

stage_selftest() {
    "$convoy" selftest --device "$device" --only kernels,training,deterministic,updates --seconds $((10 * seconds)) --out "$out" || failed "see gpu.txt"
    CONVOY_CUDNN=off "$convoy" selftest --device "$device" --only kernels,training --seconds $((4 * seconds)) --out "$out" || failed "without cuDNN, see gpu.txt"
    verdict selftest "$(sed -n 's/^ok  *kernels  *//p' "$out/stage.txt" | head -n 1)"
}

# again NAME DEVICE FOLDER: once more, waiting for each kernel, so that the error names the one that fails.
again() {
    rm -rf "$3"
    echo "with CONVOY_SYNC=1:"
    CONVOY_SYNC=1 "$convoy" train "$out/jobs/$1.yaml" --device "$2" --out "$3" --progress none 2>&1 | grep 'error:' || echo "no error"
}
# job NAME < JOB: a job with this many steps.
job() { sed "s/STEPS/$steps/" >"$out/jobs/$1.yaml"; }
# train NAME DEVICE FOLDER [OPTION...]
train() {
    name=$1 on=$2 folder=$out/jobs/$3
    shift 3
    rm -rf "$folder"
    "$convoy" train "$out/jobs/$name.yaml" --device "$on" --out "$folder" --progress none --set log.every=1 "$@" >"$folder.log" 2>&1 ||
        { cat "$folder.log"; again "$name" "$on" "$folder"; failed "$name does not train on $on: $(grep -m 1 'error:' "$folder.log" | cut -c 1-200)"; }
    sed -n 's/.*"kind": "step".*"loss": \([^,]*\),.*/\1/p' "$folder/metrics.jsonl" >"$folder.losses"
}
# bits FOLDER: a sum of the weights, without the header of their file, which has the job.
bits() {
    file=$(find "$out/jobs/$1/checkpoints" -name '*.safetensors' | sort | tail -n 1)
    tail -c +$(($(od -An -tu8 -N8 "$file") + 9)) "$file" | cksum
}
write_jobs() {
    mkdir -p "$out/jobs"
    job lenet <<'END'
model: {name: lenet}
data: {train: {format: synthetic, samples: 4096, noise: 1}}
train: {batch: 32, steps: STEPS, optimizer: {name: sgd, lr: 0.005}}
END
    job cifar-convnet <<'END'
model: {name: cifar-convnet}
data: {train: {format: synthetic, samples: 4096, noise: 1}}
train: {batch: 32, steps: STEPS, optimizer: {name: adam, lr: 0.0003}}
END
    job resnet-20 <<'END'
model: {name: resnet-20}
data: {train: {format: synthetic, samples: 4096, noise: 1}}
train: {batch: 32, steps: STEPS, optimizer: {name: sgd, lr: 0.005, momentum: 0.9}}
END
    job mixture <<'END'
model:
  layers:
    - conv: {channels: 16, kernel: 7, stride: 2, pad: 3}
    - relu
    - max_pool: {kernel: 3, stride: 2}
    - lrn: {size: 5}
    - conv: {channels: 16, kernel: [1, 7], pad: [0, 3], bias: false}
    - batch_norm
    - relu
    - avg_pool: {kernel: 3, stride: 2, pad: 1}
    - deconv: {channels: 8, kernel: 2, stride: 2}
    - fc: {channels: 64}
    - relu
    - dropout: {p: 0.5}
    - fc: {channels: 10}
data: {train: {format: synthetic, samples: 4096, noise: 1, shape: [3, 48, 48], classes: 10}}
train: {batch: 32, steps: STEPS, optimizer: {name: adamw, lr: 0.0003}}
END
}

# Losses of the device and of the host, relative to the larger of the loss and 0.1. Rounding is amplified in training: the
# first ten have to agree within a percent, the last one within a fifth.
stage_losses() {
    write_jobs
    worst=''
    for name in $losses; do
        train "$name" host "$name-host"
        train "$name" "$device" "$name-device"
        paste "$out/jobs/$name-host.losses" "$out/jobs/$name-device.losses" | awk -v name="$name" '
            { off = $1 > $2 ? $1 - $2 : $2 - $1; off /= $1 > 0.1 ? $1 : 0.1; if (!(off >= 0)) off = 9 }
            NR <= 10 && off > early { early = off }
            NR == 1 { first = $2 }
            { last = off; host = $1; own = $2 }
            END { printf "%s: %d losses, from %s to %s, on the host to %s; the first ten differ by up to %.1e, the last by %.1e\n", name, NR, first, own, host, early, last
                  exit !(NR > 0 && early < 0.01 && last < 0.2) }' || worst="$worst $name"
    done
    [ -z "$worst" ] || failed "losses differ from those of the host:$worst"
    for record in '' on off; do
        CONVOY_RECORD=$record
        train "${losses##* }" "$device" "same-$record" --set deterministic=true --set train.steps=$((steps / 5 + 1))
        [ "$(bits same-)" = "$(bits "same-$record")" ] || failed "deterministic trainings have other bits, with CONVOY_RECORD=$record"
    done
    verdict losses "$losses: as on the host over $steps steps; deterministic trainings: the same bits, also without recordings"
}

# measure NET:BATCH PRECISION VARIANTS PLANNING: one round, appended to OUT/bench.jsonl. The precision is bf16, f32, or tf32.
measure() {
    began=$(date +%s) tf32='' dtype=$2
    [ "$2" != tf32 ] || { tf32=1 && dtype=f32; }
    if [ "$has_torch" = 1 ]; then
        timeout -k 5 90 sh "$top/scripts/compare.sh" --build "$(dirname "$convoy")" --pytorch "$python" --rounds 1 --seconds "$seconds" --device "$device" \
            --dtype "$dtype" --variants "$3" --planning "$4" --json "$out/bench.jsonl" ${tf32:+--tf32} "$1" || :
    elif result=$(timeout -k 5 60 "$convoy" bench --model "${1%:*}" --batch "${1#*:}" --dtype "$dtype" --device "$device" --planning "$4" --seconds "$seconds" \
        ${tf32:+--set plan.tf32=true} --json); then
        echo "{\"who\": \"convoy\", \"precision\": \"$2\", \"planning\": \"$4\", ${result#\{}" >>"$out/bench.jsonl"
    fi
    echo "$1 $2 $3: $(($(date +%s) - began)) s"
}
# has_time SECONDS: whether so many are left of the stage.
has_time() { [ $(($(date +%s) - start + $1)) -lt "$(limit bench)" ] || { echo "no time is left for the rest: run the stage bench again"; return 1; }; }
# First what is fast: kernels by preference, and PyTorch without compilation.
measure_all() {
    first=${dtypes%% *}
    for net in $networks; do has_time 25 && measure "$net" "$first" channels_last estimate || return; done
    for net in $networks; do
        case $net in resnet-50:* | resnet-20:* | lenet:*) has_time 50 && measure "$net" "$first" 'compile graphs' measure || return ;; esac
    done
    for other in ${dtypes#"$first"}; do has_time 25 && measure "${networks%% *}" "$other" channels_last measure || return; done
    for net in $networks; do has_time 25 && measure "$net" "$first" 'channels_last eager' measure || return; done
}
stage_bench() {
    start=$(date +%s) has_torch=0
    if has_torch; then has_torch=1; else echo "$python has no PyTorch and torchvision that see a GPU: convoy is measured alone"; fi
    measure_all
    n=$(grep -c '"who": "convoy"' "$out/bench.jsonl" 2>/dev/null)
    [ "${n:-0}" -gt 0 ] || failed "nothing was measured, see gpu.txt"
    verdict bench "$n measurements of convoy$([ "$has_torch" = 1 ] || echo ", without PyTorch")"
}

stage_sanitizer() {
    tool=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null) || skip "there is no compute-sanitizer, which is in the CUDA toolkit"
    write_jobs
    for kind in memcheck racecheck; do
        rm -rf "$out/jobs/$kind"
        "$tool" --tool "$kind" --error-exitcode 9 "$convoy" train "$out/jobs/mixture.yaml" --device "$device" --out "$out/jobs/$kind" \
            --progress none --set train.steps=2 --set train.batch=4 || failed "$kind finds errors, see gpu.txt"
    done
    verdict sanitizer "memcheck and racecheck find nothing in two steps"
}

stage_time() {
    for net in $networks; do
        case $net in
        resnet-20:* | lenet:*)
            for record in on off; do
                echo "$net, CONVOY_RECORD=$record: $(CONVOY_RECORD=$record "$convoy" bench --model "${net%:*}" --batch "${net#*:}" --dtype "${dtypes%% *}" --device "$device" \
                    --seconds "$seconds" | sed -n 's/^images_per_s  *//p') images/s"
            done ;;
        esac
    done
    net=${networks%% *}
    "$convoy" time "${net%:*}" --batch "${net#*:}" --dtype "${dtypes%% *}" --device "$device" --planning measure >"$out/time.txt" || failed "see gpu.txt"
    tail -n 12 "$out/time.txt"
    verdict time "OUT/time.txt, ${net%:*} at batch ${net#*:}; measured kernels: OUT/wisdom"
}

# At most 25 lines.
stage_table() {
    cut -c 1-150 "$out/verdicts"
    [ -s "$out/bench.jsonl" ] || return 0
    printf '%-16s %5s %5s %10s %10s %10s %8s %8s\n' network batch type convoy eager compiled 'to eager' 'to comp.'
    awk '
        function text(key,   at) { at = index($0, "\"" key "\": \""); return at ? substr($0, at + length(key) + 5, index(substr($0, at + length(key) + 5), "\"") - 1) : "" }
        function number(key,   at) { at = index($0, "\"" key "\": "); return at ? substr($0, at + length(key) + 4) + 0 : 0 }
        function median(key,   i, j, n, t, a) {
            n = count[key]
            for (i = 1; i <= n; i++) a[i] = value[key, i]
            for (i = 2; i <= n; i++) for (j = i; j > 1 && a[j] < a[j - 1]; j--) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t }
            return n == 0 ? 0 : n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2
        }
        function shown(x, form) { return x > 0 ? sprintf(form, x) : "-" }
        {
            net = text("who") == "convoy" ? text("model") : text("net")
            row = net SUBSEP number("batch") SUBSEP text("precision")
            if (!(row in seen)) { seen[row] = ++rows; name[rows] = row }
            how = text("who") == "convoy" ? text("planning") : text("variant")
            side = text("who") == "convoy" ? "own" : how ~ /compile|graphs/ ? "compiled" : "eager"
            speed = number("ms_median") > 0 ? 1000 * number("batch") / number("ms_median") : number("images_per_s")
            key = row SUBSEP side SUBSEP how
            value[key, ++count[key]] = speed
            hows[row, side] = hows[row, side] " " how "#"
        }
        # The fastest variant of a side, by its median: of convoy a way of planning.
        function best(row, side,   i, n, list, b, m) {
            if (!((row, side) in hows)) return 0
            n = split(hows[row, side], list, "#")
            for (i = 1; i <= n; i++) { sub(/^ /, "", list[i]); m = median(row SUBSEP side SUBSEP list[i]); if (m > b) b = m }
            return b
        }
        END {
            for (i = 1; i <= rows && i <= 16; i++) {
                split(name[i], part, SUBSEP)
                own = best(name[i], "own"); eager = best(name[i], "eager"); compiled = best(name[i], "compiled")
                printf "%-16s %5d %5s %10s %10s %10s %8s %8s\n", part[1], part[2], part[3], shown(own, "%.1f"), shown(eager, "%.1f"), shown(compiled, "%.1f"),
                    shown(eager ? own / eager : 0, "%.2f"), shown(compiled ? own / compiled : 0, "%.2f")
            }
        }' "$out/bench.jsonl"
}

# ---- all ----

convoy=$(find_convoy)
if [ -n "$is_stage" ]; then
    stage=$1
    [ -n "$convoy" ] || [ "$stage" = build ] || failed "no command of convoy starts here: run the stage build, or copy build/gpu from a machine where it was made"
    wheels=$("$python" -c '
import glob, importlib.util, os
spec = importlib.util.find_spec("nvidia")
print(":".join(sorted({os.path.dirname(f) for place in (spec.submodule_search_locations if spec else ()) for f in glob.glob(place + "/*/lib/lib*.so*")})))' 2>/dev/null)
    export CONVOY_RECORD LD_LIBRARY_PATH="${LD_LIBRARY_PATH-}${LD_LIBRARY_PATH:+${wheels:+:}}$wheels" CONVOY_WISDOM="$out/wisdom"
    case $stage in
    build) stage_build ;;
    about) stage_about ;;
    selftest) stage_selftest ;;
    losses) stage_losses ;;
    bench) stage_bench ;;
    sanitizer) stage_sanitizer ;;
    time) stage_time ;;
    table) stage_table ;;
    esac
    exit
fi

touch "$out/verdicts"
code=0
[ -n "$convoy" ] || stages="build $stages"
[ $# -gt 0 ] || eval "set -- $stages"
for stage in "$@"; do
    begin=$(date +%s)
    echo "==== $stage, $(date '+%F %T'), at most $(limit "$stage") s" >>"$out/gpu.txt"
    timeout -k 5 "$(limit "$stage")" sh "$here/h200.sh" --python "$python" --device "$device" --networks "$networks" --dtypes "$dtypes" --seconds "$seconds" \
        --losses "$losses" --steps "$steps" --slow "$slow" --stage "$out" "$stage" >"$out/stage.txt" 2>&1
    status=$?
    cat "$out/stage.txt" >>"$out/gpu.txt"
    case $status in 124 | 137) verdict "$stage" "FAILED: it was ended after $(limit "$stage") s, its limit: run it again alone" >>"$out/gpu.txt" ;; esac
    [ $status = 0 ] || code=1
    if [ "$stage" = table ]; then cat "$out/stage.txt"; else echo "$(grep "^$stage: " "$out/verdicts" || echo "$stage: FAILED, see gpu.txt") ($(($(date +%s) - begin)) s)"; fi
done
exit $code
