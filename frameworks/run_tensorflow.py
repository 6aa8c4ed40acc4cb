# SPDX-License-Identifier: BSD-3-Clause
"""Times TensorFlow on the networks that convoy is measured on, for `convoy study` and scripts/compare.sh.

It needs tensorflow-cpu, or tensorflow[and-cuda] for a GPU, in a separate environment; convoy itself does not use it.
usage: run_tensorflow.py --net NAME --batch N [--mode train|forward|forward-backward] [--dtype f32|bf16] [--device host|cuda|cuda:I] [--threads T] [--seconds S]
Prints one JSON line: images/s as mean and best of the timed steps, peak resident memory in GB, parameters, and the multiply-adds of convolutions and
fully connected layers in a sample's forward pass; on a GPU also device_peak_bytes, the most memory that tensors had there. f32 is not rounded to TF32.
"""
import argparse, json, os, resource, time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf
import inception_v4 as v4

L = tf.keras.layers


def conv(width, k, stride=1, pad="same", act="relu"):
    return L.Conv2D(width, k, strides=stride, padding=pad, activation=act)


def dense(*widths):
    return [L.Flatten()] + [L.Dense(w, activation="relu") for w in widths[:-1]] + [L.Dense(widths[-1])]


def pool(k=2, s=2):
    return L.MaxPool2D(k, s)


def sequential(shape, layers):
    return tf.keras.Sequential([L.Input(shape)] + layers), shape


def vgg(plan):
    return [pool() if w == "M" else conv(w, 3) for w in plan] + dense(4096, 4096, 1000)


def batch_norm(eps=1e-5):
    return L.BatchNormalization(momentum=0.9, epsilon=eps)  # as the other trainers


