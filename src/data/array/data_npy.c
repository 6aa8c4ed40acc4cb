/*
 * data_npy.c: reads NumPy's .npy arrays: x.npy, and optionally y.npy (real targets), label.npy (classes), weight.npy.
 *
 * A path is the file of x, a folder, or a .npz archive (data_npz.c); an option may name the file of each array. The
 * first axis counts samples. Bytes are pictures (0 .. 255) and stay u8; all other types become f32. Headers are read by
 * data_npy_header.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/array/data_npy.h"
#include "base/base_file.h"
#include "base/base_hash.h"
#include "base/base_round.h"

#include <string.h>

#include "data/array/data_npz.h"
#include "data/data_index.h"

enum { CHANNELS_AUTO, CHANNELS_FIRST, CHANNELS_LAST, CHANNELS_NONE };
enum { X = CVY_NPZ_X, Y = CVY_NPZ_Y, LABEL = CVY_NPZ_LABEL, WEIGHT = CVY_NPZ_WEIGHT, NARRAY = CVY_NPZ_ROLES };

struct npy_opts {
    const char *file[NARRAY], *group;
    int channels, part;
    int64_t classes;
};

static const cvy_option npy_opts[] = {
    {"x", CVY_TYPE_STRING, CVY_FIELD(npy_opts, file[X]), "", "", "",
     "inputs: a file, x.npy in the folder by default; or an array of a .npz file"},
    {"y", CVY_TYPE_STRING, CVY_FIELD(npy_opts, file[Y]), "", "", "",
     "real targets; y.npy in the folder, if it exists; or an array of a .npz file"},
    {"label", CVY_TYPE_STRING, CVY_FIELD(npy_opts, file[LABEL]), "", "", "",
     "classes, whole numbers; label.npy in the folder, if it exists; or an array of a .npz file"},
    {"weight", CVY_TYPE_STRING, CVY_FIELD(npy_opts, file[WEIGHT]), "", "", "",
     "weights of samples, or of their positions; weight.npy in the folder, if it exists; or an array of a .npz file"},
    {"group", CVY_TYPE_STRING, CVY_FIELD(npy_opts, group), "", "", "",
     "what each sample belongs to, such as a patient, for data.val: an array of numbers or texts; its file, also in "
     "the "
     "folder of the source, or an array of a .npz file"},
    {"part", CVY_TYPE_CHOICE, CVY_FIELD(npy_opts, part), "auto", "auto|train|val|test", "",
     "which arrays of a .npz file are read, by the word of a split in their names (x_train, test_labels); auto: those "
     "without such a word, or else those of the training"},
    {"channels", CVY_TYPE_CHOICE, CVY_FIELD(npy_opts, channels), "auto", "auto|first|last|none", "",
     "position of the channel axis of x; auto: first, but last of samples such as [32, 32, 3]; none: there is no such "
     "axis, and one of length 1 is added"},
    {"classes", CVY_TYPE_INT, CVY_FIELD(npy_opts, classes), "0", "0..", "",
     "number of classes; 0: the largest label plus one"},
    {0},
};

struct npy {
    struct array array[NARRAY]; /* file.fd is -1 if the array is absent */
    struct array group; /* the same; of texts, the type is bytes, and the number of characters is the last axis */
    int text_bytes;     /* of a character of such texts: 1 or 4; 0: they are numbers */
    int32_t *label;
    int channels;
    cvy_shape shape; /* of x as the reader returns it */
};

static const char *const usual_name[NARRAY] = {"x.npy", "y.npy", "label.npy", "weight.npy"};

static int npy_probe(const char *path)
{
    if (cvy_file_is_folder(path))
        return cvy_data_has_file(path, "x.npy") ? 80 : 0;
    if (cvy_npz_probe(path))
        return 80;
    char magic[6];
    return cvy_data_peek(path, magic, sizeof magic) == sizeof magic && memcmp(magic, "\x93NUMPY", sizeof magic) == 0
               ? 80
               : 0;
}

/* ---- what each sample belongs to ---- */

