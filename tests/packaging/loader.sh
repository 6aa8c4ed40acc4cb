#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: clang
# loader.sh: the program `convoy` of an installation for several MPI libraries takes the build that fits the launcher,
# loads its MPI before it, and says in one sentence what is missing. The MPI libraries and the builds are small stand-ins.
[ "${CONVOY_SANITIZE}" = OFF ] || { echo "the loader is not built with the sanitizers"; exit 77; }
. "$CONVOY_SOURCE/tests/shell.inc"
set -e

tree=$work/tree mpi=$work/mpi
mkdir -p "$tree/bin" "$tree/lib/convoy/openmpi" "$tree/lib/convoy/mpich" "$mpi/openmpi" "$mpi/mpich" "$mpi/debian" "$mpi/broken"
"$CC" -D_GNU_SOURCE -DCONVOY_LIBDIR='"lib"' -I"$CONVOY_SOURCE/cmd/convoy" -I"$CONVOY_SOURCE/include" -o "$tree/bin/convoy" \
    "$CONVOY_SOURCE/cmd/loader/loader.c" "$CONVOY_SOURCE/cmd/loader/choose.c" "$CONVOY_SOURCE"/cmd/convoy/cmd_launchers.c "$CONVOY_SOURCE"/cmd/convoy/cmd_launch.c \
    "$CONVOY_SOURCE"/cmd/convoy/cmd_file.c -ldl
printf '#!/bin/sh\n"$@"\nexit $?\n' >"$work/mpiexec" && chmod +x "$work/mpiexec" # a launcher by its name
# A build: it needs its MPI, which it was not linked with, and prints the name of it and its words.
cat >"$work/build.c" <<'C'
#include <stdio.h>
extern const char BUILD[];
int main(int argc, char **argv)
{
    printf("%s %s\n", BUILD, argc > 1 ? argv[1] : "");
    return 7;
}
C
for name in openmpi mpich; do
    echo "const char mpi_of_${name}[] = \"$name\";" >"$work/mpi.c"
    "$CC" -shared -fPIC -Wl,-soname,"$([ $name = mpich ] && echo libmpi.so.12 || echo libmpi.so.40)" -o "$mpi/$name/lib" "$work/mpi.c"
    "$CC" -shared -fPIC -DBUILD="mpi_of_$name" -o "$tree/lib/convoy/$name/convoy.so" "$work/build.c"
done
cp "$mpi/mpich/lib" "$mpi/debian/libmpich.so.12"
mv "$mpi/openmpi/lib" "$mpi/openmpi/libmpi.so.40"
mv "$mpi/mpich/lib" "$mpi/mpich/libmpi.so.12"
for name in libmpi.so.40 libmpi.so.12 libmpich.so.12 libmpi_gnu_123.so.12 libmpi_gnu_91.so.12; do
    : >"$mpi/broken/$name" # found before the libraries of this machine, and no library
done

# try "NAME=VALUE.." FOLDER..: runs the program with these variables, and with the MPI libraries of these folders, as a task
# of $below, if it is a launcher.
below=
try() {
    set=$1
    shift
    path=
    for folder in "$@" broken; do path=$path${path:+:}$mpi/$folder; done
    # shellcheck disable=SC2086
    code=0 && said=$(env -i LD_LIBRARY_PATH="$path" $set $below "$tree/bin/convoy" hello 2>&1) || code=$?
}
expect() { # expect TEXT CODE
    case $said in
    *"$1"*) [ "$code" -eq "$2" ] || { echo "[$set]: exit code $code, expected $2: $said"; exit 1; } ;;
    *) echo "[$set]: '$said', expected '$1'"; exit 1 ;;
    esac
    [ "$(echo "$said" | wc -l)" -eq 1 ] || { echo "[$set]: more than one line: $said"; exit 1; }
}

try OMPI_COMM_WORLD_SIZE=2 openmpi mpich; expect "openmpi hello" 7
try "PMI_SIZE=2 PMI_RANK=0" openmpi mpich; expect "mpich hello" 7
try "PMI_SIZE=2 PMI_RANK=0" openmpi debian; expect "mpich hello" 7
try PMIX_RANK=0 openmpi mpich; expect "openmpi hello" 7
try PMIX_RANK=0 mpich; expect "mpich hello" 7
try A=b openmpi mpich; expect "openmpi hello" 7
try A=b mpich; expect "mpich hello" 7
try "CONVOY_MPI=mpich OMPI_COMM_WORLD_SIZE=2" openmpi mpich; expect "mpich hello" 7
try CONVOY_MPI= openmpi; expect "openmpi hello" 7

try A=b; expect "there is no MPI library: neither libmpi.so.40" 1
try OMPI_COMM_WORLD_SIZE=2 mpich; expect "mpich hello" 7 # left over: no launcher has started it
try "PMI_SIZE=2 PMI_RANK=1" openmpi; expect "openmpi hello" 7
below=$work/mpiexec
try OMPI_COMM_WORLD_SIZE=2 openmpi mpich; expect "openmpi hello" 7
try OMPI_COMM_WORLD_SIZE=2 mpich; expect "Open MPI's mpiexec asks for the MPI library of Open MPI, which does not load ($mpi/broken/libmpi.so.40" 1
try "PMI_SIZE=2 PMI_RANK=0" openmpi; expect "asks for the MPI library of MPICH, Intel MPI" 1
below=
try CONVOY_MPI=mpich openmpi; expect "CONVOY_MPI asks for the MPI library of MPICH" 1
try CONVOY_MPI=lam openmpi; expect "CONVOY_MPI is 'lam', expected openmpi, mpich or none" 1
try CONVOY_MPI=none mpich; expect "CONVOY_MPI is none, but" 1
try "LD_PRELOAD=$mpi/mpich/libmpi.so.12 PMIX_RANK=0" openmpi; expect "mpich hello" 7 # as in a program with mpi4py

# What stands for MPI is taken if there is none, but not by a process that a launcher has started.
cp "$mpi/mpich/libmpi.so.12" "$tree/lib/convoy/mpich/alone.so"
try A=b; expect "mpich hello" 7
try A=b openmpi; expect "openmpi hello" 7
try CONVOY_MPI=none openmpi; expect "mpich hello" 7
try CONVOY_MPI=openmpi; expect "CONVOY_MPI asks for the MPI library of Open MPI" 1
below=$work/mpiexec
try "PMI_SIZE=2 PMI_RANK=0"; expect "asks for the MPI library of MPICH" 1
below=
rm "$tree/lib/convoy/openmpi/convoy.so"
try OMPI_COMM_WORLD_SIZE=2 openmpi; expect "the build for Open MPI does not load" 1
