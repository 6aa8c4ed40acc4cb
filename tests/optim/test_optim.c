/*
 * test_optim.c: three steps of each optimiser against PyTorch, by the reference kernel in f64 and by every registered
 * kernel in f32, in a plain layout and in a padded one whose padding lanes must stay zero. The kernels for GPUs run on
 * the emulated device.
 *
 * PyTorch 2.15 computed the numbers in f64: weight[i] = sin(i + 1), gradient[i] = 2 cos(0.7 i + t) at step t = 0, 1, 2
 * with scale 0.5, lr 0.02, for i = 0 .. 14; the optimiser of the same name with the given options (lr_mult multiplies
 * lr). Elements 0, 7 and 14 are kept. PyTorch has no lars: its numbers come from algorithm 1 of its paper, computed
 * with PyTorch's tensors in f64. Without decay (for a bias) it is PyTorch's SGD. The numbers of lamb come from
 * algorithm 2 of its paper in numpy, with wd the weight decay and adapts False for a bias; then it is PyTorch's Adam:
 *
 *     m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g * g
 *     r = (m / (1 - beta1 ** (t + 1))) / (np.sqrt(v / (1 - beta2 ** (t + 1))) + eps) + wd * w
 *     a, b = np.linalg.norm(w), np.linalg.norm(r)
 *     w = w - lr * (a / b if adapts and a > 0 and b > 0 else 1) * r
 *
 * The rows with a comment "Caffe" come from the formulas of its solvers in numpy, such as h = mu * h + lr * g and
 * w -= (1 + mu) * h - mu * h_before for Nesterov.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "backend/emulated/emulated.h"
#include "kernel/kernel_library.h"
#include "op/graph_eval.h"
#include "optim/optim_update.h"

struct row {
    const char *op, *options;
    double expected[3];
    double lr[3]; /* of each step; 0: 0.02 */
};

