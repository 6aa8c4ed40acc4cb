/*
 * data_seen.c: see data_seen.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/data_seen.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_hash.h"
#include "data/data_dataset.h"

struct entry {
    uint64_t hash, target; /* of x; of label and y */
    int64_t number;
};

struct cvy_seen {
    pthread_mutex_t lock;
    int lock_made, has_parts;
    atomic_int is_over; /* nothing is noted any more */
    uint64_t mask;      /* hashes with these bits are not kept */
    struct entry *entry;
    int64_t count, room;
    cvy_status status;
};

cvy_status cvy_seen_create(int64_t nsamples, cvy_seen **out)
{
    cvy_seen *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    while (nsamples / (int64_t)(s->mask + 1) > CVY_SEEN_MAX)
        s->mask = s->mask << 1 | 1;
    s->lock_made = pthread_mutex_init(&s->lock, NULL) == 0;
    if (!s->lock_made) {
        cvy_seen_destroy(&s);
        CVY_FAIL(CVY_E_MEMORY, "cannot create a lock for hashes of samples");
    }
    *out = s;
    return CVY_OK;
}

void cvy_seen_destroy(cvy_seen **s)
{
    if (!*s)
        return;
    if ((*s)->lock_made)
        pthread_mutex_destroy(&(*s)->lock);
    cvy_mem_free(&(*s)->entry);
    cvy_mem_free(s);
}

void cvy_dataset_watch(cvy_dataset *d, cvy_seen *s)
{
    while (d->whole)
        d = d->whole;
    d->seen = s;
}

void cvy_seen_where(const cvy_dataset *d, int64_t number, char *text, size_t room)
{
    while (d->whole)
        d = d->whole;
    cvy_dataset_where(d, number, text, room);
}

/* ---- noting ---- */

/* Without XXH3 a hash has 32 bits, too few for a million samples. */
static uint64_t hash_of(const void *data, size_t bytes)
{
    const uint64_t hash = cvy_hash(data, bytes);
    const unsigned char *at = data;
    uint32_t more = 2166136261u; /* FNV-1a */
    if (hash >> 32)
        return hash;
    for (size_t i = 0; i < bytes; i++)
        more = (more ^ at[i]) * 16777619u;
    return hash | (uint64_t)more << 32;
}

static uint64_t hash_target(const cvy_reader_info *info, const cvy_raw *raw)
{
    cvy_hasher h;
    cvy_hash_begin(&h);
    if (info->has_label)
        cvy_hash_add(&h, &raw->label, sizeof raw->label);
    if (info->has_y)
        cvy_hash_add(&h, raw->y.data, (size_t)cvy_shape_elems(&info->y_shape) * sizeof(float));
    return cvy_hash_end(&h);
}

void cvy_seen_note(cvy_seen *s, int64_t number, const cvy_reader_info *info, const cvy_raw *raw)
{
    const size_t bytes = raw->coding != CVY_CODING_PLAIN
                             ? raw->x.bytes
                             : (size_t)cvy_shape_elems(&raw->shape) * cvy_dtype_bytes(raw->dtype);
    const int has_no_weight = info->has_weight && info->weight_shape.ndim == 0 && raw->weight == 0;
    if (atomic_load(&s->is_over) || has_no_weight)
        return;
    const uint64_t hash = hash_of(raw->x.data, bytes);
    if (hash & s->mask)
        return;
    const struct entry e = {hash, hash_target(info, raw), number};
    pthread_mutex_lock(&s->lock);
    if (s->status == CVY_OK && s->count == s->room) {
        const int64_t room = CVY_MAX(2 * s->room, 1024);
        s->status = cvy_mem_grow(&s->entry, (size_t)s->room * sizeof e, (size_t)room * sizeof e);
        s->room = s->status == CVY_OK ? room : s->room;
    }
    if (s->status == CVY_OK && !atomic_load(&s->is_over))
        s->entry[s->count++] = e;
    pthread_mutex_unlock(&s->lock);
}

void cvy_seen_note_part(cvy_seen *s)
{
    pthread_mutex_lock(&s->lock);
    s->has_parts = 1;
    pthread_mutex_unlock(&s->lock);
}

/* ---- comparing ---- */

