/*
 * data_remarks.c: sentences about the files of a data set, of which those that say the same of several files become one
 * line of the log.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "data/data_described.h"

struct cvy_remark {
    char *text;
    const char *kind;
    const char *file, *last; /* the first file and the last one that it is about */
    int64_t nfile;
    struct cvy_remark *next;
};

enum { REMARKS_MAX = 24 }; /* of different texts; there may be very many files */

static int is_of_kind(const struct cvy_remark *m, const char *kind, const char *text)
{
    return kind && m->kind ? strcmp(m->kind, kind) == 0 : strcmp(m->text, text) == 0;
}

cvy_status cvy_remark(cvy_remarks *r, const char *file, const char *kind, const char *fmt, ...)
{
    char text[1024];
    struct cvy_remark *m = NULL;
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    for (m = r->first; m; m = m->next)
        if (is_of_kind(m, kind, text)) {
            m->nfile += m->last != file;
            m->last = file;
            return CVY_OK;
        }
    if (r->count++ >= REMARKS_MAX)
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(r->pool, sizeof *m, &m));
    *m = (struct cvy_remark){.file = file, .last = file, .nfile = 1};
    CVY_TRY(cvy_pool_strdup(r->pool, text, &m->text));
    if (kind)
        CVY_TRY(cvy_pool_strdup(r->pool, kind, (char **)&m->kind));
    *(r->last ? &r->last->next : &r->first) = m;
    r->last = m;
    return CVY_OK;
}

cvy_status cvy_remarks_note(const cvy_remarks *r, cvy_reader_info *info)
{
    for (const struct cvy_remark *m = r->first; m; m = m->next) {
        char more[64] = "";
        if (m->nfile > 1)
            snprintf(more, sizeof more, " and %lld more file%s", (long long)m->nfile - 1, m->nfile > 2 ? "s" : "");
        CVY_TRY(cvy_reader_note(info, "%s%s: %s", m->file ? m->file : "x", more, m->text));
    }
    return r->count > REMARKS_MAX ? cvy_reader_note(info, "%lld more remarks of this kind about the files are left out",
                                                    (long long)(r->count - REMARKS_MAX))
                                  : CVY_OK;
}
