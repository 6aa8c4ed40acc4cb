#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: minimal
# level: 2
# manuals.sh: each verb has a manual page with all its options, and each function of the library has one; convoy(1)
# lists every variable of the environment that the sources read; convoy-job(5) has every key; mandoc, groff and
# lexgrog, if installed, find nothing to warn of.
. "$CONVOY_SOURCE/tests/shell.inc"
sh "$CONVOY_SOURCE/tools/make_man.sh" "$CONVOY" "$CONVOY_SOURCE" "$work/man" || { echo "make_man.sh fails"; exit 1; }
"$CONVOY" --print-tables >tables || fail "convoy --print-tables fails"

# plain PAGE: the page without fonts and escapes.
plain() { sed -e 's/\\f[BIRP]//g' -e 's/\\-/-/g' -e 's/\\e/\\/g' -e 's/\\&//g' "$1"; }

# ---- a page for each verb ----
nverbs=0
for verb in $(awk -F '\t' '$1 == "verb" { print $2 }' tables); do
    nverbs=$((nverbs + 1))
    page=$work/man/man1/convoy-$verb.1
    [ -s "$page" ] || { fail "there is no convoy-$verb(1)"; continue; }
    plain "$page" >text
    for section in NAME SYNOPSIS DESCRIPTION OPTIONS 'EXIT STATUS' 'SEE ALSO'; do
        grep -qx "\\.SH $section" text || fail "convoy-$verb(1) has no section $section"
    done
    awk -F '\t' -v verb="$verb" '$1 == "verb" { mine = $2 == verb } mine && $1 == "option" { print $2 ($3 == "" ? "" : " " $3) }' tables >options
    while read -r option; do
        grep -qxF -e "$option" text || fail "convoy-$verb(1) lacks $option"
    done <options
    "$CONVOY" "$verb" --help | sed -n 's/^  \(--[a-z-]*\).*/\1/p' >printed
    while read -r option; do
        grep -q -e "^$option\( \|\$\)" text || fail "convoy-$verb(1) lacks $option, which convoy $verb --help prints"
    done <printed
    plain "$work/man/man1/convoy.1" | grep -qF "convoy-$verb(1)" || fail "convoy(1) does not name convoy-$verb(1)"
done
[ "$nverbs" -ge 18 ] || fail "only $nverbs verbs"
plain "$work/man/man1/convoy.1" >text
for section in NAME SYNOPSIS DESCRIPTION VERBS OPTIONS 'EXIT STATUS' SIGNALS FILES ENVIRONMENT EXAMPLES 'SEE ALSO'; do
    grep -qx "\\.SH $section" text || fail "convoy(1) has no section $section"
done
for code in 0 1 2 75; do
    sed -n '/^\.SH EXIT STATUS/,/^\.SH SIGNALS/p' text | grep -qx "$code" || fail "convoy(1) lacks the exit code $code"
done

# ---- every key of the job file ----
plain "$work/man/man5/convoy-job.5" >text
"$CONVOY" keys | awk '
    /^[a-z]/ { split($0, part, ": "); section = part[1] == "job" ? "" : part[1] ~ /^update,/ ? "update" : part[1] }
    /^  [a-z_]+ / { print section, $1 }' >keys
[ "$(wc -l <keys)" -gt 50 ] || fail "convoy keys lists too few keys"
while read -r section key; do
    [ -n "$key" ] || { key=$section section=; }
    grep -qE "^${section:+$section(\\[\\])?\\.}$key \\(" text || fail "convoy-job(5) lacks $section $key"
done <keys

# ---- a page for each function of the library ----
cat "$CONVOY_SOURCE"/include/convoy/*.h | sed 's,^#.*,,' | tr '\n' ' ' | sed 's,/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/,,g' | tr ';' '\n' |
    sed -n 's/.*CVY_API[^(]*[ *]\(cvy_[a-z0-9_]*\)(.*/\1/p' >functions
[ "$(wc -l <functions)" -gt 100 ] || fail "too few functions were found in the headers"
while read -r name; do
    page=$work/man/man3/$name.3
    [ -s "$page" ] || { fail "there is no $name(3)"; continue; }
    plain "$page" >text
    for section in NAME SYNOPSIS DESCRIPTION; do
        grep -qx "\.SH $section" text || fail "$name(3) has no section $section"
    done
    grep -qF "$name(" text || fail "$name(3) has no prototype"
    grep -q 'Collective' text || fail "$name(3) does not say whether it is collective"
done <functions
[ -s "$work/man/man3/convoy_extension.3" ] || fail "there is no page of the function that extensions define"
for page in "$work/man/man3/".*[!.] "$work/man/man3/"[!c]*; do
    [ ! -e "$page" ] || fail "a page has the name ${page##*/}"
