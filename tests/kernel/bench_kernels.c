/*
 * bench_kernels.c: times every kernel of every node, forward and backward, of single layers of known networks.
 *
 *   bench_kernels [--threads T] [--block B] [--dtype f32|bf16] [--cpu] [--cold] [--kernel PART] [--check] [WORD]...
 *
 * It prints a line for each node and kernel: the best of several runs, the rates of arithmetic and memory by the
 * operator's own cost, and the layouts. WORDs select lines of the table below by their text. Sources with 16 channels
 * or more have blocks of 16 (or as --block says), in bf16 they are channels last. Weights stay f32; kernels that want
 * them in bf16 get a copy.
 *
 * --cpu measures processor time, for one thread on a machine that is not idle. --cold empties the caches before each
 * run. --kernel times only kernels with PART in their name or in that of their node, such as "winograd4" or
 * "grad_weight". --check runs the operators' test samples instead and prints the largest difference from the reference.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/machine/base_clock.h"
#include "base/number/base_rng.h"
#include "kernel/kernel_library.h"
#include "pass/pass.h"

struct line {
    const char *net, *src, *op, *options;
};

static const struct line lines[] = {
    {"cifar-convnet", "128x3x32x32", "conv", "kernel: 5, channels: 32, pad: 2"},
    {"cifar-convnet", "128x32x32x32", "max_pool", "kernel: 3, stride: 2, ceil: true"},
    {"cifar-convnet", "128x32x16x16", "relu", ""},
    {"cifar-convnet", "128x32x16x16", "conv", "kernel: 5, channels: 32, pad: 2"},
    {"cifar-convnet", "128x32x16x16", "avg_pool", "kernel: 3, stride: 2, ceil: true"},
    {"cifar-convnet", "128x32x8x8", "conv", "kernel: 5, channels: 64, pad: 2"},
    {"cifar-convnet", "128x64x8x8", "avg_pool", "kernel: 3, stride: 2, ceil: true"},
    {"cifar-convnet", "128x64x4x4", "fc", "channels: 64"},
    {"hep-cnn", "16x3x224x224", "conv", "kernel: 3, channels: 128, pad: 1"},
    {"hep-cnn", "16x128x224x224", "relu", ""},
    {"hep-cnn", "16x128x224x224", "max_pool", "kernel: 2"},
    {"hep-cnn", "16x128x112x112", "conv", "kernel: 3, channels: 128, pad: 1"},
    {"hep-cnn", "16x128x56x56", "conv", "kernel: 3, channels: 128, pad: 1"},
    {"hep-cnn", "16x128x28x28", "conv", "kernel: 3, channels: 128, pad: 1"},
    {"hep-cnn", "16x128x14x14", "conv", "kernel: 3, channels: 128, pad: 1"},
    {"hep-cnn", "16x128x7x7", "global_avg_pool", ""},
    {"alexnet-v2", "64x3x224x224", "conv", "kernel: 11, channels: 64, stride: 4, pad: 2"},
    {"alexnet-v2", "64x64x55x55", "relu", ""},
    {"alexnet-v2", "64x64x55x55", "max_pool", "kernel: 3, stride: 2"},
    {"alexnet-v2", "64x64x27x27", "conv", "kernel: 5, channels: 192, pad: 2"},
    {"alexnet-v2", "64x192x27x27", "max_pool", "kernel: 3, stride: 2"},
    {"alexnet-v2", "64x192x13x13", "conv", "kernel: 3, channels: 384, pad: 1"},
    {"alexnet-v2", "64x384x13x13", "conv", "kernel: 3, channels: 256, pad: 1"},
    {"alexnet-v2", "64x256x13x13", "conv", "kernel: 3, channels: 256, pad: 1"},
    {"alexnet-v2", "64x256x13x13", "max_pool", "kernel: 3, stride: 2"},
    {"alexnet-v2", "64x256x6x6", "fc", "channels: 4096"},
    {"alexnet-v2", "64x4096", "fc", "channels: 4096"},
    {"alexnet-v2", "64x4096", "fc", "channels: 1000"},
    {"vgg-a", "16x3x224x224", "conv", "kernel: 3, channels: 64, pad: 1"},
    {"vgg-a", "16x64x224x224", "max_pool", "kernel: 2"},
    {"vgg-a", "16x64x112x112", "conv", "kernel: 3, channels: 128, pad: 1"},
    {"vgg-a", "16x128x56x56", "conv", "kernel: 3, channels: 256, pad: 1"},
    {"vgg-a", "16x256x56x56", "conv", "kernel: 3, channels: 256, pad: 1"},
    {"vgg-a", "16x256x28x28", "conv", "kernel: 3, channels: 512, pad: 1"},
    {"vgg-a", "16x512x28x28", "conv", "kernel: 3, channels: 512, pad: 1"},
    {"vgg-a", "16x512x14x14", "conv", "kernel: 3, channels: 512, pad: 1"},
    {"vgg-a", "16x512x7x7", "fc", "channels: 4096"},
    {"matrix product", "768x768", "fc", "channels: 768, bias: false"},
    {"overfeat", "32x512x12x12", "conv", "kernel: 3, channels: 1024, pad: 1"},
    {"overfeat", "32x1024x12x12", "conv", "kernel: 3, channels: 1024, pad: 1"},
    {"resnet-50", "16x64x56x56", "conv", "kernel: 1, channels: 256, bias: false"},
    {"resnet-50", "16x256x56x56", "conv", "kernel: 1, channels: 64, bias: false"},
    {"resnet-50", "16x256x56x56", "conv", "kernel: 1, channels: 512, stride: 2, bias: false"},
    {"resnet-50", "16x64x56x56", "conv", "kernel: 3, channels: 64, pad: 1, bias: false"},
    {"resnet-50", "16x128x28x28", "conv", "kernel: 3, channels: 128, pad: 1, bias: false"},
    {"resnet-50", "16x256x14x14", "conv", "kernel: 3, channels: 256, pad: 1, bias: false"},
    {"resnet-50", "16x512x7x7", "conv", "kernel: 3, channels: 512, pad: 1, bias: false"},
    {"googlenet-bn", "32x64x56x56", "conv", "kernel: 3, channels: 192, pad: 1, bias: false"},
    {"googlenet-bn", "32x96x28x28", "conv", "kernel: 3, channels: 128, pad: 1, bias: false"},
    {"googlenet-bn", "32x128x28x28", "conv", "kernel: 3, channels: 192, pad: 1, bias: false"},
    {"googlenet-bn", "32x16x28x28", "conv", "kernel: 3, channels: 32, pad: 1, bias: false"},
    {"googlenet-bn", "32x144x14x14", "conv", "kernel: 3, channels: 288, pad: 1, bias: false"},
    {"googlenet-bn", "32x160x14x14", "conv", "kernel: 3, channels: 320, pad: 1, bias: false"},
    {"googlenet-bn", "32x192x7x7", "conv", "kernel: 3, channels: 384, pad: 1, bias: false"},
    {"resnet-50", "16x128x56x56", "conv", "kernel: 3, channels: 128, stride: 2, pad: 1, bias: false"},
    {"resnet-50", "16x1024x14x14", "conv", "kernel: 1, channels: 256, bias: false"},
    {"resnet-50", "16x256x14x14", "conv", "kernel: 1, channels: 1024, bias: false"},
    {"resnet-50", "16x512x14x14", "conv", "kernel: 3, channels: 512, stride: 2, pad: 1, bias: false"},
    {"resnet-50", "16x2048x7x7", "conv", "kernel: 1, channels: 512, bias: false"},
    {"inception-v3", "16x128x17x17", "conv", "kernel: [1, 7], channels: 192, pad: [0, 3], bias: false"},
    {"resnet-20", "128x16x32x32", "conv", "kernel: 3, channels: 16, pad: 1, bias: false"},
    {"resnet-20", "128x32x16x16", "conv", "kernel: 3, channels: 32, pad: 1, bias: false"},
    {"resnet-20", "128x64x8x8", "conv", "kernel: 3, channels: 64, pad: 1, bias: false"},
    {"resnet-20", "128x16x32x32", "batch_norm", ""},
    {"resnet-20", "128x64x8x8", "batch_norm", ""},
    {"lrn", "64x96x27x27", "lrn", ""},
    {"batch-norm", "32x64x56x56", "batch_norm", ""},
    {"resnet-50", "16x3x224x224", "conv", "kernel: 7, channels: 64, stride: 2, pad: 3, bias: false"},
    {"resnet-50", "16x512x14x14", "conv", "kernel: 3, channels: 512, stride: 2, pad: 1, bias: false"},
    {"resnet-50", "16x64x112x112", "batch_norm relu", ""},
    {"resnet-50", "16x64x112x112", "max_pool", "kernel: 3, stride: 2, pad: 1"},
    {"resnet-50", "16x256x56x56", "batch_norm add relu", ""},
    {"resnet-50", "16x128x28x28", "batch_norm relu", ""},
    {"resnet-50", "16x1024x14x14", "batch_norm add relu", ""},
    {"resnet-50", "16x256x14x14", "batch_norm relu", ""},
    {"inception-v3", "16x3x299x299", "conv", "kernel: 3, channels: 32, stride: 2, bias: false"},
    {"googlenet-bn", "32x16x28x28", "batch_norm relu", ""},
    {"googlenet-bn", "32x96x28x28", "batch_norm relu", ""},
    {"googlenet-bn", "32x192x28x28", "max_pool", "kernel: 3, stride: 1, pad: 1"},
    {"googlenet-bn", "32x192x56x56", "max_pool", "kernel: 3, stride: 2, ceil: true"},
    {"group-norm", "16x64x56x56", "group_norm", ""},
    {"group-norm", "16x64x56x56", "group_norm relu", ""},
    {"group-norm", "16x64x56x56", "instance_norm", ""},
    {"layer-norm", "16x196x384", "layer_norm", ""},
    {"layer-norm", "16x96x56x56", "layer_norm", "axes: 1"},
    {"resize", "8x64x56x56", "resize", "scale: 2, mode: bilinear"},
    {"resize", "8x64x56x56", "resize", "scale: 2"},
};

struct options {
    int threads, check, cpu, cold;
    int64_t block;      /* block of the source's channels; 1: plain */
    const char *kernel; /* part of the names to time; NULL: all */
    cvy_dtype dtype;    /* of activations */
};

