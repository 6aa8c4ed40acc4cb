/*
 * data_hdf5_open.c: makes one data set out of HDF5 files: finds the files, the data sets in them, and their shapes.
 *
 * It runs when the data set is opened. Names that are not given are searched in the first file. Every file must have
 * the same data sets, equal except for their number of rows. Only headers are read here; data_hdf5_index.c reads labels
 * and conditions.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_file.h"
#include "data/data_inflate.h"
#include "data/hdf5/data_hdf5.h"

#if CVY_HAVE_HDF5
#include <glob.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_LEAST_BYTES = 1 << 16, BLOCK_USUAL_BYTES = 1 << 20 };
static const int64_t ROWS_MAX = (int64_t)1 << 40; /* of all files, so that their index stays far from an overflow */

/* ---- files ---- */

static cvy_status add_files(cvy_hdf5 *h, char *const *path, int64_t count)
{
    CVY_TRY(cvy_pool_alloc(h->pool, (size_t)count * sizeof *h->file, &h->file));
    for (int64_t i = 0; i < count; i++) {
        char *copy = NULL;
        CVY_TRY(cvy_pool_strdup(h->pool, path[i], &copy));
        h->file[i] = (cvy_h5_file){.path = copy, .fd = -1, .id = -1, .rows = -1};
    }
    h->nfile = count;
    return CVY_OK;
}

/* If `convoy convert` wrote the folder, all pieces must be there; otherwise the conversion was interrupted. */
static cvy_status check_pieces(const char *folder, char *const *name, int64_t count)
{
    long long pieces = 0, piece = 0, of = 0, there = 0;
    int end = 0;
    for (int64_t i = 0; i < count; i++) {
        end = 0;
        if (sscanf(name[i], "convoy-%5lld-of-%5lld.h5%n", &piece, &of, &end) == 2 && end > 0 && !name[i][end]) {
            pieces = CVY_MAX(pieces, of);
            there++;
        }
    }
    CVY_CHECK(there == pieces, CVY_E_FORMAT,
              "%s: holds %lld of %lld pieces: was the conversion interrupted? Run it again, and it continues", folder,
              there, pieces);
    return CVY_OK;
}

static cvy_status files_of_folder(cvy_hdf5 *h, const char *folder, cvy_reader_info *info)
{
    char **name = NULL;
    int64_t n = 0, kept = 0;
    cvy_passed passed = {0};
    CVY_TRY(cvy_file_list(h->pool, folder, &name, &n));
    for (int64_t i = 0; i < n; i++)
        if (name[i][0] != '.' && cvy_h5_is_file_name(name[i]))
            name[kept++] = name[i];
        else
            cvy_passed_add(&passed, NULL, name[i]);
    CVY_CHECK(kept > 0, CVY_E_FORMAT, "%s: holds no *.h5, *.hdf5, *.nc or *.nc4 among its %lld files", folder,
              (long long)n);
    CVY_TRY(check_pieces(folder, name, kept));
    CVY_TRY(cvy_splits_note(folder, "as one set", (const char *const *)name, kept, info));
    CVY_TRY(cvy_passed_note(&passed, folder, "file", "HDF5 files are *.h5, *.hdf5, *.nc and *.nc4", info));
    for (int64_t i = 0; i < kept; i++) {
        const char *path = NULL;
        CVY_TRY(cvy_data_path_join(h->pool, folder, name[i], &path));
        name[i] = (char *)path;
    }
    return add_files(h, name, kept);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static cvy_status find_files(cvy_hdf5 *h, const char *path, cvy_reader_info *info)
{
    glob_t found = {0};
    if (cvy_file_is_folder(path))
        return files_of_folder(h, path, info);
    if (cvy_file_exists(path))
        return add_files(h, &(char *){(char *)path}, 1);
    CVY_CHECK(strpbrk(path, "*?["), CVY_E_IO, "%s: no such file or folder", path);
    const int code = glob(path, GLOB_NOSORT, NULL, &found);
    cvy_status status = CVY_OK;
    if (code == GLOB_NOMATCH)
        status = cvy_error_set(CVY_E_IO, "%s: no file matches this pattern", path);
    else if (code != 0)
        status = cvy_error_set(CVY_E_IO, "%s: the files that match this pattern cannot be listed", path);
    if (status == CVY_OK) {
        qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, by_bytes);
        status = add_files(h, found.gl_pathv, (int64_t)found.gl_pathc);
    }
    globfree(&found);
    return status;
}

