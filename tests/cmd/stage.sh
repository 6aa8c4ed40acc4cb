#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# stage.sh: data.stage on one rank and on two: the training is the same as from the original data, no file remains,
# copies that a killed run leaves are found again, made again when the source changes, and refused if there is no space or the format
# needs more files; a copy is its user's alone, and what others have prepared in the folder is refused; data.cache gives the same training; metrics.jsonl has the fill of the loader's buffers.
. "$CONVOY_SOURCE/tests/shell.inc"

"$CONVOY" pack '{format: synthetic, samples: 90, shape: [3, 6, 6]}' packed >/dev/null || fail "pack"
"$CONVOY" pack '{format: synthetic, samples: 30, shape: [3, 6, 6], seed: 2}' more/packed >/dev/null || fail "pack"
cat >job.yaml <<END
model: {layers: [{fc: {channels: 10}}]}
data:
  train: [{path: packed, range: "0:80%"}, more/packed]
  val: {path: packed, range: "80%:"}
train: {batch: 16, epochs: 3, optimizer: {name: sgd, lr: 0.01}, precise: true}
log: {every: 1}
END
losses() { sed -n 's/.*"loss": \([0-9.e-]*\).*/\1/p; s/.*"val_loss": \([0-9.e-]*\).*/\1/p' "$1/metrics.jsonl"; }
train() { out=$1; shift; "$CONVOY" train job.yaml --threads 1 --progress plain --out "$out" "$@" >log 2>&1 || fail "$*: $(cat log)"; }
train plain
[ -n "$(losses plain)" ] || fail "the run logged no losses"
grep -q '"seconds_data_wait": [0-9].*"steps_ready": [0-9]' plain/metrics.jsonl || fail "metrics.jsonl does not have the wait for data and the steps that were ready: $(tail -n 3 plain/metrics.jsonl)"
# hold OUT COMMAND...: starts a training that goes on until release, and waits until its copies are there.
hold() {
    log=$1.log; shift
    "$@" --threads 1 --progress plain --out "held-$log" --set train.epochs=1000000 >"$log" 2>&1 &
    held=$!
    for _ in $(seq 600); do
        [ ! -s "held-$log/metrics.jsonl" ] || return 0
        kill -0 $held 2>/dev/null || break
        sleep 0.1
    done
    fail "$*: $(cat "$log")"
}
release() { { kill -KILL $held; wait $held; } 2>/dev/null; }
same() { [ "$(losses "$1")" = "$(losses plain)" ] || fail "$1: the losses are not those of the plain run: $(losses "$1"), $(losses plain)"; }

train staged --set data.stage=near
same staged
grep -q 'data.stage: packed copied to near/convoy-.*: 3 files, .* read back and verified' log || fail "the copy is not reported: $(cat log)"
grep -q 'data.stage: packed is in near/convoy-' log || fail "val does not find train's copy: $(cat log)"
[ -z "$(ls near)" ] || fail "copies are left behind: $(ls near)"

# shellcheck disable=SC2086
$MPIEXEC_N 2 "$CONVOY" train job.yaml --threads 1 --progress plain --out two --set data.stage=near >log 2>&1 || fail "two ranks: $(cat log)"
grep -q 'with 2 ranks, read back' log || fail "both ranks should help: $(cat log)"
# shellcheck disable=SC2086
$MPIEXEC_N 2 "$CONVOY" train job.yaml --threads 1 --out two-plain >log 2>&1 || fail "two ranks: $(cat log)"
[ "$(losses two)" = "$(losses two-plain)" ] || fail "two ranks: the losses change with the copy"

# A run that is killed leaves its copies, and another one beside it uses them.
hold first "$CONVOY" train job.yaml --set data.stage=near
for copy in near/convoy-*/data/packed; do
    cmp -s "$copy/part-00000.cvy" packed/part-00000.cvy || cmp -s "$copy/part-00000.cvy" more/packed/part-00000.cvy || fail "$copy differs"
done
train beside --set data.stage=near
[ "$(ls -d near/convoy-*/ | wc -l)" = 2 ] || fail "copies that a run uses are removed: $(ls near)"
grep -q 'copied to' log && fail "an existing copy is made again: $(cat log)"
release
touch -d '2001-02-03' packed/pack.json
train newer --set data.stage=near
same newer
grep -q 'data.stage: packed copied to' log || fail "a changed source is not copied again: $(cat log)"
[ -z "$(ls near)" ] || fail "the last run leaves copies: $(ls near)"

