/*
 * data_sources.c: opens a source of the job file: one reader's samples, a range of them, or several sources joined into
 * one.
 *
 * cvy_dataset_open() calls it, before training. A source without a range or list is the reader itself. Any other source
 * is a reader that wraps other readers and knows which runs of their samples to use. So the data set always sees one
 * reader, and the formats need no code for ranges and lists.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/data_sources.h"

#include <stdio.h>
#include <string.h>

#include "base/base_hash.h"
#include "base/base_index.h"
#include "data/data_agrees.h"
#include "data/data_described.h"

enum { CLASSES_SAME, CLASSES_UNION };

struct run { /* consecutive samples of one source */
    cvy_source from;
    int64_t first, count; /* the run is samples first .. first + count - 1 of `from` */
    int64_t begin;        /* number of its first sample in the joined source */
    int32_t *label;       /* joined class of each of its classes; NULL: they are the same */
};

struct joined {
    cvy_reader_def def;
    struct run *run;
    int nrun;
    cvy_descriptions described; /* of all runs */
};

void cvy_source_close(cvy_source *s)
{
    if (s->state && s->reader->close)
        s->reader->close(s->state);
    *s = (cvy_source){0};
}

/* ---- the reader that wraps other readers ---- */

static const struct run *find_run(const struct joined *j, int64_t number, int64_t *own_out)
{
    int low = 0, high = j->nrun - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (j->run[middle].begin <= number)
            low = middle;
        else
            high = middle - 1;
    }
    *own_out = number - j->run[low].begin + j->run[low].first;
    return &j->run[low];
}

static cvy_status to_whole(const struct run *r, int32_t *label)
{
    CVY_CHECK(*label >= 0 && *label < r->from.info.nclasses, CVY_E_FORMAT,
              "label %d is out of range, expected 0 .. %lld", *label, (long long)r->from.info.nclasses - 1);
    const int32_t own = *label;
    if (r->label)
        *label = r->label[own];
    CVY_CHECK(*label >= 0, CVY_E_FORMAT, "label %d is that of a class which the training data do not have", own);
    return CVY_OK;
}

static cvy_status joined_read(void *state, int64_t number, cvy_raw *raw)
{
    int64_t own = 0;
    const struct run *r = find_run(state, number, &own);
    CVY_TRY(r->from.reader->read(r->from.state, own, raw));
    return r->from.info.has_label ? to_whole(r, &raw->label) : CVY_OK;
}

static cvy_status joined_read_part(void *state, int64_t number, const cvy_field_part *x, const cvy_field_part *y,
                                   cvy_raw *raw)
{
    int64_t own = 0;
    const struct run *r = find_run(state, number, &own);
    const cvy_reader_def *reader = r->from.reader;
    CVY_TRY(reader->read_part ? reader->read_part(r->from.state, own, x, y, raw)
                              : reader->read(r->from.state, own, raw));
    return r->from.info.has_label ? to_whole(r, &raw->label) : CVY_OK;
}

static cvy_status joined_label(void *state, int64_t number, int32_t *label_out)
{
    int64_t own = 0;
    int32_t label = 0;
    const struct run *r = find_run(state, number, &own);
    CVY_TRY(r->from.reader->label(r->from.state, own, &label));
    CVY_TRY(to_whole(r, &label));
    *label_out = label;
    return CVY_OK;
}

static void joined_where(void *state, int64_t number, char *text, size_t room)
{
    int64_t own = 0;
    const struct run *r = find_run(state, number, &own);
    r->from.reader->where(r->from.state, own, text, room);
}

static void joined_name(void *state, int64_t number, char *text, size_t room)
{
    int64_t own = 0;
    const struct run *r = find_run(state, number, &own);
    cvy_reader_name_sample(r->from.reader, r->from.state, own, text, room);
}

static cvy_status joined_groups(void *state, cvy_groups *to)
{
    const struct joined *j = state;
    cvy_status status = CVY_OK;
    for (int i = 0; i < j->nrun && status == CVY_OK; i++) {
        const struct run *r = &j->run[i];
        cvy_groups own = {0};
        status = cvy_reader_groups(r->from.reader, r->from.state, cvy_source_name(&r->from), &own);
        if (status == CVY_OK)
            status = cvy_groups_append(to, &own, r->first, r->count);
        cvy_groups_free(&own);
    }
    return status;
}