static const struct row rows[] = {
    {"sgd", "momentum: 0", {0.818987875421477, 0.950763928617542, 0.658374314148502}, {0}},
    {"sgd", "", {0.77506243391585, 0.927690593829898, 0.693692830970681}, {0}}, /* PyTorch with momentum=0.9 */
    {"sgd", "momentum: 0.9, weight_decay: 0.1", {0.765810811069681, 0.916674416162645, 0.68625995817283}, {0}},
    {"sgd",
     "momentum: 0.9, nesterov: true, weight_decay: 0.1",
     {0.746210337178795, 0.879601991456719, 0.686595801475396},
     {0}},
    {"sgd",
     "momentum: 0.9, nesterov: true, lookahead: 1",
     {0.744962150751141, 0.8660782436495649, 0.7008101832997351},
     {0}}, /* from w and m as optim_sgd.c defines them */
    {"sgd", "lr_mult: 2, momentum: 0.5", {0.755698719917694, 0.888024670914145, 0.698260174432136}, {0}},
    {"sgd", /* Caffe, with a learning rate that changes */
     "lr_inside: true, weight_decay: 0.1",
     {0.797157741514791, 0.924320197090792, 0.658238386879565},
     {0.02, 0.002, 0.05}},
    {"sgd", /* Caffe */
     "lr_inside: true, nesterov: true, weight_decay: 0.1",
     {0.795661757053966, 0.877459037478064, 0.635423905537307},
     {0.02, 0.002, 0.05}},
    {"sgd", "lr_inside: true, momentum: 0", {0.818987875421477, 0.950763928617542, 0.658374314148502}, {0}},
    {"adam", /* Caffe */
     "eps_hat: true, beta1: 0.8, beta2: 0.9, eps: 1e-3, weight_decay: 0.1",
     {0.792911418053426, 0.932538205219789, 0.68365953338558},
     {0}},
    {"adadelta", "", {0.841399926607835, 0.989123829745228, 0.650312887715071}, {0}},
    {"adadelta", /* Caffe gives the same */
     "rho: 0.95, eps: 1e-3, weight_decay: 0.1",
     {0.837829484612443, 0.979751797735071, 0.650966759758769},
     {0}},
    {"rmsprop", /* Caffe */
     "alpha: 0.98, eps: 1e-3, weight_decay: 0.1",
     {0.670471773935431, 0.62476707560051, 0.713181862355117},
     {0}},
    {"adagrad", /* Caffe */
     "eps: 1e-3, weight_decay: 0.1",
     {0.816711878651122, 0.937180020849039, 0.65979946618046},
     {0}},
    {"adam", "", {0.793307490338406, 0.933695270635786, 0.688680596819855}, {0}},
    {"adam",
     "beta1: 0.8, beta2: 0.9, eps: 1e-3, weight_decay: 0.1",
     {0.792831420112346, 0.932337297315418, 0.6837391326216},
     {0}},
    {"adamw", "weight_decay: 0.1", {0.78838640785624, 0.927885368904454, 0.684674423941786}, {0}},
    {"rmsprop", "", {0.615332781212107, 0.462251497033123, 0.769811189502588}, {0}},
    {"rmsprop",
     "alpha: 0.9, momentum: 0.9, weight_decay: 0.1",
     {0.62662946388626, 0.659629861841059, 0.794457787263392},
     {0}},
    {"rmsprop", "centered: true, eps: 1e-4", {0.613962702012248, 0.459689567946564, 0.770885331524638}, {0}},
    {"rmsprop", "centered: true, momentum: 0.5", {0.414815140012887, 0.208797814027781, 0.942487220054731}, {0}},
    {"adagrad", "", {0.818839989439303, 0.93669044033263, 0.662295903645676}, {0}},
    {"adagrad", "lr_decay: 0.1, weight_decay: 0.1", {0.816730959984536, 0.941001331664122, 0.66178071688629}, {0}},
    {"lars", "", {0.841404575253009, 0.98929398565479, 0.650330278780977}, {0}},
    {"lars",
     "momentum: 0, trust_coefficient: 0.5, weight_decay: 0.1",
     {0.828923234350958, 0.968410169014322, 0.651891049353054},
     {0}},
    {"lars",
     "momentum: 0.5, trust_coefficient: 1, weight_decay: 0.1, lr_mult: 2",
     {0.750557399683312, 0.879015672417581, 0.682470894834051},
     {0}},
    /* PyTorch with torch.clamp_(weight, -limit, limit) after each step */
    {"sgd", "clip_weights: 0.8", {0.753591449107954, 0.742062594594968, 0.693692830970681}, {0}},
    {"adam", "weight_decay: 0.1, clip_weights: 0.8", {0.770122097696599, 0.763168041800846, 0.686001203136661}, {0}},
    {"adamw", "weight_decay: 0.1, clip_weights: 0.8", {0.76867743783794, 0.76117468630869, 0.684674423941787}, {0}},
    {"rmsprop", "clip_weights: 0.6", {0.573861776404211, 0.272893143178305, 0.478436170672131}, {0}},
    {"adagrad", "clip_weights: 0.8", {0.797369004629407, 0.767332193698525, 0.662295903645676}, {0}},
    {"adadelta", "clip_weights: 0.8", {0.799992187036917, 0.799828819586573, 0.650312887715071}, {0}},
    {"lamb", "", {0.800032651039955, 0.939399904948816, 0.681600973597282}, {0}},
    {"lamb", "weight_decay: 0.1", {0.796543183451998, 0.93550268108204, 0.677599753774167}, {0}},
    {"lamb",
     "beta1: 0.8, beta2: 0.9, eps: 1e-3, weight_decay: 0.1, lr_mult: 2",
     {0.754916858597163, 0.881343631040859, 0.700412223223473},
     {0}},
};

/* Rows for a variable without weight decay. */
static const struct row bias_rows[] = {
    {"lars",
     "momentum: 0.9, trust_coefficient: 0.3, weight_decay: 0.1",
     {0.765810811069681, 0.916674416162645, 0.68625995817283},
     {0}},
    {"lars", "momentum: 0.9, clip_weights: 0.8", {0.753591449107954, 0.742062594594968, 0.693692830970681}, {0}},
    {"lamb",
     "eps: 1e-8, clip_weights: 0.8",
     {0.77183650533053, 0.764337022940089, 0.688680596819855},
     {0}}, /* as adam */
    {"lars", "momentum: 0", {0.818987875421477, 0.950763928617542, 0.658374314148502}, {0}},
    {"lamb", "weight_decay: 0.1", {0.78838646394735, 0.927885525378967, 0.68467437577462}, {0}},
    {"lamb", "eps: 1e-8", {0.793307490338406, 0.933695270635786, 0.688680596819855}, {0}}, /* as adam */
};

