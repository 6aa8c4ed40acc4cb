/*
 * onednn_api.c: implements onednn_api.h with oneDNN's C API: calls from the description to the run.
 *
 * Each call owns its engine and stream (cheap on a CPU), so nothing is shared and nothing is global. oneDNN takes the
 * team size from the calling thread's OpenMP setting. It is restored after each use, so a program that calls this
 * library keeps its own setting. onednn_desc.c makes oneDNN's descriptors of a problem.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/onednn/onednn_desc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_hash.h"
#include "base/base_mem.h"
#include "base/machine/base_isa.h"
#include "base/machine/base_team.h"

struct cvy_onednn_call {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    dnnl_memory_t memory[CVY_ONEDNN_ROLES + 1]; /* by role; the last one is the scratchpad */
    void *bound[CVY_ONEDNN_ROLES + 1];          /* the data to which each memory object points now */
    dnnl_exec_arg_t arg[CVY_ONEDNN_ROLES + 1];
    int narg, threads;
    cvy_onednn_family family;
    cvy_layer_pass pass;
    int present[CVY_ONEDNN_ROLES];
    int ndim[CVY_ONEDNN_ROLES];
    int64_t dim[CVY_ONEDNN_ROLES][CVY_ONEDNN_NDIM_MAX];
    cvy_dtype dtype[CVY_ONEDNN_ROLES];
};

/* ---- instruction sets ---- */

/* Limits oneDNN 2.6 to vector instructions if CPUID does not describe the tiles, as in some virtual machines. oneDNN
 * reads their geometry from CPUID; without it, it would configure none and crash with an illegal instruction. oneDNN
 * fixes its instruction sets at the first use or query in the process, so this function is called before each. A
 * setting of the user in the environment has priority. */
static void limit_isa_without_tiles(void)
{
    if (!cvy_isa_describes_amx() && cvy_isa_may_use(CVY_ISA_AMX_BF16) && !getenv("ONEDNN_MAX_CPU_ISA") &&
        !getenv("DNNL_MAX_CPU_ISA"))
        dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core_bf16);
}

static int may_use(dnnl_cpu_isa_t isa)
{
    limit_isa_without_tiles();
    return ((int)dnnl_get_effective_cpu_isa() & (int)isa) == (int)isa;
}

int cvy_onednn_has_bf16(void)
{
    return may_use(dnnl_cpu_isa_avx512_core_bf16);
}

/* Whether oneDNN would still use tiles, because its instruction sets were fixed earlier. */
static int tiles_would_crash(void)
{
    return !cvy_isa_describes_amx() && may_use(dnnl_cpu_isa_avx512_core_amx);
}

/* ---- information about the library ---- */

/* The newest instruction sets that oneDNN uses. Those that only one of oneDNN 2 and 3 knows have no name here, and
 * count as the next older ones. */
static const char *isa_name(void)
{
    static const struct {
        dnnl_cpu_isa_t isa;
        const char *name;
    } sets[] = {{dnnl_cpu_isa_avx512_core_amx, "AMX"},
                {dnnl_cpu_isa_avx512_core_bf16, "AVX-512 with bf16"},
                {dnnl_cpu_isa_avx512_core_vnni, "AVX-512 with VNNI"},
                {dnnl_cpu_isa_avx512_core, "AVX-512"},
                {dnnl_cpu_isa_avx2_vnni, "AVX2 with VNNI"},
                {dnnl_cpu_isa_avx2, "AVX2"},
                {dnnl_cpu_isa_avx, "AVX"},
                {dnnl_cpu_isa_sse41, "SSE4.1"}};
    for (int i = 0; i < CVY_COUNT(sets); i++)
        if (may_use(sets[i].isa))
            return sets[i].name;
    return "plain C";
}

void cvy_onednn_library(char *text, size_t room)
{
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, room, "oneDNN %d.%d.%d (%s)", v->major, v->minor, v->patch, isa_name());
}

/* ---- asking for an implementation ---- */

static cvy_status ask(const cvy_onednn_problem *p, cvy_onednn_call *c)
{
    TRY_DNNL(dnnl_engine_create(&c->engine, dnnl_cpu, 0), "an engine");
    TRY_DNNL(dnnl_stream_create(&c->stream, c->engine, dnnl_stream_default_flags), "a stream");
    return cvy_onednn_problem_desc(p, c->engine, &c->desc);
}

