/*
 * session_overlap.c: see session_overlap.h. Only names and numbers of files are looked at; copies of samples in other
 * files are found while they are read (data_seen.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "session/session_overlap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base_file.h"
#include "data/data_index.h"
#include "data/data_sources.h"
#include "session/session_source.h"

static const char *path_of(const cvy_tree *source)
{
    const char *path = source->kind == CVY_TREE_MAP ? cvy_tree_text_at(source, "path") : source->text;
    return path || source->kind != CVY_TREE_MAP ? path : cvy_tree_text_at(source, "x");
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

static const cvy_tree *option(const cvy_tree *source, const char *key)
{
    return source->kind == CVY_TREE_MAP ? cvy_tree_get(source, key) : NULL;
}

int cvy_source_is_same(const cvy_tree *a, const cvy_tree *b)
{
    static const char *const choosing[] = {"range", "limit", "where", "ids"};
    if (!a || !b)
        return 0;
    if (!path_of(a) || !path_of(b))
        return is_same_text(a, b);
    for (int i = 0; i < CVY_COUNT(choosing); i++)
        if (!is_same_text(option(a, choosing[i]), option(b, choosing[i])))
            return 0;
    return is_same_place(path_of(a), path_of(b));
}

/* ---- ranges ---- */

static int has_percent(const cvy_tree *range)
{
    return range && range->text && strchr(range->text, '%');
}

/* The samples of a source as a range of `count`. Returns 0 if it is not known. */
static int find_range(const cvy_tree *source, int64_t count, int64_t *first, int64_t *end)
{
    const cvy_tree *range = option(source, "range"), *limit = option(source, "limit");
    int64_t most = 0;
    *first = 0;
    *end = count;
    if (range && cvy_source_range(range, count, first, end) != CVY_OK)
        return 0;
    if (limit && cvy_tree_int(limit, &most) != CVY_OK)
        return 0;
    if (limit)
        *end = CVY_MIN(*end, *first + most);
    return 1;
}

/* Whether two sources may choose the same samples of a file. */
static int may_share(const cvy_tree *a, const cvy_tree *b)
{
    static const char *const others[] = {"where", "mask", "part", "x", "ids"};
    const int percent = has_percent(option(a, "range")) || has_percent(option(b, "range"));
    const int64_t count = percent ? 1000000 : (int64_t)1 << 40;
    int64_t first[2], end[2];
    for (int i = 0; i < CVY_COUNT(others); i++)
        if (!is_same_text(option(a, others[i]), option(b, others[i])))
            return 0;
    if (percent && (option(a, "limit") || option(b, "limit")))
        return 0;
    if (!find_range(a, count, &first[0], &end[0]) || !find_range(b, count, &first[1], &end[1]))
        return 0;
    return first[0] < end[1] && first[1] < end[0];
}

/* ---- files ---- */

enum { FILES_MAX = 1000 }; /* of a pattern: more would take long on a shared file system */

struct place {
    const cvy_tree *source;
    const char *path;
    dev_t device, in_device; /* of the file or folder, and of the folder that it is in */
    ino_t inode, in_inode;
    int is_folder;
};

struct places {
    cvy_pool *pool;
    struct place *at;
    int64_t n, room;
};

static cvy_status add_place(struct places *p, const cvy_tree *source, const char *path)
{
    struct stat own, in;
    struct place place = {.source = source, .path = path};
    const char *folder = NULL;
    char *full = NULL;
    if (stat(path, &own) != 0)
        return CVY_OK;
    full = realpath(path, NULL);
    const cvy_status status = cvy_data_folder_of(p->pool, full ? full : path, &folder);
    free(full);
    CVY_TRY(status);
    if (stat(folder, &in) != 0)
        in = own;
    place.device = own.st_dev;
    place.inode = own.st_ino;
    place.in_device = in.st_dev;
    place.in_inode = in.st_ino;
    place.is_folder = S_ISDIR(own.st_mode);
    if (p->n == p->room) {
        const int64_t room = CVY_MAX(2 * p->room, 64);
        CVY_TRY(cvy_mem_grow(&p->at, (size_t)p->room * sizeof *p->at, (size_t)room * sizeof *p->at));
        p->room = room;
    }
    p->at[p->n++] = place;
    return CVY_OK;
}

static int any_name(const char *name)
{
    return name[0] != 0;
}

