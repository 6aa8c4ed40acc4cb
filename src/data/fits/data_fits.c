/*
 * data_fits.c: reads FITS files, in which astronomers keep images, spectra and tables.
 *
 * A sample is an image, a plane of a cube, or a row of a table. Targets, labels and weights are columns of the table,
 * or numbers of the header of the image. See data_fits.h for the other files. The loader's threads call the reader.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/fits/data_fits.h"

#include <stdio.h>
#include <string.h>

#include "base/base_file.h"
#include "base/base_hash.h"

static const cvy_option fits_opts[] = {
    {"hdu", CVY_TYPE_STRING, CVY_FIELD(fits_opts, hdu), "", "", "",
     "unit of the file: its number from 0, or its EXTNAME; by default the first image with pixels, or the first table"},
    {"cube", CVY_TYPE_BOOL, CVY_FIELD(fits_opts, cube), "false", "", "",
     "the slowest axis of each image (NAXISn) counts samples; otherwise an image is one sample"},
    {"x", CVY_TYPE_TREE, CVY_FIELD(fits_opts, x), "", "", "",
     "column of a table, or a list of them: the input, a sample for each row; by default samples are images"},
    {"y", CVY_TYPE_TREE, CVY_FIELD(fits_opts, y), "", "", "",
     "real targets: a column of the table, or a keyword of the image's header, or a list of them; by default none"},
    {"label", CVY_TYPE_STRING, CVY_FIELD(fits_opts, label), "", "", "",
     "column or keyword of the class, a number or a name; by default that of the folder or of the list"},
    {"weight", CVY_TYPE_STRING, CVY_FIELD(fits_opts, weight), "", "", "",
     "column or keyword of the weight of a sample; by default none"},
    {"group", CVY_TYPE_STRING, CVY_FIELD(fits_opts, group), "", "", "",
     "column or keyword of what a sample belongs to, such as a field of the sky, for data.val: a number or a text"},
    {"missing", CVY_TYPE_STRING, CVY_FIELD(fits_opts, missing), "", "", "",
     "number that takes the place of blank pixels and NaN in the input, or mean: that of the others in the same "
     "channel of the sample; by default they are faults"},
    {"metadata", CVY_TYPE_CHOICE, CVY_FIELD(fits_opts, metadata), "check", "check|ignore", "",
     "what the headers say beside the numbers (BUNIT, TUNITn, CTYPEn, CDELTn): check compares it with the first file "
     "and "
     "with the training data; ignore reads the numbers as they are"},
    {"outside", CVY_TYPE_BOOL, CVY_FIELD(fits_opts, outside), "false", "", "",
     "allows paths of a list that are absolute or leave its folder by .."},
    {"classes", CVY_TYPE_INT, CVY_FIELD(fits_opts, classes), "0", "0..", "",
     "number of classes; 0: the number of class names, or the largest label plus one"},
    {0},
};

static int fits_probe(const char *path)
{
    int is_empty = 0;
    if (!cvy_file_is_folder(path))
        return cvy_fits_is_file(path)                             ? 95
               : !cvy_fits_is_file_name(cvy_file_base_name(path)) ? 0
               : cvy_file_exists(path)                            ? 80
               : cvy_data_is_glob(path)                           ? 90
                                                                  : 0;
    return cvy_data_has_such_files(path, cvy_fits_is_file_name, &is_empty) ? 60 : 0;
}

#if CVY_HAVE_CFITSIO

enum { COMPARED_MAX = 1000 };                        /* images whose headers are compared when the set is opened */
static const int64_t SAMPLES_MAX = (int64_t)1 << 48; /* so that sums over files do not overflow */

/* ---- names ---- */

static cvy_status add_column(cvy_fits *f, const char *name)
{
    char *copy = NULL;
    CVY_CHECK(f->nx + f->ny < CVY_FITS_COLUMNS - 1, CVY_E_CONFIG, "more than %d columns are named",
              CVY_FITS_COLUMNS - 1);
    CVY_TRY(cvy_pool_strdup(f->pool, name, &copy));
    f->column[f->nx + f->ny] = (cvy_fits_column){.name = copy, .elems = 1, .shape = {1, {1}}};
    return CVY_OK;
}

