! pnetcdf_stub.f90: stands in for PnetCDF in mini_app.sh. Each rank writes the values of all variables, one after the
! other, into a file of its own.
!
! SPDX-License-Identifier: BSD-3-Clause
module pnetcdf
  use mpi
  implicit none
  integer, parameter :: nf90_clobber = 0, nf90_write = 1, nf90_double = 6, nf_noerr = 0, nf90_unlimited = 0
  integer, parameter, private :: offset = MPI_OFFSET_KIND
  integer, private :: file = 0

contains

  integer function nf90mpi_create(comm, path, mode, info, ncid) result(status)
    integer, intent(in) :: comm, mode, info
    character(len=*), intent(in) :: path
    integer, intent(out) :: ncid
    character(len=20) :: number
    integer :: rank
    call MPI_Comm_rank(comm, rank, status)
    write (number, '(a, i0)') '.', rank
    open (newunit=file, file=path // trim(number), access='stream', form='unformatted', status='replace')
    ncid = file
  end function nf90mpi_create

  integer function nfmpi_open(comm, path, mode, info, ncid) result(status)
    integer, intent(in) :: comm, mode, info
    character(len=*), intent(in) :: path
    integer, intent(out) :: ncid
    ncid = file
    status = nf_noerr
  end function nfmpi_open

  integer function nfmpi_def_dim(ncid, name, length, id) result(status)
    integer, intent(in) :: ncid
    character(len=*), intent(in) :: name
    integer(offset), intent(in) :: length
    integer, intent(out) :: id
    id = 0
    status = nf_noerr
  end function nfmpi_def_dim

  integer function nfmpi_def_var(ncid, name, kind, ndim, dims, id) result(status)
    integer, intent(in) :: ncid, kind, ndim, dims(*)
    character(len=*), intent(in) :: name
    integer, intent(out) :: id
    id = 0
    status = nf_noerr
  end function nfmpi_def_var

  integer function nfmpi_inq_varid(ncid, name, id) result(status)
    integer, intent(in) :: ncid
    character(len=*), intent(in) :: name
    integer, intent(out) :: id
    id = 0
    status = nf_noerr
  end function nfmpi_inq_varid

  integer function nfmpi_put_vara_double_all(ncid, id, start, count, values) result(status)
    integer, intent(in) :: ncid, id
    integer(offset), intent(in) :: start(:), count(:)
    double precision, intent(in) :: values(*)
    write (ncid) start, count, values(1:product(count))
    status = nf_noerr
  end function nfmpi_put_vara_double_all

  integer function nfmpi_put_vara_double(ncid, id, start, count, values) result(status)
    integer, intent(in) :: ncid, id
    integer(offset), intent(in) :: start(:), count(:)
    double precision, intent(in) :: values(*)
    status = nfmpi_put_vara_double_all(ncid, id, start, count, values)
  end function nfmpi_put_vara_double

  integer function nfmpi_enddef(ncid) result(status)
    integer, intent(in) :: ncid
    status = nf_noerr
  end function nfmpi_enddef

  integer function nfmpi_begin_indep_data(ncid) result(status)
    integer, intent(in) :: ncid
    status = nf_noerr
  end function nfmpi_begin_indep_data

  integer function nfmpi_end_indep_data(ncid) result(status)
    integer, intent(in) :: ncid
    status = nf_noerr
  end function nfmpi_end_indep_data

  integer function nf90mpi_close(ncid) result(status)
    integer, intent(in) :: ncid
    status = nf_noerr
  end function nf90mpi_close

  character(len=20) function nf90mpi_strerror(status)
    integer, intent(in) :: status
    nf90mpi_strerror = 'a fault'
  end function nf90mpi_strerror

end module pnetcdf
