/* ranks: 1 2 */
/* rows: release */
/*
 * test_train_targets.c: targets of very different sizes are learnt as well as targets scaled by hand, and all results
 * are in units of the data; fields and vectors that follow augmentation by their roles are learnt, and a wrong role is
 * not; so are labels for each pixel. Unsuitable targets, losses and roles are refused.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include "base/base_file.h"
#include "files/files.h"
#include "test_util.h"

static cvy_context *context;

static int is_root(void)
{
    return cvy_context_rank(context) == 0;
}

/* Repeatable numbers in -1 .. 1. */
static double random_number(void)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int32_t)(state >> 32) / 2147483648.0;
}

static void write_array(const char *path, const char *type, const char *shape, const void *data, size_t bytes)
{
    char head[128];
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
    const int n =
        snprintf(head + 10, sizeof head - 10, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, shape);
    head[10 + n] = ' ';
    head[127] = '\n';
    FILE *file = fopen(path, "wb");
    EXPECT(file && fwrite(head, 1, sizeof head, file) == sizeof head && fwrite(data, 1, bytes, file) == bytes);
    if (file)
        fclose(file);
}

static void write_npy(const char *path, const char *shape, const float *data, size_t count)
{
    write_array(path, "<f4", shape, data, count * sizeof *data);
}

static cvy_status train(const char *job_text, const char *out)
{
    const cvy_job_source job = {.size = sizeof job, .text = job_text};
    const cvy_train_opts opts = {.size = sizeof opts, .out = out};
    return cvy_run_train(context, &job, &opts, NULL);
}

