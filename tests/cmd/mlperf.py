# SPDX-License-Identifier: BSD-3-Clause
"""Checks a log of MLPerf: mlperf.py LOG [KEY=JSON ...]

Each line has the members of the package mllog in their order; times never fall; required keys are there as often as the
rules of MLPerf HPC want them, and in their order; each epoch and validation that begins also ends, unless the run was
aborted within it. KEY=JSON: the only line of this key has this value. Prints the lines without their times.
"""
import json
import sys

MEMBERS = ["namespace", "time_ms", "event_type", "key", "value", "metadata"]
ONCE = ["submission_org", "submission_platform", "submission_division", "submission_status", "submission_benchmark",
        "init_start", "init_stop", "run_start", "run_stop", "train_samples", "eval_samples", "global_batch_size", "seed",
        "opt_name", "opt_base_learning_rate", "number_of_nodes", "accelerators_per_node", "cache_clear"]
DEEPCAM = ["gradient_accumulation_frequency", "num_workers", "batchnorm_group_size", "opt_lr", "opt_betas", "opt_eps",
           "scheduler_type", "scheduler_lr_warmup_steps", "scheduler_lr_warmup_factor"]
KINDS = {"start": "INTERVAL_START", "stop": "INTERVAL_END"}
faults = []


def check(is_right, text):
    if not is_right:
        faults.append(text)


def read(path):
    lines = []
    for number, text in enumerate(open(path, encoding="utf-8"), 1):
        check(text.startswith(":::MLLOG ") and text.endswith("\n"), f"line {number} is not a line of mllog: {text!r}")
        line = json.loads(text[len(":::MLLOG "):])
        check(list(line) == MEMBERS, f"line {number} has the members {list(line)}")
        check(isinstance(line["time_ms"], int) and isinstance(line["metadata"], dict), f"line {number}: {line}")
        lines.append(line)
    return lines


def check_pairs(keys, lines, is_aborted):
    """Epochs do not overlap, validations are within them, and the numbers of epochs rise by one."""
    is_open = {"epoch": False, "eval": False}
    epoch = 0
    for key, line in zip(keys, lines):
        what, _, edge = key.rpartition("_")
        if what not in is_open or edge not in KINDS:
            continue
        begins, number = edge == "start", line["metadata"].get("epoch_num")
        check(is_open[what] != begins, f"{key} in epoch {number}, but it is {'open' if begins else 'not open'}")
        check(what == "epoch" or is_open["epoch"], f"{key} is outside of an epoch")
        epoch += what == "epoch" and begins
        check(number == epoch, f"{key} has epoch_num {number}, expected {epoch}")
        is_open[what] = begins
    check(is_aborted or not any(is_open.values()), f"not all ends: {is_open}")


def main(path, *wanted):
    lines = read(path)
    keys = [line["key"] for line in lines]
    value = {line["key"]: line["value"] for line in lines}
    once = ONCE + (DEEPCAM if value.get("submission_benchmark") == "deepcam" else [])
    for key in once:
        check(keys.count(key) == 1, f"{key} is there {keys.count(key)} times")
    times = [line["time_ms"] for line in lines if line["key"] not in value or not line["key"].startswith(("init", "run_start"))]
    check(times == sorted(times), "times fall")
    at = {key: lines[keys.index(key)]["time_ms"] for key in ("init_start", "init_stop", "run_start", "run_stop")}
    check(at["init_start"] <= at["init_stop"] <= at["run_start"] <= at["run_stop"], f"times of the run: {at}")
    order = [keys.index(key) for key in ("init_start", "init_stop", "run_start", "epoch_start", "run_stop")]
    check(order == sorted(order) and keys[-1] == "run_stop", f"order of the run: {keys}")
    for line in lines:
        edge = line["key"].rpartition("_")[2]
        check(line["event_type"] == KINDS.get(edge, "POINT_IN_TIME"), f"event_type of {line}")
    status = lines[-1]["metadata"].get("status")
    check(status in ("success", "aborted"), f"status {status}")
    check_pairs(keys, lines, status == "aborted")
    check(any(key in ("eval_accuracy", "eval_error") for key in keys) or status == "aborted", "there is no score")
    for text in wanted:
        key, _, expected = text.partition("=")
        check(keys.count(key) == 1 and value[key] == json.loads(expected), f"{key} is {value.get(key)}, expected {expected}")
    for line in lines:
        print(line["key"], json.dumps(line["value"]), json.dumps(line["metadata"]))
    for fault in faults:
        print(f"{path}: {fault}", file=sys.stderr)
    sys.exit(len(faults) > 0)


main(*sys.argv[1:])
