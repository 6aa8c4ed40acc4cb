/* ranks: 1 3 */
/*
 * test_score_outputs.c: six ends of a network and eight losses have the kinds, losses, scores, probabilities, classes,
 * ensembles and calibrations that PyTorch, scikit-learn and SciPy give, before and after export to ONNX, or are
 * refused.
 *
 * The numbers are in golden/outputs_golden.h; make_outputs.py beside it makes them. The weights are in files that have
 * the description of their network, as an export writes them, so only the rows of softmax_cross_entropy, and those with
 * one output, are trained: with a learning rate that changes no weight, for calibrations, which need a run.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include "base/base_file.h"
#include "checkpoint/checkpoint.h"
#include "ensemble/ensemble.h"
#include "format/format.h"
#include "golden/outputs_golden.h"
#include "model/model_closing.h"
#include "network/network_spec.h"
#include "session/session_model.h"
#include "test_util.h"

static cvy_context *context;
static char said[1024];          /* the latest warning of a function that is applied twice */
static const struct golden *now; /* the row, for messages */

/* f32 sums of four products, and the functions after them. */
enum { EPS_PER_MILLION = 3 };

static void near(const char *what, double got, double expected)
{
    const double tolerance = EPS_PER_MILLION * 1e-6 * CVY_MAX(1, fabs(expected));
    if (!(fabs(got - expected) <= tolerance))
        printf("%s, %s: %s is %.9g, expected %.9g\n", now->ending, now->loss, what, got, expected);
    EXPECT(fabs(got - expected) <= tolerance);
}

/* ---- data, weights and jobs ---- */

enum { BY_LABEL = 1, BY_NUMBER }; /* one output: the target is a label, or a number */

static const char *columns_of(const struct golden *g, int single)
{
    return single == BY_NUMBER                               ? "y: label"
           : !single && strstr("bce mse mae huber", g->loss) ? "y: [u, v, w]"
                                                             : "label: label";
}

static const char *source_of(const struct golden *g, int single)
{
    const int on_labels = single || strstr("softmax_cross_entropy focal dice hinge", g->loss);
    return single ? "single.csv" : on_labels ? "classes.csv" : "numbers.csv";
}

static void write_data(void)
{
    FILE *classes = fopen("classes.csv", "w"), *single = fopen("single.csv", "w"), *numbers = fopen("numbers.csv", "w");
    EXPECT(classes && single && numbers);
    fprintf(classes, "a,b,c,d,label\n");
    fprintf(single, "a,b,c,d,label\n");
    fprintf(numbers, "a,b,c,d,u,v,w\n");
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < D; j++) {
            const float x = (float)sin(1.7 * i + 2.3 * j + 0.4);
            fprintf(classes, "%.9g,", x);
            fprintf(single, "%.9g,", x);
            fprintf(numbers, "%.9g,", x);
        }
        fprintf(classes, "%c\n", labels[i]);
        fprintf(single, "%c\n", sides[i]);
        fprintf(numbers, "%c,%c,%c\n", targets[K * i], targets[K * i + 1], targets[K * i + 2]);
    }
    fclose(classes);
    fclose(single);
    fclose(numbers);
}

