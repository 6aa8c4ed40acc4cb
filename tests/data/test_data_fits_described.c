/*
 * test_data_fits_described.c: units of FITS images and of columns of tables are converted to those of the first file,
 * of the first source or of the training data, or refused; so are axes in another order or direction.
 *
 * rows: clang asan
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test_data_support.h"

#if CVY_HAVE_CFITSIO
#include <fitsio.h>
#include <math.h>

enum { H = 3, W = 3, ROWS = 2 };

#define FITS(call)                                                                                                     \
    do {                                                                                                               \
        int code = 0;                                                                                                  \
        (call);                                                                                                        \
        TRUE_THAT(code == 0);                                                                                          \
    } while (0)

static void put_text(fitsfile *f, const char *key, const char *text)
{
    if (text)
        FITS(fits_write_key(f, TSTRING, key, (char *)text, NULL, &code));
}

static void put_number(fitsfile *f, const char *key, double value)
{
    FITS(fits_write_key(f, TDOUBLE, key, &value, NULL, &code));
}

struct image {
    const char *unit, *axis[2]; /* NAXIS1 first */
    double size[2], first; /* of a pixel; first: the coordinate of the first one, of other axes than those of the sky */
    double factor;         /* of the numbers 1, 2, .. */
};

static void make_image(const char *name, struct image m)
{
    const long axis[] = {W, H};
    double value[H * W];
    fitsfile *f = NULL;
    remove(in_scratch(name));
    FITS(fits_create_diskfile(&f, in_scratch(name), &code));
    for (int i = 0; i < H * W; i++)
        value[i] = (i + 1) * (m.factor != 0 ? m.factor : 1);
    FITS(fits_create_img(f, DOUBLE_IMG, 2, (long *)axis, &code));
    FITS(fits_write_img(f, TDOUBLE, 1, H * W, value, &code));
    put_text(f, "BUNIT", m.unit);
    for (int i = 0; i < 2 && m.axis[i]; i++) {
        char key[32];
        snprintf(key, sizeof key, "CTYPE%d", i + 1);
        put_text(f, key, m.axis[i]);
        snprintf(key, sizeof key, "CDELT%d", i + 1);
        put_number(f, key, m.size[i]);
        snprintf(key, sizeof key, "CRVAL%d", i + 1);
        put_number(f, key, m.first);
        snprintf(key, sizeof key, "CRPIX%d", i + 1);
        put_number(f, key, 1);
    }
    FITS(fits_close_file(f, &code));
}

static void make_table(const char *name, const char *unit, double factor)
{
    char *names[] = {"flux", "z"}, *forms[] = {"1E", "1E"}, *units[] = {(char *)unit, ""};
    fitsfile *f = NULL;
    remove(in_scratch(name));
    FITS(fits_create_diskfile(&f, in_scratch(name), &code));
    FITS(fits_create_tbl(f, BINARY_TBL, ROWS, 2, names, forms, units, NULL, &code));
    for (int c = 0; c < 2; c++) {
        double value[ROWS];
        for (int i = 0; i < ROWS; i++)
            value[i] = (i + 1) * (c == 0 ? factor : 1);
        FITS(fits_write_col(f, TDOUBLE, c + 1, 1, 1, ROWS, value, &code));
    }
    FITS(fits_close_file(f, &code));
}

static cvy_status open_like(const char *pattern, const char *options, const cvy_data_form *like, cvy_dataset **out)
{
    char text[1024];
    cvy_tree *tree = NULL;
    cvy_pool *pool = NULL;
    snprintf(text, sizeof text, "{path: \"%s\", format: fits%s}", in_scratch(pattern), options);
    if (!like)
        return open_text(text, NULL, 0, out);
    OK(cvy_pool_create(&pool));
    OK(cvy_tree_parse_text(pool, "source", text, strlen(text), &tree));
    const cvy_status status = cvy_dataset_open_like(tree, NULL, 0, 1, like, out);
    cvy_pool_destroy(&pool);
    return status;
}