cvy_status cvy_onednn_describe(const cvy_onednn_problem *problem, cvy_onednn_call **out)
{
    cvy_onednn_call *c = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *c, &c));
    c->threads = problem->threads;
    c->family = problem->family;
    c->pass = problem->pass;
    for (int i = 0; i < CVY_ONEDNN_ROLES; i++) {
        c->present[i] = problem->tensor[i].ndim > 0;
        c->ndim[i] = problem->tensor[i].ndim;
        c->dtype[i] = problem->tensor[i].dtype;
        memcpy(c->dim[i], problem->tensor[i].dim, sizeof c->dim[i]);
    }
    limit_isa_without_tiles();
    cvy_team before;
    cvy_status status = cvy_team_enter(c->threads, &before);
    if (status == CVY_OK) {
        status = ask(problem, c);
        cvy_team_leave(&before);
    }
    if (status == CVY_OK && problem->family != CVY_ONEDNN_REORDER && strstr(cvy_onednn_implementation(c), "ref"))
        status = cvy_error_set(CVY_NOT_APPLICABLE, "oneDNN has only a reference implementation for %s",
                               cvy_onednn_problem_text(problem));
    if (status == CVY_OK && strstr(cvy_onednn_implementation(c), "amx") && tiles_would_crash())
        status = cvy_error_set(CVY_NOT_APPLICABLE, "oneDNN would use AMX tiles for %s, but CPUID hides their geometry",
                               cvy_onednn_problem_text(problem));
    if (status != CVY_OK) {
        cvy_onednn_destroy(c);
        return status;
    }
    *out = c;
    return CVY_OK;
}

/* ---- properties of the implementation ---- */

static cvy_onednn_md role_md(const cvy_onednn_call *c, int role)
{
    static const dnnl_query_t plain[] = {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_weights_md,
                                         dnnl_query_dst_md};
    static const dnnl_query_t diff[] = {dnnl_query_diff_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_weights_md,
                                        dnnl_query_diff_dst_md};
    const int is_diff = role == CVY_ONEDNN_DST   ? c->pass != CVY_LAYER_FORWARD
                        : role == CVY_ONEDNN_SRC ? c->pass == CVY_LAYER_GRAD_SRC
                                                 : c->pass == CVY_LAYER_GRAD_WEIGHT;
    return dnnl_primitive_desc_query_md(c->desc, is_diff ? diff[role] : plain[role], role == CVY_ONEDNN_BIAS ? 1 : 0);
}

cvy_status cvy_onednn_layout(const cvy_onednn_call *call, int role, cvy_layout *out)
{
    if (cvy_onednn_md_layout(role_md(call, role), call->ndim[role], call->dim[role], call->dtype[role], out))
        return CVY_OK;
    return cvy_error_set(CVY_NOT_APPLICABLE, "oneDNN's %s needs a layout that has no format tag",
                         cvy_onednn_implementation(call));
}

size_t cvy_onednn_scratch_bytes(const cvy_onednn_call *call)
{
    cvy_onednn_md md = dnnl_primitive_desc_query_md(call->desc, dnnl_query_scratchpad_md, 0);
    return md ? dnnl_memory_desc_get_size(md) : 0;
}

const char *cvy_onednn_implementation(const cvy_onednn_call *call)
{
    const char *text = NULL;
    return dnnl_primitive_desc_query(call->desc, dnnl_query_impl_info_str, 0, (void *)&text) == dnnl_success && text
               ? text
               : "";
}

uint64_t cvy_onednn_algorithm_id(const cvy_onednn_call *call)
{
    const char *name = cvy_onednn_implementation(call);
    const uint64_t id = cvy_hash(name, strlen(name));
    /* oneDNN's matrix product may divide its sums among the threads: it is another algorithm for each number of them.
     * Processors without AVX-512 use it for convolutions, too. */
    return strstr(name, "gemm") && !strstr(name, "brg") ? id + (uint64_t)call->threads : id;
}

/* ---- running ---- */

static int exec_arg(const cvy_onednn_call *c, int role)
{
    static const int plain[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST};
    static const int diff[] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_BIAS, DNNL_ARG_DIFF_DST};
    switch (role) {
    case CVY_ONEDNN_DST: return c->pass != CVY_LAYER_FORWARD ? diff[role] : plain[role];
    case CVY_ONEDNN_SRC: return c->pass == CVY_LAYER_GRAD_SRC ? diff[role] : plain[role];
    default: return c->pass == CVY_LAYER_GRAD_WEIGHT ? diff[role] : plain[role];
    }
}

static cvy_status add_memory(cvy_onednn_call *c, int slot, cvy_onednn_md md, int arg)
{
    TRY_DNNL(dnnl_memory_create(&c->memory[slot], md, c->engine, DNNL_MEMORY_NONE), "a memory object");
    c->arg[c->narg++] = (dnnl_exec_arg_t){.arg = arg, .memory = c->memory[slot]};
    return CVY_OK;
}

/* The primitive cache of version 2.6 sometimes returns a primitive whose code has been freed: one in twenty runs of a
 * program that made the same reorder twice crashed. So the cache is emptied and not used. If the calling program uses
 * oneDNN too, it only has to fill the cache again. */
