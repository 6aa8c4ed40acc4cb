/*
 * checkpoint.c: writes a checkpoint set. A crash at any moment leaves either the old sets, or the old ones and the new
 * one, but never an incomplete set.
 *
 * When a save is due, the ranks that write copy the tensors after the update (checkpoint_saver.c) and write them while
 * training continues. The order is: files, each synced; manifest; rename of the folder; sync of its parent; `latest`.
 * Only then older sets are deleted, and at least two verified sets remain.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "checkpoint/checkpoint.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base_file.h"
#include "base/base_hash.h"
#include "base/machine/base_machine.h"
#include "checkpoint/checkpoint_set.h"

#define SETS_MIN 2 /* minimum number of verified sets to keep */
#define COPY_ALIGN ((size_t)64)

struct tensors { /* the tensors of one file */
    const char *name;
    const char *network; /* see cvy_save_opts; NULL for all but weights */
    cvy_tensor_entry *entry;
    cvy_variable *from; /* copies of the variables' descriptions; `data` points to the variable or to its copy */
    int count;
};

struct cvy_save {
    cvy_pool *pool;
    const char *dir, *name, *path, *partial, *state_json, *plan_json, *protect;
    int64_t step;
    int keep, is_best, must_be_finite, part, in_stages;
    struct tensors tensors[3];
    int ntensors;
    cvy_manifest_file file[CVY_SAVE_FILES];
    int nfile;
};

/* ---- the tensors of a part ---- */

static size_t plain_bytes(const cvy_variable *v)
{
    return (size_t)cvy_shape_elems(&v->shape) * cvy_dtype_bytes(v->dtype);
}

static size_t entry_bytes(const cvy_tensor_entry *e)
{
    return (size_t)cvy_shape_elems(&e->shape) * cvy_dtype_bytes(e->dtype);
}

static int belongs(const cvy_variable *v, int states)
{
    return (v->role == CVY_ROLE_STATE) == states;
}

int64_t cvy_save_bytes(const cvy_vars *vars)
{
    int64_t bytes = 0;
    for (int i = 0; i < vars->count; i++)
        bytes += (int64_t)plain_bytes(vars->at[i]);
    return bytes;
}

/* Each part takes the variables that begin in its range of the bytes; in a pipeline, those of its stage. */
static cvy_status list_tensors(cvy_save *s, const char *stem, const cvy_vars *vars, int states, int nparts)
{
    struct tensors *t = &s->tensors[s->ntensors++];
    char *name = NULL;
    double all = 0, before = 0;
    CVY_TRY(nparts == 1 ? cvy_pool_printf(s->pool, &name, "%s.safetensors", stem)
                        : cvy_pool_printf(s->pool, &name, "%s-%05d-of-%05d.safetensors", stem, s->part + 1, nparts));
    t->name = name;
    CVY_TRY(cvy_pool_alloc(s->pool, sizeof *t->entry * (size_t)(vars->count + 1), &t->entry));
    CVY_TRY(cvy_pool_alloc(s->pool, sizeof *t->from * (size_t)(vars->count + 1), &t->from));
    for (int i = 0; i < vars->count; i++)
        all += belongs(vars->at[i], states) ? (double)plain_bytes(vars->at[i]) : 0;
    for (int i = 0; i < vars->count; i++) {
        const cvy_variable *v = vars->at[i];
        if (!belongs(v, states))
            continue;
        const int part = all > 0 ? CVY_MIN((int)(before / all * nparts), nparts - 1) : 0;
        before += (double)plain_bytes(v);
        if (s->in_stages ? v->elsewhere : part != s->part)
            continue;
        char *own = NULL; /* the variable may be destroyed after it is copied */
        CVY_TRY(cvy_pool_strdup(s->pool, v->name, &own));
        t->entry[t->count] = (cvy_tensor_entry){.name = own, .dtype = v->dtype, .shape = v->shape};
        t->from[t->count++] = *v;
    }
    return CVY_OK;
}

/* ---- the copy ---- */

static size_t room_of(const cvy_variable *v)
{
    return (v->bytes + COPY_ALIGN - 1) / COPY_ALIGN * COPY_ALIGN;
}

