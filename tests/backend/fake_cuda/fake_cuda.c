/*
 * fake_cuda.c: libcuda.so.1 and libnvrtc without a GPU, for tests: the functions that convoy calls, over the emulated
 * device (backend/emulated/emulated.h). So the backend cuda runs whole jobs, with late and interleaved work.
 *
 * The machine code that the compiler gives is the name of the source and the dtype of its activations: the kernels were
 * compiled by the compiler of the host. FAKE_CUDA in the environment makes calls fail (fake_faults.h).
 * "gpu_pool=6" makes the compilation of this source fail; with 7 the compiler lacks its own files. "driver=12040" is
 * the version of the driver, and "compiles_for=100" the only architecture that NVRTC knows besides sm_80. A copy of
 * this library that is named libnvrtc.so.12 is NVRTC 12.9, which knows sm_80 and sm_90.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#include "backend/emulated/emulated.h"
#include "backend/emulated/emulated_kernel.h"
#include "backend/fake_cuda/fake_cuda.h"
#include "backend/fake_cuda/fake_faults.h"

#define EXPORTED __attribute__((visibility("default")))
enum { INVALID = 1, NO_CONTEXT = 201, STREAMS = 16, LAUNCH_FAILED = 719, COMPILE_FAILED = 6, BUILTINS_MISSING = 7 };

struct CUctx_st {
    cvy_space space;
    int retained, nstream;
};
struct CUstream_st {
    struct CUctx_st *context;
    cvy_lane lane;
};
struct CUevent_st {
    struct CUctx_st *context;
    cvy_mark *mark;
};
struct CUmod_st {
    struct CUctx_st *context;
    const struct cvy_emulated_module *of;
    void *handle; /* of the emulated driver */
};
struct CUfunc_st {
    void *handle;
    const size_t *bytes; /* of each argument; 0: a pointer */
    int nargs;
    struct CUfunc_st *next;
};
/* The executable takes the recording over. */
struct CUgraph_st {
    struct CUctx_st *context;
    cvy_recording *recording;
    int parts;
};
struct CUgraphExec_st {
    struct CUctx_st *context;
    cvy_recording *recording;
};
struct _nvrtcProgram {
    char name[64];
    char code[128], log[600];
};

static struct CUctx_st contexts[64];
static _Thread_local struct CUctx_st *current;
static struct CUfunc_st *functions;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the emulated device is for one thread */

/* ---- injected faults ---- */

static int fails(const char *name)
{
    return fake_fails("FAKE_CUDA", name);
}

/* The driver refuses these calls in a thread that has no current context. */
#define MAY_FAIL_IN_CONTEXT()                                                                                          \
    do {                                                                                                               \
        MAY_FAIL();                                                                                                    \
        if (!current)                                                                                                  \
            return NO_CONTEXT;                                                                                         \
    } while (0)

static cvy_cu_result result_of(cvy_status status)
{
    return status == CVY_OK ? 0 : status == CVY_E_MEMORY ? CVY_CU_OUT_OF_MEMORY : LAUNCH_FAILED;
}

static atomic_long calls; /* of the host; fake_cuda_go_on() leaves a host that calls alone */

#define LOCKED(call)                                                                                                   \
    ({                                                                                                                 \
        atomic_fetch_add(&calls, 1);                                                                                   \
        pthread_mutex_lock(&lock);                                                                                     \
        const cvy_status locked_ = (call);                                                                             \
        pthread_mutex_unlock(&lock);                                                                                   \
        result_of(locked_);                                                                                            \
    })

/* ---- the driver ---- */

EXPORTED cvy_cu_result cuInit(unsigned flags)
{
    MAY_FAIL();
    return flags ? INVALID : 0;
}

EXPORTED cvy_cu_result cuDriverGetVersion(int *version)
{
    const int given = fails("driver");
    *version = given ? given : 13000;
    return 0;
}

