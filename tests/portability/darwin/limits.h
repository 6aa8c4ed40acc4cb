/* SPDX-License-Identifier: BSD-3-Clause */
/* limits.h: what convoy uses of this header of macOS beside the compiler's own; declarations only (../macos.sh). */
#ifndef DARWIN_LIMITS_H
#define DARWIN_LIMITS_H
#include_next <limits.h>
#define NAME_MAX 255
#endif
