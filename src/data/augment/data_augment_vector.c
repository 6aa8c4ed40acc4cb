/*
 * data_augment_vector.c: vectors along the axes of pictures, in x and in y: which channels are their components, how
 * mirrors and rotations turn them, and what is said about those that stay. The operation `input` says what x is;
 * data.roles of a job file becomes it.
 *
 * Components are turned in the units in which they are stored: a component whose mean was subtracted has no sign of its
 * own. So the linear steps before a turn may only scale. Those after it may do anything.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text/base_text.h"
#include "data/augment/data_augment.h"
#include "data/data_described.h"
#include "data/data_names.h"

static const cvy_option input_opts[] = {
    {"role", CVY_TYPE_CHOICE, CVY_FIELD(cvy_operation_opts, role), NULL, CVY_INPUT_ROLE_WORDS, "",
     "target: the network imitates x; vector: channels of x are components along the axes of the picture, and turn "
     "with "
     "it; none: no channel is"},
    {"order", CVY_TYPE_CHOICE, CVY_FIELD(cvy_operation_opts, order), "unknown", CVY_ORDER_WORDS, "",
     "of the two channels of a vector; required for it"},
    {"components", CVY_TYPE_TREE, CVY_FIELD(cvy_operation_opts, components), "", "", "",
     "of a vector: its two channels, by index or by name; [0, 1] by default; four or more are several vectors"},
    {"vertical", CVY_TYPE_CHOICE, CVY_FIELD(cvy_operation_opts, vertical), "unknown", CVY_VERTICAL_WORDS, "",
     "of a vector: which way its vertical component counts: down, as rows do (the default), or up"},
    {"target", CVY_TYPE_BOOL, CVY_FIELD(cvy_operation_opts, target), "false", "", "",
     "x is also the target, which the network imitates"},
    {0},
};

/* ---- which channels ---- */

static int64_t find_name(const char *const *name, int64_t n, const char *wanted)
{
    int64_t at = -1;
    for (int64_t i = n - 1; i >= 0; i--)
        at = strcmp(name[i], wanted) == 0 ? i : at;
    return at;
}

/* The index that one item says, by number or by name. */
static cvy_status read_component(const char *of, const char *role, const cvy_shape *shape, const char *const *name,
                                 int64_t nname, const cvy_tree *item, int64_t *out)
{
    char text[CVY_DATA_NAMES_TEXT];
    CVY_CHECK(item->kind == CVY_TREE_SCALAR && item->text, CVY_E_CONFIG,
              "%s: %s: components is a list of indices or of names, such as [0, 1]", cvy_tree_where(item), role);
    if (!item->quoted && cvy_text_int(item->text, out) == CVY_OK) {
        CVY_CHECK(*out >= 0 && *out < shape->dim[0], CVY_E_CONFIG, "%s: %s: component %lld, but %s is %s",
                  cvy_tree_where(item), role, (long long)*out, of, cvy_shape_text(shape));
        return CVY_OK;
    }
    CVY_CHECK(nname > 0, CVY_E_CONFIG,
              "%s: %s: component %s, but the source has no names for the numbers of %s: give their indices, such as "
              "[0, 1]",
              cvy_tree_where(item), role, item->text, of);
    CVY_CHECK(
        nname == shape->dim[0], CVY_E_CONFIG,
        "%s: %s: component %s, but %lld names are joined to %lld channels of %s: give the indices of the channels",
        cvy_tree_where(item), role, item->text, (long long)nname, (long long)shape->dim[0], of);
    *out = find_name(name, nname, item->text);
    CVY_CHECK(*out >= 0, CVY_E_CONFIG, "%s: %s: %s has no component %s among %s", cvy_tree_where(item), role, of,
              item->text, cvy_data_names_text(name, nname, text));
    CVY_CHECK(find_name(name + *out + 1, nname - *out - 1, item->text) < 0, CVY_E_CONFIG,
              "%s: %s: two numbers of %s are called %s: give the index of one of them", cvy_tree_where(item), role, of,
              item->text);
    return CVY_OK;
}

