#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich
# seconds: 30
# alone.sh: what stands for MPI in an installation for several MPI libraries (cmd/loader/mpi_alone.c) has each function of
# MPI that the library and the command call. With it, in the place of MPICH, a training on one rank gives the same
# weights, and the self-test passes.
. "$CONVOY_SOURCE/tests/shell.inc"
[ "$CONVOY_SANITIZE" = OFF ] || { echo "the sanitizer's library must be loaded first"; exit 77; }
command -v nm >/dev/null || { echo "there is no nm"; exit 77; }
nm -D --undefined-only "$CONVOY_BUILD/libconvoy.so" "$CONVOY" | grep -o 'MPIR*_[A-Za-z_0-9]*' | sort -u >wanted
[ -s wanted ] && ! nm -D "$CONVOY_BUILD/libconvoy.so" | grep -q ompi_ || { echo "this build is not for the ABI of MPICH"; exit 77; }
"$MPICC" -shared -fPIC -O2 -o alone.so "$CONVOY_SOURCE/cmd/loader/mpi_alone.c" >log 2>&1 || { cat log; fail "it does not compile"; exit 1; }
nm -D --defined-only alone.so | grep -o 'MPI_[A-Za-z_0-9]*' | sort -u >has
[ -z "$(comm -23 wanted has)" ] || fail "mpi_alone.c lacks $(comm -23 wanted has | tr '\n' ' ')"
[ -z "$(comm -13 wanted has | grep -v -x -e MPI_Initialized)" ] || fail "nobody calls $(comm -13 wanted has | tr '\n' ' ') of mpi_alone.c"

alone() { LD_PRELOAD=$work/alone.so "$CONVOY" "$@" --threads 1 >log 2>&1; }
small='--set data.train.events=640 --set data.test.events=64 --set train.epochs=1 --set train.seed=3'
LD_PRELOAD=$work/alone.so "$CONVOY" info >log 2>&1 && contains log 'one rank works without an MPI library' || fail "convoy info: $(cat log)"
# shellcheck disable=SC2086
alone train --out alone $small || fail "$(tail -5 log)"
# shellcheck disable=SC2086
"$CONVOY" train --threads 1 --out mpi $small >log 2>&1 || fail "$(tail -5 log)"
same_tensors alone/checkpoints/step-*/weights.safetensors mpi/checkpoints/step-*/weights.safetensors || fail "the weights differ from those with MPI: $(ls alone mpi)"
alone selftest || fail "$(grep -v ^ok log)"
exit $failed
