/* SPDX-License-Identifier: BSD-3-Clause */
/* sys/select.h: what convoy uses of this header of macOS; declarations only (../../macos.sh). */
#ifndef DARWIN_SYS_SELECT_H
#define DARWIN_SYS_SELECT_H
#include <sys/types.h>
typedef uint32_t sigset_t;
#endif
