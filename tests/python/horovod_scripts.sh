#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# level: 2
# horovod_scripts.sh: programs for Horovod, of PyTorch and of Keras, train on convoy after the changes that
# docs/guide/in-your-code.md shows: on two ranks the weights are the same on both, and those of one rank with batches of
# twice the size.
#
# CONVOY_TEST_PYTORCH and CONVOY_TEST_TENSORFLOW name interpreters with torch and with tensorflow and Keras 3, if python3 has
# none. Without both the test is skipped.
. "$CONVOY_SOURCE/tests/shell.inc"
export CONVOY_LIBRARY="$CONVOY_BUILD/libconvoy.so" PYTHONPATH="$CONVOY_SOURCE/python" PYTHONDONTWRITEBYTECODE=1
export KERAS_BACKEND=tensorflow TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES= OMP_NUM_THREADS=1
pytorch=${CONVOY_TEST_PYTORCH:-python3} tensorflow=${CONVOY_TEST_TENSORFLOW:-python3} tried=

# changed LANGUAGE FILE: makes the changes of the page, which are the lines of its n-th listing of differences.
changed() {
    awk -v listing="$1" '
        FNR == NR { # the page: what goes, and what stands in its place
            if ($0 == "```diff") { n++; inside = n == listing; to = "" }
            else if ($0 == "```") inside = 0
            else if (inside && /^-/) { line = substr($0, 2); gone[line] = 1; last = line; after[last] = "" }
            else if (inside && /^[+]/) after[last] = after[last] substr($0, 2) "\n"
            next
        }
        { line = $0; sub(/^ +/, "", line); indent = substr($0, 1, length($0) - length(line)) }
        line in gone { used[line] = 1; n = split(after[line], new, "\n"); for (i = 1; i < n; i++) print indent new[i]; next }
        { print }
        END { for (line in gone) if (!(line in used)) { print "the program lacks the line: " line >"/dev/stderr"; exit 1 } }' \
        "$CONVOY_SOURCE/docs/guide/in-your-code.md" "$2"
}
"$pytorch" -c 'import torch' 2>why && {
    tried=1
    changed 1 "$CONVOY_SOURCE/tests/python/horovod_torch.py" >torch_script.py || fail 'the page changes other lines'
    grep -n 'horovod\.\|allreduce\|init()' torch_script.py && fail 'something of Horovod is left'
    $MPIEXEC_N 1 "$pytorch" torch_script.py --batch-size 16 --lr 0.1 --out one >log-1 2>&1 || fail "one rank: $(tail -3 log-1)"
    $MPIEXEC_N 2 "$pytorch" torch_script.py --batch-size 8 --lr 0.05 --out two >log-2 2>&1 || fail "two ranks: $(tail -3 log-2)"
    [ "$(grep -c '^epoch' log-2)" = 3 ] || fail "the log of two ranks: $(cat log-2)"
    grep '^epoch' log-1 >losses-1
    grep '^epoch' log-2 | cmp -s losses-1 - || fail "other losses: $(cat log-1 log-2)"
    "$pytorch" - <<'P' 2>log || fail "PyTorch: $(tail -1 log)"
import sys, torch
one, first, second = (torch.load(name) for name in ("one-0.pt", "two-0.pt", "two-1.pt"))
if not all(torch.equal(first[k], second[k]) and float((first[k] - one[k]).abs().max()) < 1e-12 for k in one):
    sys.exit("other weights")
P
}
"$tensorflow" -c 'import tensorflow, keras; assert keras.__version__ >= "3"' 2>why && {
    tried=1
    changed 2 "$CONVOY_SOURCE/tests/python/horovod_keras.py" >keras_script.py || fail 'the page changes other lines'
    grep -n 'horovod\.\|callbacks\.\|init()' keras_script.py && fail 'something of Horovod is left'
    $MPIEXEC_N 1 "$tensorflow" keras_script.py 16 0.1 keras-one >log-1 2>&1 || fail "Keras on one rank: $(tail -3 log-1)"
    $MPIEXEC_N 2 "$tensorflow" keras_script.py 8 0.05 keras-two >log-2 2>&1 || fail "Keras on two ranks: $(tail -3 log-2)"
    [ "$(grep -c '^losses' log-2)" = 1 ] || fail "the log of two ranks: $(cat log-2)"
    "$tensorflow" - <<'P' 2>log || fail "Keras: $(tail -1 log)"
import sys, numpy as np
one, first, second = (np.load(name) for name in ("keras-one-0.npz", "keras-two-0.npz", "keras-two-1.npz"))
if not all(np.array_equal(first[k], second[k]) and np.allclose(first[k], one[k], rtol=0, atol=1e-5) for k in one.files):
    sys.exit("other weights")
P
}
[ -n "$tried" ] || { echo "no torch and no tensorflow: $(tail -1 why). CONVOY_TEST_PYTORCH and CONVOY_TEST_TENSORFLOW name interpreters"; exit 77; }
exit $failed