struct tensor { /* one value: what kernels read, in plain layout, and where they write it */
    float *plain;
    cvy_layout layout;
    int known;
};

static cvy_status tensor_of(struct tensor *all, const cvy_value *v, struct tensor **out)
{
    struct tensor *t = &all[v->index];
    *out = t;
    if (t->plain)
        return CVY_OK;
    CVY_TRY(cvy_mem_alloc((size_t)cvy_shape_elems(&v->shape) * cvy_dtype_bytes(v->dtype), &t->plain));
    const cvy_span span = {.dtype = v->dtype, .data = t->plain};
    const cvy_rng rng = cvy_rng_make(7, v->name, 0, 0);
    for (int64_t i = 0; i < cvy_shape_elems(&v->shape); i++)
        cvy_set(&span, i,
                v->dtype == CVY_DTYPE_F32 || v->dtype == CVY_DTYPE_BF16
                    ? 2 * (double)cvy_rng_u32(&rng, (uint64_t)i) / 4294967296.0 - 1
                    : 1);
    return CVY_OK;
}

/* Makes a copy of `plain` in the given format, or an empty buffer if `plain` is NULL. */
static cvy_status to_layout(const cvy_value *v, const float *plain, const cvy_memory_format *to, void **out)
{
    cvy_blocking b;
    cvy_reorder *reorder = NULL;
    const cvy_memory_format from = {v->dtype, cvy_layout_plain()};
    CVY_TRY(cvy_blocking_make(&to->layout, &v->shape, &b));
    CVY_TRY(cvy_mem_alloc_pages((size_t)b.elems * cvy_dtype_bytes(to->dtype), out));
    if (!plain)
        return CVY_OK;
    CVY_TRY(cvy_reorder_create(NULL, &v->shape, &from, to, 1, &reorder));
    cvy_reorder_run(reorder, plain, *out);
    cvy_reorder_destroy(&reorder);
    return CVY_OK;
}

