/*
 * files_checkpoints.c: cvy_run_verify(), cvy_run_export(): check and export a run's checkpoints. They need no ranks
 * and no program.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_set.h"
#include "data/data_reader.h"
#include "files/files.h"
#include "monitor/monitor_run_layout.h"
#include "network/network_calibration.h"
#include "session/session_source.h"

/* ---- verify ---- */

struct checked {
    int sound, damaged;
};

static const char *const methods[] = {"xxh3", "crc32c"};

/* Compares the hash of a tensor with the one in the file's header. CVY_NOT_APPLICABLE: the header has none. */
static cvy_status check_tensor(const cvy_safetensors *f, int i)
{
    const cvy_tensor_entry *e = cvy_safetensors_at(f, i);
    const size_t bytes = (size_t)cvy_shape_elems(&e->shape) * cvy_dtype_bytes(e->dtype);
    void *data = NULL;
    for (int k = 0; k < CVY_COUNT(methods) && e->dtype < CVY_DTYPE_COUNT; k++) {
        char *key = NULL, text[20];
        uint64_t hash = 0;
        CVY_TRY(cvy_mem_printf(&key, "%s:%s", methods[k], e->name));
        const char *noted = cvy_safetensors_meta(f, key);
        cvy_mem_free(&key);
        if (!noted)
            continue;
        CVY_TRY(cvy_mem_alloc_pages(bytes, &data));
        cvy_status status = cvy_safetensors_read(f, i, e->dtype, data);
        if (status == CVY_OK)
            status = cvy_hash_by_name(methods[k], data, bytes, &hash);
        cvy_mem_free_pages(&data, bytes);
        CVY_TRY(status);
        snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
        CVY_CHECK(strcmp(text, noted) == 0, CVY_E_FORMAT,
                  "tensor %s was altered: its %s hash is %s, the file's header says %.20s", e->name, methods[k], text,
                  noted);
        return CVY_OK;
    }
    return CVY_NOT_APPLICABLE;
}

static cvy_status verify_tensors(const char *path, cvy_text *t, struct checked *c)
{
    cvy_safetensors *f = NULL;
    int known = 0, bad = 0;
    cvy_status status = cvy_safetensors_open(path, &f);
    if (status != CVY_OK) {
        cvy_text_add(t, "  %s\n", cvy_error_text());
        c->damaged++;
        return status == CVY_E_MEMORY ? status : CVY_OK;
    }
    const int count = cvy_safetensors_count(f);
    for (int i = 0; i < count && status == CVY_OK; i++) {
        const cvy_status one = check_tensor(f, i);
        known += one != CVY_NOT_APPLICABLE;
        bad += one < 0;
        if (one < 0)
            cvy_text_add(t, "  %s: %s\n", path, cvy_error_text());
        status = one == CVY_E_MEMORY ? one : CVY_OK;
    }
    cvy_safetensors_close(&f);
    cvy_text_add(t, "%s: %d of %d tensors have a hash, %d of them %s altered\n", path, known, count, bad,
                 bad == 1 ? "is" : "are");
    c->damaged += bad > 0;
    c->sound += bad == 0;
    return status;
}

/* Checks a set as a resume would do it. If it is damaged, finds the damaged tensors. */
static cvy_status verify_set(cvy_pool *pool, const cvy_set *set, cvy_text *t, struct checked *c)
{
    static const char *const stems[] = {CVY_SET_WEIGHTS, CVY_SET_STATES, CVY_SET_PENDING};
    struct checked tensors = {0, 0};
    const cvy_status status = cvy_set_verify(set);
    if (!cvy_file_is_folder(set->path))
        return CVY_OK; /* an active run has deleted the set meanwhile */
    if (status == CVY_OK) {
        c->sound++;
        cvy_text_add(t, "%s: valid\n", set->path);
        return CVY_OK;
    }
    c->damaged++;
    cvy_text_add(t, "%s: DAMAGED: %s\n", set->path, cvy_error_text());
    for (int i = 0; i < CVY_COUNT(stems); i++) {
        const char **path = NULL;
        int n = 0;
        if (cvy_set_files(pool, set->path, stems[i], &path, &n) != CVY_OK)
            break; /* the set cannot be read, as the line above says */
        for (int k = 0; k < n; k++)
            CVY_TRY(verify_tensors(path[k], t, &tensors));
    }
    return status == CVY_E_MEMORY ? status : CVY_OK;
}

