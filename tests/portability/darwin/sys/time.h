/* SPDX-License-Identifier: BSD-3-Clause */
/* sys/time.h: what convoy uses of this header of macOS; declarations only (../macos.sh). */
#ifndef DARWIN_SYS_TIME_H
#define DARWIN_SYS_TIME_H
#include <sys/types.h>
struct timeval {
    time_t tv_sec;
    suseconds_t tv_usec;
};
int gettimeofday(struct timeval *, void *);
#endif
