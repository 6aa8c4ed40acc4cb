#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# level: 2
# turns.sh: a generator and a discriminator that are trained in turns: the same on one rank and on two, after a stop and
# a resume, and in evaluation, also with spectral norm and with a gradient penalty; a turn moves its own weights only,
# by its own optimiser, and may clip them; plan, report, time and bench show all turns; what is wrong in such a job is named.
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

# The states of all turns are in its checkpoints.
of_zero1='--threads 1 --set update=zero1 --set train.dtype=f32'
$MPIEXEC_N 2 "$CONVOY" train "$work/job.yaml" --out parts $of_zero1 --set train.steps=5 >log 2>&1 || fail "update: zero1: $(cat log)"
$MPIEXEC_N 2 "$CONVOY" train "$work/job.yaml" --out parts $of_zero1 --resume >log 2>&1 || fail "update: zero1 does not resume: $(cat log)"
losses parts | tail -n 5 >parts.losses
tail -n 5 zero1.losses | cmp -s - parts.losses || fail "after a resume zero1 has other losses: $(cat parts.losses zero1.losses)"

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

# A resume at a step in which the generator is not due: its loss is still that of its latest turn.
"$CONVOY" train job.yaml --out odd --threads 1 --set train.steps=9 >log 2>&1 || fail "$(cat log)"
"$CONVOY" train job.yaml --out odd --resume --threads 1 >log 2>&1 || fail "it does not resume at an odd step: $(cat log)"
last() { sed -n 's/.*"kind": "step", "step": 10,.*\("loss": [^"]*\).*\("loss_loss_generator": [^"]*\).*/\1 \2/p' "$1/metrics.jsonl"; }
[ "$(last one)" ] && [ "$(last odd)" = "$(last one)" ] || fail "after a resume at an odd step the loss is another one: $(last odd), not $(last one)"

