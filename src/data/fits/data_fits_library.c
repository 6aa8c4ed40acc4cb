/*
 * data_fits_library.c: the calls of CFITSIO: it opens FITS files, describes images and tables, and reads numbers.
 *
 * CFITSIO applies BSCALE and BZERO (TSCAL and TZERO), turns BLANK (TNULL) into NaN, and decompresses images. A file is
 * opened once for each thread that reads it at the same time: a handle belongs to one thread until it is returned. If
 * the library is built without support for threads (fits_is_reentrant()), one lock lets one thread in at a time.
 * Sources: FITS standard 4.0; CFITSIO user's reference guide, version 4.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/fits/data_fits.h"

#if CVY_HAVE_CFITSIO
#include <fitsio.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_file.h"
#include "base/text/base_text.h"
#include "data/data_inflate.h"

enum { IDLE_MAX = 16, UNITS_MAX = 1024, NAMES_MAX = 256, TEXT_ROOM = 1024 };
static const double ROWS_MAX = 0x1p40; /* of a table; the sums over files stay far from an overflow */

struct cvy_fits_handle {
    fitsfile *file;
    int64_t number;               /* of the file in the set */
    int64_t bytes;                /* of the file; -1: it is compressed as a whole */
    cvy_data_file unpacked;       /* of a compressed file, in memory; without a descriptor otherwise */
    int column[CVY_FITS_COLUMNS]; /* numbers of the columns in the table; 0: not looked up yet */
    struct cvy_fits_handle *next;
};

static pthread_mutex_t library = PTHREAD_MUTEX_INITIALIZER; /* for a library without support for threads */

static void enter(void)
{
    if (!fits_is_reentrant())
        pthread_mutex_lock(&library);
}

static void leave(void)
{
    if (!fits_is_reentrant())
        pthread_mutex_unlock(&library);
}

/* The fault with our message, and CFITSIO's for its status. */
static cvy_status fault(int code, const char *what)
{
    char text[FLEN_STATUS] = "";
    fits_get_errstatus(code, text);
    fits_clear_errmsg();
    return cvy_error_set(code == MEMORY_ALLOCATION ? CVY_E_MEMORY : CVY_E_FORMAT, "%s (CFITSIO: %s, status %d)", what,
                         text, code);
}

/* ---- units ---- */

static int type_of_unit(fitsfile *f)
{
    int type = -1, code = 0;
    fits_get_hdu_type(f, &type, &code);
    return code == 0 ? type : -1;
}

static int has_image(fitsfile *f)
{
    int naxis = 0, code = 0;
    return type_of_unit(f) == IMAGE_HDU && fits_get_img_dim(f, &naxis, &code) == 0 && naxis > 0;
}

/* Adds "0: image 3x4, SCI: image 100x100, CAT: table" to the text. */
static void list_units(fitsfile *f, cvy_text *t)
{
    int count = 0, code = 0;
    fits_get_num_hdus(f, &count, &code);
    for (int i = 1; i <= CVY_MIN(count, NAMES_MAX); i++) {
        char name[FLEN_VALUE] = "";
        int none = 0;
        code = 0;
        if (fits_movabs_hdu(f, i, NULL, &code) != 0)
            break;
        fits_read_key(f, TSTRING, "EXTNAME", name, NULL, &none);
        cvy_text_add(t, "%s%d%s%s%s (%s)", i > 1 ? ", " : "", i - 1, *name ? " \"" : "", name, *name ? "\"" : "",
                     type_of_unit(f) != IMAGE_HDU ? "table"
                     : has_image(f)               ? "image"
                                                  : "no data");
    }
    fits_clear_errmsg();
}

static cvy_status no_unit(fitsfile *f, const char *what)
{
    cvy_text t = {0};
    list_units(f, &t);
    const cvy_status status =
        cvy_error_set(CVY_E_CONFIG, "%s; the units of the file are %s", what, t.data ? t.data : "not readable");
    cvy_text_free(&t);
    return status;
}

/* Goes to the unit that the option `hdu` names by its number from 0 or its EXTNAME; without it to the first image, or
 * the first table. */
