/*
 * data_csv.c: reads a table as text, one sample per line. Columns of numbers are the input; other columns may be the
 * class, real targets or the weight.
 *
 * The separator, and whether there is a header, are found from the first two lines. Opening reads the whole file once,
 * for the positions of the lines and for the labels. Labels are integers, or names, which become classes in bytewise
 * order. The numbers of a line are read when its sample is. An error in a line names its line and column.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/array/data_csv.h"
#include "base/base_file.h"
#include "base/base_hash.h"
#include "base/text/base_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { MARK_AUTO, MARK_COMMA, MARK_SEMICOLON, MARK_TAB, MARK_SPACE };
enum { DECIMAL_POINT, DECIMAL_COMMA };
enum { HEADER_AUTO, HEADER_YES, HEADER_NO };

static const cvy_option csv_opts[] = {
    {"label", CVY_TYPE_STRING, CVY_FIELD(csv_opts, label), "", "", "",
     "column of the class: its name, or its number from 1 (a negative number counts from the end); by default the "
     "column named label or class, if there is one; none: the data have no labels"},
    {"y", CVY_TYPE_TREE, CVY_FIELD(csv_opts, y), "", "", "", "columns of real targets: names or numbers"},
    {"weight", CVY_TYPE_STRING, CVY_FIELD(csv_opts, weight), "", "", "", "column of the sample's weight"},
    {"drop", CVY_TYPE_TREE, CVY_FIELD(csv_opts, drop), "", "", "", "columns to ignore"},
    {"shape", CVY_TYPE_INTS, CVY_FIELD(csv_opts, shape), "", "1..1000000", "",
     "shape of the input, which consists of all other columns; by default a vector"},
    {"classes", CVY_TYPE_INT, CVY_FIELD(csv_opts, classes), "0", "0..", "",
     "number of classes; 0: the number of class names, or the largest label plus one"},
    {"labels", CVY_TYPE_CHOICE, CVY_FIELD(csv_opts, labels), "auto", "auto|numbers|names", "",
     "how labels are written; auto: names if at least half of them are no numbers"},
    {"delimiter", CVY_TYPE_CHOICE, CVY_FIELD(csv_opts, delimiter), "auto", "auto|comma|semicolon|tab|space", "",
     "separator of columns; auto: detected from the first lines"},
    {"decimal", CVY_TYPE_CHOICE, CVY_FIELD(csv_opts, decimal), ".", ".|,", "",
     "decimal mark of the numbers; a comma needs another separator of columns"},
    {"missing", CVY_TYPE_STRING, CVY_FIELD(csv_opts, missing), "", "", "",
     "number that takes the place of missing numbers of the input (empty fields, NA, N/A, NaN, null, None, ?); by "
     "default they are faults"},
    {"header", CVY_TYPE_CHOICE, CVY_FIELD(csv_opts, header), "auto", "auto|yes|no", "",
     "whether the first line names the columns; auto: detected from the first lines"},
    {0},
};

static int csv_probe(const char *path)
{
    char head[512];
    if ((!cvy_data_has_suffix(path, ".csv") && !cvy_data_has_suffix(path, ".tsv")) || cvy_file_is_folder(path) ||
        !cvy_file_exists(path))
        return 0;
    const size_t n = cvy_data_peek(path, head, sizeof head);
    return memchr(head, 0, n) ? 0 : 20;
}

/* ---- fields of a line ---- */

struct fields {
    cvy_line_part rest;
    char mark;
    int ended;
};

static struct fields fields_of(const struct csv *c, cvy_line_part line)
{
    return (struct fields){.rest = line, .mark = c->mark};
}

static int is_mark(const struct fields *f, char c)
{
    return c == f->mark || (f->mark == ' ' && c == '\t');
}

/* Position after the closing quote of a text that begins with a quote. A quote inside the text is doubled. */
static size_t end_of_quoted(cvy_line_part s)
{
    size_t at = 1;
    for (; at < s.bytes; at++) {
        if (s.at[at] != '"')
            continue;
        if (at + 1 == s.bytes || s.at[at + 1] != '"')
            return at + 1;
        at++;
    }
    return s.bytes;
}

