/*
 * choose.h: which build of an installation for several MPI libraries fits this process. The program `convoy` of such an
 * installation calls it, and the package for Python does, which finds it in lib/convoy/choose.so.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CONVOY_CHOOSE_H
#define CONVOY_CHOOSE_H

#include <stddef.h>

/* Loads the MPI library, so that the build and the plug-ins of MPI find its symbols, and writes the name of the build's
 * folder in libdir, which is lib/convoy of the installation. Returns 0 if it cannot, with a sentence that says why. */
__attribute__((visibility("default"))) int convoy_choose(const char *libdir, char *out, size_t room);

#endif
