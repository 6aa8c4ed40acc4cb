/* SPDX-License-Identifier: BSD-3-Clause */
/* string.h: what convoy uses of this header of macOS; declarations only (../macos.sh). */
#ifndef DARWIN_STRING_H
#define DARWIN_STRING_H
#include <stddef.h>
void *memcpy(void *, const void *, size_t);
void *memmove(void *, const void *, size_t);
void *memset(void *, int, size_t);
void *memchr(const void *, int, size_t);
void *memmem(const void *, size_t, const void *, size_t);
int memcmp(const void *, const void *, size_t);
size_t strlen(const char *);
size_t strnlen(const char *, size_t);
int strcmp(const char *, const char *);
int strncmp(const char *, const char *, size_t);
char *strchr(const char *, int);
char *strrchr(const char *, int);
char *strstr(const char *, const char *);
char *strpbrk(const char *, const char *);
size_t strspn(const char *, const char *);
size_t strcspn(const char *, const char *);
char *strcpy(char *, const char *);
char *strncpy(char *, const char *, size_t);
char *strcat(char *, const char *);
char *strdup(const char *);
char *strerror(int);
char *strsignal(int);
char *strtok_r(char *, const char *, char **);
char *stpcpy(char *, const char *);
#endif
