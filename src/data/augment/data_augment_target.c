/*
 * data_augment_target.c: what the target y of a sample is: how it follows operations that move the pixels of x, and its
 * scaling. The operations `target` and `normalize_target` say it; data.roles and data.normalize_targets of a job file
 * become these.
 *
 * It runs in the loader's threads, after x. A map passes through the same operations as x, with the same random
 * numbers. Points and vectors are numbers: they are multiplied with the matrix that the operations on x have recorded.
 * The scaling comes last, in f64.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/augment/data_augment.h"

#include <math.h>
#include <string.h>

static const cvy_option target_opts[] = {
    {"role", CVY_TYPE_CHOICE, CVY_FIELD(cvy_operation_opts, role), NULL, CVY_TARGET_ROLE_WORDS, "",
     "how y follows operations that move pixels: field: a value for each pixel; label_map: a label for each pixel; "
     "point: positions in pixels; vector: components along the axes of x; none: it stays as it is"},
    {"order", CVY_TYPE_CHOICE, CVY_FIELD(cvy_operation_opts, order), "unknown", CVY_ORDER_WORDS, "",
     "of the two numbers of a point or vector; required for these"},
    {"components", CVY_TYPE_TREE, CVY_FIELD(cvy_operation_opts, components), "", "", "",
     "of a point or vector: its two numbers, or channels, along the first axis of y, by index or by name; [0, 1] by "
     "default; four or more are several of them"},
    {"vertical", CVY_TYPE_CHOICE, CVY_FIELD(cvy_operation_opts, vertical), "unknown", CVY_VERTICAL_WORDS, "",
     "of a vector: which way its vertical component counts: down, as rows do (the default), or up, such as a northward "
     "one of a map "
     "whose first row is in the north"},
    {"classes", CVY_TYPE_INT, CVY_FIELD(cvy_operation_opts, classes), "0", "0..1000000", "",
     "of a label_map: the number of classes, whose labels are 0, 1, ..; required for it"},
    {"ignore", CVY_TYPE_INTS, CVY_FIELD(cvy_operation_opts, ignored), "[]", "", "",
     "of a label_map: labels of pixels that count in no loss and no score"},
    {0},
};
static const cvy_option normalize_target_opts[] = {
    {"mean", CVY_TYPE_TREE, CVY_FIELD(cvy_operation_opts, mean), NULL, "", "",
     "subtracted first, one number, or one for each channel of a map or number of a vector"},
    {"std", CVY_TYPE_TREE, CVY_FIELD(cvy_operation_opts, std), NULL, "", "", "then divided by, likewise"},
    {0},
};

/* ---- reading the list ---- */

/* Whether y has the positions of x, [positions...] or [C, positions...]: the height and width of a picture, or those of
 * a volume or a series. */
static int is_over_positions(const cvy_augment *a, const cvy_shape *y)
{
    const int n = a->shape.ndim - 1;
    int fits = n >= 1 && (y->ndim == n || y->ndim == n + 1);
    for (int d = 1; d <= n && fits; d++)
        fits = y->dim[y->ndim - d] == a->shape.dim[n + 1 - d];
    return fits;
}

void cvy_target_begin(cvy_augment *a, const cvy_reader_info *info)
{
    cvy_target *t = &a->target;
    *t = (cvy_target){.exists = info->has_y, .role = CVY_TARGET_UNKNOWN};
    a->mask = a->mask_stored = info->has_weight ? info->weight_shape : (cvy_shape){0};
    a->mask_fits = a->nspace > 0 && !a->varying && is_over_positions(a, &a->mask);
    if (!info->has_y)
        return;
    t->stored = t->info.shape = info->y_shape;
    t->info.dtype = CVY_DTYPE_F32;
    const cvy_shape *y = &t->info.shape;
    const int is_one_map = y->ndim >= 2 && y->ndim == a->shape.ndim - 1 && is_over_positions(a, y);
    t->info.nchannels = y->ndim == 0 || is_one_map ? 1 : y->dim[0];
}

