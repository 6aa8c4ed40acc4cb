#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# level: 2
# pytorch_training.sh: PyTorch trains a job of convoy (frameworks/train_pytorch.py): on one rank and two with the same losses,
# with an uneven last batch; its learning rates are those of convoy, for each schedule; so is the number of parameters; and
# what it cannot follow is named: keys, networks, operations, pictures that cannot be read.
#
# CONVOY_TEST_PYTORCH names an interpreter with torch and torchvision, if python3 has none. Without it the test is skipped.
. "$CONVOY_SOURCE/tests/shell.inc"
pytorch=${CONVOY_TEST_PYTORCH:-python3}
"$pytorch" -c 'import torch, torchvision, PIL' 2>why || { echo "$pytorch lacks a package: $(tail -1 why). CONVOY_TEST_PYTORCH names another interpreter"; exit 77; }
export CONVOY_PYTHON_PYTORCH="$pytorch" PYTHONDONTWRITEBYTECODE=1 CONVOY_MPIEXEC="$work/launch"
printf '#!/bin/sh\nshift\nexec %s "$@"\n' "$MPIEXEC_N" >launch
chmod +x launch
for part in train:110:0 val:30:110; do
    n=${part#*:}
    "$CONVOY" convert "{format: pictures, size: 36, classes: 3, samples: ${n%:*}, first: ${n#*:}}" ${part%%:*} --format folder >log 2>&1 || fail "convert: $(cat log)"
done
cat >job.yaml <<'Y'
model: cifar-convnet
data: {train: train, val: val, augment: [{resize: 36}, {random_crop: {size: 32}}, mirror, {normalize: {mean: [0.5, 0.4, 0.3], std: 0.25}}]}
train: {batch: 25, epochs: 2, optimizer: {name: sgd, lr: 0.01, momentum: 0.9, nesterov: true, weight_decay: 1e-4}, schedule: {name: cosine, warmup: 3 steps}}
log: {every: 1}
Y
cat >study.yaml <<'Y'
title: Trainings
experiments:
  training: {job: job.yaml, ranks: [1, 2], threads: 1, framework: [pytorch-train, convoy-train], repeats: 1, oversubscribe: true, show: val_accuracy, show_label: accuracy}
figures:
- {title: Loss, of: training, x: step_curve.step, y: step_curve.loss, y_label: loss, lines: framework, panels: ranks}
Y
timeout 300 "$CONVOY" study study.yaml --out out >log 2>err || fail "study: $(cat log err)"
contains log 'done: 4 measurements: 4 now, 0 before, 0 failed' || fail "the end: $(cat log)"
for file in constant '{name: cosine, end: 0.1, warmup: 2 epochs}' '{name: one_cycle, div: 10}' '{name: polynomial, power: 2, warmup: 3 steps, warmup_from: 0.2}' \
    '{name: step, every: 4 steps}' '{name: multi_step, at: [1 epoch, 7 steps], factor: [0.3, 0.5]}' '{name: multi_step, at: 1 epoch}' '{name: exponential}'; do
    sed "s/schedule: .*}}/schedule: $file}/" job.yaml >schedule.yaml
    rm -rf run
    "$CONVOY" train schedule.yaml --out run --progress none --threads 1 >log 2>&1 || fail "train: $(cat log)"
    printf '%s\n' "$file" >>schedules
    grep '"kind": "step"' run/metrics.jsonl >"rates-$(wc -l <schedules | tr -d ' ')"
done
cat >check.py <<'P'
import json, sys
sys.path.insert(0, sys.argv[1] + "/frameworks")
import train_job
lines = [json.loads(line) for line in open("out/results.jsonl")]
by = {(r["case"]["framework"], r["case"]["ranks"]): r["result"] for r in lines}
one, two, own = by["pytorch-train", "1"], by["pytorch-train", "2"], by["convoy-train", "1"]
assert one["steps"] == own["steps"] == 10 and one["step_curve"]["step"] == own["step_curve"]["step"], one
assert all(abs(a - b) < 1e-3 for a, b in zip(one["step_curve"]["loss"], two["step_curve"]["loss"])), (one, two)
assert all(abs(one[k] - two[k]) < 1e-3 for k in ("train_loss", "val_loss")) and two["ranks"] == 2, (one, two)
assert len(one["curve"]["val_accuracy"]) == 2 and one["train_loss"] < one["curve"]["train_loss"][0], one["curve"]
assert abs(one["step_curve"]["loss"][0] - own["step_curve"]["loss"][0]) < 1.5, (one, own)  # weights are drawn in the same way
from PIL import Image
for n in range(170, 700):  # sizes of photographs: no rounding error leads out of one
    for size in ((n, 240), (240, n), (n, n + 13)):
        assert train_job.resize(Image.new("RGB", size), {"size": 176}).shape == (176, 176, 3), size
for i, schedule in enumerate(open("schedules").read().splitlines(), 1):
    import subprocess
    tree = json.loads(subprocess.run([sys.argv[2], "keys", "job.yaml", "--json", "--set", "train.schedule=" + schedule], capture_output=True, text=True).stdout)
    factor = train_job.schedule(tree["train"]["schedule"], 110, 25, 220)
    seen = [0, 25, 50, 75, 100, 110, 135, 160, 185, 210]
    for s, line in zip(seen, open(f"rates-{i}")):
        rate = json.loads(line)["learning_rate"]
        assert abs(rate - 0.01 * factor(s)) < 1e-6 * max(rate, 1e-4), (schedule, s, rate, 0.01 * factor(s))
P
"$pytorch" check.py "$CONVOY_SOURCE" "$CONVOY" >log 2>&1 || fail "check.py: $(cat log)"
cat >nets.py <<'P'
import sys
sys.path.insert(0, sys.argv[1] + "/frameworks")
import train_pytorch
for name, classes in (("cifar-convnet", 10), ("resnet-20", 10), ("inception-v3", 1000)):
    job = type("Job", (), {"model": name, "options": {}})
    print(name, 4 * sum(w.numel() for w in train_pytorch.build(job, classes).parameters()))
P
"$pytorch" nets.py "$CONVOY_SOURCE" >counts 2>log || fail "nets.py: $(cat log)"
while read -r name bytes; do
    [ "$("$CONVOY" plan "$name" --batch 1 | sed -n 's/^ *weights *//p' | tr -d ,)" = "$bytes" ] || fail "$name: PyTorch's has $bytes bytes of weights"
done <counts
[ "$(wc -l <counts)" -eq 3 ] || fail "networks: $(cat counts)"
"$CONVOY" convert '{format: pictures, size: 20, classes: 3, samples: 3}' small --format folder >log 2>&1 || fail "convert: $(cat log)"
cp -r train odd
for folder in small/*; do for file in "$folder"/*; do cp "$file" "odd/${folder#small/}/a-${file##*/}"; done; done
mkdir -p other/class && cp odd/*/a-* other/class
echo 'no picture' >bad.jpg
cp -r train damaged
for folder in damaged/*; do cp bad.jpg "$folder/bad.jpg"; done
train() { timeout 60 "$pytorch" "$CONVOY_SOURCE/frameworks/train_pytorch.py" --program "$CONVOY" "$@" >log 2>&1; }
refuses() { text=$1; shift; train "$@" && fail "$* ends well: $(cat log)"; contains log "$text" || fail "$*: $(cat log)"; }
refuses 'convoy: error: --set train.bacth=3: train: unknown key "bacth"' job.yaml --set train.bacth=3
refuses 'train.accumulate is 2 in the job; the peers have only 1' job.yaml --set train.accumulate=2
refuses 'the job has the key train.groups, which the peers do not have' job.yaml --set 'train.groups=[{match: "conv*", frozen: true}]'
refuses 'train.optimizer is lars, expected one of sgd, adam, adamw' job.yaml --set 'train.optimizer={name: lars, lr: 1}'
refuses 'data.augment: "rotate90", expected mirror' job.yaml --set 'data.augment=[rotate90]'
refuses 'data.train is "no-folder", expected a folder of pictures' job.yaml --set data.train=no-folder
refuses "there is no network 'vgg-7'" job.yaml --set model=vgg-7
refuses 'optimizer.decay_on is "all" in the job' job.yaml --set train.optimizer.decay_on=all
refuses 'after data.augment, and others are' job.yaml --set 'data.augment=[mirror]' --set data.train=odd
refuses 'bad.jpg: cannot identify image file' job.yaml --set data.train=damaged
refuses 'data.val has the classes' job.yaml --set data.val=other
refuses 'no-convoy: No such file or directory; --program names convoy' job.yaml --program no-convoy
exit $failed
