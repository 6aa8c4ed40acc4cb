# SPDX-License-Identifier: BSD-3-Clause
# CONVOY_MPI_VARIANT=openmpi or mpich: one of several builds that are installed into one prefix, each for the ABI of
# another MPI library.
#
#   bin/convoy                              the loader (cmd/loader/loader.c), which chooses a build and loads its MPI
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
add_library(convoy_module MODULE $<TARGET_OBJECTS:convoy_cmd>)
target_link_libraries(convoy_module PRIVATE convoy_shared m ${CONVOY_TIMERS})
set_target_properties(convoy_module PROPERTIES PREFIX "" OUTPUT_NAME convoy LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/variant" INSTALL_RPATH "$ORIGIN")

file(GLOB convoy_loader_sources CONFIGURE_DEPENDS cmd/loader/*.c)
add_executable(convoy_loader ${convoy_loader_sources} cmd/convoy/cmd_launchers.c cmd/convoy/cmd_launch.c cmd/convoy/cmd_file.c)
target_include_directories(convoy_loader PRIVATE cmd/convoy include)
target_link_libraries(convoy_loader PRIVATE convoy_flags ${CMAKE_DL_LIBS})
target_compile_definitions(convoy_loader PRIVATE "CONVOY_LIBDIR=\"${CMAKE_INSTALL_LIBDIR}\"")
set_target_properties(convoy_loader PROPERTIES OUTPUT_NAME convoy RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/variant")
