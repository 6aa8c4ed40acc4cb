/*
 * native_bn_train_simd.h: the loops of batch norm in training, for one kind of vectors: see native_simd_loops.h and
 * native_bn_train.h. One body serves f32 and bf16, which differ in their loads and stores.
 *
 * The sums of the statistics are kept in double, because a variance is a small difference. Those of the gradient are
 * summed in float over short stretches and added up in double.
 */
#include "kernel/native/native_bn_train.h"

enum { BN_VECS = CVY_BN_LANES / LANES, BN_HALVES = 2 * BN_VECS, STRETCH = 32 };

LEAF void bn_sums(const int half, const void *x, int64_t elems, int64_t step, cvy_bn_sums sums)
{
    dvec sum[BN_HALVES] = {{0}}, squares[BN_HALVES] = {{0}};
    int64_t i = 0;
    for (; i + CVY_BN_LANES <= elems; i += step)
#pragma GCC unroll 8
        for (int h = 0; h < BN_HALVES; h++) {
            const dvec v = load_doubles_as(half, x, i + h * (LANES / 2));
            sum[h] += v;
            squares[h] += v * v;
        }
    for (int l = 0; l < CVY_BN_LANES; l++) {
        sums[0][l] += sum[l / (LANES / 2)][l % (LANES / 2)];
        sums[1][l] += squares[l / (LANES / 2)][l % (LANES / 2)];
    }
    for (int l = 0; i + l < elems; l++) {
        const float v = get_as(half, x, i + l);
        sums[0][l] += v;
        sums[1][l] += (double)v * v;
    }
}

/* The coefficients of a run, in registers. */
struct bn_vecs {
    vec mean[BN_VECS], factor[BN_VECS], shift[BN_VECS], slope[BN_VECS], offset[BN_VECS];
};

LEAF void load_coef(const cvy_bn_coef *coef, struct bn_vecs *out)
{
#pragma GCC unroll 4
    for (int v = 0; v < BN_VECS; v++) {
        out->mean[v] = load(coef->mean + v * LANES);
        out->factor[v] = load(coef->factor + v * LANES);
        out->shift[v] = load(coef->shift + v * LANES);
        out->slope[v] = load(coef->slope + v * LANES);
        out->offset[v] = load(coef->offset + v * LANES);
    }
}

LEAF vec normalised(const struct bn_vecs *c, int v, vec x)
{
    return (x - c->mean[v]) * c->factor[v] + c->shift[v];
}

/* The last, short run of a walk, elements i .. i + n - 1, is worked on in a copy. */
LEAF const void *tail_of(const int half, const void *x, int64_t i, int64_t n, float copy[CVY_BN_LANES])
{
    memset(copy, 0, CVY_BN_LANES * sizeof *copy);
    if (x)
        memcpy(copy, (const char *)x + offset_as(half, i), (size_t)offset_as(half, n));
    return copy;
}

LEAF void put_tail(const int half, void *x, int64_t i, int64_t n, const float copy[CVY_BN_LANES])
{
    memcpy((char *)x + offset_as(half, i), copy, (size_t)offset_as(half, n));
}

LEAF void apply_run(const int half, const struct bn_vecs *c, const void *x, const void *residual, int64_t i,
                    const int add, const int relu, void *dst)
{
#pragma GCC unroll 4
    for (int v = 0; v < BN_VECS; v++) {
        vec y = normalised(c, v, load_as(half, x, i + v * LANES));
        if (add)
            y += load_as(half, residual, i + v * LANES);
        store_as(half, dst, i + v * LANES, relu ? choose(y < spread(0), spread(0), y) : y);
    }
}

LEAF void apply_runs(const int half, const void *x, const void *residual, const cvy_bn_coef *coef, const int add,
                     const int relu, int64_t elems, int64_t step, void *dst)
{
    struct bn_vecs c;
    int64_t i = 0;
    load_coef(coef, &c);
    for (; i + CVY_BN_LANES <= elems; i += step)
        apply_run(half, &c, x, residual, i, add, relu, dst);
    if (i < elems) {
        float a[CVY_BN_LANES], b[CVY_BN_LANES], y[CVY_BN_LANES];
        tail_of(half, add ? residual : NULL, i, elems - i, b);
        apply_run(half, &c, tail_of(half, x, i, elems - i, a), b, 0, add, relu, y);
        put_tail(half, dst, i, elems - i, y);
    }
}

