/* SPDX-License-Identifier: BSD-3-Clause */
/* test_data_resize.c: resizing: every filter, on bytes and reals, shrinking and enlarging, whole pictures and windows
 * between pixels, against the plain double sum over all pixels; constants do not change by a bit. */
#include "base/number/base_rng.h"
#include "data/picture/data_resize.h"
#include "test_data_support.h"

#include <math.h>

enum { C = 2, H_MAX = 90, W_MAX = 700 };

static uint8_t bytes[C * H_MAX * W_MAX];
static float reals[C * H_MAX * W_MAX];
static uint8_t byte_out[C * 200 * 200];
static float real_out[C * 200 * 200];

static double weight(cvy_filter filter, const cvy_resize_axis *a, int64_t i, int64_t j)
{
    const double center = a->start + ((double)i + 0.5) * a->step;
    double radius = filter == CVY_FILTER_TRIANGLE ? fmax(a->step, 1) : 1;
    if (filter == CVY_FILTER_AREA) {
        radius = a->step / 2;
        return fmax(0, fmin((double)j + 1, center + radius) - fmax((double)j, center - radius));
    }
    return fmax(0, 1 - fabs((double)j + 0.5 - center) / radius);
}

/* Computes the definition: a sum over all pixels for each result. */
static double reference(cvy_filter filter, const cvy_picture *p, const cvy_resize_axis *y, const cvy_resize_axis *x,
                        int64_t c, int64_t i, int64_t k)
{
    double sum = 0, all = 0;
    for (int64_t row = y->lo; row < y->hi; row++) {
        const double wy = weight(filter, y, i, row);
        for (int64_t col = x->lo; wy > 0 && col < x->hi; col++) {
            const int64_t at = (c * p->H + row) * p->W + col;
            const double w = wy * weight(filter, x, k, col);
            sum += w * (p->dtype == CVY_DTYPE_U8 ? ((uint8_t *)p->data)[at] : ((float *)p->data)[at]);
            all += w;
        }
    }
    return sum / all;
}

static void compare(cvy_filter filter, int64_t H, int64_t W, cvy_resize_axis y, cvy_resize_axis x, double byte_bound)
{
    const cvy_picture b = {.dtype = CVY_DTYPE_U8, .C = C, .H = H, .W = W, .data = bytes};
    const cvy_picture r = {.dtype = CVY_DTYPE_F32, .C = C, .H = H, .W = W, .data = reals};
    const cvy_picture b_out = {.dtype = CVY_DTYPE_U8, .C = C, .H = y.n, .W = x.n, .data = byte_out};
    const cvy_picture r_out = {.dtype = CVY_DTYPE_F32, .C = C, .H = y.n, .W = x.n, .data = real_out};
    void *scratch = NULL;
    OK(cvy_mem_alloc(cvy_resize_scratch(filter, &y, &x), &scratch));
    cvy_resize(filter, &b, &y, &x, scratch, &b_out);
    cvy_resize(filter, &r, &y, &x, scratch, &r_out);
    cvy_mem_free(&scratch);
    for (int64_t c = 0; c < C; c++)
        for (int64_t i = 0; i<y.n; i += y.n> 40 ? 7 : 1)
            for (int64_t k = 0; k<x.n; k += x.n> 40 ? 3 : 1) {
                const int64_t at = (c * y.n + i) * x.n + k;
                const double want_b = reference(filter, &b, &y, &x, c, i, k);
                const double want_r = reference(filter, &r, &y, &x, c, i, k);
                if (fabs(byte_out[at] - want_b) > byte_bound || fabs(real_out[at] - want_r) > 2e-4) {
                    fprintf(stderr, "filter %d, %dx%d: at %d %d %d: %d for %.4f, %.6f for %.6f\n", (int)filter, (int)H,
                            (int)W, (int)c, (int)i, (int)k, byte_out[at], want_b, real_out[at], want_r);
                    exit(1);
                }
            }
}

static cvy_resize_axis whole(int64_t n, int64_t size)
{
    return (cvy_resize_axis){.n = n, .start = 0, .step = (double)size / (double)n, .lo = 0, .hi = size};
}

/* Allows half a level of rounding. A result has eight weights of 14 bits: 8 * 0.5 / 2^14 * 255 for each direction, with
 * 6 bits in between. */
static void test_against_reference(void)
{
    for (int f = CVY_FILTER_TRIANGLE; f <= CVY_FILTER_AREA; f++) {
        const cvy_filter filter = (cvy_filter)f;
        compare(filter, 50, 60, whole(24, 50), whole(24, 60), 0.65);
        compare(filter, 17, 90, whole(40, 17), whole(33, 90), 0.65);
        compare(filter, 3, 2, whole(31, 3), whole(19, 2), 0.65);
        compare(filter, 1, 1, whole(5, 1), whole(7, 1), 0.5);
        compare(filter, 50, 60, (cvy_resize_axis){20, 3.25, 1.7, 3, 38}, (cvy_resize_axis){30, 10.5, 0.4, 10, 23},
                0.65);
        compare(filter, 50, 60, (cvy_resize_axis){20, -4.5, 3, 0, 50}, (cvy_resize_axis){30, 2, 2.5, 0, 60}, 0.65);
        /* More weights for each result: first up to 40, then too many for integers. */
        compare(filter, 90, 600, whole(5, 90), whole(40, 600), 1);
        compare(filter, 90, 700, whole(2, 90), whole(3, 700), 0.51);
    }
}

static void test_constant(void)
{
    static uint8_t flat[64 * 64];
    for (int f = CVY_FILTER_TRIANGLE; f <= CVY_FILTER_AREA; f++)
        for (int value = 0; value < 256; value += 17)
            for (int n = 3; n < 150; n += 29) {
                memset(flat, value, sizeof flat);
                const cvy_picture p = {.dtype = CVY_DTYPE_U8, .C = 1, .H = 64, .W = 64, .data = flat};
                const cvy_picture out = {.dtype = CVY_DTYPE_U8, .C = 1, .H = n, .W = n, .data = byte_out};
                const cvy_resize_axis a = whole(n, 64);
                void *scratch = NULL;
                OK(cvy_mem_alloc(cvy_resize_scratch((cvy_filter)f, &a, &a), &scratch));
                cvy_resize((cvy_filter)f, &p, &a, &a, scratch, &out);
                cvy_mem_free(&scratch);
                for (int i = 0; i < n * n; i++)
                    TRUE_THAT(byte_out[i] == value);
            }
}

int main(void)
{
    const cvy_rng rng = cvy_rng_make(1, "pixels", 0, 0);
    for (int i = 0; i < C * H_MAX * W_MAX; i++) {
        const uint32_t word = cvy_rng_u32(&rng, (uint64_t)i);
        bytes[i] = word % 5 == 0 ? 255 : word % 7 == 0 ? 0 : (uint8_t)(word >> 8);
        reals[i] = (float)bytes[i] * 0.37f - 20;
    }
    test_against_reference();
    test_constant();
    return 0;
}
