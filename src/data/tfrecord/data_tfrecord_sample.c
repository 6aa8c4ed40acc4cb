/*
 * data_tfrecord_sample.c: see data_tfrecord_sample.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/tfrecord/data_tfrecord_sample.h"

#include <string.h>

#include "data/array/data_array.h"
#include "data/tfrecord/data_tfrecord.h"

const cvy_option cvy_tfrecord_options[] = {
    {"image", CVY_TYPE_STRING, CVY_FIELD(tf_opts, name[TF_IMAGE]), "", "", "",
     "feature of pictures, JPEG, PNG or with `shape` raw bytes [H, W, C]; by default image/encoded, image or "
     "image_raw"},
    {"x", CVY_TYPE_STRING, CVY_FIELD(tf_opts, name[TF_X]), "", "", "",
     "feature of plain input: floats, integers, or with `dtype` raw bytes; by default x"},
    {"label", CVY_TYPE_STRING, CVY_FIELD(tf_opts, name[TF_LABEL]), "", "", "",
     "feature of the class, an integer or a name; by default image/class/label or label; none: the data have no "
     "labels"},
    {"text", CVY_TYPE_STRING, CVY_FIELD(tf_opts, name[TF_TEXT]), "", "", "",
     "feature of the class's name; by default image/class/text"},
    {"y", CVY_TYPE_STRING, CVY_FIELD(tf_opts, name[TF_Y]), "", "", "", "feature of real targets, floats; by default y"},
    {"weight", CVY_TYPE_STRING, CVY_FIELD(tf_opts, name[TF_WEIGHT]), "", "", "",
     "feature of the sample's weight, one float; by default weight"},
    {"shape", CVY_TYPE_INTS, CVY_FIELD(tf_opts, shape), "", "1..1000000", "",
     "shape of x, or [H, W, C] of raw pictures; by default what the record says in X/shape or image/height, width, "
     "channels"},
    {"dtype", CVY_TYPE_CHOICE, CVY_FIELD(tf_opts, dtype), "auto", "auto|u8|i8|u16|i16|u32|i32|u64|i64|f32|f64|f16|bool",
     "", "type of raw bytes of x, little endian; auto: as X/dtype says, else u8"},
    {"channels", CVY_TYPE_CHOICE, CVY_FIELD(tf_opts, channels), "auto", "auto|grey|rgb", "",
     "channels of decoded pictures; auto: those of the first picture"},
    {"channels_last", CVY_TYPE_BOOL, CVY_FIELD(tf_opts, channels_last), "false", "", "",
     "the last axis of plain input is that of the channels, and becomes the first"},
    {"first_label", CVY_TYPE_INT, CVY_FIELD(tf_opts, first_label), "0", "0..1000000", "",
     "the smallest label, which becomes class 0: 1 if 0 means background"},
    {"classes", CVY_TYPE_INT, CVY_FIELD(tf_opts, classes), "0", "0..1000000", "",
     "number of classes; 0: the largest label plus one"},
    {"group", CVY_TYPE_STRING, CVY_FIELD(tf_opts, group), "", "", "",
     "feature of what a sample belongs to, such as a patient, for data.val: bytes, an integer or a float"},
    {"index", CVY_TYPE_STRING, CVY_FIELD(tf_opts, index), "", "", "",
     "folder for an index file with the positions and labels of all records, so that later runs need not read all "
     "files first; by default none"},
    {"cache_mb", CVY_TYPE_INT, CVY_FIELD(tf_opts, cache_mb), "2048", "1..1048576", "MB",
     "memory of a rank for files that are compressed as a whole, which are unpacked in memory"},
    {0},
};

/* Indexed by array_kind. */
static const char *const dtype_word[] = {"u8",  "i8",  "u16", "i16", "u32", "i32",
                                         "u64", "i64", "f32", "f64", "f16", "bool"};

