#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich
# file_limit.sh: at the limit on the size of files (ulimit -f) a training goes on without its checkpoints, and predict and
# convert end with code 1 and a message with the file, its size and the limit; no signal or crash ends them, and no file
# has a final name. What the command prints beyond the limit is an error, too.
. "$CONVOY_SOURCE/tests/shell.inc"

limit=8388608 # MPI libraries write files of some megabytes
# limited COMMAND...: runs it with the limit; the units of ulimit are 512 bytes, and 1024 in bash.
limited() {
    ( ulimit -f 16384; [ "$(ulimit -f)" = 16384 ] || exit 77; [ -z "${BASH_VERSION:-}" ] || ulimit -f 8192
      timeout 60 "$CONVOY" "$@" ) >out 2>err
}
# says FILE: the message has the file and the limit, and the code is 1.
says() {
    [ $code = 1 ] || fail "exit code $code, expected 1: $(cat err)"
    grep -q "convoy: error: .*$1.*: cannot write.*File too large: it has [0-9]* bytes, and the limit of this process for a file is $limit" err ||
        fail "no message of $1: $(cat err)"
}

cat >job.yaml <<END
model: {layers: [{fc: {channels: 2000}}, {fc: {channels: 2000}}]}
data: {train: {format: synthetic, samples: 2000, shape: [4], classes: 2000}, threads: 1}
train: {batch: 100, steps: 4, optimizer: {name: sgd, lr: 0.01}}
checkpoint: {every: 2 steps}
END
limited train job.yaml --threads 1 --out small
code=$?
[ $code = 1 ] || fail "exit code $code of a training whose last save fails, expected 1"
grep -q "checkpoint of step 2 failed, training continues: .*cannot write.*File too large: it has $limit bytes" err || fail "no warning: $(cat err)"
grep -q '^failed step 4 of 4' small/STATUS || fail "STATUS: $(cat small/STATUS)"

"$CONVOY" train job.yaml --threads 1 --out run >out 2>&1 || fail "a training: $(cat out)"
formats='csv npy'
data='{format: synthetic, samples: 2200, shape: [1, 32, 32], classes: 2000}'
sets='pack tfrecord'
"$CONVOY" info | grep -q '^hdf5  *yes' && { formats="$formats h5 nc"; sets="$sets hdf5"; }
"$CONVOY" info | grep -q '^lmdb  *yes' && sets="$sets lmdb"
for name in $formats; do
    limited predict run --threads 1 --data '{format: synthetic, samples: 1200, shape: [4], classes: 2000}' --out "pr.$name"
    code=$?
    says "pr.$name"
done
[ -z "$(ls pr.* 2>/dev/null)" ] || fail "parts of predictions are left: $(ls pr.*)"
for name in $sets; do
    limited convert "$data" $name-set --format $name --parts 1
    code=$?
    says $name-set
done
exit $failed