/* ---- a data set in a file ---- */

static cvy_status look_at_type(const cvy_hdf5 *h, hid_t set, hid_t type, cvy_h5_column *c, int is_first,
                               cvy_h5_packing *packing_out)
{
    cvy_h5_number number = {0};
    char text[sizeof c->type];
    const int encoded = c == &h->column[0] && cvy_h5_is_encoded(type);
    cvy_h5_type_text(type, text, sizeof text);
    CVY_CHECK(encoded || cvy_h5_number_of(type, &number), CVY_E_UNSUPPORTED, "data set %s holds %s, expected numbers%s",
              c->name, text, H5Tget_class(type) == H5T_COMPOUND ? ": write each field as a separate data set" : "");
    if (!encoded)
        CVY_TRY(cvy_h5_find_packing(set, c->name, &number, packing_out));
    if (is_first) {
        c->number = encoded ? (cvy_h5_number){.bytes = CVY_H5_REFERENCE_BYTES} : number;
        c->encoded = encoded;
        memcpy(c->type, text, sizeof c->type);
        c->row_bytes = encoded ? CVY_H5_REFERENCE_BYTES : 0;
    }
    c->number.is_byte &= number.is_byte;
    CVY_CHECK(c->encoded == encoded && c->number.kind == number.kind && c->number.big_endian == number.big_endian,
              CVY_E_FORMAT,
              "data set %s holds %s, but %s in %s: type, byte order and _Unsigned must be equal in all files", c->name,
              text, c->type, h->file[0].path);
    return CVY_OK;
}

/* Finds the axes of a data set in a file. c: the column as it is there, a copy of that of the first file if it is
 * another one. */
static cvy_status look_at_axes(cvy_hdf5 *h, hid_t set, int64_t file, int column, const cvy_shape *all, cvy_h5_column *c,
                               cvy_h5_packing *packing)
{
    const cvy_h5_column *first = &h->column[column];
    int samples = 0;
    const int is_same_ndim = file == 0 || all->ndim == c->ndim;
    c->ndim = all->ndim;
    memcpy(c->dim, all->dim, sizeof c->dim);
    if (c->encoded)
        return CVY_OK;
    if (file == 0) {
        CVY_TRY(cvy_h5_sample_axis(h, set, c, &samples));
        CVY_TRY(cvy_h5_shape_column(h, c, samples, column < h->nx));
    }
    if (is_same_ndim)
        CVY_TRY(cvy_h5_described_column(h, set, file, column, c, packing));
    CVY_CHECK(is_same_ndim && cvy_shape_equal(&c->shape, &first->shape), CVY_E_SHAPE,
              "data set %s is %s, other samples than the %s of %s", c->name, cvy_shape_text(all),
              cvy_h5_column_text(first), h->file[0].path);
    return CVY_OK;
}

