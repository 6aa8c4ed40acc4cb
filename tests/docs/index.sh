#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: minimal
# index.sh: each word of tests/docs/words.txt has an entry in the index of docs/README.md, whose page and heading exist and
# say the word, a synonym or our name for it; `convoy help WORD` prints the entry.
. "$CONVOY_SOURCE/tests/shell.inc"
here=$CONVOY_SOURCE/tests/docs

# check DOCS <WORDS: prints the faults.
check() { awk -v docs="$1" -f "$here/index.awk" 2>"$work/count"; }

check "$CONVOY_SOURCE/docs" <"$here/words.txt" >faults
[ ! -s faults ] || fail "$(cat faults)"
read -r words _ <"$work/count"
[ "$words" -ge 150 ] || fail "words.txt has $words words, expected at least 150"

# Each kind of fault is found.
mkdir -p planted/guide
printf '# T\n\n## Precision\nUse `train.dtype`.\n\n## Other\nbatch\n' >planted/guide/t.md
# planted ENTRY WORD: the fault of an index with this row.
planted() { printf '# D\n\n## Index\n\n| words | answer | page |\n|---|---|---|\n%s\n' "$1" >planted/README.md; printf '%s\n' "$2" | check planted; }
[ -z "$(planted '| AMP, autocast | `train.dtype` | [t](guide/t.md#precision) |' amp)" ] || fail "a name of the answer is not taken"
[ -z "$(planted '| AMP, dtype | a | [t](guide/t.md#precision) |' amp)" ] || fail "a synonym is not taken"
[ -n "$(planted '| AMP, autocast | `train.dtype` | [t](guide/t.md#precision) |' fp8)" ] || fail "a word without an entry is not found"
[ -n "$(planted '| AMP | `train.dtype` | [t](guide/t.md#none) |' AMP)" ] || fail "a heading that does not exist is not found"
[ -n "$(planted '| AMP | `train.dtype` | [t](guide/u.md) |' AMP)" ] || fail "a page that does not exist is not found"
[ -n "$(planted '| AMP, batch | a | [t](guide/t.md#precision) |' AMP)" ] || fail "a word of another section is taken"

# The command: words of several parts, any case, parts of an entry, and words that nobody knows.
"$CONVOY" help Mixed-Precision >log 2>&1 && contains log 'train.dtype: bf16' && contains log docs/guide/training.md#precision ||
    fail "help Mixed-Precision: $(cat log)"
"$CONVOY" help out of memory >log 2>&1 && contains log plan.memory_limit || fail "help out of memory: $(cat log)"
"$CONVOY" help Biases >log 2>&1 && contains log WandB || fail "help Biases: $(cat log)"
"$CONVOY" help new operator >log 2>&1 && contains log guide/extend.md || fail "help new operator: $(cat log)"
"$CONVOY" help parallel: auto >log 2>&1 && contains log many-ranks.md#which-grid || fail "help parallel: auto: $(cat log)"
"$CONVOY" help train.accumulate >log 2>&1 && contains log 'gradient accumulation' || fail "help train.accumulate: $(cat log)"
"$CONVOY" help ROCm >log 2>&1 && contains log docs/README.md#what-convoy-does-not-have || fail "help ROCm: $(cat log)"
"$CONVOY" help training step >log 2>&1 && grep -qx '    ARCHITECTURE.md#.*' log || fail "help training step: $(cat log)"
"$CONVOY" help transfomer >log 2>&1
[ $? = 2 ] && contains log "did you mean 'transformer'" || fail "help transfomer: $(cat log)"
"$CONVOY" help "$(printf '%080d' 0)" >log 2>&1
[ $? = 2 ] || fail "a long word: $(cat log)"
"$CONVOY" help plan >log 2>&1 && contains log 'usage: convoy plan' || fail "a verb is not explained: $(cat log)"
while read -r word; do
    "$CONVOY" help "$word" >log 2>&1 && [ -s log ] || fail "convoy help $word: $(cat log)"
done <<END
$(awk 'NR % 20 == 1' "$here/words.txt")
END
exit $failed
