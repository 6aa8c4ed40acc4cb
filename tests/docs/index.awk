# SPDX-License-Identifier: BSD-3-Clause
# index.awk: checks the index of words. Variables: docs, the folder with README.md. The input: words, one a line.
# Prints a line for each fault: a word without an entry, a link to no page or no heading, a section that has neither the
# word, nor another word of its entry, nor a name between backquotes of the answer.

# Words with single blanks between and around them, without case and punctuation.
function plain(text) {
    text = tolower(text)
    gsub(/[^a-z0-9]+/, " ", text)
    gsub(/^ | $/, "", text)
    return " " text " "
}
# As GitHub makes it, and tools/check_links.
function anchor(text) {
    text = tolower(text)
    gsub(/\[|\]\([^)]*\)/, "", text)
    gsub(/[^a-z0-9 _-]/, "", text)
    gsub(/ /, "-", text)
    return text
}
# The text under a heading of a page, with its subsections; the whole page if there is no heading; "" if there is none.
function section(page, heading,    line, text, level, depth, fenced, found) {
    if ((page, heading) in sections)
        return sections[page, heading]
    text = ""
    depth = heading == "" ? 1 : 0
    found = 0
    while ((getline line <page) > 0) {
        found = 1
        if (line ~ /^ *```/)
            fenced = !fenced
        if (!fenced && match(line, /^#+ /)) {
            level = RLENGTH - 1
            if (depth && level <= depth && heading != "")
                depth = 0
            if (!depth && heading != "" && anchor(substr(line, level + 2)) == heading)
                depth = level
        }
        if (depth || heading == "")
            text = text " " line
    }
    close(page)
    if (!found)
        pages_missing[page] = 1
    return sections[page, heading] = plain(text)
}
# Whether the section answers the entry.
function answers(text, row,    i, n, item) {
    n = split(words[row], item, ",")
    for (i = 1; i <= n; i++)
        if (index(text, plain(item[i])))
            return 1
    n = split(answer[row], item, "`")
    for (i = 2; i <= n; i += 2)
        if (index(text, plain(item[i])))
            return 1
    return 0
}
BEGIN {
    while ((getline line <(docs "/README.md")) > 0) {
        if (line ~ /^## /)
            inside = line == "## Index"
        if (!inside || line !~ /^\| / || split(line, cell, /\|/) < 4 || cell[2] ~ /^ *words *$/)
            continue
        words[++rows] = cell[2]
        answer[rows] = cell[3]
        link[rows] = cell[4]
        sub(/.*\(/, "", link[rows])
        sub(/\).*/, "", link[rows])
        n = split(cell[2], item, ",")
        for (i = 1; i <= n; i++)
            row_of[plain(item[i])] = rows
    }
    close(docs "/README.md")
}
{
    count++
    row = row_of[plain($0)]
    if (!row) {
        print "no entry for the word: " $0
        next
    }
    path = link[row]
    heading = ""
    if (match(path, /#/)) {
        heading = substr(path, RSTART + 1)
        path = substr(path, 1, RSTART - 1)
    }
    page = docs "/" (path == "" ? "README.md" : path)
    text = section(page, heading)
    if (page in pages_missing)
        print $0 ": there is no page " page
    else if (text == plain(""))
        print $0 ": " page " has no heading #" heading
    else if (!answers(text, row))
        print $0 ": " path "#" heading " does not say it"
}
END { print count + 0 " words, " rows " entries" >"/dev/stderr" }
