/*
 * selftest_data.c: data formats: a few samples are written in each format that this build can write, and read back.
 *
 * NumPy arrays and a table are written here, byte by byte. The arrays are then converted to every other format by its
 * writer, and its reader must give the same samples and labels. JPEG loses some of a picture, which is bounded. Rank 0
 * does this; the other ranks wait.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_file.h"
#include "data/data_convert.h"
#include "data/data_public.h"
#include "data/data_writer.h"
#include "data/picture/data_encode.h"
#include "health/selftest/selftest.h"

enum { SAMPLES = 12, CLASSES = 3, C = 3, H = 16, W = 16, ELEMS = C * H * W };
enum { JPEG_QUALITY = 95, JPEG_NEAR = 12 };
#define ROUNDING 1e-3 /* of a byte that is divided by 255 */

struct work {
    cvy_pool *pool;
    cvy_comm *alone;
    const char *folder;
    cvy_text done, missing; /* names of formats */
};

/* A smooth picture, different in each sample and channel. */
static uint8_t pixel(int64_t n, int64_t c, int64_t h, int64_t w)
{
    return (uint8_t)(20 + 8 * n + 15 * c + 2 * h + 3 * w);
}

/* Samples are sorted by class, because a folder of pictures is. */
static int32_t label_of(int64_t n)
{
    return (int32_t)(n * CLASSES / SAMPLES);
}

/* ---- writing NumPy arrays and a table ---- */

static cvy_status write_npy(struct work *w, const char *name, const char *type, const char *shape, const void *data,
                            size_t bytes)
{
    enum { HEAD = 128 };
    char *whole = NULL, path[600];
    snprintf(path, sizeof path, "%s/%s", w->folder, name);
    CVY_TRY(cvy_mem_alloc(HEAD + bytes, &whole));
    memset(whole, ' ', HEAD);
    memcpy(whole, "\x93NUMPY\x01\x00\x76\x00", 10); /* version 1.0; 118 bytes of text follow */
    const int n =
        snprintf(whole + 10, HEAD - 10, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, shape);
    whole[10 + n] = ' '; /* in place of the NUL */
    whole[HEAD - 1] = '\n';
    memcpy(whole + HEAD, data, bytes);
    const cvy_status status = cvy_file_replace(path, whole, HEAD + bytes);
    cvy_mem_free(&whole);
    return status;
}

static cvy_status write_arrays(struct work *w)
{
    uint8_t x[SAMPLES * ELEMS];
    int32_t label[SAMPLES];
    char shape[64];
    int64_t at = 0;
    for (int64_t n = 0; n < SAMPLES; n++) {
        label[n] = label_of(n);
        for (int64_t i = 0; i < ELEMS; i++)
            x[at++] = pixel(n, i / (H * W), i / W % H, i % W);
    }
    snprintf(shape, sizeof shape, "%d, %d, %d, %d", SAMPLES, C, H, W);
    CVY_TRY(write_npy(w, "x.npy", "|u1", shape, x, sizeof x));
    snprintf(shape, sizeof shape, "%d,", SAMPLES);
    return write_npy(w, "label.npy", "<i4", shape, label, sizeof label);
}

/* ---- reading ---- */

static cvy_status open_set(struct work *w, const char *name, const char *format, cvy_dataset **out)
{
    cvy_text text = {0}, path = {0};
    cvy_tree *source = NULL;
    cvy_text_add(&path, "%s%s%s", w->folder, *name ? "/" : "", name);
    cvy_text_add(&text, "{format: %s, path: ", format);
    cvy_text_add_quoted(&text, path.data ? path.data : "");
    cvy_text_add(&text, "}");
    cvy_status status = path.status ? path.status : text.status;
    if (status == CVY_OK)
        status = cvy_data_parse_source(w->pool, text.data, &source);
    if (status == CVY_OK)
        status = cvy_dataset_open(source, NULL, 0, 1, out);
    cvy_text_free(&text);
    cvy_text_free(&path);
    return status;
}

/* Compares the sample `at` of a set with sample n of those that were written: pixels in the first field, where bytes
 * have become 0 .. 1, and a label in the second. */