cvy_status cvy_pairs_read(const cvy_augment *a, const char *of, const char *role, const cvy_shape *shape,
                          const char *const *name, int64_t nname, const cvy_tree *list, const cvy_tree *at,
                          cvy_ints *out)
{
    const int count = !list ? 0 : list->kind == CVY_TREE_LIST ? list->count : 1;
    *out = (cvy_ints){0};
    CVY_CHECK(count > 0 || shape->dim[0] == 2, CVY_E_CONFIG,
              "%s: %s: %s is %s: say which two of its %lld %s they are, as in {role: %s, components: [0, 1]}",
              cvy_tree_where(at), role, of, cvy_shape_text(shape), (long long)shape->dim[0],
              shape->ndim > 1 ? "channels" : "numbers", role);
    CVY_CHECK(count % 2 == 0 && count <= CVY_LIST_MAX, CVY_E_CONFIG,
              "%s: %s: %d components, expected pairs of indices, at most %d", cvy_tree_where(at), role, count,
              CVY_LIST_MAX);
    if (count == 0)
        *out = (cvy_ints){2, {0, 1}};
    if (!a->random && nname == 0) /* data that are not turned need no names */
        return CVY_OK;
    for (int i = 0; i < count; i++) {
        const cvy_tree *item = list->child[i];
        CVY_TRY(read_component(of, role, shape, name, nname, item, &out->at[i]));
        for (int k = 0; k < i; k++)
            CVY_CHECK(out->at[k] != out->at[i], CVY_E_CONFIG, "%s: %s: component %s is named twice",
                      cvy_tree_where(item), role, item->text);
        out->count = i + 1;
    }
    return CVY_OK;
}

static cvy_status set_vectors(cvy_augment *a, const cvy_operation *s, const cvy_tree *at)
{
    CVY_CHECK(s->o.order != CVY_ORDER_UNKNOWN, CVY_E_CONFIG,
              "%s: a vector needs its order: row_column (the vertical component first) or x_y (the horizontal one "
              "first), as in {role: vector, order: x_y}",
              cvy_tree_where(at));
    CVY_CHECK(a->spatial, CVY_E_CONFIG,
              "%s: vector: x is %s, expected a picture [C, H, W]: nothing turns other samples", cvy_tree_where(at),
              cvy_shape_text(&a->shape));
    CVY_CHECK(a->dtype != CVY_DTYPE_U8, CVY_E_CONFIG,
              "%s: vector: x is bytes, 0 to 255, which have no sign: store components as floats or signed integers",
              cvy_tree_where(at));
    a->vectors = (cvy_pairs){.order = s->o.order, .vertical = s->o.vertical};
    return cvy_pairs_read(a, "x", "vector", &a->shape, a->columns.x, a->columns.nx, s->o.components, at,
                          &a->vectors.at);
}

static cvy_status set_input(cvy_augment *a, const cvy_operation *s, const cvy_tree *at)
{
    const cvy_input_role role = (cvy_input_role)s->o.role;
    CVY_CHECK(a->input == CVY_INPUT_UNKNOWN, CVY_E_CONFIG, "%s: x has two roles", cvy_tree_where(at));
    for (int i = 0; i < a->noperation; i++)
        CVY_CHECK(!a->operation[i].def->moves_pixels, CVY_E_CONFIG,
                  "%s: the role of x stands after %s, which it is about: put it first", cvy_tree_where(at),
                  a->operation[i].def->name);
    CVY_CHECK(role == CVY_INPUT_VECTOR ||
                  (!s->o.components && s->o.order == CVY_ORDER_UNKNOWN && s->o.vertical == CVY_VERTICAL_UNKNOWN),
              CVY_E_CONFIG, "%s: order, components and vertical belong to the role vector", cvy_tree_where(at));
    a->input = role;
    if (role == CVY_INPUT_TARGET || s->o.target) {
        a->target.info.is_input = 1;
        a->target.info.scaling = (cvy_scaling){0};
    }
    return role == CVY_INPUT_VECTOR ? set_vectors(a, s, at) : CVY_OK;
}

