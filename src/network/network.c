/*
 * network.c: opens a trained network: finds the weights and the description of the network, plans forward tasks, loads
 * the weights.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "network/network.h"

#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_file.h"
#include "base/base_handle.h"
#include "base/base_opts.h"
#include "checkpoint/checkpoint.h"
#include "job/job_table.h"
#include "model/model_import.h"
#include "monitor/monitor_run_layout.h"
#include "network/network_calibration.h"
#include "session/session.h"
#include "session/session_normalize.h"
#include "session/session_output.h"

/* Where the weights come from. */
struct source {
    const char *target;
    cvy_checkpoint set;  /* of a run folder or a checkpoint; its path is NULL for a file */
    const char *file;    /* a file of weights, whose metadata may have the description */
    const char *further; /* the weights of a network whose file does not have them; NULL: it has */
};

/* ---- finding the weights ---- */

int cvy_network_is_run(const char *folder)
{
    char checkpoints[CVY_RUN_PATH], job[CVY_RUN_PATH];
    cvy_run_path(folder, CVY_RUN_CHECKPOINTS, checkpoints);
    cvy_run_path(folder, CVY_RUN_JOB, job);
    return cvy_file_is_folder(checkpoints) || cvy_file_exists(job);
}

cvy_status cvy_network_find_set(const char *target, const char *which, cvy_checkpoint *out)
{
    char path[CVY_RUN_PATH];
    CVY_CHECK(strlen(target) + 24 < sizeof path, CVY_E_ARGUMENT, "a path of %zu characters: the limit is %zu",
              strlen(target), sizeof path - 24);
    if (cvy_network_is_run(target)) {
        cvy_run_path(target, CVY_RUN_CHECKPOINTS, path);
        const cvy_status status = which ? cvy_checkpoint_find(path, which, out) : cvy_checkpoint_find_best(path, out);
        return status == CVY_END ? cvy_error_set(CVY_E_IO, "%s holds no checkpoint", target) : status;
    }
    snprintf(path, sizeof path, "%s", target);
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
        path[n - 1] = 0;
    char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path, *folder = slash ? path : ".";
    CVY_CHECK(strncmp(name, "step-", 5) == 0, CVY_E_IO,
              "%s is neither a run folder nor a checkpoint: it has no folder " CVY_RUN_CHECKPOINTS, target);
    CVY_CHECK(!which, CVY_E_ARGUMENT, "%s is a checkpoint already: name a run folder to choose among checkpoints",
              target);
    if (slash)
        *slash = 0;
    const cvy_status status = cvy_checkpoint_find(folder, name, out);
    return status == CVY_END ? cvy_error_set(CVY_E_IO, "%s is not a checkpoint", target) : status;
}

static cvy_status find_weights(const cvy_network *n, const char *which, struct source *s)
{
    if (!cvy_file_is_folder(s->target)) {
        const cvy_importer_def *importer = cvy_importer_of_file(s->target);
        CVY_CHECK(importer || cvy_data_has_suffix(s->target, ".safetensors"), CVY_E_ARGUMENT,
                  "%s is neither a run folder, nor a checkpoint, nor a file that ends with .safetensors, %s", s->target,
                  cvy_importer_suffixes(0).text);
        CVY_CHECK(!s->further || (importer && importer->weights), CVY_E_ARGUMENT,
                  "%s has its weights itself: leave out %s", s->target, s->further);
        CVY_CHECK(s->further || !importer || !importer->weights, CVY_E_ARGUMENT,
                  "%s is a network without weights: give the %s file, too", s->target, importer->written);
        CVY_CHECK(!which, CVY_E_ARGUMENT, "%s is a file: name a run folder to choose among checkpoints", s->target);
        s->file = s->target;
        return CVY_OK;
    }
    const cvy_status status = cvy_network_find_set(s->target, which, &s->set);
    for (int i = 0; i < s->set.nmessage; i++)
        cvy_log(n->context, CVY_LOG_WARN, "%s", s->set.message[i]);
    if (status == CVY_OK)
        s->file = s->set.weights_path[0];
    return status;
}

/* ---- the description ---- */

