# SPDX-License-Identifier: BSD-3-Clause
"""Writes zoo_shapes.h: parameters, MAC and outputs of the layers with weights of the zoo's networks.

The numbers come from other implementations: torchvision, or, if it does not have a network, the definition below, which
follows the paper or Caffe's prototxt file. It needs PyTorch and torchvision. Run it by hand when a network is added:

    python3 zoo_shapes.py > zoo_shapes.h
"""
import torch
import torch.nn as nn
import torchvision.models as tv


def conv(c_in, c_out, k, stride=1, pad=0, **kw):
    return [nn.Conv2d(c_in, c_out, k, stride, pad, **kw), nn.ReLU()]


def classifier(*widths):
    return [nn.Flatten()] + [layer for a, b in zip(widths, widths[1:]) for layer in (nn.Linear(a, b), nn.ReLU())][:-1]


def caffe_alexnet():
    """models/bvlc_alexnet/deploy.prototxt. models/bvlc_reference_caffenet has pooling and LRN in the other order only, and
    neither of them has weights."""
    return nn.Sequential(*conv(3, 96, 11, 4), nn.MaxPool2d(3, 2), *conv(96, 256, 5, 1, 2, groups=2), nn.MaxPool2d(3, 2), *conv(256, 384, 3, 1, 1),
                         *conv(384, 384, 3, 1, 1, groups=2), *conv(384, 256, 3, 1, 1, groups=2), nn.MaxPool2d(3, 2), *classifier(9216, 4096, 4096, 1000))


def overfeat():
    """Sermanet et al. 2014, table 1."""
    return nn.Sequential(*conv(3, 96, 11, 4), nn.MaxPool2d(2), *conv(96, 256, 5), nn.MaxPool2d(2), *conv(256, 512, 3, 1, 1),
                         *conv(512, 1024, 3, 1, 1), *conv(1024, 1024, 3, 1, 1), nn.MaxPool2d(2), *classifier(36864, 3072, 4096, 1000))


def cifar(full):
    """Caffe's examples/cifar10/cifar10_{quick,full}.prototxt; its pooling rounds sizes up."""
    pool = lambda: nn.MaxPool2d(3, 2, ceil_mode=True)
    return nn.Sequential(*conv(3, 32, 5, 1, 2), pool(), *conv(32, 32, 5, 1, 2), pool(), *conv(32, 64, 5, 1, 2), pool(),
                         *(classifier(1024, 10) if full else [nn.Flatten(), nn.Linear(1024, 64), nn.Linear(64, 10)]))


def hep_cnn():
    """Kurth et al. 2017, section III-A."""
    layers = [layer for i in range(5) for layer in (*conv(3 if i == 0 else 128, 128, 3, 1, 1), nn.MaxPool2d(2))]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 2))


