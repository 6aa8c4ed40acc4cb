#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: minimal
# level: 2
# jobscript.sh: `convoy jobscript`: the head of the script has what is asked for, and invalid options are refused before
# the job waits in a queue. The script itself is run with commands that replace those of Slurm and PBS: after a stop by
# a signal it starts the next job, which resumes; a job that saves nothing starts no other.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
command -v bash >/dev/null || { echo "skipped: there is no bash, in which job scripts run"; exit 77; }

jobscript() { "$CONVOY" jobscript job.yaml "$@"; }
# has FILE LINE: the file has exactly this line.
has() { grep -qxF -- "$2" "$1" || fail "no line \"$2\" in $(cat "$1")"; }

# ---- the head ----
way=pmix                                                # option of srun for the MPI of this build
"$CONVOY" info | grep -qi 'open mpi' || way=pmi2
jobscript --slurm --nodes 2 --ppn 4 --threads 8 --time 1-02:03:04 --out runs/a >slurm || fail "no script for Slurm"
for line in '#!/bin/bash' '#SBATCH --job-name=job' '#SBATCH --nodes=2' '#SBATCH --ntasks-per-node=4' '#SBATCH --cpus-per-task=8' '#SBATCH --time=26:03:04' \
    '#SBATCH --signal=USR1@120' '#SBATCH --requeue' '#SBATCH --open-mode=append' '#SBATCH --output=job-%j.out' 'out=runs/a' \
    "    srun --mpi=$way --cpus-per-task=8 --wait=60 convoy \"\$@\"" '    set -- train "$job" --out "$out" --threads 8'; do
    has slurm "$line"
done
jobscript --pbs --nodes 2 --ppn 4 --threads 8 --time 90 --set train.epochs=3 --set 'train.optimizer={name: adam, lr: 1e-3}' >pbs || fail "no script for PBS"
for line in '#PBS -N job' '#PBS -l select=2:ncpus=32:mpiprocs=4:ompthreads=8' '#PBS -l place=scatter' '#PBS -l walltime=01:30:00' 'out=runs/job' \
    "    set -- train \"\$job\" --out \"\$out\" --threads 8 --set train.epochs=3 --set 'train.optimizer={name: adam, lr: 1e-3}'"; do
    has pbs "$line"
done
contains pbs 'mpiexec -n 8 "$(command -v convoy)" "$@"' || fail "not 8 ranks: $(cat pbs)"
jobscript --slurm --nodes 3 --ppn 1 --time 90 --set parallel.pipeline=2 2>err && fail "a pipeline of 2 on 3 ranks gets a script"
contains err 'a grid of pipeline 2 on 3 ranks' || fail "the grid is not named: $(cat err)"
jobscript --slurm --nodes 1 --ppn 2 --time 00:01:00 >short || fail "no script without --threads"
has short '#SBATCH --exclusive'
has short '#SBATCH --signal=USR1@15'
jobscript --slurm --nodes 1 --ppn 2 --time 2 --signal 100 >short && has short '#SBATCH --signal=USR1@100'
for script in slurm pbs short; do
    bash -n $script || fail "$script is no script of the shell"
    env -u SLURM_JOB_ID -u PBS_JOBID bash $script >out 2>err && fail "$script runs without a batch system"
    contains err 'jobscript: this script is for the batch system: ' || fail "the message does not say how to submit $script: $(cat err)"
done

