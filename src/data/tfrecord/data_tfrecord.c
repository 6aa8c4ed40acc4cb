/*
 * data_tfrecord.c: reads TFRecord files of tf.train.Example: pictures with classes, as TensorFlow's scripts write them,
 * or lists of numbers.
 *
 * A path is a file, a folder of *.tfrecord, *.tfrecords and NAME-00000-of-00010, or a glob. Opening reads all files
 * once, to find the positions of the records and their labels. If there are no labels, it reads only the heads of
 * records. It reads nothing if data_tfrecord_index.c saved the result in an earlier run. Samples are read by position;
 * files that are compressed as a whole are unpacked in memory for it (data_tfrecord_packed.c).
 * The first pass verifies the checksums of lengths, because nothing after a wrong length can be found; the checksum of
 * a record is verified when it is read. data_tfrecord_sample.c interprets the features of a record.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/tfrecord/data_tfrecord.h"

#include <stdio.h>
#include <string.h>

#include "base/base_file.h"
#include "data/tfrecord/data_tfrecord_index.h"
#include "data/tfrecord/data_tfrecord_packed.h"

enum { OPEN_MAX = 512 }; /* files that are kept open; the others are opened for each read */

/* ---- names ---- */

static int all_digits(const char *at, int n)
{
    for (int i = 0; i < n; i++)
        if (at[i] < '0' || at[i] > '9')
            return 0;
    return 1;
}

static int number_of(const char *at)
{
    int n = 0;
    for (int i = 0; i < 5; i++)
        n = 10 * n + at[i] - '0';
    return n;
}

/* "train-00003-of-00010", with or without a suffix after it: 3 and 10. */
static int parse_shard(const char *name, int *shard_out, int *count_out)
{
    const char *of = NULL;
    for (const char *at = name; (at = strstr(at, "-of-")) != NULL; at += 4)
        of = at;
    if (!of || of - name < 6 || !all_digits(of - 5, 5) || strlen(of) < 9 || !all_digits(of + 4, 5) ||
        (of[9] != 0 && of[9] != '.'))
        return 0;
    *shard_out = number_of(of - 5);
    *count_out = number_of(of + 4);
    return 1;
}

/* "train-00003-of-00010", without a suffix, or .tfrecord, .tfrecords; .gz or .zz after it: compressed as a whole. */
static int is_ours(const char *name)
{
    static const char *const suffix[] = {".gz", ".zz"};
    char plain[256];
    int shard = 0, count = 0;
    for (int i = 0; i < CVY_COUNT(suffix); i++) {
        if (!cvy_data_has_suffix(name, suffix[i]) || strlen(name) >= sizeof plain)
            continue;
        snprintf(plain, sizeof plain, "%.*s", (int)(strlen(name) - strlen(suffix[i])), name);
        name = plain;
        break;
    }
    if (cvy_data_has_suffix(name, ".tfrecord") || cvy_data_has_suffix(name, ".tfrecords"))
        return 1;
    const char *end = strrchr(name, '-');
    return end && strlen(end) == 6 && parse_shard(name, &shard, &count);
}

/* Refuses a folder in which shards are missing: it was copied in part, or is still being written. Paths are in bytewise
 * order. */
static cvy_status check_shards(const char *const *path, int64_t n)
{
    int before = -1, count = 0; /* shard number of the file before; -1: it is not a shard, or it is the last one */
    for (int64_t i = 0; i <= n; i++) {
        int shard = -1, of = count;
        const int is_shard = i < n && parse_shard(cvy_file_base_name(path[i]), &shard, &of);
        const int want = before + 1;
        if (is_shard || before >= 0)
            CVY_CHECK(is_shard && shard == want && (before < 0 || of == count) && shard < of, CVY_E_FORMAT,
                      "%s: shard %05d of %05d is missing in the same folder; name the files by a glob if a part of the "
                      "set is "
                      "meant",
                      path[before < 0 ? i : i - 1], want, before < 0 ? of : count);
        count = of;
        before = is_shard && shard + 1 < of ? shard : -1;
    }
    return CVY_OK;
}

