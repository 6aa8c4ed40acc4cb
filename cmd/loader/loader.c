/*
 * loader.c: the program `convoy` of an installation for several MPI libraries (CONVOY_MPI_VARIANT of CMake).
 *
 * The ABI of MPI is not one: Open MPI has its own, and MPICH, Intel MPI, Cray MPICH and MVAPICH share another. So such
 * an installation has a build of the command and the library for each, in lib/convoy/openmpi and lib/convoy/mpich. Each
 * of them leaves MPI undefined. This program finds out which MPI library the launcher belongs to, loads that library
 * (choose.c) and then the build for it, and calls its main(). A second program in between (exec) would load everything
 * twice and could not say in one sentence what is missing.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "choose.h"

static int fail(const char *text)
{
    fprintf(stderr, "convoy: error: %s\n", text);
    return 1;
}

/* <this program>/../CONVOY_LIBDIR/convoy. */
static int find_libdir(char *path, size_t room)
{
    char self[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0)
        return 0;
    self[n] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    return (size_t)snprintf(path, room, "%s/../%s/convoy", self, CONVOY_LIBDIR) < room;
}

int main(int argc, char **argv)
{
    char libdir[PATH_MAX + 32], chosen[2048], path[PATH_MAX + 2112], text[2 * PATH_MAX + 4096];
    if (!find_libdir(libdir, sizeof libdir))
        return fail("the folder of this program cannot be read from /proc/self/exe: is /proc mounted?");
    if (!convoy_choose(libdir, chosen, sizeof chosen))
        return fail(chosen);
    snprintf(path, sizeof path, "%s/%s/convoy.so", libdir, chosen);
    void *module = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!module) {
        snprintf(text, sizeof text,
                 "the build for %s does not load: %s. `ldd %s` lists what it needs; CONVOY_MPI=openmpi or mpich "
                 "chooses a build",
                 strcmp(chosen, "openmpi") == 0 ? "Open MPI" : "the MPICH family", dlerror(), path);
        return fail(text);
    }
    int (*run)(int, char **) = NULL;
    *(void **)&run = dlsym(module, "main"); /* POSIX's way to make a pointer to a function of it */
    return run ? run(argc, argv) : fail("the build that was loaded has no main()");
}