LEAF void bn_apply(const int half, const void *x, const void *residual, const cvy_bn_coef *coef, int relu,
                   int64_t elems, int64_t step, void *dst)
{
    if (residual && relu)
        apply_runs(half, x, residual, coef, 1, 1, elems, step, dst);
    else if (residual)
        apply_runs(half, x, residual, coef, 1, 0, elems, step, dst);
    else if (relu)
        apply_runs(half, x, NULL, coef, 0, 1, elems, step, dst);
    else
        apply_runs(half, x, NULL, coef, 0, 0, elems, step, dst);
}

/* What a gradient passes through: nothing, a ReLU whose sign is told from x, or one told from its result. */
enum pass { PASS_ALL, PASS_BY_X, PASS_BY_Y };

/* Vector v of the run at element i. */
LEAF vec passed(const int half, const struct bn_vecs *c, int v, const enum pass pass, const void *x, const void *ddst,
                const void *y, int64_t i)
{
    const vec d = load_as(half, ddst, i + v * LANES);
    if (pass == PASS_BY_X)
        return keep(normalised(c, v, load_as(half, x, i + v * LANES)) > spread(0), d);
    return pass == PASS_BY_Y ? keep(load_as(half, y, i + v * LANES) > spread(0), d) : d;
}

LEAF void grad_sums_run(const int half, const struct bn_vecs *c, const enum pass pass, const void *x, const void *ddst,
                        const void *y, int64_t i, void *dres, vec *sum, vec *product)
{
#pragma GCC unroll 4
    for (int v = 0; v < BN_VECS; v++) {
        const vec d = passed(half, c, v, pass, x, ddst, y, i);
        sum[v] += d;
        product[v] += d * (load_as(half, x, i + v * LANES) - c->mean[v]);
        if (pass == PASS_BY_Y)
            store_as(half, dres, i + v * LANES, d);
    }
}

LEAF void grad_sums_runs(const int half, const void *x, const void *ddst, const void *y, const cvy_bn_coef *coef,
                         const enum pass pass, int64_t elems, int64_t step, void *dres, cvy_bn_sums sums)
{
    struct bn_vecs c;
    load_coef(coef, &c);
    for (int64_t i = 0; i < elems;) {
        vec sum[BN_VECS] = {{0}}, product[BN_VECS] = {{0}};
        const int64_t end = CVY_MIN(i + STRETCH * step, elems);
        for (; i + CVY_BN_LANES <= end; i += step)
            grad_sums_run(half, &c, pass, x, ddst, y, i, dres, sum, product);
        if (i < end) {
            float a[CVY_BN_LANES], b[CVY_BN_LANES], r[CVY_BN_LANES], d[CVY_BN_LANES];
            tail_of(half, pass == PASS_BY_Y ? y : NULL, i, end - i, r);
            tail_of(half, ddst, i, end - i, b);
            grad_sums_run(half, &c, pass, tail_of(half, x, i, end - i, a), b, r, 0, d, sum, product);
            if (pass == PASS_BY_Y)
                put_tail(half, dres, i, end - i, d);
            i = end;
        }
        for (int l = 0; l < CVY_BN_LANES; l++) {
            sums[0][l] += sum[l / LANES][l % LANES];
            sums[1][l] += product[l / LANES][l % LANES];
        }
    }
}

LEAF void bn_grad_sums(const int half, const void *x, const void *ddst, const void *y, const cvy_bn_coef *coef,
                       int relu, int64_t elems, int64_t step, void *dres, cvy_bn_sums sums)
{
    if (y)
        grad_sums_runs(half, x, ddst, y, coef, PASS_BY_Y, elems, step, dres, sums);
    else if (relu)
        grad_sums_runs(half, x, ddst, NULL, coef, PASS_BY_X, elems, step, NULL, sums);
    else
        grad_sums_runs(half, x, ddst, NULL, coef, PASS_ALL, elems, step, NULL, sums);
}

