/* rows: clang asan */
/*
 * test_op_emulated_random.c: the random numbers of kernels for GPUs are those of the host to the bit: the masks of
 * dropout and of parts of its samples, uniform noise and the shares of mix, in plain layout and channels last, also for
 * steps and samples that have more than 32 bits.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "backend/emulated/emulated.h"
#include "kernel/kernel.h"
#include "op/graph_eval.h"
#include "op/pointwise/op_activation.h"

enum { SAMPLES = 3, MOST = SAMPLES * 8192 };

static cvy_space space;
static const int64_t ids[SAMPLES] = {0, 7, ((int64_t)3 << 32) + 5};

struct setup {
    const char *op, *options;
    cvy_shape sample;
    int64_t step;
};

/* A layer of one operator on ones (the second source of mix is zero), and the reference kernel's results. */
struct layer {
    cvy_vars *vars;
    cvy_graph *g;
    cvy_eval e;
    const cvy_node *node;
};

static const cvy_node *node_of(const cvy_graph *g, const char *op)
{
    for (int i = 0; i < g->nnode; i++)
        if (strcmp(g->node[i]->op->name, op) == 0)
            return g->node[i];
    return NULL;
}

static cvy_status layer_open(const struct setup *s, struct layer *l)
{
    const cvy_graph_opts opts = {
        .name = "g", .batch = {SAMPLES, 0, SAMPLES, 1, 0}, .training = 1, .dtype = CVY_DTYPE_F32, .seed = 7};
    cvy_tree *options = NULL;
    cvy_value *src[2] = {NULL}, *dst = NULL, *id = NULL, *step = NULL;
    const int nsrc = strcmp(s->op, "mix") == 0 ? 2 : 1;
    CVY_TRY(cvy_vars_create(&l->vars));
    CVY_TRY(cvy_graph_create(l->vars, &opts, &l->g));
    CVY_TRY(cvy_graph_feed(l->g, "x", CVY_DTYPE_F32, &s->sample, 0, &src[0]));
    CVY_TRY(cvy_graph_feed(l->g, "y", CVY_DTYPE_F32, &s->sample, 0, &src[1]));
    CVY_TRY(cvy_tree_parse_text(l->g->pool, "job.yaml", s->options, strlen(s->options), &options));
    CVY_TRY(cvy_graph_layer(l->g, s->op, "layer", options, src, nsrc, &dst));
    CVY_TRY(cvy_graph_sample_id(l->g, &id));
    CVY_TRY(cvy_graph_step_number(l->g, &step));
    CVY_TRY(cvy_eval_create(l->g, &l->e));
    l->node = node_of(l->g, s->op);
    for (int64_t i = 0; i < cvy_shape_elems(&src[0]->shape); i++) {
        cvy_set(cvy_eval_of(&l->e, src[0]), i, 1);
        cvy_set(cvy_eval_of(&l->e, src[1]), i, 0);
    }
    memcpy(cvy_eval_of(&l->e, id)->data, ids, sizeof ids);
    memcpy(cvy_eval_of(&l->e, step)->data, &s->step, sizeof s->step);
    return CVY_OK;
}

static void layer_close(struct layer *l)
{
    cvy_eval_destroy(&l->e);
    cvy_graph_destroy(&l->g);
    cvy_vars_destroy(&l->vars);
}

/* Runs the kernel on the device with its first source in this layout. Sources are all equal, so no order is needed. */
static cvy_status run_on_device(const struct layer *l, cvy_layout layout, cvy_kernel_ask *ask, float *out)
{
    char name[40];
    void *state = NULL, *src[CVY_NODE_SRC_MAX] = {NULL}, *dst[1] = {NULL};
    snprintf(name, sizeof name, "gpu.%s", l->node->op->name);
    const cvy_kernel_def *kernel = cvy_kernel_find(name);
    *ask = (cvy_kernel_ask){.node = l->node, .space = &space, .threads = 1};
    for (int i = 0; i < l->node->nsrc; i++) {
        const cvy_span *from = cvy_eval_of(&l->e, l->node->src[i]);
        const size_t bytes = (size_t)from->elems * cvy_dtype_bytes(from->dtype);
        ask->src_dtype[i] = from->dtype;
        ask->src[i] = from->ndim > 2 ? layout : cvy_layout_plain();
        CVY_TRY(cvy_space_alloc(&space, bytes, 0, &src[i]));
        CVY_TRY(cvy_space_write(&space, src[i], from->data, bytes));
    }
    const size_t bytes = sizeof(float) * (size_t)cvy_shape_elems(&l->node->dst[0]->shape);
    CVY_TRY(cvy_space_alloc(&space, bytes, 0, &dst[0]));
    CVY_TRY(kernel->offer(ask));
    CVY_TRY(kernel->create(ask, &state));
    CVY_TRY(kernel->run(state, src, dst, NULL));
    CVY_TRY(cvy_space_read(&space, out, dst[0], bytes));
    kernel->destroy(state);
    for (int i = 0; i < l->node->nsrc; i++)
        cvy_space_free(&space, &src[i],
                       (size_t)cvy_eval_of(&l->e, l->node->src[i])->elems * cvy_dtype_bytes(l->node->src[i]->dtype));
    cvy_space_free(&space, &dst[0], bytes);
    return CVY_OK;
}