/* A score of the run's test data; the loss if `name` is NULL. */
static double score(const char *run, const char *name)
{
    cvy_test_result result = {.size = sizeof result};
    double value = NAN;
    EXPECT_OK(cvy_run_test(context, run, NULL, NULL, &result));
    if (!name && is_root())
        value = result.loss;
    for (int i = 0; name && i < result.nmetric; i++)
        if (strcmp(result.metric[i].name, name) == 0)
            value = result.metric[i].value;
    cvy_test_result_release(&result);
    MPI_Bcast(&value, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return value;
}

/* ---- numbers of different sizes ---- */

/* The scores of each target, in its own units. */
static void check_outputs(const char *run)
{
    cvy_test_result result = {.size = sizeof result};
    const double units[] = {1e-3, 1, 1e3};
    EXPECT_OK(cvy_run_test(context, run, NULL, NULL, &result));
    EXPECT_INT(result.noutput, is_root() ? 3 : 0);
    for (int k = 0; k < result.noutput; k++) {
        const cvy_test_output *o = &result.output[k];
        EXPECT(o->r2 > 0.85 && o->rmse < units[k] && o->rmse > units[k] / 100 && o->mae < o->rmse);
    }
    cvy_test_result_release(&result);
}

enum { NUMBERS = 600, INPUTS = 3, TARGETS = 3 };
static const double size[TARGETS] = {1e-3, 1, 1e3}, offset[TARGETS] = {5e-3, -2, 1e5};
static float in[NUMBERS][INPUTS], truth[NUMBERS * TARGETS];

static void write_numbers(void)
{
    static float hand[NUMBERS * TARGETS];
    double mean[TARGETS] = {0}, square[TARGETS] = {0};
    for (int i = 0; i < NUMBERS; i++) {
        float *x = in[i];
        for (int k = 0; k < INPUTS; k++)
            x[k] = (float)random_number();
        const double y[] = {cos(2 * x[0]) + x[1], cos(2 * x[1]) - x[2], cos(2 * x[2]) * x[0]};
        for (int k = 0; k < TARGETS; k++)
            truth[i * TARGETS + k] = (float)(offset[k] + size[k] * y[k]);
    }
    for (int i = 0; i < NUMBERS * TARGETS; i++)
        mean[i % TARGETS] += (double)truth[i] / NUMBERS;
    for (int i = 0; i < NUMBERS * TARGETS; i++)
        square[i % TARGETS] += pow((double)truth[i] - mean[i % TARGETS], 2) / NUMBERS;
    for (int i = 0; i < NUMBERS * TARGETS; i++)
        hand[i] = (float)(((double)truth[i] - mean[i % TARGETS]) / sqrt(square[i % TARGETS]));
    if (!is_root())
        return;
    EXPECT_OK(cvy_file_make_folder("numbers"));
    EXPECT_OK(cvy_file_make_folder("hand"));
    write_npy("numbers/x.npy", "600, 3", in[0], NUMBERS * INPUTS);
    write_npy("numbers/y.npy", "600, 3", truth, NUMBERS * TARGETS);
    write_npy("hand/x.npy", "600, 3", in[0], NUMBERS * INPUTS);
    write_npy("hand/y.npy", "600, 3", hand, NUMBERS * TARGETS);
}

#define REGRESSION                                                                                                     \
    "model: {layers: [{fc: {channels: 16}}, tanh, {fc: {name: answer, channels: 3}}]}\n"                               \
    "train: {batch: 30, epochs: 20, optimizer: {name: adam, lr: 0.02}, metrics: [r2, rmse]}\n"                         \
    "plan: {kernels: native}\n"

/* 1 - the share of the variance that is left, of one target. */
static double explained(const float *y, int k)
{
    double mean = 0, error = 0, spread = 0;
    for (int i = 0; i < NUMBERS; i++)
        mean += (double)truth[i * TARGETS + k] / NUMBERS;
    for (int i = 0; i < NUMBERS; i++) {
        error += pow((double)y[i * TARGETS + k] - (double)truth[i * TARGETS + k], 2);
        spread += pow((double)truth[i * TARGETS + k] - mean, 2);
    }
    return 1 - error / spread;
}

static void apply(const char *target, cvy_dtype dtype, void *out)
{
    cvy_network *network = NULL;
    const cvy_network_in x = {"x", CVY_DTYPE_F32, NUMBERS * INPUTS, in, {0}};
    const cvy_network_out y = {NULL, dtype, NUMBERS * TARGETS, out};
    EXPECT_OK(cvy_network_open(context, target, NULL, &network));
    EXPECT_OK(cvy_network_apply(network, NUMBERS, &x, 1, &y, 1));
    cvy_network_destroy(&network);
}

/* A layer of three numbers in the middle is not in the units of the three targets. */
static void apply_hidden(void)
{
    static const char job[] = "model: {layers: [{fc: {name: hidden, channels: 3}}, tanh, {fc: {channels: 3}}]}\n"
                              "train: {batch: 30, epochs: 1}\n"
                              "data: {train: numbers, normalize_targets: auto}\n";
    const cvy_network_opts opts = {.size = sizeof opts, .outputs = "hidden"};
    float out[TARGETS];
    cvy_network *network = NULL;
    const cvy_network_in x = {"x", CVY_DTYPE_F32, INPUTS, in, {0}};
    const cvy_network_out y = {"hidden", CVY_DTYPE_F32, TARGETS, out};
    EXPECT_OK(train(job, "hidden"));
    EXPECT_OK(cvy_network_open(context, "hidden", &opts, &network));
    EXPECT_OK(cvy_network_apply(network, 1, &x, 1, &y, 1));
    EXPECT(fabs(out[0]) < 100 && fabs(out[1]) < 100 && fabs(out[2]) < 100); /* the third target is about 1e5 */
    cvy_network_destroy(&network);
}

static void test_different_sizes(void)
{
    static float got[NUMBERS][TARGETS], from_file[NUMBERS][TARGETS], predicted[32 + NUMBERS * TARGETS];
    static double wide[NUMBERS][TARGETS];
    const cvy_predict_request ask = {.size = sizeof ask, .target = "run", .data = "numbers", .out = "p.npy"};
    int64_t step = 0;
    EXPECT_OK(train(REGRESSION "data: {train: numbers, test: numbers, normalize_targets: auto}\n", "run"));
    EXPECT_OK(train(REGRESSION "data: {train: hand, test: hand}\n", "by-hand"));
    /* r2 does not depend on the units, rmse does, and the loss is that of the scaled targets */
    EXPECT(score("run", "r2") > 0.9 && fabs(score("run", "r2") - score("by-hand", "r2")) < 0.01);
    EXPECT(fabs(score("run", NULL) / score("by-hand", NULL) - 1) < 0.05);
    EXPECT(score("run", "rmse") > 50 * score("by-hand", "rmse"));
    check_outputs("run");

    EXPECT_OK(cvy_run_predict(context, &ask));
    MPI_Barrier(MPI_COMM_WORLD);
    FILE *file = fopen("p.npy", "rb");
    EXPECT(file && fread(predicted, sizeof *predicted, CVY_COUNT(predicted), file) == CVY_COUNT(predicted));
    if (file)
        fclose(file);
    apply("run", CVY_DTYPE_F32, got);
    EXPECT(memcmp(got, predicted + 32, sizeof got) == 0);
    for (int k = 0; k < TARGETS; k++)
        EXPECT(explained(got[0], k) > 0.85);

    /* one file is enough; f64 outputs are the same numbers with more digits */
    if (is_root())
        EXPECT_OK(cvy_run_export("run", NULL, "model.safetensors", 0, &step, NULL));
    MPI_Barrier(MPI_COMM_WORLD);
    apply("model.safetensors", CVY_DTYPE_F32, from_file);
    EXPECT(memcmp(got, from_file, sizeof got) == 0);
    apply_hidden();
    apply("run", CVY_DTYPE_F64, wide);
    for (int i = 0; i < NUMBERS; i++)
        for (int k = 0; k < TARGETS; k++)
            EXPECT((float)wide[i][k] == got[i][k]);
}

/* ---- fields and vectors ---- */

enum { FIELDS = 48, SIDE = 12, PLANE = SIDE * SIDE };

static double at(const float *x, int row, int column)
{
    return row < 0 || column < 0 || row >= SIDE || column >= SIDE ? 0 : (double)x[row * SIDE + column];
}

/* The sum of the four neighbours looks the same in a mirror; the differences along the axes change their signs. */
static void write_fields(void)
{
    static float x[FIELDS * PLANE], sum[FIELDS][PLANE], slope[FIELDS][2][PLANE], label[FIELDS * PLANE];
    for (int i = 0; i < FIELDS * PLANE; i++)
        x[i] = (float)random_number();
    for (int i = 0; i < FIELDS; i++)
        for (int k = 0; k < PLANE; k++) {
            const int r = k / SIDE, c = k % SIDE;
            const double right = at(x + i * PLANE, r, c + 1), left = at(x + i * PLANE, r, c - 1);
            const double below = at(x + i * PLANE, r + 1, c), above = at(x + i * PLANE, r - 1, c);
            sum[i][k] = (float)(right + left + below + above);
            slope[i][0][k] = (float)(right - left);
            slope[i][1][k] = (float)(below - above);
        }
    for (int i = 0; i < FIELDS * PLANE; i++)
        label[i] = i % 50 == 0 ? 255 : x[i] > 0.4f ? 2 : x[i] > -0.2f;
    if (!is_root())
        return;
    EXPECT_OK(cvy_file_make_folder("labels"));
    write_npy("labels/x.npy", "48, 1, 12, 12", x, FIELDS * PLANE);
    write_npy("labels/y.npy", "48, 12, 12", label, FIELDS * PLANE);
    EXPECT_OK(cvy_file_make_folder("sums"));
    EXPECT_OK(cvy_file_make_folder("slopes"));
    write_npy("sums/x.npy", "48, 1, 12, 12", x, FIELDS * PLANE);
    write_npy("sums/y.npy", "48, 12, 12", sum[0], FIELDS * PLANE);
    write_npy("slopes/x.npy", "48, 1, 12, 12", x, FIELDS * PLANE);
    write_npy("slopes/y.npy", "48, 2, 12, 12", slope[0][0], 2 * FIELDS * PLANE);
}

#define FIELD_JOB(channels)                                                                                            \
    "model: {layers: [{conv: {channels: " channels ", kernel: 3, pad: 1}}]}\n"                                         \
    "train: {batch: 8, epochs: 30, optimizer: {name: adam, lr: 0.02}, metrics: [r2]}\n"                                \
    "plan: {kernels: native}\n"

static void test_fields(void)
{
    static const char moved[] = "augment: [mirror, rotate90, {random_crop: {pad: 1}}], normalize_targets: auto";
    char job[1024];
    EXPECT_OK(train(FIELD_JOB("1") "data: {train: sums, test: sums}\n", "still"));
    snprintf(job, sizeof job, FIELD_JOB("1") "data: {train: sums, test: sums, roles: {y: field}, %s}\n", moved);
    EXPECT_OK(train(job, "moved"));
    EXPECT(score("still", "r2") > 0.99 && score("moved", "r2") > 0.97);
    snprintf(job, sizeof job,
             FIELD_JOB("2") "data: {train: slopes, test: slopes, roles: {y: {role: vector, order: x_y}}, %s}\n", moved);
    EXPECT_OK(train(job, "vector"));
    EXPECT(score("vector", "r2") > 0.97);
    /* as two scalars, the signs of the mirrored ones are wrong; and with another order, the axes */
    snprintf(job, sizeof job, FIELD_JOB("2") "data: {train: slopes, test: slopes, roles: {y: field}, %s}\n", moved);
    EXPECT_OK(train(job, "scalars"));
    EXPECT(score("scalars", "r2") < 0.5);
    snprintf(job, sizeof job,
             FIELD_JOB("2") "data: {train: slopes, test: slopes, roles: {y: {role: vector, order: row_column}}, %s}\n",
             moved);
    EXPECT_OK(train(job, "order"));
    EXPECT(score("order", "r2") < 0.5);
}

/* A class for each pixel: three ranges of x, and a label that no class has. */
static void test_label_maps(void)
{
    static const char job[] =
        "model: {layers: [{conv: {channels: 8, kernel: 1}}, relu, {conv: {channels: 3, kernel: 1}}]}\n"
        "train: {batch: 8, epochs: 30, optimizer: {name: adam, lr: 0.03}}\n"
        "data: {train: labels, test: labels, val: 25%, augment: [mirror, rotate90, {random_crop: {pad: 1}}],\n"
        "  roles: {y: {role: label_map, classes: 3, ignore: [255]}}}\n"
        "plan: {kernels: native}\n";
    static float x[12 * 12], scores[3 * 12 * 12];
    cvy_network *network = NULL;
    cvy_network_about about = cvy_network_about_default();
    EXPECT_OK(train(job, "segmented"));
    EXPECT(score("segmented", "accuracy") > 0.9 && score("segmented", "balanced_accuracy") > 0.9);
    EXPECT_OK(cvy_network_open(context, "segmented", NULL, &network));
    EXPECT_OK(cvy_network_describe(network, &about));
    EXPECT_INT(about.classes, 3);
    for (int i = 0; i < 12 * 12; i++)
        x[i] = i % 2 ? -0.9f : 0.9f;
    const cvy_network_in from = {"x", CVY_DTYPE_F32, 12 * 12, x, {0}};
    const cvy_network_out to = {NULL, CVY_DTYPE_F32, 3 * 12 * 12, scores};
    EXPECT_OK(cvy_network_apply(network, 1, &from, 1, &to, 1));
    for (int i = 0; i < 12 * 12; i++) {
        const float low = scores[i], middle = scores[144 + i], high = scores[288 + i];
        EXPECT(i % 2 ? low > middle && low > high : high > middle && high > low);
    }
    cvy_network_destroy(&network);
}

/* Two classes: the metrics that rank whole samples are left out. */
static void test_two_classes(void)
{
    static const char job[] = "model: {layers: [{conv: {channels: 2, kernel: 1}}]}\n"
                              "train: {batch: 8, epochs: 20, optimizer: {name: adam, lr: 0.05}}\n"
                              "data: {train: binary, test: binary, roles: {y: {role: label_map, classes: 2}}}\n";
    static float x[FIELDS * PLANE], label[FIELDS * PLANE];
    for (int i = 0; i < FIELDS * PLANE; i++) {
        x[i] = (float)random_number();
        label[i] = x[i] > 0.1f;
    }
    if (is_root()) {
        EXPECT_OK(cvy_file_make_folder("binary"));
        write_npy("binary/x.npy", "48, 1, 12, 12", x, FIELDS * PLANE);
        write_npy("binary/y.npy", "48, 12, 12", label, FIELDS * PLANE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_OK(train(job, "two"));
    EXPECT(score("two", "accuracy") > 0.95 && isnan(score("two", "auc")));
}

/* A resumed run keeps the numbers of its checkpoint, also with other data, and refuses others. */
static void test_resume(void)
{
    static float moved[NUMBERS * TARGETS];
    for (int i = 0; i < NUMBERS * TARGETS; i++)
        moved[i] = truth[i] + 7;
    if (is_root()) {
        EXPECT_OK(cvy_file_make_folder("moved"));
        write_npy("moved/x.npy", "600, 3", in[0], NUMBERS * INPUTS);
        write_npy("moved/y.npy", "600, 3", moved, NUMBERS * TARGETS);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const cvy_train_opts resume = {.size = sizeof resume, .out = "run", .resume = 1};
    const char *const sets[] = {"train.epochs=21", "data.train=moved"};
    const char *const wrong[] = {"train.epochs=22", "data.normalize_targets={mean: 0, std: 1}"};
    const char *const none[] = {"train.epochs=22", "data.normalize_targets=none"};
    cvy_job_source job = {.size = sizeof job,
                          .text = REGRESSION "data: {train: numbers, test: numbers, normalize_targets: auto}\n",
                          .sets = sets,
                          .nsets = 2};
    const cvy_job_source resolved = {.size = sizeof resolved, .path = "run/job.resolved.yaml"};
    char *before = NULL, *after = NULL;
    EXPECT_OK(cvy_run_job_value(&resolved, "data.normalize_targets.mean", &before));
    EXPECT_OK(cvy_run_train(context, &job, &resume, NULL));
    EXPECT_OK(cvy_run_job_value(&resolved, "data.normalize_targets.mean", &after));
    EXPECT(before && after && strcmp(before, after) == 0);
    cvy_text_release(&before);
    cvy_text_release(&after);
    job.sets = wrong;
    EXPECT_FAULT(cvy_run_train(context, &job, &resume, NULL), CVY_E_CONFIG, "is not what the run was begun with");
    job.sets = none;
    EXPECT_FAULT(cvy_run_train(context, &job, &resume, NULL), CVY_E_CONFIG, "is not what the run was begun with");
}

/* A prediction does not look at targets. */
static void test_bad_targets(void)
{
    static float bad[NUMBERS * TARGETS];
    const cvy_predict_request ask = {.size = sizeof ask, .target = "run", .data = "bad-targets", .out = "bad.npy"};
    for (int i = 0; i < NUMBERS * TARGETS; i++)
        bad[i] = NAN;
    if (is_root()) {
        EXPECT_OK(cvy_file_make_folder("bad-targets"));
        write_npy("bad-targets/x.npy", "600, 3", in[0], NUMBERS * INPUTS);
        write_npy("bad-targets/y.npy", "600, 3", bad, NUMBERS * TARGETS);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_OK(cvy_run_predict(context, &ask));
}

/* Data with labels and numbers: only outputs that are compared with y have its units, in scores and in an opened
 * network; labels stay as they are. */
static void test_labels_and_numbers(void)
{
    static const char two[] =
        "model: {layers: [{fc: {name: body, channels: 16}}, tanh, {fc: {name: energy, channels: 1, from: tanh1}},\n"
        "  {fc: {name: class, channels: 2, from: tanh1}}]}\n"
        "train: {batch: 30, epochs: 20, optimizer: {name: adam, lr: 0.02},\n"
        "  loss: [{name: softmax_cross_entropy, output: class}, {name: mse, output: energy, target: y}]}\n"
        "data: {train: both, test: both, normalize_targets: auto}\n"
        "plan: {kernels: native}\n";
    static int64_t label[NUMBERS];
    static float energy[NUMBERS], got[NUMBERS], logit[NUMBERS][2];
    const cvy_network_opts opts = {.size = sizeof opts, .outputs = "energy, class"};
    cvy_network *network = NULL;
    int right = 0;
    double error = 0;
    for (int i = 0; i < NUMBERS; i++) {
        label[i] = in[i][0] > in[i][1];
        energy[i] = (float)(1e4 + 100 * in[i][2]);
    }
    if (is_root()) {
        EXPECT_OK(cvy_file_make_folder("both"));
        write_npy("both/x.npy", "600, 3", in[0], NUMBERS * INPUTS);
        write_npy("both/y.npy", "600,", energy, NUMBERS);
        write_array("both/label.npy", "<i8", "600,", label, sizeof label);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_OK(train(two, "both-run"));
    EXPECT(score("both-run", "accuracy") > 0.95);
    EXPECT_OK(cvy_network_open(context, "both-run", &opts, &network));
    const cvy_network_in x = {"x", CVY_DTYPE_F32, NUMBERS * INPUTS, in, {0}};
    const cvy_network_out y[] = {{"energy", CVY_DTYPE_F32, NUMBERS, got}, {"class", CVY_DTYPE_F32, NUMBERS * 2, logit}};
    EXPECT_OK(cvy_network_apply(network, NUMBERS, &x, 1, y, 2));
    cvy_network_destroy(&network);
    for (int i = 0; i < NUMBERS; i++) {
        right += (logit[i][1] > logit[i][0]) == label[i] && fabsf(logit[i][0]) < 1000;
        error = fmax(error, fabs((double)got[i] - (double)energy[i]));
    }
    EXPECT(right > NUMBERS * 95 / 100);
    EXPECT(error < 60); /* of numbers of about 1e4 that vary by 100 */
}

/* ---- what does not fit ---- */

static void test_refused(void)
{
    static float flat[NUMBERS * TARGETS];
    for (int i = 0; i < NUMBERS * TARGETS; i++)
        flat[i] = i % TARGETS == 1 ? 7 : truth[i];
    if (is_root()) {
        EXPECT_OK(cvy_file_make_folder("flat"));
        write_npy("flat/x.npy", "600, 3", in[0], NUMBERS * INPUTS);
        write_npy("flat/y.npy", "600, 3", flat, NUMBERS * TARGETS);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_FAULT(train(REGRESSION "data: {train: flat, normalize_targets: auto}\n", "bad1"), CVY_E_CONFIG,
                 "number 1 of y is 7 in all samples");
    EXPECT_FAULT(train("model: {layers: [{fc: {channels: 3}}]}\ntrain: {batch: 8, epochs: 1, loss: bce}\n"
                       "data: {train: numbers, normalize_targets: auto}\n",
                       "bad2"),
                 CVY_E_CONFIG, "data.normalize_targets does not go with the loss bce");
    EXPECT_FAULT(train("model: lenet\ntrain: {batch: 8, epochs: 1}\n"
                       "data: {train: {format: synthetic, samples: 16}, normalize_targets: auto}\n",
                       "bad3"),
                 CVY_E_CONFIG, "data.normalize_targets is about targets that are numbers, y, which the data of");
    EXPECT_FAULT(train("model: lenet\ntrain: {batch: 8, epochs: 1}\n"
                       "data: {train: {format: synthetic, samples: 16}, roles: {y: none}}\n",
                       "bad3"),
                 CVY_E_CONFIG, "data.roles is about targets that are numbers, y, but the data of");
    EXPECT_FAULT(train(REGRESSION "data: {train: numbers, normalize_targets: {mean: [1, 2], std: 1}}\n", "bad4"),
                 CVY_E_CONFIG, "mean has 2 numbers, but the target y of 3 needs 3");
    EXPECT_FAULT(train(FIELD_JOB("1") "data: {train: sums, augment: [mirror]}\n", "bad5"), CVY_E_CONFIG,
                 "say what y is by data.roles");
    EXPECT_FAULT(train(FIELD_JOB("1") "data: {train: sums, roles: {z: field}}\n", "bad6"), CVY_E_CONFIG,
                 "'z' has no role; the input is x, the target is y");
    EXPECT_FAULT(train(REGRESSION "data: {train: numbers, roles: {y: field}}\n", "bad7"), CVY_E_CONFIG,
                 "field: y is 3, expected the positions of x");
    EXPECT_FAULT(train(FIELD_JOB("3") "data: {train: labels, roles: {y: {role: label_map, classes: 3}}}\n", "bad8"),
                 CVY_E_FORMAT, "of y is 255, expected a label 0 .. 2; name labels that no class has by ignore");
    EXPECT_FAULT(
        train(FIELD_JOB("2") "data: {train: labels, roles: {y: {role: label_map, classes: 3, ignore: 255}}}\n", "bad9"),
        CVY_E_SHAPE, "gives 2 outputs for each sample, but the data have 3 classes");
}

static void begin(void)
{
    char folder[] = "test-targets-XXXXXX";
    const cvy_context_opts opts = {.size = sizeof opts, .threads = 1};
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    EXPECT(rank > 0 || mkdtemp(folder));
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    EXPECT(chdir(folder) == 0);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, &opts, &context));
    write_numbers();
    write_fields();
    MPI_Barrier(MPI_COMM_WORLD);
}

static void end(void)
{
    char here[512];
    MPI_Barrier(MPI_COMM_WORLD);
    if (is_root() && getcwd(here, sizeof here))
        EXPECT_OK(cvy_file_remove_tree(here));
    cvy_context_destroy(&context);
}

int main(int argc, char **argv)
{
    cvy_mpi_prepare();
    MPI_Init(&argc, &argv);
    begin();
    TEST(test_different_sizes);
    TEST(test_fields);
    TEST(test_label_maps);
    TEST(test_two_classes);
    TEST(test_labels_and_numbers);
    TEST(test_resume);
    TEST(test_bad_targets);
    TEST(test_refused);
    end();
    MPI_Finalize();
    return test_end();
}
