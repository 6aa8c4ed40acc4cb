#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan
# onnx_masks.sh: a causal mask of a network from PyTorch is one after training, and in the ONNX file that is written: the
# first positions of the output do not depend on the last one of the input; `plan` and `train` say what is not trained.
. "$CONVOY_SOURCE/tests/shell.inc"

# npy FILE DTYPE SHAPE: writes an array from the bytes of stdin.
npy() {
    { printf '\223NUMPY\001\000\166\000'
      printf '%-117s\n' "{'descr': '$2', 'fortran_order': False, 'shape': ($3), }"
      cat; } >"$1"
}
# 4 sequences of 6 positions and 8 channels; `other` differs in the last position of each.
mkdir data other
sequence='abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP'
for i in 1 2 3 4; do printf '%s%d%s' "$sequence" "$i" QRSTU; done | npy data/x.npy '|u1' '4, 6, 8'
for i in 1 2 3 4; do printf '%.40s%s' "${sequence}" "z1y2x3w$i"; done | npy other/x.npy '|u1' '4, 6, 8'
head -c 768 /dev/zero | npy data/y.npy '<f4' '4, 6, 8'

# columns FILE FIRST LAST: these columns of a table, without its head
columns() {
    awk -F, -v a="$2" -v b="$3" 'NR > 1 { for (i = a; i <= b; i++) printf "%s ", $i; print "" }' "$1"
}
# looks_ahead NETWORK: whether one of the first 40 numbers depends on the last position
looks_ahead() {
    "$CONVOY" predict "$1" --data data --out one.csv --force >log 2>&1 || fail "predict $1 fails: $(cat log)"
    "$CONVOY" predict "$1" --data other --out two.csv --force >log 2>&1 || fail "predict $1 fails: $(cat log)"
    [ "$(columns one.csv 41 48)" != "$(columns two.csv 41 48)" ] || fail "$1: the last position is the same"
    [ "$(columns one.csv 1 40)" != "$(columns two.csv 1 40)" ]
}
for net in mha-second-causal-older-eval-fixed sdpa-causal-newer-eval-fixed masked-newer-eval-free; do
    file=$CONVOY_SOURCE/tests/exchange/exports/$net.onnx
    printf '%s\n' "model: {onnx: $file}" 'data: {train: data}' \
        'train: {batch: 2, epochs: 10, optimizer: {name: adam, lr: 0.01}, loss: mse}' >job.yaml
    "$CONVOY" plan job.yaml --threads 1 >/dev/null 2>log || {
        contains log 'build it with protobuf-c' && { echo "this build has no ONNX"; exit 77; }
        fail "$net: plan fails: $(cat log)"
    }
    grep -q 'warning: not trained, as constants of the file: ' log || fail "$net: plan does not say what is kept: $(cat log)"
    looks_ahead "$file" && fail "$net: it looks ahead before training"
    rm -rf run
    "$CONVOY" train job.yaml --threads 1 --out run >log 2>&1 || fail "$net: train fails: $(cat log)"
    grep -q 'warning: not trained, as constants of the file: ' log || fail "$net: train does not say what is kept: $(cat log)"
    looks_ahead run && fail "$net: it looks ahead after training"
    "$CONVOY" export run net.onnx --force >log 2>&1 || fail "$net: export fails: $(cat log)"
    looks_ahead net.onnx && fail "$net: the file that is written looks ahead"
done
# The test can fail: a mask that is trained, on a network whose mask is finite, is none any more.
net=mha-first-newer-train-free
looks_ahead "$CONVOY_SOURCE/tests/exchange/exports/$net.onnx" || fail "$net, which has no mask, does not look ahead"
exit $failed