/* Copies in the variables' own layouts, which takes less time than a conversion to plain layout. The conversion is done
 * while training continues. */
cvy_status cvy_save_copy(cvy_save *s, cvy_save_room *room)
{
    char *at = NULL;
    size_t bytes = 0;
    for (int f = 0; f < s->ntensors; f++)
        for (int i = 0; i < s->tensors[f].count; i++)
            bytes += room_of(&s->tensors[f].from[i]);
    if (room->bytes < bytes) {
        cvy_mem_free_pages(&room->data, room->bytes);
        room->bytes = 0;
        char source[256];
        const int64_t left = cvy_mem_left_by(source, sizeof source);
        if (left > 0 && (double)bytes > 0.5 * (double)left)
            return cvy_error_set(CVY_E_MEMORY,
                                 "a copy of %zu bytes would take more than half of the %lld bytes of memory that are "
                                 "left by %s",
                                 bytes, (long long)left, source);
        CVY_TRY(cvy_mem_alloc_pages(bytes, &room->data));
        room->bytes = bytes;
    }
    at = room->data;
    for (int f = 0; f < s->ntensors; f++)
        for (int i = 0; i < s->tensors[f].count; i++) {
            cvy_variable *v = &s->tensors[f].from[i];
            CVY_TRY(cvy_space_read(v->space, at, v->data, v->bytes));
            v->data = at;
            v->space = NULL; /* the copy is in the host's memory */
            at += room_of(v);
        }
    return CVY_OK;
}

cvy_status cvy_save_create(const cvy_save_opts *o, cvy_save **out)
{
    cvy_pool *pool = NULL;
    cvy_save *s = NULL;
    cvy_status status = CVY_OK;
    char *text = NULL;
    CVY_CHECK(o->step >= 0 && o->state_json, CVY_E_ARGUMENT,
              "a checkpoint needs a step of 0 or more (got %lld) and a state", (long long)o->step);
    CVY_TRY(cvy_pool_create(&pool));
    CVY_TRY_OUT(cvy_pool_alloc(pool, sizeof *s, &s));
    *s = (cvy_save){.pool = pool,
                    .step = o->step,
                    .keep = o->keep,
                    .is_best = o->is_best,
                    .must_be_finite = o->must_be_finite,
                    .part = o->part,
                    .in_stages = o->grid != NULL};
    CVY_TRY_OUT(cvy_pool_strdup(pool, o->dir, &text));
    s->dir = text;
    CVY_TRY_OUT(cvy_pool_strdup(pool, o->state_json, &text));
    s->state_json = text;
    if (o->plan_json)
        CVY_TRY_OUT(cvy_pool_strdup(pool, o->plan_json, &text));
    s->plan_json = o->plan_json ? text : NULL;
    if (o->protect)
        CVY_TRY_OUT(cvy_pool_strdup(pool, o->protect, &text));
    s->protect = o->protect ? text : NULL;
    CVY_TRY_OUT(cvy_set_name(pool, o->step, &text));
    s->name = text;
    CVY_TRY_OUT(cvy_pool_printf(pool, &text, "%s/%s", o->dir, s->name));
    s->path = text;
    CVY_TRY_OUT(cvy_pool_printf(pool, &text, "%s.aside", s->path));
    s->partial = text;
    CVY_TRY_OUT(list_tensors(s, CVY_SET_WEIGHTS, o->vars, 0, o->nparts));
    if (o->network)
        CVY_TRY_OUT(cvy_pool_strdup(pool, o->network, &text));
    s->tensors[0].network = o->network ? text : NULL;
    CVY_TRY_OUT(list_tensors(s, CVY_SET_STATES, o->vars, 1, o->nparts));
    if (o->pending)
        CVY_TRY_OUT(list_tensors(s, CVY_SET_PENDING, o->pending, 1, o->nparts));
    *out = s;
out:
    if (status != CVY_OK)
        cvy_pool_destroy(&pool);
    return status;
}

void cvy_save_destroy(cvy_save **save)
{
    cvy_save *s = *save;
    if (!s)
        return;
    cvy_pool *pool = s->pool;
    *save = NULL;
    cvy_pool_destroy(&pool);
}

/* ---- writing tensors ---- */

