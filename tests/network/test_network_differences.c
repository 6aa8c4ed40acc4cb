/*
 * test_network_differences.c: one field of temperatures that a second file says
 * in another way: in eight differences between files (units, order of axes,
 * direction, calendar, type, missing numbers, names, components) and in seven
 * places where they meet (files of a set, sources of a list, variables of a
 * list, validation, test, prediction, a resume), the numbers are those of the
 * first file, and a change of them is said, or the second is refused with both.
 *
 * For validation the training data are there; for the last three what the
 * weights keep of them is. The physical field is the same in all files, so that
 * numbers that differ are wrong. docs/reference/data.md has the
 * rules.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/test_data_netcdf.h"

#if CVY_HAVE_HDF5
#include <math.h>
#if CVY_HAVE_CFITSIO
#include <fitsio.h>
#endif

#include <convoy/convoy.h>

#include "data/data_agrees.h"
#include "data/data_convert.h"
#include "data/data_described.h"
#include "network/network_spec.h"

enum { TIME = 6, SIDE = 4, ELEMS = SIDE * SIDE };

/* ---- one field, written in one way or another ---- */

struct form {
    const char *units, *calendar, *name, *order; /* order: of the axes "tyx" */
    int is_down, is_double, has_list;            /* has_list: of components */
    double missing;
    const char *list; /* of x */
    double shift;     /* of latitudes: another region */
};

static const struct form usual = {
    .units = "K", .calendar = "standard", .name = "tas", .order = "tyx", .missing = -999, .list = "tas"};

enum { SAME, UNITS, OTHER_UNITS, ORDER, DIRECTION, CALENDAR, DTYPE, MISSING, NAME, COMPONENTS, DIFFERENCES };
static const char *const difference_name[DIFFERENCES] = {"nothing",   "units",     "other units", "order of axes",
                                                         "direction", "calendar",  "type",        "missing",
                                                         "name",      "components"};

static struct form form_of(int difference)
{
    struct form f = usual;
    f.units = difference == UNITS ? "degC" : difference == OTHER_UNITS ? "Pa" : "K";
    f.order = difference == ORDER ? "txy" : "tyx";
    f.is_down = difference == DIRECTION;
    f.calendar = difference == CALENDAR ? "noleap" : "standard";
    f.is_double = difference == DTYPE;
    f.missing = difference == MISSING ? 1e20 : -999;
    f.name = difference == NAME ? "t2m" : "tas";
    f.list = difference == NAME ? "t2m" : difference == COMPONENTS ? "[v, u]" : "tas";
    return f;
}

static double latitude(int y)
{
    return -60 + 40 * y;
}

/* The temperature in K; that of components is another one. One number of each
 * row is missing, which is read as 0. */
static double number_at(int component, int t, int y, int x)
{
    return y == 1 && x == 2 ? 0 : 280 + latitude(y) / 10 + x + t + 100 * component;
}

static void put_coordinates(hid_t file, const char *name, int n, const double *value, const char *units,
                            const char *calendar)
{
    const hid_t set =
        put_set(file, name, (struct layout){.type = H5T_IEEE_F64LE, .ndim = 1, .dim = {(hsize_t)n}}, value);
    make_axis(set, name);
    put_text(set, "units", units);
    if (calendar)
        put_text(set, "calendar", calendar);
    H5Dclose(set);
}

/* Writes a variable of a file whose axes are there. */
static void put_field(hid_t file, const struct form *f, const char *name, const char *lat, int component)
{
    double value[TIME * ELEMS];
    const int is_turned = strcmp(f->order, "txy") == 0;
    const char *const axis[] = {"time", is_turned ? "lon" : lat, is_turned ? lat : "lon"};
    for (int t = 0; t < TIME; t++)
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++) {
                const int row = f->is_down ? SIDE - 1 - y : y, at = is_turned ? x * SIDE + row : row * SIDE + x;
                const double kelvin = number_at(component, t, y, x);
                value[t * ELEMS + at] = kelvin == 0                     ? f->missing
                                        : strcmp(f->units, "degC") == 0 ? kelvin - 273.15
                                                                        : kelvin;
            }
    const hid_t type = f->is_double ? H5T_IEEE_F64LE : H5T_IEEE_F32LE,
                set = put_set(file, name, (struct layout){.type = type, .ndim = 3, .dim = {TIME, SIDE, SIDE}}, value);
    put_attribute(set, "_FillValue", type, 1, &f->missing);
    put_text(set, "units", f->units);
    name_axes(file, set, 3, axis);
    H5Dclose(set);
}

