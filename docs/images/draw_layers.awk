# SPDX-License-Identifier: BSD-3-Clause
# draw_layers.awk: draws which folders include which as an SVG picture, from the table of check_layers.
#     { sed -n "s/^layers='\(.*\)'/order src \1/p; s/^labs='\(.*\)'/order lab \1/p" tools/check_layers
#       sh tools/check_layers --table; } | awk -f docs/images/draw_layers.awk >docs/images/layers.svg
# A row is a folder; a dot in it stands for a folder that it includes, the larger the more files do. The library is blue,
# the laboratory orange. All dots lie below the diagonal, because includes go down.
$1 == "order" {
    for (i = 3; i <= NF; i++) {
        name[++n] = $i
        place[$i] = n
        class[n] = $2
    }
    next
}
$1 ~ /^(src|lab)\// {
    split($1, path, "/")
    row = place[path[2]]
    text = $0
    sub(/^[^ ]+ +[0-9]+ +[0-9]+ +/, "", text)
    count = split(text, use, ", ")
    for (i = 1; i <= count; i++) {
        split(use[i], word, " ")
        split(word[1], path, "/")
        column = place[path[1]]
        if (row && column && row != column)
            files[row, column] += word[2]
    }
}
END {
    STEP = 15; LEFT = 110; TOP = 100
    wide = LEFT + n * STEP + 20
    high = TOP + n * STEP + 20
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"11\" role=\"img\" aria-label=\"Which folders include which\">\n", wide, high, wide
    print "<style>text { fill: #222222 } .src { fill: #4a7fb5 } .lab { fill: #c98a2b } .g { stroke: #eeeeee } .d { stroke: #bbbbbb; fill: none }</style>"
    printf "<rect x=\"1\" y=\"1\" width=\"%d\" height=\"%d\" rx=\"8\" fill=\"#ffffff\" stroke=\"#cccccc\"/>\n", wide - 2, high - 2
    for (r = 1; r <= n; r++) {
        x = LEFT + (r - 0.5) * STEP
        y = TOP + (r - 0.5) * STEP
        printf "<path class=\"g\" d=\"M%d %.1f H%d M%.1f %d V%d\"/>\n", LEFT, y, LEFT + n * STEP, x, TOP, TOP + n * STEP
        printf "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s/%s</text>\n", LEFT - 8, y + 4, class[r], name[r]
        printf "<text transform=\"translate(%.1f %d) rotate(-90)\">%s</text>\n", x + 4, TOP - 6, name[r]
    }
    printf "<path class=\"d\" d=\"M%d %d L%d %d\"/>\n", LEFT, TOP, LEFT + n * STEP, TOP + n * STEP
    for (r = 1; r <= n; r++)
        for (c = 1; c <= n; c++)
            if ((r, c) in files) {
                radius = 1.6 + sqrt(files[r, c]) * 0.9
                if (radius > 6.5)
                    radius = 6.5
                printf "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>\n", class[r], LEFT + (c - 0.5) * STEP, TOP + (r - 0.5) * STEP, radius
            }
    print "</svg>"
}