static int probe_file(const char *path)
{
    uint8_t head[CVY_TFRECORD_HEAD];
    const size_t got = cvy_data_peek(path, head, sizeof head);
    if (got == sizeof head && cvy_tfrecord_crc(head, 8) == cvy_wire_little(head + 8, 4))
        return 95;
    return is_ours(cvy_file_base_name(path)) && cvy_file_exists(path) ? 60 : 0;
}

static int tf_probe(const char *path)
{
    cvy_pool *pool = NULL;
    const char **file = NULL;
    int64_t n = 0;
    int score = 0;
    const int folder = cvy_file_is_folder(path);
    if (!folder && !cvy_data_is_glob(path))
        return probe_file(path);
    if (cvy_pool_create(&pool) != CVY_OK)
        return 0;
    if (cvy_data_files(pool, path, is_ours, "", &file, &n, NULL) == CVY_OK)
        score = folder ? 70 : probe_file(file[0]);
    cvy_pool_destroy(&pool);
    return score;
}

/* ---- records ---- */

cvy_status cvy_tfrecord_read_head(cvy_scan *scan, int64_t at, int64_t record, uint32_t *bytes_out)
{
    const char *path = scan->file->path;
    const int64_t left = scan->file->bytes - at;
    const uint8_t *head = NULL;
    CVY_CHECK(left >= CVY_TFRECORD_HEAD, CVY_E_FORMAT,
              "%s, record %lld at byte %lld: truncated: %lld bytes, a record's head alone has %d", path,
              (long long)record, (long long)at, (long long)left, CVY_TFRECORD_HEAD);
    CVY_TRY(cvy_scan_at(scan, at, CVY_TFRECORD_HEAD, &head));
    const uint64_t bytes = cvy_wire_little(head, 8);
    const uint32_t want = (uint32_t)cvy_wire_little(head + 8, 4), crc = cvy_tfrecord_crc(head, 8);
    CVY_CHECK(
        crc == want, CVY_E_FORMAT,
        "%s, record %lld at byte %lld: checksum of the length is %08x, expected %08x: damaged, or not a TFRecord file",
        path, (long long)record, (long long)at, crc, want);
    CVY_CHECK(bytes <= (uint64_t)left && left - (int64_t)bytes >= CVY_TFRECORD_HEAD + CVY_TFRECORD_FOOT, CVY_E_FORMAT,
              "%s, record %lld at byte %lld: truncated: a record of %llu bytes, and the file has %lld more", path,
              (long long)record, (long long)at, (unsigned long long)bytes, (long long)left - CVY_TFRECORD_HEAD);
    CVY_CHECK(bytes <= INT32_MAX, CVY_E_UNSUPPORTED,
              "%s, record %lld at byte %lld: %llu bytes, expected less than 2 GiB", path, (long long)record,
              (long long)at, (unsigned long long)bytes);
    *bytes_out = (uint32_t)bytes;
    return CVY_OK;
}

/* The record is followed by its foot. */
static cvy_status check_record(const uint8_t *record, size_t bytes)
{
    const uint32_t want = (uint32_t)cvy_wire_little(record + bytes, 4), crc = cvy_tfrecord_crc(record, bytes);
    CVY_CHECK(crc == want, CVY_E_FORMAT, "checksum %08x, expected %08x: damaged; copy the file again", crc, want);
    return CVY_OK;
}

/* ---- the first pass ---- */

/* Whether the first pass must read the records themselves, or only their heads. */
static int reads_records(const struct tf *t)
{
    return !t->is.resolved || t->is.name[TF_LABEL] || t->is.name[TF_X_SHAPE];
}

