/* SPDX-License-Identifier: BSD-3-Clause */
/* mach-o/dyld.h: what convoy uses of this header of macOS; declarations only (../macos.sh). */
#ifndef DARWIN_MACH_O_DYLD_H
#define DARWIN_MACH_O_DYLD_H
#include <stdint.h>
int _NSGetExecutablePath(char *, uint32_t *);
#endif
