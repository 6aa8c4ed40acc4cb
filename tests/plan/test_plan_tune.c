/* ranks: 1 2 */
/* rows: mpich onednn3 minimal */
/*
 * test_plan_tune.c: kernels chosen by measured times: a second planning measures nothing; times decide, and the time of
 * reorders counts; the time of a whole step decides in the end; all ranks make the same choice, even if their shares
 * differ; results equal those of other kernels.
 *
 * The tests write the times into the wisdom themselves, so no result depends on the speed of the machine.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/base_hash.h"
#include "plan/plan_offers.h"
#include "program/program_impl.h"
#include "test_util.h"

enum { CHANNELS = 32, SIDE = 6, STEPS = 3, WEIGHTS = CHANNELS * CHANNELS * 9 };

static cvy_context *context;
static char folder[] = "/tmp/convoy-tune-XXXXXX", path[64];

static cvy_model *new_model(void)
{
    cvy_model *m = NULL;
    EXPECT_OK(cvy_model_create("tune", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {CHANNELS, SIDE, SIDE}}));
    EXPECT_OK(cvy_model_add_input(m, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    EXPECT_OK(cvy_model_add(m, "conv", "conv1", "channels: 32, kernel: 3, pad: 1", "x"));
    EXPECT_OK(cvy_model_add(m, "relu", NULL, NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "conv", "conv2", "channels: 32, kernel: 3, pad: 1", NULL));
    EXPECT_OK(cvy_model_add(m, "batch_norm", "bn", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "relu", NULL, NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "max_pool", "pool", "kernel: 2", NULL));
    EXPECT_OK(cvy_model_add(m, "fc", "fc", "channels: 5", NULL));
    EXPECT_OK(cvy_model_add(m, "softmax_cross_entropy", "loss", NULL, "fc, label"));
    return m;
}

struct outcome {
    cvy_tuning tuning; /* rank 0 */
    cvy_prediction predicted;
    int nreorder, tuned;
    uint64_t kernels; /* hash of all choices of this rank */
    char conv1[64];   /* kernel of the first convolution */
    float weights[WEIGHTS];
};

static void note_plan(const cvy_program *p, struct outcome *o)
{
    const cvy_lowered *u = cvy_program_task_plan(p, 0)->lowered[0];
    cvy_hasher h;
    cvy_hash_begin(&h);
    for (int i = 0; i < u->ncall; i++) {
        const cvy_call *call = &u->call[i];
        o->nreorder += cvy_call_reorders(call);
        if (!call->offer)
            continue;
        cvy_hash_add(&h, call->node->name, strlen(call->node->name) + 1);
        cvy_hash_add(&h, call->offer->kernel->name, strlen(call->offer->kernel->name) + 1);
        if (strcmp(call->node->name, "conv1") == 0)
            snprintf(o->conv1, sizeof o->conv1, "%s", call->offer->kernel->name);
    }
    o->kernels = cvy_hash_end(&h);
    o->tuned = p->kernel.tuned;
    o->tuning = p->kernel.tuning;
    o->tuning.choices = NULL;
    if (p->kernel.tuned)
        EXPECT_OK(cvy_program_predict(p, 0, &o->predicted));
}

