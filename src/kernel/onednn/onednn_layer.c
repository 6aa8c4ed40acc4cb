/*
 * onednn_layer.c: the common part of the kernels of layers with weights.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/onednn/onednn_layer.h"

#include <string.h>

/* The place of a role in a node: i is source i, ~i is destination i. */
enum { NOWHERE = CVY_NODE_SRC_MAX };
static const int place[3][CVY_ONEDNN_ROLES] = {
    [CVY_LAYER_FORWARD] = {[CVY_ONEDNN_SRC] = 0, [CVY_ONEDNN_WEIGHT] = 1, [CVY_ONEDNN_BIAS] = 2, [CVY_ONEDNN_DST] = ~0},
    [CVY_LAYER_GRAD_SRC] =
        {[CVY_ONEDNN_SRC] = ~0, [CVY_ONEDNN_WEIGHT] = 1, [CVY_ONEDNN_BIAS] = NOWHERE, [CVY_ONEDNN_DST] = 0},
    [CVY_LAYER_GRAD_WEIGHT] =
        {[CVY_ONEDNN_SRC] = 0, [CVY_ONEDNN_WEIGHT] = ~0, [CVY_ONEDNN_BIAS] = ~1, [CVY_ONEDNN_DST] = 1},
};

struct layer {
    cvy_onednn_call *call;
    int place[CVY_ONEDNN_ROLES]; /* NOWHERE for roles that are not in the call */
};

cvy_layout *cvy_onednn_ask_layout(cvy_kernel_ask *ask, cvy_layer_pass pass, int role)
{
    const int at = place[pass][role];
    return at < 0 ? &ask->dst[~at] : &ask->src[at];
}

int64_t cvy_onednn_typical_n(const cvy_node *node)
{
    const cvy_batch batch = cvy_node_batch(node);
    return CVY_MAX(1, (batch.global_n + batch.nranks - 1) / batch.nranks);
}

cvy_status cvy_onednn_choose_weight(const cvy_onednn_problem *problem, int64_t n, cvy_layout *out)
{
    cvy_onednn_call *call = NULL;
    cvy_onednn_problem p = *problem;
    p.tensor[CVY_ONEDNN_SRC].dim[0] = p.tensor[CVY_ONEDNN_DST].dim[0] = n;
    p.tensor[CVY_ONEDNN_WEIGHT].any = 1;
    CVY_TRY(cvy_onednn_describe(&p, &call));
    const cvy_status status = cvy_onednn_layout(call, CVY_ONEDNN_WEIGHT, out);
    cvy_onednn_destroy(call);
    return status;
}

cvy_status cvy_onednn_check_dtype(const cvy_node *node)
{
    const cvy_dtype dtype = node->src[0]->dtype;
    CVY_CHECK(dtype == CVY_DTYPE_F32 || dtype == CVY_DTYPE_BF16, CVY_NOT_APPLICABLE,
              "oneDNN computes in f32 and bf16; the source is %s", cvy_dtype_text(dtype));
    CVY_CHECK(dtype == CVY_DTYPE_F32 || cvy_onednn_has_bf16(), CVY_NOT_APPLICABLE,
              "oneDNN needs AVX512_BF16 for bf16; this CPU does not have it, or ONEDNN_MAX_CPU_ISA hides it");
    return CVY_OK;
}

void cvy_onednn_set_dtypes(cvy_onednn_problem *problem, cvy_dtype dtype)
{
    for (int role = 0; role < CVY_ONEDNN_ROLES; role++)
        problem->tensor[role].dtype = dtype;
    problem->tensor[CVY_ONEDNN_BIAS].dtype = CVY_DTYPE_F32;
    if (problem->pass == CVY_LAYER_GRAD_WEIGHT)
        problem->tensor[CVY_ONEDNN_WEIGHT].dtype = CVY_DTYPE_F32;
}

cvy_status cvy_onednn_layer_create(const cvy_onednn_problem *problem, void **state_out)
{
    struct layer *s = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    CVY_TRY_OUT(cvy_onednn_describe(problem, &s->call));
    CVY_TRY_OUT(cvy_onednn_ready(s->call));
    for (int role = 0; role < CVY_ONEDNN_ROLES; role++)
        s->place[role] = problem->tensor[role].ndim ? place[problem->pass][role] : NOWHERE;
    *state_out = s;
    return CVY_OK;
out:
    cvy_onednn_layer_destroy(s);
    return status;
}

cvy_status cvy_onednn_layer_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct layer *s = state;
    void *arg[CVY_ONEDNN_ROLES] = {NULL};
    for (int role = 0; role < CVY_ONEDNN_ROLES; role++)
        if (s->place[role] != NOWHERE)
            arg[role] = s->place[role] < 0 ? dst[~s->place[role]] : src[s->place[role]];
    return cvy_onednn_run(s->call, arg, scratch);
}

void cvy_onednn_layer_destroy(void *state)
{
    struct layer *s = state;
    if (s)
        cvy_onednn_destroy(s->call);
    cvy_mem_free(&s);
}
