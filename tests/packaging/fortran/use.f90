! use.f90: a program that uses an installed convoy: it prints the version of the library.
!
! SPDX-License-Identifier: BSD-3-Clause
program use
  use convoy
  implicit none
  type(convoy_context) :: context
  call context%create(threads=1)
  if (context%nranks() /= 1) error stop 'more than one rank'
  call context%destroy()
  print '(a)', convoy_version()
end program use
