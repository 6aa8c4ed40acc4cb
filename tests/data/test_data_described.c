/*
 * test_data_described.c: NetCDF files of one data set, variables of one list, lists of sources and further data that
 * differ in the order or direction of axes, in longitudes, units, calendars or coordinates are brought into agreement
 * with the first, or it is said, or they are refused, each sample to the number.
 *
 * rows: clang asan
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test_data_netcdf.h"

#if CVY_HAVE_HDF5
#include "data/data_described.h"

#include <math.h>
#include <stdarg.h>

static int failures;

enum { TIME = 3, LEV = 2, LAT = 4, LON = 4 };

static void fail(const char *fmt, ...) CVY_PRINTF(1, 2);
static void fail(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    printf("\n");
    failures++;
}

/* How a file is written. Zero: t (time, lev, lat, lon), p (time, lat, lon) and y (time), in K and hPa. */
struct file {
    const char *axes;              /* of t, as letters: T, Z, Y, X */
    int south, up, west;           /* latitudes go down; levels go up; longitudes go down */
    int rolled;                    /* longitudes begin with element 1, 2, .., less 360 degrees */
    double shift;                  /* of latitudes */
    const char *units, *lev_units; /* of t and of the levels */
    const char *since, *calendar;  /* units and calendar of time */
    const char *lat_name;
    const char *time_name;
    double level;  /* the second one, in hPa */
    int bare;      /* no coordinates, only names */
    int no_names;  /* no dimension scales */
    int labels;    /* names of axes as labels, without dimension scales */
    double height; /* a scalar coordinate of t; 0: there is none */
    const char *height_units;
    int curved; /* lat and lon are variables of two axes, which have no coordinates themselves */
    int packed; /* t is packed as integers, of a scale of its own */
    int chunked;
};

/* The number of t at these places, in K. */
static double real_number(int time, int lev, int lat, int lon)
{
    return 250 + 100 * time + 30 * lev + 5 * lat + lon;
}

static void put_axis(hid_t file, const char *name, int n, const double *value, const char *units, int bare)
{
    const hid_t set =
        put_set(file, name, (struct layout){.type = H5T_IEEE_F64LE, .ndim = 1, .dim = {(hsize_t)n}}, value);
    make_axis(set, bare ? "This is a netCDF dimension but not a netCDF variable" : name);
    if (units && !bare)
        put_text(set, "units", units);
    H5Dclose(set);
}

static void label_axes(hid_t set, int ndim, const char *const *name)
{
    const hsize_t count = (hsize_t)ndim;
    const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate_simple(1, &count, NULL);
    H5Tset_size(type, H5T_VARIABLE);
    const hid_t at = H5Acreate2(set, "DIMENSION_LABELS", type, space, H5P_DEFAULT, H5P_DEFAULT);
    TRUE_THAT(at >= 0 && H5Awrite(at, type, name) >= 0);
    H5Aclose(at);
    H5Sclose(space);
    H5Tclose(type);
}

/* Writes a variable whose axes have these letters; get_lev: its levels. */
static void put_variable(hid_t file, const struct file *f, const char *name, const char *axes, const char *units)
{
    const int n[128] = {['T'] = TIME, ['Z'] = LEV, ['Y'] = LAT, ['X'] = LON};
    const char *axis[128] = {['T'] = f->time_name ? f->time_name : "time",
                             ['Z'] = "lev",
                             ['Y'] = f->lat_name ? f->lat_name : "lat",
                             ['X'] = "lon"},
               *axis_name[AXES_MAX];
    const int ndim = (int)strlen(axes);
    struct layout l = {.type = f->packed ? H5T_STD_I16LE : H5T_IEEE_F32LE, .ndim = ndim};
    double value[TIME * LEV * LAT * LON], factor = 1, offset = 0;
    int k[128] = {0}, count = 1;
    for (int i = 0; i < ndim; i++) {
        l.dim[i] = (hsize_t)n[(int)axes[i]];
        axis_name[i] = axis[(int)axes[i]];
        count *= n[(int)axes[i]];
        if (f->chunked)
            l.chunk[i] = i == 0 ? 1 : l.dim[i];
    }
    if (units && strcmp(units, "degC") == 0)
        offset = -273.15;
    if (f->packed)
        factor = 4;
    for (int e = 0; e < count; e++) {
        int rest = e;
        for (int i = ndim - 1; i >= 0; i--) {
            k[(int)axes[i]] = rest % n[(int)axes[i]];
            rest /= n[(int)axes[i]];
        }
        const int lev = f->up ? LEV - 1 - k['Z'] : k['Z'], lat = f->south ? LAT - 1 - k['Y'] : k['Y'],
                  lon = ((f->west ? LON - 1 - k['X'] : k['X']) + f->rolled) % LON;
        value[e] = (real_number(k['T'], lev, lat, lon) + offset) * factor;
    }
    const hid_t set = put_set(file, name, l, value);
    if (units)
        put_text(set, "units", units);
    if (f->packed)
        put_attribute(set, "scale_factor", H5T_IEEE_F64LE, 1, &(double){1 / factor});
    if (f->labels)
        label_axes(set, ndim, axis_name);
    else if (!f->no_names)
        name_axes(file, set, ndim, axis_name);
    if (f->height > 0)
        put_text(set, "coordinates", "height");
    if (f->curved)
        put_text(set, "coordinates", "nav_lat nav_lon");
    H5Dclose(set);
}

