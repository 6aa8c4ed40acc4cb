/*
 * data_csv_columns.c: which column of a table is input, label, target or weight.
 *
 * The options name columns by their names or numbers. What is nothing else is input. In further data of a training the
 * columns are found by the names that they have in its data, whatever their order; columns that it does not have are
 * not read.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/base_index.h"
#include "base/text/base_table.h"
#include "data/array/data_csv.h"

/* ---- options ---- */

/* Of columns of one name, the first that has no role yet is found. */
static cvy_status find_column(const struct csv *c, const char *text, int *out)
{
    const char *known[64];
    int nknown = 0;
    int64_t number = 0;
    *out = -1;
    for (int i = 0; i < c->ncolumn; i++) {
        if (c->column[i].name && strcmp(c->column[i].name, text) == 0 && (*out < 0 || c->column[*out].role != COLUMN_X))
            *out = i;
        if (c->column[i].name && nknown < CVY_COUNT(known))
            known[nknown++] = c->column[i].name;
    }
    if (*out >= 0)
        return CVY_OK;
    if (cvy_line_part_int((cvy_line_part){text, strlen(text)}, &number)) {
        CVY_CHECK(number != 0 && number >= -c->ncolumn && number <= c->ncolumn, CVY_E_CONFIG,
                  "column %lld of %d: columns count from 1, negative numbers from the end", (long long)number,
                  c->ncolumn);
        const int is_open = c->column[c->ncolumn - 1].role == COLUMN_EMPTY; /* -1 is the column before it */
        *out = (int)(number > 0 ? number - 1 : c->ncolumn - is_open + number);
        CVY_CHECK(*out >= 0, CVY_E_CONFIG, "column %lld of %d", (long long)number, c->ncolumn - is_open);
        return CVY_OK;
    }
    const cvy_name_hint hint = cvy_hint_name('"', text, known, nknown);
    CVY_FAIL(CVY_E_CONFIG, "no column \"%s\"%s", text,
             *hint.text  ? hint.text
             : c->header ? " in the header"
                         : ": the table has no header, so columns go by number");
}

static int has_column(const struct csv *c, const char *name)
{
    for (int i = 0; i < c->ncolumn; i++)
        if (c->column[i].name && strcmp(c->column[i].name, name) == 0)
            return 1;
    return 0;
}

/* The first column of this name after column i that has no role yet; -1: none. */
static int next_free(const struct csv *c, const char *name, int i)
{
    while (++i < c->ncolumn)
        if (c->column[i].name && c->column[i].role == COLUMN_X && strcmp(c->column[i].name, name) == 0)
            return i;
    return -1;
}

static cvy_status set_role(struct csv *c, const char *text, int role, int64_t slot)
{
    int i = 0;
    CVY_TRY(find_column(c, text, &i));
    CVY_CHECK(c->column[i].role == COLUMN_X, CVY_E_CONFIG, "column \"%s\" is given twice", text);
    const int other = role == COLUMN_DROP ? -1 : next_free(c, text, i);
    CVY_CHECK(other < 0, CVY_E_CONFIG,
              "the columns %d and %d are both called \"%s\": give the one that is meant by its number", i + 1,
              other + 1, text);
    c->column[i].role = role;
    c->column[i].slot = slot;
    return CVY_OK;
}

/* Sets the roles of one column or of a list. optional: columns that do not exist are left out. */
static cvy_status set_roles(struct csv *c, const cvy_tree *node, int role, int optional, int64_t *count)
{
    const int is_list = node && node->kind == CVY_TREE_LIST;
    *count = 0;
    for (int i = 0; node && i < (is_list ? node->count : 1); i++) {
        const cvy_tree *item = is_list ? node->child[i] : node;
        CVY_CHECK(item->kind == CVY_TREE_SCALAR && item->text, CVY_E_CONFIG,
                  "%s: expected a column's name or number, or a list of them", cvy_tree_where(item));
        if (!optional || has_column(c, item->text))
            CVY_TRY(set_role(c, item->text, role, (*count)++));
        while (role == COLUMN_DROP && next_free(c, item->text, -1) >= 0)
            CVY_TRY(set_role(c, item->text, role, (*count)++));
    }
    return CVY_OK;
}

static int is_input(const cvy_columns *like, const char *name)
{
    for (int64_t i = 0; like && i < like->nx; i++)
        if (strcmp(like->x[i], name) == 0)
            return 1;
    return 0;
}

/* The label column if the option is not given: a column with a usual name, in any case, that is no input of the
 * training. */