/* The coordinates of the samples of all runs, in the units of the first. They are dropped if they have other names, or
 * units that cannot be converted. */
static cvy_status join_samples(const struct joined *j, cvy_pool *pool, cvy_coordinates *out)
{
    const struct run *last = &j->run[j->nrun - 1];
    const int64_t n = last->begin + last->count;
    cvy_coordinates whole = {0}, own;
    double *value = NULL;
    CVY_TRY(cvy_pool_alloc(pool, (size_t)n * sizeof *value, &value));
    for (int i = 0; i < j->nrun; i++) {
        const struct run *r = &j->run[i];
        CVY_TRY(r->from.reader->coordinates(r->from.state, CVY_ALONG_SAMPLES, 0, pool, &own));
        if (i == 0)
            whole = own;
        if (!cvy_coordinates_append(&own, &whole, r->first, r->count, value + r->begin)) {
            out->is_mixed = i > 0 || own.is_mixed;
            return CVY_OK;
        }
    }
    whole.value = value;
    whole.n = n;
    *out = whole;
    return CVY_OK;
}

static cvy_status joined_coordinates(void *state, cvy_along along, int axis, cvy_pool *pool, cvy_coordinates *out)
{
    const struct joined *j = state;
    *out = (cvy_coordinates){0};
    for (int i = 0; i < j->nrun; i++)
        if (!j->run[i].from.reader->coordinates)
            return CVY_OK;
    if (along == CVY_ALONG_SAMPLES)
        return join_samples(j, pool, out);
    cvy_descriptions_axis(&j->described, along, axis, out);
    return CVY_OK;
}

static void joined_hash(void *state, cvy_hasher *h)
{
    const struct joined *j = state;
    for (int i = 0; i < j->nrun; i++) {
        const struct run *r = &j->run[i];
        cvy_hash_add(h, r->from.reader->name, strlen(r->from.reader->name) + 1);
        cvy_hash_add(h, &r->first, sizeof r->first);
        cvy_hash_add(h, &r->count, sizeof r->count);
        if (r->from.reader->hash)
            r->from.reader->hash(r->from.state, h);
    }
}

static void joined_close(void *state)
{
    struct joined *j = state;
    for (int i = 0; i < j->nrun; i++)
        cvy_source_close(&j->run[i].from);
}

/* ---- classes ---- */

/* Class names; classes without names are named by their numbers. */
static cvy_status class_names(cvy_pool *pool, const cvy_reader_info *info, const char *const **out)
{
    const char **name = NULL;
    if (info->class_name) {
        *out = info->class_name;
        return CVY_OK;
    }
    CVY_TRY(cvy_pool_alloc(pool, (size_t)info->nclasses * sizeof *name, &name));
    for (int64_t c = 0; c < info->nclasses; c++) {
        char *text = NULL;
        CVY_TRY(cvy_pool_printf(pool, &text, "%lld", (long long)c));
        name[c] = text;
    }
    *out = name;
    return CVY_OK;
}

/* Finds the joined number of each class of a run. New classes are added if `by` allows it. */
static cvy_status add_classes(cvy_pool *pool, const struct joined *j, int i, int by, cvy_index *index,
                              const char **names)
{
    struct run *r = &j->run[i];
    const int64_t n = r->from.info.nclasses;
    const char *const *own = NULL;
    int other = 0;
    CVY_TRY(class_names(pool, &r->from.info, &own));
    CVY_TRY(cvy_pool_alloc(pool, (size_t)n * sizeof *r->label, &r->label));
    for (int64_t c = 0; c < n; c++) {
        int at = cvy_index_find(index, own[c]);
        if (at < 0) {
            CVY_CHECK(i == 0 || by == CLASSES_UNION, CVY_E_CONFIG,
                      "%s has the class \"%s\" and %s does not have it: write {sources: [..], classes: union} to take "
                      "those of "
                      "all sources",
                      cvy_source_name(&r->from), own[c], cvy_source_name(&j->run[0].from));
            at = index->count;
            CVY_TRY(cvy_index_add(index, own[c], at));
            names[at] = own[c];
        }
        r->label[c] = at;
        other |= at != (int)c;
    }
    CVY_CHECK(by == CLASSES_UNION || n == index->count, CVY_E_CONFIG,
              "%s has %lld classes and %s has %d: write {sources: [..], classes: union} to take those of all sources",
              cvy_source_name(&r->from), (long long)n, cvy_source_name(&j->run[0].from), index->count);
    if (!other)
        r->label = NULL;
    return CVY_OK;
}