/* Positions of a grid that is almost a regular one. */
static void put_positions(hid_t file, const double *lat, const double *lon)
{
    double value[2][LAT * LON];
    for (int e = 0; e < LAT * LON; e++) {
        value[0][e] = lat[e / LON] + 0.1 * (e % LON);
        value[1][e] = lon[e % LON] + 0.1 * (e / LON);
    }
    for (int i = 0; i < 2; i++) {
        const hid_t set = put_set(file, i ? "nav_lon" : "nav_lat",
                                  (struct layout){.type = H5T_IEEE_F64LE, .ndim = 2, .dim = {LAT, LON}}, value[i]);
        put_text(set, "units", i ? "degrees_east" : "degrees_north");
        name_axes(file, set, 2, (const char *const[]){"lat", "lon"});
        H5Dclose(set);
    }
}

static void make(const char *name, struct file f)
{
    double time[TIME], lev[LEV] = {1000, f.level > 0 ? f.level : 500}, lat[LAT], lon[LON], y[TIME];
    const double to_lev = f.lev_units && strcmp(f.lev_units, "Pa") == 0 ? 100 : 1;
    const char *axes = f.axes ? f.axes : "TZYX";
    char p[8] = "";
    const hid_t file = new_file(name);
    for (int i = 0; i < LAT; i++) {
        lat[f.south ? LAT - 1 - i : i] = -60 + 40 * i + f.shift;
        lon[f.west ? LON - 1 - i : i] = 90 * (i + f.rolled) - (f.rolled > 0 ? 360 : 0);
    }
    for (int i = 0; i < TIME; i++)
        y[i] = time[i] = i;
    for (int i = 0; i < LEV; i++)
        lev[i] *= to_lev;
    if (f.up) {
        const double first = lev[0];
        lev[0] = lev[1];
        lev[1] = first;
    }
    put_axis(file, f.time_name ? f.time_name : "time", TIME, time,
             f.time_name ? NULL
             : f.since   ? f.since
                         : "days since 2000-01-01",
             f.bare);
    if (f.calendar) {
        const hid_t set = H5Dopen2(file, "time", H5P_DEFAULT);
        put_text(set, "calendar", f.calendar);
        H5Dclose(set);
    }
    put_axis(file, "lev", LEV, lev, f.lev_units ? f.lev_units : "hPa", f.bare);
    put_axis(file, f.lat_name ? f.lat_name : "lat", LAT, lat, "degrees_north", f.bare);
    put_axis(file, "lon", LON, lon, "degrees_east", f.bare);
    if (f.height > 0) {
        const hid_t set = put_set(file, "height", (struct layout){.type = H5T_IEEE_F64LE}, &f.height);
        put_text(set, "units", f.height_units);
        H5Dclose(set);
    }
    if (f.curved)
        put_positions(file, lat, lon);
    put_variable(file, &f, "t", axes, f.units ? f.units : "K");
    for (const char *a = axes; *a; a++)
        if (*a != 'Z')
            strncat(p, a, 1);
    put_variable(file, &f, "p", p, "hPa");
    add_set(file, "y", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 1, .dim = {TIME}}, y);
    H5Fclose(file);
}

