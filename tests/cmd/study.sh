#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# seconds: 40
# level: 2
# study.sh: `convoy study`: cases of convoy and of a described framework, on one rank and two; a command that fails is
# kept; what is not installed is named; an interrupted study goes on without measuring anything twice; --retry; the page
# and the table; mistakes.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
export CONVOY_MPIEXEC="$work/launch"
printf '#!/bin/sh\nshift\nexec %s "$@"\n' "$MPIEXEC_N" >launch
chmod +x launch

mkdir adapters
cp "$CONVOY_SOURCE/frameworks/convoy.yaml" adapters
cat >peer.sh <<'Y'
batch=$1
[ "$batch" != 7 ] || { echo 'convoy: error: needs 68.10 GiB on this node, but 22.44 GiB are free' >&2; exit 1; }
[ "$batch" != 6 ] || { echo 'convoy: error: six is too many' >&2; exit 3; }
[ ! -e slow ] || sleep 60
echo noise
echo "{\"images_per_s\": $((batch * 10)), \"ms_median\": 5}"
Y
cat >adapters/peer.yaml <<'Y'
summary: a program that prints numbers
command: [sh, peer.sh, "{batch}", "{model}", "{threads}"]
version: [echo, peer 1.2]
Y
cat >adapters/absent.yaml <<'Y'
command: [no-such-program, "{batch}"]
version: [no-such-program, --version]
install: ask the author
Y
cat >study.yaml <<'Y'
title: A <small> study
question: Does it work?
published: tacc
experiments:
  speed:
    model: cifar-convnet
    batch: [4, 6]
    threads: 1
    framework: [convoy, peer, absent]
    repeats: 2
    seconds: 1
  ranks:
    model: cifar-convnet
    batch: 4
    ranks: [1, 2]
    threads: 1
    train.accumulate: [1, 2]
    repeats: 1
    seconds: 1
    oversubscribe: true
figures:
- {title: Speed, of: speed, x: batch, lines: framework, panels: model}
Y
study() { timeout 200 "$CONVOY" study study.yaml --out results --frameworks-folder adapters "$@" >log 2>err; }
lines() { wc -l <results/results.jsonl | tr -d ' '; }

study || fail "code $?: $(cat log err)"
grep -q '^peer: peer 1.2$' log || fail "no version of the peer: $(cat log)"
grep -q '^absent is left out, because it is not here: no-such-program: .*; to install it: ask the author$' log || fail "absent: $(cat log)"
grep -q 'batch=6 threads=1 framework=peer: failed: exit code 3: six is too many; [0-9]* more, about [0-9]* s$' log || fail "the failure is not named: $(cat log)"
grep -q '^done: 16 measurements: 10 now, 0 before, 2 failed, 4 left out$' log || fail "the end: $(cat log)"
[ "$(lines)" = 12 ] || fail "$(lines) results instead of 12"
grep -q 'ranks=2 threads=1 train.accumulate=2 framework=convoy", .*"ranks": 2, ' results/results.jsonl || fail "no result of two ranks: $(cat results/results.jsonl)"
for text in 'A &lt;small&gt; study' '<svg' 'What failed' 'six is too many' 'What others have published' 'intel-caffe'; do
    contains results/report.html "$text" || fail "report.html lacks: $text"
done
grep -q '^"speed","cifar-convnet","4","1","peer",40,40,40,5,5,5,2,"","peer 1.2",' results/results.csv || fail "results.csv: $(cat results/results.csv)"

# Only some cases; a value that no axis has.
study --out some --only batch=4 --only framework=peer || fail "--only: $(cat log err)"
grep -q '^done: [0-9]* measurements: 2 now, 0 before, 0 failed, ' log || fail "--only: $(cat log)"
grep -v batch=4 some/results.jsonl | grep -q . && fail "--only batch=4 measures others: $(cat some/results.jsonl)"
study --out some --only batch=5 && fail "--only batch=5 is taken"
grep -q 'no experiment has the value 5 on the axis batch' err || fail "--only batch=5: $(cat err)"
study --out once --once --only experiment=speed --only batch=4 --only framework=peer || fail "--once: $(cat log err)"
grep -q '^done: 1 measurements\{0,1\}: 1 now, 0 before, 0 failed, ' log || fail "--once: $(cat log)"
study --out once --only experiment=speeds && fail "--only experiment=speeds is taken"
grep -q 'no experiment has the value speeds on the axis experiment' err || fail "--only experiment=speeds: $(cat err)"

