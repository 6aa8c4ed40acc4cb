/*
 * score_run.c: opens a trained network for test: see score_run.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "score/score_run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_file.h"
#include "base/base_hash.h"
#include "data/data_agrees.h"
#include "job/job_table.h"
#include "model/model_closing.h"
#include "model/model_import.h"
#include "monitor/monitor_run_layout.h"
#include "network/network.h"
#include "network/network_calibration.h"
#include "score/score_yes.h"
#include "session/session_normalize.h"
#include "session/session_values.h"

/* Rank 0 looks for a sound set of the run: the best one, or else the newest; or checks the set that the target is. All
 * ranks use the same one. */
static cvy_status find_set(cvy_scoring *s, const char *target)
{
    cvy_comm *comm = s->session.context->comm;
    cvy_status status = CVY_OK;
    if (comm->rank == 0) {
        status = cvy_network_find_set(target, NULL, &s->checkpoint);
        for (int i = 0; i < s->checkpoint.nmessage; i++)
            cvy_log(s->session.context, CVY_LOG_WARN, "%s", s->checkpoint.message[i]);
    }
    return cvy_checkpoint_share(comm, status, &s->checkpoint);
}

/* Reads the description in the weights of a checkpoint or in a file of weights, if no job is given. */
static cvy_status read_spec(cvy_scoring *s, const char *target, const cvy_job_source *job)
{
    const char *file = s->is_set ? s->checkpoint.weights_path[0] : target;
    const cvy_importer_def *network = cvy_importer_of_file(target);
    CVY_CHECK(!network, CVY_E_ARGUMENT,
              "%s is %s, which has neither a loss nor metrics: score the run that it was exported from, or write its "
              "outputs by `convoy predict`",
              target, network->title);
    CVY_CHECK(s->run || s->is_set || cvy_data_has_suffix(target, ".safetensors"), CVY_E_ARGUMENT,
              "%s is neither a run folder, nor a checkpoint, nor a .safetensors file", target);
    const cvy_status status = s->run || job ? CVY_OK : cvy_network_spec_of_file(file, &s->spec, NULL);
    CVY_CHECK(status != CVY_NOT_APPLICABLE, CVY_E_ARGUMENT,
              "%s holds weights only: give the job file too, which says what network they are for", target);
    return status;
}

static cvy_status open_job(cvy_scoring *s, const char *target, const cvy_job_source *job)
{
    char path[CVY_RUN_PATH], *text = NULL;
    cvy_job_source own = {.size = sizeof own, .path = path};
    const int is_folder = cvy_file_is_folder(target), is_run = is_folder && cvy_network_is_run(target);
    s->run = is_run ? target : NULL;
    s->is_set = is_folder && !is_run;
    if (s->is_set)
        CVY_TRY(find_set(s, target)); /* first, because its weights have the job */
    cvy_status status = read_spec(s, target, job);
    if (status == CVY_OK && s->spec.job)
        status = cvy_job_print(s->spec.job, &text);
    CVY_TRY(cvy_comm_agree(s->session.context->comm, status));
    CVY_TRY(cvy_session_same(&s->session, "network to score", cvy_hash(target, strlen(target)) + (is_folder != 0)));
    cvy_run_path(target, CVY_RUN_JOB, path);
    if (text)
        own = (cvy_job_source){.size = sizeof own, .text = text};
    s->session.ignores_libraries = !job;
    s->session.keeps_device = 1; /* a network is often used elsewhere than it was trained */
    status = cvy_session_open_job(s->session.context, job ? job : &own, &s->session);
    cvy_mem_free(&text);
    CVY_TRY(status);
    return s->run ? find_set(s, target) : CVY_OK;
}

/* Finds the classes that the network was trained on, in the file of weights or in the checkpoint. *known_out 0: they
 * are not there. */
static cvy_status read_classes(cvy_scoring *s, int *known_out)
{
    const cvy_tree *state = s->checkpoint.state, *classes = state ? cvy_tree_get(state, "classes") : NULL,
                   *names = state ? cvy_tree_get(state, "class_names") : NULL;
    const char **known = NULL;
    *known_out = s->spec.job || classes;
    if (s->spec.job) {
        s->nclasses = s->spec.data.nclasses;
        s->class_name = s->spec.data.class_name;
        return CVY_OK;
    }
    if (!classes)
        return CVY_OK;
    CVY_TRY(cvy_tree_int(classes, &s->nclasses));
    if (names && names->kind == CVY_TREE_LIST && names->count == s->nclasses && s->nclasses > 0) {
        CVY_TRY(cvy_pool_alloc(s->session.job->pool, sizeof *known * (size_t)names->count, &known));
        for (int i = 0; i < names->count; i++)
            known[i] = names->child[i]->text ? names->child[i]->text : "";
    }
    s->class_name = known;
    return CVY_OK;
}

