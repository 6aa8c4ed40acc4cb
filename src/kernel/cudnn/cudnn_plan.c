/*
 * cudnn_plan.c: cuDNN on a device, the choice of an engine, and its run.
 *
 * f32 means f32: engines that multiply on tensor cores round their operands to TF32, and are used for it only with
 * plan.tf32.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "backend/gpu/gpu_cuda.h"
#include "backend/gpu/gpu_vendor.h"
#include "kernel/cudnn/cudnn_graph.h"

enum { CONFIGURATIONS = 32, NOTES = 24 };

/* ---- devices ---- */

static void close_guest(void *state)
{
    cvy_cudnn_device *d = state;
    cvy_cudnn_device_close(&d);
}

static void start(cvy_cudnn_device *d, const cvy_cuda_space *s)
{
    const char *why = NULL;
    d->api = cvy_cudnn(&why);
    if (!d->api) {
        snprintf(d->why, sizeof d->why, "%s; convoy's own kernels are used instead", why);
        return;
    }
    cvy_cudnn_result result = d->api->cudnnCreate(&d->handle);
    if (result == 0)
        result = d->api->cudnnSetStream(d->handle, s->stream[CVY_LANE_COMPUTE]);
    if (result != 0)
        snprintf(d->why, sizeof d->why, "cuDNN does not start on CUDA device %d (%s); convoy's own kernels are used",
                 s->gpu.device.number, d->api->cudnnGetErrorString(result));
}

cvy_status cvy_cudnn_device_of(const cvy_space *space, cvy_cudnn_device **out)
{
    cvy_cuda_space *s = space->state;
    cvy_cuda_guest *guest = &s->guest[CVY_CUDA_GUEST_CUDNN];
    CVY_CU(s, cuCtxSetCurrent, s->context);
    if (!guest->state) {
        cvy_cudnn_device *d = NULL;
        CVY_TRY(cvy_mem_alloc(sizeof *d, &d));
        d->space = s;
        start(d, s);
        if (cvy_vendor_load(CVY_VENDOR_CUDNN)->library)
            snprintf(s->gpu.note, sizeof s->gpu.note, "%s", d->why);
        *guest = (cvy_cuda_guest){d, close_guest};
    }
    *out = guest->state;
    return (*out)->why[0] ? cvy_error_set(CVY_NOT_APPLICABLE, "%s", (*out)->why) : CVY_OK;
}

cvy_status cvy_cudnn_device_described(const char *json, cvy_cudnn_device **out)
{
    const char *why = NULL;
    cvy_cudnn_device *d = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *d, &d));
    d->api = cvy_cudnn(&why);
    cvy_cudnn_maker m = {.device = d, .status = d->api ? CVY_OK : cvy_error_set(CVY_NOT_APPLICABLE, "%s", why)};
    d->properties = cvy_cudnn_make(&m, CVY_CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    cvy_cudnn_set(&m, d->properties, CVY_CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CVY_CUDNN_TYPE_CHAR,
                  (int64_t)strlen(json), json);
    cvy_cudnn_finish(&m, d->properties);
    if (m.status == CVY_OK)
        *out = d;
    else
        cvy_cudnn_device_close(&d);
    return m.status;
}

void cvy_cudnn_device_close(cvy_cudnn_device **device)
{
    cvy_cudnn_device *d = *device;
    while (d && d->plans) {
        cvy_cudnn_plan *plan = d->plans;
        d->plans = plan->next;
        for (int i = 0; i < plan->nengine; i++)
            (void)d->api->cudnnBackendDestroyDescriptor(plan->engine[i].plan);
        cvy_mem_free(&plan);
    }
    if (d && d->properties)
        (void)d->api->cudnnBackendDestroyDescriptor(d->properties);
    if (d && d->handle)
        (void)d->api->cudnnDestroy(d->handle);
    cvy_mem_free(device);
}

/* ---- rules ---- */