enum { B = 1 << CVY_FEATURE_BYTES, F = 1 << CVY_FEATURE_FLOATS, I = 1 << CVY_FEATURE_INTS };

static const struct {
    int kinds;            /* bit mask of the kinds which it may have */
    const char *usual[3]; /* names that are searched if no option is given */
} roles[TF_NROLE] = {
    [TF_IMAGE] = {B, {"image/encoded", "image", "image_raw"}},
    [TF_X] = {B | F | I, {"x"}},
    [TF_LABEL] = {B | I | F, {"image/class/label", "label"}},
    [TF_TEXT] = {B, {"image/class/text"}},
    [TF_Y] = {F, {"y"}},
    [TF_WEIGHT] = {F, {"weight"}},
    [TF_X_SHAPE] = {I, {NULL}},
    [TF_X_DTYPE] = {B, {NULL}},
    [TF_Y_SHAPE] = {I, {NULL}},
    [TF_HEIGHT] = {I, {"image/height", "height"}},
    [TF_WIDTH] = {I, {"image/width", "width"}},
    [TF_CHANNELS] = {I, {"image/channels", "channels", "depth"}},
};

cvy_status cvy_tf_check_options(const struct tf_opts *o)
{
    double elems = 1;
    CVY_CHECK(!o->name[TF_IMAGE] || !o->name[TF_X], CVY_E_CONFIG,
              "image: %s and x: %s are both given, but a sample has one input", o->name[TF_IMAGE], o->name[TF_X]);
    CVY_CHECK(o->shape.count <= CVY_NDIM_MAX, CVY_E_CONFIG, "shape has %d axes, expected at most %d", o->shape.count,
              CVY_NDIM_MAX);
    for (int i = 0; i < o->shape.count; i++)
        elems *= (double)o->shape.at[i];
    CVY_CHECK(elems <= INT32_MAX, CVY_E_CONFIG, "shape has %.0f elements, expected less than 2^31", elems);
    return CVY_OK;
}

cvy_status cvy_tf_find(const struct tf_fields *t, struct tf_sample *s)
{
    return cvy_example_find(s->record, s->bytes, t->name, TF_NROLE, s->f);
}

static cvy_status missing(const struct tf_sample *s, const char *name)
{
    char all[700];
    cvy_example_describe(s->record, s->bytes, all, sizeof all);
    CVY_FAIL(CVY_E_FORMAT, "has no feature %s; it has %s", name, all);
}

/* Checks that the feature exists and has a kind which it may have. */
static cvy_status need(const struct tf_fields *t, const struct tf_sample *s, int role)
{
    const cvy_feature_kind kind = s->f[role].kind;
    if (kind == CVY_FEATURE_ABSENT)
        return missing(s, t->name[role]);
    CVY_CHECK(roles[role].kinds & (1 << kind), CVY_E_FORMAT, "feature %s holds %s, expected %s", t->name[role],
              cvy_feature_kind_text(kind),
              roles[role].kinds & F   ? "floats"
              : roles[role].kinds & I ? "integers"
                                      : "bytes");
    return CVY_OK;
}

/* ---- numbers of a feature ---- */

/* Dimensions are bounded, so that products of them do not overflow. */
int cvy_tf_shape(const cvy_feature *f, cvy_shape *out)
{
    int64_t dim[CVY_NDIM_MAX];
    const int64_t n = cvy_feature_ints(f, dim, CVY_NDIM_MAX);
    double elems = 1;
    if (n < 1 || n > CVY_NDIM_MAX)
        return 0;
    for (int64_t i = 0; i < n; i++) {
        if (dim[i] < 1)
            return 0;
        elems *= (double)dim[i];
    }
    if (elems > INT32_MAX)
        return 0;
    *out = cvy_shape_make((int)n, dim);
    return 1;
}

