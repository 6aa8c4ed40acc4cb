/*
 * network_apply.c: cvy_network_apply(): computes the outputs of any number of samples in pieces of the planned sizes.
 *
 * x of a sample passes through the same augmentation as a sample of a data set, so the network sees the same numbers as
 * in `convoy predict`.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "data/data_finite.h"
#include "network/network.h"
#include "program/program_convert.h"

struct input { /* the samples of an input of the model */
    const void *data;
    cvy_dtype dtype;
    cvy_shape shape;  /* of a sample */
    int is_augmented; /* 0: x as it is stored, which passes through the augmentation */
    int is_checked;   /* 1: its numbers must be finite, which the augmentation would check */
};

struct call { /* the arrays of a call, in the order of the model's inputs and of the caller's outputs */
    cvy_network *n;
    struct input in[CVY_NETWORK_ARRAYS];
    const cvy_network_out *out;
    int output[CVY_NETWORK_ARRAYS], nout; /* the index of each array of `out` among the outputs */
    int64_t first;                        /* the number of the first sample, for layers with random numbers */
};

/* ---- checks ---- */

static int is_x(const char *name)
{
    return strcmp(name, "x") == 0;
}

static cvy_status check_elems(const char *what, const char *name, int64_t elems, int64_t n, const cvy_shape *sample)
{
    const int64_t each = cvy_shape_elems(sample);
    CVY_CHECK(cvy_shape_fits(&(cvy_shape){2, {n, each}}), CVY_E_ARGUMENT,
              "%s \"%s\": no memory can hold %lld samples of %s", what, name, (long long)n, cvy_shape_text(sample));
    const int64_t expected = n * each;
    CVY_CHECK(elems == expected, CVY_E_ARGUMENT,
              "%s \"%s\" is an array of %lld elements, but %lld samples of %s have %lld", what, name, (long long)elems,
              (long long)n, cvy_shape_text(sample), (long long)expected);
    return CVY_OK;
}

/* The shape of a sample of x in this call: the network's own, or another size of pictures that are resized. */
static cvy_status choose_shape(const cvy_network *n, const cvy_network_in *in, cvy_shape *out)
{
    const cvy_reader_info *stored = &n->spec.stored;
    CVY_CHECK(in->shape.ndim >= 0 && in->shape.ndim <= CVY_NDIM_MAX, CVY_E_SHAPE,
              "input \"x\" is given samples of %d dimensions", in->shape.ndim);
    *out = in->shape.ndim > 0 ? in->shape : stored->shape;
    if (in->shape.ndim == 0 || cvy_shape_equal(&in->shape, &stored->shape))
        return CVY_OK;
    CVY_CHECK(stored->varying, CVY_E_SHAPE, "input \"x\" is given samples of %s, but the network was trained on %s",
              cvy_shape_text(&in->shape), cvy_shape_text(&stored->shape));
    CVY_CHECK(in->shape.ndim == 3 && in->shape.dim[0] == stored->shape.dim[0] && in->shape.dim[1] > 0 &&
                  in->shape.dim[2] > 0 && CVY_MAX(in->shape.dim[1], in->shape.dim[2]) <= CVY_PICTURE_SIDE_MAX,
              CVY_E_SHAPE, "input \"x\" is given samples of %s, expected [%lld, height, width]",
              cvy_shape_text(&in->shape), (long long)stored->shape.dim[0]);
    return CVY_OK;
}

static cvy_status take_x(const cvy_network *n, const cvy_network_in *in, struct input *out)
{
    const cvy_dtype stored = n->spec.stored.dtype;
    CVY_CHECK(stored == CVY_DTYPE_U8 ? in->dtype == CVY_DTYPE_U8
                                     : in->dtype == CVY_DTYPE_F32 || in->dtype == CVY_DTYPE_F64,
              CVY_E_ARGUMENT, "input \"x\" is an array of %s, but the network was trained on %s",
              cvy_dtype_text(in->dtype), stored == CVY_DTYPE_U8 ? "bytes (u8), 0 .. 255" : "f32 (f64 is accepted)");
    CVY_TRY(choose_shape(n, in, &out->shape));
    out->is_checked = stored == CVY_DTYPE_F32 && cvy_program_options(n->program)->dtype != CVY_DTYPE_F64 &&
                      cvy_augment_changes_nothing(n->augment);
    out->is_augmented = out->is_checked;
    return CVY_OK;
}