static cvy_status check_map(const cvy_augment *a, const char *role, const cvy_tree *at)
{
    CVY_CHECK(!a->varying, CVY_E_CONFIG,
              "%s: %s: the sizes of the pictures are not known before they are decoded, so a target with a value for "
              "each pixel cannot be moved with them: store x as arrays of one size",
              cvy_tree_where(at), role);
    CVY_CHECK(is_over_positions(a, &a->target.info.shape), CVY_E_CONFIG,
              "%s: %s: y is %s, expected %s of x, which is %s", cvy_tree_where(at), role,
              cvy_shape_text(&a->target.info.shape), a->spatial ? "the height and width" : "the positions",
              cvy_shape_text(&a->shape));
    return CVY_OK;
}

/* Points and vectors: which numbers they are. A list of points [K, 2] needs no indices. */
static cvy_status set_components(cvy_augment *a, const cvy_operation *s, const char *role, const cvy_tree *at)
{
    cvy_target *t = &a->target;
    const cvy_shape *y = &t->info.shape;
    const int is_list = t->role == CVY_TARGET_POINT && y->ndim == 2;
    CVY_CHECK(t->pairs.order != CVY_ORDER_UNKNOWN, CVY_E_CONFIG,
              "%s: a %s needs its order: row_column (the vertical number first) or x_y (the horizontal one first), as "
              "in {role: %s, order: x_y}",
              cvy_tree_where(at), role, role);
    CVY_CHECK(y->ndim == 1 || (is_list && y->dim[1] == 2 && !s->o.components) ||
                  (t->role == CVY_TARGET_VECTOR && y->ndim == 3),
              CVY_E_CONFIG, "%s: %s: y is %s, expected %s", cvy_tree_where(at), role, cvy_shape_text(y),
              t->role == CVY_TARGET_POINT ? "a list of numbers, or of points [K, 2]"
                                          : "a list of numbers, or a field [C, H, W]");
    CVY_CHECK(t->role == CVY_TARGET_VECTOR || s->o.vertical == CVY_VERTICAL_UNKNOWN, CVY_E_CONFIG,
              "%s: %s: `vertical` belongs to vectors; rows count downwards", cvy_tree_where(at), role);
    return is_list ? CVY_OK
                   : cvy_pairs_read(a, "y", role, y, a->columns.y, a->columns.ny, s->o.components, at, &t->pairs.at);
}

static cvy_status set_labels(cvy_target *t, const cvy_operation *s, int nspace, const cvy_tree *at)
{
    cvy_shape *y = &t->info.shape;
    CVY_CHECK(s->o.classes > 0, CVY_E_CONFIG,
              "%s: a label_map needs its number of classes, as in {role: label_map, classes: 3}", cvy_tree_where(at));
    CVY_CHECK(y->ndim == nspace || (y->ndim == nspace + 1 && y->dim[0] == 1), CVY_E_CONFIG,
              "%s: label_map: y is %s, expected one label for each %s", cvy_tree_where(at), cvy_shape_text(y),
              nspace == 2 ? "pixel, [H, W]" : "position of x, without an axis of channels");
    t->ignored = s->o.ignored;
    t->info.dtype = CVY_DTYPE_I32;
    t->info.nclasses = s->o.classes;
    *y = cvy_shape_make(nspace, y->dim + y->ndim - nspace);
    return CVY_OK;
}

