#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich
# seconds: 30
# level: 2
# heat.sh: the heat solver of the examples learns while it runs, and its own result does not change. Killed and restarted
# from its checkpoint, it goes on to the same bits. One rank trains beside the others.
. "$CONVOY_SOURCE/tests/shell.inc"
. "$CONVOY_SOURCE/tests/fortran/fortran.inc"

compile heat "$CONVOY_SOURCE/examples/fortran/heat_closure.f90"
./heat off 1600 >off.log 2>&1 || fail "heat off: $(tail -5 off.log)"
for n in 1 2; do
    $MPIEXEC_N $n ./heat 1600 >on.log 2>&1 || fail "heat on $n ranks: $(tail -5 on.log)"
    [ "$(grep 'mean temperature' on.log)" = "$(grep 'mean temperature' off.log)" ] || fail "training changed the solver's result: $(cat on.log off.log)"
    sed -n 's/^error of the coarse grid after 50 steps alone \(.*\), with what was learnt \(.*\)/\1 \2/p' on.log |
        awk '{ n++; good = $2 < 0.6 * $1 } END { exit !(n == 1 && good) }' || fail "the closure was not learnt: $(cat on.log)"
done

# Killed and restarted, it goes on to the same bits.
results() { grep -e 'mean temperature' -e 'error of the coarse grid' "$1"; }
$MPIEXEC_N 2 ./heat 1200 >whole.log 2>&1 || fail "heat: $(tail -5 whole.log)"
$MPIEXEC_N 2 "$PWD/heat" 1200 restart >killed.log 2>&1 &
for _ in $(seq 600); do [ -d heat_restart/step-00000500 ] && break; sleep 0.05; done
killed=0
for process in /proc/[0-9]*; do
    case $({ tr '\0' ' ' <"$process/cmdline"; } 2>/dev/null) in
    "$PWD/heat 1200 restart "*) kill -9 "${process#/proc/}" && killed=1 ;;
    esac
done
[ $killed = 1 ] || fail "the solver ended before it was killed"
wait $!
[ -d heat_restart/step-00000500 ] || fail "the solver wrote no checkpoint: $(cat killed.log)"
$MPIEXEC_N 2 ./heat 1200 restart >restarted.log 2>&1 || fail "restart: $(tail -5 restarted.log)"
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