static cvy_status take_other(const cvy_model_input *input, const cvy_network_in *in, struct input *out)
{
    CVY_CHECK(in->dtype == input->dtype || (cvy_dtype_is_real(in->dtype) && cvy_dtype_is_real(input->dtype)),
              CVY_E_ARGUMENT, "input \"%s\" is an array of %s, expected %s", input->name, cvy_dtype_text(in->dtype),
              cvy_dtype_text(input->dtype));
    out->is_augmented = 1;
    out->is_checked = 0;
    out->shape = input->sample_shape;
    return CVY_OK;
}

static const char *name_of(const cvy_network_in *in)
{
    return in->name ? in->name : "x";
}

static const cvy_network_in *find_in(const cvy_network_in *in, int nin, const char *name)
{
    for (int i = 0; i < nin; i++)
        if (strcmp(name_of(&in[i]), name) == 0)
            return &in[i];
    return NULL;
}

static cvy_status find_inputs(struct call *c, int64_t n, const cvy_network_in *in, int nin)
{
    const cvy_model *m = c->n->model;
    for (int i = 0; i < m->ninput; i++) {
        const char *name = m->input[i].name;
        const cvy_network_in *from = find_in(in, nin, name);
        CVY_CHECK(from, CVY_E_ARGUMENT, "the network reads \"%s\", which is not among the %d inputs", name, nin);
        CVY_CHECK(from->data || n == 0, CVY_E_ARGUMENT, "input \"%s\" has no data", name);
        CVY_TRY(is_x(name) ? take_x(c->n, from, &c->in[i]) : take_other(&m->input[i], from, &c->in[i]));
        CVY_TRY(check_elems("input", name, from->elems, n, &c->in[i].shape));
        c->in[i].data = from->data;
        c->in[i].dtype = from->dtype;
    }
    for (int k = 0; k < nin; k++) {
        int known = find_in(in, nin, name_of(&in[k])) == &in[k], read = 0;
        for (int i = 0; i < m->ninput; i++)
            read |= strcmp(m->input[i].name, name_of(&in[k])) == 0;
        CVY_CHECK(known && read, CVY_E_ARGUMENT,
                  known ? "the network has no input \"%s\"" : "input \"%s\" is given twice", name_of(&in[k]));
    }
    return CVY_OK;
}

static cvy_status find_outputs(struct call *c, int64_t n, const cvy_network_out *out, int nout)
{
    CVY_CHECK(nout <= CVY_NETWORK_ARRAYS, CVY_E_ARGUMENT, "%d outputs, the limit is %d", nout, CVY_NETWORK_ARRAYS);
    for (int k = 0; k < nout; k++) {
        const char *name = out[k].name ? out[k].name : c->n->output[0].name;
        int at = 0;
        while (at < c->n->noutput && strcmp(c->n->output[at].name, name) != 0)
            at++;
        CVY_CHECK(at < c->n->noutput, CVY_E_ARGUMENT,
                  "the network gives no output \"%s\": name it in opts.outputs of cvy_network_open()", name);
        CVY_CHECK(out[k].dtype == CVY_DTYPE_F32 || out[k].dtype == CVY_DTYPE_F64, CVY_E_ARGUMENT,
                  "output \"%s\" is an array of %s, expected f32 or f64", name, cvy_dtype_text(out[k].dtype));
        CVY_CHECK(out[k].data || n == 0, CVY_E_ARGUMENT, "output \"%s\" has no memory", name);
        CVY_TRY(check_elems("output", name, out[k].elems, n, &c->n->output[at].shape));
        c->output[k] = at;
    }
    c->out = out;
    c->nout = nout;
    return CVY_OK;
}

