#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# device.sh: the key `device` and --device on a GPU that is emulated: which device a rank takes, what the plan, the log
# and the run say of it, what is refused in one sentence, and that a run goes on where there is none.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
export CONVOY_WISDOM=off
unset CUDA_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES HIP_VISIBLE_DEVICES GPU_DEVICE_ORDINAL ZE_AFFINITY_MASK ONEAPI_DEVICE_SELECTOR
E=$CONVOY_EMULATED
# gpu SETUP WORDS..: the command on emulated devices; gpus N SETUP WORDS..: N ranks of it
gpu() { setup=$1; shift; CVY_EMULATED=$setup "$E" "$@"; }
gpus() { n=$1 setup=$2; shift 2; CVY_EMULATED=$setup $MPIEXEC_N "$n" "$E" "$@"; }
# says FILE TEXT WHAT
says() { contains "$1" "$2" || fail "$3: $(cat "$1")"; }
data='{format: synthetic, samples: 64, shape: [3, 8, 8], classes: 4}'

# ---- names ----
refused 'there is no device "gpu": auto takes a GPU if a driver finds one; this build of convoy has auto,' "$CONVOY" train job.yaml --device gpu
refused 'there is no device "cpu": the processor is "host"' "$CONVOY" plan job.yaml --device cpu
refused 'there is no device "hots"; did you mean "host"?' "$CONVOY" bench --model lenet --device hots
refused 'host has no number' "$CONVOY" train job.yaml --device host:0
refused 'expected a number after the colon, as in "opencl:0"' "$CONVOY" train job.yaml --device opencl:first
refused "--device is '', expected auto|host" "$CONVOY" train job.yaml --device ''
refused "--device is 'opencl:', expected auto|host" "$CONVOY" train job.yaml --device opencl:
refused 'there is no device "gpu"' "$CONVOY" test nothing --device gpu
sed 's/^train:/device: emulatd\n&/' job.yaml >wrong.yaml
refused 'wrong.yaml:11:9: there is no device "emulatd"; did you mean "emulated"?' "$E" train wrong.yaml
"$CONVOY" train job.yaml --out host --progress none --device host >log 2>&1 || fail "no training on the host: $(cat log)"
grep -q '^device:' log && fail "the host is named as a device: $(cat log)"

# ---- a training ----
gpu '' train job.yaml --out run --progress none --set device=emulated >log 2>&1 || fail "no training on the device: $(cat log)"
says log 'device: emulated:0: emulated device 0' "the log does not name the device"
says run/job.resolved.yaml 'device: emulated' "the resolved job has no device"
says run/plan.json '"device": "emulated:0"' "the plan has no device"
losses() { sed -n 's/.*"train_loss": *\([-0-9.]*\).*/\1/p' "$1/metrics.jsonl" | awk '{ printf "%.3f ", $1 }'; }
[ "$(losses run)" = "$(losses host)" ] || fail "losses on the device: $(losses run), on the host: $(losses host)"
gpu '' test run --data "$data" --device emulated >log 2>&1 || fail "no test on the device: $(cat log)"
"$CONVOY" test run --data "$data" >log 2>&1 || fail "a network of a device is not tested on the host: $(cat log)"
gpu '' predict run --data "$data" --device emulated --out out.csv >log 2>&1 || fail "no predictions on the device: $(cat log)"

cat >rows.yaml <<'END'
model: {layers: [{embedding: {rows: 2, channels: 2}}, {fc: {channels: 4}}]}
data: {train: {format: synthetic, samples: 64, shape: [3], classes: 4}}
train: {batch: 16, epochs: 1, optimizer: {name: sgd, lr: 0.01}}
END
gpu '' train rows.yaml --out rows --progress none --device emulated >log 2>&1 && fail "indices of no row train"
says log 'and the same job with --device host names the sample' "the message does not say how to find the sample"

# ---- it goes on elsewhere ----
"$CONVOY" train job.yaml --out run --resume --progress none --set train.epochs=3 >log 2>&1 || fail "it does not go on on the host: $(cat log)"
says log "the checkpoint's plan was made on emulated:0, and this run computes on host: kernels are chosen anew" "no word on the kernels"
gpu '' train job.yaml --out host --resume --progress none --set train.epochs=3 --device emulated >log 2>&1 || fail "it does not go on on the device: $(cat log)"
says log "the checkpoint's plan was made on host, and this run computes on emulated:0" "no word on the kernels"
[ "$(losses run)" = "$(losses host)" ] || fail "losses after a change of the device: $(losses run), $(losses host)"
gpu '' plan job.yaml --format json --device emulated >plan.json
refused 'plan.json: the plan was made on emulated:0, and this run computes on host' "$CONVOY" train job.yaml --plan plan.json

