#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich
# fortran.sh: the Fortran module is standard Fortran 2018. Its arrays may have any rank, kind and stride, and what does
# not fit is a fault with a sentence. Procedures of the program are layers and losses. (The same bits as in C:
# tests/languages/; a solver that learns: heat.sh.)
. "$CONVOY_SOURCE/tests/shell.inc"
. "$CONVOY_SOURCE/tests/fortran/fortran.inc"
strict="$strict -Wno-compare-reals" # results must be equal to the bit

compile arrays "$CONVOY_SOURCE/tests/fortran/arrays.f90"
./arrays >log 2>&1 || fail "arrays: $(tail -20 log)"
contains log 'all checks passed' || fail "arrays ended early: $(cat log)"

compile functions "$CONVOY_SOURCE/tests/fortran/functions.f90"
for n in 1 2; do
    $MPIEXEC_N $n ./functions >log 2>&1 || fail "functions on $n ranks: $(tail -20 log)"
    [ "$(grep -c 'all checks passed' log)" = $n ] || fail "functions ended early on $n ranks: $(cat log)"
done

# A solver that traps exceptions of floating-point numbers: those of the library are not its own.
(
    strict="$strict -ffpe-trap=invalid,zero,overflow -g0"
    compile traps "$CONVOY_SOURCE/tests/fortran/traps.f90"
) || exit 1
$MPIEXEC_N 1 ./traps >log 2>&1 && fail "traps: a division by zero of the solver is not trapped"
contains log 'no trap was sprung' || fail "traps: $(head -20 log)"
! contains log 'the traps are off' && ! contains log 'is no fault' || fail "traps: $(head -20 log)"

# A rank that skips a step is named by those that wait for it, which then end the job.
cat >skips.f90 <<'END'
program skips
  use mpi_f08
  use convoy
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  type(convoy_context) :: context
  type(convoy_model) :: model
  type(convoy_program) :: program
  integer :: task, step, rank
  call MPI_Init()
  call context%create(MPI_COMM_WORLD%MPI_VAL, threads=1, watchdog=0.2_real64, watchdog_ends=.true.)
  call model%create('line')
  call model%add_input('x', [3])
  call model%add_input('y', [1])
  call model%add('fc', 'fc', from='x', options='channels: 1')
  call model%add('mse', 'loss', from='fc, y')
  call program%create(context)
  call program%add_training(model, 4, task)
  call program%plan()
  rank = context%rank()
  do step = 1, 3
    if (step == 3 .and. rank == 1) call MPI_Barrier(MPI_COMM_WORLD)
    call program%step(task, 0.1_real64)
  end do
end program skips
END
compile skips skips.f90
timeout 60 $MPIEXEC_N 2 ./skips >log 2>&1
code=$?
[ $code != 0 ] && [ $code != 124 ] || fail "a rank that skips a step: code $code, $(cat log)"
contains log 'cvy_program_step() at step 3 (watchdog_s is 0.2): rank 1 on' || fail "no rank is named: $(cat log)"

# Without stat a fault ends the program, and says what happened.
cat >stops.f90 <<'END'
program stops
  use convoy
  implicit none
  type(convoy_model) :: model
  call model%create('m')
  call model%add('no_such_layer', from='x')
  print '(a)', 'it went on'
end program stops
END
compile stops stops.f90
./stops >log 2>&1 && fail "a fault without stat was ignored"
contains log 'ERROR STOP convoy: ' || fail "the message of a fault: $(cat log)"

compile conservation "$CONVOY_SOURCE/examples/fortran/conservation.f90"
for n in 1 2; do
    $MPIEXEC_N $n ./conservation >log 2>&1 || fail "conservation on $n ranks: $(tail -5 log)"
    awk '/from nothing/ { off = $NF } /^with it/ { n++; good = $NF < 0.2 * off } END { exit !(n == 1 && good) }' log ||
        fail "the closure does not conserve heat: $(cat log)"
done

# A program whose floating-point traps are on: exp() of -100 to 100 overflows inside the layers.
cat >traps.f90 <<'END'
program traps
  use, intrinsic :: ieee_exceptions
  use, intrinsic :: iso_fortran_env, only: output_unit, real32, real64
  use convoy
  implicit none
  character(8), parameter :: layer(4) = [character(8) :: 'sigmoid', 'tanh', 'softplus', 'elu']
  type(convoy_context) :: context
  type(convoy_model) :: model
  type(convoy_program) :: program
  real(real32) :: x(16, 8), y(1, 8)
  real(real64) :: loss
  logical :: raised
  integer :: i, k, train
  x = reshape([(real(mod(i * 37, 201) - 100, real32), i = 1, size(x))], shape(x))
  y = 1
  call context%create(threads=2)
  do k = 1, size(layer)
    call model%create('traps')
    call model%add_input('x', [16])
    call model%add_input('y', [1])
    call model%add(trim(layer(k)), from='x')
    call model%add('fc', 'out', 'channels: 1')
    call model%add('mse', 'loss', from='out, y')
    call program%create(context, seed=1)
    call program%add_training(model, 8, train, optimizer='sgd')
    call program%plan()
    call program%write_input(train, 'x', x)
    call program%write_input(train, 'y', y)
    do i = 1, 3
      call program%step(train, learning_rate=1e-5_real64)
    end do
    call program%loss(train, 'loss', loss)
    call program%destroy()
    call model%destroy()
  end do
  call context%destroy()
  call ieee_get_flag(ieee_overflow, raised)
  if (raised) error stop 'an overflow inside the library is seen outside'
  call ieee_get_halting_mode(ieee_overflow, raised)
  if (.not. raised) error stop 'overflows do not halt the program any more'
  print '(a)', 'all checks passed'
  flush (output_unit)
  x(1, 1) = huge(x)
  y(1, 1) = x(1, 1) * x(1, 1)
  print *, y(1, 1)
end program traps
END
strict="$strict -ffpe-trap=invalid,zero,overflow"
compile traps traps.f90
./traps >log 2>&1 && fail "the program's own overflow did not end it: $(cat log)"
contains log 'all checks passed' || fail "with traps: $(cat log)"

exit $failed