enum { ROWS = 5, COLUMNS = 3, ELEMS = 15, STEPS = 3 };
static const cvy_shape shape = {2, {ROWS, COLUMNS}};

/* One update node on a variable "layer.weight" of the dtype. */
struct update_graph {
    int is_bias;
    cvy_vars *vars;
    cvy_graph *graph;
    cvy_node *node;
};

static cvy_status open_update_of(struct update_graph *b, const struct row *row, cvy_dtype dtype,
                                 const cvy_shape *weight_shape)
{
    const cvy_op_def *op = cvy_op_find(row->op);
    const cvy_init zeros = {.method = "constant"};
    const cvy_graph_opts opts = {.name = "update", .batch = cvy_batch_share(1, 0, 1), .training = 1, .dtype = dtype};
    cvy_variable *weight = NULL;
    cvy_value *src[5] = {NULL};
    void *options = NULL;
    CVY_TRY(cvy_vars_create(&b->vars));
    CVY_TRY(cvy_graph_create(b->vars, &opts, &b->graph));
    CVY_TRY(cvy_vars_declare(b->vars, "layer.weight", CVY_ROLE_WEIGHT, dtype, weight_shape, &zeros, &weight));
    weight->decay = !b->is_bias;
    CVY_TRY(cvy_graph_read_variable(b->graph, weight, &src[0]));
    CVY_TRY(cvy_graph_feed(b->graph, "gradient", dtype, weight_shape, 1, &src[1]));
    CVY_TRY(cvy_graph_feed(b->graph, "lr", CVY_DTYPE_F64, &(cvy_shape){0}, 1, &src[2]));
    CVY_TRY(cvy_graph_feed(b->graph, "scale", CVY_DTYPE_F64, &(cvy_shape){0}, 1, &src[3]));
    CVY_TRY(cvy_graph_step_number(b->graph, &src[4]));
    CVY_TRY(cvy_pool_alloc(b->graph->pool, op->options_size, &options));
    CVY_TRY(cvy_options_parse_text(b->graph->pool, row->op, op->options, row->options, options, op->options_size));
    CVY_TRY(cvy_graph_add_parsed(b->graph, op, "layer.update", "layer.weight", options, src, 5, CVY_PHASE_UPDATE,
                                 &b->node));
    return cvy_graph_verify(b->graph);
}

static cvy_status open_update(struct update_graph *b, const struct row *row, cvy_dtype dtype)
{
    return open_update_of(b, row, dtype, &shape);
}

static void close_update(struct update_graph *b)
{
    cvy_graph_destroy(&b->graph);
    cvy_vars_destroy(&b->vars);
}

static double lr_at(const struct row *row, int64_t step)
{
    return row->lr[step] > 0 ? row->lr[step] : 0.02;
}

static double weight_at(int i)
{
    return sin(i + 1);
}
static double gradient_at(int i, int step)
{
    return 2 * cos(0.7 * i + step);
}

static void check(const struct row *row, const char *by, const double *weight, double tolerance)
{
    for (int i = 0; i < 3; i++) {
        test_checks++;
        if (fabs(weight[7 * i] - row->expected[i]) <= tolerance)
            continue;
        test_failures++;
        printf("%s {%s} by %s: element %d is %.15g, expected %.15g\n", row->op, row->options, by, 7 * i, weight[7 * i],
               row->expected[i]);
    }
}

/* With `average: 0.1`: what the running average of each element must be. */
struct averages {
    int is_on;
    double at[ELEMS];
};

static void add_weight(struct averages *a, int i, int64_t step, double weight)
{
    const double keep = step == 0 ? 0 : step == 1 ? 1.0 / 11 : 0.1;
    a->at[i] = keep * a->at[i] + (1 - keep) * weight;
}

static void check_average(const struct row *row, const char *by, int i, double got, double expected, double tolerance)
{
    test_checks++;
    if (fabs(got - expected) <= tolerance)
        return;
    test_failures++;
    printf("%s {%s} by %s: the average of element %d is %.15g, expected %.15g\n", row->op, row->options, by, i, got,
           expected);
}