static cvy_status open_files(const char *text, const cvy_data_form *like, cvy_dataset **out)
{
    cvy_tree *tree = NULL;
    cvy_pool *pool = NULL;
    if (!like)
        return open_text(text, NULL, 0, out);
    OK(cvy_pool_create(&pool));
    OK(cvy_tree_parse_text(pool, "source", text, strlen(text), &tree));
    const cvy_status status = cvy_dataset_open_like(tree, NULL, 0, 1, like, out);
    cvy_pool_destroy(&pool);
    return status;
}

static const char *source(const char *pattern, const char *options)
{
    static char text[1024];
    snprintf(text, sizeof text, "{path: \"%s\", format: netcdf, %s}", in_scratch(pattern), options);
    return text;
}

/* Checks that each sample has its true numbers: t, and then p if with_p is 1. */
static void expect_truth(cvy_dataset *d, int with_p)
{
    static float x[2 * LEV * LAT * LON], y[LAT * LON];
    void *const field[] = {x, y};
    const int64_t n = cvy_dataset_describe(d)->nsamples;
    double worst = 0;
    for (int64_t s = 0; s < n; s++) {
        OK(cvy_dataset_read(d, s, 0, field));
        for (int z = 0; z < LEV + with_p; z++)
            for (int i = 0; i < LAT; i++)
                for (int k = 0; k < LON; k++)
                    worst = CVY_MAX(worst, fabs((double)x[(z * LAT + i) * LON + k] -
                                                real_number((int)(s % TIME), z == LEV ? 0 : z, i, k)));
    }
    if (!(worst < 1e-4))
        fail("differs by %g", worst);
}

static const char *note_of(const cvy_dataset *d)
{
    const char *note = cvy_dataset_describe(d)->note;
    return note ? note : "";
}

/* Differences of the second file, or of further data, from a.nc; what is said of them, and whether they are read as
 * those are. said NULL: nothing. */
static const struct row {
    const char *what;
    struct file file;
    const char *said, *refused;
} row[] = {
    {"equal", {0}, NULL, NULL},
    {"southwards", {.south = 1}, "axis lat is 60, 20, -20, -60 degrees_north, but -60, -20, 20, 60", NULL},
    {"longitudes", {.rolled = 2}, "axis lon is -180, -90, 0, 90 degrees_east, but 0, 90, 180, 270", NULL},
    {"longitudes, both", {.rolled = 1, .west = 1}, "it is turned round, and read from the same longitude on", NULL},
    {"levels", {.up = 1}, "axis lev is 500, 1000 hPa, but 1000, 500 hPa", NULL},
    {"all three", {.south = 1, .rolled = 1, .up = 1}, "it is turned round", NULL},
    {"order", {.axes = "TZXY"}, "t has the axes (lev, lon, lat), but (lev, lat, lon)", NULL},
    {"order of all", {.axes = "XYZT"}, "t has the axes (lon, lat, lev), but (lev, lat, lon)", NULL},
    {"order and direction", {.axes = "TXYZ", .south = 1}, "they are brought into that order", NULL},
    {"chunks", {.axes = "TXZY", .south = 1, .chunked = 1}, "they are brought into that order", NULL},
    {"packed", {.packed = 1, .axes = "TZXY", .rolled = 1}, NULL, "holds int16, but float32"},
    {"Celsius", {.units = "degC"}, "t is in degC, but in K", NULL},
    {"Kelvin", {.units = "kelvin"}, NULL, NULL},
    {"Celsius, turned", {.units = "degC", .south = 1, .axes = "TZXY"}, "it is converted, x + 273.15", NULL},
    {"no K", {.units = "Pa"}, NULL, "t is in Pa, but in K"},
    {"Pa", {.lev_units = "Pa"}, NULL, NULL},
    {"mbar", {.lev_units = "mbar", .up = 1}, "axis lev is 500, 1000 mbar, but 1000, 500 hPa", NULL},
    {"other levels", {.level = 700}, NULL, "axis lev is 1000, 700 hPa, but 1000, 500 hPa"},
    {"shifted", {.shift = 40}, "axis lat is -20, 20, 60, 100 degrees_north, but -60, -20, 20, 60", NULL},
    {"rounded", {.shift = 1e-5}, NULL, NULL},
    {"epoch", {.since = "hours since 1900-01-01 00:00:00"}, NULL, NULL},
    {"calendar", {.calendar = "360_day"}, "its times have the calendar 360_day, but standard", NULL},
    {"gregorian", {.calendar = "gregorian"}, NULL, NULL},
    {"name", {.lat_name = "latitude"}, NULL, NULL},
    {"name and order", {.lat_name = "latitude", .axes = "TZXY", .south = 1}, "brought into that order", NULL},
    {"names only", {.bare = 1}, NULL, NULL},
    {"names only, order", {.bare = 1, .axes = "TZXY"}, "brought into that order", NULL},
    {"no names", {.no_names = 1}, NULL, NULL},
    {"labels", {.labels = 1, .axes = "XTZY"}, "t has the axes (lon, lev, lat), but (lev, lat, lon)", NULL},
};

