#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan
# onnx_layers.sh: every type of layer that is written to ONNX files, with three operator sets, is read back and predicts
# the same numbers, within 1e-5 of the largest one; the variables keep their names.
. "$CONVOY_SOURCE/tests/exchange/onnx.inc"
. "$CONVOY_SOURCE/tests/exchange/onnx_layers.inc"

# differs A.csv B.csv: prints the largest difference if it is too large, or if the files do not have the same numbers.
differs() {
    paste -d '\n' "$1" "$2" | awk -F, '
        NR == 1 { columns = NF }
        NF != columns { print "other columns"; exit }
        NR % 2 == 1 { for (i = 1; i <= NF; i++) v[i] = $i; next }
        { rows++
            for (i = 1; i <= NF; i++) {
                d = v[i] - $i; if (d < 0) d = -d; if (d > most) most = d
                m = $i < 0 ? -$i : $i; if (m > top) top = m
            } }
        END { if (rows != 24 || top == 0 || most > 1e-5 * top) print rows " rows, " most " of " top }'
}
"$CONVOY" predict layers.run --data data --outputs all --out layers.csv >log 2>&1 || fail "predict fails: $(cat log)"
for opset in 13 17 21; do
    "$CONVOY" export layers.run read-$opset.onnx --opset $opset --outputs all >log 2>&1 || fail "export, $opset: $(cat log)"
    "$CONVOY" predict read-$opset.onnx --data data --out read.csv --force >log 2>&1 || fail "predict, $opset: $(cat log)"
    what=$(differs layers.csv read.csv)
    [ -z "$what" ] || fail "operator set $opset: $what"
done
sed '2s/,[^,]*/,1000/' layers.csv >other.csv
[ -n "$(differs layers.csv other.csv)" ] || fail "another number is not seen"
exit $failed
