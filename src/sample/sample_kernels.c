/*
 * sample_kernels.c: runs every kernel on a sample of an operator, in every layout that it takes, and compares what it
 * computes with the values of the reference kernels.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sample/sample_kernels.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_hash.h"
#include "kernel/kernel_library.h"

enum { GUARD_BYTES = 256 };

struct memory {
    char *whole;
    void *data;
    size_t bytes;
    char *there; /* the same on a device; NULL: the kernel works on `whole` itself */
};

static size_t whole_bytes(const struct memory *m)
{
    return m->bytes + 2 * GUARD_BYTES + 64;
}

static cvy_status memory_open(struct memory *m, size_t bytes, int fill)
{
    m->bytes = bytes;
    CVY_TRY(cvy_mem_alloc(bytes + 2 * GUARD_BYTES + 64, &m->whole));
    memset(m->whole, 0xa5, bytes + 2 * GUARD_BYTES + 64);
    m->data = m->whole + GUARD_BYTES;
    memset(m->data, fill, bytes);
    return CVY_OK;
}

/* Puts the memory onto the device, where the kernel shall work on it. */
static cvy_status memory_push(const cvy_space *space, struct memory *m)
{
    if (cvy_space_is_host(space) || !m->whole)
        return CVY_OK;
    CVY_TRY(cvy_space_alloc(space, whole_bytes(m), 0, &m->there));
    return cvy_space_write(space, m->there, m->whole, whole_bytes(m));
}

static cvy_status memory_pull(const cvy_space *space, const struct memory *m)
{
    return m->there ? cvy_space_read(space, m->whole, m->there, whole_bytes(m)) : CVY_OK;
}

/* The address that the kernel gets for an address in this memory. */
static void *memory_at(const struct memory *m, void *data)
{
    return m->there && data ? m->there + ((char *)data - m->whole) : data;
}

/* Frees the memory and returns whether the guard zones are unchanged. */
static int memory_close(const cvy_space *space, struct memory *m)
{
    int whole = 1;
    if (m->there)
        cvy_space_free(space, &m->there, whole_bytes(m));
    for (int i = 0; m->whole && i < GUARD_BYTES; i++)
        whole &= m->whole[i] == (char)0xa5 && m->whole[GUARD_BYTES + m->bytes + (size_t)i] == (char)0xa5;
    cvy_mem_free(&m->whole);
    return whole;
}

static cvy_span span_of(cvy_dtype dtype, void *data, int64_t elems)
{
    return (cvy_span){.dtype = dtype, .ndim = 1, .dim = {elems}, .elems = elems, .data = data};
}

/* Steps to the next element of a row-major tensor. */
static void next_place(const cvy_shape *shape, int64_t *at)
{
    for (int d = shape->ndim - 1; d >= 0 && ++at[d] == shape->dim[d]; d--)
        at[d] = 0;
}

static void pack(const cvy_value *v, cvy_dtype dtype, const cvy_blocking *layout, int64_t first, const cvy_span *plain,
                 void *data)
{
    const cvy_span to = span_of(dtype, data, layout->elems);
    memset(data, 0, (size_t)layout->elems * cvy_dtype_bytes(dtype));
    int64_t at[CVY_NDIM_MAX] = {0};
    for (int64_t i = 0; i < plain->elems; i++, next_place(&v->shape, at))
        cvy_set(&to, first + cvy_blocking_offset(layout, at), cvy_get(plain, i));
}

/* The layout of the sources when a kernel is asked for an offer. block 1 means plain, 0 channels last, else the block
 * size. fixed: the layouts of parameters and of destinations in variables are fixed. */
struct variant {
    int64_t block;
    int threads, fixed;
};

struct trial {
    const cvy_sample_graph *b;
    cvy_sample_report *report;
    const cvy_node *node;
    const cvy_kernel_def *kernel;
    cvy_kernel_ask ask;
    struct memory src[CVY_NODE_SRC_MAX], dst[CVY_NODE_DST_MAX], scratch;
    cvy_blocking src_layout[CVY_NODE_SRC_MAX], dst_layout[CVY_NODE_DST_MAX];
    int64_t src_first[CVY_NODE_SRC_MAX],
        dst_first[CVY_NODE_DST_MAX]; /* index of its first element in the wider tensor of which it is a slice */
    int inplace;
    int bits_only; /* check only the bits: the values were checked in the trial that it is compared with */
    uint64_t bits; /* hash of the destinations after the run */
};

