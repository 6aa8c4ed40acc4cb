/* rows: clang asan onednn3 aarch64 minimal */
/*
 * test_kernel_fc_sgd.c: compares native.fc_grad_sgd with its reference: in plain layouts and in layouts of blocks, with
 * shapes that do not fill them, with one sample, without momentum, with limited weights, and with a bf16 copy of the
 * weight; and in layouts for which it has no tiles.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/conv_graph.h"
#include "optim/optim_sgd_fc.h"
#include "pass/pass_readers.h"

struct setting {
    const char *shape, *layer, *optimizer;
    double clip_weights;
};

/* A fully connected layer whose update has been fused. */
static cvy_node *fused_graph(const struct setting *c, cvy_dtype dtype, cvy_vars *vars, cvy_graph **g)
{
    cvy_shape shape;
    cvy_value *source[2] = {NULL, NULL}, *loss = NULL;
    cvy_node *node = NULL;
    cvy_gradients gradients;
    cvy_tree *options = NULL;
    int fused = 0;
    EXPECT_OK(cvy_shape_parse(c->shape, &shape));
    const cvy_graph_opts opts = {
        .name = "fc", .batch = cvy_batch_share(shape.dim[0], 0, 1), .training = 1, .dtype = dtype, .seed = 1};
    EXPECT_OK(cvy_graph_create(vars, &opts, g));
    EXPECT_OK(cvy_graph_feed(*g, "x", dtype, &shape, 1, &source[0]));
    EXPECT_OK(cvy_graph_add(*g, "fc", "layer", "layer", c->layer, source, 1, &node));
    source[0] = node->dst[0];
    EXPECT_OK(cvy_graph_feed(*g, "ddst", dtype, &node->dst[0]->shape, 1, &source[1]));
    EXPECT_OK(cvy_graph_add_parsed(*g, &cvy_weighted_sum_op, "loss", "loss", NULL, source, 2, CVY_PHASE_MICRO, &node));
    loss = node->dst[0];
    EXPECT_OK(cvy_pass_autodiff(*g, &loss, 1, NULL, NULL, &gradients));
    EXPECT_OK(cvy_tree_parse_text((*g)->pool, "options", c->optimizer, strlen(c->optimizer), &options));
    const cvy_optimise_opts optimise = {
        .op = "sgd", .options = options, .weight_decay = 0.01, .clip_weights = c->clip_weights};
    EXPECT_OK(cvy_pass_optimise(*g, &gradients, &optimise));
    EXPECT_OK(cvy_pass_fuse_update(*g, &fused));
    EXPECT_INT(fused, 1);
    for (int n = 0; n < (*g)->nnode; n++)
        if (cvy_pass_is_op((*g)->node[n], "fc_grad_sgd"))
            return (*g)->node[n];
    return NULL;
}

static void compare(const cvy_span *want, const void *got, cvy_dtype dtype, const cvy_blocking *b, double tolerance)
{
    const cvy_span mine = {.dtype = dtype, .data = (void *)got};
    double worst = 0;
    for (int64_t i = 0; i < want->elems; i++) {
        int64_t at[CVY_NDIM_MAX] = {0};
        split_index(want->ndim, want->dim, i, at);
        const double x = cvy_get(want, i);
        worst = CVY_MAX(worst, fabs(cvy_get(&mine, cvy_blocking_offset(b, at)) - x) / (1 + fabs(x)));
    }
    EXPECT_NEAR(worst, 0, tolerance);
}

static int padding_is_zero(const float *x, const cvy_blocking *b)
{
    double all = 0, real = 0;
    for (int64_t i = 0; i < b->elems; i++)
        all += fabs((double)x[i]);
    for (int64_t k = 0; k < b->dim[0]; k++)
        for (int64_t i = 0; i < b->dim[1]; i++)
            real += fabs((double)x[cvy_blocking_offset(b, (const int64_t[CVY_NDIM_MAX]){k, i})]);
    return fabs(all - real) <= 1e-9 * all;
}

