/* SPDX-License-Identifier: BSD-3-Clause */
/* glob.h: what convoy uses of this header of macOS; declarations only (../macos.sh). */
#ifndef DARWIN_GLOB_H
#define DARWIN_GLOB_H
#include <sys/types.h>
typedef struct {
    size_t gl_pathc;
    int gl_matchc;
    size_t gl_offs;
    int gl_flags;
    char **gl_pathv;
} glob_t;
#define GLOB_ERR 0x0004
#define GLOB_MARK 0x0008
#define GLOB_NOSORT 0x0020
#define GLOB_NOSPACE (-1)
#define GLOB_ABORTED (-2)
#define GLOB_NOMATCH (-3)
#define GLOB_BRACE 0x0080
int glob(const char *, int, int (*)(const char *, int), glob_t *);
void globfree(glob_t *);
#endif
