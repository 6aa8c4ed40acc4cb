#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich
# seconds: 20
# fortran.sh: the Fortran module is standard Fortran 2018. Its arrays may have any rank, kind and stride, and what does
# not fit is a fault with a sentence. Procedures of the program are layers and losses. The heat solver of the examples learns while it runs, and its own result does not
# change. (The same bits as in C: tests/languages/.)
. "$CONVOY_SOURCE/tests/shell.inc"
[ "$CONVOY_SANITIZE" = OFF ] || { echo "the sanitizer's library is not part of Fortran's"; exit 77; }
fortran=$(echo "$MPICC" | sed 's/mpicc\([^/]*\)$/mpifort\1/')
command -v "$fortran" >/dev/null || { echo "there is no $fortran"; exit 77; }
echo 'program p; use mpi_f08; call MPI_Init(); call MPI_Finalize(); end program' >probe.f90
"$fortran" -o probe probe.f90 >log 2>&1 || { echo "$fortran cannot compile a program with mpi_f08: $(head -1 log)"; exit 77; }

library="-L$CONVOY_BUILD -lconvoy -Wl,-rpath,$CONVOY_BUILD"
strict='-std=f2018 -O2 -Wall -Wextra -pedantic -Wno-compare-reals -Werror' # results must be equal to the bit
for module in convoy_c convoy; do
    # shellcheck disable=SC2086
    "$fortran" $strict -c "$CONVOY_SOURCE/fortran/$module.f90" >log 2>&1 || { cat log; fail "$module.f90"; exit 1; }
done

# compile NAME SOURCE
compile() {
    # shellcheck disable=SC2086
    "$fortran" $strict -o "$1" "$2" convoy.o convoy_c.o $library >log 2>&1 || { head -20 log; fail "$2 does not compile"; }
}
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

compile heat "$CONVOY_SOURCE/examples/fortran/heat_closure.f90"
./heat off 2000 >off.log 2>&1 || fail "heat off: $(tail -5 off.log)"
for n in 1 2; do
    $MPIEXEC_N $n ./heat 2000 >on.log 2>&1 || fail "heat on $n ranks: $(tail -5 on.log)"
    [ "$(grep 'mean temperature' on.log)" = "$(grep 'mean temperature' off.log)" ] || fail "training changed the solver's result: $(cat on.log off.log)"
    sed -n 's/^error of the coarse grid after 50 steps alone \(.*\), with what was learnt \(.*\)/\1 \2/p' on.log |
        awk '{ n++; good = $2 < 0.6 * $1 } END { exit !(n == 1 && good) }' || fail "the closure was not learnt: $(cat on.log)"
done

# Killed and restarted, it goes on to the same bits.
results() { grep -e 'mean temperature' -e 'error of the coarse grid' "$1"; }
$MPIEXEC_N 2 ./heat 3000 >whole.log 2>&1 || fail "heat: $(tail -5 whole.log)"
$MPIEXEC_N 2 "$PWD/heat" 3000 restart >killed.log 2>&1 &
for _ in $(seq 600); do [ -d heat_restart/step-00000500 ] && break; sleep 0.05; done
killed=0
for process in /proc/[0-9]*; do
    case $({ tr '\0' ' ' <"$process/cmdline"; } 2>/dev/null) in
    "$PWD/heat 3000 restart "*) kill -9 "${process#/proc/}" && killed=1 ;;
    esac
done
[ $killed = 1 ] || fail "the solver ended before it was killed"
wait $!
[ -d heat_restart/step-00000500 ] || fail "the solver wrote no checkpoint: $(cat killed.log)"
$MPIEXEC_N 2 ./heat 3000 restart >restarted.log 2>&1 || fail "restart: $(tail -5 restarted.log)"
contains restarted.log 'goes on from step ' || fail "the solver began anew: $(cat restarted.log)"
[ "$(results restarted.log)" = "$(results whole.log)" ] || fail "restarted: $(results restarted.log), in one go: $(results whole.log)"

# One rank trains beside the others. How much it has learnt at the end depends on the machine.
$MPIEXEC_N 3 ./heat stream 6000 >stream.log 2>&1 || fail "heat stream: $(tail -5 stream.log)"
$MPIEXEC_N 1 ./heat off 6000 >off.log 2>&1 || fail "heat off: $(tail -5 off.log)"
[ "$(grep 'mean temperature' stream.log)" = "$(grep 'mean temperature' off.log)" ] || fail "a stream changed the solver's result: $(cat stream.log)"
taken=$(sed -n 's/^samples 1536000, dropped .*, weights taken \([0-9]*\) times.*/\1/p' stream.log)
[ "${taken:-0}" -gt 0 ] || fail "no weights came back: $(cat stream.log)"
sed -n 's/^error of the coarse grid after 50 steps alone \(.*\), with what was learnt \(.*\)/\1 \2/p' stream.log |
    awk -v taken="${taken:-0}" '{ n++; good = taken < 500 || $2 < $1 } END { exit !(n == 1 && good) }' || fail "the closure was not learnt from the stream: $(cat stream.log)"
exit $failed
