/*
 * data_list.c: reads a text file that lists pictures and their classes, as Caffe and CNTK use them: `path label`,
 * `path,label`, or with a tab between. It may also list paths only. A folder stands for the list.txt in it, which is
 * what data_list_write.c writes.
 *
 * Paths are relative to a root, by default the list's own folder; a path that leads out of the root is refused. Opening
 * reads only the list: a missing file is found, and reported with its line, when it is read. Labels are numbers, or
 * names, which become classes in bytewise order.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_file.h"
#include "base/base_hash.h"
#include "data/array/data_lines.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SEPARATOR_AUTO, SEPARATOR_TAB, SEPARATOR_COMMA, SEPARATOR_SPACE, SEPARATOR_NONE };

struct list_opts {
    const char *root;
    int separator, labels, channels, outside;
    int64_t classes;
};

static const cvy_option list_opts[] = {
    {"root", CVY_TYPE_STRING, CVY_FIELD(list_opts, root), "", "", "",
     "folder that the paths start from; the list's own by default"},
    {"separator", CVY_TYPE_CHOICE, CVY_FIELD(list_opts, separator), "auto", "auto|tab|comma|space|none", "",
     "separator before the label, the last one on a line; none: there are only paths; auto: detected from the first "
     "lines"},
    {"labels", CVY_TYPE_CHOICE, CVY_FIELD(list_opts, labels), "auto", "auto|numbers|names", "",
     "how labels are written; auto: names if at least half of them are no numbers"},
    {"classes", CVY_TYPE_INT, CVY_FIELD(list_opts, classes), "0", "0..", "",
     "number of classes; 0: the number of class names, or the largest label plus one"},
    {"outside", CVY_TYPE_BOOL, CVY_FIELD(list_opts, outside), "false", "", "",
     "allows paths that are absolute or leave the root by .."},
    {"channels", CVY_TYPE_CHOICE, CVY_FIELD(list_opts, channels), "auto", "auto|grey|rgb", "",
     "channels of decoded pictures; auto: those of the first picture"},
    {0},
};

enum { PATH_ROOM = 4096 };

struct list {
    cvy_line_index index; /* an entry gives position and bytes of the path */
    cvy_classes classes;
    const char *root;
    int separator, header; /* header: 1 if the first line names the columns */
    cvy_label_kinds labels;
};

static int list_probe(const char *path)
{
    static const char *const suffix[] = {".txt", ".lst", ".list"};
    char head[512];
    for (int i = 0; i < CVY_COUNT(suffix); i++) {
        if (!cvy_data_has_suffix(path, suffix[i]) || cvy_file_is_folder(path) || !cvy_file_exists(path))
            continue;
        const size_t n = cvy_data_peek(path, head, sizeof head);
        return memchr(head, 0, n) ? 0 : 10;
    }
    return 0;
}

/* ---- a line ---- */

/* Splits a line at its last separator, because paths may contain blanks. Returns 0 if there are not two fields. */
static int split(int separator, cvy_line_part line, cvy_line_part *path, cvy_line_part *label)
{
    const char mark = separator == SEPARATOR_TAB ? '\t' : separator == SEPARATOR_COMMA ? ',' : ' ';
    line = cvy_line_part_trim(line);
    *path = line;
    *label = (cvy_line_part){line.at + line.bytes, 0};
    if (separator == SEPARATOR_NONE)
        return 1;
    for (size_t at = line.bytes; at-- > 0;) {
        if (line.at[at] != mark && !(mark == ' ' && line.at[at] == '\t'))
            continue;
        *path = cvy_line_part_trim((cvy_line_part){line.at, at});
        *label = cvy_line_part_trim((cvy_line_part){line.at + at + 1, line.bytes - at - 1});
        return path->bytes > 0 && label->bytes > 0;
    }
    return 0;
}

