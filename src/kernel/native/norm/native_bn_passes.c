/*
 * native_bn_passes.c: the part of the passes of batch norm that does not depend on the layout of activations.
 *
 * op_batch_norm.h describes how the operators work together.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/norm/native_bn_passes.h"

#include <string.h>

/* ---- coefficients of each group and channel, made before the walk ---- */

static size_t coef_bytes(int64_t groups, int64_t lanes)
{
    return (size_t)(CVY_MAX(1, groups) * 3 * lanes) * sizeof(float);
}

/* Padding lanes get zero coefficients, so that they stay zero. */
static void clear_coef(const cvy_bn_passes *b)
{
    memset(b->coef, 0, coef_bytes(b->groups.count, b->lanes));
}

static void set_apply_coef(const cvy_bn_passes *b, int64_t g, int64_t c, double mean, double inv_std)
{
    const double factor = b->scale ? b->scale[c] * inv_std : inv_std, shift = b->shift ? b->shift[c] : 0;
    cvy_bn_coef(b, g, 0)[c] = (float)mean;
    cvy_bn_coef(b, g, 1)[c] = (float)factor;
    cvy_bn_coef(b, g, 2)[c] = (float)(b->folds_mean ? shift - mean * factor : shift);
}

static void make_apply_coef(const cvy_bn_passes *b)
{
    clear_coef(b);
    for (int64_t g = 0; g < b->groups.count; g++)
        for (int64_t c = 0; c < b->channels; c++) {
            double mean, inv_std;
            cvy_bn_normaliser(b, g, c, &mean, &inv_std);
            set_apply_coef(b, g, c, mean, inv_std);
        }
}

static void make_infer_coef(const cvy_bn_passes *b, const float *mean, const float *variance)
{
    clear_coef(b);
    for (int64_t c = 0; c < b->channels; c++)
        set_apply_coef(b, 0, c, mean[c], 1 / sqrt(variance[c] + b->eps));
}

/* dsrc = factor * ddst + slope * x + offset */
static void make_grad_coef(const cvy_bn_passes *b)
{
    const int64_t C = b->channels;
    clear_coef(b);
    for (int64_t g = 0; g < b->groups.count; g++)
        for (int64_t c = 0; c < C; c++) {
            const double n = cvy_bn_count(b, g, c);
            double mean, inv_std;
            cvy_bn_normaliser(b, g, c, &mean, &inv_std);
            const double factor = (b->scale ? b->scale[c] : 1) * inv_std,
                         slope = -factor * inv_std * b->gstats[(2 * g + 1) * C + c] / n;
            cvy_bn_coef(b, g, 0)[c] = (float)factor;
            cvy_bn_coef(b, g, 1)[c] = (float)slope;
            cvy_bn_coef(b, g, 2)[c] = (float)(-factor * b->gstats[2 * g * C + c] / n - slope * mean);
        }
}

/* ---- offers and states ---- */

const cvy_bn_roles *cvy_bn_roles_of(const cvy_node *node)
{
    static const cvy_bn_roles roles[] = {
        {"bn_apply", -1, 0},     {"bn_infer", -1, 0},      {"bn_grad_stats", 2, -1},
        {"bn_grad_apply", 3, 3}, {"bn_infer_grad", -1, 0}, {"bn_infer_grad_params", 1, -1},
        {"bn_stats", -1, -1},
    };
    int i = 0;
    while (i < CVY_COUNT(roles) - 1 && strcmp(roles[i].op, node->op->name) != 0)
        i++;
    return &roles[i];
}

static int is_params_grad(const cvy_node *node)
{
    return strcmp(node->op->name, "bn_infer_grad_params") == 0;
}

