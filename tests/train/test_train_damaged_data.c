/* ranks: 1 2 */
/* rows: asan */
/*
 * test_train_damaged_data.c: training on damaged data, in every format: the fault names file and record on all ranks;
 * with data.on_bad_sample: skip the sample is counted and left out, with the same numbers on one rank and on several.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <mpi.h>

#include <convoy/convoy.h>
#include <convoy/mpi.h>
#include <stdio.h>

#include "base/base_file.h"
#include "data/test_data_pictures.h"
#include "data/tfrecord/data_example.h"
#include "data/tfrecord/data_tfrecord.h"
#include "files/files.h"
#include "test_util.h"

static int rank;
static cvy_context *alone, *together;
static int batch = 5, outputs = 4; /* of the jobs */

/* ---- runs ---- */

static const char *out_of(const char *name)
{
    return in_scratch(name);
}

/* Trains on the source into the folder `out`. */
static cvy_status train(cvy_context *context, const char *source, const char *on_bad_sample, const char *out,
                        cvy_train_result *result)
{
    char text[2048];
    snprintf(text, sizeof text,
             "model: {layers: [{fc: {channels: 8}}, relu, {fc: {channels: %d}}]}\n"
             "data: {train: %s, on_bad_sample: %s}\n"
             "train: {batch: %d, epochs: 2, optimizer: {name: sgd, lr: 0.001}}\n",
             outputs, source, on_bad_sample, batch);
    const cvy_job_source job = {.size = sizeof job, .text = text};
    const cvy_train_opts opts = {.size = sizeof opts, .out = out};
    return cvy_run_train(context, &job, &opts, result);
}

/* Trains on all ranks together; the run folder is removed afterwards. */
static cvy_status train_here(const char *source, const char *on_bad_sample, cvy_train_result *result)
{
    const cvy_status status = train(together, source, on_bad_sample, out_of("together"), result);
    char text[2048];
    snprintf(text, sizeof text, "%s", cvy_error_text());
    if (rank == 0)
        (void)!cvy_file_remove_tree(out_of("together"));
    MPI_Barrier(MPI_COMM_WORLD);
    return status < 0 ? cvy_error_set(status, "%s", text) : status;
}

/* Returns the member of the last line of metrics.jsonl that has it, or 0. */
static double metric(const char *out, const char *key)
{
    char path[600], quoted[64], *text = NULL;
    size_t bytes = 0;
    double value = 0;
    snprintf(path, sizeof path, "%s/metrics.jsonl", out);
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    if (cvy_file_read(path, 1 << 20, &text, &bytes) != CVY_OK)
        return -1;
    for (const char *at = text; (at = strstr(at, quoted)) != NULL; at += strlen(quoted))
        value = atof(at + strlen(quoted));
    cvy_mem_free(&text);
    return value;
}

/* The damage must be named if bad samples are faults. If they are skipped, nbad of them must be counted in each
 * epoch. */
