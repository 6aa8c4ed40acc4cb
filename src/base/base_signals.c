/*
 * base_signals.c: see base_signals.h.
 *
 * The kernel gives SIGPIPE and SIGXFSZ to the thread whose write fails. The thread blocks them before the write, and
 * takes back what is pending after it. Source: signal(7), sigpending(2), sigtimedwait(2).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_signals.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

static const int of_writes[] = {SIGPIPE, SIGXFSZ};

enum { OF_WRITES = sizeof of_writes / sizeof *of_writes };

void cvy_signals_hold(sigset_t *before_out)
{
    const int error = errno;
    sigset_t mine;
    sigemptyset(&mine);
    for (int i = 0; i < OF_WRITES; i++)
        sigaddset(&mine, of_writes[i]);
    pthread_sigmask(SIG_BLOCK, &mine, before_out);
    errno = error;
}

/* Takes a pending signal without waiting: another thread may have taken one that is for the whole process. */
static void take(int number)
{
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
#if defined(__APPLE__) /* it has no sigtimedwait() */
    int taken = 0;
    sigwait(&one, &taken);
#else
    const struct timespec no_time = {0, 0};
    (void)sigtimedwait(&one, NULL, &no_time);
#endif
}

/* A signal that the thread had blocked before stays pending, as it would without the library. */
void cvy_signals_release(const sigset_t *before)
{
    const int error = errno;
    sigset_t pending;
    sigpending(&pending);
    for (int i = 0; i < OF_WRITES; i++)
        if (!sigismember(before, of_writes[i]) && sigismember(&pending, of_writes[i]))
            take(of_writes[i]);
    pthread_sigmask(SIG_SETMASK, before, NULL);
    errno = error;
}
