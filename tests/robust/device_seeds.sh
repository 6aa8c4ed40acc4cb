#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: soak
# seconds: 60
# level: 2
# device_seeds.sh: whole jobs on one, two and four ranks over a CUDA, a cuDNN and an NCCL that are not there (tests/fake_cuda,
# fake_cudnn, fake_nccl). A seed chooses the order in which lanes, blocks and threads run, the update mode, whether cuDNN
# computes, and whether new memory is NaN. Weights and states have the bits of the same job with the seed 0, in each
# checkpoint: a mark or a wait that is missing gives other bits with most seeds.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
. "$CONVOY_SOURCE/tests/robust/sweep.inc"
fakes=$CONVOY_BUILD/tests
for name in fake_cuda/libcuda.so.1 fake_nccl/libnccl.so.2 fake_cudnn/libcudnn.so.9; do
    [ -e "$fakes/$name" ] || { echo "skipped: no $fakes/$name"; exit 77; }
done
export CONVOY_WISDOM=off XDG_CACHE_HOME="$PWD/cache" TMPDIR="$PWD" CONVOY_CUDNN CVY_EMULATED
export LD_LIBRARY_PATH="$fakes/fake_cuda:$fakes/fake_nccl:$fakes/fake_cudnn:${LD_LIBRARY_PATH-}"
cat >job.yaml <<'END'
device: cuda
model:
  layers:
    - conv: {channels: 8, kernel: 3, pad: 1, bias: false}
    - batch_norm
    - relu
    - max_pool: {kernel: 2}
    - dropout: {p: 0.3}
    - fc: {channels: 21}
    - relu
    - fc: {channels: 4}
data:
  train: {format: synthetic, samples: 32, shape: [3, 8, 8], classes: 4}
train: {batch: 16, epochs: 3, optimizer: {name: adam, lr: 1e-3}}
comm: {bucket: 2 KiB}
checkpoint: {every: 3 steps, keep: 9}
END

# job SEED RANKS FOLDER: the job that the seed chooses, but for 0, which is that of $update and $CONVOY_CUDNN in order.
job() {
    CVY_EMULATED="seed=$1 devices=4 order=$([ "$1" = 0 ] && echo ascending || echo any) poison=$(($1 / 6 % 2))"
    rm -rf "$3"
    train "$2" "$3" --verbose --set update="$update" || { fail "seed $1, $2 ranks, update $update, CONVOY_CUDNN=$CONVOY_CUDNN: the job fails: $(grep -m 1 "convoy: error" log || tail -n 3 log)"; return 1; }
}

CONVOY_CUDNN=$fakes/fake_cudnn/libcudnn.so.9 "$CONVOY" plan job.yaml >plan 2>&1 && contains plan cudnn.conv || { fail "cuDNN computes nothing:"; tail -n 5 plan; }

sample 2 6 200
tried=0 same=0
for number in $(seq $((seed * 6)) $((seed * 6 + wanted - 1))); do
    case $((number % 3)) in 0) update=sync ;; 1) update=zero1 ;; *) update=delayed ;; esac
    case $((number / 3 % 2)) in 0) CONVOY_CUDNN=off ;; *) CONVOY_CUDNN=$fakes/fake_cudnn/libcudnn.so.9 ;; esac
    for ranks in 1 2 4; do
        whole=disk/$ranks-$update-$((number / 3 % 2))
        [ -e "$whole" ] || job 0 $ranks "$whole"
        tried=$((tried + 1))
        job $((number + 1)) $ranks disk/run || continue
        [ $ranks = 1 ] || contains log "gradients are summed by NCCL" || { fail "$ranks ranks: NCCL is not used:"; cat log; }
        if same_weights disk/run "$whole" step-00000003 && same_weights disk/run "$whole" step-00000006; then
            same=$((same + 1))
        else
            fail "CVY_EMULATED=\"$CVY_EMULATED\", $ranks ranks, update $update, CONVOY_CUDNN=$CONVOY_CUDNN"
        fi
    done
done
echo "count: $same of $tried jobs, with $wanted seeds on 1, 2 and 4 ranks, have the bits of the seed 0"
exit $failed
