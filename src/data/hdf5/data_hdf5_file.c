/*
 * data_hdf5_file.c: calls of the HDF5 library that its reader and writer need: open files, data sets, number types,
 * messages.
 *
 * It is called when a data set is opened, and during training if rows cannot be read by position. Source: the HDF5
 * reference manual, 1.10.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/hdf5/data_hdf5.h"

#include <string.h>

int cvy_h5_is_file_name(const char *name)
{
    static const char *const suffix[] = {".h5", ".hdf5", ".nc", ".nc4"};
    for (int i = 0; i < CVY_COUNT(suffix); i++)
        if (cvy_data_has_suffix(name, suffix[i]))
            return 1;
    return 0;
}

int cvy_h5_is_matlab(const char *path)
{
    char head[10];
    return cvy_data_peek(path, head, sizeof head) == sizeof head && memcmp(head, "MATLAB 7.3", sizeof head) == 0;
}

#if CVY_HAVE_HDF5
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/base_file.h"
#include "base/number/base_bf16.h"
#include "data/data_half.h"

enum { OPEN_MAX_FILES = 128 };

/* The library's state is global to the process, so its lock is too. Thread-safe builds of the library have a lock of
 * their own, which does no harm. */
static pthread_mutex_t library = PTHREAD_MUTEX_INITIALIZER;
static H5E_auto2_t former_print; /* under the lock: how the rest of the program prints the library's messages */
static void *former_data;
static sigset_t former_mask; /* under the lock: libhdf5 writes files, too */

/* Loads libhdf5 in the shared libconvoy (data_hdf5_private.c). Returns NULL, or why it does not load. Programs that are
 * linked with libhdf5 have no such function. */
#ifdef __ELF__
extern const char *cvy_h5_private_load(void) __attribute__((weak, visibility("hidden")));
#else
static const char *(*const cvy_h5_private_load)(void) = NULL;
#endif
static const char *unloaded; /* under the lock: why */

void cvy_h5_enter(void)
{
    pthread_mutex_lock(&library);
    cvy_signals_hold(&former_mask);
    if (cvy_h5_private_load)
        unloaded = cvy_h5_private_load();
    H5Eget_auto2(H5E_DEFAULT, &former_print, &former_data);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

void cvy_h5_leave(void)
{
    H5Eset_auto2(H5E_DEFAULT, former_print, former_data);
    cvy_signals_release(&former_mask);
    pthread_mutex_unlock(&library);
}

enum { MESSAGE_BYTES = 256 };

static herr_t keep_innermost(unsigned n, const H5E_error2_t *e, void *text)
{
    if (n == 0)
        snprintf(text, MESSAGE_BYTES, "%s", e->desc ? e->desc : "");
    return 0;
}

cvy_status cvy_h5_fault(cvy_status code, const char *fmt, ...)
{
    char ours[2048], theirs[MESSAGE_BYTES] = "";
    va_list args;
    va_start(args, fmt);
    vsnprintf(ours, sizeof ours, fmt, args);
    va_end(args);
    if (unloaded)
        return cvy_error_set(CVY_E_UNSUPPORTED, "%s: %s", ours, unloaded);
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_innermost, theirs);
    H5Eclear2(H5E_DEFAULT);
    return cvy_error_set(code, "%s%s%s%s", ours, *theirs ? " (HDF5: " : "", theirs, *theirs ? ")" : "");
}

void cvy_h5_release(hid_t id)
{
    const hid_t message = H5Eget_current_stack(); /* each call of the library clears the messages of the one before */
    if (id >= 0)
        H5Idec_ref(id);
    H5Eset_current_stack(message);
}

hid_t cvy_h5_access(void)
{
    const hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fclose_degree(list, H5F_CLOSE_STRONG);
#if (H5_VERSION_GE(1, 10, 7) && !H5_VERSION_GE(1, 12, 0)) || H5_VERSION_GE(1, 12, 1)
    H5Pset_file_locking(list, 0, 1);
#endif
    return list;
}

/* Files of the classic NetCDF formats have another beginning, and many of them are about. */
cvy_status cvy_h5_cannot_open(const char *path)
{
    char head[3];
    if (cvy_data_peek(path, head, sizeof head) == sizeof head && memcmp(head, "CDF", 3) == 0)
        return cvy_error_set(CVY_E_UNSUPPORTED, "is a classic NetCDF file, which is not an HDF5 file; convert it to "
                                                "NetCDF-4: nccopy -k nc4 IN OUT");
    return cvy_h5_fault(CVY_E_FORMAT, "cannot be opened as an HDF5 file");
}

