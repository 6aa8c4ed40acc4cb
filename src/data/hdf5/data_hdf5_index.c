/*
 * data_hdf5_index.c: one pass over the one-axis data sets of all HDF5 files. It finds which rows are samples, and their
 * labels.
 *
 * It runs when the data set is opened. A row is a sample if the mask is true and the condition `where` holds. The
 * result has 8 bytes for each sample if there is a mask or condition, and 4 for each label. Everything else is read in
 * pieces and freed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/hdf5/data_hdf5.h"

#if CVY_HAVE_HDF5
#include <string.h>

#include "base/base_file.h"
#include "data/data_index.h"
#include "data/data_where.h"

enum { PIECE_ROWS = 16384, FLAT_MAX = 40, TEXTS_BYTES_MAX = 1 << 26 };

/* A data set with one number per row, in the file that is being read. */
struct flat {
    const char *name;
    hid_t set;
    int axis; /* that counts the rows: MATLAB's columns are [1, rows] here */
    cvy_h5_number number;
    cvy_h5_packing packing;
    double *value; /* [PIECE_ROWS] */
};

struct index_pass {
    cvy_hdf5 *h;
    cvy_where *where;
    struct flat flat[FLAT_MAX]; /* the data sets of the condition, then the mask and the label if they exist */
    int nflat, nwhere, mask, label;
    void *raw;    /* [PIECE_ROWS * 8] */
    int64_t room; /* entries allocated in selected and label */
    int64_t largest;
};

static int add_flat(struct index_pass *p, const char *name)
{
    p->flat[p->nflat] = (struct flat){.name = name, .set = -1};
    return p->nflat++;
}

/* ---- data sets of one axis ---- */

static cvy_status check_flat(const cvy_h5_file *f, struct flat *a)
{
    cvy_shape shape;
    char text[24];
    cvy_status status = CVY_OK;
    const hid_t type = H5Dget_type(a->set), space = H5Dget_space(a->set);
    const int ndim = cvy_h5_shape_of(space, &shape), known = cvy_h5_number_of(type, &a->number);
    int is_flat = ndim >= 1 && ndim <= CVY_NDIM_MAX;
    cvy_h5_type_text(type, text, sizeof text);
    if (known)
        status = cvy_h5_find_packing(a->set, a->name, &a->number, &a->packing);
    H5Sclose(space);
    H5Tclose(type);
    CVY_TRY(status);
    a->axis = ndim == 2 && shape.dim[0] == 1 && shape.dim[1] == f->rows;
    for (int i = 0; i < shape.ndim; i++)
        is_flat &= i == a->axis || shape.dim[i] == 1;
    CVY_CHECK(known, CVY_E_UNSUPPORTED, "data set %s holds %s, expected numbers%s", a->name, text,
              strcmp(text, "text") == 0
                  ? ": number the classes by numpy.unique(a, return_inverse=True)[1], and put their "
                    "names into the attribute class_names"
                  : "");
    CVY_CHECK(is_flat, CVY_E_SHAPE, "data set %s has %d axes and is %s, expected one number for each sample", a->name,
              CVY_MAX(ndim, 0), cvy_shape_text(&shape));
    CVY_CHECK(shape.dim[a->axis] == f->rows, CVY_E_SHAPE, "data set %s has %lld numbers for %lld samples", a->name,
              (long long)shape.dim[a->axis], (long long)f->rows);
    return CVY_OK;
}

static cvy_status open_flat(hid_t file, const cvy_h5_file *f, struct flat *a, cvy_pool *pool)
{
    a->set = cvy_h5_open_set(file, a->name);
    if (a->set < 0)
        return cvy_h5_no_set(pool, file, a->name);
    CVY_TRY(cvy_h5_check_parts(a->set, a->name));
    CVY_TRY(cvy_h5_check_filters(a->set, a->name));
    return check_flat(f, a);
}

static cvy_status open_flats(struct index_pass *p, cvy_h5_file *f)
{
    cvy_status status = CVY_OK;
    cvy_h5_enter();
    const hid_t id = cvy_h5_file_id(f);
    if (id < 0)
        status = cvy_h5_cannot_open(f->path);
    for (int i = 0; i < p->nflat && status == CVY_OK; i++)
        status = open_flat(id, f, &p->flat[i], p->h->pool);
    cvy_h5_leave();
    return status;
}

static void close_flats(struct index_pass *p)
{
    cvy_h5_enter();
    for (int i = 0; i < p->nflat; i++) {
        if (p->flat[i].set >= 0)
            H5Dclose(p->flat[i].set);
        p->flat[i].set = -1;
    }
    cvy_h5_leave();
}

