#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# gpu_script.sh: scripts/gpu/h200.sh with programs that stand for convoy, Python and NVIDIA's tools: the stages in their
# order, what the table says of each, the ratios in it, a check that fails, a stage that takes too long, a stage by itself,
# no PyTorch, no command. tests/backend/gpu_check.sh runs it with convoy.
. "$CONVOY_SOURCE/tests/shell.inc"
script=$CONVOY_SOURCE/scripts/gpu/h200.sh
mkdir tools
cat >convoy <<'END'
#!/bin/sh
echo "$*" >>"$CALLS"
case "$1" in
info) printf 'cuda:0        a GPU, 80 GiB\ncuda:1        another GPU\n' ;;
selftest) [ ! -e slow ] || sleep 60; printf 'ok       kernels        7 of 7 runs agree\n'; [ ! -e wrong ] || { echo 'FAILED   training'; exit 1; } ;;
bench)
    case $* in *--json*) ;; *) echo "images_per_s  $([ "$CONVOY_RECORD" = off ] && echo 5 || echo 9)"; exit ;; esac
    case $* in *f32*) speed=100 ;; *estimate*) speed=200 ;; *) speed=400 ;; esac
    echo "{\"model\": \"$3\", \"batch\": 8, \"parameters\": 5, \"macs\": 6, \"images_per_s\": 1, \"ms_median\": $((8000 / speed)), \"device_peak_bytes\": 1e9}" ;;
train)
    [ ! -e broken ] || { echo "convoy: error: an illegal address${CONVOY_SYNC:+ in conv1}"; exit 1; }
    while [ "$1" != --out ]; do shift; done
    mkdir -p "$2/checkpoints/1"
    loss=$(cat "${2##*/}.loss" 2>/dev/null || echo 2.5)
    printf '{"kind": "step", "loss": %s, "x": 1}\n{"kind": "step", "loss": %s, "x": 1}\n' 3.5 "$loss" >"$2/metrics.jsonl"
    printf '\2\0\0\0\0\0\0\0{}%s' "$(cat bits 2>/dev/null)" >"$2/checkpoints/1/w.safetensors"
    [ ! -e random ] || date +%N >>bits ;;
time) echo "conv1 1 ms" ;;
esac
END
cat >tools/python <<'END'
#!/bin/sh
case "$*" in
*'import torch, torchvision'*) exit "$(cat no-torch 2>/dev/null || echo 0)" ;;
*run_pytorch.py*compile*) echo '{"net": "lenet", "batch": 8, "variant": "compile", "parameters": 5, "macs": 6, "images_per_s": 250}' ;;
*run_pytorch.py*graphs*) echo '{"net": "lenet", "batch": 8, "variant": "graphs", "parameters": 5, "macs": 6, "images_per_s": 320}' ;;
*run_pytorch.py*) echo '{"net": "lenet", "batch": 8, "variant": "eager", "parameters": 5, "macs": 6, "images_per_s": 200}' ;;
*properties.py*) echo '{}' >"$2"; echo "device ${3-0}" ;;
esac
END
printf '#!/bin/sh\necho "driver 1"\n' >tools/nvidia-smi
printf '#!/bin/sh\necho "checked by $2"; shift 4; "$@"; exit "$(cat errors 2>/dev/null || echo 0)"\n' >tools/compute-sanitizer
chmod +x convoy tools/*
export CONVOY="$PWD/convoy" CALLS="$PWD/calls" PATH="$PWD/tools:$PATH"
check() { sh "$script" --python "$PWD/tools/python" --networks lenet:8 --seconds 1 --losses 'lenet mixture' "$@" >log 2>&1; }
says() { grep -q -- "$1" log || { fail "expected $1:"; cat log; }; }

check first || { fail "code $?:"; cat log first/gpu.txt; }
[ "$(sed -n 's/^\([a-z]*\): .* ([0-9]* s)$/\1/p' log | tr '\n' ' ')" = 'about selftest losses bench sanitizer time ' ] || { fail "the stages:"; cat log; }
[ "$(sed -n 's/^==== \([a-z]*\), .*/\1/p' first/gpu.txt | tr '\n' ' ')" = 'about selftest losses bench sanitizer time table ' ] || { fail "gpu.txt:"; cat first/gpu.txt; }
says '^about: cuda:0 a GPU, 80 GiB ('
says '^selftest: 7 of 7 runs agree ('
says '^losses: lenet mixture: as on the host over 50 steps; deterministic trainings: the same bits, also without recordings ('
says '^sanitizer: memcheck and racecheck find nothing in two steps ('
# The fastest variant counts; images/s are those of the median step where it is known.
says '^lenet  *8  *bf16  *400.0  *200.0  *320.0  *2.00  *1.25$'
says '^lenet  *8  *f32  *100.0  *200.0  *-  *0.50  *-$'
says '^lenet  *8  *tf32  *100.0  *200.0  *-  *0.50  *-$'
[ "$(wc -l <log)" -le 31 ] || { fail "the table is long:"; cat log; }
contains first/gpu.txt 'lenet:8, CONVOY_RECORD=off: 5 images/s' && contains first/gpu.txt 'lenet:8, CONVOY_RECORD=on: 9 images/s' || fail "recordings in gpu.txt"
contains first/gpu.txt 'checked by racecheck' && contains first/gpu.txt 'driver 1' && [ -s first/device.json ] || { fail "gpu.txt:"; cat first/gpu.txt; }

