/*
 * test_data_coordinates.c: the coordinates along the axes of NetCDF files are found wherever an axis stands in a
 * sample, for the samples over all files, ranges and conditions, in the units of the first file; a table of HDF5 arrays
 * with axes has the attributes that the netCDF library needs, and its axes are read back.
 *
 * sky0.nc and sky1.nc are from netCDF4 for Python: tests/data/files/make_netcdf.py.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test_data_netcdf.h"

#if CVY_HAVE_HDF5
#include "data/hdf5/data_hdf5_table.h"

#include <math.h>

enum { TIME = 4, LAT = 3, LON = 5 };

static void open_files(const char *path, const char *options, cvy_dataset **out)
{
    char text[1024];
    snprintf(text, sizeof text, "{path: \"%s\", format: netcdf, %s}", path, options);
    OK(open_text(text, NULL, 0, out));
}

static const char *sky(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/tests/data/files/netcdf/%s", getenv("CONVOY_SOURCE"), name);
    return path;
}

static int is_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* step: from one coordinate to the next; 0: there are none. */
static void expect(cvy_dataset *d, cvy_along along, int axis, const char *name, const char *units, int64_t n,
                   double first, double step)
{
    cvy_pool *pool = NULL;
    cvy_coordinates c;
    OK(cvy_pool_create(&pool));
    OK(cvy_dataset_coordinates(d, along, axis, pool, &c));
    if (!is_text(c.name, name))
        printf("axis %d of %d: %s, expected %s\n", axis, (int)along, c.name ? c.name : "-", name ? name : "-");
    TRUE_THAT(is_text(c.name, name) && is_text(c.cf[CVY_CF_UNITS], units) && c.n == n &&
              (c.value != NULL) == (step != 0));
    for (int64_t i = 0; i < n && c.value; i++)
        TRUE_THAT(c.value[i] == first + step * (double)i);
    cvy_pool_destroy(&pool);
}

static void test_found(void)
{
    cvy_dataset *d = NULL;
    const char *hours = "hours since 2000-01-01 00:00:00";
    for (int sandbox = 0; sandbox < 2; sandbox++) {
        char options[128];
        snprintf(options, sizeof options, "x: wind, y: rain, sandbox: %s", sandbox ? "auto" : "false");
        open_files(sky("sky*.nc"), options, &d);
        TRUE_THAT(cvy_dataset_describe(d)->nsamples == 2 * TIME && strcmp(shape_of(d), "2x3x5") == 0);
        expect(d, CVY_ALONG_SAMPLES, 0, "time", hours, 2 * TIME, 0, 6);
        expect(d, CVY_ALONG_X, 0, "level", NULL, 2, 0, 0);
        expect(d, CVY_ALONG_X, 1, "lat", "degrees_north", LAT, 50, -10);
        expect(d, CVY_ALONG_X, 2, "lon", "degrees_east", LON, 0, 2.5);
        expect(d, CVY_ALONG_Y, 0, "lat", "degrees_north", LAT, 50, -10);
        cvy_dataset_destroy(&d);
    }
    open_files(sky("sky*.nc"), "x: rain, where: time >= 12, range: \"1:\"", &d);
    expect(d, CVY_ALONG_SAMPLES, 0, "time", hours, 2 * TIME - 3, 18, 6);
    expect(d, CVY_ALONG_X, 0, NULL, NULL, 0, 0, 0); /* the axis of channels is not in the file */
    expect(d, CVY_ALONG_X, 2, "lon", "degrees_east", LON, 0, 2.5);
    cvy_dataset_destroy(&d);
    open_files(sky("sky1.nc"), "x: rain, axes: WNH", &d);
    expect(d, CVY_ALONG_SAMPLES, 0, "lat", "degrees_north", LAT, 50, -10);
    expect(d, CVY_ALONG_X, 1, "lon", "degrees_east", LON, 0, 2.5);
    expect(d, CVY_ALONG_X, 2, "time", hours, TIME, 24, 6);
    cvy_dataset_destroy(&d);
}

/* An axis that augmentation makes longer or shorter has no coordinates any more. */
static void test_resized(void)
{
    cvy_dataset *d = NULL;
    char text[1024];
    snprintf(text, sizeof text, "{path: \"%s\", x: rain}", sky("sky0.nc"));
    OK(open_text(text, "[{center_crop: {size: [3, 3]}}]", 0, &d));
    expect(d, CVY_ALONG_X, 1, "lat", "degrees_north", LAT, 50, -10);
    expect(d, CVY_ALONG_X, 2, NULL, NULL, 0, 0, 0);
    cvy_dataset_destroy(&d);
}

/* Times of files that count from other dates are converted. The expected numbers are from cftime 1.6 (date2num of
 * num2date). */
