# SPDX-License-Identifier: BSD-3-Clause
"""U-Net, CosmoFlow and DeepCAM in plain PyTorch for tests/cmd/pytorch_maps.sh, with the names that their layers have in convoy.

    pytorch_maps.py make NETWORK SIZE LOSS PREFIX [OPTION=VALUE ...]
        PREFIX.safetensors, PREFIX.x.npy, PREFIX.y.npy, and the results in f64: PREFIX.z.npy, PREFIX.grad.safetensors
    pytorch_maps.py compare PREFIX WEIGHTS RATE
        the outputs PREFIX.o.npy, and the gradients as the change of weights after a step of SGD at this rate; prints the
        number of parameters and the largest relative differences

SIZE is that of a sample, 1x32x48. Code 77: a package is missing.
"""
import sys

try:
    import numpy
    import torch
    import torch.nn.functional as F
    from safetensors.torch import load_file, save_file
    from torch import nn
except ImportError as missing:
    print(missing)
    sys.exit(77)

CLASSES = 3
# The names of PyTorch and convoy for the variables of normalisations.
NORM_NAMES = (("weight", "scale"), ("bias", "shift"))


class UNet(nn.Module):
    def __init__(self, shape, depth=4, filters=64, norm="batch", groups=8, up="deconv", residual=False,
                 attention=False):
        super().__init__()
        self.depth, self.up, self.residual, self.attention, self.space = depth, up, residual, attention, len(shape) - 1
        self.conv, self.deconv = (nn.Conv2d, nn.ConvTranspose2d) if self.space == 2 else (nn.Conv3d, nn.ConvTranspose3d)
        self.norm = {"none": None, "group": lambda c: nn.GroupNorm(groups, c),
                     "batch": nn.BatchNorm2d if self.space == 2 else nn.BatchNorm3d,
                     "instance": lambda c: nn.GroupNorm(c, c)}[norm]
        channels = shape[0]
        for level in range(1, depth + 1):
            self.make_block(f"down{level}", channels, filters << (level - 1))
            channels = filters << (level - 1)
        self.make_block("bottom", channels, filters << depth)
        for level in range(depth, 0, -1):
            c = filters << (level - 1)
            if attention:
                inner = max(c // 2, 1)
                self.add_module(f"gate{level}_x", self.conv(c, inner, 2, 2, bias=False))
                self.add_module(f"gate{level}_g", self.conv(2 * c, inner, 1))
                self.add_module(f"gate{level}_psi", self.conv(inner, 1, 1))
            if up == "deconv":
                self.add_module(f"up{level}_larger", self.deconv(2 * c, c, 2, 2))
            else:
                self.add_module(f"up{level}_mix", self.conv(2 * c, c, 1))
            self.make_block(f"up{level}", 2 * c, c)
        self.head = self.conv(filters, CLASSES, 1)

    def make_conv(self, name, c_in, c_out, kernel):
        self.add_module(name, self.conv(c_in, c_out, kernel, padding=kernel // 2, bias=self.norm is None))
        if self.norm:
            self.add_module(f"{name}_norm", self.norm(c_out))

    def make_block(self, name, c_in, c_out):
        self.make_conv(f"{name}_a", c_in, c_out, 3)
        self.make_conv(f"{name}_b", c_out, c_out, 3)
        if self.residual and c_in != c_out:
            self.make_conv(f"{name}_short", c_in, c_out, 1)

    def run_conv(self, name, x):
        x = self.get_submodule(name)(x)
        return self.get_submodule(f"{name}_norm")(x) if self.norm else x

    def run_block(self, name, x):
        y = self.run_conv(f"{name}_b", F.relu(self.run_conv(f"{name}_a", x)))
        if self.residual:
            y = y + (self.run_conv(f"{name}_short", x) if hasattr(self, f"{name}_short") else x)
        return F.relu(y)

    def enlarge(self, x):
        return F.interpolate(x, scale_factor=2, mode="bilinear" if self.space == 2 else "trilinear")

    def forward(self, x):
        pool = F.max_pool2d if self.space == 2 else F.max_pool3d
        kept = {}
        for level in range(1, self.depth + 1):
            kept[level] = self.run_block(f"down{level}", x)
            x = pool(kept[level], 2)
        x = self.run_block("bottom", x)
        for level in range(self.depth, 0, -1):
            skip, part = kept[level], self.get_submodule
            if self.attention:
                both = F.relu(part(f"gate{level}_x")(skip) + part(f"gate{level}_g")(x))
                skip = skip * self.enlarge(torch.sigmoid(part(f"gate{level}_psi")(both)))
            x = part(f"up{level}_larger")(x) if self.up == "deconv" else part(f"up{level}_mix")(self.enlarge(x))
            x = self.run_block(f"up{level}", torch.cat([skip, x], 1))
        return self.head(x)


class CosmoFlow(nn.Module):
    """cosmoflow/models/cosmoflow.py of MLPerf HPC, channels first. Its padding "same" of a kernel of 2 adds a zero at
    the high end."""

    def __init__(self, shape, depth=5, filters=32, kernel=3, dropout=0.5, **others):
        super().__init__()
        self.depth, self.limit, self.pad = depth, others.get("range", 1.2), ((kernel - 1) // 2, kernel // 2) * 3
        width = [shape[0]] + [filters << i for i in range(depth)]
        for i in range(depth):
            self.add_module(f"conv{i + 1}", nn.Conv3d(width[i], width[i + 1], kernel))
        self.fc1 = nn.Linear(width[-1] * (shape[1] >> depth) * (shape[2] >> depth) * (shape[3] >> depth), 128)
        self.fc2, self.fc3 = nn.Linear(128, 64), nn.Linear(64, CLASSES)

    def forward(self, x):
        for i in range(self.depth):
            x = F.max_pool3d(F.leaky_relu(self.get_submodule(f"conv{i + 1}")(F.pad(x, self.pad)), 0.3), 2)
        x = F.leaky_relu(self.fc2(F.leaky_relu(self.fc1(x.flatten(1)), 0.3)), 0.3)
        return self.limit * torch.tanh(self.fc3(x)) if self.limit else self.fc3(x)


class Affine(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.rand(channels) + 0.5), nn.Parameter(torch.randn(channels))

    def forward(self, x):
        return self.scale * x + self.shift


class DeepCAM(nn.Module):
    """deepcam/src/deepCam/architecture/deeplab_xception.py of MLPerf HPC. A step of the list is a layer; forward runs
    them by name."""

    def __init__(self, shape, filters=32, middle=16):
        super().__init__()
        self.middle, self.c_in, self.width = middle, shape[0], lambda at_32: filters * at_32 // 32
        self.net(torch.zeros(2, *shape))

    def layer(self, name, x, make, bn=False, relu=False):
        """Makes the layer when it is run for the first time, when its source has its number of channels."""
        if not hasattr(self, name):
            self.add_module(name, make(x.shape[1]))
        x = self.get_submodule(name)(x)
        if bn:
            x = self.layer(name + "_bn", x, nn.BatchNorm2d)
        return F.relu(x) if relu else x

    def conv(self, name, x, width, k, stride=1, rate=1, **after):
        return self.layer(name, x, lambda c: nn.Conv2d(c, self.width(width), k, stride, k // 2 * rate, rate, bias=False), **after)

    def separable(self, name, x, width, stride=1, rate=1, **after):
        x = self.layer(name + "_depth", x, lambda c: nn.Conv2d(c, c, 3, stride, rate, rate, c, bias=False))
        return self.conv(name, x, width, 1, **after)

    def enlarge(self, name, x, channels, **after):
        return self.layer(name, x, lambda c: nn.ConvTranspose2d(c, channels, 3, 2, 1, 1, bias=False), **after)

    def block(self, name, x, widths, end=0):
        y = x
        for i, width in enumerate(widths):
            y = self.separable(f"{name}_{'abc'[i]}", y, width, bn=True, relu=i + 1 < len(widths))
        if end:
            y = self.separable(name + "_end", y, widths[-1], end)
        stride = max(end, 1)
        plain = stride == 1 and y.shape == x.shape
        return y + (x if plain else self.conv(name + "_short", x, widths[-1], 1, stride, bn=True))

    def net(self, x):
        last = self.middle + 4
        x = self.conv("conv1", x, 32, 3, 2, bn=True, relu=True)
        x = self.conv("conv2", x, 64, 3, bn=True, relu=True)
        low = x = F.relu(self.block("block1", x, (128, 128), 2))
        for i, width in ((2, 256), (3, 728)):
            x = F.relu(self.block(f"block{i}", x, (width, width), 2))
        for i in range(4, last):
            x = F.relu(self.block(f"block{i}", x, (728, 728, 728)))
        x = self.block(f"block{last}", x, (728, 1024), 1)
        for name, width in (("conv3", 1536), ("conv4", 1536), ("conv5", 2048)):
            x = self.separable(name, x, width, 1, 2, bn=True, relu=True)
        parts = [self.conv(f"aspp{i + 1}", x, 256, 3 if i else 1, 1, rate, bn=True, relu=True) for i, rate in enumerate((1, 6, 12, 18))]
        mean = self.layer("pool", x.mean((2, 3)), lambda c: nn.Linear(c, self.width(256), bias=False))
        mean = F.relu(self.layer("pool_affine", mean, Affine))
        x = torch.cat(parts + [mean[:, :, None, None].expand(-1, -1, *x.shape[2:])], 1)
        x = self.conv("aspp", x, 256, 1, bn=True, relu=True)
        for name in ("up1", "up2"):
            x = self.enlarge(name, x, self.width(256), bn=True, relu=True)
        x = torch.cat([x, self.conv("low", low, 48, 1, bn=True, relu=True)], 1)
        for name in ("mix1", "mix2"):
            x = self.conv(name, x, 256, 3, bn=True, relu=True)
        x = self.layer("mix3", x, lambda c: nn.Conv2d(c, self.width(256), 1))
        return self.enlarge("head", self.enlarge("up3", x, self.width(256), bn=True, relu=True), CLASSES)

    def forward(self, x):
        return self.net(x)


def is_norm(layer):
    return layer.endswith(("_norm", "_bn"))


def as_convoy(name):
    layer, _, variable = name.rpartition(".")
    return f"{layer}.{dict(NORM_NAMES).get(variable, variable)}" if is_norm(layer) else name


def dice(x, y):
    p, t = x.softmax(1).flatten(2), F.one_hot(y, CLASSES).movedim(-1, 1).to(x).flatten(2)
    return 1 - ((2 * (p * t).sum(2) + 1) / (p.sum(2) + t.sum(2) + 1)).mean()


def focal(x, y):
    log_p = x.log_softmax(1).gather(1, y[:, None])
    return -((1 - log_p.exp()) ** 2 * log_p).mean()


LOSSES = {"softmax_cross_entropy": F.cross_entropy, "mse": F.mse_loss, "dice": dice, "focal": focal}


def value(text):
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.isdigit() else text


def make(network, size, loss, prefix, *options):
    torch.manual_seed(1)
    shape = tuple(map(int, size.split("x")))
    given = {key: value(text) for key, _, text in (o.partition("=") for o in options)}
    net = {"unet": UNet, "cosmoflow": CosmoFlow, "deepcam": DeepCAM}[network](shape, **given)
    for m in net.modules():
        if isinstance(m, (nn.BatchNorm2d, nn.BatchNorm3d, nn.GroupNorm)):
            m.weight.data.uniform_(0.5, 1.5)
            m.bias.data.uniform_(-0.2, 0.2)
            m.momentum = None  # the running statistics become those of the batch below
    x = torch.randn(2, *shape)
    y = torch.rand(2, CLASSES) if loss == "mse" else torch.randint(0, CLASSES, (2, *shape[1:]))
    with torch.no_grad():
        net.train()(torch.randn(2, *shape))
    state = {k: v for k, v in net.state_dict().items() if not k.endswith("num_batches_tracked")}
    save_file({as_convoy(k): v.clone().contiguous() for k, v in state.items()}, prefix + ".safetensors")
    numpy.save(prefix + ".x.npy", x.numpy())
    numpy.save(prefix + ".y.npy", y.numpy().astype("f4"))
    net.double()
    with torch.no_grad():
        numpy.save(prefix + ".z.npy", net.eval()(x.double()).numpy())
    LOSSES[loss](net.train()(x.double()), y.double() if loss == "mse" else y).backward()
    save_file({as_convoy(k): p.grad for k, p in net.named_parameters()}, prefix + ".grad.safetensors")


def compare(prefix, after, rate):
    z = numpy.load(prefix + ".z.npy")
    o = numpy.load(prefix + ".o.npy").reshape(z.shape)
    before, after, gradient = load_file(prefix + ".safetensors"), load_file(after), load_file(prefix + ".grad.safetensors")
    params = sum(g.numel() for g in gradient.values())
    ours = sum(after[k].numel() for k in after if k.rpartition(".")[2] not in ("running_mean", "running_var"))
    output, slope, where = abs(o - z).max() / abs(z).max(), 0, ""
    for name, g in gradient.items():
        step = (before[name].double() - after[name].double()) / float(rate)
        error = float((step - g).abs().max() / g.abs().max())
        slope, where = max((slope, where), (error, name))
    print(f"{params} parameters, convoy has {ours}; output differs by {output:.2g}, gradient by {slope:.2g} ({where}), "
          "relative to the largest")
    sys.exit(not (params == ours and output <= 1e-5 and slope <= 1e-4))


if sys.argv[1] == "make":
    make(*sys.argv[2:])
else:
    compare(*sys.argv[2:])
