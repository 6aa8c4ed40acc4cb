#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# predictions.sh: every prediction beside what was measured, as one table in Markdown, from the files that have both.
#
#     sh scripts/predictions.sh [--bar KIND=PERCENT] [--check] [FILE...] >docs/results/predictions.md
#
# A FILE is one of
#     results.csv of a study     steps of the framework convoy-clock are predictions of those of convoy in the same case
#     what compare_simulated.sh prints, also within a page    exposed communication and steps, simulated and real
#     what compare_grids.sh prints                            steps of process grids, predicted and measured
# Without files it takes docs/studies/*/results.csv, docs/results/simulate.md and docs/results/predictions/*.txt.
# The bar of a kind is the error that the guide states. A row is within it, or says `no`. --check fails if one says so.
# Kinds: clock, simulated-step, simulated-exposed, grid.
set -eu
usage() { sed -n '2,14s/^# \{0,1\}//p' "$0" >&2; exit 2; }

bars='clock=30 simulated-step=17 simulated-exposed=25 grid=30' check=0
while [ $# -gt 0 ]; do
    case $1 in
    --bar)
        [ $# -ge 2 ] || usage
        case " $bars" in *" ${2%%=*}="*) ;; *) echo "predictions: --bar $2: expected KIND=PERCENT of one of: $bars" >&2; exit 2 ;; esac
        case ${2#*=} in '' | *[!0-9.]*) echo "predictions: --bar $2: expected a number of percent, such as clock=30" >&2; exit 2 ;; esac
        bars="$bars $2"
        shift 2 ;;
    --check) check=1; shift ;;
    -*) usage ;;
    *) break ;;
    esac
