/* SPDX-License-Identifier: BSD-3-Clause */
/* crt_externs.h: what convoy uses of this header of macOS; declarations only (../macos.sh). */
#ifndef DARWIN_CRT_EXTERNS_H
#define DARWIN_CRT_EXTERNS_H
char ***_NSGetEnviron(void);
#endif
