#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich mpi asan minimal
# launch.sh: N processes that each believe to be alone, because the launcher belongs to another MPI, are refused with
# advice; one process in a job of several tasks gets a warning.
set -u
unset CONVOY_MPI
if "$CONVOY" info | grep -qi 'open mpi'; then
    export PMI_SIZE=2
else
    export OMPI_COMM_WORLD_SIZE=2
fi
out=$("$CONVOY" bench --model linear --batch 4 --steps 1 2>&1)
code=$?
[ $code = 1 ] || { echo "exit code $code: $out"; exit 1; }
echo "$out" | grep -q 'started 2 processes, but each of them is alone' || { echo "no explanation: $out"; exit 1; }
echo "$out" | grep -q 'CONVOY_MPI' && { echo "CONVOY_MPI, which is not set, is blamed: $out"; exit 1; }
CONVOY_MPI=mpich "$CONVOY" bench --model linear --batch 4 --steps 1 2>&1 | grep -q 'CONVOY_MPI=mpich may have chosen the wrong build: unset it$' || { echo "CONVOY_MPI is not named"; exit 1; }
unset PMI_SIZE OMPI_COMM_WORLD_SIZE
out=$(ALPS_APP_PE=1 "$CONVOY" bench --model linear --batch 4 --steps 1 2>&1) && { echo "rank 1 of several is accepted: $out"; exit 1; }
echo "$out" | grep -q 'started at least 2 processes, but' || { echo "rank 1 is not told: $out"; exit 1; }
one='nothing has started more than this one process'
SLURM_NTASKS=4 "$CONVOY" train none.yaml 2>&1 | grep -q "this job has 4 tasks (SLURM_NTASKS), but $one" || { echo "one process of four is not told"; exit 1; }
SLURM_NTASKS=1 "$CONVOY" train none.yaml 2>&1 | grep "$one" && { echo "one of one is warned"; exit 1; }
[ -z "$(command -v "${MPIEXEC_N%% *}")" ] || ! SLURM_NTASKS=4 $MPIEXEC_N 2 "$CONVOY" train none.yaml 2>&1 | grep "$one" || { echo "two ranks are warned"; exit 1; }
