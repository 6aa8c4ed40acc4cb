/* SPDX-License-Identifier: BSD-3-Clause */
/* sys/file.h: what convoy uses of this header of macOS; declarations only (../macos.sh). */
#ifndef DARWIN_SYS_FILE_H
#define DARWIN_SYS_FILE_H
#include <fcntl.h>
#define LOCK_SH 1
#define LOCK_EX 2
#define LOCK_NB 4
#define LOCK_UN 8
int flock(int, int);
#endif
