/*
 * data_folder.c: reads a folder of pictures (.jpg, .jpeg, .png): one sub-folder per class, or all pictures in one
 * folder without classes. It also reads one picture, or those that match a pattern, without classes. Pictures of one
 * folder may have their labels in a file, and a second file may say which of them are meant.
 *
 * Classes are the sub-folders, and samples the files in them, both in bytewise order of their names. Names that begin
 * with a dot are ignored. Opening reads only names (and the header of one picture), so a data set of a million files
 * opens as fast as its folders can be listed. Pictures may vary in size: augmentation resizes them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_file.h"
#include "base/base_hash.h"
#include "data/array/data_numbers.h"
#include "data/data_index.h"

#include <stdlib.h>
#include <string.h>

struct folder_opts {
    const char *labels, *ids;
    int64_t first_label;
    int channels;
};

static const cvy_option folder_opts[] = {
    {"labels", CVY_TYPE_STRING, CVY_FIELD(folder_opts, labels), "", "", "",
     "file with the label of each picture of a folder without classes, in the order of their names: a number a line, "
     "or "
     "FILE.mat:ARRAY"},
    {"ids", CVY_TYPE_STRING, CVY_FIELD(folder_opts, ids), "", "", "",
     "file with the numbers, from 1, of the pictures that are read: a number a line, or FILE.mat:ARRAY"},
    {"first_label", CVY_TYPE_INT, CVY_FIELD(folder_opts, first_label), "-1", "-1..1000000", "",
     "the label of the first class in `labels`; -1: 1 in a MAT-file, 0 in other files"},
    {"channels", CVY_TYPE_CHOICE, CVY_FIELD(folder_opts, channels), "auto", "auto|grey|rgb", "",
     "channels of decoded pictures; auto: those of the first picture"},
    {0},
};

struct entry {
    const char *name; /* the file name without its folder */
    int32_t label;    /* -1: the data set has no classes */
};

struct folder {
    cvy_pool *pool;
    const char *root; /* NULL: names of entries are whole paths */
    const char **class_name;
    int32_t nclasses;
    struct entry *entry;
    int64_t count, room;
    int has_file;      /* 1: labels are from a file, and nclasses is 0, as there are no folders of classes */
    cvy_passed passed; /* what is in the folders besides */
};

static int is_picture_name(const char *name)
{
    return name[0] != '.' && (cvy_data_has_suffix(name, ".jpg") || cvy_data_has_suffix(name, ".jpeg") ||
                              cvy_data_has_suffix(name, ".png"));
}

/* ---- listing ---- */

static cvy_status add_entry(struct folder *f, const char *name, int32_t label)
{
    if (f->count == f->room) {
        const int64_t room = CVY_MAX(2 * f->room, 1024);
        CVY_TRY(cvy_mem_grow(&f->entry, (size_t)f->room * sizeof *f->entry, (size_t)room * sizeof *f->entry));
        f->room = room;
    }
    f->entry[f->count++] = (struct entry){.name = name, .label = label};
    return CVY_OK;
}

/* Why a folder of a class has no picture. If it holds folders, the root has the splits of a set in it. */
static cvy_status no_picture(struct folder *f, const char *path, char *const *file, int64_t nfile)
{
    const char *inner = NULL, *other = NULL;
    for (int64_t i = 0; i < nfile; i++) {
        if (file[i][0] == '.')
            continue;
        other = other ? other : file[i];
        CVY_TRY(cvy_data_path_join(f->pool, path, file[i], &inner));
        CVY_CHECK(!cvy_file_is_folder(inner), CVY_E_FORMAT,
                  "%s: holds no picture, but folders (%s, ..): if it is a split of the set, name it as the source, not "
                  "%s",
                  path, file[i], f->root);
    }
    CVY_FAIL(CVY_E_FORMAT, "%s: class folder without a picture (*.jpg, *.jpeg, *.png) among its %lld files%s%s%s", path,
             (long long)nfile, other ? " (" : "", other ? other : "", other ? ", ..)" : "");
}

static cvy_status list_class(struct folder *f, const char *name)
{
    const char *path = NULL;
    char **file = NULL;
    int64_t nfile = 0;
    const int64_t before = f->count;
    CVY_TRY(cvy_data_path_join(f->pool, f->root, name, &path));
    CVY_TRY(cvy_file_list(f->pool, path, &file, &nfile));
    for (int64_t i = 0; i < nfile; i++)
        if (is_picture_name(file[i]))
            CVY_TRY(add_entry(f, file[i], f->nclasses));
        else
            cvy_passed_add(&f->passed, name, file[i]);
    if (f->count == before)
        return no_picture(f, path, file, nfile);
    f->class_name[f->nclasses++] = name;
    return CVY_OK;
}

