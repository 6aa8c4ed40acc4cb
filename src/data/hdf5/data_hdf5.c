/*
 * data_hdf5.c: reads HDF5 files as scientists write them: any data sets can be inputs, targets, labels and weights. The
 * source is a file, a folder, or all files that match a pattern.
 *
 * A sample is one row of each chosen data set. data_hdf5_block.c reads the row; this file converts it to f32 (pictures
 * stay u8) with channels first. Several inputs are joined along their first axis, several targets into one vector. See
 * data_hdf5.h for the other files. The loader's threads call the reader during training.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/hdf5/data_hdf5.h"

#include <string.h>

#include "base/base_file.h"
#include "base/base_hash.h"
#include "base/base_round.h"
#include "data/data_index.h"
#include "data/hdf5/data_hdf5_remote.h"

static const cvy_option hdf5_opts[] = {
    {"x", CVY_TYPE_TREE, CVY_FIELD(hdf5_opts, x), "", "", "",
     "data set of the input, or a list of them, joined as channels; found by usual names if not given"},
    {"y", CVY_TYPE_TREE, CVY_FIELD(hdf5_opts, y), "", "", "",
     "data set of real targets, or a list of them, joined into one vector; by default none"},
    {"label", CVY_TYPE_STRING, CVY_FIELD(hdf5_opts, label), "", "", "", "data set of class numbers; by default none"},
    {"weight", CVY_TYPE_STRING, CVY_FIELD(hdf5_opts, weight), "", "", "",
     "data set of weights of samples, or of their positions; by default none"},
    {"axes", CVY_TYPE_STRING, CVY_FIELD(hdf5_opts, axes), "", "", "",
     "what the axes of the input are, in their order: N samples, C channels, T, D, H, W, L, F"},
    {"sample_axis", CVY_TYPE_STRING, CVY_FIELD(hdf5_opts, sample_axis), "", "", "",
     "name of the axis that counts the samples; by default the unlimited one, or time, if axes have names, else the "
     "first one"},
    {"where", CVY_TYPE_STRING, CVY_FIELD(hdf5_opts, where), "", "", "",
     "condition on data sets of one axis that chooses samples, \"met > 50 and njet >= 2\""},
    {"mask", CVY_TYPE_STRING, CVY_FIELD(hdf5_opts, mask), "", "", "", "data set that is true for the samples to use"},
    {"group", CVY_TYPE_STRING, CVY_FIELD(hdf5_opts, group), "", "", "",
     "data set of what a sample belongs to, such as a patient or a time, for data.val: numbers or texts"},
    {"missing", CVY_TYPE_STRING, CVY_FIELD(hdf5_opts, missing), "", "", "",
     "number that takes the place of missing numbers of the input (fill values, NaN), or mean: that of the others in "
     "the same channel of the sample; by default they are faults"},
    {"classes", CVY_TYPE_INT, CVY_FIELD(hdf5_opts, classes), "0", "0..", "",
     "number of classes; 0: the largest label plus one"},
    {"class_per_file", CVY_TYPE_BOOL, CVY_FIELD(hdf5_opts, class_per_file), "false", "", "",
     "every file is a class with the name of the file"},
    {"channels", CVY_TYPE_CHOICE, CVY_FIELD(hdf5_opts, channels), "auto", "auto|grey|rgb", "",
     "channels of decoded pictures; auto: those of the first picture"},
    {"metadata", CVY_TYPE_CHOICE, CVY_FIELD(hdf5_opts, metadata), "check", "check|ignore", "",
     "what the files say beside their numbers (axes, coordinates, units): check brings it into agreement with the "
     "first "
     "file and with the training data, or refuses it; ignore reads the numbers as they are"},
    {"cache_mb", CVY_TYPE_INT, CVY_FIELD(hdf5_opts, cache_mb), "0", "0..", "MB",
     "memory for decompressed chunks, which are kept for their other samples; 0: what a window shuffle needs, 64 to "
     "512"},
    {"sandbox", CVY_TYPE_CHOICE, CVY_FIELD(hdf5_opts, sandbox), "auto", "auto|false|true", "",
     "let libhdf5 run in a process of its own, which a damaged file may crash; auto: if that process can be started"},
    {"sandbox_limit", CVY_TYPE_INT, CVY_FIELD(hdf5_opts, sandbox_limit), "60", "1..", "s",
     "processor time that libhdf5 may take for one request in that process; a damaged file may make it run forever"},
    {0},
};

/* The files are found as those of HDF5 are. Files of the older formats are left to this reader, for its message. */
static int netcdf_probe(const char *path)
{
    char head[4];
    const int is_classic = cvy_data_peek(path, head, sizeof head) == sizeof head && memcmp(head, "CDF", 3) == 0 &&
                           (head[3] == 1 || head[3] == 2 || head[3] == 5);
    return is_classic ? 100 : 0;
}