static const char *usual_label(const struct csv *c, const cvy_columns *like)
{
    static const char *const usual[] = {"label", "class"};
    for (int k = 0; k < CVY_COUNT(usual); k++)
        for (int i = 0; i < c->ncolumn; i++)
            if (c->column[i].name && c->column[i].role == COLUMN_X && strcasecmp(c->column[i].name, usual[k]) == 0 &&
                !is_input(like, c->column[i].name))
                return c->column[i].name;
    return "none";
}

/* The first input with one of these names, in any case; NULL: none. */
static const char *input_called(const struct csv *c, const char *const *names, int n)
{
    for (int k = 0; k < n; k++)
        for (int i = 0; i < c->ncolumn; i++)
            if (c->column[i].name && c->column[i].role == COLUMN_X && strcasecmp(c->column[i].name, names[k]) == 0)
                return c->column[i].name;
    return NULL;
}

/* Names an input that may be the answer by its name. y may be a coordinate beside x. */
static cvy_status note_other_label(const struct csv *c, const char *label)
{
    static const char *const usual[] = {"label", "class", "target", "species", "outcome", "diagnosis", "y"};
    enum { SURE = 3 }; /* beside a label only the first ones are told */
    const int has_label = strcmp(label, "none") != 0, all = CVY_COUNT(usual) - has_column(c, "x");
    const char *other = input_called(c, usual, has_label ? SURE : all);
    if (!other || (!has_label && c->ny > 0))
        return CVY_OK;
    if (has_label)
        return cvy_reader_note(c->info,
                               "%s: column \"%s\" is the label, and column \"%s\" is an input: `drop: %s` leaves it "
                               "out, and `label: %s` makes it the label",
                               c->index.file.path, label, other, other, other);
    return cvy_reader_note(c->info,
                           "%s: column \"%s\" is an input, and there is no label: `label: %s` of the source makes it "
                           "the class, and `y: %s` a real target",
                           c->index.file.path, other, other, other);
}

/* Finds the column of the groups, which is no input. Further data need not have it. */
static cvy_status set_group(struct csv *c, const struct csv_opts *o, const cvy_columns *like)
{
    c->group = -1;
    if (!o->group || (like && !has_column(c, o->group)))
        return CVY_OK;
    CVY_TRY(find_column(c, o->group, &c->group));
    if (c->column[c->group].role != COLUMN_X || o->group_input)
        return CVY_OK;
    c->column[c->group].role = COLUMN_DROP;
    return cvy_reader_note(c->info,
                           "%s: column %s groups or orders samples, and is no input (`group_input: true` of the "
                           "source makes it one)",
                           c->index.file.path, o->group);
}

/* Sets what is no input: as the options say, or else as the columns of the training are called. A name under `drop`
 * stands for all its columns that have no other role. */
cvy_status cvy_csv_set_targets(struct csv *c, const struct csv_opts *o, const cvy_columns *like)
{
    int64_t dropped = 0, known = 0;
    const char *label = o->label, *weight = o->weight;
    if (!c->header) /* cvy_dataset_agrees() says so */
        like = NULL;
    CVY_TRY(set_roles(c, o->y, COLUMN_Y, 0, &c->ny));
    if (label && strcmp(label, "none") != 0)
        CVY_TRY(set_role(c, label, COLUMN_LABEL, 0));
    if (weight)
        CVY_TRY(set_role(c, weight, COLUMN_WEIGHT, 0));
    CVY_TRY(set_roles(c, o->drop, COLUMN_DROP, like != NULL, &dropped));
    CVY_TRY(set_group(c, o, like));
    while (like && !o->y && known < like->ny && has_column(c, like->y[known]))
        known++;
    for (int64_t i = 0; like && known > 0 && known == like->ny && i < known; i++)
        CVY_TRY(set_role(c, like->y[i], COLUMN_Y, c->ny++));
    if (!weight && like && like->weight && has_column(c, like->weight)) {
        weight = like->weight;
        CVY_TRY(set_role(c, weight, COLUMN_WEIGHT, 0));
    }
    c->has_weight = weight != NULL;
    if (!label) {
        label = like && !like->label ? "none" : like && has_column(c, like->label) ? like->label : usual_label(c, like);
        if (strcmp(label, "none") != 0)
            CVY_TRY(set_role(c, label, COLUMN_LABEL, 0));
        if (!like)
            CVY_TRY(note_other_label(c, label));
    }
    c->label = -1;
    for (int i = 0; i < c->ncolumn; i++)
        if (c->column[i].role == COLUMN_LABEL)
            c->label = i;
    return CVY_OK;
}

/* ---- columns of the training, which are found by their names ---- */

