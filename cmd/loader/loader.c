/*
 * loader.c: the program `convoy` of an installation for several MPI libraries (CONVOY_MPI_VARIANT of CMake).
 *
 * The ABI of MPI is not one: Open MPI has its own, and MPICH, Intel MPI, Cray MPICH and MVAPICH share another. So such
 * an installation has a build of the command and the library for each, in lib/convoy/openmpi and lib/convoy/mpich. Each
 * of them leaves MPI undefined. This program finds out which MPI library the launcher belongs to, loads that library
 * and then the build for it, and calls its main(). A second program in between (exec) would load everything twice and
 * could not say in one sentence what is missing.
 *
 * The MPI library is found as any shared library is: LD_LIBRARY_PATH, which modules set, and the folders of the system.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd_launch.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

typedef struct variant {
    cmd_mpi_family family;
    const char *name;       /* of the folder, and the value of CONVOY_MPI */
    const char *of;         /* for messages */
    const char *library[6]; /* names under which the MPI library is looked for, in this order */
} variant;

/* Without a launcher the first one whose MPI library is there is taken. */
static const variant variants[] = {
    {CMD_MPI_OPENMPI, "openmpi", "Open MPI", {"libmpi.so.40"}},
    {CMD_MPI_MPICH,
     "mpich",
     "MPICH, Intel MPI, Cray MPICH or MVAPICH",
     {"libmpi.so.12", "libmpich.so.12" /* Debian */, "libmpi_gnu_123.so.12" /* Cray */, "libmpi_gnu_91.so.12"}},
};

static int fail(const char *text)
{
    fprintf(stderr, "convoy: error: %s\n", text);
    return 1;
}

/* Loads the MPI library of a variant, so that the variant and the plug-ins of MPI find its symbols. text_out: why the
 * first name did not load. */
static int load_mpi(const variant *v, char *text_out, size_t room)
{
    *text_out = '\0';
    for (int i = 0; i < COUNT(v->library) && v->library[i]; i++) {
        if (dlopen(v->library[i], RTLD_NOW | RTLD_GLOBAL))
            return 1;
        if (!*text_out)
            snprintf(text_out, room, "%s", dlerror());
    }
    return 0;
}

/* The variant that CONVOY_MPI or the launcher asks for; NULL: none does. *by_out: who asks. Returns 0 if CONVOY_MPI has
 * no such value. */
static int asked_for(const variant **v_out, const char **by_out)
{
    const char *given = getenv("CONVOY_MPI");
    const cmd_launcher *launcher = cmd_launch_here()->by;
    *v_out = NULL;
    *by_out = given && *given ? "CONVOY_MPI" : launcher ? launcher->name : NULL;
    for (int i = 0; i < COUNT(variants); i++)
        if (given && *given ? strcmp(given, variants[i].name) == 0 : launcher && launcher->family == variants[i].family)
            *v_out = &variants[i];
    return *v_out || !given || !*given;
}

/* Whether the build that is asked for must be had: by CONVOY_MPI, or because the launcher's MPI alone joins its tasks.
 * The variables of a launcher that has not started this process are a hint at most. */
static int is_binding(void)
{
    const char *given = getenv("CONVOY_MPI");
    const cmd_launch_kind kind = cmd_launch_here()->kind;
    return (given && *given) || kind == CMD_LAUNCH_TASK || kind == CMD_LAUNCH_PROGRAM;
}

/* Finds and loads the MPI library. Returns NULL after it has printed a message. */
static const variant *choose(void)
{
    char why[1024], text[2048];
    const variant *v = NULL;
    const char *by = NULL;
    if (!asked_for(&v, &by)) {
        snprintf(text, sizeof text, "CONVOY_MPI is '%.100s', expected openmpi or mpich", getenv("CONVOY_MPI"));
        fail(text);
        return NULL;
    }
    if (v && load_mpi(v, why, sizeof why))
        return v;
    if (v && is_binding()) {
        snprintf(text, sizeof text,
                 "%s asks for the MPI library of %s, which does not load (%s): load its module or install it, so that "
                 "its folder is in LD_LIBRARY_PATH, or start convoy with the launcher of an MPI library that is there",
                 by, v->of, why);
        fail(text);
        return NULL;
    }
    for (int i = 0; i < COUNT(variants); i++)
        if (load_mpi(&variants[i], why, sizeof why))
            return &variants[i];
    fail("there is no MPI library: neither libmpi.so.40 (Open MPI 4 or 5) nor libmpi.so.12 (MPICH, Intel MPI, Cray "
         "MPICH, MVAPICH) loads. Install one or load its module, so that its folder is in LD_LIBRARY_PATH");
    return NULL;
}

/* The folder of a variant: <this program>/../CONVOY_LIBDIR/convoy/<name>/. */
static int find_module(const variant *v, char *path, size_t room)
{
    char self[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0)
        return 0;
    self[n] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    return (size_t)snprintf(path, room, "%s/../%s/convoy/%s/convoy.so", self, CONVOY_LIBDIR, v->name) < room;
}

int main(int argc, char **argv)
{
    char path[PATH_MAX + 64], text[2 * PATH_MAX + 1024];
    const variant *v = choose();
    if (!v)
        return 1;
    if (!find_module(v, path, sizeof path))
        return fail("the folder of this program cannot be read from /proc/self/exe: is /proc mounted?");
    void *module = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!module) {
        snprintf(text, sizeof text,
                 "the build for %s does not load: %s. `ldd %s` lists what it needs; CONVOY_MPI=openmpi or mpich "
                 "chooses a build",
                 v->of, dlerror(), path);
        return fail(text);
    }
    int (*run)(int, char **) = NULL;
    *(void **)&run = dlsym(module, "main"); /* POSIX's way to make a pointer to a function of it */
    return run ? run(argc, argv) : fail("the build that was loaded has no main()");
}