/* The reference kernel in f64. The destinations are in the sources' memory, as in a plan. */
static void plain_kernel(const struct row *row, int is_bias)
{
    struct update_graph b = {.is_bias = is_bias};
    struct averages average = {.is_on = strstr(row->options, "average") != NULL};
    EXPECT_OK(open_update(&b, row, CVY_DTYPE_F64));
    double memory[CVY_NODE_SRC_MAX][ELEMS] = {{0}}, lr = 0, scale = 0.5;
    int64_t step = 0;
    cvy_span src[CVY_NODE_SRC_MAX] = {{0}}, dst[CVY_NODE_DST_MAX] = {{0}};
    for (int i = 0; i < b.node->nsrc; i++)
        src[i] =
            (cvy_span){.dtype = CVY_DTYPE_F64, .ndim = 2, .dim = {ROWS, COLUMNS}, .elems = ELEMS, .data = memory[i]};
    src[2].data = &lr;
    src[3].data = &scale;
    src[4] = (cvy_span){.dtype = CVY_DTYPE_I64, .elems = 1, .data = &step};
    dst[0] = src[0];
    for (int i = 1; i < b.node->ndst; i++)
        if (b.node->dst[i])
            dst[i] = src[4 + i];
    for (int i = 0; i < ELEMS; i++)
        memory[0][i] = weight_at(i);
    for (; step < STEPS; step++) {
        lr = lr_at(row, step);
        for (int i = 0; i < ELEMS; i++)
            memory[1][i] = gradient_at(i, (int)step);
        EXPECT_OK(b.node->op->reference(b.node, src, dst));
        for (int i = 0; i < ELEMS; i++)
            add_weight(&average, i, step, memory[0][i]);
    }
    check(row, "the plain kernel", memory[0], 1e-13);
    for (int i = 0; i < ELEMS && average.is_on; i++)
        check_average(row, "the plain kernel", i, memory[b.node->nsrc - 1][i], average.at[i], 1e-13);
    close_update(&b);
}

static int64_t place(const cvy_blocking *layout, int i)
{
    const int64_t at[] = {i / COLUMNS, i % COLUMNS};
    return cvy_blocking_offset(layout, at);
}

/* ---- where a kernel works ---- */

static cvy_space device; /* the emulated GPU */

/* Memory of the host, and its copy in a space; NULL: the host's memory itself. */
struct memory {
    const cvy_space *space;
    void *host, *there;
    size_t bytes;
};

static void *memory_open(struct memory *m, const cvy_space *space, void *host, size_t bytes)
{
    *m = (struct memory){space, host, host, bytes};
    if (space) {
        EXPECT_OK(cvy_space_alloc(space, bytes, 0, &m->there));
        EXPECT_OK(cvy_space_write(space, m->there, host, bytes));
    }
    return m->there;
}

static void memory_push(const struct memory *m)
{
    if (m->space)
        EXPECT_OK(cvy_space_write(m->space, m->there, m->host, m->bytes));
}

static void memory_pull(const struct memory *m)
{
    if (m->space)
        EXPECT_OK(cvy_space_read(m->space, m->host, m->there, m->bytes));
}

static void memory_close(struct memory *m)
{
    if (m->space)
        cvy_space_free(m->space, &m->there, m->bytes);
}