static int is_picture(cvy_line_part path)
{
    static const char *const suffix[] = {".jpg", ".jpeg", ".png"};
    char name[16];
    const size_t n = CVY_MIN(path.bytes, sizeof name - 1);
    memcpy(name, path.at + path.bytes - n, n);
    name[n] = 0;
    for (int i = 0; i < CVY_COUNT(suffix); i++)
        if (cvy_data_has_suffix(name, suffix[i]))
            return 1;
    return 0;
}

static int leaves_root(cvy_line_part path)
{
    return path.at[0] == '/' || cvy_data_goes_up(path.at, path.bytes);
}

enum { LINES = 16 }; /* that guesses look at */

static int names_picture(cvy_line_part line)
{
    cvy_line_part path, label;
    for (int s = SEPARATOR_TAB; s <= SEPARATOR_NONE; s++)
        if (split(s, line, &path, &label) && is_picture(path))
            return 1;
    return 0;
}

/* A first line without a file's name is a header if all others name a picture. */
static cvy_status find_header(struct list *l, cvy_reader_info *info)
{
    cvy_lines lines = {.file = &l->index.file};
    cvy_line_part line;
    int64_t offset = 0;
    int n = 0, npicture = 0, is_first = 0; /* is_first: the first line names a file */
    cvy_status status = CVY_OK;
    for (; n < LINES && (status = cvy_lines_next(&lines, &line, &offset)) == CVY_OK; n++) {
        is_first |= n == 0 && (memchr(line.at, '.', line.bytes) || memchr(line.at, '/', line.bytes));
        npicture += n > 0 && names_picture(line);
    }
    cvy_lines_end(&lines);
    if (status < CVY_OK)
        return status;
    l->header = n > 1 && !is_first && npicture == n - 1;
    return l->header
               ? cvy_reader_note(info, "%s: the first line names no file: it is taken for a header", l->index.file.path)
               : CVY_OK;
}

/* Finds the separator that fits all of the first lines. The best one has the path of a picture before it, else a number
 * after it, else text on both sides. If none fits, the lines are only paths. */
static cvy_status find_separator(struct list *l)
{
    enum { PICTURE, NUMBER, ANY, NSENSE };
    int fits[NSENSE][SEPARATOR_NONE];
    cvy_lines lines = {.file = &l->index.file};
    cvy_line_part line, path, label;
    int64_t offset = 0, number = 0;
    cvy_status status = CVY_OK;
    memset(fits, -1, sizeof fits);
    for (int i = 0; i < LINES && (status = cvy_lines_next(&lines, &line, &offset)) == CVY_OK; i++) {
        for (int s = SEPARATOR_TAB; s < SEPARATOR_NONE && i >= l->header; s++) {
            const int any = split(s, line, &path, &label) && !is_picture(label);
            fits[PICTURE][s] &= any && is_picture(path);
            fits[NUMBER][s] &= any && cvy_line_part_int(label, &number);
            fits[ANY][s] &= any;
        }
    }
    cvy_lines_end(&lines);
    if (status < CVY_OK)
        return status;
    l->separator = SEPARATOR_NONE;
    for (int sense = PICTURE; sense < NSENSE && l->separator == SEPARATOR_NONE; sense++)
        for (int s = SEPARATOR_NONE - 1; s >= SEPARATOR_TAB; s--)
            if (fits[sense][s])
                l->separator = s;
    return CVY_OK;
}

/* ---- opening ---- */

/* Reads the label of a line. A bad label stays unknown; list_read() reports it. */
static cvy_status note_label(struct list *l, cvy_line_part label, int32_t *out)
{
    double number = 0;
    const int is_number = cvy_line_part_real(label, &number);
    l->classes.by_name = cvy_label_kinds_add(&l->labels, is_number ? CVY_LABEL_NUMBER : CVY_LABEL_WORD);
    if (l->classes.by_name) {
        const cvy_status status = cvy_classes_number(&l->classes, label.at, label.bytes, out);
        return status == CVY_E_MEMORY ? status : CVY_OK;
    }
    if (!is_number || number != floor(number) || number <= INT32_MIN || number > INT32_MAX)
        return CVY_OK;
    *out = (int32_t)number;
    cvy_classes_note_label(&l->classes, *out);
    return CVY_OK;
}

