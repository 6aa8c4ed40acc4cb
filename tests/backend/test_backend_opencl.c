/* rows: clang */
/*
 * test_backend_opencl.c: the backend opencl on the first device of this machine, which is PoCL's CPU where there is no
 * GPU: memory, copies, lanes, marks, kernels; and what is said if something is missing or fails. For that, functions of
 * the table of libOpenCL.so.1 are replaced.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/opencl.h"

#include <stdlib.h>

CVY_GPU_SOURCE_DECLARE(gpu_add);

static cvy_space space;
static cvy_opencl_api *cl, original;

static void begin(void)
{
    EXPECT_OK(cvy_space_open("opencl", NULL, &space));
}

static void end(void)
{
    *cl = original;
    cvy_space_close(&space);
}

/* ---- memory and lanes ---- */

static void test_memory(void)
{
    enum { N = (33 << 20) + 5 }; /* more than the pieces of a copy, and no multiple of a word */
    unsigned char *host = NULL, *back = NULL, *there = NULL;
    EXPECT_OK(cvy_mem_alloc(N, &host));
    EXPECT_OK(cvy_mem_alloc(N, &back));
    EXPECT_OK(cvy_space_alloc(&space, N, 0, &there));
    EXPECT_INT((uintptr_t)there % 64, 0);
    memset(back, 1, N);
    EXPECT_OK(cvy_space_read(&space, back, there, N));
    EXPECT(memcmp(host, back, N) == 0); /* new memory is zero */
    for (int i = 0; i < N; i++)
        host[i] = (unsigned char)(i * 7 + i / 1000);
    EXPECT_OK(cvy_space_write(&space, there, host, N));
    EXPECT_OK(cvy_space_zero(&space, CVY_LANE_COMPUTE, there + 3, 1001));
    EXPECT_OK(cvy_space_zero(&space, CVY_LANE_COMPUTE, there + 2048, 4096));
    EXPECT_OK(cvy_space_zero(&space, CVY_LANE_COMPUTE, there + 8196, 12));
    EXPECT_OK(cvy_space_copy(&space, CVY_LANE_COMPUTE, there + 20000, there + 10001, 5003));
    memset(host + 3, 0, 1001);
    memset(host + 2048, 0, 4096);
    memset(host + 8196, 0, 12);
    memcpy(host + 20000, host + 10001, 5003);
    EXPECT_OK(cvy_space_read(&space, back, there, N));
    EXPECT(memcmp(host, back, N) == 0);
    cvy_space_free(&space, &there, N);
    EXPECT(!there);
    cvy_mem_free(&host);
    cvy_mem_free(&back);
}

static void test_about(void)
{
    cvy_device d, after;
    void *block = NULL;
    cvy_space_about(&space, &d);
    printf("       %s, %s, %s, %d units, %.2f GiB\n", d.name, d.architecture, d.driver, d.units,
           (double)d.bytes / (1 << 30));
    EXPECT(d.name[0] && d.driver[0] && d.units > 0 && d.bytes > 0 && d.count > 0 && d.number == 0);
    EXPECT_OK(cvy_space_alloc(&space, 1 << 20, 0, &block));
    cvy_space_about(&space, &after);
    EXPECT_INT(d.bytes_left - after.bytes_left, 1 << 20);
    cvy_space_free(&space, &block, 1 << 20);
    cvy_space_about(&space, &after);
    EXPECT_INT(d.bytes_left - after.bytes_left, 0);
}

