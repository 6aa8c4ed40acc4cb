#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# bad_job.sh: the command refuses a job, an option or an environment variable that is wrong with exit code 1 and a cause,
# and names keys without effect. The sanitizers see such values in test_job_refused.c and
# test_program_opts.c.
. "$CONVOY_SOURCE/tests/cmd/job.inc"

refused 'nowhere.yaml: cannot open: No such file' "$CONVOY" train nowhere.yaml --out bad
refused 'job.yaml: not a plan: the map `choices` is missing' "$CONVOY" train job.yaml --out bad --plan job.yaml
refused '100000 compute threads a rank, expected 1 .. ' "$CONVOY" train job.yaml --out bad --threads 100000
[ ! -e bad ] || fail "a refused job leaves its folder"
refused 'layer ip2 gives 3 outputs for each sample, but the data have 4 classes' "$CONVOY" train job.yaml --out bad --set 'model={name: cifar-convnet, classes: 3}'
refused '0 classes, expected at least 1' "$CONVOY" train job.yaml --out bad --set 'model={name: cifar-convnet, classes: 0}'
refused "comm.progress: 'foo' is none of poll, thread" "$CONVOY" train job.yaml --out bad --set comm.progress=foo
refused "comm.algorithm: there is no all-reduce algorithm \"rings\", did you mean 'ring'" "$CONVOY" train job.yaml --out bad --set comm.algorithm=rings
refused "CONVOY_NODE_RANKS is 'banana' in the environment, expected a number" env CONVOY_NODE_RANKS=banana "$CONVOY" train job.yaml --out bad
refused 'kernels: clock they compute nothing' "$CONVOY" bench job.yaml --check --kernels clock
refused 'plan.kernels: "natvie" is not a choice of kernels; did you mean "native"?' "$CONVOY" train job.yaml --out bad --set plan.kernels=natvie
refused 'kernels: "native, clock": "clock" cannot be combined with others' "$CONVOY" bench job.yaml --kernels 'native, clock'
refused "the plain plan's kernels: \"natvie\" is not a choice of kernels" "$CONVOY" bench job.yaml --check --against natvie
for set in train.schedule=foo train.metrics=[foo] 'model.layers=[{fc: {channels: 2}}]'; do # a plan refuses what a training would refuse
    refused "$(case $set in train*) echo foo ;; *) echo '2 outputs' ;; esac)" "$CONVOY" plan job.yaml --set "$set"
done
refused 'unknown key "learning_rate", expected one of: momentum, nesterov, lookahead, lr_inside, weight_decay, lr_mult, clip_weights, average, lr' "$CONVOY" train job.yaml --out bad --set 'train.optimizer={name: sgd, learning_rate: 0.1}'
refused 'train.validate_every is 2, but with delayed the ranks have all updates only at the end of an epoch' "$CONVOY" train job.yaml --out bad --set train.validate_every=2 --set update=delayed

# Keys without effect are no fault, but are named.
"$CONVOY" train job.yaml --out idle --set update=local --set comm.wire=bf16 --set plan.clock_scale=2 --set deterministic_shards=4 >log 2>&1 || fail "idle keys are a fault: $(cat log)"
for words in 'wire=bf16: comm.wire has no effect here: it applies to gradients' 'plan.clock_scale has no effect here: it needs plan.kernels: clock' 'deterministic_shards has no effect here: it needs deterministic'; do
    contains log "$words" || fail "\"$words\" is not said: $(cat log)"
done
# Those that depend on other keys, and those that depend on the length of the training, its data or its network.
cat >idle.yaml <<'Y'
model: {layers: [{fc: {name: body, channels: 4}}, relu, {fc: {name: head, channels: 4}}]}
data: {train: {format: synthetic, samples: 64, shape: [3], classes: 4}, val: 25%, cache_limit: 1000, prefetch: 5, threads: 0}
train:
  batch: 16
  epochs: 2
  validate_every: 6
  optimizer: {name: sgd, lr: 0.01, decay_on: all}
  schedule: {name: step, every: 30 epochs, warmup_from: 0.1}
  metrics: [{name: top_k, k: 4}, {name: top_k, k: 2}]
  groups: [{match: "body.*", frozen: true, lr_mult: 0.1}, {match: "head.bias", decay_mult: 2}]
  stop: {metric: loss, patience: 2}
batch_norm: {group: 8}
log: {tensorboard: tb, tensorboard_histograms: 5}
Y
"$CONVOY" train idle.yaml --out idle2 --threads 1 >log 2>&1 || fail "idle keys are a fault: $(cat log)"
for words in 'data.cache_limit has no effect here: it needs data.cache' 'data.prefetch has no effect here: it needs data.threads' \
    'train.optimizer.decay_on has no effect here: it needs a weight_decay' 'train.groups.lr_mult has no effect here' 'train.groups.decay_mult has no effect here: it needs a weight_decay' \
    'train.schedule.warmup_from has no effect here: it needs a warmup' 'train.schedule: step has no effect: it does not change the learning rate within the 2 epochs' \
    'train.stop.patience 2 has no effect here: the training ends before' 'train.validate_every 6 has no effect here' 'log.tensorboard_histograms 5 has no effect here: the training has fewer epochs' \
    'batch_norm.group has no effect here: the network has no layer batch_norm' 'train.metrics: top_k_4: k is 4 and there are 4 classes, so it is always 1'; do
    [ "$(grep -Fc "$words" log)" = 1 ] || fail "\"$words\" is not said once: $(cat log)"
done
! grep -q 'top_k_2:' log || fail "an option with an effect is called idle: $(cat log)"
"$CONVOY" train job.yaml --out idle4 --threads 1 --set 'data.augment=[mirror, {random_crop: 8}]' >log 2>&1 && contains log 'random_crop has no effect: its size is that of the pictures' || fail "a crop that cannot move is not said: $(cat log)"
# With other values they have an effect. Of a list of times those beyond the end are named.
"$CONVOY" train idle.yaml --out idle3 --threads 1 --set 'data={train: {format: synthetic, samples: 64, shape: [3], classes: 4}, val: 25%}' --set train.validate_every=2 --set train.optimizer.weight_decay=0.1 \
    --set 'train.schedule={name: multi_step, at: [1 epoch, 9 epochs], warmup: 1 epoch, warmup_from: 0.1}' --set 'train.metrics=[{name: top_k, k: 2}]' --set 'train.groups=[{match: "body.*", frozen: true}, {match: "*.bias", decay_mult: 2}]' \
    --set train.stop.patience=1 --set batch_norm= --set log= >log 2>&1 || fail "keys with an effect are a fault: $(cat log)"
[ "$(grep -c warning log)" = 1 ] && contains log 'train.schedule: multi_step: at at epoch 9 has no effect: the training ends at epoch 2' || fail "keys with an effect: $(cat log)"
exit $failed