static cvy_status look_at_shape(cvy_hdf5 *h, hid_t set, hid_t space, int64_t file, int column, cvy_h5_column *c,
                                cvy_h5_packing *packing)
{
    cvy_h5_file *f = &h->file[file];
    cvy_shape all;
    const int ndim = cvy_h5_shape_of(space, &all);
    const char *text = cvy_shape_text(&all);
    CVY_CHECK(ndim >= 1 && ndim <= CVY_NDIM_MAX, CVY_E_SHAPE,
              "data set %s has %d axes, expected 1 to %d, one of which counts the samples", c->name, CVY_MAX(ndim, 0),
              CVY_NDIM_MAX);
    CVY_CHECK(!c->encoded || ndim == 1, CVY_E_SHAPE, "data set %s: pictures of shape %s, expected one axis", c->name,
              text);
    CVY_TRY(look_at_axes(h, set, file, column, &all, c, packing));
    const int64_t rows = all.dim[c->axis];
    if (f->rows < 0)
        f->rows = rows;
    CVY_CHECK(f->rows == rows, CVY_E_SHAPE, "data set %s is %s: %lld samples, but %s has %lld", c->name, text,
              (long long)rows, h->column[0].name, (long long)f->rows);
    CVY_CHECK(rows <= ROWS_MAX - h->nrows, CVY_E_UNSUPPORTED,
              "data set %s is %s: %lld samples and %lld of the files before it, expected at most %lld in all", c->name,
              text, (long long)rows, (long long)h->nrows, (long long)ROWS_MAX);
    return CVY_OK;
}

/* Whether the data set is in this very file (not behind a link), so that we may read it by position. */
static int lies_in(const cvy_h5_file *f, hid_t set)
{
    char name[4096] = "";
    const hid_t file = H5Iget_file_id(set);
    const ssize_t n = file < 0 ? -1 : H5Fget_name(file, name, sizeof name);
    if (file >= 0)
        H5Fclose(file);
    return n > 0 && (size_t)n < sizeof name && strcmp(name, f->path) == 0;
}

/* Whether chunks can be unpacked without the library. Chunks at the edge may be stored without the filters, which their
 * masks do not say: the library reads such sets. */
static int filters_are_ours(hid_t plist, cvy_h5_storage *p)
{
    const int n = H5Pget_nfilters(plist);
#if H5_VERSION_GE(1, 10, 5)
    unsigned options = 0;
    if (H5Pget_chunk_opts(plist, &options) < 0 || options != 0)
        return 0;
#endif
    for (int i = 0; i < n; i++) {
        unsigned flags = 0, config = 0;
        size_t values = 0;
        const H5Z_filter_t filter = H5Pget_filter2(plist, (unsigned)i, &flags, &values, NULL, 0, NULL, &config);
        if (filter == H5Z_FILTER_SHUFFLE && i == 0)
            p->shuffled = 1;
        else if (CVY_HAVE_LIBDEFLATE && filter == H5Z_FILTER_DEFLATE && !p->deflated && !p->summed)
            p->deflated = 1;
        else if (filter == H5Z_FILTER_FLETCHER32 && !p->summed)
            p->summed = 1;
        else
            return 0;
    }
    return n >= 0 && H5_VERSION_GE(1, 10, 5);
}

/* Whether the set has its place in the file. Before that the library gives an offset behind a user block all the same.
 */
static int is_written(hid_t set)
{
    H5D_space_status_t allocated = H5D_SPACE_STATUS_NOT_ALLOCATED;
    return H5Dget_space_status(set, &allocated) >= 0 && allocated == H5D_SPACE_STATUS_ALLOCATED;
}

/* With a user block at the start of the file, addresses of chunks count from its end. This is rare, so the library
 * reads such files. */
static int has_user_block(hid_t file)
{
    hsize_t bytes = 1;
    const hid_t made = H5Fget_create_plist(file);
    const int known = H5Pget_userblock(made, &bytes) >= 0;
    H5Pclose(made);
    return !known || bytes > 0;
}

/* Whether references to lists of bytes have their usual size, and count from the start of the file. */
static int has_usual_references(hid_t file)
{
    size_t address = 0, size = 0;
    const hid_t made = H5Fget_create_plist(file);
    const int known = H5Pget_sizes(made, &address, &size) >= 0;
    H5Pclose(made);
    return known && address == 8 && size == 8 && !has_user_block(file);
}

/* Returns an error if the data set is made to fill the memory: blocks of it are large, and its chunks unpack to far
 * more than their bytes. Chunks that nobody wrote do not count, and are not looked for if the file justifies all rows.
 */
