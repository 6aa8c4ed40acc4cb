#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# vectors.sh: vectors of x turn with the picture: a network that copies a wind is learnt under mirrors and rotations if x
# and y have the role, which packs and runs keep by name; a role on one side alone, names that look like vectors, and
# roles that differ from those of a run that is resumed or begun with are said; validation and prediction turn nothing.
. "$CONVOY_SOURCE/tests/shell.inc"
export CONVOY_SITE=off
has() { contains log "$1" || { fail "$2: no \"$1\""; cat log; }; }
lacks() { ! contains log "$1" || { fail "$2: \"$1\" is said"; cat log; }; }

# A table of winds whose mean is not 0, read as pictures of one pixel. y is x.
awk 'BEGIN { print "t,u,v,tu,tv"; for (i = 0; i < 64; i++) { t = (i * 37 % 64) / 32 - 1; u = 1 + (i * 11 % 64) / 64
    v = (i * 29 % 64) / 32 - 1; print t "," u "," v "," u "," v } }' >winds.csv
awk -F, '{ print $3 "," $2 "," $1 "," $4 "," $5 }' winds.csv >other.csv

# job SOURCE ROLES: the roles of the job.
job() {
    cat >job.yaml <<END
model: {layers: [{conv: {channels: 2, kernel: 1}}, flatten]}
data: {train: $1, val: $1, roles: {$2}, augment: [mirror, rotate90], shuffle: true}
train: {batch: 8, epochs: 30, loss: mse, optimizer: {name: adam, lr: 0.1}}
END
}
# learns NAME: trains; the loss becomes small.
learns() {
    "$CONVOY" train job.yaml --out "$1" >log 2>&1 || { fail "$1 does not train"; cat log; }
    sed -n 's/^epoch 30:.*train loss \([0-9.e-]*\).*/\1/p' log | awk '{ exit !($1 < 0.01) }' || { fail "$1 is not learnt"; cat log; }
}
table='{path: winds.csv, y: [tu, tv], shape: [3, 1, 1]}'
x='x: {role: vector, order: x_y, components: [u, v]}' y='y: {role: vector, order: x_y}'

job "$table" "$y, $x"
learns both
lacks 'stay as they are' "both have the role"
grep -q 'components: \[u, v\]' both/job.resolved.yaml || fail "the run does not keep the components"

# On two ranks it is the same network.
$MPIEXEC_N 2 "$CONVOY" train job.yaml --out two >log 2>&1 || { fail "two ranks"; cat log; }
for run in both two; do "$CONVOY" predict $run --data winds.csv --out $run.csv >log 2>&1 || { fail "predict $run"; cat log; }; done
paste -d, both.csv two.csv | awk -F, 'NR > 1 { for (i = 1; i <= 2; i++) { d = $i - $(i + 2); if (d * d > 1e-8) bad++ } } END { exit bad > 0 || NR < 64 }' ||
    fail "two ranks do not turn as one does"

# Predictions are of the wind as it is stored.
sed 1d winds.csv >stored.csv
paste -d, both.csv stored.csv | awk -F, '{ a = $(NF - 6) - $(NF - 3); b = $(NF - 5) - $(NF - 2); if (a * a + b * b > 0.1) bad++ } END { exit bad > 0 || NR < 64 }' ||
    { fail "predictions are not the winds"; paste -d, both.csv stored.csv | head -5; }

# A packed set keeps the names.
"$CONVOY" pack "$table" packed >log 2>&1 || { fail "pack"; cat log; }
job packed "$y, $x"
learns from_pack

# One side alone.
job "$table" "$y"
"$CONVOY" train job.yaml --out y_only --set train.epochs=1 >log 2>&1 || { fail "y alone"; cat log; }
has 'mirror turns the vectors of y, and the 3 channels of x stay as they are, among them u and v' "y alone"
job "$table" "$y, x: none"
"$CONVOY" train job.yaml --out y_none --set train.epochs=1 >log 2>&1 || { fail "x: none"; cat log; }
lacks 'stay as they are' "x: none"
job "$table" "y: none"
"$CONVOY" train job.yaml --out names --set train.epochs=1 >log 2>&1 || { fail "names"; cat log; }
has 'channels u and v, which by name are components of vectors, stay as they are' "names"

# Another run, or a resume, with other roles.
job "$table" "$y, $x"
"$CONVOY" train job.yaml --out init --set train.epochs=1 --set train.init=both --set 'data.roles={y: none, x: none}' >log 2>&1 || { fail "init"; cat log; }
has 'both was trained with data.roles: {y: {role: vector' "other roles than those of the weights"
"$CONVOY" train job.yaml --out init2 --set train.epochs=1 --set train.init=both >log 2>&1 || { fail "init 2"; cat log; }
lacks 'was trained with data.roles' "the same roles"
"$CONVOY" train job.yaml --out other --set train.epochs=1 --set train.init=both \
    --set 'data.train={path: other.csv, y: [tu, tv], shape: [3, 1, 1]}' --set data.val=10% >log 2>&1 || { fail "another order of columns"; cat log; }
has 'brought into the order of both' "another order of columns"
refused 'data.roles gives components by their numbers: give them by name' "$CONVOY" train job.yaml --out numbers --set train.init=both \
    --set 'data.train={path: other.csv, y: [tu, tv], shape: [3, 1, 1]}' --set data.val=10% --set 'data.roles={x: {role: vector, order: x_y, components: [1, 0]}}'
"$CONVOY" train job.yaml --out both --resume --set train.epochs=31 --set 'data.roles={y: none, x: none}' >log 2>&1
grep -q 'was trained with data.roles' log || { fail "a resume with other roles"; cat log; }

refused 'x has no component w among t, u, v' "$CONVOY" train job.yaml --out wrong --set 'data.roles={x: {role: vector, order: x_y, components: [u, w]}}'
refused 'rotate90 turns the vectors of x, but mean before it' "$CONVOY" train job.yaml --out wrong --set 'data.augment=[{mean: 1}, rotate90]'
exit $failed
