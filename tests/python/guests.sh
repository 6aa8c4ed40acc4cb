#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich
# seconds: 10
# guests.sh: in Python, convoy and packages that bring libraries of their own (h5py and netCDF4 with another HDF5,
# Pillow, PyTorch, mpi4py, ONNX Runtime) write and read files in one process, in whatever order they are imported. Of
# the libraries that libconvoy loads, only MPI's symbols are global.
. "$CONVOY_SOURCE/tests/shell.inc"
[ "$CONVOY_SANITIZE" = OFF ] || { echo "the sanitizer's library is not part of the interpreter"; exit 77; }
python=$(numpy_python)
python=${python:-python3}
command -v "$python" >/dev/null || { echo "there is no python3"; exit 77; }
export CONVOY_LIBRARY="$CONVOY_BUILD/libconvoy.so" PYTHONPATH="$CONVOY_SOURCE/python" PYTHONDONTWRITEBYTECODE=1
"$python" "$CONVOY_SOURCE/tests/python/guests.py" >log 2>&1 || fail "$(tail -5 log)"

# there MODULE: whether it can be imported.
there() { "$python" -c "import $1" 2>why || { echo "without $1: $(tail -1 why)"; return 1; }; }
# meet MODULE...: it works with these modules, imported in this order.
meet() {
    rm -rf run data.* network.onnx
    "$python" "$CONVOY_SOURCE/tests/python/guests.py" "$@" >log 2>&1 || fail "import $*: exit code $?: $(tail -5 log)"
}
if there h5py && there netCDF4; then
    for order in "convoy h5py netCDF4" "convoy netCDF4 h5py" "h5py convoy netCDF4" "netCDF4 convoy h5py" "h5py netCDF4 convoy" "netCDF4 h5py convoy"; do
        # shellcheck disable=SC2086
        meet $order
    done
fi
for module in h5py netCDF4 PIL torch mpi4py onnxruntime; do
    if there $module; then
        meet convoy $module
        meet $module convoy
    fi
done
exit $failed
