/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_machine.c: see cmd_machine.h. */
#include "cmd_machine.h"

#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if !defined(__linux__)
#include <pthread.h>
#include <stdatomic.h>
#endif
#if defined(__APPLE__)
#include <mach-o/dyld.h>
#endif

int cmd_cores_count(const cmd_cores *cores)
{
    int n = 0;
    for (size_t i = 0; i < 8 * sizeof cores->bits; i++)
        n += cores->bits[i / 8] >> i % 8 & 1;
    return n;
}

#if defined(__linux__)

_Static_assert(sizeof(cmd_cores) == sizeof(cpu_set_t), "a set of cores is what Linux takes");

size_t cmd_self(char *path, size_t room)
{
    const ssize_t n = readlink("/proc/self/exe", path, room - 1);
    path[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

int cmd_cores_get(long pid, cmd_cores *out)
{
    cpu_set_t mask;
    CPU_ZERO(&mask);
    const int found = sched_getaffinity((pid_t)pid, sizeof mask, &mask) == 0;
    memcpy(out, &mask, sizeof mask);
    return found;
}

int cmd_cores_bind(const cmd_cores *cores)
{
    cpu_set_t mask;
    memcpy(&mask, cores, sizeof mask);
    return sched_setaffinity(0, sizeof mask, &mask) == 0;
}

static timer_t timer;

int cmd_timer_start(int seconds, void (*on_end)(int))
{
    const struct sigaction action = {.sa_handler = on_end};
    const struct itimerspec once = {.it_value.tv_sec = seconds};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL,
                             .sigev_signo = SIGVTALRM}; /* SIGALRM is used for SIGTERM: cmd_signals.c */
    sigaction(SIGVTALRM, &action, NULL);
    return timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &once, NULL) == 0;
}

void cmd_timer_stop(void)
{
    timer_delete(timer);
}

#else

size_t cmd_self(char *path, size_t room)
{
#if defined(__APPLE__)
    uint32_t size = (uint32_t)room;
    if (_NSGetExecutablePath(path, &size) == 0)
        return strlen(path);
#endif
    (void)room;
    path[0] = '\0';
    return 0;
}

int cmd_cores_get(long pid, cmd_cores *out)
{
    const long online = pid == 0 ? sysconf(_SC_NPROCESSORS_ONLN) : 0;
    memset(out, 0, sizeof *out);
    for (long i = 0; i < online && i < (long)(8 * sizeof out->bits); i++)
        out->bits[i / 8] |= (unsigned char)(1 << i % 8);
    return online > 0;
}

int cmd_cores_bind(const cmd_cores *cores)
{
    (void)cores;
    return 0;
}

static struct {
    pthread_t thread;
    atomic_int stop;
    int seconds;
    void (*on_end)(int);
} timer;

static void *wait_for_end(void *unused)
{
    const struct timespec nap = {.tv_nsec = 100000000};
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        nanosleep(&nap, NULL);
        if (atomic_load(&timer.stop))
            return unused;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - begin.tv_sec < timer.seconds);
    timer.on_end(0);
    return unused;
}

int cmd_timer_start(int seconds, void (*on_end)(int))
{
    timer.seconds = seconds;
    timer.on_end = on_end;
    return pthread_create(&timer.thread, NULL, wait_for_end, NULL) == 0;
}

void cmd_timer_stop(void)
{
    atomic_store(&timer.stop, 1);
    pthread_join(timer.thread, NULL);
}

#endif
