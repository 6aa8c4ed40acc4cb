/*
 * native_bn_train_simd.h: the loops of batch norm in training, for one instruction set (see native_simd_loops.h and
 * native_bn_train.h). One body serves f32 and bf16, which differ in their loads and stores.
 *
 * A few rows of a tile are walked together, column by column. So memory is read in order, and coefficients and sums are
 * loaded once for all of these rows. The statistics of f32 are summed in double, because a variance is a small
 * difference of large numbers. A square of a bf16 has 16 bits, so a sum over a tile of squares of similar size is exact
 * in float; the sums of the gradient are in float too. Sums of tiles are added in double.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/norm/native_bn_train.h"

enum { SIDE_BY_SIDE = 4, CHUNK = 32, PREFETCH_BYTES = 4096 }; /* CHUNK: columns whose sums stay in the cache */

/* What is done to a run, and how. BN_APPLY: bits of APPLY_*; gradients: PASS_* says where ddst passes through. */
enum bn_what { BN_SUMS, BN_APPLY, BN_GRAD_SUMS, BN_GRAD_APPLY };
enum bn_how { APPLY_PLAIN = 0, APPLY_ADD = 1, APPLY_RELU = 2, PASS_ALL = 0, PASS_BY_X, PASS_BY_Y };

/* One run in each of several rows, from element `col` of row `row` on. */
struct bn_place {
    const cvy_bn_tile *t;
    int64_t row, col;
    const cvy_bn_coef *coef;
    float (*tile_sums)[CVY_BN_LANES]; /* the two sums of the tile, in float */
    double (*sums)[CVY_BN_LANES];
};

#define EACH_VEC(v, half) _Pragma("GCC unroll 8") for (int v = 0; v < run_vecs(half); v++)
#define EACH_ROW(r, rows) _Pragma("GCC unroll 4") for (int r = 0; r < rows; r++)

enum { RUN_VECS_MAX = CVY_BN_RUN_BF16 / LANES };

LEAF int run_elems(const int half)
{
    return half ? CVY_BN_RUN_BF16 : CVY_BN_RUN_F32;
}

LEAF int run_vecs(const int half)
{
    return run_elems(half) / LANES;
}

LEAF void load_run(const int half, const void *p, int64_t i, vec *out)
{
    if (!half)
        EACH_VEC(v, 0) out[v] = load((const float *)p + i + v * LANES);
    else
        EACH_VEC(v, 1) if (v % 2 == 0) load_even_odd((const cvy_bf16 *)p + i + v * LANES, &out[v], &out[v + 1]);
}

/* The same, with a prefetch if several rows are walked together: the hardware prefetcher stops at the ends of pages and
 * of such rows. */
LEAF void load_row(const int half, const int rows, const void *p, int64_t i, vec *out)
{
    if (rows > 1)
        __builtin_prefetch((const void *)((uintptr_t)p + (size_t)offset_as(half, i) + PREFETCH_BYTES), 0, 2);
    load_run(half, p, i, out);
}

/* stream: non-temporal stores. exact: x is bf16 already. */
LEAF void store_run(const int half, const int stream, const int exact, const vec *x, void *p, int64_t i)
{
    if (!half)
        EACH_VEC(v, 0) store_words(stream, (float *)p + i + v * LANES, (uvec)x[v]);
    else
        EACH_VEC(v, 1)
    if (v % 2 == 0)
        store_words(stream, (cvy_bf16 *)p + i + v * LANES, merge_even_odd(exact, x[v], x[v + 1]));
}

LEAF void load_lanes(const int half, const float *p, vec *out)
{
    EACH_VEC(v, half) out[v] = load(p + v * LANES);
}

/* ---- forward ---- */

LEAF void sums_f32(const struct bn_place *at, const int rows)
{
    enum { HALVES = 2 * CVY_BN_RUN_F32 / LANES, WIDTH = LANES / 2 };
    dvec sum[HALVES], squares[HALVES];
    memcpy(sum, at->sums[0], sizeof sum);
    memcpy(squares, at->sums[1], sizeof squares);
    EACH_ROW(r, rows)
#pragma GCC unroll 8
    for (int h = 0; h < HALVES; h++) {
        const dvec v = load_doubles((const float *)at->t->x + (at->row + r) * at->t->step + at->col + h * WIDTH);
        sum[h] += v;
        squares[h] += v * v;
    }
    memcpy(at->sums[0], sum, sizeof sum);
    memcpy(at->sums[1], squares, sizeof squares);
}

