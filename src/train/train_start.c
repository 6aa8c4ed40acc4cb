/*
 * train_start.c: what the weights were trained on with which a run begins: those of another run (train.init), of a
 * network that was imported, or of the checkpoint that is resumed.
 *
 * A network means what its data meant: the order of columns and classes, the normalisation, the type of x. A resume
 * must have the same data. A new run takes over what its job leaves open, and one line says each other difference: the
 * weights are only a start there, and a layer may be trained anew.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/base_file.h"
#include "data/data_agrees.h"
#include "data/data_described.h"
#include "data/data_names.h"
#include "job/job_table.h"
#include "model/model_import.h"
#include "monitor/monitor_run_layout.h"
#include "session/session_model.h"
#include "session/session_normalize.h"
#include "session/session_source.h"
#include "train/trainer.h"

/* ---- finding it ---- */

/* Finds the best checkpoint of a run. Rank 0 looks for all. */
static cvy_status find_run(cvy_trainer *t, const char *run)
{
    cvy_comm *comm = t->session.context->comm;
    cvy_checkpoint *out = &t->start.set;
    cvy_status status = CVY_OK;
    char path[CVY_RUN_PATH];
    cvy_run_path(run, CVY_RUN_CHECKPOINTS, path);
    if (comm->rank == 0) {
        status = cvy_checkpoint_find_best(path, out);
        for (int i = 0; i < out->nmessage; i++)
            cvy_log(t->session.context, CVY_LOG_WARN, "%s", out->message[i]);
        if (status == CVY_END)
            status = cvy_error_set(CVY_E_IO,
                                   "%s is a folder without a checkpoint: expected a safetensors file, or the "
                                   "folder of a run",
                                   run);
    }
    return cvy_checkpoint_share(comm, status, out);
}

/* Finds the file of weights of train.init; *file_out NULL: the job has none. */
static cvy_status find_file(cvy_trainer *t, const char **file_out)
{
    cvy_comm *comm = t->session.context->comm;
    const char *from = t->session.job->train.init.from;
    int is_run = from && comm->rank == 0 && cvy_file_is_folder(from);
    *file_out = from;
    CVY_TRY(comm->ops->broadcast(comm, &is_run, sizeof is_run, 0));
    if (!is_run)
        return CVY_OK;
    CVY_TRY(find_run(t, from));
    *file_out = t->start.set.weights_path[0];
    return CVY_OK;
}

/* Reads a description. One that a new run cannot read, such as one of a later version, leaves it with the weights. */
static cvy_status read_spec(cvy_trainer *t, const char *text)
{
    const cvy_status status = cvy_network_spec_read(t->start.like.from, text, &t->start.spec);
    if (status == CVY_OK || status == CVY_E_MEMORY || t->opts->resume)
        return status;
    cvy_text_add(&t->start.said, "%s; so nothing is compared with what its weights were trained on\n",
                 cvy_error_text());
    return t->start.said.status;
}

static void note_unknown(cvy_trainer *t)
{
    cvy_text_add(&t->start.said,
                 "%s does not say on which data its weights were trained: normalisation, columns and classes are not "
                 "compared\n",
                 t->start.like.from);
}

/* Whether data.augment says itself what becomes of values. */
static int changes_values(const cvy_tree *augment)
{
    static const char *const steps[] = {"scale", "mean", "std", "normalize", "mean_file"};
    int changes = 0;
    for (int i = 0; augment && i < augment->count; i++)
        for (int k = 0; k < CVY_COUNT(steps) && augment->child[i]->kind == CVY_TREE_MAP; k++)
            changes |= cvy_tree_get(augment->child[i], steps[k]) != NULL;
    return changes;
}

/* Weights of torchvision and timm were trained on pictures in these units, which their files do not say. */
static void note_usual_units(cvy_trainer *t)
{
    const cvy_job *job = t->session.job;
    if (job->train.init.names == CVY_NAMES_OWN || job->data.normalize || changes_values(job->data.augment))
        return;
    cvy_text_add(&t->start.said,
                 "train.init: weights of %s were trained on pictures of mean [0.485, 0.456, 0.406] and standard "
                 "deviation [0.229, 0.224, 0.225], if its page says nothing else, and this job has no data.normalize\n",
                 cvy_names_text((cvy_names)job->train.init.names));
}