int cvy_role_has_names(const cvy_tree *steps, const char *of)
{
    const char *operation = strcmp(of, "x") == 0 ? "input" : "target";
    int64_t index = 0;
    for (int i = 0; steps && steps->kind == CVY_TREE_LIST && i < steps->count; i++) {
        const cvy_tree *role = steps->child[i]->kind == CVY_TREE_MAP ? cvy_tree_get(steps->child[i], operation) : NULL;
        if (!role || role->kind != CVY_TREE_MAP || !cvy_tree_get(role, "order"))
            continue; /* only points and vectors have an order */
        const cvy_tree *list = cvy_tree_get(role, "components");
        const cvy_tree *first = list && list->kind == CVY_TREE_LIST && list->count > 0 ? list->child[0] : NULL;
        if (!first || !first->text || (!first->quoted && cvy_text_int(first->text, &index) == CVY_OK))
            return 0;
    }
    return 1;
}

/* ---- turning ---- */

static int sign_of(double value)
{
    return (value > 0) - (value < 0);
}

/* How the components of a vector change: each becomes the sign times itself, or times the other one. */
typedef struct turning {
    int first;         /* which of a pair is the vertical one */
    int is_exchange;   /* 1: each becomes the other */
    float row, column; /* the signs */
} turning;

static turning turning_of(const cvy_pairs *v, const cvy_move *m)
{
    turning t = {.first = v->order == CVY_ORDER_ROW_COLUMN ? 0 : 1, .is_exchange = sign_of(m->row[0]) == 0};
    const int up = t.is_exchange && v->vertical == CVY_VERTICAL_UP ? -1 : 1;
    t.row = (float)(up * sign_of(m->row[t.is_exchange]));
    t.column = (float)(up * sign_of(m->column[!t.is_exchange]));
    return t;
}

static void exchange_planes(float *a, float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const float kept = a[i];
        a[i] = b[i];
        b[i] = kept;
    }
}

static void multiply(float *x, int64_t n, float by)
{
    for (int64_t i = 0; i < n; i++)
        x[i] *= by;
}

/* The scaling of the picture does not change lengths. */
void cvy_pairs_turn(const cvy_pairs *v, const cvy_move *m, int64_t plane, float *y)
{
    const turning t = turning_of(v, m);
    for (int k = 0; k < v->at.count; k += 2) {
        float *row = y + v->at.at[k + t.first] * plane, *column = y + v->at.at[k + 1 - t.first] * plane;
        if (t.is_exchange)
            exchange_planes(row, column, plane);
        multiply(row, plane, t.row);
        multiply(column, plane, t.column);
    }
}

/* Signs are recorded with the linear steps, because the picture will be touched for these anyway. */
cvy_status cvy_vectors_turn(cvy_augment_work *w, const cvy_move *m)
{
    const cvy_pairs *v = w->vectors;
    const turning t = turning_of(v, m);
    const int64_t plane = w->pic.H * w->pic.W;
    float *x = w->pic.data;
    CVY_TRY(cvy_augment_widen(w, w->pic.C));
    for (int k = 0; k < v->at.count; k += 2) {
        const int64_t row = v->at.at[k + t.first], column = v->at.at[k + 1 - t.first];
        if (t.is_exchange) { /* no step before a turn shifts components: cvy_vectors_follow() */
            const double by = w->affine.by[row];
            exchange_planes(x + row * plane, x + column * plane, plane);
            w->affine.by[row] = w->affine.by[column];
            w->affine.by[column] = by;
        }
        w->affine.by[row] *= (double)t.row;
        w->affine.by[column] *= (double)t.column;
    }
    return CVY_OK;
}

/* ---- what may stand before a turn ---- */

static double at_channel(const double *list, int64_t n, int64_t c)
{
    return list[n == 1 ? 0 : c];
}

/* Whether vectors can be turned after the step: it shifts no component, and if components are exchanged it scales both
 * alike. */
