/* ranks: 2 3 4 6 */
/*
 * test_program_stages_modes.c: a pipeline with each update mode gives the results of that mode on one rank: delayed,
 * deferred and zero1 updates, deterministic training to the bit with any number of ranks of a stage, gradients alone;
 * its checkpoints are read on another grid; evaluation in micro-batches has the outputs of one rank; and modes that do
 * not go with a pipeline are refused.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _DEFAULT_SOURCE
#include <stdlib.h>
#include <unistd.h>

#include "base/base_file.h"
#include "program/program_fill.h"
#include "program/stages_util.h"

static cvy_context *few; /* the first ranks: one for each stage; NULL on other ranks */
static int nstages;

static void as_alone(const struct way *w, const cvy_program_opts *opts, cvy_dtype dtype)
{
    static struct trained one, many;
    cvy_program_opts single = *opts;
    single.pipeline = 1;
    train(alone, w, &single, dtype, &one);
    train(all, w, opts, dtype, &many);
    compare(&many, &one, dtype == CVY_DTYPE_F64 ? 1e-12 : 1e-4);
    end(&many);
    end(&one);
}

static void delayed(void)
{
    static const struct way ways[] = {{12, 4, "sgd", NULL, 0}, {13, 5, "adam", "gpipe", 0.05}, {3, 2, "sgd", NULL, 0}};
    cvy_program_opts opts = {.pipeline = nstages, .update_mode = CVY_UPDATE_DELAYED, .share_weights = 1};
    for (int i = 0; i < CVY_COUNT(ways); i++)
        for (int d = 0; d < 2; d++, opts.interleave = 1 + i % 2)
            as_alone(&ways[i], &opts, d ? CVY_DTYPE_F64 : CVY_DTYPE_F32);
}

static void deferred(void)
{
    static const struct way ways[] = {{12, 4, "sgd", NULL, 0}, {13, 5, "adam", "gpipe", 0}, {3, 1, "lars", NULL, 0}};
    cvy_program_opts opts = {.pipeline = nstages, .overlap = CVY_OVERLAP_FORWARD};
    for (int i = 0; i < CVY_COUNT(ways); i++)
        for (int d = 0; d < 2; d++, opts.interleave = 1 + i % 2)
            as_alone(&ways[i], &opts, d ? CVY_DTYPE_F64 : CVY_DTYPE_F32);
}

/* Numbers are updated one by one, which native kernels do in f32. */
static void zero1(void)
{
    static const struct way ways[] = {{12, 4, "sgd", NULL, 0}, {13, 5, "adam", "gpipe", 0}, {3, 2, "sgd", NULL, 0}};
    static const char *const algorithms[] = {"halving", "ring", NULL};
    for (int i = 0; i < CVY_COUNT(ways); i++) {
        const cvy_program_opts opts = {.pipeline = nstages,
                                       .interleave = 1 + i % 2,
                                       .update_mode = CVY_UPDATE_ZERO1,
                                       .reduce = algorithms[i],
                                       .share_weights = 1};
        as_alone(&ways[i], &opts, CVY_DTYPE_F32);
    }
}

/* The last stage has a loss alone, and in the middle there may be one without any weight. */
static void without_weights(void)
{
    static const struct way usual = {12, 4, "adam", NULL, 0}, clips = {12, 4, "sgd", NULL, 0.05};
    const char *first = nstages == 2 ? "a, late" : "a, pool, late";
    const cvy_program_opts modes[] = {
        {.pipeline = nstages, .first_layers = first},
        {.pipeline = nstages, .first_layers = first, .update_mode = CVY_UPDATE_ZERO1},
        {.pipeline = nstages, .first_layers = first, .update_mode = CVY_UPDATE_DELAYED},
        {.pipeline = nstages, .first_layers = first, .overlap = CVY_OVERLAP_FORWARD},
    };
    for (int i = 0; i < CVY_COUNT(modes); i++)
        as_alone(i == 0 ? &clips : &usual, &modes[i], CVY_DTYPE_F32);
}

/* ---- deterministic ---- */

enum { VALUES_MAX = 1 << 14 };
struct bits {
    double loss[STEPS], value[VALUES_MAX];
};

