/* ranks: 1 2 3 */
/*
 * test_network.c: an opened network gives the same bits as predict, on any number of ranks and from a run, a checkpoint
 * or an exported file; wrong arrays, wrong weights and damaged descriptions are named; nothing is left in memory.
 *
 * Also: two threads with a network each, f64 arrays, several outputs, more samples than fit a batch, pictures of any
 * size that the job resizes, a run without the description.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include "base/base_file.h"
#include "checkpoint/checkpoint.h"
#include "files/files.h"
#include "test_util.h"

enum { SAMPLES = 45, CLASSES = 3, PIXELS = 3 * 8 * 8 };

static const char job_text[] = "model:\n"
                               "  layers:\n"
                               "    - conv: {name: c1, channels: 4, kernel: 3, pad: 1}\n"
                               "    - batch_norm\n"
                               "    - relu\n"
                               "    - dropout: {p: 0.3}\n"
                               "    - fc: {name: last, channels: 3}\n"
                               "data:\n"
                               "  train: {path: data.csv, label: label, shape: [3, 8, 8]}\n"
                               "  normalize: auto\n"
                               "  augment: [mirror, {random_crop: {size: 8, pad: 1}}]\n"
                               "train: {batch: 20, epochs: 2, optimizer: {name: sgd, lr: 0.05, momentum: 0.9}}\n"
                               "plan: {kernels: native}\n";

static cvy_context *context, *alone;
static float x[SAMPLES][PIXELS];
static float predicted[SAMPLES][CLASSES];

static int is_root(void)
{
    return cvy_context_rank(context) == 0;
}

/* A repeatable sample in -1 .. 3, different for each class. */
static float pixel(int sample, int i)
{
    return (float)((sample * 37 + i * 11 + sample % CLASSES * i) % 41) / 10 - 1;
}

static void write_data(void)
{
    FILE *file = fopen("data.csv", "w");
    for (int i = 0; i < PIXELS; i++)
        fprintf(file, "p%d,", i);
    fprintf(file, "label\n");
    for (int s = 0; s < SAMPLES; s++) {
        for (int i = 0; i < PIXELS; i++)
            fprintf(file, "%.9g,", x[s][i]);
        fprintf(file, "%d\n", s % CLASSES);
    }
    fclose(file);
}

static void read_predictions(const char *path, float *out, size_t count)
{
    FILE *file = fopen(path, "rb");
    EXPECT(file && fseek(file, 128, SEEK_SET) == 0 && fread(out, sizeof *out, count, file) == count &&
           fgetc(file) == EOF);
    if (file)
        fclose(file);
}

static cvy_status apply(const char *target, const cvy_network_opts *opts, float *out)
{
    cvy_network *network = NULL;
    const cvy_network_in in = {"x", CVY_DTYPE_F32, SAMPLES * PIXELS, x, {0}};
    const cvy_network_out result = {"last", CVY_DTYPE_F32, SAMPLES * CLASSES, out};
    cvy_status status = cvy_network_open(context, target, opts, &network);
    if (status == CVY_OK)
        status = cvy_network_apply(network, SAMPLES, &in, 1, &result, 1);
    cvy_network_destroy(&network);
    return status;
}