static void fast_kernel(const struct row *row, int is_bias, const cvy_kernel_def *kernel, const char *tag,
                        const cvy_space *space)
{
    enum { ROOM = 256 };
    struct update_graph b = {.is_bias = is_bias};
    struct averages average = {.is_on = strstr(row->options, "average") != NULL};
    cvy_blocking layout;
    cvy_kernel_ask ask = {.threads = 2, .space = space};
    static float memory[CVY_NODE_SRC_MAX][ROOM];
    struct memory at[CVY_NODE_SRC_MAX], work;
    void *state = NULL, *src[CVY_NODE_SRC_MAX] = {NULL}, *dst[CVY_NODE_DST_MAX] = {NULL};
    double lr = 0, scale = 0.5, result[ELEMS], scratch[8];
    int64_t step = 0;
    EXPECT_OK(open_update(&b, row, CVY_DTYPE_F32));
    ask.node = b.node;
    ask.src[0] = cvy_layout_make(tag);
    EXPECT_OK(kernel->offer(&ask));
    EXPECT_OK(cvy_blocking_make(&ask.src[0], &shape, &layout));
    EXPECT(layout.elems <= ROOM);
    EXPECT(ask.scratch_bytes <= sizeof scratch);
    memset(memory, 0, sizeof memory);
    for (int i = 0; i < ELEMS; i++)
        memory[0][place(&layout, i)] = (float)weight_at(i);
    for (int i = 0; i < b.node->nsrc; i++) {
        void *const of[] = {memory[0], memory[1], &lr, &scale, &step};
        const int is_scalar = i >= 2 && i <= 4;
        src[i] = memory_open(&at[i], space, i < 5 ? of[i] : memory[i],
                             is_scalar ? sizeof(double) : (size_t)layout.elems * sizeof(float));
        EXPECT(is_scalar || cvy_layout_equal(&ask.src[i], &ask.src[0]));
    }
    for (int i = 0; i < b.node->ndst; i++)
        if (b.node->dst[i])
            dst[i] = src[i ? 4 + i : 0];
    memory_open(&work, space, scratch, ask.scratch_bytes);
    EXPECT_OK(kernel->create(&ask, &state));
    for (; step < STEPS; step++) {
        lr = lr_at(row, step);
        for (int i = 0; i < ELEMS; i++)
            memory[1][place(&layout, i)] = (float)gradient_at(i, (int)step);
        for (int i = 1; i < 5; i++)
            memory_push(&at[i]);
        EXPECT_OK(kernel->run(state, src, dst, work.there));
        for (int i = 0; i < b.node->nsrc; i++)
            memory_pull(&at[i]);
        for (int i = 0; i < ELEMS; i++)
            add_weight(&average, i, step, memory[0][place(&layout, i)]);
    }
    kernel->destroy(state);
    for (int i = 0; i < ELEMS; i++)
        result[i] = memory[0][place(&layout, i)];
    check(row, kernel->name, result, 2e-6);
    for (int i = 0; i < ELEMS && average.is_on; i++)
        check_average(row, kernel->name, i, memory[b.node->nsrc - 1][place(&layout, i)], average.at[i], 2e-7);
    memory_close(&work);
    for (int m = 0; m < b.node->nsrc; m++) {
        memory_close(&at[m]);
        for (int i = 0; i < ELEMS; i++)
            memory[m][place(&layout, i)] = 0;
        for (int i = 0; i < ROOM; i++)
            EXPECT(memory[m][i] == 0);
    }
    close_update(&b);
}

/* Returns the number of fast kernels: those of the host, plus 100 for each of a GPU. */
static int compare(const struct row *row, int is_bias)
{
    int nkernel = 0, found = 0;
    const cvy_kernel_def *const *table = cvy_kernel_table(&nkernel);
    plain_kernel(row, is_bias);
    for (int k = 0; k < nkernel; k++) {
        if (strcmp(table[k]->op, row->op) != 0)
            continue;
        if (cvy_kernel_fits(table[k], NULL)) {
            fast_kernel(row, is_bias, table[k], "", NULL);
            fast_kernel(row, is_bias, table[k], "AB4b8a", NULL);
            found++;
        }
        if (cvy_kernel_fits(table[k], &device)) {
            fast_kernel(row, is_bias, table[k], "", &device);
            fast_kernel(row, is_bias, table[k], "ba", &device);
            found += 100;
        }
    }
    return found;
}

/* A running average of the weight changes nothing else. */
static void compare_all(const struct row *rows_of, int count, int is_bias)
{
    for (int i = 0; i < count; i++) {
        struct row with = rows_of[i];
        char options[200];
        snprintf(options, sizeof options, "%s%saverage: 0.1", with.options, *with.options ? ", " : "");
        EXPECT(compare(&rows_of[i], is_bias) >= 101);
        with.options = options;
        EXPECT(compare(&with, is_bias) >= 101);
    }
}

static void updates_equal_pytorch(void)
{
    compare_all(rows, CVY_COUNT(rows), 0);
    compare_all(bias_rows, CVY_COUNT(bias_rows), 1);
}

/* ---- a weight of many pieces ---- */

enum { LARGE = 50021 }; /* six pieces and a part of one */
static const cvy_shape large = {1, {LARGE}};

