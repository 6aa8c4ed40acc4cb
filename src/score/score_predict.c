/*
 * score_predict.c: cvy_run_predict(): applies a network, or an ensemble, to each sample of a data set and writes the
 * results in order.
 *
 * The samples are cut into blocks of the network's largest batch, which the ranks take in turns (score_applied.h). A
 * block is computed in the same way by any rank, so the result does not depend on the number of ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/score.h>

#include <string.h>

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "base/base_opts.h"
#include "score/score_ensemble.h"
#include "score/score_prediction_file.h"

typedef struct prediction {
    cvy_context *context;
    cvy_ensemble ensemble;
    cvy_prediction_file table;         /* on rank 0 */
    float *result[CVY_NETWORK_ARRAYS]; /* of each answer: [block, elems], then on rank 0 those of all ranks */
    uint8_t *is_bad;                   /* [block], then on rank 0 those of all ranks */
    size_t *bytes_of;                  /* [nranks] */
} prediction;

static cvy_status check_request(const cvy_predict_request *ask)
{
    CVY_CHECK(ask->target && ask->out, CVY_E_ARGUMENT, "a prediction needs a network, and a file for the result");
    CVY_CHECK(ask->samples >= 0, CVY_E_ARGUMENT, "request.samples is %lld, expected the number of samples to draw",
              (long long)ask->samples);
    CVY_CHECK(!ask->data != !ask->samples, CVY_E_ARGUMENT, "a prediction needs either data, or a number of samples%s",
              ask->data ? ", not both" : "");
    CVY_CHECK(ask->nmember >= 0 && (ask->nmember == 0 || ask->member), CVY_E_ARGUMENT,
              "request.nmember is %d, expected the number of further networks in request.member", ask->nmember);
    return CVY_OK;
}

static cvy_status open_ensemble(prediction *p, const cvy_predict_request *ask)
{
    const char **target = NULL;
    cvy_status status = cvy_mem_alloc(sizeof *target * (size_t)(ask->nmember + 1), &target);
    CVY_TRY(cvy_comm_agree(p->context->comm, status));
    target[0] = ask->target;
    for (int m = 0; m < ask->nmember; m++)
        target[m + 1] = ask->member[m];
    const cvy_ensemble_opts opts = {.target = target,
                                    .ntarget = ask->nmember + 1,
                                    .outputs = ask->outputs,
                                    .job = ask->job,
                                    .weights = ask->weights,
                                    .passes = ask->passes,
                                    .calibrated = !ask->no_calibration,
                                    .gives = ask->what == CVY_PREDICT_OUTPUTS ? CVY_GIVES_OUTPUTS : CVY_GIVES_SCORED,
                                    .in_place = ask->what == CVY_PREDICT_PROBABILITIES,
                                    .all_classes = 1};
    status = cvy_ensemble_open(&p->ensemble, p->context, &opts);
    cvy_mem_free(&target);
    return status;
}

static cvy_status open_table(prediction *p, const cvy_predict_request *ask)
{
    const cvy_ensemble *e = &p->ensemble;
    const cvy_comm *comm = p->context->comm;
    const size_t blocks = comm->rank == 0 ? (size_t)comm->nranks + 1 : 1, rows = blocks * (size_t)e->member[0].block;
    for (int k = 0; k < e->nanswer; k++)
        CVY_TRY(cvy_mem_alloc(sizeof *p->result[k] * rows * (size_t)e->answer[k].elems, &p->result[k]));
    CVY_TRY(cvy_mem_alloc(sizeof *p->is_bad * rows, &p->is_bad));
    CVY_TRY(cvy_mem_alloc(sizeof *p->bytes_of * (size_t)comm->nranks, &p->bytes_of));
    if (comm->rank != 0)
        return CVY_OK;
    p->table.ask = *ask;
    p->table.ensemble = e;
    return cvy_prediction_file_begin(&p->table);
}

/* ---- the pass ---- */