static void expect_row(const struct row *r, const char *text, const cvy_data_form *like, const char *where)
{
    cvy_dataset *d = NULL;
    const cvy_status status = open_files(text, like, &d);
    if (r->refused) {
        if (status == CVY_OK || !strstr(cvy_error_text(), r->refused))
            fail("%s (%s): %s", r->what, where, status == CVY_OK ? "not refused" : cvy_error_text());
        cvy_dataset_destroy(&d);
        return;
    }
    if (status != CVY_OK) {
        fail("%s (%s): %s", r->what, where, cvy_error_text());
        return;
    }
    if (r->said ? !strstr(note_of(d), r->said) : *note_of(d) != 0)
        fail("%s (%s): said \"%s\"", r->what, where, note_of(d));
    expect_truth(d, 0);
    cvy_dataset_destroy(&d);
}

static void test_files(void)
{
    char list[2048];
    make("s_a.nc", (struct file){0});
    for (int i = 0; i < CVY_COUNT(row); i++) {
        /* through the process of libhdf5 or without it, in turns: starting it takes long */
        const char *options = i % 3 == 0 ? "x: t, y: y" : "x: t, y: y, sandbox: false";
        cvy_dataset *first = NULL;
        make("s_b.nc", row[i].file);
        expect_row(&row[i], source("s_?.nc", options), NULL, "files");
        OK(open_files(source("s_a.nc", options), NULL, &first));
        const cvy_data_form form = cvy_dataset_form(first);
        if (strcmp(row[i].what, "packed") != 0) {
            expect_row(&row[i], source("s_b.nc", options), &form, "further data");
            snprintf(list, sizeof list, "[%s, ", source("s_a.nc", options));
            snprintf(list + strlen(list), sizeof list - strlen(list), "%s]", source("s_b.nc", options));
            expect_row(&row[i], list, NULL, "sources");
        }
        cvy_dataset_destroy(&first);
    }
}

/* Coordinates that the axes do not have themselves: those of curvilinear grids, and a height of all numbers. */
static void test_auxiliary(void)
{
    static const struct {
        struct file first, second;
        const char *said, *refused;
    } pair[] = {
        {{.bare = 1, .curved = 1}, {.bare = 1, .curved = 1}, NULL, NULL},
        {{.bare = 1, .curved = 1}, {.bare = 1, .curved = 1, .south = 1}, "axis lat is 60.2, 20.2, -19.8", NULL},
        {{.bare = 1, .curved = 1}, {.bare = 1, .curved = 1, .south = 1, .axes = "TZXY"}, "it is turned round", NULL},
        {{.bare = 1, .curved = 1}, {.bare = 1, .curved = 1, .shift = 10}, "these are other places", NULL},
        {{.bare = 1, .curved = 1}, {.bare = 1}, NULL, NULL},
        {{.height = 850, .height_units = "hPa"},
         {.height = 500, .height_units = "hPa"},
         NULL,
         "t is at height 500 hPa"},
        {{.height = 850, .height_units = "hPa"}, {.height = 85000, .height_units = "Pa"}, NULL, NULL},
        {{.height = 1.5, .height_units = "m"}, {.height = 2, .height_units = "m"}, "t is at height 2 m, but", NULL},
    };
    for (int i = 0; i < CVY_COUNT(pair); i++) {
        const struct row r = {"auxiliary coordinates", pair[i].second, pair[i].said, pair[i].refused};
        make("u_a.nc", pair[i].first);
        make("u_b.nc", pair[i].second);
        expect_row(&r, source("u_?.nc", "x: t, y: y, sandbox: false"), NULL, "files");
    }
}

