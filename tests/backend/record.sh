#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich
# level: 2
# seconds: 60
# record.sh: steps that are recorded (docs/internals/devices.md) end with the bits of steps whose kernels are launched one
# by one: on the emulated GPU and on cuda over fake libraries, on one and two ranks, with validation, a smaller last batch,
# delayed and deferred updates, bf16, averages of weights, and after --resume. A graph call of CUDA that fails is said once,
# and the run goes on without recordings. A kernel that fails is named by CONVOY_SYNC=1. The variables "seeds" and
# "networks" of the environment ask for more.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
fakes=$CONVOY_BUILD/tests/fake_cuda
[ -e "$fakes/libcuda.so.1" ] || { echo "skipped: no $fakes/libcuda.so.1"; exit 77; }
export CONVOY_WISDOM=off XDG_CACHE_HOME="$PWD/cache" CONVOY_NCCL=off
cat >job.yaml <<'END'
model:
  layers:
    - conv: {name: first, channels: 8, kernel: 3, pad: 1, bias: false}
    - batch_norm
    - relu
    - max_pool: {kernel: 2}
    - dropout: {p: 0.3}
    - fc: {channels: 4}
data:
  train: {format: synthetic, samples: 100, shape: [3, 8, 8], classes: 4}
  val: 20%
train: {batch: 24, epochs: 4, optimizer: {name: adam, lr: 1e-3}, metrics: [accuracy]}
checkpoint: {every: 4 steps, keep: 9}
log: {every: 1}
END
cat >network.yaml <<'END'
data: {train: {format: synthetic, samples: 40, noise: 1}}
train: {batch: 4, steps: 5, optimizer: {name: sgd, lr: 0.002, momentum: 0.9}}
checkpoint: {every: 5 steps}
END
sed -i 's/^data:/model: {name: NETWORK}\n&/' network.yaml

