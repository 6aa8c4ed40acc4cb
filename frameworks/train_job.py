# SPDX-License-Identifier: BSD-3-Clause
"""What train_pytorch.py and train_tensorflow.py share: the job, the pictures, the learning rate, the loop and its result.

`convoy keys JOB --json` gives the job with all its defaults, so the peers read the same file as `convoy train`. A key that
they do not know, or a value that they cannot follow, ends the training with its name. They never train something else.

Pictures come from a folder with a folder for each class. Processes of their own decode and augment the next batches. The
operations are those of data.augment, and draws are others than convoy's. Statistics of batch norm are over the batch of a
rank, whatever batch_norm.group says.
"""
import argparse, collections, json, math, multiprocessing, os, resource, subprocess, sys, time
import numpy as np
from PIL import Image

# What a peer must find in the job, because it does nothing else.
MUST = {"update": "sync", "data.shuffle": True, "data.balance": "none", "data.normalize": "none", "train.dtype": "f32", "train.lr_rule": "none",
        "train.accumulate": 1, "train.clip_norm": 0, "train.clip_value": 0, "train.l1": 0, "train.loss": "softmax_cross_entropy",
        "parallel.strategy": "data", "parallel.pipeline": 1, "parallel.tensor": 1}
MUST_OPTIMIZER = {"decay_on": "weights", "lookahead": 0, "lr_inside": False, "average": 0, "eps_hat": False}
READ = {"model", "data.train", "data.val", "data.augment", "data.tail", "data.prefetch", "train.batch", "train.batch_per_rank", "train.epochs",
        "train.steps", "train.seed", "train.optimizer", "train.schedule", "log.every"}
# What does not change what is learnt.
IGNORED = {"name", "description", "deterministic", "deterministic_shards", "device", "data.normalize_samples", "data.window", "data.on_bad_sample",
           "data.threads", "data.cache", "data.cache_limit", "data.stage", "data.sandbox", "data.test", "train.precise", "train.metrics",
           "train.validate_every"}
IGNORED_SECTIONS = {"checkpoint", "batch_norm", "plan", "comm", "parallel", "watchdog", "log"}
WAIT_S = 600
CURVE_STEPS = 2000  # points of step_curve at most, as in convoy


def refuse(text):
    raise SystemExit(f"{os.path.basename(sys.argv[0])}: {text}")


def arguments(description):
    p = argparse.ArgumentParser(description=description)
    p.add_argument("job", help="a job file of convoy")
    p.add_argument("--program", default="convoy", help="convoy, which reads the job")
    p.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="overrides a key of the job")
    p.add_argument("--seed", type=int, help="instead of train.seed")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--device", default="host", help="host, cuda, or a number such as cuda:0")
    return p


# ---- the job ----

def leaves(tree, path=""):
    for key, value in tree.items():
        name = path + key
        if isinstance(value, dict) and name not in READ:
            yield from leaves(value, name + ".")
        else:
            yield name, value


def demand(name, value, only):
    if value is not None and value != only and value != {"name": only}:
        refuse(f"{name} is {json.dumps(value)} in the job; the peers have only {json.dumps(only)}")


