/*
 * data_classes.c: which class of the training a class of further data is: see data_agrees.h.
 *
 * Classes are matched by their names. Classes without names have their numbers as names, "0", "1", ..; so have folders
 * that are called 0, 1, 10, 2. A list in which all names are numbers is matched with another such list by these
 * numbers, whatever their order. Between numbers and words there is nothing to match but the position, which the log
 * says.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "base/base_index.h"
#include "data/data_agrees.h"
#include "data/data_names.h"

struct names { /* of the classes of one data set; a name of its own for each class */
    const char *const *at;
    int64_t n;
    int positions; /* they are "0", "1", .. in this order: perhaps those of classes without names */
    int nnumbers;  /* how many are whole numbers */
};

static int is_number(const char *name)
{
    const size_t digits = strspn(name, "0123456789");
    return digits > 0 && digits < 10 && !name[digits];
}

/* A number without leading zeros. */
static const char *without_zeros(const char *name)
{
    while (name[0] == '0' && name[1])
        name++;
    return name;
}

/* Whether the names are "0", "1", .. in this order. */
static int are_positions(const char *const *name, int64_t n)
{
    char number[24];
    for (int64_t c = 0; c < n; c++) {
        snprintf(number, sizeof number, "%lld", (long long)c);
        if (strcmp(name[c], number) != 0)
            return 0;
    }
    return 1;
}

/* name NULL: classes without names. */
static cvy_status names_of(cvy_pool *pool, const char *const *name, int64_t n, struct names *out)
{
    char **numbers = NULL;
    *out = (struct names){name, n, 1, 0};
    if (!name) {
        CVY_TRY(cvy_pool_alloc(pool, sizeof *numbers * (size_t)CVY_MAX(n, 1), &numbers));
        for (int64_t c = 0; c < n; c++)
            CVY_TRY(cvy_pool_printf(pool, &numbers[c], "%lld", (long long)c));
        out->at = (const char *const *)numbers;
    }
    out->positions = are_positions(out->at, n);
    for (int64_t c = 0; c < n; c++)
        out->nnumbers += is_number(out->at[c]);
    return CVY_OK;
}

/* Whether one has the numbers of positions and the other words alone, so that no name can be in both. */
static int only_position_fits(const struct names *a, const struct names *b)
{
    return (a->positions && b->nnumbers == 0) || (b->positions && a->nnumbers == 0);
}

static cvy_status cannot_match(const char *a_name, const struct names *a, const char *b_name, const struct names *b)
{
    char text[2][CVY_DATA_NAMES_TEXT];
    CVY_FAIL(
        CVY_E_CONFIG,
        "the classes of %s are %s, and those of %s are %s: they cannot be matched by name; give both the same names",
        a_name, cvy_data_names_text(a->at, a->n, text[0]), b_name, cvy_data_names_text(b->at, b->n, text[1]));
}

/* ---- sources of one data set ---- */

cvy_status cvy_classes_check_kinds(const cvy_source *a, const cvy_source *b)
{
    struct names x, y;
    CVY_TRY(names_of(a->info.pool, a->info.class_name, a->info.nclasses, &x));
    CVY_TRY(names_of(b->info.pool, b->info.class_name, b->info.nclasses, &y));
    return only_position_fits(&x, &y) ? cannot_match(cvy_source_name(a), &x, cvy_source_name(b), &y) : CVY_OK;
}

/* ---- following the training data ---- */

/* Finds which classes have samples. If the format cannot say it without reading samples, all may have. */
static void find_used(const cvy_source *s, uint8_t *used)
{
    int32_t label = 0;
    memset(used, !s->reader->label, (size_t)s->info.nclasses);
    for (int64_t i = 0; s->reader->label && i < s->info.nsamples; i++)
        if (s->reader->label(s->state, i, &label) == CVY_OK && label >= 0 && label < s->info.nclasses)
            used[label] = 1;
}