/* Runs two steps on a large weight in f32. If kernel is NULL, the reference kernel is used. */
static void run_large(const struct row *row, const cvy_kernel_def *kernel, const cvy_space *space, int threads,
                      float *weight)
{
    struct update_graph b = {0};
    cvy_kernel_ask ask = {.threads = threads, .space = space};
    static float gradient[LARGE], kept[3][LARGE];
    static double scratch[2000];
    double lr = 0.5, scale = 0.25;
    int64_t step = 0;
    void *state = NULL, *src[] = {weight, gradient, &lr, &scale, &step, kept[0], kept[1], kept[2]},
         *dst[] = {weight, kept[0], kept[1], kept[2]};
    cvy_span from[CVY_COUNT(src)] = {{0}}, to[CVY_COUNT(dst)] = {{0}};
    struct memory at[CVY_COUNT(src)], work;
    EXPECT_OK(open_update_of(&b, row, CVY_DTYPE_F32, &large));
    ask.node = b.node;
    for (int i = 0; i < CVY_COUNT(src); i++)
        from[i] = (cvy_span){.dtype = CVY_DTYPE_F32, .ndim = 1, .dim = {LARGE}, .elems = LARGE, .data = src[i]};
    to[0] = from[0];
    for (int i = 1; i < CVY_COUNT(dst); i++)
        to[i] = from[4 + i];
    EXPECT(b.node->nsrc <= CVY_COUNT(src));
    if (kernel) {
        EXPECT_OK(kernel->offer(&ask));
        EXPECT(ask.scratch_bytes <= sizeof scratch);
        EXPECT_OK(kernel->create(&ask, &state));
    }
    memset(kept, 0, sizeof kept);
    for (int i = 0; i < LARGE; i++)
        weight[i] = (float)weight_at(i);
    for (int i = 0; i < CVY_COUNT(src); i++)
        src[i] = memory_open(&at[i], space, src[i], i >= 2 && i <= 4 ? sizeof(double) : sizeof gradient);
    for (int i = 0; i < CVY_COUNT(dst); i++)
        dst[i] = src[i ? 4 + i : 0];
    memory_open(&work, space, scratch, ask.scratch_bytes);
    for (; step < 2; step++) {
        for (int i = 0; i < LARGE; i++)
            gradient[i] = (float)gradient_at(i, (int)step);
        memory_push(&at[CVY_OPTIM_GRADIENT]);
        memory_push(&at[CVY_OPTIM_STEP]);
        EXPECT_OK(kernel ? kernel->run(state, src, dst, work.there) : b.node->op->reference(b.node, from, to));
    }
    memory_pull(&at[0]);
    if (kernel)
        kernel->destroy(state);
    for (int i = 0; i < CVY_COUNT(src); i++)
        memory_close(&at[i]);
    memory_close(&work);
    close_update(&b);
}

/* The bits of an element do not depend on where a thread's range ends. */
static void same_bits_by_any_number_of_threads(void)
{
    static float one[LARGE], more[LARGE];
    int count = 0, compared = 0;
    const cvy_kernel_def *const *table = cvy_kernel_table(&count);
    for (int r = 0; r < CVY_COUNT(rows); r++)
        for (int k = 0; k < count; k++) {
            if (strcmp(table[k]->op, rows[r].op) != 0 || !cvy_kernel_fits(table[k], NULL))
                continue;
            run_large(&rows[r], table[k], NULL, 1, one);
            for (int threads = 2; threads <= 5; threads++, compared++) {
                run_large(&rows[r], table[k], NULL, threads, more);
                EXPECT(memcmp(one, more, sizeof one) == 0);
            }
        }
    EXPECT(compared >= 4 * CVY_COUNT(rows));
}

static const cvy_kernel_def *kernel_of(const char *op, const cvy_space *space)
{
    int count = 0;
    const cvy_kernel_def *const *table = cvy_kernel_table(&count);
    for (int i = 0; i < count; i++)
        if (strcmp(table[i]->op, op) == 0 && cvy_kernel_fits(table[i], space))
            return table[i];
    return NULL;
}

static double difference(const float *a, const float *b)
{
    double worst = 0;
    for (int i = 0; i < LARGE; i++)
        worst = fmax(worst, fabs((double)a[i] - b[i]) / fmax(1, fabs((double)b[i])));
    return worst;
}

/* The norms and the update have the same bits for any number of threads. The update agrees with that of the reference
 * kernel. */
