/* rows: clang asan */
/*
 * test_optim_group.c: updates that follow each other run by one launch on a GPU. On the emulated device they must have
 * the bits of updates that run alone, whatever their sizes, options and order of threads. And the squares and rates of
 * lars and lamb of a weight that is split over ranks, against the reference kernels.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test_util.h"

#include <math.h>

#include "backend/emulated/emulated.h"
#include "base/base_hash.h"
#include "kernel/kernel_library.h"
#include "optim/optim_update.h"

enum { MEMBERS = 5, STEPS = 3, MOST = (1 << 20) + 1, SOURCES = 9 };
static const int64_t sizes[MEMBERS] = {1, 700, 5000, 256, 1025};

static cvy_space device;

static const struct {
    const char *op, *options, *others; /* others: of every second weight */
    int launches;                      /* of a step of the group */
} cases[] = {
    {"sgd", "", "momentum: 0, weight_decay: 0.1", 2}, /* with a large weight, whose update stays alone */
    {"sgd", "nesterov: true, clip_weights: 0.9", "average: 0.9", 1},
    {"adam", "weight_decay: 0.1", "lr_mult: 2, average: 0.5", 1},
    {"adamw", "weight_decay: 0.1", "", 1},
    {"rmsprop", "centered: true, momentum: 0.5", "", 1},
    {"adagrad", "", "lr_decay: 0.1", 1},
    {"adadelta", "", "rho: 0.8", 1},
    {"lars", "trust_coefficient: 0.3, weight_decay: 0.01", "momentum: 0.5", 2},
    {"lamb", "weight_decay: 0.01", "average: 0.5", 2},
};

/* A weight with its update. The scalars are shared. */
struct member {
    cvy_vars *vars;
    cvy_graph *graph;
    cvy_node *node;
    cvy_kernel_ask ask;
    void *state, *src[SOURCES], *dst[SOURCES], *scratch;
    int64_t elems;
};

static void *lr, *scale, *step;

static void *on_device(size_t bytes, const void *from)
{
    void *data = NULL;
    EXPECT_OK(cvy_space_alloc(&device, bytes, 0, &data));
    if (from)
        EXPECT_OK(cvy_space_write(&device, data, from, bytes));
    return data;
}

static cvy_status build(struct member *m, const cvy_op_def *op, const char *options, int is_bias)
{
    const cvy_init zeros = {.method = "constant"};
    const cvy_graph_opts opts = {
        .name = "update", .batch = cvy_batch_share(1, 0, 1), .training = 1, .dtype = CVY_DTYPE_F32};
    const cvy_shape shape = {1, {m->elems}};
    cvy_variable *weight = NULL;
    cvy_value *src[5] = {NULL};
    void *parsed = NULL;
    CVY_TRY(cvy_vars_create(&m->vars));
    CVY_TRY(cvy_graph_create(m->vars, &opts, &m->graph));
    CVY_TRY(cvy_vars_declare(m->vars, "layer.weight", CVY_ROLE_WEIGHT, CVY_DTYPE_F32, &shape, &zeros, &weight));
    weight->decay = !is_bias;
    CVY_TRY(cvy_graph_read_variable(m->graph, weight, &src[0]));
    CVY_TRY(cvy_graph_feed(m->graph, "gradient", CVY_DTYPE_F32, &shape, 1, &src[1]));
    CVY_TRY(cvy_graph_feed(m->graph, "lr", CVY_DTYPE_F64, &(cvy_shape){0}, 1, &src[2]));
    CVY_TRY(cvy_graph_feed(m->graph, "scale", CVY_DTYPE_F64, &(cvy_shape){0}, 1, &src[3]));
    CVY_TRY(cvy_graph_step_number(m->graph, &src[4]));
    CVY_TRY(cvy_pool_alloc(m->graph->pool, op->options_size, &parsed));
    CVY_TRY(cvy_options_parse_text(m->graph->pool, op->name, op->options, options, parsed, op->options_size));
    return cvy_graph_add_parsed(m->graph, op, "layer.update", "layer.weight", parsed, src, 5, CVY_PHASE_UPDATE,
                                &m->node);
}

