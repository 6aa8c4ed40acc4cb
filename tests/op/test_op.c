/* rows: clang asan onednn3 minimal */
/*
 * test_op.c: one driver over the whole operator table.
 *
 * For every operator and each of its samples it checks:
 *
 * gradients  in f64: those that autodiff makes are compared with central finite differences of the reference kernel
 * kernels    every registered kernel that offers to run a node of that graph (backward nodes included), in every layout
 *            that it takes, is compared with the reference kernel in the same dtype, f32 or bf16; with guard zones,
 *            in place if the kernel says that it can, and on slices of wider tensors if it says so
 * threads    a kernel in deterministic mode gives the same bits on one, two and three threads, unless it says that its
 *            result depends on the number of threads
 *
 * A tolerance is eps x number of summands x size of the values. Winograd has a wider one. Arguments name the operators
 * to test; without arguments all are tested.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/base_hash.h"
#include "kernel/kernel.h"
#include "op/op_sample.h"

enum { GUARD_BYTES = 256, DIFFERENCED_MAX = 48 };
static const double step = 2e-5; /* of the finite differences: truncation about 1e-10, cancellation about 1e-11 */

static int gradients_checked, kernels_checked;

/* ---- gradients ---- */

static double loss_at(struct sample_graph *b, cvy_span *x, int64_t i, double value)
{
    cvy_set(x, i, value);
    for (int n = 0; n < b->graph->nnode && n <= b->loss->producer->index; n++)
        if (b->graph->node[n]->phase != CVY_PHASE_UPDATE)
            EXPECT_OK(eval_node(&b->e, b->graph->node[n]));
    return cvy_get(eval_of(&b->e, b->loss), 0);
}

static void check_gradient(struct sample_graph *b, const cvy_gradient *gradient)
{
    cvy_value *value = NULL;
    EXPECT_OK(cvy_graph_read_variable(b->graph, gradient->variable, &value));
    cvy_span *x = eval_of(&b->e, value), *d = eval_of(&b->e, gradient->value);
    double scale = 1;
    for (int64_t i = 0; i < d->elems; i++)
        scale = fmax(scale, fabs(cvy_get(d, i)));
    const int64_t count = CVY_MIN(x->elems, DIFFERENCED_MAX);
    for (int64_t k = 0; k < count; k++) {
        const int64_t i = k * x->elems / count;
        const double at = cvy_get(x, i), above = loss_at(b, x, i, at + step), below = loss_at(b, x, i, at - step);
        const double numeric = (above - below) / (2 * step), exact = cvy_get(d, i);
        cvy_set(x, i, at);
        test_checks++;
        gradients_checked++;
        if (!(fabs(numeric - exact) <= 1e-7 * scale)) {
            char text[200];
            snprintf(text, sizeof text, "gradient of %s, element %lld, is %.10g, finite differences give %.10g",
                     gradient->variable->name, (long long)i, exact, numeric);
            complain(b, text);
            return;
        }
    }
}

/* Every variable must have a gradient. Of the sources of a loss, only the output has one. */
static void check_complete(struct sample_graph *b)
{
    for (int v = 0; v < b->vars->count; v++) {
        const cvy_variable *variable = b->vars->at[v];
        int found = variable->role != CVY_ROLE_WEIGHT;
        for (int i = 0; i < b->gradients.count; i++)
            found |= b->gradients.at[i].variable == variable;
        if (!found && !((b->op->flags & CVY_OP_LOSS) && variable != b->src[0]->variable)) {
            char text[100];
            snprintf(text, sizeof text, "%s has no gradient", variable->name);
            complain(b, text);
        }
    }
}

/* ---- kernels ---- */

struct memory {
    char *whole;
    void *data;
    size_t bytes;
};

static void memory_open(struct memory *m, size_t bytes, int fill)
{
    m->bytes = bytes;
    EXPECT_OK(cvy_mem_alloc(bytes + 2 * GUARD_BYTES + 64, &m->whole));
    memset(m->whole, 0xa5, bytes + 2 * GUARD_BYTES + 64);
    m->data = m->whole + GUARD_BYTES;
    memset(m->data, fill, bytes);
}

