# SPDX-License-Identifier: BSD-3-Clause
"""Times PyTorch on the networks that convoy is measured on, for `convoy study` and scripts/compare.sh.

It needs PyTorch and torchvision in a separate environment; convoy itself uses neither.
usage: run_pytorch.py --net NAME|FILE.onnx --batch N [--mode train|forward|forward-backward] [--dtype f32|bf16] [--variant eager|channels_last|compile|graphs|checkpoint|ipex] [--threads T] [--seconds S]
       [--device host|cuda|cuda:I] [--tf32] [--rank R --ranks N --rendezvous FILE | --launched --rendezvous FILE]
       run_pytorch.py --net NAME --export FILE.onnx

With --launched the rank and the number of ranks come from mpiexec or srun; N is then the batch of all ranks, and rank 0 prints the speed of all.
NAME is one of the networks below, or any classifier of torchvision, such as mobilenet-v2; FILE.onnx stands for the network of the file's name.
--export writes the network for training, with random weights, as an ONNX file. Otherwise it
prints one JSON line: images/s as mean and best of the timed steps, peak resident memory in GB, parameters, and the multiply-adds of convolutions and
fully connected layers in a sample's forward pass.

--device cuda computes on a GPU, with cuDNN's search for the fastest algorithms, and TF32 in f32 only with --tf32. Its steps are timed by CUDA's events
between them, while the host is up to two steps ahead; device_peak_bytes is the most memory that tensors had there.
"""
import argparse, functools, json, os, resource, time, warnings
import torch
import torch.distributed
import torch.nn as nn
import torch.nn.functional as F
import torch.utils.checkpoint
import inception_v4 as v4


def conv_relu(c_in, c_out, k, stride=1, pad=0):
    return [nn.Conv2d(c_in, c_out, k, stride, pad), nn.ReLU(True)]


def classifier(c_in, *widths):
    layers = []
    for i, w in enumerate(widths):
        layers.append(nn.Linear(c_in, w))
        if i + 1 < len(widths):
            layers.append(nn.ReLU(True))
        c_in = w
    return layers


def alexnet_v2():
    return nn.Sequential(*conv_relu(3, 64, 11, 4, 2), nn.MaxPool2d(3, 2), *conv_relu(64, 192, 5, 1, 2), nn.MaxPool2d(3, 2),
                         *conv_relu(192, 384, 3, 1, 1), *conv_relu(384, 256, 3, 1, 1), *conv_relu(256, 256, 3, 1, 1), nn.MaxPool2d(3, 2),
                         nn.Flatten(), *classifier(9216, 4096, 4096, 1000)), (3, 224, 224), 1000


def overfeat():
    return nn.Sequential(*conv_relu(3, 96, 11, 4), nn.MaxPool2d(2, 2), *conv_relu(96, 256, 5), nn.MaxPool2d(2, 2),
                         *conv_relu(256, 512, 3, 1, 1), *conv_relu(512, 1024, 3, 1, 1), *conv_relu(1024, 1024, 3, 1, 1), nn.MaxPool2d(2, 2),
                         nn.Flatten(), *classifier(1024 * 36, 3072, 4096, 1000)), (3, 231, 231), 1000


def vgg(plan):
    layers, c = [], 3
    for width in plan:
        if width == "M":
            layers.append(nn.MaxPool2d(2, 2))
        else:
            layers += conv_relu(c, width, 3, 1, 1)
            c = width
    return nn.Sequential(*layers, nn.Flatten(), *classifier(512 * 49, 4096, 4096, 1000)), (3, 224, 224), 1000


def cifar_convnet():
    return nn.Sequential(nn.Conv2d(3, 32, 5, 1, 2), nn.MaxPool2d(3, 2, ceil_mode=True), nn.ReLU(True),
                         *conv_relu(32, 32, 5, 1, 2), nn.AvgPool2d(3, 2, ceil_mode=True),
                         *conv_relu(32, 64, 5, 1, 2), nn.AvgPool2d(3, 2, ceil_mode=True),
                         nn.Flatten(), nn.Linear(1024, 64), nn.Linear(64, 10)), (3, 32, 32), 10


def lenet():
    """As Caffe trains it on MNIST."""
    return nn.Sequential(nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2), nn.Flatten(), *classifier(800, 500, 10)), (1, 28, 28), 10


