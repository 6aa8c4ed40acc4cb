#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: minimal
# comments.sh: the comment of each public function says whether it is collective, and which errors it returns if it
# returns a status. "As cvy_other()" refers to the comment of another function.
. "$CONVOY_SOURCE/tests/shell.inc"
set -e
export LC_ALL=C

cat >"$work/check.awk" <<'EOF'
FNR == 1 { comment = declaration = "" }
/^[[:space:]]*\/\*\*/ { comment = ""; inside = 1 }
inside { comment = comment " " $0; if (/\*\//) inside = 0; next }
/^CVY_API/ { declaration = " " }
declaration != "" {
    declaration = declaration $0 " "
    if (!/;/)
        next
    count++
    name = declaration
    sub(/\(.*/, "", name)
    sub(/.*[ *]/, "", name)
    refers = comment ~ /[Aa]s( of)? cvy_[a-z0-9_]*\(\)/
    if (comment !~ /Collective:/ && !refers)
        print FILENAME ": the comment of " name "() does not say \"Collective: ...\""
    if (declaration ~ / cvy_status cvy_/ && comment !~ /Errors:/ && !refers)
        print FILENAME ": the comment of " name "() does not say \"Errors: ...\""
    declaration = ""
}
END { if (count < 100) print "only " count " declarations were found: this check reads the headers wrongly" }
EOF
faults=$(cd "$CONVOY_SOURCE/include/convoy" && awk -f "$work/check.awk" *.h)
[ -z "$faults" ] || { echo "$faults"; exit 1; }
