#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich
# seconds: 20
# level: 2
# lane: clock
# slurm_shell.sh: under a real Slurm, convoy works in the interactive shell of `srun -n 2 --pty bash` and says why it is
# alone; tasks of a step without the MPI of convoy are refused, also if a script starts them; and the number of threads
# is that of the CPUs that the job has.
#
# It starts a Slurm of its own, as slurm.sh does, and is run only if CONVOY_TEST_SLURM is set.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
. "$CONVOY_SOURCE/tests/cmd/slurm.inc"
command -v script >/dev/null || skip "there is no script, which gives a terminal (Debian: bsdutils)"
command -v bash >/dev/null || skip "there is no bash"
unset OMP_NUM_THREADS

# ---- an interactive shell, and a job that is submitted in it ----
cat >batch <<END
#!/bin/sh
"$CONVOY" train job.yaml --threads 1 --out nested --progress none
echo code \$?
END
cat >typed <<END
"$CONVOY" plan job.yaml >plan.log 2>&1; echo code \$? >>plan.log
"$CONVOY" train job.yaml --threads 1 --out alone --progress none >alone.log 2>&1; echo code \$? >>alone.log
"$CONVOY" train none.yaml >none.log 2>&1; echo code \$? >>none.log
env >environment.log
sbatch -n 1 -o nested.log batch
exit
END
timeout 60 script -qec 'srun -n 2 --pty bash --norc -i' /dev/null <typed >shell.log 2>&1
grep -q '^SLURM_STEP_NUM_TASKS=2' environment.log || fail "this is not the shell of a step of two tasks: $(cat shell.log)"
grep -q '^code 0' plan.log || fail "plan in an interactive shell: $(cat plan.log)"
grep -q '^code 0' alone.log || fail "train in an interactive shell: $(tail -5 alone.log)"
grep -q 'warning: .* is in the environment, as srun.* sets it, but the interactive shell bash has started this process' alone.log || fail "it does not say why it is alone: $(cat alone.log)"
contains none.log 'none.yaml: cannot open' || fail "an error is not printed: $(cat none.log)"

# ---- the job: its script has the variables of the step in which it was submitted ----
for _ in $(seq 100); do grep -q '^code' nested.log 2>/dev/null && break; sleep 0.2; done
grep -q '^code 0' nested.log || fail "a job that was submitted in the shell of a step: $(tail -5 nested.log)"
grep -q 'but the script of a batch job has started this process' nested.log || fail "it does not say why it is alone: $(cat nested.log)"

# ---- a script that gives its commands process groups is no interactive shell ----
timeout 60 srun "--mpi=$way" -n 2 bash -c "set -m; '$CONVOY' bench --model linear --batch 4 --steps 1 --threads 1; exit \$?" >two.log 2>&1
grep -q '^ranks  *2$' two.log || fail "two tasks of set -m: $(cat two.log)"

# ---- tasks without MPI: Open MPI refuses by itself ----
for with in "'$CONVOY' train job.yaml --out split" "sh -c \"'$CONVOY' train job.yaml --out split; exit \\\$?\""; do
    eval "timeout 60 srun --mpi=none -n 2 $with" >split.log 2>&1 && fail "a split launch is accepted: $with"
    grep -q 'direct launched using "srun"' split.log || [ "$(grep -c 'srun started 2 processes (SLURM_STEP_NUM_TASKS=2), but each of them is alone' split.log)" = 1 ] || fail "a split launch is not said once: $with: $(cat split.log)"
done

# ---- a task alone, and variables that are left over ----
timeout 60 srun --mpi=none -n 1 "$CONVOY" plan job.yaml >task.log 2>&1 || fail "a task alone: $(cat task.log)"
# shellcheck disable=SC2046
timeout 60 env $(grep -E '^SLURM_[A-Z_]*=[^ ]*$' environment.log) "$CONVOY" train job.yaml --threads 1 --out stale --progress none >stale.log 2>&1 || fail "variables that are left over: $(tail -5 stale.log)"
contains stale.log 'no launcher is among the processes above this one' || fail "it does not say that they are left over: $(cat stale.log)"

# ---- CPUs of the job ----
srun --mpi=none -n 1 -c 1 --exact "$CONVOY" info >one.log 2>&1
grep -q '^threads  *1: .* by SLURM_CPUS_\(PER_TASK\|ON_NODE\)=1' one.log || fail "a job of one CPU: $(grep '^threads' one.log)"
srun --mpi=none -n 1 -c 2 "$CONVOY" info >two.log 2>&1
[ "$(nproc)" -lt 2 ] || grep -q '^threads  *2' two.log || fail "a job of two CPUs: $(grep '^threads' two.log)"
exit $failed
