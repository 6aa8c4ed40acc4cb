#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan
# onnx_export.sh: an exported ONNX file that is read back predicts the same bits as the run, and trains to the same
# weights, with the names of the run's variables; what cannot be written is refused, and an older file stays.
. "$CONVOY_SOURCE/tests/exchange/onnx.inc"

# ---- the same predictions, from each kind of source and with each operator set ----
"$CONVOY" predict run --data data --out run.npy >log 2>&1 || fail "predict fails: $(cat log)"
"$CONVOY" export run net.safetensors >log 2>&1 || fail "export of weights fails: $(cat log)"
"$CONVOY" export net.safetensors from-file.onnx --opset 21 >log 2>&1 || fail "export of a file fails: $(cat log)"
"$CONVOY" export run/checkpoints/step-00000002 from-set.onnx >log 2>&1 || fail "export of a checkpoint fails: $(cat log)"
cmp -s from-file.onnx net.onnx && cmp -s from-set.onnx net.onnx || fail "the file depends on where the network is from"
"$CONVOY" export net.onnx copy.onnx >log 2>&1 || fail "export of an ONNX file fails: $(cat log)"
"$CONVOY" export run float.onnx --float-input >log 2>&1 || fail "export with a float input fails: $(cat log)"
cmp -s float.onnx net.onnx && fail "--float-input changes nothing"
"$CONVOY" export run old.onnx --opset 13 --outputs 'sum, classes' >log 2>&1 || fail "operator set 13: $(cat log)"
for file in net copy float; do
    rm -f "$file.npy"
    "$CONVOY" predict $file.onnx --data data --out $file.npy >log 2>&1 || fail "predict $file.onnx: $(cat log)"
    cmp -s run.npy $file.npy || fail "$file.onnx predicts other numbers than the run"
done

# ---- the same training: no random augmentation, so that a step depends on the weights alone ----
"$CONVOY" train job.yaml --threads 1 --out again --set train.init=net.safetensors --set "data.augment=[]" >log 2>&1 ||
    fail "training from the weights fails: $(cat log)"
"$CONVOY" train job.yaml --threads 1 --out read --set 'model={onnx: net.onnx}' --set "data.augment=[]" >log 2>&1 ||
    fail "training from the ONNX file fails: $(cat log)"
for run in again read; do "$CONVOY" export $run $run.safetensors >log 2>&1 || fail "$run: $(cat log)"; done
names() { head -c 65536 "$1" | grep -ao '"xxh3:[^"]*": *"[0-9a-f]*"\|"crc32c:[^"]*": *"[0-9a-f]*"' | sort; }
[ "$(names again.safetensors | wc -l)" -ge 12 ] || fail "too few tensors: $(names again.safetensors)"
[ "$(names again.safetensors)" = "$(names read.safetensors)" ] ||
    fail "other weights after two steps: $(names again.safetensors) $(names read.safetensors)"

# ---- normalisation within channels, which ONNX has in several nodes ----
"$CONVOY" train job.yaml --threads 1 --out within --set 'model={layers: [{lrn_within: {size: 3, alpha: 0.1}}, {fc: {channels: 4}}]}' >log 2>&1 || fail "lrn_within: $(cat log)"
"$CONVOY" export within within.onnx >log 2>&1 || fail "export of lrn_within fails: $(cat log)"
for from in within within.onnx; do "$CONVOY" predict $from --data data --out $from.npy >log 2>&1 || fail "predict $from: $(cat log)"; done
cmp -s within.npy within.onnx.npy || fail "lrn_within is another when it is read back"

# ---- targets in their own units ----
mkdir numbers.data
cp data/x.npy numbers.data
seq 1003 7 9999999 | tr -d '\n' | head -c 192 | npy numbers.data/y.npy '<f4' '24, 2'
"$CONVOY" train job.yaml --threads 1 --out numbers --set 'model={layers: [{fc: {name: out, channels: 2}}]}' --set train.loss=mse \
    --set 'data.train={path: numbers.data}' --set data.normalize_targets=auto --set "data.augment=[]" >log 2>&1 || fail "regression fails: $(cat log)"