def conv_bn(x, width, k, stride=1, relu=True):
    """Pads (k - 1) / 2 on each side, as the other trainers do. TensorFlow's "same" pads differently if the stride is 2."""
    if stride > 1 and k > 1:
        x, pad = L.ZeroPadding2D((k - 1) // 2)(x), "valid"
    else:
        pad = "same"
    x = batch_norm()(L.Conv2D(width, k, strides=stride, padding=pad, use_bias=False)(x))
    return L.ReLU()(x) if relu else x


def caffenet():
    """Caffe's reference network: two groups of channels, pooling before LRN, dropout."""
    lrn = lambda: L.Lambda(lambda x: tf.nn.local_response_normalization(x, 2, 1.0, 1e-4 / 5, 0.75))
    conv2 = lambda width, k=3: L.Conv2D(width, k, padding="same", groups=2, activation="relu")
    fc = lambda: [L.Dense(4096, activation="relu"), L.Dropout(0.5)]
    return sequential((227, 227, 3), [conv(96, 11, 4, "valid"), pool(3), lrn(), conv2(256, 5), pool(3), lrn(), conv(384, 3), conv2(384), conv2(256),
                                      pool(3), L.Flatten(), *fc(), *fc(), L.Dense(1000)])


def resnet(stages=(3, 4, 6, 3), size=224):
    """Version 1.5: the 3x3 convolution has the stride. In Keras' network the 1x1 before it has it, which is less work."""
    x = image = L.Input((size, size, 3))
    x = L.MaxPool2D(3, 2)(L.ZeroPadding2D(1)(conv_bn(x, 64, 7, 2)))
    for stage, blocks in enumerate(stages):
        width = 64 << stage
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            short = conv_bn(x, 4 * width, 1, stride, relu=False) if block == 0 else x
            x = conv_bn(conv_bn(conv_bn(x, width, 1), width, 3, stride), 4 * width, 1, relu=False)
            x = L.ReLU()(L.Add()([x, short]))
    return tf.keras.Model(image, L.Dense(1000)(L.GlobalAveragePooling2D()(x))), (size, size, 3)


def googlenet_bn(size=224):
    """The layers of torchvision: batch norm, 3x3 instead of the paper's 5x5, no auxiliary heads."""
    x = image = L.Input((size, size, 3))
    x = L.MaxPool2D(3, 2, "same")(conv_bn(x, 64, 7, 2))
    x = L.MaxPool2D(3, 2, "same")(conv_bn(conv_bn(x, 64, 1), 192, 3))
    for module in ((64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64), 3, (192, 96, 208, 16, 48, 64), (160, 112, 224, 24, 64, 64),
                   (128, 128, 256, 24, 64, 64), (112, 144, 288, 32, 64, 64), (256, 160, 320, 32, 128, 128), 2,
                   (256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128)):
        if isinstance(module, int):
            x = L.MaxPool2D(module, 2, "same")(x)
            continue
        one, three_in, three, five_in, five, pooled = module
        x = L.Concatenate()([conv_bn(x, one, 1), conv_bn(conv_bn(x, three_in, 1), three, 3), conv_bn(conv_bn(x, five_in, 1), five, 3),
                             conv_bn(L.MaxPool2D(3, 1, "same")(x), pooled, 1)])
    return tf.keras.Model(image, L.Dense(1000)(L.GlobalAveragePooling2D()(x))), (size, size, 3)


def resnet_cifar(layers, size=32):
    """He et al. 2016, section 4.2: the shortcut takes every second position, and new channels are zero."""
    x = image = L.Input((size, size, 3))
    x = conv_bn(x, 16, 3)
    for stage in range(3):
        for i in range((layers - 2) // 6):
            halves, width = stage > 0 and i == 0, 16 << stage
            short = tf.keras.ops.pad(L.AveragePooling2D(1, 2)(x), [[0, 0]] * 3 + [[width // 4] * 2]) if halves else x
            x = conv_bn(conv_bn(x, width, 3, 2 if halves else 1), width, 3, relu=False)
            x = L.ReLU()(L.Add()([x, short]))
    return tf.keras.Model(image, L.Dense(10)(L.GlobalAveragePooling2D()(x))), (size, size, 3)


def line(x, steps):
    """The layers of a line as src/model/model_inception.c has them: "1x1-64 | 3x3-96/2v" are branches; what follows & reads what the step before has read."""
    outputs = []
    for branch in steps.split("|"):
        at = before = x
        for word in branch.split():
            if word == "&":
                outputs.append(at)
                at = before
                continue
            before, (word, valid) = at, (word.rstrip("v"), word.endswith("v"))
            kind, stride = (word.split("/") + ["1"])[:2]
            if kind[:3] in ("max", "avg"):
                k = int(kind[3:])
                at = L.ZeroPadding2D(k // 2)(at) if kind[:3] == "avg" else at  # zeros count in the mean
                at = (L.MaxPool2D if kind[:3] == "max" else L.AveragePooling2D)(k, int(stride), "valid" if valid or kind[:3] == "avg" else "same")(at)
            else:
                size, width = kind.split("-")
                kernel = tuple(int(k) for k in size.split("x"))
                at = L.Conv2D(int(width), kernel, int(stride), "valid" if valid else "same", use_bias=False)(at)
                at = L.ReLU()(batch_norm(1e-3)(at))
        outputs.append(at)
    return L.Concatenate()(outputs) if len(outputs) > 1 else outputs[0]


def inception_v3(size=299):
    """The layers of torchvision; Keras' own network has no scales in its batch norms."""
    b = lambda n: f"1x1-64 | 1x1-48 5x5-64 | 1x1-64 3x3-96 3x3-96 | avg3 1x1-{n}"
    c = lambda n: f"1x1-192 | 1x1-{n} 1x7-{n} 7x1-192 | 1x1-{n} 7x1-{n} 1x7-{n} 7x1-{n} 1x7-192 | avg3 1x1-192"
    e = "1x1-320 | 1x1-384 1x3-384 & 3x1-384 | 1x1-448 3x3-384 1x3-384 & 3x1-384 | avg3 1x1-192"
    x = image = L.Input((size, size, 3))
    for steps in ("3x3-32/2v 3x3-32v 3x3-64 max3/2v 1x1-80v 3x3-192v max3/2v", b(32), b(64), b(64), "3x3-384/2v | 1x1-64 3x3-96 3x3-96/2v | max3/2v",
                  c(128), c(160), c(160), c(192), "1x1-192 3x3-320/2v | 1x1-192 1x7-192 7x1-192 3x3-192/2v | max3/2v", e, e):
        x = line(x, steps)
    return tf.keras.Model(image, L.Dense(1000)(L.GlobalAveragePooling2D()(x))), (size, size, 3)


def inception_v4(size=299):
    """Szegedy et al. 2017, figures 3 to 9."""
    x = image = L.Input((size, size, 3))
    for steps in v4.LINES:
        x = line(x, steps)
    return tf.keras.Model(image, L.Dense(1000)(L.GlobalAveragePooling2D()(x))), (size, size, 3)


M = "M"
NETS = {
    "alexnet-v2": lambda: sequential((224, 224, 3), [L.ZeroPadding2D(2), conv(64, 11, 4, "valid"), pool(3), conv(192, 5), pool(3),
                                                     conv(384, 3), conv(256, 3), conv(256, 3), pool(3)] + dense(4096, 4096, 1000)),
    "overfeat": lambda: sequential((231, 231, 3), [conv(96, 11, 4, "valid"), pool(), conv(256, 5, 1, "valid"), pool(), conv(512, 3),
                                                   conv(1024, 3), conv(1024, 3), pool()] + dense(3072, 4096, 1000)),
    "vgg-a": lambda: sequential((224, 224, 3), vgg([64, M, 128, M, 256, 256, M, 512, 512, M, 512, 512, M])),
    "vgg-19": lambda: sequential((224, 224, 3), vgg([64, 64, M, 128, 128, M] + [256] * 4 + [M] + [512] * 4 + [M] + [512] * 4 + [M])),
    "cifar-convnet": lambda: sequential((32, 32, 3), [conv(32, 5, act=None), L.MaxPool2D(3, 2, padding="same"), L.ReLU(), conv(32, 5),
                                                      L.AvgPool2D(3, 2, padding="same"), conv(64, 5), L.AvgPool2D(3, 2, padding="same"),
                                                      L.Flatten(), L.Dense(64), L.Dense(10)]),
    "hep-cnn": lambda size=224: sequential((size, size, 3), [x for _ in range(5) for x in (conv(128, 3), pool())] + [L.GlobalAveragePooling2D(), L.Dense(2)]),
    "caffenet": caffenet,
    "resnet-50": resnet, "resnet-101": lambda size=224: resnet((3, 4, 23, 3), size), "resnet-152": lambda size=224: resnet((3, 8, 36, 3), size),
    "googlenet-bn": googlenet_bn, "inception-v3": inception_v3, "inception-v4": inception_v4,
    **{f"resnet-{n}": (lambda size=32, n=n: resnet_cifar(n, size)) for n in (20, 32, 44, 56, 110)},
    "resnet-50-v1": lambda: (tf.keras.applications.ResNet50(weights=None, classifier_activation=None), (224, 224, 3)),
    "resnet-152-v1": lambda: (tf.keras.applications.ResNet152(weights=None, classifier_activation=None), (224, 224, 3)),
}


def count_macs(net):
    total = 0
    for layer in net.layers:
        if isinstance(layer, L.Dense):
            total += int(layer.kernel.shape[0]) * int(layer.kernel.shape[1])
        elif isinstance(layer, L.Conv2D):
            weights, out = layer.kernel.shape, layer.output.shape
            total += int(weights[0]) * int(weights[1]) * int(weights[2]) * int(weights[3]) * int(out[1]) * int(out[2])
    return total


def open_device(name):
    """Hides the GPUs that are not to be used."""
    chosen = []
    if name != "host":
        number = name.removeprefix("cuda").removeprefix(":")
        if not name.startswith("cuda") or (name != "cuda" and not number.isdigit()):
            raise SystemExit(f"run_tensorflow: --device is '{name}', expected host, cuda or a number such as cuda:0")
        gpus, index = tf.config.list_physical_devices("GPU"), int(number or 0)
        if index >= len(gpus):
            raise SystemExit(f"run_tensorflow: --device {name}: TensorFlow {tf.__version__} finds {len(gpus)} devices of CUDA here; its package for them is tensorflow[and-cuda]")
        chosen = [gpus[index]]
        tf.config.experimental.enable_tensor_float_32_execution(False)
    tf.config.set_visible_devices(chosen, "GPU")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--net", required=True, choices=sorted(NETS))
    p.add_argument("--batch", type=int, required=True)
    p.add_argument("--mode", choices=["train", "forward", "forward-backward"], default="train")
    p.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    p.add_argument("--device", default="host", help="host, cuda, or a number such as cuda:0")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seconds", type=float, default=6)
    a = p.parse_args()
    open_device(a.device)
    tf.config.threading.set_intra_op_parallelism_threads(a.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    if a.dtype == "bf16":
        tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
    net, shape = NETS[a.net]()
    x = tf.random.normal((a.batch,) + shape)
    y = tf.random.uniform((a.batch,), 0, 2, dtype=tf.int32)
    opt = tf.keras.optimizers.SGD(0.01, momentum=0.9)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train():
        with tf.GradientTape() as tape:
            loss = loss_of(y, tf.cast(net(x, training=True), tf.float32))
        opt.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables))
        return loss

    @tf.function
    def forward():
        return tf.reduce_sum(tf.cast(net(x, training=False), tf.float32))

    @tf.function
    def forward_backward():
        with tf.GradientTape() as tape:
            loss = loss_of(y, tf.cast(net(x, training=True), tf.float32))
        # A sum of each gradient is read, so that none of them is left out.
        return tf.add_n([tf.reduce_sum(g) for g in tape.gradient(loss, net.trainable_variables)])

    step = {"train": train, "forward": forward, "forward-backward": forward_backward}[a.mode]
    start = time.perf_counter()
    first = float(step().numpy())
    if time.perf_counter() - start < 20:  # a second step to warm up, unless it is long
        step().numpy()
    times, start = [], time.perf_counter()
    while len(times) < (3 if time.perf_counter() - start < 60 else 2) or time.perf_counter() - start < a.seconds:
        t = time.perf_counter()
        step().numpy()
        times.append(time.perf_counter() - t)
    print(json.dumps({"peer": "tensorflow " + tf.__version__, **vars(a), "images_per_s": a.batch / sorted(times)[len(times) // 2],
                      "ms_median": 1e3 * sorted(times)[len(times) // 2], "steps": len(times),
                      "images_per_s_mean": round(a.batch * len(times) / sum(times), 2),
                      "images_per_s_best": round(a.batch / min(times), 2),
                      "peak_rss_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 3),
                      "parameters": sum(int(tf.size(w)) for w in net.trainable_variables), "macs": count_macs(net),
                      **({} if a.device == "host" else {"device_peak_bytes": tf.config.experimental.get_memory_info("GPU:0")["peak"]}),
                      **({"loss_first": first} if a.mode == "train" else {})}))


if __name__ == "__main__":
    main()
