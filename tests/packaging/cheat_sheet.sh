#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: minimal
# cheat_sheet.sh: every verb, option, key, layer, format and word of docs/cheat-sheet.md exists, and its
# job file is valid.
. "$CONVOY_SOURCE/tests/shell.inc"
page=$CONVOY_SOURCE/docs/cheat-sheet.md
"$CONVOY" --print-tables >tables || fail "convoy --print-tables fails"

# section NAME: the rows of a section. codes: what stands between backquotes in the first cell, one a line.
section() { awk -v name="## $1" '/^## / { inside = $0 == name } inside && /^\| `/' "$page"; }
codes() { sed 's/^| //; s/ | .*//' | grep -o '`[^`]*`' | tr -d '`'; }

# ---- verbs and their options: "..." continues the verb of the row before ----
awk -F '\t' '
    FNR == NR { if ($1 == "verb") { verb = $2; verbs[verb] } if ($1 == "option") has[verb, $2]; next }
    !/^\| `/ { next }
    {
        row = $0
        sub(/^\| /, "", row)
        n = split(row, part, "`")
        for (i = 2; i <= n; i += 2) {
            words = split(part[i], word, " ")
            launched = 0
            for (k = 1; k <= words; k++) {
                if (word[k] == "convoy" && k < words && word[k + 1] !~ /^[-A-Z.]/) {
                    verb = word[k + 1]
                    checked++
                    launched = 1
                    if (!(verb in verbs) && verb != "help")
                        print "there is no verb " verb
                } else if (word[k] ~ /^--[a-z]/ && (launched || word[1] == "..." || words == 1)) {
                    checked++
                    if (!((verb, word[k]) in has))
                        print "convoy " verb " has no option " word[k]
                }
            }
        }
    }
    END { if (checked < 50) print "only " checked " verbs and options are checked" }' tables "$page" | grep -v -e '--help$' -e ' --mpi=pmi2$' >log
[ ! -s log ] || fail "$(cat log)"

# ---- keys, layers, formats, variables, words ----
"$CONVOY" keys | awk '/^[a-z]/ { split($0, part, ": "); s = part[1] == "job" ? "" : part[1] "." } /^  [a-z_]+ / { print s $1 }' >keys
for key in $({ section 'Words in a job'; section 'More keys'; } | codes | sed 's/:.*//'); do
    grep -qx "$key" keys || fail "a job has no key $key"
done
"$CONVOY" models --layers | sed -n 's/^\([a-z_]*\): .*/\1/p' >layers
for layer in $(section 'Layers of a network' | grep -o '`[a-z_ ]*`\( `[a-z_]*`\)*' | tr -d '`'); do
    grep -qx "$layer" layers || fail "there is no layer $layer"
done
"$CONVOY" info | sed -n 's/^reads *//p' | tr ' ' '\n' >formats
if "$CONVOY" info | grep -q '^hdf5 *yes'; then
    for format in $(section 'Formats of data' | codes); do
        grep -qx "$format" formats || fail "there is no format $format"
    done
fi
for name in $(section Environment | codes | sed 's/=.*//' | grep -v '^OMP_'); do
    grep -q "\`$name\`" "$CONVOY_SOURCE/docs/reference/command.md" || fail "command.md lacks the variable $name"
done
for word in $(section 'Words in a job' | sed 's/.* | //; s/ |$//'); do
    grep -rqE "(\`|: |, |\\|)$word(\`|,| |\\||\$)" "$CONVOY_SOURCE/docs/guide" "$CONVOY_SOURCE/docs/reference" || fail "no page explains the word $word"
done
for file in $(section "In a run's folder" | codes); do
    grep -qF "\`$file\`" "$CONVOY_SOURCE/docs/reference/command.md" || fail "command.md does not describe $file"
done

# ---- the job file ----
sed -n '/^```yaml$/,/^```$/p' "$page" | grep -v '^```' >job.yaml
[ -s job.yaml ] || fail "there is no job file on the page"
"$CONVOY" jobscript job.yaml --slurm --nodes 1 --ppn 1 --time 60 >script 2>err || { cat err; fail "the job file of the page is refused"; }
exit $failed
