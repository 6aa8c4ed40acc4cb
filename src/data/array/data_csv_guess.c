/*
 * data_csv_guess.c: how a table is written: its separator, its quotes, whether its first line is a header, and what its
 * columns hold. What the options say is not guessed.
 *
 * The guesses look at some hundred rows: the first ones, and some in the middle and at the end of the file.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "data/array/data_csv.h"

enum { FIRST_ROWS = 257, FURTHER_ROWS = 64, ROWS_MAX = FIRST_ROWS + 2 * FURTHER_ROWS, SAMPLE_BYTES = 1 << 22 };

/* Rows of the table; row 0 may be its header. Their text is in pool. */
struct sample {
    cvy_pool *pool;
    cvy_line_part row[ROWS_MAX], comment; /* comment: the last one before row 0 */
    int nrow;
    size_t bytes;
    int ncolumn; /* the most frequent number of fields of the rows after row 0; 0: there are none */
};

/* ---- rows to look at ---- */

static cvy_status keep(struct sample *s, cvy_line_part line, cvy_line_part *out)
{
    char *copy = NULL;
    CVY_TRY(cvy_pool_alloc(s->pool, line.bytes + 1, &copy));
    memcpy(copy, line.at, line.bytes);
    *out = (cvy_line_part){copy, line.bytes};
    s->bytes += line.bytes;
    return CVY_OK;
}

/* Keeps up to n rows from the reader's position on. */
static cvy_status keep_rows(const struct csv *c, struct sample *s, cvy_lines *lines, int n)
{
    cvy_line_part line;
    int64_t offset = 0;
    cvy_status status = CVY_OK;
    for (int i = 0; i < n && s->nrow < ROWS_MAX && (s->nrow < 2 || s->bytes < SAMPLE_BYTES);) {
        status = cvy_lines_next(lines, &line, &offset);
        if (status != CVY_OK)
            return status;
        if (cvy_csv_is_comment(c, line)) {
            if (s->nrow == 0)
                CVY_TRY(keep(s, line, &s->comment));
            continue;
        }
        CVY_TRY(keep(s, line, &s->row[s->nrow]));
        s->nrow++;
        i++;
    }
    return CVY_OK;
}

/* Keeps rows that begin after a position inside the file. */
static cvy_status keep_rows_at(const struct csv *c, struct sample *s, const cvy_lines *like, int64_t position)
{
    cvy_lines lines = {.file = like->file, .from = position, .end = like->end, .keep_comments = 1};
    cvy_line_part line;
    int64_t offset = 0;
    cvy_status status = cvy_lines_next(&lines, &line, &offset); /* the rest of a line */
    lines.is_open = cvy_csv_is_open;
    lines.user = c;
    if (status == CVY_OK)
        status = keep_rows(c, s, &lines, FURTHER_ROWS);
    cvy_lines_end(&lines);
    return status;
}

static cvy_status take_sample(struct csv *c, struct sample *s)
{
    cvy_lines lines = {.file = &c->index.file, .keep_comments = 1, .is_open = cvy_csv_is_open, .user = c};
    cvy_status status = keep_rows(c, s, &lines, FIRST_ROWS);
    const int64_t at = lines.from + (int64_t)lines.at, left = c->index.file.bytes - at;
    const int64_t each = s->nrow > 0 ? at / s->nrow + 1 : 1;
    c->has_byte_mark = lines.has_mark;
    c->ends_by_return = lines.end == '\r';
    if (status == CVY_OK && left < 3 * FURTHER_ROWS * each)
        status = keep_rows(c, s, &lines, 2 * FURTHER_ROWS);
    else if (status == CVY_OK) {
        status = keep_rows_at(c, s, &lines, at + left / 2);
        if (status == CVY_OK)
            status = keep_rows_at(c, s, &lines, c->index.file.bytes - FURTHER_ROWS * each);
    }
    cvy_lines_end(&lines);
    return status == CVY_END && s->nrow > 0 ? CVY_OK : status;
}

/* ---- quotes and separators ---- */

/* Single quotes are quotes if there are no others, and each that begins a field has its end. */
static char find_quote(const struct csv_opts *o, const struct sample *s)
{
    struct csv single = {.quote = '\''};
    int found = 0;
    if (o->quote != QUOTE_AUTO)
        return o->quote == QUOTE_DOUBLE ? '"' : o->quote == QUOTE_SINGLE ? '\'' : 0;
    for (int i = 0; i < s->nrow; i++) {
        cvy_line_quotes searched = {0};
        if (memchr(s->row[i].at, '"', s->row[i].bytes) || cvy_csv_is_open(&single, s->row[i], &searched))
            return '"';
        for (size_t k = 0; k < s->row[i].bytes && !found; k++)
            found = s->row[i].at[k] == '\'' && (k == 0 || strchr(",;\t|", s->row[i].at[k - 1]));
    }
    return found ? '\'' : '"';
}