/* Collects the weights of all stages, from the first rank of each. Other ranks add zeros, so the sums are exact. */
static void read_bits(const struct trained *t, struct bits *out)
{
    static struct bits mine;
    static double plain[4096];
    int n = 0;
    memset(&mine, 0, sizeof mine);
    for (int i = 0; t->program && i < cvy_program_vars(t->program)->count; i++) {
        const cvy_variable *v = cvy_program_vars(t->program)->at[i];
        const int64_t elems = cvy_shape_elems(&v->shape);
        const cvy_span span = {.dtype = v->dtype, .data = plain};
        EXPECT(n + elems <= VALUES_MAX);
        if (!v->elsewhere && cvy_program_grid(t->program)->data_rank == 0) {
            EXPECT_OK(cvy_variable_read(v, plain));
            for (int64_t k = 0; k < elems; k++)
                mine.value[n + k] = cvy_get(&span, k);
        }
        n += (int)elems;
    }
    if (t->program && cvy_program_grid(t->program)->all->rank == 0)
        memcpy(mine.loss, t->loss, sizeof mine.loss);
    MPI_Allreduce(&mine, out, (int)(sizeof mine / sizeof(double)), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void deterministic(void)
{
    static const struct way ways[] = {{24, 1, "sgd", NULL, 0.05}, {17, 1, "adam", "gpipe", 0}};
    static struct bits a, b;
    for (int i = 0; i < CVY_COUNT(ways); i++) {
        const cvy_program_opts opts = {.pipeline = nstages, .interleave = 1 + i, .shards = 8};
        struct trained many = {0}, one_each = {0};
        train(all, &ways[i], &opts, CVY_DTYPE_F32, &many);
        if (few)
            train(few, &ways[i], &opts, CVY_DTYPE_F32, &one_each);
        read_bits(&many, &a);
        read_bits(&one_each, &b);
        for (int s = 0; s < STEPS; s++)
            EXPECT(a.loss[s] == b.loss[s] && a.loss[s] > 0);
        EXPECT(memcmp(a.value, b.value, sizeof a.value) == 0 && a.value[0] != 0);
        for (int s = 0; s < STEPS; s++) /* all ranks know the losses */
            EXPECT(many.loss[s] == a.loss[s]);
        end(&many);
        end(&one_each);
        as_alone(&ways[i], &opts, CVY_DTYPE_F32);
    }
}

/* ---- gradients alone ---- */

static void gradients_only(void)
{
    static const struct way usual = {12, 3, "sgd", NULL, 0}, tiny = {1, 1, "sgd", NULL, 0};
    const cvy_program_opts opts = {.pipeline = nstages, .gradients_only = 1};
    struct trained t = {0};
    if (cvy_context_nranks(all) == nstages)
        as_alone(&usual, &opts, CVY_DTYPE_F64);
    train(all, &tiny, &opts, CVY_DTYPE_F64, &t); /* with several ranks a stage, all but one have no sample */
    double least = t.loss[0], most = t.loss[0];
    cvy_comm *pipeline = cvy_program_grid(t.program)->pipeline;
    EXPECT_OK(pipeline->ops->allreduce(pipeline, &least, 1, CVY_DTYPE_F64, CVY_REDUCE_MIN));
    EXPECT_OK(pipeline->ops->allreduce(pipeline, &most, 1, CVY_DTYPE_F64, CVY_REDUCE_MAX));
    EXPECT(least == most && (most > 0) == (cvy_program_rows(t.program, 0) > 0));
    end(&t);
}

/* ---- checkpoints ---- */

static void checkpoints(void)
{
    static const cvy_update_mode modes[] = {CVY_UPDATE_SYNC, CVY_UPDATE_DELAYED, CVY_UPDATE_ZERO1};
    static const struct way usual = {12, 4, "adam", NULL, 0};
    char folder[] = "/tmp/test_program_stages_modes-XXXXXX";
    if (cvy_context_rank(all) == 0)
        EXPECT(mkdtemp(folder) != NULL);
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int i = 0; i < CVY_COUNT(modes); i++) {
        const cvy_program_opts opts = {.pipeline = nstages, .update_mode = modes[i]},
                               single = {.update_mode = modes[i]};
        cvy_checkpoint_opts save = {.size = sizeof save, .folder = folder, .step = i + 1, .state = "mine"};
        cvy_checkpoint_about found = cvy_checkpoint_about_default();
        struct trained first = {0}, again = {.model = make_model()}, one = {.model = make_model()};
        train(all, &usual, &opts, CVY_DTYPE_F32, &first);
        EXPECT_OK(cvy_checkpoint_write(first.program, &save));
        EXPECT_OK(plan(all, &usual, &opts, CVY_DTYPE_F32, &again));
        EXPECT_OK(plan(alone, &usual, &single, CVY_DTYPE_F32, &one));
        EXPECT_OK(cvy_checkpoint_read(again.program, folder, NULL, &found));
        EXPECT_INT(found.step, i + 1);
        EXPECT_TEXT(found.state, "mine");
        cvy_text_release(&found.state);
        EXPECT_OK(cvy_checkpoint_read(one.program, folder, NULL, &found));
        cvy_text_release(&found.state);
        run(&again, CVY_DTYPE_F32);
        run(&one, CVY_DTYPE_F32);
        compare(&again, &one, 1e-4);
        end(&first);
        end(&again);
        end(&one);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (cvy_context_rank(all) == 0)
        EXPECT_OK(cvy_file_remove_tree(folder));
}

/* A folder that cannot be made is a fault of all ranks, and nothing hangs. */
static void checkpoint_faults(void)
{
    static const struct way usual = {12, 4, "adam", NULL, 0};
    const cvy_program_opts opts = {.pipeline = nstages};
    cvy_checkpoint_opts save = {.size = sizeof save, .folder = "/dev/null/folder", .step = 1};
    struct trained t = {.model = make_model()};
    EXPECT_OK(plan(all, &usual, &opts, CVY_DTYPE_F32, &t));
    EXPECT_FAULT(cvy_checkpoint_write(t.program, &save), CVY_E_IO, "/dev/null");
    save.folder = "";
    EXPECT_FAULT(cvy_checkpoint_write(t.program, &save), CVY_E_ARGUMENT, "needs a folder");
    run(&t, CVY_DTYPE_F32);
    end(&t);
}

/* ---- evaluation ---- */

static cvy_program *plan_forward(cvy_context *context, const cvy_model *m, int64_t batch, int64_t stages)
{
    const cvy_program_opts opts = {
        .size = sizeof opts, .dtype = CVY_DTYPE_F64, .pipeline = stages, .interleave = 1 + batch % 2};
    const cvy_training_opts training = {.size = sizeof training, .accumulate = 4};
    cvy_program *p = NULL;
    int task = 0;
    EXPECT_OK(cvy_program_create(context, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, 12, &training, &task));
    EXPECT_OK(cvy_program_add_forward(p, m, batch, "fc, a", &task));
    EXPECT_OK(cvy_program_plan(p));
    const cvy_span x = {.dtype = CVY_DTYPE_F64, .data = cvy_program_feed(p, task, "x")};
    int32_t *label = cvy_program_feed(p, task, "label");
    for (int64_t r = 0; r < cvy_program_rows(p, task); r++) {
        fill_sample(&x, r, cvy_program_first_row(p, task) + r);
        label[r] = (int32_t)((cvy_program_first_row(p, task) + r) % 3);
    }
    EXPECT_OK(cvy_program_step(p, task, 0));
    return p;
}

static void evaluation(void)
{
    static const int64_t batches[] = {22, 7, 1};
    static const char *const names[] = {"fc", "a"};
    for (int i = 0; i < CVY_COUNT(batches); i++) {
        cvy_model *m = make_model();
        cvy_program *many = plan_forward(all, m, batches[i], nstages), *one = plan_forward(alone, m, batches[i], 1);
        double loss = 0, sum = 0, expected = 0;
        EXPECT((many->task[1]->nmicro > 1) == (batches[i] > 1));
        for (int k = 0; k < CVY_COUNT(names); k++) {
            const void *got = NULL, *all_rows = NULL;
            cvy_shape shape, whole;
            const cvy_status status = cvy_program_output(many, 1, names[k], &got, &shape);
            EXPECT_OK(cvy_program_output(one, 1, names[k], &all_rows, &whole));
            if (status != CVY_OK) {
                EXPECT_INT(status, CVY_E_ARGUMENT);
                EXPECT(strstr(cvy_error_text(), "is made on another stage of the pipeline"));
                continue;
            }
            const int64_t row = cvy_shape_elems(&whole) / whole.dim[0], first = cvy_program_first_row(many, 1) * row;
            EXPECT_INT(shape.dim[0], cvy_program_rows(many, 1));
            for (int64_t e = 0; e < cvy_program_rows(many, 1) * row; e++)
                EXPECT_NEAR(((const double *)got)[e], ((const double *)all_rows)[first + e], 1e-12);
        }
        EXPECT_OK(cvy_program_loss(many, 1, "late", &loss));
        EXPECT_OK(cvy_program_loss(one, 1, "late", &expected));
        MPI_Allreduce(&loss, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        EXPECT_NEAR(sum, expected, 1e-12);
        cvy_program_destroy(&many);
        cvy_program_destroy(&one);
        cvy_model_destroy(&m);
    }
}

/* The stage in the middle needs neither inputs nor targets, and the last one the targets. */
static void fields(void)
{
    static const struct way usual = {12, 4, "sgd", NULL, 0};
    const cvy_program_opts opts = {.pipeline = nstages, .first_layers = nstages == 3 ? "a, r2, pool" : "a, r2"};
    struct trained t = {.model = make_model()};
    EXPECT_OK(plan(all, &usual, &opts, CVY_DTYPE_F32, &t));
    const int stage = cvy_program_grid(t.program)->stage;
    EXPECT_INT(cvy_program_row_needs(t.program, 0), stage == 0             ? CVY_NEEDS_FIELDS
                                                    : stage == nstages - 1 ? CVY_NEEDS_LABELS
                                                                           : CVY_NEEDS_NUMBERS);
    end(&t);
}

/* ---- bad input ---- */

static void refused(void)
{
    static const struct {
        cvy_program_opts opts;
        double clip_norm;
        const char *message;
    } cases[] = {
        {{.update_mode = CVY_UPDATE_LOCAL}, 0, "local has each rank train a whole model by itself"},
        {{.update_mode = CVY_UPDATE_PARAMETER_SERVER, .update_servers = 1}, 0, "parameter_server has each rank train"},
        {{.shards = 2, .overlap = CVY_OVERLAP_FORWARD}, 0, "opts.overlap is forward"},
        {{.overlap = CVY_OVERLAP_FORWARD}, 0.5, "leave one of the two out"}};
    const struct way usual = {12, 1, "sgd", NULL, 0};
    const int defers = cvy_context_nranks(all) > nstages; /* with one rank in each stage nothing is reduced */
    for (int i = 0; i < CVY_COUNT(cases) - !defers; i++) {
        struct trained t = {.model = make_model()};
        struct way w = usual;
        cvy_program_opts opts = cases[i].opts;
        w.clip_norm = cases[i].clip_norm;
        opts.pipeline = nstages;
        EXPECT_FAULT(plan(all, &w, &opts, CVY_DTYPE_F32, &t), CVY_E_CONFIG, cases[i].message);
        end(&t);
    }
}

int main(int argc, char **argv)
{
    MPI_Comm part = MPI_COMM_NULL;
    int rank = 0, nranks = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    nstages = nranks == 3 ? 3 : 2;
    MPI_Comm_split(MPI_COMM_WORLD, rank < nstages ? 0 : MPI_UNDEFINED, rank, &part);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &all));
    /* One thread, because all ranks compute the expected values at the same time. */
    EXPECT_OK(cvy_context_create(&(cvy_context_opts){.size = sizeof(cvy_context_opts), .threads = 1}, &alone));
    if (part != MPI_COMM_NULL)
        EXPECT_OK(cvy_context_create_mpi(part, NULL, &few));
    TEST(deterministic);
    TEST(zero1);
    if (nranks < 6) { /* the other tests see nothing new with three ranks in each stage */
        TEST(without_weights);
        TEST(delayed);
        TEST(deferred);
        TEST(gradients_only);
        TEST(checkpoints);
        TEST(checkpoint_faults);
        TEST(evaluation);
        TEST(fields);
        TEST(refused);
    }
    cvy_context_destroy(&few);
    cvy_context_destroy(&all);
    cvy_context_destroy(&alone);
    if (part != MPI_COMM_NULL)
        MPI_Comm_free(&part);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
