/*
 * checkpoint_set.c: names, lists, verifies and finds the checkpoint sets in a folder, and records the best one.
 *
 * No step calls it. It runs at the start of a resumed run, of `test` and `predict`, and when a save deletes old sets.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "checkpoint/checkpoint_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/base_file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_manifest.h"

#define JSON_BYTES_MAX ((size_t)16 << 20)
#define NOTE_BYTES_MAX ((size_t)4096)

int cvy_set_parse(const char *name, int64_t *step_out, cvy_set_kind *kind_out)
{
    static const char *const suffix[] = {
        [CVY_SET_WHOLE] = "", [CVY_SET_REPLACED] = ".replaced", [CVY_SET_PARTIAL] = ".aside"};
    const size_t digits = strncmp(name, "step-", 5) == 0 ? strspn(name + 5, "0123456789") : 0;
    if (digits == 0 || digits > 18)
        return 0;
    for (int kind = 0; kind < CVY_COUNT(suffix); kind++)
        if (strcmp(name + 5 + digits, suffix[kind]) == 0) {
            *step_out = strtoll(name + 5, NULL, 10);
            *kind_out = (cvy_set_kind)kind;
            return 1;
        }
    return 0;
}

cvy_status cvy_set_name(cvy_pool *pool, int64_t step, char **name_out)
{
    return cvy_pool_printf(pool, name_out, "step-%08lld", (long long)step);
}

static int newest_first(const void *a, const void *b)
{
    const cvy_set *x = a, *y = b;
    return x->step != y->step ? (x->step < y->step) - (x->step > y->step) : (int)x->kind - (int)y->kind;
}

cvy_status cvy_set_list(cvy_pool *pool, const char *dir, cvy_set **sets_out, int64_t *count_out)
{
    char **names = NULL;
    int64_t nnames = 0, count = 0;
    cvy_set *sets = NULL;
    if (cvy_file_exists(dir))
        CVY_TRY(cvy_file_list(pool, dir, &names, &nnames));
    CVY_TRY(cvy_pool_alloc(pool, sizeof *sets * (size_t)(nnames + 1), &sets));
    for (int64_t i = 0; i < nnames; i++) {
        cvy_set *set = &sets[count];
        if (!cvy_set_parse(names[i], &set->step, &set->kind))
            continue;
        set->name = names[i];
        CVY_TRY(cvy_pool_printf(pool, &set->path, "%s/%s", dir, names[i]));
        count++;
    }
    qsort(sets, (size_t)count, sizeof *sets, newest_first);
    *sets_out = sets;
    *count_out = count;
    return CVY_OK;
}

cvy_status cvy_set_verify(const cvy_set *set)
{
    static const char *const required[] = {CVY_SET_WEIGHTS, CVY_SET_STATES, CVY_SET_STATE, NULL};
    return cvy_manifest_verify(set->path, set->step, required);
}

static int by_name(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

/* "weights.safetensors" or "weights-00001-of-00004.safetensors" */
static int is_of_stem(const char *name, const char *stem)
{
    const size_t n = strlen(stem), end = strlen(CVY_TENSOR_FILE), length = strlen(name);
    return length >= n + end && strncmp(name, stem, n) == 0 && strcmp(name + length - end, CVY_TENSOR_FILE) == 0 &&
           (length == n + end || name[n] == '-');
}

cvy_status cvy_set_files(cvy_pool *pool, const char *path, const char *stem, const char ***paths_out, int *count_out)
{
    char **names = NULL, *joined = NULL;
    const char **paths = NULL;
    int64_t nnames = 0;
    int count = 0;
    CVY_TRY(cvy_file_list(pool, path, &names, &nnames));
    CVY_TRY(cvy_pool_alloc(pool, sizeof *paths * (size_t)(nnames + 1), &paths));
    for (int64_t i = 0; i < nnames; i++)
        if (is_of_stem(names[i], stem)) {
            CVY_TRY(cvy_pool_printf(pool, &joined, "%s/%s", path, names[i]));
            paths[count++] = joined;
        }
    qsort(paths, (size_t)count, sizeof *paths, by_name);
    *paths_out = paths;
    *count_out = count;
    return CVY_OK;
}

cvy_status cvy_set_best(cvy_pool *pool, const char *dir, char **name_out)
{
    cvy_status status = CVY_OK;
    char *path = NULL, *text = NULL;
    size_t bytes = 0;
    *name_out = NULL;
    CVY_TRY(cvy_pool_printf(pool, &path, "%s/best", dir));
    if (!cvy_file_exists(path))
        return CVY_OK;
    CVY_TRY(cvy_file_read(path, NOTE_BYTES_MAX, &text, &bytes));
    text[strcspn(text, "\n")] = 0;
    status = cvy_pool_strdup(pool, text, name_out);
    cvy_mem_free(&text);
    return status;
}

