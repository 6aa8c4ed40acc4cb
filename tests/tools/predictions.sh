#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# seconds: 2
# predictions.sh: scripts/predictions.sh: pairs of a study, of compare_simulated.sh and of compare_grids.sh, and what is
# outside its bar; the results of the repository have pairs; files without pairs and wrong bars are refused.
. "$CONVOY_SOURCE/tests/shell.inc"
predictions() { sh "$CONVOY_SOURCE/scripts/predictions.sh" "$@" >out 2>err; }
mkdir small
cat >small/results.csv <<'END'
experiment,"model","set.parallel","ranks","framework",images_per_s,lowest,highest,ms_median,lowest,highest,repeats,error,version,machine
"a","lenet","{pipeline: 2, tensor: 1}","2","convoy",10,10,10,200,200,200,1,"","convoy 1",m1
"a","lenet","{pipeline: 2, tensor: 1}","2","convoy-clock",10,10,10,150,150,150,1,"","convoy 1",m1
"a","lenet","{}","2","convoy-clock",10,10,10,100,100,100,1,"","convoy 1",m1
"a","lenet","{}","2","convoy",,,,,,,1,"it ""failed"", twice","convoy 1",m1
"a","lenet","{}","4","convoy",10,10,10,120,120,120,1,"","convoy 1",m1
"a","lenet","{}","4","convoy-clock",10,10,10,60,60,60,1,"","convoy 1",m2
"a","lenet","{}","4","pytorch",10,10,10,60,60,60,1,"","torch 1",m1

experiment,"batch","model","framework",images_per_s,lowest,highest,ms_median,lowest,highest,repeats,error,version,machine
"b","8","lenet","convoy",10,10,10,100,100,100,1,"","convoy 1",m1
"b","8","lenet","convoy-clock",10,10,10,99,99,99,1,"","convoy 1",m1
END
cat >page.md <<'END'
| network, batch a rank | link | ranks | step ms, real | simulated | exposed ms, real | simulated | exposed: difference |
|---|---|---|---|---|---|---|---|
| lenet, 8 | 1gbit | 2 | 1000.0 | 900.0 | 10.0 | 19.0 | +90 % |
| lenet, 8 | 1gbit | 4 | 1000.0 | 800.0 | 100.0 | 130.0 | +30 % |

| network | other |
| lenet, 8 | 1gbit | 8 | 1 | 2 | 3 | 4 | |
END
printf '\nlenet:8:2\n%-52s %12s %12s %8s\n%-52s %12.2f %12.2f %8.1f\nauto is 0 %% slower\n' grid "predicted ms" "measured ms" off "data 2, pipeline 1" 9 10 -10.0 >grids.txt
predictions small/results.csv page.md grids.txt || fail "code $?: $(cat err)"
for row in '| small, lenet, parallel {pipeline: 2, tensor: 1}, ranks 2 | 150 | 200 | -25.0 | yes |' \
    '| small, batch 8, lenet | 99 | 100 | -1.0 | yes |' \
    '| lenet, 8 a rank, 1gbit, 2 ranks | 900 | 1000 | -10.0 | yes |' '| lenet, 8 a rank, 1gbit, 4 ranks | 800 | 1000 | -20.0 | **no** |' \
    '| lenet, 8 a rank, 1gbit, 2 ranks | 19 | 10 | +90.0 | yes |' '| lenet, 8 a rank, 1gbit, 4 ranks | 130 | 100 | +30.0 | **no** |' \
    '| lenet:8:2, data 2, pipeline 1 | 9 | 10 | -10.0 | yes |' '| Simulated steps | 2 | 1 | 17 | -15.0 | -20.0 |'; do
    grep -qF "$row" out || fail "no row '$row': $(cat out)"
done
[ "$(grep -c ' yes |$\|no\*\* |$' out)" = 7 ] || fail "more pairs than there are: $(cat out)"
grep -q '2 of 7 rows are outside their bar' err || fail "what is outside is not named: $(cat err)"
predictions --check small/results.csv page.md && fail "--check does not fail"
predictions --check --bar simulated-step=20 --bar simulated-exposed=30 small/results.csv page.md || fail "a wider bar: $(cat out err)"
for wrong in 'page.none' '--bar clock=x small/results.csv' '--bar other=3 small/results.csv' '--bar'; do
    # shellcheck disable=SC2086
    predictions $wrong && fail "accepted: $wrong"
    [ "$(wc -c <err)" -gt 10 ] || fail "$wrong: no message"
done
echo nothing >empty.md
predictions empty.md && fail "a file without pairs is accepted"
grep -q 'none of the files has both' err || fail "no pairs: $(cat err)"
predictions || fail "the results of the repository: $(cat err)"
grep -q '^| Simulated steps | [0-9]* |' out || fail "no simulated steps in the results of the repository: $(cat out)"
exit $failed
