#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich mpi asan
# ranks_disagree.sh: ranks that were not started with the same job, folder or data are refused within seconds, with rank
# and cause; no rank hangs.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
one="${MPIEXEC_N##* } 1"
sed 's/batch: 16/batch: 32/' job.yaml >other.yaml
sed 's/kernel: 3/kernel: 5/' job.yaml >wider.yaml
sed '/augment/d' job.yaml >plain.yaml

# shellcheck disable=SC2086
{
    refused 'rank 1: started with another job than rank 0: train.batch is 32 here and 16 on rank 0' \
        "$MPIEXEC" $one "$CONVOY" train job.yaml --out bad : $one "$CONVOY" train other.yaml --out bad
    refused 'rank 1: started with another job than rank 0: model.layers[0].conv.kernel is 5 here and 3 on rank 0' \
        "$MPIEXEC" $one "$CONVOY" train job.yaml --out bad : $one "$CONVOY" train wider.yaml --out bad
    refused 'data.augment is given on rank 0 only' \
        "$MPIEXEC" $one "$CONVOY" train job.yaml --out bad : $one "$CONVOY" train plain.yaml --out bad
    refused 'rank 1 was started with another --out, --resume or --plan than rank 0' \
        "$MPIEXEC" $one "$CONVOY" train job.yaml --out bad : $one "$CONVOY" train job.yaml --out worse
    refused 'rank 1: nowhere.yaml: cannot open: No such file or directory' \
        "$MPIEXEC" $one "$CONVOY" train job.yaml --out bad : $one "$CONVOY" train nowhere.yaml --out bad
    refused 'train.batch is 1, but there are 2 ranks; take a larger batch or fewer ranks' $MPIEXEC_N 2 "$CONVOY" train job.yaml --out bad --set train.batch=1

    # The same job file in folders whose data differ: one folder has no data, one has other data.
    mkdir here there other
    for folder in here there other; do sed 's/train: {format.*/train: data.bin/;s/\[3, 8, 8\]/[3, 32, 32]/;s/size: 8/size: 32/' job.yaml >$folder/job.yaml; done
    head -c 98336 /dev/zero >here/data.bin
    head -c 61460 /dev/zero >other/data.bin
    refused 'rank 1: data.bin: no such file or folder' "$MPIEXEC" $one -wdir "$work/here" "$CONVOY" train job.yaml --out bad : $one -wdir "$work/there" "$CONVOY" train job.yaml --out bad
    refused 'rank 1 was started with another training data than rank 0' \
        "$MPIEXEC" $one -wdir "$work/here" "$CONVOY" train job.yaml --out bad : $one -wdir "$work/other" "$CONVOY" train job.yaml --out bad
}
for folder in bad worse here/bad there/bad other/bad; do
    [ ! -e $folder ] || fail "ranks that disagree leave the folder $folder"
done
exit $failed