/* A lane copies what another one computes, and only marks keep them in order: without one of the two, sums are lost. */
static void test_lanes(void)
{
    enum { N = 1 << 18, TURNS = 40 };
    float *sum = NULL, *part = NULL, *host[2] = {NULL};
    cvy_mark *copied[2] = {NULL}, *added[2] = {NULL};
    EXPECT_OK(cvy_space_alloc(&space, N * sizeof *sum, 0, &sum));
    EXPECT_OK(cvy_space_alloc(&space, N * sizeof *part, 0, &part));
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(cvy_space_alloc_host(&space, N * sizeof *host[i], &host[i]));
        EXPECT_OK(cvy_mark_create(&space, &copied[i]));
        EXPECT_OK(cvy_mark_create(&space, &added[i]));
    }
    for (int turn = 0; turn < TURNS; turn++) {
        const int slot = turn % 2;
        EXPECT_OK(cvy_mark_reached(&space, copied[slot], 1, &(int){0})); /* the host may write into the slot again */
        for (int i = 0; i < N; i++)
            host[slot][i] = (float)(turn + i % 5);
        EXPECT_OK(cvy_mark_await(&space, CVY_LANE_COPY, added[!slot])); /* of the turn before */
        EXPECT_OK(cvy_space_copy(&space, CVY_LANE_COPY, part, host[slot], N * sizeof *part));
        EXPECT_OK(cvy_mark_put(&space, CVY_LANE_COPY, copied[slot]));
        EXPECT_OK(cvy_mark_await(&space, CVY_LANE_COMPUTE, copied[slot]));
        EXPECT_OK(space.backend->add(space.state, CVY_LANE_COMPUTE, CVY_DTYPE_F32, N, sum, part));
        EXPECT_OK(cvy_mark_put(&space, CVY_LANE_COMPUTE, added[slot]));
    }
    EXPECT_OK(cvy_space_sync_all(&space));
    EXPECT_OK(cvy_space_read(&space, host[0], sum, N * sizeof *sum));
    int wrong = 0;
    for (int i = 0; i < N; i++)
        wrong += host[0][i] != (float)(TURNS * (TURNS - 1) / 2 + TURNS * (i % 5));
    EXPECT_INT(wrong, 0);
    for (int i = 0; i < 2; i++) {
        cvy_mark_destroy(&space, &copied[i]);
        cvy_mark_destroy(&space, &added[i]);
        cvy_space_free_host(&space, &host[i], N * sizeof *host[i]);
    }
    cvy_space_free(&space, &sum, N * sizeof *sum);
    cvy_space_free(&space, &part, N * sizeof *part);
}

static void test_marks(void)
{
    enum { BYTES = 64 << 20 };
    cvy_mark *from = NULL, *to = NULL;
    char *block = NULL;
    double s = -1;
    int reached = 0;
    EXPECT_OK(cvy_space_alloc(&space, BYTES, 0, &block));
    EXPECT_OK(cvy_mark_create(&space, &from));
    EXPECT_OK(cvy_mark_create(&space, &to));
    EXPECT_OK(cvy_mark_reached(&space, from, 0, &reached)); /* it is nowhere */
    EXPECT_INT(reached, 1);
    EXPECT_OK(cvy_mark_await(&space, CVY_LANE_COMM, from));
    EXPECT_OK(cvy_mark_put(&space, CVY_LANE_COMM, from));
    for (int i = 0; i < 4; i++)
        EXPECT_OK(cvy_space_copy(&space, CVY_LANE_COMM, block, block + BYTES / 2, BYTES / 2));
    EXPECT_OK(cvy_mark_put(&space, CVY_LANE_COMM, to));
    EXPECT_OK(cvy_mark_reached(&space, to, 0, &reached));
    EXPECT_OK(cvy_mark_reached(&space, to, 1, &reached));
    EXPECT_INT(reached, 1);
    EXPECT_OK(cvy_mark_elapsed(&space, from, to, &s));
    printf("       128 MiB were copied in %.1f ms\n", 1e3 * s);
    EXPECT(s > 1e-5 && s < 60);
    EXPECT_OK(cvy_mark_elapsed(&space, from, from, &s));
    EXPECT_NEAR(s, 0, 0);
    cvy_mark_destroy(&space, &from);
    cvy_mark_destroy(&space, &to);
    cvy_space_free(&space, &block, BYTES);
}

static void test_add(void)
{
    enum { N = 1000 };
    double host[N], *sum = NULL, *part = NULL;
    EXPECT_OK(cvy_space_alloc(&space, sizeof host, 0, &sum));
    EXPECT_OK(cvy_space_alloc(&space, sizeof host, 0, &part));
    for (int i = 0; i < N; i++)
        host[i] = 1e-9 * i;
    EXPECT_OK(cvy_space_write(&space, sum, host, sizeof host));
    for (int i = 0; i < N; i++)
        host[i] = 1e6 + i;
    EXPECT_OK(cvy_space_write(&space, part, host, sizeof host));
    EXPECT_OK(space.backend->add(space.state, CVY_LANE_COMPUTE, CVY_DTYPE_F64, N - 1, sum, part));
    EXPECT_OK(space.backend->add(space.state, CVY_LANE_COMPUTE, CVY_DTYPE_F64, 0, sum, part));
    EXPECT_OK(cvy_space_read(&space, host, sum, sizeof host));
    for (int i = 0; i < N; i++)
        EXPECT_NEAR(host[i], 1e-9 * i + (i < N - 1 ? 1e6 + i : 0), 0);
    EXPECT_FAULT(space.backend->add(space.state, CVY_LANE_COMPUTE, CVY_DTYPE_I32, 1, sum, part), CVY_E_INTERNAL, "i32");
    cvy_space_free(&space, &sum, sizeof host);
    cvy_space_free(&space, &part, sizeof host);
}