/* also: a second variable of another form, whose latitudes have an axis of
 * their own; NULL: none. */
static void put_netcdf(const char *path, const struct form *f, const struct form *also)
{
    double lat[SIDE], down[SIDE], lon[SIDE], time[TIME];
    const hid_t file = new_file(path);
    for (int i = 0; i < SIDE; i++) {
        lat[i] = latitude(f->is_down ? SIDE - 1 - i : i) + f->shift;
        down[i] = latitude(SIDE - 1 - i);
        lon[i] = 90 * i;
    }
    for (int i = 0; i < TIME; i++)
        time[i] = i;
    put_coordinates(file, "time", TIME, time, "days since 2000-01-01", f->calendar);
    put_coordinates(file, "lat", SIDE, lat, "degrees_north", NULL);
    put_coordinates(file, "lon", SIDE, lon, "degrees_east", NULL);
    if (also && also->is_down)
        put_coordinates(file, "lat_down", SIDE, down, "degrees_north", NULL);
    put_field(file, f, f->name, "lat", 0);
    put_field(file, f, "u", "lat", 0);
    put_field(file, f, "v", "lat", 1);
    if (also)
        put_field(file, also, "also", also->is_down ? "lat_down" : "lat", 0);
    const hid_t y = put_set(file, "target", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 1, .dim = {TIME}}, time);
    name_axes(file, y, 1, (const char *const[]){"time"});
    H5Dclose(y);
    H5Fclose(file);
}

#if CVY_HAVE_CFITSIO
#define FITS(call)                                                                                                     \
    do {                                                                                                               \
        int code = 0;                                                                                                  \
        (call);                                                                                                        \
        TRUE_THAT(code == 0);                                                                                          \
    } while (0)

static void put_fits_axis(fitsfile *f, int n, const char *name, double first, double step)
{
    char key[16];
    double pixel = 1;
    snprintf(key, sizeof key, "CTYPE%d", n);
    FITS(fits_write_key(f, TSTRING, key, (char *)name, NULL, &code));
    snprintf(key, sizeof key, "CRVAL%d", n);
    FITS(fits_write_key(f, TDOUBLE, key, &first, NULL, &code));
    snprintf(key, sizeof key, "CDELT%d", n);
    FITS(fits_write_key(f, TDOUBLE, key, &step, NULL, &code));
    snprintf(key, sizeof key, "CRPIX%d", n);
    FITS(fits_write_key(f, TDOUBLE, key, &pixel, NULL, &code));
}

/* A cube, whose planes are the samples. Missing numbers are NaN. */
static void put_fits(const char *path, const struct form *f, const struct form *also)
{
    const long axis[] = {SIDE, SIDE, TIME};
    double value[TIME * ELEMS], blank = NAN;
    const int is_turned = strcmp(f->order, "txy") == 0;
    fitsfile *file = NULL;
    (void)also; /* its images have no variables */
    for (int t = 0; t < TIME; t++)
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++) {
                const int row = f->is_down ? SIDE - 1 - y : y, at = is_turned ? x * SIDE + row : row * SIDE + x;
                const double kelvin = number_at(0, t, y, x);
                value[t * ELEMS + at] = kelvin == 0 ? blank : strcmp(f->units, "degC") == 0 ? kelvin - 273.15 : kelvin;
            }
    remove(in_scratch(path));
    FITS(fits_create_diskfile(&file, in_scratch(path), &code));
    FITS(fits_create_img(file, f->is_double ? DOUBLE_IMG : FLOAT_IMG, 3, (long *)axis, &code));
    FITS(fits_write_img(file, TDOUBLE, 1, TIME * ELEMS, value, &code));
    FITS(fits_write_key(file, TSTRING, "BUNIT", (char *)f->units, NULL, &code));
    put_fits_axis(file, is_turned ? 2 : 1, "LON", 0, 90);
    put_fits_axis(file, is_turned ? 1 : 2, "LAT", latitude(f->is_down ? SIDE - 1 : 0), f->is_down ? -40 : 40);
    put_fits_axis(file, 3, "TIME", 0, 1);
    FITS(fits_close_file(file, &code));
}
#endif

