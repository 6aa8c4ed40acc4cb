/*
 * job_split.c: interprets data.val if it is a part of the training data: a share, or a map that says which samples.
 *
 * The name of what samples belong to becomes the option `group` of the sources of data.train, whose readers look for
 * it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "job/job_table.h"

struct split_opts { /* the keys of the map */
    const char *share, *last, *first, *order;
    const cvy_tree *group;
    int by;
    int64_t gap;
};

const cvy_option cvy_job_split_rows[] = {
    {"share", CVY_TYPE_STRING, CVY_FIELD(split_opts, share), "", "", "",
     "part of the samples, such as 20% or 0.2, drawn by class and seed"},
    {"group", CVY_TYPE_TREE, CVY_FIELD(split_opts, group), "", "", "",
     "with share: what a sample belongs to, as a patient or a site: a column of a table, a data set, a variable, an "
     "array, "
     "a feature, or {path: REGEX} with a POSIX extended regular expression, whose first group in parentheses is it. "
     "All "
     "samples of one group are on the same side"},
    {"by", CVY_TYPE_CHOICE, CVY_FIELD(split_opts, by), "value", "value|day|month|year", "",
     "of a group or order that is a time: what counts as one value"},
    {"last", CVY_TYPE_STRING, CVY_FIELD(split_opts, last), "", "", "",
     "instead of share: part of the samples at the end of the series, such as 10%; in the order of the samples' "
     "coordinate, "
     "such as time, or else of the source"},
    {"first", CVY_TYPE_STRING, CVY_FIELD(split_opts, first), "", "", "", "the same at its beginning"},
    {"order", CVY_TYPE_STRING, CVY_FIELD(split_opts, order), "", "", "",
     "with last or first: the column, data set, variable, array or feature that orders the samples; samples of equal "
     "values are on the same side"},
    {"gap", CVY_TYPE_INT, CVY_FIELD(split_opts, gap), "0", "0..", "samples",
     "with last or first: samples between training and validation that are left out, for windows of a series that "
     "overlap"},
    {0},
};

/* Reads "10%" or "0.1". Returns 0 if the text is no number. */
static int read_share(const char *text, double *out)
{
    char number[32] = "";
    const size_t length = strlen(text);
    const int percent = length > 1 && length < sizeof number && text[length - 1] == '%';
    memcpy(number, text, CVY_MIN(length - percent, sizeof number - 1));
    if (cvy_text_real(number, out) != CVY_OK)
        return 0;
    *out = percent ? *out / 100 : *out;
    return 1;
}

static cvy_status check_share(const cvy_tree *at, const char *key, const char *text, double share)
{
    CVY_CHECK(share > 0 && share < 1, CVY_E_CONFIG,
              "%s: data.val%s is %s, expected a share of the training data between 0 and 1, such as 0.1 or 10%%%s",
              cvy_tree_where(at), key, text, *key ? "" : ", or a source");
    return CVY_OK;
}

/* ---- the option of the sources ---- */

static cvy_status put_group(cvy_job *job, const char *name, cvy_tree **source)
{
    cvy_tree *at = *source, *word = NULL, *map = NULL;
    if (!at || (at->kind == CVY_TREE_SCALAR && !at->text))
        return CVY_OK;
    cvy_tree *several = at->kind == CVY_TREE_LIST ? at : at->kind == CVY_TREE_MAP ? cvy_tree_get(at, "sources") : NULL;
    if (several) {
        for (int i = 0; several->kind == CVY_TREE_LIST && i < several->count; i++)
            CVY_TRY(put_group(job, name, &several->child[i]));
        return CVY_OK;
    }
    const cvy_tree *own = at->kind == CVY_TREE_MAP ? cvy_tree_get(at, "group") : NULL;
    CVY_CHECK(!own || (own->text && strcmp(own->text, name) == 0), CVY_E_CONFIG,
              "%s: group is %s here, and data.val groups or orders the samples by %s: give the same name",
              cvy_tree_where(own), own->text ? own->text : "no name", name);
    if (own)
        return CVY_OK;
    CVY_TRY(cvy_tree_new_scalar(job->pool, "data.val", name, &word));
    if (at->kind == CVY_TREE_MAP)
        return cvy_tree_set(job->pool, at, "group", word);
    CVY_TRY(cvy_tree_new_map(job->pool, at->file, &map));
    map->line = at->line;
    map->column = at->column;
    CVY_TRY(cvy_tree_set(job->pool, map, "path", at));
    CVY_TRY(cvy_tree_set(job->pool, map, "group", word));
    *source = map;
    return CVY_OK;
}

