#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# own_openmp.sh: a host program with LLVM's OpenMP, and with OpenBLAS if it is here, trains and applies a network between
# and during its own parallel loops and products of matrices. These stay right, and so do its settings; losses and
# outputs have the bits of a host without OpenMP.
. "$CONVOY_SOURCE/tests/shell.inc"
unset OMP_NUM_THREADS OMP_THREAD_LIMIT OPENBLAS_NUM_THREADS
command -v clang >/dev/null || { echo "there is no clang"; exit 77; }
printf '#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n' >probe.c
clang -fopenmp -o probe probe.c >log 2>&1 && ./probe || { echo "clang has no OpenMP here: libomp is missing"; exit 77; }
ldd probe | grep -q libomp || { echo "clang takes another OpenMP than libomp"; exit 77; }

# build COMPILER NAME OPTIONS...
build() {
    compiler=$1 name=$2
    shift 2
    "$compiler" -std=c11 -D_GNU_SOURCE -O1 -Wall -Wextra -Werror -o "$name" "$CONVOY_SOURCE/tests/context/own_openmp.c" \
        -I"$CONVOY_SOURCE/include" -L"$CONVOY_BUILD" -lconvoy -Wl,-rpath,"$CONVOY_BUILD" -pthread "$@" >log 2>&1 || { head -20 log; fail "$name"; }
}

build "$CC" plain
build clang with_omp -fopenmp
programs=with_omp
printf '#include <cblas.h>\nint openblas_get_num_threads(void);\nint main(void) { return openblas_get_num_threads() < 1; }\n' >probe.c
if clang -o probe probe.c -lopenblas >log 2>&1 && ./probe; then
    build clang with_blas -fopenmp -DHOST_BLAS -lopenblas
    programs="$programs with_blas"
else
    echo "there is no OpenBLAS: products of matrices are left out"
fi

timeout 120 ./plain >plain.bits 2>log || fail "plain: exit code $?: $(tail -5 log)"
[ "$(grep -c '^loss' plain.bits)" = 20 ] || fail "plain: $(grep -c '^loss' plain.bits) losses, expected 20"
for program in $programs; do
    timeout 120 "./$program" >"$program.bits" 2>log || fail "$program: exit code $?: $(tail -5 log)"
    cmp -s "$program.bits" plain.bits || fail "$program and plain differ: $(diff "$program.bits" plain.bits | head -4)"
done
exit $failed
