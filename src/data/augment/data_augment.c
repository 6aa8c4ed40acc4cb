/*
 * data_augment.c: the job's `data.augment` list: how a sample's x is changed between the reader and the batch.
 *
 * It runs in the loader's threads, after decoding. The first step is asked before decoding which part of the picture it
 * needs, so that no more is decoded. Every random choice is drawn from (seed, "augment.<step>", epoch, sample number),
 * so it does not depend on ranks, threads or order. For test sets (random 0) mirrors, rotations and holes are left out,
 * and random crops become central. A resize also does a crop that directly follows it: it computes only that window of
 * its result.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/augment/data_augment.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_round.h"
#include "base/text/base_table.h"

/* ---- the picture's memory ---- */

size_t cvy_augment_bytes(const cvy_picture *p)
{
    return (size_t)(p->C * p->H * p->W) * cvy_dtype_bytes(p->dtype);
}

cvy_status cvy_augment_fresh(cvy_augment_work *w, cvy_dtype dtype, int64_t H, int64_t W, size_t extra, cvy_picture *out,
                             void **extra_out)
{
    cvy_picture p = {.dtype = dtype, .C = w->pic.C, .H = H, .W = W};
    cvy_bytes *room = &w->scratch->picture[w->unused];
    const size_t bytes = cvy_round_to_line(cvy_augment_bytes(&p));
    CVY_TRY(cvy_bytes_need(room, bytes + extra));
    p.data = room->data;
    w->unused = 1 - w->unused;
    w->owned = 1;
    *out = p;
    if (extra_out)
        *extra_out = (char *)room->data + bytes;
    return CVY_OK;
}

cvy_status cvy_augment_reals(cvy_augment_work *w)
{
    cvy_picture p = w->pic;
    if (!w->owned || p.dtype != CVY_DTYPE_F32)
        CVY_TRY(cvy_augment_fresh(w, CVY_DTYPE_F32, p.H, p.W, 0, &p, NULL));
    cvy_augment_write(w, p.data);
    w->affine.n = 0;
    w->pic = p;
    return CVY_OK;
}

void cvy_augment_scratch_free(cvy_augment_scratch *s)
{
    cvy_mem_free(&s->picture[0].data);
    cvy_mem_free(&s->picture[1].data);
    cvy_mem_free(&s->affine.data);
    *s = (cvy_augment_scratch){0};
}

/* ---- the list ---- */

cvy_status cvy_augment_numbers(cvy_pool *pool, const char *what, const cvy_tree *node, cvy_numbers *out)
{
    const int is_list = node && node->kind == CVY_TREE_LIST;
    cvy_numbers list = {.count = is_list ? node->count : node != NULL};
    CVY_CHECK(!node || node->kind != CVY_TREE_MAP, CVY_E_CONFIG, "%s: %s is neither a number nor a list of them",
              cvy_tree_where(node), what);
    CVY_TRY(cvy_pool_alloc(pool, sizeof *list.at * (size_t)(list.count + 1), &list.at));
    for (int64_t i = 0; i < list.count; i++) {
        const cvy_tree *item = is_list ? node->child[i] : node;
        CVY_CHECK(item->kind == CVY_TREE_SCALAR && !item->quoted && cvy_text_real(item->text, &list.at[i]) == CVY_OK,
                  CVY_E_CONFIG, "%s: %s is \"%s\", expected a number", cvy_tree_where(item), what,
                  item->kind == CVY_TREE_SCALAR && item->text ? item->text : "");
        CVY_CHECK(isfinite(list.at[i]), CVY_E_CONFIG, "%s: %s is %g", cvy_tree_where(item), what, list.at[i]);
    }
    *out = list;
    return CVY_OK;
}