/* ---- places where they meet ---- */

enum { FILES, SOURCES, VARIABLES, VAL, TEST, PREDICT, RESUME, PACKED, PLACES };
static const char *const place_name[PLACES] = {"files", "sources", "variables", "val",
                                               "test",  "predict", "resume",    "packed training data"};

static cvy_tree *tree_of(cvy_pool *pool, const char *text)
{
    cvy_tree *tree = NULL;
    OK(cvy_tree_parse_text(pool, "source", text, strlen(text), &tree));
    return tree;
}

/* What the weights of a run on these data keep of them. */
static void keep(const char *source, cvy_dataset *data, cvy_network_spec *out)
{
    char text[2048];
    cvy_job *job = NULL;
    cvy_text written = {0};
    snprintf(text, sizeof text,
             "model: {layers: [flatten, {fc: {channels: 1}}]}\ndata: {train: "
             "%s}\ntrain: {epochs: 1}\n",
             source);
    OK(cvy_job_parse_text("job.yaml", text, NULL, 0, &job));
    OK(cvy_network_spec_write(job, data, &written));
    OK(cvy_network_spec_read("run", written.data, out));
    cvy_text_free(&written);
    cvy_job_destroy(&job);
}

static cvy_status open_like(const char *source, const cvy_data_form *like, int with_target, cvy_dataset **out)
{
    cvy_pool *pool = NULL;
    OK(cvy_pool_create(&pool));
    const cvy_status status = cvy_dataset_open_like(tree_of(pool, source), NULL, 7, with_target, like, out);
    cvy_pool_destroy(&pool);
    return status;
}

static cvy_status resume(const char *source, const cvy_data_form *like, cvy_dataset **out)
{
    cvy_pool *pool = NULL;
    OK(cvy_pool_create(&pool));
    cvy_tree *tree = tree_of(pool, source);
    cvy_status status = cvy_dataset_open(tree, NULL, 0, 7, out);
    if (status == CVY_OK)
        status = cvy_dataset_take_order(like, "run", 0, tree, NULL, 7, out);
    if (status == CVY_OK)
        status = cvy_dataset_agrees(like, *out);
    if (status == CVY_OK) {
        cvy_reader_info own = *cvy_dataset_reader_info(*out);
        status = cvy_descriptions_agree(&like->stored->described, "in those of the checkpoint", 1, &own);
    }
    cvy_pool_destroy(&pool);
    return status;
}

/* Writes a packed set, and opens it in the place of its source. */
static void pack(cvy_dataset **d)
{
    cvy_comm *self = NULL;
    cvy_convert_report report;
    OK(cvy_file_remove_tree(in_scratch("pack")));
    OK(cvy_comm_create_self(&self));
    OK(cvy_convert(*d, self, in_scratch("pack"), &(cvy_convert_opts){.format = "pack", .pieces = 1}, &report));
    self->ops->destroy(self);
    cvy_dataset_destroy(d);
    OK(open_text(in_scratch("pack"), NULL, 0, d));
}

struct format {
    const char *name, *suffix;
    void (*put)(const char *path, const struct form *f, const struct form *also);
    int is_images; /* 1: its samples are planes without variables */
};

static void source_of(const struct format *format, const char *path, const char *list, char text[1024])
{
    if (format->is_images)
        snprintf(text, 1024, "{path: \"%s\", format: %s, cube: true, missing: 0}", path, format->name);
    else
        snprintf(text, 1024,
                 "{path: \"%s\", format: %s, x: %s, y: target, missing: 0, "
                 "sandbox: false}",
                 path, format->name, list);
}