static cvy_status go_to_unit(fitsfile *f, const char *hdu, int wants_table)
{
    int64_t number = 0;
    int code = 0, type = 0;
    char what[200];
    if (hdu) {
        if (cvy_text_int(hdu, &number) == CVY_OK && number >= 0 && number < UNITS_MAX)
            fits_movabs_hdu(f, (int)number + 1, &type, &code);
        else
            fits_movnam_hdu(f, ANY_HDU, (char *)hdu, 0, &code);
        fits_clear_errmsg();
        const int is_table = code == 0 && type_of_unit(f) != IMAGE_HDU;
        const char *trouble = code != 0                       ? "there is no such unit"
                              : wants_table && !is_table      ? "is no table, so it has no columns"
                              : !wants_table && is_table      ? "is a table: say which columns are the input, by x"
                              : !wants_table && !has_image(f) ? "is an image without numbers"
                                                              : NULL;
        snprintf(what, sizeof what, "hdu: %.100s: %s", hdu, trouble ? trouble : "");
        return trouble ? no_unit(f, what) : CVY_OK;
    }
    for (int i = 1; i <= UNITS_MAX && code == 0; i++) {
        if (fits_movabs_hdu(f, i, &type, &code) == 0 && (wants_table ? type_of_unit(f) != IMAGE_HDU : has_image(f)))
            return CVY_OK;
    }
    fits_clear_errmsg();
    if (code != END_OF_FILE && code != 0)
        return fault(code, "a unit of the file cannot be read");
    return no_unit(f, wants_table ? "holds no table" : "holds no image (`x: COLUMN` reads a table)");
}

/* ---- handles ---- */

static void close_handle(struct cvy_fits_handle *h)
{
    int code = 0;
    if (h->file)
        fits_close_file(h->file, &code);
    fits_clear_errmsg();
    cvy_data_file_close(&h->unpacked);
    cvy_mem_free(&h);
}

/* CFITSIO unpacks a compressed file into memory of any size. So it gets one that is unpacked already, whose size was
 * judged before. */
static cvy_status unpack(struct cvy_fits_handle *h, const char *path, const char **path_out)
{
#if CVY_HAVE_LIBDEFLATE && defined(__linux__)
    static _Thread_local char name[64];
    if (cvy_is_gzip(path)) {
        CVY_TRY(cvy_data_file_open(NULL, path, &h->unpacked));
        h->unpacked.path = "compressed by gzip"; /* for messages: the caller names the file */
        CVY_TRY(cvy_inflate_gzip(&h->unpacked));
        snprintf(name, sizeof name, "/proc/self/fd/%d", h->unpacked.fd);
        *path_out = name;
    }
#else
    (void)h, (void)path, (void)path_out;
#endif
    return CVY_OK;
}

static cvy_status open_handle(const cvy_fits *f, int64_t file, int wants_table, struct cvy_fits_handle *h)
{
    const char *path = f->file[file].path;
    cvy_data_file plain;
    int code = 0;
    CVY_CHECK(cvy_fits_is_file(path) || !cvy_file_exists(path), CVY_E_FORMAT,
              "is not a FITS file: it does not begin with \"SIMPLE  =\"");
    CVY_TRY(unpack(h, path, &path));
    CVY_TRY(cvy_data_file_open(NULL, path, &plain));
    const cvy_status status = cvy_fits_check_headers(&plain);
    cvy_data_file_close(&plain);
    CVY_TRY(status);
    h->number = file;
    h->bytes = cvy_is_gzip(path) ? -1 : plain.bytes;
    if (fits_open_diskfile(&h->file, path, READONLY, &code) != 0) {
        h->file = NULL;
        return fault(code, "cannot be opened as a FITS file");
    }
    return go_to_unit(h->file, f->o->hdu, wants_table);
}

cvy_status cvy_fits_borrow(cvy_fits *f, int64_t file, int wants_table, struct cvy_fits_handle **out)
{
    struct cvy_fits_handle *h = NULL;
    pthread_mutex_lock(&f->lock);
    for (struct cvy_fits_handle **at = &f->idle; *at && !h; at = &(*at)->next)
        if ((*at)->number == file) {
            h = *at;
            *at = h->next;
            f->nidle--;
            break;
        }
    pthread_mutex_unlock(&f->lock);
    if (!h) {
        CVY_TRY(cvy_mem_alloc(sizeof *h, &h));
        h->unpacked.fd = -1;
        enter();
        const cvy_status status = open_handle(f, file, wants_table, h);
        if (status != CVY_OK)
            close_handle(h);
        leave();
        CVY_TRY(status);
    }
    *out = h;
    return CVY_OK;
}

void cvy_fits_return(cvy_fits *f, struct cvy_fits_handle *h)
{
    struct cvy_fits_handle *last = NULL;
    pthread_mutex_lock(&f->lock);
    h->next = f->idle;
    f->idle = h;
    if (++f->nidle > IDLE_MAX) { /* the one that was used longest ago is closed */
        struct cvy_fits_handle **at = &f->idle;
        while ((*at)->next)
            at = &(*at)->next;
        last = *at;
        *at = NULL;
        f->nidle--;
    }
    pthread_mutex_unlock(&f->lock);
    if (!last)
        return;
    enter();
    close_handle(last);
    leave();
}

