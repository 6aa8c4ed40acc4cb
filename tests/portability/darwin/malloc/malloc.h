/* SPDX-License-Identifier: BSD-3-Clause */
/* malloc/malloc.h: what convoy uses of this header of macOS; declarations only (../macos.sh). */
#ifndef DARWIN_MALLOC_MALLOC_H
#define DARWIN_MALLOC_MALLOC_H
#include <stddef.h>
size_t malloc_size(const void *);
#endif