/* Adds the columns of an option, a name or a list of names, and counts them. */
static cvy_status add_named(cvy_fits *f, const char *option, const cvy_tree *t, int *count)
{
    const int is_list = t && t->kind == CVY_TREE_LIST;
    for (int i = 0; t && i < (is_list ? t->count : 1); i++) {
        const cvy_tree *at = is_list ? t->child[i] : t;
        CVY_CHECK(at->kind == CVY_TREE_SCALAR && at->text && *at->text, CVY_E_CONFIG,
                  "%s: %s is a name or a list of names", cvy_tree_where(at), option);
        if (is_list)
            t->child[i]->used = 1;
        CVY_TRY(add_column(f, at->text));
        ++*count;
    }
    return CVY_OK;
}

/* ---- shapes ---- */

/* An image of two axes has one channel. */
static cvy_shape with_channel(cvy_shape s)
{
    return s.ndim == 2 ? (cvy_shape){3, {1, s.dim[0], s.dim[1]}} : s;
}

static cvy_status shape_of_table(cvy_fits *f, struct cvy_fits_handle *h)
{
    for (int i = 0; i < f->nx + f->ny + (f->weight >= 0); i++)
        CVY_TRY(cvy_fits_find_column(h, f->column[i].name, &f->column[i]));
    f->shape = with_channel(f->column[0].shape);
    for (int i = 1; i < f->nx; i++) {
        CVY_CHECK(f->column[0].shape.ndim == 1 && f->column[i].shape.ndim == 1, CVY_E_SHAPE,
                  "x: columns of %s and of %s cannot be joined", cvy_shape_text(&f->column[0].shape),
                  cvy_shape_text(&f->column[i].shape));
        f->shape.dim[0] += f->column[i].elems;
    }
    CVY_CHECK(f->weight < 0 || f->column[f->weight].elems == 1, CVY_E_SHAPE,
              "weight: column %s has %lld numbers in a row", f->o->weight,
              (long long)f->column[CVY_MAX(f->weight, 0)].elems);
    return CVY_OK;
}

/* The shape of a sample in this image. *rows_out: how many it has. */
static cvy_status shape_of_image(const cvy_fits *f, const cvy_fits_unit *unit, cvy_shape *out, int64_t *rows_out)
{
    cvy_shape s = unit->shape;
    *rows_out = 1;
    if (f->o->cube) {
        CVY_CHECK(s.ndim >= 2, CVY_E_SHAPE, "cube: true: an image of one axis has no axis that counts samples");
        *rows_out = s.dim[0];
        s.ndim--;
        memmove(s.dim, unit->shape.dim + 1, (size_t)s.ndim * sizeof *s.dim);
    }
    *out = with_channel(s);
    CVY_CHECK(cvy_shape_elems(out) <= (int64_t)1 << 30, CVY_E_SHAPE,
              "samples of %s: too large (if the image is a cube of samples, say `cube: true`)", cvy_shape_text(out));
    return CVY_OK;
}

static cvy_status check_shape(const cvy_fits *f, const cvy_shape *shape)
{
    CVY_CHECK(cvy_shape_equal(shape, &f->shape), CVY_E_SHAPE,
              "an image of %s, expected %s as in %s: cut or resample the images to one size", cvy_shape_text(shape),
              cvy_shape_text(&f->shape), f->file[0].path);
    return CVY_OK;
}

/* Checks that the header has the numbers that are asked for, so that a wrong name is found before training. */
static cvy_status check_keywords(const cvy_fits *f, struct cvy_fits_handle *h)
{
    double value = 0;
    for (int i = 0; i < f->ny + (f->weight >= 0); i++)
        CVY_TRY(cvy_fits_read_keyword(h, f->column[f->nx + i].name, &value));
    return CVY_OK;
}

