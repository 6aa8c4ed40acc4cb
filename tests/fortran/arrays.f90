! arrays.f90: arrays of any rank, kind and stride go in and come out; what does not fit is a fault with a sentence, and
! never the end of the program; objects cannot be used twice, too early, too late or as copies.
!
! SPDX-License-Identifier: BSD-3-Clause
program arrays
  use, intrinsic :: iso_fortran_env, only: int8, int32, int64, real32, real64
  use, intrinsic :: ieee_arithmetic, only: ieee_value, ieee_quiet_nan
  use convoy
  implicit none

  integer, parameter :: n = 8
  type(convoy_context) :: context, copy
  type(convoy_model) :: model
  type(convoy_program) :: program
  type(convoy_network) :: network
  type(convoy_reservoir) :: reservoir
  integer(int8), allocatable :: state(:)
  real(real32) :: r32(4, n), big(8, 2 * n), back(4, n), one(4 * n), wide(2 * n, 8), three(2, 2, n)
  real(real64) :: r64(4, n), back64(4, n), weight64(4, 4), loss, nan
  integer(int32) :: label(n)
  integer :: stat, task, forward, failed = 0, i, unit
  character(len=400) :: message

  ! ---- objects that do not exist ----
  call model%add('relu', stat=stat, errmsg=message)
  call expect('a model that was not created', stat, CVY_E_ARGUMENT, 'a model is used that was not created')
  call program%create(context, stat=stat, errmsg=message)
  call expect('no context', stat, CVY_E_ARGUMENT, 'a context is used that was not created')
  call context%create(threads=1)
  if (context%device() /= 'host') error stop 'the device of a context'
  call context%create(stat=stat, errmsg=message)
  call expect('a second creation', stat, CVY_E_ARGUMENT, 'a context is created twice')
  copy = context
  call network%open(copy, 'nothing', stat=stat, errmsg=message)
  call expect('a copy', stat, CVY_E_ARGUMENT, 'is the copy of another one')
  call network%open(context, 'nothing/here', stat=stat, errmsg=message)
  call expect('no network', stat, CVY_E_ARGUMENT, 'nothing/here')
  call context%create(-1, threads=-3, stat=stat)
  call expect('stat alone', stat, CVY_E_ARGUMENT, '')

  ! ---- a network that is a matrix product ----
  call model%create('product')
  call model%add_input('x', [4])
  call model%add_input('many', [1, 1, 1, 1, 2, 3, 4], stat=stat, errmsg=message)
  call expect('seven dimensions', stat, CVY_E_SHAPE, '7 dimensions')
  call model%add_input('label', [integer ::], 'i33', stat=stat, errmsg=message)
  call expect('a dtype', stat, CVY_E_ARGUMENT, 'i33')
  call model%add_input('label', [integer ::], 'i32')
  call model%add('no_such_layer', stat=stat, errmsg=message)
  call expect('a layer', stat, CVY_E_ARGUMENT, 'no_such_layer', any_status=.true.)
  call model%add('fc', 'fc', 'channels: 4, bias: false', from='x')
  call model%add('softmax_cross_entropy', 'loss', from='fc, label')
  call program%create(context, options=['plan.plannig=measure'], stat=stat, errmsg=message)
  call expect('a key', stat, CVY_E_CONFIG, 'plan.plannig', any_status=.true.)
  call program%create(context, seed=1)
  call program%add_training(model, n, task, optimizer='sgd')
  call program%add_forward(model, n, forward, outputs='fc')
  call program%write_input(forward, 'x', r32, stat=stat)
  call expect('before the plan', stat, CVY_E_ARGUMENT, '')
  call program%plan()
  weight64 = 0
  do i = 1, 4
    weight64(i, i) = 2
  end do
  call program%set('fc.weight', weight64) ! of another kind than the program

  ! ---- arrays ----
  r32 = reshape([(real(i, real32), i = 1, 4 * n)], [4, n])
  call program%write_input(forward, 'x', r32)
  call check_output('real32')
  r64 = r32
  call program%write_input(forward, 'x', r64)
  call check_output('real64')
  big = -1
  big(2:8:2, 1::2) = r32
  call program%write_input(forward, 'x', big(2:8:2, 1::2))
  call check_output('a slice with strides in both dimensions')
  wide(::2, 8:5:-1) = transpose(r32(4:1:-1, :))
  wide(::2, 5:8) = transpose(r32)
  call program%write_input(forward, 'x', transpose(wide(::2, 5:8)))
  call check_output('an expression')
  three = reshape(r32, [2, 2, n])
  call program%write_input(forward, 'x', three, stat=stat, errmsg=message)
  call expect('other extents', stat, CVY_E_SHAPE, 'the extents (2, 2, 8), expected (4, 8)')
  one = reshape(r32, [4 * n])
  call program%write_input(forward, 'x', one, stat=stat, errmsg=message)
  call expect('one dimension', stat, CVY_E_SHAPE, 'the extents (32), expected (4, 8)')
  call program%write_input(forward, 'x', reshape(r32, [4, 1, 1, n]))
  call check_output('extents of 1')
  call program%write_input(forward, 'x', r32(:, :3), stat=stat, errmsg=message)
  call expect('too few', stat, CVY_E_SHAPE, '32 elements, not 12')
  call program%write_input(forward, 'y', r32, stat=stat, errmsg=message)
  call expect('no such input', stat, CVY_E_ARGUMENT, 'no input "y"')
  call program%write_input(forward + 7, 'x', r32, stat=stat, errmsg=message)
  call expect('no such task', stat, CVY_E_ARGUMENT, 'task 8')
  call program%write_input(forward, 'x', label, stat=stat, errmsg=message)
  call expect('integers for reals', stat, CVY_E_ARGUMENT, 'x is of dtype f32, but the array is of dtype i32', any_status=.true.)
  call program%write_input(task, 'label', [(int(i, int64) * 1000000000_int64, i = 1, n)], stat=stat, errmsg=message)
  call expect('an integer that is too large', stat, CVY_E_ARGUMENT, 'element 2 for label is 3000000000')

  big = -1
  call program%read_output(forward, 'fc', big(2:8:2, 2::2))
  if (any(big(2:8:2, 2::2) /= 2 * (r32 - 1)) .or. any(big(1::2, :) /= -1) .or. any(big(:, 1::2) /= -1)) &
      call fault('an output into a slice')
  call program%read_output(forward, 'fc', back64(:, :2), stat=stat, errmsg=message)
  call expect('too small for the output', stat, CVY_E_SHAPE, '32 elements, not 8')
  call program%get('fc.wait', weight64, stat=stat, errmsg=message)
  call expect('a variable', stat, CVY_E_ARGUMENT, 'fc.wait')
  call program%get('fc.weight', weight64(:, :3), stat=stat, errmsg=message)
  call expect('a variable in too few elements', stat, CVY_E_ARGUMENT, 'not 12')

  ! ---- a value that is not finite, a label that does not exist ----
  nan = ieee_value(nan, ieee_quiet_nan)
  label = 0
  r64(1, 1) = nan
  call program%write_input(task, 'x', r64)
  call program%write_input(task, 'label', label)
  call program%step(task, 0.1_real64, stat=stat, errmsg=message)
  call expect('NaN', stat, CVY_E_NUMERIC, '')
  r64(1, 1) = 1
  label(3) = 4
  call program%write_input(task, 'x', r64)
  call program%write_input(task, 'label', label)
  call program%step(task, 0.1_real64, stat=stat, errmsg=message)
  call expect('a label', stat, CVY_E_FORMAT, '4')
  label(3) = 3
  call program%write_input(task, 'label', label)
  call program%step(task, 0.1_real64)
  call program%loss(task, 'loss', loss)
  if (.not. loss > 0) call fault('the loss')
  call program%loss(task, 'lost', loss, stat=stat, errmsg=message)
  call expect('a loss', stat, CVY_E_ARGUMENT, 'lost')

  ! ---- different numbers of samples; a reservoir ----
  call program%set_rows(forward, 3)
  call program%write_input(forward, 'x', r32(:, :3))
  call program%write_input(forward, 'x', transpose(r32(:, :3)), stat=stat, errmsg=message)
  call expect('rows of another shape', stat, CVY_E_SHAPE, 'the extents (3, 4), expected (4, 3)')
  call program%step(forward)
  call program%read_output(forward, 'fc', back(:, :3))
  call program%set_rows(task, 3, stat=stat, errmsg=message)
  call expect('no weight', stat, CVY_E_ARGUMENT, 'loss loss does not read the input weight')
  call program%set_rows(forward, n)
  call reservoir%create(10, keep='oldest', stat=stat, errmsg=message)
  call expect('keep', stat, CVY_E_ARGUMENT, 'oldest')
  call reservoir%create(10, keep='newest', seed=1)
  call reservoir%add_field('x', [4])
  call reservoir%put('x', transpose(r64), stat=stat, errmsg=message)
  call expect('samples of another shape', stat, CVY_E_SHAPE, 'the extents (8, 4), expected (4, 8)')
  do i = 1, 4
    call reservoir%put('x', big(2:8:2, i:i + 2))
    call reservoir%push()
  end do
  if (reservoir%held() /= 10) call fault('what the reservoir holds')
  if (reservoir%seen() /= 12) call fault('what the reservoir has seen')
  call reservoir%draw(program, forward)
  call program%step(forward)
  call reservoir%save(state)
  call reservoir%load(state(2:), stat=stat, errmsg=message)
  call expect('a state that is cut', stat, CVY_E_FORMAT, 'no state')
  call reservoir%load(state)
  call reservoir%destroy()

  ! ---- files ----
  call program%get('fc.weight', weight64)
  call program%save('weights.safetensors')
  call program%set('fc.weight', 0 * weight64)
  call program%load('weights.safetensors')
  call program%get('fc.weight', r64(:, :4))
  if (any(r64(:, :4) /= weight64)) call fault('weights from a file')
  open (newunit=unit, file='broken.safetensors')
  write (unit, '(a)') 'not weights'
  close (unit)
  call program%load('broken.safetensors', stat=stat, errmsg=message)
  call expect('a damaged file', stat, CVY_E_FORMAT, 'broken.safetensors')

  ! ---- the end: a finaliser destroys the model that is left in a scope ----
  do i = 1, 50
    call short_life()
  end do
  call program%destroy()
  call program%destroy()
  call program%step(task, stat=stat, errmsg=message)
  call expect('after the end', stat, CVY_E_ARGUMENT, 'a program is used that was not created, was destroyed')
  call model%destroy()
  call context%destroy()
  if (failed > 0) error stop 'checks failed'
  print '(a)', 'all checks passed'

