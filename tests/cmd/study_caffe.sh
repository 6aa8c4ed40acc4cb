#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# study_caffe.sh: the framework caffe of studies: its networks have convoy's number of weights; the times that `caffe time`
# prints become images/s; a command that is not there, is something else, or fails is named. CONVOY_TEST_CAFFE names the
# command of Caffe 1.0, which then also times a network; a script stands for it otherwise.
. "$CONVOY_SOURCE/tests/shell.inc"
python=${CONVOY_TEST_PYTHON:-python3}
"$python" -c 'import json' 2>/dev/null || { echo "skipped: no $python"; exit 77; }
run="$python $CONVOY_SOURCE/frameworks/run_caffe.py"
export CONVOY_PYTHON="$python" PYTHONDONTWRITEBYTECODE=1
weights() { sed -n 's/^ *weights *//p' "$1"; }
"$CONVOY" info | grep -q '^protobuf-c *yes' && for net in caffenet googlenet cifar-convnet; do
    $run --net $net --batch 2 --write net.prototxt || fail "$net is not written"
    "$CONVOY" plan net.prototxt >written 2>&1 && "$CONVOY" plan $net --batch 2 >own 2>&1 || fail "$net: $(cat written)"
    [ -n "$(weights own)" ] && [ "$(weights written)" = "$(weights own)" ] || fail "$net has other weights than convoy's: $(weights written)"
done

cat >caffe <<'Y'
#!/bin/sh
case "$1" in
--version) echo 'caffe version 1.0.0' ;;
time)
    [ "$2" = -model ] && grep -q '"InnerProduct"' "$3" && [ "$4" = -iterations ] || exit 2
    case $FAKE in
    fails) echo 'F1130 12:00:00 blob.cpp:33] Check failed: out of memory' >&2; exit 134 ;;
    other) exit 0 ;;
    esac
    echo 'I1130 caffe.cpp:410] Average Forward pass: 100.5 ms.' >&2
    echo 'I1130 caffe.cpp:412] Average Backward pass: 300.25 ms.' >&2
    [ "$OMP_NUM_THREADS" = 1 ] || exit 3 ;;
esac
Y
chmod +x caffe
cat >study.yaml <<'Y'
title: Caffe
experiments:
  speed: {model: [caffenet, resnet-50], batch: 8, mode: [forward, forward-backward, train], threads: 1, framework: caffe, repeats: 1, seconds: 1}
Y
export CONVOY_CAFFE="$work/caffe" FAKE=
study() { timeout 60 "$CONVOY" study study.yaml "$@" >log 2>&1 || fail "study $*: $(cat log)"; }
study --out out
contains log 'caffe: Caffe 1.0.0' || fail "the version: $(cat log)"
contains log 'done: 6 measurements: 2 now, 0 before, 4 failed' || fail "the end: $(cat log)"
grep -q 'mode=forward .*"images_per_s": 79.6[0-9.]*, "ms_mean": 100.5, "steps": 3' out/results.jsonl || fail "forward: $(cat out/results.jsonl)"
grep -q 'mode=forward-backward .*"images_per_s": 19.9[0-9.]*, "ms_mean": 400.75, "steps": 3' out/results.jsonl || fail "forward-backward: $(cat out/results.jsonl)"
contains log "run_caffe: mode train in f32: \`caffe time\` measures forward and forward-backward in f32" || fail "train: $(cat log)"
contains log "invalid choice: 'resnet-50'" || fail "a network that it lacks: $(cat log)"
# refuses TEXT FAKE MORE: a measurement says this
refuses() { rm -rf again; FAKE=$2 study --out again --only model=caffenet --only mode=forward; contains log "$1" || fail "$2: $(cat log)"; }
refuses 'ends with code 134: F1130 12:00:00 blob.cpp:33] Check failed: out of memory' fails
refuses 'time printed no line "Average Forward pass: .. ms": is it Caffe 1.0?' other
CONVOY_CAFFE=$work/no-caffe
refuses "caffe is left out, because it is not here: run_caffe: $work/no-caffe: No such file or directory; CONVOY_CAFFE names the command of Caffe" none
contains log 'to install it: sh scripts/build_caffe.sh FOLDER' || fail "no line that installs it: $(cat log)"
CONVOY_CAFFE=$(command -v true)
refuses 'prints no "caffe version": it is no command of Caffe 1.0' none

[ -n "${CONVOY_TEST_CAFFE-}" ] || exit $failed
CONVOY_CAFFE=$CONVOY_TEST_CAFFE
for mode in forward forward-backward; do
    $run --net cifar-convnet --batch 4 --mode $mode --seconds 0.2 >real 2>&1 || fail "Caffe: $(cat real)"
    grep -q '"images_per_s": [0-9]' real || fail "Caffe: $(cat real)"
done
exit $failed