/* Checks all sets of a folder, or only the set of this name. */
static cvy_status verify_sets(cvy_pool *pool, const char *dir, const char *name, cvy_text *t, struct checked *c)
{
    cvy_set *sets = NULL;
    int64_t count = 0;
    CVY_TRY(cvy_set_list(pool, dir, &sets, &count));
    for (int64_t i = 0; i < count; i++)
        if (sets[i].kind != CVY_SET_PARTIAL && (!name || strcmp(sets[i].name, name) == 0))
            CVY_TRY(verify_set(pool, &sets[i], t, c));
    CVY_CHECK(c->sound + c->damaged > 0, CVY_E_IO,
              "%s holds no checkpoint; `convoy inspect --stats` reads a data set as a whole, and finds what is damaged",
              dir);
    return CVY_OK;
}

static cvy_status verify(cvy_pool *pool, const char *path, cvy_text *t, struct checked *c)
{
    const char *dir = NULL, *sets = NULL;
    cvy_set_kind kind;
    int64_t step = 0;
    char *whole = NULL;
    CVY_TRY(cvy_pool_strdup(pool, path, &whole));
    for (size_t n = strlen(whole); n > 1 && whole[n - 1] == '/'; n--)
        whole[n - 1] = 0;
    CVY_CHECK(cvy_file_exists(whole), CVY_E_IO, "%s: no such file or folder", whole);
    if (!cvy_file_is_folder(whole))
        return verify_tensors(whole, t, c);
    CVY_TRY(cvy_data_folder_of(pool, whole, &dir));
    if (cvy_set_parse(cvy_file_base_name(whole), &step, &kind))
        return verify_sets(pool, dir, cvy_file_base_name(whole), t, c);
    CVY_TRY(cvy_data_path_join(pool, whole, "checkpoints", &sets));
    return verify_sets(pool, cvy_file_is_folder(sets) ? sets : whole, NULL, t, c);
}

cvy_status cvy_run_verify(const char *path, int *damaged_out, char **text_out)
{
    CVY_ENTRY();
    cvy_pool *pool = NULL;
    cvy_text t = {0};
    struct checked c = {0, 0};
    CVY_CHECK(path && damaged_out && text_out, CVY_E_ARGUMENT,
              "cvy_run_verify() needs a path and places for its results");
    *text_out = NULL;
    *damaged_out = 0;
    CVY_TRY(cvy_pool_create(&pool));
    cvy_status status = verify(pool, path, &t, &c);
    cvy_pool_destroy(&pool);
    status = status == CVY_OK ? t.status : status;
    if (status != CVY_OK)
        cvy_text_free(&t);
    *damaged_out = c.damaged;
    *text_out = t.data;
    return status;
}

/* ---- export ---- */

struct source {
    cvy_safetensors **file;
    const int *of, *at; /* for each tensor: the index of its file, and its index in that file */
};

static cvy_status fetch(void *user, int i, const void **data_out)
{
    const struct source *s = user;
    *data_out = cvy_safetensors_at(s->file[s->of[i]], s->at[i])->data;
    return CVY_OK;
}

/* Copies the hash of a tensor to the new file's header. */
static cvy_status add_hash(cvy_pool *pool, const cvy_safetensors *f, const char *tensor, const char **meta, int *nmeta)
{
    for (int k = 0; k < CVY_COUNT(methods); k++) {
        char *key = NULL;
        CVY_TRY(cvy_pool_printf(pool, &key, "%s:%s", methods[k], tensor));
        const char *hash = cvy_safetensors_meta(f, key);
        if (!hash)
            continue;
        meta[(*nmeta)++] = key;
        meta[(*nmeta)++] = hash;
    }
    return CVY_OK;
}

/* The description of the network, with the temperature of the run if it has one for these weights. */
static cvy_status describe(cvy_pool *pool, const cvy_checkpoint *c, const cvy_safetensors *file, const char **out)
{
    const char *own = cvy_safetensors_meta(file, CVY_META_NETWORK);
    cvy_text text = {0};
    char *copy = NULL;
    cvy_status status = own ? cvy_calibration_describe(c->path, own, &text) : CVY_OK;
    if (status == CVY_OK && text.data)
        status = cvy_pool_strdup(pool, text.data, &copy);
    *out = copy ? copy : own;
    cvy_text_free(&text);
    return status;
}