static cvy_status check_ratio(hid_t set, const cvy_h5_file *f, const cvy_h5_column *c, const cvy_h5_storage *p)
{
#if H5_VERSION_GE(1, 10, 5)
    const double block = (double)p->block_rows * (double)c->row_bytes, all = (double)f->rows * (double)c->row_bytes;
    double chunk = c->number.bytes;
    hsize_t count = 0;
    for (int i = 0; i < c->ndim; i++)
        chunk *= (double)p->chunk[i];
    if (CVY_MAX(block, chunk) <= CVY_INFLATE_LARGE || all <= CVY_INFLATE_RATIO_MAX * (double)f->bytes)
        return CVY_OK;
    const hid_t space = H5Dget_space(set); /* HDF5 1.10 does not take H5S_ALL */
    const int known = H5Dget_num_chunks(set, space, &count) >= 0;
    cvy_h5_release(space);
    if (!known)
        return CVY_OK;
    const cvy_status status = cvy_inflate_check_ratio((int64_t)H5Dget_storage_size(set),
                                                      (int64_t)CVY_MIN((double)count * chunk, 0x1p62), CVY_H5_UNPACK);
    if (status != CVY_OK)
        return cvy_error_prefix(status, "data set %s", c->name);
#else
    (void)set, (void)f, (void)c, (void)p;
#endif
    return CVY_OK;
}

static cvy_status find_storage(hid_t file, hid_t set, hid_t plist, const cvy_h5_file *f, const cvy_h5_column *c,
                               cvy_h5_storage *p)
{
    hsize_t chunk[H5S_MAX_RANK];
    const H5D_layout_t layout = H5Pget_layout(plist);
    *p = (cvy_h5_storage){.kind = CVY_H5_LIBRARY};
    CVY_TRY(cvy_h5_check_parts(set, c->name));
    CVY_TRY(cvy_h5_check_filters(set, c->name));
    const int ours = c->axis == 0 && lies_in(f, set) && (!c->encoded || has_usual_references(file));
    const haddr_t offset = layout == H5D_CONTIGUOUS && ours && is_written(set) ? H5Dget_offset(set) : HADDR_UNDEF;
    if (offset != HADDR_UNDEF) {
        p->kind = CVY_H5_PLAIN;
        p->offset = (int64_t)offset;
        CVY_CHECK(
            offset <= (haddr_t)f->bytes && f->rows <= (f->bytes - p->offset) / (int64_t)c->row_bytes, CVY_E_FORMAT,
            "data set %s begins at byte %lld and has %lld samples of %zu bytes, but the file ends at %lld: truncated",
            c->name, (long long)p->offset, (long long)f->rows, c->row_bytes, (long long)f->bytes);
        return CVY_OK;
    }
    int64_t rows = 1;
    size_t least = BLOCK_USUAL_BYTES;
    if (layout == H5D_CHUNKED && H5Pget_chunk(plist, c->ndim, chunk) == c->ndim) {
        for (int i = 0; i < c->ndim; i++)
            p->chunk[i] = (int64_t)chunk[i];
        rows = p->chunk[c->axis];
        least = BLOCK_LEAST_BYTES; /* a block has several small chunks */
        if (ours && !has_user_block(file) && filters_are_ours(plist, p))
            p->kind = CVY_H5_CHUNKS;
    }
    const int64_t each = (int64_t)(least / CVY_MIN(c->row_bytes, least)) / rows;
    p->block_rows = rows * CVY_MAX(each, 1);
    CVY_CHECK(p->block_rows <= ((int64_t)1 << 32) / (int64_t)c->row_bytes, CVY_E_UNSUPPORTED,
              "data set %s: chunks of %lld samples of %zu bytes; write smaller ones, by h5repack -l", c->name,
              (long long)rows, c->row_bytes);
    return layout == H5D_CHUNKED ? check_ratio(set, f, c, p) : CVY_OK;
}