/* Lists names for a message: those of `name`, or without it those of the columns that have this role. */
static const char *list_names(const struct csv *c, const char *const *name, int64_t n, int role, char *text,
                              size_t room)
{
    size_t at = 0;
    int listed = 0;
    text[0] = 0;
    for (int64_t i = 0; i < n && at + 1 < room; i++) {
        const char *word = name ? name[i] : c->column[i].role == role || role < 0 ? c->column[i].name : NULL;
        if (!word)
            continue;
        word = listed >= 12 ? ".." : *word ? word : "\"\"";
        at += (size_t)snprintf(text + at, room - at, "%s%s", listed ? ", " : "", word);
        if (++listed > 12)
            break;
    }
    return text;
}

/* The place that a name has among n names: the search begins at *from, so that equal orders are found at once. -1: it
 * is not among them, or taken. */
static int64_t place_of(const char *name, const char *const *names, int64_t n, const uint8_t *taken, int64_t *from)
{
    for (int64_t k = 0; k < n; k++) {
        const int64_t at = (*from + k) % n;
        if (!taken[at] && strcmp(names[at], name) == 0) {
            *from = (at + 1) % n;
            return at;
        }
    }
    return -1;
}

/* Puts columns of a role at the places of these names. A column without a place is dropped. *found_out: how many have
 * one. missing_out: the first name without a column; NULL: none. */
static cvy_status place_columns(struct csv *c, int role, const char *const *names, int64_t n, int64_t *found_out,
                                const char **missing_out)
{
    uint8_t *taken = NULL;
    int64_t from = 0, found = 0;
    *missing_out = NULL;
    CVY_TRY(cvy_mem_alloc((size_t)n, &taken));
    for (int i = 0; i < c->ncolumn; i++) {
        struct column *to = &c->column[i];
        const int64_t at = to->role == role ? place_of(to->name, names, n, taken, &from) : -1;
        if (to->role != role)
            continue;
        to->role = at < 0 ? COLUMN_UNKNOWN : role;
        if (at < 0)
            continue;
        to->slot = at;
        taken[at] = 1;
        found++;
    }
    for (int64_t i = n; i-- > 0;)
        if (!taken[i])
            *missing_out = names[i];
    cvy_mem_free(&taken);
    *found_out = found;
    return CVY_OK;
}

/* A column that was given by its number must be the one that the training had. */
static cvy_status check_numbered(const struct csv *c, const char *option, const char *what, const char *known)
{
    int64_t number = 0;
    int i = 0;
    if (!option || !known || has_column(c, option) ||
        !cvy_line_part_int((cvy_line_part){option, strlen(option)}, &number))
        return CVY_OK;
    CVY_TRY(find_column(c, option, &i));
    CVY_CHECK(strcmp(c->column[i].name, known) == 0, CVY_E_CONFIG,
              "column %s, the %s, is \"%s\" here and \"%s\" in the training data: give it by its name", option, what,
              c->column[i].name, known);
    return CVY_OK;
}

/* Says that columns of one name cannot be told apart. */
static cvy_status note_doubles(const struct csv *c, const char *const *names, int64_t n)
{
    cvy_index seen = {0};
    cvy_status status = CVY_OK;
    const char *twice = NULL;
    for (int64_t i = 0; i < n && !twice && status == CVY_OK; i++) {
        twice = cvy_index_find(&seen, names[i]) >= 0 ? names[i] : NULL;
        status = cvy_index_add(&seen, names[i], (int)i);
    }
    cvy_index_free(&seen);
    CVY_TRY(status);
    return twice ? cvy_reader_note(c->info,
                                   "%s: the training data have two columns \"%s\", which cannot be told apart: check "
                                   "that they are in the same order here, or give each a name of its own",
                                   c->index.file.path, twice)
                 : CVY_OK;
}

/* Brings the columns into the order of the training. */
static cvy_status follow_columns(struct csv *c, const struct csv_opts *o, const cvy_columns *like)
{
    char known[512], own[512];
    const char *missing = NULL;
    int64_t found = 0;
    CVY_TRY(check_numbered(c, o->label, "label", like->label));
    CVY_TRY(check_numbered(c, o->weight, "weight", like->weight));
    CVY_TRY(note_doubles(c, like->x, like->nx));
    CVY_TRY(place_columns(c, COLUMN_X, like->x, like->nx, &found, &missing));
    CVY_CHECK(!missing, CVY_E_CONFIG,
              "no column \"%s\": the inputs of the training data are the columns %s, and this table has %s", missing,
              list_names(c, like->x, like->nx, 0, known, sizeof known),
              list_names(c, NULL, c->ncolumn, -1, own, sizeof own));
    for (int i = 0; i < c->ncolumn; i++)
        CVY_CHECK(
            c->column[i].role != COLUMN_UNKNOWN || !is_input(like, c->column[i].name), CVY_E_CONFIG,
            "column %d is called \"%s\", as one before it, and the training data have fewer of that name: give each "
            "a name of its own",
            i + 1, c->column[i].name);
    if (c->nx > found)
        CVY_TRY(cvy_reader_note(c->info, "%s: columns that the training data do not have are not read: %s",
                                c->index.file.path, list_names(c, NULL, c->ncolumn, COLUMN_UNKNOWN, own, sizeof own)));
    c->nx = found;
    if (c->ny == 0 || c->ny != like->ny)
        return CVY_OK;
    CVY_TRY(place_columns(c, COLUMN_Y, like->y, like->ny, &found, &missing));
    CVY_CHECK(!missing, CVY_E_CONFIG, "no column \"%s\" among y: y of the training data is the columns %s", missing,
              list_names(c, like->y, like->ny, 0, known, sizeof known));
    return CVY_OK;
}

