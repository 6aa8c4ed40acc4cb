/* rows: clang onednn3 minimal */
/*
 * test_model_zoo.c: the model zoo against other sources: parameters, multiplications and the shape of every layer with
 * weights (zoo_shapes.h); one training step of each network at a small size; names of families; sizes that a network
 * refuses; auxiliary heads; and the notation of lines.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>

#include "model/model.h"
#include "op/conv/op_conv.h"
#include "program/program_view.h"
#include "test_util.h"
#include "zoo_shapes.h"

/* ---- against the references ---- */

static int has_weights(const cvy_node *node)
{
    return strcmp(node->op->name, "conv") == 0 || strcmp(node->op->name, "deconv") == 0 ||
           strcmp(node->op->name, "fc") == 0;
}

/* Writes "64x112x112 " for each layer with weights, in order, and returns their multiplications for the one sample of
 * the batch. */
static int64_t walk(const cvy_graph *g, char *shapes, size_t size)
{
    int64_t macs = 0;
    size_t at = 0;
    for (int n = 0; n < g->nnode; n++) {
        const cvy_node *node = g->node[n];
        if (!has_weights(node))
            continue;
        macs += cvy_node_cost(node).flop / 2;
        const char *shape = cvy_shape_text(&node->dst[0]->shape);
        at += (size_t)snprintf(shapes + at, size - at, "%s%s", at ? " " : "",
                               strncmp(shape, "1x", 2) == 0 ? shape + 2 : shape);
    }
    return macs;
}

static int64_t count_params(const cvy_vars *vars)
{
    int64_t params = 0;
    for (int i = 0; i < vars->count; i++)
        params += vars->at[i]->role == CVY_ROLE_WEIGHT ? cvy_shape_elems(&vars->at[i]->shape) : 0;
    return params;
}

static void against(const struct reference *r)
{
    static char shapes[16384];
    const cvy_graph_opts opts = {.batch = cvy_batch_share(1, 0, 1), .training = 1, .dtype = CVY_DTYPE_F32};
    const int before = test_failures;
    cvy_model *m = NULL;
    cvy_vars *vars = NULL;
    cvy_graph *g = NULL;
    EXPECT_OK(cvy_model_zoo(r->name, r->options, &r->input, 0, &m));
    EXPECT_OK(cvy_vars_create(&vars));
    if (m && vars)
        EXPECT_OK(cvy_model_instantiate(m, vars, &opts, NULL, 0, NULL, &g));
    if (g) {
        EXPECT_INT(walk(g, shapes, sizeof shapes), r->macs);
        EXPECT_INT(count_params(vars), r->params);
        EXPECT_TEXT(shapes, r->shapes);
    }
    if (test_failures != before)
        printf("    of %s {%s}, held against %s\n", r->name, r->options, r->source);
    cvy_graph_destroy(&g);
    cvy_vars_destroy(&vars);
    cvy_model_destroy(&m);
}

static void parameters_macs_and_shapes(void)
{
    for (int i = 0; i < CVY_COUNT(references); i++)
        against(&references[i]);
}

/* ---- a step of each ---- */

struct trial {
    const char *name, *options;
    cvy_shape input;
    int runs;
};

/* The sizes are as small as possible, so that a step is short. Networks with many weights are only planned, because
 * filling the weights takes longer than all other tests here. */
