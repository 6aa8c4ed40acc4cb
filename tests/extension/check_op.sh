#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: clang
# check_op.sh: `convoy check-op` passes a right operator and names what is wrong with a faulty one: gradient, splits,
# results, cost, descriptor, file; the exit code says so.
[ "$CONVOY_SANITIZE" = OFF ] || { echo "libraries are not built with the sanitizers"; exit 77; }
. "$CONVOY_SOURCE/tests/shell.inc"

# library FILE.so FLAGS...: builds twist.c with a fault.
library() {
    to=$1
    shift
    "$CC" -std=c11 -Wall -Wextra -Wno-unused -shared -fPIC -I "$CONVOY_SOURCE/include" "$@" "$CONVOY_SOURCE/tests/extension/twist.c" \
        -o "$to" || { fail "$to does not compile"; return 1; }
}

# finds MACRO TEXT: check-op names the fault that the macro plants.
finds() {
    library "$1.so" "-D$1" || return
    timeout 120 "$CONVOY" check-op "$1.so" >out 2>err
    code=$?
    [ $code = 1 ] || fail "$1: exit code $code, expected 1"
    contains out "$2" || contains err "$2" || { fail "$1: expected \"$2\""; cat out err; }
}

library right.so
"$CONVOY" check-op right.so >out 2>err || { fail "a right operator is refused"; cat out err; }
for check in shapes results gradient f32 splits cost; do
    grep -q "^ok *twist: $check: " out || fail "no line for $check"
done
contains out "layers in two parts are the whole: samples, channels, space" || fail "splits are not listed"
contains out "check-op: 1 operator, 6 checks, 0 failed" || fail "no line that counts"
"$CONVOY" check-op right.so twist >out 2>err || fail "the operator is not found by its name"
refused "has no operator 'twirl'; it has twist" "$CONVOY" check-op right.so twirl

finds WRONG_GRADIENT "FAILED  twist: gradient: sample \"2x3x4\", gain: 2: gradient of src0, element 0, is"
finds NO_SPLITS "FAILED  twist: splits: it has no split rule, so only one rank can train it: set splits"
finds UNTRIED_SPLIT "no sample tries the split along outputs, which it declares"
finds MIXES_CHANNELS "FAILED  twist: splits: sample \"2x3x4\", gain: 2: twist cut along samples: a part of a destination is not that part"
finds LEAVES_OUT "FAILED  twist: results: sample \"2x3x4\", gain: 2: forward does not write every element"
finds WRITES_BEHIND "forward writes before or behind a result"
finds NO_COST "FAILED  twist: cost: it has no cost function"
finds NO_SAMPLES "FAILED  twist: samples: it has no samples"
finds WRONG_SHAPE "FAILED  twist: shapes: sample \"2x3x4\", gain: 2: layer layer (twist): the shape function of twist"
finds LOSES_SAMPLES "axis 0 of the result counts them"
finds OTHER_KIND "OTHER_KIND.so: it is an extension of kind 2, built with the headers of convoy 1.2.3, and this is convoy"
finds NO_ENTRY "it does not export convoy_extension()"
finds NAME_TAKEN "the name 'relu' is taken by an operator of convoy: give yours another name"
finds NO_SIZE "the size of cvy_operator is 0"
finds NO_FORWARD "operator twist: it has no forward function"
finds OPTION_OUTSIDE "operator twist: the option gain lies at byte 16 of a struct of 16 bytes"
finds OPTION_NAME "an option cannot be called 'from', which is a key of every layer"

# sample TEXT MESSAGE: a sample that cannot be used is named.
sample() {
    library sample.so "-DSAMPLE=\"$1\""
    timeout 120 "$CONVOY" check-op sample.so >out 2>err && fail "the sample $1 is accepted"
    contains out "$2" || contains err "$2" || { fail "sample $1: expected \"$2\""; cat out err; }
}
sample 2x3,2x3 "operator twist: sample 1 has 2 sources, expected 1 to 1"
sample 2,3,4,5,6,7,8,9,10,11,12,13,14,15 "sample 1 has 14 sources"
sample "$(printf '%0250d' 3)x2" "the texts of sample 1 are longer than 200 characters"
sample "$(printf '%0150d' 3)x2" 'FAILED  twist: shapes: sample "000'
sample 2xx3 'FAILED  twist: shapes: sample "2xx3"'
sample 2x3:i32 'source 0 of twist is i32, expected f64'
sample 3 'twist needs channels, got 1 dimensions'
sample 1x2000000000x2000000000 'FAILED  twist: shapes'
library options.so '-DSAMPLE_OPTIONS="gian: 2"'
"$CONVOY" check-op options.so >out 2>err && fail "an unknown option in a sample is accepted"
contains out 'gian' || { fail "the option is not named"; cat out err; }

library one_way.so -DNO_BACKWARD
"$CONVOY" check-op one_way.so >out 2>err || { fail "an operator without a gradient is refused"; cat out err; }
contains out "skipped twist: gradient: it has no backward function" || fail "the missing gradient is not reported"

refused "library nowhere.so: it cannot be opened: No such file or directory" "$CONVOY" check-op nowhere.so
refused "library .: it is not a file" "$CONVOY" check-op .
echo "no library" >text.so
refused "library text.so: it cannot be loaded: " "$CONVOY" check-op text.so
for bytes in 10 64 100 1000 3000 8000; do
    head -c $bytes right.so >cut.so
    refused "library cut.so: it " "$CONVOY" check-op cut.so
done
refused "it is cut off: it has 8000 bytes of " "$CONVOY" check-op cut.so
: >empty.so
refused "library empty.so: it cannot be loaded: " "$CONVOY" check-op empty.so
refused "check-op" "$CONVOY" check-op
exit $failed
