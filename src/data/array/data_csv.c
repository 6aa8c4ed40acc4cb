/*
 * data_csv.c: reads a table as text, one sample per line. Columns of numbers are the input; other columns may be the
 * class, real targets or the weight.
 *
 * How the table is written is found from some of its rows (data_csv_guess.c). Opening reads the whole file once, for
 * the positions of the lines, for the labels, and for columns that only count the rows. Labels are integers, or names,
 * which become classes in bytewise order. The numbers of a line are read when its sample is. An error in a line names
 * its line and column.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/array/data_csv.h"
#include "base/base_file.h"
#include "base/base_hash.h"
#include "base/text/base_text.h"
#include "data/data_inflate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const cvy_option csv_opts[] = {
    {"label", CVY_TYPE_STRING, CVY_FIELD(csv_opts, label), "", "", "",
     "column of the class: its name, or its number from 1 (a negative number counts from the end); by default the "
     "column named label or class, in any case, if there is one; none: the data have no labels"},
    {"y", CVY_TYPE_TREE, CVY_FIELD(csv_opts, y), "", "", "", "columns of real targets: names or numbers"},
    {"weight", CVY_TYPE_STRING, CVY_FIELD(csv_opts, weight), "", "", "", "column of the sample's weight"},
    {"drop", CVY_TYPE_TREE, CVY_FIELD(csv_opts, drop), "", "", "", "columns to ignore"},
    {"group", CVY_TYPE_STRING, CVY_FIELD(csv_opts, group), "", "", "",
     "column of what a sample belongs to, such as a patient, for data.val; it is no input"},
    {"group_input", CVY_TYPE_BOOL, CVY_FIELD(csv_opts, group_input), "false", "", "",
     "whether the column of `group` is an input, too"},
    {"shape", CVY_TYPE_INTS, CVY_FIELD(csv_opts, shape), "", "1..1000000", "",
     "shape of the input, which consists of all other columns; by default a vector"},
    {"classes", CVY_TYPE_INT, CVY_FIELD(csv_opts, classes), "0", "0..", "",
     "number of classes; 0: the number of class names, or the largest label plus one"},
    {"labels", CVY_TYPE_CHOICE, CVY_FIELD(csv_opts, labels), "auto", "auto|numbers|names", "",
     "how labels are written; auto: names if at least half of them are no numbers"},
    {"delimiter", CVY_TYPE_CHOICE, CVY_FIELD(csv_opts, delimiter), "auto", "auto|comma|semicolon|tab|space|pipe", "",
     "separator of columns; auto: the one that fits the rows best"},
    {"decimal", CVY_TYPE_CHOICE, CVY_FIELD(csv_opts, decimal), ".", ".|,", "",
     "decimal mark of the numbers; if commas separate columns, too, numbers with a comma must be in quotes"},
    {"thousands", CVY_TYPE_CHOICE, CVY_FIELD(csv_opts, thousands), "none", "none|,|.|space|apostrophe|underscore", "",
     "mark between groups of thousands, which is left out: \",\" reads 1,234 as 1234; it may stand before the decimal "
     "mark only, between groups of three digits"},
    {"missing", CVY_TYPE_STRING, CVY_FIELD(csv_opts, missing), "", "", "",
     "number that takes the place of missing numbers of the input (empty fields, NA, N/A, <NA>, NaN, null, None, ?); "
     "by default they are faults"},
    {"header", CVY_TYPE_CHOICE, CVY_FIELD(csv_opts, header), "auto", "auto|yes|no", "",
     "whether the first line names the columns; auto: detected from the first line and the rows"},
    {"index", CVY_TYPE_CHOICE, CVY_FIELD(csv_opts, index), "auto", "auto|input", "",
     "what a first column is that has the names or numbers of rows, as pandas and R write them: one without a name (or "
     "\"Unnamed: 0\"), or in a table without a header one that counts from 0 or 1; auto: no input"},
    {"quote", CVY_TYPE_CHOICE, CVY_FIELD(csv_opts, quote), "auto", "auto|double|single|none", "",
     "quotes around fields"},
    {"comment", CVY_TYPE_CHOICE, CVY_FIELD(csv_opts, comment), "#", "#|none", "",
     "lines that begin with this sign are skipped; none: they are rows"},
    {0},
};

static int is_utf16(const char *head, size_t n)
{
    return n >= 2 && (memcmp(head, "\xFF\xFE", 2) == 0 || memcmp(head, "\xFE\xFF", 2) == 0);
}

/* Whether a line has at least two numbers, and no name of a picture as the lines of a list have. */
static int has_numbers(cvy_line_part line)
{
    static const char marks[] = {'\t', ';', ',', '|', ' '};
    static const char *const picture[] = {".jpg", ".jpeg", ".png"};
    char text[512];
    const size_t n = CVY_MIN(line.bytes, sizeof text - 1);
    memcpy(text, line.at, n);
    text[n] = 0;
    for (int i = 0; i < CVY_COUNT(picture); i++)
        if (strcasestr(text, picture[i]))
            return 0;
    for (int i = 0; i < CVY_COUNT(marks); i++) {
        const struct csv c = {.mark = marks[i], .quote = '"'};
        struct fields f = cvy_csv_fields(&c, line);
        cvy_line_part field;
        double value = 0;
        int number = 0, other = 0;
        while (cvy_csv_next_field(&f, &field))
            *(cvy_csv_real(&c, field, &value) || cvy_csv_is_other_number(&c, field) ? &number : &other) += 1;
        if (number >= 2 && number >= other)
            return 1;
    }
    return 0;
}

