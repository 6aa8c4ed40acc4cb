#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# new.sh: `convoy new` prints jobs that train, for pictures, tables and arrays, classes, numbers and maps; and
# `convoy models --as-job` prints networks with their layers; data that do not fit have a clear error.
. "$CONVOY_SOURCE/tests/shell.inc"

# job NAME DATA [OPTION...]: the job in NAME.yaml trains some steps.
job() {
    name=$1
    shift
    "$CONVOY" new "$@" >"$name.yaml" 2>err || { fail "new $*: $(cat err)"; return; }
    timeout 200 "$CONVOY" train "$name.yaml" --threads 1 --progress none --out "runs/$name" --set train.epochs= --set train.steps=3 \
        --set train.schedule=constant >log 2>&1 || { fail "the job for $* does not train: $(cat log)"; cat "$name.yaml"; }
    grep 'has no effect' log && fail "the job for $* has idle keys"
}
# has NAME TEXT...: the job has these texts.
has() {
    name=$1
    shift
    for text; do contains "$name.yaml" "$text" || fail "$name lacks '$text': $(cat "$name.yaml")"; done
}
# array FILE TYPE SHAPE: a NumPy file of the bytes of stdin.
array() {
    header="{'descr': '$2', 'fortran_order': False, 'shape': ($3), }"
    { printf '\223NUMPY\001\000\166\000'; printf '%-117s\n' "$header"; cat; } >"$1"
}
bytes() { awk -v n="$1" -v most="$2" 'BEGIN { srand(7); for (i = 0; i < n; i++) printf "\\%03o", int(rand() * most) }' | xargs -0 printf '%b'; }

# ---- pictures ----
"$CONVOY" convert '{format: pictures, size: 32, classes: 3, samples: 60}' pack --format pack >log 2>&1 || fail "convert: $(cat log)"
job pack pack
has pack 'model: resnet-20' 'random_crop: {size: [32, 32], pad: 4}' 'val: 20%' 'normalize: auto'
for format in tfrecord hdf5 lmdb; do
    "$CONVOY" convert pack "$format" --format "$format" >log 2>&1 || { grep -q 'this build' log || fail "convert to $format: $(cat log)"; continue; }
    job "by-$format" "$format" --for classify
    has "by-$format" 'loss: softmax_cross_entropy'
done
if "$CONVOY" convert '{format: pictures, size: [24, 40], classes: 3, samples: 40}' 'my pictures/train' --format folder >log 2>&1; then
    cp -r 'my pictures/train' 'my pictures/val'
    job folder 'my pictures'
    has folder 'train: my pictures/train' 'val: my pictures/val' '{resize: 36}, {random_crop: 32}'
    "$CONVOY" convert pack one --format folder >log 2>&1
    job one one
    has one 'train: one' 'val: 20%'
fi
mkdir cifar
for file in data_batch_1 data_batch_2 data_batch_3 data_batch_4 data_batch_5 test_batch; do
    for label in '\000' '\001' '\002' '\003'; do printf "$label"; head -c 3072 /dev/urandom; done >cifar/$file.bin
done
job cifar cifar
has cifar '10 classes' 'part: test'

