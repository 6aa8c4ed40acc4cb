#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# seconds: 30
# grid.sh: a training whose ranks share layers (tensor) or samples (spatial) has the losses, the validation and the
# checkpoints of one rank; a run is resumed on another grid of ranks, from any to any, and test, predict, inspect and
# export read it on one rank; other update modes hold too; grids that do not fit are refused.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
sed 's|^log:.*||' job.yaml >grid.yaml
echo 'log: {every: 1}' >>grid.yaml
data='{format: synthetic, samples: 8, shape: [3, 8, 8], classes: 4}'

losses() { grep '"kind": "step"' "$1/metrics.jsonl" | sed 's/.*"loss": \([^,]*\),.*/\1/'; }

# same RUN RUN N: the last N losses agree, up to rounding
same() {
    losses "$1" | tail -n "$3" >expected
    losses "$2" | tail -n "$3" | paste - expected | awk -v n="$3" '{ d = $1 - $2; if (d < 0) d = -d; if (NF != 2 || d > 2e-5 * $2) bad = 1 } END { exit bad || NR != n }' ||
        fail "$2: losses $(losses "$2" | tr '\n' ' '), expected those of $1: $(losses "$1" | tr '\n' ' ')"
}

"$CONVOY" train grid.yaml --out one >log 2>&1 || fail "one rank: $(cat log)"
$MPIEXEC_N 2 "$CONVOY" train grid.yaml --out tensor --set parallel.tensor=2 >log 2>&1 || fail "tensor 2: $(cat log)"
same one tensor 6
$MPIEXEC_N 2 "$CONVOY" train grid.yaml --out height --set parallel.spatial=2 >log 2>&1 || fail "spatial 2: $(cat log)"
same one height 6
val() { grep '"kind": "epoch"' "$1/metrics.jsonl" | sed 's/.*"val_accuracy": \([^,}]*\).*/\1/'; }
for run in tensor height; do
    [ -n "$(val one)" ] && [ "$(val one)" = "$(val $run)" ] || fail "$run: validation $(val $run), expected that of one rank: $(val one)"
done

# ---- a loss of maps: ranks that share samples have parts of it, also in the validation ----
# maps NAME ROLE CHANNELS LOSS OPTION: the validation loss on one rank, and on the blocks of four
maps() {
    from="{format: synthetic, samples: 16, shape: [2, 8, 8], $5}"
    cat >"$1.yaml" <<END
model: {layers: [{conv: {channels: 4, kernel: 3, pad: 1}}, tanh, {conv: {channels: $3, kernel: 1}}]}
data: {train: $from, val: $from, roles: {y: $2}}
train: {batch: 8, epochs: 1, loss: $4}
END
    "$CONVOY" train "$1.yaml" --out "$1" >log 2>&1 || fail "$1: $(cat log)"
    $MPIEXEC_N 4 "$CONVOY" train "$1.yaml" --out "$1-four" --set 'parallel.spatial=[2,2]' >log 2>&1 || fail "$1, four ranks: $(cat log)"
    for run in "$1" "$1-four"; do
        grep '"kind": "epoch"' "$run/metrics.jsonl" | sed 's/.*"val_loss": \([^,}]*\).*/\1/'
    done | paste - - >vals
    awk '{ d = $1 - $2; if (d < 0) d = -d; if (NF == 2 && d <= 2e-5 * $1) good = 1 } END { exit !good }' vals ||
        fail "$1: validation losses on one rank and on four: $(cat vals)"
}
maps field field 1 mse 'targets: [1, 8, 8]'
maps labels '{role: label_map, classes: 3}' 3 softmax_cross_entropy 'classes: 3, map: [8, 8]'

# ---- memory: a rank has its part of the activations, of the feeds and of the rows that are read ahead ----
total() { grep '^  total ' log | awk '{ gsub(",", "", $2); print $2 }'; }
cat >maps.yaml <<'END'
model: {name: hep-cnn, filters: 8}
data:
  train: {format: synthetic, samples: 4, shape: [1, 256, 256], classes: 2}
train: {batch: 1, steps: 3, optimizer: {name: adam, lr: 0.001}}
log: {every: 1}
END
"$CONVOY" plan maps.yaml >log 2>&1 || fail "plan of one rank: $(cat log)"
alone=$(total)
$MPIEXEC_N 4 "$CONVOY" plan maps.yaml --set 'parallel.spatial=[2,2]' >log 2>&1 || fail "plan of four: $(cat log)"
[ $((10 * $(total))) -le $((3 * alone)) ] || fail "a rank of four needs $(total) bytes, one rank alone $alone"
"$CONVOY" train maps.yaml --out maps-one >log 2>&1 || fail "maps: $(cat log)"
$MPIEXEC_N 4 "$CONVOY" train maps.yaml --out maps-four --set 'parallel.spatial=[2,2]' >log 2>&1 || fail "maps, four ranks: $(cat log)"
same maps-one maps-four 3

# ---- another grid resumes ----
cp -r one kept
for from in one tensor height; do
    rm -r $from/checkpoints/step-00000006
    echo step-00000004 >$from/checkpoints/latest