static const struct trial trials[] = {
    {"alexnet", "", {3, {3, 67, 67}}, 0},
    {"caffenet", "", {3, {3, 67, 67}}, 0},
    {"alexnet-v2", "dropout: 0.5", {3, {3, 63, 63}}, 0},
    {"overfeat", "", {3, {3, 71, 71}}, 0},
    {"vgg-a", "", {3, {3, 32, 32}}, 0},
    {"vgg-13", "", {3, {3, 32, 32}}, 0},
    {"vgg-16", "batch_norm: true", {3, {3, 32, 32}}, 0},
    {"vgg-19", "dropout: 0.5", {3, {3, 32, 32}}, 0},
    {"googlenet", "aux: false", {3, {3, 32, 32}}, 1},
    {"googlenet-bn", "", {3, {3, 32, 32}}, 0},
    {"googlenet-bn", "aux: true, dropout: 0.2", {3, {3, 80, 80}}, 0},
    {"inception-v3", "dropout: 0.5", {3, {3, 75, 75}}, 0},
    {"inception-v4", "", {3, {3, 75, 75}}, 0},
    {"resnet-18", "", {3, {3, 32, 32}}, 0},
    {"resnet-34", "", {3, {3, 32, 32}}, 0},
    {"resnet-50", "", {3, {3, 32, 32}}, 0},
    {"resnet-50", "version: v1", {3, {3, 32, 32}}, 0},
    {"resnet-101", "", {3, {3, 32, 32}}, 0},
    {"resnet-152", "", {3, {3, 32, 32}}, 0},
    {"resnet-20", "", {3, {3, 8, 8}}, 1},
    {"resnet-29", "", {3, {3, 8, 8}}, 1},
    {"resnet-110", "block: bottleneck", {3, {3, 4, 4}}, 1},
    {"cifar-convnet", "", {3, {3, 32, 32}}, 1},
    {"cifar-full", "", {3, {3, 16, 16}}, 1},
    {"hep-cnn", "", {3, {3, 32, 32}}, 1},
    {"lenet", "", {3, {1, 28, 28}}, 1},
    {"linear", "", {3, {1, 8, 8}}, 1},
    {"cosmoflow", "filters: 4, dropout: 0.2, init: xavier", {4, {4, 32, 32, 32}}, 1},
    {"cosmoflow", "filters: 4, depth: 2, kernel: 2, range: 0", {4, {1, 8, 8, 8}}, 1},
    {"deepcam", "filters: 4, middle: 1", {3, {2, 32, 48}}, 1},
    {"unet", "filters: 4", {3, {1, 32, 16}}, 1},
    {"unet", "filters: 4, depth: 2, norm: none, up: resize, residual: true", {3, {3, 8, 16}}, 1},
    {"unet", "filters: 4, depth: 2, norm: group, groups: 2, attention: true", {4, {1, 8, 8, 16}}, 1},
    {"unet", "filters: 4, depth: 1, norm: instance, up: resize, attention: true", {4, {1, 4, 4, 6}}, 1},
};

/* Runs two steps on one batch. The loss of the first one must be that of an untrained network, and everything after it
 * must be finite. */
static void trains(cvy_program *p, int step)
{
    double first = 0, second = 0;
    EXPECT_OK(cvy_program_allocate(p));
    cvy_plan *plan = cvy_program_task_plan(p, step);
    for (int i = 0; i < plan->feeds.count; i++) {
        const cvy_span span = {.dtype = plan->feeds.feed[i].dtype, .data = plan->feeds.feed[i].data};
        for (int64_t k = 0; !plan->feeds.feed[i].per_step && k < cvy_shape_elems(&plan->feeds.feed[i].shape); k++)
            cvy_set(&span, k, span.dtype == CVY_DTYPE_F32 ? sin((double)k) : (double)(k % 3));
    }
    EXPECT_OK(cvy_program_step(p, step, 1e-4));
    EXPECT_OK(cvy_program_loss(p, step, "loss", &first));
    EXPECT_OK(cvy_program_step(p, step, 1e-4));
    EXPECT_OK(cvy_program_loss(p, step, "loss", &second));
    EXPECT(first > 0.01 && first < 20 && isfinite(second) && second != first);
}

/* One label for each sample, or for each position if the network is one for maps. */
static cvy_shape label_of(const struct trial *t)
{
    const cvy_model_def *def = NULL;
    int64_t number = 0;
    EXPECT_OK(cvy_model_resolve(t->name, &def, &number));
    return def && def->is_map ? cvy_shape_make(t->input.ndim - 1, t->input.dim + 1) : (cvy_shape){0};
}

