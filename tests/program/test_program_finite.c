/* ranks: 1 2 3 */
/*
 * test_program_finite.c: a step whose loss is finite and whose gradients are not finite ends on all ranks with the same
 * message and leaves all weights unchanged.
 *
 * It also tests, element by element, what cvy_gradients_finite() finds in gradients that it reads completely and in
 * those that it reads in part.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include <string.h>

#include "optim/optim_sgd_fc.h"
#include "program/program_guard.h"
#include "test_util.h"

enum { IN = 512, OUT = 600, BATCH = 6 };

static cvy_context *all;

/* x [IN] -> fc of OUT, whose gradient is large -> fc of 2 -> mean squared error. */
static cvy_program *new_program(int share, int64_t accumulate)
{
    const cvy_program_opts opts = {
        .size = sizeof opts, .seed = 5, .bucket_bytes = 4096, .share_weights = share, .wisdom = "off"};
    const cvy_training_opts training = {
        .size = sizeof training, .accumulate = accumulate, .optimizer = "sgd", .optimizer_options = "momentum: 0.9"};
    cvy_model *m = NULL;
    cvy_program *p = NULL;
    int step = 0;
    EXPECT_OK(cvy_model_create("finite", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){1, {IN}}));
    EXPECT_OK(cvy_model_add_input(m, "t", CVY_DTYPE_F32, &(cvy_shape){1, {2}}));
    EXPECT_OK(cvy_model_add(m, "fc", "large", "channels: 600", "x"));
    EXPECT_OK(cvy_model_add(m, "fc", "small", "channels: 2", NULL));
    EXPECT_OK(cvy_model_add(m, "mse", "loss", NULL, "small, t"));
    EXPECT_OK(cvy_program_create(all, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, BATCH, &training, &step));
    EXPECT_OK(cvy_program_plan(p));
    cvy_model_destroy(&m);
    return p;
}

static void fill(cvy_program *p, float x, float t)
{
    float *const at = cvy_program_feed(p, 0, "x"), *const target = cvy_program_feed(p, 0, "t");
    for (int64_t i = 0; i < cvy_program_rows(p, 0) * IN; i++)
        at[i] = i % 7 == 3 ? x : 0;
    for (int64_t i = 0; i < cvy_program_rows(p, 0) * 2; i++)
        target[i] = t;
}

/* Outputs are about 1e20 and more, so that the loss and its gradient are finite in f64. The product of that gradient
 * with the outputs of `large`, about 1e25, is not finite. */
static void overflow(int share, int64_t accumulate)
{
    static float before[OUT * IN], after[OUT * IN], weight[2 * OUT];
    cvy_program *p = new_program(share, accumulate);
    double loss = 0;
    fill(p, 1, 0);
    EXPECT_OK(cvy_program_step(p, 0, 1e-4));
    EXPECT_OK(cvy_program_get(p, "large.weight", before, OUT * IN));
    EXPECT_OK(cvy_program_get(p, "small.weight", weight, 2 * OUT));
    fill(p, 1e25F, 0);
    EXPECT_FAULT(cvy_program_step(p, 0, 1e-4), CVY_E_NUMERIC,
                 "the first value that is not finite is in small.fc_grad_weight (backward), on rank 0");
    EXPECT(strstr(cvy_error_text(), "sample") == NULL); /* the message names a weight, not a sample */
    EXPECT_TEXT(cvy_program_lost(p, 0), "a gradient");
    EXPECT_OK(cvy_program_get(p, "large.weight", after, OUT * IN));
    EXPECT(memcmp(before, after, sizeof before) == 0);
    EXPECT_OK(cvy_program_get(p, "small.weight", after, 2 * OUT));
    EXPECT(memcmp(weight, after, sizeof weight) == 0);
    fill(p, 1, 0);
    EXPECT_OK(cvy_program_step(p, 0, 1e-4)); /* the failed step changed nothing */
    EXPECT_OK(cvy_program_loss(p, 0, "loss", &loss));
    EXPECT(isfinite(loss));
    cvy_program_destroy(&p);
}

