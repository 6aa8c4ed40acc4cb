/*
 * caffe_source.c: Caffe's layers of data as sources and augmentation of ours.
 *
 * Caffe feeds pixels of 0 to 255, in the order blue, green, red if it has decoded them, as (x - mean) * scale; the mean
 * is that of the pixel before the crop. Samples come in the order in which they are stored. Source:
 * data_transformer.cpp and the layers of data of Caffe.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/base_file.h"
#include "data/lmdb/data_lmdb.h"
#include "exchange/caffe/caffe_job.h"
#include "exchange/caffe/caffe_tops.h"
#include "format/format_protobuf.h"

typedef Cvy__Caffe__TransformationParameter transform;

typedef struct reader { /* what a layer is read with */
    cvy_caffe_work *w;
    const cvy_caffe_file *at;
    const Cvy__Caffe__LayerParameter *layer;
    cvy_caffe_data *out;
    cvy_text source, augment;
    int is_bgr; /* Caffe decodes the pictures, so that blue comes first */
} reader;

#define FAIL_LAYER(r, code, fmt, ...) CVY_FAIL(code, "%s: " fmt, cvy_caffe_layer_at((r)->at, (r)->layer), __VA_ARGS__)
#define CHECK_LAYER(ok, r, code, fmt, ...)                                                                             \
    do {                                                                                                               \
        if (!(ok))                                                                                                     \
            FAIL_LAYER(r, code, fmt, __VA_ARGS__);                                                                     \
    } while (0)

static void note(const reader *r, const char *text)
{
    cvy_text_add(&r->w->notes, "%s: %s\n", cvy_caffe_layer_at(r->at, r->layer), text);
}

/* Finds a file that the layer names. */
static cvy_status find_file(reader *r, const void *message, const char *field, const char *name, const char **out)
{
    const cvy_status status = cvy_caffe_find_file(r->w, r->at, message, field, name, out);
    r->out->is_absent |= status == CVY_E_IO;
    return status;
}

static void add_path(reader *r, const char *path, const char *format)
{
    cvy_text_add(&r->source, "{path: ");
    cvy_text_add_quoted(&r->source, path);
    cvy_text_add(&r->source, ", format: %s", format);
}

/* ---- transform_param ---- */

static void add_step(reader *r)
{
    cvy_text_add(&r->augment, r->augment.bytes ? ", " : "[");
}

static cvy_status add_mean(reader *r, const transform *t)
{
    const char *file = NULL;
    CHECK_LAYER(!t->mean_file || t->n_mean_value == 0, r, CVY_E_CONFIG, "%s",
                "transform_param has mean_file and mean_value; Caffe takes one of them");
    if (t->mean_file) {
        CVY_TRY(find_file(r, t, "mean_file", t->mean_file, &file));
        add_step(r);
        cvy_text_add(&r->augment, "{mean_file: ");
        cvy_text_add_quoted(&r->augment, file);
        cvy_text_add(&r->augment, "}");
    }
    if (t->n_mean_value > 0) {
        add_step(r);
        cvy_text_add(&r->augment, "{mean: [");
        for (size_t i = 0; i < t->n_mean_value; i++) {
            cvy_text_add(&r->augment, i ? ", " : "");
            cvy_text_add_real(&r->augment, CVY_CAFFE_REAL(t->mean_value[i]));
        }
        cvy_text_add(&r->augment, "]}");
    }
    return CVY_OK;
}

static void add_crop_and_mirror(reader *r, const transform *t)
{
    if (t->crop_size > 0) {
        add_step(r);
        cvy_text_add(&r->augment, "{random_crop: %u}", t->crop_size);
    }
    if (t->mirror) {
        add_step(r);
        cvy_text_add(&r->augment, "mirror");
    }
}

/* Caffe subtracts the mean before it crops, which matters only for a mean of each pixel. If there is none, the crop is
 * first, so that only its part of a picture is decoded. A list always has `scale`, so that pixels are 0 to 255 before
 * it. */
static cvy_status add_transform(reader *r, const transform *t)
{
    static const transform none = CVY__CAFFE__TRANSFORMATION_PARAMETER__INIT;
    if (!t)
        t = &none;
    CHECK_LAYER(!t->resize_param && !t->noise_param, r, CVY_E_UNSUPPORTED, "%s",
                "resize_param and noise_param are of a fork of Caffe; write data.augment of the job by hand");
    if (!t->mean_file)
        add_crop_and_mirror(r, t);
    if (r->is_bgr) {
        add_step(r);
        cvy_text_add(&r->augment, "reverse_channels");
    }
    CVY_TRY(add_mean(r, t));
    if (t->mean_file)
        add_crop_and_mirror(r, t);
    add_step(r);
    cvy_text_add(&r->augment, "{scale: ");
    cvy_text_add_real(&r->augment, CVY_CAFFE_REAL(t->scale));
    cvy_text_add(&r->augment, "}]");
    return CVY_OK;
}

