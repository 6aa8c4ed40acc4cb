#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: clang asan
# installed.sh: installs the build into a folder of its own; a separate CMake project and a separate pkg-config project
# are built against it and run, the installed command starts from there, and manual pages, completions and pages are there.
[ "${CONVOY_SANITIZE}" = OFF ] || { echo "outside programs are not built with the sanitizers"; exit 77; }
command -v pkg-config >/dev/null || { echo "no pkg-config"; exit 77; }
here=$CONVOY_SOURCE/tests/packaging
. "$CONVOY_SOURCE/tests/shell.inc"
set -e

"$CMAKE" --install "$CONVOY_BUILD" --prefix "$work/prefix" >"$work/install.log" || { cat "$work/install.log"; exit 1; }
pc=$(find "$work/prefix" -name convoy.pc)
[ -n "$pc" ] || { echo "convoy.pc was not installed"; exit 1; }
version=$(sed -n 's/^Version: //p' "$pc")

check() {
    printed=$($MPIEXEC_N 2 "$1" | sort -u) || { echo "$1 failed"; exit 1; }
    [ "$printed" = "$version" ] || { echo "$1 printed '$printed', expected version $version"; exit 1; }
}

"$CMAKE" -S "$here/cmake" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_C_COMPILER="$CC" -DMPI_C_COMPILER="$MPICC" \
    >"$work/cmake.log" 2>&1 && "$CMAKE" --build "$work/cmake" >>"$work/cmake.log" 2>&1 || { cat "$work/cmake.log"; exit 1; }
check "$work/cmake/use"

PKG_CONFIG_PATH=$(dirname "$pc") make -C "$here/pkg-config" OUT="$work" MPICC="$MPICC" >"$work/make.log" 2>&1 ||
    { cat "$work/make.log"; exit 1; }
check "$work/use"

if command -v gfortran >/dev/null; then # once by CMake, and once with what pkg-config says
    "$CMAKE" -S "$here/fortran" -B "$work/fortran" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_C_COMPILER="$CC" -DCMAKE_Fortran_COMPILER=gfortran \
        >"$work/fortran.log" 2>&1 && "$CMAKE" --build "$work/fortran" >>"$work/fortran.log" 2>&1 || { cat "$work/fortran.log"; exit 1; }
    check "$work/fortran/use"
    export PKG_CONFIG_PATH="$(dirname "$pc")"
    sources=$(pkg-config --variable=fortrandir convoy)
    # shellcheck disable=SC2046
    gfortran -J "$work" -o "$work/use_f" "$sources/convoy_c.f90" "$sources/convoy.f90" "$here/fortran/use.f90" $(pkg-config --libs convoy) \
        -Wl,-rpath,"$(pkg-config --variable=libdir convoy)" >"$work/fortran.log" 2>&1 || { cat "$work/fortran.log"; exit 1; }
    check "$work/use_f"
fi

doc=$work/prefix/share/doc/convoy
for page in README.md CHANGELOG.md CITATION.cff licenses/README.md licenses/hdf5.txt docs/reference/command.md docs/guide/use-a-network.md docs/images/report.png examples/apply_network.c; do
    [ -s "$doc/$page" ] || { echo "$page is not installed in share/doc/convoy"; exit 1; }
done

for file in man/man1/convoy.1 man/man1/convoy-export.1 man/man5/convoy-job.5 bash-completion/completions/convoy \
    zsh/site-functions/_convoy fish/vendor_completions.d/convoy.fish; do
    [ -s "$work/prefix/share/$file" ] || { echo "$file is not installed in share"; exit 1; }
done

modules=$work/prefix/share/modulefiles
for file in "$modules/convoy/$version.lua" "$modules/convoy/$version"; do
    grep -qF "$work/prefix" "$file" || { echo "$file does not name the prefix"; exit 1; }
done
if [ -f /usr/share/lmod/lmod/init/bash ] && command -v bash >/dev/null; then
    mkdir "$work/tcl" && cp -r "$modules/convoy" "$work/tcl" && rm "$work/tcl/convoy/$version.lua"
    for folder in "$modules" "$work/tcl"; do # the second one is a copy of the Tcl file in another folder
        found=$(bash -c '. /usr/share/lmod/lmod/init/bash && module use "$1" && module load convoy && command -v convoy' - "$folder") || found=
        [ "$found" = "$work/prefix/bin/convoy" ] || { echo "module load convoy ($folder) finds '$found'"; exit 1; }
    done
fi

printed=$("$work/prefix/bin/convoy" --version) || { echo "the installed command does not start"; exit 1; }
case $printed in
*"$version"*) ;;
*) echo "convoy --version printed '$printed', expected $version"; exit 1 ;;
esac
