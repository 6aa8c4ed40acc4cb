/*
 * new_job_write.c: cvy_run_new_job() and cvy_run_model_job(): a job with comments, as text, for data or for a network
 * of the zoo.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/job.h>

#include <string.h>

#include "base/base_entry.h"
#include "files/new_job/new_job.h"
#include "model/model.h"

/* ---- data ---- */

static void add_split(const cvy_new_job *job, cvy_text *t)
{
    if (job->val)
        cvy_text_add(t, "  val: %s   # scored after each epoch\n", job->val);
    else if (job->nsamples >= 10)
        cvy_text_add(t, "  val: %s   # this share of the samples is not trained on, and scored after each epoch\n",
                     job->nsamples >= 1000 ? "10%" : "20%");
    else
        cvy_text_add(t, "  # val: 20%%   # with more samples: the share that is not trained on\n");
    if (job->test)
        cvy_text_add(t, "  test: %s   # for `convoy test`\n", job->test);
    else
        cvy_text_add(t, "  # test: PATH   # data of the same kind for `convoy test`\n");
}

static void add_augment(const cvy_new_job *job, cvy_text *t)
{
    const long long height = job->x.ndim == 3 ? (long long)job->x.dim[1] : 0,
                    width = job->x.ndim == 3 ? (long long)job->x.dim[2] : 0, size = (long long)job->size;
    const int is_map = job->y_is_map && job->task != CVY_NEW_CLASSIFY;
    if (job->size)
        cvy_text_add(
            t,
            "  # Pictures have several sizes. A crop at random is taken for training, and the middle for scores.\n"
            "  augment: [{resize: %lld}, {random_crop: %lld}, mirror]   # no mirror if left and right matter\n",
            size * 8 / 7, size);
    else if (job->is_picture && strcmp(job->format, "idx") != 0 && job->task == CVY_NEW_CLASSIFY)
        cvy_text_add(t,
                     "  # Small changes at random, for training only. No mirror if left and right matter.\n"
                     "  augment: [{random_crop: {size: [%lld, %lld], pad: %lld}}, mirror]\n",
                     height, width, CVY_MAX(CVY_MIN(height, width) / 8, 1));
    else if (job->x.ndim == 3 && is_map)
        cvy_text_add(t, "  # augment: [mirror, rotate90]   # if directions do not matter; y turns with x\n");
    else if (job->x.ndim == 3)
        cvy_text_add(t, "  # augment: [mirror]   # changes at random, if they leave the answer as it is\n");
    if (is_map && job->task == CVY_NEW_SEGMENT)
        cvy_text_add(t, "  roles: {y: {role: label_map, classes: %lld%s}}   # classes: as found in the first look\n",
                     (long long)job->map_classes, job->map_ignores ? ", ignore: [255]" : "");
    else if (is_map && job->x.ndim > 2)
        cvy_text_add(t, "  roles: {y: field}   # y has a value for each position of x\n");
}

static void add_data(const cvy_new_job *job, cvy_text *t)
{
    cvy_text_add(t, "\ndata:\n  train: %s\n", job->train);
    add_split(job, t);
    add_augment(job, t);
    cvy_text_add(t, "  normalize: auto   # each channel of x gets mean 0 and standard deviation 1\n");
    if (job->task == CVY_NEW_REGRESS)
        cvy_text_add(t,
                     "  normalize_targets: auto   # for the loss; scores and predictions have the units of the data\n");
}

/* ---- training ---- */

static int64_t batch_for(const cvy_new_job *job)
{
    const int64_t elems = job->size ? job->x.dim[0] * job->size * job->size : cvy_shape_elems(&job->x);
    const int64_t most = elems > 1000000 ? 8 : elems > 100000 ? 32 : 128;
    int64_t batch = 1;
    while (2 * batch <= most && 2 * batch * 5 <= job->nsamples)
        batch *= 2;
    return batch;
}

static int64_t epochs_for(const cvy_new_job *job)
{
    return job->nsamples < 20000 ? 60 : job->nsamples < 200000 ? 30 : 15;
}

static void add_training(const cvy_new_job *job, int by_sgd, cvy_text *t)
{
    const int64_t batch = batch_for(job);
    cvy_text_add(t, "\ntrain:\n  batch: %lld   # of all ranks together\n  epochs: %lld\n", (long long)batch,
                 (long long)epochs_for(job));
    if (by_sgd)
        cvy_text_add(t, "  optimizer: {name: sgd, lr: %g, momentum: 0.9, nesterov: true, weight_decay: 5e-4}\n",
                     CVY_MAX(0.1 * (double)batch / 128, 0.01));
    else
        cvy_text_add(t, "  optimizer: {name: adam, lr: 1e-3}\n");
    cvy_text_add(t, "  schedule: {name: cosine, warmup: 1 epoch}   # the rate rises, then falls to 0 at the end\n");
    if (job->task == CVY_NEW_REGRESS)
        cvy_text_add(t, "  loss: {name: mse, target: y}   # or mae or huber, which large errors disturb less\n");
    else if (job->task == CVY_NEW_SEGMENT)
        cvy_text_add(t, "  loss: {name: softmax_cross_entropy, target: y}\n");
    else
        cvy_text_add(t, "  loss: softmax_cross_entropy\n  metrics: [accuracy%s]\n",
                     job->nclasses > 10 ? ", {name: top_k, k: 5}" : "");
    if (job->nsamples >= 10 || job->val)
        cvy_text_add(t,
                     "\ncheckpoint: {best: loss}   # keeps the weights with the best score on the validation data\n");
}