static int hdf5_probe(const char *path)
{
    char head[8];
    cvy_pool *pool = NULL;
    char **name = NULL;
    int64_t n = 0;
    int score = 0;
    if (!cvy_file_is_folder(path)) {
        if (cvy_h5_is_matlab(path) ||
            (cvy_data_peek(path, head, sizeof head) == sizeof head && memcmp(head, "\x89HDF\r\n\x1a\n", 8) == 0))
            return 100;
        return !cvy_h5_is_file_name(path) ? 0 : cvy_file_exists(path) ? 80 : strpbrk(path, "*?[") ? 90 : 0;
    }
    if (cvy_pool_create(&pool) != CVY_OK)
        return 0;
    if (cvy_file_list(pool, path, &name, &n) == CVY_OK)
        for (int64_t i = 0; i < n; i++)
            if (name[i][0] != '.' && cvy_h5_is_file_name(name[i]))
                score = 70;
    cvy_pool_destroy(&pool);
    return score;
}

#if CVY_HAVE_HDF5

/* ---- opening ---- */

static void hdf5_close(void *state)
{
    cvy_hdf5 *h = state;
    cvy_h5_remote_close(h);
    cvy_h5_close_files(h);
    cvy_h5_free_blocks(h);
    cvy_mem_free(&h->selected);
    cvy_mem_free(&h->label);
    cvy_groups_free(&h->groups);
    if (h->cache.filled_made)
        pthread_cond_destroy(&h->cache.filled);
    if (h->cache.lock_made)
        pthread_mutex_destroy(&h->cache.lock);
}

static cvy_status read_first(cvy_hdf5 *h, int64_t *dim)
{
    cvy_raw raw = {0};
    int64_t file = 0;
    while (file + 1 < h->nfile && h->file[file].rows == 0)
        file++;
    CVY_CHECK(h->file[file].rows > 0, CVY_E_FORMAT, "%s: holds no samples", h->file[file].path);
    cvy_status status = cvy_h5_encoded_get(h, file, 0, 0, &raw.x);
    if (status == CVY_OK) {
        const cvy_coding coding = cvy_picture_coding(raw.x.data, raw.x.bytes);
        status = coding == CVY_CODING_PLAIN
                     ? cvy_error_set(CVY_E_FORMAT, "data set %s: its first row is neither a JPEG nor a PNG",
                                     h->column[0].name)
                     : cvy_picture_read_header(coding, raw.x.data, raw.x.bytes, &dim[0], &dim[1], &dim[2]);
    }
    cvy_raw_free(&raw);
    return status == CVY_OK ? status : cvy_error_prefix(status, "%s", h->file[file].path);
}

static cvy_status hdf5_read(void *state, int64_t number, cvy_raw *raw);
static void hdf5_where(void *state, int64_t number, char *text, size_t room);

/* Finds the shape of a data set of encoded pictures. */
static cvy_status describe_pictures(cvy_hdf5 *h, cvy_reader_info *info)
{
    int64_t dim[3] = {h->noted[0], h->noted[1], h->noted[2]};
    if (dim[0] == 0)
        CVY_TRY(read_first(h, dim));
    info->shape = (cvy_shape){3, {h->o->channels == 1 ? 1 : h->o->channels == 2 ? 3 : dim[0], dim[1], dim[2]}};
    info->dtype = CVY_DTYPE_U8;
    info->varying = 1;
    /* each fault may cost the process of the reader */
    return cvy_pictures_look(
        &(cvy_pictures){.read = hdf5_read, .where = hdf5_where, .state = h, .count = info->nsamples, .gives_up = 1},
        info->shape.dim[0] == 1 ? 1 : 3, h->o->channels == 0, info);
}

/* Opens the files in a process of their own, or here. */
static cvy_status load(cvy_hdf5 *h, const char *path, cvy_reader_info *info)
{
    char *note = NULL;
    if (h->o->sandbox == CVY_H5_SANDBOX_OFF)
        return cvy_h5_load(h, path, info);
    const cvy_status status = cvy_h5_remote_load(h, path, info);
    if (status != CVY_NOT_APPLICABLE)
        return status;
    CVY_TRY(cvy_pool_printf(info->pool, &note,
                            "%s is read without a process of its own for libhdf5, so a damaged file may end this run: "
                            "%s (data.sandbox: true makes this an error, false accepts it)",
                            path, cvy_error_text()));
    info->note = note;
    return cvy_h5_load(h, path, info);
}

