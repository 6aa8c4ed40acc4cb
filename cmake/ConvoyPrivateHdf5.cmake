# SPDX-License-Identifier: BSD-3-Clause
# The shared libconvoy loads a libhdf5 of its own instead of being linked with it (src/data/hdf5/data_hdf5_private.c says
# why). That needs a shared libhdf5, a processor for which that file has an instruction to jump, and no sanitizer, which
# would refuse it. Otherwise libconvoy is linked with libhdf5; a static one stays inside, because only our symbols leave.
set(convoy_hdf5_soname)
if(CVY_HAVE_HDF5 AND CONVOY_PRIVATE_HDF5 AND CMAKE_SYSTEM_NAME STREQUAL "Linux" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|aarch64)$" AND
   NOT CONVOY_SANITIZE AND CMAKE_READELF AND CMAKE_NM)
    execute_process(COMMAND "${CMAKE_READELF}" -d "${HDF5_LIBRARY}" OUTPUT_VARIABLE convoy_hdf5_dynamic ERROR_QUIET)
    if(convoy_hdf5_dynamic MATCHES "\\(SONAME\\)[^[]*\\[([^]]+)\\]")
        set(convoy_hdf5_soname "${CMAKE_MATCH_1}")
    endif()
endif()
if(convoy_hdf5_soname)
    set(convoy_hdf5_symbols "${CONVOY_GEN}/data/hdf5/data_hdf5_symbols.h")
    set(convoy_hdf5_objects "$<FILTER:$<TARGET_OBJECTS:convoy_objects>,INCLUDE,/data/hdf5/>")
    file(MAKE_DIRECTORY "${CONVOY_GEN}/data/hdf5")
    add_custom_command(
        OUTPUT "${convoy_hdf5_symbols}"
        COMMAND sh "${PROJECT_SOURCE_DIR}/tools/list_hdf5.sh" "${CMAKE_NM}" "${convoy_hdf5_symbols}" "${convoy_hdf5_objects}"
        DEPENDS tools/list_hdf5.sh "${convoy_hdf5_objects}"
        COMMENT "Listing the functions of HDF5 that are called"
        COMMAND_EXPAND_LISTS
        VERBATIM)
    target_sources(convoy_shared PRIVATE src/data/hdf5/data_hdf5_private.c "${convoy_hdf5_symbols}")
    # The optimiser of the linker does not see what the assembler's text defines.
    set_source_files_properties(src/data/hdf5/data_hdf5_private.c PROPERTIES
        COMPILE_DEFINITIONS "CVY_HDF5_SONAME=\"${convoy_hdf5_soname}\"" COMPILE_OPTIONS "-fno-lto" OBJECT_DEPENDS "${convoy_hdf5_symbols}")
    target_include_directories(convoy_shared PRIVATE src "${CONVOY_GEN}" "${HDF5_INCLUDE_DIR}")
    set_target_properties(convoy_shared PROPERTIES CONVOY_LOADS_HDF5 ON)
    # It is found where the linker would have found it.
    get_filename_component(convoy_hdf5_folder "${HDF5_LIBRARY}" DIRECTORY)
    if(NOT convoy_hdf5_folder IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES)
        set_property(TARGET convoy_shared APPEND PROPERTY BUILD_RPATH "${convoy_hdf5_folder}")
        if(CMAKE_INSTALL_RPATH_USE_LINK_PATH)
            set_property(TARGET convoy_shared APPEND PROPERTY INSTALL_RPATH "${convoy_hdf5_folder}")
        endif()
    endif()
endif()
