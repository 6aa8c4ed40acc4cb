/*
 * base_process.c: see base_process.h. The process is known by its number, which is asked of the system at each check: a
 * handler of pthread_atfork() would miss processes that clone() makes, and asking takes 0.1 us.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_process.h"

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

static _Atomic int bound; /* number of the process; 0: none yet */

void cvy_process_bind(void)
{
    int none = 0;
    atomic_compare_exchange_strong(&bound, &none, (int)getpid());
}

int cvy_process_is_ours(void)
{
    const int process = atomic_load_explicit(&bound, memory_order_relaxed);
    return process == 0 || process == (int)getpid();
}

cvy_status cvy_process_check(void)
{
    CVY_CHECK(
        cvy_process_is_ours(), CVY_E_UNSUPPORTED,
        "this process, %d, was forked from process %d after convoy had started threads or MPI there, which do not "
        "exist here: start it as a new program instead (in Python by the start method \"spawn\" or "
        "\"forkserver\" of multiprocessing), or fork before the first context is made",
        (int)getpid(), atomic_load(&bound));
    return CVY_OK;
}

int cvy_thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
    sigset_t all, before;
    cvy_process_bind();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int code = pthread_create(thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}