static const struct {
    cvy_cu_result result;
    const char *name, *text;
} errors[] = {
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {NO_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver / cuda driver combination"},
};

EXPORTED cvy_cu_result cuGetErrorName(cvy_cu_result result, const char **name)
{
    *name = NULL;
    for (int i = 0; i < CVY_COUNT(errors); i++)
        if (errors[i].result == result)
            *name = errors[i].name;
    return *name ? 0 : INVALID;
}

EXPORTED cvy_cu_result cuGetErrorString(cvy_cu_result result, const char **text)
{
    *text = NULL;
    for (int i = 0; i < CVY_COUNT(errors); i++)
        if (errors[i].result == result)
            *text = errors[i].text;
    return *text ? 0 : INVALID;
}

EXPORTED cvy_cu_result cuDeviceGetCount(int *count)
{
    char why[200];
    MAY_FAIL();
    *count = cvy_emulated_backend.count ? cvy_emulated_backend.count(why, sizeof why) : 1;
    return 0;
}

EXPORTED cvy_cu_result cuDeviceGet(cvy_cu_device *device, int number)
{
    *device = number;
    return number >= 0 && number < CVY_COUNT(contexts) ? 0 : INVALID;
}

EXPORTED cvy_cu_result cuDeviceGetName(char *name, int room, cvy_cu_device device)
{
    snprintf(name, (size_t)room, "fake CUDA device %d", device);
    return 0;
}

EXPORTED cvy_cu_result cuDeviceGetUuid_v2(cvy_cu_uuid *uuid, cvy_cu_device device)
{
    memset(uuid, device + 1, sizeof *uuid);
    return 0;
}

EXPORTED cvy_cu_result cuDeviceGetAttribute(int *value, int attribute, cvy_cu_device device)
{
    (void)device;
    *value = attribute == CVY_CU_MAJOR ? 9 : attribute == CVY_CU_MINOR ? 0 : 132;
    return 0;
}

EXPORTED cvy_cu_result cuDevicePrimaryCtxRetain(cvy_cu_context *context, cvy_cu_device device)
{
    MAY_FAIL();
    struct CUctx_st *c = &contexts[device];
    const cvy_place place = {.device = device};
    if (c->retained++ == 0 && LOCKED(cvy_space_open_def(&cvy_emulated_backend, &place, &c->space)) != 0)
        return CVY_CU_NO_DEVICE;
    *context = c;
    return 0;
}

EXPORTED cvy_cu_result cuDevicePrimaryCtxRelease_v2(cvy_cu_device device)
{
    struct CUctx_st *c = &contexts[device];
    if (--c->retained == 0) {
        while (functions) {
            struct CUfunc_st *function = functions;
            functions = function->next;
            free(function);
        }
        cvy_space_close(&c->space);
        c->nstream = 0;
    }
    return 0;
}

EXPORTED cvy_cu_result cuCtxSetCurrent(cvy_cu_context context)
{
    current = context;
    return 0;
}

EXPORTED cvy_cu_result cuMemGetInfo_v2(size_t *left, size_t *all)
{
    cvy_device device;
    if (!current)
        return INVALID;
    cvy_space_about(&current->space, &device);
    *left = (size_t)device.bytes_left;
    *all = (size_t)device.bytes;
    return 0;
}

EXPORTED cvy_cu_result cuDeviceTotalMem_v2(size_t *bytes, cvy_cu_device device)
{
    (void)device;
    *bytes = cvy_emulated_setup_now.memory > 0 ? (size_t)cvy_emulated_setup_now.memory : (size_t)16 << 30;
    return 0;
}

/* ---- memory: the emulated device wants to know the size of what is freed ---- */

static struct size {
    uint64_t at;
    size_t bytes;
    struct size *next;
} * sizes;

static void note_size(uint64_t at, size_t bytes)
{
    struct size *size = malloc(sizeof *size);
    if (!size)
        abort();
    pthread_mutex_lock(&lock);
    *size = (struct size){at, bytes, sizes};
    sizes = size;
    pthread_mutex_unlock(&lock);
}

/* Forgets an address, under the lock, and returns its size; 0: it is not known. */
static size_t take_size(uint64_t at)
{
    for (struct size **link = &sizes; *link; link = &(*link)->next)
        if ((*link)->at == at) {
            struct size *size = *link;
            const size_t bytes = size->bytes;
            *link = size->next;
            free(size);
            return bytes;
        }
    return 0;
}

EXPORTED cvy_cu_result cuMemAlloc_v2(cvy_cu_address *out, size_t bytes)
{
    void *data = NULL;
    MAY_FAIL();
    const cvy_cu_result result = current ? LOCKED(cvy_space_alloc(&current->space, bytes, 0, &data)) : INVALID;
    *out = (cvy_cu_address)(uintptr_t)data;
    if (result == 0)
        note_size(*out, bytes);
    return result;
}

/* The driver frees memory when the device has done its work. */
static void finish_all(void)
{
    for (int lane = 0; lane < CVY_LANES; lane++)
        (void)cvy_emulated_backend.finish(current->space.state, (cvy_lane)lane);
}

EXPORTED cvy_cu_result cuMemFree_v2(cvy_cu_address data)
{
    pthread_mutex_lock(&lock);
    const size_t bytes = current ? take_size(data) : 0;
    if (bytes)
        finish_all();
    if (bytes)
        cvy_emulated_backend.free(current->space.state, (void *)(uintptr_t)data, bytes);
    pthread_mutex_unlock(&lock);
    return bytes ? 0 : INVALID;
}

EXPORTED cvy_cu_result cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
    MAY_FAIL();
    (void)flags;
    const cvy_cu_result result = current ? LOCKED(cvy_space_alloc_host(&current->space, bytes, out)) : INVALID;
    if (result == 0)
        note_size((uint64_t)(uintptr_t)*out, bytes);
    return result;
}