static void test_finite(void)
{
    float values[2][300] = {{0}}, *there[2] = {NULL};
    cvy_gpu_finite *check = NULL;
    cvy_gpu_range ranges[2];
    int finite = 0;
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(cvy_space_alloc(&space, sizeof values[i], 0, &there[i]));
        ranges[i] = (cvy_gpu_range){there[i], 300, CVY_DTYPE_F32};
    }
    EXPECT_OK(cvy_gpu_finite_create(&space, ranges, 2, &check));
    for (int k = 0; k < 3; k++) {
        values[1][299] = k == 1 ? INFINITY : 1;
        EXPECT_OK(cvy_space_write(&space, there[1], values[1], sizeof values[1]));
        EXPECT_OK(cvy_gpu_finite_start(check));
        EXPECT_OK(cvy_gpu_finite_end(check, &finite));
        EXPECT_INT(finite, k != 1);
    }
    cvy_gpu_finite_destroy(&check);
    cvy_space_free(&space, &there[0], sizeof values[0]);
    cvy_space_free(&space, &there[1], sizeof values[1]);
}

/* ---- kernels ---- */

/* Puts device.h before the text of a kernel: it is what a source of the library begins with. */
static cvy_gpu_source source_of(const char *name, const char *text)
{
    static char whole[64 << 10];
    const char *library = CVY_GPU_SOURCE(gpu_add)->text, *kernel = strstr(library, "\nKERNEL(");
    EXPECT(kernel != NULL);
    snprintf(whole, sizeof whole, "%.*s\n%s", (int)(kernel - library), library, text);
    return (cvy_gpu_source){name, whole};
}

/* A pointer may be NULL, a struct is given by value, and a table may hold addresses of other blocks. */
static void test_arguments(void)
{
    static const char text[] = "struct how { i64 n; float scale; int shift; };\n"
                               "KERNEL(apply)(GLOBAL const u64 *table, GLOBAL const float *bias, GLOBAL act *y,\n"
                               "              struct how h)\n"
                               "{\n"
                               "    SHARED float s[256];\n"
                               "    float sum = THREAD < 10;\n"
                               "    BLOCK_SUM(sum, s);\n"
                               "    FOR_EACH (i, h.n) {\n"
                               "        float x = AT_ADDRESS(const float, table[0])[i + h.shift] * h.scale + sum;\n"
                               "        if (bias)\n"
                               "            x += bias[i];\n"
                               "        SET(y, i, x);\n"
                               "    }\n"
                               "}\n";
    struct {
        int64_t n;
        float scale;
        int shift;
    } how = {256, 0.5f, 2};
    const cvy_gpu_source source = source_of("test_arguments", text);
    cvy_gpu_kernel kernel, again;
    uint64_t *table = NULL;
    float *x = NULL, *y = NULL, *bias = NULL, host[300], result[256];
    EXPECT_OK(cvy_space_alloc(&space, 64, 0, &table));
    EXPECT_OK(cvy_space_alloc(&space, sizeof host, 0, &x));
    EXPECT_OK(cvy_space_alloc(&space, sizeof host, 0, &bias));
    EXPECT_OK(cvy_space_alloc(&space, sizeof result, 0, &y));
    for (int i = 0; i < 300; i++)
        host[i] = (float)i;
    EXPECT_OK(cvy_space_write(&space, x, host, sizeof host));
    EXPECT_OK(cvy_space_write(&space, bias, host, sizeof host));
    EXPECT_OK(cvy_space_write(&space, table, &(uint64_t){(uint64_t)(uintptr_t)x}, 8));
    EXPECT_OK(cvy_gpu_kernel_get(&space, &source, "apply", CVY_DTYPE_F32, &kernel));
    EXPECT_OK(cvy_gpu_kernel_get(&space, &source, "apply", CVY_DTYPE_F32, &again));
    EXPECT(kernel.handle == again.handle);
    for (int with_bias = 0; with_bias < 2; with_bias++) {
        float *b = with_bias ? bias + 4 : NULL; /* an address within a block */
        EXPECT_OK(CVY_GPU_LAUNCH(&kernel, 2, 1, 1, 128, CVY_GPU_POINTER(table), CVY_GPU_POINTER(b), CVY_GPU_POINTER(y),
                                 CVY_GPU_VALUE(how)));
        EXPECT_OK(cvy_space_read(&space, result, y, sizeof result));
        for (int i = 0; i < 256; i++)
            EXPECT_NEAR(result[i], 0.5 * (i + 2) + 10 + with_bias * (i + 4), 0);
    }
    cvy_space_free(&space, &table, 64);
    cvy_space_free(&space, &x, sizeof host);
    cvy_space_free(&space, &bias, sizeof host);
    cvy_space_free(&space, &y, sizeof result);
}