static cvy_status read_group_header(struct npy *n)
{
    struct array *g = &n->group;
    const cvy_status status = cvy_npy_read_text_header(g, &n->text_bytes);
    if (status == CVY_NOT_APPLICABLE)
        CVY_TRY(cvy_npy_read_header(g));
    else
        CVY_TRY(status);
    CVY_CHECK(g->count == n->array[X].count, CVY_E_FORMAT, "%s: %lld records, expected %lld as in %s", g->file.path,
              (long long)g->count, (long long)n->array[X].count, n->array[X].file.path);
    CVY_CHECK(n->text_bytes || cvy_shape_elems(&g->shape) == 1, CVY_E_SHAPE,
              "%s: %s numbers per sample, expected one that says what it belongs to", g->file.path,
              cvy_shape_text(&g->shape));
    return CVY_OK;
}

/* Opens the file of the option `group`: as it is named, or in the folder of the source, with or without ".npy". */
static cvy_status open_group(struct npy *n, const char *name, const cvy_reader_args *args, cvy_pool *pool)
{
    const char *path = name;
    char *longer = NULL;
    const int in_folder = args->path && cvy_file_is_folder(args->path);
    CVY_TRY(cvy_pool_printf(pool, &longer, "%s.npy", name));
    if (in_folder && cvy_data_has_file(args->path, name))
        CVY_TRY(cvy_data_path_join(pool, args->path, name, &path));
    else if (in_folder && cvy_data_has_file(args->path, longer))
        CVY_TRY(cvy_data_path_join(pool, args->path, longer, &path));
    CVY_TRY(cvy_data_file_open(pool, path, &n->group.file));
    return read_group_header(n);
}

/* Characters of four bytes become UTF-8. */
static cvy_status add_text(const struct npy *n, const uint8_t *at, cvy_groups *to)
{
    char text[4096];
    size_t bytes = 0;
    for (int64_t i = 0; i < n->group.shape.dim[0]; i += n->text_bytes) {
        uint32_t c = at[i];
        for (int k = 1; k < n->text_bytes; k++)
            c = n->group.big_endian ? c << 8 | at[i + k] : c | (uint32_t)at[i + k] << 8 * k;
        if (c == 0)
            break;
        if (c < 0x80 || n->text_bytes == 1) {
            text[bytes++] = (char)c;
            continue;
        }
        const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
        text[bytes++] = (char)((more == 1 ? 0xc0 : more == 2 ? 0xe0 : 0xf0) | (c >> 6 * more & 0x1f));
        for (int k = more; k-- > 0;)
            text[bytes++] = (char)(0x80 | (c >> 6 * k & 0x3f));
    }
    return cvy_groups_add(to, text, bytes);
}

static cvy_status npy_groups(void *state, cvy_groups *to)
{
    const struct npy *n = state;
    const struct array *g = &n->group;
    uint8_t *record = NULL;
    cvy_status status = CVY_OK;
    if (g->file.fd < 0)
        return CVY_OK;
    CVY_TRY(cvy_mem_alloc(g->record_bytes, &record));
    for (int64_t i = 0; i < g->count && status == CVY_OK; i++) {
        status =
            cvy_pread_all(g->file.fd, record, g->record_bytes, g->offset + i * (int64_t)g->record_bytes, g->file.path);
        if (status == CVY_OK && n->text_bytes)
            status = add_text(n, record, to);
        else if (status == CVY_OK)
            status = cvy_groups_add_number(to, array_number(g->kind, g->big_endian, record));
    }
    cvy_mem_free(&record);
    return status;
}

/* ---- opening ---- */

static cvy_status check_count(const struct npy *n, int which)
{
    const struct array *a = &n->array[which];
    CVY_CHECK(a->count == n->array[X].count, CVY_E_FORMAT, "%s: %lld records, expected %lld as in %s", a->file.path,
              (long long)a->count, (long long)n->array[X].count, n->array[X].file.path);
    return CVY_OK;
}

