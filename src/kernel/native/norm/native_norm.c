/*
 * native_norm.c: the walks over memory of bn_train, group_norm and their gradients.
 *
 * They are limited by memory bandwidth: a result that does not fit into the cache is written with non-temporal stores,
 * which do not read the lines first.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/norm/native_norm.h"

#include "kernel/native/native_simd.h"

enum {
    SUM_ROWS = 128,          /* rows of a tile that is summed */
    APPLY_BYTES = 128 << 10, /* bytes of a tile that is written: long, so that prefetched memory is used */
};

/* ---- planning ---- */

static const cvy_bn_loops *loops_of(const cvy_node *node)
{
    return &cvy_simd_find(CVY_BN_RUN_F32)->bn[node->src[0]->dtype == CVY_DTYPE_BF16];
}

cvy_status cvy_norm_check(const cvy_node *node)
{
    CVY_TRY(cvy_native_f32_or_bf16(node));
    if (!cvy_simd_find(CVY_BN_RUN_F32))
        return cvy_error_set(CVY_NOT_APPLICABLE, "this kernel needs a compiler with vector extensions (gcc or clang)");
    return CVY_OK;
}

cvy_norm cvy_norm_make(const cvy_kernel_ask *ask, const cvy_planes *p, const cvy_planes *sliced)
{
    cvy_norm s = {.p = *p,
                  .loops = loops_of(ask->node),
                  .bytes = cvy_dtype_bytes(ask->node->src[0]->dtype),
                  .planes = 1,
                  .threads = ask->threads,
                  .sliced_pitch = sliced->pitch};
    for (s.step = s.loops->run; s.step % p->block != 0;)
        s.step += s.loops->run;
    s.cols = s.step / s.loops->run;
    s.rows = (cvy_norm_plane_elems(&s) + s.step - 1) / s.step;
    s.sliced_step = sliced->step == sliced->block ? s.step : sliced->step;
    return s;
}

void cvy_norm_cut(cvy_norm *s, int deterministic, int64_t most)
{
    const int whole = deterministic || s->items % s->threads == 0 || s->items >= 8 * s->threads;
    s->parts = whole ? 1 : CVY_MIN(s->threads, most);
}

int64_t cvy_norm_ncoef(const cvy_norm *s)
{
    return s->parts == 1 ? s->slots : s->items;
}

static int64_t count_sums(const cvy_norm *s)
{
    return s->parts == 1 ? s->slots : s->items * s->parts;
}

size_t cvy_norm_scratch(const cvy_norm *s)
{
    return (size_t)(s->planes * s->cols) *
           ((size_t)cvy_norm_ncoef(s) * sizeof(cvy_bn_coef) + (size_t)count_sums(s) * sizeof(cvy_bn_sums));
}

int cvy_norm_may_stream(const cvy_norm *s)
{
    const size_t plane = (size_t)cvy_norm_plane_elems(s) * s->bytes, planes = (size_t)(s->p.n * s->p.groups);
    return plane * planes >= CVY_STREAM_BYTES && plane % CVY_LINE_BYTES == 0 &&
           (size_t)s->step * s->bytes % CVY_LINE_BYTES == 0 &&
           (size_t)s->sliced_step * s->bytes % CVY_LINE_BYTES == 0 && (uintptr_t)s->dst % CVY_LINE_BYTES == 0 &&
           s->dst != s->x && s->dst != s->other && s->dst != s->ddst && s->dst != s->dres;
}

/* ---- coefficients and sums ---- */

void cvy_norm_set(const cvy_norm *s, cvy_bn_coef *coef, int64_t channel, const cvy_norm_channel *c)
{
    for (int64_t l = channel % s->p.block; l < s->step; l += s->p.block) {
        cvy_bn_coef *run = &coef[channel / s->p.block * s->cols + l / s->loops->run];
        const int64_t at = cvy_bn_lane(s->loops, l % s->loops->run);
        run->mean[at] = (float)c->mean;
        run->factor[at] = (float)c->factor;
        run->shift[at] = (float)c->shift;
        run->slope[at] = (float)c->slope;
        run->offset[at] = (float)c->offset;
    }
}

void cvy_norm_total(const cvy_norm *s, const cvy_bn_sums *sums, int64_t channel, double out[2])
{
    const int64_t plane = channel / s->p.block * s->cols;
    out[0] = out[1] = 0;
    for (int64_t part = 0; part < s->parts; part++)
        for (int64_t l = channel % s->p.block; l < s->step; l += s->p.block) {
            const cvy_bn_sums *run = &sums[part * s->planes * s->cols + plane + l / s->loops->run];
            const int64_t at = cvy_bn_lane(s->loops, l % s->loops->run);
            out[0] += (*run)[0][at];
            out[1] += (*run)[1][at];
        }
}

/* ---- rows of a plane ---- */

