#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich
# seconds: 60
# cudnn.sh: the kernels of cuDNN on a cuDNN, a libcuda and an NVRTC that are not there (tests/fake_cudnn, tests/fake_cuda):
# they agree with the reference kernels on all samples; a job trains on them in f32 and bf16, with the losses of
# convoy's own kernels, and with the same bits for each order of the lanes; plan.tf32 lets it round; without cuDNN, with
# another version, or if it gives no plan, convoy's own kernels run, and `convoy info` and `doctor` say so; the engine that
# was measured to be the fastest is taken, and remembered for this device, driver and cuDNN; a call that fails in a step
# gives one sentence and ends the run.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
fakes=$CONVOY_BUILD/tests/fake_cuda:$CONVOY_BUILD/tests/fake_cudnn:$CONVOY_BUILD/tests/fake_nccl
[ -e "$CONVOY_BUILD/tests/fake_cudnn/libcudnn.so.9" ] || { echo "skipped: no $CONVOY_BUILD/tests/fake_cudnn/libcudnn.so.9"; exit 77; }
export CONVOY_WISDOM=off XDG_CACHE_HOME="$PWD/cache"
cat >job.yaml <<'END'
model:
  layers:
    - conv: {name: a, channels: 8, kernel: 3, pad: 1}
    - relu
    - conv: {name: b, channels: 8, kernel: 3, pad: 1, bias: false}
    - batch_norm
    - relu: {name: r}
    - conv: {name: c, channels: 8, kernel: 1, bias: false}
    - add: {name: sum, from: [c, r]}
    - deconv: {channels: 4, kernel: 2, stride: 2}
    - max_pool: {kernel: 2}
    - fc: {channels: 4}
data:
  train: {format: synthetic, samples: 64, shape: [3, 8, 8], classes: 4}
train: {batch: 32, epochs: 5, optimizer: {name: adam, lr: 1e-3}}
checkpoint: {every: 10 steps}
END

on_cuda() { LD_LIBRARY_PATH="$fakes:${LD_LIBRARY_PATH-}" "$@"; }

on_cuda "$CONVOY_BUILD/tests/test_op_cudnn" >samples || { fail "the samples:"; grep -v ' 0 failed' samples | tail -n 10; }
tail -n 2 samples

# train NAME [ARGUMENT]...: trains the job in the folder NAME, and writes its losses to NAME.losses.
train() {
    name=$1
    shift
    on_cuda timeout 120 "$CONVOY" train job.yaml --device cuda --threads 1 --progress none --out "$name" --set log.every=1 "$@" \
        >"$name.log" 2>&1 || { fail "$name:"; tail -n 5 "$name.log"; return 1; }
    ! grep -q staged "$name.log" || { fail "$name: operators are staged:"; cat "$name.log"; }
    sed -n 's/.*"kind": "step".*"loss": \([^,]*\),.*/\1/p' "$name/metrics.jsonl" >"$name.losses"
}
# close A B TOLERANCE: ten losses agree, relative to the loss.
close() {
    paste "$1.losses" "$2.losses" | awk -v within="$3" '
        { off = $1 > $2 ? $1 - $2 : $2 - $1; if (!(off <= within * $1)) bad = bad " " $1 " " $2 ";" }
        END { if (NR != 10 || bad != "") { print NR " losses differ:" bad; exit 1 } }' || fail "$1 and $2 differ"
}
same_weights() { same_tensors "$1/checkpoints/step-00000010/weights.safetensors" "$2/checkpoints/step-00000010/weights.safetensors"; }

on_cuda "$CONVOY" plan job.yaml --explain --device cuda >plan 2>&1 || { fail "no plan:"; cat plan; }
for kernel in conv conv_grad_src conv_grad_src_add conv_grad_weight deconv deconv_grad_src deconv_grad_weight fc fc_grad_src fc_grad_weight; do
    grep -q "[*] cudnn.$kernel " plan || fail "cudnn.$kernel is not taken"
done
train own --set plan.kernels=gpu
train cudnn
close cudnn own 1e-4
train own16 --set plan.kernels=gpu --set train.dtype=bf16
train cudnn16 --set train.dtype=bf16
close cudnn16 own16 3e-2
for seed in 2 3 4; do
    CVY_EMULATED="seed=$seed poison=1" train "seed$seed"
    same_weights cudnn "seed$seed" || fail "other bits with seed $seed"
done

# TF32: factors are rounded where cuDNN computes in f32, and nowhere else.
train tf32 --set plan.tf32=true
! grep -q "has no effect" tf32.log || { fail "plan.tf32 has no effect:"; cat tf32.log; }
close tf32 own 1e-2
! same_weights cudnn tf32 >/dev/null 2>&1 || fail "plan.tf32 changes no bit"
idle() { contains "$1.log" "plan.tf32 has no effect here: $2" || { fail "$1: expected \"$2\":"; cat "$1.log"; }; }
train idle_dtype --set plan.tf32=true --set train.dtype=bf16 --set train.epochs=1
idle idle_dtype "only f32 is rounded to TF32"
train idle_kernels --set plan.tf32=true --set plan.kernels=gpu --set train.epochs=1
idle idle_kernels "only cudnn multiplies in TF32, and plan.kernels leaves it out"
CONVOY_CUDNN=off train idle_library --set plan.tf32=true --set train.epochs=1
idle idle_library "the variable CONVOY_CUDNN says off; convoy's own kernels are used instead"
"$CONVOY" train job.yaml --device host --threads 1 --progress none --out idle_host --set plan.tf32=true --set train.epochs=1 >idle_host.log 2>&1
idle idle_host "only cudnn multiplies in TF32, and it needs a device of CUDA"
"$CONVOY" plan job.yaml --set plan.tf32=true --set train.precise=true >log 2>&1 && fail "tf32 and precise are accepted together"
contains log "rounds factors to TF32, which" || { fail "tf32 and precise:"; cat log; }

