/*
 * test_data_netcdf.c: NetCDF-4 files: the axis of the samples is found by its name or its CF attributes, or because
 * it is unlimited, wherever it stands; several variables become channels; missing numbers become the mean of their
 * channel; wrong names and damaged files are refused with a message that helps.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test_data_netcdf.h"

#if CVY_HAVE_HDF5
#include <math.h>

enum { TIME = 5, LAT = 3, LON = 4, LEVEL = 2 };

/* Makes the coordinates of an axis, as the netCDF library does, with an attribute. */
static void put_axis_with(hid_t file, const char *name, int n, const char *attribute, const char *text)
{
    const double at[] = {0, 10, 20, 30, 40};
    const hid_t set = put_set(file, name, (struct layout){.type = H5T_IEEE_F32LE, .ndim = 1, .dim = {(hsize_t)n}}, at);
    make_axis(set, name);
    if (attribute)
        put_text(set, attribute, text);
    H5Dclose(set);
}

static void put_axis(hid_t file, const char *name, int n)
{
    put_axis_with(file, name, n, NULL, NULL);
}

/* Makes a variable along these axes. A negative length: unlimited. Its numbers count up. */
static hid_t put_variable(hid_t file, const char *name, int ndim, const char *const *axis, const int *length)
{
    hsize_t dim[AXES_MAX], most[AXES_MAX], chunk[AXES_MAX];
    float value[TIME * LAT * LON * LEVEL];
    for (int i = 0; i < (int)CVY_COUNT(value); i++)
        value[i] = (float)i;
    for (int i = 0; i < ndim; i++) {
        dim[i] = (hsize_t)abs(length[i]);
        most[i] = length[i] < 0 ? H5S_UNLIMITED : dim[i];
        chunk[i] = CVY_MIN(dim[i], 2);
    }
    const hid_t space = H5Screate_simple(ndim, dim, most), made = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(made, ndim, chunk);
    const hid_t set = H5Dcreate2(file, name, H5T_IEEE_F32LE, space, H5P_DEFAULT, made, H5P_DEFAULT);
    TRUE_THAT(set >= 0 && H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) >= 0);
    name_axes(file, set, ndim, axis);
    H5Pclose(made);
    H5Sclose(space);
    return set;
}

/* Makes sky.nc: t (time, lat, lon), ua (time, level, lat, lon), last (lat, lon, time), open (time, lat, cast), where
 * cast is unlimited. */
static void make_sky(void)
{
    const hid_t file = new_file("sky.nc");
    put_axis(file, "time", TIME);
    put_axis(file, "lat", LAT);
    put_axis(file, "lon", LON);
    put_axis(file, "level", LEVEL);
    put_axis(file, "cast", LON);
    const char *const t[] = {"time", "lat", "lon"}, *const ua[] = {"time", "level", "lat", "lon"},
                      *const last[] = {"lat", "lon", "time"}, *const grows[] = {"time", "lat", "cast"};
    H5Dclose(put_variable(file, "t", 3, t, (const int[]){TIME, LAT, LON}));
    H5Dclose(put_variable(file, "ua", 4, ua, (const int[]){TIME, LEVEL, LAT, LON}));
    H5Dclose(put_variable(file, "last", 3, last, (const int[]){LAT, LON, TIME}));
    H5Dclose(put_variable(file, "grows", 3, grows, (const int[]){TIME, LAT, -LON}));
    H5Fclose(file);
}

static cvy_status open_netcdf(const char *name, const char *options, cvy_dataset **out)
{
    char text[1024];
    snprintf(text, sizeof text, "{path: \"%s\", format: netcdf, %s}", in_scratch(name), options);
    return open_text(text, NULL, 0, out);
}

