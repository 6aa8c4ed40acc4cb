/*
 * test_context_handles.c: every public function refuses an object that is NULL, that was destroyed, or that is of
 * another type, names the argument, and harms no other object; a text or place that is NULL is refused, too; in a
 * process that was forked from one with threads, it refuses all objects. Threads may create, use and destroy objects at
 * once. tests/context/handles.sh makes sure that no function is missing here.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/base_handle.h"
#include "ensemble/ensemble.h"
#include "files/files.h"
#include "health/health.h"
#include "predict/predict.h"
#include "report/report.h"
#include "sweep/sweep.h"
#include "test_util.h"

enum { THREADS = 4, ROUNDS = 300, MANY = 700 }; /* THREADS * MANY objects are more than the first table holds */

/* An object of each type. */
struct objects {
    cvy_context *context;
    cvy_model *model;
    cvy_program *program;
    cvy_data *data;
    cvy_data_loader *loader;
    cvy_metric *metric;
    cvy_network *network;
    cvy_shared_network *shared;
    cvy_reducer *reducer;
    cvy_schedule *schedule;
    cvy_reservoir *reservoir;
    cvy_stream *stream;
    cvy_train_control *control;
};

static const char source[] = "{format: synthetic, shape: [3], classes: 2, samples: 8}";
static const char job[] = "model: {layers: [{fc: {channels: 2}}]}\n"
                          "data: {train: {format: synthetic, shape: [3], classes: 2, samples: 8}}\n"
                          "train: {batch: 4, steps: 1, optimizer: {name: sgd, lr: 0.1}}\n";

static void create(struct objects *o)
{
    const cvy_context_opts one = {.size = sizeof one, .threads = 1};
    const cvy_program_opts quick = {.size = sizeof quick, .wisdom = "off"};
    const cvy_data_loader_opts batches = {.size = sizeof batches, .batch = 4};
    const cvy_schedule_opts rate = {.size = sizeof rate, .lr = 1, .batch = 1, .epoch_samples = 1, .epochs = 1};
    const cvy_reservoir_opts room = {.size = sizeof room, .capacity = 4};
    EXPECT_OK(cvy_context_create(&one, &o->context));
    EXPECT_OK(cvy_model_create("m", &o->model));
    EXPECT_OK(cvy_program_create(o->context, &quick, &o->program));
    EXPECT_OK(cvy_data_open(source, NULL, &o->data));
    EXPECT_OK(cvy_data_loader_create(o->context, o->data, &batches, &o->loader));
    EXPECT_OK(cvy_metric_open("accuracy", &(cvy_shape){1, {10}}, &o->metric));
    EXPECT_OK(cvy_network_open(o->context, "run", NULL, &o->network));
    EXPECT_OK(cvy_shared_network_create(o->context, o->network, &o->shared));
    EXPECT_OK(cvy_reducer_create(o->context, NULL, &o->reducer));
    EXPECT_OK(cvy_schedule_open("constant", &rate, &o->schedule));
    EXPECT_OK(cvy_reservoir_create(&room, &o->reservoir));
    EXPECT_OK(cvy_reservoir_add_field(o->reservoir, "x", CVY_DTYPE_F32, &(cvy_shape){0}));
    const cvy_stream_opts both = {.size = sizeof both, .role = "both", .reservoir = o->reservoir};
    EXPECT_OK(cvy_stream_create(o->context, &both, &o->stream));
    EXPECT_OK(cvy_train_control_create(&o->control));
}

static void destroy(struct objects *o)
{
    cvy_train_control_destroy(&o->control);
    cvy_stream_destroy(&o->stream);
    cvy_reservoir_destroy(&o->reservoir);
    cvy_schedule_destroy(&o->schedule);
    cvy_reducer_destroy(&o->reducer);
    cvy_shared_network_destroy(&o->shared);
    cvy_network_destroy(&o->network);
    cvy_metric_destroy(&o->metric);
    cvy_data_loader_destroy(&o->loader);
    cvy_data_destroy(&o->data);
    cvy_program_destroy(&o->program);
    cvy_model_destroy(&o->model);
    cvy_context_destroy(&o->context);
}