static const char *channels_of(const transform *t, int color)
{
    return t && t->force_gray ? ", channels: grey" : color || (t && t->force_color) ? ", channels: rgb" : "";
}

static cvy_status check_batch(const reader *r, int64_t batch)
{
    CHECK_LAYER(batch > 0, r, CVY_E_CONFIG, "%s", "batch_size is missing or 0");
    r->out->batch = batch;
    return CVY_OK;
}

/* ---- Data ---- */

/* Whether the first record of a database is an encoded picture. */
static cvy_status is_encoded(cvy_pool *pool, const char *path, int *out)
{
    enum { RECORD_BYTES_MAX = 1 << 30 };
    const char *file = path;
    cvy_lmdb *db = NULL;
    cvy_lmdb_page *page = NULL;
    cvy_lmdb_value value;
    uint8_t *bytes = NULL;
    cvy_status status = CVY_OK;
    *out = 0;
    if (cvy_file_is_folder(path))
        CVY_TRY(cvy_data_path_join(pool, path, CVY_LMDB_FILE, &file));
    CVY_TRY(cvy_lmdb_open(pool, file, &db));
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *page, &page));
    if (cvy_lmdb_count(db) == 0)
        goto out; /* the reader of the job says so */
    CVY_TRY_OUT(cvy_lmdb_find(db, 0, page, &value));
    if (value.bytes > RECORD_BYTES_MAX)
        goto out;
    CVY_TRY_OUT(cvy_mem_alloc((size_t)value.bytes, &bytes));
    CVY_TRY_OUT(cvy_lmdb_fetch(db, &value, 0, value.bytes, bytes));
    cvy_wire wire = {bytes, bytes + value.bytes};
    for (cvy_wire_field f; cvy_wire_next(&wire, &f) > 0;)
        if (f.number == DATUM_ENCODED && f.kind == CVY_WIRE_VARINT)
            *out = f.value != 0;
out:
    cvy_mem_free(&bytes);
    cvy_mem_free(&page);
    cvy_lmdb_close(db);
    return status;
}

static cvy_status read_data(reader *r)
{
    const Cvy__Caffe__DataParameter *p = r->layer->data_param;
    const transform *t = r->layer->transform_param;
    const char *path = NULL;
    int encoded = 0;
    CHECK_LAYER(p && p->source, r, CVY_E_CONFIG, "%s", "data_param has no source");
    CVY_TRY(check_batch(r, p->batch_size));
    CVY_TRY(find_file(r, p, "source", p->source, &path));
    r->out->is_absent = cvy_file_is_folder(path) && cvy_data_has_file(path, "CURRENT");
    CHECK_LAYER(!r->out->is_absent, r, CVY_E_UNSUPPORTED,
                "%s is a LevelDB database, which convoy does not read: write the data as an LMDB (Caffe's "
                "convert_imageset --backend=lmdb, or the script that made them), and name it here",
                path);
    if (p->backend == CVY__CAFFE__DATA_PARAMETER__DB__LEVELDB)
        note(r, "backend is LEVELDB, but the source is an LMDB database; it is read");
    if (p->rand_skip > 0)
        note(r, "rand_skip is left out; all samples are used");
    CVY_TRY(is_encoded(r->w->pool, path, &encoded));
    add_path(r, path, "lmdb");
    /* Plain bytes go into the network as they are stored. */
    cvy_text_add(&r->source, ", bgr: false%s}", encoded ? channels_of(t, p->force_encoded_color) : "");
    r->is_bgr = encoded && !(t && t->force_gray);
    return add_transform(r, t);
}

/* ---- ImageData ---- */

