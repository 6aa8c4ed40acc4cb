#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich
# fortran.sh: the Fortran module is standard Fortran 2018. Its arrays may have any rank, kind and stride, and what does
# not fit is a fault with a sentence. Procedures of the program are layers and losses. (The same bits as in C:
# tests/languages/; a solver that learns: heat.sh.)
. "$CONVOY_SOURCE/tests/shell.inc"
. "$CONVOY_SOURCE/tests/fortran/fortran.inc"
strict="$strict -Wno-compare-reals" # results must be equal to the bit

compile arrays "$CONVOY_SOURCE/tests/fortran/arrays.f90"
./arrays >log 2>&1 || fail "arrays: $(tail -20 log)"
contains log 'all checks passed' || fail "arrays ended early: $(cat log)"

compile functions "$CONVOY_SOURCE/tests/fortran/functions.f90"
for n in 1 2; do
    $MPIEXEC_N $n ./functions >log 2>&1 || fail "functions on $n ranks: $(tail -20 log)"
    [ "$(grep -c 'all checks passed' log)" = $n ] || fail "functions ended early on $n ranks: $(cat log)"
done

# Without stat a fault ends the program, and says what happened.
cat >stops.f90 <<'END'
program stops
  use convoy
  implicit none
  type(convoy_model) :: model
  call model%create('m')
  call model%add('no_such_layer', from='x')
  print '(a)', 'it went on'
end program stops
END
compile stops stops.f90
./stops >log 2>&1 && fail "a fault without stat was ignored"
contains log 'ERROR STOP convoy: ' || fail "the message of a fault: $(cat log)"

compile conservation "$CONVOY_SOURCE/examples/fortran/conservation.f90"
for n in 1 2; do
    $MPIEXEC_N $n ./conservation >log 2>&1 || fail "conservation on $n ranks: $(tail -5 log)"
    awk '/from nothing/ { off = $NF } /^with it/ { n++; good = $NF < 0.2 * off } END { exit !(n == 1 && good) }' log ||
        fail "the closure does not conserve heat: $(cat log)"
done

exit $failed
