/* ranks: 2 4 8 */
/* rows: mpich */
/*
 * test_program_split_modes.c: tensor and spatial axes with each update mode give the results of that mode on one rank:
 * zero1, delayed and deferred updates, gradients alone, weights that the ranks of a node share; deterministic training
 * gives the same bits on 1, 2, 3 and 4 ranks of the data axis; and modes that do not go with these axes are refused.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "program/split_util.h"

enum { VALUES_MAX = 1 << 14 };

static const struct grid none = {1, 1, {1, 1}}, tensor = {1, 2, {1, 1}}, height = {1, 1, {2, 1}};
static const make_fn networks[] = {residual, decoder};
static int nranks;

static void as_alone(const struct way *w, const struct grid *grid, cvy_dtype dtype)
{
    static struct trained one, many;
    for (int n = 0; n < CVY_COUNT(networks); n++) {
        train(alone, networks[n], w, &none, dtype, &one);
        train(all, networks[n], w, grid, dtype, &many);
        compare(&many, &one, dtype == CVY_DTYPE_F64 ? 1e-12 : 1e-4);
        end(&many);
        end(&one);
    }
}

/* Numbers are updated one by one, which native kernels do in f32. */
static void zero1(void)
{
    static const struct way ways[] = {{12, 1, "adam", 0, {.update_mode = CVY_UPDATE_ZERO1, .reduce = "halving"}},
                                      {13, 2, "sgd", 0, {.update_mode = CVY_UPDATE_ZERO1, .reduce = "ring"}}};
    for (int i = 0; i < CVY_COUNT(ways); i++) {
        as_alone(&ways[i], &tensor, CVY_DTYPE_F32);
        as_alone(&ways[i], &height, CVY_DTYPE_F32);
    }
}

static void delayed(void)
{
    static const struct way w = {13, 2, "adam", 0.05, {.update_mode = CVY_UPDATE_DELAYED}},
                            shares = {12, 1, "sgd", 0, {.update_mode = CVY_UPDATE_DELAYED, .share_weights = 1}};
    as_alone(&w, &tensor, CVY_DTYPE_F64);
    as_alone(&w, &height, CVY_DTYPE_F64);
    as_alone(&shares, &tensor, CVY_DTYPE_F32);
}

static void deferred(void)
{
    static const struct way w = {12, 2, "adam", 0, {.overlap = CVY_OVERLAP_FORWARD}},
                            clips = {12, 1, "lars", 0.05, {.overlap = CVY_OVERLAP_FORWARD}};
    as_alone(&w, &tensor, CVY_DTYPE_F64);
    as_alone(&w, &height, CVY_DTYPE_F64);
    as_alone(&clips, &height, CVY_DTYPE_F64);
}

/* The weights of a node exist once, if gradients are summed along the data axis alone. */
static void shared_weights(void)
{
    static const struct way w = {12, 1, "adam", 0, {.share_weights = 1}};
    as_alone(&w, &tensor, CVY_DTYPE_F32);
    as_alone(&w, &height, CVY_DTYPE_F32);
}

static void gradients_only(void)
{
    static const struct way w = {12, 1, "sgd", 0, {.gradients_only = 1}},
                            tiny = {1, 1, "sgd", 0, {.gradients_only = 1}};
    struct trained t = {.model = residual()};
    if (nranks == 2) {
        as_alone(&w, &tensor, CVY_DTYPE_F64);
        as_alone(&w, &height, CVY_DTYPE_F64);
    }
    EXPECT_OK(plan(all, &tiny, &height, CVY_DTYPE_F64, &t)); /* all shares of the batch but one have no sample */
    run(&t, CVY_DTYPE_F64);
    EXPECT((t.loss[0] > 0) == (cvy_program_rows(t.program, 0) > 0));
    end(&t);
}

/* ---- deterministic ---- */

struct bits {
    double loss[STEPS], value[2][VALUES_MAX]; /* of both parts */
};

/* Collects the variables of all parts, from the first rank of each data axis. Other ranks add zeros, so the sums are
 * exact. */