/* The number of elements whose bits differ from those of the reference kernel. */
static int64_t differences(const struct layer *l, const cvy_layout *layout, const float *got)
{
    const cvy_shape *shape = &l->node->dst[0]->shape;
    const float *want = cvy_eval_of(&l->e, l->node->dst[0])->data;
    int64_t at[CVY_NDIM_MAX] = {0}, count = 0;
    cvy_blocking b;
    EXPECT_OK(cvy_blocking_make(layout, shape, &b));
    for (int64_t i = 0; i < cvy_shape_elems(shape); i++) {
        count += memcmp(&want[i], &got[cvy_blocking_offset(&b, at)], sizeof *want) != 0;
        for (int d = shape->ndim - 1; d >= 0 && ++at[d] == shape->dim[d]; d--)
            at[d] = 0;
    }
    return count;
}

static void check_layer(struct layer *l)
{
    static float got[MOST];
    const int ndim = l->node ? l->node->dst[0]->shape.ndim : 0;
    const cvy_layout layouts[] = {cvy_layout_plain(), cvy_layout_channels_last(ndim)};
    EXPECT(l->node != NULL);
    if (!l->node)
        return;
    EXPECT_OK(cvy_eval_run(&l->e, 1));
    for (int i = 0; i < 2; i++) {
        cvy_kernel_ask ask;
        EXPECT_OK(run_on_device(l, layouts[i], &ask, got));
        EXPECT_INT(differences(l, &ask.dst[0], got), 0);
    }
}

static const struct setup setups[] = {
    {"dropout", "p: 0.25", {3, {5, 7, 3}}, 9},
    {"dropout", "p: 0.5", {1, {4001}}, 0},
    {"dropout", "p: 0.9", {2, {30, 41}}, ((int64_t)1 << 40) + 3},
    {"dropout", "p: 1", {2, {3, 5}}, 4},
    {"dropout", "p: 1e-3", {4, {3, 5, 4, 7}}, 4},
    {"noise", "shape: [3, 5, 7]\ndistribution: uniform", {2, {2, 3}}, 12},
    {"noise", "shape: 4001\ndistribution: uniform", {1, {2}}, ((int64_t)1 << 33) + 1},
    {"mix", "", {2, {6, 4}}, 3},
    {"mix", "", {2, {6, 4}}, ((int64_t)1 << 35) + 2},
};

static void numbers_are_those_of_the_host(void)
{
    for (int i = 0; i < CVY_COUNT(setups); i++) {
        struct layer l = {0};
        EXPECT_OK(layer_open(&setups[i], &l));
        check_layer(&l);
        layer_close(&l);
    }
}

/* A part of a sample has the mask of its place in the whole. */
static void parts_have_their_place(void)
{
    const struct setup setup = {"dropout", "p: 0.4", {3, {5, 7, 3}}, 21};
    struct layer l = {0};
    EXPECT_OK(layer_open(&setup, &l));
    struct cvy_dropout *o = l.node->options;
    o->place = (cvy_tile){.whole = {3, {11, 7, 9}}, .first = {4, 0, 6}};
    check_layer(&l);
    layer_close(&l);
}

int main(void)
{
    EXPECT_OK(cvy_space_open_def(&cvy_emulated_backend, NULL, &space));
    numbers_are_those_of_the_host();
    parts_have_their_place();
    cvy_space_close(&space);
    return test_end();
}