/* ---- a piece ---- */

static const void *elems_at(const void *data, cvy_dtype dtype, int64_t first)
{
    return (const char *)data + (size_t)first * cvy_dtype_bytes(dtype);
}

/* Checks samples from number `sample` on. */
static cvy_status check_finite(const float *x, int64_t rows, int64_t elems, int64_t sample)
{
    if (cvy_all_finite(x, rows * elems))
        return CVY_OK;
    for (int64_t i = 0; i < rows * elems; i++)
        CVY_CHECK(isfinite(x[i]), CVY_E_NUMERIC, "element %lld of x of sample %lld is %g", (long long)(i % elems),
                  (long long)(sample + i / elems), x[i]);
    return CVY_OK;
}

/* Puts sample number `sample` of the call through the augmentation, into a row of the feed. */
static cvy_status augment_sample(cvy_network *n, const struct input *in, int64_t sample, void *row, cvy_dtype row_dtype)
{
    const int64_t elems = cvy_shape_elems(&in->shape), kept = cvy_shape_elems(cvy_augment_shape(n->augment));
    const void *data = elems_at(in->data, in->dtype, sample * elems);
    cvy_raw raw = {.dtype = n->spec.stored.dtype, .shape = in->shape};
    float *x = row;
    if (in->dtype != raw.dtype) {
        CVY_TRY(cvy_bytes_need(&n->plain, (size_t)elems * sizeof(float)));
        cvy_copy_elems(data, in->dtype, n->plain.data, raw.dtype, elems);
        data = n->plain.data;
    }
    if (raw.dtype == CVY_DTYPE_F32)
        CVY_TRY(check_finite(data, 1, elems, sample));
    if (row_dtype != CVY_DTYPE_F32) {
        CVY_TRY(cvy_bytes_need(&n->row, (size_t)kept * sizeof *x));
        x = n->row.data;
    }
    raw.x.data = (void *)(uintptr_t)data;
    CVY_TRY(cvy_augment_apply(n->augment, cvy_raw_planes(&raw), 0, sample, &n->scratch, x));
    if (row_dtype != CVY_DTYPE_F32)
        cvy_copy_elems(x, CVY_DTYPE_F32, row, row_dtype, kept);
    return CVY_OK;
}

/* Fills the feeds with the samples from `first` on. The rest of the feeds is cleared: an old label could be read. */
static cvy_status fill(const struct call *c, cvy_plan *plan, int64_t first, int64_t rows)
{
    const cvy_model *m = c->n->model;
    for (int i = 0; i < m->ninput; i++) {
        const struct input *in = &c->in[i];
        const int64_t elems = cvy_shape_elems(&in->shape);
        cvy_plan_feed *feed = cvy_plan_find_feed(plan, m->input[i].name);
        char *to = feed->data;
        memset(to + (size_t)rows * feed->row_bytes, 0, (size_t)(plan->rows - rows) * feed->row_bytes);
        if (in->is_augmented)
            cvy_copy_elems(elems_at(in->data, in->dtype, first * elems), in->dtype, to, feed->dtype, rows * elems);
        if (in->is_checked)
            CVY_TRY(check_finite((const float *)feed->data, rows, elems, first));
        for (int64_t r = 0; !in->is_augmented && r < rows; r++)
            CVY_TRY(augment_sample(c->n, in, first + r, to + (size_t)r * feed->row_bytes, feed->dtype));
    }
    return CVY_OK;
}

/* Tells layers with random numbers which samples these are, and dropout which pass. */
static void number_samples(const struct call *c, int task, int64_t first, int64_t rows)
{
    cvy_plan_feed *id = cvy_plan_find_feed(cvy_program_task_plan(c->n->program, task), "sample_id");
    for (int64_t r = 0; id && r < rows; r++)
        ((int64_t *)id->data)[r] = c->first + first + r;
    if (c->n->dropout)
        cvy_program_set_updates(c->n->program, task, c->n->pass);
}