static void test_sample_axis(void)
{
    static const struct {
        const char *options, *shape;
        int64_t nsamples, step, first; /* of the numbers: that of element e of sample 1 is first + step * e */
    } want[] = {
        {"x: t", "1x3x4", TIME, 1, LAT * LON},
        {"x: last", "1x3x4", TIME, TIME, 1},
        {"x: grows", "1x5x3", LON, LON, 1},
        {"x: grows, sample_axis: time", "1x3x4", TIME, 1, LAT * LON},
        {"x: last, sample_axis: lat", "1x4x5", LAT, 1, LON * TIME},
        {"x: last, sample_axis: time", "1x3x4", TIME, TIME, 1},
        {"x: ua", "2x3x4", TIME, 1, LEVEL * LAT * LON},
        {"x: ua, axes: NDHW", "1x2x3x4", TIME, 1, LEVEL * LAT * LON},
    };
    float x[TIME * LAT * LON];
    for (int i = 0; i < CVY_COUNT(want); i++) {
        cvy_dataset *d = NULL;
        OK(open_netcdf("sky.nc", want[i].options, &d));
        TRUE_THAT(cvy_dataset_describe(d)->nsamples == want[i].nsamples);
        TRUE_THAT(strcmp(cvy_dataset_describe(d)->format, "netcdf") == 0);
        TRUE_THAT(strcmp(shape_of(d), want[i].shape) == 0);
        read_x(d, 1, x);
        for (int64_t e = 0; e < cvy_shape_elems(&cvy_dataset_describe(d)->field[0].shape); e++)
            TRUE_THAT(x[e] == (float)(want[i].first + want[i].step * e));
        cvy_dataset_destroy(&d);
    }
}

/* The axis of the other variables is the one with the same name as that of the first one. */
static void test_channels(void)
{
    float x[4 * LAT * LON], y[LAT * LON];
    void *const field[] = {x, y};
    cvy_dataset *d = NULL;
    OK(open_netcdf("sky.nc", "x: [ua, last, t], y: last", &d));
    TRUE_THAT(cvy_dataset_describe(d)->nsamples == TIME && strcmp(shape_of(d), "4x3x4") == 0);
    TRUE_THAT(strcmp(cvy_shape_text(&cvy_dataset_describe(d)->field[1].shape), "3x4") == 0);
    OK(cvy_dataset_read(d, 2, 0, field));
    for (int e = 0; e < LAT * LON; e++) {
        TRUE_THAT(x[e] == (float)(2 * LEVEL * LAT * LON + e));
        TRUE_THAT(x[LEVEL * LAT * LON + e] == (float)(2 + TIME * e) && y[e] == (float)(2 + TIME * e));
        TRUE_THAT(x[(LEVEL + 1) * LAT * LON + e] == (float)(2 * LAT * LON + e));
    }
    cvy_dataset_destroy(&d);
}

/* Sample 0 lacks a number of channel 1, sample 1 has none in channel 0. */
static void test_mean(void)
{
    const double value[12] = {1, 2, 4, 10, NAN, 20, NAN, NAN, NAN, 3, 3, 3};
    float x[6];
    cvy_dataset *d = NULL;
    const hid_t file = new_file("holes.nc");
    add_set(file, "x", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 3, .dim = {2, 2, 3}}, value);
    H5Fclose(file);
    OK(open_netcdf("holes.nc", "axes: NCL, missing: mean", &d));
    read_x(d, 0, x);
    TRUE_THAT(x[0] == 1 && x[2] == 4 && x[3] == 10 && x[4] == 15 && x[5] == 20);
    FAILS(cvy_dataset_read(d, 1, 0, &(void *){x}), CVY_E_FORMAT,
          "data set x: all numbers of channel 0 of the data set are missing");
    const cvy_field_part half = {.is_part = 1, .shape = {2, {2, 2}}, .tile = {.whole = {2, {2, 3}}, .first = {0, 1}}};
    OK(cvy_dataset_read_parts(d, 0, 0, &half, 0, &(void *){x})); /* the mean is that of the whole channel */
    TRUE_THAT(x[0] == 2 && x[1] == 4 && x[2] == 15 && x[3] == 20);
    cvy_dataset_destroy(&d);
    FAILS(open_netcdf("holes.nc", "missing: median", &d), CVY_E_CONFIG, "neither a number nor \"mean\"");
}

/* The axis of time is known by what the CF conventions say of its coordinates, whatever its name is. Of several
 * unlimited axes it is the one that counts the samples. */
static void test_cf_names(void)
{
    static const struct {
        const char *attribute, *text;
    } is_time[] = {{"axis", "T"}, {"standard_name", "time"}, {"units", "days since 1850-01-01"}};
    const char *const axis[] = {"rlat", "rlon", "t"};
    cvy_dataset *d = NULL;
    for (int i = 0; i < CVY_COUNT(is_time); i++) {
        const hid_t file = new_file("cf.nc");
        put_axis(file, "rlat", LAT);
        put_axis(file, "rlon", LON);
        put_axis_with(file, "t", TIME, is_time[i].attribute, is_time[i].text);
        H5Dclose(put_variable(file, "fixed", 3, axis, (const int[]){LAT, LON, TIME}));
        H5Dclose(put_variable(file, "grows", 3, axis, (const int[]){-LAT, LON, -TIME}));
        H5Fclose(file);
        for (int k = 0; k < 2; k++) {
            OK(open_netcdf("cf.nc", k ? "x: grows" : "x: fixed", &d));
            TRUE_THAT(cvy_dataset_describe(d)->nsamples == TIME && strcmp(shape_of(d), "1x3x4") == 0);
            cvy_dataset_destroy(&d);
        }
    }
}

