/*
 * caffe_job.c: a solver of Caffe, or a network alone, as the text of a job with comments.
 *
 * The data are opened for the shape of their samples, because a network of Caffe takes its input from them. Then the
 * network is translated, and all is printed: model, data, train, checkpoint, log.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "exchange/caffe/caffe_job.h"

#include <string.h>

#include "base/base_file.h"
#include "data/data.h"
#include "exchange/exchange.h"

typedef struct job {
    cvy_caffe_work w;
    cvy_caffe_data train, test;
    int64_t test_samples; /* of the validation data; 0: there are none */
    cvy_caffe_file state; /* a solverstate; empty: none is given */
    cvy_shape input;      /* that the caller gives; ndim 0: none */
    cvy_import_job *out;
} job;

/* ---- data ---- */

/* Opens the data of a layer, for the shapes of its samples after augmentation. */
static cvy_status look_at(const job *j, const cvy_caffe_file *at, cvy_caffe_data *data, int64_t *nsamples_out)
{
    cvy_tree *source = NULL, *augment = NULL;
    cvy_dataset *d = NULL;
    CVY_TRY(cvy_tree_parse_text(j->w.pool, "data", data->source, strlen(data->source), &source));
    if (data->augment)
        CVY_TRY(cvy_tree_parse_text(j->w.pool, "data.augment", data->augment, strlen(data->augment), &augment));
    const cvy_status status = cvy_dataset_open(source, augment, 1, 1, &d);
    if (status != CVY_OK)
        return cvy_error_prefix(status, "%s", cvy_caffe_layer_at(at, data->layer));
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    data->shape = info->field[0].shape;
    for (int i = 1; i < info->nfield && data->reals; i++)
        if (strcmp(info->field[i].name, "y") == 0)
            data->target = info->field[i].shape;
    *nsamples_out = info->nsamples;
    cvy_dataset_destroy(&d);
    return CVY_OK;
}

/* The text of an augmentation without the mirror, which validation data never have. */
static const char *without_mirror(const char *augment, char *room, size_t bytes)
{
    static const char mirror[] = "mirror, ";
    const char *at = augment ? strstr(augment, mirror) : NULL;
    const size_t head = at ? (size_t)(at - augment) : 0;
    if (!at || strlen(augment) >= bytes)
        return augment ? augment : "";
    memcpy(room, augment, head);
    memcpy(room + head, at + sizeof mirror - 1, strlen(at + sizeof mirror - 1) + 1);
    return room;
}

/* Samples of validation are transformed as those of training, without randomness. */
static void compare_transforms(job *j)
{
    char room[2][512];
    const char *train = without_mirror(j->train.augment, room[0], sizeof room[0]),
               *test = without_mirror(j->test.augment, room[1], sizeof room[1]);
    if (strcmp(train, test) != 0)
        cvy_text_add(&j->w.notes,
                     "%s transforms its samples in another way, %s; validation takes that of training, without "
                     "randomness\n",
                     cvy_caffe_layer_at(j->w.test.at, j->test.layer), test);
}

/* Caffe tests on test_iter batches. */
static cvy_status limit_test(job *j)
{
    const cvy_caffe_solver *s = cvy_caffe_solver_of(&j->w);
    const int64_t wanted = s && s->n_test_iter > 0 ? s->test_iter[0] * j->test.batch : 0;
    CVY_CHECK(!s || s->n_test_iter == 0 || s->test_iter[0] > 0, CVY_E_CONFIG, "%s is %d, expected more than 0",
              cvy_caffe_at(&j->w.solver, s, "test_iter"), s->test_iter[0]);
    CVY_TRY(look_at(j, j->w.test.at, &j->test, &j->test_samples));
    if (wanted > j->test_samples)
        cvy_text_add(&j->w.notes,
                     "%s: test_iter times batch_size is %lld, and the validation data have %lld samples, "
                     "which are scored once\n",
                     j->w.path, (long long)wanted, (long long)j->test_samples);
    if (wanted > 0 && wanted < j->test_samples)
        return cvy_caffe_data_limit(&j->w, j->test.source, wanted, &j->test.source);
    return CVY_OK;
}

