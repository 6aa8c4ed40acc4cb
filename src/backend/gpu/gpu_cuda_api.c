/*
 * gpu_cuda_api.c: loads libcuda.so.1 and NVRTC.
 *
 * NVRTC comes with the CUDA toolkit and with Python packages, in versions that are named in the file. A driver loads no
 * code of a newer CUDA, and a new NVRTC no longer compiles for old devices, so the newest one that serves most of the
 * devices is taken. CONVOY_NVRTC names another file.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/gpu_cuda_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static cvy_cuda_api api;
static char why[500];
static pid_t started_in; /* the process that has started the driver */

static void find(void *library, const char *file, const char *name, void *out)
{
    void *at = dlsym(library, name);
    if (!at && !why[0])
        snprintf(why, sizeof why, "%s has no function %s: it is older than CUDA 12, which convoy needs", file, name);
    memcpy(out, &at, sizeof at);
}

/* ---- the driver ---- */

/* The toolkit's stub, which serves only to link programs, has no words for its error. */
static const char *text_of(cvy_cu_result result)
{
    const char *text = NULL;
    if (result == CVY_CU_STUB_LIBRARY)
        return "libcuda.so.1 is the CUDA toolkit's stub, not the driver: leave its folder out of LD_LIBRARY_PATH";
    (void)api.cuGetErrorString(result, &text);
    return text ? text : "an unknown error";
}

static void start(void)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    const cvy_cu_result result = api.cuInit(0);
    if (result == 0)
        return;
    snprintf(why, sizeof why, "the CUDA driver does not start: %s (%d)", text_of(result), result);
    if (result == CVY_CU_NO_DEVICE && visible) {
        const size_t n = strlen(why);
        snprintf(why + n, sizeof why - n, "; CUDA_VISIBLE_DEVICES is \"%.80s\", which hides all others", visible);
    }
}

static void load_driver(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver) {
        const char *error = dlerror();
        snprintf(why, sizeof why, "NVIDIA's driver cannot be loaded (%s)", error ? error : "libcuda.so.1");
        return;
    }
#define FIND(name, parameters) find(driver, "libcuda.so.1", #name, &api.name);
    CVY_CUDA_FUNCTIONS(FIND)
#undef FIND
    if (!why[0])
        start();
}

/* ---- the compiler ---- */

int cvy_cuda_compiles_for(const cvy_cuda_api *cu, int architecture)
{
    int list[256], n = 0, found = 0;
    if (cu->nvrtcGetNumSupportedArchs(&n) != 0 || n < 1 || n > CVY_COUNT(list) || cu->nvrtcGetSupportedArchs(list) != 0)
        return 1;
    for (int i = 0; i < n; i++)
        found |= list[i] == architecture;
    return found;
}

static int devices_served(void)
{
    int n = 0, served = 0;
    if (api.cuDeviceGetCount(&n) != 0)
        return 0;
    for (int i = 0; i < n; i++) {
        cvy_cu_device device;
        int major = 0, minor = 0;
        if (api.cuDeviceGet(&device, i) == 0 && api.cuDeviceGetAttribute(&major, CVY_CU_MAJOR, device) == 0 &&
            api.cuDeviceGetAttribute(&minor, CVY_CU_MINOR, device) == 0)
            served += cvy_cuda_compiles_for(&api, 10 * major + minor);
    }
    return served;
}

/* Takes the functions of this compiler. Returns how many devices it serves; -1: the driver does not load its code, or
 * it lacks a function. `why` then says so. */
static int try_compiler(void *compiler, const char *file)
{
    int version[2] = {0}, driver = 0;
    why[0] = 0;
#define FIND(name, parameters) find(compiler, file, #name, &api.name);
    CVY_NVRTC_FUNCTIONS(FIND)
#undef FIND
    if (why[0])
        return -1;
    if (api.nvrtcVersion(&version[0], &version[1]) == 0 && api.cuDriverGetVersion(&driver) == 0 &&
        version[0] > driver / 1000) {
        snprintf(why, sizeof why,
                 "NVRTC %d.%d (%.200s) is newer than the driver, which is for CUDA %d.%d and does not load its code: "
                 "install NVRTC of CUDA %d, or a newer driver",
                 version[0], version[1], file, driver / 1000, driver % 1000 / 10, driver / 1000);
        return -1;
    }
    return devices_served();
}

static void load_compiler(void)
{
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                        "/usr/local/cuda/lib64/libnvrtc.so"};
    const char *given = getenv("CONVOY_NVRTC"), *error = NULL, *best_file = NULL;
    const int is_given = given && *given;
    void *best = NULL;
    int most = -2;
    for (int i = 0; i < (is_given ? 1 : CVY_COUNT(names)); i++) {
        const char *file = is_given ? given : names[i];
        void *compiler = dlopen(file, RTLD_NOW | RTLD_LOCAL);
        const int served = compiler ? try_compiler(compiler, file) : -2;
        if (!compiler && !error)
            error = file;
        if (served > most) {
            most = served;
            best = compiler;
            best_file = file;
        }
    }
    if (best)
        (void)try_compiler(best, best_file);
    else
        snprintf(why, sizeof why,
                 "NVRTC, which compiles the kernels, cannot be loaded (%s): install the CUDA toolkit's libnvrtc, or "
                 "name its file in CONVOY_NVRTC",
                 error);
}

static void load(void)
{
    load_driver();
    if (!why[0])
        load_compiler();
    started_in = getpid();
}

cvy_cuda_api *cvy_cuda(const char **why_out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (!why[0] && getpid() != started_in)
        snprintf(why, sizeof why,
                 "this process was forked from one that had started CUDA, which CUDA does not allow: fork before "
                 "convoy opens a device, or start a new program (in Python: multiprocessing with \"spawn\")");
    if (why_out)
        *why_out = why;
    return why[0] ? NULL : &api;
}
