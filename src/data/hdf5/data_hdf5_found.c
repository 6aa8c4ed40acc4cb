/*
 * data_hdf5_found.c: lists the data sets of an HDF5 file: for the choice of names, and for messages.
 *
 * It is called when a data set is opened. Source: the HDF5 reference manual, 1.10.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/hdf5/data_hdf5.h"

#if CVY_HAVE_HDF5
#include <string.h>

#include "base/text/base_text.h"

struct listing {
    cvy_pool *pool;
    cvy_h5_found *found;
    int count;
    int64_t more;
    char version[24]; /* of the library */
    cvy_status status;
};

enum { KEPT_FREE = 16 }; /* of the list: for usual names */

static cvy_status describe(struct listing *l, const char *name, hid_t set)
{
    cvy_h5_found *f = &l->found[l->count];
    char *copy = NULL;
    const hid_t space = H5Dget_space(set), type = H5Dget_type(set);
    *f = (cvy_h5_found){0};
    if (cvy_h5_shape_of(space, &f->shape) != f->shape.ndim)
        f->shape.ndim = -1;
    cvy_h5_type_text(type, f->type, sizeof f->type);
    f->whole = H5Tget_class(type) == H5T_INTEGER;
    f->encoded = cvy_h5_is_encoded(type);
    f->is_axis = H5Aexists(set, "CLASS") > 0 && H5Aexists(set, "NAME") > 0;
    if (!f->is_axis)
        cvy_h5_axes_text(set, CVY_MAX(f->shape.ndim, 0), f->axes, sizeof f->axes);
    H5Sclose(space);
    H5Tclose(type);
    CVY_TRY(cvy_pool_strdup(l->pool, name, &copy));
    f->name = copy;
    l->count++;
    return CVY_OK;
}

/* Adds an external link without a data set, with the place to which it leads. */
static cvy_status describe_link(struct listing *l, hid_t group, const char *name, size_t bytes)
{
    char value[4096], from[4096] = "", *copy = NULL, *trouble = NULL;
    const char *file = "", *object = "";
    const hid_t id = H5Iget_file_id(group);
    H5Fget_name(id, from, sizeof from);
    H5Fclose(id);
    if (bytes <= sizeof value && H5Lget_val(group, name, value, sizeof value, H5P_DEFAULT) >= 0)
        H5Lunpack_elink_val(value, bytes, NULL, &file, &object);
    CVY_TRY(cvy_pool_strdup(l->pool, name, &copy));
    CVY_TRY(cvy_pool_printf(l->pool, &trouble, "link to %s of %.200s, which %s", object, file,
                            cvy_h5_stays_in_folder(from, file) ? "is no data set that can be opened"
                                                               : "is outside of this folder and is not followed"));
    l->found[l->count++] = (cvy_h5_found){.name = copy, .shape = {.ndim = -1}, .trouble = trouble};
    return CVY_OK;
}

/* Adds an object, or a soft link, that the library cannot open: a data set in a newer format, or damage. */
static cvy_status describe_trouble(struct listing *l, const char *name, int is_link)
{
    char *copy = NULL, *trouble = NULL;
    cvy_h5_fault(CVY_E_FORMAT, "%scannot be opened by libhdf5 %s", is_link ? "link that " : "", l->version);
    CVY_TRY(cvy_pool_strdup(l->pool, name, &copy));
    CVY_TRY(cvy_pool_strdup(l->pool, cvy_error_text(), &trouble));
    l->found[l->count++] = (cvy_h5_found){.name = copy, .shape = {.ndim = -1}, .trouble = trouble};
    return CVY_OK;
}

static herr_t visit(hid_t group, const char *name, const H5L_info_t *info, void *user)
{
    struct listing *l = user;
    const int is_outside = info->type == H5L_TYPE_EXTERNAL, is_soft = info->type == H5L_TYPE_SOFT;
    if (info->type != H5L_TYPE_HARD && !is_outside && !is_soft)
        return 0;
    const hid_t object = is_outside ? cvy_h5_open_set(group, name) : cvy_h5_open_object(group, name);
    const int is_set = object >= 0 && H5Iget_type(object) == H5I_DATASET;
    if ((is_set || object < 0) && l->count >= CVY_H5_FOUND_MAX - (cvy_h5_is_usual_name(name) ? 0 : KEPT_FREE)) {
        l->more++;
    } else if (is_set) {
        l->status = describe(l, name, object);
        if (l->status == CVY_OK)
            l->found[l->count - 1].is_alias = is_soft;
    } else if (is_outside) {
        l->status = describe_link(l, group, name, info->u.val_size);
    } else if (object < 0) {
        l->status = describe_trouble(l, name, is_soft);
    }
    if (object >= 0)
        H5Oclose(object);
    H5Eclear2(H5E_DEFAULT);
    return l->status == CVY_OK ? 0 : -1;
}

cvy_status cvy_h5_list(cvy_pool *pool, hid_t file, cvy_h5_found *found, int *count_out, int64_t *more_out)
{
    struct listing l = {.pool = pool, .found = found};
    unsigned major = 0, minor = 0, release = 0;
    H5get_libversion(&major, &minor, &release);
    snprintf(l.version, sizeof l.version, "%u.%u.%u", major, minor, release);
    const herr_t bad = H5Lvisit(file, H5_INDEX_NAME, H5_ITER_INC, visit, &l);
    CVY_TRY(l.status);
    if (bad < 0)
        return cvy_h5_fault(CVY_E_FORMAT, "its data sets cannot be listed");
    *count_out = l.count;
    *more_out = l.more;
    return CVY_OK;
}

void cvy_h5_list_text(const cvy_h5_found *found, int count, char *text, size_t room)
{
    size_t at = 0;
    snprintf(text, room, "no data set");
    for (int i = 0; i < count && at + 1 < room; i++) {
        const cvy_h5_found *f = &found[i];
        at +=
            (size_t)snprintf(text + at, room - at, f->trouble ? "%s%s (%s)" : "%s%s %s %s%s%s", i ? ", " : "", f->name,
                             f->trouble          ? f->trouble
                             : f->shape.ndim < 0 ? "of many axes"
                                                 : cvy_shape_text(&f->shape),
                             f->type, *f->axes ? " " : "", f->axes);
    }
}

cvy_status cvy_h5_no_set(cvy_pool *pool, hid_t file, const char *name)
{
    struct {
        cvy_h5_found found[CVY_H5_FOUND_MAX];
        const char *name[CVY_H5_FOUND_MAX];
        char text[1500];
    } *there = NULL;
    int n = 0, readable = 0, is_link = 0;
    int64_t more = 0;
    H5Eclear2(H5E_DEFAULT);
    CVY_TRY(cvy_pool_alloc(pool, sizeof *there, &there));
    CVY_TRY(cvy_h5_list(pool, file, there->found, &n, &more));
    cvy_h5_list_text(there->found, n, there->text, sizeof there->text);
    for (int i = 0; i < n; i++) {
        is_link |= strcmp(there->found[i].name, name) == 0;
        if (!there->found[i].trouble)
            there->name[readable++] = there->found[i].name;
    }
    const char *near = is_link ? NULL : cvy_text_nearest(name, there->name, readable);
    CVY_FAIL(CVY_E_CONFIG, "has no data set \"%s\" that can be read%s%s%s; it holds %s", name,
             near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "", there->text);
}

#endif