static cvy_status hdf5_open(const cvy_reader_args *args, cvy_reader_info *info, void **state_out)
{
    cvy_hdf5 *h = NULL;
    CVY_CHECK(args->path, CVY_E_CONFIG,
              "formats hdf5 and netcdf need a path: a file, a folder of them, or a pattern like runs/*.h5");
    CVY_TRY(cvy_pool_alloc(info->pool, sizeof *h, &h));
    h->pool = info->pool;
    h->o = args->options;
    h->cache.lock_made = pthread_mutex_init(&h->cache.lock, NULL) == 0;
    h->cache.filled_made = pthread_cond_init(&h->cache.filled, NULL) == 0;
    cvy_status status =
        h->cache.lock_made && h->cache.filled_made ? CVY_OK : cvy_error_set(CVY_E_MEMORY, "cannot make a lock");
    if (status == CVY_OK)
        status = cvy_missing_parse(h->o->missing, &h->missing);
    h->like = args->described;
    h->of_like = args->of_described;
    h->instead = h->missing.is_on ? &h->missing.value : NULL;
    if (status == CVY_OK)
        status = load(h, args->path, info);
    if (status == CVY_OK && h->column[0].encoded)
        status = describe_pictures(h, info);
    if (status != CVY_OK)
        hdf5_close(h);
    else
        *state_out = h;
    return status;
}

/* ---- reading ---- */

struct position { /* where a sample is */
    int64_t file, row;
};

static struct position find_row(const cvy_hdf5 *h, int64_t number)
{
    const int64_t row = h->selected ? h->selected[number] : number;
    int64_t low = 0, high = h->nfile - 1; /* search for the last file that begins at or before row */
    while (low < high) {
        const int64_t middle = (low + high + 1) / 2;
        if (h->file[middle].first <= row)
            low = middle;
        else
            high = middle - 1;
    }
    return (struct position){low, row - h->file[low].first};
}

/* Copies n numbers of `elem` bytes (1 or 4) that are `step` numbers apart. */
static void gather(const void *in, int64_t from, int64_t step, int64_t n, size_t elem, void *out, int64_t to)
{
    if (elem == 1)
        for (int64_t i = 0; i < n; i++)
            ((uint8_t *)out)[to + i] = ((const uint8_t *)in)[from + i * step];
    else
        for (int64_t i = 0; i < n; i++)
            ((float *)out)[to + i] = ((const float *)in)[from + i * step];
}

/* Brings a row of numbers from their order in the file to the order of the shape. */
static void permute(const cvy_h5_column *c, const void *in, size_t elem, void *out)
{
    const int last = c->shape.ndim - 1;
    const int64_t n = c->shape.dim[last], step = c->stride[last], first = c->roll[last];
    int64_t k[CVY_NDIM_MAX] = {0}, to = 0;
    for (;;) {
        int64_t from = c->base;
        for (int i = 0; i < last; i++)
            from += (k[i] + c->roll[i]) % c->shape.dim[i] * c->stride[i];
        gather(in, from + first * step, step, n - first, elem, out, to);
        gather(in, from, step, first, elem, out, to + n - first);
        to += n;
        int i = last - 1;
        while (i >= 0 && ++k[i] == c->shape.dim[i])
            k[i--] = 0;
        if (i < 0)
            return;
    }
}

/* Working memory for a row as it is stored, followed by its f32 numbers if they have another order there. */
static size_t work_bytes(const cvy_h5_column *c, int as_is)
{
    return cvy_round_to_line(c->row_bytes) + (c->permuted && !as_is ? (size_t)c->elems * sizeof(float) : 0);
}

/* Reads a row as f32, or as_is, into the order of the shape. work has work_bytes(). */
static cvy_status read_row(cvy_hdf5 *h, struct position at, int column, int as_is, const float *instead, void *work,
                           void *out)
{
    const cvy_h5_column *c = cvy_h5_column_in(h, at.file, column);
    cvy_h5_row row;
    float *flat = c->permuted ? (float *)(void *)((char *)work + cvy_round_to_line(c->row_bytes)) : out;
    CVY_TRY(cvy_h5_row_get(h, at.file, column, at.row, work, &row));
    cvy_status status = CVY_OK;
    if (!as_is)
        status = cvy_h5_unpack(&h->file[at.file].storage[column].packing, c, row.data, instead, flat);
    else if (!c->permuted)
        memcpy(out, row.data, c->row_bytes);
    if (c->permuted && status == CVY_OK)
        permute(c, as_is ? row.data : flat, as_is ? 1 : sizeof(float), out);
    cvy_h5_row_put(h, &row);
    return status;
}

