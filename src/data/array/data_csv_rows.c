/*
 * data_csv_rows.c: the numbers and names that programs give to the rows of a table, which are no input; and the line
 * that says how a table is read.
 *
 * pandas writes its index as a first column without a name, and R the names of rows, for which the header may have no
 * field at all. A network that learns from them learns the order of the file.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text/base_text.h"
#include "data/array/data_csv.h"
#include "data/data_names.h"

/* ---- columns that count ---- */

/* Mixes all bits of a number, so that a sum of such hashes tells sets of numbers apart (splitmix64). */
static uint64_t hash_of(int64_t number)
{
    uint64_t x = (uint64_t)number + UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

static void watch_number(struct csv_watch *w, double value)
{
    const int is_whole = value == floor(value) && fabs(value) < 1e15;
    const int64_t number = is_whole ? (int64_t)value : 0;
    w->is_alive &= is_whole;
    if (w->n == 0)
        w->first = w->low = w->high = number;
    else
        w->counts &= number == w->last + 1;
    w->last = number;
    w->low = CVY_MIN(w->low, number);
    w->high = CVY_MAX(w->high, number);
    w->sum += hash_of(number);
    w->n++;
}

void cvy_csv_watch(struct csv *c, cvy_line_part line)
{
    struct fields f = cvy_csv_fields(c, line);
    cvy_line_part field;
    int at = 0, nalive = 0;
    for (int i = 0; i < c->nwatch; i++) {
        struct csv_watch *w = &c->watch[i];
        double value = 0;
        int found = w->is_alive;
        for (; found && at <= w->column; at++)
            found = cvy_csv_next_field(&f, &field);
        if (w->is_alive && found && cvy_csv_real(c, field, &value))
            watch_number(w, value);
        else
            w->is_alive = 0;
        nalive += w->is_alive;
    }
    if (nalive == 0)
        c->nwatch = 0;
}

/* Whether the numbers are low .. high, each once, in any order. */
static int is_shuffled(const struct csv_watch *w)
{
    uint64_t sum = 0;
    if (w->high - w->low != w->n - 1)
        return 0;
    for (int64_t i = w->low; i <= w->high; i++)
        sum += hash_of(i);
    return sum == w->sum;
}

static const struct csv_watch *find_watch(const struct csv *c, int column)
{
    for (int i = 0; i < c->nwatch; i++)
        if (c->watch[i].column == column && c->watch[i].is_alive)
            return &c->watch[i];
    return NULL;
}

const char *cvy_csv_counts(const struct csv *c, int column, char *text, size_t room)
{
    const struct csv_watch *w = find_watch(c, column);
    if (!w || w->n < 2)
        return NULL;
    if (w->counts)
        snprintf(text, room, "counts from %lld to %lld", (long long)w->low, (long long)w->high);
    else if (is_shuffled(w))
        snprintf(text, room, "has the numbers %lld to %lld in another order", (long long)w->low, (long long)w->high);
    else
        return NULL;
    return text;
}

/* ---- what is no input ---- */

/* Whether a column has no name, or the one that pandas gives to such a column: "Unnamed: 0". */
static int has_no_name(const char *name)
{
    static const char unnamed[] = "Unnamed: ";
    return !*name || (strncmp(name, unnamed, sizeof unnamed - 1) == 0 &&
                      strspn(name + sizeof unnamed - 1, "0123456789.") == strlen(name + sizeof unnamed - 1));
}

/* Whether the training has all inputs of this name as inputs. */
static int are_inputs(const struct csv *c, const cvy_columns *like, const char *name)
{
    int64_t known = 0;
    for (int64_t i = 0; like && like->x && i < like->nx; i++)
        known += strcmp(like->x[i], name) == 0;
    for (int i = 0; i < c->ncolumn; i++)
        known -= c->column[i].role == COLUMN_X && strcmp(c->column[i].name, name) == 0;
    return known >= 0;
}

/* Whether the first column of a table without a header is the number of the row: it counts from 0 or 1; or the training
 * has one input less, and it has whole numbers of which none is there twice. */
static int is_plain_index(const struct csv *c, int64_t like_elems, int64_t ninput)
{
    enum { ROWS = 8 }; /* fewer rows count by chance */
    const struct csv_watch *w = find_watch(c, 0);
    if (c->column[0].role != COLUMN_X || ninput < 2 || (like_elems > 0 && ninput != like_elems + 1))
        return 0;
    if (like_elems > 0)
        return w != NULL;
    return w && w->n >= ROWS && (w->low == 0 || w->low == 1) && (w->counts || is_shuffled(w));
}

void cvy_csv_take_index(struct csv *c, const struct csv_opts *o, const cvy_columns *like, int64_t like_elems)
{
    int64_t ninput = 0;
    if (o->index == INDEX_INPUT)
        return;
    for (int i = 0; i < c->ncolumn; i++)
        ninput += c->column[i].role == COLUMN_X;
    if (!c->header && is_plain_index(c, like_elems, ninput))
        c->column[0].role = COLUMN_INDEX;
    for (int i = 0; c->header && i < c->ncolumn && has_no_name(c->column[i].name); i++)
        if (c->column[i].role == COLUMN_X && !are_inputs(c, like, c->column[i].name))
            c->column[i].role = COLUMN_INDEX;
}

/* ---- what is said ---- */

/* Lists the columns of a role: by their names, or without a header by their numbers. */
static void add_columns(const struct csv *c, int role, cvy_text *t)
{
    enum { SHOWN = 12 };
    int n = 0;
    for (int i = 0; i < c->ncolumn; i++) {
        const char *name = c->header ? c->column[i].name : "";
        char text[CSV_SHOWN];
        if (c->column[i].role != role)
            continue;
        n++;
        if (n > SHOWN)
            continue;
        cvy_text_add(t, "%s", n > 1 ? ", " : "");
        if (*name)
            cvy_text_add(t, "%s", cvy_csv_show(name, text));
        else
            cvy_text_add(t, "column %d", i + 1);
    }
    if (n > SHOWN)
        cvy_text_add(t, " and %d more", n - SHOWN);
}

static int count_role(const struct csv *c, int role)
{
    int n = 0;
    for (int i = 0; i < c->ncolumn; i++)
        n += c->column[i].role == role;
    return n;
}

static void add_text(const struct csv *c, cvy_text *t)
{
    static const char *const thousands[] = {"", "commas", "points", "blanks", "apostrophes", "underscores"};
    cvy_text_add(t, "separator %s",
                 c->ncolumn < 2    ? "none"
                 : c->mark == ','  ? "comma"
                 : c->mark == ';'  ? "semicolon"
                 : c->mark == '\t' ? "tab"
                 : c->mark == '|'  ? "pipe"
                                   : "space");
    cvy_text_add(t, ", %s",
                 c->names_in_comment ? "names of columns in the comment before the first row"
                 : c->header         ? "header in the first line"
                                     : "no header");
    cvy_text_add(t, ", decimal %s", c->decimal == DECIMAL_COMMA ? "comma" : "point");
    if (c->thousands)
        cvy_text_add(t, ", %s between thousands", thousands[c->thousands]);
    if (c->quote != '"')
        cvy_text_add(t, ", %s", c->quote ? "single quotes" : "no quotes");
    if (c->has_byte_mark)
        cvy_text_add(t, ", UTF-8 with a byte order mark");
    if (c->ends_by_return)
        cvy_text_add(t, ", lines end with a carriage return");
}

static void add_roles(const struct csv *c, cvy_text *t)
{
    static const struct {
        int role;
        const char *what;
    } parts[] = {{COLUMN_Y, "y"}, {COLUMN_WEIGHT, "weight"}, {COLUMN_DROP, "dropped"}};
    cvy_text_add(t, "; %lld input%s: ", (long long)c->nx, c->nx == 1 ? "" : "s");
    add_columns(c, COLUMN_X, t);
    if (c->label >= 0) {
        cvy_text_add(t, "; label: ");
        add_columns(c, COLUMN_LABEL, t);
        cvy_text_add(t, c->classes.by_name ? " (names of classes)" : " (whole numbers)");
    } else {
        cvy_text_add(t, "; no label");
    }
    for (int i = 0; i < CVY_COUNT(parts); i++)
        if (count_role(c, parts[i].role) > 0) {
            cvy_text_add(t, "; %s: ", parts[i].what);
            add_columns(c, parts[i].role, t);
        }
}

/* Says what the columns are that are left out, and what is unusual in the rows that were looked at. */
static void add_left_out(const struct csv *c, cvy_text *t)
{
    char how[100];
    for (int i = 0; i < c->ncolumn; i++) {
        const char *counts = cvy_csv_counts(c, i, how, sizeof how), *name = c->header ? c->column[i].name : "";
        if (c->column[i].role == COLUMN_INDEX)
            cvy_text_add(
                t, "; column %d%s%s%s%s%s: taken for an index of the rows, no input (`index: input` makes it one)",
                i + 1, *name ? " (" : " has no name", name, *name ? ")" : "",
                !counts ? ""
                : *name ? " "
                        : " and ",
                counts ? counts : "");
        if (c->column[i].role == COLUMN_EMPTY)
            cvy_text_add(t, "; column %d is empty, after a separator at the end of the lines", i + 1);
    }
    for (int i = 0, n = 0; i < c->ncolumn && n < 3; i++) {
        const struct column_look *l = &c->column[i].look;
        if (c->column[i].role != COLUMN_X || l->missing == 0)
            continue;
        cvy_text_add(t, "%s\"%s\" in column %d", n++ ? ", " : "; missing numbers: ", cvy_csv_show(l->gap, how), i + 1);
    }
    if (c->ncomment > c->names_in_comment)
        cvy_text_add(t, "; %lld line%s with # skipped", (long long)c->ncomment - c->names_in_comment,
                     c->ncomment - c->names_in_comment == 1 ? "" : "s");
    if (c->nlike_rows > 0)
        cvy_text_add(t, ", of which %lld may be rows (`comment: none` reads them)", (long long)c->nlike_rows);
}

/* Names that people give to the number of a row. */
static int is_row_name(const char *name)
{
    static const char *const usual[] = {"id",     "_id",        "index",    "idx",       "row",    "rowid",
                                        "row_id", "row_number", "rownames", "row.names", "level_0"};
    for (int i = 0; i < CVY_COUNT(usual); i++)
        if (strcasecmp(usual[i], name) == 0)
            return 1;
    return 0;
}

/* Names inputs that seem to be numbers of the rows. */
static cvy_status note_counters(const struct csv *c)
{
    enum { ROWS = 8 }; /* fewer rows count by chance */
    for (int i = 0; i < c->ncolumn; i++) {
        char how[100];
        char name[CSV_SHOWN];
        const struct column *k = &c->column[i];
        const int has_name = c->header && *k->name, is_watched = k->role == COLUMN_X && c->index.entries.count >= ROWS;
        const char *counts = is_watched ? cvy_csv_counts(c, i, how, sizeof how) : NULL;
        const int is_usual = k->role == COLUMN_X && c->header && is_row_name(k->name) && k->look.number > 0 &&
                             k->look.whole == k->look.number;
        if (!counts && !is_usual)
            continue;
        CVY_TRY(cvy_reader_note(
            c->info,
            "%s: column %d%s%s%s %s, as a number of the row does, and is an input: `drop: %d` of the "
            "source leaves it out",
            c->index.file.path, i + 1, has_name ? " (" : "", has_name ? cvy_csv_show(k->name, name) : "",
            has_name ? ")" : "", counts ? counts : "has whole numbers", i + 1));
    }
    return CVY_OK;
}

cvy_status cvy_csv_describe_guess(const struct csv *c, const cvy_columns *like)
{
    cvy_text t = {0};
    add_text(c, &t);
    add_roles(c, &t);
    add_left_out(c, &t);
    cvy_status status = t.status;
    if (status == CVY_OK)
        status = cvy_reader_note(c->info, "%s: read as a table with %s", c->index.file.path, t.data);
    cvy_text_free(&t);
    return status == CVY_OK && !like ? note_counters(c) : status;
}