contains

  subroutine fault(what)
    character(len=*), intent(in) :: what
    print '(a)', 'failed: ' // what
    failed = failed + 1
  end subroutine fault

  subroutine expect(what, status, expected, text, any_status)
    character(len=*), intent(in) :: what, text
    integer, intent(in) :: status, expected
    logical, intent(in), optional :: any_status
    logical :: is_right
    is_right = status == expected
    if (present(any_status)) is_right = status < 0
    if (.not. is_right) print '(a, i0, a, i0)', 'status ', status, ', expected ', expected
    if (text /= '' .and. index(message, text) == 0) then
      print '(a)', 'message: ' // trim(message)
      is_right = .false.
    end if
    if (.not. is_right) call fault(what)
    message = ''
  end subroutine expect

  subroutine check_output(what)
    character(len=*), intent(in) :: what
    call program%step(forward)
    call program%read_output(forward, 'fc', back)
    call program%read_output(forward, 'fc', back64)
    if (any(back /= 2 * r32) .or. any(back64 /= 2 * r32)) call fault(what)
    r32 = r32 + 1
    r64 = r32
    big(2:8:2, 1::2) = r32
    wide(::2, 5:8) = transpose(r32)
  end subroutine check_output

  subroutine short_life()
    type(convoy_context) :: here
    type(convoy_model) :: small
    type(convoy_program) :: trained
    integer :: number
    call here%create(threads=1)
    call small%create('small')
    call small%add_input('x', [2])
    call small%add('fc', 'fc', 'channels: 1')
    call trained%create(here, options=[character(20) :: 'plan.wisdom=off'])
    call trained%add_forward(small, 1, number)
    call trained%plan()
    call trained%destroy()
    call here%destroy()
  end subroutine short_life

end program arrays
