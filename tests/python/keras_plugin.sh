#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# seconds: 60
# level: 2
# keras_plugin.sh: convoy.keras trains a Keras model on one and two ranks: after ten steps the weights equal those of one
# process with the same batches, with sparse and clipped gradients, a layer without gradients and a schedule, in graphs and
# eagerly; and wrong models and datasets are named.
#
# CONVOY_TEST_TENSORFLOW names an interpreter with tensorflow and Keras 3, if python3 has none. Without it the test is
# skipped.
. "$CONVOY_SOURCE/tests/shell.inc"
. "$CONVOY_SOURCE/tests/python/keras.inc"
for n in 1 2; do
    # shellcheck disable=SC2086
    $MPIEXEC_N $n "$tensorflow" "$CONVOY_SOURCE/tests/python/keras_plugin.py" >log 2>&1 || fail "$n ranks: $(tail -5 log)"
    [ "$(grep -o 'all right' log | wc -l)" = "$n" ] || fail "$n ranks: not every rank came to the end: $(cat log)"
done
exit $failed
