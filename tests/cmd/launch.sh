#!/bin/sh
# minimal
# launch.sh: N processes that each believe to be alone, because the launcher belongs to another MPI, are refused with the way out.
set -u
if "$CONVOY" info | grep -qi 'open mpi'; then
    export PMI_SIZE=2
else
    export OMPI_COMM_WORLD_SIZE=2
fi
out=$("$CONVOY" bench --model linear --batch 4 --steps 1 2>&1)
code=$?
[ $code = 1 ] || { echo "exit code $code: $out"; exit 1; }
echo "$out" | grep -q 'started 2 processes, but each of them is alone' || { echo "no explanation: $out"; exit 1; }
