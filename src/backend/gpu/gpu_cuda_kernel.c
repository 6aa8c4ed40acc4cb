/*
 * gpu_cuda_kernel.c: kernels of the backend cuda: compiled by NVRTC to the machine code of the device, which is kept in
 * files, because each takes about 0.1 s.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "backend/gpu/gpu_cuda.h"
#include "backend/gpu/gpu_vendor.h"

struct kernel {
    cvy_cu_function function;
    char *name;
    struct kernel *next;
};

struct module {
    cvy_cu_module handle;
    int is_bf16; /* its activations */
    struct kernel *kernels;
};

static cvy_status say_log(const cvy_cuda_space *s, cvy_nvrtc_program program, cvy_cu_result result)
{
    char text[400] = "", *log = NULL;
    size_t bytes = 0;
    if (s->cu->nvrtcGetProgramLogSize(program, &bytes) == 0 && bytes > 1 && cvy_mem_alloc(bytes + 1, &log) == CVY_OK &&
        s->cu->nvrtcGetProgramLog(program, log) == 0)
        cvy_gpu_shorten_log(log, text, sizeof text);
    cvy_mem_free(&log);
    if (result == CVY_NVRTC_REFUSED)
        return cvy_error_set(CVY_NOT_APPLICABLE, "NVRTC fails (%d)%s%s", result, text[0] ? ": " : "", text);
    return cvy_error_set(CVY_E_UNSUPPORTED,
                         "NVRTC, which compiles the kernels, does not work (%d)%s%s: install all of it, with "
                         "libnvrtc-builtins, or name the file of another one in CONVOY_NVRTC",
                         result, text[0] ? ": " : "", text);
}

/* The options of the compiler that are the same for all devices and dtypes. */
#define OPTIONS "--std=c++17", "-default-device", "--fmad=true"

static cvy_status compile(const cvy_cuda_space *s, cvy_nvrtc_program program, cvy_dtype act, char **code_out,
                          size_t *bytes_out)
{
    char architecture[64];
    snprintf(architecture, sizeof architecture, "-arch=%s", s->gpu.device.architecture);
    const char *const options[] = {architecture, act == CVY_DTYPE_BF16 ? "-DBF16=1" : "-DBF16=0", OPTIONS};
    const cvy_cu_result result = s->cu->nvrtcCompileProgram(program, CVY_COUNT(options), options);
    if (result != 0)
        return say_log(s, program, result);
    CVY_CHECK(s->cu->nvrtcGetCUBINSize(program, bytes_out) == 0, CVY_E_UNSUPPORTED,
              "NVRTC gives no machine code for %s", s->gpu.device.architecture);
    CVY_TRY(cvy_mem_alloc(*bytes_out + 1, code_out));
    CVY_CHECK(s->cu->nvrtcGetCUBIN(program, *code_out) == 0, CVY_E_UNSUPPORTED, "NVRTC gives no machine code for %s",
              s->gpu.device.architecture);
    return CVY_OK;
}

static cvy_status compile_source(const cvy_cuda_space *s, const cvy_gpu_source *source, cvy_dtype act, char **code_out,
                                 size_t *bytes_out)
{
    cvy_nvrtc_program program = NULL;
    char file[64];
    snprintf(file, sizeof file, "%s.cu", source->name);
    const cvy_cu_result created = s->cu->nvrtcCreateProgram(&program, source->text, file, 0, NULL, NULL);
    CVY_CHECK(created == 0, CVY_E_UNSUPPORTED, "NVRTC cannot create a program (%d)", created);
    const cvy_status status = compile(s, program, act, code_out, bytes_out);
    (void)s->cu->nvrtcDestroyProgram(&program);
    return status;
}

static cvy_status get_code(const cvy_cuda_space *s, const cvy_gpu_source *source, cvy_dtype act, char **code_out,
                           size_t *bytes_out)
{
    char *key = NULL;
    CVY_TRY(cvy_mem_printf(&key, "%s\n%s\n%s %s %s\n%s\n%s", s->gpu.device.driver, s->gpu.device.architecture, OPTIONS,
                           cvy_dtype_text(act), source->text));
    cvy_status status = CVY_OK;
    if (!cvy_gpu_cache_find(key, code_out, bytes_out)) {
        status = compile_source(s, source, act, code_out, bytes_out);
        if (status == CVY_OK)
            cvy_gpu_cache_keep(key, *code_out, *bytes_out);
    }
    cvy_mem_free(&key);
    return status;
}

