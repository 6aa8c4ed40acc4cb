/*
 * data_hdf5_put.c: calls of the HDF5 library that write: files, rows and attributes, for `convoy convert`
 * (data_hdf5_write.c) and for predictions (data_hdf5_table.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/hdf5/data_hdf5.h"

#if CVY_HAVE_HDF5
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"

/* ---- writes that fail ----
 * If a write fails while libhdf5 (1.10 and 1.12 at least) closes a file, the file stays half closed, and the library
 * crashes when the process ends. So its driver for files gets functions that tell libhdf5 of no failure. They count the
 * failures, and the file is lost for whoever finds that the count has changed. */

static const H5FD_class_t *files; /* under the library's lock, as all of this: the driver of plain files */
static hid_t driver = -1;
static int64_t nfailed;
static int why_failed;

static herr_t note(herr_t result)
{
    if (result < 0) {
        why_failed = errno;
        nfailed++;
    }
    return 0;
}

static herr_t write_or_note(H5FD_t *file, H5FD_mem_t type, hid_t list, haddr_t at, size_t bytes, const void *data)
{
    errno = 0;
    return note(files->write(file, type, list, at, bytes, data));
}

static herr_t cut_or_note(H5FD_t *file, hid_t list, hbool_t closing)
{
    errno = 0;
    return note(files->truncate(file, list, closing));
}

/* The driver is a copy of that of plain files, which an open file shows. Without it, failures are those of libhdf5. */
static void make_driver(const char *path, hid_t access)
{
    static H5FD_class_t mine;
    H5FD_t *file = H5FDopen(path, H5F_ACC_RDWR | H5F_ACC_CREAT, access, (haddr_t)1 << 40);
    if (!file)
        return;
    files = file->cls;
    mine = *files;
    mine.write = write_or_note;
    mine.truncate = cut_or_note;
    driver = H5FDregister(&mine);
    H5FDclose(file);
}

int64_t cvy_h5_nfailed(void)
{
    return nfailed;
}

cvy_status cvy_h5_lost(const char *path)
{
    char why[CVY_WRITE_WHY];
    const int fd = cvy_file_open(path, O_RDONLY, 0, NULL);
    cvy_write_why(fd, why_failed, why);
    if (fd >= 0)
        close(fd);
    return cvy_error_set(CVY_E_IO, "%s: cannot write: %s", path, why);
}

hid_t cvy_h5_make_file(const char *path, int in_order)
{
    const hid_t access = cvy_h5_access(), made = H5Pcreate(H5P_FILE_CREATE);
    H5Pset_fapl_sec2(access);
#if H5_VERSION_GE(1, 10, 2)
    H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_LATEST); /* checksums in headers, and room for the names of
                                                                      * many classes */
#endif
    H5Pset_obj_track_times(made, 0);
    if (in_order) {
        H5Pset_link_creation_order(made, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
        H5Pset_attr_creation_order(made, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    }
    (void)unlink(path); /* H5F_ACC_EXCL follows no link that has the name */
    if (driver < 0) {
        make_driver(path, access);
        (void)unlink(path);
    }
    if (driver >= 0)
        H5Pset_driver(access, driver, NULL);
    const hid_t file = H5Fcreate(path, H5F_ACC_EXCL, made, access);
    cvy_h5_release(made);
    cvy_h5_release(access);
    return file;
}

cvy_status cvy_h5_publish(const char *partial, const char *path)
{
    const char *why = "";
    int fd = cvy_file_open(partial, O_RDONLY, 0, &why);
    CVY_CHECK(fd >= 0, CVY_E_IO, "%s: cannot be opened again: %s", partial, why);
    const cvy_status status = cvy_file_sync(&fd, partial, path);
    if (fd >= 0)
        close(fd);
    return status;
}

int cvy_h5_put_rows(hid_t set, hid_t type, int ndim, const hsize_t *dim, int64_t first, int64_t n, const void *rows)
{
    hsize_t start[CVY_NDIM_MAX] = {(hsize_t)first}, count[CVY_NDIM_MAX] = {(hsize_t)n};
    memcpy(count + 1, dim + 1, sizeof *count * (size_t)(ndim - 1));
    const hid_t space = H5Dget_space(set), memory = H5Screate_simple(ndim, count, NULL);
    const int64_t before = nfailed;
    const int good = H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
                     H5Dwrite(set, type, memory, space, H5P_DEFAULT, rows) >= 0 && nfailed == before;
    cvy_h5_release(memory);
    cvy_h5_release(space);
    return good;
}

int cvy_h5_put_attribute(hid_t object, const char *name, hid_t stored, hid_t memory, int64_t count, const void *data)
{
    const hsize_t n = (hsize_t)count;
    const hid_t space = count > 0 ? H5Screate_simple(1, &n, NULL) : H5Screate(H5S_SCALAR);
    const hid_t at = H5Acreate2(object, name, stored, space, H5P_DEFAULT, H5P_DEFAULT);
    const int good = at >= 0 && H5Awrite(at, memory, data) >= 0;
    cvy_h5_release(at);
    cvy_h5_release(space);
    return good;
}

#endif