/* The shape of x: from the option, or else from the record, or else one axis of all numbers. */
static cvy_status find_x_shape(const struct tf_fields *t, const struct tf_sample *s, int64_t elems, cvy_shape *out)
{
    cvy_shape shape = {1, {elems}};
    if (t->o.shape.count > 0)
        shape = cvy_shape_make(t->o.shape.count, t->o.shape.at);
    else if (s->f[TF_X_SHAPE].kind != CVY_FEATURE_ABSENT)
        CVY_CHECK(cvy_tf_shape(&s->f[TF_X_SHAPE], &shape), CVY_E_FORMAT, "feature %s holds no shape",
                  t->name[TF_X_SHAPE]);
    CVY_CHECK(elems > 0 && cvy_shape_elems(&shape) == elems, CVY_E_FORMAT, "feature %s has %lld numbers, expected %s",
              t->name[TF_X], (long long)elems, cvy_shape_text(&shape));
    *out = shape;
    return CVY_OK;
}

static cvy_status find_x_kind(const struct tf_fields *t, const struct tf_sample *s, array_kind *out)
{
    cvy_wire word = {NULL, NULL};
    *out = t->o.dtype > 0 ? (array_kind)(t->o.dtype - 1) : ARRAY_U8;
    if (t->o.dtype > 0 || s->f[TF_X_DTYPE].kind == CVY_FEATURE_ABSENT)
        return CVY_OK;
    if (cvy_feature_bytes(&s->f[TF_X_DTYPE], &word)) {
        const size_t n = (size_t)(word.end - word.at);
        for (int i = 0; i < CVY_COUNT(dtype_word); i++) {
            if (strlen(dtype_word[i]) == n && memcmp(dtype_word[i], word.at, n) == 0) {
                *out = (array_kind)i;
                return CVY_OK;
            }
        }
    }
    CVY_FAIL(CVY_E_FORMAT, "feature %s is \"%.*s\", expected u8, f32 or the like", t->name[TF_X_DTYPE],
             (int)CVY_MIN(word.end - word.at, 16), word.at ? (const char *)word.at : "");
}

static cvy_status take_raw_bytes(const struct tf_fields *t, const struct tf_sample *s, cvy_raw *raw)
{
    cvy_wire bytes = {NULL, NULL};
    array_kind kind = ARRAY_U8;
    CVY_CHECK(cvy_feature_bytes(&s->f[TF_X], &bytes), CVY_E_FORMAT, "feature %s holds no bytes", t->name[TF_X]);
    CVY_TRY(find_x_kind(t, s, &kind));
    const size_t n = (size_t)(bytes.end - bytes.at), each = array_kind_bytes(kind);
    CVY_CHECK(n % each == 0, CVY_E_FORMAT, "feature %s has %zu bytes, which are not a multiple of %s", t->name[TF_X], n,
              dtype_word[kind]);
    CVY_TRY(find_x_shape(t, s, (int64_t)(n / each), &raw->shape));
    raw->dtype = kind == ARRAY_U8 ? CVY_DTYPE_U8 : CVY_DTYPE_F32;
    CVY_TRY(cvy_bytes_need(&raw->x, n / each * cvy_dtype_bytes(raw->dtype)));
    if (kind == ARRAY_U8)
        memcpy(raw->x.data, bytes.at, n);
    else
        array_to_f32(kind, 0, bytes.at, (int64_t)(n / each), raw->x.data);
    return CVY_OK;
}

/* Converts integers to floats in place, from the front: a float never overwrites an integer that has not been read
 * yet. */
static void ints_to_floats(void *data, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t value;
        memcpy(&value, (char *)data + 8 * i, sizeof value);
        const float real = (float)value;
        memcpy((char *)data + 4 * i, &real, sizeof real);
    }
}