/* Returns 1 and the next field without the blanks and quotes around it, or 0 after the last field. Several blanks as
 * separators count as one. */
static int next_field(struct fields *f, cvy_line_part *out)
{
    if (f->mark == ' ') {
        f->rest = cvy_line_part_trim(f->rest);
        f->ended |= f->rest.bytes == 0;
    }
    if (f->ended)
        return 0;
    size_t end = 0;
    while (f->mark != ' ' && end < f->rest.bytes && f->rest.at[end] == ' ')
        end++;
    if (end < f->rest.bytes && f->rest.at[end] == '"')
        end += end_of_quoted((cvy_line_part){f->rest.at + end, f->rest.bytes - end});
    while (end < f->rest.bytes && !is_mark(f, f->rest.at[end]))
        end++;
    *out = cvy_line_part_trim((cvy_line_part){f->rest.at, end});
    if (out->bytes >= 2 && out->at[0] == '"' && out->at[out->bytes - 1] == '"')
        *out = (cvy_line_part){out->at + 1, out->bytes - 2};
    f->ended = end == f->rest.bytes;
    if (!f->ended)
        f->rest = (cvy_line_part){f->rest.at + end + 1, f->rest.bytes - end - 1};
    return 1;
}

static char find_mark(const struct csv_opts *o, cvy_line_part line)
{
    static const char marks[] = {0, ',', ';', '\t', ' '};
    static const char likely[] = {'\t', ';', ',', ' '};
    if (o->delimiter != MARK_AUTO)
        return marks[o->delimiter];
    const cvy_line_part text = cvy_line_part_trim(line);
    for (int i = 0; i < CVY_COUNT(likely); i++)
        if (memchr(text.at, likely[i], text.bytes) && (likely[i] != ',' || o->decimal == DECIMAL_POINT))
            return likely[i];
    return o->decimal == DECIMAL_POINT ? ',' : ';';
}

/* Returns 1 if the whole text is a finite number with the table's decimal mark. */
static int real_of(const struct csv *c, cvy_line_part s, double *out)
{
    char text[64];
    if (c->decimal == DECIMAL_POINT)
        return cvy_line_part_real(s, out);
    if (s.bytes > sizeof text || memchr(s.at, '.', s.bytes))
        return 0;
    for (size_t i = 0; i < s.bytes; i++)
        text[i] = s.at[i] == ',' ? '.' : s.at[i];
    return cvy_line_part_real((cvy_line_part){text, s.bytes}, out);
}

/* Whether it would be a number with the other decimal mark. */
static int is_with_other_mark(const struct csv *c, cvy_line_part s)
{
    struct csv other = *c;
    double value = 0;
    other.decimal = c->decimal == DECIMAL_POINT ? DECIMAL_COMMA : DECIMAL_POINT;
    return real_of(&other, s, &value);
}

/* What programs write for a number that is not there. */
static int is_missing(cvy_line_part s)
{
    static const char *const words[] = {"", "na", "n/a", "nan", "null", "none", "?"};
    for (int i = 0; i < CVY_COUNT(words); i++)
        if (strlen(words[i]) == s.bytes && strncasecmp(words[i], s.at, s.bytes) == 0)
            return 1;
    return 0;
}

/* Booleans, as pandas, R and databases write them. */
static int truth_of(cvy_line_part s, double *out)
{
    static const char *const words[] = {"false", "true"};
    for (int i = 0; i < CVY_COUNT(words); i++)
        if (strlen(words[i]) == s.bytes && strncasecmp(words[i], s.at, s.bytes) == 0) {
            *out = i;
            return 1;
        }
    return 0;
}

/* The first line is a header if a field is a name and the field below it is a number; or, if there is no second line,
 * if it has no number at all. */
