#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# seconds: 20
# level: 2
# pip.sh: `pip install .` of the sources makes a package that brings the library and the command, and whose version is
# the library's. It leaves nothing in the sources, and tells a terminal how far the build is. What cannot work is named:
# an editable package, and a build without a library. The build itself is this one: a script in the place of cmake
# copies it.
. "$CONVOY_SOURCE/tests/shell.inc"
[ "$CONVOY_SANITIZE" = OFF ] || { echo "the sanitizer's library is not part of the interpreter"; exit 77; }
for python in "${CONVOY_TEST_PYTHON:-python3}" /usr/bin/python3 none; do
    "$python" -c 'import setuptools, sys, wheel, pip; sys.exit(int(setuptools.__version__.split(".")[0]) < 61)' 2>/dev/null && break
done
[ $python != none ] || { echo "there is no python3 with pip, wheel and setuptools 61"; exit 77; }

mkdir -p source/tools bin
cp -r "$CONVOY_SOURCE/setup.py" "$CONVOY_SOURCE/pyproject.toml" "$CONVOY_SOURCE/python" "$CONVOY_SOURCE/include" source
cp "$CONVOY_SOURCE/tools/make_bindings.awk" source/tools
cat >bin/cmake <<END2
#!/bin/sh
echo "\$*" >>"$work/calls"
if [ "\$1" != --build ]; then
    mkdir -p "\$4"
    exit
fi
echo "[ 42%] Building C object"; cp "$CONVOY_BUILD/libconvoy.so.0" "$CONVOY_BUILD/convoy" "\$2" && chmod +x "\$2/convoy"
END2
chmod +x bin/cmake
unset CONVOY_LIBRARY PYTHONPATH
export PYTHONDONTWRITEBYTECODE=1
install() { PATH="$work/bin:$PATH" "$python" -m pip install -q --no-build-isolation --no-index --no-deps --target "$work/there" ./source; }
find source | sort >before
CMAKE_ARGS='-DCONVOY_WITH_HDF5=OFF "-DA=b c"' install >log 2>&1 || { fail "$(tail -20 log)"; exit 1; }
contains calls '-DCONVOY_WITH_HDF5=OFF -DA=b c' || fail "CMAKE_ARGS: $(cat calls)"
PYTHONPATH=there "$python" -c 'import convoy; print(convoy.__version__, convoy.__file__)' >log 2>&1 || { cat log; fail "it is not imported"; exit 1; }
contains log "$work/there/convoy" || fail "$(cat log)"
ls there | grep -q "^libconvoy-$(sed 's/ .*//' log).dist-info" || fail "the version is $(cat log), of the package $(ls there)"
install >log 2>&1 || fail "it is not installed again: $(tail -20 log)"
find source | sort | diff before - || fail "pip has left files in the sources"
if script -qc true /dev/null >log 2>&1; then # a terminal is told how far the build is
    PATH="$work/bin:$PATH" script -qec "'$python' -m pip install -q --no-build-isolation --no-index --no-deps --target '$work/again' ./source" /dev/null </dev/null >log 2>&1 ||
        fail "in a terminal: $(tail -5 log)"
    contains log 'takes some minutes' && contains log '40 % of the library are built' || fail "a terminal is told nothing: $(tail -5 log)"
fi
PYTHONPATH=there there/bin/convoy --version >log 2>&1 || fail "$(cat log)"

PATH="$work/bin:$PATH" "$python" -m pip install -q --no-build-isolation --no-index --no-deps --target "$work/edited" -e ./source >log 2>&1 &&
    fail "an editable package without a library was installed"
if "$python" -c 'import setuptools, sys; sys.exit(int(setuptools.__version__.split(".")[0]) < 64)'; then
    contains log 'pip install -e ./python' || fail "an editable package: $(tail -20 log)"
fi
printf '#!/bin/sh\n[ "$1" = --build ] || mkdir -p "$4"\n' >bin/cmake
install >log 2>&1 && fail "a package without a library was installed"
contains log 'has no libconvoy.so.0 after the build' || fail "no library: $(tail -20 log)"
printf '#!/bin/sh\nexit 3\n' >bin/cmake
install >log 2>&1 && fail "a build that failed was installed"
contains log 'convoy was not built' || fail "$(tail -20 log)"
exit $failed