static dnnl_status_t create_primitive(cvy_onednn_call *call)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_primitive_create(&call->primitive, call->desc);
#else
    int capacity = 0;
    dnnl_get_primitive_cache_capacity(&capacity);
    dnnl_set_primitive_cache_capacity(0);
    const dnnl_status_t status = dnnl_primitive_create(&call->primitive, call->desc);
    dnnl_set_primitive_cache_capacity(capacity);
    return status;
#endif
}

cvy_status cvy_onednn_ready(cvy_onednn_call *call)
{
    cvy_team before;
    CVY_TRY(cvy_team_enter(call->threads, &before));
    const cvy_status status = cvy_onednn_answer(create_primitive(call), cvy_onednn_implementation(call));
    cvy_team_leave(&before);
    CVY_TRY(status);
    for (int i = 0; i < CVY_ONEDNN_ROLES; i++)
        if (call->present[i] && (i != CVY_ONEDNN_BIAS || call->pass != CVY_LAYER_GRAD_SRC))
            CVY_TRY(add_memory(call, i, role_md(call, i), exec_arg(call, i)));
    if (cvy_onednn_scratch_bytes(call) > 0)
        CVY_TRY(add_memory(call, CVY_ONEDNN_ROLES,
                           dnnl_primitive_desc_query_md(call->desc, dnnl_query_scratchpad_md, 0), DNNL_ARG_SCRATCHPAD));
    return CVY_OK;
}

/* Buffers have the same addresses in every step. A handle is set only when its address changes, because version 2
 * clears the padding each time. */
static dnnl_status_t bind(cvy_onednn_call *c, int slot, void *data)
{
    if (!c->memory[slot] || c->bound[slot] == data)
        return dnnl_success;
    c->bound[slot] = data;
    return dnnl_memory_set_data_handle(c->memory[slot], data);
}

cvy_status cvy_onednn_run(cvy_onednn_call *call, void *const arg[CVY_ONEDNN_ROLES], void *scratch)
{
    cvy_team before;
    CVY_TRY(cvy_team_enter(call->threads, &before));
    dnnl_status_t status = bind(call, CVY_ONEDNN_ROLES, scratch);
    for (int i = 0; i < CVY_ONEDNN_ROLES && status == dnnl_success; i++)
        status = bind(call, i, arg[i]);
    if (status == dnnl_success)
        status = dnnl_primitive_execute(call->primitive, call->stream, call->narg, call->arg);
    cvy_team_leave(&before);
    return status == dnnl_success ? CVY_OK
                                  : cvy_error_set(CVY_E_INTERNAL, "oneDNN: %s failed: %s",
                                                  cvy_onednn_implementation(call), dnnl_status2str(status));
}

void cvy_onednn_destroy(cvy_onednn_call *call)
{
    if (!call)
        return;
    for (int i = 0; i <= CVY_ONEDNN_ROLES; i++)
        if (call->memory[i])
            dnnl_memory_destroy(call->memory[i]);
    if (call->primitive)
        dnnl_primitive_destroy(call->primitive);
    if (call->desc)
        dnnl_primitive_desc_destroy(call->desc);
    if (call->stream)
        dnnl_stream_destroy(call->stream);
    if (call->engine)
        dnnl_engine_destroy(call->engine);
    cvy_mem_free(&call);
}

cvy_status cvy_onednn_reorder(const cvy_shape *shape, const cvy_memory_format *from, const cvy_memory_format *to,
                              int threads, cvy_onednn_call **out)
{
    CVY_CHECK((from->dtype != CVY_DTYPE_BF16 && to->dtype != CVY_DTYPE_BF16) || cvy_onednn_has_bf16(),
              CVY_NOT_APPLICABLE, "oneDNN's reorders of bf16 are slow on a CPU without AVX512_BF16");
    cvy_onednn_problem p = {.family = CVY_ONEDNN_REORDER, .threads = threads};
    cvy_onednn_tensor *src = &p.tensor[CVY_ONEDNN_SRC], *dst = &p.tensor[CVY_ONEDNN_DST];
    src->ndim = dst->ndim = shape->ndim;
    memcpy(src->dim, shape->dim, sizeof src->dim);
    memcpy(dst->dim, shape->dim, sizeof dst->dim);
    src->dtype = from->dtype;
    dst->dtype = to->dtype;
    src->layout = from->layout;
    dst->layout = to->layout;
    cvy_onednn_call *call = NULL;
    CVY_TRY(cvy_onednn_describe(&p, &call));
    const cvy_status status = cvy_onednn_ready(call);
    if (status != CVY_OK)
        cvy_onednn_destroy(call);
    else
        *out = call;
    return status;
}