/* The most frequent number of fields of the rows after row 0, and the share of the rows that have it. */
static int usual_count(const struct csv *c, const struct sample *s, double *share_out)
{
    int count[ROWS_MAX], best = 0, times = 0;
    const int from = s->nrow > 1, n = s->nrow - from;
    for (int i = 0; i < n; i++)
        count[i] = cvy_csv_count_fields(c, s->row[from + i]);
    for (int i = 0; i < n; i++) {
        int same = 0;
        for (int k = 0; k < n; k++)
            same += count[k] == count[i];
        if (same > times) {
            times = same;
            best = count[i];
        }
    }
    *share_out = n > 0 ? (double)times / n : 0;
    return best;
}

static int is_like_number(const struct csv *c, cvy_line_part s)
{
    double value = 0;
    return cvy_csv_real(c, s, &value) || cvy_csv_truth(s, &value) || cvy_csv_is_other_number(c, s);
}

/* How well a separator fits: rows have the same number of fields, and these are numbers. */
static double judge_mark(const struct csv *c, const struct sample *s)
{
    enum { ROWS = 64 };
    double share = 0;
    int nfield = 0, nnumber = 0, in_quotes = 0;
    if (usual_count(c, s, &share) < 2)
        return 0;
    for (int i = s->nrow > 1; i < CVY_MIN(s->nrow, ROWS); i++) {
        struct fields f = cvy_csv_fields(c, s->row[i]);
        cvy_line_part field;
        while (cvy_csv_next_field(&f, &field)) {
            nfield++;
            nnumber += is_like_number(c, field) || cvy_csv_is_missing(field);
            in_quotes |= f.quoted && memchr(field.at, ',', field.bytes);
        }
    }
    if (c->mark == ',' && c->decimal == DECIMAL_COMMA && !in_quotes)
        return 0;
    /* Names have blanks, too, and tabs count as blanks. */
    return (c->mark == ' ' ? 0.9 : 1.0) * share * (0.2 + (double)nnumber / CVY_MAX(nfield, 1));
}

static char find_mark(const struct csv *c, const struct csv_opts *o, const struct sample *s)
{
    static const char marks[] = {0, ',', ';', '\t', ' ', '|'};
    static const char likely[] = {'\t', ';', ',', '|', ' '};
    char best = c->decimal == DECIMAL_POINT ? ',' : ';';
    double most = 0;
    if (o->delimiter != MARK_AUTO)
        return marks[o->delimiter];
    for (int i = 0; i < CVY_COUNT(likely); i++) {
        struct csv trial = *c;
        trial.mark = likely[i];
        const double fit = judge_mark(&trial, s);
        if (fit > most + 1e-9) {
            most = fit;
            best = likely[i];
        }
    }
    return best;
}

/* ---- the first line ---- */

/* Looks at the columns in rows of the usual number of fields. */
static cvy_status look(struct csv *c, const struct sample *s, int from, struct column_look *to)
{
    for (int i = from; i < s->nrow; i++) {
        struct fields f = cvy_csv_fields(c, s->row[i]);
        cvy_line_part field;
        if (cvy_csv_count_fields(c, s->row[i]) != s->ncolumn)
            continue;
        for (int k = 0; cvy_csv_next_field(&f, &field); k++) {
            struct column_look *l = &to[k];
            char *copy = NULL;
            double value = 0;
            const int bytes = (int)CVY_MIN(field.bytes, 40);
            l->quoted += f.quoted;
            if (cvy_csv_is_missing(field)) {
                if (l->missing++ == 0 || (!*l->gap && field.bytes > 0)) {
                    CVY_TRY(cvy_pool_printf(c->pool, &copy, "%.*s", bytes, field.at));
                    l->gap = copy;
                }
            } else if (cvy_csv_real(c, field, &value)) {
                l->number++;
                l->whole += value == floor(value);
                l->points += memchr(field.at, c->decimal == DECIMAL_COMMA ? ',' : '.', field.bytes) != NULL;
            } else if (cvy_csv_truth(field, &value)) {
                l->truth++;
            } else if (cvy_csv_is_other_number(c, field)) {
                l->other++;
            } else if (l->text++ == 0) {
                CVY_TRY(cvy_pool_printf(c->pool, &copy, "%.*s", bytes, field.at));
                l->word = copy;
            }
        }
    }
    return CVY_OK;
}