static void run(int64_t batch, const char *planning, const char *plan_file, struct outcome *o)
{
    const cvy_program_opts opts = {
        .size = sizeof opts, .seed = 3, .planning = planning, .wisdom = path, .plan_file = plan_file};
    const cvy_training_opts training = {.size = sizeof training, .optimizer_options = "momentum: 0.9"};
    cvy_program *p = NULL;
    cvy_model *m = new_model();
    int step = -1;
    memset(o, 0, sizeof *o);
    EXPECT_OK(cvy_program_create(context, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, batch, &training, &step));
    EXPECT_OK(cvy_program_plan(p));
    note_plan(p, o);
    float *x = cvy_program_feed(p, step, "x");
    int32_t *label = cvy_program_feed(p, step, "label");
    const int64_t rows = cvy_program_rows(p, step), first = cvy_program_first_row(p, step),
                  elems = CHANNELS * SIDE * SIDE;
    for (int64_t i = 0; i < rows * elems; i++)
        x[i] = (float)sin(0.37 * (double)(first * elems + i));
    for (int64_t r = 0; r < rows; r++)
        label[r] = (int32_t)((first + r) % 5);
    for (int i = 0; i < STEPS; i++)
        EXPECT_OK(cvy_program_step(p, step, 0.05));
    EXPECT_OK(cvy_program_get(p, "conv2.weight", o->weights, WEIGHTS));
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
}

static void barrier(void)
{
    EXPECT_OK(context->comm->ops->barrier(context->comm));
}

static int is_root(void)
{
    return cvy_context_rank(context) == 0;
}

static void remove_wisdom(void)
{
    barrier();
    if (is_root())
        unlink(path);
    barrier();
}

/* Plans again until no new time is measured. A rule gives the times in place of measurements. */
typedef double (*rule_fn)(const char *key);
static void plan_until_known(int64_t batch, rule_fn rule, struct outcome *o)
{
    double measured = 1;
    remove_wisdom();
    for (int round = 0; round < 20 && measured > 0; round++) {
        cvy_wisdom *w = NULL;
        run(batch, "measure", NULL, o);
        measured = o->tuning.nmeasured;
        EXPECT_OK(context->comm->ops->broadcast(context->comm, &measured, sizeof measured, 0));
        barrier();
        if (!is_root())
            continue;
        EXPECT_OK(cvy_wisdom_open(path, NULL, &w));
        for (int i = 0; w && i < w->key.count; i++)
            EXPECT_OK(cvy_wisdom_add(w, w->key.text[i], rule(w->key.text[i])));
        EXPECT_OK(cvy_wisdom_save(w));
        cvy_wisdom_close(&w);
    }
    EXPECT_NEAR(measured, 0, 0);
    barrier();
    run(batch, "estimate", NULL, o);
}

static double native_is_fast(const char *key)
{
    return strncmp(key, "reorder ", 8) == 0 ? 0.001 : strstr(key, " by native.") ? 1 : 10;
}

static double native_is_slow(const char *key)
{
    return strncmp(key, "reorder ", 8) == 0 ? 0.001 : strstr(key, " by native.") ? 10 : 1;
}

static double reorders_are_slow(const char *key)
{
    return strncmp(key, "reorder ", 8) == 0 ? 1000 : strstr(key, " by native.") ? 1 : 1.5;
}

static void measured_once(void)
{
    static struct outcome first, second, third;
    remove_wisdom();
    run(8, "estimate", NULL, &first);
    EXPECT(!first.tuned); /* nothing is known and nothing is measured */
    EXPECT_INT(is_root() && access(path, F_OK) == 0, 0);
    run(8, "measure", NULL, &first);
    run(8, "measure", NULL, &second);
    run(8, "estimate", NULL, &third);
    if (!is_root())
        return;
    EXPECT(first.tuning.nmeasured > 10 && first.predicted.nunknown == 0 && first.predicted.ms > 0);
    EXPECT(second.tuned && third.tuned);
    EXPECT_INT(second.tuning.nmeasured, 0);
    EXPECT_INT(third.tuning.nmeasured, 0);
    EXPECT_INT(third.predicted.nunknown, 0);
    EXPECT_NEAR(second.predicted.ms, first.predicted.ms, 1e-3 * first.predicted.ms);
    EXPECT(first.kernels == second.kernels && second.kernels == third.kernels);
}

