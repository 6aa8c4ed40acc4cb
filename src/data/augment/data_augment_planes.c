/*
 * data_augment_planes.c: steps on whole planes: mean_file subtracts a mean picture, reverse_channels puts the channels
 * into the opposite order.
 *
 * They run in the loader's threads. Both are for networks that were trained by Caffe, which subtracts the mean of the
 * training set at each pixel and has blue before green and red. A mean picture is read once, when the list is read: a
 * file .binaryproto of Caffe's compute_image_mean, a message BlobProto. Source: caffe.proto and data_transformer.cpp of
 * Caffe.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "base/base_file.h"
#include "base/base_mem.h"
#include "data/augment/data_augment.h"
#include "format/format_protobuf.h"

/* Field numbers of BlobProto and of BlobShape. */
enum { BLOB_NUM = 1, BLOB_CHANNELS, BLOB_HEIGHT, BLOB_WIDTH, BLOB_DATA, BLOB_SHAPE = 7, BLOB_DOUBLES, SHAPE_DIM = 1 };
enum { FILE_BYTES_MAX = 1 << 30, SIDE_MAX = 1 << 20 };

static const cvy_option mean_file_opts[] = {
    {"file", CVY_TYPE_STRING, CVY_FIELD(cvy_operation_opts, file), NULL, "", "",
     "a mean picture, .binaryproto, of the size that pictures have at this step, in units of 0 to 255"},
    {0},
};
static const cvy_option reverse_channels_opts[] = {{0}};

/* ---- the file ---- */

struct blob {
    const char *path;
    int64_t old[4], dim[CVY_NDIM_MAX]; /* the four old dimensions, or those of a BlobShape */
    int ndim;
    float *data;
    int64_t count, room;
};

static cvy_status add_number(struct blob *b, uint64_t bits, int bytes)
{
    CVY_CHECK(b->count < b->room, CVY_E_FORMAT, "%s is damaged: it has more numbers than bytes", b->path);
    if (bytes == 4) {
        const uint32_t word = (uint32_t)bits;
        memcpy(&b->data[b->count], &word, sizeof word);
    } else {
        double value;
        memcpy(&value, &bits, sizeof value);
        b->data[b->count] = (float)value;
    }
    CVY_CHECK(isfinite(b->data[b->count]), CVY_E_FORMAT, "%s: number %lld of the mean is not finite", b->path,
              (long long)b->count);
    b->count++;
    return CVY_OK;
}

static cvy_status read_numbers(struct blob *b, const cvy_wire_field *f)
{
    const int bytes = f->number == BLOB_DATA ? 4 : 8;
    if (f->kind == (bytes == 4 ? CVY_WIRE_32 : CVY_WIRE_64))
        return add_number(b, f->value, bytes);
    CVY_CHECK(f->kind == CVY_WIRE_BYTES && (f->bytes.end - f->bytes.at) % bytes == 0, CVY_E_FORMAT,
              "%s is damaged: the numbers of a mean cannot be read", b->path);
    for (const uint8_t *at = f->bytes.at; at < f->bytes.end; at += bytes)
        CVY_TRY(add_number(b, cvy_wire_little(at, bytes), bytes));
    return CVY_OK;
}

static cvy_status add_dim(struct blob *b, uint64_t dim)
{
    CVY_CHECK(b->ndim < CVY_NDIM_MAX && dim <= SIDE_MAX, CVY_E_FORMAT, "%s is damaged: its shape cannot be read",
              b->path);
    b->dim[b->ndim++] = (int64_t)dim;
    return CVY_OK;
}

static cvy_status read_shape(struct blob *b, cvy_wire wire)
{
    cvy_wire_field f;
    int found;
    uint64_t dim = 0;
    while ((found = cvy_wire_next(&wire, &f)) > 0) {
        if (f.number != SHAPE_DIM)
            continue;
        if (f.kind == CVY_WIRE_VARINT)
            CVY_TRY(add_dim(b, f.value));
        while (f.kind == CVY_WIRE_BYTES && cvy_wire_varint(&f.bytes, &dim))
            CVY_TRY(add_dim(b, dim));
    }
    CVY_CHECK(found == 0, CVY_E_FORMAT, "%s is damaged: its shape cannot be read", b->path);
    return CVY_OK;
}

static cvy_status read_fields(struct blob *b, cvy_wire wire)
{
    cvy_wire_field f;
    int found;
    while ((found = cvy_wire_next(&wire, &f)) > 0)
        if (f.number == BLOB_DATA || f.number == BLOB_DOUBLES)
            CVY_TRY(read_numbers(b, &f));
        else if (f.number == BLOB_SHAPE && f.kind == CVY_WIRE_BYTES)
            CVY_TRY(read_shape(b, f.bytes));
        else if (f.number >= BLOB_NUM && f.number <= BLOB_WIDTH && f.kind == CVY_WIRE_VARINT)
            b->old[f.number - BLOB_NUM] = (int64_t)CVY_MIN(f.value, (uint64_t)SIDE_MAX);
    CVY_CHECK(found == 0 && b->count > 0, CVY_E_FORMAT,
              "%s is no mean file of Caffe (a binary BlobProto), or it is truncated", b->path);
    return CVY_OK;
}