/* Opens the second file in a place; *first_out: its first row. */
static cvy_status meet(const struct format *format, int difference, int place, cvy_dataset **out, int *first_out)
{
    const struct form other = form_of(difference);
    const char *first_list = difference == COMPONENTS ? "[u, v]" : "tas";
    char a[1024], b[1024], both[2100], name[2][64], pattern[600];
    cvy_dataset *train = NULL;
    cvy_network_spec spec = {0};
    snprintf(name[0], sizeof name[0], "%d-a%s", difference, format->suffix);
    snprintf(name[1], sizeof name[1], "%d-b%s", difference, format->suffix);
    format->put(name[0], &usual, difference == SAME ? &usual : &other);
    format->put(name[1], &other, NULL);
    snprintf(pattern, sizeof pattern, "%s/%d-?%s", scratch_folder, difference, format->suffix);
    source_of(format, in_scratch(name[0]), first_list, a);
    source_of(format, in_scratch(name[1]), other.list, b);
    *first_out = place == FILES || place == SOURCES ? TIME : 0;
    if (place == SOURCES)
        snprintf(both, sizeof both, "[%s, %s]", a, b);
    else if (place == VARIABLES)
        source_of(format, in_scratch(name[0]), "[tas, also]", both);
    else
        source_of(format, pattern, first_list, both);
    if (place == FILES || place == SOURCES || place == VARIABLES)
        return open_text(both, NULL, 0, out);
    OK(open_text(a, NULL, 0, &train));
    if (place == PACKED)
        pack(&train);
    keep(a, train, &spec);
    cvy_data_form form = place == VAL || place == PACKED ? cvy_dataset_form(train) : cvy_network_spec_form(&spec);
    form.x_only = place == PREDICT;
    const cvy_status status = place == RESUME ? resume(b, &form, out) : open_like(b, &form, place != PREDICT, out);
    cvy_dataset_destroy(&train);
    cvy_network_spec_end(&spec);
    return status;
}

/* ---- what comes of it ---- */

/* Copies the lines of a note, but for those about how the samples lie in the file, which are not about a difference. */
static void copy_lines(const char *note, char text[1000])
{
    *text = 0;
    for (const char *at = note; at && *at; at += strcspn(at, "\n"), at += *at == '\n') {
        char line[600];
        snprintf(line, sizeof line, "%.*s\n", (int)strcspn(at, "\n"), at);
        if (!strstr(line, ": x is the data set "))
            snprintf(text + strlen(text), 1000 - strlen(text), "%s", line);
    }
}

/* A: agreed, nothing had to change. M: mended and said. S: said only, and the
 * numbers are right. R: refused. */
static char outcome(const struct format *format, int difference, int place, char text[1000])
{
    cvy_dataset *d = NULL;
    int first = 0, wrong = 0;
    float x[2 * ELEMS], y[ELEMS];
    if (meet(format, difference, place, &d, &first) != CVY_OK) {
        snprintf(text, 1000, "%s", cvy_error_text());
        cvy_dataset_destroy(&d);
        return 'R';
    }
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    copy_lines(info->note, text);
    const int channels = place == VARIABLES || difference == COMPONENTS ? 2 : 1;
    for (int t = 0; t < TIME; t++) {
        OK(cvy_dataset_read(d, first + t, 0, (void *[]){x, y, y}));
        for (int i = 0; i < channels * ELEMS; i++) {
            const int component = difference == COMPONENTS && place != VARIABLES ? i / ELEMS : 0;
            wrong += !(fabs((double)x[i] - number_at(component, t, i % ELEMS / SIDE, i % SIDE)) < 1e-3);
        }
    }
    cvy_dataset_destroy(&d);
    return wrong ? 'X' : *text ? 'M' : 'A';
}

/* What must come of it, in the order of the places, and words of the sentence
 * that must be said, or of the fault. */
struct row {
    int difference;
    const char *outcome, *words[2];
};

