/*
 * session.c: opens a job on all ranks. All ranks agree on every fault, so that no rank continues alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "session/session.h"

#include <stdio.h>
#include <string.h>

#include "base/base_hash.h"
#include "base/base_opts.h"
#include "base/machine/base_machine.h"
#include "data/data_agrees.h"
#include "job/job_table.h"
#include "model/model_import.h"
#include "program/program_fill.h"
#include "session/session_normalize.h"
#include "session/session_overlap.h"
#include "session/session_source.h"

/* ---- comparing ranks ---- */

cvy_status cvy_session_same(const cvy_session *s, const char *what, uint64_t value)
{
    cvy_comm *comm = s->context->comm;
    uint64_t *all = NULL;
    int other = 0;
    cvy_status status = cvy_mem_alloc(sizeof *all * (size_t)comm->nranks, &all);
    CVY_TRY_OUT(cvy_comm_agree(comm, status));
    CVY_TRY_OUT(comm->ops->allgather(comm, &value, sizeof value, all));
    for (int r = comm->nranks - 1; r > 0; r--)
        if (all[r] != all[0])
            other = r;
    if (other)
        CVY_FAIL_OUT(
            CVY_E_DISAGREE,
            "rank %d was started with another %s than rank 0: start all ranks with the same command line and files",
            other, what);
out:
    cvy_mem_free(&all);
    return status;
}

/* Finds the first key, as "train.batch", at which two resolved jobs differ, and writes it with both values. At the top
 * level only keys of `a` are compared, because `a` lacks the keys that may differ. Returns 0 if they are equal. */
static int find_difference(const cvy_tree *a, const cvy_tree *b, const char *path, char *text, size_t room)
{
    const int nkey = a->kind == CVY_TREE_MAP && b->kind == CVY_TREE_MAP ? a->count + (*path ? b->count : 0) : 0;
    const int nitem = a->kind == CVY_TREE_LIST && b->kind == CVY_TREE_LIST && a->count == b->count ? a->count : 0;
    char below[160];
    for (int i = 0; i < nkey; i++) {
        const char *key = i < a->count ? a->key[i] : b->key[i - a->count];
        const cvy_tree *x = cvy_tree_get(a, key), *y = cvy_tree_get(b, key);
        snprintf(below, sizeof below, "%s%s%s", path, *path ? "." : "", key);
        if (!x || !y)
            return snprintf(text, room, "%s is given on %s only", below, x ? "this rank" : "rank 0");
        if (find_difference(x, y, below, text, room))
            return 1;
    }
    for (int i = 0; i < nitem; i++) {
        snprintf(below, sizeof below, "%s[%d]", path, i);
        if (find_difference(a->child[i], b->child[i], below, text, room))
            return 1;
    }
    if (nkey || nitem || (a->kind == b->kind && a->kind != CVY_TREE_SCALAR && a->count == b->count))
        return 0;
    if (a->text && b->text && strcmp(a->text, b->text) == 0)
        return 0;
    return snprintf(text, room, "%s is %s here and %s on rank 0", path, a->text ? a->text : "another list or map",
                    b->text ? b->text : "another list or map");
}

/* Broadcasts rank 0's job as text. If this rank's job is different, the error names the key. */
static cvy_status compare_keys(const cvy_session *s)
{
    cvy_comm *comm = s->context->comm;
    cvy_pool *pool = NULL;
    cvy_tree *mine = NULL, *theirs = NULL;
    char *text = NULL, what[512] = "";
    uint64_t bytes = 0;
    cvy_status status = comm->rank == 0 ? cvy_job_print(s->job, &text) : CVY_OK;
    CVY_TRY_OUT(cvy_comm_agree(comm, status));
    bytes = text ? strlen(text) + 1 : 0;
    CVY_TRY_OUT(comm->ops->broadcast(comm, &bytes, sizeof bytes, 0));
    if (!text)
        status = cvy_mem_alloc(bytes, &text);
    CVY_TRY_OUT(cvy_comm_agree(comm, status));
    CVY_TRY_OUT(comm->ops->broadcast(comm, text, bytes, 0));
    status = cvy_pool_create(&pool);
    if (status == CVY_OK)
        status = cvy_tree_parse_text(pool, "rank 0's job", text, strlen(text), &theirs);
    if (status == CVY_OK)
        status = cvy_job_tree(s->job, pool, 0, &mine);
    if (status == CVY_OK && find_difference(mine, theirs, "", what, sizeof what))
        status = cvy_error_set(
            CVY_E_DISAGREE,
            "started with another job than rank 0: %s; start all ranks with the same command line and files", what);
    status = cvy_comm_agree(comm, status);
    if (status == CVY_OK) /* the hashes differ, but no key does */
        status =
            cvy_error_set(CVY_E_DISAGREE,
                          "the ranks were started with different jobs: start all with the same command line and files");
out:
    cvy_pool_destroy(&pool);
    cvy_mem_free(&text);
    return status;
}