static cvy_status open_array(struct npy *n, int which, const struct npy_opts *o, const cvy_reader_args *args,
                             cvy_pool *pool)
{
    const char *path = o->file[which];
    const int folder = args->path && cvy_file_is_folder(args->path);
    n->array[which].file.fd = -1;
    if (!path && which == X && args->path && !folder)
        path = args->path;
    if (!path && folder && (which == X || cvy_data_has_file(args->path, usual_name[which])))
        CVY_TRY(cvy_data_path_join(pool, args->path, usual_name[which], &path));
    if (!path && which != X)
        return CVY_OK;
    CVY_CHECK(path, CVY_E_CONFIG, "format npy needs a path (a folder with x.npy, or the file) or the option x");
    CVY_TRY(cvy_data_file_open(pool, path, &n->array[which].file));
    CVY_TRY(cvy_npy_read_header(&n->array[which]));
    return check_count(n, which);
}

/* Without labels, a y of one integer for each sample is the labels, as in HDF5 files. */
static void take_labels(struct npy *n, const struct npy_opts *o)
{
    struct array *y = &n->array[Y];
    if (y->file.fd < 0 || n->array[LABEL].file.fd >= 0 || o->file[Y] || o->file[LABEL] || y->kind > ARRAY_I64 ||
        cvy_shape_elems(&y->shape) != 1)
        return;
    n->array[LABEL] = *y;
    *y = (struct array){.file.fd = -1};
}

static cvy_status open_archive(struct npy *n, const struct npy_opts *o, const char *path, cvy_reader_info *info)
{
    cvy_npz z;
    const cvy_npz_member *chosen[NARRAY], *group = NULL;
    cvy_status status = cvy_npz_open(info->pool, path, &z);
    z.group = o->group;
    if (status == CVY_OK)
        status = cvy_npz_choose(&z, o->file, o->part, info, chosen);
    for (int i = 0; i < NARRAY && status == CVY_OK; i++) {
        struct array *a = &n->array[i];
        if (!chosen[i])
            continue;
        status = cvy_npz_open_member(info->pool, &z, chosen[i], &a->file, &a->base);
        if (status == CVY_OK)
            status = cvy_npy_read_header(a);
        if (status == CVY_OK)
            status = check_count(n, i);
    }
    if (status == CVY_OK && o->group)
        status = cvy_npz_find(&z, o->group, "group", &group);
    if (status == CVY_OK && group)
        status = cvy_npz_open_member(info->pool, &z, group, &n->group.file, &n->group.base);
    if (status == CVY_OK && group)
        status = read_group_header(n);
    cvy_data_file_close(&z.file);
    take_labels(n, o);
    return status;
}

/* Decides where the channels are if the source does not say so, and says what was decided if it could be otherwise. A
 * last axis of 1, 3 or 4 after equal sides, or after the two longer sides of pictures of bytes, is that of the
 * channels. */
static cvy_status find_channels(struct npy *n, const struct npy_opts *o, cvy_reader_info *info)
{
    const struct array *x = &n->array[X];
    const int ndim = x->shape.ndim;
    const int64_t *dim = x->shape.dim;
    n->channels = o->channels == CHANNELS_AUTO ? CHANNELS_FIRST : o->channels;
    if (o->channels != CHANNELS_AUTO || ndim < 3 || ndim > 4 || dim[ndim - 1] > 4 || dim[0] <= 4)
        return CVY_OK;
    const int are_equal = dim[0] == dim[1] && dim[0] == dim[ndim - 2];
    const int is_picture = are_equal || (ndim == 3 && x->kind == ARRAY_U8 && CVY_MIN(dim[0], dim[1]) >= 8);
    if (dim[ndim - 1] != 2 && is_picture) {
        n->channels = CHANNELS_LAST;
        return cvy_reader_note(info,
                               "%s: samples are %s, and their last axis is read as the channels (`channels: first` of "
                               "the source reads %lld channels)",
                               x->file.path, cvy_shape_text(&x->shape), (long long)dim[0]);
    }
    return cvy_reader_note(info,
                           "%s: samples are %s, and are read as %lld channels: if the last axis counts the channels, "
                           "say `channels: last` in the source",
                           x->file.path, cvy_shape_text(&x->shape), (long long)dim[0]);
}

