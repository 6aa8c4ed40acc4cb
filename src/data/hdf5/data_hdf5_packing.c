/*
 * data_hdf5_packing.c: packed and missing numbers, as the attributes of a data set describe them.
 *
 * NetCDF-4 files are HDF5 files. Their conventions store numbers as small integers (scale_factor, add_offset,
 * _Unsigned), and say which numbers mean that there is no measurement (_FillValue, missing_value, valid_min, valid_max,
 * valid_range). The numbers that come out are those of netCDF4 for Python, to the bit; a missing one is a fault of its
 * sample. Attributes that have no meaning here, such as a missing_value that is a text, are left out, as there. Source:
 * NetCDF Users Guide, attribute conventions; CF conventions 1.10, sections 2.5.1 and 8.1.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/hdf5/data_hdf5.h"

#if CVY_HAVE_HDF5
#include <float.h>
#include <math.h>
#include <string.h>

/* ---- attributes ---- */

struct numbers { /* of an attribute */
    double at[CVY_H5_MISSING_MAX];
    uint64_t bits[CVY_H5_MISSING_MAX]; /* the same as integers of 64 bits, unless they are real */
    int n, is_double, is_real;
};

/* Reads the numbers of an open attribute. */
static int read_values(hid_t attribute, hid_t type, struct numbers *out)
{
    const int is_unsigned = H5Tget_class(type) == H5T_INTEGER && H5Tget_sign(type) == H5T_SGN_NONE;
    out->is_real = H5Tget_class(type) == H5T_FLOAT;
    out->is_double = out->is_real && H5Tget_size(type) == 8;
    return H5Aread(attribute, H5T_NATIVE_DOUBLE, out->at) >= 0 &&
           (out->is_real || H5Aread(attribute, is_unsigned ? H5T_NATIVE_UINT64 : H5T_NATIVE_INT64, out->bits) >= 0);
}

/* Reads an attribute of least to most numbers; n is 0 if there is none, or it is empty or a text. owner: the data
 * set. */
static cvy_status read_numbers(hid_t set, const char *owner, const char *name, int least, int most, struct numbers *out)
{
    *out = (struct numbers){0};
    const hid_t at = H5Aexists(set, name) > 0 ? H5Aopen(set, name, H5P_DEFAULT) : -1;
    if (at < 0)
        return CVY_OK;
    const hid_t space = H5Aget_space(at), type = H5Aget_type(at);
    const H5T_class_t class = H5Tget_class(type);
    const hssize_t count = H5Sget_simple_extent_npoints(space);
    const int is_number = (class == H5T_INTEGER || class == H5T_FLOAT) && count != 0;
    cvy_status status = CVY_OK;
    if (is_number && (count < least || count > most)) {
        char range[32];
        snprintf(range, sizeof range, least == most ? "%d" : "%d to %d", least, most);
        status = cvy_error_set(CVY_E_FORMAT,
                               "data set %s: its attribute %s has %lld numbers, expected %s: correct it, or delete it "
                               "if it has another meaning (ncatted -a %s,%s,d,, FILE)",
                               owner, name, (long long)count, range, name, owner);
    } else if (is_number && !read_values(at, type, out)) {
        status = cvy_h5_fault(CVY_E_FORMAT, "data set %s: its attribute %s cannot be read", owner, name);
    } else if (is_number) {
        out->n = (int)count;
    }
    H5Tclose(type);
    H5Sclose(space);
    H5Aclose(at);
    return status;
}

/* Reads the factor or the offset of packed numbers. As a text it would be left out without notice. */
static cvy_status read_factor(hid_t set, const char *owner, const char *name, double *value, int *is_there,
                              int *is_double)
{
    struct numbers found;
    CVY_TRY(read_numbers(set, owner, name, 1, 1, &found));
    CVY_CHECK(found.n == 1 || H5Aexists(set, name) <= 0, CVY_E_FORMAT,
              "data set %s: its attribute %s is not a number, so its numbers cannot be unpacked: write it as a number "
              "(ncatted -a %s,%s,m,d,NUMBER FILE)",
              owner, name, name, owner);
    *is_there = found.n == 1;
    *is_double = found.is_double;
    if (*is_there)
        *value = found.at[0];
    return CVY_OK;
}

/* Whether a text attribute says "true". */
static int is_true(hid_t set, const char *name)
{
    char text[16] = "";
    return cvy_h5_text_attribute(set, name, text, sizeof text) &&
           (strcmp(text, "true") == 0 || strcmp(text, "True") == 0);
}

/* Attributes of f32 data are often f64: 1e20 is meant as the f32 number next to it. */
static double as_stored(cvy_h5_kind kind, double value)
{
    return kind == CVY_H5_F32 && fabs(value) <= (double)FLT_MAX ? (double)(float)value : value;
}

