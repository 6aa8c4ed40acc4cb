/*
 * data_hdf5_write.c: writes a folder of HDF5 files which h5py and other tools can open, one file per piece.
 *
 *     x        [n, C, H, W] u8 or f32, in chunks of about 1 MB, deflated if `compress` is set
 *     label    [n] i32, with the attribute class_names; y [n, ..] f32; weight [n] f32
 *     encoded  replaces x if pictures vary in size: [n] lists of bytes, unchanged JPEG or PNG; also coding [n]
 *              (0 planes of bytes, 1 JPEG, 2 PNG) and shape [n, 3] (channels, height, width; 0: unknown)
 *
 * Only `convoy convert` calls it. The files hold no timestamps, so equal samples give equal files.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_file.h"
#include "data/data_writer.h"
#include "data/hdf5/data_hdf5.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct hdf5_write_opts {
    int64_t compress;
};

static const cvy_option hdf5_write_opts[] = {
    {"compress", CVY_TYPE_INT, CVY_FIELD(hdf5_write_opts, compress), "0", "0..9", "",
     "level of gzip for the chunks, 0 for none"},
    {0},
};

#if CVY_HAVE_HDF5

enum { CHUNK_BYTES = 1 << 20, ENCODED_ROWS = 1024 };
enum { X, LABEL, Y, WEIGHT, CODING, SHAPE, NSET };
static const char *const set_name[NSET] = {"x", "label", "y", "weight", "coding", "shape"};

/* A data set that is being written; rows are buffered until a chunk is full. */
struct out_set {
    hid_t id, type; /* type: of a number in memory */
    int ndim;
    hsize_t dim[CVY_NDIM_MAX]; /* dim[0]: rows; dim[1] and on: of one row */
    size_t row_bytes;
    int64_t chunk_rows, waiting, written;
    char *rows;
};

struct hdf5_writer {
    cvy_pool *pool;
    const char *folder;
    const cvy_reader_info *info;
    const char *const *class_name;
    int64_t npieces, count; /* count: samples for which the current piece has room */
    int level;
    char *path, *partial; /* of the current piece; NULL: there is none */
    hid_t file;
    int64_t nfailed; /* before the current piece */
    struct out_set set[NSET];
    struct out_set encoded;
};

/* ---- creating data sets ---- */

static cvy_status fault(const struct hdf5_writer *w, const char *name)
{
    return cvy_h5_nfailed() != w->nfailed
               ? cvy_h5_lost(w->partial)
               : cvy_h5_fault(CVY_E_IO, "%s: data set %s cannot be written", w->partial, name);
}

/* Creates the list of a data set's storage properties; the caller closes it. */
static hid_t layout(const struct hdf5_writer *w, const struct out_set *s, int is_list)
{
    hsize_t chunk[CVY_NDIM_MAX];
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    memcpy(chunk, s->dim, sizeof chunk);
    chunk[0] = (hsize_t)s->chunk_rows;
    H5Pset_chunk(list, s->ndim, chunk);
    H5Pset_obj_track_times(list, 0);
    if (is_list)
        return list;
    H5Pset_fill_time(list, H5D_FILL_TIME_NEVER);
    if (w->level > 0 && H5Tget_size(s->type) > 1)
        H5Pset_shuffle(list);
    if (w->level > 0)
        H5Pset_deflate(list, (unsigned)w->level);
    return list;
}

