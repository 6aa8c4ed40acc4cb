/*
 * test_data_fits.c: FITS files give the numbers that were written: images of every type of number, scaled, blank,
 * compressed, in extensions and cubes, by several threads at once; tables; classes of folders, lists, headers and
 * columns; files that are damaged or do not fit are refused, and the message says what to do.
 *
 * The files are written by CFITSIO.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/data_dataset.h"
#include "test_data_support.h"

#if CVY_HAVE_CFITSIO
#include <fitsio.h>
#include <math.h>
#include <pthread.h>
#include <sys/stat.h>

/* CFITSIO asks for as much memory as a damaged header says, and takes no for an answer. The sanitizer calls this. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

enum { H = 3, W = 4, PLANES = 5, ROWS = 6 };

#define FITS(call)                                                                                                     \
    do {                                                                                                               \
        int code = 0;                                                                                                  \
        (call);                                                                                                        \
        if (code != 0) {                                                                                               \
            fprintf(stderr, "%s:%d: %s: CFITSIO status %d\n", __FILE__, __LINE__, #call, code);                        \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static fitsfile *new_file(const char *name)
{
    fitsfile *f = NULL;
    remove(in_scratch(name));
    FITS(fits_create_diskfile(&f, in_scratch(name), &code));
    return f;
}

/* Adds an image whose numbers are first, first + 1, .. */
static void put_image(fitsfile *f, int bits, int naxis, const long *axis, double first)
{
    double value[PLANES * H * W];
    LONGLONG n = 1;
    for (int i = 0; i < naxis; i++)
        n *= axis[i];
    for (int i = 0; i < n; i++)
        value[i] = first + i;
    FITS(fits_create_img(f, bits, naxis, (long *)axis, &code));
    FITS(fits_write_img(f, TDOUBLE, 1, n, value, &code));
}

static void close_file(fitsfile *f)
{
    FITS(fits_close_file(f, &code));
}

static const long plane[] = {W, H}, cube[] = {W, H, PLANES};

static void make_image(const char *name, double first)
{
    fitsfile *f = new_file(name);
    double z = first / 2;
    char class[] = "QSO";
    put_image(f, SHORT_IMG, 2, plane, first);
    FITS(fits_write_key(f, TDOUBLE, "Z", &z, NULL, &code));
    FITS(fits_write_key(f, TSTRING, "CLASS", first < 2 ? "STAR" : class, NULL, &code));
    close_file(f);
}

static cvy_status open_fits(const char *name, const char *options, cvy_dataset **out)
{
    char text[1024];
    snprintf(text, sizeof text, "{path: \"%s\", format: fits%s%s}", in_scratch(name), *options ? ", " : "", options);
    return open_text(text, NULL, 0, out);
}

static const char *shape_of(const cvy_dataset *d, int field)
{
    return cvy_shape_text(&cvy_dataset_describe(d)->field[field].shape);
}

/* Expects a set of one sample with the numbers first, first + 1, .. */
static void expect_image(const char *name, const char *options, const char *shape, float first)
{
    float x[PLANES * H * W];
    cvy_dataset *d = NULL;
    OK(open_fits(name, options, &d));
    TRUE_THAT(cvy_dataset_describe(d)->nsamples == 1 && strcmp(shape_of(d, 0), shape) == 0);
    OK(cvy_dataset_read(d, 0, 0, &(void *){x}));
    for (int i = 0; i < cvy_shape_elems(&cvy_dataset_describe(d)->field[0].shape); i++)
        TRUE_THAT(x[i] == first + (float)i);
    cvy_dataset_destroy(&d);
}

/* ---- images ---- */

static void test_types(void)
{
    static const int bits[] = {BYTE_IMG, SBYTE_IMG,    SHORT_IMG, USHORT_IMG,
                               LONG_IMG, LONGLONG_IMG, FLOAT_IMG, DOUBLE_IMG};
    for (int i = 0; i < CVY_COUNT(bits); i++) {
        fitsfile *f = new_file("type.fits");
        put_image(f, bits[i], 2, plane, bits[i] == USHORT_IMG ? 40000 : 3);
        close_file(f);
        expect_image("type.fits", "", "1x3x4", bits[i] == USHORT_IMG ? 40000 : 3);
    }
}