/* Compares the shape of the mean with that of the pictures; leading dimensions of 1 do not count. If pictures vary in
 * size, all must have that of the mean. */
static cvy_status check_shape(const struct blob *b, cvy_shape *x, int *known)
{
    const int64_t *dim = b->ndim > 0 ? b->dim : b->old;
    int n = b->ndim > 0 ? b->ndim : 4;
    for (; n > x->ndim && *dim == 1; n--)
        dim++;
    CVY_CHECK(n <= CVY_NDIM_MAX, CVY_E_FORMAT, "%s is damaged: its shape cannot be read", b->path);
    const cvy_shape mean = cvy_shape_make(n, dim);
    const int fits = *known ? cvy_shape_equal(&mean, x) : mean.ndim == x->ndim && mean.dim[0] == x->dim[0];
    CVY_CHECK(
        fits && b->count == cvy_shape_elems(&mean), CVY_E_SHAPE,
        "the mean in %s is %s with %lld numbers, but pictures are %s at this step: put it before a crop, as Caffe "
        "does, and after a resize",
        b->path, cvy_shape_text(&mean), (long long)b->count, cvy_shape_text(x));
    *x = mean;
    *known = 1;
    return CVY_OK;
}

static cvy_status mean_file_open(cvy_augment *a, cvy_operation *s, int *known)
{
    struct blob b = {.path = s->o.file};
    char *bytes = NULL;
    size_t n = 0;
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_file_read(b.path, FILE_BYTES_MAX, &bytes, &n));
    b.room = (int64_t)n / 4;
    CVY_TRY_OUT(cvy_pool_alloc(a->pool, sizeof(float) * (size_t)CVY_MAX(b.room, 1), &b.data));
    CVY_TRY_OUT(read_fields(&b, (cvy_wire){(const uint8_t *)bytes, (const uint8_t *)bytes + n}));
    CVY_TRY_OUT(check_shape(&b, &a->shape, known));
    s->plane = b.data;
    s->plane_shape = a->shape;
out:
    cvy_mem_free(&bytes);
    return status;
}

/* ---- the steps ---- */

static cvy_status mean_file_apply(const cvy_operation *s, cvy_augment_work *w)
{
    const int64_t *dim = s->plane_shape.dim;
    CVY_CHECK(w->pic.C == dim[0] && w->pic.H == dim[1] && w->pic.W == dim[2], CVY_E_SHAPE,
              "a picture of %lldx%lld with %lld channels, but the mean in %s is %s: put a resize before mean_file",
              (long long)w->pic.H, (long long)w->pic.W, (long long)w->pic.C, s->o.file,
              cvy_shape_text(&s->plane_shape));
    CVY_TRY(cvy_augment_reals(w));
    float *x = w->pic.data;
    for (int64_t i = 0; i < w->pic.C * w->pic.H * w->pic.W; i++)
        x[i] -= s->plane[i];
    return CVY_OK;
}

static void reverse(double *list, int64_t n)
{
    for (int64_t c = 0; c < n / 2; c++) {
        const double first = list[c];
        list[c] = list[n - 1 - c];
        list[n - 1 - c] = first;
    }
}

static cvy_status reverse_channels_apply(const cvy_operation *s, cvy_augment_work *w)
{
    const cvy_picture from = w->pic;
    const size_t plane = (size_t)(from.H * from.W) * cvy_dtype_bytes(from.dtype);
    cvy_picture to;
    (void)s;
    CVY_TRY(cvy_augment_fresh(w, from.dtype, from.H, from.W, 0, &to, NULL));
    for (int64_t c = 0; c < from.C; c++)
        memcpy((char *)to.data + (size_t)(from.C - 1 - c) * plane, (const char *)from.data + (size_t)c * plane, plane);
    w->pic = to;
    reverse(w->affine.shift, w->affine.n);
    reverse(w->affine.by, w->affine.n);
    return CVY_OK;
}

CVY_AUGMENT_DEFINE(mean_file) = {
    .name = "mean_file",
    .options = mean_file_opts,
    .short_key = "file",
    .spatial = 1,
    .keeps_bytes = 1,
    .open = mean_file_open,
    .apply = mean_file_apply,
};

CVY_AUGMENT_DEFINE(reverse_channels) = {
    .name = "reverse_channels",
    .options = reverse_channels_opts,
    .spatial = 1,
    .apply = reverse_channels_apply,
};
