/*
 * data_hdf5_axes.c: what the axes of a data set are: which one counts the samples, and the shape of a sample.
 *
 * It runs when the data set is opened. Axes may have names. These are the names of other data sets, the dimension
 * scales, which may also hold the coordinates along the axis; NetCDF-4 files have one for each dimension. Source:
 * HDF5 Dimension Scale Specification; NetCDF-4 file format, "Dimensions".
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/hdf5/data_hdf5.h"

#if CVY_HAVE_HDF5
#include <string.h>
#include <strings.h>

/* ---- names of axes ---- */

/* Opens the object to which the attribute DIMENSION_LIST refers. It is a list of references for each axis, of which the
 * first one counts. */
static hid_t follow_reference(hid_t set, int axis)
{
    hvl_t list[CVY_NDIM_MAX] = {{0}};
    hid_t scale = -1;
    const hid_t at = H5Aexists(set, "DIMENSION_LIST") > 0 ? H5Aopen(set, "DIMENSION_LIST", H5P_DEFAULT) : -1;
    if (at < 0)
        return -1;
    const hid_t type = H5Aget_type(at), space = H5Aget_space(at), memory = H5Tvlen_create(H5T_STD_REF_OBJ);
    const hid_t base = H5Tget_class(type) == H5T_VLEN ? H5Tget_super(type) : -1;
    const hssize_t n = H5Sget_simple_extent_npoints(space);
    if (base >= 0 && H5Tequal(base, H5T_STD_REF_OBJ) > 0 && axis < n && n <= CVY_NDIM_MAX &&
        H5Aread(at, memory, list) >= 0) {
        if (list[axis].len > 0)
            scale = H5Rdereference2(set, H5P_DEFAULT, H5R_OBJECT, list[axis].p);
        H5Dvlen_reclaim(memory, space, H5P_DEFAULT, list);
    }
    if (base >= 0)
        H5Tclose(base);
    H5Tclose(memory);
    H5Sclose(space);
    H5Tclose(type);
    H5Aclose(at);
    return scale;
}

static int is_scale(hid_t set)
{
    return H5Iget_type(set) == H5I_DATASET && H5Aexists(set, "CLASS") > 0 && H5Aexists(set, "NAME") > 0;
}

hid_t cvy_h5_open_scale(hid_t set, int axis, char name[CVY_H5_AXIS_NAME])
{
    char path[1024];
    hid_t scale = follow_reference(set, axis);
    *name = 0;
    if (scale < 0 && is_scale(set) && axis == 0) { /* coordinates: the axis has their own name */
        H5Iinc_ref(set);
        scale = set;
    }
    const ssize_t n = scale >= 0 && is_scale(scale) ? H5Iget_name(scale, path, sizeof path) : 0;
    const char *slash = n > 0 && (size_t)n < sizeof path ? strrchr(path, '/') : NULL;
    if (slash && strlen(slash + 1) < CVY_H5_AXIS_NAME)
        snprintf(name, CVY_H5_AXIS_NAME, "%s", slash + 1);
    if (scale >= 0 && !*name) {
        H5Oclose(scale);
        scale = -1;
    }
    H5Eclear2(H5E_DEFAULT);
    return scale;
}

void cvy_h5_axis_label(hid_t set, int axis, char name[CVY_H5_AXIS_NAME])
{
    char *label[CVY_NDIM_MAX] = {NULL};
    *name = 0;
    const hid_t at = H5Aexists(set, "DIMENSION_LABELS") > 0 ? H5Aopen(set, "DIMENSION_LABELS", H5P_DEFAULT) : -1;
    if (at < 0)
        return;
    const hid_t type = H5Aget_type(at), space = H5Aget_space(at);
    const hssize_t n = H5Sget_simple_extent_npoints(space);
    if (H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) > 0 && axis < n && n <= CVY_NDIM_MAX) {
        const hid_t memory = H5Tget_native_type(type, H5T_DIR_ASCEND);
        if (H5Aread(at, memory, label) >= 0) {
            if (label[axis] && strlen(label[axis]) < CVY_H5_AXIS_NAME)
                snprintf(name, CVY_H5_AXIS_NAME, "%s", label[axis]);
            H5Dvlen_reclaim(memory, space, H5P_DEFAULT, label);
        }
        H5Tclose(memory);
    }
    H5Sclose(space);
    H5Tclose(type);
    H5Aclose(at);
    H5Eclear2(H5E_DEFAULT);
}