/* Reads one input's part of x. */
static cvy_status read_part(cvy_hdf5 *h, struct position at, int column, cvy_bytes *work, void *out)
{
    const cvy_h5_column *c = cvy_h5_column_in(h, at.file, column);
    const int as_is = h->dtype == CVY_DTYPE_U8;
    CVY_TRY(cvy_bytes_need(work, work_bytes(c, as_is)));
    CVY_TRY(read_row(h, at, column, as_is, h->instead, work->data, out));
    if (!h->missing.is_mean || as_is)
        return CVY_OK;
    const cvy_status status =
        cvy_missing_fill(&h->missing, c->shape.ndim > 1 ? c->shape.dim[0] : 1, c->elems, "the data set", out);
    return status == CVY_OK ? status : cvy_error_prefix(status, "data set %s", c->name);
}

static cvy_status read_one(cvy_hdf5 *h, struct position at, int column, cvy_bytes *work, float *out)
{
    CVY_TRY(cvy_bytes_need(work, work_bytes(cvy_h5_column_in(h, at.file, column), 0)));
    return read_row(h, at, column, 0, NULL, work->data, out);
}

/* Reads an encoded picture, or an uncompressed one (planes of bytes) among encoded ones. */
static cvy_status read_picture(cvy_hdf5 *h, struct position at, cvy_raw *raw)
{
    float coding = 0, extent[3] = {0};
    size_t bytes = 1;
    CVY_TRY(cvy_h5_encoded_get(h, at.file, 0, at.row, &raw->x));
    raw->coding = cvy_picture_coding(raw->x.data, raw->x.bytes);
    if (h->coding >= 0) {
        CVY_CHECK(h->column[h->coding].elems == 1 && h->column[h->extent].elems == 3, CVY_E_FORMAT,
                  "coding and shape have %lld and %lld numbers per sample, expected 1 and 3",
                  (long long)h->column[h->coding].elems, (long long)h->column[h->extent].elems);
        CVY_TRY(read_one(h, at, h->coding, &raw->y, &coding));
        CVY_TRY(read_one(h, at, h->extent, &raw->y, extent));
        CVY_CHECK(coding == 0 || coding == (float)raw->coding, CVY_E_FORMAT, "coding is %g, but the picture's is %d",
                  (double)coding, (int)raw->coding);
        if (coding == 0)
            raw->coding = CVY_CODING_PLAIN;
    }
    if (raw->coding != CVY_CODING_PLAIN)
        return CVY_OK;
    CVY_CHECK(h->coding >= 0, CVY_E_FORMAT, "%zu bytes that are neither a JPEG nor a PNG", raw->x.bytes);
    raw->dtype = CVY_DTYPE_U8;
    raw->shape.ndim = 3;
    for (int i = 0; i < 3; i++) {
        CVY_CHECK(extent[i] >= 1 && extent[i] <= CVY_PICTURE_SIDE_MAX, CVY_E_FORMAT, "a picture with an axis of %g",
                  (double)extent[i]);
        raw->shape.dim[i] = (int64_t)extent[i];
        CVY_TRY(cvy_size_mul(bytes, (size_t)raw->shape.dim[i], &bytes));
    }
    CVY_CHECK(bytes == raw->x.bytes, CVY_E_FORMAT, "%zu bytes for a picture of %s", raw->x.bytes,
              cvy_shape_text(&raw->shape));
    return CVY_OK;
}

static cvy_status read_x(cvy_hdf5 *h, struct position at, cvy_raw *raw)
{
    const size_t elem = cvy_dtype_bytes(h->dtype);
    raw->coding = CVY_CODING_PLAIN;
    raw->dtype = h->dtype;
    raw->shape = h->shape;
    CVY_TRY(cvy_bytes_need(&raw->x, (size_t)cvy_shape_elems(&h->shape) * elem));
    char *out = raw->x.data;
    for (int i = 0; i < h->nx; i++) {
        CVY_TRY(read_part(h, at, i, &raw->y, out));
        out += (size_t)h->column[i].elems * elem;
    }
    return CVY_OK;
}

