/*
 * base_table.c: finds descriptors by name, and names that are near to a wrong one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/text/base_table.h"

#include <stdio.h>
#include <string.h>

#include "base/text/base_text.h"

static const void *entry(const void *table, int i)
{
    const void *def = NULL;
    memcpy(&def, (const char *)table + (size_t)i * sizeof def, sizeof def);
    return def;
}

static const char *name_of(const void *def)
{
    const char *name = NULL;
    memcpy(&name, def, sizeof name);
    return name;
}

cvy_name_hint cvy_hint_name(char quote, const char *word, const char *const *names, int count)
{
    cvy_name_hint hint = {""};
    const char *near = cvy_text_nearest(word, names, count);
    if (near)
        snprintf(hint.text, sizeof hint.text, "%c did you mean %c%s%c?", quote == '"' ? ';' : ',', quote, near, quote);
    return hint;
}

static cvy_status fail(const cvy_table_query *query, const char *name, const char *const *names, int count)
{
    cvy_text more = {0};
    if (query->hint)
        cvy_text_add(&more, "%s; %s", cvy_hint_name('\'', name, names, count).text, query->hint);
    else
        cvy_text_add_known(&more, name, names, count);
    const cvy_status status = more.status == CVY_OK
                                  ? cvy_error_set(CVY_E_CONFIG, "there is no %s '%s'%s", query->what, name, more.data)
                                  : more.status;
    cvy_text_free(&more);
    return status;
}

cvy_status cvy_table_find(const void *table, int count, const cvy_table_query *query, const char *name, void *def_out)
{
    const char **names = NULL;
    int n = 0;
    for (int i = 0; i < count; i++) {
        const void *def = entry(table, i);
        if ((query->takes && !query->takes(def)) || strcmp(name_of(def), name) != 0)
            continue;
        memcpy(def_out, &def, sizeof def);
        return CVY_OK;
    }
    CVY_TRY(cvy_mem_alloc(sizeof *names * (size_t)count, &names));
    for (int i = 0; i < count; i++)
        if (!query->takes || query->takes(entry(table, i)))
            names[n++] = name_of(entry(table, i));
    const cvy_status status = fail(query, name, names, n);
    cvy_mem_free(&names);
    return status;
}

const char *cvy_bool_word(const char *text)
{
    static const char *const words[][3] = {{"false", "False", "FALSE"}, {"true", "True", "TRUE"}, {"no", "No", "NO"},
                                           {"yes", "Yes", "YES"},       {"off", "Off", "OFF"},    {"on", "On", "ON"}};
    for (int i = 0; i < CVY_COUNT(words); i++)
        for (int k = 0; k < CVY_COUNT(words[i]); k++)
            if (strcmp(text, words[i][k]) == 0)
                return words[i % 2][0];
    return text;
}