# ---- GPUs ----
gpus() { "$CONVOY" jobscript job.yaml --nodes 2 --ppn 4 --threads 8 --time 90 --gpus 4 "$@" 2>err; }
gpus --slurm >slurm && has slurm '#SBATCH --gpus-per-node=4'
has slurm '    set -- train "$job" --out "$out" --threads 8 --device auto'
gpus --slurm --set device=host >slurm && has slurm '    set -- train "$job" --out "$out" --threads 8 --set device=host'
gpus --pbs >pbs && has pbs '#PBS -l select=2:ncpus=32:ngpus=4:mpiprocs=4:ompthreads=8'
gpus --lsf >lsf && has lsf '#BSUB -gpu "num=4/host"'
gpus --flux >flux && has flux '#flux: --gpus-per-slot=1'
gpus --sge --pe mpi >sge && contains sge '#$ -l gpu=4 ' || fail "no GPUs for SGE: $(cat sge err)"
[ ! -s err ] || fail "a GPU for each rank is warned of: $(cat err)"
gpus --slurm --gpus 2 >slurm && contains err '2 GPUs and 4 ranks on each node: a rank computes on one GPU, so several ranks compute on one, in turns: --ppn 2 has a rank for each' || fail "no warning of shared GPUs: $(cat err)"
gpus --slurm --gpus 8 >slurm && contains err 'so some GPUs are idle: --ppn 8 has a rank for each' || fail "no warning of idle GPUs: $(cat err)"
refused "Flux gives GPUs to ranks" "$CONVOY" jobscript job.yaml --flux --nodes 2 --ppn 4 --threads 8 --time 90 --gpus 2

# ---- limits ----
limit() { jobscript --slurm --nodes 1 --ppn 1 --time "$1" 2>err | sed -n 's/#SBATCH --time=//p'; }
while read -r given wanted; do
    got=$(limit "$given")
    [ "$got" = "${wanted#refused}" ] || fail "--time $given is '$got', expected '$wanted': $(cat err)"
    [ "$wanted" != refused ] || contains err "--time is '$given', expected HH:MM:SS, D-HH:MM:SS or minutes" || fail "the message does not say which values are valid: $(cat err)"
done <<'END'
02:00:00 02:00:00
120 02:00:00
1 00:01:00
100:00:00 100:00:00
2-00 48:00:00
2-01:30 49:30:00
2-01:30:05 49:30:05
2:30 refused
0 refused
00:00:59 refused
1:60:00 refused
1:2:3:4 refused
1-2-3 refused
- refused
2h refused
-5 refused
1- refused
:30:00 refused
9999999 refused
END

# ---- what is refused, and what is warned of ----
refused "--scheduler is missing" "$CONVOY" jobscript job.yaml --nodes 1 --ppn 1 --time 5
refused "--scheduler is given more than once" "$CONVOY" jobscript job.yaml --slurm --pbs --nodes 1 --ppn 1 --time 5
refused "--ppn is missing" "$CONVOY" jobscript job.yaml --slurm --nodes 1 --time 5
refused "--signal is 300 s before a limit of 300 s" "$CONVOY" jobscript job.yaml --slurm --nodes 1 --ppn 1 --time 5 --signal 300
refused "no_such.yaml" "$CONVOY" jobscript no_such.yaml --slurm --nodes 1 --ppn 1 --time 5
refused "train.batsh" "$CONVOY" jobscript job.yaml --slurm --nodes 1 --ppn 1 --time 5 --set train.batsh=3
refused "train.batch is 16, but there are 32 ranks" "$CONVOY" jobscript job.yaml --slurm --nodes 2 --ppn 16 --time 5
refused "splits a step into 8 shards, but there are 16 ranks" "$CONVOY" jobscript job.yaml --slurm --nodes 8 --ppn 2 --time 5 --set deterministic=true
[ ! -s out ] || fail "a refused job has a script: $(cat out)"
jobscript --slurm --nodes 1 --ppn 3 --time 5 >out 2>err || fail "uneven shares are refused: $(cat err)"
contains err "a batch of 16 over 3 ranks makes shares of 5 and 6 samples, and a step takes as long as the larger one: 15 or 18 would share evenly" || fail "no warning: $(cat err)"

