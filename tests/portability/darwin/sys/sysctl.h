/* SPDX-License-Identifier: BSD-3-Clause */
/* sys/sysctl.h: what convoy uses of this header of macOS; declarations only (../macos.sh). */
#ifndef DARWIN_SYS_SYSCTL_H
#define DARWIN_SYS_SYSCTL_H
#include <sys/types.h>
int sysctlbyname(const char *, void *, size_t *, void *, size_t);
#endif