/* Reads the label of a record. A label that cannot be used stays unknown; tf_read() reports it. */
static cvy_status note_label(struct tf *t, const struct tf_sample *s, int32_t *label)
{
    cvy_wire text = {NULL, NULL};
    int32_t number = 0;
    if (cvy_tf_label(&t->is, s, &number, &text) != CVY_OK)
        return CVY_OK;
    if (t->is.by_name) {
        const cvy_status status =
            cvy_classes_number(&t->classes, (const char *)text.at, (size_t)(text.end - text.at), label);
        return status == CVY_E_MEMORY ? status : CVY_OK;
    }
    *label = number;
    cvy_classes_note_label(&t->classes, number);
    if (cvy_feature_bytes(&s->f[TF_TEXT], &text))
        return cvy_classes_set_name(&t->classes, number, (const char *)text.at, (size_t)(text.end - text.at));
    return CVY_OK;
}

static cvy_status index_record(struct tf *t, struct tf_sample *s, int32_t *label)
{
    cvy_shape shape;
    if (check_record(s->record, s->bytes) != CVY_OK || cvy_tf_find(&t->is, s) != CVY_OK)
        return CVY_OK; /* tf_read() reports the error */
    if (!t->is.resolved) {
        CVY_TRY(cvy_tf_resolve(&t->is, t->pool, s));
        t->classes.by_name = t->is.by_name;
    }
    if (t->is.name[TF_X_SHAPE] && cvy_tf_shape(&s->f[TF_X_SHAPE], &shape))
        t->x_varies |= !cvy_shape_equal(&shape, &t->is.x_shape);
    return t->is.name[TF_LABEL] ? note_label(t, s, label) : CVY_OK;
}

static cvy_status index_file(struct tf *t, cvy_scan *scan)
{
    const cvy_data_file *file = scan->file;
    const int64_t first = t->entries.count;
    for (int64_t at = 0; at < file->bytes;) {
        const int64_t record = t->entries.count - first;
        struct tf_sample s = {0};
        cvy_entry e = {.offset = (uint64_t)at, .label = CVY_LABEL_UNKNOWN};
        scan->window = reads_records(t) ? (size_t)1 << 22 : (size_t)1 << 14;
        CVY_TRY(cvy_tfrecord_read_head(scan, at, record, &e.bytes));
        if (reads_records(t)) {
            CVY_TRY(cvy_scan_at(scan, at + CVY_TFRECORD_HEAD, (size_t)e.bytes + CVY_TFRECORD_FOOT, &s.record));
            s.bytes = e.bytes;
            const cvy_status status = index_record(t, &s, &e.label);
            if (status != CVY_OK)
                return cvy_error_prefix(status, "%s, record %lld at byte %lld", file->path, (long long)record,
                                        (long long)at);
        }
        CVY_TRY(cvy_entries_add(&t->entries, &e));
        at += CVY_TFRECORD_HEAD + (int64_t)e.bytes + CVY_TFRECORD_FOOT;
    }
    return CVY_OK;
}

static cvy_status index_files(struct tf *t)
{
    cvy_scan scan = {0};
    cvy_status status = CVY_OK;
    for (int64_t i = 0; i < t->nfile; i++) {
        cvy_data_file file;
        CVY_TRY_OUT(cvy_tf_file_take(t, i, &file));
        cvy_scan_begin(&scan, &file, 0);
        status = index_file(t, &scan);
        cvy_tf_file_give(t, i, &file);
        CVY_TRY_OUT(status);
        t->first[i + 1] = t->entries.count;
    }
out:
    cvy_scan_end(&scan);
    return status;
}

/* ---- reading ---- */

static int64_t file_of(const struct tf *t, int64_t number)
{
    int64_t low = 0, high = t->nfile; /* first[low] <= number < first[high] */
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        *(t->first[middle] <= number ? &low : &high) = middle;
    }
    return low;
}

static void tf_where(void *state, int64_t number, char *text, size_t room)
{
    const struct tf *t = state;
    const int64_t file = file_of(t, number);
    snprintf(text, room, "%s, record %lld at byte %llu", t->file[file].path, (long long)(number - t->first[file]),
             (unsigned long long)cvy_entries_at(&t->entries, number)->offset);
}