static cvy_status list_root(struct folder *f)
{
    char **name = NULL;
    int64_t n = 0;
    CVY_TRY(cvy_file_list(f->pool, f->root, &name, &n));
    CVY_TRY(cvy_pool_alloc(f->pool, (size_t)n * sizeof *f->class_name, &f->class_name));
    for (int64_t i = 0; i < n; i++)
        if (is_picture_name(name[i]))
            CVY_TRY(add_entry(f, name[i], -1));
    const int64_t loose = f->count;
    for (int64_t i = 0; i < n; i++) {
        const char *path = NULL;
        if (name[i][0] == '.' || is_picture_name(name[i]))
            continue;
        CVY_TRY(cvy_data_path_join(f->pool, f->root, name[i], &path));
        if (!cvy_file_is_folder(path)) {
            cvy_passed_add(&f->passed, NULL, name[i]);
            continue;
        }
        CVY_CHECK(
            loose == 0, CVY_E_FORMAT,
            "%s: holds both pictures (%s, ..) and folders (%s, ..): either all pictures are in class folders or none",
            f->root, f->entry[0].name, name[i]);
        CVY_TRY(list_class(f, name[i]));
    }
    CVY_CHECK(f->count > 0, CVY_E_FORMAT,
              "%s: an empty data folder, expected pictures (*.jpg, *.jpeg, *.png) or one folder of them for each class",
              f->root);
    return CVY_OK;
}

/* Folders that are called by numbers are ordered as text: 0, 1, 10, 2. */
static cvy_status note_numbers(const struct folder *f, cvy_reader_info *info)
{
    int32_t other = -1;
    int64_t value = 0;
    for (int32_t i = f->nclasses - 1; i >= 0; i--) {
        if (cvy_text_int(f->class_name[i], &value) != CVY_OK)
            return CVY_OK;
        other = value != i ? i : other;
    }
    return other < 0 ? CVY_OK
                     : cvy_reader_note(info,
                                       "%s: its folders are numbers, and classes are counted from 0 in the order of "
                                       "their names as text: \"%s\" is class %d",
                                       f->root, f->class_name[other], (int)other);
}

static cvy_status note_rest(const struct folder *f, cvy_reader_info *info)
{
    CVY_TRY(note_numbers(f, info));
    CVY_TRY(cvy_splits_note(f->root, "as classes", f->class_name, f->nclasses, info));
    if (f->nclasses > 0 && cvy_data_has_file(f->root, "imagelabels.mat"))
        CVY_TRY(cvy_reader_note(info,
                                "%s: the labels of these pictures are in imagelabels.mat: set `path: %s/%s, labels: "
                                "%s/imagelabels.mat`, and for a split `ids: %s/setid.mat:trnid`",
                                f->root, f->root, f->class_name[0], f->root, f->root));
    return cvy_passed_note(&f->passed, f->root, "file",
                           "only *.jpg, *.jpeg and *.png are pictures that are read; convert others to PNG", info);
}

/* Lists one picture, or those that match a pattern. */
static cvy_status list_files(struct folder *f, const char *path)
{
    const char **file = NULL;
    int64_t n = 0;
    CVY_CHECK(cvy_file_exists(path) || cvy_data_is_glob(path), CVY_E_IO, "%s: no such folder or picture", path);
    CVY_TRY(cvy_data_files(f->pool, path, is_picture_name, "*.jpg", &file, &n, NULL));
    for (int64_t i = 0; i < n; i++)
        CVY_TRY(add_entry(f, file[i], -1));
    return CVY_OK;
}

/* ---- labels in a file ---- */

/* The last number in a name, and where it begins; -1: there is none. */
static int64_t number_in(const char *name, size_t *at_out)
{
    size_t end = strlen(name);
    while (end > 0 && !(name[end - 1] >= '0' && name[end - 1] <= '9'))
        end--;
    size_t at = end;
    while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9')
        at--;
    *at_out = at;
    return at < end && end - at <= 18 ? strtoll(name + at, NULL, 10) : -1;
}

/* The order of names as text must be that of the numbers in them: 1.jpg, 10.jpg, 2.jpg would get wrong labels. */
static cvy_status check_order(const struct folder *f)
{
    for (int64_t i = 1; i < f->count; i++) {
        const char *a = cvy_file_base_name(f->entry[i - 1].name), *b = cvy_file_base_name(f->entry[i].name);
        size_t at_a = 0, at_b = 0;
        const int64_t before = number_in(a, &at_a), after = number_in(b, &at_b);
        CVY_CHECK(at_a != at_b || strncmp(a, b, at_a) != 0 || before < 0 || after < 0 || before <= after, CVY_E_FORMAT,
                  "labels and ids belong to pictures in the order of their names as text, and there %s stands before "
                  "%s: give the numbers in the names equally many digits",
                  a, b);
    }
    return CVY_OK;
}

