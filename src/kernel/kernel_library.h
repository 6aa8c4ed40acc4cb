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

#include "kernel/kernel.h"

typedef struct cvy_library_def {
    const char *name, *help; /* "native"; one line */
    /* Version and limits of the loaded library, such as "oneDNN 2.6.3 instructions 0xfff"; NULL: it has none of its
     * own. */
    void (*about)(char *text, size_t room);
    /* Reorders (kernel.h), if it has any. CVY_NOT_APPLICABLE: the plain loops do this pair of layouts. */
    cvy_status (*reorder_create)(const cvy_shape *shape, const cvy_memory_format *from, const cvy_memory_format *to,
                                 int threads, void **call_out);
    void (*reorder_run)(void *call, const void *src, void *dst);
    void (*reorder_destroy)(void *call);
} cvy_library_def;

#define CVY_LIBRARY_DEFINE(id) const cvy_library_def cvy_library_##id##_def

const cvy_library_def *const *cvy_library_table(int *count_out);
const cvy_library_def *cvy_library_find(const char *name);

/* The library that a kernel belongs to; NULL for a reference kernel. */
const cvy_library_def *cvy_kernel_library(const cvy_kernel_def *kernel);
/* Writes what all libraries report about themselves. Measured times are valid only with the same text. */
void cvy_kernel_libraries_about(char *text, size_t room);

enum { CVY_KERNELS_MAX = 8 };

/* Which kernels a plan may use. All zeros: all of them. The reference kernels are always allowed. */
typedef struct cvy_kernels {
    int listed; /* only kernels of `library`, asked in this order; 0: of all libraries, by preference */
    int nlibrary;
    const cvy_library_def *library[CVY_KERNELS_MAX];
    int no_winograd;
    int by_clock; /* nothing is computed: a step waits for the times of the kernels that would run */
} cvy_kernels;

/* The words with which a choice is written; NULL after the last. */
const char *cvy_kernels_word(int i, const char **help_out);
/* Reads one word, or library names separated by commas; NULL means "auto". A fault is CVY_E_CONFIG, with the known
 * words. */
cvy_status cvy_kernels_parse(const char *text, cvy_kernels *out);
/* Whether only reference kernels are allowed. */
static inline int cvy_kernels_are_reference(const cvy_kernels *kernels)
{
    return kernels->listed && kernels->nlibrary == 0;
}
/* The position of a kernel in the order of asking: 0 is first; negative: it is not asked. */
int cvy_kernels_place(const cvy_kernels *kernels, const cvy_kernel_def *kernel);
/* Whether one of them runs updates that compute their gradients themselves. */
int cvy_kernels_fuse_updates(const cvy_kernels *kernels);

#endif
