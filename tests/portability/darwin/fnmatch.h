/* SPDX-License-Identifier: BSD-3-Clause */
/* fnmatch.h: what convoy uses of this header of macOS; declarations only (../macos.sh). */
#ifndef DARWIN_FNMATCH_H
#define DARWIN_FNMATCH_H
#define FNM_NOMATCH 1
#define FNM_NOESCAPE 0x01
#define FNM_PATHNAME 0x02
#define FNM_PERIOD 0x04
int fnmatch(const char *, const char *, int);
#endif