EXPORTED cvy_cu_result cuMemFreeHost(void *data)
{
    pthread_mutex_lock(&lock);
    const size_t bytes = current ? take_size((uint64_t)(uintptr_t)data) : 0;
    if (bytes)
        finish_all();
    if (bytes)
        cvy_emulated_backend.free_host(current->space.state, data, bytes);
    pthread_mutex_unlock(&lock);
    return bytes ? 0 : INVALID;
}

EXPORTED cvy_cu_result cuMemcpyAsync(cvy_cu_address to, cvy_cu_address from, size_t bytes, cvy_cu_stream stream)
{
    MAY_FAIL_IN_CONTEXT();
    return LOCKED(cvy_space_copy(&stream->context->space, stream->lane, (void *)(uintptr_t)to,
                                 (const void *)(uintptr_t)from, bytes));
}

EXPORTED cvy_cu_result cuMemsetD8Async(cvy_cu_address data, unsigned char byte, size_t bytes, cvy_cu_stream stream)
{
    MAY_FAIL_IN_CONTEXT();
    return byte ? INVALID
                : LOCKED(cvy_space_zero(&stream->context->space, stream->lane, (void *)(uintptr_t)data, bytes));
}

/* ---- streams and events ---- */

/* The emulated device has three lanes; further streams share the last one. */
EXPORTED cvy_cu_result cuStreamCreate(cvy_cu_stream *out, unsigned flags)
{
    MAY_FAIL();
    (void)flags;
    struct CUstream_st *stream = current ? malloc(sizeof *stream) : NULL;
    if (!stream)
        return INVALID;
    *stream = (struct CUstream_st){current, (cvy_lane)CVY_MIN(current->nstream, CVY_LANES - 1)};
    current->nstream++;
    *out = stream;
    return 0;
}

EXPORTED cvy_cu_result cuStreamDestroy_v2(cvy_cu_stream stream)
{
    free(stream);
    return 0;
}

EXPORTED cvy_cu_result cuStreamSynchronize(cvy_cu_stream stream)
{
    MAY_FAIL_IN_CONTEXT();
    return LOCKED(cvy_emulated_backend.finish(stream->context->space.state, stream->lane));
}

EXPORTED cvy_cu_result cuStreamWaitEvent(cvy_cu_stream stream, cvy_cu_event event, unsigned flags)
{
    MAY_FAIL_IN_CONTEXT();
    (void)flags;
    return LOCKED(cvy_mark_await(&stream->context->space, stream->lane, event->mark));
}

EXPORTED cvy_cu_result cuEventCreate(cvy_cu_event *out, unsigned flags)
{
    MAY_FAIL();
    (void)flags;
    struct CUevent_st *event = current ? malloc(sizeof *event) : NULL;
    if (!event)
        return INVALID;
    *event = (struct CUevent_st){current, NULL};
    *out = event;
    return LOCKED(cvy_mark_create(&current->space, &event->mark));
}

