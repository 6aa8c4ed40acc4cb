/*
 * onednn_weight.c: converts layouts of weights between a variable's dimensions and oneDNN's, at planning time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/onednn/onednn_weight.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Replaces the letter of dimension d by that of map[d], and keeps capital letters. */
static void rename_dims(char *tag, const int *map)
{
    for (; *tag; tag++)
        if (isalpha((unsigned char)*tag))
            *tag = (char)((isupper((unsigned char)*tag) ? 'A' : 'a') + map[tolower((unsigned char)*tag) - 'a']);
}

static void plain_text(char *tag, int ndim)
{
    for (int d = 0; d < ndim; d++)
        tag[d] = (char)('a' + d);
    tag[ndim] = '\0';
}

static cvy_layout canonical(const char *tag, int ndim)
{
    char plain[CVY_NDIM_MAX + 2];
    plain_text(plain, ndim);
    return cvy_layout_make(strcmp(tag, plain) == 0 ? "" : tag);
}

/* Product of the inner blocks of dimension d. */
static int64_t block_of(const char *tag, int d)
{
    int64_t block = 1;
    for (const char *at = tag; *at; at++) {
        if (!isdigit((unsigned char)*at))
            continue;
        char *end;
        const long size = strtol(at, &end, 10);
        if (*end == 'a' + d)
            block *= size;
        at = end;
    }
    return block;
}

static int is_depthwise(const cvy_onednn_weight *w)
{
    return w->outer == 1 && w->inner == 1;
}

static const int swap[] = {1, 0, 2, 3, 4, 5}, swap_grouped[] = {0, 2, 1, 3, 4, 5};
static const int up[] = {1, 2, 3, 4, 5, 6}, down[] = {0, 0, 1, 2, 3, 4};
static const int depthwise_up[] = {0, 2, 3, 4, 5, 6}, depthwise_down[] = {0, 0, 1, 2, 3, 4};

/* Adds the dimension of groups before the others. If a group is one channel, adds the dimension of that channel after
 * the groups instead. */
static void add_groups(const cvy_onednn_weight *w, char *tag)
{
    const int depthwise = is_depthwise(w);
    rename_dims(tag, depthwise ? depthwise_up : up);
    memmove(tag + 1 + depthwise, tag + depthwise, strlen(tag + depthwise) + 1);
    tag[depthwise] = depthwise ? 'b' : 'a';
}

/* The inverse. Returns 0 if a tensor without this dimension cannot have the same memory. */
static int drop_groups(const cvy_onednn_weight *w, char *tag)
{
    const int depthwise = is_depthwise(w);
    if (depthwise ? tolower((unsigned char)tag[0]) != 'a' || tag[1] != 'b' || block_of(tag, 1) != 1
                  : tag[0] != 'a' || tolower((unsigned char)tag[1]) != 'b' || block_of(tag, 0) != 1 ||
                        w->outer % block_of(tag, 1) != 0)
        return 0;
    memmove(tag + depthwise, tag + 1 + depthwise, strlen(tag + depthwise));
    rename_dims(tag, depthwise ? depthwise_down : down);
    return 1;
}

cvy_status cvy_onednn_weight_to(const cvy_onednn_weight *w, const cvy_layout *variable, cvy_layout *out)
{
    char tag[sizeof variable->tag + 2];
    snprintf(tag, sizeof tag, "%s", variable->tag);
    if (cvy_layout_is_plain(variable))
        plain_text(tag, w->ndim);
    if (w->groups > 1) {
        if (!is_depthwise(w) && (tolower((unsigned char)tag[0]) != 'a' || w->outer % block_of(tag, 0) != 0))
            return cvy_error_set(CVY_NOT_APPLICABLE, "the %lld groups of the weights are mixed in layout %s",
                                 (long long)w->groups, tag);
        add_groups(w, tag);
    }
    if (w->transposed)
        rename_dims(tag, w->groups > 1 ? swap_grouped : swap);
    *out = canonical(tag, w->ndim + (w->groups > 1));
    return CVY_OK;
}

cvy_status cvy_onednn_weight_from(const cvy_onednn_weight *w, const cvy_layout *onednn, cvy_layout *out)
{
    char tag[sizeof onednn->tag + 2];
    const int ndim = w->ndim + (w->groups > 1);
    snprintf(tag, sizeof tag, "%s", onednn->tag);
    if (cvy_layout_is_plain(onednn))
        plain_text(tag, ndim);
    if (w->transposed)
        rename_dims(tag, w->groups > 1 ? swap_grouped : swap);
    if (w->groups > 1 && !drop_groups(w, tag))
        return cvy_error_set(CVY_NOT_APPLICABLE,
                             "oneDNN's weight layout %s has no equivalent in the variable's dimensions", onednn->tag);
    *out = canonical(tag, w->ndim);
    return CVY_OK;
}
