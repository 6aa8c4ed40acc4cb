# SPDX-License-Identifier: BSD-3-Clause
"""What the package for Python does with whole runs, networks and arrays; run by package.sh in an empty folder."""
import concurrent.futures
import contextlib
import io
import json
import multiprocessing
import os
import pathlib
import shutil
import signal
import threading

import numpy as np

import convoy
from convoy._described import described
from convoy._library import json_text

JOB = {"model": {"name": "lenet"}, "data": {"train": {"format": "synthetic", "shape": [1, 28, 28], "classes": 3, "samples": 64}},
       "train": {"batch": 16, "epochs": 2, "seed": 1}, "plan": {"wisdom": "off"}}


def refused(kind, words, work):
    try:
        work()
    except kind as fault:
        assert words in str(fault), f"expected '{words}' in: {fault}"
        return fault
    raise AssertionError(f"nothing was raised, expected {kind.__name__} with '{words}'")


def whole_run():
    seen = []
    run = convoy.train(JOB, out="run", sets={"train.epochs": 3}, progress=seen.append)
    assert convoy.train(JOB, out="numbers", sets={"train.epochs": np.int64(1)}).steps == 4
    assert json_text({"path": pathlib.Path("a/b"), "lr": np.float32(0.5), "shape": np.arange(2)}) == '{"path": "a/b", "lr": 0.5, "shape": [0, 1]}'
    assert run.steps == 12 and not run.stopped and seen[-1]["step"] == 12 and seen[-1]["steps"] == 12
    rows = run.metrics()
    names = set().union(*rows) if isinstance(rows, list) else set(rows.columns)
    assert len(rows) > 0 and "loss" in names, names
    assert len(run.metrics("epoch")) == 3
    refused(convoy.Error, "nonsense", lambda: convoy.train({**JOB, "nonsense": 1}, out="other"))

    def interrupt(at):
        raise ZeroDivisionError("from progress")
    refused(ZeroDivisionError, "from progress", lambda: convoy.train(JOB, out="stopped", progress=interrupt))
    resumed = convoy.train(JOB, out="stopped", resume=True)
    whole = convoy.train(JOB, out="whole")
    assert resumed.steps == whole.steps == 8
    a, b = convoy.Network("stopped"), convoy.Network("whole")
    x = np.random.default_rng(1).standard_normal((5, 1, 28, 28))
    assert np.array_equal(a(x), b(x)), "a resumed run differs from a whole one"


def interrupt():
    """An interrupt ends the training after a step, and is no exception. Other interrupts are what they were."""
    before = signal.getsignal(signal.SIGINT)
    run = convoy.train(JOB, out="long", sets={"train.epochs": 100000}, progress=lambda at: os.kill(os.getpid(), signal.SIGINT))
    assert run.stopped and run.steps < 400000 and signal.getsignal(signal.SIGINT) is before
    stopped = convoy.Run.open("long")
    assert stopped.stopped and isinstance(stopped.steps, int), stopped

    def leave(*_):
        raise ZeroDivisionError("from a handler")
    was = signal.signal(signal.SIGUSR1, leave)
    refused(ZeroDivisionError, "from a handler", lambda: convoy.train(
        JOB, out="left", sets={"train.epochs": 100000}, progress=lambda at: at["step"] == 3 and os.kill(os.getpid(), signal.SIGUSR1)))
    signal.signal(signal.SIGUSR1, was)
    assert convoy.Run.open("left").stopped, "a training goes on without its caller"
    found = []
    thread = threading.Thread(target=lambda: found.append(convoy.train(JOB, out="thread")))
    thread.start()
    thread.join()
    assert found[0].steps == 8


