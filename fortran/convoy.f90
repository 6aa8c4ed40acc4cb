! convoy.f90: train and use networks from Fortran, on the program's own communicator.
!
!     use convoy
!     type(convoy_context) :: context
!     type(convoy_network) :: network
!     call context%create()
!     call network%open(context, 'runs/demo')
!     call network%apply(x, y)                    ! x(features, samples), y(outputs, samples)
!
! Arrays. A tensor of convoy is row-major, with the samples first: [samples, channels, height, width]. The same memory
! is an array of Fortran with the extents in reverse order: x(width, height, channels, samples). Extents of 1 may be
! left out. Arrays may be of real32 or real64 (labels: int32 or int64) and of any rank, and slices need not be
! contiguous: the compiler copies those.
!
! Errors. Every procedure that can fail has the optional arguments stat and errmsg, as ALLOCATE has: stat is 0, or a
! constant such as CVY_E_ARGUMENT; errmsg says what happened, where, and what to do. Without stat, a fault ends the
! program by ERROR STOP with that message. Positive values (CVY_END, CVY_STOPPED) are answers and no faults.
!
! Objects own what they made until they are destroyed or go out of scope. In one scope, call destroy for those that were
! made from a context, and then for the context: compilers finalise local variables in any order. A context is destroyed
! before MPI is finalised. Objects cannot be copied: after an assignment the left side is an object that was not created
! (allocate with source=, and array constructors, copy without asking: do not use them here). A model must live until
! the programs that it was added to are planned.
!
! The module convoy_c has the whole C API.
!
! SPDX-License-Identifier: BSD-3-Clause
module convoy
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int8, int32, int64, real32, real64
  use convoy_c
  implicit none
  private

  public :: CVY_OK, CVY_END, CVY_NOT_APPLICABLE, CVY_STOPPED, CVY_E_ARGUMENT, CVY_E_SHAPE, CVY_E_CONFIG, CVY_E_IO, &
      CVY_E_FORMAT, CVY_E_MEMORY, CVY_E_COMM, CVY_E_UNSUPPORTED, CVY_E_NUMERIC, CVY_E_INTERNAL, CVY_E_DISAGREE
  public :: convoy_train, convoy_version

  ! A function of the program, which is a layer of networks, and its gradient. x(elements, samples) has the elements of
  ! all sources of the layer, one source after the other; y(elements, samples) is the result. Samples are independent of
  ! each other. dy is the gradient of the loss for y, and dx that for x, to be written. stat: 0, or another number if it
  ! failed, which ends the call that runs it. Numbers of a network in f32 are converted.
  abstract interface
    subroutine convoy_value(x, y, stat)
      import :: real64
      real(real64), intent(in) :: x(:, :)
      real(real64), intent(out) :: y(:, :)
      integer, intent(out) :: stat
    end subroutine convoy_value
    subroutine convoy_gradient(x, dy, dx, stat)
      import :: real64
      real(real64), intent(in) :: x(:, :), dy(:, :)
      real(real64), intent(out) :: dx(:, :)
      integer, intent(out) :: stat
    end subroutine convoy_gradient
  end interface

  type :: host_function
    procedure(convoy_value), pointer, nopass :: value => null()
    procedure(convoy_gradient), pointer, nopass :: gradient => null()
    type(host_function), pointer :: next => null()
  end type host_function

  type :: kept_line
    character(len=400) :: text = ''
  end type kept_line

  ! A group of ranks with its threads; everything else is made from one.
  type, public :: convoy_context
    private
    type(c_ptr) :: handle = c_null_ptr
    type(host_function), pointer :: functions => null()
  contains
    procedure, private :: context_assign
    ! create([comm], [threads], [stat], [errmsg], [watchdog], [watchdog_ends]): over the ranks of a communicator, which is an integer, or
    ! comm%MPI_VAL of mpi_f08. It is duplicated. MPI must be initialised, at any thread level. Collective over comm.
    ! Without comm: one rank alone. watchdog: seconds for which a rank waits for others in a call, before it prints which
    ! ranks do not come and where all were last; with watchdog_ends it then ends by an error stop, and so the job.
    procedure :: create => context_create
    generic :: assignment(=) => context_assign
    procedure :: destroy => context_destroy ! frees it before it goes out of scope
    procedure :: rank => context_rank       ! this rank's number, from 0
    procedure :: nranks => context_nranks
    procedure :: threads => context_threads ! compute threads of this rank
    ! add_function(name, value, gradient, [result], [sources]): the layer `name` of models that use the context, computed
    ! by value(x, y, stat) and gradient(x, dy, dx, stat). result: extents of the result of a sample; sources: how many
    ! layers or inputs it reads. Both are 1 by default. Collective.
    procedure :: add_function => context_add_function
    ! check_function(name, sources, [x]): compares the gradient with finite differences, for random numbers or for x,
    ! and more. sources: the elements of each source.
    procedure :: check_function => context_check_function
    final :: context_finalise
  end type convoy_context

  ! The description of a network.
  type, public :: convoy_model
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure, private :: model_assign
    procedure :: create => model_create        ! create(name): an empty model
    procedure :: zoo => model_zoo              ! zoo(name, input, classes, [options]): a network of the zoo
    procedure :: from_file => model_from_file  ! from_file(path, [options]): a network in an ONNX file or one of Caffe
    procedure :: add_input => model_add_input  ! add_input(name, extents): real; add_input(name, extents, 'i32'): labels
    procedure :: add => model_add              ! add(op, [name], [options], [from]): a layer
    procedure :: use_context => model_use_context ! before layers that are functions of the program are added
    generic :: assignment(=) => model_assign
    procedure :: destroy => model_destroy ! frees it before it goes out of scope
    final :: model_finalise
  end type convoy_model

  type :: kept_text
    character(kind=c_char), pointer :: at(:) => null()
  end type kept_text

  ! A set of variables and the tasks over them: training steps and forward passes. A task is known by its number.
  type, public :: convoy_program
    private
    type(c_ptr) :: handle = c_null_ptr
    integer(c_int) :: dtype = CVY_DTYPE_F32
    type(kept_text), allocatable :: kept(:) ! options that the library reads until the program is destroyed
  contains
    procedure, private :: program_assign, program_write_r32, program_write_r64, program_write_i32, program_write_i64, &
        program_read_r32, program_read_r64, program_get_r32, program_get_r64, program_set_r32, program_set_r64
    procedure :: create => program_create             ! create(context, [seed], [dtype], [options])
    procedure :: add_training => program_add_training ! add_training(model, batch, task, ...): batch is the global one
    procedure :: add_forward => program_add_forward   ! add_forward(model, batch, task, [outputs])
    procedure :: plan => program_plan                 ! after all tasks were added, before the first step
    procedure :: rows => program_rows                 ! samples of this rank in a task
    procedure :: first_row => program_first_row       ! number of the first of them in the global batch, from 0
    procedure :: set_rows => program_set_rows         ! set_rows(task, n): how many of them are samples
    generic :: write_input => program_write_r32, program_write_r64, program_write_i32, program_write_i64
    procedure :: step => program_step                 ! step(task, [learning_rate])
    procedure :: flush => program_flush
    procedure :: loss => program_loss                 ! loss(task, name, value)
    generic :: read_output => program_read_r32, program_read_r64
    generic :: get => program_get_r32, program_get_r64 ! get(variable, array)
    generic :: set => program_set_r32, program_set_r64
    procedure :: save => program_save                 ! save(path): writes a safetensors file; on one rank
    procedure :: load => program_load                 ! load(path): reads such a file; on all ranks
    procedure :: write_checkpoint => program_write_checkpoint ! write_checkpoint(folder, step): weights and optimiser
    procedure :: read_checkpoint => program_read_checkpoint   ! read_checkpoint(folder, step): step is -1 if there is none
    generic :: assignment(=) => program_assign
    procedure :: destroy => program_destroy ! frees it before it goes out of scope
    final :: program_finalise
  end type convoy_program

  ! Samples of this rank, of which some are kept, and from which training steps draw.
  type, public :: convoy_reservoir
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure, private :: reservoir_assign, reservoir_put_r32, reservoir_put_r64, reservoir_put_i32, reservoir_put_i64
    procedure :: create => reservoir_create       ! create(capacity, [keep], [seed])
    procedure :: add_field => reservoir_add_field ! add_field(name, extents, [dtype]): before the first sample comes
    generic :: put => reservoir_put_r32, reservoir_put_r64, reservoir_put_i32, reservoir_put_i64
    procedure :: push => reservoir_push           ! adds the samples whose fields were put
    procedure :: draw => reservoir_draw           ! draw(program, task): fills the inputs of a task
    procedure :: set_losses => reservoir_set_losses ! set_losses(losses): of the latest draw, if it keeps by 'loss'
    procedure :: held => reservoir_held           ! samples that it holds
    procedure :: seen => reservoir_seen           ! samples that were ever added
    procedure :: save => reservoir_save           ! save(state): writes it into an array of bytes, which it allocates
    procedure :: load => reservoir_load
    generic :: assignment(=) => reservoir_assign
    procedure :: destroy => reservoir_destroy ! frees it before it goes out of scope
    final :: reservoir_finalise
  end type convoy_reservoir

  ! Samples on their way from solvers to trainers, and weights on their way back.
  type, public :: convoy_stream
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure, private :: stream_assign, stream_put_r32, stream_put_r64, stream_put_i32, stream_put_i64
    procedure :: create => stream_create          ! create(context, role, [reservoir], [program], [queue], [when_full], ...)
    generic :: put => stream_put_r32, stream_put_r64, stream_put_i32, stream_put_i64
    procedure :: push => stream_push              ! on a solver: sends the samples whose fields were put
    procedure :: take => stream_take              ! on a solver: replaces the weights by newer ones, if there are any
    procedure :: flush => stream_flush            ! on a solver: flush(seconds) waits until all samples have arrived
    procedure :: receive => stream_receive        ! on a trainer: .true. as long as solvers may send
    procedure :: publish => stream_publish        ! on a trainer: sends the weights, if solvers have taken the last ones
    procedure :: counts => stream_counts          ! counts([pushed], [delivered], [dropped], [received], ...)
    generic :: assignment(=) => stream_assign
    procedure :: destroy => stream_destroy        ! on all ranks
    final :: stream_finalise
  end type convoy_stream

  ! A trained network that is ready to be applied.
  type, public :: convoy_network
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure, private :: network_assign, network_apply_r32, network_apply_r64, network_apply_u8
    procedure :: open => network_open           ! open(context, target, [outputs], [batch])
    generic :: apply => network_apply_r32, network_apply_r64, network_apply_u8 ! apply(x, y, [input], [output])
    procedure :: input_extents => network_input_extents   ! of a sample, as an array of Fortran
    procedure :: output_extents => network_output_extents
    generic :: assignment(=) => network_assign
    procedure :: destroy => network_destroy ! frees it before it goes out of scope
    final :: network_finalise
  end type convoy_network

  interface
    function c_strlen(text) bind(c, name='strlen')
      import
      type(c_ptr), value :: text
      integer(c_size_t) :: c_strlen
    end function c_strlen
  end interface

