#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# seconds: 30
# level: 2
# masks.sh: weights of positions in weight.npy: what the targets are where the weight is 0 changes no loss, no weight and
# no score, with mse, huber, softmax_cross_entropy, focal and dice, on one rank, on three, and on ranks that share the
# positions; a sample without weights does not count, and data without any are refused.
. "$CONVOY_SOURCE/tests/shell.inc"
export CONVOY_SITE=off

# npy SHAPE: a .npy file of bytes.
npy() {
    printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': ($1), }"
    cat
}
# bytes SCRIPT: 24 samples of 8x8 positions; the weight of a position is 0 on a third of them, and on all of sample 5.
bytes() {
    LC_ALL=C awk 'BEGIN { for (s = 0; s < 24; s++) for (p = 0; p < 64; p++) { w = s == 5 ? 0 : (s + p) % 3
        x = (7 * s + p * p) % 11; '"$1"' printf "%c", v + 1 } }'
}
# Bytes begin at 1, because awk cannot print a 0 in all versions; so labels are 1, 2 and 3, and class 0 never occurs.
for junk in 2 3; do
    mkdir junk$junk
    bytes 'v = x + 20;' | npy '24, 1, 8, 8' >junk$junk/x.npy
    bytes "v = w ? x % 3 : $junk + 5;" | npy '24, 8, 8' >junk$junk/y.npy
    bytes 'v = w;' | tr '\001\002\003' '\000\001\002' | npy '24, 8, 8' >junk$junk/weight.npy
done
cmp -s junk2/y.npy junk3/y.npy && fail "the targets are the same"
mkdir none
cp junk2/x.npy junk2/y.npy none
bytes 'v = 0;' | tr '\001' '\000' | npy '24, 8, 8' >none/weight.npy

# job LOSS ROLE CHANNELS: a network without a border, so that parts of a sample are computed as the whole.
job() {
    cat <<END
model: {layers: [{conv: {channels: 4, kernel: 3, pad: 1}}, tanh, {conv: {channels: $3, kernel: 1}}]}
data: {train: {path: junk2, format: npy}, test: {path: junk2, format: npy}, roles: {y: $2}}
train: {batch: 8, epochs: 3, loss: $1, optimizer: {name: adam, lr: 0.02}}
END
}
job mse field 1 >mse.yaml
job '{name: huber, delta: 0.7}' field 1 >huber.yaml
job softmax_cross_entropy '{role: label_map, classes: 4}' 4 >softmax_cross_entropy.yaml
job focal '{role: label_map, classes: 4}' 4 >focal.yaml
job dice '{role: label_map, classes: 4}' 4 >dice.yaml

# train JOB OUT DATA [OPTION ...]: prints the losses of the epochs.
train() {
    job=$1 out=$2 from=$3
    shift 3
    "$@" "$CONVOY" train "$job.yaml" --threads 1 --out "$out" --progress none --set "data.train={path: $from, format: npy}" \
        --set train.precise=true $more >log 2>&1 || fail "$out: $(tail -3 log)"
    sed -n 's/.*\(train loss [0-9.]*\).*/\1/p' log
}
more=
for loss in mse huber softmax_cross_entropy focal dice; do
    train $loss $loss.2 junk2 env >losses.2
    train $loss $loss.3 junk3 env >losses.3
    [ -s losses.2 ] && cmp losses.2 losses.3 || fail "$loss: targets of weight 0 change the loss: $(cat losses.2 losses.3)"
    "$CONVOY" test $loss.2 --threads 1 >score.2 2>log || fail "$loss: test: $(cat log)"
    "$CONVOY" test $loss.3 --threads 1 --data '{path: junk3, format: npy}' >score.3 2>log || fail "$loss: test: $(cat log)"
    sed 's/ of junk[23],//' score.2 >a
    sed 's/ of junk[23],//' score.3 | cmp - a || fail "$loss: targets of weight 0 change the scores: $(cat score.2 score.3)"
    # shellcheck disable=SC2086
    train $loss $loss.ranks junk3 $MPIEXEC_N 3 >losses.ranks
    paste losses.2 losses.ranks | awk '{ if (($3 - $6) ^ 2 > 1e-8) exit 1 }' || fail "$loss: other losses on three ranks: $(paste losses.2 losses.ranks)"
    [ $loss = dice ] && continue # it is no mean over positions
    more='--set parallel.spatial=2'
    # shellcheck disable=SC2086
    train $loss $loss.spatial junk3 $MPIEXEC_N 2 >losses.spatial
    more=
    paste losses.2 losses.spatial | awk '{ if (($3 - $6) ^ 2 > 1e-8) exit 1 }' || fail "$loss: other losses on ranks that share positions: $(paste losses.2 losses.spatial)"
