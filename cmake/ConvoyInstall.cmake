# What `cmake --install` installs: command, shared library, public headers, the files with which CMake and pkg-config
# find them, manual page, documentation and examples.
include(CMakePackageConfigHelpers)

if(TARGET convoy)
    install(TARGETS convoy RUNTIME)
endif()
if(TARGET convoy_hdf5)
    install(TARGETS convoy_hdf5 RUNTIME DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/convoy")
endif()
if(TARGET convoy_sim)
    install(TARGETS convoy_sim LIBRARY DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
install(TARGETS convoy_shared EXPORT convoy LIBRARY)
install(DIRECTORY include/convoy TYPE INCLUDE FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md TYPE DOC) # in the places that links name
install(DIRECTORY docs examples TYPE DOC OPTIONAL)
if(TARGET convoy_man)
    install(FILES "${convoy_man}" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
endif()

set(convoy_package "${CMAKE_INSTALL_LIBDIR}/cmake/convoy")
configure_package_config_file(cmake/convoy-config.cmake.in "${CONVOY_GEN}/convoy-config.cmake" INSTALL_DESTINATION "${convoy_package}")
write_basic_package_version_file("${CONVOY_GEN}/convoy-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(EXPORT convoy NAMESPACE convoy:: FILE convoy-targets.cmake DESTINATION "${convoy_package}")
install(FILES "${CONVOY_GEN}/convoy-config.cmake" "${CONVOY_GEN}/convoy-config-version.cmake" DESTINATION "${convoy_package}")

# Written at install time, so that `cmake --install --prefix` is honoured.
install(CODE "
    set(prefix \"\${CMAKE_INSTALL_PREFIX}\")
    set(libdir \"${CMAKE_INSTALL_LIBDIR}\")
    set(includedir \"${CMAKE_INSTALL_INCLUDEDIR}\")
    set(version \"${PROJECT_VERSION}\")
    set(description \"${PROJECT_DESCRIPTION}\")
    configure_file(\"${PROJECT_SOURCE_DIR}/cmake/convoy.pc.in\" \"\$ENV{DESTDIR}\${prefix}/\${libdir}/pkgconfig/convoy.pc\" @ONLY)")
