/*
 * data_tfrecord_write.c: writes TFRecord files of tf.train.Example, with the feature names that TensorFlow's own
 * scripts use.
 *
 * Piece 3 of 10 is convoy-00003-of-00010.tfrecord. A JPEG or PNG is stored unchanged in image/encoded. Other input is
 * the feature x: u8 as a byte string, reals as floats, together with x/shape and x/dtype. The class is
 * image/class/label, and its name is image/class/text. Real targets are y, the weight is weight. labels.txt, which is
 * written last, names all classes. The reader understands all this without options. With `compression: gzip` a piece is
 * convoy-00003-of-00010.tfrecord.gz, a member of gzip for each buffer, which TensorFlow reads by compression_type GZIP.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_file.h"
#include "base/machine/base_machine.h"
#include "data/data_inflate.h"
#include "data/data_writer.h"

#include <string.h>

#include "data/tfrecord/data_example.h"
#include "data/tfrecord/data_tfrecord.h"

enum { BUFFER_BYTES = 1 << 20, FEATURE_MAX = 12 };

struct tf_writer_opts {
    int gzip;
};

static const cvy_option tf_writer_options[] = {
    {"compression", CVY_TYPE_CHOICE, CVY_FIELD(tf_writer_opts, gzip), "none", "none|gzip", "",
     "of whole files; encoded pictures do not become smaller"},
    {0},
};

struct tf_writer {
    cvy_writer_args args;
    int gzip;
    cvy_new_file file;
    cvy_bytes buffer; /* its first `used` bytes have not been written yet */
    cvy_bytes packed;
    size_t used;
    cvy_new_feature feature[FEATURE_MAX];
    int nfeature;
    int64_t number[3 + 2 * CVY_NDIM_MAX + 1]; /* the values of integer features */
    int nnumber;
};

static cvy_status piece_path(struct tf_writer *w, int64_t piece, const char **out)
{
    char name[80];
    snprintf(name, sizeof name, "convoy-%05lld-of-%05lld.tfrecord%s", (long long)piece, (long long)w->args.npieces,
             w->gzip ? ".gz" : "");
    return cvy_data_path_join(w->args.pool, w->args.path, name, out);
}

static cvy_status tf_open(const cvy_writer_args *args, void **state_out)
{
    struct tf_writer *w = NULL;
    CVY_CHECK(args->npieces <= 99999, CVY_E_CONFIG,
              "%lld pieces, expected at most 99999 TFRecord files: make them larger", (long long)args->npieces);
    for (int64_t i = 0; args->info->has_label && args->class_name && i < args->info->nclasses; i++)
        CVY_CHECK(!strpbrk(args->class_name[i], "\r\n"), CVY_E_UNSUPPORTED,
                  "the name of class %lld has a line break in it, which labels.txt cannot hold", (long long)i);
    CVY_TRY(cvy_pool_alloc(args->pool, sizeof *w, &w));
    w->args = *args;
    w->gzip = args->options && ((const struct tf_writer_opts *)args->options)->gzip;
    CVY_CHECK(!w->gzip || CVY_HAVE_LIBDEFLATE, CVY_E_UNSUPPORTED,
              "compression: gzip needs libdeflate, which is not part of this build");
    w->file.fd = -1;
    *state_out = w;
    return CVY_OK;
}

/* ---- pieces ---- */

static int tf_has_piece(void *state, int64_t piece)
{
    const char *path = NULL;
    return piece_path(state, piece, &path) == CVY_OK && cvy_file_exists(path);
}

static cvy_status tf_begin_piece(void *state, int64_t piece, int64_t count)
{
    struct tf_writer *w = state;
    const char *path = NULL;
    (void)count;
    w->used = 0;
    CVY_TRY(piece_path(w, piece, &path));
    return cvy_new_file_begin(w->args.pool, path, &w->file);
}

