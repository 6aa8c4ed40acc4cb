/*
 * comm_mpi_watch.c: see comm_mpi_watch.h. Questions and answers have a communicator of their own. A question waits in
 * the mailbox of a rank that does not answer; the rank reads it when it waits the next time, and its answer, which then
 * comes too late, is known by the number of the question and thrown away. The first ranks ask a little earlier than
 * others, and a rank that was asked does not ask itself, so that one of them reports.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "comm/mpi/comm_mpi_watch.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base_entry.h"
#include "base/base_mem.h"
#include "base/machine/base_clock.h"

enum { ASK = 1, ANSWER, HOST_ROOM = 48, NAMED_MAX = 8, ROUNDS = 64, STAGGERED = 20, TEXT_ROOM = 900 };
#define LOOK_EVERY_S 0.01
#define STAGGER_S 0.1
/* Time for answers: half of the limit, but within these limits. */
#define GRACE_LEAST_S 0.25
#define GRACE_MOST_S 5.0

/* What a rank that waits says. */
typedef struct answer {
    int64_t question, step; /* question: its number; 0: there is no answer */
    char call[40], collective[24];
} answer;

struct cvy_mpi_watch {
    cvy_comm_watch_opts o;
    MPI_Comm comm;
    char (*host)[HOST_ROOM];
    double since, looked; /* clock at the begin of the present wait, and at the last look */
    double ask_at;        /* clock at which this rank asks; later if another one asks first */
    int64_t question;     /* number of the latest question */
    double asked;         /* clock at it; 0: it is answered */
    answer *answers;      /* [nranks] */
    int64_t *questions;   /* [nranks]; memory of the messages */
    MPI_Request *sends;   /* [nranks] */
    answer mine;          /* memory of the latest answer, which is sent by reply */
    MPI_Request reply;
};

/* ---- what a rank says ---- */

static answer describe(const cvy_comm *comm, int64_t question)
{
    const cvy_comm *whole = cvy_mpi_of(comm)->root->of;
    const char *collective = atomic_load_explicit(&comm->collective, memory_order_relaxed);
    answer a = {.question = question, .step = whole->step};
    snprintf(a.call, sizeof a.call, "%s", cvy_entry_function());
    snprintf(a.collective, sizeof a.collective, "%s", collective ? collective : "");
    return a;
}

static int add(char *text, int at, const char *fmt, ...) CVY_PRINTF(3, 4);
static int add(char *text, int at, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(text + at, (size_t)(TEXT_ROOM - at), fmt, args);
    va_end(args);
    return CVY_MIN(at + CVY_MAX(n, 0), TEXT_ROOM - 1);
}

/* Writes "cvy_program_step() at step 7". */
static int add_call(char *text, int at, const char *call, int64_t step)
{
    at = add(text, at, call[0] ? "%s()" : "the first call%s", call);
    return step > 0 ? add(text, at, " at step %lld", (long long)step) : at;
}

static int add_place(char *text, int at, const answer *a)
{
    at = add(text, at, a->collective[0] ? "%s of " : "%s", a->collective);
    return add_call(text, at, a->call, a->step);
}

static int is_elsewhere(const answer *a, const answer *mine)
{
    return a->question &&
           (a->step != mine->step || strcmp(a->call, mine->call) != 0 || strcmp(a->collective, mine->collective) != 0);
}

static int add_missing(const struct cvy_mpi_watch *w, const cvy_comm *whole, char *text, int at)
{
    int count = 0;
    for (int r = 0; r < whole->nranks; r++)
        if (r != whole->rank && !w->answers[r].question && count++ < NAMED_MAX)
            at = add(text, at, "%srank %d on %s", count == 1 ? "" : ", ", r, w->host[r]);
    if (count == 0)
        return at;
    if (count > NAMED_MAX)
        at = add(text, at, ", ... (%d ranks)", count);
    at = add(text, at, " %s not come and %s no answer: %s in other work, stopped or gone; last met in ",
             count == 1 ? "does" : "do", count == 1 ? "gives" : "give", count == 1 ? "it is" : "they are");
    return add_call(text, at, whole->met_call ? whole->met_call : "", whole->met_step);
}

static int add_others(const struct cvy_mpi_watch *w, const cvy_comm *whole, const answer *mine, char *text, int at)
{
    int count = 0, waits = 0;
    const int begin = at;
    for (int r = 0; r < whole->nranks; r++) {
        waits += w->answers[r].question != 0;
        if (r == whole->rank || !is_elsewhere(&w->answers[r], mine) || count++ >= NAMED_MAX)
            continue;
        at = add(text, at, "%srank %d on %s waits elsewhere, in ", begin == 0 && count == 1 ? "" : "; ", r, w->host[r]);
        at = add_place(text, at, &w->answers[r]);
    }
    if (count == 0 && waits == whole->nranks - 1)
        at = add(text, at, "all ranks wait there, so MPI or the network does not deliver");
    return at;
}