/* The job of a row. extra: further keys of train. */
static void make_job(const struct golden *g, int single, const char *extra, char *text, size_t room)
{
    static const struct {
        const char *ending, *layers;
    } known[] = {{"nothing", ""},
                 {"softmax", ", {softmax: {name: p}}"},
                 {"log_softmax", ", {log_softmax: {name: p}}"},
                 {"sigmoid", ", {sigmoid: {name: p}}"},
                 {"moved",
                  ", {reshape: {shape: [3, 1]}}, softmax, {clamp: {min: 1e-7}}, {dropout: {p: 0.3}}, relu, {flatten: "
                  "{name: p}}"},
                 {"changed", ", softmax, {scale: {name: p, by: 2}}"}};
    const char *source = source_of(g, single), *layers = "", *metrics = "none";
    for (int i = 0; i < CVY_COUNT(known); i++)
        layers = strcmp(known[i].ending, g->ending) == 0 ? known[i].layers : layers;
    if (strstr(g->kind, "yes") && !single)
        metrics = "[accuracy, balanced_accuracy, nll, brier, ece]";
    else if (strcmp(g->kind, "values") != 0)
        metrics = single ? "[accuracy, balanced_accuracy, nll, brier, ece, auc]"
                         : "[accuracy, balanced_accuracy, nll, brier, ece, {name: top_k, k: 2}]";
    else if (strcmp(source, "numbers.csv") == 0)
        metrics = "[rmse, mae, r2]";
    snprintf(text, room,
             "model: {layers: [{fc: {name: s, channels: %d}}%s]}\n"
             "data: {train: {path: %s, %s}}\n"
             "train: {batch: 7, epochs: 1, optimizer: {name: sgd, lr: 1e-30}, loss: %s, metrics: %s%s}\n",
             single ? 1 : K, layers, source, columns_of(g, single), g->loss, metrics, extra);
}

/* Writes the weights of a member with the description of its network. A training of it is refused, or not. */
static void write_network(const char *file, const struct golden *g, int single, int member)
{
    const int k = single ? 1 : K;
    float weight[K][D], bias[K];
    char text[1024];
    cvy_job *job = NULL;
    cvy_model *m = NULL;
    cvy_network_spec spec = {0};
    cvy_text description = {0};
    for (int c = 0; c < k; c++) {
        for (int j = 0; j < D; j++)
            weight[c][j] = (float)(2 * cos(2.1 * c * j + 0.7 * c + 2.3 * j + 0.2 * member));
        bias[c] = (float)(0.3 * sin(c + member));
    }
    make_job(g, single, "", text, sizeof text);
    EXPECT_OK(cvy_job_parse_text("job.yaml", text, NULL, 0, &job));
    EXPECT_OK(cvy_network_spec_of_job(&job, &spec));
    if (!spec.job)
        return;
    const cvy_status status = cvy_job_model(spec.job, NULL, &spec.data, CVY_LOSSES_NEEDED, &m);
    EXPECT_INT(status, g->refused ? CVY_E_CONFIG : CVY_OK);
    EXPECT(!g->refused || strstr(cvy_error_text(), "probabilities already"));
    EXPECT_OK(cvy_network_spec_print(&spec, &description));
    const char *const meta[] = {CVY_META_NETWORK, description.data, NULL};
    const cvy_tensor_entry entry[] = {{"s.weight", CVY_DTYPE_F32, {2, {k, D}}, weight},
                                      {"s.bias", CVY_DTYPE_F32, {1, {k}}, bias}};
    EXPECT_OK(cvy_safetensors_write(file, entry, 2, meta, NULL, NULL));
    cvy_text_free(&description);
    cvy_model_destroy(&m);
    cvy_network_spec_end(&spec);
}

static int is_root(void)
{
    return cvy_context_rank(context) == 0;
}

/* ---- what is asked ---- */

static void scores(const char *target, const char *source)
{
    static const char *const of_classes[] = {"accuracy", "balanced_accuracy", "nll", "brier", "ece"},
                             *const of_values[] = {"rmse", "mae", "r2"};
    const int is_values = strcmp(now->kind, "values") == 0;
    cvy_test_result result = cvy_test_result_default();
    *said = 0;
    EXPECT_OK(cvy_run_test(context, target, NULL, source, &result));
    if (is_root()) {
        const int of_scaled =
            strcmp(now->ending, "changed") == 0 && strstr("softmax_cross_entropy focal dice bce", now->loss);
        EXPECT((strstr(said, "has made already") != NULL) == (now->refused || of_scaled) ||
               strcmp(now->ending, "log_softmax") == 0);
        near("loss", result.loss, now->value);
        for (int i = 0; i < result.nmetric; i++) {
            for (int k = 0; k < (is_values ? 3 : 5); k++)
                if (strcmp(result.metric[i].name, is_values ? of_values[k] : of_classes[k]) == 0)
                    near(result.metric[i].name, result.metric[i].value, now->score[k]);
            if (strncmp(result.metric[i].name, "top_k", 5) == 0 || strcmp(result.metric[i].name, "auc") == 0)
                near(result.metric[i].name, result.metric[i].value, now->score[5]);
        }
        EXPECT(result.nmetric > 0 || now->score[0] == 0);
    }
    cvy_test_result_release(&result);
}

