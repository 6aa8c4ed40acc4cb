#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# seconds: 40
# level: 2
# box_model.sh: the chemistry of the examples, in which networks take over steps of the solver. They leave most steps to
# it where a new regime begins. The concentrations stay close to those of the solver alone, nitrogen and carbon are
# conserved, and training does not change the solver's result.
. "$CONVOY_SOURCE/tests/shell.inc"
. "$CONVOY_SOURCE/tests/fortran/fortran.inc"

compile box_model "$CONVOY_SOURCE/examples/fortran/box_model.f90"
./box_model off 5 >off.log 2>&1 || fail "off: $(tail -5 off.log)"
[ "$(wc -l <off.log)" = 1 ] || fail "off: $(cat off.log)"
for n in 1 2; do
    $MPIEXEC_N $n ./box_model 5 >on.log 2>&1 || fail "on $n ranks: $(tail -5 on.log)"
    [ "$(grep '^solver alone' on.log)" = "$(cat off.log)" ] || fail "training changed the solver's result: $(cat on.log off.log)"
    # Shares of the steps of a day, in the air that is as before and in the new air, which begins on day 4.
    sed 's/[;,:]//g' on.log | awk '
        /^day/ { networks = $4; unsure = $6; checks += $8 + $18; failed += $10 + $20; old = unsure / (networks + unsure + $8) }
        /^day +4/ { new = $16 / ($14 + $16 + $18); steps_back = new > 0.6 && new > 1.3 * old }
        /^day +5/ { taken = networks / (networks + unsure + $8) > 0.2 }
        /^relative errors/ { for (s = 3; s <= NF; s++) { if ($s < 0.1) close_to++ } }
        /^nitrogen or carbon/ { conserved = $NF < 1e-12 }
        /^microseconds/ { ended = 1 }
        END {
            if (!steps_back) print "the networks were sure of air that they did not know"
            if (!taken) print "the networks took few steps of the air that they know"
            if (!(checks > 0 && failed < 0.25 * checks)) print failed, "of", checks, "checks failed"
            if (close_to != 7) print "an error of a species is 0.1 or more"
            if (!conserved) print "nitrogen or carbon is not conserved"
            exit !(steps_back && taken && checks > 0 && failed < 0.25 * checks && close_to == 7 && conserved && ended)
        }' >log || fail "on $n ranks: $(cat log on.log)"
done
exit $failed