static cvy_status take_numbers(const struct tf_fields *t, const struct tf_sample *s, cvy_raw *raw)
{
    const cvy_feature *f = &s->f[TF_X];
    const int ints = f->kind == CVY_FEATURE_INTS;
    const int64_t n = ints ? cvy_feature_ints(f, NULL, 0) : cvy_feature_floats(f, NULL, 0);
    CVY_CHECK(n >= 0, CVY_E_FORMAT, "feature %s is damaged", t->name[TF_X]);
    CVY_TRY(find_x_shape(t, s, n, &raw->shape));
    CVY_TRY(cvy_bytes_need(&raw->x, (size_t)n * (ints ? sizeof(int64_t) : sizeof(float))));
    raw->dtype = CVY_DTYPE_F32;
    if (ints) {
        cvy_feature_ints(f, raw->x.data, n);
        ints_to_floats(raw->x.data, n);
    } else {
        cvy_feature_floats(f, raw->x.data, n);
    }
    raw->x.bytes = (size_t)n * sizeof(float);
    return CVY_OK;
}

/* ---- pictures ---- */

/* Finds [H, W, C] of raw pixels from the option or from the record. */
static cvy_status find_pixels(const struct tf_fields *t, const struct tf_sample *s, size_t bytes, int64_t *C,
                              int64_t *HW, cvy_shape *out)
{
    int64_t dim[3] = {0, 0, 1}; /* H, W, C */
    if (t->o.shape.count > 0) {
        CVY_CHECK(t->o.shape.count == 2 || t->o.shape.count == 3, CVY_E_CONFIG,
                  "shape of raw pictures is [H, W, C] or [H, W], got %d numbers", t->o.shape.count);
        memcpy(dim, t->o.shape.at, (size_t)t->o.shape.count * sizeof *dim);
    } else {
        for (int i = 0; i < 3; i++)
            cvy_feature_ints(&s->f[TF_HEIGHT + i], &dim[i], 1);
        CVY_CHECK(dim[0] > 0 && dim[1] > 0, CVY_E_FORMAT,
                  "feature %s is neither a JPEG nor a PNG (%zu bytes); if these are raw pixels, give their shape: "
                  "[H, W, C]",
                  t->name[TF_IMAGE], bytes);
    }
    CVY_CHECK(dim[0] > 0 && dim[1] > 0 && dim[2] > 0 &&
                  (double)dim[0] * (double)dim[1] * (double)dim[2] == (double)bytes,
              CVY_E_FORMAT, "feature %s has %zu bytes, expected %lldx%lldx%lld pixels", t->name[TF_IMAGE], bytes,
              (long long)dim[0], (long long)dim[1], (long long)dim[2]);
    *C = dim[2];
    *HW = dim[0] * dim[1];
    *out = (cvy_shape){3, {dim[2], dim[0], dim[1]}};
    return CVY_OK;
}

static cvy_status take_picture(const struct tf_fields *t, const struct tf_sample *s, cvy_raw *raw)
{
    cvy_wire bytes = {NULL, NULL};
    int64_t C = 0, HW = 0;
    CVY_CHECK(cvy_feature_bytes(&s->f[TF_IMAGE], &bytes), CVY_E_FORMAT, "feature %s holds no bytes", t->name[TF_IMAGE]);
    const size_t n = (size_t)(bytes.end - bytes.at);
    raw->coding = cvy_picture_coding(bytes.at, n);
    raw->dtype = CVY_DTYPE_U8;
    if (raw->coding == CVY_CODING_PLAIN)
        CVY_TRY(find_pixels(t, s, n, &C, &HW, &raw->shape));
    CVY_TRY(cvy_bytes_need(&raw->x, n));
    uint8_t *to = raw->x.data;
    if (raw->coding != CVY_CODING_PLAIN) {
        memcpy(to, bytes.at, n);
        return CVY_OK;
    }
    for (int64_t c = 0; c < C; c++)
        for (int64_t i = 0; i < HW; i++)
            to[c * HW + i] = bytes.at[i * C + c];
    return CVY_OK;
}