EXPORTED cvy_cu_result cuEventDestroy_v2(cvy_cu_event event)
{
    pthread_mutex_lock(&lock);
    cvy_mark_destroy(&event->context->space, &event->mark);
    pthread_mutex_unlock(&lock);
    free(event);
    return 0;
}

EXPORTED cvy_cu_result cuEventRecord(cvy_cu_event event, cvy_cu_stream stream)
{
    MAY_FAIL_IN_CONTEXT();
    return LOCKED(cvy_mark_put(&stream->context->space, stream->lane, event->mark));
}

EXPORTED cvy_cu_result cuEventQuery(cvy_cu_event event)
{
    int reached = 0;
    MAY_FAIL_IN_CONTEXT();
    const cvy_cu_result result = LOCKED(cvy_mark_reached(&event->context->space, event->mark, 0, &reached));
    return result == 0 && !reached ? CVY_CU_NOT_READY : result;
}

EXPORTED cvy_cu_result cuEventSynchronize(cvy_cu_event event)
{
    int reached = 0;
    MAY_FAIL_IN_CONTEXT();
    return LOCKED(cvy_mark_reached(&event->context->space, event->mark, 1, &reached));
}

EXPORTED cvy_cu_result cuEventElapsedTime(float *ms, cvy_cu_event from, cvy_cu_event to)
{
    double s = 0;
    const cvy_cu_result result = LOCKED(cvy_mark_elapsed(&from->context->space, from->mark, to->mark, &s));
    *ms = (float)(1e3 * s);
    return result;
}

/* ---- for other fakes ---- */

EXPORTED cvy_cu_result fake_cuda_enqueue(cvy_cu_stream stream, int (*call)(void *arg), void *arg)
{
    return LOCKED(cvy_emulated_enqueue(stream->context->space.state, stream->lane, call, arg));
}

EXPORTED void *fake_cuda_memory(const void *at)
{
    return cvy_emulated_memory(at);
}

EXPORTED void fake_cuda_go_on(void)
{
    static atomic_long seen;
    const long now = atomic_load(&calls);
    if (atomic_exchange(&seen, now) != now)
        return;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < CVY_COUNT(contexts); i++)
        if (contexts[i].retained > 0 && contexts[i].space.state)
            cvy_emulated_go_on(contexts[i].space.state);
    pthread_mutex_unlock(&lock);
}

/* ---- modules: their machine code is "EMULATED source dtype" ---- */

static const struct cvy_emulated_module *find_module(const char *source, cvy_dtype act)
{
    for (int i = 0; cvy_emulated_modules[i]; i++)
        if (strcmp(cvy_emulated_modules[i]->source, source) == 0 && cvy_emulated_modules[i]->act == act)
            return cvy_emulated_modules[i];
    return NULL;
}

EXPORTED cvy_cu_result cuModuleLoadData(cvy_cu_module *out, const void *code)
{
    char source[64], dtype[8];
    MAY_FAIL();
    if (!current || sscanf(code, "EMULATED %63s %7s", source, dtype) != 2)
        return INVALID;
    const cvy_dtype act = strcmp(dtype, "bf16") == 0 ? CVY_DTYPE_BF16 : CVY_DTYPE_F32;
    const cvy_gpu_source from = {.name = source, .text = ""};
    const struct cvy_emulated_module *of = find_module(source, act);
    struct CUmod_st *module = of ? malloc(sizeof *module) : NULL;
    if (!module)
        return INVALID;
    *module = (struct CUmod_st){.context = current, .of = of};
    *out = module;
    return LOCKED(cvy_emulated_backend.gpu->build(current->space.state, &from, act, &module->handle));
}

EXPORTED cvy_cu_result cuModuleUnload(cvy_cu_module module)
{
    pthread_mutex_lock(&lock);
    cvy_emulated_backend.gpu->unbuild(module->context->space.state, module->handle);
    pthread_mutex_unlock(&lock);
    free(module);
    return 0;
}