static cvy_status merge(cvy_pool *pool, const cvy_checkpoint *c, cvy_safetensors **file, const char *out)
{
    cvy_tensor_entry *entry = NULL;
    const char **meta = NULL, *network = NULL;
    int *of = NULL, *at = NULL, count = 0, n = 0, nmeta = 0;
    char step[24];
    for (int f = 0; f < c->nweights; f++)
        count += cvy_safetensors_count(file[f]);
    CVY_TRY(cvy_pool_alloc(pool, sizeof *entry * (size_t)(count + 1), &entry));
    CVY_TRY(cvy_pool_alloc(pool, sizeof *of * (size_t)(count + 1), &of));
    CVY_TRY(cvy_pool_alloc(pool, sizeof *at * (size_t)(count + 1), &at));
    CVY_TRY(cvy_pool_alloc(pool, sizeof *meta * (size_t)(4 * count + 10), &meta));
    snprintf(step, sizeof step, "%lld", (long long)c->step);
    CVY_TRY(describe(pool, c, file[0], &network));
    const char *const head[][2] = {
        {"writer", "convoy"}, {"version", cvy_version()}, {"step", step}, {CVY_META_NETWORK, network}};
    for (int i = 0; i < CVY_COUNT(head); i++)
        if (head[i][1]) {
            meta[nmeta++] = head[i][0];
            meta[nmeta++] = head[i][1];
        }
    for (int f = 0; f < c->nweights; f++)
        for (int i = 0; i < cvy_safetensors_count(file[f]); i++, n++) {
            entry[n] = *cvy_safetensors_at(file[f], i);
            CVY_TRY(add_hash(pool, file[f], entry[n].name, meta, &nmeta));
            of[n] = f;
            at[n] = i;
        }
    struct source source = {file, of, at};
    return cvy_safetensors_write_fetched(out, entry, count, meta, fetch, &source, NULL, NULL);
}

static cvy_status export_set(const cvy_checkpoint *c, const char *out)
{
    cvy_status status = CVY_OK;
    cvy_pool *pool = NULL;
    cvy_safetensors **file = NULL;
    int n = 0;
    CVY_TRY_OUT(cvy_pool_create(&pool));
    CVY_TRY_OUT(cvy_pool_alloc(pool, sizeof *file * (size_t)c->nweights, &file));
    for (; n < c->nweights; n++)
        CVY_TRY_OUT(cvy_safetensors_open(c->weights_path[n], &file[n]));
    CVY_TRY_OUT(merge(pool, c, file, out));
out:
    while (file && n > 0)
        cvy_safetensors_close(&file[--n]);
    cvy_pool_destroy(&pool);
    return status;
}

cvy_status cvy_run_export(const char *run, const char *which, const char *out, int replace, int64_t *step_out,
                          char **notes_out)
{
    CVY_ENTRY();
    cvy_text notes = {0};
    char dir[CVY_RUN_PATH];
    cvy_checkpoint c = {0};
    CVY_CHECK(run && out && step_out, CVY_E_ARGUMENT,
              "cvy_run_export() needs a run folder, a path and a place for the step");
    CVY_CHECK(cvy_file_is_folder(run), CVY_E_IO, "%s is not a run folder", run);
    CVY_CHECK(strlen(run) < sizeof dir - 20, CVY_E_ARGUMENT, "the run folder's name is longer than %zu characters",
              sizeof dir - 20);
    CVY_TRY(cvy_file_check_new(out, replace));
    cvy_run_path(run, CVY_RUN_CHECKPOINTS, dir);
    cvy_status status = which ? cvy_checkpoint_find(dir, which, &c) : cvy_checkpoint_find_best(dir, &c);
    if (status == CVY_END)
        status = cvy_error_set(CVY_E_IO, "%s holds no %s", run, which ? "best checkpoint" : "checkpoint");
    if (status == CVY_OK)
        status = export_set(&c, out);
    *step_out = c.step;
    for (int i = 0; i < c.nmessage; i++)
        cvy_text_add(&notes, "%s\n", c.message[i]);
    if (notes_out)
        *notes_out = notes.data;
    else
        cvy_text_free(&notes);
    cvy_checkpoint_close(&c);
    return status == CVY_OK ? notes.status : status;
}