cvy_status cvy_checkpoint_mark_best(const char *dir, int64_t step)
{
    cvy_status status = CVY_OK;
    cvy_pool *pool = NULL;
    char *name = NULL, *folder = NULL, *path = NULL, *line = NULL;
    CVY_TRY_OUT(cvy_pool_create(&pool));
    CVY_TRY_OUT(cvy_set_name(pool, step, &name));
    CVY_TRY_OUT(cvy_pool_printf(pool, &folder, "%s/%s", dir, name));
    if (!cvy_file_is_folder(folder))
        CVY_FAIL_OUT(CVY_E_ARGUMENT, "cannot mark %s as the best checkpoint: it does not exist", folder);
    CVY_TRY_OUT(cvy_pool_printf(pool, &path, "%s/best", dir));
    CVY_TRY_OUT(cvy_pool_printf(pool, &line, "%s\n", name));
    CVY_TRY_OUT(cvy_file_replace(path, line, strlen(line)));
out:
    cvy_pool_destroy(&pool);
    return status;
}

/* ---- finding ---- */

static cvy_status read_text(cvy_pool *pool, const char *path, char **text_out)
{
    char *text = NULL;
    size_t bytes = 0;
    CVY_TRY(cvy_file_read(path, JSON_BYTES_MAX, &text, &bytes));
    const cvy_status status = cvy_pool_strdup(pool, text, text_out);
    cvy_mem_free(&text);
    return status;
}

/* Verifies a set and moves it into *out. */
static cvy_status take(cvy_checkpoint *out, const cvy_set *set)
{
    char *path = NULL, *state = NULL, *plan_path = NULL, *plan = NULL;
    cvy_tree *tree = NULL;
    CVY_TRY(cvy_set_verify(set));
    CVY_TRY(cvy_pool_strdup(out->pool, set->path, &path));
    CVY_TRY(cvy_set_files(out->pool, set->path, CVY_SET_WEIGHTS, &out->weights_path, &out->nweights));
    CVY_TRY(cvy_set_files(out->pool, set->path, CVY_SET_STATES, &out->states_path, &out->nstates));
    CVY_CHECK(out->nweights > 0 && out->nstates > 0, CVY_E_FORMAT, "%s lacks its weights", set->path);
    CVY_TRY(cvy_pool_printf(out->pool, &state, "%s/%s", set->path, CVY_SET_STATE));
    CVY_TRY(cvy_tree_parse_file(out->pool, state, &tree));
    CVY_CHECK(tree->kind == CVY_TREE_MAP, CVY_E_FORMAT, "%s is not a JSON object", state);
    CVY_TRY(read_text(out->pool, state, &state));
    CVY_TRY(cvy_pool_printf(out->pool, &plan_path, "%s/%s", set->path, CVY_SET_PLAN));
    if (cvy_file_exists(plan_path))
        CVY_TRY(read_text(out->pool, plan_path, &plan));
    out->path = path;
    out->step = set->step;
    out->state_json = state;
    out->state = tree;
    out->plan_json = plan;
    return CVY_OK;
}

static cvy_status find_newest(const char *dir, const cvy_set *sets, int64_t count, cvy_checkpoint *out)
{
    int64_t nwhole = 0;
    for (int64_t i = 0; i < count; i++)
        nwhole += sets[i].kind != CVY_SET_PARTIAL;
    if (nwhole == 0)
        return cvy_error_set(CVY_END, "%s holds no checkpoint", dir);
    CVY_TRY(cvy_pool_alloc(out->pool, sizeof *out->message * (size_t)nwhole, &out->message));
    for (int64_t i = 0; i < count; i++) {
        char *line = NULL;
        if (sets[i].kind == CVY_SET_PARTIAL)
            continue;
        const cvy_status status = take(out, &sets[i]);
        if (status == CVY_OK || status == CVY_E_MEMORY)
            return status;
        /* A set whose hashes this build does not compute may be whole. */
        CVY_TRY(status == CVY_E_IO || status == CVY_E_UNSUPPORTED
                    ? cvy_pool_printf(out->pool, &line, "checkpoint %s cannot be read and was skipped: %s",
                                      sets[i].name, cvy_error_text())
                    : cvy_pool_printf(out->pool, &line, "checkpoint %s is damaged and was skipped: %s", sets[i].name,
                                      cvy_error_text()));
        out->message[out->nmessage++] = line;
    }
    CVY_FAIL(CVY_E_FORMAT,
             "%s: none of the %lld checkpoints is valid; the newest: %s; `convoy inspect --verify` names what is "
             "wrong with each; otherwise start a new run with another --out",
             dir, (long long)nwhole, out->message[0]);
}

