/* rows: clang asan */
/*
 * test_backend_finite.c: ranges of a device's memory are checked for numbers that are not finite, on the emulated
 * device.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test_util.h"

#include <float.h>
#include <math.h>

#include "backend/emulated/emulated.h"
#include "base/number/base_bf16.h"

static const struct {
    cvy_dtype dtype;
    int64_t elems;
} kinds[] = {
    {CVY_DTYPE_F32, 20001}, {CVY_DTYPE_BF16, 1},    {CVY_DTYPE_F64, 8192},
    {CVY_DTYPE_F32, 0},     {CVY_DTYPE_F64, 16385}, {CVY_DTYPE_BF16, 9001},
};
enum { RANGES = CVY_COUNT(kinds) };

static cvy_space space;
static cvy_gpu_range ranges[RANGES];
static void *data[RANGES];

static size_t bytes_of(int r)
{
    return (size_t)kinds[r].elems * cvy_dtype_bytes(kinds[r].dtype);
}

static void put(int r, int64_t i, double x)
{
    const size_t each = cvy_dtype_bytes(kinds[r].dtype);
    const float narrow = (float)x;
    const cvy_bf16 half = cvy_bf16_of(narrow);
    const void *from = kinds[r].dtype == CVY_DTYPE_F32 ? &narrow : kinds[r].dtype == CVY_DTYPE_F64 ? (void *)&x : &half;
    EXPECT_OK(cvy_space_write(&space, (char *)data[r] + (size_t)i * each, from, each));
}

static int check(cvy_gpu_finite *f)
{
    int finite = -1;
    EXPECT_OK(cvy_gpu_finite_start(f));
    EXPECT_OK(cvy_gpu_finite_end(f, &finite));
    return finite;
}

/* Each number that is not finite is found, wherever it is, and is not found any more when it is gone. */
static void bad_numbers_are_found(void)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    cvy_gpu_finite *f = NULL;
    EXPECT_OK(cvy_gpu_finite_create(&space, ranges, RANGES, &f));
    EXPECT_INT(check(f), 1);
    for (int r = 0; r < RANGES; r++) {
        const int64_t n = kinds[r].elems, at[] = {0, n / 2, n - 1, n > 8192 ? 8191 : 0, n > 8192 ? 8192 : 0};
        for (int i = 0; i < CVY_COUNT(at) && n > 0; i++) {
            cvy_emulated_setup_now.order = i % CVY_EMULATED_ANY;
            put(r, at[i], bad[i % 3]);
            EXPECT_INT(check(f), 0);
            put(r, at[i], i % 2 ? -0.0 : kinds[r].dtype == CVY_DTYPE_F64 ? DBL_MAX : 1e38);
            EXPECT_INT(check(f), 1);
        }
    }
    cvy_gpu_finite_destroy(&f);
    EXPECT(!f);
    cvy_gpu_finite_destroy(&f);
}

/* What is beside the ranges does not count. */
static void only_the_ranges_count(void)
{
    cvy_gpu_finite *f = NULL;
    const cvy_gpu_range inner = {(char *)data[0] + 4 * sizeof(float), 1000, CVY_DTYPE_F32};
    EXPECT_OK(cvy_gpu_finite_create(&space, &inner, 1, &f));
    put(0, 3, NAN);
    put(0, 1004, NAN);
    EXPECT_INT(check(f), 1);
    put(0, 1003, NAN);
    EXPECT_INT(check(f), 0);
    for (int i = 0; i < 3; i++)
        put(0, i == 0 ? 3 : 1002 + i, 1);
    cvy_gpu_finite_destroy(&f);
}

static void bad_ranges_are_refused(void)
{
    cvy_gpu_finite *f = NULL;
    const cvy_gpu_range labels = {data[0], 4, CVY_DTYPE_I32};
    EXPECT_OK(cvy_gpu_finite_create(&space, NULL, 0, &f));
    EXPECT_INT(check(f), 1);
    cvy_gpu_finite_destroy(&f);
    EXPECT_FAULT(cvy_gpu_finite_create(&space, &labels, 1, &f), CVY_E_INTERNAL, "i32");
    EXPECT(!f);
    cvy_emulated_setup_now.no_build = "gpu_finite";
    cvy_emulated_setup_now.words = "line 3: no such word";
    cvy_emulated_setup_now.devices = 2;
    cvy_space other;
    EXPECT_OK(cvy_space_open_def(&cvy_emulated_backend, &(cvy_place){.device = 1}, &other));
    EXPECT_FAULT(cvy_gpu_finite_create(&other, ranges, RANGES, &f), CVY_E_UNSUPPORTED, "no such word");
    cvy_space_close(&other);
    cvy_emulated_reset();
}

int main(void)
{
    EXPECT_OK(cvy_space_open_def(&cvy_emulated_backend, NULL, &space));
    for (int r = 0; r < RANGES; r++) {
        if (kinds[r].elems)
            EXPECT_OK(cvy_space_alloc(&space, bytes_of(r), 0, &data[r]));
        ranges[r] = (cvy_gpu_range){data[r], kinds[r].elems, kinds[r].dtype};
    }
    TEST(bad_numbers_are_found);
    TEST(only_the_ranges_count);
    TEST(bad_ranges_are_refused);
    for (int r = 0; r < RANGES; r++)
        if (data[r])
            cvy_space_free(&space, &data[r], bytes_of(r));
    cvy_space_close(&space);
    return test_end();
}
