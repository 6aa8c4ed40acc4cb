/* rows: release */
/* seconds: 30 */
/*
 * test_kernel_cudnn_plans.c: cuDNN, which can plan without a GPU, has an engine for each convolution, deconvolution and
 * fully connected layer of the networks of the zoo and for their gradients, in bf16, in f32 and in TF32, with and
 * without `deterministic`. It prints a table in Markdown, and each problem that is refused.
 *
 * In f32 `train.precise` changes nothing, and it excludes TF32. In bf16 it excludes gradients of weights that are
 * rounded to bf16; those that are f32 come from engines that cuDNN compiles for the problem, which it cannot do without
 * the driver's library. So they have a column only if there is a libcuda.so.1: cudnn_compiled.sh makes one that knows
 * no device. The gradients that cuDNN has no engine for are named; the kernel gpu.conv_grad_weight takes them.
 *
 * The device is described by h200.json. ctest plans a few networks; CONVOY_TEST_LEVEL=2 all of them. Arguments are the
 * networks to plan. Without cuDNN it is skipped.
 *
 * Source: NVIDIA, cuDNN 9 documentation, "Deviceless Ahead-of-Time Compilation".
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "backend/gpu/gpu_vendor.h"
#include "base/base_file.h"
#include "base/text/base_text.h"
#include "kernel/cudnn/cudnn_layer.h"
#include "model/model.h"
#include "op/graph_eval.h"
#include "pass/pass.h"
#include "test_util.h"

enum { BATCH = 256, LOSSES = 5, SEEN = 4000 };

static cvy_cudnn_device *device;

/* ---- the table ---- */

static const struct mode {
    const char *name;
    cvy_dtype dtype;
    int tf32, deterministic;
    int precise; /* only what cuDNN compiles: gradients of weights that are not rounded, and fused layers */
} modes[] = {{"bf16", CVY_DTYPE_BF16, 0, 0, 0},
             {"bf16 deterministic", CVY_DTYPE_BF16, 0, 1, 0},
             {"f32", CVY_DTYPE_F32, 0, 0, 0},
             {"f32 deterministic", CVY_DTYPE_F32, 0, 1, 0},
             {"TF32", CVY_DTYPE_F32, 1, 0, 0},
             {"TF32 deterministic", CVY_DTYPE_F32, 1, 1, 0},
             {"bf16 precise, compiled", CVY_DTYPE_BF16, 0, 0, 1}};
static int nmode = CVY_COUNT(modes);

struct cell {
    int problems, refused, least; /* least: engines that a problem can choose from */
    int64_t workspace;            /* the most of a problem, of its first engine */
};

static void print_head(void)
{
    printf("| network | problems |");
    for (int i = 0; i < nmode; i++)
        printf(" %s |", modes[i].name);
    printf("\n|---|---|");
    for (int i = 0; i < nmode; i++)
        printf("---|");
    printf("\n");
}

static void print_row(const char *network, const struct cell *cell)
{
    printf("| `%s` | %d |", network, cell[0].problems);
    for (int i = 0; i < nmode; i++)
        printf(" %d, %.0f, %d |", cell[i].least, 1e-6 * (double)cell[i].workspace, cell[i].refused);
    printf("\n");
}

static void name_problem(const char *network, const struct mode *mode, const cvy_node *node, const cvy_cudnn_problem *p)
{
    printf("refused: %s in %s, %s (%s)%s: %s\n", network, mode->name, node->name, node->op->name,
           p->sum ? " added to another" : "", cvy_error_text());
}

/* ---- problems ---- */

/* Problems of one network, each of them once. */
static cvy_cudnn_problem *seen;
static int nseen;

static int is_new(const cvy_cudnn_problem *p)
{
    for (int i = 0; i < nseen; i++)
        if (memcmp(&seen[i], p, sizeof *p) == 0)
            return 0;
    EXPECT(nseen < SEEN);
    memcpy(&seen[nseen++], p, sizeof *p);
    return 1;
}

static void plan(const char *network, const struct mode *mode, const cvy_node *node, const cvy_cudnn_problem *p,
                 struct cell *cell)
{
    const cvy_cudnn_plan *made = NULL;
    const cvy_cudnn_engine *engine = NULL;
    if (!is_new(p))
        return;
    cell->problems++;
    const cvy_status status = cvy_cudnn_engine_get(device, p, 0, &engine);
    if (status != CVY_OK) {
        EXPECT_INT(status, CVY_NOT_APPLICABLE);
        name_problem(network, mode, node, p);
        cell->refused++;
        return;
    }
    EXPECT_OK(cvy_cudnn_plan_get(device, p, &made));
    EXPECT(made->nengine > 0 && made->nengine <= made->allowed);
    for (int i = 0; i < made->nengine; i++)
        EXPECT(made->engine[i].workspace <= CVY_CUDNN_WORKSPACE_MAX);
    cell->workspace = CVY_MAX(cell->workspace, engine->workspace);
    cell->least = cell->least ? CVY_MIN(cell->least, made->nengine) : made->nengine;
}

static int is_planned(const cvy_node *node)
{
    static const char *const ops[] = {"conv",          "conv_grad_src", "conv_grad_weight", "fc",
                                      "fc_grad_src",   "deconv",        "deconv_grad_src",  "deconv_grad_weight",
                                      "fc_grad_weight"};
    for (int i = 0; i < CVY_COUNT(ops); i++)
        if (strcmp(node->op->name, ops[i]) == 0)
            return 1;
    return 0;
}

