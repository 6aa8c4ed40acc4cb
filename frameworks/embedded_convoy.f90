! embedded_convoy.f90: how long a Fortran program waits for a small network in convoy (scripts/compare_embedded.sh).
!
!     embedded_convoy NETWORK.onnx THREADS
!
! SPDX-License-Identifier: BSD-3-Clause
program embedded_convoy
  use, intrinsic :: iso_fortran_env, only: int64, real32, real64
  use convoy
  implicit none

  integer, parameter :: sizes(3) = [1, 64, 4096], rounds = 5
  type(convoy_context) :: context
  type(convoy_network) :: network
  real(real32), allocatable :: x(:, :), y(:, :)
  real(real64) :: best
  integer(int64) :: from, to, rate
  integer :: i, k, n, round, calls, threads, inputs(1), outputs(1)
  character(len=400) :: word

  call get_command_argument(2, word)
  read (word, *) threads
  call get_command_argument(1, word)
  call context%create(threads=threads)
  call network%open(context, word, batch=maxval(sizes))
  inputs = network%input_extents()
  outputs = network%output_extents()
  do i = 1, size(sizes)
    n = sizes(i)
    calls = 400000 / (n + 200)
    allocate (x(inputs(1), n), y(outputs(1), n))
    call random_number(x)
    best = huge(best)
    do round = 0, rounds ! the first one warms up
      call system_clock(from, rate)
      do k = 1, calls
        call network%apply(x, y)
      end do
      call system_clock(to)
      if (round > 0) best = min(best, 1e6_real64 * real(to - from, real64) / real(rate, real64) / calls)
    end do
    print '(i0, 1x, f0.3)', n, best
    deallocate (x, y)
  end do
  call network%destroy()
  call context%destroy()
end program embedded_convoy