class Job:
    def __init__(self, a):
        words = [a.program, "keys", a.job, "--json"] + [word for pair in a.set for word in ("--set", pair)]
        try:
            r = subprocess.run(words, capture_output=True, text=True)
        except OSError as error:
            refuse(f"{a.program}: {error.strerror}; --program names convoy, which reads the job")
        if r.returncode:
            refuse(r.stderr.strip().splitlines()[-1] if r.stderr.strip() else f"{' '.join(words)} ends with code {r.returncode}")
        self.tree = json.loads(r.stdout)
        self.check(self.tree)
        model = self.tree["model"]
        self.options = dict(model) if isinstance(model, dict) else {}
        self.model = self.options.pop("name", None) if isinstance(model, dict) else model
        if not isinstance(self.model, str) or "/" in self.model or set(self.options) - {"dropout"}:
            refuse(f"model: {json.dumps(model)}, expected the name of a network, with no other option than dropout")
        data, train = self.tree["data"], self.tree["train"]
        self.augment, self.tail, self.prefetch = data.get("augment") or [], data["tail"], data["prefetch"]
        self.seed = train["seed"] if a.seed is None else a.seed
        self.optimizer, self.every = train["optimizer"], self.tree["log"]["every"]
        if a.seed is not None and a.seed < 0:
            refuse(f"--seed is {a.seed}, expected a number from 0")

    def check(self, tree):
        for name, value in leaves(tree):
            if name in MUST:
                demand(name, value, MUST[name])
            elif not (name in READ or name in IGNORED or name.split(".")[0] in IGNORED_SECTIONS or value is None):
                refuse(f"the job has the key {name}, which the peers do not have")
        for name, value in tree["train"]["optimizer"].items():
            demand("train.optimizer." + name, value, MUST_OPTIMIZER.get(name, value))

    def batch(self, ranks):
        train = self.tree["train"]
        return train.get("batch") or (train["batch_per_rank"] * ranks if train.get("batch_per_rank") else 128)

    def steps(self, each):
        train = self.tree["train"]
        return train.get("steps") or max(1, math.ceil((train.get("epochs") or 1) * each - 1e-9))

    def source(self, name):
        value = self.tree["data"].get(name)
        if isinstance(value, dict) and set(value) <= {"path", "format"} and value.get("format", "folder") == "folder":
            value = value.get("path")
        if value is None and name == "val":
            return None
        if not isinstance(value, str) or not os.path.isdir(value):
            refuse(f"data.{name} is {json.dumps(value)}, expected a folder of pictures with a folder for each class; "
                   f"`convoy convert SOURCE FOLDER --format folder` writes one")
        return value


def check_optimizer(o, known):
    """known: {name: its options}"""
    if o["name"] not in known:
        refuse(f"train.optimizer is {o['name']}, expected one of {', '.join(known)}")
    return o["name"]


# ---- the learning rate: src/optim/schedule ----

def duration(text, each, batch):
    """\"2 epochs\" as samples."""
    number, _, unit = str(text).partition(" ")
    length = {"epoch": each, "epochs": each, "step": batch, "steps": batch, "sample": 1, "samples": 1, "": 1}.get(unit.strip())
    if length is None:
        refuse(f"train.schedule: {text!r} is no number of epochs, steps or samples")
    return float(number) * length


def cosine(start, end, done):
    return end + (start - end) * (1 + math.cos(math.pi * done)) / 2


def schedule(tree, each, batch, total):
    """Returns the factor on the learning rate as a function of the samples seen."""
    o = dict(tree) if isinstance(tree, dict) else {"name": tree or "constant"}
    name, warmup, first = o.pop("name"), duration(o.pop("warmup", 0), each, batch), float(o.pop("warmup_from", None) or 0)
    take = lambda key, default: float(o.pop(key, default))
    time = lambda key: duration(o.pop(key, 0), each, batch)
    share = lambda seen: min(seen / total, 1)
    if name == "constant":
        factor = lambda seen: 1
    elif name == "cosine":
        end = take("end", 0)
        factor = lambda seen: cosine(1, end, share(seen))
    elif name == "polynomial":
        power, end = take("power", 1), take("end", 0)
        factor = lambda seen: end + (1 - end) * (1 - share(seen)) ** power
    elif name == "one_cycle":
        rise, div, final = take("rise", 0.3), take("div", 25), take("final_div", 1e4)
        factor = lambda seen: cosine(1 / div, 1, share(seen) / rise) if share(seen) < rise else cosine(1, 1 / div / final, (share(seen) - rise) / (1 - rise)) if rise < 1 else 1
    elif name == "step":
        by, every = take("factor", 0.1), time("every")
        factor = lambda seen: by ** math.floor(seen / every)
    elif name == "multi_step":
        at, by = ([float(v) if key == "factor" else duration(v, each, batch) for v in (value if isinstance(value, list) else [value])]
                  for key, value in (("at", o.pop("at")), ("factor", o.pop("factor", 0.1))))
        if len(by) not in (1, len(at)):
            refuse(f"train.schedule: multi_step has {len(by)} factors and {len(at)} times, expected one factor or one for each time")
        factor = lambda seen: math.prod(f for f, t in zip(by * len(at) if len(by) == 1 else by, at) if seen >= t)
    elif name == "exponential":
        by, every = take("factor", 0.95), time("every") or each
        factor = lambda seen: by ** (seen / every)
    else:
        refuse(f"train.schedule is {name}, expected constant, cosine, polynomial, one_cycle, step, multi_step or exponential")
    if o:
        refuse(f"train.schedule: {name} has no {', '.join(o)} here")
    return lambda seen: factor(seen) * (first + (1 - first) * seen / warmup if seen < warmup else 1)


