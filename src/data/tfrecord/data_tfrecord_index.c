/*
 * data_tfrecord_index.c: saves the positions of the records of a TFRecord data set and their labels, for later runs.
 *
 * TFRecord files hold no index, so the first pass reads all of them for the labels, on each rank. Its result has 16
 * bytes per sample. The name of the index file is a hash of the paths of the data set and the names of its features.
 * The file holds a hash of size, time and both ends of each data file; if the data have changed, it is ignored and
 * replaced. It is written under another name and then renamed, so any number of ranks may read it, or write the same
 * contents:
 *
 *     magic, state, bytes of the rest and their CRC-32C;
 *     then nfile + 1 first samples, counts, entries, names of classes
 *
 * Numbers are in this machine's byte order; a machine with another byte order sees another magic.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/tfrecord/data_tfrecord_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/base_hash.h"
#include "base/machine/base_system.h"
#include "base/text/base_text.h"
#include "data/tfrecord/data_tfrecord.h"
#include "data/tfrecord/data_tfrecord_packed.h"

#define MAGIC UINT64_C(0x31584446544e4f43) /* "CONTFDX1" */

struct head {
    uint64_t magic, state, bytes;
    uint32_t crc, zero;
};

struct counts {
    int64_t nfile, samples;
    int32_t x_varies, by_name, largest, names;
};

/* ---- the name of the index file ---- */

static void add_text(cvy_hasher *h, const char *text)
{
    cvy_hash_add(h, text ? text : "", text ? strlen(text) + 1 : 1);
}

static cvy_status add_path(cvy_hasher *h, const char *path)
{
    char *full = realpath(path, NULL);
    CVY_CHECK(full, CVY_E_IO, "%s: %s", path, strerror(errno));
    add_text(h, full);
    free(full);
    return CVY_OK;
}

/* The head of the first record and the checksum of the last one distinguish files of equal size and time. */
static cvy_status add_state(cvy_hasher *h, const cvy_data_file *file)
{
    uint8_t ends[CVY_TFRECORD_HEAD + CVY_TFRECORD_FOOT] = {0};
    struct stat st;
    cvy_data_file f = *file;
    if (file->fd < 0)
        CVY_TRY(cvy_data_file_open(NULL, file->path, &f));
    cvy_status status = CVY_OK;
    if (fstat(f.fd, &st) != 0)
        CVY_FAIL_OUT(CVY_E_IO, "%s: %s", file->path, strerror(errno));
    if (st.st_size >= (int64_t)sizeof ends) {
        CVY_TRY_OUT(cvy_pread_all(f.fd, ends, CVY_TFRECORD_HEAD, 0, file->path));
        CVY_TRY_OUT(cvy_pread_all(f.fd, ends + CVY_TFRECORD_HEAD, CVY_TFRECORD_FOOT, st.st_size - CVY_TFRECORD_FOOT,
                                  file->path));
    }
    const struct timespec changed = cvy_file_changed(&st);
    const int64_t state[] = {st.st_size, changed.tv_sec, changed.tv_nsec};
    cvy_hash_add(h, state, sizeof state);
    cvy_hash_add(h, ends, sizeof ends);
out:
    if (file->fd < 0)
        cvy_data_file_close(&f);
    return status;
}

cvy_status cvy_tf_index_file_find(const struct tf *t, cvy_tf_index_file *out)
{
    cvy_hasher name, state;
    cvy_hash_begin(&name);
    cvy_hash_begin(&state);
    for (int role = 0; role <= TF_WEIGHT; role++)
        add_text(&name, t->is.o.name[role]);
    cvy_hash_add(&name, &t->is.o.first_label, sizeof t->is.o.first_label);
    for (int64_t i = 0; i < t->nfile; i++) {
        CVY_TRY(add_path(&name, t->file[i].path));
        CVY_TRY(add_state(&state, &t->file[i]));
    }
    const uint64_t hash = cvy_hash_end(&name);
    cvy_hash_add(&state, &hash, sizeof hash);
    out->state = cvy_hash_end(&state);
    CVY_TRY(cvy_file_make_folder(t->is.o.index));
    return cvy_pool_printf(t->pool, &out->path, "%s/convoy-%016llx.tfindex", t->is.o.index, (unsigned long long)hash);
}

/* ---- reading ---- */

struct rest {
    const char *at;
    size_t bytes;
};

static int take(struct rest *r, void *to, size_t bytes)
{
    if (bytes > r->bytes)
        return 0;
    memcpy(to, r->at, bytes);
    r->at += bytes;
    r->bytes -= bytes;
    return 1;
}

/* How large a compressed file is without compression is not known; reading a sample checks it. Nothing unpacks to 2^48
 * bytes. */
static int is_inside(const struct tf *t, int64_t file, const cvy_entry *e)
{
    const uint64_t bytes = cvy_tf_is_packed(t, file) ? UINT64_C(1) << 48 : (uint64_t)t->file[file].bytes;
    return e->offset < bytes && e->bytes < bytes - e->offset;
}

