/*
 * test_context_locale.c: in a host program whose locale has a decimal comma and a language of its own, the library
 * reads and writes the same files, to the byte, as in "C": jobs, tables, runs, predictions, scores, networks of others,
 * searches and reports. Callbacks of the host program find its locale.
 *
 * Everything is done in a folder for each locale, and the folders are compared. Files with measured times are compared
 * without their numbers; a comma within a number would still be seen. A locale that the machine lacks is made by
 * localedef.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>

#include <ctype.h>
#include <ftw.h>
#include <locale.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/files.h"
#include "measure/measure.h"
#include "report/report.h"
#include "sweep/sweep.h"
#include "test_util.h"

static char root[400], folder[440]; /* of all locales; of this one */
static char callback_number[20];    /* as a callback prints 1.5 */
static int ncallbacks;

/* ---- what is done in each locale ---- */

static void put(const char *name, const char *text)
{
    FILE *f = fopen(name, "w");
    EXPECT(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* Writes the text that a call has made, and releases it. */
static void keep(const char *name, cvy_status status, char **text)
{
    EXPECT_OK(status);
    if (status == CVY_OK)
        put(name, *text);
    cvy_text_release(text);
}

#define KEEP(name, call)                                                                                               \
    do {                                                                                                               \
        char *text = NULL;                                                                                             \
        const cvy_status status_ = (call);                                                                             \
        keep((name), status_, &text);                                                                                  \
    } while (0)

/* Which lines there are depends on times. */
static void on_log(void *user, cvy_log_level level, const char *line)
{
    (void)user;
    (void)level;
    snprintf(callback_number, sizeof callback_number, "%.1f", 1.5);
    ncallbacks++;
    for (const char *c = line; (c = strchr(c, ',')) != NULL; c++)
        if (c > line && isdigit((unsigned char)c[-1]) && isdigit((unsigned char)c[1]))
            TEST_FAIL("a number with a comma: %s", line);
}

static void on_progress(void *user, const cvy_progress *progress)
{
    char text[20];
    cvy_version();
    snprintf(text, sizeof text, "%.1f", 1.5);
    EXPECT_TEXT(text, user);
    EXPECT(progress->step > 0 || progress->event); /* a warning may come before the first step */
}

static const char job[] = "model: {layers: [{fc: {channels: 8}}, {leaky_relu: {slope: 0.125}}, {fc: {channels: 3}}]}\n"
                          "data:\n"
                          "  train: {path: table.csv, label: kind}\n"
                          "  val: 25.5 %\n"
                          "  normalize: auto\n"
                          "train:\n"
                          "  batch: 4\n"
                          "  epochs: 4\n"
                          "  metrics: [accuracy]\n"
                          "  optimizer: {name: sgd, lr: 0.125, momentum: 0.9}\n"
                          "  schedule: {name: step, every: 0.5 epochs, factor: 0.5}\n"
                          "plan: {wisdom: off}\n"
                          "checkpoint: {background: false}\n" /* else the order of the lines of metrics.jsonl varies */
                          "log: {every: 1}\n";
static const char sweep[] = "job: job.yaml\n"
                            "space: {train.optimizer.lr: {log_uniform: [1e-3, 1e-1], points: 2}}\n"
                            "metric: val_loss\n";
static const char caffe[] =
    "name: \"small\"\n"
    "input: \"data\"\n"
    "input_shape { dim: 1 dim: 4 }\n"
    "layer { name: \"fc\" type: \"InnerProduct\" bottom: \"data\" top: \"fc\"\n"
    "  inner_product_param { num_output: 3 weight_filler { type: \"gaussian\" std: 0.0125 } } }\n"
    "layer { name: \"act\" type: \"ReLU\" bottom: \"fc\" top: \"fc\"\n"
    "  relu_param { negative_slope: 2.5e-1 } }\n";

static void put_table(void)
{
    static const char *const kind[] = {"ist", "IST", "Zeichen"}; /* bytewise order differs from that of languages */
    FILE *f = fopen("table.csv", "w");
    EXPECT(f != NULL);
    fputs("Tiefe,b,c,d,kind\n", f);
    for (int i = 0; i < 48; i++)
        fprintf(f, "%d.%02d,-%d.5e-1,.%d,%d,%s\n", i % 7, i % 100, i % 9, i % 3, i % 5, kind[i % 3]);
    fclose(f);
}

static void use_runs(cvy_context *context)
{
    const cvy_job_source source = {.size = sizeof source, .path = "job.yaml"};
    const cvy_train_opts opts = {
        .size = sizeof opts, .out = "run", .progress = on_progress, .user = (void *)callback_number};
    cvy_test_result scores = {.size = sizeof scores};
    cvy_calibration_result fitted = {.size = sizeof fitted};
    cvy_predict_request ask = {.size = sizeof ask, .target = "run", .data = "table.csv", .out = "logits.csv"};
    int64_t step = 0;
    EXPECT_OK(cvy_run_train(context, &source, &opts, NULL));
    EXPECT_OK(cvy_run_test(context, "run", NULL, "{path: table.csv, label: kind}", &scores));
    KEEP("test-times.json", cvy_test_result_json(&scores, &text));
    cvy_test_result_release(&scores);
    EXPECT_OK(cvy_run_calibrate(context, "run", "{path: table.csv, label: kind}", &fitted));
    EXPECT_OK(cvy_run_predict(context, &ask));
    ask.out = "probabilities.csv";
    ask.what = CVY_PREDICT_PROBABILITIES;
    ask.header = ask.names = 1;
    EXPECT_OK(cvy_run_predict(context, &ask));
    ask.out = "logits.h5";
    ask.header = 0;
    const cvy_status status = cvy_run_predict(context, &ask);
    EXPECT(status == CVY_OK || status == CVY_E_UNSUPPORTED); /* a build without HDF5 */
    EXPECT_OK(cvy_run_export("run", NULL, "weights.safetensors", 0, &step, NULL));
    KEEP("job-value.txt", cvy_run_job_value(&source, "train", &text));
    KEEP("plan.txt", cvy_run_plan(context, &source, NULL, "table", &text));
}

/* All locales read the same run and search, with the same times. */
static void use_files_of_c(void)
{
    cvy_run_summary summary = {.size = sizeof summary};
    char command[900];
    int damaged = 0;
    snprintf(command, sizeof command, "cp -r %s/C/run same && cp -r %s/C/sweep same-sweep", root, root);
    EXPECT(system(command) == 0);
    KEEP("inspect-run.txt", cvy_run_inspect("same", 1, &text));
    KEEP("verify.txt", cvy_run_verify("same", &damaged, &text));
    EXPECT_OK(cvy_run_summarize("same", &summary));
    KEEP("report.json", cvy_report_json("same", &text));
    EXPECT_OK(cvy_report_write("same"));
    EXPECT_OK(cvy_report_compare((const char *const[]){"same", "same"}, 2, "compared.html"));
    KEEP("sweep.txt", cvy_sweep_table("same-sweep", 10, &text));
    EXPECT_OK(cvy_report_sweep("same-sweep"));
}

static void use_data(cvy_context *context)
{
    const cvy_convert_request pack = {
        .size = sizeof pack, .source = "{path: table.csv, label: kind}", .destination = "pack"};
    const cvy_schedule_opts rate = {.size = sizeof rate, .lr = 0.5, .batch = 2, .epoch_samples = 10, .epochs = 10};
    cvy_schedule *schedule = NULL;
    cvy_data *data = NULL, *part = NULL;
    char *text = NULL;
    EXPECT_OK(cvy_data_open("{path: table.csv, label: kind}", NULL, &data));
    EXPECT(cvy_data_split(data, 1.5, 1, 0, &part) == CVY_E_ARGUMENT);
    put("error.txt", cvy_error_text());
    EXPECT(cvy_data_open("no-such-file.csv", NULL, &part) < 0);
    put("missing.txt", cvy_error_text());
    cvy_data_destroy(&data);
    KEEP("inspect.txt", cvy_run_inspect("{path: table.csv, label: kind}", 1, &text));
    KEEP("new-job.yaml", cvy_run_new_job("{path: table.csv, label: kind}", NULL, &text));
    EXPECT_OK(cvy_run_convert(context, &pack, &text));
    cvy_text_release(&text);
    EXPECT_OK(cvy_schedule_open("{name: step, every: 2.5 epochs, factor: 0.25}", &rate, &schedule));
    EXPECT_NEAR(cvy_schedule_lr(schedule, 26), 0.125, 1e-12);
    cvy_schedule_destroy(&schedule);
}

static void use_networks(cvy_context *context)
{
    const cvy_network_opts opts = cvy_network_opts_default();
    const cvy_network_export_opts onnx = cvy_network_export_opts_default();
    const cvy_import_opts import = {.size = sizeof import, .out = "caffe"};
    cvy_network *network = NULL;
    cvy_model *model = NULL;
    cvy_status status = CVY_OK;
    char *text = NULL;
    EXPECT_OK(cvy_model_create("by-hand", &model));
    EXPECT_OK(cvy_model_add_input(model, "x", CVY_DTYPE_F32, &(cvy_shape){1, {4}}));
    EXPECT_OK(cvy_model_add(model, "dropout", NULL, "p: 0.25", NULL));
    cvy_model_destroy(&model);
    status = cvy_run_import("net.prototxt", &import, &text);
    EXPECT(status == CVY_OK || status == CVY_E_UNSUPPORTED); /* a build without protocol buffers */
    cvy_text_release(&text);
    EXPECT_OK(cvy_network_open(context, "run", &opts, &network));
    status = cvy_network_export(network, "net.onnx", &onnx, NULL);
    EXPECT(status == CVY_OK || status == CVY_E_UNSUPPORTED);
    cvy_network_destroy(&network);
    if (status == CVY_OK) {
        EXPECT_OK(cvy_network_open(context, "net.onnx", &opts, &network));
        cvy_network_destroy(&network);
    }
}

static void use_sweeps(cvy_context *context)
{
    const cvy_sweep_opts opts = {.size = sizeof opts, .out = "sweep"};
    EXPECT_OK(cvy_run_sweep(context, "sweep.yaml", &opts, NULL));
}

static void use_library(const char *name)
{
    const cvy_context_opts opts = {.size = sizeof opts, .threads = 1, .log = on_log, .log_level = CVY_LOG_DEBUG};
    cvy_context *context = NULL;
    snprintf(folder, sizeof folder, "%s/%s", root, name);
    EXPECT(mkdir(folder, 0777) == 0 && chdir(folder) == 0);
    snprintf(callback_number, sizeof callback_number, "%.1f", 1.5);
    char number[20];
    memcpy(number, callback_number, sizeof number);
    ncallbacks = 0;
    put("job.yaml", job);
    put("sweep.yaml", sweep);
    put("net.prototxt", caffe);
    put_table();
    EXPECT_OK(cvy_context_create(&opts, &context));
    use_runs(context);
    use_data(context);
    use_networks(context);
    use_sweeps(context);
    use_files_of_c();
    cvy_context_destroy(&context);
    EXPECT_TEXT(callback_number, number);
    EXPECT(ncallbacks > 0);
    EXPECT(chdir(root) == 0);
}

/* ---- the folders are compared ---- */

static int nfiles;

static char *read_file(const char *path, size_t *bytes_out)
{
    FILE *f = fopen(path, "rb");
    char *data = NULL;
    *bytes_out = 0;
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    const long bytes = ftell(f);
    rewind(f);
    data = calloc((size_t)bytes + 1, 1);
    *bytes_out = fread(data, 1, (size_t)bytes, f);
    fclose(f);
    return data;
}

/* Puts # for each number with a decimal point, and for each hash. */
static void mask_numbers(char *text)
{
    char *to = text;
    for (const char *c = text; *c;) {
        const size_t hex = strspn(c, "0123456789abcdef");
        char *end = NULL;
        if (hex >= 16) {
            *to++ = '#';
            c += hex;
        } else if (isdigit((unsigned char)*c) && (strtod(c, &end), end > c)) {
            *to++ = '#';
            c = end;
        } else {
            *to++ = *c++;
        }
    }
    *to = 0;
}

static int has_times(const char *path)
{
    static const char *const words[] = {"times",      "metrics.jsonl", "plan.json",     "STATUS",
                                        "sweep.json", "state.json",    "manifest.json", "test.json"};
    for (int i = 0; i < CVY_COUNT(words); i++)
        if (strstr(path, words[i]))
            return strncmp(path, "./same", 6) != 0;
    return 0;
}

static void without_times(const char *path, char *text)
{
    char *footer = strstr(text, "<footer"); /* when a page was written */
    if (footer)
        *footer = 0;
    if (has_times(path))
        mask_numbers(text);
}

/* A report shows other parts, and other units, if the times are others. */
static int is_report_of_times(const char *path)
{
    return (strstr(path, "report.html") || strstr(path, "sweep.html")) && strncmp(path, "./same", 6) != 0;
}

static int compare_file(const char *path, const struct stat *about, int type, struct FTW *at)
{
    char other[1024];
    size_t bytes = 0, other_bytes = 0;
    (void)about;
    (void)at;
    if (type != FTW_F || is_report_of_times(path))
        return 0;
    snprintf(other, sizeof other, "%s%s", folder, path + 1); /* ./file */
    char *a = read_file(path, &bytes), *b = read_file(other, &other_bytes);
    nfiles++;
    if (!a || !b)
        TEST_FAIL("%s is missing", b ? path : other);
    if (a && b && (has_times(path) || strstr(path, ".html"))) {
        without_times(path, a);
        without_times(path, b);
        bytes = strlen(a), other_bytes = strlen(b);
    }
    if (a && b && (bytes != other_bytes || memcmp(a, b, bytes) != 0)) {
        size_t i = 0;
        while (i < bytes && i < other_bytes && a[i] == b[i])
            i++;
        TEST_FAIL("%s differs from byte %zu: \"%.30s\" in C, \"%.30s\" in the locale", path, i, a + i, b + i);
    }
    free(a);
    free(b);
    return 0;
}

static void compare_with(const char *locale)
{
    char plain[440];
    const int before = nfiles;
    snprintf(plain, sizeof plain, "%s/C", root);
    EXPECT(chdir(plain) == 0);
    snprintf(folder, sizeof folder, "%s/%s", root, locale);
    EXPECT(nftw(".", compare_file, 20, FTW_PHYS) == 0);
    EXPECT(nfiles > before + 30);
    EXPECT(chdir(root) == 0);
}

/* ---- locales ---- */

/* Sets a locale with a decimal comma. Returns 0 if there is none. */
static int set_locale(const char *name)
{
    char command[1000], full[40], made[430];
    snprintf(full, sizeof full, "%.20s.UTF-8", name);
    snprintf(made, sizeof made, "%s/%.20s-locale", root, name); /* glibc remembers what a folder does not have */
    if (!setlocale(LC_ALL, full)) {
        snprintf(command, sizeof command, "mkdir %s && localedef -i %s -f UTF-8 %s/%s 2>/dev/null", made, name, made,
                 full);
        if (system(command) != 0)
            return 0;
        setenv("LOCPATH", made, 1);
    }
    return setlocale(LC_ALL, full) && localeconv()->decimal_point[0] == ',';
}

static void same_files(const char *name)
{
    const int before = test_failures;
    if (!set_locale(name)) {
        printf("       there is no locale %s here, and localedef does not make it\n", name);
        return;
    }
    use_library(name);
    setlocale(LC_ALL, "C");
    compare_with(name);
    printf("%s %s: %d files\n", test_failures == before ? "ok    " : "FAILED", name, nfiles);
}

static int remove_one(const char *path, const struct stat *about, int type, struct FTW *at)
{
    (void)about;
    (void)type;
    (void)at;
    return remove(path);
}

int main(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(root, sizeof root, "%s/cvy-locale-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(root))
        return 1;
    use_library("C");
    same_files("de_DE");
    same_files("tr_TR");
    if (chdir("/") == 0 && test_failures == 0)
        nftw(root, remove_one, 20, FTW_DEPTH | FTW_PHYS);
    if (nfiles == 0) {
        printf("no locale with a decimal comma could be tried\n");
        return test_failures ? 1 : 77;
    }
    return test_end();
}