/* Whether rows are read in another way than in the first file. */
static int is_other_layout(const cvy_h5_column *a, const cvy_h5_column *b)
{
    return a->axis != b->axis || a->base != b->base || memcmp(a->stride, b->stride, sizeof a->stride) != 0 ||
           memcmp(a->roll, b->roll, sizeof a->roll) != 0;
}

static cvy_status look_at_column(cvy_hdf5 *h, int64_t file, int number)
{
    cvy_h5_file *f = &h->file[file];
    cvy_h5_column *c = &h->column[number], other, *copy = NULL, *own = file == 0 ? c : &other;
    const hid_t set = cvy_h5_set_id(h, f, number);
    if (set < 0)
        return cvy_h5_no_set(h->pool, f->id, c->name);
    const hid_t type = H5Dget_type(set), space = H5Dget_space(set), plist = H5Dget_create_plist(set);
    cvy_h5_storage *p = &f->storage[number];
    cvy_h5_packing packing = {0};
    cvy_status status = look_at_type(h, set, type, c, file == 0, &packing);
    other = *c;
    if (status == CVY_OK)
        status = look_at_shape(h, set, space, file, number, own, &packing);
    if (status == CVY_OK)
        status = find_storage(f->id, set, plist, f, own, p);
    H5Pclose(plist);
    H5Sclose(space);
    H5Tclose(type);
    CVY_TRY(status);
    c->number.is_byte &= own->number.is_byte;
    p->packing = packing;
    if (own == c || !is_other_layout(own, c))
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(h->pool, sizeof *copy, &copy));
    *copy = *own;
    p->own = copy;
    return CVY_OK;
}

/* Makes room for the storage and the handles of all columns. */
static cvy_status make_slots(cvy_hdf5 *h, cvy_h5_file *f)
{
    CVY_TRY(cvy_pool_alloc(h->pool, (size_t)h->ncolumn * sizeof *f->storage, &f->storage));
    CVY_TRY(cvy_pool_alloc(h->pool, (size_t)h->ncolumn * sizeof *f->set, &f->set));
    for (int k = 0; k < h->ncolumn; k++)
        f->set[k] = -1;
    return CVY_OK;
}

static cvy_status look_at_file(cvy_hdf5 *h, int64_t number, const char *label)
{
    cvy_h5_file *f = &h->file[number];
    CVY_TRY(make_slots(h, f));
    cvy_status status = cvy_h5_pin(h, number);
    if (status != CVY_OK)
        return cvy_error_prefix(status, "%s", f->path);
    cvy_h5_enter();
    if (cvy_h5_file_id(f) < 0)
        status = cvy_h5_cannot_open(f->path);
    if (status == CVY_OK && number > 0)
        status = cvy_h5_check_names(h, f->id, label);
    for (int i = 0; i < h->ncolumn && status == CVY_OK; i++)
        status = look_at_column(h, number, i);
    cvy_h5_leave();
    cvy_h5_unpin(h, number);
    f->first = h->nrows;
    h->nrows += CVY_MAX(f->rows, 0);
    return status == CVY_OK ? status : cvy_error_prefix(status, "%s", f->path);
}

/* ---- the whole data set ---- */

