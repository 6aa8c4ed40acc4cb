/*
 * data_cifar.c: reads the binary files of CIFAR-10 and CIFAR-100.
 *
 * CIFAR-10: records of 1 label byte and 3072 picture bytes [3, 32, 32]; files data_batch_1.bin .. data_batch_5.bin and
 * test_batch.bin. CIFAR-100: records of a coarse (20) and a fine (100) label byte and the picture; files train.bin and
 * test.bin. A path is the folder (with `part`: train or test) or one file. Class names come from batches.meta.txt or
 * fine_label_names.txt in the same folder, if these exist. Source: Krizhevsky 2009, "Learning multiple layers of
 * features from tiny images", and the web page of the data set.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_file.h"
#include "base/base_hash.h"
#include "data/data_reader.h"

#include <string.h>

enum { PICTURE_BYTES = 3 * 32 * 32 };
enum { KIND_AUTO, KIND_CIFAR10, KIND_CIFAR100 };
enum { PART_AUTO, PART_TRAIN, PART_TEST };

struct cifar_opts {
    int part, kind, coarse;
};

static const cvy_option cifar_opts[] = {
    {"part", CVY_TYPE_CHOICE, CVY_FIELD(cifar_opts, part), "auto", "auto|train|test", "",
     "which files of a folder are read; auto: those of the training"},
    {"kind", CVY_TYPE_CHOICE, CVY_FIELD(cifar_opts, kind), "auto", "auto|cifar10|cifar100", "",
     "length of a record; auto looks at names and sizes"},
    {"labels", CVY_TYPE_CHOICE, CVY_FIELD(cifar_opts, coarse), "fine", "fine|coarse", "",
     "which label of CIFAR-100 is used"},
    {0},
};

#define CIFAR_FILES_MAX 64

struct cifar {
    int nfile;
    cvy_data_file file[CIFAR_FILES_MAX];
    int64_t first[CIFAR_FILES_MAX + 1]; /* number of each file's first record; the last entry is the total */
    int64_t record_bytes, label_at, nclasses;
};

static int is_cifar10_name(const char *name)
{
    return cvy_data_has_suffix(name, ".bin") &&
           (strncmp(name, "data_batch", 10) == 0 || strncmp(name, "test_batch", 10) == 0);
}

static int is_cifar100_folder(const char *folder)
{
    return cvy_data_has_file(folder, "train.bin") || cvy_data_has_file(folder, "test.bin");
}

static int cifar_probe(const char *path)
{
    if (cvy_file_is_folder(path))
        return cvy_data_has_file(path, "data_batch_1.bin") || cvy_data_has_file(path, "test_batch.bin") ? 90
               : is_cifar100_folder(path)                                                               ? 60
                                                                                                        : 0;
    const char *name = cvy_file_base_name(path);
    if (!cvy_file_exists(path) || !cvy_data_has_suffix(name, ".bin"))
        return 0;
    return is_cifar10_name(name) ? 90 : 40;
}

static cvy_status add_file(struct cifar *c, cvy_pool *pool, const char *path)
{
    CVY_CHECK(c->nfile < CIFAR_FILES_MAX, CVY_E_FORMAT, "%s: more than %d CIFAR files", path, CIFAR_FILES_MAX);
    CVY_TRY(cvy_data_file_open(pool, path, &c->file[c->nfile]));
    c->nfile++;
    return CVY_OK;
}

static cvy_status add_folder(struct cifar *c, cvy_pool *pool, const char *folder, int part, int *kind)
{
    char **name = NULL;
    int64_t count = 0;
    const char *path = NULL;
    CVY_TRY(cvy_file_list(pool, folder, &name, &count));
    const char *wanted = part != PART_TEST ? "data_batch" : "test_batch";
    for (int64_t i = 0; i < count; i++) {
        if (!is_cifar10_name(name[i]) || strncmp(name[i], wanted, strlen(wanted)) != 0)
            continue;
        CVY_TRY(cvy_data_path_join(pool, folder, name[i], &path));
        CVY_TRY(add_file(c, pool, path));
    }
    if (c->nfile > 0) {
        *kind = *kind == KIND_AUTO ? KIND_CIFAR10 : *kind;
        return CVY_OK;
    }
    const char *single = part != PART_TEST ? "train.bin" : "test.bin";
    CVY_CHECK(cvy_data_has_file(folder, single), CVY_E_IO, "%s: holds neither %s*.bin (CIFAR-10) nor %s (CIFAR-100)",
              folder, wanted, single);
    CVY_TRY(cvy_data_path_join(pool, folder, single, &path));
    *kind = *kind == KIND_AUTO ? KIND_CIFAR100 : *kind;
    return add_file(c, pool, path);
}