# ---- what is measured and drawn ----
gpu '' train job.yaml --out traced --progress none --device emulated --set log.trace=trace.json >log 2>&1 || fail "no trace: $(cat log)"
says trace.json '"rank 0 on emulated device 0"' "the trace does not name the device"
says traced/report.html 'computed by emulated device 0' "the page of the run does not name the device"
gpu '' bench job.yaml --steps 2 --device emulated --json >log 2>&1 || fail "no bench: $(cat log)"
says log '"device": "emulated:0 emulated device 0"' "bench does not name the device"
# the emulation of a product of matrices takes its time, which is not the time of a launch
sed -n 's/.*"peak_gflop_per_s": *\([0-9.]*\).*/\1/p' log | awk '{ exit !($1 > 0 && $1 < 1000) }' || fail "bench compares with another peak: $(cat log)"
"$CONVOY" bench job.yaml --steps 2 --json 2>/dev/null | grep -q '"device"' && fail "bench names the host as a device"

gpu '' train job.yaml --out wise --progress none --device emulated --planning measure --set plan.wisdom=wisdom.json >log 2>&1 || fail "kernels are not measured: $(cat log)"
says wisdom.json '"machine": "emulated emulated device 0, emulation of the tests; ' "measured times do not name the device"
"$CONVOY" plan job.yaml --set plan.wisdom=wisdom.json >log 2>&1; says log 'was measured on another machine or build (emulated emulated device 0' "the host takes the times of a device"

gpu '' selftest --only kernels,training --seconds 2 --device emulated >log 2>&1 || fail "selftest on the device: $(cat log)"
says log 'agree with the reference kernels (emulated device 0)' "selftest does not compare the kernels of the device"

# ---- what there is ----
gpu 'devices=2' info >log || fail "no info"
says log 'emulated:1    emulated device 1, emulation of the tests, 4 units, 8.0 GiB' "info does not list the second device"
gpu 'devices=0' info >log && says log 'no device: the setup of the test says so' "info does not say why there is no device"
gpu 'devices=2' info --json | tail -1 >log && says log '"emulated:0": "emulated device 0' "no device in the JSON"
gpu 'memory=1048576' plan job.yaml --device emulated >log || fail "no plan: $(cat log)"
says log 'memory of this rank on emulated:0, bytes' "the plan does not name the device"
awk '/^total|^  total/ { total = $2 } /free on the device now/ { free = $NF } /left on the device/ { left = $NF }
    function number(x) { gsub(/,/, "", x); return x + 0 }
    END { exit !(number(free) == 1048576 && number(left) == number(free) - number(total)) }' log || fail "the bytes do not add up: $(cat log)"
gpus 4 'devices=2' doctor --max 4KiB --seconds 2 >log 2>&1 || fail "no doctor: $(cat log)"
says log 'device emulated:1 emulated device 1' "doctor does not list the devices"
says log 'ranks and 2 GPUs: with `device: auto` several ranks compute on one GPU' "doctor does not compare ranks and devices"

