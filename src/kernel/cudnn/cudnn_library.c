/*
 * cudnn_library.c: cuDNN as a kernel library. Its reorders are those of the library gpu.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "backend/gpu/gpu_vendor.h"
#include "kernel/cudnn/cudnn_graph.h"
#include "kernel/kernel_library.h"

static cvy_status ready(const cvy_space *space)
{
    cvy_cudnn_device *device = NULL;
    return cvy_cudnn_device_of(space, &device);
}

static void about(const cvy_space *space, char *text, size_t room)
{
    const cvy_vendor *vendor = cvy_vendor_load(CVY_VENDOR_CUDNN);
    snprintf(text, room, ready(space) == CVY_OK ? "cuDNN %s" : "no cuDNN", vendor->version);
}

CVY_LIBRARY_DEFINE(cudnn) = {
    .name = "cudnn",
    .help = "NVIDIA's cuDNN, on the backend cuda: convolution, deconvolution and fc",
    .on_gpu = 1,
    .backend = "cuda",
    .tf32 = 1,
    .ready = ready,
    .about = about,
};