/* Frees the memory and returns whether the guard zones are unchanged. */
static int memory_close(struct memory *m)
{
    int whole = 1;
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
    struct sample_graph *b;
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
    complain(t->b, text);
}

static void check_destination(const struct trial *t, int i, const void *data)
{
    const cvy_value *v = t->node->dst[i];
    const cvy_blocking *layout = &t->dst_layout[i];
    const cvy_span *expected = eval_of(&t->b->e, v), got = span_of(v->dtype, (void *)(uintptr_t)data, layout->elems);
    unsigned char *logical = NULL;
    char text[200];
    double scale = 1;
    EXPECT_OK(cvy_mem_alloc((size_t)layout->elems, &logical));
    for (int64_t k = 0; k < expected->elems; k++)
        scale = fmax(scale, fabs(cvy_get(expected, k)));
    const double eps = v->dtype == CVY_DTYPE_F64 && t->b->dtype == CVY_DTYPE_F64 ? 2.3e-16 : 1.2e-7;
    /* Winograd's transforms count as 64 more summands: see tests/kernel/test_kernel_winograd.c. */
    const double summands = (double)(t->node->op->summands ? t->node->op->summands(t->node) : 4) +
                            (strstr(t->kernel->name, "winograd") ? 64 : 0);
    /* A bf16 result is rounded once more, or twice if a kernel keeps a part of it in f32 and the reference kernel does
     * not. */
    const double rounding = v->dtype == CVY_DTYPE_BF16 ? 2.0 / 256 : 0;
    const double tolerance = is_real(v->dtype) ? (eps * (summands + 2) + rounding) * scale : 0;
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
    test_checks++;
    cvy_mem_free(&logical);
}

/* Returns the source whose memory destination 0 takes over, or -1. */
static int inplace_source(const struct trial *t)
{
    return t->inplace ? t->ask.inplace[0] - 1 : -1;
}

static void run_trial(struct trial *t)
{
    void *src[CVY_NODE_SRC_MAX] = {NULL}, *dst[CVY_NODE_DST_MAX] = {NULL}, *state = NULL;
    const int shared = inplace_source(t);
    for (int i = 0; i < t->node->nsrc; i++) {
        memory_open(&t->src[i], (size_t)t->src_layout[i].elems * cvy_dtype_bytes(t->ask.src_dtype[i]), 0);
        pack(t->node->src[i], t->ask.src_dtype[i], &t->src_layout[i], t->src_first[i],
             eval_of(&t->b->e, t->node->src[i]), t->src[i].data);
        src[i] = (char *)t->src[i].data + (size_t)t->src_first[i] * cvy_dtype_bytes(t->ask.src_dtype[i]);
    }
    for (int i = 0; i < t->node->ndst; i++) {
        if (!t->node->dst[i])
            continue;
        memory_open(&t->dst[i], (size_t)t->dst_layout[i].elems * cvy_dtype_bytes(t->node->dst[i]->dtype), 0xff);
        dst[i] = i == 0 && shared >= 0
                     ? src[shared]
                     : (char *)t->dst[i].data + (size_t)t->dst_first[i] * cvy_dtype_bytes(t->node->dst[i]->dtype);
    }
    memory_open(&t->scratch, t->ask.scratch_bytes, 0xff);
    cvy_status status = t->kernel->create ? t->kernel->create(&t->ask, &state) : CVY_OK;
    for (int again = 0; again < 1 + (shared < 0) && status == CVY_OK; again++)
        status = t->kernel->run(state, src, dst, t->scratch.data);
    if (status != CVY_OK)
        trial_complain(t, cvy_error_text());
    t->bits = 0;
    for (int i = 0; i < t->node->ndst; i++)
        t->bits = 31 * t->bits + (t->dst[i].whole ? cvy_hash(t->dst[i].data, t->dst[i].bytes) : 0);
    for (int i = 0; i < t->node->ndst && status == CVY_OK && !t->bits_only; i++)
        if (dst[i])
            check_destination(t, i, i == 0 && shared >= 0 ? dst[i] : t->dst[i].data);
    if (state && t->kernel->destroy)
        t->kernel->destroy(state);
    int whole = memory_close(&t->scratch);
    for (int i = 0; i < t->node->nsrc; i++)
        whole &= memory_close(&t->src[i]);
    for (int i = 0; i < t->node->ndst; i++)
        whole &= memory_close(&t->dst[i]);
    if (!whole)
        trial_complain(t, "wrote outside of its buffers");
    kernels_checked++;
}