static void check(const struct format *format, const struct row *row, int nrow)
{
    int bad = 0;
    for (int i = 0; i < nrow; i++)
        for (int place = 0; place < PLACES; place++) {
            char text[1000] = "";
            const char want = row[i].outcome[place],
                       got = want == '-' ? '-' : outcome(format, row[i].difference, place, text);
            int is_bad = got != want;
            for (int k = 0; k < 2 && row[i].words[k] && (want == 'M' || want == 'R'); k++)
                is_bad |= !strstr(text, row[i].words[k]);
            if (is_bad)
                printf("%s, %s, %s: %c, expected %c: %s\n", format->name, difference_name[row[i].difference],
                       place_name[place], got, want, *text ? text : "nothing is said");
            bad += is_bad;
        }
    TRUE_THAT(bad == 0);
}

static const struct row fields[] = {
    /* files, sources, variables, val, test, predict, resume, packed training
       data */
    {SAME, "AAAAAAAA", {0}},
    {UNITS, "MM-MMMMM", {"degC", "K"}},
    {OTHER_UNITS, "RR-RRRRR", {"Pa", "K"}},
    {ORDER, "MMMMMMMM", {"lon", "lat"}},
    {DIRECTION, "MMMMMMMM", {"lat", NULL}},
    {CALENDAR, "MM-MMMMM", {"noleap", "standard"}},
    {DTYPE, "RAAAAAAA", {"float64", "float32"}},
    {MISSING, "AAAAAAAA", {0}},
    {NAME, "RMAMMMMM", {"t2m", "tas"}},
    {COMPONENTS, "AMAMMMMM", {"u", "v"}},
};

#if CVY_HAVE_CFITSIO
/* Images have neither several variables nor calendars; their readers convert
 * units, and mend no axes. */
static const struct row images[] = {
    {SAME, "AA-AAAAA", {0}},
    {UNITS, "MM-MMMMM", {"degC", "K"}},
    {OTHER_UNITS, "RR-RRRRR", {"Pa", "K"}},
    {ORDER, "RR-RRRRR", {"LON", "LAT"}},
    {DIRECTION, "RR-RRRRR", {"LAT", NULL}},
    {DTYPE, "AA-AAAAA", {0}},
};
#endif

/* ---- whole runs ---- */

static cvy_context *context;
static char said[8000]; /* what a run has said */

static void hear(void *user, cvy_log_level level, const char *line)
{
    const size_t at = strlen(said);
    (void)user, (void)level;
    snprintf(said + at, sizeof said - at, "%s\n", line);
}

static void follow(void *user, const cvy_progress *progress)
{
    if (progress->event)
        hear(user, CVY_LOG_INFO, progress->event);
}

static cvy_status train(const char *file, const char *out, int resume, const char *init)
{
    char text[2000];
    snprintf(text, sizeof text,
             "model: {layers: [{leaky_relu: {name: same, slope: 1}}, flatten, "
             "{fc: {channels: 1}}]}\n"
             "data: {train: {path: \"%s\", format: netcdf, x: tas, y: target, "
             "missing: 0, sandbox: false}, normalize: "
             "auto}\n"
             "train: {batch: 3, epochs: %d, loss: mse, optimizer: {name: sgd, "
             "lr: 1e-9}%s}\n",
             in_scratch(file), 1 + resume, init);
    const cvy_job_source job = {.size = sizeof job, .text = text};
    const cvy_train_opts opts = {.size = sizeof opts, .out = in_scratch(out), .resume = resume, .progress = follow};
    *said = 0;
    return cvy_run_train(context, &job, &opts, NULL);
}

static cvy_status predict(const char *run, const char *data, const char *out)
{
    const cvy_predict_request ask = {
        .size = sizeof ask, .target = in_scratch(run), .data = data, .out = in_scratch(out), .outputs = "same"};
    remove(in_scratch(out));
    *said = 0;
    return cvy_run_predict(context, &ask);
}

static const char *source(const char *files)
{
    static char text[1000];
    snprintf(text, sizeof text,
             "{path: \"%s\", format: netcdf, x: tas, y: target, missing: 0, "
             "sandbox: false}",
             in_scratch(files));
    return text;
}

static void read_rows(const char *name, float *out)
{
    FILE *f = fopen(in_scratch(name), "rb");
    TRUE_THAT(f && fseek(f, 128, SEEK_SET) == 0 && fread(out, sizeof *out, TIME * ELEMS, f) == TIME * ELEMS);
    fclose(f);
}