/* Reads one number, or one per channel of x. */
static cvy_status read_channels(const cvy_augment *a, const cvy_operation *s, const char *key, const cvy_tree *node,
                                const cvy_tree *at, cvy_numbers *out)
{
    const int64_t channels = a->shape.ndim > 0 ? a->shape.dim[0] : 1;
    char what[64];
    snprintf(what, sizeof what, "augmentation %s: %s", s->def->name, key);
    CVY_TRY(cvy_augment_numbers(a->pool, what, node, out));
    CVY_CHECK(out->count <= 1 || out->count == channels, CVY_E_CONFIG,
              "%s: %s has %lld values, expected 1 or %lld (one per channel)", cvy_tree_where(at), s->def->name,
              (long long)out->count, (long long)channels);
    return CVY_OK;
}

static cvy_status check_positive(const cvy_operation *s, const cvy_numbers *list, const cvy_tree *at)
{
    for (int64_t i = 0; i < list->count; i++)
        CVY_CHECK(list->at[i] > 0, CVY_E_CONFIG, "%s: augmentation %s: %g is not more than 0", cvy_tree_where(at),
                  s->def->name, list->at[i]);
    return CVY_OK;
}

/* The numbers for each channel of x. */
static cvy_status read_values(const cvy_augment *a, cvy_operation *s, const cvy_tree *at)
{
    if (s->def->set_target)
        return CVY_OK;
    CVY_TRY(read_channels(a, s, "mean", s->o.mean, at, &s->mean));
    CVY_TRY(read_channels(a, s, "std", s->o.std, at, &s->std));
    CVY_TRY(read_channels(a, s, "by", s->o.by, at, &s->by));
    CVY_TRY(check_positive(s, &s->std, at));
    return check_positive(s, &s->by, at);
}

static cvy_status check_range(const cvy_operation *s, const char *name, const cvy_reals *list, const cvy_tree *at)
{
    CVY_CHECK(list->count <= 2 && (list->count < 2 || list->at[0] <= list->at[1]), CVY_E_CONFIG,
              "%s: %s of %s is one number, or the least and the largest", cvy_tree_where(at), name, s->def->name);
    return CVY_OK;
}

/* Which axis is mirrored or turned about must be there: a series has its time, which counts as width. */
static cvy_status check_axes(const cvy_augment *a, const cvy_operation *s, const cvy_tree *at)
{
    static const char *const axis[] = {"width", "height", "depth"}, *const about[] = {"depth", "height", "width"};
    CVY_CHECK(s->o.axis < CVY_MAX(a->nspace, 1), CVY_E_CONFIG, "%s: %s: samples of %s have no %s", cvy_tree_where(at),
              s->def->name, cvy_shape_text(&a->shape), axis[s->o.axis]);
    CVY_CHECK(s->o.about == 0 || a->nspace == 3, CVY_E_CONFIG,
              "%s: %s about the %s needs volumes [C, D, H, W], these samples are %s", cvy_tree_where(at), s->def->name,
              about[s->o.about], cvy_shape_text(&a->shape));
    CVY_CHECK(s->def->turns != CVY_TURN_EXCHANGE || a->nspace != 1, CVY_E_CONFIG,
              "%s: %s: a series of %s has no two axes to turn", cvy_tree_where(at), s->def->name,
              cvy_shape_text(&a->shape));
    return CVY_OK;
}

