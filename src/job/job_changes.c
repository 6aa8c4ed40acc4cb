/*
 * job_changes.c: compares a resumed run's job with the one with which its folder was begun: lists the differences for
 * the log, and finds a default that has changed since then. Rank 0 calls it before the first step.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "base/text/base_table.h"
#include "base/text/base_tree.h"
#include "job/job_table.h"

enum { CHANGES_MAX = 12, PATH_ROOM = 200 };

static const char *word(const cvy_tree *node)
{
    return cvy_tree_is_null(node)          ? "nothing"
           : node->kind == CVY_TREE_SCALAR ? node->text
           : node->kind == CVY_TREE_LIST   ? "a list"
                                           : "a map";
}

/* Whether two scalars are the same number, as "4 MiB" and 4194304, or words for the same of true and false. */
static int same_value(const cvy_tree *a, const cvy_tree *b)
{
    int64_t left = 0, right = 0;
    if (a->kind != CVY_TREE_SCALAR || b->kind != CVY_TREE_SCALAR || !a->text || !b->text)
        return 0;
    if (cvy_text_int(a->text, &left) == CVY_OK && cvy_text_int(b->text, &right) == CVY_OK)
        return left == right;
    return strcmp(cvy_bool_word(a->text), cvy_bool_word(b->text)) == 0;
}

/* Compares nodes of any kind as text. A list with one item means the same as this item. */
static int same_text(const cvy_tree *a, const cvy_tree *b)
{
    a = a->kind == CVY_TREE_LIST && a->count == 1 ? a->child[0] : a;
    b = b->kind == CVY_TREE_LIST && b->count == 1 ? b->child[0] : b;
    if (same_value(a, b))
        return 1;
    char *left = NULL, *right = NULL;
    const int same =
        cvy_tree_print(a, &left) == CVY_OK && cvy_tree_print(b, &right) == CVY_OK && strcmp(left, right) == 0;
    cvy_mem_free(&left);
    cvy_mem_free(&right);
    return same;
}

/* Compares the same place in both jobs. It may be missing in one of them. */
static cvy_status compare(const cvy_tree *before, const cvy_tree *now, const char *path, int *count, cvy_text *out)
{
    if (before && now && before->kind == CVY_TREE_MAP && now->kind == CVY_TREE_MAP) {
        const cvy_tree *const side[] = {now, before};
        for (int s = 0; s < CVY_COUNT(side); s++)
            for (int i = 0; i < side[s]->count; i++) {
                char below[PATH_ROOM];
                const char *key = side[s]->key[i];
                if (s == 1 && cvy_tree_get(now, key))
                    continue;
                snprintf(below, sizeof below, "%s%s%s", path, *path ? "." : "", key);
                CVY_TRY(compare(cvy_tree_get(before, key), cvy_tree_get(now, key), below, count, out));
            }
        return CVY_OK;
    }
    if ((cvy_tree_is_null(before) && cvy_tree_is_null(now)) || (before && now && same_text(before, now)))
        return CVY_OK;
    if (++*count <= CHANGES_MAX)
        cvy_text_add(out, "%s%s: %s -> %s", *count > 1 ? ", " : "", path, word(before), word(now));
    return out->status;
}

cvy_status cvy_job_changes(const char *path, const char *job, cvy_text *out)
{
    cvy_pool *pool = NULL;
    cvy_tree *before = NULL, *now = NULL;
    cvy_text notes = {0};
    int count = 0;
    CVY_TRY(cvy_pool_create(&pool));
    cvy_status status = cvy_tree_parse_file(pool, path, &before);
    if (status == CVY_OK)
        status = cvy_tree_parse_text(pool, "this job", job, strlen(job), &now);
    if (status == CVY_OK)
        status = cvy_job_read_old_words(pool, before, &notes);
    if (status == CVY_OK)
        status = compare(before, now, "", &count, out);
    if (status == CVY_OK && count > CHANGES_MAX)
        cvy_text_add(out, ", and %d more", count - CHANGES_MAX);
    cvy_text_free(&notes);
    cvy_pool_destroy(&pool);
    return status;
}

int cvy_job_has_no_momentum(const char *path)
{
    cvy_pool *pool = NULL;
    cvy_tree *job = NULL;
    double number = 0;
    int has_none = 0;
    if (cvy_pool_create(&pool) != CVY_OK)
        return 0;
    if (cvy_tree_parse_file(pool, path, &job) == CVY_OK) {
        const cvy_tree *name = cvy_tree_at(job, "train.optimizer.name"),
                       *momentum = cvy_tree_at(job, "train.optimizer.momentum");
        has_none = name && name->text && strcmp(name->text, "sgd") == 0 &&
                   (!momentum || (cvy_tree_real(momentum, &number) == CVY_OK && number == 0));
    }
    cvy_pool_destroy(&pool);
    return has_none;
}
