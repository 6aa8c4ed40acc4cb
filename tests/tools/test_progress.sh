#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# test_progress.sh: scripts/test.sh counts the tests of a row as they end, from the output of ctest: skipped tests have
# not failed, and what a failed test prints is not counted.
. "$CONVOY_SOURCE/tests/shell.inc"

sed -n '/^show_progress()/,/^}/p' "$CONVOY_SOURCE/scripts/test.sh" >progress.sh
echo show_progress >>progress.sh
cat >ctest <<'END'
Internal ctest changing into directory: /build
      Start  1: one
 1/20 Test  #1: one ............   Passed    0.1 sec
      Start  2: two
 2/20 Test  #2: two ............***Failed    0.2 sec
1/2 of the output of a test
 3/20 Test  #3: three ..........***Skipped   0.1 sec
 4/20 Test  #4: four ...........***Timeout   9.0 sec
20/20 Test #20: five ...........   Passed    0.1 sec
90% tests passed, 2 tests failed out of 20
END
sh progress.sh <ctest >out || fail "show_progress fails"
printf '   %s\n' '2 of 20 tests have ended, 1 failed' '4 of 20 tests have ended, 2 failed' '20 of 20 tests have ended, 2 failed' >expected
cmp -s out expected || fail "the lines are: $(cat out)"
: | sh progress.sh >out
[ -s out ] && fail "without tests it prints: $(cat out)"
exit $failed