/* Fills the index with names. Zeros in front do not count if all names of both sets are numbers and stay different. */
static cvy_status index_names(const struct names *known, int *skips_zeros, cvy_index *index)
{
    for (int64_t c = 0; c < known->n; c++) {
        const char *key = *skips_zeros ? without_zeros(known->at[c]) : known->at[c];
        if (*skips_zeros && cvy_index_find(index, key) >= 0) { /* 1 and 01 */
            cvy_index_free(index);
            *skips_zeros = 0;
            return index_names(known, skips_zeros, index);
        }
        CVY_CHECK(cvy_index_find(index, key) < 0, CVY_E_CONFIG,
                  "the training data have two classes \"%s\", which cannot be told apart by name: give each a name of "
                  "its own",
                  key);
        CVY_TRY(cvy_index_add(index, key, (int)c));
    }
    return CVY_OK;
}

static cvy_status unknown_class(const cvy_source *s, const struct names *known, const struct names *own, int64_t c)
{
    char text[2][CVY_DATA_NAMES_TEXT];
    CVY_FAIL(CVY_E_CONFIG,
             "%s has the class \"%s\", which the training data do not have: its classes are %s, and theirs are %s",
             cvy_source_name(s), own->at[c], cvy_data_names_text(own->at, own->n, text[0]),
             cvy_data_names_text(known->at, known->n, text[1]));
}

/* Fills label[] with the numbers of the classes of s in the training data; -1: a class without samples. */
static cvy_status map_names(const cvy_source *s, const struct names *known, const struct names *own, cvy_index *index,
                            int32_t *label)
{
    int skips_zeros = known->nnumbers == known->n && own->nnumbers == own->n;
    int64_t same = 0;
    uint8_t *used = NULL;
    for (; same < CVY_MIN(own->n, known->n) && strcmp(own->at[same], known->at[same]) == 0; same++)
        label[same] = (int32_t)same;
    if (same == own->n)
        return CVY_OK;
    CVY_TRY(index_names(known, &skips_zeros, index));
    for (int64_t c = 0; c < own->n; c++) {
        label[c] = cvy_index_find(index, skips_zeros ? without_zeros(own->at[c]) : own->at[c]);
        if (label[c] >= 0)
            continue;
        if (own->positions && !used) { /* a class without a name is there because a later one is */
            CVY_TRY(cvy_pool_alloc(s->info.pool, (size_t)own->n, &used));
            find_used(s, used);
        }
        if (!used || used[c])
            return unknown_class(s, known, own, c);
    }
    return CVY_OK;
}

/* Says which classes of the training data s does not have. */
static cvy_status note_absent(cvy_source *s, const struct names *known, const struct names *own, const int32_t *label)
{
    const char **absent = NULL;
    uint8_t *has = NULL;
    char text[CVY_DATA_NAMES_TEXT];
    int64_t n = 0;
    CVY_TRY(cvy_pool_alloc(s->info.pool, (size_t)known->n, &has));
    CVY_TRY(cvy_pool_alloc(s->info.pool, (size_t)known->n * sizeof *absent, &absent));
    for (int64_t c = 0; c < own->n; c++)
        if (label[c] >= 0)
            has[label[c]] = 1;
    for (int64_t c = 0; c < known->n; c++)
        if (!has[c])
            absent[n++] = known->at[c];
    return n == 0 ? CVY_OK
                  : cvy_reader_note(&s->info, "%s has no sample of %lld of the %lld classes of the training data: %s",
                                    cvy_source_name(s), (long long)n, (long long)known->n,
                                    cvy_data_names_text(absent, n, text));
}

/* Without a common name classes are matched by position: all of the words, or the first of them. */
static cvy_status match_positions(cvy_source *s, const struct names *known, const struct names *own)
{
    if (own->n > known->n || (known->positions && own->n != known->n))
        return cannot_match(cvy_source_name(s), own, "the training data", known);
    return cvy_reader_note(&s->info,
                           "%s: its classes have %s and those of the training data have %s: class 0 is \"%s\" here and "
                           "\"%s\" there, class %lld is \"%s\" and \"%s\"",
                           cvy_source_name(s), own->positions ? "numbers" : "names",
                           own->positions ? "names" : "numbers", own->at[0], known->at[0], (long long)own->n - 1,
                           own->at[own->n - 1], known->at[own->n - 1]);
}