# ---- commands that replace those of a cluster ----
mkdir bin
# Ranks note their process number. The file `tell`, if it exists, holds the last step before they are told to stop, and
# `fatal` the last step before one of them is killed, once.
cat >bin/ranks <<'END'
#!/bin/sh
echo $$ >"$WORK/pid-${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"
shift
exec "$CONVOY" "$@"
END
cat >bin/srun <<'END'
#!/bin/bash
while [[ $1 == --* ]]; do shift; done
echo "$@" >>"$WORK/started"
[ ! -e "$WORK/lazy" ] || exit 75
$MPIEXEC_N 2 "$WORK/bin/ranks" "$@" &
job=$!
if [ -e "$WORK/tell" ]; then
    until grep -q "\"step\": *$(cat "$WORK/tell")," "$WORK/$RUN/metrics.jsonl" 2>/dev/null || ! kill -0 $job 2>/dev/null; do sleep 0.02; done
    kill -USR1 "$(cat "$WORK/pid-0")"
fi
if [ -e "$WORK/fatal" ]; then
    until grep -q "\"step\": *$(cat "$WORK/fatal")," "$WORK/$RUN/metrics.jsonl" 2>/dev/null || ! kill -0 $job 2>/dev/null; do sleep 0.02; done
    kill -KILL "$(cat "$WORK/pid-1")"
    rm "$WORK/fatal"
    [ ! -e "$WORK/lazy-then" ] || mv "$WORK/lazy-then" "$WORK/lazy"
fi
wait $job
code=$?
if [ -e "$WORK/used" ]; then            # by another run, which holds the lock of the folder
    rm "$WORK/used"
    flock "$WORK/$RUN/lock" sleep 3 >/dev/null 2>&1 &
    sleep 0.5
fi
[ ! -e "$WORK/lose" ] || code=0        # as Hydra's mpiexec does sometimes
exit $code
END
cat >bin/mpiexec <<'END'
#!/bin/sh
echo "$@" >>"$WORK/started"
shift 2
exec $MPIEXEC_N 2 "$@"
END
ln -s "$CONVOY" bin/convoy
for name in scontrol qsub; do
    printf '#!/bin/sh\necho "%s $*" >>"$WORK/again"\n' $name >bin/$name
