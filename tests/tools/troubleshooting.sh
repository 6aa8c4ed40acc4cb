#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: minimal
# troubleshooting.sh: every heading of docs/guide/troubleshooting.md is part of a message in the sources, in which ".."
# stands for a conversion of printf; each has a cause and a cure.
. "$CONVOY_SOURCE/tests/shell.inc"
page=$CONVOY_SOURCE/docs/guide/troubleshooting.md
cd "$CONVOY_SOURCE" || exit 1
find src lab cmd include -name '*.[ch]' -exec awk -f tests/tools/literals.awk {} + >"$work/literals"
awk -f tests/tools/literals.awk CMakeLists.txt cmake/*.cmake >>"$work/literals"
[ "$(wc -l <"$work/literals")" -gt 3000 ] || fail "literals.awk finds too few literals"

# missing PAGE: prints the headings of the third level that no literal has.
missing() {
    awk -v sources="$work/literals" '
        BEGIN { while ((getline line <sources) > 0) all = all line "\n" }
        sub(/^### `/, "") && sub(/`$/, "") && !index(all, $0) { print }' "$1"
}

missing "$page" >"$work/missing"
while read -r heading; do
    fail "troubleshooting.md: no message in the sources has: $heading"
done <"$work/missing"
count=$(grep -c '^### `.*`$' "$page")
[ "$count" -ge 40 ] || fail "troubleshooting.md has $count messages, expected at least 40"
[ "$count" = "$(grep -c '^###' "$page")" ] || fail "a heading of troubleshooting.md is not a message between backquotes"
awk '
    function check() { if (heading != "" && (!cause || !cure)) print heading }
    /^##/ { check(); heading = /^###/ ? $0 : ""; cause = cure = 0 }
    /^Cause: ./ { cause = 1 }
    /^Cure: ./ { cure = 1 }
    END { check() }' "$page" >"$work/bare"
[ ! -s "$work/bare" ] || fail "no cause or no cure: $(cat "$work/bare")"

# What the search must find and must not find.
cat >"$work/page.md" <<'END'
### `data is the bottleneck: steps waited .. % of their time for samples; try more data.threads (now ..), data.cache: memory`
### `data is the bottleneck: steps waited N % of their time`
### `a message that no source has`
END
[ "$(missing "$work/page.md" | wc -l)" = 2 ] || fail "the search does not tell messages from other texts: $(missing "$work/page.md")"
cat >"$work/joined.c" <<'END'
/* "not this" */
f("one %s, %-5.2f %% and "
  "two %lld%s: \"%zu\" ..", 'x', '"');
g("three",
  "four");
END
awk -f tests/tools/literals.awk "$work/joined.c" >"$work/joined"
printf '%s\n' 'one .., .. % and two ..: ".." ..' three four | cmp -s - "$work/joined" || fail "literals.awk gives: $(cat "$work/joined")"
exit $failed