static cvy_status take_back(const cvy_value *v, const void *data, const cvy_layout *layout, float *plain)
{
    cvy_reorder *reorder = NULL;
    const cvy_layout to = cvy_layout_plain();
    CVY_TRY(cvy_reorder_create(NULL, &v->shape, &(cvy_memory_format){v->dtype, *layout},
                               &(cvy_memory_format){v->dtype, to}, 1, &reorder));
    cvy_reorder_run(reorder, data, plain);
    cvy_reorder_destroy(&reorder);
    return CVY_OK;
}

static void free_formatted(const cvy_value *v, void *data, const cvy_memory_format *format)
{
    cvy_blocking b;
    if (data && cvy_blocking_make(&format->layout, &v->shape, &b) == CVY_OK)
        cvy_mem_free_pages(data, (size_t)b.elems * cvy_dtype_bytes(format->dtype));
}

/* Returns 1 if the padding lanes are zero, as they must be. */
static int padding_clean(const cvy_value *v, const void *data, const cvy_layout *layout, const float *plain)
{
    cvy_blocking b;
    if (cvy_blocking_make(layout, &v->shape, &b) != CVY_OK || b.elems == cvy_shape_elems(&v->shape))
        return 1;
    const cvy_span got = {.dtype = v->dtype, .data = (void *)(size_t)data},
                   want = {.dtype = v->dtype, .data = (void *)(size_t)plain};
    double sum_got = 0, sum_want = 0;
    for (int64_t i = 0; i < b.elems; i++)
        sum_got += fabs(cvy_get(&got, i));
    for (int64_t i = 0; i < cvy_shape_elems(&v->shape); i++)
        sum_want += fabs(cvy_get(&want, i));
    return fabs(sum_got - sum_want) <= 1e-5 * (1 + sum_want);
}