static void norms_are_summed_in_a_fixed_order(void)
{
    static const struct row with_norms[] = {
        {.op = "lars", .options = "trust_coefficient: 0.3, weight_decay: 0.01"},
        {.op = "lamb", .options = "weight_decay: 0.01"},
    };
    static float plain[LARGE], one[LARGE], more[LARGE];
    for (int r = 0; r < CVY_COUNT(with_norms); r++) {
        const struct row *row = &with_norms[r];
        const cvy_kernel_def *kernel = kernel_of(row->op, NULL);
        EXPECT(kernel != NULL);
        if (!kernel)
            return;
        run_large(row, NULL, NULL, 1, plain);
        run_large(row, kernel, NULL, 1, one);
        EXPECT(difference(one, plain) <= 2e-6);
        EXPECT(fabs(plain[2] - weight_at(2)) > 1e-2); /* the weight has changed */
        for (int threads = 2; threads <= 4; threads++) {
            run_large(row, kernel, NULL, threads, more);
            EXPECT(memcmp(one, more, sizeof one) == 0);
        }
    }
}

/* A device is no further from the reference kernel than the host is, and its bits do not depend on the order of threads
 * and blocks. */
static void a_device_updates_as_the_reference_does(void)
{
    static float plain[LARGE], one[LARGE], more[LARGE];
    for (int r = 0; r < CVY_COUNT(rows); r++) {
        const cvy_kernel_def *kernel = kernel_of(rows[r].op, &device);
        EXPECT(kernel != NULL);
        if (!kernel)
            return;
        run_large(&rows[r], NULL, NULL, 1, plain);
        for (int order = 0; order < CVY_EMULATED_ANY; order++) {
            cvy_emulated_setup_now.order = order;
            run_large(&rows[r], kernel, &device, 1, order ? more : one);
            EXPECT(order == 0 || memcmp(one, more, sizeof one) == 0);
        }
        const double worst = difference(one, plain);
        run_large(&rows[r], kernel_of(rows[r].op, NULL), NULL, 1, more);
        if (worst > 1e-6 + 1.5 * difference(more, plain))
            printf("%s {%s}: %g\n", rows[r].op, rows[r].options, worst);
        EXPECT(worst <= 1e-6 + 1.5 * difference(more, plain));
    }
}

/* A state is named after its weight and belongs to it. The next graph over the same variables finds it again. */
static void states_belong_to_weights(void)
{
    struct update_graph b = {0};
    EXPECT_OK(open_update(&b, &(struct row){.op = "adam", .options = ""}, CVY_DTYPE_F32));
    const cvy_variable *m = cvy_vars_find(b.vars, "layer.weight.exp_avg"),
                       *v = cvy_vars_find(b.vars, "layer.weight.exp_avg_sq");
    EXPECT(m && v);
    EXPECT_INT(m->role, CVY_ROLE_STATE);
    EXPECT(m->of == cvy_vars_find(b.vars, "layer.weight"));
    EXPECT_INT(b.vars->count, 3);
    close_update(&b);
    memset(&b, 0, sizeof b);
    EXPECT_OK(open_update(&b, &(struct row){.op = "sgd", .options = "momentum: 0"}, CVY_DTYPE_F32));
    EXPECT_INT(b.vars->count, 1);
    close_update(&b);
    memset(&b, 0, sizeof b);
    EXPECT_FAULT(open_update(&b, &(struct row){.op = "sgd", .options = "momentum: 0, nesterov: true"}, CVY_DTYPE_F32),
                 CVY_E_CONFIG, "momentum above 0");
    close_update(&b);
    memset(&b, 0, sizeof b);
    EXPECT_FAULT(open_update(&b, &(struct row){.op = "sgd", .options = "momentum: 0.9, lookahead: 1"}, CVY_DTYPE_F32),
                 CVY_E_CONFIG, "needs nesterov: true");
    close_update(&b);
}

int main(void)
{
    EXPECT_OK(cvy_space_open_def(&cvy_emulated_backend, NULL, &device));
    TEST(updates_equal_pytorch);
    TEST(same_bits_by_any_number_of_threads);
    TEST(norms_are_summed_in_a_fixed_order);
    TEST(a_device_updates_as_the_reference_does);
    TEST(states_belong_to_weights);
    cvy_space_close(&device);
    return test_end();
}
