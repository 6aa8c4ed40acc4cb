/* ranks: 2 3 4 8 */
/*
 * test_program_split.c: ranks that share layers (tensor) or samples (spatial), alone, with each other, with stages of a
 * pipeline and with a data axis, give the losses and weights of one rank: convolutions with strides, dilation and
 * groups, transposed convolutions, pooling, batch norm, dropout, skip connections, losses over positions, sizes that do
 * not divide, clipping and several optimisers. Each rank has memory for its part only. Overlap of halo exchanges
 * changes the order of the nodes and no bit.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "program/split_util.h"

/* All grids are compared with one training on one rank, which takes longer than a training on a grid. */
static void as_on_one_rank(const struct grid *grids, int ngrids)
{
    static const struct way ways[] = {{12, 1, "sgd", 0, {0}},
                                      {12, 2, "adam", 0, {0}},
                                      {5, 2, "sgd", 0.05, {0}},
                                      {12, 1, "lars", 0, {0}},
                                      {12, 2, "lamb", 0.05, {0}}};
    static const struct grid none = {1, 1, {1, 1}};
    static const make_fn networks[] = {residual, decoder, maps};
    static struct trained one, many;
    for (int n = 0; n < CVY_COUNT(networks); n++)
        for (int i = n == 2 ? 1 : 0; i < (n == 2 ? 2 : n == 1 ? 3 : CVY_COUNT(ways)); i++)
            for (int d = i == 0 ? 0 : 1; d < 2; d++) { /* f32 with the first way only: the test takes long */
                const cvy_dtype dtype = d ? CVY_DTYPE_F64 : CVY_DTYPE_F32;
                train(alone, networks[n], &ways[i], &none, dtype, &one);
                for (int k = 0; k < ngrids; k++) {
                    if (i >= 3 && grids[k].tensor == 1) /* the norms are those of one rank */
                        continue;
                    train(all, networks[n], &ways[i], &grids[k], dtype, &many);
                    compare(&many, &one, d ? 1e-12 : 1e-4);
                    end(&many);
                }
                end(&one);
            }
}

/* Some layers are split by channels, and ranks share the samples of others, also if some have none. */
static void samples_and_channels(const struct grid *grids, int ngrids)
{
    static const char *const layers[] = {"fc1, fc2", "b, c, fc1", "auto"};
    struct way way = {5, 2, "adam", 0.05, {.batch_norm_group = 2}};
    static const struct grid none = {1, 1, {1, 1}};
    static struct trained one, many;
    train(alone, residual, &way, &none, CVY_DTYPE_F64, &one);
    for (int g = 0; g < ngrids; g++)
        for (int i = 0; i < CVY_COUNT(layers) && grids[g].tensor > 1; i++) {
            way.opts.tensor_layers = layers[i];
            train(all, residual, &way, &grids[g], CVY_DTYPE_F64, &many);
            EXPECT(many.program->ways.nsamples > 0);
            compare(&many, &one, 1e-12);
            end(&many);
        }
    end(&one);
}

/* The computing nodes between the starts of halo exchanges and their waits. */
static int count_between(const cvy_graph *g)
{
    int n = 0, under_way = 0;
    for (int i = 0; i < g->nnode; i++) {
        const cvy_node *node = g->node[i];
        if (node->removed)
            continue;
        under_way += node->op == cvy_op_find("redistribute_start");
        under_way -= node->op == cvy_op_find("redistribute_wait");
        n += under_way > 0 && !node->op->comm;
    }
    EXPECT(under_way == 0);
    return n;
}

/* With overlap the gradient of each weight of a convolution is computed beside the exchange of its source's gradient;
 * the bits are those without overlap. */
static void with_overlap(void)
{
    static const struct grid halves = {1, 1, {2, 1}};
    static struct trained on, off;
    train(all, residual, &(struct way){4, 1, "sgd", 0, {0}}, &halves, CVY_DTYPE_F32, &on);
    train(all, residual, &(struct way){4, 1, "sgd", 0, {.passes_off = "overlap"}}, &halves, CVY_DTYPE_F32, &off);
    for (int i = 0; i < STEPS; i++)
        EXPECT(on.loss[i] == off.loss[i]);
    EXPECT(count_between(cvy_program_task_plan(on.program, 0)->lowered[0]->graph) >= 2); /* of the layers b and c */
    EXPECT(count_between(cvy_program_task_plan(off.program, 0)->lowered[0]->graph) == 0);
    end(&off);
    end(&on);
}

int main(int argc, char **argv)
{
    enum { GRIDS_MAX = 64 };
    static struct grid grids[GRIDS_MAX];
    int ngrids = 0;
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &all));
    /* One thread, because all ranks compute the expected values at the same time. */
    EXPECT_OK(cvy_context_create(&(cvy_context_opts){.size = sizeof(cvy_context_opts), .threads = 1}, &alone));
    const int nranks = cvy_context_nranks(all);
    if (nranks == 2)
        with_overlap();
    for (int64_t pipeline = 1; pipeline <= nranks; pipeline++)
        for (int64_t tensor = 1; tensor <= nranks; tensor++)
            for (int64_t height = 1; height <= nranks; height++)
                for (int64_t width = 1; width <= nranks; width++) {
                    const int axes = (pipeline > 1) + (tensor > 1) + (height * width > 1);
                    if (nranks % (pipeline * tensor * height * width) == 0 && tensor * height * width > 1 &&
                        (nranks < 8 || (axes == 3 && height * width == 2)) && ngrids < GRIDS_MAX)
                        grids[ngrids++] = (struct grid){pipeline, tensor, {height, width}};
                }
    EXPECT(ngrids > 0 && ngrids < GRIDS_MAX);
    as_on_one_rank(grids, ngrids);
    samples_and_channels(grids, ngrids);
    cvy_context_destroy(&all);
    cvy_context_destroy(&alone);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