def caffenet():
    """Caffe's reference network: two groups of channels, pooling before LRN, dropout."""
    lrn = lambda: nn.LocalResponseNorm(5, 1e-4, 0.75, 1.0)
    conv = lambda c_in, c_out, groups=1: [nn.Conv2d(c_in, c_out, 3, 1, 1, groups=groups), nn.ReLU(True)]
    return nn.Sequential(*conv_relu(3, 96, 11, 4), nn.MaxPool2d(3, 2), lrn(), nn.Conv2d(96, 256, 5, 1, 2, groups=2), nn.ReLU(True), nn.MaxPool2d(3, 2), lrn(),
                         *conv(256, 384), *conv(384, 384, 2), *conv(384, 256, 2), nn.MaxPool2d(3, 2), nn.Flatten(),
                         nn.Linear(9216, 4096), nn.ReLU(True), nn.Dropout(0.5), nn.Linear(4096, 4096), nn.ReLU(True), nn.Dropout(0.5),
                         nn.Linear(4096, 1000)), (3, 227, 227), 1000


class BasicBlock(nn.Module):
    """He et al. 2016, section 4.2: the shortcut takes every second position, and new channels are zero."""

    def __init__(self, c_in, c_out, stride):
        super().__init__()
        conv = lambda a, b, s: [nn.Conv2d(a, b, 3, s, 1, bias=False), nn.BatchNorm2d(b)]
        self.main = nn.Sequential(*conv(c_in, c_out, stride), nn.ReLU(True), *conv(c_out, c_out, 1))
        self.stride, self.pad = stride, (c_out - c_in) // 2

    def forward(self, x):
        short = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.pad, self.pad)) if self.stride > 1 else x
        return F.relu(self.main(x) + short)


def resnet_cifar(layers):
    halves = lambda stage, i: stage > 0 and i == 0
    blocks = [BasicBlock(8 << stage if halves(stage, i) else 16 << stage, 16 << stage, 2 if halves(stage, i) else 1)
              for stage in range(3) for i in range((layers - 2) // 6)]
    return nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(True), *blocks,
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)), (3, 32, 32), 10


def hep_cnn():
    layers, c = [], 3
    for _ in range(5):
        layers += conv_relu(c, 128, 3, 1, 1) + [nn.MaxPool2d(2, 2)]
        c = 128
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 2)), (3, 224, 224), 2