struct fetcher {
    const struct tensors *t;
    void *plain; /* one variable's elements in plain layout */
};

static cvy_status fetch_tensor(void *user, int i, const void **data_out)
{
    struct fetcher *f = user;
    const cvy_variable *v = &f->t->from[i];
    const int is_plain = cvy_layout_is_plain(&v->layout) && v->data && cvy_space_is_host(v->space);
    if (!is_plain)
        CVY_TRY(cvy_variable_read(v, f->plain));
    *data_out = is_plain ? v->data : f->plain;
    return CVY_OK;
}

/* A run whose weights are no longer finite must not replace its earlier checkpoints. Constants may be infinite, as
 * masks are that are added before a softmax. */
static cvy_status check_finite(const cvy_tensor_entry *e, int is_constant, const void *data)
{
    const int64_t n = cvy_shape_elems(&e->shape);
    int finite = 1;
    for (int64_t i = 0; e->dtype == CVY_DTYPE_F32 && i < n; i++) {
        const float x = ((const float *)data)[i];
        finite &= (isfinite(x) != 0) | (is_constant & (isinf(x) != 0));
    }
    for (int64_t i = 0; e->dtype == CVY_DTYPE_F64 && i < n; i++) {
        const double x = ((const double *)data)[i];
        finite &= (isfinite(x) != 0) | (is_constant & (isinf(x) != 0));
    }
    CVY_CHECK(finite, CVY_E_NUMERIC,
              "%s %s holds a number that is not finite, so it is not saved: use a lower learning rate, or clip "
              "gradients by their norm (clip_norm)",
              e->name, cvy_shape_text(&e->shape));
    return CVY_OK;
}

/* The metadata of a file: the program version, the step, and each tensor's hash. */
static cvy_status make_meta(cvy_pool *pool, struct fetcher *f, const char *step, int must_be_finite,
                            const char ***meta_out)
{
    const char **meta = NULL;
    int n = 0;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *meta * (size_t)(2 * f->t->count + 10), &meta));
    const char *const head[][2] = {
        {"writer", "convoy"}, {"version", cvy_version()}, {"step", step}, {CVY_META_NETWORK, f->t->network}};
    for (int i = 0; i < CVY_COUNT(head); i++)
        if (head[i][1]) {
            meta[n++] = head[i][0];
            meta[n++] = head[i][1];
        }
    for (int i = 0; i < f->t->count; i++) {
        const cvy_tensor_entry *e = &f->t->entry[i];
        const void *data = NULL;
        char *key = NULL, *hash = NULL;
        CVY_TRY(fetch_tensor(f, i, &data));
        if (must_be_finite)
            CVY_TRY(check_finite(e, f->t->from[i].frozen != 0, data));
        CVY_TRY(cvy_pool_printf(pool, &key, "%s:%s", cvy_hash_name(), e->name));
        CVY_TRY(cvy_pool_printf(pool, &hash, "%016llx", (unsigned long long)cvy_hash(data, entry_bytes(e))));
        meta[n++] = key;
        meta[n++] = hash;
    }
    *meta_out = meta;
    return CVY_OK;
}

static cvy_status write_tensors(cvy_pool *pool, const char *path, const struct tensors *t, const char *step,
                                int must_be_finite, uint64_t *hash_out, size_t *bytes_out)
{
    cvy_status status = CVY_OK;
    struct fetcher f = {.t = t};
    const char **meta = NULL;
    size_t room = 0;
    for (int i = 0; i < t->count; i++)
        room = CVY_MAX(room, entry_bytes(&t->entry[i]));
    CVY_TRY_OUT(cvy_mem_alloc_pages(room, &f.plain));
    CVY_TRY_OUT(make_meta(pool, &f, step, must_be_finite, &meta));
    CVY_TRY_OUT(cvy_safetensors_write_fetched(path, t->entry, t->count, meta, fetch_tensor, &f, hash_out, bytes_out));
out:
    cvy_mem_free_pages(&f.plain, room);
    return status;
}