static int are_same(const float *a, const float *b)
{
    for (int i = 0; i < TIME * ELEMS; i++)
        if (!(fabsf(a[i] - b[i]) < 1e-3F))
            return 0;
    return 1;
}

static double loss_of(const char *run, const char *file)
{
    cvy_test_result result = {.size = sizeof result};
    OK(cvy_run_test(context, in_scratch(run), NULL, source(file), &result));
    const double loss = result.loss;
    cvy_test_result_release(&result);
    return loss;
}

/* A run applies its network to files that say the same fields in another way,
 * goes on with them, and another begins with its weights: the numbers are the
 * same, so the outputs and the losses are. */
static void test_runs(void)
{
    static const struct {
        int difference;
        const char *words;
    } mended[] = {{UNITS, "is in degC, but in K"}, {ORDER, "(lon, lat)"}, {DIRECTION, "axis lat is"}};
    float first[TIME * ELEMS], own[TIME * ELEMS];
    char init[600];
    struct form f = form_of(OTHER_UNITS);
    put_netcdf("first.nc", &usual, NULL);
    put_netcdf("pascal.nc", &f, NULL);
    OK(train("first.nc", "run", 0, ""));
    OK(predict("run", source("first.nc"), "first.npy"));
    read_rows("first.npy", first);
    const double loss = loss_of("run", "first.nc");
    FAILS(predict("run", source("pascal.nc"), "own.npy"), CVY_E_CONFIG, "is in Pa, but in K in the training data");
    snprintf(init, sizeof init, ", init: \"%s\"", in_scratch("run"));
    for (int i = 0; i < CVY_COUNT(mended); i++) {
        f = form_of(mended[i].difference);
        put_netcdf("other.nc", &f, NULL);
        OK(predict("run", source("other.nc"), "own.npy"));
        TRUE_THAT(strstr(said, mended[i].words));
        read_rows("own.npy", own);
        TRUE_THAT(are_same(first, own) && fabs(loss_of("run", "other.nc") - loss) < 1e-4 * loss);
        OK(cvy_file_remove_tree(in_scratch("next")));
        OK(train("other.nc", "next", 0, init));
        TRUE_THAT(strstr(said, mended[i].words) && fabs(loss_of("next", "first.nc") - loss) < 1e-4 * loss);
        put_netcdf("again.nc", &usual, NULL);
        OK(cvy_file_remove_tree(in_scratch("again")));
        OK(train("again.nc", "again", 0, ""));
        const double before = loss_of("again", "first.nc");
        put_netcdf("again.nc", &f, NULL);
        OK(train("again.nc", "again", 1, ""));
        TRUE_THAT(strstr(said, mended[i].words) && fabs(loss_of("again", "first.nc") - before) < 1e-4 * before);
    }
}

/* Opens predictions for two files, the latitudes of which may be those of the
 * first. */
static void predict_pair(const struct form *second, int has_latitudes)
{
    cvy_dataset *d = NULL;
    cvy_pool *pool = NULL;
    cvy_coordinates lat;
    float row[2][ELEMS];
    char text[800];
    put_netcdf("pair-a.nc", &usual, NULL);
    put_netcdf("pair-b.nc", second, NULL);
    OK(predict("run", source("pair-?.nc"), "pair.nc"));
    TRUE_THAT((strstr(said, "coordinates along lat are left out") != NULL) == !has_latitudes);
    snprintf(text, sizeof text, "{path: \"%s\", x: same}", in_scratch("pair.nc"));
    OK(open_text(text, NULL, 0, &d));
    OK(cvy_pool_create(&pool));
    OK(cvy_dataset_coordinates(d, CVY_ALONG_X, 1, pool, &lat));
    TRUE_THAT(lat.name && strcmp(lat.name, "lat") == 0 && lat.n == SIDE && !lat.value == !has_latitudes);
    for (int i = 0; i < SIDE && lat.value; i++)
        TRUE_THAT(lat.value[i] == latitude(i));
    for (int k = 0; k < 2; k++)
        OK(cvy_dataset_read(d, k * TIME, 0, (void *[]){row[k]}));
    TRUE_THAT(memcmp(row[0], row[1], sizeof row[0]) == 0);
    cvy_pool_destroy(&pool);
    cvy_dataset_destroy(&d);
}

