#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich
# seconds: 10
# package.sh: the package convoy for Python trains a job, continues one that was stopped, and applies networks to numpy
# arrays of any stride and dtype. An interrupt stops a training. A terminal and a notebook are shown its progress and its
# page. Pages and checks are those of the command. A program with its own loop learns a line, also from a generator. What
# does not fit is an exception with a sentence, also in another thread. A forked process is refused by such a sentence,
# and its parent goes on.
. "$CONVOY_SOURCE/tests/shell.inc"
[ "$CONVOY_SANITIZE" = OFF ] || { echo "the sanitizer's library is not part of the interpreter"; exit 77; }
python=$(numpy_python)
[ -n "$python" ] || { echo "there is no python3 with numpy"; exit 77; }
export CONVOY_LIBRARY="$CONVOY_BUILD/libconvoy.so" PYTHONPATH="$CONVOY_SOURCE/python" PYTHONDONTWRITEBYTECODE=1
"$python" "$CONVOY_SOURCE/tests/python/package.py" >log 2>&1 || fail "$(tail -15 log)"
[ "$(grep -c '^ok' log)" = 12 ] || fail "twelve tests were expected: $(cat log)"
exit $failed
