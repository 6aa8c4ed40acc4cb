#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# seconds: 3
# lane: clock
# publication.sh: `convoy study` of a publication: it runs the studies that are beside its file, and writes a page with
# their figures and tables, what was published, and what is missing; --report writes the page again; mistakes.
. "$CONVOY_SOURCE/tests/cmd/job.inc"

mkdir adapters files
cat >speed.sh <<'Y'
[ ! -e "fails-$2" ] || { echo "convoy: error: $2 fails" >&2; exit 1; }
[ -z "${4-}" ] || sleep "$4"
echo "{\"images_per_s\": $(($1 * $3)), \"ms_median\": 5}"
Y
for peer in convoy other; do
    factor=10
    [ $peer = other ] && factor=7
    cat >adapters/$peer.yaml <<Y
summary: numbers
command: [sh, speed.sh, "{ranks}", $peer, "$factor"]
ignores: [batch]
set: ["{value}"]
version: [echo, "$peer 1"]
cores: false
Y
done
cat >files/scaling.yaml <<'Y'
title: Scaling
published: tacc
names:
  set.parallel: {'{}': data parallel}
experiments:
  weak:
    ranks: [1, 2, 512]
    batch: 4
    set.parallel: ['{}']
    framework: [convoy, other]
    repeats: 2
    quick: {ranks: [1, 2], repeats: 1}
figures:
- title: Efficiency
  of: weak
  x: ranks
  x_label: nodes
  lines: framework
  panels: set.parallel
  log_x: true
  as: efficiency
  y_label: efficiency
  marks: [{metric: weak scaling efficiency, x: 512}]
Y
sed 's/^title: .*/title: Never run/' files/scaling.yaml >files/later.yaml
cat >files/paper.yaml <<'Y'
page: 009-paper
title: "A paper: about <scaling>"
source: Some authors, 2017
published: tacc hyparflow
parts:
- title: Weak scaling
  shows: the efficiency over nodes
  plots: 2
  metrics: weak scaling efficiency; speedup on 512 nodes
  beside: [{study: scaling, figure: Efficiency, panel: data}, {study: scaling, experiment: weak, only: framework=other}]
- {title: Something lacks, shows: more, plots: 1, lacks: a second axis, beside: [{study: scaling, figure: Efficiency}]}
- {title: On GPUs, shows: other devices, plots: 3, needs: a GPU}
- {title: In words, shows: a sentence, text: It is so.}
Y
study() { timeout 100 "$CONVOY" study files/paper.yaml --out all --frameworks-folder adapters "$@" >log 2>err; }
study || fail "code $?: $(cat log err)"
page=all/009-paper.md
has() { contains $page "$1" || fail "the page lacks '$1': $(cat $page)"; }
has '# A paper: about <scaling>'
has 'Of 6 plots, 2 have a counterpart in full, 1 in part, 3 none.'
has '| [Weak scaling](#weak-scaling) | 2 | in full |'
has '| [On GPUs](#on-gpus) | 3 | missing: it needs a GPU |'
has '**Here:** in part. It lacks this: a second axis.'
has '**Published:** resnet-1001, speedup on 512 nodes, hybrid: about 481'
has '; four nets, weak scaling efficiency, 128, 256'
has '![Efficiency: data parallel](scaling/figures/efficiency-data-parallel.svg)'
has '| efficiency at nodes | 1 | 2 | 512 |'
has '| other | 1 | 1 | 1 |'
has '| 512 | 4 | data parallel | other | 3584 | 3584 to 3584 |'
has '*From [`convoy study scaling`](scaling/report.html).*'
figure=all/scaling/figures/efficiency-data-parallel.svg
for text in 'published, intel-caffe+mlsl: about 80 %' 'published, intel-caffe+mlsl or pure MPI: 55 to 92 %' '<rect width="100%"'; do
    contains $figure "$text" || fail "$figure lacks '$text'"
done
[ "$(grep -c . all/scaling/results.jsonl)" = 12 ] || fail "$(grep -c . all/scaling/results.jsonl) results"

# Again: nothing is measured. A quick look, results of two commits, and a study that has not been run are named.
study || fail "the second time: $(cat log err)"
grep -q ' 0 now, 12 before' log || fail "the second time: $(cat log)"
study --out quick --quick || fail "--quick: $(cat log err)"
page=quick/009-paper.md
has 'Of 6 plots, 0 have a counterpart in full, 3 in part, 3 none.'
has '**Here:** in part. A quick look has left out cases of 2 of its 2 figures and tables.'
has 'All of it was made with --quick: few cases and repeats. Each case was measured once, so small differences mean nothing.'
contains quick/scaling/report.html 'made with --quick' || fail "report.html does not say --quick"
sed -E 's/, "commit": "[^"]*"//; s/"environment": \{/"environment": {"commit": "1badcafe", /; 1s/1badcafe/0badcafe/' all/scaling/results.jsonl >new
mv new all/scaling/results.jsonl
study --report || fail "--report: $(cat log err)"
page=all/009-paper.md
has 'The results are of several commits, which may differ in speed: 0badcafe, 1badcafe'
sed 's/study: scaling, figure/study: later, figure/' files/paper.yaml >files/new.yaml
timeout 100 "$CONVOY" study files/new.yaml --out all --report >log 2>err || fail "--report: $(cat log err)"
has 'Not measured here yet: `convoy study later` makes "Efficiency".'
has '| `later` | not run |'