static void test_shapes(void)
{
    const long line[] = {W}, radio[] = {W, H, 1, 1}, deep[] = {W, H, 2, 2};
    fitsfile *f = new_file("shape.fits");
    put_image(f, FLOAT_IMG, 1, line, 1);
    put_image(f, FLOAT_IMG, 4, radio, 2);
    put_image(f, FLOAT_IMG, 4, deep, 3);
    put_image(f, FLOAT_IMG, 3, cube, 4);
    char name[] = "SCI";
    FITS(fits_write_key(f, TSTRING, "EXTNAME", name, NULL, &code));
    close_file(f);
    expect_image("shape.fits", "", "4", 1);
    expect_image("shape.fits", "hdu: 1", "1x3x4", 2);
    expect_image("shape.fits", "hdu: 2", "2x2x3x4", 3);
    expect_image("shape.fits", "hdu: sci", "5x3x4", 4);
}

/* BSCALE 2, BZERO 10 and BLANK 5: the number 5 in the file is no measurement. */
static void test_blank(void)
{
    fitsfile *f = new_file("blank.fits");
    int64_t blank = 5;
    double scale = 2, zero = 10;
    float x[H * W];
    cvy_dataset *d = NULL;
    put_image(f, LONG_IMG, 2, plane, 0);
    FITS(fits_write_key(f, TLONGLONG, "BLANK", &blank, NULL, &code));
    FITS(fits_write_key(f, TDOUBLE, "BSCALE", &scale, NULL, &code));
    FITS(fits_write_key(f, TDOUBLE, "BZERO", &zero, NULL, &code));
    close_file(f);
    OK(open_fits("blank.fits", "", &d));
    FAILS(cvy_dataset_read(d, 0, 0, &(void *){x}), CVY_E_FORMAT, "blank.fits: element 5 of x is nan");
    cvy_dataset_destroy(&d);
    OK(open_fits("blank.fits", "missing: -1", &d));
    OK(cvy_dataset_read(d, 0, 0, &(void *){x}));
    TRUE_THAT(x[4] == 18 && x[5] == -1 && x[6] == 22);
    cvy_dataset_destroy(&d);
    OK(open_fits("blank.fits", "missing: mean", &d));
    OK(cvy_dataset_read(d, 0, 0, &(void *){x}));
    TRUE_THAT(x[4] == 18 && x[5] == (float)((2 * (66 - 5) + 11 * 10) / 11.0) && x[6] == 22);
    cvy_dataset_destroy(&d);
}

static void make_cube(int compression)
{
    fitsfile *f = new_file("cube.fits");
    FITS(fits_create_img(f, BYTE_IMG, 0, NULL, &code));
    FITS(fits_set_compression_type(f, compression, &code));
    put_image(f, LONG_IMG, 3, cube, 0);
    close_file(f);
}

static void *read_planes(void *user)
{
    cvy_dataset *d = user;
    for (int k = 0; k < 40; k++) {
        float x[H * W];
        const int sample = k * 3 % PLANES;
        OK(cvy_dataset_read(d, sample, 0, &(void *){x}));
        for (int i = 0; i < H * W; i++)
            TRUE_THAT(x[i] == (float)(sample * H * W + i));
    }
    return NULL;
}

static void test_cube(void)
{
    static const int compression[] = {0, RICE_1, GZIP_1};
    for (int i = 0; i < CVY_COUNT(compression); i++) {
        pthread_t thread[3];
        cvy_dataset *d = NULL;
        make_cube(compression[i]);
        expect_image("cube.fits", "", "5x3x4", 0);
        OK(open_fits("cube.fits", "cube: true", &d));
        TRUE_THAT(cvy_dataset_describe(d)->nsamples == PLANES && strcmp(shape_of(d, 0), "1x3x4") == 0);
        for (int t = 0; t < CVY_COUNT(thread); t++)
            TRUE_THAT(pthread_create(&thread[t], NULL, read_planes, d) == 0);
        for (int t = 0; t < CVY_COUNT(thread); t++)
            TRUE_THAT(pthread_join(thread[t], NULL) == 0);
        cvy_dataset_destroy(&d);
    }
}

