#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# try_examples.sh EXAMPLES [PYTHON]: builds and runs each example of an installed convoy by the commands that its head
# comment has, in a copy of the folder EXAMPLES. Trainings are cut to two steps. PYTHON: the interpreter of an
# environment with convoy and matplotlib, for the example in Python; then convoy's headers are not expected. Exit code
# 0: all of it worked.
#
# CONVOY_PREFIX is what PREFIX stands for in these commands. /usr if it is not set.
set -u
from=$1 python=${2-}
work=$(mktemp -d "${TMPDIR:-/tmp}/convoy-examples.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cp -r "$from" "$work/examples" && cd "$work" || exit 1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none OMP_NUM_THREADS=1 MPLBACKEND=Agg
failed=0

# commands FILE: those of its head. A comment may follow one behind three spaces.
commands() {
    sed -n -e '/^[^ *!#\/]/q' -e 's/^\( \*\|!\|#\)   *\(\(cc\|mpicc\|mpifort\|mpiexec\|make\|convoy\) .*\)$/\2/p' "$1" |
        sed -e 's/   .*//' -e "s|PREFIX/|${CONVOY_PREFIX:-/usr}/|" -e 's/convoy train [^ ]*/& --threads 1 --set train.epochs= --set train.steps=2/'
}

# run NAME COMMANDS: in a shell that ends with the first one that fails.
run() {
    begin=$(date +%s)
    if [ -z "$2" ]; then
        echo "FAILED $1: its head has no command"
        failed=1
    elif (set -e; eval "$2") >"$work/log" 2>&1; then
        echo "ok $1, $(($(date +%s) - begin)) s"
    else
        echo "FAILED $1: $2"
        tail -n 15 "$work/log"
        failed=1
    fi
}

if [ -n "$python" ]; then
    run collider_roc.py "$python examples/python/collider_roc.py data.train.events=640 data.test.events=640 train.epochs=1 && test -s roc.png"
else
    run demo "convoy train --out runs/demo --threads 1 --set data.train.events=640 --set data.test.events=640 --set train.epochs=1"
    for file in examples/*.c; do
        run "${file#examples/}" "ln -sfn ../runs examples/runs; cd examples; $(commands "$file")"
    done
    run collider "cd examples; mpicc collider/*.c \$(pkg-config --cflags --libs convoy) -lm -o analysis; ./analysis runs/demo"
    cp "$(pkg-config --variable=fortrandir convoy)"/*.f90 examples/fortran/
    for file in examples/fortran/*.f90; do
        case $file in */convoy.f90 | */convoy_c.f90) continue ;; esac
        run "${file#examples/}" "cd examples/fortran; $(commands "$file")"
    done
    for file in examples/own_*/*.c; do
        run "${file#examples/}" "cd $(dirname "$file"); $(commands "$file")"
    done
fi
for file in examples/*.yaml; do
    name=${file#examples/}
    if [ "$name" = site.yaml ]; then
        run "$name" "CONVOY_SITE=$file convoy jobscript examples/collider.yaml --nodes 2 --ppn 2 --time 1:00:00"
    elif grep -q 'format: \(collider\|cosmology\|shapes\)' "$file"; then
        run "$name" "convoy train $file --out runs/$name --threads 1 --set train.epochs= --set train.steps=2"
    else
        echo "-- $name: its data are not here"
    fi
done
exit $failed