/* The part of one of several inputs that are joined along their first axis. */
static cvy_field_part part_of_column(const cvy_h5_column *c, const cvy_field_part *x)
{
    cvy_field_part part = *x;
    part.shape.dim[0] = part.tile.whole.dim[0] = c->shape.dim[0];
    return part;
}

/* CVY_NOT_APPLICABLE: x must be read whole. work holds the numbers as they are stored, then a chunk of them. */
static cvy_status read_x_part(cvy_hdf5 *h, struct position at, const cvy_field_part *x, cvy_raw *raw)
{
    const size_t elem = cvy_dtype_bytes(h->dtype);
    const int as_is = h->dtype == CVY_DTYPE_U8;
    char *out = NULL;
    if (x->shape.dim[0] != x->tile.whole.dim[0] || h->missing.is_mean)
        return CVY_NOT_APPLICABLE;
    CVY_TRY(cvy_bytes_need(&raw->x, (size_t)cvy_shape_elems(&x->shape) * elem));
    out = raw->x.data;
    for (int i = 0; i < h->nx; i++) {
        const cvy_field_part part = part_of_column(&h->column[i], x);
        cvy_h5_column c = h->column[i];
        c.elems = cvy_shape_elems(&part.shape);
        c.row_bytes = (size_t)c.elems * (size_t)c.number.bytes;
        CVY_TRY(cvy_bytes_need(&raw->part, c.row_bytes));
        CVY_TRY(cvy_h5_row_part(h, at.file, i, at.row, &part, &raw->y, as_is ? out : raw->part.data));
        if (!as_is)
            CVY_TRY(cvy_h5_unpack(&h->file[at.file].storage[i].packing, &c, raw->part.data, h->instead,
                                  (float *)(void *)out));
        out += (size_t)c.elems * elem;
    }
    raw->coding = CVY_CODING_PLAIN;
    raw->dtype = h->dtype;
    raw->shape = x->shape;
    return CVY_OK;
}

/* y is one data set, or several that are joined into a vector, which has no parts. */
static cvy_status read_y_part(cvy_hdf5 *h, struct position at, const cvy_field_part *y, cvy_raw *raw)
{
    cvy_h5_column c = h->column[h->nx];
    if (h->ny != 1)
        return CVY_NOT_APPLICABLE;
    c.elems = cvy_shape_elems(&y->shape);
    c.row_bytes = (size_t)c.elems * (size_t)c.number.bytes;
    const size_t bytes = (size_t)c.elems * sizeof(float);
    CVY_TRY(cvy_bytes_need(&raw->part, c.row_bytes));
    CVY_TRY(cvy_h5_row_part(h, at.file, h->nx, at.row, y, &raw->y, raw->part.data));
    CVY_TRY(cvy_bytes_need(&raw->y, bytes));
    return cvy_h5_unpack(&h->file[at.file].storage[h->nx].packing, &c, raw->part.data, NULL, raw->y.data);
}

/* One number, or a mask. raw->y is working memory. */
static cvy_status read_weight(cvy_hdf5 *h, struct position at, cvy_raw *raw)
{
    const int64_t elems = h->column[h->weight].elems;
    if (elems != 1)
        CVY_TRY(cvy_bytes_need(&raw->mask, (size_t)elems * sizeof(float)));
    return read_one(h, at, h->weight, &raw->y, elems == 1 ? &raw->weight : raw->mask.data);
}

/* raw->y is working memory until y is read. Then it holds y, followed by room for one stored row. */
static cvy_status hdf5_read_part(void *state, int64_t number, const cvy_field_part *x_part,
                                 const cvy_field_part *y_part, cvy_raw *raw)
{
    cvy_hdf5 *h = state;
    const struct position at = find_row(h, number);
    cvy_status status =
        cvy_is_part(x_part) && !h->column[0].encoded ? read_x_part(h, at, x_part, raw) : CVY_NOT_APPLICABLE;
    if (status == CVY_NOT_APPLICABLE)
        status = h->column[0].encoded ? read_picture(h, at, raw) : read_x(h, at, raw);
    CVY_TRY(status);
    raw->label = h->label ? h->label[number] : 0;
    if (h->weight >= 0)
        CVY_TRY(read_weight(h, at, raw));
    status = cvy_is_part(y_part) ? read_y_part(h, at, y_part, raw) : CVY_NOT_APPLICABLE;
    if (status != CVY_NOT_APPLICABLE)
        return status;
    size_t stored = 0;
    const size_t bytes = (size_t)h->y_elems * sizeof(float);
    for (int i = h->nx; i < h->nx + h->ny; i++)
        stored = CVY_MAX(stored, work_bytes(cvy_h5_column_in(h, at.file, i), 0));
    CVY_TRY(cvy_bytes_need(&raw->y, cvy_round_to_line(bytes) + stored));
    float *y = raw->y.data;
    for (int i = h->nx; i < h->nx + h->ny; i++) {
        CVY_TRY(read_row(h, at, i, 0, NULL, (char *)raw->y.data + cvy_round_to_line(bytes), y));
        y += h->column[i].elems;
    }
    raw->y.bytes = bytes;
    return CVY_OK;
}

