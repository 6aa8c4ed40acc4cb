/*
 * gpu.h: what all GPUs have in common: kernels that are compiled at run time from one text (device.h), for any driver.
 *
 * A driver is a backend (backend.h) whose descriptor has a cvy_gpu_driver: gpu_cuda.c, gpu_opencl.c, and the emulated
 * device of the tests. It holds memory, lanes and marks, and the four functions below. Everything else is shared: the
 * modules that are built, the addition of micro-batches, reads and writes of any host memory.
 *
 * A kernel is one file, which is compiled twice: its host half is a part of the library, its device half is text. The
 * build collects the texts of all files with a line that begins with KERNEL( (tools/make_kernels.sh). The file
 * gpu_x.c gives the source CVY_GPU_SOURCE(gpu_x).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_GPU_H
#define CVY_GPU_H

#include "backend/backend.h"

typedef struct cvy_gpu_source {
    const char *name; /* of the file, without .c */
    const char *text; /* the device half, with device.h before it */
} cvy_gpu_source;

/* The source of a file; declare it with CVY_GPU_SOURCE_DECLARE(id); in the file. */
#define CVY_GPU_SOURCE(id) (&cvy_gpu_source_##id)
#define CVY_GPU_SOURCE_DECLARE(id) extern const cvy_gpu_source cvy_gpu_source_##id
extern const cvy_gpu_source *const cvy_gpu_sources[]; /* all of them; the last is NULL */

/* One argument of a kernel. bytes 0: `at` is the address of a pointer into the space; else: of a value of this size. */
typedef struct cvy_gpu_arg {
    const void *at;
    size_t bytes;
} cvy_gpu_arg;

#define CVY_GPU_POINTER(p)                                                                                             \
    {                                                                                                                  \
        &(p), 0                                                                                                        \
    }
#define CVY_GPU_VALUE(v)                                                                                               \
    {                                                                                                                  \
        &(v), sizeof(v)                                                                                                \
    }

struct cvy_text;

typedef struct cvy_gpu_driver {
    /* Compiles a source. act: the dtype of activations, f32 or bf16 (the macro BF16 of device.h). A source that the
     * compiler refuses is CVY_NOT_APPLICABLE, with its words; any other fault, of compiler or device, is an error. */
    cvy_status (*build)(void *state, const cvy_gpu_source *source, cvy_dtype act, void **module_out);
    void (*unbuild)(void *state, void *module);
    /* The kernel KERNEL(name) of a module; it is freed with the module. */
    cvy_status (*find)(void *state, void *module, const char *name, void **kernel_out);
    /* grid: blocks; threads: of a block, at most 256. Puts the kernel into the lane and returns. */
    cvy_status (*launch)(void *state, cvy_lane lane, void *kernel, const int grid[3], int threads,
                         const cvy_gpu_arg *args, int nargs);
    /* Writes a line for each library of the vendor that is used on its devices: version and file, or why it is not
     * used. NULL: there are none. */
    void (*libraries)(struct cvy_text *out);
} cvy_gpu_driver;

typedef struct cvy_gpu_module cvy_gpu_module;

/* The part of a space's state that all drivers share: the first member of a driver's own state. */
typedef struct cvy_gpu {
    const cvy_backend_def *backend;
    cvy_device device;
    cvy_gpu_module *modules; /* those that are built, the latest first */
    void *pinned[2];         /* page-locked memory through which other host memory is copied, made when first used */
    size_t pinned_bytes;
    cvy_mark *before; /* for copies: what is in the lane COMPUTE */
    int is_sync;      /* CONVOY_SYNC: the host waits for each kernel, so a fault is found where it happens */
    int *hold;        /* in the space's memory: see cvy_gpu_hold() */
    char note[700];   /* why a library that is installed cannot be used here; empty: it can */
} cvy_gpu;

/* Called by a driver's open, after its own work, and by its close, before it. */
void cvy_gpu_begin(cvy_gpu *gpu, const cvy_backend_def *backend);
void cvy_gpu_end(cvy_gpu *gpu);
/* The number of the device that a place means. A fault names how many there are, and which rank wants which. */
cvy_status cvy_gpu_number(const cvy_backend_def *backend, const cvy_place *place, int *number_out);

/* For a driver's build: writes the lines of a compiler's log that name an error, or its first lines if none does, as
 * one line. */
void cvy_gpu_shorten_log(const char *log, char *text, size_t room);

/* For a driver's build, gpu_cache.c: code that was compiled before, by a text that says all on which it depends. */
int cvy_gpu_cache_find(const char *key, char **code_out, size_t *bytes_out);
void cvy_gpu_cache_keep(const char *key, const char *code, size_t bytes);

/* Slots of backend.h that are the same for all drivers. */
cvy_status cvy_gpu_add(void *state, cvy_lane lane, cvy_dtype dtype, int64_t n, void *sum, const void *part);