/* Whether most fields are numbers. */
static int is_numeric(const struct column_look *l)
{
    const int numbers = l->number + l->truth + l->other;
    return numbers > 0 && numbers >= l->text;
}

static int is_word(const char *name, cvy_line_part field)
{
    return strlen(name) == field.bytes && memcmp(name, field.at, field.bytes) == 0;
}

static int is_in_tree(const cvy_tree *node, cvy_line_part field)
{
    const int is_list = node && node->kind == CVY_TREE_LIST;
    for (int i = 0; node && i < (is_list ? node->count : 1); i++) {
        const cvy_tree *item = is_list ? node->child[i] : node;
        if (item->kind == CVY_TREE_SCALAR && item->text && is_word(item->text, field))
            return 1;
    }
    return 0;
}

/* Whether an option, or the usual name of a label, names a column by this text. */
static int is_named(const struct csv_opts *o, cvy_line_part field)
{
    int64_t number = 0;
    if (field.bytes == 0 || cvy_line_part_int(field, &number))
        return 0;
    return (o->label && is_word(o->label, field)) || (o->weight && is_word(o->weight, field)) ||
           is_in_tree(o->y, field) || is_in_tree(o->drop, field) ||
           (field.bytes == 5 && (strncasecmp(field.at, "label", 5) == 0 || strncasecmp(field.at, "class", 5) == 0));
}

/* What the fields of the first line are. */
struct first_line {
    int n, quoted, alike;      /* alike: numbers, also in another notation */
    int texts, numbers, plain; /* in columns of numbers; plain: in those without quotes */
    int named, over_points;    /* fields that options name; columns of numbers that all have a decimal mark */
    int points;                /* numbers with a decimal mark */
    int counts, from_0, rises; /* the numbers are 0, 1, 2 .. or 1, 2, 3 ..; they rise */
    int is_empty;              /* the first field is */
};

static struct first_line look_at_first(const struct csv *c, const struct csv_opts *o, const struct sample *s,
                                       const struct column_look *look)
{
    struct first_line a = {.counts = 1, .rises = 1};
    struct fields f = cvy_csv_fields(c, s->row[0]);
    cvy_line_part field;
    double before = 0, start = 0;
    int nnumber = 0;
    for (; cvy_csv_next_field(&f, &field); a.n++) {
        static const struct column_look nothing;
        const struct column_look *under = a.n < s->ncolumn && s->nrow > 1 ? &look[a.n] : &nothing;
        double value = 0;
        const int numeric = is_numeric(under), alike = is_like_number(c, field);
        a.quoted += f.quoted;
        a.alike += alike;
        a.is_empty |= a.n == 0 && field.bytes == 0;
        a.named += is_named(o, field) && !(under->word && is_word(under->word, field));
        if (numeric && !cvy_csv_is_missing(field))
            *(alike ? &a.numbers : &a.texts) += 1;
        a.plain += numeric && under->quoted == 0;
        a.over_points += numeric && under->points == under->number && under->points > 0;
        if (!cvy_csv_real(c, field, &value))
            continue;
        a.points += memchr(field.at, c->decimal == DECIMAL_COMMA ? ',' : '.', field.bytes) != NULL;
        start = nnumber == 0 ? value : start;
        a.counts &= value == start + nnumber;
        a.rises &= nnumber == 0 || value > before;
        before = value;
        nnumber++;
    }
    a.counts &= nnumber > 0 && (start == 0 || start == 1);
    a.from_0 = a.counts && start == 0 && nnumber + a.is_empty == a.n;
    a.rises &= nnumber > 3;
    return a;
}

/* Whether there are rows that rise from the first to the last column, as the numbers of a header do; by 1, if it
 * counts. */
static int rows_rise(const struct csv *c, const struct sample *s, int by_one)
{
    int n = 0;
    for (int i = 1; i < s->nrow; i++) {
        struct fields f = cvy_csv_fields(c, s->row[i]);
        cvy_line_part field;
        double before = 0, value = 0;
        int rises = 1;
        for (int k = 0; rises && cvy_csv_next_field(&f, &field); k++) {
            rises = cvy_csv_real(c, field, &value) && (k == 0 || (by_one ? value == before + 1 : value > before));
            before = value;
        }
        n += rises;
    }
    return 10 * n > s->nrow - 1;
}

