/*
 * data_hdf5_packing.c: packed and missing numbers, as the attributes of a data set describe them.
 *
 * NetCDF-4 files are HDF5 files. Their conventions store numbers as small integers (scale_factor, add_offset,
 * _Unsigned), and say which numbers mean that there is no measurement (_FillValue, missing_value, valid_min, valid_max,
 * valid_range). The numbers that come out are those of netCDF4 for Python, to the bit; a missing one is a fault of its
 * sample. Source: NetCDF Users Guide, attribute conventions; CF conventions 1.10, sections 2.5.1 and 8.1.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/hdf5/data_hdf5.h"

#if CVY_HAVE_HDF5
#include <math.h>
#include <string.h>

/* ---- attributes ---- */

/* Reads up to `most` numbers of an attribute. Returns how many it has; 0: there is no such attribute, or it holds no
 * numbers. *is_double_out (may be NULL): they are stored as f64. */
static int read_numbers(hid_t set, const char *name, double *out, int most, int *is_double_out)
{
    double all[CVY_H5_MISSING_MAX];
    const hid_t at = H5Aexists(set, name) > 0 ? H5Aopen(set, name, H5P_DEFAULT) : -1;
    if (at < 0)
        return 0;
    const hid_t space = H5Aget_space(at), type = H5Aget_type(at);
    const H5T_class_t class = H5Tget_class(type);
    const hssize_t count = H5Sget_simple_extent_npoints(space);
    int n = 0;
    if ((class == H5T_INTEGER || class == H5T_FLOAT) && count >= 1 && count <= CVY_H5_MISSING_MAX &&
        H5Aread(at, H5T_NATIVE_DOUBLE, all) >= 0)
        n = (int)CVY_MIN(count, most);
    memcpy(out, all, sizeof *out * (size_t)n);
    if (n > 0 && is_double_out)
        *is_double_out = class == H5T_FLOAT && H5Tget_size(type) == 8;
    H5Tclose(type);
    H5Sclose(space);
    H5Aclose(at);
    return n;
}

/* Reads an attribute of numbers as integers of 64 bits. */
static void read_bits(hid_t set, const char *name, uint64_t *out, int count)
{
    uint64_t all[CVY_H5_MISSING_MAX] = {0};
    const hid_t at = H5Aopen(set, name, H5P_DEFAULT), type = H5Aget_type(at);
    const int is_unsigned = H5Tget_class(type) == H5T_INTEGER && H5Tget_sign(type) == H5T_SGN_NONE;
    if (H5Aread(at, is_unsigned ? H5T_NATIVE_UINT64 : H5T_NATIVE_INT64, all) >= 0)
        memcpy(out, all, sizeof *out * (size_t)count);
    H5Tclose(type);
    H5Aclose(at);
}

/* Whether a text attribute says "true". */
static int is_true(hid_t set, const char *name)
{
    char text[16] = "";
    return cvy_h5_text_attribute(set, name, text, sizeof text) &&
           (strcmp(text, "true") == 0 || strcmp(text, "True") == 0);
}

static void add_missing(cvy_h5_packing *p, hid_t set, const char *name)
{
    const int n = read_numbers(set, name, p->missing + p->nmissing, CVY_COUNT(p->missing) - p->nmissing, NULL);
    if (p->by_bits && n > 0)
        read_bits(set, name, p->bits + p->nmissing, n);
    p->nmissing += n;
}

static void find_range(cvy_h5_packing *p, hid_t set)
{
    double range[2];
    p->least = -INFINITY;
    p->largest = INFINITY;
    if (read_numbers(set, "valid_range", range, 2, NULL) == 2) {
        p->least = range[0];
        p->largest = range[1];
    }
    read_numbers(set, "valid_min", &p->least, 1, NULL);
    read_numbers(set, "valid_max", &p->largest, 1, NULL);
}

/* netCDF takes a number as missing that was never written, unless the variable has a fill value of its own. Bytes have
 * no such number by the Users Guide; netCDF4 for Python masks 255 and -127 all the same, which would spoil pictures. */
static void add_default_fill(cvy_h5_packing *p, hid_t set, cvy_h5_kind kind)
{
    static const double fill[] = {
        [CVY_H5_U16] = 65535,
        [CVY_H5_I16] = -32767,
        [CVY_H5_U32] = 4294967295,
        [CVY_H5_I32] = -2147483647,
        [CVY_H5_U64] = 18446744073709551614.0,
        [CVY_H5_I64] = -9223372036854775806.0,
        [CVY_H5_F32] = 9.969209968386869e36f,
        [CVY_H5_F64] = 9.969209968386869e36,
    };
    const hid_t file = H5Iget_file_id(set);
    const int is_netcdf = file >= 0 && H5Aexists_by_name(file, "/", "_NCProperties", H5P_DEFAULT) > 0;
    if (file >= 0)
        H5Fclose(file);
    if (is_netcdf && p->nmissing < CVY_H5_MISSING_MAX && fill[kind] != 0) {
        p->bits[p->nmissing] = kind == CVY_H5_I64 ? (uint64_t)INT64_MIN + 2 : UINT64_MAX - 1;
        p->missing[p->nmissing++] = fill[kind];
    }
}

