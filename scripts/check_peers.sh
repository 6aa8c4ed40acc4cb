#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check_peers.sh [--into FOLDER] [--build FOLDER]: runs the tests that need PyTorch, TensorFlow, NetCDF packages,
# miniWeather or PyTorch's MNIST example, which continuous integration skips. scripts/peers.txt pins them; pip installs
# them into two environments in FOLDER, outside the clone (~/.cache/convoy-peers, some 8 GB), once. It takes about ten
# minutes, and needs a network.
#
# The line at the end counts tests that passed, failed and were skipped; the reasons of the latter are before it.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
out=${XDG_CACHE_HOME:-$HOME/.cache}/convoy-peers build=$top/build/release
while [ $# -gt 0 ]; do
    case $1 in
    --into) out=$2 ;;
    --build) build=$2 ;;
    *) sed -n '3,9s/^# //p' "$0"; exit 2 ;;
    esac
    shift 2
done
[ -x "$build/convoy" ] || { echo "check_peers.sh: $build has no convoy: cmake --preset release && cmake --build --preset release" >&2; exit 1; }
mkdir -p "$out"
out=$(cd "$out" && pwd)
peers=$top/scripts/peers.txt

for name in pytorch tensorflow; do
    wanted=$(sed -n "s/^$name //p" "$peers")
    [ "$(cat "$out/$name/installed" 2>/dev/null)" = "$wanted" ] && continue
    echo "installing the environment $out/$name (minutes), log in $out/$name.log"
    # shellcheck disable=SC2086
    python3 -m venv "$out/$name" && "$out/$name/bin/pip" install -q $wanted >"$out/$name.log" 2>&1 ||
        { tail -n 5 "$out/$name.log"; echo "check_peers.sh: pip fails" >&2; exit 1; }
    echo "$wanted" >"$out/$name/installed"
done
for name in PYTORCH NETCDF PYTHON; do export "CONVOY_TEST_$name=$out/pytorch/bin/python"; done
for name in TENSORFLOW KERAS; do export "CONVOY_TEST_$name=$out/tensorflow/bin/python"; done
for name in MINIWEATHER MNIST; do
    address=$(sed -n "s/^CONVOY_TEST_$name //p" "$peers")
    if curl -sfL -m 60 -o "$out/${address##*/}" "$address" || [ -f "$out/${address##*/}" ]; then
        export "CONVOY_TEST_$name=$out/${address##*/}"
    else
        echo "without $address, which curl cannot get"
    fi
done

code=0
ctest --test-dir "$build" -R 'python_guests|torch|tensorflow|keras|coming_from|netcdf_climate|fortran_mini_app|hdf5_options' -V >"$out/log" 2>&1 || code=$?
grep -E '^ *[0-9]+/[0-9]+ Test' "$out/log" || { cat "$out/log"; exit 1; }
[ $code = 0 ] || grep -E '^[0-9]+: ' "$out/log" | grep -vE '^[0-9]+:  [A-Z_]+=' | tail -n 60
for test in $(sed -n 's/^ *[0-9]*\/[0-9]* Test *#\([0-9]*\): .*Skipped.*/\1/p' "$out/log"); do
    echo "test $test is skipped: $(sed -n "s/^$test: //p" "$out/log" | tail -n 1)"
done
count() { grep -cE "^ *[0-9]+/[0-9]+ Test.*$1" "$out/log" || :; }
echo "$(count Passed) passed, $(count 'Failed|Timeout|Exception') failed, $(count Skipped) skipped; log in $out/log"
exit $code
