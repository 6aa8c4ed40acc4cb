#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# seconds: 90
# repeat.sh: a job whose kernels were chosen by measured times is run again with the plan of its first run, and ends
# with the same bits: on two ranks, and on two threads.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
. "$CONVOY_SOURCE/tests/robust/sweep.inc"
sed -i 's/channels: 4, kernel/channels: 32, kernel/; s/epochs: 2/epochs: 4/; s/shape: \[3, 8, 8\]/shape: [3, 16, 16]/; s/size: 8/size: 16/; s/conv: .*/&\n    - batch_norm\n    - dropout/' job.yaml
sample 3 20 20

# again RANKS OPTION...: the first run makes the plan; the others must end as it did.
again() {
    ranks=$1
    shift
    rm -rf first next
    # shellcheck disable=SC2086
    $MPIEXEC_N $ranks "$CONVOY" train job.yaml --progress none --out first --set plan.planning=measure "$@" >log 2>&1 || { fail "the first run fails: $(cat log)"; return; }
    n=0 same=0
    while [ $n -lt "$wanted" ]; do
        n=$((n + 1))
        rm -rf next
        # shellcheck disable=SC2086
        $MPIEXEC_N $ranks "$CONVOY" train job.yaml --progress none --out next --plan first/plan.json "$@" >log 2>&1 || { fail "run $n fails: $(cat log)"; return; }
        same_weights next first step-00000012 && same=$((same + 1))
    done
    echo "count: repeat: $same of $wanted runs on $ranks ranks ($*) end with the same bits"
}

export CONVOY_WISDOM="$work/wisdom.json"
again 2 --threads 1
again 1 --threads 2
exit $failed
