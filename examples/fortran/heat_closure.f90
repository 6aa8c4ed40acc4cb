! heat_closure.f90: a heat solver learns, while it runs, what its coarse grid misses.
!
!     mpifort -o heat_closure convoy_c.f90 convoy.f90 heat_closure.f90 $(pkg-config --libs convoy)
!     mpiexec -n 2 ./heat_closure
!
! A hot spot moves in a circle over a plate whose conductivity grows with the temperature:
!
!     du/dt = div((k0 + k1 u) grad u) + source(x, y, t)
!
! A fine grid resolves the spot, a coarse one does not. In each time step the solver computes both, and trains a small
! network to predict the difference from what the coarse grid knows: the 3 x 3 values around a cell, and where the spot
! is from there. Each rank has a plate of its own, with another radius of the circle; all ranks train one network. Then
! the coarse grid goes on alone, with and without what was learnt, and is compared with the fine one.
!
! heat_closure [off] [STEPS]: with "off" nothing is trained, and the fine temperatures are the same, to the bit.
!
! SPDX-License-Identifier: BSD-3-Clause
program heat_closure
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use mpi_f08
  use convoy
  implicit none

  integer, parameter :: wp = real64, fine = 64, ratio = 4, coarse = fine / ratio, cells = coarse**2
  integer, parameter :: known = 12, remembered = 1000 ! features of a cell; steps whose cells are kept
  real(wp), parameter :: k0 = 0.01_wp, k1 = 0.01_wp, width = 0.05_wp, turns_per_time = 2, dt = 5e-4_wp
  real(wp), parameter :: pi = acos(-1.0_wp), power = 40
  real(wp), parameter :: scale = 10 ! about the size of what the coarse grid misses
  integer :: steps = 4000
  logical :: learns = .true.
  real(wp) :: u(fine, fine) = 1, next(fine, fine), v(coarse, coarse), truth(coarse, coarse), radius, loss
  real(wp) :: answer(1, cells)
  type(convoy_context) :: context
  type(convoy_model) :: model
  type(convoy_program) :: program
  type(convoy_reservoir) :: reservoir
  integer :: train, apply, i

  call read_arguments()
  call MPI_Init()
  call context%create(MPI_COMM_WORLD%MPI_VAL, threads=1)
  radius = 0.15_wp + 0.1_wp * context%rank() / max(context%nranks(), 1)
  if (learns) call make_network()

  do i = 1, steps
    v = restricted(u)
    next = stepped(u, i * dt)
    truth = restricted(next)
    if (learns) then
      ! Cells of neighbouring steps are alike. A network that saw only these would forget the others.
      call reservoir%put('x', features(v, i * dt))
      call reservoir%put('y', reshape((truth - stepped(v, i * dt)) / (dt * scale), [cells]))
      call reservoir%push()
      call reservoir%draw(program, train)
      call program%step(train, learning_rate=merge(1e-3_wp, 1e-4_wp, i < 3 * steps / 4))
      if (mod(i, max(steps / 10, 1)) == 0) then
        call program%loss(train, 'loss', loss)
        if (context%rank() == 0) print '(a, i6, a, es10.3)', 'step ', i, '   mean squared error of the closure ', loss
      end if
    end if
    u = next
  end do
  if (context%rank() == 0) print '(a, es24.16)', 'mean temperature of the fine grid ', sum(u) / size(u)
  if (learns) call compare_coarse_grids()

  call reservoir%destroy()
  call program%destroy()
  call model%destroy()
  call context%destroy()
  call MPI_Finalize()

