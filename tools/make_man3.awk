# SPDX-License-Identifier: BSD-3-Clause
# make_man3.awk -v out=FOLDER -v date=DATE -v version=VERSION HEADER...: writes a manual page of section 3 for each public
# function, FOLDER/NAME.3, and one for each structure, from the comments of the headers.
#
# A comment that begins with "/**" belongs to the declaration after it, and to further functions that follow without a
# comment or an empty line. Its first line may be "name - summary", and "@name: text" describes a parameter.

function escaped(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    while (match(text, /@[A-Za-z_][A-Za-z_0-9]*/))
        text = substr(text, 1, RSTART - 1) "\\fI" substr(text, RSTART + 1, RLENGTH - 1) "\\fP" substr(text, RSTART + RLENGTH)
    return text ~ /^[.']/ ? "\\&" text : text
}

# The first sentence, as a summary without its point.
function summary_of(text) {
    if (match(text, /[.:;] /))
        text = substr(text, 1, RSTART - 1)
    sub(/\.$/, "", text)
    return tolower(substr(text, 1, 1)) substr(text, 2)
}

function begin(name, summary,   file) {
    file = out "/" name ".3"
    npages++
    printf ".TH %s 3 \"%s\" \"convoy %s\" \"Library Functions\"\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.nf\n.B #include <convoy/%s>\n", toupper(name), date, version, name, escaped(summary), header >file
    return file
}

# The doc comment, from line `first` of doc[] on: parameters as a list, then paragraphs.
function describe(file, first,   i, line, inside, empty, at) {
    printf ".SH DESCRIPTION\n" >file
    inside = empty = 0
    for (i = first; i <= ndoc; i++) {
        line = doc[i]
        if (line ~ /^@[A-Za-z_, @]+:/) {
            at = index(line, ":")
            printf ".TP\n%s\n%s\n", escaped(substr(line, 1, at - 1)), escaped(substr(line, at + 2)) >file
            inside = 1
        } else if (line == "") {
            empty = 1
        } else {
            if (empty && (inside || i > first))
                printf ".PP\n" >file
            inside = inside && !empty
            empty = 0
            if (line ~ /^    / && !inside) # an example
                printf ".EX\n%s\n.EE\n", escaped(line) >file
            else {
                sub(/^ +/, "", line)
                print escaped(line) >file
            }
        }
    }
    printf ".SH SEE ALSO\n.BR convoy (1)\n" >file
    close(file)
}

function all_text(   i, text) {
    for (i = 1; i <= ndoc; i++)
        text = text (text == "" ? "" : " ") doc[i]
    return text
}

function finish_function(   name, file, prototype, summary, titled) {
    if (!match(declared, /[a-z][a-z0-9_]+\(/)) {
        printf "make_man3.awk: %s: no name of a function in: %s\n", FILENAME, declared | "cat >&2"
        fault = 1
        exit 1
    }
    name = substr(declared, RSTART, RLENGTH - 1)
    titled = ndoc > 0 && doc[1] ~ /^cvy_[a-z0-9_, ]+ - /
    summary = titled ? doc[1] : summary_of(all_text())
    sub(/^cvy_[a-z0-9_, ]+ - /, "", summary)
    file = begin(name, summary)
    prototype = declared
    gsub(/CVY_API |CVY_MUST_CHECK /, "", prototype)
    gsub(/[ \t\n]+/, " ", prototype)
    if (length(prototype) > 76) { # a line for each parameter
        sub(/\(/, "(\n    ", prototype)
        gsub(/, /, ",\n    ", prototype)
    }
    printf ".PP\n.ft B\n%s\n.ft R\n.fi\n", escaped(prototype) >file
    describe(file, titled ? 2 : 1)
}

function finish_struct(name,   file) {
    file = begin(name, summary_of(all_text()))
    printf ".PP\n%s.fi\n", body >file
    describe(file, 1)
}

FNR == 1 {
    header = FILENAME
    sub(/.*\//, "", header)
    ndoc = state = 0
    at_type = ""
}

# ---- inside a structure: kept as it is ----
at_type != "" {
    body = body escaped($0) "\n"
    if ($0 ~ ("^} " at_type ";")) {
        finish_struct(at_type)
        at_type = ""
        ndoc = 0
    }
    next
}
# ---- inside a comment ----
/^\/\*\*/ { ndoc = 0; state = 1; sub(/^\/\*\* ?/, "") }
state == 1 {
    ends = sub(/ *\*\/$/, "")
    sub(/^ \* ?/, "")
    if (!($0 == "" && (ndoc == 0 || ends)))
        doc[++ndoc] = $0
    state = ends ? 0 : 1
    next
}
/^typedef struct cvy_[a-z0-9_]+ \{/ && ndoc > 0 { at_type = $3; body = escaped($0) "\n"; next }
/^CVY_API / { declared = ""; state = 2 }
state == 2 {
    declared = declared (declared == "" ? "" : "\n") $0
    if ($0 ~ /;$/) {
        state = 0
        if (ndoc > 0)
            finish_function()
    }
    next
}
/^$/ { ndoc = 0 }
END { if (npages == 0 || fault) exit 1 }
