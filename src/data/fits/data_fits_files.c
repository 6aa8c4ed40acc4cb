/*
 * data_fits_files.c: finds the files of a FITS data set, and the labels that folders or a list give them.
 *
 * It runs when the data set is opened, and reads names only; the files themselves are opened later. Samples are the
 * files in bytewise order of their names, or in the order of the list.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/base_file.h"
#include "data/array/data_lines.h"
#include "data/fits/data_fits.h"

int cvy_fits_is_file_name(const char *name)
{
    static const char *const suffix[] = {".fits", ".fit", ".fts", ".fits.gz", ".fits.fz"};
    for (int i = 0; i < CVY_COUNT(suffix) && name[0] != '.'; i++)
        if (cvy_data_has_suffix(name, suffix[i]))
            return 1;
    return 0;
}

int cvy_fits_is_file(const char *path)
{
    char head[9];
    const int known = cvy_data_peek(path, head, sizeof head) == sizeof head;
    return known && (memcmp(head, "SIMPLE  =", sizeof head) == 0 ||
                     (memcmp(head, "\x1f\x8b", 2) == 0 && cvy_fits_is_file_name(cvy_file_base_name(path))));
}

int cvy_fits_is_list(const char *path)
{
    static const char *const suffix[] = {".txt", ".csv", ".lst", ".list"};
    for (int i = 0; i < CVY_COUNT(suffix); i++)
        if (cvy_data_has_suffix(path, suffix[i]))
            return 1;
    return 0;
}

static cvy_status add_file(cvy_fits *f, const char *path, int32_t label)
{
    const cvy_entry e = {.label = label};
    if (f->nfile == f->room) {
        const int64_t room = CVY_MAX(2 * f->room, 256);
        CVY_TRY(cvy_mem_grow(&f->file, (size_t)f->room * sizeof *f->file, (size_t)room * sizeof *f->file));
        f->room = room;
    }
    f->file[f->nfile++] = (cvy_fits_file){.path = path};
    return cvy_entries_add(&f->labels, &e);
}

/* ---- folders ---- */

static cvy_status add_folder(cvy_fits *f, const char *folder, int32_t label)
{
    char **name = NULL;
    int64_t n = 0;
    CVY_TRY(cvy_file_list(f->pool, folder, &name, &n));
    for (int64_t i = 0; i < n; i++) {
        const char *path = NULL;
        if (!cvy_fits_is_file_name(name[i])) {
            cvy_passed_add(&f->passed, label == CVY_LABEL_UNKNOWN ? NULL : cvy_file_base_name(folder), name[i]);
            continue;
        }
        CVY_TRY(cvy_data_path_join(f->pool, folder, name[i], &path));
        CVY_TRY(add_file(f, path, label));
    }
    return CVY_OK;
}

/* A folder of files without classes, or of one folder for each class. */
static cvy_status add_root(cvy_fits *f, const char *root)
{
    char **name = NULL;
    int64_t n = 0;
    CVY_TRY(add_folder(f, root, CVY_LABEL_UNKNOWN));
    CVY_TRY(cvy_file_list(f->pool, root, &name, &n));
    const int64_t loose = f->nfile;
    if (loose == 0)
        f->passed = (cvy_passed){0}; /* the folders are classes */
    for (int64_t i = 0; i < n && loose == 0; i++) {
        const char *path = NULL;
        const int64_t before = f->nfile;
        int32_t label = 0;
        CVY_TRY(cvy_data_path_join(f->pool, root, name[i], &path));
        if (name[i][0] == '.' || !cvy_file_is_folder(path)) {
            cvy_passed_add(&f->passed, NULL, name[i]);
            continue;
        }
        f->classes.by_name = 1;
        CVY_TRY(cvy_classes_number(&f->classes, name[i], strlen(name[i]), &label));
        CVY_TRY(add_folder(f, path, label));
        CVY_CHECK(f->nfile > before, CVY_E_FORMAT, "%s: class folder without a FITS file (*.fits, *.fit, *.fts)", path);
    }
    CVY_CHECK(f->nfile > 0, CVY_E_FORMAT,
              "%s: holds no FITS file (*.fits, *.fit, *.fts), and no folder of them for each class", root);
    return CVY_OK;
}