static int find_header(const struct csv *c, cvy_line_part first, cvy_line_part second)
{
    struct fields a = fields_of(c, first), b = fields_of(c, second);
    cvy_line_part over, under;
    double number = 0;
    int numbers = 0;
    while (next_field(&a, &over)) {
        const int is_number = real_of(c, over, &number) || is_with_other_mark(c, over) || truth_of(over, &number);
        numbers += is_number;
        if (second.bytes > 0 && next_field(&b, &under) && !is_number &&
            (real_of(c, under, &number) || is_with_other_mark(c, under) || truth_of(under, &number)))
            return 1;
    }
    return second.bytes == 0 && numbers == 0;
}

/* ---- the first two lines ---- */

static cvy_status name_columns(struct csv *c, cvy_line_part first)
{
    cvy_line_part field;
    struct fields f = fields_of(c, first);
    while (next_field(&f, &field))
        c->ncolumn++;
    CVY_TRY(cvy_pool_alloc(c->pool, (size_t)c->ncolumn * sizeof *c->column, &c->column));
    f = fields_of(c, first);
    for (int i = 0; c->header && next_field(&f, &field); i++) {
        char *name = NULL;
        CVY_TRY(cvy_pool_printf(c->pool, &name, "%.*s", (int)field.bytes, field.at));
        c->column[i].name = name;
    }
    return CVY_OK;
}

/* Finds separator, header and columns from the first two lines. */
static cvy_status detect_format(struct csv *c, const struct csv_opts *o, const cvy_columns *like)
{
    cvy_lines lines = {.file = &c->index.file};
    cvy_line_part line, first = {"", 0};
    char *copy = NULL;
    int64_t offset = 0;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_lines_next(&lines, &line, &offset));
    CVY_TRY_OUT(cvy_pool_printf(c->pool, &copy, "%.*s", (int)line.bytes, line.at));
    first = (cvy_line_part){copy, line.bytes};
    c->mark = find_mark(o, first);
    status = cvy_lines_next(&lines, &line, &offset);
    if (status < CVY_OK)
        goto out;
    if (status == CVY_END)
        line = (cvy_line_part){"", 0};
    c->header = o->header == HEADER_AUTO ? find_header(c, first, line) : o->header == HEADER_YES;
    CVY_TRY_OUT(name_columns(c, first));
    status = cvy_csv_set_columns(c, o, like);
    if (status != CVY_OK)
        status = cvy_error_prefix(status, "%s", c->index.file.path);
out:
    cvy_lines_end(&lines);
    return status;
}

/* ---- the first pass: lines and labels ---- */

/* Labels like 3.0 are accepted: some programs write all columns as reals. */
static int label_number(const struct csv *c, cvy_line_part field, int32_t *out)
{
    double value = 0;
    if (!real_of(c, field, &value) || value != floor(value) || fabs(value) > INT32_MAX)
        return 0;
    *out = (int32_t)value;
    return 1;
}

/* Reads the label of a line. A field that is not a label stays unknown; csv_read() reports it. */
static cvy_status note_label(struct csv *c, cvy_line_part line, int32_t *out)
{
    struct fields f = fields_of(c, line);
    cvy_line_part field;
    double value = 0;
    int32_t number = 0;
    for (int i = 0; i <= c->label; i++)
        if (!next_field(&f, &field))
            return CVY_OK;
    const int is_number = label_number(c, field, &number);
    const cvy_label_kind kind = is_number                                        ? CVY_LABEL_NUMBER
                                : real_of(c, field, &value) || is_missing(field) ? CVY_LABEL_EITHER
                                                                                 : CVY_LABEL_WORD;
    c->classes.by_name = cvy_label_kinds_add(&c->labels, kind);
    if (c->classes.by_name) {
        const cvy_status status = cvy_classes_number(&c->classes, field.at, field.bytes, out);
        return status == CVY_E_MEMORY ? status : CVY_OK;
    }
    if (is_number) {
        *out = number;
        cvy_classes_note_label(&c->classes, number);
    }
    return CVY_OK;
}