static cvy_status read_outputs(const struct call *c, int task, int64_t first, int64_t rows)
{
    const cvy_dtype dtype = cvy_plan_outside_dtype(cvy_program_options(c->n->program)->dtype);
    for (int k = 0; k < c->nout; k++) {
        const int64_t elems = cvy_shape_elems(&c->n->output[c->output[k]].shape);
        const cvy_dtype wanted = c->out[k].dtype;
        void *to = (void *)(uintptr_t)elems_at(c->out[k].data, wanted, first * elems);
        const void *data = NULL;
        CVY_TRY(cvy_program_output(c->n->program, task, c->n->output[c->output[k]].name, &data, NULL));
        cvy_copy_elems(data, dtype, to, wanted, rows * elems);
        cvy_scaling_undo(&c->n->output[c->output[k]].scaling, rows, elems, wanted, to);
    }
    return CVY_OK;
}

/* The largest size of which the samples that are left fill at least half. */
static const cvy_network_size *choose_size(const cvy_network *n, int64_t left)
{
    int i = n->nsize - 1;
    while (i > 0 && 2 * left < n->size[i].batch)
        i--;
    return &n->size[i];
}

static cvy_status run(struct call *c, int64_t n)
{
    for (int64_t first = 0; first < n;) {
        const cvy_network_size *size = choose_size(c->n, n - first);
        const int64_t rows = CVY_MIN(size->batch, n - first);
        CVY_TRY(fill(c, cvy_program_task_plan(c->n->program, size->task), first, rows));
        number_samples(c, size->task, first, rows);
        CVY_TRY(cvy_program_step(c->n->program, size->task, 0));
        CVY_TRY(read_outputs(c, size->task, first, rows));
        first += rows;
    }
    return CVY_OK;
}

cvy_status cvy_network_apply(cvy_network *network, int64_t n, const cvy_network_in *in, int nin,
                             const cvy_network_out *out, int nout)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(NETWORK, network));
    struct call c = {.n = network};
    CVY_CHECK(n >= 0 && nin >= 0 && nout > 0 && (in || nin == 0) && out, CVY_E_ARGUMENT,
              "cvy_network_apply() needs 0 or more samples, and at least one output");
    CVY_TRY(find_inputs(&c, n, in, nin));
    CVY_TRY(find_outputs(&c, n, out, nout));
    return run(&c, n);
}

/* ---- samples of a data set ---- */

static int find_field(const cvy_dataset_info *data, const char *name)
{
    int f = data->nfield - 1;
    while (f >= 0 && strcmp(data->field[f].name, name) != 0)
        f--;
    return f;
}

cvy_status cvy_network_check_data(const cvy_network *n, const cvy_dataset_info *data)
{
    const char *where = data->path ? data->path : data->format;
    for (int i = 0; i < n->model->ninput; i++) {
        const cvy_model_input *input = &n->model->input[i];
        const int f = find_field(data, input->name);
        CVY_CHECK(f >= 0, CVY_E_CONFIG, "the network reads '%s', but the data of %s have no such field", input->name,
                  where);
        CVY_CHECK(cvy_shape_equal(&input->sample_shape, &data->field[f].shape), CVY_E_SHAPE,
                  "the network's input %s is %s, but the data of %s have %s", input->name,
                  cvy_shape_text(&input->sample_shape), where, cvy_shape_text(&data->field[f].shape));
    }
    return CVY_OK;
}

cvy_status cvy_network_apply_rows(cvy_network *n, const cvy_dataset_info *data, int64_t first, int64_t rows,
                                  void *const *field, const cvy_network_out *out, int nout)
{
    struct call c = {.n = n, .first = first};
    for (int i = 0; i < n->model->ninput; i++) {
        const int f = find_field(data, n->model->input[i].name);
        c.in[i] = (struct input){
            .data = field[f], .dtype = data->field[f].dtype, .shape = data->field[f].shape, .is_augmented = 1};
    }
    CVY_TRY(find_outputs(&c, rows, out, nout));
    return run(&c, rows);
}