/* ---- several files ---- */

/* Expects samples whose first numbers and labels are these. */
static void expect_files(const char *name, const char *options, int n, const float *first, const int32_t *label,
                         const char *classes)
{
    float x[H * W];
    int32_t l = -1;
    char names[256] = "";
    cvy_dataset *d = NULL;
    OK(open_fits(name, options, &d));
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    TRUE_THAT(info->nsamples == n);
    for (int i = 0; i < info->nclasses; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? " " : "", info->class_name[i]);
    if (strcmp(names, classes) != 0)
        printf("classes %s, expected %s\n", names, classes);
    TRUE_THAT(strcmp(names, classes) == 0);
    for (int i = 0; i < n; i++) {
        OK(cvy_dataset_read(d, i, 0, (void *[]){x, &l}));
        TRUE_THAT(x[0] == first[i] && (!label || l == label[i]));
    }
    cvy_dataset_destroy(&d);
}

static void test_files(void)
{
    const char text[] = "file,class\nset/b/2.fits,round\nset/a/1.fits,flat\nset/b/3.fits,round\n",
               numbers[] = "set/b/2.fits 4\nset/a/1.fits 0\n";
    TRUE_THAT(mkdir(in_scratch("set"), 0755) == 0 && mkdir(in_scratch("set/a"), 0755) == 0 &&
              mkdir(in_scratch("set/b"), 0755) == 0);
    make_image("set/a/1.fits", 1);
    make_image("set/b/2.fits", 2);
    make_image("set/b/3.fits", 3);
    put_file(in_scratch("set/b/readme"), "x", 1);
    put_file(in_scratch("list.csv"), text, strlen(text));
    put_file(in_scratch("numbers.txt"), numbers, strlen(numbers));
    expect_files("set", "", 3, (const float[]){1, 2, 3}, (const int32_t[]){0, 1, 1}, "a b");
    expect_files("set/b", "", 2, (const float[]){2, 3}, NULL, "");
    expect_files("set/?/*.fits", "", 3, (const float[]){1, 2, 3}, NULL, "");
    expect_files("set/?/*.fits", "label: CLASS", 3, (const float[]){1, 2, 3}, (const int32_t[]){1, 0, 0}, "QSO STAR");
    expect_files("list.csv", "", 3, (const float[]){2, 1, 3}, (const int32_t[]){1, 0, 1}, "flat round");
    const char outside[] = "../2.fits\n";
    put_file(in_scratch("set/a/up.lst"), outside, strlen(outside));
    make_image("set/2.fits", 7);
    expect_files("set/a/up.lst", "outside: true", 1, (const float[]){7}, NULL, "");
    TRUE_THAT(remove(in_scratch("set/2.fits")) == 0);
    expect_files("numbers.txt", "", 2, (const float[]){2, 1}, (const int32_t[]){4, 0}, "0 1 2 3 4");
    TRUE_THAT(mkdir(in_scratch("cubes"), 0755) == 0 && mkdir(in_scratch("cubes/c"), 0755) == 0);
    make_cube(0);
    TRUE_THAT(rename(in_scratch("cube.fits"), in_scratch("cubes/c/1.fits")) == 0);
    expect_files("cubes", "cube: true", PLANES, (const float[]){0, 12, 24, 36, 48}, (const int32_t[]){0, 0, 0, 0, 0},
                 "c");
}

/* Numbers of the header are targets and weights. */
static void test_keywords(void)
{
    float x[H * W], y[2] = {0}, weight = 0;
    cvy_dataset *d = NULL;
    OK(open_fits("set/b", "y: [z, NAXIS1], weight: Z", &d));
    TRUE_THAT(strcmp(shape_of(d, 1), "2") == 0);
    OK(cvy_dataset_read(d, 1, 0, (void *[]){x, y, &weight}));
    TRUE_THAT(y[0] == 1.5F && y[1] == W && weight == 1.5F);
    cvy_dataset_destroy(&d);
}

/* ---- tables ---- */

