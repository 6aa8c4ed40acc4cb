#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# seconds: 90
# level: 2
# gpu_check.sh: the stages of scripts/gpu/h200.sh with convoy itself, over a libcuda and NVRTC that are not there
# (tests/fake_cuda). tests/tools/gpu_script.sh has their verdicts.
. "$CONVOY_SOURCE/tests/shell.inc"
fakes=$CONVOY_BUILD/tests/fake_cuda
[ -e "$fakes/libcuda.so.1" ] || { echo "skipped: no $fakes/libcuda.so.1"; exit 77; }
printf '#!/bin/sh\nshift 4\nexec "$@"\n' >compute-sanitizer
printf '#!/bin/sh\nexit 1\n' >python
chmod +x compute-sanitizer python
PATH="$PWD:$PATH" CONVOY_CUDNN=off XDG_CACHE_HOME="$PWD/cache" LD_LIBRARY_PATH="$fakes:${LD_LIBRARY_PATH-}" \
    sh "$CONVOY_SOURCE/scripts/gpu/h200.sh" --python "$PWD/python" --networks lenet:1 --seconds 1 --losses lenet --steps 2 --slow 10 out >log 2>&1 ||
    { fail "code $?:"; cat log; tail -n 40 out/gpu.txt; }
says() { grep -q -- "$1" log || { fail "expected $1:"; cat log; tail -n 40 out/gpu.txt; }; }
says '^about: cuda:0 fake CUDA device 0, '
says '^selftest: \([1-9][0-9]*\) of \1 runs on [1-9][0-9]* samples agree with the reference kernels (fake CUDA device 0)'
says '^losses: lenet: as on the host over 2 steps; deterministic trainings: the same bits, also without recordings'
says '^bench: [1-9][0-9]* measurements of convoy, without PyTorch'
says '^sanitizer: memcheck and racecheck find nothing'
says '^time: OUT/time.txt, lenet at batch 1'
says '^lenet  *1  *bf16  *[1-9]'
grep -q 'conv1' out/time.txt || { fail "no times of layers:"; cat out/time.txt; }
exit $failed