# What makes cuDNN unusable leaves convoy's own kernels.
FAKE_CUDNN=cudnnCreate=1 train no_handle
contains no_handle.log "warning: cuDNN does not start on CUDA device 0" || fail "no warning of a cuDNN that does not start"
! grep -q 'warning: .*cuDNN' cudnn.log own.log idle_library.log || fail "a warning of a cuDNN that works, or is not wanted"
same_weights own no_handle || fail "without a handle: other bits than those of convoy's own kernels"
FAKE_CUDNN=cudnnBackendFinalize=3000 train no_plan
same_weights own no_plan || fail "without plans: other bits than those of convoy's own kernels"
FAKE_CUDNN_VERSION=80907 on_cuda "$CONVOY" plan job.yaml --explain --device cuda >plan 2>&1
contains plan "libcudnn.so.9 is cuDNN 8.9.7, and convoy needs cuDNN 9; convoy's own kernels are used instead" || fail "the version is not named"
CONVOY_CUDNN=$PWD/none on_cuda "$CONVOY" plan job.yaml --explain --device cuda >plan 2>&1
contains plan "cuDNN cannot be loaded ($PWD/none: " || fail "a missing library is not named"
! grep -q "[*] cudnn" plan || fail "kernels of a missing library are taken"
on_cuda "$CONVOY" info >info 2>&1
grep -q "^cudnn  *9\.19\.0, .*/fake_cudnn/libcudnn\.so\.9" info || { fail "convoy info does not show cuDNN:"; cat info; }
CONVOY_NCCL=off CONVOY_CUDNN=$PWD/none on_cuda "$CONVOY" info --json >info 2>&1
contains info '"cudnn": "none: cuDNN cannot be loaded (' || { fail "convoy info without cuDNN:"; cat info; }
contains info '"nccl": "none: the variable CONVOY_NCCL says off; ranks exchange tensors through the host' || { fail "convoy info without NCCL:"; cat info; }
CONVOY_CUDNN=$PWD/none on_cuda "$CONVOY" doctor --seconds 1 >log 2>&1
contains log "has a device of CUDA and no cudnn, with which it is faster: cuDNN cannot be loaded" || { fail "convoy doctor without cuDNN:"; cat log; }

# The fastest engine by time. The fake's heuristics name engine 3 first; engine 4 is the fast one, the second of a plan.
sed -e 's/channels: 8/channels: 4/; s/batch: 32, epochs: 5/batch: 4, epochs: 1/' -e '/name: b,/,/from:/d' job.yaml >small.yaml
# measured NAME [ARGUMENT]...: writes which kernels are taken to NAME.plan.
measured() {
    name=$1
    shift
    CONVOY_WISDOM=$PWD/wisdom.json on_cuda timeout 120 "$CONVOY" plan small.yaml --explain --device cuda --threads 1 \
        --set plan.kernels=cudnn "$@" >"$name.plan" 2>"$name.log" || { fail "$name:"; cat "$name.log"; }
    grep "[*]" "$name.plan" | grep -o "cudnn[^ ]*" >"$name.taken"
}
export FAKE_CUDNN_FAST=4
measured estimated
! grep "_[2-4]$" estimated.taken || fail "another engine is taken without a time"
measured first --set plan.planning=measure
[ "$(grep -c "_2$" first.taken)" = "$(wc -l <first.taken)" ] || { fail "the fast engine is not taken:"; cat first.plan; }
cp wisdom.json measured.json
measured second
diff first.taken second.taken || fail "wisdom gives another choice"
measured third --set plan.planning=measure
cmp -s wisdom.json measured.json || fail "known times are measured again"
FAKE_CUDA=driver=13010 measured driver
contains driver.log "was measured on another machine or build" || { fail "wisdom of another driver is used:"; cat driver.log; }
FAKE_CUDNN_VERSION=91001 measured version
contains version.log "was measured on another machine or build" || { fail "wisdom of another cuDNN is used:"; cat version.log; }
diff estimated.taken version.taken || fail "times of another cuDNN are used"
unset FAKE_CUDNN_FAST

FAKE_CUDNN=cudnnBackendExecute=5000@20 on_cuda timeout 60 "$CONVOY" train job.yaml --device cuda --threads 1 --progress none --out broken >log 2>&1
code=$?
[ $code -ne 0 ] && [ $code -lt 124 ] || fail "a call that fails: the run ends with $code"
[ "$(grep -c 'convoy: error' log)" = 1 ] && contains log "of cuDNN fails with" || { fail "a call that fails:"; cat log; }

"$CONVOY" plan job.yaml --set plan.kernels=cudnn >log 2>&1 && fail "cudnn on the host is accepted"
contains log "the kernels of cudnn work on the memory of a device of CUDA, and this run is on host" || { fail "cudnn on the host:"; cat log; }
exit $failed