static cvy_status count_records(struct cifar *c)
{
    for (int i = 0; i < c->nfile; i++) {
        const int64_t whole = c->file[i].bytes / c->record_bytes, rest = c->file[i].bytes % c->record_bytes;
        CVY_CHECK(rest == 0, CVY_E_FORMAT,
                  "%s: truncated in record %lld: %lld bytes are not a multiple of the record's %lld", c->file[i].path,
                  (long long)whole, (long long)c->file[i].bytes, (long long)c->record_bytes);
        CVY_CHECK(whole > 0, CVY_E_FORMAT, "%s: is empty, expected records of %lld bytes", c->file[i].path,
                  (long long)c->record_bytes);
        c->first[i + 1] = c->first[i] + whole;
    }
    return CVY_OK;
}

/* Reads class names from a text file in the data's folder. If the file is missing or short, classes have numbers
 * only. */
static const char *const *class_names(cvy_pool *pool, const char *folder, const char *file, int64_t nclasses)
{
    const char *path = NULL;
    char *text = NULL, *kept = NULL, *line = NULL, *save = NULL;
    const char **names = NULL;
    size_t bytes = 0;
    int64_t n = 0;
    if (!cvy_data_has_file(folder, file) || cvy_data_path_join(pool, folder, file, &path) != CVY_OK ||
        cvy_file_read(path, 1 << 16, &text, &bytes) != CVY_OK)
        return NULL;
    if (cvy_pool_strdup(pool, text, &kept) == CVY_OK &&
        cvy_pool_alloc(pool, (size_t)nclasses * sizeof *names, &names) == CVY_OK)
        for (line = strtok_r(kept, "\r\n", &save); line && n < nclasses; line = strtok_r(NULL, "\r\n", &save))
            names[n++] = line;
    cvy_mem_free(&text);
    return n == nclasses ? names : NULL;
}

static cvy_status find_kind(const struct cifar *c, int *kind)
{
    if (*kind != KIND_AUTO)
        return CVY_OK;
    const char *path = c->file[0].path;
    const int64_t bytes = c->file[0].bytes;
    const int as10 = bytes % (PICTURE_BYTES + 1) == 0, as100 = bytes % (PICTURE_BYTES + 2) == 0;
    *kind = is_cifar10_name(cvy_file_base_name(path)) || as10 ? KIND_CIFAR10 : KIND_CIFAR100;
    CVY_CHECK(as10 || as100, CVY_E_FORMAT,
              "%s: %lld bytes are not a multiple of CIFAR records (%d or %d bytes): truncated in record %lld?", path,
              (long long)bytes, PICTURE_BYTES + 1, PICTURE_BYTES + 2, (long long)(bytes / (PICTURE_BYTES + 1)));
    return CVY_OK;
}

static void cifar_close(void *state)
{
    struct cifar *c = state;
    for (int i = 0; c && i < c->nfile; i++)
        cvy_data_file_close(&c->file[i]);
}

/* Without `part` the files of the test stay aside. */
static cvy_status note_test(const struct cifar *c, const char *folder, cvy_reader_info *info)
{
    const char *name = is_cifar10_name(cvy_file_base_name(c->file[0].path)) ? "test_batch.bin" : "test.bin";
    return cvy_data_has_file(folder, name)
               ? cvy_reader_note(info, "%s: %s is not read: `part: test` reads it, and `part: train` the other files",
                                 folder, name)
               : CVY_OK;
}