static int has_note(const cvy_cudnn_device *d, cvy_cudnn_descriptor engine, cvy_cudnn_name name, cvy_cudnn_type type,
                    const int *wrong, int nwrong)
{
    int notes[NOTES] = {0};
    int64_t n = 0;
    if (d->api->cudnnBackendGetAttribute(engine, name, type, NOTES, &n, notes) != 0)
        return 0;
    for (int64_t i = 0; i < n && i < NOTES; i++)
        for (int k = 0; k < nwrong; k++)
            if (notes[i] == wrong[k])
                return 1;
    return 0;
}

static int is_allowed(const cvy_cudnn_device *d, const cvy_cudnn_problem *p, cvy_cudnn_descriptor engine)
{
    static const int always[] = {CVY_CUDNN_NUMERICAL_NOTE_WINOGRAD, CVY_CUDNN_NUMERICAL_NOTE_FFT,
                                 CVY_CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION},
                     f32[] = {CVY_CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CVY_CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS},
                     order[] = {CVY_CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};
    const cvy_cudnn_name name = CVY_CUDNN_ATTR_ENGINE_NUMERICAL_NOTE;
    const cvy_cudnn_type type = CVY_CUDNN_TYPE_NUMERICAL_NOTE;
    if (has_note(d, engine, name, type, always, CVY_COUNT(always)))
        return 0;
    if (p->dst.dtype == CVY_DTYPE_F32 && !p->tf32 && has_note(d, engine, name, type, f32, CVY_COUNT(f32)))
        return 0;
    return !p->deterministic || !has_note(d, engine, name, type, order, CVY_COUNT(order));
}

/* An engine that cuDNN compiles for the problem takes about a second when a job starts. */
static int is_compiled(const cvy_cudnn_device *d, cvy_cudnn_descriptor engine)
{
    static const int compiled[] = {CVY_CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION};
    return has_note(d, engine, CVY_CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CVY_CUDNN_TYPE_BEHAVIOR_NOTE, compiled, 1);
}

/* ---- the choice of engines ---- */

struct choice {
    cvy_cudnn_device *device;
    cvy_cudnn_plan *plan;
    int mode;      /* of the heuristics */
    int compiling; /* engines that are compiled are taken: there is no other one */
};

/* Whether a plan takes a further engine of this number: the first two come as the heuristics give them, and those
 * after them are other engines, because one engine comes with many settings that are about as fast. */
static int is_wanted(const cvy_cudnn_plan *plan, int64_t number)
{
    int known = 0;
    for (int i = 0; i < plan->nengine; i++)
        known |= plan->engine[i].number == number;
    return plan->nengine < 2 || (plan->nengine < CVY_CUDNN_ENGINES && !known);
}