/* Every weight has its own bf16 copy. */
static void open_member(struct member *m, int c, int i)
{
    char name[40];
    *m = (struct member){.elems = c == 0 && i == 2 ? MOST : sizes[i]};
    EXPECT_OK(build(m, cvy_op_find(cases[c].op), i % 2 ? cases[c].others : cases[c].options, i == 3));
    snprintf(name, sizeof name, "gpu.%s", cases[c].op);
    m->ask = (cvy_kernel_ask){.node = m->node, .space = &device, .threads = 1};
    EXPECT_OK(cvy_kernel_find(name)->offer(&m->ask));
    m->ask.writes_shadow = 1;
    EXPECT_OK(cvy_kernel_find(name)->create(&m->ask, &m->state));
    for (int s = 0; s < m->node->nsrc; s++)
        m->src[s] = s == CVY_OPTIM_LR      ? lr
                    : s == CVY_OPTIM_SCALE ? scale
                    : s == CVY_OPTIM_STEP  ? step
                                           : on_device((size_t)m->elems * sizeof(float), NULL);
    m->dst[0] = m->src[0];
    for (int s = CVY_OPTIM_STATE; s < m->node->nsrc; s++)
        m->dst[1 + s - CVY_OPTIM_STATE] = m->src[s];
    m->dst[m->node->ndst] = on_device((size_t)m->elems * sizeof(cvy_bf16), NULL);
    m->scratch = on_device(m->ask.scratch_bytes + 8, NULL);
}

static void close_member(struct member *m, const cvy_kernel_def *kernel)
{
    kernel->destroy(m->state);
    for (int s = 0; s < m->node->nsrc; s++)
        if (s < CVY_OPTIM_LR || s >= CVY_OPTIM_STATE)
            cvy_space_free(&device, &m->src[s], (size_t)m->elems * sizeof(float));
    cvy_space_free(&device, &m->dst[m->node->ndst], (size_t)m->elems * sizeof(cvy_bf16));
    cvy_space_free(&device, &m->scratch, m->ask.scratch_bytes + 8);
    cvy_graph_destroy(&m->graph);
    cvy_vars_destroy(&m->vars);
}

static void put(void *to, int64_t n, int seed)
{
    static float values[MOST];
    for (int64_t i = 0; i < n; i++)
        values[i] = (float)sin((double)i * 0.7 + seed);
    EXPECT_OK(cvy_space_write(&device, to, values, (size_t)n * sizeof(float)));
}

/* Runs the steps, and gives the hash of all that was written. */
static uint64_t run(struct member *m, const cvy_kernel_def *kernel)
{
    static char bytes[MOST * sizeof(float)];
    uint64_t hash = 0;
    for (int i = 0; i < MEMBERS; i++)
        for (int s = 0; s < m[i].node->nsrc; s++) {
            if (s == CVY_OPTIM_WEIGHT)
                put(m[i].src[s], m[i].elems, i);
            else if (s >= CVY_OPTIM_STATE)
                EXPECT_OK(cvy_space_zero(&device, CVY_LANE_COMPUTE, m[i].src[s], (size_t)m[i].elems * sizeof(float)));
        }
    for (int64_t t = 0; t < STEPS; t++) {
        EXPECT_OK(cvy_space_write(&device, step, &t, sizeof t));
        for (int i = 0; i < MEMBERS; i++)
            put(m[i].src[CVY_OPTIM_GRADIENT], m[i].elems, 10 + i + (int)t);
        for (int i = 0; i < MEMBERS; i++)
            EXPECT_OK(kernel->run(m[i].state, m[i].src, m[i].dst, m[i].scratch));
    }
    for (int i = 0; i < MEMBERS; i++)
        for (int d = 0; d <= m[i].node->ndst; d++) {
            const size_t n = (size_t)m[i].elems * (d == m[i].node->ndst ? sizeof(cvy_bf16) : sizeof(float));
            if (!m[i].dst[d])
                continue;
            EXPECT_OK(cvy_space_read(&device, bytes, m[i].dst[d], n));
            hash = 31 * hash + cvy_hash(bytes, n);
        }
    return hash;
}