static cvy_status set_labels(struct folder *f, const struct folder_opts *o, cvy_reader_info *info)
{
    cvy_number_list labels;
    cvy_classes c = {.pool = f->pool};
    cvy_entries none = {0};
    const char *folder = NULL;
    CVY_CHECK(f->nclasses == 0, CVY_E_CONFIG, "labels: %s: is for a folder without classes, and %s has the class %s",
              o->labels, f->root, f->class_name[0]);
    CVY_TRY(cvy_number_list_read(f->pool, o->labels, "labels", &labels));
    CVY_CHECK(
        labels.n == f->count, CVY_E_FORMAT,
        "%s: has %lld labels, and there are %lld pictures: it must have one for each, in the order of their names",
        labels.path, (long long)labels.n, (long long)f->count);
    const int64_t first = o->first_label >= 0 ? o->first_label : labels.name != NULL;
    for (int64_t i = 0; i < f->count; i++) {
        const int64_t label = labels.value[i] - first;
        CVY_CHECK(label >= 0 && label < CVY_CLASSES_MAX, CVY_E_FORMAT,
                  "%s, number %lld: label %d, expected %lld to %lld: `first_label` is the label of the first class",
                  labels.path, (long long)i + 1, labels.value[i], (long long)first,
                  (long long)first + CVY_CLASSES_MAX - 1);
        f->entry[i].label = (int32_t)label;
        cvy_classes_note_label(&c, (int32_t)label);
    }
    f->has_file = 1;
    cvy_status status = cvy_data_folder_of(f->pool, labels.path, &folder);
    if (status == CVY_OK)
        status = cvy_classes_read_names(&c, folder, first);
    if (status == CVY_OK)
        status = cvy_classes_resolve(&c, 0, &none, info);
    cvy_classes_free(&c);
    CVY_TRY(status);
    return cvy_reader_note(info, "%s: labels are those of %s%s%s, %lld classes counted from %lld",
                           f->root ? f->root : "pictures", labels.path, labels.name ? ":" : "",
                           labels.name ? labels.name : "", (long long)info->nclasses, (long long)first);
}

/* Keeps the pictures whose numbers are listed, in that order. */
static cvy_status choose(struct folder *f, const struct folder_opts *o, cvy_reader_info *info)
{
    cvy_number_list ids;
    struct entry *all = f->entry, *chosen = NULL;
    uint8_t *seen = NULL;
    CVY_CHECK(f->nclasses == 0, CVY_E_CONFIG, "ids: %s: is for a folder without classes, and %s has the class %s",
              o->ids, f->root, f->class_name[0]);
    CVY_TRY(cvy_number_list_read(f->pool, o->ids, "ids", &ids));
    CVY_CHECK(ids.n > 0, CVY_E_FORMAT, "%s: has no number", ids.path);
    CVY_TRY(cvy_pool_alloc(f->pool, (size_t)f->count, &seen));
    memset(seen, 0, (size_t)f->count);
    CVY_TRY(cvy_mem_alloc((size_t)ids.n * sizeof *chosen, &chosen));
    f->entry = chosen;
    cvy_status status = CVY_OK;
    for (int64_t i = 0; i < ids.n && status == CVY_OK; i++) {
        const int64_t at = (int64_t)ids.value[i] - 1;
        if (at < 0 || at >= f->count || seen[at])
            status = cvy_error_set(CVY_E_FORMAT, "%s, number %lld: %d, expected each of 1 to %lld at most once",
                                   ids.path, (long long)i + 1, ids.value[i], (long long)f->count);
        else
            seen[at] = 1, chosen[i] = all[at];
    }
    cvy_mem_free(&all);
    CVY_TRY(status);
    CVY_TRY(cvy_reader_note(info, "%s: %lld of %lld pictures are read, those of %s%s%s", f->root ? f->root : "pictures",
                            (long long)ids.n, (long long)f->count, ids.path, ids.name ? ":" : "",
                            ids.name ? ids.name : ""));
    f->count = f->room = ids.n;
    return CVY_OK;
}

static cvy_status apply_files(struct folder *f, const struct folder_opts *o, cvy_reader_info *info)
{
    CVY_CHECK(o->labels || o->first_label < 0, CVY_E_CONFIG, "first_label: is of the file that `labels` names");
    if (o->labels || o->ids)
        CVY_TRY(check_order(f));
    if (o->labels)
        CVY_TRY(set_labels(f, o, info));
    return o->ids ? choose(f, o, info) : CVY_OK;
}

/* A file that begins like a picture, or a pattern of names of pictures. */
static int probe_file(const char *path)
{
    uint8_t head[16];
    const size_t n = cvy_data_peek(path, head, sizeof head);
    if (n > 0)
        return cvy_picture_coding(head, n) != CVY_CODING_PLAIN ? 90 : 0;
    return cvy_data_is_glob(path) && is_picture_name(cvy_file_base_name(path)) ? 50 : 0;
}