static cvy_status set_role(cvy_augment *a, const cvy_operation *s, const cvy_tree *at)
{
    static const char *const word[] = {"none", "field", "label_map", "point", "vector"};
    const char *role = word[s->o.role];
    cvy_target *t = &a->target;
    if (!t->exists) /* samples without truth, for a prediction */
        return CVY_OK;
    CVY_CHECK(t->role == CVY_TARGET_UNKNOWN, CVY_E_CONFIG, "%s: y has two roles", cvy_tree_where(at));
    for (int i = 0; i < a->noperation; i++)
        CVY_CHECK(!a->operation[i].def->moves_pixels, CVY_E_CONFIG,
                  "%s: the role of y stands after %s, which it is about: put it first", cvy_tree_where(at),
                  a->operation[i].def->name);
    t->role = (cvy_target_role)s->o.role;
    t->pairs = (cvy_pairs){.order = s->o.order, .vertical = s->o.vertical};
    const int is_number = t->role == CVY_TARGET_POINT || t->role == CVY_TARGET_VECTOR;
    CVY_CHECK(
        is_number || (!s->o.components && s->o.order == CVY_ORDER_UNKNOWN && s->o.vertical == CVY_VERTICAL_UNKNOWN),
        CVY_E_CONFIG, "%s: %s: order, components and vertical belong to points and vectors", cvy_tree_where(at), role);
    CVY_CHECK(t->role == CVY_TARGET_LABEL_MAP || (s->o.classes == 0 && s->o.ignored.count == 0), CVY_E_CONFIG,
              "%s: %s: classes and ignore belong to a label_map", cvy_tree_where(at), role);
    if (is_number)
        CVY_TRY(set_components(a, s, role, at));
    if (t->role == CVY_TARGET_LABEL_MAP)
        CVY_TRY(set_labels(t, s, CVY_MAX(a->shape.ndim - 1, 1), at));
    const int is_map = t->role == CVY_TARGET_FIELD || t->role == CVY_TARGET_LABEL_MAP ||
                       (t->role == CVY_TARGET_VECTOR && t->info.shape.ndim == 3);
    t->is_map = is_map && a->nspace > 0;
    return is_map ? check_map(a, role, at) : CVY_OK;
}

/* ---- x as the target ---- */

/* One step (x - shift) * by, for each of n channels, as a mean and a standard deviation. */
static cvy_status as_mean_and_std(cvy_augment *a, const cvy_value_step *step, int64_t n)
{
    double *mean = NULL, *std = NULL;
    CVY_TRY(cvy_pool_alloc(a->pool, sizeof *mean * (size_t)n, &mean));
    CVY_TRY(cvy_pool_alloc(a->pool, sizeof *std * (size_t)n, &std));
    for (int64_t c = 0; c < n; c++) {
        mean[c] = step->shift[c];
        std[c] = 1 / step->by[c];
    }
    a->target.info.scaling = (cvy_scaling){.n = n, .mean = mean, .std = std};
    return CVY_OK;
}

cvy_status cvy_target_scale_input(cvy_augment *a, int is_bytes)
{
    cvy_value_step *step = NULL;
    int nstep = 0, moves = 0;
    int64_t n = 1;
    CVY_TRY(cvy_pool_alloc(a->pool, sizeof *step * CVY_VALUE_STEPS_MAX, &step));
    CVY_TRY(cvy_augment_value_steps(a, is_bytes, step, &nstep, &moves));
    for (int i = 0; i < nstep; i++) {
        n = CVY_MAX(n, step[i].n);
        for (int64_t c = 0; c < step[i].n; c++)
            CVY_CHECK(step[i].by[c] != 0, CVY_E_CONFIG,
                      "data.augment multiplies x with 0, and data.roles says that x is the target, whose units would "
                      "be lost");
    }
    if (nstep == 0)
        return CVY_OK;
    if (nstep == 1 && step[0].curve == CVY_CURVE_AFFINE)
        return as_mean_and_std(a, &step[0], n);
    a->target.info.scaling = (cvy_scaling){.n = n, .nstep = nstep, .step = step};
    return CVY_OK;
}

/* ---- the scaling ---- */