/* row: shape of a sample's row, ndim 0 for a single number; memory, stored: its type in memory and in the file. */
static cvy_status make_set(struct hdf5_writer *w, struct out_set *s, const char *name, hid_t memory, hid_t stored,
                           const cvy_shape *row, int is_list)
{
    *s = (struct out_set){.id = -1, .type = memory, .ndim = row->ndim + 1};
    CVY_CHECK(s->ndim <= CVY_NDIM_MAX, CVY_E_UNSUPPORTED, "%s: samples of %s have too many axes", name,
              cvy_shape_text(row));
    s->row_bytes = H5Tget_size(memory);
    s->dim[0] = (hsize_t)w->count;
    for (int i = 0; i < row->ndim; i++) {
        s->dim[i + 1] = (hsize_t)row->dim[i];
        CVY_TRY(cvy_size_mul(s->row_bytes, (size_t)row->dim[i], &s->row_bytes));
    }
    const int64_t rows = is_list ? ENCODED_ROWS : (int64_t)(CHUNK_BYTES / CVY_MAX(s->row_bytes, 1));
    s->chunk_rows = CVY_MAX(CVY_MIN(rows, w->count), 1);
    if (!is_list)
        CVY_TRY(cvy_mem_alloc((size_t)s->chunk_rows * s->row_bytes, &s->rows));
    const hid_t space = H5Screate_simple(s->ndim, s->dim, NULL), list = layout(w, s, is_list);
    s->id = H5Dcreate2(w->file, name, stored, space, H5P_DEFAULT, list, H5P_DEFAULT);
    const cvy_status status = s->id >= 0 ? CVY_OK : fault(w, name);
    H5Pclose(list);
    H5Sclose(space);
    return status;
}

static cvy_status write_rows(const struct hdf5_writer *w, struct out_set *s, const char *name, int64_t n,
                             const void *rows)
{
    const int good = cvy_h5_put_rows(s->id, s->type, s->ndim, s->dim, s->written, n, rows);
    s->written += n;
    return good ? CVY_OK : fault(w, name);
}

/* Buffers a row, and writes the buffer when it has a whole chunk. */
static cvy_status add_row(const struct hdf5_writer *w, int which, struct out_set *s, const void *row)
{
    memcpy(s->rows + (size_t)s->waiting * s->row_bytes, row, s->row_bytes);
    if (++s->waiting < s->chunk_rows)
        return CVY_OK;
    const int64_t n = s->waiting;
    s->waiting = 0;
    return write_rows(w, s, set_name[which], n, s->rows);
}

/* Writes the buffered rows, and shortens the data set to the rows that were written. */
static cvy_status end_set(const struct hdf5_writer *w, struct out_set *s, const char *name)
{
    if (s->id < 0)
        return CVY_OK;
    if (s->waiting > 0)
        CVY_TRY(write_rows(w, s, name, s->waiting, s->rows));
    s->waiting = 0;
    s->dim[0] = (hsize_t)s->written;
    const int bad = H5Dset_extent(s->id, s->dim) < 0, worse = H5Dclose(s->id) < 0;
    s->id = -1;
    cvy_mem_free(&s->rows);
    return bad || worse ? fault(w, name) : CVY_OK;
}

/* ---- attributes ---- */

static cvy_status put_attribute(const struct hdf5_writer *w, hid_t set, const char *name, hid_t type, int64_t count,
                                const void *data)
{
    return cvy_h5_put_attribute(set, name, type, type, count, data) ? CVY_OK : fault(w, name);
}

static cvy_status put_class_names(const struct hdf5_writer *w, hid_t set)
{
    const hid_t text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, H5T_VARIABLE);
    H5Tset_cset(text, H5T_CSET_UTF8);
    const cvy_status status = put_attribute(w, set, "class_names", text, w->info->nclasses, w->class_name);
    H5Tclose(text);
    return status;
}

/* ---- pieces ---- */

static cvy_status piece_path(const struct hdf5_writer *w, int64_t piece, const char *suffix, char **out)
{
    const size_t n = strlen(w->folder);
    return cvy_mem_printf(out, "%s%sconvoy-%05lld-of-%05lld.h5%s", w->folder, n && w->folder[n - 1] == '/' ? "" : "/",
                          (long long)piece, (long long)w->npieces, suffix);
}

