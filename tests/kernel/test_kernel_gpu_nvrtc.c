/* rows: release */
/* seconds: 30 */
/*
 * test_kernel_gpu_nvrtc.c: NVIDIA's run-time compiler, which needs no GPU, compiles all kernels for GPUs, and none of
 * them keeps registers in memory, but for a few around a division of doubles or i64, which is a call. It prints how
 * many registers and how many bytes of memory they take.
 *
 * ctest compiles for sm_90; CONVOY_TEST_LEVEL=2 also for sm_80 and sm_100. Without the library it is skipped.
 *
 *   test_kernel_gpu_nvrtc --texts FOLDER    writes the text of each source into FOLDER/<source>.cl and ends
 *
 * Source: NVIDIA, NVRTC User Guide.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "backend/gpu/gpu.h"
#include "base/base_file.h"
#include "test_util.h"

typedef void *program; /* nvrtcProgram */
static struct {
    int (*nvrtcVersion)(int *, int *);
    const char *(*nvrtcGetErrorString)(int);
    int (*nvrtcCreateProgram)(program *, const char *, const char *, int, const char *const *, const char *const *);
    int (*nvrtcCompileProgram)(program, int, const char *const *);
    int (*nvrtcGetProgramLogSize)(program, size_t *);
    int (*nvrtcGetProgramLog)(program, char *);
    int (*nvrtcDestroyProgram)(program *);
} nvrtc;

static int load(void)
{
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so.13",
                                        "/usr/local/cuda/lib64/libnvrtc.so.12"};
    void *library = NULL;
    for (int i = 0; i < CVY_COUNT(names) && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return 0;
#define FIND(name)                                                                                                     \
    do {                                                                                                               \
        void *at = dlsym(library, #name);                                                                              \
        EXPECT(at != NULL);                                                                                            \
        memcpy(&nvrtc.name, &at, sizeof at);                                                                           \
    } while (0)
    FIND(nvrtcVersion);
    FIND(nvrtcGetErrorString);
    FIND(nvrtcCreateProgram);
    FIND(nvrtcCompileProgram);
    FIND(nvrtcGetProgramLogSize);
    FIND(nvrtcGetProgramLog);
    FIND(nvrtcDestroyProgram);
#undef FIND
    return test_failures == 0;
}

/* What ptxas writes of each kernel: "... 0 bytes spill stores, 0 bytes spill loads" and "... Used 32 registers". */
struct seen {
    int kernels, registers, bytes; /* the most of a kernel; bytes: of registers in memory, read and written */
};

enum { CALL_BYTES = 64 };

static void read_log(const char *source, const char *log, struct seen *seen)
{
    char kernel[128] = "?";
    for (const char *at = log; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        char line[400], name[128];
        int stores = 0, loads = 0, used = 0;
        snprintf(line, sizeof line, "%.*s", (int)CVY_MIN(strcspn(at, "\n"), sizeof line - 1), at);
        const char *entry = strstr(line, "Compiling entry function '"), *spill = strstr(line, "bytes stack frame, ");
        const char *registers = strstr(line, "Used ");
        if (entry && sscanf(entry, "Compiling entry function '%127[^']'", name) == 1)
            snprintf(kernel, sizeof kernel, "%s", name);
        if (spill &&
            sscanf(spill, "bytes stack frame, %d bytes spill stores, %d bytes spill loads", &stores, &loads) == 2) {
            test_checks++;
            seen->bytes = CVY_MAX(seen->bytes, stores + loads);
            if (stores + loads > CALL_BYTES)
                TEST_FAIL("%s: %s keeps registers in memory: %d bytes stores, %d bytes loads", source, kernel, stores,
                          loads);
        }
        if (registers && sscanf(registers, "Used %d registers", &used) == 1) {
            seen->kernels++;
            seen->registers = CVY_MAX(seen->registers, used);
        }
    }
}

static void compile(const cvy_gpu_source *source, const char *architecture, int bf16, struct seen *seen)
{
    char option[40];
    snprintf(option, sizeof option, "-arch=%s", architecture);
    const char *const options[] = {option, bf16 ? "-DBF16=1" : "-DBF16=0", "--std=c++17", "--ptxas-options=-v"};
    program p = NULL;
    size_t bytes = 0;
    char *log = NULL;
    EXPECT_INT(nvrtc.nvrtcCreateProgram(&p, source->text, source->name, 0, NULL, NULL), 0);
    const int error = nvrtc.nvrtcCompileProgram(p, CVY_COUNT(options), options);
    EXPECT_INT(nvrtc.nvrtcGetProgramLogSize(p, &bytes), 0);
    EXPECT_OK(cvy_mem_alloc(bytes + 1, &log));
    EXPECT_INT(nvrtc.nvrtcGetProgramLog(p, log), 0);
    if (error)
        TEST_FAIL("%s (%s) for %s: %s\n%s", source->name, bf16 ? "bf16" : "f32", architecture,
                  nvrtc.nvrtcGetErrorString(error), log);
    else
        read_log(source->name, log, seen);
    cvy_mem_free(&log);
    EXPECT_INT(nvrtc.nvrtcDestroyProgram(&p), 0);
}

static int write_texts(const char *folder)
{
    for (const cvy_gpu_source *const *s = cvy_gpu_sources; *s; s++) {
        char path[400];
        snprintf(path, sizeof path, "%s/%s.cl", folder, (*s)->name);
        EXPECT_OK(cvy_file_replace(path, (*s)->text, strlen((*s)->text)));
    }
    return test_end();
}

int main(int argc, char **argv)
{
    static const char *const architectures[] = {"sm_90", "sm_80", "sm_100"};
    const char *level = getenv("CONVOY_TEST_LEVEL");
    int major = 0, minor = 0;
    if (argc == 3 && strcmp(argv[1], "--texts") == 0)
        return write_texts(argv[2]);
    if (!load()) {
        printf("skipped: there is no libnvrtc.so.13 or .12 (%s)\n", dlerror());
        return test_failures ? test_end() : 77;
    }
    EXPECT_INT(nvrtc.nvrtcVersion(&major, &minor), 0);
    printf("NVRTC %d.%d\n", major, minor);
    for (int a = 0; a < (level && atoi(level) >= 2 ? CVY_COUNT(architectures) : 1); a++)
        for (const cvy_gpu_source *const *s = cvy_gpu_sources; *s; s++) {
            const int failures = test_failures;
            struct seen seen = {0};
            for (int bf16 = 0; bf16 < 2; bf16++)
                compile(*s, architectures[a], bf16, &seen);
            EXPECT(seen.kernels > 0);
            printf("%s %s %s: %d kernels, at most %d registers, %d bytes\n",
                   test_failures == failures ? "ok    " : "FAILED", architectures[a], (*s)->name, seen.kernels,
                   seen.registers, seen.bytes);
        }
    return test_end();
}