static cvy_status read_image_data(reader *r)
{
    const Cvy__Caffe__ImageDataParameter *p = r->layer->image_data_param;
    const char *path = NULL;
    CHECK_LAYER(p && p->source, r, CVY_E_CONFIG, "%s", "image_data_param has no source");
    CVY_TRY(check_batch(r, p->batch_size));
    CVY_TRY(find_file(r, p, "source", p->source, &path));
    CHECK_LAYER((p->new_height > 0) == (p->new_width > 0), r, CVY_E_CONFIG,
                "new_height is %u and new_width is %u; give both, or neither", p->new_height, p->new_width);
    if (p->rand_skip > 0)
        note(r, "rand_skip is left out; all samples are used");
    add_path(r, path, "list");
    cvy_text_add(&r->source, ", root: ");
    cvy_text_add_quoted(&r->source, *p->root_folder ? p->root_folder : ".");
    cvy_text_add(&r->source, ", outside: true, separator: space, labels: numbers, channels: %s}",
                 p->is_color ? "rgb" : "grey");
    if (p->new_height > 0) {
        add_step(r);
        cvy_text_add(&r->augment, "{resize: {size: [%u, %u], fit: stretch, filter: bilinear, decode: full}}",
                     p->new_height, p->new_width);
    }
    r->is_bgr = p->is_color;
    r->out->shuffle = p->shuffle;
    return add_transform(r, r->layer->transform_param);
}

/* ---- HDF5Data ---- */

static cvy_status add_hdf5(reader *r, const char *path, const char *target)
{
    add_path(r, path, "hdf5");
    cvy_text_add(&r->source, ", x: ");
    cvy_text_add_quoted(&r->source, r->layer->top[0]);
    if (r->layer->n_top > 1) {
        cvy_text_add(&r->source, ", %s: ", target);
        cvy_text_add_quoted(&r->source, r->layer->top[1]);
    }
    cvy_text_add(&r->source, "}");
    return r->source.status;
}

/* The list of files has a path a line. */
static cvy_status add_hdf5_files(reader *r, char *list, const char *target)
{
    int count = 0;
    char *rest = NULL;
    for (char *line = strtok_r(list, "\r\n", &rest); line; line = strtok_r(NULL, "\r\n", &rest)) {
        const char *path = NULL;
        line += strspn(line, " \t");
        if (!*line)
            continue;
        CVY_TRY(find_file(r, r->layer->hdf5_data_param, "source", line, &path));
        cvy_text_add(&r->source, count++ ? ", " : "[");
        CVY_TRY(add_hdf5(r, path, target));
    }
    cvy_text_add(&r->source, "]");
    CHECK_LAYER(count > 0, r, CVY_E_CONFIG, "%s names no file", r->layer->hdf5_data_param->source);
    return CVY_OK;
}

static cvy_status read_hdf5_data(reader *r, const Cvy__Caffe__NetParameter *net)
{
    enum { LIST_BYTES_MAX = 1 << 24 };
    const Cvy__Caffe__HDF5DataParameter *p = r->layer->hdf5_data_param;
    const char *path = NULL;
    char *list = NULL, *copy = NULL;
    size_t bytes = 0;
    CHECK_LAYER(p && p->source, r, CVY_E_CONFIG, "%s", "hdf5_data_param has no source");
    CHECK_LAYER(r->layer->n_top <= 2, r, CVY_E_UNSUPPORTED,
                "%d data sets; convoy takes an input and a target from HDF5 files", (int)r->layer->n_top);
    CVY_TRY(check_batch(r, p->batch_size));
    CVY_TRY(find_file(r, p, "source", p->source, &path));
    r->out->shuffle = p->shuffle;
    r->out->reals = r->layer->n_top > 1 && !cvy_caffe_is_label(net, r->layer->top[1]);
    CVY_TRY(cvy_file_read(path, LIST_BYTES_MAX, &list, &bytes));
    const cvy_status status = cvy_pool_strdup(r->w->pool, list, &copy);
    cvy_mem_free(&list);
    CVY_TRY(status);
    cvy_text_add(&r->augment, "[{scale: 1}]"); /* bytes are numbers of 0 to 255, too */
    return add_hdf5_files(r, copy, r->out->reals ? "y" : "label");
}

/* ---- layers without data ---- */

/* Input, DummyData and MemoryData have shapes. */
static cvy_status read_shape(reader *r)
{
    const cvy_caffe_dims d = cvy_caffe_dims_of(r->layer, 0);
    r->out->is_absent = d.n == 0;
    CHECK_LAYER(d.n >= 1 && d.n <= CVY_NDIM_MAX, r, CVY_E_CONFIG, "%s",
                "the shape of its blob has no dimensions, or too many");
    for (size_t i = 0; i < d.n; i++)
        CHECK_LAYER(d.at[i] > 0 && d.at[i] <= INT32_MAX, r, CVY_E_CONFIG,
                    "dimension %lld of its shape is not positive, or is too large", (long long)d.at[i]);
    r->out->is_input = 1;
    r->out->batch = d.at[0];
    r->out->shape = cvy_shape_make((int)d.n - 1, d.at + 1);
    return CVY_OK;
}