static const struct cvy_emulated_kernel *find_kernel(const struct cvy_emulated_module *of, const char *name)
{
    for (int k = 0; k < of->nkernel; k++)
        if (strcmp(of->kernels[k].name, name) == 0)
            return &of->kernels[k];
    return NULL;
}

EXPORTED cvy_cu_result cuModuleGetFunction(cvy_cu_function *out, cvy_cu_module module, const char *full)
{
    char name[128];
    snprintf(name, sizeof name, "%s", full);
    char *suffix = strrchr(name, '_');
    MAY_FAIL_IN_CONTEXT();
    if (!suffix)
        return INVALID;
    *suffix = 0;
    const struct cvy_emulated_kernel *kernel = find_kernel(module->of, name);
    struct CUfunc_st *function = kernel ? malloc(sizeof *function) : NULL;
    if (!function)
        return 500; /* CUDA_ERROR_NOT_FOUND */
    *function = (struct CUfunc_st){.bytes = kernel->bytes, .nargs = kernel->nargs, .next = functions};
    functions = function;
    *out = function;
    return LOCKED(
        cvy_emulated_backend.gpu->find(module->context->space.state, module->handle, name, &function->handle));
}

EXPORTED cvy_cu_result cuLaunchKernel(cvy_cu_function f, unsigned x, unsigned y, unsigned z, unsigned threads,
                                      unsigned threads_y, unsigned threads_z, unsigned shared, cvy_cu_stream stream,
                                      void **args, void **extra)
{
    cvy_gpu_arg list[64];
    const int grid[3] = {(int)x, (int)y, (int)z};
    MAY_FAIL_IN_CONTEXT();
    if (threads_y != 1 || threads_z != 1 || shared || extra || threads == 0 || threads > 256)
        return INVALID;
    for (int i = 0; i < f->nargs; i++)
        list[i] = (cvy_gpu_arg){args[i], f->bytes[i]};
    return LOCKED(cvy_emulated_backend.gpu->launch(stream->context->space.state, stream->lane, f->handle, grid,
                                                   (int)threads, list, f->nargs));
}

/* ---- graphs ---- */

EXPORTED cvy_cu_result cuStreamBeginCapture_v2(cvy_cu_stream stream, cvy_cu_capture mode)
{
    MAY_FAIL_IN_CONTEXT();
    if (mode != CVY_CU_CAPTURE_THREAD_LOCAL || stream->lane != CVY_LANE_COMPUTE)
        return INVALID;
    return LOCKED(cvy_emulated_backend.record_begin(stream->context->space.state));
}

static void destroy_recording(struct CUctx_st *context, cvy_recording *recording)
{
    pthread_mutex_lock(&lock);
    if (recording)
        cvy_emulated_backend.recording_destroy(context->space.state, recording);
    pthread_mutex_unlock(&lock);
}

/* The capture ends also if this fails. */
EXPORTED cvy_cu_result cuStreamEndCapture(cvy_cu_stream stream, cvy_cu_graph *out)
{
    const int error = fails(__func__);
    struct CUgraph_st *graph = calloc(1, sizeof *graph);
    *out = NULL;
    if (!current || !graph)
        return NO_CONTEXT;
    graph->context = stream->context;
    const cvy_cu_result result =
        LOCKED(cvy_emulated_backend.record_end(graph->context->space.state, "", &graph->recording, &graph->parts));
    if (!error && result == 0) {
        *out = graph;
        return 0;
    }
    destroy_recording(graph->context, graph->recording);
    free(graph);
    return error ? error : result;
}

EXPORTED cvy_cu_result cuGraphGetNodes(cvy_cu_graph graph, cvy_cu_node *nodes, size_t *n)
{
    MAY_FAIL();
    *n = (size_t)graph->parts;
    return nodes ? INVALID : 0;
}

EXPORTED cvy_cu_result cuGraphInstantiateWithFlags(cvy_cu_executable *out, cvy_cu_graph graph, unsigned long long flags)
{
    MAY_FAIL();
    struct CUgraphExec_st *executable = flags || !graph->recording ? NULL : malloc(sizeof *executable);
    if (!executable)
        return INVALID;
    *executable = (struct CUgraphExec_st){graph->context, graph->recording};
    graph->recording = NULL;
    *out = executable;
    return 0;
}

