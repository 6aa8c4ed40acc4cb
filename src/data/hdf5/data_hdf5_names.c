/*
 * data_hdf5_names.c: chooses the data sets of HDF5 files that are read: those that the job names, or usual names.
 *
 * It runs when the data set is opened, and looks at the first file only. What is chosen becomes columns.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/hdf5/data_hdf5.h"

#if CVY_HAVE_HDF5
#include <string.h>
#include <strings.h>

#include "base/text/base_text.h"

enum { LIST_TEXT = 1500 };

struct names {
    cvy_h5_found found[CVY_H5_FOUND_MAX]; /* in the first file */
    int nfound;
    int64_t more;         /* data sets that are not in it */
    char text[LIST_TEXT]; /* the list of them, for messages */
    const char *label;
};

/* Names that are chosen without the job; upper and lower case are the same. To x belongs "encoded" of `convoy convert`,
 * which also adds coding and extent. */
enum { MOST_NAMES = 6 };
static const char *const usual_x[MOST_NAMES] = {"x", "data", "images", "features", "encoded"},
                         *const usual_y[MOST_NAMES] = {"y", "target", "targets"},
                         *const usual_label[MOST_NAMES] = {"label", "labels"},
                         *const usual_weight[MOST_NAMES] = {"weight", "weights"},
                         *const usual_coding[MOST_NAMES] = {"coding"}, *const usual_extent[MOST_NAMES] = {"shape"};

static int is_one_of(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcasecmp(name, *names) == 0)
            return 1;
    return 0;
}

/* A target, a label or a weight: training goes on without one that is not seen. */
static int is_usual_besides_x(const char *name)
{
    return is_one_of(name, usual_y) || is_one_of(name, usual_label) || is_one_of(name, usual_weight);
}

int cvy_h5_is_usual_name(const char *name)
{
    return is_one_of(name, usual_x) || is_usual_besides_x(name) || is_one_of(name, usual_coding) ||
           is_one_of(name, usual_extent);
}

static int is_none(const char *name)
{
    return name && strcmp(name, "none") == 0;
}

static cvy_status add_column(cvy_hdf5 *h, const char *name, int *number_out)
{
    char *copy = NULL;
    CVY_CHECK(h->ncolumn < CVY_H5_COLUMNS, CVY_E_CONFIG, "more than %d data sets are named", CVY_H5_COLUMNS);
    CVY_TRY(cvy_pool_strdup(h->pool, name, &copy)); /* names in the job's map have a shorter lifetime */
    h->column[h->ncolumn] = (cvy_h5_column){.name = copy};
    if (number_out)
        *number_out = h->ncolumn;
    h->ncolumn++;
    return CVY_OK;
}

/* Adds columns for one name or a list of names. *count_out: their number. */
static cvy_status add_named(cvy_hdf5 *h, const char *option, const cvy_tree *t, int *count_out)
{
    const int is_list = t->kind == CVY_TREE_LIST;
    for (int i = 0; i < (is_list ? t->count : 1); i++) {
        cvy_tree *item = is_list ? t->child[i] : NULL;
        const cvy_tree *at = is_list ? item : t;
        CVY_CHECK(at->kind == CVY_TREE_SCALAR && at->text && *at->text, CVY_E_CONFIG,
                  "%s: %s is the name of a data set or a list of names", cvy_tree_where(at), option);
        if (item)
            item->used = 1;
        CVY_TRY(add_column(h, at->text, NULL));
    }
    *count_out = is_list ? t->count : 1;
    CVY_CHECK(*count_out > 0, CVY_E_CONFIG, "%s: %s is an empty list", cvy_tree_where(t), option);
    return CVY_OK;
}

/* The first of some usual names that the first file has; upper and lower case are the same. The coordinates y of an
 * axis are no target. */
static const cvy_h5_found *usual(const struct names *n, const char *const *name)
{
    for (; *name; name++)
        for (int i = 0; i < n->nfound; i++)
            if (!n->found[i].is_axis && strcasecmp(n->found[i].name, *name) == 0)
                return &n->found[i];
    return NULL;
}

static cvy_status list_first_file(cvy_hdf5 *h, struct names *n)
{
    cvy_h5_file *f = &h->file[0];
    cvy_status status = cvy_h5_pin(h, 0);
    if (status != CVY_OK)
        return cvy_error_prefix(status, "%s", f->path);
    cvy_h5_enter();
    const hid_t id = cvy_h5_file_id(f);
    status = id < 0 ? cvy_h5_cannot_open(f->path) : cvy_h5_list(h->pool, id, n->found, &n->nfound, &n->more);
    cvy_h5_leave();
    cvy_h5_unpin(h, 0);
    cvy_h5_list_text(n->found, n->nfound, n->text, sizeof n->text);
    return status == CVY_OK ? status : cvy_error_prefix(status, "%s", f->path);
}