/* Whether a text of another suffix is a table: its second line, or the first if there are no more, has numbers. */
static int is_table(const char *text, size_t n)
{
    cvy_line_part line = {"", 0};
    int nline = 0;
    for (size_t at = 0; at < n && nline < 2;) {
        const char *end = memchr(text + at, '\n', n - at);
        const cvy_line_part next = {text + at, end ? (size_t)(end - text) - at : n - at};
        at += next.bytes + 1;
        if (cvy_line_part_trim(next).bytes == 0 || cvy_line_is_comment(next))
            continue;
        line = next.at[next.bytes - 1] == '\r' ? (cvy_line_part){next.at, next.bytes - 1} : next;
        nline++;
    }
    return has_numbers(line);
}

static int csv_probe(const char *path)
{
    static const char *const suffix[] = {".csv", ".tsv", ".csv.gz", ".tsv.gz", ".txt", ".dat", ".tab"};
    enum { SURE = 4 }; /* the first ones are tables by their names */
    char head[4096];
    int which = 0;
    while (which < CVY_COUNT(suffix) && !cvy_data_has_suffix(path, suffix[which]))
        which++;
    if (which == CVY_COUNT(suffix) || cvy_file_is_folder(path) || !cvy_file_exists(path))
        return 0;
    const size_t n = cvy_data_peek(path, head, sizeof head);
    if (cvy_data_has_suffix(path, ".gz"))
        return 20 * cvy_is_gzip(path);
    if (memchr(head, 0, n) && !is_utf16(head, n))
        return 0;
    return which < SURE || is_table(head, n) ? 20 : 0;
}

/* ---- the first pass: lines and labels ---- */

/* Labels like 3.0 are accepted: some programs write all columns as reals. */
static int label_number(const struct csv *c, cvy_line_part field, int32_t *out)
{
    double value = 0;
    if (!cvy_csv_real(c, field, &value) || value != floor(value) || fabs(value) > INT32_MAX)
        return 0;
    *out = (int32_t)value;
    return 1;
}

/* The number of the class that a field names. */
static cvy_status class_number(struct csv *c, cvy_line_part field, int is_quoted, int32_t *out)
{
    char name[2 * CVY_CLASS_NAME_MAX];
    if (field.bytes <= sizeof name)
        field = (cvy_line_part){name, cvy_csv_unquote(c, field, is_quoted, name)};
    const cvy_status status = cvy_classes_number(&c->classes, field.at, field.bytes, out);
    return status == CVY_E_MEMORY ? status : CVY_OK;
}

/* Reads the label of a line. A field that is not a label stays unknown; csv_read() reports it. */
static cvy_status note_label(struct csv *c, cvy_line_part line, int32_t *out)
{
    struct fields f = cvy_csv_fields(c, line);
    cvy_line_part field;
    double value = 0;
    int32_t number = 0;
    for (int i = 0; i <= c->label; i++)
        if (!cvy_csv_next_field(&f, &field))
            return CVY_OK;
    const int is_number = label_number(c, field, &number);
    const cvy_label_kind kind = is_number                                                     ? CVY_LABEL_NUMBER
                                : cvy_csv_real(c, field, &value) || cvy_csv_is_missing(field) ? CVY_LABEL_EITHER
                                                                                              : CVY_LABEL_WORD;
    c->classes.by_name = cvy_label_kinds_add(&c->labels, kind);
    if (c->classes.by_name)
        return class_number(c, field, f.quoted, out);
    if (is_number) {
        *out = number;
        cvy_classes_note_label(&c->classes, number);
    }
    return CVY_OK;
}