cvy_status cvy_weights_save(const char *path, const cvy_vars *vars)
{
    cvy_status status = CVY_OK;
    cvy_save s = {.part = 0};
    CVY_TRY_OUT(cvy_pool_create(&s.pool));
    CVY_TRY_OUT(list_tensors(&s, CVY_SET_WEIGHTS, vars, 0, 1));
    CVY_TRY_OUT(write_tensors(s.pool, path, &s.tensors[0], NULL, 0, NULL, NULL));
out:
    cvy_pool_destroy(&s.pool);
    return status;
}

/* ---- the files of a set ---- */

cvy_status cvy_save_make_folder(const cvy_save *s)
{
    CVY_TRY(cvy_file_make_folder(s->dir));
    CVY_TRY(cvy_file_remove_tree(s->partial));
    CVY_CHECK(mkdir(s->partial, 0777) == 0, CVY_E_IO, "%s: cannot make the folder: %s", s->partial,
              strerror(errno)); /* the directory entry is synced after the rename */
    return CVY_OK;
}

static cvy_manifest_file *next_file(cvy_save *s, const char *name)
{
    cvy_manifest_file *file = &s->file[s->nfile++];
    snprintf(file->name, sizeof file->name, "%s", name);
    return file;
}

static cvy_status save_text(cvy_save *s, const char *name, const char *text)
{
    cvy_manifest_file *file = next_file(s, name);
    char *path = NULL;
    CVY_TRY(cvy_pool_printf(s->pool, &path, "%s/%s", s->partial, name));
    file->bytes = strlen(text);
    file->hash = cvy_hash(text, strlen(text));
    return cvy_file_replace(path, text, file->bytes);
}

cvy_status cvy_save_write(cvy_save *s)
{
    char *path = NULL, *step = NULL;
    CVY_TRY(cvy_pool_printf(s->pool, &step, "%lld", (long long)s->step));
    for (int f = 0; f < s->ntensors; f++) {
        cvy_manifest_file *file = next_file(s, s->tensors[f].name);
        CVY_TRY(cvy_pool_printf(s->pool, &path, "%s/%s", s->partial, file->name));
        CVY_TRY(write_tensors(s->pool, path, &s->tensors[f], step, s->must_be_finite, &file->hash, &file->bytes));
    }
    if (s->part == 0)
        CVY_TRY(save_text(s, CVY_SET_STATE, s->state_json));
    if (s->part == 0 && s->plan_json)
        CVY_TRY(save_text(s, CVY_SET_PLAN, s->plan_json));
    return CVY_OK;
}

int cvy_save_files(const cvy_save *s, cvy_manifest_file file[CVY_SAVE_FILES])
{
    memcpy(file, s->file, sizeof s->file);
    return s->nfile;
}

static cvy_status rename_folder(const char *from, const char *to)
{
    CVY_CHECK(rename(from, to) == 0, CVY_E_IO, "cannot rename %s to %s: %s", from, to, strerror(errno));
    return CVY_OK;
}

/* An existing set of the same step is renamed first. Between the two renames it is found under its second name. */
static cvy_status put_in_place(cvy_save *s)
{
    char *replaced = NULL;
    CVY_TRY(cvy_pool_printf(s->pool, &replaced, "%s.replaced", s->path));
    const int old = cvy_file_exists(s->path);
    if (old) {
        CVY_TRY(cvy_file_remove_tree(replaced));
        CVY_TRY(rename_folder(s->path, replaced));
    }
    const cvy_status status = rename_folder(s->partial, s->path);
    if (status != CVY_OK) {
        if (old)
            rename(replaced, s->path); /* the error above is the one to report; a reader finds either name */
        return status;
    }
    return cvy_file_sync_folder(s->dir);
}

/* ---- deleting old sets ---- */

/* The set is renamed first, so that an interrupted deletion leaves nothing that looks like a set. */
static cvy_status delete_set(cvy_save *s, const cvy_set *set)
{
    char *partial = NULL;
    if (set->kind == CVY_SET_PARTIAL)
        return cvy_file_remove_tree(set->path);
    CVY_TRY(cvy_pool_printf(s->pool, &partial, "%s.aside", set->path));
    if (set->kind == CVY_SET_REPLACED)
        return cvy_file_remove_tree(set->path);
    CVY_TRY(cvy_file_remove_tree(partial));
    CVY_TRY(rename_folder(set->path, partial));
    CVY_TRY(cvy_file_sync_folder(s->dir)); /* otherwise a power failure could undo the rename but keep the deletion */
    return cvy_file_remove_tree(partial);
}

