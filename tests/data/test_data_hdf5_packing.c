/*
 * test_data_hdf5_packing.c: numbers that HDF5 and NetCDF files keep packed (scale_factor, add_offset, _Unsigned) are
 * unpacked as netCDF4 for Python does, to the bit; missing numbers (_FillValue, missing_value, valid ranges, NetCDF's
 * defaults) are faults of their samples.
 *
 * The expected bits are from numpy 2.4: (stored * scale + offset).astype("f4"), with scale and offset of the type of
 * the attribute.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test_data_netcdf.h"

#if CVY_HAVE_HDF5
#include <math.h>

/* Makes packed.h5 with x [2, 4] and leaves x open for its attributes. */
static hid_t begin(hid_t *file, hid_t type, const double *value)
{
    *file = new_file("packed.h5");
    return put_set(*file, "x", (struct layout){.type = type, .ndim = 2, .dim = {2, 4}}, value);
}

static void end(hid_t file, hid_t set)
{
    H5Dclose(set);
    H5Fclose(file);
}

/* Reads sample `number` of packed.h5. */
static cvy_status read_sample(int64_t number, float *x)
{
    void *const field[] = {x};
    cvy_dataset *d = NULL;
    cvy_status status = open_text(in_scratch("packed.h5"), NULL, 0, &d);
    if (status == CVY_OK)
        status = cvy_dataset_read(d, number, 0, field);
    cvy_dataset_destroy(&d);
    return status;
}

static void expect_bits(int64_t number, const uint32_t *want)
{
    float x[4] = {0};
    uint32_t got[4];
    OK(read_sample(number, x));
    memcpy(got, x, sizeof got);
    for (int i = 0; i < 4; i++)
        if (got[i] != want[i])
            printf("sample %d, element %d: %.9g has the bits %08x, expected %08x\n", (int)number, i, (double)x[i],
                   got[i], want[i]);
    TRUE_THAT(memcmp(got, want, sizeof got) == 0);
}

static const double stored[8] = {-32766, -1, 0, 12345, 7, 300, 32767, 1};

/* f64 attributes: computed in f64 and rounded once. f32 attributes on i16: every operation is rounded to f32. */
static void test_scaled(void)
{
    const double scale = 0.0012345678901234567, offset = 273.15;
    const uint32_t in_f64[2][4] = {{0x4368b2ba, 0x4388930b, 0x43889333, 0x43903204},
                                   {0x4388944e, 0x4388c29b, 0x439ccd32, 0x4388935c}},
                   in_f32[2][4] = {{0x4368b2ba, 0x4388930b, 0x43889333, 0x43903204},
                                   {0x4388944e, 0x4388c29b, 0x439ccd32, 0x4388935b}},
                   shifted[2][4] = {{0xc6fdd9b3, 0x43881333, 0x43889333, 0x4645289a},
                                    {0x438c1333, 0x440f499a, 0x47011026, 0x43891333}};
    hid_t file, x = begin(&file, H5T_STD_I16LE, stored);
    put_attribute(x, "scale_factor", H5T_IEEE_F64LE, 1, &scale);
    put_attribute(x, "add_offset", H5T_IEEE_F64LE, 1, &offset);
    end(file, x);
    expect_bits(0, in_f64[0]);
    expect_bits(1, in_f64[1]);
    x = begin(&file, H5T_STD_I16BE, stored);
    put_attribute(x, "scale_factor", H5T_IEEE_F32BE, 1, &scale);
    put_attribute(x, "add_offset", H5T_IEEE_F32LE, 1, &offset);
    end(file, x);
    expect_bits(0, in_f32[0]);
    expect_bits(1, in_f32[1]);
    x = begin(&file, H5T_STD_I32LE, stored);
    put_attribute(x, "add_offset", H5T_IEEE_F32LE, 1, &offset);
    end(file, x);
    expect_bits(0, shifted[0]);
    expect_bits(1, shifted[1]);
}

static void test_unsigned(void)
{
    const double bytes[8] = {-1, 0, 127, -128, 1, 2, 3, -2}, half_unit = 0.5, fill = -2;
    const uint32_t want[4] = {0x42ff0000, 0x00000000, 0x427e0000, 0x42800000};
    float x[4];
    hid_t file, set = begin(&file, H5T_STD_I8LE, bytes);
    put_text(set, "_Unsigned", "true");
    put_attribute(set, "scale_factor", H5T_IEEE_F64LE, 1, &half_unit);
    put_attribute(set, "_FillValue", H5T_STD_I8LE, 1, &fill);
    end(file, set);
    expect_bits(0, want);
    FAILS(read_sample(1, x), CVY_E_FORMAT, "packed.h5, row 1: element 3 of data set x is missing");
}