/* Lines that begin with # are counted in the first pass. */
static cvy_status index_once(struct csv *c, int is_first)
{
    cvy_lines lines = {.file = &c->index.file, .keep_comments = 1, .is_open = cvy_csv_is_open, .user = c};
    cvy_line_part line;
    int64_t offset = 0;
    int skip = c->skip, names = c->names_in_comment;
    cvy_status status = CVY_OK;
    while ((status = cvy_lines_next(&lines, &line, &offset)) == CVY_OK) {
        cvy_entry e = {.offset = (uint64_t)offset, .bytes = (uint32_t)line.bytes, .label = CVY_LABEL_UNKNOWN};
        if (cvy_csv_is_comment(c, line)) {
            c->ncomment += is_first;
            c->nlike_rows += is_first && !names && c->ncolumn > 1 && cvy_csv_count_fields(c, line) == c->ncolumn;
            continue;
        }
        names = 0;
        if (skip) {
            skip = 0;
            continue;
        }
        if (c->label >= 0)
            CVY_TRY_OUT(note_label(c, line, &e.label));
        if (is_first && c->nwatch > 0)
            cvy_csv_watch(c, line);
        CVY_TRY_OUT(cvy_line_index_add(&c->index, lines.line, &e));
    }
    if (status == CVY_END)
        status = CVY_OK;
out:
    cvy_lines_end(&lines);
    return status;
}

/* Whether labels are names holds for the whole column, whatever its first line is. */
static cvy_status index_lines(struct csv *c)
{
    const char *name = c->label >= 0 ? c->column[c->label].name : NULL;
    CVY_TRY(index_once(c, 1));
    if (cvy_label_kinds_changed(&c->labels)) {
        cvy_line_index_clear(&c->index);
        cvy_classes_free(&c->classes);
        CVY_TRY(index_once(c, 0));
    }
    return cvy_label_kinds_mixed(&c->labels)
               ? cvy_reader_note(c->info,
                                 "%s: column %d%s%s%s has numbers and names of classes: all are taken as names",
                                 c->index.file.path, c->label + 1, name ? " (" : "", name ? name : "", name ? ")" : "")
               : CVY_OK;
}

/* ---- reading ---- */

static void csv_where(void *state, int64_t number, char *text, size_t room)
{
    const struct csv *c = state;
    snprintf(text, room, "%s, line %lld", c->index.file.path, (long long)cvy_line_index_line(&c->index, number));
}

static cvy_status bad_field(const struct csv *c, int column, cvy_line_part field, const char *expected)
{
    const char *name = c->column[column].name;
    CVY_FAIL(CVY_E_FORMAT, "column %d%s%s%s: \"%.*s\" is not %s", column + 1, name ? " (" : "", name ? name : "",
             name ? ")" : "", (int)CVY_MIN(field.bytes, 64), field.at, expected);
}

static cvy_status read_fields(const struct csv *c, cvy_line_part line, int32_t label, cvy_raw *raw, float *y)
{
    struct fields f = cvy_csv_fields(c, line);
    cvy_line_part field;
    float *x = raw->x.data;
    int n = 0;
    for (; n < c->ncolumn && cvy_csv_next_field(&f, &field); n++) {
        double value = 0;
        char why[300];
        if (c->column[n].role == COLUMN_EMPTY && field.bytes > 0)
            return bad_field(c, n, field, "empty, as this column is in other rows");
        if (c->column[n].role >= COLUMN_DROP)
            continue;
        const struct column *to = &c->column[n];
        if (to->role == COLUMN_LABEL) {
            if (label == CVY_LABEL_UNKNOWN)
                return bad_field(c, n, field,
                                 c->classes.by_name ? "a class's name"
                                 : c->labels.count[CVY_LABEL_WORD] == 0
                                     ? "a label, a whole number"
                                     : "a label, a whole number as most labels are (`labels: names` "
                                       "of the source makes all of them names of classes)");
            continue;
        }
        if (to->role == COLUMN_X && c->instead && cvy_csv_is_missing(field))
            value = *c->instead;
        else if (!cvy_csv_real(c, field, &value) && !cvy_csv_truth(field, &value))
            return bad_field(c, n, field, cvy_csv_why_no_number(c, field, to, why, sizeof why));
        *(to->role == COLUMN_X ? &x[to->slot] : to->role == COLUMN_Y ? &y[to->slot] : &raw->weight) = (float)value;
    }
    return n == c->ncolumn && !cvy_csv_next_field(&f, &field) ? CVY_OK : CVY_E_FORMAT; /* check_count() says why */
}