/* If the network does not say its classes, they are those of the data to score, or of the training data. */
static cvy_status find_classes(cvy_scoring *s, const cvy_dataset_info *data)
{
    int is_known = 0;
    CVY_TRY(read_classes(s, &is_known));
    if (is_known)
        return cvy_classes_agree(s->class_name, s->nclasses, data);
    s->nclasses = data->nclasses;
    s->class_name = data->class_name;
    if (s->nclasses > 0)
        return CVY_OK;
    cvy_dataset *train = NULL;
    CVY_TRY(cvy_dataset_open(s->session.job->data.train, s->session.job->data.steps, 0, 1, &train));
    s->nclasses = cvy_dataset_describe(train)->nclasses;
    cvy_dataset_destroy(&train);
    return CVY_OK;
}

static cvy_status make_program(cvy_scoring *s)
{
    cvy_session *session = &s->session;
    cvy_dataset_info info = *cvy_dataset_describe(session->test);
    cvy_program_opts opts;
    CVY_CHECK(cvy_dataset_target(&info), CVY_E_FORMAT,
              "%s has no labels or targets to score against; use `convoy predict`",
              info.path ? info.path : info.format);
    CVY_TRY(find_classes(s, &info));
    info.nclasses = s->nclasses;
    CVY_TRY(cvy_job_model(session->job, session->context, &info, CVY_LOSSES_SCORED, &session->model));
    CVY_TRY(cvy_model_warn_of_losses(session->model, session->context));
    CVY_CHECK(!cvy_job_kernels(session->job).by_clock, CVY_E_CONFIG,
              "%s: plan.kernels is clock, which computes nothing: it is for convoy bench",
              cvy_job_where(session->job, "plan", "kernels"));
    opts = cvy_job_program_opts(session->job, NULL);
    opts.pipeline = opts.tensor = 1; /* each rank computes the whole network */
    memset(opts.spatial, 0, sizeof opts.spatial);
    opts.planning = "estimate"; /* for one pass over the data, measuring kernels takes longer than it saves */
    CVY_TRY(cvy_job_translate(cvy_program_create(session->context, &opts, &session->program)));
    return cvy_scorer_add(session, session->test, session->model, &s->scorer);
}

static cvy_status find_temperature(cvy_scoring *s)
{
    int stale = 0;
    s->temperature = s->spec.temperature;
    if (!s->checkpoint.path)
        return CVY_OK;
    const cvy_status status = cvy_calibration_of(s->checkpoint.path, &s->temperature, &stale);
    if (stale)
        cvy_log(s->session.context, CVY_LOG_WARN,
                "%s: the calibration is of another checkpoint and is not applied; renew it by `convoy test RUN "
                "--calibrate`",
                s->run ? s->run : s->checkpoint.path);
    return cvy_comm_agree(s->session.context->comm, status);
}

static cvy_status load_weights(cvy_scoring *s, const char *target)
{
    if (s->checkpoint.path)
        return cvy_checkpoint_load(&s->checkpoint, s->session.context->comm, cvy_program_vars(s->session.program), 0);
    return cvy_comm_agree(s->session.context->comm, cvy_weights_load(target, cvy_program_vars(s->session.program)));
}

/* Opens the data, which must have the form of the training data if the weights say it. Those of old versions of convoy
 * and of other programs do not, but their checkpoints have the classes. A job that is given may want another form of
 * the same classes. */
static cvy_status open_data(cvy_scoring *s, const char *data, int has_job)
{
    cvy_network_spec own = {0};
    const cvy_network_spec *trained = s->spec.job ? &s->spec : NULL;
    if (!trained && s->checkpoint.path && cvy_network_spec_of_file(s->checkpoint.weights_path[0], &own, NULL) == CVY_OK)
        trained = &own;
    cvy_data_form like = trained ? cvy_network_spec_form(trained) : (cvy_data_form){0};
    cvy_dataset_info classes = {0};
    int is_known = 0;
    const cvy_status read = read_classes(s, &is_known);
    classes.nclasses = s->nclasses;
    classes.class_name = s->class_name;
    if (has_job || !trained)
        like.info = is_known && s->nclasses > 0 ? &classes : NULL;
    if (!has_job && !trained)
        cvy_log(s->session.context, CVY_LOG_WARN,
                "the weights do not say on which data they were trained: columns, types and shapes of the data are not "
                "compared with those of the training");
    cvy_status status = cvy_comm_agree(s->session.context->comm, read);
    if (status == CVY_OK)
        status = cvy_session_open_test_data(&s->session, data, &like);
    cvy_network_spec_end(&own);
    if (status == CVY_OK)
        cvy_session_log_note(s->session.context, s->session.test);
    return status;
}

