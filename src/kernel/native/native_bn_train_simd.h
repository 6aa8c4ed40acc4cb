/*
 * native_bn_train_simd.h: the loops of batch norm in training, for one kind of vectors: see native_simd_loops.h and
 * native_bn_train.h.
 *
 * The sums of the statistics are kept in double, because a variance is a small difference. Those of the gradient are
 * summed in float over short stretches and added up in double.
 */
#include "kernel/native/native_bn_train.h"

enum { BN_VECS = CVY_BN_LANES / LANES, BN_HALVES = 2 * BN_VECS, STRETCH = 32 * CVY_BN_LANES };

TARGET static void bn_sums(const float *x, int64_t elems, cvy_bn_sums sums)
{
    dvec sum[BN_HALVES] = {{0}}, squares[BN_HALVES] = {{0}};
    int64_t i = 0;
    for (; i + CVY_BN_LANES <= elems; i += CVY_BN_LANES)
#pragma GCC unroll 8
        for (int h = 0; h < BN_HALVES; h++) {
            const dvec v = load_doubles(x + i + h * (LANES / 2));
            sum[h] += v;
            squares[h] += v * v;
        }
    for (int l = 0; l < CVY_BN_LANES; l++) {
        sums[0][l] += sum[l / (LANES / 2)][l % (LANES / 2)];
        sums[1][l] += squares[l / (LANES / 2)][l % (LANES / 2)];
    }
    for (; i < elems; i++) {
        sums[0][i % CVY_BN_LANES] += x[i];
        sums[1][i % CVY_BN_LANES] += (double)x[i] * x[i];
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

/* The last, short run of a plane is worked on in a copy. */
LEAF const float *tail_of(const float *x, int64_t n, float *copy)
{
    memset(copy, 0, CVY_BN_LANES * sizeof *copy);
    if (x)
        memcpy(copy, x, (size_t)n * sizeof *x);
    return copy;
}

LEAF void apply_run(const struct bn_vecs *c, const float *x, const float *residual, const int add, const int relu,
                    float *dst)
{
#pragma GCC unroll 4
    for (int v = 0; v < BN_VECS; v++) {
        vec y = normalised(c, v, load(x + v * LANES));
        if (add)
            y += load(residual + v * LANES);
        store(dst + v * LANES, relu ? choose(y < spread(0), spread(0), y) : y);
    }
}

LEAF void apply_runs(const float *x, const float *residual, const cvy_bn_coef *coef, const int add, const int relu,
                     int64_t elems, float *dst)
{
    struct bn_vecs c;
    int64_t i = 0;
    load_coef(coef, &c);
    for (; i + CVY_BN_LANES <= elems; i += CVY_BN_LANES)
        apply_run(&c, x + i, add ? residual + i : NULL, add, relu, dst + i);
    if (i < elems) {
        float a[CVY_BN_LANES], b[CVY_BN_LANES], y[CVY_BN_LANES];
        tail_of(add ? residual + i : NULL, elems - i, b);
        apply_run(&c, tail_of(x + i, elems - i, a), b, add, relu, y);
        memcpy(dst + i, y, (size_t)(elems - i) * sizeof *y);
    }
}

TARGET static void bn_apply(const float *x, const float *residual, const cvy_bn_coef *coef, int relu, int64_t elems,
                            float *dst)
{
    if (residual && relu)
        apply_runs(x, residual, coef, 1, 1, elems, dst);
    else if (residual)
        apply_runs(x, residual, coef, 1, 0, elems, dst);
    else if (relu)
        apply_runs(x, NULL, coef, 0, 1, elems, dst);
    else
        apply_runs(x, NULL, coef, 0, 0, elems, dst);
}

/* What a gradient passes through: nothing, a ReLU whose sign is told from x, or one told from its result. */
enum pass { PASS_ALL, PASS_BY_X, PASS_BY_Y };

LEAF vec passed(const struct bn_vecs *c, int v, const enum pass pass, const float *x, const float *ddst, const float *y)
{
    const vec d = load(ddst + v * LANES);
    if (pass == PASS_BY_X)
        return keep(normalised(c, v, load(x + v * LANES)) > spread(0), d);
    return pass == PASS_BY_Y ? keep(load(y + v * LANES) > spread(0), d) : d;
}

LEAF void grad_sums_run(const struct bn_vecs *c, const enum pass pass, const float *x, const float *ddst,
                        const float *y, float *dres, vec *sum, vec *product)
{
#pragma GCC unroll 4
    for (int v = 0; v < BN_VECS; v++) {
        const vec d = passed(c, v, pass, x, ddst, y);
        sum[v] += d;
        product[v] += d * (load(x + v * LANES) - c->mean[v]);
        if (pass == PASS_BY_Y)
            store(dres + v * LANES, d);
    }
}

LEAF void grad_sums_runs(const float *x, const float *ddst, const float *y, const cvy_bn_coef *coef,
                         const enum pass pass, int64_t elems, float *dres, cvy_bn_sums sums)
{
    struct bn_vecs c;
    load_coef(coef, &c);
    for (int64_t i = 0; i < elems;) {
        vec sum[BN_VECS] = {{0}}, product[BN_VECS] = {{0}};
        const int64_t end = CVY_MIN(i + STRETCH, elems);
        for (; i + CVY_BN_LANES <= end; i += CVY_BN_LANES)
            grad_sums_run(&c, pass, x + i, ddst + i, pass == PASS_BY_Y ? y + i : NULL,
                          pass == PASS_BY_Y ? dres + i : NULL, sum, product);
        if (i < end) {
            float a[CVY_BN_LANES], b[CVY_BN_LANES], r[CVY_BN_LANES], d[CVY_BN_LANES];
            tail_of(pass == PASS_BY_Y ? y + i : NULL, end - i, r);
            tail_of(ddst + i, end - i, b);
            grad_sums_run(&c, pass, tail_of(x + i, end - i, a), b, r, d, sum, product);
            if (pass == PASS_BY_Y)
                memcpy(dres + i, d, (size_t)(end - i) * sizeof *d);
            i = end;
        }
        for (int l = 0; l < CVY_BN_LANES; l++) {
            sums[0][l] += sum[l / LANES][l % LANES];
            sums[1][l] += product[l / LANES][l % LANES];
        }
    }
}

TARGET static void bn_grad_sums(const float *x, const float *ddst, const float *y, const cvy_bn_coef *coef, int relu,
                                int64_t elems, float *dres, cvy_bn_sums sums)
{
    if (y)
        grad_sums_runs(x, ddst, y, coef, PASS_BY_Y, elems, dres, sums);
    else if (relu)
        grad_sums_runs(x, ddst, NULL, coef, PASS_BY_X, elems, NULL, sums);
    else
        grad_sums_runs(x, ddst, NULL, coef, PASS_ALL, elems, NULL, sums);
}

LEAF void grad_apply_run(const struct bn_vecs *c, const enum pass pass, const float *x, const float *ddst, float *dsrc)
{
#pragma GCC unroll 4
    for (int v = 0; v < BN_VECS; v++)
        store(dsrc + v * LANES,
              c->factor[v] * passed(c, v, pass, x, ddst, NULL) + (c->slope[v] * load(x + v * LANES) + c->offset[v]));
}

LEAF void grad_apply_runs(const float *x, const float *ddst, const cvy_bn_coef *coef, const enum pass pass,
                          int64_t elems, float *dsrc)
{
    struct bn_vecs c;
    int64_t i = 0;
    load_coef(coef, &c);
    for (; i + CVY_BN_LANES <= elems; i += CVY_BN_LANES)
        grad_apply_run(&c, pass, x + i, ddst + i, dsrc + i);
    if (i < elems) {
        float a[CVY_BN_LANES], b[CVY_BN_LANES], d[CVY_BN_LANES];
        tail_of(ddst + i, elems - i, b);
        grad_apply_run(&c, pass, tail_of(x + i, elems - i, a), b, d);
        memcpy(dsrc + i, d, (size_t)(elems - i) * sizeof *d);
    }
}

TARGET static void bn_grad_apply(const float *x, const float *ddst, const cvy_bn_coef *coef, int relu, int64_t elems,
                                 float *dsrc)
{
    if (relu)
        grad_apply_runs(x, ddst, coef, PASS_BY_X, elems, dsrc);
    else
        grad_apply_runs(x, ddst, coef, PASS_ALL, elems, dsrc);
}