static void report(struct cvy_mpi_watch *w, const cvy_comm *comm, double now)
{
    const cvy_comm *whole = cvy_mpi_of(comm)->root->of;
    const answer mine = describe(comm, w->question);
    char text[TEXT_ROOM] = "", place[160] = "";
    add_others(w, whole, &mine, text, add_missing(w, whole, text, 0));
    char line[TEXT_ROOM];
    add_place(line, 0, &mine);
    snprintf(place, sizeof place, "%.*s", (int)sizeof place - 1, line);
    cvy_error_set(CVY_E_COMM, "rank %d on %s waits for %.0f s in %s (watchdog_s is %g): %s", whole->rank,
                  w->host[whole->rank], now - w->since, place, w->o.limit_s, text);
    w->o.stalled(w->o.user, cvy_error_text());
}

/* ---- questions and answers ---- */

static int is_done(MPI_Request *request)
{
    int done = 0;
    return MPI_Test(request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done;
}

/* Receives a message of this kind, if there is one; returns the rank that has sent it, or -1. */
static int receive(const struct cvy_mpi_watch *w, int tag, void *data, size_t bytes)
{
    MPI_Status from;
    int there = 0;
    if (MPI_Iprobe(MPI_ANY_SOURCE, tag, w->comm, &there, &from) != MPI_SUCCESS || !there ||
        MPI_Recv(data, (int)bytes, MPI_BYTE, from.MPI_SOURCE, tag, w->comm, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        return -1;
    return from.MPI_SOURCE;
}

/* Clock at which a rank asks that waits from now on. */
static double time_to_ask(const struct cvy_mpi_watch *w, const cvy_comm *whole, double now)
{
    return now + w->o.limit_s + STAGGER_S * CVY_MIN(whole->rank, STAGGERED);
}

/* The same for a rank that has asked or was asked: reports of one wait become rare, whoever makes them. */
static double time_to_ask_again(const struct cvy_mpi_watch *w, const cvy_comm *whole, double now)
{
    return time_to_ask(w, whole, now) + CVY_MAX(now - w->since - w->o.limit_s, 0);
}

static void answer_question(struct cvy_mpi_watch *w, const cvy_comm *comm, double now)
{
    int64_t question = 0;
    const int from = is_done(&w->reply) ? receive(w, ASK, &question, sizeof question) : -1;
    if (from < 0)
        return;
    w->mine = describe(comm, question);
    w->ask_at = time_to_ask_again(w, cvy_mpi_of(comm)->root->of, now);
    MPI_Isend(&w->mine, sizeof w->mine, MPI_BYTE, from, ANSWER, w->comm, &w->reply);
}

static void ask(struct cvy_mpi_watch *w, const cvy_comm *whole, double now)
{
    w->question++;
    w->asked = now;
    for (int r = 0; r < whole->nranks; r++) {
        w->answers[r].question = 0;
        if (r == whole->rank || !is_done(&w->sends[r])) /* the question before still waits for this rank */
            continue;
        w->questions[r] = w->question;
        MPI_Isend(&w->questions[r], sizeof w->question, MPI_BYTE, r, ASK, w->comm, &w->sends[r]);
    }
}

/* Returns whether all ranks have answered. */
static int take_answers(struct cvy_mpi_watch *w, const cvy_comm *whole)
{
    answer a;
    int count = 0, from;
    while ((from = receive(w, ANSWER, &a, sizeof a)) >= 0)
        if (a.question == w->question) {
            w->answers[from] = a;
            w->answers[from].call[sizeof a.call - 1] = w->answers[from].collective[sizeof a.collective - 1] = 0;
        }
    for (int r = 0; r < whole->nranks; r++)
        count += w->answers[r].question != 0;
    return count == whole->nranks - 1;
}

void cvy_mpi_watch_look(const cvy_comm *comm, int round)
{
    struct cvy_mpi_watch *w = cvy_mpi_of(comm)->root->watch;
    if (!w || (round != 0 && round % ROUNDS != 0))
        return;
    const cvy_comm *whole = cvy_mpi_of(comm)->root->of;
    const double now = cvy_clock_s(), grace_s = CVY_MIN(CVY_MAX(w->o.limit_s / 2, GRACE_LEAST_S), GRACE_MOST_S);
    if (round == 0) {
        w->since = now;
        w->ask_at = time_to_ask(w, whole, now);
        w->asked = 0;
        return;
    }
    if (now - w->looked < LOOK_EVERY_S)
        return;
    w->looked = now;
    answer_question(w, comm, now);
    if (w->asked > 0) {
        if (!take_answers(w, whole) && now - w->asked < grace_s)
            return;
        w->asked = 0;
        w->ask_at = time_to_ask_again(w, whole, now);
        report(w, comm, now);
    } else if (now > w->ask_at)
        ask(w, whole, now);
}

/* ---- making and freeing ---- */

static cvy_status make(const cvy_comm *comm, const cvy_comm_watch_opts *o, struct cvy_mpi_watch **out)
{
    const size_t n = (size_t)comm->nranks;
    struct cvy_mpi_watch *w = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *w, &w));
    *w = (struct cvy_mpi_watch){.o = *o, .comm = MPI_COMM_NULL, .reply = MPI_REQUEST_NULL};
    *out = w;
    CVY_TRY(cvy_mem_alloc(n * sizeof *w->host, &w->host));
    CVY_TRY(cvy_mem_alloc(n * sizeof *w->answers, &w->answers));
    CVY_TRY(cvy_mem_alloc(n * sizeof *w->questions, &w->questions));
    CVY_TRY(cvy_mem_alloc(n * sizeof *w->sends, &w->sends));
    for (size_t r = 0; r < n; r++)
        w->sends[r] = MPI_REQUEST_NULL;
    return CVY_OK;
}

static cvy_status join_ranks(cvy_comm *comm, struct cvy_mpi_watch *w)
{
    char host[HOST_ROOM] = "";
    if (gethostname(host, sizeof host - 1) != 0 || !host[0])
        snprintf(host, sizeof host, "?");
    CVY_TRY(comm->ops->allgather(comm, host, sizeof host, w->host));
    return cvy_mpi_check(MPI_Comm_dup(cvy_mpi_of(comm)->comm, &w->comm), "MPI_Comm_dup");
}

static void drop(MPI_Request *request)
{
    if (*request == MPI_REQUEST_NULL || is_done(request))
        return;
    MPI_Cancel(request);
    MPI_Request_free(request);
}

static void leave_ranks(struct cvy_mpi_watch *w, int nranks)
{
    answer a;
    int64_t question;
    while (receive(w, ASK, &question, sizeof question) >= 0 || receive(w, ANSWER, &a, sizeof a) >= 0)
        continue;
    for (int r = 0; r < nranks; r++)
        drop(&w->sends[r]);
    drop(&w->reply);
    MPI_Comm_free(&w->comm);
}

static void destroy(struct cvy_mpi_watch *w, int nranks)
{
    int finalized = 0;
    if (!w)
        return;
    MPI_Finalized(&finalized);
    if (!finalized && w->comm != MPI_COMM_NULL)
        leave_ranks(w, nranks);
    cvy_mem_free(&w->host);
    cvy_mem_free(&w->answers);
    cvy_mem_free(&w->questions);
    cvy_mem_free(&w->sends);
    cvy_mem_free(&w);
}

/* The ranks are watched from the end on: a rank may wait for others in here, too. */
cvy_status cvy_comm_watch(cvy_comm *comm, const cvy_comm_watch_opts *o)
{
    int64_t most[2] = {(int64_t)(o->limit_s * 1e3), -(int64_t)(o->limit_s * 1e3)};
    struct cvy_mpi_watch *w = NULL;
    if (comm->nranks == 1 || comm->reduce != &cvy_mpi_reduce_ops || cvy_mpi_of(comm)->root != cvy_mpi_of(comm))
        return CVY_OK;
    CVY_TRY(comm->ops->allreduce(comm, most, 2, CVY_DTYPE_I64, CVY_REDUCE_MAX));
    CVY_CHECK(most[0] == -most[1], CVY_E_DISAGREE, "watchdog_s is %g s here, and %g to %g s on other ranks", o->limit_s,
              (double)-most[1] / 1e3, (double)most[0] / 1e3);
    if (o->limit_s == 0 || cvy_mpi_of(comm)->simulated.folded)
        return CVY_OK;
    cvy_status status = cvy_comm_agree(comm, make(comm, o, &w));
    if (status == CVY_OK)
        status = join_ranks(comm, w);
    if (status == CVY_OK)
        cvy_mpi_of(comm)->watch = w;
    else
        destroy(w, comm->nranks);
    return status;
}

void cvy_mpi_watch_free(cvy_mpi *mpi)
{
    destroy(mpi->watch, mpi->of->nranks);
    mpi->watch = NULL;
}
