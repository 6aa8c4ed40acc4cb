/* SPDX-License-Identifier: BSD-3-Clause */
/* ftw.h: what convoy uses of this header of macOS; declarations only (../macos.sh). */
#ifndef DARWIN_FTW_H
#define DARWIN_FTW_H
#include <sys/stat.h>
struct FTW {
    int base, level;
};
#define FTW_F 0
#define FTW_D 1
#define FTW_DP 3
#define FTW_PHYS 1
#define FTW_DEPTH 4
int nftw(const char *, int (*)(const char *, const struct stat *, int, struct FTW *), int, int);
#endif