# ---- which rank takes which device ----
gpus 3 'devices=2' train job.yaml --out three --progress none --device emulated >log 2>&1 || fail "no training of 3 ranks on 2 devices: $(cat log)"
says log 'compute on one device, in turns, and share its memory: ranks 0, 2 on emulated:0 (emulated device 0); rank 1 on emulated:1 (emulated device 1): start one rank for each device (2 there)' "the ranks of the devices are not named"
gpus 2 'devices=2' train job.yaml --out two --progress none --device emulated >log 2>&1 || fail "no training of 2 ranks on 2 devices: $(cat log)"
grep -q 'on one device' log && fail "each rank has a device, and a warning: $(cat log)"
gpus 2 'devices=2' train job.yaml --out same --progress none --device emulated:1 >log 2>&1 || fail "no training of 2 ranks on one device: $(cat log)"
says log 'ranks 0, 1 on emulated:1 (emulated device 1): start one rank for each device (2 there), and leave out the number' "two ranks on one device"
gpu 'devices=2' train job.yaml --out auto --progress none --device auto >log 2>&1 && says log 'device: emulated:0' "auto does not take a GPU"
gpu 'devices=0' train job.yaml --out auto2 --progress none --device auto >log 2>&1 || fail "auto needs a GPU: $(cat log)"
says log 'warning: device: auto found no GPU, so the host computes' "auto does not say that it takes the host"
cat >sweep.yaml <<'END'
job: job.yaml
space: {train.optimizer.lr: [0.01, 0.02]}
metric: val_accuracy
END
gpus 2 'devices=2' sweep sweep.yaml --out sweep --device emulated >log 2>&1 || fail "no search on devices: $(cat log)"
[ "$(cat sweep/trial-*/plan.json | grep -o '"device": "emulated:[01]"' | sort -u | wc -l)" = 2 ] || fail "the groups of a search do not share out the devices: $(cat log)"
cat >each.sh <<'END'
#!/bin/sh
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" != 1 ] || export CVY_EMULATED=$ONE
exec "$@"
END
chmod +x each.sh
ONE=devices=0 $MPIEXEC_N 2 ./each.sh "$E" train job.yaml --out uneven --device auto >log 2>&1 && fail "ranks with and without a GPU train together"
says log 'rank 0 on node' "ranks with and without a GPU"
says log 'computes on emulated:0, and rank 1 on node' "ranks with and without a GPU"

# ---- what does not work ----
refused 'there is no device for emulated: the setup of the test says so' env CVY_EMULATED="devices=0" "$E" train job.yaml --device emulated
refused 'there is no device emulated:2: this process sees 2' env CVY_EMULATED="devices=2" "$E" train job.yaml --device emulated:2
refused 'the kernels of native work on the memory of the host, and this run is on emulated' env CVY_EMULATED="" "$E" train job.yaml --device emulated --set plan.kernels=native
refused 'are free there: a batch of about' env CVY_EMULATED="memory=40000" "$E" train job.yaml --device emulated
refused 'needs 73.9' env CVY_EMULATED="memory=4000" "$E" train job.yaml --device emulated
refused 'not even a batch of one sample fits' env CVY_EMULATED="memory=4000" "$E" train job.yaml --device emulated
gpu 'no_build=gpu_product' train job.yaml --out build --progress none --device emulated >log 2>&1 || fail "a kernel that does not compile ends the run: $(cat log)"
says log "gpu_product (f32), a source of kernels, does not compile for emulated device 0: error: use of undeclared identifier 'planted'; other kernels do its work, or the host" "the compiler's words"
says log 'calls of a step, so the host computes them, on copies of tensors' "what the host computes"
gpu 'no_build=gpu_product' plan job.yaml --explain --device emulated >log && says log "gpu_product (f32) does not compile for emulated device 0: error: use" "--explain does not say why"
says log 'staged: the host computes it' "--explain does not name what is staged"
[ "$(losses build)" = "$(losses two)" ] || fail "the host computes something else: $(losses build), $(losses two)"

# ---- a device that is lost ----
sed 's/epochs: 2/epochs: 10/' job.yaml >long.yaml
gpu 'lost_after=250' train long.yaml --out lost --progress none --device emulated >log 2>&1 && fail "the run goes on without its device"
says log 'convoy: error: emulated:0 on node' "the lost device"
says log 'emulated device 0 is lost; the checkpoint of step ' "the lost device"
says log ' is complete, and --resume continues from it' "the lost device"
says lost/STATUS 'failed step' "STATUS of a run that has lost its device"
ONE=lost_after=250 $MPIEXEC_N 2 ./each.sh "$E" train long.yaml --out lost2 --progress none --device emulated >log 2>&1 && fail "two ranks go on without a device"
says log 'rank 1: emulated:0 of rank 1 on node' "the rank that has lost its device"
gpu '' train long.yaml --out lost --resume --progress none --device emulated >log 2>&1 || fail "it does not resume: $(cat log)"
gpu '' train long.yaml --out whole --progress none --device emulated >log 2>&1 || fail "no long training: $(cat log)"
[ "$(losses lost)" = "$(losses whole)" ] || fail "losses after a lost device: $(losses lost), without: $(losses whole)"
exit $failed
