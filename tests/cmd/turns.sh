#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich asan
# turns.sh: a generator and a discriminator that are trained in turns: the same on one rank and on two, after a stop and
# a resume, and in evaluation; a turn moves its own weights only; what is wrong in such a job is named.
. "$CONVOY_SOURCE/tests/shell.inc"
cat >job.yaml <<'Y'
model:
  networks:
    generator:
      inputs: [z]
      layers: [{fc: {channels: 32}}, batch_norm, relu, {fc: {channels: 36}}, {reshape: {shape: [1, 6, 6]}}, tanh]
    discriminator:
      layers: [{conv: {channels: 4, kernel: 3, pad: 1}}, batch_norm, {leaky_relu: {slope: 0.2}}, {fc: {name: score, channels: 1}}]
  layers:
  - noise: {name: z, shape: 5, from: x}
  - generator: {name: fake, from: z}
  - discriminator: {name: real, from: x}
  - discriminator: {name: judged, from: fake}
  - constant: {name: one_real, value: 0.9, from: real}
  - constant: {name: zero, value: 0, from: judged}
  - constant: {name: one, value: 1, from: judged}
  - bce: {name: loss_real, from: [real, one_real]}
  - bce: {name: loss_fake, from: [judged, zero]}
  - bce: {name: loss_generator, from: [judged, one]}
  output: fake
data: {train: {format: synthetic, samples: 50, shape: [1, 6, 6]}}
batch_norm: {group: batch}
train:
  dtype: f64
  batch: 8
  steps: 10
  metrics: none
  optimizer: {name: adam, lr: 0.002, beta1: 0.5}
  turns:
  - {losses: [loss_real, loss_fake], train: discriminator}
  - {losses: loss_generator, train: generator, every: 2, lr_mult: 0.5}
log: {every: 1}
checkpoint: {every: 4 steps, keep: 5}
Y
losses() { sed -n 's/.*"kind": "step", "step": \([0-9]*\),.*"loss_loss_real": \([^,]*\),.*"loss_loss_generator": \([^,]*\),.*/\1 \2 \3/p' "$1/metrics.jsonl"; }

"$CONVOY" train job.yaml --out one --threads 1 >log 2>&1 || fail "it does not train: $(cat log)"
[ "$(losses one | wc -l)" = 10 ] || fail "the losses of the turns are not in the log: $(head -3 one/metrics.jsonl)"
$MPIEXEC_N 2 "$CONVOY" train "$work/job.yaml" --out two --threads 1 >log 2>&1 || fail "it does not train on two ranks: $(cat log)"
losses one >first
losses two >second
paste first second | awk '{ for (i = 2; i <= 3; i++) { d = $i - $(i + 3); if (d < 0) d = -d; if (d > 1e-9) bad = 1 } } END { exit bad }' ||
    fail "two ranks have other losses: $(paste first second)"

# With a part of the optimiser's state on each rank: the same losses.
for mode in sync zero1; do
    $MPIEXEC_N 2 "$CONVOY" train "$work/job.yaml" --out $mode --threads 1 --set update=$mode --set train.dtype=f32 >log 2>&1 || fail "update: $mode: $(cat log)"
    losses $mode >$mode.losses
done
cmp -s sync.losses zero1.losses || fail "zero1 has other losses: $(paste sync.losses zero1.losses)"

# The generator is trained in the steps 1, 3, ..: in the step 4 only the discriminator moves.
"$CONVOY" train job.yaml --out three --threads 1 --set train.steps=3 >log 2>&1 || fail "$(cat log)"
"$CONVOY" train job.yaml --out four --threads 1 --set train.steps=4 >log 2>&1 || fail "$(cat log)"
of() { cat "$1"/checkpoints/*/*.safetensors | grep -ao "\"[a-z0-9]*:$2\": *\"[0-9a-f]*\"" | sort -u; }
[ "$(of three generator.fc1.weight)" ] || fail "no hash of a weight: $(ls three/checkpoints/*)"
[ "$(of three generator.fc1.weight)" = "$(of four generator.fc1.weight)" ] || fail "a step without the generator's turn moves its weights"
[ "$(of three discriminator.score.weight)" != "$(of four discriminator.score.weight)" ] || fail "the discriminator's turn does not move its weights"

# A stop and a resume: the same weights to the bit.
"$CONVOY" train job.yaml --out cut --threads 1 --set train.steps=8 >log 2>&1 || fail "$(cat log)"
"$CONVOY" train job.yaml --out cut --resume --threads 1 >log 2>&1 || fail "it does not resume: $(cat log)"
losses cut | tail -n 2 >resumed
tail -n 2 first | cmp -s - resumed || fail "after a resume the losses are others: $(cat resumed first)"

# The generator draws from the noise of each sample, the same in each evaluation.
"$CONVOY" predict one --data '{format: synthetic, samples: 20, shape: [1, 6, 6]}' --out a.npy --threads 1 >log 2>&1 || fail "it does not predict: $(cat log)"
"$CONVOY" predict one --data '{format: synthetic, samples: 20, shape: [1, 6, 6]}' --out b.npy --threads 1 >log 2>&1 || fail "$(cat log)"
cmp -s a.npy b.npy || fail "the same samples have other noise"

# What is wrong is named.
refused "turns: every is 2 in the first turn" "$CONVOY" plan job.yaml --set 'train.turns=[{losses: loss_fake, every: 2}]'
refused "no variable of the model matches" "$CONVOY" plan job.yaml --set 'train.turns=[{losses: loss_fake, train: critic}]'
refused "loss_fak" "$CONVOY" plan job.yaml --set 'train.turns=[{losses: loss_fak, train: generator}]'
refused "train.turns needs update: sync or zero1" "$CONVOY" plan job.yaml --set update=delayed
sed 's/generator: {name: fake, from: z}/generator: {name: fake, from: [z, x]}/' job.yaml >bad.yaml
refused "network generator has 1 input, and \`from\` names 2" "$CONVOY" plan bad.yaml
sed 's/generator: {name: fake, from: z}/generator: {name: fake, form: z}/' job.yaml >bad.yaml
refused "network generator has no key 'form'" "$CONVOY" plan bad.yaml
sed 's/{name: judged, from: fake}/{name: judged, from: z}/' job.yaml >bad.yaml
refused "discriminator.conv1" "$CONVOY" plan bad.yaml
exit $failed