/* Plans the network with a loss on three classes, and runs its steps if t->runs. */
static void plan_and_run(const struct trial *t, cvy_model *m, cvy_program *p)
{
    int step = -1, forward = -1;
    const cvy_label output = cvy_labelf("%s", cvy_model_output(m));
    const cvy_shape label = label_of(t);
    EXPECT_OK(cvy_model_add_input(m, "label", CVY_DTYPE_I32, &label));
    EXPECT_OK(cvy_model_add(m, "softmax_cross_entropy", "loss", NULL, cvy_labelf("%s, label", output.text).text));
    for (int i = 0; i < m->naux; i++)
        EXPECT_OK(cvy_model_add(m, "softmax_cross_entropy", NULL, "loss_weight: 0.3",
                                cvy_labelf("%s, label", m->aux[i].output).text));
    EXPECT_OK(cvy_program_add_training(p, m, 2, NULL, &step));
    EXPECT_OK(cvy_program_add_forward(p, m, 2, NULL, &forward));
    EXPECT_OK(cvy_program_prepare(p));
    EXPECT_INT(cvy_program_nlosses(p, step), 1 + m->naux);
    EXPECT_INT(cvy_program_nlosses(p, forward), 1);
    EXPECT(cvy_program_task_plan(p, step)->arena_bytes > 0 &&
           cvy_program_task_plan(p, step)->ninstr > cvy_program_task_plan(p, forward)->ninstr);
    if (t->runs && cvy_program_task_plan(p, step)->arena_bytes > 0)
        trains(p, step);
}

static void attempt(const struct trial *t)
{
    const int before = test_failures;
    cvy_model *m = NULL;
    cvy_context *context = NULL;
    cvy_program *p = NULL;
    EXPECT_OK(cvy_context_create(&(cvy_context_opts){.size = sizeof(cvy_context_opts), .threads = 1}, &context));
    EXPECT_OK(cvy_model_zoo(t->name, t->options, &t->input, 3, &m));
    if (context)
        EXPECT_OK(cvy_program_create(context, NULL, &p));
    if (m && p)
        plan_and_run(t, m, p);
    if (test_failures != before)
        printf("    of %s {%s}\n", t->name, t->options);
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
    cvy_context_destroy(&context);
}

static void each_plans_a_training_step_and_small_ones_run(void)
{
    for (int i = 0; i < CVY_COUNT(trials); i++)
        attempt(&trials[i]);
}

/* Every network of the table must have a reference or a plan here, so that a new one is not forgotten. */
static void none_is_left_out(void)
{
    int count = 0;
    const cvy_model_def *const *table = cvy_model_table(&count);
    for (int i = 0; i < count; i++) {
        int found = table[i]->numbers != NULL;
        for (int k = 0; k < CVY_COUNT(trials); k++)
            found |= strcmp(trials[k].name, table[i]->name) == 0;
        if (!found)
            printf("    %s is not tried\n", table[i]->name);
        EXPECT(found);
    }
}

/* ---- families ---- */

static int count_layers(const char *name, const char *options)
{
    cvy_model *m = NULL;
    int layers = 0;
    EXPECT_OK(cvy_model_zoo(name, options, NULL, 0, &m));
    for (int i = 0; m && i < m->nlayer; i++)
        layers += (strcmp(m->layer[i].op->name, "conv") == 0 && !strstr(m->layer[i].name, "_short")) ||
                  strcmp(m->layer[i].op->name, "fc") == 0;
    cvy_model_destroy(&m);
    return layers;
}

static void depth_is_in_the_name(void)
{
    EXPECT_INT(count_layers("resnet-20", NULL), 20);
    EXPECT_INT(count_layers("resnet-56", "block: bottleneck"), 56);
    EXPECT_INT(count_layers("resnet-1001", NULL), 1001);
    EXPECT_INT(count_layers("resnet-5000", NULL), 5000);
    EXPECT_INT(count_layers("resnet-152", NULL), 152);
}

