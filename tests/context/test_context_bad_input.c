/* ranks: 1 2 */
/* rows: mpich asan */
/*
 * test_context_bad_input.c: what a host program passes wrongly is a status with a sentence, not an abort: communicators
 * that are none, MPI that has not begun or has ended, dtypes that do not exist, sizes that no memory can hold, options
 * out of range, and ranks that disagree.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/metric.h>
#include <convoy/mpi.h>

#include <math.h>

#include "test_util.h"

enum { BATCH = 8, INPUTS = 4, OUTPUTS = 3 };
static const cvy_dtype no_dtype = (cvy_dtype)99;

static cvy_context *team;
static cvy_model *net;
static int rank, nranks;

/* ---- communicators ---- */

static void without_mpi(const char *text)
{
    cvy_context *none = NULL;
    EXPECT_FAULT(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &none), CVY_E_COMM, text);
    EXPECT_FAULT(cvy_context_create_mpi_fortran(0, NULL, &none), CVY_E_COMM, text);
    EXPECT(none == NULL);
}

static void before_mpi(void)
{
    without_mpi("not initialised");
}

static void after_mpi(void)
{
    without_mpi("finalised already");
}

static void wrong_communicators(void)
{
    cvy_context *none = NULL;
    EXPECT_FAULT(cvy_context_create_mpi(MPI_COMM_NULL, NULL, &none), CVY_E_ARGUMENT, "MPI_COMM_NULL");
    EXPECT_FAULT(cvy_context_create_mpi((MPI_Comm)0, NULL, &none), CVY_E_ARGUMENT, "the communicator is");
    EXPECT_FAULT(cvy_context_create_mpi_fortran((int)MPI_Comm_c2f(MPI_COMM_NULL), NULL, &none), CVY_E_ARGUMENT,
                 "MPI_COMM_NULL");
#if defined(OPEN_MPI)
    EXPECT_FAULT(cvy_context_create_mpi_fortran(-1, NULL, &none), CVY_E_ARGUMENT, "the communicator is");
    EXPECT_FAULT(cvy_context_create_mpi_fortran(12345, NULL, &none), CVY_E_ARGUMENT, "the communicator is");
#endif
    EXPECT(none == NULL);
}

static void intercommunicator(void)
{
    MPI_Comm part = MPI_COMM_NULL, inter = MPI_COMM_NULL;
    cvy_context *none = NULL;
    if (nranks != 2)
        return;
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &part);
    MPI_Intercomm_create(part, 0, MPI_COMM_WORLD, 1 - rank, 5, &inter);
    EXPECT_FAULT(cvy_context_create_mpi(inter, NULL, &none), CVY_E_ARGUMENT, "intercommunicator");
    MPI_Comm_free(&inter);
    MPI_Comm_free(&part);
}

/* ---- models, programs and tasks ---- */

