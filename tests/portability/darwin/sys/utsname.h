/* SPDX-License-Identifier: BSD-3-Clause */
/* sys/utsname.h: what convoy uses of this header of macOS; declarations only (../macos.sh). */
#ifndef DARWIN_SYS_UTSNAME_H
#define DARWIN_SYS_UTSNAME_H
struct utsname {
    char sysname[256], nodename[256], release[256], version[256], machine[256];
};
int uname(struct utsname *);
#endif
