/* rows: clang asan onednn3 minimal */
/*
 * test_op_batch_norm.c: batch norm over groups of samples gives one result for any number of ranks.
 *
 * It checks which groups there are, and it evaluates a layer as one to five ranks in which groups span ranks, some
 * ranks have no sample, and the last group is short.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/graph_eval.h"
#include "op/norm/op_batch_norm.h"
#include "pass/pass.h"

enum { RANKS_MAX = 5, C = 3, P = 2 };

static cvy_graph geometry_graph(int64_t n, int64_t group, int rank, int nranks)
{
    return (cvy_graph){.batch = cvy_batch_share(n, rank, nranks), .bn_group = group};
}

static void geometry(void)
{
    cvy_graph g = geometry_graph(10, 4, 0, 1);
    cvy_bn_groups b = cvy_bn_groups_make(&g);
    int64_t first, last;
    EXPECT_INT(b.count, 3);
    EXPECT_INT(b.spans, 0);
    EXPECT_INT(cvy_bn_group_samples(&b, 0), 3);
    EXPECT_INT(cvy_bn_group_samples(&b, 2), 4);

    g = geometry_graph(8, 4, 1, 2); /* each rank has whole groups */
    b = cvy_bn_groups_make(&g);
    EXPECT_INT(b.spans, 0);
    EXPECT_INT(b.count, 1);
    EXPECT_INT(cvy_bn_group_begin(&b, 0), 4);

    g = geometry_graph(10, 4, 1, 2); /* the ranks have 5 and 5 samples, the groups 3, 3 and 4 */
    b = cvy_bn_groups_make(&g);
    EXPECT_INT(b.spans, 1);
    EXPECT_INT(b.count, 3);
    cvy_bn_group_local(&b, 0, &first, &last);
    EXPECT(first >= last);
    cvy_bn_group_local(&b, 1, &first, &last);
    EXPECT_INT(first, 0);
    EXPECT_INT(last, 1);
    cvy_bn_group_local(&b, 2, &first, &last);
    EXPECT_INT(first, 1);
    EXPECT_INT(last, 5);
    EXPECT(!cvy_bn_group_is_mine(&b, 1) && cvy_bn_group_is_mine(&b, 2));

    g = geometry_graph(10, 4, 1, 3); /* ranks and groups have the same 3, 3 and 4 samples */
    b = cvy_bn_groups_make(&g);
    EXPECT_INT(b.spans, 0);
    EXPECT_INT(b.count, 1);
    EXPECT_INT(cvy_bn_group_begin(&b, 0), 3);

    g = geometry_graph(4, 32, 0, 2); /* a group longer than the batch becomes the batch */
    b = cvy_bn_groups_make(&g);
    EXPECT_INT(cvy_bn_group_samples(&b, 0), 4);
    EXPECT_INT(b.spans, 1);

    g = geometry_graph(10, -1, 2, 3); /* the group is the rank's share */
    b = cvy_bn_groups_make(&g);
    EXPECT_INT(b.spans, 0);
    EXPECT_INT(b.count, 1);
    EXPECT_INT(cvy_bn_group_samples(&b, 0), 4);

    g = geometry_graph(1, 1, 0, 2); /* this rank has no sample */
    b = cvy_bn_groups_make(&g);
    EXPECT_INT(b.spans, 0);
    EXPECT_INT(b.count, 0);
}

/* All ranks must agree on whether groups span ranks. Every group must be counted once, and ranks must cover it
 * completely. Groups have at most the given size and differ by one sample at most; none has a single sample, unless a
 * group may have no more, or there is only one. */