/* [H, W, C] -> [C, H, W] and the like. */
static cvy_status x_shape(struct npy *n)
{
    const cvy_shape *s = &n->array[X].shape;
    cvy_shape x = *s;
    if (n->channels == CHANNELS_LAST && s->ndim > 1) {
        x.dim[0] = s->dim[s->ndim - 1];
        for (int i = 1; i < s->ndim; i++)
            x.dim[i] = s->dim[i - 1];
    } else if (n->channels == CHANNELS_NONE || s->ndim == 0) {
        CVY_CHECK(s->ndim < CVY_NDIM_MAX - 1, CVY_E_SHAPE,
                  "%s: samples of %d axes, to which a channel axis cannot be added", n->array[X].file.path, s->ndim);
        x.ndim = s->ndim + 1;
        x.dim[0] = 1;
        for (int i = 1; i < x.ndim; i++)
            x.dim[i] = s->dim[i - 1];
    }
    CVY_CHECK(x.ndim < CVY_NDIM_MAX, CVY_E_SHAPE, "%s: samples of %d axes, at most %d", n->array[X].file.path, x.ndim,
              CVY_NDIM_MAX - 1);
    n->shape = x;
    return CVY_OK;
}

/* Other arrays in the folder, such as x_test.npy, are not read. */
static cvy_status note_rest(const struct npy *n, const char *folder, cvy_reader_info *info)
{
    char **name = NULL;
    int64_t count = 0;
    cvy_passed passed = {0};
    CVY_TRY(cvy_file_list(info->pool, folder, &name, &count));
    for (int64_t i = 0; i < count; i++) {
        int is_read = !cvy_data_has_suffix(name[i], ".npy") ||
                      (n->group.file.fd >= 0 && strcmp(cvy_file_base_name(n->group.file.path), name[i]) == 0);
        for (int k = 0; k < NARRAY; k++)
            is_read |= n->array[k].file.fd >= 0 && strcmp(cvy_file_base_name(n->array[k].file.path), name[i]) == 0;
        if (!is_read)
            cvy_passed_add(&passed, NULL, name[i]);
    }
    return cvy_passed_note(&passed, folder, "array",
                           "the names that are looked for are x.npy, y.npy, label.npy and weight.npy; options of the "
                           "source give others",
                           info);
}

static cvy_status npy_load(struct npy *n, const cvy_reader_args *args, cvy_reader_info *info)
{
    const struct npy_opts *o = args->options;
    const cvy_shape *y = &n->array[Y].shape;
    int32_t largest = 0;
    const int is_archive = args->path && cvy_npz_probe(args->path);
    CVY_CHECK(is_archive || o->part == 0, CVY_E_CONFIG, "part: is for arrays of a .npz file");
    if (is_archive)
        CVY_TRY(open_archive(n, o, args->path, info));
    for (int i = 0; i < NARRAY && !is_archive; i++)
        CVY_TRY(open_array(n, i, o, args, info->pool));
    if (o->group && !is_archive)
        CVY_TRY(open_group(n, o->group, args, info->pool));
    CVY_TRY(find_channels(n, o, info));
    CVY_TRY(x_shape(n));
    info->nsamples = n->array[X].count;
    info->dtype = n->array[X].kind == ARRAY_U8 ? CVY_DTYPE_U8 : CVY_DTYPE_F32;
    info->shape = n->shape;
    info->has_y = n->array[Y].file.fd >= 0;
    info->y_shape = y->ndim == 0 ? (cvy_shape){1, {1}} : *y;
    info->has_weight = n->array[WEIGHT].file.fd >= 0;
    if (info->has_weight && cvy_shape_elems(&n->array[WEIGHT].shape) != 1)
        info->weight_shape = n->array[WEIGHT].shape;
    CVY_CHECK(info->weight_shape.ndim == 0 ||
                  (info->has_y && cvy_shape_elems(&info->y_shape) % cvy_shape_elems(&info->weight_shape) == 0),
              CVY_E_SHAPE, "%s: weights of shape %s, expected one number per sample, or one for each position of y",
              n->array[WEIGHT].file.path, cvy_shape_text(&info->weight_shape));
    info->has_label = n->array[LABEL].file.fd >= 0;
    if (info->has_label) {
        CVY_TRY(array_read_labels(&n->array[LABEL], info->pool, &n->label, &largest));
        CVY_TRY(cvy_classes_count(o->classes, largest, n->array[LABEL].file.path, &info->nclasses));
    }
    if (args->path && cvy_file_is_folder(args->path))
        CVY_TRY(note_rest(n, args->path, info));
    return CVY_OK;
}

