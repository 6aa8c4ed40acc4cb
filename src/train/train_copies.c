/*
 * train_copies.c: says which samples are exact copies: of the validation or test data among those of the training, and
 * within the training.
 *
 * The hashes are of samples that the first epoch and its validation read anyway. Test data that `convoy test` alone
 * will read are looked at when the first epoch ends, as far as that is cheap.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "data/data_reader.h"
#include "data/data_seen.h"
#include "train/trainer.h"

enum { TEST_SAMPLES_MAX = 4096, TEST_BYTES_MAX = 1 << 26 };

static cvy_dataset *scored(const cvy_trainer *t)
{
    return t->session.val ? t->session.val : t->session.test;
}

cvy_status cvy_trainer_watch_copies(cvy_trainer *t)
{
    cvy_dataset *const other = scored(t);
    if (!other)
        return CVY_OK;
    const int64_t n = cvy_dataset_describe(t->session.train)->nsamples + cvy_dataset_describe(other)->nsamples;
    CVY_TRY(cvy_seen_create(n, &t->copies.train));
    CVY_TRY(cvy_seen_create(n, &t->copies.other));
    cvy_dataset_watch(t->session.train, t->copies.train);
    cvy_dataset_watch(other, t->copies.other);
    return CVY_OK;
}

/* ---- what is said ---- */

/* ", 3 of them with another label or target" */
static const char *relabelled(int64_t n, char text[80])
{
    text[0] = 0;
    if (n > 0)
        snprintf(text, 80, ", %lld of them with another label or target", (long long)n);
    return text;
}

/* " (one of 4 was looked at)" */
static const char *sampled(const cvy_copies *c, char text[80])
{
    text[0] = 0;
    if (c->every > 1)
        snprintf(text, 80, " (one of %lld was looked at)", (long long)c->every);
    return text;
}

/* Whether x has few different values, as in a table of categories: most samples repeat an x, also with other labels.
 * Samples that were copied keep their labels. */
static int repeats_naturally(const cvy_copies *c)
{
    return 2 * c->within >= c->ntrain && 20 * c->within_relabelled >= c->within;
}

/* key: of the other data: "val". */
static void say_shared(cvy_trainer *t, const char *key, const cvy_dataset *other, const cvy_copies *c)
{
    char a[1024], b[1024], labels[80], some[80], line[300];
    if (c->shared == 0)
        return;
    if (repeats_naturally(c)) {
        snprintf(line, sizeof line, "%lld of %lld samples of data.%s%s have the x of training samples%s, as x repeats",
                 (long long)c->shared, (long long)c->nother, key, sampled(c, some), relabelled(c->relabelled, labels));
        cvy_trainer_say(t, line);
        return;
    }
    cvy_seen_where(other, c->example[0], a, sizeof a);
    cvy_seen_where(t->session.train, c->example[1], b, sizeof b);
    cvy_log(t->session.context, CVY_LOG_WARN,
            "%lld of %lld samples of data.%s%s are exact copies of training samples%s: %s is the same as %s; scores of "
            "copies are too good (docs/guide/your-data.md)",
            (long long)c->shared, (long long)c->nother, key, sampled(c, some), relabelled(c->relabelled, labels), a, b);
}

static void say_within(cvy_trainer *t, const cvy_copies *c)
{
    char a[1024], b[1024], labels[80], some[80], line[2400];
    if (c->within == 0)
        return;
    cvy_seen_where(t->session.train, c->within_example[0], a, sizeof a);
    cvy_seen_where(t->session.train, c->within_example[1], b, sizeof b);
    snprintf(line, sizeof line, "%lld of %lld training samples%s %s of others%s: %s is the same as %s",
             (long long)c->within, (long long)c->ntrain, sampled(c, some),
             repeats_naturally(c) ? "repeat the x" : "are exact copies", relabelled(c->within_relabelled, labels), a,
             b);
    if (c->within_relabelled > 0 && !repeats_naturally(c))
        cvy_log(t->session.context, CVY_LOG_WARN, "%s", line);
    else
        cvy_trainer_say(t, line);
}

/* ---- test data that the training does not read ---- */

/* Reads some samples, spread over the whole set, as they are stored; each rank has its part of them. A sample that
 * cannot be read is left to `convoy test`. */
static cvy_status note_test(const cvy_comm *comm, cvy_dataset *test, cvy_seen *seen)
{
    const int64_t n = cvy_dataset_describe(test)->nsamples, looks = CVY_MIN(n, TEST_SAMPLES_MAX);
    const cvy_reader_info *info = cvy_dataset_reader_info(test);
    const int64_t each = cvy_shape_elems(&info->shape) * (info->dtype == CVY_DTYPE_U8 ? 1 : 4),
                  most = CVY_MAX(CVY_MIN(looks, TEST_BYTES_MAX / CVY_MAX(each, 1)), 1);
    cvy_raw raw = {0};
    cvy_status status = CVY_OK;
    for (int64_t i = comm->rank; i < most && status != CVY_E_MEMORY; i += comm->nranks) {
        const int64_t number = most == n ? i : (int64_t)((double)i * (double)n / (double)most);
        status = cvy_dataset_read_raw(test, number, &raw);
        if (status == CVY_OK)
            cvy_seen_note(seen, number, info, &raw);
    }
    cvy_raw_free(&raw);
    return status == CVY_E_MEMORY ? status : CVY_OK;
}

static cvy_status open_test(const cvy_trainer *t, cvy_dataset **out)
{
    const cvy_session *s = &t->session;
    const cvy_data_form like = cvy_dataset_form(s->train);
    return cvy_dataset_open_like(s->job->data.test, s->job->data.steps, s->job->program.seed, 1, &like, out);
}

static cvy_status compare_test(cvy_trainer *t)
{
    cvy_comm *comm = t->session.context->comm;
    cvy_dataset *test = NULL;
    cvy_seen *seen = NULL;
    cvy_copies copies;
    const int64_t n = cvy_dataset_describe(t->session.train)->nsamples + cvy_dataset_describe(scored(t))->nsamples;
    cvy_status status = open_test(t, &test);
    if (status == CVY_OK)
        status = cvy_seen_create(n, &seen);
    if (status == CVY_OK)
        status = note_test(comm, test, seen);
    CVY_TRY_OUT(cvy_comm_agree(comm, status));
    CVY_TRY_OUT(cvy_seen_compare(comm, t->copies.train, seen, &copies));
    say_shared(t, "test", test, &copies);
out:
    cvy_seen_destroy(&seen);
    cvy_dataset_destroy(&test);
    return status;
}

cvy_status cvy_trainer_compare_copies(cvy_trainer *t)
{
    cvy_copies copies;
    if (!t->copies.train || t->copies.are_said)
        return CVY_OK;
    t->copies.are_said = 1;
    cvy_status status = cvy_seen_compare(t->session.context->comm, t->copies.train, t->copies.other, &copies);
    if (status == CVY_OK) {
        say_within(t, &copies);
        say_shared(t, t->validation.source, scored(t), &copies);
        if (t->session.val && t->session.job->data.test)
            status = compare_test(t);
    }
    return status == CVY_NOT_APPLICABLE ? CVY_OK : status;
}
