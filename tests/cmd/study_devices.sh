#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# seconds: 15
# study_devices.sh: the axis `device` of a study: convoy is measured on the host and on a GPU (the emulated one), a framework
# that knows no device on the host alone; a device that is not here is named once; the page sets the GPU beside published
# figures of GPUs, or says that these are published only. `convoy bench` tells what a step takes of the device's memory.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
mkdir adapters
cp "$CONVOY_SOURCE/frameworks/convoy.yaml" adapters
echo 'echo "{\"images_per_s\": 7}"' >peer.sh
cat >adapters/peer.yaml <<'Y'
command: [sh, peer.sh]
ignores: [model, batch, threads]
version: [echo, peer 1]
Y
cat >study.yaml <<'Y'
title: Devices
published: tacc
experiments:
  devices:
    model: lenet
    batch: 2
    threads: 1
    device: [host, emulated, "emulated:9"]
    framework: [convoy, peer]
    repeats: 1
    seconds: 1
figures:
- {title: Speed, of: devices, x: batch, lines: device, panels: framework}
Y
study() { timeout 200 "$CONVOY_EMULATED" study "$1.yaml" --out "$1" --frameworks-folder adapters >log 2>err || { fail "$1: code $?:"; cat log err; }; }
study study
contains log 'done: 6 measurements: 3 now, 0 before, 0 failed, 3 left out' || { fail "the end:"; cat log; }
contains log 'peer: left out: peer cannot be told device, which is emulated here' || { fail "the framework without devices:"; cat log; }
[ "$(grep -c '^device emulated:9 is left out, because it is not here: `convoy info` does not list it$' log)" = 1 ] || { fail "a device that is not here:"; cat log; }
grep -q '"device": "emulated".*--device", "emulated".*"device": "emulated:0 .*"device_peak_bytes": [1-9]' study/results.jsonl || { fail "no result of the device:"; cat study/results.jsonl; }
! grep -q '"device": "host".*device_peak_bytes' study/results.jsonl || fail "the host has memory of a device"
grep -q '<td>knl over k40</td>.* times the host</td></tr>' study/report.html || fail "the GPU is not beside the published ones"
sed 's/device: \[.*/device: host/' study.yaml >published.yaml
study published
grep -q '<td>knl over k40</td>.*<td>published only</td></tr>' published/report.html || fail "nothing was measured on a GPU, and the page does not say so"
grep -q '<td>stampede2-knl</td>.*<td></td></tr>' published/report.html || fail "a figure of no GPU has a column for GPUs"
exit $failed