static void ensemble(const char *source)
{
    const char *const member[] = {"m0.safetensors", "m1.safetensors"};
    static const char *const of_classes[] = {"accuracy", "balanced_accuracy", "nll", "brier", "ece"},
                             *const of_values[] = {"rmse", "mae", "r2"};
    const int is_values = strcmp(now->kind, "values") == 0;
    cvy_ensemble_scores all = cvy_ensemble_scores_default();
    if (is_values && now->score[0] == 0) {
        EXPECT_FAULT(cvy_run_test_ensemble(context, member, 2, source, 0, &all), CVY_E_CONFIG, "no metric suits");
        return;
    }
    EXPECT_OK(cvy_run_test_ensemble(context, member, 2, source, 0, &all));
    for (int i = 0; i < all.nmetric; i++)
        for (int k = 0; k < (is_values ? 3 : 5); k++)
            if (strcmp(all.metric[i], is_values ? of_values[k] : of_classes[k]) == 0) {
                near("a member's score", all.value[i], now->score[k]);
                near("the ensemble's score", all.value[2 * all.nmetric + i], now->joint[k]);
            }
    cvy_ensemble_scores_release(&all);
}

/* Reads a .npy file after its header of 128 bytes. */
static void read_npy(const char *path, size_t bytes, void *data)
{
    FILE *file = fopen(path, "rb");
    EXPECT(file && fseek(file, 128, SEEK_SET) == 0 && fread(data, 1, bytes, file) == bytes);
    if (file)
        fclose(file);
}

static void predictions(const char *target, const char *source)
{
    float p[2 * K] = {0};
    int32_t best[N] = {0};
    cvy_predict_request ask = cvy_predict_request_default();
    ask.target = target;
    ask.data = source;
    ask.out = "p.npy";
    ask.what = CVY_PREDICT_PROBABILITIES;
    if (strcmp(now->kind, "values") == 0) {
        EXPECT(cvy_run_predict(context, &ask) == CVY_E_CONFIG);
        return;
    }
    const int shown = now->probability[2] == 0 ? 2 : now->probability[4] == 0 ? 4 : 6;
    EXPECT_OK(cvy_run_predict(context, &ask));
    read_npy("p.npy", sizeof *p * (size_t)shown, p);
    for (int i = 0; i < shown; i++)
        near("a probability", p[i], now->probability[i]);
    ask.what = CVY_PREDICT_CLASSES;
    if (!*now->classes) {
        EXPECT_FAULT(cvy_run_predict(context, &ask), CVY_E_CONFIG, "is a yes or no");
        return;
    }
    EXPECT_OK(cvy_run_predict(context, &ask));
    read_npy("p.npy", sizeof best, best);
    for (int i = 0; i < N; i++)
        EXPECT_INT(best[i], now->classes[i] - '0');
}

static const char *kind_of(const char *target)
{
    cvy_network *network = NULL;
    cvy_output_kind kind = CVY_OUTPUT_VALUES;
    EXPECT_OK(cvy_network_open(context, target, NULL, &network));
    EXPECT_OK(cvy_network_output_kind(network, 0, &kind));
    cvy_network_destroy(&network);
    return cvy_output_kind_text(kind);
}

/* The kind of the output, and that of the ONNX file which is written. */
static void export_onnx(void)
{
    const cvy_network_export_opts opts = {.size = sizeof opts, .replace = 1};
    cvy_network *network = NULL;
    EXPECT_TEXT(kind_of("m0.safetensors"), now->kind);
    EXPECT_OK(cvy_network_open(context, "m0.safetensors", NULL, &network));
    if (is_root())
        EXPECT_OK(cvy_network_export(network, "m0.onnx", &opts, NULL));
    MPI_Barrier(MPI_COMM_WORLD);
    cvy_network_destroy(&network);
    EXPECT_TEXT(kind_of("m0.onnx"), now->kind);
    MPI_Barrier(MPI_COMM_WORLD); /* before anyone changes the file */
}