static cvy_status flush(struct tf_writer *w)
{
    const size_t bytes = w->used;
    w->used = 0;
    if (bytes == 0)
        return CVY_OK;
    if (!w->gzip)
        return cvy_new_file_write(&w->file, w->buffer.data, bytes);
    CVY_TRY(cvy_deflate_gzip(w->buffer.data, bytes, &w->packed));
    return cvy_new_file_write(&w->file, w->packed.data, w->packed.bytes);
}

static cvy_status tf_end_piece(void *state)
{
    struct tf_writer *w = state;
    CVY_TRY(flush(w));
    return cvy_new_file_end(&w->file);
}

/* ---- a sample's features ---- */

static void add(struct tf_writer *w, const char *name, cvy_feature_kind kind, const void *data, size_t count)
{
    w->feature[w->nfeature++] = (cvy_new_feature){name, kind, data, count};
}

static void add_text(struct tf_writer *w, const char *name, const char *text)
{
    add(w, name, CVY_FEATURE_BYTES, text, strlen(text));
}

static void add_ints(struct tf_writer *w, const char *name, const int64_t *value, int n)
{
    int64_t *kept = w->number + w->nnumber;
    memcpy(kept, value, (size_t)n * sizeof *value);
    w->nnumber += n;
    add(w, name, CVY_FEATURE_INTS, kept, (size_t)n);
}

/* Height, width and channels help other readers. They are left out if the head of the picture cannot be read. */
static void add_picture(struct tf_writer *w, const cvy_raw *raw)
{
    int64_t C = 0, H = 0, W = 0;
    add(w, "image/encoded", CVY_FEATURE_BYTES, raw->x.data, raw->x.bytes);
    add_text(w, "image/format", raw->coding == CVY_CODING_JPEG ? "jpeg" : "png");
    if (cvy_picture_read_header(raw->coding, raw->x.data, raw->x.bytes, &C, &H, &W) != CVY_OK)
        return;
    add_ints(w, "image/height", &H, 1);
    add_ints(w, "image/width", &W, 1);
    add_ints(w, "image/channels", &C, 1);
}

static cvy_status add_plain(struct tf_writer *w, const cvy_raw *raw)
{
    CVY_CHECK(raw->dtype != CVY_DTYPE_BF16, CVY_E_UNSUPPORTED, "a TFRecord cannot hold bf16");
    if (raw->dtype == CVY_DTYPE_F32)
        add(w, "x", CVY_FEATURE_FLOATS, raw->x.data, raw->x.bytes / sizeof(float));
    else
        add(w, "x", CVY_FEATURE_BYTES, raw->x.data, raw->x.bytes);
    if (raw->shape.ndim > 0)
        add_ints(w, "x" CVY_TFRECORD_SHAPE, raw->shape.dim, raw->shape.ndim);
    add_text(w, "x" CVY_TFRECORD_DTYPE, cvy_dtype_text(raw->dtype));
    return CVY_OK;
}

static cvy_status gather(struct tf_writer *w, const cvy_raw *raw)
{
    const cvy_reader_info *info = w->args.info;
    w->nfeature = w->nnumber = 0;
    if (raw->coding == CVY_CODING_PLAIN)
        CVY_TRY(add_plain(w, raw));
    else
        add_picture(w, raw);
    if (info->has_label) {
        const int64_t label = raw->label;
        add_ints(w, "image/class/label", &label, 1);
        if (w->args.class_name && label >= 0 && label < info->nclasses)
            add_text(w, "image/class/text", w->args.class_name[label]);
    }
    if (info->has_y) {
        add(w, "y", CVY_FEATURE_FLOATS, raw->y.data, (size_t)cvy_shape_elems(&info->y_shape));
        if (info->y_shape.ndim > 0)
            add_ints(w, "y" CVY_TFRECORD_SHAPE, info->y_shape.dim, info->y_shape.ndim);
    }
    if (info->has_weight)
        add(w, "weight", CVY_FEATURE_FLOATS, &raw->weight, 1);
    return CVY_OK;
}

