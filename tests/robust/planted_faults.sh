#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich
# seconds: 90
# level: 2
# lane: clock
# planted_faults.sh: eleven faults that users meet, each in a run of its own: each ends the run (with a full disk the
# run goes on) and is named. A slow rank, which is not a fault, must not end the run.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
. "$CONVOY_SOURCE/tests/robust/sweep.inc"
named=0
echo 'watchdog: {timeout: 2 s}' >>job.yaml
limit=60

# names WHAT CODES TEXT...: the last run ended with one of the codes (a pattern), and its log has one of the texts
# (extended patterns).
names() {
    what=$1 codes=$2
    shift 2
    eval "case \$code in $codes) ;; *) fail \"\$what: exit code \$code: \$(cat log)\"; return ;; esac"
    for text in "$@"; do
        if grep -v '^shim_' log | grep -qE -- "$text"; then
            named=$((named + 1))
            echo "$what: $(grep -v '^shim_' log | grep -E -- "$text" | head -n 1)"
            return
        fi
    done
    fail "$what is not named: $(cat log)"
}

# with_mpi RANKS RANK AT FAULT [OPTION...]: trains in disk/run; counting begins at the first step.
with_mpi() {
    ranks=$1
    export SHIM="$shims/shim_mpi.so" SHIM_MPI_RANK="$2" SHIM_MPI_AT="$3" SHIM_MPI_FAULT="$4" SHIM_MPI_FROM="$disk/run/STATUS"
    shift 4
    rm -rf disk/run
    train "$ranks" disk/run "$@"
    code=$?
    unset SHIM SHIM_MPI_RANK SHIM_MPI_AT SHIM_MPI_FAULT SHIM_MPI_FROM
    [ ! -e "pid-0" ] || contains log 'shim_mpi: ' || fail "no fault happened: $(cat log)"
}

# two_jobs FILE: two ranks that are started with different job files.
two_jobs() {
    one="${MPIEXEC_N##* } 1"
    # shellcheck disable=SC2086
    timeout $limit "$MPIEXEC" $one "$CONVOY" train job.yaml --out two : $one "$CONVOY" train "$1" --out two >log 2>&1
    code=$?
}

# 1 and 2: a rank skips a sum, or has sums of another shape because its job has another kernel size. The skipped sum is
# a blocking one, which MPI itself does.
with_mpi 3 1 9 skip
names 'skipped collective' '[!0]*' 'made no progress for .*; rank [0-9] on .*' 'failed: the ranks do not make the same call: one of them has skipped a call'
sed 's/kernel: 3/kernel: 5/; s/pad: 1}$/pad: 2}/' job.yaml >other.yaml
two_jobs other.yaml
names 'other shape' 1 'rank 1: started with another job than rank 0: model.layers\[0\].conv.(kernel|pad) is'

# 3: another job file
sed 's/batch: 16/batch: 32/' job.yaml >other.yaml
two_jobs other.yaml
names 'other job file' 1 'rank 1: started with another job than rank 0: train.batch is 32 here and 16 on rank 0'

# 4: a rank that leaves early
with_mpi 3 1 12 exit
names 'early exit' '[!0]*' 'rank 1: a library called exit.. while convoy was working'

# from_outside SIGNAL FOLDER: rank 1 of three gets the signal during training, after a checkpoint and a heartbeat, however
# slow the machine is. Checkpoints are rare, because the watchdog waits six times as long during one.
from_outside() {
    rm -f pid-*
    { until [ -s "$2/metrics.jsonl" ] && [ -e "$2/checkpoints/latest" ] && grep -q '^rank 1 .*host' "$2/ranks"; do sleep 0.1; done 2>/dev/null; sleep 0.1; kill "-$1" "$(cat pid-1)"; } &
    sender=$!
    train 3 "$2" --set train.epochs=1000000 --set 'checkpoint.every=100 steps'
    code=$?
    kill $sender 2>/dev/null && fail "rank 1 had no checkpoint and no heartbeat in time: $(cat log "$2/ranks")"
    kill -KILL "$(cat pid-1)" 2>/dev/null
}

# 5: a rank that does not move on
from_outside STOP run5
names 'SIGSTOP' '[!0]*' 'made no progress for .*; rank 1 on .* writes no heartbeat'

# 6: a loss that is not finite
train 2 run6 --set 'train.optimizer={name: sgd, lr: 1e18}' --set 'train.schedule=null' --set train.epochs=8
code=$?
names 'NaN' 1 'the first value that is not finite is in [a-z_0-9.]+ \((forward|backward)\), on rank [0-9], of samples? [0-9]+'

