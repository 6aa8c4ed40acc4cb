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
! heat_closure [off|stream] [STEPS] [restart]
!     off        nothing is trained; the fine temperatures are the same, to the bit
!     stream     the last rank trains, while the others compute: samples go to it, and weights come back
!     restart    writes the state to the folder heat_restart now and then, and goes on from it if it is there; for
!                training in turns
!
! SPDX-License-Identifier: BSD-3-Clause
program heat_closure
  use, intrinsic :: iso_fortran_env, only: int8, int64, real64
  use mpi_f08
  use convoy
  implicit none

  integer, parameter :: wp = real64, fine = 64, ratio = 4, coarse = fine / ratio, cells = coarse**2
  integer, parameter :: known = 12, remembered = 1000 ! features of a cell; steps whose cells are kept
  real(wp), parameter :: k0 = 0.01_wp, k1 = 0.01_wp, width = 0.05_wp, turns_per_time = 2, dt = 5e-4_wp
  real(wp), parameter :: pi = acos(-1.0_wp), power = 40
  real(wp), parameter :: scale = 10 ! about the size of what the coarse grid misses
  integer :: steps = 4000
  logical :: learns = .true., streams = .false., restarts = .false., trains ! trains: this rank only trains
  real(wp) :: u(fine, fine) = 1, next(fine, fine), answer(1, cells), radius
  type(convoy_context) :: context, alone
  type(convoy_model) :: model
  type(convoy_program) :: program
  type(convoy_reservoir) :: reservoir
  type(convoy_stream) :: stream
  integer :: me, ranks, train, apply
  integer(int64) :: began, ended, rate

  call read_arguments()
  call MPI_Init()
  call context%create(MPI_COMM_WORLD%MPI_VAL, threads=1)
  call alone%create(threads=1)
  me = context%rank()
  ranks = context%nranks()
  streams = streams .and. ranks > 1
  trains = streams .and. me == ranks - 1
  radius = 0.15_wp + 0.1_wp * me / ranks
  if (learns) call make_network()
  if (streams) call stream%create(context, trim(merge('trainer', 'solver ', trains)), reservoir, program, &
      queue=8 * cells, when_full='thin')

  call system_clock(began, rate)
  if (trains) then
    call train_apart()
  else
    call solve()
  end if
  call stream%destroy()
  call system_clock(ended)
  if (me == 0) print '(a, f0.2, a)', 'time of the run ', real(ended - began, wp) / rate, ' s'
  if (me == 0) print '(a, es24.16)', 'mean temperature of the fine grid ', sum(u) / size(u)
  if (learns .and. .not. trains) call compare_coarse_grids()

  call reservoir%destroy()
  call program%destroy()
  call model%destroy()
  call alone%destroy()
  call context%destroy()
  call MPI_Finalize()

