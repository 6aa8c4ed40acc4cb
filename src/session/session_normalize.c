/*
 * session_normalize.c: mean and standard deviation of the training data for data.normalize and data.normalize_targets.
 *
 * It runs before step 0. A training run replaces `auto` by numbers once. From then on the job holds the numbers: the
 * resolved job file and each checkpoint keep them, and test and predict take them from there.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "session/session_normalize.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/machine/base_clock.h"
#include "base/number/base_moments.h"
#include "data/data_names.h"
#include "data/data_reader.h"
#include "data/data_statistics.h"
#include "job/job_table.h"

/* ---- the two keys ---- */

enum { OF_X, OF_TARGETS, NKEY };
enum { CONSTANT_SAID = 8 }; /* channels without variation that the log names */
static const char *const key_name[NKEY] = {"normalize", "normalize_targets"};

static const cvy_tree **key_value(cvy_job *job, int key)
{
    return key == OF_X ? &job->data.normalize : &job->data.normalize_targets;
}

static int is_auto(const cvy_job *job, int key)
{
    return key == OF_X ? job->data.normalize_auto : job->data.normalize_targets_auto;
}

int cvy_job_wants_statistics(const cvy_job *job)
{
    return is_auto(job, OF_X) || is_auto(job, OF_TARGETS);
}

/* Whether the job's file, or --set, has something for the key, such as `none`. */
static int is_given(const cvy_job *job, int key)
{
    const cvy_tree *data = cvy_tree_get(job->given, "data"), *value = data ? cvy_tree_get(data, key_name[key]) : NULL;
    return value && !cvy_tree_is_null(value);
}

static cvy_status set_numbers(cvy_job *job, int key, const char *text, size_t bytes)
{
    cvy_tree *map = NULL;
    CVY_TRY(
        cvy_tree_parse_text(job->pool, key == OF_X ? "data.normalize" : "data.normalize_targets", text, bytes, &map));
    *key_value(job, key) = map;
    return cvy_job_interpret_normalize(job);
}

/* ---- from the training data ---- */

static cvy_status find_target(const cvy_job *job, const cvy_dataset_info *info, int *field_out)
{
    int i = info->nfield - 1;
    while (i > 0 && strcmp(info->field[i].name, "y") != 0)
        i--;
    CVY_CHECK(i > 0, CVY_E_CONFIG,
              "%s: data.normalize_targets is about targets that are numbers, y, which the data of %s do not have",
              cvy_job_where(job, "data", "normalize_targets"), info->path ? info->path : info->format);
    CVY_CHECK(info->field[i].dtype == CVY_DTYPE_F32, CVY_E_CONFIG,
              "%s: data.normalize_targets: y is a map of labels, which have no mean",
              cvy_job_where(job, "data", "normalize_targets"));
    *field_out = i;
    return CVY_OK;
}

/* The numbers of x, of which each gets a mean and a deviation of its own: its channels. */
static int64_t channels_of_x(const cvy_dataset_info *info)
{
    const cvy_shape *x = &info->field[0].shape;
    return x->ndim > 0 ? x->dim[0] : 1;
}

/* Fills in what is to be computed for a key. */
static cvy_status ask(const cvy_job *job, int key, const cvy_dataset_info *info, cvy_channel_statistics *out)
{
    const int64_t channels = channels_of_x(info);
    *out = (cvy_channel_statistics){.nchannels = key == OF_TARGETS            ? info->target_channels
                                                 : channels <= CVY_SCALED_MAX ? channels
                                                                              : 1};
    CVY_CHECK(
        out->nchannels <= CVY_SCALED_MAX, CVY_E_CONFIG,
        "%s: data.normalize_targets: y has %lld numbers, and at most %d have a mean of their own: give one mean and "
        "std for all, as in {mean: 0, std: 2.5}",
        cvy_job_where(job, "data", "normalize_targets"), (long long)out->nchannels, CVY_SCALED_MAX);
    return key == OF_TARGETS ? find_target(job, info, &out->field) : CVY_OK;
}

