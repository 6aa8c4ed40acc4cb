# SPDX-License-Identifier: BSD-3-Clause
# The lines that miniWeather (mrnorman/miniWeather, fortran/miniWeather_mpi.F90) gets to train a network beside its run.
# The network learns the vertical tendency of a cell: that of its momentum, from the five cells around it and the density
# of the air at rest.
1,/^contains/{
/^  use mpi$/a\
  use convoy
/^  integer(8) :: t1, t2, rate/a\
  type(convoy_context) :: context\
  type(convoy_model) :: model\
  type(convoy_program) :: program\
  type(convoy_reservoir) :: reservoir\
  integer :: train, k\
  real(rp) :: loss
/^  call output(state,etime)/a\
  call context%create(MPI_COMM_WORLD, threads=1)\
  call model%create('tendency')\
  call model%add_input('x', [21])\
  call model%add_input('y', [1])\
  call model%add('fc', 'hidden', 'channels: 32', from='x')\
  call model%add('tanh')\
  call model%add('fc', 'answer', 'channels: 1')\
  call model%add('mse', 'loss', from='answer, y')\
  call program%create(context, seed=1)\
  call program%add_training(model, 1024 * nranks, train, optimizer='adam')\
  call program%plan()\
  call reservoir%create(100000, seed=myrank)\
  call reservoir%add_field('x', [21])\
  call reservoir%add_field('y', [1])
/^    call perform_timestep(/a\
    call reservoir%put('x', reshape([(state_tmp(1:nx,k-2:nz+k-3,:), k = 1, 5), spread(hy_dens_cell(1:nz), 1, nx)], [21, nx*nz], order=[2,1]))\
    call reservoir%put('y', reshape(tend(:,:,ID_WMOM), [1, nx*nz]))\
    call reservoir%push()\
    call reservoir%draw(program, train)\
    call program%step(train, learning_rate=5e-3_rp)\
    call program%loss(train, 'loss', loss)\
    if (myrank == 0) write(*,*) 'Loss: ', loss, sum(tend(:,:,ID_WMOM)**2) / (nx*nz)
/^  call finalize()/i\
  call program%destroy()\
  call context%destroy()
}