static cvy_status add_missing(cvy_h5_packing *p, hid_t set, const char *owner, cvy_h5_kind kind, const char *name,
                              int most)
{
    struct numbers found;
    CVY_TRY(read_numbers(set, owner, name, 1, most, &found));
    for (int i = 0; i < found.n; i++) {
        if (p->by_bits && found.is_real) { /* no integer equals a number that is not whole or too large */
            if (found.at[i] != floor(found.at[i]) || fabs(found.at[i]) >= 0x1p63)
                continue;
            found.bits[i] = (uint64_t)(int64_t)found.at[i];
        }
        p->bits[p->nmissing] = found.bits[i];
        p->missing[p->nmissing++] = as_stored(kind, found.at[i]);
    }
    return CVY_OK;
}

/* The range is that of the stored numbers. If it is real, and the stored numbers are packed integers, it is that of the
 * unpacked numbers. */
static cvy_status find_range(cvy_h5_packing *p, hid_t set, const char *owner, cvy_h5_kind kind)
{
    static const char *const name[] = {"valid_range", "valid_min", "valid_max"};
    p->least = -INFINITY;
    p->largest = INFINITY;
    for (int i = 0; i < CVY_COUNT(name); i++) {
        struct numbers found;
        const int count = i == 0 ? 2 : 1;
        CVY_TRY(read_numbers(set, owner, name[i], count, count, &found));
        if (found.n == 0)
            continue;
        if (i != 2)
            p->least = as_stored(kind, found.at[0]);
        if (i != 1)
            p->largest = as_stored(kind, found.at[count - 1]);
        p->range_is_unpacked |= found.is_real && kind <= CVY_H5_I64 && (p->is_scaled || p->is_shifted);
    }
    return CVY_OK;
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

/* If the attribute _Unsigned says so, signed integers become the unsigned ones of the same size. */
static int take_unsigned(hid_t set, cvy_h5_number *number)
{
    const cvy_h5_kind k = number->kind;
    if ((k != CVY_H5_I8 && k != CVY_H5_I16 && k != CVY_H5_I32 && k != CVY_H5_I64) || !is_true(set, "_Unsigned"))
        return 0;
    number->kind--;
    return number->bytes;
}

/* Whether the numbers are marks with meanings, such as 0 land and 1 sea (CF conventions, section 3.5). */
static int has_flags(hid_t set)
{
    return H5Aexists(set, "flag_meanings") > 0 || H5Aexists(set, "flag_values") > 0 || H5Aexists(set, "flag_masks") > 0;
}

cvy_status cvy_h5_find_packing(hid_t set, const char *name, cvy_h5_number *number, cvy_h5_packing *out)
{
    cvy_h5_packing p = {.scale = 1, .sign_bytes = take_unsigned(set, number)};
    int scale_is_double = 0, offset_is_double = 0;
    CVY_TRY(read_factor(set, name, "scale_factor", &p.scale, &p.is_scaled, &scale_is_double));
    CVY_TRY(read_factor(set, name, "add_offset", &p.offset, &p.is_shifted, &offset_is_double));
    p.in_f32 = fits_f32(number->kind) && !scale_is_double && !offset_is_double;
    p.by_bits = number->kind == CVY_H5_I64 || number->kind == CVY_H5_U64;
    CVY_TRY(add_missing(&p, set, name, number->kind, "_FillValue", 1));
    if (p.nmissing == 0 && p.sign_bytes == 0) /* what fills a signed number is an ordinary unsigned one */
        add_default_fill(&p, set, number->kind);
    CVY_TRY(add_missing(&p, set, name, number->kind, "missing_value", CVY_H5_MISSING_MAX - 1));
    CVY_TRY(find_range(&p, set, name, number->kind));
    make_unsigned(&p, p.missing, p.nmissing);
    if (!p.range_is_unpacked) {
        make_unsigned(&p, &p.least, 1);
        make_unsigned(&p, &p.largest, 1);
    }
    p.is_on = p.is_scaled || p.is_shifted || p.nmissing > 0 || isfinite(p.least) || isfinite(p.largest);
    if (p.is_on || has_flags(set))
        number->is_byte = 0; /* numbers, not the bytes of a picture */
    *out = p;
    return CVY_OK;
}

/* ---- numbers ---- */

/* bits: the number as it is stored, if that is by_bits. */
static int is_missing(const cvy_h5_packing *p, double stored, uint64_t bits)
{
    for (int i = 0; i < p->nmissing; i++)
        if (p->by_bits ? bits == p->bits[i] : stored == p->missing[i] || (isnan(stored) && isnan(p->missing[i])))
            return 1;
    return !p->range_is_unpacked && (stored < p->least || stored > p->largest);
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
        const double value = p->in_f32 ? (double)unpack_f32(p, (float)out[i]) : unpack_f64(p, out[i]);
        const int is_outside = p->range_is_unpacked && (value < p->least || value > p->largest);
        out[i] = is_outside || is_missing(p, out[i], bits) ? NAN
                 : p->is_converted                         ? value * p->factor + p->shift
                                                           : value;
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