/* A file of predictions never has coordinates that are those of some rows only.
 */
static void test_predictions(void)
{
    struct form f = form_of(DIRECTION);
    predict_pair(&usual, 1);
    predict_pair(&f, 1);
    f = form_of(ORDER);
    predict_pair(&f, 1);
    f = usual;
    f.shift = 5;
    predict_pair(&f, 0);
}

/* A program that gives arrays says what it knows of them. */
static void test_arrays(void)
{
#define X(units, axes) "{described: {x: [{" units "samples: {n: 3}, axes: [" axes "]}], y: []}}"
#define LAT "{name: lat, units: degrees_north, n: 4, at: [-60, -20, 20, 60]}"
#define LON "{name: lon, n: 4, at: [0, 90, 180, 270]}"
    static const struct {
        const char *described, *words;
    } want[] = {
        {X("units: K, ", LAT ", " LON), NULL},
        {X("units: K, ", "{n: 1}, " LAT ", " LON), NULL},
        {X("units: kelvin, ", "{name: lat, n: 4}, {name: lon, n: 4}"), NULL},
        {X("units: degC, ", LAT ", " LON), "is in degC, but in K in the training data"},
        {X("units: K, ", LON ", " LAT), "has the axes (lon, lat), but (lat, lon) in the training data"},
        {X("", "{name: lat, n: 4, at: [60, 20, -20, -60]}, " LON), "axis lat is 60, 20, -20, -60"},
        {"{}", NULL},
        {"[1]", "no map"},
        {"{described: {x: [{}], y: []}}", "has no \"n\""},
    };
    cvy_network *n = NULL;
    char *notes = NULL;
    OK(cvy_network_open(context, in_scratch("run"), NULL, &n));
    for (int i = 0; i < CVY_COUNT(want); i++) {
        const cvy_status status = cvy_network_check_input(n, want[i].described, &notes);
        if (want[i].words ? status == CVY_OK || !strstr(cvy_error_text(), want[i].words) : status != CVY_OK || notes)
            printf("%s: %s\n", want[i].described, status == CVY_OK ? notes ? notes : "accepted" : cvy_error_text());
        TRUE_THAT((status == CVY_OK) == !want[i].words && !notes);
        TRUE_THAT(!want[i].words || strstr(cvy_error_text(), want[i].words));
    }
    OK(cvy_network_check_input(n, X("units: K, ", "{name: lat, n: 4, at: [0, 10, 20, 30]}, " LON), &notes));
    TRUE_THAT(notes && strstr(notes, "axis lat is 0, 10, 20, 30"));
    cvy_text_release(&notes);
    OK(cvy_network_check_input(n, X("", LAT ", " LON), &notes));
    TRUE_THAT(notes && strstr(notes, "it has no units, but the units K in the training data"));
    cvy_text_release(&notes);
    FAILS(cvy_network_check_input(n, NULL, NULL), CVY_E_ARGUMENT, "needs a description");
    cvy_network_destroy(&n);
}

int main(void)
{
    static const struct format netcdf = {"netcdf", ".nc", put_netcdf, 0}, hdf5 = {"hdf5", ".h5", put_netcdf, 0};
    scratch_make();
    check(&netcdf, fields, CVY_COUNT(fields));
    check(&hdf5, fields, CVY_COUNT(fields));
#if CVY_HAVE_CFITSIO
    check(&(struct format){"fits", ".fits", put_fits, 1}, images, CVY_COUNT(images));
#endif
    OK(cvy_context_create(
        &(cvy_context_opts){.size = sizeof(cvy_context_opts), .threads = 1, .log_level = CVY_LOG_INFO, .log = hear},
        &context));
    test_runs();
    test_predictions();
    test_arrays();
    cvy_context_destroy(&context);
    scratch_remove();
    return 0;
}
#else
int main(void)
{
    return 0;
}
#endif
