# SPDX-License-Identifier: BSD-3-Clause
"""Times Caffe 1.0 on the networks of its time, by its own command `caffe time`, for `convoy study`.

usage: run_caffe.py --net NAME --batch N [--mode forward|forward-backward] [--threads T] [--seconds S] [--caffe PROGRAM]
       run_caffe.py --net NAME --batch N --write FILE.prototxt
       run_caffe.py --version
PROGRAM is the command of Caffe; CONVOY_CAFFE names it if the option does not, and `caffe` in PATH otherwise. It prints one JSON line: images/s by the
mean times of forward and backward; of single steps `caffe time` tells whole milliseconds only. No weights are updated.
--write writes the network instead of timing it.
"""
import argparse, json, os, re, subprocess, tempfile


class Net:
    """Layers one after the other, as Caffe's text. A size like "5p2/2" is kernel 5, pad 2, stride 2."""

    def __init__(self, shape, batch):
        self.shape, self.at, self.n, self.layers = shape, "data", 0, []
        dims = " ".join(f"dim: {n}" for n in (batch, *shape))
        self.layers.append(f'layer {{ name: "data" type: "DummyData" top: "data" top: "label" dummy_data_param {{ shape {{ {dims} }} shape {{ dim: {batch} }} '
                           f'data_filler {{ type: "gaussian" std: 1 }} data_filler {{ type: "constant" value: 0 }} }} }}')

    def add(self, kind, parameters="", bottoms=None, in_place=False, name=None):
        self.n += 1
        name = name or f"{kind.lower()}{self.n}"
        top, bottoms = self.at if in_place else name, bottoms or [self.at]
        self.layers.append(f'layer {{ name: "{name}" type: "{kind}" {" ".join(f"""bottom: "{b}" """ for b in bottoms)}top: "{top}" {parameters} }}')
        self.at = top
        return self

    def conv(self, width, size, group=1, relu=True):
        kernel, pad, stride = re.fullmatch(r"(\d+)(?:p(\d+))?(?:/(\d+))?", size).groups()
        self.add("Convolution", f'convolution_param {{ num_output: {width} kernel_size: {kernel} pad: {pad or 0} stride: {stride or 1} group: {group} '
                                'weight_filler { type: "msra" } }')
        return self.relu() if relu else self

    def relu(self):
        return self.add("ReLU", in_place=True)

    def pool(self, size, how="MAX"):
        kernel, pad, stride = re.fullmatch(r"(\d+)(?:p(\d+))?/(\d+)", size).groups()
        return self.add("Pooling", f"pooling_param {{ pool: {how} kernel_size: {kernel} pad: {pad or 0} stride: {stride} }}")

    def lrn(self):
        return self.add("LRN", "lrn_param { local_size: 5 alpha: 0.0001 beta: 0.75 }")

    def fc(self, *widths, relu=True):
        for i, width in enumerate(widths):
            self.add("InnerProduct", f'inner_product_param {{ num_output: {width} weight_filler {{ type: "xavier" }} }}')
            if relu and i + 1 < len(widths):
                self.relu()
        return self

    def inception(self, one, three_in, three, five_in, five, pooled):
        source, ends = self.at, []
        for branch in (lambda: self.conv(one, "1"), lambda: self.conv(three_in, "1").conv(three, "3p1"), lambda: self.conv(five_in, "1").conv(five, "5p2"),
                       lambda: self.pool("3p1/1").conv(pooled, "1")):
            self.at = source
            ends.append(branch().at)
        return self.add("Concat", bottoms=ends)

    def text(self, with_loss):
        loss = [f'layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "{self.at}" bottom: "label" top: "loss" }}'] if with_loss else []
        return "\n".join(['name: "net"', *self.layers, *loss, ""])


def alexnet(net, norm_first):
    pool_and_norm = (lambda: net.lrn().pool("3/2")) if norm_first else (lambda: net.pool("3/2").lrn())
    net.conv(96, "11/4")
    pool_and_norm()
    net.conv(256, "5p2", group=2)
    pool_and_norm()
    return net.conv(384, "3p1").conv(384, "3p1", group=2).conv(256, "3p1", group=2).pool("3/2").fc(4096, 4096, 1000)


def vgg(net, convs):
    for width, count in zip((64, 128, 256, 512, 512), convs):
        for _ in range(count):
            net.conv(width, "3p1")
        net.pool("2/2")
    return net.fc(4096, 4096, 1000)


def googlenet(net):
    net.conv(64, "7p3/2").pool("3/2").lrn().conv(64, "1").conv(192, "3p1").lrn().pool("3/2")
    net.inception(64, 96, 128, 16, 32, 32).inception(128, 128, 192, 32, 96, 64).pool("3/2")
    for widths in ((192, 96, 208, 16, 48, 64), (160, 112, 224, 24, 64, 64), (128, 128, 256, 24, 64, 64), (112, 144, 288, 32, 64, 64), (256, 160, 320, 32, 128, 128)):
        net.inception(*widths)
    net.pool("3/2").inception(256, 160, 320, 32, 128, 128).inception(384, 192, 384, 48, 128, 128)
    return net.add("Pooling", "pooling_param { pool: AVE global_pooling: true }").fc(1000)