static cvy_status make_sets(struct hdf5_writer *w)
{
    static const cvy_shape number = {0};
    const cvy_reader_info *i = w->info;
    const int u8 = i->dtype == CVY_DTYPE_U8;
    if (!i->varying)
        CVY_TRY(make_set(w, &w->set[X], "x", u8 ? H5T_NATIVE_UCHAR : H5T_NATIVE_FLOAT,
                         u8 ? H5T_STD_U8LE : H5T_IEEE_F32LE, &i->shape, 0));
    if (i->varying) {
        const hid_t list = H5Tvlen_create(H5T_STD_U8LE);
        const int64_t shape[3] = {i->shape.dim[0], i->shape.dim[1], i->shape.dim[2]};
        cvy_status status = make_set(w, &w->encoded, "encoded", list, list, &number, 1);
        w->encoded.type = list; /* close_piece() closes it */
        CVY_TRY(status);
        CVY_TRY(put_attribute(w, w->encoded.id, "shape", H5T_NATIVE_INT64, 3, shape));
        CVY_TRY(make_set(w, &w->set[CODING], "coding", H5T_NATIVE_UCHAR, H5T_STD_U8LE, &number, 0));
        CVY_TRY(make_set(w, &w->set[SHAPE], "shape", H5T_NATIVE_INT, H5T_STD_I32LE, &(cvy_shape){1, {3}}, 0));
    }
    if (i->has_label) {
        CVY_TRY(make_set(w, &w->set[LABEL], "label", H5T_NATIVE_INT, H5T_STD_I32LE, &number, 0));
        CVY_TRY(put_class_names(w, w->set[LABEL].id));
    }
    if (i->has_y)
        CVY_TRY(make_set(w, &w->set[Y], "y", H5T_NATIVE_FLOAT, H5T_IEEE_F32LE, &i->y_shape, 0));
    if (i->has_weight)
        CVY_TRY(make_set(w, &w->set[WEIGHT], "weight", H5T_NATIVE_FLOAT, H5T_IEEE_F32LE, &number, 0));
    return CVY_OK;
}

static cvy_status hdf5_begin_piece(void *state, int64_t piece, int64_t count)
{
    struct hdf5_writer *w = state;
    cvy_mem_free(&w->path);
    cvy_mem_free(&w->partial);
    CVY_TRY(piece_path(w, piece, "", &w->path));
    CVY_TRY(piece_path(w, piece, ".partial", &w->partial));
    w->count = CVY_MAX(count, 1);
    cvy_h5_enter();
    w->nfailed = cvy_h5_nfailed();
    w->file = cvy_h5_make_file(w->partial, 0);
    const cvy_status status = w->file < 0 ? cvy_h5_fault(CVY_E_IO, "%s: cannot be created", w->partial) : make_sets(w);
    cvy_h5_leave();
    return status;
}

static cvy_status write_encoded(struct hdf5_writer *w, const cvy_raw *raw)
{
    const uint8_t coding = (uint8_t)raw->coding;
    int32_t shape[3] = {0};
    int64_t dim[3] = {0};
    hvl_t bytes = {.len = raw->x.bytes, .p = raw->x.data};
    if (raw->coding == CVY_CODING_PLAIN) {
        CVY_CHECK(raw->dtype == CVY_DTYPE_U8 && raw->shape.ndim == 3, CVY_E_UNSUPPORTED,
                  "%s of %s among pictures of varying size, expected u8 of three axes", cvy_dtype_text(raw->dtype),
                  cvy_shape_text(&raw->shape));
        memcpy(dim, raw->shape.dim, sizeof dim);
        bytes.len = (size_t)cvy_shape_elems(&raw->shape);
    } else if (cvy_picture_read_header(raw->coding, raw->x.data, raw->x.bytes, &dim[0], &dim[1], &dim[2]) != CVY_OK) {
        memset(dim, 0, sizeof dim); /* a build without that decoder copies the picture without its shape */
    }
    for (int i = 0; i < 3; i++)
        shape[i] = (int32_t)dim[i];
    CVY_TRY(write_rows(w, &w->encoded, "encoded", 1, &bytes));
    CVY_TRY(add_row(w, CODING, &w->set[CODING], &coding));
    return add_row(w, SHAPE, &w->set[SHAPE], shape);
}