static void times_decide(void)
{
    static struct outcome fast, slow;
    plan_until_known(8, native_is_fast, &fast);
    EXPECT(strncmp(fast.conv1, "native.", 7) == 0);
    plan_until_known(8, native_is_slow, &slow);
#if CVY_HAVE_ONEDNN
    EXPECT(strncmp(slow.conv1, "onednn.", 7) == 0);
    EXPECT(slow.kernels != fast.kernels);
#endif
    for (int i = 0; i < WEIGHTS; i++)
        EXPECT_NEAR(fast.weights[i], slow.weights[i], 2e-4);
}

/* With reorders counted, a choice is never slower than the order of preference. */
static void reorders_count(void)
{
    static struct outcome chosen, preferred;
    char file[96];
    plan_until_known(8, reorders_are_slow, &chosen);
    snprintf(file, sizeof file, "%s/preferred.json", folder);
    if (is_root())
        EXPECT_OK(cvy_file_replace(file, "{\"choices\": {}}", 15));
    barrier();
    run(8, "estimate", file, &preferred);
    EXPECT(chosen.nreorder <= preferred.nreorder);
    if (is_root()) {
        EXPECT(preferred.tuned && preferred.predicted.nunknown == 0);
        EXPECT(chosen.predicted.ms <= preferred.predicted.ms);
    }
}

static int is_step(const char *key)
{
    return strncmp(key, "step of ", 8) == 0;
}

/* Rank 0 writes the wisdom anew, without the times of whole steps. */
static void forget_steps(void)
{
    cvy_wisdom *old = NULL, *anew = NULL;
    barrier();
    if (is_root()) {
        EXPECT_OK(cvy_wisdom_open(path, NULL, &old));
        unlink(path);
        EXPECT_OK(cvy_wisdom_open(path, NULL, &anew));
        for (int i = 0; i < old->key.count; i++)
            if (!is_step(old->key.text[i]))
                EXPECT_OK(cvy_wisdom_add(anew, old->key.text[i], old->ms[i]));
        EXPECT_OK(cvy_wisdom_save(anew));
        cvy_wisdom_close(&old);
        cvy_wisdom_close(&anew);
    }
    barrier();
}

/* Rank 0 gives the first whole step of the wisdom this time, and the others 10 ms. Returns their number there. */
static int set_steps(double first_ms)
{
    cvy_wisdom *w = NULL;
    int n = 0;
    barrier();
    if (is_root()) {
        EXPECT_OK(cvy_wisdom_open(path, NULL, &w));
        for (int i = 0; i < w->key.count; i++)
            if (is_step(w->key.text[i]))
                EXPECT_OK(cvy_wisdom_add(w, w->key.text[i], n++ == 0 ? first_ms : 10));
        EXPECT_OK(cvy_wisdom_save(w));
        cvy_wisdom_close(&w);
    }
    barrier();
    return n;
}

/* The step with measured kernels and that by preference are timed as a whole, and the faster one is taken. */
static void whole_step_decides(void)
{
    static struct outcome preferred, chosen, one, other;
    char file[96];
    snprintf(file, sizeof file, "%s/preferred.json", folder);
    plan_until_known(8, native_is_slow, &chosen);
    run(8, "estimate", file, &preferred);
    if (chosen.kernels == preferred.kernels)
        plan_until_known(8, native_is_fast, &chosen);
    double differ = chosen.kernels != preferred.kernels;
    EXPECT_OK(context->comm->ops->broadcast(context->comm, &differ, sizeof differ, 0));
    EXPECT(differ == 1 || !CVY_HAVE_ONEDNN);
    if (differ != 1)
        return;
    forget_steps();
    run(8, "measure", NULL, &one);
    if (is_root())
        EXPECT_INT(one.tuning.nmeasured, 0); /* of single kernels */
    EXPECT_INT(set_steps(1), is_root() ? 2 : 0);
    run(8, "estimate", NULL, &one);
    set_steps(20);
    run(8, "estimate", NULL, &other);
    EXPECT(one.kernels != other.kernels);
    EXPECT(one.kernels == preferred.kernels || other.kernels == preferred.kernels);
    EXPECT(one.kernels == chosen.kernels || other.kernels == chosen.kernels);
    if (!is_root())
        return;
    const struct outcome *back = one.kernels == preferred.kernels ? &one : &other;
    EXPECT(back->predicted.nunknown == 0);
    EXPECT_INT(back->tuning.nchanged, 0);
    EXPECT_NEAR(back->predicted.ms, preferred.predicted.ms, 1e-9 * preferred.predicted.ms);
}

