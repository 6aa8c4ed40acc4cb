#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: clang
# own_operator.sh: examples/own_operator is built by its Makefile and pkg-config against an installed convoy, passes the
# installed `convoy check-op`, and its job trains on one and two ranks, as docs/guide/extend.md says.
[ "${CONVOY_SANITIZE}" = OFF ] || { echo "outside programs are not built with the sanitizers"; exit 77; }
command -v pkg-config >/dev/null || { echo "no pkg-config"; exit 77; }
command -v make >/dev/null || { echo "no make"; exit 77; }
. "$CONVOY_SOURCE/tests/shell.inc"

"$CMAKE" --install "$CONVOY_BUILD" --prefix "$work/prefix" >install.log || { cat install.log; exit 1; }
pc=$(find "$work/prefix" -name convoy.pc)
[ -n "$pc" ] || { echo "convoy.pc was not installed"; exit 1; }
cp -r "$work/prefix/share/doc/convoy/examples/own_operator" mine || exit 1
convoy=$work/prefix/bin/convoy

make -C mine PKG_CONFIG_PATH="$(dirname "$pc")" CC="$CC" CFLAGS="-O2 -Werror" >log 2>&1 || { cat log; exit 1; }
"$convoy" check-op mine/wrap_stencil.so >log 2>&1 || fail "check-op: $(cat log)"
for check in shapes results gradient f32 splits cost; do
    grep -q "^ok *wrap_stencil: $check: " log || fail "no line for $check: $(cat log)"
done
set -- --set train.epochs= --set train.steps=4 --set data.train.events=400 --set log.every=1
"$convoy" train mine/barrel.yaml --out one "$@" >log 2>&1 || fail "one rank: $(cat log)"
$MPIEXEC_N 2 "$convoy" train mine/barrel.yaml --out two "$@" >log 2>&1 || fail "two ranks: $(cat log)"
losses() { grep '"kind": "step"' "$1/metrics.jsonl" | sed 's/.*"loss": \([^,]*\),.*/\1/'; }
losses one >a
losses two | paste - a | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 1e-5 * $2) bad = 1 } END { exit bad || NR != 4 }' ||
    fail "two ranks: losses $(losses two | tr '\n' ' '), expected $(tr '\n' ' ' <a)"

# The same file as C++: the header is C++, too.
if command -v g++ >/dev/null; then
    echo '#include <convoy/operator.h>
static const cvy_extension nothing = {CVY_EXTENSION_ABI, CVY_VERSION_NUMBER, sizeof nothing, "nothing", nullptr, nullptr};
const cvy_extension *convoy_extension(void) { return &nothing; }' >nothing.cpp
    g++ -std=c++11 -Wall -Wextra -Werror -shared -fPIC $(PKG_CONFIG_PATH="$(dirname "$pc")" pkg-config --cflags convoy) nothing.cpp -o nothing.so ||
        fail "the header is no C++"
    "$convoy" check-op nothing.so >log 2>&1 && contains log 'check-op: 0 operators' || fail "C++: $(cat log)"
fi
exit $failed