static cvy_status write_fields(struct hdf5_writer *w, const cvy_raw *raw)
{
    const cvy_reader_info *i = w->info;
    if (i->varying)
        CVY_TRY(write_encoded(w, raw));
    else
        CVY_TRY(add_row(w, X, &w->set[X], raw->x.data));
    if (i->has_label)
        CVY_TRY(add_row(w, LABEL, &w->set[LABEL], &raw->label));
    if (i->has_y)
        CVY_TRY(add_row(w, Y, &w->set[Y], raw->y.data));
    if (i->has_weight)
        CVY_TRY(add_row(w, WEIGHT, &w->set[WEIGHT], &raw->weight));
    return CVY_OK;
}

static cvy_status hdf5_write(void *state, int64_t number, const cvy_raw *raw)
{
    struct hdf5_writer *w = state;
    const cvy_reader_info *i = w->info;
    const int64_t written = i->varying ? w->encoded.written : w->set[X].written + w->set[X].waiting;
    CVY_CHECK(written < w->count, CVY_E_INTERNAL, "%s: sample %lld is one more than was announced", w->partial,
              (long long)number);
    CVY_CHECK(i->varying || (raw->coding == CVY_CODING_PLAIN && raw->dtype == i->dtype &&
                             cvy_shape_equal(&raw->shape, &i->shape)),
              CVY_E_UNSUPPORTED, "sample %lld is %s of %s, expected %s of %s as in the rest of the set",
              (long long)number, raw->coding == CVY_CODING_PLAIN ? cvy_dtype_text(raw->dtype) : "a picture",
              raw->coding == CVY_CODING_PLAIN ? cvy_shape_text(&raw->shape) : "its own size", cvy_dtype_text(i->dtype),
              cvy_shape_text(&i->shape));
    cvy_h5_enter();
    const cvy_status status = write_fields(w, raw);
    cvy_h5_leave();
    return status;
}

/* Closes the current piece. After an error its data sets are still open. */
static cvy_status close_piece(struct hdf5_writer *w)
{
    cvy_status status = CVY_OK;
    if (w->file < 0)
        return CVY_OK;
    cvy_h5_enter();
    struct out_set *all[NSET + 1] = {&w->encoded};
    for (int i = 0; i < NSET; i++)
        all[i + 1] = &w->set[i];
    for (int i = 0; i <= NSET; i++) {
        if (all[i]->id >= 0)
            H5Dclose(all[i]->id);
        all[i]->id = -1;
        cvy_mem_free(&all[i]->rows);
    }
    if (w->encoded.type > 0)
        H5Tclose(w->encoded.type);
    w->encoded.type = 0;
    if (H5Fclose(w->file) < 0)
        status = cvy_h5_fault(CVY_E_IO, "%s: cannot be written", w->partial);
    if (cvy_h5_nfailed() != w->nfailed)
        status = cvy_h5_lost(w->partial);
    w->file = -1;
    cvy_h5_leave();
    return status;
}

static cvy_status end_sets(struct hdf5_writer *w)
{
    CVY_TRY(end_set(w, &w->encoded, "encoded"));
    for (int i = 0; i < NSET; i++)
        CVY_TRY(end_set(w, &w->set[i], set_name[i]));
    return CVY_OK;
}

static cvy_status hdf5_end_piece(void *state)
{
    struct hdf5_writer *w = state;
    cvy_h5_enter();
    const cvy_status status = end_sets(w);
    cvy_h5_leave();
    CVY_TRY(status);
    CVY_TRY(close_piece(w));
    CVY_TRY(cvy_h5_publish(w->partial, w->path));
    cvy_mem_free(&w->partial);
    return CVY_OK;
}

static int hdf5_has_piece(void *state, int64_t piece)
{
    char *path = NULL;
    const int there = piece_path(state, piece, "", &path) == CVY_OK && cvy_file_exists(path);
    cvy_mem_free(&path);
    return there;
}

/* ---- start and end ---- */

/* Number of rows of a data set in a file; -1 if it cannot be read. */
static int64_t count_rows(const char *path, const char *name)
{
    hsize_t dim[H5S_MAX_RANK] = {0};
    int64_t rows = -1;
    const hid_t access = cvy_h5_access(), file = H5Fopen(path, H5F_ACC_RDONLY, access);
    const hid_t set = file < 0 ? -1 : H5Dopen2(file, name, H5P_DEFAULT), space = set < 0 ? -1 : H5Dget_space(set);
    if (space >= 0 && H5Sget_simple_extent_dims(space, dim, NULL) >= 1)
        rows = (int64_t)dim[0];
    if (space >= 0)
        H5Sclose(space);
    if (set >= 0)
        H5Dclose(set);
    if (file >= 0)
        H5Fclose(file);
    cvy_h5_release(access);
    return rows;
}