/* The first line is a header if an option names one of its fields, if it has names over numbers, or if its numbers are
 * those that programs give to columns without names: 0, 1, 2 .. Missing numbers are no names. */
static int find_header(const struct csv *c, const struct csv_opts *o, const struct sample *s, const cvy_columns *like,
                       const struct column_look *look)
{
    enum { MANY = 8 };
    const struct first_line a = look_at_first(c, o, s, look);
    const int fewer = s->nrow > 1 && a.n + 1 == s->ncolumn;
    struct fields f = cvy_csv_fields(c, s->row[0]);
    cvy_line_part field;
    int64_t known = 0;
    if (o->header != HEADER_AUTO)
        return o->header == HEADER_YES;
    while (like && like->x && known < like->nx && cvy_csv_next_field(&f, &field))
        known += is_word(like->x[known], field);
    if (a.named > 0 || (like && like->x && known == like->nx))
        return 1;
    if (s->nrow == 1 || fewer)
        return a.alike == 0 || (fewer && (a.counts || a.quoted == a.n));
    if (a.texts > 0 && (a.texts >= a.numbers || a.counts || a.rises))
        return 1;
    if (a.quoted == a.n && a.plain > 0) /* the first line alone is all in quotes */
        return 1;
    if (a.from_0 && (a.is_empty || a.n >= 3 || a.over_points == a.n))
        return a.is_empty || !rows_rise(c, s, 1);
    if (a.rises && a.over_points == a.n && a.points == 0 && s->nrow > MANY) /* years over reals */
        return 1;
    return a.rises && a.numbers >= MANY && !rows_rise(c, s, 0);
}

/* ---- columns ---- */

static cvy_status set_name(struct csv *c, int column, cvy_line_part field, int quoted)
{
    char *name = NULL;
    CVY_TRY(cvy_pool_alloc(c->pool, field.bytes + 1, &name));
    name[cvy_csv_unquote(c, field, quoted, name)] = 0;
    for (const unsigned char *at = (const unsigned char *)name; *at; at += cvy_utf8_length(at))
        CVY_CHECK(cvy_utf8_length(at) > 0, CVY_E_FORMAT,
                  "%s: the name of column %d is not UTF-8: convert the file, if it is Latin-1 by iconv -f LATIN1 -t "
                  "UTF-8",
                  c->index.file.path, column + 1);
    c->column[column].name = name;
    return CVY_OK;
}

static cvy_status name_columns(struct csv *c, cvy_line_part line)
{
    struct fields f = cvy_csv_fields(c, line);
    cvy_line_part field;
    for (int i = c->has_row_names; i < c->ncolumn && cvy_csv_next_field(&f, &field); i++)
        CVY_TRY(set_name(c, i, field, f.quoted));
    for (int i = 0; i < c->ncolumn; i++)
        if (!c->column[i].name)
            c->column[i].name = "";
    return CVY_OK;
}

/* The text of a comment that may be the header: without its # and blanks, unless # is a name itself. */
static cvy_line_part names_of_comment(const struct csv *c, cvy_line_part line)
{
    const cvy_line_part text = cvy_line_part_trim(line);
    const cvy_line_part rest = {text.at + 1, text.bytes - 1};
    return rest.bytes > 0 && rest.at[0] == c->mark && c->mark != ' ' ? text : cvy_line_part_trim(rest);
}

/* Whether a comment before the first row has a name for each column, as numpy.savetxt() writes them. */
static int comment_names(const struct csv *c, const struct sample *s)
{
    if (s->comment.bytes == 0 || s->ncolumn == 0)
        return 0;
    const cvy_line_part line = names_of_comment(c, s->comment);
    struct fields f = cvy_csv_fields(c, line);
    cvy_line_part field;
    int texts = 0;
    while (cvy_csv_next_field(&f, &field))
        texts += !is_like_number(c, field) && !cvy_csv_is_missing(field);
    return cvy_csv_count_fields(c, line) == s->ncolumn && texts > 0;
}

static int last_is_empty(const struct csv *c, int n)
{
    const struct column_look *l = &c->column[n - 1].look;
    return n > 1 && c->mark != ' ' && l->missing > 0 && !*l->gap && l->number + l->truth + l->other + l->text == 0;
}

/* Finds the header and the columns. The first line may lack a name for the first column, which then has the names of
 * rows, or for the last one, if lines of rows end with a separator. */