static cvy_status tf_write(void *state, int64_t number, const cvy_raw *raw)
{
    struct tf_writer *w = state;
    CVY_TRY(gather(w, raw));
    const size_t record = cvy_example_bytes(w->feature, w->nfeature),
                 bytes = CVY_TFRECORD_HEAD + record + CVY_TFRECORD_FOOT;
    CVY_CHECK(record <= INT32_MAX, CVY_E_UNSUPPORTED,
              "sample %lld makes a record of %zu bytes, expected less than 2 GiB", (long long)number, record);
    if (w->used + bytes > w->buffer.room) {
        CVY_TRY(flush(w));
        CVY_TRY(cvy_bytes_need(&w->buffer, CVY_MAX(bytes, (size_t)BUFFER_BYTES)));
    }
    uint8_t *at = (uint8_t *)w->buffer.data + w->used;
    cvy_tfrecord_put(at, record, 8);
    cvy_tfrecord_put(at + 8, cvy_tfrecord_crc(at, 8), 4);
    cvy_example_put(w->feature, w->nfeature, at + CVY_TFRECORD_HEAD);
    cvy_tfrecord_put(at + CVY_TFRECORD_HEAD + record, cvy_tfrecord_crc(at + CVY_TFRECORD_HEAD, record), 4);
    w->used += bytes;
    return CVY_OK;
}

/* ---- the whole data set ---- */

/* Counts records by their heads: another run may have written the pieces. */
static cvy_status count_records(const struct tf_writer *w, const char *path, cvy_scan *scan, int64_t *nsamples,
                                int64_t *bytes)
{
    cvy_data_file file, plain = {.fd = -1};
    cvy_status status = CVY_OK;
    int64_t record = 0;
    CVY_TRY(cvy_data_file_open(w->args.pool, path, &file));
    *bytes += file.bytes;
    if (w->gzip && file.bytes > 0) { /* a piece without records is empty */
        CVY_TRY_OUT(cvy_inflate_stream(&file, &(cvy_inflate_ask){CVY_INFLATE_GZIP, -1, cvy_mem_left()}, &plain));
        cvy_data_file_close(&file);
        file = plain;
    }
    cvy_scan_begin(scan, &file, (size_t)1 << 14);
    for (int64_t at = 0; at < file.bytes; record++) {
        uint32_t length = 0;
        CVY_TRY_OUT(cvy_tfrecord_read_head(scan, at, record, &length));
        at += CVY_TFRECORD_HEAD + (int64_t)length + CVY_TFRECORD_FOOT;
    }
    *nsamples += record;
out:
    cvy_data_file_close(&file);
    return status;
}

static cvy_status tf_finish(void *state, int64_t *nsamples_out, int64_t *bytes_out)
{
    struct tf_writer *w = state;
    cvy_scan scan = {0};
    int64_t nsamples = 0, bytes = 0;
    cvy_status status = CVY_OK;
    for (int64_t i = 0; i < w->args.npieces; i++) {
        const char *path = NULL;
        CVY_TRY_OUT(piece_path(w, i, &path));
        CVY_TRY_OUT(count_records(w, path, &scan, &nsamples, &bytes));
    }
    CVY_TRY_OUT(cvy_labels_file_write(&w->args, &bytes));
    *nsamples_out = nsamples;
    *bytes_out = bytes;
out:
    cvy_scan_end(&scan);
    return status;
}

static void tf_close(void *state)
{
    struct tf_writer *w = state;
    cvy_new_file_drop(&w->file);
    cvy_mem_free(&w->buffer.data);
    cvy_mem_free(&w->packed.data);
}

CVY_WRITER_DEFINE(tfrecord) = {
    .name = "tfrecord",
    .summary = "TFRecord files of tf.train.Example, which TensorFlow reads",
    .options = tf_writer_options,
    .options_size = sizeof(struct tf_writer_opts),
    .open = tf_open,
    .has_piece = tf_has_piece,
    .begin_piece = tf_begin_piece,
    .write = tf_write,
    .end_piece = tf_end_piece,
    .finish = tf_finish,
    .close = tf_close,
};