struct names {
    char of[CVY_NDIM_MAX][CVY_H5_AXIS_NAME];
    int is_time[CVY_NDIM_MAX], is_position[CVY_NDIM_MAX];
    int known; /* whether any axis has a name */
};

static int is_one_of(const char *name, const char *const *list, int count)
{
    for (int i = 0; i < count; i++)
        if (strcasecmp(name, list[i]) == 0)
            return 1;
    return 0;
}

/* Whether the axis counts times or samples: by its name or, in the CF conventions, by attributes of its coordinates.
 * scale: negative if it has none. */
static int is_time_axis(hid_t scale, const char *name)
{
    static const char *const usual[] = {"time", "valid_time", "sample"};
    char text[CVY_H5_AXIS_NAME];
    if (scale < 0 || is_one_of(name, usual, CVY_COUNT(usual)))
        return is_one_of(name, usual, CVY_COUNT(usual));
    return (cvy_h5_text_attribute(scale, "axis", text, sizeof text) && strcmp(text, "T") == 0) ||
           (cvy_h5_text_attribute(scale, "standard_name", text, sizeof text) && strcmp(text, "time") == 0) ||
           (cvy_h5_text_attribute(scale, "units", text, sizeof text) && strstr(text, " since "));
}

/* Whether the axis counts positions on a map. */
static int is_position_axis(hid_t scale, const char *name)
{
    static const char *const usual[] = {"lat", "lon", "latitude", "longitude", "x", "y"};
    char text[CVY_H5_AXIS_NAME];
    if (scale < 0 || is_one_of(name, usual, CVY_COUNT(usual)))
        return is_one_of(name, usual, CVY_COUNT(usual));
    return (cvy_h5_text_attribute(scale, "axis", text, sizeof text) && (*text == 'X' || *text == 'Y')) ||
           (cvy_h5_text_attribute(scale, "units", text, sizeof text) && strncmp(text, "degree", 6) == 0);
}

static void find_names(hid_t set, int ndim, struct names *n)
{
    *n = (struct names){0};
    for (int i = 0; i < ndim; i++) {
        const hid_t scale = cvy_h5_open_scale(set, i, n->of[i]);
        if (scale < 0)
            cvy_h5_axis_label(set, i, n->of[i]);
        if (!*n->of[i])
            continue;
        n->known = 1;
        n->is_time[i] = is_time_axis(scale, n->of[i]);
        n->is_position[i] = is_position_axis(scale, n->of[i]);
        if (scale >= 0)
            H5Oclose(scale);
    }
}

void cvy_h5_axes_text(hid_t set, int ndim, char *text, size_t room)
{
    struct names n;
    size_t at = 0;
    *text = 0;
    find_names(set, ndim, &n);
    for (int i = 0; i < ndim && n.known && at + 1 < room; i++)
        at += (size_t)snprintf(text + at, room - at, "%s%s%s", i ? ", " : "(", *n.of[i] ? n.of[i] : "?",
                               i + 1 == ndim ? ")" : "");
}

/* ---- the axis of the samples ---- */

static int find_name(const struct names *n, int ndim, const char *name)
{
    for (int i = 0; i < ndim; i++)
        if (strcasecmp(n->of[i], name) == 0)
            return i;
    return -1;
}