static void test_wrong_kernel(void)
{
    const cvy_gpu_source wrong = source_of("test_wrong", "KERNEL(wrong)(GLOBAL float *x)\n{\n    x[0] = nothing;\n}\n");
    cvy_gpu_kernel kernel;
    for (int k = 0; k < 2; k++) { /* the second time it is known */
        EXPECT_FAULT(cvy_gpu_kernel_get(&space, &wrong, "wrong", CVY_DTYPE_F32, &kernel), CVY_NOT_APPLICABLE, "");
        EXPECT(strstr(cvy_error_text(), "test_wrong (f32) does not compile for "));
        EXPECT(strstr(cvy_error_text(), "undeclared identifier 'nothing'"));
    }
    EXPECT_FAULT(cvy_gpu_kernel_get(&space, CVY_GPU_SOURCE(gpu_add), "sub", CVY_DTYPE_F32, &kernel), CVY_E_UNSUPPORTED,
                 "gpu_add: OpenCL device");
    EXPECT(strstr(cvy_error_text(), "CL_INVALID_KERNEL_NAME"));
}

/* ---- what is said if something is missing or fails ---- */

static void test_numbers(void)
{
    cvy_space other = {0};
    cvy_device d;
    cvy_space_about(&space, &d);
    char expected[80];
    snprintf(expected, sizeof expected, "there is no device opencl:77: this process sees %d, from 0 to %d", d.count,
             d.count - 1);
    EXPECT_FAULT(cvy_space_open("opencl", &(cvy_place){.device = 77}, &other), CVY_E_CONFIG, expected);
    EXPECT_OK(cvy_space_open("opencl", &(cvy_place){.device = -1, .node_rank = 5}, &other));
    cvy_space_about(&other, &d);
    EXPECT_INT(d.number, 5 % d.count);
    cvy_space_close(&other);
}

static cl_device_info hidden; /* a property of devices that reads as 0 */
static cl_int hide(cl_device_id device, cl_device_info what, size_t room, void *value, size_t *bytes_out)
{
    const cl_int error = original.clGetDeviceInfo(device, what, room, value, bytes_out);
    if (what == hidden && value)
        memset(value, 0, room);
    return error;
}

static cl_int no_platform(cl_uint room, cl_platform_id *list, cl_uint *count_out)
{
    (void)room, (void)list, (void)count_out;
    return CVY_CL_PLATFORM_NOT_FOUND_KHR;
}

static cl_int no_device(cl_platform_id platform, cl_device_type type, cl_uint room, cl_device_id *list,
                        cl_uint *count_out)
{
    (void)platform, (void)type, (void)room, (void)list, (void)count_out;
    return CL_DEVICE_NOT_FOUND;
}

static void expect_no_device(const char *why)
{
    cvy_space other = {0};
    char text[400] = "";
    EXPECT_INT(space.backend->count(text, sizeof text), 0);
    EXPECT(strstr(text, why));
    EXPECT_FAULT(cvy_space_open("opencl", NULL, &other), CVY_E_UNSUPPORTED, why);
    EXPECT(strstr(cvy_error_text(), "there is no device for opencl: "));
    *cl = original;
}

static void test_missing(void)
{
    cl->clGetPlatformIDs = no_platform;
    expect_no_device("OpenCL knows no platform");
    cl->clGetDeviceIDs = no_device;
    expect_no_device("the platforms of OpenCL have no device");
    cl->clGetDeviceInfo = hide;
    hidden = CL_DEVICE_SVM_CAPABILITIES;
    expect_no_device("has no shared virtual memory (SVM), which convoy needs");
    cl->clGetDeviceInfo = hide;
    hidden = CL_DEVICE_DOUBLE_FP_CONFIG;
    expect_no_device("(fp64)");
}