/* Looks at a file. The first one says what the others have to be like. */
static cvy_status look_at(cvy_fits *f, int64_t number)
{
    struct cvy_fits_handle *h = NULL;
    cvy_fits_unit unit;
    cvy_shape shape;
    int64_t rows = 1;
    CVY_TRY(cvy_fits_borrow(f, number, f->is_table, &h));
    cvy_status status = cvy_fits_look(h, &unit);
    if (status == CVY_OK && !f->is_table)
        status = shape_of_image(f, &unit, number == 0 ? &f->shape : &shape, &rows);
    if (status == CVY_OK && f->is_table && number == 0)
        status = shape_of_table(f, h);
    if (status == CVY_OK && !f->is_table)
        status = number > 0 ? check_shape(f, &shape) : check_keywords(f, h);
    if (status == CVY_OK)
        status = cvy_fits_describe(f, h, number);
    cvy_fits_return(f, h);
    f->file[number].rows = f->is_table ? unit.rows : rows;
    return status;
}

/* Compares the header of one of several images. One that cannot be read is left to its sample. */
static cvy_status compare_header(cvy_fits *f, int64_t number)
{
    struct cvy_fits_handle *h = NULL;
    cvy_fits_unit unit;
    cvy_status status = CVY_OK;
    if (cvy_fits_borrow(f, number, 0, &h) != CVY_OK)
        return CVY_OK;
    if (cvy_fits_look(h, &unit) == CVY_OK)
        status = cvy_fits_describe(f, h, number);
    cvy_fits_return(f, h);
    return status;
}

static cvy_status find_shapes(cvy_fits *f, cvy_reader_info *info)
{
    const int all = f->is_table || f->o->cube; /* others are looked at when they are read */
    for (int64_t i = 0; i < f->nfile; i++) {
        f->file[i].rows = 1;
        const cvy_status status = i == 0 || all ? look_at(f, i) : i < COMPARED_MAX ? compare_header(f, i) : CVY_OK;
        if (status != CVY_OK)
            return cvy_error_prefix(status, "%s", f->file[i].path);
        f->file[i].first = f->nsamples;
        CVY_CHECK(f->file[i].rows <= SAMPLES_MAX - f->nsamples, CVY_E_UNSUPPORTED,
                  "%s: more than %lld samples in all files", f->file[i].path, (long long)SAMPLES_MAX);
        f->nsamples += f->file[i].rows;
    }
    f->elems = cvy_shape_elems(&f->shape);
    for (int i = f->nx; i < f->nx + f->ny; i++)
        f->y_elems += f->column[i].elems;
    info->nsamples = f->nsamples;
    info->dtype = CVY_DTYPE_F32;
    info->shape = f->shape;
    info->has_y = f->ny > 0;
    info->y_shape = f->ny == 1 ? f->column[f->nx].shape : (cvy_shape){1, {f->y_elems}};
    info->has_weight = f->weight >= 0;
    info->described = f->described;
    return cvy_remarks_note(&f->remarks, info);
}

/* ---- labels ---- */

static cvy_status add_label(cvy_fits *f, const char *text)
{
    double number = 0;
    cvy_entry e = {0};
    const int is_number = cvy_text_real(text, &number) == CVY_OK;
    if (f->labels.count == 0)
        f->classes.by_name = !is_number;
    if (f->classes.by_name) {
        CVY_TRY(cvy_classes_number(&f->classes, text, strlen(text), &e.label));
    } else {
        CVY_CHECK(is_number, CVY_E_FORMAT, "the label is \"%s\", expected a number as in the first sample", text);
        CVY_TRY(cvy_label_of(number, &e.label));
        CVY_CHECK(e.label >= 0 && e.label < CVY_CLASSES_MAX, CVY_E_FORMAT, "the label %d is out of range", e.label);
        cvy_classes_note_label(&f->classes, e.label);
    }
    return cvy_entries_add(&f->labels, &e);
}

