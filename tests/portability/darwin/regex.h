/* SPDX-License-Identifier: BSD-3-Clause */
/* regex.h: what convoy uses of this header of macOS; declarations only (../macos.sh). */
#ifndef DARWIN_REGEX_H
#define DARWIN_REGEX_H
#include <stddef.h>
typedef long long regoff_t;
typedef struct {
    int re_magic;
    size_t re_nsub;
    const char *re_endp;
    void *re_g;
} regex_t;
typedef struct {
    regoff_t rm_so, rm_eo;
} regmatch_t;
#define REG_EXTENDED 1
#define REG_ICASE 2
#define REG_NOSUB 4
#define REG_NEWLINE 8
#define REG_NOMATCH 1
int regcomp(regex_t *, const char *, int);
int regexec(const regex_t *, const char *, size_t, regmatch_t *, int);
size_t regerror(int, const regex_t *, char *, size_t);
void regfree(regex_t *);
#endif
