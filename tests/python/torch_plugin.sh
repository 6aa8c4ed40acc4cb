#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# level: 2
# torch_plugin.sh: convoy.torch trains a PyTorch module on one and two ranks: weights equal those of PyTorch's
# DistributedDataParallel and of one process, with several backward passes, clipped gradients, a schedule, and parameters
# that some ranks or all do not use; delayed updates equal those of one process that applies gradients one step late;
# bf16 between nodes; and wrong parameters and calls are named.
#
# CONVOY_TEST_PYTORCH names an interpreter with torch, if python3 has none. Without it the test is skipped.
. "$CONVOY_SOURCE/tests/shell.inc"
pytorch=${CONVOY_TEST_PYTORCH:-python3}
"$pytorch" -c 'import torch' 2>why || { echo "$pytorch lacks a package: $(tail -1 why). CONVOY_TEST_PYTORCH names another interpreter"; exit 77; }
export CONVOY_LIBRARY="$CONVOY_BUILD/libconvoy.so" PYTHONPATH="$CONVOY_SOURCE/python" PYTHONDONTWRITEBYTECODE=1
for n in 1 2; do
    # shellcheck disable=SC2086
    $MPIEXEC_N $n "$pytorch" "$CONVOY_SOURCE/tests/python/torch_plugin.py" "$PWD/rendezvous-$n" >log 2>&1 || fail "$n ranks: $(tail -5 log)"
    [ "$(grep -o 'all right' log | wc -l)" = "$n" ] || fail "$n ranks: not every rank came to the end: $(cat log)"
    [ "$(grep -o 'only the first rank' log | wc -l)" = 1 ] || fail "$n ranks: convoy.torch.print: $(cat log)"
done
exit $failed