static cvy_status index_once(struct csv *c)
{
    cvy_lines lines = {.file = &c->index.file};
    cvy_line_part line;
    int64_t offset = 0;
    int header = c->header;
    cvy_status status = CVY_OK;
    while ((status = cvy_lines_next(&lines, &line, &offset)) == CVY_OK) {
        cvy_entry e = {.offset = (uint64_t)offset, .bytes = (uint32_t)line.bytes, .label = CVY_LABEL_UNKNOWN};
        if (header) {
            header = 0;
            continue;
        }
        if (c->label >= 0)
            CVY_TRY_OUT(note_label(c, line, &e.label));
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
    CVY_TRY(index_once(c));
    if (cvy_label_kinds_changed(&c->labels)) {
        cvy_line_index_clear(&c->index);
        cvy_classes_free(&c->classes);
        CVY_TRY(index_once(c));
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

/* Why the field of a column is not a number, and what to do. */
static cvy_status no_number(const struct csv *c, int column, cvy_line_part field)
{
    const int is_x = c->column[column].role == COLUMN_X;
    if (is_missing(field))
        return bad_field(c, column, field,
                         is_x ? "a number (`missing: NUMBER` of the source replaces missing numbers of the input)"
                              : "a number");
    if (is_with_other_mark(c, field))
        return bad_field(c, column, field,
                         c->decimal == DECIMAL_POINT ? "a number (`decimal: \",\"` of the source reads decimal commas)"
                                                     : "a number with a decimal comma");
    return bad_field(c, column, field,
                     "a number (name a column of classes by `label:` of the source, or leave it out by `drop:`)");
}

static cvy_status read_fields(const struct csv *c, cvy_line_part line, int32_t label, cvy_raw *raw, float *y)
{
    struct fields f = fields_of(c, line);
    cvy_line_part field;
    float *x = raw->x.data;
    int n = 0;
    for (; next_field(&f, &field); n++) {
        double value = 0;
        if (n >= c->ncolumn || c->column[n].role >= COLUMN_DROP)
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
        if (to->role == COLUMN_X && c->instead && is_missing(field))
            value = *c->instead;
        else if (!real_of(c, field, &value) && !truth_of(field, &value))
            return no_number(c, n, field);
        *(to->role == COLUMN_X ? &x[to->slot] : to->role == COLUMN_Y ? &y[to->slot] : &raw->weight) = (float)value;
    }
    CVY_CHECK(n == c->ncolumn, CVY_E_FORMAT, "%d columns, expected %d as in the first line", n, c->ncolumn);
    return CVY_OK;
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
    CVY_TRY(read_fields(c, (cvy_line_part){line, e->bytes}, e->label, raw, raw->y.data));
    raw->label = c->label >= 0 ? e->label : 0;
    raw->y.bytes = y_bytes;
    return CVY_OK;
}

static cvy_status csv_label(void *state, int64_t number, int32_t *label_out)
{
    *label_out = cvy_entries_label(&((const struct csv *)state)->index.entries, number);
    return CVY_OK;
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
    CVY_CHECK(o->decimal == DECIMAL_POINT || o->delimiter != MARK_COMMA, CVY_E_CONFIG,
              "decimal: \",\" and delimiter: comma exclude each other");
    c->decimal = o->decimal;
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

static cvy_status csv_load(struct csv *c, const cvy_reader_args *args, cvy_reader_info *info)
{
    const struct csv_opts *o = args->options;
    CVY_TRY(take_options(c, o));
    CVY_TRY(cvy_data_file_open(c->pool, args->path, &c->index.file));
    const cvy_status detected = detect_format(c, o, args->like);
    if (detected < CVY_OK)
        return detected;
    if (detected == CVY_OK)
        CVY_TRY(index_lines(c));
    CVY_CHECK(c->index.entries.count > 0, CVY_E_FORMAT, "%s: holds no samples", args->path);
    info->nsamples = c->index.entries.count;
    info->dtype = CVY_DTYPE_F32;
    info->shape = c->shape;
    info->has_y = c->ny > 0;
    info->y_shape = (cvy_shape){1, {c->ny}};
    info->has_weight = c->has_weight;
    CVY_TRY(cvy_csv_describe_columns(c, &info->columns));
    if (c->label < 0)
        return CVY_OK;
    const cvy_status status = cvy_classes_resolve(&c->classes, o->classes, &c->index.entries, info);
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
    .hash = csv_hash,
    .close = csv_close,
};