/* Copies between any host memory and the space, in pieces through page-locked memory; complete on return. */
cvy_status cvy_gpu_read(const cvy_space *space, void *host, const void *from, size_t bytes);
cvy_status cvy_gpu_write(const cvy_space *space, void *to, const void *host, size_t bytes);

/* A number in the space's memory, 0 from the start. While it is not 0, updates are held: kernels that change weights,
 * states and statistics (`can_hold` in kernel.h) write nothing. All of that runs in the lane COMPUTE. */
cvy_status cvy_gpu_hold(const cvy_space *space, int **out);

/* Whether ranges of memory hold finite numbers only: two launches, whatever the number of ranges, and a copy of one
 * number to the host. The ranges are fixed at create. start puts the check into the lane COMPUTE, and holds updates
 * that are put there after it if a number is not finite. end waits until the check is done, and lets updates go on that
 * are put into the lane after it. is_done: whether end would not wait. */
typedef struct cvy_gpu_range {
    const void *data;
    int64_t elems;
    cvy_dtype dtype; /* f32, f64 or bf16 */
} cvy_gpu_range;
typedef struct cvy_gpu_finite cvy_gpu_finite;
cvy_status cvy_gpu_finite_create(const cvy_space *space, const cvy_gpu_range *ranges, int n, cvy_gpu_finite **out);
cvy_status cvy_gpu_finite_start(cvy_gpu_finite *f);
int cvy_gpu_finite_is_done(const cvy_gpu_finite *f);
cvy_status cvy_gpu_finite_end(cvy_gpu_finite *f, int *finite_out);
void cvy_gpu_finite_destroy(cvy_gpu_finite **f);

typedef struct cvy_gpu_kernel {
    cvy_gpu *gpu;
    void *handle; /* of the driver */
    const char *name;
} cvy_gpu_kernel;

/* Gives a kernel, and builds its source when it is first asked for. If it does not compile: CVY_NOT_APPLICABLE, with
 * device, source and the compiler's words; an offer returns it, and the planner goes on to the next kernel. */
cvy_status cvy_gpu_kernel_get(const cvy_space *space, const cvy_gpu_source *source, const char *name, cvy_dtype act,
                              cvy_gpu_kernel *out);

/* Whether the host waits for each kernel of the space. */
int cvy_gpu_is_sync(const cvy_space *space);

/* Kernels that copy along a walk (device.h) from the first tensor to the second, from f32 to bf16 and back if the
 * dtypes differ; and that add to the second one, f32 or bf16. */
struct walk;
cvy_status cvy_gpu_copy_get(const cvy_space *space, cvy_dtype from, cvy_dtype to, cvy_gpu_kernel *out);
cvy_status cvy_gpu_sum_get(const cvy_space *space, cvy_dtype dtype, cvy_gpu_kernel *out);
cvy_status cvy_gpu_copy_walk(const cvy_gpu_kernel *kernel, cvy_lane lane, const struct walk *w, const void *from,
                             void *to);

/* Adds a line for each source that does not compile, with the compiler's words, and one for a library that cannot be
 * used. Nothing for the host. */
void cvy_gpu_name_faults(const cvy_space *space, struct cvy_text *out);

/* Puts a kernel into a lane, and into the lane COMPUTE. A grid without blocks is no work. */
cvy_status cvy_gpu_launch_in(const cvy_gpu_kernel *kernel, cvy_lane lane, int64_t x, int64_t y, int64_t z, int threads,
                             const cvy_gpu_arg *args, int nargs);
cvy_status cvy_gpu_launch(const cvy_gpu_kernel *kernel, int64_t x, int64_t y, int64_t z, int threads,
                          const cvy_gpu_arg *args, int nargs);
/* The same with the arguments behind: CVY_GPU_LAUNCH(&k, x, y, z, 256, CVY_GPU_POINTER(src[0]), CVY_GPU_VALUE(a)). */
#define CVY_GPU_LAUNCH(kernel, x, y, z, threads, ...)                                                                  \
    cvy_gpu_launch(kernel, x, y, z, threads, (const cvy_gpu_arg[]){__VA_ARGS__},                                       \
                   (int)(sizeof((const cvy_gpu_arg[]){__VA_ARGS__}) / sizeof(cvy_gpu_arg)))

enum {
    CVY_GPU_THREADS = 256,       /* of a block, unless a kernel says otherwise */
    CVY_GPU_BLOCKS_MAX = 1 << 14 /* of a kernel whose threads go on by strides of the whole grid */
};
/* The number of blocks for n elements. */
static inline int64_t cvy_gpu_blocks(int64_t n)
{
    const int64_t blocks = (n + CVY_GPU_THREADS - 1) / CVY_GPU_THREADS;
    return blocks < 1 ? 1 : blocks > CVY_GPU_BLOCKS_MAX ? CVY_GPU_BLOCKS_MAX : blocks;
}

#endif