/* Makes the given job that of the description. If no description was found, the job's data give it. */
static cvy_status describe_job(cvy_network *n, const struct source *s, const cvy_job_source *given)
{
    cvy_job *job = NULL;
    cvy_status status = cvy_job_read(given, &job);
    if (status == CVY_OK)
        status = cvy_job_take_normalize(job, s->set.state);
    if (status == CVY_OK)
        status = n->spec.job ? cvy_network_spec_set_job(&n->spec, &job) : cvy_network_spec_of_job(&job, &n->spec);
    cvy_job_destroy(&job);
    return status;
}

/* A run of a version that wrote no description has its job file. */
static cvy_status find_spec(cvy_network *n, const struct source *s, const cvy_job_source *given)
{
    char path[CVY_RUN_PATH];
    if (cvy_importer_of_file(s->file)) {
        CVY_CHECK(!given, CVY_E_ARGUMENT, "%s has its network itself: leave out the job", s->file);
        n->step = -1;
        return cvy_network_spec_of_import(s->file, s->further, &n->spec);
    }
    const cvy_status status = cvy_network_spec_of_file(s->file, &n->spec, &n->step);
    if (status < CVY_OK)
        return status;
    if (given)
        return describe_job(n, s, given);
    if (status == CVY_OK)
        return CVY_OK;
    cvy_run_path(s->target, CVY_RUN_JOB, path);
    CVY_CHECK(s->set.path && cvy_file_exists(path), CVY_E_CONFIG,
              "%s holds weights only: give the job, too, which says what network they are for", s->target);
    const cvy_job_source own = {.size = sizeof own, .path = path};
    return describe_job(n, s, &own);
}

/* ---- the program ---- */

static cvy_status add_tasks(cvy_network *n, const char *outputs, int64_t most)
{
    const int64_t usual[CVY_NETWORK_SIZES] = {1, 8, most};
    for (int i = 0; i < CVY_NETWORK_SIZES; i++) {
        cvy_network_size *size = &n->size[n->nsize];
        if (n->nsize > 0 && usual[i] <= size[-1].batch)
            continue;
        if (usual[i] > most)
            continue;
        size->batch = usual[i];
        CVY_TRY(cvy_program_add_forward(n->program, n->model, size->batch, outputs, &size->task));
        n->nsize++;
    }
    return CVY_OK;
}

/* Notes which layers are compared with the target, while the model has its losses. */
static cvy_status note_scaled(cvy_network *n)
{
    for (int i = 0; i < n->model->nlayer && n->nscaled < CVY_NETWORK_ARRAYS; i++) {
        const char *name = n->model->layer[i].output;
        cvy_scaling *scaling = &n->scaled[n->nscaled].scaling;
        CVY_TRY(cvy_job_output_scaling(n->spec.job, &n->spec.data, n->model, name, scaling));
        if (scaling->n > 0)
            n->scaled[n->nscaled++].name = name;
    }
    return CVY_OK;
}

static cvy_scaling output_scaling(const cvy_network *n, const char *name, const cvy_shape *sample)
{
    for (int i = 0; i < n->nscaled; i++)
        if (strcmp(n->scaled[i].name, name) == 0 && cvy_shape_elems(sample) % n->scaled[i].scaling.n == 0)
            return n->scaled[i].scaling;
    return (cvy_scaling){0};
}

/* ---- what the outputs are ---- */

/* What the numbers of the layer that scores read are. */
static cvy_output_kind kind_before(cvy_output_kind kind)
{
    return cvy_output_is_of_classes(kind) ? CVY_OUTPUT_LOGITS
           : cvy_output_is_of_yes(kind)   ? CVY_OUTPUT_YES_LOGITS
                                          : CVY_OUTPUT_VALUES;
}

static int gives_scored(const cvy_network *n, const cvy_output_meaning *meaning)
{
    if (n->gives == CVY_GIVES_CLASSES)
        return n->spec.data.nclasses > 1 && meaning->shape.ndim <= 1 && meaning->kind != CVY_OUTPUT_VALUES;
    return n->gives == CVY_GIVES_SCORED;
}

