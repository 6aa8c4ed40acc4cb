/*
 * monitor_watchdog.c: see monitor_watchdog.h. The step loop calls cvy_watchdog_kick() before each step and before each
 * longer piece of work (validation, checkpoint).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "monitor/monitor_watchdog.h"

#include "base/base_entry.h"
#include "base/base_file.h"
#include "base/base_process.h"
#include "base/machine/base_system.h"
#include "comm/nccl/comm_nccl.h"
#include "monitor/monitor_heartbeat.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Seconds between two heartbeats: a quarter of the timeout, but within these limits. */
#define HEARTBEAT_LEAST_S 0.5
#define HEARTBEAT_MOST_S 15.0

/* Factor on the timeout before the first step and in a checkpoint. Looking up a million files, or writing a large model
 * to a busy disk, takes longer than any step. */
#define PATIENCE 6.0

struct cvy_watchdog {
    const cvy_context *context;
    const cvy_program *program; /* NULL before the first step */
    cvy_watchdog_opts opts;
    char heartbeat_path[640]; /* path of the heartbeat file; "": there is none yet */
    int fd;                   /* of the heartbeat file, opened by the thread; -1: not open, or it cannot be opened */
    char host[40];
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    int stop;
    /* clock at the last kick and heartbeat; factor on the timeout for the present work */
    double kicked_s, heartbeat_s, patience;
    long long progress; /* progress of a parameter server at the last look */
    int64_t step;
    const char *what;
};

/* Writes what the rank does, as in "a training step, node conv1, in an allreduce". Returns 1 if it waits for other
 * ranks. */
static int say_what(const cvy_watchdog *w, char *text, size_t room)
{
    const char *collective = atomic_load_explicit(&w->context->comm->collective, memory_order_relaxed);
    char now[320] = "";
    int awaits = collective != NULL;
    if (w->program)
        awaits = cvy_program_now(w->program, now, sizeof now);
    else if (collective)
        snprintf(now, sizeof now, ", in %s", collective);
    snprintf(text, room, "%s%s", w->what, now);
    return awaits;
}

/* ---- the heartbeat file ---- */

static double heartbeat_every_s(double timeout_s)
{
    return CVY_MIN(CVY_MAX(timeout_s / 4, HEARTBEAT_LEAST_S), HEARTBEAT_MOST_S);
}

double cvy_watchdog_fresh_s(double timeout_s)
{
    return 1.5 * heartbeat_every_s(timeout_s) + 0.5;
}

/* Writes this rank's heartbeat. Call it with the lock. The lock is released during the write, because training must not
 * wait for a file system that does not answer. Only one thread at a time calls it. */
static void write_heartbeat(cvy_watchdog *w, cvy_heartbeat_state state)
{
    char heartbeat_path[sizeof w->heartbeat_path];
    const cvy_comm *comm = w->context->comm;
    cvy_heartbeat heartbeat = {.rank = comm->rank,
                               .time = cvy_clock_wall_s(),
                               .state = state,
                               .step = w->step,
                               .still_s = cvy_clock_s() - w->kicked_s};
    heartbeat.ncollectives = atomic_load_explicit(&comm->ncollectives, memory_order_relaxed);
    w->heartbeat_s = cvy_clock_s();
    if (!w->heartbeat_path[0])
        return;
    if (state == CVY_HEARTBEAT_RUNNING && w->opts.stop_flag && atomic_load(w->opts.stop_flag))
        heartbeat.state = CVY_HEARTBEAT_ENDING;
    snprintf(heartbeat.host, sizeof heartbeat.host, "%s", w->host);
    say_what(w, heartbeat.what, sizeof heartbeat.what);
    memcpy(heartbeat_path, w->heartbeat_path, sizeof heartbeat_path);
    pthread_mutex_unlock(&w->lock);
    if (w->fd < 0)
        w->fd = cvy_file_open(heartbeat_path, O_WRONLY | O_CREAT | O_NOFOLLOW, 0666, NULL);
    if (w->fd >= 0)
        cvy_heartbeat_write(w->fd, &heartbeat);
    pthread_mutex_lock(&w->lock);
}

/* Writes the rank that the others wait for, as "; rank 1 ...", from the heartbeats of all ranks; "" if they do not
 * tell. */
static void find_suspect(const cvy_watchdog *w, char *text, size_t room)
{
    const int nranks = w->context->comm->nranks;
    cvy_heartbeat *heartbeat = NULL;
    text[0] = 0;
    if (!w->heartbeat_path[0] || cvy_mem_alloc(sizeof *heartbeat * (size_t)nranks, &heartbeat) != CVY_OK)
        return;
    text[0] = ';';
    text[1] = ' ';
    if (cvy_heartbeat_read(w->heartbeat_path, nranks, heartbeat) != CVY_OK ||
        !cvy_heartbeat_suspect(heartbeat, nranks, cvy_watchdog_fresh_s(w->opts.timeout_s), text + 2, room - 2))
        text[0] = 0;
    cvy_mem_free(&heartbeat);
}

/* Writes a heartbeat and waits for those of the other ranks, which notice the hang at about the same time. Returns 0 if
 * the run has made progress meanwhile; the watchdog then leaves it alone. */
static int wait_for_heartbeats(cvy_watchdog *w)
{
    const double kicked = w->kicked_s;
    const struct timespec pause = {.tv_sec = (time_t)(2 * heartbeat_every_s(w->opts.timeout_s) + 2.5)};
    write_heartbeat(w, CVY_HEARTBEAT_STALLED);
    pthread_mutex_unlock(&w->lock);
    nanosleep(&pause, NULL);
    pthread_mutex_lock(&w->lock);
    return !w->stop && kicked == w->kicked_s;
}

