/*
 * run_checkpoint.c: saves a checkpoint set so that a crash at any moment leaves the old sets or the old and the new one, never half of one.
 *
 * In the step: after the update of a step that is due, on rank 0. The order: files, each synced; manifest; rename of the folder; sync of its
 * parent; `latest`; and only then older sets are deleted, and only while two verified ones remain.
 */
#include "run/run_checkpoint.h"

#include <errno.h>
#include <string.h>

#include "run/run_checkpoint_set.h"
#include "run/run_manifest.h"

#define SETS_MIN 2             /* verified sets that always stay */
#define FILES_MAX 5

struct saver {
    cvy_pool *pool;
    const char *dir;
    char *name, *path, *aside;
    int64_t step;
    cvy_manifest_file file[FILES_MAX];
    int nfile;
};

/* ---- tensors ---- */

struct fetcher {
    const cvy_variable **variable;
    void *plain;               /* one variable's elements in plain layout */
};

static cvy_status fetch_variable(void *user, int i, const void **data_out)
{
    struct fetcher *f = user;
    CVY_TRY(cvy_variable_read(f->variable[i], f->plain));
    *data_out = f->plain;
    return CVY_OK;
}

static size_t plain_bytes(const cvy_variable *v)
{
    return (size_t)cvy_shape_elems(&v->shape) * cvy_dtype_bytes(v->dtype);
}

/* Writes the variables that are optimiser states, or those that are not. */
static cvy_status write_variables(const char *path, const cvy_vars *vars, int states, const char *const *meta, uint64_t *hash_out, size_t *bytes_out)
{
    cvy_status status = CVY_OK;
    cvy_tensor_entry *entry = NULL;
    struct fetcher f = {0};
    size_t room = 0;
    int count = 0;
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *entry * (size_t)vars->count, &entry));
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *f.variable * (size_t)vars->count, &f.variable));
    for (int i = 0; i < vars->count; i++) {
        const cvy_variable *v = vars->at[i];
        if ((v->role == CVY_ROLE_STATE) != states)
            continue;
        entry[count] = (cvy_tensor_entry){.name = v->name, .dtype = v->dtype, .shape = v->shape};
        f.variable[count++] = v;
        room = CVY_MAX(room, plain_bytes(v));
    }
    CVY_TRY_OUT(cvy_mem_alloc_pages(room, &f.plain));
    CVY_TRY_OUT(cvy_safetensors_write_fetched(path, entry, count, meta, fetch_variable, &f, hash_out, bytes_out));
out:
    cvy_mem_free_pages(&f.plain, room);
    cvy_mem_free(&f.variable);
    cvy_mem_free(&entry);
    return status;
}

cvy_status cvy_weights_save(const char *path, const cvy_vars *vars)
{
    const char *const meta[] = {"writer", "convoy", "version", cvy_version(), NULL};
    return write_variables(path, vars, 0, meta, NULL, NULL);
}

/* ---- the files of a set ---- */

static cvy_status save_variables(struct saver *s, const char *name, const cvy_vars *vars, int states)
{
    cvy_manifest_file *file = &s->file[s->nfile++];
    char *path = NULL, *step = NULL;
    CVY_TRY(cvy_pool_printf(s->pool, &path, "%s/%s", s->aside, name));
    CVY_TRY(cvy_pool_printf(s->pool, &step, "%lld", (long long)s->step));
    const char *const meta[] = {"writer", "convoy", "version", cvy_version(), "step", step, NULL};
    file->name = name;
    return write_variables(path, vars, states, meta, &file->hash, &file->bytes);
}

static cvy_status save_text(struct saver *s, const char *name, const char *text)
{
    cvy_manifest_file *file = &s->file[s->nfile++];
    char *path = NULL;
    CVY_TRY(cvy_pool_printf(s->pool, &path, "%s/%s", s->aside, name));
    *file = (cvy_manifest_file){.name = name, .bytes = strlen(text), .hash = cvy_hash(text, strlen(text))};
    return cvy_file_replace(path, text, file->bytes);
}

static cvy_status write_set(struct saver *s, const cvy_vars *vars, const cvy_vars *pending, const char *state_json, const char *plan_json)
{
    CVY_TRY(cvy_file_make_folder(s->dir));
    CVY_TRY(cvy_file_remove_tree(s->aside));
    CVY_TRY(cvy_file_make_folder(s->aside));
    CVY_TRY(save_variables(s, CVY_SET_WEIGHTS, vars, 0));
    CVY_TRY(save_variables(s, CVY_SET_STATES, vars, 1));
    if (pending)
        CVY_TRY(save_variables(s, CVY_SET_PENDING, pending, 1));
    CVY_TRY(save_text(s, CVY_SET_STATE, state_json));
    if (plan_json)
        CVY_TRY(save_text(s, CVY_SET_PLAN, plan_json));
    CVY_TRY(cvy_manifest_write(s->aside, s->step, s->file, s->nfile));
    return cvy_file_sync_folder(s->aside);
}