/* Reads the bytes of a record behind its head, with its foot, of the file that has this sample. */
static cvy_status read_record(const struct tf *t, int64_t number, void *to)
{
    const cvy_entry *e = cvy_entries_at(&t->entries, number);
    const int64_t i = file_of(t, number);
    cvy_data_file file;
    CVY_TRY(cvy_tf_file_take(t, i, &file));
    const cvy_status status = cvy_pread_all(file.fd, to, (size_t)e->bytes + CVY_TFRECORD_FOOT,
                                            (int64_t)e->offset + CVY_TFRECORD_HEAD, "the file");
    cvy_tf_file_give(t, i, &file);
    return status;
}

/* raw->y has room for the targets, followed by the record. */
static cvy_status tf_read(void *state, int64_t number, cvy_raw *raw)
{
    const struct tf *t = state;
    const cvy_entry *e = cvy_entries_at(&t->entries, number);
    const size_t y_bytes = (size_t)t->is.y_elems * sizeof(float), bytes = e->bytes;
    struct tf_sample s = {.bytes = bytes};
    CVY_TRY(cvy_bytes_need(&raw->y, y_bytes + bytes + CVY_TFRECORD_FOOT));
    uint8_t *record = (uint8_t *)raw->y.data + y_bytes;
    CVY_TRY(read_record(t, number, record));
    CVY_TRY(check_record(record, bytes));
    s.record = record;
    CVY_TRY(cvy_tf_find(&t->is, &s));
    CVY_TRY(cvy_tf_take_x(&t->is, &s, raw));
    raw->label = 0;
    if (t->is.name[TF_LABEL]) {
        cvy_wire name;
        CVY_TRY(cvy_tf_label(&t->is, &s, &raw->label, &name));
        CVY_CHECK(e->label != CVY_LABEL_UNKNOWN, CVY_E_FORMAT, "feature %s holds no usable class name",
                  t->is.name[TF_LABEL]);
        raw->label = e->label;
    }
    return cvy_tf_take_targets(&t->is, &s, raw);
}

static cvy_status tf_label(void *state, int64_t number, int32_t *label_out)
{
    *label_out = cvy_entries_label(&((const struct tf *)state)->entries, number);
    return CVY_OK;
}

/* Adds what the record belongs to; a record without the feature belongs to nothing that is known. */
static cvy_status add_group(const struct tf *t, const void *record, size_t bytes, cvy_groups *to)
{
    cvy_feature f = {0};
    cvy_wire text;
    int64_t whole = 0;
    float real = 0;
    CVY_TRY(cvy_example_find(record, bytes, &t->is.o.group, 1, &f));
    if (cvy_feature_bytes(&f, &text))
        return cvy_groups_add(to, (const char *)text.at, (size_t)(text.end - text.at));
    if (cvy_feature_ints(&f, &whole, 1) == 1) {
        char number[24];
        snprintf(number, sizeof number, "%lld", (long long)whole);
        return cvy_groups_add(to, number, strlen(number));
    }
    if (cvy_feature_floats(&f, &real, 1) == 1)
        return cvy_groups_add_number(to, (double)real);
    return cvy_groups_add(to, "", 0);
}

static cvy_status tf_groups(void *state, cvy_groups *to)
{
    const struct tf *t = state;
    cvy_bytes room = {0};
    char where[1024];
    cvy_status status = CVY_OK;
    for (int64_t i = 0; i < t->entries.count && t->is.o.group && status == CVY_OK; i++) {
        const cvy_entry *e = cvy_entries_at(&t->entries, i);
        status = cvy_bytes_need(&room, e->bytes + CVY_TFRECORD_FOOT);
        if (status == CVY_OK)
            status = read_record(t, i, room.data);
        if (status == CVY_OK)
            status = check_record(room.data, e->bytes);
        if (status == CVY_OK)
            status = add_group(t, room.data, e->bytes, to);
        if (status != CVY_OK) {
            tf_where(state, i, where, sizeof where);
            status = cvy_error_prefix(status, "%s", where);
        }
    }
    cvy_mem_free(&room.data);
    return status;
}