/* Joins the shapes of several inputs or targets. */
static cvy_status join_columns(cvy_hdf5 *h, cvy_reader_info *info)
{
    const cvy_h5_column *x = &h->column[0], *y = &h->column[h->nx];
    h->shape = x->shape;
    h->dtype = CVY_DTYPE_U8;
    for (int i = 0; i < h->nx; i++) {
        int fits = x[i].shape.ndim == x->shape.ndim;
        for (int k = 1; k < x->shape.ndim && fits; k++)
            fits = x[i].shape.dim[k] == x->shape.dim[k];
        CVY_CHECK((fits && !x[i].encoded) || h->nx == 1, CVY_E_SHAPE,
                  "%s: x: %s gives samples of %s, %s of %s: they cannot be joined as channels", h->file[0].path,
                  x->name, cvy_shape_text(&x->shape), x[i].name, cvy_shape_text(&x[i].shape));
        h->shape.dim[0] += i > 0 ? x[i].shape.dim[0] : 0;
        if (!x[i].number.is_byte && !x[i].encoded)
            h->dtype = CVY_DTYPE_F32;
    }
    for (int i = 0; i < h->ny; i++)
        h->y_elems += y[i].elems;
    info->has_y = h->ny > 0;
    info->y_shape = h->ny == 1 ? y->shape : (cvy_shape){1, {h->y_elems}};
    info->has_weight = h->weight >= 0;
    const cvy_h5_column *w = info->has_weight ? &h->column[h->weight] : NULL;
    CVY_CHECK(!w || w->elems == 1 || (h->y_elems > 0 && h->y_elems % w->elems == 0), CVY_E_SHAPE,
              "%s: weight: data set %s has %lld numbers per sample, expected one, or one for each position of y",
              h->file[0].path, w->name, (long long)w->elems);
    info->weight_shape = w && w->elems != 1 ? w->shape : (cvy_shape){0};
    info->dtype = h->dtype;
    info->shape = h->shape;
    return CVY_OK;
}

/* Lists of bytes are read one by one, whatever their references are in. */
static int64_t block_rows_of(const cvy_hdf5 *h, const cvy_h5_file *f)
{
    return h->column[0].encoded ? 0 : f->storage[0].block_rows;
}

/* Finds the blocks that a window shuffle keeps whole: the rows of a file that are read together, as far as they are
 * samples. */
static cvy_status find_blocks(const cvy_hdf5 *h, cvy_blocks *out)
{
    int64_t room = 0, number = 0, largest = 0;
    for (int64_t i = 0; i < h->nfile; i++) {
        const int64_t rows = block_rows_of(h, &h->file[i]);
        largest = CVY_MAX(largest, rows);
        room += h->file[i].rows / (rows > 1 ? rows : CVY_BLOCK_DEFAULT) + 1;
    }
    if (largest <= 1)
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(h->pool, (size_t)room * sizeof *out->first, &out->first));
    for (int64_t i = 0; i < h->nfile; i++) {
        const cvy_h5_file *f = &h->file[i];
        const int64_t own = block_rows_of(h, f), rows = own > 1 ? own : CVY_BLOCK_DEFAULT;
        for (int64_t row = 0; row < f->rows; row += rows) {
            while (number < h->nsamples && (h->selected ? h->selected[number] : number) < f->first + row)
                number++;
            if (number < h->nsamples)
                cvy_blocks_add(out, number);
        }
    }
    return CVY_OK;
}

/* Bytes of a column that are decompressed for one block of x. */
static size_t block_bytes(const cvy_h5_column *c, const cvy_h5_storage *x, const cvy_h5_storage *p)
{
    const int64_t rows = CVY_MAX(x->block_rows, 1), own = p->block_rows;
    if (own == 0)
        return 0;
    const int borders_meet = own > rows ? own % rows == 0 : rows % own == 0;
    return (size_t)((rows + own - 1) / own + !borders_meet) * (size_t)own * c->row_bytes;
}

/* The default limit has room for 34 blocks: two windows of 16, since a batch may need both, and two blocks that threads
 * are reading. */
static void limit_memory(cvy_hdf5 *h)
{
    const size_t least = (size_t)64 << 20, most = (size_t)512 << 20;
    size_t largest = 0;
    for (int64_t f = 0; f < h->nfile; f++) {
        const cvy_h5_storage *storage = h->file[f].storage;
        size_t bytes = 0;
        for (int i = 0; i < h->ncolumn; i++)
            bytes += block_bytes(&h->column[i], &storage[0], &storage[i]);
        largest = CVY_MAX(largest, bytes);
    }
    h->cache.limit = h->o->cache_mb > 0 ? (size_t)h->o->cache_mb << 20 : CVY_MIN(CVY_MAX(34 * largest, least), most);
}

/* Reads the attribute "shape" of a data set of encoded pictures, in which the writer notes the shape of the whole data
 * set. */
