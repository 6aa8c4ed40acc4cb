! traps.f90: a solver that is compiled with -ffpe-trap=invalid,zero,overflow trains a network whose layers overflow inside,
! applies it, and gets faults: no exception is trapped in the library, and those of the solver itself are afterwards.
!
! SPDX-License-Identifier: BSD-3-Clause
program traps
  use mpi_f08
  use convoy
  use, intrinsic :: ieee_exceptions
  use, intrinsic :: iso_fortran_env, only: real32, real64
  implicit none
  integer, parameter :: rows = 64
  character(*), parameter :: layers(5) = [character(8) :: 'sigmoid', 'softplus', 'tanh', 'softmax', 'elu']
  type(convoy_context) :: context
  real(real32) :: x(3, rows), y(1, rows)
  real(real64), volatile :: zero = 0
  integer :: i

  call MPI_Init()
  call context%create(MPI_COMM_WORLD%MPI_VAL, threads=2)
  do i = 1, rows
    x(:, i) = real([100, -100, 3], real32) * real(i - rows / 2, real32) / (rows / 2) ! exp(100) is no real32
    y(:, i) = real(mod(i, 2), real32)
  end do
  do i = 1, size(layers)
    call train(trim(layers(i)))
  end do
  call expect_traps('the end')
  print '(a)', 'no trap was sprung'
  call context%destroy()
  flush (6)
  print '(g0)', 1 / zero ! is trapped
  print '(a)', 'a division by zero is not trapped'
  call MPI_Finalize()

contains

  subroutine expect_traps(where)
    character(*), intent(in) :: where
    logical :: halts(3)
    call ieee_get_halting_mode(ieee_invalid, halts(1))
    call ieee_get_halting_mode(ieee_divide_by_zero, halts(2))
    call ieee_get_halting_mode(ieee_overflow, halts(3))
    if (.not. all(halts)) print '(2a)', 'the traps are off after ', where
  end subroutine expect_traps

  subroutine train(layer)
    character(*), intent(in) :: layer
    type(convoy_model) :: model
    type(convoy_program) :: program
    real(real32) :: applied(1, rows)
    integer :: task, forward, step, stat
    call model%create('traps')
    call model%add_input('x', [3])
    call model%add_input('y', [1])
    call model%add(layer, 'first', from='x')
    call model%add('fc', 'hidden', options='channels: 8')
    call model%add(layer, 'second')
    call model%add('fc', 'out', options='channels: 1')
    call model%add('mse', 'loss', from='out, y')
    call program%create(context)
    call program%add_training(model, rows, task)
    call program%add_forward(model, rows, forward, outputs='out')
    call program%plan()
    call program%write_input(task, 'x', x)
    call program%write_input(task, 'y', y)
    do step = 1, 3
      call program%step(task, 1e-6_real64)
    end do
    call program%write_input(forward, 'x', x)
    call program%step(forward)
    call program%read_output(forward, 'out', applied)
    call program%step(99, 0.1_real64, stat=stat)
    if (stat == 0) print '(a)', 'a step that does not exist is no fault'
    call expect_traps(layer)
  end subroutine train
end program traps
