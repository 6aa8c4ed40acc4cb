#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich
# seconds: 120
# level: 2
# lane: clock
# slurm.sh: a script of `convoy jobscript --slurm` under a real Slurm: the run is told to stop before the limit, saves,
# is requeued, resumes, and comes to its end.
#
# munged, slurmctld and slurmd are started here, on this machine only, with their own ports and files, and end with the
# test. It takes one to two minutes. It is run only if CONVOY_TEST_SLURM is set to the job's limit in minutes (1, or 2
# to see more of the same).
. "$CONVOY_SOURCE/tests/cmd/job.inc"
. "$CONVOY_SOURCE/tests/cmd/slurm.inc"
. "$CONVOY_SOURCE/tests/cmd/long_run.inc"

limit=$((60 * minutes))
write_job
# Slurm looks every 30 s and gives the signal up to that much earlier: here it comes between a twelfth and seven
# twelfths of a limit of a minute.
out='the run'
"$CONVOY" jobscript job.yaml --slurm --nodes 1 --ppn 2 --threads 1 --time "$minutes" --signal $((limit * 5 / 12)) --out "$out" >script || give_up "no script"
job=$(sbatch --parsable script) || give_up "sbatch does not take the script: $(cat script)"
log=two_jobs-$job.out
begin=$(date +%s)
away=0
until is_finished "$out"; do
    [ $(($(date +%s) - begin)) -lt $((5 * limit + 60)) ] || give_up "not finished after five times the limit: $(cat "$out/STATUS" 2>&1; scontrol show job "$job")"
    case $(squeue -h -j "$job" -o %T 2>/dev/null) in
    PENDING | CONFIGURING | RUNNING | COMPLETING | REQUEUED | STAGE_OUT) away=0 ;;
    *) away=$((away + 1)) ;;   # for a moment, between its end and the queue
    esac
    [ $away -lt 20 ] || grep -q '^finished' "$out/STATUS" || give_up "the job ended before the run did: $(cat "$out/STATUS" 2>&1; scontrol show job "$job")"
    shorten_job "$out"
    sleep 0.5
done
seconds=$(($(date +%s) - begin))
sleep 2
scontrol show job "$job" >shown
grep -q 'Restarts=[1-9]' shown || fail "it was not requeued: $(cat shown)"
grep -q 'resumed after step' "$log" || fail "the log does not say that it resumed: $(cat "$log")"
grep -q '^stopped after ' "$log" || fail "the log does not say that it was stopped: $(cat "$log")"
grep -q "^finished step $steps of $steps" "$out/STATUS" || fail "not all steps are done: $(cat "$out/STATUS")"
once_each "$out"
[ $failed = 0 ] && echo "$steps steps, $(grep -c 'resumed after step' "$log") resumed, $seconds s: $(grep -h '^jobscript:\|^stopped after\|^done after' "$log" | tr '\n' ';')"
exit $failed