static cvy_status find_columns(struct csv *c, const struct csv_opts *o, const cvy_columns *like, struct sample *s)
{
    const int nfirst = cvy_csv_count_fields(c, s->row[0]);
    struct column_look *seen = NULL;
    CVY_TRY(cvy_pool_alloc(s->pool, sizeof *seen * (size_t)CVY_MAX(s->ncolumn, 1), &seen));
    CVY_TRY(look(c, s, 1, seen));
    c->skip = find_header(c, o, s, like, seen);
    c->names_in_comment = o->header != HEADER_NO && comment_names(c, s);
    if (c->names_in_comment && c->skip && o->header == HEADER_YES) {
        struct csv_opts guess = *o;
        guess.header = HEADER_AUTO;
        c->skip = find_header(c, &guess, s, like, seen);
    }
    c->names_in_comment &= !c->skip;
    c->header = c->skip || c->names_in_comment;
    const int one_more = c->skip && s->nrow > 1 && nfirst + 1 == s->ncolumn;
    c->ncolumn = one_more || c->names_in_comment ? s->ncolumn : nfirst;
    CVY_TRY(cvy_pool_alloc(c->pool, sizeof *c->column * (size_t)CVY_MAX(c->ncolumn, 1), &c->column));
    struct column_look *to = NULL;
    CVY_TRY(cvy_pool_alloc(s->pool, sizeof *to * (size_t)CVY_MAX(s->ncolumn, 1), &to));
    CVY_TRY(look(c, s, c->skip, to));
    for (int i = 0; i < CVY_MIN(c->ncolumn, s->ncolumn); i++)
        c->column[i].look = to[i];
    const int is_empty = c->ncolumn == s->ncolumn && last_is_empty(c, c->ncolumn);
    c->has_row_names = one_more && !is_empty;
    if (c->header)
        CVY_TRY(name_columns(c, c->names_in_comment ? names_of_comment(c, s->comment) : s->row[0]));
    if (is_empty && (!c->header || !*c->column[c->ncolumn - 1].name))
        c->column[c->ncolumn - 1].role = COLUMN_EMPTY;
    return CVY_OK;
}

/* ---- columns to watch ---- */

/* Whether the rows of the sample may be those of a column that counts: whole numbers, none of them twice. */
static int may_count(const struct csv *c, const struct sample *s, int column)
{
    double value[ROWS_MAX];
    int n = 0;
    for (int i = c->skip; i < CVY_MIN(s->nrow, FIRST_ROWS); i++) {
        struct fields f = cvy_csv_fields(c, s->row[i]);
        cvy_line_part field;
        int k = 0;
        while (k <= column && cvy_csv_next_field(&f, &field))
            k++;
        if (k <= column)
            continue;
        if (!cvy_csv_real(c, field, &value[n]))
            return 0;
        for (k = 0; k < n; k++)
            if (value[k] == value[n])
                return 0;
        n++;
    }
    return n > 0;
}

/* Chooses columns whose numbers may be those of the rows, among the first ones. */
static void choose_watches(struct csv *c, const struct sample *s)
{
    enum { FIRST = 64 };
    for (int i = 0; i < CVY_MIN(c->ncolumn, FIRST) && c->nwatch < CSV_WATCHES; i++) {
        const struct column_look *l = &c->column[i].look;
        if (l->number > 0 && l->whole == l->number && l->text + l->other + l->truth + l->missing == 0 &&
            may_count(c, s, i))
            c->watch[c->nwatch++] = (struct csv_watch){.column = i, .is_alive = 1, .counts = 1};
    }
}

cvy_status cvy_csv_guess(struct csv *c, const struct csv_opts *o, const cvy_columns *like)
{
    struct sample s = {0};
    double share = 0;
    c->quote = o->quote == QUOTE_SINGLE ? '\'' : o->quote == QUOTE_NONE ? 0 : '"';
    c->keep_comments = o->comment == COMMENT_NONE;
    CVY_TRY(cvy_pool_create(&s.pool));
    cvy_status status = take_sample(c, &s);
    if (status == CVY_OK) {
        c->quote = find_quote(o, &s);
        c->mark = find_mark(c, o, &s);
        s.ncolumn = usual_count(c, &s, &share);
        status = find_columns(c, o, like, &s);
    }
    if (status == CVY_OK)
        choose_watches(c, &s);
    cvy_pool_destroy(&s.pool);
    return status;
}