LEAF void grad_apply_run(const int half, const struct bn_vecs *c, const enum pass pass, const void *x, const void *ddst,
                         int64_t i, void *dsrc)
{
#pragma GCC unroll 4
    for (int v = 0; v < BN_VECS; v++)
        store_as(half, dsrc, i + v * LANES,
                 c->factor[v] * passed(half, c, v, pass, x, ddst, NULL, i) +
                     (c->slope[v] * load_as(half, x, i + v * LANES) + c->offset[v]));
}

LEAF void grad_apply_runs(const int half, const void *x, const void *ddst, const cvy_bn_coef *coef,
                          const enum pass pass, int64_t elems, int64_t step, void *dsrc)
{
    struct bn_vecs c;
    int64_t i = 0;
    load_coef(coef, &c);
    for (; i + CVY_BN_LANES <= elems; i += step)
        grad_apply_run(half, &c, pass, x, ddst, i, dsrc);
    if (i < elems) {
        float a[CVY_BN_LANES], b[CVY_BN_LANES], d[CVY_BN_LANES];
        tail_of(half, ddst, i, elems - i, b);
        grad_apply_run(half, &c, pass, tail_of(half, x, i, elems - i, a), b, 0, d);
        put_tail(half, dsrc, i, elems - i, d);
    }
}

LEAF void bn_grad_apply(const int half, const void *x, const void *ddst, const cvy_bn_coef *coef, int relu,
                        int64_t elems, int64_t step, void *dsrc)
{
    if (relu)
        grad_apply_runs(half, x, ddst, coef, PASS_BY_X, elems, step, dsrc);
    else
        grad_apply_runs(half, x, ddst, coef, PASS_ALL, elems, step, dsrc);
}

/* ---- f32 ---- */

TARGET static void bn_sums_f32(const void *x, int64_t elems, int64_t step, cvy_bn_sums sums)
{
    bn_sums(0, x, elems, step, sums);
}

TARGET static void bn_apply_f32(const void *x, const void *residual, const cvy_bn_coef *coef, int relu, int64_t elems,
                                int64_t step, void *dst)
{
    bn_apply(0, x, residual, coef, relu, elems, step, dst);
}

TARGET static void bn_grad_sums_f32(const void *x, const void *ddst, const void *y, const cvy_bn_coef *coef, int relu,
                                    int64_t elems, int64_t step, void *dres, cvy_bn_sums sums)
{
    bn_grad_sums(0, x, ddst, y, coef, relu, elems, step, dres, sums);
}

TARGET static void bn_grad_apply_f32(const void *x, const void *ddst, const cvy_bn_coef *coef, int relu, int64_t elems,
                                     int64_t step, void *dsrc)
{
    bn_grad_apply(0, x, ddst, coef, relu, elems, step, dsrc);
}

/* ---- bf16 ---- */

TARGET static void bn_sums_bf16(const void *x, int64_t elems, int64_t step, cvy_bn_sums sums)
{
    bn_sums(1, x, elems, step, sums);
}

TARGET static void bn_apply_bf16(const void *x, const void *residual, const cvy_bn_coef *coef, int relu, int64_t elems,
                                 int64_t step, void *dst)
{
    bn_apply(1, x, residual, coef, relu, elems, step, dst);
}

TARGET static void bn_grad_sums_bf16(const void *x, const void *ddst, const void *y, const cvy_bn_coef *coef, int relu,
                                     int64_t elems, int64_t step, void *dres, cvy_bn_sums sums)
{
    bn_grad_sums(1, x, ddst, y, coef, relu, elems, step, dres, sums);
}

TARGET static void bn_grad_apply_bf16(const void *x, const void *ddst, const cvy_bn_coef *coef, int relu, int64_t elems,
                                      int64_t step, void *dsrc)
{
    bn_grad_apply(1, x, ddst, coef, relu, elems, step, dsrc);
}