static cvy_status compare_jobs(const cvy_session *s)
{
    const uint32_t one = 1;
    const uint64_t order = *(const unsigned char *)&one;
    uint64_t hash = 0;
    CVY_TRY(cvy_session_same(s, "version of convoy", cvy_hash(cvy_version(), strlen(cvy_version()))));
    CVY_TRY(cvy_session_same(s, "byte order of its processor", order));
    CVY_TRY(cvy_comm_agree(s->context->comm, cvy_job_hash(s->job, &hash)));
    const cvy_status status = cvy_session_same(s, "job", hash);
    return status == CVY_E_DISAGREE ? compare_keys(s) : status;
}

/* ---- opening ---- */

cvy_status cvy_job_read(const cvy_job_source *given, cvy_job **out)
{
    cvy_job_source source;
    CVY_TRY(CVY_OPTS_READ(cvy_job_source, given, &source));
    const cvy_importer_def *format = source.path ? cvy_importer_of_file(source.path) : NULL;
    if (!source.caffe && format && format->read_job)
        source.caffe = source.path;
    if (source.caffe)
        return cvy_job_parse_caffe(&source, out);
    CVY_CHECK(!source.caffe_weights && !source.caffe_state, CVY_E_ARGUMENT,
              "job.caffe_weights and job.caffe_state go with job.caffe, a solver");
    if (source.path)
        return cvy_job_parse_file(source.path, source.sets, source.nsets, out);
    CVY_CHECK(source.text, CVY_E_ARGUMENT, "a job needs a file or a text");
    return cvy_job_parse_text("job", source.text, source.sets, source.nsets, out);
}

/* Kernels of the session that are misspelt are no fault here: who uses them names them. */
static void warn_of_idle_keys(const cvy_session *s)
{
    cvy_text keys = {0};
    cvy_job job = *s->job;
    cvy_kernels kernels;
    if (s->kernels && cvy_kernels_parse(s->kernels, &kernels) != CVY_OK)
        return;
    job.program.kernels = s->kernels ? s->kernels : job.program.kernels;
    if (cvy_job_list_idle_keys(&job, &keys) == CVY_OK && keys.bytes)
        cvy_log(s->context, CVY_LOG_WARN, "%s", keys.data);
    cvy_text_free(&keys);
}

static void report_renamed_keys(const cvy_session *s)
{
    if (s->job->renamed)
        cvy_log(s->context, CVY_LOG_WARN, "%s", s->job->renamed);
}

/* What the reader of a network of others has to say: a warning a line. */
static void report_import(const cvy_session *s)
{
    const char *at = s->job->import ? s->job->import->notes.data : NULL;
    for (; at && *at; at += strspn(at, "\n")) {
        const int n = (int)strcspn(at, "\n");
        cvy_log(s->context, CVY_LOG_WARN, "%.*s", n, at);
        at += n;
    }
}

cvy_status cvy_session_report_unused(const cvy_session *s)
{
    cvy_text names = {0};
    int n = 0;
    const cvy_status status = cvy_model_list_unused(s->model, &names, &n);
    if (status == CVY_OK && n > 0)
        cvy_log(s->context, CVY_LOG_WARN, "layer%s %s do%s not lead to the output (%s) or a loss, and %s left out",
                n > 1 ? "s" : "", names.data, n > 1 ? "" : "es", cvy_model_output(s->model), n > 1 ? "are" : "is");
    cvy_text_free(&names);
    return status;
}

static cvy_status load_libraries(const cvy_session *s)
{
    cvy_extensions *x = &s->context->extensions;
    CVY_TRY(cvy_comm_agree(s->context->comm, cvy_job_load_libraries(s->job, x)));
    return cvy_extensions_compare(s->context->comm, x);
}

