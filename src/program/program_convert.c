/*
 * program_convert.c: copies arrays from one dtype to another: rows of a data set, and arrays of the caller, which are
 * checked.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "program/program_convert.h"

#include <string.h>

static void narrow(const double *from, float *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)from[i];
}

static void widen(const float *from, double *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = from[i];
}

void cvy_copy_elems(const void *from, cvy_dtype from_dtype, void *to, cvy_dtype to_dtype, int64_t n)
{
    if (from_dtype == to_dtype) {
        memcpy(to, from, (size_t)n * cvy_dtype_bytes(to_dtype));
        return;
    }
    if (from_dtype == CVY_DTYPE_F64 && to_dtype == CVY_DTYPE_F32) {
        narrow(from, to, n);
        return;
    }
    if (from_dtype == CVY_DTYPE_F32 && to_dtype == CVY_DTYPE_F64) {
        widen(from, to, n);
        return;
    }
    const cvy_span src = {.dtype = from_dtype, .data = (void *)(uintptr_t)from}, dst = {.dtype = to_dtype, .data = to};
    for (int64_t i = 0; i < n; i++)
        cvy_set(&dst, i, cvy_get(&src, i));
}

/* Integers of the caller that the memory cannot hold: labels, indices. */
static cvy_status check_range(const char *name, cvy_dtype dtype, const void *data, cvy_dtype to, int64_t n)
{
    const cvy_span span = {.dtype = dtype, .data = (void *)(uintptr_t)data};
    const double least = to == CVY_DTYPE_U8 ? 0 : INT32_MIN, most = to == CVY_DTYPE_U8 ? UINT8_MAX : INT32_MAX;
    if (cvy_dtype_is_real(to) || to == CVY_DTYPE_I64 || to == dtype)
        return CVY_OK;
    for (int64_t i = 0; i < n; i++) {
        const double x = cvy_get(&span, i);
        CVY_CHECK(x >= least && x <= most, CVY_E_ARGUMENT, "element %lld for %s is %.0f, and %s is of dtype %s",
                  (long long)i, name, x, name, cvy_dtype_text(to));
    }
    return CVY_OK;
}

cvy_status cvy_convert_check(const char *name, cvy_dtype dtype, cvy_dtype own)
{
    CVY_CHECK((int)dtype >= 0 && dtype < CVY_DTYPE_COUNT && dtype != CVY_DTYPE_BF16 &&
                  cvy_dtype_is_real(dtype) == cvy_dtype_is_real(own),
              CVY_E_ARGUMENT, "%s is of dtype %s, but the array is of dtype %s", name, cvy_dtype_text(own),
              cvy_dtype_text(dtype));
    return CVY_OK;
}

cvy_status cvy_convert_elems(const char *name, const void *from, cvy_dtype dtype, void *to, cvy_dtype to_dtype,
                             int64_t n)
{
    CVY_TRY(cvy_convert_check(name, dtype, to_dtype));
    CVY_CHECK(from || n == 0, CVY_E_ARGUMENT, "there are no data for %s", name);
    CVY_TRY(check_range(name, dtype, from, to_dtype, n));
    if (n > 0)
        cvy_copy_elems(from, dtype, to, to_dtype, n);
    return CVY_OK;
}