/* ---- what is given instead of an object ---- */

static const struct objects *alive; /* the other arguments of the calls */
static void *wrong;
static cvy_handle_type wrong_type; /* NONE: wrong is NULL, or was destroyed */
static const char *wrong_text;     /* part of the message, after the name of the argument */
static int is_fork;                /* in a process that was forked from one with threads */

static int begins_with(const char *text)
{
    return strncmp(cvy_error_text(), text, strlen(text)) == 0;
}

static int message_is(const char *argument)
{
    char text[120];
    snprintf(text, sizeof text, "%s %s", argument, wrong_text);
    return begins_with(text) || (is_fork && begins_with("this process, "));
}

static void forget_message(void)
{
    cvy_dtype dtype;
    EXPECT_INT(cvy_dtype_parse("none", &dtype), CVY_E_ARGUMENT);
}

#define NAMED(TYPE, argument, call, good)                                                                              \
    do {                                                                                                               \
        if (wrong_type == CVY_HANDLE_##TYPE)                                                                           \
            break;                                                                                                     \
        forget_message();                                                                                              \
        test_checks++;                                                                                                 \
        if (!(good) || !message_is(argument))                                                                          \
            TEST_FAIL("%s: expected \"%s %s\", got \"%s\"", #call, argument, wrong_text, cvy_error_text());            \
    } while (0)
#define FAULT(TYPE, argument, call)                                                                                    \
    NAMED(TYPE, argument, call, (call) == (is_fork ? CVY_E_UNSUPPORTED : CVY_E_ARGUMENT))
#define VALUE(TYPE, argument, call, value) NAMED(TYPE, argument, call, (call) == (value))
/* Functions that leave no message. */
#define QUIET(TYPE, call)                                                                                              \
    do {                                                                                                               \
        if (wrong_type != CVY_HANDLE_##TYPE)                                                                           \
            EXPECT(call);                                                                                              \
    } while (0)
#define NOTHING(TYPE, type, destroy)                                                                                   \
    do {                                                                                                               \
        type *copy = wrong;                                                                                            \
        if (wrong_type != CVY_HANDLE_##TYPE)                                                                           \
            destroy(&copy);                                                                                            \
        EXPECT(copy == wrong);                                                                                         \
    } while (0)

/* ---- calls ---- */

static void *out[8];   /* what no call may write */
static char *text_out; /* likewise */
static int64_t numbers[CVY_NDIM_MAX];
static cvy_shape shape;

static void call_context(void)
{
    cvy_program *program = NULL;
    cvy_network *network = NULL;
    cvy_reducer *reducer = NULL;
    cvy_stream *stream = NULL;
    cvy_shared_network *shared = NULL;
    cvy_data_loader *loader = NULL;
    VALUE(CONTEXT, "context", cvy_context_rank(wrong), 0);
    VALUE(CONTEXT, "context", cvy_context_nranks(wrong), 0);
    VALUE(CONTEXT, "context", cvy_context_threads(wrong), 0);
    VALUE(CONTEXT, "context", cvy_context_device(wrong), NULL);
    FAULT(CONTEXT, "context", cvy_context_load_library(wrong, "lib.so"));
    FAULT(CONTEXT, "context", cvy_context_add_operator(wrong, &(cvy_operator){.size = sizeof(cvy_operator)}));
    FAULT(CONTEXT, "context", cvy_context_broadcast(wrong, numbers, sizeof numbers, 0));
    FAULT(CONTEXT, "context", cvy_model_use_context(alive->model, wrong));
    FAULT(CONTEXT, "context", cvy_metric_reduce(alive->metric, wrong, &(double){0}));
    FAULT(CONTEXT, "context", cvy_program_create(wrong, NULL, &program));
    FAULT(CONTEXT, "context", cvy_network_open(wrong, "run", NULL, &network));
    FAULT(CONTEXT, "context", cvy_shared_network_create(wrong, alive->network, &shared));
    FAULT(CONTEXT, "context", cvy_reducer_create(wrong, NULL, &reducer));
    FAULT(CONTEXT, "context", cvy_stream_create(wrong, NULL, &stream));
    FAULT(CONTEXT, "context", cvy_data_loader_create(wrong, alive->data, NULL, &loader));
    EXPECT(!program && !network && !shared && !reducer && !stream && !loader);
}

static void call_runs(void)
{
    const cvy_job_source source_of_job = {.size = sizeof source_of_job, .text = job};
    const cvy_convert_request convert = {.size = sizeof convert};
    const cvy_predict_request predict = {.size = sizeof predict};
    cvy_test_result test = cvy_test_result_default();
    cvy_calibration_result calibration = cvy_calibration_result_default();
    cvy_ensemble_scores scores = cvy_ensemble_scores_default();
    cvy_bench_result bench = cvy_bench_result_default();
    cvy_check_result check = cvy_check_result_default();
    cvy_doctor_report doctor;
    cvy_selftest_result selftest;
    cvy_operators_result operators = cvy_operators_result_default();
    FAULT(CONTEXT, "context", cvy_run_convert(wrong, &convert, &text_out));
    FAULT(CONTEXT, "context", cvy_run_test(wrong, "run", NULL, NULL, &test));
    FAULT(CONTEXT, "context", cvy_run_calibrate(wrong, "run", NULL, &calibration));
    FAULT(CONTEXT, "context", cvy_run_test_ensemble(wrong, NULL, 0, NULL, 0, &scores));
    FAULT(CONTEXT, "context", cvy_run_predict(wrong, &predict));
    FAULT(CONTEXT, "context", cvy_run_train(wrong, &source_of_job, NULL, NULL));
    FAULT(CONTEXT, "context", cvy_run_bench(wrong, NULL, &bench));
    FAULT(CONTEXT, "context", cvy_run_time(wrong, NULL, "table", &text_out));
    FAULT(CONTEXT, "context", cvy_run_check(wrong, NULL, NULL, &check));
    FAULT(CONTEXT, "context", cvy_run_plan(wrong, &source_of_job, NULL, "table", &text_out));
    FAULT(CONTEXT, "context", cvy_run_bench_plan(wrong, NULL, "table", &text_out));
    FAULT(CONTEXT, "context", cvy_run_plan_grids(wrong, NULL, NULL, &text_out));
    FAULT(CONTEXT, "context", cvy_run_doctor(wrong, NULL, &doctor));
    FAULT(CONTEXT, "context", cvy_run_selftest(wrong, NULL, &selftest));
    FAULT(CONTEXT, "context", cvy_run_check_operators(wrong, "lib.so", NULL, &operators));
    FAULT(CONTEXT, "context", cvy_run_sweep(wrong, "sweep.yaml", NULL, NULL));
}

static void call_model(void)
{
    FAULT(MODEL, "model", cvy_model_use_context(wrong, alive->context));
    FAULT(MODEL, "model", cvy_model_add_input(wrong, "x", CVY_DTYPE_F32, &shape));
    FAULT(MODEL, "model", cvy_model_add(wrong, "relu", NULL, NULL, NULL));
    FAULT(MODEL, "model", cvy_model_set_stage(wrong, "relu", 1));
    VALUE(MODEL, "model", cvy_model_output(wrong), NULL);
    FAULT(MODEL, "model", cvy_program_add_training(alive->program, wrong, 1, NULL, &(int){0}));
    FAULT(MODEL, "model", cvy_program_add_forward(alive->program, wrong, 1, NULL, &(int){0}));
}

static void call_program(void)
{
    const cvy_checkpoint_opts save = {.size = sizeof save, .folder = "set"};
    cvy_checkpoint_about about = cvy_checkpoint_about_default();
    const cvy_data_batch batch = {.size = sizeof batch, .data = alive->data};
    const char *name = NULL;
    FAULT(PROGRAM, "program", cvy_program_add_training(wrong, alive->model, 1, NULL, &(int){0}));
    FAULT(PROGRAM, "program", cvy_program_add_forward(wrong, alive->model, 1, NULL, &(int){0}));
    FAULT(PROGRAM, "program", cvy_program_plan(wrong));
    VALUE(PROGRAM, "program", cvy_program_rows(wrong, 0), 0);
    VALUE(PROGRAM, "program", cvy_program_first_row(wrong, 0), 0);
    VALUE(PROGRAM, "program", cvy_program_feed(wrong, 0, "x"), NULL);
    FAULT(PROGRAM, "program", cvy_program_set_rows(wrong, 0, 1));
    VALUE(PROGRAM, "program", cvy_program_samples(wrong, 0), 0);
    FAULT(PROGRAM, "program", cvy_program_write_input(wrong, 0, "x", CVY_DTYPE_I64, numbers, 1));
    FAULT(PROGRAM, "program", cvy_program_step(wrong, 0, 0.1));
    FAULT(PROGRAM, "program", cvy_program_flush(wrong));
    FAULT(PROGRAM, "program", cvy_program_loss(wrong, 0, NULL, &(double){0}));
    FAULT(PROGRAM, "program", cvy_program_output(wrong, 0, NULL, (const void **)out, &shape));
    FAULT(PROGRAM, "program", cvy_program_read_output(wrong, 0, NULL, CVY_DTYPE_F64, numbers, 1));
    FAULT(PROGRAM, "program", cvy_program_write_block(wrong, 0, "x", CVY_DTYPE_F64, numbers, &shape, NULL));
    FAULT(PROGRAM, "program", cvy_program_read_block(wrong, 0, "x", CVY_DTYPE_F64, numbers, &shape, NULL));
    FAULT(PROGRAM, "program", cvy_program_get(wrong, "w", numbers, 1));
    FAULT(PROGRAM, "program", cvy_program_set(wrong, "w", numbers, 1));
    FAULT(PROGRAM, "program", cvy_program_part(wrong, 0, "x", &shape, numbers));
    FAULT(PROGRAM, "program", cvy_program_variable(wrong, 0, &name, &shape));
    FAULT(PROGRAM, "program", cvy_program_save(wrong, "weights"));
    FAULT(PROGRAM, "program", cvy_program_load(wrong, "weights"));
    FAULT(PROGRAM, "program", cvy_program_print(wrong, 0, "plan", &text_out));
    VALUE(PROGRAM, "program", cvy_program_bytes(wrong), 0);
    FAULT(PROGRAM, "program", cvy_checkpoint_write(wrong, &save));
    FAULT(PROGRAM, "program", cvy_checkpoint_read(wrong, "set", NULL, &about));
    FAULT(PROGRAM, "program", cvy_program_fill(wrong, 0, &batch));
    FAULT(PROGRAM, "program", cvy_reservoir_draw(alive->reservoir, wrong, 0));
}

static void call_data(void)
{
    cvy_data *part = NULL;
    cvy_data_loader *loader = NULL;
    cvy_data_about about = cvy_data_about_default();
    cvy_data_batch batch = cvy_data_batch_default();
    FAULT(DATA, "data", cvy_data_split(wrong, 0.5, 1, 1, &part));
    FAULT(DATA, "data", cvy_data_describe(wrong, &about));
    FAULT(DATA, "data", cvy_data_field(wrong, 0, NULL, NULL, &shape));
    VALUE(DATA, "data", cvy_data_class(wrong, 0), NULL);
    FAULT(DATA, "data", cvy_data_loader_create(alive->context, wrong, NULL, &loader));
    FAULT(DATA_LOADER, "loader", cvy_data_loader_next(wrong, &batch));
    VALUE(DATA_LOADER, "loader", cvy_data_loader_steps(wrong), 0);
    EXPECT(!part && !loader);
    batch.data = wrong;
    if (wrong)
        FAULT(DATA, "batch.data", cvy_program_fill(alive->program, 0, &batch));
}

static void call_network(void)
{
    const cvy_network_export_opts opts = {.size = sizeof opts};
    cvy_network_about about = cvy_network_about_default();
    cvy_network_out y = {.dtype = CVY_DTYPE_F64, .data = numbers};
    cvy_shared_network *shared = NULL;
    cvy_output_kind kind;
    FAULT(NETWORK, "network", cvy_network_describe(wrong, &about));
    FAULT(NETWORK, "network", cvy_network_input(wrong, 0, NULL, NULL, &shape));
    FAULT(NETWORK, "network", cvy_network_output(wrong, 0, NULL, &shape));
    FAULT(NETWORK, "network", cvy_network_output_kind(wrong, 0, &kind));
    VALUE(NETWORK, "network", cvy_network_class(wrong, 0), NULL);
    FAULT(NETWORK, "network", cvy_network_apply(wrong, 0, NULL, 0, &y, 1));
    FAULT(NETWORK, "network", cvy_network_check_input(wrong, "{}", &text_out));
    FAULT(NETWORK, "network", cvy_network_export(wrong, "model.onnx", &opts, &text_out));
    if (wrong) /* NULL on a rank that holds no network */
        FAULT(NETWORK, "network", cvy_shared_network_create(alive->context, wrong, &shared));
    FAULT(SHARED_NETWORK, "shared", cvy_shared_network_apply(wrong, 0, NULL, 0, &y, 1));
    EXPECT(!shared);
}

static void call_reducer(void)
{
    FAULT(REDUCER, "reducer", cvy_reducer_add(wrong, "g", 1, CVY_DTYPE_F32, &(int){0}));
    FAULT(REDUCER, "reducer", cvy_reducer_ready(wrong));
    VALUE(REDUCER, "reducer", cvy_reducer_buffer(wrong, 0), NULL);
    VALUE(REDUCER, "reducer", cvy_reducer_sum(wrong, 0), NULL);
    FAULT(REDUCER, "reducer", cvy_reducer_start(wrong, 0));
    FAULT(REDUCER, "reducer", cvy_reducer_progress(wrong));
    FAULT(REDUCER, "reducer", cvy_reducer_wait(wrong, 0));
}

static void call_reservoir(void)
{
    const char *name = NULL;
    FAULT(RESERVOIR, "reservoir", cvy_reservoir_add_field(wrong, "y", CVY_DTYPE_F32, &shape));
    FAULT(RESERVOIR, "reservoir", cvy_reservoir_field(wrong, 0, &name, NULL, &shape));
    FAULT(RESERVOIR, "reservoir", cvy_reservoir_put(wrong, "x", CVY_DTYPE_F64, numbers, 1));
    FAULT(RESERVOIR, "reservoir", cvy_reservoir_push(wrong));
    VALUE(RESERVOIR, "reservoir", cvy_reservoir_held(wrong), 0);
    VALUE(RESERVOIR, "reservoir", cvy_reservoir_seen(wrong), 0);
    FAULT(RESERVOIR, "reservoir", cvy_reservoir_draw(wrong, alive->program, 0));
    FAULT(RESERVOIR, "reservoir", cvy_reservoir_set_losses(wrong, NULL, 0));
    VALUE(RESERVOIR, "reservoir", cvy_reservoir_bytes(wrong), 0);
    FAULT(RESERVOIR, "reservoir", cvy_reservoir_save(wrong, numbers, sizeof numbers));
    FAULT(RESERVOIR, "reservoir", cvy_reservoir_load(wrong, numbers, sizeof numbers));
}

static void call_stream(void)
{
    const char *name = NULL;
    cvy_stream_counts counts = cvy_stream_counts_default();
    cvy_stream *stream = NULL;
    FAULT(STREAM, "stream", cvy_stream_field(wrong, 0, &name, NULL, &shape));
    FAULT(STREAM, "stream", cvy_stream_put(wrong, "x", CVY_DTYPE_F64, numbers, 1));
    FAULT(STREAM, "stream", cvy_stream_push(wrong));
    FAULT(STREAM, "stream", cvy_stream_flush(wrong, 0));
    FAULT(STREAM, "stream", cvy_stream_take(wrong, numbers));
    FAULT(STREAM, "stream", cvy_stream_receive(wrong));
    FAULT(STREAM, "stream", cvy_stream_publish(wrong));
    FAULT(STREAM, "stream", cvy_stream_get_counts(wrong, &counts));
    const cvy_stream_opts kept = {.size = sizeof kept, .role = "both", .reservoir = wrong};
    if (wrong_type) /* NULL has a message of its own, and a new stream may lie where the destroyed object was */
        FAULT(RESERVOIR, "opts.reservoir", cvy_stream_create(alive->context, &kept, &stream));
    const cvy_stream_opts weights = {
        .size = sizeof weights, .role = "both", .reservoir = alive->reservoir, .program = wrong};
    if (wrong_type)
        FAULT(PROGRAM, "opts.program", cvy_stream_create(alive->context, &weights, &stream));
    EXPECT(!stream);
}

static void call_others(void)
{
    const cvy_metric_batch rows = {.size = sizeof rows};
    FAULT(METRIC, "metric", cvy_metric_add_rows(wrong, &rows));
    FAULT(METRIC, "metric", cvy_metric_reduce(wrong, alive->context, &(double){0}));
    VALUE(SCHEDULE, "schedule", cvy_schedule_lr(wrong, 0), 0);
    QUIET(TRAIN_CONTROL, (cvy_train_control_request(wrong, CVY_TRAIN_STOP), 1));
    QUIET(TRAIN_CONTROL, cvy_train_control_is_stopping(wrong) == 0);
    QUIET(TRAIN_CONTROL, cvy_train_control_longest_s(wrong) == 0);
}

static void call_with_control(void)
{
    const cvy_job_source source_of_job = {.size = sizeof source_of_job, .text = job};
    const cvy_train_opts train = {.size = sizeof train, .out = "none", .control = wrong};
    const cvy_sweep_opts sweep = {.size = sizeof sweep, .out = "none", .control = wrong};
    const cvy_selftest_opts check = {.size = sizeof check, .control = wrong};
    cvy_selftest_result result;
    if (!wrong)
        return;
    FAULT(TRAIN_CONTROL, "opts.control", cvy_run_train(alive->context, &source_of_job, &train, NULL));
    FAULT(TRAIN_CONTROL, "opts.control", cvy_run_sweep(alive->context, "sweep.yaml", &sweep, NULL));
    FAULT(TRAIN_CONTROL, "opts.control", cvy_run_selftest(alive->context, &check, &result));
}

static void call_destroy(void)
{
    NOTHING(CONTEXT, cvy_context, cvy_context_destroy);
    NOTHING(MODEL, cvy_model, cvy_model_destroy);
    NOTHING(PROGRAM, cvy_program, cvy_program_destroy);
    NOTHING(DATA, cvy_data, cvy_data_destroy);
    NOTHING(DATA_LOADER, cvy_data_loader, cvy_data_loader_destroy);
    NOTHING(METRIC, cvy_metric, cvy_metric_destroy);
    NOTHING(NETWORK, cvy_network, cvy_network_destroy);
    NOTHING(SHARED_NETWORK, cvy_shared_network, cvy_shared_network_destroy);
    NOTHING(REDUCER, cvy_reducer, cvy_reducer_destroy);
    NOTHING(SCHEDULE, cvy_schedule, cvy_schedule_destroy);
    NOTHING(RESERVOIR, cvy_reservoir, cvy_reservoir_destroy);
    NOTHING(STREAM, cvy_stream, cvy_stream_destroy);
    NOTHING(TRAIN_CONTROL, cvy_train_control, cvy_train_control_destroy);
}

static void call_all(const void *object, cvy_handle_type type, const char *text)
{
    memcpy(&wrong, &object, sizeof wrong);
    wrong_type = type;
    wrong_text = text;
    call_context();
    call_runs();
    call_model();
    call_program();
    call_data();
    call_network();
    call_reducer();
    call_reservoir();
    call_stream();
    call_others();
    call_with_control();
    call_destroy();
}

/* ---- tests ---- */

/* Calls one function with each object, its type, and what a message says of it. */
static void for_each(const struct objects *o, void (*call)(const void *, cvy_handle_type, const char *))
{
    call(o->context, CVY_HANDLE_CONTEXT, "is a cvy_context");
    call(o->model, CVY_HANDLE_MODEL, "is a cvy_model");
    call(o->program, CVY_HANDLE_PROGRAM, "is a cvy_program");
    call(o->data, CVY_HANDLE_DATA, "is a cvy_data:");
    call(o->loader, CVY_HANDLE_DATA_LOADER, "is a cvy_data_loader");
    call(o->metric, CVY_HANDLE_METRIC, "is a cvy_metric");
    call(o->network, CVY_HANDLE_NETWORK, "is a cvy_network");
    call(o->shared, CVY_HANDLE_SHARED_NETWORK, "is a cvy_shared_network");
    call(o->reducer, CVY_HANDLE_REDUCER, "is a cvy_reducer");
    call(o->schedule, CVY_HANDLE_SCHEDULE, "is a cvy_schedule");
    call(o->reservoir, CVY_HANDLE_RESERVOIR, "is a cvy_reservoir");
    call(o->stream, CVY_HANDLE_STREAM, "is a cvy_stream");
    call(o->control, CVY_HANDLE_TRAIN_CONTROL, "is a cvy_train_control");
}

static void call_with_dead(const void *object, cvy_handle_type type, const char *text)
{
    (void)type, (void)text;
    call_all(object, CVY_HANDLE_NONE, "was destroyed");
}

static struct objects one;

static void no_object(void)
{
    call_all(NULL, CVY_HANDLE_NONE, "is NULL, or was destroyed");
}

static void another_type(void)
{
    for_each(&one, call_all);
}

static void destroyed_objects(void)
{
    struct objects two = {0};
    create(&two);
    const struct objects copies = two;
    destroy(&two);
    for_each(&copies, call_with_dead);
}

static void *use_many(void *fault)
{
    cvy_train_control *many[MANY] = {0};
    int *wrong_answers = fault;
    for (int i = 0; i < MANY; i++)
        *wrong_answers += cvy_train_control_create(&many[i]) != CVY_OK;
    for (int round = 0; round < ROUNDS; round++) {
        const int i = round * 7 % MANY;
        cvy_train_control *copy = many[i];
        cvy_train_control_destroy(&many[i]);
        *wrong_answers += cvy_train_control_create(&many[i]) != CVY_OK;
        if (copy != many[i]) /* a thread may have got this memory for another one */
            *wrong_answers += cvy_handle_is(copy, CVY_HANDLE_PROGRAM);
        for (int k = 0; k < MANY; k++)
            *wrong_answers += !cvy_handle_is(many[k], CVY_HANDLE_TRAIN_CONTROL);
    }
    for (int i = 0; i < MANY; i++)
        cvy_train_control_destroy(&many[i]);
    return NULL;
}

static void threads_at_once(void)
{
    pthread_t thread[THREADS];
    int wrong_answers[THREADS] = {0};
    for (int i = 0; i < THREADS; i++)
        EXPECT_INT(pthread_create(&thread[i], NULL, use_many, &wrong_answers[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        EXPECT_INT(pthread_join(thread[i], NULL), 0);
        EXPECT_INT(wrong_answers[i], 0);
    }
}

/* Destroys no object, and refuses those of the right type like all others. */
static void call_in_fork(const void *object, cvy_handle_type type, const char *text)
{
    call_all(object, type, text);
    wrong_type = CVY_HANDLE_NONE;
    call_destroy();
    EXPECT(cvy_handle_check(object, type, NULL) == CVY_E_UNSUPPORTED && !cvy_handle_is(object, type));
}

static void fork_of_a_process_with_threads(void)
{
    const cvy_context_opts two = {.size = sizeof two, .threads = 2};
    cvy_context *context = NULL;
    int how = -1;
    EXPECT_OK(cvy_context_create(&two, &context));
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        is_fork = 1;
        test_failures = 0;
        for_each(&one, call_in_fork);
        fflush(stdout);
        _exit(test_failures != 0);
    }
    EXPECT(child > 0 && waitpid(child, &how, 0) == child);
    EXPECT_INT(how, 0);
    cvy_context_destroy(&context);
}

static void nothing_is_left(void)
{
    destroy(&one);
    for (int i = 0; i < CVY_COUNT(out); i++)
        EXPECT(!out[i]);
    EXPECT(!text_out);
    EXPECT_INT(cvy_memory_bytes(), 0);
}

static void no_other_argument(void)
{
    const cvy_shape shape_of_x = {1, {3}};
    const char *const runs[2] = {0};
    const void *address = NULL;
    double loss;
    cvy_run_summary summary = cvy_run_summary_default();
    cvy_test_result test = cvy_test_result_default();
    cvy_model *model = NULL;
#define NEEDS(call) EXPECT_FAULT(call, CVY_E_ARGUMENT, "() needs ")
    NEEDS(cvy_dtype_parse("f32", NULL));
    NEEDS(cvy_context_create(NULL, NULL));
    NEEDS(cvy_model_create("m", NULL));
    NEEDS(cvy_model_zoo(NULL, NULL, NULL, 0, &model));
    NEEDS(cvy_model_from_file(NULL, NULL, &model));
    NEEDS(cvy_model_add_input(one.model, NULL, CVY_DTYPE_F32, &shape_of_x));
    NEEDS(cvy_model_add_input(one.model, "x", CVY_DTYPE_F32, NULL));
    NEEDS(cvy_model_add(one.model, NULL, NULL, NULL, NULL));
    NEEDS(cvy_program_loss(one.program, 0, NULL, &loss));
    NEEDS(cvy_program_loss(one.program, 0, "loss", NULL));
    NEEDS(cvy_program_feed(one.program, 0, NULL) ? CVY_OK : CVY_E_ARGUMENT);
    NEEDS(cvy_program_output(one.program, 0, NULL, &address, NULL));
    NEEDS(cvy_program_output(one.program, 0, "fc", NULL, NULL));
    NEEDS(cvy_program_part(one.program, 0, NULL, NULL, NULL));
    NEEDS(cvy_program_variable(one.program, 0, NULL, NULL));
    NEEDS(cvy_program_print(one.program, 0, NULL, &text_out));
    NEEDS(cvy_program_print(one.program, 0, "text", NULL));
    NEEDS(cvy_run_test(one.context, NULL, NULL, NULL, &test));
    NEEDS(cvy_run_checkpoint(NULL, &text_out));
    NEEDS(cvy_run_export(NULL, NULL, "weights", 0, numbers, NULL));
    NEEDS(cvy_run_summarize(NULL, &summary));
    NEEDS(cvy_run_inspect(NULL, 0, &text_out));
    NEEDS(cvy_run_verify(NULL, &(int){0}, &text_out));
    NEEDS(cvy_report_write(NULL));
    NEEDS(cvy_report_compare(NULL, 2, "page.html"));
#undef NEEDS
    EXPECT_FAULT(cvy_report_compare(runs, 2, "page.html"), CVY_E_ARGUMENT, "run folder 0 is NULL");
    EXPECT(!model && !text_out && !address);
}

int main(void)
{
    const cvy_job_source source_of_job = {.size = sizeof source_of_job, .text = job};
    const cvy_train_opts train = {.size = sizeof train, .out = "run"};
    const cvy_context_opts opts = {.size = sizeof opts, .threads = 1};
    char folder[] = "/tmp/test-context-XXXXXX";
    cvy_context *context = NULL;
    EXPECT(mkdtemp(folder) && chdir(folder) == 0);
    EXPECT_OK(cvy_context_create(&opts, &context));
    EXPECT_OK(cvy_run_train(context, &source_of_job, &train, NULL));
    cvy_context_destroy(&context);
    create(&one);
    alive = &one;
    TEST(no_object);
    TEST(another_type);
    TEST(no_other_argument);
    TEST(destroyed_objects);
    TEST(threads_at_once);
    TEST(fork_of_a_process_with_threads);
    TEST(nothing_is_left);
    EXPECT_OK(cvy_file_remove_tree(folder));
    return test_end();
}