/* Reports the hang. Call it with the lock, which is released while the heartbeat file is read. */
static void report_hang(cvy_watchdog *w)
{
    const cvy_context *context = w->context;
    const double still_s = cvy_clock_s() - w->kicked_s;
    const long long step = w->step;
    char what[224], suspect[320], limit[80] = "";
    const int awaits = say_what(w, what, sizeof what) || cvy_nccl_is_used();
    if (w->patience > 1)
        snprintf(limit, sizeof limit, ", %s %.0f times as long",
                 w->program ? "for a checkpoint" : "before the first step", w->patience);
    pthread_mutex_unlock(&w->lock);
    find_suspect(w, suspect, sizeof suspect);
    cvy_error_set(CVY_E_COMM, "made no progress for %.0f s at step %lld, in %s (watchdog.timeout is %.0f s%s)%s%s%s",
                  still_s, step, what, w->opts.timeout_s, limit,
                  suspect[0] ? suspect
                  : awaits   ? ": another rank may be dead or slow"
                             : ": it waits for no other rank, so this rank itself may be blocked",
                  w->heartbeat_path[0] ? "; all ranks: " : "", w->heartbeat_path);
    cvy_nccl_abort(); /* so that the device wakes up; what it holds then is wrong, and the rank must not go on with it
                       */
    if (context->opts.fatal) {
        CVY_CALLBACK();
        context->opts.fatal(context->opts.fatal_user, CVY_E_COMM, cvy_error_text());
    } else {
        cvy_log_local(context, CVY_LOG_ERROR, "%s", cvy_error_text());
    }
    cvy_nccl_let_fail(); /* a hook that returns lets the program go on, to an error */
    pthread_mutex_lock(&w->lock);
}

/* A server does one piece of work from one synchronisation to the next. It is alive if it has received gradients since
 * the last look. */
static int server_makes_progress(cvy_watchdog *w)
{
    const long long progress = w->program ? cvy_program_progress(w->program) : 0, before = w->progress;
    w->progress = progress;
    if (progress == before)
        return 0;
    w->kicked_s = cvy_clock_s();
    return 1;
}

static void *watch(void *arg)
{
    CVY_ENTRY();
    cvy_watchdog *w = arg;
    pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        const double now = cvy_clock_s(), left = w->kicked_s + w->patience * w->opts.timeout_s - now,
                     next = w->heartbeat_s + heartbeat_every_s(w->opts.timeout_s) - now;
        if (left <= 0 && server_makes_progress(w))
            continue;
        if (left <= 0 && wait_for_heartbeats(w)) {
            report_hang(w);
            break;
        }
        if (next <= 0) {
            write_heartbeat(w, CVY_HEARTBEAT_RUNNING);
            continue; /* write_heartbeat() has released the lock, so the state may have changed */
        }
        const double wait = CVY_MAX(CVY_MIN(left, next), 0.01);
        cvy_cond_wait_for(&w->wake, &w->lock, wait);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

cvy_status cvy_watchdog_start(const cvy_context *context, const cvy_watchdog_opts *opts, cvy_watchdog **out)
{
    cvy_watchdog *w = NULL;
    if (opts->timeout_s <= 0)
        return CVY_OK;
    CVY_TRY(cvy_mem_alloc(sizeof *w, &w));
    *w = (cvy_watchdog){.context = context,
                        .opts = *opts,
                        .fd = -1,
                        .kicked_s = cvy_clock_s(),
                        .heartbeat_s = cvy_clock_s(),
                        .patience = PATIENCE,
                        .what = "start"};
    if (gethostname(w->host, sizeof w->host - 1) != 0 || !w->host[0])
        snprintf(w->host, sizeof w->host, "?");
    pthread_mutex_init(&w->lock, NULL);
    cvy_cond_init(&w->wake);
    const int code = cvy_thread_start(&w->thread, watch, w);
    if (code != 0) {
        pthread_cond_destroy(&w->wake);
        pthread_mutex_destroy(&w->lock);
        cvy_mem_free(&w);
        return cvy_error_set(CVY_E_MEMORY, "the watchdog's thread cannot be started: error %d", code);
    }
    *out = w;
    return CVY_OK;
}

void cvy_watchdog_steps(cvy_watchdog *w, const cvy_program *program, const char *heartbeat_path)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->program = program;
    w->patience = 1;
    w->kicked_s = cvy_clock_s();
    snprintf(w->heartbeat_path, sizeof w->heartbeat_path, "%s", heartbeat_path);
    pthread_cond_signal(&w->wake); /* the thread still sleeps by the limit for the preparation */
    pthread_mutex_unlock(&w->lock);
}

static void kick(cvy_watchdog *w, int64_t step, const char *what, double patience)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->kicked_s = cvy_clock_s();
    w->patience = w->program ? patience : PATIENCE;
    w->step = step;
    w->what = what;
    pthread_mutex_unlock(&w->lock);
}

void cvy_watchdog_kick(cvy_watchdog *w, int64_t step, const char *what)
{
    kick(w, step, what, 1);
}

void cvy_watchdog_kick_long(cvy_watchdog *w, int64_t step, const char *what)
{
    kick(w, step, what, PATIENCE);
}

void cvy_watchdog_stop(cvy_watchdog **watchdog)
{
    cvy_watchdog *w = *watchdog;
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->stop = 1;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    if (w->fd >= 0) {
        w->what = "the end";
        pthread_mutex_lock(&w->lock);
        write_heartbeat(w, CVY_HEARTBEAT_FINISHED);
        pthread_mutex_unlock(&w->lock);
        close(w->fd);
    }
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    cvy_mem_free(watchdog);
}