/* A valid range of unsigned numbers is given as signed ones, like the data: 0 to 65530 here. What fills a signed number
 * that was never written is an ordinary unsigned one. */
static void test_unsigned_range(void)
{
    const double range[2] = {0, -6}, some[8] = {0, -32767, -6, -7, 1, 2, -5, 4}, edge[8] = {-1, -32767, 0, 1};
    float x[4];
    hid_t file, set = begin(&file, H5T_STD_I16LE, some);
    put_text(set, "_Unsigned", "true");
    put_attribute(set, "valid_range", H5T_STD_I16LE, 2, range);
    end(file, set);
    OK(read_sample(0, x));
    TRUE_THAT(x[0] == 0 && x[1] == 32769 && x[2] == 65530 && x[3] == 65529);
    FAILS(read_sample(1, x), CVY_E_FORMAT, "element 2 of data set x is missing");
    set = begin(&file, H5T_STD_I16LE, edge);
    put_text(file, "_NCProperties", "version=2,netcdf=4.9.0");
    put_text(set, "_Unsigned", "true");
    end(file, set);
    OK(read_sample(0, x));
    TRUE_THAT(x[0] == 65535 && x[1] == 32769);
}

/* Integers of 64 bits are compared exactly: the smallest number is not the default fill value, which is larger by 2. */
static void test_large_integers(void)
{
    const int64_t value[8] = {INT64_MIN, INT64_MIN + 1, INT64_MAX, 0, 1, INT64_MIN + 2};
    float x[4];
    hid_t file, set = begin(&file, H5T_STD_I64LE, stored);
    TRUE_THAT(H5Dwrite(set, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) >= 0);
    put_text(file, "_NCProperties", "version=2,netcdf=4.9.0");
    end(file, set);
    OK(read_sample(0, x));
    FAILS(read_sample(1, x), CVY_E_FORMAT, "element 1 of data set x is missing");
}

/* Each of the attributes makes element 2 of sample 1 (32767) a missing number, and leaves sample 0 as it is. */
static void test_missing(void)
{
    const double fill = 32767, several[3] = {-999, 32767, 4}, range[2] = {-32766, 32766}, least = -32766, most = 32000;
    const struct {
        const char *name;
        int count;
        const double *value;
    } attribute[] = {
        {"_FillValue", 1, &fill}, {"missing_value", 3, several}, {"valid_range", 2, range}, {"valid_max", 1, &most}};
    float x[4];
    hid_t file, set;
    for (int i = 0; i < CVY_COUNT(attribute); i++) {
        set = begin(&file, H5T_STD_I16LE, stored);
        put_attribute(set, attribute[i].name, H5T_STD_I16LE, attribute[i].count, attribute[i].value);
        end(file, set);
        OK(read_sample(0, x));
        TRUE_THAT(x[0] == -32766 && x[3] == 12345);
        FAILS(read_sample(1, x), CVY_E_FORMAT, "element 2 of data set x is missing");
    }
    set = begin(&file, H5T_STD_I16LE, stored);
    put_attribute(set, "valid_min", H5T_STD_I16LE, 1, &least);
    end(file, set);
    OK(read_sample(0, x));
    OK(read_sample(1, x));
    const double nan_fill = NAN, some[8] = {1, 2, 3, 4, 5, NAN, 7, 8};
    set = begin(&file, H5T_IEEE_F32LE, some);
    put_attribute(set, "_FillValue", H5T_IEEE_F32LE, 1, &nan_fill);
    end(file, set);
    OK(read_sample(0, x));
    FAILS(read_sample(1, x), CVY_E_FORMAT, "element 1 of data set x is missing");
}

/* Attributes of f32 numbers are often f64, and then mean the f32 number next to theirs. */
static void test_wide_attributes(void)
{
    const double fill = 1e20, range[2] = {-0.1, 0.7}, some[8] = {1, 2, 1e20, 3, -0.1, 0, 0.5, 0.7};
    float x[4];
    hid_t file, set = begin(&file, H5T_IEEE_F32LE, some);
    put_attribute(set, "missing_value", H5T_IEEE_F64LE, 1, &fill);
    end(file, set);
    FAILS(read_sample(0, x), CVY_E_FORMAT, "element 2 of data set x is missing");
    set = begin(&file, H5T_IEEE_F32LE, some);
    put_attribute(set, "valid_range", H5T_IEEE_F64LE, 2, range);
    end(file, set);
    FAILS(read_sample(0, x), CVY_E_FORMAT, "element 0 of data set x is missing");
    OK(read_sample(1, x));
}