static int keeps_directions(const cvy_pairs *v, int is_exchange, const cvy_value_step *step)
{
    int keeps = 1;
    for (int k = 0; k < v->at.count; k += 2) {
        const int64_t a = v->at.at[k], b = v->at.at[k + 1];
        const int is_alike = at_channel(step->by, step->n, a) == at_channel(step->by, step->n, b);
        keeps = keeps && at_channel(step->shift, step->n, a) == 0 && at_channel(step->shift, step->n, b) == 0 &&
                (is_alike || !is_exchange);
    }
    return keeps;
}

cvy_status cvy_vectors_follow(cvy_augment *a, const cvy_operation *s, const cvy_tree *at)
{
    if (a->input != CVY_INPUT_VECTOR || !s->def->turns || !s->def->moves_pixels(s))
        return CVY_OK;
    for (int i = 0; i < a->noperation; i++) {
        const cvy_operation *before = &a->operation[i];
        cvy_value_step step;
        int keeps = before->def->moves_pixels || (before->def->only_random && before->o.value == 0);
        if (before->def->describe) {
            CVY_TRY(before->def->describe(before, a->pool, &step));
            keeps = keeps_directions(&a->vectors, s->def->turns == CVY_TURN_EXCHANGE, &step);
        }
        CVY_CHECK(keeps, CVY_E_CONFIG,
                  "%s: %s turns the vectors of x, but %s before it changes their components in different ways: put %s "
                  "before %s",
                  cvy_tree_where(at), s->def->name, before->def->name, s->def->name, before->def->name);
    }
    return CVY_OK;
}

/* ---- what is said of vectors that stay ---- */

enum { NAMES_SHOWN = 4, NAMES_MAX = 4096 }; /* more names are not compared with each other */

/* A word of a name that means a component of a vector, with or without the other one. */
static int is_component_word(const char *word, size_t n)
{
    static const char *const known[] = {"ua",   "va",   "uas",   "vas",        "uwnd",     "vwnd",     "uwind", "vwind",
                                        "ugrd", "vgrd", "ugos",  "vgos",       "usi",      "vsi",      "vx",    "vy",
                                        "ux",   "uy",   "zonal", "meridional", "eastward", "northward"};
    int is = n > 0 && (tolower((unsigned char)word[0]) == 'u' || tolower((unsigned char)word[0]) == 'v');
    for (size_t i = 1; i < n && is; i++)
        is = isdigit((unsigned char)word[i]) != 0;
    for (int i = 0; i < CVY_COUNT(known) && !is; i++)
        is = strlen(known[i]) == n && strncasecmp(known[i], word, n) == 0;
    return is;
}

static int is_component(const char *name)
{
    int is = 0;
    for (const char *at = name; *at && !is;) {
        size_t n = 0;
        while (isalnum((unsigned char)at[n]))
            n++;
        is = is_component_word(at, n);
        at += n + (at[n] != '\0');
    }
    return is;
}

/* Whether two names differ in one letter alone, which is u and v or x and y, at the begin or the end of a word. */
static int are_components(const char *a, const char *b)
{
    size_t at = 0;
    while (a[at] && a[at] == b[at])
        at++;
    const int p = tolower((unsigned char)a[at]), q = tolower((unsigned char)b[at]);
    const int differ =
        (p == 'u' && q == 'v') || (p == 'v' && q == 'u') || (p == 'x' && q == 'y') || (p == 'y' && q == 'x');
    const int begins = at == 0 || !isalnum((unsigned char)a[at - 1]),
              ends = differ && !isalpha((unsigned char)a[at + 1]);
    return differ && (begins || ends) && strcmp(a + at + 1, b + at + 1) == 0;
}

/* Lists the names that look like components: "u10 and v10". Returns how many there are. */
static int64_t list_components(const char *const *name, int64_t n, cvy_text *out)
{
    int64_t found[NAMES_SHOWN] = {0}, count = 0;
    for (int64_t i = 0; i < n && n <= NAMES_MAX; i++) {
        int is = is_component(name[i]);
        for (int64_t k = 0; k < n && !is; k++)
            is = are_components(name[i], name[k]);
        if (is && count < NAMES_SHOWN)
            found[count] = i;
        count += is;
    }
    for (int64_t i = 0; i < CVY_MIN(count, NAMES_SHOWN); i++)
        cvy_text_add(out, "%s%s", i == 0 ? "" : i + 1 == count ? " and " : ", ", name[found[i]]);
    if (count > NAMES_SHOWN)
        cvy_text_add(out, " and %lld more", (long long)(count - NAMES_SHOWN));
    return count;
}