static cvy_status check_options(const cvy_augment *a, const cvy_operation *s, const cvy_tree *at)
{
    const char *name = s->def->name;
    CVY_CHECK(!s->def->spatial || a->spatial || (s->def->apply_space && a->nspace > 0), CVY_E_CONFIG,
              "%s: %s needs samples of the shape [C, H, W]%s, these are %s", cvy_tree_where(at), name,
              s->def->apply_space ? ", [C, D, H, W] or [C, T]" : "", cvy_shape_text(&a->shape));
    CVY_CHECK(s->o.size.count <= CVY_MAX(a->nspace, 1), CVY_E_CONFIG, "%s: %s takes a size of one number%s, got %d",
              cvy_tree_where(at), name,
              a->nspace < 2    ? ""
              : a->nspace == 2 ? ", or of two"
                               : ", or of three",
              s->o.size.count);
    CVY_CHECK(s->o.size.count != 2 || a->nspace == 2, CVY_E_CONFIG,
              "%s: %s of a volume takes a size of one number or of three, got 2", cvy_tree_where(at), name);
    CVY_TRY(check_axes(a, s, at));
    CVY_CHECK(s->o.size.count == 0 ||
                  CVY_MAX(cvy_ints_at(&s->o.size, 0, 0), cvy_ints_at(&s->o.size, 1, 0)) <= CVY_PICTURE_SIDE_MAX,
              CVY_E_CONFIG, "%s: %s to more than %d pixels a side", cvy_tree_where(at), name, CVY_PICTURE_SIDE_MAX);
    CVY_CHECK(s->o.pad <= CVY_PICTURE_SIDE_MAX, CVY_E_CONFIG, "%s: %s with a pad of more than %d pixels",
              cvy_tree_where(at), name, CVY_PICTURE_SIDE_MAX);
    CVY_TRY(check_range(s, "scale", &s->o.range, at));
    return check_range(s, "ratio", &s->o.ratio, at);
}

/* Whether a crop leaves the size of samples as it is. */
static int keeps_size(const cvy_augment *a, const cvy_operation *s, int known)
{
    int keeps = s->o.size.count == 0 || known;
    for (int i = 0; i < a->nspace && s->o.size.count > 0; i++)
        keeps = keeps && cvy_ints_at(&s->o.size, i, 0) == a->shape.dim[1 + i];
    return keeps;
}

/* A random crop needs room to move. */
static void note_idle(cvy_augment *a, const cvy_operation *s, const cvy_tree *at, int known)
{
    if (a->random && s->def->random_position && !s->def->any_size && s->o.pad == 0 && keeps_size(a, s, known))
        snprintf(
            a->idle, sizeof a->idle,
            "%s: %s has no effect: its size is that of the pictures, and pad is 0; give it a pad or a smaller size",
            cvy_tree_where(at), s->def->name);
}

static cvy_status crop_fits(const cvy_augment *a, const cvy_operation *s)
{
    int64_t space[3];
    if (a->spatial)
        return cvy_crop_fits(s->def->name, a->shape.dim[1], a->shape.dim[2], s->o.pad, cvy_ints_at(&s->o.size, 0, 0),
                             cvy_ints_at(&s->o.size, 1, 0));
    cvy_space_of(&a->shape, a->nspace, space);
    return cvy_space_crop_fits(s, a->nspace, space);
}

/* Sets the shape after the step, as far as it is known before a picture is read. */
static cvy_status follow_shape(cvy_augment *a, const cvy_operation *s, const cvy_tree *at, int *known)
{
    if (!s->def->fixes_size || s->o.size.count == 0)
        return CVY_OK;
    if (*known && !s->def->any_size && crop_fits(a, s) != CVY_OK)
        return cvy_error_prefix(CVY_E_SHAPE, "%s", cvy_tree_where(at));
    for (int i = 0; i < a->nspace; i++)
        a->shape.dim[1 + i] = cvy_ints_at(&s->o.size, i, 0);
    *known = 1;
    return CVY_OK;
}

static void name_stream(cvy_augment *a, cvy_operation *s)
{
    int nth = 1;
    char name[64];
    for (const cvy_operation *before = a->operation; before < s; before++)
        nth += before->def == s->def;
    if (nth == 1)
        snprintf(name, sizeof name, "augment.%s", s->def->name);
    else
        snprintf(name, sizeof name, "augment.%s.%d", s->def->name, nth);
    s->stream = cvy_rng_name(name);
}

