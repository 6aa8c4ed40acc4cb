#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan onednn3 minimal
# planning.sh: `convoy plan --planning measure` keeps its times, predicts the step and explains its choices; a damaged
# file is named and measured again.
. "$CONVOY_SOURCE/tests/shell.inc"
export CONVOY_WISDOM="$work/wisdom.json"

cat >job.yaml <<END
model: {layers: [{conv: {channels: 4, kernel: 3}}, relu, {fc: {channels: 3}}]}
data: {train: {format: synthetic, samples: 40, shape: [3, 8, 8], classes: 3}}
train: {batch: 8, steps: 3}
END
plan() { "$CONVOY" plan job.yaml --threads 1 "$@"; }

plan >table || fail "plan fails"
grep -q "the step's time is not known: nothing was measured here yet" table || fail "a time from nowhere: $(cat table)"
[ -e wisdom.json ] && fail "estimating writes wisdom"
plan --planning measure --verbose >table 2>log || fail "plan --planning measure fails: $(cat log)"
grep -q 'planning: [1-9][0-9]* times measured in .* wisdom: .*wisdom.json' log || fail "the log does not say what was measured: $(cat log)"
grep -q 'ms a step predicted' table || fail "no prediction: $(cat table)"
plan --planning measure --verbose >again 2>log || fail "the second planning fails"
grep -q 'times measured' log && fail "the second planning measures: $(cat log)"
cmp -s table again || fail "the second planning differs: $(diff table again)"
plan >again && cmp -s table again || fail "estimating with wisdom differs"
plan --explain >explained || fail "no explanation"
grep -q '^conv.*: conv 8x3x8x8' explained || fail "conv is not explained: $(cat explained)"
grep -q '^  \* [a-z.]*conv.* ms ' explained || fail "no time of the kernel that is taken: $(cat explained)"

# The run uses the choices, keeps them, and measures nothing.
"$CONVOY" train job.yaml --threads 1 --planning measure --out run --verbose >log 2>&1 || fail "the run fails: $(cat log)"
grep -q 'times measured' log && fail "the run measures again: $(cat log)"
grep -q '"predicted_ms":' run/plan.json || fail "plan.json has no prediction"

sed 's/"conv/"conw/' wisdom.json >damaged && mv damaged wisdom.json
plan >table 2>log || fail "plan fails for a damaged file: $(cat log)"
grep -q 'warning: wisdom is not used.*wisdom.json' log || fail "the damaged file is not named: $(cat log)"
plan --planning measure >table 2>log || fail "a damaged file cannot be replaced: $(cat log)"
plan >again 2>log || fail "plan fails"
[ -s log ] && fail "the file is still damaged: $(cat log)"
grep -q 'ms a step predicted' again || fail "no prediction from the new file"

plan --planning quick >log 2>&1 && fail "an unknown word is accepted"
grep -q "expected estimate|measure|patient" log || fail "the words are not named: $(cat log)"
exit $failed
