#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich
# seconds: 20
# cuda.sh: the backend cuda, on libcuda and NVRTC that are not there (tests/fake_cuda, over the emulated GPU): a job ends
# with the bits of the emulated GPU, on one and two ranks; each call that fails gives one sentence and ends the run;
# compiled kernels are kept, and a damaged file is ignored; another thread of the host goes on.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
fakes=$CONVOY_BUILD/tests/fake_cuda
[ -e "$fakes/libcuda.so.1" ] || { echo "skipped: no $fakes/libcuda.so.1"; exit 77; }
export CONVOY_WISDOM=off XDG_CACHE_HOME="$PWD/cache"
cat >job.yaml <<'END'
model:
  layers:
    - conv: {channels: 8, kernel: 3, pad: 1, bias: false}
    - batch_norm
    - relu
    - max_pool: {kernel: 2}
    - dropout: {p: 0.3}
    - fc: {channels: 4}
data:
  train: {format: synthetic, samples: 64, shape: [3, 8, 8], classes: 4}
train: {batch: 32, epochs: 5, optimizer: {name: adam, lr: 1e-3}}
checkpoint: {every: 4 steps}
END

# on_cuda COMMAND...: with the fakes in place of the vendor's libraries.
on_cuda() { LD_LIBRARY_PATH="$fakes:${LD_LIBRARY_PATH-}" "$@"; }
same_weights() { same_tensors "$1/checkpoints/step-00000010/weights.safetensors" "$2/checkpoints/step-00000010/weights.safetensors"; }

on_cuda "$CONVOY" info >info || fail "convoy info fails"
contains info "fake CUDA device 0" || { fail "convoy info does not show the device:"; cat info; }
"$CONVOY_EMULATED" train job.yaml --device emulated --threads 1 --progress none --out emulated >log 2>&1 || { fail "emulated:"; cat log; }
on_cuda "$CONVOY" train job.yaml --device cuda --threads 1 --progress none --out one >log 2>&1 || { fail "cuda:"; cat log; }
! grep -q staged log || { fail "operators are staged:"; cat log; }
same_weights one emulated || fail "the weights are not those of the emulated GPU"
kept=$(ls cache/convoy/kernels | wc -l)
[ "$kept" -gt 3 ] || fail "$kept kernels were kept"
for file in cache/convoy/kernels/*; do echo damaged >"$file"; done
# shellcheck disable=SC2086
on_cuda $MPIEXEC_N 2 "$CONVOY" train job.yaml --device cuda:0 --threads 1 --progress none --out two >log 2>&1 || { fail "two ranks:"; cat log; }
! grep -q damaged cache/convoy/kernels/* || fail "a damaged file stays"
on_cuda "$CONVOY" selftest --device cuda --only training >log 2>&1 && contains log "in 30 steps, as on the host" || { fail "the self-test:"; cat log; }
on_cuda "$CONVOY_BUILD/tests/test_backend_cuda_thread" >log 2>&1 || { fail "another thread:"; cat log; }

# fails FUNCTION=ERROR[@CALL] WORDS: a run in which the call fails ends with a sentence that has these words.
fails() {
    rm -rf broken
    FAKE_CUDA=$1 on_cuda timeout 60 "$CONVOY" train job.yaml --device cuda --threads 1 --progress none --out broken >log 2>&1
    code=$?
    [ $code -ne 0 ] && [ $code -lt 124 ] || fail "$1: the run ends with $code"
    [ "$(grep -c 'convoy: error' log)" = 1 ] && contains log "$2" || { fail "$1: expected one sentence with \"$2\":"; cat log; }
}
fails cuInit=803 "the CUDA driver does not start: system has unsupported display driver"
fails cuInit=34 "libcuda.so.1 is the CUDA toolkit's stub, not the driver: leave its folder out of LD_LIBRARY_PATH (34)"
fails cuDeviceGetCount=100 "the CUDA driver sees no device"
fails cuDevicePrimaryCtxRetain=2 "out of memory"
fails cuMemAlloc_v2=2 "cannot give"
fails cuMemHostAlloc=2 "cannot lock"
fails cuLaunchKernel=700@60 "CUDA_ERROR_ILLEGAL_ADDRESS (700)"
fails cuStreamSynchronize=214@9 "CUDA_ERROR_ECC_UNCORRECTABLE"
fails cuMemcpyAsync=719@40 "CUDA_ERROR_LAUNCH_FAILED"
fails cuEventRecord=719@30 "cuEventRecord"
fails cuStreamWaitEvent=719@20 "cuStreamWaitEvent"

# The driver and NVRTC fit each other and the device, or the message says what does not.
export CONVOY_NVRTC="$fakes/libnvrtc.so.13" # not one of the machine
fails driver=12040 "fake_cuda/libnvrtc.so.13) is newer than the driver, which is for CUDA 12.4"
fails compiles_for=100 "NVRTC 13.0 does not compile for CUDA device 0, fake CUDA device 0 (sm_90)"
CUDA_VISIBLE_DEVICES='' fails cuInit=100 'no CUDA-capable device is detected (100); CUDA_VISIBLE_DEVICES is "", which hides'
unset CONVOY_NVRTC
mkdir older
cp "$fakes/libcuda.so.1" older/libnvrtc.so.12
for setup in driver=12040 compiles_for=100; do
    FAKE_CUDA=$setup LD_LIBRARY_PATH=$PWD/older on_cuda "$CONVOY" info >info
    contains info "NVRTC 12.9" || { fail "$setup: an older NVRTC, which fits, is not taken:"; cat info; }
done
FAKE_CUDA='' LD_LIBRARY_PATH=$PWD/older on_cuda "$CONVOY" info >info
contains info "NVRTC 13.0" || { fail "the newest NVRTC is not taken:"; cat info; }

# A source that does not compile is staged, with the compiler's words.
XDG_CACHE_HOME=$PWD/none FAKE_CUDA=gpu_pool=6 on_cuda "$CONVOY" train job.yaml --device cuda --threads 1 --progress none --out staged2 >log 2>&1 ||
    { fail "a source that does not compile ends the run:"; cat log; }
contains log "error: identifier is undefined" || { fail "the compiler's words are missing:"; cat log; }

# A compiler that lacks its own files, and a device that fails as code is loaded, end the run: the source is no fault of it.
XDG_CACHE_HOME=$PWD/none2 fails gpu_pool=7 "NVRTC, which compiles the kernels, does not work (7): nvrtc: error: failed to open libnvrtc-builtins.so.13.0."
fails cuModuleLoadData=214@2 "cuModuleLoadData fails with CUDA_ERROR_ECC_UNCORRECTABLE"
exit $failed