# Nothing is measured twice; failures are tried again if asked.
study && grep -q '^done: 16 measurements: 0 now, 12 before, 0 failed, 4 left out$' log || fail "again: $(cat log err)"
study --retry && grep -q '^done: 16 measurements: 0 now, 10 before, 2 failed, 4 left out$' log || fail "--retry: $(cat log err)"

# What does not fit is not a failure.
sed 's/batch: \[4, 6\]/batch: [4, 7]/' study.yaml >large.yaml
"$CONVOY" study large.yaml --out large --frameworks peer --frameworks-folder adapters --only batch=7 --quiet >log 2>&1 || fail "large: $(cat log)"
contains large/report.html '>does not fit</td>' || fail "what does not fit is not marked"

# The page says what limits two ranks, and that the peer does not tell what it computes.
for text in 'What limits more ranks' 'of the efficiency' 'slowest rank</td>'; do
    contains results/report.html "$text" || fail "report.html lacks: $text"
done
contains results/report.html 'Equal work' && fail "the peer tells no parameters, but there is a table of equal work"
[ -s results/figures/speed-cifar-convnet.svg ] || fail "no figure: $(ls results results/figures)"
grep -q '^cifar-convnet & 4 & 1 & peer & 40 (40--40) ' results/tables.tex || fail "tables.tex: $(cat results/tables.tex)"

# Jobs of the study, paths that the user gives, files that are prepared, curves and a target.
cp "$CONVOY_SOURCE/frameworks/convoy-train.yaml" adapters
cat >adapters/counts.yaml <<'Y'
command: [sh, counts.sh, "{data}", "{repeat}"]
version: [echo, counts 1]
Y
cat >counts.sh <<'Y'
[ "$(cat "$1")" = prepared ] || { echo "no $1" >&2; exit 1; }
echo "{\"images_per_s\": 1, \"parameters\": 7, \"curve\": {\"epoch\": [1, 2, 3], \"seconds\": [10, 20, 30], \"val_accuracy\": [0.5, 0.$((6 + $2)), 0.9]}}"
Y
cat >curves.yaml <<'Y'
title: Curves
prepare:
  data/made: [sh, -c, "echo ${word} >{target}"]
  data/left-out: [sh, -c, "echo ${nobody} >{target}"]
  data/fails: [sh, -c, "echo part >{target}; exit 3"]
jobs:
  small:
    model: {layers: [{fc: {channels: 4}}]}
    data: {train: {format: synthetic, samples: 64, shape: [3, 8, 8], classes: 4}, val: 25%}
    train: {batch: 16, epochs: 2, metrics: [accuracy]}
  other: {model: lenet, data: {train: "${nobody}"}, train: {epochs: 1}}
experiments:
  training:
    job: [small, other]
    threads: 1
    train.epochs: 3
    framework: convoy-train
    repeats: 1
    show: seconds_per_epoch
    show_label: s per epoch
  counting:
    data: "${out}/data/made"
    framework: counts
    repeats: 3
    target: val_accuracy >= 0.8
    show: target_seconds
    show_label: s to 0.8
figures:
- {title: Loss, of: training, x: curve.epoch, x_label: epoch, y: curve.train_loss, y_label: loss, lines: job}
- {title: All, of: counting, x: curve.seconds, x_label: seconds, y: curve, y_label: score}
Y
# What has started the study may ignore SIGCHLD; exit codes count nevertheless.
no_child=
env --ignore-signal=CHLD true 2>/dev/null && no_child='env --ignore-signal=CHLD'
timeout 200 $no_child "$CONVOY" study curves.yaml --out curves --frameworks-folder adapters --data word=prepared >log 2>err || fail "curves: code $?: $(cat log err)"
grep -q 'data/left-out is not made: the study needs the path of nobody: --data nobody=PATH$' log || fail "prepare: $(cat log)"
grep -q 'data/fails is not made: exit code 3: ' log || fail "a command that fails: $(cat log)"
grep -q 'job=other .*: left out: the job other is not in the study, or needs a path: --data$' log || fail "job without a path: $(cat log)"
grep -q '"epochs": 3, ' curves/results.jsonl || fail "train.epochs is not 3: $(cat curves/results.jsonl)"
[ ! -e curves/scratch ] || fail "the run is left in scratch"
# Repeat 1 reaches 0.8 in the third epoch, 2 and 3 in the second one.
grep -q '^"counting",.*,20,20,30,' curves/results.csv || fail "target: $(cat curves/results.csv)"
[ -s curves/figures/loss.svg ] && [ -s curves/figures/all.svg ] || fail "no curves: $(ls curves/figures)"
grep -q '<svg xmlns="http://www.w3.org/2000/svg" .*<style>' curves/figures/loss.svg || fail "loss.svg stands not alone"

