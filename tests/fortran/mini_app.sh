#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# seconds: 20
# level: 2
# mini_app.sh: a mini-app that others wrote, miniWeather in Fortran with MPI, gets at most 30 lines and trains a network
# beside its run on two ranks. The loss falls to a twentieth, and to a tenth of what a network that always answers 0 would
# have; the app's masses, energies and fields are the same with and without training, to the bit.
#
# CONVOY_TEST_MINIWEATHER names its fortran/miniWeather_mpi.F90: a file, or an address for curl, such as
# https://raw.githubusercontent.com/mrnorman/miniWeather/a33e8c39a26370e5020b4435258d3e8ddefdfd31/fortran/miniWeather_mpi.F90
# Without it the test is skipped.
. "$CONVOY_SOURCE/tests/shell.inc"
[ "$CONVOY_SANITIZE" = OFF ] || { echo "the sanitizer's library is not part of Fortran's"; exit 77; }
fortran=$(echo "$MPICC" | sed 's/mpicc\([^/]*\)$/mpifort\1/')
command -v "$fortran" >/dev/null || { echo "there is no $fortran"; exit 77; }
app=${CONVOY_TEST_MINIWEATHER-}
case $app in
    '') echo "it needs miniWeather_mpi.F90 of github.com/mrnorman/miniWeather: CONVOY_TEST_MINIWEATHER names the file, or an address for curl"; exit 77 ;;
    *://*) curl -sfL -m 30 -o plain.F90 "$app" || { echo "curl cannot get $app"; exit 77; } ;;
    *) cp "$app" plain.F90 || exit 1 ;;
esac
printf 'program p\n  use mpi\n  integer :: e\n  call MPI_Init(e)\n  call MPI_Finalize(e)\nend program\n' >probe.f90
"$fortran" -o probe probe.f90 >log 2>&1 || { echo "$fortran cannot compile a program with the module mpi: $(head -1 log)"; exit 77; }

sed -f "$CONVOY_SOURCE/tests/fortran/miniweather.sed" plain.F90 >learning.F90
diff plain.F90 learning.F90 >change
added=$(grep -c '^>' change)
echo "$added lines are added"
[ "$added" = 30 ] && ! grep -q '^<' change || fail "the change has other lines than expected: $(cat change)"

for source in "$CONVOY_SOURCE/tests/fortran/pnetcdf_stub.f90" "$CONVOY_BUILD/fortran/convoy_c.f90" "$CONVOY_BUILD/fortran/convoy.f90"; do
    "$fortran" -O2 -c "$source" >log 2>&1 || { cat log; fail "$source"; exit 1; }
done
# A collision of warm and cold air on 100 x 50 cells, in 600 steps.
settings='-D_NX=100 -D_NZ=50 -D_SIM_TIME=399.9 -D_OUT_FREQ=50 -D_DATA_SPEC=1 -DNO_INFORM'
for name in plain learning; do
    # shellcheck disable=SC2086
    "$fortran" -O2 -ffree-line-length-none $settings -o $name $name.F90 pnetcdf_stub.o convoy.o convoy_c.o "-L$CONVOY_BUILD" -lconvoy \
        "-Wl,-rpath,$CONVOY_BUILD" >log 2>&1 || { head -20 log; fail "$name does not compile"; exit 1; }
    $MPIEXEC_N 2 ./$name >$name.log 2>&1 || fail "$name: $(tail -5 $name.log)"
    grep 'd_mass\|d_te' $name.log >$name.totals
    cat output.nc.0 output.nc.1 >$name.fields
done
[ "$(wc -l <plain.totals)" = 2 ] && cmp plain.totals learning.totals || fail "training changed mass or energy: $(cat plain.totals learning.totals)"
[ "$(wc -c <plain.fields)" -gt 1000000 ] && cmp plain.fields learning.fields || fail "training changed the fields"
# Of each step: the loss, and the mean square of the new targets of rank 0.
sed -n 's/^ *Loss: *//p' learning.log | awk '
    { loss[NR] = $1; square[NR] = $2 }
    END {
        for (i = 1; i <= 5; i++) first += loss[i] / 5
        for (i = NR - 49; i <= NR; i++) { last += loss[i] / 50; of_zero += square[i] / 50 }
        printf "the loss of the first 5 of %d steps is %.3g, of the last 50 %.3g; with answers of 0 it would be %.3g\n", NR, first, last, of_zero
        exit !(NR == 600 && last < first / 20 && last < of_zero / 10)
    }' || fail "too little was learned"
exit $failed
