# SPDX-License-Identifier: BSD-3-Clause
# Builds for 64-bit ARM (aarch64) on another Linux machine, and runs the tests in its emulator:
#
#   cmake --preset release -B build/aarch64 -DCMAKE_TOOLCHAIN_FILE=cmake/toolchain-aarch64-linux.cmake -DCMAKE_SYSROOT=FOLDER
#
# Debian: gcc-aarch64-linux-gnu and qemu-user. FOLDER is a system with the packages of that architecture, for example one
# made by debootstrap, with `dpkg --add-architecture arm64` and libopenmpi-dev:arm64 libyaml-dev:arm64. Without it the
# libraries of this system are used, if it has those of that architecture. scripts/cross.sh does all this.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# mpicc of that system does not run here, and pkg-config speaks of this one: CMake is told what they would say.
set(CMAKE_DISABLE_FIND_PACKAGE_PkgConfig ON)
set(MPI_SKIP_COMPILER_WRAPPER ON)
set(MPI_ASSUME_NO_BUILTIN_MPI ON)
set(MPI_C_LIB_NAMES mpi CACHE STRING "the MPI library, see MPI_mpi_LIBRARY")
set(MPI_C_HEADER_DIR "${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/openmpi/include" CACHE PATH "folder of mpi.h")
set(MPI_mpi_LIBRARY "${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/openmpi/lib/libmpi.so" CACHE FILEPATH "the MPI library")

find_program(CONVOY_QEMU NAMES qemu-aarch64 qemu-aarch64-static)
if(CONVOY_QEMU AND CMAKE_SYSROOT)
    set(CMAKE_CROSSCOMPILING_EMULATOR "${CONVOY_QEMU};-L;${CMAKE_SYSROOT}")
elseif(CONVOY_QEMU)
    set(CMAKE_CROSSCOMPILING_EMULATOR "${CONVOY_QEMU}")
endif()
