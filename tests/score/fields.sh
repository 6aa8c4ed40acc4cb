#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan minimal
# fields.sh: targets of two axes are scored by one set of points and by maps, the worst sample first, and by their power
# spectra; the last layer may be a reshape; the report shows the maps and the spectra.
. "$CONVOY_SOURCE/tests/shell.inc"

# npy SHAPE: a .npy file of bytes.
npy() {
    printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': ($1), }"
    cat
}
seq 1 9999 | head -c $((24 * 96)) | npy '24, 1, 8, 12' >x.npy
# Sample 17 is far from all others.
awk 'BEGIN { for (s = 0; s < 24; s++) for (i = 0; i < 96; i++) printf "%c", s == 17 ? 120 + i % 5 : 1 + (s + i) % 7 }' | npy '24, 8, 12' >y.npy
cat >job.yaml <<END
model: {layers: [{conv: {channels: 1, kernel: 3, pad: 1}}, {reshape: {name: field, shape: [8, 12]}}]}
data: {train: {x: x.npy, y: y.npy, format: npy}, test: {x: x.npy, y: y.npy, format: npy}}
train: {batch: 8, epochs: 1, optimizer: {name: sgd, lr: 0.0001}}
END
"$CONVOY" train job.yaml --threads 1 --out run >log 2>&1 || fail "train fails: $(cat log)"
"$CONVOY" test run --threads 1 >log 2>&1 || fail "test fails: $(cat log)"
"$CONVOY" predict run --threads 1 --data x.npy --out p.npy >log 2>&1 || fail "predict fails: $(cat log)"
head -c 128 p.npy | grep -aq "'<f4'.*(24, 8, 12)" || fail "p.npy: $(head -c 128 p.npy)"
grep -q '"regression": \[{"name": "y", ' run/test.json || fail "no points: $(cut -c 1-300 run/test.json)"
[ "$(grep -o '"name": "y[0-9]*", "truth"' run/test.json | wc -l)" = 1 ] || fail "a set of points for each element"

"$CONVOY" report run >log 2>&1 || fail "report fails: $(cat log)"
grep -q '"spectrum": \[{"output": \[[0-9]' run/test.json && grep -q '"spectrum_error": [0-9]' run/test.json || fail "no spectrum: $(cut -c 1-300 run/test.json)"
grep -q 'y: power spectrum' run/report.html && grep -q 'root mean square error of the channel' run/report.html || fail "no spectrum in the report"
grep -q '"fields": ' run/test.json || {
    "$CONVOY" convert '{format: pictures, samples: 2, size: 8, classes: 2}' set --format folder 2>&1 | grep -q 'cannot write PNG' || fail "no maps"
    exit $failed # a build without PNG
}
count() { grep -o "$1" "$2" | wc -l; }
[ "$(count '"kind": "worst"' run/test.json)" = 3 ] && [ "$(count '"kind": "typical"' run/test.json)" = 3 ] || fail "other samples: $(sed 's/data:[^"]*//g' run/test.json)"
worst=$(sed 's/.*"fields": \[{"field": "y", "kind": "worst", "sample": \([0-9]*\), "name": "x.npy, record \([0-9]*\)".*/\1 \2/' run/test.json)
[ "$worst" = '17 17' ] || fail "the worst sample: $(echo "$worst" | cut -c 1-200)"
[ "$(count '<img alt="[a-z]*" src="data:image/png' run/report.html)" = 18 ] || fail "maps in the report: $(count '<img' run/report.html)"
grep -q 'worst sample: root mean square error' run/report.html && grep -q '>x.npy, record 17<' run/report.html || fail "titles in the report"
exit $failed
