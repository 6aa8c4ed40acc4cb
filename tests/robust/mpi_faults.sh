#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich soak
# seconds: 80
# level: 2
# lane: clock
# mpi_faults.sh: a rank's k-th MPI call fails, is skipped or has a wrong count, or the rank is killed or exits there:
# the job ends within 30 seconds with a code that is not 0, the rank is named, and no process remains. The ranks are on
# one node (sums in shared memory) and on two (by messages), or there are four, on a grid of tensor 2 and spatial 2. MPI need not notice a wrong count. If it did not, and what
# was lost had no effect, the run must end well with the right bits.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
. "$CONVOY_SOURCE/tests/robust/sweep.inc"
echo 'watchdog: {timeout: 2 s}' >>job.yaml
limit=60

# with_mpi NODE-RANKS RANK AT FAULT: trains on two ranks in disk/run, on four if all are on one node. $log_mpi: file for
# the calls.
with_mpi() {
    CONVOY_NODE_RANKS=$1 SHIM=$shims/shim_mpi.so SHIM_MPI_RANK=$2 SHIM_MPI_AT=$3 SHIM_MPI_FAULT=$4
    export CONVOY_NODE_RANKS SHIM SHIM_MPI_RANK SHIM_MPI_AT SHIM_MPI_FAULT
    if [ -n "$log_mpi" ]; then export SHIM_MPI_LOG="$log_mpi"; fi
    rm -rf disk/run
    if [ "$1" = 4 ]; then
        train 4 disk/run --set parallel.tensor=2 --set parallel.spatial=2
    else
        train 2 disk/run
    fi
    code=$?
    unset CONVOY_NODE_RANKS SHIM SHIM_MPI_RANK SHIM_MPI_AT SHIM_MPI_FAULT SHIM_MPI_LOG
    return $code
}

# Counts the calls of a rank.
log_mpi=$work/calls
for ranks in 2 1 4; do
    with_mpi $ranks 1 0 none || fail "the run that is left alone fails: $(cat log)"
    eval "calls_$ranks=$(wc -l <calls)"
    mv disk/run "disk/whole$ranks"
done
log_mpi=

# orphans: whether a process that noted its number still exists ten seconds later. A process that has ended and was not
# waited for counts as gone.
orphans() {
    for wait in 1 2 3 4 5 6 7 8 9 10 11; do
        alive=
        for file in pid-*; do
            [ -e "$file" ] || continue
            state=$(sed 's/.*) \(.\).*/\1/' "/proc/$(cat "$file")/stat" 2>/dev/null) || continue
            [ "$state" = Z ] || alive="$alive $(cat "$file") ($state)"
        done
        [ -n "$alive" ] || return 1
        [ $wait = 11 ] || sleep 1
    done
}

# MPICH's launcher names a process instead of a rank: the first of its list that has not ended well. After the death of a
# rank it ends the others itself, so this may be one of them.
names_process() {
    case $1 in kill | exit) ;; *) return 1 ;; esac
    for file in pid-*; do
        ! contains log "PID $(cat "$file") " || return 0
    done
    return 1
}

# fault_at FAULT NODE-RANKS RANK AT
fault_at() {
    began=$(date +%s)
    with_mpi "$2" "$3" "$4" "$1"
    code=$?
    took=$(($(date +%s) - began))
    contains log "shim_mpi: $1 " || return 2                 # the run was shorter this time
    if [ $code = 0 ]; then
        [ "$1" = count ] && same_weights disk/run "disk/whole$2" step-00000006 || { fail "the job ends well"; return 1; }
        unnoticed=$((unnoticed + 1))
        return 0
    fi
    [ $took -le 30 ] || { fail "the job is gone after $took s only"; return 1; }
    grep -v '^shim_mpi' log | grep -qiE 'rank:? *[0-9]' || names_process "$1" || { fail "no rank is named"; return 1; }
    ! orphans || { fail "left behind: $alive"; return 1; }
}

# No watchdog runs before the ranks have a context, but the time limit of the start holds. It is long enough for ranks
# on a busy machine to get to the fault.
export CONVOY_START_TIMEOUT=6
fault_at skip 2 0 2 || fail "a rank that leaves out its first sum: code $code, $took s: $(cat log)"
contains log 'not all ranks have started within 6 s' || fail "the log does not report that not all ranks have started: $(cat log)"

sample 5 27 1000
good=0 tried=0 unnoticed=0 n=0
while [ $n -lt "$wanted" ]; do
    case $((n % 5)) in 0) fault=skip ;; 1) fault=error ;; 2) fault=kill ;; 3) fault=count ;; *) fault=exit ;; esac
    n=$((n + 1))
    below 2
    ranks=$((drawn + 1))
    # With half the elements, a sum over four ranks of a node can be wrong on all of them alike, and nobody can notice.
    [ $((n % 4)) != 0 ] || [ $fault = count ] || ranks=4
    eval "calls=\$calls_$ranks"
    below 2
    rank=$drawn
    below "$calls"
    at=$((drawn + 1))
    fault_at $fault $ranks "$rank" $at
    case $? in
    0) good=$((good + 1)) tried=$((tried + 1)) ;;
    1) tried=$((tried + 1)); fail "^ $fault at call $at of rank $rank, $ranks ranks a node, code $code, $took s: $(cat log)" ;;
    esac
done
echo "count: mpi_faults: $good of $tried faults end the job within 30 s with the rank named and nobody left behind ($unnoticed of another shape did no harm; $wanted tried, the others came too late)"
[ $tried -gt 0 ] || fail "no fault happened"
exit $failed