cvy_status cvy_source_follow_classes(const cvy_dataset_info *like, cvy_source *s, int32_t **label_out)
{
    struct names known, own;
    cvy_index index = {0};
    int32_t *label = NULL;
    int other = 0;
    *label_out = NULL;
    CVY_TRY(names_of(s->info.pool, like->class_name, like->nclasses, &known));
    CVY_TRY(names_of(s->info.pool, s->info.class_name, s->info.nclasses, &own));
    if (own.n == 0 || (known.positions && own.positions && own.n > known.n)) /* cvy_dataset_agrees() says so */
        return CVY_OK;
    if (only_position_fits(&known, &own))
        return match_positions(s, &known, &own);
    CVY_TRY(cvy_pool_alloc(s->info.pool, (size_t)own.n * sizeof *label, &label));
    cvy_status status = map_names(s, &known, &own, &index, label);
    cvy_index_free(&index);
    if (status == CVY_OK)
        status = note_absent(s, &known, &own, label);
    for (int64_t c = 0; c < own.n && status == CVY_OK; c++)
        other |= label[c] != (int)c;
    if (other)
        *label_out = label;
    return status;
}

cvy_status cvy_source_take_classes(const cvy_dataset_info *like, cvy_source *s)
{
    const char **name = NULL;
    struct names known;
    CVY_TRY(names_of(s->info.pool, like->class_name, like->nclasses, &known));
    if (known.positions && s->info.nclasses > known.n) /* cvy_dataset_agrees() says so */
        return CVY_OK;
    s->info.nclasses = known.n;
    s->info.class_name = NULL;
    if (known.positions)
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(s->info.pool, (size_t)known.n * sizeof *name, &name));
    for (int64_t i = 0; i < known.n; i++)
        CVY_TRY(cvy_pool_strdup(s->info.pool, known.at[i], (char **)&name[i]));
    s->info.class_name = name;
    return CVY_OK;
}

/* ---- classes of a data set as a whole ---- */

int cvy_classes_are_numbers(const cvy_dataset_info *data)
{
    return !data->class_name || are_positions(data->class_name, data->nclasses);
}

static cvy_status agree(cvy_pool *pool, const char *const *known_name, int64_t nknown, const cvy_dataset_info *data)
{
    const char *where = cvy_dataset_name(data);
    struct names known, own;
    CVY_TRY(names_of(pool, known_name, nknown, &known));
    CVY_TRY(names_of(pool, data->class_name, data->nclasses, &own));
    if (only_position_fits(&known, &own) || (known.positions && own.positions))
        return CVY_OK;
    for (int64_t i = 0; i < own.n; i++)
        CVY_CHECK(strcmp(known.at[i], own.at[i]) == 0, CVY_E_CONFIG,
                  "class %lld is \"%s\" in %s, but \"%s\" in the training data: data must have all classes, by the "
                  "same names",
                  (long long)i, own.at[i], where, known.at[i]);
    return CVY_OK;
}

cvy_status cvy_classes_agree(const char *const *known, int64_t nknown, const cvy_dataset_info *data)
{
    cvy_pool *pool = NULL;
    CVY_CHECK((nknown > 0) == (data->nclasses > 0), CVY_E_CONFIG, "%s has %s, but the training data have %s",
              cvy_dataset_name(data), nknown > 0 ? "no classes" : "classes", nknown > 0 ? "classes" : "none");
    CVY_CHECK(data->nclasses <= nknown, CVY_E_CONFIG, "%s has %lld classes, but the training data have %lld",
              cvy_dataset_name(data), (long long)data->nclasses, (long long)nknown);
    CVY_TRY(cvy_pool_create(&pool));
    const cvy_status status = agree(pool, known, nknown, data);
    cvy_pool_destroy(&pool);
    return status;
}
