/*
 * score_predict.c: cvy_run_predict(): applies a network to each sample of a data set and writes the results in order.
 *
 * The samples are cut into blocks of the network's largest batch, which the ranks take in turns. A block is computed in
 * the same way by any rank, so the result does not depend on the number of ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/score.h>

#include <string.h>

#include "base/base_opts.h"
#include "job/job_table.h"
#include "network/network.h"
#include "score/score_prediction_file.h"
#include "session/session.h"
#include "session/session_source.h"

typedef struct prediction {
    cvy_context *context;
    cvy_network *network;
    cvy_dataset *data;
    cvy_loader *loader;
    int64_t nsamples, block;
    cvy_prediction_file table;         /* on rank 0 */
    float *output[CVY_NETWORK_ARRAYS]; /* of each output: [block, elems], then on rank 0 those of all ranks */
    uint8_t *is_bad;                   /* [block], then on rank 0 those of all ranks */
    size_t *bytes_of;                  /* [nranks] */
} prediction;

/* The samples of a rank in a step: one block, which may be short or empty at the end. */
static int64_t block_of(const prediction *p, int64_t step, int rank, int64_t *first_out)
{
    const int64_t first = CVY_MIN((step * p->context->comm->nranks + rank) * p->block, p->nsamples);
    *first_out = first;
    return CVY_MIN(p->block, p->nsamples - first);
}

static int64_t count_steps(const prediction *p)
{
    const int64_t all = p->block * p->context->comm->nranks;
    return (p->nsamples + all - 1) / all;
}

static cvy_status share_block(void *user, int64_t step, cvy_share *shares, int max, int *nshare_out)
{
    const prediction *p = user;
    (void)max;
    if (step >= count_steps(p))
        return CVY_END;
    shares[0] = (cvy_share){0};
    shares[0].n = block_of(p, step, p->context->comm->rank, &shares[0].first_position);
    *nshare_out = 1;
    return CVY_OK;
}

/* ---- opening ---- */