static void tf_hash(void *state, cvy_hasher *h)
{
    const struct tf *t = state;
    for (int64_t i = 0; i < t->nfile; i++)
        cvy_hash_add(h, &t->file[i].bytes, sizeof t->file[i].bytes);
    cvy_entries_hash(&t->entries, h);
}

/* ---- opening ---- */

/* Opens all files, to check that they exist and for their sizes. Only the first OPEN_MAX stay open. */
static cvy_status open_files(struct tf *t, const char *const *path)
{
    for (int64_t i = 0; i < t->nfile; i++) {
        CVY_TRY(cvy_data_file_open(t->pool, path[i], &t->file[i]));
        CVY_TRY(cvy_tf_packed_look(t, i));
        if (i >= OPEN_MAX)
            cvy_data_file_close(&t->file[i]);
    }
    return CVY_OK;
}

/* A file beside its compressed copy, as `gunzip --keep` leaves it, would give each sample twice. */
static cvy_status check_copies(const char *const *path, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (!cvy_data_has_suffix(path[i], ".gz") && !cvy_data_has_suffix(path[i], ".zz"))
            continue;
        const size_t plain = strlen(path[i]) - 3;
        for (int64_t k = i - 1; k >= 0 && strncmp(path[k], path[i], plain) == 0; k--)
            CVY_CHECK(path[k][plain] != 0, CVY_E_FORMAT,
                      "%s: is there too without compression: remove one of them, or name the files by a glob", path[i]);
    }
    return CVY_OK;
}

/* Finds the features from the first good record. The first pass does this itself; it is needed if the index file was
 * loaded. */
static cvy_status resolve(struct tf *t)
{
    cvy_bytes room = {0};
    cvy_status status = CVY_OK;
    for (int64_t i = 0; i < t->entries.count && !t->is.resolved && status == CVY_OK; i++) {
        const cvy_entry *e = cvy_entries_at(&t->entries, i);
        CVY_TRY_OUT(cvy_bytes_need(&room, (size_t)e->bytes + CVY_TFRECORD_FOOT));
        CVY_TRY_OUT(read_record(t, i, room.data));
        struct tf_sample s = {.record = room.data, .bytes = e->bytes};
        if (check_record(s.record, s.bytes) == CVY_OK && cvy_tf_find(&t->is, &s) == CVY_OK)
            status = cvy_tf_resolve(&t->is, t->pool, &s);
    }
out:
    cvy_mem_free(&room.data);
    return status;
}

static cvy_status find_records(struct tf *t)
{
    cvy_tf_index_file index;
    if (!t->is.o.index)
        return index_files(t);
    CVY_TRY(cvy_tf_index_file_find(t, &index));
    const cvy_status status = cvy_tf_index_file_load(&index, t);
    if (status != CVY_NOT_APPLICABLE)
        return status == CVY_OK ? resolve(t) : status;
    CVY_TRY(index_files(t));
    return cvy_tf_index_file_save(&index, t);
}

/* Says which features were found by their usual names. */
static cvy_status note_names(const struct tf *t, const char *path, cvy_reader_info *info)
{
    static const struct {
        int role;
        const char *what;
    } row[] = {{TF_IMAGE, "x"}, {TF_X, "x"}, {TF_LABEL, "label"}, {TF_Y, "y"}, {TF_WEIGHT, "weight"}};
    cvy_text text = {0};
    for (int i = 0; i < CVY_COUNT(row); i++)
        if (t->is.name[row[i].role] && !t->is.o.name[row[i].role])
            cvy_text_add(&text, "%s%s is %s", text.bytes > 0 ? ", " : "", row[i].what, t->is.name[row[i].role]);
    cvy_status status = text.status;
    if (status == CVY_OK && text.bytes > 0)
        status = cvy_reader_note(info, "%s: of the features of its records %s (options of the source name others)",
                                 path, text.data);
    cvy_text_free(&text);
    return status;
}

