/* SPDX-License-Identifier: BSD-3-Clause */
/* strings.h: what convoy uses of this header of macOS; declarations only (../macos.sh). */
#ifndef DARWIN_STRINGS_H
#define DARWIN_STRINGS_H
#include <stddef.h>
int strcasecmp(const char *, const char *);
int strncasecmp(const char *, const char *, size_t);
#endif