/* Reads one number, or a list with a number for each channel. */
static cvy_status read_numbers(const cvy_augment *a, const char *what, const cvy_tree *node, double **out)
{
    const int64_t n = a->target.info.nchannels;
    cvy_numbers list;
    double *value = NULL;
    CVY_TRY(cvy_augment_numbers(a->pool, what, node, &list));
    CVY_CHECK(node->kind != CVY_TREE_LIST || list.count == n, CVY_E_CONFIG,
              "%s: %s has %lld numbers, but the target y of %s needs %lld", cvy_tree_where(node), what,
              (long long)list.count, cvy_shape_text(&a->target.info.shape), (long long)n);
    CVY_TRY(cvy_pool_alloc(a->pool, sizeof *value * (size_t)n, &value));
    for (int64_t i = 0; i < n; i++)
        value[i] = cvy_numbers_at(&list, i, 0);
    *out = value;
    return CVY_OK;
}

static cvy_status set_scaling(cvy_augment *a, const cvy_operation *s, const cvy_tree *at)
{
    double *mean = NULL, *std = NULL;
    if (!a->target.exists)
        return CVY_OK;
    CVY_CHECK(a->target.role != CVY_TARGET_LABEL_MAP, CVY_E_CONFIG, "%s: %s: y is a map of labels, which have no mean",
              cvy_tree_where(at), s->def->name);
    CVY_CHECK(a->target.info.nchannels <= CVY_SCALED_MAX, CVY_E_CONFIG,
              "%s: the target y of %s has %lld numbers with a scaling each; the limit is %d", cvy_tree_where(at),
              cvy_shape_text(&a->target.info.shape), (long long)a->target.info.nchannels, CVY_SCALED_MAX);
    CVY_TRY(read_numbers(a, "mean", s->o.mean, &mean));
    CVY_TRY(read_numbers(a, "std", s->o.std, &std));
    for (int64_t i = 0; i < a->target.info.nchannels; i++)
        CVY_CHECK(std[i] > 0, CVY_E_CONFIG, "%s: std is %g, expected more than 0", cvy_tree_where(s->o.std), std[i]);
    if (!a->target.info.is_input)
        a->target.info.scaling = (cvy_scaling){.n = a->target.info.nchannels, .mean = mean, .std = std};
    return CVY_OK;
}

/* The axes of positions of a map become those that the operation fixes. */
static void follow_size(const cvy_augment *a, const cvy_operation *s, cvy_shape *map)
{
    if (!s->def->fixes_size || s->o.size.count == 0)
        return;
    for (int i = 0; i < a->nspace; i++)
        map->dim[map->ndim - a->nspace + i] = cvy_ints_at(&s->o.size, i, 0);
}

cvy_status cvy_target_follow(cvy_augment *a, const cvy_operation *s, const cvy_tree *at)
{
    cvy_target *t = &a->target;
    if (!s->def->moves_pixels || !s->def->moves_pixels(s))
        return CVY_OK;
    CVY_CHECK(cvy_shape_elems(&a->mask) == 1 || a->mask_fits, CVY_E_CONFIG,
              "%s: %s moves the pixels of x, and the weights of %s do not go with them: they need the height and width "
              "of x, %s, and pictures of one size",
              cvy_tree_where(at), s->def->name, cvy_shape_text(&a->mask_stored), cvy_shape_text(&a->stored));
    if (a->mask_fits) {
        a->mask_moves = 1;
        follow_size(a, s, &a->mask);
    }
    if (!t->exists)
        return CVY_OK;
    CVY_CHECK(t->role != CVY_TARGET_UNKNOWN || t->info.shape.ndim < 2, CVY_E_CONFIG,
              "%s: %s moves the pixels of x, but how the target y of shape %s goes with them is not known: say what y "
              "is by data.roles: {y: field} (or label_map, point, vector, none)",
              cvy_tree_where(at), s->def->name, cvy_shape_text(&t->info.shape));
    CVY_CHECK(
        a->nspace == 2 || (t->role != CVY_TARGET_POINT && t->role != CVY_TARGET_VECTOR), CVY_E_CONFIG,
        "%s: %s moves the positions of samples of %s, and points and vectors of y go with those of pictures only: "
        "leave it out, or say data.roles: {y: none} if y does not depend on positions",
        cvy_tree_where(at), s->def->name, cvy_shape_text(&a->stored));
    t->info.may_be_left |= t->role == CVY_TARGET_UNKNOWN && cvy_shape_elems(&t->info.shape) > 1;
    if (t->is_map)
        follow_size(a, s, &t->info.shape);
    return CVY_OK;
}

