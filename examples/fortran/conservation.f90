! conservation.f90: a closure that is trained to conserve heat, with a loss that is a procedure of the program.
!
!     mpifort -o conservation convoy_c.f90 convoy.f90 conservation.f90 $(pkg-config --libs convoy)
!     mpiexec -n 2 ./conservation
!
! A network predicts what heat the four cells of a block exchange, from their temperatures. Its data are wrong by random
! numbers, so a network that is trained on them alone makes heat from nothing. The loss is therefore
!
!     mean of (output - target)^2  +  penalty * mean of (sum of the outputs of a block)^2
!
! The second term is the procedure `imbalance` below. The program trains without it and with it, and prints how much
! heat the closure makes from nothing.
!
! SPDX-License-Identifier: BSD-3-Clause
module closure_losses
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  integer, parameter :: wp = real64
  real(wp) :: capacity(4) = [1.0_wp, 1.0_wp, 1.0_wp, 2.0_wp] ! of the cells, for heat: the program's own data

contains

  ! The square of the heat that is made in each block. x: the outputs of the network for a block.
  subroutine imbalance(x, y, stat)
    real(wp), intent(in) :: x(:, :)
    real(wp), intent(out) :: y(:, :)
    integer, intent(out) :: stat
    y(1, :) = matmul(capacity, x)**2
    stat = 0
  end subroutine imbalance

  subroutine imbalance_gradient(x, dy, dx, stat)
    real(wp), intent(in) :: x(:, :), dy(:, :)
    real(wp), intent(out) :: dx(:, :)
    integer, intent(out) :: stat
    integer :: block
    do block = 1, size(x, 2)
      dx(:, block) = 2 * capacity * dot_product(capacity, x(:, block)) * dy(1, block)
    end do
    stat = 0
  end subroutine imbalance_gradient

end module closure_losses

program conservation
  use mpi_f08
  use convoy
  use closure_losses
  implicit none
  integer, parameter :: blocks = 64, steps = 400
  type(convoy_context) :: context
  real(wp) :: without, with

  call MPI_Init()
  call context%create(MPI_COMM_WORLD%MPI_VAL, threads=1)
  call context%add_function('imbalance', imbalance, imbalance_gradient)
  call context%check_function('imbalance', [4]) ! ends the program if the gradient is wrong
  without = made_by(penalty=0.0_wp)
  with = made_by(penalty=10.0_wp)
  if (context%rank() == 0) then
    print '(a, es9.2)', 'heat that is made from nothing, without the penalty ', without
    print '(a, es9.2)', 'with it                                             ', with
  end if
  call context%destroy()
  call MPI_Finalize()

contains

  ! Trains a closure; the root mean square of the heat that it makes in a block.
  real(wp) function made_by(penalty) result(made)
    real(wp), intent(in) :: penalty
    type(convoy_model) :: model
    type(convoy_program) :: program
    real(wp) :: x(4, blocks), y(4, blocks), noise(4, blocks)
    character(len=40) :: options
    integer :: train, apply, step

    call model%create('closure')
    call model%use_context(context)
    call model%add_input('x', [4])
    call model%add_input('y', [4])
    call model%add('fc', 'hidden', 'channels: 32', from='x')
    call model%add('tanh')
    call model%add('fc', 'closure', 'channels: 4')
    call model%add('mse', 'error', from='closure, y')
    if (penalty > 0) then
      write (options, '(a, es9.2)') 'loss_weight: ', penalty
      call model%add('imbalance', 'made', from='closure')
      call model%add('mean', 'conservation', options, from='made')
    end if
    call program%create(context, seed=1)
    call program%add_training(model, blocks * context%nranks(), train, optimizer='adam')
    call program%add_forward(model, blocks * context%nranks(), apply, outputs='closure')
    call program%plan()

    call numbers(x, 1000 + context%rank())     ! other ones on each rank
    call numbers(noise, 2000 + context%rank())
    y = exchange(x) + 0.3_wp * (noise + 0.5_wp) ! the error of the data is not zero in the mean
    do step = 1, steps
      call program%write_input(train, 'x', x)
      call program%write_input(train, 'y', y)
      call program%step(train, learning_rate=1e-2_wp)
    end do
    call program%write_input(apply, 'x', x)
    call program%step(apply)
    call program%read_output(apply, 'closure', y)
    made = sqrt(sum(matmul(capacity, y)**2) / blocks)
    call MPI_Allreduce(MPI_IN_PLACE, made, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD)
    call program%destroy()
  end function made_by

  ! Heat flows to the mean temperature of the block.
  function exchange(x) result(y)
    real(wp), intent(in) :: x(:, :)
    real(wp) :: y(4, size(x, 2))
    integer :: k
    do k = 1, size(x, 2)
      y(:, k) = dot_product(capacity, x(:, k)) / sum(capacity) - x(:, k)
    end do
  end function exchange

  ! Numbers from -1 to 1.
  subroutine numbers(x, seed)
    real(wp), intent(out) :: x(:, :)
    integer, intent(in) :: seed
    integer :: i, k, state
    state = seed
    do k = 1, size(x, 2)
      do i = 1, size(x, 1)
        state = mod(state * 1103 + 12347, 65536)
        x(i, k) = state / 32768.0_wp - 1
      end do
    end do
  end subroutine numbers

end program conservation