static cvy_status compare_sample(cvy_dataset *d, const char *format, int64_t at, int64_t n, double near)
{
    float x[ELEMS];
    int32_t label = -1;
    void *field[CVY_FIELD_MAX] = {x, &label};
    CVY_TRY(cvy_dataset_read(d, at, 0, field));
    for (int64_t i = 0; i < ELEMS; i++) {
        const double expected = pixel(n, i / (H * W), i / W % H, i % W);
        CVY_CHECK(fabs(255 * x[i] - expected) <= near, CVY_E_FORMAT,
                  "%s: byte %lld of sample %lld is %.9g, expected %.9g: report it with the output of convoy info",
                  format, (long long)i, (long long)n, 255 * x[i], expected);
    }
    CVY_CHECK(label == label_of(n), CVY_E_FORMAT, "%s: the label of sample %lld is %d, expected %d: report it", format,
              (long long)n, (int)label, (int)label_of(n));
    return CVY_OK;
}

static cvy_status check_fields(const cvy_dataset *d, const char *format, int64_t samples)
{
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    CVY_CHECK(info->nsamples == samples && info->nfield == 2 && info->field[0].dtype == CVY_DTYPE_F32 &&
                  cvy_shape_elems(&info->field[0].shape) == ELEMS && info->field[1].dtype == CVY_DTYPE_I32,
              CVY_E_FORMAT, "%s: %lld samples of %s, expected %lld of %dx%dx%d with labels: report it", format,
              (long long)info->nsamples, cvy_shape_text(&info->field[0].shape), (long long)samples, C, H, W);
    return CVY_OK;
}

static cvy_status compare_set(struct work *w, const char *name, const char *format)
{
    cvy_dataset *d = NULL;
    CVY_TRY(open_set(w, name, format, &d));
    cvy_status status = check_fields(d, format, SAMPLES);
    for (int64_t n = 0; n < SAMPLES && status == CVY_OK; n++)
        status = compare_sample(d, format, n, n, ROUNDING);
    cvy_dataset_destroy(&d);
    return status;
}

/* ---- one format ---- */

static void add_name(cvy_text *list, const char *name)
{
    cvy_text_add(list, "%s%s", list->bytes ? ", " : "", name);
}

static cvy_status try_writer(struct work *w, const char *format)
{
    cvy_dataset *d = NULL;
    cvy_convert_report report;
    char path[600];
    const cvy_convert_opts opts = {.format = format, .check = 1};
    snprintf(path, sizeof path, "%s/%s", w->folder, format);
    CVY_TRY(open_set(w, "", "npy", &d));
    cvy_status status = cvy_convert(d, w->alone, path, &opts, &report);
    cvy_dataset_destroy(&d);
    if (status == CVY_OK)
        status = compare_set(w, format, format);
    if (status == CVY_E_UNSUPPORTED) {
        add_name(&w->missing, format);
        return CVY_OK;
    }
    CVY_TRY(status);
    add_name(&w->done, format);
    return CVY_OK;
}

static cvy_status try_csv(struct work *w)
{
    cvy_text text = {0};
    cvy_dataset *d = NULL;
    char path[600];
    snprintf(path, sizeof path, "%s/table.csv", w->folder);
    cvy_text_add(&text, "a,b,label\n");
    for (int n = 0; n < SAMPLES; n++)
        cvy_text_add(&text, "%d.5,-%de-3,%d\n", n, n, (int)label_of(n));
    cvy_status status = text.status == CVY_OK ? cvy_file_replace(path, text.data, text.bytes) : text.status;
    cvy_text_free(&text);
    if (status == CVY_OK)
        status = open_set(w, "table.csv", "csv", &d);
    if (status == CVY_OK && cvy_dataset_describe(d)->nsamples != SAMPLES)
        status = cvy_error_set(CVY_E_FORMAT, "csv: %lld samples, expected %d: report it",
                               (long long)cvy_dataset_describe(d)->nsamples, SAMPLES);
    for (int n = 0; n < SAMPLES && status == CVY_OK; n++) {
        float x[2] = {0};
        int32_t label = -1;
        void *field[CVY_FIELD_MAX] = {x, &label};
        status = cvy_dataset_read(d, n, 0, field);
        if (status == CVY_OK && (x[0] != (float)n + 0.5f || x[1] != (float)(-n * 1e-3) || label != label_of(n)))
            status = cvy_error_set(CVY_E_FORMAT, "csv: line %d is read as %.9g, %.9g, %d: report it", n + 2, x[0], x[1],
                                   (int)label);
    }
    cvy_dataset_destroy(&d);
    if (status == CVY_OK)
        add_name(&w->done, "csv");
    return status;
}

