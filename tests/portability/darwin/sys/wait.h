/* SPDX-License-Identifier: BSD-3-Clause */
/* sys/wait.h: what convoy uses of this header of macOS; declarations only (../macos.sh). */
#ifndef DARWIN_SYS_WAIT_H
#define DARWIN_SYS_WAIT_H
#include <sys/types.h>
#define WNOHANG 1
#define WEXITSTATUS(s) ((s) >> 8 & 0xff)
#define WIFEXITED(s) (((s)&0x7f) == 0)
#define WTERMSIG(s) ((s)&0x7f)
#define WIFSIGNALED(s) (((s)&0x7f) != 0 && ((s)&0x7f) != 0x7f)
pid_t waitpid(pid_t, int *, int);
pid_t wait(int *);
#endif