/* Whether the data set is a target, label or weight, by the job or by its usual name. Then it is not an input. */
static int is_taken(const cvy_hdf5 *h, const char *name)
{
    const cvy_tree *y = h->o->y;
    if (is_usual_besides_x(name) || (h->o->group && strcmp(name, h->o->group) == 0))
        return 1;
    for (int i = 0; y && y->kind == CVY_TREE_LIST && i < y->count; i++)
        if (y->child[i]->text && strcmp(name, y->child[i]->text) == 0)
            return 1;
    return y && y->kind == CVY_TREE_SCALAR && y->text && strcmp(name, y->text) == 0;
}

/* What was found by its usual name must be readable: without it the data would mean something else. */
static cvy_status check_readable(const cvy_hdf5 *h, const cvy_h5_found *f, const char *option)
{
    if (!f || !f->trouble)
        return CVY_OK;
    const int is_link = strncmp(f->trouble, "link", 4) == 0;
    CVY_FAIL(CVY_E_UNSUPPORTED, "%s: data set %s: %s%s; or name another data set, or none, by `%s:` of the source",
             h->file[0].path, f->name, f->trouble,
             is_link ? ": correct the link"
                     : ": write the file anew in the format of HDF5 1.10, by `h5repack --high=2 IN OUT` or by "
                       "h5py.File(NAME, \"w\", libver=(\"earliest\", \"v110\")), on the machine that wrote it",
             option);
}

/* Chooses x: the names of the job; or one of the usual names; or else the only data set with two or more axes. */
static cvy_status choose_x(cvy_hdf5 *h, const struct names *n)
{
    const cvy_h5_found *x = usual(n, usual_x);
    int wide = 0;
    if (h->o->x)
        return add_named(h, "x", h->o->x, &h->nx);
    CVY_TRY(check_readable(h, x, "x"));
    for (int i = 0; i < n->nfound && (!x || wide > 0); i++)
        if (n->found[i].shape.ndim >= 2 && !n->found[i].is_alias && !is_taken(h, n->found[i].name) && wide++ == 0)
            x = &n->found[i];
    CVY_CHECK(x && wide <= 1, CVY_E_CONFIG,
              "%s: which data set is the input? It has none of the names x, data, images, features; say `x: NAME`. The "
              "file holds %s",
              h->file[0].path, n->text);
    h->nx = 1;
    return add_column(h, x->name, NULL);
}

/* Chooses y and label: the names of the job, or usual names. A data set y with one integer per sample is taken as
 * labels. */
static cvy_status choose_targets(cvy_hdf5 *h, struct names *n)
{
    const struct hdf5_opts *o = h->o;
    const cvy_h5_found *label = usual(n, usual_label), *y = usual(n, usual_y);
    CVY_CHECK(!o->class_per_file || !o->label || is_none(o->label), CVY_E_CONFIG,
              "label: %s and class_per_file exclude each other", o->label);
    if (!o->label && !o->class_per_file)
        CVY_TRY(check_readable(h, label, "label"));
    if (!o->y)
        CVY_TRY(check_readable(h, y, "y"));
    if (o->label && !is_none(o->label))
        n->label = o->label;
    else if (!o->label && !o->class_per_file && label)
        n->label = label->name;
    else if (!o->label && !o->class_per_file && !o->y && y && y->whole && y->shape.ndim >= 1 &&
             (y->shape.ndim == 1 || (y->shape.ndim == 2 && (y->shape.dim[0] == 1 || y->shape.dim[1] == 1))))
        n->label = y->name;
    if (o->y)
        return o->y->kind == CVY_TREE_SCALAR && is_none(o->y->text) ? CVY_OK : add_named(h, "y", o->y, &h->ny);
    if (!y || (n->label && strcmp(n->label, y->name) == 0))
        return CVY_OK;
    h->ny = 1;
    return add_column(h, y->name, NULL);
}

static cvy_status choose_all(cvy_hdf5 *h, struct names *n)
{
    const cvy_h5_found *weight = usual(n, usual_weight), *coding = usual(n, usual_coding),
                       *extent = usual(n, usual_extent);
    const char *given = h->o->weight;
    h->weight = h->coding = h->extent = -1;
    CVY_TRY(choose_x(h, n));
    CVY_TRY(choose_targets(h, n));
    if (!given)
        CVY_TRY(check_readable(h, weight, "weight"));
    if (given ? !is_none(given) : weight != NULL)
        CVY_TRY(add_column(h, given ? given : weight->name, &h->weight));
    /* the writer adds these to encoded pictures */
    if (strcasecmp(h->column[0].name, "encoded") == 0 && coding && extent) {
        CVY_TRY(add_column(h, coding->name, &h->coding));
        CVY_TRY(add_column(h, extent->name, &h->extent));
    }
    return CVY_OK;
}