static cvy_status index_line(struct list *l, const struct list_opts *o, cvy_line_part line, int64_t number,
                             int64_t offset)
{
    cvy_line_part path, label;
    cvy_entry e = {.label = CVY_LABEL_UNKNOWN};
    const int sound = split(l->separator, line, &path, &label);
    if (!sound)
        path = cvy_line_part_trim(line);
    CVY_CHECK(path.bytes + strlen(l->root) + 2 <= PATH_ROOM, CVY_E_FORMAT, "%s, line %lld: a path of %zu bytes",
              l->index.file.path, (long long)number, path.bytes);
    CVY_CHECK(o->outside || !leaves_root(path), CVY_E_FORMAT,
              "%s, line %lld: %.*s leaves the root %s; if that is meant, set outside: true", l->index.file.path,
              (long long)number, (int)path.bytes, path.at, l->root);
    e.offset = (uint64_t)(offset + (path.at - line.at));
    e.bytes = (uint32_t)path.bytes;
    if (sound && l->separator != SEPARATOR_NONE)
        CVY_TRY(note_label(l, label, &e.label));
    return cvy_line_index_add(&l->index, number, &e);
}

static cvy_status index_once(struct list *l, const struct list_opts *o)
{
    cvy_lines lines = {.file = &l->index.file};
    cvy_line_part line;
    int64_t offset = 0;
    cvy_status status = CVY_OK;
    for (int i = 0; (status = cvy_lines_next(&lines, &line, &offset)) == CVY_OK; i++)
        if (i >= l->header)
            CVY_TRY_OUT(index_line(l, o, line, lines.line, offset));
    if (status == CVY_END)
        status = CVY_OK;
out:
    cvy_lines_end(&lines);
    return status;
}

/* Whether labels are names holds for the whole list, whatever its first line is. */
static cvy_status index_lines(struct list *l, const struct list_opts *o, cvy_reader_info *info)
{
    CVY_TRY(index_once(l, o));
    if (cvy_label_kinds_changed(&l->labels)) {
        cvy_line_index_clear(&l->index);
        cvy_classes_free(&l->classes);
        CVY_TRY(index_once(l, o));
    }
    return cvy_label_kinds_mixed(&l->labels)
               ? cvy_reader_note(info, "%s: labels are numbers and names: all are taken as names", l->index.file.path)
               : CVY_OK;
}

/* ---- reading ---- */

static cvy_status path_of(const struct list *l, int64_t number, char path[PATH_ROOM])
{
    const size_t bytes = cvy_entries_at(&l->index.entries, number)->bytes, lead = strlen(l->root) + 1;
    snprintf(path, PATH_ROOM, "%s/", l->root);
    CVY_TRY(cvy_line_index_text(&l->index, number, path + lead));
    path[lead + bytes] = 0;
    if (path[lead] == '/') /* an absolute path */
        memmove(path, path + lead, bytes + 1);
    return CVY_OK;
}

static void list_where(void *state, int64_t number, char *text, size_t room)
{
    const struct list *l = state;
    char path[PATH_ROOM];
    if (path_of(l, number, path) != CVY_OK)
        path[0] = 0;
    snprintf(text, room, "%s, line %lld: %s", l->index.file.path, (long long)cvy_line_index_line(&l->index, number),
             path);
}

static void list_name(void *state, int64_t number, char *text, size_t room)
{
    char path[PATH_ROOM];
    if (path_of(state, number, path) != CVY_OK)
        path[0] = 0;
    snprintf(text, room, "%s", path);
}

