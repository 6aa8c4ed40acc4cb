/*
 * comm_nccl_api.c: the functions of NCCL (gpu_vendor.h loads it).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "comm/nccl/comm_nccl_api.h"

#include <pthread.h>

#include "backend/gpu/gpu_vendor.h"

static cvy_nccl_api api;

static void load(void)
{
    const cvy_vendor *vendor = cvy_vendor_load(CVY_VENDOR_NCCL);
    if (vendor->why[0])
        return;
#define FIND(name, parameters) (void)cvy_vendor_find(CVY_VENDOR_NCCL, #name, &api.name);
    CVY_NCCL_FUNCTIONS(FIND)
    CVY_NCCL_TEXTS(FIND)
#undef FIND
    if (!vendor->why[0])
        (void)api.ncclGetVersion(&api.version);
}

const cvy_nccl_api *cvy_nccl_library(const char **why_out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    const cvy_vendor *vendor = cvy_vendor_load(CVY_VENDOR_NCCL);
    if (why_out)
        *why_out = vendor->why;
    return vendor->why[0] ? NULL : &api;
}
