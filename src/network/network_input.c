/*
 * network_input.c: compares what a program knows of an array beside its numbers (units, axes, names of columns) with
 * what the weights keep of the training data.
 *
 * cvy_network_apply() takes plain arrays, so nothing is mended here: what a data set would convert or turn round is a
 * fault that names both.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "data/data_described_file.h"
#include "network/network.h"

/* The list of names along the axis of channels, or of the columns of a table. */
static cvy_status check_columns(const cvy_network_spec *spec, const cvy_tree *root)
{
    const cvy_columns *known = &spec->stored.columns;
    const cvy_tree *list = cvy_tree_get(root, "columns");
    if (!list || !known->x)
        return CVY_OK;
    CVY_CHECK(list->kind == CVY_TREE_LIST, CVY_E_ARGUMENT, "\"columns\" is no list of names");
    CVY_CHECK(list->count == known->nx, CVY_E_CONFIG, "x has %d columns, and %lld in the training data", list->count,
              (long long)known->nx);
    for (int i = 0; i < list->count; i++) {
        const char *own = list->child[i]->text ? list->child[i]->text : "";
        CVY_CHECK(strcmp(own, known->x[i]) == 0, CVY_E_CONFIG,
                  "number %d of x is \"%s\", but \"%s\" in the training data: bring the array into that order", i, own,
                  known->x[i]);
    }
    return CVY_OK;
}

/* The same array as each of the variables of x. Its units are theirs only if there is one. */
static cvy_status follow_variables(cvy_pool *pool, const cvy_descriptions *like, cvy_descriptions *own)
{
    cvy_described *each = NULL;
    if (own->nx != 1)
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *each * (size_t)like->nx, &each));
    for (int i = 0; i < like->nx; i++) {
        each[i] = own->x[0];
        if (like->nx > 1)
            each[i].cf[CVY_CF_UNITS] = like->x[i].cf[CVY_CF_UNITS];            /* not known: not compared */
        if (each[i].ndim + 1 == like->x[i].ndim && !like->x[i].axis[0].name) { /* the axis of one channel is left out */
            memmove(each[i].axis + 1, each[i].axis, sizeof *each[i].axis * (size_t)each[i].ndim);
            each[i].axis[0] = (cvy_coordinates){.n = 1};
            each[i].ndim++;
        }
    }
    *own = (cvy_descriptions){.nx = like->nx, .x = each};
    return CVY_OK;
}

static cvy_status check(const cvy_network *n, cvy_pool *pool, const char *described, const char **note_out)
{
    cvy_reader_info own = {.pool = pool};
    const cvy_descriptions *like = &n->spec.stored.described;
    cvy_tree *root = NULL;
    CVY_TRY(cvy_tree_parse_text(pool, "described", described, strlen(described), &root));
    CVY_CHECK(root->kind == CVY_TREE_MAP, CVY_E_ARGUMENT, "the description is no map");
    CVY_TRY(check_columns(&n->spec, root));
    CVY_TRY(cvy_descriptions_read(pool, root, &own.described));
    if (like->nx == 0 || own.described.nx == 0)
        return CVY_OK;
    CVY_TRY(follow_variables(pool, like, &own.described));
    CVY_TRY(cvy_descriptions_agree(like, "in the training data", 0, &own));
    *note_out = own.note;
    return CVY_OK;
}

cvy_status cvy_network_check_input(const cvy_network *network, const char *described, char **notes_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(NETWORK, network));
    cvy_pool *pool = NULL;
    const char *note = NULL;
    char *copy = NULL;
    CVY_CHECK(described, CVY_E_ARGUMENT, "cvy_network_check_input() needs a description");
    CVY_TRY(cvy_pool_create(&pool));
    cvy_status status = check(network, pool, described, &note);
    if (status == CVY_OK && note && notes_out)
        status = cvy_mem_strdup(note, &copy);
    cvy_pool_destroy(&pool);
    if (status == CVY_OK && notes_out)
        *notes_out = copy;
    return status;
}
