# SPDX-License-Identifier: BSD-3-Clause
# CONVOY_MPI_VARIANT=openmpi or mpich: one of several builds that are installed into one prefix, each for the ABI of
# another MPI library.
#
#   bin/convoy                              the loader (cmd/loader/loader.c), which chooses a build and loads its MPI
#   lib/convoy/choose.so                    the same choice, for the package for Python
#   lib/convoy/mpich/alone.so               stands for MPI where there is none, for one rank (cmd/loader/mpi_alone.c)
#   lib/convoy/<variant>/convoy.so          the command
#   lib/convoy/<variant>/libconvoy.so.0     the library
#
# Configure and install once for each variant, with the same prefix. What both install elsewhere is equal.
if(NOT CONVOY_MPI_VARIANT MATCHES "^(openmpi|mpich)$")
    message(FATAL_ERROR "CONVOY_MPI_VARIANT is '${CONVOY_MPI_VARIANT}', expected openmpi (libmpi.so.40) or mpich (libmpi.so.12)")
endif()
# The wrong MPI would be found only when the installed command crashes.
include(CheckSymbolExists)
set(CMAKE_REQUIRED_INCLUDES ${MPI_C_INCLUDE_DIRS})
check_symbol_exists(OPEN_MPI mpi.h CONVOY_MPI_IS_OPEN_MPI)
unset(CMAKE_REQUIRED_INCLUDES)
if(CONVOY_MPI_IS_OPEN_MPI AND CONVOY_MPI_VARIANT STREQUAL "mpich" OR NOT CONVOY_MPI_IS_OPEN_MPI AND CONVOY_MPI_VARIANT STREQUAL "openmpi")
    message(FATAL_ERROR "CONVOY_MPI_VARIANT is ${CONVOY_MPI_VARIANT}, but the MPI that was found is another one: ${MPI_C_COMPILER} "
                        "(name its compiler: -DMPI_C_COMPILER=mpicc.${CONVOY_MPI_VARIANT})")
endif()

set(convoy_variant_folder "${CMAKE_INSTALL_LIBDIR}/convoy/${CONVOY_MPI_VARIANT}")
add_library(convoy_module MODULE $<TARGET_OBJECTS:convoy_cmd> ${convoy_lab_objects})
target_link_libraries(convoy_module PRIVATE convoy_shared Threads::Threads $<TARGET_NAME_IF_EXISTS:OpenMP::OpenMP_C> m ${CONVOY_TIMERS})
# libconvoy is beside it; a tarball has libgomp in the folder above.
set_target_properties(convoy_module PROPERTIES PREFIX "" OUTPUT_NAME convoy LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/variant" INSTALL_RPATH "$ORIGIN;$ORIGIN/..")

# The loader's choice looks at the processes above this one, as the command does.
set(convoy_choose_sources cmd/loader/choose.c cmd/convoy/cmd_launchers.c cmd/convoy/cmd_launch.c cmd/convoy/cmd_file.c)
add_executable(convoy_loader cmd/loader/loader.c ${convoy_choose_sources})
target_compile_definitions(convoy_loader PRIVATE "CONVOY_LIBDIR=\"${CMAKE_INSTALL_LIBDIR}\"")
set_target_properties(convoy_loader PROPERTIES OUTPUT_NAME convoy RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/variant")
add_library(convoy_choose MODULE ${convoy_choose_sources})
set_target_properties(convoy_choose PROPERTIES PREFIX "" OUTPUT_NAME choose C_VISIBILITY_PRESET hidden LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/variant")
foreach(target convoy_loader convoy_choose)
    target_include_directories(${target} PRIVATE cmd/convoy include)
    target_link_libraries(${target} PRIVATE convoy_flags ${CMAKE_DL_LIBS})
endforeach()

if(CONVOY_MPI_VARIANT STREQUAL "mpich")
    add_library(convoy_alone MODULE cmd/loader/mpi_alone.c)
    target_link_libraries(convoy_alone PRIVATE convoy_flags convoy_mpi_headers)
    target_compile_options(convoy_alone PRIVATE -Wno-unused-parameter)
    set_target_properties(convoy_alone PROPERTIES PREFIX "" OUTPUT_NAME alone LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/variant")
endif()