/* Each rank opens every kind of target alone; the bits are those of predict on all ranks. */
static void test_same_as_predict(void)
{
    const cvy_predict_request ask = {.size = sizeof ask,
                                     .target = "run",
                                     .data = "{path: data.csv, label: label, shape: [3, 8, 8]}",
                                     .out = "p.npy"};
    static float got[SAMPLES][CLASSES], one[SAMPLES][CLASSES];
    int64_t step = 0;
    EXPECT_OK(cvy_run_predict(context, &ask));
    if (is_root())
        EXPECT_OK(cvy_run_export("run", NULL, "model.safetensors", 0, &step, NULL));
    MPI_Barrier(MPI_COMM_WORLD);
    read_predictions("p.npy", predicted[0], SAMPLES * CLASSES);
    const char *const target[] = {"run", "run/checkpoints/step-00000006/", "model.safetensors"};
    for (int i = 0; i < 3; i++) {
        memset(got, 0, sizeof got);
        EXPECT_OK(apply(target[i], NULL, got[0]));
        EXPECT(memcmp(got, predicted, sizeof got) == 0);
    }
    /* predictions of one rank are the same */
    const cvy_predict_request again = {.size = sizeof again, .target = "run", .data = ask.data, .out = "p1.npy"};
    if (is_root()) {
        EXPECT_OK(cvy_run_predict(alone, &again));
        read_predictions("p1.npy", one[0], SAMPLES * CLASSES);
        EXPECT(memcmp(one, predicted, sizeof one) == 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void test_described(void)
{
    cvy_network *network = NULL;
    cvy_network_about about = cvy_network_about_default();
    const char *name = NULL;
    cvy_dtype dtype = CVY_DTYPE_COUNT;
    cvy_shape shape = {0};
    EXPECT_OK(cvy_network_open(context, "model.safetensors", NULL, &network));
    EXPECT_OK(cvy_network_describe(network, &about));
    EXPECT_INT(about.step, 6);
    EXPECT_INT(about.classes, CLASSES);
    EXPECT_INT(about.inputs, 1);
    EXPECT_INT(about.outputs, 1);
    EXPECT_INT(about.parameters, 3 * 4 * 9 + 4 + 2 * 4 + 4 * 64 * 3 + 3);
    EXPECT_OK(cvy_network_input(network, 0, &name, &dtype, &shape));
    EXPECT_TEXT(name, "x");
    EXPECT(dtype == CVY_DTYPE_F32 && shape.ndim == 3 && shape.dim[0] == 3 && shape.dim[2] == 8);
    EXPECT_OK(cvy_network_output(network, 0, &name, &shape));
    EXPECT_TEXT(name, "last");
    EXPECT(shape.ndim == 1 && shape.dim[0] == CLASSES);
    EXPECT(cvy_network_input(network, 1, NULL, NULL, NULL) == CVY_END);
    EXPECT(cvy_network_output(network, 1, NULL, NULL) == CVY_END);
    EXPECT_TEXT(cvy_network_class(network, 2), "2");
    EXPECT(cvy_network_class(network, 3) == NULL && cvy_network_class(network, -1) == NULL);
    cvy_network_destroy(&network);
    EXPECT(network == NULL);
}

/* One sample at a time, f64 arrays and two outputs give the same numbers, to rounding. */
static void test_arrays(void)
{
    const cvy_network_opts opts = {.size = sizeof opts, .outputs = "c1, last", .batch = 8};
    cvy_network *network = NULL;
    static double wide[SAMPLES][PIXELS], out[SAMPLES][CLASSES];
    static float conv[SAMPLES][4 * 64];
    for (int s = 0; s < SAMPLES; s++)
        for (int i = 0; i < PIXELS; i++)
            wide[s][i] = x[s][i];
    EXPECT_OK(cvy_network_open(context, "run", &opts, &network));
    const cvy_network_in in = {NULL, CVY_DTYPE_F64, SAMPLES * PIXELS, wide, {0}};
    const cvy_network_out result[] = {{"last", CVY_DTYPE_F64, SAMPLES * CLASSES, out},
                                      {"c1", CVY_DTYPE_F32, SAMPLES * 4 * 64, conv}};
    EXPECT_OK(cvy_network_apply(network, SAMPLES, &in, 1, result, 2));
    for (int s = 0; s < SAMPLES; s++) {
        double single[CLASSES], sum = 0;
        const cvy_network_in sample = {"x", CVY_DTYPE_F64, PIXELS, wide[s], {0}};
        const cvy_network_out of = {"last", CVY_DTYPE_F64, CLASSES, single};
        EXPECT_OK(cvy_network_apply(network, 1, &sample, 1, &of, 1));
        for (int k = 0; k < CLASSES; k++) {
            EXPECT_NEAR(out[s][k], predicted[s][k], 1e-5);
            EXPECT_NEAR(single[k], predicted[s][k], 1e-5);
        }
        for (int i = 0; i < 4 * 64; i++)
            sum += fabs((double)conv[s][i]);
        EXPECT(sum > 0);
    }
    EXPECT_OK(cvy_network_apply(network, 0, &(cvy_network_in){"x", CVY_DTYPE_F32, 0, NULL, {0}}, 1,
                                &(cvy_network_out){NULL, CVY_DTYPE_F32, 0, NULL}, 1));
    cvy_network_destroy(&network);
}

static void test_wrong_arrays(void)
{
    cvy_network *n = NULL;
    float out[CLASSES];
    uint8_t bytes[PIXELS] = {0};
    float bad[PIXELS];
    memcpy(bad, x[0], sizeof bad);
    bad[7] = NAN;
    EXPECT_OK(cvy_network_open(context, "run", NULL, &n));
    const cvy_network_in in = {"x", CVY_DTYPE_F32, PIXELS, x[0], {0}};
    const cvy_network_out good = {NULL, CVY_DTYPE_F32, CLASSES, out};
    cvy_network_in i = in;
    cvy_network_out o = good;
    i.elems--;
    EXPECT_FAULT(cvy_network_apply(n, 1, &i, 1, &good, 1), CVY_E_ARGUMENT,
                 "191 elements, but 1 samples of 3x8x8 have 192");
    i = in, i.dtype = CVY_DTYPE_U8, i.data = bytes;
    EXPECT_FAULT(cvy_network_apply(n, 1, &i, 1, &good, 1), CVY_E_ARGUMENT, "array of u8");
    i = in, i.name = "y";
    EXPECT_FAULT(cvy_network_apply(n, 1, &i, 1, &good, 1), CVY_E_ARGUMENT, "reads \"x\"");
    i = in, i.data = NULL;
    EXPECT_FAULT(cvy_network_apply(n, 1, &i, 1, &good, 1), CVY_E_ARGUMENT, "no data");
    i = in, i.data = bad;
    EXPECT_FAULT(cvy_network_apply(n, 1, &i, 1, &good, 1), CVY_E_NUMERIC, "element 7 of x of sample 0 is nan");
    i = in, i.shape = (cvy_shape){3, {3, 4, 16}};
    EXPECT_FAULT(cvy_network_apply(n, 1, &i, 1, &good, 1), CVY_E_SHAPE, "3x4x16, but the network was trained on 3x8x8");
    const cvy_network_in both[] = {in, in}, more[] = {in, {"label", CVY_DTYPE_I32, 1, out, {0}}};
    EXPECT_FAULT(cvy_network_apply(n, 1, both, 2, &good, 1), CVY_E_ARGUMENT, "given twice");
    EXPECT_FAULT(cvy_network_apply(n, 1, more, 2, &good, 1), CVY_E_ARGUMENT, "no input \"label\"");
    o.name = "c1";
    EXPECT_FAULT(cvy_network_apply(n, 1, &in, 1, &o, 1), CVY_E_ARGUMENT, "no output \"c1\": name it in opts.outputs");
    o = good, o.elems = 4;
    EXPECT_FAULT(cvy_network_apply(n, 1, &in, 1, &o, 1), CVY_E_ARGUMENT, "output \"last\" is an array of 4 elements");
    o = good, o.dtype = CVY_DTYPE_I32;
    EXPECT_FAULT(cvy_network_apply(n, 1, &in, 1, &o, 1), CVY_E_ARGUMENT, "expected f32 or f64");
    EXPECT_FAULT(cvy_network_apply(n, -1, &in, 1, &good, 1), CVY_E_ARGUMENT, "0 or more samples");
    EXPECT_OK(cvy_network_apply(n, 1, &in, 1, &good, 1)); /* faults leave the network as it was */
    EXPECT_NEAR(out[0], predicted[0][0], 1e-5);
    cvy_network_destroy(&n);
}

/* Writes the exported file again with another description (NULL: none) and opens it. */
static cvy_status open_with(const char *description)
{
    char path[64];
    cvy_safetensors *file = NULL;
    cvy_tensor_entry entry[16];
    cvy_network *network = NULL;
    const char *const meta[] = {description ? CVY_META_NETWORK : NULL, description, NULL};
    snprintf(path, sizeof path, "other-%d.safetensors", cvy_context_rank(context));
    cvy_status status = cvy_safetensors_open("model.safetensors", &file);
    if (status != CVY_OK)
        return status;
    for (int i = 0; i < cvy_safetensors_count(file); i++)
        entry[i] = *cvy_safetensors_at(file, i);
    status = cvy_safetensors_write(path, entry, cvy_safetensors_count(file), meta, NULL, NULL);
    cvy_safetensors_close(&file);
    if (status == CVY_OK)
        status = cvy_network_open(context, path, NULL, &network);
    cvy_network_destroy(&network);
    return status;
}

#define TINY_JOB "\"job\": \"model: lenet\\ndata: {train: nowhere}\\ntrain: {batch: 4, epochs: 1}\\n\", "
#define TINY_INPUT "\"input\": {\"dtype\": \"f32\", \"shape\": [3, 8, 8], \"varying\": false}, "

static void test_wrong_files(void)
{
    const struct {
        const char *text, *part;
        cvy_status code;
    } bad[] = {
        {NULL, "holds weights only: give the job", CVY_E_CONFIG},
        {"{\"layout\": 1", "the description of the network", CVY_E_FORMAT},
        {"[]", "no \"layout\"", CVY_E_FORMAT},
        {"{\"layout\": 2}", "its layout is 2", CVY_E_UNSUPPORTED},
        {"{\"layout\": 1}", "no \"job\"", CVY_E_FORMAT},
        {"{\"layout\": 1, \"job\": \"model: nonsense\"}", "the description of the network", CVY_E_CONFIG},
        {"{\"layout\": 1, " TINY_JOB "\"input\": {\"dtype\": \"f32\", \"shape\": [-1], \"varying\": false}}",
         "the number -1", CVY_E_FORMAT},
        {"{\"layout\": 1, " TINY_JOB "\"input\": {\"dtype\": \"i64\", \"shape\": [1], \"varying\": false}}",
         "its input is i64", CVY_E_FORMAT},
        {"{\"layout\": 1, " TINY_JOB
         "\"input\": {\"dtype\": \"f32\", \"shape\": [2000000000, 2000000000], \"varying\": false}}",
         "elements", CVY_E_FORMAT},
        {"{\"layout\": 1, " TINY_JOB TINY_INPUT "\"fields\": 3}", "no \"fields\"", CVY_E_FORMAT},
        {"{\"layout\": 1, " TINY_JOB TINY_INPUT "\"fields\": [], \"classes\": 3, \"class_names\": [\"a\"]}",
         "3 classes and 1 names", CVY_E_FORMAT},
    };
    cvy_network *network = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        EXPECT_FAULT(open_with(bad[i].text), bad[i].code, bad[i].part);
    EXPECT_FAULT(cvy_network_open(context, "nowhere", NULL, &network), CVY_E_ARGUMENT, "neither a run folder");
    EXPECT_FAULT(cvy_network_open(context, "nowhere.safetensors", NULL, &network), CVY_E_IO, "nowhere.safetensors");
    EXPECT_FAULT(cvy_network_open(context, ".", NULL, &network), CVY_E_IO, "no folder checkpoints");
    const cvy_network_opts negative = {.size = sizeof negative, .batch = -1},
                           wrong = {.size = sizeof wrong, .checkpoint = "step-99"};
    EXPECT_FAULT(cvy_network_open(context, "run", &negative, &network), CVY_E_ARGUMENT, "opts.batch is -1");
    EXPECT_FAULT(cvy_network_open(context, "run", &wrong, &network), CVY_E_IO, "no checkpoint of step 99");
    EXPECT_FAULT(cvy_network_open(context, "model.safetensors", &wrong, &network), CVY_E_ARGUMENT, "is a file");
    EXPECT(network == NULL);
}

/* A job that is given with the weights: other numbers of data.normalize, or another network. */
static void test_given_job(void)
{
    const char *const normalize = "data.normalize={mean: 0.5, std: 1.2}";
    cvy_job_source job = {.size = sizeof job, .text = job_text, .sets = &normalize, .nsets = 1};
    cvy_network_opts opts = {.size = sizeof opts, .job = &job};
    float got[SAMPLES][CLASSES];
    EXPECT_OK(apply("model.safetensors", &opts, got[0]));
    for (int s = 0; s < SAMPLES; s++)
        EXPECT(isfinite(got[s][0]));
    job.sets = NULL, job.nsets = 0;
    EXPECT_FAULT(apply("model.safetensors", &opts, got[0]), CVY_E_CONFIG, "data.normalize is auto");
    job.text = "{model: {layers: [{fc: {channels: 3}}]}, data: {train: {format: synthetic, samples: 8, shape: [1, 28, "
               "28], classes: 3}}, train: "
               "{batch: 4, epochs: 1}}";
    EXPECT_FAULT(apply("model.safetensors", &opts, got[0]), CVY_E_SHAPE, "model.safetensors");
}

/* ---- two threads, each with a context and a network of its own ---- */

enum { ROUNDS = 25 };

static void *apply_again_and_again(void *user)
{
    const cvy_context_opts opts = {.size = sizeof opts, .threads = 1};
    const cvy_network_in in = {"x", CVY_DTYPE_F32, SAMPLES * PIXELS, x, {0}};
    float got[SAMPLES][CLASSES];
    const cvy_network_out result = {"last", CVY_DTYPE_F32, SAMPLES * CLASSES, got};
    cvy_context *own = NULL;
    cvy_network *network = NULL;
    int *same = user;
    if (cvy_context_create(&opts, &own) == CVY_OK &&
        cvy_network_open(own, "model.safetensors", NULL, &network) == CVY_OK)
        for (int i = 0; i < ROUNDS; i++) {
            memset(got, 0, sizeof got);
            *same += cvy_network_apply(network, SAMPLES, &in, 1, &result, 1) == CVY_OK &&
                     memcmp(got, predicted, sizeof got) == 0;
        }
    cvy_network_destroy(&network);
    cvy_context_destroy(&own);
    return NULL;
}

static void test_threads(void)
{
    pthread_t thread[2];
    int same[2] = {0};
    for (int i = 0; i < 2; i++)
        EXPECT(pthread_create(&thread[i], NULL, apply_again_and_again, &same[i]) == 0);
    for (int i = 0; i < 2; i++) {
        EXPECT(pthread_join(thread[i], NULL) == 0);
        EXPECT_INT(same[i], ROUNDS);
    }
}

/* Opens, applies and destroys again and again; nothing may be left. */
static void test_no_growth(void)
{
    float got[SAMPLES][CLASSES];
    const int64_t before = cvy_memory_bytes();
    for (int i = 0; i < 20; i++)
        EXPECT_OK(apply("model.safetensors", NULL, got[0]));
    EXPECT_INT(cvy_memory_bytes(), before);
    if (cvy_context_nranks(context) == 1)
        EXPECT_SURVIVES_NO_MEMORY(apply("model.safetensors", NULL, got[0]));
    EXPECT_INT(cvy_memory_bytes(), before);
}

static void begin(void)
{
    char folder[] = "test-network-XXXXXX";
    const cvy_context_opts opts = {.size = sizeof opts, .threads = 1};
    const cvy_job_source job = {.size = sizeof job, .text = job_text};
    const cvy_train_opts train = {.size = sizeof train, .out = "run"};
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    EXPECT(rank > 0 || mkdtemp(folder));
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    EXPECT(chdir(folder) == 0);
    for (int s = 0; s < SAMPLES; s++)
        for (int i = 0; i < PIXELS; i++)
            x[s][i] = pixel(s, i);
    if (rank == 0)
        write_data();
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, &opts, &context));
    EXPECT_OK(cvy_context_create(&opts, &alone));
    EXPECT_OK(cvy_run_train(context, &job, &train, NULL));
}

static void end(void)
{
    char here[512];
    MPI_Barrier(MPI_COMM_WORLD);
    if (is_root() && getcwd(here, sizeof here))
        EXPECT_OK(cvy_file_remove_tree(here));
    cvy_context_destroy(&alone);
    cvy_context_destroy(&context);
}

int main(int argc, char **argv)
{
    cvy_mpi_prepare();
    MPI_Init(&argc, &argv);
    begin();
    TEST(test_same_as_predict);
    TEST(test_described);
    TEST(test_arrays);
    TEST(test_wrong_arrays);
    TEST(test_wrong_files);
    TEST(test_given_job);
    TEST(test_threads);
    TEST(test_no_growth);
    end();
    MPI_Finalize();
    return test_end();
}