/* The unlimited axis, along which such files grow, and of several ones that of time; or else the axis of time. */
static int guess(hid_t set, const struct names *n, int ndim)
{
    hsize_t most[H5S_MAX_RANK] = {0};
    const hid_t space = H5Dget_space(set);
    int axis = 0, best = 0;
    H5Sget_simple_extent_dims(space, NULL, most);
    H5Sclose(space);
    for (int i = 0; i < ndim; i++) {
        const int fits = 2 * (most[i] == H5S_UNLIMITED) + n->is_time[i];
        if (fits > best) {
            axis = i;
            best = fits;
        }
    }
    return axis;
}

cvy_status cvy_h5_sample_axis(cvy_hdf5 *h, hid_t set, cvy_h5_column *c, int *axis_out)
{
    const char *asked = h->o->sample_axis ? h->o->sample_axis : h->sample_axis;
    char text[256];
    struct names n;
    int axis = 0;
    find_names(set, c->ndim, &n);
    if (*asked && (n.known || c->ndim > 1)) /* a single axis needs no name */
        axis = find_name(&n, c->ndim, asked);
    else if (n.known)
        axis = guess(set, &n, c->ndim);
    cvy_h5_axes_text(set, c->ndim, text, sizeof text);
    CVY_CHECK(axis >= 0 || !h->o->sample_axis, CVY_E_CONFIG, "sample_axis: %s: data set %s has no such axis; %s%s",
              asked, c->name,
              *text ? "its axes are " : "its axes have no names: say what they are by `axes: NCHW` or the like", text);
    if (n.known && !*h->sample_axis)
        snprintf(h->sample_axis, sizeof h->sample_axis, "%s", n.of[CVY_MAX(axis, 0)]);
    c->ends_in_positions = n.is_position[c->ndim - 1];
    *axis_out = CVY_MAX(axis, 0);
    return CVY_OK;
}

/* ---- the shape of a sample ---- */

const char *cvy_h5_column_text(const cvy_h5_column *c)
{
    const cvy_shape s = cvy_shape_make(c->ndim, c->dim);
    return cvy_shape_text(&s);
}

cvy_status cvy_h5_check_axes(const char *axes)
{
    int seen[128] = {0};
    for (const char *a = axes; *a; a++)
        CVY_CHECK(strchr("NCTDHWLF", *a) && seen[(unsigned char)*a]++ == 0, CVY_E_CONFIG,
                  "axes: %s: \"%c\", expected each letter once, of N (samples), C (channels), T, D, H, W, L, F", axes,
                  *a);
    CVY_CHECK(strchr(axes, 'N'), CVY_E_CONFIG, "axes: %s: one axis must be N, which counts the samples", axes);
    return CVY_OK;
}

/* The letters of the axes if the job does not give them: channels are the first axis besides that of the samples. With
 * 4 or 5 axes they are last if the last axis has at most 4 elements and the first one more, unless the last one is
 * known to have positions. */
static void usual_axes(const cvy_h5_column *c, int samples, char letters[CVY_NDIM_MAX + 1])
{
    static const char *const channels_first[] = {"", "F", "HW", "CHW", "CDHW", "CTDHW"};
    int64_t dim[CVY_NDIM_MAX];
    int n = 0;
    for (int i = 0; i < c->ndim; i++)
        if (i != samples)
            dim[n++] = c->dim[i];
    const int last = (n == 3 || n == 4) && dim[n - 1] <= 4 && dim[0] > 4 && !c->ends_in_positions;
    const char *others = !last ? channels_first[n] : n == 3 ? "HWC" : "DHWC";
    for (int i = 0; i < c->ndim; i++)
        letters[i] = i == samples ? 'N' : *others++;
    letters[c->ndim] = 0;
}