/* The job's device, until the session is closed. */
static cvy_status take_device(cvy_session *s)
{
    if (s->keeps_device || !s->job->device)
        return CVY_OK;
    const cvy_status status = cvy_device_take(s->context, s->job->device, &s->device_before);
    return status < 0 ? cvy_error_prefix(status, "%s", cvy_job_where(s->job, NULL, "device")) : status;
}

cvy_status cvy_session_open_job(cvy_context *context, const cvy_job_source *source, cvy_session *s)
{
    s->context = context;
    cvy_status status = cvy_job_read(source, &s->job);
    if (status == CVY_OK && s->is_watched)
        status = cvy_watchdog_start(
            context, &(cvy_watchdog_opts){.timeout_s = s->job->watchdog.timeout_s, .stop_flag = s->stop_flag},
            &s->watchdog);
    CVY_TRY(cvy_comm_agree(context->comm, status));
    report_renamed_keys(s);
    report_import(s);
    warn_of_idle_keys(s);
    if (context->comm->nranks > 1)
        CVY_TRY(compare_jobs(s));
    CVY_TRY(take_device(s));
    return s->ignores_libraries ? CVY_OK : load_libraries(s);
}

void cvy_session_close(cvy_session *s)
{
    cvy_watchdog_stop(&s->watchdog);
    cvy_program_destroy(&s->program);
    cvy_device_return(s->context, &s->device_before);
    cvy_model_destroy(&s->model);
    cvy_dataset_destroy(&s->test);
    cvy_dataset_destroy(&s->val);
    cvy_dataset_destroy(&s->train);
    cvy_dataset_destroy(&s->whole[1]);
    cvy_dataset_destroy(&s->whole[0]);
    cvy_dataset_destroy(&s->base);
    cvy_split_free(&s->split);
    cvy_cache_budget_destroy(&s->cache);
    cvy_stage_destroy(&s->stage);
    cvy_text_free(&s->notes);
    cvy_job_destroy(&s->job);
}

static int has_field(const cvy_dataset *d, const char *name)
{
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    for (int i = 0; i < info->nfield; i++)
        if (strcmp(info->field[i].name, name) == 0)
            return 1;
    return 0;
}

/* ---- where samples come from: the job's sources, copies on this node, or memory ---- */

/* Sets the sources to read: those of the job, or their copies on this node. */
static cvy_status stage_sources(cvy_session *s, int reads)
{
    const struct cvy_job_data *d = &s->job->data;
    cvy_comm *comm = s->context->comm;
    cvy_pool *pool = s->job->pool;
    s->from[CVY_SOURCE_TRAIN] = d->train;
    s->from[CVY_SOURCE_VAL] = d->val_share > 0 ? NULL : d->val;
    s->from[CVY_SOURCE_TEST] = d->test;
    if (!d->stage || !reads)
        return CVY_OK;
    CVY_TRY(cvy_comm_agree(comm, cvy_stage_create(comm, d->stage, &s->stage)));
    for (int i = 0; i < CVY_SOURCE_COUNT; i++) {
        const int scored = i != CVY_SOURCE_TEST || !d->val; /* data that only `convoy test` reads is not copied */
        if (s->from[i] && scored)
            CVY_TRY(cvy_stage_source(s->stage, pool, s->from[i], &s->from[i], &s->notes));
    }
    return s->notes.status;
}

static cvy_status make_cache(cvy_session *s)
{
    const struct cvy_job_data *d = &s->job->data;
    const int nranks = CVY_MAX(s->context->comm->node_nranks, 1);
    int64_t limit = d->cache_limit;
    if (d->cache == CVY_CACHE_NONE)
        return CVY_OK;
    if (limit == 0)
        limit = cvy_mem_left() > 0 ? cvy_mem_left() / 2 / nranks : (int64_t)1 << 30;
    cvy_text_add(&s->notes, "data.cache: samples stay in memory%s, up to %.1f MB on each of this node's %d rank%s\n",
                 d->cache == CVY_CACHE_DECODED ? " decoded" : "", 1e-6 * (double)limit, nranks, nranks == 1 ? "" : "s");
    CVY_TRY(s->notes.status);
    return cvy_cache_budget_create(limit, &s->cache);
}

