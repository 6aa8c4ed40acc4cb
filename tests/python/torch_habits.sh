#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# seconds: 60
# level: 2
# torch_habits.sh: habits of PyTorch programs with convoy.torch, on one and two ranks: schedules, a GradScaler, clipping,
# accumulation, closures, a checkpoint on one rank, gradients that are kept or changed, frozen, tied, unused and later
# parameters, several backward passes, groups, torch.compile. Weights equal those of one process on the whole batch to
# 1e-6, or all ranks raise one sentence, which names the value and the ranks, before the step is applied.
#
# CONVOY_TEST_PYTORCH names an interpreter with torch, if python3 has none. Without it the test is skipped.
. "$CONVOY_SOURCE/tests/shell.inc"
pytorch=${CONVOY_TEST_PYTORCH:-python3}
"$pytorch" -c 'import torch' 2>why || { echo "$pytorch lacks a package: $(tail -1 why). CONVOY_TEST_PYTORCH names another interpreter"; exit 77; }
export CONVOY_LIBRARY="$CONVOY_BUILD/libconvoy.so" PYTHONPATH="$CONVOY_SOURCE/python" PYTHONDONTWRITEBYTECODE=1
for n in 1 2; do
    # shellcheck disable=SC2086
    timeout 900 $MPIEXEC_N $n "$pytorch" "$CONVOY_SOURCE/tests/python/torch_habits.py" >log 2>&1 || fail "$n ranks: $(tail -5 log)"
    [ "$(grep -c '^all right' log)" = "$n" ] || fail "$n ranks: not every rank came to the end: $(cat log)"
done

# A rank that ends by an exception ends the others, also if they wait for its gradients.
cat >fault.py <<'END'
import torch
import convoy.torch as cvy
net = torch.nn.Linear(2, 1)
optimizer = cvy.DistributedOptimizer(torch.optim.SGD(net.parameters(), lr=0.1), net)
for k in range(3):
    optimizer.zero_grad()
    net(torch.ones(1, 2)).sum().backward()
    if cvy.rank() == 1 and k == 1:
        raise ValueError("planned")
    optimizer.step()
END
timeout 60 $MPIEXEC_N 2 "$pytorch" fault.py >log 2>&1
code=$?
[ $code != 0 ] && [ $code != 124 ] && grep -q planned log || fail "a rank that ends by an exception: code $code, $(tail -5 log)"

# Ranks with different numbers of batches: the one that goes on hears that the other has ended.
cat >uneven.py <<'END'
import sys
import torch
import convoy.torch as cvy
net = torch.nn.Linear(2, 1)
optimizer = cvy.DistributedOptimizer(torch.optim.SGD(net.parameters(), lr=0.1), net, delayed=sys.argv[1] == "delayed")
for k in range(2 + cvy.rank() * int(sys.argv[2])):
    optimizer.zero_grad()
    net(torch.ones(1, 2)).sum().backward()
    optimizer.step()
END
for how in now delayed; do
    timeout 120 $MPIEXEC_N 2 "$pytorch" uneven.py $how 2 >log 2>&1
    code=$?
    [ $code != 0 ] && [ $code != 124 ] || fail "ranks with different numbers of batches, $how: code $code, $(tail -5 log)"
    contains log "the end of the program on rank 0, step() on rank 1; all ranks must have the same number of batches" || fail "$how: it is not said that a rank has ended: $(tail -5 log)"
    timeout 120 $MPIEXEC_N 2 "$pytorch" uneven.py $how 0 >log 2>&1 || fail "ranks with as many batches, $how: code $?, $(tail -5 log)"
done
exit $failed