/* If the rows of the tensor that may be a slice are further apart, a row is a position. */
cvy_bn_tile cvy_norm_tile(const cvy_norm *s, int64_t n, int64_t g, int64_t first, int64_t end)
{
    const int64_t elems = cvy_norm_plane_elems(s), from = first * s->step;
    const size_t at = (size_t)((n * s->p.groups + g) * elems + from) * s->bytes,
                 sliced = (size_t)(s->sliced_step == s->step ? (n * s->sliced_pitch + g) * elems + from
                                                             : (n * s->p.positions + first) * s->sliced_step) *
                          s->bytes;
    return (cvy_bn_tile){
        .elems = CVY_MIN(end * s->step, elems) - from,
        .step = s->step,
        .pitch = s->sliced_step,
        .x = s->x + at,
        .other = s->other ? s->other + at : NULL,
        .ddst = s->ddst ? s->ddst + sliced : NULL,
        .dst = s->dst + (s->ddst ? at : sliced),
        .dres = s->dres ? s->dres + at : NULL,
        .relu = s->relu,
        .stream = s->stream,
    };
}

void cvy_norm_sum_rows(const cvy_norm *s, int64_t n, int64_t g, int64_t begin, int64_t end, const cvy_bn_coef *coef,
                       cvy_bn_sums *sums)
{
    for (int64_t row = begin; row < end; row += SUM_ROWS) {
        const cvy_bn_tile t = cvy_norm_tile(s, n, g, row, CVY_MIN(row + SUM_ROWS, end));
        if (s->ddst)
            s->loops->grad_sums(&t, coef, sums);
        else
            s->loops->sums(&t, sums);
    }
}

/* The sums have stored the gradient of the residual, in which the ReLU is applied already. */
void cvy_norm_apply_rows(const cvy_norm *s, int64_t n, int64_t g, int64_t begin, int64_t end, const cvy_bn_coef *coef)
{
    const int64_t rows = CVY_MAX(1, APPLY_BYTES / (s->step * (int64_t)s->bytes));
    for (int64_t row = end; row > begin; row -= rows) {
        cvy_bn_tile t = cvy_norm_tile(s, n, g, CVY_MAX(row - rows, begin), row);
        if (s->dres) {
            t.ddst = t.dres;
            t.pitch = s->step;
            t.relu = 0;
        }
        if (s->ddst)
            s->loops->grad_apply(&t, coef);
        else
            s->loops->apply(&t, coef);
    }
}

/* ---- running ---- */

struct run {
    const cvy_norm *s;
    const cvy_norm_walks *walks;
};

static cvy_bn_coef *coef_at(const cvy_norm *s, int64_t number)
{
    return s->coef + number * s->planes * s->cols;
}

static cvy_bn_sums *sums_at(const cvy_norm *s, int64_t number)
{
    return s->sums + number * s->planes * s->cols;
}

static void walk_items(int64_t first, int64_t end, void *arg)
{
    const struct run *r = arg;
    const cvy_norm *s = r->s;
    for (int64_t t = first; t < end; t++)
        for (int64_t item = s->items * t / s->slots; item < s->items * (t + 1) / s->slots; item++) {
            if (r->walks->prepare)
                r->walks->prepare(s, item, coef_at(s, t));
            r->walks->sum(s, item, 0, coef_at(s, t), sums_at(s, t));
            r->walks->finish(s, item, sums_at(s, t), coef_at(s, t));
            r->walks->apply(s, item, 0, coef_at(s, t));
        }
}

static void sum_parts(int64_t first, int64_t end, void *arg)
{
    const struct run *r = arg;
    for (int64_t i = first; i < end; i++)
        r->walks->sum(r->s, i / r->s->parts, i % r->s->parts, coef_at(r->s, i / r->s->parts), sums_at(r->s, i));
}

static void apply_parts(int64_t first, int64_t end, void *arg)
{
    const struct run *r = arg;
    for (int64_t i = first; i < end; i++)
        r->walks->apply(r->s, i / r->s->parts, i % r->s->parts, coef_at(r->s, i / r->s->parts));
}

void cvy_norm_run(const cvy_norm *s, const cvy_norm_walks *walks)
{
    struct run r = {s, walks};
    if (s->parts == 1) {
        cvy_parallel_for(s->threads, s->slots, 1, walk_items, &r);
        return;
    }
    for (int64_t item = 0; item < s->items && walks->prepare; item++)
        walks->prepare(s, item, coef_at(s, item));
    cvy_parallel_for(s->threads, s->items * s->parts, 1, sum_parts, &r);
    for (int64_t item = 0; item < s->items; item++)
        walks->finish(s, item, sums_at(s, item * s->parts), coef_at(s, item));
    cvy_parallel_for(s->threads, s->items * s->parts, 1, apply_parts, &r);
}