static cvy_status read_piece(struct index_pass *p, int64_t first, int64_t n)
{
    for (int i = 0; i < p->nflat; i++) {
        struct flat *a = &p->flat[i];
        cvy_h5_enter();
        const cvy_status status = cvy_h5_read_rows(a->set, a->axis, first, n, p->raw);
        cvy_h5_leave();
        if (status != CVY_OK)
            return cvy_error_prefix(status, "data set %s", a->name);
        cvy_h5_swap(&a->number, p->raw, n);
        cvy_h5_unpack_f64(&a->packing, &a->number, p->raw, n, a->value);
    }
    return CVY_OK;
}

/* ---- rows ---- */

static cvy_status need_room(struct index_pass *p, int64_t more)
{
    cvy_hdf5 *h = p->h;
    if (h->nsamples + more <= p->room)
        return CVY_OK;
    const int64_t room = CVY_MAX(h->nsamples + more, CVY_MIN(2 * p->room, h->nrows)), old = p->room;
    if (p->nwhere > 0 || p->mask >= 0)
        CVY_TRY(cvy_mem_grow(&h->selected, (size_t)old * sizeof *h->selected, (size_t)room * sizeof *h->selected));
    if (p->label >= 0 || h->o->class_per_file)
        CVY_TRY(cvy_mem_grow(&h->label, (size_t)old * sizeof *h->label, (size_t)room * sizeof *h->label));
    p->room = room;
    return CVY_OK;
}

static int is_sample(const struct index_pass *p, int64_t r)
{
    double value[FLAT_MAX];
    if (p->mask >= 0 && p->flat[p->mask].value[r] == 0)
        return 0;
    for (int i = 0; i < p->nwhere; i++)
        value[i] = p->flat[i].value[r];
    return !p->where || cvy_where_holds(p->where, value);
}

static cvy_status keep_rows(struct index_pass *p, int64_t file, int64_t first, int64_t n)
{
    cvy_hdf5 *h = p->h;
    CVY_TRY(need_room(p, n));
    for (int64_t r = 0; r < n; r++) {
        if (!is_sample(p, r))
            continue;
        int32_t label = (int32_t)file;
        if (p->label >= 0) {
            const cvy_status status = cvy_label_of(p->flat[p->label].value[r], &label);
            if (status != CVY_OK)
                return cvy_error_prefix(status, "data set %s, row %lld", p->flat[p->label].name,
                                        (long long)(first + r));
        }
        if (h->label) {
            h->label[h->nsamples] = label;
            p->largest = CVY_MAX(p->largest, h->label[h->nsamples]);
        }
        if (h->selected)
            h->selected[h->nsamples] = h->file[file].first + first + r;
        h->nsamples++;
    }
    return CVY_OK;
}

static cvy_status index_file(struct index_pass *p, int64_t number)
{
    cvy_h5_file *f = &p->h->file[number];
    cvy_status status = cvy_h5_pin(p->h, number);
    if (status != CVY_OK)
        return cvy_error_prefix(status, "%s", f->path);
    status = open_flats(p, f);
    for (int64_t first = 0; first < f->rows && status == CVY_OK; first += PIECE_ROWS) {
        const int64_t n = CVY_MIN(f->rows - first, PIECE_ROWS);
        status = read_piece(p, first, n);
        if (status == CVY_OK)
            status = keep_rows(p, number, first, n);
    }
    close_flats(p);
    cvy_h5_unpin(p->h, number);
    return status == CVY_OK ? status : cvy_error_prefix(status, "%s", f->path);
}

/* ---- names of classes ---- */

/* Reads the strings of an attribute, of fixed or variable length. *count_out is 0 if it has no readable strings. */
static cvy_status read_texts(cvy_pool *pool, hid_t attribute, const char ***text_out, int64_t *count_out)
{
    const hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    const int variable = H5Tis_variable_str(type) > 0, is_text = H5Tget_class(type) == H5T_STRING;
    const int64_t count = H5Sget_simple_extent_npoints(space);
    const size_t each = variable ? sizeof(char *) : H5Tget_size(type);
    char *raw = NULL;
    const char **text = NULL;
    cvy_status status = CVY_OK;
    *count_out = 0;
    if (!is_text || count <= 0 || count > CVY_CLASSES_MAX || each > (size_t)TEXTS_BYTES_MAX / (size_t)count)
        goto out;
    CVY_TRY_OUT(cvy_mem_alloc((size_t)count * each, &raw));
    CVY_TRY_OUT(cvy_pool_alloc(pool, (size_t)count * sizeof *text, &text));
    if (H5Aread(attribute, type, raw) < 0)
        goto out;
    for (int64_t i = 0; i < count && status == CVY_OK; i++) {
        const char *at = raw + (size_t)i * each;
        char *copy = NULL;
        if (variable)
            memcpy(&at, raw + (size_t)i * each, sizeof at);
        status = cvy_pool_printf(pool, &copy, "%.*s", variable ? INT32_MAX : (int)each, at ? at : "");
        text[i] = copy;
    }
    if (variable)
        H5Dvlen_reclaim(type, space, H5P_DEFAULT, raw);
    *text_out = text;
    *count_out = count;
out:
    cvy_mem_free(&raw);
    H5Sclose(space);
    H5Tclose(type);
    return status;
}