static cvy_span span_of(const cvy_value *v, void *data)
{
    cvy_span s = {.dtype = v->dtype, .ndim = v->shape.ndim, .elems = cvy_shape_elems(&v->shape), .data = data};
    memcpy(s.dim, v->shape.dim, sizeof s.dim);
    return s;
}

static cvy_status reference(const cvy_node *node, struct tensor *all, float **dst_out)
{
    cvy_span src[CVY_NODE_SRC_MAX], dst[CVY_NODE_DST_MAX] = {{0}};
    for (int i = 0; i < node->nsrc; i++)
        src[i] = span_of(node->src[i], all[node->src[i]->index].plain);
    for (int i = 0; i < node->ndst; i++) {
        dst_out[i] = NULL;
        if (!node->dst[i])
            continue;
        CVY_TRY(cvy_mem_alloc((size_t)cvy_shape_elems(&node->dst[i]->shape) * 8, &dst_out[i]));
        dst[i] = span_of(node->dst[i], dst_out[i]);
    }
    return node->op->reference(node, src, dst);
}

static double difference(const cvy_value *v, float *got, float *want)
{
    const cvy_span a = span_of(v, got), b = span_of(v, want);
    double worst = 0;
    for (int64_t i = 0; i < a.elems; i++) {
        const double d = fabs(cvy_get(&a, i) - cvy_get(&b, i)) / (1 + fabs(cvy_get(&b, i)));
        worst = d > worst || isnan(d) ? d : worst;
    }
    return worst;
}

static double seconds(const struct options *o)
{
    return o->cpu ? (double)clock() / CLOCKS_PER_SEC : cvy_clock_s();
}

/* Writes much more than the caches hold. */
static void empty_caches(void)
{
    enum { BYTES = 320 << 20 };
    static char *memory;
    static int fill;
    if (!memory && cvy_mem_alloc_pages(BYTES, &memory) != CVY_OK)
        return;
    memset(memory, ++fill, BYTES);
}

static double best_seconds(const struct options *o, const cvy_kernel_def *k, void *state, void *const *src,
                           void *const *dst, void *scratch)
{
    double best = 1e9, total = 0;
    for (int run = 0; run < 300 && (run < 4 || total < 1.0); run++) {
        if (o->cold)
            empty_caches();
        const double start = seconds(o);
        if (k->run(state, src, dst, scratch) != CVY_OK)
            return NAN;
        const double s = seconds(o) - start;
        best = s < best ? s : best;
        total += s;
    }
    return best;
}

static void print_layouts(const cvy_kernel_ask *ask)
{
    for (int i = 0; i < ask->node->nsrc; i++)
        printf(" %s", ask->src[i].tag[0] ? ask->src[i].tag : "-");
    printf(" ->");
    for (int i = 0; i < ask->node->ndst; i++)
        if (ask->node->dst[i])
            printf(" %s", ask->dst[i].tag[0] ? ask->dst[i].tag : "-");
}