static cvy_status find_named(const char *dir, const cvy_set *sets, int64_t count, const char *name, cvy_checkpoint *out)
{
    int64_t step = 0;
    cvy_set_kind kind = CVY_SET_WHOLE;
    CVY_CHECK(cvy_set_parse(name, &step, &kind) && kind == CVY_SET_WHOLE, CVY_E_ARGUMENT,
              "'%.80s' is not a checkpoint's name: expected step-1234 or best", name);
    for (int64_t i = 0; i < count; i++)
        if (sets[i].step == step && sets[i].kind != CVY_SET_PARTIAL)
            return take(out, &sets[i]);
    CVY_FAIL(CVY_E_IO, "%s holds no checkpoint of step %lld", dir, (long long)step);
}

static cvy_status find_best(const char *dir, const cvy_set *sets, int64_t count, cvy_checkpoint *out)
{
    char *name = NULL;
    CVY_TRY(cvy_set_best(out->pool, dir, &name));
    if (!name)
        return cvy_error_set(CVY_END, "%s has no best checkpoint", dir);
    return find_named(dir, sets, count, name, out);
}

static cvy_status list(const char *dir, cvy_checkpoint *out, cvy_set **sets_out, int64_t *count_out)
{
    memset(out, 0, sizeof *out);
    CVY_TRY(cvy_pool_create(&out->pool));
    return cvy_set_list(out->pool, dir, sets_out, count_out);
}

cvy_status cvy_checkpoint_find(const char *dir, const char *which, cvy_checkpoint *out)
{
    cvy_set *sets = NULL;
    int64_t count = 0;
    CVY_TRY(list(dir, out, &sets, &count));
    if (!which)
        return find_newest(dir, sets, count, out);
    return strcmp(which, "best") == 0 ? find_best(dir, sets, count, out) : find_named(dir, sets, count, which, out);
}

cvy_status cvy_checkpoint_find_best(const char *dir, cvy_checkpoint *out)
{
    cvy_set *sets = NULL;
    int64_t count = 0;
    CVY_TRY(list(dir, out, &sets, &count));
    const cvy_status status = find_best(dir, sets, count, out);
    return status == CVY_END ? find_newest(dir, sets, count, out) : status;
}

/* ---- on all ranks ---- */

cvy_status cvy_checkpoint_share_text(cvy_comm *comm, cvy_pool *pool, const char **text)
{
    const int root = comm->rank == 0;
    int64_t bytes = root && *text ? (int64_t)strlen(*text) + 1 : 0;
    char *mine = root ? (char *)*text : NULL;
    CVY_TRY(comm->ops->broadcast(comm, &bytes, sizeof bytes, 0));
    CVY_TRY(cvy_comm_agree(comm, root || !bytes ? CVY_OK : cvy_pool_alloc(pool, (size_t)bytes, &mine)));
    if (bytes)
        CVY_TRY(comm->ops->broadcast(comm, mine, (size_t)bytes, 0));
    *text = mine;
    return CVY_OK;
}

cvy_status cvy_checkpoint_share(cvy_comm *comm, cvy_status found, cvy_checkpoint *c)
{
    const int root = comm->rank == 0;
    CVY_TRY(cvy_comm_agree(comm, found));
    CVY_TRY(cvy_comm_agree(comm, root || c->pool ? CVY_OK : cvy_pool_create(&c->pool)));
    cvy_status status = root ? CVY_OK : cvy_pool_alloc(c->pool, sizeof *c->weights_path, &c->weights_path);
    CVY_TRY(cvy_comm_agree(comm, status));
    CVY_TRY(comm->ops->broadcast(comm, &c->step, sizeof c->step, 0));
    CVY_TRY(cvy_checkpoint_share_text(comm, c->pool, &c->path));
    CVY_TRY(cvy_checkpoint_share_text(comm, c->pool, &c->weights_path[0]));
    CVY_TRY(cvy_checkpoint_share_text(comm, c->pool, &c->state_json));
    CVY_TRY(cvy_checkpoint_share_text(comm, c->pool, &c->plan_json));
    if (!root) {
        cvy_tree *tree = NULL;
        status = cvy_tree_parse_text(c->pool, c->path, c->state_json, strlen(c->state_json), &tree);
        c->state = tree;
    }
    return cvy_comm_agree(comm, status);
}

void cvy_checkpoint_close(cvy_checkpoint *c)
{
    cvy_pool_destroy(&c->pool);
    memset(c, 0, sizeof *c);
}
