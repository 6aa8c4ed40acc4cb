#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich mpi asan minimal
# launch.sh: N tasks of a launcher that each believe to be alone, because it belongs to another MPI, are refused with
# advice. Variables that an interactive shell, a rank's program or a start-up file passes on are no such proof: convoy
# works, says why it is alone, and prints its errors. One process in a job of several tasks gets a warning.
. "$CONVOY_SOURCE/tests/shell.inc"
unset CONVOY_MPI
for name in $(env | sed -n 's/^\(\(OMPI_COMM_WORLD\|PMI\|PMIX\|SLURM\)_[A-Z0-9_]*\)=.*/\1/p'); do
    unset "$name"
done
# The variables of the other MPI's launcher: this build cannot join a job by them.
size=OMPI_COMM_WORLD_SIZE rank=OMPI_COMM_WORLD_RANK
"$CONVOY" info | grep -qi 'open mpi' && size=PMI_SIZE rank=PMI_RANK
none="$CONVOY train none.yaml" # it starts MPI, and then misses the job

# mpiexec COMMAND...: a launcher by its name, which starts one task.
printf '#!/bin/sh\n"$@"\nexit $?\n' >mpiexec
printf '#!/bin/sh\n%s\nexit $?\n' "$none" >rank.sh
cp rank.sh slurm_script # Slurm calls the script of a batch job so
chmod +x mpiexec rank.sh slurm_script
# An interactive shell reads its commands from stdin, and gives each a process group of its own.
typed() { printf 'set -m\n%s\nexit $?\n' "$1" >typed.sh; }

# split TEXT COMMAND...
split() {
    text=$1
    shift
    # shellcheck disable=SC2086
    refused "$text" env "$size=2" "$@"
}
bash=$(command -v bash)
alone='started 2 processes ('$size'=2), but each of them is alone'
# shellcheck disable=SC2086
{
    split "$alone" ./mpiexec $none
    contains err CONVOY_MPI && fail "CONVOY_MPI, which is not set, is blamed: $(cat err)"
    split 'CONVOY_MPI=mpich may have chosen the wrong build: unset it' CONVOY_MPI=mpich ./mpiexec ./rank.sh
    split "$alone" ./mpiexec timeout 60 $none
    split "$alone" ./mpiexec sh -c "timeout 60 ./rank.sh; exit \$?"
    [ -z "$bash" ] || split "$alone" ./mpiexec bash --noprofile -o posix -c "set -m; ./rank.sh; exit \$?"
    refused 'started at least 2 processes (ALPS_APP_PE=1), but' env ALPS_APP_PE=1 ./mpiexec $none
    # Another task says it.
    env "$size=4" "$rank=2" ./mpiexec $none >out 2>err && fail "rank 2 of a split launch works"
    [ -s err ] && fail "rank 2 of a split launch repeats the message: $(cat err)"
}

# alone TEXT COMMAND...: no task of a launcher, whatever the variables of four ranks say: it works and says why it is alone.
alone() {
    text=$1
    shift
    timeout 60 env "$size=4" "$rank=3" SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=3 "$@" >out 2>err && fail "a missing job is trained: $*"
    contains err "warning: $size=4 is in the environment, as " && contains err "$text, and MPI knows of one rank" || fail "expected \"$text\" of $*: $(cat err)"
    contains err 'none.yaml: cannot open' || fail "a lone process does not print its error: $*: $(cat err)"
}
# shellcheck disable=SC2086
alone 'no launcher is among the processes above this one' $none
printf 'BEGIN { exit system("./rank.sh") > 0 }\n' >rank.awk
alone 'the program awk has started this process' ./mpiexec awk -f rank.awk
cp rank.sh slurm_script # Slurm calls the script of a batch job so
alone 'the script of a batch job has started this process' FLUX_JOB_ID=5 ./mpiexec ./slurm_script
# An interactive shell reads its commands from stdin, and gives each of them a process group of its own.
printf 'set -m\n./rank.sh\nexit $?\n' >typed
[ -z "$bash" ] || alone 'the interactive shell bash has started this process' FLUX_JOB_ID=5 ./mpiexec bash --norc -o posix <typed

# A rank of an MPI program starts convoy, with the variables of convoy's own MPI: it does not take convoy for that rank.
cat >rank.c <<'END'
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    int rank = 0, failed = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    failed = rank == 1 && system(argv[argc - 1]) != 0;
    MPI_Finalize();
    return failed;
}
END
if [ -n "$(command -v "${MPIEXEC_N%% *}")" ] && "$MPICC" -o rank rank.c >log 2>&1; then
    # shellcheck disable=SC2086
    timeout 60 $MPIEXEC_N 2 ./rank "exec $CONVOY bench --model linear --batch 4 --steps 1 --threads 1" >out 2>&1 && grep -q '^ranks  *1$' out || fail "the child of a rank: $(cat out)"
fi

# Before MPI starts, too; the other tasks of a launch leave it to rank 0.
no_verb() { timeout 60 env "$size=4" "$@" "$CONVOY" trane >out 2>err; }
no_verb "$rank=3"
contains err "there is no verb 'trane'" || fail "a lone process does not say that its verb is unknown: $(cat err)"
no_verb "$rank=3" ./mpiexec
[ ! -s err ] || fail "rank 3 of a launch repeats what rank 0 says: $(cat err)"
no_verb "$rank=0" ./mpiexec
contains err "there is no verb 'trane'" || fail "rank 0 of a launch says nothing: $(cat err)"

one='nothing has started more than this one process'
SLURM_NTASKS=4 "$CONVOY" train none.yaml 2>&1 | grep -q "this job has 4 tasks (SLURM_NTASKS), but $one" || fail "one process of four is not told"
SLURM_NTASKS=1 "$CONVOY" train none.yaml 2>&1 | grep "$one" && fail "one of one is warned"
[ -z "$(command -v "${MPIEXEC_N%% *}")" ] || ! SLURM_NTASKS=4 $MPIEXEC_N 2 "$CONVOY" train none.yaml 2>&1 | grep "$one" || fail "two ranks are warned"
exit $failed
