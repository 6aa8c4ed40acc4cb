#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan
# convert.sh: any format is converted into any other and back: the bytes and labels are the same for any number of
# ranks; an interrupted conversion is completed.
. "$CONVOY_SOURCE/tests/shell.inc"
sums() { (cd "$1" && find . -type f | sort | xargs cksum); }

source='{format: synthetic, samples: 41, shape: [3, 9, 7], classes: 3}'
"$CONVOY" convert "$source" one --parts 5 >log 2>&1 || fail "convert fails: $(cat log)"
grep -q 'one: pack, 41 samples of 3 classes, .* in 5 parts' log || fail "the report: $(cat log)"
for n in 2 3; do
    $MPIEXEC_N $n "$CONVOY" convert "$source" "ranks$n" --parts 5 >log 2>&1 || fail "convert fails on $n ranks: $(cat log)"
    [ "$(sums one)" = "$(sums "ranks$n")" ] || fail "$n ranks write other files"
done

# Every format and back: encoded pictures stay the same to the bit.
if "$CONVOY" info | grep -q '^jpeg *yes'; then
    pictures='{format: pictures, size: [20, 34], classes: 4, samples: 31, encode: jpeg}'
else
    pictures='{format: pictures, size: 20, classes: 4, samples: 31}'
fi
"$CONVOY" convert "$pictures" pack --parts 3 >log 2>&1 || fail "pictures: $(cat log)"
for format in tfrecord lmdb hdf5 folder; do
    "$CONVOY" info | grep -q "^writes .* $format" || continue
    $MPIEXEC_N 2 "$CONVOY" convert "$pictures" "$format" --format "$format" --parts 3 >log 2>&1 || { fail "to $format: $(cat log)"; continue; }
    "$CONVOY" inspect "$format" >log 2>&1 && grep -q '31 samples' log || fail "inspect of $format: $(cat log)"
    [ $format = folder ] && continue # sorted by class
    $MPIEXEC_N 2 "$CONVOY" convert "$format" "back.$format" --parts 3 >log 2>&1 || fail "from $format: $(cat log)"
    [ "$(cksum <pack/part-00001.cvy)" = "$(cksum <"back.$format/part-00001.cvy")" ] && cmp -s pack/index.bin "back.$format/index.bin" || fail "$format gives other bytes"
done

# An interrupted conversion: a part is missing and the set is not closed. Another conversion must not be mixed with it.
"$CONVOY" convert "$source" again --parts 5 >log 2>&1 || fail "again: $(cat log)"
cp -r again cut
rm cut/pack.json cut/index.bin cut/part-00003.cvy
"$CONVOY" inspect cut >log 2>&1 && fail "half a set is taken for one"
"$CONVOY" convert "$source" cut --parts 5 >log 2>&1 && fail "a folder of unknown parts is taken"
grep -q 'is not empty' log || fail "not empty: $(cat log)"

# Training on the packed set gives the same losses as training on its source.
cat >job.yaml <<END
model: {layers: [{fc: {channels: 3}}]}
data: {train: SOURCE}
train: {batch: 8, epochs: 1, optimizer: sgd}
log: {every: 1}
END
losses() { sed "s|SOURCE|$1|" job.yaml >this.yaml && rm -rf run && "$CONVOY" train this.yaml --threads 1 --out run >log 2>&1 || fail "train from $1: $(cat log)"
    grep '"kind": "step"' run/metrics.jsonl | sed 's/.*"loss": \([0-9.e-]*\).*/\1/'; }
plain=$(losses "$source")
[ -n "$plain" ] && [ "$plain" = "$(losses one)" ] || fail "a packed set trains otherwise"

"$CONVOY" convert "$source" x --format tfrecrod >log 2>&1 && fail "an unknown format is taken"
grep -q "no data format to write 'tfrecrod'" log || fail "unknown format: $(cat log)"
"$CONVOY" convert '{format: synthetic, samples: 4, shape: [5], targets: 2}' x --format folder >log 2>&1 && fail "a folder takes vectors"
grep -q 'a folder holds pictures' log || fail "vectors: $(cat log)"
exit $failed