static void geometry_covers(void)
{
    for (int64_t n = 1; n <= 130; n += n < 12 ? 1 : 7)
        for (int64_t group = 0; group <= 33; group += group < 13 ? 1 : 10)
            for (int nranks = 1; nranks <= RANKS_MAX; nranks++) {
                int64_t counted = 0, covered = 0, spans = -1, total = 0;
                for (int r = 0; r < nranks; r++) {
                    const cvy_graph g = geometry_graph(n, group, r, nranks);
                    const cvy_bn_groups b = cvy_bn_groups_make(&g);
                    EXPECT(spans < 0 || spans == b.spans);
                    spans = b.spans;
                    total = b.total;
                    for (int64_t i = 0; i < b.count; i++) {
                        const int64_t samples = cvy_bn_group_samples(&b, i);
                        int64_t first, last;
                        cvy_bn_group_local(&b, i, &first, &last);
                        counted += cvy_bn_group_is_mine(&b, i);
                        covered += CVY_MAX(last - first, 0);
                        EXPECT(spans || last - first == samples);
                        EXPECT(samples == n / total || samples == n / total + 1);
                        EXPECT(group == 0 || samples <= CVY_MAX(group, group == 2 ? 3 : 1));
                        EXPECT(samples > 1 || group == 1 || n == 1);
                    }
                }
                EXPECT_INT(counted, total);
                EXPECT_INT(covered, n);
            }
}

/* ---- the layer on several ranks ---- */

struct result {
    double dst[12 * C * P], dsrc[12 * C * P], dscale[C], dshift[C], mean[C], var[C];
};

struct rank {
    cvy_vars *vars;
    cvy_graph *graph;
    cvy_value *src, *dst;
    cvy_gradients gradients;
};

/* batch_norm -> tanh -> batch_norm: the gradients of the first layer's scale and shift pass through the statistics of
 * the second layer. */
static cvy_status open_rank(int64_t n, int64_t group, int r, int nranks, struct rank *out)
{
    const cvy_shape sample = {.ndim = 2, .dim = {C, P}};
    const cvy_graph_opts opts = {
        .name = "bn", .batch = cvy_batch_share(n, r, nranks), .training = 1, .dtype = CVY_DTYPE_F64, .bn_group = group};
    cvy_value *from[2] = {NULL, NULL}, *before = NULL;
    cvy_node *loss = NULL;
    *out = (struct rank){0};
    CVY_TRY(cvy_vars_create(&out->vars));
    CVY_TRY(cvy_graph_create(out->vars, &opts, &out->graph));
    CVY_TRY(cvy_graph_feed(out->graph, "x", CVY_DTYPE_F64, &sample, 0, &out->src));
    CVY_TRY(cvy_graph_layer(out->graph, "batch_norm", "before", NULL, &out->src, 1, &before));
    CVY_TRY(cvy_graph_layer(out->graph, "tanh", "bend", NULL, &before, 1, &before));
    CVY_TRY(cvy_graph_layer(out->graph, "batch_norm", "bn", NULL, &before, 1, &out->dst));
    from[0] = out->dst;
    CVY_TRY(cvy_graph_feed(out->graph, "weights", CVY_DTYPE_F64, &sample, 0, &from[1]));
    CVY_TRY(
        cvy_graph_add_parsed(out->graph, &cvy_weighted_sum_op, "loss", "loss", NULL, from, 2, CVY_PHASE_MICRO, &loss));
    return cvy_pass_autodiff(out->graph, &loss->dst[0], 1, NULL, NULL, &out->gradients);
}

static void fill_rank(const struct rank *rank, cvy_eval *e, int64_t first)
{
    const cvy_graph *g = rank->graph;
    for (int v = 0; v < g->nvalue; v++) {
        const cvy_value *value = g->value[v];
        for (int64_t i = 0; !value->producer && i < e->at[v].elems; i++) {
            const int64_t at = value->kind == CVY_VALUE_FEED ? first * C * P + i : i + 1000;
            cvy_set(&e->at[v], i, 1.5 + sin((double)(at * at % 97) + (value == rank->src ? 0 : 20)));
        }
    }
}

static void copy_out(const cvy_eval *e, const cvy_value *v, double *out)
{
    for (int64_t i = 0; i < cvy_eval_of(e, v)->elems; i++)
        out[i] = cvy_get(cvy_eval_of(e, v), i);
}

