/*
 * fake_cudnn.c: libcudnn.so.9 without a GPU, for tests: it records the attributes of descriptors, checks that nothing
 * is missing, and runs a convolution by plain loops (backend/emulated/kernels/gpu_fake_cudnn.c) in the stream of the
 * handle, through the functions of libcuda, which is that of fake_cuda.c.
 *
 * Its heuristics give five engines. The first ones break a rule each: one rounds f32 to TF32, one is Winograd's, one
 * needs too much memory, one gives other bits in each run. They compute nonsense, so a test finds that they were chosen
 * where they must not be. An engine for a graph of several operations says that it is compiled.
 *
 * FAKE_CUDNN_FAST in the environment is the number of an engine, beside which the others take many times as long.
 * FAKE_CUDNN in the environment makes calls fail: "cudnnBackendExecute=8@20" as FAKE_CUDA of fake_cuda.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/gpu/gpu_cuda_api.h"
#include "kernel/cudnn/cudnn_graph.h"

#define EXPORTED __attribute__((visibility("default")))
typedef long long i64;

enum { BAD_PARAM = 2000, NOT_SUPPORTED = 3000, EXECUTION_FAILED = 5000, ATTRIBUTES = 24, LINE = 256 };
enum { SLOW = 30 }; /* how many times as long a slow engine takes */
enum { TF32, WINOGRAD, HUGE, RANDOM, GOOD, ENGINES };

struct attribute {
    cvy_cudnn_name name;
    cvy_cudnn_type type;
    int64_t n;
    void *values;
};

struct descriptor {
    cvy_cudnn_kind kind;
    int references, is_final, nattribute;
    int64_t engine;
    struct attribute attribute[ATTRIBUTES];
};

struct cudnnContext {
    struct CUstream_st *stream;
    cvy_cu_module module[2]; /* f32, bf16 */
    cvy_cu_function run[2];
};

/* As struct fake_conv of gpu_fake_cudnn.c. */
struct fake_conv {
    int pass, sum, widen, round, bias, relu, times;
    i64 src[5], weight[5], dst[5];
    i64 src_by[5], weight_by[5], dst_by[5];
    i64 stride[3], pad[3], dilation[3];
    i64 elems;
};

static struct {
    cvy_cu_result (*cuModuleLoadData)(cvy_cu_module *, const void *);
    cvy_cu_result (*cuModuleUnload)(cvy_cu_module);
    cvy_cu_result (*cuModuleGetFunction)(cvy_cu_function *, cvy_cu_module, const char *);
    cvy_cu_result (*cuMemsetD8Async)(cvy_cu_address, unsigned char, size_t, struct CUstream_st *);
    cvy_cu_result (*cuLaunchKernel)(cvy_cu_function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                    unsigned, struct CUstream_st *, void **, void **);
} cu;

static char last_error[300];

static int refuse(int code, const char *words)
{
    snprintf(last_error, sizeof last_error, "%s", words);
    return code;
}

static int fails(const char *function)
{
    static int calls[16];
    static char names[16][48];
    const char *text = getenv("FAKE_CUDNN"), *at = text ? strstr(text, function) : NULL;
    int i = 0, error = 0, from = 1;
    if (!at || at[strlen(function)] != '=')
        return 0;
    while (names[i][0] && strcmp(names[i], function) != 0)
        i++;
    snprintf(names[i], sizeof names[i], "%s", function);
    sscanf(at + strlen(function), "=%d@%d", &error, &from);
    return ++calls[i] >= from ? refuse(error, "a fault that the test wants") : 0;
}

#define MAY_FAIL()                                                                                                     \
    do {                                                                                                               \
        const int error_ = fails(__func__);                                                                            \
        if (error_)                                                                                                    \
            return error_;                                                                                             \
    } while (0)

/* ---- the library ---- */

EXPORTED size_t cudnnGetVersion(void)
{
    const char *given = getenv("FAKE_CUDNN_VERSION");
    return given ? (size_t)atoi(given) : 91900;
}