/* ---- data sets ---- */

int cvy_h5_shape_of(hid_t space, cvy_shape *out)
{
    hsize_t dim[H5S_MAX_RANK] = {0};
    const int ndim = H5Sget_simple_extent_dims(space, dim, NULL);
    *out = (cvy_shape){.ndim = CVY_MAX(CVY_MIN(ndim, CVY_NDIM_MAX), 0)};
    for (int i = 0; i < out->ndim; i++)
        out->dim[i] = (int64_t)CVY_MIN(dim[i], (hsize_t)INT64_MAX);
    return ndim;
}

static size_t folder_bytes(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* The library looks for a file with an absolute name that does not exist in the folder of `from`. */
int cvy_h5_stays_in_folder(const char *from, const char *name)
{
    char path[4096], folder[PATH_MAX], file[PATH_MAX];
    if (cvy_data_goes_up(name, strlen(name)))
        return 0;
    if (name[0] != '/' || !realpath(name, file))
        return 1;
    snprintf(path, sizeof path, "%.*s.", (int)folder_bytes(from), from);
    if (!realpath(path, folder))
        return 0;
    const size_t n = strlen(folder);
    return strncmp(file, folder, n) == 0 && (file[n] == '/' || n == 1);
}

static int has_file(const char *from, const char *name)
{
    char path[4096];
    const int n = snprintf(path, sizeof path, "%.*s%s", (int)folder_bytes(from), from, name);
    return n > 0 && (size_t)n < sizeof path && cvy_file_exists(path);
}

static herr_t follow_link(const char *parent, const char *group, const char *file, const char *object, unsigned *flags,
                          hid_t access, void *user)
{
    (void)group, (void)object, (void)flags, (void)access, (void)user;
    return cvy_h5_stays_in_folder(parent, file) ? 0 : -1;
}

hid_t cvy_h5_open_object(hid_t group, const char *name)
{
    const hid_t access = H5Pcreate(H5P_LINK_ACCESS);
    H5Pset_elink_cb(access, follow_link, NULL);
    const hid_t object = H5Oopen(group, name, access);
    cvy_h5_release(access);
    return object;
}

hid_t cvy_h5_open_set(hid_t file, const char *name)
{
    const hid_t access = H5Pcreate(H5P_DATASET_ACCESS);
    H5Pset_elink_cb(access, follow_link, NULL);
    const hid_t set = H5Dopen2(file, name, access);
    cvy_h5_release(access);
    return set;
}

cvy_status cvy_h5_check_filters(hid_t set, const char *name)
{
    const hid_t plist = H5Dget_create_plist(set);
    const int n = H5Pget_nfilters(plist);
    cvy_status status = CVY_OK;
    for (int i = 0; i < n && status == CVY_OK; i++) {
        unsigned flags = 0, config = 0;
        size_t values = 0;
        char filter[80] = "";
        const H5Z_filter_t number =
            H5Pget_filter2(plist, (unsigned)i, &flags, &values, NULL, sizeof filter, filter, &config);
        if (number < 0 || H5Zfilter_avail(number) > 0)
            continue;
        status = cvy_error_set(
            CVY_E_UNSUPPORTED,
            "data set %s is compressed by the filter %s (number %d), which the HDF5 library here lacks: write the file "
            "anew on a machine that has the filter, by `h5repack -f GZIP=4 IN OUT` or by h5py with "
            "compression=\"gzip\"; or name the folder of the filter's plugin in HDF5_PLUGIN_PATH; or, if the program "
            "registers the filter itself, say `sandbox: false` for the source",
            name, *filter ? filter : "without a name", (int)number);
    }
    H5Eclear2(H5E_DEFAULT);
    H5Pclose(plist);
    return status;
}

static cvy_status check_part(const char *from, const char *part, const char *name)
{
    CVY_CHECK(cvy_h5_stays_in_folder(from, part), CVY_E_FORMAT,
              "data set %s is virtual and reaches outside its folder: %.200s; move the parts into the folder of %.200s",
              name, part, from);
    if (strcmp(part, ".") == 0 || strchr(part, '%')) /* this file; a pattern of names */
        return CVY_OK;
    CVY_CHECK(cvy_file_exists(part) || has_file(from, part) || has_file(from, cvy_file_base_name(part)), CVY_E_IO,
              "data set %s is virtual, and the file of a part of it is missing: %.200s", name, part);
    return CVY_OK;
}

cvy_status cvy_h5_check_parts(hid_t set, const char *name)
{
    const hid_t plist = H5Dget_create_plist(set), file = H5Iget_file_id(set);
    char from[4096] = "", part[4096] = "";
    size_t count = 0;
    cvy_status status = CVY_OK;
    if (H5Pget_external_count(plist) > 0) {
        status = cvy_error_set(
            CVY_E_UNSUPPORTED,
            "data set %s keeps its numbers in other files: copy them into one file (h5repack IN OUT)", name);
    } else if (H5Pget_layout(plist) == H5D_VIRTUAL) {
        const ssize_t length = H5Fget_name(file, from, sizeof from);
        if (length <= 0 || (size_t)length >= sizeof from || H5Pget_virtual_count(plist, &count) < 0)
            status = cvy_h5_fault(CVY_E_FORMAT, "data set %s: its parts cannot be listed", name);
    }
    for (size_t i = 0; i < count && status == CVY_OK; i++) {
        const ssize_t n = H5Pget_virtual_filename(plist, i, part, sizeof part);
        status = n > 0 && (size_t)n < sizeof part
                     ? check_part(from, part, name)
                     : cvy_h5_fault(CVY_E_FORMAT, "data set %s: its parts cannot be listed", name);
    }
    H5Fclose(file);
    H5Pclose(plist);
    return status;
}

int cvy_h5_is_encoded(hid_t type)
{
    const hid_t base = H5Tget_class(type) == H5T_VLEN ? H5Tget_super(type) : -1;
    const int yes = base >= 0 && H5Tget_class(base) == H5T_INTEGER && H5Tget_size(base) == 1;
    if (base >= 0)
        H5Tclose(base);
    return yes;
}

/* ---- numbers ---- */

static int has_fields(hid_t type, size_t sign, size_t exponent, size_t exponent_bits, size_t fraction_bits, size_t bias)
{
    size_t s = 0, e = 0, ebits = 0, m = 0, mbits = 0;
    return H5Tget_fields(type, &s, &e, &ebits, &m, &mbits) >= 0 && s == sign && e == exponent &&
           ebits == exponent_bits && m == 0 && mbits == fraction_bits && H5Tget_ebias(type) == bias;
}

static int float_kind(hid_t type, int bytes, cvy_h5_kind *out)
{
    if (bytes == 2 && has_fields(type, 15, 10, 5, 10, 15))
        *out = CVY_H5_F16;
    else if (bytes == 2 && has_fields(type, 15, 7, 8, 7, 127))
        *out = CVY_H5_BF16;
    else if (bytes == 4 && has_fields(type, 31, 23, 8, 23, 127))
        *out = CVY_H5_F32;
    else if (bytes == 8 && has_fields(type, 63, 52, 11, 52, 1023))
        *out = CVY_H5_F64;
    else
        return 0;
    return 1;
}

static int integer_kind(hid_t type, int bytes, int is_signed, cvy_h5_kind *out)
{
    if ((bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) || H5Tget_precision(type) != 8 * (size_t)bytes ||
        H5Tget_offset(type) != 0)
        return 0;
    const int power = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3;
    *out = (cvy_h5_kind)(CVY_H5_U8 + 2 * power + is_signed);
    return 1;
}

int cvy_h5_number_of(hid_t type, cvy_h5_number *out)
{
    const H5T_class_t class = H5Tget_class(type);
    cvy_h5_number n = {.bytes = (int)H5Tget_size(type)};
    int known = 0;
    if (class == H5T_ENUM) { /* h5py writes booleans so */
        const hid_t base = H5Tget_super(type);
        known = base >= 0 && cvy_h5_number_of(base, &n);
        if (base >= 0)
            H5Tclose(base);
        n.is_byte = 0;
    } else if (class == H5T_INTEGER || class == H5T_BITFIELD) {
        known = integer_kind(type, n.bytes, class == H5T_INTEGER && H5Tget_sign(type) == H5T_SGN_2, &n.kind);
        n.is_byte = class == H5T_INTEGER && n.kind == CVY_H5_U8;
    } else if (class == H5T_FLOAT) {
        known = float_kind(type, n.bytes, &n.kind);
    }
    n.fast_half = known && n.kind == CVY_H5_F16 && cvy_half_is_fast();
    const H5T_order_t order = known && n.bytes > 1 ? H5Tget_order(type) : H5T_ORDER_LE;
    n.big_endian = order == H5T_ORDER_BE;
    *out = n;
    return known && (order == H5T_ORDER_LE || order == H5T_ORDER_BE);
}

void cvy_h5_type_text(hid_t type, char *text, size_t room)
{
    const int bits = 8 * (int)H5Tget_size(type);
    switch (H5Tget_class(type)) {
    case H5T_INTEGER: snprintf(text, room, "%sint%d", H5Tget_sign(type) == H5T_SGN_2 ? "" : "u", bits); break;
    case H5T_FLOAT: snprintf(text, room, "float%d", bits); break;
    case H5T_ENUM:
    case H5T_BITFIELD: snprintf(text, room, "bool"); break;
    case H5T_STRING: snprintf(text, room, "text"); break;
    case H5T_COMPOUND: snprintf(text, room, "compound"); break;
    case H5T_VLEN: snprintf(text, room, cvy_h5_is_encoded(type) ? "bytes" : "lists"); break;
    case H5T_ARRAY: snprintf(text, room, "arrays"); break;
    case H5T_REFERENCE: snprintf(text, room, "references"); break;
    default: snprintf(text, room, "opaque"); break;
    }
}

void cvy_h5_swap(const cvy_h5_number *n, void *data, int64_t count)
{
    const int bytes = n->bytes;
    if (!n->big_endian || bytes == 1)
        return;
    for (uint8_t *at = data, *end = at + count * bytes; at < end; at += bytes)
        for (int i = 0; i < bytes / 2; i++) {
            const uint8_t low = at[i];
            at[i] = at[bytes - 1 - i];
            at[bytes - 1 - i] = low;
        }
}

static void integers_to_f32(cvy_h5_kind kind, const void *in, int64_t count, float *restrict out)
{
    switch (kind) {
    case CVY_H5_U8:
        for (int64_t i = 0; i < count; i++)
            out[i] = ((const uint8_t *)in)[i];
        break;
    case CVY_H5_I8:
        for (int64_t i = 0; i < count; i++)
            out[i] = ((const int8_t *)in)[i];
        break;
    case CVY_H5_U16:
        for (int64_t i = 0; i < count; i++)
            out[i] = ((const uint16_t *)in)[i];
        break;
    case CVY_H5_I16:
        for (int64_t i = 0; i < count; i++)
            out[i] = ((const int16_t *)in)[i];
        break;
    case CVY_H5_U32:
        for (int64_t i = 0; i < count; i++)
            out[i] = (float)((const uint32_t *)in)[i];
        break;
    case CVY_H5_I32:
        for (int64_t i = 0; i < count; i++)
            out[i] = (float)((const int32_t *)in)[i];
        break;
    case CVY_H5_U64:
        for (int64_t i = 0; i < count; i++)
            out[i] = (float)((const uint64_t *)in)[i];
        break;
    default:
        for (int64_t i = 0; i < count; i++)
            out[i] = (float)((const int64_t *)in)[i];
    }
}

void cvy_h5_to_f32(const cvy_h5_number *n, const void *in, int64_t count, float *restrict out)
{
    switch (n->kind) {
    case CVY_H5_F16: cvy_half_to_f32(in, count, n->fast_half, out); break;
    case CVY_H5_BF16:
        for (int64_t i = 0; i < count; i++)
            out[i] = cvy_bf16_get(((const cvy_bf16 *)in)[i]);
        break;
    case CVY_H5_F32: memcpy(out, in, (size_t)count * sizeof *out); break;
    case CVY_H5_F64:
        for (int64_t i = 0; i < count; i++)
            out[i] = (float)((const double *)in)[i];
        break;
    default: integers_to_f32(n->kind, in, count, out);
    }
}

void cvy_h5_to_f64(const cvy_h5_number *n, const void *in, int64_t count, double *out)
{
    for (int64_t i = 0; i < count; i++) {
        float value = 0;
        switch (n->kind) { /* the types which a float cannot hold exactly */
        case CVY_H5_U32: out[i] = ((const uint32_t *)in)[i]; break;
        case CVY_H5_I32: out[i] = ((const int32_t *)in)[i]; break;
        case CVY_H5_U64: out[i] = (double)((const uint64_t *)in)[i]; break;
        case CVY_H5_I64: out[i] = (double)((const int64_t *)in)[i]; break;
        case CVY_H5_F64: out[i] = ((const double *)in)[i]; break;
        default: cvy_h5_to_f32(n, (const char *)in + i * n->bytes, 1, &value); out[i] = value;
        }
    }
}

/* ---- open files ---- */

static void close_file(cvy_hdf5 *h, cvy_h5_file *f)
{
    if (f->id >= 0) {
        cvy_h5_enter();
        for (int i = 0; f->set && i < h->ncolumn; i++) {
            if (f->set[i] >= 0)
                H5Dclose(f->set[i]);
            f->set[i] = -1;
        }
        H5Fclose(f->id);
        H5Eclear2(H5E_DEFAULT);
        cvy_h5_leave();
    }
    f->id = -1;
    cvy_data_file_close(&(cvy_data_file){.fd = f->fd});
    h->cache.nopen -= f->fd >= 0;
    f->fd = -1;
}

static void close_oldest(cvy_hdf5 *h)
{
    cvy_h5_file *oldest = NULL;
    for (int64_t i = 0; i < h->nfile; i++) {
        cvy_h5_file *f = &h->file[i];
        if (f->fd >= 0 && f->pins == 0 && (!oldest || f->used < oldest->used))
            oldest = f;
    }
    if (oldest)
        close_file(h, oldest);
}

cvy_status cvy_h5_pin(cvy_hdf5 *h, int64_t file)
{
    cvy_h5_file *f = &h->file[file];
    cvy_status status = CVY_OK;
    if (h->at_work)
        snprintf(h->at_work, CVY_H5_AT_WORK, "%s", f->path);
    pthread_mutex_lock(&h->cache.lock);
    if (f->fd < 0) {
        cvy_data_file opened = {.fd = -1};
        if (h->cache.nopen >= OPEN_MAX_FILES)
            close_oldest(h);
        status = cvy_data_file_open(NULL, f->path, &opened);
        if (status == CVY_OK) {
            f->fd = opened.fd;
            f->bytes = opened.bytes;
            h->cache.nopen++;
        }
    }
    if (status == CVY_OK) {
        f->pins++;
        f->used = ++h->cache.tick;
    }
    pthread_mutex_unlock(&h->cache.lock);
    return status;
}

void cvy_h5_unpin(cvy_hdf5 *h, int64_t file)
{
    pthread_mutex_lock(&h->cache.lock);
    h->file[file].pins--;
    pthread_mutex_unlock(&h->cache.lock);
}

hid_t cvy_h5_file_id(cvy_h5_file *f)
{
    if (f->id < 0) {
        const hid_t access = cvy_h5_access();
        f->id = H5Fopen(f->path, H5F_ACC_RDONLY, access);
        cvy_h5_release(access);
    }
    return f->id;
}

hid_t cvy_h5_set_id(cvy_hdf5 *h, cvy_h5_file *f, int column)
{
    if (f->set[column] < 0 && cvy_h5_file_id(f) >= 0)
        f->set[column] = cvy_h5_open_set(f->id, h->column[column].name);
    return f->set[column];
}

void cvy_h5_close_files(cvy_hdf5 *h)
{
    for (int64_t i = 0; i < h->nfile; i++)
        close_file(h, &h->file[i]);
}

cvy_status cvy_h5_read_rows(hid_t set, int axis, int64_t first, int64_t n, void *data)
{
    hsize_t start[H5S_MAX_RANK] = {0}, count[H5S_MAX_RANK];
    const hid_t space = H5Dget_space(set), type = H5Dget_type(set);
    const int ndim = H5Sget_simple_extent_dims(space, count, NULL);
    start[axis] = (hsize_t)first;
    count[axis] = (hsize_t)n;
    const hid_t memory = ndim > 0 ? H5Screate_simple(ndim, count, NULL) : -1;
    /* where a chunk was never written and there is no fill value, the library leaves the memory as it is */
    if (memory >= 0)
        memset(data, 0, (size_t)H5Sget_simple_extent_npoints(memory) * H5Tget_size(type));
    const int good = memory >= 0 && H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
                     H5Dread(set, type, memory, space, H5P_DEFAULT, data) >= 0;
    const cvy_status status = good ? CVY_OK
                                   : cvy_h5_fault(CVY_E_FORMAT, "rows %lld to %lld cannot be read", (long long)first,
                                                  (long long)(first + n - 1));
    if (memory >= 0)
        H5Sclose(memory);
    H5Sclose(space);
    H5Tclose(type);
    return status;
}

#endif