static void make_table(void)
{
    char *name[] = {"mag", "n", "class", "stamp", "list", "id", "note", "story", "truth"},
         *form[] = {"3E", "J", "5A", "12I", "PE", "K", "100A", "2000A", "2L"};
    static char class[ROWS][6] = {"STAR", "QSO", "STAR", "QSO", "GAL", "STAR"};
    fitsfile *f = new_file("table.fits");
    FITS(fits_create_tbl(f, BINARY_TBL, ROWS, CVY_COUNT(name), name, form, NULL, "CAT", &code));
    int blank = 2;
    FITS(fits_write_key(f, TINT, "TNULL2", &blank, NULL, &code));
    char dim[] = "(4,3)";
    FITS(fits_write_key(f, TSTRING, "TDIM4", dim, NULL, &code));
    for (int i = 0; i < ROWS; i++) {
        float mag[3] = {(float)i, (float)i + 0.5F, -(float)i};
        short stamp[12];
        char *text = class[i];
        for (int k = 0; k < 12; k++)
            stamp[k] = (short)(100 * i + k);
        FITS(fits_write_col(f, TFLOAT, 1, i + 1, 1, 3, mag, &code));
        FITS(fits_write_col(f, TINT, 2, i + 1, 1, 1, &i, &code));
        FITS(fits_write_col(f, TSTRING, 3, i + 1, 1, 1, &text, &code));
        FITS(fits_write_col(f, TSHORT, 4, i + 1, 1, 12, stamp, &code));
        FITS(fits_write_col(f, TINT, 6, i + 1, 1, 1, &i, &code));
        FITS(fits_write_col(f, TLOGICAL, 9, i + 1, 1, 2, (char[]){1, (char)(i % 2)}, &code));
        char many[81], *long_text = many;
        memset(many, 'a', 80);
        many[80] = 0;
        FITS(fits_write_col(f, TSTRING, 7, i + 1, 1, 1, i < 3 ? &text : &long_text, &code));
    }
    close_file(f);
}

static void test_table(void)
{
    float x[12], y[3], weight = 0;
    int32_t label = -1;
    cvy_dataset *d = NULL;
    make_table();
    OK(open_fits("table.fits", "x: [mag, n], label: class, y: mag, weight: n, missing: -9", &d));
    TRUE_THAT(cvy_dataset_describe(d)->nsamples == ROWS && strcmp(shape_of(d, 0), "4") == 0);
    TRUE_THAT(cvy_dataset_describe(d)->nclasses == 3 && strcmp(cvy_dataset_describe(d)->class_name[2], "STAR") == 0);
    OK(cvy_dataset_read(d, 4, 0, (void *[]){x, &label, y, &weight}));
    TRUE_THAT(x[0] == 4 && x[1] == 4.5F && x[2] == -4 && x[3] == 4 && y[1] == 4.5F && weight == 4 && label == 0);
    FAILS(cvy_dataset_read(d, 2, 0, (void *[]){x, &label, y, &weight}), CVY_E_FORMAT,
          "table.fits, row 2: element 0 of weight is nan");
    cvy_dataset_destroy(&d);
    OK(open_fits("table.fits", "x: n, missing: -9", &d));
    OK(cvy_dataset_read(d, 2, 0, (void *[]){x}));
    TRUE_THAT(x[0] == -9);
    cvy_dataset_destroy(&d);
    OK(open_fits("table.fits", "x: truth, label: id", &d));
    OK(cvy_dataset_read(d, 0, 0, (void *[]){x, &label}));
    TRUE_THAT(x[0] == 1 && x[1] == 0 && label == 0);
    OK(cvy_dataset_read(d, 1, 0, (void *[]){x, &label}));
    TRUE_THAT(x[0] == 1 && x[1] == 1 && label == 1);
    cvy_dataset_destroy(&d);
    /* what the rows belong to: by a text of the table */
    cvy_groups groups = {0};
    OK(open_fits("table.fits", "x: stamp, group: class", &d));
    OK(cvy_reader_groups(d->reader, d->state, "table.fits", &groups));
    TRUE_THAT(groups.n == ROWS && groups.names.count == 3 && groups.of[0] == groups.of[2]);
    cvy_groups_free(&groups);
    cvy_dataset_destroy(&d);
    OK(open_fits("table.fits", "x: stamp, group: none", &d));
    FAILS(cvy_reader_groups(d->reader, d->state, "table.fits", &groups), CVY_E_CONFIG,
          "table.fits: group: row 0: the table has no column");
    cvy_groups_free(&groups);
    cvy_dataset_destroy(&d);
    OK(open_fits("table.fits", "x: stamp, label: id, hdu: CAT", &d));
    TRUE_THAT(strcmp(shape_of(d, 0), "1x3x4") == 0 && cvy_dataset_describe(d)->nclasses == ROWS);
    OK(cvy_dataset_read(d, 5, 0, (void *[]){x, &label}));
    TRUE_THAT(x[0] == 500 && x[11] == 511 && label == 5);
    cvy_dataset_destroy(&d);
}

