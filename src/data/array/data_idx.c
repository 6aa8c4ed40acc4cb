/*
 * data_idx.c: reads IDX files, the format of MNIST and similar data sets: an array of pictures and an array of labels
 * in two files.
 *
 * A path is the folder (with `part`: train or test) or the file of pictures. Files compressed by gzip are unpacked in
 * memory. The file of labels is found by its name (images-idx3 -> labels-idx1) or given. Pictures [N, H, W] become
 * samples [1, H, W]. Source: LeCun, Cortes and Burges, web page of the MNIST database.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_file.h"
#include "base/base_hash.h"
#include "data/array/data_array.h"

#include <string.h>

#include "data/data_index.h"
#include "data/data_inflate.h"

enum { PART_AUTO, PART_TRAIN, PART_TEST };

struct idx_opts {
    int part;
    const char *labels;
    int64_t classes;
};

static const cvy_option idx_opts[] = {
    {"part", CVY_TYPE_CHOICE, CVY_FIELD(idx_opts, part), "auto", "auto|train|test", "",
     "which files of a folder are read; auto: those of the training"},
    {"labels", CVY_TYPE_STRING, CVY_FIELD(idx_opts, labels), "", "", "",
     "file of the labels; by default found in the folder of the pictures"},
    {"classes", CVY_TYPE_INT, CVY_FIELD(idx_opts, classes), "0", "0..", "",
     "number of classes; 0: the largest label plus one"},
    {0},
};

struct idx {
    struct array x, labels; /* labels.file.fd -1: no labels */
    int32_t *label;
    cvy_shape shape;
};

/* Two spellings of the names are in use, and files may be compressed, as they are downloaded. */
static const char *const image_names[][2] = {
    {"train-images-idx3-ubyte", "t10k-images-idx3-ubyte"},
    {"train-images.idx3-ubyte", "t10k-images.idx3-ubyte"},
    {"train-images-idx3-ubyte.gz", "t10k-images-idx3-ubyte.gz"},
    {"train-images.idx3-ubyte.gz", "t10k-images.idx3-ubyte.gz"},
};

static const char *find_images(const char *folder, int part)
{
    for (int i = 0; i < CVY_COUNT(image_names); i++)
        if (cvy_data_has_file(folder, image_names[i][part == PART_TEST]))
            return image_names[i][part == PART_TEST];
    return NULL;
}

static int idx_probe(const char *path)
{
    uint8_t head[4];
    if (cvy_file_is_folder(path))
        return find_images(path, PART_TRAIN) || find_images(path, PART_TEST) ? 90 : 0;
    if (cvy_is_gzip(path))
        return strstr(cvy_file_base_name(path), "idx") ? 90 : 0;
    if (cvy_data_peek(path, head, sizeof head) != sizeof head || head[0] || head[1])
        return 0;
    return strstr(cvy_file_base_name(path), "idx")                              ? 90
           : head[2] >= 0x08 && head[2] <= 0x0E && head[3] >= 3 && head[3] <= 4 ? 30
                                                                                : 0;
}

static cvy_status read_header(struct array *a)
{
    static const int kinds[] = {ARRAY_U8,  ARRAY_I8,  -1,       ARRAY_I16,
                                ARRAY_I32, ARRAY_F32, ARRAY_F64}; /* for the type codes 0x08 to 0x0E */
    uint8_t head[4], dim[4 * CVY_NDIM_MAX];
    int64_t dims[CVY_NDIM_MAX];
    CVY_CHECK(a->file.bytes >= 4, CVY_E_FORMAT, "%s: %lld bytes, too short for an IDX file", a->file.path,
              (long long)a->file.bytes);
    CVY_TRY(cvy_pread_all(a->file.fd, head, sizeof head, 0, a->file.path));
    CVY_CHECK(head[0] == 0 && head[1] == 0 && head[2] >= 0x08 && head[2] <= 0x0E && kinds[head[2] - 0x08] >= 0 &&
                  head[3] >= 1 && head[3] <= CVY_NDIM_MAX,
              CVY_E_FORMAT, "%s: is not an IDX file (begins with %02x %02x %02x %02x)", a->file.path, head[0], head[1],
              head[2], head[3]);
    a->offset = 4 + 4 * head[3];
    CVY_CHECK(a->file.bytes >= a->offset, CVY_E_FORMAT, "%s: truncated in its header", a->file.path);
    CVY_TRY(cvy_pread_all(a->file.fd, dim, 4 * (size_t)head[3], 4, a->file.path));
    for (int i = 0; i < head[3]; i++)
        dims[i] =
            (int64_t)dim[4 * i] << 24 | (int64_t)dim[4 * i + 1] << 16 | (int64_t)dim[4 * i + 2] << 8 | dim[4 * i + 3];
    a->kind = (array_kind)kinds[head[2] - 0x08];
    a->big_endian = 1;
    a->count = dims[0];
    a->shape = cvy_shape_make(head[3] - 1, dims + 1);
    return array_check(a);
}

/* Opens an array; a compressed one is unpacked in memory. */
static cvy_status open_array(struct array *a, cvy_pool *pool, const char *path)
{
    CVY_TRY(cvy_data_file_open(pool, path, &a->file));
    if (cvy_is_gzip(path))
        CVY_TRY(cvy_inflate_gzip(&a->file));
    return read_header(a);
}

