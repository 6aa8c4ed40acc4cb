#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# checkpoint.sh: sets written by two nodes at once, in parts; saves in the background and in the foreground; `inspect
# --verify`, which names the tensor that was altered; `export`.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
export CONVOY_NODE_RANKS=1             # each rank counts as a node

train() { timeout 200 $MPIEXEC_N 2 "$CONVOY" train wide.yaml --threads 1 --progress none "$@" >log 2>&1 || { fail "convoy train $* fails"; cat log; }; }
same() { same_tensors "$1/checkpoints/$3" "$2/checkpoints/$3" || fail "$3 of $1 is not that of $2"; }

# 69 MB of weights and as much momentum: each of two writers has a file of at least 64 MiB.
cat >wide.yaml <<'END'
model: {layers: [{fc: {channels: 5600}}, relu, {fc: {name: last, channels: 4}}]}
data: {train: {format: synthetic, samples: 48, shape: [3, 32, 32], classes: 4}}
train: {batch: 8, steps: 4, optimizer: {name: sgd, lr: 0.001, momentum: 0.9}}
checkpoint: {every: 2 steps, keep: 3}
END
train --out parts
train --out waits --set checkpoint.background=false
for part in weights-00001-of-00002 weights-00002-of-00002 state-00001-of-00002 state-00002-of-00002; do
    same parts waits step-00000004/$part.safetensors
done
grep '"kind": *"save"' parts/metrics.jsonl | grep -q '"writers": *2, *"background": *true' || { fail "no save of two writers in the background"; grep save parts/metrics.jsonl; }
grep '"kind": *"save"' waits/metrics.jsonl | grep -q '"background": *true' && fail "a save in the background although checkpoint.background is false"

# The set in parts is resumed by as many ranks, and then by one, whose checkpoints are whole again.
cp -r parts again
rm -r again/checkpoints/step-00000004
train --out again --resume
same again parts step-00000004/weights-00002-of-00002.safetensors
cp -r parts one
rm -r one/checkpoints/step-00000004
"$CONVOY" train wide.yaml --threads 1 --progress none --out one --resume >log 2>&1 || { fail "a set in parts is not resumed by one rank"; cat log; }
[ -s one/checkpoints/step-00000004/weights.safetensors ] || fail "one rank has not written one file"
"$CONVOY" inspect parts/checkpoints/step-00000004 | grep -q 'last.weight' || fail "inspect does not list what is in the second part"

# `export` writes all of it to one file, with which another run can begin.
"$CONVOY" export parts all.safetensors >log || fail "export fails"
grep -q 'all.safetensors has the weights of step 4' log || { fail "export does not say which step"; cat log; }
"$CONVOY" inspect --verify all.safetensors | grep -q '4 of 4 tensors have a hash, 0 of them are altered' || fail "the exported file is not whole"
refused 'all.safetensors exists already: choose another name, or replace it with --force' "$CONVOY" export parts all.safetensors
cp all.safetensors whole && printf old >all.safetensors
"$CONVOY" export parts all.safetensors --force >log && cmp whole all.safetensors || fail "export --force fails"
mkdir folder.safetensors
refused 'not a file that can be replaced' "$CONVOY" export parts folder.safetensors --force
mkdir none && refused 'holds no checkpoint; `convoy inspect --stats` reads a data set' "$CONVOY" inspect --verify none
refused 'holds no checkpoint of step 5' "$CONVOY" export parts all.safetensors --force --checkpoint step-5
cmp whole all.safetensors || fail "export --force removes the file before it has another one"
refused 'holds no checkpoint of step 5' "$CONVOY" export parts five.safetensors --checkpoint step-5
refused 'holds no best checkpoint' "$CONVOY" export parts best.safetensors --checkpoint best
refused 'nothing is not a run folder' "$CONVOY" export nothing best.safetensors
"$CONVOY" train wide.yaml --threads 1 --progress none --out begun --set train.init=all.safetensors --set train.steps=1 >log 2>&1 || { fail "no run begins with the exported weights"; cat log; }

# A damaged file is named, down to the tensor, and so is a missing part. The next older set is used.
"$CONVOY" inspect --verify parts >log || { fail "sound sets are not found sound"; cat log; }
[ "$(grep -c ': valid' log)" = 2 ] || { fail "not two sound sets"; cat log; }
file=parts/checkpoints/step-00000004/weights-00002-of-00002.safetensors
printf 'x' | dd of=$file bs=1 seek=$(($(wc -c <$file) - 9)) conv=notrunc 2>/dev/null
"$CONVOY" inspect --verify parts >log && fail "a damaged set gives exit code 0"
grep -q 'step-00000004: DAMAGED: .*weights-00002-of-00002.safetensors was altered' log || { fail "the damaged file is not named"; cat log; }
grep -q 'weights-00002-of-00002.safetensors: tensor .* was altered' log || { fail "the damaged tensor is not named"; cat log; }
rm $file
"$CONVOY" export parts older.safetensors >log 2>&1 && grep -q 'warning: checkpoint step-00000004 is damaged and was skipped' log || { fail "export says nothing of the set that it passes over"; cat log; }
"$CONVOY" inspect parts | grep -q 'newest valid checkpoint: .*step-00000002' || fail "the older set is not taken where a part is missing"

# The best set is asked for by name: if it is damaged, it is refused, and no other set is scored in its place.
unset CONVOY_NODE_RANKS
mkdir best                             # an empty folder counts as no folder
"$CONVOY" train job.yaml --threads 1 --progress none --out best --set checkpoint.best=accuracy >log 2>&1 || { fail "a run in an empty folder fails"; cat log; }
refused 'best exists already' "$CONVOY" train job.yaml --out best
"$CONVOY" test best --data '{format: synthetic, samples: 8, shape: [3, 8, 8], classes: 4}' >log 2>&1 || { fail "the best set is not scored"; cat log; }
truncate -s 100 "best/checkpoints/$(cat best/checkpoints/best)/weights.safetensors"
refused 'weights.safetensors has 100 bytes' "$CONVOY" test best --data '{format: synthetic, samples: 8, shape: [3, 8, 8], classes: 4}'
exit $failed