done
if [ $# -eq 0 ]; then
    cd "$(dirname "$0")/.."
    for file in docs/studies/*/results.csv docs/results/simulate.md docs/results/predictions/*.txt; do
        [ ! -e "$file" ] || set -- "$@" "$file"
    done
fi
for file in "$@"; do
    [ -r "$file" ] || { echo "predictions: $file cannot be read; expected results.csv of a study, or what compare_simulated.sh or compare_grids.sh has printed" >&2; exit 2; }
done

awk -v bars="$bars" -v check=$check '
function read_csv(line,    n, at, field, c, quoted) {
    n = 1; field = ""; quoted = 0
    for (at = 1; at <= length(line); at++) {
        c = substr(line, at, 1)
        if (c == "\"" && quoted && substr(line, at + 1, 1) == "\"") { field = field c; at++ }
        else if (c == "\"") quoted = !quoted
        else if (c == "," && !quoted) { cell[n++] = field; field = "" }
        else field = field c
    }
    cell[n] = field
    return n
}
# Keeps a row; unit: how numbers are printed.
function add(kind, what, predicted, measured, of,    error) {
    if (measured <= 0 || predicted < 0) return
    error = 100 * (predicted - measured) / measured
    n++; kinds[n] = kind; text[n] = what; p[n] = predicted; m[n] = measured; e[n] = error
    ok[n] = (error < 0 ? -error : error) <= bar[kind] || (of > 0 && (predicted - measured) ^ 2 <= (0.01 * of) ^ 2)
    source[n] = FILENAME
}
function number(x) { return x >= 1000 ? sprintf("%.0f", x) : sprintf("%.4g", x) }
BEGIN {
    count = split(bars, word, " ")
    for (i = 1; i <= count; i++) { split(word[i], pair, "="); bar[pair[1]] = pair[2] }
    kind_text["clock"] = "step ms of ranks whose kernels wait for their times (`--kernels clock`), beside ranks that compute"
    kind_text["simulated-step"] = "step ms of `convoy simulate`, beside real ranks of network namespaces"
    kind_text["simulated-exposed"] = "exposed communication ms of `convoy simulate`, beside the same ranks; or within 1 % of the step"
    kind_text["grid"] = "step ms of a process grid (`convoy plan`, `parallel: auto`), beside the measured step"
    order[1] = "clock"; order[2] = "simulated-step"; order[3] = "simulated-exposed"; order[4] = "grid"
}
FNR == 1 { format = "" ; columns = 0 }
{ sub(/\r$/, "") }
# ---- results.csv of a study: a head for each experiment ----
/^experiment,/ {
    format = "csv"; columns = read_csv($0); delete name
    for (i = 1; i <= columns; i++) if (!(cell[i] in name)) name[cell[i]] = i
    values = name["images_per_s"] - 1
    for (i = 1; i <= values; i++) head[i] = cell[i]
    next
}
format == "csv" {
    if (read_csv($0) < columns || !("framework" in name) || cell[name["images_per_s"]] == "") next
    what = FILENAME; sub(/\/results.csv$/, "", what); sub(/.*\//, "", what)
    for (i = 2; i <= values; i++)
        if (head[i] != "framework" && cell[i] != "{}") {
            label = head[i]; sub(/^set\./, "", label)
            what = what ", " (head[i] == "model" ? "" : label " ") cell[i]
        }
    key = what; framework = cell[name["framework"]]; ms = cell[name["ms_median"]]; at = what SUBSEP cell[columns]
    if (framework == "convoy" && ms + 0 > 0) measured[at] = ms
    if (framework == "convoy-clock" && ms + 0 > 0) predicted[at] = ms
    if ((at in measured) && (at in predicted) && !(at in done)) { done[at] = 1; add("clock", what, predicted[at] + 0, measured[at] + 0, 0) }
    next
}
# ---- what compare_simulated.sh prints ----
/^\| network, batch a rank \| link \| ranks \| step ms, real \| simulated \| exposed ms, real \| simulated \|/ { format = "simulated"; next }
format == "simulated" && /^\|---/ { next }
format == "simulated" && /^\|/ {
    split($0, part, / *\| */)
    what = part[2] " a rank, " part[3] ", " part[4] " ranks"
    add("simulated-step", what, part[6] + 0, part[5] + 0, 0)
    add("simulated-exposed", what, part[8] + 0, part[7] + 0, part[5] + 0)
    next
}
format == "simulated" { format = "" }
# ---- what compare_grids.sh prints ----
/^grid +predicted ms +measured ms +off/ { format = "grids"; grid_case = previous; next }
format == "grids" && NF >= 4 && $(NF - 1) + 0 > 0 && $(NF - 2) + 0 > 0 {
    what = $0; sub(/ +[0-9.]+ +[0-9.]+ +[-0-9.]+ *$/, "", what)
    add("grid", grid_case ", " what, $(NF - 2) + 0, $(NF - 1) + 0, 0)
    next
}
format == "grids" { format = "" }
$0 != "" { previous = $0 }
function show(kind,    i) {
    printf "\n## %s\n\nThe bar is %s %%: %s.\n\n", title[kind], bar[kind], kind_text[kind]
    printf "| what | predicted | measured | error, %% | within the bar |\n|---|---|---|---|---|\n"
    for (i = 1; i <= n; i++)
        if (kinds[i] == kind)
            printf "| %s | %s | %s | %+.1f | %s |\n", text[i], number(p[i]), number(m[i]), e[i], ok[i] ? "yes" : "**no**"
}
END {
    if (n == 0) { print "predictions: none of the files has both a prediction and a measurement of it" > "/dev/stderr"; exit 2 }
    title["clock"] = "Ranks that wait instead of computing"; title["simulated-step"] = "Simulated steps"
    title["simulated-exposed"] = "Simulated communication"; title["grid"] = "Process grids"
    print "# Predictions beside measurements\n\nWritten by `sh scripts/predictions.sh` from the results of studies and of the scripts that compare. An error below 0 is a"
    print "prediction that is too short. The bar is the error that the guide states; a row outside it says so. Machine and"
    print "commit of a row are those of the page or study from which it is: [simulate.md](simulate.md), [grids.md](grids.md) and"
    print "[the studies](../studies/README.md). The bars were set after the first of these comparisons, so they describe how"
    print "far predictions have been off, and are no test of them.\n"
    print "| what | predictions | within the bar | bar, % | median error, % | worst, % |\n|---|---|---|---|---|---|"
    for (k = 1; k <= 4; k++) {
        c = good = worst = 0; delete sorted
        for (i = 1; i <= n; i++) if (kinds[i] == order[k]) {
            c++; good += ok[i]; sorted[c] = e[i]
            if (e[i] ^ 2 > worst ^ 2) worst = e[i]
            for (j = c; j > 1 && sorted[j] < sorted[j - 1]; j--) { t = sorted[j]; sorted[j] = sorted[j - 1]; sorted[j - 1] = t }
        }
        if (c == 0) continue
        bad += c - good
        middle = c % 2 ? sorted[(c + 1) / 2] : (sorted[c / 2] + sorted[c / 2 + 1]) / 2
        printf "| %s | %d | %d | %s | %+.1f | %+.1f |\n", title[order[k]], c, good, bar[order[k]], middle, worst
    }
    for (k = 1; k <= 4; k++) {
        for (i = 1; i <= n && kinds[i] != order[k]; i++) { }
        if (i <= n) show(order[k])
    }
    if (bad > 0) printf "predictions: %d of %d rows are outside their bar: widen it with --bar and in the guide, or mend the prediction\n", bad, n > "/dev/stderr"
    exit check && bad > 0
}' "$@"
