# SPDX-License-Identifier: BSD-3-Clause
# Finds the libraries that convoy is built on and collects them in the interface target convoy_dependencies.
#
# Required are MPI, libyaml, and the threads and mathematics of the C library. Everything else is optional:
# CVY_HAVE_<NAME> becomes 1 if it is wanted and found, else 0, and the library is built without it. A library is looked
# up as one header and one library file, because they all come in this form, from a distribution, a module system or a
# folder named in CMAKE_PREFIX_PATH. convoy_libraries holds everything but MPI, for the simulated build, which has its
# own MPI.
add_library(convoy_dependencies INTERFACE)
add_library(convoy_libraries INTERFACE)

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(MPI REQUIRED COMPONENTS C)
target_link_libraries(convoy_libraries INTERFACE Threads::Threads m ${CMAKE_DL_LIBS})
target_link_libraries(convoy_dependencies INTERFACE MPI::MPI_C convoy_libraries)

# Before version 2.34 of glibc the timers of the command are in a library of their own.
include(CheckLibraryExists)
set(CONVOY_TIMERS)
check_library_exists(c timer_create "" CONVOY_TIMERS_IN_LIBC)
if(NOT CONVOY_TIMERS_IN_LIBC)
    check_library_exists(rt timer_create "" CONVOY_TIMERS_IN_LIBRT)
    if(CONVOY_TIMERS_IN_LIBRT)
        set(CONVOY_TIMERS rt)
    endif()
endif()

# The headers of MPI without its libraries.
add_library(convoy_mpi_headers INTERFACE)
target_include_directories(convoy_mpi_headers SYSTEM INTERFACE $<TARGET_PROPERTY:MPI::MPI_C,INTERFACE_INCLUDE_DIRECTORIES>)
target_compile_options(convoy_mpi_headers INTERFACE $<TARGET_PROPERTY:MPI::MPI_C,INTERFACE_COMPILE_OPTIONS>)
target_compile_definitions(convoy_mpi_headers INTERFACE $<TARGET_PROPERTY:MPI::MPI_C,INTERFACE_COMPILE_DEFINITIONS>)

# convoy_find(NAME header library...): makes convoy_<NAME>; sets <NAME>_LIBRARY, empty if not found.
function(convoy_find name header)
    find_path(${name}_INCLUDE_DIR ${header} PATH_SUFFIXES hdf5/serial cfitsio)
    find_library(${name}_LIBRARY NAMES ${ARGN})
    mark_as_advanced(${name}_INCLUDE_DIR ${name}_LIBRARY)
    if(${name}_INCLUDE_DIR AND ${name}_LIBRARY)
        add_library(convoy_${name} INTERFACE)
        target_include_directories(convoy_${name} SYSTEM INTERFACE "${${name}_INCLUDE_DIR}")
        target_link_libraries(convoy_${name} INTERFACE "${${name}_LIBRARY}")
    endif()
endfunction()

convoy_find(YAML yaml.h yaml)
if(NOT TARGET convoy_YAML)
    message(FATAL_ERROR "libyaml is required (Debian: libyaml-dev). If it lies in a folder of yours, name that in CMAKE_PREFIX_PATH.")
endif()
target_link_libraries(convoy_libraries INTERFACE convoy_YAML)

# convoy_optional(NAME header library...): the same for a dependency that can be left out with CONVOY_WITH_<NAME>=OFF.
macro(convoy_optional name header)
    set(CVY_HAVE_${name} 0)
    if(CONVOY_WITH_${name})
        convoy_find(${name} ${header} ${ARGN})
        if(TARGET convoy_${name})
            set(CVY_HAVE_${name} 1)
            # but HDF5 in a library that loads it (ConvoyPrivateHdf5)
            target_link_libraries(convoy_libraries INTERFACE $<$<NOT:$<BOOL:$<TARGET_PROPERTY:CONVOY_LOADS_${name}>>>:convoy_${name}>)
        endif()
    endif()
endmacro()

convoy_optional(ONEDNN oneapi/dnnl/dnnl.h dnnl)
convoy_optional(JPEG jpeglib.h jpeg)
convoy_optional(SPNG spng.h spng)
convoy_optional(LMDB lmdb.h lmdb)
convoy_optional(HDF5 hdf5.h hdf5_serial hdf5)
convoy_optional(CFITSIO fitsio.h cfitsio)
convoy_optional(XXHASH xxhash.h xxhash)

# Protocol buffers, for ONNX and event files: the library, and the compiler of its schemas.
find_program(CONVOY_PROTOC_C protoc-c)
mark_as_advanced(CONVOY_PROTOC_C)
set(CVY_HAVE_PROTOBUF_C 0)
if(CONVOY_PROTOC_C)
    convoy_optional(PROTOBUF_C protobuf-c/protobuf-c.h protobuf-c)
endif()

set(CVY_HAVE_LIBDEFLATE 0)
if(CONVOY_WITH_LIBDEFLATE)
    convoy_find(LIBDEFLATE libdeflate.h deflate)
    if(TARGET convoy_LIBDEFLATE)
        # Version 1.5 and older do not say how much of the input they have read.
        include(CheckSymbolExists)
        set(CMAKE_REQUIRED_INCLUDES "${LIBDEFLATE_INCLUDE_DIR}")
        set(CMAKE_REQUIRED_LIBRARIES "${LIBDEFLATE_LIBRARY}")
        check_symbol_exists(libdeflate_zlib_decompress_ex libdeflate.h CONVOY_LIBDEFLATE_HAS_EX)
        unset(CMAKE_REQUIRED_INCLUDES)
        unset(CMAKE_REQUIRED_LIBRARIES)
        if(CONVOY_LIBDEFLATE_HAS_EX)
            set(CVY_HAVE_LIBDEFLATE 1)
            target_link_libraries(convoy_libraries INTERFACE convoy_LIBDEFLATE)
        endif()
    endif()
endif()

set(CVY_HAVE_OPENMP 0)
if(CONVOY_WITH_OPENMP)
    find_package(OpenMP COMPONENTS C)
    if(OpenMP_C_FOUND)
        set(CVY_HAVE_OPENMP 1)
        target_link_libraries(convoy_libraries INTERFACE OpenMP::OpenMP_C)
    endif()
endif()

# SimGrid is another MPI library. Only the simulated command is built with it.
set(CVY_HAVE_SIMGRID 0)
if(CONVOY_WITH_SIMGRID AND NOT CONVOY_SANITIZE)
    convoy_find(SIMGRID smpi/smpi.h simgrid)
    find_program(CONVOY_SMPIRUN smpirun)
    mark_as_advanced(CONVOY_SMPIRUN)
    if(TARGET convoy_SIMGRID AND CONVOY_SMPIRUN)
        set(CVY_HAVE_SIMGRID 1)
    endif()
endif()
