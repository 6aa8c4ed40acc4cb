/*
 * data_tfrecord_packed.c: see data_tfrecord_packed.h.
 *
 * A record of a compressed file cannot be read by position, so the whole file is unpacked, into an anonymous file in
 * memory. It stays there until others need the room: the files used least recently are dropped when all take more than
 * `cache_mb`. So reading in order needs the memory of one file or two, and random reading is fast if all files fit. A
 * thread that needs a file which another thread unpacks waits for it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/tfrecord/data_tfrecord_packed.h"

#include <pthread.h>

#include "base/base_file.h"
#include "base/machine/base_machine.h"
#include "data/data_inflate.h"
#include "data/tfrecord/data_tfrecord.h"

enum {
    KEPT_MAX = 256, /* files in memory: each has a descriptor */
    SMALL = 1 << 20 /* bytes of a file for which nobody asks how much memory is left */
};

struct packed_file {
    int is_packed;
    cvy_inflate_kind kind;
    int64_t bytes;      /* without compression; -1: not known */
    int is_busy, users; /* is_busy: a thread unpacks it */
    int64_t used;       /* when it was taken last, in takes of all files */
    cvy_data_file file; /* fd -1: it is not in memory */
};

struct cvy_tf_packed {
    pthread_mutex_t lock;
    pthread_cond_t unpacked;
    struct packed_file *file; /* [nfile] */
    int64_t nfile, limit, bytes, kept, takes;
};

static cvy_status make(struct tf *t)
{
    struct cvy_tf_packed *p = NULL;
    CVY_TRY(cvy_pool_alloc(t->pool, sizeof *p, &p));
    CVY_TRY(cvy_pool_alloc(t->pool, (size_t)t->nfile * sizeof *p->file, &p->file));
    p->nfile = t->nfile;
    p->limit = t->is.o.cache_mb << 20;
    for (int64_t i = 0; i < p->nfile; i++)
        p->file[i] = (struct packed_file){.bytes = -1, .file.fd = -1};
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->unpacked, NULL);
    t->packed = p;
    return CVY_OK;
}

cvy_status cvy_tf_packed_look(struct tf *t, int64_t i)
{
    uint8_t head[CVY_TFRECORD_HEAD] = {0};
    const cvy_data_file *file = &t->file[i];
    const size_t n = (size_t)CVY_MIN(file->bytes, (int64_t)sizeof head);
    CVY_TRY(cvy_pread_all(file->fd, head, n, 0, file->path));
    const int is_gzip = head[0] == 0x1f && head[1] == 0x8b,
              is_zlib = head[0] == 0x78 && (head[0] * 256 + head[1]) % 31 == 0,
              is_plain = n == sizeof head && cvy_tfrecord_crc(head, 8) == cvy_wire_little(head + 8, 4);
    if (is_plain || (!is_gzip && !is_zlib))
        return CVY_OK;
    if (!t->packed)
        CVY_TRY(make(t));
    t->packed->file[i].is_packed = 1;
    t->packed->file[i].kind = is_gzip ? CVY_INFLATE_GZIP : CVY_INFLATE_ZLIB;
    return CVY_OK;
}

int cvy_tf_is_packed(const struct tf *t, int64_t i)
{
    return t->packed && t->packed->file[i].is_packed;
}

/* ---- files in memory: the caller holds the lock ---- */

static void drop(struct cvy_tf_packed *p, struct packed_file *f)
{
    cvy_data_file_close(&f->file);
    p->bytes -= f->bytes;
    p->kept--;
}

/* Drops those that were used least recently, but none that a thread reads. */
static void make_room(struct cvy_tf_packed *p)
{
    while (p->bytes > p->limit || p->kept > KEPT_MAX) {
        struct packed_file *oldest = NULL;
        for (int64_t i = 0; i < p->nfile; i++) {
            struct packed_file *f = &p->file[i];
            if (f->file.fd >= 0 && f->users == 0 && (!oldest || f->used < oldest->used))
                oldest = f;
        }
        if (!oldest)
            return;
        drop(p, oldest);
    }
}

