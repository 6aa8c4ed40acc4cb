/*
 * gpu_cuda_record.c: recordings of the backend cuda, which are CUDA graphs: the stream of the lane COMPUTE is captured,
 * and the graph that comes of it is launched in that stream. What cuDNN puts into the stream is captured too.
 *
 * Only calls of this thread are restricted during a capture (the mode "thread local"). A kernel that the driver has not
 * loaded yet cannot be captured, so work is recorded when it has been done before.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <limits.h>

#include "backend/gpu/gpu_cuda.h"

struct cvy_recording {
    cvy_cu_executable executable;
    char *what;
};

/* What is a fault of recordings only means that there is none. Anything else is a fault of the device. */
static cvy_status refuse(const cvy_cuda_space *s, const char *call, cvy_cu_result result)
{
    const cvy_status status = cvy_cuda_fault(s, call, result);
    const int is_of_graphs = result == CVY_CU_INVALID_VALUE || result == CVY_CU_OUT_OF_MEMORY ||
                             result == CVY_CU_NOT_SUPPORTED ||
                             (result >= CVY_CU_CAPTURE_UNSUPPORTED && result <= CVY_CU_GRAPH_UPDATE_FAILURE);
    return is_of_graphs ? CVY_NOT_APPLICABLE : status;
}

cvy_status cvy_cuda_record_begin(void *state)
{
    const cvy_cuda_space *s = state;
    CVY_CU(s, cuCtxSetCurrent, s->context);
    const cvy_cu_result result =
        s->cu->cuStreamBeginCapture_v2(s->stream[CVY_LANE_COMPUTE], CVY_CU_CAPTURE_THREAD_LOCAL);
    return result == 0 ? CVY_OK : refuse(s, "cuStreamBeginCapture", result);
}

void cvy_cuda_recording_destroy(void *state, cvy_recording *r)
{
    cvy_cuda_space *s = state;
    if (s->launched == r->what)
        s->launched = NULL;
    (void)s->cu->cuCtxSetCurrent(s->context);
    if (r->executable)
        (void)s->cu->cuGraphExecDestroy(r->executable);
    cvy_mem_free(&r->what);
    cvy_mem_free(&r);
}

static cvy_status instantiate(cvy_cuda_space *s, cvy_cu_graph graph, const char *what, cvy_recording **out,
                              int *parts_out)
{
    cvy_recording *r = NULL;
    size_t parts = 0;
    cvy_cu_result result = s->cu->cuGraphGetNodes(graph, NULL, &parts);
    if (result != 0)
        return refuse(s, "cuGraphGetNodes", result);
    CVY_TRY(cvy_mem_alloc(sizeof *r, &r));
    cvy_status status = cvy_mem_strdup(what, &r->what);
    if (status == CVY_OK) {
        result = s->cu->cuGraphInstantiateWithFlags(&r->executable, graph, 0);
        status = result == 0 ? CVY_OK : refuse(s, "cuGraphInstantiateWithFlags", result);
    }
    if (status != CVY_OK) {
        cvy_cuda_recording_destroy(s, r);
        return status;
    }
    *out = r;
    *parts_out = (int)CVY_MIN(parts, (size_t)INT_MAX);
    return CVY_OK;
}

cvy_status cvy_cuda_record_end(void *state, const char *what, cvy_recording **out, int *parts_out)
{
    cvy_cuda_space *s = state;
    cvy_cu_graph graph = NULL;
    CVY_CU(s, cuCtxSetCurrent, s->context);
    const cvy_cu_result result = s->cu->cuStreamEndCapture(s->stream[CVY_LANE_COMPUTE], &graph);
    const cvy_status status =
        result == 0 ? instantiate(s, graph, what, out, parts_out) : refuse(s, "cuStreamEndCapture", result);
    if (graph)
        (void)s->cu->cuGraphDestroy(graph);
    return status;
}

cvy_status cvy_cuda_replay(void *state, cvy_recording *r)
{
    cvy_cuda_space *s = state;
    CVY_CU(s, cuCtxSetCurrent, s->context);
    const cvy_cu_result result = s->cu->cuGraphLaunch(r->executable, s->stream[CVY_LANE_COMPUTE]);
    if (result != 0)
        return refuse(s, "cuGraphLaunch", result);
    s->launched = r->what;
    return CVY_OK;
}
