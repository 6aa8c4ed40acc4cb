#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# old_checkpoints.sh: runs that convoy 0.1 has begun are resumed, and give the losses that 0.1 itself gave when it went
# on; test, predict and inspect read them. tests/data/files/version-0.1 has them: adam on one rank (sync) and with
# ZeRO-1 on two (sharded), and momentum with delayed updates on two ranks (pipelined), each stopped after step 4 of 6.
. "$CONVOY_SOURCE/tests/shell.inc"
files=$CONVOY_SOURCE/tests/data/files/version-0.1
data='{format: synthetic, samples: 8, shape: [3, 8, 8], classes: 4}'
cp "$files/job.yaml" .

# losses NAME STEP5 STEP6: the losses of the last two steps of the run
losses() {
    grep '"kind": "step"' "$1/metrics.jsonl" | tail -n 2 | sed 's/.*"loss": \([^,]*\),.*/\1/' >got
    printf '%s\n%s\n' "$2" "$3" | paste - got | awk '{ d = $1 - $2; if (d < 0) d = -d; if (NF != 2 || d > 1e-4 * $1) bad = 1 } END { exit bad || NR != 2 }' ||
        fail "$1: losses $(tr '\n' ' ' <got), expected $2 $3"
}

for ranks in 1 2; do
    for mode in sync sharded pipelined; do
        run=$mode-$ranks
        cp -r "$files/$mode" "$run"
        chmod -R u+w "$run"
        set -- --out "$run" --resume
        case $mode in
        sharded) set -- "$@" --set update=sharded ;;
        pipelined) set -- "$@" --set update=pipelined --set "train.optimizer={name: sgd, lr: 0.01, momentum: 0.9}" ;;
        esac
        if [ $ranks = 1 ]; then
            "$CONVOY" test "$run" --data "$data" >log 2>&1 || fail "test of $run: $(cat log)"
            contains log accuracy || fail "test of $run: $(cat log)"
            "$CONVOY" predict "$run" --data "$data" --out "$run.csv" >log 2>&1 || fail "predict of $run: $(cat log)"
            [ "$(wc -l <"$run.csv")" -ge 8 ] || fail "predict of $run: $(cat "$run.csv")"
            "$CONVOY" inspect "$run" --verify >log 2>&1 || fail "inspect of $run: $(cat log)"
            "$CONVOY" train job.yaml "$@" >log 2>&1 || fail "$run: $(cat log)"
        else
            $MPIEXEC_N 2 "$CONVOY" train job.yaml "$@" >log 2>&1 || fail "$run: $(cat log)"
        fi
        contains log 'resumed after step 4 of 6' || fail "$run: $(cat log)"
        case $mode in
        pipelined) losses "$run" 1.4348243 1.3907130 ;;
        *) losses "$run" 1.2609525 1.3405676 ;;
        esac
    done
done
exit $failed