/* A folder of classes with a JPEG file in each. */
static cvy_status write_jpegs(struct work *w, cvy_bytes *jpeg)
{
    uint8_t x[ELEMS];
    for (int k = 0; k < CLASSES; k++) {
        const cvy_picture picture = {.dtype = CVY_DTYPE_U8, .C = C, .H = H, .W = W, .data = x};
        char path[600];
        for (int64_t i = 0; i < ELEMS; i++)
            x[i] = pixel(k * SAMPLES / CLASSES, i / (H * W), i / W % H, i % W);
        CVY_TRY(cvy_picture_encode_jpeg(&picture, JPEG_QUALITY, jpeg));
        snprintf(path, sizeof path, "%s/jpeg/class%d", w->folder, k);
        CVY_TRY(cvy_file_make_folder(path));
        snprintf(path, sizeof path, "%s/jpeg/class%d/0.jpg", w->folder, k);
        CVY_TRY(cvy_file_replace(path, jpeg->data, jpeg->bytes));
    }
    return CVY_OK;
}

static cvy_status read_jpegs(struct work *w)
{
    cvy_dataset *d = NULL;
    CVY_TRY(open_set(w, "jpeg", "folder", &d));
    cvy_status status = check_fields(d, "jpeg", CLASSES);
    for (int k = 0; k < CLASSES && status == CVY_OK; k++)
        status = compare_sample(d, "jpeg", k, k * SAMPLES / CLASSES, JPEG_NEAR);
    cvy_dataset_destroy(&d);
    return status;
}

static cvy_status try_jpeg(struct work *w)
{
    cvy_bytes jpeg = {0};
    cvy_status status = write_jpegs(w, &jpeg);
    cvy_mem_free(&jpeg.data);
    if (status == CVY_OK)
        status = read_jpegs(w);
    if (status == CVY_E_UNSUPPORTED) {
        add_name(&w->missing, "jpeg");
        return CVY_OK;
    }
    if (status == CVY_OK)
        add_name(&w->done, "jpeg");
    return status;
}

static cvy_status try_formats(struct work *w)
{
    int count = 0;
    const cvy_writer_def *const *writer = cvy_writer_table(&count);
    CVY_TRY(write_arrays(w));
    CVY_TRY(compare_set(w, "", "npy"));
    add_name(&w->done, "npy");
    CVY_TRY(try_csv(w));
    for (int i = 0; i < count; i++)
        CVY_TRY(try_writer(w, writer[i]->name));
    CVY_TRY(try_jpeg(w));
    return w->done.status ? w->done.status : w->missing.status;
}

cvy_status cvy_selftest_data(cvy_selftest *t)
{
    char folder[560];
    struct work w = {.folder = folder};
    cvy_status status = CVY_OK;
    snprintf(folder, sizeof folder, "%s/data", t->folder);
    if (t->context->comm->rank == 0) {
        status = cvy_pool_create(&w.pool);
        if (status == CVY_OK)
            status = cvy_comm_create_self(&w.alone);
        if (status == CVY_OK)
            status = cvy_file_make_folder(folder);
        if (status == CVY_OK)
            status = try_formats(&w);
    }
    if (status == CVY_OK)
        cvy_selftest_pass(t, "written and read back: %s%s%s", w.done.data ? w.done.data : "",
                          w.missing.bytes ? "; not built in: " : "", w.missing.bytes ? w.missing.data : "");
    if (w.alone)
        w.alone->ops->destroy(w.alone);
    cvy_text_free(&w.done);
    cvy_text_free(&w.missing);
    cvy_pool_destroy(&w.pool);
    return cvy_comm_agree(t->context->comm, status);
}