LEAF void sums_bf16(const struct bn_place *at, const int rows)
{
    vec sum[RUN_VECS_MAX], squares[RUN_VECS_MAX], x[RUN_VECS_MAX];
    load_lanes(1, at->tile_sums[0], sum);
    load_lanes(1, at->tile_sums[1], squares);
    EACH_ROW(r, rows)
    {
        load_row(1, rows, at->t->x, (at->row + r) * at->t->step + at->col, x);
        EACH_VEC(v, 1)
        {
            sum[v] += x[v];
            squares[v] += x[v] * x[v];
        }
    }
    EACH_VEC(v, 1)
    {
        store(at->tile_sums[0] + v * LANES, sum[v]);
        store(at->tile_sums[1] + v * LANES, squares[v]);
    }
}

LEAF vec normalised(vec x, vec mean, vec factor, vec shift)
{
    return (x - mean) * factor + shift;
}

LEAF void apply(const int half, const int how, const struct bn_place *at, const int rows)
{
    vec mean[RUN_VECS_MAX], factor[RUN_VECS_MAX], shift[RUN_VECS_MAX], x[RUN_VECS_MAX], y[RUN_VECS_MAX];
    load_lanes(half, at->coef->mean, mean);
    load_lanes(half, at->coef->factor, factor);
    load_lanes(half, at->coef->shift, shift);
    EACH_ROW(r, rows)
    {
        const int64_t i = (at->row + r) * at->t->step + at->col;
        load_row(half, rows, at->t->x, i, x);
        if (how & APPLY_ADD)
            load_row(half, rows, at->t->other, i, y);
        EACH_VEC(v, half)
        {
            x[v] = normalised(x[v], mean[v], factor[v], shift[v]);
            if (how & APPLY_ADD)
                x[v] += y[v];
            if (how & APPLY_RELU)
                x[v] = choose(x[v] < spread(0), spread(0), x[v]);
        }
        store_run(half, at->t->stream, 0, x, at->t->dst, (at->row + r) * at->t->pitch + at->col);
    }
}

/* ---- backward ---- */

LEAF void grad_sums(const int half, const int how, const struct bn_place *at, const int rows)
{
    enum { V = RUN_VECS_MAX };
    vec mean[V], factor[V], shift[V], sum[V], product[V], x[V], d[V], y[V];
    load_lanes(half, at->coef->mean, mean);
    load_lanes(half, at->coef->factor, factor);
    load_lanes(half, at->coef->shift, shift);
    load_lanes(half, at->tile_sums[0], sum);
    load_lanes(half, at->tile_sums[1], product);
    EACH_ROW(r, rows)
    {
        const int64_t i = (at->row + r) * at->t->step + at->col;
        load_row(half, rows, at->t->x, i, x);
        load_row(half, rows, at->t->ddst, (at->row + r) * at->t->pitch + at->col, d);
        if (how == PASS_BY_Y)
            load_row(half, rows, at->t->other, i, y);
        EACH_VEC(v, half)
        {
            if (how != PASS_ALL)
                d[v] =
                    keep((how == PASS_BY_Y ? y[v] : normalised(x[v], mean[v], factor[v], shift[v])) > spread(0), d[v]);
            sum[v] += d[v];
            product[v] += d[v] * (x[v] - mean[v]);
        }
        if (how == PASS_BY_Y)
            store_run(half, 0, 1, d, at->t->dres, i);
    }
    EACH_VEC(v, half)
    {
        store(at->tile_sums[0] + v * LANES, sum[v]);
        store(at->tile_sums[1] + v * LANES, product[v]);
    }
}