static void collect(const struct rank *rank, const cvy_eval *e, int64_t first, struct result *out)
{
    for (int64_t i = 0; i < cvy_eval_of(e, rank->dst)->elems; i++)
        out->dst[first * C * P + i] = cvy_get(cvy_eval_of(e, rank->dst), i);
    copy_out(e, cvy_graph_find(rank->graph, "bn.running"), out->mean);
    copy_out(e, cvy_graph_find(rank->graph, "bn.running:1"), out->var);
    for (int i = 0; i < rank->gradients.count; i++) {
        if (strcmp(rank->gradients.at[i].variable->name, "before.scale") == 0)
            copy_out(e, rank->gradients.at[i].value, out->dscale);
        if (strcmp(rank->gradients.at[i].variable->name, "before.shift") == 0)
            copy_out(e, rank->gradients.at[i].value, out->dshift);
    }
}

static void run_ranks(int64_t n, int64_t group, int nranks, struct result *out)
{
    struct rank rank[RANKS_MAX];
    cvy_eval e[RANKS_MAX] = {{0}};
    memset(out, 0, sizeof *out);
    for (int r = 0; r < nranks; r++) {
        EXPECT_OK(open_rank(n, group, r, nranks, &rank[r]));
        EXPECT_OK(cvy_eval_create(rank[r].graph, &e[r]));
        EXPECT_INT(rank[r].graph->nnode, rank[0].graph->nnode);
        EXPECT_INT(rank[r].gradients.count, 4);
        fill_rank(&rank[r], &e[r], rank[r].graph->batch.first);
    }
    EXPECT_OK(cvy_eval_run(e, nranks));
    for (int r = 0; r < nranks; r++) {
        collect(&rank[r], &e[r], rank[r].graph->batch.first, out);
        cvy_eval_destroy(&e[r]);
        cvy_graph_destroy(&rank[r].graph);
        cvy_vars_destroy(&rank[r].vars);
    }
}

static void any_ranks(void)
{
    static const struct {
        int64_t n, group;
    } jobs[] = {{10, 4}, {12, 3}, {10, 0}, {10, 32}, {3, 2}};
    for (int j = 0; j < CVY_COUNT(jobs); j++) {
        struct result one, many;
        run_ranks(jobs[j].n, jobs[j].group, 1, &one);
        EXPECT(fabs(one.dscale[0]) > 1e-6 && fabs(one.mean[0]) > 1e-6);
        for (int nranks = 2; nranks <= RANKS_MAX; nranks++) {
            run_ranks(jobs[j].n, jobs[j].group, nranks, &many);
            for (int64_t i = 0; i < jobs[j].n * C * P; i++)
                EXPECT_NEAR(many.dst[i], one.dst[i], 1e-12);
            for (int c = 0; c < C; c++) {
                EXPECT_NEAR(many.dscale[c], one.dscale[c], 1e-12);
                EXPECT_NEAR(many.dshift[c], one.dshift[c], 1e-12);
                EXPECT_NEAR(many.mean[c], one.mean[c], 1e-13);
                EXPECT_NEAR(many.var[c], one.var[c], 1e-13);
            }
        }
    }
}

/* What the running statistics must be after a step, by the definition: of each group of consecutive samples the mean
 * and the unbiased variance, each weighed by the number of values. test_program_batch_norm.c has samples of weight 0.
 */
static void define(const cvy_span *x, int64_t n, int64_t total, int c, double out[2])
{
    double sum[2] = {0, 0}, weights = 0;
    for (int64_t g = 0; g < total; g++) {
        const int64_t begin = n * g / total, end = n * (g + 1) / total;
        const double values = (double)((end - begin) * P);
        double mean = 0, squares = 0;
        for (int64_t i = begin * P; i < end * P; i++)
            mean += cvy_get(x, (i / P * C + c) * P + i % P) / values;
        for (int64_t i = begin * P; i < end * P; i++)
            squares += pow(cvy_get(x, (i / P * C + c) * P + i % P) - mean, 2);
        sum[0] += values * mean;
        sum[1] += values * squares / (values - 1);
        weights += values;
    }
    for (int s = 0; s < 2; s++)
        out[s] = sum[s] / weights;
}

