/*
 * data_hdf5_private.c: a libhdf5 of libconvoy's own, which the program that uses libconvoy does not see.
 *
 * A program may be linked with another version of HDF5, or load one later, as h5py and netCDF4 do. The dynamic linker
 * finds functions by their names alone, in the program's libraries first, so one of the two would call functions of the
 * other one's version. Therefore the shared libconvoy is not linked with libhdf5. It loads it: RTLD_LOCAL keeps it from
 * being found by others, and RTLD_DEEPBIND, if the program has another one, lets it find itself first. Each function of
 * HDF5 that our sources call is defined here as a jump through a pointer, and each of its variables as a copy.
 * tools/list_hdf5.sh lists them.
 *
 * This file is part of the shared library alone (cmake/ConvoyPrivateHdf5.cmake); other programs, such as convoy-hdf5,
 * are linked with libhdf5. Source: dlopen(3).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <dlfcn.h>
#include <stdio.h>

#include "data/hdf5/data_hdf5.h"

#ifndef RTLD_DEEPBIND /* musl */
#define RTLD_DEEPBIND 0
#endif

#ifdef __x86_64__
#define JUMP_THROUGH(pointer) "endbr64\n\tjmp *" pointer "(%rip)"
#else /* aarch64; the first instruction is `bti c`, which older processors ignore */
#define JUMP_THROUGH(pointer) "hint #34\n\tadrp x16, " pointer "\n\tldr x16, [x16, :lo12:" pointer "]\n\tbr x16"
#endif

/* The pointers are used by name in the assembler's text. */
#define CVY_H5_FUNCTION(name)                                                                                          \
    extern void *cvy_h5_to_##name __attribute__((visibility("hidden")));                                               \
    void *cvy_h5_to_##name __attribute__((used));                                                                      \
    __asm__(".text\n\t.globl " #name "\n\t.hidden " #name "\n\t.type " #name ", %function\n" #name                     \
            ":\n\t" JUMP_THROUGH("cvy_h5_to_" #name) "\n\t.size " #name ", .-" #name "\n");
#define CVY_H5_NUMBER(name)                                                                                            \
    hid_t name;                                                                                                        \
    static const hid_t *their_##name;
#include "data/hdf5/data_hdf5_symbols.h"
#undef CVY_H5_FUNCTION
#undef CVY_H5_NUMBER

static herr_t (*their_open)(void);

/* In the place of a function that is not there: a fault of HDF5. */
typedef long (*any_fn)(void);
static long missing(void)
{
    return -1;
}

static herr_t missing_open(void)
{
    return -1;
}

enum { HOW = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE };

/* Whether the program has a malloc() that is not libc's: a sanitizer's or jemalloc's, for example. */
static int has_own_malloc(void)
{
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    const int differs = libc && dlsym(libc, "malloc") != dlsym(RTLD_DEFAULT, "malloc");
    if (libc)
        dlclose(libc);
    return differs;
}

/* RTLD_DEEPBIND is only for a program that has another HDF5. It would also let libhdf5 find libc's free() before that
 * of the program, and strdup() of libc calls the program's malloc(); sanitizers end a process that uses it. All names
 * are bound now, so what the program loads later does not matter. */
static void *open_library(char *why, size_t room)
{
    void *library = dlopen(CVY_HDF5_SONAME, HOW | RTLD_NOLOAD);
    const int has_other = !library && dlsym(RTLD_DEFAULT, "H5open") != NULL;
    if (has_other && has_own_malloc())
        snprintf(why, room,
                 "%s is not loaded, because this program has another HDF5 and a malloc() of its own, such as that of a "
                 "sanitizer or of jemalloc: run it without one of them, or build convoy with this HDF5 and "
                 "-DCONVOY_PRIVATE_HDF5=OFF",
                 CVY_HDF5_SONAME);
    else if (!library)
        library = dlopen(CVY_HDF5_SONAME, HOW | (has_other ? RTLD_DEEPBIND : 0));
    return library;
}

/* Whether the symbol was found; why: the reason of the first that was not. */
static int find(void *library, const char *name, void **out, char *why, size_t room)
{
    *out = library ? dlsym(library, name) : NULL;
    if (!*out && !*why) {
        const char *reason = dlerror();
        snprintf(why, room,
                 "%s, with which this libconvoy was built, does not load (%s): install it, or name its folder in "
                 "LD_LIBRARY_PATH",
                 CVY_HDF5_SONAME, reason ? reason : name);
    }
    return *out != NULL;
}

const char *cvy_h5_private_load(void)
{
    static char why[1024];
    if (their_open)
        return *why ? why : NULL;
    void *library = open_library(why, sizeof why), *found = NULL, *instead = NULL;
    *(any_fn *)&instead = missing;
    their_open = missing_open;
    if (find(library, "H5open", &found, why, sizeof why))
        *(void **)&their_open = found; /* POSIX's way to make a pointer to a function of it */
#define CVY_H5_FUNCTION(name)                                                                                          \
    if (!find(library, #name, &cvy_h5_to_##name, why, sizeof why))                                                     \
        cvy_h5_to_##name = instead;
#define CVY_H5_NUMBER(name)                                                                                            \
    if (find(library, #name, &found, why, sizeof why))                                                                 \
        their_##name = found;
#include "data/hdf5/data_hdf5_symbols.h"
#undef CVY_H5_FUNCTION
#undef CVY_H5_NUMBER
    return *why ? why : NULL;
}

/* HDF5's macros call it before they read one of its variables, which have their values from then on. */
herr_t H5open(void)
{
    static int is_copied;
    const herr_t status = their_open();
    if (status >= 0 && !is_copied) {
        is_copied = 1;
#define CVY_H5_FUNCTION(name)
#define CVY_H5_NUMBER(name)                                                                                            \
    if (their_##name)                                                                                                  \
        name = *their_##name;
#include "data/hdf5/data_hdf5_symbols.h"
#undef CVY_H5_FUNCTION
#undef CVY_H5_NUMBER
    }
    return status;
}
