#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich
# cores.sh: the number of threads is the least of the cores that are ours: of the affinity mask, a quota of a control
# group, the batch system and OMP_NUM_THREADS. One warning names all numbers that differ, with their sources; so it does
# if more threads are asked for, on one rank too. It needs taskset.
. "$CONVOY_SOURCE/tests/shell.inc"
command -v taskset >/dev/null || { echo "there is no taskset"; exit 77; }
unset OMP_NUM_THREADS
core=$(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/')
cores=$(nproc)

# threads N COMMAND...: convoy takes N threads; err has its warnings.
threads() {
    n=$1
    shift
    timeout 120 "$@" "$CONVOY" info >out 2>err || fail "$*: $(cat err)"
    sed -n 's/^threads  *[0-9]*: /warning: /p' out >>err
    grep -q "^threads  *$n\(:.*\)*\$" out || fail "expected $n threads of $*: $(grep '^threads' out) $(cat err)"
}
# asked N COMMAND...: N threads are asked for, or none if it is empty. The training warns before it misses its job.
asked() {
    n=$1
    shift
    timeout 120 "$@" "$CONVOY" train none.yaml ${n:+--threads "$n"} >out 2>err && fail "a missing job is trained: $*"
    contains err 'none.yaml: cannot open' || fail "$*: $(cat err)"
}
quiet() { grep -q 'warning: ' err && fail "$*: a warning: $(cat err)"; }
# says TEXT: there is one warning, with this text.
says() { [ "$(grep -c 'warning: ' err)" = 1 ] && contains err "$1" || fail "expected one warning with \"$1\": $(cat err)"; }

threads "$cores" env
quiet all cores
threads 1 env OMP_NUM_THREADS=1
[ "$cores" = 1 ] && quiet one of one || says "$cores by the affinity mask (cores "
[ "$cores" = 1 ] || says ', 1 by OMP_NUM_THREADS=1; --threads'
threads 1 taskset -c "$core"
quiet a core of many
threads 1 taskset -c "$core" env OMP_NUM_THREADS=3,2
says "1 compute thread, the least of the cores that convoy may use: 1 by the affinity mask (core $core), 3 by OMP_NUM_THREADS=3,2; "
threads 1 taskset -c "$core" env SLURM_CPUS_PER_TASK=2 SLURM_CPUS_ON_NODE=64
says "1 by the affinity mask (core $core), 2 by SLURM_CPUS_PER_TASK=2; "
threads "$cores" env OMP_NUM_THREADS=many OMP_DISPLAY_ENV=false
says 'OMP_NUM_THREADS=many is no number of threads or cores, and does not count'
[ "$cores" = 1 ] || {
    threads 1 env NSLOTS=1 JOB_ID=5
    says ', 1 by NSLOTS=1; '
    threads "$cores" env OMP_PROC_BIND=true # a thread is bound to one place, the team to all
    quiet OMP_PROC_BIND
}
asked 8 taskset -c "$core"
says "8 compute threads were asked for, and the cores that convoy may use are fewer: 1 by the affinity mask (core $core); threads share a core"
asked 8 taskset -c "$core" env OMP_PROC_BIND=true "OMP_PLACES={$core}"
says "1 by OpenMP's places (OMP_PLACES, OMP_PROC_BIND) (core $core)"
asked 2 env SLURM_CPUS_ON_NODE=1
says ', 1 by SLURM_CPUS_ON_NODE=1; threads share a core or are stopped for part of the time, and each step waits for them: ask for --threads 1'
asked 1 env OMP_NUM_THREADS=4
quiet a number that was asked for

# ---- a quota of a control group, and of one above it ----
quota() { # MICROSECONDS CHECK N COMMAND...: in a group below one with this quota of a tenth of a second
    microseconds=$1 check=$2 n=$3
    shift 3
    mkdir -p "$group/inner"
    if [ -e "$group/cpu.max" ]; then
        echo "$microseconds 100000" >"$group/cpu.max"
    else
        echo "$microseconds" >"$group/cpu.cfs_quota_us"
    fi
    printf 'echo $$ >"%s/inner/cgroup.procs"; exec "$@"\n' "$group" >enter
    $check "$n" sh enter "$@"
    for _ in 1 2 3 4 5; do
        rmdir "$group/inner" "$group" 2>/dev/null && break
        sleep 0.1
    done
}
group=
for mount in /sys/fs/cgroup/cpu /sys/fs/cgroup; do
    rm -f probe
    mkdir "$mount/convoy-$$" 2>/dev/null || continue
    [ -w "$mount/convoy-$$/cpu.cfs_quota_us" ] || [ -w "$mount/convoy-$$/cpu.max" ] && : >probe
    rmdir "$mount/convoy-$$"
    [ -e probe ] && group=$mount/convoy-$$ && break
done
if [ -n "$group" ]; then
    quota 50000 threads 1 env
    says ", 0.5 by $group/cpu."
    contains err 'a thread needs a whole core, and waits for part of the time: raise the quota' || fail "half a core: $(cat err)"
    quota 50000 asked 1 env
    says "1 compute thread was asked for, and the cores that convoy may use are fewer: "
    contains err ": raise the quota" && ! contains err 'ask for' || fail "what was asked for is advised: $(cat err)"
    quota 150000 threads 1 env OMP_NUM_THREADS=2
    [ "$cores" = 1 ] || says ", 2 by OMP_NUM_THREADS=2, 1.5 by $group/cpu."
    # shellcheck disable=SC2086
    quota 100000 asked "" $MPIEXEC_N 2
    says ", 0.5 for each of 2 ranks by $group/cpu."
    # shellcheck disable=SC2086
    quota 300000 asked "" $MPIEXEC_N 2
    [ "$cores" -gt 3 ] || [ "$cores" = 1 ] || quiet "a quota that is enough"
else
    echo "no control group with a quota can be made here: quotas are left out"
fi
exit $failed