# Points without results are counted; a framework that has none at all is named.
mkdir part
timeout 100 "$CONVOY" study files/scaling.yaml --out part/scaling --frameworks-folder adapters --only ranks=512 >log 2>err || fail "--only ranks: $(cat log err)"
study --out part --report || fail "--report of a part: $(cat log err)"
page=part/009-paper.md
has '| [Weak scaling](#weak-scaling) | 2 | in part |'
has '**Here:** in part. 2 of its 6 points have results. ' # of ranks 1, 2 and 512; whether 2 are left out or need cores depends on the machine
has 'were not run.'
timeout 100 "$CONVOY" study files/scaling.yaml --out part/scaling --frameworks-folder adapters --only framework=convoy >log 2>err || fail "--only framework: $(cat log err)"
study --out part --report || fail "--report of a larger part: $(cat log err)"
has '| other | not run | ' # an empty cell says why
# Another figure stands for points that need more cores, where the file says so and it is complete.
sed 's/ranks: \[1, 2, 512\]/ranks: [1, 512]/' files/scaling.yaml >files/few.yaml
sed 's/ranks: \[1, 2, 512\]/ranks: [1]/' files/scaling.yaml >files/model.yaml
for one in few model; do
    timeout 100 "$CONVOY" study files/$one.yaml --out part/$one --frameworks-folder adapters --only ranks=1 >log 2>err || fail "$one: $(cat log err)"
done
sed 's/beside: \[{study: scaling, figure: Efficiency, panel: data}.*/beside: [{study: few, figure: Efficiency}, {study: model, figure: Efficiency, stands_in: true}]/' files/paper.yaml >files/new.yaml
timeout 100 "$CONVOY" study files/new.yaml --out part --report >log 2>err || fail "stands_in: $(cat log err)"
has '| [Weak scaling](#weak-scaling) | 2 | in full |'
has 'need more than the'
has 'of this machine; a figure beside it has predictions of a larger node.'
sed 's/, stands_in: true//' files/new.yaml >files/less.yaml
timeout 100 "$CONVOY" study files/less.yaml --out part --report >log 2>err || fail "no stands_in: $(cat log err)"
has '| [Weak scaling](#weak-scaling) | 2 | in part |'
timeout 100 "$CONVOY" study files/scaling.yaml --out own/scaling --frameworks-folder adapters --only framework=convoy >log 2>err || fail "--only framework: $(cat log err)"
study --out own --report || fail "--report without a framework: $(cat log err)"
page=own/009-paper.md
has '**Here:** in part. 1 of its 2 figures and tables have no results yet. It has no results of other.'

# A case that takes long is measured once; one that fails leaves a gap with its reason.
sed 's/, "10"]/, "10", "1.2"]/' adapters/convoy.yaml >new && mv new adapters/convoy.yaml
sed 's/repeats: 2/repeats: 2\n    once: 1/; s/ranks: \[1, 2, 512\]/ranks: [1]/' files/scaling.yaml >once.yaml
timeout 100 "$CONVOY" study once.yaml --out once --frameworks-folder adapters >log 2>err || fail "once: $(cat log err)"
grep -q '^done: 3 measurements: 3 now' log || fail "a slow case is repeated: $(cat log)"
touch fails-other
sed 's/ranks: \[1, 2, 512\]/ranks: [1]/' files/scaling.yaml >gap.yaml
timeout 100 "$CONVOY" study gap.yaml --out gap --frameworks-folder adapters >log 2>err || fail "gap: $(cat log err)"
contains gap/report.html 'failed</td>' || fail "the gap has no reason"
rm fails-other

# Mistakes.
study --only ranks=1 && fail "--only is taken"
grep -q 'is a publication with several studies; --only, --nodes and --job-scripts are for one: convoy study scaling' err || fail "--only: $(cat err)"
refuses() { # SED TEXT
    sed "$1" files/paper.yaml >files/bad.yaml
    timeout 100 "$CONVOY" study files/bad.yaml --out all --frameworks-folder adapters >log 2>err && fail "$1 is taken"
    grep -q "$2" err || fail "$1: $(cat err)"
}
refuses 's/figure: Efficiency/figure: Efficency/' "has no figure 'Efficency'"
refuses 's/experiment: weak/experiment: strong/' "has no experiment 'strong'"
refuses 's/study: scaling/study: nothing/' 'names the study nothing: convoy knows none of this name, and there is no files/nothing.yaml'
refuses 's/^page: .*/page: a\/b/' 'is a name, without a folder'
refuses 's/, needs: a GPU//' 'has nothing beside it: write beside, needs or text'
refuses 's/figure: Efficiency, panel: data/panel: data/' 'expected a map with study and either figure or experiment'
refuses 's/plots: 2/plots: two/' 'plots'

# The publications that convoy knows name studies, figures and experiments that exist; nothing has been measured.
for study in "$CONVOY_SOURCE"/studies/*.yaml; do
    name=$(basename "$study" .yaml)
    mkdir -p "shipped/$name"
    cp "$study" "shipped/$name/study.yaml"
    : >"shipped/$name/results.jsonl"
done
plots=0
for name in stony-brook cug cineca ohio-state tacc best-settings; do
    timeout 60 "$CONVOY" study $name --report --out shipped >log 2>err || fail "$name: $(cat log err)"
done
for page in shipped/0*.md; do
    has ', 0 have a counterpart in full, 0 in part, '
    plots=$((plots + $(sed -n 's/^Of \([0-9]*\) plots, .*/\1/p' "$page")))
done
[ $plots = 41 ] || fail "the publications have $plots plots, expected 41"

timeout 60 "$CONVOY" study cinica >log 2>err && fail "an unknown name is taken"
grep -q "did you mean 'cineca'" err || fail "no hint: $(cat err)"
exit $failed
