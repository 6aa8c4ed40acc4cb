#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# seconds: 60
# level: 2
# coming_from.sh: the files and the commands of docs/guide/coming-from.md work as they stand there, for PyTorch and for Keras,
# print what the page says, and end with ONNX Runtime giving the outputs of `convoy predict`.
# CONVOY_TEST_PYTORCH names an interpreter with torch, onnx, onnxscript, onnxruntime and safetensors, CONVOY_TEST_KERAS
# one with tensorflow, keras, tf2onnx and onnxruntime. Without both the test is skipped.
. "$CONVOY_SOURCE/tests/shell.inc"
export CONVOY_SITE=off PYTHONDONTWRITEBYTECODE=1 TF_CPP_MIN_LOG_LEVEL=3
page=$CONVOY_SOURCE/docs/guide/coming-from.md
"$CONVOY" info | grep -q '^protobuf-c *yes' || { echo "this build reads no ONNX files: it has no protobuf-c"; exit 77; }

# part HEADING COMMANDS: the text under a heading of the second level ("": before the first one), as a script: files are
# written, and commands are run if COMMANDS is 1.
part() {
    awk -v heading="$1" -v commands="$2" '
        /^## / { here = substr($0, 4) }
        here != heading { next }
        match($0, /`[a-z_]+\.(py|yaml)`:$/) { file = substr($0, RSTART + 1, RLENGTH - 3) }
        /^```(python|yaml)$/ { if (file == "") { print "fail \"a listing has no name: line " NR "\"" } print "cat >" file " <<'\''END_OF_FILE'\''"; inside = "file"; next }
        /^```sh$/ { inside = "sh"; next }
        /^```text$/ { inside = "text"; next }
        /^```$/ { if (inside == "file") print "END_OF_FILE"; inside = file = ""; next }
        inside == "file" || (inside == "sh" && commands) { print }' "$page"
}
# printed HEADING: what the page says that the commands print.
printed() {
    awk -v heading="$1" '
        /^## / { here = substr($0, 4) }
        /^```/ { inside = here == heading && $0 == "```text"; next }
        inside' "$page"
}
without_numbers() { sed 's/[0-9][0-9.e-]*/N/g' "$@"; }

# try HEADING PYTHON: in a folder of its own.
try() {
    mkdir "$1" "$1/bin"
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$2" >"$1/bin/python"
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$MPIEXEC" >"$1/bin/mpiexec"
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$CONVOY" >"$1/bin/convoy"
    chmod +x "$1"/bin/*
    { echo 'set -e'; part '' 1; part PyTorch 0; part "$1" 1; } >"$1/script"
    (cd "$1" && PATH=$PWD/bin:$PATH && timeout 600 sh script >out 2>&1) || { fail "$1: $(tail -5 "$1/out")"; return; }
    without_numbers "$1/out" >"$1/out.masked"
    printed "$1" | without_numbers >"$1/page.masked"
    [ -s "$1/page.masked" ] || fail "$1: the page does not say what is printed"
    while read -r line; do
        contains "$1/out.masked" "$line" || fail "$1: the page has \"$line\", but it is not printed"
    done <"$1/page.masked"
    awk '/^accuracy / { a = $2 } END { exit !(a > 0.9 && a <= 1) }' "$1/out" || fail "$1: nothing is learnt: $(tail -3 "$1/out")"
    cat >"$1/compare.py" <<'END'
import numpy, onnxruntime
y = numpy.load("y.npy")
o = onnxruntime.InferenceSession("trained.onnx").run(None, {"x": numpy.load("test/x.npy")})[0]
assert y.shape == o.shape and abs(y - o).max() <= 1e-5 * abs(y).max(), (y.shape, o.shape, abs(y - o).max(), abs(y).max())
END
    (cd "$1" && "$CONVOY" predict runs/net --data test --out y.npy >out2 2>&1 && "$2" compare.py >>out2 2>&1) || fail "$1: ONNX Runtime gives other outputs: $(tail -1 "$1/out2")"
}

tried=
if [ -n "${CONVOY_TEST_PYTORCH-}" ] && "$CONVOY_TEST_PYTORCH" -c 'import torch, onnx, onnxscript, onnxruntime, safetensors' 2>why; then
    tried="$tried PyTorch"
    try PyTorch "$CONVOY_TEST_PYTORCH"
    contains PyTorch/out 'All keys matched' || fail "PyTorch does not take the weights: $(tail -2 PyTorch/out)"
    # The exporter's default folds batch norm away: convoy must say so.
    (cd PyTorch && sed 's/, optimize=False//; s/"net.onnx"/"folded.onnx"/' net.py >folded.py && "$CONVOY_TEST_PYTORCH" folded.py >folded.log 2>&1 &&
        "$CONVOY" train job.yaml --out folded --set 'model={onnx: folded.onnx}' --set train.epochs=0.1 >folded.log 2>&1) || fail "a folded network is not trained: $(tail -3 PyTorch/folded.log)"
    contains PyTorch/folded.log 'optimize=False' || fail "convoy does not say that batch norm is folded: $(cat PyTorch/folded.log)"
    (cd PyTorch && "$CONVOY" plan job.yaml >plan && contains plan bn_train && contains plan dropout) || fail "PyTorch: the file lacks layers: $(cat PyTorch/plan)"
fi
if [ -n "${CONVOY_TEST_KERAS-}" ] && "$CONVOY_TEST_KERAS" -c 'import tensorflow, keras, tf2onnx, onnxruntime' 2>why; then
    tried="$tried Keras"
    try 'Keras and TensorFlow' "$CONVOY_TEST_KERAS"
fi
[ -n "$tried" ] || { echo "it needs PyTorch or Keras: CONVOY_TEST_PYTORCH and CONVOY_TEST_KERAS name interpreters that have them"; [ ! -s why ] || tail -1 why; exit 77; }
echo "tried:$tried"
exit $failed
