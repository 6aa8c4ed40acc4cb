! box_model.f90: networks take over the steps of a stiff chemistry solver while it runs, where they are sure.
!
!     mpifort -o box_model convoy_c.f90 convoy.f90 box_model.f90 $(pkg-config --libs convoy)
!     mpiexec -n 2 ./box_model
!
! Each rank has boxes of air, each with a temperature and emissions of its own, and a small chemistry of ozone. Three
! networks of different seeds learn the solver's step. In each step and box they predict the new concentrations. If the
! predictions lie close together, their mean is taken. If not, the solver computes the step, and the networks learn from
! it. Some boxes in each step are checks: the solver computes them although the networks are sure, and the error that it
! finds decides how close is close enough. After three fifths of the days, the air of a quarter of the boxes becomes
! warmer and dirtier.
!
! box_model [off] [DAYS]: with "off" nothing is trained, and the solver's own result is the same, to the bit.
!
! SPDX-License-Identifier: BSD-3-Clause
program box_model
  use, intrinsic :: iso_fortran_env, only: real64
  use mpi_f08
  use convoy
  implicit none

  integer, parameter :: wp = real64, boxes = 128, species = 7, reactions = 7, members = 3, known = 9
  integer, parameter :: NO = 1, NO2 = 2, O3 = 3, VOC = 4, RO2 = 5, HNO3 = 6, CO = 7
  integer, parameter :: steps_per_day = 96, substeps = 15, trainings = 20 ! trainings in a step
  integer, parameter :: checked = 17                                      ! a box in 17 is a check
  real(wp), parameter :: pi = acos(-1.0_wp), day = 86400, dt = day / steps_per_day
  ! The molecules that each reaction makes or takes. A reaction keeps the nitrogen and the carbon.
  real(wp), parameter :: made(species, reactions) = reshape(real([ &
      1, -1, 1, 0, 0, 0, 0, &  ! NO2 + light -> NO + O3
      -1, 1, -1, 0, 0, 0, 0, & ! NO + O3 -> NO2
      -1, 1, 0, 0, -1, 0, 1, & ! RO2 + NO -> NO2 + CO
      0, 0, 0, -1, 1, 0, 0, &  ! VOC + OH -> RO2
      0, -1, 0, 0, 0, 1, 0, &  ! NO2 + OH -> HNO3
      0, 0, 0, 0, -2, 0, 2, &  ! RO2 + RO2 -> 2 CO
      0, 0, -1, 0, 0, 0, 0], wp), [species, reactions]) ! O3 is deposited
  integer, parameter :: nitrogen(3) = [NO, NO2, HNO3], carbon(3) = [VOC, RO2, CO]
  ! The networks predict changes in these units. A step may have an error of this many of them.
  real(wp), parameter :: unit(species) = [1.0_wp, 0.2_wp, 0.1_wp, 0.1_wp, 1.0_wp, 0.02_wp, 0.02_wp], tolerance = 0.1_wp
  real(wp), parameter :: least(5) = [0.1_wp, 0.2_wp, 1.0_wp, 1.0_wp, 5e-4_wp] ! ppb; changes below it do not matter
  real(wp), parameter :: usual(5) = [0.5_wp, 5.0_wp, 60.0_wp, 40.0_wp, 2e-3_wp]
  type(convoy_context) :: context
  type(convoy_model) :: model
  type(convoy_program) :: program(members)
  type(convoy_reservoir) :: reservoir
  integer :: train(members), apply(members), days = 10, steps, i
  character(len=20) :: word
  logical :: learns = .true., is_new(boxes)
  real(wp) :: c(species, boxes), reference(species, boxes) ! ppb: by networks and solver; by the solver alone
  real(wp) :: seconds(2) = 0, limit = tolerance            ! how far apart sure predictions may be
  ! Of each box in the present step, in seconds and ppb; air: (temperature - 290 K) / 10, emissions per hour, sunlight.
  real(wp) :: k(reactions, boxes), emission(species, boxes), air(4, boxes)

  do i = 1, command_argument_count()
    call get_command_argument(i, word)
    if (word == 'off') learns = .false.
    if (word /= 'off') read (word, *) days
  end do
  steps = days * steps_per_day
  call MPI_Init()
  call context%create(MPI_COMM_WORLD%MPI_VAL, threads=1)
  call run_solver()
  if (learns) call run_networks()
  call context%destroy()
  call MPI_Finalize()

