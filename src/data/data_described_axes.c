/*
 * data_described_axes.c: what axes measure, and which axes of two variables are the same: see data_described.h.
 *
 * Names are those of NetCDF files, and of CTYPE in FITS headers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "data/data_described.h"

/* ---- what an axis measures ---- */

static int is_one_of(const char *text, const char *const *list, int count)
{
    for (int i = 0; text && i < count; i++)
        if (strcasecmp(text, list[i]) == 0)
            return 1;
    return 0;
}
#define IS_ONE_OF(text, ...)                                                                                           \
    is_one_of(text, (const char *const[]){__VA_ARGS__}, CVY_COUNT(((const char *const[]){__VA_ARGS__})))

cvy_axis_kind cvy_axis_kind_of(const cvy_coordinates *c)
{
    const char *units = c->cf[CVY_CF_UNITS], *standard = c->cf[CVY_CF_STANDARD_NAME], *axis = c->cf[CVY_CF_AXIS];
    if (IS_ONE_OF(c->name, "lat", "latitude", "nav_lat", "DEC", "GLAT", "ELAT", "HPLT") ||
        IS_ONE_OF(standard, "latitude") ||
        IS_ONE_OF(units, "degrees_north", "degree_north", "degree_N", "degrees_N", "degreeN", "degreesN"))
        return CVY_AXIS_KIND_LATITUDE;
    if (IS_ONE_OF(c->name, "lon", "longitude", "nav_lon", "long", "RA", "GLON", "ELON", "HPLN") ||
        IS_ONE_OF(standard, "longitude") ||
        IS_ONE_OF(units, "degrees_east", "degree_east", "degree_E", "degrees_E", "degreeE", "degreesE"))
        return CVY_AXIS_KIND_LONGITUDE;
    if (IS_ONE_OF(c->name, "time", "valid_time") || IS_ONE_OF(axis, "T") || (units && strstr(units, " since ")))
        return CVY_AXIS_KIND_TIME;
    if (c->cf[CVY_CF_POSITIVE] || IS_ONE_OF(axis, "Z") ||
        IS_ONE_OF(c->name, "lev", "level", "plev", "height", "depth", "altitude", "pressure_level", "isobaricInhPa"))
        return CVY_AXIS_KIND_HEIGHT;
    if (IS_ONE_OF(c->name, "wavelength", "frequency", "energy", "WAVE", "AWAV", "FREQ", "ENER", "VELO", "VRAD", "VOPT"))
        return CVY_AXIS_KIND_SPECTRUM;
    if (IS_ONE_OF(c->name, "x") || IS_ONE_OF(axis, "X"))
        return CVY_AXIS_KIND_X;
    return IS_ONE_OF(c->name, "y") || IS_ONE_OF(axis, "Y") ? CVY_AXIS_KIND_Y : CVY_AXIS_KIND_UNKNOWN;
}

int cvy_axis_heads_north(const cvy_coordinates *c)
{
    const cvy_axis_kind r = c->name ? cvy_axis_kind_of(c) : CVY_AXIS_KIND_UNKNOWN;
    if ((r != CVY_AXIS_KIND_LATITUDE && r != CVY_AXIS_KIND_Y) || c->n < 2 || !c->value)
        return 0;
    return (c->value[c->n - 1] > c->value[0]) - (c->value[c->n - 1] < c->value[0]);
}

static int have_one_name(const cvy_coordinates *a, const cvy_coordinates *b)
{
    return a->name && b->name && strcasecmp(a->name, b->name) == 0;
}

int cvy_axes_are_same(const cvy_coordinates *a, const cvy_coordinates *b)
{
    const cvy_axis_kind r = cvy_axis_kind_of(a);
    return have_one_name(a, b) || (a->name && b->name && r != CVY_AXIS_KIND_UNKNOWN && r == cvy_axis_kind_of(b));
}

/* ---- the order of axes ---- */

/* Finds the one axis, not yet taken, that is the same; -1: there is none, -2: several. */
static int find_axis(const cvy_described *own, const cvy_coordinates *wanted, unsigned taken,
                     int (*are_same)(const cvy_coordinates *, const cvy_coordinates *))
{
    int found = -1;
    for (int k = 0; k < own->ndim; k++)
        if (!(taken & 1u << k) && are_same(wanted, &own->axis[k]))
            found = found == -1 ? k : -2;
    return found;
}

int cvy_described_match(const cvy_described *like, const cvy_described *own, int any_first, int from[CVY_NDIM_MAX])
{
    const int is_added = like->ndim > 0 && !like->axis[0].name && like->axis[0].n == 1;
    const int has_added = is_added && own->ndim > 1 && !own->axis[0].name && own->axis[0].n == 1;
    unsigned taken = has_added, found = has_added;
    for (int i = 0; i < CVY_NDIM_MAX; i++)
        from[i] = i == 0 && has_added ? 0 : -1;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < like->ndim; i++) {
            if (found & 1u << i)
                continue;
            const int k = find_axis(own, &like->axis[i], taken, pass == 0 ? have_one_name : cvy_axes_are_same);
            if (k == -2)
                return 0;
            if (k < 0)
                continue;
            from[i] = k;
            found |= 1u << i;
            taken |= 1u << k;
        }
    const int rest = own->ndim - __builtin_popcount(taken);
    for (int k = 0; k < own->ndim && rest == 1 && any_first && !(found & 1u); k++)
        if (!(taken & 1u << k) && like->ndim > 1) {
            from[0] = k;
            taken |= 1u << k;
        }
    for (int i = 1; i < like->ndim; i++)
        if (from[i] < 0)
            return 0;
    return taken == (1u << own->ndim) - 1 && (from[0] >= 0 || is_added || any_first) && like->ndim > 0;
}

const char *cvy_described_axes_text(const cvy_described *d, const int *order, int ndim, char text[CVY_AXES_TEXT])
{
    size_t at = 0;
    int n = 0;
    snprintf(text, CVY_AXES_TEXT, "()");
    for (int i = 0; i < ndim && at + 1 < CVY_AXES_TEXT; i++) {
        const int k = order ? order[i] : i;
        const char *name = k >= 0 ? d->axis[k].name : NULL;
        if (k < 0 || (!name && d->axis[k].n == 1))
            continue;
        at += (size_t)snprintf(text + at, CVY_AXES_TEXT - at, "%s%.32s", n++ ? ", " : "(", name ? name : "?");
    }
    if (n > 0 && at + 1 < CVY_AXES_TEXT)
        snprintf(text + at, CVY_AXES_TEXT - at, ")");
    return text;
}