/* ---- what is refused ---- */

static void test_refused(void)
{
    static const struct {
        const char *name, *options;
        cvy_status code;
        const char *words;
    } want[] = {
        {"table.fits", "", CVY_E_CONFIG, "holds no image (`x: COLUMN` reads a table); the units of the file are"},
        {"table.fits", "hdu: CAT", CVY_E_CONFIG, "is a table: say which columns are the input"},
        {"table.fits", "x: mga", CVY_E_CONFIG, "has no column \"mga\", did you mean 'mag'?"},
        {"table.fits", "x: mag, y: nn", CVY_E_CONFIG, "has no column \"nn\""},
        {"table.fits", "x: class", CVY_E_UNSUPPORTED, "column class holds text"},
        {"table.fits", "x: list", CVY_E_UNSUPPORTED, "column list has rows of different lengths"},
        {"table.fits", "x: mag, label: n", CVY_E_FORMAT, "table.fits, row 2: the label n is blank"},
        {"table.fits", "x: mag, label: note", CVY_E_FORMAT,
         "row 3: the label note has 80 letters, expected at most 71"},
        {"table.fits", "x: mag, label: story", CVY_E_UNSUPPORTED, "column story has texts of 2000 letters"},
        {"table.fits", "x: [mag, stamp]", CVY_E_SHAPE, "cannot be joined"},
        {"table.fits", "x: mag, weight: mag", CVY_E_SHAPE, "weight: column mag has 3 numbers in a row"},
        {"table.fits", "x: mag, cube: true", CVY_E_CONFIG, "cube is for images"},
        {"set/b", "hdu: 3", CVY_E_CONFIG, "hdu: 3: there is no such unit; the units of the file are 0 (image)"},
        {"set/b", "hdu: SCI", CVY_E_CONFIG, "hdu: SCI: there is no such unit"},
        {"set/b", "x: mag", CVY_E_CONFIG, "holds no table"},
        {"set/b", "y: REDSHIFT", CVY_E_FORMAT, "has no number REDSHIFT"},
        {"set/b", "label: KIND", CVY_E_FORMAT, "the header has no label KIND"},
        {"set/b", "missing: median", CVY_E_CONFIG, "neither a number nor \"mean\""},
        {"nowhere", "", CVY_E_IO, "nowhere"},
        {"text.fits", "", CVY_E_FORMAT, "text.fits: is not a FITS file"},
        {"short.fits", "", CVY_E_FORMAT, "but the file ends at 2900: truncated"},
        {"head.fits", "", CVY_E_FORMAT, "head.fits"},
        {"bad.csv", "", CVY_E_FORMAT, "line 2: the label is \"x\", expected a number as in the first line"},
        {"out.csv", "", CVY_E_FORMAT, "leaves the folder of the list"},
        {"empty.csv", "", CVY_E_FORMAT, "lists no file"},
    };
    char bytes[1 << 14];
    FILE *f = fopen(in_scratch("set/b/2.fits"), "rb");
    TRUE_THAT(f && fread(bytes, 1, sizeof bytes, f) == 5760);
    fclose(f);
    put_file(in_scratch("short.fits"), bytes, 2900);
    put_file(in_scratch("head.fits"), bytes, 300);
    put_file(in_scratch("text.fits"), "ra,dec\n1,2\n", 11);
    put_file(in_scratch("bad.csv"), "a.fits,1\nb.fits,x\n", 18);
    put_file(in_scratch("out.csv"), "../a.fits,1\n", 12);
    put_file(in_scratch("empty.csv"), "# none\n", 7);
    for (int i = 0; i < CVY_COUNT(want); i++) {
        cvy_dataset *d = NULL;
        const cvy_status status = open_fits(want[i].name, want[i].options, &d);
        if (status != want[i].code || !strstr(cvy_error_text(), want[i].words))
            printf("%s, %s: status %d, \"%s\"\n", want[i].name, want[i].options, (int)status, cvy_error_text());
        TRUE_THAT(status == want[i].code && strstr(cvy_error_text(), want[i].words));
    }
}