static void test_times(void)
{
    static const struct {
        const char *units, *calendar, *wanted, *wanted_calendar;
        double time, expected; /* NaN: they cannot be joined */
    } want[] = {
        {"hours since 2000-02-01", "gregorian", "hours since 2000-01-01 00:00:00", "standard", 6, 750},
        {"days since 2001-01-01", "noleap", "days since 2000-01-01", "365_day", 1.5, 366.5},
        {"days since 2001-01-01", NULL, "days since 2000-01-01", NULL, 1.5, 367.5},
        {"days since 2001-03-01", "all_leap", "hours since 2001-02-01T12:00", "366_day", 0, 684},
        {"days since 2001-01-01", "360_day", "days since 1850-01-01", "360_day", 0, 54360},
        {"days since 1582-10-15", "standard", "days since 1582-10-04", "standard", 0, 1},
        {"days since 1582-10-15", "proleptic_gregorian", "days since 1582-10-04", "proleptic_gregorian", 0, 11},
        {"days since 1900-03-01", "julian", "days since 1900-02-28", "julian", 0, 2},
        {"minutes since 1970-01-01 00:00:00.0 UTC", "standard", "seconds since 1970-01-01 01:00:30", "standard", 61,
         30},
        {"m", NULL, "m", NULL, 4, 4},
        {NULL, NULL, NULL, NULL, 4, 4},
        {"m", NULL, "km", NULL, 4, NAN},
        {"days since 2001-01-01", "noleap", "days since 2000-01-01", "standard", 0, NAN},
        {"days since 2001-01-01", "mars", "days since 2000-01-01", "mars", 0, NAN},
        {"months since 2001-01-01", NULL, "months since 2000-01-01", NULL, 0, NAN},
        {"days since 2001-13-01", NULL, "days since 2000-01-01", NULL, 0, NAN},
        {"days since 2001-01-01 00:00 -6:00", NULL, "days since 2000-01-01", NULL, 0, NAN},
        {"days since 99999999999-01-01", NULL, "days since 2000-01-01", NULL, 0, NAN},
    };
    for (int i = 0; i < CVY_COUNT(want); i++) {
        double got = -1;
        const double value[] = {-7, want[i].time};
        const cvy_coordinates own = {"t", {want[i].units, want[i].calendar}, 2, value, 0, NULL, 0},
                              whole = {"t", {want[i].wanted, want[i].wanted_calendar}, 1, value, 0, NULL, 0};
        const int fits = cvy_coordinates_append(&own, &whole, 1, 1, &got);
        if (fits != !isnan(want[i].expected) || (fits && got != want[i].expected))
            printf("%s: %d, %.17g\n", want[i].units ? want[i].units : "no units", fits, got);
        TRUE_THAT(fits == !isnan(want[i].expected) && (!fits || got == want[i].expected));
    }
    const double value[] = {1};
    const cvy_coordinates one = {"t", {"m"}, 1, value, 0, NULL, 0}, other = {"u", {"m"}, 1, value, 0, NULL, 0},
                          none = {"t", {"m"}, 1, NULL, 0, NULL, 0};
    double got = 0;
    TRUE_THAT(!cvy_coordinates_append(&one, &other, 0, 1, &got) && !cvy_coordinates_append(&none, &one, 0, 1, &got) &&
              !cvy_coordinates_append(&one, &one, 0, 2, &got) && cvy_coordinates_append(&none, &one, 0, 0, &got));
}

/* Writes x (t, height) and y (t), whose times count from the given date; heights are packed, and have CF attributes. */
static void make_month(const char *name, const char *since, double first)
{
    const double x[6] = {1, 2, 3, 4, 5, 6}, t[2] = {first, first + 1}, height[3] = {0, 20, 40}, scale = 0.25,
                 offset = 2;
    const hid_t file = new_file(name);
    const hid_t axis[] = {
        put_set(file, "t", (struct layout){.type = H5T_STD_I32LE, .ndim = 1, .dim = {2}}, t),
        put_set(file, "height", (struct layout){.type = H5T_STD_I16LE, .ndim = 1, .dim = {3}}, height)};
    const hid_t set = put_set(file, "x", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 2, .dim = {2, 3}}, x),
                y = put_set(file, "y", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 1, .dim = {2}}, x);
    put_attribute(axis[1], "scale_factor", H5T_IEEE_F64LE, 1, &scale);
    put_attribute(axis[1], "add_offset", H5T_IEEE_F64LE, 1, &offset);
    put_text(axis[1], "units", "m");
    put_text(axis[1], "axis", "Z");
    put_text(axis[1], "positive", "up");
    put_text(axis[0], "units", since);
    put_text(y, "units", "mm/day");
    put_text(y, "standard_name", "rainfall_rate");
    const char *const name_of[] = {"t", "height"};
    for (int i = 0; i < 2; i++) {
        make_axis(axis[i], name_of[i]);
        H5Dclose(axis[i]);
    }
    name_axes(file, set, 2, name_of);
    name_axes(file, y, 1, name_of);
    H5Dclose(set);
    H5Dclose(y);
    H5Fclose(file);
}