/* "../train-images-idx3-ubyte" -> "../train-labels-idx1-ubyte". One of them may be compressed, and the other not. */
cvy_status cvy_idx_labels_path(cvy_pool *pool, const char *images, const char **out)
{
    char *path = NULL, *other = NULL;
    CVY_TRY(cvy_pool_strdup(pool, images, &path));
    char *word = strstr((char *)cvy_file_base_name(path), "images"),
         *digit = strstr((char *)cvy_file_base_name(path), "idx3");
    *out = NULL;
    if (!word || !digit)
        return CVY_OK;
    memcpy(word, "labels", 6);
    digit[3] = '1';
    const int n = (int)strlen(path), is_packed = cvy_data_has_suffix(path, ".gz");
    CVY_TRY(cvy_pool_printf(pool, &other, "%.*s%s", is_packed ? n - 3 : n, path, is_packed ? "" : ".gz"));
    *out = cvy_file_exists(path) ? path : cvy_file_exists(other) ? other : NULL;
    return CVY_OK;
}

static cvy_status idx_load(struct idx *x, const cvy_reader_args *args, cvy_reader_info *info)
{
    const struct idx_opts *o = args->options;
    const char *images = args->path, *labels = o->labels;
    int32_t largest = 0;
    if (cvy_file_is_folder(args->path)) {
        const char *name = find_images(args->path, o->part);
        CVY_CHECK(name, CVY_E_IO, "%s: holds no %s", args->path, image_names[0][o->part == PART_TEST]);
        CVY_TRY(cvy_data_path_join(info->pool, args->path, name, &images));
        const char *test = o->part == PART_AUTO ? find_images(args->path, PART_TEST) : NULL;
        if (test)
            CVY_TRY(cvy_reader_note(info,
                                    "%s: %s is not read: `part: test` reads it, and `part: train` the other files",
                                    args->path, test));
    }
    CVY_TRY(open_array(&x->x, info->pool, images));
    if (cvy_is_gzip(images))
        CVY_TRY(cvy_reader_note(info, "%s: is compressed by gzip, and each rank unpacks it to %.1f MB of memory",
                                images, 1e-6 * (double)x->x.file.bytes));
    x->shape = x->x.shape;
    if (x->shape.ndim <= 2) /* one channel, for which the file has no axis */
        x->shape = (cvy_shape){x->x.shape.ndim + 1, {1, x->x.shape.dim[0], x->x.shape.dim[1]}};
    if (!labels)
        CVY_TRY(cvy_idx_labels_path(info->pool, images, &labels));
    info->nsamples = x->x.count;
    info->dtype = x->x.kind == ARRAY_U8 ? CVY_DTYPE_U8 : CVY_DTYPE_F32;
    info->shape = x->shape;
    if (!labels)
        return CVY_OK;
    CVY_TRY(open_array(&x->labels, info->pool, labels));
    CVY_CHECK(x->labels.count == x->x.count, CVY_E_FORMAT, "%s: %lld labels for the %lld pictures of %s", labels,
              (long long)x->labels.count, (long long)x->x.count, images);
    CVY_TRY(array_read_labels(&x->labels, info->pool, &x->label, &largest));
    info->has_label = 1;
    return cvy_classes_count(o->classes, largest, labels, &info->nclasses);
}

static void idx_close(void *state)
{
    struct idx *x = state;
    cvy_data_file_close(&x->x.file);
    cvy_data_file_close(&x->labels.file);
}

static cvy_status idx_open(const cvy_reader_args *args, cvy_reader_info *info, void **state_out)
{
    struct idx *x = NULL;
    CVY_CHECK(args->path, CVY_E_CONFIG, "format idx needs a path");
    CVY_TRY(cvy_pool_alloc(info->pool, sizeof *x, &x));
    x->x.file.fd = x->labels.file.fd = -1;
    const cvy_status status = idx_load(x, args, info);
    if (status != CVY_OK)
        idx_close(x);
    else
        *state_out = x;
    return status;
}

static void idx_where(void *state, int64_t number, char *text, size_t room)
{
    snprintf(text, room, "%s, record %lld", ((const struct idx *)state)->x.file.path, (long long)number);
}

static cvy_status idx_read(void *state, int64_t number, cvy_raw *raw)
{
    const struct idx *x = state;
    raw->coding = CVY_CODING_PLAIN;
    raw->shape = x->shape;
    raw->label = x->label ? x->label[number] : 0;
    raw->dtype = x->x.kind == ARRAY_U8 ? CVY_DTYPE_U8 : CVY_DTYPE_F32;
    CVY_TRY(cvy_bytes_need(&raw->x, (size_t)cvy_shape_elems(&x->shape) * cvy_dtype_bytes(raw->dtype)));
    if (x->x.kind == ARRAY_U8)
        return array_read_u8(&x->x, number, raw->x.data);
    return array_read_f32(&x->x, number, &raw->y, raw->x.data);
}

static cvy_status idx_label(void *state, int64_t number, int32_t *label_out)
{
    *label_out = ((const struct idx *)state)->label[number];
    return CVY_OK;
}

static void idx_hash(void *state, cvy_hasher *h)
{
    const struct idx *x = state;
    cvy_hash_add(h, &x->x.file.bytes, sizeof x->x.file.bytes);
    if (x->label)
        cvy_hash_add(h, x->label, (size_t)x->labels.count * sizeof *x->label);
}

CVY_READER_DEFINE(idx) = {
    .name = "idx",
    .summary = "IDX files, as of MNIST",
    .options = idx_opts,
    .options_size = sizeof(struct idx_opts),
    .probe = idx_probe,
    .open = idx_open,
    .read = idx_read,
    .label = idx_label,
    .where = idx_where,
    .hash = idx_hash,
    .close = idx_close,
};