# train RANKS DEVICE FOLDER [OPTION...]: trains $job there.
train() {
    n=$1 device=$2 folder=$3
    shift 3
    launch= program=$CONVOY
    [ "$n" = 1 ] || launch="$MPIEXEC_N $n"
    [ "$device" = cuda ] || program=$CONVOY_EMULATED
    CVY_EMULATED="seed=${seed:-1} devices=2 poison=1" LD_LIBRARY_PATH="$fakes:${LD_LIBRARY_PATH-}" timeout 100 $launch \
        "$program" train "${job:-job.yaml}" --device "$device" --threads 1 --progress none --verbose --out "$folder" "$@" >log 2>&1
}
works() { train "$@" || { fail "$*: the job fails:"; tail -n 5 log; }; }
is_recorded() { grep -q ' [1-9][0-9]* launches of a training step with a batch of [0-9]* are in [1-9]' log || { fail "$1 is not recorded:"; tail -n 20 log; }; }
losses() { grep -v '"save"' "$1/metrics.jsonl" | grep -o '"step": [0-9]*\|"[a-z_]*loss": [^,}]*\|"[a-z_]*accuracy": [^,}]*'; }
same_run() {
    losses "$1" >losses.1 && losses "$2" >losses.2 && cmp losses.1 losses.2 || fail "the losses of $1 and $2 differ"
    for saved in "$1"/checkpoints/*/weights.safetensors; do
        same_tensors "$saved" "$2${saved#"$1"}" || fail "${saved#"$1/"}: $1 and $2 differ"
    done
}

# both RANKS DEVICE NAME [OPTION...]: with and without recordings.
both() {
    ranks=$1 device=$2 name=$3-$1-$2
    shift 3
    CONVOY_RECORD=off works "$ranks" "$device" "$name-plain" "$@"
    ! grep -q 'launches of a' log || fail "CONVOY_RECORD=off: $name is recorded"
    for seed in ${seeds:-1}; do
        works "$ranks" "$device" "$name-$seed" "$@"
        is_recorded "$name"
        same_run "$name-plain" "$name-$seed"
    done
    unset seed
}
seeds="${seeds:-1 2}"
both 1 emulated sync
both 2 emulated sync
both 1 cuda sync
both 2 cuda sync
seeds=${seeds%% *}
for mode in delayed zero1 local; do both 2 emulated $mode --set update=$mode; done
both 2 emulated deferred --set comm.overlap=forward
both 1 emulated bf16 --set train.dtype=bf16
both 1 emulated average --set train.optimizer.average=0.9
# The averages take the place of the weights in validations, so shadow copies in bf16 are made again.
[ ! -e "$CONVOY_BUILD/tests/fake_cudnn/libcudnn.so.9" ] || fakes=$fakes:$CONVOY_BUILD/tests/fake_cudnn \
    both 1 cuda shadows --set train.dtype=bf16 --set train.optimizer.average=0.9 --set train.batch=10
both 1 emulated parts --set train.accumulate=2
both 1 emulated exact --set deterministic=true
for network in ${networks-lenet}; do
    sed "s/NETWORK/$network/" network.yaml >"$network.yaml"
    [ $network = lenet ] || sed -i 's/noise: 1/&, shape: [3, 16, 16]/' "$network.yaml"
    job=$network.yaml both 1 emulated $network
done

# A run that is resumed records again.
name=sync-1-emulated-${seeds%% *}
rm -rf $name/checkpoints/step-0000001[26]
works 1 emulated $name --resume
is_recorded "the resumed run"
same_run sync-1-emulated-plain $name
[ -e $name/checkpoints/step-00000016 ] || fail "the resumed run has not come to its end"

# A bench times recorded steps, in each mode, and the parts of a step add up to it; the plan says what can be recorded.
for mode in train forward forward-backward; do
    "$CONVOY_EMULATED" bench job.yaml --steps 6 --mode $mode --device emulated --verbose --json >bench.json 2>log || { fail "no bench:"; tail -n 3 log; }
    grep -q ' [1-9][0-9]* launches of a [a-z]* step with a batch of 24 are in [12] recordings*$' log || { fail "bench, $mode: not recorded"; cat log; }
    parts_add_up bench.json
done
"$CONVOY_EMULATED" plan job.yaml --device emulated >plan 2>&1
grep -q '^\([1-9][0-9]*\) of \1 instructions of a step can be recorded, in 2 recordings$' plan || { fail "the plan:"; grep record plan; }

# Numbers that are not finite: the recorded steps are found bad, and the step is run again to find the layer.
for record in on off; do
    CONVOY_RECORD=$record train 1 emulated bad-$record --set train.optimizer.lr=1e30 && fail "the loss stays finite"
    grep -a 'convoy: error' log >bad-$record.error
done
[ -s bad-on.error ] && cmp bad-on.error bad-off.error || fail "the errors of a loss that is not finite differ"

# A call of the driver that fails: one warning, and the run goes on.
for call in cuStreamBeginCapture_v2=900 cuStreamEndCapture=901 cuGraphGetNodes=1 cuGraphInstantiateWithFlags=2 cuGraphLaunch=1 \
    cuStreamEndCapture=901@2 cuGraphLaunch=1@9; do
    rm -rf broken
    FAKE_CUDA=$call works 1 cuda broken
    name=${call%%=*}
    [ "$(grep -c "steps are not recorded, and kernels are launched one by one: CUDA device 0, .*${name%_v2}" log)" -ge 1 ] ||
        { fail "$call: no warning:"; tail -n 5 log; }
    [ "$(grep -c 'are not recorded' log)" -le 3 ] || fail "$call: more warnings than plans"
    same_run sync-1-cuda-plain broken
done

# A kernel that fails in a recording: the message says between which layers, and how to find it; then it is named.
rm -rf broken
FAKE_CUDA=cuGraphLaunch=700@5 train 1 cuda broken && fail "an illegal address is no error"
[ "$(grep -c 'convoy: error' log)" = 1 ] && contains log "CUDA_ERROR_ILLEGAL_ADDRESS (700)" && contains log "the latest kernel was one of a recording, from " &&
    contains log "CONVOY_SYNC=1 in the environment waits for each kernel and names the one that fails" || { fail "an illegal address:"; tail -n 3 log; }
# The same of a device that fails as a recording is launched: that is no lack of recordings.
rm -rf broken
FAKE_CUDA=cuGraphLaunch=214@5 train 1 cuda broken && fail "an error of the device's memory is no error"
[ "$(grep -c 'convoy: error' log)" = 1 ] && contains log "CUDA_ERROR_ECC_UNCORRECTABLE" || { fail "an error of the device's memory:"; tail -n 3 log; }
rm -rf broken
CONVOY_SYNC=1 FAKE_CUDA=cuStreamSynchronize=700@70 train 1 cuda broken && fail "an illegal address is no error"
[ "$(grep -c 'convoy: error' log)" = 1 ] && grep -a 'convoy: error' log | grep -q 'on node .*: [a-z0-9_.]*: \(kernel [a-z_0-9]*: \)*CUDA device 0, .*ILLEGAL_ADDRESS.*; the latest kernel was [a-z_0-9]' ||
    { fail "CONVOY_SYNC=1 names no layer and kernel:"; tail -n 3 log; }
! contains log "CONVOY_SYNC" || fail "CONVOY_SYNC=1 asks for itself"
CONVOY_SYNC=1 works 1 cuda waits
! grep -q 'launches of a' log || fail "CONVOY_SYNC=1 is recorded"
same_run sync-1-cuda-plain waits
exit $failed
