# SPDX-License-Identifier: BSD-3-Clause
# literals.awk: prints the string literals of C and CMake sources, one a line, as a message shows them: adjacent literals
# are joined, and each printf conversion, and each variable of CMake, is "..".
function show(s) {
    gsub(/\\\n/, "", s)
    gsub(/\\n/, " ", s)
    gsub(/\\"/, "\"", s)
    gsub(/%%/, "\001", s)
    gsub(/%[-+ 0#]*[0-9*]*(\.[0-9*]+)?(hh|h|ll|l|z|j|t)?[a-zA-Z]/, "..", s)
    gsub(/\$\{[A-Za-z_]+\}/, "..", s)
    gsub(/\001/, "%", s)
    gsub(/(\.\.)(\.\.)+/, "..", s)
    if (s != "")
        print s
}
FNR == 1 { show(pending); pending = "" }
/^ *(\/\*|\*|\/\/|#)/ && !/^ *#define/ { next }
{
    line = $0
    gsub(/'\\?"'/, "' '", line)
    if (pending != "" && line !~ /^[ \t]*"/) {
        show(pending)
        pending = ""
    }
    while (match(line, /"([^"\\]|\\.)*"/)) {
        between = substr(line, 1, RSTART - 1)
        if (pending != "" && between ~ /[^ \t]/) {
            show(pending)
            pending = ""
        }
        pending = pending substr(line, RSTART + 1, RLENGTH - 2)
        line = substr(line, RSTART + RLENGTH)
    }
    if (pending != "" && line ~ /[^ \t\\]/) {
        show(pending)
        pending = ""
    }
}
END { show(pending) }