cvy_status cvy_trainer_find_start(cvy_trainer *t)
{
    cvy_comm *comm = t->session.context->comm;
    const cvy_job *job = t->session.job;
    const char *file = NULL, *text = job->import && !job->train.init.from ? job->import->network : NULL;
    cvy_status status = CVY_OK;
    if (t->opts->resume)
        file = t->folder.resume.weights_path[0];
    else
        status = find_file(t, &file);
    if (status == CVY_OK && file)
        status = cvy_network_spec_text_on_ranks(comm, file, job->pool, &text);
    if (status != CVY_OK && !t->opts->resume)
        return cvy_error_prefix(status, "%s: train.init", cvy_job_where(job, "train", "init"));
    CVY_TRY(status);
    t->start.like.from = t->opts->resume ? t->folder.resume.path : file ? job->train.init.from : "the imported network";
    if (text)
        CVY_TRY(cvy_comm_agree(comm, read_spec(t, text)));
    else if (file && job->train.init.names == CVY_NAMES_OWN)
        note_unknown(t);
    if (file && !text && !t->opts->resume)
        note_usual_units(t);
    if (t->start.spec.job) {
        t->start.like.form = cvy_network_spec_form(&t->start.spec);
        t->start.like.all_classes = job->train.init.nskip == 0 && job->train.init.on_mismatch == CVY_INIT_ERROR;
        t->start.like.job = t->opts->resume ? NULL : t->start.spec.job;
        t->session.like = &t->start.like;
    }
    return t->start.said.status;
}

/* ---- what differs in a new run ---- */

/* Logs the lines, at once: what follows may fail because of them. */
static cvy_status log_said(cvy_trainer *t)
{
    const cvy_status status = t->start.said.status;
    for (const char *at = t->start.said.data; status == CVY_OK && at && *at; at += strcspn(at, "\n") + 1)
        cvy_log(t->session.context, CVY_LOG_WARN, "%.*s", (int)strcspn(at, "\n"), at);
    cvy_text_free(&t->start.said);
    return status;
}

/* Begins a line. */
static cvy_text *line(cvy_trainer *t)
{
    cvy_text_add(&t->start.said, "%s%s was trained ", t->session.job->train.init.from ? "train.init: " : "",
                 t->start.like.from);
    return &t->start.said;
}

static void compare_shape(cvy_trainer *t)
{
    const cvy_shape *own = &cvy_dataset_describe(t->session.train)->field[0].shape,
                    *known = &t->start.spec.data.field[0].shape;
    if (!cvy_shape_equal(own, known))
        cvy_text_add(line(t), "on samples of %s, and those of this job are %s\n", cvy_shape_text(known),
                     cvy_shape_text(own));
}

/* Steps that have no formula are compared as they are written. */
static cvy_status compare_steps_as_text(cvy_trainer *t)
{
    char *known = NULL, *own = NULL;
    cvy_status status = cvy_tree_print_line(t->start.spec.job->data.steps, &known);
    if (status == CVY_OK)
        status = cvy_tree_print_line(t->session.job->data.steps, &own);
    if (status == CVY_OK && strcmp(known, own) != 0)
        cvy_text_add(line(t),
                     "with the steps %s on its data, and those of this job are %s: check that values of x "
                     "come out alike\n",
                     known, own);
    cvy_mem_free(&known);
    cvy_mem_free(&own);
    return status;
}

/* What becomes of the values of x: division by 255, scale, normalisation. */
static cvy_status compare_values(cvy_trainer *t)
{
    const cvy_network_spec *spec = &t->start.spec;
    const cvy_reader_info *stored = cvy_dataset_reader_info(t->session.train);
    cvy_augment *a = NULL, *b = NULL;
    cvy_text known = {0}, own = {0};
    int64_t channel = -1;
    cvy_status status = cvy_augment_create(spec->job->data.steps, 0, 0, &spec->stored, &a);
    if (status == CVY_OK)
        status = cvy_augment_create(t->session.job->data.steps, 0, 0, stored, &b);
    if (status == CVY_OK)
        status = cvy_augment_compare_values(a, spec->stored.dtype == CVY_DTYPE_U8, b, stored->dtype == CVY_DTYPE_U8,
                                            &known, &own, &channel);
    if (status == CVY_OK && channel >= 0)
        cvy_text_add(line(t),
                     "on x normalised as %s, and this job makes it %s (number %lld of x): if x has the same units, "
                     "leave out data.normalize and give the same data.augment\n",
                     known.data, own.data, (long long)channel);
    cvy_augment_destroy(&a);
    cvy_augment_destroy(&b);
    cvy_text_free(&known);
    cvy_text_free(&own);
    return status == CVY_E_UNSUPPORTED ? compare_steps_as_text(t) : status;
}