def shown():
    """What a notebook shows: a line of progress, and the page of a run."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        convoy.train(JOB, out="quiet")
        assert not text.getvalue()
        text.isatty = lambda: True
        run = convoy.train({**JOB, "data": {"train": JOB["data"]["train"], "test": JOB["data"]["train"]}}, out="shown")
    assert "step 8 of 8, loss " in text.getvalue() and "\nepoch" not in text.getvalue(), text.getvalue()
    assert text.getvalue().endswith("\n") and "\repoch 2" in text.getvalue(), text.getvalue()
    page = run._repr_html_()
    assert page.startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;') and page.count('"') == 4, page[:200]
    assert run.report().exists()
    again = convoy.Run.open("shown")
    assert again.steps == 8 and again.out == "shown" and again.seconds > 0
    refused(convoy.Error, "nothing/here", lambda: convoy.Run.open("nothing/here"))
    scores = again.test()
    assert scores["samples"] == 64 and scores["metrics"]["accuracy"] == 1.0, scores
    assert again.test({"format": "synthetic", "shape": [1, 28, 28], "classes": 3, "samples": 32})["samples"] == 32
    refused(convoy.Error, "", lambda: convoy.Run.open("run").test())  # its job has no data.test
    assert isinstance(again.network(batch=8), convoy.Network)


def laboratory():
    """What the command does: pages, checks, and a clear sentence if it is not there or of another version."""
    assert convoy.report("run") == pathlib.Path("run/report.html")
    assert convoy.report("run", "whole", out="both.html").read_text().startswith("<!DOCTYPE html>")
    checks = convoy.selftest(only=["versions", "clocks"])
    assert checks["failed"] == 0 and [c["name"] for c in checks["checks"]] == ["versions", "clocks"], checks
    assert convoy.selftest(only=["ranks"], ranks=7)["failed"] == 1, "a check that fails is a result"
    assert convoy.doctor(seconds=1, max="1KiB")["ranks"] == 1
    assert "lenet" in convoy.command("models")
    plan = convoy.command("plan", "run/job.resolved.yaml", sets={"train.batch": 8, "plan.wisdom": "off"}, format="table")
    assert "conv1" in plan, plan
    refused(convoy.Error, "there is no verb 'nonsense'", lambda: convoy.command("nonsense"))
    own = os.environ["CONVOY"]
    os.environ["CONVOY"] = "/nowhere/convoy"
    refused(convoy.Error, "/nowhere/convoy", lambda: convoy.report("run"))
    pathlib.Path("other").write_text("#!/bin/sh\necho convoy 0.1.7\n")
    os.chmod("other", 0o755)
    os.environ["CONVOY"] = os.path.abspath("other")
    refused(convoy.Error, "is convoy 0.1.7, and the library is", lambda: convoy.report("run"))
    pathlib.Path("other").write_text("#!/bin/sh\necho libmpi is missing >&2\nexit 127\n")
    os.environ["CONVOY"] = os.path.abspath(shutil.copy("other", "lame"))
    refused(convoy.Error, "does not start: libmpi is missing", lambda: convoy.report("run"))
    version = convoy.__version__
    pathlib.Path("other").write_text(f"#!/bin/sh\n[ $1 = --version ] && echo convoy {version} && exit\necho epoch 1 >&2\necho '{{'\nkill -9 $$\n")
    os.environ["CONVOY"] = os.path.abspath(shutil.copy("other", "killed"))
    refused(convoy.Error, "convoy report was ended by signal 9", lambda: convoy.report("run"))
    refused(convoy.Error, "convoy doctor was ended by signal 9", convoy.doctor)
    refused(convoy.Error, "nowhere/mpiexec cannot be started: No such file", lambda: convoy.doctor(launcher=["nowhere/mpiexec", "-n", "2"]))
    del os.environ["CONVOY"]
    path, os.environ["PATH"] = os.environ["PATH"], "/nowhere"
    refused(convoy.Error, "the command convoy was not found", lambda: convoy.report("run"))
    assert "the command convoy was not found" in convoy.Run("run", 12, 1.0, 0.5, 0.5)._repr_html_()
    os.environ.update(CONVOY=own, PATH=path)


class Labelled:
    """An array with the names that a DataArray of xarray or a DataFrame of pandas has."""

    def __init__(self, array, **names):
        self.array, self.shape = np.asarray(array), np.shape(array)
        for name, value in names.items():
            setattr(self, name, value)

    def __array__(self, dtype=None, copy=None):
        return self.array if dtype is None else self.array.astype(dtype)

    to_numpy = __array__


class Coordinate:
    def __init__(self, values, **attrs):
        self.values, self.attrs = np.asarray(values), attrs


def labelled():
    """What an array says of itself is compared with the training data."""
    table = np.random.default_rng(3).standard_normal((20, 3))
    pathlib.Path("table.csv").write_text("a,b,y\n" + "\n".join(",".join(map(str, row)) for row in table))
    convoy.train({"model": {"layers": [{"fc": {"channels": 1}}]}, "data": {"train": {"path": "table.csv", "y": "y"}},
                  "train": {"batch": 10, "epochs": 1, "loss": "mse"}}, out="table")
    net = convoy.Network("table")
    y = net(table[:, :2])
    assert np.array_equal(net(Labelled(table[:, :2], columns=["a", "b"])), y)
    refused(convoy.Error, 'number 0 of x is "b", but "a" in the training data', lambda: net(Labelled(table[:, 1::-1], columns=["b", "a"])))
    refused(convoy.Error, "x has 1 columns, and 2 in the training data", lambda: net(Labelled(table[:, :1], columns=["a"])))
    refused(convoy.Error, 'number 1 of x is "c", but "b"', lambda: net(Labelled(
        table[:, :2], dims=("sample", "variable"), coords={"variable": Coordinate(["a", "c"])}, attrs={})))
    field = Labelled(np.zeros((2, 3, 4)), dims=("time", "lat", "lon"), attrs={"units": "K", "scale": 2}, name="tas", coords={
        "lat": Coordinate([50, 40, 30], units="degrees_north"), "time": Coordinate(np.array(["2000-01-01", "2000-01-02"], "M8[D]"))})
    assert json.loads(described(field)) == {"described": {"y": [], "x": [{"name": "tas", "units": "K", "samples": {"name": "time", "n": 2}, "axes": [
        {"name": "lat", "n": 3, "units": "degrees_north", "at": [50, 40, 30]}, {"name": "lon", "n": 4}]}]}}
    assert described(np.zeros(3)) is None and described([1, 2]) is None


def network():
    net = convoy.Network("run")
    assert net.inputs == {"x": ("f32", (1, 28, 28))}, net.inputs
    assert len(net.classes) == 3 and net.parameters > 1000
    x = np.random.default_rng(2).standard_normal((7, 1, 28, 28)).astype(np.float32)
    y = net(x)
    assert y.shape == (7, 3) and y.dtype == np.float32 and np.isfinite(y).all()
    assert np.allclose(net(x[::2]), y[::2], rtol=1e-4, atol=1e-6), "a slice that is not contiguous"
    assert np.array_equal(net(x.transpose(0, 1, 3, 2).copy().transpose(0, 1, 3, 2)), y)
    assert net(x, dtype=np.float64).dtype == np.float64
    for dtype in (np.float16, ">f4", np.int32):  # the library writes none of them
        refused(TypeError, "expected float32 or float64", lambda: net(x, dtype=dtype))
    assert net(x[:0]).shape == (0, 3)
    assert all(kind == "logits of the classes" for kind in net.kinds.values()), net.kinds
    several = convoy.Network("run", outputs=", ".join([*net.outputs]))
    assert np.array_equal(several(x) if len(several.outputs) == 1 else next(iter(several(x).values())), y)
    refused(ValueError, "expected (7, 1, 28, 28)", lambda: net(x.reshape(7, 28, 28, 1).transpose(0, 2, 3, 1).reshape(7, 14, 56)))
    refused(convoy.Error, "x", lambda: net(x[:, :, :20]))
    refused(convoy.Error, "nothing/here", lambda: convoy.Network("nothing/here"))
    refused(TypeError, "x", lambda: net())
    refused(TypeError, "object", lambda: net(np.array(["a"], object)))
    refused(ValueError, "7 of its ", lambda: net(np.ma.masked_equal(np.where(np.arange(x.size).reshape(x.shape) < 7, -9, x), -9)))
    net(np.ma.masked_array(x, False))
    labelled()
    context = convoy.Context(threads=1)
    used = convoy.Network("run", context=context)
    context.close()
    context.close()
    refused(ValueError, "Network is closed", lambda: used(x))
    refused(ValueError, "Context is closed", lambda: context.rank)
    net.close()
    refused(ValueError, "closed", lambda: net(x))


def closing():
    """What was made last is closed first, and a model that a program still reads is not closed."""
    context, order = convoy.Context(threads=1), []
    programs = [convoy.Program(context, options={"plan.wisdom": "off"}) for _ in range(5)]
    for i, program in enumerate(programs):
        program.close = lambda i=i, close=program.close: (order.append(i), close())
    context.close()
    assert order == [4, 3, 2, 1, 0], order
    alone = convoy.alone()
    alone.close()
    assert convoy.alone() is not alone and convoy.alone().nranks == 1
    model, program = convoy.Model.zoo("lenet", (1, 28, 28), 10), convoy.Program()
    program.forward(model, 2)
    refused(ValueError, "a Program that is not planned yet", model.close)
    program.close()
    model.close()
    refused(ValueError, "Model is closed", lambda: model.add("relu"))


def loop():
    model = convoy.Model("line")
    model.input("x", (2,))
    model.input("y", (1,))
    model.add("fc", "fc", source="x", channels=1)
    model.add("mse", "loss", source="fc, y")
    program = convoy.Program(seed=3, dtype="f64", options={"plan.wisdom": "off"})
    train = program.training(model, 32, optimizer="sgd", optimizer_options="momentum: 0.9")
    apply = program.forward(model, 4, outputs="fc")
    refused(convoy.Error, "", lambda: train.step(0.1))
    program.plan()
    x = np.random.default_rng(3).standard_normal((32, 2))
    y = x @ [[2.0], [-3.0]] + 0.5
    for _ in range(300):
        train.step(0.05, x=x, y=y)
    assert train.loss() < 1e-12
    assert np.allclose(program["fc.weight"], [[2, -3]]) and np.allclose(program["fc.bias"], [0.5])
    program["fc.bias"] = [1.5]
    apply.step(x=np.eye(4, 2, dtype=np.float16))
    assert np.allclose(apply.output("fc", np.float64).ravel(), [3.5, -1.5, 1.5, 1.5])
    for dtype in (np.float16, ">f4", np.int64):
        refused(TypeError, "expected float32 or float64", lambda: apply.output("fc", dtype))
    program.save("line.safetensors")
    program["fc.weight"] = np.zeros((1, 2))
    program.load("line.safetensors")
    assert np.allclose(program["fc.weight"], [[2, -3]])
    refused(KeyError, "fc.wait", lambda: program["fc.wait"])
    refused(ValueError, "(1, 2)", lambda: program.__setitem__("fc.weight", np.zeros((2, 1))))
    refused(ValueError, "expected (32, 2)", lambda: train.write(x=x.T))
    refused(convoy.Error, "no input", lambda: train.write(z=x))
    refused(ValueError, "expected (32, 2)", lambda: train.write(x=x[:31]))
    masked = np.ma.array(np.ones((1, 2), np.float32), mask=[[True, False]])
    refused(ValueError, "fc.weight is a masked array, and 1 of its 2", lambda: program.__setitem__("fc.weight", masked))
    refused(TypeError, "optimiser", lambda: program.training(model, 32, optimiser="adam"))
    wide = convoy.Program(options={"train.dtype": "f64", "train.precise": True, "plan.wisdom": "off"})
    wide.forward(convoy.Model.zoo("lenet", (1, 28, 28), 10), 2) # the program keeps the model
    wide.plan()
    assert wide["fc2.bias"].dtype == np.float64 if "fc2.bias" in wide.variables() else wide.variables()
    wide.close()
    refused(ValueError, "Program is closed", lambda: wide.variables())
    refused(convoy.Error, "plan.plannig", lambda: convoy.Program(options={"plan.plannig": "x"}))


def generator():
    """A task is trained with the batches of a generator."""
    model = convoy.Model("line")
    model.input("x", (2,))
    model.input("y", (1,))
    model.add("fc", "fc", source="x", channels=1)
    model.add("mse", "loss", source="fc, y")
    weights, losses = [], []
    for by_hand in (True, False):
        program = convoy.Program(seed=3, options={"plan.wisdom": "off"})
        train = program.training(model, 16, optimizer="sgd")
        program.plan()

        def batches(n, random):
            for _ in range(n):
                x = random.standard_normal((16, 2))
                yield {"x": x, "y": x @ [[2.0], [-3.0]]}
        random = np.random.default_rng(7)
        if by_hand:
            losses.append([])
            for i, batch in enumerate(batches(20, random)):
                train.step(0.1 / (1 + i), **batch)
                losses[0].append(train.loss())
        else:
            losses.append(train.fit(batches(20, random), lambda i: 0.1 / (1 + i)))
        weights.append(program["fc.weight"])
    assert np.array_equal(weights[0], weights[1]) and losses[0] == losses[1] and len(losses[1]) == 20
    assert train.fit([], 0.1) == []
    refused(convoy.Error, "no input", lambda: train.fit([{"z": x} for x in (1.0,)], 0.1))


def reservoir():
    model = convoy.Model("stream")
    model.input("x", (2,))
    model.input("y", (1,))
    model.add("fc", "fc", source="x", channels=1)
    model.add("mse", "loss", source="fc, y")
    program = convoy.Program(seed=3, options={"plan.wisdom": "off"})
    train = program.training(model, 16, optimizer="adam")
    program.plan()
    kept, again = convoy.Reservoir(50, seed=2), convoy.Reservoir(50, seed=2)
    for r in (kept, again):
        r.field("x", (2,))
        r.field("y", (1,))
    refused(convoy.Error, "empty", lambda: kept.draw(train))
    random = np.random.default_rng(5)
    for _ in range(200):
        x = random.standard_normal((7, 2))
        kept.push(x=x, y=x @ [[2.0], [-3.0]])
        kept.draw(train)
        train.step(0.05)
    assert len(kept) == 50 and kept.seen == 1400 and train.loss() < 1e-2, train.loss()
    again.load(kept.save())
    assert len(again) == 50 and again.seen == 1400 and again.save() == kept.save()
    refused(TypeError, "no fields yet", lambda: convoy.Reservoir(5).push(z=x))
    refused(TypeError, "the fields are x, y; given are z", lambda: kept.push(z=x))
    refused(TypeError, "given are x", lambda: kept.push(x=x))
    refused(ValueError, "x has the shape (2, 7), expected (7, 2)", lambda: kept.push(x=x.T, y=x[:, :1]))
    refused(convoy.Error, "damaged", lambda: again.load(kept.save()[:-1] + b"?"))


def stream():
    """One rank that is solver and trainer; the training goes on from a checkpoint to the same weights."""
    model = convoy.Model("stream")
    model.input("x", (2,))
    model.input("y", (1,))
    model.add("fc", "fc", source="x", channels=1)
    model.add("mse", "loss", source="fc, y")

    def start():
        program = convoy.Program(seed=3, options={"plan.wisdom": "off"})
        train = program.training(model, 16, optimizer="adam")
        program.plan()
        reservoir = convoy.Reservoir(64, keep="loss", seed=2)
        reservoir.field("x", (2,))
        reservoir.field("y", (1,))
        return program, train, reservoir, convoy.Stream(convoy.alone(), "both", reservoir=reservoir, program=program)

    program, train, reservoir, samples = start()
    random = np.random.default_rng(5)
    for i in range(100):
        x = random.standard_normal((7, 2))
        assert samples.push(x=x, y=x @ [[2.0], [-3.0]]) and samples.receive()
        reservoir.draw(train)
        train.step(0.05)
        reservoir.losses(np.full(16, train.loss()))
        samples.publish()
        assert samples.take() == i + 1
        if i == 49:
            program.write_checkpoint("stream-checkpoints", 50, state="halfway")
            kept = reservoir.save()
    assert train.loss() < 1e-2 and samples.flush(1), train.loss()
    counts = samples.counts()
    assert counts["pushed"] == counts["received"] == reservoir.seen == 700 and counts["dropped"] == 0, counts
    refused(convoy.Error, "losses", lambda: reservoir.losses([1.0]))
    refused(TypeError, "the fields are x, y; given are x", lambda: samples.push(x=x))
    refused(convoy.Error, "opts.role is 'teacher'", lambda: convoy.Stream(convoy.alone(), "teacher"))
    again, train2, reservoir2, samples2 = start()
    assert again.read_checkpoint("nowhere") is None
    assert again.read_checkpoint("stream-checkpoints") == (50, "halfway")
    reservoir2.load(kept)
    random = np.random.default_rng(5)
    for i in range(100):
        x = random.standard_normal((7, 2))
        if i > 49:
            reservoir2.push(x=x, y=x @ [[2.0], [-3.0]])
            reservoir2.draw(train2)
            train2.step(0.05)
            reservoir2.losses(np.full(16, train2.loss()))
    assert (again["fc.weight"] == program["fc.weight"]).all()
    program.close()  # the stream takes its weights
    refused(ValueError, "Stream is closed", samples.receive)
    reservoir2.close()
    refused(ValueError, "Stream is closed", samples2.receive)


def other_thread():
    """A fault in another thread has that thread's text."""
    found = []
    thread = threading.Thread(target=lambda: found.append(refused(convoy.Error, "elsewhere", lambda: convoy.Network("elsewhere"))))
    thread.start()
    thread.join()
    assert len(found) == 1