contains

  subroutine read_arguments()
    character(len=20) :: word
    integer :: k
    do k = 1, command_argument_count()
      call get_command_argument(k, word)
      select case (word)
      case ('off')
        learns = .false.
      case ('stream')
        streams = .true.
      case ('restart')
        restarts = .true.
      case default
        read (word, *) steps
      end select
    end do
    streams = streams .and. learns
    restarts = restarts .and. learns .and. .not. streams
  end subroutine read_arguments

  ! The network has two tasks over the same weights: training with a target, and applying. If one rank trains, each rank
  ! has a program of its own; else all ranks share one.
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
    if (streams) then
      call program%create(alone, seed=1)
      call program%add_training(model, cells, train, optimizer='adam')
      call program%add_forward(model, cells, apply, outputs='closure')
    else
      call program%create(context, seed=1)
      call program%add_training(model, cells * ranks, train, optimizer='adam')
      call program%add_forward(model, cells * ranks, apply, outputs='closure')
    end if
    call program%plan()
    call reservoir%create(remembered * cells, keep='newest', seed=me)
    call reservoir%add_field('x', [known])
    call reservoir%add_field('y', [1])
  end subroutine make_network

  ! The solver's run. It trains in turns with its time steps, or sends what it has computed to the rank that trains.
  subroutine solve()
    real(wp) :: v(coarse, coarse), x(known, cells), y(1, cells), loss
    integer :: i, first
    first = 0
    if (restarts) call read_restart(first)
    do i = first + 1, steps
      v = restricted(u)
      next = stepped(u, i * dt)
      if (learns) then
        x = features(v, i * dt)
        y = reshape((restricted(next) - stepped(v, i * dt)) / (dt * scale), [1, cells])
      end if
      u = next
      if (streams) then
        call stream%put('x', x)
        call stream%put('y', y)
        call stream%push()
        call stream%take()
      else if (learns) then
        ! Cells of neighbouring steps are alike. A network that saw only these would forget the others.
        call reservoir%put('x', x)
        call reservoir%put('y', y)
        call reservoir%push()
        call reservoir%draw(program, train)
        call program%step(train, learning_rate=merge(1e-3_wp, 1e-4_wp, i < 3 * steps / 4))
        call program%loss(train, 'loss', loss)
        if (me == 0 .and. mod(i, max(steps / 10, 1)) == 0) print '(a, i6, a, es10.3)', 'step ', i, &
            '   mean squared error of the closure ', loss
      end if
      if (restarts .and. mod(i, 500) == 0) call write_restart(i)
    end do
    if (streams) call tell_stream()
  end subroutine solve

  ! The trainer's run: as many training steps as there is time for, until the solvers end.
  subroutine train_apart()
    real(wp) :: loss, progress
    integer :: n
    n = 0
    do while (stream%receive())
      progress = real(reservoir%seen(), wp) / (real(steps, wp) * cells * (ranks - 1))
      call reservoir%draw(program, train)
      call program%step(train, learning_rate=merge(1e-3_wp, 1e-4_wp, progress < 0.75_wp))
      call stream%publish()
      n = n + 1
    end do
    if (n == 0) return
    call program%loss(train, 'loss', loss)
    print '(a, i0, a, es10.3)', 'training steps ', n, '   mean squared error of the closure ', loss
  end subroutine train_apart

  subroutine tell_stream()
    integer(int64) :: pushed, dropped, version
    real(wp) :: longest
    call stream%counts(pushed=pushed, dropped=dropped, version=version, longest_push_s=longest)
    if (me == 0) print '(a, i0, a, i0, a, i0, a, es8.1, a)', 'samples ', pushed, ', dropped ', dropped, &
        ', weights taken ', version, ' times, longest push ', longest, ' s'
  end subroutine tell_stream

  ! The state of a run: of the network a checkpoint, of each rank its temperatures and its reservoir.
  subroutine write_restart(step)
    integer, intent(in) :: step
    integer(int8), allocatable :: state(:)
    integer :: unit
    if (me == 0) call execute_command_line('mkdir -p heat_restart')
    call MPI_Barrier(MPI_COMM_WORLD)
    open (newunit=unit, file=restart_file(step), form='unformatted', access='stream', status='replace')
    write (unit) u
    call reservoir%save(state)
    write (unit) size(state), state
    close (unit)
    call MPI_Barrier(MPI_COMM_WORLD) ! the checkpoint says that the files of all ranks are there
    call program%write_checkpoint('heat_restart', step)
  end subroutine write_restart

  subroutine read_restart(step)
    integer, intent(out) :: step
    integer(int8), allocatable :: state(:)
    integer :: unit, length
    call program%read_checkpoint('heat_restart', step)
    step = max(step, 0)
    if (step == 0) return
    open (newunit=unit, file=restart_file(step), form='unformatted', access='stream', status='old')
    read (unit) u
    read (unit) length
    allocate (state(length))
    read (unit) state
    close (unit)
    call reservoir%load(state)
    if (me == 0) print '(a, i0)', 'the run goes on from step ', step
  end subroutine read_restart

  function restart_file(step) result(name)
    integer, intent(in) :: step
    character(len=40) :: name
    write (name, '(a, i0, a, i0)') 'heat_restart/solver-', step, '-', me
  end function restart_file

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
    integer, parameter :: on_its_own = 50, times = 10
    real(wp) :: plain(coarse, coarse), learnt(coarse, coarse), errors(2)
    integer :: k
    errors = 0
    do k = steps + 1, steps + times * on_its_own
      if (mod(k - steps, on_its_own) == 1) plain = restricted(u)
      if (mod(k - steps, on_its_own) == 1) learnt = plain
      call program%write_input(apply, 'x', features(learnt, k * dt))
      call program%step(apply)
      call program%read_output(apply, 'closure', answer)
      learnt = stepped(learnt, k * dt) + dt * scale * reshape(answer, [coarse, coarse])
      plain = stepped(plain, k * dt)
      u = stepped(u, k * dt)
      if (mod(k - steps, on_its_own) > 0) cycle
      errors = errors + [rms(plain - restricted(u)), rms(learnt - restricted(u))] / times
    end do
    if (me == 0) print '(a, i0, a, es10.3, a, es10.3)', 'error of the coarse grid after ', on_its_own, &
        ' steps alone ', errors(1), ', with what was learnt ', errors(2)
  end subroutine compare_coarse_grids

  real(wp) function rms(t)
    real(wp), intent(in) :: t(:, :)
    rms = sqrt(sum(t**2) / size(t))
  end function rms

end program heat_closure