/* ---- running it ---- */

/* Moves a map as x was moved. */
static cvy_status move_map(const cvy_augment *a, const cvy_augment_work *x, const cvy_shape *stored, int is_label_map,
                           const float *y, float *y_out)
{
    int64_t n[3];
    cvy_space_of(stored, a->nspace, n);
    const int is_series = a->nspace == 1;
    const cvy_picture map = {.dtype = CVY_DTYPE_F32,
                             .C = stored->ndim > a->nspace ? stored->dim[0] : 1,
                             .H = is_series        ? n[2]
                                  : a->nspace == 3 ? n[0]
                                                   : n[1],
                             .W = is_series        ? 1
                                  : a->nspace == 3 ? n[1] * n[2]
                                                   : n[2],
                             .data = (void *)(uintptr_t)y};
    cvy_augment_work w;
    cvy_augment_begin(a, map, x->epoch, x->number, x->scratch, &w);
    w.is_label_map = is_label_map;
    CVY_TRY(cvy_augment_run(a, &w, 1));
    memcpy(y_out, w.pic.data, cvy_augment_bytes(&w.pic));
    return CVY_OK;
}

cvy_status cvy_mask_apply(const cvy_augment *a, const cvy_augment_work *w, const float *mask, float *mask_out)
{
    if (a->mask_moves)
        return move_map(a, w, &a->mask_stored, 0, mask, mask_out);
    memcpy(mask_out, mask, sizeof *mask * (size_t)cvy_shape_elems(&a->mask));
    return CVY_OK;
}

/* Moves the point (*row, *column). Its numbers count pixels from the centre of the first one, as indices do. */
static void move_point(const cvy_move *m, float *row, float *column)
{
    const double r = (double)*row + 0.5, c = (double)*column + 0.5;
    *row = (float)(m->row[0] * r + m->row[1] * c + m->row[2] - 0.5);
    *column = (float)(m->column[0] * r + m->column[1] * c + m->column[2] - 0.5);
}

static void move_points(const cvy_target *t, const cvy_move *m, float *y)
{
    const int first = t->pairs.order == CVY_ORDER_ROW_COLUMN ? 0 : 1, is_list = t->info.shape.ndim == 2;
    const cvy_ints *pair = &t->pairs.at;
    const int64_t count = is_list ? t->info.shape.dim[0] : pair->count / 2;
    for (int64_t i = 0; i < count; i++) {
        const int64_t a = is_list ? 2 * i : pair->at[2 * i], b = is_list ? a + 1 : pair->at[2 * i + 1];
        move_point(m, y + (first == 0 ? a : b), y + (first == 0 ? b : a));
    }
}

static void scale(const cvy_scaling *s, int64_t elems, float *y)
{
    const int64_t plane = s->n > 0 ? elems / s->n : 0;
    for (int64_t i = 0; i < s->n * plane; i++)
        y[i] = (float)(((double)y[i] - s->mean[i / plane]) / s->std[i / plane]);
}

static int32_t label_of(const cvy_target *t, float value)
{
    const int32_t label = value >= -1e9f && value <= 1e9f ? (int32_t)value : INT32_MIN;
    for (int k = 0; k < t->ignored.count; k++)
        if (label == t->ignored.at[k])
            return CVY_LABEL_OUTSIDE;
    return label;
}

/* Checks the labels as they are stored, because a crop could hide a wrong one. */
static cvy_status check_labels(const cvy_target *t, const float *y, int64_t elems)
{
    for (int64_t i = 0; i < elems; i++) {
        const int32_t label = label_of(t, y[i]);
        CVY_CHECK(label >= CVY_LABEL_OUTSIDE && label < t->info.nclasses && y[i] == floorf(y[i]), CVY_E_FORMAT,
                  "element %lld of y is %g, expected a label 0 .. %lld; name labels that no class has by ignore in "
                  "data.roles",
                  (long long)i, y[i], (long long)t->info.nclasses - 1);
    }
    return CVY_OK;
}

