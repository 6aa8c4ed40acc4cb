# SPDX-License-Identifier: BSD-3-Clause
"""Trains a job of convoy with TensorFlow, for `convoy study`: the network, pictures, optimiser and schedule of a job file.

usage: train_tensorflow.py JOB --program CONVOY [--set KEY=VALUE]... [--seed N] [--threads T] [--device host|cuda|cuda:I]
It prints one JSON line: the scores after each epoch (`curve`), and losses and times of steps (`step_curve`). Weights begin as in convoy: He's
initialiser, Xavier's for the last layer. The step is a graph, which is traced before the first epoch. The updates are PyTorch's and convoy's:
Keras' momentum has the learning rate inside, and its weight decay is not a part of the gradient.
"""
import inspect, json
import train_job


def build(job, shape, classes):
    import tensorflow as tf
    import run_tensorflow
    make = run_tensorflow.NETS.get(job.model)
    if not make:
        train_job.refuse(f"there is no network '{job.model}' for TensorFlow, expected one of {', '.join(sorted(run_tensorflow.NETS))}")
    if job.options.get("dropout"):
        train_job.refuse(f"model: dropout is {job.options['dropout']}; the networks for TensorFlow have none")
    net, own = make(size=shape[0]) if shape[0] == shape[1] and "size" in inspect.signature(make).parameters else make()
    if tuple(own) != tuple(shape):
        train_job.refuse(f"model: {job.model} takes pictures of {own[0]}x{own[1]}, and data.augment makes {shape[0]}x{shape[1]}")
    last = net.layers[-1]
    net = tf.keras.Model(net.inputs, tf.keras.layers.Dense(classes)(last.input)) if last.units != classes else net
    for i, layer in enumerate(l for l in net.layers if isinstance(l, (tf.keras.layers.Conv2D, tf.keras.layers.Dense))):
        seed = job.seed * 1000 + i
        init = tf.keras.initializers.VarianceScaling(2.0, "fan_in", "untruncated_normal", seed)
        layer.kernel.assign(init(layer.kernel.shape))
    if not job.model.startswith("resnet-") or job.model == "resnet-50":
        net.layers[-1].kernel.assign(tf.keras.initializers.GlorotUniform(job.seed)(net.layers[-1].kernel.shape))
    return net


def optimizer_of(job, weights):
    """Returns the function that applies gradients."""
    import tensorflow as tf
    o = job.optimizer
    name = train_job.check_optimizer(o, ("sgd", "adam", "adamw"))
    decay = [o.get("weight_decay", 0) if len(w.shape) > 1 else 0 for w in weights]  # without biases and norms
    state = lambda: [tf.Variable(tf.zeros(w.shape), trainable=False) for w in weights]

    def sgd(gradients, lr):
        for w, g, d, m in zip(weights, gradients, decay, first):
            g = g + d * w if d else g
            if o["momentum"]:
                m.assign(o["momentum"] * m + g)
                g = g + o["momentum"] * m if o["nesterov"] else m
            w.assign_sub(lr * g)

    def adam(gradients, lr):
        step.assign_add(1)
        rate, root = lr / (1 - o["beta1"] ** step), tf.sqrt(1 - o["beta2"] ** step)
        for w, g, d, m, v in zip(weights, gradients, decay, first, second):
            if d and name == "adamw":
                w.assign_sub(lr * d * w)
            elif d:
                g = g + d * w
            m.assign(o["beta1"] * m + (1 - o["beta1"]) * g)
            v.assign(o["beta2"] * v + (1 - o["beta2"]) * g * g)
            w.assign_sub(rate * m / (tf.sqrt(v) / root + o["eps"]))

    first, second, step = state(), state() if name != "sgd" else None, tf.Variable(0.0, trainable=False)
    return sgd if name == "sgd" else adam


class System:
    rank, ranks = 0, 1

    def __init__(self, a, job, loader):
        import tensorflow as tf
        import run_tensorflow
        self.tf, self.name = tf, "tensorflow " + tf.__version__
        run_tensorflow.open_device(a.device)
        tf.config.threading.set_intra_op_parallelism_threads(a.threads)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        tf.random.set_seed(job.seed)
        self.net = build(job, loader.shape, len(loader.classes))
        self.parameters = sum(int(tf.size(w)) for w in self.net.trainable_variables)
        self.make_functions(job, loader)

    def make_functions(self, job, loader):
        """Batches of any size have one graph, which is traced here."""
        tf, net, weights = self.tf, self.net, [w.value for w in self.net.trainable_variables]
        apply = optimizer_of(job, weights)
        x, y = tf.TensorSpec((None, *loader.shape), tf.float32), tf.TensorSpec((None,), tf.int64)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits

        def step(x, y, lr):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(losses(y, net(x, training=True)))
            apply(tape.gradient(loss, weights), lr)
            return loss

        def score(x, y):
            out = net(x, training=False)
            return tf.reduce_sum(losses(y, out)), tf.reduce_sum(tf.cast(tf.argmax(out, 1) == y, tf.int32))

        self.run_step = tf.function(step, input_signature=[x, y, tf.TensorSpec((), tf.float32)])
        self.run_score = tf.function(score, input_signature=[x, y])
        self.run_step.get_concrete_function()
        self.run_score.get_concrete_function()

    def step(self, x, y, weight, lr):
        return float(self.run_step(x, y, self.tf.constant(lr, self.tf.float32)))

    def score(self, x, y):
        loss, correct = self.run_score(x, y)
        return float(loss), int(correct)

    def add(self, numbers):
        return numbers


def main():
    a = train_job.arguments("Trains a job of convoy with TensorFlow.").parse_args()
    job = train_job.Job(a)
    loader = train_job.Loader(job, 1, a.threads)
    done = train_job.train(System(a, job, loader), job, loader)
    loader.close()
    print(json.dumps(done))


if __name__ == "__main__":
    main()