/* Says what is not read because it cannot be opened, or was not looked at. */
static cvy_status note_trouble(const cvy_hdf5 *h, const struct names *n, cvy_reader_info *info)
{
    const char *path = h->file[0].path, *why = NULL;
    cvy_passed passed = {0};
    for (int i = 0; i < n->nfound; i++) {
        if (!n->found[i].trouble)
            continue;
        why = why ? why : n->found[i].trouble;
        cvy_passed_add(&passed, NULL, n->found[i].name);
    }
    CVY_TRY(cvy_passed_note(&passed, path, "data set", why, info));
    return n->more > 0 ? cvy_reader_note(info,
                                         "%s: %lld more data sets were not looked at, because there are more than %d; "
                                         "`x:`, `y:`, `label:` and `weight:` find them by name",
                                         path, (long long)n->more, CVY_H5_FOUND_MAX)
                       : CVY_OK;
}

/* Says that the label is an input, too. */
static cvy_status note_shown_label(const cvy_hdf5 *h, const char *label, cvy_reader_info *info)
{
    int shown = 0;
    for (int i = 0; i < h->nx && label; i++)
        shown |= strcmp(h->column[i].name, label) == 0;
    return shown
               ? cvy_reader_note(info,
                                 "%s: the data set %s is the label, and an input too, so that the network is shown the "
                                 "answer: take it out of `x`",
                                 h->file[0].path, label)
               : CVY_OK;
}

cvy_status cvy_h5_choose_names(cvy_hdf5 *h, const char **label_out, cvy_reader_info *info)
{
    struct names *n = NULL;
    CVY_TRY(cvy_pool_alloc(h->pool, sizeof *n, &n));
    CVY_TRY(list_first_file(h, n));
    CVY_TRY(choose_all(h, n));
    *label_out = n->label;
    CVY_TRY(note_shown_label(h, n->label, info));
    return note_trouble(h, n, info);
}

cvy_status cvy_h5_note_names(const cvy_hdf5 *h, const char *label, cvy_reader_info *info)
{
    const struct hdf5_opts *o = h->o;
    const cvy_h5_column *x = &h->column[0];
    const int n = x->ndim - 1, last = n > 1 && !x->encoded && x->axis == 0 && x->shape.ndim == n &&
                                      x->shape.dim[0] == x->dim[n] && x->shape.dim[0] != x->dim[1];
    const int x_guess = !o->x || (!o->axes && h->nx == 1 && (last || (n == 2 && x->shape.ndim == 3))),
              y_guess = h->ny > 0 && !o->y, label_guess = label && !o->label,
              weight_guess = h->weight >= 0 && !o->weight;
    cvy_text text = {0};
    if (x_guess && !x->encoded)
        cvy_text_add(&text, ", x is the data set %s of %s, of which samples are read as %s", x->name,
                     cvy_h5_column_text(x), cvy_shape_text(&x->shape));
    else if (x_guess)
        cvy_text_add(&text, ", x is the data set %s of pictures", x->name);
    if (y_guess)
        cvy_text_add(&text, ", y is %s", h->column[h->nx].name);
    if (label_guess)
        cvy_text_add(&text, ", label is %s", label);
    if (weight_guess)
        cvy_text_add(&text, ", weight is %s", h->column[h->weight].name);
    cvy_status status = text.status;
    if (status == CVY_OK && text.bytes > 0)
        status = cvy_reader_note(info, "%s: %s (options of the source name others%s)", h->file[0].path, text.data + 2,
                                 x_guess && n > 1 && !x->encoded ? ", and `axes` gives their axes" : "");
    cvy_text_free(&text);
    return status;
}

cvy_status cvy_h5_check_names(const cvy_hdf5 *h, hid_t file, const char *label)
{
    const struct hdf5_opts *o = h->o;
    const struct {
        const char *const *names;
        const char *option;
        int is_settled; /* the first file has one, or the job says what to do */
    } role[] = {{usual_y, "y", o->y || h->ny > 0 || label},
                {usual_label, "label", o->label || label || o->class_per_file},
                {usual_weight, "weight", o->weight || h->weight >= 0}};
    for (int i = 0; i < CVY_COUNT(role); i++)
        for (int k = 0; role[i].names[k] && !role[i].is_settled; k++)
            CVY_CHECK(H5Lexists(file, role[i].names[k], H5P_DEFAULT) <= 0, CVY_E_FORMAT,
                      "has a data set %s, and %s has none: all files must have the same data sets; `%s: none` of the "
                      "source leaves it out",
                      role[i].names[k], h->file[0].path, role[i].option);
    return CVY_OK;
}

#endif