/* Moves the last axis of x to the front. */
static cvy_status put_channels_first(const char *name, cvy_raw *raw)
{
    const cvy_shape last = raw->shape;
    const size_t each = cvy_dtype_bytes(raw->dtype);
    char *copy = NULL;
    CVY_CHECK(last.ndim >= 2, CVY_E_CONFIG, "channels_last: feature %s has one axis; `shape` gives it more", name);
    const int64_t C = last.dim[last.ndim - 1], positions = cvy_shape_elems(&last) / C;
    CVY_TRY(cvy_mem_alloc((size_t)(C * positions) * each, &copy));
    memcpy(copy, raw->x.data, (size_t)(C * positions) * each);
    for (int64_t c = 0; c < C; c++)
        for (int64_t i = 0; i < positions; i++)
            memcpy((char *)raw->x.data + (size_t)(c * positions + i) * each, copy + (size_t)(i * C + c) * each, each);
    cvy_mem_free(&copy);
    raw->shape.dim[0] = C;
    for (int d = 1; d < last.ndim; d++)
        raw->shape.dim[d] = last.dim[d - 1];
    return CVY_OK;
}

cvy_status cvy_tf_take_x(const struct tf_fields *t, const struct tf_sample *s, cvy_raw *raw)
{
    const int role = t->name[TF_IMAGE] ? TF_IMAGE : TF_X;
    CVY_CHECK(t->resolved, CVY_E_FORMAT, "was damaged when the set was opened");
    CVY_TRY(need(t, s, role));
    if (role == TF_IMAGE)
        return take_picture(t, s, raw);
    raw->coding = CVY_CODING_PLAIN;
    CVY_TRY(s->f[TF_X].kind == CVY_FEATURE_BYTES ? take_raw_bytes(t, s, raw) : take_numbers(t, s, raw));
    return t->o.channels_last ? put_channels_first(t->name[TF_X], raw) : CVY_OK;
}

/* ---- label, targets, weight ---- */

cvy_status cvy_tf_label(const struct tf_fields *t, const struct tf_sample *s, int32_t *number, cvy_wire *name)
{
    const char *what = t->name[TF_LABEL];
    int64_t value = 0;
    float real = 0;
    int32_t label = 0;
    CVY_TRY(need(t, s, TF_LABEL));
    const cvy_feature *f = &s->f[TF_LABEL];
    CVY_CHECK((f->kind == CVY_FEATURE_BYTES) == (t->by_name != 0), CVY_E_FORMAT,
              "feature %s holds %s, expected %s as in the first record", what, cvy_feature_kind_text(f->kind),
              t->by_name ? "bytes" : "numbers");
    if (t->by_name) {
        CVY_CHECK(cvy_feature_bytes(f, name), CVY_E_FORMAT, "feature %s holds no name", what);
        return CVY_OK;
    }
    const int is_real = f->kind == CVY_FEATURE_FLOATS;
    const int64_t n = is_real ? cvy_feature_floats(f, &real, 1) : cvy_feature_ints(f, &value, 1);
    CVY_CHECK(n == 1, CVY_E_FORMAT, "feature %s has %lld numbers, expected one label", what, (long long)n);
    CVY_TRY(cvy_label_of(is_real ? (double)real : (double)value, &label));
    value = label - t->o.first_label;
    *number = (int32_t)CVY_MAX(value, -INT32_MAX);
    return CVY_OK;
}

cvy_status cvy_tf_take_targets(const struct tf_fields *t, const struct tf_sample *s, cvy_raw *raw)
{
    if (t->name[TF_WEIGHT]) {
        CVY_TRY(need(t, s, TF_WEIGHT));
        CVY_CHECK(cvy_feature_floats(&s->f[TF_WEIGHT], &raw->weight, 1) == 1, CVY_E_FORMAT,
                  "feature %s is not one number", t->name[TF_WEIGHT]);
    }
    raw->y.bytes = (size_t)t->y_elems * sizeof(float);
    if (!t->name[TF_Y])
        return CVY_OK;
    CVY_TRY(need(t, s, TF_Y));
    const int64_t n = cvy_feature_floats(&s->f[TF_Y], raw->y.data, t->y_elems);
    CVY_CHECK(n == t->y_elems, CVY_E_FORMAT, "feature %s has %lld numbers, expected %lld as in the first record",
              t->name[TF_Y], (long long)n, (long long)t->y_elems);
    return CVY_OK;
}