/* Says which channels of x do not vary. */
static void say_constant(cvy_text *notes, const cvy_dataset_info *info, const cvy_channel_statistics *s,
                         const int64_t *constant, int64_t count)
{
    if (count == 0)
        return;
    cvy_text_add(notes, "data.normalize: %lld of the %lld %s of x %s the same value in all samples (", (long long)count,
                 (long long)s->nchannels, info->field[0].shape.ndim > 1 ? "channels" : "columns",
                 count > 1 ? "have" : "has");
    for (int64_t i = 0; i < CVY_MIN(count, CONSTANT_SAID); i++)
        cvy_text_add(notes, "%s%lld", i > 0 ? ", " : "number ", (long long)constant[i]);
    cvy_text_add(notes, "%s, counted from 0): the value is subtracted, and the standard deviation counts as 1",
                 count > CONSTANT_SAID ? " and more" : "");
    const double first = s->mean[constant[0]];
    if (cvy_moments_are_coarse(fabs(first), 0, 0))
        cvy_text_add(notes,
                     "; values are read as f32, in which numbers near %.6g are %.3g apart: if the file has smaller "
                     "differences, subtract a constant before it is written",
                     first, cvy_f32_spacing(first));
    cvy_text_add(notes, "\n");
}

/* A channel of x without any variation, or with less than f32 can be divided by, is not divided. A target without any
 * is a mistake in the data. */
static cvy_status check_deviations(const cvy_job *job, int key, const cvy_dataset_info *info,
                                   const cvy_channel_statistics *s, cvy_text *notes)
{
    int64_t constant[CONSTANT_SAID], count = 0;
    for (int64_t c = 0; c < s->nchannels; c++) {
        CVY_CHECK(key == OF_X || s->std[c] > 0, CVY_E_CONFIG,
                  "%s: data.normalize_targets: number %lld of y is %g in all samples of %s that were read: there is "
                  "nothing to learn; leave it out, or give mean and std%s",
                  cvy_job_where(job, "data", "normalize_targets"), (long long)c, s->mean[c],
                  info->path ? info->path : info->format,
                  cvy_moments_are_coarse(s->mean[c], 0, 0)
                      ? ". If the file has differences, f32, as which it is read, is too coarse for them: subtract a "
                        "constant before it is written"
                      : "");
        if (key == OF_TARGETS || s->std[c] >= FLT_MIN)
            continue;
        if (count < CONSTANT_SAID)
            constant[count] = c;
        count++;
        s->std[c] = 1;
    }
    say_constant(notes, info, s, constant, count);
    return notes->status;
}

static void add_list(cvy_text *t, const char *key, const double *value, int64_t n)
{
    cvy_text_add(t, "%s: [", key);
    for (int64_t i = 0; i < n; i++) {
        cvy_text_add(t, i ? ", " : "");
        cvy_text_add_real(t, value[i]);
    }
    cvy_text_add(t, "]");
}

static cvy_status put(cvy_job *job, int key, const cvy_context *context, const cvy_channel_statistics *s)
{
    cvy_text text = {0};
    cvy_text_add(&text, "{");
    add_list(&text, "mean", s->mean, s->nchannels);
    cvy_text_add(&text, ", ");
    add_list(&text, "std", s->std, s->nchannels);
    cvy_text_add(&text, "}");
    const cvy_status status = text.status == CVY_OK ? set_numbers(job, key, text.data, text.bytes) : text.status;
    if (status == CVY_OK && s->nchannels <= CVY_LIST_MAX)
        cvy_log(context, CVY_LOG_INFO, "data.%s: %s", key_name[key], text.data);
    else if (status == CVY_OK)
        cvy_log(context, CVY_LOG_INFO,
                "data.%s: a mean and a std for each of %lld numbers, listed in job.resolved.yaml", key_name[key],
                (long long)s->nchannels);
    cvy_text_free(&text);
    return status;
}

/* Fills in what is to be computed for all keys that are `auto`. */
static cvy_status ask_all(const cvy_job *job, const cvy_dataset_info *info, int of[NKEY],
                          cvy_channel_statistics s[NKEY], int *count_out)
{
    int count = 0;
    for (int key = 0; key < NKEY; key++) {
        if (!is_auto(job, key))
            continue;
        of[count] = key;
        CVY_TRY(ask(job, key, info, &s[count++]));
    }
    *count_out = count;
    return CVY_OK;
}

