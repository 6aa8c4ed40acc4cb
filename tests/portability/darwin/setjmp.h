/* SPDX-License-Identifier: BSD-3-Clause */
/* setjmp.h: what convoy uses of this header of macOS; declarations only (../macos.sh). */
#ifndef DARWIN_SETJMP_H
#define DARWIN_SETJMP_H
typedef int jmp_buf[48];
int setjmp(jmp_buf);
void longjmp(jmp_buf, int) __attribute__((noreturn));
#endif