/* Reads the attribute class_names of the label data set in the first file. */
static cvy_status read_class_names(cvy_hdf5 *h, const char *label, const char ***name_out, int64_t *count_out)
{
    cvy_status status = cvy_h5_pin(h, 0);
    *count_out = 0;
    if (status != CVY_OK)
        return cvy_error_prefix(status, "%s", h->file[0].path);
    cvy_h5_enter();
    const hid_t id = cvy_h5_file_id(&h->file[0]), set = id < 0 ? -1 : cvy_h5_open_set(id, label);
    if (set >= 0 && H5Aexists(set, "class_names") > 0) {
        const hid_t attribute = H5Aopen(set, "class_names", H5P_DEFAULT);
        if (attribute >= 0) {
            status = read_texts(h->pool, attribute, name_out, count_out);
            H5Aclose(attribute);
        }
    }
    if (set >= 0)
        H5Dclose(set);
    H5Eclear2(H5E_DEFAULT);
    cvy_h5_leave();
    cvy_h5_unpin(h, 0);
    return status;
}

static cvy_status names_of_files(cvy_hdf5 *h, const char ***name_out)
{
    const char **name = NULL;
    CVY_TRY(cvy_pool_alloc(h->pool, (size_t)h->nfile * sizeof *name, &name));
    for (int64_t i = 0; i < h->nfile; i++) {
        const char *base = cvy_file_base_name(h->file[i].path), *dot = strrchr(base, '.');
        char *copy = NULL;
        CVY_TRY(
            cvy_pool_printf(h->pool, &copy, "%.*s", dot && dot > base ? (int)(dot - base) : (int)strlen(base), base));
        name[i] = copy;
    }
    *name_out = name;
    return CVY_OK;
}

static cvy_status set_classes(const struct index_pass *p, const char *label, cvy_reader_info *info)
{
    cvy_hdf5 *h = p->h;
    const char **name = NULL;
    int64_t count = h->nfile;
    if (!label && !h->o->class_per_file)
        return CVY_OK;
    if (label)
        CVY_TRY(read_class_names(h, label, &name, &count));
    else
        CVY_TRY(names_of_files(h, &name));
    info->has_label = 1;
    CVY_TRY(cvy_classes_count(h->o->classes, CVY_MAX(count - 1, p->largest), h->file[0].path, &info->nclasses));
    info->class_name = count == info->nclasses ? name : NULL;
    return CVY_OK;
}

/* ---- the pass ---- */

static cvy_status run_pass(struct index_pass *p, const char *label)
{
    const struct hdf5_opts *o = p->h->o;
    p->mask = p->label = -1;
    if (o->where) {
        CVY_TRY(cvy_where_parse(p->h->pool, o->where, &p->where));
        p->nwhere = cvy_where_name_count(p->where);
        CVY_CHECK(p->nwhere > 0 && p->nwhere <= FLAT_MAX - 2, CVY_E_CONFIG, "where: %s: names %d data sets, at most %d",
                  o->where, p->nwhere, FLAT_MAX - 2);
    }
    for (int i = 0; i < p->nwhere; i++)
        add_flat(p, cvy_where_name(p->where, i));
    if (o->mask)
        p->mask = add_flat(p, o->mask);
    if (label)
        p->label = add_flat(p, label);
    if (p->nflat == 0 && !o->class_per_file) {
        p->h->nsamples = p->h->nrows;
        return CVY_OK;
    }
    CVY_TRY(cvy_mem_alloc(PIECE_ROWS * sizeof(double), &p->raw));
    for (int i = 0; i < p->nflat; i++)
        CVY_TRY(cvy_mem_alloc(PIECE_ROWS * sizeof(double), &p->flat[i].value));
    for (int64_t i = 0; i < p->h->nfile; i++)
        CVY_TRY(index_file(p, i));
    CVY_CHECK(p->h->nsamples > 0 || p->h->nrows == 0, CVY_E_FORMAT, "%s: none of the %lld rows is selected by %s%s%s",
              p->h->file[0].path, (long long)p->h->nrows,
              o->where ? "where: " : "mask: ", o->where ? o->where : o->mask,
              o->where && o->mask ? " and the mask" : "");
    return CVY_OK;
}

cvy_status cvy_h5_index(cvy_hdf5 *h, const char *label, cvy_reader_info *info)
{
    struct index_pass p = {.h = h};
    cvy_status status = run_pass(&p, label);
    if (status == CVY_OK)
        status = set_classes(&p, label, info);
    for (int i = 0; i < p.nflat; i++)
        cvy_mem_free(&p.flat[i].value);
    cvy_mem_free(&p.raw);
    return status;
}

#endif
