#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan
# netcdf.sh: a network that is trained on NetCDF files writes its predictions as .nc and .h5 with the axes and coordinates
# of these files, and with the attributes of the target, in a .nc file also with its name and its axes; three ranks write the same bytes; ncdump, if it is there, reads
# the .nc file.
. "$CONVOY_SOURCE/tests/shell.inc"
"$CONVOY" info | grep -q '^hdf5  *yes' || { echo "skipped: this build has no HDF5"; exit 77; }
sky=$CONVOY_SOURCE/tests/data/files/netcdf

cat >job.yaml <<END
model: {layers: [{conv: {channels: 4, kernel: 3, pad: 1}}, relu, {conv: {name: rain, channels: 1, kernel: 3, pad: 1}}, {reshape: {shape: [3, 5]}}]}
data:
  train: {path: "$sky/sky*.nc", format: netcdf, x: [wind, pressure], y: rain, missing: mean}
  normalize: auto
  normalize_targets: auto
train: {batch: 4, epochs: 1, loss: mse, optimizer: {name: sgd, lr: 0.01}}
END
"$CONVOY" train job.yaml --threads 1 --out run >log 2>&1 || fail "train fails: $(cat log)"
"$CONVOY" predict run --threads 1 --data "$sky/sky1.nc" --out a.nc >log 2>&1 || fail "predict: $(cat log)"
# shellcheck disable=SC2086
$MPIEXEC_N 3 "$CONVOY" predict run --threads 1 --data "$sky/sky1.nc" --out b.nc >log 2>&1 || fail "on three ranks: $(cat log)"
cmp a.nc b.nc || fail "three ranks write other bytes"
"$CONVOY" predict run --threads 1 --data "$sky/sky1.nc" --out a.h5 --names >log 2>&1 || fail "predict to .h5: $(cat log)"

for file in a.nc a.h5; do
    "$CONVOY" inspect "{path: $file, x: nothing}" >log 2>&1 && fail "a data set that is not there is read"
    grep -q 'lat 3 float64, lon 5 float64' log || fail "no coordinates in $file: $(cat log)"
    grep -q '4x3x5 float32 (time, lat, lon), sample 4 [a-z0-9]* (time), time 4 float64' log || fail "axes of $file: $(cat log)"
done
# In NetCDF the variable has the name and the axes of the target, also one whose samples are not its first axis.
"$CONVOY" inspect '{path: a.nc, x: nothing}' >log 2>&1 || grep -q ' rain 4x3x5 float32 (time, lat, lon)' log || fail "not the name of the target: $(cat log)"
"$CONVOY" train job.yaml --threads 1 --out blow --set 'model={layers: [{conv: {name: out, channels: 2, kernel: 1}}]}' \
    --set "data.train={path: \"$sky/sky*.nc\", format: netcdf, x: pressure, y: wind, missing: mean}" >log 2>&1 || fail "train on wind: $(cat log)"
"$CONVOY" predict blow --threads 1 --data "$sky/sky1.nc" --out blow.nc >log 2>&1 || fail "predict wind: $(cat log)"
"$CONVOY" inspect '{path: blow.nc, x: nothing}' >log 2>&1 || grep -q ' wind 4x2x3x5 float32 (time, level, lat, lon)' log || fail "not the axes of the target: $(cat log)"

command -v ncdump >/dev/null || exit $failed
for file in a.nc a.h5; do
    ncdump -h $file >header 2>&1 || fail "ncdump fails: $(cat header)"
    for line in 'time = 4 ;' 'double time(time) ;' 'time:units = "hours since 2000-01-01 00:00:00" ;' \
        'time:calendar = "gregorian" ;' 'lat:standard_name = "latitude" ;' 'lon:long_name = "longitude of the grid" ;' \
        '(time, lat, lon) ;'; do
        grep -qF "$line" header || fail "$file has no line \"$line\": $(cat header)"
    done
done
ncdump -v time,lat,lon a.nc | tr -d '\n' | grep -q 'time = 24, 30, 36, 42 ; lat = 50, 40, 30 ; lon = 0, 2.5, 5, 7.5, 10 ;' || fail "coordinates: $(ncdump -v time,lat,lon a.nc)"

# The output of the shape of the target has its attributes, which the weights keep: the data to predict need no target.
command -v ncgen >/dev/null || exit $failed
for file in sky0 sky1; do
    ncdump "$sky/$file.nc" | sed 's/float rain(time, lat, lon) ;/&\n\t\train:units = "mm day-1" ;\n\t\train:standard_name = "lwe_precipitation_rate" ;/' >$file.cdl
    ncgen -k nc4 -o $file.nc $file.cdl || fail "ncgen fails"
done
sed 's|path: "[^"]*"|path: "sky?.nc"|' job.yaml >wet.yaml
"$CONVOY" train wet.yaml --threads 1 --out wet >log 2>&1 || fail "train fails: $(cat log)"
"$CONVOY" predict wet --threads 1 --data "$sky/sky1.nc" --out wet.nc >log 2>&1 || fail "predict: $(cat log)"
ncdump -h wet.nc >header
grep -qF 'float rain(time, lat, lon) ;' header || fail "not the name and the axes of the target: $(cat header)"
grep -qF ':units = "mm day-1" ;' header && grep -qF ':standard_name = "lwe_precipitation_rate" ;' header || fail "no attributes of the target: $(cat header)"
exit $failed
