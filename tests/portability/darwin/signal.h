/* SPDX-License-Identifier: BSD-3-Clause */
/* signal.h: what convoy uses of this header of macOS; declarations only (../macos.sh). */
#ifndef DARWIN_SIGNAL_H
#define DARWIN_SIGNAL_H
#include <sys/select.h>
#include <sys/types.h>
typedef int sig_atomic_t;
typedef struct {
    int si_signo, si_errno, si_code;
    pid_t si_pid;
} siginfo_t;
struct sigaction {
    union {
        void (*u_handler)(int);
        void (*u_sigaction)(int, siginfo_t *, void *);
    } u;
    sigset_t sa_mask;
    int sa_flags;
};
#define sa_handler u.u_handler
#define sa_sigaction u.u_sigaction
#define SIG_DFL ((void (*)(int))0)
#define SIG_IGN ((void (*)(int))1)
#define SIG_ERR ((void (*)(int)) - 1)
#define SIGHUP 1
#define SIGINT 2
#define SIGQUIT 3
#define SIGILL 4
#define SIGTRAP 5
#define SIGABRT 6
#define SIGFPE 8
#define SIGKILL 9
#define SIGBUS 10
#define SIGSEGV 11
#define SIGSYS 12
#define SIGPIPE 13
#define SIGALRM 14
#define SIGTERM 15
#define SIGURG 16
#define SIGSTOP 17
#define SIGTSTP 18
#define SIGCONT 19
#define SIGCHLD 20
#define SIGTTIN 21
#define SIGTTOU 22
#define SIGIO 23
#define SIGXCPU 24
#define SIGXFSZ 25
#define SIGVTALRM 26
#define SIGPROF 27
#define SIGWINCH 28
#define SIGUSR1 30
#define SIGUSR2 31
#define SA_ONSTACK 0x0001
#define SA_RESTART 0x0002
#define SA_NODEFER 0x0010
#define SA_RESETHAND 0x0004
#define SA_SIGINFO 0x0040
#define SIG_BLOCK 1
#define SIG_UNBLOCK 2
#define SIG_SETMASK 3
void (*signal(int, void (*)(int)))(int);
int sigaction(int, const struct sigaction *, struct sigaction *);
int sigemptyset(sigset_t *);
int sigfillset(sigset_t *);
int sigaddset(sigset_t *, int);
int sigdelset(sigset_t *, int);
int sigismember(const sigset_t *, int);
int sigprocmask(int, const sigset_t *, sigset_t *);
int pthread_sigmask(int, const sigset_t *, sigset_t *);
int sigpending(sigset_t *);
int sigwait(const sigset_t *, int *);
typedef struct {
    void *ss_sp;
    size_t ss_size;
    int ss_flags;
} stack_t;
int sigaltstack(const stack_t *, stack_t *);
int raise(int);
int kill(pid_t, int);
#endif