static void test_months(void)
{
    cvy_dataset *d = NULL;
    cvy_pool *pool = NULL;
    cvy_coordinates c;
    char text[1024];
    make_month("month1.nc", "days since 2000-01-01", 10);
    make_month("month2.nc", "days since 2000-02-01", -19);
    make_month("month3.nc", "fortnights since 2000-02-01", 0);
    OK(cvy_pool_create(&pool));
    for (int as_list = 0; as_list < 2; as_list++) {
        const char *first = in_scratch("month1.nc"), *second = in_scratch("month2.nc");
        if (as_list)
            snprintf(text, sizeof text, "[{path: \"%s\", x: x, y: y}, {path: \"%s\", x: x, y: y}]", first, second);
        else
            snprintf(text, sizeof text, "{path: \"%s\", x: x, y: y}", in_scratch("month[12].nc"));
        OK(open_text(text, NULL, 0, &d));
        expect(d, CVY_ALONG_SAMPLES, 0, "t", "days since 2000-01-01", 4, 10, 1);
        expect(d, CVY_ALONG_X, 0, "height", "m", 3, 2, 5);
        OK(cvy_dataset_coordinates(d, CVY_ALONG_X, 0, pool, &c));
        TRUE_THAT(is_text(c.cf[CVY_CF_AXIS], "Z") && is_text(c.cf[CVY_CF_POSITIVE], "up"));
        const char *const *of_y = cvy_dataset_reader_info(d)->y_cf;
        TRUE_THAT(is_text(of_y[CVY_CF_UNITS], "mm/day") && is_text(of_y[CVY_CF_STANDARD_NAME], "rainfall_rate") &&
                  !of_y[CVY_CF_LONG_NAME]);
        cvy_dataset_destroy(&d);
    }
    open_files(in_scratch("month[13].nc"), "x: x, y: y", &d);
    expect(d, CVY_ALONG_SAMPLES, 0, "t", NULL, 4, 0, 0); /* only the name is sure */
    cvy_dataset_destroy(&d);
    cvy_pool_destroy(&pool);
}

/* Coordinates that a file keeps in another one are not read: their axis has a name only. */
static void test_external(void)
{
    const double x[6] = {1, 2, 3, 4, 5, 6};
    const char secret[12] = "not for you";
    char path[512];
    const char *const axis[] = {"t", "height"};
    cvy_dataset *d = NULL;
    put_file(in_scratch("secret"), secret, sizeof secret);
    snprintf(path, sizeof path, "%s", in_scratch("secret"));
    const hid_t file = new_file("outside.nc"), made = H5Pcreate(H5P_DATASET_CREATE),
                space = H5Screate_simple(1, (hsize_t[]){3}, NULL);
    H5Pset_external(made, path, 0, sizeof secret);
    const hid_t height = H5Dcreate2(file, "height", H5T_STD_I32LE, space, H5P_DEFAULT, made, H5P_DEFAULT),
                t = put_set(file, "t", (struct layout){.type = H5T_STD_I32LE, .ndim = 1, .dim = {2}}, x),
                set = put_set(file, "x", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 2, .dim = {2, 3}}, x);
    make_axis(height, "height");
    make_axis(t, "t");
    name_axes(file, set, 2, axis);
    H5Dclose(set);
    H5Dclose(t);
    H5Dclose(height);
    H5Sclose(space);
    H5Pclose(made);
    H5Fclose(file);
    open_files(in_scratch("outside.nc"), "x: x", &d);
    expect(d, CVY_ALONG_X, 0, "height", NULL, 3, 0, 0);
    expect(d, CVY_ALONG_SAMPLES, 0, "t", NULL, 2, 1, 1);
    cvy_dataset_destroy(&d);
}

/* ---- tables ---- */

static int has_text(hid_t file, const char *set, const char *attribute, const char *want)
{
    char text[128] = "";
    const hid_t at = H5Aopen_by_name(file, set, attribute, H5P_DEFAULT, H5P_DEFAULT);
    if (at < 0)
        return 0;
    const hid_t type = H5Aget_type(at);
    TRUE_THAT(H5Tget_size(type) < sizeof text && H5Aread(at, type, text) >= 0);
    H5Tclose(type);
    H5Aclose(at);
    return strcmp(text, want) == 0;
}

static int dimension_number(hid_t file, const char *set)
{
    int number = -1;
    const hid_t at = H5Aopen_by_name(file, set, "_Netcdf4Dimid", H5P_DEFAULT, H5P_DEFAULT);
    TRUE_THAT(at >= 0 && H5Aread(at, H5T_NATIVE_INT, &number) >= 0);
    H5Aclose(at);
    return number;
}

