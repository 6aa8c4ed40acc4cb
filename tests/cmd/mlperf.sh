#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release asan minimal
# mlperf.sh: mlperf.log has the lines of an MLPerf training, in order, with the hyperparameters of the job: of a run that
# reaches its target, of one that does not, on two ranks, and of runs that were stopped, killed or damaged and resumed,
# which begin once and end once. Keys that do not fit are refused.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
python=${CONVOY_TEST_PYTHON:-python3}
"$python" -c 'import json' 2>/dev/null || { echo "it needs Python 3"; exit 77; }
train() { timeout 200 "$@" --threads 1 --progress none >log 2>&1 || fail "fails: $*: $(cat log)"; }
check() { "$python" "$CONVOY_SOURCE/tests/cmd/mlperf.py" "$@" >lines 2>why || fail "$*: $(cat why)"; }
has() { [ "$(grep -c "$2" lines)" = "$1" ] || fail "not $1 lines '$2': $(cat lines)"; }

# 48 samples to train on, 3 steps in an epoch; 16 to validate.
cat >>job.yaml <<'END'
log: {mlperf: {benchmark: cosmoflow, org: ORG, platform: 'a "machine"', division: closed, status: research}}
END
sed -i -e 's/^  epochs: 2/  epochs: 4/' -e 's/^  schedule: .*/  schedule: {name: multi_step, at: [2 epochs, 3 epochs], factor: [0.25, 0.5], warmup: 1 epoch}/' job.yaml

# ---- a run to its end ----
train "$CONVOY" train job.yaml --out run
check run/mlperf.log submission_benchmark='"cosmoflow"' submission_org='"ORG"' submission_platform='"a \"machine\""' \
    submission_division='"closed"' submission_status='"research"' cache_clear=false train_samples=48 eval_samples=16 \
    global_batch_size=16 gradient_accumulation_steps=1 number_of_ranks=1 number_of_nodes=1 accelerators_per_node=0 \
    opt_name='"sgd"' opt_base_learning_rate=0.01 opt_momentum=0.9 opt_learning_rate_warmup_epochs=1 \
    opt_learning_rate_warmup_steps=3 opt_learning_rate_warmup_factor=0 opt_learning_rate_decay_factor=0.25 \
    'opt_learning_rate_decay_boundary_epochs=[2, 3]'
has 4 '^epoch_start null {"epoch_num": [1-4], "step_num": [0369]}'
has 4 '^epoch_stop'
has 4 '^eval_accuracy [01.][0-9.]* {"epoch_num": [1-4], '
has 1 '^run_stop null {"status": "success"}'
got=$(sed -n 's/^eval_accuracy \([0-9.]*\) {"epoch_num": 3.*/\1/p' lines)
want=$(sed -n 's/.*"kind": "epoch".*"epoch": 3,.*"val_accuracy": \([0-9.]*\).*/\1/p' run/metrics.jsonl)
[ "$got" = "$want" ] || fail "the accuracy of epoch 3 is $got, in metrics.jsonl $want"
cp lines whole
sum=$(cksum <run/mlperf.log)
train "$CONVOY" train job.yaml --out run --resume
[ "$(cksum <run/mlperf.log)" = "$sum" ] || fail "a resume with nothing to do changes the log"

# ---- two ranks, the learning rate of a larger batch, further keys, and a target that is reached, or not ----
train $MPIEXEC_N 2 "$CONVOY" train job.yaml --out two --set train.lr_rule=linear --set train.base_batch=4 \
    --set 'log.mlperf.also={number_of_nodes: 7, dropout: 0.5, list: [1, two, true]}' --set 'train.stop={metric: loss, target: 1e9}'
check two/mlperf.log number_of_ranks=2 number_of_nodes=7 dropout=0.5 'list=[1, "two", true]' opt_base_learning_rate=0.04 \
    opt_learning_rate_warmup_factor=4 global_batch_size=16
