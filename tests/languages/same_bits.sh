#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich
# seconds: 10
# same_bits.sh: the same training in C, C++, Fortran and Python gives the same loss, outputs and weights, to the bit, on
# one rank and on two. A language whose compiler or package is not here is left out, and named.
. "$CONVOY_SOURCE/tests/shell.inc"
[ "$CONVOY_SANITIZE" = OFF ] || { echo "the sanitizer's library is not part of other languages"; exit 77; }
here=$CONVOY_SOURCE/tests/languages
library="-L$CONVOY_BUILD -lconvoy -Wl,-rpath,$CONVOY_BUILD"
wrapper() { echo "$MPICC" | sed "s/mpicc\([^/]*\)\$/$1\1/"; }

# shellcheck disable=SC2086
"$MPICC" -std=c11 -Wall -Wextra -Werror -o train_c "$here/train.c" -I"$CONVOY_SOURCE/include" $library >log 2>&1 || { head log; fail "train.c"; }
programs=./train_c

cpp=$(wrapper mpicxx)
if command -v "$cpp" >/dev/null && "$cpp" --version >/dev/null 2>&1; then
    # Without the old C++ classes of MPI, which give warnings.
    # shellcheck disable=SC2086
    "$cpp" -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX -std=c++17 -Wall -Wextra -Werror -o train_cpp "$here/train.cpp" -I"$CONVOY_SOURCE/include" $library >log 2>&1 || { head -20 log; fail "train.cpp"; }
    programs="$programs ./train_cpp"
else
    echo "there is no $cpp"
fi

fortran=$(wrapper mpifort)
echo 'program p; use mpi_f08; call MPI_Init(); call MPI_Finalize(); end program' >probe.f90
if command -v "$fortran" >/dev/null && "$fortran" -o probe probe.f90 >log 2>&1; then
    # shellcheck disable=SC2086
    "$fortran" -std=f2018 -o train_f "$CONVOY_BUILD/fortran/convoy_c.f90" "$CONVOY_BUILD/fortran/convoy.f90" "$here/train.f90" $library >log 2>&1 ||
        { head -20 log; fail "train.f90"; }
    programs="$programs ./train_f"
else
    echo "there is no $fortran that compiles programs with mpi_f08"
fi

python=$(numpy_python)
if [ -n "$python" ]; then
    export CONVOY_LIBRARY="$CONVOY_BUILD/libconvoy.so" PYTHONPATH="$CONVOY_SOURCE/python" PYTHONDONTWRITEBYTECODE=1
    printf '#!/bin/sh\nexec "%s" "%s"\n' "$python" "$here/train.py" >train_py
    chmod +x train_py
    programs="$programs ./train_py"
else
    echo "there is no python3 with numpy"
fi

for n in 1 2; do
    for program in $programs; do
        $MPIEXEC_N $n "$program" >"$program.bits" 2>log || fail "$n ranks, $program: $(tail -5 log)"
        [ "$(wc -l <"$program.bits")" = 436 ] || fail "$n ranks, $program: $(wc -l <"$program.bits") lines, expected 436"
        cmp -s "$program.bits" train_c.bits || fail "$n ranks: $program and train_c differ: $(diff "$program.bits" train_c.bits | head -4)"
    done
done
exit $failed
