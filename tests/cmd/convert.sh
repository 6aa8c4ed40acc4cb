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

# Lists: pictures are written beside the list, or the list names those of the source. Both are read back as the source.
if "$CONVOY" info | grep -q '^writes .* list'; then
    $MPIEXEC_N 2 "$CONVOY" convert "$pictures" list --format list --parts 3 >log 2>&1 || fail "to list: $(cat log)"
    head -n 1 list/list.txt | grep -q '^pictures/00000/00000000\.[jp][pn]g [0-9]$' && [ "$(wc -l <list/list.txt)" -eq 31 ] || fail "the list: $(head -n 1 list/list.txt)"
    "$CONVOY" convert list/list.txt back.list --parts 3 >log 2>&1 || fail "from list: $(cat log)"
    [ "$(cksum <pack/part-00001.cvy)" = "$(cksum <back.list/part-00001.cvy)" ] && cmp -s pack/index.bin back.list/index.bin || fail "a list gives other bytes"
    "$CONVOY" convert '{path: list, format: list}' back.folder --parts 3 >log 2>&1 || fail "from the folder of a list: $(cat log)"
    cmp -s back.list/index.bin back.folder/index.bin || fail "the folder of a list gives other samples"
    mkdir -p "set/a dog" set/cat,1
    cp "list/$(sed -n '1s/ .*//p' list/list.txt)" "set/a dog/# 1 2.png"
    cp "list/$(sed -n '2s/ .*//p' list/list.txt)" "set/cat,1/x.png"
    cp "list/$(sed -n '3s/ .*//p' list/list.txt)" "set/cat,1/y 3.png"
    "$CONVOY" convert set pack.set >log 2>&1 || fail "set: $(cat log)"
    for s in space tab comma; do
        for l in numbers names; do
            out="list.$s.$l"
            "$CONVOY" convert ./set "$out" --format list --parts 2 --format-options "separator: $s, labels: $l, root: set" >log 2>&1 || {
                grep -q 'has the separator in its name' log && [ $s$l != tabnames ] && [ $l = names ] || fail "list $s $l: $(cat log)"
                continue
            }
            [ -e "$out/pictures" ] && fail "pictures are copied, and root is given"
            "$CONVOY" convert "{path: $out/list.txt, root: set}" "pack.$s.$l" >log 2>&1 || fail "list $s $l back: $(cat log)"
            cmp -s pack.set/index.bin "pack.$s.$l/index.bin" && cmp -s pack.set/pack.json "pack.$s.$l/pack.json" || fail "list $s $l gives another set"
        done
    done
    [ "$(sed -n 1p list.tab.names/list.txt)" = "a dog/# 1 2.png	a dog" ] || fail "tab: $(cat list.tab.names/list.txt)"
    "$CONVOY" convert set list.absolute --format list >log 2>&1 && grep -q "^/.*/set/a dog/# 1 2.png 0$" list.absolute/list.txt || fail "absolute: $(cat log list.absolute/list.txt)"
    "$CONVOY" convert list.absolute/list.txt list.again --format list >log 2>&1 && fail "absolute paths are read without outside: true"
    "$CONVOY" convert '{path: list.absolute/list.txt, outside: true}' list.again --format list >log 2>&1 && cmp list.absolute/list.txt list.again/list.txt || fail "a list of a list: $(cat log)"
    "$CONVOY" convert pack x --format list --format-options 'files: name' >log 2>&1 && fail "records of a packed set are named"
    grep -q 'no files of their own' log || fail "files of a packed set: $(cat log)"
    "$CONVOY" convert set y --format list --format-options 'root: list' >log 2>&1 && fail "a root beside the files is taken"
    grep -q 'is not below root' log || fail "root: $(cat log)"
fi

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