/* An image of another size, or a file without an image, is a fault of its sample. */
static void test_other_images(void)
{
    const long wide[] = {W + 1, H};
    float x[H * W];
    cvy_dataset *d = NULL;
    fitsfile *f = new_file("set/b/4.fits");
    put_image(f, SHORT_IMG, 2, wide, 0);
    close_file(f);
    f = new_file("set/b/5.fits");
    FITS(fits_create_img(f, BYTE_IMG, 0, NULL, &code));
    close_file(f);
    OK(open_fits("set/b", "", &d));
    OK(cvy_dataset_read(d, 1, 0, &(void *){x}));
    FAILS(cvy_dataset_read(d, 2, 0, &(void *){x}), CVY_E_SHAPE, "4.fits: an image of 1x3x5, expected 1x3x4 as in");
    FAILS(cvy_dataset_read(d, 3, 0, &(void *){x}), CVY_E_CONFIG, "5.fits: holds no image");
    cvy_dataset_destroy(&d);
}

/* Replaces the first card that begins with these letters. */
static void set_card(char *bytes, size_t n, const char *name, const char *card)
{
    char *at = memmem(bytes, n, name, strlen(name));
    TRUE_THAT(at != NULL);
    memset(at, ' ', 80);
    memcpy(at, card, strlen(card));
}

/* Headers of compressed images with numbers by which CFITSIO would divide are refused, in any order of their cards. */
static void test_divisors(void)
{
    static const struct {
        const char *name, *card, *other, *other_card, *words;
    } want[] = {
        {"ZTILE1  =", "ZTILE1  =                    0", NULL, NULL, "ZTILE1  =                    0"},
        {"ZNAXIS1 =", "ZNAXIS1 =                    0", NULL, NULL, "expected at least 1"},
        {"ZVAL1   =", "ZVAL1   =                    0", NULL, NULL, "blocks of less than one pixel"},
        {"ZVAL1   =", "ZVAL1   =                    0", "ZNAME1  =", "ZNAME1  = 'OTHER'",
         "blocks of less than one pixel"},
        {"ZVAL1   =", "ZNAME1  = 'BLOCKSIZE'", "ZNAME1  =", "ZVAL1   =                   -1",
         "blocks of less than one pixel"},
    };
    static char whole[1 << 16], bytes[1 << 16];
    cvy_dataset *d = NULL;
    make_cube(RICE_1);
    FILE *f = fopen(in_scratch("cube.fits"), "rb");
    TRUE_THAT(f);
    const size_t n = fread(whole, 1, sizeof whole, f);
    fclose(f);
    for (int i = 0; i < CVY_COUNT(want); i++) {
        memcpy(bytes, whole, n);
        set_card(bytes, n, want[i].name, want[i].card);
        if (want[i].other)
            set_card(bytes, n, want[i].other, want[i].other_card);
        put_file(in_scratch("divisor.fits"), bytes, n);
        FAILS(open_fits("divisor.fits", "cube: true", &d), CVY_E_FORMAT, want[i].words);
    }
}

