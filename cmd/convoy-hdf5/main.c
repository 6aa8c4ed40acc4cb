/*
 * main.c of convoy-hdf5: the process in which libconvoy lets libhdf5 read files. It is not started by hand.
 *
 * The socket is descriptor 3, the shared memory descriptor 4. The arguments are the build of the process that started
 * it, and the number of that process. It ends when the socket closes. A thread watches for that, because the main
 * thread may be in an endless loop of libhdf5. Signals that schedulers and terminals send to all processes of a job are
 * ignored: whoever started it decides when to stop, and closes the socket.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

int cvy_h5_serve(int socket, int area, const char *build); /* data_hdf5_serve.h */

enum { SOCKET = 3, AREA = 4, LOOK_MS = 2000 };

#ifndef POLLRDHUP
#define POLLRDHUP 0
#endif

static pid_t parent;

/* Ends the process when the other one is gone. If the other one has forked, a copy of its socket may still be open;
 * then the number of the parent tells. */
static void *watch(void *unused)
{
    struct pollfd at = {.fd = SOCKET, .events = POLLRDHUP};
    while (poll(&at, 1, LOOK_MS) <= 0 && getppid() == parent)
        ;
    _exit(0);
    return unused;
}

/* Descriptors of the other process that lack the flag close-on-exec, such as those of an MPI library. Without /proc the
 * first ones are closed by their numbers. */
static void close_others(void)
{
    enum { CLOSED = 1024 };
    DIR *folder = opendir("/proc/self/fd");
    int open[256], n = 0;
    for (int fd = AREA + 1; !folder && fd < CLOSED; fd++)
        close(fd);
    for (struct dirent *e = folder ? readdir(folder) : NULL; e && n < 256; e = readdir(folder)) {
        const int fd = atoi(e->d_name);
        if (fd > AREA && fd != dirfd(folder))
            open[n++] = fd;
    }
    if (folder)
        closedir(folder);
    for (int i = 0; i < n; i++)
        close(open[i]);
}

/* Ignores all but faults of the program and what no program can ignore. XFSZ and PIPE become errors of their calls. */
static void choose_signals(void)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP, SIGCHLD};
    enum { NUMBERS = 65 };
    sigset_t none;
    for (int i = 1; i < NUMBERS; i++)
        signal(i, SIG_IGN);
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        signal(fatal[i], SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc != 3) {
        fprintf(stderr, "convoy-hdf5 is started by libconvoy, to read HDF5 files in a process of their own\n");
        return 2;
    }
    parent = (pid_t)atol(argv[2]);
    choose_signals();
    close_others();
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
#ifdef __linux__
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* no core file even where the kernel sends it through a pipe */
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
#endif
    if (pthread_create(&thread, NULL, watch, NULL) != 0)
        return 1;
    _exit(cvy_h5_serve(SOCKET, AREA, argv[1]));
}