/* The running statistics are 0.9 * before + 0.1 * those of the step. A remainder is spread over the groups. */
static void running_statistics(void)
{
    static const struct {
        int64_t n, group, total;
    } jobs[] = {{3, 2, 1}, {5, 2, 2}, {5, 4, 2}, {9, 4, 3}, {12, 4, 3}, {10, 3, 4}, {11, 0, 1}, {7, -1, 1}};
    for (int j = 0; j < CVY_COUNT(jobs); j++) {
        struct rank rank;
        cvy_eval e = {0};
        EXPECT_OK(open_rank(jobs[j].n, jobs[j].group, 0, 1, &rank));
        EXPECT_OK(cvy_eval_create(rank.graph, &e));
        fill_rank(&rank, &e, 0);
        EXPECT_OK(cvy_eval_run(&e, 1));
        for (int c = 0; c < C; c++) {
            static const char *const before[] = {"before.running_mean", "before.running_var"}, *const after[] = {
                                                                                                   "before.running",
                                                                                                   "before.running:1"};
            double step[2];
            define(cvy_eval_of(&e, rank.src), jobs[j].n, jobs[j].total, c, step);
            for (int s = 0; s < 2; s++)
                EXPECT_NEAR(cvy_get(cvy_eval_of(&e, cvy_graph_find(rank.graph, after[s])), c),
                            0.9 * cvy_get(cvy_eval_of(&e, cvy_graph_find(rank.graph, before[s])), c) + 0.1 * step[s],
                            1e-13);
        }
        cvy_eval_destroy(&e);
        cvy_graph_destroy(&rank.graph);
        cvy_vars_destroy(&rank.vars);
    }
}

/* One value for each channel has no variance. A rank without samples has nothing to refuse. */
static void lone_samples(void)
{
    static const struct {
        int64_t n, group, positions;
        int rank, nranks, refused;
    } cases[] = {{1, 32, 1, 0, 1, 1}, {1, 32, 2, 0, 1, 0},  {4, 1, 1, 0, 1, 1},  {4, 1, 2, 0, 1, 0},
                 {2, 32, 1, 0, 2, 0}, {2, -1, 1, 0, 2, 1},  {3, -1, 1, 0, 2, 1}, {3, -1, 1, 1, 2, 0},
                 {1, -1, 1, 0, 2, 0}, {33, 32, 1, 0, 1, 0}, {3, 2, 1, 0, 1, 0},  {1, 0, 1, 0, 2, 0}};
    for (int i = 0; i < CVY_COUNT(cases); i++) {
        const cvy_shape sample = {.ndim = 2, .dim = {C, cases[i].positions}};
        const cvy_graph_opts opts = {.name = "bn",
                                     .batch = cvy_batch_share(cases[i].n, cases[i].rank, cases[i].nranks),
                                     .training = 1,
                                     .dtype = CVY_DTYPE_F64,
                                     .bn_group = cases[i].group};
        cvy_vars *vars = NULL;
        cvy_graph *g = NULL;
        cvy_value *src = NULL, *dst = NULL;
        EXPECT_OK(cvy_vars_create(&vars));
        EXPECT_OK(cvy_graph_create(vars, &opts, &g));
        EXPECT_OK(cvy_graph_feed(g, "x", CVY_DTYPE_F64, &sample, 0, &src));
        EXPECT_OK(cvy_graph_layer(g, "batch_norm", "bn", NULL, &src, 1, &dst));
        EXPECT_INT(cvy_graph_check_batch(g), cases[i].refused ? CVY_E_CONFIG : CVY_OK);
        cvy_graph_destroy(&g);
        cvy_vars_destroy(&vars);
    }
}

int main(void)
{
    TEST(geometry);
    TEST(geometry_covers);
    TEST(any_ranks);
    TEST(running_statistics);
    TEST(lone_samples);
    return test_end();
}