/* Four longitudes behind five levels are no channels, but four numbers without the name of a position are. */
static void test_last_axis(void)
{
    static const struct {
        const char *name, *attribute, *text, *shape;
    } last[] = {{"lon", NULL, NULL, "5x3x4"},
                {"rlon", "units", "degrees", "5x3x4"},
                {"west_east", "axis", "X", "5x3x4"},
                {"band", NULL, NULL, "4x5x3"}};
    for (int i = 0; i < CVY_COUNT(last); i++) {
        const char *const axis[] = {"time", "level", "lat", last[i].name};
        cvy_dataset *d = NULL;
        const hid_t file = new_file("last.nc");
        put_axis(file, "time", LEVEL);
        put_axis(file, "level", TIME);
        put_axis(file, "lat", LAT);
        put_axis_with(file, last[i].name, LON, last[i].attribute, last[i].text);
        H5Dclose(put_variable(file, "v", 4, axis, (const int[]){LEVEL, TIME, LAT, LON}));
        H5Fclose(file);
        OK(open_netcdf("last.nc", "x: v", &d));
        TRUE_THAT(strcmp(shape_of(d), last[i].shape) == 0);
        cvy_dataset_destroy(&d);
    }
}

static void test_wrong_names(void)
{
    cvy_dataset *d = NULL;
    FAILS(open_netcdf("sky.nc", "x: lst", &d), CVY_E_CONFIG,
          "has no data set \"lst\" that can be read (did you mean \"last\"?)");
    FAILS(open_netcdf("sky.nc", "x: lst", &d), CVY_E_CONFIG, "ua 5x2x3x4 float32 (time, level, lat, lon)");
    FAILS(open_netcdf("sky.nc", "x: t, where: tme > 1", &d), CVY_E_CONFIG, "(did you mean \"time\"?)");
    FAILS(open_netcdf("sky.nc", "x: t, sample_axis: tme", &d), CVY_E_CONFIG,
          "sample_axis: tme: data set t has no such axis; its axes are (time, lat, lon)");
    FAILS(open_netcdf("holes.nc", "sample_axis: time", &d), CVY_E_CONFIG, "its axes have no names");
    FAILS(open_netcdf("sky.nc", "x: t, sample_axis: time, axes: NHW", &d), CVY_E_CONFIG, "leave one of them out");
    FAILS(open_netcdf("sky.nc", "x: [t, lat], sample_axis: lat", &d), CVY_E_SHAPE, "cannot be joined as channels");
}

static void test_damaged(void)
{
    static char bytes[1 << 16];
    cvy_dataset *d = NULL;
    FILE *f = fopen(in_scratch("sky.nc"), "rb");
    TRUE_THAT(f != NULL);
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    put_file(in_scratch("short.nc"), bytes, n / 2);
    FAILS(open_netcdf("short.nc", "x: t", &d), CVY_E_FORMAT, "short.nc: ");
    put_file(in_scratch("text.nc"), "time,lat,lon\n", 13);
    FAILS(open_netcdf("text.nc", "x: t", &d), CVY_E_FORMAT, "text.nc: cannot be opened as an HDF5 file");
    for (int version = 1; version <= 5; version += version == 1 ? 1 : 3) { /* the classic formats 1, 2 and 5 */
        const char head[8] = {'C', 'D', 'F', (char)version};
        put_file(in_scratch("classic"), head, sizeof head);
        FAILS(open_text(in_scratch("classic"), NULL, 0, &d), CVY_E_UNSUPPORTED, "nccopy -k nc4 IN OUT");
    }
}

int main(void)
{
    scratch_make();
    make_sky();
    test_sample_axis();
    test_channels();
    test_mean();
    test_cf_names();
    test_last_axis();
    test_wrong_names();
    test_damaged();
    scratch_remove();
    return 0;
}
#else
int main(void)
{
    return 0;
}
#endif