static cvy_status read_labels_of(cvy_fits *f, int64_t number)
{
    const cvy_fits_file *file = &f->file[number];
    struct cvy_fits_handle *h = NULL;
    char text[CVY_FITS_TEXT];
    cvy_status status = cvy_fits_borrow(f, number, f->is_table, &h);
    if (status != CVY_OK)
        return cvy_error_prefix(status, "%s", file->path);
    for (int64_t row = 0; row < file->rows && status == CVY_OK; row++) {
        if (row == 0 || f->is_table)
            status = cvy_fits_read_label(h, f->is_table, f->o->label, row, text);
        if (status == CVY_OK)
            status = add_label(f, text);
        if (status != CVY_OK && f->is_table)
            cvy_error_prefix(status, "%s, row %lld", file->path, (long long)row);
        else if (status != CVY_OK)
            cvy_error_prefix(status, "%s", file->path);
    }
    cvy_fits_return(f, h);
    return status;
}

/* Adds what the samples of a file belong to. */
static cvy_status add_groups_of(cvy_fits *f, int64_t number, cvy_groups *to)
{
    struct cvy_fits_handle *h = NULL;
    char text[CVY_FITS_TEXT];
    CVY_TRY(cvy_fits_borrow(f, number, f->is_table, &h));
    cvy_status status = CVY_OK;
    for (int64_t row = 0; row < f->file[number].rows && status == CVY_OK; row++) {
        if (row == 0 || f->is_table)
            status = cvy_fits_read_label(h, f->is_table, f->o->group, row, text);
        if (status == CVY_OK)
            status = cvy_groups_add(to, text, strlen(text));
        if (status != CVY_OK && f->is_table)
            cvy_error_prefix(status, "row %lld", (long long)row);
    }
    cvy_fits_return(f, h);
    return status;
}

static cvy_status fits_groups(void *state, cvy_groups *to)
{
    cvy_fits *f = state;
    for (int64_t i = 0; i < f->nfile && f->o->group; i++) {
        const cvy_status status = add_groups_of(f, i, to);
        if (status != CVY_OK)
            return cvy_error_prefix(status, "%s: group", f->file[i].path);
    }
    return CVY_OK;
}

/* Files have labels, and samples need them. */
static cvy_status spread_labels(cvy_fits *f)
{
    cvy_entries of_samples = {0};
    cvy_status status = CVY_OK;
    for (int64_t i = 0; i < f->nfile; i++)
        for (int64_t row = 0; row < f->file[i].rows && status == CVY_OK; row++)
            status = cvy_entries_add(&of_samples, cvy_entries_at(&f->labels, i));
    cvy_entries_free(&f->labels);
    f->labels = of_samples;
    return status;
}

static cvy_status find_labels(cvy_fits *f, cvy_reader_info *info)
{
    if (f->o->label) {
        cvy_entries_free(&f->labels);
        cvy_classes_free(&f->classes);
        f->labels = (cvy_entries){0};
        f->classes = (cvy_classes){.pool = f->pool};
        for (int64_t i = 0; i < f->nfile; i++)
            CVY_TRY(read_labels_of(f, i));
    } else if (cvy_entries_at(&f->labels, 0)->label == CVY_LABEL_UNKNOWN) {
        cvy_entries_free(&f->labels); /* neither folders nor a list have classes */
        f->labels = (cvy_entries){0};
        return CVY_OK;
    } else {
        CVY_TRY(spread_labels(f));
    }
    return cvy_classes_resolve(&f->classes, f->o->classes, &f->labels, info);
}

/* ---- opening ---- */

static void fits_close(void *state)
{
    cvy_fits *f = state;
    cvy_fits_close_files(f);
    cvy_entries_free(&f->labels);
    cvy_classes_free(&f->classes);
    cvy_mem_free(&f->file);
    if (f->lock_made)
        pthread_mutex_destroy(&f->lock);
}