cvy_status cvy_scoring_open(cvy_context *context, const char *target, const cvy_job_source *job, const char *data,
                            cvy_scoring *out)
{
    cvy_comm *comm = context->comm;
    out->session.context = context;
    CVY_TRY(open_job(out, target, job));
    CVY_TRY(cvy_comm_agree(comm, cvy_job_take_normalize(out->session.job, out->checkpoint.state)));
    CVY_TRY(open_data(out, data, job != NULL));
    CVY_TRY(cvy_session_compare(&out->session));
    CVY_TRY(cvy_comm_agree(comm, make_program(out)));
    CVY_TRY(cvy_job_translate(cvy_program_plan(out->session.program)));
    cvy_values_look(
        context,
        &(cvy_values_ask){.job = out->session.job, .model = out->session.model, .key = data ? data : "data.test"},
        out->session.test);
    CVY_TRY(find_temperature(out));
    return load_weights(out, target);
}

cvy_status cvy_run_checkpoint(const char *run, char **name_out)
{
    CVY_ENTRY();
    char path[CVY_RUN_PATH];
    cvy_checkpoint c = {0};
    CVY_CHECK(run && name_out, CVY_E_ARGUMENT, "cvy_run_checkpoint() needs a run folder and a place for the name");
    *name_out = NULL;
    CVY_CHECK(cvy_file_is_folder(run), CVY_E_IO, "%s is not a run folder", run);
    cvy_run_path(run, CVY_RUN_CHECKPOINTS, path);
    cvy_status status = cvy_checkpoint_find_best(path, &c);
    if (status == CVY_END)
        status = cvy_error_set(CVY_E_IO, "%s holds no checkpoint", run);
    if (status == CVY_OK)
        status = cvy_mem_strdup(cvy_file_base_name(c.path), name_out);
    cvy_checkpoint_close(&c);
    return status;
}

void cvy_scoring_close(cvy_scoring *s)
{
    cvy_network_spec_end(&s->spec);
    cvy_checkpoint_close(&s->checkpoint);
    cvy_session_close(&s->session);
}

/* ---- gathering output rows ---- */

cvy_status cvy_gathered_begin(cvy_scoring *s, cvy_gathered_fn sink, void *user, cvy_gathered *out)
{
    const cvy_program *p = s->session.program;
    const cvy_field *target = cvy_dataset_target(cvy_dataset_describe(s->scorer.data));
    const int any = s->scorer.step_full >= 0 ? s->scorer.step_full : s->scorer.step_tail;
    const cvy_shape sample = cvy_program_output_sample(p, any, 0);
    *out = (cvy_gathered){.comm = s->session.context->comm,
                          .scorer = &s->scorer,
                          .sink = sink,
                          .user = user,
                          .output_elems = cvy_shape_elems(&sample)};
    out->is_yes =
        cvy_score_is_yes(s->session.model->output_kind, out->output_elems, cvy_dataset_describe(s->scorer.data));
    out->target_elems = target ? cvy_shape_elems(&target->shape) : 0;
    CVY_TRY(cvy_mem_alloc(sizeof *out->bytes_of * (size_t)out->comm->nranks, &out->bytes_of));
    return cvy_mem_alloc(2 * sizeof *out->block *
                             (size_t)(s->scorer.order.batch * (out->output_elems + out->target_elems)),
                         &out->block);
}

/* Positions of weight 0 have neither output nor target, if there is one target for each output. */
static void leave_out_masked(const cvy_gathered *g, const cvy_score_rows *with, int64_t i, float *row)
{
    for (int64_t k = 0; with->weight_each > 1 && g->output_elems == g->target_elems && k < g->target_elems; k++)
        if (with->weight[i * with->weight_each + k % with->weight_each] == 0)
            row[k] = row[g->output_elems + k] = NAN;
}

cvy_status cvy_gathered_add(void *gathered, int64_t n, const cvy_span *output, const cvy_score_rows *with)
{
    cvy_gathered *g = gathered;
    const int64_t all_n = cvy_order_batch(&g->scorer->order, g->step++), width = g->output_elems + g->target_elems;
    float *mine = g->block, *all = g->block + n * width;
    for (int64_t i = 0; i < n; i++) {
        float *row = mine + i * width;
        for (int64_t k = 0; k < g->output_elems; k++)
            row[k] = (float)(g->is_yes ? cvy_sigmoid(cvy_get(output, i * g->output_elems + k))
                                       : cvy_get(output, i * g->output_elems + k));
        for (int64_t k = 0; k < g->target_elems; k++)
            row[g->output_elems + k] = (float)cvy_get(&with->target, i * g->target_elems + k);
        leave_out_masked(g, with, i, row);
    }
    for (int r = 0; r < g->comm->nranks; r++)
        g->bytes_of[r] = sizeof *mine * (size_t)(cvy_order_part(&g->scorer->order, all_n, r).local_n * width);
    CVY_TRY(g->comm->ops->gatherv(g->comm, mine, g->bytes_of[g->comm->rank], all, g->bytes_of, 0));
    return g->comm->rank == 0 ? g->sink(g->user, all, all_n, width) : CVY_OK;
}

void cvy_gathered_end(cvy_gathered *g)
{
    cvy_mem_free(&g->block);
    cvy_mem_free(&g->bytes_of);
}