static cvy_status check_request(const cvy_predict_request *ask)
{
    CVY_CHECK(ask->target && ask->data && ask->out, CVY_E_ARGUMENT,
              "a prediction needs a network, data, and a file for the result");
    return CVY_OK;
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
static cvy_status open_source(prediction *p, const cvy_predict_request *ask)
{
    const cvy_job *job = p->network->spec.job;
    const cvy_reader_info *stored = &p->network->spec.stored;
    const int is_picture = stored->dtype == CVY_DTYPE_U8 && stored->shape.ndim == 3,
              channels = is_picture && stored->shape.dim[0] <= 3 ? (int)stored->shape.dim[0] : 0;
    cvy_status status = CVY_OK;
    for (int with_targets = 1; with_targets >= 0; with_targets--) {
        cvy_tree *source = NULL;
        CVY_TRY(cvy_job_parse_source_like(job->pool, ask->data, job->data.train, with_targets, channels, &source));
        status = reads_target(p->network)
                     ? cvy_dataset_open(source, job->data.steps, 0, (uint64_t)job->train.seed, &p->data)
                     : cvy_dataset_open_inputs(source, job->data.steps, (uint64_t)job->train.seed, &p->data);
        if (status == CVY_OK || status == CVY_E_MEMORY)
            break;
    }
    return status;
}

static cvy_status open_data(prediction *p, const cvy_predict_request *ask)
{
    const cvy_job *job = p->network->spec.job;
    CVY_TRY(open_source(p, ask));
    CVY_TRY(cvy_network_check_data(p->network, cvy_dataset_describe(p->data)));
    p->nsamples = cvy_dataset_describe(p->data)->nsamples;
    p->block = p->network->size[p->network->nsize - 1].batch;
    const cvy_loader_opts opts = {.threads = cvy_session_data_threads(p->context, job),
                                  .depth = (int)CVY_MAX(job->data.prefetch, 1),
                                  .skip_bad = job->data.on_bad_sample == CVY_BAD_SAMPLE_SKIP,
                                  .share = share_block,
                                  .share_user = p};
    return cvy_loader_create(p->data, &opts, &p->loader);
}

static int64_t elems_of(const prediction *p, int output)
{
    return cvy_shape_elems(&p->network->output[output].shape);
}

static cvy_status open_table(prediction *p, const cvy_predict_request *ask)
{
    const cvy_network *n = p->network;
    const cvy_comm *comm = p->context->comm;
    const size_t blocks = comm->rank == 0 ? (size_t)comm->nranks + 1 : 1, rows = blocks * (size_t)p->block;
    CVY_TRY(cvy_prediction_file_check(ask, n));
    for (int k = 0; k < n->noutput; k++)
        CVY_TRY(cvy_mem_alloc(sizeof *p->output[k] * rows * (size_t)elems_of(p, k), &p->output[k]));
    CVY_TRY(cvy_mem_alloc(sizeof *p->is_bad * rows, &p->is_bad));
    CVY_TRY(cvy_mem_alloc(sizeof *p->bytes_of * (size_t)comm->nranks, &p->bytes_of));
    if (comm->rank != 0)
        return CVY_OK;
    p->table.ask = *ask;
    p->table.network = n;
    p->table.data = p->data;
    p->table.rows = p->nsamples;
    return cvy_prediction_file_begin(&p->table);
}

/* ---- the pass ---- */

static cvy_status apply(prediction *p, const cvy_rows *rows)
{
    cvy_network_out out[CVY_NETWORK_ARRAYS];
    for (int k = 0; k < p->network->noutput; k++)
        out[k] = (cvy_network_out){.name = p->network->output[k].name,
                                   .dtype = CVY_DTYPE_F32,
                                   .elems = rows->n * elems_of(p, k),
                                   .data = p->output[k]};
    for (int64_t i = 0; i < rows->n; i++)
        p->is_bad[i] = rows->weight[i] == 0;
    return cvy_network_apply_rows(p->network, cvy_dataset_describe(p->data), rows->n, rows->field, out,
                                  p->network->noutput);
}

/* Sends so many bytes of each sample from all ranks to rank 0, behind its own block. Collective. */
static cvy_status gather_bytes(prediction *p, int64_t step, size_t bytes, void *block)
{
    cvy_comm *comm = p->context->comm;
    int64_t first = 0;
    for (int r = 0; r < comm->nranks; r++)
        p->bytes_of[r] = bytes * (size_t)block_of(p, step, r, &first);
    return comm->ops->gatherv(comm, block, p->bytes_of[comm->rank], (char *)block + (size_t)p->block * bytes,
                              p->bytes_of, 0);
}

/* Sends the block of each rank to rank 0, which writes them in order. Collective. */
static cvy_status gather(prediction *p, int64_t step)
{
    const cvy_comm *comm = p->context->comm;
    const float *all[CVY_NETWORK_ARRAYS] = {0};
    int64_t first = 0, n = 0;
    for (int k = 0; k < p->network->noutput; k++) {
        CVY_TRY(gather_bytes(p, step, sizeof *all[k] * (size_t)elems_of(p, k), p->output[k]));
        all[k] = p->output[k] + p->block * elems_of(p, k);
    }
    CVY_TRY(gather_bytes(p, step, sizeof *p->is_bad, p->is_bad));
    for (int r = 0; r < comm->nranks; r++)
        n += block_of(p, step, r, &first);
    return comm->rank == 0 ? cvy_prediction_file_add(&p->table, all, p->is_bad + p->block, n) : CVY_OK;
}

/* All ranks agree before each exchange, so that no rank waits for one that has failed. */
static cvy_status run(prediction *p)
{
    const int64_t nsteps = count_steps(p);
    cvy_comm *comm = p->context->comm;
    cvy_status mine = CVY_OK;
    for (int64_t step = 0; step < nsteps; step++) {
        const cvy_rows *rows = NULL;
        if (mine == CVY_OK)
            mine = cvy_loader_get(p->loader, step, &rows, NULL);
        if (mine == CVY_OK)
            mine = apply(p, rows);
        if (rows)
            cvy_loader_release(p->loader, rows);
        CVY_TRY(cvy_comm_agree(comm, mine));
        mine = gather(p, step);
    }
    return cvy_comm_agree(comm, mine);
}

static void report_bad(const prediction *p)
{
    char text[512] = "";
    const int64_t nbad = cvy_loader_nbad(p->loader);
    if (nbad == 0)
        return;
    cvy_loader_bad_text(p->loader, text, sizeof text);
    cvy_log_local(p->context, CVY_LOG_WARN, "%lld samples were skipped; their outputs are NaN; the latest: %s",
                  (long long)nbad, text);
}

static cvy_status predict(prediction *p, const cvy_predict_request *ask)
{
    cvy_comm *comm = p->context->comm;
    const cvy_network_opts opts = {
        .size = sizeof opts, .job = ask->job, .outputs = ask->outputs, .weights = ask->weights};
    CVY_TRY(cvy_comm_agree(comm, check_request(ask)));
    CVY_TRY(cvy_network_open_on_ranks(p->context, ask->target, &opts, &p->network));
    cvy_status status = open_data(p, ask);
    if (status == CVY_OK)
        status = open_table(p, ask);
    CVY_TRY(cvy_comm_agree(comm, status));
    CVY_TRY(run(p));
    report_bad(p);
    return CVY_OK;
}

cvy_status cvy_run_predict(cvy_context *context, const cvy_predict_request *request)
{
    cvy_predict_request ask;
    prediction p = {.context = context};
    cvy_status status = cvy_comm_agree(context->comm, CVY_OPTS_READ(cvy_predict_request, request, &ask));
    if (status == CVY_OK)
        status = predict(&p, &ask);
    status = cvy_prediction_file_end(&p.table, status);
    cvy_loader_destroy(&p.loader);
    cvy_dataset_destroy(&p.data);
    cvy_network_destroy(&p.network);
    for (int k = 0; k < CVY_COUNT(p.output); k++)
        cvy_mem_free(&p.output[k]);
    cvy_mem_free(&p.is_bad);
    cvy_mem_free(&p.bytes_of);
    return cvy_comm_agree(context->comm, status);
}