/* Sends the block of each rank to rank 0, which writes them in order. Collective. */
static cvy_status gather(prediction *p, int64_t round)
{
    const cvy_comm *comm = p->context->comm;
    const cvy_ensemble *e = &p->ensemble;
    const cvy_applied *b = &e->member[0];
    const float *all[CVY_NETWORK_ARRAYS] = {0};
    int64_t first = 0, n = 0;
    for (int k = 0; k < e->nanswer; k++) {
        CVY_TRY(cvy_applied_gather(b, round, sizeof *all[k] * (size_t)e->answer[k].elems, p->result[k], p->bytes_of));
        all[k] = p->result[k] + b->block * e->answer[k].elems;
    }
    CVY_TRY(cvy_applied_gather(b, round, sizeof *p->is_bad, p->is_bad, p->bytes_of));
    for (int r = 0; r < comm->nranks; r++)
        n += cvy_applied_range(b, round, r, &first);
    return comm->rank == 0 ? cvy_prediction_file_add(&p->table, all, p->is_bad + b->block, n) : CVY_OK;
}

/* All ranks agree before each exchange, so that no rank waits for one that has failed. */
static cvy_status run(prediction *p)
{
    const int64_t rounds = cvy_applied_rounds(&p->ensemble.member[0]);
    cvy_comm *comm = p->context->comm;
    cvy_status mine = CVY_OK;
    for (int64_t round = 0; round < rounds; round++) {
        if (mine == CVY_OK)
            mine = cvy_ensemble_compute(&p->ensemble, round, p->result, p->is_bad);
        CVY_TRY(cvy_comm_agree(comm, mine));
        mine = gather(p, round);
    }
    return cvy_comm_agree(comm, mine);
}

/* A layer that reads the values of x, or NULL. */
static const char *reader_of_input(const cvy_model *m)
{
    for (int i = 0; i < m->nlayer; i++)
        for (int k = 0; k < m->layer[i].nfrom && !(m->layer[i].op->flags & CVY_OP_COUNTS); k++)
            if (strcmp(m->layer[i].from[k], "x") == 0)
                return m->layer[i].output;
    return NULL;
}

/* A source of samples whose number is all that the network reads. */
static cvy_status open_drawn(prediction *p, int64_t samples)
{
    const cvy_network *n = p->ensemble.member[0].network;
    const char *reader = reader_of_input(n->model);
    const cvy_shape *shape = &n->spec.stored.shape;
    cvy_text text = {0};
    CVY_CHECK(!reader, CVY_E_CONFIG,
              "%s reads samples (its layer '%s' reads x), so it cannot draw any: name the data with --data",
              p->ensemble.name[0], reader);
    cvy_text_add(&text, "{format: synthetic, classes: 1, samples: %lld, shape: ", (long long)samples);
    cvy_text_add_ints(&text, shape->dim, shape->ndim);
    cvy_text_add(&text, "}");
    const cvy_status status = text.status == CVY_OK ? cvy_ensemble_open_data(&p->ensemble, text.data, 0) : text.status;
    cvy_text_free(&text);
    return status;
}

static cvy_status predict(prediction *p, const cvy_predict_request *ask)
{
    cvy_comm *comm = p->context->comm;
    CVY_TRY(cvy_comm_agree(comm, check_request(ask)));
    CVY_TRY(open_ensemble(p, ask));
    cvy_status status = cvy_prediction_file_check(ask, &p->ensemble);
    if (status == CVY_OK)
        status = ask->samples ? open_drawn(p, ask->samples) : cvy_ensemble_open_data(&p->ensemble, ask->data, 0);
    if (status == CVY_OK)
        status = open_table(p, ask);
    CVY_TRY(cvy_comm_agree(comm, status));
    CVY_TRY(run(p));
    cvy_applied_report_bad(&p->ensemble.member[0]);
    return CVY_OK;
}

cvy_status cvy_run_predict(cvy_context *context, const cvy_predict_request *request)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(CONTEXT, context));
    cvy_predict_request ask;
    prediction p = {.context = context};
    cvy_status status = cvy_comm_agree(context->comm, CVY_OPTS_READ(cvy_predict_request, request, &ask));
    if (status == CVY_OK)
        status = predict(&p, &ask);
    status = cvy_prediction_file_end(&p.table, status);
    cvy_ensemble_close(&p.ensemble);
    for (int k = 0; k < CVY_COUNT(p.result); k++)
        cvy_mem_free(&p.result[k]);
    cvy_mem_free(&p.is_bad);
    cvy_mem_free(&p.bytes_of);
    return cvy_comm_agree(context->comm, status);
}
