#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich
# level: 2
# hdf5_sandbox.sh: a run whose HDF5 reader process crashes, hangs or is killed in the middle of an epoch names the file
# and what to do, or goes on without those samples; results are those of reading in place; a killed run leaves no reader
# process.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
"$CONVOY" info | grep -q '^hdf5 *yes' || { echo "skipped: this build has no HDF5"; exit 77; }
[ -d /proc/self/fd ] || { echo "skipped: there is no /proc"; exit 77; }
unset CONVOY_HDF5_READER # it lies beside libconvoy
shim=$(ls "$CONVOY_BUILD/tests/shim_hdf5"* 2>/dev/null | head -1)

# readers PID: the reader processes that process PID has started
readers() {
    for p in /proc/[0-9]*; do
        { read -r stat <"$p/stat"; } 2>/dev/null || continue
        case $stat in *"(convoy-hdf5) "[RSDT]" $1 "*) echo "${p#/proc/}" ;; esac
    done
}

# The set is two files of 32 samples. Their chunks are compressed, so that libhdf5 is asked where they are.
source='{format: synthetic, samples: 64, shape: [3, 8, 8], classes: 4}'
"$CONVOY" convert "$source" set --format hdf5 --parts 2 --format-options 'compress: 4' >log 2>&1 || fail "convert: $(cat log)"
sed "s|  train: .*|  train: set|" job.yaml >set.yaml

# ---- the same results ----
"$CONVOY" train set.yaml --out here --set data.sandbox=false >log 2>&1 || fail "in place: $(cat log)"
"$CONVOY" train set.yaml --out there --set data.sandbox=true >log 2>&1 || fail "in a process: $(cat log)"
"$CONVOY" train set.yaml --out auto >log 2>&1 || fail "auto: $(cat log)"
for run in there auto; do
    same_tensors here/checkpoints/step-00000006/weights.safetensors $run/checkpoints/step-00000006/weights.safetensors || fail "$run has other weights"
done

# ---- the key ----
refused 'data.sandbox is "maybe", expected auto, true or false' "$CONVOY" train set.yaml --out bad --set data.sandbox=maybe
export CONVOY_HDF5_READER=none
refused '`sandbox: false` reads without one' "$CONVOY" train set.yaml --out bad --set data.sandbox=true
"$CONVOY" train set.yaml --out none >log 2>&1 || fail "auto without a reader process: $(cat log)"
contains log 'is read without a process of its own for libhdf5' && contains log 'CONVOY_HDF5_READER is none' || fail "auto says nothing: $(cat log)"
"$CONVOY" info | grep -q '^hdf5-reader *none: CONVOY_HDF5_READER is none' || fail "info: $("$CONVOY" info)"
unset CONVOY_HDF5_READER
"$CONVOY" info | grep -q '^hdf5-reader */.*convoy-hdf5$' || fail "info: $("$CONVOY" info)"

# ---- faults ----
if [ -n "$shim" ]; then
    export LD_PRELOAD="$shim" SHIM_HDF5_FILE=convoy-00001-of-00002.h5 SHIM_HDF5_FAULT=SIGSEGV
    crash='signal 11'
    refused "$crash" "$CONVOY" train set.yaml --out crash
    contains err 'convoy-00001-of-00002.h5, row ' && contains err 'leave it out' && contains err 'data.on_bad_sample: skip' || fail "crash: $(cat err)"
    refused "$crash" $MPIEXEC_N 2 "$CONVOY" train set.yaml --out crash2
    contains err 'convoy-00001-of-00002.h5, row ' || fail "crash on two ranks: $(cat err)"
    refused "$crash" "$CONVOY" convert set copy --format tfrecord
    refused "$crash" "$CONVOY" test auto --data set
    refused "$crash" "$CONVOY" predict auto --data set --out predicted.csv
    $MPIEXEC_N 2 "$CONVOY" train set.yaml --out skip --set data.on_bad_sample=skip >log 2>&1 || fail "skip: $(cat log)"
    contains log 'convoy-00001-of-00002.h5' || fail "skip does not name the file: $(cat log)"
    SHIM_HDF5_FAULT=SIGABRT refused 'signal 6' "$CONVOY" train set.yaml --out abort
    SHIM_HDF5_FAULT=exit refused 'exit code 7' "$CONVOY" train set.yaml --out exit
    SHIM_HDF5_FAULT=SIGKILL refused 'was killed by signal 9' "$CONVOY" train set.yaml --out killed
    SHIM_HDF5_FAULT=hang refused 'took more than 1 s of processor time' "$CONVOY" train set.yaml --out hang --set data.train='{path: set, sandbox_limit: 1}'
    unset LD_PRELOAD SHIM_HDF5_FILE SHIM_HDF5_FAULT
fi

# ---- a run that is killed, and a reader that is killed ----
sed "s|  train: set|  train: {path: set, cache_mb: 1}|; s|epochs: 2|epochs: 100000|; s|every: 2 steps|every: 1000000 steps|" set.yaml >long.yaml
"$CONVOY" train long.yaml --out long >log 2>&1 &
run=$!
reader=
for i in $(seq 100); do
    reader=$(readers $run | head -1)
    [ -n "$reader" ] && grep -q 'epoch' log && break
    sleep 0.1
done
[ -n "$reader" ] || fail "a run has no reader process: $(cat log)"
kill -9 "$reader"
sleep 0.5
kill -0 $run 2>/dev/null || fail "the run ended with its reader: $(cat log)"
kill -9 $run
wait $run 2>/dev/null
for i in $(seq 100); do
    left=
    for p in /proc/[0-9]*; do
        { tr '\0' ' ' <"$p/cmdline"; } 2>/dev/null | grep -q "^convoy-hdf5 [^ ]* $run \$" && left=$p
    done
    [ -z "$left" ] && break
    sleep 0.1
done
[ -z "$left" ] || fail "a killed run left its reader process $left"
exit $failed
