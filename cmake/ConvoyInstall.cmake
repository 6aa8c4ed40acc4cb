# What `cmake --install` installs: command, shared library, public headers, the files with which CMake and pkg-config
# find them, manual pages, completions of shells, documentation and examples.
include(CMakePackageConfigHelpers)

if(TARGET convoy)
    install(TARGETS convoy RUNTIME)
endif()
if(TARGET convoy_sim)
    install(TARGETS convoy_sim LIBRARY DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
install(TARGETS convoy_shared EXPORT convoy LIBRARY)
install(DIRECTORY include/convoy TYPE INCLUDE FILES_MATCHING PATTERN "*.h")
# in the places that links name
install(FILES LICENSE README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md CITATION.cff TYPE DOC)
install(DIRECTORY docs examples licenses TYPE DOC OPTIONAL)
if(convoy_cheat_sheet)
    install(FILES "${convoy_cheat_sheet}" TYPE DOC)
endif()
if(TARGET convoy_man)
    install(DIRECTORY "${convoy_man}/" DESTINATION "${CMAKE_INSTALL_MANDIR}")
    install(FILES "${convoy_completion}/bash/convoy" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
    install(FILES "${convoy_completion}/zsh/_convoy" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
    install(FILES "${convoy_completion}/fish/convoy.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
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
