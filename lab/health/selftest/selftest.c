/*
 * selftest.c: cvy_run_selftest(): runs the checks of its table one after the other, on all ranks.
 *
 * After each check the ranks exchange what they found. A check has failed if one rank says so; the line names the first
 * such rank and its host. Only a fault of the exchange itself ends the self-test early. A watchdog ends the job if a
 * check hangs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "health/selftest/selftest.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "base/base_opts.h"
#include "base/machine/base_clock.h"
#include "train/train_request.h"

/* Seconds after which a check counts as hanging, if the caller gives none. The watchdog's limit for long work is six
 * times its timeout. */
#define LIMIT_S 60.0
#define WATCHDOG_PATIENCE 6.0

static const cvy_selftest_check checks[] = {
    {"ranks", "the number of ranks", 0, cvy_selftest_ranks},
    {"versions", "the same copy and libraries on all ranks", 0, cvy_selftest_versions},
    {"system", "what the system and the processor offer", 0, cvy_selftest_system},
    {"clocks", "clocks that go forward and agree", 0, cvy_selftest_clocks},
    {"kernels", "kernels against the reference kernels", 0, cvy_selftest_kernels},
    {"node-memory", "memory that the ranks of a node share", 0, cvy_selftest_node_memory},
    {"reductions", "sums over all ranks, by each algorithm", 0, cvy_selftest_sums},
    {"groups", "sums over a part of the ranks", 0, cvy_selftest_groups},
    {"training", "a small training", 0, cvy_selftest_training},
    {"deterministic", "the same bits again, and on one rank", 0, cvy_selftest_deterministic},
    {"updates", "other ways to update the weights", 0, cvy_selftest_updates},
    {"files", "writing, renaming and locking files that all ranks see", 1, cvy_selftest_files},
    {"checkpoint", "a checkpoint is written, read back and resumed", 1, cvy_selftest_checkpoint},
    {"data", "data formats that are written and read back", 1, cvy_selftest_data},
    {"signals", "signals save and stop a training", 1, cvy_selftest_signals},
};

/* ---- what ranks say ---- */

static void say(char *text, const char *fmt, va_list args)
{
    vsnprintf(text, CVY_SELFTEST_TEXT, fmt, args);
}

void cvy_selftest_pass(cvy_selftest *t, const char *fmt, ...)
{
    va_list args;
    if (t->mine.verdict == CVY_SELFTEST_FAILED)
        return;
    t->mine.verdict = CVY_SELFTEST_PASSED;
    va_start(args, fmt);
    say(t->mine.text, fmt, args);
    va_end(args);
}

void cvy_selftest_skip(cvy_selftest *t, const char *fmt, ...)
{
    va_list args;
    if (t->mine.verdict == CVY_SELFTEST_FAILED)
        return;
    t->mine.verdict = CVY_SELFTEST_SKIPPED;
    va_start(args, fmt);
    say(t->mine.text, fmt, args);
    va_end(args);
}

void cvy_selftest_fail(cvy_selftest *t, const char *fmt, ...)
{
    va_list args;
    if (t->mine.verdict == CVY_SELFTEST_FAILED)
        return;
    t->mine.verdict = CVY_SELFTEST_FAILED;
    va_start(args, fmt);
    say(t->mine.text, fmt, args);
    va_end(args);
}

void cvy_selftest_note(cvy_selftest *t, const char *fmt, ...)
{
    va_list args;
    const size_t used = strlen(t->mine.note);
    va_start(args, fmt);
    if (used + 2 < CVY_SELFTEST_TEXT) {
        memcpy(t->mine.note + used, used ? "; " : "", used ? 3 : 1);
        vsnprintf(t->mine.note + strlen(t->mine.note), CVY_SELFTEST_TEXT - strlen(t->mine.note), fmt, args);
    }
    va_end(args);
}

void cvy_selftest_alive(const cvy_selftest *t)
{
    cvy_watchdog_kick_long(t->watchdog, t->ncheck, t->doing);
}

const char *cvy_selftest_rank_text(const cvy_selftest *t, int rank, char *text)
{
    snprintf(text, 96, "rank %d on %s", rank, t->host[rank]);
    return text;
}

/* ---- one check ---- */

/* Whether the text is another rank's message, which cvy_comm_agree() has brought here: "rank 3: ..". */
static int is_echo(const cvy_comm *comm, const char *text)
{
    for (const char *at = strstr(text, "rank "); at; at = strstr(at + 1, "rank ")) {
        char *end = NULL;
        const long rank = strtol(at + 5, &end, 10);
        if (end > at + 5 && end[0] == ':' && end[1] == ' ' && rank != comm->rank)
            return 1;
    }
    return 0;
}

static int first_with(const cvy_selftest_said *all, int nranks, cvy_selftest_verdict verdict, int *count_out)
{
    int first = -1, count = 0;
    for (int r = nranks - 1; r >= 0; r--)
        if (all[r].verdict == verdict) {
            first = r;
            count++;
        }
    *count_out = count;
    return first;
}

