#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: clang
# own_pass.sh: examples/own_pass is built by its Makefile and pkg-config against an installed convoy, and its job trains
# in a pipeline of two stages that the pass has cut, and on two ranks that split the layers of the other pass.
[ "${CONVOY_SANITIZE}" = OFF ] || { echo "outside programs are not built with the sanitizers"; exit 77; }
command -v pkg-config >/dev/null || { echo "no pkg-config"; exit 77; }
command -v make >/dev/null || { echo "no make"; exit 77; }
. "$CONVOY_SOURCE/tests/shell.inc"

"$CMAKE" --install "$CONVOY_BUILD" --prefix "$work/prefix" >install.log || { cat install.log; exit 1; }
pc=$(find "$work/prefix" -name convoy.pc)
[ -n "$pc" ] || { echo "convoy.pc was not installed"; exit 1; }
cp -r "$work/prefix/share/doc/convoy/examples/own_pass" mine || exit 1

make -C mine PKG_CONFIG_PATH="$(dirname "$pc")" CC="$CC" CFLAGS="-O2 -Werror" >log 2>&1 || { cat log; exit 1; }
$MPIEXEC_N 2 "$work/prefix/bin/convoy" train mine/memory.yaml --out run --verbose --set train.epochs= --set train.steps=2 --set data.train.events=200 >log 2>&1 ||
    fail "two stages: $(cat log)"
contains log 'even_memory.so: the pass even_memory has placed 14 of 14 layers' || fail "the pass did not run: $(cat log)"
contains log 'the stages begin with conv1 and fc2' || fail "another cut: $(grep pipeline log)"
$MPIEXEC_N 2 "$work/prefix/bin/convoy" train mine/memory.yaml --out parts --verbose --set train.epochs= --set train.steps=2 --set data.train.events=200 --set 'parallel={tensor: 2}' >log 2>&1 ||
    fail "two parts: $(cat log)"
contains log 'split 3 layers with weights by channels (fc1, fc2, fc3), and share the samples of 3' || fail "another split: $(grep tensor log)"
exit $failed
