/*
 * test_program_opts.c: options of a program by name: every name of the table sets its field, options set by name and by
 * field give the same program, and a refused option changes nothing and its message says what is expected.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>

#include <stdlib.h>

#include "base/base_status.h"
#include "program/program_update.h"
#include "test_util.h"

/* Each name with a value that is not the default, and the same option set through its field. */
#define OPTIONS(X)                                                                                                     \
    X("train.dtype", "bf16", dtype = CVY_DTYPE_BF16)                                                                   \
    X("train.seed", "9007199254740993", seed = 9007199254740993)                                                       \
    X("train.precise", "true", precise = 1)                                                                            \
    X("batch_norm.group", "16", batch_norm_group = 16)                                                                 \
    X("batch_norm.frozen", "conv1_bn, block*", batch_norm_frozen = "conv1_bn, block*")                                 \
    X("plan.kernels", "native", kernels = "native")                                                                    \
    X("plan.tf32", "true", tf32 = 1)                                                                                   \
    X("plan.passes_off", "slices, in-place", passes_off = "slices, in-place")                                          \
    X("plan.planning", "measure", planning = "measure")                                                                \
    X("plan.wisdom", "off", wisdom = "off")                                                                            \
    X("plan.memory_limit", "2 GiB", memory_limit = (int64_t)2 << 30)                                                   \
    X("plan.clock_scale", "0.5", clock_scale = 0.5)                                                                    \
    X("plan.clock_noise", "0.005", clock_noise = 0.005)                                                                \
    X("comm.bucket", "4 MiB", bucket_bytes = 4 << 20)                                                                  \
    X("comm.overlap", "forward", overlap = CVY_OVERLAP_FORWARD)                                                        \
    X("comm.blocking", "yes", reduce_blocking = 1)                                                                     \
    X("comm.algorithm", "ring", reduce = "ring")                                                                       \
    X("comm.progress", "thread", reduce_progress = "thread")                                                           \
    X("comm.wire", "bf16", reduce_wire = CVY_DTYPE_BF16)                                                               \
    X("comm.node_memory", "false", reduce_no_node = 1)                                                                 \
    X("update", "zero1", update_mode = CVY_UPDATE_ZERO1)                                                               \
    X("update.mode", "local", update_mode = CVY_UPDATE_LOCAL)                                                          \
    X("update.servers", "3", update_servers = 3)                                                                       \
    X("update.staleness", "none", update_staleness = -1)                                                               \
    X("deterministic", "true", shards = 8)                                                                             \
    X("parallel.pipeline", "4", pipeline = 4)                                                                          \
    X("parallel.spatial", "3", spatial[0] = 3)                                                                         \
    X("parallel.tensor", "2", tensor = 2)                                                                              \
    X("parallel.order", "gpipe", pipeline_order = "gpipe")                                                             \
    X("parallel.interleave", "2", interleave = 2)                                                                      \
    X("parallel.tensor_layers", "auto", tensor_layers = "auto")                                                        \
    X("parallel.first_layers", "conv1, fc", first_layers = "conv1, fc")                                                \
    X("deterministic_shards", "16", shards = 16)                                                                       \
    X("plan_file", "plan.json", plan_file = "plan.json")                                                               \
    X("share_weights", "true", share_weights = 1)                                                                      \
    X("gradients_only", "true", gradients_only = 1)                                                                    \
    X("outputs_in_parts", "true", outputs_in_parts = 1)

#define ROW(name, value, assignment) {name, value},
static const struct {
    const char *name, *value;
} all[] = {OPTIONS(ROW)};