static void damaged(const char *source, const char *words, int nbad)
{
    cvy_train_result one = cvy_train_result_default(), all = cvy_train_result_default();
    EXPECT_FAULT(train_here(source, "fail", NULL), CVY_E_FORMAT, words);
    EXPECT(strstr(cvy_error_text(), "(data.on_bad_sample: skip leaves out such samples)"));
    EXPECT_OK(train(together, source, "skip", out_of("all"), &all));
    if (rank == 0) {
        EXPECT_OK(train(alone, source, "skip", out_of("one"), &one));
        EXPECT_NEAR(all.train_loss, one.train_loss, 1e-5 * fabs(one.train_loss));
        EXPECT_NEAR(metric(out_of("all"), "train_loss"), metric(out_of("one"), "train_loss"), 1e-4);
        EXPECT_INT((int)metric(out_of("all"), "train_skipped"), nbad);
        EXPECT_INT((int)metric(out_of("one"), "train_skipped"), nbad);
        OK(cvy_file_remove_tree(out_of("one")));
        OK(cvy_file_remove_tree(out_of("all")));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The set is damaged and not only a sample. It must be refused when it is opened, even if bad samples are skipped. */
static void refused(const char *source, cvy_status code, const char *words)
{
    EXPECT_FAULT(train_here(source, "fail", NULL), code, words);
    EXPECT_FAULT(train_here(source, "skip", NULL), code, words);
}

/* Rank 0 makes the files. */
#define MAKE(...)                                                                                                      \
    do {                                                                                                               \
        MPI_Barrier(MPI_COMM_WORLD);                                                                                   \
        if (rank == 0) {                                                                                               \
            __VA_ARGS__;                                                                                               \
        }                                                                                                              \
        MPI_Barrier(MPI_COMM_WORLD);                                                                                   \
    } while (0)

/* ---- pictures ---- */

#if CVY_HAVE_JPEG && CVY_HAVE_SPNG
static void put_pictures(void)
{
    char name[64];
    OK(cvy_file_remove_tree(in_scratch("pictures")));
    for (int class = 0; class < 4; class ++) {
        snprintf(name, sizeof name, "pictures/c%d", class);
        OK(cvy_file_make_folder(in_scratch(name)));
        for (int i = 0; i < 4; i++) {
            snprintf(name, sizeof name, "pictures/c%d/%d.%s", class, i, i % 2 ? "png" : "jpg");
            (i % 2 ? put_png : put_jpeg)(in_scratch(name), 4 * class + i, 8, 8, 3);
        }
    }
}

static void pictures(void)
{
    char source[512];
    snprintf(source, sizeof source, "%s", in_scratch("pictures"));
    MAKE(put_pictures(); cut_file(in_scratch("pictures/c1/2.jpg"), 60));
    damaged(source, "c1/2.jpg", 1);
    MAKE(put_pictures(); flip_byte(in_scratch("pictures/c3/0.jpg"), 0);
         put_file(in_scratch("pictures/c0/1.png"), "", 0));
    EXPECT_FAULT(train_here(source, "fail", NULL), CVY_E_FORMAT, "pictures/c");
    damaged(source, "pictures/c", 2);
    MAKE(put_pictures(); flip_byte(in_scratch("pictures/c2/3.png"), -30));
    damaged(source, "c2/3.png", 1);
    MAKE(put_pictures(); cut_file(in_scratch("pictures/c2/1.png"), 20));
    damaged(source, "c2/1.png", 1);
    MAKE(put_pictures(); put_file(in_scratch("pictures/c0/0.jpg"), "this is no picture", 18));
    damaged(source, "c0/0.jpg", 1);
    MAKE(put_pictures(); put_png(in_scratch("pictures/c0/1.png"), 1, 9, 8, 3));
    EXPECT_FAULT(train_here(source, "fail", NULL), CVY_E_SHAPE, "c0/1.png");
}
#endif

/* ---- arrays ---- */

enum { N = 16 };

static void put_cifar(int label_of_5)
{
    FILE *f = fopen(in_scratch("data_batch_1.bin"), "wb");
    TRUE_THAT(f);
    for (int i = 0; i < N; i++) {
        fputc(i == 5 ? label_of_5 : i % 4, f);
        for (int k = 0; k < 3072; k++)
            fputc((i * 37 + k) % 251, f);
    }
    fclose(f);
}

static void cifar(void)
{
    char source[600];
    snprintf(source, sizeof source, "{path: %s, kind: cifar10}", in_scratch("data_batch_1.bin"));
    MAKE(put_cifar(200));
    EXPECT_FAULT(train_here(source, "fail", NULL), CVY_E_SHAPE,
                 "layer fc2 gives 4 outputs for each sample, but the data have 10 classes");
    outputs = 10;
    damaged(source, "record 5", 1);
    outputs = 4;
    MAKE(put_cifar(1); cut_file(in_scratch("data_batch_1.bin"), 10));
    refused(source, CVY_E_FORMAT, "data_batch_1.bin");
}

static void put_arrays(float x_of_7, int32_t label_of_9)
{
    float x[N * 6];
    int32_t label[N];
    for (int i = 0; i < N * 6; i++)
        x[i] = (float)(i % 13) / 13;
    x[7 * 6 + 3] = x_of_7;
    for (int i = 0; i < N; i++)
        label[i] = i == 9 ? label_of_9 : i % 4;
    OK(cvy_file_make_folder(in_scratch("arrays")));
    put_npy(in_scratch("arrays/x.npy"), "<f4", "16, 6", x, sizeof x);
    put_npy(in_scratch("arrays/label.npy"), "<i4", "16,", label, sizeof label);
}

static void npy(void)
{
    char source[600];
    snprintf(source, sizeof source, "{path: %s, classes: 4}", in_scratch("arrays"));
    MAKE(put_arrays(NAN, 1));
    damaged(source, "x.npy, record 7: element 3 of x is nan", 1);
    MAKE(put_arrays(INFINITY, 1));
    damaged(source, "x.npy, record 7: element 3 of x is inf, not a finite number", 1);
    MAKE(put_arrays(0, 4));
    EXPECT_FAULT(train_here(source, "fail", NULL), CVY_E_FORMAT, "label");
    EXPECT_FAULT(train_here(source, "fail", NULL), CVY_E_FORMAT, "4");
    MAKE(put_arrays(0, -1));
    EXPECT_FAULT(train_here(source, "fail", NULL), CVY_E_FORMAT, "-1");
    MAKE(put_arrays(0, 1); cut_file(in_scratch("arrays/x.npy"), 5));
    refused(source, CVY_E_FORMAT, "x.npy");
    MAKE(put_arrays(0, 1); cut_file(in_scratch("arrays/label.npy"), 5));
    refused(source, CVY_E_FORMAT, "label.npy");
    MAKE(put_arrays(0, 1); flip_byte(in_scratch("arrays/x.npy"), 1));
    refused(source, CVY_E_FORMAT, "x.npy");
}

static void put_idx(int label_of_3)
{
    static const uint8_t head[] = {0, 0, 8, 3, 0, 0, 0, N, 0, 0, 0, 4, 0, 0, 0, 4},
                         label_head[] = {0, 0, 8, 1, 0, 0, 0, N};
    uint8_t pictures[sizeof head + N * 16], labels[sizeof label_head + N];
    memcpy(pictures, head, sizeof head);
    memcpy(labels, label_head, sizeof label_head);
    for (int i = 0; i < N * 16; i++)
        pictures[sizeof head + i] = (uint8_t)(i * 7);
    for (int i = 0; i < N; i++)
        labels[sizeof label_head + i] = (uint8_t)(i == 3 ? label_of_3 : i % 4);
    OK(cvy_file_make_folder(in_scratch("idx")));
    put_file(in_scratch("idx/train-images-idx3-ubyte"), pictures, sizeof pictures);
    put_file(in_scratch("idx/train-labels-idx1-ubyte"), labels, sizeof labels);
}

static void idx(void)
{
    char source[600];
    snprintf(source, sizeof source, "{path: %s, classes: 4}", in_scratch("idx"));
    MAKE(put_idx(9));
    EXPECT_FAULT(train_here(source, "fail", NULL), CVY_E_FORMAT, "9");
    MAKE(put_idx(1); cut_file(in_scratch("idx/train-images-idx3-ubyte"), 3));
    refused(source, CVY_E_FORMAT, "train-images-idx3-ubyte");
    MAKE(put_idx(1); cut_file(in_scratch("idx/train-labels-idx1-ubyte"), 3));
    refused(source, CVY_E_FORMAT, "train-labels-idx1-ubyte");
}

/* ---- packed sets ---- */

static void put_pack(void)
{
    char *report = NULL;
    OK(cvy_file_remove_tree(in_scratch("set.pack")));
    const cvy_convert_request request = {.size = sizeof request,
                                         .source = "{format: synthetic, samples: 16, shape: [2, 4, 4], classes: 4}",
                                         .destination = in_scratch("set.pack")};
    OK(cvy_run_convert(alone, &request, &report));
    cvy_mem_free(&report);
}

/* Returns the path of the only part or of the index, by its suffix. */
static const char *pack_file(const char *suffix)
{
    cvy_pool *pool = NULL;
    char **name = NULL, found[128] = "";
    int64_t count = 0;
    OK(cvy_pool_create(&pool));
    OK(cvy_file_list(pool, in_scratch("set.pack"), &name, &count));
    for (int64_t i = 0; i < count; i++)
        if (strstr(name[i], suffix))
            snprintf(found, sizeof found, "set.pack/%s", name[i]);
    cvy_pool_destroy(&pool);
    TRUE_THAT(*found);
    return in_scratch(found);
}

static void packed(void)
{
    char source[512];
    snprintf(source, sizeof source, "%s", in_scratch("set.pack"));
    MAKE(put_pack(); flip_byte(pack_file("part"), -700));
    damaged(source, "set.pack", 1);
    MAKE(put_pack(); cut_file(pack_file("part"), 100));
    refused(source, CVY_E_FORMAT, "set.pack");
    MAKE(put_pack(); flip_byte(pack_file("index"), 20));
    refused(source, CVY_E_FORMAT, "set.pack");
}

/* ---- records and lines ---- */

static void put_records(void)
{
    static uint8_t file[N * 256];
    size_t at = 0;
    for (int i = 0; i < N; i++) {
        const float x[] = {(float)i / N, 1, -1, 0.5f};
        const int64_t label = i % 4;
        const cvy_new_feature f[] = {{"x", CVY_FEATURE_FLOATS, x, 4}, {"label", CVY_FEATURE_INTS, &label, 1}};
        const size_t bytes = cvy_example_bytes(f, 2);
        cvy_tfrecord_put(file + at, bytes, 8);
        cvy_tfrecord_put(file + at + 8, cvy_tfrecord_crc(file + at, 8), 4);
        cvy_example_put(f, 2, file + at + 12);
        cvy_tfrecord_put(file + at + 12 + bytes, cvy_tfrecord_crc(file + at + 12, bytes), 4);
        at += bytes + 16;
    }
    put_file(in_scratch("set.tfrecord"), file, at);
}

static void records(void)
{
    char source[600];
    snprintf(source, sizeof source, "{path: %s, classes: 4}", in_scratch("set.tfrecord"));
    MAKE(put_records(); flip_byte(in_scratch("set.tfrecord"), -10));
    damaged(source, "set.tfrecord, record 15 at byte", 1);
    MAKE(put_records(); flip_byte(in_scratch("set.tfrecord"), 20));
    damaged(source, "set.tfrecord, record 0 at byte 0", 1);
    MAKE(put_records(); cut_file(in_scratch("set.tfrecord"), 5));
    refused(source, CVY_E_FORMAT, "set.tfrecord, record 15 at byte");
    MAKE(put_records(); flip_byte(in_scratch("set.tfrecord"), 1));
    refused(source, CVY_E_FORMAT, "set.tfrecord, record 0 at byte 0");
}

/* Writes a table in which the label of line 5 and a number of line 8 can be replaced. */
static void put_table(const char *label, const char *number)
{
    FILE *f = fopen(in_scratch("table.csv"), "w");
    TRUE_THAT(f);
    fprintf(f, "a,b,label\n");
    for (int line = 2; line < N + 2; line++)
        fprintf(f, "%d.5,%s,%s\n", line % 7, line == 8 ? number : "1", line == 5 ? label : line % 2 ? "3" : "1");
    fclose(f);
}

static void lines(void)
{
    char source[600];
    snprintf(source, sizeof source, "%s", in_scratch("table.csv"));
    MAKE(put_table("1", "one"));
    damaged(source, "table.csv, line 8: column 2 (b): \"one\" is not a number", 1);
    MAKE(put_table("x", ""));
    damaged(source, "table.csv, line ", 2);
    MAKE(put_table("-1", "1"));
    damaged(source, "table.csv, line 5: label -1 is out of range", 1);
}

/* ---- numbers that are not finite ---- */

enum { CHANNEL_ELEMS = 6 }; /* samples of 1 x 2 x 3 */
enum { BAD_X, BAD_Y, BAD_WEIGHT };

/* Writes a set of arrays in which one number is NaN: element 3 of x of sample 7, element 1 of y of sample 5, or the
 * weight of sample 4. */
static void put_nan(int field)
{
    float x[N * CHANNEL_ELEMS], y[N * 2], weight[N];
    int32_t label[N];
    for (int i = 0; i < N * CHANNEL_ELEMS; i++)
        x[i] = field == BAD_X && i == 7 * CHANNEL_ELEMS + 3 ? NAN : (float)(i % 13) / 13;
    for (int i = 0; i < N * 2; i++)
        y[i] = field == BAD_Y && i == 5 * 2 + 1 ? NAN : (float)(i % 5);
    for (int i = 0; i < N; i++) {
        weight[i] = field == BAD_WEIGHT && i == 4 ? NAN : 1;
        label[i] = i % 4;
    }
    OK(cvy_file_remove_tree(in_scratch("nan")));
    OK(cvy_file_make_folder(in_scratch("nan")));
    put_npy(in_scratch("nan/x.npy"), "<f4", "16, 1, 2, 3", x, sizeof x);
    if (field == BAD_Y)
        put_npy(in_scratch("nan/y.npy"), "<f4", "16, 2", y, sizeof y);
    else
        put_npy(in_scratch("nan/label.npy"), "<i4", "16,", label, sizeof label);
    if (field == BAD_WEIGHT)
        put_npy(in_scratch("nan/weight.npy"), "<f4", "16,", weight, sizeof weight);
}

static void convert(const char *format)
{
    char *report = NULL;
    char source[600];
    snprintf(source, sizeof source, "%s", in_scratch("nan"));
    const cvy_convert_request request = {
        .size = sizeof request, .source = source, .destination = in_scratch("converted"), .format = format};
    OK(cvy_file_remove_tree(in_scratch("converted")));
    OK(cvy_run_convert(alone, &request, &report));
    cvy_mem_free(&report);
}

/* An IDX file of f32, big endian, with a NaN in element 3 of sample 7. */
static void put_idx_of_numbers(void)
{
    static const uint8_t head[] = {0, 0, 13, 3, 0, 0, 0, N, 0, 0, 0, 2, 0, 0, 0, 3},
                         label_head[] = {0, 0, 8, 1, 0, 0, 0, N}, nan[] = {0x7F, 0xC0, 0, 0};
    uint8_t numbers[sizeof head + N * CHANNEL_ELEMS * 4] = {0}, labels[sizeof label_head + N];
    memcpy(numbers, head, sizeof head);
    memcpy(numbers + sizeof head + (7 * CHANNEL_ELEMS + 3) * sizeof nan, nan, sizeof nan);
    memcpy(labels, label_head, sizeof label_head);
    for (int i = 0; i < N; i++)
        labels[sizeof label_head + i] = (uint8_t)(i % 4);
    OK(cvy_file_make_folder(in_scratch("idx32")));
    put_file(in_scratch("idx32/train-images-idx3-ubyte"), numbers, sizeof numbers);
    put_file(in_scratch("idx32/train-labels-idx1-ubyte"), labels, sizeof labels);
}

/* Every format that holds real numbers: the message names sample and element, and the sample can be left out. */
static void not_finite(void)
{
    static const struct {
        const char *format;
        int fields;     /* those that the format holds: x; and y; and weights */
        const char *at; /* how it names sample 7 */
    } formats[] = {
        {"pack", 3, "record 7 at byte 560"},
#if CVY_HAVE_HDF5
        {"hdf5", 3, "row 7"},
#endif
        {"tfrecord", 3, "record 7 at byte 1043"},
        {"lmdb", 1, "record 7 (key \"00000007\")"}
    };
    static const char *const element[] = {"element 3 of x is nan, not a finite number", "element 1 of y is nan",
                                          "element 0 of weight is nan"};
    char source[600], words[200];
    snprintf(source, sizeof source, "%s", in_scratch("nan"));
    for (int field = BAD_X; field <= BAD_WEIGHT; field++) {
        outputs = field == BAD_Y ? 2 : 4;
        MAKE(put_nan(field));
        damaged(source, element[field], 1);
    }
    snprintf(source, sizeof source, "%s", in_scratch("converted"));
    for (int i = 0; i < CVY_COUNT(formats); i++)
        for (int field = 0; field < formats[i].fields; field++) {
            outputs = field == BAD_Y ? 2 : 4;
            MAKE(put_nan(field); convert(formats[i].format));
            snprintf(words, sizeof words, "%s: %s", formats[i].at, element[BAD_X]);
            damaged(source, field == BAD_X ? words : element[field], 1);
        }
    outputs = 4;
    snprintf(source, sizeof source, "{path: %s, classes: 4}", in_scratch("idx32"));
    MAKE(put_idx_of_numbers());
    damaged(source, "train-images-idx3-ubyte, record 7: element 3 of x is nan", 1);
    snprintf(source, sizeof source, "%s", in_scratch("table.csv"));
    MAKE(put_table("1", "NaN"));
    damaged(source, "table.csv, line 8: column 2 (b): \"NaN\" is not a number (`missing: NUMBER`", 1);
}

/* ---- a step whose samples are all skipped ---- */

static void nothing_left(void)
{
    char source[600];
    snprintf(source, sizeof source, "{path: %s, classes: 4}", in_scratch("arrays"));
    MAKE(put_arrays(NAN, 1));
    batch = 2;
    damaged(source, "x.npy, record 7", 1);
    batch = 1;
    cvy_train_result result = cvy_train_result_default();
    if (rank == 0) {
        EXPECT_OK(train(alone, source, "skip", out_of("one"), &result));
        EXPECT(isfinite(result.train_loss));
        EXPECT(isfinite(metric(out_of("one"), "train_loss")));
        OK(cvy_file_remove_tree(out_of("one")));
    }
    batch = 5;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        scratch_make();
    MPI_Bcast(scratch_folder, sizeof scratch_folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    const cvy_context_opts opts = {.size = sizeof opts, .threads = 1, .log_level = CVY_LOG_ERROR};
    OK(cvy_context_create(&opts, &alone));
    OK(cvy_context_create_mpi(MPI_COMM_WORLD, &opts, &together));
#if CVY_HAVE_JPEG && CVY_HAVE_SPNG
    TEST(pictures);
#endif
    TEST(cifar);
    TEST(npy);
    TEST(idx);
    TEST(packed);
    TEST(records);
    TEST(lines);
    TEST(not_finite);
    TEST(nothing_left);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        scratch_remove();
    cvy_context_destroy(&together);
    cvy_context_destroy(&alone);
    MPI_Finalize();
    return test_end();
}
