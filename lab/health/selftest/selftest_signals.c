/*
 * selftest_signals.c: a signal reaches this process through its handlers, and a training on all ranks saves and stops
 * at the same step.
 *
 * The last rank sends itself SIGUSR1 in the middle of a training. The training is resumed, and the first rank sends
 * itself SIGTERM. A thread sends the signal, as soon as the run has looked for requests twice. If the handler is not
 * called, the thread makes the request itself, so that the run ends.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base_process.h"
#include "base/machine/base_clock.h"
#include "health/selftest/selftest.h"
#include "train/train_request.h"

/* Seconds until a handler must have been called; seconds that a run may take. */
#define ARRIVES_WITHIN_S 5.0
#define RUN_S 40.0

static const char job_text[] = "name: selftest\n"
                               "model: {layers: [{fc: {channels: 8}}, relu, {fc: {channels: 4}}]}\n"
                               "data: {train: {format: synthetic, samples: 65536, shape: [16], classes: 4}}\n"
                               "train: {batch_per_rank: 8, steps: 1000000000, loss: softmax_cross_entropy}\n"
                               "checkpoint: {every: 1000000 steps}\n"
                               "watchdog: {timeout: 30 s}\n";

struct sender {
    cvy_train_control *control;
    int number;       /* of the signal */
    atomic_int ended; /* the run has ended */
    int sent, arrived;
};

static void *send_signal(void *arg)
{
    struct sender *s = arg;
    sigset_t all;
    sigfillset(&all); /* the signal is for the threads that a scheduler's signal reaches */
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    while (!atomic_load(&s->ended) && cvy_train_control_longest_s(s->control) <= 0)
        cvy_clock_sleep(0.005);
    if (atomic_load(&s->ended))
        return NULL;
    s->sent = 1;
    kill(getpid(), s->number);
    const double begin_s = cvy_clock_s();
    while (!cvy_train_control_wants_stop(s->control) && cvy_clock_s() - begin_s < ARRIVES_WITHIN_S)
        cvy_clock_sleep(0.005);
    s->arrived = cvy_train_control_wants_stop(s->control);
    if (!s->arrived)
        cvy_train_control_request(s->control, CVY_TRAIN_STOP);
    return NULL;
}

/* Forgets what the last signal asked for. */
static void reset(cvy_train_control *control)
{
    atomic_store(&control->stop, 0);
    atomic_store(&control->save, 0);
    atomic_store(&control->is_stopping, 0);
    atomic_store(&control->longest_ns, 0);
}

static cvy_status train(cvy_selftest *t, const char *folder, int resume, int64_t *steps_out)
{
    const cvy_job_source job = {.size = sizeof job, .text = job_text};
    cvy_train_result result = cvy_train_result_default();
    cvy_train_opts opts = cvy_train_opts_default();
    opts.out = folder;
    opts.resume = resume;
    opts.control = t->opts.control;
    opts.end_time = cvy_clock_wall_s() + RUN_S;
    const cvy_status status = cvy_run_train(t->context, &job, &opts, &result);
    *steps_out = result.steps;
    return status;
}

static void judge(cvy_selftest *t, const char *name, const struct sender *s, int sends, cvy_status status,
                  int64_t steps, const int64_t ends[2])
{
    if (sends && s->sent && !s->arrived)
        cvy_selftest_fail(
            t,
            "%s, which this rank sent to itself, did not reach its handler within %.0f s: the launcher or "
            "the batch system blocks it: a run would be killed without a save; use --walltime",
            name, ARRIVES_WITHIN_S);
    else if (status != CVY_STOPPED)
        cvy_selftest_fail(t, "the training did not stop after %s: %s", name,
                          status < 0 ? cvy_error_text() : cvy_status_text(status));
    else if (sends && !s->sent)
        cvy_selftest_fail(t,
                          "the training ended after %.0f s, before %s was sent: this machine is too slow or too busy",
                          RUN_S, name);
    else if (ends[0] != -ends[1])
        cvy_selftest_fail(t, "after %s this rank stopped at step %lld, and others at steps %lld to %lld: report it",
                          name, (long long)steps, -(long long)ends[1], (long long)ends[0]);
}

/* Runs a training, in which the rank `from` gets a signal. *steps_out: the step at which all ranks stopped. */
static cvy_status stop_by(cvy_selftest *t, const char *name, int number, int from, int resume, int64_t *steps_out)
{
    cvy_comm *comm = t->context->comm;
    struct sender s = {.control = t->opts.control, .number = number};
    pthread_t thread;
    char folder[600];
    int64_t steps = 0;
    const int sends = comm->rank == from;
    snprintf(folder, sizeof folder, "%s/run", t->folder);
    reset(t->opts.control);
    const int error = sends ? cvy_thread_start(&thread, send_signal, &s) : 0;
    CVY_TRY(cvy_comm_agree(comm, error ? cvy_error_set(CVY_E_MEMORY, "a thread cannot be started: %s", strerror(error))
                                       : CVY_OK));
    const cvy_status status = train(t, folder, resume, &steps);
    atomic_store(&s.ended, 1);
    if (sends)
        pthread_join(thread, NULL);
    if (status == CVY_E_COMM)
        return status;
    int64_t ends[2] = {steps, -steps};
    CVY_TRY(comm->ops->allreduce(comm, ends, 2, CVY_DTYPE_I64, CVY_REDUCE_MAX));
    judge(t, name, &s, sends, status, steps, ends);
    *steps_out = steps;
    return CVY_OK;
}

cvy_status cvy_selftest_signals(cvy_selftest *t)
{
    cvy_comm *comm = t->context->comm;
    int64_t first = 0, second = 0;
    if (!t->opts.control || comm->simulated_cores > 0) {
        cvy_selftest_skip(t, t->opts.control ? "time is simulated" : "this program has no signal handlers");
        return CVY_OK;
    }
    CVY_TRY(stop_by(t, "SIGUSR1", SIGUSR1, comm->nranks - 1, 0, &first));
    const int64_t failed = t->mine.verdict == CVY_SELFTEST_FAILED;
    int64_t any = failed;
    CVY_TRY(comm->ops->allreduce(comm, &any, 1, CVY_DTYPE_I64, CVY_REDUCE_MAX));
    if (any)
        return CVY_OK;
    CVY_TRY(stop_by(t, "SIGTERM", SIGTERM, 0, 1, &second));
    if (second <= first)
        cvy_selftest_fail(t, "the training that was stopped at step %lld and resumed has ended at step %lld: report it",
                          (long long)first, (long long)second);
    cvy_selftest_pass(t, "SIGUSR1 stops %s at step %lld, and SIGTERM the resumed training at step %lld",
                      comm->nranks > 1 ? "all ranks" : "a training", (long long)first, (long long)second);
    return CVY_OK;
}
