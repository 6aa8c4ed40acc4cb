#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich mpi minimal
# launchers.sh: each launcher is recognised by the variables that it sets, the innermost one if they are nested. simulate
# refuses to be started by a launcher, says which, and calls no MPI before; so any MPI library can run this test.
set -u
fail() {
    echo "$*"
    exit 1
}
for name in $(env | sed -n 's/^\(\(OMPI\|PMIX*\|PRTE\|SLURM\|FLUX\|PALS\|MV2\|MVP\|HYDI\|HYDRA_BSTRAP\|JSM_NAMESPACE\|ALPS\)_[A-Z0-9_]*\)=.*/\1/p'); do
    unset "$name"
done

trap 'rm -rf "$folder"' EXIT
folder=$(mktemp -d) && cd "$folder" || fail "no folder for the test"
printf '#!/bin/sh\n"$@"\nexit $?\n' >mpiexec # a launcher by its name: variables count below it alone
chmod +x mpiexec

# is NAME VARIABLE=VALUE...: the launcher that these variables describe, as simulate calls it.
is() {
    wanted=$1
    shift
    out=$(env "$@" ./mpiexec "$CONVOY" simulate x.yaml --ranks 2 2>&1) && fail "$*: simulate accepts it"
    echo "$out" | grep -q "start it without $wanted\$" || fail "$*: not '$wanted' but: $out"
}
is "Open MPI's mpiexec" OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 PMIX_RANK=0
is "jsrun" JSM_NAMESPACE_SIZE=2 JSM_NAMESPACE_RANK=0 PMIX_RANK=0
is "Intel MPI's mpiexec" HYDRA_BSTRAP_LAUNCHER=ssh PMI_SIZE=2 PMI_RANK=0 PMI_FD=9
is "MVAPICH2's mpiexec" MV2_COMM_WORLD_SIZE=2 MV2_COMM_WORLD_RANK=0 PMI_SIZE=2
is "MVAPICH's mpiexec" MVP_COMM_WORLD_SIZE=2 MVP_COMM_WORLD_RANK=0 PMI_SIZE=2
is "MPICH's mpiexec" HYDI_CONTROL_FD=7 PMI_SIZE=2 PMI_RANK=0
is "Cray's PALS (mpiexec or srun --mpi=cray_shasta)" PALS_RANKID=0 PALS_LOCAL_RANKID=0 PMI_SIZE=2 PMI_RANK=0 SLURM_STEP_NUM_TASKS=2
is "flux run" FLUX_JOB_SIZE=2 FLUX_TASK_RANK=0 PMI_SIZE=2 PMI_RANK=0
is "the mpiexec of MPICH or Intel MPI, or srun --mpi=pmi2" PMI_SIZE=2 PMI_RANK=0 SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0
is "srun --mpi=pmix, or a launcher with PMIx" PMIX_RANK=0 SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0
is "srun" SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0
# mpiexec within a step that has one task, as after `srun --pty sh` or `flux alloc`
is "MPICH's mpiexec" HYDI_CONTROL_FD=7 PMI_SIZE=2 PMI_RANK=0 SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0 FLUX_TASK_RANK=0 FLUX_JOB_SIZE=1

# Launchers that do not say how many processes they started: a rank above 0 says that there are several. The message
# comes from rank 0, so here only the exit code (2: wrong usage) shows that it is refused.
refused() {
    env "$@" ./mpiexec "$CONVOY" simulate x.yaml --ranks 2 >out 2>&1
    [ $? = 2 ] && [ ! -s out ] || fail "$*: $(cat out)"
}
refused ALPS_APP_PE=1
refused PRTE_LAUNCHED=1 PMIX_RANK=1
refused PMIX_RANK=3

# One process, or numbers that are none, are not several processes.
alone() {
    env "$@" ./mpiexec "$CONVOY" simulate x.yaml --ranks 2 >out 2>&1 && fail "$*: a missing file is simulated"
    grep -q 'start it without' out && fail "$*: $(cat out)"
    [ -s out ] || fail "$*: no error"
}
alone PMI_SIZE=1 PMI_RANK=0
alone PMI_SIZE=two PMI_RANK=0
alone PMI_SIZE=-3 PMI_RANK=-1
alone PMI_SIZE=99999999999999999999 PMI_RANK=0
alone OMPI_COMM_WORLD_SIZE= OMPI_COMM_WORLD_RANK=
alone ALPS_APP_PE=0
alone PMIX_RANK=0
# Nor are variables without a launcher.
stale() {
    env "$@" "$CONVOY" simulate x.yaml --ranks 2 >out 2>&1
    grep -q 'x.yaml' out || fail "$*: $(cat out)"
}
stale SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0
stale PMI_SIZE=4 PMI_RANK=3
stale OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=3
