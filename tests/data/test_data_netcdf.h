/*
 * test_data_netcdf.h: attributes of HDF5 data sets, and axes with names, as the netCDF library writes them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef TEST_DATA_NETCDF_H
#define TEST_DATA_NETCDF_H

#include "test_data_hdf5.h"

#if CVY_HAVE_HDF5

enum { AXES_MAX = 4 };

static inline void put_attribute(hid_t set, const char *name, hid_t type, int count, const double *value)
{
    const hsize_t n = (hsize_t)count;
    const hid_t space = count > 1 ? H5Screate_simple(1, &n, NULL) : H5Screate(H5S_SCALAR);
    const hid_t at = H5Acreate2(set, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    TRUE_THAT(at >= 0 && H5Awrite(at, H5T_NATIVE_DOUBLE, value) >= 0);
    H5Aclose(at);
    H5Sclose(space);
}

static inline void put_text(hid_t object, const char *name, const char *text)
{
    const hid_t space = H5Screate(H5S_SCALAR), type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, strlen(text) + 1);
    const hid_t at = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    TRUE_THAT(at >= 0 && H5Awrite(at, type, text) >= 0);
    H5Aclose(at);
    H5Tclose(type);
    H5Sclose(space);
}

/* Makes a data set the coordinates of an axis, which has its name. */
static inline void make_axis(hid_t set, const char *name)
{
    put_text(set, "CLASS", "DIMENSION_SCALE");
    put_text(set, "NAME", name);
}

/* Says which data sets are the axes of another one. */
static inline void name_axes(hid_t file, hid_t set, int ndim, const char *const *axis)
{
    hobj_ref_t to[AXES_MAX];
    hvl_t list[AXES_MAX];
    const hsize_t count = (hsize_t)ndim;
    for (int i = 0; i < ndim; i++) {
        TRUE_THAT(H5Rcreate(&to[i], file, axis[i], H5R_OBJECT, -1) >= 0);
        list[i] = (hvl_t){1, &to[i]};
    }
    const hid_t type = H5Tvlen_create(H5T_STD_REF_OBJ), axes = H5Screate_simple(1, &count, NULL);
    const hid_t at = H5Acreate2(set, "DIMENSION_LIST", type, axes, H5P_DEFAULT, H5P_DEFAULT);
    TRUE_THAT(at >= 0 && H5Awrite(at, type, list) >= 0);
    H5Aclose(at);
    H5Sclose(axes);
    H5Tclose(type);
}

#endif
#endif