/* Notes what the outputs are while the model has its losses. Sets *outputs to the layers to compute. */
static cvy_status note_meanings(cvy_network *n, const char **outputs)
{
    const char *list = *outputs ? *outputs : cvy_model_output(n->model);
    for (const char *at = list ? list : ""; *(at += strspn(at, ", \t\n")) && n->nmeant < CVY_NETWORK_ARRAYS;) {
        cvy_output_meaning meaning;
        char *name = NULL;
        const size_t length = strcspn(at, ", \t\n");
        CVY_TRY(cvy_pool_printf(n->model->pool, &name, "%.*s", (int)length, at));
        at += length;
        CVY_TRY(cvy_job_output_meaning(n->spec.job, &n->spec.data, n->model, name, &meaning));
        if (!n->spec.knows_training && n->nmeant == 0 && cvy_output_is_of_classes(meaning.kind))
            n->spec.data.nclasses = meaning.shape.dim[0]; /* the file says so by its softmax alone */
        n->meant[n->nmeant].name = n->meant[n->nmeant].of = name;
        n->meant[n->nmeant++].kind = meaning.kind;
        if (n->nmeant > 1 || at[strspn(at, ", \t\n")] || !gives_scored(n, &meaning))
            continue;
        n->meant[0].name = *outputs = meaning.scored;
        n->meant[0].kind = kind_before(meaning.kind);
    }
    return CVY_OK;
}

static cvy_status list_outputs(cvy_network *n)
{
    const int task = n->size[0].task;
    const char *name;
    for (; (name = cvy_program_output_name(n->program, task, n->noutput)) != NULL; n->noutput++) {
        CVY_CHECK(n->noutput < CVY_NETWORK_ARRAYS, CVY_E_UNSUPPORTED, "more than %d outputs, which is the limit",
                  CVY_NETWORK_ARRAYS);
        const void *data = NULL;
        cvy_shape whole, *sample = &n->output[n->noutput].shape;
        n->output[n->noutput].name = name;
        CVY_TRY(cvy_program_output(n->program, task, name, &data, &whole));
        sample->ndim = whole.ndim > 0 ? whole.ndim - 1 : 0;
        for (int i = 0; i < sample->ndim; i++)
            sample->dim[i] = whole.dim[i + 1];
        n->output[n->noutput].scaling = output_scaling(n, name, sample);
        n->output[n->noutput].of = name;
        for (int i = 0; i < n->nmeant; i++)
            if (strcmp(n->meant[i].name, name) == 0) {
                n->output[n->noutput].of = n->meant[i].of;
                n->output[n->noutput].kind = n->meant[i].kind;
            }
    }
    return CVY_OK;
}

static cvy_status make_program(cvy_network *n, const cvy_network_opts *o)
{
    cvy_job *job = n->spec.job;
    cvy_program_opts opts;
    const char *outputs = o->outputs;
    int64_t batch = 0;
    CVY_CHECK(!cvy_job_kernels(job).by_clock, CVY_E_CONFIG,
              "%s: plan.kernels is clock, which computes nothing: it is for convoy bench",
              cvy_job_where(job, "plan", "kernels"));
    CVY_TRY(cvy_augment_create(job->data.steps, 0, job->program.seed, &n->spec.stored, &n->augment));
    n->spec.data.scaling = cvy_augment_target(n->augment)->scaling;
    n->spec.data.target_is_input = cvy_augment_target(n->augment)->is_input;
    CVY_TRY(cvy_job_model(job, n->context, &n->spec.data, CVY_LOSSES_NONE, &n->model));
    CVY_TRY(note_scaled(n));
    CVY_TRY(note_meanings(n, &outputs));
    CVY_TRY(cvy_model_keep(n->model, outputs));
    CVY_CHECK(n->model->ninput <= CVY_NETWORK_ARRAYS, CVY_E_UNSUPPORTED, "%d inputs, the limit is %d", n->model->ninput,
              CVY_NETWORK_ARRAYS);
    cvy_job_update_in_sync(job);
    opts = cvy_job_program_opts(job, NULL);
    opts.pipeline = opts.tensor = 1;
    memset(opts.spatial, 0, sizeof opts.spatial);
    opts.planning = "estimate"; /* measuring kernels would take longer than most networks are open */
    opts.memory_limit = 0;      /* it is for training */
    opts.shards = 0;
    CVY_TRY(cvy_job_translate(cvy_program_create(n->context, &opts, &n->program)));
    cvy_program_keep_dropout(n->program, n->dropout);
    CVY_TRY(cvy_job_batch(job, 1, &batch));
    CVY_TRY(add_tasks(n, outputs, o->batch > 0 ? o->batch : CVY_MIN(batch, 64)));
    CVY_TRY(cvy_job_translate(cvy_program_plan(n->program)));
    return list_outputs(n);
}

