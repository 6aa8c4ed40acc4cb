/*
 * data_augment_steps.c: the list of what a test set's augmentation does to values, for files that are applied without
 * convoy.
 *
 * Neighbouring linear operations become one step, in double as when they are applied. So a file that subtracts and
 * multiplies once gives the same f32 numbers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "data/augment/data_augment.h"

cvy_status cvy_value_step_make(cvy_pool *pool, cvy_curve curve, int64_t n, cvy_value_step *out)
{
    *out = (cvy_value_step){.curve = curve, .n = n};
    CVY_TRY(cvy_pool_alloc(pool, sizeof *out->shift * (size_t)n, &out->shift));
    return cvy_pool_alloc(pool, sizeof *out->by * (size_t)n, &out->by);
}

/* ((x - a) b - m) k = (x - (a + m / b)) b k */
static cvy_status join(cvy_pool *pool, cvy_value_step *into, const cvy_value_step *next)
{
    cvy_value_step both;
    CVY_TRY(cvy_value_step_make(pool, CVY_CURVE_AFFINE, CVY_MAX(into->n, next->n), &both));
    for (int64_t c = 0; c < both.n; c++) {
        const int64_t i = into->n == 1 ? 0 : c, k = next->n == 1 ? 0 : c;
        both.shift[c] = into->shift[i] + next->shift[k] / into->by[i];
        both.by[c] = into->by[i] * next->by[k];
    }
    *into = both;
    return CVY_OK;
}

/* A factor of 0 has no inverse, so what follows it stays a step of its own. */
static int can_join(const cvy_value_step *before, const cvy_value_step *next)
{
    for (int64_t c = 0; c < before->n; c++)
        if (before->by[c] == 0)
            return 0;
    return before->curve == CVY_CURVE_AFFINE && next->curve == CVY_CURVE_AFFINE;
}

static int is_identity(const cvy_value_step *s)
{
    for (int64_t c = 0; c < s->n; c++)
        if (s->curve != CVY_CURVE_AFFINE || s->shift[c] != 0 || s->by[c] != 1)
            return 0;
    return 1;
}

/* A crop to the size that x has anyway moves nothing: only in training is its place random. */
static int moves_pixels(const cvy_augment *a, const cvy_operation *s)
{
    const int is_crop = s->def->fixes_size && !s->def->any_size && s->o.size.count > 0;
    const int keeps = is_crop && !a->was_varying && a->stored.ndim == 3 &&
                      cvy_ints_at(&s->o.size, 0, 0) == a->stored.dim[1] &&
                      cvy_ints_at(&s->o.size, 1, 0) == a->stored.dim[2];
    return s->def->moves_pixels && s->def->moves_pixels(s) && !keeps;
}

cvy_status cvy_augment_value_steps(const cvy_augment *a, int is_bytes, cvy_value_step *step_out, int *nstep_out,
                                   int *moves_out)
{
    int n = 1, moves = 0, bends = 0;
    CVY_TRY(cvy_value_step_make(a->pool, CVY_CURVE_AFFINE, 1, &step_out[0]));
    step_out[0].by[0] = is_bytes && !a->keeps_bytes ? 1.0 / 255 : 1;
    for (int i = 0; i < a->noperation; i++) {
        const cvy_operation *s = &a->operation[i];
        CVY_CHECK(s->def->describe || s->def->moves_pixels, CVY_E_UNSUPPORTED,
                  "data.augment: what %s does to samples cannot be said in a file of another format", s->def->name);
        if (!s->def->describe) {
            moves |= moves_pixels(a, s);
            CVY_CHECK(!moves || !bends, CVY_E_UNSUPPORTED,
                      "data.augment: %s comes after a step that bends values: put it first", s->def->name);
            continue;
        }
        CVY_TRY(s->def->describe(s, a->pool, &step_out[n]));
        bends |= step_out[n].curve != CVY_CURVE_AFFINE;
        if (can_join(&step_out[n - 1], &step_out[n]))
            CVY_TRY(join(a->pool, &step_out[n - 1], &step_out[n]));
        else
            n++;
    }
    if (is_identity(&step_out[0]))
        memmove(step_out, step_out + 1, sizeof *step_out * (size_t)--n);
    *nstep_out = n;
    *moves_out = moves;
    return CVY_OK;
}

/* ---- comparison with another list ---- */

static int are_near(double a, double b)
{
    return fabs(a - b) <= 1e-6 * (fabs(a) + fabs(b));
}

static int64_t at_channel(const cvy_value_step *s, int64_t c)
{
    return s->n == 1 ? 0 : c;
}

/* Whether two steps do the same to channel c. */
static int are_same(const cvy_value_step *a, const cvy_value_step *b, int64_t c)
{
    const int64_t i = at_channel(a, c), k = at_channel(b, c);
    return a->curve == b->curve && are_near(a->shift[i], b->shift[k]) && are_near(a->by[i], b->by[k]);
}

/* Writes what the steps make of channel c of x, as in "(x - 0.5) * 2". */
static void add_formula(cvy_text *out, const cvy_value_step *step, int nstep, int64_t c)
{
    static const char *const name[] = {
        [CVY_CURVE_AFFINE] = "(", [CVY_CURVE_LOG] = "log(", [CVY_CURVE_ASINH] = "asinh("};
    for (int i = nstep; i-- > 0;)
        cvy_text_add(out, "%s", name[step[i].curve]);
    cvy_text_add(out, "x");
    for (int i = 0; i < nstep; i++) {
        const double shift = step[i].shift[at_channel(&step[i], c)], by = step[i].by[at_channel(&step[i], c)];
        if (step[i].curve == CVY_CURVE_AFFINE)
            cvy_text_add(out, " - %.6g) * %.6g", shift, by);
        else
            cvy_text_add(out, " * %.6g)", by);
    }
}

static int64_t count_channels(const cvy_value_step *step, int nstep)
{
    int64_t n = 1;
    for (int i = 0; i < nstep; i++)
        n = CVY_MAX(n, step[i].n);
    return n;
}

cvy_status cvy_augment_compare_values(const cvy_augment *a, int a_bytes, const cvy_augment *b, int b_bytes,
                                      cvy_text *a_out, cvy_text *b_out, int64_t *channel_out)
{
    cvy_value_step own[CVY_VALUE_STEPS_MAX], other[CVY_VALUE_STEPS_MAX];
    int nown = 0, nother = 0, moves = 0;
    CVY_TRY(cvy_augment_value_steps(a, a_bytes, own, &nown, &moves));
    CVY_TRY(cvy_augment_value_steps(b, b_bytes, other, &nother, &moves));
    const int64_t in_own = count_channels(own, nown), in_other = count_channels(other, nother),
                  n = in_own == 1 || in_other == 1 ? CVY_MAX(in_own, in_other) : CVY_MIN(in_own, in_other);
    *channel_out = -1;
    for (int64_t c = 0; c < n && *channel_out < 0; c++) {
        int same = nown == nother;
        for (int i = 0; i < nown && same; i++)
            same = are_same(&own[i], &other[i], c);
        if (!same)
            *channel_out = c;
    }
    if (*channel_out >= 0) {
        add_formula(a_out, own, nown, *channel_out);
        add_formula(b_out, other, nother, *channel_out);
    }
    return a_out->status == CVY_OK ? b_out->status : a_out->status;
}
