/*
 * train_copies.c: says which samples are exact copies: of the validation or test data among those of the training, and
 * within the training. The hashes are of samples that the first epoch and its validation read anyway.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "data/data_reader.h"
#include "data/data_seen.h"
#include "train/trainer.h"

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

/* ", 3 of them with another label (or target)" */
static const char *relabelled(int64_t n, char text[80])
{
    text[0] = 0;
    if (n > 0)
        snprintf(text, 80, ", %lld of them with another label or target", (long long)n);
    return text;
}

static void say(cvy_trainer *t, const cvy_copies *c)
{
    char a[1024], b[1024], line[2400], labels[80], sampled[80] = "";
    const cvy_context *context = t->session.context;
    if (c->every > 1)
        snprintf(sampled, sizeof sampled, " (one of %lld was looked at)", (long long)c->every);
    if (c->shared > 0) {
        cvy_seen_where(scored(t), c->example[0], a, sizeof a);
        cvy_seen_where(t->session.train, c->example[1], b, sizeof b);
        cvy_log(
            context, CVY_LOG_WARN,
            "%lld of %lld samples of data.%s%s are exact copies of training samples%s: %s is the same as %s; scores "
            "of copies are too good (docs/guide/splits.md)",
            (long long)c->shared, (long long)c->nother, t->validation.source, sampled,
            relabelled(c->relabelled, labels), a, b);
    }
    if (c->within > 0) {
        cvy_seen_where(t->session.train, c->within_example[0], a, sizeof a);
        cvy_seen_where(t->session.train, c->within_example[1], b, sizeof b);
        snprintf(line, sizeof line,
                 "%lld of %lld training samples%s are exact copies of others%s: %s is the same as %s",
                 (long long)c->within, (long long)c->ntrain, sampled, relabelled(c->within_relabelled, labels), a, b);
        if (c->within_relabelled > 0)
            cvy_log(context, CVY_LOG_WARN, "%s", line);
        else
            cvy_trainer_say(t, line);
    }
}

cvy_status cvy_trainer_compare_copies(cvy_trainer *t)
{
    cvy_copies copies;
    if (!t->copies.train || t->copies.are_said)
        return CVY_OK;
    t->copies.are_said = 1;
    const cvy_status status = cvy_seen_compare(t->session.context->comm, t->copies.train, t->copies.other, &copies);
    if (status == CVY_OK)
        say(t, &copies);
    return status == CVY_NOT_APPLICABLE ? CVY_OK : status;
}
