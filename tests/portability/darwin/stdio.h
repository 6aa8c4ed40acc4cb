/* SPDX-License-Identifier: BSD-3-Clause */
/* stdio.h: what convoy uses of this header of macOS; declarations only (../macos.sh). */
#ifndef DARWIN_STDIO_H
#define DARWIN_STDIO_H
#include <stdarg.h>
#include <sys/types.h>
typedef struct darwin_file FILE;
extern FILE *__stdinp, *__stdoutp, *__stderrp;
#define stdin __stdinp
#define stdout __stdoutp
#define stderr __stderrp
#define EOF (-1)
#define BUFSIZ 1024
#define SEEK_SET 0
#define SEEK_CUR 1
#define SEEK_END 2
#define _IOFBF 0
#define _IOLBF 1
#define _IONBF 2
int printf(const char *, ...) __attribute__((format(printf, 1, 2)));
int fprintf(FILE *, const char *, ...) __attribute__((format(printf, 2, 3)));
int sprintf(char *, const char *, ...) __attribute__((format(printf, 2, 3)));
int snprintf(char *, size_t, const char *, ...) __attribute__((format(printf, 3, 4)));
int dprintf(int, const char *, ...) __attribute__((format(printf, 2, 3)));
int vprintf(const char *, va_list);
int vfprintf(FILE *, const char *, va_list);
int vsnprintf(char *, size_t, const char *, va_list);
int sscanf(const char *, const char *, ...) __attribute__((format(scanf, 2, 3)));
int fscanf(FILE *, const char *, ...) __attribute__((format(scanf, 2, 3)));
FILE *fopen(const char *, const char *);
FILE *fdopen(int, const char *);
FILE *popen(const char *, const char *);
FILE *open_memstream(char **, size_t *);
FILE *fmemopen(void *, size_t, const char *);
FILE *tmpfile(void);
int pclose(FILE *);
int fclose(FILE *);
int fflush(FILE *);
int fileno(FILE *);
int feof(FILE *);
int ferror(FILE *);
void clearerr(FILE *);
size_t fread(void *, size_t, size_t, FILE *);
size_t fwrite(const void *, size_t, size_t, FILE *);
int fputs(const char *, FILE *);
int puts(const char *);
int fputc(int, FILE *);
int putc(int, FILE *);
int putchar(int);
int fgetc(FILE *);
int getc(FILE *);
int ungetc(int, FILE *);
char *fgets(char *, int, FILE *);
ssize_t getline(char **, size_t *, FILE *);
int fseek(FILE *, long, int);
int fseeko(FILE *, off_t, int);
off_t ftello(FILE *);
long ftell(FILE *);
void rewind(FILE *);
int setvbuf(FILE *, char *, int, size_t);
int rename(const char *, const char *);
int renameat(int, const char *, int, const char *);
int remove(const char *);
void perror(const char *);
#endif
