/* SPDX-License-Identifier: BSD-3-Clause */
/* ctype.h: what convoy uses of this header of macOS; declarations only (../macos.sh). */
#ifndef DARWIN_CTYPE_H
#define DARWIN_CTYPE_H
int isalpha(int);
int isdigit(int);
int isalnum(int);
int isspace(int);
int isupper(int);
int islower(int);
int isprint(int);
int ispunct(int);
int iscntrl(int);
int isxdigit(int);
int isgraph(int);
int tolower(int);
int toupper(int);
#endif
