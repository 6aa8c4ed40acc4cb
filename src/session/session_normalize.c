/*
 * session_normalize.c: data.normalize: mean and standard deviation of the training data, as the last operation of
 * data.augment.
 *
 * It runs before step 0. A training run replaces `auto` by numbers once. From then on the job holds the numbers: the
 * resolved job file and each checkpoint keep them, and test and predict take them from there.
 */
#include "session/session_normalize.h"

#include <string.h>

#include "data/data_statistics.h"
#include "job/job_table.h"

static void add_list(cvy_text *t, const char *key, const double *value, int n)
{
    cvy_text_add(t, "%s: [", key);
    for (int i = 0; i < n; i++) {
        cvy_text_add(t, i ? ", " : "");
        cvy_text_add_real(t, value[i]);
    }
    cvy_text_add(t, "]");
}

static cvy_status set_numbers(cvy_job *job, const char *text, size_t bytes)
{
    cvy_tree *map = NULL;
    CVY_TRY(cvy_tree_parse_text(job->pool, "data.normalize", text, bytes, &map));
    job->data.normalize = map;
    return cvy_job_interpret_normalize(job);
}

cvy_status cvy_job_normalize(cvy_job *job, cvy_dataset *train, const cvy_context *context)
{
    cvy_channel_statistics s;
    cvy_text text = {0};
    if (!job->data.normalize_auto)
        return CVY_OK;
    CVY_TRY(cvy_channel_statistics_make(train, context->comm, job->data.normalize_samples, (uint64_t)job->train.seed,
                                        context->threads, job->data.on_bad_sample == CVY_BAD_SAMPLE_SKIP, &s));
    cvy_text_add(&text, "{");
    add_list(&text, "mean", s.mean, s.nchannels);
    cvy_text_add(&text, ", ");
    add_list(&text, "std", s.std, s.nchannels);
    cvy_text_add(&text, "}");
    cvy_status status = text.status == CVY_OK ? set_numbers(job, text.data, text.bytes) : text.status;
    if (status == CVY_OK)
        cvy_log(context, CVY_LOG_INFO, "data.normalize: %s, of %lld samples in %.2f s", text.data,
                (long long)s.nsamples, s.seconds);
    cvy_text_free(&text);
    return cvy_comm_agree(context->comm, status);
}

/* Adds "mean: 0.5" or "mean: [0.5, ..]" as a JSON list. */
static void add_values(const cvy_tree *node, const char *key, cvy_json *json)
{
    const int is_list = node->kind == CVY_TREE_LIST, n = is_list ? node->count : 1;
    cvy_json_open(json, key, '[');
    for (int i = 0; i < n; i++) {
        double value = 0;
        if (cvy_tree_real(is_list ? node->child[i] : node, &value) == CVY_OK)
            cvy_json_real(json, NULL, value);
    }
    cvy_json_close(json, ']');
}

void cvy_job_add_normalize(const cvy_job *job, cvy_json *json)
{
    const cvy_tree *n = job->data.normalize;
    if (!n || n->kind != CVY_TREE_MAP)
        return;
    cvy_json_open(json, "normalize", '{');
    for (int i = 0; i < n->count; i++)
        add_values(n->child[i], n->key[i], json);
    cvy_json_close(json, '}');
}

cvy_status cvy_job_take_normalize(cvy_job *job, const cvy_tree *state)
{
    const cvy_tree *kept = state ? cvy_tree_get(state, "normalize") : NULL;
    char *text = NULL;
    if (!job->data.normalize_auto)
        return CVY_OK;
    CVY_CHECK(kept, CVY_E_CONFIG,
              "%s: data.normalize is auto, but the numbers that were found in the training are not known here: score "
              "the run's folder, or give its job.resolved.yaml "
              "as the job",
              cvy_job_where(job, "data", "normalize"));
    CVY_TRY(cvy_tree_print_line(kept, &text)); /* as text, because the job may outlive the state */
    const cvy_status status = set_numbers(job, text, strlen(text));
    cvy_mem_free(&text);
    return status;
}