static cvy_status find_operation(const char *name, const cvy_tree *at, const cvy_augment_def **out)
{
    static const cvy_table_query query = {.what = "augmentation"};
    int count = 0;
    const cvy_augment_def *const *table = cvy_augment_table(&count);
    const cvy_status status = cvy_table_find(table, count, &query, name, out);
    return status == CVY_OK ? CVY_OK : cvy_error_prefix(status, "%s", cvy_tree_where(at));
}

/* Adds a step. It is given as name: {options}, or name: value (of the step's main option), or the name alone. */
static cvy_status add_operation(cvy_augment *a, const char *name, const cvy_tree *at, const cvy_tree *value, int *known)
{
    const cvy_tree *map = value;
    char who[64];
    CVY_CHECK(a->noperation < CVY_AUGMENT_OPERATIONS_MAX, CVY_E_CONFIG, "%s: more than %d augmentation operations",
              cvy_tree_where(at), CVY_AUGMENT_OPERATIONS_MAX);
    cvy_operation *s = &a->operation[a->noperation];
    CVY_TRY(find_operation(name, at, &s->def));
    snprintf(who, sizeof who, "augmentation %s", name);
    const int empty = !value || (value->kind == CVY_TREE_SCALAR && (!value->text || !*value->text));
    if (empty) {
        map = NULL;
    } else if (value->kind != CVY_TREE_MAP) {
        cvy_tree *made = NULL;
        CVY_CHECK(s->def->short_key, CVY_E_CONFIG, "%s: %s needs a map of options", cvy_tree_where(value), name);
        CVY_TRY(cvy_tree_new_map(a->pool, value->file, &made));
        CVY_TRY(cvy_tree_set(a->pool, made, s->def->short_key, (cvy_tree *)value));
        map = made;
    }
    CVY_TRY(cvy_options_parse(a->pool, who, s->def->options, map, NULL, &s->o, sizeof s->o));
    CVY_TRY(check_options(a, s, at));
    CVY_TRY(read_values(a, s, at));
    if (s->def->set_target)
        return s->def->set_target(a, s, at);
    if (s->def->only_random && !a->random)
        return CVY_OK;
    CVY_TRY(cvy_target_follow(a, s, at));
    CVY_TRY(cvy_vectors_follow(a, s, at));
    const cvy_status opened = s->def->open ? s->def->open(a, s, known) : CVY_OK;
    if (opened != CVY_OK)
        return cvy_error_prefix(opened, "%s", cvy_tree_where(at));
    a->scales_bytes |= s->def->keeps_bytes;
    name_stream(a, s);
    a->noperation++;
    note_idle(a, s, at, *known);
    return follow_shape(a, s, at, known);
}

static cvy_status add_operations(cvy_augment *a, const cvy_tree *steps)
{
    int known = !a->varying;
    if (!steps || (steps->kind == CVY_TREE_SCALAR && !steps->text))
        return CVY_OK;
    if (steps->kind == CVY_TREE_MAP) {
        for (int i = 0; i < steps->count; i++)
            CVY_TRY(add_operation(a, steps->key[i], steps->key_at ? steps->key_at[i] : steps,
                                  cvy_tree_get(steps, steps->key[i]), &known));
    } else if (steps->kind == CVY_TREE_SCALAR) {
        CVY_TRY(add_operation(a, steps->text, steps, NULL, &known));
    } else {
        for (int i = 0; i < steps->count; i++) {
            cvy_tree *item = steps->child[i];
            item->used = 1;
            if (item->kind == CVY_TREE_SCALAR && item->text) {
                CVY_TRY(add_operation(a, item->text, item, NULL, &known));
                continue;
            }
            CVY_CHECK(item->kind == CVY_TREE_MAP && item->count == 1, CVY_E_CONFIG,
                      "%s: each list item is one augmentation operation: a name or `name: options`",
                      cvy_tree_where(item));
            CVY_TRY(add_operation(a, item->key[0], item, cvy_tree_get(item, item->key[0]), &known));
        }
    }
    a->varying = !known;
    return CVY_OK;
}