/* keep: the following nodes use the results and layouts of this kernel. */
static cvy_status try_kernel(const struct options *o, const cvy_kernel_def *k, const cvy_node *node, struct tensor *all,
                             float *const *want, int keep)
{
    cvy_kernel_ask ask = {.node = node, .threads = o->threads};
    void *src[CVY_NODE_SRC_MAX] = {NULL}, *dst[CVY_NODE_DST_MAX] = {NULL}, *scratch = NULL, *state = NULL;
    for (int i = 0; i < node->nsrc; i++) {
        ask.src[i] = all[node->src[i]->index].layout;
        ask.src_dtype[i] = node->src[i]->dtype;
        ask.src_free[i] = node->src[i]->variable && !all[node->src[i]->index].known;
    }
    for (int i = 0; i < node->ndst; i++)
        for (int v = 0; node->dst[i] && v < node->graph->nvalue; v++)
            if (node->dst[i]->variable && node->graph->value[v]->variable == node->dst[i]->variable && all[v].known) {
                ask.dst[i] = all[v].layout;
                ask.dst_fixed[i] = 1;
            }
    const cvy_status status = k->offer(&ask);
    printf("    %-18s %-32s", node->op->name, k->name);
    if (status != CVY_OK) {
        printf(" declines: %s\n", cvy_error_text());
        return CVY_OK;
    }
    CVY_TRY(k->create(&ask, &state));
    for (int i = 0; i < node->nsrc; i++)
        CVY_TRY(to_layout(node->src[i], all[node->src[i]->index].plain,
                          &(cvy_memory_format){ask.src_dtype[i], ask.src[i]}, &src[i]));
    for (int i = 0; i < node->ndst; i++)
        if (node->dst[i])
            CVY_TRY(to_layout(node->dst[i], NULL, &(cvy_memory_format){node->dst[i]->dtype, ask.dst[i]}, &dst[i]));
    CVY_TRY(cvy_mem_alloc_pages(ask.scratch_bytes + 64, &scratch));
    const double s = best_seconds(o, k, state, src, dst, scratch);
    cvy_cost cost = {.flop = cvy_shape_elems(&node->dst[0]->shape)};
    if (node->op->cost)
        node->op->cost(node, &cost);
    double bytes = 0;
    for (int i = 0; i < node->nsrc; i++)
        bytes += (double)cvy_shape_elems(&node->src[i]->shape) * (double)cvy_dtype_bytes(node->src[i]->dtype);
    for (int i = 0; i < node->ndst; i++)
        if (node->dst[i])
            bytes += (double)cvy_shape_elems(&node->dst[i]->shape) * (double)cvy_dtype_bytes(node->dst[i]->dtype);
    printf(" %9.3f ms %7.1f GFLOP/s %6.1f GB/s  scratch %.1f MB ", 1e3 * s, 1e-9 * (double)cost.flop / s,
           1e-9 * bytes / s, 1e-6 * (double)ask.scratch_bytes);
    print_layouts(&ask);
    for (int i = 0; i < node->ndst; i++) {
        float *plain = NULL;
        if (!node->dst[i])
            continue;
        CVY_TRY(cvy_mem_alloc((size_t)cvy_shape_elems(&node->dst[i]->shape) * 8, &plain));
        CVY_TRY(take_back(node->dst[i], dst[i], &ask.dst[i], plain));
        if (o->check && want[i])
            printf("  diff %.1e%s", difference(node->dst[i], plain, want[i]),
                   padding_clean(node->dst[i], dst[i], &ask.dst[i], plain) ? "" : " PADDING");
        struct tensor *t = NULL;
        CVY_TRY(tensor_of(all, node->dst[i], &t));
        if (keep) {
            memcpy(t->plain, plain,
                   (size_t)cvy_shape_elems(&node->dst[i]->shape) * cvy_dtype_bytes(node->dst[i]->dtype));
            t->layout = ask.dst[i];
        }
        cvy_mem_free(&plain);
    }
    for (int i = 0; keep && i < node->nsrc; i++)
        if (node->src[i]->variable && !all[node->src[i]->index].known) {
            all[node->src[i]->index].layout =
                ask.src_dtype[i] == node->src[i]->dtype ? ask.src[i] : ask.src_canonical[i];
            all[node->src[i]->index].known = 1;
        }
    printf("\n");
    for (int i = 0; i < node->nsrc; i++)
        free_formatted(node->src[i], src[i], &(cvy_memory_format){ask.src_dtype[i], ask.src[i]});
    for (int i = 0; i < node->ndst; i++)
        if (node->dst[i])
            free_formatted(node->dst[i], dst[i], &(cvy_memory_format){node->dst[i]->dtype, ask.dst[i]});
    cvy_mem_free_pages(scratch, ask.scratch_bytes + 64);
    if (k->destroy)
        k->destroy(state);
    return CVY_OK;
}

