#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan
# own_data.sh: docs/guide/your-data.md on 1,000 samples: HDF5 files with weights and three targets are inspected,
# trained on, scored, predicted, and converted into one set.
. "$CONVOY_SOURCE/tests/shell.inc"

make=$CONVOY_BUILD/tests/bench_data_hdf5
[ -x "$make" ] || exit 77
"$CONVOY" info | grep -q '^hdf5 *yes' || exit 77
"$make" make showers 1000 10 || fail "the files cannot be made"
"$make" make held 100 1 100000 || fail "the files cannot be made"

"$CONVOY" inspect showers >log 2>&1 || fail "inspect fails: $(cat log)"
grep -q '1000 samples' log && grep -q '16x64x64' log || fail "inspect: $(cat log)"

cp "$CONVOY_SOURCE/examples/showers.yaml" job.yaml
"$CONVOY" train job.yaml --threads 1 --out run --progress plain >log 2>&1 || fail "train fails: $(cat log)"
"$CONVOY" test run --json >score || fail "test fails"
grep -q '"samples": 100' score || fail "not all samples are scored: $(cat score)"
r2=$(sed -n 's/.*"r2": \(-*[0-9.e-]*\).*/\1/p' score | head -n 1)
awk -v r2="$r2" 'BEGIN { exit !(r2 > 0.3 && r2 <= 1) }' || fail "nothing was learnt: r2 is $r2, expected above 0.3: $(cat score)"
"$CONVOY" test run --data held --json >again || fail "test on a path fails"
[ "$(sed -n 's/.*"r2": \(-*[0-9.e-]*\).*/\1/p' again | head -n 1)" = "$r2" ] || fail "a path alone gives other scores: $(cat again)"
"$CONVOY" predict run --data '{path: held, y: none, weight: none}' --out p.csv || fail "predict fails"
"$CONVOY" predict run --data held --out path.csv && cmp p.csv path.csv || fail "a path alone gives other predictions"
[ "$(wc -l <p.csv)" = 100 ] || fail "not a row for each sample: $(wc -l <p.csv)"

# A condition chooses samples: quality is uniform between 0 and 1.
"$CONVOY" inspect '{path: showers, where: quality > 0.5}' >log 2>&1 || fail "inspect with a condition: $(cat log)"
n=$(sed -n 's/.*[^0-9]\([0-9][0-9]*\) samples.*/\1/p; s/^\([0-9][0-9]*\) samples.*/\1/p' log | head -n 1)
[ "${n:-0}" -gt 400 ] && [ "${n:-0}" -lt 600 ] || fail "$n samples of quality above 0.5: $(cat log)"

# Two ranks read the same files at once.
# shellcheck disable=SC2086
$MPIEXEC_N 2 "$CONVOY" test run --json >score2 || fail "test fails on two ranks"
r2b=$(sed -n 's/.*"r2": \(-*[0-9.e-]*\).*/\1/p' score2 | head -n 1)
awk -v a="$r2" -v b="$r2b" 'BEGIN { exit !((a - b) ^ 2 < 1e-8) }' || fail "r2 is $r2 on one rank, $r2b on two"
exit $failed
