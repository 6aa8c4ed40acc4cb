#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# seconds: 6
# splits_formats.sh: samples of folders and lists of pictures, LMDB and .npz files stay together by groups, also in all
# trials of a sweep; the last samples of NetCDF files are those of the last times.
. "$CONVOY_SOURCE/tests/shell.inc"
export CONVOY_SITE=off

cat >job.yaml <<'END'
model: {layers: [{fc: {channels: 2}}]}
data: {train: pictures, val: {share: 20%, group: {path: "([0-9])(\\.png)?$"}}}
train: {batch: 8, epochs: 1, loss: softmax_cross_entropy, optimizer: {name: sgd, lr: 0.01}}
END
# said TEXT OPTION...: the text must be in the log.
said() {
    text=$1
    shift
    rm -rf run
    "$CONVOY" train job.yaml --threads 1 --out run --progress none "$@" >log 2>&1 || fail "$*: $(tail -1 log)"
    contains log "$text" || fail "$*: $(grep data.val log)"
}

if "$CONVOY" convert '{format: pictures, samples: 40, classes: 2, size: 8, noise: 0}' pictures --format folder >log 2>&1; then
    ten='data.val: 10 groups by path: 2 in validation with 8 samples (20.0%), 8 in training with 32'
    said "$ten"
    find pictures -name '*.png' | sort | sed 's,\(.*/\)\([^/]*\)/\([^/]*\)$,\1\2/\3 \2,' >pictures.txt
    said "$ten" --set data.train=pictures.txt
    { echo path,class; sed 's/ /,/' pictures.txt; } >pictures.csv
    said "$ten" --set 'data.train={path: pictures.csv, format: list}'
    refused 'group them by their paths' "$CONVOY" train job.yaml --out run --set 'data.val={share: 20%, group: site}'
    if "$CONVOY" convert pictures database --format lmdb >log 2>&1; then
        said "$ten" --set data.train=database
    else
        echo "LMDB was not tried: $(tail -1 log)"
    fi
else
    echo "pictures were not tried: $(tail -1 log)"
fi

if "${PYTHON:=python3}" -c 'import numpy' 2>/dev/null; then
    "$PYTHON" - <<'END'
import numpy as np
i = np.arange(40)
np.savez('set.npz', x=np.random.default_rng(0).normal(size=(40, 3)), y=i % 2, patient=np.array(['P%d' % (k % 10) for k in i]))
END
    by='data.val={share: 20%, group: patient}'
    said 'data.val: 10 groups by patient: 2 in validation with 8 samples' --set data.train=set.npz --set "$by"
    ! contains log 'not read' || fail "the groups are said not to be read: $(cat log)"
    loss=$(sed -n 's/.*val loss \([0-9.]*\).*/\1/p' log)
    cat >sweep.yaml <<'END'
job: job.yaml
space: {train.optimizer.lr: [0.01, 0.02]}
metric: val_loss
END
    "$CONVOY" sweep sweep.yaml --out sweep --threads 1 --set data.train=set.npz --set "$by" >log 2>&1 || fail "sweep: $(tail -2 log)"
    contains log "val_loss $loss after" || fail "a trial has another split than a run with val loss $loss: $(cat log)"
else
    echo "arrays were not tried: python3 has no numpy"
fi

if "$CONVOY" info | grep -q '^hdf5 *yes'; then
    of() { echo "{path: $CONVOY_SOURCE/tests/data/files/netcdf/$1, x: wind, y: rain${2-}}"; } # sky1.nc is after sky0.nc
    cat >job.yaml <<END
model: {layers: [{conv: {channels: 1, kernel: 1}}]}
data: {train: {sources: [$(of sky1.nc), $(of sky0.nc)]}, val: {last: 25%, gap: 1}}
train: {batch: 2, epochs: 1, loss: mse, optimizer: {name: sgd, lr: 1e-20}}
END
    said 'data.val: the last 2 of 8 samples (25.0%) are for validation, in the order of time, which is not that of the source, and 1 between'
    loss=$(sed -n 's/.*\(val loss [0-9.]*\).*/\1/p' log)
    said "$loss," --set "data.train=$(of sky0.nc)" --set "data.val=$(of sky1.nc ', range: "2:4"')"
else
    echo "NetCDF was not tried: this build has no HDF5"
fi
exit $failed