static cvy_status run_node(const struct options *o, const cvy_node *node, struct tensor *all)
{
    float *want[CVY_NODE_DST_MAX] = {NULL};
    int count, kept = 0;
    const cvy_kernel_def *const *table = cvy_kernel_table(&count);
    struct tensor *ignored;
    for (int i = 0; i < node->nsrc; i++)
        CVY_TRY(tensor_of(all, node->src[i], &ignored));
    if (o->check && node->op->reference)
        CVY_TRY(reference(node, all, want));
    for (int preference = 1000; preference > 0; preference--)
        for (int i = 0; i < count; i++)
            if (table[i]->preference == preference && cvy_kernel_fits(table[i], NULL) &&
                strcmp(table[i]->op, node->op->name) == 0 && (!o->kernel || strstr(table[i]->name, o->kernel))) {
                CVY_TRY(try_kernel(o, table[i], node, all, want, !kept));
                kept = 1;
            }
    for (int i = 0; i < node->ndst; i++)
        if (want[i]) {
            struct tensor *t = NULL;
            CVY_TRY(tensor_of(all, node->dst[i], &t));
            memcpy(t->plain, want[i],
                   (size_t)cvy_shape_elems(&node->dst[i]->shape) * cvy_dtype_bytes(node->dst[i]->dtype));
            cvy_mem_free(&want[i]);
        }
    return CVY_OK;
}

/* Adds the layers of a line's `op` one after the other, with the options for the first one. `add` adds another trained
 * variable. */
static cvy_status add_layers(cvy_graph *g, const struct line *line, const cvy_tree *options, cvy_value *other,
                             cvy_value *source, cvy_value **out)
{
    char op[64], name[80];
    int n = 0;
    for (const char *at = line->op; sscanf(at, "%63s%n", op, &n) == 1; at += n) {
        cvy_value *const src[] = {source, other};
        snprintf(name, sizeof name, "layer_%s", op);
        CVY_TRY(cvy_graph_layer(g, op, name, at == line->op ? options : NULL, src, strcmp(op, "add") == 0 ? 2 : 1,
                                &source));
    }
    *out = source;
    return CVY_OK;
}

/* Builds the layers between a trained variable, which is their source, and a loss, so that every gradient is needed.
 * They are fused as in a real step. */
static cvy_status build(cvy_vars *vars, cvy_pool *pool, cvy_dtype dtype, const struct line *line, cvy_graph **out)
{
    cvy_shape src;
    cvy_tree *options = NULL;
    char text[256];
    CVY_TRY(cvy_shape_parse(line->src, &src));
    snprintf(text, sizeof text, "{%s}", line->options ? line->options : "");
    CVY_TRY(cvy_tree_parse_text(pool, "options", text, strlen(text), &options));
    cvy_graph *g = NULL;
    cvy_variable *x = NULL, *residual = NULL;
    cvy_value *source = NULL, *other = NULL, *output = NULL, *target = NULL, *loss = NULL;
    const cvy_graph_opts opts = {
        .name = "bench", .batch = cvy_batch_share(src.dim[0], 0, 1), .training = 1, .dtype = dtype, .seed = 1};
    const cvy_init init = {"constant", "value: 0", 1, 1};
    CVY_TRY(cvy_graph_create(vars, &opts, &g));
    *out = g;
    CVY_TRY(cvy_vars_declare(vars, "x", CVY_ROLE_WEIGHT, dtype, &src, &init, &x));
    CVY_TRY(cvy_graph_read_variable(g, x, &source));
    if (strstr(line->op, " add")) {
        CVY_TRY(cvy_vars_declare(vars, "residual", CVY_ROLE_WEIGHT, dtype, &src, &init, &residual));
        CVY_TRY(cvy_graph_read_variable(g, residual, &other));
    }
    CVY_TRY(add_layers(g, line, options, other, source, &output));
    const cvy_shape sample = cvy_shape_make(output->shape.ndim - 1, output->shape.dim + 1);
    CVY_TRY(cvy_graph_feed(g, "target", output->dtype, &sample, 0, &target));
    cvy_value *const pair[] = {output, target};
    CVY_TRY(cvy_graph_layer(g, "mse", "loss", NULL, pair, 2, &loss));
    cvy_gradients gradients;
    CVY_TRY(cvy_pass_autodiff(g, &loss, 1, NULL, NULL, &gradients));
    CVY_TRY(cvy_pass_fuse_relu(g));
    return cvy_pass_fuse_batch_norm(g);
}

