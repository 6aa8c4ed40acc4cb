#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan
# level: 2
# not_finite.sh: a loss that is not finite ends the run on all ranks before any weight is updated; layer, pass, rank and
# samples are named, and the checkpoint of the step before can be used to continue.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
sed -i '/batch_norm/d; s/lr: 0.01, momentum: 0.9/lr: 1e18/; s/every: 2 steps/every: 1 steps/; /augment/d' job.yaml

# lost RANKS FOLDER [OPTION...]: the run ends with a fault, and reports where the first value that is not finite is.
lost() {
    ranks=$1 folder=$2
    shift 2
    # shellcheck disable=SC2086
    timeout 60 $MPIEXEC_N $ranks "$CONVOY" train job.yaml --threads 1 --progress none --out "$folder" "$@" >log 2>&1 && fail "$folder: the run does not fail although the loss is not finite"
    grep -q 'the loss of step [0-9]* is not finite' log || { fail "$folder: the message does not name the loss"; cat log; }
    contains "$folder/STATUS" 'failed step' || fail "$folder: STATUS is $(cat "$folder/STATUS")"
}

for ranks in 1 2 3; do
    lost $ranks wide-$ranks
    grep -Eq 'the first value that is not finite is in [a-z_0-9.]+ \((forward|backward)\), on rank [0-9], of samples? [0-9]+' log || { fail "the message on $ranks ranks does not name layer, rank and sample"; cat log; }
    grep -q 'the checkpoint of step [0-9]* holds finite weights' log || { fail "the message does not name the checkpoint to continue from"; cat log; }
    [ $ranks = 2 ] || continue
    # The weights of the step before are unchanged: training continues from them at another rate, to its end.
    # shellcheck disable=SC2086
    timeout 60 $MPIEXEC_N $ranks "$CONVOY" train job.yaml --threads 1 --progress none --out wide-$ranks --resume --set train.optimizer.lr=1e-30 >log 2>&1 ||
        grep -q 'is not finite' log || { fail "the run does not resume on $ranks ranks"; cat log; }
done

# With sums over ranks in the forward pass (batch norm), which the search for the number repeats; and with
# micro-batches.
sed -i 's/    - relu/    - batch_norm\n    - relu/' job.yaml
lost 3 norm --set train.optimizer.lr=1e30
for ranks in 2 3; do lost $ranks zero1-$ranks --set train.optimizer.lr=1e30 --set update=zero1; done
grep -q 'the first value that is not finite is in' log || { fail "zero1: the message does not name the layer"; cat log; }
lost 2 micro --set train.optimizer.lr=1e30 --set train.accumulate=2
grep -q 'the first value that is not finite is in' log || { fail "micro-batches: the message does not name the layer"; cat log; }

# update: local: only one rank has the sample, and all of them end at the same step, without the watchdog.
awk 'BEGIN { print "a,b,y"; for (i = 0; i < 64; i++) print i / 64 "," (i == 37 ? 3e38 : 0.5) "," 0.25 }' >wide.csv
cat >local.yaml <<'END'
model: {layers: [{fc: {channels: 8}}, {fc: {channels: 1}}]}
data: {train: {path: wide.csv, y: [y]}, normalize: none}
train: {batch: 4, epochs: 3, optimizer: {name: sgd, lr: 0.1}}
update: {mode: local, every: 4}
END
# shellcheck disable=SC2086
timeout 60 $MPIEXEC_N 3 "$CONVOY" train local.yaml --threads 1 --progress none --out local >log 2>&1 && fail "local: the run does not fail although the loss is not finite"
grep -Eq 'the loss of step [0-9]+ is (nan|infinite)' log || { fail "local: the message does not name the loss"; cat log; }
contains local/STATUS 'failed step' || fail "local: STATUS is $(cat local/STATUS)"
exit $failed