# 7: a bit of a weight, in the memory of one of three nodes
lasting='train.optimizer={name: sgd, lr: 1e-30}'
train 1 run7 --set "$lasting" --set plan.kernels=reference --set train.steps=1 --set train.epochs=null || fail "the run for the weights fails: $(cat log)"
tail -c 80 run7/checkpoints/step-00000001/weights.safetensors | head -c 64 >bytes         # bytes of fc1.weight; its 4 biases come after it, and change
[ "$(tr -d '\0' <bytes | wc -c)" -gt 32 ] || fail "these are no weights: $(od -An -tx1 bytes)"
export CONVOY_NODE_RANKS=1 SHIM_MPI_BYTES="$work/bytes"
with_mpi 3 1 40 flip --set "$lasting" --set plan.kernels=reference --set train.epochs=20 --set watchdog.replicas=5
unset CONVOY_NODE_RANKS SHIM_MPI_BYTES
names 'flipped weight bit' 1 'rank 1 has other weights than 2 of 3 ranks, first in '

# 8: a full disk; the run goes on
with_io "$disk/run8" 0 40 ENOSPC 2 "$disk/run8"
code=$?
names 'full disk' '[01]' 'checkpoint of step .*No space left on device' 'No space left on device'

# 9: a rank that dies. The next start names it, if the others lived long enough to be told. Hydra ends them with it, and
# prints what ended a process.
from_outside KILL run9
cp log killed
train 3 run9 --resume --set train.epochs=2
[ $? = 0 ] || fail "the next start after a dead rank fails: $(cat log)"
code=1
cat killed >>log
names 'dead rank' 1 'the last run in run9 ended without a final status .*; rank 1 ' 'TERMINATED WITH THE EXIT STRING: Killed \(signal 9\)'

# 10: the launcher of another MPI
other=mpiexec.mpich
"$CONVOY" info | grep -qi 'open mpi' || other=mpiexec.openmpi
command -v $other >/dev/null || other=
if [ -n "$other" ]; then
    timeout $limit $other -n 2 "$CONVOY" train job.yaml --out run10 >log 2>&1
else
    printf '#!/bin/sh\n"$@"\nexit $?\n' >mpiexec && chmod +x mpiexec # a launcher by its name
    OMPI_COMM_WORLD_SIZE=2 PMI_SIZE=2 ./mpiexec "$CONVOY" train job.yaml --out run10 >log 2>&1
fi
code=$?
names 'wrong launcher' '[!0]*' 'started 2 processes \([A-Z_]*_SIZE=2\), but each of them is alone'

# 11: a loader whose file system hangs, on one rank
mkdir disk/data
head -c $((3073 * 96)) /dev/zero >disk/data/data.bin
sed 's/train: {format.*/train: disk\/data\/data.bin/; s/size: 8/size: 32/; s/channels: 4}$/channels: 10}/; s/timeout: .*/timeout: 2 s}/' job.yaml >hang.yaml
sed -i 's/job.yaml/"${JOB:-job.yaml}"/' rank.sh
export JOB=hang.yaml
with_io "$disk/data" 1 400 hang 2 run11 --set train.epochs=100
code=$?
contains log 'shim_io: hang' || fail "no read hung: $(cat log)"
names 'loader that hangs' '[!0]*' 'made no progress for .*; rank 1 on .* in (scoring|waiting for samples)'
with_io "$disk/data" 1 1 hang 2 run12 --set 'watchdog.timeout=1 s'
code=$?
unset JOB
case $code in 0 | 124) fail "a rank that hangs before the first step: exit code $code: $(cat log)" ;; esac
grep -q 'rank 1: made no progress for .* in reading the data .*: it waits for no other rank, so this rank itself may be blocked' log || fail "a rank that hangs before the first step is not named: $(cat log)"
JOB=hang.yaml; export JOB
with_io "$disk/data" 0 400 hang 1 run13 --set train.epochs=100
code=$?
unset JOB
case $code in 0 | 124) fail "a rank that hangs alone: exit code $code: $(cat log)" ;; esac
contains log 'rank 0: made no progress for ' || fail "a rank that hangs alone says nothing: $(cat log)"

echo "count: planted: $named of 11 faults are named"

# No false alarm: one rank whose every message takes 20 ms longer.
with_mpi 3 1 1 slow --set 'watchdog.timeout=6 s'
[ $code = 0 ] || fail "a slow rank ends the run: $(cat log)"
contains log 'made no progress' && fail "a false alarm: $(cat log)"
exit $failed
