#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# average.sh: with `average` of an optimiser, scores and weights.safetensors are those of the running averages: of a
# training, of `test`, after a resume, on two ranks, in a pipeline and with split layers. Training itself is the same.
. "$CONVOY_SOURCE/tests/shell.inc"
cat >job.yaml <<'Y'
model: {layers: [{conv: {channels: 8, kernel: 3, pad: 1}}, batch_norm, relu, {fc: {channels: 16}}, relu, {fc: {channels: 10}}]}
data: {train: {format: synthetic, samples: 256, shape: [3, 8, 8], classes: 10}, val: {format: synthetic, samples: 128, shape: [3, 8, 8], classes: 10}, test: {format: synthetic, samples: 128, shape: [3, 8, 8], classes: 10}}
batch_norm: {group: batch}
train: {batch: 32, epochs: 3, optimizer: {name: sgd, lr: 0.02, average: 0.8}}
checkpoint: {every: 1 epoch}
Y
train() { ranks=$1; shift; timeout 100 $MPIEXEC_N "$ranks" "$CONVOY" train job.yaml --threads 1 --progress none "$@" >log 2>&1 || fail "train $* fails: $(cat log)"; }
losses() { sed -n "s/.*\"kind\": \"epoch\".*\"$2\": \([0-9.e+-]*\),.*/\1/p" "$1/metrics.jsonl"; }
# near A B: the numbers of two lists agree to 1e-4 of each.
near() { [ "$(echo "$1" | wc -w)" = 3 ] && echo "$1 $2" | tr '\n' ' ' | awk '{ n = NF / 2; for (i = 1; i <= n; i++) { d = $i - $(n + i); if (d < 0) d = -d; if (d > 1e-4 * $i) exit 1 } }'; }

train 1 --out one
train 1 --out plain --set train.optimizer.average=0
[ "$(losses one train_loss)" = "$(losses plain train_loss)" ] || fail "training is not the same: $(losses one train_loss), $(losses plain train_loss)"
near "$(losses one val_loss)" "$(losses plain val_loss)" && fail "the scores are not of averages: $(losses one val_loss)"
set=one/checkpoints/step-00000024
grep -aq '"fc1.weight"' $set/weights.safetensors && grep -aq '"fc1.weight.trained"' $set/state.safetensors || fail "no names of the trained weights"
grep -aq '"fc1.weight.average"' $set/state.safetensors $set/weights.safetensors && fail "averages are states"
# The weights in training are those of a run without averages.
cat >compare.awk <<'Y'
{ for (i = 1; i <= NF; i++) if (match($i, /[0-9a-z]+:[^"]*(fc1|conv1)\.weight(\.trained)?":"[0-9a-f]+/)) { s = substr($i, RSTART, RLENGTH); sub(/\.trained/, "", s); print s } }
Y
hashes() { head -c 20000 "$1" | tr ',' '\n' | tr -d ' ' | LC_ALL=C awk -f compare.awk | sort -u; }
hashes $set/state.safetensors >trained
hashes plain/checkpoints/step-00000024/weights.safetensors >wanted
[ "$(wc -l <wanted)" = 2 ] && cmp -s trained wanted || fail "the trained weights differ: $(cat trained), $(cat wanted)"
hashes $set/weights.safetensors >averages
cmp -s averages wanted && fail "weights.safetensors has the weights and not their averages"

# `test` scores the averages: validation and test data are the same.
"$CONVOY" test one --threads 1 --json >scores 2>log || fail "test fails: $(cat log)"
grep -q "\"loss\": $(losses one val_loss | tail -n 1)[,}]" scores || fail "test gives another loss than $(losses one val_loss | tail -n 1): $(cat scores)"

# A run that is resumed after each epoch ends with the same bits.
train 1 --out parts --set train.epochs=1
for epochs in 2 3; do
    train 1 --out parts --set train.epochs=$epochs --resume
done
for file in weights state; do
    same_tensors $set/$file.safetensors parts/checkpoints/step-00000024/$file.safetensors || fail "a resumed run has other tensors in $file.safetensors"
done
[ "$(losses one val_loss)" = "$(losses parts val_loss)" ] || fail "a resumed run has other scores: $(losses parts val_loss)"

# Ranks that share weights in memory, a pipeline, split layers, and other grids that continue.
train 2 --out two
near "$(losses one val_loss)" "$(losses two val_loss)" || fail "two ranks: $(losses one val_loss), $(losses two val_loss)"
train 2 --out two-own --set comm.node_memory=false
near "$(losses one val_loss)" "$(losses two-own val_loss)" || fail "two ranks by messages: $(losses two-own val_loss)"
train 1 --out micro --set train.accumulate=2
train 2 --out grid --set parallel.pipeline=2 --set train.accumulate=2 --set train.epochs=2
train 2 --out grid --set parallel.tensor=2 --set train.accumulate=2 --resume
near "$(losses micro val_loss)" "$(losses grid val_loss)" || fail "a pipeline and split layers: $(losses micro val_loss), $(losses grid val_loss)"

# Other optimisers; in bf16 the averages have shadow copies of their own.
for name in adam lamb; do
    train 1 --out "$name" --set "train.optimizer={name: $name, average: 0.8}" --set train.epochs=1
done
train 1 --out half --set train.dtype=bf16
[ "$(losses half val_loss | wc -l)" = 3 ] || fail "bf16 fails: $(cat log)"
echo "$(losses one val_loss | tail -n 1) $(losses half val_loss | tail -n 1)" | awk '{ exit !($1 / $2 < 1.1 && $2 / $1 < 1.1) }' || fail "bf16 scores other weights: $(losses one val_loss), $(losses half val_loss)"

for update in zero1 local; do
    refused 'not every rank has all averages of the weights' $MPIEXEC_N 2 "$CONVOY" train job.yaml --threads 1 --out refused --set update=$update
done
refused 'average' "$CONVOY" train job.yaml --out refused --set train.optimizer.average=1
exit $failed
