/* SPDX-License-Identifier: BSD-3-Clause */
/* unistd.h: what convoy uses of this header of macOS; declarations only (../macos.sh). */
#ifndef DARWIN_UNISTD_H
#define DARWIN_UNISTD_H
#include <sys/types.h>
#define STDIN_FILENO 0
#define STDOUT_FILENO 1
#define STDERR_FILENO 2
#define R_OK 4
#define W_OK 2
#define X_OK 1
#define F_OK 0
#define SEEK_SET 0
#define SEEK_CUR 1
#define SEEK_END 2
#define _SC_CLK_TCK 3
#define _SC_PAGESIZE 29
#define _SC_NPROCESSORS_CONF 57
#define _SC_NPROCESSORS_ONLN 58
#define _SC_PHYS_PAGES 200
extern char *optarg;
long sysconf(int);
ssize_t read(int, void *, size_t);
ssize_t write(int, const void *, size_t);
ssize_t pread(int, void *, size_t, off_t);
ssize_t pwrite(int, const void *, size_t, off_t);
off_t lseek(int, off_t, int);
int close(int);
int pipe(int *);
int dup(int);
int dup2(int, int);
int fsync(int);
void sync(void);
int ftruncate(int, off_t);
int truncate(const char *, off_t);
int access(const char *, int);
int unlink(const char *);
int unlinkat(int, const char *, int);
int rmdir(const char *);
int link(const char *, const char *);
int symlink(const char *, const char *);
ssize_t readlink(const char *, char *, size_t);
int chdir(const char *);
char *getcwd(char *, size_t);
pid_t getpid(void);
pid_t getppid(void);
pid_t getpgrp(void);
uid_t getuid(void);
uid_t geteuid(void);
pid_t fork(void);
pid_t setsid(void);
int setpgid(pid_t, pid_t);
int execvp(const char *, char *const *);
int execv(const char *, char *const *);
int execl(const char *, const char *, ...);
int execlp(const char *, const char *, ...);
void _exit(int) __attribute__((noreturn));
int isatty(int);
int gethostname(char *, size_t);
unsigned sleep(unsigned);
int usleep(useconds_t);
unsigned alarm(unsigned);
#endif
