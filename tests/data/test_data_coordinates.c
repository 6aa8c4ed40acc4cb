/*
 * test_data_coordinates.c: the coordinates along the axes of NetCDF files are found wherever an axis stands in a
 * sample, for the samples over all files, ranges and conditions; a table of HDF5 arrays with axes has the attributes
 * that the netCDF library needs, and its axes are read back.
 *
 * sky0.nc and sky1.nc are from netCDF4 for Python: tests/data/files/make_netcdf.py.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test_data_hdf5.h"

#if CVY_HAVE_HDF5
#include "data/hdf5/data_hdf5_table.h"

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
    TRUE_THAT(is_text(c.name, name) && is_text(c.units, units) && c.n == n && (c.value != NULL) == (step != 0));
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
    OK(cvy_h5_table_axis(t, &(cvy_coordinates){.name = "height", .units = "m", .n = 3, .value = height}, 0, &high));
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
