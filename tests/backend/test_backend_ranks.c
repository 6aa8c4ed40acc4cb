/* ranks: 1 2 3 4 */
/* rows: mpich mpi asan */
/*
 * test_backend_ranks.c: exchanges between ranks whose tensors are on a device that the host cannot read: the emulated
 * one (emulated.h), which also runs work late and out of order, so that a missing mark shows.
 *
 * All update modes and all axes of the grid must leave the same bits as on the host, which computes with the same
 * reference kernels and exchanges by the same messages.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/emulated/emulated.h"
#include "context/context.h"
#include "program/split_util.h"
#include "reduce/reduce_bucket.h"

static cvy_context *device;
static int nranks;

struct sample {
    const char *name;
    make_fn make;
    struct way way;
    struct grid grid;
    cvy_dtype dtype;
};

/* Buckets that were started and whose exchange has not begun. After a step there are none, because other collectives
 * may follow, and the order must be the same on all ranks. */
static int count_leaving(const cvy_program *p)
{
    int n = 0;
    for (int i = 0; i < p->ntask; i++)
        n += p->task[i]->plan->buckets->nleaving +
             (p->task[i]->alternate ? p->task[i]->alternate->buckets->nleaving : 0);
    return n;
}

/* Steps of training with one of evaluation in between, when an update may be pending. */
static void train_on(cvy_context *context, const struct sample *s, struct trained *t)
{
    struct way way = s->way;
    t->model = s->make();
    if (!way.opts.reduce)
        way.opts.reduce = "doubling"; /* whatever is measured to be fast */
    EXPECT_OK(plan(context, &way, &s->grid, s->dtype, t));
    const cvy_dtype fed = s->dtype == CVY_DTYPE_BF16 ? CVY_DTYPE_F32 : s->dtype;
    fill(t->program, 0, fed);
    fill(t->program, 1, fed);
    for (int i = 0; i < STEPS; i++) {
        EXPECT_OK(cvy_program_step(t->program, 0, 0.01 * (i + 1)));
        EXPECT_INT(count_leaving(t->program), 0);
        EXPECT_OK(cvy_program_loss(t->program, 0, "loss", &t->loss[i]));
        if (i == STEPS / 2)
            EXPECT_OK(cvy_program_step(t->program, 1, 0));
    }
    EXPECT_OK(cvy_program_flush(t->program));
}

static int same_bits(const struct sample *s, const struct trained *got, const struct trained *expected)
{
    static char here[1 << 16], there[1 << 16];
    const cvy_vars *vars = cvy_program_vars(got->program);
    const int collects = got->program->update.shape.state_elsewhere;
    cvy_vars *pending[2] = {NULL, NULL};
    int same = memcmp(got->loss, expected->loss, sizeof got->loss) == 0;
    EXPECT_OK(cvy_program_collect(got->program, &pending[0]));
    EXPECT_OK(cvy_program_collect(expected->program, &pending[1]));
    EXPECT(!pending[0] && !pending[1]);
    if (!same)
        printf("%s: loss %.17g, expected %.17g\n", s->name, got->loss[STEPS - 1], expected->loss[STEPS - 1]);
    for (int i = 0; i < vars->count; i++) {
        const cvy_variable *v = vars->at[i], *w = cvy_vars_find(cvy_program_vars(expected->program), v->name);
        const size_t bytes = (size_t)cvy_shape_elems(&v->shape) * cvy_dtype_bytes(v->dtype);
        if (v->elsewhere || (v->role == CVY_ROLE_STATE && collects && cvy_program_grid(got->program)->data_rank != 0))
            continue;
        EXPECT(w && w->data && bytes <= sizeof here);
        EXPECT_OK(cvy_variable_read(v, here));
        EXPECT_OK(cvy_variable_read(w, there));
        if (memcmp(here, there, bytes) != 0)
            printf("%s: %s differs\n", s->name, v->name);
        same &= memcmp(here, there, bytes) == 0;
    }
    return same;
}