NETS = {  # without dropout and auxiliary heads, as `convoy bench` times them
    "alexnet": ((3, 227, 227), lambda net: alexnet(net, True)),
    "caffenet": ((3, 227, 227), lambda net: alexnet(net, False)),
    "alexnet-v2": ((3, 224, 224), lambda net: net.conv(64, "11p2/4").pool("3/2").conv(192, "5p2").pool("3/2").conv(384, "3p1").conv(256, "3p1").conv(256, "3p1")
                   .pool("3/2").fc(4096, 4096, 1000)),
    "overfeat": ((3, 231, 231), lambda net: net.conv(96, "11/4").pool("2/2").conv(256, "5").pool("2/2").conv(512, "3p1").conv(1024, "3p1").conv(1024, "3p1")
                 .pool("2/2").fc(3072, 4096, 1000)),
    "vgg-a": ((3, 224, 224), lambda net: vgg(net, (1, 1, 2, 2, 2))), "vgg-16": ((3, 224, 224), lambda net: vgg(net, (2, 2, 3, 3, 3))),
    "vgg-19": ((3, 224, 224), lambda net: vgg(net, (2, 2, 4, 4, 4))),
    "googlenet": ((3, 224, 224), googlenet),
    "cifar-convnet": ((3, 32, 32), lambda net: net.conv(32, "5p2", relu=False).pool("3/2").relu().conv(32, "5p2").pool("3/2", "AVE").conv(64, "5p2").pool("3/2", "AVE")
                      .fc(64, 10, relu=False)),
    "lenet": ((1, 28, 28), lambda net: net.conv(20, "5", relu=False).pool("2/2").conv(50, "5", relu=False).pool("2/2").fc(500, 10)),
}


def run(words, threads):
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads), "GLOG_logtostderr": "1"}
    try:
        r = subprocess.run(words, capture_output=True, text=True, errors="replace", env=environment)
    except OSError as error:
        raise SystemExit(f"run_caffe: {words[0]}: {error.strerror}; CONVOY_CAFFE names the command of Caffe")
    if r.returncode:
        said = [line for line in (r.stderr + r.stdout).splitlines() if re.match(r"F\d|.*rror", line)] or (r.stderr + r.stdout).splitlines() or ["it says nothing"]
        raise SystemExit(f"run_caffe: {' '.join(words[:2])} ends with code {r.returncode}: {said[0].strip()}")
    return r.stderr + r.stdout


def numbers(text, pattern, words):
    found = [float(n) for n in re.findall(pattern + r" ([0-9.e+-]+) ms", text)]
    if not found:
        raise SystemExit(f"run_caffe: {' '.join(words[:2])} printed no line \"{pattern} .. ms\": is it Caffe 1.0?")
    return found


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--net", choices=sorted(NETS))
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--mode", choices=["train", "forward", "forward-backward"], default="forward-backward")
    p.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seconds", type=float, default=6)
    p.add_argument("--caffe", default=os.environ.get("CONVOY_CAFFE") or "caffe")
    p.add_argument("--write", metavar="FILE")
    p.add_argument("--version", action="store_true")
    a = p.parse_args()
    if a.version:
        version = re.search(r"caffe version ([0-9][\w.-]*)", run([a.caffe, "--version"], 1))
        if not version:
            raise SystemExit(f"run_caffe: {a.caffe} --version prints no \"caffe version\": it is no command of Caffe 1.0")
        print("Caffe", version[1])
        return
    if not a.net:
        p.error("--net is missing")
    if a.dtype != "f32" or a.mode == "train":
        raise SystemExit(f"run_caffe: mode {a.mode} in {a.dtype}: `caffe time` measures forward and forward-backward in f32")
    shape, make = NETS[a.net]
    text = make(Net(shape, a.batch)).text(a.mode != "forward" or bool(a.write))
    if a.write:
        with open(a.write, "w") as file:
            file.write(text)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, a.net + ".prototxt")
        with open(path, "w") as file:
            file.write(text)
        time = lambda n: [a.caffe, "time", "-model", path, "-iterations", str(n), "-phase", "TEST" if a.mode == "forward" else "TRAIN"]

        def means(n):
            said = run(time(n), a.threads)
            return [numbers(said, f"Average {way} pass:", time(n))[0] for way in ("Forward", "Backward")]

        steps = max(3, int(1e3 * a.seconds / max(sum(means(1)), 1e-3)))
        forward, backward = means(steps)
        ms = forward + (backward if a.mode == "forward-backward" else 0)
    print(json.dumps({"peer": "caffe", "net": a.net, "batch": a.batch, "mode": a.mode, "dtype": a.dtype, "threads": a.threads, "images_per_s": 1e3 * a.batch / ms,
                      "ms_mean": ms, "steps": steps}))


if __name__ == "__main__":
    main()