# A check that fails is in the table, and the others run; the stage alone, when it passes, replaces that.
touch wrong
check first selftest table && fail "a check fails, and the code is 0"
says '^selftest: FAILED: see gpu.txt'
rm wrong
check first selftest table || fail "code $?"
[ "$(grep -c '^selftest: 7 of 7 runs agree' log)" = 2 ] && [ "$(grep -c '^selftest:' log)" = 2 ] || { fail "the stage again:"; cat log; }
echo 2.6 >lenet-device.loss
check first losses && fail "other losses are taken"
says '^losses: FAILED: losses differ from those of the host: lenet ('
rm lenet-device.loss && touch random
check first losses && fail "other bits are taken"
says '^losses: FAILED: deterministic trainings have other bits, with CONVOY_RECORD=on ('
rm random && touch broken
check first losses && fail "a training that fails is taken"
says '^losses: FAILED: lenet does not train on host: convoy: error: an illegal address ('
contains first/gpu.txt 'convoy: error: an illegal address in conv1' || { fail "the layer is not named:"; tail -n 9 first/gpu.txt; }
rm broken
echo 9 >errors
check first sanitizer && fail "errors of the sanitizer are taken"
says '^sanitizer: FAILED: memcheck finds errors'
touch slow
sed 's/selftest) echo .*/selftest) echo 1 ;;/' "$script" >"$work/tools/h200.sh"
mkdir -p tree/scripts/gpu && cp tools/h200.sh tree/scripts/gpu/
sh tree/scripts/gpu/h200.sh --python "$PWD/tools/python" first selftest >log 2>&1 && fail "a stage takes too long, and the code is 0"
says '^selftest: FAILED: it was ended after 1 s, its limit'
rm slow

check --device cuda:1 second about || fail "code $?"
says '^about: cuda:1 another GPU ('
contains second/gpu.txt 'device 1' || { fail "the number of the device:"; cat second/gpu.txt; }
echo 1 >no-torch
check second bench table || fail "code $?"
says '^bench: 5 measurements of convoy, without PyTorch'
says '^lenet  *8  *bf16  *400.0  *-  *-  *-  *-$'
refused "there is no stage 'tabel'" sh "$script" second tabel
printf '#!/bin/sh\nexit 1\n' >convoy
printf '#!/bin/sh\necho "CMake Error: there is no MPI" >&2; exit 1\n' >tools/cmake
chmod +x tools/cmake
sh tree/scripts/gpu/h200.sh --python "$PWD/tools/python" third >log 2>&1 && fail "there is no command, and the code is 0"
says '^build: FAILED: CMake Error: there is no MPI .*a machine with MPI and libyaml can make build/gpu for this one ('
says '^about: FAILED: no command of convoy starts here: run the stage build, or copy build/gpu'
exit $failed