static cvy_status tf_load(struct tf *t, const char *path, cvy_reader_info *info)
{
    const char **file = NULL, *folder = NULL;
    cvy_passed passed = {0};
    CVY_TRY(cvy_tf_check_options(&t->is.o));
    CVY_TRY(cvy_data_files(t->pool, path, is_ours, "*.tfrecord, *.tfrecords or *-00000-of-00001", &file, &t->nfile,
                           &passed));
    CVY_TRY(check_copies(file, t->nfile));
    if (cvy_file_is_folder(path)) {
        CVY_TRY(check_shards(file, t->nfile));
        CVY_TRY(cvy_splits_note(path, "as one set", file, t->nfile, info));
        CVY_TRY(cvy_passed_note(&passed, path, "file", "their names are not those of TFRecord files", info));
    }
    CVY_TRY(cvy_pool_alloc(t->pool, (size_t)(t->nfile + 1) * sizeof *t->first, &t->first));
    CVY_TRY(cvy_pool_alloc(t->pool, (size_t)t->nfile * sizeof *t->file, &t->file));
    for (int64_t i = 0; i < t->nfile; i++)
        t->file[i].fd = -1;
    CVY_TRY(open_files(t, file));
    CVY_TRY(find_records(t));
    info->nsamples = t->entries.count;
    CVY_CHECK(info->nsamples > 0, CVY_E_FORMAT, "%s: holds no samples", path);
    CVY_TRY(
        cvy_data_read_first(&(cvy_pictures){.read = tf_read, .where = tf_where, .state = t, .count = info->nsamples},
                            t->is.o.channels, info));
    CVY_TRY(note_names(t, path, info));
    CVY_TRY(cvy_tf_packed_note(t, path, info));
    if (info->dtype == CVY_DTYPE_U8 && info->shape.ndim == 3)
        info->varying |= t->x_varies || (t->is.name[TF_IMAGE] && t->is.o.shape.count == 0);
    info->has_y = t->is.name[TF_Y] != NULL;
    info->y_shape = t->is.y_shape;
    info->has_weight = t->is.name[TF_WEIGHT] != NULL;
    if (!t->is.name[TF_LABEL])
        return CVY_OK;
    CVY_TRY(cvy_data_folder_of(t->pool, file[0], &folder));
    if (!t->classes.by_name)
        CVY_TRY(cvy_classes_read_names(&t->classes, folder, t->is.o.first_label));
    return cvy_classes_resolve(&t->classes, t->is.o.classes, &t->entries, info);
}

static void tf_close(void *state)
{
    struct tf *t = state;
    for (int64_t i = 0; t->file && i < t->nfile; i++)
        cvy_data_file_close(&t->file[i]);
    cvy_tf_packed_free(t);
    cvy_entries_free(&t->entries);
    cvy_classes_free(&t->classes);
}

static cvy_status tf_open(const cvy_reader_args *args, cvy_reader_info *info, void **state_out)
{
    struct tf *t = NULL;
    CVY_CHECK(args->path, CVY_E_CONFIG, "format tfrecord needs a path: a file, a folder, or a glob");
    CVY_TRY(cvy_pool_alloc(info->pool, sizeof *t, &t));
    t->pool = t->classes.pool = info->pool;
    t->is.o = *(const struct tf_opts *)args->options;
    const cvy_status status = tf_load(t, args->path, info);
    if (status != CVY_OK)
        tf_close(t);
    else
        *state_out = t;
    return status;
}

CVY_READER_DEFINE(tfrecord) = {
    .name = "tfrecord",
    .summary = "TFRecord files of tf.train.Example, as TensorFlow writes them",
    .options = cvy_tfrecord_options,
    .options_size = sizeof(struct tf_opts),
    .probe = tf_probe,
    .open = tf_open,
    .read = tf_read,
    .label = tf_label,
    .where = tf_where,
    .groups = tf_groups,
    .hash = tf_hash,
    .close = tf_close,
};