# ---- tables and arrays ----
awk 'BEGIN { srand(3); print "a,b,c,species,size"; for (i = 0; i < 60; i++) print rand() "," rand() "," rand() "," (i % 2 ? "cat" : "dog") "," rand() }' >table.csv
job species '{path: table.csv, label: species, drop: size}'
has species 'fc: {name: answer, channels: 2}'
job size '{path: table.csv, y: size, drop: species}'
has size 'normalize_targets: auto' 'loss: {name: mse, target: y}' 'fc: {name: answer, channels: 1}'
job both '{path: table.csv, y: size, label: species}' --for regress
has both 'loss: {name: mse, target: y}'
mkdir maps odd volumes lines
bytes $((20 * 2 * 16 * 8)) 256 | array maps/x.npy '|u1' '20, 2, 16, 8'
bytes $((20 * 16 * 8)) 3 | array maps/y.npy '|u1' '20, 16, 8'
job maps maps
has maps 'role: label_map, classes: 3' 'resize: {name: up1, scale: 2}' 'conv: {name: answer, channels: 3, kernel: 1}'
job fields maps --for regress
has fields 'roles: {y: field}' 'loss: {name: mse, target: y}'
bytes $((20 * 7 * 9)) 256 | array odd/x.npy '|u1' '20, 1, 7, 9'
bytes $((20 * 7 * 9)) 2 | array odd/y.npy '|u1' '20, 7, 9'
job odd odd --for segment
has odd 'dilation: 4'
bytes $((20 * 8 * 8 * 8)) 256 | array volumes/x.npy '|u1' '20, 1, 8, 8, 8'
bytes $((20 * 3)) 256 | array volumes/y.npy '|u1' '20, 3'
job volumes volumes
has volumes 'channels: 3}   # as many as there are targets'
bytes $((20 * 2 * 32)) 256 | array lines/x.npy '|u1' '20, 2, 32'
bytes 20 2 | array lines/label.npy '|u1' '20,'
job lines lines
has lines 'max_pool: {kernel: 2}'

mkdir times steps
cp lines/x.npy times
bytes $((20 * 32)) 256 | array times/y.npy '|u1' '20, 32'
job times times --for regress
has times 'numbers for each position' 'conv: {name: answer, channels: 1, kernel: 1}' '# y has as many numbers as x has times, 32'
cp lines/x.npy steps
bytes $((20 * 32)) 3 | array steps/y.npy '|u1' '20, 32'
job steps steps
has steps 'role: label_map, classes: 3' 'conv: {name: answer, channels: 3, kernel: 1}'

mkdir turned
bytes $((20 * 32 * 2)) 256 | array turned/x.npy '|u1' '20, 32, 2'
cp times/y.npy turned
job turned turned
has turned 'transpose: {order: [2, 1]}' 'numbers for each position' 'conv: {name: answer, channels: 1, kernel: 1}'

# ---- networks of the zoo ----
for name in lenet resnet-20 googlenet; do
    "$CONVOY" models --as-job $name >$name.yaml 2>err || fail "models --as-job $name: $(cat err)"
    "$CONVOY" plan $name.yaml >table 2>&1 || fail "plan of $name: $(cat table)"
    "$CONVOY" plan $name.yaml --set "model=$name" >zoo 2>&1
    [ "$(grep -i '^ *total\|parameters' table)" = "$(grep -i '^ *total\|parameters' zoo)" ] || [ $name = googlenet ] || fail "$name has other parameters: $(tail -3 table zoo)"
done
has resnet-20 '    - conv: {name: ' '  output: '
contains googlenet.yaml aux && ! contains googlenet.yaml 'auxiliary heads, which help its training, are left out' && fail "auxiliary heads"
timeout 200 "$CONVOY" train lenet.yaml --threads 1 --out zoo-run --set train.epochs= --set train.steps=3 --set data.train.samples=256 >log 2>&1 || fail "lenet does not train: $(cat log)"

# ---- what does not fit ----
refused 'nowhere: no such file or folder (and no generated data set of this name); a relative path begins in the folder' "$CONVOY" new nowhere
echo 'some words' >words.dat
refused 'words.dat: this file is not in any format that is known' "$CONVOY" new words.dat
refused "--for is 'sorting', expected classify|regress|segment" "$CONVOY" new pack --for sorting
refused 'pack: samples have no target y of numbers, so there is nothing to fit: try --for classify' "$CONVOY" new pack --for regress
refused 'pack: samples have no target y with a value for each position of x' "$CONVOY" new pack --for segment
refused 'maps: samples have no label, so they cannot be classified: try --for segment' "$CONVOY" new maps --for classify
refused 'volumes: samples have no target y with a value for each position of x' "$CONVOY" new volumes --for segment
mkdir bare
cp maps/x.npy bare
refused 'bare: samples have only x, and neither a label nor a target y, so there is nothing to learn' "$CONVOY" new bare
refused "did you mean 'resnet" "$CONVOY" models --as-job resnet50
exit $failed
