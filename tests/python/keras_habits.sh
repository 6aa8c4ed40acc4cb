#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# seconds: 90
# level: 2
# keras_habits.sh: what Keras programs do beside fit() gives the weights of one process on one and two ranks, or is refused in
# one sentence on all ranks: schedules on metrics, clipping, accumulation, loss scales that leave a step out, moving averages,
# tied and frozen weights, two optimizers, state of one rank, and ranks that stop or differ alone.
#
# CONVOY_TEST_TENSORFLOW names an interpreter with tensorflow and Keras 3, if python3 has none. Without it the test is
# skipped.
. "$CONVOY_SOURCE/tests/shell.inc"
. "$CONVOY_SOURCE/tests/python/keras.inc"
for n in 1 2; do
    # shellcheck disable=SC2086
    timeout 900 $MPIEXEC_N $n "$tensorflow" "$CONVOY_SOURCE/tests/python/keras_habits.py" >log 2>&1
    code=$?
    [ "$(grep -o 'all right' log | wc -l)" = "$n" ] || fail "$n ranks: not every rank came to the end: $(tail -5 log)"
    # An exception of one rank ends the job.
    [ $code != 124 ] && { [ $n = 1 ] || [ $code != 0 ]; } || fail "$n ranks: code $code after an exception on rank 1"
done
exit $failed
