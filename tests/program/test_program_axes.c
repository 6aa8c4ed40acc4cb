/* ranks: 1 2 4 */
/*
 * test_program_axes.c: the time that ranks wait counts for the axis of the process grid along which they wait: messages
 * and sums over stages for the pipeline, all else for the data axis; the parts add up; the bubble of a pipeline is a
 * part of its axis; messages are named.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "op/comm/op_message.h"
#include "program/program_view.h"
#include "program/ranks_util.h"

enum { BATCH = 16, MICRO = 4 };

static cvy_program *make(int64_t stages, cvy_model **model_out, int *step_out)
{
    const cvy_program_opts opts = {
        .size = sizeof opts, .batch_norm_group = -2, .bucket_bytes = 512, .pipeline = stages};
    const cvy_training_opts training = {
        .size = sizeof training, .optimizer = "sgd", .accumulate = MICRO, .clip_norm = 0.5};
    cvy_program *p = NULL;
    *model_out = new_network("axes");
    EXPECT_OK(cvy_model_add(*model_out, "softmax_cross_entropy", "loss", NULL, "fc, label"));
    EXPECT_OK(cvy_program_create(all, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, *model_out, BATCH, &training, step_out));
    EXPECT_OK(cvy_program_plan(p));
    return p;
}

static void fill(cvy_program *p, int step)
{
    const int64_t rows = cvy_program_rows(p, step);
    const int64_t *id = cvy_program_feed(p, step, "sample_id");
    const cvy_span x = {.dtype = CVY_DTYPE_F32, .data = cvy_program_feed(p, step, "x")};
    int32_t *label = cvy_program_feed(p, step, "label");
    for (int64_t r = 0; r < rows; r++) {
        fill_sample(&x, r, id[r]);
        label[r] = (int32_t)(id[r] % 3);
    }
}

/* What the axis of an instruction must be, from its operator's name alone. */
static cvy_comm_axis expected_axis(const cvy_plan *plan, const cvy_instr *instr, int stages)
{
    const cvy_node *node = cvy_instr_comm(instr) ? instr->call->node : NULL;
    if (!node || stages == 1)
        return CVY_COMM_DATA;
    if (strncmp(node->op->name, "send", 4) == 0 || strncmp(node->op->name, "receive", 7) == 0)
        return CVY_COMM_PIPELINE;
    const int bucket = CVY_MAX(cvy_instr_starts_bucket(instr), cvy_instr_awaits_bucket(instr));
    if (bucket >= 0)
        return plan->buckets->bucket[bucket].comm == plan->opts.grid->all ? CVY_COMM_PIPELINE : CVY_COMM_DATA;
    return strcmp(node->name, "clip.over.pipeline") == 0 ? CVY_COMM_PIPELINE : CVY_COMM_DATA;
}

static void check_instructions(const cvy_plan *plan, int stages)
{
    int nmessages = 0, nwaits = 0;
    for (int i = 0; i < plan->ninstr; i++) {
        const cvy_instr *instr = &plan->instr[i];
        char text[160] = "";
        EXPECT_INT(instr->axis, expected_axis(plan, instr, stages));
        if (!cvy_instr_message(instr, text, sizeof text)) {
            EXPECT(!cvy_instr_comm(instr) || !cvy_op_is_message(instr->call->node->op));
            continue;
        }
        nmessages++;
        nwaits += instr->awaits_stage;
        EXPECT(instr->awaits_stage == (strncmp(text, "wait to ", 8) == 0));
        EXPECT(strstr(text, " stage ") && strstr(text, ", micro-batch "));
        const struct cvy_message_options *o = instr->call->node->options;
        EXPECT(o->stage != plan->opts.grid->stage && o->stage < stages);
    }
    EXPECT((nmessages > 0) == (stages > 1));
    EXPECT_INT(nwaits * 2, nmessages); /* each message is started and waited for */
}

static void parts_add_up(const cvy_step_time *time, int stages, int ndata)
{
    double sum = 0;
    for (int a = 0; a < CVY_COMM_AXES; a++)
        sum += cvy_step_time_axis(time, (cvy_comm_axis)a);
    EXPECT_NEAR(sum, time->exposed_comm, 1e-9);
    EXPECT(time->exposed_comm <= time->total);
    EXPECT((cvy_step_time_axis(time, CVY_COMM_PIPELINE) > 0) == (stages > 1));
    EXPECT(cvy_step_time_axis(time, CVY_COMM_DATA) > 0 || ndata == 1);
    EXPECT(cvy_step_time_axis(time, CVY_COMM_TENSOR) == 0 && cvy_step_time_axis(time, CVY_COMM_SPATIAL) == 0);
    EXPECT((time->bubble > 0) == (stages > 1));
    EXPECT(time->bubble <= cvy_step_time_axis(time, CVY_COMM_PIPELINE));
}

static void check(int stages)
{
    const int nranks = cvy_context_nranks(all);
    cvy_model *model = NULL;
    int step = 0;
    cvy_program *p = make(stages, &model, &step);
    fill(p, step);
    const int64_t sent = cvy_program_sent_bytes(p);
    for (int i = 0; i < 3; i++) {
        EXPECT_OK(cvy_program_step(p, step, 0.01));
        parts_add_up(cvy_program_time(p, step), stages, nranks / stages);
    }
    EXPECT(cvy_program_sent_bytes(p) > sent || stages == 1);
    check_instructions(cvy_program_task_plan(p, step), stages);
    const double bubble = cvy_program_bubble(p, step);
    EXPECT(stages == 1 ? bubble == 0 : bubble >= (stages - 1.0) / (MICRO + stages - 1) - 1e-9 && bubble < 1);
    const cvy_step_time before = *cvy_program_time(p, step);
    cvy_step_time added = before;
    cvy_step_time_add(&added, CVY_COMM_TENSOR, 2);
    EXPECT_NEAR(cvy_step_time_axis(&added, CVY_COMM_TENSOR), 2, 1e-12);
    EXPECT_NEAR(cvy_step_time_axis(&added, CVY_COMM_DATA), cvy_step_time_axis(&before, CVY_COMM_DATA), 1e-9);
    EXPECT_NEAR(added.bubble, before.bubble, 0);
    cvy_program_destroy(&p);
    cvy_model_destroy(&model);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    (void)alone;
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &all));
    const int nranks = cvy_context_nranks(all);
    for (int stages = 1; stages <= nranks; stages++)
        if (nranks % stages == 0)
            check(stages);
    cvy_context_destroy(&all);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