static void begin(void)
{
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD,
                                     &(cvy_context_opts){.size = sizeof(cvy_context_opts), .threads = 1}, &team));
    EXPECT_OK(cvy_model_create("net", &net));
    EXPECT_OK(cvy_model_add_input(net, "x", CVY_DTYPE_F32, &(cvy_shape){1, {INPUTS}}));
    EXPECT_OK(cvy_model_add_input(net, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    EXPECT_OK(cvy_model_add(net, "fc", "fc", "channels: 3", "x"));
    EXPECT_OK(cvy_model_add(net, "softmax_cross_entropy", "loss", NULL, "fc, label"));
}

static void end(void)
{
    cvy_model_destroy(&net);
    cvy_context_destroy(&team);
}

static void wrong_inputs(void)
{
    const cvy_shape number = {1, {1}}, none = {1, {0}}, negative = {2, {-2, -2}};
    EXPECT_FAULT(cvy_model_add_input(net, "a", no_dtype, &number), CVY_E_ARGUMENT, "dtype number 99");
    EXPECT_FAULT(cvy_model_add_input(net, "a", (cvy_dtype)-1, &number), CVY_E_ARGUMENT, "dtype number -1");
    EXPECT_FAULT(cvy_model_add_input(net, "a", CVY_DTYPE_F32, &none), CVY_E_SHAPE, "dimension 0 of a sample is 0");
    EXPECT_FAULT(cvy_model_add_input(net, "a", CVY_DTYPE_F32, &negative), CVY_E_SHAPE, "is -2");
}

static void refused(cvy_program_opts opts, const char *text)
{
    cvy_program *p = NULL;
    opts.size = sizeof opts, opts.wisdom = "off";
    EXPECT_FAULT(cvy_program_create(team, &opts, &p), CVY_E_CONFIG, text);
    EXPECT(p == NULL);
}

static void wrong_options(void)
{
    refused((cvy_program_opts){.dtype = no_dtype}, "opts.dtype is unknown");
    refused((cvy_program_opts){.reduce_wire = no_dtype}, "reduce_wire is unknown");
    refused((cvy_program_opts){.batch_norm_group = INT64_MIN}, "batch_norm_group");
    refused((cvy_program_opts){.bucket_bytes = -1}, "bucket_bytes is -1");
    refused((cvy_program_opts){.memory_limit = -1}, "memory_limit is -1");
    refused((cvy_program_opts){.update_mode = (cvy_update_mode)-1}, "opts.update_mode is -1, expected sync|");
    refused((cvy_program_opts){.shards = INT64_MAX}, "power of two");
}

/* Adds the task and plans it; returns the first fault. */
static cvy_status plan(const cvy_model *m, int64_t batch, cvy_training_opts opts)
{
    const cvy_program_opts program = {.size = sizeof program, .seed = 1, .wisdom = "off"};
    cvy_program *p = NULL;
    int task = 0;
    opts.size = sizeof opts;
    EXPECT_OK(cvy_program_create(team, &program, &p));
    cvy_status status = cvy_program_add_training(p, m, batch, &opts, &task);
    if (status == CVY_OK)
        status = cvy_program_plan(p);
    cvy_program_destroy(&p);
    return status;
}

static void wrong_trainings(void)
{
    const cvy_training_opts none = {0};
    const int64_t many = INT64_C(1) << 30;
    EXPECT_FAULT(plan(net, INT64_MAX, none), CVY_E_MEMORY, "than any memory can hold");
    EXPECT_FAULT(plan(net, INT64_MAX / 2, none), CVY_E_MEMORY, "than any memory can hold");
    EXPECT_FAULT(plan(net, many, (cvy_training_opts){.accumulate = many}), CVY_E_ARGUMENT, "at most 65536");
    EXPECT_FAULT(plan(net, BATCH, (cvy_training_opts){.clip_norm = (double)NAN}), CVY_E_ARGUMENT, "clip_norm is nan");
    EXPECT_FAULT(plan(net, BATCH, (cvy_training_opts){.clip_value = -1}), CVY_E_ARGUMENT, "clip_value is -1");
    EXPECT_FAULT(plan(net, BATCH, (cvy_training_opts){.l1 = -1}), CVY_E_ARGUMENT, "l1 is -1");
    EXPECT_FAULT(plan(net, BATCH, (cvy_training_opts){.optimizer_options = "- a\n- b"}), CVY_E_CONFIG, "no map");
}

static void huge_layers(void)
{
    static const struct {
        const char *op, *options;
        cvy_status code;
    } layers[] = {
        {"conv", "channels: 4611686018427387904, kernel: 1", CVY_E_MEMORY},
        {"conv", "channels: 2, kernel: 3, pad: 9223372036854775807", CVY_E_SHAPE},
        {"conv", "channels: 2, kernel: 3, dilation: 9223372036854775807", CVY_E_SHAPE},
        {"fc", "channels: 4611686018427387904", CVY_E_MEMORY},
        {"pad", "before: 4611686018427387904", CVY_E_MEMORY},
    };
    for (int i = 0; i < CVY_COUNT(layers); i++) {
        cvy_model *m = NULL;
        EXPECT_OK(cvy_model_create("huge", &m));
        EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {2, 8, 8}}));
        EXPECT_OK(cvy_model_add_input(m, "y", CVY_DTYPE_F32, &(cvy_shape){1, {1}}));
        EXPECT_OK(cvy_model_add(m, layers[i].op, "huge", layers[i].options, "x"));
        EXPECT_OK(cvy_model_add(m, "fc", "fc", "channels: 1", NULL));
        EXPECT_OK(cvy_model_add(m, "mse", "loss", NULL, "fc, y"));
        EXPECT_FAULT(plan(m, BATCH, (cvy_training_opts){0}), layers[i].code, "huge");
        cvy_model_destroy(&m);
    }
}

static void wrong_rates(void)
{
    const cvy_program_opts opts = {.size = sizeof opts, .wisdom = "off"};
    cvy_program *p = NULL;
    int task = 0;
    float weight[INPUTS * OUTPUTS];
    EXPECT_OK(cvy_program_create(team, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, net, BATCH, NULL, &task));
    EXPECT_OK(cvy_program_plan(p));
    EXPECT_FAULT(cvy_program_step(p, task, (double)NAN), CVY_E_ARGUMENT, "a learning rate of nan");
    EXPECT_FAULT(cvy_program_step(p, task, (double)INFINITY), CVY_E_ARGUMENT, "a learning rate of inf");
    EXPECT_OK(cvy_program_get(p, "fc.weight", weight, INPUTS * OUTPUTS));
    for (int i = 0; i < INPUTS * OUTPUTS; i++)
        EXPECT(isfinite(weight[i]));
    cvy_program_destroy(&p);
}