static void read_bits(const struct trained *t, struct bits *out)
{
    static struct bits mine;
    static double plain[8192];
    int n = 0;
    memset(&mine, 0, sizeof mine);
    for (int i = 0; t->program && i < cvy_program_vars(t->program)->count; i++) {
        const cvy_variable *v = cvy_program_vars(t->program)->at[i];
        const cvy_grid *grid = cvy_program_grid(t->program);
        const int64_t elems = v->elsewhere ? 0 : cvy_shape_elems(&v->shape);
        const cvy_span span = {.dtype = v->dtype, .data = plain};
        EXPECT(n + elems <= VALUES_MAX && elems <= CVY_COUNT(plain));
        if (elems > 0 && grid->data_rank == 0) {
            EXPECT_OK(cvy_variable_read(v, plain));
            for (int64_t k = 0; k < elems; k++)
                mine.value[cvy_grid_is_first_part(grid)][n + k] = cvy_get(&span, k);
        }
        n += (int)elems;
    }
    if (t->program && cvy_program_grid(t->program)->all->rank == 0)
        memcpy(mine.loss, t->loss, sizeof mine.loss);
    MPI_Allreduce(&mine, out, (int)(sizeof mine / sizeof(double)), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* The same training with other lengths of the data axis, on the first ranks. */
static void same_bits(make_fn make, const struct way *w, const struct grid *grid)
{
    static struct bits expected, got;
    for (int n = 2; n <= nranks; n += 2) {
        MPI_Comm part = MPI_COMM_NULL;
        cvy_context *few = NULL;
        struct trained t = {0};
        MPI_Comm_split(MPI_COMM_WORLD, cvy_context_rank(all) < n ? 0 : MPI_UNDEFINED, cvy_context_rank(all), &part);
        if (part != MPI_COMM_NULL) {
            EXPECT_OK(cvy_context_create_mpi(part, NULL, &few));
            train(few, make, w, grid, CVY_DTYPE_F32, &t);
        }
        read_bits(&t, n == 2 ? &expected : &got);
        EXPECT(expected.loss[0] > 0 && expected.value[0][0] != 0 && expected.value[1][0] != 0);
        EXPECT(n == 2 || memcmp(&expected, &got, sizeof got) == 0);
        end(&t);
        cvy_context_destroy(&few);
        if (part != MPI_COMM_NULL)
            MPI_Comm_free(&part);
    }
}

static void deterministic(void)
{
    static const struct way clips = {24, 1, "sgd", 0.05, {.shards = 8}}, norms = {17, 1, "lamb", 0, {.shards = 8}};
    for (int n = 0; n < CVY_COUNT(networks); n++) {
        same_bits(networks[n], &clips, &tensor);
        same_bits(networks[n], &clips, &height);
    }
    same_bits(residual, &norms, &tensor);
    if (nranks == 4)
        as_alone(&clips, &height, CVY_DTYPE_F32);
}

/* ---- bad input ---- */

static void refused(void)
{
    static const struct {
        struct way way;
        const char *message;
    } cases[] = {
        {{12, 1, "sgd", 0, {.update_mode = CVY_UPDATE_LOCAL}}, "local has each rank train a whole model by itself"},
        {{12, 1, "sgd", 0, {.update_mode = CVY_UPDATE_PARAMETER_SERVER, .update_servers = 1}},
         "parameter_server has each rank train a whole model"},
        {{12, 1, "sgd", 0.5, {.overlap = CVY_OVERLAP_FORWARD}}, "opts.tensor and clip_norm"},
        {{12, 1, "lamb", 0, {.overlap = CVY_OVERLAP_FORWARD}}, "opts.tensor and optimizer lamb"},
        {{12, 1, "lars", 0, {.update_mode = CVY_UPDATE_ZERO1}}, "zero1 does not suit the optimiser lars"},
    };
    for (int i = 0; i < CVY_COUNT(cases); i++) {
        struct trained t = {.model = residual()};
        if (nranks > 2 || i < 2) /* with a data axis of one rank nothing is deferred or cut */
            EXPECT_FAULT(plan(all, &cases[i].way, &tensor, CVY_DTYPE_F32, &t), CVY_E_CONFIG, cases[i].message);
        end(&t);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &all));
    /* One thread, because all ranks compute the expected values at the same time. */
    EXPECT_OK(cvy_context_create(&(cvy_context_opts){.size = sizeof(cvy_context_opts), .threads = 1}, &alone));
    nranks = cvy_context_nranks(all);
    TEST(deterministic);
    if (nranks < 8) {
        TEST(zero1);
        TEST(delayed);
        TEST(deferred);
        TEST(shared_weights);
        TEST(gradients_only);
        TEST(refused);
    }
    cvy_context_destroy(&all);
    cvy_context_destroy(&alone);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
