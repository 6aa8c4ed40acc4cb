# SPDX-License-Identifier: BSD-3-Clause
"""What each rank of a program sets alone, and must set as the others do: learning rates, and the state of an optimizer."""
import collections
import ctypes as c
import hashlib

from ._bindings import CVY_E_DISAGREE
from ._library import Error

_BITS = 64
_SHOWN = 40  # characters of a long text before the first that differs, and after it


def text(value):
    """A value as ranks compare it and a message shows it. Eight digits: ranks on other processors may round differently."""
    if hasattr(value, "tolist"):  # an array or a tensor
        value = value.tolist()
    if isinstance(value, float):
        return f"{value:.8g}"
    if isinstance(value, (list, tuple)):
        return "(" + ", ".join(map(text, value)) + ")"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {text(v)}" for k, v in value.items()) + "}"
    if value is None or isinstance(value, (bool, int, str)):
        return str(value)
    return getattr(value, "__qualname__", type(value).__name__)  # a function has another address on each rank


def _digest(values):
    return hashlib.blake2b("\n".join(f"{name}\t{v}" for name, v in sorted(values.items())).encode(), digest_size=_BITS // 8).digest()


def _sent(ranks, root, data):
    """The bytes of rank `root`, of which all know the number. Collective."""
    place = c.create_string_buffer(data, len(data))
    ranks.broadcast(c.addressof(place), len(data), root)
    return place.raw


def bytes_of(ranks, root, mine):
    """The bytes of rank `root`, of any number. Collective."""
    data = mine if ranks.rank == root else b""
    size = int.from_bytes(_sent(ranks, root, len(data).to_bytes(8, "little")), "little")
    return _sent(ranks, root, data if ranks.rank == root else bytes(size)) if size else b""


def _cut(*texts):
    """Of long texts, the part where they begin to differ."""
    if max(map(len, texts)) <= 2 * _SHOWN:
        return texts
    begin = next(k for k in range(max(map(len, texts))) if len({t[k:k + 1] for t in texts}) > 1)
    begin = max(begin - _SHOWN, 0)
    return ["..." * (begin > 0) + t[begin:begin + 2 * _SHOWN] + "..." * (len(t) > begin + 2 * _SHOWN) for t in texts]


def difference(ranks, values):
    """None if all ranks have the same values (texts by name). Otherwise the name of the first value that differs, and what it is on which
    ranks. Collective."""
    mine = _digest(values)
    digests = [_sent(ranks, r, mine) for r in range(ranks.nranks)]
    other = next((r for r, d in enumerate(digests) if d != digests[0]), None)
    if other is None:
        return None
    here = "\0".join(f"{name}\t{v}" for name, v in values.items()).encode()
    first, second = (dict(line.split("\t", 1) for line in all.split("\0") if line) for all in (bytes_of(ranks, r, here).decode() for r in (0, other)))
    name = next(n for n in [*first, *second] if first.get(n) != second.get(n))
    a, b = _cut(first.get(name, "none"), second.get(name, "none"))
    return name, f"{a} on rank 0, {b} on rank {other}"


def refuse(name, what, advice):
    """Raises the fault that ranks differ."""
    raise Error(CVY_E_DISAGREE, f"the ranks differ: {name}: {what}; {advice}")


class Agreement:
    """Lets the ranks compare values in each step of a Reducer, without another collective. numbers() gives `size` numbers
    for a buffer of F32 that is reduced with the gradients, and check() gets their means. Values are exchanged only if
    they differ.

    The numbers are the bits of a hash and their complements: ranks differ in a bit if and only if both means are above
    0, in whatever precision and order they are summed. The last two say that a rank has a fault, or asks for something.
    """
    size = 2 * _BITS + 2

    def __init__(self, ranks, advice):
        """advice: what to do about a value that differs: a function of its name."""
        self._ranks, self._advice, self._steps = ranks, advice, collections.deque()

    def numbers(self, values, fault="", asks=False):
        """What this rank adds to a step. values: texts by name. fault: what is wrong on this rank, for all ranks to raise. asks: see
        check()."""
        self._steps.append((values, fault))
        bits = int.from_bytes(_digest(values), "little")
        mine = [float(bits >> k & 1) for k in range(_BITS)]
        return [*mine, *[1 - b for b in mine], float(bool(fault)), float(asks)]

    def check(self, means):
        """Raises the fault of a rank, or that ranks differ, on all ranks alike. Returns whether any rank asks for something. means: of the
        numbers of the oldest step that was not checked."""
        values, fault = self._steps.popleft()
        if means[2 * _BITS] > 0:
            texts = (bytes_of(self._ranks, r, fault.encode()).decode() for r in range(self._ranks.nranks))
            rank, said = next((r, t) for r, t in enumerate(texts) if t)
            raise RuntimeError(said if self._ranks.nranks == 1 else f"rank {rank}: {said}")
        if any(means[k] > 0 and means[_BITS + k] > 0 for k in range(_BITS)):
            self.compare(values)
        return means[2 * _BITS + 1] > 0

    def forget(self):
        """Takes the place of check() for a step that is thrown away."""
        self._steps.popleft()

    def compare(self, values):
        """The same for these values, now. Collective."""
        differs = difference(self._ranks, values)
        if differs:
            refuse(*differs, self._advice(differs[0]))