done
echo 'CVY_API int *;' | sed '1s,^,/** - nothing */\n,' >nameless.h
mkdir pages
awk -f "$CONVOY_SOURCE/tools/make_man3.awk" -v out=pages -v date=d -v version=v nameless.h >log 2>&1 && fail "a function without a name has a page"
contains log 'nameless.h: no name of a function' || fail "a function without a name: $(cat log)"
[ -s "$work/man/man3/cvy_program_opts.3" ] || fail "there is no page of the structure cvy_program_opts"

# ---- every variable that the sources read ----
# A name is a literal, or a macro, in the call of getenv. If a call has anything else, such as the element of a table, all
# literals of that file count that look like the name of a variable.
(cd "$CONVOY_SOURCE" && grep -rlE '\b(secure_)?getenv\(' src lab cmd include) >readers
[ -s readers ] || fail "no source reads a variable"
while read -r file; do
    calls=$(tr '\n' ' ' <"$CONVOY_SOURCE/$file" | grep -oE 'getenv\([^)]*\)' | sed -e 's/^getenv(//' -e 's/)$//')
    printf '%s\n' "$calls" | sed -n 's/^"\(.*\)"$/\1/p'
    for macro in $(printf '%s\n' "$calls" | grep -E '^[A-Z][A-Z_0-9]+$'); do
        grep -rhE "^#define $macro " "$CONVOY_SOURCE/src" "$CONVOY_SOURCE/lab" "$CONVOY_SOURCE/cmd" "$CONVOY_SOURCE/include" | sed 's/.*"\(.*\)".*/\1/'
    done
    if printf '%s\n' "$calls" | grep -qvE '^("[A-Za-z0-9_]+"|[A-Z][A-Z_0-9]+)$'; then
        grep -oE '"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+"' "$CONVOY_SOURCE/$file" | tr -d '"'
    fi
done <readers | sort -u >variables
for known in CONVOY_WISDOM CONVOY_SIMULATED_RESULT SLURM_CPUS_ON_NODE SLURM_NTASKS PMI_RANK HOME; do
    grep -qx $known variables || fail "the search for variables in the sources misses $known"
done
sed -n '/^\.SH ENVIRONMENT/,/^\.SH EXAMPLES/p' "$work/man/man1/convoy.1" >environment
plain environment >text
while read -r name; do
    grep -qw -e "$name" text ||
        fail "$name is read by $(cd "$CONVOY_SOURCE" && grep -rl "\"$name\"" src lab cmd | head -n 1), but docs/reference/command.md, and so convoy(1), does not list it under Environment"
done <variables

# ---- what the generator refuses ----
sh "$CONVOY_SOURCE/tools/make_man.sh" /bin/true "$CONVOY_SOURCE" "$work/none" >log 2>&1 && fail "pages are made of a command that prints nothing"
grep -q 'cannot read the help' log || fail "make_man.sh does not say what is wrong: $(cat log)"
mkdir -p other/docs/reference && cp -r "$CONVOY_SOURCE/tools" "$CONVOY_SOURCE/CHANGELOG.md" other
cp "$CONVOY_SOURCE/docs/reference/job-file.md" other/docs/reference
sed 's/^| variable | |/| name | |/' "$CONVOY_SOURCE/docs/reference/command.md" >other/docs/reference/command.md
sh other/tools/make_man.sh "$CONVOY" other "$work/none" >log 2>&1 && fail "pages are made although command.md lacks a table"
grep -q 'no table whose first heading is: variable' log || fail "make_man.sh does not name the table: $(cat log)"
[ ! -e none ] || fail "make_man.sh leaves pages after a fault"

# ---- what programs that read such pages say ----
for page in "$work"/man/man1/*.1 "$work"/man/man3/*.3 "$work"/man/man5/*.5; do
    if command -v mandoc >/dev/null; then
        mandoc -T lint -W warning "$page" >log 2>&1
        [ -s log ] && fail "mandoc: $(cat log)"
    fi
    if command -v groff >/dev/null && [ -e "$(find /usr/share/groff -name an.tmac 2>/dev/null | head -n 1)" ]; then
        groff -ww -man -z "$page" >log 2>&1
        [ -s log ] && fail "groff: $(cat log)"
    fi
    if command -v lexgrog >/dev/null; then
        lexgrog "$page" >log 2>&1 || fail "lexgrog finds no name in $(basename "$page")"
    fi
done
for program in mandoc groff lexgrog; do
    command -v $program >/dev/null || echo "no $program: the pages are not tried with it"
done
exit $failed