static cvy_status join_classes(cvy_pool *pool, const struct joined *j, int by, cvy_reader_info *whole)
{
    const char **names = NULL;
    cvy_index index = {0};
    int64_t most = 0;
    if (!whole->has_label)
        return CVY_OK;
    for (int i = 0; i < j->nrun; i++)
        most += j->run[i].from.info.nclasses;
    CVY_CHECK(most < INT32_MAX, CVY_E_FORMAT, "%lld classes in all sources, more than labels can name",
              (long long)most);
    CVY_TRY(cvy_pool_alloc(pool, (size_t)most * sizeof *names, &names));
    cvy_status status = CVY_OK;
    for (int i = 1; i < j->nrun; i++)
        CVY_TRY(cvy_classes_check_kinds(&j->run[0].from, &j->run[i].from));
    for (int i = 0; i < j->nrun && status == CVY_OK; i++)
        status = add_classes(pool, j, i, by, &index, names);
    whole->nclasses = index.count;
    whole->class_name = names;
    cvy_index_free(&index);
    return status;
}

/* ---- blocks ---- */

static int64_t count_blocks(const struct run *r)
{
    const int64_t stored = r->from.info.blocks.count;
    return stored > 0 ? stored : (r->count + CVY_BLOCK_DEFAULT - 1) / CVY_BLOCK_DEFAULT;
}

/* A block never crosses the end of a run. If only some sources have blocks, the others are cut into blocks of
 * CVY_BLOCK_DEFAULT samples. */
static cvy_status join_blocks(cvy_pool *pool, const struct joined *j, cvy_blocks *out)
{
    int64_t room = 0, known = 0;
    *out = (cvy_blocks){0};
    for (int i = 0; i < j->nrun; i++) {
        room += count_blocks(&j->run[i]);
        known += j->run[i].from.info.blocks.count;
    }
    if (known == 0)
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(pool, (size_t)room * sizeof *out->first, &out->first));
    for (int i = 0; i < j->nrun; i++) {
        const struct run *r = &j->run[i];
        const cvy_blocks *own = &r->from.info.blocks;
        for (int64_t k = 0; k < count_blocks(r); k++) {
            const int64_t first = own->count > 0 ? own->first[k] - r->first : k * CVY_BLOCK_DEFAULT;
            if (first < r->count)
                cvy_blocks_add(out, r->begin + CVY_MAX(first, 0));
        }
    }
    return CVY_OK;
}

/* ---- joining runs into one source ---- */

static cvy_status name_whole(cvy_pool *pool, const struct joined *j, cvy_source *whole)
{
    char *path = NULL;
    const cvy_source *first = &j->run[0].from;
    whole->path = first->path;
    if (j->nrun == 1)
        return CVY_OK;
    if (j->nrun == 2)
        CVY_TRY(cvy_pool_printf(pool, &path, "%s + %s", cvy_source_name(first), cvy_source_name(&j->run[1].from)));
    else
        CVY_TRY(cvy_pool_printf(pool, &path, "%s + %d more", cvy_source_name(first), j->nrun - 1));
    whole->path = path;
    return CVY_OK;
}

static cvy_status describe(cvy_pool *pool, struct joined *j, int by, cvy_source *whole)
{
    cvy_reader_info info = j->run[0].from.info;
    j->def = (cvy_reader_def){.name = j->run[0].from.reader->name,
                              .summary = "several sources, or a range of one",
                              .read = joined_read,
                              .read_part = joined_read_part,
                              .label = joined_label,
                              .where = joined_where,
                              .name_sample = joined_name,
                              .groups = joined_groups,
                              .coordinates = joined_coordinates,
                              .hash = joined_hash,
                              .close = joined_close};
    info.nsamples = 0;
    for (int i = 0; i < j->nrun; i++) {
        struct run *r = &j->run[i];
        CVY_CHECK(r->count > 0, CVY_E_FORMAT, "%s: holds no samples", cvy_source_name(&r->from));
        CVY_TRY(cvy_sources_agree(&j->run[0].from, &r->from, &info));
        if (i > 0)
            CVY_TRY(cvy_descriptions_drop(pool, &info.described, &r->from.info.described));
        r->begin = info.nsamples;
        info.nsamples += r->count;
        if (i > 0 && r->from.info.note && !(info.note && strstr(info.note, r->from.info.note)))
            CVY_TRY(cvy_reader_note(&info, "%s", r->from.info.note));
        if (!r->from.reader->label) /* the data set then reads whole samples; it has the buffers */
            j->def.label = NULL;
        if (strcmp(r->from.reader->name, j->def.name) != 0)
            j->def.name = "several";
    }
    CVY_TRY(join_blocks(pool, j, &info.blocks));
    if (j->nrun > 1)
        CVY_TRY(join_classes(pool, j, by, &info));
    j->described = info.described;
    whole->info = info;
    return name_whole(pool, j, whole);
}

