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
refused "comm.progress: 'foo' is none of poll, thread, mpi" "$CONVOY" train job.yaml --out bad --set comm.progress=foo
refused "comm.algorithm: there is no all-reduce algorithm \"rings\", did you mean 'ring'" "$CONVOY" train job.yaml --out bad --set comm.algorithm=rings
refused "CONVOY_NODE_RANKS is 'banana' in the environment, expected a number" env CONVOY_NODE_RANKS=banana "$CONVOY" train job.yaml --out bad
refused 'kernels: clock they compute nothing' "$CONVOY" bench job.yaml --check --kernels clock
refused 'plan.kernels: "natvie" is not a choice of kernels; did you mean "native"?' "$CONVOY" train job.yaml --out bad --set plan.kernels=natvie
refused 'kernels: "native, clock": "clock" cannot be combined with others' "$CONVOY" bench job.yaml --kernels 'native, clock'
refused "the plain plan's kernels: \"natvie\" is not a choice of kernels" "$CONVOY" bench job.yaml --check --against natvie
refused 'comm.algorithm must be auto or library, not ring' "$CONVOY" train job.yaml --out bad --set comm.progress=mpi --set comm.algorithm=ring
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
exit $failed
