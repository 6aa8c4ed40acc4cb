# SPDX-License-Identifier: BSD-3-Clause
"""Whole trainings, as `convoy train` runs them, and what they have written."""
from __future__ import annotations

import ctypes as c
import html
import json
import math
import os
import pathlib
import signal
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Mapping

from . import _bindings as b
from ._command import command, report
from ._context import Context, of_job
from ._library import Error, json_text, library, made, text

if TYPE_CHECKING:
    import pandas

    from ._network import Network

_Progress = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(b.cvy_progress))


@dataclass
class Run:
    """A training that has ended. In a notebook its value is shown as the run's page.

    out: its folder. seconds: of the training with its validation. stopped: it was asked to stop before its end, and can be
    resumed.
    """
    out: str
    steps: int
    seconds: float
    train_loss: float
    val_loss: float
    stopped: bool = False

    @classmethod
    def open(cls, folder: str | os.PathLike) -> Run:
        """A run of an earlier program, or of `convoy train`."""
        about = command("report", folder, json=True)
        numbers = (math.nan if about.get(name) is None else about[name] for name in ("seconds", "train_loss", "val_loss"))
        how = pathlib.Path(folder, "STATUS")
        how = how.read_text(encoding="utf-8").split() if how.exists() else []  # "stopped step 134 of 2000 at .."
        steps = about.get("steps") or (int(how[2]) if how[1:2] == ["step"] else 0)
        return cls(str(folder), steps, *numbers, stopped=how[:1] == ["stopped"])

    def metrics(self, kind: str | None = None) -> pandas.DataFrame | list[dict]:
        """What was logged. kind: "step" or "epoch"; None: all."""
        return metrics(self.out, kind)

    def network(self, **options: Any) -> Network:
        """The trained network; options: those of convoy.Network."""
        from ._network import Network
        return Network(self.out, **options)

    def test(self, data: str | os.PathLike | dict | None = None, context: Context | None = None) -> dict[str, Any]:
        """Scores the network on labelled data, as `convoy test`: "samples", "loss", "metrics", and of classes "confusion" and
        "roc" with lists "fpr" and "tpr". data: a path or a data source; None: the job's data.test. Collective over the
        context, which is chosen as by train(); the result is on rank 0, and empty on others."""
        source = json_text(data) if isinstance(data, dict) else data
        result = made(b.cvy_test_result)
        library.cvy_run_test((context or of_job()).handle, self.out.encode(), None, text(source), c.byref(result))
        try:
            return json.loads(result.json) if result.json else {}
        finally:
            library.cvy_test_result_release(c.byref(result))

    def report(self) -> pathlib.Path:
        """Writes the run's page, and returns its path."""
        return report(self.out)

    def _repr_html_(self) -> str:
        try:
            page = html.escape(self.report().read_text(encoding="utf-8"))
        except Error as fault:  # a notebook shows this value although the command is missing
            return f"<p>{html.escape(repr(self))}: {html.escape(str(fault))}</p>"
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 40em; border: 0"></iframe>'


class _Line:
    """Progress as a line of text that is written again, a few times in a second."""

    def __init__(self):
        self.shown, self.width = -math.inf, 0

    @staticmethod
    def is_wanted() -> bool:
        """Whether standard output is a terminal or a notebook."""
        return sys.stdout is not None and (sys.stdout.isatty() or type(sys.stdout).__module__.startswith("ipykernel"))

    def __call__(self, at: dict) -> None:
        if at["event"]:
            self._write(at["event"], "\n")
        elif time.monotonic() > self.shown + 0.2 or at["step"] == at["steps"]:
            self.shown = time.monotonic()
            rate = "" if math.isnan(at["images_per_s"]) else f", {at['images_per_s']:.0f} samples/s"
            self._write(f"step {at['step']} of {at['steps']}, loss {at['loss']:.4g}{rate}, {at['left_s']:.0f} s left")

    def _write(self, words: str, end: str = "") -> None:
        print("\r" + words.ljust(self.width), end=end, flush=True)
        self.width = 0 if end else len(words)

    def end(self) -> None:
        if self.width:
            print(flush=True)


def train(job: str | os.PathLike | dict, out: str | os.PathLike | None = None, sets: Mapping[str, Any] | None = None,
          context: Context | None = None, resume: bool = False, progress: Callable[[dict], Any] | bool | None = None) -> Run:
    """Trains the network of a job: a path of a YAML file, or the job as a dict.

    out: the run's folder. sets: {"train.epochs": 3}, which override the job. progress: a function that rank 0 calls after a
    step with a dict of step, steps, epoch, loss, images_per_s, left_s and event; or whether a line of text shows them; by
    default it does so in a terminal and in a notebook. An interrupt (Ctrl-C, or *stop* in a notebook) ends the training
    after the current step, and it can be resumed. context: by default all ranks that a launcher has started, or this process
    alone. Collective over the context.
    """
    line = None
    if progress is True or (progress is None and _Line.is_wanted()):
        progress = line = _Line()
    settings = [f"{name}={value if isinstance(value, str) else json_text(value)}".encode() for name, value in (sets or {}).items()]
    source = made(b.cvy_job_source, nsets=len(settings))
    source.sets = (c.c_char_p * len(settings))(*settings)
    if isinstance(job, dict):
        source.text = json_text(job).encode()  # JSON is YAML
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
        status = _interruptible(control, (context or of_job()).handle, source, options, result)
    finally:
        library.cvy_train_control_destroy(c.byref(control))
        if line:
            line.end()
    if faults:
        raise faults[0]
    return Run(result.out.decode(), result.steps, result.seconds, result.train_loss, result.val_loss, status == b.CVY_STOPPED)


def _interruptible(control, context, source, options, result):
    """Python handles signals in its main thread, between instructions. So the training runs in another thread, and an
    interrupt asks it to stop. The thread uses memory of the caller, who must wait for it even if a handler of the program
    raises an exception."""
    answer, is_running = [], threading.Lock()

    def stop(*_):
        library.cvy_train_control_request(control, b.CVY_TRAIN_STOP)

    def join():  # an exception in Thread.join() would leave a thread that is said to have ended
        try:
            while not answer:
                is_running.acquire(timeout=0.1)
        except BaseException:
            stop()
            join()
            raise

    def work():
        try:
            answer.append(library.cvy_run_train(context, c.byref(source), c.byref(options), c.byref(result)))
        except BaseException as fault:
            answer.append(fault)
        is_running.release()

    is_running.acquire()
    if threading.current_thread() is not threading.main_thread():
        work()
    else:
        thread, handler = threading.Thread(target=work), signal.getsignal(signal.SIGINT)
        try:
            if callable(handler):
                signal.signal(signal.SIGINT, stop)
            thread.start()
            join()
        finally:
            if callable(handler):
                signal.signal(signal.SIGINT, handler)
    if isinstance(answer[0], BaseException):
        raise answer[0]
    return answer[0]


def metrics(run: str | os.PathLike, kind: str | None = None) -> pandas.DataFrame | list[dict]:
    """What a run has logged, a row for each line: a pandas.DataFrame if pandas is installed, else a list of dicts. kind:
    "step" or "epoch"; None: all lines."""
    path = pathlib.Path(run, "metrics.jsonl")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    rows = [row for row in rows if kind in (None, row["kind"])]
    try:
        import pandas
    except ImportError:
        return rows
    return pandas.DataFrame(rows)
