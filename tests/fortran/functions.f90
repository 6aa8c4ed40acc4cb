! functions.f90: procedures of the program are layers and losses of networks with data of their own, in f32 and f64. A
! wrong gradient is found, a failure comes back with a sentence.
!
! SPDX-License-Identifier: BSD-3-Clause
module own
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  integer, parameter :: wp = real64
  integer :: calls = 0, fails_at = 0
  real(wp) :: wrong = 0, scale = 1

contains

  ! The mean squared difference of two sources of three elements.
  subroutine mse(x, y, stat)
    real(wp), intent(in) :: x(:, :)
    real(wp), intent(out) :: y(:, :)
    integer, intent(out) :: stat
    y(1, :) = sum((x(1:3, :) - x(4:6, :))**2, 1) / 3
    calls = calls + 1
    stat = merge(17, 0, calls == fails_at)
  end subroutine mse

  subroutine mse_gradient(x, dy, dx, stat)
    real(wp), intent(in) :: x(:, :), dy(:, :)
    real(wp), intent(out) :: dx(:, :)
    integer, intent(out) :: stat
    integer :: k
    do k = 1, size(x, 2)
      dx(1:3, k) = 2 * (x(1:3, k) - x(4:6, k)) / 3 * dy(1, k)
    end do
    dx(4:6, :) = -dx(1:3, :)
    dx(2, :) = dx(2, :) * (1 + wrong)
    stat = 0
  end subroutine mse_gradient

  subroutine scaled(x, y, stat)
    real(wp), intent(in) :: x(:, :)
    real(wp), intent(out) :: y(:, :)
    integer, intent(out) :: stat
    y = scale * x
    stat = 0
  end subroutine scaled

  subroutine scaled_gradient(x, dy, dx, stat)
    real(wp), intent(in) :: x(:, :), dy(:, :)
    real(wp), intent(out) :: dx(:, :)
    integer, intent(out) :: stat
    dx = scale * dy
    stat = merge(0, 1, size(x) == size(dx))
  end subroutine scaled_gradient

end module own

program functions
  use mpi_f08
  use convoy
  use own
  implicit none

  integer, parameter :: rows = 6, steps = 20
  type(convoy_context) :: context, none
  type(convoy_model) :: model
  real(wp) :: weight(4, 8), expected(4, 8), x(6, 2)
  integer :: stat, failed = 0
  character(len=400) :: message

  call MPI_Init()
  call none%add_function('mse', mse, mse_gradient, stat=stat)
  call expect('no context', stat, CVY_E_ARGUMENT, '')
  call context%create(MPI_COMM_WORLD%MPI_VAL, threads=1)
  call context%add_function('own_mse', mse, mse_gradient, sources=2)
  call context%add_function('own_mse', mse, mse_gradient, stat=stat, errmsg=message)
  call expect('a name that is taken', stat, CVY_E_ARGUMENT, "the name 'own_mse' is taken")
  call context%add_function('five', mse, mse_gradient, sources=5, stat=stat, errmsg=message)
  call expect('five sources', stat, CVY_E_ARGUMENT, 'expected 1 to 4')
  scale = 3
  call context%add_function('scaled', scaled, scaled_gradient, result=[3])

  ! ---- the check ----
  call context%check_function('own_mse', [3, 3])
  call context%check_function('scaled', [3])
  x = reshape([290, 300, 310, 280, 301, 305, 270, 250, 260, 271, 253, 259], [6, 2])
  call context%check_function('own_mse', [3, 3], x)
  call context%check_function('own_mse', [2, 3], x, stat=stat, errmsg=message)
  call expect('extents', stat, CVY_E_SHAPE, 'x has the extents (6, 2), expected (5, 2)')
  call context%check_function('no_such', [3], stat=stat, errmsg=message)
  call expect('a name', stat, CVY_E_ARGUMENT, "has no operator 'no_such'; it has own_mse, scaled")
  wrong = 0.01_wp
  call context%check_function('own_mse', [3, 3], x, stat=stat, errmsg=message)
  call expect('a wrong gradient', stat, CVY_E_NUMERIC, 'gradient of src0, element 1, is ')
  wrong = 0
  calls = 0
  fails_at = 1
  call context%check_function('own_mse', [3, 3], stat=stat, errmsg=message)
  call expect('a failure in the check', stat, CVY_E_NUMERIC, 'ended with stat = 17')

  ! ---- training ----
  fails_at = 0
  call train('f64', .false., expected, stat)
  call train('f64', .true., weight, stat)
  call check('f64', maxval(abs(weight - expected)) < 1e-13_wp)
  call train('f32', .false., expected, stat)
  call train('f32', .true., weight, stat)
  call check('f32', maxval(abs(weight - expected)) < 2e-6_wp)
  call check('training changed the weights', maxval(abs(weight)) > 0)
  calls = 0
  fails_at = 3
  call train('f32', .true., weight, stat, message)
  call expect('a failure', stat, CVY_E_ARGUMENT, 'the Fortran procedure ended with stat = 17')
  call check('the third call failed', calls == 3)

  call model%create('m')
  call model%add_input('x', [4])
  call model%add('scaled', stat=stat, errmsg=message)
  call expect('a model without the context', stat, CVY_E_CONFIG, 'scaled')
  call model%use_context(none, stat=stat)
  call expect('no context for a model', stat, CVY_E_ARGUMENT, '')
  call model%destroy()
  call context%destroy()
  call MPI_Finalize()
  if (failed > 0) error stop 'checks failed'
  print '(a)', 'all checks passed'