static int is_parameter(const struct sample_graph *b, const cvy_value *v)
{
    for (int i = 0; i < b->nsrc; i++)
        if (b->src[i] == v)
            return 0;
    return v->kind == CVY_VALUE_VARIABLE;
}

/* Returns whether a value may be blocked by channels: activations may, and what is saved with them. */
static int is_activation(const struct sample_graph *b, const cvy_value *v)
{
    return v->shape.ndim >= 3 && !is_parameter(b, v) &&
           (v->dtype == b->dtype || v->dtype == CVY_DTYPE_U8 || v->dtype == CVY_DTYPE_I32);
}

/* Makes a value a slice of a wider tensor, starting at the third block of channels. Returns 0 if its layout does not
 * allow it. */
static int lay_as_slice(const cvy_kernel_def *kernel, const cvy_value *v, cvy_layout *layout, cvy_blocking *blocking,
                        int64_t *first)
{
    const cvy_layout last_of_all = cvy_layout_channels_last(v->shape.ndim);
    const int last = v->shape.ndim > 2 && cvy_layout_equal(layout, &last_of_all) && kernel->slice_last;
    const int64_t block = v->shape.ndim < 2 ? 0
                          : last            ? CVY_SLICE_LAST
                                            : cvy_layout_channel_block(layout, v->shape.ndim);
    if (block == 0 || v->shape.dim[1] % block != 0)
        return 0;
    *layout = cvy_layout_slice(layout, v->shape.dim[1] + 3 * block);
    EXPECT_OK(cvy_blocking_make(layout, &v->shape, blocking));
    *first = 2 * block / blocking->dim_block[1] * blocking->stride[1];
    return 1;
}

static void try_slices(struct trial *t)
{
    int any = 0;
    for (int i = 0; i < t->node->nsrc; i++)
        if (t->kernel->slice_src >> i & 1)
            any += lay_as_slice(t->kernel, t->node->src[i], &t->ask.src[i], &t->src_layout[i], &t->src_first[i]);
    for (int i = 0; i < t->node->ndst; i++)
        if (t->kernel->slice_dst >> i & 1 && t->node->dst[i])
            any += lay_as_slice(t->kernel, t->node->dst[i], &t->ask.dst[i], &t->dst_layout[i], &t->dst_first[i]);
    t->inplace = 0;
    if (any)
        run_trial(t);
}

/* Returns whether the kernel made an offer. */
static int make_trial(struct sample_graph *b, const cvy_node *node, const cvy_kernel_def *kernel,
                      const struct variant *variant, int deterministic, struct trial *out)
{
    struct trial t = {.b = b, .node = node, .kernel = kernel};
    t.ask = (cvy_kernel_ask){.node = node, .threads = variant->threads, .deterministic = deterministic};
    for (int i = 0; i < node->nsrc; i++) {
        t.ask.src_dtype[i] = node->src[i]->dtype;
        t.ask.src_free[i] = is_parameter(b, node->src[i]) && !variant->fixed;
        if (is_activation(b, node->src[i]))
            t.ask.src[i] = variant->block ? cvy_layout_channels(node->src[i]->shape.ndim, variant->block)
                                          : cvy_layout_channels_last(node->src[i]->shape.ndim);
    }
    for (int i = 0; i < node->ndst; i++)
        t.ask.dst_fixed[i] = variant->fixed && node->dst[i] && node->dst[i]->variable;
    const cvy_status status = kernel->offer(&t.ask);
    if (status == CVY_NOT_APPLICABLE)
        return 0;
    if (status != CVY_OK) {
        trial_complain(&t, cvy_error_text());
        return 0;
    }
    for (int i = 0; i < node->nsrc; i++)
        EXPECT_OK(cvy_blocking_make(&t.ask.src[i], &node->src[i]->shape, &t.src_layout[i]));
    for (int i = 0; i < node->ndst; i++)
        if (node->dst[i])
            EXPECT_OK(cvy_blocking_make(&t.ask.dst[i], &node->dst[i]->shape, &t.dst_layout[i]));
    *out = t;
    return 1;
}