/* Sends what rank 0 has found to all ranks. Collective. */
static cvy_status share_source(cvy_comm *comm, cvy_status found, struct source *s)
{
    int is_set = s->set.path != NULL;
    CVY_TRY(cvy_comm_agree(comm, found));
    CVY_TRY(comm->ops->broadcast(comm, &is_set, sizeof is_set, 0));
    if (is_set)
        CVY_TRY(cvy_checkpoint_share(comm, CVY_OK, &s->set));
    s->file = is_set ? s->set.weights_path[0] : s->target;
    return CVY_OK;
}

static cvy_status load(cvy_network *n, cvy_comm *comm, const struct source *s)
{
    cvy_vars *vars = cvy_program_vars(n->program);
    for (int i = 0; i < vars->count; i++)
        n->parameters += vars->at[i]->role == CVY_ROLE_WEIGHT ? cvy_shape_elems(&vars->at[i]->shape) : 0;
    if (s->set.path)
        return cvy_checkpoint_load(&s->set, comm, vars, 0);
    const cvy_import *import = n->spec.job->import;
    const cvy_status status =
        import ? cvy_weights_set(import->tensor, import->ntensor, vars) : cvy_weights_load(s->file, vars);
    return comm ? cvy_comm_agree(comm, status) : status;
}

/* A context of this rank alone, with the threads, the log, the backend and the libraries of the caller's. */
static cvy_status make_context(const cvy_context *of, cvy_context **out)
{
    cvy_context_opts opts = of->opts;
    opts.threads = of->threads;
    opts.device = of->device;
    opts.backend = NULL;
    CVY_TRY(cvy_context_create(&opts, out));
    return cvy_extensions_copy(&(*out)->extensions, &of->extensions);
}

/* A run folder may hold a temperature for these weights. */
static cvy_status find_temperature(cvy_network *n, int tells, const struct source *s)
{
    int stale = 0;
    if (!s->set.path)
        return CVY_OK;
    CVY_TRY(cvy_calibration_of(s->set.path, &n->spec.temperature, &stale));
    if (stale && tells)
        cvy_log(n->context, CVY_LOG_WARN,
                "%s: the calibration is of another checkpoint and is not applied; renew it by `convoy test RUN "
                "--calibrate`",
                s->set.path);
    return CVY_OK;
}

/* comm NULL: this rank alone. */
static cvy_status open_network(cvy_network *n, cvy_comm *comm, const cvy_network_opts *o, struct source *source)
{
    cvy_status status = comm && comm->rank > 0 ? CVY_OK : find_weights(n, o->checkpoint, source);
    CVY_TRY(comm ? share_source(comm, status, source) : status);
    status = find_spec(n, source, o->job);
    if (status == CVY_OK)
        status = find_temperature(n, !comm || comm->rank == 0, source);
    if (status == CVY_OK && o->job)
        status = cvy_job_load_libraries(n->spec.job, &n->context->extensions);
    if (comm) {
        CVY_TRY(cvy_comm_agree(comm, status));
        CVY_TRY(cvy_extensions_compare(comm, &n->context->extensions));
    }
    if (status == CVY_OK)
        status = make_program(n, o);
    CVY_TRY(comm ? cvy_comm_agree(comm, status) : status);
    return load(n, comm, source);
}

static cvy_status create(cvy_context *context, int together, const char *target, const cvy_network_opts *opts,
                         int dropout, cvy_network_gives gives, cvy_network **out)
{
    cvy_comm *comm = together ? context->comm : NULL;
    cvy_network *n = NULL;
    cvy_network_opts o;
    struct source source = {.target = target};
    cvy_status status = CVY_OPTS_READ(cvy_network_opts, opts, &o);
    if (status == CVY_OK && o.batch < 0)
        status = cvy_error_set(CVY_E_ARGUMENT, "opts.batch is %lld, expected 0 or more", (long long)o.batch);
    if (status == CVY_OK && o.outputs && !o.outputs[strspn(o.outputs, ", \t\n")])
        status = cvy_error_set(CVY_E_ARGUMENT, "opts.outputs is '%s', which names no layer", o.outputs);
    if (status == CVY_OK)
        status = cvy_handle_alloc(CVY_HANDLE_NETWORK, sizeof *n, &n);
    if (status == CVY_OK)
        status = make_context(context, &n->context);
    CVY_TRY_OUT(comm ? cvy_comm_agree(comm, status) : status);
    source.further = o.weights;
    n->dropout = dropout;
    n->gives = gives;
    CVY_TRY_OUT(open_network(n, comm, &o, &source));
    *out = n;
out:
    cvy_checkpoint_close(&source.set);
    if (status != CVY_OK)
        cvy_network_destroy(&n);
    return status;
}