/* Trains nothing for one epoch, so that there is a run to calibrate. */
static void calibration(int single, const char *source)
{
    char text[1024], run[64];
    const cvy_train_opts opts = {.size = sizeof opts, .out = run};
    cvy_calibration_result fitted = cvy_calibration_result_default();
    snprintf(run, sizeof run, "run_%s_%s_%d", now->ending, now->loss, single);
    make_job(now, single, ", init: m0.safetensors", text, sizeof text);
    const cvy_job_source job = {.size = sizeof job, .text = text};
    EXPECT_OK(cvy_run_train(context, &job, &opts, NULL));
    EXPECT_OK(cvy_run_calibrate(context, run, source, &fitted));
    near("nll before the calibration", fitted.nll_before, now->score[2]);
    near("ece before the calibration", fitted.ece_before, now->score[4]);
    near("nll after the calibration", fitted.nll_after, now->nll_calibrated);
    /* the nll is flat there: its slope is known to the rounding of the logits */
    EXPECT_NEAR(fitted.temperature, now->temperature, 1e-4 * now->temperature);
}

static void check_row(const struct golden *g, int single)
{
    char source[80];
    now = g;
    snprintf(source, sizeof source, "{path: %s, %s}", source_of(g, single), columns_of(g, single));
    for (int m = 0; is_root() && m < 2; m++)
        write_network(m ? "m1.safetensors" : "m0.safetensors", g, single, m);
    MPI_Barrier(MPI_COMM_WORLD);
    export_onnx();
    scores("m0.safetensors", source);
    ensemble(source);
    predictions("m0.safetensors", source);
    predictions("m0.onnx", source);
    if (!g->refused && (single == BY_LABEL || strcmp(g->loss, "softmax_cross_entropy") == 0))
        calibration(single, source);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void table(void)
{
    for (int i = 0; i < CVY_COUNT(golden); i++)
        check_row(&golden[i], 0);
}

static void one_output(void)
{
    for (int i = 0; i < CVY_COUNT(golden_single); i++)
        check_row(&golden_single[i], BY_LABEL);
}

/* The same targets as numbers: the probability of yes is the only one, and there are no classes. */
static void one_output_for_numbers(void)
{
    for (int i = 0; i < CVY_COUNT(golden_single); i++) {
        struct golden g = golden_single[i];
        if (strcmp(g.loss, "bce") != 0)
            continue;
        g.classes = "";
        for (int k = 0; k < 6; k++)
            g.probability[k] = k < 2 ? g.probability[2 * k + 1] : 0;
        check_row(&g, BY_NUMBER);
    }
}

/* A file of another program has no description: what its output is follows from its end alone. */
static void forget_description(const char *path)
{
    char *data = NULL, *at = NULL;
    size_t bytes = 0;
    EXPECT_OK(cvy_file_read(path, 1 << 20, &data, &bytes));
    for (size_t i = 0; data && !at && i + 14 < bytes; i++)
        at = memcmp(data + i, "convoy.network", 14) == 0 ? data + i : NULL;
    EXPECT(at);
    if (at)
        memcpy(at, "absent", 6);
    EXPECT_OK(cvy_file_replace(path, data, bytes));
    cvy_mem_free(&data);
}

static void foreign_files(void)
{
    static const char *const kinds[] = {"values",
                                        "probabilities of the classes",
                                        "log-probabilities of the classes",
                                        "probabilities of yes",
                                        "probabilities of the classes",
                                        "values"};
    for (int i = 0; i < CVY_COUNT(kinds); i++) {
        struct golden g = golden[i];
        EXPECT_TEXT(g.loss, "softmax_cross_entropy");
        now = &g;
        if (is_root())
            write_network("m0.safetensors", &g, 0, 0);
        MPI_Barrier(MPI_COMM_WORLD);
        export_onnx();
        if (is_root())
            forget_description("m0.onnx");
        MPI_Barrier(MPI_COMM_WORLD);
        g.kind = kinds[i];
        for (int k = 0; k < CVY_COUNT(golden) && strstr(g.kind, "yes"); k++)
            if (strcmp(golden[k].loss, "bce") == 0 && strcmp(golden[k].ending, g.ending) == 0)
                memcpy(g.probability, golden[k].probability, sizeof g.probability);
        g.classes = strstr(g.kind, "of the classes") ? g.classes : "";
        EXPECT_TEXT(kind_of("m0.onnx"), g.kind);
        predictions("m0.onnx", "{path: classes.csv, label: label}");
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void keep_log(void *user, cvy_log_level level, const char *line)
{
    (void)user;
    if (level == CVY_LOG_WARN && strstr(line, "has made already"))
        snprintf(said, sizeof said, "%s", line);
}

/* Warns of the loss of this network of three classes, and says which function was applied before. */
static void expect_warning(const char *layers, const char *words)
{
    static char x[] = "x", label[] = "label";
    cvy_dataset_info data = {.nfield = 2, .nclasses = K, .path = "classes.csv"};
    char text[512];
    cvy_job *job = NULL;
    cvy_model *m = NULL;
    data.field[0] = (cvy_field){x, CVY_DTYPE_F32, {1, {D}}};
    data.field[1] = (cvy_field){label, CVY_DTYPE_I32, {0}};
    snprintf(text, sizeof text, "model: {layers: [{fc: {name: s, channels: %d}}, %s]}\ndata: {train: classes.csv}\n", K,
             layers);
    *said = 0;
    EXPECT_OK(cvy_job_parse_text("job.yaml", text, NULL, 0, &job));
    EXPECT_OK(cvy_job_model(job, NULL, &data, 1, &m));
    EXPECT_OK(cvy_model_warn_of_losses(m, context));
    EXPECT(!is_root() || (*words ? strstr(said, words) != NULL : !*said)); /* rank 0 logs */
    cvy_model_destroy(&m);
    cvy_job_destroy(&job);
}

static void numbers_made_of_probabilities(void)
{
    expect_warning("{exp: {name: e}}, {reduction: {name: t, method: sum, axes: [1], keep: true}}, {expand: {name: u, "
                   "shape: [3]}}, {divide: {from: [e, u]}}",
                   "division by their sum");
    expect_warning("{exp: {name: e}}, {reduction: {name: t, method: max, axes: [1], keep: true}}, {expand: {name: u, "
                   "shape: [3]}}, {divide: {from: [e, u]}}",
                   "");
    expect_warning("{softmax: {name: p}}, {softmax: {name: q, from: s}}, {mix: {from: [p, q]}}", "the softmax");
    expect_warning("{sigmoid: {name: p}}, {multiply: {from: [s, p]}}", "");
    expect_warning("{softmax: {name: p}}, {scale: {by: 2}}, log", "");
}

/* The files are in memory if that is possible: hundreds of them are written, and each is synchronised with its disk. */
static void begin(void)
{
    char folder[64] = "test-score-outputs-XXXXXX";
    const cvy_context_opts opts = {.size = sizeof opts, .threads = 1, .log_level = CVY_LOG_WARN, .log = keep_log};
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (access("/dev/shm", W_OK) == 0)
        snprintf(folder, sizeof folder, "/dev/shm/test-score-outputs-XXXXXX");
    EXPECT(rank > 0 || mkdtemp(folder));
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    EXPECT(chdir(folder) == 0);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, &opts, &context));
    if (rank == 0)
        write_data();
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
    TEST(table);
    TEST(one_output);
    TEST(one_output_for_numbers);
    TEST(foreign_files);
    TEST(numbers_made_of_probabilities);
    end();
    MPI_Finalize();
    return test_end();
}