static void ranks_agree(void)
{
    static struct outcome o;
    static const int64_t batches[] = {8, 7, 1};
    for (int b = 0; b < 3; b++) {
        uint64_t all[2] = {0};
        plan_until_known(batches[b], native_is_fast, &o);
        EXPECT_OK(context->comm->ops->allgather(context->comm, &o.kernels, sizeof o.kernels, all));
        if (cvy_context_nranks(context) == 2 && batches[b] > 1)
            EXPECT(all[0] == all[1]);
    }
}

/* A time is in the wisdom, so that times are looked up; none is measured. */
static double share_of_samples(int64_t batch)
{
    const cvy_program_opts opts = {.size = sizeof opts, .planning = "estimate", .wisdom = path};
    const cvy_training_opts training = {.size = sizeof training};
    cvy_program *p = NULL;
    cvy_model *m = NULL;
    cvy_wisdom *w = NULL;
    int step = -1;
    if (is_root()) {
        EXPECT_OK(cvy_wisdom_open(path, &context->space, &w));
        EXPECT_OK(cvy_wisdom_add(w, "another kernel", 1));
        EXPECT_OK(cvy_wisdom_save(w));
        cvy_wisdom_close(&w);
    }
    barrier();
    EXPECT_OK(cvy_model_create("wide", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){1, {4096}}));
    EXPECT_OK(cvy_model_add_input(m, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    EXPECT_OK(cvy_model_add(m, "fc", "wide", "channels: 4096", "x"));
    EXPECT_OK(cvy_model_add(m, "fc", "fc", "channels: 5", NULL));
    EXPECT_OK(cvy_model_add(m, "softmax_cross_entropy", "loss", NULL, "fc, label"));
    EXPECT_OK(cvy_program_create(context, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, batch, &training, &step));
    EXPECT_OK(cvy_program_plan(p));
    const double share = p->kernel.timed_share;
    EXPECT(cvy_program_rows(p, step) == batch / cvy_context_nranks(context));
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
    return share;
}

static void long_steps_are_timed_with_fewer_samples(void)
{
    remove_wisdom();
    const double small = share_of_samples(64), large = share_of_samples(8192);
    if (!is_root())
        return;
    EXPECT(small == 0);
    EXPECT(large > 0 && large <= 0.5);
}

static void bad_word(void)
{
    const cvy_program_opts opts = {.size = sizeof opts, .planning = "quick"};
    cvy_program *p = NULL;
    EXPECT_FAULT(cvy_program_create(context, &opts, &p), CVY_E_CONFIG,
                 "opts.planning is \"quick\", expected estimate|measure|patient");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD,
                                     &(cvy_context_opts){.size = sizeof(cvy_context_opts), .threads = 1}, &context));
    if (is_root())
        EXPECT(mkdtemp(folder) != NULL);
    EXPECT_OK(context->comm->ops->broadcast(context->comm, folder, sizeof folder, 0));
    snprintf(path, sizeof path, "%s/wisdom.json", folder);
    TEST(measured_once);
    TEST(times_decide);
    TEST(reorders_count);
    TEST(whole_step_decides);
    TEST(ranks_agree);
    TEST(long_steps_are_timed_with_fewer_samples);
    TEST(bad_word);
    barrier();
    if (is_root())
        EXPECT_OK(cvy_file_remove_tree(folder));
    cvy_context_destroy(&context);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