static cvy_status hdf5_finish(void *state, int64_t *nsamples_out, int64_t *bytes_out)
{
    const struct hdf5_writer *w = state;
    const char *name = w->info->varying ? "encoded" : "x";
    int64_t samples = 0, bytes = 0;
    for (int64_t p = 0; p < w->npieces; p++) {
        char *path = NULL;
        struct stat st = {0};
        CVY_TRY(piece_path(w, p, "", &path));
        cvy_h5_enter();
        const int64_t rows = count_rows(path, name);
        cvy_status status = rows < 0 ? cvy_h5_fault(CVY_E_FORMAT, "%s: cannot be read", path) : CVY_OK;
        cvy_h5_leave();
        if (status == CVY_OK && stat(path, &st) != 0)
            status = cvy_error_set(CVY_E_IO, "%s: %s", path, strerror(errno));
        cvy_mem_free(&path);
        CVY_TRY(status);
        samples += rows;
        bytes += st.st_size;
    }
    *nsamples_out = samples;
    *bytes_out = bytes;
    return CVY_OK;
}

static cvy_status hdf5_writer_open(const cvy_writer_args *args, void **state_out)
{
    struct hdf5_writer *w = NULL;
    const cvy_reader_info *i = args->info;
    const struct hdf5_write_opts *o = args->options;
    CVY_CHECK(i->dtype == CVY_DTYPE_U8 || i->dtype == CVY_DTYPE_F32, CVY_E_UNSUPPORTED,
              "samples of %s, expected u8 or f32", cvy_dtype_text(i->dtype));
    cvy_h5_enter();
    const int packs = H5Zfilter_avail(H5Z_FILTER_DEFLATE) > 0;
    cvy_h5_leave();
    CVY_CHECK(o->compress == 0 || packs, CVY_E_UNSUPPORTED,
              "compress: %lld, but this HDF5 library was built without gzip", (long long)o->compress);
    CVY_TRY(cvy_pool_alloc(args->pool, sizeof *w, &w));
    w->pool = args->pool;
    w->folder = args->path;
    w->info = i;
    w->class_name = args->class_name;
    w->npieces = args->npieces;
    w->level = (int)o->compress;
    w->file = w->encoded.id = -1;
    for (int k = 0; k < NSET; k++)
        w->set[k].id = -1;
    *state_out = w;
    return CVY_OK;
}

static void hdf5_writer_close(void *state)
{
    struct hdf5_writer *w = state;
    (void)close_piece(w);
    if (w->partial)
        unlink(w->partial);
    cvy_mem_free(&w->path);
    cvy_mem_free(&w->partial);
}

#else

static cvy_status hdf5_writer_open(const cvy_writer_args *args, void **state_out)
{
    (void)args, (void)state_out;
    CVY_FAIL(CVY_E_UNSUPPORTED, "HDF5 is not part of this build: build it with libhdf5 (Debian: libhdf5-dev)");
}

#define hdf5_has_piece NULL
#define hdf5_begin_piece NULL
#define hdf5_write NULL
#define hdf5_end_piece NULL
#define hdf5_finish NULL
#define hdf5_writer_close NULL
#endif

CVY_WRITER_DEFINE(hdf5) = {
    .name = "hdf5",
    .summary = "HDF5 files, as h5py and other tools read them",
    .options = hdf5_write_opts,
    .options_size = sizeof(struct hdf5_write_opts),
    .open = hdf5_writer_open,
    .has_piece = hdf5_has_piece,
    .begin_piece = hdf5_begin_piece,
    .write = hdf5_write,
    .end_piece = hdf5_end_piece,
    .finish = hdf5_finish,
    .close = hdf5_writer_close,
};
