/*
 * score_role.c: whether the samples of a test took part in the training: they were trained on, or chose the checkpoint
 * or the end. Their scores are then better than those of new samples, so `convoy test` and the report say it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "score/score_run.h"

static const char *path_of(const cvy_tree *source)
{
    return source->kind == CVY_TREE_MAP ? cvy_tree_text_at(source, "path") : source->text;
}

/* Whether two paths, which may be links or relative, lead to the same place. */
static int is_same_place(const char *a, const char *b)
{
    char *full_a = realpath(a, NULL), *full_b = realpath(b, NULL);
    const int same = strcmp(full_a ? full_a : a, full_b ? full_b : b) == 0;
    free(full_a);
    free(full_b);
    return same;
}

static int is_same_text(const cvy_tree *a, const cvy_tree *b)
{
    char *text_a = NULL, *text_b = NULL;
    const int same = (!a && !b) || (a && b && cvy_tree_print_line(a, &text_a) == CVY_OK &&
                                    cvy_tree_print_line(b, &text_b) == CVY_OK && strcmp(text_a, text_b) == 0);
    cvy_mem_free(&text_a);
    cvy_mem_free(&text_b);
    return same;
}

/* Whether two sources are the same samples: the same path, of which they choose in the same way. Other options say how
 * it is read. */
static int is_same_source(const cvy_tree *a, const cvy_tree *b)
{
    static const char *const choosing[] = {"range", "limit", "where"};
    if (!a || !b)
        return 0;
    if (!path_of(a) || !path_of(b))
        return is_same_text(a, b);
    for (int i = 0; i < CVY_COUNT(choosing); i++)
        if (!is_same_text(a->kind == CVY_TREE_MAP ? cvy_tree_get(a, choosing[i]) : NULL,
                          b->kind == CVY_TREE_MAP ? cvy_tree_get(b, choosing[i]) : NULL))
            return 0;
    return is_same_place(path_of(a), path_of(b));
}

const char *cvy_scoring_role(const cvy_scoring *s)
{
    const struct cvy_job_data *data = &s->session.job->data;
    const cvy_tree *test = s->session.from[CVY_SOURCE_TEST];
    if (is_same_source(test, data->train))
        return CVY_ROLE_TRAINED;
    const int chose = s->session.job->checkpoint.best || s->session.job->train.stop.patience > 0;
    return chose && data->val_share == 0 && is_same_source(test, data->val) ? CVY_ROLE_CHOSE : NULL;
}
