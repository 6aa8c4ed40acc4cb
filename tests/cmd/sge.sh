#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# seconds: 200
# level: 2
# lane: clock
# sge.sh: scripts of `convoy jobscript --sge` under a real Grid Engine: a run is told to stop before the limit, saves, is
# scheduled again, resumes, and comes to its end; so is each element of a job array, with its number as seed.
#
# sge_qmaster and sge_execd are started here, on this machine only, with their own ports and files, and end with the
# test. It takes about three minutes. It is run only if CONVOY_TEST_SGE is set.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
. "$CONVOY_SOURCE/tests/cmd/sge.inc"
. "$CONVOY_SOURCE/tests/cmd/long_run.inc"

# follow RUN...: waits for the end of the runs, and shortens the job after their first stop.
follow() {
    begin=$(date +%s)
    away=0
    while :; do
        open=0
        for run in "$@"; do is_finished "$run" || open=1; done
        [ $open = 1 ] || break
        [ $(($(date +%s) - begin)) -lt 360 ] || give_up "not finished after six times the limit: $(tail -n 3 the*/STATUS; qstat -j "$job")"
        if qstat -j "$job" >/dev/null 2>&1; then away=0; else away=$((away + 1)); fi
        [ $away -lt 20 ] || give_up "the job ended before the run did: $(tail -n 3 the*/STATUS)"
        shorten_job "$@"
        sleep 0.5
    done
    seconds=$(($(date +%s) - begin))
}
# checks RUN LOG
checks() {
    grep -q 'resumed after step' "$2" || fail "$2 does not say that it resumed: $(cat "$2")"
    grep -q '^stopped after ' "$2" || fail "$2 does not say that it was stopped: $(cat "$2")"
    once_each "$1"
}

# bash starts as a login shell, which sets PATH anew.
cat >site.yaml <<END
scheduler: sge
parallel_environment: two
environment: {PATH: "$work/bin:$PATH"}
defaults: {nodes: 1, threads: 1, time: 1, signal: 40}
END
export CONVOY_SITE="$work/site.yaml"

# ---- two ranks; USR1 comes after 20 s of a minute ----
write_job
"$CONVOY" jobscript job.yaml --ppn 2 --out "the run" >script || give_up "no script"
job=$(qsub -terse -V script) || give_up "qsub does not take the script: $(cat script)"
follow "the run"
checks "the run" "two_jobs-$job.out"
grep -q "^finished step $steps of $steps" "the run/STATUS" || fail "not all steps are done: $(cat "the run/STATUS")"
grep -q 'ranks 0-1,' "two_jobs-$job.out" || fail "not two ranks: $(cat "two_jobs-$job.out")"
[ $failed = 0 ] && echo "$steps steps, $seconds s: $(grep -h '^jobscript:\|^stopped after\|^done after' "two_jobs-$job.out" | tr '\n' ';')"

# ---- a job array ----
steps=100000000
write_job
"$CONVOY" jobscript job.yaml --ppn 1 --seeds 1-2 --out "the array" >script || give_up "no script"
job=$(qsub -terse -V script) || give_up "qsub does not take the script: $(cat script)"
job=${job%%.*}
follow "the array-seed-1" "the array-seed-2"
for seed in 1 2; do
    checks "the array-seed-$seed" "two_jobs-$job-$seed.out"
    grep -q "seed: $seed\$" "the array-seed-$seed/job.resolved.yaml" || fail "element $seed has another seed: $(grep seed "the array-seed-$seed/job.resolved.yaml")"
done
[ $failed = 0 ] && echo "array, $seconds s: $(grep -h '^jobscript:\|^stopped after\|^done after' two_jobs-"$job"-*.out | tr '\n' ';')"
job=''
exit $failed