static void trial_complain(const struct trial *t, const char *what)
{
    char text[400];
    snprintf(text, sizeof text, "%s on %s%s, src %s dst %s: %s", t->kernel->name, t->node->name,
             t->inplace ? " in place" : "", t->ask.src[0].tag, t->ask.dst[0].tag, what);
    t->report->wrong++;
    t->report->complain(t->report->user, t->b, text);
}

static cvy_status check_destination(const struct trial *t, int i, const void *data)
{
    const cvy_value *v = t->node->dst[i];
    const cvy_blocking *layout = &t->dst_layout[i];
    const cvy_span *expected = cvy_eval_of(&t->b->e, v),
                   got = span_of(v->dtype, (void *)(uintptr_t)data, layout->elems);
    unsigned char *logical = NULL;
    char text[200];
    double scale = 1;
    CVY_TRY(cvy_mem_alloc((size_t)layout->elems, &logical));
    for (int64_t k = 0; k < expected->elems; k++)
        scale = fmax(scale, fabs(cvy_get(expected, k)));
    const double eps = v->dtype == CVY_DTYPE_F64 && t->b->dtype == CVY_DTYPE_F64 ? 2.3e-16 : 1.2e-7;
    /* Winograd's transforms count as 64 more summands: see tests/kernel/test_kernel_winograd.c. */
    const double summands =
        (double)(t->node->op->summands ? t->node->op->summands(t->node) : 4) + (t->kernel->winograd ? 64 : 0);
    /* A bf16 result is rounded once more, or twice if a kernel keeps a part of it in f32 and the reference kernel does
     * not. Winograd's transforms amplify the rounding before products in bf16. TF32 cuts both factors of a product,
     * each by at most 2^-10 of its size. */
    const double rounding = (t->ask.tf32 && v->dtype == CVY_DTYPE_F32          ? 1.0
                             : t->kernel->bf16_products                        ? 16.0
                             : t->kernel->rounds || v->dtype == CVY_DTYPE_BF16 ? 2.0
                                                                               : 0) /
                            256;
    const double tolerance = cvy_dtype_is_real(v->dtype) ? (eps * (summands + 2) + rounding) * scale : 0;
    int64_t place[CVY_NDIM_MAX] = {0};
    for (int64_t k = 0; k < expected->elems; k++, next_place(&v->shape, place)) {
        const int64_t at = t->dst_first[i] + cvy_blocking_offset(layout, place);
        const double want = cvy_get(expected, k), is = cvy_get(&got, at);
        logical[at] = 1;
        if (fabs(is - want) <= tolerance || (isnan(is) && isnan(want)) || is == want)
            continue;
        snprintf(text, sizeof text, "destination %d, element %lld of %s, is %.9g, expected %.9g within %.1g", i,
                 (long long)k, cvy_shape_text(&v->shape), is, want, tolerance);
        trial_complain(t, text);
        goto out;
    }
    /* Around a slice the tensor must still hold what it was filled with. */
    const int sliced = cvy_layout_whole(&t->ask.dst[i]) > 0;
    for (int64_t k = 0; k < layout->elems; k++)
        if (!logical[k] && (sliced ? !isnan(cvy_get(&got, k)) : cvy_get(&got, k) != 0)) {
            trial_complain(t, sliced ? "wrote beside its slice" : "a padding lane is not zero");
            goto out;
        }
out:
    t->report->checks++;
    cvy_mem_free(&logical);
    return CVY_OK;
}

/* Returns the source whose memory destination 0 takes over, or -1. */
static int inplace_source(const struct trial *t)
{
    return t->inplace ? t->ask.inplace[0] - 1 : -1;
}

