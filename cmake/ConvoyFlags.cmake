# SPDX-License-Identifier: BSD-3-Clause
# Compiler flags of everything that is built here, as the interface target convoy_flags.
#
# The baseline is the plain architecture: kernels that gain from wider vectors have their own versions and choose one at
# run time, so one installed library serves every node type of a cluster. There is no -ffast-math: NaN and infinity must
# stay what they are, because runs are stopped on them. Only errno and floating-point traps are switched off, because
# nothing here uses them and they would prevent vector code.
add_library(convoy_flags INTERFACE)
target_compile_definitions(convoy_flags INTERFACE _GNU_SOURCE)
target_compile_options(convoy_flags INTERFACE
    -Wall -Wextra -Wstrict-prototypes -Wvla -Wpointer-arith
    -fno-math-errno -fno-trapping-math
    $<$<C_COMPILER_ID:Clang>:-Wno-pass-failed>
    "SHELL:-include ${CONVOY_GEN}/cvy_config.h")

if(NOT CVY_HAVE_OPENMP)
    # Vector hints stay in force, and the pragmas for threads are ignored without a warning.
    target_compile_options(convoy_flags INTERFACE -fopenmp-simd)
endif()

# Profiles and call stacks name lines, for which -g1 is enough; -g would take a fifth longer to compile.
set(CMAKE_C_FLAGS_RELEASE "-O3 -g1 -DNDEBUG")
set(CMAKE_C_FLAGS_DEBUG "-Og -g")
if(CONVOY_WERROR)
    target_compile_options(convoy_flags INTERFACE -Werror)
endif()
if(CONVOY_SANITIZE)
    # Reports name lines, for which -g1 is enough. It takes a third off the time to compile.
    set(CMAKE_C_FLAGS_DEBUG "-O1 -g1")
    set(CMAKE_C_FLAGS_RELEASE "-O1 -g1")
    add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
    add_link_options(-fsanitize=address,undefined)
endif()
if(CONVOY_FUZZ)
    set(CMAKE_C_FLAGS_DEBUG "-O1 -g1")
    add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
endif()

# Written only when it changes, so that a new configure does not rebuild everything.
configure_file("${PROJECT_SOURCE_DIR}/cmake/cvy_config.h.in" "${CONVOY_GEN}/cvy_config.h" @ONLY)