static cvy_status cache(const cvy_session *s, cvy_dataset *d)
{
    return s->cache ? cvy_dataset_cache(d, s->cache, s->job->data.cache == CVY_CACHE_DECODED) : CVY_OK;
}

/* ---- training data ---- */

/* A source is opened several times, and its note is given once. */
static void add_note(cvy_session *s, const cvy_dataset *d)
{
    const char *note = cvy_dataset_describe(d)->note;
    if (note && !(s->notes.data && strstr(s->notes.data, note)))
        cvy_text_add(&s->notes, "%s\n", note);
}

void cvy_session_log_note(const cvy_context *context, const cvy_dataset *d)
{
    for (const char *at = cvy_dataset_describe(d)->note; at && *at;) {
        const size_t n = strcspn(at, "\n");
        cvy_log(context, CVY_LOG_WARN, "%.*s", (int)n, at);
        at += n + (at[n] == '\n');
    }
}

static cvy_status open_further(cvy_session *s, const cvy_tree *source, cvy_dataset **out)
{
    const cvy_data_form like = cvy_dataset_form(s->train);
    CVY_TRY(cvy_dataset_open_like(source, s->job->data.steps, s->job->program.seed, 1, &like, out));
    add_note(s, *out);
    const cvy_status status =
        cvy_session_note_groups(s, source == s->from[CVY_SOURCE_VAL] ? "val" : "test", source, *out);
    if (status != CVY_OK)
        cvy_dataset_destroy(out);
    return status;
}

/* Opens data.train. It is opened once; the views below have their own augmentation. */
static cvy_status open_base(cvy_session *s)
{
    const struct cvy_job_data *data = &s->job->data;
    const uint64_t seed = s->job->program.seed;
    CVY_TRY(cvy_dataset_open(s->from[CVY_SOURCE_TRAIN], data->steps, 0, seed, &s->base));
    if (s->like)
        CVY_TRY(cvy_dataset_take_order(&s->like->form, s->like->from, s->like->all_classes, s->from[CVY_SOURCE_TRAIN],
                                       data->steps, seed, &s->base));
    add_note(s, s->base);
    CVY_TRY(cache(s, s->base));
    if (data->val_share > 0)
        CVY_TRY(cvy_split_make(s->base, &data->split, seed, &s->notes, &s->split));
    return s->like && s->like->job ? cvy_job_inherit_normalize(s->job, s->like, s->base, &s->notes) : CVY_OK;
}

/* Opens a view of `base`. If data.val is a part of the training data, it is one side of the view. */
static cvy_status open_part(cvy_session *s, int random, int side, cvy_dataset **whole, cvy_dataset **out)
{
    const struct cvy_job_data *data = &s->job->data;
    const uint64_t seed = s->job->program.seed;
    if (data->val_share == 0)
        return cvy_dataset_view(s->base, data->steps, random, seed, out);
    CVY_TRY(cvy_dataset_view(s->base, data->steps, random, seed, whole));
    return cvy_dataset_side(*whole, &s->split, side, out);
}

static void note_left_target(cvy_session *s)
{
    const cvy_dataset_info *info = cvy_dataset_describe(s->train);
    if (info->may_be_left)
        cvy_text_add(
            &s->notes,
            "data.augment moves the pixels of x, and the numbers of the target y stay as they are: if they are "
            "positions or components along the axes of x, say so by data.roles, otherwise by data.roles: {y: "
            "none}\n");
    if (info->left_note)
        cvy_text_add(&s->notes, "%s", info->left_note);
}

static cvy_status open_training(cvy_session *s)
{
    const struct cvy_job_data *data = &s->job->data;
    CVY_TRY(open_part(s, 1, CVY_SIDE_TRAIN, &s->whole[0], &s->train));
    note_left_target(s);
    if (*cvy_dataset_describe(s->train)->idle_step)
        cvy_log(s->context, CVY_LOG_WARN, "%s", cvy_dataset_describe(s->train)->idle_step);
    if (data->val_share > 0)
        CVY_TRY(open_part(s, 0, CVY_SIDE_VAL, &s->whole[1], &s->val));
    else if (s->from[CVY_SOURCE_VAL])
        CVY_TRY(open_further(s, s->from[CVY_SOURCE_VAL], &s->val));
    else if (data->test)
        CVY_TRY(open_further(s, s->from[CVY_SOURCE_TEST], &s->test));
    if (data->val_share == 0 && (s->val || s->test))
        CVY_TRY(cache(s, s->val ? s->val : s->test));
    /* only `convoy test` will use it, but a missing or unsuitable data set is reported now */
    if (data->test && !s->test) {
        cvy_dataset *test = NULL;
        const cvy_status status = open_further(s, data->test, &test);
        cvy_dataset_destroy(&test);
        CVY_TRY(status);
    }
    s->has_weights = has_field(s->train, CVY_SAMPLE_WEIGHT) || data->on_bad_sample == CVY_BAD_SAMPLE_SKIP;
    return CVY_OK;
}