static cvy_status cifar_load(struct cifar *c, const cvy_reader_args *args, cvy_reader_info *info)
{
    const struct cifar_opts *o = args->options;
    int kind = o->kind;
    const int is_folder = cvy_file_is_folder(args->path);
    CVY_TRY(is_folder ? add_folder(c, info->pool, args->path, o->part, &kind) : add_file(c, info->pool, args->path));
    CVY_TRY(find_kind(c, &kind));
    c->record_bytes = PICTURE_BYTES + (kind == KIND_CIFAR100 ? 2 : 1);
    c->label_at = kind == KIND_CIFAR100 && !o->coarse;
    c->nclasses = kind == KIND_CIFAR10 ? 10 : o->coarse ? 20 : 100;
    CVY_TRY(count_records(c));
    if (!is_folder && o->kind == KIND_AUTO && !is_cifar10_name(cvy_file_base_name(args->path)))
        CVY_TRY(cvy_reader_note(info,
                                "%s: by its size it is read as CIFAR-%s, records of %lld bytes whose planes are red, "
                                "green and blue (`kind:` of the source says otherwise)",
                                args->path, kind == KIND_CIFAR10 ? "10" : "100", (long long)c->record_bytes));
    const char *folder = NULL;
    CVY_TRY(cvy_data_folder_of(info->pool, c->file[0].path, &folder));
    info->class_name = class_names(info->pool, folder,
                                   kind == KIND_CIFAR10 ? "batches.meta.txt"
                                   : o->coarse          ? "coarse_label_names.txt"
                                                        : "fine_label_names.txt",
                                   c->nclasses);
    if (is_folder && o->part == PART_AUTO)
        CVY_TRY(note_test(c, args->path, info));
    info->nsamples = c->first[c->nfile];
    info->dtype = CVY_DTYPE_U8;
    info->shape = (cvy_shape){3, {3, 32, 32}};
    info->has_label = 1;
    info->nclasses = c->nclasses;
    return CVY_OK;
}

static cvy_status cifar_open(const cvy_reader_args *args, cvy_reader_info *info, void **state_out)
{
    struct cifar *c = NULL;
    CVY_CHECK(args->path, CVY_E_CONFIG, "format cifar needs a path");
    CVY_TRY(cvy_pool_alloc(info->pool, sizeof *c, &c));
    const cvy_status status = cifar_load(c, args, info);
    if (status != CVY_OK)
        cifar_close(c);
    else
        *state_out = c;
    return status;
}

static int file_of(const struct cifar *c, int64_t number)
{
    int i = 0;
    while (number >= c->first[i + 1])
        i++;
    return i;
}

static void cifar_where(void *state, int64_t number, char *text, size_t room)
{
    const struct cifar *c = state;
    const int i = file_of(c, number);
    snprintf(text, room, "%s, record %lld", c->file[i].path, (long long)(number - c->first[i]));
}

static cvy_status cifar_label(void *state, int64_t number, int32_t *label_out)
{
    const struct cifar *c = state;
    const int i = file_of(c, number);
    uint8_t label = 0;
    CVY_TRY(cvy_pread_all(c->file[i].fd, &label, 1, (number - c->first[i]) * c->record_bytes + c->label_at,
                          c->file[i].path));
    *label_out = label;
    return CVY_OK;
}

static cvy_status cifar_read(void *state, int64_t number, cvy_raw *raw)
{
    const struct cifar *c = state;
    const int i = file_of(c, number);
    const int64_t labels = c->record_bytes - PICTURE_BYTES;
    CVY_TRY(cvy_bytes_need(&raw->x, PICTURE_BYTES));
    CVY_TRY(cifar_label(state, number, &raw->label));
    raw->coding = CVY_CODING_PLAIN;
    raw->dtype = CVY_DTYPE_U8;
    raw->shape = (cvy_shape){3, {3, 32, 32}};
    return cvy_pread_all(c->file[i].fd, raw->x.data, PICTURE_BYTES, (number - c->first[i]) * c->record_bytes + labels,
                         c->file[i].path);
}

static void cifar_hash(void *state, cvy_hasher *h)
{
    const struct cifar *c = state;
    for (int i = 0; i < c->nfile; i++) {
        const char *name = cvy_file_base_name(c->file[i].path);
        cvy_hash_add(h, name, strlen(name) + 1);
        cvy_hash_add(h, &c->file[i].bytes, sizeof c->file[i].bytes);
    }
    cvy_hash_add(h, &c->label_at, sizeof c->label_at);
}

CVY_READER_DEFINE(cifar) = {
    .name = "cifar",
    .summary = "binary files of CIFAR-10 and CIFAR-100",
    .options = cifar_opts,
    .options_size = sizeof(struct cifar_opts),
    .probe = cifar_probe,
    .open = cifar_open,
    .read = cifar_read,
    .label = cifar_label,
    .where = cifar_where,
    .hash = cifar_hash,
    .close = cifar_close,
};
