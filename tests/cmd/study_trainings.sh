#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan
# study_trainings.sh: figures of whole trainings over epochs and over steps; `convoy keys JOB` prints a job with all keys, as
# YAML that is the same job again, and as JSON; a peer that trains is given the job, its overrides and the seed.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
"$CONVOY" keys job.yaml --set train.epochs=3 >all.yaml || fail "keys: $(cat all.yaml)"
"$CONVOY" keys all.yaml | grep -v '^name' >again.yaml
grep -v '^name' all.yaml | cmp -s - again.yaml || fail "the printed job is another one: $(diff all.yaml again.yaml)"
"$CONVOY" keys job.yaml --json --set 'data.val="007"' --set train.seed=2 >all.json || fail "keys --json: $(cat all.json)"
for text in '"val": "007"' '"seed": 2' '"lr": 0.01' '"shuffle": true' '"every": "2 steps"' '"augment": ["mirror", {"random_crop": {"size": 8, "pad": 1}}]'; do
    contains all.json "$text" || fail "keys --json lacks $text: $(cat all.json)"
done
refuses() { text=$1; shift; "$CONVOY" keys "$@" >log 2>&1 && fail "keys $* ends well"; contains log "$text" || fail "keys $*: $(cat log)"; }
refuses 'needs a job file: convoy keys JOB' --json
refuses 'no-file.yaml: cannot open' no-file.yaml
refuses 'train.bacth' job.yaml --set train.bacth=3

mkdir adapters
cp "$CONVOY_SOURCE/frameworks/convoy-train.yaml" adapters
cat >adapters/peer.yaml <<'Y'
command: [sh, peer.sh, "{repeat}", "{job}", "{program}"]
set: [--set, "{key}={value}"]
version: [echo, peer 1]
Y
cat >peer.sh <<'Y'
seed=$1 job=$2 program=$3
shift 3
"$program" keys "$job" --json "$@" | grep -q '"epochs": 2, .*"every": 1' || { echo "another job" >&2; exit 1; }
echo "{\"seed\": $seed, \"seconds_per_epoch\": 1, \"curve\": {\"epoch\": [1, 2], \"seconds\": [1, 2], \"train_loss\": [2, 1]}, \"step_curve\": {\"step\": [1, 2], \"seconds\": [0.1, 0.2], \"loss\": [2, 1.5], \"step_ms\": [100, 100]}}"
Y
sed 's/^/    /' job.yaml >indented
cat >study.yaml <<Y
title: Trainings
jobs:
  small:
$(cat indented)
experiments:
  training: {job: small, train.epochs: 2, log.every: 1, framework: [convoy-train, peer], repeats: 1, show: seconds_per_epoch, show_label: s}
figures:
- {title: By epoch, of: training, x: curve.epoch, y: curve.train_loss, y_label: loss, lines: framework}
- {title: By step, of: training, x: step_curve.step, y: step_curve.loss, y_label: loss, lines: framework}
- {title: Time, of: training, x: step_curve.seconds, y: step_curve.step_ms, y_label: ms, lines: framework}
Y
timeout 60 "$CONVOY" study study.yaml --frameworks-folder adapters --out out >log 2>err || fail "study: $(cat log err)"
contains log 'done: 2 measurements: 2 now, 0 before, 0 failed' || fail "the end: $(cat log)"
grep -q 'framework=convoy-train.*"step_curve": {"step": \[1, 2, 3, 4, 5, 6\], "seconds": \[[0-9.e, -]*\], "loss": \[[0-9.e, -]*\], "step_ms": \[' out/results.jsonl || fail "no curve over steps: $(cat out/results.jsonl)"
for figure in by-epoch by-step time; do
    contains "out/figures/$figure.svg" '>peer<' && contains "out/figures/$figure.svg" '>convoy-train<' || fail "figure $figure: $(ls out/figures)"
done
sed 's/step_curve.step,/no_curve.step,/' study.yaml >wrong.yaml
"$CONVOY" study wrong.yaml --frameworks-folder adapters --out wrong >log 2>&1 && fail 'a list that is no curve is taken'
contains log "no_curve.step" || fail "a list that is no curve: $(cat log)"
exit $failed
