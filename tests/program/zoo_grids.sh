#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: soak
# zoo_grids.sh: networks of the zoo have the losses and weights of one rank on all grids of 2, 3, 4 and 8 ranks, in f32,
# f64 and bf16 (CONVOY_TEST_LEVEL=3, which takes about half an hour; else it is skipped).
. "$CONVOY_SOURCE/tests/shell.inc"
[ "${CONVOY_TEST_LEVEL:-1}" -ge 3 ] || exit 77
for ranks in 2 3 4 8; do
    for network in vgg-a resnet-20 resnet-110 googlenet hep-cnn unet decoder; do
        CONVOY_TEST_NETWORK=$network $MPIEXEC_N $ranks "$CONVOY_BUILD/tests/test_program_zoo_grids" >log 2>&1 ||
            fail "$network on $ranks ranks: $(grep -v ^same log | sort -u)"
        echo "$network on $ranks ranks: $(grep -c ^same log) comparisons"
    done
done
exit $failed
