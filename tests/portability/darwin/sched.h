/* SPDX-License-Identifier: BSD-3-Clause */
/* sched.h: what convoy uses of this header of macOS; declarations only (../macos.sh). */
#ifndef DARWIN_SCHED_H
#define DARWIN_SCHED_H
int sched_yield(void);
#endif
