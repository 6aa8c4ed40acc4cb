! train.f90: the training of train.c, in Fortran. It prints the bits of a loss and of all weights.
!
! SPDX-License-Identifier: BSD-3-Clause
program train
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  use mpi_f08
  use convoy
  implicit none

  integer, parameter :: wide = 6, high = 5, channels = 2, classes = 3, batch = 12, steps = 5
  type(convoy_context) :: context
  type(convoy_model) :: model
  type(convoy_program) :: program
  real(real64), allocatable :: x(:, :, :, :), score(:, :)
  real(real32) :: weight(3, 3, channels, 4), matrix(4 * wide * high, classes)
  integer(int64), allocatable :: label(:)
  integer :: task, forward, i, rows
  real(real64) :: loss

  call MPI_Init()
  call context%create(MPI_COMM_WORLD%MPI_VAL, threads=1)
  call model%create('same')
  call model%add_input('x', [wide, high, channels])
  call model%add_input('label', [integer ::], 'i32')
  call model%add('conv', 'conv', 'channels: 4, kernel: 3, pad: 1', from='x')
  call model%add('relu')
  call model%add('fc', 'fc', 'channels: 3')
  call model%add('softmax_cross_entropy', 'loss', from='fc, label')
  call program%create(context, seed=7, options=[character(24) :: 'plan.wisdom=off', 'train.precise=true'])
  call program%add_training(model, batch, task, optimizer='adam', weight_decay=1e-3_real64)
  call program%add_forward(model, batch, forward, outputs='fc')
  call program%plan()

  rows = program%rows(task)
  allocate (x(wide, high, channels, rows), label(rows), score(classes, rows))
  do i = 1, steps
    call fill(i)
    call program%write_input(task, 'x', x)
    call program%write_input(task, 'label', label)
    call program%step(task, learning_rate=0.01_real64)
  end do
  call program%loss(task, 'loss', loss)
  call program%write_input(forward, 'x', x)
  call program%step(forward)
  call program%read_output(forward, 'fc', score)
  call program%get('conv.weight', weight)
  call program%get('fc.weight', matrix)
  if (context%rank() == 0) then
    print '(z16.16)', transfer(loss, 0_int64)
    print '(z8.8)', transfer(real(score(:, 1), real32), [0_int32])
    print '(z8.8)', transfer(weight, [0_int32])
    print '(z8.8)', transfer(matrix, [0_int32])
  end if
  call program%destroy()
  call model%destroy()
  call context%destroy()
  call MPI_Finalize()

contains

  ! Numbers that are exact in f32.
  subroutine fill(step)
    integer, intent(in) :: step
    integer :: ix, iy, c, n, at
    do n = 1, rows
      do c = 1, channels
        do iy = 1, high
          do ix = 1, wide
            at = (((program%first_row(task) + n - 1) * channels + c - 1) * high + iy - 1) * wide + ix - 1
            x(ix, iy, c, n) = real(modulo(37 * at + 11 * step, 64) - 32, real64) / 64
          end do
        end do
      end do
      label(n) = modulo(program%first_row(task) + n - 1 + step, classes)
    end do
  end subroutine fill

end program train
