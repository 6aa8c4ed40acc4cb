/*
 * data_agrees.c: whether further data are like those of the training: see data_agrees.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/data_agrees.h"

#include <stdio.h>
#include <string.h>

#include "base/base_index.h"
#include "data/data_dataset.h"
#include "data/data_described_file.h"
#include "data/data_names.h"

const char *cvy_source_name(const cvy_source *s)
{
    return s->path ? s->path : s->reader->name;
}

/* ---- sources of one data set ---- */

static int is_picture(const cvy_reader_info *i)
{
    return i->dtype == CVY_DTYPE_U8 && i->shape.ndim == 3;
}

/* One variable is x or y, whatever its name; another name may mean another quantity, so it is said. */
static cvy_status note_other_name(const char *field, const cvy_described *like, int nlike, const char *where,
                                  const cvy_described *own, int nown, const char *of, cvy_reader_info *to)
{
    if (nlike != 1 || nown != 1 || !like->name || !own->name || strcmp(like->name, own->name) == 0)
        return CVY_OK;
    return cvy_reader_note(to, "%s: %s is the variable %s, but %s %s", of, field, own->name, like->name, where);
}

static cvy_status check_field(const cvy_source *a, const cvy_source *b, const char *what, int in_a, int in_b)
{
    CVY_CHECK(in_a == in_b, CVY_E_CONFIG,
              "%s has %s and %s has none: sources of one data set must have the same fields",
              cvy_source_name(in_a ? a : b), what, cvy_source_name(in_a ? b : a));
    return CVY_OK;
}

cvy_status cvy_sources_agree(const cvy_source *a, const cvy_source *b, cvy_reader_info *whole)
{
    const cvy_reader_info *i = &a->info, *k = &b->info;
    const char *in_a = cvy_source_name(a), *in_b = cvy_source_name(b);
    const int sizes_may_differ = is_picture(i) && is_picture(k) && i->shape.dim[0] == k->shape.dim[0];
    const int same = i->dtype == k->dtype && cvy_shape_equal(&i->shape, &k->shape);
    CVY_CHECK(same || sizes_may_differ, CVY_E_CONFIG,
              "x is %s of %s in %s, but %s of %s in %s: sources of one data set must have the same fields",
              cvy_dtype_text(i->dtype), cvy_shape_text(&i->shape), in_a, cvy_dtype_text(k->dtype),
              cvy_shape_text(&k->shape), in_b);
    whole->varying |= k->varying || !same;
    CVY_TRY(check_field(a, b, "labels", i->has_label, k->has_label));
    CVY_TRY(check_field(a, b, "y", i->has_y, k->has_y));
    CVY_TRY(check_field(a, b, "weights", i->has_weight, k->has_weight));
    CVY_CHECK(!i->has_weight || cvy_shape_equal(&i->weight_shape, &k->weight_shape), CVY_E_CONFIG,
              "the weight is %s in %s, but %s in %s: sources of one data set must have the same fields",
              cvy_shape_text(&i->weight_shape), in_a, cvy_shape_text(&k->weight_shape), in_b);
    CVY_CHECK(!i->has_y || cvy_shape_equal(&i->y_shape, &k->y_shape), CVY_E_CONFIG,
              "y is %s in %s, but %s in %s: sources of one data set must have the same fields",
              cvy_shape_text(&i->y_shape), in_a, cvy_shape_text(&k->y_shape), in_b);
    const cvy_descriptions *c = &i->described, *d = &k->described;
    CVY_TRY(note_other_name("x", c->x, c->nx, "in the first source", d->x, d->nx, in_b, whole));
    return note_other_name("y", c->y, c->ny, "in the first source", d->y, d->ny, in_b, whole);
}

/* ---- following the training data ---- */

static int is_grey_or_colour(const cvy_reader_info *i)
{
    return is_picture(i) && (i->shape.dim[0] == 1 || i->shape.dim[0] == 3);
}

cvy_status cvy_source_follow_channels(const cvy_reader_info *like, const char *of_like, cvy_source *s)
{
    cvy_reader_info *own = &s->info;
    if (!own->varying || !is_grey_or_colour(own) || !is_grey_or_colour(like) || own->shape.dim[0] == like->shape.dim[0])
        return CVY_OK;
    own->shape.dim[0] = like->shape.dim[0];
    return cvy_reader_note(own, "%s: its pictures are read as %s, as those of %s", cvy_source_name(s),
                           like->shape.dim[0] == 1 ? "grey" : "colour", of_like);
}