class UNet(nn.Module):
    """Ronneberger et al. 2015 with batch norm and zero padding: depth 4, 64 filters."""

    def __init__(self, c_in=1, classes=2, filters=64, depth=4):
        super().__init__()
        width = [filters << i for i in range(depth + 1)]
        block = lambda a, b: nn.Sequential(*(layer for i in (a, b) for layer in (nn.Conv2d(i, b, 3, 1, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU(True))))
        self.down = nn.ModuleList(block(a, b) for a, b in zip([c_in] + width, width[:-1]))
        self.bottom = block(width[-2], width[-1])
        self.larger = nn.ModuleList(nn.ConvTranspose2d(2 * c, c, 2, 2) for c in width[-2::-1])
        self.up = nn.ModuleList(block(2 * c, c) for c in width[-2::-1])
        self.head = nn.Conv2d(filters, classes, 1)

    def forward(self, x):
        kept = []
        for block in self.down:
            kept.append(block(x))
            x = F.max_pool2d(kept[-1], 2)
        x = self.bottom(x)
        for larger, block in zip(self.larger, self.up):
            x = block(torch.cat([kept.pop(), larger(x)], 1))
        return self.head(x)


class Line(nn.Module):
    """The layers of a line as src/model/model_inception.c has them; see run_tensorflow.py."""

    def __init__(self, c_in, steps):
        super().__init__()
        self.branches, self.width = nn.ModuleList(), 0
        for branch in steps.split("|"):
            layers, c, before = nn.ModuleList(), c_in, c_in
            for word in branch.split():
                if word == "&":
                    layers.append(nn.Identity())
                    self.width, c = self.width + c, before
                    continue
                before, (word, valid) = c, (word.rstrip("v"), word.endswith("v"))
                kind, stride = (word.split("/") + ["1"])[:2]
                if kind[:3] in ("max", "avg"):
                    k = int(kind[3:])
                    layers.append((nn.MaxPool2d if kind[:3] == "max" else nn.AvgPool2d)(k, int(stride), 0 if valid else k // 2))
                    continue
                size, c = kind.split("-")[0], int(kind.split("-")[1])
                kernel = tuple(int(k) for k in size.split("x"))
                layers.append(nn.Sequential(nn.Conv2d(before, c, kernel, int(stride), 0 if valid else tuple(k // 2 for k in kernel), bias=False),
                                            nn.BatchNorm2d(c, 1e-3), nn.ReLU(True)))
            self.branches.append(layers)
            self.width += c

    def forward(self, x):
        outputs = []
        for layers in self.branches:
            at = before = x
            for layer in layers:
                if isinstance(layer, nn.Identity):
                    outputs.append(at)
                    at = before
                else:
                    before, at = at, layer(at)
            outputs.append(at)
        return torch.cat(outputs, 1) if len(outputs) > 1 else outputs[0]


def inception_v4():
    """Szegedy et al. 2017, figures 3 to 9; torchvision does not have it."""
    layers, width = [], 3
    for steps in v4.LINES:
        layers.append(Line(width, steps))
        width = layers[-1].width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 1000)), (3, 299, 299), 1000


class Tanh12(nn.Module):
    def forward(self, x):
        return 1.2 * torch.tanh(x)


def cosmoflow():
    """The reference of MLPerf HPC, channels first."""
    layers, c = [], 4
    for i in range(5):
        layers += [nn.Conv3d(c, 32 << i, 3, 1, 1), nn.LeakyReLU(0.3, True), nn.MaxPool3d(2)]
        c = 32 << i
    layers += [nn.Flatten(), nn.Linear(c * 4**3, 128), nn.LeakyReLU(0.3, True), nn.Dropout(0.5), nn.Linear(128, 64), nn.LeakyReLU(0.3, True),
               nn.Dropout(0.5), nn.Linear(64, 4), Tanh12()]
    return nn.Sequential(*layers), (4, 128, 128, 128), 4


def torchvision_net(name, size, **kw):
    """Without stochastic depth, which convoy does not have."""
    import torchvision
    net = getattr(torchvision.models, name)(**kw)
    for module in net.modules():
        if isinstance(module, torchvision.ops.StochasticDepth):
            module.p = 0.0
    return net, (3, size, size), 1000


M = "M"
NETS = {
    "unet": lambda: (UNet(), (1, 256, 256), 2), "cosmoflow": cosmoflow,
    "alexnet-v2": alexnet_v2, "overfeat": overfeat, "caffenet": caffenet, "lenet": lenet, "cifar-convnet": cifar_convnet, "hep-cnn": hep_cnn,
    **{f"resnet-{n}": (lambda n=n: resnet_cifar(n)) for n in (20, 32, 44, 56, 110)},
    "vgg-a": lambda: vgg([64, M, 128, M, 256, 256, M, 512, 512, M, 512, 512, M]),
    "vgg-19": lambda: vgg([64, 64, M, 128, 128, M] + [256] * 4 + [M] + [512] * 4 + [M] + [512] * 4 + [M]),
    "resnet-50": lambda: torchvision_net("resnet50", 224), "resnet-101": lambda: torchvision_net("resnet101", 224),
    "resnet-152": lambda: torchvision_net("resnet152", 224),
    "googlenet-bn": lambda: torchvision_net("googlenet", 224, aux_logits=False, init_weights=False),
    "inception-v3": lambda: torchvision_net("inception_v3", 299, aux_logits=False, init_weights=False),
    "inception-v4": inception_v4,
}


def find_net(name):
    """The network, the shape of a sample and the number of classes. Hyphens and underscores do not count: torchvision writes convnext_tiny and resnet50."""
    import torchvision
    name = os.path.basename(name).removesuffix(".onnx")
    if name in NETS:
        return NETS[name]()
    plain = lambda word: word.replace("-", "").replace("_", "")
    for known in torchvision.models.list_models(torchvision.models):
        if plain(known) == plain(name):
            return torchvision_net(known, 224)
    raise SystemExit(f"run_pytorch: there is no network '{name}', here or in torchvision")


def export(net, shape, path):
    """Batch norm and dropout stay for training."""
    warnings.filterwarnings("ignore")  # of this exporter, for every node
    torch.onnx.export(net.train(), (torch.zeros(2, *shape),), path, dynamo=False, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                      input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "N"}, "y": {0: "N"}})


def count_macs(net, shape):
    total = [0]

    def hook(layer, _, out):
        if isinstance(layer, nn.ConvTranspose2d):  # of kernel and stride 2: each output has one tap
            total[0] += layer.in_channels * out[0].numel()
        else:
            total[0] += layer.weight[0].numel() * out[0].numel()

    hooks = [m.register_forward_hook(hook) for m in net.modules() if isinstance(m, (nn.Conv2d, nn.Conv3d, nn.ConvTranspose2d, nn.Linear))]
    net.eval()
    with torch.no_grad():
        net(torch.zeros(1, *shape))
    for h in hooks:
        h.remove()
    return total[0]


def goes_on(a, steps, seconds):
    """Returns whether another step follows: 3 at least, 2 if they are long. Rank 0 decides, so that all ranks do the same number."""
    more = torch.tensor(float(steps < (3 if seconds < 60 else 2) or seconds < a.seconds), device=a.on if a.ranks > 1 else "cpu")
    if a.ranks > 1:
        torch.distributed.broadcast(more, 0)
    return bool(more)


def time_on_host(a, step):
    """The seconds of each step."""
    times, start = [], time.perf_counter()
    while goes_on(a, len(times), time.perf_counter() - start):
        t = time.perf_counter()
        step()
        times.append(time.perf_counter() - t)
    return times


def time_on_gpu(a, step):
    """The seconds between the ends of steps. The host puts work into the stream up to two steps ahead, as in a training."""
    def mark():
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    marks, start = [mark()], time.perf_counter()
    while goes_on(a, len(marks) - 1, time.perf_counter() - start):
        step()
        marks.append(mark())
        marks[max(len(marks) - 3, 0)].synchronize()
    torch.cuda.synchronize()
    return [begin.elapsed_time(end) / 1e3 for begin, end in zip(marks, marks[1:])]


def open_device(a):
    """What PyTorch calls the device of --device, ready to use."""
    if a.device == "host":
        return torch.device("cpu")
    number = a.device.removeprefix("cuda").removeprefix(":")
    if not a.device.startswith("cuda") or (a.device != "cuda" and not number.isdigit()):
        raise SystemExit(f"run_pytorch: --device is '{a.device}', expected host, cuda or a number such as cuda:0")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not count:
        raise SystemExit(f"run_pytorch: --device {a.device}: PyTorch {torch.__version__} finds no device of CUDA here; `nvidia-smi` lists those of the driver")
    rank = from_launcher(["OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"]) or 0
    index = int(number) if number else (rank if a.launched else a.rank) % count
    if index >= count:
        raise SystemExit(f"run_pytorch: --device {a.device}: PyTorch finds {count} devices, numbered from 0")
    torch.cuda.set_device(index)
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = a.tf32
    return torch.device("cuda", index)


def recompute_blocks(net):
    """Lets the backward pass compute each residual block of torchvision's networks again."""
    for m in net.modules():
        if type(m).__name__ in ("BasicBlock", "Bottleneck"):
            m.forward = functools.partial(torch.utils.checkpoint.checkpoint, m.forward, use_reentrant=False)


def from_launcher(names):
    """What the launcher says: Open MPI, MPICH and Intel MPI, Slurm."""
    return next((int(os.environ[name]) for name in names if name in os.environ), None)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--net", required=True)
    p.add_argument("--export", help="write the network into this file instead of timing it")
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--mode", choices=["train", "forward", "forward-backward"], default="train")
    p.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    p.add_argument("--variant", choices=["eager", "channels_last", "compile", "graphs", "checkpoint", "ipex"], default="channels_last",
                   help="graphs: compile in its mode reduce-overhead, which records CUDA graphs; checkpoint: channels_last, and the backward pass computes each residual block again; ipex: channels_last with Intel's extension")
    p.add_argument("--device", default="host", help="host, cuda, or a number such as cuda:0; without a number each rank of a node takes one in turns")
    p.add_argument("--tf32", action="store_true", help="on a GPU: f32 may be rounded to TF32 in convolutions and products of matrices")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seconds", type=float, default=6)
    p.add_argument("--rank", type=int, default=0)
    p.add_argument("--ranks", type=int, default=1, help="number of ranks; with more than one: DistributedDataParallel on gloo, and each rank prints its own speed")
    p.add_argument("--rendezvous", help="path of a new file through which the ranks find each other")
    p.add_argument("--launched", action="store_true", help="ranks are started by mpiexec or srun")
    a = p.parse_args()
    if a.launched:
        a.rank, a.ranks = from_launcher(["OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"]) or 0, from_launcher(["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"]) or 1
        if a.batch % a.ranks:
            raise SystemExit(f"run_pytorch: a batch of {a.batch} on {a.ranks} ranks, expected a multiple")
        a.batch //= a.ranks
    a.on = open_device(a)
    is_host = a.on.type == "cpu"
    if a.variant in (["graphs"] if is_host else ["ipex"]):
        raise SystemExit(f"run_pytorch: --variant {a.variant} is for {'GPUs' if is_host else 'the host'}, and --device is {a.device}")
    torch.set_num_threads(a.threads)
    net, shape, classes = find_net(a.net)
    if a.export:
        export(net, shape, a.export)
        return
    parameters, macs = sum(w.numel() for w in net.parameters()), count_macs(net, shape)
    x, y = torch.randn(a.batch, *shape), torch.randint(0, classes, (a.batch, *(shape[1:] if a.net == "unet" else ())))
    loss = F.cross_entropy
    if a.net == "cosmoflow":
        y, loss = torch.rand(a.batch, classes), F.mse_loss
    if a.variant != "eager":
        layout = torch.channels_last if len(shape) == 3 else torch.channels_last_3d
        net, x = net.to(memory_format=layout), x.contiguous(memory_format=layout)
    if not is_host:
        net, x, y = net.to(a.on), x.to(a.on), y.to(a.on)
    if a.variant == "checkpoint":
        recompute_blocks(net)
    net.train(a.mode != "forward")
    if a.ranks > 1:
        torch.distributed.init_process_group("gloo" if is_host else "nccl", init_method="file://" + os.path.abspath(a.rendezvous), rank=a.rank, world_size=a.ranks)
        if a.mode == "train":  # in other modes each rank works by itself, as in convoy
            net = nn.parallel.DistributedDataParallel(net)
    opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, foreach=True)
    if a.variant == "ipex":
        import intel_extension_for_pytorch as ipex
        dtype = torch.bfloat16 if a.dtype == "bf16" else torch.float32
        if a.mode == "forward":
            net = ipex.optimize(net, dtype=dtype)
        else:
            net, opt = ipex.optimize(net, dtype=dtype, optimizer=opt)
    run = torch.compile(net) if a.variant == "compile" else torch.compile(net, mode="reduce-overhead") if a.variant == "graphs" else net

    def step():
        with torch.autocast(a.on.type, dtype=torch.bfloat16, enabled=a.dtype == "bf16"):
            if a.mode == "forward":
                with torch.no_grad():
                    run(x)
                return None
            out = run(x)
        opt.zero_grad(set_to_none=True)
        value = loss(out.float(), y)
        value.backward()
        if a.mode == "train":
            opt.step()
        return value

    began = time.perf_counter()
    first = step()
    if a.ranks > 1 or time.perf_counter() - began < 20:  # a second step to warm up, unless it is long
        step()
    times = time_on_host(a, step) if is_host else time_on_gpu(a, step)
    of_all = a.ranks if a.launched else 1
    if a.launched and a.rank > 0:
        return
    a.batch *= of_all
    del a.on
    gpu = {} if is_host else {"gpu": torch.cuda.get_device_name(), "device_peak_bytes": torch.cuda.max_memory_allocated()}
    print(json.dumps({"peer": "pytorch " + torch.__version__, **vars(a), "images_per_s": a.batch / sorted(times)[len(times) // 2],
                      "ms_median": 1e3 * sorted(times)[len(times) // 2], "steps": len(times),
                      "images_per_s_mean": round(a.batch * len(times) / sum(times), 2),
                      "images_per_s_best": round(a.batch / min(times), 2),
                      "peak_rss_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 3),
                      "parameters": parameters, "macs": macs, **gpu, **({"loss_first": float(first.detach())} if first is not None else {})}))


if __name__ == "__main__":
    main()
