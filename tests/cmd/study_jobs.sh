#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich asan
# study_jobs.sh: `convoy study --job-scripts` writes a script for each number of nodes; run with commands that replace
# those of the batch system, each measures its own cases; the results of all jobs are one table, whatever the names of
# the nodes; a result that is cut off is made again, and no other job's.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
command -v bash >/dev/null || { echo "skipped: there is no bash, in which job scripts run"; exit 77; }

mkdir adapters bin
cat >adapters/peer.yaml <<'Y'
command: ["{launch}", sh, count.sh, "{threads}"]
version: [echo, peer 1]
Y
cat >adapters/guess.yaml <<'Y'
command: [sh, count.sh, 1]
version: [echo, guess 1]
predicted: true
exact: true
cores: false
ignores: [threads, ranks]
Y
cat >count.sh <<'Y'
echo "{\"images_per_s\": 5, \"threads_here\": $1}"
Y
cat >study.yaml <<'Y'
title: Nodes
experiments:
  speed: {ranks: [1, 2, 3, 8], threads: [1, all], framework: [peer, guess], repeats: 2, seconds: 1}
Y
# What mpiexec and srun are called with goes to a file; one process stands for all ranks.
cat >bin/srun <<'Y'
#!/bin/sh
echo "srun $*" >>"$CALLS"
while [ "$1" != sh ]; do shift; done
exec "$@"
Y
cp bin/srun bin/mpiexec
ln -s "$CONVOY" bin/convoy
chmod +x bin/*
export CALLS="$work/calls" PATH="$work/bin:$PATH"
cores=$(env -u OMP_NUM_THREADS nproc)
study() { "$CONVOY" study study.yaml --out results --frameworks-folder adapters "$@" >log 2>err; }

study --job-scripts --scheduler slurm --ppn 2 --time 00:30:00 --account physics || fail "no scripts: $(cat log err)"
[ "$(ls results/scripts | tr '\n' ' ')" = "launch-1 launch-2 launch-4 nodes-1.sh nodes-2.sh nodes-4.sh " ] || fail "scripts: $(ls results/scripts)"
grep -q '^sbatch results/scripts/nodes-4.sh$' log || fail "how to submit: $(cat log)"
for line in '#SBATCH --nodes=4' '#SBATCH --ntasks-per-node=2' '#SBATCH --time=00:30:00' '#SBATCH --account=physics' '#SBATCH --exclusive'; do
    grep -qxF -- "$line" results/scripts/nodes-4.sh || fail "no line $line: $(cat results/scripts/nodes-4.sh)"
done
grep -q 'signal\|requeue' results/scripts/nodes-4.sh && fail "a signal would end a measurement: $(cat results/scripts/nodes-4.sh)"
[ ! -e results/results.jsonl ] || fail "it has measured"
for scheduler in pbs lsf flux sge; do
    study --out "$scheduler" --job-scripts --scheduler $scheduler --ppn 2 --time 30 --pe mpi --threads 4 || fail "$scheduler: $(cat log err)"
    bash -n $scheduler/scripts/nodes-2.sh && sh -n $scheduler/scripts/launch-2 || fail "$scheduler: no script of the shell"
    grep -q 'USR1\|-notify\|-wa' $scheduler/scripts/nodes-2.sh && fail "$scheduler sends a signal: $(cat $scheduler/scripts/nodes-2.sh)"
done
grep -q '^exec flux run --nodes=2 --exclusive "$@"$' flux/scripts/launch-2 || fail "launch of Flux: $(cat flux/scripts/launch-2)"
bash results/scripts/nodes-2.sh 2>err && fail "the script runs without a batch system"
study --job-scripts --ppn 2 --time 30 && fail "scripts for no scheduler"
grep -q 'scheduler is missing' err || fail "no scheduler: $(cat err)"

# The jobs. Of 3 ranks on 2 nodes, 2 are on the first one, and share its cores.
export SLURM_JOB_ID=1
for n in 4 1 2; do
    bash results/scripts/nodes-$n.sh >log 2>&1 || fail "nodes-$n.sh: $(cat log)"
done
grep -q -- '-n 3 sh count.sh' calls || fail "3 ranks were not started: $(cat calls)"
grep -q 'ranks=3 threads=all .*"threads_here": '$((cores / 2 > 0 ? cores / 2 : 1))'}' results/results-nodes-2.jsonl || fail "threads: $(cat results/results-nodes-2.jsonl)"
[ "$(cat results/results-nodes-*.jsonl | grep -c '"key"')" -ge 12 ] || fail "results: $(cat results/results-nodes-*.jsonl)"
[ "$(grep -c 'framework=guess' results/results-nodes-1.jsonl)" = 8 ] || fail "predictions need one node: $(cat results/results-nodes-1.jsonl)"
grep -c '^"speed"' results/results.csv | grep -q '^1[2-6]$' || fail "one table for all jobs: $(cat results/results.csv)"

# A line that is cut off is made again by its own job, and nobody else touches the file.
lines=$(wc -l <results/results-nodes-4.jsonl)
printf '{"key": "speed ra' >>results/results-nodes-4.jsonl
bash results/scripts/nodes-1.sh >log 2>&1 && grep -q ' 0 now' log || fail "again: $(cat log)"
tail -c 5 results/results-nodes-4.jsonl | grep -q 'd ra' || fail "another job has cut the file"
bash results/scripts/nodes-4.sh >log 2>&1 || fail "after the cut: $(cat log)"
[ "$(wc -l <results/results-nodes-4.jsonl)" -eq "$lines" ] && tail -c 2 results/results-nodes-4.jsonl | grep -q '}' || fail "the cut line stays: $(cat results/results-nodes-4.jsonl)"
exit $failed