/* A real range of packed integers is that of the unpacked numbers, as the NetCDF Users Guide has it; a range of
 * integers is that of the stored ones. */
static void test_range_of_unpacked(void)
{
    const double scale = 0.5, offset = 100, range[2] = {100, 250}, some[8] = {0, 300, 150, 1, 0, 301, 300, -1};
    float x[4];
    hid_t file, set = begin(&file, H5T_STD_I16LE, some);
    put_attribute(set, "scale_factor", H5T_IEEE_F64LE, 1, &scale);
    put_attribute(set, "add_offset", H5T_IEEE_F64LE, 1, &offset);
    put_attribute(set, "valid_range", H5T_IEEE_F32LE, 2, range);
    end(file, set);
    OK(read_sample(0, x));
    TRUE_THAT(x[0] == 100 && x[1] == 250 && x[2] == 175);
    FAILS(read_sample(1, x), CVY_E_FORMAT, "element 1 of data set x is missing");
    set = begin(&file, H5T_STD_I16LE, some);
    put_attribute(set, "scale_factor", H5T_IEEE_F64LE, 1, &scale);
    put_attribute(set, "valid_range", H5T_STD_I16LE, 2, range);
    end(file, set);
    FAILS(read_sample(0, x), CVY_E_FORMAT, "element 0 of data set x is missing");
}

/* Numbers are not left packed, or taken as measurements, without notice. */
static void test_wrong_attributes(void)
{
    const double many[20] = {1}, real = -2.5;
    float x[4];
    hid_t file, set = begin(&file, H5T_STD_I16LE, stored);
    put_text(set, "scale_factor", "0.1");
    end(file, set);
    FAILS(read_sample(0, x), CVY_E_FORMAT, "packed.h5: data set x: its attribute scale_factor is not a number");
    static const struct {
        const char *name, *words;
        int count;
    } wrong[] = {{"add_offset", "its attribute add_offset has 2 numbers, expected 1:", 2},
                 {"valid_range", "its attribute valid_range has 3 numbers, expected 2:", 3},
                 {"missing_value", "its attribute missing_value has 20 numbers, expected 1 to 15:", 20}};
    for (int i = 0; i < CVY_COUNT(wrong); i++) {
        set = begin(&file, H5T_STD_I16LE, stored);
        put_attribute(set, wrong[i].name, H5T_STD_I16LE, wrong[i].count, many);
        end(file, set);
        FAILS(read_sample(0, x), CVY_E_FORMAT, wrong[i].words);
    }
    /* A text says nothing about numbers, and no integer is -2.5. */
    set = begin(&file, H5T_STD_I64LE, stored);
    put_text(set, "_FillValue", "none");
    put_attribute(set, "missing_value", H5T_IEEE_F64LE, 1, &real);
    end(file, set);
    OK(read_sample(0, x));
    OK(read_sample(1, x));
}

/* A number that was never written counts as missing in NetCDF files only. */
static void test_never_written(void)
{
    const double never[8] = {1, 2, 3, 4, 5, 6, 7, 9.969209968386869e36f};
    float x[4];
    hid_t file, set = begin(&file, H5T_IEEE_F32LE, never);
    end(file, set);
    OK(read_sample(1, x));
    set = begin(&file, H5T_IEEE_F32LE, never);
    put_text(file, "_NCProperties", "version=2,netcdf=4.9.0");
    end(file, set);
    OK(read_sample(0, x));
    FAILS(read_sample(1, x), CVY_E_FORMAT, "element 3 of data set x is missing");
}

/* Targets, weights and conditions are unpacked, too; bytes with attributes are numbers and no picture. */
static void test_other_fields(void)
{
    const double two = 2, ten = 10, values[2] = {3, 4};
    float x[2], y = 0, weight = 0;
    void *const field[] = {x, &y, &weight};
    char text[600];
    cvy_dataset *d = NULL;
    const hid_t file = new_file("fields.h5");
    const struct layout rows = {.type = H5T_STD_U8LE, .ndim = 1, .dim = {2}};
    const char *const name[] = {"x", "y", "weight", "quality"};
    for (int i = 0; i < 4; i++) {
        const hid_t set = put_set(file, name[i], rows, values);
        put_attribute(set, i == 0 ? "add_offset" : "scale_factor", H5T_IEEE_F64LE, 1, i == 0 ? &ten : &two);
        H5Dclose(set);
    }
    H5Fclose(file);
    snprintf(text, sizeof text, "{path: \"%s\", x: x, y: y, weight: weight, where: quality > 7}",
             in_scratch("fields.h5"));
    OK(open_text(text, NULL, 0, &d));
    TRUE_THAT(cvy_dataset_describe(d)->nsamples == 1);
    OK(cvy_dataset_read(d, 0, 0, field));
    TRUE_THAT(x[0] == 14 && y == 8 && weight == 8);
    cvy_dataset_destroy(&d);
}

