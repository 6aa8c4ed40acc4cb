/* SPDX-License-Identifier: BSD-3-Clause */
/* sys/stat.h: what convoy uses of this header of macOS; declarations only (../macos.sh). */
#ifndef DARWIN_SYS_STAT_H
#define DARWIN_SYS_STAT_H
#include <sys/types.h>
#include <time.h>
struct stat {
    dev_t st_dev;
    mode_t st_mode;
    nlink_t st_nlink;
    ino_t st_ino;
    uid_t st_uid;
    gid_t st_gid;
    dev_t st_rdev;
    struct timespec st_atimespec, st_mtimespec, st_ctimespec, st_birthtimespec;
    off_t st_size;
    int64_t st_blocks;
    int32_t st_blksize;
};
#define S_IFMT 0170000
#define S_ISREG(m) (((m)&S_IFMT) == 0100000)
#define S_ISDIR(m) (((m)&S_IFMT) == 0040000)
#define S_ISLNK(m) (((m)&S_IFMT) == 0120000)
#define S_ISFIFO(m) (((m)&S_IFMT) == 0010000)
#define S_ISSOCK(m) (((m)&S_IFMT) == 0140000)
#define S_IWOTH 0000002
#define S_ISVTX 0001000
int stat(const char *, struct stat *);
int lstat(const char *, struct stat *);
int fstat(int, struct stat *);
int fstatat(int, const char *, struct stat *, int);
int mkdir(const char *, mode_t);
int mkdirat(int, const char *, mode_t);
int mkfifo(const char *, mode_t);
int chmod(const char *, mode_t);
int fchmod(int, mode_t);
mode_t umask(mode_t);
#endif
