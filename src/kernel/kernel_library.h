/*
 * kernel_library.h: the libraries that kernels come from, and the choice of kernels that a user makes by their names.
 *
 * A kernel library is a folder of src/kernel: its descriptor registers itself, and each of its kernels is named
 * "<library>.<kernel>". The reference kernels are in the operators' own files. They are the fallback of every choice,
 * because each operator has one, and no library has kernels for all operators.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_KERNEL_LIBRARY_H
#define CVY_KERNEL_LIBRARY_H

#include <string.h>

#include "kernel/kernel.h"

/* A call of a kernel in a plan, with its tensors, which stay where they are. */
typedef struct cvy_kernel_call {
    const cvy_kernel_def *kernel;
    void *state; /* from its create */
    void *const *src, *const *dst;
} cvy_kernel_call;

typedef struct cvy_library_def {
    const char *name, *help; /* "native"; one line */
    int on_gpu;              /* its kernels work on the memory of a GPU; 0: on the host's */
    const char *backend;     /* ... only of this backend, "cuda"; NULL: of each */
    /* Version and limits of the loaded library, such as "oneDNN 2.6.3 instructions 0xfff"; NULL: it has none of its
     * own. */
    void (*about)(const cvy_space *space, char *text, size_t room);
    /* Reorders (kernel.h), if it has any. CVY_NOT_APPLICABLE: the plain loops do this pair of layouts. */
    cvy_status (*reorder_create)(const cvy_space *space, const cvy_shape *shape, const cvy_memory_format *from,
                                 const cvy_memory_format *to, int threads, void **call_out);
    cvy_status (*reorder_run)(void *call, const void *src, void *dst);
    void (*reorder_destroy)(void *call);
    /* Told when a plan is bound: calls of its kernels with nothing between them, which always run one after another.
     * The run of the first may then do the work of others. NULL: each call does its own. */
    cvy_status (*join)(const cvy_space *space, const cvy_kernel_call *calls, int n);
    int tf32; /* it rounds f32 factors to TF32 if the ask allows it */
    /* Whether it can be used on a space that it fits. CVY_NOT_APPLICABLE says in a sentence why not. NULL: always. */
    cvy_status (*ready)(const cvy_space *space);
} cvy_library_def;

#define CVY_LIBRARY_DEFINE(id) const cvy_library_def cvy_library_##id##_def

const cvy_library_def *const *cvy_library_table(int *count_out);
const cvy_library_def *cvy_library_find(const char *name);

/* The library that a kernel belongs to; NULL for a reference kernel. */
const cvy_library_def *cvy_kernel_library(const cvy_kernel_def *kernel);
/* Whether a kernel can work on the memory of a space. */
int cvy_kernel_fits(const cvy_kernel_def *kernel, const cvy_space *space);
/* Writes what the libraries for a space report about themselves. Measured times are valid only with the same text. */
void cvy_kernel_libraries_about(const cvy_space *space, char *text, size_t room);

enum { CVY_KERNELS_MAX = 8 };

/* Which kernels a plan may use. All zeros: all of them. The reference kernels are always allowed. */
typedef struct cvy_kernels {
    int listed; /* only kernels of `library`, asked in this order; 0: of all libraries, by preference */
    int nlibrary;
    const cvy_library_def *library[CVY_KERNELS_MAX];
    int no_winograd;
    int by_clock;           /* nothing is computed: a step waits for the times of the kernels that would run */
    const cvy_space *space; /* where the tensors are: only kernels of libraries for it can run; NULL: the host */
} cvy_kernels;

/* Whether a library can work on the memory of a space. */
static inline int cvy_library_fits(const cvy_library_def *library, const cvy_space *space)
{
    return library->on_gpu == (space && space->backend->gpu != NULL) &&
           (!library->backend || strcmp(library->backend, space->backend->name) == 0);
}

/* The words with which a choice is written; NULL after the last. */
const char *cvy_kernels_word(int i, const char **help_out);
/* Reads one word, or library names separated by commas; NULL means "auto". A fault is CVY_E_CONFIG, with the known
 * words. */
cvy_status cvy_kernels_parse(const char *text, cvy_kernels *out);
/* Ties a choice to a space. CVY_E_CONFIG: it names a library whose kernels cannot work there. */
cvy_status cvy_kernels_tie(cvy_kernels *kernels, const cvy_space *space);
/* Whether only reference kernels are allowed. */
static inline int cvy_kernels_are_reference(const cvy_kernels *kernels)
{
    return kernels->listed && kernels->nlibrary == 0;
}
/* The position of a kernel in the order of asking: 0 is first; negative: it is not asked. */
int cvy_kernels_place(const cvy_kernels *kernels, const cvy_kernel_def *kernel);
/* Whether one of their libraries rounds f32 factors to TF32. CVY_NOT_APPLICABLE says in a sentence why not. */
cvy_status cvy_kernels_tf32(const cvy_kernels *kernels);
/* Whether one of them runs updates that compute their gradients themselves. */
int cvy_kernels_fuse_updates(const cvy_kernels *kernels);

#endif