static cvy_status hdf5_read(void *state, int64_t number, cvy_raw *raw)
{
    return hdf5_read_part(state, number, NULL, NULL, raw);
}

static cvy_status hdf5_label(void *state, int64_t number, int32_t *label_out)
{
    const cvy_hdf5 *h = state;
    *label_out = h->label ? h->label[number] : 0;
    return CVY_OK;
}

static cvy_status hdf5_groups(void *state, cvy_groups *to)
{
    const cvy_hdf5 *h = state;
    return cvy_groups_append(to, &h->groups, 0, h->groups.n);
}

static void hdf5_where(void *state, int64_t number, char *text, size_t room)
{
    const cvy_hdf5 *h = state;
    const struct position at = find_row(h, number);
    snprintf(text, room, "%s, row %lld", h->file[at.file].path, (long long)at.row);
}

static void hdf5_hash(void *state, cvy_hasher *h)
{
    const cvy_hdf5 *d = state;
    for (int64_t i = 0; i < d->nfile; i++) {
        cvy_hash_add(h, &d->file[i].bytes, sizeof d->file[i].bytes);
        cvy_hash_add(h, &d->file[i].rows, sizeof d->file[i].rows);
    }
    for (int i = 0; i < d->ncolumn; i++)
        cvy_hash_add(h, d->column[i].name, strlen(d->column[i].name) + 1);
    if (d->selected)
        cvy_hash_add(h, d->selected, (size_t)d->nsamples * sizeof *d->selected);
    if (d->label)
        cvy_hash_add(h, d->label, (size_t)d->nsamples * sizeof *d->label);
}

#else

static cvy_status left_out(const char *path)
{
    CVY_FAIL(CVY_E_UNSUPPORTED, "%s: HDF5 is not part of this build: build it with libhdf5 (Debian: libhdf5-dev)",
             path ? path : "format hdf5");
}

static cvy_status hdf5_open(const cvy_reader_args *args, cvy_reader_info *info, void **state_out)
{
    (void)info, (void)state_out;
    return left_out(args->path);
}

static cvy_status hdf5_read(void *state, int64_t number, cvy_raw *raw)
{
    (void)state, (void)number, (void)raw;
    return left_out(NULL);
}

static void hdf5_where(void *state, int64_t number, char *text, size_t room)
{
    (void)state;
    snprintf(text, room, "row %lld", (long long)number);
}

#define hdf5_read_part NULL
#define hdf5_label NULL
#define hdf5_groups NULL
#define cvy_h5_coordinates NULL
#define hdf5_hash NULL
#define hdf5_close NULL
#endif

CVY_READER_DEFINE(hdf5) = {
    .name = "hdf5",
    .summary = "HDF5 files: any data sets as inputs, targets, labels and weights",
    .options = hdf5_opts,
    .options_size = sizeof(struct hdf5_opts),
    .mends = 1,
    .probe = hdf5_probe,
    .open = hdf5_open,
    .read = hdf5_read,
    .read_part = hdf5_read_part,
    .label = hdf5_label,
    .where = hdf5_where,
    .groups = hdf5_groups,
    .coordinates = cvy_h5_coordinates,
    .hash = hdf5_hash,
    .close = hdf5_close,
};

CVY_READER_DEFINE(netcdf) = {
    .name = "netcdf",
    .summary = "NetCDF-4 files: any variables as inputs, targets, labels and weights",
    .options = hdf5_opts,
    .options_size = sizeof(struct hdf5_opts),
    .mends = 1,
    .probe = netcdf_probe,
    .open = hdf5_open,
    .read = hdf5_read,
    .read_part = hdf5_read_part,
    .label = hdf5_label,
    .where = hdf5_where,
    .groups = hdf5_groups,
    .coordinates = cvy_h5_coordinates,
    .hash = hdf5_hash,
    .close = hdf5_close,
};