void cvy_fits_close_files(cvy_fits *f)
{
    enter();
    while (f->idle) {
        struct cvy_fits_handle *h = f->idle;
        f->idle = h->next;
        close_handle(h);
    }
    leave();
    f->nidle = 0;
}

/* ---- descriptions ---- */

/* A header may promise more numbers than the file has. CFITSIO notices it when it reads them, after the memory for all
 * of them is allocated. */
static cvy_status check_length(const struct cvy_fits_handle *h, double needed)
{
    LONGLONG head = 0, data = 0, end = 0;
    int code = 0;
    if (h->bytes < 0)
        return CVY_OK;
    if (fits_get_hduaddrll(h->file, &head, &data, &end, &code) != 0)
        return fault(code, "the place of the data is not known");
    CVY_CHECK((double)data + needed <= (double)h->bytes, CVY_E_FORMAT,
              "the data begin at byte %lld and have %.0f bytes, but the file ends at %lld: truncated", (long long)data,
              needed, (long long)h->bytes);
    return CVY_OK;
}

static cvy_status look_at_image(const struct cvy_fits_handle *h, cvy_fits_unit *out)
{
    LONGLONG axis[CVY_NDIM_MAX + 1] = {0};
    int bits = 0, naxis = 0, code = 0;
    double elems = 1;
    if (fits_get_img_paramll(h->file, CVY_NDIM_MAX + 1, &bits, &naxis, axis, &code) != 0)
        return fault(code, "the header of the image cannot be read");
    while (naxis > 3 && naxis <= CVY_NDIM_MAX + 1 && axis[naxis - 1] == 1) /* of one frequency or one polarisation */
        naxis--;
    CVY_CHECK(naxis >= 1 && naxis < CVY_NDIM_MAX, CVY_E_SHAPE, "an image of %d axes, expected 1 to %d", naxis,
              CVY_NDIM_MAX - 1);
    out->shape.ndim = naxis;
    for (int i = 0; i < naxis; i++) {
        CVY_CHECK(axis[i] > 0, CVY_E_SHAPE, "an image of which axis %d has %lld pixels", i + 1, (long long)axis[i]);
        out->shape.dim[naxis - 1 - i] = (int64_t)axis[i];
        elems *= (double)axis[i];
    }
    CVY_CHECK(elems <= (double)((int64_t)1 << 40), CVY_E_SHAPE, "an image of %s: too large",
              cvy_shape_text(&out->shape));
    const int is_compressed = fits_is_compressed_image(h->file, &code);
    return is_compressed ? CVY_OK : check_length(h, elems * abs(bits) / 8);
}

cvy_status cvy_fits_look(struct cvy_fits_handle *h, cvy_fits_unit *out)
{
    LONGLONG rows = 0, width = 0;
    int code = 0;
    cvy_status status = CVY_OK;
    *out = (cvy_fits_unit){0};
    enter();
    out->is_table = type_of_unit(h->file) != IMAGE_HDU;
    if (!out->is_table)
        status = look_at_image(h, out);
    else if (fits_get_num_rowsll(h->file, &rows, &code) != 0 ||
             fits_read_key(h->file, TLONGLONG, "NAXIS1", &width, NULL, &code) != 0)
        status = fault(code, "the header of the table cannot be read");
    else if (rows < 0 || width < 0 || (double)rows > ROWS_MAX)
        status = cvy_error_set(CVY_E_FORMAT, "the header of the table has %lld rows of %lld bytes: damaged",
                               (long long)rows, (long long)width);
    else
        status = check_length(h, (double)rows * (double)width);
    leave();
    out->rows = status == CVY_OK ? (int64_t)rows : 0;
    return status;
}

/* The number of a column; 0: there is none with this name. */
static int column_number(fitsfile *f, const char *name)
{
    int number = 0, code = 0;
    if (fits_get_colnum(f, CASEINSEN, (char *)name, &number, &code) != 0)
        number = 0;
    fits_clear_errmsg();
    return number;
}

