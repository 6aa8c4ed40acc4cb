#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# level: 2
# Batch norm trains as PyTorch's does on the samples that count: running statistics and, for groups of whole batches, all
# weights, for remainders, short last batches, micro-batches, weights of 0, masks and ranks.
# CONVOY_TEST_PYTORCH names an interpreter with torch and numpy. Without it the test is skipped.
. "$CONVOY_SOURCE/tests/shell.inc"
export CONVOY_SITE=off PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
[ -n "${CONVOY_TEST_PYTORCH-}" ] || { echo "it needs PyTorch: CONVOY_TEST_PYTORCH names an interpreter that has it"; exit 77; }
"$CONVOY_TEST_PYTORCH" -c 'import torch, numpy' 2>why || { echo "$CONVOY_TEST_PYTORCH lacks a package: $(tail -1 why)"; exit 77; }
script=$CONVOY_SOURCE/tests/cmd/pytorch_batch_norm.py

# check N BATCH ACCUMULATE GROUP POSITIONS WEIGHTS RANKS...
check() {
    case="$1 $2 $3 $4 $5 $6"
    "$CONVOY_TEST_PYTORCH" "$script" make $case || { fail "$case: no data"; return; }
    shift 6
    for ranks; do
        rm -rf run
        mpiexec -n "$ranks" "$CONVOY" train job.yaml --out run --progress none >log 2>&1 || { fail "$case, $ranks ranks: $(tail -3 log)"; continue; }
        off=$("$CONVOY_TEST_PYTORCH" "$script" compare run) || fail "$case, $ranks ranks: $off"
        echo "$case, $ranks ranks: $off"
    done
}

check 99 33 1 32 1 none 1 2
check 65 65 1 batch 1 none 1 3
check 65 65 1 batch 2 some 1 2
check 97 97 1 32 1 some 1 5
check 70 33 1 32 2 none 1 2 # the last batch has 4 samples
check 70 33 1 batch 4 some 1
check 66 66 4 32 1 some 1 3
check 67 67 3 batch 3 some 2
check 40 40 1 batch 1 mask 1 2
exit $failed