static void unknown_names_and_depths(void)
{
    cvy_model *m = NULL;
    EXPECT_FAULT(cvy_model_zoo("resnet50", NULL, NULL, 0, &m), CVY_E_CONFIG, "did you mean 'resnet-50'?");
    EXPECT_FAULT(cvy_model_zoo("vgg-x", NULL, NULL, 0, &m), CVY_E_CONFIG, "did you mean 'vgg-a'?");
    EXPECT_FAULT(cvy_model_zoo("resnet20", NULL, NULL, 0, &m), CVY_E_CONFIG, "'resnet20', did you mean 'resnet-20'?");
    EXPECT_FAULT(cvy_model_zoo("resnet_56", NULL, NULL, 0, &m), CVY_E_CONFIG, "did you mean 'resnet-56'?");
    EXPECT_FAULT(cvy_model_zoo("resnet-N", NULL, NULL, 0, &m), CVY_E_CONFIG, "there is no network 'resnet-N'");
    EXPECT_FAULT(cvy_model_zoo("resnet-", NULL, NULL, 0, &m), CVY_E_CONFIG, "there is no network 'resnet-'");
    EXPECT_FAULT(cvy_model_zoo("resnet-4999", NULL, NULL, 0, &m), CVY_E_CONFIG,
                 "N is 6n + 2 (basic blocks) or 9n + 2 (bottlenecks), 8 to 20000; the nearest is resnet-5000");
    EXPECT_FAULT(cvy_model_zoo("resnet-52", NULL, NULL, 0, &m), CVY_E_CONFIG,
                 "the nearest is resnet-56"); /* resnet-50 is another network */
    EXPECT_FAULT(cvy_model_zoo("resnet-1", NULL, NULL, 0, &m), CVY_E_CONFIG, "the nearest is resnet-8");
    EXPECT_FAULT(cvy_model_zoo("resnet-999999999", NULL, NULL, 0, &m), CVY_E_CONFIG, "the nearest is resnet-20000");
    EXPECT_FAULT(cvy_model_zoo("resnet-20", "block: large", NULL, 0, &m), CVY_E_CONFIG, "expected");
    EXPECT_FAULT(cvy_model_zoo("resnet-1001", "block: basic", NULL, 0, &m), CVY_E_CONFIG,
                 "N is 6n + 2 with block: basic, 8 to 20000; the nearest is resnet-998");
    EXPECT(m == NULL);
}

/* ---- sizes ---- */

static void sizes_that_do_not_fit_are_refused(void)
{
    const cvy_shape picture = {3, {1, 100, 90}}, low = {3, {1, 4, 64}}, volume = {4, {1, 8, 8, 12}}, row = {2, {1, 64}};
    cvy_model *m = NULL;
    EXPECT_FAULT(
        cvy_model_zoo("unet", NULL, &picture, 0, &m), CVY_E_SHAPE,
        "sizes must be multiples of 16, and the input has 100x90; the next sizes that fit are 112x96 and 96x80: "
        "crop or pad");
    EXPECT_FAULT(cvy_model_zoo("unet", NULL, &low, 0, &m), CVY_E_SHAPE, "the next sizes that fit are 16x64: crop");
    EXPECT_FAULT(cvy_model_zoo("unet", "depth: 3", &volume, 0, &m), CVY_E_SHAPE, "are 8x8x16 and 8x8x8:");
    EXPECT_FAULT(cvy_model_zoo("unet", "dimensions: 2", &volume, 0, &m), CVY_E_SHAPE, "`dimensions` is 2");
    EXPECT_FAULT(cvy_model_zoo("unet", NULL, &row, 0, &m), CVY_E_SHAPE, "[C, H, W] or [C, D, H, W]");
    EXPECT_FAULT(cvy_model_zoo("unet", "norm: group, filters: 12", NULL, 0, &m), CVY_E_CONFIG,
                 "`groups` 8 must divide `filters` 12");
    EXPECT_FAULT(cvy_model_zoo("deepcam", NULL, &picture, 0, &m), CVY_E_SHAPE,
                 "both must be multiples of 16, and the input has 100x90");
    EXPECT_FAULT(cvy_model_zoo("deepcam", NULL, &volume, 0, &m), CVY_E_SHAPE, "[C, H, W]");
    EXPECT_FAULT(cvy_model_zoo("deepcam", "filters: 6", NULL, 0, &m), CVY_E_CONFIG,
                 "`filters` 6 must be a multiple of 4");
    EXPECT(m == NULL);
}

/* ---- auxiliary heads ---- */

