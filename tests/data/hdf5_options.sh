#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# hdf5_options.sh: HDF5 files that h5py writes with random options (filters, edges of chunks, versions of the library,
# fill values, byte orders, user blocks) are read as libhdf5 reads them, or refused. It needs a Python with h5py.
# HDF5_OPTION_FILES says how many (100).
. "$CONVOY_SOURCE/tests/shell.inc"
python=${CONVOY_TEST_PYTHON:-python3}
"$python" -c 'import h5py, numpy' 2>/dev/null || { echo "there is no python3 with h5py (CONVOY_TEST_PYTHON names one)"; exit 77; }
[ -x "$CONVOY_BUILD/tests/test_data_hdf5_differ" ] || { echo "test_data_hdf5_differ is not built"; exit 77; }
mkdir files
"$python" "$CONVOY_SOURCE/tests/data/hdf5_options.py" files "${HDF5_OPTION_FILES:-100}" >log 2>&1 || fail "$(tail -5 log)"
CONVOY_HDF5_FILES=files "$CONVOY_BUILD/tests/test_data_hdf5_differ" >found 2>&1 || fail "$(grep -v ^refused found)"
tail -1 found
exit $failed