def in_a_fork():
    """A forked process is told that it cannot work, by an exception that reaches the caller, and its parent goes on."""
    def line():
        model = convoy.Model("line")
        model.input("x", (2,))
        model.input("y", (1,))
        model.add("fc", "fc", source="x", channels=1)
        model.add("mse", "loss", source="fc, y")
        program = convoy.Program(convoy.Context(threads=2), seed=3)
        task = program.training(model, batch=4, optimizer="sgd")
        program.plan()
        return program, task

    def step(task):
        task.step(0.01, x=np.ones((4, 2)), y=np.zeros((4, 1)))
        return task.loss()

    def predict():
        return network(np.zeros((1, 1, 28, 28)))

    network, (program, task), forks = convoy.Network("run"), line(), multiprocessing.get_context("fork")
    losses, words = [step(task)], f"forked from process {os.getpid()} "
    for work in (predict, line, lambda: step(task), lambda: convoy.train(JOB, out="child"), lambda: convoy.Network("run"), convoy.Context,
                 lambda: convoy.Reservoir(4)):
        globals()["_work"] = work  # the child finds it by this name
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=forks) as pool:
            fault = refused(convoy.Error, words, lambda: pool.submit(_call).result(60))
            assert fault.status == convoy.Error(-8, "").status and "spawn" in str(fault)
    assert not os.path.exists("child")
    child = os.fork()
    if child == 0:  # it leaves as a program does: what it has copied is closed, and harms nothing of its parent
        try:
            assert program.context.threads == 2
            task.program.close()
            network.close()
        except BaseException:
            os._exit(1)
        raise SystemExit(0)
    assert os.waitpid(child, 0)[1] == 0
    losses.append(step(task))
    assert losses[1] < losses[0] and predict().shape == (1, 3)


def _call():
    return _work()


for test in (whole_run, interrupt, shown, laboratory, network, closing, loop, generator, reservoir, stream, other_thread, in_a_fork):
    test()
    print("ok", test.__name__)