/* ---- the map ---- */

static cvy_status read_group(const cvy_tree *group, cvy_split_spec *out)
{
    if (!group)
        return CVY_OK;
    if (group->kind == CVY_TREE_SCALAR && group->text && *group->text) {
        out->group = group->text;
        return CVY_OK;
    }
    const cvy_tree *path = group->kind == CVY_TREE_MAP ? cvy_tree_get(group, "path") : NULL;
    CVY_CHECK(path && group->count == 1 && path->kind == CVY_TREE_SCALAR && path->text && *path->text, CVY_E_CONFIG,
              "%s: data.val.group is neither a name, such as patient, nor a pattern of paths, such as {path: "
              "\"patient_([0-9]+)\"}",
              cvy_tree_where(group));
    out->pattern = path->text;
    return CVY_OK;
}

static cvy_status read_map(cvy_job *job, const cvy_tree *val, cvy_split_spec *out)
{
    struct split_opts o;
    CVY_TRY(cvy_options_parse(job->pool, "data.val", cvy_job_split_rows, val, NULL, &o, sizeof o));
    const char *given[] = {[CVY_SPLIT_DRAWN] = o.share, [CVY_SPLIT_LAST] = o.last, [CVY_SPLIT_FIRST] = o.first};
    static const char *const key[] = {".share", ".last", ".first"};
    const char *const where = cvy_tree_where(val);
    int count = 0;
    for (int i = 0; i < CVY_COUNT(given); i++) {
        count += given[i] != NULL;
        out->where = given[i] ? i : out->where;
    }
    CVY_CHECK(count == 1, CVY_E_CONFIG,
              "%s: data.val has %s of share, last and first, expected one: the part of data.train to set aside", where,
              count ? "two or more" : "none");
    const char *text = given[out->where];
    if (!read_share(text, &out->share))
        out->share = -1;
    CVY_TRY(check_share(val, key[out->where], text, out->share));
    CVY_TRY(read_group(o.group, out));
    CVY_CHECK(!(out->group || out->pattern) || out->where == CVY_SPLIT_DRAWN, CVY_E_CONFIG,
              "%s: data.val.group goes with data.val.share: `order` gives the order of last and first, and samples of "
              "equal values stay together",
              where);
    CVY_CHECK((!o.order && o.gap == 0) || out->where != CVY_SPLIT_DRAWN, CVY_E_CONFIG,
              "%s: data.val.order and data.val.gap go with data.val.last or data.val.first", where);
    CVY_CHECK(o.by == CVY_SPLIT_BY_VALUE || out->group || out->pattern || o.order, CVY_E_CONFIG,
              "%s: data.val.by goes with data.val.group or data.val.order, which it cuts to days, months or years",
              where);
    out->order = o.order;
    out->by = o.by;
    out->gap = o.gap;
    return CVY_OK;
}

/* A map with one of the keys of a source is a source. */
static int is_source(const cvy_tree *map)
{
    static const char *const keys[] = {"path", "format", "sources", "x"};
    for (int i = 0; i < CVY_COUNT(keys); i++)
        if (cvy_tree_get(map, keys[i]))
            return 1;
    return 0;
}

cvy_status cvy_job_interpret_split(cvy_job *job)
{
    struct cvy_job_data *d = &job->data;
    cvy_tree *val = (cvy_tree *)d->val, *train = (cvy_tree *)d->train;
    cvy_split_spec *s = &d->split;
    if (!val || val->kind == CVY_TREE_LIST || (val->kind == CVY_TREE_MAP && is_source(val)))
        return CVY_OK;
    if (val->kind == CVY_TREE_SCALAR) {
        const size_t length = strlen(val->text);
        if ((val->quoted && (length == 0 || val->text[length - 1] != '%')) || !read_share(val->text, &s->share))
            return CVY_OK;
        CVY_TRY(check_share(val, "", val->text, s->share));
    } else
        CVY_TRY(read_map(job, val, s));
    d->val_share = s->share;
    const char *name = s->group ? s->group : s->order;
    if (name)
        CVY_TRY(put_group(job, name, &train));
    d->train = train;
    return CVY_OK;
}