static cvy_status compare_names(cvy_trainer *t, const char *what, const char *const *known, int64_t nknown,
                                const char *const *own, int64_t nown, const char *which)
{
    char text[2][CVY_DATA_NAMES_TEXT];
    cvy_data_names relation;
    CVY_TRY(cvy_data_names_relate(known, nknown, own, nown, &relation));
    if (relation != CVY_DATA_NAMES_SAME)
        cvy_text_add(line(t), "on the %s %s, and those of this job are %s: the %s layers have weights for the former\n",
                     what, cvy_data_names_text(known, nknown, text[0]), cvy_data_names_text(own, nown, text[1]), which);
    return CVY_OK;
}

static cvy_status compare_columns(cvy_trainer *t)
{
    const cvy_columns *known = &t->start.spec.stored.columns,
                      *own = &cvy_dataset_reader_info(t->session.train)->columns;
    if (!known->x && own->x)
        cvy_text_add(&t->start.said,
                     "%s does not know the names of the columns that it was trained on: columns are taken in their "
                     "order, \"%s\" first\n",
                     t->start.like.from, own->x[0]);
    if (known->x && !own->x && known->nx == cvy_shape_elems(&t->start.spec.stored.shape)) {
        char text[CVY_DATA_NAMES_TEXT];
        cvy_text_add(line(t),
                     "on the columns %s, and the data of this job have no names: they are taken in that order\n",
                     cvy_data_names_text(known->x, known->nx, text));
    }
    if (!known->x || !own->x)
        return CVY_OK;
    CVY_TRY(compare_names(t, "columns", known->x, known->nx, own->x, own->nx, "first"));
    return known->ny && own->ny ? compare_names(t, "targets", known->y, known->ny, own->y, own->ny, "last") : CVY_OK;
}

/* Adds a value of the job, cut if it is long. */
static cvy_status add_value(cvy_text *out, const cvy_tree *value)
{
    enum { SHOWN = 120 };
    char *text = NULL;
    if (value)
        CVY_TRY(cvy_tree_print_line(value, &text));
    cvy_text_add(out, "%.*s%s", SHOWN, text ? text : "none", text && strlen(text) > SHOWN ? ".." : "");
    cvy_mem_free(&text);
    return CVY_OK;
}

static cvy_status compare_scaling(cvy_trainer *t)
{
    const cvy_job *known = t->start.spec.job, *own = t->session.job;
    if (cvy_job_same_target_scaling(known, own))
        return CVY_OK;
    cvy_text_add(line(t), "with data.normalize_targets: ");
    CVY_TRY(add_value(&t->start.said, known->data.normalize_targets));
    cvy_text_add(&t->start.said, ", and this job has ");
    CVY_TRY(add_value(&t->start.said, own->data.normalize_targets));
    cvy_text_add(&t->start.said, ": the last layer gives the former units; leave out the key to take them over\n");
    return CVY_OK;
}

static cvy_status compare_targets(cvy_trainer *t)
{
    const cvy_network_spec *spec = &t->start.spec;
    const cvy_dataset_info *known = &spec->data, *own = cvy_dataset_describe(t->session.train);
    const cvy_field *a = cvy_dataset_target(known), *b = cvy_dataset_target(own);
    const cvy_reader_info *stored = cvy_dataset_reader_info(t->session.train);
    if (!a || !b)
        return CVY_OK;
    if ((known->nclasses > 0) != (own->nclasses > 0)) {
        cvy_text_add(line(t), "to give %s, and the targets of this job are %s\n",
                     known->nclasses ? "classes" : "numbers", own->nclasses ? "classes" : "numbers");
        return CVY_OK;
    }
    if (known->nclasses > 0)
        return known->class_name && own->class_name ? compare_names(t, "classes", known->class_name, known->nclasses,
                                                                    own->class_name, own->nclasses, "last")
                                                    : CVY_OK;
    const char *units[] = {spec->stored.y_cf[CVY_CF_UNITS], stored->y_cf[CVY_CF_UNITS]},
               *name[] = {spec->stored.y_name, stored->y_name};
    if (name[0] && name[1] && strcmp(name[0], name[1]) != 0)
        cvy_text_add(line(t), "on the target %s, and that of this job is %s\n", name[0], name[1]);
    if (units[0] && units[1] && strcmp(units[0], units[1]) != 0)
        cvy_text_add(line(t), "on a target in %s, and that of this job is in %s\n", units[0], units[1]);
    return compare_scaling(t);
}