/* The first operation that turns pictures; NULL: none does. */
static const char *name_of_turn(const cvy_augment *a)
{
    for (int i = 0; i < a->noperation; i++)
        if (a->operation[i].def->turns && a->operation[i].def->moves_pixels(&a->operation[i]))
            return a->operation[i].def->name;
    return NULL;
}

static const char *order_word(int order)
{
    return order == CVY_ORDER_ROW_COLUMN ? "row_column" : "x_y";
}

/* x stays. Bytes, and a single channel, are no vectors unless their names say so. */
static void note_input(const cvy_augment *a, const char *turn, const char *names, int64_t count, cvy_text *out)
{
    const int is_y = a->target.exists && a->target.role == CVY_TARGET_VECTOR;
    const int64_t channels = a->stored.dim[0];
    const char *also = a->target.info.is_input ? ", target: true" : "";
    if (a->input == CVY_INPUT_VECTOR || a->input == CVY_INPUT_NONE || (a->dtype == CVY_DTYPE_U8 && count == 0))
        return;
    if (is_y && channels > 1)
        cvy_text_add(out,
                     "data.augment: %s turns the vectors of y, and the %lld channels of x stay as they are%s%s: ", turn,
                     (long long)channels, count > 0 ? ", among them " : "", names);
    else if (count > 0)
        cvy_text_add(out,
                     "data.augment: %s mirrors or rotates x, and its channel%s %s, which by name %s of vectors, "
                     "stay%s as %s: ",
                     turn, count > 1 ? "s" : "", names, count > 1 ? "are components" : "is a component",
                     count > 1 ? "" : "s", count > 1 ? "they are" : "it is");
    else
        return;
    if (a->nspace != 2) {
        cvy_text_add(out,
                     "vectors of volumes are not turned: leave %s out, or say data.roles: {x: none} if they are none\n",
                     turn);
        return;
    }
    cvy_text_add(out,
                 "if x has components of vectors, say so by data.roles: {x: {role: vector, order: %s, components: "
                 "[..]%s}}, otherwise by data.roles: {x: %s}\n",
                 is_y ? order_word(a->target.pairs.order) : "x_y", also, *also ? "{role: none, target: true}" : "none");
}

/* y stays. If it is numbers without a role, may_be_left says so. */
static void note_target(const cvy_augment *a, const char *turn, const char *names, int64_t count, cvy_text *out)
{
    const cvy_target *t = &a->target;
    const int is_left =
        t->exists && (t->role == CVY_TARGET_FIELD || t->role == CVY_TARGET_UNKNOWN) && !t->info.may_be_left;
    if (!is_left || (count == 0 && (a->input != CVY_INPUT_VECTOR || t->info.nchannels < 2)))
        return;
    cvy_text_add(out, "data.augment: %s %s, and y", turn,
                 a->input == CVY_INPUT_VECTOR ? "turns the vectors of x" : "mirrors or rotates x");
    if (count > 0)
        cvy_text_add(out, ", of which %s by name %s of a vector,", names,
                     count > 1 ? "are components" : "is a component");
    if (a->nspace != 2) {
        cvy_text_add(out,
                     " keeps its values: vectors of volumes are not turned: leave %s out if y has some, otherwise %s\n",
                     turn, t->role == CVY_TARGET_FIELD ? "nothing is wrong" : "say data.roles: {y: none}");
        return;
    }
    cvy_text_add(out,
                 " keeps its values: if it has components of vectors, both of each, say so by data.roles: {y: {role: "
                 "vector, order: %s, components: [..]}}, otherwise %s\n",
                 a->input == CVY_INPUT_VECTOR ? order_word(a->vectors.order) : "x_y",
                 t->role == CVY_TARGET_FIELD ? "nothing is wrong" : "by data.roles: {y: none}");
}

