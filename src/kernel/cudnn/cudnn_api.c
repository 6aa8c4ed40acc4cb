/*
 * cudnn_api.c: the functions of cuDNN (gpu_vendor.h loads it).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/cudnn/cudnn_api.h"

#include <pthread.h>

#include "backend/gpu/gpu_vendor.h"

static cvy_cudnn_api api;

static void load(void)
{
    const cvy_vendor *vendor = cvy_vendor_load(CVY_VENDOR_CUDNN);
    if (vendor->why[0])
        return;
#define FIND(name, parameters) (void)cvy_vendor_find(CVY_VENDOR_CUDNN, #name, &api.name);
    CVY_CUDNN_FUNCTIONS(FIND)
    FIND(cudnnGetErrorString, )
    FIND(cudnnGetLastErrorString, )
#undef FIND
}

const cvy_cudnn_api *cvy_cudnn(const char **why_out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    const cvy_vendor *vendor = cvy_vendor_load(CVY_VENDOR_CUDNN);
    if (why_out)
        *why_out = vendor->why;
    return vendor->why[0] ? NULL : &api;
}