/* Computes the numbers of the normalisations from the training samples only, without random augmentation. */
static cvy_status find_normalize(cvy_session *s)
{
    cvy_comm *comm = s->context->comm;
    cvy_dataset *whole = NULL, *part = NULL;
    CVY_TRY(cvy_session_same(s, "training data", cvy_dataset_hash(s->base)));
    cvy_status status = cvy_comm_agree(comm, open_part(s, 0, CVY_SIDE_TRAIN, &whole, &part));
    if (status == CVY_OK)
        status = cvy_job_normalize(s->job, part, s->context, &s->notes);
    cvy_dataset_destroy(&part);
    cvy_dataset_destroy(&whole);
    return status;
}

cvy_status cvy_session_open_training_data(cvy_session *s, int reads)
{
    CVY_TRY(stage_sources(s, reads));
    CVY_TRY(cvy_comm_agree(s->context->comm, reads ? make_cache(s) : CVY_OK));
    CVY_TRY(cvy_comm_agree(s->context->comm, cvy_session_warn_of_overlap(s)));
    CVY_TRY(cvy_comm_agree(s->context->comm, open_base(s)));
    if (reads && cvy_job_wants_statistics(s->job))
        CVY_TRY(find_normalize(s));
    return cvy_comm_agree(s->context->comm, open_training(s));
}

static cvy_status open_test(cvy_session *s, const char *source, const cvy_data_form *trained)
{
    const cvy_tree *tree = s->job->data.test, *like = tree && tree->kind == CVY_TREE_MAP ? tree : s->job->data.train;
    cvy_tree *given = NULL;
    if (source) {
        CVY_TRY(cvy_job_parse_source_like(s->job->pool, source, like, 1, 0, &given));
        tree = given;
    }
    CVY_CHECK(tree, CVY_E_CONFIG, "%s has no data.test: name the data to score with --data", s->job->file);
    s->from[CVY_SOURCE_TEST] = tree;
    CVY_TRY(cvy_dataset_open_like(tree, s->job->data.steps, s->job->program.seed, 1, trained, &s->test));
    s->has_weights = has_field(s->test, CVY_SAMPLE_WEIGHT) || s->job->data.on_bad_sample == CVY_BAD_SAMPLE_SKIP;
    return CVY_OK;
}

cvy_status cvy_session_open_test_data(cvy_session *s, const char *source, const cvy_data_form *trained)
{
    return cvy_comm_agree(s->context->comm, open_test(s, source, trained));
}

cvy_status cvy_session_compare(const cvy_session *s)
{
    CVY_TRY(cvy_session_same(s, "training data", s->train ? cvy_dataset_hash(s->train) : 0));
    CVY_TRY(cvy_session_same(s, "validation data", s->val ? cvy_dataset_hash(s->val) : 0));
    return cvy_session_same(s, "test data", s->test ? cvy_dataset_hash(s->test) : 0);
}

int cvy_session_data_threads(const cvy_context *context, const cvy_job *job)
{
    const int left = context->cores_each - context->threads;
    return job->data.threads >= 0 ? (int)job->data.threads : CVY_MAX(CVY_MIN(left, 8), 1);
}

/* ---- rows into feeds ---- */

cvy_status cvy_session_fill(const cvy_session *s, int step, const cvy_dataset_info *data, const cvy_rows *rows,
                            const cvy_field_part *part)
{
    const int64_t n = cvy_program_task_plan(s->program, step)->rows;
    CVY_CHECK(rows->n == n, CVY_E_INTERNAL, "a step of %lld rows was given %lld", (long long)n, (long long)rows->n);
    return cvy_program_fill_rows(s->program, step, data, n, (const void *const *)rows->field, part, rows->draw,
                                 rows->weight);
}