/* Rotations need to know which way the vertical component counts. */
static void note_vertical(const cvy_augment *a, const cvy_reader_info *info, cvy_text *out)
{
    const int in_x = a->input == CVY_INPUT_VECTOR && a->vectors.vertical == CVY_VERTICAL_UNKNOWN,
              in_y = a->target.role == CVY_TARGET_VECTOR && a->target.pairs.vertical == CVY_VERTICAL_UNKNOWN;
    const cvy_coordinates *rows =
        info->described.nx > 0 && info->described.x->ndim == 3 ? &info->described.x->axis[1] : NULL;
    int exchanges = 0;
    for (int i = 0; i < a->noperation; i++)
        exchanges |=
            a->operation[i].def->turns == CVY_TURN_EXCHANGE && a->operation[i].def->moves_pixels(&a->operation[i]);
    if (exchanges && (in_x || in_y) && rows && cvy_axis_heads_north(rows) < 0)
        cvy_text_add(
            out,
            "data.augment: rotate90 turns the vectors of %s, and rows begin in the north (%s %.6g to %.6g): if "
            "the vertical component counts northwards, say so by `vertical: up` in data.roles, otherwise by "
            "`vertical: down`\n",
            in_x && in_y ? "x and y"
            : in_x       ? "x"
                         : "y",
            rows->name, rows->value[0], rows->value[rows->n - 1]);
}

/* The names of the channels of x, as far as they are known; *n: their number. */
static cvy_status names_of_channels(const cvy_augment *a, const cvy_reader_info *info, const char *const **out,
                                    int64_t *n)
{
    const cvy_columns *c = &a->columns;
    const cvy_descriptions *d = &info->described;
    const int is_described = d->nx == a->stored.dim[0];
    const char **name = NULL;
    *n = c->x && c->nx == a->stored.dim[0] ? c->nx : is_described ? d->nx : 0;
    *out = c->x;
    if (*n == 0 || *n == c->nx)
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(a->pool, sizeof *name * (size_t)*n, &name));
    for (int64_t i = 0; i < *n; i++)
        name[i] = d->x[i].name ? d->x[i].name : "";
    *out = name;
    return CVY_OK;
}

cvy_status cvy_vectors_note(cvy_augment *a, const cvy_reader_info *info)
{
    const char *turn = a->random ? name_of_turn(a) : NULL;
    const cvy_columns *c = &a->columns;
    const char *only[] = {info->y_name}, *const *in_x = NULL;
    int64_t nx = 0;
    const int is_list = c->y && c->ny == a->target.info.nchannels;
    cvy_text names[2] = {{0}}, out = {0};
    int64_t count[2] = {0};
    cvy_status status = CVY_OK;
    if (!turn || a->nspace == 1) /* a series that runs backwards turns nothing */
        return CVY_OK;
    CVY_TRY(names_of_channels(a, info, &in_x, &nx));
    count[0] = list_components(in_x, nx, &names[0]);
    if (a->target.exists && (is_list || info->y_name))
        count[1] = list_components(is_list ? c->y : only, is_list ? c->ny : 1, &names[1]);
    note_input(a, turn, names[0].data ? names[0].data : "", count[0], &out);
    note_target(a, turn, names[1].data ? names[1].data : "", count[1], &out);
    note_vertical(a, info, &out);
    status = names[0].status != CVY_OK ? names[0].status : names[1].status != CVY_OK ? names[1].status : out.status;
    if (status == CVY_OK && out.bytes > 0)
        status = cvy_pool_strdup(a->pool, out.data, (char **)&a->left);
    cvy_text_free(&names[0]);
    cvy_text_free(&names[1]);
    cvy_text_free(&out);
    return status;
}

CVY_AUGMENT_DEFINE(input) = {
    .name = "input",
    .options = input_opts,
    .short_key = "role",
    .set_target = set_input,
};