static cvy_status list_places(struct places *p, const cvy_tree *source)
{
    const char **file = NULL, *path = NULL;
    int64_t count = 0;
    if (!source)
        return CVY_OK;
    const cvy_tree *several = source->kind == CVY_TREE_LIST ? source : option(source, "sources");
    for (int i = 0; several && several->kind == CVY_TREE_LIST && i < several->count; i++)
        CVY_TRY(list_places(p, several->child[i]));
    path = several ? NULL : path_of(source);
    if (!path)
        return CVY_OK;
    if (!cvy_data_is_glob(path))
        return add_place(p, source, path);
    if (cvy_data_files(p->pool, path, any_name, "*", &file, &count, NULL) != CVY_OK)
        return CVY_OK;
    for (int64_t i = 0; i < CVY_MIN(count, FILES_MAX); i++)
        CVY_TRY(add_place(p, source, file[i]));
    return CVY_OK;
}

/* Whether b is a file, or a class, that is read with the folder a. */
static int is_inside(const struct place *a, const struct place *b)
{
    const cvy_reader_def *of_a = NULL, *of_b = NULL;
    if (!a->is_folder || a->device != b->in_device || a->inode != b->in_inode ||
        cvy_reader_detect(a->path, &of_a) != CVY_OK || cvy_reader_detect(b->path, &of_b) != CVY_OK)
        return 0;
    const int of_classes = strcmp(of_a->name, "folder") == 0;
    return of_a == of_b && strcmp(of_a->name, "npy") != 0 && (b->is_folder ? of_classes : !of_classes);
}

static int share_file(const struct place *a, const struct place *b)
{
    const int same = a->device == b->device && a->inode == b->inode;
    return (same || is_inside(a, b) || is_inside(b, a)) && may_share(a->source, b->source);
}

static void compare(const cvy_session *s, const char *a_key, const struct places *a, const char *b_key,
                    const struct places *b)
{
    int64_t shared = 0;
    const struct place *first[2] = {NULL, NULL};
    for (int64_t i = 0; i < a->n; i++)
        for (int64_t k = 0; k < b->n; k++)
            if (share_file(&a->at[i], &b->at[k]) && shared++ == 0) {
                first[0] = &a->at[i];
                first[1] = &b->at[k];
            }
    if (shared == 0)
        return;
    cvy_log(
        s->context, CVY_LOG_WARN,
        "data.%s and data.%s read the same samples: %s%s%s%s; scores of samples that were trained on, or that chose "
        "the weights, are too good",
        a_key, b_key, first[0]->path, strcmp(first[0]->path, first[1]->path) == 0 ? "" : " and ",
        strcmp(first[0]->path, first[1]->path) == 0 ? "" : first[1]->path, shared > 1 ? ", and other files" : "");
}

cvy_status cvy_session_warn_of_overlap(const cvy_session *s)
{
    const struct cvy_job_data *d = &s->job->data;
    static const char *const key[] = {"train", "val", "test"};
    const cvy_tree *const source[] = {d->train, d->val_share > 0 ? NULL : d->val, d->test};
    struct places p[3] = {{0}};
    cvy_pool *pool = NULL;
    cvy_status status = CVY_OK;
    if (s->context->comm->rank != 0 || (!source[1] && !source[2])) /* rank 0 logs */
        return CVY_OK;
    CVY_TRY_OUT(cvy_pool_create(&pool));
    for (int i = 0; i < 3; i++) {
        p[i].pool = pool;
        CVY_TRY_OUT(list_places(&p[i], source[i]));
    }
    for (int i = 0; i < 3; i++)
        for (int k = i + 1; k < 3; k++) {
            if (source[i] && source[k] && !path_of(source[i]) && !path_of(source[k]) &&
                source[i]->kind == CVY_TREE_MAP && is_same_text(source[i], source[k]))
                cvy_log(s->context, CVY_LOG_WARN, "data.%s and data.%s are the same samples", key[i], key[k]);
            compare(s, key[i], &p[i], key[k], &p[k]);
        }
out:
    for (int i = 0; i < 3; i++)
        cvy_mem_free(&p[i].at);
    cvy_pool_destroy(&pool);
    return status;
}

/* ---- groups ---- */

cvy_status cvy_session_note_groups(const cvy_session *s, const char *key, const cvy_tree *source,
                                   const cvy_dataset *other)
{
    const char *name = cvy_job_source_option(source, "group");
    int64_t n = 0, nshared = 0;
    char shared[80];
    if (!name || !cvy_job_source_option(s->job->data.train, "group"))
        return CVY_OK;
    CVY_TRY(cvy_dataset_shared_groups(s->base, other, &n, &nshared, shared));
    if (nshared > 0)
        cvy_log(s->context, CVY_LOG_WARN,
                "%lld of the %lld groups of data.%s (%s) are also in data.train, such as \"%s\": scores of groups that "
                "were trained on are too good",
                (long long)nshared, (long long)n, key, name, shared);
    return CVY_OK;
}