/* The seeds let the lanes run in other orders. */
static void as_on_host(const struct sample *s, int nseeds)
{
    struct trained host = {0};
    int same = 0;
    train_on(s->way.opts.shards ? alone : all, s, &host); /* any number of ranks must give these bits */
    for (int seed = 1; seed <= nseeds; seed++) {
        struct trained got = {0};
        cvy_emulated_setup_now.seed = (uint64_t)(seed * 131 + all->comm->rank * 7);
        train_on(device, s, &got);
        same += same_bits(s, &got, &host);
        end(&got);
    }
    if (same < nseeds)
        TEST_FAIL("%s: of %d seeds %d give the bits of the host", s->name, nseeds, same);
    end(&host);
}

#define WAY(...)                                                                                                       \
    {                                                                                                                  \
        .batch = 12, .opts = {.seed = 3, .kernels = "reference", .reduce_no_node = 1, __VA_ARGS__ }                    \
    }

static void update_modes(void)
{
    const struct sample samples[] = {
        {"sync", residual, WAY(), {0}, CVY_DTYPE_F32},
        {"sync f64", maps, WAY(), {0}, CVY_DTYPE_F64},
        {"bf16", decoder, WAY(), {0}, CVY_DTYPE_BF16},
        {"no overlap", residual, WAY(.overlap = CVY_OVERLAP_NONE), {0}, CVY_DTYPE_F32},
        {"deterministic", residual, WAY(.shards = 4), {0}, CVY_DTYPE_F32},
        {"delayed", residual, WAY(.update_mode = CVY_UPDATE_DELAYED), {0}, CVY_DTYPE_F32},
        {"delayed, in order",
         residual,
         WAY(.update_mode = CVY_UPDATE_DELAYED, .reduce = "library"),
         {0},
         CVY_DTYPE_F32},
        {"deferred", residual, WAY(.overlap = CVY_OVERLAP_FORWARD), {0}, CVY_DTYPE_F32},
        {"local", residual, WAY(.update_mode = CVY_UPDATE_LOCAL), {0}, CVY_DTYPE_F32},
    };
    for (int i = 0; i < CVY_COUNT(samples); i++)
        as_on_host(&samples[i], nranks > 2 ? 1 : 3);
}

static void grids(void)
{
    const struct sample samples[] = {
        {"pipeline", residual, WAY(), {.pipeline = 2}, CVY_DTYPE_F32},
        {"tensor", residual, WAY(), {.tensor = 2}, CVY_DTYPE_F32},
        {"spatial", residual, WAY(), {.spatial = {2}}, CVY_DTYPE_F32},
        {"spatial fields", decoder, WAY(), {.spatial = {1, 2}}, CVY_DTYPE_F32},
    };
    for (int i = 0; i < CVY_COUNT(samples) && nranks % 2 == 0; i++) {
        struct sample s = samples[i];
        as_on_host(&s, nranks > 2 ? 1 : 2);
        s.way.accumulate = 3;
        s.way.opts.overlap = CVY_OVERLAP_FORWARD;
        as_on_host(&s, 1);
    }
}

enum { BUCKETS = 3, ELEMS = 1000 };

struct overlap {
    cvy_bucket_set *set;
    float *memory, *fresh; /* on the device: the buckets; page-locked: what computation makes */
    int early, late;       /* of all seeds: buckets that were started, or waited for, before their copies ran */
};

/* A step of computation that makes one bucket after the other. */
static void reduce_once(struct overlap *o)
{
    const int64_t *copies = &cvy_emulated_done_now.copies;
    static float sum[BUCKETS * ELEMS];
    for (int i = 0; i < BUCKETS * ELEMS; i++)
        o->fresh[i] = (float)(i % 7 + all->comm->rank);
    for (int b = 0; b < BUCKETS; b++) {
        const int64_t before = *copies;
        const size_t at = (size_t)b * ELEMS;
        EXPECT_OK(
            cvy_space_copy(&device->space, CVY_LANE_COMPUTE, o->memory + at, o->fresh + at, ELEMS * sizeof(float)));
        EXPECT_OK(cvy_bucket_set_start(o->set, b));
        o->early += *copies == before;
    }
    for (int b = 0; b < BUCKETS; b++) {
        EXPECT_OK(cvy_bucket_set_wait(o->set, b));
        o->late += o->set->nactive == 0 && *copies < (b + 1) * 3;
    }
    EXPECT_OK(cvy_space_read(&device->space, sum, o->memory, sizeof sum));
    for (int i = 0; i < BUCKETS * ELEMS; i++)
        EXPECT_NEAR(sum[i], nranks * (i % 7) + nranks * (nranks - 1) / 2.0, 0);
}