/* NumPy, with which netCDF4 computes, multiplies in f32 if the packed numbers fit it and the attributes are f32. */
static int fits_f32(cvy_h5_kind kind)
{
    return kind <= CVY_H5_I16 || kind == CVY_H5_F16 || kind == CVY_H5_BF16 || kind == CVY_H5_F32;
}

/* Such numbers are given as signed ones, like the data. */
static void make_unsigned(const cvy_h5_packing *p, double *number, int count)
{
    for (int i = 0; p->sign_bytes > 0 && i < count; i++)
        number[i] += number[i] < 0 && isfinite(number[i]) ? ldexp(1, 8 * p->sign_bytes) : 0;
}

void cvy_h5_find_packing(hid_t set, cvy_h5_number *number, cvy_h5_packing *out)
{
    cvy_h5_packing p = {.scale = 1};
    int scale_is_double = 0, offset_is_double = 0;
    if (is_true(set, "_Unsigned") && (number->kind == CVY_H5_I8 || number->kind == CVY_H5_I16 ||
                                      number->kind == CVY_H5_I32 || number->kind == CVY_H5_I64)) {
        number->kind--; /* the unsigned kind of the same size */
        p.sign_bytes = number->bytes;
    }
    p.is_scaled = read_numbers(set, "scale_factor", &p.scale, 1, &scale_is_double) > 0;
    p.is_shifted = read_numbers(set, "add_offset", &p.offset, 1, &offset_is_double) > 0;
    p.in_f32 = fits_f32(number->kind) && !scale_is_double && !offset_is_double;
    p.by_bits = number->kind == CVY_H5_I64 || number->kind == CVY_H5_U64;
    add_missing(&p, set, "_FillValue");
    if (p.nmissing == 0 && p.sign_bytes == 0) /* what fills a signed number is an ordinary unsigned one */
        add_default_fill(&p, set, number->kind);
    add_missing(&p, set, "missing_value");
    find_range(&p, set);
    make_unsigned(&p, p.missing, p.nmissing);
    make_unsigned(&p, &p.least, 1);
    make_unsigned(&p, &p.largest, 1);
    p.is_on = p.is_scaled || p.is_shifted || p.nmissing > 0 || isfinite(p.least) || isfinite(p.largest);
    if (p.is_on)
        number->is_byte = 0; /* numbers, not the bytes of a picture */
    *out = p;
}

/* ---- numbers ---- */

/* bits: the number as it is stored, if that is by_bits. */
static int is_missing(const cvy_h5_packing *p, double stored, uint64_t bits)
{
    for (int i = 0; i < p->nmissing; i++)
        if (p->by_bits ? bits == p->bits[i] : stored == p->missing[i] || (isnan(stored) && isnan(p->missing[i])))
            return 1;
    return stored < p->least || stored > p->largest;
}

/* The multiplication is rounded before the addition, as NumPy does: a fused operation would give other bits. */
static float unpack_f32(const cvy_h5_packing *p, float stored)
{
    volatile float product = p->is_scaled ? stored * (float)p->scale : stored;
    return p->is_shifted ? product + (float)p->offset : product;
}

static double unpack_f64(const cvy_h5_packing *p, double stored)
{
    volatile double product = p->is_scaled ? stored * p->scale : stored;
    return p->is_shifted ? product + p->offset : product;
}

void cvy_h5_unpack_f64(const cvy_h5_packing *p, const cvy_h5_number *number, const void *stored, int64_t n, double *out)
{
    cvy_h5_to_f64(number, stored, n, out);
    for (int64_t i = 0; p->is_on && i < n; i++) {
        uint64_t bits = 0;
        if (p->by_bits)
            memcpy(&bits, (const char *)stored + i * (int64_t)sizeof bits, sizeof bits);
        out[i] = is_missing(p, out[i], bits) ? NAN
                 : p->in_f32                 ? (double)unpack_f32(p, (float)out[i])
                                             : unpack_f64(p, out[i]);
    }
}

cvy_status cvy_h5_unpack(const cvy_h5_packing *p, const cvy_h5_column *c, const void *stored, const float *instead,
                         float *out)
{
    enum { AT_ONCE = 512 };
    double block[AT_ONCE];
    if (!p->is_on) {
        cvy_h5_to_f32(&c->number, stored, c->elems, out);
        for (int64_t i = 0; instead && i < c->elems; i++)
            out[i] = isnan(out[i]) ? *instead : out[i];
        return CVY_OK;
    }
    for (int64_t from = 0; from < c->elems; from += AT_ONCE) {
        const int64_t n = CVY_MIN(c->elems - from, AT_ONCE);
        cvy_h5_unpack_f64(p, &c->number, (const char *)stored + from * c->number.bytes, n, block);
        for (int64_t i = 0; i < n; i++) {
            CVY_CHECK(instead || !isnan(block[i]), CVY_E_FORMAT,
                      "element %lld of data set %s is missing: it is NaN, a fill value, or out of the valid range "
                      "(`missing: NUMBER` of the source replaces such elements of x)",
                      (long long)(from + i), c->name);
            out[from + i] = isnan(block[i]) ? *instead : (float)block[i];
        }
    }
    return CVY_OK;
}

#endif
