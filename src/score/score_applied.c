/*
 * score_applied.c: applies a network to the samples of a data set, block by block: see score_applied.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "score/score_applied.h"

#include <string.h>

#include "data/data_agrees.h"
#include "job/job_table.h"
#include "session/session.h"
#include "session/session_source.h"

/* ---- opening ---- */

cvy_status cvy_applied_open(cvy_applied *b, cvy_context *context, const char *target, const cvy_network_opts *opts,
                            int dropout, cvy_network_gives gives)
{
    b->context = context;
    return cvy_network_open_on_ranks(context, target, opts, dropout, gives, &b->network);
}

/* Whether a layer on which an output depends reads "y". */
static int reads_target(const cvy_network *n)
{
    for (int i = 0; i < n->model->ninput; i++)
        if (strcmp(n->model->input[i].name, "y") == 0)
            return 1;
    return 0;
}

/* Opens the data as those of the training. Data without targets are enough, unless a target decides what x is: the
 * columns of a .csv file are those that are nothing else. */
static cvy_status open_source(cvy_applied *b, const char *text, int needs_targets)
{
    const cvy_job *job = b->network->spec.job;
    const cvy_reader_info *stored = &b->network->spec.stored;
    const int is_picture = stored->dtype == CVY_DTYPE_U8 && stored->shape.ndim == 3,
              channels = is_picture && stored->shape.dim[0] <= 3 ? (int)stored->shape.dim[0] : 0;
    cvy_data_form like = cvy_network_spec_form(&b->network->spec);
    cvy_status status = CVY_OK;
    like.x_only = !needs_targets;
    for (int with_targets = 1; with_targets >= needs_targets; with_targets--) {
        cvy_tree *source = NULL;
        CVY_TRY(cvy_job_parse_source_like(job->pool, text, job->data.train, with_targets, channels, &source));
        status = cvy_dataset_open_like(source, job->data.steps, job->program.seed,
                                       needs_targets || reads_target(b->network), &like, &b->data);
        if (status == CVY_OK || status == CVY_E_MEMORY)
            break;
    }
    return status;
}

static cvy_status open_tree(cvy_applied *b, const cvy_tree *source, cvy_dataset **out)
{
    const cvy_job *job = b->network->spec.job;
    const cvy_data_form like = cvy_network_spec_form(&b->network->spec);
    return cvy_dataset_open_like(source, job->data.steps, job->program.seed, 1, &like, out);
}

static cvy_status check_data(const cvy_applied *b, int needs_targets)
{
    const cvy_dataset_info *info = cvy_dataset_describe(b->data);
    const cvy_network_spec *spec = &b->network->spec;
    CVY_TRY(cvy_network_check_data(b->network, info));
    if (!needs_targets)
        return CVY_OK;
    CVY_CHECK(cvy_dataset_target(info), CVY_E_FORMAT, "%s has no labels or targets to score against",
              info->path ? info->path : info->format);
    return cvy_classes_agree(spec->data.class_name, spec->data.nclasses, info);
}

cvy_status cvy_applied_open_data(cvy_applied *b, const char *source, int needs_targets)
{
    const cvy_job *job = b->network->spec.job;
    CVY_CHECK(source || job->data.test, CVY_E_CONFIG, "%s has no data.test: name the data to score with --data",
              job->file);
    CVY_TRY(source ? open_source(b, source, needs_targets) : open_tree(b, job->data.test, &b->data));
    return check_data(b, needs_targets);
}

cvy_status cvy_applied_open_validation(cvy_applied *b, const char *source)
{
    const cvy_job *job = b->network->spec.job;
    CVY_CHECK(source || job->data.val || job->data.val_share > 0, CVY_E_CONFIG,
              "%s has no data.val: name the data to calibrate on, which are neither those of the training nor those of "
              "the test",
              job->file);
    if (source)
        CVY_TRY(open_source(b, source, 1));
    else if (job->data.val_share > 0) {
        CVY_TRY(open_tree(b, job->data.train, &b->whole));
        cvy_split split = {0};
        CVY_TRY(cvy_split_make(b->whole, &job->data.split, job->program.seed, NULL, &split));
        const cvy_status status = cvy_dataset_side(b->whole, &split, CVY_SIDE_VAL, &b->data);
        cvy_split_free(&split);
        CVY_TRY(status);
    } else
        CVY_TRY(open_tree(b, job->data.val, &b->data));
    return check_data(b, 1);
}