class UNet(nn.Module):
    """Ronneberger et al. 2015, or Cicek et al. 2016 in three dimensions, with padding; gates as Oktay et al. 2018."""

    def __init__(self, c_in, classes, space, depth, filters, norm, up, residual, attention):
        super().__init__()
        conv, deconv, bn, pool = ((nn.Conv2d, nn.ConvTranspose2d, nn.BatchNorm2d, nn.MaxPool2d) if space == 2 else
                                  (nn.Conv3d, nn.ConvTranspose3d, nn.BatchNorm3d, nn.MaxPool3d))
        width = [filters << i for i in range(depth + 1)]
        self.conv, self.bn, self.norm, self.residual, self.attention, self.up = conv, bn, norm, residual, attention, up
        self.pool, self.linear = pool(2), "bilinear" if space == 2 else "trilinear"
        self.down = nn.ModuleList(self.block(a, b) for a, b in zip([c_in] + width, width))
        self.back = nn.ModuleList(self.block(2 * c, c) for c in width[:-1])
        self.gate = nn.ModuleList(nn.ModuleList([conv(c, max(c // 2, 1), 2, 2, bias=False), conv(2 * c, max(c // 2, 1), 1),
                                                 conv(max(c // 2, 1), 1, 1)]) for c in width[:-1]) if attention else None
        self.larger = nn.ModuleList(deconv(2 * c, c, 2, 2) if up == "deconv" else conv(2 * c, c, 1) for c in width[:-1])
        self.head = conv(filters, classes, 1)

    def layer(self, a, b, k):
        return nn.Sequential(self.conv(a, b, k, padding=k // 2, bias=not self.norm), self.bn(b) if self.norm else nn.Identity())

    def block(self, a, b):
        parts = [self.layer(a, b, 3), self.layer(b, b, 3)] + ([self.layer(a, b, 1)] if self.residual and a != b else [])
        return nn.ModuleList(parts)

    def run(self, block, x):
        y = block[1](block[0](x))
        return y + (block[2](x) if len(block) > 2 else x) if self.residual else y

    def enlarge(self, x):
        return nn.functional.interpolate(x, scale_factor=2, mode=self.linear)

    def forward(self, x):
        kept = []
        for block in self.down:
            x = self.run(block, x if not kept else self.pool(kept[-1]))
            kept.append(x)
        for i in reversed(range(len(kept) - 1)):
            skip = kept[i]
            if self.attention:
                wx, wg, psi = self.gate[i]
                skip = skip * self.enlarge(psi(wx(skip) + wg(x)))
            x = self.larger[i](x)
            x = self.run(self.back[i], torch.cat([skip, x if self.up == "deconv" else self.enlarge(x)], 1))
        return self.head(x)


def cosmoflow(kernel):
    """cosmoflow/models/cosmoflow.py of MLPerf HPC with conv_size 32."""
    layers, c = [], 4
    for i in range(5):
        layers += [nn.ConstantPad3d(((kernel - 1) // 2, kernel // 2) * 3, 0), nn.Conv3d(c, 32 << i, kernel), nn.MaxPool3d(2)]
        c = 32 << i
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(512 * 64, 128), nn.Linear(128, 64), nn.Linear(64, 4))


class Separable(nn.Sequential):
    def __init__(self, c_in, c_out, stride=1, rate=1):
        super().__init__(nn.Conv2d(c_in, c_in, 3, stride, rate, rate, c_in, bias=False), nn.Conv2d(c_in, c_out, 1, bias=False))


class XceptionBlock(nn.Module):
    """widths: channels before and after each separable convolution with batch norm; end: the stride of one more without it, or 0."""

    def __init__(self, widths, end):
        super().__init__()
        c_in, c_out, stride = widths[0], widths[-1], max(end, 1)
        layers = [layer for a, b in zip(widths, widths[1:]) for layer in (Separable(a, b), nn.BatchNorm2d(b), nn.ReLU())][:-1]
        self.main = nn.Sequential(*layers, *([Separable(c_out, c_out, end)] if end else []))
        plain = c_in == c_out and stride == 1
        self.short = nn.Identity() if plain else nn.Sequential(nn.Conv2d(c_in, c_out, 1, stride, bias=False), nn.BatchNorm2d(c_out))

    def forward(self, x):
        return self.main(x) + self.short(x)


class DeepCAM(nn.Module):
    """deepcam/src/deepCam/architecture/deeplab_xception.py of MLPerf HPC with an output stride of 16; widths and blocks by f and middle."""

    def __init__(self, f=32, middle=16):
        super().__init__()
        w = lambda at_32: f * at_32 // 32
        bn = lambda c, layer: nn.Sequential(layer, nn.BatchNorm2d(c), nn.ReLU())
        conv = lambda a, b, k, stride=1, rate=1: bn(b, nn.Conv2d(a, b, k, stride, k // 2 * rate, rate, bias=False))
        up = lambda a, b: nn.ConvTranspose2d(a, b, 3, 2, 1, 1, bias=False)
        self.stem = nn.Sequential(conv(16, w(32), 3, 2), conv(w(32), w(64), 3), XceptionBlock([w(64), w(128), w(128)], 2), nn.ReLU())
        entry = [layer for a, b in ((128, 256), (256, 728)) for layer in (XceptionBlock([w(a), w(b), w(b)], 2), nn.ReLU())]
        self.body = nn.Sequential(*entry, *(nn.Sequential(XceptionBlock([w(728)] * 4, 0), nn.ReLU()) for _ in range(middle)),
                                  XceptionBlock([w(728), w(728), w(1024)], 1),
                                  *(bn(w(b), Separable(w(a), w(b), 1, 2)) for a, b in ((1024, 1536), (1536, 1536), (1536, 2048))))
        self.aspp = nn.ModuleList(conv(w(2048), w(256), 3 if rate > 1 else 1, 1, rate) for rate in (1, 6, 12, 18))
        self.pool = nn.Linear(w(2048), w(256), bias=False)
        self.scale, self.shift = nn.Parameter(torch.ones(w(256), 1, 1)), nn.Parameter(torch.zeros(w(256), 1, 1))
        self.mixed = conv(5 * w(256), w(256), 1)
        self.coarse = nn.Sequential(*(bn(w(256), up(w(256), w(256))) for _ in range(2)))
        self.low = conv(w(128), w(48), 1)
        self.head = nn.Sequential(conv(w(256) + w(48), w(256), 3), conv(w(256), w(256), 3), nn.Conv2d(w(256), w(256), 1),
                                  bn(w(256), up(w(256), w(256))), up(w(256), 3))

    def forward(self, x):
        low = self.stem(x)
        x = self.body(low)
        parts = [branch(x) for branch in self.aspp]
        mean = torch.relu(self.scale * self.pool(x.mean((2, 3)))[:, :, None, None] + self.shift)
        x = self.coarse(self.mixed(torch.cat(parts + [mean.expand(-1, -1, *x.shape[2:])], 1)))
        return self.head(torch.cat([x, self.low(low)], 1))


class Join(nn.Module):
    def __init__(self, *branches):
        super().__init__()
        self.branch = nn.ModuleList(b if isinstance(b, nn.Module) else nn.Sequential(*b) for b in branches)

    def forward(self, x):
        return torch.cat([b(x) for b in self.branch], 1)


class PaperGoogLeNet(nn.Module):
    """Szegedy et al. 2015, table 1; heads as in section 5."""
    table = {"3a": (192, 64, 96, 128, 16, 32, 32), "3b": (256, 128, 128, 192, 32, 96, 64), "4a": (480, 192, 96, 208, 16, 48, 64),
             "4b": (512, 160, 112, 224, 24, 64, 64), "4c": (512, 128, 128, 256, 24, 64, 64), "4d": (512, 112, 144, 288, 32, 64, 64),
             "4e": (528, 256, 160, 320, 32, 128, 128), "5a": (832, 256, 160, 320, 32, 128, 128), "5b": (832, 384, 192, 384, 48, 128, 128)}

    def __init__(self, aux):
        super().__init__()
        self.stem = nn.Sequential(*conv(3, 64, 7, 2, 3), nn.MaxPool2d(3, 2, ceil_mode=True), *conv(64, 64, 1), *conv(64, 192, 3, 1, 1),
                                  nn.MaxPool2d(3, 2, ceil_mode=True))
        self.module = nn.ModuleDict({name: Join(conv(c, a, 1), conv(c, b, 1) + conv(b, d, 3, 1, 1), conv(c, e, 1) + conv(e, f, 5, 1, 2),
                                                [nn.MaxPool2d(3, 1, 1)] + conv(c, g, 1)) for name, (c, a, b, d, e, f, g) in self.table.items()})
        self.heads = nn.ModuleDict({name: nn.Sequential(nn.AvgPool2d(5, 3), *conv(c, 128, 1), *classifier(2048, 1024, 1000))
                                    for name, c in (("4a", 512), ("4d", 528)) if aux})
        self.pool, self.fc = nn.MaxPool2d(3, 2, ceil_mode=True), nn.Linear(1024, 1000)

    def forward(self, x):
        x = self.stem(x)
        for name, module in self.module.items():
            x = module(x)
            if name in ("3b", "4e"):
                x = self.pool(x)
            if name in self.heads:
                self.heads[name](x)
        return self.fc(x.mean((2, 3)))


class Beside(nn.Module):
    def __init__(self, before, *last):
        super().__init__()
        self.before, self.last = nn.Sequential(*before), nn.ModuleList(last)

    def forward(self, x):
        x = self.before(x)
        return torch.cat([last(x) for last in self.last], 1)


def inception_v4():
    """Szegedy et al. 2017, figures 3 to 9, table 1."""
    def c(c_in, c_out, kernel, stride=1, valid=False):
        kernel = (kernel, kernel) if isinstance(kernel, int) else kernel
        return nn.Sequential(nn.Conv2d(c_in, c_out, kernel, stride, 0 if valid else tuple(k // 2 for k in kernel), bias=False), nn.BatchNorm2d(c_out))
    half, avg = (lambda: nn.MaxPool2d(3, 2)), (lambda: nn.AvgPool2d(3, 1, 1))
    r, k = (1, 7), (7, 1)
    a = lambda: Join([avg(), c(384, 96, 1)], c(384, 96, 1), [c(384, 64, 1), c(64, 96, 3)], [c(384, 64, 1), c(64, 96, 3), c(96, 96, 3)])
    b = lambda: Join([avg(), c(1024, 128, 1)], c(1024, 384, 1), [c(1024, 192, 1), c(192, 224, r), c(224, 256, k)],
                     [c(1024, 192, 1), c(192, 192, r), c(192, 224, k), c(224, 224, r), c(224, 256, k)])
    d = lambda: Join([avg(), c(1536, 256, 1)], c(1536, 256, 1), Beside([c(1536, 384, 1)], c(384, 256, (1, 3)), c(384, 256, (3, 1))),
                     Beside([c(1536, 384, 1), c(384, 448, (1, 3)), c(448, 512, (3, 1))], c(512, 256, (3, 1)), c(512, 256, (1, 3))))
    return nn.Sequential(
        c(3, 32, 3, 2, True), c(32, 32, 3, 1, True), c(32, 64, 3), Join(half(), c(64, 96, 3, 2, True)),
        Join([c(160, 64, 1), c(64, 96, 3, 1, True)], [c(160, 64, 1), c(64, 64, k), c(64, 64, r), c(64, 96, 3, 1, True)]),
        Join(c(192, 192, 3, 2, True), half()), a(), a(), a(), a(),
        Join(c(384, 384, 3, 2, True), [c(384, 192, 1), c(192, 224, 3), c(224, 256, 3, 2, True)], half()), b(), b(), b(), b(), b(), b(), b(),
        Join([c(1024, 192, 1), c(192, 192, 3, 2, True)], [c(1024, 256, 1), c(256, 256, r), c(256, 320, k), c(320, 320, 3, 2, True)], half()),
        d(), d(), d(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1536, 1000))


class BasicBlock(nn.Module):
    """He et al. 2016, section 4.2: the shortcut has no weights (option A)."""

    def __init__(self, c_in, c_out, stride):
        super().__init__()
        self.path = nn.Sequential(nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False), nn.BatchNorm2d(c_out), nn.Conv2d(c_out, c_out, 3, 1, 1, bias=False),
                                  nn.BatchNorm2d(c_out))

    def forward(self, x):
        return self.path(x)


class PreActBlock(nn.Module):
    """He et al. 2016, Identity mappings, and resnet-1k-layers: a projection in the first unit of a stage."""

    def __init__(self, c_in, width, stride):
        super().__init__()
        self.bn = nn.BatchNorm2d(c_in)
        self.path = nn.Sequential(nn.Conv2d(c_in, width, 1, stride, bias=False), nn.BatchNorm2d(width), nn.Conv2d(width, width, 3, 1, 1, bias=False),
                                  nn.BatchNorm2d(width), nn.Conv2d(width, 4 * width, 1, bias=False))
        self.short = nn.Conv2d(c_in, 4 * width, 1, stride, bias=False) if c_in != 4 * width else nn.Identity()

    def forward(self, x):
        x = self.bn(x)
        return self.path(x) + self.short(x)


def cifar_resnet(layers, bottleneck):
    blocks, c = [], 16
    for stage in range(3):
        for i in range((layers - 2) // (9 if bottleneck else 6)):
            stride, width = (2 if stage and i == 0 else 1), 16 << stage
            blocks.append(PreActBlock(c, width, stride) if bottleneck else BasicBlock(c, width, stride))
            c = 4 * width if bottleneck else width
    stem, tail = [nn.Conv2d(3, 16, 3, 1, 1, bias=False)], [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, 10)]
    return nn.Sequential(*stem, *([] if bottleneck else [nn.BatchNorm2d(16)]), *blocks, *([nn.BatchNorm2d(c)] if bottleneck else []), *tail)


def resnet_v1(net):
    """As in Keras applications: the first 1x1 convolution of a bottleneck has the stride; convolutions have biases."""
    for m in list(net.modules()):
        if isinstance(m, tv.resnet.Bottleneck):
            m.conv1.stride, m.conv2.stride = m.conv2.stride, (1, 1)
        if isinstance(m, nn.Conv2d):
            m.bias = nn.Parameter(torch.zeros(m.out_channels))
    return net


NETS = [  # each row: name in the zoo, options, input (its shape, or the size of a colour picture), source, network
    ("alexnet", "", 227, "Caffe's bvlc_alexnet", caffe_alexnet),
    ("caffenet", "", 227, "Caffe's bvlc_reference_caffenet", caffe_alexnet),
    ("alexnet-v2", "", 224, "torchvision alexnet", tv.alexnet),
    ("overfeat", "", 231, "Sermanet et al. 2014, table 1", overfeat),
    ("vgg-a", "", 224, "torchvision vgg11", tv.vgg11), ("vgg-13", "", 224, "torchvision vgg13", tv.vgg13),
    ("vgg-16", "", 224, "torchvision vgg16", tv.vgg16), ("vgg-16", "batch_norm: true", 224, "torchvision vgg16_bn", tv.vgg16_bn),
    ("vgg-19", "", 224, "torchvision vgg19", tv.vgg19),
    ("googlenet", "aux: false", 224, "Szegedy et al. 2015, table 1", lambda: PaperGoogLeNet(False)),
    ("googlenet", "", 224, "Szegedy et al. 2015, table 1 and section 5", lambda: PaperGoogLeNet(True)),
    ("googlenet-bn", "", 224, "torchvision googlenet", lambda: tv.googlenet(aux_logits=False, init_weights=False)),
    ("googlenet-bn", "aux: true", 224, "torchvision googlenet", lambda: tv.googlenet(aux_logits=True, init_weights=False)),
    ("inception-v3", "", 299, "torchvision inception_v3", lambda: tv.inception_v3(aux_logits=False, init_weights=False)),
    ("inception-v3", "aux: true", 299, "torchvision inception_v3", lambda: tv.inception_v3(aux_logits=True, init_weights=False)),
    ("inception-v4", "", 299, "Szegedy et al. 2017, figures 3 to 9", inception_v4),
    ("resnet-18", "", 224, "torchvision resnet18", tv.resnet18), ("resnet-34", "", 224, "torchvision resnet34", tv.resnet34),
    ("resnet-50", "", 224, "torchvision resnet50", tv.resnet50), ("resnet-101", "", 224, "torchvision resnet101", tv.resnet101),
    ("resnet-152", "", 224, "torchvision resnet152", tv.resnet152),
    ("resnet-50", "version: v1", 224, "Keras applications ResNet50", lambda: resnet_v1(tv.resnet50())),
    ("resnet-20", "", 32, "He et al. 2016, section 4.2", lambda: cifar_resnet(20, False)),
    ("resnet-110", "", 32, "He et al. 2016, section 4.2", lambda: cifar_resnet(110, False)),
    ("resnet-29", "", 32, "He et al. 2016, Identity mappings", lambda: cifar_resnet(29, True)),
    ("resnet-164", "", 32, "He et al. 2016, Identity mappings", lambda: cifar_resnet(164, True)),
    ("cifar-convnet", "", 32, "Caffe's cifar10_quick", lambda: cifar(False)), ("cifar-full", "", 32, "Caffe's cifar10_full", lambda: cifar(True)),
    ("hep-cnn", "", 224, "Kurth et al. 2017, section III-A", hep_cnn),
    ("cosmoflow", "", (4, 128, 128, 128), "MLPerf HPC 1.0's cosmoflow", lambda: cosmoflow(3)),
    ("cosmoflow", "kernel: 2", (4, 128, 128, 128), "MLPerf HPC 0.7's cosmoflow", lambda: cosmoflow(2)),
    ("deepcam", "", (16, 768, 1152), "MLPerf HPC 1.0's deepcam", DeepCAM),
    ("deepcam", "filters: 8, middle: 2", (16, 96, 64), "MLPerf HPC 1.0's deepcam", lambda: DeepCAM(8, 2)),
    ("unet", "", (1, 256, 256), "Ronneberger et al. 2015, with padding", lambda: UNet(1, 2, 2, 4, 64, True, "deconv", False, False)),
    ("unet", "norm: none, up: resize, depth: 3", (1, 256, 256), "Ronneberger et al. 2015, with padding",
     lambda: UNet(1, 2, 2, 3, 64, False, "resize", False, False)),
    ("unet", "filters: 8, residual: true, attention: true", (3, 32, 64, 48), "Oktay et al. 2018",
     lambda: UNet(3, 2, 3, 4, 8, True, "deconv", True, True)),
]


TRANSPOSED = (nn.ConvTranspose2d, nn.ConvTranspose3d)


def measure(net, shape):
    """Returns parameters, MAC and outputs of the layers with weights, for one sample, in the order in which they run."""
    shapes, macs = [], 0

    def hook(m, of, out):
        nonlocal macs
        shapes.append("x".join(map(str, out.shape[1:])))
        macs += (of[0] if isinstance(m, TRANSPOSED) else out).numel() * m.weight[0].numel()
    for m in net.modules():
        if isinstance(m, (nn.Conv2d, nn.Conv3d, nn.Linear, *TRANSPOSED)):
            m.register_forward_hook(hook)
    net.train()
    with torch.no_grad():
        net(torch.zeros(2, *shape, device="meta"))
    return sum(p.numel() for p in net.parameters()), macs // 2, shapes


def main():
    print("/* SPDX-License-Identifier: BSD-3-Clause */")
    print("/* zoo_shapes.h: parameters, MAC and layer outputs of the zoo's networks from other sources, one a line. Written by\n * zoo_shapes.py. */")
    print("/* clang-format off */\nstatic const struct reference {\n    const char *name, *options, *source;\n    cvy_shape input;\n"
          "    int64_t params, macs;\n    const char *shapes;\n} references[] = {")
    for name, options, size, source, make in NETS:
        shape = size if isinstance(size, tuple) else (3, size, size)
        with torch.device("meta"):
            net = make()
        params, macs, shapes = measure(net, shape)
        print(f'    {{"{name}", "{options}", "{source}", {{{len(shape)}, {{{", ".join(map(str, shape))}}}}}, {params}, {macs}, "{" ".join(shapes)}"}},')
    print("};")


main()
