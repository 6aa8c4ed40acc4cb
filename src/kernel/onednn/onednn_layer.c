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
    int threads;
    int64_t upcast[CVY_ONEDNN_ROLES]; /* elements of an activation that is converted; 0: the role has no conversion */
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
    return CVY_OK;
}

cvy_dtype cvy_onednn_compute_dtype(const cvy_node *node)
{
    const cvy_dtype dtype = node->src[0]->dtype;
    return dtype == CVY_DTYPE_BF16 && !cvy_onednn_has_bf16() ? CVY_DTYPE_F32 : dtype;
}

void cvy_onednn_set_dtypes(cvy_onednn_problem *problem, cvy_dtype dtype)
{
    for (int role = 0; role < CVY_ONEDNN_ROLES; role++)
        problem->tensor[role].dtype = dtype;
    problem->tensor[CVY_ONEDNN_BIAS].dtype = CVY_DTYPE_F32;
    if (problem->pass == CVY_LAYER_GRAD_WEIGHT)
        problem->tensor[CVY_ONEDNN_WEIGHT].dtype = CVY_DTYPE_F32;
}

/* ---- bf16 activations on a CPU where oneDNN computes in f32 ---- */

/* Elements in memory of each activation that is converted. */
static cvy_status upcast_elems(const cvy_onednn_problem *p, int64_t elems[CVY_ONEDNN_ROLES])
{
    static const int roles[] = {CVY_ONEDNN_SRC, CVY_ONEDNN_DST};
    memset(elems, 0, CVY_ONEDNN_ROLES * sizeof *elems);
    for (int i = 0; p->upcast && i < CVY_COUNT(roles); i++) {
        const cvy_onednn_tensor *t = &p->tensor[roles[i]];
        cvy_shape shape = {.ndim = t->ndim};
        cvy_blocking b;
        memcpy(shape.dim, t->dim, (size_t)t->ndim * sizeof *t->dim);
        CVY_TRY(cvy_blocking_make(&t->layout, &shape, &b));
        elems[roles[i]] = b.elems;
    }
    return CVY_OK;
}

cvy_status cvy_onednn_ask_upcast(const cvy_onednn_problem *problem, cvy_kernel_ask *ask)
{
    int64_t elems[CVY_ONEDNN_ROLES];
    CVY_TRY(upcast_elems(problem, elems));
    for (int role = 0; role < CVY_ONEDNN_ROLES; role++)
        ask->scratch_bytes += (size_t)cvy_whole_lines(elems[role]) * sizeof(float);
    return CVY_OK;
}

/* Runs the call on f32 copies of the activations. They are at the start of the scratch memory; the call's own follows.
 */
static cvy_status run_upcast(const struct layer *s, void *const arg[CVY_ONEDNN_ROLES], float *scratch)
{
    void *converted[CVY_ONEDNN_ROLES];
    memcpy(converted, arg, sizeof converted);
    for (int role = 0; role < CVY_ONEDNN_ROLES; role++) {
        if (s->upcast[role] == 0)
            continue;
        converted[role] = scratch;
        scratch += cvy_whole_lines(s->upcast[role]);
        if (s->place[role] >= 0)
            cvy_bf16_widen(s->threads, arg[role], s->upcast[role], converted[role]);
    }
    CVY_TRY(cvy_onednn_run(s->call, converted, scratch));
    for (int role = 0; role < CVY_ONEDNN_ROLES; role++)
        if (s->place[role] < 0 && s->upcast[role] > 0)
            cvy_bf16_narrow(s->threads, converted[role], s->upcast[role], arg[role]);
    return CVY_OK;
}

/* ---- kernels ---- */

cvy_status cvy_onednn_layer_create(const cvy_onednn_problem *problem, void **state_out)
{
    struct layer *s = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    CVY_TRY_OUT(cvy_onednn_describe(problem, &s->call));
    CVY_TRY_OUT(cvy_onednn_ready(s->call));
    CVY_TRY_OUT(upcast_elems(problem, s->upcast));
    s->threads = problem->threads;
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
    return s->upcast[CVY_ONEDNN_SRC] > 0 ? run_upcast(s, arg, scratch) : cvy_onednn_run(s->call, arg, scratch);
}

void cvy_onednn_layer_destroy(void *state)
{
    struct layer *s = state;
    if (s)
        cvy_onednn_destroy(s->call);
    cvy_mem_free(&s);
}