"$CONVOY" export numbers numbers.onnx >log 2>&1 || fail "export of a regression fails: $(cat log)"
for from in numbers numbers.onnx; do "$CONVOY" predict $from --data data --out $from.csv >log 2>&1 || fail "predict $from: $(cat log)"; done
cmp -s numbers.csv numbers.onnx.csv || fail "targets are in other units: $(head -n 1 numbers.csv) $(head -n 1 numbers.onnx.csv)"

# ---- what is not written ----
cp net.onnx before.onnx
refused 'net.onnx exists already: choose another name, or replace it with --force' "$CONVOY" export run net.onnx
for name in m.pt m.onxx m.txt m safetensors; do
    refused "$name: a network is written as FILE.safetensors" "$CONVOY" export run $name
    [ -e $name ] && fail "a refused export leaves $name"
done
refused 'operator set 12 of ONNX is not offered' "$CONVOY" export run other.onnx --opset 12
refused 'operator set 22 of ONNX is not offered' "$CONVOY" export run other.onnx --opset 22
refused 'are for a FILE.onnx' "$CONVOY" export run other.safetensors --opset 17
refused 'cannot' "$CONVOY" export run no-folder/net.onnx
refused 'no checkpoint' "$CONVOY" export run other.onnx --checkpoint step-7
[ -e other.onnx ] && fail "a refused export leaves a file"
mkdir folder.onnx && refused 'not a file that can be replaced' "$CONVOY" export run folder.onnx --force
( ulimit -f 1; trap '' XFSZ; refused 'net.onnx' "$CONVOY" export run net.onnx --force; exit $failed ) || failed=1
cmp -s net.onnx before.onnx || fail "an export that fails changes the older file"
ls | grep -q 'net.onnx.' && fail "a temporary file is left: $(ls)"
"$CONVOY" export run net.onnx --force --opset 17 >log 2>&1 || fail "--force: $(cat log)"
cmp -s net.onnx before.onnx && fail "--force does not replace the file"

# ---- the network of a file is timed ----
"$CONVOY" bench --model net.onnx --batch 4 --steps 1 --threads 1 --json >log 2>&1 || fail "bench: $(cat log)"
contains log '"model": "net.onnx"' || fail "bench does not name the file: $(cat log)"
"$CONVOY" time net.onnx --batch 4 --steps 1 --threads 1 >log 2>&1 || fail "time: $(cat log)"
"$CONVOY" plan net.onnx --batch 4 >log 2>&1 || fail "plan: $(cat log)"
contains log 'batch 4 over 1 rank' || fail "plan has no batch of 4: $(cat log)"
contains log 'net.onnx: the network has no loss' || fail "plan does not say that there is no loss: $(cat log)"
refused 'missing.onnx: cannot open' "$CONVOY" bench --model missing.onnx
refused 'net.onnx: the network of a file has no options' "$CONVOY" bench --model net.onnx --options 'filters: 3'

# ---- a layer of a user's library is named ----
if [ "$CONVOY_SANITIZE" = OFF ]; then
    "$CC" -std=c11 -shared -fPIC -I "$CONVOY_SOURCE/include" "$CONVOY_SOURCE/tests/extension/twist.c" -o twist.so || fail "twist.so does not compile"
    sed 's/^    - relu/    - twist: {name: bend, gain: 2}/' job.yaml >twist.yaml
    echo 'libraries: [twist.so]' >>twist.yaml
    "$CONVOY" train twist.yaml --threads 1 --out twist >log 2>&1 || fail "train with a library fails: $(cat log)"
    refused "layer bend (twist): it has no ONNX form" "$CONVOY" export twist other.onnx --job twist.yaml
    refused 'twist' "$CONVOY" export twist other.onnx
    [ -e other.onnx ] && fail "a refused network leaves a file"
fi
exit $failed