static cvy_status compute(cvy_job *job, cvy_dataset *train, const cvy_context *context, cvy_text *notes)
{
    const cvy_dataset_info *info = cvy_dataset_describe(train);
    const double start = cvy_clock_s();
    const cvy_statistics_opts opts = {.limit = job->data.normalize_samples,
                                      .seed = job->program.seed,
                                      .threads = context->threads,
                                      .skip_bad = job->data.on_bad_sample == CVY_BAD_SAMPLE_SKIP};
    cvy_channel_statistics s[NKEY];
    int of[NKEY], count = 0;
    int64_t nsamples = 0;
    if (is_auto(job, OF_X) && channels_of_x(info) > CVY_SCALED_MAX)
        cvy_text_add(notes,
                     "data.normalize: x has %lld numbers along its first axis, and at most %d have a mean and a "
                     "deviation of their own: all share one\n",
                     (long long)channels_of_x(info), CVY_SCALED_MAX);
    CVY_TRY(cvy_comm_agree(context->comm, ask_all(job, info, of, s, &count)));
    CVY_TRY(cvy_channel_statistics_make(train, context->comm, &opts, job->pool, s, count, &nsamples));
    for (int i = 0; i < count; i++) {
        CVY_TRY(check_deviations(job, of[i], info, &s[i], notes));
        CVY_TRY(put(job, of[i], context, &s[i]));
    }
    cvy_log(context, CVY_LOG_INFO, "normalisation: statistics of %lld samples, computed in %.2f s", (long long)nsamples,
            cvy_clock_s() - start);
    return CVY_OK;
}

cvy_status cvy_job_normalize(cvy_job *job, cvy_dataset *train, const cvy_context *context, cvy_text *notes)
{
    return cvy_job_wants_statistics(job) ? cvy_comm_agree(context->comm, compute(job, train, context, notes)) : CVY_OK;
}

/* ---- in the checkpoint ---- */

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
    const cvy_tree *const value[NKEY] = {job->data.normalize, job->data.normalize_targets};
    for (int key = 0; key < NKEY; key++) {
        const cvy_tree *n = value[key];
        if (!n || n->kind != CVY_TREE_MAP)
            continue;
        cvy_json_open(json, key_name[key], '{');
        for (int i = 0; i < n->count; i++)
            add_values(n->child[i], n->key[i], json);
        cvy_json_close(json, '}');
    }
}

static cvy_status set_tree(cvy_job *job, int key, const cvy_tree *numbers)
{
    char *text = NULL;
    CVY_TRY(cvy_tree_print_line(numbers, &text)); /* as text, because the job may outlive the numbers */
    const cvy_status status = set_numbers(job, key, text, strlen(text));
    cvy_mem_free(&text);
    return status;
}

static cvy_status take(cvy_job *job, int key, const cvy_tree *state)
{
    const cvy_tree *kept = state ? cvy_tree_get(state, key_name[key]) : NULL;
    CVY_CHECK(kept || !is_auto(job, key), CVY_E_CONFIG,
              "%s: data.%s is auto, but the numbers that were found in the training are not known here: score the "
              "run's folder, or give its job.resolved.yaml as the job",
              cvy_job_where(job, "data", key_name[key]), key_name[key]);
    return kept ? set_tree(job, key, kept) : CVY_OK;
}

cvy_status cvy_job_take_normalize(cvy_job *job, const cvy_tree *state)
{
    for (int key = 0; key < NKEY; key++)
        if (is_auto(job, key) || !is_given(job, key))
            CVY_TRY(take(job, key, state));
    return CVY_OK;
}

/* Value i of a number or of a list; a list of one number counts for all. NaN if there is none. */
static double value_at(const cvy_tree *map, const char *name, int i)
{
    const cvy_tree *node = map ? cvy_tree_get(map, name) : NULL;
    double value = NAN;
    if (node && node->kind == CVY_TREE_LIST)
        node = node->count == 1 ? node->child[0] : i < node->count ? node->child[i] : NULL;
    return node && cvy_tree_real(node, &value) == CVY_OK ? value : NAN;
}

static int count_of(const cvy_tree *map, const char *name)
{
    const cvy_tree *node = cvy_tree_get(map, name);
    return node && node->kind == CVY_TREE_LIST ? node->count : 1;
}

static int are_equal(const cvy_tree *a, const cvy_tree *b)
{
    static const char *const names[] = {"mean", "std"};
    for (int k = 0; k < CVY_COUNT(names); k++)
        for (int i = 0; i < CVY_MAX(count_of(a, names[k]), count_of(b, names[k])); i++)
            if (!(value_at(a, names[k], i) == value_at(b, names[k], i)))
                return 0;
    return 1;
}

