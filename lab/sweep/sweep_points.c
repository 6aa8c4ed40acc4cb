/*
 * sweep_points.c: the values of each trial: all combinations (grid), independent random numbers, or points of Sobol's
 * sequence. A value depends only on the seed, its key and the number of the trial.
 *
 * Sobol's sequence (Sobol 1967) fills a cube more evenly than random numbers do. The direction numbers are those of Joe
 * and Kuo (2008, "Constructing Sobol sequences with better two-dimensional projections"), file new-joe-kuo-6.21201,
 * dimensions 1 to 10, and the points come in the order of the Gray code (Antonov and Saleev 1979). A random digital
 * shift of each coordinate, which keeps the evenness, makes the points depend on the seed and moves the first point out
 * of the corner.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number/base_rng.h"
#include "sweep/sweep_search.h"

/* ---- Sobol ---- */

enum { BITS = 32, DEGREE_MAX = 5 };
static const struct direction { /* a primitive polynomial of degree s with inner coefficients a; the first numbers m */
    uint32_t s, a, m[DEGREE_MAX];
} directions[CVY_SOBOL_DIMS] = {
    {0, 0, {0}},
    {1, 0, {1}},
    {2, 1, {1, 3}},
    {3, 1, {1, 3, 1}},
    {3, 2, {1, 1, 1}},
    {4, 1, {1, 1, 3, 3}},
    {4, 4, {1, 3, 5, 13}},
    {5, 2, {1, 1, 5, 5, 17}},
    {5, 4, {1, 1, 5, 5, 5}},
    {5, 7, {1, 1, 7, 11, 19}},
};

static void fill_directions(int dim, uint32_t v[BITS])
{
    const struct direction *d = &directions[dim];
    for (uint32_t i = 0; i < BITS; i++) {
        if (d->s == 0 || i < d->s) {
            v[i] = (d->s ? d->m[i] : 1) << (BITS - 1 - i);
            continue;
        }
        v[i] = v[i - d->s] ^ (v[i - d->s] >> d->s);
        for (uint32_t k = 1; k < d->s; k++)
            v[i] ^= (d->a >> (d->s - 1 - k) & 1) * v[i - k];
    }
}

uint32_t cvy_sobol(int dim, uint32_t number)
{
    uint32_t v[BITS], x = 0;
    fill_directions(dim, v);
    const uint32_t gray = number ^ (number >> 1);
    for (int i = 0; i < BITS; i++)
        x ^= gray >> i & 1 ? v[i] : 0;
    return x;
}

/* ---- values ---- */

double cvy_sweep_between(const cvy_sweep_key *key, double high, double u)
{
    return key->kind == CVY_SWEEP_LOG_UNIFORM ? key->low * pow(high / key->low, u) : key->low + u * (high - key->low);
}

cvy_status cvy_sweep_print(cvy_pool *pool, const cvy_sweep_key *key, double x, const char **out)
{
    char *text = NULL;
    CVY_TRY(key->is_whole ? cvy_pool_printf(pool, &text, "%.0f", x) : cvy_pool_printf(pool, &text, "%.6g", x));
    *out = text;
    return CVY_OK;
}

/* u: 0 .. 1, without 1. Each integer of a range has an interval of its own. */
static double place_at(const cvy_sweep_key *key, double u)
{
    if (key->kind == CVY_SWEEP_LIST)
        return fmin(floor(u * key->nvalues), key->nvalues - 1);
    return key->is_whole ? fmin(floor(cvy_sweep_between(key, key->high + 1, u)), key->high)
                         : cvy_sweep_between(key, key->high, u);
}

/* The last key changes fastest. */
static void grid_point(const cvy_sweep_spec *spec, int64_t number, double *place)
{
    for (int k = spec->nkey - 1; k >= 0; k--) {
        place[k] = (double)(number % spec->key[k].nvalues);
        number /= spec->key[k].nvalues;
    }
}

void cvy_sweep_point(const cvy_sweep_spec *spec, int64_t number, double *place)
{
    if (spec->points == CVY_SWEEP_GRID) {
        grid_point(spec, number, place);
        return;
    }
    for (int k = 0; k < spec->nkey; k++) {
        const cvy_rng rng = cvy_rng_make((uint64_t)spec->seed, spec->key[k].name, 0, spec->points == CVY_SWEEP_SOBOL);
        const uint32_t shift = cvy_rng_u32(&rng, 0);
        const double u = spec->points == CVY_SWEEP_SOBOL ? (cvy_sobol(k, (uint32_t)number) ^ shift) * 0x1p-32
                                                         : cvy_rng_uniform(&rng, (uint64_t)number);
        place[k] = place_at(&spec->key[k], u);
    }
}
