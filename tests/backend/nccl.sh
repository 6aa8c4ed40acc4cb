#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich
# seconds: 60
# nccl.sh: exchanges by NCCL, on a libnccl.so.2 (tests/fake_nccl) and a libcuda.so.1 (tests/fake_cuda) that need no GPU:
# whole jobs on two and four ranks, with all axes of the grid, end as those whose tensors go through the host; plan.json,
# report and log say what exchanges them, and why it is not NCCL; each call that fails, and a rank that does not answer,
# ends the job with one sentence. nccl_seeds.sh has many orders of the lanes.
cuda=$CONVOY_BUILD/tests/fake_cuda nccl=$CONVOY_BUILD/tests/fake_nccl
. "$CONVOY_SOURCE/tests/backend/nccl.inc"

by_nccl() { contains log "${3:-gradients are summed} by NCCL 2.28.9 ($2" || { fail "$1: NCCL is not used:"; cat log; }; }
staged() { contains log "through the host's memory, not by NCCL: $1" || { fail "expected a reason, $1:"; cat log; }; }
# says FOLDER TEXT: plan.json and the report say by what tensors are exchanged.
says() {
    contains "$1/plan.json" "\"tensors are exchanged\": \"$2" && contains "$1/report.html" "tensors are exchanged" ||
        fail "$1: plan.json or the report does not say \"$2\""
}

# ---- the same numbers ----
for update in sync zero1 delayed; do
    CONVOY_NCCL=off works 2 staged-$update --set update=$update
    staged "the variable CONVOY_NCCL says off"
    for seed in 1 2; do
        works 2 "two-$update-$seed" --set update=$update
        by_nccl "$update, seed $seed" "data: 2 ranks)"
        same_tensors "$(weights "two-$update-$seed")" "$(weights staged-$update)" ||
            fail "$update, seed $seed: the weights are not those of sums through the host"
    done
    seed=4 works 4 four-$update --set update=$update
    by_nccl "$update on four ranks" "data: 4 ranks)"
    near four-$update staged-$update
done
says two-sync-1 "by NCCL 2.28.9 (data: 2 ranks)"
says staged-sync "through the host's memory, not by NCCL: the variable CONVOY_NCCL says off"

# Buckets are sized by what a sum of NCCL costs; no algorithm of the host is measured.
works 2 sized --set comm.bucket=auto
sums=$(sed 's/.*"sums": {\([^}]*\)}.*/\1/' sized/plan.json)
case $sums in
*'"by": "nccl"'*'"beta_s_per_byte": 0,'*) fail "the cost of a sum is not measured: $sums" ;;
*'"by": "nccl"'*'"algorithms": ""') ;;
*) fail "plan.json has other sums: $sums" ;;
esac

# Gradients are rounded to bf16 on the device, and the losses are not.
works 2 narrow --set comm.wire=bf16
by_nccl "wire: bf16" "data: 2 ranks)"
near narrow staged-sync 1e-2
same_tensors "$(weights narrow)" "$(weights staged-sync)" && fail "wire: bf16 rounds nothing"
[ "$(sed -n 's/.*"step": 12,.*"bytes_wire": *\([0-9]*\).*/\1/p' narrow/metrics.jsonl)" -lt \
    "$(sed -n 's/.*"step": 12,.*"bytes_wire": *\([0-9]*\).*/\1/p' two-sync-1/metrics.jsonl)" ] ||
    fail "wire: bf16 sends as many bytes as f32"

# ---- grids ----
# grid NAME AXES: four ranks with these axes have the losses of data parallelism.
grid() {
    works 4 "$1" --set "parallel=$2"
    by_nccl "$2" "$3" "${4:-}"
    near "$1" staged-sync
}
grid tensor '{tensor: 2}' "data: 2 ranks, tensor: 2 ranks)"
grid tensors '{tensor: 4}' "tensor: 4 ranks)" "tensors are exchanged"
grid space '{spatial: [2, 1]}' "data: 2 ranks, space0: 2 ranks)"
grid spaces '{spatial: [2, 2]}' "space0: 2 ranks, space1: 2 ranks)"
grid stages '{pipeline: 2}' "data: 2 ranks); messages of the pipeline go through the host's memory"
seed=3 grid mixed '{pipeline: 2, tensor: 2}' "tensor: 2 ranks); messages"

