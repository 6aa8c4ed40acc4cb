# SPDX-License-Identifier: BSD-3-Clause
"""Whole trainings, as `convoy train` runs them, and what they have written."""
import ctypes as c
import json
import pathlib
import threading
from dataclasses import dataclass

from . import _bindings as b
from ._context import alone
from ._library import library, made, text

_Progress = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(b.cvy_progress))


@dataclass
class Run:
    """A training that has ended. stopped: it was asked to stop before its end, and can be resumed."""
    out: str
    steps: int
    seconds: float
    train_loss: float
    val_loss: float
    stopped: bool

    def metrics(self):
        return metrics(self.out)

    def _repr_html_(self):
        page = pathlib.Path(self.out, "report.html")
        return page.read_text() if page.exists() else f"<p>{self.out}: {self.steps} steps, loss {self.train_loss:.5g}</p>"


def train(job, out=None, sets=None, context=None, resume=False, progress=None):
    """Trains the network of a job: a path of a YAML file, or the job as a dict.

    out: the run's folder. sets: {"train.epochs": 3}, which override the job. progress: called after a step with a dict of
    step, steps, epoch, loss, images_per_s, left_s and event. An interrupt (Ctrl-C in a notebook) ends the training after
    the current step, and it can be resumed. Collective over the context.
    """
    settings = [f"{name}={value if isinstance(value, str) else json.dumps(value)}".encode() for name, value in (sets or {}).items()]
    source = made(b.cvy_job_source, nsets=len(settings))
    source.sets = (c.c_char_p * len(settings))(*settings)
    if isinstance(job, dict):
        source.text = json.dumps(job).encode()  # JSON is YAML
    else:
        source.path = text(job)
    control = c.c_void_p()
    library.cvy_train_control_create(c.byref(control))
    faults = []

    def show(user, at):
        try:
            p = at.contents
            progress({"step": p.step, "steps": p.steps, "epoch": p.epoch, "loss": p.loss, "images_per_s": p.images_per_s,
                      "left_s": p.left_s, "event": p.event.decode() if p.event else None})
        except BaseException as fault:  # it cannot pass through C
            faults.append(fault)
            library.cvy_train_control_request(control, b.CVY_TRAIN_STOP)

    callback = _Progress(show) if progress else None
    options = made(b.cvy_train_opts, out=None if out is None else str(out), resume=int(resume), control=control)
    if callback:
        options.progress = c.cast(callback, c.c_void_p)
    result = made(b.cvy_train_result)
    try:
        status = _interruptible(control, (context or alone()).handle, source, options, result)
    finally:
        library.cvy_train_control_destroy(c.byref(control))
    if faults:
        raise faults[0]
    return Run(result.out.decode(), result.steps, result.seconds, result.train_loss, result.val_loss, status == b.CVY_STOPPED)


def _interruptible(control, context, source, options, result):
    """Python handles signals in its main thread, between instructions. So the training runs in another thread."""
    answer = []

    def work():
        try:
            answer.append(library.cvy_run_train(context, c.byref(source), c.byref(options), c.byref(result)))
        except BaseException as fault:
            answer.append(fault)

    if threading.current_thread() is not threading.main_thread():
        work()
    else:
        _wait(threading.Thread(target=work), lambda: library.cvy_train_control_request(control, b.CVY_TRAIN_STOP))
    if isinstance(answer[0], BaseException):
        raise answer[0]
    return answer[0]


def _wait(thread, interrupt):
    """Starts a thread and waits for its end, whatever interrupts come: it uses memory of the caller."""
    started = False
    while not started or thread.is_alive():
        try:
            if not started:
                started = True
                thread.start()
            thread.join(0.1)
        except KeyboardInterrupt:
            interrupt()


def metrics(run):
    """What a run has logged, a row for each line: a pandas.DataFrame if pandas is installed, else a list of dicts."""
    path = pathlib.Path(run, "metrics.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    try:
        import pandas
    except ImportError:
        return rows
    return pandas.DataFrame(rows)