/* ---- a list ---- */

/* The label of a line, as a number if that of the first line is one. */
static cvy_status find_label(cvy_fits *f, const char *list, cvy_line_part word, int64_t number, int32_t *label)
{
    int64_t value = 0;
    const int is_number = cvy_line_part_int(word, &value);
    if (f->nfile == 0)
        f->classes.by_name = !is_number;
    if (f->classes.by_name)
        return cvy_classes_number(&f->classes, word.at, word.bytes, label);
    CVY_CHECK(is_number && value >= 0 && value < CVY_CLASSES_MAX, CVY_E_FORMAT,
              "%s, line %lld: the label is \"%.*s\", expected a number as in the first line", list, (long long)number,
              (int)word.bytes, word.at);
    *label = (int32_t)value;
    cvy_classes_note_label(&f->classes, *label);
    return CVY_OK;
}

/* Adds "path,label", "path<tab>label", "path label" or "path". The first line may have the names of the columns. */
static cvy_status add_line(cvy_fits *f, const char *folder, const char *list, cvy_line_part line, int64_t number)
{
    const char *path = NULL;
    char *name = NULL;
    int32_t label = CVY_LABEL_UNKNOWN;
    line = cvy_line_part_trim(line);
    size_t cut = line.bytes;
    while (cut > 0 && !strchr(",\t ", line.at[cut - 1]))
        cut--;
    const cvy_line_part word = {line.at + cut, line.bytes - cut},
                        before = cvy_line_part_trim((cvy_line_part){line.at, cut ? cut - 1 : line.bytes});
    CVY_TRY(cvy_pool_printf(f->pool, &name, "%.*s", (int)before.bytes, before.at));
    if (f->nfile == 0 && number == 1 && !cvy_fits_is_file_name(cvy_file_base_name(name)))
        return CVY_OK;
    CVY_CHECK(f->o->outside || (*name != '/' && !cvy_data_goes_up(name, strlen(name))), CVY_E_FORMAT,
              "%s, line %lld: %s leaves the folder of the list; if that is meant, set outside: true", list,
              (long long)number, name);
    if (cut)
        CVY_TRY(find_label(f, list, word, number, &label));
    const int is_known = label != CVY_LABEL_UNKNOWN;
    CVY_CHECK(f->nfile == 0 || is_known == (cvy_entries_at(&f->labels, 0)->label != CVY_LABEL_UNKNOWN), CVY_E_FORMAT,
              "%s, line %lld: %s %s a label, other than the first line", list, (long long)number, name,
              is_known ? "has" : "lacks");
    if (*name == '/')
        path = name;
    else
        CVY_TRY(cvy_data_path_join(f->pool, folder, name, &path));
    return add_file(f, path, label);
}

static cvy_status add_list(cvy_fits *f, const char *list)
{
    cvy_data_file file;
    cvy_line_part line;
    const char *folder = NULL;
    int64_t offset = 0;
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_data_folder_of(f->pool, list, &folder));
    CVY_TRY(cvy_data_file_open(f->pool, list, &file));
    cvy_lines lines = {.file = &file};
    while ((status = cvy_lines_next(&lines, &line, &offset)) == CVY_OK)
        CVY_TRY_OUT(add_line(f, folder, list, line, lines.line));
    if (status == CVY_END)
        status = f->nfile > 0 ? CVY_OK : cvy_error_set(CVY_E_FORMAT, "%s: lists no file", list);
out:
    cvy_lines_end(&lines);
    cvy_data_file_close(&file);
    return status;
}

/* ---- any of them ---- */

cvy_status cvy_fits_find_files(cvy_fits *f, const char *path)
{
    const char **file = NULL;
    int64_t n = 0;
    if (cvy_file_is_folder(path))
        return add_root(f, path);
    if (cvy_fits_is_list(path) && cvy_file_exists(path))
        return add_list(f, path);
    CVY_TRY(cvy_data_files(f->pool, path, cvy_fits_is_file_name, "*.fits", &file, &n, NULL));
    for (int64_t i = 0; i < n; i++)
        CVY_TRY(add_file(f, file[i], CVY_LABEL_UNKNOWN));
    return CVY_OK;
}