/* The host waits neither for the computation that makes a bucket nor for the copy back of its sum. */
static void host_goes_on(void)
{
    enum { SEEDS = 40 };
    struct overlap o = {0};
    const size_t bytes = BUCKETS * ELEMS * sizeof(float);
    EXPECT_OK(cvy_space_alloc(&device->space, bytes, 0, &o.memory));
    EXPECT_OK(cvy_space_alloc_host(&device->space, bytes, &o.fresh));
    EXPECT_OK(cvy_bucket_set_create(BUCKETS, &o.set));
    o.set->space = &device->space;
    for (int b = 0; b < BUCKETS; b++)
        o.set->bucket[b] = (cvy_bucket){
            .offset = (size_t)b * ELEMS * sizeof(float), .bytes = ELEMS * sizeof(float), .dtype = CVY_DTYPE_F32};
    EXPECT_OK(cvy_bucket_set_connect(o.set, all->comm, &(cvy_allreduce_opts){.no_node = 1}, o.memory));
    for (int seed = 1; seed <= SEEDS; seed++) {
        cvy_emulated_setup_now.seed = (uint64_t)seed;
        cvy_emulated_done_now.copies = 0;
        reduce_once(&o);
    }
    EXPECT(o.early > SEEDS * BUCKETS / 2);
    EXPECT(nranks == 1 || o.late > SEEDS / 2);
    cvy_bucket_set_destroy(&o.set);
    cvy_space_free_host(&device->space, &o.fresh, bytes);
    cvy_space_free(&device->space, &o.memory, bytes);
}

/* Updates in parts need kernels that update a part. Sums have another order than in sync on more than two ranks. */
static void zero1(void)
{
    const struct sample samples[] = {
        {"zero1", residual, {.batch = 12, .opts = {.seed = 3, .reduce = "halving"}}, {0}, CVY_DTYPE_F32},
        {"zero1 adam",
         residual,
         {.batch = 12, .optimizer = "adam", .opts = {.seed = 3, .reduce = "ring"}},
         {0},
         CVY_DTYPE_F32},
        {"zero1 spatial", residual, {.batch = 12, .opts = {.seed = 3}}, {.spatial = {2}}, CVY_DTYPE_F32},
    };
    for (int i = 0; i < CVY_COUNT(samples); i++) {
        struct sample s = samples[i];
        struct trained sync = {0}, got = {0};
        if (s.grid.spatial[0] > 1 && nranks % 2)
            continue;
        train_on(device, &s, &sync);
        s.way.opts.update_mode = CVY_UPDATE_ZERO1;
        train_on(device, &s, &got);
        EXPECT((got.program->update.shape.halves != 0) == (cvy_program_grid(got.program)->ndata > 1));
        EXPECT(compare(&got, &sync, 1e-6) > 1000);
        end(&got);
        end(&sync);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD,
                                     &(cvy_context_opts){.size = sizeof(cvy_context_opts), .threads = 1}, &all));
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD,
                                     &(cvy_context_opts){.size = sizeof(cvy_context_opts), .threads = 1}, &device));
    EXPECT_OK(cvy_context_create(NULL, &alone));
    EXPECT_OK(cvy_context_use(device, &cvy_emulated_backend));
    TEST(host_goes_on);
    TEST(update_modes);
    TEST(grids);
    TEST(zero1);
    cvy_context_destroy(&device);
    cvy_context_destroy(&alone);
    cvy_context_destroy(&all);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