static void check_case(int c)
{
    struct member m[MEMBERS];
    cvy_kernel_call calls[MEMBERS];
    char name[40];
    snprintf(name, sizeof name, "gpu.%s", cases[c].op);
    const cvy_kernel_def *kernel = cvy_kernel_find(name);
    const cvy_library_def *library = cvy_kernel_library(kernel);
    for (int i = 0; i < MEMBERS; i++) {
        open_member(&m[i], c, i);
        calls[i] = (cvy_kernel_call){kernel, m[i].state, m[i].src, m[i].dst};
    }
    const uint64_t alone = run(m, kernel);
    EXPECT_OK(library->join(&device, calls, MEMBERS));
    for (int order = 0; order < CVY_EMULATED_ANY; order++) {
        const int64_t before = cvy_emulated_done_now.launches;
        cvy_emulated_setup_now.order = order;
        EXPECT(run(m, kernel) == alone);
        EXPECT_INT(cvy_emulated_done_now.launches - before, STEPS * cases[c].launches);
    }
    EXPECT_FAULT(kernel->run(m[1].state, m[2].src, m[2].dst, m[2].scratch), CVY_E_INTERNAL, "another weight");
    /* What is not joined any more runs alone again. */
    EXPECT_OK(library->join(&device, calls, 2));
    for (int i = 2; i < MEMBERS; i++)
        EXPECT_OK(library->join(&device, &calls[i], 1));
    EXPECT(run(m, kernel) == alone);
    for (int i = 0; i < MEMBERS; i++)
        close_member(&m[i], kernel);
}

static void groups_have_the_bits_of_their_members(void)
{
    for (int c = 0; c < CVY_COUNT(cases); c++)
        check_case(c);
}

/* ---- of a weight that is split over ranks ---- */

/* Runs the kernel of a GPU of a node whose sources are in host memory; the result is f64. */
static void run_there(const cvy_node *node, void *const *host, const size_t *bytes, double *result, int n)
{
    char name[40];
    cvy_kernel_ask ask = {.node = node, .space = &device, .threads = 1};
    void *state = NULL, *src[SOURCES] = {NULL}, *dst = on_device((size_t)n * sizeof(double), NULL);
    snprintf(name, sizeof name, "gpu.%s", node->op->name);
    const cvy_kernel_def *kernel = cvy_kernel_find(name);
    EXPECT_OK(kernel->offer(&ask));
    EXPECT_OK(kernel->create(&ask, &state));
    void *work = on_device(ask.scratch_bytes + 8, NULL);
    for (int i = 0; i < node->nsrc; i++)
        src[i] = on_device(bytes[i], host[i]);
    EXPECT_OK(kernel->run(state, src, &dst, work));
    EXPECT_OK(cvy_space_read(&device, result, dst, (size_t)n * sizeof(double)));
    kernel->destroy(state);
    for (int i = 0; i < node->nsrc; i++)
        cvy_space_free(&device, &src[i], bytes[i]);
    cvy_space_free(&device, &dst, (size_t)n * sizeof(double));
    cvy_space_free(&device, &work, ask.scratch_bytes + 8);
}

/* The squares of a part of a weight, as the reference kernel computes them. */
static void check_squares(const char *op, const char *options)
{
    enum { N = 5000 };
    static float values[4][N];
    struct member m = {.elems = N};
    double half = 0.5, is[2] = {0}, want[2] = {0};
    int64_t two = 2;
    void *host[SOURCES] = {values[0], values[1], &half, &half, &two, values[2], values[3]};
    size_t bytes[SOURCES];
    cvy_span src[SOURCES], dst = {.dtype = CVY_DTYPE_F64, .elems = 2, .data = want};
    EXPECT_OK(build(&m, cvy_op_find(op), options, 0));
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < N; i++)
            values[k][i] = (float)fabs(sin(i * 0.3 + k));
    for (int i = 0; i < m.node->nsrc; i++) {
        const cvy_dtype dtype = m.node->src[i]->dtype;
        const int64_t elems = cvy_shape_elems(&m.node->src[i]->shape);
        src[i] = (cvy_span){.dtype = dtype, .ndim = 1, .dim = {elems}, .elems = elems, .data = host[i]};
        bytes[i] = (size_t)elems * cvy_dtype_bytes(dtype);
    }
    EXPECT_OK(m.node->op->reference(m.node, src, &dst));
    run_there(m.node, host, bytes, is, 2);
    for (int i = 0; i < 2; i++)
        EXPECT_NEAR(is[i], want[i], 1e-5 * want[i]);
    cvy_graph_destroy(&m.graph);
    cvy_vars_destroy(&m.vars);
}

