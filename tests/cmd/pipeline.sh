#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich asan
# pipeline.sh: a training in a pipeline has the losses of one rank, says how it was cut, and writes checkpoints that any
# number of ranks and stages resumes, and that test, predict and inspect read; grids that do not fit are refused.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
sed 's|^log:.*||' job.yaml >pipe.yaml
echo 'log: {every: 1}' >>pipe.yaml
data='{format: synthetic, samples: 8, shape: [3, 8, 8], classes: 4}'
set -- --set train.accumulate=4

# losses RUN: the losses of its steps, one a line
losses() { grep '"kind": "step"' "$1/metrics.jsonl" | sed 's/.*"loss": \([^,]*\),.*/\1/'; }

# same RUN RUN N: the last N losses agree, up to rounding
same() {
    losses "$1" | tail -n "$3" >expected
    losses "$2" | tail -n "$3" | paste - expected | awk -v n="$3" '{ d = $1 - $2; if (d < 0) d = -d; if (NF != 2 || d > 1e-5 * $2) bad = 1 } END { exit bad || NR != n }' ||
        fail "$2: losses $(losses "$2" | tr '\n' ' '), expected those of $1: $(losses "$1" | tr '\n' ' ')"
}

"$CONVOY" train pipe.yaml --out one "$@" >log 2>&1 || fail "one rank: $(cat log)"
# The sanitizers see one run and one resume: other grids, orders and readers run the same code of the command, and that
# of the library is in test_program_stages.c and test_program_stages_modes.c.
orders='gpipe 1f1b' grids='1 1,2 1,2 2,3 3,4 2'
[ "$CONVOY_SANITIZE" = OFF ] || orders=1f1b grids='2 2'
for order in $orders; do
    $MPIEXEC_N 2 "$CONVOY" train pipe.yaml --out $order "$@" --set parallel.pipeline=2 --set parallel.order=$order >log 2>&1 || fail "$order: $(cat log)"
    same one $order 6
done
contains log 'pipeline: 2 stages of 1 rank, 4 micro-batches; the stages begin with ' || fail "the log does not describe the pipeline: $(cat log)"
[ "$(ls 1f1b/checkpoints/step-00000006/weights-0000*-of-00002.safetensors | wc -l)" = 2 ] || fail "$(ls 1f1b/checkpoints/step-00000006)"

# ---- another grid resumes ----
rm -r 1f1b/checkpoints/step-00000006
echo step-00000004 >1f1b/checkpoints/latest
echo "$grids" | tr , '\n' >grids
while read -r ranks stages <&3; do
    cp -r 1f1b "resumed-$ranks-$stages"
    $MPIEXEC_N $ranks "$CONVOY" train pipe.yaml --out "resumed-$ranks-$stages" --resume "$@" --set parallel.pipeline=$stages >log 2>&1 ||
        fail "$stages stages on $ranks ranks: $(cat log)"
    contains log 'resumed after step 4 of 6' || fail "$stages stages on $ranks ranks: $(cat log)"
    same one "resumed-$ranks-$stages" 2
done 3<grids
[ "$CONVOY_SANITIZE" = OFF ] || exit $failed

# ---- what reads checkpoints ----
"$CONVOY" test resumed-2-2 --data "$data" >log 2>&1 && contains log accuracy || fail "test: $(cat log)"
$MPIEXEC_N 2 "$CONVOY" test resumed-2-2 --data "$data" >log2 2>&1 || fail "test on two ranks: $(cat log2)"
"$CONVOY" predict resumed-2-2 --data "$data" --out rows.csv >log 2>&1 || fail "predict: $(cat log)"
"$CONVOY" inspect resumed-2-2 --verify >log 2>&1 || fail "inspect: $(cat log)"
"$CONVOY" export resumed-2-2 whole.safetensors >log 2>&1 || fail "export: $(cat log)"

# ---- bad input ----
refused 'the number of ranks must be a multiple' $MPIEXEC_N 3 "$CONVOY" train pipe.yaml --out bad --set parallel.pipeline=2
refused 'update: local has each rank train a whole model by itself' $MPIEXEC_N 2 "$CONVOY" train pipe.yaml --out bad --set parallel.pipeline=2 --set update=local
refused 'parallel.first_layers names 1 layer, and there are 2 stages' $MPIEXEC_N 2 "$CONVOY" train pipe.yaml --out bad --set parallel.pipeline=2 --set 'parallel.first_layers=[conv1]'
refused "parallel.first_layers names the layer 'conv'" $MPIEXEC_N 2 "$CONVOY" train pipe.yaml --out bad --set parallel.pipeline=2 --set parallel.first_layers=conv
refused 'parallel: order is "2f", expected 1f1b|gpipe' $MPIEXEC_N 2 "$CONVOY" train pipe.yaml --out bad --set parallel.pipeline=2 --set parallel.order=2f
exit $failed
