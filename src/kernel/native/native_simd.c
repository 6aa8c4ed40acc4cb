/*
 * native_simd.c: chooses among the loops that are compiled for several instruction sets. Called at planning time only.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/native_simd.h"

const cvy_simd *cvy_simd_find(int64_t block)
{
    const cvy_simd *const table[] = {cvy_simd_avx512_bf16(), cvy_simd_avx512(), cvy_simd_avx2(),
                                     cvy_simd_sve512(),      cvy_simd_sve256(), cvy_simd_plain()};
    for (int i = 0; i < CVY_COUNT(table); i++)
        if (table[i] && table[i]->lanes <= block)
            return table[i];
    return NULL;
}