EXPORTED cvy_cu_result cuGraphLaunch(cvy_cu_executable executable, cvy_cu_stream stream)
{
    MAY_FAIL_IN_CONTEXT();
    return stream->lane == CVY_LANE_COMPUTE
               ? LOCKED(cvy_emulated_backend.replay(stream->context->space.state, executable->recording))
               : INVALID;
}

EXPORTED cvy_cu_result cuGraphDestroy(cvy_cu_graph graph)
{
    destroy_recording(graph->context, graph->recording);
    free(graph);
    return 0;
}

EXPORTED cvy_cu_result cuGraphExecDestroy(cvy_cu_executable executable)
{
    destroy_recording(executable->context, executable->recording);
    free(executable);
    return 0;
}

/* ---- the compiler ---- */

static int is_older(void)
{
    Dl_info info;
    return dladdr((const void *)&contexts, &info) && strstr(info.dli_fname, "libnvrtc.so.12");
}

EXPORTED cvy_cu_result nvrtcVersion(int *major, int *minor)
{
    *major = is_older() ? 12 : 13;
    *minor = is_older() ? 9 : 0;
    return 0;
}

EXPORTED cvy_cu_result nvrtcGetNumSupportedArchs(int *n)
{
    *n = 2;
    return 0;
}

EXPORTED cvy_cu_result nvrtcGetSupportedArchs(int *list)
{
    const int given = is_older() ? 0 : fails("compiles_for");
    list[0] = 80;
    list[1] = given ? given : 90;
    return 0;
}

EXPORTED cvy_cu_result nvrtcCreateProgram(cvy_nvrtc_program *out, const char *text, const char *name, int nheaders,
                                          const char *const *headers, const char *const *names)
{
    MAY_FAIL();
    (void)headers, (void)names;
    struct _nvrtcProgram *program = nheaders == 0 && text ? calloc(1, sizeof *program) : NULL;
    if (!program)
        return INVALID;
    snprintf(program->name, sizeof program->name, "%.*s", (int)strcspn(name, "."), name);
    *out = program;
    return 0;
}

EXPORTED cvy_cu_result nvrtcDestroyProgram(cvy_nvrtc_program *program)
{
    free(*program);
    *program = NULL;
    return 0;
}

EXPORTED cvy_cu_result nvrtcCompileProgram(cvy_nvrtc_program program, int noptions, const char *const *options)
{
    int is_bf16 = 0, has_architecture = 0;
    for (int i = 0; i < noptions; i++) {
        is_bf16 |= strcmp(options[i], "-DBF16=1") == 0;
        has_architecture |= strcmp(options[i], "-arch=sm_90") == 0;
    }
    const int error = fails(program->name);
    const char *refused = cvy_emulated_setup_now.no_build;
    if (error || !has_architecture || (refused && strcmp(refused, program->name) == 0)) {
        if (error == BUILTINS_MISSING)
            snprintf(program->log, sizeof program->log, "nvrtc: error: failed to open libnvrtc-builtins.so.13.0.\n");
        else
            snprintf(program->log, sizeof program->log, "%s.cu(7): error: %s\n1 error detected\n", program->name,
                     refused ? cvy_emulated_setup_now.words : "identifier is undefined");
        return error ? error : COMPILE_FAILED;
    }
    snprintf(program->code, sizeof program->code, "EMULATED %s %s", program->name, is_bf16 ? "bf16" : "f32");
    return 0;
}

EXPORTED cvy_cu_result nvrtcGetProgramLogSize(cvy_nvrtc_program program, size_t *bytes)
{
    *bytes = strlen(program->log) + 1;
    return 0;
}

EXPORTED cvy_cu_result nvrtcGetProgramLog(cvy_nvrtc_program program, char *log)
{
    memcpy(log, program->log, strlen(program->log) + 1);
    return 0;
}

EXPORTED cvy_cu_result nvrtcGetCUBINSize(cvy_nvrtc_program program, size_t *bytes)
{
    *bytes = strlen(program->code) + 1;
    return 0;
}

EXPORTED cvy_cu_result nvrtcGetCUBIN(cvy_nvrtc_program program, char *code)
{
    memcpy(code, program->code, strlen(program->code) + 1);
    return 0;
}