static int is_of_weights(const cvy_node *node)
{
    return node->op->pass == CVY_LAYER_GRAD_WEIGHT;
}

/* Each gradient of a source is also planned as one that is added to another gradient. */
static void plan_graph(const char *network, const cvy_graph *g, const struct mode *mode, struct cell *cell)
{
    nseen = 0;
    for (int i = 0; i < g->nnode; i++) {
        const cvy_kernel_ask ask = {.node = g->node[i], .deterministic = mode->deterministic, .tf32 = mode->tf32};
        cvy_cudnn_layer l;
        if (!is_planned(g->node[i]))
            continue;
        if (mode->precise && !is_of_weights(g->node[i])) {
            if (cvy_cudnn_layer_of(&ask, CVY_CUDNN_FUSED, &l) == CVY_OK)
                plan(network, mode, g->node[i], &l.problem, cell);
            continue;
        }
        EXPECT_OK(cvy_cudnn_layer_of(&ask, mode->precise ? CVY_CUDNN_PLAIN : CVY_CUDNN_ROUNDED, &l));
        plan(network, mode, g->node[i], &l.problem, cell);
        if (strcmp(g->node[i]->op->name, "conv_grad_src") != 0)
            continue;
        l.problem.sum = 1;
        plan(network, mode, g->node[i], &l.problem, cell);
    }
}

/* ---- networks ---- */

/* The graph of a training: the main output and those of the auxiliary heads, each with a gradient that is fed. */
static cvy_status training(const cvy_model *m, cvy_dtype dtype, cvy_vars *vars, cvy_graph **out)
{
    const char *wanted[LOSSES];
    cvy_value *value[LOSSES], *loss[LOSSES];
    cvy_gradients gradients;
    int n = 0;
    const cvy_graph_opts opts = {
        .name = "training", .batch = cvy_batch_share(BATCH, 0, 1), .training = 1, .dtype = dtype, .seed = 1};
    wanted[n++] = cvy_model_output(m);
    for (int i = 0; i < m->naux; i++)
        wanted[n++] = m->aux[i].output;
    CVY_TRY(cvy_model_instantiate(m, vars, &opts, wanted, n, value, out));
    for (int i = 0; i < n; i++) {
        char name[24];
        cvy_value *from[2] = {value[i], NULL};
        cvy_node *node = NULL;
        snprintf(name, sizeof name, "ddst%d", i);
        CVY_TRY(cvy_graph_feed(*out, name, value[i]->dtype, &value[i]->shape, 1, &from[1]));
        snprintf(name, sizeof name, "loss%d", i);
        CVY_TRY(cvy_graph_add_parsed(*out, &cvy_weighted_sum_op, name, name, NULL, from, 2, CVY_PHASE_MICRO, &node));
        loss[i] = node->dst[0];
    }
    return cvy_pass_autodiff(*out, loss, n, NULL, NULL, &gradients);
}

static void network(const char *name)
{
    struct cell cell[CVY_COUNT(modes)] = {{0}};
    cvy_model *m = NULL;
    EXPECT_OK(cvy_model_zoo(name, NULL, NULL, 0, &m));
    for (int i = 0; i < nmode; i++) {
        cvy_vars *vars = NULL;
        cvy_graph *g = NULL;
        EXPECT_OK(cvy_vars_create(&vars));
        EXPECT_OK(training(m, modes[i].dtype, vars, &g));
        plan_graph(name, g, &modes[i], &cell[i]);
        EXPECT(cell[i].problems > 0);
        EXPECT(modes[i].precise || cell[i].refused == 0);
        cvy_graph_destroy(&g);
        cvy_vars_destroy(&vars);
    }
    print_row(name, cell);
    cvy_model_destroy(&m);
}

static const char *const *wanted;
static int nwanted;

static void networks(void)
{
    static const char *const few[] = {"lenet", "alexnet-v2", "resnet-20", "unet", "cosmoflow"};
    const char *level = getenv("CONVOY_TEST_LEVEL");
    int count = 0;
    const cvy_model_def *const *table = cvy_model_table(&count);
    print_head();
    if (nwanted == 0 && level && atoi(level) >= 2) {
        for (int i = 0; i < count; i++)
            network(strcmp(table[i]->name, "resnet-N") == 0 ? "resnet-110" : table[i]->name);
        return;
    }
    for (int i = 0; i < (nwanted ? nwanted : CVY_COUNT(few)); i++)
        network(nwanted ? wanted[i] : few[i]);
}

int main(int argc, char **argv)
{
    const char *why = NULL, *source = getenv("CONVOY_SOURCE");
    char path[400], *json = NULL;
    size_t bytes = 0;
    wanted = (const char *const *)argv + 1;
    nwanted = argc - 1;
    if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL))
        nmode--;
    if (!cvy_cudnn(&why)) {
        printf("skipped: %s\n", why);
        return 77;
    }
    snprintf(path, sizeof path, "%s/tests/kernel/h200.json", source ? source : ".");
    EXPECT_OK(cvy_file_read(path, 1 << 16, &json, &bytes));
    if (cvy_cudnn_device_described(json, &device) != CVY_OK) {
        printf("skipped: cuDNN %s does not plan without a GPU: %s\n", cvy_vendor_load(CVY_VENDOR_CUDNN)->version,
               cvy_error_text());
        return 77;
    }
    EXPECT_OK(cvy_mem_alloc(sizeof *seen * SEEN, &seen));
    TEST(networks);
    cvy_mem_free(&seen);
    cvy_mem_free(&json);
    cvy_cudnn_device_close(&device);
    return test_end();
}