/* ---- a data set ---- */

const char *cvy_dataset_name(const cvy_dataset_info *info)
{
    return info->path && *info->path ? info->path : info->format;
}

const cvy_field *cvy_dataset_field(const cvy_dataset_info *info, const char *name)
{
    for (int i = 0; i < info->nfield; i++)
        if (strcmp(info->field[i].name, name) == 0)
            return &info->field[i];
    return NULL;
}

/* x has the type and the shape that the network reads. */
static cvy_status check_x(const cvy_data_form *like, cvy_dataset *d)
{
    static const char *const what[] = {"numbers, read as they are", "bytes, divided by 255"};
    const cvy_shape *own = &d->info.field[0].shape, *known = &like->info->field[0].shape;
    const int bytes = cvy_augment_divides(d->augment, &d->stored),
              known_bytes = cvy_augment_divides(d->augment, like->stored);
    CVY_CHECK(cvy_shape_equal(own, known), CVY_E_SHAPE, "%s: samples are %s, the network was trained on %s%s",
              cvy_dataset_name(&d->info), cvy_shape_text(own), cvy_shape_text(known),
              own->ndim == 3 && known->ndim == 3 && own->dim[0] == known->dim[0]
                  ? ": `resize` or a crop in data.augment brings them to one size"
                  : "");
    CVY_CHECK(bytes == known_bytes, CVY_E_CONFIG,
              "%s: x are %s, but those of the training data are %s: write both in the same type, or say by `scale` in "
              "data.augment by what to multiply them",
              cvy_dataset_name(&d->info), what[bytes], what[known_bytes]);
    return CVY_OK;
}

/* Checks names of x or of y one by one. */
static cvy_status check_names(const cvy_dataset *d, const char *of, const char *what, const char *const *known,
                              const char *const *own, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        CVY_CHECK(strcmp(known[i], own[i]) == 0, CVY_E_CONFIG,
                  "%s: number %lld of %s is the %s \"%s\", but \"%s\" in the training data", cvy_dataset_name(&d->info),
                  (long long)i, of, what, own[i], known[i]);
    return CVY_OK;
}

/* Readers find the columns of the training by their names, and the variables that a source lists; other names of a list
 * are meant, and not known here. What cannot be known is said. */
static cvy_status check_columns(const cvy_reader_info *like, cvy_dataset *d)
{
    const cvy_columns *known = &like->columns, *own = &d->stored.columns;
    const int is_table = known->x && known->nx == cvy_shape_elems(&like->shape);
    const char *what = is_table ? "column" : "variable";
    char text[CVY_DATA_NAMES_TEXT];
    if (known->x && own->x && own->nx == known->nx)
        CVY_TRY(check_names(d, "x", what, known->x, own->x, own->nx));
    if (known->x && own->x && own->ny == known->ny)
        CVY_TRY(check_names(d, "y", what, known->y, own->y, own->ny));
    if (is_table && !own->x)
        CVY_TRY(cvy_reader_note(&d->stored,
                                "%s has no names of columns: its numbers are taken in the order of the training data, "
                                "%s",
                                cvy_dataset_name(&d->info), cvy_data_names_text(known->x, known->nx, text)));
    if (!known->x && own->x)
        CVY_TRY(cvy_reader_note(&d->stored,
                                "%s: the names of the columns of the training data are not known: columns are taken in "
                                "their order, \"%s\" first",
                                cvy_dataset_name(&d->info), own->x[0]));
    d->info.note = d->stored.note;
    return CVY_OK;
}

