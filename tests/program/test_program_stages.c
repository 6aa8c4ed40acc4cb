/* ranks: 2 3 4 */
/*
 * test_program_stages.c: a pipeline gives the losses and weights of one rank: with skip connections across stages,
 * batch norm, dropout, losses on several stages, both orders of micro-batches, several optimisers, clipping, and with
 * stages of several ranks, and with several stages on each rank; each has memory for its own weights only.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "program/stages_util.h"

/* Each number of stages is compared with the same training on one rank. */
static void as_on_one_rank(void)
{
    static const struct way ways[] = {
        {12, 4, "sgd", "1f1b", 0}, {12, 4, "adam", "gpipe", 0}, {13, 5, "sgd", NULL, 0.05},
        {12, 1, "lars", NULL, 0},  {3, 2, "adam", NULL, 0.5}, /* micro-batches of 2 and 1: with several ranks a stage,
                                                                 one of them has no sample */
    };
    static struct trained one, many;
    const int nranks = cvy_context_nranks(all);
    for (int i = 0; i < CVY_COUNT(ways); i++)
        for (int d = 0; d < 2; d++) {
            const cvy_dtype dtype = d ? CVY_DTYPE_F64 : CVY_DTYPE_F32;
            train(alone, &ways[i], &(cvy_program_opts){0}, dtype, &one);
            for (int stages = 2; stages <= nranks; stages++) {
                if (nranks % stages != 0)
                    continue;
                train(all, &ways[i], &(cvy_program_opts){.pipeline = stages}, dtype, &many);
                int mine = compare(&many, &one, d ? 1e-12 : 1e-4), sum = 0;
                MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
                EXPECT_INT(sum, 11 * nranks / stages); /* each weight is on one stage */
                end(&many);
            }
            end(&one);
        }
}

/* Compares a training on interleaved stages with one on one rank. Stage s is on rank s % nranks. */
static void interleaved(const struct way *way, int64_t stages, int64_t each, const struct trained *one)
{
    static struct trained many;
    train(all, way, &(cvy_program_opts){.pipeline = stages, .interleave = each}, CVY_DTYPE_F64, &many);
    const int n = many.program->pipeline.nstages;
    EXPECT_INT(n, stages * each);
    compare(&many, one, 1e-12);
    for (int s = 1; s < n; s++)
        EXPECT(many.program->pipeline.first[s] > many.program->pipeline.first[s - 1]);
    const cvy_variable *first = cvy_vars_find(cvy_program_vars(many.program), "a.weight"),
                       *last = cvy_vars_find(cvy_program_vars(many.program), "fc.weight");
    const int on = cvy_index_find(&many.program->pipeline.of_layer, "fc") % (int)stages;
    EXPECT_INT(first->elsewhere, cvy_program_grid(many.program)->stage != 0);
    EXPECT_INT(last->elsewhere, cvy_program_grid(many.program)->stage != on);
    end(&many);
}

/* 12 micro-batches are a multiple of 2, 3 and 4 ranks. */
static void all_interleaved(void)
{
    static const struct way ways[] = {{24, 12, "adam", "1f1b", 0.05},
                                      {24, 12, "sgd", "gpipe", 0},
                                      {13, 5, "sgd", NULL, 0},
                                      {12, 1, "lars", NULL, 0},
                                      {12, 4, "sgd", NULL, 0}};
    static struct trained one;
    const int nranks = cvy_context_nranks(all);
    for (int i = 0; i < CVY_COUNT(ways); i++) {
        train(alone, &ways[i], &(cvy_program_opts){0}, CVY_DTYPE_F64, &one);
        for (int stages = 2; stages <= nranks; stages++)
            for (int each = 2; nranks % stages == 0 && (each == 2 || stages * each <= 6); each++)
                interleaved(&ways[i], stages, each, &one);
        end(&one);
    }
}

static void refused(void)
{
    const int nranks = cvy_context_nranks(all);
    cvy_program_opts opts = {.size = sizeof opts, .pipeline = nranks + 1};
    cvy_program *p = NULL;
    EXPECT_FAULT(cvy_program_create(all, &opts, &p), CVY_E_CONFIG, "the number of ranks must be a multiple");
    opts.pipeline = nranks;
    opts.interleave = -1;
    EXPECT_FAULT(cvy_program_create(all, &opts, &p), CVY_E_CONFIG, "opts.interleave is -1");
    opts.interleave = 0;
    opts.pipeline_order = "2f2b";
    EXPECT_FAULT(cvy_program_create(all, &opts, &p), CVY_E_CONFIG, "expected 1f1b|gpipe");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &all));
    /* One thread, because all ranks compute the expected values at the same time. */
    EXPECT_OK(cvy_context_create(&(cvy_context_opts){.size = sizeof(cvy_context_opts), .threads = 1}, &alone));
    TEST(as_on_one_rank);
    TEST(all_interleaved);
    TEST(refused);
    cvy_context_destroy(&all);
    cvy_context_destroy(&alone);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
