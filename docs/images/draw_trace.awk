# SPDX-License-Identifier: BSD-3-Clause
# draw_trace.awk: draws the trace of a step (`--trace FILE` of convoy bench, time and train) as an SVG picture.
#     awk -v title="One step on two ranks" -f docs/images/draw_trace.awk trace.json >timeline.svg
# A rank has a line for its kernels, one for its communication, and one for sums over ranks that are under way.

function value(key,    text) {
    if (!match($0, "\"" key "\": *(\"[^\"]*\"|[-0-9.e+]+)"))
        return ""
    text = substr($0, RSTART, RLENGTH)
    sub(/^"[^"]*": */, "", text)
    gsub(/"/, "", text)
    return text
}
function box(rank, row, from, to, class, label,    x, y, w) {
    x = LEFT + (from - first) / (last - first) * WIDE
    w = (to - from) / (last - first) * WIDE
    y = TOP + rank * HIGH + row * 30
    if (w < 0.4)
        w = 0.4
    printf "<rect class=\"%s\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"24\"/>\n", class, x, y, w
    if (w > 7.2 * length(label))
        printf "<text class=\"m s\" x=\"%.1f\" y=\"%d\">%s</text>\n", x + w / 2, y + 16, label
}
BEGIN {
    RS = "{" # an event begins with one; its "args" are a record of their own
    LEFT = 120; WIDE = 780; TOP = 50; HIGH = 104
    n = 0
    first = 1e30
}
{
    kind = value("ph")
    rank = value("pid") + 0
    name = value("name")
    if (kind == "X") {
        n++
        rank_of[n] = rank; start[n] = value("ts") + 0; stop[n] = start[n] + value("dur"); cat[n] = value("cat"); label[n] = name
    } else if (kind == "b")
        begun[rank, value("id")] = value("ts") + 0
    else if (kind == "e" && (rank, value("id")) in begun && value("cat") == "sums") {
        n++
        rank_of[n] = rank; start[n] = begun[rank, value("id")]; stop[n] = value("ts") + 0; cat[n] = "sums"; label[n] = name
    }
}
END {
    for (i = 1; i <= n; i++) {
        if (start[i] < first) first = start[i]
        if (stop[i] > last) last = stop[i]
        if (rank_of[i] > ranks) ranks = rank_of[i]
    }
    height = TOP + (ranks + 1) * HIGH + 50
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 920 %d\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"14\" role=\"img\" aria-label=\"%s\">\n", height, title
    print "<style>.forward { fill: #cfe3f7; stroke: #4a7fb5 } .backward { fill: #fde3c0; stroke: #c98a2b } .update { fill: #5b9a4c; stroke: #5b9a4c }"
    print ".comm { fill: #999999; stroke: #777777 } .sums { fill: #e9d9f2; stroke: #8d5fa8 } rect { stroke-width: 0.6 }"
    print "text { fill: #222222 } .s { font-size: 12px; fill: #555555 } .m { text-anchor: middle } .l { stroke: #777777; fill: none }</style>"
    printf "<rect x=\"1\" y=\"1\" width=\"918\" height=\"%d\" rx=\"8\" fill=\"#ffffff\" stroke=\"#cccccc\"/>\n", height - 2
    printf "<text x=\"20\" y=\"30\" font-weight=\"bold\">%s</text>\n", title
    for (r = 0; r <= ranks; r++) {
        y = TOP + r * HIGH
        printf "<text x=\"20\" y=\"%d\" font-weight=\"bold\">rank %d</text>\n", y + 16, r
        printf "<text class=\"s\" x=\"70\" y=\"%d\">kernels</text><text class=\"s\" x=\"70\" y=\"%d\">waits</text><text class=\"s\" x=\"70\" y=\"%d\">sums</text>\n", y + 16, y + 46, y + 76
    }
    for (i = 1; i <= n; i++) {
        row = cat[i] == "sums" ? 2 : cat[i] == "comm" ? 1 : 0
        text = label[i]
        sub(/\..*/, "", text)
        if (row < 2)
            box(rank_of[i], row, start[i], stop[i], cat[i], text)
    }
    # Sums may overlap: each is a thin bar of its own.
    for (i = 1; i <= n; i++)
        if (cat[i] == "sums") {
            y = TOP + rank_of[i] * HIGH + 60 + 8 * (count[rank_of[i]]++ % 4)
            printf "<rect class=\"sums\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"6\"/>\n", LEFT + (start[i] - first) / (last - first) * WIDE, y, (stop[i] - start[i]) / (last - first) * WIDE + 0.5
        }
    y = TOP + (ranks + 1) * HIGH + 4
    printf "<path class=\"l\" d=\"M%d %d H%d\"/><text class=\"s\" x=\"%d\" y=\"%d\">0</text><text class=\"m s\" x=\"%d\" y=\"%d\">%.0f ms</text>\n", LEFT, y, LEFT + WIDE, LEFT, y + 16, LEFT + WIDE - 20, y + 16, (last - first) / 1000
    x = LEFT
    split("forward backward update comm sums", key, " ")
    split("forward|backward|update|communication: starts and waits|a sum over the ranks is under way", words, "|")
    for (k = 1; k <= 5; k++) {
        printf "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"14\" height=\"12\"/><text class=\"s\" x=\"%d\" y=\"%d\">%s</text>\n", key[k], x, y + 24, x + 20, y + 34, words[k]
        x += 40 + 6.6 * length(words[k])
    }
    print "</svg>"
}