/* `missing: NUMBER` replaces missing numbers of x, but not of y. */
static void test_replaced(void)
{
    const double fill = -9, x_value[8] = {1, 2, -9, 4, -9, 6, 7, 8}, y_value[2] = {5, -9};
    float x[4], y = 0;
    void *const field[] = {x, &y};
    char text[600];
    cvy_dataset *d = NULL;
    hid_t file, set = begin(&file, H5T_IEEE_F32LE, x_value);
    put_attribute(set, "_FillValue", H5T_IEEE_F32LE, 1, &fill);
    H5Dclose(set);
    set = put_set(file, "y", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 1, .dim = {2}}, y_value);
    put_attribute(set, "missing_value", H5T_IEEE_F32LE, 1, &fill);
    end(file, set);
    snprintf(text, sizeof text, "{path: \"%s\", missing: -0.5}", in_scratch("packed.h5"));
    OK(open_text(text, NULL, 0, &d));
    OK(cvy_dataset_read(d, 0, 0, field));
    TRUE_THAT(x[0] == 1 && x[1] == 2 && x[2] == -0.5f && x[3] == 4 && y == 5);
    FAILS(cvy_dataset_read(d, 1, 0, field), CVY_E_FORMAT, "element 0 of data set y is missing");
    cvy_dataset_destroy(&d);
    /* NaN counts as missing, also if no attribute says what is. */
    const double nans[8] = {1, NAN, 3, 4, 5, 6, 7, 8};
    for (int with = 0; with < 2; with++) {
        set = begin(&file, H5T_IEEE_F32LE, nans);
        if (with)
            put_attribute(set, "_FillValue", H5T_IEEE_F32LE, 1, &fill);
        end(file, set);
        snprintf(text, sizeof text, "{path: \"%s\", missing: -0.5}", in_scratch("packed.h5"));
        OK(open_text(text, NULL, 0, &d));
        OK(cvy_dataset_read(d, 0, 0, field));
        TRUE_THAT(x[0] == 1 && x[1] == -0.5f && x[2] == 3);
        cvy_dataset_destroy(&d);
        FAILS(read_sample(0, x), CVY_E_FORMAT, with ? "element 1 of data set x is missing" : "element 1 of x is nan");
    }
    snprintf(text, sizeof text, "{path: \"%s\", missing: none}", in_scratch("packed.h5"));
    FAILS(open_text(text, NULL, 0, &d), CVY_E_CONFIG, "missing: none is neither a number nor");
}

/* The coordinates y of an axis, as NetCDF files have them, are no target. */
static void test_axis(void)
{
    const double coordinate[4] = {10, 20, 30, 40};
    cvy_dataset *d = NULL;
    hid_t file, set = begin(&file, H5T_STD_I16LE, stored);
    H5Dclose(set);
    set = put_set(file, "y", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 1, .dim = {4}}, coordinate);
    make_axis(set, "y");
    end(file, set);
    OK(open_text(in_scratch("packed.h5"), NULL, 0, &d));
    TRUE_THAT(cvy_dataset_describe(d)->nfield == 1);
    cvy_dataset_destroy(&d);
}

/* NetCDF files of the classic format are no HDF5 files. */
static void test_classic(void)
{
    cvy_dataset *d = NULL;
    put_file(in_scratch("classic.nc"), "CDF\x01\0\0\0\0\0\0\0\0\0\0\0\0", 16);
    FAILS(open_text(in_scratch("classic.nc"), NULL, 0, &d), CVY_E_UNSUPPORTED,
          "classic.nc: is a classic NetCDF file, which is not an HDF5 file; convert it to NetCDF-4");
}

int main(void)
{
    scratch_make();
    test_classic();
    test_axis();
    test_replaced();
    test_scaled();
    test_unsigned();
    test_unsigned_range();
    test_large_integers();
    test_missing();
    test_wide_attributes();
    test_range_of_unpacked();
    test_wrong_attributes();
    test_never_written();
    test_other_fields();
    scratch_remove();
    return 0;
}
#else
int main(void)
{
    return 0;
}
#endif