static int same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static int same(const cvy_program_opts *a, const cvy_program_opts *b)
{
    return a->size == b->size && a->dtype == b->dtype && a->seed == b->seed &&
           a->batch_norm_group == b->batch_norm_group && same_text(a->batch_norm_frozen, b->batch_norm_frozen) &&
           same_text(a->kernels, b->kernels) && same_text(a->passes_off, b->passes_off) &&
           a->bucket_bytes == b->bucket_bytes && same_text(a->reduce, b->reduce) && a->reduce_wire == b->reduce_wire &&
           same_text(a->reduce_progress, b->reduce_progress) && a->reduce_no_node == b->reduce_no_node &&
           a->overlap == b->overlap && a->share_weights == b->share_weights && same_text(a->plan_file, b->plan_file) &&
           same_text(a->planning, b->planning) && a->precise == b->precise && a->tf32 == b->tf32 &&
           same_text(a->wisdom, b->wisdom) && a->memory_limit == b->memory_limit && a->update_mode == b->update_mode &&
           a->update_servers == b->update_servers && a->update_staleness == b->update_staleness &&
           a->clock_scale == b->clock_scale && a->clock_noise == b->clock_noise &&
           a->reduce_blocking == b->reduce_blocking && a->shards == b->shards && a->pipeline == b->pipeline &&
           a->tensor == b->tensor && memcmp(a->spatial, b->spatial, sizeof a->spatial) == 0 &&
           same_text(a->pipeline_order, b->pipeline_order) && same_text(a->first_layers, b->first_layers) &&
           same_text(a->tensor_layers, b->tensor_layers) && a->interleave == b->interleave &&
           a->gradients_only == b->gradients_only && a->outputs_in_parts == b->outputs_in_parts;
}