/* A device with so many extensions that their names have 4,000 characters; the last one gives its UUID. */
static cl_int many_extensions(cl_device_id device, cl_device_info what, size_t room, void *value, size_t *bytes_out)
{
    char names[4096];
    int n = 0;
    if (what == CVY_CL_DEVICE_UUID_KHR && value && room >= CVY_CL_UUID_BYTES) {
        memset(value, 0xa5, CVY_CL_UUID_BYTES);
        return CL_SUCCESS;
    }
    if (what != CL_DEVICE_EXTENSIONS)
        return original.clGetDeviceInfo(device, what, room, value, bytes_out);
    while (n < 4000)
        n += snprintf(names + n, sizeof names - (size_t)n, "cl_khr_device_uuid_%d ", n);
    n += snprintf(names + n, sizeof names - (size_t)n, "cl_khr_device_uuid");
    if (bytes_out)
        *bytes_out = (size_t)n + 1;
    if (value && room < (size_t)n + 1)
        return CL_OUT_OF_RESOURCES;
    if (value)
        memcpy(value, names, (size_t)n + 1);
    return CL_SUCCESS;
}

static void test_many_extensions(void)
{
    cvy_space other = {0};
    cvy_device d;
    cl->clGetDeviceInfo = many_extensions;
    EXPECT_OK(cvy_space_open("opencl", NULL, &other));
    cvy_space_about(&other, &d);
    EXPECT_TEXT(d.id, "a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5");
    cvy_space_close(&other);
    cvy_opencl_device list[CVY_OPENCL_DEVICES_MAX];
    EXPECT(cvy_opencl_devices(list, NULL, 0) > 0);
    EXPECT(!cvy_opencl_has(list[0].device, "cl_khr_device"));
}

/* One platform with two devices, of which the first is a CPU. */
static cl_int twice(cl_platform_id platform, cl_device_type type, cl_uint room, cl_device_id *list, cl_uint *count_out)
{
    const cl_int error = original.clGetDeviceIDs(platform, type, 1, list, count_out);
    if (room >= 2)
        list[1] = list[0];
    *count_out = 2;
    return error;
}

static int types_asked;
static cl_int cpu_and_gpu(cl_device_id device, cl_device_info what, size_t room, void *value, size_t *bytes_out)
{
    const cl_int error = original.clGetDeviceInfo(device, what, room, value, bytes_out);
    if (what == CL_DEVICE_TYPE)
        memcpy(value, &(cl_bitfield){types_asked++ % 2 ? CL_DEVICE_TYPE_GPU : CL_DEVICE_TYPE_CPU}, sizeof(cl_bitfield));
    return error;
}

/* A GPU comes first; a CPU beside it does not count, and may be named. */
static void test_cpu_beside_gpu(void)
{
    cvy_space other = {0};
    cvy_opencl_device list[CVY_OPENCL_DEVICES_MAX];
    cvy_device d;
    char why[100];
    if (space.backend->count(why, sizeof why) != 1)
        return; /* the devices of this machine are not those of the test */
    cl->clGetDeviceIDs = twice;
    cl->clGetDeviceInfo = cpu_and_gpu;
    EXPECT_INT(cvy_opencl_devices(list, why, sizeof why), 2);
    EXPECT(!list[0].is_cpu && list[1].is_cpu);
    EXPECT_INT(space.backend->count(why, sizeof why), 1);
    for (int number = -1; number < 2; number++) {
        EXPECT_OK(cvy_space_open("opencl", &(cvy_place){.device = number, .node_rank = 1}, &other));
        cvy_space_about(&other, &d);
        EXPECT_INT(d.number, number < 0 ? 0 : number);
        EXPECT_INT(d.is_processor, number == 1);
        cvy_space_close(&other);
    }
    EXPECT_FAULT(cvy_space_open("opencl", &(cvy_place){.device = 2}, &other), CVY_E_CONFIG,
                 "there is no device opencl:2");
}

static void *no_memory(cl_context context, cl_svm_mem_flags flags, size_t bytes, cl_uint alignment)
{
    (void)context, (void)flags, (void)bytes, (void)alignment;
    return NULL;
}

