/*
 * network_export.c: cvy_network_export(): writes an open network in the format of other programs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_entry.h"
#include "base/base_file.h"
#include "base/base_handle.h"
#include "base/base_opts.h"
#include "model/model_import.h"
#include "network/network.h"

struct export
{
    cvy_pool *pool;
    cvy_tensor_entry *tensor;
    cvy_value_step step[CVY_VALUE_STEPS_MAX];
    cvy_export_output output[CVY_NETWORK_ARRAYS];
    cvy_text network;
    cvy_export all;
};

static cvy_status read_variables(struct export *e, const cvy_vars *vars)
{
    CVY_TRY(cvy_pool_alloc(e->pool, sizeof *e->tensor * ((size_t)vars->count + 1), &e->tensor));
    for (int i = 0; i < vars->count; i++) {
        const cvy_variable *v = vars->at[i];
        void *data = NULL;
        CVY_TRY(cvy_pool_alloc(e->pool, (size_t)cvy_shape_elems(&v->shape) * cvy_dtype_bytes(v->dtype) + 1, &data));
        CVY_TRY(cvy_variable_read(v, data));
        e->tensor[i] = (cvy_tensor_entry){v->name, v->dtype, v->shape, data};
    }
    e->all.tensor = e->tensor;
    e->all.ntensor = vars->count;
    return CVY_OK;
}

/* What is done to x. What moves pixels is not in the file, whose input is a picture of the network's size. */
static cvy_status describe_x(struct export *e, const cvy_network *n, const cvy_network_export_opts *o, cvy_text *notes)
{
    const int is_bytes = n->spec.stored.dtype == CVY_DTYPE_U8;
    int moves = 0;
    CVY_TRY(cvy_augment_value_steps(n->augment, is_bytes, e->step, &e->all.nstep, &moves));
    e->all.step = e->step;
    e->all.x_dtype = is_bytes && !o->float_input ? CVY_DTYPE_U8 : CVY_DTYPE_F32;
    if (moves)
        cvy_text_add(notes, "resizing and crops of data.augment are not in the file: its input x has samples of %s\n",
                     cvy_shape_text(cvy_augment_shape(n->augment)));
    return notes->status;
}

/* A file undoes a mean and a standard deviation, but no curve of data.augment. */
static void list_outputs(struct export *e, const cvy_network *n, cvy_text *notes)
{
    for (int i = 0; i < n->noutput; i++) {
        const int bends = n->output[i].scaling.nstep > 0;
        e->output[i] = (cvy_export_output){n->output[i].name, bends ? (cvy_scaling){0} : n->output[i].scaling};
        if (bends)
            cvy_text_add(notes,
                         "the output %s stays as data.augment makes x: log and asinh are not undone in the file\n",
                         n->output[i].name);
    }
    e->all.output = e->output;
    e->all.noutput = n->noutput;
}

static cvy_status write(struct export *e, const cvy_network *n, const cvy_network_export_opts *o, const char *path,
                        cvy_text *notes)
{
    const cvy_importer_def *format = cvy_importer_of_written(path);
    CVY_CHECK(format, CVY_E_ARGUMENT, "%s: the name of the file must end with %s", path, cvy_importer_suffixes(1).text);
    CVY_TRY(cvy_file_check_new(path, o->replace));
    CVY_TRY(cvy_pool_create(&e->pool));
    CVY_TRY(read_variables(e, cvy_program_vars(n->program)));
    e->all.net = o->net;
    e->all.input = n->model->input[0].sample_shape;
    if (format->writes_only_weights)
        return format->write(path, &e->all, notes);
    CVY_TRY(describe_x(e, n, o, notes));
    CVY_TRY(cvy_network_spec_print(&n->spec, &e->network));
    list_outputs(e, n, notes);
    e->all.model = n->model;
    e->all.network = e->network.data;
    e->all.opset = o->opset;
    const cvy_status status = format->write(path, &e->all, notes);
    return status == CVY_OK ? CVY_OK : cvy_error_prefix(status, "%s", n->spec.job->name ? n->spec.job->name : path);
}

cvy_status cvy_network_export(const cvy_network *network, const char *path, const cvy_network_export_opts *opts,
                              char **notes_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(NETWORK, network));
    struct export e = {0};
    cvy_network_export_opts o;
    cvy_text notes = {0};
    CVY_CHECK(path, CVY_E_ARGUMENT, "cvy_network_export() needs a path");
    CVY_TRY(CVY_OPTS_READ(cvy_network_export_opts, opts, &o));
    const cvy_status status = write(&e, network, &o, path, &notes);
    cvy_text_free(&e.network);
    cvy_pool_destroy(&e.pool);
    if (status == CVY_OK && notes_out)
        *notes_out = notes.data;
    else
        cvy_text_free(&notes);
    return status;
}
