# SPDX-License-Identifier: BSD-3-Clause
"""What an optimizer and a module of PyTorch hold, as texts by name that ranks compare."""
import io

import torch

from . import _agreement
from ._agreement import text

_SHOWN = 8  # elements of a tensor up to which a message shows it


def memory(tensor):
    """The elements of a tensor as they lie, without a copy if they lie together."""
    tensor = tensor.detach()
    if not tensor.is_contiguous():
        strides = sorted((s, n) for s, n in zip(tensor.stride(), tensor.shape) if n > 1)
        dense, end = True, 1
        for stride, n in strides:
            dense, end = dense and stride == end, end * n
        tensor = tensor.as_strided((tensor.numel(),), (1,)) if dense else tensor.contiguous()
    return tensor.reshape(-1)


def checksum(tensor):
    """64 sums over the bits of a tensor, and its last elements: numbers that a change of a value changes."""
    flat = memory(tensor)
    size = flat.element_size()
    if flat.numel() * size % 8 == 0 and flat.storage_offset() * size % 8 == 0:
        words = flat.view(torch.int64)
    else:
        words = flat.view(torch.uint8 if size % 4 else torch.int32)
    lines = words.numel() // 64
    return (*words[:64 * lines].view(lines, 64).sum(0, dtype=torch.int64).tolist(), *words[64 * lines:].tolist())


def _text(value):
    if not torch.is_tensor(value):
        return text(value)
    if value.numel() <= _SHOWN:
        return text(value)
    return f"{list(value.shape)} of norm {float(value.detach().float().norm()):.6g} (bits {hash(checksum(value)) % 2**32:08x})"


def rates(optimizer, name_of):
    """The hyperparameters of its groups and the number of its steps: what all ranks must have alike in each step. name_of: the name of a
    parameter."""
    found = {"number of groups": str(len(optimizer.param_groups))}
    for i, group in enumerate(optimizer.param_groups):
        found[f"parameters of group {i}"] = " ".join(name_of(p) for p in group["params"])
        for key, value in group.items():
            if key not in ("params", "param_names"):
                found[f"{key} of group {i}"] = _text(value)
    for group in optimizer.param_groups:
        for p in group["params"]:
            step = optimizer.state[p].get("step") if p in optimizer.state else None
            if step is not None:
                found[f"steps of {name_of(p)} in the state of the optimizer"] = text(step)
    return found


def state(optimizer, name_of):
    """All of its state."""
    found = {}
    for group in optimizer.param_groups:
        for p in group["params"]:
            for key, value in optimizer.state.get(p, {}).items():
                found[f"{key} of {name_of(p)} in the state of the optimizer"] = _text(value)
    return found


def weights(gradients):
    return {f"weights {g.name}": _text(g.parameter) for g in gradients}


def give_state(optimizer, ranks, name_of):
    """Gives all ranks the state and the hyperparameters that the optimizer of rank 0 has, if theirs are others. Collective."""
    mine = rates(optimizer, name_of)
    differs = _agreement.difference(ranks, {k: v for k, v in mine.items() if k.startswith(("number of groups", "parameters of group"))})
    if differs:
        _agreement.refuse(*differs, "the optimizers of all ranks must train the same parameters in the same groups")
    if not _agreement.difference(ranks, {**mine, **state(optimizer, name_of)}):
        return
    file = io.BytesIO()
    if ranks.rank == 0:
        torch.save(optimizer.state_dict(), file)
    data = _agreement.bytes_of(ranks, 0, file.getvalue())
    if ranks.rank != 0:
        optimizer.load_state_dict(torch.load(io.BytesIO(data), map_location="cpu", weights_only=False))
