#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# level: 2
# tensorflow_training.sh: TensorFlow trains a job of convoy (frameworks/train_tensorflow.py), and learns; its updates are those
# of Keras where both compute the same; networks have convoy's number of parameters; what it cannot follow is named.
#
# CONVOY_TEST_TENSORFLOW names an interpreter with TensorFlow, if python3 has none. Without it the test is skipped.
. "$CONVOY_SOURCE/tests/shell.inc"
tensorflow=${CONVOY_TEST_TENSORFLOW:-python3}
"$tensorflow" -c 'import tensorflow, PIL' 2>why || { echo "$tensorflow lacks a package: $(tail -1 why). CONVOY_TEST_TENSORFLOW names another interpreter"; exit 77; }
export CONVOY_PYTHON_TENSORFLOW="$tensorflow" PYTHONDONTWRITEBYTECODE=1
"$CONVOY" convert '{format: pictures, size: 32, classes: 3, samples: 110}' train --format folder >log 2>&1 || fail "convert: $(cat log)"
cat >job.yaml <<'Y'
model: cifar-convnet
data: {train: train, val: train, augment: [mirror, {normalize: {mean: [0.5, 0.4, 0.3], std: 0.25}}]}
train: {batch: 25, epochs: 2, optimizer: {name: sgd, lr: 0.01, momentum: 0.9, nesterov: true, weight_decay: 1e-4}, schedule: cosine}
log: {every: 2}
Y
cat >study.yaml <<'Y'
title: Trainings
experiments:
  training: {job: job.yaml, ranks: [1, 2], threads: 1, framework: tensorflow-train, repeats: 1, oversubscribe: true, show: val_accuracy, show_label: accuracy}
Y
timeout 300 "$CONVOY" study study.yaml --out out >log 2>err || fail "study: $(cat log err)"
contains log 'done: 2 measurements: 1 now, 0 before, 0 failed, 1 left out' || fail "the end: $(cat log)"
contains log 'left out: tensorflow-train cannot be told ranks, which is 2 here' || fail "two ranks: $(cat log)"
cat >check.py <<'P'
import json, os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
sys.path.insert(0, sys.argv[1] + "/frameworks")
import run_tensorflow, tensorflow as tf, train_tensorflow
one = json.loads(open("out/results.jsonl").readline())["result"]
assert one["steps"] == 10 and one["step_curve"]["step"] == [2, 4, 6, 8, 10] and len(one["curve"]["val_loss"]) == 2, one
assert one["train_loss"] < one["curve"]["train_loss"][0], one["curve"]
for name in ("cifar-convnet", "resnet-20", "inception-v3"):
    print(name, 4 * sum(int(tf.size(w)) for w in run_tensorflow.NETS[name]()[0].trainable_variables))
K = tf.keras.optimizers
for o, keras in (({"name": "sgd", "momentum": 0.9, "nesterov": False}, K.SGD(0.1, momentum=0.9)),
                 ({"name": "sgd", "momentum": 0.9, "nesterov": True}, K.SGD(0.1, momentum=0.9, nesterov=True)),
                 ({"name": "sgd", "momentum": 0, "nesterov": False}, K.SGD(0.1)),
                 ({"name": "adam", "beta1": 0.9, "beta2": 0.999, "eps": 1e-8}, K.Adam(0.1, epsilon=1e-8)),
                 ({"name": "adamw", "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.1}, K.AdamW(0.1, weight_decay=0.1, epsilon=1e-8))):
    ours, theirs = tf.Variable([[1.0, -2.0]]), tf.Variable([[1.0, -2.0]])
    apply = train_tensorflow.optimizer_of(type("Job", (), {"optimizer": o}), [ours])
    for i in range(5):
        g = tf.constant([[0.3 * i - 0.5, 1.0]])
        apply([g], 0.1)
        keras.apply([g], [theirs])
    assert float(tf.reduce_max(tf.abs(ours - theirs))) < 1e-5, (o, ours, theirs)
P
"$tensorflow" check.py "$CONVOY_SOURCE" >counts 2>log || fail "check.py: $(tail -3 log)"
while read -r name bytes; do
    [ "$("$CONVOY" plan "$name" --batch 1 | sed -n 's/^ *weights *//p' | tr -d ,)" = "$bytes" ] || fail "$name: TensorFlow's has $bytes bytes of weights"
done <counts
[ "$(wc -l <counts)" -eq 3 ] || fail "networks: $(cat counts)"
refuses() {
    text=$1
    shift
    timeout 60 "$tensorflow" "$CONVOY_SOURCE/frameworks/train_tensorflow.py" job.yaml --program "$CONVOY" "$@" >log 2>&1 && fail "$* ends well: $(cat log)"
    contains log "$text" || fail "$*: $(cat log)"
}
refuses "there is no network 'vgg-13' for TensorFlow, expected one of alexnet-v2" --set model=vgg-13
refuses 'cifar-convnet takes pictures of 32x32, and data.augment makes 24x24' --set 'data.augment=[{random_crop: 24}]'
refuses 'dropout is 0.5; the networks for TensorFlow have none' --set 'model={name: inception-v3, dropout: 0.5}'
exit $failed