static int folder_probe(const char *path)
{
    int is_empty = 0;
    if (!cvy_file_is_folder(path))
        return probe_file(path);
    if (cvy_data_has_such_files(path, is_picture_name, &is_empty))
        return 50;
    return is_empty; /* an empty folder: this reader gives the best error message */
}

/* ---- reading ---- */

static void path_of(const struct folder *f, int64_t number, char *text, size_t room)
{
    const struct entry *e = &f->entry[number];
    if (!f->root)
        snprintf(text, room, "%s", e->name);
    else if (f->nclasses > 0)
        snprintf(text, room, "%s/%s/%s", f->root, f->class_name[e->label], e->name);
    else
        snprintf(text, room, "%s/%s", f->root, e->name);
}

static void folder_where(void *state, int64_t number, char *text, size_t room)
{
    path_of(state, number, text, room);
}

static cvy_status folder_read(void *state, int64_t number, cvy_raw *raw)
{
    const struct folder *f = state;
    char path[4096];
    path_of(f, number, path, sizeof path);
    raw->label = f->entry[number].label;
    return cvy_data_read_picture(path, raw);
}

static cvy_status folder_label(void *state, int64_t number, int32_t *label_out)
{
    *label_out = ((struct folder *)state)->entry[number].label;
    return CVY_OK;
}

/* The first picture of this class, or of a later one. */
static int64_t first_of(const struct folder *f, int64_t label)
{
    int64_t low = 0, high = f->count;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (f->entry[middle].label < label)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Classes take turns: each of up to 32 has a picture that is looked at, and more of them are spread over a class. */
static int64_t folder_look(void *state, int64_t i)
{
    enum { LOOKS = 32 };
    const struct folder *f = state;
    if (f->count <= LOOKS)
        return i;
    const int64_t n = f->nclasses, label = n <= LOOKS ? i % n : i * (n - 1) / (LOOKS - 1);
    const int64_t turn = n <= LOOKS ? i / n : 0, turns = n <= LOOKS ? (LOOKS - 1 - label) / n + 1 : 1;
    const int64_t first = first_of(f, label), count = first_of(f, label + 1) - first;
    return first + turn * count / turns;
}

static void folder_close(void *state)
{
    struct folder *f = state;
    cvy_mem_free(&f->entry);
}

static cvy_status folder_open(const cvy_reader_args *args, cvy_reader_info *info, void **state_out)
{
    const struct folder_opts *o = args->options;
    struct folder *f = NULL;
    char *root = NULL;
    cvy_status status = CVY_OK;
    CVY_CHECK(args->path, CVY_E_CONFIG, "format folder needs a path");
    const int is_folder = cvy_file_is_folder(args->path);
    CVY_TRY(cvy_pool_alloc(info->pool, sizeof *f, &f));
    CVY_TRY(cvy_pool_strdup(info->pool, args->path, &root));
    for (size_t n = strlen(root); n > 1 && root[n - 1] == '/'; n--)
        root[n - 1] = 0;
    f->pool = info->pool;
    f->root = is_folder ? root : NULL;
    CVY_TRY_OUT(is_folder ? list_root(f) : list_files(f, root));
    CVY_TRY_OUT(apply_files(f, o, info));
    CVY_TRY_OUT(cvy_data_read_first(&(cvy_pictures){.read = folder_read,
                                                    .where = folder_where,
                                                    .state = f,
                                                    .count = f->count,
                                                    .number_of = f->nclasses > 1 ? folder_look : NULL},
                                    o->channels, info));
    info->nsamples = f->count;
    if (!f->has_file) {
        info->has_label = f->nclasses > 0;
        info->nclasses = f->nclasses;
        info->class_name = f->class_name;
    }
    CVY_TRY_OUT(is_folder ? note_rest(f, info) : CVY_OK);
    *state_out = f;
    return CVY_OK;
out:
    folder_close(f);
    return status;
}

static void folder_hash(void *state, cvy_hasher *h)
{
    const struct folder *f = state;
    for (int64_t i = 0; i < f->count; i++)
        cvy_hash_add(h, f->entry[i].name, strlen(f->entry[i].name) + 1);
    for (int64_t i = 0; i < f->count && f->has_file; i++)
        cvy_hash_add(h, &f->entry[i].label, sizeof f->entry[i].label);
}

CVY_READER_DEFINE(folder) = {
    .name = "folder",
    .summary = "pictures (JPEG, PNG), one folder per class, or single ones",
    .options = folder_opts,
    .options_size = sizeof(struct folder_opts),
    .probe = folder_probe,
    .open = folder_open,
    .read = folder_read,
    .label = folder_label,
    .where = folder_where,
    .name_sample = folder_where,
    .hash = folder_hash,
    .close = folder_close,
};