static cvy_status take_entries(struct rest *r, const struct counts *n, struct tf *t)
{
    for (int64_t i = 0, file = 0; i < n->samples; i++) {
        cvy_entry e;
        while (file < n->nfile && i == t->first[file + 1])
            file++;
        CVY_CHECK(take(r, &e, sizeof e) && file < n->nfile && is_inside(t, file, &e), CVY_E_FORMAT,
                  "sample %lld lies outside its file", (long long)i);
        CVY_TRY(cvy_entries_add(&t->entries, &e));
    }
    return CVY_OK;
}

static cvy_status take_names(struct rest *r, const struct counts *n, cvy_classes *c)
{
    char name[CVY_CLASS_NAME_MAX + 1];
    c->by_name = n->by_name;
    c->largest = n->largest;
    for (int32_t i = 0; i < n->names; i++) {
        uint8_t length = 0;
        int32_t number = i;
        CVY_CHECK(take(r, &length, 1) && take(r, name, length), CVY_E_FORMAT, "the names of classes end early");
        if (n->by_name)
            CVY_TRY(cvy_classes_number(c, name, length, &number));
        else
            CVY_TRY(cvy_classes_set_name(c, i, name, length));
        CVY_CHECK(number == i, CVY_E_FORMAT, "the name of a class occurs twice");
    }
    return CVY_OK;
}

static cvy_status take_all(struct rest *r, struct tf *t)
{
    struct counts n;
    CVY_CHECK(take(r, &n, sizeof n) && n.nfile == t->nfile &&
                  take(r, t->first, (size_t)(t->nfile + 1) * sizeof *t->first) && t->first[n.nfile] == n.samples,
              CVY_E_FORMAT, "another number of files or samples");
    t->x_varies = n.x_varies;
    CVY_TRY(take_entries(r, &n, t));
    return take_names(r, &n, &t->classes);
}

/* Reads the head, and returns 1 if it belongs to this data set and state. */
static int is_of(const cvy_tf_index_file *index, struct head *head)
{
    return cvy_data_peek(index->path, head, sizeof *head) == sizeof *head && head->magic == MAGIC &&
           head->state == index->state;
}

cvy_status cvy_tf_index_file_load(const cvy_tf_index_file *index, struct tf *t)
{
    struct head head;
    char *data = NULL;
    size_t bytes = 0;
    if (!is_of(index, &head))
        return CVY_NOT_APPLICABLE;
    CVY_TRY(cvy_file_read(index->path, SIZE_MAX / 2, &data, &bytes));
    struct rest r = {data, bytes};
    if (!take(&r, &head, sizeof head) || r.bytes != head.bytes || cvy_crc32c(0, r.at, r.bytes) != head.crc) {
        unlink(index->path); /* so that a good one can replace it */
        cvy_mem_free(&data);
        return CVY_NOT_APPLICABLE;
    }
    const cvy_status status = take_all(&r, t);
    cvy_mem_free(&data);
    return status == CVY_OK ? CVY_OK : cvy_error_prefix(status, "%s: remove it", index->path);
}

/* ---- writing ---- */

static void put(cvy_text *t, const void *data, size_t bytes)
{
    cvy_text_add_bytes(t, data, bytes);
}

static void put_all(cvy_text *to, const struct tf *t)
{
    const cvy_classes *c = &t->classes;
    const struct counts n = {.nfile = t->nfile,
                             .samples = t->entries.count,
                             .x_varies = t->x_varies,
                             .by_name = c->by_name,
                             .largest = c->largest,
                             .names = c->count};
    put(to, &n, sizeof n);
    put(to, t->first, (size_t)(t->nfile + 1) * sizeof *t->first);
    for (int64_t i = 0; i < t->entries.count; i += CVY_ENTRY_BLOCK)
        put(to, cvy_entries_at(&t->entries, i),
            (size_t)CVY_MIN(t->entries.count - i, CVY_ENTRY_BLOCK) * sizeof(cvy_entry));
    for (int i = 0; i < c->count; i++) {
        const uint8_t length = (uint8_t)(c->name[i] ? strlen(c->name[i]) : 0); /* at most CVY_CLASS_NAME_MAX */
        put(to, &length, 1);
        if (length > 0)
            put(to, c->name[i], length);
    }
}

cvy_status cvy_tf_index_file_save(const cvy_tf_index_file *index, const struct tf *t)
{
    struct head head = {.magic = MAGIC, .state = index->state}, there;
    cvy_text text = {0};
    if (is_of(index, &there)) /* another rank has written it already */
        return CVY_OK;
    put(&text, &head, sizeof head);
    put_all(&text, t);
    cvy_status status = text.status;
    if (status == CVY_OK) {
        head.bytes = text.bytes - sizeof head;
        head.crc = cvy_crc32c(0, text.data + sizeof head, head.bytes);
        memcpy(text.data, &head, sizeof head);
        status = cvy_file_replace(index->path, text.data, text.bytes);
        if (status == CVY_E_IO && is_of(index, &there))
            status = CVY_OK;
    }
    cvy_text_free(&text);
    return status;
}