static void add_head(const cvy_new_job *job, cvy_text *t)
{
    static const char *const what[] = {"a class for each sample", "numbers for each sample",
                                       "a class for each position", "numbers for each position"};
    const int is_each = job->task == CVY_NEW_REGRESS && job->y_is_map;
    cvy_text_add(t, "# %s: %lld samples (%s) of %s", job->train, (long long)job->nsamples, job->format,
                 cvy_shape_text(&job->x));
    if (job->task == CVY_NEW_CLASSIFY)
        cvy_text_add(t, ", %lld classes", (long long)job->nclasses);
    else
        cvy_text_add(t, ", targets %s", cvy_shape_text(&job->y));
    cvy_text_add(t,
                 ". The network learns %s.\n"
                 "# All keys: docs/reference/job-file.md, or `convoy keys`. With this file as job.yaml:\n"
                 "#\n"
                 "#     convoy plan job.yaml                 # shapes, parameters, memory; nothing runs\n"
                 "#     mpiexec -n 2 convoy train job.yaml   # or without mpiexec on one rank\n\n",
                 what[is_each ? CVY_NEW_SEGMENT + 1 : job->task]);
}

cvy_status cvy_run_new_job(const char *source, const char *task, char **text_out)
{
    CVY_ENTRY();
    cvy_pool *pool = NULL;
    cvy_text t = {0};
    cvy_new_job job;
    CVY_CHECK(text_out, CVY_E_ARGUMENT, "cvy_run_new_job() needs an output pointer");
    CVY_CHECK(source && *source, CVY_E_ARGUMENT, "a new job needs a data set, and the name of this one is empty");
    CVY_TRY(cvy_pool_create(&pool));
    const cvy_status status = cvy_new_job_look(pool, source, task, &job);
    if (status == CVY_OK) {
        add_head(&job, &t);
        const int by_sgd = cvy_new_job_add_network(&job, &t);
        add_data(&job, &t);
        add_training(&job, by_sgd, &t);
    }
    cvy_pool_destroy(&pool);
    if (status == CVY_OK && t.status == CVY_OK) {
        *text_out = t.data;
        return CVY_OK;
    }
    cvy_text_free(&t);
    return status != CVY_OK ? status : t.status;
}

/* ---- a network of the zoo ---- */

static int has_layer(const cvy_model *m, const char *op)
{
    for (int i = 0; i < m->nlayer; i++)
        if (strcmp(m->layer[i].op->name, op) == 0)
            return 1;
    return 0;
}

static cvy_status add_model(cvy_pool *pool, cvy_model *m, const char *name, cvy_text *t)
{
    cvy_tree *tree = NULL;
    const int64_t elems = cvy_shape_elems(&m->input[0].sample_shape);
    const cvy_shape *x = &m->input[0].sample_shape;
    const int naux = m->naux;
    int64_t classes = 0;
    CVY_TRY(cvy_model_keep(m, NULL));
    CVY_TRY(cvy_model_write(m, pool, 1, &tree));
    const cvy_tree *layers = cvy_tree_get(tree, "layers");
    const cvy_tree *last = cvy_tree_get(layers->child[layers->count - 1]->child[0], "channels");
    if (last)
        CVY_TRY(cvy_tree_int(last, &classes));
    cvy_text_add(
        t,
        "# %s with its layers, to be changed; %s\n# `model: %s` is the same network, which takes the number of "
        "classes from the data.\n",
        name,
        naux ? "its auxiliary heads, which help its training, are left out."
             : "the last layer has an output for each class.",
        name);
    cvy_text_add(t, "model:\n  inputs: {%s: %s}\n  layers:\n", m->input[0].name, cvy_shape_text(x));
    CVY_TRY(cvy_model_add_layers(layers, t));
    cvy_text_add(t, "  output: %s\n\ndata:\n", cvy_model_output(m));
    cvy_text_add(
        t, "  # Generated samples: put your data here, such as `train: PATH` (`convoy new PATH` writes a whole job).\n"
           "  train: {format: synthetic, samples: 2048, shape: [");
    for (int i = 0; i < x->ndim; i++)
        cvy_text_add(t, "%s%lld", i ? ", " : "", (long long)x->dim[i]);
    cvy_text_add(t, "], classes: %lld}\n  val: 10%%\n\ntrain:\n  batch: %d\n  epochs: 2\n",
                 (long long)CVY_MAX(classes, 2), elems > 20000 ? 32 : 128);
    cvy_text_add(t,
                 "  optimizer: {name: sgd, lr: %s, momentum: 0.9, weight_decay: 1e-4}\n  schedule: cosine\n"
                 "  loss: softmax_cross_entropy\n  metrics: [accuracy]\n",
                 has_layer(m, "batch_norm") ? "0.05" : "0.005");
    return t->status;
}

cvy_status cvy_run_model_job(const char *name, char **text_out)
{
    CVY_ENTRY();
    cvy_pool *pool = NULL;
    cvy_model *m = NULL;
    cvy_text t = {0};
    CVY_CHECK(text_out, CVY_E_ARGUMENT, "cvy_run_model_job() needs an output pointer");
    CVY_CHECK(name && *name, CVY_E_ARGUMENT, "a job of a network needs its name, and this one is empty");
    cvy_status status = cvy_pool_create(&pool);
    if (status == CVY_OK)
        status = cvy_model_zoo(name, NULL, NULL, 0, &m);
    if (status == CVY_OK)
        status = add_model(pool, m, name, &t);
    cvy_model_destroy(&m);
    cvy_pool_destroy(&pool);
    if (status == CVY_OK)
        *text_out = t.data;
    else
        cvy_text_free(&t);
    return status;
}