contains

  ! The air of all boxes in step i; the first step begins at noon.
  subroutine set_air(i)
    integer, intent(in) :: i
    real(wp) :: place(3), sun, warm
    integer :: b
    sun = max(cos(2 * pi * (i + 0.5_wp) / steps_per_day) + 0.1_wp, 0.0_wp)
    emission = 0
    do b = 1, boxes
      is_new(b) = mod(b, 4) == 0 .and. i >= nint(0.6_wp * days) * steps_per_day
      place = modulo((b + boxes * context%rank()) * [0.819173_wp, 0.671044_wp, 0.549700_wp], 1.0_wp) ! evenly spread
      air(1, b) = (20 * place(1) + 5 * cos(2 * pi * (real(i, wp) / steps_per_day - 0.1_wp)) - 10) / 10
      air(2:3, b) = [0.1_wp + 0.6_wp * place(2), 0.5_wp + 2 * place(3)]
      if (is_new(b)) air(1:3, b) = [air(1, b) + 1.5_wp, 3 * air(2:3, b)]
      air(4, b) = sun
      warm = 1 / 298.0_wp - 1 / (290 + 10 * air(1, b))
      k(:, b) = [8e-3_wp * sun, 4.4e-4_wp * exp(1370 * warm), 0.2_wp, 2e-5_wp * sun * exp(800 * warm), 2e-5_wp * sun, &
          0.1_wp, 1e-5_wp]
      emission([NO, VOC, O3], b) = [air(2:3, b) / 3600, 40 * 1e-5_wp] ! O3 comes from the air around
    end do
  end subroutine set_air

  ! The change of concentrations x in a second, and its derivative.
  pure subroutine chemistry(x, b, change, jacobian)
    real(wp), intent(in) :: x(species)
    integer, intent(in) :: b
    real(wp), intent(out) :: change(species), jacobian(species, species)
    real(wp) :: slope(reactions, species)
    slope = 0
    slope(1, NO2) = 1
    slope(2, [NO, O3]) = x([O3, NO])
    slope(3, [RO2, NO]) = x([NO, RO2])
    slope(4, VOC) = 1
    slope(5, NO2) = 1
    slope(6, RO2) = 2 * x(RO2)
    slope(7, O3) = 1
    jacobian = matmul(made, spread(k(:, b), 2, species) * slope)
    change = emission(:, b) + &
        matmul(made, k(:, b) * [x(NO2), x(NO) * x(O3), x(RO2) * x(NO), x(VOC), x(NO2), x(RO2)**2, x(O3)])
  end subroutine chemistry

  ! A step of a box by Rosenbrock's method of second order (Verwer et al. 1999).
  pure function solved(x, b) result(out)
    real(wp), intent(in) :: x(species)
    integer, intent(in) :: b
    real(wp), parameter :: h = dt / substeps, gamma = 1 + 1 / sqrt(2.0_wp)
    real(wp) :: out(species), k1(species), k2(species), jacobian(species, species), unused(species, species)
    integer :: s
    out = x
    do s = 1, substeps
      call chemistry(out, b, k1, jacobian)
      k1 = quotient(-gamma * h * jacobian, k1)
      call chemistry(out + h * k1, b, k2, unused)
      k2 = quotient(-gamma * h * jacobian, k2 - 2 * k1)
      out = out + h * (1.5_wp * k1 + 0.5_wp * k2)
    end do
  end function solved

  ! Solves (1 + a) y = x. The matrices of this chemistry need no pivots.
  pure function quotient(a, x) result(y)
    real(wp), intent(in) :: a(species, species), x(species)
    real(wp) :: y(species), m(species, species + 1)
    integer :: i, j
    m = reshape([a, x], shape(m))
    do i = 1, species
      m(i, i) = m(i, i) + 1
    end do
    do i = 1, species
      m(i, i:) = m(i, i:) / m(i, i)
      do j = 1, species
        if (j /= i) m(j, i:) = m(j, i:) - m(j, i) * m(i, i:)
      end do
    end do
    y = m(:, species + 1)
  end function quotient

  subroutine run_solver()
    integer :: i, b
    reference = spread([0.5_wp, 2.0_wp, 40.0_wp, 10.0_wp, 0.0_wp, 0.0_wp, 0.0_wp], 2, boxes)
    c = reference
    seconds(1) = seconds(1) - MPI_Wtime()
    do i = 0, steps - 1
      call set_air(i)
      do b = 1, boxes
        reference(:, b) = solved(reference(:, b), b)
      end do
    end do
    seconds(1) = seconds(1) + MPI_Wtime()
    if (context%rank() == 0) print '(a, 7es24.16)', 'solver alone, means in ppb:', sum(reference, 2) / boxes
  end subroutine run_solver

  ! Three programs over one description, with weights of their own.
  subroutine make_networks()
    integer :: m
    call model%create('chemistry')
    call model%add_input('x', [known])
    call model%add_input('y', [species])
    call model%add('fc', 'hidden1', 'channels: 48', from='x')
    call model%add('tanh')
    call model%add('fc', 'hidden2', 'channels: 48')
    call model%add('tanh')
    call model%add('fc', 'change', 'channels: 7')
    call model%add('mse', 'loss', from='change, y')
    do m = 1, members
      call program(m)%create(context, seed=m)
      call program(m)%add_training(model, boxes * context%nranks(), train(m), optimizer='adam')
      call program(m)%add_forward(model, boxes * context%nranks(), apply(m), outputs='change')
      call program(m)%plan()
    end do
    call reservoir%create(40000, keep='uniform', seed=context%rank())
    call reservoir%add_field('x', [known])
    call reservoir%add_field('y', [species])
  end subroutine make_networks

  ! Nitrogen and carbon of a step that may still react: what was there, and what is emitted.
  pure function supply(x, b)
    real(wp), intent(in) :: x(species)
    integer, intent(in) :: b
    real(wp) :: supply(2)
    supply = [x(NO) + x(NO2) + dt * emission(NO, b), x(VOC) + x(RO2) + dt * emission(VOC, b)]
  end function supply

  ! What the networks predict: relative changes, and which parts of nitrogen and carbon become HNO3 and CO.
  pure function answer(old, new, b) result(y)
    real(wp), intent(in) :: old(species), new(species)
    integer, intent(in) :: b
    real(wp) :: y(species)
    y(NO:RO2) = log((max(new(NO:RO2), 0.0_wp) + least) / (max(old(NO:RO2), 0.0_wp) + least))
    y(HNO3:CO) = (new(HNO3:CO) - old(HNO3:CO)) / supply(old, b)
    y = y / unit
  end function answer

  ! The concentrations that a prediction means. The nitrogen and the carbon that are there are distributed in the
  ! predicted proportions, so they are conserved.
  pure function predicted(old, y, b) result(new)
    real(wp), intent(in) :: old(species), y(species)
    integer, intent(in) :: b
    real(wp) :: new(species), there(2)
    there = supply(old, b)
    new(NO:RO2) = max((max(old(NO:RO2), 0.0_wp) + least) * exp(y(NO:RO2) * unit(NO:RO2)) - least, 0.0_wp)
    new(HNO3:CO) = max(y(HNO3:CO) * unit(HNO3:CO), 0.0_wp) * there
    new(nitrogen) = new(nitrogen) * there(1) / sum(new(nitrogen))
    new(carbon) = new(carbon) * there(2) / sum(new(carbon))
    new(HNO3:CO) = new(HNO3:CO) + old(HNO3:CO)
  end function predicted

  ! The run by networks and solver. Each rank decides for its boxes; all ranks train together.
  subroutine run_networks()
    real(wp) :: x(known, boxes), y(species, boxes), each(species, boxes, members), mean(species), new(species)
    real(wp) :: total(species, boxes) ! what was there at the beginning, and all emissions
    integer :: counts(4, 2), i, j, b, m, n, which
    logical :: is_sure
    call make_networks()
    total = c
    do i = 0, steps - 1
      if (mod(i, steps_per_day) == 0) counts = 0
      call set_air(i)
      seconds(2) = seconds(2) - MPI_Wtime()
      do b = 1, boxes
        x(:, b) = [log((max(c(NO:RO2, b), 0.0_wp) + least) / usual) / 2, air(:, b)]
      end do
      do m = 1, members
        call program(m)%write_input(apply(m), 'x', x)
        call program(m)%step(apply(m))
        call program(m)%read_output(apply(m), 'change', each(:, :, m))
      end do
      seconds(2) = seconds(2) + MPI_Wtime()
      n = 0
      do b = 1, boxes
        mean = sum(each(:, b, :), 2) / members
        is_sure = all(maxval(each(:, b, :), 2) - minval(each(:, b, :), 2) <= limit)
        total(:, b) = total(:, b) + dt * emission(:, b)
        which = merge(2, 1, is_new(b))
        if (.not. is_sure) counts(2, which) = counts(2, which) + 1
        if (is_sure .and. modulo(b + i, checked) > 0) then
          c(:, b) = predicted(c(:, b), mean, b)
          counts(1, which) = counts(1, which) + 1
          cycle
        end if
        n = n + 1
        new = solved(c(:, b), b)
        x(:, n) = x(:, b)
        y(:, n) = answer(c(:, b), new, b)
        c(:, b) = new
        if (is_sure) then ! a check; the limit comes to rest where one in 20 fails
          counts(3, which) = counts(3, which) + 1
          limit = min(limit * 1.005_wp, tolerance)
          if (all(abs(mean - y(:, n)) <= tolerance)) cycle
          counts(4, which) = counts(4, which) + 1
          limit = limit * 0.9_wp
        end if
      end do
      call reservoir%put('x', x(:, :n))
      call reservoir%put('y', y(:, :n))
      call reservoir%push()
      do j = 1, trainings
        do m = 1, members
          call reservoir%draw(program(m), train(m))
          call program(m)%step(train(m), learning_rate=4e-3_wp / sqrt(1 + i / 24.0_wp))
        end do
      end do
      if (mod(i + 1, steps_per_day) > 0) cycle
      call MPI_Allreduce(MPI_IN_PLACE, counts, size(counts), MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
      if (context%rank() == 0) print '(9(a, i0))', 'day ', (i + 1) / steps_per_day, ': networks ', counts(1, 1), &
          ', unsure ', counts(2, 1), ', checks ', counts(3, 1), ', failed ', counts(4, 1), '; new air: networks ', &
          counts(1, 2), ', unsure ', counts(2, 2), ', checks ', counts(3, 2), ', failed ', counts(4, 2)
    end do
    call print_result(total)
    do m = 1, members
      call program(m)%destroy()
    end do
    call reservoir%destroy()
    call model%destroy()
  end subroutine run_networks

  ! Compared with the solver alone.
  subroutine print_result(total)
    real(wp), intent(in) :: total(species, boxes)
    real(wp) :: squares(species, 2), lost
    squares = reshape([sum((c - reference)**2, 2), sum(reference**2, 2)], [species, 2])
    lost = max(maxval(abs(sum(c(nitrogen, :), 1) / sum(total(nitrogen, :), 1) - 1)), &
        maxval(abs(sum(c(carbon, :), 1) / sum(total(carbon, :), 1) - 1)))
    call MPI_Allreduce(MPI_IN_PLACE, squares, size(squares), MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
    call MPI_Allreduce(MPI_IN_PLACE, lost, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD)
    if (context%rank() > 0) return
    print '(a)', '                        NO     NO2      O3     VOC     RO2    HNO3      CO'
    print '(a, 7(1x, f7.4))', 'relative errors:  ', sqrt(squares(:, 1) / squares(:, 2))
    print '(a, es8.1)', 'nitrogen or carbon that came from nothing or was lost, relative: ', lost
    print '(2(a, f6.2))', 'microseconds for a step of a box: solver', 1e6_wp * seconds(1) / steps / boxes, &
        ', networks', 1e6_wp * seconds(2) / steps / boxes
  end subroutine print_result

end program box_model