static cvy_status unpack(struct cvy_tf_packed *p, const cvy_data_file *from, struct packed_file *f)
{
    cvy_data_file source = *from, out = {.fd = -1};
    cvy_status status = CVY_OK;
    f->is_busy = 1;
    pthread_mutex_unlock(&p->lock);
    if (from->fd < 0)
        status = cvy_data_file_open(NULL, from->path, &source);
    if (status == CVY_OK) {
        const int64_t most = source.bytes > SMALL ? cvy_mem_left() : -1;
        status = cvy_inflate_stream(&source, &(cvy_inflate_ask){f->kind, f->bytes, most}, &out);
    }
    if (from->fd < 0)
        cvy_data_file_close(&source);
    pthread_mutex_lock(&p->lock);
    f->is_busy = 0;
    pthread_cond_broadcast(&p->unpacked);
    if (status != CVY_OK)
        return status;
    f->file = out;
    f->bytes = out.bytes;
    p->bytes += out.bytes;
    p->kept++;
    return CVY_OK;
}

static cvy_status take(struct cvy_tf_packed *p, const cvy_data_file *from, struct packed_file *f)
{
    while (f->is_busy)
        pthread_cond_wait(&p->unpacked, &p->lock);
    if (f->file.fd < 0)
        CVY_TRY(unpack(p, from, f));
    f->users++;
    f->used = ++p->takes;
    make_room(p);
    return CVY_OK;
}

/* ---- files ---- */

cvy_status cvy_tf_file_take(const struct tf *t, int64_t i, cvy_data_file *out)
{
    const cvy_data_file *file = &t->file[i];
    struct cvy_tf_packed *p = t->packed;
    *out = *file;
    if (!cvy_tf_is_packed(t, i))
        return file->fd >= 0 ? CVY_OK : cvy_data_file_open(NULL, file->path, out);
    pthread_mutex_lock(&p->lock);
    const cvy_status status = take(p, file, &p->file[i]);
    *out = p->file[i].file;
    out->path = file->path;
    pthread_mutex_unlock(&p->lock);
    return status;
}

void cvy_tf_file_give(const struct tf *t, int64_t i, cvy_data_file *file)
{
    struct cvy_tf_packed *p = t->packed;
    if (!cvy_tf_is_packed(t, i)) {
        if (t->file[i].fd < 0)
            cvy_data_file_close(file);
        return;
    }
    pthread_mutex_lock(&p->lock);
    p->file[i].users--;
    pthread_mutex_unlock(&p->lock);
}

/* ---- what is said ---- */

static cvy_status set_blocks(const struct tf *t, cvy_reader_info *info)
{
    CVY_TRY(cvy_pool_alloc(info->pool, (size_t)t->nfile * sizeof *info->blocks.first, &info->blocks.first));
    for (int64_t i = 0; i < t->nfile; i++)
        if (t->first[i + 1] > t->first[i])
            cvy_blocks_add(&info->blocks, t->first[i]);
    return CVY_OK;
}

/* Bytes of all files without compression, as their last records tell. */
static int64_t all_bytes(const struct tf *t)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < t->nfile; i++) {
        if (!cvy_tf_is_packed(t, i) || t->first[i + 1] == t->first[i])
            continue;
        const cvy_entry *last = cvy_entries_at(&t->entries, t->first[i + 1] - 1);
        sum += (int64_t)last->offset + CVY_TFRECORD_HEAD + (int64_t)last->bytes + CVY_TFRECORD_FOOT;
    }
    return sum;
}

cvy_status cvy_tf_packed_note(struct tf *t, const char *path, cvy_reader_info *info)
{
    if (!t->packed)
        return CVY_OK;
    const int64_t bytes = all_bytes(t), mb = (bytes >> 20) + 1;
    CVY_TRY(set_blocks(t, info));
    if (bytes <= t->packed->limit)
        return cvy_reader_note(info, "%s: files are compressed as a whole: each rank unpacks them in memory (%lld MB)",
                               path, (long long)mb);
    return cvy_reader_note(
        info,
        "%s: files are compressed as a whole and have %lld MB without compression, more than the %lld "
        "MB that each rank keeps in memory: they are unpacked again and again. `convoy pack` makes a "
        "set that is read at once; else set cache_mb: %lld in the source, or data.shuffle: window",
        path, (long long)mb, (long long)(t->packed->limit >> 20), (long long)mb);
}

void cvy_tf_packed_free(struct tf *t)
{
    struct cvy_tf_packed *p = t->packed;
    if (!p)
        return;
    for (int64_t i = 0; i < p->nfile; i++)
        cvy_data_file_close(&p->file[i].file);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->unpacked);
    t->packed = NULL;
}