/* The samples of a further file are along the axis that is left, whatever its name. */
static void test_other_samples(void)
{
    cvy_dataset *d = NULL;
    make("w_a.nc", (struct file){0});
    make("w_b.nc", (struct file){.time_name = "step", .axes = "ZYXT", .south = 1});
    OK(open_files(source("w_?.nc", "x: t, y: y, sandbox: false"), NULL, &d));
    expect_truth(d, 0);
    cvy_dataset_destroy(&d);
}

/* Files with packed numbers, each with its own layout. */
static void test_packed(void)
{
    cvy_dataset *d = NULL;
    make("k_a.nc", (struct file){.packed = 1});
    make("k_b.nc", (struct file){.packed = 1, .south = 1, .axes = "TZXY"});
    OK(open_files(source("k_?.nc", "x: t, y: y"), NULL, &d));
    expect_truth(d, 0);
    cvy_dataset_destroy(&d);
}

/* The variables of a list, and a target, follow the first one. */
static void test_variables(void)
{
    static float x[(LEV + 1) * LAT * LON], y[LAT * LON];
    void *const field[] = {x, y};
    cvy_dataset *d = NULL;
    const hid_t file = new_file("v.nc");
    const double lat[LAT] = {-60, -20, 20, 60}, lon[LON] = {0, 90, 180, 270}, lev[LEV] = {1000, 500},
                 time[TIME] = {0, 1, 2}, down[LAT] = {60, 20, -20, -60};
    put_axis(file, "time", TIME, time, "days since 2000-01-01", 0);
    put_axis(file, "lev", LEV, lev, "hPa", 0);
    put_axis(file, "lat", LAT, lat, "degrees_north", 0);
    put_axis(file, "latitude", LAT, down, "degrees_north", 0);
    put_axis(file, "lon", LON, lon, "degrees_east", 0);
    put_variable(file, &(struct file){0}, "t", "TZYX", "K");
    put_variable(file, &(struct file){.lat_name = "latitude", .south = 1}, "p", "TXY", "hPa");
    put_variable(file, &(struct file){.lat_name = "latitude", .south = 1}, "s", "YXT", NULL);
    H5Fclose(file);
    OK(open_files(source("v.nc", "x: [t, p], y: s"), NULL, &d));
    TRUE_THAT(strstr(note_of(d), "p has the axes (lon, latitude), but (latitude, lon) in t: they are brought into"));
    TRUE_THAT(strstr(note_of(d), "axis latitude is 60, 20, -20, -60 degrees_north, but -60, -20, 20, 60"));
    expect_truth(d, 1);
    TRUE_THAT(strcmp(cvy_shape_text(&cvy_dataset_describe(d)->field[1].shape), "4x4") == 0);
    OK(cvy_dataset_read(d, 1, 0, field));
    for (int e = 0; e < LAT * LON; e++)
        TRUE_THAT(y[e] == (float)real_number(1, 0, e / LON, e % LON));
    cvy_dataset_destroy(&d);
    OK(open_files(source("v.nc", "x: [t, p], y: s, metadata: ignore"), NULL, &d));
    TRUE_THAT(*note_of(d) == 0);
    OK(cvy_dataset_read(d, 0, 0, field));
    TRUE_THAT(x[LEV * LAT * LON] == (float)real_number(0, 0, LAT - 1, 0) &&
              x[LEV * LAT * LON + 1] == (float)real_number(0, 0, LAT - 2, 0));
    cvy_dataset_destroy(&d);
}