/* A solver whose network has a shape in place of data: a program feeds it, or generated numbers do. */
static cvy_status refuse_or_generate(job *j)
{
    const char *type = cvy_caffe_word(j->train.layer->type), *place = cvy_caffe_layer_at(j->w.train.at, j->train.layer);
    CVY_CHECK(strcmp(type, "MemoryData") != 0, CVY_E_UNSUPPORTED,
              "%s has no data: a program fills it; write the data as an LMDB, and give it to a layer Data", place);
    cvy_text_add(
        &j->w.notes,
        "%s has a shape and no data: the run trains on generated samples; --set data.train=DATA gives others\n", place);
    return j->w.notes.status;
}

/* A network alone can be planned without its data. The error of reading them becomes a note. */
static cvy_status do_without(job *j, cvy_status status)
{
    cvy_text *why = &j->out->absent;
    if (status == CVY_OK || !j->train.is_absent || j->w.solver.message)
        return status;
    cvy_text_add(why, "%s", cvy_error_text());
    cvy_text_add(&j->w.notes, "%s; the samples are generated instead, --set data.train=DATA gives others\n", why->data);
    CVY_TRY(why->status);
    return j->w.notes.status;
}

static cvy_status check_given(const job *j)
{
    CVY_CHECK(j->input.ndim == 0 || cvy_shape_equal(&j->input, &j->train.shape), CVY_E_SHAPE,
              "%s: the samples of its data are %s, and an input of %s is given: leave the latter out",
              cvy_caffe_layer_at(j->w.train.at, j->train.layer), cvy_shape_text(&j->train.shape),
              cvy_shape_text(&j->input));
    return CVY_OK;
}

static cvy_status find_data(job *j)
{
    cvy_caffe_work *w = &j->w;
    int64_t nsamples = 0;
    CVY_TRY(do_without(j, cvy_caffe_data_of(w, w->train.net, w->train.at, &j->train)));
    if (j->out->absent.bytes)
        return CVY_OK;
    CVY_CHECK(!w->solver.message || j->train.layer, CVY_E_UNSUPPORTED,
              "%s: no layer of phase TRAIN gives data: expected Data (LMDB), ImageData or HDF5Data", w->train.at->path);
    if (j->train.is_input || !j->train.layer)
        return w->solver.message ? refuse_or_generate(j) : CVY_OK;
    CVY_TRY(look_at(j, j->w.train.at, &j->train, &nsamples));
    CVY_TRY(check_given(j));
    if (nsamples % j->train.batch != 0)
        cvy_text_add(&w->notes,
                     "%s: the batch of %lld does not divide the %lld samples: the last batch of an epoch is smaller "
                     "(data.tail: keep), where Caffe goes on with the first samples\n",
                     w->path, (long long)j->train.batch, (long long)nsamples);
    if (w->test.net)
        CVY_TRY(cvy_caffe_data_of(w, w->test.net, w->test.at, &j->test));
    if (!j->test.layer || j->test.is_input)
        return CVY_OK;
    compare_transforms(j);
    return limit_test(j);
}

/* ---- the text ---- */

static int has_layer(const cvy_model *m, const char *op)
{
    for (int i = 0; i < m->nlayer; i++)
        if (strcmp(m->layer[i].op->name, op) == 0)
            return 1;
    return 0;
}

/* Adds "  key: value" of the tree of a model. */
static cvy_status add_of_model(const cvy_tree *tree, const char *key, cvy_text *t)
{
    char *line = NULL;
    CVY_TRY(cvy_tree_print_line(cvy_tree_get(tree, key), &line));
    cvy_text_add(t, "  %s: %s\n", key, line);
    cvy_mem_free(&line);
    return t->status;
}

