#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan
# seconds: 20
# Fine-tuning: a run begins with the body of another run, frozen weights and statistics do not change, and weights that
# do not match are refused before anything is trained.
. "$CONVOY_SOURCE/tests/shell.inc"
export CONVOY_SITE=off

cat >body.yaml <<'END'
model:
  layers:
    - conv: {name: conv1, channels: 4, kernel: 3, pad: 1, bias: false}
    - batch_norm: {name: bn1}
    - relu
    - conv: {name: conv2, channels: 4, kernel: 3, pad: 1, bias: false}
    - batch_norm: {name: bn2}
    - relu
    - global_avg_pool
    - fc: {name: fc, channels: 4}
data: {train: {format: synthetic, samples: 64, shape: [3, 8, 8], classes: 4}}
train: {batch: 16, epochs: 2, optimizer: {name: sgd, lr: 0.05}}
END
sed -e 's/channels: 4}$/channels: 3}/' -e 's/classes: 4/classes: 3/' body.yaml >head.yaml
cat >>head.yaml <<'END'
batch_norm: {frozen: [bn1]}
END
run() { timeout 120 "$CONVOY" train "$@" --threads 1 --progress none >log 2>&1; }
weights() { ls "$1"/checkpoints/step-*/weights.safetensors | tail -1; }
# hash RUN TENSOR: the hash of a tensor in the last checkpoint of a run.
hash() { tensors "$(weights "$1")" | grep -F ":$2\"" | sed 's/.*"\([0-9a-f]*\)"$/\1/'; }

run body.yaml --out body || { cat log; exit 1; }
refused 'fc.bias is f32 3 in this job and F32 4 in body' "$CONVOY" train head.yaml --out no --set train.init=body
contains err '12 of 14 variables agree' || contains err 'and none is loaded' || fail "the error does not count: $(cat err)"
refused 'did you mean' "$CONVOY" train head.yaml --out no --set 'train.init={from: body, skp: [fc.*]}'
refused "skip: 'head.*' matches no variable" "$CONVOY" train head.yaml --out no --set 'train.init={from: body, skip: [head.*]}'
refused 'is a folder without a checkpoint' "$CONVOY" train head.yaml --out no --set train.init=.
refused "no batch_norm of the network is called 'bn3' (bn2)" "$CONVOY" train head.yaml --out no --set 'batch_norm.frozen=[bn3]'
refused 'names: torchvision is for networks of the zoo' "$CONVOY" train head.yaml --out no --set 'train.init={from: body, names: torchvision}'

set='train.init={from: body, skip: [fc.*]}'
groups='train.groups=[{match: conv1.*, frozen: true}, {match: bn1.*, frozen: true}, {match: conv2.*, lr_mult: 0.1}]'
run head.yaml --out tuned --set "$set" --set "$groups" || { fail "fine-tuning fails"; cat log; }
contains log 'train.init body: ' && contains log 'fc.bias is skipped and keeps its first values' || fail "the log does not say what was taken: $(cat log)"
for name in conv1.weight bn1.scale bn1.running_mean bn1.running_var; do
    [ -n "$(hash body $name)" ] && [ "$(hash body $name)" = "$(hash tuned $name)" ] || fail "$name changed, though it is frozen"
done
for name in conv2.weight bn2.running_mean; do
    [ "$(hash body $name)" != "$(hash tuned $name)" ] || fail "$name is not trained"
done

# Without frozen statistics they follow the new data, which is said of those whose weights are frozen. A run that resumes does not start from the other weights again.
run head.yaml --out loose --set "$set" --set batch_norm.frozen=false || fail "training without frozen statistics fails"
[ "$(hash body bn1.running_mean)" != "$(hash loose bn1.running_mean)" ] || fail "bn1.running_mean does not change"
said='with frozen weights, '
contains log "$said" && fail "the weights of a batch norm are called frozen: $(cat log)"
run head.yaml --out loose2 --set "$set" --set "$groups" --set batch_norm.frozen=bn2 && contains log "1 batch norm ${said}bn1: the running statistics follow" || fail "statistics that move are not said: $(cat log)"
run head.yaml --out loose3 --set "$set" --set 'train.groups=[{match: bn*, frozen: true}]' --set batch_norm.frozen=false && contains log "2 batch norms ${said}the first bn1: " || fail "statistics that move are not said: $(cat log)"
run head.yaml --out half --set "$set" --set "$groups" --set train.epochs=1 || fail "half a run fails"
run head.yaml --out half --set "$set" --set "$groups" --resume || fail "the resume fails: $(cat log)"
same_tensors "$(weights half)" "$(weights tuned)" || fail "a resumed run ends elsewhere"

# On two ranks rank 0 reads for both; the frozen statistics are equal there too.
if [ -n "${MPIEXEC_N-}" ]; then
    timeout 120 $MPIEXEC_N 2 "$CONVOY" train head.yaml --out two --threads 1 --progress none --set "$set" --set "$groups" >log 2>&1 || fail "two ranks fail: $(cat log)"
    [ "$(hash body bn1.running_var)" = "$(hash two bn1.running_var)" ] || fail "the statistics of two ranks changed"
fi
exit $failed