done
chmod +x bin/*
export WORK="$work" RUN="my runs/it's one"
submit() { (PATH="$work/bin:$PATH" SLURM_JOB_ID=7 SLURM_CPUS_ON_NODE=2 PBS_JOBID=8 PBS_O_WORKDIR="$work" timeout 300 bash "$1" >log 2>&1); }
# code WANTED SCRIPT
code() {
    submit "$2"
    got=$?
    [ $got = "$1" ] || fail "exit code $got of $2, expected $1: $(cat log)"
}

# ---- stopped, requeued, resumed; with names that a shell would split ----
{
    echo "name: \"a b'c\$(touch bad)\""
    cat job.yaml
} >"it's \$(touch worse).yaml"
"$CONVOY" jobscript "it's \$(touch worse).yaml" --slurm --nodes 1 --ppn 2 --threads 1 --time 5 --out "$RUN/" --set train.epochs=200 --set log.every=1 --set 'checkpoint.every=20 steps' >script || fail "no script of odd names"
grep -q '^#SBATCH --job-name=a_b_c__touch_bad_$' script || fail "the name is not tame: $(grep name script)"
echo 10 >tell
code 75 script
grep -qx 'scontrol requeue 7' again || fail "the job is not requeued: $(cat log)"
grep -q '^stopped step' "$RUN/STATUS" || fail "it was not stopped: $(cat "$RUN/STATUS" log)"
rm tell again "$RUN/checkpoints/latest"        # the set that `latest` names still exists
code 0 script
grep -q '^finished step 600 of 600' "$RUN/STATUS" || fail "the second job does not finish it: $(cat "$RUN/STATUS" log)"
[ "$(grep -c -- ' --resume$' started)" = 1 ] || fail "not resumed once: $(cat started)"
grep -q 'continuing after step-' log && grep -q 'resumed after step' log || fail "the log does not say that it resumed: $(cat log)"
[ ! -e again ] || fail "a finished job is requeued: $(cat again)"
[ ! -e bad ] && [ ! -e worse ] || fail "a name was run as a command"

# The launcher loses the exit code.
mv "$RUN" whole
echo 10 >tell
touch lose
code 75 script
[ "$(cat again 2>/dev/null)" = 'scontrol requeue 7' ] || fail "the job is not requeued where its code is lost: $(cat log)"
rm -r tell lose again "$RUN"
mv whole "$RUN"

# A rank is killed: what is left starts again in the same job, if something new was saved.
mv "$RUN" whole
rm -f started
echo 50 >fatal
code 0 script
[ "$(grep -c -- ' --resume$' started)" = 1 ] && [ "$(wc -l <started)" = 2 ] || fail "a killed run is not continued once: $(cat started log)"
grep -q 'the run was killed (exit code ' log && grep -q '^finished step 600 of 600' "$RUN/STATUS" || fail "a killed run does not end: $(cat "$RUN/STATUS" log)"
[ ! -e again ] || fail "a finished job is requeued: $(cat again)"
# The round after it is stopped before it saves anything: what the job has saved before counts.
rm -r "$RUN" started
echo 50 >fatal
touch lazy-then
code 75 script
[ "$(wc -l <started)" = 2 ] && [ "$(cat again 2>/dev/null)" = 'scontrol requeue 7' ] || fail "a job that saved something is not requeued: $(cat started log)"
# Near the end of the allocation no other round starts.
rm -r "$RUN" started again lazy
echo 50 >fatal
export SLURM_JOB_END_TIME=$(($(date +%s) + 60))
code 75 script
unset SLURM_JOB_END_TIME
[ "$(wc -l <started)" = 1 ] && [ "$(cat again 2>/dev/null)" = 'scontrol requeue 7' ] || fail "a run that was killed near the end is not left to another job: $(cat started log)"
# Another run has the folder meanwhile.
rm -r "$RUN" started again
echo 50 >fatal
touch used
code 1 script
[ "$(wc -l <started)" = 1 ] && grep -q 'another run is using' log || fail "the folder of another run is taken: $(cat started log)"
rm -r "$RUN" started
echo 5 >fatal
sed 's/20 steps/1000000 epochs/' script >never_saves
submit never_saves && fail "a run that was killed before its first checkpoint ends well: $(cat log)"
[ "$(wc -l <started)" = 1 ] && grep -q '^running' "$RUN/STATUS" || fail "it is started again: $(cat started "$RUN/STATUS")"
rm -r "$RUN"
mv whole "$RUN"

# If nothing new is saved, there is no next job. After a fault there is none either.
touch lazy
code 75 script
[ ! -e again ] && grep -q 'no new step was saved' log || fail "a job that saves nothing starts another: $(cat log)"
echo "stopped step 600 of 600" >"$RUN/STATUS"
code 75 script
[ ! -e again ] || fail "what an earlier job says in STATUS starts another: $(cat log)"
rm lazy
mv "it's \$(touch worse).yaml" away
code 1 script
grep -q "there is no it's \$(touch worse).yaml in $work" log || fail "the log does not say that the job file is missing: $(cat log)"
mv away "it's \$(touch worse).yaml"

# The folder of a run without a checkpoint is renamed.
rm -r "$RUN/checkpoints"
code 0 script
[ -e "$RUN.aside-1/STATUS" ] && grep -q 'had no checkpoint' log || fail "the folder of the run was not renamed: $(cat log)"
grep -q '^finished step 600' "$RUN/STATUS" || fail "it does not begin anew: $(cat log)"

# ---- PBS: by the clock, USR1 five seconds after the start ----
RUN=runs/job
rm -f started again
jobscript --pbs --nodes 1 --ppn 2 --threads 1 --time 1 --signal 55 --set train.epochs=1000000 --set 'checkpoint.every=1000000 epochs' >script || fail "no script for PBS"
code 75 script
[ "$(cat again 2>/dev/null)" = 'qsub script' ] || fail "the script is not submitted again: $(cat log)"
grep -q '^stopped step' runs/job/STATUS || fail "it was not stopped: $(cat log)"
[ -e runs/job/checkpoints/latest ] || fail "nothing is saved: $(cat log)"
exit $failed