/* before: the weight and its momentum before the update. */
static void try_layout(const cvy_eval *e, const cvy_node *node, const char *tag, float *const *before, int shadow)
{
    const cvy_kernel_def *k = cvy_kernel_find("native.fc_grad_sgd");
    cvy_kernel_ask ask = {.node = node, .threads = 3};
    void *src[CVY_NODE_SRC_MAX] = {NULL}, *dst[CVY_NODE_DST_MAX] = {NULL}, *state = NULL, *scratch = NULL, *copy = NULL;
    cvy_blocking b;
    ask.src[CVY_OPTIM_WEIGHT] = cvy_layout_make(tag);
    EXPECT_OK(k->offer(&ask));
    EXPECT_TEXT(ask.src[CVY_OPTIM_WEIGHT].tag, tag);
    ask.writes_shadow = shadow;
    for (int i = 0; i < node->nsrc; i++) {
        const int is_state = i >= CVY_OPTIM_STATE && i < cvy_fc_sgd_ddst(node);
        const void *plain = i == 0 ? before[0] : is_state ? before[1] : cvy_eval_of(e, node->src[i])->data;
        EXPECT_OK(copy_in_layout(node->src[i], &ask.src[i], plain, &b, &src[i]));
    }
    EXPECT_OK(cvy_blocking_make(&ask.src[0], &node->src[0]->shape, &b));
    EXPECT_OK(cvy_mem_alloc((size_t)b.elems * sizeof(cvy_bf16), &copy));
    dst[0] = src[0];
    if (node->dst[1])
        dst[1] = src[CVY_OPTIM_STATE];
    dst[node->ndst] = shadow ? copy : NULL;
    EXPECT_OK(cvy_mem_alloc(ask.scratch_bytes, &scratch));
    EXPECT_OK(k->create(&ask, &state));
    EXPECT_OK(k->run(state, src, dst, scratch));
    compare(cvy_eval_of(e, node->dst[0]), dst[0], CVY_DTYPE_F32, &b, 2e-6);
    EXPECT(padding_is_zero(dst[0], &b));
    if (node->dst[1])
        compare(cvy_eval_of(e, node->dst[1]), dst[1], CVY_DTYPE_F32, &b, 2e-6);
    if (shadow)
        compare(cvy_eval_of(e, node->dst[0]), copy, CVY_DTYPE_BF16, &b, 0.005);
    k->destroy(state);
    cvy_mem_free(&scratch);
    cvy_mem_free(&copy);
    for (int i = 0; i < node->nsrc; i++)
        cvy_mem_free(&src[i]);
}

static void keep(const cvy_eval *e, const cvy_value *v, float **out)
{
    const size_t bytes = (size_t)cvy_eval_of(e, v)->elems * sizeof(float);
    EXPECT_OK(cvy_mem_alloc(bytes, out));
    memcpy(*out, cvy_eval_of(e, v)->data, bytes);
}

static void try_setting(const struct setting *c, cvy_dtype dtype)
{
    static const char *const tags[] = {"",         "ba",    "AB16b64a",   "AB32a32b", "AB8b8a",
                                       "AB16a16b", "Ab16a", "AB16b64a2b", "aB24b"};
    cvy_vars *vars = NULL;
    cvy_graph *g = NULL;
    cvy_eval e = {0};
    float *before[2] = {NULL, NULL};
    uint64_t random = 11;
    EXPECT_OK(cvy_vars_create(&vars));
    const cvy_node *node = fused_graph(c, dtype, vars, &g);
    EXPECT(node != NULL);
    if (!node)
        return;
    EXPECT_OK(cvy_eval_create(g, &e));
    for (int i = 0; i < g->nvalue; i++)
        if (!g->value[i]->producer && g->value[i]->dtype != CVY_DTYPE_I64)
            cvy_sample_fill(&e.at[i], -1, 1, &random);
    keep(&e, node->src[0], &before[0]);
    if (node->dst[1])
        keep(&e, node->src[CVY_OPTIM_STATE], &before[1]);
    EXPECT_OK(cvy_eval_run(&e, 1));
    for (int i = 0; i < 2 * CVY_COUNT(tags); i++)
        try_layout(&e, node, tags[i / 2], before, i % 2);
    cvy_mem_free(&before[0]);
    cvy_mem_free(&before[1]);
    cvy_eval_destroy(&e);
    cvy_graph_destroy(&g);
    cvy_vars_destroy(&vars);
}

int main(void)
{
    static const struct setting settings[] = {
        {"5x520", "channels: 600", "{momentum: 0.9}", 0},
        {"1x13x40", "channels: 511, bias: false", "{momentum: 0}", 0},
        {"2x3x520", "channels: 509, flatten: false", "{momentum: 0.9, nesterov: true}", 0},
        {"9x4096", "channels: 64", "{momentum: 0.5, lr_inside: true}", 0.5},
    };
    for (int i = 0; i < 2 * CVY_COUNT(settings); i++)
        try_setting(&settings[i / 2], i % 2 ? CVY_DTYPE_BF16 : CVY_DTYPE_F32);
    return test_end();
}