/* Converts labels to integers in place. */
static void to_labels(const cvy_target *t, int64_t elems, void *y)
{
    for (int64_t i = 0; i < elems; i++) {
        float value = 0;
        memcpy(&value, (char *)y + (size_t)i * sizeof value, sizeof value);
        const int32_t label = label_of(t, value);
        memcpy((char *)y + (size_t)i * sizeof label, &label, sizeof label);
    }
}

cvy_status cvy_target_apply(const cvy_augment *a, const cvy_augment_work *w, const float *y, void *y_out)
{
    const cvy_target *t = &a->target;
    const int64_t elems = cvy_shape_elems(&t->info.shape);
    if (t->role == CVY_TARGET_LABEL_MAP)
        CVY_TRY(check_labels(t, y, cvy_shape_elems(&t->stored)));
    if (t->is_map)
        CVY_TRY(move_map(a, w, &t->stored, t->role == CVY_TARGET_LABEL_MAP, y, y_out));
    else
        memcpy(y_out, y, sizeof *y * (size_t)elems);
    if (t->role == CVY_TARGET_POINT)
        move_points(t, &w->move, y_out);
    if (t->role == CVY_TARGET_VECTOR)
        cvy_pairs_turn(&t->pairs, &w->move, elems / t->info.shape.dim[0], y_out);
    if (t->role == CVY_TARGET_LABEL_MAP)
        to_labels(t, elems, y_out);
    scale(&t->info.scaling, elems, y_out);
    return CVY_OK;
}

cvy_status cvy_target_apply_part(const cvy_augment *a, const float *y, int64_t elems, void *y_out)
{
    const cvy_target *t = &a->target;
    if (t->role == CVY_TARGET_LABEL_MAP)
        CVY_TRY(check_labels(t, y, elems));
    memcpy(y_out, y, sizeof *y * (size_t)elems);
    if (t->role == CVY_TARGET_LABEL_MAP)
        to_labels(t, elems, y_out);
    scale(&t->info.scaling, elems, y_out);
    return CVY_OK;
}

static double undo(const cvy_scaling *s, int64_t c, double y)
{
    if (s->nstep == 0)
        return y * s->std[c] + s->mean[c];
    for (int i = s->nstep - 1; i >= 0; i--) {
        const cvy_value_step *step = &s->step[i];
        const int64_t at = step->n == 1 ? 0 : c;
        switch (step->curve) {
        case CVY_CURVE_AFFINE: y = y / step->by[at] + step->shift[at]; break;
        case CVY_CURVE_LOG: y = copysign(expm1(fabs(y)), y) / step->by[at]; break;
        case CVY_CURVE_ASINH: y = sinh(y) / step->by[at]; break;
        }
    }
    return y;
}

void cvy_scaling_undo(const cvy_scaling *s, int64_t rows, int64_t row_elems, cvy_dtype dtype, void *y)
{
    const int64_t plane = s->n > 0 ? row_elems / s->n : 0;
    for (int64_t i = 0; i < rows * s->n * plane; i++) {
        const int64_t c = i / plane % s->n;
        if (dtype == CVY_DTYPE_F32)
            ((float *)y)[i] = (float)undo(s, c, (double)((float *)y)[i]);
        else if (dtype == CVY_DTYPE_F64)
            ((double *)y)[i] = undo(s, c, ((double *)y)[i]);
    }
}

CVY_AUGMENT_DEFINE(target) = {
    .name = "target",
    .options = target_opts,
    .short_key = "role",
    .set_target = set_role,
};

CVY_AUGMENT_DEFINE(normalize_target) = {
    .name = "normalize_target",
    .options = normalize_target_opts,
    .set_target = set_scaling,
};
