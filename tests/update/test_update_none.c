/* ranks: 1 2 3 */
/*
 * test_update_none.c: with gradients_only a training task makes the gradients of its rank's rows, by the same kernels
 * as a training step, sends nothing and leaves the weights as they are.
 *
 * Each gradient is compared with the change that one step of plain SGD, on one rank with the same rows, makes to the
 * weight. Both are computed in f64 by reference kernels, so they differ only by the rounding of the subtraction.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include <string.h>

#include "program/program_view.h"
#include "test_util.h"

enum { ELEMS_MAX = 1024 };

static cvy_context *all, *alone;

static cvy_model *new_model(void)
{
    cvy_model *m = NULL;
    EXPECT_OK(cvy_model_create("gradients", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {2, 4, 4}}));
    EXPECT_OK(cvy_model_add_input(m, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    EXPECT_OK(cvy_model_add(m, "conv", "conv", "channels: 5, kernel: 3, pad: 1, bias: false", "x"));
    EXPECT_OK(cvy_model_add(m, "batch_norm", "bn", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "relu", NULL, NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "fc", "fc", "channels: 3", NULL));
    EXPECT_OK(cvy_model_add(m, "softmax_cross_entropy", "loss", NULL, "fc, label"));
    return m;
}

static cvy_program *new_program(cvy_context *context, const cvy_model *m, int64_t batch, int64_t accumulate,
                                int gradients_only, int *task)
{
    const cvy_program_opts opts = {.size = sizeof opts,
                                   .dtype = CVY_DTYPE_F64,
                                   .seed = 5,
                                   .batch_norm_group = -1,
                                   .gradients_only = gradients_only};
    const cvy_training_opts sgd = {.size = sizeof sgd, .optimizer_options = "momentum: 0", .accumulate = accumulate};
    cvy_program *p = NULL;
    EXPECT_OK(cvy_program_create(context, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, batch, &sgd, task));
    EXPECT_OK(cvy_program_plan(p));
    return p;
}

static void fill(cvy_program *p, int task, int64_t first)
{
    double *x = cvy_program_feed(p, task, "x");
    int32_t *label = cvy_program_feed(p, task, "label");
    for (int64_t r = 0; r < cvy_program_rows(p, task); r++) {
        for (int64_t i = 0; i < 32; i++)
            x[r * 32 + i] = sin(0.7 * (double)((first + r) * 32 + i));
        label[r] = (int32_t)((first + r) % 3);
    }
}

static const double *gradient(const cvy_plan *plan, const cvy_variable *v)
{
    for (int i = 0; i < plan->nbuffer; i++) {
        const cvy_buffer *b = &plan->buffer[i];
        if (b->region == CVY_REGION_STEP && b->value->kind == CVY_VALUE_ACCUMULATOR && b->value->variable == v)
            return b->data;
    }
    return NULL;
}

/* Compares all gradients of p's task with the changes that a step of `plain` makes, and says how many there are. */
static int compare_gradients(cvy_program *p, int task, cvy_program *plain, int plain_task)
{
    double before[ELEMS_MAX], after[ELEMS_MAX], kept[ELEMS_MAX];
    int count = 0;
    EXPECT_OK(cvy_program_step(p, task, 0.5));
    for (int i = 0; i < cvy_program_vars(p)->count; i++) {
        const cvy_variable *v = cvy_program_vars(p)->at[i];
        const int64_t n = cvy_shape_elems(&v->shape);
        if (v->role != CVY_ROLE_WEIGHT)
            continue;
        EXPECT(n <= ELEMS_MAX);
        EXPECT_OK(cvy_program_get(plain, v->name, before, n));
        EXPECT_OK(cvy_program_step(plain, plain_task, 1));
        EXPECT_OK(cvy_program_get(plain, v->name, after, n));
        const double *g = gradient(cvy_program_task_plan(p, task), v);
        double largest = 0;
        if (!g)
            TEST_FAIL("no gradient of %s", v->name);
        for (int64_t k = 0; g && k < n; k++) {
            EXPECT_NEAR(g[k], before[k] - after[k], 1e-14);
            largest = fmax(largest, fabs(g[k]));
        }
        EXPECT(largest > 1e-4); /* the comparison is of gradients, not of zeros */
        EXPECT_OK(cvy_program_get(p, v->name, kept, n));
        EXPECT(memcmp(kept, before, (size_t)n * sizeof *kept) == 0);
        count++;
        for (int w = 0; w < cvy_program_vars(plain)->count;
             w++) /* back to the weights at which p's gradients were made */
            if (cvy_program_vars(plain)->at[w]->role == CVY_ROLE_WEIGHT) {
                const int64_t m = cvy_shape_elems(&cvy_program_vars(plain)->at[w]->shape);
                EXPECT_OK(cvy_program_get(p, cvy_program_vars(plain)->at[w]->name, kept, m));
                EXPECT_OK(cvy_program_set(plain, cvy_program_vars(plain)->at[w]->name, kept, m));
            }
    }
    return count;
}