EXPORTED const char *cudnnGetErrorString(cvy_cudnn_result result)
{
    return result == 0               ? "CUDNN_STATUS_SUCCESS"
           : result == NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED"
                                     : "CUDNN_STATUS_FAULT";
}

EXPORTED void cudnnGetLastErrorString(char *text, size_t room)
{
    snprintf(text, room, "%s", last_error);
}

EXPORTED cvy_cudnn_result cudnnCreate(cvy_cudnn_handle *out)
{
    static const char *const code[] = {"EMULATED gpu_fake_cudnn f32", "EMULATED gpu_fake_cudnn bf16"},
                             *const name[] = {"fake_conv_f32", "fake_conv_bf16"};
    MAY_FAIL();
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    struct cudnnContext *c = driver ? calloc(1, sizeof *c) : NULL;
    if (!c)
        return refuse(BAD_PARAM, "there is no libcuda.so.1");
#define FIND(function)                                                                                                 \
    do {                                                                                                               \
        void *at = dlsym(driver, #function);                                                                           \
        memcpy(&cu.function, &at, sizeof at);                                                                          \
    } while (0)
    FIND(cuModuleLoadData);
    FIND(cuModuleUnload);
    FIND(cuModuleGetFunction);
    FIND(cuMemsetD8Async);
    FIND(cuLaunchKernel);
    for (int i = 0; i < 2; i++)
        if (cu.cuModuleLoadData(&c->module[i], code[i]) != 0 ||
            cu.cuModuleGetFunction(&c->run[i], c->module[i], name[i]) != 0)
            return refuse(BAD_PARAM, "no context of the fake libcuda is current");
    *out = c;
    return 0;
}

EXPORTED cvy_cudnn_result cudnnDestroy(cvy_cudnn_handle c)
{
    for (int i = 0; i < 2; i++)
        (void)cu.cuModuleUnload(c->module[i]);
    free(c);
    return 0;
}

EXPORTED cvy_cudnn_result cudnnSetStream(cvy_cudnn_handle c, struct CUstream_st *stream)
{
    MAY_FAIL();
    c->stream = stream;
    return 0;
}

/* ---- descriptors ---- */

static size_t bytes_of(cvy_cudnn_type type)
{
    return type == CVY_CUDNN_TYPE_INT64 || type == CVY_CUDNN_TYPE_HANDLE || type == CVY_CUDNN_TYPE_VOID_PTR ||
                   type == CVY_CUDNN_TYPE_BACKEND_DESCRIPTOR
               ? 8
           : type == CVY_CUDNN_TYPE_BOOLEAN || type == CVY_CUDNN_TYPE_CHAR ? 1
                                                                           : 4;
}

static const struct attribute *find(const struct descriptor *d, cvy_cudnn_name name)
{
    for (int i = 0; i < d->nattribute; i++)
        if (d->attribute[i].name == name)
            return &d->attribute[i];
    return NULL;
}

static struct descriptor *descriptor_of(const struct descriptor *d, cvy_cudnn_name name, int64_t i)
{
    const struct attribute *a = find(d, name);
    return a && i < a->n ? ((struct descriptor *const *)a->values)[i] : NULL;
}

static int64_t int_of(const struct descriptor *d, cvy_cudnn_name name, int64_t i)
{
    const struct attribute *a = find(d, name);
    return !a || i >= a->n ? 0 : bytes_of(a->type) == 8 ? ((const int64_t *)a->values)[i] : ((const int *)a->values)[i];
}

static void release(struct descriptor *d)
{
    if (!d || --d->references > 0)
        return;
    for (int i = 0; i < d->nattribute; i++) {
        const struct attribute *a = &d->attribute[i];
        for (int64_t k = 0; a->type == CVY_CUDNN_TYPE_BACKEND_DESCRIPTOR && k < a->n; k++)
            release(((struct descriptor **)a->values)[k]);
        free(a->values);
    }
    free(d);
}

EXPORTED cvy_cudnn_result cudnnBackendCreateDescriptor(cvy_cudnn_kind kind, cvy_cudnn_descriptor *out)
{
    MAY_FAIL();
    struct descriptor *d = calloc(1, sizeof *d);
    if (!d)
        return BAD_PARAM;
    d->kind = kind;
    d->references = 1;
    *out = d;
    return 0;
}

EXPORTED cvy_cudnn_result cudnnBackendDestroyDescriptor(cvy_cudnn_descriptor descriptor)
{
    release(descriptor);
    return 0;
}

EXPORTED cvy_cudnn_result cudnnBackendSetAttribute(cvy_cudnn_descriptor descriptor, cvy_cudnn_name name,
                                                   cvy_cudnn_type type, int64_t n, const void *values)
{
    struct descriptor *d = descriptor;
    MAY_FAIL();
    if (d->is_final || find(d, name) || d->nattribute == ATTRIBUTES)
        return refuse(BAD_PARAM, "a descriptor that is final, or an attribute that is set twice");
    struct attribute a = {name, type, n, malloc((size_t)(n + 1) * bytes_of(type))};
    memcpy(a.values, values, (size_t)n * bytes_of(type));
    for (int64_t i = 0; type == CVY_CUDNN_TYPE_BACKEND_DESCRIPTOR && i < n; i++) {
        struct descriptor *value = ((struct descriptor **)a.values)[i];
        if (!value || !value->is_final) {
            free(a.values);
            return refuse(BAD_PARAM, "a descriptor that is not final");
        }
        value->references++;
    }
    d->attribute[d->nattribute++] = a;
    return 0;
}

/* ---- what must be there ---- */

#define FORWARD(x) CVY_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_##x
#define BWD_DATA(x) CVY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_##x
#define BWD_FILTER(x) CVY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_##x

static const struct needs {
    cvy_cudnn_kind kind;
    cvy_cudnn_name name[7]; /* the last ones may be 0 */
} needs[] = {
    {CVY_CUDNN_BACKEND_TENSOR_DESCRIPTOR,
     {CVY_CUDNN_ATTR_TENSOR_UNIQUE_ID, CVY_CUDNN_ATTR_TENSOR_DATA_TYPE, CVY_CUDNN_ATTR_TENSOR_DIMENSIONS,
      CVY_CUDNN_ATTR_TENSOR_STRIDES, CVY_CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT}},
    {CVY_CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
     {CVY_CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CVY_CUDNN_ATTR_CONVOLUTION_COMP_TYPE,
      CVY_CUDNN_ATTR_CONVOLUTION_CONV_MODE, CVY_CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS,
      CVY_CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CVY_CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES,
      CVY_CUDNN_ATTR_CONVOLUTION_DILATIONS}},
    {CVY_CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     {FORWARD(X), FORWARD(W), FORWARD(Y), FORWARD(CONV_DESC), FORWARD(ALPHA), FORWARD(BETA)}},
    {CVY_CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     {BWD_DATA(DX), BWD_DATA(W), BWD_DATA(DY), BWD_DATA(CONV_DESC), BWD_DATA(ALPHA), BWD_DATA(BETA)}},
    {CVY_CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     {BWD_FILTER(X), BWD_FILTER(DW), BWD_FILTER(DY), BWD_FILTER(CONV_DESC), BWD_FILTER(ALPHA), BWD_FILTER(BETA)}},
    {CVY_CUDNN_BACKEND_POINTWISE_DESCRIPTOR, {CVY_CUDNN_ATTR_POINTWISE_MODE, CVY_CUDNN_ATTR_POINTWISE_MATH_PREC}},
    {CVY_CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
     {CVY_CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CVY_CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
      CVY_CUDNN_ATTR_OPERATION_POINTWISE_YDESC}},
    {CVY_CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR,
     {CVY_CUDNN_ATTR_OPERATIONGRAPH_OPS, CVY_CUDNN_ATTR_OPERATIONGRAPH_HANDLE}},
    {CVY_CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR,
     {CVY_CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CVY_CUDNN_ATTR_ENGINEHEUR_MODE}},
    {CVY_CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
     {CVY_CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CVY_CUDNN_ATTR_EXECUTION_PLAN_HANDLE}},
    {CVY_CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
     {CVY_CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CVY_CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
      CVY_CUDNN_ATTR_VARIANT_PACK_WORKSPACE}},
};

EXPORTED cvy_cudnn_result cudnnBackendFinalize(cvy_cudnn_descriptor descriptor)
{
    struct descriptor *d = descriptor;
    MAY_FAIL();
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++)
        for (int k = 0; needs[i].kind == d->kind && k < 7 && (k == 0 || needs[i].name[k]); k++)
            if (!find(d, needs[i].name[k]))
                return refuse(BAD_PARAM, "an attribute is missing");
    if (d->kind == CVY_CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
        d->engine = descriptor_of(d, CVY_CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 0)->engine;
    d->is_final = 1;
    return 0;
}

/* ---- heuristics ---- */

static struct descriptor *graph_of(const struct descriptor *d)
{
    return descriptor_of(d,
                         d->kind == CVY_CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR ? CVY_CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH
                                                                            : CVY_CUDNN_ATTR_ENGINECFG_ENGINE,
                         0);
}

/* A configuration of the heuristics names the graph in place of an engine. */
static int give_engines(const struct descriptor *heuristics, int64_t room, int64_t *n_out, cvy_cudnn_descriptor *out)
{
    struct descriptor *graph = graph_of(heuristics);
    for (*n_out = 0; *n_out < ENGINES && *n_out < room; (*n_out)++) {
        struct descriptor *c = out[*n_out];
        if (cudnnBackendSetAttribute(c, CVY_CUDNN_ATTR_ENGINECFG_ENGINE, CVY_CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                     &graph) != 0)
            return BAD_PARAM;
        c->engine = *n_out;
        c->is_final = 1;
    }
    return 0;
}

static int64_t workspace_of(int64_t engine)
{
    return engine == HUGE ? (int64_t)1 << 30 : 1000 * (1 + engine);
}

/* An engine has the graph of its configuration. */
static int is_compiled(const struct descriptor *engine)
{
    const struct descriptor *graph = descriptor_of(engine, CVY_CUDNN_ATTR_ENGINECFG_ENGINE, 0);
    return graph && find(graph, CVY_CUDNN_ATTR_OPERATIONGRAPH_OPS)->n > 1;
}

static int give_engine(const struct descriptor *configuration, struct descriptor *out)
{
    struct descriptor *graph = graph_of(configuration);
    out->engine = configuration->engine;
    return cudnnBackendSetAttribute(out, CVY_CUDNN_ATTR_ENGINECFG_ENGINE, CVY_CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
}

EXPORTED cvy_cudnn_result cudnnBackendGetAttribute(cvy_cudnn_descriptor descriptor, cvy_cudnn_name name,
                                                   cvy_cudnn_type type, int64_t room, int64_t *n, void *values)
{
    static const int notes[ENGINES][2] = {
        [TF32] = {CVY_CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CVY_CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS},
        [WINOGRAD] = {CVY_CUDNN_NUMERICAL_NOTE_WINOGRAD, CVY_CUDNN_NUMERICAL_NOTE_WINOGRAD},
        [RANDOM] = {CVY_CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, CVY_CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}};
    const struct descriptor *d = descriptor;
    (void)type;
    MAY_FAIL();
    *n = 1;
    switch (name) {
    case CVY_CUDNN_ATTR_ENGINEHEUR_RESULTS: return give_engines(d, room, n, values);
    case CVY_CUDNN_ATTR_ENGINECFG_ENGINE: return give_engine(d, *(struct descriptor **)values);
    case CVY_CUDNN_ATTR_ENGINE_GLOBAL_INDEX: *(int64_t *)values = d->engine; return 0;
    case CVY_CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE: *(int64_t *)values = workspace_of(d->engine); return 0;
    case CVY_CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
        *n = d->engine == TF32 || d->engine == WINOGRAD || d->engine == RANDOM ? 2 : 0;
        memcpy(values, notes[d->engine], sizeof(int) * (size_t)*n);
        return 0;
    case CVY_CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
        *n = is_compiled(d);
        *(int *)values = CVY_CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
        return 0;
    default: return refuse(NOT_SUPPORTED, "an attribute that the fake does not know");
    }
}

/* ---- runs ---- */

static void take_tensor(const struct descriptor *t, i64 dim[5], i64 by[5])
{
    const int64_t n = find(t, CVY_CUDNN_ATTR_TENSOR_DIMENSIONS)->n;
    for (int d = 0; d < 5; d++) {
        dim[d] = d < n ? int_of(t, CVY_CUDNN_ATTR_TENSOR_DIMENSIONS, d) : 1;
        by[d] = d < n ? int_of(t, CVY_CUDNN_ATTR_TENSOR_STRIDES, d) : 0;
    }
}

/* The shapes of the three tensors must belong together. */
static int is_right(const struct fake_conv *c)
{
    int right = c->src[0] == c->dst[0] && c->weight[0] == c->dst[1] && c->src[1] % c->weight[1] == 0;
    for (int d = 0; d < 3; d++)
        right =
            right && (c->src[2 + d] + 2 * c->pad[d] - c->dilation[d] * (c->weight[2 + d] - 1) - 1) / c->stride[d] + 1 ==
                         c->dst[2 + d];
    return right;
}

/* What follows a convolution: the identity into f32, or a bias and a relu. */
static int take_endings(const struct descriptor *graph, struct fake_conv *c)
{
    const int64_t n = find(graph, CVY_CUDNN_ATTR_OPERATIONGRAPH_OPS)->n;
    const struct descriptor *before = NULL;
    for (int64_t i = 1; i < n; i++) {
        const struct descriptor *op = descriptor_of(graph, CVY_CUDNN_ATTR_OPERATIONGRAPH_OPS, i);
        const int64_t mode = int_of(descriptor_of(op, CVY_CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, 0),
                                    CVY_CUDNN_ATTR_POINTWISE_MODE, 0);
        const struct descriptor *x = descriptor_of(op, CVY_CUDNN_ATTR_OPERATION_POINTWISE_XDESC, 0);
        if ((before && x != before) || !*(const char *)find(x, CVY_CUDNN_ATTR_TENSOR_IS_VIRTUAL)->values)
            return 0;
        before = descriptor_of(op, CVY_CUDNN_ATTR_OPERATION_POINTWISE_YDESC, 0);
        c->widen |= mode == CVY_CUDNN_POINTWISE_IDENTITY;
        c->bias |= mode == CVY_CUDNN_POINTWISE_ADD;
        c->relu |= mode == CVY_CUDNN_POINTWISE_RELU_FWD;
        if (mode != CVY_CUDNN_POINTWISE_ADD)
            continue;
        const struct descriptor *b = descriptor_of(op, CVY_CUDNN_ATTR_OPERATION_POINTWISE_BDESC, 0);
        if (!b || int_of(b, CVY_CUDNN_ATTR_TENSOR_DATA_TYPE, 0) != CVY_CUDNN_DATA_FLOAT ||
            int_of(b, CVY_CUDNN_ATTR_TENSOR_DIMENSIONS, 1) != c->dst[1])
            return 0;
    }
    return c->widen + c->bias + c->relu == n - 1;
}

static int take_problem(const struct descriptor *graph, struct fake_conv *c, int *bf16)
{
    const struct descriptor *op = descriptor_of(graph, CVY_CUDNN_ATTR_OPERATIONGRAPH_OPS, 0);
    const struct needs *names = needs;
    while (names->kind != op->kind)
        names++;
    const struct descriptor *src = descriptor_of(op, names->name[0], 0), *weight = descriptor_of(op, names->name[1], 0),
                            *dst = descriptor_of(op, names->name[2], 0), *w = descriptor_of(op, names->name[3], 0);
    memset(c, 0, sizeof *c);
    c->pass = op->kind == CVY_CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR         ? 0
              : op->kind == CVY_CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ? 1
                                                                                             : 2;
    c->sum = *(const float *)find(op, names->name[5])->values != 0;
    take_tensor(src, c->src, c->src_by);
    take_tensor(weight, c->weight, c->weight_by);
    take_tensor(dst, c->dst, c->dst_by);
    const int64_t nspace = int_of(w, CVY_CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 0);
    for (int d = 0; d < 3; d++) {
        c->stride[d] = d < nspace ? int_of(w, CVY_CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, d) : 1;
        c->pad[d] = d < nspace ? int_of(w, CVY_CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, d) : 0;
        c->dilation[d] = d < nspace ? int_of(w, CVY_CUDNN_ATTR_CONVOLUTION_DILATIONS, d) : 1;
    }
    const i64 *dim = c->pass == 0 ? c->dst : c->pass == 1 ? c->src : c->weight;
    c->elems = dim[0] * dim[1] * dim[2] * dim[3] * dim[4];
    *bf16 = int_of(src, CVY_CUDNN_ATTR_TENSOR_DATA_TYPE, 0) == CVY_CUDNN_DATA_BFLOAT16;
    const int64_t same = int_of(src, CVY_CUDNN_ATTR_TENSOR_DATA_TYPE, 0);
    return is_right(c) && take_endings(graph, c) &&
           (c->bias || c->relu || int_of(dst, CVY_CUDNN_ATTR_TENSOR_DATA_TYPE, 0) == same) &&
           (c->widen || int_of(weight, CVY_CUDNN_ATTR_TENSOR_DATA_TYPE, 0) == same);
}

static cvy_cu_address address_of(const struct descriptor *pack, int64_t id)
{
    for (int64_t i = 0; i < find(pack, CVY_CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)->n; i++)
        if (int_of(pack, CVY_CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, i) == id)
            return (cvy_cu_address)int_of(pack, CVY_CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, i);
    return 0;
}

EXPORTED cvy_cudnn_result cudnnBackendExecute(cvy_cudnn_handle h, cvy_cudnn_descriptor plan, cvy_cudnn_descriptor given)
{
    const struct descriptor *p = plan, *pack = given;
    const char *fast = getenv("FAKE_CUDNN_FAST");
    struct fake_conv c;
    int bf16 = 0;
    MAY_FAIL();
    if (!take_problem(graph_of(descriptor_of(p, CVY_CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 0)), &c, &bf16))
        return refuse(EXECUTION_FAILED, "the tensors do not belong together");
    cvy_cu_address at[4] = {address_of(pack, CVY_CUDNN_ID_SRC), address_of(pack, CVY_CUDNN_ID_WEIGHT),
                            address_of(pack, CVY_CUDNN_ID_DST), address_of(pack, CVY_CUDNN_ID_BIAS)};
    const cvy_cu_address work = (cvy_cu_address)int_of(pack, CVY_CUDNN_ATTR_VARIANT_PACK_WORKSPACE, 0);
    if (!at[0] || !at[1] || !at[2] || !work || work % LINE || (at[0] | at[1] | at[2] | at[3]) % 16 ||
        (c.bias && !at[3]))
        return refuse(EXECUTION_FAILED, "a pointer is missing or not aligned");
    c.round = p->engine == TF32 && !bf16;
    c.times = fast && atoi(fast) != p->engine ? SLOW : 1;
    if (p->engine == WINOGRAD || p->engine == HUGE)
        c.dilation[0] += 1;
    if (!c.bias)
        at[3] = at[1]; /* the gradient of weights in f32, or not read */
    void *args[] = {&at[0], &at[1], &at[2], &at[3], &c};
    const unsigned blocks = (unsigned)((c.elems + 255) / 256);
    /* The workspace is spoiled: it must not be memory of anything else. */
    if (cu.cuMemsetD8Async(work, 0, (size_t)workspace_of(p->engine), h->stream) != 0 ||
        cu.cuLaunchKernel(h->run[bf16], blocks > 1000 ? 1000 : blocks, 1, 1, 256, 1, 1, 0, h->stream, args, NULL) != 0)
        return refuse(EXECUTION_FAILED, "the fake libcuda fails");
    return 0;
}
