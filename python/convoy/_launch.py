# SPDX-License-Identifier: BSD-3-Clause
"""How this process was started: whether the variables of a launcher are meant for it. Its shell, or a program that a
rank has started, passes them on. The command has the same rule in cmd/convoy/cmd_launch.c."""
from __future__ import annotations

import os
import warnings

_SIZES = ("OMPI_COMM_WORLD_SIZE", "JSM_NAMESPACE_SIZE", "MV2_COMM_WORLD_SIZE", "MVP_COMM_WORLD_SIZE", "FLUX_JOB_SIZE", "PMI_SIZE",
          "SLURM_STEP_NUM_TASKS")
_LAUNCHERS = ("mpiexec", "mpirun", "orterun", "orted", "prte", "hydra_", "pmi_pro", "mpispaw", "slurmste", "srun", "palsd", "apinit",
              "aprun", "jsmd", "jsrun", "flux-s", "psilog", "psid")
_SHELLS = ("sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "csh", "tcsh", "fish", "busybox")
_FOR_TASKS = ("SLURM_STEP", "PMI_", "PMI2_", "PMIX_", "OMPI_COMM_WORLD_", "HYDI_", "PALS_", "OMPI_MCA_orte_", "PRTE_",
              "OMPI_MCA_ess_base_", "FLUX_TASK", "MPI_LOCAL", "OMPI_MCA_pmix=", "OMPI_MCA_ess=")  # begins of NAME=
_ALL_PROCESSES = "pid:[4026531836]"  # the name space that hides no process, of PROC_PID_INIT_INO of Linux


def _variable() -> str:
    """A variable that tells of several ranks, as "NAME=4"; "" without one."""
    for name in _SIZES:
        value = os.environ.get(name, "")
        if value.isdigit() and int(value) > 1:
            return f"{name}={value}"
    return ""


def _process(pid: int) -> tuple[str, str, int, int]:
    """Name, file, parent and process group. The file is "" if the system does not tell it."""
    with open(f"/proc/{pid}/stat", errors="replace") as file:
        head, _, tail = file.read().rpartition(")")
    try:
        program = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        program = ""
    _, parent, group = tail.split()[:3]
    return head.partition("(")[2], program, int(parent), int(group)


def _has_mpi(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/maps", errors="replace") as maps:
            return "/libmpi" in maps.read()
    except OSError:
        return False


def _has_commands(pid: int) -> bool:
    """Whether a shell was given its commands as arguments: a script, or -c. One at which somebody types has options alone."""
    try:
        with open(f"/proc/{pid}/cmdline", errors="replace") as file:
            words = file.read().split("\0")[:-1]
    except OSError:
        return False
    for before, word in zip(words, words[1:]):
        is_value = before in ("--rcfile", "--init-file", "-o", "+o", "-O", "+O")
        if not is_value and (not word.startswith(("-", "+")) or (not word.startswith("--") and "c" in word)):
            return True
    return False


def _stranger() -> str:
    """Who has passed the variables of a launcher on to this process, which is none of its tasks; "" if it may be one.
    An interactive shell puts each of its commands into a process group of its own, a script does so after `set -m` alone.
    Slurm calls the script of a batch job "slurm_script"; its variables of a step are those of the shell that submitted it."""
    group, program, pid, below = os.getpgrp(), "", os.getppid(), ""
    try:
        while pid > 0:
            name, here, parent, its_group = _process(pid)
            if name.startswith(_LAUNCHERS):
                return "the script of a batch job has started this process" if below == "slurm_script" else ""
            if here in _SHELLS and its_group != group and program != "timeout" and not _has_commands(pid):
                return f"the interactive shell {name} has started this process"
            if here not in _SHELLS and _has_mpi(pid):
                return f"the MPI program {name} has started this process"
            group, program, pid, below = its_group, here, parent, name
        sees_all = os.readlink("/proc/self/ns/pid") == _ALL_PROCESSES
    except OSError:
        return ""
    return "no launcher is among the processes above this one" if sees_all else ""


def _warn(variable: str, stranger: str) -> None:
    warnings.warn(f"{variable} is in the environment, but {stranger}: it works alone; start it by mpiexec or srun for several ranks, and "
                  f"unset {variable.partition('=')[0]} if it is left over", stacklevel=5)


def is_launched() -> bool:
    """Whether a launcher has started this process as one of several ranks."""
    variable = _variable()
    stranger = variable and _stranger()
    if stranger:
        _warn(variable, stranger)
    return bool(variable) and not stranger


def environment() -> dict[str, str]:
    """The environment of a command that this process starts, which is no task of the launcher."""
    return {name: value for name, value in os.environ.items() if not f"{name}=".startswith(_FOR_TASKS)}


def forget() -> None:
    """Removes what would make an MPI library take this process for a task of the launcher, if it is none for certain: Open MPI would
    end it in the shell of `srun --pty`. Of one task without PMI, only Slurm's step is removed."""
    names = [name for name in os.environ if f"{name}=".startswith(_FOR_TASKS)]
    variable, stranger = _variable(), names and _stranger()
    is_lone = not variable and "PMI_RANK" not in os.environ and "PMIX_RANK" not in os.environ
    if stranger and variable:
        _warn(variable, stranger)
    for name in names:
        if stranger or (is_lone and name.startswith(_FOR_TASKS[0])):
            del os.environ[name]