/* The learning rate from squares, some of which are 0. */
static void check_rate(const char *op, const char *options)
{
    static const double squares[][2] = {{4, 9}, {0, 9}, {4, 0}, {0, 0}};
    const cvy_graph_opts opts = {
        .name = "rate", .batch = cvy_batch_share(1, 0, 1), .training = 1, .dtype = CVY_DTYPE_F32};
    const cvy_op_def *def = cvy_op_find(op);
    cvy_vars *vars = NULL;
    cvy_graph *graph = NULL;
    cvy_value *from[2] = {NULL};
    cvy_node *node = NULL;
    void *parsed = NULL;
    EXPECT_OK(cvy_vars_create(&vars));
    EXPECT_OK(cvy_graph_create(vars, &opts, &graph));
    EXPECT_OK(cvy_graph_feed(graph, "squares", CVY_DTYPE_F64, &(cvy_shape){1, {2}}, 1, &from[0]));
    EXPECT_OK(cvy_graph_feed(graph, "lr", CVY_DTYPE_F64, &(cvy_shape){0}, 1, &from[1]));
    EXPECT_OK(cvy_pool_alloc(graph->pool, def->options_size, &parsed));
    EXPECT_OK(cvy_options_parse_text(graph->pool, op, def->options, options, parsed, def->options_size));
    EXPECT_OK(cvy_graph_add_parsed(graph, def, "rate", "layer", parsed, from, 2, CVY_PHASE_UPDATE, &node));
    for (int i = 0; i < CVY_COUNT(squares); i++) {
        double pair[] = {squares[i][0], squares[i][1]}, now = 0.25, is = 0, want = 0;
        void *host[] = {pair, &now};
        const size_t bytes[] = {sizeof pair, sizeof now};
        const cvy_span src[] = {{.dtype = CVY_DTYPE_F64, .elems = 2, .data = pair},
                                {.dtype = CVY_DTYPE_F64, .elems = 1, .data = &now}},
                       dst = {.dtype = CVY_DTYPE_F64, .elems = 1, .data = &want};
        EXPECT_OK(def->reference(node, src, &dst));
        run_there(node, host, bytes, &is, 1);
        EXPECT_NEAR(is, want, 1e-14);
    }
    cvy_graph_destroy(&graph);
    cvy_vars_destroy(&vars);
}

static void parts_of_weights_have_squares_and_rates(void)
{
    check_squares("lars_squares", "weight_decay: 0.1");
    check_squares("lamb_squares", "weight_decay: 0.1, beta1: 0.8, beta2: 0.9");
    check_rate("lars_rate", "weight_decay: 0.1, trust_coefficient: 0.3");
    check_rate("lamb_rate", "");
}

int main(void)
{
    const double rate = 0.1, half = 0.5;
    const int64_t none = 0;
    EXPECT_OK(cvy_space_open_def(&cvy_emulated_backend, NULL, &device));
    lr = on_device(sizeof rate, &rate);
    scale = on_device(sizeof half, &half);
    step = on_device(sizeof none, &none);
    TEST(groups_have_the_bits_of_their_members);
    TEST(parts_of_weights_have_squares_and_rates);
    cvy_space_free(&device, &lr, sizeof rate);
    cvy_space_free(&device, &scale, sizeof half);
    cvy_space_free(&device, &step, sizeof none);
    cvy_space_close(&device);
    return test_end();
}