# Two turns that train the same weights count their updates together: five steps of both are ten steps of one.
cat >twice.yaml <<'Y'
model: {networks: {net: {layers: [{fc: {channels: 3}}, tanh, {fc: {name: out, channels: 1}}]}}, layers: [{net: {name: a, from: x}}, {constant: {name: one, value: 1, from: a}}, {mse: {name: l, from: [a, one]}}], output: a}
data: {train: {format: synthetic, samples: 8, shape: [1, 2, 2]}, shuffle: false}
train: {dtype: f64, batch: 8, steps: 5, metrics: none, optimizer: {name: adam, lr: 0.01}, turns: [{train: net}, {train: net}]}
checkpoint: {keep: 1}
Y
"$CONVOY" train twice.yaml --out both --threads 1 >log 2>&1 || fail "two turns of the same weights: $(cat log)"
"$CONVOY" train twice.yaml --out single --threads 1 --set train.steps=10 --set 'train.turns=[{train: net}]' >log 2>&1 || fail "$(cat log)"
hash_of() { grep -hao '"[a-z0-9]*:net.out.weight": *"[0-9a-f]*"' "$1"/*.safetensors; }
[ "$(hash_of both/checkpoints/step-00000005)" ] && [ "$(hash_of both/checkpoints/step-00000005)" = "$(hash_of single/checkpoints/step-00000010)" ] ||
    fail "two turns of the same weights are not two updates: $(hash_of both/checkpoints/step-00000005), $(hash_of single/checkpoints/step-00000010)"

near() { paste "$1" "$2" | awk '{ for (i = 2; i <= 3; i++) { d = $i - $(i + 3); if (d < 0) d = -d; if (d > 1e-9) bad = 1 } } END { exit bad || NR == 0 }'; }

# Spectral norm: the same on any number of ranks, with micro-batches and with layers that ranks share; to the bit after a
# resume, and with a part of the optimiser's state on each rank.
sed -e 's/conv: {channels: 4,/conv: {spectral_norm: true, channels: 4,/' -e 's/name: score, channels: 1/name: score, channels: 1, spectral_norm: true/' \
    -e 's/fc: {channels: 36}/fc: {channels: 36, spectral_norm: true}/' -e 's/- bce:/- hinge:/' -e 's/value: 0.9/value: 1/' -e 's/value: 0,/value: -1,/' job.yaml >spectral.yaml
"$CONVOY" train spectral.yaml --out spectral --threads 1 >log 2>&1 || fail "it does not train with spectral norm: $(cat log)"
losses spectral >first_spectral
cmp -s first first_spectral && fail "spectral norm changes nothing"
for ranks in 2 3; do
    $MPIEXEC_N $ranks "$CONVOY" train "$work/spectral.yaml" --out spectral$ranks --threads 1 >log 2>&1 || fail "spectral norm on $ranks ranks: $(cat log)"
    losses spectral$ranks >other
    near first_spectral other || fail "spectral norm on $ranks ranks: $(paste first_spectral other)"
done
"$CONVOY" train spectral.yaml --out micro --threads 1 --set train.accumulate=2 --set batch_norm.group=4 --set data.tail=drop >log 2>&1 || fail "spectral norm with micro-batches: $(cat log)"
"$CONVOY" train spectral.yaml --out groups --threads 1 --set batch_norm.group=4 --set data.tail=drop >log 2>&1 || fail "$(cat log)"
losses micro >other
losses groups >whole
near whole other || fail "spectral norm with micro-batches: $(paste whole other)"
$MPIEXEC_N 2 "$CONVOY" train "$work/spectral.yaml" --out tensor --threads 1 --set parallel.tensor=2 --set parallel.tensor_layers=all >log 2>&1 || fail "spectral norm with ranks that share layers: $(cat log)"
losses tensor >other
near first_spectral other || fail "spectral norm with ranks that share layers: $(paste first_spectral other)"
"$CONVOY" train spectral.yaml --out spectral_cut --threads 1 --set train.steps=8 >log 2>&1 || fail "$(cat log)"
"$CONVOY" train spectral.yaml --out spectral_cut --resume --threads 1 >log 2>&1 || fail "spectral norm does not resume: $(cat log)"
losses spectral_cut | tail -n 2 >resumed
tail -n 2 first_spectral | cmp -s - resumed || fail "after a resume with spectral norm the losses are others: $(cat resumed first_spectral)"
for mode in sync zero1; do
    $MPIEXEC_N 2 "$CONVOY" train "$work/spectral.yaml" --out spectral_$mode --threads 1 --set update=$mode --set train.dtype=f32 >log 2>&1 || fail "spectral norm, update: $mode: $(cat log)"
    losses spectral_$mode >$mode.losses
done
cmp -s sync.losses zero1.losses || fail "spectral norm: zero1 has other losses: $(paste sync.losses zero1.losses)"
"$CONVOY" predict spectral --data '{format: synthetic, samples: 20, shape: [1, 6, 6]}' --out a.npy --threads 1 >log 2>&1 || fail "it does not predict with spectral norm: $(cat log)"

# The gradient penalty, at random mixtures of real and generated samples: the same on any number of ranks, in f32 nearly
# the same with the fast kernels, and to the bit after a resume.
sed -e 's/{conv: {channels: 4, kernel: 3, pad: 1}}, batch_norm,/{conv: {channels: 4, kernel: 3, pad: 1}},/' -e 's/- bce:/- wasserstein:/' -e 's/value: 0.9/value: 1/' -e 's/value: 0,/value: -1,/' \
    -e 's/^  output: fake/  - mix: {name: mixed, from: [x, fake]}\n  - discriminator: {name: between, from: mixed}\n  - gradient_penalty: {name: penalty, from: [between, mixed], loss_weight: 10}\n  output: fake/' \
    -e 's/losses: \[loss_real, loss_fake\]/losses: [loss_real, loss_fake, penalty]/' job.yaml >penalty.yaml
penalties() { sed -n 's/.*"step": \([0-9]*\),.*"loss_loss_real": \([^,]*\),.*"loss_penalty": \([^,]*\),.*/\1 \2 \3/p' "$1/metrics.jsonl"; }
"$CONVOY" train penalty.yaml --out penalty --threads 1 >log 2>&1 || fail "it does not train with a gradient penalty: $(cat log)"
penalties penalty >first_penalty
for ranks in 2 3; do
    $MPIEXEC_N $ranks "$CONVOY" train "$work/penalty.yaml" --out penalty$ranks --threads 1 >log 2>&1 || fail "a gradient penalty on $ranks ranks: $(cat log)"
    penalties penalty$ranks >with_ranks
    near first_penalty with_ranks || fail "a gradient penalty on $ranks ranks: $(paste first_penalty with_ranks)"
done
"$CONVOY" train penalty.yaml --out penalty_f32 --threads 1 --set train.dtype=f32 >log 2>&1 || fail "a gradient penalty in f32: $(cat log)"
penalties penalty_f32 | paste first_penalty - | awk '{ d = $3 - $6; if (d < 0) d = -d; if (d > 1e-3 * $3) bad = 1 } END { exit bad || NR < 10 }' || fail "a gradient penalty in f32: $(penalties penalty_f32 | paste first_penalty -)"
"$CONVOY" train penalty.yaml --out penalty_cut --threads 1 --set train.steps=8 >log 2>&1 || fail "$(cat log)"
"$CONVOY" train penalty.yaml --out penalty_cut --resume --threads 1 >log 2>&1 || fail "a gradient penalty does not resume: $(cat log)"
penalties penalty_cut | tail -n 2 >resumed
tail -n 2 first_penalty | cmp -s - resumed || fail "after a resume the gradient penalty is another one: $(cat resumed first_penalty)"
sed 's/{conv: {channels: 4, kernel: 3, pad: 1}},/{conv: {channels: 4, kernel: 3, pad: 1}}, batch_norm,/' penalty.yaml >bad.yaml
refused "this layer has no second derivative, as a gradient penalty needs it" "$CONVOY" plan bad.yaml
# shellcheck disable=SC2086
refused "a gradient penalty does not go with ranks that share layers or samples" $MPIEXEC_N 2 "$CONVOY" plan "$work/penalty.yaml" --set parallel.tensor=2

# Clipped weights: a critic with weights near zero has scores near zero, whose bce is log 2 on targets of 1 and 0.
clip='[{losses: [loss_real, loss_fake], train: discriminator, clip_weights: 1e-6}, {losses: loss_generator, train: generator}]'
"$CONVOY" train job.yaml --out clipped --threads 1 --set "train.turns=$clip" >log 2>&1 || fail "it does not clip weights: $(cat log)"
losses clipped | awk 'NR > 1 { for (i = 2; i <= 3; i++) { d = $i - log(2); if (d > 1e-4 || d < -1e-4) bad = 1 } } END { exit bad || NR < 10 }' || fail "weights are not clipped: $(losses clipped)"

# The optimiser of a turn: that of the job, written out, changes nothing; another one does, and a resume continues it.
own() { echo "[{losses: [loss_real, loss_fake], train: discriminator}, {losses: loss_generator, train: generator, every: 2, lr_mult: 0.5, optimizer: $1}]"; }
"$CONVOY" train job.yaml --out same --threads 1 --set "train.turns=$(own '{name: adam, lr: 0.002, beta1: 0.5}')" >log 2>&1 || fail "an optimiser of a turn: $(cat log)"
losses same | cmp -s - first || fail "the optimiser of the job, given to a turn, is another one: $(losses same)"
"$CONVOY" train job.yaml --out rmsprop --threads 1 --set "train.turns=$(own '{name: rmsprop, lr: 0.01}')" >log 2>&1 || fail "$(cat log)"
losses rmsprop >with_rmsprop
cmp -s with_rmsprop first && fail "another optimiser of a turn changes nothing"
"$CONVOY" train job.yaml --out rmsprop_cut --threads 1 --set "train.turns=$(own '{name: rmsprop, lr: 0.01}')" --set train.steps=8 >log 2>&1 || fail "$(cat log)"
"$CONVOY" train job.yaml --out rmsprop_cut --resume --threads 1 --set "train.turns=$(own '{name: rmsprop, lr: 0.01}')" >log 2>&1 || fail "it does not resume with an optimiser of a turn: $(cat log)"
losses rmsprop_cut | tail -n 2 >resumed
tail -n 2 with_rmsprop | cmp -s - resumed || fail "after a resume the optimiser of a turn is another one: $(cat resumed with_rmsprop)"

# All turns are shown.
"$CONVOY" plan job.yaml --threads 1 --set "train.turns=$(own rmsprop)" >plan || fail "plan fails"
grep -q '^train.turns: turn 1 (loss_real, loss_fake): trains discriminator, discriminator.\* by adam$' plan || fail "no first turn: $(cat plan)"
grep -q '^train.turns: turn 2 (loss_generator): trains generator, generator.\* by rmsprop$' plan || fail "no second turn: $(cat plan)"
[ "$(grep -c 'generator.fc1  *fc ' plan)" = 2 ] || fail "the layers of both turns are not listed: $(cat plan)"
grep -q 'training   batch 8 .* turn 2 (loss_generator)' plan || fail "no memory of the second turn: $(cat plan)"
grep -q 'flop a sample in a step that takes all turns' plan || fail "no sum over the turns: $(cat plan)"
timed() { CONVOY_WISDOM="$work/wisdom" "$CONVOY" plan job.yaml --threads 1 --set train.dtype=f32 "$@" | grep -c "^[0-9][^ ]* ms a step predicted"; }
[ "$(timed --planning measure)" = 2 ] || fail "the time of each turn is not predicted"
[ "$(timed)" = 2 ] || fail "the times of turns are not kept"
[ "$("$CONVOY" plan job.yaml --format dot | grep -c '^digraph')" = 2 ] || fail "not two graphs"
grep -q '"label": "train.turns: turn 2 (loss_generator)"' one/plan.json || fail "plan.json has no second turn"
"$CONVOY" report one >log 2>&1 || fail "no report: $(cat log)"
grep -q 'turn 2 (loss_generator)' one/report.html || fail "the report shows no second turn"

# The generator draws from the noise of each sample, the same in each evaluation.
"$CONVOY" predict one --data '{format: synthetic, samples: 20, shape: [1, 6, 6]}' --out a.npy --force --threads 1 >log 2>&1 || fail "it does not predict: $(cat log)"
"$CONVOY" predict one --data '{format: synthetic, samples: 20, shape: [1, 6, 6]}' --out b.npy --threads 1 >log 2>&1 || fail "$(cat log)"
cmp -s a.npy b.npy || fail "the same samples have other noise"

# time and bench take the turns as train does: both turns have a table, and their work is that of a step in plan.
"$CONVOY" time job.yaml --threads 1 --steps 3 >times 2>log || fail "time fails: $(cat log)"
[ "$(grep -c '^train.turns: turn [12] ' times)" = 2 ] || fail "time shows other turns: $(cat times)"
"$CONVOY" time job.yaml --threads 1 --steps 3 --json >times.json 2>log || fail "time --json fails: $(cat log)"
[ "$(grep -o '"label": "train.turns: turn [12]' times.json | sort -u | wc -l)" = 2 ] || fail "time --json has other turns: $(cat times.json)"
work() { "$CONVOY" bench job.yaml --threads 1 --steps 2 "$@" | sed -n 's/^gflop  *//p'; }
echo "$(work) $(work --set 'train.turns=[{losses: [loss_real, loss_fake], train: discriminator}, {losses: loss_generator, train: generator}]') $(work --set train.turns=)" |
    awk '{ exit !(NF == 3 && $2 > 1.1 * $3 && $2 > 1.1 * $1) }' || fail "bench does not take the turns: $(work) GFLOP, $(work --set train.turns=) without turns"
refused "train.turns needs update: sync or zero1" "$CONVOY" bench job.yaml --threads 1 --steps 2 --set update=delayed

# The kernels of all turns are measured: those of a node that only the second turn has, too. A run keeps the kernels of
# all turns, so that a resume has them.
CONVOY_WISDOM=$work/wisdom.json
export CONVOY_WISDOM
"$CONVOY" train job.yaml --out measured --threads 1 --set train.dtype=f32 --set train.steps=4 --planning measure --verbose >log 2>&1 || fail "it does not measure: $(cat log)"
[ "$(grep -c 'times measured' log)" = 1 ] || fail "it does not say once that it measures: $(cat log)"
"$CONVOY" train job.yaml --out again --threads 1 --set train.dtype=f32 --planning measure --verbose >log 2>&1 || fail "$(cat log)"
grep -q 'times measured' log && fail "the second run measures again: $(cat log)"
"$CONVOY" plan job.yaml --threads 1 --set train.dtype=f32 --explain >explained || fail "no explanation"
awk '/^train.turns: turn 2/ { second = 1 } /^[a-z]/ { node = $1 } second && node ~ /conv1.*grad_src/ && / ms / { n++ } END { exit n < 2 }' explained ||
    fail "the candidates of the second turn were not measured: $(sed -n '/turn 2/,$p' explained)"
grep -q '"discriminator.conv1[a-z_.]*grad_src": "' measured/plan.json || fail "plan.json has no kernels of the second turn: $(cat measured/plan.json)"
"$CONVOY" train job.yaml --out measured --resume --threads 1 --set train.dtype=f32 >log 2>&1 || fail "$(cat log)"
losses again >whole
losses measured | cmp -s whole - || fail "a resume has other kernels: $(losses measured | paste whole -)"
CONVOY_WISDOM=off

# A generator of volumes, which have no power spectrum, is scored by the other metrics.
sed -e 's/{fc: {channels: 36}}, {reshape: {shape: \[1, 6, 6\]}}/{fc: {channels: 64}}, {reshape: {shape: [1, 4, 4, 4]}}/' -e 's/{conv: {channels: 4, kernel: 3, pad: 1}}, batch_norm, //' \
    -e 's/^data:.*/data: {train: {format: synthetic, samples: 16, shape: [1, 4, 4, 4]}, val: {format: synthetic, samples: 8, shape: [1, 4, 4, 4]}, roles: {x: target}}/' -e '/metrics: none/d' job.yaml >volumes.yaml
"$CONVOY" train volumes.yaml --out volumes --threads 1 --set train.steps=2 >log 2>&1 || fail "a generator of volumes: $(cat log)"
grep -q '"val_diversity": [0-9]' volumes/metrics.jsonl || fail "no diversity of volumes: $(cat volumes/metrics.jsonl)"
grep -q 'power_spectrum' volumes/metrics.jsonl && fail "a power spectrum of volumes: $(cat volumes/metrics.jsonl)"

# What is wrong is named.
refused "turns: every is 2 in the first turn" "$CONVOY" plan job.yaml --set 'train.turns=[{losses: loss_fake, every: 2}]'
refused "turn 1 trains 'critic', and the model has no network or layer of this name; its networks are generator, discriminator" "$CONVOY" plan job.yaml --set 'train.turns=[{losses: [loss_real, loss_fake, loss_generator], train: critic}]'
refused "no turn has the loss loss_real" "$CONVOY" plan job.yaml --set 'train.turns=[{losses: [loss_fake, loss_generator], train: generator}]'
refused "train.turns: turn 1 (loss_real): trains: no variable on which the losses depend matches" "$CONVOY" plan job.yaml --set 'train.turns=[{losses: loss_real, train: generator}, {losses: [loss_fake, loss_generator]}]'
refused "turn 1 (loss_real): it trains 'generator', but its losses do not depend on any weight of it" "$CONVOY" plan job.yaml --set 'train.turns=[{losses: loss_real, train: [discriminator, generator]}, {losses: [loss_fake, loss_generator]}]'
refused "it trains 'generator'" "$CONVOY" plan job.yaml --set 'train.groups=[{match: generator.*, frozen: true}]' --set 'train.turns=[{train: [generator, discriminator]}]'
refused "train is an empty list" "$CONVOY" plan job.yaml --set 'train.turns=[{train: []}]'
refused "lr_mult" "$CONVOY" plan job.yaml --set 'train.turns=[{lr_mult: 0}]'
refused "clip_weights" "$CONVOY" plan job.yaml --set 'train.turns=[{clip_weights: -1}]'
refused "no optimiser 'adm', did you mean 'adam'?" "$CONVOY" plan job.yaml --set 'train.turns=[{optimizer: adm}]'
refused "beta3" "$CONVOY" plan job.yaml --set 'train.turns=[{optimizer: {name: adam, beta3: 1}}]'
refused "clip_weights belongs to a turn" "$CONVOY" plan job.yaml --set 'train.optimizer={name: adam, clip_weights: 1}'
refused "the turns 1 and 2 both train discriminator." "$CONVOY" plan job.yaml --set 'train.turns=[{losses: [loss_real, loss_generator], train: discriminator}, {losses: loss_fake, train: discriminator, optimizer: sgd}]'
refused "has the loss 'loss_fak', and the model has no loss of this name; its losses are loss_real, loss_fake, loss_generator" "$CONVOY" plan job.yaml --set 'train.turns=[{losses: loss_fak, train: generator}]'
refused "train.turns needs update: sync or zero1" "$CONVOY" plan job.yaml --set update=delayed
# spoilt SED-SCRIPT TEXT: the job that sed makes of job.yaml is refused with this text.
spoilt() {
    sed "$1" job.yaml >bad.yaml
    refused "$2" "$CONVOY" plan bad.yaml
}
spoilt 's/generator: {name: fake, from: z}/generator: {name: fake, from: [z, x]}/' "network generator has 1 input, and \`from\` names 2"
spoilt 's/generator: {name: fake, from: z}/generator: {name: fake, form: z}/' "network generator has no key 'form'"
spoilt 's/{name: judged, from: fake}/{name: judged, from: z}/' "network discriminator as judged, applied to z, which is 8x5: layer discriminator.conv1"
spoilt 's/shape: \[1, 6, 6\]}}, tanh/shape: [2, 3, 6]}}, tanh/' "network discriminator as judged, applied to fake of network generator, which is 8x2x3x6"
spoilt 's/- generator: {name: fake/- generater: {name: fake/' "the networks of this model are generator, discriminator"
spoilt 's/      inputs: \[z\]/      input: [z]/' "network generator has no key 'input', did you mean 'inputs'?"
spoilt 's/      inputs: \[z\]/      inputs: [z, z]/' "network generator has two inputs 'z'"
spoilt 's/^  layers:$/    spare:\n      layers: [relu]\n  layers:/' "no layer applies network spare"
spoilt 's/^    discriminator:/    relu:/' "network relu has the name of a layer"
spoilt 's/{name: fake, from: z}/{name: [fake], from: z}/' "\`name\` of network generator is a word"
spoilt 's/{name: fake, from: z}/{name: x, from: z}/' "the name 'x' is taken already: give this application of network generator another one"

# A loss that is not finite is named with its turn; the learning rate of another turn may be the cause.
code=0
"$CONVOY" train job.yaml --out lost --threads 1 --set "train.turns=$(own '{name: sgd, lr: 1e300}')" --set train.batch=50 >log 2>&1 || code=$?
[ $code != 0 ] && grep -q "train.turns: turn 1 (loss_real, loss_fake): the loss of step 2 is .*expected a finite number.*or lr in the optimizer of a turn" log || fail "the turn is not named: $(tail -n 3 log)"
exit $failed