static cvy_status no_column(fitsfile *f, const char *name)
{
    enum { NAME = FLEN_VALUE };
    char(*all)[NAME] = NULL;
    const char *list[NAMES_MAX];
    cvy_text t = {0};
    int count = 0, code = 0;
    CVY_TRY(cvy_mem_alloc(NAMES_MAX * sizeof *all, &all));
    fits_get_num_cols(f, &count, &code);
    count = CVY_MIN(count, NAMES_MAX);
    for (int i = 0; i < count; i++) {
        char keyword[FLEN_KEYWORD];
        code = 0;
        snprintf(keyword, sizeof keyword, "TTYPE%d", i + 1);
        fits_read_key(f, TSTRING, keyword, all[i], NULL, &code);
        list[i] = all[i];
    }
    fits_clear_errmsg();
    cvy_text_add_known(&t, name, list, count);
    const cvy_status status =
        cvy_error_set(CVY_E_CONFIG, "the table has no column \"%s\"%s", name, t.data ? t.data : "");
    cvy_text_free(&t);
    cvy_mem_free(&all);
    return status;
}

static cvy_status describe_column(fitsfile *f, int number, cvy_fits_column *c)
{
    LONGLONG repeat = 0, width = 0;
    LONGLONG axis[CVY_NDIM_MAX] = {0};
    int type = 0, naxis = 0, code = 0;
    double elems = 1;
    if (fits_get_coltypell(f, number, &type, &repeat, &width, &code) != 0 ||
        fits_read_tdimll(f, number, CVY_NDIM_MAX, &naxis, axis, &code) != 0)
        return fault(code, "the column cannot be described");
    CVY_CHECK(type > 0, CVY_E_UNSUPPORTED, "column %s has rows of different lengths, which are not read", c->name);
    CVY_CHECK(type != TSTRING && type != TBIT && type != TCOMPLEX && type != TDBLCOMPLEX, CVY_E_UNSUPPORTED,
              "column %s holds %s, expected numbers", c->name,
              type == TSTRING                           ? "text"
              : type == TCOMPLEX || type == TDBLCOMPLEX ? "complex numbers"
                                                        : "bits");
    CVY_CHECK(repeat > 0 && repeat <= (int64_t)1 << 30, CVY_E_SHAPE, "column %s has %lld numbers in a row", c->name,
              (long long)repeat);
    c->elems = (int64_t)repeat;
    c->is_truth = type == TLOGICAL;
    c->shape = (cvy_shape){1, {c->elems}};
    if (naxis > 1 && naxis < CVY_NDIM_MAX) {
        c->shape.ndim = naxis;
        for (int i = 0; i < naxis; i++) {
            c->shape.dim[naxis - 1 - i] = (int64_t)axis[i];
            elems *= axis[i] > 0 ? (double)axis[i] : 0;
        }
        CVY_CHECK(elems == (double)c->elems, CVY_E_FORMAT, "column %s has %lld numbers in a row, but TDIM%d says %s",
                  c->name, (long long)repeat, number, cvy_shape_text(&c->shape));
    }
    return CVY_OK;
}

cvy_status cvy_fits_find_column(struct cvy_fits_handle *h, const char *name, cvy_fits_column *out)
{
    enter();
    const int number = column_number(h->file, name);
    out->name = name;
    const cvy_status status = number > 0 ? describe_column(h->file, number, out) : no_column(h->file, name);
    leave();
    return status;
}

/* ---- numbers ---- */

cvy_status cvy_fits_read_image(struct cvy_fits_handle *h, int64_t first, int64_t n, float *out)
{
    float blank = NAN;
    int any = 0, code = 0;
    enter();
    fits_read_img(h->file, TFLOAT, (LONGLONG)first + 1, (LONGLONG)n, &blank, out, &any, &code);
    const cvy_status status = code == 0 ? CVY_OK : fault(code, "the image cannot be read");
    leave();
    return status;
}

/* Finds the column in this file, where it may have another number than in the first one. */
static cvy_status look_up(struct cvy_fits_handle *h, int index, const cvy_fits_column *c)
{
    cvy_fits_column there = {0};
    CVY_TRY(cvy_fits_find_column(h, c->name, &there));
    CVY_CHECK(there.elems == c->elems, CVY_E_SHAPE, "column %s has %lld numbers in a row, expected %lld", c->name,
              (long long)there.elems, (long long)c->elems);
    CVY_CHECK(there.is_truth == c->is_truth, CVY_E_FORMAT, "column %s holds %s, expected %s as in the first file",
              c->name, there.is_truth ? "booleans" : "numbers", c->is_truth ? "booleans" : "numbers");
    enter();
    h->column[index] = column_number(h->file, c->name);
    leave();
    return CVY_OK;
}

/* CFITSIO gives booleans as bytes only; they are read into the memory of the floats, and spread from the end. */
static void read_truth(fitsfile *f, int column, int64_t row, int64_t n, float *out, int *code)
{
    enum { NOT_KNOWN = 2 };
    char blank = NOT_KNOWN, *truth = (char *)out;
    int any = 0;
    fits_read_col(f, TLOGICAL, column, (LONGLONG)row + 1, 1, (LONGLONG)n, &blank, truth, &any, code);
    for (int64_t i = n - 1; i >= 0 && *code == 0; i--)
        out[i] = truth[i] == NOT_KNOWN ? NAN : (float)(truth[i] != 0);
}

