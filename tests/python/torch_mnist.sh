#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# seconds: 40
# level: 2
# torch_mnist.sh: PyTorch's own example of MNIST (pytorch/examples, mnist/main.py), changed in at most five lines, trains
# on two ranks that plain mpiexec starts. The ranks have the same weights, to the bit, and those of one process with
# batches of twice the size to 1e-12, in f64; rank 0 alone prints and saves.
#
# CONVOY_TEST_MNIST names main.py: a file, or an address for curl. CONVOY_TEST_PYTORCH names an interpreter with torch,
# if python3 has none. Without them the test is skipped. The pictures are random numbers, and dropout, which differs between the runs, is off.
. "$CONVOY_SOURCE/tests/shell.inc"
pytorch=${CONVOY_TEST_PYTORCH:-python3}
"$pytorch" -c 'import torch' 2>why || { echo "$pytorch lacks a package: $(tail -1 why). CONVOY_TEST_PYTORCH names another interpreter"; exit 77; }
example=${CONVOY_TEST_MNIST-}
case $example in
    '') echo "it needs mnist/main.py of github.com/pytorch/examples: CONVOY_TEST_MNIST names the file, or an address for curl"; exit 77 ;;
    *://*) curl -sfL -m 30 -o original.py "$example" || { echo "curl cannot get $example"; exit 77; } ;;
    *) cp "$example" original.py || exit 1 ;;
esac

sed -f "$CONVOY_SOURCE/tests/python/mnist.sed" original.py >main.py
diff original.py main.py >change
changed=$(grep -c '^>' change)
removed=$(grep -c '^<' change)
echo "$changed lines are added or changed"
[ "$changed" -ge 1 ] && [ "$changed" -le 5 ] && [ "$removed" -le "$changed" ] || fail "the change has $changed lines: $(cat change)"
[ "$(grep -c 'cvy\.sampler\|cvy\.DistributedOptimizer' main.py)" = 2 ] || fail "the example has other lines than expected: $(cat change)"

# In place of torchvision: the same shapes, and classes that differ in their brightness. The weights of each rank are
# kept when it ends.
mkdir -p stub/torchvision
cat >stub/torchvision/__init__.py <<'END'
import atexit
import os

import torch

import convoy.torch
from . import datasets, transforms

torch.set_default_dtype(torch.float64)
torch.nn.Dropout = lambda p: torch.nn.Identity()
_to = torch.nn.Module.to


def _kept(module, *where):
    name = f"{os.environ['KEPT']}-{convoy.torch.rank()}.pt"
    atexit.register(lambda: torch.save(module.state_dict(), name))
    return _to(module, *where)


torch.nn.Module.to = _kept
END
cat >stub/torchvision/datasets.py <<'END'
import torch


def MNIST(root, train=True, download=False, transform=None):
    generator = torch.Generator().manual_seed(int(train))
    labels = torch.arange(320 if train else 100) % 10
    pictures = 0.1 * torch.randn(len(labels), 1, 28, 28, generator=generator)
    pictures[torch.arange(len(labels)), 0, 2 * labels + 4] += 1
    return torch.utils.data.TensorDataset(pictures, labels)
END
cat >stub/torchvision/transforms.py <<'END'
def Compose(parts):
    return None


def ToTensor():
    return None


def Normalize(mean, deviation):
    return None
END

export CONVOY_LIBRARY="$CONVOY_BUILD/libconvoy.so" PYTHONPATH="$PWD/stub:$CONVOY_SOURCE/python" PYTHONDONTWRITEBYTECODE=1
export OMP_NUM_THREADS=1 CUDA_VISIBLE_DEVICES=
# train RANKS BATCH: two epochs of five steps, of which the second has another learning rate
train() {
    rm -f mnist_cnn.pt
    KEPT=$PWD/ranks-$1 $MPIEXEC_N "$1" "$pytorch" main.py --epochs 2 --batch-size "$2" --test-batch-size 100 \
        --log-interval 2 --lr 0.5 --save-model >log-"$1" 2>&1 || fail "$1 ranks: $(tail -5 log-"$1")"
    [ "$(grep -c 'Train Epoch' log-"$1")" = 6 ] && [ "$(grep -c 'Test set' log-"$1")" = 2 ] || fail "$1 ranks: another log than expected: $(cat log-"$1")"
    mv mnist_cnn.pt saved-"$1".pt || fail "$1 ranks: nothing was saved"
}
train 1 64
train 2 32
[ "$(grep 'Test set' log-1)" = "$(grep 'Test set' log-2)" ] || fail "the scores of one and two ranks differ: $(grep 'Test set' log-1 log-2)"
grep 'Test set' log-2
grep -q 'Accuracy: \(9.\|100\)/100' log-2 || fail "little was learned: $(cat log-2)"
cat >compare.py <<'END'
import sys

import torch

one, first, second, saved = (torch.load(name) for name in ("ranks-1-0.pt", "ranks-2-0.pt", "ranks-2-1.pt", "saved-2.pt"))
distance = max(float((one[k] - first[k]).abs().max()) for k in one)
print(f"{distance:.1e} between the weights of one and two ranks")
if not all(torch.equal(first[k], second[k]) and torch.equal(first[k], saved[k]) for k in first):
    sys.exit("the ranks have other weights, or saved others")
if not distance < 1e-12:
    sys.exit("two ranks have other weights than one with the doubled batch")
END
"$pytorch" compare.py 2>&1 || fail "the weights differ"
exit $failed