static cvy_status run_line(const struct options *o, const struct line *line)
{
    cvy_vars *vars = NULL;
    cvy_pool *pool = NULL;
    cvy_graph *g = NULL;
    struct tensor *all = NULL;
    cvy_status status = CVY_OK;
    printf("%s: %s %s {%s}\n", line->net, line->src, line->op, line->options ? line->options : "");
    CVY_TRY_OUT(cvy_vars_create(&vars));
    CVY_TRY_OUT(cvy_pool_create(&pool));
    CVY_TRY_OUT(build(vars, pool, o->dtype, line, &g));
    CVY_TRY_OUT(cvy_mem_alloc((size_t)g->nvalue * sizeof *all, &all));
    cvy_value *x = g->node[0]->src[0];
    if (x->shape.ndim > 2 && (o->check || x->shape.dim[1] >= 16)) {
        all[x->index].layout = o->dtype == CVY_DTYPE_BF16 ? cvy_layout_channels_last(x->shape.ndim)
                                                          : cvy_layout_channels(x->shape.ndim, o->block);
        all[x->index].known = 1;
    }
    for (int i = 0; i < g->nnode; i++)
        if (!g->node[i]->removed && strncmp(g->node[i]->name, "loss", 4) != 0)
            CVY_TRY_OUT(run_node(o, g->node[i], all));
    fflush(stdout);
out:
    for (int i = 0; all && i < g->nvalue; i++)
        cvy_mem_free(&all[i].plain);
    cvy_mem_free(&all);
    cvy_graph_destroy(&g);
    cvy_pool_destroy(&pool);
    cvy_vars_destroy(&vars);
    return status;
}

static int selected(const struct line *line, char **words, int nwords)
{
    char text[512];
    snprintf(text, sizeof text, "%s %s %s %s", line->net, line->src, line->op, line->options ? line->options : "");
    for (int i = 0; i < nwords; i++)
        if (!strstr(text, words[i]))
            return 0;
    return 1;
}

static int bench_one(const struct options *o, const struct line *line, char **words, int nwords)
{
    if (!selected(line, words, nwords))
        return 0;
    if (run_line(o, line) == CVY_OK)
        return 0;
    printf("fault: %s\n", cvy_error_text());
    return 1;
}

int main(int argc, char **argv)
{
    struct options o = {.threads = 2, .block = 16, .dtype = CVY_DTYPE_F32};
    int nwords = 0, faults = 0, nops = 0;
    char *words[8];
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            o.threads = atoi(argv[++i]);
        else if (strcmp(argv[i], "--block") == 0 && i + 1 < argc)
            o.block = atoi(argv[++i]);
        else if (strcmp(argv[i], "--kernel") == 0 && i + 1 < argc)
            o.kernel = argv[++i];
        else if (strcmp(argv[i], "--dtype") == 0 && i + 1 < argc)
            o.dtype = strcmp(argv[++i], "bf16") == 0 ? CVY_DTYPE_BF16 : CVY_DTYPE_F32;
        else if (strcmp(argv[i], "--cpu") == 0)
            o.cpu = 1;
        else if (strcmp(argv[i], "--cold") == 0)
            o.cold = 1;
        else if (strcmp(argv[i], "--check") == 0)
            o.check = 1;
        else if (nwords < 8)
            words[nwords++] = argv[i];
    }
    for (int i = 0; !o.check && i < CVY_COUNT(lines); i++)
        faults += bench_one(&o, &lines[i], words, nwords);
    const cvy_op_def *const *ops = cvy_op_table(&nops);
    for (int i = 0; o.check && i < nops; i++)
        for (const cvy_sample *s = ops[i]->samples; s && s->src && !(ops[i]->flags & (CVY_OP_HIDDEN | CVY_OP_LOSS));
             s++)
            if (!(s->flags & CVY_SAMPLE_TIMING) && !strpbrk(s->src, ",:")) {
                const struct line line = {"sample", s->src, ops[i]->name, s->options};
                faults += bench_one(&o, &line, words, nwords);
            }
    return faults != 0;
}