has 1 '^epoch_start'
has 1 '^eval_error [0-9.]* {"epoch_num": 1, "step_num": 3}'
has 1 '^run_stop null {"status": "success"}'
contains two/STATUS 'stop in epoch 1 of 4: the validation loss is' || fail "STATUS does not have the target: $(cat two/STATUS)"
train "$CONVOY" train job.yaml --out far --set 'train.stop={metric: accuracy, target: 2}' --set train.validate_every=2
check far/mlperf.log
has 1 '^run_stop null {"status": "aborted"}'
has 8 '^eval_accuracy' # within an epoch after 2, 4, 8 and 10 steps, but not after 6 and 12, and after each epoch
grep -q '^finished step 12 of 12 at [^ ]*$' far/STATUS || fail "a target that is not reached: $(cat far/STATUS)"

# ---- deepcam's own names ----
train "$CONVOY" train job.yaml --out cam --set log.mlperf.benchmark=deepcam --set 'train.optimizer={name: lamb, lr: 0.006, weight_decay: 0.01}' \
    --set 'train.schedule={name: multi_step, at: 8 steps, warmup: 4 steps}' --set train.clip_norm=1 --set log.mlperf.metric=val_loss
check cam/mlperf.log opt_name='"LAMB"' opt_lr=0.006 'opt_betas=[0.9, 0.999]' opt_eps=1e-6 opt_weight_decay=0.01 \
    scheduler_type='"multistep"' 'scheduler_milestones=[8]' scheduler_decay_rate=0.1 scheduler_lr_warmup_steps=4 \
    scheduler_lr_warmup_factor=1 opt_max_grad_norm=1 opt_bias_correction=true num_workers=1
has 4 '^eval_error'

# ---- interrupted runs: the same lines as those of the whole run ----
same() { check $1/mlperf.log && sed 's/^opt_.*//; s/^eval_accuracy [^{]*/eval_accuracy /' lines >got &&
    sed 's/^opt_.*//; s/^eval_accuracy [^{]*/eval_accuracy /' whole | cmp -s - got || fail "$1 differs: $(diff whole lines)"; }
cp -r run lost
rm -r lost/checkpoints/step-00000012
train "$CONVOY" train job.yaml --out lost --resume    # from step 10, within the last epoch
same lost
cp -r run torn
rm -r torn/checkpoints/step-00000012
printf ':::MLLOG {"namespace": "", "time' >>torn/mlperf.log
train "$CONVOY" train job.yaml --out torn --resume
same torn
timeout 200 "$CONVOY" train job.yaml --out halt --threads 1 --progress none --set train.steps=4 --set train.epochs= >log 2>&1 || fail "halt: $(cat log)"
check halt/mlperf.log
has 2 '^epoch_start'
train "$CONVOY" train job.yaml --out halt --resume
check halt/mlperf.log
has 1 '^run_start'
has 1 '^run_stop'
rm -r lost/checkpoints/step-00000012 lost/mlperf.log
train "$CONVOY" train job.yaml --out lost --resume
contains log 'does not say when this run began' && [ ! -e lost/mlperf.log ] || fail "a log without its beginning is continued: $(cat log)"

# ---- bad input ----
refused 'log.mlperf: expected a map' "$CONVOY" train job.yaml --out no --set log.mlperf=true
refused 'log.mlperf: the key "benchmark" is missing' "$CONVOY" train job.yaml --out no --set 'log.mlperf={org: a}'
refused 'log.mlperf: unknown key "orgs"' "$CONVOY" train job.yaml --out no --set 'log.mlperf={benchmark: a, orgs: b}'
refused 'also: expected a map' "$CONVOY" train job.yaml --out no --set 'log.mlperf={benchmark: a, also: 3}'
refused "validation has no score 'aug'" "$CONVOY" train job.yaml --out no --set 'log.mlperf={benchmark: a, metric: aug}'
refused 'there is no validation data' "$CONVOY" train job.yaml --out no --set data.val=
refused 'neither `patience` nor `target`' "$CONVOY" train job.yaml --out no --set 'train.stop={metric: loss}'
refused 'target is' "$CONVOY" train job.yaml --out no --set 'train.stop={metric: loss, target: .nan}'
[ ! -d no ] || fail "a job that is refused leaves a folder: $(ls no)"
exit $failed