static cvy_status find_noted_shape(cvy_hdf5 *h)
{
    int64_t dim[3] = {0};
    int found = 0;
    CVY_TRY(cvy_h5_pin(h, 0));
    cvy_h5_enter();
    const hid_t set = cvy_h5_set_id(h, &h->file[0], 0);
    const hid_t at = set >= 0 && H5Aexists(set, "shape") > 0 ? H5Aopen(set, "shape", H5P_DEFAULT) : -1;
    if (at >= 0) {
        const hid_t space = H5Aget_space(at);
        found = H5Sget_simple_extent_npoints(space) == 3 && H5Aread(at, H5T_NATIVE_INT64, dim) >= 0;
        H5Sclose(space);
        H5Aclose(at);
    }
    H5Eclear2(H5E_DEFAULT);
    cvy_h5_leave();
    cvy_h5_unpin(h, 0);
    if (found && dim[0] > 0 && dim[0] <= 4 && dim[1] >= 0 && dim[2] >= 0)
        memcpy(h->noted, dim, sizeof dim);
    return CVY_OK;
}

/* A single target has a name, axes, and attributes such as its units. */
static cvy_status find_target(cvy_hdf5 *h, cvy_reader_info *info)
{
    if (h->ny != 1)
        return CVY_OK;
    const cvy_described *y = &h->described.y[0];
    const char *slash = strrchr(y->name, '/');
    CVY_TRY(cvy_pool_strdup(info->pool, slash ? slash + 1 : y->name, (char **)&info->y_name));
    memcpy(info->y_cf, y->cf, sizeof info->y_cf);
    for (int i = 0; i < y->ndim; i++)
        info->y_axis[i] = y->axis[i].name;
    return CVY_OK;
}

/* MATLAB stores arrays by columns, so their axes are seen in the opposite order. */
static cvy_status note_matlab(const cvy_hdf5 *h, cvy_reader_info *info)
{
    if (!cvy_h5_is_matlab(h->file[0].path))
        return CVY_OK;
    return cvy_reader_note(
        info,
        "%s: is a file of MATLAB, whose arrays have their axes in the opposite order here: %s is %s, "
        "of which axis %d counts the samples (`axes:` gives the order, such as NWH for an array of "
        "H, W, N in MATLAB)",
        h->file[0].path, h->column[0].name, cvy_h5_column_text(&h->column[0]), h->column[0].axis + 1);
}

cvy_status cvy_h5_load(cvy_hdf5 *h, const char *path, cvy_reader_info *info)
{
    const char *label = NULL;
    CVY_CHECK(!h->o->axes || !h->o->sample_axis, CVY_E_CONFIG,
              "axes: %s and sample_axis: %s both say which axis counts the samples; leave one of them out", h->o->axes,
              h->o->sample_axis);
    if (h->o->axes)
        CVY_TRY(cvy_h5_check_axes(h->o->axes));
    CVY_TRY(find_files(h, path, info));
    CVY_TRY(cvy_h5_choose_names(h, &label, info));
    CVY_TRY(cvy_h5_described_begin(h));
    cvy_status status = CVY_OK;
    for (int64_t i = 0; i < h->nfile && status == CVY_OK; i++)
        status = look_at_file(h, i, label);
    const cvy_status ended = cvy_h5_described_end(h, info);
    CVY_TRY(status);
    CVY_TRY(ended);
    CVY_TRY(join_columns(h, info));
    CVY_TRY(note_matlab(h, info));
    CVY_TRY(cvy_h5_note_names(h, label, info));
    CVY_TRY(find_target(h, info));
    CVY_TRY(cvy_h5_index(h, label, info));
    CVY_TRY(cvy_h5_read_groups(h));
    info->nsamples = h->nsamples;
    limit_memory(h);
    if (h->column[0].encoded)
        CVY_TRY(find_noted_shape(h));
    return find_blocks(h, &info->blocks);
}

#endif
