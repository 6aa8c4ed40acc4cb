#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# seconds: 40
# level: 2
# torch_device.sh: frameworks/run_pytorch.py, which times PyTorch for scripts/compare.sh and `convoy study`: on the host; on
# a GPU that is not there, of which it speaks in one sentence; and on one that PyTorch is made to see, with tensors that stay
# on the host, so that the way to CUDA runs: which device, TF32, autocast, events between steps, the memory at the end.
#
# CONVOY_TEST_PYTORCH names an interpreter with torch and torchvision, if python3 has none. Without it the test is skipped.
. "$CONVOY_SOURCE/tests/shell.inc"
pytorch=${CONVOY_TEST_PYTORCH:-python3}
"$pytorch" -c 'import torch, torchvision' 2>why || { echo "$pytorch lacks a package: $(tail -1 why). CONVOY_TEST_PYTORCH names another interpreter"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1 CUDA_VISIBLE_DEVICES=
run="$CONVOY_SOURCE/frameworks/run_pytorch.py"

cat >seen.py <<'END'
"""seen.py FILE ARGUMENT...: runs FILE where PyTorch sees two devices of CUDA, whose tensors are the host's."""
import runpy, sys, time
import torch

said = set()


def moved(to):
    def move(self, *where, **options):
        if where and isinstance(where[0], torch.device) and where[0].type == "cuda":
            said.add(f"to {where[0]}")
            return self
        return to(self, *where, **options)
    return move


class Event:
    def __init__(self, enable_timing=False):
        assert enable_timing

    def record(self):
        self.s = time.perf_counter()

    def synchronize(self):
        said.add("waits for an event")

    def elapsed_time(self, end):
        return 1e3 * (end.s - self.s)


autocast = torch.autocast
torch.autocast = lambda kind, dtype, enabled: said.add(f"autocast {kind} {enabled}") or autocast("cpu", dtype=dtype, enabled=enabled)
torch.Tensor.to, torch.nn.Module.to = moved(torch.Tensor.to), moved(torch.nn.Module.to)
torch.cuda.is_available, torch.cuda.device_count = lambda: True, lambda: 2
torch.cuda.set_device = lambda index: said.add(f"device {index}")
torch.cuda.Event, torch.cuda.synchronize = Event, lambda: said.add("waits for all")
torch.cuda.reset_peak_memory_stats, torch.cuda.max_memory_allocated = lambda: said.add("counts memory"), lambda: 4711
torch.cuda.get_device_name = lambda: "a device that is not there"
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
tf32 = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
print(f"said: {', '.join(sorted(said))}; benchmark {torch.backends.cudnn.benchmark}, TF32 {tf32}", file=sys.stderr)
END
# measure OPTION...: a network of a few kernels. The JSON is in out.
measure() { timeout 120 "$pytorch" "$@" --net lenet --batch 4 --threads 1 --seconds 0 >out 2>err || { fail "code $?: $*"; tail -5 err; }; }
has() { contains out "$1" || { fail "expected $1:"; cat out; }; }
says() { contains err "$1" || { fail "expected $1:"; tail -5 err; }; }

measure "$run" --variant eager
has '"device": "host"'
has '"parameters": 431080, "macs": 2293000,'
! contains out device_peak_bytes || fail "the host has memory of a device"
refused "--device cuda: PyTorch $("$pytorch" -c 'import torch; print(torch.__version__)') finds no device of CUDA here" "$pytorch" "$run" --net lenet --device cuda
refused "--device is 'gpu', expected host, cuda or a number such as cuda:0" "$pytorch" "$run" --net lenet --device gpu
refused "--variant graphs is for GPUs" "$pytorch" "$run" --net lenet --variant graphs
[ "$(wc -l <err)" = 1 ] || { fail "more than a sentence:"; cat err; }

measure seen.py "$run" --device cuda:1 --dtype bf16
has '"device": "cuda:1"'
has '"gpu": "a device that is not there", "device_peak_bytes": 4711'
steps=$(sed -n 's/.*"steps": \([0-9]*\).*/\1/p' out)
[ "${steps:-0}" -ge 3 ] || fail "$steps steps"
sed -n 's/.*"ms_median": \([0-9.e-]*\).*/\1/p' out | awk '{ exit !($1 > 0) }' || { fail "no time of a step:"; cat out; }
says "said: autocast cuda True, counts memory, device 1, to cuda:1, waits for all, waits for an event; benchmark True, TF32 (False, False)"
measure seen.py "$run" --device cuda --tf32 --mode forward --variant eager
says "said: autocast cuda False, counts memory, device 0, to cuda:0, waits for all, waits for an event; benchmark True, TF32 (True, True)"
refused "--device cuda:2: PyTorch finds 2 devices, numbered from 0" "$pytorch" seen.py "$run" --net lenet --device cuda:2
refused "--variant ipex is for the host" "$pytorch" seen.py "$run" --net lenet --device cuda --variant ipex
exit $failed
