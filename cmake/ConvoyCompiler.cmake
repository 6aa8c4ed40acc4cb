# SPDX-License-Identifier: BSD-3-Clause
# What the compiler can do, and which instructions of recent processors it and the assembler know. Kernels that need others are left out, and
# `convoy info` says so. The processor that convoy runs on is asked at run time (src/base/machine/base_isa.h).
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)

# Functions that may leave the library are inlined within their file all the same, and called directly.
set(CONVOY_NO_INTERPOSITION)
check_c_compiler_flag(-fno-semantic-interposition CONVOY_HAS_NO_INTERPOSITION)
if(CONVOY_HAS_NO_INTERPOSITION)
    set(CONVOY_NO_INTERPOSITION -fno-semantic-interposition)
endif()

# convoy_instructions(VARIABLE target statements): VARIABLE becomes 1 if a function for that target can be built, else 0.
function(convoy_instructions variable target statements)
    check_c_source_compiles("
        #if !defined(__x86_64__) || !defined(__GNUC__)
        #error these are instructions of x86-64
        #endif
        #include <immintrin.h>
        __attribute__((target(\"${target}\"))) void compute(float *x) { ${statements} }
        int main(void) { return 0; }" ${variable}_COMPILES)
    if(${variable}_COMPILES)
        set(${variable} 1 PARENT_SCOPE)
    else()
        set(${variable} 0 PARENT_SCOPE)
    endif()
endfunction()

# Vectors of SVE whose width is known to the compiler (gcc 10): the loops are the same as for other vectors.
function(convoy_sve variable)
    set(CMAKE_REQUIRED_FLAGS "-march=armv8.2-a+sve -msve-vector-bits=256")
    check_c_source_compiles("
        #if !defined(__linux__) || !defined(__GNUC__) || __ARM_FEATURE_SVE_BITS != 256
        #error these are instructions of aarch64
        #endif
        typedef float vec __attribute__((vector_size(32)));
        void compute(vec *x) { *x += *x; }
        int main(void) { return 0; }" ${variable})
endfunction()
convoy_sve(CVY_HAVE_SVE)

# gcc 10 and clang 9 know the first, gcc 11 and clang 11 the second. With an older assembler both are left out.
convoy_instructions(CVY_HAVE_AVX512_BF16 "avx512f,avx512bw,avx512vl,avx512dq,avx512bf16"
    "_mm256_storeu_si256((void *)x, (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(x)));")
convoy_instructions(CVY_HAVE_AMX_BF16 "avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,amx-tile,amx-bf16"
    "_tile_loadd(0, x, 64); _tile_loadd(1, x, 64); _tile_dpbf16ps(2, 0, 1); _tile_release();")