/* A wrong number of columns is the cause of other faults of a line. */
static cvy_status check_count(const struct csv *c, cvy_line_part line, cvy_status status)
{
    const int n = cvy_csv_count_fields(c, line);
    CVY_CHECK(n == c->ncolumn, CVY_E_FORMAT, "%d columns, expected %d as in the first line", n, c->ncolumn);
    return status;
}

/* raw->y has room for the targets, followed by the line. */
static cvy_status csv_read(void *state, int64_t number, cvy_raw *raw)
{
    const struct csv *c = state;
    const cvy_entry *e = cvy_entries_at(&c->index.entries, number);
    const size_t y_bytes = (size_t)c->ny * sizeof(float);
    CVY_TRY(cvy_bytes_need(&raw->y, y_bytes + e->bytes));
    char *line = (char *)raw->y.data + y_bytes;
    CVY_TRY(cvy_line_index_text(&c->index, number, line));
    CVY_TRY(cvy_bytes_need(&raw->x, (size_t)c->nx * sizeof(float)));
    raw->coding = CVY_CODING_PLAIN;
    raw->dtype = CVY_DTYPE_F32;
    raw->shape = c->shape;
    const cvy_status status = read_fields(c, (cvy_line_part){line, e->bytes}, e->label, raw, raw->y.data);
    if (status != CVY_OK)
        return check_count(c, (cvy_line_part){line, e->bytes}, status);
    raw->label = c->label >= 0 ? e->label : 0;
    raw->y.bytes = y_bytes;
    return CVY_OK;
}

static cvy_status csv_label(void *state, int64_t number, int32_t *label_out)
{
    *label_out = cvy_entries_label(&((const struct csv *)state)->index.entries, number);
    return CVY_OK;
}

/* Adds what the sample of a line belongs to. room: as long as the line. */
static cvy_status add_group(const struct csv *c, cvy_line_part line, char *room, cvy_groups *to)
{
    struct fields f = cvy_csv_fields(c, line);
    cvy_line_part field = {"", 0};
    int k = 0;
    while (k <= c->group && cvy_csv_next_field(&f, &field))
        k++;
    if (k <= c->group)
        return cvy_groups_add(to, "", 0);
    return cvy_groups_add(to, room, cvy_csv_unquote(c, field, f.quoted, room));
}

static cvy_status csv_groups(void *state, cvy_groups *to)
{
    const struct csv *c = state;
    char *line = NULL;
    size_t room = 0;
    cvy_status status = CVY_OK;
    for (int64_t i = 0; i < c->index.entries.count && c->group >= 0 && status == CVY_OK; i++) {
        const size_t bytes = cvy_entries_at(&c->index.entries, i)->bytes;
        if (bytes > room || !line) {
            cvy_mem_free(&line);
            room = CVY_MAX(2 * bytes, 1);
            CVY_TRY_OUT(cvy_mem_alloc(2 * room, &line));
        }
        CVY_TRY_OUT(cvy_line_index_text(&c->index, i, line));
        status = add_group(c, (cvy_line_part){line, bytes}, line + room, to);
        if (status != CVY_OK)
            status = cvy_error_prefix(status, "%s, line %lld", c->index.file.path,
                                      (long long)cvy_line_index_line(&c->index, i));
    }
out:
    cvy_mem_free(&line);
    return status;
}

static void csv_hash(void *state, cvy_hasher *h)
{
    const struct csv *c = state;
    cvy_hash_add(h, &c->index.file.bytes, sizeof c->index.file.bytes);
    cvy_entries_hash(&c->index.entries, h);
}

/* ---- opening ---- */

static void csv_close(void *state)
{
    struct csv *c = state;
    cvy_line_index_free(&c->index);
    cvy_classes_free(&c->classes);
}

