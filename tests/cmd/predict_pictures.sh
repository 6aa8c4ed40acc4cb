#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan
# predict_pictures.sh: one picture, a list and a pattern of pictures are answered by file, class and probability; colours
# are those of the training; `convoy test` names the files of its worst pictures, and the report shows the names.
. "$CONVOY_SOURCE/tests/shell.inc"

"$CONVOY" convert '{format: pictures, samples: 24, classes: 3, size: 24, noise: 0}' set --format folder >log 2>&1 || {
    grep -q 'cannot write PNG' log && exit 77
    fail "convert fails: $(cat log)"
}
cat >job.yaml <<END
model: {layers: [{conv: {channels: 4, kernel: 3}}, relu, global_avg_pool, {fc: {channels: 3}}]}
data: {train: set, test: set, augment: [{resize: 16}]}
train: {batch: 8, epochs: 1, optimizer: {name: sgd, lr: 0.001}}
END
"$CONVOY" train job.yaml --threads 1 --out run >log 2>&1 || fail "train fails: $(cat log)"
predict() {
    "$CONVOY" predict run --threads 1 --classes --names "$@" >log 2>&1 || fail "predict $*: $(cat log)"
}
predict --data set --out all.csv
first=$(head -n 1 all.csv | cut -d, -f1) last=$(tail -n 1 all.csv | cut -d, -f1)
[ -f "$first" ] && [ -f "$last" ] || fail "no files in the column of samples: $(head -n 3 all.csv)"

cp "$first" cat.png && mkdir some && cp "$first" "$last" some
predict --data "$last" --header --out one.csv
[ "$(head -n 1 one.csv)" = sample,class_1,probability_1 ] || fail "header: $(head -n 1 one.csv)"
[ "$(tail -n +2 one.csv | cut -d, -f1)" = "$last" ] || fail "one picture: $(cat one.csv)"
predict --data cat.png --out one.csv --force
[ "$(cut -d, -f1,2 one.csv)" = "cat.png,$(head -n 1 all.csv | cut -d, -f2)" ] || fail "one picture: $(cat one.csv)"
predict --data "[$first, $last]" --out list.csv
[ "$(cut -d, -f1 list.csv | tr '\n' ' ')" = "$first $last " ] || fail "a list of pictures: $(cat list.csv)"
[ "$(cut -d, -f2 list.csv | tr '\n' ' ')" = "$(sed -n '1p;$p' all.csv | cut -d, -f2 | tr '\n' ' ')" ] || fail "other classes: $(cat list.csv)"
predict --data 'some/*.png' --out pattern.csv
[ "$(wc -l <pattern.csv)" = 2 ] && grep -q '^some/' pattern.csv || fail "a pattern: $(cat pattern.csv)"
refused 'no such file' "$CONVOY" predict run --data dog.png --out x.csv

# A network for grey pictures decodes colours as grey.
"$CONVOY" train job.yaml --threads 1 --out grey --set 'data.train={path: set, channels: grey}' --set data.test= >log 2>&1 || fail "train fails: $(cat log)"
"$CONVOY" predict grey --threads 1 --data cat.png --out grey.csv >log 2>&1 || fail "a grey network: $(cat log)"

# Validation pictures are decoded to the channels of the training, either way round.
for pair in grey,rgb rgb,grey; do
    for verb in plan train; do
        "$CONVOY" $verb job.yaml --threads 1 --set "data.train={path: set, channels: ${pair%,*}}" --set "data.val={path: set, channels: ${pair#*,}}" \
            $([ $verb = plan ] || echo "--out $pair") >log 2>&1 || fail "$verb with $pair pictures fails: $(cat log)"
    done
    grep -q "set: its pictures are read as .*, as those of the training data" log || fail "nothing says that $pair pictures differ: $(cat log)"
done
"$CONVOY" convert '{format: pictures, samples: 6, classes: 3, size: 20}' small --format folder >log 2>&1 || fail "convert fails: $(cat log)"
for verb in plan train; do
    refused 'small: samples are 3x20x20, the network was trained on 3x24x24' "$CONVOY" $verb job.yaml --set data.augment= --set data.val=small --set data.test= \
        $([ $verb = plan ] || echo "--out sizes")
done
echo "convoy" >notes.png
refused 'notes.png' "$CONVOY" predict run --data notes.png --out x.csv

"$CONVOY" test run --threads 1 >log 2>&1 || fail "test fails: $(cat log)"
name=$(tr '{' '\n' <run/test.json | sed -n 's/.*"sample": [0-9]*, "name": "\([^"]*\)", "truth".*/\1/p' | head -n 1)
[ -f "$name" ] || fail "the worst picture is not named by a file: '$name'"
"$CONVOY" report run >log 2>&1 || fail "report fails: $(cat log)"
grep -q "<span title=\"$name\">${name##*/}</span>" run/report.html || fail "the report does not show $name"
exit $failed
