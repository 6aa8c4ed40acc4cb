#!/bin/sh
# slurm.sh: a script of `convoy jobscript --slurm` under a real Slurm: the run is told to stop before the limit, saves,
# is requeued, resumes, and comes to its end.
#
# munged, slurmctld and slurmd are started here, on this machine only, with their own ports and files, and end with the
# test. It takes one to two minutes. It is run only if CONVOY_TEST_SLURM is set to the job's limit in minutes (1, or 2
# to see more of the same).
. "$CONVOY_SOURCE/tests/cmd/job.inc"
skip() { echo "skipped: $*"; exit 77; }
minutes=${CONVOY_TEST_SLURM-}
[ -n "$minutes" ] || skip "it takes minutes; CONVOY_TEST_SLURM=1 runs it, scripts/test.sh --all does"
PATH=$PATH:/usr/sbin:/sbin
for command in munged slurmctld slurmd sbatch srun scontrol; do
    command -v $command >/dev/null || skip "there is no $command (Debian: slurm-wlm munge)"
done
[ "$(id -u)" = 0 ] || skip "slurmd needs root"
way=pmix                                                # option of srun, as `convoy jobscript` writes it for this build's MPI
"$CONVOY" info | grep -qi 'open mpi' || way=pmi2

# ---- a cluster of one node ----
host=$(hostname -s)
port=$((20000 + $$ % 20000))
export SLURM_CONF="$work/slurm.conf"
mkdir spool state bin
ln -s "$CONVOY" bin/convoy
PATH=$work/bin:$PATH
cat >slurm.conf <<END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$work/munge.socket,cred_expire=5
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
KillWait=20
SchedulerParameters=sched_interval=5,bf_interval=5,batch_sched_delay=1
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=test Nodes=$host Default=YES MaxTime=INFINITE State=UP
END
srun --mpi=list 2>&1 | grep -q $way || skip "this Slurm is built without $way"
started= job=
stop() {
    [ -z "$job" ] || scancel -s KILL --full "$job" 2>/dev/null
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        [ -n "$started" ] && [ -n "$(squeue -h 2>/dev/null)" ] || break
        sleep 1
    done
    # shellcheck disable=SC2086
    [ -z "$started" ] || kill $started 2>/dev/null
    wait
    rm -rf "$work"
}
trap stop EXIT
trap 'exit 1' INT TERM
give_up() {
    fail "$*"
    tail -n 20 slurmctld.log slurmd.log munge.log ./*.out 2>/dev/null
    exit 1
}
dd if=/dev/urandom of=munge.key bs=1024 count=1 2>/dev/null
chmod 600 munge.key
munged --foreground --force --key-file="$work/munge.key" --socket="$work/munge.socket" --pid-file="$work/munge.pid" --log-file="$work/munge.log" --seed-file="$work/munge.seed" >munge.out 2>&1 &
started="$!"
for _ in $(seq 50); do [ -S munge.socket ] || sleep 0.2; done
slurmctld -D -f "$SLURM_CONF" >ctld.out 2>&1 &
started="$! $started"
slurmd -D -f "$SLURM_CONF" >slurmd.out 2>&1 &
started="$! $started"
for _ in $(seq 150); do
    sinfo -h -o %T 2>/dev/null | grep -q idle && break
    sleep 0.2
done
sinfo -h -o %T 2>/dev/null | grep -q idle || { tail -n 5 slurmctld.log slurmd.log munge.log 2>/dev/null; skip "slurmd and slurmctld do not come up on this machine: $(sinfo 2>&1)"; }

# ---- a training that is longer than any limit; after the first stop, some hundred steps are left, whatever the speed
# of this machine ----
limit=$((60 * minutes))
steps=100000000
write_job() {
    cat >job.new <<END
name: two jobs
model: {layers: [{conv: {channels: 16, kernel: 3, pad: 1}}, batch_norm, relu, {max_pool: {kernel: 2}}, {dropout: {p: 0.2}}, {fc: {channels: 4}}]}
data: {train: {format: synthetic, samples: 4096, shape: [3, 32, 32], classes: 4}}
train: {batch: 64, steps: $steps, optimizer: {name: sgd, lr: 0.01, momentum: 0.9}}
checkpoint: {every: 1 h}
END
    mv job.new job.yaml
}
write_job
# Slurm looks every 30 s and gives the signal up to that much earlier: here it comes between a twelfth and seven
# twelfths of a limit of a minute.
out='the run'
"$CONVOY" jobscript job.yaml --slurm --nodes 1 --ppn 2 --threads 1 --time "$minutes" --signal $((limit * 5 / 12)) --out "$out" >script || give_up "no script"
job=$(sbatch --parsable script) || give_up "sbatch does not take the script: $(cat script)"
log=two_jobs-$job.out
begin=$(date +%s)
stopped= away=0
until grep -q '^finished' "$out/STATUS" 2>/dev/null; do
    [ $(($(date +%s) - begin)) -lt $((5 * limit + 60)) ] || give_up "not finished after five times the limit: $(cat "$out/STATUS" 2>&1; scontrol show job "$job")"
    case $(squeue -h -j "$job" -o %T 2>/dev/null) in
    PENDING | CONFIGURING | RUNNING | COMPLETING | REQUEUED | STAGE_OUT) away=0 ;;
    *) away=$((away + 1)) ;;   # for a moment, between its end and the queue
    esac
    [ $away -lt 20 ] || grep -q '^finished' "$out/STATUS" || give_up "the job ended before the run did: $(cat "$out/STATUS" 2>&1; scontrol show job "$job")"
    at=$(sed -n 's/^stopped step \([0-9]*\) of.*/\1/p' "$out/STATUS" 2>/dev/null)
    if [ "${at:-$stopped}" != "$stopped" ]; then
        stopped=$at
        steps=$((at + 300))
        write_job
    fi
    sleep 0.5
done
seconds=$(($(date +%s) - begin))
sleep 2
scontrol show job "$job" >shown
grep -q 'Restarts=[1-9]' shown || fail "it was not requeued: $(cat shown)"
grep -q 'resumed after step' "$log" || fail "the log does not say that it resumed: $(cat "$log")"
grep -q '^stopped after ' "$log" || fail "the log does not say that it was stopped: $(cat "$log")"
grep -q "^finished step $steps of $steps" "$out/STATUS" || fail "not all steps are done: $(cat "$out/STATUS")"
# Every step is done once, although two or more jobs did them.
sed -n 's/.*"kind": *"step".*"step": *\([0-9]*\),.*/\1/p' "$out/metrics.jsonl" | sort -n | uniq -d | grep -q . && fail "steps stand twice in metrics.jsonl"
[ $failed = 0 ] && echo "$steps steps, $(grep -c 'resumed after step' "$log") resumed, $seconds s: $(grep -h '^jobscript:\|^stopped after\|^done after' "$log" | tr '\n' ';')"
exit $failed