# Stopped in the middle of a measurement, killed in another one, and continued: each line once.
rm -rf results
touch slow
study --frameworks peer &
pid=$!
i=0
until [ -s results/study.yaml ] && grep -q '^peer: ' log; do i=$((i + 1)); [ $i -lt 300 ] || fail "it does not start: $(cat log err)"; sleep 0.1; done
sleep 0.5
kill -TERM "$(pgrep -P $pid | head -n 1)" 2>/dev/null || kill -TERM $pid
wait $pid
code=$?
rm slow
[ $code = 75 ] || fail "a stopped study ends with code $code: $(cat log err)"
grep -q '^all results are saved; the same command continues$' log || fail "a stopped study says: $(cat log)"
study --frameworks peer || fail "it does not go on: $(cat log err)"
printf '{"key": "cut o' >>results/results.jsonl
study --frameworks peer || fail "after a cut line: $(cat log err)"
[ "$(sed 's/, "experiment".*//' results/results.jsonl | sort | uniq -d)" = "" ] || fail "measured twice: $(cat results/results.jsonl)"
grep -q cut results/results.jsonl && fail "the cut line is still there"

# What has moved between two folders.
sed 's/batch \* 10/batch * 20/' peer.sh >faster.sh && mv faster.sh peer.sh
study --out faster --only framework=peer || fail "a faster peer: $(cat log err)"
"$CONVOY" report results faster --out moved.html >log 2>&1 || fail "report of two studies: $(cat log)"
grep -q '^1 case moved beyond the noise: moved.html$' log || fail "report of two studies: $(cat log)"
contains moved.html '<td>2.000</td><td>moved</td>' || fail "moved.html does not show what moved"
"$CONVOY" report results curves >log 2>&1 && fail "studies without a common case are compared"
grep -q 'have no case in common' log || fail "report of two studies: $(cat log)"

# The page alone, and mistakes.
rm results/report.html
"$CONVOY" study results --report >log && [ -s results/report.html ] || fail "--report: $(cat log)"
echo '# changed' >>study.yaml
study && fail "a changed file is taken"
grep -q 'results of another study, or of an earlier version of study.yaml' err || fail "changed file: $(cat err)"
expects() { text=$1; shift; "$CONVOY" study "$@" >log 2>&1 && fail "study $* ends well"; grep -q "$text" log || fail "study $*: $(cat log)"; }
expects "no study 'node-thruput', did you mean 'node-throughput'" node-thruput
expects "there is no framework 'pytroch' in .*, did you mean 'pytorch'?" study.yaml --out other --frameworks pytroch
expects 'no-file.yaml cannot be read' no-file.yaml
sed 's/batch: \[4, 6\]/bacth: [4, 6]/' study.yaml >wrong.yaml
expects "wrong.yaml:7:5: there is no axis 'bacth', did you mean 'batch'" wrong.yaml

# The studies that the command has, and the descriptions of frameworks, can be read.
names=$("$CONVOY" study --help | tr '\n' ' ' | sed 's/.*Built-in studies: //; s/\. .*//; s/,//g')
[ "$(echo $names | wc -w)" -ge 12 ] || fail "studies in --help: $names"
for name in $names; do
    timeout 60 "$CONVOY" study "$name" --quick --frameworks peer --frameworks-folder adapters --out "built-in/$name" --quiet >log 2>&1 || fail "study $name: $(cat log)"
done
for file in "$CONVOY_SOURCE"/frameworks/*.yaml; do
    name=$(basename "$file" .yaml)
    echo 'title: T' >"one-$name.yaml"
    echo "experiments: {e: {model: no-such-network, batch: 1, framework: $name, repeats: 1}}" >>"one-$name.yaml"
    CONVOY_PYTHON=false timeout 100 "$CONVOY" study "one-$name.yaml" --frameworks-folder "$CONVOY_SOURCE/frameworks" --quiet >log 2>&1 || fail "framework $name: $(cat log)"
    grep -q '^done: 1 measurements: 0 now, 0 before, [01] failed, [01] left out$' log || fail "framework $name: $(cat log)"
done
exit $failed
