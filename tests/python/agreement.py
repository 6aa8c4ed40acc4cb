# SPDX-License-Identifier: BSD-3-Clause
"""What agreement.sh checks, on each rank."""
import sys

import convoy
from convoy._agreement import Agreement, difference, text
from convoy._reducer import F32, Reducer

ranks = convoy.world(threads=1)
me, last = ranks.rank, ranks.nranks - 1


def expect(condition, said):
    if not condition:
        sys.exit(f"rank {me}: {said}")


def refused(kind, said, call):
    try:
        call()
    except kind as fault:
        expect(said == str(fault), f"wrong text: {fault}, and not {said}")
    else:
        sys.exit(f"rank {me}: it was accepted: {said}")


def values(**changed):
    return {"lr of group 0": text(0.1), "betas of group 0": text((0.9, 0.999)), "steps": text(7), **{k.replace("_", " "): text(v) for k, v in changed.items()}}


for options in ({}, {"wire": "bf16", "no_node": 1}, {"algorithm": "ring", "no_node": 1}, {"depth": 2}):
    reducer = Reducer(ranks, [("gradient", 3, F32), ("agreement", Agreement.size, F32)], **options)
    agreement = Agreement(ranks, lambda name: f"advice about {name}")

    def start(*arguments, **named):
        reducer.buffer(0)[:] = [float("nan"), 1, me]  # a gradient that is not finite is none of its business
        reducer.buffer(1)[:] = agreement.numbers(*arguments, **named)
        reducer.start(0)
        reducer.start(1)

    def check():
        reducer.wait()
        return agreement.check(reducer.sum(1))

    def step(*arguments, **named):
        start(*arguments, **named)
        return check()

    for _ in range(3):
        expect(step(values()) is False, "equal values: somebody asks")
    expect(step(values(), asks=me == last) is True, "nobody hears that a rank asks")
    if last:
        rate = values(steps=7 if me == 0 else 8) if me != last else values(lr_of_group_0=0.01)
        said = "the ranks differ: lr of group 0: 0.1 on rank 0, 0.01 on rank 1; advice about lr of group 0" if last == 1 else \
               "the ranks differ: steps: 7 on rank 0, 8 on rank 1; advice about steps"
        refused(convoy.Error, said, lambda: step(rate))
        refused(convoy.Error, f"the ranks differ: more: none on rank 0, 1 on rank {last}; advice about more", lambda: step(values(more=1) if me == last else values()))
        refused(RuntimeError, f"rank {last}: it is broken", lambda: step(values(), fault="it is broken" if me == last else ""))
    else:
        refused(RuntimeError, "it is broken", lambda: step(values(), fault="it is broken"))
    expect(step(values()) is False, "after a fault equal values differ")
    if options.get("depth"):  # the step that differs is the second of two that are under way
        start(values())
        start(values(lr_of_group_0=0.1 * (me + 1)))
        expect(check() is False, "the values of the next step count for this one")
        if last:
            refused(convoy.Error, "the ranks differ: lr of group 0: 0.1 on rank 0, 0.2 on rank 1; advice about lr of group 0", check)
        else:
            check()
    reducer.close()

expect(difference(ranks, values()) is None, "equal values differ")
if last:
    expect(difference(ranks, values(steps=me)) == ("steps", "0 on rank 0, 1 on rank 1"), "another difference than expected")
expect(text(0.1) == text(0.1 + 1e-17) == "0.1" and text(float("nan")) == "nan" and text(True) == "True", "the text of a number")
expect(text([1, (2.5, None)]) == "(1, (2.5, None))" and text({"a": 1}) == "{a: 1}" and text(len) == "len", "the text of a list")
sys.stdout.write("all right\n")