LEAF void grad_apply(const int half, const int how, const struct bn_place *at, const int rows)
{
    enum { V = RUN_VECS_MAX };
    vec mean[V], factor[V], shift[V], slope[V], offset[V], x[V], d[V];
    load_lanes(half, at->coef->mean, mean);
    load_lanes(half, at->coef->factor, factor);
    load_lanes(half, at->coef->shift, shift);
    load_lanes(half, at->coef->slope, slope);
    load_lanes(half, at->coef->offset, offset);
    EACH_ROW(r, rows)
    {
        const int64_t i = (at->row + r) * at->t->step + at->col;
        load_row(half, rows, at->t->x, i, x);
        load_row(half, rows, at->t->ddst, (at->row + r) * at->t->pitch + at->col, d);
        EACH_VEC(v, half)
        {
            if (how == PASS_BY_X)
                d[v] = keep(normalised(x[v], mean[v], factor[v], shift[v]) > spread(0), d[v]);
            d[v] = factor[v] * d[v] + (slope[v] * x[v] + offset[v]);
        }
        store_run(half, at->t->stream, 0, d, at->t->dst, i);
    }
}

/* ---- walking over a tile ---- */

LEAF void column(const int half, const enum bn_what what, const int how, const struct bn_place *at, const int rows)
{
    switch (what) {
    case BN_SUMS: half ? sums_bf16(at, rows) : sums_f32(at, rows); break;
    case BN_APPLY: apply(half, how, at, rows); break;
    case BN_GRAD_SUMS: grad_sums(half, how, at, rows); break;
    case BN_GRAD_APPLY: grad_apply(half, how, at, rows); break;
    }
}

/* Copies n elements from element `at` on and adds zeros after them. NULL if `from` is NULL. */
LEAF const char *tail_copy(const int half, const char *from, int64_t at, int64_t n, float copy[CVY_BN_LANES])
{
    memset(copy, 0, CVY_BN_LANES * sizeof *copy);
    if (from)
        memcpy(copy, from + offset_as(half, at), (size_t)offset_as(half, n));
    return from ? (const char *)copy : NULL;
}

/* Handles the last n elements of a tile, less than a run, in a copy. */
LEAF void tail(const int half, const enum bn_what what, const int how, const struct bn_place *from, int64_t n)
{
    float x[CVY_BN_LANES], other[CVY_BN_LANES], ddst[CVY_BN_LANES], dst[CVY_BN_LANES], dres[CVY_BN_LANES];
    const cvy_bn_tile *t = from->t;
    const int64_t i = from->row * t->step + from->col, sliced = from->row * t->pitch + from->col;
    const cvy_bn_tile copy = {
        .x = tail_copy(half, t->x, i, n, x),
        .other = tail_copy(half, t->other, i, n, other),
        .ddst = tail_copy(half, t->ddst, sliced, n, ddst),
        .dst = (char *)dst,
        .dres = (char *)dres,
    };
    struct bn_place at = *from;
    at.t = &copy;
    at.row = at.col = 0;
    column(half, what, how, &at, 1);
    if (what == BN_APPLY || what == BN_GRAD_APPLY)
        memcpy(t->dst + offset_as(half, what == BN_APPLY ? sliced : i), dst, (size_t)offset_as(half, n));
    if (what == BN_GRAD_SUMS && how == PASS_BY_Y)
        memcpy(t->dres + offset_as(half, i), dres, (size_t)offset_as(half, n));
}

LEAF void add_up(const int half, const float tile_sums[2][CVY_BN_LANES], cvy_bn_sums sums)
{
    for (int k = 0; k < 2; k++)
        for (int l = 0; l < run_elems(half); l += LANES / 2) {
            dvec sum;
            memcpy(&sum, &sums[k][l], sizeof sum);
            sum += load_doubles(&tile_sums[k][l]);
            memcpy(&sums[k][l], &sum, sizeof sum);
        }
}