static cvy_status open_memory(struct trial *t, void **src, void **dst)
{
    const int shared = inplace_source(t);
    for (int i = 0; i < t->node->nsrc; i++) {
        CVY_TRY(memory_open(&t->src[i], (size_t)t->src_layout[i].elems * cvy_dtype_bytes(t->ask.src_dtype[i]), 0));
        pack(t->node->src[i], t->ask.src_dtype[i], &t->src_layout[i], t->src_first[i],
             cvy_eval_of(&t->b->e, t->node->src[i]), t->src[i].data);
        src[i] = (char *)t->src[i].data + (size_t)t->src_first[i] * cvy_dtype_bytes(t->ask.src_dtype[i]);
    }
    for (int i = 0; i < t->node->ndst; i++) {
        if (!t->node->dst[i])
            continue;
        const size_t each = cvy_dtype_bytes(t->node->dst[i]->dtype);
        CVY_TRY(memory_open(&t->dst[i], (size_t)t->dst_layout[i].elems * each, 0xff));
        dst[i] = i == 0 && shared >= 0 ? src[shared] : (char *)t->dst[i].data + (size_t)t->dst_first[i] * each;
    }
    return memory_open(&t->scratch, t->ask.scratch_bytes, 0xff);
}

/* Closes all memory and returns whether all guard zones are unchanged. */
static int close_memory(struct trial *t)
{
    const cvy_space *space = t->ask.space;
    int whole = memory_close(space, &t->scratch);
    for (int i = 0; i < t->node->nsrc; i++)
        whole &= memory_close(space, &t->src[i]);
    for (int i = 0; i < t->node->ndst; i++)
        whole &= memory_close(space, &t->dst[i]);
    return whole;
}

/* Runs the kernel where it works, and brings back what it has written. */
static cvy_status run_there(struct trial *t, void *state, void *const *src, void *const *dst)
{
    const cvy_space *space = t->ask.space;
    const int shared = inplace_source(t);
    void *src_there[CVY_NODE_SRC_MAX] = {NULL}, *dst_there[CVY_NODE_DST_MAX] = {NULL};
    for (int i = 0; i < t->node->nsrc; i++) {
        CVY_TRY(memory_push(space, &t->src[i]));
        src_there[i] = memory_at(&t->src[i], src[i]);
    }
    for (int i = 0; i < t->node->ndst; i++) {
        CVY_TRY(memory_push(space, &t->dst[i]));
        dst_there[i] = i == 0 && shared >= 0 ? src_there[shared] : memory_at(&t->dst[i], dst[i]);
    }
    CVY_TRY(memory_push(space, &t->scratch));
    for (int again = 0; again < 1 + (shared < 0); again++)
        CVY_TRY(t->kernel->run(state, src_there, dst_there, memory_at(&t->scratch, t->scratch.data)));
    for (int i = 0; i < t->node->nsrc; i++)
        CVY_TRY(memory_pull(space, &t->src[i]));
    for (int i = 0; i < t->node->ndst; i++)
        CVY_TRY(memory_pull(space, &t->dst[i]));
    return memory_pull(space, &t->scratch);
}

static cvy_status run_kernel(struct trial *t, void **src, void **dst)
{
    void *state = NULL;
    const int shared = inplace_source(t);
    cvy_status status = t->kernel->create ? t->kernel->create(&t->ask, &state) : CVY_OK;
    if (status == CVY_OK)
        status = run_there(t, state, src, dst);
    if (status != CVY_OK)
        trial_complain(t, cvy_error_text());
    t->bits = 0;
    for (int i = 0; i < t->node->ndst; i++)
        t->bits = 31 * t->bits + (t->dst[i].whole ? cvy_hash(t->dst[i].data, t->dst[i].bytes) : 0);
    if (shared >= 0)
        t->bits = 31 * t->bits + cvy_hash(t->src[shared].data, t->src[shared].bytes);
    t->report->bits = 31 * t->report->bits + t->bits;
    cvy_status checked = CVY_OK;
    for (int i = 0; i < t->node->ndst && status == CVY_OK && checked == CVY_OK && !t->bits_only; i++)
        if (dst[i])
            checked = check_destination(t, i, i == 0 && shared >= 0 ? dst[i] : t->dst[i].data);
    if (state && t->kernel->destroy)
        t->kernel->destroy(state);
    return checked;
}