/* Refuses inputs that hold no number, all at once. */
static cvy_status check_inputs(const struct csv *c)
{
    enum { SHOWN = 6 };
    char text[700];
    size_t at = 0;
    int n = 0, first = 0;
    for (int i = 0; i < c->ncolumn; i++) {
        const struct column *k = &c->column[i];
        char name[CSV_SHOWN], word[CSV_SHOWN];
        if (k->role != COLUMN_X || k->look.text == 0 || k->look.number + k->look.truth + k->look.other > 0)
            continue;
        first = n++ == 0 ? i : first;
        if (n <= SHOWN && at < sizeof text)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%d (%s%s\"%s\"%s)", n > 1 ? ", " : "", i + 1,
                                   c->header ? cvy_csv_show(k->name, name) : "", c->header ? ": " : "",
                                   cvy_csv_show(k->look.word, word), cvy_csv_text_kind(k->look.word));
    }
    if (n == 0)
        return CVY_OK;
    char as_label[60] = "";
    if (c->label < 0)
        snprintf(as_label, sizeof as_label, "`label: %d` makes a column the class, ", first + 1);
    CVY_FAIL(
        CVY_E_FORMAT,
        "no number in column%s %s%s: %s`drop: %d` leaves it out, and `group: %d` makes it what samples belong to, for "
        "data.val",
        n > 1 ? "s" : "", text, n > SHOWN ? " and others" : "", as_label, first + 1, first + 1);
}

cvy_status cvy_csv_set_inputs(struct csv *c, const struct csv_opts *o, const cvy_columns *like)
{
    double elems = 1;
    if (!c->header)
        like = NULL;
    for (int i = 0; i < c->ncolumn; i++)
        if (c->column[i].role == COLUMN_X)
            c->column[i].slot = c->nx++;
    if (like)
        CVY_TRY(follow_columns(c, o, like));
    CVY_TRY(check_inputs(c));
    CVY_CHECK(c->nx > 0, CVY_E_CONFIG, "none of the %d columns remains as input%s", c->ncolumn,
              c->column[0].role == COLUMN_INDEX ? " (`index: input` of the source makes the index of the rows one)"
                                                : "");
    CVY_CHECK(o->shape.count <= CVY_NDIM_MAX, CVY_E_CONFIG, "shape has %d axes, expected at most %d", o->shape.count,
              CVY_NDIM_MAX);
    c->shape = o->shape.count > 0 ? cvy_shape_make(o->shape.count, o->shape.at) : (cvy_shape){1, {c->nx}};
    for (int i = 0; i < c->shape.ndim; i++)
        elems *= (double)c->shape.dim[i];
    CVY_CHECK(elems == (double)c->nx, CVY_E_CONFIG, "shape has %.0f elements, and %lld columns are input%s", elems,
              (long long)c->nx, like ? ", those of the training data" : "");
    return CVY_OK;
}

cvy_status cvy_csv_describe_columns(const struct csv *c, cvy_columns *out)
{
    const char **x = NULL, **y = NULL;
    cvy_columns names = {.nx = c->nx, .ny = c->ny};
    if (!c->header)
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(c->pool, (size_t)c->nx * sizeof *x, &x));
    CVY_TRY(cvy_pool_alloc(c->pool, (size_t)CVY_MAX(c->ny, 1) * sizeof *y, &y));
    for (int i = 0; i < c->ncolumn; i++) {
        const struct column *from = &c->column[i];
        if (from->role == COLUMN_X)
            x[from->slot] = from->name;
        else if (from->role == COLUMN_Y)
            y[from->slot] = from->name;
        else if (from->role == COLUMN_LABEL)
            names.label = from->name;
        else if (from->role == COLUMN_WEIGHT)
            names.weight = from->name;
    }
    names.x = x;
    names.y = y;
    *out = names;
    return CVY_OK;
}