void cvy_bn_passes_offer(cvy_kernel_ask *ask, const cvy_layout *layout, int64_t lanes)
{
    const cvy_bn_roles *roles = cvy_bn_roles_of(ask->node);
    const int residual = strcmp(roles->op, "bn_infer") == 0 ? cvy_bn_infer_residual(ask->node) : -1;
    for (int i = 0; i < ask->node->nsrc; i++)
        ask->src[i] = i == 0 || i == roles->other || i == residual ? *layout : cvy_layout_plain();
    if (is_params_grad(ask->node))
        ask->scratch_bytes = (size_t)(4 * ask->node->src[0]->shape.dim[1]) * sizeof(double);
    if (roles->inplace < 0)
        return;
    ask->dst[0] = *layout;
    ask->inplace[0] = roles->inplace + 1;
    ask->scratch_bytes = coef_bytes(cvy_bn_groups_of(ask->node).count, lanes);
}

cvy_status cvy_bn_passes_make(const cvy_kernel_ask *ask, cvy_bn_passes *b)
{
    const cvy_batch_norm_opts *o = ask->node->options;
    b->groups = cvy_bn_groups_of(ask->node);
    b->counted_at = cvy_bn_counted(ask->node);
    b->entries = 2 + cvy_bn_has_counted(ask->node);
    b->threads = ask->threads;
    if (o) {
        b->eps = o->eps;
        b->relu = o->relu;
        b->scale_shift = o->scale_shift;
    }
    CVY_TRY(cvy_mem_alloc((size_t)b->n * sizeof *b->group_of, &b->group_of));
    if (strncmp(ask->node->op->name, "bn_infer", 8) == 0) { /* one row of running statistics for all samples */
        b->groups.begin = b->groups.local_begin;
        b->groups.samples = b->groups.local_end - b->groups.local_begin;
        b->groups.first = 0;
        b->groups.total = b->groups.count = 1;
        b->relu &= strcmp(ask->node->op->name, "bn_infer") == 0;
        b->residual_at = strcmp(ask->node->op->name, "bn_infer") == 0 ? cvy_bn_infer_residual(ask->node) : -1;
        return CVY_OK;
    }
    for (int64_t g = 0; g < b->groups.count; g++) {
        int64_t first, last;
        cvy_bn_group_local(&b->groups, g, &first, &last);
        for (int64_t n = first; n < last; n++)
            b->group_of[n] = g;
    }
    return CVY_OK;
}

void cvy_bn_passes_destroy(void *state)
{
    cvy_bn_passes *b = state;
    if (b)
        cvy_mem_free(&b->group_of);
    cvy_mem_free(&b);
}

/* ---- the runs ---- */

/* Takes the source that says which samples count, and returns 1 if there is one: sources after it have larger
 * indices. */
static int take_counted(cvy_bn_passes *b, void *const *src)
{
    b->counted = b->counted_at ? src[b->counted_at] : NULL;
    return b->counted_at > 0;
}

/* Writes how many values of each row of the statistics count. */
static void count_values(const cvy_bn_passes *b)
{
    const int64_t C = b->channels;
    for (int64_t g = 0; g < b->groups.count; g++) {
        double *counts = b->sums + (3 * g + 2) * C;
        int64_t first, last, samples = 0;
        cvy_bn_group_local(&b->groups, g, &first, &last);
        for (int64_t n = first; n < last; n++)
            samples += b->counted[n] != 0;
        for (int64_t c = 0; c < C; c++)
            counts[c] = (double)(samples * b->positions);
    }
}

static void walk_samples(cvy_bn_passes *b, cvy_range_fn walk)
{
    cvy_parallel_for(b->threads, b->n * b->parts, CVY_MAX(1, CVY_GRAIN / CVY_MAX(1, b->positions * b->width)), walk, b);
}

static void walk_rows(cvy_bn_passes *b, cvy_range_fn walk)
{
    cvy_parallel_for(b->threads, b->groups.count * b->parts, 1, walk, b);
}

cvy_status cvy_bn_stats_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    cvy_bn_passes *b = state;
    (void)scratch;
    b->x = src[0];
    b->sums = dst[0];
    if (take_counted(b, src))
        count_values(b);
    walk_rows(b, b->walks.stats);
    return CVY_OK;
}

