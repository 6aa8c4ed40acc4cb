#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# level: 2
# rows: release
# seconds: 120
# nccl_seeds.sh: exchanges by NCCL with 40 orders in which lanes of the emulated GPU run: jobs with all kinds of exchanges
# end with the weights of the first order, to the bit.
cuda=$CONVOY_BUILD/tests/fake_cuda nccl=$CONVOY_BUILD/tests/fake_nccl
. "$CONVOY_SOURCE/tests/backend/nccl.inc"

# kind NUMBER: runs one of the kinds of jobs, with this seed, into the folder "run".
kind() {
    rm -rf run
    seed=$2
    case $1 in
    0) works 2 run ;;
    1) works 2 run --set update=zero1 --set comm.wire=bf16 ;;
    2) works 4 run --set 'parallel={tensor: 2}' ;;
    3) works 4 run --set 'parallel={spatial: [2, 1]}' --set train.dtype=bf16 ;;
    4) works 4 run --set 'parallel={pipeline: 2, tensor: 2}' --set train.accumulate=2 ;;
    esac
    contains log "gradients are summed by NCCL" || { fail "kind $1: NCCL is not used:"; cat log; }
}

for k in 0 1 2 3 4; do
    kind $k 1
    cp -R run/checkpoints/step-00000012 first-$k
    for s in 2 3 4 5 6 7 8 9; do
        kind $k $s
        for file in first-$k/*.safetensors; do
            same_tensors "$file" "run/checkpoints/step-00000012/${file##*/}" || fail "kind $k: seed $s has other numbers in ${file##*/}"
        done
    done
done
exit $failed
