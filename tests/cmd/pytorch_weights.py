# SPDX-License-Identifier: BSD-3-Clause
"""Writes a network of torchvision or timm with random weights for tests/cmd/pytorch_weights.sh, or compares outputs.

    pytorch_weights.py make NETWORK SIZE PREFIX   PREFIX.safetensors, PREFIX.x.npy and its outputs, in f32 and f64
    pytorch_weights.py compare PREFIX             them with PREFIX.o.npy: prints the largest differences

A network of many layers with random weights amplifies roundings: those of PyTorch in f32 are the measure.

NETWORK is a name of torchvision, or timm:NAME. Code 77: a package is missing.
"""
import sys

try:
    import numpy
    import torch
    import torchvision
    from safetensors.torch import save_file
except ImportError as missing:
    print(missing)
    sys.exit(77)



def make(name, size, prefix):
    torch.manual_seed(1)
    if name.startswith("timm:"):
        try:
            import timm
        except ImportError as missing:
            print(missing)
            sys.exit(77)
        net = timm.create_model(name[5:], pretrained=False)
    else:
        extra = {"init_weights": True} if name in ("googlenet", "inception_v3") else {}
        net = getattr(torchvision.models, name)(weights=None, **extra)
    for m in net.modules():
        if isinstance(m, torch.nn.BatchNorm2d):
            m.weight.data.uniform_(0.5, 1.5)
            m.bias.data.uniform_(-0.2, 0.2)
            m.momentum = None  # the running statistics become those of the batch below
    with torch.no_grad():
        net.train()(torch.randn(4, 3, size, size))
        x = torch.randn(3, 3, size, size)
        y = net.eval()(x)
    numpy.save(prefix + ".x.npy", x.numpy())
    numpy.save(prefix + ".y.npy", y.numpy())
    weights = {k: v.clone().contiguous() for k, v in net.state_dict().items()}
    with torch.no_grad():
        numpy.save(prefix + ".z.npy", net.double()(x.double()).numpy())
    save_file(weights, prefix + ".safetensors")


def compare(prefix):
    y, z = numpy.load(prefix + ".y.npy"), numpy.load(prefix + ".z.npy")
    o = numpy.load(prefix + ".o.npy").reshape(y.shape)
    largest, theirs, ours = abs(z).max(), abs(y - z).max(), abs(o - z).max()
    print(f"largest difference {abs(o - y).max():.3g} of outputs up to {largest:.3g}; from f64: convoy {ours:.3g}, PyTorch {theirs:.3g}")
    sys.exit(not ours <= max(1e-5 * largest, 4 * theirs))


if sys.argv[1] == "make":
    make(sys.argv[2], int(sys.argv[3]), sys.argv[4])
else:
    compare(sys.argv[2])