cvy_status cvy_bn_apply_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    cvy_bn_passes *b = state;
    const int scale_at = 2 + take_counted(b, src);
    b->x = src[0];
    b->stats = src[1];
    b->scale = b->scale_shift ? src[scale_at] : NULL;
    b->shift = b->scale_shift ? src[scale_at + 1] : NULL;
    b->dst = dst[0];
    b->coef = scratch;
    make_apply_coef(b);
    walk_samples(b, b->walks.apply);
    return CVY_OK;
}

cvy_status cvy_bn_infer_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    cvy_bn_passes *b = state;
    const int running = b->scale_shift ? 3 : 1;
    b->x = src[0];
    b->scale = b->scale_shift ? src[1] : NULL;
    b->shift = b->scale_shift ? src[2] : NULL;
    b->residual = b->residual_at >= 0 ? src[b->residual_at] : NULL;
    b->dst = dst[0];
    b->coef = scratch;
    make_infer_coef(b, src[running], src[running + 1]);
    walk_samples(b, b->walks.apply);
    return CVY_OK;
}

cvy_status cvy_bn_infer_grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    cvy_bn_passes *b = state;
    const float *variance = src[1];
    b->x = src[0];
    b->scale = b->scale_shift ? src[2] : NULL;
    b->shift = NULL;
    b->dst = dst[0];
    b->coef = scratch;
    clear_coef(b);
    for (int64_t c = 0; c < b->channels; c++)
        set_apply_coef(b, 0, c, 0, 1 / sqrt(variance[c] + b->eps));
    walk_samples(b, b->walks.apply);
    return CVY_OK;
}

/* The walk wants sums over a group in place of its mean and variance, so it gets those that a group with the running
 * ones would have. */
cvy_status cvy_bn_infer_grad_params_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    cvy_bn_passes *b = state;
    const int64_t C = b->channels;
    const double n = (double)(b->n * b->positions);
    const float *mean = src[2], *variance = src[3];
    double *stats = scratch;
    float *dscale = dst[0], *dshift = dst[1];
    for (int64_t c = 0; c < C; c++) {
        stats[c] = mean[c] * n;
        stats[C + c] = (variance[c] + (double)mean[c] * mean[c]) * n;
    }
    b->x = src[0];
    b->ddst = src[1];
    b->stats = stats;
    b->sums = stats + 2 * C;
    memset(b->sums, 0, (size_t)(2 * C) * sizeof *b->sums);
    if (n > 0)
        walk_rows(b, b->walks.grad_stats);
    for (int64_t c = 0; c < C; c++) {
        if (dshift)
            dshift[c] = (float)b->sums[c];
        if (dscale)
            dscale[c] = (float)b->sums[C + c];
    }
    return CVY_OK;
}

cvy_status cvy_bn_grad_stats_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    cvy_bn_passes *b = state;
    const int64_t C = b->channels;
    (void)scratch;
    b->x = src[0];
    b->stats = src[1];
    b->ddst = src[2];
    b->sums = dst[0];
    take_counted(b, src);
    walk_rows(b, b->walks.grad_stats);
    for (int k = 0; k < 2 && b->scale_shift; k++) {
        float *sum = dst[2 - k]; /* row 0 of the sums is dshift, row 1 is dscale */
        for (int64_t c = 0; sum && c < C; c++) {
            double total = 0;
            for (int64_t g = 0; g < b->groups.count; g++)
                total += b->sums[(2 * g + k) * C + c];
            sum[c] = (float)total;
        }
    }
    return CVY_OK;
}

cvy_status cvy_bn_grad_apply_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    cvy_bn_passes *b = state;
    const int scale_at = 4 + take_counted(b, src);
    b->x = src[0];
    b->stats = src[1];
    b->gstats = src[2];
    b->ddst = src[3];
    b->scale = b->scale_shift ? src[scale_at] : NULL;
    b->dst = dst[0];
    b->coef = scratch;
    make_grad_coef(b);
    walk_samples(b, b->walks.grad);
    return CVY_OK;
}