static cvy_status check_same_field(const cvy_dataset_info *info, const cvy_field *known)
{
    const cvy_field *own = cvy_dataset_field(info, known->name);
    CVY_CHECK(own, CVY_E_CONFIG, "%s has no field \"%s\", but the training data have it, %s of %s",
              cvy_dataset_name(info), known->name, cvy_dtype_text(known->dtype), cvy_shape_text(&known->shape));
    CVY_CHECK(own->dtype == known->dtype && cvy_shape_equal(&own->shape, &known->shape), CVY_E_SHAPE,
              "%s: \"%s\" is %s of %s, but %s of %s in the training data", cvy_dataset_name(info), known->name,
              cvy_dtype_text(own->dtype), cvy_shape_text(&own->shape), cvy_dtype_text(known->dtype),
              cvy_shape_text(&known->shape));
    return CVY_OK;
}

/* Weights may be missing on one side, which is said: such samples count once. */
static cvy_status check_weights(const cvy_dataset_info *like, cvy_dataset *d)
{
    const cvy_field *known = cvy_dataset_field(like, CVY_SAMPLE_WEIGHT),
                    *own = cvy_dataset_field(&d->info, CVY_SAMPLE_WEIGHT);
    if (known && own)
        return check_same_field(&d->info, known);
    if (!known == !own)
        return CVY_OK;
    CVY_TRY(cvy_reader_note(&d->stored, "%s has %s, but the training data have %s: %s", cvy_dataset_name(&d->info),
                            own ? "weights" : "no weights", own ? "none" : "weights",
                            own ? "a loss that is computed during the training does not use them"
                                : "each of its samples has the weight 1"));
    d->info.note = d->stored.note;
    return CVY_OK;
}

static cvy_status note_other_names(const cvy_descriptions *like, int x_only, cvy_dataset *d)
{
    const cvy_descriptions *own = &d->stored.described;
    const char *where = "in the training data", *of = cvy_dataset_name(&d->info);
    CVY_TRY(note_other_name("x", like->x, like->nx, where, own->x, own->nx, of, &d->stored));
    if (!x_only)
        CVY_TRY(note_other_name("y", like->y, like->ny, where, own->y, own->ny, of, &d->stored));
    d->info.note = d->stored.note;
    return CVY_OK;
}

cvy_status cvy_dataset_agrees(const cvy_data_form *like, cvy_dataset *d)
{
    if (!like->info)
        return CVY_OK;
    if (like->info->nfield > 0)
        CVY_TRY(check_x(like, d));
    if (like->stored)
        CVY_TRY(check_columns(like->stored, d));
    if (like->stored)
        CVY_TRY(note_other_names(&like->stored->described, like->x_only, d));
    if (like->x_only)
        return CVY_OK;
    CVY_TRY(cvy_classes_agree(like->info->class_name, like->info->nclasses, &d->info));
    for (int i = 1; i < like->info->nfield; i++)
        if (strcmp(like->info->field[i].name, CVY_SAMPLE_WEIGHT) != 0)
            CVY_TRY(check_same_field(&d->info, &like->info->field[i]));
    return like->info->nfield == 0 ? CVY_OK : check_weights(like->info, d);
}

/* ---- the order of another run ---- */

/* Whether the columns are the same in another order. The roles of x and y must not depend on it. */
static cvy_status relate_columns(const cvy_columns *known, const cvy_columns *own, const cvy_tree *augment,
                                 const char *from, int *reordered_out)
{
    cvy_data_names x = CVY_DATA_NAMES_SAME, y = x;
    *reordered_out = 0;
    if (!known->x || !own->x)
        return CVY_OK;
    CVY_TRY(cvy_data_names_relate(known->x, known->nx, own->x, own->nx, &x));
    CVY_TRY(cvy_data_names_relate(known->y, known->ny, own->y, own->ny, &y));
    *reordered_out = (x == CVY_DATA_NAMES_SAME || x == CVY_DATA_NAMES_REORDERED) &&
                     (y == CVY_DATA_NAMES_SAME || y == CVY_DATA_NAMES_REORDERED) &&
                     (x != CVY_DATA_NAMES_SAME || y != x);
    CVY_CHECK(
        !*reordered_out || ((x == CVY_DATA_NAMES_SAME || cvy_role_has_names(augment, "x")) &&
                            (y == CVY_DATA_NAMES_SAME || cvy_role_has_names(augment, "y"))),
        CVY_E_CONFIG,
        "columns are brought into the order of %s, and data.roles gives components by their numbers: give them by "
        "name, as in components: [u10, v10]",
        from);
    return CVY_OK;
}

