#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan
# seconds: 20
# level: 2
# netcdf_climate.sh: NetCDF files of netCDF4 and xarray, as climate archives have them, give the numbers that these
# packages read, to the bit; predictions for two months are one file with their times and attributes, for xarray; files
# of the classic formats are refused with the way to convert them.
# CONVOY_TEST_NETCDF names an interpreter with netCDF4, xarray and dask, by default python3. Without them the test is skipped.
. "$CONVOY_SOURCE/tests/shell.inc"
export PYTHONDONTWRITEBYTECODE=1
"$CONVOY" info | grep -q '^hdf5  *yes' || { echo "skipped: this build has no HDF5"; exit 77; }
python=${CONVOY_TEST_NETCDF:-python3}
"$python" -c 'import dask, netCDF4, xarray' 2>why || {
    echo "it needs netCDF4, xarray and dask (Debian: python3-netcdf4, python3-xarray, python3-dask): $python: $(tail -1 why)"
    exit 77
}
climate() { "$python" -W ignore "$CONVOY_SOURCE/tests/cmd/netcdf_climate.py" "$@"; }
climate make >log 2>&1 || { fail "the files cannot be made: $(tail -3 log)"; exit 1; }

"$CONVOY" convert '{path: "month*.nc", format: netcdf, x: [t, sst], y: rain, missing: -99}' months --format hdf5 --parts 1 >log 2>&1 || fail "convert: $(cat log)"
"$CONVOY" convert '{path: station.nc, x: wind, missing: -1}' station --format hdf5 --parts 1 >log 2>&1 || fail "convert: $(cat log)"
climate converted months >log 2>&1 || fail "convert gives other numbers: $(tail -3 log)"

cat >job.yaml <<END
model: {layers: [{conv: {channels: 4, kernel: 3, pad: 1}}, relu, {conv: {channels: 1, kernel: 3, pad: 1}}, {reshape: {name: rain, shape: [6, 4]}}]}
data:
  train: {path: "month*.nc", format: netcdf, x: [t, sst], y: rain, missing: mean}
  normalize: auto
  normalize_targets: auto
train: {batch: 4, epochs: 1, loss: mse, optimizer: {name: sgd, lr: 0.01}}
END
"$CONVOY" train job.yaml --threads 1 --out run >log 2>&1 || fail "train: $(cat log)"
names="format: netcdf, x: [t, sst], y: rain, missing: mean"
for data in "month*.nc" "[{path: month1.nc, $names}, {path: month2.nc, $names}]"; do
    "$CONVOY" predict run --threads 1 --data "$data" --out rain.nc --force >log 2>&1 || fail "predict for $data: $(cat log)"
    climate predicted rain.nc >log 2>&1 || fail "the predictions for $data: $(tail -3 log)"
    cat log
done

for file in classic1.nc classic2.nc classic3.nc; do
    refused "$file: is a classic NetCDF file, which is not an HDF5 file; convert it to NetCDF-4: nccopy -k nc4 IN OUT" "$CONVOY" inspect "{path: $file, x: v}"
    command -v nccopy >/dev/null || continue
    nccopy -k nc4 "$file" new.nc && "$CONVOY" inspect "{path: new.nc, x: v}" >log 2>&1 || fail "after nccopy: $(cat log)"
    grep -q "4 samples" log || fail "after nccopy: $(cat log)"
done
exit $failed