/* A crop without pad that directly follows a resize becomes a part of it. */
static void join_crops(cvy_augment *a)
{
    for (int i = 0; i + 1 < a->noperation; i++) {
        cvy_operation *s = &a->operation[i];
        const cvy_operation *next = s + 1;
        const int is_crop = next->def->fixes_size && !next->def->any_size && next->o.pad == 0;
        if (s->def->any_size && is_crop)
            s->inner = next;
    }
}

cvy_status cvy_augment_create(const cvy_tree *steps, int random, uint64_t seed, const cvy_reader_info *info,
                              cvy_augment **out)
{
    cvy_augment *a = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *a, &a));
    a->random = random;
    a->seed = seed;
    a->shape = a->stored = info->shape;
    a->nspace = info->shape.ndim >= 2 && info->shape.ndim <= 4 ? info->shape.ndim - 1 : 0;
    a->spatial = a->nspace == 2;
    a->varying = a->was_varying = info->varying;
    a->dtype = info->dtype;
    a->columns = info->columns;
    a->input = CVY_INPUT_UNKNOWN;
    cvy_target_begin(a, info);
    cvy_status status = cvy_pool_create(&a->pool);
    if (status == CVY_OK)
        status = add_operations(a, steps);
    a->keeps_bytes = !cvy_augment_divides(a, info);
    if (status == CVY_OK && a->target.info.is_input && !random)
        status = cvy_target_scale_input(a, info->dtype == CVY_DTYPE_U8);
    if (status == CVY_OK)
        status = cvy_vectors_note(a, info);
    if (status != CVY_OK) {
        cvy_augment_destroy(&a);
        return status;
    }
    join_crops(a);
    *out = a;
    return CVY_OK;
}

const char *cvy_augment_idle(const cvy_augment *a)
{
    return a->idle;
}

const char *cvy_augment_left(const cvy_augment *a)
{
    return a->left;
}

const cvy_shape *cvy_augment_shape(const cvy_augment *a)
{
    return &a->shape;
}

const cvy_shape *cvy_augment_weight_shape(const cvy_augment *a)
{
    return &a->mask;
}

const cvy_target_info *cvy_augment_target(const cvy_augment *a)
{
    return &a->target.info;
}

/* ---- running it ---- */

int cvy_augment_window(const cvy_augment *a, uint64_t epoch, int64_t number, int64_t H, int64_t W,
                       cvy_picture_window *out)
{
    const cvy_operation *first = &a->operation[0];
    return a->noperation > 0 && first->def->choose_window &&
           first->def->choose_window(a, first, epoch, number, H, W, out);
}

void cvy_augment_begin(const cvy_augment *a, cvy_picture picture, uint64_t epoch, int64_t number,
                       cvy_augment_scratch *scratch, cvy_augment_work *w)
{
    w->a = a;
    w->pic = picture;
    w->scratch = scratch;
    w->unused = w->owned = 0;
    w->epoch = epoch;
    w->number = number;
    w->affine.n = 0;
    w->move = (cvy_move){{1, 0, 0}, {0, 1, 0}};
    w->is_label_map = 0;
    w->vectors = NULL;
    cvy_space_of(&a->stored, a->nspace, w->space);
}

cvy_status cvy_augment_run(const cvy_augment *a, cvy_augment_work *w, int only_moves)
{
    for (int i = 0; i < a->noperation; i += a->operation[i].inner ? 2 : 1) {
        const cvy_operation *s = &a->operation[i];
        if (!only_moves || (s->def->moves_pixels && s->def->moves_pixels(s)))
            CVY_TRY((a->spatial || !s->def->apply_space ? s->def->apply : s->def->apply_space)(s, w));
    }
    return CVY_OK;
}