/* A batch of 2 leaves a rank out of 3 without rows. */
static void makes_gradients(void)
{
    static const int64_t batches[] = {9, 2};
    for (int i = 0; i < CVY_COUNT(batches); i++) {
        const cvy_batch share = cvy_batch_share(batches[i], all->comm->rank, all->comm->nranks);
        cvy_model *m = new_model();
        int task = 0, plain_task = 0;
        double loss = -1, plain_loss = -2;
        cvy_program *p = new_program(all, m, batches[i], 1, 1, &task);
        cvy_program *plain = new_program(alone, m, share.local_n ? share.local_n : 1, 1, 0, &plain_task);
        const int64_t sent = all->comm->sent_bytes;
        fill(p, task, share.first);
        fill(plain, plain_task, share.first);
        if (share.local_n) {
            EXPECT_INT(compare_gradients(p, task, plain, plain_task), 5);
            EXPECT_OK(cvy_program_step(plain, plain_task, 0));
            EXPECT_OK(cvy_program_loss(plain, plain_task, "loss", &plain_loss));
        } else {
            EXPECT_OK(cvy_program_step(p, task, 0.5));
            plain_loss = 0;
        }
        EXPECT_OK(cvy_program_loss(p, task, "loss", &loss));
        EXPECT_NEAR(loss, plain_loss, 1e-15);
        EXPECT_INT(all->comm->sent_bytes, sent);
        cvy_program_destroy(&plain);
        cvy_program_destroy(&p);
        cvy_model_destroy(&m);
    }
}

static const char *kernel_of(const cvy_plan *plan, const cvy_node *node)
{
    for (int i = 0; i < plan->ninstr; i++) {
        const cvy_call *call = plan->instr[i].call;
        if (cvy_call_runs_node(call) && strcmp(call->node->name, node->name) == 0)
            return call->kernel ? call->kernel->name : "reference";
    }
    return NULL;
}

/* In f32: each forward and backward operator of a training step is also in the task, with the same kernel; updates are
 * not. */
static void runs_the_same_kernels(void)
{
    const cvy_program_opts opts[] = {{.size = sizeof *opts, .batch_norm_group = -1},
                                     {.size = sizeof *opts, .batch_norm_group = -1, .gradients_only = 1}};
    cvy_model *m = new_model();
    cvy_program *p[2] = {NULL};
    int task[2], nbackward = 0, nupdate = 0;
    for (int k = 0; k < 2; k++) {
        EXPECT_OK(cvy_program_create(alone, &opts[k], &p[k]));
        EXPECT_OK(cvy_program_add_training(p[k], m, 6, NULL, &task[k]));
        EXPECT_OK(cvy_program_plan(p[k]));
    }
    const cvy_plan *whole = cvy_program_task_plan(p[0], task[0]), *part = cvy_program_task_plan(p[1], task[1]);
    for (int i = 0; i < whole->ninstr; i++) {
        const cvy_call *call = whole->instr[i].call;
        if (!cvy_call_runs_node(call))
            continue;
        const char *kernel = kernel_of(whole, call->node), *same = kernel_of(part, call->node);
        if (call->node->phase == CVY_PHASE_UPDATE && (call->node->op->flags & CVY_OP_OPTIMIZER)) {
            EXPECT(!same);
            nupdate++;
        } else if (call->node->phase == CVY_PHASE_MICRO) {
            EXPECT_TEXT(same, kernel);
            nbackward += call->node->backward;
        }
    }
    EXPECT_INT(nupdate, 5);
    EXPECT(nbackward >= 4);
    cvy_program_destroy(&p[0]);
    cvy_program_destroy(&p[1]);
    cvy_model_destroy(&m);
}

static void adds_micro_batches(void)
{
    cvy_model *m = new_model();
    int task = 0, plain_task = 0;
    cvy_program *p = new_program(alone, m, 6, 3, 1, &task), *plain = new_program(alone, m, 6, 3, 0, &plain_task);
    fill(p, task, 0);
    fill(plain, plain_task, 0);
    EXPECT_INT(compare_gradients(p, task, plain, plain_task), 5);
    cvy_program_destroy(&plain);
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
}

static void refuses_updates(void)
{
    const struct {
        cvy_program_opts opts;
        const char *part;
    } wrong[] = {
        {{.size = sizeof(cvy_program_opts), .gradients_only = 1, .update_mode = CVY_UPDATE_ZERO1}, "opts.update_mode"},
        {{.size = sizeof(cvy_program_opts), .gradients_only = 1, .overlap = CVY_OVERLAP_FORWARD},
         "opts.overlap is forward"},
        {{.size = sizeof(cvy_program_opts), .gradients_only = 1, .shards = 4}, "opts.gradients_only"},
    };
    for (int i = 0; i < CVY_COUNT(wrong); i++) {
        cvy_program *p = NULL;
        EXPECT_FAULT(cvy_program_create(alone, &wrong[i].opts, &p), CVY_E_CONFIG, wrong[i].part);
        EXPECT(!p);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &all));
    /* One thread, because all ranks compute the expected values at the same time. */
    EXPECT_OK(cvy_context_create(&(cvy_context_opts){.size = sizeof(cvy_context_opts), .threads = 1}, &alone));
    TEST(makes_gradients);
    TEST(runs_the_same_kernels);
    TEST(adds_micro_batches);
    TEST(refuses_updates);
    cvy_context_destroy(&alone);
    cvy_context_destroy(&all);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