static void heads_are_for_training_only(void)
{
    const cvy_graph_opts training = {.batch = cvy_batch_share(1, 0, 1), .training = 1, .dtype = CVY_DTYPE_F32};
    cvy_graph_opts testing = training;
    const char *const wanted[] = {"aux2"};
    cvy_model *m = NULL;
    cvy_vars *vars = NULL;
    cvy_graph *g = NULL;
    cvy_value *value = NULL;
    testing.training = 0;
    EXPECT_OK(cvy_model_zoo("googlenet", NULL, NULL, 0, &m));
    EXPECT_OK(cvy_vars_create(&vars));
    if (!m || !vars)
        return;
    EXPECT_INT(m->naux, 2);
    EXPECT_TEXT(m->aux[0].output, "aux1");
    EXPECT_NEAR(m->aux[1].weight, 0.3, 0);
    EXPECT_TEXT(cvy_model_output(m), "fc");
    EXPECT_FAULT(cvy_model_instantiate(m, vars, &testing, wanted, 1, &value, &g), CVY_E_ARGUMENT, "auxiliary head");
    EXPECT_OK(cvy_model_instantiate(m, vars, &testing, NULL, 0, NULL, &g));
    EXPECT(cvy_vars_find(vars, "fc.weight") && !cvy_vars_find(vars, "aux1.weight"));
    cvy_graph_destroy(&g);
    EXPECT_OK(cvy_model_instantiate(m, vars, &training, wanted, 1, &value, &g));
    EXPECT(cvy_vars_find(vars, "aux2.weight") && value && value->shape.dim[1] == 1000);
    cvy_graph_destroy(&g);
    cvy_vars_destroy(&vars);
    cvy_model_destroy(&m);
}

/* ---- lines ---- */

/* Lists the layers as "name:op<from", those of the first line only. */
static const char *layers_of(const char *norm, const char *line)
{
    static char text[1024];
    cvy_model *m = NULL;
    size_t at = 0;
    text[0] = '\0';
    EXPECT_OK(cvy_model_create("lines", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {3, 8, 8}}));
    EXPECT_OK(cvy_model_add_line(m, "l", NULL, norm, line));
    for (int i = 0; i < m->nlayer; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s:%s", i ? " " : "", m->layer[i].name,
                               m->layer[i].op->name);
        for (int k = 0; k < m->layer[i].nfrom; k++)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", k ? "," : "<", m->layer[i].from[k]);
    }
    cvy_model_destroy(&m);
    return text;
}

static void lines(void)
{
    cvy_model *m = NULL;
    EXPECT_TEXT(layers_of(NULL, "3x3-8/2v max3"), "l_1:conv<x l_1_relu:relu<l_1 l_2:max_pool<l_1_relu");
    EXPECT_TEXT(layers_of("eps: 0.1", "1x7-8"), "l_1:conv<x l_1_bn:batch_norm<l_1 l_1_relu:relu<l_1_bn");
    EXPECT_TEXT(layers_of(NULL, "avg3 | max3"), "l_1_1:avg_pool<x l_2_1:max_pool<x l:concat<l_1_1,l_2_1");
    EXPECT_TEXT(layers_of(NULL, "max2/2v avg3 & max3"),
                "l_1_1:max_pool<x l_1_2:avg_pool<l_1_1 l_1_3:max_pool<l_1_1 l:concat<l_1_2,l_1_3");
    EXPECT_OK(cvy_model_create("lines", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {3, 8, 8}}));
    EXPECT_FAULT(cvy_model_add_line(m, "l", NULL, NULL, "3x3-8 3y3"), CVY_E_INTERNAL, "'3y3'");
    EXPECT_FAULT(cvy_model_add_line(m, "k", NULL, NULL, "max3/2w"), CVY_E_INTERNAL, "'max3/2w'");
    cvy_model_destroy(&m);
}

int main(void)
{
    TEST(parameters_macs_and_shapes);
    TEST(each_plans_a_training_step_and_small_ones_run);
    TEST(none_is_left_out);
    TEST(depth_is_in_the_name);
    TEST(unknown_names_and_depths);
    TEST(sizes_that_do_not_fit_are_refused);
    TEST(heads_are_for_training_only);
    TEST(lines);
    return test_end();
}