static int same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

/* Looks for verified sets among those whose flag equals `stays`, newest first, until the minimum number is reached, and
 * marks them to stay. */
static void count_verified(const cvy_set *sets, int64_t count, char *stays, char flag, int *verified)
{
    for (int64_t i = 0; i < count && *verified < SETS_MIN; i++)
        if (stays[i] == flag && sets[i].kind != CVY_SET_PARTIAL && cvy_set_verify(&sets[i]) == CVY_OK) {
            stays[i] = 1;
            (*verified)++;
        }
}

static cvy_status tidy(cvy_save *s, int keep, const char *protect)
{
    cvy_set *sets = NULL;
    int64_t count = 0, nolder = 0;
    char *best = NULL, *stays = NULL;
    int verified = 0, nwhole = 0;
    CVY_TRY(cvy_set_list(s->pool, s->dir, &sets, &count));
    CVY_TRY(cvy_set_best(s->pool, s->dir, &best));
    CVY_TRY(cvy_pool_alloc(s->pool, (size_t)count + 1, &stays));
    for (int64_t i = 0; i < count; i++) {
        const int shadowed = sets[i].kind == CVY_SET_REPLACED && i > 0 && sets[i - 1].step == sets[i].step;
        if (sets[i].kind == CVY_SET_PARTIAL || shadowed)
            continue;
        stays[i] = keep <= 0 || nwhole < keep || sets[i].step == s->step || same(sets[i].name, best) ||
                   same(sets[i].name, protect);
        nwhole++;
        nolder += !stays[i];
    }
    if (nolder > 0) {
        count_verified(sets, count, stays, 1, &verified);
        count_verified(sets, count, stays, 0, &verified);
    }
    for (int64_t i = 0; i < count; i++)
        if (!stays[i])
            CVY_TRY(delete_set(s, &sets[i]));
    return CVY_OK;
}

static cvy_status after_commit(cvy_save *s)
{
    char *path = NULL, *line = NULL;
    CVY_TRY(cvy_pool_printf(s->pool, &path, "%s/latest", s->dir));
    CVY_TRY(cvy_pool_printf(s->pool, &line, "%s\n", s->name));
    CVY_TRY(cvy_file_replace(path, line, strlen(line)));
    if (s->is_best)
        CVY_TRY(cvy_checkpoint_mark_best(s->dir, s->step));
    return tidy(s, s->keep, s->protect);
}

cvy_status cvy_save_give_up(cvy_save *s, cvy_status status)
{
    char fault[1024];
    snprintf(fault, sizeof fault, "%s", cvy_error_text());
    if (cvy_file_exists(s->partial))
        (void)!cvy_file_remove_tree(s->partial);
    return cvy_error_set(status, "checkpoint of step %lld is not saved, earlier ones are untouched: %s",
                         (long long)s->step, fault);
}

static cvy_status put_together(cvy_save *s, const cvy_manifest_file *file, int count)
{
    CVY_TRY(cvy_manifest_write(s->partial, s->step, file, count));
    CVY_TRY(cvy_file_sync_folder(s->partial));
    return put_in_place(s);
}

cvy_status cvy_save_commit(cvy_save *s, const cvy_manifest_file *file, int count)
{
    cvy_status status = put_together(s, file, count);
    if (status != CVY_OK)
        return cvy_save_give_up(s, status);
    status = after_commit(s);
    return status == CVY_OK ? CVY_OK : cvy_error_prefix(status, "%s is saved, but", s->name);
}

cvy_status cvy_checkpoint_save(const cvy_save_opts *opts)
{
    cvy_save *s = NULL;
    CVY_TRY(cvy_save_create(opts, &s));
    cvy_status status = cvy_save_make_folder(s);
    if (status == CVY_OK)
        status = cvy_save_write(s);
    status = status == CVY_OK ? cvy_save_commit(s, s->file, s->nfile) : cvy_save_give_up(s, status);
    cvy_save_destroy(&s);
    return status;
}