# ---- pictures ----

def pair(size):
    return (size, size) if isinstance(size, int) else tuple(size) if len(size) > 1 else (size[0], size[0])


def box_of(H, W, h, w, rng):
    """The corner of a window, in the middle without rng."""
    return ((H - h) // 2, (W - w) // 2) if rng is None else (int(rng.integers(H - h + 1)), int(rng.integers(W - w + 1)))


def crop(x, o, rng):
    pad = o.get("pad", 0)
    if pad:
        x = np.pad(x, ((pad, pad), (pad, pad), (0, 0)))
    h, w = pair(o["size"]) if o.get("size") else (x.shape[0] - 2 * pad, x.shape[1] - 2 * pad)
    if h > x.shape[0] or w > x.shape[1]:
        raise ValueError(f"a crop of {h}x{w} does not fit into a picture of {x.shape[0]}x{x.shape[1]}")
    top, left = box_of(x.shape[0], x.shape[1], h, w, rng)
    return x[top:top + h, left:left + w]


def scaled(image, box, h, w):
    left, top, right, bottom = box
    box = max(left, 0), max(top, 0), min(right, image.width), min(bottom, image.height)  # a rounding error may lead out of the picture
    return np.asarray(image.resize((w, h), Image.BILINEAR, box=box))


def resize(image, o):
    (h, w), (W, H) = pair(o["size"]), image.size
    if o.get("fit", "cover") != "cover":
        return scaled(image, (0, 0, W, H), h, w)
    step = min(H / h, W / w)
    left, top = (W - step * w) / 2, (H - step * h) / 2
    return scaled(image, (left, top, left + step * w, top + step * h), h, w)


def random_resized_crop(image, o, rng):
    (h, w), (W, H) = pair(o["size"]), image.size
    if rng is None:
        step = min(H / h, W / w) * o.get("center", 0.875)
        left, top = (W - step * w) / 2, (H - step * h) / 2
        return scaled(image, (left, top, left + step * w, top + step * h), h, w)
    scale, ratio = o.get("scale", [0.08, 1]), o.get("ratio", [0.75, 4 / 3])
    for _ in range(10):
        area, r = H * W * rng.uniform(*scale), math.exp(rng.uniform(math.log(ratio[0]), math.log(ratio[1])))
        bw, bh = round(math.sqrt(area * r)), round(math.sqrt(area / r))
        if 0 < bw <= W and 0 < bh <= H:
            break
    else:
        bh, bw = min(H, round(W / ratio[0])), min(W, round(H * ratio[1]))
    top, left = box_of(H, W, bh, bw, rng)
    return scaled(image, (left, top, left + bw, top + bh), h, w)


class Augment:
    """data.augment: what moves pixels is done on bytes, one picture at a time; what changes values, on the batch."""

    def __init__(self, steps):
        self.moves, self.mean, self.std = [], np.zeros(1), np.ones(1)
        first = {"normalize": "mean", "mean": "values", "std": "values", "mirror": "on"}
        for step in steps:
            name, o = (step, {}) if isinstance(step, str) else next(iter(step.items()))
            o = o if isinstance(o, dict) else {first.get(name, "size"): o}
            if name in ("mean", "std", "normalize"):
                mean = np.asarray(o.get("mean", 0) if name == "normalize" else o["values"] if name == "mean" else 0, float)
                std = np.asarray(o.get("std", 1) if name == "normalize" else o["values"] if name == "std" else 1, float)
                self.mean, self.std = self.mean + self.std * mean, self.std * std
            elif name in ("mirror", "random_crop", "center_crop", "resize", "random_resized_crop") and not set(o) & {"axis", "filter"}:
                self.moves.append((name, o))
            else:
                refuse(f"data.augment: {json.dumps(step)}, expected mirror, random_crop, center_crop, resize, random_resized_crop, mean, std or normalize")

    def picture(self, path, rng):
        """The bytes of a picture, [H, W, 3]. rng: None for validation."""
        image = Image.open(path)
        if self.moves and self.moves[0][0] == "resize":
            image.draft("RGB", pair(self.moves[0][1]["size"])[::-1])  # a JPEG is decoded at a reduced size if that is enough
        x = image = image.convert("RGB")
        for name, o in self.moves:
            if name == "mirror":
                if rng is not None and o.get("on", True) and rng.random() < o.get("share", 0.5):
                    x = np.asarray(x)[:, ::-1]
            elif name in ("resize", "random_resized_crop"):
                image = x if isinstance(x, Image.Image) else Image.fromarray(np.ascontiguousarray(x))
                x = resize(image, o) if name == "resize" else random_resized_crop(image, o, rng)
            else:
                x = crop(np.asarray(x), o, rng if name == "random_crop" else None)
        return np.asarray(x)

    def values(self, x):
        """The batch that the network gets: f32 [N, H, W, 3]."""
        return ((x.astype(np.float32) * np.float32(1 / 255)) - self.mean.astype(np.float32)) / self.std.astype(np.float32)


def list_pictures(folder):
    classes = sorted((d for d in os.listdir(folder) if os.path.isdir(os.path.join(folder, d)) and not d.startswith(".")), key=os.fsencode)
    found = [(os.path.join(folder, d, f), i) for i, d in enumerate(classes) for f in sorted(os.listdir(os.path.join(folder, d)))
             if f.lower().endswith((".jpg", ".jpeg", ".png"))]
    if not found:
        refuse(f"{folder} has no pictures: expected {folder}/CLASS/*.jpg, *.jpeg or *.png")
    return found, classes


def read_batch(augment, pictures, numbers, seed, epoch):
    """Runs in a process of its own. epoch < 0: without randomness."""
    rows = []
    for i in numbers:
        try:
            rows.append(augment.picture(pictures[i][0], np.random.default_rng([seed, epoch, i]) if epoch >= 0 else None))
        except Exception as error:
            return f"{pictures[i][0]}: {error}"
        if rows[-1].shape != rows[0].shape:
            return f"{pictures[i][0]} is {rows[-1].shape[0]}x{rows[-1].shape[1]} after data.augment, and others are {rows[0].shape[0]}x{rows[0].shape[1]}: put a resize into it"
    return np.stack(rows)


shared = {}  # what the processes inherit


def work(task):
    return read_batch(shared["augment"], shared[task[0]], *task[1:])


class Loader:
    """Processes that read the next batches. Make it before the framework is imported, because they are forks."""

    def __init__(self, job, ranks_here, threads):
        shared["augment"] = Augment(job.augment)
        shared["train"], self.classes = list_pictures(job.source("train"))
        folder = job.source("val")
        shared["val"], classes = list_pictures(folder) if folder else ([], self.classes)
        if classes != self.classes:
            refuse(f"data.val has the classes {', '.join(classes)}, and data.train {', '.join(self.classes)}")
        self.seed, self.ahead = job.seed, job.prefetch
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        self.pool = multiprocessing.get_context("fork").Pool(max(1, min(8, cores // ranks_here - threads)))
        self.shape = self.done(self.pool.apply_async(work, (("train", [0], 0, -1),))).shape[1:]

    def done(self, result):
        try:
            x = result.get(WAIT_S)
        except multiprocessing.TimeoutError:
            refuse(f"no batch of pictures was read within {WAIT_S} s: a process that reads them may have been killed")
        if isinstance(x, str):
            refuse(x)
        return x

    def batches(self, part, lists, epoch):
        """Yields pictures and labels of the lists of numbers."""
        waiting, labels = collections.deque(), np.array([label for _, label in shared[part]], np.int64)
        lists = iter(lists)
        while True:
            while len(waiting) <= self.ahead and (numbers := next(lists, None)) is not None:
                waiting.append((numbers, self.pool.apply_async(work, ((part, numbers, self.seed, epoch),))))
            if not waiting:
                return
            numbers, result = waiting.popleft()
            yield shared["augment"].values(self.done(result)), labels[numbers]

    def close(self):
        self.pool.terminate()


# ---- the loop ----

def share(numbers, rank, ranks):
    """The rows of a rank, and its weight in the mean over all. A rank without rows reads one, of weight 0."""
    mine = numbers[len(numbers) * rank // ranks:len(numbers) * (rank + 1) // ranks]
    return (mine, len(mine) * ranks / len(numbers)) if len(mine) else (numbers[:1], 0.0)


def epoch_batches(job, samples, batch, epoch):
    order = np.random.default_rng([job.seed, epoch]).permutation(samples)
    lists = [order[i:i + batch].tolist() for i in range(0, samples, batch)]
    return lists[:-1] if job.tail == "drop" and len(lists) > 1 and len(lists[-1]) < batch else lists


def validate(system, loader, batch):
    samples, sums = len(shared["val"]), np.zeros(3)
    if not samples:
        return {}
    mine = list(range(samples * system.rank // system.ranks, samples * (system.rank + 1) // system.ranks))
    for x, y in loader.batches("val", [mine[i:i + batch] for i in range(0, len(mine), batch)], -1):
        loss, correct = system.score(x, y)
        sums += [loss, correct, len(y)]
    loss, correct, n = system.add(sums)
    return {"val_loss": loss / n, "val_accuracy": correct / n}


class Steps:
    """The curve over steps: each point has the loss of its step, and the mean time of the steps since the point before."""

    def __init__(self):
        self.rows, self.seconds, self.since, self.n = [], 0.0, 0.0, 0

    def step(self, seconds):
        self.seconds, self.since, self.n = self.seconds + seconds, self.since + seconds, self.n + 1

    def point(self, step, loss):
        self.rows.append((step, self.seconds, loss, 1e3 * self.since / self.n))
        self.since, self.n = 0.0, 0

    def curve(self):
        each = math.ceil(len(self.rows) / CURVE_STEPS) or 1
        rows = [r for i, r in enumerate(self.rows) if (i + 1) % each == 0 or i + 1 == len(self.rows)]
        return {name: [clean(row[i]) for row in rows] for i, name in enumerate(("step", "seconds", "loss", "step_ms"))}


def clean(number):
    return number if math.isfinite(number) else None  # JSON has no NaN


def train(system, job, loader):
    """system: rank, ranks, parameters, step(x, y, weight, lr) -> loss, score(x, y) -> (sum of losses, correct ones), add(array) -> sum over ranks."""
    samples, batch = len(shared["train"]), job.batch(system.ranks)
    each = len(epoch_batches(job, samples, batch, 0))
    total, per_epoch = job.steps(each), samples if job.tail == "keep" else each * batch
    factor = schedule(job.tree["train"]["schedule"], per_epoch, batch, per_epoch * total / each)
    step, epochs, seen, steps, trained_s, trained = 0, [], 0, Steps(), 0.0, 0
    while step < total:
        epoch, begin, sums, epoch_s, epoch_n = step // each, time.perf_counter(), np.zeros(2), 0.0, 0
        lists = epoch_batches(job, samples, batch, epoch)[:total - step]
        parts = [share(numbers, system.rank, system.ranks) for numbers in lists]
        rows = loader.batches("train", [mine for mine, _ in parts], epoch)
        for (mine, weight), numbers in zip(parts, lists):
            t = time.perf_counter()
            x, y = next(rows)
            loss = system.step(x, y, weight, job.optimizer["lr"] * factor(seen))
            step, seen, epoch_n = step + 1, seen + len(numbers), epoch_n + len(numbers)
            local = np.array([loss * weight / system.ranks * len(numbers), len(numbers) / system.ranks])
            sums += local
            steps.step(time.perf_counter() - t)
            epoch_s += time.perf_counter() - t
            if step % job.every == 0 or step == total:
                steps.point(step, float(system.add(local)[0] / len(numbers)))
        trained_s, trained = trained_s + epoch_s, trained + epoch_n
        loss, n = system.add(sums)
        epochs.append({"epoch": step / each if step % each else step // each, "train_loss": loss / n, **validate(system, loader, batch),
                       "images_per_s": epoch_n / epoch_s, "seconds": time.perf_counter() - begin})
        if not math.isfinite(loss):
            refuse(f"the loss is not finite in epoch {epoch + 1}")
    return result(system, job, epochs, steps, step, trained / trained_s)


def result(system, job, epochs, steps, step, speed):
    curve = {name: [clean(float(e[name])) for e in epochs] for name in epochs[0]}
    curve["epoch_seconds"] = curve["seconds"]
    curve["seconds"] = [float(s) for s in np.cumsum(curve["seconds"])]
    last = {name: values[-1] for name, values in curve.items() if name.startswith(("train_", "val_"))}
    return {"peer": system.name, "model": job.model, "ranks": system.ranks, "seed": job.seed, "steps": step, "epochs": curve["epoch"][-1],
            "seconds": curve["seconds"][-1], "seconds_per_epoch": curve["seconds"][-1] / len(epochs), "images_per_s": speed, **last,
            "parameters": system.parameters, "peak_rss_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 3),
            "curve": curve, "step_curve": steps.curve()}
