/*
 * pass.c: runs the passes in order, and finds out which ones are switched off.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "pass/pass.h"

#include <string.h>

static int names(const char *list, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = list; (at = strstr(at, name)) != NULL; at += n)
        if ((at == list || strchr(", ", at[-1])) && (at[n] == '\0' || strchr(", ", at[n])))
            return 1;
    return 0;
}

int cvy_pass_is_on(const char *off, const char *name)
{
    return !off || (strcmp(off, "all") != 0 && !names(off, name));
}

static cvy_status unknown(const char *word, int length)
{
    int count = 0;
    const cvy_pass_def *const *table = cvy_pass_table(&count);
    cvy_text t = {0};
    for (int i = 0; i < count; i++)
        if (table[i]->can_be_off)
            cvy_text_add(&t, "%s, ", table[i]->name);
    cvy_error_set(CVY_E_CONFIG, "there is no pass '%.*s' to switch off; the passes are %sor all", length, word,
                  t.data ? t.data : "");
    cvy_text_free(&t);
    return CVY_E_CONFIG;
}

cvy_status cvy_passes_check(const char *off)
{
    int count = 0;
    const cvy_pass_def *const *table = cvy_pass_table(&count);
    for (const char *at = off; at && *at;) {
        at += strspn(at, ", ");
        const size_t n = strcspn(at, ", ");
        int found = n == 0 || (n == 3 && strncmp(at, "all", n) == 0);
        for (int i = 0; i < count; i++)
            found |= table[i]->can_be_off && strlen(table[i]->name) == n && strncmp(table[i]->name, at, n) == 0;
        if (!found)
            return unknown(at, (int)n);
        at += n;
    }
    return CVY_OK;
}

/* The next pass with a higher `order`; NULL: none. */
static const cvy_pass_def *next_after(int order)
{
    int count = 0;
    const cvy_pass_def *const *table = cvy_pass_table(&count), *next = NULL;
    for (int i = 0; i < count; i++)
        if (table[i]->run && table[i]->order > order && (!next || table[i]->order < next->order))
            next = table[i];
    return next;
}

cvy_status cvy_passes_run(cvy_pass_run *r)
{
    for (const cvy_pass_def *pass = next_after(0); pass; pass = next_after(pass->order))
        if ((r->training || !pass->training) && (!pass->can_be_off || cvy_pass_is_on(r->off, pass->name)))
            CVY_TRY(pass->run(r));
    return CVY_OK;
}