/* Makes the text of a failure: with several ranks, the first one is named, and the number of others. */
static cvy_status failure_text(const cvy_selftest *t, const cvy_selftest_said *all, int first, int count, char **out)
{
    char who[96], others[48] = "";
    if (t->context->comm->nranks == 1)
        return cvy_pool_strdup(t->pool, all[first].text, out);
    if (count > 1)
        snprintf(others, sizeof others, " (and %d other rank%s)", count - 1, count == 2 ? "" : "s");
    return cvy_pool_printf(t->pool, out, "%s: %s%s", cvy_selftest_rank_text(t, first, who), all[first].text, others);
}

static cvy_status note_text(const cvy_selftest *t, const cvy_selftest_said *all, char **out)
{
    int first = -1, same = 0;
    char who[96];
    const int nranks = t->context->comm->nranks;
    for (int r = nranks - 1; r >= 0; r--)
        first = *all[r].note ? r : first;
    if (first < 0)
        return CVY_OK;
    for (int r = 0; r < nranks; r++)
        same += strcmp(all[r].note, all[first].note) == 0;
    if (same == nranks || nranks == 1)
        return cvy_pool_strdup(t->pool, all[first].note, out);
    return cvy_pool_printf(t->pool, out, "%s: %s", cvy_selftest_rank_text(t, first, who), all[first].note);
}

/* Judges a check, on rank 0, from what all ranks say. */
static cvy_status judge(cvy_selftest *t, const cvy_selftest_check *check, const cvy_selftest_said *all, double seconds)
{
    const int nranks = t->context->comm->nranks;
    cvy_selftest_result_check *c = &t->check[t->ncheck];
    int count = 0, skipped = 0, line_bytes = 0;
    char *text = NULL;
    const int failed = first_with(all, nranks, CVY_SELFTEST_FAILED, &count),
              skipping = first_with(all, nranks, CVY_SELFTEST_SKIPPED, &skipped);
    *c = (cvy_selftest_result_check){.name = check->name, .seconds = seconds};
    if (failed >= 0) {
        c->verdict = CVY_SELFTEST_FAILED;
        CVY_TRY(failure_text(t, all, failed, count, &text));
    } else {
        const int from = skipping >= 0 ? skipping : 0;
        c->verdict = skipping >= 0 ? CVY_SELFTEST_SKIPPED : CVY_SELFTEST_PASSED;
        CVY_TRY(cvy_pool_strdup(t->pool, all[from].text, &text));
    }
    for (; text[line_bytes]; line_bytes++) /* a line is a line */
        if ((unsigned char)text[line_bytes] < ' ')
            text[line_bytes] = ' ';
    c->text = text;
    CVY_TRY(note_text(t, all, &t->note[t->ncheck]));
    c->note = t->note[t->ncheck];
    return CVY_OK;
}

static cvy_status print(cvy_selftest *t)
{
    char *line = NULL;
    if (!t->opts.line)
        return CVY_OK;
    CVY_TRY(cvy_selftest_line(t, &t->check[t->ncheck], &line));
    CVY_CALLBACK();
    t->opts.line(t->opts.user, line);
    return CVY_OK;
}

static cvy_status run_check(cvy_selftest *t, const cvy_selftest_check *check, cvy_selftest_said *all)
{
    cvy_comm *comm = t->context->comm;
    const double begin_s = cvy_clock_s();
    memset(&t->mine, 0, sizeof t->mine);
    t->mine.verdict = CVY_SELFTEST_SKIPPED;
    if (check->needs_folder && !*t->folder && check->run == cvy_selftest_files) {
        cvy_selftest_fail(t, "%s: give another folder by --out", t->nowhere);
    } else if (check->needs_folder && !*t->folder) {
        cvy_selftest_skip(t, "there is no folder to write to");
    } else {
        const cvy_status status = check->run(t);
        if (status == CVY_E_COMM)
            return status;
        if (status < 0 && is_echo(comm, cvy_error_text()))
            cvy_selftest_pass(t, "%s", ""); /* the other rank says it */
        else if (status < 0)
            cvy_selftest_fail(t, "%s", cvy_error_text());
    }
    /* A request to stop that came before the check of signals is the user's, or the batch system's. */
    t->mine.stop = check->run != cvy_selftest_signals && cvy_train_control_wants_stop(t->opts.control);
    CVY_TRY(comm->ops->allgather(comm, &t->mine, sizeof t->mine, all));
    for (int r = 0; r < comm->nranks; r++)
        if (all[r].stop)
            return CVY_STOPPED;
    cvy_status status = comm->rank == 0 ? judge(t, check, all, cvy_clock_s() - begin_s) : CVY_OK;
    if (status == CVY_OK && comm->rank == 0)
        status = print(t);
    t->ncheck++;
    return cvy_comm_agree(comm, status);
}