/* ---- blocks ---- */

int64_t cvy_applied_range(const cvy_applied *b, int64_t round, int rank, int64_t *first_out)
{
    const int64_t first = CVY_MIN((round * b->context->comm->nranks + rank) * b->block, b->nsamples);
    *first_out = first;
    return CVY_MIN(b->block, b->nsamples - first);
}

int64_t cvy_applied_rounds(const cvy_applied *b)
{
    const int64_t all = b->block * b->context->comm->nranks;
    return (b->nsamples + all - 1) / all;
}

static cvy_status share_block(void *user, int64_t round, cvy_share *shares, int max, int *nshare_out)
{
    const cvy_applied *b = user;
    (void)max;
    if (round >= cvy_applied_rounds(b))
        return CVY_END;
    shares[0] = (cvy_share){0};
    shares[0].n = cvy_applied_range(b, round, b->context->comm->rank, &shares[0].first_position);
    *nshare_out = 1;
    return CVY_OK;
}

cvy_status cvy_applied_start(cvy_applied *b, int64_t block)
{
    const cvy_job *job = b->network->spec.job;
    b->nsamples = cvy_dataset_describe(b->data)->nsamples;
    b->block = block > 0 ? block : b->network->size[b->network->nsize - 1].batch;
    const cvy_loader_opts opts = {.threads = cvy_session_data_threads(b->context, job),
                                  .depth = (int)CVY_MAX(job->data.prefetch, 1),
                                  .skip_bad = job->data.on_bad_sample == CVY_BAD_SAMPLE_SKIP,
                                  .share = share_block,
                                  .share_user = b};
    return cvy_loader_create(b->data, &opts, &b->loader);
}

cvy_status cvy_applied_get(cvy_applied *b, int64_t round, const cvy_rows **out)
{
    return cvy_loader_get(b->loader, round, out, NULL);
}

cvy_status cvy_applied_apply(cvy_applied *b, int64_t round, const cvy_rows *rows, float *const *output)
{
    cvy_network *n = b->network;
    cvy_network_out out[CVY_NETWORK_ARRAYS];
    int64_t first = 0;
    for (int k = 0; k < n->noutput; k++)
        out[k] = (cvy_network_out){.name = n->output[k].name,
                                   .dtype = CVY_DTYPE_F32,
                                   .elems = rows->n * cvy_shape_elems(&n->output[k].shape),
                                   .data = output[k]};
    cvy_applied_range(b, round, b->context->comm->rank, &first);
    return cvy_network_apply_rows(n, cvy_dataset_describe(b->data), first, rows->n, rows->field, out, n->noutput);
}

cvy_status cvy_applied_gather(const cvy_applied *b, int64_t round, size_t bytes, void *block, size_t *bytes_of)
{
    cvy_comm *comm = b->context->comm;
    int64_t first = 0;
    for (int r = 0; r < comm->nranks; r++)
        bytes_of[r] = bytes * (size_t)cvy_applied_range(b, round, r, &first);
    return comm->ops->gatherv(comm, block, bytes_of[comm->rank], (char *)block + (size_t)b->block * bytes, bytes_of, 0);
}

void cvy_applied_report_bad(const cvy_applied *b)
{
    char text[512] = "";
    const int64_t nbad = cvy_loader_nbad(b->loader);
    if (nbad == 0)
        return;
    cvy_loader_bad_text(b->loader, text, sizeof text);
    cvy_log_local(b->context, CVY_LOG_WARN, "%lld samples were skipped; their outputs are NaN; the latest: %s",
                  (long long)nbad, text);
}

void cvy_applied_close(cvy_applied *b)
{
    cvy_loader_destroy(&b->loader);
    cvy_dataset_destroy(&b->data);
    cvy_dataset_destroy(&b->whole);
    cvy_network_destroy(&b->network);
}