/* ---- the layer ---- */

static int is_data(const Cvy__Caffe__LayerParameter *layer)
{
    static const char *const types[] = {"Data",      "ImageData",      "HDF5Data",   "Input",
                                        "DummyData", "MemoryData",     "WindowData", "AnnotatedData",
                                        "VideoData", "DenseImageData", "BinaryData"};
    for (int i = 0; i < CVY_COUNT(types); i++)
        if (layer->type && strcmp(layer->type, types[i]) == 0)
            return 1;
    return layer->n_bottom == 0 && layer->n_top > 0 && !(layer->type && strcmp(layer->type, "Parameter") == 0);
}

int cvy_caffe_has_data(const Cvy__Caffe__NetParameter *net)
{
    for (size_t i = 0; i < net->n_layer; i++)
        if (is_data(net->layer[i]))
            return 1;
    return 0;
}

static cvy_status read_layer(reader *r, const Cvy__Caffe__NetParameter *net)
{
    const char *type = cvy_caffe_word(r->layer->type);
    CHECK_LAYER(r->layer->n_top > 0, r, CVY_E_CONFIG, "%s", "it has no top, so that nothing reads its data");
    if (strcmp(type, "Data") == 0)
        return read_data(r);
    if (strcmp(type, "ImageData") == 0)
        return read_image_data(r);
    if (strcmp(type, "HDF5Data") == 0)
        return read_hdf5_data(r, net);
    if (strcmp(type, "Input") == 0 || strcmp(type, "DummyData") == 0 || strcmp(type, "MemoryData") == 0)
        return read_shape(r);
    r->out->is_absent = 1;
    FAIL_LAYER(r, CVY_E_UNSUPPORTED, "%s",
               "convoy reads data of the layers Data (LMDB), ImageData and HDF5Data; write the data as an LMDB, or "
               "import the network and give data.train in the job");
}

/* Layers of data after the first one may only be further inputs of the kind of the first. */
static cvy_status check_only(const reader *r, const Cvy__Caffe__NetParameter *net)
{
    for (size_t i = 0; i < net->n_layer; i++) {
        const Cvy__Caffe__LayerParameter *other = net->layer[i];
        CHECK_LAYER(other == r->layer || !is_data(other) || r->out->is_input, r, CVY_E_UNSUPPORTED,
                    "layer %s (%s) on line %u has data, too; a job has one source, with input and target of each "
                    "sample: put both into one LMDB or HDF5 file",
                    cvy_caffe_word(other->name), cvy_caffe_word(other->type), other->convoy_line);
    }
    return CVY_OK;
}

static cvy_status keep(reader *r)
{
    char *source = NULL, *augment = NULL;
    CVY_TRY(r->source.status);
    CVY_TRY(r->augment.status);
    if (r->source.bytes)
        CVY_TRY(cvy_pool_strdup(r->w->pool, r->source.data, &source));
    if (r->augment.bytes)
        CVY_TRY(cvy_pool_strdup(r->w->pool, r->augment.data, &augment));
    r->out->source = source;
    r->out->augment = augment;
    for (size_t i = 0; i < 2 && i < r->layer->n_top; i++)
        r->out->top[i] = r->layer->top[i];
    return CVY_OK;
}

cvy_status cvy_caffe_data_of(cvy_caffe_work *w, const Cvy__Caffe__NetParameter *net, const cvy_caffe_file *at,
                             cvy_caffe_data *out)
{
    reader r = {.w = w, .at = at, .out = out};
    *out = (cvy_caffe_data){0};
    for (size_t i = 0; i < net->n_layer && !r.layer; i++)
        if (is_data(net->layer[i]))
            r.layer = net->layer[i];
    if (!r.layer)
        return CVY_OK;
    out->layer = r.layer;
    cvy_status status = read_layer(&r, net);
    if (status == CVY_OK)
        status = check_only(&r, net);
    if (status == CVY_OK)
        status = keep(&r);
    cvy_text_free(&r.source);
    cvy_text_free(&r.augment);
    return status;
}

cvy_status cvy_caffe_data_limit(cvy_caffe_work *w, const char *source, int64_t samples, const char **out)
{
    char *text = NULL;
    if (*source == '{')
        CVY_TRY(
            cvy_pool_printf(w->pool, &text, "%.*s, limit: %lld}", (int)strlen(source) - 1, source, (long long)samples));
    else
        CVY_TRY(cvy_pool_printf(w->pool, &text, "{sources: %s, limit: %lld}", source, (long long)samples));
    *out = text;
    return CVY_OK;
}