static cvy_status fits_load(cvy_fits *f, const char *path, cvy_reader_info *info)
{
    f->weight = -1;
    f->is_table = f->o->x != NULL;
    CVY_CHECK(!f->is_table || !f->o->cube, CVY_E_CONFIG, "x names columns of a table, and cube is for images");
    CVY_TRY(cvy_missing_parse(f->o->missing, &f->missing));
    CVY_TRY(add_named(f, "x", f->o->x, &f->nx));
    CVY_TRY(add_named(f, "y", f->o->y, &f->ny));
    if (f->o->weight) {
        CVY_TRY(add_column(f, f->o->weight));
        f->weight = f->nx + f->ny;
    }
    CVY_TRY(cvy_fits_find_files(f, path));
    CVY_TRY(find_shapes(f, info));
    CVY_CHECK(f->nsamples > 0, CVY_E_FORMAT, "%s: holds no samples", path);
    CVY_TRY(cvy_passed_note(&f->passed, path, "file", "FITS files are *.fits, *.fit, *.fts, *.fits.gz and *.fits.fz",
                            info));
    return find_labels(f, info);
}

static cvy_status fits_open(const cvy_reader_args *args, cvy_reader_info *info, void **state_out)
{
    cvy_fits *f = NULL;
    CVY_CHECK(args->path, CVY_E_CONFIG,
              "format fits needs a path: a file, a folder of them, a pattern like m31/*.fits, or a list");
    CVY_TRY(cvy_pool_alloc(info->pool, sizeof *f, &f));
    f->pool = info->pool;
    f->o = args->options;
    f->classes.pool = f->remarks.pool = info->pool;
    f->like = args->described;
    f->of_like = args->of_described;
    f->lock_made = pthread_mutex_init(&f->lock, NULL) == 0;
    const cvy_status status =
        f->lock_made ? fits_load(f, args->path, info) : cvy_error_set(CVY_E_MEMORY, "cannot make a lock");
    if (status != CVY_OK)
        fits_close(f);
    else
        *state_out = f;
    return status;
}

/* ---- reading ---- */