static cvy_status take_options(struct csv *c, const struct csv_opts *o)
{
    double value = 0;
    float *instead = NULL;
    CVY_CHECK(o->thousands != (o->decimal == DECIMAL_COMMA ? 1 : 2), CVY_E_CONFIG,
              "thousands: \"%s\" is the decimal mark, too: name the other one by `decimal:`",
              o->decimal == DECIMAL_COMMA ? "," : ".");
    c->decimal = o->decimal;
    c->thousands = o->thousands;
    c->labels.asked = o->labels;
    if (!o->missing)
        return CVY_OK;
    CVY_CHECK(cvy_text_real(o->missing, &value) == CVY_OK && isfinite((float)value), CVY_E_CONFIG,
              "missing: %s is not a number", o->missing);
    CVY_TRY(cvy_pool_alloc(c->pool, sizeof *instead, &instead));
    *instead = (float)value;
    c->instead = instead;
    return CVY_OK;
}

/* Opens the file; a compressed one is unpacked in memory. */
static cvy_status open_text(struct csv *c, const char *path)
{
    char head[4] = {0};
    const size_t n = cvy_data_peek(path, head, sizeof head);
    CVY_CHECK(!is_utf16(head, n), CVY_E_FORMAT,
              "%s: is text in UTF-16, and tables are read in UTF-8: iconv -f UTF-16 -t UTF-8 FILE > NEW", path);
    CVY_TRY(cvy_data_file_open(c->pool, path, &c->index.file));
    if (!cvy_is_gzip(path))
        return CVY_OK;
    CVY_TRY(cvy_inflate_gzip(&c->index.file));
    return cvy_reader_note(c->info, "%s: is compressed by gzip, and each rank unpacks it to %.1f MB of memory", path,
                           1e-6 * (double)c->index.file.bytes);
}

static cvy_status csv_load(struct csv *c, const cvy_reader_args *args, cvy_reader_info *info)
{
    const struct csv_opts *o = args->options;
    CVY_TRY(take_options(c, o));
    CVY_TRY(open_text(c, args->path));
    cvy_status status = cvy_csv_guess(c, o, args->like);
    CVY_CHECK(status != CVY_END, CVY_E_FORMAT, "%s: holds no samples", args->path);
    CVY_TRY(status);
    status = cvy_csv_set_targets(c, o, args->like);
    if (status != CVY_OK)
        return cvy_error_prefix(status, "%s", args->path);
    CVY_TRY(index_lines(c));
    CVY_CHECK(c->index.entries.count > 0, CVY_E_FORMAT, "%s: holds no samples", args->path);
    cvy_csv_take_index(c, o, args->like, args->like_elems);
    status = cvy_csv_set_inputs(c, o, args->like);
    if (status != CVY_OK)
        return cvy_error_prefix(status, "%s", args->path);
    CVY_TRY(cvy_csv_describe_guess(c, args->like));
    info->nsamples = c->index.entries.count;
    info->dtype = CVY_DTYPE_F32;
    info->shape = c->shape;
    info->has_y = c->ny > 0;
    info->y_shape = (cvy_shape){1, {c->ny}};
    info->has_weight = c->has_weight;
    CVY_TRY(cvy_csv_describe_columns(c, &info->columns));
    if (c->label < 0)
        return CVY_OK;
    status = cvy_classes_resolve(&c->classes, o->classes, &c->index.entries, info);
    return status == CVY_OK ? CVY_OK : cvy_error_prefix(status, "%s", args->path);
}

static cvy_status csv_open(const cvy_reader_args *args, cvy_reader_info *info, void **state_out)
{
    struct csv *c = NULL;
    CVY_CHECK(args->path, CVY_E_CONFIG, "format csv needs a path: the text file with the table");
    CVY_TRY(cvy_pool_alloc(info->pool, sizeof *c, &c));
    c->pool = c->classes.pool = info->pool;
    c->info = info;
    c->index.file.fd = -1;
    const cvy_status status = csv_load(c, args, info);
    if (status != CVY_OK)
        csv_close(c);
    else
        *state_out = c;
    return status;
}

CVY_READER_DEFINE(csv) = {
    .name = "csv",
    .summary = "a table of numbers as text, one sample per line",
    .options = csv_opts,
    .options_size = sizeof(struct csv_opts),
    .probe = csv_probe,
    .open = csv_open,
    .read = csv_read,
    .label = csv_label,
    .where = csv_where,
    .groups = csv_groups,
    .hash = csv_hash,
    .close = csv_close,
};