static cvy_status add_model(job *j, cvy_text *t)
{
    cvy_tree *tree = NULL;
    CVY_TRY(cvy_model_write(j->out->import.model, j->w.pool, 1, &tree));
    cvy_text_add(t, "model:\n");
    CVY_TRY(add_of_model(tree, "inputs", t));
    cvy_text_add(t, "  layers:\n");
    CVY_TRY(cvy_model_add_layers(cvy_tree_get(tree, "layers"), t));
    return add_of_model(tree, "output", t);
}

/* Samples with the fields that the network reads. Without a loss they have no target. */
static cvy_status add_generated(const job *j, cvy_text *t)
{
    enum { CLASSES = 2 }; /* any network for classes has as many */
    const cvy_model *m = j->out->import.model;
    const cvy_shape *x = &m->input[0].sample_shape, *y = NULL;
    const int has_loss = cvy_model_has_loss(m), has_solver = j->w.solver.message != NULL;
    int is_map = 0;
    for (int i = 1; i < m->ninput; i++)
        if (strcmp(m->input[i].name, "y") == 0) {
            y = &m->input[i].sample_shape;
            is_map = m->input[i].dtype == CVY_DTYPE_I32;
        }
    cvy_text_add(t, "  # The network has no data of its own%s. These samples are generated; give your data here.\n",
                 j->out->absent.bytes ? " that can be read" : "");
    cvy_text_add(
        t, "  train: {format: synthetic, samples: 1024, classes: %d, shape: ", has_loss || has_solver ? CLASSES : 0);
    cvy_text_add_ints(t, x->dim, x->ndim);
    if (y) {
        cvy_text_add(t, is_map ? ", map: " : ", targets: ");
        cvy_text_add_ints(t, y->dim, y->ndim);
    }
    cvy_text_add(t, "}\n");
    if (is_map)
        cvy_text_add(t, "  roles: {y: {role: label_map, classes: %d}}\n", CLASSES);
    return t->status;
}

/* Adds a comment with the layer of data. A name of Caffe may hold any character, and a comment ends with its line. */
static cvy_status add_layer_comment(const job *j, const cvy_caffe_data *data, const char *what, cvy_text *t)
{
    const char *name = cvy_caffe_word(data->layer->name);
    char *clean = NULL;
    CVY_TRY(cvy_build_clean(j->w.pool, name, strlen(name), &clean));
    cvy_text_add(t, "   # layer %s%s\n", clean, what);
    return CVY_OK;
}

static cvy_status add_data(const job *j, cvy_text *t)
{
    cvy_text_add(t, "\ndata:\n");
    if (j->train.is_input || !j->train.layer || j->out->absent.bytes)
        return add_generated(j, t);
    cvy_text_add(t, "  train: %s", j->train.source);
    CVY_TRY(add_layer_comment(j, &j->train, "", t));
    if (j->test_samples > 0) {
        cvy_text_add(t, "  val: %s", j->test.source);
        CVY_TRY(add_layer_comment(j, &j->test, " of phase TEST", t));
    }
    if (j->train.augment)
        cvy_text_add(t, "  augment: %s   # transform_param; what is random is for training only\n", j->train.augment);
    cvy_text_add(t, "  shuffle: %s\n", j->train.shuffle ? "true" : "false   # samples come as they are stored");
    return t->status;
}

static void add_groups(const job *j, cvy_text *t)
{
    const cvy_import *import = &j->out->import;
    if (import->ngroup > 0)
        cvy_text_add(t, "  groups:   # lr_mult and decay_mult of the layers\n");
    for (int i = 0; i < import->ngroup; i++) {
        const cvy_import_group *g = &import->group[i];
        cvy_text_add(t, "    - {match: ");
        cvy_text_add_quoted(t, g->match);
        cvy_text_add(t, ", lr_mult: ");
        cvy_text_add_real(t, g->lr_mult);
        cvy_text_add(t, ", decay_mult: ");
        cvy_text_add_real(t, g->decay_mult);
        cvy_text_add(t, "%s}\n", g->frozen ? ", frozen: true" : "");
    }
}