contains

  ! By a loss of the program, or by that of the library.
  subroutine train(dtype, is_own, weight, stat, message)
    character(len=*), intent(in) :: dtype
    logical, intent(in) :: is_own
    real(wp), intent(out) :: weight(:, :)
    integer, intent(out) :: stat
    character(len=*), intent(inout), optional :: message
    type(convoy_model) :: network
    type(convoy_program) :: program
    real(wp) :: x(4, rows), y(3, rows)
    integer :: task, step, i
    call network%create('own')
    call network%use_context(context)
    call network%add_input('x', [4])
    call network%add_input('y', [3])
    call network%add('fc', 'hidden', 'channels: 8', from='x')
    call network%add('tanh')
    call network%add('fc', 'small', 'channels: 3')
    if (is_own) then
      call network%add('scaled', 'out')
      call network%add('own_mse', 'each', from='out, y')
      call network%add('mean', 'loss')
    else
      call network%add('scale', 'out', 'by: 3')
      call network%add('mse', 'loss', from='out, y')
    end if
    call program%create(context, seed=1, dtype=dtype)
    call program%add_training(network, rows * context%nranks(), task)
    call program%plan()
    x = reshape([(sin(0.7_wp * i + context%rank()), i = 1, size(x))], shape(x))
    y = reshape([(cos(0.4_wp * i), i = 1, size(y))], shape(y))
    do step = 1, steps
      call program%write_input(task, 'x', x)
      call program%write_input(task, 'y', y)
      call program%step(task, learning_rate=0.1_wp, stat=stat, errmsg=message)
      if (stat /= CVY_OK) exit
    end do
    weight = 0
    call program%get('hidden.weight', weight)
    call program%destroy()
  end subroutine train

  subroutine check(what, is_right)
    character(len=*), intent(in) :: what
    logical, intent(in) :: is_right
    if (is_right) return
    failed = failed + 1
    print '(2a)', 'FAILED: ', what
  end subroutine check

  subroutine expect(what, got, wanted, part)
    character(len=*), intent(in) :: what, part
    integer, intent(in) :: got, wanted
    call check(what, got == wanted .and. (part == '' .or. index(message, part) > 0))
    if (got /= wanted .or. (part /= '' .and. index(message, part) == 0)) print '(i0, 2a)', got, ': ', trim(message)
  end subroutine expect

end program functions
