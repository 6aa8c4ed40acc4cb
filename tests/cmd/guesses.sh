#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# guesses.sh: what a reader guesses stands in one line of `convoy inspect` and of a run's log: grey or colour, by a look at
# more than the first picture, in folders, lists, LMDB, TFRecord and HDF5; where the channels of an array are; the order of
# classes that are numbers; the names of data sets and features. What the source says is no guess.
. "$CONVOY_SOURCE/tests/shell.inc"
export CONVOY_SITE=off
has() { contains log "$1" || { fail "$2: no \"$1\""; cat log; }; }
lacks() { ! contains log "$1" || { fail "$2: \"$1\" is said"; cat log; }; }
inspect() { "$CONVOY" inspect "$1" >log 2>&1 || { fail "inspect $1"; cat log; }; }

# npy SHAPE: a .npy file of bytes.
npy() {
    printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': ($1), }"
    cat
}
# bytes N: that many bytes.
bytes() { LC_ALL=C awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) printf "%c", 1 + (i * 7 + int(i / 16)) % 120 }'; }

# ---- channels of an array ----
bytes 768 | npy '4, 8, 8, 3' >last.npy
inspect last.npy
has 'last.npy: samples are 8x8x3, and their last axis is read as the channels' "channels last"
has '3x8x8' "channels last"
inspect '{path: last.npy, channels: first}'
lacks 'last axis' "channels that the source gives"
has '8x8x3' "channels that the source gives"
bytes 768 | npy '4, 8, 12, 2' >two.npy
inspect two.npy
has 'are read as 8 channels: if the last axis counts the channels, say `channels: last`' "a last axis of two"
has '8x12x2' "a last axis of two"
bytes 1372 | npy '4, 7, 7, 7, 1' >volumes.npy
inspect volumes.npy
has '1x7x7x7' "volumes with their channels last"
for shape in '4, 3, 8, 8' '4, 1, 8, 24' '4, 4, 12, 4' '12, 64'; do
    bytes 768 | npy "$shape" >first.npy
    inspect first.npy
    lacks 'last axis' "channels first, $shape"
done

# ---- grey and colour ----
bytes 768 | npy '4, 3, 8, 8' >colour.npy
bytes 256 | npy '4, 1, 8, 8' >grey.npy
"$CONVOY" convert colour.npy colour --format folder >log 2>&1 && "$CONVOY" convert grey.npy grey --format folder >log 2>&1 || {
    grep -q 'built without' log && { echo "this build writes no PNG"; exit 77; }
    fail "no pictures"; cat log
}
# set NAME A B: a folder with pictures of A in class a, and of B in class b.
set_of() {
    mkdir -p "$1/a" "$1/b"
    for i in 0 1 2 3; do
        cp "$2/0000000$i.png" "$1/a/$i.png"
        cp "$3/0000000$i.png" "$1/b/$i.png"
    done
}
set_of both_grey grey grey
set_of grey_first grey colour
set_of colour_first colour grey
set_of one_grey colour colour
cp grey/00000002.png one_grey/b/2.png
inspect both_grey
has 'both_grey/a/0.png is grey, and so are all of 8 pictures that were looked at: all are read as grey' "a grey set"
for form in folder list lmdb hdf5 tfrecord; do
    for name in grey_first colour_first one_grey; do
        to=$name
        case $form in
        folder) ;;
        list) to=$name.txt; for class in a b; do for i in 0 1 2 3; do echo "$name/$class/$i.png $class"; done; done >$to ;;
        *) to=$name.$form
            if ! "$CONVOY" convert $name $to --format $form >log 2>&1; then
                grep -q 'has no\|without' log && continue 2
                fail "convert to $form"; cat log
            fi ;;
        esac
        inspect $to
        case $name in
        grey_first) has 'is in colour, and the first picture of the set is grey (so are 4 of 8 that were looked at): all are read as grey, unless' "$form, $name" ;;
        colour_first) has 'is grey, and the first picture of the set is in colour (so are 4 of 8 that were looked at): all are read in colour, unless' "$form, $name" ;;
        one_grey) has 'is grey, and the first picture of the set is in colour (so are 7 of 8' "$form, $name" ;;
        esac
        [ $form = folder ] || continue
        "$CONVOY" inspect "{path: $to, channels: rgb}" >log 2>&1 || fail "channels: rgb"
        lacks 'is grey' "channels that the source gives, $name"
    done
done
# Each class has a picture that is looked at: one of 200 is in colour, alone in its class.
mkdir -p many/a many/b
for i in $(seq 200); do cp grey/00000001.png many/a/$i.png; done
cp colour/00000001.png many/b/1.png
inspect many
has 'many/b/1.png is in colour, and the first picture of the set is grey (so are 16 of 32' "a class of one picture"

# ---- the log of a run has the same line ----
cat >job.yaml <<'END'
model: {layers: [{fc: {channels: 2}}]}
data: {train: one_grey}
train: {batch: 4, epochs: 1, optimizer: {name: sgd, lr: 0.01}}
END
"$CONVOY" train job.yaml --out run >log 2>&1 || { fail "a run"; cat log; }
[ "$(grep -c 'one_grey/b/2.png is grey, and the first picture' log)" = 1 ] || { fail "a run says it other than once"; cat log; }

# ---- classes that are numbers ----
mkdir numbers
for i in 0 1 2 10; do cp -r both_grey/a numbers/$i; done
inspect numbers
has 'counted from 0 in the order of their names as text: "10" is class 2' "classes 0, 1, 10, 2"
rm -r numbers/10
inspect numbers
lacks 'names as text' "classes 0, 1, 2"

# ---- names ----
if "$CONVOY" convert grey_first packed.tfrecord --format tfrecord >log 2>&1; then
    inspect packed.tfrecord
    has 'of the features of its records x is image/encoded, label is image/class/label' "features"
fi
if "$CONVOY" convert '{format: synthetic, samples: 8, shape: [3, 8, 8], classes: 2}' names --format hdf5 >log 2>&1; then
    inspect names
    has 'x is the data set x of 8x3x8x8, of which samples are read as 3x8x8, label is label' "data sets"
    inspect '{path: names, x: x, label: label}'
    lacks 'is the data set' "data sets that the source names"
fi
exit $failed
