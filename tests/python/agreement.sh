#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich
# agreement.sh: in Python, ranks compare what each sets alone (rates, number of steps) in the reduction of their
# gradients: a value that differs is named, with the ranks, on all of them, in f32 and in bf16 between nodes, also if
# gradients are not finite, and for the step that it belongs to if two are under way. A fault of one rank is raised by all.
. "$CONVOY_SOURCE/tests/shell.inc"
[ "$CONVOY_SANITIZE" = OFF ] || { echo "the sanitizer's library is not part of the interpreter"; exit 77; }
command -v python3 >/dev/null || { echo "there is no python3"; exit 77; }
export CONVOY_LIBRARY="$CONVOY_BUILD/libconvoy.so" PYTHONPATH="$CONVOY_SOURCE/python" PYTHONDONTWRITEBYTECODE=1
for n in 1 2 3; do
    timeout 60 $MPIEXEC_N $n python3 "$CONVOY_SOURCE/tests/python/agreement.py" >log 2>&1 || fail "$n ranks: $(tail -5 log)"
    [ "$(grep -c '^all right' log)" = "$n" ] || fail "$n ranks: not every rank came to the end: $(cat log)"
done
exit $failed