/* The metrics of the layers Accuracy, each once. */
static void add_metrics(const job *j, cvy_text *t)
{
    const Cvy__Caffe__NetParameter *net = j->w.test.net ? j->w.test.net : j->w.train.net;
    uint32_t seen[8];
    int n = 0;
    for (size_t i = 0; i < net->n_layer && n < CVY_COUNT(seen); i++) {
        const Cvy__Caffe__LayerParameter *layer = net->layer[i];
        const uint32_t k = layer->accuracy_param ? layer->accuracy_param->top_k : 1;
        int found = !layer->type || strcmp(layer->type, "Accuracy") != 0;
        for (int s = 0; s < n; s++)
            found |= seen[s] == k;
        if (found)
            continue;
        cvy_text_add(t, n ? ", " : "  metrics: [");
        cvy_text_add(t, k > 1 ? "{name: top_k, k: %u}" : "accuracy", k);
        seen[n++] = k;
    }
    cvy_text_add(t, n > 0 ? "]   # layers Accuracy\n" : "  metrics: none   # the network has no layer Accuracy\n");
}

static cvy_status add_train(job *j, const char *init, cvy_text *t)
{
    const cvy_caffe_solver *s = cvy_caffe_solver_of(&j->w);
    const int64_t batch = CVY_MAX(j->train.batch, 1), parts = s ? s->iter_size : 1;
    CVY_CHECK(parts > 0, CVY_E_CONFIG, "%s is %lld, expected more than 0", cvy_caffe_at(&j->w.solver, s, "iter_size"),
              (long long)parts);
    cvy_text_add(t, "\ntrain:\n  batch: %lld   # batch_size%s; of all ranks together\n", (long long)(batch * parts),
                 parts > 1 ? " times iter_size" : "");
    if (s)
        CVY_TRY(cvy_caffe_add_training(&j->w, t));
    else
        cvy_text_add(t, "  # A network says nothing of its training; a solver does (convoy import SOLVER.prototxt).\n"
                        "  epochs: 1\n  optimizer: {name: sgd, lr: 0.01, momentum: 0.9, decay_on: all}\n");
    if (s && s->test_interval > 0 && j->test_samples > 0)
        cvy_text_add(t, "  validate_every: %d   # test_interval; also after each epoch\n", s->test_interval);
    add_groups(j, t);
    add_metrics(j, t);
    if (init)
        cvy_text_add(t, "  init: %s\n", init);
    if (has_layer(j->out->import.model, "batch_norm"))
        cvy_text_add(t, "\nbatch_norm: {group: %lld}   # batch_size: each batch has its own statistics\n",
                     (long long)batch);
    return t->status;
}

static void add_output(const cvy_caffe_solver *s, cvy_text *t)
{
    enum { KEEP_MAX = 1000 };
    const int64_t every = s->snapshot > 0 ? s->snapshot : s->max_iter;
    cvy_text_add(t, "\ncheckpoint: {every: %lld steps, keep: %lld}   # snapshot\n", (long long)every,
                 (long long)CVY_MIN(s->max_iter / every + 1, KEEP_MAX));
    if (s->display > 0)
        cvy_text_add(t, "log: {every: %d}   # display\n", s->display);
}

/* What a solver says and a job does in another way. */
static void note_differences(job *j, const cvy_caffe_solver *s)
{
    cvy_text *notes = &j->w.notes;
    if (s->solver_mode == CVY__CAFFE__SOLVER_PARAMETER__SOLVER_MODE__GPU && s->has_solver_mode)
        cvy_text_add(notes, "%s: solver_mode is GPU; convoy computes on the processor\n", j->w.path);
    if (s->snapshot_prefix)
        cvy_text_add(notes, "%s: checkpoints are in the run folder (--out), not at %s (snapshot_prefix)\n", j->w.path,
                     s->snapshot_prefix);
    if (s->average_loss > 1)
        cvy_text_add(notes, "%s: the log has the loss of each logged step, not the mean of %d (average_loss)\n",
                     j->w.path, s->average_loss);
}