/* Many files of one kind are one line, and coordinates that differ between files are not those of all samples. */
static void test_said(void)
{
    cvy_dataset *d = NULL;
    cvy_pool *pool = NULL;
    cvy_coordinates c;
    make("n_a.nc", (struct file){0});
    make("n_b.nc", (struct file){.south = 1});
    make("n_c.nc", (struct file){.south = 1});
    make("n_d.nc", (struct file){.south = 1});
    make("n_e.nc", (struct file){.shift = 40});
    OK(open_files(source("n_?.nc", "x: [t, p], y: y"), NULL, &d));
    TRUE_THAT(strstr(note_of(d), "n_b.nc and 2 more files: axis lat is 60, 20, -20, -60"));
    TRUE_THAT(strstr(note_of(d), "these are other places"));
    OK(cvy_pool_create(&pool));
    OK(cvy_dataset_coordinates(d, CVY_ALONG_X, 1, pool, &c));
    TRUE_THAT(c.name && strcmp(c.name, "lat") == 0 && c.n == LAT && !c.value);
    OK(cvy_dataset_coordinates(d, CVY_ALONG_X, 2, pool, &c));
    TRUE_THAT(c.name && strcmp(c.name, "lon") == 0 && c.value && c.value[3] == 270);
    cvy_pool_destroy(&pool);
    cvy_dataset_destroy(&d);
}

/* A difference of temperatures has no offset, which the units do not tell. */
static void test_anomaly(void)
{
    for (int second = 0; second < 2; second++) {
        make(second ? "o_b.nc" : "o_a.nc", (struct file){.units = second ? "degC" : "K"});
        const hid_t file = H5Fopen(in_scratch(second ? "o_b.nc" : "o_a.nc"), H5F_ACC_RDWR, H5P_DEFAULT),
                    set = H5Dopen2(file, "t", H5P_DEFAULT);
        put_text(set, "long_name", "Temperature anomaly");
        H5Dclose(set);
        H5Fclose(file);
    }
    cvy_dataset *d = NULL;
    FAILS(open_files(source("o_?.nc", "x: t, y: y"), NULL, &d), CVY_E_CONFIG, "how to convert it is not certain");
    OK(open_files(source("o_?.nc", "x: t, y: y, metadata: ignore"), NULL, &d));
    cvy_dataset_destroy(&d);
}

/* What is kept of long axes tells the same differences, where nothing can be mended. */
static void test_kept(void)
{
    enum { N = 1000 };
    static double value[5][N];
    cvy_pool *pool = NULL;
    OK(cvy_pool_create(&pool));
    for (int i = 0; i < N; i++) {
        value[0][i] = value[4][i] = 0.25 * i;
        value[1][N - 1 - i] = 0.25 * i;
        value[2][i] = 0.25 * (i + 1);
        value[3][i] = value[0][i] * (1 + 1e-7);
    }
    static const char *const refused[] = {NULL, "bring them into agreement", NULL, NULL, NULL};
    for (int i = 0; i < 5; i++)
        for (int kept = 0; kept < 4; kept++) {
            cvy_described a = {.name = "t", .ndim = 1, .axis = {{.name = "lon", .n = N, .value = value[0]}}}, b = a;
            b.axis[0].value = value[i];
            if (kept & 1)
                OK(cvy_described_keep(pool, &a, &a));
            if (kept & 2)
                OK(cvy_described_keep(pool, &b, &b));
            TRUE_THAT(a.axis[0].nkept == (kept & 1 ? CVY_COORDINATES_KEPT : 0));
            cvy_reader_info info = {.pool = pool, .described = {.nx = 1, .x = &b}};
            const cvy_descriptions like = {.nx = 1, .x = &a};
            const cvy_status status = cvy_descriptions_agree(&like, "in the training data", 1, &info);
            TRUE_THAT((status != CVY_OK) == (refused[i] != NULL));
            TRUE_THAT(status == CVY_OK || strstr(cvy_error_text(), refused[i]));
            TRUE_THAT((info.note != NULL) == (i == 2));
        }
    cvy_pool_destroy(&pool);
}

int main(void)
{
    scratch_make();
    test_files();
    test_auxiliary();
    test_other_samples();
    test_packed();
    test_variables();
    test_said();
    test_anomaly();
    test_kept();
    scratch_remove();
    TRUE_THAT(failures == 0);
    return 0;
}

#else
int main(void)
{
    return 0;
}
#endif
