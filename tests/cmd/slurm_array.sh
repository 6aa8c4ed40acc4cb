#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# seconds: 120
# level: 2
# lane: clock
# slurm_array.sh: a job array of `convoy jobscript --slurm --seeds 1-2` under a real Slurm: each element trains with its
# number as seed in a folder of its own, and is stopped, requeued and resumed by itself.
#
# It takes two minutes, and is run as cmd_slurm is.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
. "$CONVOY_SOURCE/tests/cmd/slurm.inc"
. "$CONVOY_SOURCE/tests/cmd/long_run.inc"

limit=$((60 * minutes))
write_job
"$CONVOY" jobscript job.yaml --slurm --nodes 1 --ppn 1 --threads 1 --time "$minutes" --signal $((limit * 5 / 12)) --seeds 1-2 --out "the run" >script || give_up "no script"
job=$(sbatch --parsable script) || give_up "sbatch does not take the script: $(cat script)"
begin=$(date +%s)
away=0
until is_finished "the run-seed-1" && is_finished "the run-seed-2"; do
    [ $(($(date +%s) - begin)) -lt $((7 * limit + 60)) ] || give_up "not finished after seven times the limit: $(cat "the run"-seed-*/STATUS 2>&1; scontrol show job "$job")"
    if [ -n "$(squeue -h -j "$job" 2>/dev/null)" ]; then away=0; else away=$((away + 1)); fi
    [ $away -lt 20 ] || { is_finished "the run-seed-1" && is_finished "the run-seed-2"; } ||
        give_up "the job ended before the runs did: $(cat "the run"-seed-*/STATUS 2>&1; scontrol show job "$job")"
    shorten_job "the run-seed-1" "the run-seed-2"
    sleep 0.5
done
seconds=$(($(date +%s) - begin))
for seed in 1 2; do
    log=two_jobs-${job}_$seed.out
    run="the run-seed-$seed"
    grep -q 'resumed after step' "$log" || fail "the log of element $seed does not say that it resumed: $(cat "$log")"
    grep -q '^stopped after ' "$log" || fail "the log of element $seed does not say that it was stopped: $(cat "$log")"
    grep -q "seed: $seed\$" "$run/job.resolved.yaml" || fail "element $seed has another seed: $(grep seed "$run/job.resolved.yaml")"
    once_each "$run"
done
[ ! -e "the run" ] || fail "an element has used the folder of the others"
[ $failed = 0 ] && echo "$seconds s: $(grep -h '^jobscript:\|^stopped after\|^done after' two_jobs-*.out | tr '\n' ';')"
exit $failed