/* ---- ranks that disagree: all of them get the fault, and none waits for ever ---- */

static void differs(cvy_program_opts opts, int64_t batch, int ntask, const char *text)
{
    const cvy_program_opts first = {.size = sizeof first, .wisdom = "off"};
    cvy_program *p = NULL;
    opts.size = sizeof opts, opts.wisdom = "off";
    EXPECT_OK(cvy_program_create(team, rank == 0 ? &first : &opts, &p));
    for (int i = 0, task = 0; i < (rank == 0 ? 1 : ntask); i++)
        EXPECT_OK(cvy_program_add_training(p, net, rank == 0 ? BATCH : batch, NULL, &task));
    EXPECT_FAULT(cvy_program_plan(p), CVY_E_DISAGREE, text);
    cvy_program_destroy(&p);
}

static void ranks_disagree(void)
{
    const cvy_program_opts none = {0};
    if (nranks == 1)
        return;
    differs((cvy_program_opts){.dtype = CVY_DTYPE_F64}, BATCH, 1, "opts.dtype f64 where rank 0's has opts.dtype f32");
    differs((cvy_program_opts){.seed = 7}, BATCH, 1, "opts.seed 7");
    differs((cvy_program_opts){.update_mode = CVY_UPDATE_DELAYED}, BATCH, 1, "opts.update_mode delayed");
    differs((cvy_program_opts){.update_mode = CVY_UPDATE_ZERO1}, BATCH, 1, "opts.update_mode zero1");
    differs((cvy_program_opts){.overlap = CVY_OVERLAP_FORWARD}, BATCH, 1, "opts.overlap forward");
    differs((cvy_program_opts){.shards = 8}, BATCH, 1, "opts.shards 8");
    differs((cvy_program_opts){.pipeline = 2}, BATCH, 1, "opts.pipeline 2");
    differs((cvy_program_opts){.tensor = 2}, BATCH, 1, "opts.tensor 2");
    differs((cvy_program_opts){.planning = "measure"}, BATCH, 1, "opts.planning \"measure\"");
    differs((cvy_program_opts){.kernels = "reference"}, BATCH, 1, "opts.kernels \"reference\"");
    differs((cvy_program_opts){.memory_limit = 1}, BATCH, 1, "opts.memory_limit 1");
    differs((cvy_program_opts){.reduce_no_node = 1}, BATCH, 1, "opts.reduce_no_node false");
    differs(none, 6, 1, "a batch of 6 samples");
    differs(none, BATCH, 2, "task 1 training");
}

/* ---- metrics ---- */

static void wrong_metrics(void)
{
    static const float output[2 * INPUTS];
    static const int32_t label[2];
    cvy_metric *metric = NULL;
    cvy_metric_batch batch = {.size = sizeof batch, .rows = 2, .output = output, .target = label};
    EXPECT_FAULT(cvy_metric_open("accuracy", &(cvy_shape){1, {0}}, &metric), CVY_E_SHAPE, "below 1");
    EXPECT_FAULT(cvy_metric_open("accuracy", &(cvy_shape){1, {-4}}, &metric), CVY_E_SHAPE, "below 1");
    EXPECT_FAULT(cvy_metric_open("balanced_accuracy", &(cvy_shape){1, {INT64_MAX}}, &metric), CVY_E_SHAPE, "memory");
    EXPECT_OK(cvy_metric_open("accuracy", &(cvy_shape){1, {INPUTS}}, &metric));
    batch.target_dtype = no_dtype;
    EXPECT_FAULT(cvy_metric_add_rows(metric, &batch), CVY_E_ARGUMENT, "dtype number 99");
    batch.target_dtype = CVY_DTYPE_I32;
    batch.rows = INT64_MAX;
    EXPECT_FAULT(cvy_metric_add_rows(metric, &batch), CVY_E_ARGUMENT, "no memory can hold");
    cvy_metric_destroy(&metric);
}

int main(int argc, char **argv)
{
    TEST(before_mpi);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    TEST(wrong_communicators);
    TEST(intercommunicator);
    TEST_WITH(begin, wrong_inputs, end);
    TEST_WITH(begin, wrong_options, end);
    TEST_WITH(begin, wrong_trainings, end);
    TEST_WITH(begin, huge_layers, end);
    TEST_WITH(begin, wrong_rates, end);
    TEST_WITH(begin, ranks_disagree, end);
    TEST_WITH(begin, wrong_metrics, end);
    MPI_Finalize();
    TEST(after_mpi);
    return test_end();
}