cvy_status cvy_network_open(cvy_context *context, const char *target, const cvy_network_opts *opts,
                            cvy_network **network_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(CONTEXT, context));
    CVY_CHECK(target && network_out, CVY_E_ARGUMENT, "cvy_network_open() needs a target and an output pointer");
    return create(context, 0, target, opts, 0, CVY_GIVES_OUTPUTS, network_out);
}

cvy_status cvy_network_open_on_ranks(cvy_context *context, const char *target, const cvy_network_opts *opts,
                                     int dropout, cvy_network_gives gives, cvy_network **out)
{
    return create(context, 1, target, opts, dropout, gives, out);
}

void cvy_network_destroy(cvy_network **network)
{
    CVY_ENTRY();
    if (!CVY_IS_LIVE_AT(NETWORK, network))
        return;
    cvy_network *n = *network;
    cvy_program_destroy(&n->program);
    cvy_model_destroy(&n->model);
    cvy_augment_destroy(&n->augment);
    cvy_network_spec_end(&n->spec);
    cvy_context_destroy(&n->context);
    cvy_mem_free(&n->plain.data);
    cvy_mem_free(&n->row.data);
    cvy_augment_scratch_free(&n->scratch);
    cvy_handle_free(network);
}

/* ---- describing it ---- */

cvy_status cvy_network_describe(const cvy_network *n, cvy_network_about *about_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(NETWORK, n));
    CVY_TRY(CVY_RESULT_CHECK(cvy_network_about, about_out));
    const cvy_network_about about = {.name = n->spec.job->name,
                                     .step = n->step,
                                     .parameters = n->parameters,
                                     .classes = n->spec.data.nclasses,
                                     .inputs = n->model->ninput,
                                     .outputs = n->noutput,
                                     .temperature = n->spec.temperature};
    cvy_result_write(about_out, &about, sizeof about);
    return CVY_OK;
}

cvy_status cvy_network_input(const cvy_network *n, int i, const char **name_out, cvy_dtype *dtype_out,
                             cvy_shape *shape_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(NETWORK, n));
    if (i < 0 || i >= n->model->ninput)
        return CVY_END;
    const cvy_model_input *input = &n->model->input[i];
    const int is_x = strcmp(input->name, "x") == 0;
    if (name_out)
        *name_out = input->name;
    if (dtype_out)
        *dtype_out = is_x ? n->spec.stored.dtype : input->dtype;
    if (shape_out)
        *shape_out = is_x ? n->spec.stored.shape : input->sample_shape;
    return CVY_OK;
}

cvy_status cvy_network_output(const cvy_network *n, int i, const char **name_out, cvy_shape *shape_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(NETWORK, n));
    if (i < 0 || i >= n->noutput)
        return CVY_END;
    if (name_out)
        *name_out = n->output[i].name;
    if (shape_out)
        *shape_out = n->output[i].shape;
    return CVY_OK;
}

cvy_status cvy_network_output_kind(const cvy_network *n, int i, cvy_output_kind *kind_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(NETWORK, n));
    CVY_CHECK(i >= 0 && i < n->noutput, CVY_E_ARGUMENT, "output %d of a network that has %d", i, n->noutput);
    CVY_CHECK(kind_out, CVY_E_ARGUMENT, "cvy_network_output_kind() needs a pointer for the kind");
    *kind_out = n->output[i].kind;
    return CVY_OK;
}

const char *cvy_network_class(const cvy_network *n, int64_t label)
{
    CVY_ENTRY();
    if (CVY_KNOWN(NETWORK, n) != CVY_OK)
        return NULL;
    const cvy_dataset_info *data = &n->spec.data;
    return label >= 0 && label < data->nclasses && data->class_name ? data->class_name[label] : NULL;
}