static void cuda_unbuild(void *state, void *handle)
{
    const cvy_cuda_space *s = state;
    struct module *module = handle;
    while (module->kernels) {
        struct kernel *kernel = module->kernels;
        module->kernels = kernel->next;
        cvy_mem_free(&kernel->name);
        cvy_mem_free(&kernel);
    }
    if (module->handle)
        (void)s->cu->cuModuleUnload(module->handle);
    cvy_mem_free(&module);
}

static cvy_status load_code(const cvy_cuda_space *s, const char *code, struct module *module)
{
    CVY_CU(s, cuCtxSetCurrent, s->context);
    CVY_CU(s, cuModuleLoadData, &module->handle, code);
    return CVY_OK;
}

static cvy_status cuda_build(void *state, const cvy_gpu_source *source, cvy_dtype act, void **module_out)
{
    const cvy_cuda_space *s = state;
    struct module *module = NULL;
    char *code = NULL;
    size_t bytes = 0;
    CVY_TRY(cvy_mem_alloc(sizeof *module, &module));
    module->is_bf16 = act == CVY_DTYPE_BF16;
    cvy_status status = get_code(s, source, act, &code, &bytes);
    if (status == CVY_OK)
        status = load_code(s, code, module);
    cvy_mem_free(&code);
    if (status != CVY_OK) {
        cuda_unbuild(state, module);
        return status;
    }
    *module_out = module;
    return CVY_OK;
}

static cvy_status cuda_find(void *state, void *handle, const char *name, void **kernel_out)
{
    const cvy_cuda_space *s = state;
    struct module *module = handle;
    char full[128];
    snprintf(full, sizeof full, "%s_%s", name, module->is_bf16 ? "bf16" : "f32");
    struct kernel *kernel = module->kernels;
    while (kernel && strcmp(kernel->name, full) != 0)
        kernel = kernel->next;
    if (!kernel) {
        cvy_cu_function function = NULL;
        CVY_CU(s, cuCtxSetCurrent, s->context);
        CVY_CU(s, cuModuleGetFunction, &function, module->handle, full);
        CVY_TRY(cvy_mem_alloc(sizeof *kernel, &kernel));
        const cvy_status status = cvy_mem_strdup(full, &kernel->name);
        if (status != CVY_OK) {
            cvy_mem_free(&kernel);
            return status;
        }
        kernel->function = function;
        kernel->next = module->kernels;
        module->kernels = kernel;
    }
    *kernel_out = kernel;
    return CVY_OK;
}

/* cuLaunchKernel copies the arguments before it returns. */
static cvy_status cuda_launch(void *state, cvy_lane lane, void *handle, const int grid[3], int threads,
                              const cvy_gpu_arg *args, int nargs)
{
    enum { ARGS_MAX = 64 };
    cvy_cuda_space *s = state;
    const struct kernel *kernel = handle;
    void *at[ARGS_MAX];
    CVY_CHECK(nargs <= ARGS_MAX, CVY_E_INTERNAL, "%s has %d arguments", kernel->name, nargs);
    for (int i = 0; i < nargs; i++)
        at[i] = (void *)(uintptr_t)args[i].at;
    s->launched = kernel->name;
    CVY_CU(s, cuCtxSetCurrent, s->context);
    CVY_CU(s, cuLaunchKernel, kernel->function, (unsigned)grid[0], (unsigned)grid[1], (unsigned)grid[2],
           (unsigned)threads, 1, 1, 0, s->stream[lane], at, NULL);
    return CVY_OK;
}

const cvy_gpu_driver cvy_cuda_driver = {
    .build = cuda_build,
    .unbuild = cuda_unbuild,
    .find = cuda_find,
    .launch = cuda_launch,
    .libraries = cvy_vendors_print,
};
