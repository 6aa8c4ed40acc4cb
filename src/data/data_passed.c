/*
 * data_passed.c: what a reader passes over, such as files of other formats in a folder: it is counted, the first few
 * are named, and one sentence of the log says so.
 *
 * Readers call it when a source is opened.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/data_reader.h"

#include <string.h>
#include <strings.h>

#include "base/base_file.h"

enum { NAMED = 3 };

/* Files that systems put into folders, and the names of classes, which readers look for. */
static int is_hidden(const char *name)
{
    static const char *const hidden[] = {"Thumbs.db", "desktop.ini", "labels.txt"};
    for (int i = 0; i < CVY_COUNT(hidden); i++)
        if (strcasecmp(name, hidden[i]) == 0)
            return 1;
    return name[0] == '.';
}

void cvy_passed_add(cvy_passed *p, const char *folder, const char *name)
{
    const size_t at = strlen(p->names);
    if (is_hidden(name))
        return;
    p->count++;
    if (p->count <= NAMED)
        snprintf(p->names + at, sizeof p->names - at, "%s%s%s%.64s", at ? ", " : "", folder ? folder : "",
                 folder ? "/" : "", name);
    else if (p->count == NAMED + 1)
        snprintf(p->names + at, sizeof p->names - at, ", ..");
}

cvy_status cvy_passed_note(const cvy_passed *p, const char *where, const char *what, const char *why,
                           cvy_reader_info *info)
{
    if (p->count == 0)
        return CVY_OK;
    return cvy_reader_note(info, "%s: %lld %s%s not read (%s): %s", where, (long long)p->count, what,
                           p->count == 1 ? " is" : "s are", p->names, why);
}

/* ---- splits ---- */

int cvy_split_of(const char *name)
{
    static const struct {
        const char *word;
        int split;
    } known[] = {{"train", 1}, {"training", 1}, {"val", 2},     {"valid", 2}, {"validation", 2},
                 {"dev", 2},   {"test", 3},     {"testing", 3}, {"eval", 3},  {"t10k", 3}};
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    for (const char *at = name + strcspn(name, letters); *at; at += strcspn(at, letters)) {
        const size_t n = strspn(at, letters);
        for (int i = 0; i < CVY_COUNT(known); i++)
            if (strlen(known[i].word) == n && strncasecmp(at, known[i].word, n) == 0)
                return known[i].split;
        at += n;
    }
    return 0;
}

cvy_status cvy_splits_note(const char *where, const char *how, const char *const *path, int64_t n,
                           cvy_reader_info *info)
{
    const char *first = NULL;
    int split = 0;
    for (int64_t i = 0; i < n; i++) {
        const char *name = cvy_file_base_name(path[i]);
        const int own = cvy_split_of(name);
        if (own && !first) {
            first = name;
            split = own;
        } else if (own && own != split) {
            return cvy_reader_note(info,
                                   "%s: %s and %s are read %s: if they are splits of the data, name one of them as the "
                                   "source",
                                   where, first, name, how);
        }
    }
    return CVY_OK;
}
