/* SPDX-License-Identifier: BSD-3-Clause */
/* sys/statvfs.h: what convoy uses of this header of macOS; declarations only (../macos.sh). */
#ifndef DARWIN_SYS_STATVFS_H
#define DARWIN_SYS_STATVFS_H
#include <sys/types.h>
struct statvfs {
    unsigned long f_bsize, f_frsize;
    unsigned f_blocks, f_bfree, f_bavail, f_files, f_ffree, f_favail;
    unsigned long f_fsid, f_flag, f_namemax;
};
int statvfs(const char *, struct statvfs *);
int fstatvfs(int, struct statvfs *);
#endif