/* A PNG of 16 bits is reals from 0 to 255 in a set of bytes, and divided by 255 as these are. */
static cvy_status begin_deep(const cvy_augment *a, cvy_augment_work *w)
{
    if (w->pic.dtype != CVY_DTYPE_F32 || a->dtype != CVY_DTYPE_U8 || a->keeps_bytes)
        return CVY_OK;
    CVY_TRY(cvy_augment_widen(w, 1));
    w->affine.by[0] = 1.0 / 255;
    return CVY_OK;
}

cvy_status cvy_augment_apply_all(const cvy_augment *a, cvy_picture picture, const float *y, const float *mask,
                                 uint64_t epoch, int64_t number, cvy_augment_scratch *scratch, float *x_out,
                                 void *y_out, float *mask_out)
{
    cvy_augment_work w;
    cvy_augment_begin(a, picture, epoch, number, scratch, &w);
    w.vectors = a->input == CVY_INPUT_VECTOR ? &a->vectors : NULL;
    CVY_TRY(begin_deep(a, &w));
    CVY_TRY(cvy_augment_run(a, &w, 0));
    if (a->spatial)
        CVY_CHECK(w.pic.C == a->shape.dim[0] && w.pic.H == a->shape.dim[1] && w.pic.W == a->shape.dim[2], CVY_E_SHAPE,
                  "a picture of %lldx%lld after augmentation, the set's samples are %lldx%lld: add `resize: {size: "
                  "N}`, or a crop, to data.augment",
                  (long long)w.pic.H, (long long)w.pic.W, (long long)a->shape.dim[1], (long long)a->shape.dim[2]);
    cvy_augment_write(&w, x_out);
    if (y_out) /* after x is written, which frees the scratch */
        CVY_TRY(cvy_target_apply(a, &w, y, y_out));
    return mask_out ? cvy_mask_apply(a, &w, mask, mask_out) : CVY_OK;
}

cvy_status cvy_augment_apply_both(const cvy_augment *a, cvy_picture picture, const float *y, uint64_t epoch,
                                  int64_t number, cvy_augment_scratch *scratch, float *x_out, void *y_out)
{
    return cvy_augment_apply_all(a, picture, y, NULL, epoch, number, scratch, x_out, y_out, NULL);
}

int cvy_augment_divides(const cvy_augment *a, const cvy_reader_info *info)
{
    return cvy_bytes_are_picture(info) && !a->scales_bytes;
}

int cvy_augment_changes_nothing(const cvy_augment *a)
{
    return a->noperation == 0;
}

int cvy_augment_is_pointwise(const cvy_augment *a)
{
    int pointwise = 1;
    for (int i = 0; i < a->noperation; i++)
        pointwise = pointwise && a->operation[i].def->pointwise;
    return pointwise;
}

cvy_status cvy_augment_apply_parts(const cvy_augment *a, cvy_picture picture, const float *y, int64_t y_elems,
                                   uint64_t epoch, int64_t number, cvy_augment_scratch *scratch, float *x_out,
                                   void *y_out)
{
    cvy_augment_work w;
    cvy_augment_begin(a, picture, epoch, number, scratch, &w);
    w.vectors = a->input == CVY_INPUT_VECTOR ? &a->vectors : NULL;
    CVY_TRY(cvy_augment_run(a, &w, 0));
    cvy_augment_write(&w, x_out);
    if (y_out && y_elems < cvy_shape_elems(&a->target.stored))
        return cvy_target_apply_part(a, y, y_elems, y_out);
    return y_out ? cvy_target_apply(a, &w, y, y_out) : CVY_OK;
}

cvy_status cvy_augment_apply(const cvy_augment *a, cvy_picture picture, uint64_t epoch, int64_t number,
                             cvy_augment_scratch *scratch, float *x_out)
{
    return cvy_augment_apply_both(a, picture, NULL, epoch, number, scratch, x_out, NULL);
}

void cvy_augment_destroy(cvy_augment **a)
{
    if (!*a)
        return;
    cvy_pool_destroy(&(*a)->pool);
    cvy_mem_free(a);
}
