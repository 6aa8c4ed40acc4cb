#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# seconds: 40
# level: 2
# segmentation.sh: examples/segmentation.yaml trains on smaller maps, with the same losses and scores on one rank, on
# four, and on ranks that share the positions of samples or the layers; it also works on volumes and for fields of
# numbers. Maps of sizes that the network cannot halve are refused with the next sizes that fit.
. "$CONVOY_SOURCE/tests/shell.inc"
export CONVOY_SITE=off
sed -e 's/size: 64, samples: [0-9]*/size: 32, samples: 64/' -e 's/batch: .*/batch: 8/' "$CONVOY_SOURCE/examples/segmentation.yaml" >job.yaml
few="--set train.epochs= --set train.steps=8 --set train.precise=true --progress none"

# number KEY FILE: the first number of this key in a file of JSON.
number() { sed -n 's/.*"'"$1"'": \(-*[0-9.e-]*\).*/\1/p' "$2" | head -n 1; }
# near A B BOUND: whether two numbers differ by less.
near() { awk -v a="$1" -v b="$2" -v bound="$3" 'BEGIN { exit !(a != "" && b != "" && (a - b) ^ 2 < bound ^ 2) }'; }

# shellcheck disable=SC2086
"$CONVOY" train job.yaml --out run --threads 1 $few >log 2>&1 || fail "train fails: $(tail -3 log)"
"$CONVOY" test run --data '{format: shapes, size: 32, samples: 30, first: 5000}' --json >score || fail "test fails"
for key in '"iou_by_class": \[[0-9.e-]*, [0-9.e-]*, [0-9.e-]*\]' '"dice_by_class"' '"accuracy"' '"samples": 30'; do
    grep -q "$key" score || fail "the scores lack $key: $(cat score)"
done
sed 's/metrics: .*/metrics: accuracy/' job.yaml >plain.yaml
# shellcheck disable=SC2086
"$CONVOY" train plain.yaml --out plain --threads 1 $few >log.plain 2>&1 || fail "train fails: $(tail -3 log.plain)"
"$CONVOY" test plain --data '{format: shapes, size: 32, samples: 30, first: 5000}' --json >score.plain || fail "test fails"
[ "$(number iou score.plain)" = "$(number iou score)" ] || fail "a test of a map of labels does not add iou: $(cat score.plain)"
final=$(sed -n 's/.*train loss \([0-9.]*\).*/\1/p' log | tail -n 1)

# alike NAME RANKS OPTION ...: the same run with these options has the same losses, and its weights the same scores.
alike() {
    name=$1 ranks=$2
    shift 2
    # shellcheck disable=SC2086
    $MPIEXEC_N $ranks "$CONVOY" train job.yaml --out "$name" --threads 1 $few "$@" >log 2>&1 || { fail "$name: train fails: $(tail -3 log)"; return; }
    "$CONVOY" test "$name" --data '{format: shapes, size: 32, samples: 30, first: 5000}' --json >score."$name" || fail "$name: test fails"
    loss=$(sed -n 's/.*train loss \([0-9.]*\).*/\1/p' log | tail -n 1)
    near "$loss" "$final" 2e-3 || fail "$name: the loss is $loss, on one rank $final"
    near "$(number iou score."$name")" "$(number iou score)" 0.01 || fail "$name: iou is $(number iou score."$name"), on one rank $(number iou score)"
    echo "$name: loss $loss and $final, iou $(number iou score."$name") and $(number iou score)"
}
alike ranks 4
alike spatial 2 --set parallel.spatial=2
alike pipeline 2 --set parallel.pipeline=2
# shellcheck disable=SC2086
$MPIEXEC_N 4 "$CONVOY" test run --data '{format: shapes, size: 32, samples: 30, first: 5000}' --json >score4 || fail "test on four ranks fails"
near "$(number iou score4)" "$(number iou score)" 1e-3 || fail "iou is $(number iou score) on one rank, $(number iou score4) on four"

sed -e 's/size: 32/size: 16, dimensions: 3/' -e 's/depth: 3/depth: 2, up: resize, attention: true/' -e '/augment/d' job.yaml >volumes.yaml
# shellcheck disable=SC2086
"$CONVOY" train volumes.yaml --out volumes --threads 1 $few >log 2>&1 || fail "volumes: train fails: $(tail -3 log)"
grep -q '^done after 8 steps' log || fail "volumes: $(cat log)"

# A field of numbers: the network has an output for each position, and not one for each number of y.
sed -e 's/roles: .*/roles: {y: field}/' -e 's/loss: .*/loss: mse/' -e 's/metrics: .*/metrics: [rmse, {name: border_rmse, width: 2}]/' \
    job.yaml >field.yaml
# shellcheck disable=SC2086
"$CONVOY" train field.yaml --out field --threads 1 $few >log 2>&1 || fail "a field: train fails: $(tail -3 log)"
"$CONVOY" test field --data '{format: shapes, size: 32, samples: 5, first: 5000}' --json >score.field || fail "a field: test fails"
grep -q '"rmse_by_distance": \[[0-9.e-]*, [0-9.e-]*, [0-9.e-]*\]' score.field || fail "no error by distance: $(cat score.field)"

sed 's/size: 32/size: 36/' job.yaml >odd.yaml
refused 'sizes must be multiples of 8, and the input has 36x36; the next sizes that fit are 40x40 and 32x32' \
    "$CONVOY" train odd.yaml --out odd --progress none
exit $failed
