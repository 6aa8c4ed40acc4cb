#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# seconds: 30
# level: 2
# tensorflow_device.sh: frameworks/run_tensorflow.py, which times TensorFlow for scripts/compare.sh and `convoy study`: on the
# host, and on a GPU that is not there, of which it speaks in one sentence.
#
# CONVOY_TEST_TENSORFLOW names an interpreter with tensorflow, if python3 has none. Without it the test is skipped.
. "$CONVOY_SOURCE/tests/shell.inc"
tensorflow=${CONVOY_TEST_TENSORFLOW:-python3}
"$tensorflow" -c 'import tensorflow' 2>why || { echo "$tensorflow lacks a package: $(tail -1 why). CONVOY_TEST_TENSORFLOW names another interpreter"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1 CUDA_VISIBLE_DEVICES=
run="$CONVOY_SOURCE/frameworks/run_tensorflow.py --net cifar-convnet --batch 2 --threads 1 --seconds 0"
# shellcheck disable=SC2086
timeout 200 "$tensorflow" $run >out 2>err || { fail "code $?:"; tail -5 err; }
contains out '"device": "host"' && contains out '"parameters": 145578, "macs": 12354176' || { fail "the host:"; cat out; }
! contains out device_peak_bytes || fail "the host has memory of a device"
# shellcheck disable=SC2086
refused "--device cuda:1: TensorFlow $("$tensorflow" -c 'import tensorflow; print(tensorflow.__version__)' 2>/dev/null) finds 0 devices of CUDA here" "$tensorflow" $run --device cuda:1
# shellcheck disable=SC2086
refused "--device is 'gpu', expected host, cuda or a number such as cuda:0" "$tensorflow" $run --device gpu
exit $failed
