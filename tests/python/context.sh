#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# context.sh: the package convoy for Python, with the interpreter alone: contexts of one rank and of all ranks that
# mpiexec started, a broadcast, and the text of a fault.
. "$CONVOY_SOURCE/tests/shell.inc"
[ "$CONVOY_SANITIZE" = OFF ] || { echo "the sanitizer's library is not part of the interpreter"; exit 77; }
command -v python3 >/dev/null || { echo "there is no python3"; exit 77; }
export CONVOY_LIBRARY="$CONVOY_BUILD/libconvoy.so" PYTHONPATH="$CONVOY_SOURCE/python" PYTHONDONTWRITEBYTECODE=1
cat >ranks.py <<'EOF'
import ctypes, convoy
alone, all = convoy.Context(threads=1), convoy.world()
assert (alone.rank, alone.nranks, alone.threads) == (0, 1, 1)
assert convoy.world() is all and 0 <= all.rank < all.nranks
numbers = (ctypes.c_int * 3)(*[all.rank * 10 + k for k in range(3)])
all.broadcast(ctypes.addressof(numbers), ctypes.sizeof(numbers), root=all.nranks - 1)
assert list(numbers) == [(all.nranks - 1) * 10 + k for k in range(3)], list(numbers)
try:
    all.broadcast(ctypes.addressof(numbers), 4, root=99)
    raise SystemExit("root 99 was accepted")
except convoy.Error as fault:
    assert fault.status == -1 and "99" in str(fault), str(fault)
alone.close()
print("rank", all.rank, "of", all.nranks)
EOF
for n in 1 2 3; do
    $MPIEXEC_N $n python3 ranks.py >log 2>&1 || fail "$n ranks: $(tail -5 log)"
    [ "$(sort log | tail -1)" = "rank $((n - 1)) of $n" ] || fail "$n ranks: $(cat log)"
done
python3 ranks.py >log 2>&1 || fail "without mpiexec: $(tail -5 log)"
CONVOY_LIBRARY=/nothing/libconvoy.so python3 -c 'import convoy' >log 2>&1 && fail "a library that does not exist was loaded"
grep -q "libconvoy was not found: /nothing/libconvoy.so.*Set CONVOY_LIBRARY" log || fail "wrong text: $(tail -1 log)"
