/*
 * opencl.h: for the tests of the backend opencl: its space on the first device, and whether there is one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_TEST_BACKEND_OPENCL_H
#define CVY_TEST_BACKEND_OPENCL_H

#include "backend/gpu/gpu.h"
#include "backend/gpu/gpu_opencl_api.h"
#include "test_util.h"

/* Returns whether there is a device; else it prints why not, and the test ends with 77. */
static inline int opencl_is_there(void)
{
    cvy_opencl_device list[CVY_OPENCL_DEVICES_MAX];
    char why[400];
    const int n = cvy_opencl_devices(list, why, sizeof why);
    if (n == 0)
        printf("skipped: no OpenCL device: %s\n", why);
    return n > 0;
}

#endif