/* On success *out owns the runs' sources; on an error the caller still does. */
static cvy_status join(cvy_pool *pool, struct run *run, int nrun, int by, cvy_source *out)
{
    struct joined *j = NULL;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *j, &j));
    j->run = run;
    j->nrun = nrun;
    cvy_source whole = {.reader = &j->def, .state = j};
    CVY_TRY(describe(pool, j, by, &whole));
    *out = whole;
    return CVY_OK;
}

/* ---- ranges ---- */

/* Parses one end of a range: a count, a share of the set, or nothing. */
static cvy_status parse_end(const cvy_tree *at, const char *text, size_t length, int64_t count, int64_t fallback,
                            int64_t *out)
{
    char word[32];
    double share = 0;
    while (length > 0 && text[0] == ' ')
        text++, length--;
    while (length > 0 && text[length - 1] == ' ')
        length--;
    *out = fallback;
    if (length == 0)
        return CVY_OK;
    const int percent = text[length - 1] == '%';
    snprintf(word, sizeof word, "%.*s", (int)CVY_MIN(length - (size_t)percent, sizeof word - 1), text);
    cvy_status status = percent ? cvy_text_real(word, &share) : cvy_text_int(word, out);
    if (percent)
        *out = share >= 0 && share <= 100 ? (int64_t)((double)count * share / 100 + 0.5) : -1;
    CVY_CHECK(status == CVY_OK && *out >= 0, CVY_E_CONFIG,
              "%s: range: \"%.*s\" is neither a number of samples nor a share between 0%% and 100%%",
              cvy_tree_where(at), (int)length, text);
    return CVY_OK;
}

cvy_status cvy_source_range(const cvy_tree *at, int64_t count, int64_t *first_out, int64_t *end_out)
{
    const char *text = at->kind == CVY_TREE_SCALAR && at->text ? at->text : "", *colon = strchr(text, ':');
    int64_t first = 0, end = count;
    CVY_CHECK(colon && !strchr(colon + 1, ':'), CVY_E_CONFIG,
              "%s: range is \"%s\", expected \"first:end\" in samples or percent, such as \"0:90%%\" or \"1000:5000\"",
              cvy_tree_where(at), text);
    CVY_TRY(parse_end(at, text, (size_t)(colon - text), count, 0, &first));
    CVY_TRY(parse_end(at, colon + 1, strlen(colon + 1), count, count, &end));
    CVY_CHECK(first < end && end <= count, CVY_E_CONFIG,
              "%s: range \"%s\" is samples %lld to %lld of a set of %lld: it is empty or goes past the end",
              cvy_tree_where(at), text, (long long)first, (long long)end, (long long)count);
    *first_out = first;
    *end_out = end;
    return CVY_OK;
}

/* Applies the map's `range`, then its `limit`; *s becomes a reader of these samples only. */
static cvy_status narrow(cvy_pool *pool, const cvy_tree *map, cvy_source *s)
{
    const cvy_tree *range = cvy_tree_get(map, "range"), *limit = cvy_tree_get(map, "limit");
    struct run *run = NULL;
    int64_t first = 0, end = s->info.nsamples, most = end;
    if (range)
        CVY_TRY(cvy_source_range(range, end, &first, &end));
    if (limit) {
        CVY_CHECK(cvy_tree_int(limit, &most) == CVY_OK && most > 0, CVY_E_CONFIG,
                  "%s: limit is a number of samples, at least 1", cvy_tree_where(limit));
        end = CVY_MIN(end, first + CVY_MIN(most, end - first));
    }
    if (first == 0 && end == s->info.nsamples)
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *run, &run));
    *run = (struct run){.from = *s, .first = first, .count = end - first};
    return join(pool, run, 1, CLASSES_SAME, s);
}