static void npy_close(void *state)
{
    struct npy *n = state;
    for (int i = 0; i < NARRAY; i++)
        cvy_data_file_close(&n->array[i].file);
    cvy_data_file_close(&n->group.file);
}

static cvy_status npy_open(const cvy_reader_args *args, cvy_reader_info *info, void **state_out)
{
    struct npy *n = NULL;
    CVY_TRY(cvy_pool_alloc(info->pool, sizeof *n, &n));
    for (int i = 0; i < NARRAY; i++)
        n->array[i].file.fd = -1;
    n->group.file.fd = -1;
    const cvy_status status = npy_load(n, args, info);
    if (status != CVY_OK)
        npy_close(n);
    else
        *state_out = n;
    return status;
}

/* ---- reading ---- */

static void npy_where(void *state, int64_t number, char *text, size_t room)
{
    const struct npy *n = state;
    snprintf(text, room, "%s, record %lld", n->array[X].file.path, (long long)number);
}

/* [positions, C] -> [C, positions] */
static void channels_first(const char *in, int64_t C, int64_t positions, size_t elem, char *out)
{
    for (int64_t p = 0; p < positions; p++)
        for (int64_t c = 0; c < C; c++)
            memcpy(out + (size_t)(c * positions + p) * elem, in + (size_t)(p * C + c) * elem, elem);
}

/* raw->y serves as working memory before it gets its own content. */
static cvy_status read_x(const struct npy *n, int64_t number, cvy_raw *raw)
{
    const struct array *x = &n->array[X];
    const int64_t elems = cvy_shape_elems(&n->shape);
    const size_t elem = x->kind == ARRAY_U8 ? 1 : sizeof(float), bytes = (size_t)elems * elem;
    const int permute = n->channels == CHANNELS_LAST && n->shape.ndim > 1;
    raw->coding = CVY_CODING_PLAIN;
    raw->dtype = x->kind == ARRAY_U8 ? CVY_DTYPE_U8 : CVY_DTYPE_F32;
    raw->shape = n->shape;
    CVY_TRY(cvy_bytes_need(&raw->x, permute ? 2 * bytes : bytes));
    char *target = (char *)raw->x.data + (permute ? bytes : 0);
    if (x->kind == ARRAY_U8)
        CVY_TRY(array_read_u8(x, number, (uint8_t *)target));
    else
        CVY_TRY(array_read_f32(x, number, &raw->y, (float *)(void *)target));
    if (permute)
        channels_first(target, n->shape.dim[0], elems / n->shape.dim[0], elem, raw->x.data);
    raw->x.bytes = bytes;
    return CVY_OK;
}

/* A part of x as the file has its axes. */
static cvy_field_part as_stored(const struct npy *n, const cvy_field_part *x)
{
    const int last = n->channels == CHANNELS_LAST && n->shape.ndim > 1, ndim = n->shape.ndim;
    const int added = n->array[X].shape.ndim < ndim; /* the axis of channels is not in the file */
    cvy_field_part p = {.is_part = 1, .shape.ndim = ndim - added, .tile.whole = n->array[X].shape};
    for (int d = added; d < ndim; d++) {
        const int at = last ? (d > 0 ? d - 1 : ndim - 1) : d - added;
        p.shape.dim[at] = x->shape.dim[d];
        p.tile.first[at] = x->tile.first[d];
    }
    return p;
}

/* raw->y is working memory. */
static cvy_status read_x_part(const struct npy *n, int64_t number, const cvy_field_part *x, cvy_raw *raw)
{
    const cvy_field_part stored = as_stored(n, x);
    const int64_t elems = cvy_shape_elems(&x->shape);
    const size_t elem = n->array[X].kind == ARRAY_U8 ? 1 : sizeof(float), bytes = (size_t)elems * elem;
    const int permute = n->channels == CHANNELS_LAST && n->shape.ndim > 1;
    raw->coding = CVY_CODING_PLAIN;
    raw->dtype = n->array[X].kind == ARRAY_U8 ? CVY_DTYPE_U8 : CVY_DTYPE_F32;
    raw->shape = x->shape;
    CVY_TRY(cvy_bytes_need(&raw->x, permute ? 2 * bytes : bytes));
    char *target = (char *)raw->x.data + (permute ? bytes : 0);
    CVY_TRY(cvy_bytes_need(&raw->y, array_part_work_bytes(&n->array[X], &stored)));
    CVY_TRY(array_read_part(&n->array[X], number, &stored, raw->y.data, target));
    if (permute)
        channels_first(target, x->shape.dim[0], elems / x->shape.dim[0], elem, raw->x.data);
    raw->x.bytes = bytes;
    return CVY_OK;
}