static void try_kernel(struct sample_graph *b, const cvy_node *node, const cvy_kernel_def *kernel,
                       const struct variant *variant)
{
    struct trial t;
    if (!make_trial(b, node, kernel, variant, 0, &t))
        return;
    run_trial(&t);
    t.inplace = 1;
    if (inplace_source(&t) >= 0)
        run_trial(&t);
    try_slices(&t);
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

static void try_threads(struct sample_graph *b, const cvy_node *node, const cvy_kernel_def *kernel,
                        const struct variant *variant)
{
    struct trial one, more;
    struct variant by = *variant;
    by.threads = 1;
    if (kernel->thread_dependent || !make_trial(b, node, kernel, &by, 1, &one))
        return;
    run_trial(&one);
    for (by.threads = 2; by.threads <= 3; by.threads++) {
        if (!make_trial(b, node, kernel, &by, 1, &more) || !same_answer(&one, &more))
            continue;
        more.bits_only = 1;
        run_trial(&more);
        test_checks++;
        if (more.bits != one.bits)
            trial_complain(&more, by.threads == 2 ? "other bits on two threads" : "other bits on three threads");
    }
}

static void check_kernels(struct sample_graph *b)
{
    static const struct variant variants[] = {{1, 1, 0}, {1, 2, 1}, {16, 1, 0}, {8, 2, 0}, {4, 3, 0}, {0, 2, 0}};
    int count = 0;
    const cvy_kernel_def *const *table = cvy_kernel_table(&count);
    for (int n = 0; n < b->graph->nnode; n++)
        for (int k = 0; k < count; k++)
            for (int v = 0; v < CVY_COUNT(variants) && strcmp(table[k]->op, b->graph->node[n]->op->name) == 0; v++) {
                if (!b->is_wide)
                    try_kernel(b, b->graph->node[n], table[k], &variants[v]);
                try_threads(b, b->graph->node[n], table[k], &variants[v]);
            }
}

/* ---- the driver ---- */

static void check_sample(const cvy_op_def *op, const cvy_sample *sample, cvy_dtype dtype, int training, int is_wide)
{
    struct sample_graph b;
    const cvy_status status = open_sample(op, sample, dtype, training, &b);
    b.is_wide = is_wide;
    test_checks++;
    if (status != CVY_OK) {
        complain(&b, cvy_error_text());
    } else {
        check_kernels(&b);
        if (b.gradients.count)
            check_complete(&b);
        for (int i = 0; i < b.gradients.count && dtype == CVY_DTYPE_F64 && !(sample->flags & CVY_SAMPLE_TIES); i++)
            check_gradient(&b, &b.gradients.at[i]);
    }
    close_sample(&b);
}

/* Samples that are large enough for kernels to split their sums over threads. */
static const struct {
    const char *op;
    cvy_sample sample;
} wide[] = {
    {"conv", {.src = "3x32x19x19", .options = "channels: 48, kernel: 3, pad: 1"}},
    {"conv", {.src = "5x64x10x10", .options = "channels: 32, kernel: 1"}},
    {"conv", {.src = "2x64x14x14", .options = "channels: 96, kernel: 3, stride: 2, pad: 1"}},
    {"conv", {.src = "2x3x40x40", .options = "channels: 32, kernel: 7, stride: 2, pad: 3"}},
    {"conv", {.src = "1x256x6x6", .options = "channels: 64, kernel: 3, pad: 1"}},
    {"conv", {.src = "4x32x16x16", .options = "channels: 32, kernel: 5, pad: 2"}},
    {"conv", {.src = "4x32x8x8", .options = "channels: 64, kernel: 5, pad: 2"}},
    {"conv", {.src = "4x3x32x32", .options = "channels: 32, kernel: 5, pad: 2"}},
    {"max_pool", {.src = "4x32x32x32", .options = "kernel: 3, stride: 2"}},
    {"deconv", {.src = "3x32x9x9", .options = "channels: 16, kernel: 4, stride: 2, pad: 1"}},
    {"fc", {.src = "4x900", .options = "channels: 70"}},
    {"matmul", {.src = "2x50x300,2x300x70"}},
    {"embedding", {.src = "7x300:i32", .options = "rows: 40, channels: 70", .int_bound = 40}},
    {"batch_norm", {.src = "7x40x13x13"}},
    {"batch_norm", {.src = "4x16x33x33"}},
    {"softmax_cross_entropy", {.src = "300x50,300:i32,scalar:f64", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 50}},
    {"global_avg_pool", {.src = "5x40x30x30"}},
    {"global_max_pool", {.src = "5x40x30x30"}},
    {"avg_pool", {.src = "5x40x30x30", .options = "kernel: 3, stride: 2"}},
    {"tanh", {.src = "1x70001"}},
    {"sigmoid", {.src = "3x23x1001"}},
    {"dropout", {.src = "3x30001,3:i64,scalar:i64", .int_bound = 1000}},
    {"add", {.src = "1x70001,1x70001"}},
    {"multiply", {.src = "1x70001,1x70001"}},
    {"multiply_channels", {.src = "3x40x31x31,3x40"}},
    {"subtract", {.src = "1x70001,1x70001"}},
    {"maximum", {.src = "1x70001,1x70001"}},
    {"leaky_relu", {.src = "1x70001"}},
    {"prelu", {.src = "1x70001"}},
    {"prelu", {.src = "5x40x30x30", .options = "per_channel: true"}},
    {"silu", {.src = "1x70001"}},
    {"gelu", {.src = "1x70001", .options = "approximate: tanh"}},
    {"hard_swish", {.src = "1x70001"}},
    {"elu", {.src = "1x70001", .options = "alpha: 0.3"}},
    {"clip_value", {.src = "1x70001", .options = "limit: 0.5"}},
    {"grad_norm2", {.src = "1x70001,50021"}},
    {"lrn", {.src = "4x40x25x25", .options = "size: 5"}},
    {"group_norm", {.src = "2x40x33x33", .options = "groups: 4"}},
    {"instance_norm", {.src = "3x40x21x21", .options = "scale_shift: true"}},
    {"layer_norm", {.src = "5x70x96"}},
    {"layer_norm", {.src = "3x40x21x21", .options = "axes: 1"}},
    {"resize", {.src = "3x20x23x23", .options = "scale: 2, mode: bilinear"}},
};

static int chosen(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return 1;
    return argc < 2;
}

int main(int argc, char **argv)
{
    static const cvy_dtype dtypes[] = {CVY_DTYPE_F64, CVY_DTYPE_F32, CVY_DTYPE_BF16};
    int count = 0;
    const cvy_op_def *const *table = cvy_op_table(&count);
    for (int i = 0; i < count; i++) {
        const cvy_op_def *op = table[i];
        const int failures = test_failures;
        if (!op->samples || !chosen(op->name, argc, argv))
            continue;
        for (const cvy_sample *s = op->samples; s->src; s++)
            for (int mode = 0; mode < 2 * CVY_COUNT(dtypes) && !(s->flags & CVY_SAMPLE_TIMING); mode++)
                if (mode < CVY_COUNT(dtypes) || op->build) /* such a layer has other nodes when it does not train */
                    check_sample(op, s, dtypes[mode % CVY_COUNT(dtypes)], mode < CVY_COUNT(dtypes), 0);
        for (int i = 0; i < CVY_COUNT(wide); i++)
            for (int d = 1; d < CVY_COUNT(dtypes) && strcmp(wide[i].op, op->name) == 0; d++)
                check_sample(op, &wide[i].sample, dtypes[d], 1, 1);
        printf("%s %s\n", test_failures == failures ? "ok    " : "FAILED", op->name);
    }
    printf("%d derivatives, %d runs of kernels\n", gradients_checked, kernels_checked);
    return test_end();
}