done
# resume FROM NAME RANKS KEY=VALUE...
resume() {
    from=$1 name=$2 ranks=$3
    shift 3
    set -- $(for key; do echo "--set parallel.$key"; done)
    cp -r "$from" "$name"
    $MPIEXEC_N "$ranks" "$CONVOY" train grid.yaml --out "$name" --resume "$@" >log 2>&1 || fail "$from as $name: $(cat log)"
    contains log 'resumed after step 4 of 6' || fail "$from as $name: $(cat log)"
    same kept "$name" 2
}
resume tensor t-one 1
resume tensor t-data 3
resume tensor t-grid 4 tensor=2 spatial=2
resume height h-tensor 2 tensor=2 'tensor_layers=[fc1]'
contains log 'split 1 layer with weights by channels (fc1), and share the samples of 1' || fail "no word about the layers that share samples: $(cat log)"
resume one o-hybrid 4 tensor=2 pipeline=2
resume one o-square 4 'spatial=[2,2]'

# ---- what reads checkpoints ----
"$CONVOY" test o-hybrid --data "$data" >log 2>&1 && contains log accuracy || fail "test: $(cat log)"
"$CONVOY" predict t-grid --data "$data" --out rows.csv >log 2>&1 || fail "predict: $(cat log)"
"$CONVOY" inspect t-grid --verify >log 2>&1 || fail "inspect: $(cat log)"
"$CONVOY" export o-hybrid whole.safetensors >log 2>&1 || fail "export: $(cat log)"
"$CONVOY" bench grid.yaml --steps 2 --json >log 2>&1 || fail "bench: $(cat log)"
$MPIEXEC_N 2 "$CONVOY" bench grid.yaml --steps 2 --json --set parallel.tensor=2 >log2 2>&1 || fail "bench on a grid: $(cat log2)"
[ "$(sed 's/.*"parameters": \([0-9]*\).*/\1/' log | tail -n 1)" = "$(sed 's/.*"parameters": \([0-9]*\).*/\1/' log2 | tail -n 1)" ] ||
    fail "parameters differ: $(cat log log2)"

# ---- update modes ----
# run NAME RANKS OPTION...
run() {
    name=$1 ranks=$2
    shift 2
    $MPIEXEC_N "$ranks" "$CONVOY" train grid.yaml --out "$name" "$@" >log 2>&1 || fail "$name: $(cat log)"
}
adam='train.optimizer={name: adam, lr: 0.001}'
run adam 1 --set "$adam"
run zero1 4 --set "$adam" --set update=zero1 --set parallel.spatial=2
same adam zero1 6
rm -r zero1/checkpoints/step-00000006
echo step-00000004 >zero1/checkpoints/latest
run zero1 4 --set "$adam" --set update=zero1 --set parallel.tensor=2 --resume
same adam zero1 2
late='update={mode: delayed, warm_up: 0 steps, cool_down: 0 steps}'
run late 1 --set "$late"
run late-grid 4 --set "$late" --set parallel.tensor=2
same late late-grid 6
rm -r late-grid/checkpoints/step-00000006 # step 4 was saved with an update pending
echo step-00000004 >late-grid/checkpoints/latest
grep -q '"pending"' late-grid/checkpoints/step-00000004/state.json || fail 'no update was pending'
cp -r late-grid late-one
run late-one 1 --set "$late" --resume
same late late-one 2
run late-grid 2 --set "$late" --set parallel.tensor=2 --resume
same late late-grid 2
for ranks in 2 4; do
    run exact-$ranks $ranks --set deterministic=true --set parallel.tensor=2
done
cmp exact-2/checkpoints/step-00000006/weights.safetensors exact-4/checkpoints/step-00000006/weights.safetensors || fail 'deterministic: the weights depend on the number of ranks'

$MPIEXEC_N 2 "$CONVOY" bench grid.yaml --check --set parallel.tensor=2 >log 2>&1 || fail "bench --check on a grid: $(cat log)"

# ---- bad input ----
refused 'a grid of tensor 2 on 3 ranks: the number of ranks must be a multiple' $MPIEXEC_N 3 "$CONVOY" train grid.yaml --out bad --set parallel.tensor=2
refused 'expected up to three whole numbers' "$CONVOY" train grid.yaml --out bad --set 'parallel.spatial=[1,1,1,2]'
refused 'local has each rank train a whole model by itself' $MPIEXEC_N 2 "$CONVOY" train grid.yaml --out bad --set parallel.tensor=2 --set update=local
refused '4 ranks of the axis space1 would all compute the same' $MPIEXEC_N 4 "$CONVOY" train grid.yaml --out bad --set 'parallel.spatial=[1,4]' --set 'data.train={format: synthetic, samples: 64, shape: [3, 8, 3], classes: 4}' --set 'data.augment=[]'
refused '3 ranks of the axis tensor would all compute the same' $MPIEXEC_N 3 "$CONVOY" train grid.yaml --out bad --set parallel.tensor=3 --set 'model.layers=[{fc: {channels: 2}}, {fc: {channels: 2}}, {fc: {channels: 2}}]' --set 'data.train={format: synthetic, samples: 64, shape: [3, 8, 8], classes: 2}'
refused "names 'fc', and the model has no layer of this name with weights that can be split" $MPIEXEC_N 2 "$CONVOY" train grid.yaml --out bad --set parallel.tensor=2 --set 'parallel.tensor_layers=[fc]'
refused "parallel.tensor_layers names 'some'" $MPIEXEC_N 2 "$CONVOY" train grid.yaml --out bad --set parallel.tensor=2 --set parallel.tensor_layers=some
exit $failed
