/*
 * data_reader.c: finds the reader of a source, by its name or by the format of the file.
 *
 * cvy_dataset_open() calls it, before training. Nothing here is format specific.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/data_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/text/base_table.h"

/* Lists all formats for messages: "collider, cifar, folder". */
static void all_names(char *text, size_t room)
{
    int count = 0;
    size_t at = 0;
    const cvy_reader_def *const *table = cvy_reader_table(&count);
    text[0] = 0;
    for (int i = 0; i < count && at < room; i++)
        at += (size_t)snprintf(text + at, room - at, "%s%s", i ? ", " : "", table[i]->name);
}

cvy_status cvy_reader_by_name(const char *name, const cvy_reader_def **out)
{
    static const cvy_table_query query = {.what = "data format"};
    int count = 0;
    const cvy_reader_def *const *table = cvy_reader_table(&count);
    return cvy_table_find(table, count, &query, name, out);
}

/* A source that cannot be read has no format that could be seen. A path that does not exist passes. */
static cvy_status check_opens(const char *path)
{
    const char *why = "";
    const int fd = cvy_file_is_folder(path) ? -1 : cvy_file_open(path, O_RDONLY, 0, &why);
    CVY_CHECK(fd >= 0 || !*why || errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG, CVY_E_IO,
              "%s: cannot open: %s", path, why);
    if (fd >= 0)
        close(fd);
    return CVY_OK;
}

cvy_status cvy_reader_detect(const char *path, const cvy_reader_def **out)
{
    int count = 0, best = 0;
    const cvy_reader_def *const *table = cvy_reader_table(&count);
    for (int i = 0; i < count; i++) {
        const int score = table[i]->probe ? table[i]->probe(path) : 0;
        if (score > best) {
            best = score;
            *out = table[i];
        }
    }
    if (best > 0)
        return CVY_OK;
    char all[512];
    all_names(all, sizeof all);
    CVY_TRY(check_opens(path));
    CVY_CHECK(cvy_file_exists(path), CVY_E_IO, "%s: no such file or folder (and no generated data set of this name)%s",
              path, path[0] == '/' ? "" : "; a relative path begins in the folder in which the command is started");
    CVY_TRY(cvy_foreign_check(path));
    CVY_FAIL(CVY_E_FORMAT, "%s: this %s is not in any format that is known (%s): %s", path,
             cvy_file_is_folder(path) ? "folder" : "file", all,
             cvy_file_is_folder(path)
                 ? "an image folder holds *.jpg, *.jpeg or *.png files, or one folder of them for each class"
                 : "give the format by `format:` if it cannot be detected");
}

/* ---- what a sample belongs to ---- */

void cvy_reader_name_sample(const cvy_reader_def *reader, void *state, int64_t number, char *text, size_t room)
{
    char *place = NULL;
    if (reader->name_sample) {
        reader->name_sample(state, number, text, room);
        return;
    }
    reader->where(state, number, text, room);
    for (char *at = strstr(text, ", "); at; at = strstr(at + 1, ", "))
        place = at;
    if (place)
        *place = 0;
}

cvy_status cvy_reader_check_groups(const cvy_reader_def *reader, const char *source)
{
    CVY_CHECK(reader->groups, CVY_E_CONFIG,
              "%s: data of format %s have no columns by which samples could be grouped: group them by their paths, as "
              "in `group: {path: \"patient_([0-9]+)\"}`",
              source, reader->name);
    return CVY_OK;
}

cvy_status cvy_reader_groups(const cvy_reader_def *reader, void *state, const char *source, cvy_groups *to)
{
    const int64_t before = to->n;
    CVY_TRY(cvy_reader_check_groups(reader, source));
    CVY_TRY(reader->groups(state, to));
    CVY_CHECK(to->n > before, CVY_E_CONFIG,
              "%s: the source has no option `group`, which names what its samples belong to", source);
    return CVY_OK;
}