/* Whether `only`, names separated by commas, has this name. */
static int is_chosen(const char *only, const char *name)
{
    for (const char *at = only; at && *at; at += *at == ',') {
        const size_t n = strcspn(at, ",");
        if (strlen(name) == n && strncmp(at, name, n) == 0)
            return 1;
        at += n;
    }
    return !only;
}

static cvy_status check_only(const char *only)
{
    const char *names[CVY_COUNT(checks)];
    for (int i = 0; i < CVY_COUNT(checks); i++)
        names[i] = checks[i].name;
    for (const char *at = only; at && *at; at += *at == ',') {
        char word[32];
        const size_t n = strcspn(at, ",");
        int known = 0;
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        for (int i = 0; i < CVY_COUNT(checks); i++)
            known |= strcmp(word, names[i]) == 0;
        if (!known) {
            cvy_text text = {0};
            cvy_text_add_known(&text, word, names, CVY_COUNT(names));
            cvy_error_set(CVY_E_ARGUMENT, "there is no check '%s'%s", word, text.data ? text.data : "");
            cvy_text_free(&text);
            return CVY_E_ARGUMENT;
        }
        at += n;
    }
    return CVY_OK;
}

/* ---- all checks ---- */

static cvy_status gather_hosts(cvy_selftest *t)
{
    cvy_comm *comm = t->context->comm;
    char host[64] = "";
    CVY_TRY(cvy_comm_agree(comm, cvy_pool_alloc(t->pool, sizeof *t->host * (size_t)comm->nranks, &t->host)));
    if (gethostname(host, sizeof host - 1) != 0 || !*host)
        snprintf(host, sizeof host, "an unknown host");
    return comm->ops->allgather(comm, host, sizeof host, t->host);
}

static cvy_status run_checks(cvy_selftest *t)
{
    cvy_comm *comm = t->context->comm;
    cvy_selftest_said *all = NULL;
    CVY_TRY(cvy_comm_agree(comm, check_only(t->opts.only)));
    CVY_TRY(cvy_comm_agree(comm, cvy_pool_alloc(t->pool, sizeof *all * (size_t)comm->nranks, &all)));
    CVY_TRY(gather_hosts(t));
    CVY_TRY(cvy_selftest_folder_make(t));
    cvy_status status = CVY_OK;
    for (int i = 0; i < CVY_COUNT(checks) && status == CVY_OK; i++) {
        if (!is_chosen(t->opts.only, checks[i].name))
            continue;
        t->doing = checks[i].summary;
        cvy_selftest_alive(t);
        status = run_check(t, &checks[i], all);
    }
    if (status == CVY_E_COMM) /* the others do not answer, and rank 0 alone can remove the folder */
        return status;
    const cvy_status removed = cvy_selftest_folder_remove(t);
    return status == CVY_OK ? removed : status;
}

static cvy_status examine(cvy_selftest *t)
{
    const cvy_watchdog_opts opts = {.timeout_s = (t->opts.limit_s > 0 ? t->opts.limit_s : LIMIT_S) / WATCHDOG_PATIENCE};
    CVY_TRY(cvy_comm_agree(t->context->comm, cvy_watchdog_start(t->context, &opts, &t->watchdog)));
    const cvy_status status = run_checks(t);
    cvy_watchdog_stop(&t->watchdog);
    return status;
}

cvy_status cvy_run_selftest(cvy_context *context, const cvy_selftest_opts *opts, cvy_selftest_result *result_out)
{
    CVY_ENTRY();
    cvy_selftest *t = NULL;
    cvy_pool *pool = NULL;
    cvy_selftest_opts own = {0};
    *result_out = (cvy_selftest_result){0};
    CVY_TRY(CVY_LIVE(CONTEXT, context));
    cvy_status status = CVY_OPTS_READ(cvy_selftest_opts, opts, &own);
    if (status == CVY_OK && own.control)
        status = cvy_handle_check(own.control, CVY_HANDLE_TRAIN_CONTROL, "opts.control");
    if (status == CVY_OK)
        status = cvy_pool_create(&pool);
    if (status == CVY_OK)
        status = cvy_pool_alloc(pool, sizeof *t, &t);
    status = cvy_comm_agree(context->comm, status);
    if (status == CVY_OK) {
        *t = (cvy_selftest){.context = context, .pool = pool, .opts = own, .begin_s = cvy_clock_s()};
        status = examine(t);
    }
    if (status == CVY_OK && context->comm->rank == 0)
        cvy_selftest_result_make(t, result_out);
    else
        cvy_pool_destroy(&pool);
    if (status == CVY_E_COMM)
        return status;
    status = cvy_comm_agree(context->comm, status);
    if (status != CVY_OK)
        cvy_selftest_result_release(result_out);
    return status;
}