done

# Positions of weight 0 do not count for the statistics of the targets: the others are 1, 2 and 3.
"$CONVOY" train mse.yaml --threads 1 --progress none --out scaled --set data.normalize_targets=auto --set train.epochs=1 >log 2>&1 || fail "normalize_targets: $(tail -3 log)"
# The mean of the targets that count, as the bytes say.
mean=$(bytes 'if (w) { n++; sum += x % 3 + 1 } if (s == 23 && p == 63) printf "%.6f", sum / n; continue;')
is=$(sed -n '/normalize_targets/{n;s/.*\[\(.*\)\]/\1/p;}' scaled/job.resolved.yaml)
awk -v a="$mean" -v b="$is" 'BEGIN { exit !(b != "" && (a - b) ^ 2 < 1e-10) }' || fail "the mean of the targets is $is and not $mean"

# Few positions may count.
mkdir sparse
cp junk2/x.npy junk2/y.npy sparse
bytes 'v = p == 0;' | tr '\001\002' '\000\001' | npy '24, 8, 8' >sparse/weight.npy
"$CONVOY" train mse.yaml --threads 1 --verbose --out few --set data.normalize_targets=auto --set train.epochs=1 --set 'data.train={path: sparse, format: npy}' >log 2>&1 ||
    fail "normalize_targets of few positions: $(tail -3 log)"
grep -q 'statistics of 24 samples' log || fail "not all samples are counted: $(cat log)"

# Sample 5 does not count: without it all is the same.
"$CONVOY" test mse.2 --threads 1 --json >whole 2>log || fail "test: $(cat log)"
"$CONVOY" test mse.2 --threads 1 --json --data '[{path: junk2, format: npy, range: "0:5"}, {path: junk2, format: npy, range: "6:24"}]' >without 2>log || fail "test: $(cat log)"
number() { sed -e 's/"regression".*//' -e 's/"rmse_by.*]//' "$2" | sed -n 's/.*"'"$1"'": \(-*[0-9.e-]*\).*/\1/p' | head -n 1; }
for key in loss rmse r2; do
    awk -v a="$(number $key whole)" -v b="$(number $key without)" 'BEGIN { exit !(a != "" && (a - b) ^ 2 < 1e-12) }' || fail "$key counts a sample without weights: $(number $key whole), $(number $key without)"
done
# Points and maps of the report leave out positions of weight 0.
[ "$(grep -o '"prediction": \[[^]]*' whole | tr ',' '\n' | grep -c null)" -gt 100 ] || fail "points of weight 0 are in the report"

# Nothing counts.
refused 'no sample counts for the loss: all weights are 0' "$CONVOY" test mse.2 --threads 1 --data '{path: none, format: npy}'
refused 'no sample counts for the loss: all weights are 0' "$CONVOY" train mse.yaml --threads 1 --progress none --out no --set 'data.val={path: none, format: npy}'
sed 's/loss: mse/loss: mse, metrics: rmse/' mse.yaml >flat.yaml
"$CONVOY" train flat.yaml --threads 1 --progress none --out flat --set 'data.train={path: none, format: npy}' >log 2>&1 || fail "a batch without weights: $(tail -3 log)"
grep -q 'train loss 0' log || fail "the loss of batches without weights is not 0: $(cat log)"

# Weights that do not fit.
cp -r junk2 odd
bytes 'v = w;' | head -c $((24 * 32)) | npy '24, 4, 8' >odd/weight.npy
refused 'weight is 8x4x8, expected one for each of the 8 samples' "$CONVOY" train mse.yaml --threads 1 --progress none --out odd_run --set 'data.train={path: odd, format: npy}' --set 'data.test={path: odd, format: npy}'
exit $failed
