/*
 * data_groups.c: see data_groups.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/data_groups.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/base_tree.h"
#include "data/data_missing.h"

enum { NAME_MAX_BYTES = 4096 };

static cvy_status add_number(cvy_groups *g, int32_t number)
{
    if (g->n == g->room) {
        const int64_t room = CVY_MAX(2 * g->room, 1024);
        CVY_TRY(cvy_mem_grow(&g->of, (size_t)g->room * sizeof *g->of, (size_t)room * sizeof *g->of));
        g->room = room;
    }
    g->of[g->n++] = number;
    return CVY_OK;
}

static cvy_status add_name(cvy_groups *g, const char *name)
{
    int number = -1;
    if (name)
        CVY_TRY(cvy_keys_add(&g->names, name, &number));
    return add_number(g, number);
}

static void write_number(double value, char text[40])
{
    if (value == floor(value) && fabs(value) < 9007199254740992.0)
        snprintf(text, 40, "%lld", (long long)value);
    else
        snprintf(text, 40, "%.17g", value);
}

/* Brings a whole number of any length into the form without leading zeros. Returns 0 if the text is none. */
static int write_whole(const char *text, char *out)
{
    const int negative = *text == '-';
    const char *digit = text + (negative || *text == '+');
    if (!*digit || digit[strspn(digit, "0123456789")])
        return 0;
    while (digit[0] == '0' && digit[1])
        digit++;
    sprintf(out, "%s%s", negative && strcmp(digit, "0") != 0 ? "-" : "", digit);
    return 1;
}

cvy_status cvy_groups_add(cvy_groups *g, const char *text, size_t bytes)
{
    char copy[NAME_MAX_BYTES], form[NAME_MAX_BYTES + 2];
    double value = 0;
    while (bytes > 0 && (text[bytes - 1] == 0 || isspace((unsigned char)text[bytes - 1])))
        bytes--;
    while (bytes > 0 && isspace((unsigned char)*text))
        text++, bytes--;
    CVY_CHECK(bytes < sizeof copy, CVY_E_FORMAT, "the name of a group has %zu characters, at most %d", bytes,
              NAME_MAX_BYTES - 1);
    memcpy(copy, text, bytes);
    copy[bytes] = 0;
    CVY_CHECK(!memchr(copy, 0, bytes), CVY_E_FORMAT, "the name of a group has a character 0: \"%s\"", copy);
    if (cvy_missing_is_word(copy, bytes))
        return add_name(g, NULL);
    if (write_whole(copy, form))
        return add_name(g, form);
    if (cvy_text_real(copy, &value) == CVY_OK)
        return cvy_groups_add_number(g, value);
    return add_name(g, copy);
}

cvy_status cvy_groups_add_number(cvy_groups *g, double value)
{
    char text[40];
    write_number(value, text);
    return add_name(g, isnan(value) ? NULL : text);
}

cvy_status cvy_groups_append(cvy_groups *g, const cvy_groups *from, int64_t first, int64_t n)
{
    for (int64_t i = first; i < first + n; i++)
        CVY_TRY(add_name(g, from->of[i] < 0 ? NULL : from->names.text[from->of[i]]));
    return CVY_OK;
}

/* Whether the text begins with a date such as 2019-03-31, of which `characters` are needed. */
static int is_date(const char *text, int characters)
{
    static const char form[] = "dddd-dd-dd";
    for (int i = 0; i < characters; i++)
        if (form[i] == 'd' ? !isdigit((unsigned char)text[i]) : text[i] != '-' && text[i] != '/')
            return 0;
    return !isdigit((unsigned char)text[characters]);
}

cvy_status cvy_groups_cut_dates(cvy_groups *g, int characters)
{
    cvy_keys whole = g->names;
    int *number = NULL;
    char date[16];
    cvy_status status = CVY_OK;
    g->names = (cvy_keys){0};
    CVY_TRY_OUT(cvy_mem_alloc((size_t)CVY_MAX(whole.count, 1) * sizeof *number, &number));
    for (int i = 0; i < whole.count; i++) {
        if (!is_date(whole.text[i], characters))
            CVY_FAIL_OUT(CVY_E_CONFIG,
                         "\"%s\" is no date such as 2019-03-31, nor a time with units such as \"days "
                         "since 2019-01-01\"",
                         whole.text[i]);
        snprintf(date, sizeof date, "%.*s", characters, whole.text[i]);
        for (char *at = date; *at; at++)
            *at = *at == '/' ? '-' : *at;
        CVY_TRY_OUT(cvy_keys_add(&g->names, date, &number[i]));
    }
    for (int64_t i = 0; i < g->n; i++)
        g->of[i] = g->of[i] < 0 ? -1 : number[g->of[i]];
out:
    cvy_mem_free(&number);
    cvy_keys_free(&whole);
    return status;
}

void cvy_groups_free(cvy_groups *g)
{
    cvy_keys_free(&g->names);
    cvy_mem_free(&g->of);
    *g = (cvy_groups){0};
}