cvy_status cvy_fits_read_row(struct cvy_fits_handle *h, int index, const cvy_fits_column *c, int64_t row, float *out)
{
    float blank = NAN;
    int any = 0, code = 0;
    if (h->column[index] == 0)
        CVY_TRY(look_up(h, index, c));
    enter();
    if (c->is_truth)
        read_truth(h->file, h->column[index], row, c->elems, out, &code);
    else
        fits_read_col(h->file, TFLOAT, h->column[index], (LONGLONG)row + 1, 1, (LONGLONG)c->elems, &blank, out, &any,
                      &code);
    const cvy_status status = code == 0 ? CVY_OK : fault(code, "a column cannot be read");
    leave();
    return status == CVY_OK ? status : cvy_error_prefix(status, "column %s", c->name);
}

cvy_status cvy_fits_read_keyword(struct cvy_fits_handle *h, const char *name, double *out)
{
    int code = 0;
    char what[160];
    enter();
    fits_read_key(h->file, TDOUBLE, name, out, NULL, &code);
    snprintf(what, sizeof what, "the header of the image has no number %.60s", name);
    const cvy_status status = code == 0 ? CVY_OK : fault(code, what);
    leave();
    return status;
}

int cvy_fits_find_number(struct cvy_fits_handle *h, const char *name, double *out)
{
    int code = 0;
    enter();
    fits_read_key(h->file, TDOUBLE, name, out, NULL, &code);
    fits_clear_errmsg();
    leave();
    return code == 0;
}

int cvy_fits_find_text(struct cvy_fits_handle *h, const char *name, char text[CVY_FITS_TEXT])
{
    char value[FLEN_VALUE] = "";
    int code = 0;
    enter();
    fits_read_key(h->file, TSTRING, name, value, NULL, &code);
    fits_clear_errmsg();
    leave();
    snprintf(text, CVY_FITS_TEXT, "%.*s", CVY_FITS_TEXT - 1, value);
    for (size_t n = strlen(text); n > 0 && text[n - 1] == ' '; n--)
        text[n - 1] = 0;
    return code == 0 && *text;
}

int cvy_fits_column_number(struct cvy_fits_handle *h, const char *name)
{
    enter();
    const int number = column_number(h->file, name);
    leave();
    return number;
}

/* Reads a cell of a table, or a keyword of the header, as text. */
static cvy_status read_text(fitsfile *f, int is_table, const char *name, int64_t row, char *value)
{
    char *to = value, what[160];
    int code = 0, any = 0, type = 0;
    LONGLONG repeat = 0, width = 0;
    if (is_table) {
        const int number = column_number(f, name);
        if (number == 0)
            return no_column(f, name);
        fits_get_coltypell(f, number, &type, &repeat, &width, &code);
        CVY_CHECK(code != 0 || type != TSTRING || repeat < TEXT_ROOM, CVY_E_UNSUPPORTED,
                  "column %s has texts of %lld letters, expected at most %d for a label", name, (long long)repeat,
                  TEXT_ROOM - 1);
        fits_read_col(f, TSTRING, number, (LONGLONG)row + 1, 1, 1, "", &to, &any, &code);
    } else {
        fits_read_key(f, TSTRING, name, value, NULL, &code);
    }
    snprintf(what, sizeof what, is_table ? "the label %.60s cannot be read" : "the header has no label %.60s", name);
    return code == 0 ? CVY_OK : fault(code, what);
}

cvy_status cvy_fits_read_label(struct cvy_fits_handle *h, int is_table, const char *name, int64_t row,
                               char text[CVY_FITS_TEXT])
{
    char value[TEXT_ROOM] = "";
    enter();
    const cvy_status status = read_text(h->file, is_table, name, row, value);
    leave();
    CVY_TRY(status);
    const char *from = value + strspn(value, " ");
    size_t n = strlen(from);
    while (n > 0 && from[n - 1] == ' ')
        n--;
    CVY_CHECK(n > 0, CVY_E_FORMAT, "the label %s is blank", name);
    CVY_CHECK(n < CVY_FITS_TEXT, CVY_E_FORMAT, "the label %s has %zu letters, expected at most %d", name, n,
              CVY_FITS_TEXT - 1);
    snprintf(text, CVY_FITS_TEXT, "%.*s", (int)n, from);
    return CVY_OK;
}

#endif