#define CHECK_ONE(name, value, assignment)                                                                             \
    do {                                                                                                               \
        cvy_program_opts by_name = cvy_program_opts_default(), by_field = by_name;                                     \
        by_field.assignment;                                                                                           \
        EXPECT_OK(cvy_program_opts_set(&by_name, name, value));                                                        \
        if (!same(&by_name, &by_field))                                                                                \
            TEST_FAIL("%s: %s sets other fields than " #assignment, name, value);                                      \
    } while (0);

static void every_name_sets_its_field(void)
{
    OPTIONS(CHECK_ONE)
}

/* The message for an unknown name lists the table. */
static void no_name_is_left_out(void)
{
    cvy_program_opts opts = cvy_program_opts_default();
    int count = 0;
    EXPECT_FAULT(cvy_program_opts_set(&opts, "zzzzzzzz", "1"), CVY_E_CONFIG, "; there are ");
    char text[2048], *rest = NULL, *list = NULL;
    snprintf(text, sizeof text, "%s", cvy_error_text());
    list = strstr(text, "; there are ");
    for (char *word = list ? strtok_r(list + 12, ", ", &rest) : NULL; word; word = strtok_r(NULL, ", ", &rest)) {
        int found = 0;
        for (int i = 0; i < CVY_COUNT(all); i++)
            found |= strcmp(all[i].name, word) == 0;
        if (!found)
            TEST_FAIL("option %s is not tested here", word);
        count++;
    }
    EXPECT_INT(count, CVY_COUNT(all));
}

static void words_of_every_mode_are_taken(void)
{
    const cvy_update_def *def;
    for (int i = 0; (def = cvy_update_by_mode(i)) != NULL; i++) {
        cvy_program_opts opts = cvy_program_opts_default();
        EXPECT_OK(cvy_program_opts_set(&opts, "update", def->name));
        EXPECT_INT(opts.update_mode, def->mode);
    }
}

/* Several options share one field, and some accept words as well as numbers. */
static void words_stand_for_numbers(void)
{
    cvy_program_opts opts = cvy_program_opts_default();
    EXPECT_OK(cvy_program_opts_set(&opts, "batch_norm.group", "rank"));
    EXPECT_INT(opts.batch_norm_group, -1);
    EXPECT_OK(cvy_program_opts_set(&opts, "batch_norm.group", "batch"));
    EXPECT_INT(opts.batch_norm_group, -2);
    opts.bucket_bytes = 5;
    EXPECT_OK(cvy_program_opts_set(&opts, "comm.bucket", "auto"));
    EXPECT_INT(opts.bucket_bytes, 0);
    EXPECT_OK(cvy_program_opts_set(&opts, "deterministic_shards", "4"));
    EXPECT_OK(cvy_program_opts_set(&opts, "deterministic", "true"));
    EXPECT_INT(opts.shards, 4);
    EXPECT_OK(cvy_program_opts_set(&opts, "deterministic", "false"));
    EXPECT_INT(opts.shards, 0);
    EXPECT_OK(cvy_program_opts_set(&opts, "plan.kernels", "direct"));
    EXPECT_OK(cvy_program_opts_set(&opts, "plan.kernels", ""));
    EXPECT(!opts.kernels);
}

/* Each of them turns the pass off by itself. */
static void overlap_and_passes_off_are_apart(void)
{
    cvy_program_opts opts = cvy_program_opts_default();
    EXPECT_OK(cvy_program_opts_set(&opts, "comm.overlap", "off"));
    EXPECT_INT(opts.overlap, CVY_OVERLAP_NONE);
    EXPECT(!opts.passes_off);
    EXPECT_OK(cvy_program_opts_set(&opts, "plan.passes_off", "slices, overlap"));
    EXPECT_OK(cvy_program_opts_set(&opts, "comm.overlap", "true"));
    EXPECT_TEXT(opts.passes_off, "slices, overlap");
    EXPECT_INT(opts.overlap, CVY_OVERLAP_BACKWARD);
}

static void what_does_not_fit_is_refused(void)
{
    static const struct {
        const char *name, *value, *text;
    } bad[] = {
        {"comm.algoritm", "ring", "did you mean 'comm.algorithm'?"},
        {"train.dtype", "f16", "train.dtype is \"f16\", expected f32|f64|bf16"},
        {"update", "delaid", "did you mean \"delayed\"?"},
        {"train.seed", "-1", "train.seed is \"-1\", expected 0.."},
        {"train.seed", "many", "train.seed is \"many\", expected a whole number"},
        {"train.precise", "1", "expected true or false"},
        {"plan.memory_limit", "1.5", "plan.memory_limit is \"1.5\", expected a whole number (bytes)"},
        {"plan.clock_scale", "0", "expected >0"},
        {"plan.clock_scale", "inf", "expected a number"},
        {"plan.clock_noise", "1", "expected 0.. <1"},
        {"plan.clock_noise", "nan", "expected a number"},
        {"plan.planning", "mesure", "did you mean \"measure\"?"},
        {"plan.kernels", "nativ", "did you mean \"native\"?"},
        {"plan.passes_off", "slyces", "plan.passes_off: there is no pass 'slyces'"},
        {"comm.bucket", "0", "comm.bucket is \"0\", expected auto or 1.. (bytes)"},
        {"comm.algorithm", "rings", "comm.algorithm: "},
        {"comm.progress", "threads", "comm.progress: 'threads' is none of poll, thread"},
        {"comm.overlap", "forwards", "did you mean \"forward\"?"},
        {"comm.node_memory", "maybe", "expected true|false"},
        {"update.servers", "0", "expected 1.. (ranks)"},
        {"update.staleness", "-1", "expected none or 0.. (steps)"},
        {"deterministic", "8", "expected true or false"},
        {"deterministic_shards", "6", "expected a power of two, 1..4096"},
    };
    for (int i = 0; i < CVY_COUNT(bad); i++) {
        cvy_program_opts opts = cvy_program_opts_default(), before = opts;
        EXPECT_FAULT(cvy_program_opts_set(&opts, bad[i].name, bad[i].value), CVY_E_CONFIG, bad[i].text);
        if (!same(&opts, &before))
            TEST_FAIL("%s: %s is refused and changes the options", bad[i].name, bad[i].value);
    }
    cvy_program_opts opts = cvy_program_opts_default();
    EXPECT_FAULT(cvy_program_opts_set(NULL, "update", "sync"), CVY_E_ARGUMENT, "not NULL");
    EXPECT_FAULT(cvy_program_opts_set(&opts, NULL, "sync"), CVY_E_ARGUMENT, "not NULL");
    EXPECT_FAULT(cvy_program_opts_set(&opts, "update", NULL), CVY_E_ARGUMENT, "the value of update is NULL");
    opts.size = 0;
    EXPECT_FAULT(cvy_program_opts_set(&opts, "update", "sync"), CVY_E_ARGUMENT, "the size of cvy_program_opts is 0");
}

/* A caller with an older header has a shorter struct: nothing is written after its end. */
static void size_of_the_caller_is_kept(void)
{
    cvy_program_opts opts = cvy_program_opts_default();
    opts.size = offsetof(cvy_program_opts, shards);
    EXPECT_FAULT(cvy_program_opts_set(&opts, "deterministic", "true"), CVY_E_ARGUMENT, "older convoy/program.h");
    opts.shards = 77;
    EXPECT_OK(cvy_program_opts_set(&opts, "train.seed", "5"));
    EXPECT_INT(opts.seed, 5);
    EXPECT_INT(opts.shards, 77);
    EXPECT_INT((int64_t)opts.size, (int64_t)offsetof(cvy_program_opts, shards));
}

/* ---- a program ---- */

static void train(cvy_context *context, const cvy_program_opts *opts, double *loss_out, float weight_out[24])
{
    cvy_model *model = NULL;
    cvy_program *program = NULL;
    int task = 0;
    EXPECT_OK(cvy_model_create("opts", &model));
    EXPECT_OK(cvy_model_add_input(model, "x", CVY_DTYPE_F32, &(cvy_shape){1, {8}}));
    EXPECT_OK(cvy_model_add_input(model, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    EXPECT_OK(cvy_model_add(model, "fc", "fc", "channels: 3", "x"));
    EXPECT_OK(cvy_model_add(model, "softmax_cross_entropy", "loss", NULL, "fc, label"));
    EXPECT_OK(cvy_program_create(context, opts, &program));
    EXPECT_OK(cvy_program_add_training(program, model, 4, NULL, &task));
    EXPECT_OK(cvy_program_plan(program));
    float *x = cvy_program_feed(program, task, "x");
    int32_t *label = cvy_program_feed(program, task, "label");
    for (int i = 0; i < 4 * 8; i++)
        x[i] = (float)(i % 5) / 5;
    for (int i = 0; i < 4; i++)
        label[i] = i % 3;
    for (int i = 0; i < 3; i++)
        EXPECT_OK(cvy_program_step(program, task, 0.1));
    EXPECT_OK(cvy_program_loss(program, task, "loss", loss_out));
    EXPECT_OK(cvy_program_get(program, "fc.weight", weight_out, 24));
    cvy_program_destroy(&program);
    cvy_model_destroy(&model);
}

static void programs_are_the_same(void)
{
    static const char *const named[][2] = {{"train.seed", "7"},       {"plan.kernels", "native"},
                                           {"plan.wisdom", "off"},    {"plan.passes_off", "in-place"},
                                           {"deterministic", "true"}, {"deterministic_shards", "2"}};
    const cvy_program_opts by_field = {.size = sizeof by_field,
                                       .seed = 7,
                                       .kernels = "native",
                                       .wisdom = "off",
                                       .passes_off = "in-place",
                                       .shards = 2};
    cvy_program_opts by_name = cvy_program_opts_default();
    const cvy_program_opts other = {.size = sizeof other, .seed = 8, .wisdom = "off"};
    cvy_context *context = NULL;
    double loss[3] = {0};
    float weight[3][24] = {{0}};
    for (int i = 0; i < CVY_COUNT(named); i++)
        EXPECT_OK(cvy_program_opts_set(&by_name, named[i][0], named[i][1]));
    EXPECT(same(&by_name, &by_field));
    EXPECT_OK(cvy_context_create(NULL, &context));
    train(context, &by_field, &loss[0], weight[0]);
    train(context, &by_name, &loss[1], weight[1]);
    train(context, &other, &loss[2], weight[2]);
    EXPECT(memcmp(&loss[0], &loss[1], sizeof loss[0]) == 0 && memcmp(weight[0], weight[1], sizeof weight[0]) == 0);
    EXPECT(memcmp(weight[0], weight[2], sizeof weight[0]) != 0);
    cvy_context_destroy(&context);
}

int main(void)
{
    TEST(every_name_sets_its_field);
    TEST(no_name_is_left_out);
    TEST(words_of_every_mode_are_taken);
    TEST(words_stand_for_numbers);
    TEST(overlap_and_passes_off_are_apart);
    TEST(what_does_not_fit_is_refused);
    TEST(size_of_the_caller_is_kept);
    TEST(programs_are_the_same);
    return test_end();
}