static cvy_status run_trial(struct trial *t)
{
    void *src[CVY_NODE_SRC_MAX] = {NULL}, *dst[CVY_NODE_DST_MAX] = {NULL};
    cvy_status status = open_memory(t, src, dst);
    if (status == CVY_OK)
        status = run_kernel(t, src, dst);
    if (!close_memory(t) && status == CVY_OK)
        trial_complain(t, "wrote outside of its buffers");
    t->report->runs++;
    return status;
}

static int is_parameter(const cvy_sample_graph *b, const cvy_value *v)
{
    for (int i = 0; i < b->nsrc; i++)
        if (b->src[i] == v)
            return 0;
    return v->kind == CVY_VALUE_VARIABLE;
}

/* Returns whether a value may be blocked by channels: activations may, and what is saved with them. */
static int is_activation(const cvy_sample_graph *b, const cvy_value *v)
{
    return v->shape.ndim >= 3 && !is_parameter(b, v) &&
           (v->dtype == b->dtype || v->dtype == CVY_DTYPE_U8 || v->dtype == CVY_DTYPE_I32);
}

/* Makes a value a slice of a wider tensor, starting at the third block of channels. *is_out is 0 if its layout does not
 * allow it. */
static cvy_status lay_as_slice(const cvy_kernel_def *kernel, const cvy_value *v, cvy_layout *layout,
                               cvy_blocking *blocking, int64_t *first, int *is_out)
{
    const cvy_layout last_of_all = cvy_layout_channels_last(v->shape.ndim);
    const int last = v->shape.ndim > 2 && cvy_layout_equal(layout, &last_of_all) && kernel->slice_last;
    const int64_t block = v->shape.ndim < 2 ? 0
                          : last            ? CVY_SLICE_LAST
                                            : cvy_layout_channel_block(layout, v->shape.ndim);
    if (block == 0 || v->shape.dim[1] % block != 0)
        return CVY_OK;
    *layout = cvy_layout_slice(layout, v->shape.dim[1] + 3 * block);
    CVY_TRY(cvy_blocking_make(layout, &v->shape, blocking));
    *first = 2 * block / blocking->dim_block[1] * blocking->stride[1];
    *is_out = 1;
    return CVY_OK;
}

static cvy_status try_slices(struct trial *t)
{
    int any = 0;
    for (int i = 0; i < t->node->nsrc; i++)
        if (t->kernel->slice_src >> i & 1)
            CVY_TRY(
                lay_as_slice(t->kernel, t->node->src[i], &t->ask.src[i], &t->src_layout[i], &t->src_first[i], &any));
    for (int i = 0; i < t->node->ndst; i++)
        if (t->kernel->slice_dst >> i & 1 && t->node->dst[i])
            CVY_TRY(
                lay_as_slice(t->kernel, t->node->dst[i], &t->ask.dst[i], &t->dst_layout[i], &t->dst_first[i], &any));
    t->inplace = 0;
    return any ? run_trial(t) : CVY_OK;
}

/* Asks the kernel for an offer. *made_out is 0 if it declines. */
static cvy_status make_trial(const cvy_sample_graph *b, const cvy_node *node, const cvy_kernel_def *kernel,
                             const struct variant *variant, int deterministic, cvy_sample_report *report,
                             struct trial *out, int *made_out)
{
    struct trial t = {.b = b, .report = report, .node = node, .kernel = kernel};
    *made_out = 0;
    t.ask = (cvy_kernel_ask){.kernel = kernel,
                             .node = node,
                             .space = report->space,
                             .threads = variant->threads,
                             .deterministic = deterministic,
                             .tf32 = report->tf32,
                             .compiles = report->compiles};
    for (int i = 0; i < node->nsrc; i++) {
        t.ask.src_dtype[i] = node->src[i]->dtype;
        t.ask.src_free[i] = is_parameter(b, node->src[i]) && !variant->fixed;
        if (is_activation(b, node->src[i]))
            t.ask.src[i] = variant->block ? cvy_layout_channels(node->src[i]->shape.ndim, variant->block)
                                          : cvy_layout_channels_last(node->src[i]->shape.ndim);
    }
    for (int i = 0; i < node->ndst; i++)
        t.ask.dst_fixed[i] = variant->fixed && node->dst[i] && node->dst[i]->variable;
    cvy_error_set(CVY_NOT_APPLICABLE, "%s", "");
    const cvy_status status = kernel->offer(&t.ask);
    if (status == CVY_NOT_APPLICABLE && !cvy_error_text()[0])
        trial_complain(&t, "it declines without a reason");
    if (status == CVY_NOT_APPLICABLE)
        return CVY_OK;
    if (status != CVY_OK) {
        trial_complain(&t, cvy_error_text());
        return CVY_OK;
    }
    for (int i = 0; i < node->nsrc; i++)
        CVY_TRY(cvy_blocking_make(&t.ask.src[i], &node->src[i]->shape, &t.src_layout[i]));
    for (int i = 0; i < node->ndst; i++)
        if (node->dst[i])
            CVY_TRY(cvy_blocking_make(&t.ask.dst[i], &node->dst[i]->shape, &t.dst_layout[i]));
    *out = t;
    *made_out = 1;
    return CVY_OK;
}

