/*
 * measure_bench_job.c: the job that stands for a network to be timed: one of the zoo, or that of an ONNX file.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "job/job_table.h"
#include "measure/measure_bench.h"
#include "model/model_import.h"

#define NETWORK_JOB "job" /* name that cvy_session_open_job() gives to a job read from text */

/* Adds the options with which the studies time this network, unless the user has given the same option. */
static cvy_status add_bench_options(const cvy_model_def *def, const char *given, size_t length, cvy_text *text)
{
    char *flow = NULL;
    cvy_tree *ours = NULL, *theirs = NULL;
    cvy_pool *pool = NULL;
    CVY_TRY(cvy_pool_create(&pool));
    cvy_status status = cvy_pool_printf(pool, &flow, "{%s}", def->bench);
    if (status == CVY_OK)
        status = cvy_tree_parse_text(pool, def->name, flow, strlen(flow), &ours);
    if (status == CVY_OK)
        status = cvy_pool_printf(pool, &flow, "{%.*s}", (int)length, given);
    if (status == CVY_OK)
        status = cvy_tree_parse_text(pool, "--options", flow, strlen(flow), &theirs);
    for (int i = 0; status == CVY_OK && i < ours->count; i++)
        if (!cvy_tree_get(theirs, ours->key[i]))
            cvy_text_add(text, ", %s: %s", ours->key[i], ours->child[i]->text);
    cvy_pool_destroy(&pool);
    return status;
}

/* The job was made in this file, so a line of it means nothing to the caller. This replaces it by the option from which
 * the words came. The model with its options is on line 2. */
cvy_status cvy_bench_name_option(const cvy_bench_opts *o, cvy_status status)
{
    static const char in_model[] = NETWORK_JOB ":2:", in_job[] = NETWORK_JOB ": ", batch[] = "train.batch is";
    char text[1024];
    if (o->job || status >= 0)
        return status;
    snprintf(text, sizeof text, "%s", cvy_error_text());
    if (strncmp(text, in_model, strlen(in_model)) == 0 && strstr(text, ": "))
        return cvy_error_set(status, "%s%s",
                             cvy_importer_of_file(o->model) ? "" : "--options: ", strstr(text, ": ") + 2);
    if (strncmp(text, in_job, strlen(in_job)) != 0)
        return status;
    const char *rest = text + strlen(in_job);
    if (strncmp(rest, batch, strlen(batch)) == 0)
        return cvy_error_set(status, "--batch is%s", rest + strlen(batch));
    return cvy_error_set(status, "%s: %s", o->model, rest);
}

/* A file: the network in it has no options. */
static cvy_status name_file(const cvy_bench_opts *o, cvy_text *text)
{
    CVY_CHECK(!o->model_options, CVY_E_ARGUMENT, "%s: the network of a file has no options", o->model);
    CVY_CHECK(!strpbrk(o->model, "'\n"), CVY_E_ARGUMENT, "%s: the path of a network to time has no quotes", o->model);
    cvy_text_add(text, "name: bench\nmodel: {%s: '%s'}", cvy_importer_of_file(o->model)->name, o->model);
    return text->status;
}

/* A network of the zoo with its options. */
static cvy_status name_network(const cvy_bench_opts *o, cvy_text *text)
{
    const char *given = o->model_options ? o->model_options : "";
    const size_t skip = strspn(given, " {"), length = strcspn(given + skip, "}");
    const cvy_model_def *def = NULL;
    int64_t number = 0;
    CVY_TRY(cvy_model_resolve(o->model, &def, &number));
    cvy_text_add(text, "name: bench\nmodel: {name: %s%s%.*s", o->model, length ? ", " : "", (int)length, given + skip);
    if (def->bench)
        CVY_TRY(add_bench_options(def, given + skip, length, text));
    cvy_text_add(text, "}");
    return text->status;
}

static cvy_status open_network(cvy_context *context, const cvy_bench_opts *o, cvy_session *s)
{
    cvy_text text = {0};
    cvy_status status = CVY_OK;
    CVY_CHECK(o->model, CVY_E_ARGUMENT, "name a network or a job to time");
    CVY_TRY_OUT(cvy_importer_of_file(o->model) ? name_file(o, &text) : name_network(o, &text));
    cvy_text_add(&text, "\ndata: {train: synthetic}\nbatch_norm: {group: rank}\n");
    cvy_text_add(&text, "train: {optimizer: {name: sgd, lr: 0.001, momentum: 0.9}, steps: 1}\n");
    CVY_TRY_OUT(text.status);
    const cvy_job_source source = {.size = sizeof source, .text = text.data, .sets = o->sets, .nsets = o->nsets};
    CVY_TRY_OUT(cvy_session_open_job(context, &source, s));
out:
    cvy_text_free(&text);
    return status;
}

cvy_status cvy_bench_open_network(cvy_context *context, const cvy_bench_opts *opts, cvy_session *out)
{
    return cvy_bench_name_option(opts, open_network(context, opts, out));
}