/* ---- following the training data ---- */

static cvy_status follow(cvy_pool *pool, const cvy_data_form *like, cvy_source *s)
{
    int32_t *label = NULL;
    struct run *run = NULL;
    if (like->stored)
        CVY_TRY(cvy_source_follow_channels(like->stored, like->info ? "the training data" : "the first source", s));
    if (!like->info || like->x_only || like->info->nclasses == 0 || !s->info.has_label ||
        (like->stored && s->info.shape.ndim != like->stored->shape.ndim))
        return CVY_OK; /* what does not agree is found later, when all is known */
    CVY_TRY(cvy_source_follow_classes(like->info, s, &label));
    if (label) {
        CVY_TRY(cvy_pool_alloc(pool, sizeof *run, &run));
        *run = (struct run){.from = *s, .count = s->info.nsamples, .label = label};
        CVY_TRY(join(pool, run, 1, CLASSES_SAME, s));
    }
    return cvy_source_take_classes(like->info, s);
}

/* ---- opening ---- */

static cvy_status find_reader(const cvy_tree *source, const char *path, const cvy_tree *format,
                              const cvy_reader_def **out)
{
    if (!format) {
        CVY_CHECK(path, CVY_E_CONFIG, "%s: a data source needs a path or a format", cvy_tree_where(source));
        return cvy_reader_detect(path, out);
    }
    CVY_CHECK(format->kind == CVY_TREE_SCALAR && format->text, CVY_E_CONFIG, "%s: format is one word",
              cvy_tree_where(format));
    const cvy_status status = cvy_reader_by_name(format->text, out);
    return status == CVY_OK ? status : cvy_error_prefix(status, "%s", cvy_tree_where(format));
}

static cvy_status note_bytes(cvy_source *s)
{
    if (s->info.dtype != CVY_DTYPE_U8 || cvy_bytes_are_picture(&s->info))
        return CVY_OK;
    return cvy_reader_note(&s->info,
                           "%s: x is bytes of %s, which is no picture: they are numbers, 0 .. 255, and are not divided "
                           "by 255 ({scale: 0.00392157} in data.augment does that)",
                           cvy_source_name(s), cvy_shape_text(&s->info.shape));
}

/* What the source is compared with: the training data, or the first source of a list. */
static cvy_status name_described(cvy_pool *pool, const cvy_data_form *like, cvy_reader_args *args)
{
    char *where = NULL;
    if (!like || !like->stored || like->stored->described.nx == 0)
        return CVY_OK;
    const char *first = like->stored->described.x[0].file;
    args->described = &like->stored->described;
    CVY_TRY(cvy_pool_printf(pool, &where, "in %s", like->info || !first ? "the training data" : first));
    args->of_described = where;
    return CVY_OK;
}

/* Opens a source with one reader, from path, format and the reader's own options. */
static cvy_status open_reader(cvy_pool *pool, const cvy_tree *source, const cvy_data_form *like, cvy_source *out)
{
    static const char *const ours[] = {"path", "format", "range", "limit", "sandbox", NULL};
    static const cvy_option none[] = {{0}};
    const int is_map = source && source->kind == CVY_TREE_MAP;
    const cvy_tree *at = is_map ? cvy_tree_get(source, "path") : source;
    CVY_CHECK(source, CVY_E_CONFIG, "data: a data source is a path, a map {path: .., format: .., options}, or a list");
    CVY_CHECK(
        !at || at->kind == CVY_TREE_SCALAR, CVY_E_CONFIG,
        "%s: path is one file, folder or pattern; write several as a list of sources, [{path: A, ..}, {path: B, ..}], "
        "or as a pattern, \"A*\"",
        cvy_tree_where(at));
    cvy_source s = {.info = {.pool = pool}};
    cvy_followed followed = {0};
    char *path = NULL, who[64];
    void *options = NULL;
    if (at && at->kind == CVY_TREE_SCALAR && at->text && *at->text)
        CVY_TRY(cvy_pool_strdup(pool, at->text, &path));
    CVY_TRY(find_reader(source, path, is_map ? cvy_tree_get(source, "format") : NULL, &s.reader));
    const cvy_columns *columns = like && like->stored && like->stored->columns.x ? &like->stored->columns : NULL;
    const int is_table = columns && columns->nx == cvy_shape_elems(&like->stored->shape);
    if (columns)
        CVY_TRY(cvy_variables_follow(pool, s.reader, columns, &source, &followed));
    if (is_map && cvy_tree_get(source, "group"))
        CVY_TRY(cvy_reader_check_groups(s.reader, path ? path : s.reader->name));
    snprintf(who, sizeof who, "data format %s", s.reader->name);
    CVY_TRY(cvy_pool_alloc(pool, s.reader->options_size, &options));
    CVY_TRY(cvy_options_parse(pool, who, s.reader->options ? s.reader->options : none, is_map ? source : NULL, ours,
                              options, s.reader->options_size));
    s.path = path;
    cvy_reader_args args = {.path = path,
                            .options = options,
                            .like = is_table ? columns : NULL,
                            .like_elems = like && like->stored ? cvy_shape_elems(&like->stored->shape) : 0};
    CVY_TRY(name_described(pool, like, &args));
    CVY_TRY(s.reader->open(&args, &s.info, &s.state));
    cvy_status status = cvy_variables_describe(pool, s.reader, source, &followed, &s.info);
    if (status == CVY_OK && args.described && !s.reader->mends)
        status = cvy_descriptions_agree(args.described, args.of_described, !like->x_only, &s.info);
    if (status == CVY_OK)
        status = note_bytes(&s);
    if (status != CVY_OK)
        cvy_source_close(&s);
    else
        *out = s;
    return status;
}