/* The buffer holds the f32 results, followed by working memory. */
static cvy_status read_y_part(const struct npy *n, int64_t number, const cvy_field_part *part, cvy_raw *raw)
{
    const struct array *y = &n->array[Y];
    const size_t bytes = cvy_round_to_line((size_t)cvy_shape_elems(&part->shape) * sizeof(float));
    CVY_TRY(cvy_bytes_need(&raw->y, bytes + array_part_work_bytes(y, part)));
    CVY_TRY(array_read_part(y, number, part, (char *)raw->y.data + bytes, raw->y.data));
    raw->y.bytes = (size_t)cvy_shape_elems(&part->shape) * sizeof(float);
    return CVY_OK;
}

/* One number, or a mask. raw->y is working memory. */
static cvy_status read_weight(const struct npy *n, int64_t number, cvy_raw *raw)
{
    const struct array *w = &n->array[WEIGHT];
    const int64_t elems = cvy_shape_elems(&w->shape);
    if (elems != 1)
        CVY_TRY(cvy_bytes_need(&raw->mask, (size_t)elems * sizeof(float)));
    return array_read_f32(w, number, &raw->y, elems == 1 ? &raw->weight : raw->mask.data);
}

static cvy_status npy_read_part(void *state, int64_t number, const cvy_field_part *x_part, const cvy_field_part *y_part,
                                cvy_raw *raw)
{
    const struct npy *n = state;
    CVY_TRY(cvy_is_part(x_part) ? read_x_part(n, number, x_part, raw) : read_x(n, number, raw));
    raw->label = n->label ? n->label[number] : 0;
    if (n->array[WEIGHT].file.fd >= 0)
        CVY_TRY(read_weight(n, number, raw));
    if (n->array[Y].file.fd < 0)
        return CVY_OK;
    if (cvy_is_part(y_part) && n->array[Y].kind != ARRAY_U8)
        return read_y_part(n, number, y_part, raw);
    /* The buffer holds the f32 results, followed by the record as stored. */
    const struct array *y = &n->array[Y];
    const size_t bytes = (size_t)cvy_shape_elems(&y->shape) * sizeof(float);
    CVY_TRY(cvy_bytes_need(&raw->y, bytes + y->record_bytes));
    cvy_bytes stored = {.data = (char *)raw->y.data + bytes, .room = y->record_bytes};
    CVY_TRY(array_read_f32(y, number, &stored, raw->y.data));
    raw->y.bytes = bytes;
    return CVY_OK;
}

static cvy_status npy_read(void *state, int64_t number, cvy_raw *raw)
{
    return npy_read_part(state, number, NULL, NULL, raw);
}

static cvy_status npy_label(void *state, int64_t number, int32_t *label_out)
{
    *label_out = ((const struct npy *)state)->label[number];
    return CVY_OK;
}

static void npy_hash(void *state, cvy_hasher *h)
{
    const struct npy *n = state;
    for (int i = 0; i < NARRAY; i++)
        cvy_hash_add(h, &n->array[i].file.bytes, sizeof n->array[i].file.bytes);
    if (n->label)
        cvy_hash_add(h, n->label, (size_t)n->array[LABEL].count * sizeof *n->label);
}

CVY_READER_DEFINE(npy) = {
    .name = "npy",
    .summary = "NumPy arrays: inputs, classes or real targets, weights",
    .options = npy_opts,
    .options_size = sizeof(struct npy_opts),
    .probe = npy_probe,
    .open = npy_open,
    .read = npy_read,
    .read_part = npy_read_part,
    .label = npy_label,
    .where = npy_where,
    .groups = npy_groups,
    .hash = npy_hash,
    .close = npy_close,
};
