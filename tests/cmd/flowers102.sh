#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# flowers102.sh: examples/flowers102.yaml trains on a folder that is laid out as Oxford's set, with labels and splits in
# MAT-files: each split has its own pictures, and nothing says that they are the same; a list of one split names its files.
. "$CONVOY_SOURCE/tests/shell.inc"
export CONVOY_SITE=off
"$CONVOY" info | grep -q '^png *yes' || { echo "this build reads no PNG"; exit 77; }
"$CONVOY" info | grep -q '^libdeflate *yes' || { echo "this build has no libdeflate: the MAT-files are compressed"; exit 77; }

"$CONVOY" convert '{format: pictures, size: 16, classes: 3, samples: 7}' made --format list >log 2>&1 || fail "pictures: $(cat log)"
mkdir -p flowers/jpg
i=0
while read -r path _; do
    i=$((i + 1))
    cp "made/$path" "flowers/jpg/image_0000$i.png"
done <made/list.txt
cp "$CONVOY_SOURCE"/tests/data/files/flowers/*.mat flowers

sed -e 's/random_resized_crop: 224/random_resized_crop: 16/' -e 's/^model: .*/model: {layers: [global_avg_pool, fc: {channels: 3}]}/' \
    -e 's/batch: 64/batch: 2/' -e 's/epochs: 90/epochs: 2/' -e 's/, warmup: 5 epochs//' "$CONVOY_SOURCE/examples/flowers102.yaml" >job.yaml
"$CONVOY" train job.yaml --out run >log 2>&1 && grep -q '^epoch 2: ' log || fail "the example: $(cat log)"
grep -q 'same samples' log && fail "splits are taken for the same samples: $(cat log)"
grep -q 'flowers/jpg: 3 of 7 pictures are read, those of flowers/setid.mat:tstid' log && grep -q '3 classes counted from 1' log || fail "the log: $(cat log)"
sed 's/valid/tstid/' job.yaml >same.yaml
"$CONVOY" plan same.yaml >log 2>&1
grep -q 'read the same samples' log || fail "the same split twice is not noticed: $(cat log)"

"$CONVOY" convert '{path: flowers/jpg, labels: flowers/imagelabels.mat, ids: "flowers/setid.mat:trnid"}' list --format list --format-options 'root: flowers/jpg, separator: tab' >log 2>&1 ||
    fail "a list of a split: $(cat log)"
[ "$(cat list/list.txt)" = "$(printf 'image_00002.png\t0\nimage_00005.png\t0')" ] || fail "the list: $(cat list/list.txt)"
exit $failed
