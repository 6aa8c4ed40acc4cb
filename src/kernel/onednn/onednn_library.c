/*
 * onednn_library.c: oneDNN as a kernel library.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/kernel_library.h"
#include "kernel/onednn/onednn_api.h"

static void about(const cvy_space *space, char *text, size_t room)
{
    (void)space;
    cvy_onednn_library(text, room);
}

static cvy_status reorder_create(const cvy_space *space, const cvy_shape *shape, const cvy_memory_format *from,
                                 const cvy_memory_format *to, int threads, void **call_out)
{
    cvy_onednn_call *call = NULL;
    (void)space;
    const cvy_status status = cvy_onednn_reorder(shape, from, to, threads, &call);
    *call_out = call;
    return status;
}

static cvy_status reorder_run(void *call, const void *src, void *dst)
{
    void *const arg[CVY_ONEDNN_ROLES] = {[CVY_ONEDNN_SRC] = (void *)(uintptr_t)src, [CVY_ONEDNN_DST] = dst};
    return cvy_onednn_run(call, arg, NULL);
}

static void reorder_destroy(void *call)
{
    cvy_onednn_destroy(call);
}

CVY_LIBRARY_DEFINE(onednn) = {
    .name = "onednn",
    .help = "oneDNN's kernels: convolution, deconvolution and fc",
    .about = about,
    .reorder_create = reorder_create,
    .reorder_run = reorder_run,
    .reorder_destroy = reorder_destroy,
};