# A copy is this user's alone. A folder that somebody else has prepared is not used, and nothing is written through links.
umask 022
chmod 600 packed/*
mkdir -m 1777 shared
hold private "$CONVOY" train job.yaml --set data.stage=shared
name=$(cd shared && ls -d "convoy-$(id -u)"-* | head -n 1)
[ "$(stat -c %a "shared/$name")" = 700 ] || fail "the copy's folder has the mode $(stat -c %a "shared/$name")"
for file in "shared/$name"/lock "shared/$name"/manifest "shared/$name"/data/packed/*; do
    [ "$(stat -c %a "$file")" = 600 ] || fail "$file has the mode $(stat -c %a "$file")"
done
release
chmod 755 "shared/$name"
refused "with mode 0755, expected user $(id -u) and mode 0700" "$CONVOY" train job.yaml --threads 1 --out bad --set data.stage=shared
chmod 700 "shared/$name"
for inner in lock manifest; do
    echo precious >victim
    rm "shared/$name/$inner"
    ln -s "$work/victim" "shared/$name/$inner"
    "$CONVOY" train job.yaml --threads 1 --out "link-$inner" --set data.stage=shared >log 2>&1
    [ "$(cat victim)" = precious ] || fail "a link in place of $inner is followed"
    [ ! -L "shared/$name/$inner" ] || rm "shared/$name/$inner"
done
rm -rf "shared/$name" elsewhere
mkdir elsewhere
ln -s "$work/elsewhere" "shared/$name"
refused "it is no folder that can be used for a copy: its path has a symbolic link" "$CONVOY" train job.yaml --threads 1 --out bad --set data.stage=shared
[ -z "$(ls elsewhere)" ] || fail "a copy is made behind a link"
rm -rf shared
mkdir shared
chmod 777 shared
refused "all users may write in it (mode 0777" "$CONVOY" train job.yaml --threads 1 --out bad --set data.stage=shared
rm -rf shared

# Single files, with the files that belong to them.
mkdir files
for i in 1 3 0 2 1 3 0 2; do
    printf "\\00$i"
    head -c 3072 /dev/zero
done >files/data_batch_1.bin
printf '%s\n' zero one two three >files/batches.meta.txt
printf '\0\0\010\003\0\0\0\004\0\0\0\001\0\0\0\002abcdefgh' >files/my-images-idx3-ubyte
printf '\0\0\010\001\0\0\0\004\001\003\001\002' >files/my-labels-idx1-ubyte
printf 'a,b,label\n0,1,2\n3,4,0\n' >files/table.csv
single() {
    file=$1 beside=$2 count=$3
    set -- "$CONVOY" train job.yaml --set data.val= --set "data.train=$file" --set train.batch=2
    "$@" --threads 1 --progress plain --out "single-$file" >log 2>&1 || fail "$file: $(cat log)"
    "$@" --threads 1 --progress plain --out "single-$file-staged" --set data.stage=near >log 2>&1 || fail "$file: $(cat log)"
    [ -n "$(losses "single-$file")" ] && [ "$(losses "single-$file")" = "$(losses "single-$file-staged")" ] || fail "$file: the losses change with the copy"
    grep -q "data.stage: $file copied to" log || fail "$file is not staged: $(cat log)"
    hold "$file" "$@" --set data.stage=near
    copy=$(ls -d near/convoy-*/data)
    [ "$(ls "$copy" | wc -l)" = "$count" ] && [ -e "$copy/$file" ] || fail "$file: the copy holds $(ls "$copy")"
    [ -z "$beside" ] || cmp -s "$beside" "$copy/$beside" || fail "$file: $beside was not copied with it"
    release
    rm -rf near
}
cp files/* .
single data_batch_1.bin batches.meta.txt 2
single my-images-idx3-ubyte my-labels-idx1-ubyte 3
single table.csv '' 2
printf 'a.png 0\n' >list.txt
"$CONVOY" train job.yaml --out bad --set data.stage=near --set data.train=list.txt >log 2>&1 && fail "a list is staged"
grep -q 'the list list.txt needs the files that it names' log || fail "the cause is not named: $(cat log)"
"$CONVOY" train job.yaml --out bad --set data.stage=near --set 'data.train={path: list.txt, format: fits}' >log 2>&1 && fail "a list of FITS files is staged"
grep -q 'the list list.txt needs the files that it names' log || fail "the cause is not named for FITS: $(cat log)"
"$CONVOY" train job.yaml --out bad --set data.stage=near --set data.train=nowhere >log 2>&1 && fail "nothing is staged"
grep -q 'nowhere' log || fail "the cause is not named: $(cat log)"
"$CONVOY" train job.yaml --out bad --set data.stage=job.yaml >log 2>&1 && fail "a file is taken for a folder"
[ ! -e bad ] || fail "a refused job leaves its folder"

mkdir 'two
lines'
cp -r packed 'two
lines'
ln -s 'two
lines' linked
"$CONVOY" train job.yaml --out bad --set data.stage=near --set data.train=linked/packed >log 2>&1 && fail "a path with a line break is staged"
grep -q 'a name with a line break cannot be staged' log || fail "the cause is not named: $(cat log)"

# From memory: the same. If there is not enough memory, a part is kept.
for cache in memory decoded; do
    train "$cache" --set "data.cache=$cache"
    same "$cache"
    grep -q 'data.cache: samples stay in memory' log || fail "$cache is not reported: $(cat log)"
    grep '"kind": "epoch"' "$cache/metrics.jsonl" | tail -n 1 | grep -q '"cached_samples": 120,' || fail "$cache: $(tail -n 1 "$cache/metrics.jsonl")"
done
train little --set data.cache=memory --set data.cache_limit=8000
same little
grep -q 'no room for more' log || fail "a full cache is not reported: $(cat log)"

# Data are prepared within the step: the run reports what it waits for.
train slow --set data.threads=0 --set data.val= --set 'data.train={format: synthetic, samples: 6000, shape: [3, 64, 64]}'
grep -q 'data is the bottleneck: steps waited [0-9]* % of their time' log || fail "the run does not say that data is the bottleneck: $(cat log)"
for threads in many -2 2000; do
    "$CONVOY" train job.yaml --out bad --set data.threads=$threads >log 2>&1 && fail "data.threads=$threads is accepted"
    grep -q 'expected auto or a number 0 .. 1024' log || fail "the cause is not named: $(cat log)"
done
exit $failed
