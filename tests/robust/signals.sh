#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich mpi
# seconds: 60
# lane: clock
# signals.sh: what signals and the end of the allocation do to a run of two ranks: save and go on, save and end with
# code 75, or leave alone if the other ranks do not answer; and what is refused.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
sed -i 's/epochs: 2/epochs: 100000/; s/every: 2 steps/every: 1000000 steps/; s/checkpoint:.*/checkpoint: {every: 1000000 steps}\nlog: {every: 50}/' job.yaml
cat >rank.sh <<'END'
echo $$ >pid-${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
exec "$CONVOY" train job.yaml --threads 1 --progress none "$@"
END

# begin FOLDER [OPTION...]: starts two ranks, and returns when they train.
begin() {
    folder=$1
    shift
    rm -f pid-*
    timeout 100 $MPIEXEC_N 2 sh rank.sh --out "$folder" "$@" >"log-$folder" 2>&1 &
    job=$!
    until [ -s "$folder/metrics.jsonl" ]; do
        kill -0 $job 2>/dev/null || { fail "the run ended before it was told to"; cat "log-$folder"; return; }
        sleep 0.05
    done
}

# ends CODE FOLDER: the job ends with the code within 30 s, and its checkpoint is sound.
ends() {
    wait $job
    code=$?
    [ $code = "$1" ] || { fail "$2: exit code $code, expected $1"; cat "log-$2"; }
    "$CONVOY" inspect "$2" >"sound-$2" || fail "$2 has no sound checkpoint"
}

# After USR2 and HUP the run saves and goes on; INT ends it with everything saved.
begin goes-on
for signal in USR2 HUP; do
    before=$(grep -c '"kind": *"save"' goes-on/metrics.jsonl)
    kill -$signal "$(cat pid-1)"
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        [ "$(grep -c '"kind": *"save"' goes-on/metrics.jsonl)" -gt "$before" ] && break
        sleep 0.5
    done
    [ "$(grep -c '"kind": *"save"' goes-on/metrics.jsonl)" -gt "$before" ] || fail "SIG$signal has not saved"
    kill -0 $job 2>/dev/null || fail "the run ended by SIG$signal"
done
kill -INT "$(cat pid-0)"
ends 75 goes-on

# The effect of a signal can be chosen: USR1 saves, TERM is ignored.
begin chosen --on-signal USR1=save,TERM=ignore
kill -TERM "$(cat pid-0)"
kill -USR1 "$(cat pid-0)"
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    grep -q '"kind": *"save"' chosen/metrics.jsonl && break
    sleep 0.5
done
kill -0 $job 2>/dev/null || fail "the run ended although TERM is to be ignored"
grep -q '"kind": *"save"' chosen/metrics.jsonl || fail "USR1=save has not saved"
kill -INT "$(cat pid-1)"
ends 75 chosen

# The end of the allocation: given by its length, and as a job script gives it.
begin limit --walltime 00:00:07
ends 75 limit
grep -q 'the allocation ends at' log-limit || fail "the run does not say when the allocation ends"
grep -q 'the allocation ends in .* s (--walltime): the run saves and stops' log-limit || { fail "the run does not say why it stops"; cat log-limit; }
CONVOY_JOB_END=$(($(date +%s) + 7))
export CONVOY_JOB_END
begin job-end
ends 75 job-end
grep -q "the allocation ends in .* s (CONVOY_JOB_END): " log-job-end || fail "the run does not say whose end it is"
unset CONVOY_JOB_END

# TERM while the other rank does not answer: the rank leaves alone.
begin alone
kill -STOP "$(cat pid-1)"
sleep 0.2
kill -TERM "$(cat pid-0)"
from=$(date +%s)
until ! kill -0 "$(cat pid-0)" 2>/dev/null || [ $(($(date +%s) - from)) -gt 30 ]; do sleep 0.2; done
kill -0 "$(cat pid-0)" 2>/dev/null && fail "a rank that cannot reach the other is still there 30 s after TERM"
kill -CONT "$(cat pid-1)" 2>/dev/null
kill -KILL "$(cat pid-1)" 2>/dev/null
wait $job
grep -q 'the other ranks do not answer: this rank exits without saving' log-alone || { fail "the log does not say that the rank exits without saving"; cat log-alone; }

refused "--walltime is 'soon', expected HH:MM:SS, D-HH:MM:SS or minutes" "$CONVOY" train job.yaml --out bad --walltime soon
refused "--walltime is '1:75', expected" "$CONVOY" train job.yaml --out bad --walltime 1:75
refused "--walltime is '2:30', expected" "$CONVOY" train job.yaml --out bad --walltime 2:30
refused '--on-signal USR3=stop: expected NAME=ACTION' "$CONVOY" train job.yaml --out bad --on-signal USR3=stop
refused '--on-signal USR1=go: expected NAME=ACTION' "$CONVOY" train job.yaml --out bad --on-signal USR1=go
CONVOY_JOB_END=tomorrow
export CONVOY_JOB_END
refused 'CONVOY_JOB_END=tomorrow is not a time: expected seconds since 1970' "$CONVOY" train job.yaml --out bad
unset CONVOY_JOB_END
PBS_WALLTIME=02:00:00
export PBS_WALLTIME
refused 'PBS_WALLTIME=02:00:00 is not a time: expected seconds' "$CONVOY" train job.yaml --out bad
exit $failed