static cvy_status finish_plan(const cvy_cudnn_device *d, cvy_cudnn_maker *m, cvy_cudnn_descriptor configuration,
                              cvy_cudnn_engine *out)
{
    int64_t n = 0;
    cvy_cudnn_descriptor plan = cvy_cudnn_make(m, CVY_CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    cvy_cudnn_set_descriptor(m, plan, CVY_CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
    if (d->handle)
        cvy_cudnn_set(m, plan, CVY_CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CVY_CUDNN_TYPE_HANDLE, 1, &d->handle);
    else
        cvy_cudnn_set_descriptor(m, plan, CVY_CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, d->properties);
    cvy_cudnn_finish(m, plan);
    out->plan = plan;
    if (m->status == CVY_OK)
        (void)d->api->cudnnBackendGetAttribute(plan, CVY_CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CVY_CUDNN_TYPE_INT64,
                                               1, &n, &out->workspace);
    return m->status;
}

/* Takes the engine of a configuration if nothing speaks against it. */
static void try_configuration(const struct choice *c, cvy_cudnn_descriptor configuration)
{
    const cvy_cudnn_device *d = c->device;
    cvy_cudnn_plan *plan = c->plan;
    cvy_cudnn_engine found = {0};
    cvy_cudnn_maker m = {.device = d};
    cvy_cudnn_descriptor engine = cvy_cudnn_make(&m, CVY_CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    int64_t n = 0;
    const int allowed = m.status == CVY_OK &&
                        d->api->cudnnBackendGetAttribute(configuration, CVY_CUDNN_ATTR_ENGINECFG_ENGINE,
                                                         CVY_CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine) == 0 &&
                        is_allowed(d, &plan->problem, engine);
    const int compiled = allowed && is_compiled(d, engine);
    plan->asked += !c->compiling;
    plan->allowed += allowed && !c->compiling;
    plan->compiled += compiled && !c->compiling;
    if (allowed && compiled == c->compiling) {
        (void)d->api->cudnnBackendGetAttribute(engine, CVY_CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CVY_CUDNN_TYPE_INT64, 1, &n,
                                               &found.number);
        if (is_wanted(plan, found.number) && finish_plan(d, &m, configuration, &found) == CVY_OK) {
            if (found.workspace <= CVY_CUDNN_WORKSPACE_MAX) {
                plan->engine[plan->nengine++] = found;
                m.n--; /* its plan stays; it was made last */
            } else if (plan->least == 0 || found.workspace < plan->least)
                plan->least = found.workspace;
        }
    }
    cvy_cudnn_maker_end(&m);
}

static cvy_status ask_heuristics(const struct choice *c, cvy_cudnn_descriptor graph)
{
    cvy_cudnn_maker m = {.device = c->device};
    cvy_cudnn_descriptor heuristics = cvy_cudnn_make(&m, CVY_CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR),
                         configurations[CONFIGURATIONS];
    int64_t n = 0;
    cvy_cudnn_set_descriptor(&m, heuristics, CVY_CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    cvy_cudnn_set(&m, heuristics, CVY_CUDNN_ATTR_ENGINEHEUR_MODE, CVY_CUDNN_TYPE_HEUR_MODE, 1, &c->mode);
    if (!c->device->handle)
        cvy_cudnn_set_descriptor(&m, heuristics, CVY_CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, c->device->properties);
    cvy_cudnn_finish(&m, heuristics);
    for (int i = 0; i < CONFIGURATIONS; i++)
        configurations[i] = cvy_cudnn_make(&m, CVY_CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (m.status == CVY_OK && c->device->api->cudnnBackendGetAttribute(heuristics, CVY_CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                                       CVY_CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                                                       CONFIGURATIONS, &n, configurations) == 0)
        for (int i = 0; i < n && i < CONFIGURATIONS; i++)
            try_configuration(c, configurations[i]);
    cvy_cudnn_maker_end(&m);
    return m.status == CVY_NOT_APPLICABLE ? CVY_OK : m.status;
}

/* The engines that are ready, in the order of the heuristics; only if there are none, those that are compiled. */
static cvy_status choose(cvy_cudnn_device *d, cvy_cudnn_plan *plan)
{
    static const int modes[] = {CVY_CUDNN_HEUR_MODE_A, CVY_CUDNN_HEUR_MODE_FALLBACK};
    cvy_cudnn_maker m = {.device = d};
    cvy_cudnn_descriptor graph = NULL;
    cvy_status status = cvy_cudnn_graph_make(&m, &plan->problem, &graph);
    for (int i = 0; i < 2 * CVY_COUNT(modes) && status == CVY_OK; i++) {
        const struct choice c = {d, plan, modes[i % CVY_COUNT(modes)], i >= CVY_COUNT(modes)};
        if (plan->nengine == 0 && plan->compiled >= c.compiling)
            status = ask_heuristics(&c, graph);
    }
    cvy_cudnn_maker_end(&m);
    return status;
}

/* Plans without an engine are kept, too: to ask for one may take as long. */
cvy_status cvy_cudnn_plan_get(cvy_cudnn_device *d, const cvy_cudnn_problem *p, const cvy_cudnn_plan **out)
{
    cvy_cudnn_plan *plan = d->plans;
    while (plan && memcmp(&plan->problem, p, sizeof *p) != 0)
        plan = plan->next;
    if (plan) {
        *out = plan;
        return CVY_OK;
    }
    CVY_TRY(cvy_mem_alloc(sizeof *plan, &plan));
    memcpy(&plan->problem, p, sizeof *p);
    const cvy_status status = choose(d, plan);
    plan->next = d->plans;
    *out = d->plans = plan;
    return status;
}

cvy_status cvy_cudnn_engine_get(cvy_cudnn_device *d, const cvy_cudnn_problem *p, int place,
                                const cvy_cudnn_engine **out)
{
    const cvy_cudnn_plan *plan = NULL;
    CVY_TRY(cvy_cudnn_plan_get(d, p, &plan));
    CVY_CHECK(plan->nengine > 0 || plan->least == 0, CVY_NOT_APPLICABLE,
              "cuDNN needs %.0f MB of workspace for this problem, of at most %d MB", 1e-6 * (double)plan->least,
              CVY_CUDNN_WORKSPACE_MAX / 1000000);
    CVY_CHECK(plan->asked > 0, CVY_NOT_APPLICABLE, "cuDNN has no engine for this problem");
    CVY_CHECK(plan->nengine > 0, CVY_NOT_APPLICABLE, "of the %d engines that cuDNN gives for this problem, none %s",
              plan->asked, plan->allowed ? "can be planned" : "keeps to the rules of the plan");
    CVY_CHECK(place < plan->nengine, CVY_NOT_APPLICABLE, "cuDNN gives %d engine%s for this problem", plan->nengine,
              plan->nengine == 1 ? "" : "s");
    *out = &plan->engine[place];
    return CVY_OK;
}

/* ---- runs ---- */

/* A pack of pointers cannot be changed, so there is a new one if a pointer is not what it was. */
static cvy_status make_pack(cvy_cudnn_call *call, const cvy_cudnn_data *data)
{
    static const int64_t ids[] = {CVY_CUDNN_ID_SRC, CVY_CUDNN_ID_WEIGHT, CVY_CUDNN_ID_DST, CVY_CUDNN_ID_BIAS};
    const void *const tensors[] = {data->src, data->weight, data->dst, data->bias};
    const int64_t n = CVY_COUNT(ids) - !call->bias;
    cvy_cudnn_maker m = {.device = call->device};
    cvy_cudnn_call_end(call);
    cvy_cudnn_descriptor pack = cvy_cudnn_make(&m, CVY_CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    cvy_cudnn_set(&m, pack, CVY_CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CVY_CUDNN_TYPE_INT64, n, ids);
    cvy_cudnn_set(&m, pack, CVY_CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CVY_CUDNN_TYPE_VOID_PTR, n, tensors);
    cvy_cudnn_set(&m, pack, CVY_CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CVY_CUDNN_TYPE_VOID_PTR, 1, &data->workspace);
    cvy_cudnn_finish(&m, pack);
    if (m.status != CVY_OK) {
        cvy_cudnn_maker_end(&m);
        return CVY_E_UNSUPPORTED;
    }
    call->pack = pack;
    call->data = *data;
    return CVY_OK;
}

cvy_status cvy_cudnn_run(cvy_cudnn_call *call, const cvy_cudnn_data *data)
{
    const cvy_cudnn_api *api = call->device->api;
    CVY_CU(call->device->space, cuCtxSetCurrent, call->device->space->context); /* this may be another thread */
    if (!call->pack || memcmp(data, &call->data, sizeof *data) != 0)
        CVY_TRY(make_pack(call, data));
    const cvy_cudnn_result result = api->cudnnBackendExecute(call->device->handle, call->engine->plan, call->pack);
    if (result == 0)
        return CVY_OK;
    char text[300] = "";
    api->cudnnGetLastErrorString(text, sizeof text);
    return cvy_error_set(CVY_E_UNSUPPORTED, "engine %lld of cuDNN fails with %s (%d)%s%s",
                         (long long)call->engine->number, api->cudnnGetErrorString(result), result, text[0] ? ": " : "",
                         text);
}

void cvy_cudnn_call_end(cvy_cudnn_call *call)
{
    if (call->pack)
        (void)call->device->api->cudnnBackendDestroyDescriptor(call->pack);
    call->pack = NULL;
}
