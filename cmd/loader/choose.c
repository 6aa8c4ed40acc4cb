/*
 * choose.c: chooses the MPI library of this process, loads it, and names the build for it.
 *
 * The MPI library is that of the launcher. It is found as any shared library is: LD_LIBRARY_PATH, which modules set,
 * and the folders of the system. A process that no launcher has started needs none: libdir/mpich/alone.so, which stands
 * for one (mpi_alone.c), is taken if there is no other.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "choose.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_launch.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

typedef struct variant {
    cmd_mpi_family family;
    const char *name;       /* of the folder, and the value of CONVOY_MPI */
    const char *of;         /* for messages */
    const char *library[4]; /* names under which the MPI library is looked for, in this order */
} variant;

/* Without a launcher the first one whose MPI library is there is taken. */
static const variant variants[] = {
    {CMD_MPI_OPENMPI, "openmpi", "Open MPI", {"libmpi.so.40"}},
    {CMD_MPI_MPICH,
     "mpich",
     "MPICH, Intel MPI, Cray MPICH or MVAPICH",
     {"libmpi.so.12", "libmpich.so.12" /* Debian */, "libmpi_gnu_123.so.12" /* Cray */, "libmpi_gnu_91.so.12"}},
};

static const char *given(void)
{
    const char *value = getenv("CONVOY_MPI");
    return value && *value ? value : NULL;
}

/* Loads the MPI library of a variant. With `loaded` it must be part of this process already. text_out: why the first
 * name did not load. */
static int load_mpi(const variant *v, int loaded, char *text_out, size_t room)
{
    *text_out = '\0';
    for (int i = 0; i < COUNT(v->library) && v->library[i]; i++) {
        if (dlopen(v->library[i], RTLD_NOW | RTLD_GLOBAL | (loaded ? RTLD_NOLOAD : 0)))
            return 1;
        const char *why = dlerror();
        if (!*text_out && why)
            snprintf(text_out, room, "%s", why);
    }
    return 0;
}

/* What stands for MPI in a process that is alone. */
static int load_alone(const char *libdir)
{
    char path[PATH_MAX];
    return (size_t)snprintf(path, sizeof path, "%s/mpich/alone.so", libdir) < sizeof path &&
           dlopen(path, RTLD_NOW | RTLD_GLOBAL);
}

/* The variant that CONVOY_MPI or the launcher asks for; NULL: none does. */
static const variant *asked_for(void)
{
    const cmd_launcher *launcher = cmd_launch_here()->by;
    for (int i = 0; i < COUNT(variants); i++)
        if (given() ? strcmp(given(), variants[i].name) == 0 : launcher && launcher->family == variants[i].family)
            return &variants[i];
    return NULL;
}

/* Whether the build that is asked for must be had: by CONVOY_MPI, or because the launcher's MPI alone joins its tasks.
 * The variables of a launcher that has not started this process are a hint at most. */
static int is_binding(void)
{
    const cmd_launch_kind kind = cmd_launch_here()->kind;
    return given() || kind == CMD_LAUNCH_TASK || kind == CMD_LAUNCH_PROGRAM;
}

/* Whether this process may be one of several that a launcher has started: then it must not work alone. */
static int may_have_others(void)
{
    const cmd_launch *l = cmd_launch_here();
    return l->kind == CMD_LAUNCH_TASK || l->kind == CMD_LAUNCH_PROGRAM ||
           (l->kind == CMD_LAUNCH_STALE && !l->is_certain && l->size > 1);
}

/* Returns the name of the build; NULL after it has written why there is none. */
static const char *choose(const char *libdir, char *why, size_t room)
{
    char text[1024];
    if (given() && strcmp(given(), "none") == 0) {
        if (load_alone(libdir))
            return "mpich";
        snprintf(why, room, "CONVOY_MPI is none, but %s/mpich has no alone.so: this installation needs MPI", libdir);
        return NULL;
    }
    const variant *v = asked_for();
    if (given() && !v) {
        snprintf(why, room, "CONVOY_MPI is '%.100s', expected openmpi, mpich or none", given());
        return NULL;
    }
    for (int i = 0; i < COUNT(variants) && !given(); i++)
        if (load_mpi(&variants[i], 1, text, sizeof text))
            return variants[i].name;
    if (v && load_mpi(v, 0, text, sizeof text))
        return v->name;
    if (v && is_binding()) {
        snprintf(why, room,
                 "%s asks for the MPI library of %s, which does not load (%s): load its module or install it, so that "
                 "its folder is in LD_LIBRARY_PATH, or start convoy with the launcher of an MPI library that is there",
                 given() ? "CONVOY_MPI" : cmd_launch_here()->by->name, v->of, text);
        return NULL;
    }
    for (int i = 0; i < COUNT(variants); i++)
        if (load_mpi(&variants[i], 0, text, sizeof text))
            return variants[i].name;
    if (!may_have_others() && load_alone(libdir))
        return "mpich";
    snprintf(why, room,
             "there is no MPI library: neither libmpi.so.40 (Open MPI 4 or 5) nor libmpi.so.12 (MPICH, Intel MPI, Cray "
             "MPICH, MVAPICH) loads. Install one or load its module, so that its folder is in LD_LIBRARY_PATH");
    return NULL;
}

int convoy_choose(const char *libdir, char *out, size_t room)
{
    char why[2048];
    const char *name = choose(libdir, why, sizeof why);
    snprintf(out, room, "%s", name ? name : why);
    return name != NULL;
}