/* Opens the sources of a list. All follow `like`, or else the first of them. */
static cvy_status open_several(cvy_pool *pool, const cvy_tree *list, int by, const cvy_data_form *like, cvy_source *out)
{
    struct run *run = NULL;
    int n = 0;
    CVY_CHECK(list->kind == CVY_TREE_LIST && list->count > 0, CVY_E_CONFIG,
              "%s: expected a list of data sources with at least one", cvy_tree_where(list));
    CVY_TRY(cvy_pool_alloc(pool, (size_t)list->count * sizeof *run, &run));
    cvy_status status = CVY_OK;
    for (; n < list->count && status == CVY_OK; n++) {
        list->child[n]->used = 1;
        const cvy_data_form first = {.stored = &run[0].from.info, .info = like ? like->info : NULL};
        const int follows_first = n > 0 && !(like && like->stored);
        status = cvy_source_open(pool, list->child[n], follows_first ? &first : like, &run[n].from);
        run[n].count = run[n].from.info.nsamples;
    }
    if (status == CVY_OK)
        status = join(pool, run, n, by, out);
    for (int i = 0; i < n && status != CVY_OK; i++)
        cvy_source_close(&run[i].from);
    return status;
}

static cvy_status open_map_of_several(cvy_pool *pool, const cvy_tree *map, const cvy_data_form *like, cvy_source *out)
{
    struct list_opts {
        const cvy_tree *sources;
        int classes;
    } o;
    static const char *const ours[] = {"range", "limit", NULL};
    static const cvy_option rows[] = {
        {"sources", CVY_TYPE_TREE, CVY_FIELD(list_opts, sources), NULL, "", "", "list of data sources"},
        {"classes", CVY_TYPE_CHOICE, CVY_FIELD(list_opts, classes), "same", "same|union", "",
         "whether all must have the same classes, or those of all are taken together"},
        {0},
    };
    CVY_TRY(cvy_options_parse(pool, "data source", rows, map, ours, &o, sizeof o));
    return open_several(pool, o.sources, o.classes, like, out);
}

cvy_status cvy_source_open(cvy_pool *pool, const cvy_tree *source, const cvy_data_form *like, cvy_source *out)
{
    cvy_source s = {0};
    const int is_map = source && source->kind == CVY_TREE_MAP,
              is_several = source && (source->kind == CVY_TREE_LIST || (is_map && cvy_tree_get(source, "sources")));
    if (!is_several)
        CVY_TRY(open_reader(pool, source, like, &s));
    else if (is_map)
        CVY_TRY(open_map_of_several(pool, source, like, &s));
    else
        CVY_TRY(open_several(pool, source, CLASSES_SAME, like, &s));
    cvy_status status = is_map ? narrow(pool, source, &s) : CVY_OK;
    if (status == CVY_OK && like && !is_several)
        status = follow(pool, like, &s);
    if (status != CVY_OK)
        cvy_source_close(&s);
    else
        *out = s;
    return status;
}
