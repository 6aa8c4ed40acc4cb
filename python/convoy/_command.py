# SPDX-License-Identifier: BSD-3-Clause
"""The command `convoy`: what it does beyond training - pages, checks, searches, studies - for programs in Python.

The command is the file that CONVOY names, the one in this package, or the one on PATH. Each function
starts it, waits, and returns what it has found. A message of the command becomes an Error.
"""
from __future__ import annotations

import contextlib
import functools
import json
import os
import pathlib
import signal
from typing import Any, Mapping, Sequence

from . import _bindings as b
from . import _launch
from ._library import Error, json_text, library

_OWN = pathlib.Path(__file__).parent / "bin/convoy"


@functools.lru_cache(maxsize=None)
def _version_of(path: str) -> tuple[str, ...]:
    """The parts of the version that a command prints: "convoy 0.3.0"."""
    import subprocess  # here, so that `import convoy` does not wait for it
    try:
        done = subprocess.run([path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              env=_launch.environment())
    except OSError as fault:
        raise Error(b.CVY_E_IO, f"the command {path} cannot be started: {fault.strerror}") from fault
    said = done.stdout.split()
    if said[:1] != ["convoy"] or len(said) != 2:
        why = done.stderr.strip() or f"`{path} --version` prints no version of convoy"
        raise Error(b.CVY_E_UNSUPPORTED, f"the command {path} is not convoy, or does not start: {why}")
    return tuple(said[1].split("."))


def _find() -> str:
    """The command, which must be of the library's version."""
    import shutil
    path = os.environ.get("CONVOY") or (str(_OWN) if _OWN.exists() else shutil.which("convoy"))
    if not path:
        raise Error(b.CVY_E_UNSUPPORTED, "the command convoy was not found: it is neither in this package nor on PATH. Install it with "
                                         "the library, or set CONVOY to its file.")
    wanted = library.cvy_version().decode()
    if _version_of(path)[:2] != tuple(wanted.split("."))[:2]:
        raise Error(b.CVY_E_UNSUPPORTED, f"{path} is convoy {'.'.join(_version_of(path))}, and the library is "
                                         f"{wanted}. Install both from the same sources, or set CONVOY to another file.")
    return path


def _words(options: Mapping[str, Any]) -> list[str]:
    """{"sets": {"train.batch": 8}, "batch": [32, 64], "quick": True} as "--set train.batch=8 --batch 32,64 --quick"."""
    out = []
    for name, value in options.items():
        word = "--" + name.replace("_", "-")
        if isinstance(value, Mapping):
            for key, part in value.items():
                out += [word[:-1] if name == "sets" else word, f"{key}={part if isinstance(part, str) else json_text(part)}"]
        elif value is True:
            out.append(word)
        elif value is not None and value is not False:
            out += [word, ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)]
    return out


def _fault(verb: str, code: int, said: str) -> Error:
    """What the command has said, without its name."""
    if code < 0:
        return Error(b.CVY_E_INTERNAL, f"convoy {verb} was ended by signal {-code} ({signal.strsignal(-code)})")
    mark = "convoy: error: "
    lines = said.strip().splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith(mark)), len(lines) - 1 if lines else 0)
    text = "\n".join(lines[first:]).removeprefix(mark)
    return Error(b.CVY_E_ARGUMENT if code == 2 else b.CVY_E_INTERNAL, text or f"convoy {verb} has ended with the exit code {code}")


def command(verb: str, *words: Any, launcher: Sequence[str] = (), **options: Any) -> Any:
    """Starts `convoy VERB` and returns what it prints: with json=True as dicts and lists, otherwise as a text.

        convoy.command("plan", "job.yaml", ranks=8, memory="16G")      # convoy plan job.yaml --ranks 8 --memory 16G
        convoy.command("bench", model="resnet-20", sets={"train.batch": 64}, json=True)

    launcher: words before the command, ["mpiexec", "-n", "4"]. options: those of the verb, with _ in place of -; True for
    one without a value, a list for one with commas, a dict for `--set` (sets) and others that are given several times.
    """
    import subprocess
    given = [*map(str, launcher), _find(), verb, *map(str, words), *_words(options)]
    environment = os.environ if launcher else _launch.environment()
    try:
        done = subprocess.run(given, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", env=environment)
    except OSError as fault:
        raise Error(b.CVY_E_IO, f"{given[0]} cannot be started: {fault.strerror}") from fault
    if options.get("json") is True:
        with contextlib.suppress(ValueError):
            return json.loads(done.stdout)  # also of checks that have failed: they are a result
    elif done.returncode == 0:
        return done.stdout
    raise _fault(verb, done.returncode, done.stderr)


def report(*folders: str | os.PathLike, out: str | os.PathLike | None = None) -> pathlib.Path:
    """Writes the page of a run, a sweep, an ensemble or a study; or one page that compares runs or two studies. Returns its
    path. out: the page of several, comparison.html if not given."""
    if len(folders) != 1:
        page = pathlib.Path(out or "comparison.html")
        command("report", *folders, out=page)
        return page
    command("report", *folders, out=out)
    folder = pathlib.Path(folders[0])
    pages = {"study.yaml": "report.html", "sweep.json": "sweep.html", "ensemble.json": "ensemble.html"}
    return folder / next((page for file, page in pages.items() if (folder / file).exists()), "report.html")


def doctor(job: str | os.PathLike | None = None, launcher: Sequence[str] = (), **options: Any) -> dict[str, Any]:
    """What `convoy doctor` finds about nodes, files, clocks and network; of a job, also whether it can be trained."""
    return command("doctor", *([] if job is None else [job]), launcher=launcher, json=True, **options)


def selftest(launcher: Sequence[str] = (), **options: Any) -> dict[str, Any]:
    """The checks of `convoy selftest`: "passed", "failed", "skipped", and "checks" with a verdict and a text for each."""
    return command("selftest", launcher=launcher, json=True, **options)


def tune(network: str | os.PathLike, **options: Any) -> dict[str, Any]:
    """The fastest ranks, threads, batch and communication for this machine, as `convoy tune` measures them."""
    return command("tune", network, json=True, **options)


def study(name: str | os.PathLike, out: str | os.PathLike, **options: Any) -> list[dict[str, Any]]:
    """Measures what a study declares, as `convoy study`, into the folder `out`, with a report. Returns its results, one for
    each measurement. The same call after an interruption makes only those that are missing."""
    command("study", name, out=out, quiet=True, **options)
    with open(pathlib.Path(out, "results.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def sweep(file: str | os.PathLike, out: str | os.PathLike, launcher: Sequence[str] = (), **options: Any) -> dict[str, Any]:
    """Searches the best values of a job's keys, as `convoy sweep`, into the folder `out`. Returns its sweep.json: all trials
    with their scores."""
    command("sweep", file, launcher=launcher, out=out, quiet=True, **options)
    return json.loads(pathlib.Path(out, "sweep.json").read_text(encoding="utf-8"))