# ---- when it is not used ----
CONVOY_NCCL=$PWD/none.so.2 works 2 missing
staged "NCCL cannot be loaded ($PWD/none.so.2: "
cat >one_lacks <<END
#!/bin/sh
[ "\${PMI_RANK:-\$OMPI_COMM_WORLD_RANK}" = 0 ] || export CONVOY_NCCL=$PWD/none.so.2
exec "$CONVOY" "\$@"
END
chmod +x one_lacks
CONVOY=$PWD/one_lacks works 2 lacking
staged "rank 1 of 2: NCCL cannot be loaded ($PWD/none.so.2: "
FAKE_NCCL_VERSION=21000 works 2 old
contains log "libnccl.so.2 is NCCL 2.10.0, and convoy needs NCCL 2.13 or newer" || fail "an old NCCL is not named"
devices=1 works 2 shared
staged "ranks 0 and 1 compute on one device"
works 2 exact --set deterministic=true
! grep -q NCCL log || { fail "deterministic sums by NCCL:"; cat log; }
says exact "through the host's memory: deterministic training fixes the order of additions"
works 2 ring --set comm.algorithm=ring
! grep -q NCCL log || { fail "an algorithm was named, and NCCL sums:"; cat log; }
says ring "through the host's memory: comm.algorithm is ring"
works 2 averages --set 'update={mode: local, every: 2}'
! grep -q "gradients are summed" log || { fail "averages are no sums of gradients:"; cat log; }
says averages "through the host's memory: ranks exchange averages of weights"

# ---- faults ----
# ends WORDS [BEGIN]: the job in "broken" has ended with one sentence, which has these words, and no rank is left.
ends() {
    [ $code -ne 0 ] && [ $code -ne 124 ] || fail "$1: the job ends with $code"
    contains log "$1" && [ "$(grep 'convoy: error' log | sed "s/.*\\(${2:-NCCL 2}\\)/\\1/" | sort -u | wc -l)" = 1 ] ||
        { fail "expected one sentence with \"$1\":"; cat log; }
    # A launcher may end before the ranks that it has killed.
    for try in 1 2 3 4 5 6 7 8 9 10; do
        [ -z "$(process_of_rank 0 broken)$(process_of_rank 1 broken)" ] && return
        sleep 0.5
    done
    fail "$1: a rank is left"
}
# fails FUNCTION=ERROR[@CALL] WORDS [OPTION...]: a job in which the call fails.
fails() {
    fault=$1 words=$2
    shift 2
    rm -rf broken
    FAKE_NCCL=$fault train 2 broken "$@"
    code=$?
    ends "$words"
}
fails ncclGetUniqueId=2 "ncclGetUniqueId fails with 2 (unhandled system error): the fake says so"
fails ncclCommInitRank=1 "ncclCommInitRank fails with 1 (unhandled cuda error)"
fails ncclAllReduce=3@5 "ncclAllReduce fails with 3 (internal error)"
fails ncclReduceScatter=4@5 "ncclReduceScatter fails with 4" --set update=zero1
fails ncclAllGather=5@5 "ncclAllGather fails with 5" --set update=zero1
fails ncclBroadcast=2@5 "ncclBroadcast fails with 2" --set update=zero1
fails ncclCommGetAsyncError=6@20 "an exchange that was started fails with 6 (remote process exited or there was a network error)"
for call in ncclSend ncclRecv ncclGroupStart ncclGroupEnd; do
    fails $call=5@7 "$call fails with 5 (invalid usage)" --set 'parallel={spatial: [2, 1]}'
done
CONVOY_NCCL_WAIT=1 fails absent=1 "ncclCommInitRank has not connected the 2 ranks within 1 s"
FAKE_NCCL=ncclGetVersion=3 works 2 versionless
contains log "libnccl.so.2 does not say its version: ncclGetVersion fails with 3" || fail "a version that is not said"

# A rank whose sum does not begin: the watchdog of each rank breaks off what it waits for, and ends the job.
rm -rf broken
FAKE_NCCL=hang=1@20 train 2 broken --set 'watchdog.timeout=1 s'
code=$?
ends "made no progress for" "made no progress"

# ---- buckets by themselves ----
program() {
    n=$1
    shift
    # shellcheck disable=SC2086
    CVY_EMULATED="seed=$n devices=4" LD_LIBRARY_PATH="$cuda:$nccl:${LD_LIBRARY_PATH-}" timeout 60 \
        $MPIEXEC_N "$n" "$CONVOY_BUILD/tests/test_backend_nccl" "$@" >log 2>&1 || { fail "test_backend_nccl $* on $n ranks:"; cat log; }
}
for ranks in 2 3 4; do program $ranks sums; done
FAKE_NCCL=hang=1@1 program 2 abort
exit $failed