static void test_no_memory(void)
{
    cvy_opencl_device list[CVY_OPENCL_DEVICES_MAX];
    void *block = NULL;
    char expected[100];
    cvy_opencl_devices(list, (char[1]){0}, 1);
    const size_t most = (size_t)cvy_opencl_number(list[0].device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    snprintf(expected, sizeof expected, "blocks of at most %zu bytes", most);
    EXPECT_FAULT(cvy_space_alloc(&space, most + 64, 0, &block), CVY_E_MEMORY, expected);
    snprintf(expected, sizeof expected, "one of %zu bytes", most + 64);
    EXPECT(strstr(cvy_error_text(), expected));
    cl->clSVMAlloc = no_memory;
    EXPECT_FAULT(cvy_space_alloc(&space, 1 << 20, 0, &block), CVY_E_MEMORY, "cannot give 1048576 bytes of memory");
    EXPECT(!block);
}

static cl_int lost_device(cl_command_queue queue)
{
    (void)queue;
    return CL_OUT_OF_RESOURCES;
}

static cl_int failed_work(cl_event event, cl_event_info what, size_t room, void *value, size_t *bytes_out)
{
    (void)event, (void)what, (void)room, (void)bytes_out;
    memcpy(value, &(cl_int){-5}, sizeof(cl_int));
    return CL_SUCCESS;
}

static void test_lost_device(void)
{
    cvy_mark *mark = NULL;
    int reached = 0;
    EXPECT_OK(cvy_mark_create(&space, &mark));
    EXPECT_OK(cvy_mark_put(&space, CVY_LANE_COMPUTE, mark));
    EXPECT_OK(cvy_space_sync(&space));
    cl->clFinish = lost_device;
    EXPECT_FAULT(cvy_space_sync(&space), CVY_E_UNSUPPORTED, "clFinish fails with CL_OUT_OF_RESOURCES (-5)");
    cl->clGetEventInfo = failed_work;
    EXPECT_FAULT(cvy_mark_reached(&space, mark, 0, &reached), CVY_E_UNSUPPORTED, "work that was put into a queue");
    *cl = original;
    cvy_mark_destroy(&space, &mark);
}

/* ---- a device whose SVM is only of the coarse-grain kind, which most GPUs have ---- */

static cl_svm_mem_flags flags_seen;
static int blocks_told;

static cl_int coarse(cl_device_id device, cl_device_info what, size_t room, void *value, size_t *bytes_out)
{
    const cl_int error = original.clGetDeviceInfo(device, what, room, value, bytes_out);
    if (what == CL_DEVICE_SVM_CAPABILITIES && value)
        memcpy(value, &(cl_bitfield){CL_DEVICE_SVM_COARSE_GRAIN_BUFFER}, sizeof(cl_bitfield));
    return error;
}

static void *see_flags(cl_context context, cl_svm_mem_flags flags, size_t bytes, cl_uint alignment)
{
    flags_seen |= flags;
    return original.clSVMAlloc(context, flags, bytes, alignment);
}

static cl_int see_blocks(cl_kernel kernel, cl_kernel_exec_info what, size_t bytes, const void *blocks)
{
    if (what == CL_KERNEL_EXEC_INFO_SVM_PTRS)
        blocks_told = (int)(bytes / sizeof(void *));
    return original.clSetKernelExecInfo(kernel, what, bytes, blocks);
}

static void test_coarse_grain(void)
{
    cvy_space_close(&space);
    cl->clGetDeviceInfo = coarse;
    cl->clSVMAlloc = see_flags;
    cl->clSetKernelExecInfo = see_blocks;
    flags_seen = 0;
    EXPECT_OK(cvy_space_open("opencl", NULL, &space));
    test_memory();
    test_lanes();
    test_arguments();
    EXPECT_INT(flags_seen, CL_MEM_READ_WRITE);
    EXPECT_INT(blocks_told, 4); /* table, x, bias, y */
}

int main(void)
{
    if (!opencl_is_there())
        return 77;
    cl = cvy_opencl(NULL);
    original = *cl;
    TEST_WITH(begin, test_about, end);
    TEST_WITH(begin, test_memory, end);
    TEST_WITH(begin, test_lanes, end);
    TEST_WITH(begin, test_marks, end);
    TEST_WITH(begin, test_add, end);
    TEST_WITH(begin, test_finite, end);
    TEST_WITH(begin, test_arguments, end);
    TEST_WITH(begin, test_wrong_kernel, end);
    TEST_WITH(begin, test_numbers, end);
    TEST_WITH(begin, test_missing, end);
    TEST_WITH(begin, test_many_extensions, end);
    TEST_WITH(begin, test_cpu_beside_gpu, end);
    TEST_WITH(begin, test_no_memory, end);
    TEST_WITH(begin, test_lost_device, end);
    TEST_WITH(begin, test_coarse_grain, end);
    return test_end();
}
