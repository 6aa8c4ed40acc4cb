#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: clang
# level: 2
# pass.sh: a user's partitioning pass sees the layers of the network and cuts it into the stages of a pipeline, or chooses
# the layers that ranks split by channels, with the losses of one rank; what is wrong in a pass is named.
[ "$CONVOY_SANITIZE" = OFF ] || { echo "libraries are not built with the sanitizers"; exit 77; }
. "$CONVOY_SOURCE/tests/shell.inc"

library() {
    to=$1
    shift
    "$CC" -std=c11 -Wall -Wextra -Wno-unused -shared -fPIC -I "$CONVOY_SOURCE/include" "$@" "$CONVOY_SOURCE/tests/extension/place.c" \
        -o "$to" || { echo "$to does not compile"; exit 1; }
}

cat >job.yaml <<'END'
libraries: [place.so]
model:
  layers:
    - conv: {name: first, channels: 4, kernel: 3, pad: 1}
    - relu
    - conv: {name: second, channels: 4, kernel: 3, pad: 1}
    - add: {name: join, from: [second, relu1]}
    - batch_norm
    - fc: {name: late, channels: 4}
data:
  train: {format: synthetic, samples: 64, shape: [3, 8, 8], classes: 4}
train: {batch: 16, epochs: 1, accumulate: 4, optimizer: {name: sgd, lr: 0.01}}
parallel: {pipeline: 2}
log: {every: 1}
END
losses() { grep '"kind": "step"' "$1/metrics.jsonl" | sed 's/.*"loss": \([^,]*\),.*/\1/'; }

library place.so
"$CONVOY" train job.yaml --out one --set parallel.pipeline=1 >log 2>&1 || fail "one rank: $(cat log)"
$MPIEXEC_N 2 "$CONVOY" train job.yaml --out two --verbose >log 2>&1 || fail "two stages: $(cat log)"
contains log "place.so: the pass late has placed 7 of 7 layers" || fail "the pass is not in the log: $(cat log)"
contains log "the stages begin with first and late" || fail "another cut: $(grep pipeline log)"
losses one >expected
$MPIEXEC_N 2 "$CONVOY" train job.yaml --out three --verbose --set 'parallel={tensor: 2}' >log 2>&1 || fail "two parts: $(cat log)"
contains log "place.so: the pass late has split 1 of 7 layers" || fail "the pass is not in the log: $(cat log)"
contains log "split 1 layer with weights by channels (late), and share the samples of 2" || fail "another split: $(cat log)"
losses three | paste - expected | awk '{ d = $1 - $2; if (d < 0) d = -d; if (NF != 2 || d > 1e-5 * $2) bad = 1 } END { exit bad || NR != 4 }' ||
    fail "losses $(losses three | tr '\n' ' '), expected $(tr '\n' ' ' <expected)"
losses two | paste - expected | awk '{ d = $1 - $2; if (d < 0) d = -d; if (NF != 2 || d > 1e-5 * $2) bad = 1 } END { exit bad || NR != 4 }' ||
    fail "losses $(losses two | tr '\n' ' '), expected $(tr '\n' ' ' <expected)"
$MPIEXEC_N 2 "$CONVOY" train job.yaml --out without --set 'libraries=[]' >log 2>&1 || fail "without the pass: $(cat log)"
contains log "the stages begin with first and late" && fail "the cut by time is the same, so the test shows nothing"
"$CONVOY" check-op place.so >log 2>&1 && contains log 'check-op: 0 operators, 0 checks, 0 failed' || fail "check-op: $(cat log)"

grid="parallel={pipeline: 2}"
finds() {
    library "$1.so" "-D$1"
    # shellcheck disable=SC2086
    refused "$2" $MPIEXEC_N 2 "$CONVOY" train job.yaml --out bad --set "libraries=[$1.so]" --set "$grid"
}
finds GIVES_UP "GIVES_UP.so, pass late: it gives up"
finds NO_REASON "NO_REASON.so, pass late: it failed and gave no reason"
finds NO_LAYER "pass late: there is no layer 7, expected 0 to 6"
finds NO_STAGE "pass late: layer first is placed on stage 3, and "
finds TWICE "pass late: layer first is placed on stage 1 and on stage 2: leave one of them out"
finds ONE_STAGE "stage 2"
finds BACKWARDS "is placed on stage 1"
grid="parallel={tensor: 2}"
finds SPLITS_RELU "pass late: layer relu1 has no weights that can be split by channels: look at can_split"
finds PLACES "only \`run\` places layers on stages, not \`split\`"
grid="parallel={pipeline: 2}"
finds NO_SIZE "the size of cvy_partition is 0"
finds NO_RUN "partitioning pass 0 has no run or split function"
exit $failed