/* Opens a damaged file and reads it; there is an answer, or a fault with a message. */
static void look(const char *name, const char *options)
{
    static float room[4][1 << 16];
    void *field[] = {room[0], room[1], room[2], room[3]};
    cvy_dataset *d = NULL;
    cvy_status status = open_fits(name, options, &d);
    if (status == CVY_OK) {
        const cvy_dataset_info *info = cvy_dataset_describe(d);
        for (int64_t i = 0; i < CVY_MIN(info->nsamples, 8) && cvy_shape_elems(&info->field[0].shape) <= 1 << 16; i++)
            status = cvy_dataset_read(d, i, 0, field);
    }
    TRUE_THAT(status == CVY_OK || *cvy_error_text());
    cvy_dataset_destroy(&d);
}

static void test_damaged(void)
{
    static const struct {
        const char *name, *options;
    } file[] = {{"set/b/2.fits", "y: Z"}, {"table.fits", "x: [mag, n], label: class"}, {"rice.fits", "cube: true"}};
    static uint8_t bytes[1 << 16];
    make_cube(RICE_1);
    TRUE_THAT(rename(in_scratch("cube.fits"), in_scratch("rice.fits")) == 0);
    for (int i = 0; i < CVY_COUNT(file); i++) {
        FILE *f = fopen(in_scratch(file[i].name), "rb");
        TRUE_THAT(f);
        const size_t n = fread(bytes, 1, sizeof bytes, f);
        fclose(f);
        for (size_t at = 0; at < n; at += 7) {
            const uint8_t was = bytes[at];
            if (was == ' ' && at % 8 != 0) /* most of a header is blank */
                continue;
            bytes[at] = (uint8_t)(was ^ 1 << (at % 7));
            put_file(in_scratch("damaged.fits"), bytes, n);
            look("damaged.fits", file[i].options);
            bytes[at] = was;
            if (at % 560 == 0) {
                put_file(in_scratch("damaged.fits"), bytes, at);
                look("damaged.fits", file[i].options);
            }
        }
    }
}

/* A compressed file that says, or holds, far more than its bytes justify is refused before memory is taken. */
static void test_bombs(void)
{
#if CVY_HAVE_LIBDEFLATE && defined(__linux__)
    static uint8_t bytes[1 << 16];
    static const struct {
        uint8_t size[4];
        const char *message;
    } lie[] = {
        {{0, 0, 0, 0x40}, "bytes unpack to 1073741824, more than 300 times as many: it may be truncated: fetch it"},
        {{0xff, 0xff, 0xff, 0xff}, "bytes unpack to 4294967295, more than 300 times as many"},
        {{4, 0, 0, 0}, "bytes unpack to more than 4"},
        {{0, 0, 1, 0}, "do not unpack to 65536: they are damaged"}};
    cvy_dataset *d = NULL;
    fitsfile *file = NULL;
    remove(in_scratch("packed.fits.gz"));
    FITS(fits_create_file(&file, in_scratch("packed.fits.gz"), &code));
    put_image(file, SHORT_IMG, 2, plane, 7);
    close_file(file);
    expect_image("packed.fits.gz", "", "1x3x4", 7);
    FILE *f = fopen(in_scratch("packed.fits.gz"), "rb");
    TRUE_THAT(f);
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    for (int i = 0; i < CVY_COUNT(lie); i++) {
        memcpy(bytes + n - 4, lie[i].size, 4);
        put_file(in_scratch("lie.fits.gz"), bytes, n);
        TRUE_THAT(open_fits("lie.fits.gz", "", &d) < 0 && strstr(cvy_error_text(), lie[i].message));
    }
#endif
}

int main(void)
{
    scratch_make();
    test_types();
    test_shapes();
    test_blank();
    test_cube();
    test_files();
    test_keywords();
    test_table();
    test_refused();
    test_other_images();
    test_divisors();
    test_damaged();
    test_bombs();
    scratch_remove();
    return 0;
}
#else
int main(void)
{
    cvy_dataset *d = NULL;
    scratch_make();
    put_file(in_scratch("a.fits"), "SIMPLE  =                    T", 30);
    FAILS(open_text(in_scratch("a.fits"), NULL, 0, &d), CVY_E_UNSUPPORTED, "a.fits: FITS is not part of this build");
    scratch_remove();
    return 0;
}
#endif
