#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich
# listings.sh: the jobs that README.md and the guide show have keys and values that exist, that of README.md is planned, and
# the C program of the guide compiles without a warning and trains on two ranks.
[ "${CONVOY_SANITIZE:-OFF}" = OFF ] || { echo "outside programs are not built with the sanitizers"; exit 77; }
. "$CONVOY_SOURCE/tests/shell.inc"
export CONVOY_SITE=off
guide=$CONVOY_SOURCE/docs/guide

# listings KIND PAGE: writes each listing of the kind as a file, listing-1.KIND and so on.
listings() {
    rm -f listing-*."$1"
    awk -v kind="$1" '
        $0 == "```" kind { inside = 1; n++; next }
        /^```/ { inside = 0 }
        inside { print >("listing-" n "." kind) }' "$2"
}

jobs=0
for page in "$CONVOY_SOURCE/README.md" "$guide"/*.md; do
    listings yaml "$page"
    for job in listing-*.yaml; do
        grep -q '^model:' "$job" 2>/dev/null && grep -q '^data:' "$job" && grep -q '^train:' "$job" || continue
        grep -qE '\.\.\.|onnx:' "$job" && continue # a part is left out, or a file is read
        jobs=$((jobs + 1))
        "$CONVOY" jobscript "$job" --slurm --nodes 1 --ppn 1 --time 01:00:00 >log 2>&1 || fail "$page, $job: $(cat log)"
    done
done
[ "$jobs" -ge 6 ] || fail "only $jobs jobs are found"
echo 'model: linear
data: {train: x}
train: {batchh: 2}' >wrong.yaml
"$CONVOY" jobscript wrong.yaml --slurm --nodes 1 --ppn 1 --time 01:00:00 >log 2>&1 && fail "a wrong key is not noticed"

listings yaml "$CONVOY_SOURCE/README.md"
"$CONVOY" plan listing-1.yaml >log 2>&1 || fail "README.md: $(cat log)"

listings c "$guide/in-your-code.md"
"$MPICC" -std=c11 -Wall -Wextra -Werror -o line listing-1.c -I"$CONVOY_SOURCE/include" -L"$CONVOY_BUILD" -lconvoy "-Wl,-rpath,$CONVOY_BUILD" >log 2>&1 ||
    fail "in-your-code.md: $(head log)"
$MPIEXEC_N 2 ./line >log 2>&1 || fail "in-your-code.md: $(cat log)"
awk '/^loss / { loss = $2 } END { exit !(loss != "" && loss < 1e-3) }' log || fail "in-your-code.md: $(cat log)"
exit $failed