static cvy_status list_read(void *state, int64_t number, cvy_raw *raw)
{
    const struct list *l = state;
    char path[PATH_ROOM];
    const int32_t label = cvy_entries_at(&l->index.entries, number)->label;
    CVY_CHECK(label != CVY_LABEL_UNKNOWN || l->separator == SEPARATOR_NONE, CVY_E_FORMAT,
              "the line has no label that is %s, expected PATH%sLABEL as in the first lines",
              l->classes.by_name ? "a name"
              : l->labels.count[CVY_LABEL_WORD] == 0
                  ? "a whole number"
                  : "a whole number as most labels are (`labels: names` makes all of them names)",
              l->separator == SEPARATOR_TAB     ? "<tab>"
              : l->separator == SEPARATOR_COMMA ? ","
                                                : " ");
    CVY_TRY(path_of(l, number, path));
    raw->label = l->separator == SEPARATOR_NONE ? 0 : label;
    return cvy_data_read_picture(path, raw);
}

static cvy_status list_label(void *state, int64_t number, int32_t *label_out)
{
    *label_out = cvy_entries_label(&((const struct list *)state)->index.entries, number);
    return CVY_OK;
}

static void list_hash(void *state, cvy_hasher *h)
{
    const struct list *l = state;
    cvy_hash_add(h, &l->index.file.bytes, sizeof l->index.file.bytes);
    cvy_entries_hash(&l->index.entries, h);
}

static void list_close(void *state)
{
    struct list *l = state;
    cvy_line_index_free(&l->index);
    cvy_classes_free(&l->classes);
}

static cvy_status list_load(struct list *l, const cvy_reader_args *args, cvy_reader_info *info)
{
    const struct list_opts *o = args->options;
    const char *path = args->path, *folder = NULL;
    if (cvy_file_is_folder(path))
        CVY_TRY(cvy_data_path_join(info->pool, path, "list.txt", &path));
    CVY_TRY(cvy_data_file_open(info->pool, path, &l->index.file));
    CVY_TRY(cvy_data_folder_of(info->pool, path, &folder));
    l->root = o->root ? o->root : folder;
    l->separator = o->separator;
    l->labels.asked = o->labels;
    CVY_TRY(find_header(l, info));
    if (l->separator == SEPARATOR_AUTO)
        CVY_TRY(find_separator(l));
    CVY_TRY(index_lines(l, o, info));
    info->nsamples = l->index.entries.count;
    CVY_CHECK(info->nsamples > 0, CVY_E_FORMAT, "%s: holds no samples", path);
    CVY_TRY(cvy_data_read_first(
        &(cvy_pictures){.read = list_read, .where = list_where, .state = l, .count = info->nsamples}, o->channels,
        info));
    if (l->separator == SEPARATOR_NONE)
        return CVY_OK;
    if (!l->classes.by_name && strcmp(cvy_file_base_name(path), "labels.txt") != 0)
        CVY_TRY(cvy_classes_read_names(&l->classes, folder, 0));
    const cvy_status status = cvy_classes_resolve(&l->classes, o->classes, &l->index.entries, info);
    return status == CVY_OK ? CVY_OK : cvy_error_prefix(status, "%s", path);
}

static cvy_status list_open(const cvy_reader_args *args, cvy_reader_info *info, void **state_out)
{
    struct list *l = NULL;
    CVY_CHECK(args->path, CVY_E_CONFIG,
              "format list needs a path: the text file with the list, or a folder with list.txt");
    CVY_TRY(cvy_pool_alloc(info->pool, sizeof *l, &l));
    l->index.file.fd = -1;
    l->classes.pool = info->pool;
    const cvy_status status = list_load(l, args, info);
    if (status != CVY_OK)
        list_close(l);
    else
        *state_out = l;
    return status;
}

CVY_READER_DEFINE(list) = {
    .name = "list",
    .summary = "a text file of paths of pictures and labels, as for Caffe and CNTK",
    .options = list_opts,
    .options_size = sizeof(struct list_opts),
    .probe = list_probe,
    .open = list_open,
    .read = list_read,
    .label = list_label,
    .where = list_where,
    .name_sample = list_name,
    .hash = list_hash,
    .close = list_close,
};
