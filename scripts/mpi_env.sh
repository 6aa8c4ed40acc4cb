# SPDX-License-Identifier: BSD-3-Clause
# mpi_env.sh: the environment in which Open MPI, MPICH and Intel MPI run as root, on fewer cores than ranks, without binding ranks
# to cores.
#
# The scripts source it, and the build reads the export lines below for ctest. On a cluster the batch system sets all
# this, and the file is not used.

# Open MPI 4
export OMPI_ALLOW_RUN_AS_ROOT=1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_mpi_yield_when_idle=1
# containers forbid one process to read another's memory
export OMPI_MCA_btl_vader_single_copy_mechanism=none
# Open MPI 5
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export PRTE_MCA_hwloc_default_binding_policy=none
# MPICH
export HYDRA_BINDING=none
# MPICH on UCX would replace mmap and munmap in the whole program, also in tests that count those calls
export UCX_MEM_MMAP_HOOK_MODE=none
# mpiexec looks for GPUs by hwloc, which loads OpenCL, and the compiler in PoCL takes the signal USR1 from mpiexec
export HWLOC_COMPONENTS=-opencl
# Intel MPI: ranks of one node use shared memory alone; it need not look for network interfaces, which containers hide
export I_MPI_FABRICS=shm
export I_MPI_PIN=0