static cvy_status try_kernel(const cvy_sample_graph *b, const cvy_node *node, const cvy_kernel_def *kernel,
                             const struct variant *variant, cvy_sample_report *report)
{
    struct trial t;
    int made = 0;
    CVY_TRY(make_trial(b, node, kernel, variant, 0, report, &t, &made));
    if (!made)
        return CVY_OK;
    CVY_TRY(run_trial(&t));
    t.inplace = 1;
    if (inplace_source(&t) >= 0)
        CVY_TRY(run_trial(&t));
    return try_slices(&t);
}

/* Returns whether the planner would accept the second offer in place of the first (see plan_select.c). */
static int same_answer(const struct trial *a, const struct trial *b)
{
    int same = a->ask.algorithm_id == b->ask.algorithm_id;
    for (int i = 0; i < a->node->nsrc; i++)
        same = same && cvy_layout_equal(&a->ask.src[i], &b->ask.src[i]);
    for (int i = 0; i < a->node->ndst; i++)
        same = same && cvy_layout_equal(&a->ask.dst[i], &b->ask.dst[i]);
    return same;
}

static cvy_status try_threads(const cvy_sample_graph *b, const cvy_node *node, const cvy_kernel_def *kernel,
                              const struct variant *variant, cvy_sample_report *report)
{
    struct trial one, more;
    struct variant by = *variant;
    int made = 0;
    by.threads = 1;
    if (kernel->thread_dependent || !cvy_space_is_host(report->space))
        return CVY_OK;
    CVY_TRY(make_trial(b, node, kernel, &by, 1, report, &one, &made));
    if (!made)
        return CVY_OK;
    CVY_TRY(run_trial(&one));
    for (by.threads = 2; by.threads <= 3; by.threads++) {
        CVY_TRY(make_trial(b, node, kernel, &by, 1, report, &more, &made));
        if (!made || !same_answer(&one, &more))
            continue;
        more.bits_only = 1;
        CVY_TRY(run_trial(&more));
        report->checks++;
        if (more.bits != one.bits)
            trial_complain(&more, by.threads == 2 ? "other bits on two threads" : "other bits on three threads");
    }
    return CVY_OK;
}

cvy_status cvy_sample_check_kernels(const cvy_sample_graph *b, const cvy_kernel_def *const *table, int count,
                                    cvy_sample_report *report)
{
    static const struct variant variants[] = {{1, 1, 0}, {1, 2, 1}, {16, 1, 0}, {8, 2, 0}, {4, 3, 0}, {0, 2, 0}};
    for (int n = 0; n < b->graph->nnode; n++)
        for (int k = 0; k < count; k++)
            for (int v = 0; v < CVY_COUNT(variants) && strcmp(table[k]->op, b->graph->node[n]->op->name) == 0 &&
                            cvy_kernel_fits(table[k], report->space);
                 v++) {
                if (!b->is_wide)
                    CVY_TRY(try_kernel(b, b->graph->node[n], table[k], &variants[v], report));
                CVY_TRY(try_threads(b, b->graph->node[n], table[k], &variants[v], report));
            }
    return CVY_OK;
}