/* ---- which features the data set has: those of the first good record ---- */

static cvy_status find_role(struct tf_fields *t, struct tf_sample *s, int role)
{
    const char *const *usual = roles[role].usual;
    const char *given = role <= TF_WEIGHT ? t->o.name[role] : NULL;
    if (role == TF_LABEL && given && strcmp(given, "none") == 0)
        return CVY_OK;
    if (given) {
        t->name[role] = given;
        CVY_TRY(cvy_example_find(s->record, s->bytes, &given, 1, &s->f[role]));
        return need(t, s, role);
    }
    for (int i = 0; i < CVY_COUNT(roles[role].usual) && usual[i]; i++) {
        CVY_TRY(cvy_example_find(s->record, s->bytes, &usual[i], 1, &s->f[role]));
        if (roles[role].kinds & (1 << s->f[role].kind)) {
            t->name[role] = usual[i];
            break;
        }
    }
    return CVY_OK;
}

/* Finds NAME/shape or NAME/dtype of the feature NAME. */
static cvy_status find_companion(struct tf_fields *t, cvy_pool *pool, struct tf_sample *s, int of, int role,
                                 const char *suffix)
{
    char *name = NULL;
    if (!t->name[of])
        return CVY_OK;
    CVY_TRY(cvy_pool_printf(pool, &name, "%s%s", t->name[of], suffix));
    const char *key = name;
    CVY_TRY(cvy_example_find(s->record, s->bytes, &key, 1, &s->f[role]));
    if (roles[role].kinds & (1 << s->f[role].kind))
        t->name[role] = name;
    return CVY_OK;
}

cvy_status cvy_tf_resolve(struct tf_fields *t, cvy_pool *pool, struct tf_sample *s)
{
    for (int role = 0; role < TF_NROLE; role++)
        CVY_TRY(find_role(t, s, role));
    if (t->o.name[TF_X] || !t->name[TF_IMAGE])
        t->name[TF_IMAGE] = NULL;
    else
        t->name[TF_X] = NULL;
    if (!t->name[TF_IMAGE] && !t->name[TF_X])
        return missing(s, "image/encoded or x (options image and x name others)");
    CVY_TRY(find_companion(t, pool, s, TF_X, TF_X_SHAPE, CVY_TFRECORD_SHAPE));
    CVY_TRY(find_companion(t, pool, s, TF_X, TF_X_DTYPE, CVY_TFRECORD_DTYPE));
    CVY_TRY(find_companion(t, pool, s, TF_Y, TF_Y_SHAPE, CVY_TFRECORD_SHAPE));
    CVY_TRY(cvy_tf_find(t, s));
    if (t->name[TF_X_SHAPE])
        cvy_tf_shape(&s->f[TF_X_SHAPE], &t->x_shape);
    if (t->name[TF_Y]) {
        t->y_elems = cvy_feature_floats(&s->f[TF_Y], NULL, 0);
        CVY_CHECK(t->y_elems > 0, CVY_E_FORMAT, "feature %s has no numbers", t->name[TF_Y]);
        if (!cvy_tf_shape(&s->f[TF_Y_SHAPE], &t->y_shape) || cvy_shape_elems(&t->y_shape) != t->y_elems)
            t->y_shape = (cvy_shape){1, {t->y_elems}};
    }
    t->by_name = t->name[TF_LABEL] && s->f[TF_LABEL].kind == CVY_FEATURE_BYTES;
    t->resolved = 1;
    return CVY_OK;
}