/* Opens both files as one set, and the second as further data of the first. */
static void expect(const char *what, const char *options, const char *said, const char *refused, int n)
{
    cvy_dataset *first = NULL;
    OK(open_like("i_a.fits", options, NULL, &first));
    const cvy_data_form form = cvy_dataset_form(first);
    for (int further = 0; further < 2; further++) {
        cvy_dataset *d = NULL;
        float x[H * W], y[1];
        if (refused) {
            FAILS(open_like(further ? "i_b.fits" : "i_?.fits", options, further ? &form : NULL, &d), CVY_E_CONFIG,
                  refused);
            continue;
        }
        OK(open_like(further ? "i_b.fits" : "i_?.fits", options, further ? &form : NULL, &d));
        const char *note = cvy_dataset_describe(d)->note;
        if (said ? !note || !strstr(note, said) : note != NULL) {
            printf("%s: %s\n", what, note ? note : "nothing is said");
            TRUE_THAT(!"said");
        }
        OK(cvy_dataset_read(d, further ? 0 : cvy_dataset_describe(d)->nsamples / 2, 0, (void *const[]){x, y}));
        for (int i = 0; i < n; i++)
            TRUE_THAT(fabs((double)x[i] - (i + 1)) < 1e-5);
        cvy_dataset_destroy(&d);
    }
    cvy_dataset_destroy(&first);
}

static void test_images(void)
{
    static const struct {
        const char *what;
        struct image second;
        const char *said, *refused;
    } row[] = {
        {"equal", {"Jy/beam", {"RA---TAN", "DEC--TAN"}, {-0.1, 0.1}, 0, 1}, NULL, NULL},
        {"spelling", {"Jy beam-1", {"RA---SIN", "DEC--SIN"}, {-0.1, 0.1}, 50, 1}, NULL, NULL},
        {"milli", {"mJy/beam", {"RA---TAN", "DEC--TAN"}, {-0.1, 0.1}, 0, 1000}, "it is converted, x * 0.001", NULL},
        {"none", {NULL, {"RA---TAN", "DEC--TAN"}, {-0.1, 0.1}, 0, 1}, "has no units", NULL},
        {"other", {"adu", {"RA---TAN", "DEC--TAN"}, {-0.1, 0.1}, 0, 1}, NULL, "the image is in adu, but in Jy/beam"},
        {"order",
         {"Jy/beam", {"DEC--TAN", "RA---TAN"}, {0.1, -0.1}, 0, 1},
         NULL,
         "has the axes (RA, DEC), but (DEC, RA)"},
        {"mirrored", {"Jy/beam", {"RA---TAN", "DEC--TAN"}, {0.1, 0.1}, 0, 1}, NULL, "axis RA is -0.1, 0, 0.1"},
        {"pixels", {"Jy/beam", {"RA---TAN", "DEC--TAN"}, {-0.2, 0.2}, 0, 1}, "axis RA is 0.2, 0, -0.2", NULL},
        {"without", {"Jy/beam", {NULL}, {0}, 0, 1}, NULL, NULL},
    };
    make_image("i_a.fits", (struct image){"Jy/beam", {"RA---TAN", "DEC--TAN"}, {-0.1, 0.1}, 0, 1});
    for (int i = 0; i < CVY_COUNT(row); i++) {
        make_image("i_b.fits", row[i].second);
        expect(row[i].what, "", row[i].said, row[i].refused, H * W);
        if (row[i].refused)
            expect(row[i].what, ", metadata: ignore", NULL, NULL, H * W);
    }
    make_image("i_a.fits", (struct image){"Jy", {"FREQ", "STOKES"}, {1e6, 1}, 1e9, 1});
    make_image("i_b.fits", (struct image){"Jy", {"FREQ", "STOKES"}, {1e6, 1}, 2e9, 1});
    expect("frequency", "", "axis FREQ is 2e+09", NULL, H * W);
    make_image("i_a.fits", (struct image){"Jy", {"LINEAR", "STOKES"}, {2, 1}, 0, 1});
    make_image("i_b.fits", (struct image){"Jy", {"LINEAR", "STOKES"}, {2, 1}, 10, 1});
    expect("another window", "", "axis LINEAR is 10, 12, 14", NULL, H * W);
    make_image("i_b.fits", (struct image){"Jy", {"LINEAR", "STOKES"}, {3, 1}, 0, 1});
    expect("other steps", "", NULL, "axis LINEAR is 0, 3, 6, but 0, 2, 4", H * W);
}

static void test_tables(void)
{
    make_table("i_a.fits", "mJy", 1);
    make_table("i_b.fits", "Jy", 1e-3);
    expect("columns", ", x: [flux], y: z", "flux is in Jy, but in mJy", NULL, 1);
    make_table("i_b.fits", "mag", 1);
    expect("magnitudes", ", x: [flux], y: z", NULL, "flux is in mag, but in mJy", 1);
}

int main(void)
{
    scratch_make();
    test_images();
    test_tables();
    scratch_remove();
    return 0;
}

#else
int main(void)
{
    return 0;
}
#endif