static int64_t find_file(const cvy_fits *f, int64_t number)
{
    int64_t low = 0, high = f->nfile - 1;
    while (low < high) {
        const int64_t middle = (low + high + 1) / 2;
        if (f->file[middle].first <= number)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static void convert(const cvy_fits_file *file, int column, int64_t n, float *number)
{
    const cvy_fits_scale *s = file->scale ? &file->scale[column] : NULL;
    for (int64_t i = 0; s && (s->factor != 1 || s->offset != 0) && i < n; i++)
        number[i] = (float)((double)number[i] * s->factor + s->offset);
}

static cvy_status read_x(const cvy_fits *f, struct cvy_fits_handle *h, int64_t file, int64_t row, float *x)
{
    if (f->is_table) {
        for (int i = 0; i < f->nx; x += f->column[i++].elems) {
            CVY_TRY(cvy_fits_read_row(h, i, &f->column[i], row, x));
            convert(&f->file[file], i, f->column[i].elems, x);
        }
        return CVY_OK;
    }
    if (!f->o->cube && file > 0) {
        cvy_fits_unit unit;
        cvy_shape shape;
        int64_t rows = 0;
        CVY_TRY(cvy_fits_look(h, &unit));
        CVY_TRY(shape_of_image(f, &unit, &shape, &rows));
        CVY_TRY(check_shape(f, &shape));
        CVY_TRY(cvy_fits_check_described(f, h, file));
    }
    CVY_TRY(cvy_fits_read_image(h, row * f->elems, f->elems, x));
    convert(&f->file[file], 0, f->elems, x);
    return CVY_OK;
}

/* Reads numbers of y or the weight: of the table's row, or of the image's header. */
static cvy_status read_numbers(const cvy_fits *f, struct cvy_fits_handle *h, int64_t file, int first, int n,
                               int64_t row, float *out)
{
    for (int i = first; i < first + n; out += f->column[i++].elems) {
        double value = 0;
        if (f->is_table)
            CVY_TRY(cvy_fits_read_row(h, i, &f->column[i], row, out));
        else
            CVY_TRY(cvy_fits_read_keyword(h, f->column[i].name, &value));
        if (!f->is_table)
            *out = (float)value;
        else if (i != f->weight)
            convert(&f->file[file], i, f->column[i].elems, out);
    }
    return CVY_OK;
}

static cvy_status read_fields(const cvy_fits *f, struct cvy_fits_handle *h, int64_t file, int64_t row, cvy_raw *raw)
{
    const int64_t channels = f->shape.ndim > 1 ? f->shape.dim[0] : 1;
    CVY_TRY(read_x(f, h, file, row, raw->x.data));
    CVY_TRY(cvy_missing_fill(&f->missing, channels, f->elems, f->is_table ? "the row" : "the image", raw->x.data));
    CVY_TRY(read_numbers(f, h, file, f->nx, f->ny, row, raw->y.data));
    return f->weight >= 0 ? read_numbers(f, h, file, f->weight, 1, row, &raw->weight) : CVY_OK;
}

static cvy_status fits_read(void *state, int64_t number, cvy_raw *raw)
{
    cvy_fits *f = state;
    const int64_t file = find_file(f, number);
    struct cvy_fits_handle *h = NULL;
    raw->coding = CVY_CODING_PLAIN;
    raw->dtype = CVY_DTYPE_F32;
    raw->shape = f->shape;
    raw->label = f->labels.count > 0 ? cvy_entries_label(&f->labels, number) : 0;
    CVY_TRY(cvy_bytes_need(&raw->x, (size_t)f->elems * sizeof(float)));
    CVY_TRY(cvy_bytes_need(&raw->y, (size_t)f->y_elems * sizeof(float)));
    CVY_TRY(cvy_fits_borrow(f, file, f->is_table, &h));
    const cvy_status status = read_fields(f, h, file, number - f->file[file].first, raw);
    cvy_fits_return(f, h);
    return status;
}

static cvy_status fits_label(void *state, int64_t number, int32_t *label_out)
{
    const cvy_fits *f = state;
    *label_out = cvy_entries_label(&f->labels, number);
    return CVY_OK;
}

static void fits_where(void *state, int64_t number, char *text, size_t room)
{
    const cvy_fits *f = state;
    const cvy_fits_file *file = &f->file[find_file(f, number)];
    if (f->is_table || f->o->cube)
        snprintf(text, room, "%s, %s %lld", file->path, f->is_table ? "row" : "plane",
                 (long long)(number - file->first));
    else
        snprintf(text, room, "%s", file->path);
}

static void fits_hash(void *state, cvy_hasher *h)
{
    const cvy_fits *f = state;
    for (int64_t i = 0; i < f->nfile; i++) {
        const char *name = cvy_file_base_name(f->file[i].path);
        cvy_hash_add(h, name, strlen(name) + 1);
        cvy_hash_add(h, &f->file[i].rows, sizeof f->file[i].rows);
    }
    for (int i = 0; i < f->nx + f->ny; i++)
        cvy_hash_add(h, f->column[i].name, strlen(f->column[i].name) + 1);
    if (f->labels.count > 0)
        cvy_entries_hash(&f->labels, h);
}

#else
#define fits_groups NULL

static cvy_status left_out(const char *path)
{
    CVY_FAIL(CVY_E_UNSUPPORTED, "%s: FITS is not part of this build: build it with CFITSIO (Debian: libcfitsio-dev)",
             path ? path : "format fits");
}

static cvy_status fits_open(const cvy_reader_args *args, cvy_reader_info *info, void **state_out)
{
    (void)info, (void)state_out;
    return left_out(args->path);
}

static cvy_status fits_read(void *state, int64_t number, cvy_raw *raw)
{
    (void)state, (void)number, (void)raw;
    return left_out(NULL);
}

static void fits_where(void *state, int64_t number, char *text, size_t room)
{
    (void)state;
    snprintf(text, room, "sample %lld", (long long)number);
}

#define fits_label NULL
#define fits_hash NULL
#define fits_close NULL
#endif

CVY_READER_DEFINE(fits) = {
    .name = "fits",
    .summary = "FITS files: images, planes of cubes, or rows of tables",
    .options = fits_opts,
    .options_size = sizeof(struct fits_opts),
    .mends = 1,
    .probe = fits_probe,
    .open = fits_open,
    .read = fits_read,
    .label = fits_label,
    .where = fits_where,
    .groups = fits_groups,
    .hash = fits_hash,
    .close = fits_close,
};
