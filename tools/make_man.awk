# SPDX-License-Identifier: BSD-3-Clause
# make_man.awk: writes manual pages in the macros of man(7); tools/make_man.sh calls it.
#
#   page=verbs out=FOLDER   from `convoy --print-tables`: FOLDER/convoy-<verb>.1 for each verb
#   page=list               from the same: the section VERBS of convoy(1)
#   page=table head=TEXT    from a page in Markdown: the table whose first heading is TEXT, as a list
#   page=job                from docs/reference/job-file.md: the body of convoy-job(5)
#
# `date` and `version` go into the titles.

# ---- roff ----

function replace(s, from, to,    out, at) {
    out = ""
    while ((at = index(s, from)) > 0) {
        out = out substr(s, 1, at - 1) to
        s = substr(s, at + length(from))
    }
    return out s
}
# A text that is printed as it is. A hyphen stays the character that can be copied into a shell.
function literal(s) {
    return replace(replace(replace(s, "\\", "\\e"), "-", "\\-"), "`", "\\(ga")
}
# Prose with `code`, **bold**, *emphasis* and [links](target) of Markdown. Only code may have stars of its own.
function prose(s,    part, n, i, out, link) {
    out = ""
    s = replace(s, "\\|", "|")
    while (match(s, /\[[^][]*\]\([^()]*\)/)) {
        link = substr(s, RSTART + 1, RLENGTH - 1)
        s = substr(s, 1, RSTART - 1) substr(link, 1, index(link, "]") - 1) substr(s, RSTART + RLENGTH)
    }
    n = split(s, part, "`")
    for (i = 1; i <= n; i++) {
        if (i % 2 == 0) {
            out = out "\\fB" literal(part[i]) "\\fR"
            continue
        }
        part[i] = replace(replace(part[i], "\\", "\\e"), "--", "\\-\\-")
        while (match(part[i], /\*\*[^*]+\*\*/))
            part[i] = substr(part[i], 1, RSTART - 1) "\\fB" substr(part[i], RSTART + 2, RLENGTH - 4) "\\fR" \
                substr(part[i], RSTART + RLENGTH)
        out = out part[i]
    }
    return out
}
# A line of input to roff: a dot or a quote at its start would be a request.
function line(s) {
    sub(/^ +/, "", s)
    return (s ~ /^[.']/ ? "\\&" : "") s
}
function quoted(s) {
    return "\"" replace(s, "\"", "\\(dq") "\""
}

# ---- verbs ----

function see(verb) {
    if (verb != name && !seen[verb]++)
        also[++nalso] = "convoy\\-" verb "(1)"
}
# Verbs that a text names between backquotes.
function note_verbs(text,    part, n, i, word) {
    n = split(text, part, "`")
    for (i = 2; i <= n; i += 2)
        if (split(part[i], word, " ") > 1 && word[1] == "convoy" && word[2] ~ /^[a-z]+$/)
            see(word[2])
}
function note(text) {
    note_verbs(text)
    stops = stops || text ~ /exit code 75/
}
function end_verb(    i) {
    if (name == "")
        return
    print ".TH CONVOY\\-" toupper(name) " 1 " quoted(date) " " quoted("convoy " version) " \"User Commands\"" >file
    print ".SH NAME\nconvoy\\-" name " \\- " prose(summary) >file
    print ".SH SYNOPSIS\n.B convoy " name >file
    print line(literal(arguments == "" ? "[--help]" : arguments)) >file
    print ".SH DESCRIPTION" >file
    print "This verb " line(prose(summary)) "." >file
    for (i = 1; i <= ndetail; i++)
        print ".PP\n" line(prose(detail[i])) >file
    print ".SH OPTIONS" >file
    for (i = 1; i <= noption; i++) {
        print ".TP\n\\fB" literal(option[i]) "\\fR" (value[i] == "" ? "" : " \\fI" literal(value[i]) "\\fR") >file
        print line(prose(help[i])) >file
    }
    print ".TP\n\\fB\\-\\-help\\fR\nprints these options" >file
    if (takes_values)
        print ".PP\nA value follows its option as the next word, or behind an equals sign." >file
    print ".SH EXIT STATUS\n.TP\n0\ndone\n.TP\n1\na fault, which a message names" >file
    print ".TP\n2\nthe command line is wrong; nothing has run" >file
    if (stops)
        print ".TP\n75\nstopped before the end, with everything saved" >file
    printf ".SH SEE ALSO\nconvoy(1)" >file
    if (keys)
        printf ", convoy\\-job(5)" >file
    for (i = 1; i <= nalso; i++)
        printf ", %s", also[i] >file
    print "" >file
    close(file)
}
BEGIN { FS = page == "verbs" || page == "list" ? "\t" : " " }
page == "list" && $1 == "verb" {
    print ".TP\n.BR convoy\\-" $2 " (1)\n" line(prose($4))
}
page == "verbs" && $1 == "verb" {
    end_verb()
    name = $2; arguments = $3; summary = $4
    file = out "/convoy-" name ".1"
    ndetail = noption = nalso = stops = keys = takes_values = 0
    split("", seen)
}
page == "verbs" && $1 == "detail" { detail[++ndetail] = $2; note($2) }
page == "verbs" && $1 == "option" {
    option[++noption] = $2; value[noption] = $3; help[noption] = $5
    keys = keys || $4 == "set"
    takes_values = takes_values || $3 != ""
    note($5)
}
END {
    if (page == "verbs")
        end_verb()
}

# ---- Markdown ----

# Splits a row of a table into cell[1..]; returns their number. A bar with a backslash belongs to the cell.
function cells(row,    n, i) {
    gsub(/\\\|/, "\001", row)
    sub(/^\| */, "", row)
    sub(/ *\| *$/, "", row)
    n = split(row, cell, / *\| */)
    for (i = 1; i <= n; i++)
        gsub(/\001/, "|", cell[i])
    return n
}
page == "table" && /^\|/ {
    cells($0)
    if (inside && $0 !~ /^\|-/)
        print ".TP\n" line(prose(cell[1])) "\n" line(prose(cell[2]))
    else if (cell[1] == head)
        inside = found = 1
}
page == "table" && !/^\|/ { inside = 0 }
END {
    if (page == "table" && !found) {
        print "make_man.awk: there is no table whose first heading is: " head >"/dev/stderr"
        exit 1
    }
}

function paragraph() {
    if (text != "")
        print (fresh ? "" : ".PP\n") line(prose(text))
    if (text != "")
        fresh = 0
    text = ""
}
# Writes a key of the job file: its whole name, what it may be, and what it means.
function write_key(    n, about) {
    n = cells($0)
    if (n != 5 || cell[1] == "key" || cell[1] ~ /^-/)
        return
    about = cell[2] (cell[3] == "" ? "" : "; " cell[3])
    about = about (cell[4] == "" ? "" : cell[4] == "required" ? "; required" : "; default " cell[4])
    print ".TP\n\\fB" literal(prefix replace(cell[1], "`", "")) "\\fR (" prose(about) ")\n" line(prose(cell[5]))
}
page != "job" { next }
NR == 1 { fresh = 1 }
/^```/ {
    paragraph()
    print (fenced ? ".EE\n.RE" : ".RS\n.EX")
    fenced = !fenced
    fresh = 0
    next
}
fenced { print line_as_is($0); next }
/^# / || /^<!--/ { next }
/^##/ {
    paragraph()
    if (!nheads++)
        print ".SH KEYS"
    heading = $0
    sub(/^#+ */, "", heading)
    prefix = ""
    if (heading ~ /^`/) {
        split(heading, span, "`")
        prefix = span[2] (heading ~ /: a list/ ? "[]." : ".")
    }
    print ".SS " quoted(prose(heading))
    fresh = 1
    next
}
/^\|/ { paragraph(); write_key(); fresh = 0; next }
/^- / {
    paragraph()
    print ".IP \\(bu 2\n" line(prose(substr($0, 3)))
    fresh = 0
    next
}
/^ *$/ { paragraph(); next }
{ text = text (text == "" ? "" : " ") $0 }
END {
    if (page == "job")
        paragraph()
}
function line_as_is(s) {
    s = literal(s)
    return (s ~ /^[.']/ ? "\\&" : "") s
}