static int by_number(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

static int by_hash(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return x->hash != y->hash ? (x->hash < y->hash ? -1 : 1) : by_number(a, b);
}

/* After this no thread writes into it. */
static void end_noting(cvy_seen *s)
{
    pthread_mutex_lock(&s->lock);
    atomic_store(&s->is_over, 1);
    pthread_mutex_unlock(&s->lock);
}

/* Sorts by number, and leaves each sample once. Returns how many there are. */
static int64_t unite(struct entry *at, int64_t n)
{
    int64_t count = 0;
    if (n > 0)
        qsort(at, (size_t)n, sizeof *at, by_number);
    for (int64_t i = 0; i < n; i++)
        if (count == 0 || at[i].number != at[count - 1].number)
            at[count++] = at[i];
    return count;
}

/* Gathers the samples of all ranks, sorted by hash. The caller frees *out. */
static cvy_status gather(cvy_comm *comm, const cvy_seen *s, int64_t own, struct entry **out, int64_t *n_out)
{
    int64_t *count = NULL, most = 0, n = 0;
    struct entry *mine = NULL, *all = NULL;
    cvy_status status = cvy_mem_alloc((size_t)comm->nranks * sizeof *count, &count);
    CVY_TRY_OUT(cvy_comm_agree(comm, status));
    CVY_TRY_OUT(comm->ops->allgather(comm, &own, sizeof own, count));
    for (int r = 0; r < comm->nranks; r++)
        most = CVY_MAX(most, count[r]);
    status = cvy_mem_alloc((size_t)CVY_MAX(most, 1) * sizeof *mine, &mine);
    if (status == CVY_OK)
        status = cvy_mem_alloc((size_t)CVY_MAX(most * comm->nranks, 1) * sizeof *all, &all);
    CVY_TRY_OUT(cvy_comm_agree(comm, status));
    if (own > 0)
        memcpy(mine, s->entry, (size_t)own * sizeof *mine);
    if (most > 0)
        CVY_TRY_OUT(comm->ops->allgather(comm, mine, (size_t)most * sizeof *mine, all));
    for (int r = 0; r < comm->nranks; r++)
        for (int64_t i = 0; i < count[r]; i++)
            all[n++] = all[r * most + i];
    n = unite(all, n);
    if (n > 0)
        qsort(all, (size_t)n, sizeof *all, by_hash);
    *out = all;
    *n_out = n;
    all = NULL;
out:
    cvy_mem_free(&count);
    cvy_mem_free(&mine);
    cvy_mem_free(&all);
    return status;
}

/* The end of the run of equal hashes that begins at i. */
static int64_t end_of_run(const struct entry *at, int64_t n, int64_t i)
{
    int64_t end = i + 1;
    while (end < n && at[end].hash == at[i].hash)
        end++;
    return end;
}

static void count_within(const struct entry *at, int64_t n, cvy_copies *c)
{
    for (int64_t i = 0, end; i < n; i = end) {
        end = end_of_run(at, n, i);
        for (int64_t k = i + 1; k < end; k++) {
            c->within_relabelled += at[k].target != at[i].target;
            if (c->within++ == 0 || at[k].number < c->within_example[0]) {
                c->within_example[0] = at[k].number;
                c->within_example[1] = at[i].number;
            }
        }
    }
}

static void count_shared(const struct entry *train, int64_t ntrain, const struct entry *other, int64_t nother,
                         cvy_copies *c)
{
    for (int64_t i = 0, t = 0; i < nother; i++) {
        while (t < ntrain && train[t].hash < other[i].hash)
            t++;
        if (t == ntrain || train[t].hash != other[i].hash)
            continue;
        int is_other = 0;
        for (int64_t k = t; k < end_of_run(train, ntrain, t); k++)
            is_other |= train[k].target != other[i].target;
        c->relabelled += is_other;
        if (c->shared++ == 0 || other[i].number < c->example[0]) {
            c->example[0] = other[i].number;
            c->example[1] = train[t].number;
        }
    }
}

cvy_status cvy_seen_compare(cvy_comm *comm, cvy_seen *train, cvy_seen *other, cvy_copies *out)
{
    struct entry *t = NULL, *o = NULL;
    cvy_copies c = {.every = (int64_t)train->mask + 1};
    end_noting(train);
    end_noting(other);
    int64_t parts = train->has_parts || other->has_parts;
    cvy_status status = train->status != CVY_OK ? train->status : other->status;
    train->count = unite(train->entry, train->count);
    other->count = unite(other->entry, other->count);
    CVY_TRY(comm->ops->allreduce(comm, &parts, 1, CVY_DTYPE_I64, CVY_REDUCE_MAX));
    CVY_TRY(cvy_comm_agree(comm, status));
    if (parts)
        return CVY_NOT_APPLICABLE;
    CVY_TRY_OUT(gather(comm, train, train->count, &t, &c.ntrain));
    CVY_TRY_OUT(gather(comm, other, other->count, &o, &c.nother));
    count_within(t, c.ntrain, &c);
    count_shared(t, c.ntrain, o, c.nother, &c);
    *out = c;
out:
    cvy_mem_free(&t);
    cvy_mem_free(&o);
    return status;
}