static void add_comments(const job *j, cvy_text *t)
{
    const char *line = j->w.notes.data;
    cvy_text_add(t, "# %s of Caffe as a job of convoy.\n", j->w.path);
    for (const char *end; line && (end = strchr(line, '\n')) != NULL; line = end + 1)
        cvy_text_add(t, "# - %.*s\n", (int)(end - line), line);
    cvy_text_add(t, "# All keys: docs/reference/job-file.md, or `convoy keys`.\n\n");
}

/* The name of the file without its ending; a job's name is a word. */
static void add_name(const job *j, cvy_text *t)
{
    const char *base = cvy_file_base_name(j->w.path), *dot = strrchr(base, '.');
    cvy_text word = {0};
    cvy_text_add_bytes(&word, base, dot && dot > base ? (size_t)(dot - base) : strlen(base));
    cvy_text_add(t, "name: ");
    cvy_text_add_quoted(t, word.data ? word.data : "caffe");
    cvy_text_add(t, "\n");
    cvy_text_free(&word);
}

static cvy_status print_job(job *j, const cvy_import_job_opts *opts)
{
    const cvy_caffe_solver *s = cvy_caffe_solver_of(&j->w);
    cvy_text body = {0}, *t = &j->out->text;
    cvy_status status = CVY_OK;
    if (s)
        note_differences(j, s);
    add_name(j, &body);
    CVY_TRY_OUT(add_model(j, &body));
    CVY_TRY_OUT(add_data(j, &body));
    CVY_TRY_OUT(add_train(j, opts->init, &body));
    if (s)
        add_output(s, &body);
    CVY_TRY_OUT(body.status);
    add_comments(j, t);
    cvy_text_add_bytes(t, body.data, body.bytes);
    status = t->status;
out:
    cvy_text_free(&body);
    return status;
}

/* ---- the network ---- */

static cvy_status import_net(job *j, const char *weights)
{
    const cvy_caffe_phase *phase = &j->w.train;
    const int is_read = j->train.layer && !j->train.is_input && !j->out->absent.bytes;
    const cvy_caffe_input read[] = {{j->train.top[0], j->train.shape}, {j->train.top[1], j->train.target}};
    const cvy_caffe_input given = {.sample = j->input};
    const cvy_caffe_opts opts = {.test = phase->state.phase == CVY__CAFFE__PHASE__TEST,
                                 .input = is_read ? read : &given,
                                 .ninput = is_read ? 1 + j->train.reals : j->input.ndim > 0,
                                 .weights = weights};
    return cvy_caffe_net_import(phase->at->path, phase->net, &opts, &j->out->import);
}

static cvy_status make_job(job *j, const char *path, const cvy_import_job_opts *opts)
{
    const char *weights = opts->weights, *type = NULL;
    CVY_TRY(cvy_caffe_work_open(path, &j->w));
    if (opts->snapshot)
        CVY_TRY(cvy_caffe_open_state(&j->w, opts->snapshot, &j->state, &weights));
    CVY_TRY(find_data(j));
    CVY_TRY(import_net(j, weights));
    if (j->out->import.notes.bytes)
        cvy_text_add_bytes(&j->w.notes, j->out->import.notes.data, j->out->import.notes.bytes);
    CVY_TRY(print_job(j, opts));
    if (opts->snapshot) {
        CVY_TRY(cvy_caffe_solver_type(&j->w, &type));
        CVY_TRY(cvy_caffe_add_state(&j->w, &j->state, type, j->out));
    }
    if (j->w.notes.bytes)
        cvy_text_add_bytes(&j->out->notes, j->w.notes.data, j->w.notes.bytes);
    return j->out->notes.status;
}

cvy_status cvy_caffe_read_job(const char *path, const cvy_import_job_opts *opts, cvy_import_job *out)
{
    job j = {.input = opts->input, .out = out};
    *out = (cvy_import_job){0};
    const cvy_status status = make_job(&j, path, opts);
    cvy_caffe_file_free(&j.state);
    cvy_caffe_work_free(&j.w);
    if (status != CVY_OK)
        cvy_import_job_free(out);
    return status;
}