contains

  ! ---- texts and errors ----

  function to_c(text) result(out)
    character(len=*), intent(in) :: text
    character(kind=c_char), allocatable :: out(:)
    integer :: i
    allocate (out(len_trim(text) + 1))
    do i = 1, len_trim(text)
      out(i) = text(i:i)
    end do
    out(len_trim(text) + 1) = c_null_char
  end function to_c

  function from_c(pointer) result(out)
    type(c_ptr), intent(in) :: pointer
    character(len=:), allocatable :: out
    character(kind=c_char), pointer :: text(:)
    integer :: i
    if (.not. c_associated(pointer)) then
      out = ''
      return
    end if
    call c_f_pointer(pointer, text, [c_strlen(pointer)])
    allocate (character(len=size(text)) :: out)
    do i = 1, size(text)
      out(i:i) = text(i)
    end do
  end function from_c

  ! Reports the result of a call in the manner of ALLOCATE. message: instead of the library's.
  subroutine finish(status, stat, errmsg, message)
    integer(c_int), intent(in) :: status
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(len=*), intent(in), optional :: message
    character(len=:), allocatable :: text
    if (present(stat)) stat = status
    if (status == CVY_OK) return
    if (present(message)) then
      text = message
    else if (status < 0) then
      text = from_c(cvy_error_text())
    else
      text = from_c(cvy_status_text(status))
    end if
    if (present(errmsg)) errmsg = text
    if (status < 0 .and. .not. present(stat)) error stop 'convoy: ' // text
  end subroutine finish

  ! kind: F32 if the argument was left out.
  integer(c_int) function parse_dtype(dtype, kind) result(status)
    character(len=*), intent(in), optional :: dtype
    integer(c_int), intent(out) :: kind
    character(kind=c_char), allocatable, target :: c_dtype(:)
    kind = CVY_DTYPE_F32
    status = CVY_OK
    if (.not. present(dtype)) return
    c_dtype = to_c(dtype)
    status = cvy_dtype_parse(c_loc(c_dtype), kind)
  end function parse_dtype

  ! Whether an object was created; if not, the call ends with a fault.
  logical function is_made(handle, what, stat, errmsg)
    type(c_ptr), intent(in) :: handle
    character(len=*), intent(in) :: what
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    is_made = c_associated(handle)
    if (.not. is_made) call finish(CVY_E_ARGUMENT, stat, errmsg, &
        'a ' // what // ' is used that was not created, was destroyed, or is the copy of another one')
  end function is_made

  ! Whether an object can be created: it must not exist yet.
  logical function is_free(handle, what, stat, errmsg)
    type(c_ptr), intent(in) :: handle
    character(len=*), intent(in) :: what
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    is_free = .not. c_associated(handle)
    if (.not. is_free) call finish(CVY_E_ARGUMENT, stat, errmsg, 'a ' // what // ' is created twice: destroy it first')
  end function is_free

  function convoy_version() result(out)
    character(len=:), allocatable :: out
    out = from_c(cvy_version())
  end function convoy_version

  ! ---- shapes ----

  ! The shape of a sample in C has the extents of Fortran in reverse order.
  function shape_of(extents) result(out)
    integer, intent(in) :: extents(:)
    type(cvy_shape) :: out
    integer :: i
    out%ndim = size(extents) ! more than CVY_NDIM_MAX is refused by the library
    do i = 1, min(size(extents), CVY_NDIM_MAX)
      out%dim(i) = extents(size(extents) + 1 - i)
    end do
  end function shape_of

  function extents_of(shape) result(out)
    type(cvy_shape), intent(in) :: shape
    integer, allocatable :: out(:)
    integer :: i
    allocate (out(shape%ndim))
    do i = 1, shape%ndim
      out(i) = int(shape%dim(shape%ndim + 1 - i))
    end do
  end function extents_of

  integer(c_int64_t) function elems_of(shape)
    type(cvy_shape), intent(in) :: shape
    integer :: i
    elems_of = 1
    do i = 1, shape%ndim
      elems_of = elems_of * shape%dim(i)
    end do
  end function elems_of

  function text_of(extents) result(out)
    integer, intent(in) :: extents(:)
    character(len=:), allocatable :: out
    character(len=20) :: number
    integer :: i
    out = '('
    do i = 1, size(extents)
      write (number, '(i0)') extents(i)
      out = out // trim(number)
      if (i < size(extents)) out = out // ', '
    end do
    out = out // ')'
  end function text_of

  ! Whether an array is laid out as n samples of this shape: extents of 1 may be added or left out.
  logical function fits(name, extents, sample, n, stat, errmsg)
    character(len=*), intent(in) :: name
    integer, intent(in) :: extents(:)
    type(cvy_shape), intent(in) :: sample
    integer(c_int64_t), intent(in) :: n
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    integer, allocatable :: wanted(:)
    allocate (wanted, source=[extents_of(sample), int(n)])
    fits = size(pack(extents, extents /= 1)) == size(pack(wanted, wanted /= 1))
    if (fits) fits = all(pack(extents, extents /= 1) == pack(wanted, wanted /= 1))
    if (.not. fits) call finish(CVY_E_SHAPE, stat, errmsg, 'the array for ' // name // ' has the extents ' // &
        text_of(extents) // ', expected ' // text_of(wanted))
  end function fits

  ! ---- context ----

  subroutine context_create(self, comm, threads, stat, errmsg, watchdog, watchdog_ends)
    class(convoy_context), intent(inout) :: self
    integer, intent(in), optional :: comm, threads
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    real(real64), intent(in), optional :: watchdog
    logical, intent(in), optional :: watchdog_ends
    type(cvy_context_opts) :: opts
    if (.not. is_free(self%handle, 'context', stat, errmsg)) return
    opts%size = c_sizeof(opts)
    opts%log_level = CVY_LOG_WARN
    if (present(threads)) opts%threads = threads
    if (present(watchdog)) opts%watchdog_s = watchdog
    if (present(watchdog_ends)) then
      if (watchdog_ends) opts%fatal = c_funloc(end_program)
    end if
    if (present(comm)) then
      call finish(cvy_context_create_mpi_fortran(int(comm, c_int), opts, self%handle), stat, errmsg)
    else
      call finish(cvy_context_create(opts, self%handle), stat, errmsg)
    end if
  end subroutine context_create

  ! What the library calls if ranks do not come. Other faults go the way of stat.
  subroutine end_program(user, status, text) bind(C)
    type(c_ptr), value :: user, text
    integer(c_int), value :: status
    if (status == CVY_E_COMM .and. .not. c_associated(user)) error stop 'convoy: ' // from_c(text)
  end subroutine end_program

  subroutine context_destroy(self)
    class(convoy_context), intent(inout) :: self
    call cvy_context_destroy(self%handle)
    call forget_functions(self%functions)
  end subroutine context_destroy

  impure elemental subroutine context_finalise(self)
    type(convoy_context), intent(inout) :: self
    call cvy_context_destroy(self%handle)
    call forget_functions(self%functions)
  end subroutine context_finalise

  impure elemental subroutine context_assign(to, from)
    class(convoy_context), intent(inout) :: to
    type(convoy_context), intent(in) :: from
    if (.not. c_associated(to%handle, from%handle)) call to%destroy()
  end subroutine context_assign

  integer function context_rank(self)
    class(convoy_context), intent(in) :: self
    context_rank = 0
    if (c_associated(self%handle)) context_rank = cvy_context_rank(self%handle)
  end function context_rank

  integer function context_nranks(self)
    class(convoy_context), intent(in) :: self
    context_nranks = 0
    if (c_associated(self%handle)) context_nranks = cvy_context_nranks(self%handle)
  end function context_nranks

  integer function context_threads(self)
    class(convoy_context), intent(in) :: self
    context_threads = 0
    if (c_associated(self%handle)) context_threads = cvy_context_threads(self%handle)
  end function context_threads

  ! ---- model ----

  subroutine model_create(self, name, stat, errmsg)
    class(convoy_model), intent(inout) :: self
    character(len=*), intent(in) :: name
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: c_name(:)
    if (.not. is_free(self%handle, 'model', stat, errmsg)) return
    c_name = to_c(name)
    call finish(cvy_model_create(c_loc(c_name), self%handle), stat, errmsg)
  end subroutine model_create

  ! input: the extents of a sample, (width, height, channels) for pictures; classes: of the labels.
  subroutine model_zoo(self, name, input, classes, options, stat, errmsg)
    class(convoy_model), intent(inout) :: self
    character(len=*), intent(in) :: name
    integer, intent(in) :: input(:), classes
    character(len=*), intent(in), optional :: options
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: c_name(:), c_options(:)
    if (.not. is_free(self%handle, 'model', stat, errmsg)) return
    c_name = to_c(name)
    c_options = to_c('')
    if (present(options)) c_options = to_c(options)
    call finish(cvy_model_zoo(c_loc(c_name), or_null(c_options, present(options)), shape_of(input), &
        int(classes, c_int64_t), self%handle), stat, errmsg)
  end subroutine model_zoo

  subroutine model_from_file(self, path, options, stat, errmsg)
    class(convoy_model), intent(inout) :: self
    character(len=*), intent(in) :: path
    character(len=*), intent(in), optional :: options
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: c_path(:), c_options(:)
    if (.not. is_free(self%handle, 'model', stat, errmsg)) return
    c_path = to_c(path)
    c_options = to_c('')
    if (present(options)) c_options = to_c(options)
    call finish(cvy_model_from_file(c_loc(c_path), or_null(c_options, present(options)), self%handle), stat, errmsg)
  end subroutine model_from_file

  ! The text, or NULL if the argument was left out.
  type(c_ptr) function or_null(text, is_given)
    character(kind=c_char), intent(in), target :: text(:)
    logical, intent(in) :: is_given
    or_null = c_null_ptr
    if (is_given) or_null = c_loc(text)
  end function or_null

  ! extents: of a sample; an empty array for one number, such as a label. dtype: 'f32' (the program's own), 'i32', 'i64'
  ! or 'u8'.
  subroutine model_add_input(self, name, extents, dtype, stat, errmsg)
    class(convoy_model), intent(inout) :: self
    character(len=*), intent(in) :: name
    integer, intent(in) :: extents(:)
    character(len=*), intent(in), optional :: dtype
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: c_name(:)
    integer(c_int) :: kind, status
    if (.not. is_made(self%handle, 'model', stat, errmsg)) return
    c_name = to_c(name)
    status = parse_dtype(dtype, kind)
    if (status == CVY_OK) status = cvy_model_add_input(self%handle, c_loc(c_name), kind, shape_of(extents))
    call finish(status, stat, errmsg)
  end subroutine model_add_input

  ! op, options and from are those of a layer in a job file: 'fc', 'channels: 64', 'x'. from: the layers or inputs that
  ! it reads; by default the layer that was added before.
  subroutine model_add(self, op, name, options, from, stat, errmsg)
    class(convoy_model), intent(inout) :: self
    character(len=*), intent(in) :: op
    character(len=*), intent(in), optional :: name, options, from
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: c_op(:), c_name(:), c_options(:), c_from(:)
    if (.not. is_made(self%handle, 'model', stat, errmsg)) return
    c_op = to_c(op)
    c_name = optional_c(name)
    c_options = optional_c(options)
    c_from = optional_c(from)
    call finish(cvy_model_add(self%handle, c_loc(c_op), or_null(c_name, present(name)), &
        or_null(c_options, present(options)), or_null(c_from, present(from))), stat, errmsg)
  end subroutine model_add

  function optional_c(text) result(out)
    character(len=*), intent(in), optional :: text
    character(kind=c_char), allocatable :: out(:)
    if (present(text)) then
      out = to_c(text)
    else
      out = to_c('')
    end if
  end function optional_c

  subroutine model_destroy(self)
    class(convoy_model), intent(inout) :: self
    call cvy_model_destroy(self%handle)
  end subroutine model_destroy

  impure elemental subroutine model_finalise(self)
    type(convoy_model), intent(inout) :: self
    call cvy_model_destroy(self%handle)
  end subroutine model_finalise

  impure elemental subroutine model_assign(to, from)
    class(convoy_model), intent(inout) :: to
    type(convoy_model), intent(in) :: from
    if (.not. c_associated(to%handle, from%handle)) call to%destroy()
  end subroutine model_assign

  ! ---- program ----

  ! dtype: 'f32', 'bf16' or 'f64'. options: 'key=value' with keys of the job file, such as 'plan.planning=measure'; the
  ! list is in convoy/program.h (cvy_program_opts_set).
  subroutine program_create(self, context, seed, dtype, options, stat, errmsg)
    class(convoy_program), intent(inout) :: self
    type(convoy_context), intent(in) :: context
    integer, intent(in), optional :: seed
    character(len=*), intent(in), optional :: dtype, options(:)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(cvy_program_opts) :: opts
    integer(c_int) :: status
    if (.not. is_free(self%handle, 'program', stat, errmsg)) return
    if (.not. is_made(context%handle, 'context', stat, errmsg)) return
    opts%size = c_sizeof(opts)
    if (present(seed)) opts%seed = seed
    status = CVY_OK
    if (present(options)) status = set_options(self, opts, options)
    if (status == CVY_OK .and. present(dtype)) status = parse_dtype(dtype, opts%dtype)
    if (status == CVY_OK) status = cvy_program_create(context%handle, opts, self%handle)
    self%dtype = merge(CVY_DTYPE_F64, CVY_DTYPE_F32, opts%dtype == CVY_DTYPE_F64)
    if (status /= CVY_OK) call forget_texts(self)
    call finish(status, stat, errmsg)
  end subroutine program_create

  integer(c_int) function set_options(self, opts, options) result(status)
    class(convoy_program), intent(inout) :: self
    type(cvy_program_opts), intent(inout) :: opts
    character(len=*), intent(in) :: options(:)
    character(kind=c_char), allocatable, target :: key(:)
    integer :: i, at
    status = CVY_OK
    allocate (self%kept(size(options)))
    do i = 1, size(options)
      at = index(options(i), '=')
      key = to_c(options(i)(:max(at - 1, 0)))
      allocate (self%kept(i)%at, source=to_c(adjustl(options(i)(at + 1:))))
      status = cvy_program_opts_set(opts, c_loc(key), c_loc(self%kept(i)%at))
      if (status /= CVY_OK) return
    end do
  end function set_options

  subroutine forget_texts(self)
    class(convoy_program), intent(inout) :: self
    integer :: i
    if (.not. allocated(self%kept)) return
    do i = 1, size(self%kept)
      if (associated(self%kept(i)%at)) deallocate (self%kept(i)%at)
    end do
    deallocate (self%kept)
  end subroutine forget_texts

  ! batch: samples of all ranks in a step. The optional arguments are those of cvy_training_opts: losses and trains are
  ! lists of names; optimizer is 'sgd', 'adam' ..; optimizer_options its options, 'momentum: 0.9'; accumulate a number
  ! of micro-batches.
  subroutine program_add_training(self, model, batch, task, losses, trains, optimizer, optimizer_options, &
      weight_decay, clip_norm, accumulate, outputs, stat, errmsg)
    class(convoy_program), intent(inout) :: self
    type(convoy_model), intent(in) :: model
    integer, intent(in) :: batch
    integer, intent(out) :: task
    character(len=*), intent(in), optional :: losses, trains, optimizer, optimizer_options, outputs
    real(real64), intent(in), optional :: weight_decay, clip_norm
    integer, intent(in), optional :: accumulate
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: c_losses(:), c_trains(:), c_optimizer(:), c_options(:), c_outputs(:)
    type(cvy_training_opts) :: opts
    integer(c_int) :: number
    task = -1
    if (.not. is_made(self%handle, 'program', stat, errmsg)) return
    if (.not. is_made(model%handle, 'model', stat, errmsg)) return
    c_losses = optional_c(losses)
    c_trains = optional_c(trains)
    c_optimizer = optional_c(optimizer)
    c_options = optional_c(optimizer_options)
    c_outputs = optional_c(outputs)
    opts%size = c_sizeof(opts)
    opts%losses = or_null(c_losses, present(losses))
    opts%trains = or_null(c_trains, present(trains))
    opts%optimizer = or_null(c_optimizer, present(optimizer))
    opts%optimizer_options = or_null(c_options, present(optimizer_options))
    opts%outputs = or_null(c_outputs, present(outputs))
    if (present(weight_decay)) opts%weight_decay = weight_decay
    if (present(clip_norm)) opts%clip_norm = clip_norm
    if (present(accumulate)) opts%accumulate = accumulate
    number = -1
    call finish(cvy_program_add_training(self%handle, model%handle, int(batch, c_int64_t), opts, number), stat, errmsg)
    task = number
  end subroutine program_add_training

  ! outputs: 'layer1, layer2', those that read_output can read; by default the main output of the model.
  subroutine program_add_forward(self, model, batch, task, outputs, stat, errmsg)
    class(convoy_program), intent(inout) :: self
    type(convoy_model), intent(in) :: model
    integer, intent(in) :: batch
    integer, intent(out) :: task
    character(len=*), intent(in), optional :: outputs
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: c_outputs(:)
    integer(c_int) :: number
    task = -1
    if (.not. is_made(self%handle, 'program', stat, errmsg)) return
    if (.not. is_made(model%handle, 'model', stat, errmsg)) return
    c_outputs = optional_c(outputs)
    number = -1
    call finish(cvy_program_add_forward(self%handle, model%handle, int(batch, c_int64_t), &
        or_null(c_outputs, present(outputs)), number), stat, errmsg)
    task = number
  end subroutine program_add_forward

  ! Collective.
  subroutine program_plan(self, stat, errmsg)
    class(convoy_program), intent(inout) :: self
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    if (.not. is_made(self%handle, 'program', stat, errmsg)) return
    call finish(cvy_program_plan(self%handle), stat, errmsg)
  end subroutine program_plan

  integer function program_rows(self, task)
    class(convoy_program), intent(in) :: self
    integer, intent(in) :: task
    program_rows = 0
    if (c_associated(self%handle)) program_rows = int(cvy_program_rows(self%handle, int(task, c_int)))
  end function program_rows

  integer function program_first_row(self, task)
    class(convoy_program), intent(in) :: self
    integer, intent(in) :: task
    program_first_row = 0
    if (c_associated(self%handle)) program_first_row = int(cvy_program_first_row(self%handle, int(task, c_int)))
  end function program_first_row

  ! Ranks may have different numbers of samples, also none, if the losses read the input 'weight' of one number for each
  ! sample, which is set here. Arrays of the task then have n samples, until the next call.
  subroutine program_set_rows(self, task, n, stat, errmsg)
    class(convoy_program), intent(inout) :: self
    integer, intent(in) :: task, n
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    if (.not. is_made(self%handle, 'program', stat, errmsg)) return
    call finish(cvy_program_set_rows(self%handle, int(task, c_int), int(n, c_int64_t)), stat, errmsg)
  end subroutine program_set_rows

  ! Copies an array (sample extents, rows) into an input of a task.
  subroutine write_any(self, task, name, dtype, data, extents, stat, errmsg)
    class(convoy_program), intent(inout) :: self
    integer, intent(in) :: task, extents(:)
    character(len=*), intent(in) :: name
    integer(c_int), intent(in) :: dtype
    type(c_ptr), intent(in) :: data
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: c_name(:)
    type(cvy_shape) :: sample
    integer(c_int64_t) :: rows, elems
    if (.not. is_made(self%handle, 'program', stat, errmsg)) return
    c_name = to_c(name)
    rows = cvy_program_samples(self%handle, int(task, c_int))
    elems = product(int(extents, c_int64_t))
    if (cvy_program_part(self%handle, int(task, c_int), c_loc(c_name), sample) == CVY_OK) then
      if (rows * elems_of(sample) == elems) then
        if (.not. fits('input ' // name, extents, sample, rows, stat, errmsg)) return
      end if
    end if
    call finish(cvy_program_write_input(self%handle, int(task, c_int), c_loc(c_name), dtype, data, elems), stat, errmsg)
  end subroutine write_any

  subroutine program_write_r32(self, task, name, array, stat, errmsg)
    class(convoy_program), intent(inout) :: self
    integer, intent(in) :: task
    character(len=*), intent(in) :: name
    real(real32), intent(in), contiguous, target :: array(..)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call write_any(self, task, name, CVY_DTYPE_F32, c_loc(array), shape(array), stat, errmsg)
  end subroutine program_write_r32

  subroutine program_write_r64(self, task, name, array, stat, errmsg)
    class(convoy_program), intent(inout) :: self
    integer, intent(in) :: task
    character(len=*), intent(in) :: name
    real(real64), intent(in), contiguous, target :: array(..)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call write_any(self, task, name, CVY_DTYPE_F64, c_loc(array), shape(array), stat, errmsg)
  end subroutine program_write_r64

  subroutine program_write_i32(self, task, name, array, stat, errmsg)
    class(convoy_program), intent(inout) :: self
    integer, intent(in) :: task
    character(len=*), intent(in) :: name
    integer(int32), intent(in), contiguous, target :: array(..)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call write_any(self, task, name, CVY_DTYPE_I32, c_loc(array), shape(array), stat, errmsg)
  end subroutine program_write_i32

  subroutine program_write_i64(self, task, name, array, stat, errmsg)
    class(convoy_program), intent(inout) :: self
    integer, intent(in) :: task
    character(len=*), intent(in) :: name
    integer(int64), intent(in), contiguous, target :: array(..)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call write_any(self, task, name, CVY_DTYPE_I64, c_loc(array), shape(array), stat, errmsg)
  end subroutine program_write_i64

  ! Runs a task once; a training task makes one step. Collective.
  subroutine program_step(self, task, learning_rate, stat, errmsg)
    class(convoy_program), intent(inout) :: self
    integer, intent(in) :: task
    real(real64), intent(in), optional :: learning_rate
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    real(c_double) :: rate
    if (.not. is_made(self%handle, 'program', stat, errmsg)) return
    rate = 0
    if (present(learning_rate)) rate = learning_rate
    call finish(cvy_program_step(self%handle, int(task, c_int), rate), stat, errmsg)
  end subroutine program_step

  subroutine program_flush(self, stat, errmsg)
    class(convoy_program), intent(inout) :: self
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    if (.not. is_made(self%handle, 'program', stat, errmsg)) return
    call finish(cvy_program_flush(self%handle), stat, errmsg)
  end subroutine program_flush

  ! The value of a loss in the latest run of the task. Of a training task: over the global batch, equal on all ranks. Of
  ! a forward task: this rank's part, to be added over the ranks.
  subroutine program_loss(self, task, name, value, stat, errmsg)
    class(convoy_program), intent(in) :: self
    integer, intent(in) :: task
    character(len=*), intent(in) :: name
    real(real64), intent(out) :: value
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: c_name(:)
    value = 0
    if (.not. is_made(self%handle, 'program', stat, errmsg)) return
    c_name = to_c(name)
    call finish(cvy_program_loss(self%handle, int(task, c_int), c_loc(c_name), value), stat, errmsg)
  end subroutine program_loss

  ! Copies this rank's rows of an output into an array (sample extents, rows).
  subroutine read_any(self, task, name, dtype, data, extents, stat, errmsg)
    class(convoy_program), intent(in) :: self
    integer, intent(in) :: task, extents(:)
    character(len=*), intent(in) :: name
    integer(c_int), intent(in) :: dtype
    type(c_ptr), intent(in) :: data
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: c_name(:)
    type(cvy_shape) :: shape, sample
    type(c_ptr) :: memory
    integer(c_int) :: status
    integer(c_int64_t) :: elems
    if (.not. is_made(self%handle, 'program', stat, errmsg)) return
    c_name = to_c(name)
    elems = product(int(extents, c_int64_t))
    status = cvy_program_output(self%handle, int(task, c_int), c_loc(c_name), memory, shape)
    if (status == CVY_OK) then
      if (shape%dim(1) == cvy_program_rows(self%handle, int(task, c_int))) &
          shape%dim(1) = cvy_program_samples(self%handle, int(task, c_int))
    end if
    if (status == CVY_OK .and. elems_of(shape) == elems .and. shape%ndim > 0) then
      sample%ndim = shape%ndim - 1
      sample%dim(:sample%ndim) = shape%dim(2:shape%ndim)
      if (.not. fits('output ' // name, extents, sample, shape%dim(1), stat, errmsg)) return
    end if
    call finish(cvy_program_read_output(self%handle, int(task, c_int), c_loc(c_name), dtype, data, elems), stat, errmsg)
  end subroutine read_any

  subroutine program_read_r32(self, task, name, array, stat, errmsg)
    class(convoy_program), intent(in) :: self
    integer, intent(in) :: task
    character(len=*), intent(in) :: name
    real(real32), intent(inout), contiguous, target :: array(..)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call read_any(self, task, name, CVY_DTYPE_F32, c_loc(array), shape(array), stat, errmsg)
  end subroutine program_read_r32

  subroutine program_read_r64(self, task, name, array, stat, errmsg)
    class(convoy_program), intent(in) :: self
    integer, intent(in) :: task
    character(len=*), intent(in) :: name
    real(real64), intent(inout), contiguous, target :: array(..)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call read_any(self, task, name, CVY_DTYPE_F64, c_loc(array), shape(array), stat, errmsg)
  end subroutine program_read_r64

  ! Copies between a variable ('fc1.weight') and an array with its extents, which are those of C in reverse order. If
  ! the array is of another kind than the program, the elements are converted.
  subroutine copy_variable(self, name, as_r32, as_r64, is_set, stat, errmsg)
    class(convoy_program), intent(in) :: self
    character(len=*), intent(in) :: name
    real(real32), pointer, intent(in) :: as_r32(:)
    real(real64), pointer, intent(in) :: as_r64(:)
    logical, intent(in) :: is_set
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: c_name(:)
    real(real32), pointer :: r32(:)
    real(real64), pointer :: r64(:)
    type(c_ptr) :: memory
    integer(c_int64_t) :: n
    integer(c_int) :: status
    if (.not. is_made(self%handle, 'program', stat, errmsg)) return
    c_name = to_c(name)
    r32 => as_r32
    r64 => as_r64
    if (self%dtype == CVY_DTYPE_F32 .and. .not. associated(r32)) then
      allocate (r32(size(r64)))
      if (is_set) r32 = real(r64, real32)
    else if (self%dtype == CVY_DTYPE_F64 .and. .not. associated(r64)) then
      allocate (r64(size(r32)))
      if (is_set) r64 = r32
    end if
    if (self%dtype == CVY_DTYPE_F32) then
      memory = c_loc(r32)
      n = size(r32, kind=c_int64_t)
    else
      memory = c_loc(r64)
      n = size(r64, kind=c_int64_t)
    end if
    if (is_set) then
      status = cvy_program_set(self%handle, c_loc(c_name), memory, n)
    else
      status = cvy_program_get(self%handle, c_loc(c_name), memory, n)
    end if
    if (self%dtype == CVY_DTYPE_F32 .and. .not. associated(as_r32)) then
      if (.not. is_set .and. status == CVY_OK) as_r64 = r32
      deallocate (r32)
    else if (self%dtype == CVY_DTYPE_F64 .and. .not. associated(as_r64)) then
      if (.not. is_set .and. status == CVY_OK) as_r32 = real(r64, real32)
      deallocate (r64)
    end if
    call finish(status, stat, errmsg)
  end subroutine copy_variable

  subroutine program_get_r32(self, name, array, stat, errmsg)
    class(convoy_program), intent(in) :: self
    character(len=*), intent(in) :: name
    real(real32), intent(inout), contiguous, target :: array(..)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    real(real32), pointer :: flat(:)
    call c_f_pointer(c_loc(array), flat, [size(array)])
    call copy_variable(self, name, flat, null(), .false., stat, errmsg)
  end subroutine program_get_r32

  subroutine program_get_r64(self, name, array, stat, errmsg)
    class(convoy_program), intent(in) :: self
    character(len=*), intent(in) :: name
    real(real64), intent(inout), contiguous, target :: array(..)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    real(real64), pointer :: flat(:)
    call c_f_pointer(c_loc(array), flat, [size(array)])
    call copy_variable(self, name, null(), flat, .false., stat, errmsg)
  end subroutine program_get_r64

  subroutine program_set_r32(self, name, array, stat, errmsg)
    class(convoy_program), intent(inout) :: self
    character(len=*), intent(in) :: name
    real(real32), intent(in), contiguous, target :: array(..)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    real(real32), pointer :: flat(:)
    call c_f_pointer(c_loc(array), flat, [size(array)])
    call copy_variable(self, name, flat, null(), .true., stat, errmsg)
  end subroutine program_set_r32

  subroutine program_set_r64(self, name, array, stat, errmsg)
    class(convoy_program), intent(inout) :: self
    character(len=*), intent(in) :: name
    real(real64), intent(in), contiguous, target :: array(..)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    real(real64), pointer :: flat(:)
    call c_f_pointer(c_loc(array), flat, [size(array)])
    call copy_variable(self, name, null(), flat, .true., stat, errmsg)
  end subroutine program_set_r64

  subroutine program_save(self, path, stat, errmsg)
    class(convoy_program), intent(in) :: self
    character(len=*), intent(in) :: path
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: c_path(:)
    if (.not. is_made(self%handle, 'program', stat, errmsg)) return
    c_path = to_c(path)
    call finish(cvy_program_save(self%handle, c_loc(c_path)), stat, errmsg)
  end subroutine program_save

  subroutine program_load(self, path, stat, errmsg)
    class(convoy_program), intent(inout) :: self
    character(len=*), intent(in) :: path
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: c_path(:)
    if (.not. is_made(self%handle, 'program', stat, errmsg)) return
    c_path = to_c(path)
    call finish(cvy_program_load(self%handle, c_loc(c_path)), stat, errmsg)
  end subroutine program_load

  ! Weights, running statistics, the optimiser's state and counts, crash-safe, as folder/step-N; the newest `keep` are
  ! kept. Collective, as read_checkpoint is.
  subroutine program_write_checkpoint(self, folder, step, keep, stat, errmsg)
    class(convoy_program), intent(inout) :: self
    character(len=*), intent(in) :: folder
    integer, intent(in) :: step
    integer, intent(in), optional :: keep
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: c_folder(:)
    type(cvy_checkpoint_opts) :: opts
    if (.not. is_made(self%handle, 'program', stat, errmsg)) return
    c_folder = to_c(folder)
    opts%size = c_sizeof(opts)
    opts%folder = c_loc(c_folder)
    opts%step = step
    if (present(keep)) opts%keep = keep
    call finish(cvy_checkpoint_write(self%handle, opts), stat, errmsg)
  end subroutine program_write_checkpoint

  ! which: 'best' or 'step-N'; the newest valid one if it is left out. step: that of the checkpoint; -1: there is none.
  subroutine program_read_checkpoint(self, folder, step, which, stat, errmsg)
    class(convoy_program), intent(inout) :: self
    character(len=*), intent(in) :: folder
    integer, intent(out) :: step
    character(len=*), intent(in), optional :: which
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: c_folder(:), c_which(:)
    type(cvy_checkpoint_about) :: about
    integer(c_int) :: status
    step = -1
    if (.not. is_made(self%handle, 'program', stat, errmsg)) return
    c_folder = to_c(folder)
    c_which = optional_c(which)
    about%size = c_sizeof(about)
    status = cvy_checkpoint_read(self%handle, c_loc(c_folder), or_null(c_which, present(which)), about)
    if (status == CVY_OK) then
      step = int(about%step)
      call cvy_text_release(about%state)
      call cvy_text_release(about%notes)
    end if
    call finish(status, stat, errmsg)
  end subroutine program_read_checkpoint

  subroutine program_destroy(self)
    class(convoy_program), intent(inout) :: self
    call cvy_program_destroy(self%handle)
    call forget_texts(self)
  end subroutine program_destroy

  impure elemental subroutine program_finalise(self)
    type(convoy_program), intent(inout) :: self
    call self%destroy()
  end subroutine program_finalise

  impure elemental subroutine program_assign(to, from)
    class(convoy_program), intent(inout) :: to
    type(convoy_program), intent(in) :: from
    if (.not. c_associated(to%handle, from%handle)) call to%destroy()
  end subroutine program_assign

  ! ---- reservoir ----

  ! keep: 'uniform' (each sample so far with the same probability), 'newest' or 'loss'. seed: ranks should have different ones.
  subroutine reservoir_create(self, capacity, keep, seed, stat, errmsg)
    class(convoy_reservoir), intent(inout) :: self
    integer, intent(in) :: capacity
    character(len=*), intent(in), optional :: keep
    integer, intent(in), optional :: seed
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: c_keep(:)
    type(cvy_reservoir_opts) :: opts
    if (.not. is_free(self%handle, 'reservoir', stat, errmsg)) return
    c_keep = optional_c(keep)
    opts%size = c_sizeof(opts)
    opts%capacity = capacity
    opts%keep = or_null(c_keep, present(keep))
    if (present(seed)) opts%seed = seed
    call finish(cvy_reservoir_create(opts, self%handle), stat, errmsg)
  end subroutine reservoir_create

  ! The name is that of an input. dtype: 'f32', 'f64', 'i64', 'i32' or 'u8', in which the samples are kept.
  subroutine reservoir_add_field(self, name, extents, dtype, stat, errmsg)
    class(convoy_reservoir), intent(inout) :: self
    character(len=*), intent(in) :: name
    integer, intent(in) :: extents(:)
    character(len=*), intent(in), optional :: dtype
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: c_name(:)
    integer(c_int) :: kind, status
    if (.not. is_made(self%handle, 'reservoir', stat, errmsg)) return
    c_name = to_c(name)
    status = parse_dtype(dtype, kind)
    if (status == CVY_OK) status = cvy_reservoir_add_field(self%handle, c_loc(c_name), kind, shape_of(extents))
    call finish(status, stat, errmsg)
  end subroutine reservoir_add_field

  ! Field i of a reservoir or a stream.
  integer(c_int) function field_of(handle, is_stream, i, name, sample)
    type(c_ptr), intent(in) :: handle
    logical, intent(in) :: is_stream
    integer(c_int), intent(in) :: i
    type(c_ptr), intent(out) :: name
    type(cvy_shape), intent(out) :: sample
    if (is_stream) then
      field_of = cvy_stream_field(handle, i, name_out=name, shape_out=sample)
    else
      field_of = cvy_reservoir_field(handle, i, name_out=name, shape_out=sample)
    end if
  end function field_of

  ! New samples of a reservoir or a stream. Their array: (sample extents, new samples).
  subroutine put_any(handle, is_stream, field, dtype, data, extents, stat, errmsg)
    type(c_ptr), intent(in) :: handle
    logical, intent(in) :: is_stream
    character(len=*), intent(in) :: field
    integer(c_int), intent(in) :: dtype
    type(c_ptr), intent(in) :: data
    integer, intent(in) :: extents(:)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: c_field(:)
    type(cvy_shape) :: sample
    type(c_ptr) :: name
    integer(c_int64_t) :: elems
    integer(c_int) :: i
    if (.not. is_made(handle, trim(merge('stream   ', 'reservoir', is_stream)), stat, errmsg)) return
    c_field = to_c(field)
    elems = product(int(extents, c_int64_t))
    i = 0
    do while (field_of(handle, is_stream, i, name, sample) == CVY_OK)
      if (from_c(name) == field) then
        if (.not. fits('field ' // field, extents, sample, elems / elems_of(sample), stat, errmsg)) return
      end if
      i = i + 1
    end do
    if (is_stream) then
      call finish(cvy_stream_put(handle, c_loc(c_field), dtype, data, elems), stat, errmsg)
    else
      call finish(cvy_reservoir_put(handle, c_loc(c_field), dtype, data, elems), stat, errmsg)
    end if
  end subroutine put_any

  subroutine reservoir_put_r32(self, field, array, stat, errmsg)
    class(convoy_reservoir), intent(inout) :: self
    character(len=*), intent(in) :: field
    real(real32), intent(in), contiguous, target :: array(..)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call put_any(self%handle, .false., field, CVY_DTYPE_F32, c_loc(array), shape(array), stat, errmsg)
  end subroutine reservoir_put_r32

  subroutine reservoir_put_r64(self, field, array, stat, errmsg)
    class(convoy_reservoir), intent(inout) :: self
    character(len=*), intent(in) :: field
    real(real64), intent(in), contiguous, target :: array(..)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call put_any(self%handle, .false., field, CVY_DTYPE_F64, c_loc(array), shape(array), stat, errmsg)
  end subroutine reservoir_put_r64

  subroutine reservoir_put_i32(self, field, array, stat, errmsg)
    class(convoy_reservoir), intent(inout) :: self
    character(len=*), intent(in) :: field
    integer(int32), intent(in), contiguous, target :: array(..)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call put_any(self%handle, .false., field, CVY_DTYPE_I32, c_loc(array), shape(array), stat, errmsg)
  end subroutine reservoir_put_i32

  subroutine reservoir_put_i64(self, field, array, stat, errmsg)
    class(convoy_reservoir), intent(inout) :: self
    character(len=*), intent(in) :: field
    integer(int64), intent(in), contiguous, target :: array(..)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call put_any(self%handle, .false., field, CVY_DTYPE_I64, c_loc(array), shape(array), stat, errmsg)
  end subroutine reservoir_put_i64

  subroutine reservoir_push(self, stat, errmsg)
    class(convoy_reservoir), intent(inout) :: self
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    if (.not. is_made(self%handle, 'reservoir', stat, errmsg)) return
    call finish(cvy_reservoir_push(self%handle), stat, errmsg)
  end subroutine reservoir_push

  subroutine reservoir_draw(self, program, task, stat, errmsg)
    class(convoy_reservoir), intent(inout) :: self
    type(convoy_program), intent(inout) :: program
    integer, intent(in) :: task
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    if (.not. is_made(self%handle, 'reservoir', stat, errmsg)) return
    if (.not. is_made(program%handle, 'program', stat, errmsg)) return
    call finish(cvy_reservoir_draw(self%handle, program%handle, int(task, c_int)), stat, errmsg)
  end subroutine reservoir_draw

  ! losses: of the samples of the latest draw, in the order of its rows.
  subroutine reservoir_set_losses(self, losses, stat, errmsg)
    class(convoy_reservoir), intent(inout) :: self
    real(real64), intent(in), contiguous :: losses(:)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    real(c_double) :: none
    if (.not. is_made(self%handle, 'reservoir', stat, errmsg)) return
    if (size(losses) > 0) then
      call finish(cvy_reservoir_set_losses(self%handle, losses(1), size(losses, kind=c_int64_t)), stat, errmsg)
    else
      none = 0
      call finish(cvy_reservoir_set_losses(self%handle, none, 0_c_int64_t), stat, errmsg)
    end if
  end subroutine reservoir_set_losses

  integer(int64) function reservoir_held(self)
    class(convoy_reservoir), intent(in) :: self
    reservoir_held = 0
    if (c_associated(self%handle)) reservoir_held = cvy_reservoir_held(self%handle)
  end function reservoir_held

  integer(int64) function reservoir_seen(self)
    class(convoy_reservoir), intent(in) :: self
    reservoir_seen = 0
    if (c_associated(self%handle)) reservoir_seen = cvy_reservoir_seen(self%handle)
  end function reservoir_seen

  ! For the program's own restart file. A reservoir that was created alike goes on from it with the same samples.
  subroutine reservoir_save(self, state, stat, errmsg)
    class(convoy_reservoir), intent(in) :: self
    integer(int8), allocatable, target, intent(out) :: state(:)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    if (.not. is_made(self%handle, 'reservoir', stat, errmsg)) return
    allocate (state(cvy_reservoir_bytes(self%handle)))
    call finish(cvy_reservoir_save(self%handle, c_loc(state), size(state, kind=c_int64_t)), stat, errmsg)
  end subroutine reservoir_save

  subroutine reservoir_load(self, state, stat, errmsg)
    class(convoy_reservoir), intent(inout) :: self
    integer(int8), contiguous, target, intent(in) :: state(:)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    if (.not. is_made(self%handle, 'reservoir', stat, errmsg)) return
    call finish(cvy_reservoir_load(self%handle, c_loc(state), size(state, kind=c_int64_t)), stat, errmsg)
  end subroutine reservoir_load

  subroutine reservoir_destroy(self)
    class(convoy_reservoir), intent(inout) :: self
    call cvy_reservoir_destroy(self%handle)
  end subroutine reservoir_destroy

  impure elemental subroutine reservoir_finalise(self)
    type(convoy_reservoir), intent(inout) :: self
    call cvy_reservoir_destroy(self%handle)
  end subroutine reservoir_finalise

  impure elemental subroutine reservoir_assign(to, from)
    class(convoy_reservoir), intent(inout) :: to
    type(convoy_reservoir), intent(in) :: from
    if (.not. c_associated(to%handle, from%handle)) call to%destroy()
  end subroutine reservoir_assign

  ! ---- stream ----

  ! role: 'solver', 'trainer' or 'both'. reservoir: of a trainer, with fields. program: its weights go from trainers to
  ! solvers. when_full: 'drop', 'thin' or 'wait', for up to wait_s seconds. See convoy/stream.h. Objects must live as long
  ! as the stream.
  subroutine stream_create(self, context, role, reservoir, program, queue, when_full, wait_s, lost_s, independent, stat, &
      errmsg)
    class(convoy_stream), intent(inout) :: self
    type(convoy_context), intent(in) :: context
    character(len=*), intent(in) :: role
    type(convoy_reservoir), intent(in), optional :: reservoir
    type(convoy_program), intent(in), optional :: program
    integer, intent(in), optional :: queue
    character(len=*), intent(in), optional :: when_full
    real(real64), intent(in), optional :: wait_s, lost_s
    logical, intent(in), optional :: independent
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: c_role(:), c_full(:)
    type(cvy_stream_opts) :: opts
    if (.not. is_free(self%handle, 'stream', stat, errmsg)) return
    if (.not. is_made(context%handle, 'context', stat, errmsg)) return
    c_role = to_c(role)
    c_full = optional_c(when_full)
    opts%size = c_sizeof(opts)
    opts%role = c_loc(c_role)
    opts%when_full = or_null(c_full, present(when_full))
    if (present(reservoir)) opts%reservoir = reservoir%handle
    if (present(program)) opts%program = program%handle
    if (present(queue)) opts%queue = queue
    if (present(wait_s)) opts%wait_s = wait_s
    if (present(lost_s)) opts%lost_s = lost_s
    if (present(independent)) opts%independent = merge(1, 0, independent)
    call finish(cvy_stream_create(context%handle, opts, self%handle), stat, errmsg)
  end subroutine stream_create

  subroutine stream_put_r32(self, field, array, stat, errmsg)
    class(convoy_stream), intent(inout) :: self
    character(len=*), intent(in) :: field
    real(real32), intent(in), contiguous, target :: array(..)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call put_any(self%handle, .true., field, CVY_DTYPE_F32, c_loc(array), shape(array), stat, errmsg)
  end subroutine stream_put_r32

  subroutine stream_put_r64(self, field, array, stat, errmsg)
    class(convoy_stream), intent(inout) :: self
    character(len=*), intent(in) :: field
    real(real64), intent(in), contiguous, target :: array(..)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call put_any(self%handle, .true., field, CVY_DTYPE_F64, c_loc(array), shape(array), stat, errmsg)
  end subroutine stream_put_r64

  subroutine stream_put_i32(self, field, array, stat, errmsg)
    class(convoy_stream), intent(inout) :: self
    character(len=*), intent(in) :: field
    integer(int32), intent(in), contiguous, target :: array(..)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call put_any(self%handle, .true., field, CVY_DTYPE_I32, c_loc(array), shape(array), stat, errmsg)
  end subroutine stream_put_i32

  subroutine stream_put_i64(self, field, array, stat, errmsg)
    class(convoy_stream), intent(inout) :: self
    character(len=*), intent(in) :: field
    integer(int64), intent(in), contiguous, target :: array(..)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call put_any(self%handle, .true., field, CVY_DTYPE_I64, c_loc(array), shape(array), stat, errmsg)
  end subroutine stream_put_i64

  ! stat: CVY_END if the trainers have ended, CVY_E_COMM if the trainer does not answer. Samples then are dropped.
  subroutine stream_push(self, stat, errmsg)
    class(convoy_stream), intent(inout) :: self
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    if (.not. is_made(self%handle, 'stream', stat, errmsg)) return
    call finish(cvy_stream_push(self%handle), stat, errmsg)
  end subroutine stream_push

  ! version: of the weights that the program has now; 0: its own still.
  subroutine stream_take(self, version, stat, errmsg)
    class(convoy_stream), intent(inout) :: self
    integer(int64), intent(out), optional :: version
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    integer(c_int64_t) :: now
    integer(c_int) :: status
    if (present(version)) version = 0
    if (.not. is_made(self%handle, 'stream', stat, errmsg)) return
    status = cvy_stream_take(self%handle, now)
    if (status == CVY_OK .and. present(version)) version = now
    call finish(status, stat, errmsg)
  end subroutine stream_take

  ! stat: CVY_STOPPED if some samples still wait after so many seconds; otherwise as of push.
  subroutine stream_flush(self, seconds, stat, errmsg)
    class(convoy_stream), intent(inout) :: self
    real(real64), intent(in) :: seconds
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    if (.not. is_made(self%handle, 'stream', stat, errmsg)) return
    call finish(cvy_stream_flush(self%handle, seconds), stat, errmsg)
  end subroutine stream_flush

  ! Moves samples that have come into the reservoir. .false.: all solvers have ended, or there was a fault.
  logical function stream_receive(self, stat, errmsg)
    class(convoy_stream), intent(inout) :: self
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    integer(c_int) :: status
    stream_receive = .false.
    if (.not. is_made(self%handle, 'stream', stat, errmsg)) return
    status = cvy_stream_receive(self%handle)
    stream_receive = status == CVY_OK
    call finish(status, stat, errmsg)
  end function stream_receive

  subroutine stream_publish(self, stat, errmsg)
    class(convoy_stream), intent(inout) :: self
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    if (.not. is_made(self%handle, 'stream', stat, errmsg)) return
    call finish(cvy_stream_publish(self%handle), stat, errmsg)
  end subroutine stream_publish

  ! Samples and seconds so far on this rank; see cvy_stream_counts in convoy/stream.h.
  subroutine stream_counts(self, pushed, delivered, dropped, waiting, received, version, longest_push_s, longest_take_s, &
      stat, errmsg)
    class(convoy_stream), intent(in) :: self
    integer(int64), intent(out), optional :: pushed, delivered, dropped, waiting, received, version
    real(real64), intent(out), optional :: longest_push_s, longest_take_s
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(cvy_stream_counts) :: counts
    integer(c_int) :: status
    counts%size = c_sizeof(counts)
    status = CVY_OK
    if (is_made(self%handle, 'stream', stat, errmsg)) status = cvy_stream_get_counts(self%handle, counts)
    if (present(pushed)) pushed = counts%pushed
    if (present(delivered)) delivered = counts%delivered
    if (present(dropped)) dropped = counts%dropped
    if (present(waiting)) waiting = counts%waiting
    if (present(received)) received = counts%received
    if (present(version)) version = counts%version
    if (present(longest_push_s)) longest_push_s = counts%longest_push_s
    if (present(longest_take_s)) longest_take_s = counts%longest_take_s
    if (c_associated(self%handle)) call finish(status, stat, errmsg)
  end subroutine stream_counts

  subroutine stream_destroy(self)
    class(convoy_stream), intent(inout) :: self
    call cvy_stream_destroy(self%handle)
  end subroutine stream_destroy

  impure elemental subroutine stream_finalise(self)
    type(convoy_stream), intent(inout) :: self
    call cvy_stream_destroy(self%handle)
  end subroutine stream_finalise

  impure elemental subroutine stream_assign(to, from)
    class(convoy_stream), intent(inout) :: to
    type(convoy_stream), intent(in) :: from
    if (.not. c_associated(to%handle, from%handle)) call to%destroy()
  end subroutine stream_assign

  ! ---- network ----

  ! target: a run's folder, a checkpoint, or a .safetensors or .onnx file. outputs: 'layer1, layer2'; batch: the largest
  ! number of samples that are computed at once.
  subroutine network_open(self, context, target, outputs, batch, stat, errmsg)
    class(convoy_network), intent(inout) :: self
    type(convoy_context), intent(in) :: context
    character(len=*), intent(in) :: target
    character(len=*), intent(in), optional :: outputs
    integer, intent(in), optional :: batch
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: c_target(:), c_outputs(:)
    type(cvy_network_opts) :: opts
    if (.not. is_free(self%handle, 'network', stat, errmsg)) return
    if (.not. is_made(context%handle, 'context', stat, errmsg)) return
    c_target = to_c(target)
    c_outputs = optional_c(outputs)
    opts%size = c_sizeof(opts)
    opts%outputs = or_null(c_outputs, present(outputs))
    if (present(batch)) opts%batch = batch
    call finish(cvy_network_open(context%handle, c_loc(c_target), opts, self%handle), stat, errmsg)
  end subroutine network_open

  ! The number of the input or output with this name, and its shape; -1: there is none.
  subroutine find_tensor(handle, is_input, name, shape, at)
    type(c_ptr), intent(in) :: handle
    logical, intent(in) :: is_input
    character(len=*), intent(in), optional :: name
    type(cvy_shape), intent(out) :: shape
    integer(c_int), intent(out) :: at
    type(c_ptr) :: text
    integer(c_int) :: status
    at = 0
    do
      if (is_input) then
        status = cvy_network_input(handle, at, name_out=text, shape_out=shape)
      else
        status = cvy_network_output(handle, at, name_out=text, shape_out=shape)
      end if
      if (status /= CVY_OK) exit
      if (.not. present(name)) return
      if (from_c(text) == name) return
      at = at + 1
    end do
    at = -1
  end subroutine find_tensor

  subroutine apply_any(self, x_dtype, x, x_extents, y_dtype, y, y_extents, input, output, stat, errmsg)
    class(convoy_network), intent(inout) :: self
    integer(c_int), intent(in) :: x_dtype, y_dtype
    type(c_ptr), intent(in) :: x, y
    integer, intent(in) :: x_extents(:), y_extents(:)
    character(len=*), intent(in), optional :: input, output
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: c_input(:), c_output(:)
    type(cvy_network_in) :: in(1)
    type(cvy_network_out) :: out(1)
    type(cvy_shape) :: sample, result
    integer(c_int) :: at_in, at_out
    integer(c_int64_t) :: n
    if (.not. is_made(self%handle, 'network', stat, errmsg)) return
    call find_tensor(self%handle, .true., input, sample, at_in)
    call find_tensor(self%handle, .false., output, result, at_out)
    in(1)%elems = product(int(x_extents, c_int64_t))
    out(1)%elems = product(int(y_extents, c_int64_t))
    n = 0
    if (at_in >= 0) then
      n = in(1)%elems / max(elems_of(sample), 1_c_int64_t)
      if (.not. fits('the input', x_extents, sample, n, stat, errmsg)) return
      if (at_out >= 0) then
        if (.not. fits('the output', y_extents, result, n, stat, errmsg)) return
      end if
    end if
    c_input = optional_c(input)
    c_output = optional_c(output)
    in(1)%name = or_null(c_input, present(input))
    if (.not. present(input)) at_in = cvy_network_input(self%handle, 0_c_int, name_out=in(1)%name)
    out(1)%name = or_null(c_output, present(output))
    in(1)%dtype = x_dtype
    out(1)%dtype = y_dtype
    in(1)%data = x
    out(1)%data = y
    call finish(cvy_network_apply(self%handle, n, in, 1_c_int, out, 1_c_int), stat, errmsg)
  end subroutine apply_any

  ! x: (sample extents, samples); y: (output extents, samples). output: its name, if the network has several. A network
  ! with several inputs needs cvy_network_apply() of convoy_c.
  subroutine network_apply_r32(self, x, y, input, output, stat, errmsg)
    class(convoy_network), intent(inout) :: self
    real(real32), intent(in), contiguous, target :: x(..)
    real(real32), intent(inout), contiguous, target :: y(..)
    character(len=*), intent(in), optional :: input, output
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call apply_any(self, CVY_DTYPE_F32, c_loc(x), shape(x), CVY_DTYPE_F32, c_loc(y), shape(y), input, output, stat, &
        errmsg)
  end subroutine network_apply_r32

  subroutine network_apply_r64(self, x, y, input, output, stat, errmsg)
    class(convoy_network), intent(inout) :: self
    real(real64), intent(in), contiguous, target :: x(..)
    real(real64), intent(inout), contiguous, target :: y(..)
    character(len=*), intent(in), optional :: input, output
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call apply_any(self, CVY_DTYPE_F64, c_loc(x), shape(x), CVY_DTYPE_F64, c_loc(y), shape(y), input, output, stat, &
        errmsg)
  end subroutine network_apply_r64

  ! For networks that were trained on pictures of bytes: x has bit patterns from 0 to 255.
  subroutine network_apply_u8(self, x, y, input, output, stat, errmsg)
    class(convoy_network), intent(inout) :: self
    integer(int8), intent(in), contiguous, target :: x(..)
    real(real32), intent(inout), contiguous, target :: y(..)
    character(len=*), intent(in), optional :: input, output
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call apply_any(self, CVY_DTYPE_U8, c_loc(x), shape(x), CVY_DTYPE_F32, c_loc(y), shape(y), input, output, stat, &
        errmsg)
  end subroutine network_apply_u8

  ! The extents of a sample of an input or output (the first one, or that of this name); empty if there is none.
  function extents_in(handle, is_input, name) result(out)
    type(c_ptr), intent(in) :: handle
    logical, intent(in) :: is_input
    character(len=*), intent(in), optional :: name
    integer, allocatable :: out(:)
    type(cvy_shape) :: shape
    integer(c_int) :: at
    at = -1
    if (c_associated(handle)) call find_tensor(handle, is_input, name, shape, at)
    allocate (out(0))
    if (at >= 0) out = extents_of(shape)
  end function extents_in

  function network_input_extents(self, name) result(out)
    class(convoy_network), intent(in) :: self
    character(len=*), intent(in), optional :: name
    integer, allocatable :: out(:)
    out = extents_in(self%handle, .true., name)
  end function network_input_extents

  function network_output_extents(self, name) result(out)
    class(convoy_network), intent(in) :: self
    character(len=*), intent(in), optional :: name
    integer, allocatable :: out(:)
    out = extents_in(self%handle, .false., name)
  end function network_output_extents

  subroutine network_destroy(self)
    class(convoy_network), intent(inout) :: self
    call cvy_network_destroy(self%handle)
  end subroutine network_destroy

  impure elemental subroutine network_finalise(self)
    type(convoy_network), intent(inout) :: self
    call cvy_network_destroy(self%handle)
  end subroutine network_finalise

  impure elemental subroutine network_assign(to, from)
    class(convoy_network), intent(inout) :: to
    type(convoy_network), intent(in) :: from
    if (.not. c_associated(to%handle, from%handle)) call to%destroy()
  end subroutine network_assign

  ! ---- functions of the program ----

  subroutine context_add_function(self, name, value, gradient, result, sources, stat, errmsg)
    class(convoy_context), intent(inout) :: self
    character(len=*), intent(in) :: name
    procedure(convoy_value) :: value
    procedure(convoy_gradient) :: gradient
    integer, intent(in), optional :: result(:), sources
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: c_name(:)
    type(host_function), pointer :: f
    type(cvy_operator) :: op
    integer(c_int) :: status
    if (.not. is_made(self%handle, 'context', stat, errmsg)) return
    allocate (f)
    f%value => value
    f%gradient => gradient
    c_name = to_c(name)
    op%size = c_sizeof(op)
    op%name = c_loc(c_name)
    op%nsrc_min = 1
    if (present(sources)) op%nsrc_min = sources
    op%nsrc_max = op%nsrc_min
    op%splits = CVY_OPERATOR_SPLIT_SAMPLES
    op%reads = CVY_OPERATOR_READS_SOURCES
    op%forward = c_funloc(run_value)
    op%backward = c_funloc(run_gradient)
    op%user = c_loc(f)
    op%result = shape_of([1])
    if (present(result)) op%result = shape_of(result)
    status = cvy_context_add_operator(self%handle, op)
    if (status == CVY_OK) then
      f%next => self%functions
      self%functions => f
    else
      deallocate (f)
    end if
    call finish(status, stat, errmsg)
  end subroutine context_add_function

  pure subroutine forget_functions(list)
    type(host_function), pointer, intent(inout) :: list
    type(host_function), pointer :: next
    do while (associated(list))
      next => list%next
      deallocate (list)
      list => next
    end do
  end subroutine forget_functions

  ! The numbers of a tensor as (elements, samples).
  subroutine read_tensor(tensor, x)
    type(cvy_operator_tensor), intent(in) :: tensor
    real(real64), intent(out) :: x(:, :)
    real(real32), pointer :: r32(:, :)
    real(real64), pointer :: r64(:, :)
    if (tensor%dtype == CVY_DTYPE_F64) then
      call c_f_pointer(tensor%data, r64, shape(x))
      x = r64
    else
      call c_f_pointer(tensor%data, r32, shape(x))
      x = r32
    end if
  end subroutine read_tensor

  subroutine write_tensor(x, tensor)
    real(real64), intent(in) :: x(:, :)
    type(cvy_operator_tensor), intent(in) :: tensor
    real(real32), pointer :: r32(:, :)
    real(real64), pointer :: r64(:, :)
    if (tensor%dtype == CVY_DTYPE_F64) then
      call c_f_pointer(tensor%data, r64, shape(x))
      r64 = x
    else
      call c_f_pointer(tensor%data, r32, shape(x))
      r32 = real(x, real32)
    end if
  end subroutine write_tensor

  ! All sources of a call as one array, and its function; n: samples.
  subroutine open_call(call, f, src, n, x)
    type(cvy_operator_call), intent(in) :: call
    type(host_function), pointer, intent(out) :: f
    type(cvy_operator_tensor), pointer, intent(out) :: src(:)
    integer(c_int64_t), intent(out) :: n
    real(real64), allocatable, intent(out) :: x(:, :)
    integer(c_int64_t) :: first, last
    integer :: i
    call c_f_pointer(call%user, f)
    call c_f_pointer(call%src, src, [call%nsrc])
    n = src(1)%dim(1)
    if (n == 0) return
    allocate (x(sum(src%elems) / n, n))
    last = 0
    do i = 1, size(src)
      first = last + 1
      last = last + src(i)%elems / n
      call read_tensor(src(i), x(first:last, :))
    end do
  end subroutine open_call

  ! The answer of a function to the library: what it says if it failed.
  integer(c_int) function answer_of(call, stat)
    type(cvy_operator_call), intent(in) :: call
    integer, intent(in) :: stat
    character(kind=c_char), pointer :: message(:)
    character(len=60) :: text
    integer :: i
    answer_of = merge(0_c_int, 1_c_int, stat == 0)
    if (stat == 0) return
    write (text, '(a, i0)') 'the Fortran procedure ended with stat = ', stat
    call c_f_pointer(call%message, message, [call%message_bytes])
    do i = 1, min(len_trim(text), size(message) - 1)
      message(i) = text(i:i)
      message(i + 1) = c_null_char
    end do
  end function answer_of

  integer(c_int) function run_value(call) bind(c, name='')
    type(cvy_operator_call), intent(in) :: call
    type(host_function), pointer :: f
    type(cvy_operator_tensor), pointer :: src(:), dst
    real(real64), allocatable :: x(:, :), y(:, :)
    integer(c_int64_t) :: n
    integer :: stat
    call open_call(call, f, src, n, x)
    stat = 0
    if (n > 0) then
      call c_f_pointer(call%dst, dst)
      allocate (y(dst%elems / n, n))
      call f%value(x, y, stat)
      call write_tensor(y, dst)
    end if
    run_value = answer_of(call, stat)
  end function run_value

  integer(c_int) function run_gradient(call) bind(c, name='')
    type(cvy_operator_call), intent(in) :: call
    type(host_function), pointer :: f
    type(cvy_operator_tensor), pointer :: src(:), dsrc(:), ddst
    real(real64), allocatable :: x(:, :), dx(:, :), dy(:, :)
    integer(c_int64_t) :: n, first, last
    integer :: stat, i
    call open_call(call, f, src, n, x)
    stat = 0
    if (n > 0) then
      call c_f_pointer(call%ddst, ddst)
      call c_f_pointer(call%dsrc, dsrc, [call%nsrc])
      allocate (dy(ddst%elems / n, n))
      allocate (dx, mold=x)
      call read_tensor(ddst, dy)
      call f%gradient(x, dy, dx, stat)
      last = 0
      do i = 1, size(src)
        first = last + 1
        last = last + src(i)%elems / n
        if (c_associated(dsrc(i)%data)) call write_tensor(dx(first:last, :), dsrc(i))
      end do
    end if
    run_gradient = answer_of(call, stat)
  end function run_gradient

  ! Keeps the first line of a check that says what is wrong.
  subroutine keep_line(user, line) bind(c, name='')
    type(c_ptr), value :: user, line
    type(kept_line), pointer :: kept
    character(len=:), allocatable :: text
    call c_f_pointer(user, kept)
    text = from_c(line)
    if (kept%text == '' .and. index(text, 'FAILED') == 1) kept%text = text
  end subroutine keep_line

  ! x: numbers at which the function is tried, (elements of all sources, samples); without it they are random, from -1
  ! to 1, for 4 samples. stat is CVY_E_NUMERIC if something is wrong: errmsg names source, element and both derivatives.
  subroutine context_check_function(self, name, sources, x, stat, errmsg)
    class(convoy_context), intent(inout) :: self
    character(len=*), intent(in) :: name
    integer, intent(in) :: sources(:)
    real(real64), intent(in), optional :: x(:, :)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: c_name(:), c_sources(:)
    character(len=:), allocatable :: text
    character(len=60) :: number
    type(c_ptr), target :: list(size(sources))
    real(real64), allocatable, target :: flat(:)
    type(kept_line), target :: kept
    type(cvy_operators_opts) :: opts
    type(cvy_operators_result) :: result
    integer(c_int) :: status
    integer :: i, n, last
    if (.not. is_made(self%handle, 'context', stat, errmsg)) return
    n = 4
    if (present(x)) then
      n = size(x, 2)
      if (size(x, 1) /= sum(sources)) then
        call finish(CVY_E_SHAPE, stat, errmsg, 'x has the extents ' // text_of(shape(x)) // ', expected ' // &
            text_of([sum(sources), n]))
        return
      end if
      allocate (flat(size(x)))
    end if
    text = ''
    last = 0
    do i = 1, size(sources)
      write (number, '(i0, a, i0)') n, 'x', sources(i)
      if (i > 1) text = text // ','
      text = text // trim(number)
      if (.not. present(x)) cycle
      flat(n * last + 1:n * (last + sources(i))) = reshape(x(last + 1:last + sources(i), :), [n * sources(i)])
      list(i) = c_loc(flat(n * last + 1))
      last = last + sources(i)
    end do
    c_name = to_c(name)
    c_sources = to_c(text)
    opts%size = c_sizeof(opts)
    opts%only = c_loc(c_name)
    opts%line = c_funloc(keep_line)
    opts%user = c_loc(kept)
    opts%sources = c_loc(c_sources)
    if (present(x)) opts%values = c_loc(list)
    result%size = c_sizeof(result)
    status = cvy_run_check_operators(self%handle, c_null_ptr, opts, result)
    if (status == CVY_OK .and. result%failed > 0) then
      call finish(CVY_E_NUMERIC, stat, errmsg, trim(kept%text))
    else
      call finish(status, stat, errmsg)
    end if
  end subroutine context_check_function

  subroutine model_use_context(self, context, stat, errmsg)
    class(convoy_model), intent(inout) :: self
    type(convoy_context), intent(in) :: context
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    if (.not. is_made(self%handle, 'model', stat, errmsg)) return
    if (.not. is_made(context%handle, 'context', stat, errmsg)) return
    call finish(cvy_model_use_context(self%handle, context%handle), stat, errmsg)
  end subroutine model_use_context

  ! ---- whole runs ----

  ! Trains the job in a file, as `convoy train` does. out: the run's folder; sets: 'key=value', which override the job.
  ! stat may be CVY_STOPPED. Collective.
  subroutine convoy_train(context, job, out, sets, resume, stat, errmsg)
    type(convoy_context), intent(in) :: context
    character(len=*), intent(in) :: job
    character(len=*), intent(in), optional :: out, sets(:)
    logical, intent(in), optional :: resume
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: c_job(:), c_out(:)
    type(kept_text), allocatable :: texts(:)
    type(c_ptr), allocatable, target :: list(:)
    type(cvy_job_source) :: source
    type(cvy_train_opts) :: opts
    integer(c_int) :: status
    integer :: i
    if (.not. is_made(context%handle, 'context', stat, errmsg)) return
    c_job = to_c(job)
    c_out = optional_c(out)
    source%size = c_sizeof(source)
    source%path = c_loc(c_job)
    if (present(sets)) then
      allocate (texts(size(sets)), list(size(sets)))
      do i = 1, size(sets)
        allocate (texts(i)%at, source=to_c(sets(i)))
        list(i) = c_loc(texts(i)%at)
      end do
      source%sets = c_loc(list)
      source%nsets = size(sets)
    end if
    opts%size = c_sizeof(opts)
    opts%out = or_null(c_out, present(out))
    if (present(resume)) opts%resume = merge(1, 0, resume)
    status = cvy_run_train(context%handle, source, opts)
    if (present(sets)) then
      do i = 1, size(sets)
        deallocate (texts(i)%at)
      end do
    end if
    call finish(status, stat, errmsg)
  end subroutine convoy_train

end module convoy
