# SPDX-License-Identifier: BSD-3-Clause
# What `cmake --install` installs: command, shared library, public headers, the files with which CMake and pkg-config
# find them, manual pages, completions of shells, documentation, examples and module files.
include(CMakePackageConfigHelpers)

set(convoy_libdir "${CMAKE_INSTALL_LIBDIR}") # of the library
set(convoy_name convoy)                      # of the files that name that folder
if(CONVOY_MPI_VARIANT)
    set(convoy_libdir "${convoy_variant_folder}")
    set(convoy_name convoy-${CONVOY_MPI_VARIANT})
    install(TARGETS convoy_loader RUNTIME)
    install(TARGETS convoy_module LIBRARY DESTINATION "${convoy_libdir}")
    install(TARGETS convoy_choose LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/convoy")
    if(TARGET convoy_alone)
        install(TARGETS convoy_alone LIBRARY DESTINATION "${convoy_libdir}")
    endif()
elseif(TARGET convoy)
    install(TARGETS convoy RUNTIME)
endif()
if(TARGET convoy_hdf5)
    install(TARGETS convoy_hdf5 RUNTIME DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/convoy")
endif()
if(TARGET convoy_sim)
    install(TARGETS convoy_sim LIBRARY DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
install(TARGETS convoy_shared EXPORT convoy LIBRARY DESTINATION "${convoy_libdir}")
install(DIRECTORY include/convoy TYPE INCLUDE FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
# A module of Fortran is for one compiler: the user's compiles these.
install(FILES ${convoy_fortran} DESTINATION "${CMAKE_INSTALL_DATADIR}/convoy/fortran")
# in the places that links name
install(FILES LICENSE README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md CITATION.cff TYPE DOC)
install(DIRECTORY docs examples licenses TYPE DOC OPTIONAL)
# what sites may change, and what `convoy study` runs
install(DIRECTORY jobscripts DESTINATION "${CMAKE_INSTALL_DATADIR}/convoy")
install(DIRECTORY frameworks DESTINATION "${CMAKE_INSTALL_DATADIR}/convoy" FILES_MATCHING PATTERN "*.yaml" PATTERN "*.py" PATTERN "*.sh")
if(TARGET convoy_man)
    install(DIRECTORY "${convoy_man}/" DESTINATION "${CMAKE_INSTALL_MANDIR}")
    if(CONVOY_WITH_LAB)
        install(FILES "${convoy_completion}/bash/convoy" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
        install(FILES "${convoy_completion}/zsh/_convoy" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
        install(FILES "${convoy_completion}/fish/convoy.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
    endif()
endif()

set(convoy_package "${CMAKE_INSTALL_LIBDIR}/cmake/convoy")
configure_package_config_file(cmake/convoy-config.cmake.in "${CONVOY_GEN}/convoy-config.cmake" INSTALL_DESTINATION "${convoy_package}")
write_basic_package_version_file("${CONVOY_GEN}/convoy-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(EXPORT convoy NAMESPACE convoy:: FILE ${convoy_name}-targets.cmake DESTINATION "${convoy_package}")
install(FILES "${CONVOY_GEN}/convoy-config.cmake" "${CONVOY_GEN}/convoy-config-version.cmake" DESTINATION "${convoy_package}")

# Written at install time, so that `cmake --install --prefix` is honoured.
if(CONVOY_MPI_VARIANT)
    set(mpi "Open MPI 4 and 5, and for MPICH, Intel MPI, Cray MPICH and MVAPICH; the launcher decides")
else()
    set(mpi "the MPI library of ${MPI_C_COMPILER}")
endif()
configure_file(cmake/convoy-install.cmake.in "${CONVOY_GEN}/convoy-install.cmake" @ONLY)
install(SCRIPT "${CONVOY_GEN}/convoy-install.cmake")