contains

  subroutine read_arguments()
    character(len=20) :: word
    integer :: k
    do k = 1, command_argument_count()
      call get_command_argument(k, word)
      if (word == 'off') then
        learns = .false.
      else
        read (word, *) steps
      end if
    end do
  end subroutine read_arguments

  ! The network has two tasks over the same weights: training with a target, and applying.
  subroutine make_network()
    call model%create('closure')
    call model%add_input('x', [known])
    call model%add_input('y', [1])
    call model%add('fc', 'hidden1', 'channels: 64', from='x')
    call model%add('tanh')
    call model%add('fc', 'hidden2', 'channels: 64')
    call model%add('tanh')
    call model%add('fc', 'closure', 'channels: 1')
    call model%add('mse', 'loss', from='closure, y')
    call program%create(context, seed=1)
    call program%add_training(model, cells * context%nranks(), train, optimizer='adam')
    call program%add_forward(model, cells * context%nranks(), apply, outputs='closure')
    call program%plan()
    call reservoir%create(remembered * cells, keep='newest', seed=context%rank())
    call reservoir%add_field('x', [known])
    call reservoir%add_field('y', [1])
  end subroutine make_network

  ! One explicit step on a grid of n x n cells with periodic borders.
  function stepped(t, time) result(out)
    real(wp), intent(in) :: t(:, :), time
    real(wp) :: out(size(t, 1), size(t, 2)), h, flux
    integer :: n, ix, iy
    n = size(t, 1)
    h = 1.0_wp / n
    do iy = 1, n
      do ix = 1, n
        flux = between(t(ix, iy), t(modulo(ix, n) + 1, iy)) + between(t(ix, iy), t(modulo(ix - 2, n) + 1, iy)) + &
            between(t(ix, iy), t(ix, modulo(iy, n) + 1)) + between(t(ix, iy), t(ix, modulo(iy - 2, n) + 1))
        out(ix, iy) = t(ix, iy) + dt * (flux / h**2 + source((ix - 0.5_wp) * h, (iy - 0.5_wp) * h, time))
      end do
    end do
  end function stepped

  pure real(wp) function between(here, there)
    real(wp), intent(in) :: here, there
    between = (k0 + k1 * (here + there) / 2) * (there - here)
  end function between

  ! The spot heats, and everything else cools a little, so that the plate stays as warm as it is.
  real(wp) function source(px, py, time)
    real(wp), intent(in) :: px, py, time
    source = power * (exp(-sum(from_spot(px, py, time)**2)) - pi * width**2)
  end function source

  ! In widths of the spot.
  function from_spot(px, py, time) result(out)
    real(wp), intent(in) :: px, py, time
    real(wp) :: out(2), angle
    angle = 2 * pi * turns_per_time * time
    out = ([px, py] - 0.5_wp - radius * [cos(angle), sin(angle)]) / width
  end function from_spot

  ! The mean of each block of fine cells.
  function restricted(t) result(out)
    real(wp), intent(in) :: t(:, :)
    real(wp) :: out(coarse, coarse)
    integer :: ix, iy
    do iy = 1, coarse
      do ix = 1, coarse
        out(ix, iy) = sum(t(ratio * (ix - 1) + 1:ratio * ix, ratio * (iy - 1) + 1:ratio * iy)) / ratio**2
      end do
    end do
  end function restricted

  ! Of each cell: its value and the differences of the eight around it; whether the spot is near, and in which
  ! direction.
  function features(t, time) result(out)
    real(wp), intent(in) :: t(coarse, coarse), time
    real(wp) :: out(known, cells), around(3, 3), spot(2), near
    integer :: ix, iy, dx, dy
    do iy = 1, coarse
      do ix = 1, coarse
        do dy = -1, 1
          do dx = -1, 1
            around(dx + 2, dy + 2) = t(modulo(ix + dx - 1, coarse) + 1, modulo(iy + dy - 1, coarse) + 1) - t(ix, iy)
          end do
        end do
        around(2, 2) = t(ix, iy)
        spot = from_spot((ix - 0.5_wp) / coarse, (iy - 0.5_wp) / coarse, time)
        near = exp(-sum(spot**2) / 4)
        out(:, ix + coarse * (iy - 1)) = [reshape(around, [9]), near, near * spot]
      end do
    end do
  end function features

  ! Ten times over half a turn, the coarse grid starts from the fine one and goes on alone for a while. Over much longer
  ! times a closure that was learnt step by step drifts: it must then be trained on states that it has made itself.
  subroutine compare_coarse_grids()
    integer, parameter :: alone = 50, times = 10
    real(wp) :: plain(coarse, coarse), learnt(coarse, coarse), errors(2)
    integer :: k
    errors = 0
    do k = steps + 1, steps + times * alone
      if (mod(k - steps, alone) == 1) plain = restricted(u)
      if (mod(k - steps, alone) == 1) learnt = plain
      call program%write_input(apply, 'x', features(learnt, k * dt))
      call program%step(apply)
      call program%read_output(apply, 'closure', answer)
      learnt = stepped(learnt, k * dt) + dt * scale * reshape(answer, [coarse, coarse])
      plain = stepped(plain, k * dt)
      u = stepped(u, k * dt)
      if (mod(k - steps, alone) > 0) cycle
      errors = errors + [rms(plain - restricted(u)), rms(learnt - restricted(u))] / times
    end do
    if (context%rank() == 0) print '(a, i0, a, es10.3, a, es10.3)', 'error of the coarse grid after ', alone, &
        ' steps alone ', errors(1), ', with what was learnt ', errors(2)
  end subroutine compare_coarse_grids

  real(wp) function rms(t)
    real(wp), intent(in) :: t(:, :)
    rms = sqrt(sum(t**2) / size(t))
  end function rms

end program heat_closure
