/* SPDX-License-Identifier: BSD-3-Clause */
/* sys/types.h: what convoy uses of this header of macOS; declarations only (../macos.sh). */
#ifndef DARWIN_SYS_TYPES_H
#define DARWIN_SYS_TYPES_H
#include <stddef.h>
#include <stdint.h>
typedef long ssize_t;
typedef int64_t off_t;
typedef int32_t pid_t, dev_t;
typedef uint32_t uid_t, gid_t, useconds_t;
typedef uint16_t mode_t, nlink_t;
typedef uint64_t ino_t;
typedef long time_t;
typedef int suseconds_t;
#endif