/* Finds the strides of the stored row, and its size. */
static cvy_status measure_row(cvy_h5_column *c, int64_t stride[CVY_NDIM_MAX])
{
    const size_t each = (size_t)c->number.bytes;
    size_t bytes = each;
    for (int i = c->ndim - 1; i >= 0; i--) {
        if (i == c->axis)
            continue;
        stride[i] = (int64_t)(bytes / each);
        CVY_TRY(cvy_size_mul(bytes, (size_t)c->dim[i], &bytes));
    }
    CVY_CHECK(bytes > 0 && bytes <= (size_t)1 << 32, CVY_E_SHAPE,
              "data set %s is %s: a sample has %zu bytes, expected 1 byte to 4 GiB; is axis %d the one that counts "
              "samples?",
              c->name, cvy_h5_column_text(c), bytes, c->axis);
    c->row_bytes = bytes;
    c->elems = (int64_t)(bytes / each);
    return CVY_OK;
}

/* Whether these are the axes of maps or volumes without channels: sequences of features are none. */
static int lacks_channels(const char *axes)
{
    return strpbrk(axes, "DHW") && !strpbrk(axes, "CF") && strlen(axes) > 2;
}

/* The axes of x in the order of convoy. Without an axis of channels, maps and volumes get one. */
static cvy_status order_axes(cvy_h5_column *c, const char *axes, int *ndim_out)
{
    const char *at = NULL;
    int n = 0;
    if (lacks_channels(axes))
        c->from[n++] = -1;
    for (const char *a = "CTDHWLF"; *a; a++)
        if ((at = strchr(axes, *a))) {
            CVY_CHECK(n < CVY_NDIM_MAX - 1, CVY_E_SHAPE,
                      "data set %s is %s, and axes %s make samples of more than %d axes: name an axis C, or join axes",
                      c->name, cvy_h5_column_text(c), axes, CVY_NDIM_MAX - 1);
            c->from[n++] = (int)(at - axes);
        }
    *ndim_out = n;
    return CVY_OK;
}

cvy_status cvy_h5_lay_out(cvy_h5_column *c, int ndim, const int turned[CVY_NDIM_MAX], const int64_t roll[CVY_NDIM_MAX])
{
    int64_t stride[CVY_NDIM_MAX] = {0}, plain = 1;
    CVY_TRY(measure_row(c, stride));
    c->permuted = 0;
    c->base = 0;
    c->shape.ndim = ndim;
    for (int i = ndim - 1; i >= 0; i--) {
        const int64_t n = c->from[i] < 0 ? 1 : c->dim[c->from[i]];
        c->shape.dim[i] = n;
        c->stride[i] = c->from[i] < 0 ? 0 : stride[c->from[i]];
        c->roll[i] = roll ? roll[i] : 0;
        c->permuted |= n > 1 && (c->stride[i] != plain || (turned && turned[i]) || c->roll[i] != 0);
        if (turned && turned[i]) {
            c->base += (n - 1) * c->stride[i];
            c->stride[i] = -c->stride[i];
        }
        plain *= n;
    }
    return CVY_OK;
}

cvy_status cvy_h5_shape_column(const cvy_hdf5 *h, cvy_h5_column *c, int samples, int is_x)
{
    const char *axes = is_x && h->o->axes ? h->o->axes : NULL;
    char letters[CVY_NDIM_MAX + 1] = "N";
    int n = 0;
    CVY_CHECK(!axes || (int)strlen(axes) == c->ndim, CVY_E_SHAPE, "data set %s is %s: %d axes, but axes is %s", c->name,
              cvy_h5_column_text(c), c->ndim, axes);
    if (!axes && is_x)
        usual_axes(c, samples, letters);
    axes = axes ? axes : letters;
    c->axis = is_x ? (int)(strchr(axes, 'N') - axes) : samples;
    if (is_x)
        CVY_TRY(order_axes(c, axes, &n));
    for (int i = 0; !is_x && i < c->ndim; i++)
        if (i != c->axis)
            c->from[n++] = i;
    if (n == 0)
        c->from[n++] = -1;
    return cvy_h5_lay_out(c, n, NULL, NULL);
}

#endif