static void whole_weights(void)
{
    overflow(0, 1);
    overflow(0, 2);
}

static void shared_weights(void)
{
    overflow(1, 1);
}

static int are_finite(cvy_plan *plan)
{
    int finite = 0;
    EXPECT_OK(cvy_gradients_finite(plan, &finite));
    return finite;
}

/* A single element that is not finite is found: anywhere in a gradient that is read completely, and in the first row or
 * the bias of one that is not. */
static void elements(void)
{
    static const struct {
        const char *name;
        int64_t at, from_end;
        int seen;
    } cases[] = {
        {"large.weight", 0, 0, 1},     {"large.weight", IN - 1, 0, 1}, {"large.weight", -1, 1, 0},
        {"large.bias", OUT - 1, 0, 1}, {"large.bias", 0, 0, 1},        {"small.weight", 2 * OUT - 1, 0, 1},
        {"small.weight", 17, 0, 1},    {"small.bias", 1, 0, 1},
    };
    cvy_program *p = new_program(0, 2); /* with one micro-batch on one rank, the gradient of `large` is not stored */
    cvy_plan *plan = cvy_program_task_plan(p, 0);
    int seen = 0;
    fill(p, 1, 0);
    EXPECT_OK(cvy_program_step(p, 0, 1e-4));
    EXPECT(are_finite(plan));
    for (int c = 0; c < CVY_COUNT(cases); c++)
        for (int i = 0; i < plan->nbuffer; i++) {
            const cvy_buffer *b = &plan->buffer[i];
            if (b->region != CVY_REGION_STEP || b->root != i || !b->value->variable ||
                strcmp(b->value->variable->name, cases[c].name) != 0)
                continue;
            float *x = b->data;
            const cvy_instance *instance = &plan->lowered[0]->instance[plan->lowered[0]->newest[b->value->index]];
            const int64_t at = cases[c].from_end ? (int64_t)(b->bytes / sizeof *x) - 1 : cases[c].at;
            if (!cvy_layout_is_plain(&instance->layout))
                continue; /* in another layout the row has other elements */
            seen++;
            for (int k = 0; k < 2; k++) {
                const float kept = x[at];
                x[at] = k ? INFINITY : NAN;
                EXPECT_INT(are_finite(plan), !cases[c].seen);
                x[at] = kept;
            }
        }
    EXPECT(are_finite(plan));
    EXPECT(seen >= 3);
    cvy_program_destroy(&p);
}

/* If the gradient of `large` is not stored, its source and the gradient of its result are read instead. */
static void sources(void)
{
    cvy_program *p = new_program(0, 1);
    cvy_plan *plan = cvy_program_task_plan(p, 0);
    int fused = 0, ranks = 0;
    fill(p, 1, 0);
    EXPECT_OK(cvy_program_step(p, 0, 1e-4));
    for (int i = 0; i < plan->ninstr; i++) {
        const cvy_node *node = plan->instr[i].call ? plan->instr[i].call->node : NULL;
        if (!node || strcmp(node->op->name, "fc_grad_sgd") != 0)
            continue;
        float *x = plan->instr[i].src[CVY_FC_SGD_SRC];
        const int64_t last = cvy_program_rows(p, 0) * IN - 1;
        fused++;
        EXPECT(are_finite(plan));
        x[last] = NAN;
        EXPECT(!are_finite(plan));
        x[last] = 0;
        float *ddst = plan->instr[i].src[cvy_fc_sgd_ddst(node)];
        const float kept = ddst[0];
        ddst[0] = INFINITY;
        EXPECT(!are_finite(plan));
        ddst[0] = kept;
    }
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    EXPECT_INT(fused, ranks == 1);
    EXPECT(are_finite(plan));
    cvy_program_destroy(&p);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &all));
    TEST(whole_weights);
    TEST(shared_weights);
    TEST(elements);
    TEST(sources);
    cvy_context_destroy(&all);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
