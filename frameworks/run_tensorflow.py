# SPDX-License-Identifier: BSD-3-Clause
"""Times TensorFlow on the networks that convoy is measured on, for `convoy study` and scripts/compare.sh.

It needs tensorflow-cpu in a separate environment; convoy itself does not use it.
usage: run_tensorflow.py --net NAME --batch N [--mode train|forward|forward-backward] [--dtype f32|bf16] [--threads T] [--seconds S]
Prints one JSON line: images/s as mean and best of the timed steps, peak resident memory in GB, parameters, and the multiply-adds of convolutions and
fully connected layers in a sample's forward pass.
"""
import argparse, json, os, resource, time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf

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


def conv_bn(x, width, k, stride=1, relu=True):
    """Pads (k - 1) / 2 on each side, as the other trainers do. TensorFlow's "same" pads differently if the stride is 2."""
    if stride > 1 and k > 1:
        x, pad = L.ZeroPadding2D((k - 1) // 2)(x), "valid"
    else:
        pad = "same"
    x = L.BatchNormalization()(L.Conv2D(width, k, strides=stride, padding=pad, use_bias=False)(x))
    return L.ReLU()(x) if relu else x


def resnet_50():
    """Version 1.5: the 3x3 convolution has the stride. In Keras' network the 1x1 before it has it, which is less work."""
    x = image = L.Input((224, 224, 3))
    x = L.MaxPool2D(3, 2)(L.ZeroPadding2D(1)(conv_bn(x, 64, 7, 2)))
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            short = conv_bn(x, 4 * width, 1, stride, relu=False) if block == 0 else x
            x = conv_bn(conv_bn(conv_bn(x, width, 1), width, 3, stride), 4 * width, 1, relu=False)
            x = L.ReLU()(L.Add()([x, short]))
    return tf.keras.Model(image, L.Dense(1000)(L.GlobalAveragePooling2D()(x))), (224, 224, 3)


def googlenet_bn():
    """The layers of torchvision: batch norm, 3x3 instead of the paper's 5x5, no auxiliary heads."""
    x = image = L.Input((224, 224, 3))
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
    return tf.keras.Model(image, L.Dense(1000)(L.GlobalAveragePooling2D()(x))), (224, 224, 3)


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
    "hep-cnn": lambda: sequential((224, 224, 3), [x for _ in range(5) for x in (conv(128, 3), pool())] + [L.GlobalAveragePooling2D(), L.Dense(2)]),
    "resnet-50": resnet_50, "googlenet-bn": googlenet_bn,
    "resnet-50-v1": lambda: (tf.keras.applications.ResNet50(weights=None, classifier_activation=None), (224, 224, 3)),
    "resnet-152-v1": lambda: (tf.keras.applications.ResNet152(weights=None, classifier_activation=None), (224, 224, 3)),
    "inception-v3": lambda: (tf.keras.applications.InceptionV3(weights=None, classifier_activation=None), (299, 299, 3)),
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


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--net", required=True, choices=sorted(NETS))
    p.add_argument("--batch", type=int, required=True)
    p.add_argument("--mode", choices=["train", "forward", "forward-backward"], default="train")
    p.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seconds", type=float, default=6)
    a = p.parse_args()
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
    first = float(step().numpy())
    step().numpy()
    times, start = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - start < a.seconds:
        t = time.perf_counter()
        step().numpy()
        times.append(time.perf_counter() - t)
    print(json.dumps({"peer": "tensorflow " + tf.__version__, **vars(a), "images_per_s": a.batch / sorted(times)[len(times) // 2],
                      "ms_median": 1e3 * sorted(times)[len(times) // 2], "steps": len(times),
                      "images_per_s_mean": round(a.batch * len(times) / sum(times), 2),
                      "images_per_s_best": round(a.batch / min(times), 2),
                      "peak_rss_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 3),
                      "parameters": sum(int(tf.size(w)) for w in net.trainable_variables), "macs": count_macs(net),
                      **({"loss_first": first} if a.mode == "train" else {})}))


main()