cvy_status cvy_job_keep_normalize(cvy_job *job, const cvy_tree *state)
{
    for (int key = 0; key < NKEY; key++) {
        const cvy_tree *kept = cvy_tree_get(state, key_name[key]), *given = *key_value(job, key);
        if (kept && (is_auto(job, key) || !is_given(job, key)))
            CVY_TRY(take(job, key, state));
        else
            CVY_CHECK(key == OF_X || (!kept && !given) || (kept && given && are_equal(kept, given)), CVY_E_CONFIG,
                      "%s: data.normalize_targets is not what the run was begun with, and its weights would mean "
                      "something else: leave the key as it was, or begin a new run",
                      cvy_job_where(job, "data", key_name[key]));
    }
    return CVY_OK;
}

int cvy_job_same_target_scaling(const cvy_job *a, const cvy_job *b)
{
    const cvy_tree *x = a->data.normalize_targets, *y = b->data.normalize_targets;
    return x && y ? are_equal(x, y) : x == y;
}

/* ---- from the run whose weights a new run begins with ---- */

/* Whether numbers for each channel fit: there are as many as channels, or one for all. */
static int fits(const cvy_tree *numbers, int64_t channels)
{
    const int means = count_of(numbers, "mean"), stds = count_of(numbers, "std");
    return (means == 1 || means == channels) && (stds == 1 || stds == channels);
}

/* Whether data.augment alone makes the same of the values of both, so that the numbers mean the same. */
static int same_values_before(const cvy_job *job, const cvy_reader_info *own, const cvy_session_like *like)
{
    cvy_augment *a = NULL, *b = NULL;
    cvy_text text[2] = {{0}};
    int64_t channel = 0;
    const cvy_reader_info *known = like->form.stored;
    int same = cvy_augment_create(job->data.augment, 0, 0, own, &a) == CVY_OK &&
               cvy_augment_create(like->job->data.augment, 0, 0, known, &b) == CVY_OK &&
               cvy_augment_compare_values(a, own->dtype == CVY_DTYPE_U8, b, known->dtype == CVY_DTYPE_U8, &text[0],
                                          &text[1], &channel) == CVY_OK;
    cvy_augment_destroy(&a);
    cvy_augment_destroy(&b);
    cvy_text_free(&text[0]);
    cvy_text_free(&text[1]);
    return same && channel < 0;
}

static cvy_status may_inherit(const cvy_job *job, int key, const cvy_session_like *like, const cvy_dataset *train,
                              int *may_out)
{
    const cvy_dataset_info *info = cvy_dataset_describe(train);
    const cvy_reader_info *own = cvy_dataset_reader_info(train);
    const cvy_tree *numbers = key == OF_X ? like->job->data.normalize : like->job->data.normalize_targets;
    cvy_data_names names = CVY_DATA_NAMES_SAME;
    *may_out = 0;
    if (is_given(job, key) || !numbers || numbers->kind != CVY_TREE_MAP)
        return CVY_OK;
    if (key == OF_X) {
        *may_out = fits(numbers, channels_of_x(info)) && same_values_before(job, own, like);
        return CVY_OK;
    }
    const cvy_columns *a = &like->form.stored->columns, *b = &own->columns;
    if (a->x && b->x)
        CVY_TRY(cvy_data_names_relate(a->y, a->ny, b->y, b->ny, &names));
    *may_out = own->has_y && info->target_channels > 0 && fits(numbers, info->target_channels) &&
               names != CVY_DATA_NAMES_OTHER;
    return CVY_OK;
}

cvy_status cvy_job_inherit_normalize(cvy_job *job, const cvy_session_like *like, cvy_dataset *train, cvy_text *notes)
{
    enum { SHOWN = 160 };
    for (int key = 0; key < NKEY; key++) {
        const cvy_tree *numbers = key == OF_X ? like->job->data.normalize : like->job->data.normalize_targets;
        char *text = NULL;
        int may = 0;
        CVY_TRY(may_inherit(job, key, like, train, &may));
        if (!may)
            continue;
        CVY_TRY(set_tree(job, key, numbers));
        CVY_TRY(cvy_tree_print_line(numbers, &text));
        cvy_text_add(notes,
                     "data.%s is not given: that of %s, which the weights were trained with, is taken over, %.*s%s "
                     "(data.%s: none turns it off)\n",
                     key_name[key], like->from, SHOWN, text, strlen(text) > SHOWN ? ".." : "", key_name[key]);
        cvy_mem_free(&text);
    }
    return notes->status;
}