/* Writes rows of f (row, height, width), with coordinates for the rows and the height. */
static void write_table(const char *name, int is_netcdf)
{
    static const double height[] = {2, 10, 50};
    const float row[6] = {1, 2, 3, 4, 5, 6};
    cvy_h5_table *t = NULL;
    int rows = 0, high = 0, wide = 0, again = 0;
    OK(cvy_h5_table_create(in_scratch(name), 2, is_netcdf, &t));
    OK(cvy_h5_table_axis(t, &(cvy_coordinates){.name = "row", .n = 2}, 1, &rows));
    OK(cvy_h5_table_axis(t, &(cvy_coordinates){.name = "height", .cf = {"m"}, .n = 3, .value = height}, 0, &high));
    OK(cvy_h5_table_axis(t, &(cvy_coordinates){.name = "width", .n = 2}, 0, &wide));
    OK(cvy_h5_table_axis(t, &(cvy_coordinates){.name = "height", .n = 3}, 0, &again));
    TRUE_THAT(again == high);
    OK(cvy_h5_table_axis(t, &(cvy_coordinates){.name = "height", .n = 2}, 0, &again));
    TRUE_THAT(again != high);
    OK(cvy_h5_table_add(t, &(cvy_h5_array){.name = "row", .dtype = CVY_DTYPE_I64, .axis = {rows}}));
    OK(cvy_h5_table_add(
        t, &(cvy_h5_array){.name = "a/f", .dtype = CVY_DTYPE_F32, .shape = {2, {3, 2}}, .axis = {rows, high, wide}}));
    for (int64_t i = 0; i < 2; i++) {
        OK(cvy_h5_table_row(t, 0, &i));
        OK(cvy_h5_table_row(t, 1, row));
    }
    OK(cvy_h5_table_end(&t, CVY_OK));
}

static void test_table(void)
{
    write_table("t.nc", 1);
    const hid_t file = H5Fopen(in_scratch("t.nc"), H5F_ACC_RDONLY, H5P_DEFAULT);
    unsigned order = 0;
    const hid_t root = H5Gopen2(file, "/", H5P_DEFAULT), made = H5Gget_create_plist(root);
    TRUE_THAT(H5Pget_link_creation_order(made, &order) >= 0 &&
              order == (H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED));
    H5Pclose(made);
    H5Gclose(root);
    TRUE_THAT(has_text(file, "height", "CLASS", "DIMENSION_SCALE") && has_text(file, "height", "NAME", "height"));
    TRUE_THAT(has_text(file, "height", "units", "m") && has_text(file, "row", "CLASS", "DIMENSION_SCALE"));
    TRUE_THAT(has_text(file, "width", "NAME", "This is a netCDF dimension but not a netCDF variable.         2"));
    TRUE_THAT(dimension_number(file, "row") == 0 && dimension_number(file, "height") == 1);
    TRUE_THAT(H5Lexists(file, "height_2", H5P_DEFAULT) > 0 && H5Lexists(file, "a_f", H5P_DEFAULT) > 0);
    TRUE_THAT(H5Aexists_by_name(file, "row", "REFERENCE_LIST", H5P_DEFAULT) > 0);
    TRUE_THAT(H5Aexists_by_name(file, "a_f", "_FillValue", H5P_DEFAULT) > 0);
    H5Fclose(file);
    cvy_dataset *d = NULL;
    open_files(in_scratch("t.nc"), "x: a_f", &d);
    expect(d, CVY_ALONG_SAMPLES, 0, "row", NULL, 2, 0, 1);
    cvy_dataset_destroy(&d);
    open_files(in_scratch("t.nc"), "x: a_f, axes: HNW", &d); /* the samples are along "height" */
    cvy_pool *pool = NULL;
    cvy_coordinates c;
    OK(cvy_pool_create(&pool));
    OK(cvy_dataset_coordinates(d, CVY_ALONG_SAMPLES, 0, pool, &c));
    TRUE_THAT(is_text(c.name, "height") && c.n == 3 && c.value && c.value[1] == 10 && c.value[2] == 50);
    cvy_pool_destroy(&pool);
    cvy_dataset_destroy(&d);
    write_table("t.h5", 0);
    open_files(in_scratch("t.h5"), "x: a/f", &d);
    expect(d, CVY_ALONG_SAMPLES, 0, "row", NULL, 2, 0, 1);
    cvy_dataset_destroy(&d);
}

int main(void)
{
    if (!getenv("CONVOY_SOURCE"))
        return 77;
    scratch_make();
    test_found();
    test_resized();
    test_times();
    test_months();
    test_external();
    test_table();
    scratch_remove();
    return 0;
}
#else
int main(void)
{
    return 0;
}
#endif
