/*
 * run_watchdog.c: see run_watchdog.h. In the step loop: kicked before each step and each longer piece of work (validation, checkpoint).
 */
#include "run/run_watchdog.h"

#include "run/run_server.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

struct cvy_watchdog {
    const cvy_program *program;
    double timeout_s;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    int stop;
    double kicked_s;
    long long moved;                   /* by a server, when it was looked at last */
    int64_t step;
    const char *what;
};

/* The node whose instruction runs now, or NULL between steps. */
static const char *running_node(const cvy_program *p)
{
    for (int i = 0; i < 2 * p->nstep; i++) {
        const cvy_plan *plan = i % 2 ? p->step[i / 2]->twin : p->step[i / 2]->plan;
        const int at = plan ? atomic_load_explicit(&plan->at, memory_order_relaxed) : -1;
        if (at >= 0 && at < plan->ninstr)
            return plan->instr[at].call && plan->instr[at].call->node ? plan->instr[at].call->node->name : "a reorder";
    }
    return NULL;
}

static void bark(const cvy_watchdog *w)
{
    const cvy_context *context = w->program->context;
    const char *node = running_node(w->program);
    char waits[96] = "";
    if (w->program->server)
        cvy_server_waits_for(w->program->server, waits, sizeof waits);
    cvy_error_set(CVY_E_COMM, "stood still for %.0f s at step %lld, in %s%s%s%s (watchdog.timeout is %.0f s): another rank may be dead or late",
                  cvy_clock_s() - w->kicked_s, (long long)w->step, w->what, node ? ", node " : "", node ? node : "", waits, w->timeout_s);
    if (context->opts.fatal)
        context->opts.fatal(context->opts.fatal_user, CVY_E_COMM, cvy_error_text());
    else
        cvy_log_local(context, CVY_LOG_ERROR, "%s", cvy_error_text());
}

/* A server is in one piece of work from one meeting to the next: it is alive while it takes gradients. */
static int server_moves(cvy_watchdog *w)
{
    const long long moved = w->program->server ? cvy_server_moved(w->program->server) : 0, before = w->moved;
    w->moved = moved;
    if (moved == before)
        return 0;
    w->kicked_s = cvy_clock_s();
    return 1;
}

static void *watch(void *arg)
{
    cvy_watchdog *w = arg;
    pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        struct timespec until;
        const double left = w->kicked_s + w->timeout_s - cvy_clock_s();
        if (left <= 0 && server_moves(w))
            continue;
        if (left <= 0) {
            bark(w);
            break;
        }
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += (time_t)left + 1;
        pthread_cond_timedwait(&w->wake, &w->lock, &until);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

cvy_status cvy_watchdog_start(const cvy_program *program, double timeout_s, cvy_watchdog **out)
{
    cvy_watchdog *w = NULL;
    pthread_condattr_t monotonic;
    if (timeout_s <= 0)
        return CVY_OK;
    CVY_TRY(cvy_mem_alloc(sizeof *w, &w));
    *w = (cvy_watchdog){.program = program, .timeout_s = timeout_s, .kicked_s = cvy_clock_s(), .what = "start"};
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&w->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    const int code = pthread_create(&w->thread, NULL, watch, w);
    if (code != 0) {
        pthread_cond_destroy(&w->wake);
        pthread_mutex_destroy(&w->lock);
        cvy_mem_free(&w);
        return cvy_error_set(CVY_E_MEMORY, "the watchdog's thread cannot be started: error %d", code);
    }
    *out = w;
    return CVY_OK;
}

void cvy_watchdog_kick(cvy_watchdog *w, int64_t step, const char *what)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->kicked_s = cvy_clock_s();
    w->step = step;
    w->what = what;
    pthread_mutex_unlock(&w->lock);
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
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    cvy_mem_free(watchdog);
}