static void compare_missing(cvy_trainer *t)
{
    const char *known = cvy_job_source_option(t->start.spec.job->data.train, "missing"),
               *own = cvy_job_source_option(t->session.job->data.train, "missing");
    if (strcmp(known ? known : "", own ? own : "") != 0)
        cvy_text_add(line(t), "with `missing: %s` in data.train, and this job has %s%s\n", known ? known : "none",
                     own ? "missing: " : "none", own ? own : "");
}

/* Roles say what augmentation does to vectors and points. */
static cvy_status compare_roles(cvy_trainer *t)
{
    const cvy_tree *known = t->start.spec.job->data.roles, *own = t->session.job->data.roles;
    char *text[2] = {NULL};
    cvy_status status = known ? cvy_tree_print_line(known, &text[0]) : CVY_OK;
    if (status == CVY_OK && own)
        status = cvy_tree_print_line(own, &text[1]);
    if (status == CVY_OK && strcmp(text[0] ? text[0] : "", text[1] ? text[1] : "") != 0)
        cvy_text_add(line(t), "with %s%s, and this job has %s%s: vectors and maps may not go with x as they did\n",
                     known ? "data.roles: " : "no data.roles", known ? text[0] : "", own ? "" : "none",
                     own ? text[1] : "");
    cvy_mem_free(&text[0]);
    cvy_mem_free(&text[1]);
    return status;
}

static cvy_status compare(cvy_trainer *t)
{
    compare_shape(t);
    CVY_TRY(compare_values(t));
    CVY_TRY(compare_columns(t));
    CVY_TRY(compare_targets(t));
    compare_missing(t);
    return compare_roles(t);
}

/* ---- a resume ---- */

/* The training data have the form that the checkpoint was trained on: a table with the same lines but its columns in
 * another order has the same hash. */
static cvy_status check_resume(cvy_trainer *t)
{
    const char *note = cvy_dataset_describe(t->session.base)->note;
    const size_t said = note ? strlen(note) : 0;
    cvy_reader_info own = *cvy_dataset_reader_info(t->session.base); /* its notes have been made */
    cvy_status status = cvy_dataset_agrees(&t->start.like.form, t->session.base);
    if (status == CVY_OK)
        status = cvy_descriptions_agree(&t->start.spec.stored.described, "in those of the checkpoint", 1, &own);
    if (status != CVY_OK)
        return cvy_error_prefix(status, "%s was trained on other data", t->folder.resume.path);
    note = cvy_dataset_describe(t->session.base)->note;
    if (note && strlen(note) > said)
        cvy_text_add(&t->start.said, "%s\n", note + said + (said > 0));
    return compare_roles(t);
}

cvy_status cvy_trainer_compare_start(cvy_trainer *t)
{
    if (t->session.like)
        CVY_TRY(t->opts->resume ? check_resume(t) : compare(t));
    return log_said(t);
}

cvy_status cvy_trainer_check_outputs(const cvy_trainer *t)
{
    const cvy_session_like *like = t->session.like;
    const cvy_dataset_info *data = cvy_dataset_describe(t->session.train);
    const cvy_status status = cvy_job_check_outputs(data, t->session.program, t->task.full);
    if (status == CVY_OK || !like || !like->job || !like->all_classes || data->nclasses != like->form.info->nclasses)
        return status;
    return cvy_error_prefix(status,
                            "the classes are those of %s, which its last layer has weights for (train.init.skip of "
                            "that layer leaves the data their own)",
                            like->from);
}
