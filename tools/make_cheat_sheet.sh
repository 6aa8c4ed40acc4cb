#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# make_cheat_sheet.sh PAGE VERSION OUT: sets docs/cheat-sheet.md on one sheet, A4 landscape in three columns, as a PDF.
#
# It needs groff with its ms macros and PDF device (Debian: groff, not only groff-base). It exits with 77 if they are not
# there, and with 1 if the page does not fit on one sheet.
set -eu
page=$1 version=$2 out=$3
printf '.PP\nx\n' | groff -ms -Tpdf >/dev/null 2>&1 || { echo "make_cheat_sheet.sh: no groff with ms and its PDF device"; exit 77; }

awk -v version="$version" '
function escaped(s) {
    gsub(/\\/, "\\(rs", s)
    gsub(/-/, "\\-", s)
    gsub(/\047/, "\\(aq", s)
    gsub(/"/, "\\(dq", s)
    return s
}
# Prose: what stands between backquotes is in the font of commands.
function prose(s,    part, n, i, text) {
    n = split(s, part, "`")
    for (i = 1; i <= n; i++)
        text = text (i % 2 ? part[i] : "\\f[CB]\\s-1" escaped(part[i]) "\\s0\\f[]")
    return text
}
function only_code(s,    part, n, i, text) {
    n = split(s, part, "`")
    for (i = 1; i <= n; i++)
        text = text escaped(part[i])
    return text
}
BEGIN {
    print ".nr PO 0.9c\n.nr LL 27.9c\n.nr HM 0.9c\n.nr FM 0.8c\n.nr PS 8.6p\n.nr VS 10.3p"
    print ".ds LH\n.ds CH\n.ds RH\n.ds LF\n.ds CF\n.ds RF"
    print ".fam H\n.LP\n.ps 13\n.vs 14p"
    print "\\fBconvoy\\fP \\s-5" version ": training of neural networks over MPI, on one page. man convoy; share/doc/convoy\\s0"
    print ".sp 2p"
    print ".MC 8.9c 0.6c\n.ps 8.6\n.vs 10.3p\n.ad l\n.hy 0"
}
/^## / { inside = 1 } # what stands before is for readers of the page
!inside || /^\| \| \|$/ || /^\|-/ { next }
/^## / {
    print ".ne 4\n.sp 3p\n.ps 10.4\n.ft B\n" substr($0, 4) "\n.ft\n.ps 8.6\n.br"
    next
}
/^```/ {
    print fenced ? ".fi\n.ft\n.ps 8.6" : ".br\n.ft CR\n.ps 7.6\n.nf"
    fenced = !fenced
    next
}
fenced { print "\\&" escaped($0); next }
/^\| / {
    sub(/^\| /, "")
    sub(/ \|$/, "")
    at = index($0, " | ")
    code = only_code(substr($0, 1, at - 1))
    about = prose(substr($0, at + 3))
    print ".br\n.ti 0\n.in 0.3c\n.ti -0.3c\n\\f[CB]\\s-1" code "\\s0\\f[]\\ \\ " about
    print ".br\n.in 0"
}' "$page" >"$out.ms"
groff -k -ms -Tpdf -dpaper=a4l -P-pa4 -P-l "$out.ms" >"$out.new" 2>"$out.log" && [ ! -s "$out.log" ] || { cat "$out.log"; exit 1; }
rm -f "$out.ms" "$out.log"
# Pages are objects "/Type /Page" of the PDF, and their tree is "/Type /Pages".
pages=$(grep -ac '/Type /Page$' "$out.new")
[ "$pages" = 1 ] || { echo "make_cheat_sheet.sh: $page takes $pages sheets, expected 1: shorten it"; exit 1; }
mv "$out.new" "$out"