/* Whether the classes are the same in another order, or with all_classes some of them. Classes without names are the
 * first ones of more classes as they are. */
static cvy_status relate_classes(const cvy_dataset_info *known, const cvy_dataset_info *own, int all_classes,
                                 int *other_out)
{
    cvy_data_names names = CVY_DATA_NAMES_SAME;
    if (known->class_name && own->class_name)
        CVY_TRY(cvy_data_names_relate(known->class_name, known->nclasses, own->class_name, own->nclasses, &names));
    *other_out = names == CVY_DATA_NAMES_REORDERED ||
                 (all_classes && names == CVY_DATA_NAMES_FEWER && !cvy_classes_are_numbers(own));
    return CVY_OK;
}

/* Whether what the files of d say of their variables has to be mended: units, the order and the direction of axes.
 * Other differences, such as another region, are said. */
static cvy_status relate_descriptions(const cvy_descriptions *known, const char *from, cvy_dataset *d, int *other_out)
{
    cvy_reader_info trial = {0};
    char *where = NULL;
    *other_out = 0;
    if (known->nx == 0 || d->stored.described.nx == 0)
        return CVY_OK;
    CVY_TRY(cvy_pool_create(&trial.pool));
    cvy_status status = cvy_descriptions_copy(trial.pool, &d->stored.described, &trial.described);
    if (status == CVY_OK)
        status = cvy_pool_printf(trial.pool, &where, "in the data of %s", from);
    if (status == CVY_OK)
        status = cvy_descriptions_agree(known, where, 1, &trial);
    *other_out = status == CVY_E_CONFIG;
    if (status == CVY_OK && trial.note)
        status = cvy_reader_note(&d->stored, "%s", trial.note);
    d->info.note = d->stored.note;
    cvy_pool_destroy(&trial.pool);
    return *other_out ? CVY_OK : status;
}

cvy_status cvy_dataset_take_order(const cvy_data_form *like, const char *from, int all_classes, const cvy_tree *source,
                                  const cvy_tree *augment, uint64_t seed, cvy_dataset **d)
{
    cvy_reader_info stored = (*d)->stored;
    cvy_dataset_info info = (*d)->info;
    cvy_dataset *again = NULL;
    char text[CVY_DATA_NAMES_TEXT];
    int columns = 0, classes = 0, described = 0;
    if (!like->info)
        return CVY_OK;
    CVY_TRY(relate_columns(&like->stored->columns, &stored.columns, augment, from, &columns));
    CVY_TRY(relate_classes(like->info, &info, all_classes, &classes));
    CVY_TRY(relate_descriptions(&like->stored->described, from, *d, &described));
    if (!columns && !classes && !described)
        return CVY_OK;
    if (described)
        stored.described = like->stored->described;
    if (columns)
        stored.columns = like->stored->columns;
    if (classes) {
        info.nclasses = like->info->nclasses;
        info.class_name = like->info->class_name;
    }
    const cvy_data_form form = {.stored = &stored, .info = &info};
    cvy_status status = cvy_dataset_open_like(source, augment, seed, 1, &form, &again);
    if (status == CVY_E_CONFIG && described) { /* it cannot be mended; who asks knows whether that is a fault */
        CVY_TRY(cvy_reader_note(&(*d)->stored, "%s: its numbers stay as they are: %s", from, cvy_error_text()));
        (*d)->info.note = (*d)->stored.note;
        stored.described = (*d)->stored.described;
        if (!columns && !classes)
            return CVY_OK;
        status = cvy_dataset_open_like(source, augment, seed, 1, &form, &again);
    }
    CVY_TRY(status);
    cvy_dataset_destroy(d);
    *d = again;
    if (columns)
        CVY_TRY(cvy_reader_note(&again->stored, "%s: its columns are brought into the order of %s: %s",
                                cvy_dataset_name(&again->info), from,
                                cvy_data_names_text(stored.columns.x, stored.columns.nx, text)));
    if (classes)
        CVY_TRY(cvy_reader_note(&again->stored, "%s: its classes get the numbers that they have in %s: %s",
                                cvy_dataset_name(&again->info), from,
                                cvy_data_names_text(info.class_name, info.nclasses, text)));
    again->info.note = again->stored.note;
    return CVY_OK;
}