static cvy_status rename_folder(const char *from, const char *to)
{
    CVY_CHECK(rename(from, to) == 0, CVY_E_IO, "cannot rename %s to %s: %s", from, to, strerror(errno));
    return CVY_OK;
}

/* A set of the same step makes place first; between the two renames it is found under its second name. */
static cvy_status put_in_place(struct saver *s)
{
    char *replaced = NULL;
    CVY_TRY(cvy_pool_printf(s->pool, &replaced, "%s.replaced", s->path));
    const int old = cvy_file_exists(s->path);
    if (old) {
        CVY_TRY(cvy_file_remove_tree(replaced));
        CVY_TRY(rename_folder(s->path, replaced));
    }
    const cvy_status status = rename_folder(s->aside, s->path);
    if (status != CVY_OK) {
        if (old)
            rename(replaced, s->path);     /* the fault above is the one to report; either name is found */
        return status;
    }
    return cvy_file_sync_folder(s->dir);
}

/* ---- tidying up ---- */

/* Renamed first, so that a deletion that is cut short leaves nothing that looks like a set. */
static cvy_status delete_set(struct saver *s, const cvy_set *set)
{
    char *aside = NULL;
    if (set->kind == CVY_SET_ASIDE)
        return cvy_file_remove_tree(set->path);
    CVY_TRY(cvy_pool_printf(s->pool, &aside, "%s.aside", set->path));
    if (set->kind == CVY_SET_REPLACED)
        return cvy_file_remove_tree(set->path);
    CVY_TRY(cvy_file_remove_tree(aside));
    CVY_TRY(rename_folder(set->path, aside));
    return cvy_file_remove_tree(aside);
}

static int same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

/* Counts verified sets among those whose flag is `stays`, newest first, up to the least number; those found so stay. */
static void count_verified(const cvy_set *sets, int64_t count, char *stays, char flag, int *verified)
{
    for (int64_t i = 0; i < count && *verified < SETS_MIN; i++)
        if (stays[i] == flag && sets[i].kind != CVY_SET_ASIDE && cvy_set_verify(&sets[i]) == CVY_OK) {
            stays[i] = 1;
            (*verified)++;
        }
}

static cvy_status tidy(struct saver *s, int keep, const char *protect)
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
        if (sets[i].kind == CVY_SET_ASIDE || shadowed)
            continue;
        stays[i] = keep <= 0 || nwhole < keep || sets[i].step == s->step || same(sets[i].name, best) || same(sets[i].name, protect);
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

static cvy_status after_commit(struct saver *s, int keep, const char *protect)
{
    char *path = NULL, *line = NULL;
    CVY_TRY(cvy_pool_printf(s->pool, &path, "%s/latest", s->dir));
    CVY_TRY(cvy_pool_printf(s->pool, &line, "%s\n", s->name));
    CVY_TRY(cvy_file_replace(path, line, strlen(line)));
    return tidy(s, keep, protect);
}

/* Removes what was written aside, to give the disk its room back, without losing the fault that led here. */
static cvy_status give_up(struct saver *s, cvy_status status)
{
    char fault[1024];
    snprintf(fault, sizeof fault, "%s", cvy_error_text());
    if (s->aside && cvy_file_exists(s->aside))
        (void)!cvy_file_remove_tree(s->aside);
    return cvy_error_set(status, "checkpoint of step %lld is not saved, earlier ones are untouched: %s", (long long)s->step, fault);
}

cvy_status cvy_checkpoint_save(const char *dir, int64_t step, const cvy_vars *vars, const cvy_vars *pending, const char *state_json, const char *plan_json,
                               int keep, const char *protect)
{
    cvy_status status = CVY_OK;
    struct saver s = {.dir = dir, .step = step};
    CVY_CHECK(step >= 0 && state_json, CVY_E_ARGUMENT, "a checkpoint needs a step of 0 or more (got %lld) and a state", (long long)step);
    CVY_TRY_OUT(cvy_pool_create(&s.pool));
    CVY_TRY_OUT(cvy_set_name(s.pool, step, &s.name));
    CVY_TRY_OUT(cvy_pool_printf(s.pool, &s.path, "%s/%s", dir, s.name));
    CVY_TRY_OUT(cvy_pool_printf(s.pool, &s.aside, "%s.aside", s.path));
    status = write_set(&s, vars, pending, state_json, plan_json);
    if (status == CVY_OK)
        status = put_in_place(&s);
    if (status != CVY_OK) {
        status = give_up(&s, status);
        goto out;
    }
    status = after_commit(&s, keep, protect);
    if (status != CVY_OK)
        status = cvy_error_prefix(status, "%s is saved, but", s.name);
out:
    cvy_pool_destroy(&s.pool);
    return status;
}