LEAF void walk(const int half, const enum bn_what what, const int how, const cvy_bn_tile *t, const cvy_bn_coef *coef,
               cvy_bn_sums *sums)
{
    const int run = run_elems(half), adds = what == BN_GRAD_SUMS || (what == BN_SUMS && half);
    const int has_sums =
        what == BN_SUMS || what == BN_GRAD_SUMS; /* gcc 13 warns of a NULL if `sums` is asked instead */
    const int64_t rows = t->elems / t->step, rest = t->elems % t->step, cols = t->step / run;
    const cvy_bn_tile mine = *t; /* a local copy, which no store can change */
    float tile_sums[CHUNK][2][CVY_BN_LANES];
    for (int64_t first = 0; first < cols; first += CHUNK) {
        const int64_t n = CVY_MIN(CHUNK, cols - first);
        struct bn_place at = {.t = &mine};
#define COLUMN(c)                                                                                                      \
    (at.col = (first + (c)) * run, at.coef = coef ? coef + first + (c) : NULL, at.tile_sums = tile_sums[c],            \
     at.sums = has_sums ? sums[first + (c)] : NULL)
        if (adds)
            memset(tile_sums, 0, (size_t)n * sizeof *tile_sums);
        for (; at.row + SIDE_BY_SIDE <= rows; at.row += SIDE_BY_SIDE)
            for (int64_t c = 0; c < n; c++) {
                COLUMN(c);
                column(half, what, how, &at, SIDE_BY_SIDE);
            }
        for (; at.row <= rows; at.row++) /* the last row has `rest` elements */
            for (int64_t c = 0; c < n; c++) {
                const int64_t left = at.row < rows ? run : rest - (first + c) * run;
                COLUMN(c);
                if (left >= run)
                    column(half, what, how, &at, 1);
                else if (left > 0)
                    tail(half, what, how, &at, left);
            }
#undef COLUMN
        for (int64_t c = 0; adds && c < n; c++)
            add_up(half, tile_sums[c], sums[first + c]);
    }
}

/* ---- a separate loop for each case ---- */

LEAF void bn_apply(const int half, const cvy_bn_tile *t, const cvy_bn_coef *coef)
{
    switch ((t->other ? APPLY_ADD : 0) | (t->relu ? APPLY_RELU : 0)) {
    case 0: walk(half, BN_APPLY, 0, t, coef, NULL); break;
    case 1: walk(half, BN_APPLY, 1, t, coef, NULL); break;
    case 2: walk(half, BN_APPLY, 2, t, coef, NULL); break;
    default: walk(half, BN_APPLY, 3, t, coef, NULL); break;
    }
}

LEAF void bn_grad_sums(const int half, const cvy_bn_tile *t, const cvy_bn_coef *coef, cvy_bn_sums *sums)
{
    if (t->other)
        walk(half, BN_GRAD_SUMS, PASS_BY_Y, t, coef, sums);
    else if (t->relu)
        walk(half, BN_GRAD_SUMS, PASS_BY_X, t, coef, sums);
    else
        walk(half, BN_GRAD_SUMS, PASS_ALL, t, coef, sums);
}

LEAF void bn_grad_apply(const int half, const cvy_bn_tile *t, const cvy_bn_coef *coef)
{
    if (t->relu)
        walk(half, BN_GRAD_APPLY, PASS_BY_X, t, coef, NULL);
    else
        walk(half, BN_GRAD_APPLY, PASS_ALL, t, coef, NULL);
}

TARGET static void bn_sums_f32(const cvy_bn_tile *t, cvy_bn_sums *sums)
{
    walk(0, BN_SUMS, 0, t, NULL, sums);
}

TARGET static void bn_apply_f32(const cvy_bn_tile *t, const cvy_bn_coef *coef)
{
    bn_apply(0, t, coef);
}

TARGET static void bn_grad_sums_f32(const cvy_bn_tile *t, const cvy_bn_coef *coef, cvy_bn_sums *sums)
{
    bn_grad_sums(0, t, coef, sums);
}

TARGET static void bn_grad_apply_f32(const cvy_bn_tile *t, const cvy_bn_coef *coef)
{
    bn_grad_apply(0, t, coef);
}

TARGET static void bn_sums_bf16(const cvy_bn_tile *t, cvy_bn_sums *sums)
{
    walk(1, BN_SUMS, 0, t, NULL, sums);
}

TARGET static void bn_apply_bf16(const cvy_bn_tile *t, const cvy_bn_coef *coef)
{
    bn_apply(1, t, coef);
}

TARGET static void bn_grad_sums_bf16(const cvy_bn_tile *t, const cvy_bn_coef *coef, cvy_bn_sums *sums)
{
    bn_grad_sums(1, t, coef, sums);
}

TARGET static void bn_grad_apply_bf16(const cvy_bn_tile *t, const cvy_bn_coef *coef)
{
    bn_grad_apply(1, t, coef);
}
