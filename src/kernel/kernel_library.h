/*
 * kernel_library.h: the libraries that kernels come from, and the choice of kernels that a user makes by their names.
 *
 * A kernel library is a folder of src/kernel: its descriptor registers itself, and each of its kernels is named
 * "<library>.<kernel>". The reference kernels, which stand in the operators' own files, are the fallback of every
 * choice: each operator has one, and no library has kernels for all operators.
 */
#ifndef CVY_KERNEL_LIBRARY_H
#define CVY_KERNEL_LIBRARY_H

#include "kernel/kernel.h"

typedef struct cvy_library_def {
    const char *name, *help; /* "native"; one line */
    /* Version and limits of what is loaded, such as "oneDNN 2.6.3 instructions 0xfff"; NULL: it has none of its own. */
    void (*about)(char *text, size_t room);
    /* Reorders (kernel.h), if it has any: CVY_NOT_APPLICABLE leaves a pair of layouts to the plain loops. */
    cvy_status (*reorder_create)(const cvy_shape *shape, const cvy_memory_format *from, const cvy_memory_format *to,
                                 int threads, void **call_out);
    void (*reorder_run)(void *call, const void *src, void *dst);
    void (*reorder_destroy)(void *call);
} cvy_library_def;

#define CVY_LIBRARY_DEFINE(id) const cvy_library_def cvy_library_##id##_def

const cvy_library_def *const *cvy_library_table(int *count_out);
const cvy_library_def *cvy_library_find(const char *name);

/* The library that a kernel belongs to; NULL: none, as with the reference kernels. */
const cvy_library_def *cvy_kernel_library(const cvy_kernel_def *kernel);
/* What all libraries say about themselves: times that were measured hold for one such text. */
void cvy_kernel_libraries_about(char *text, size_t room);

enum { CVY_KERNELS_MAX = 8 };

/* Which kernels a plan may use. All zeros: all of them. The reference kernels are always allowed. */
typedef struct cvy_kernels {
    int listed; /* only those of `library`, the first of which is asked first; 0: those of all, by preference */
    int nlibrary;
    const cvy_library_def *library[CVY_KERNELS_MAX];
    int no_winograd;
    int by_clock; /* nothing is computed: a step waits for the times of the kernels that would have run */
} cvy_kernels;

/* The words that a choice is written with; NULL after the last. */
const char *cvy_kernels_word(int i, const char **help_out);
/* Reads one word, or libraries separated by commas; NULL: "auto". CVY_E_CONFIG, with the known words. */
cvy_status cvy_kernels_parse(const char *text, cvy_kernels *out);
/* The reference kernels alone. */
static inline int cvy_kernels_are_reference(const cvy_kernels *kernels)
{
    return kernels->listed && kernels->nlibrary == 0;
}
/* How early a kernel is asked: 0 first; negative: not at all. */
int cvy_kernels_place(const cvy_kernels *kernels, const cvy_kernel_def *kernel);

#endif
