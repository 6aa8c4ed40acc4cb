/*
 * data_loader.c: prepares each step's rows before the step asks for them.
 *
 * A step begins with "wait for the rows of step s". Background threads fill a ring of slots, one slot for each step.
 * The rows of the oldest unfinished slots are dealt to the threads in small runs, so all threads work on the same step
 * and steps are finished in order. The content of a row depends only on its sample's number, the epoch, and which of
 * the epoch's draws of this sample it is, so threads, depth and ranks change only the waiting time. The slots' buffers
 * are allocated at the start, for the largest of the first steps, and kept; a larger step makes its slot grow once.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_entry.h"
#include "base/base_process.h"
#include "base/machine/base_clock.h"
#include "data/data_reader.h"
#include "data/load/data_order.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ERROR_TEXT = 1024 };
enum { EMPTY, FILLING, READY, HELD };

struct fill { /* rows are filled in the order of their sample numbers, so that files are read forwards */
    int64_t number, row;
};

struct slot {
    cvy_rows rows; /* the first member, because cvy_loader_release() casts it to the slot */
    int state;
    int64_t step, room;      /* room: number of rows that fit into the buffers */
    uint64_t *epoch;         /* [n], as keys of the augmentation: other ones for repeats */
    int64_t *repeat;         /* [n]: which of the epoch's draws of the sample it is */
    struct fill *fill_order; /* [n] */
    int64_t claimed, done;   /* entries of fill_order given to threads; entries finished */
    cvy_status status;       /* error of the first entry that failed, or of prepare(); CVY_OK if none */
    int64_t first_failed;
    char error[ERROR_TEXT];
};

struct cvy_loader {
    cvy_dataset *data;
    cvy_epoch_order *order;
    int64_t data_n;
    cvy_loader_opts o;
    int nfield, label; /* label: with CVY_NEEDS_LABELS the field that is read; else -1 */
    size_t row_bytes[CVY_FIELD_MAX];
    cvy_share *share; /* [CVY_SHARE_MAX], used under the lock */
    struct slot *slot;
    int nslot;
    int64_t next_step; /* the next step to prepare */
    int64_t next_get;
    int64_t end_step; /* first step after the last; INT64_MAX until `share` has returned CVY_END */
    int stopping;
    int64_t nbad;
    char bad_text[ERROR_TEXT];
    pthread_t *thread;
    int nthread;
    pthread_mutex_t lock;
    pthread_cond_t work, ready; /* work: the threads have something to do; ready: the caller's slot is ready */
    int lock_made, work_made, ready_made;
};

/* ---- slots ---- */

static struct slot *slot_of(cvy_loader *l, int64_t step)
{
    return &l->slot[(step - l->o.first_step) % l->nslot];
}

static void free_buffers(cvy_loader *l, struct slot *s)
{
    for (int f = 0; f < l->nfield; f++)
        cvy_mem_free(&s->rows.field[f]);
    cvy_mem_free(&s->rows.id);
    cvy_mem_free(&s->rows.draw);
    cvy_mem_free(&s->rows.weight);
    cvy_mem_free(&s->epoch);
    cvy_mem_free(&s->repeat);
    cvy_mem_free(&s->fill_order);
    s->room = 0;
}

static cvy_status need_room(cvy_loader *l, struct slot *s, int64_t n)
{
    if (n <= s->room)
        return CVY_OK;
    free_buffers(l, s);
    for (int f = 0; f < l->nfield; f++) {
        size_t bytes = 0;
        if (l->o.needs != CVY_NEEDS_FIELDS && f != l->label)
            continue;
        CVY_TRY(cvy_size_mul((size_t)n, l->row_bytes[f], &bytes));
        CVY_TRY(cvy_mem_alloc(bytes, &s->rows.field[f]));
    }
    CVY_TRY(cvy_mem_alloc((size_t)n * sizeof *s->rows.id, &s->rows.id));
    CVY_TRY(cvy_mem_alloc((size_t)n * sizeof *s->rows.draw, &s->rows.draw));
    CVY_TRY(cvy_mem_alloc((size_t)n * sizeof *s->rows.weight, &s->rows.weight));
    CVY_TRY(cvy_mem_alloc((size_t)n * sizeof *s->epoch, &s->epoch));
    CVY_TRY(cvy_mem_alloc((size_t)n * sizeof *s->repeat, &s->repeat));
    CVY_TRY(cvy_mem_alloc((size_t)n * sizeof *s->fill_order, &s->fill_order));
    s->room = n;
    return CVY_OK;
}

static cvy_status ask_share(cvy_loader *l, int64_t step, int *nshare_out, int64_t *n_out)
{
    int nshare = 0;
    int64_t n = 0;
    CVY_TRY(l->o.share(l->o.share_user, step, l->share, CVY_SHARE_MAX, &nshare));
    for (int i = 0; i < nshare; i++) {
        const cvy_share *p = &l->share[i];
        const int64_t first = p->batch_n > 0 ? p->batch_first : p->first_position;
        const int64_t end = p->batch_n > 0 ? first + p->batch_n : p->first_position + p->n;
        CVY_CHECK(p->n >= 0 && first >= 0 && first <= p->first_position && p->first_position + p->n <= end &&
                      end <= l->data_n,
                  CVY_E_INTERNAL, "step %lld asks for positions %lld + %lld of %lld", (long long)step,
                  (long long)p->first_position, (long long)p->n, (long long)l->data_n);
        n += p->n;
    }
    *nshare_out = nshare;
    *n_out = n;
    return CVY_OK;
}

static int by_number(const void *a, const void *b)
{
    const struct fill *x = a, *y = b;
    return x->number != y->number ? (x->number > y->number ? 1 : -1) : (x->row > y->row) - (x->row < y->row);
}

/* Converts the step's positions to sample numbers. */
static cvy_status fill_ids(cvy_loader *l, struct slot *s, int64_t step)
{
    int nshare = 0;
    int64_t n = 0, row = 0;
    CVY_TRY(ask_share(l, step, &nshare, &n));
    CVY_TRY(need_room(l, s, n));
    for (int i = 0; i < nshare; i++) {
        const cvy_share *p = &l->share[i];
        const int64_t first = p->batch_n > 0 ? p->batch_first : p->first_position,
                      all = p->batch_n > 0 ? p->batch_n : p->n;
        cvy_epoch_order_get(l->order, (uint64_t)p->epoch, first, all, p->first_position - first, p->n, s->rows.id + row,
                            s->repeat + row);
        for (const int64_t end = row + p->n; row < end; row++) {
            s->epoch[row] = cvy_repeat_key((uint64_t)p->epoch, s->repeat[row]);
            s->rows.draw[row] = (int64_t)cvy_repeat_key((uint64_t)s->rows.id[row], s->repeat[row]);
            s->fill_order[row] = (struct fill){s->rows.id[row], row};
        }
    }
    if (l->o.shuffle != CVY_SHUFFLE_NONE && n > 1)
        qsort(s->fill_order, (size_t)n, sizeof *s->fill_order, by_number);
    s->rows.n = n;
    return CVY_OK;
}

static void keep_error(struct slot *s, cvy_status status, int64_t nth)
{
    if (s->status != CVY_OK && nth >= s->first_failed)
        return;
    s->status = status;
    s->first_failed = nth;
    snprintf(s->error, sizeof s->error, "%s", cvy_error_text());
}

/* Prepares the next step's slot, so that threads can fill it. The caller holds the lock. An error is kept in the slot
 * for the caller of cvy_loader_get(). */
static void prepare(cvy_loader *l, struct slot *s)
{
    const int64_t step = l->next_step;
    s->step = step;
    s->status = CVY_OK;
    s->claimed = s->done = 0;
    s->rows.n = s->rows.nbad = 0;
    const cvy_status status = fill_ids(l, s, step);
    if (status == CVY_END) {
        l->end_step = step;
        pthread_cond_broadcast(&l->ready);
        return;
    }
    l->next_step++;
    s->state = FILLING;
    if (status != CVY_OK) {
        s->rows.n = 0;
        keep_error(s, status, -1);
    }
    if (s->rows.n == 0) {
        s->state = READY;
        pthread_cond_broadcast(&l->ready);
    }
}

/* ---- rows ---- */

/* Whether the sample is at fault, not the machine or the program. */
static int is_bad_sample(cvy_status status)
{
    return status == CVY_E_FORMAT || status == CVY_E_IO || status == CVY_E_SHAPE || status == CVY_E_UNSUPPORTED;
}

static cvy_status fill_row(cvy_loader *l, struct slot *s, int64_t row)
{
    void *field[CVY_FIELD_MAX];
    s->rows.weight[row] = 1;
    if (l->o.needs == CVY_NEEDS_NUMBERS)
        return CVY_OK;
    for (int f = 0; f < l->nfield; f++)
        field[f] = s->rows.field[f] ? (char *)s->rows.field[f] + (size_t)row * l->row_bytes[f] : NULL;
    const cvy_status status = l->label >= 0 ? cvy_dataset_label(l->data, s->rows.id[row], field[l->label])
                                            : cvy_dataset_read_parts(l->data, s->rows.id[row], s->epoch[row], l->o.part,
                                                                     l->o.skip_bad, field);
    if (status == CVY_OK || !is_bad_sample(status))
        return status;
    if (!l->o.skip_bad)
        return cvy_error_set(status, "%s (data.on_bad_sample: skip leaves out such samples)", cvy_error_text());
    for (int f = 0; f < l->nfield; f++)
        memset(field[f], 0, l->row_bytes[f]);
    s->rows.weight[row] = 0;
    return CVY_NOT_APPLICABLE;
}

/* Fills the rows of entries from .. to-1 without the lock, then adds them to the counts. The lock is held on entry and
 * on return. */
static void fill_run(cvy_loader *l, struct slot *s, int64_t from, int64_t to)
{
    pthread_mutex_unlock(&l->lock);
    cvy_status fault = CVY_OK;
    int64_t at = from, nbad = 0;
    for (; at < to && fault >= CVY_OK; at++) {
        const cvy_status status = fill_row(l, s, s->fill_order[at].row);
        nbad += status == CVY_NOT_APPLICABLE;
        fault = status < CVY_OK ? status : fault;
    }
    pthread_mutex_lock(&l->lock);
    if (fault < CVY_OK)
        keep_error(s, fault, at - 1);
    if (nbad > 0)
        snprintf(l->bad_text, sizeof l->bad_text, "%s", cvy_error_text());
    s->rows.nbad += nbad;
    s->done += to - from;
    if (s->done == s->rows.n) {
        s->state = READY;
        pthread_cond_broadcast(&l->ready);
    }
}

/* Number of rows that a thread takes at a time: small, so that the threads finish a step together. */
static int64_t run_length(const cvy_loader *l, int64_t n)
{
    return CVY_MAX(n / (8 * CVY_MAX(l->nthread, 1)), 1);
}

/* The oldest slot with rows that no thread has taken. Prepares further steps if the ring has room. NULL: nothing to do.
 * The caller holds the lock. */
static struct slot *find_work(cvy_loader *l)
{
    for (int64_t step = l->next_get; step < l->next_step; step++) {
        struct slot *s = slot_of(l, step);
        if (s->state == FILLING && s->claimed < s->rows.n)
            return s;
    }
    while (l->next_step < l->end_step) {
        struct slot *s = slot_of(l, l->next_step);
        if (s->state != EMPTY)
            return NULL;
        prepare(l, s);
        if (s->state == FILLING)
            return s;
    }
    return NULL;
}

static void work_once(cvy_loader *l, struct slot *s)
{
    const int64_t from = s->claimed, to = CVY_MIN(from + run_length(l, s->rows.n), s->rows.n);
    s->claimed = to;
    fill_run(l, s, from, to);
}

static void *loader_thread(void *user)
{
    CVY_ENTRY();
    cvy_loader *l = user;
    pthread_mutex_lock(&l->lock);
    while (!l->stopping) {
        struct slot *s = find_work(l);
        if (s)
            work_once(l, s);
        else
            pthread_cond_wait(&l->work, &l->lock);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* ---- create and destroy ---- */

static cvy_status start_threads(cvy_loader *l)
{
    CVY_TRY(cvy_mem_alloc((size_t)CVY_MAX(l->o.threads, 1) * sizeof *l->thread, &l->thread));
    int fault = 0;
    for (int i = 0; i < l->o.threads && !fault; i++) {
        fault = cvy_thread_start(&l->thread[i], loader_thread, l);
        pthread_mutex_lock(&l->lock);
        l->nthread += !fault;
        pthread_mutex_unlock(&l->lock);
    }
    CVY_CHECK(!fault, CVY_E_MEMORY, "cannot start data thread %d of %d: %s; set data.threads lower", l->nthread + 1,
              l->o.threads, strerror(fault));
    return CVY_OK;
}

/* Allocates every slot for the largest of the first steps. */
static cvy_status size_slots(cvy_loader *l)
{
    int64_t most = 0;
    for (int64_t step = l->o.first_step; step <= l->o.first_step + l->nslot; step++) {
        int nshare = 0;
        int64_t n = 0;
        const cvy_status status = ask_share(l, step, &nshare, &n);
        if (status == CVY_END)
            break;
        CVY_TRY(status);
        most = CVY_MAX(most, n);
    }
    for (int i = 0; i < l->nslot; i++)
        CVY_TRY(need_room(l, &l->slot[i], most));
    return CVY_OK;
}

/* Labels are read alone if they are numbers of classes. A bad sample must be found by all who use its row, so with
 * skip_bad samples are read whole. */
static int find_label(const cvy_loader *l, const cvy_dataset_info *info)
{
    int label = -1;
    for (int f = 0; f < info->nfield && l->o.needs == CVY_NEEDS_LABELS && !l->o.skip_bad; f++)
        if (strcmp(info->field[f].name, "label") == 0 && info->field[f].dtype == CVY_DTYPE_I32 &&
            info->field[f].shape.ndim == 0)
            label = f;
    return label;
}

static cvy_status set_up(cvy_loader *l)
{
    const cvy_dataset_info *info = cvy_dataset_describe(l->data);
    l->label = find_label(l, info);
    if (l->o.needs == CVY_NEEDS_LABELS && l->label < 0)
        l->o.needs = CVY_NEEDS_FIELDS;
    l->data_n = info->nsamples;
    const cvy_order_opts order = {
        .shuffle = l->o.shuffle, .balance = l->o.balance, .window = l->o.window, .seed = l->o.seed};
    CVY_TRY(cvy_epoch_order_create(l->data, &order, &l->order));
    l->nfield = info->nfield;
    for (int f = 0; f < l->nfield; f++) {
        const cvy_shape *shape = l->o.part[f].is_part ? &l->o.part[f].shape : &info->field[f].shape;
        CVY_TRY(cvy_size_mul((size_t)cvy_shape_elems(shape), cvy_dtype_bytes(info->field[f].dtype), &l->row_bytes[f]));
    }
    /* the caller holds some while others are filled */
    l->nslot = (l->o.threads > 0 ? l->o.depth : 0) + CVY_MAX(l->o.held, 1);
    l->next_step = l->next_get = l->o.first_step;
    l->end_step = INT64_MAX;
    CVY_TRY(cvy_mem_alloc(CVY_SHARE_MAX * sizeof *l->share, &l->share));
    CVY_TRY(cvy_mem_alloc((size_t)l->nslot * sizeof *l->slot, &l->slot));
    CVY_TRY(size_slots(l));
    l->lock_made = pthread_mutex_init(&l->lock, NULL) == 0;
    l->work_made = pthread_cond_init(&l->work, NULL) == 0;
    l->ready_made = pthread_cond_init(&l->ready, NULL) == 0;
    CVY_CHECK(l->lock_made && l->work_made && l->ready_made, CVY_E_MEMORY, "cannot create the locks of a loader");
    return start_threads(l);
}

cvy_status cvy_loader_create(cvy_dataset *d, const cvy_loader_opts *opts, cvy_loader **out)
{
    cvy_loader *l = NULL;
    CVY_CHECK(opts->threads >= 0 && opts->threads <= 1024, CVY_E_CONFIG, "data.threads is %d, expected 0 .. 1024",
              opts->threads);
    CVY_CHECK(opts->depth >= 1 && opts->depth <= 1024, CVY_E_CONFIG, "data.prefetch is %d, expected 1 .. 1024",
              opts->depth);
    CVY_TRY(cvy_mem_alloc(sizeof *l, &l));
    l->data = d;
    l->o = *opts;
    const cvy_status status = set_up(l);
    if (status != CVY_OK)
        cvy_loader_destroy(&l);
    else
        *out = l;
    return status;
}

void cvy_loader_destroy(cvy_loader **loader)
{
    cvy_loader *l = *loader;
    if (!l)
        return;
    if (l->nthread > 0) {
        pthread_mutex_lock(&l->lock);
        l->stopping = 1;
        pthread_cond_broadcast(&l->work);
        pthread_mutex_unlock(&l->lock);
    }
    for (int i = 0; i < l->nthread; i++)
        pthread_join(l->thread[i], NULL);
    for (int i = 0; l->slot && i < l->nslot; i++)
        free_buffers(l, &l->slot[i]);
    if (l->lock_made)
        pthread_mutex_destroy(&l->lock);
    if (l->work_made)
        pthread_cond_destroy(&l->work);
    if (l->ready_made)
        pthread_cond_destroy(&l->ready);
    cvy_epoch_order_destroy(&l->order);
    cvy_mem_free(&l->thread);
    cvy_mem_free(&l->slot);
    cvy_mem_free(&l->share);
    cvy_mem_free(loader);
}

/* ---- the caller's side ---- */

/* Waits until the step's slot is ready or the end is known. The caller holds the lock. */
static void wait_for(cvy_loader *l, int64_t step)
{
    for (;;) {
        const struct slot *s = slot_of(l, step);
        if (step >= l->end_step || (step < l->next_step && s->state == READY) || s->state == HELD)
            return;
        if (l->nthread > 0) {
            pthread_cond_wait(&l->ready, &l->lock);
            continue;
        }
        struct slot *todo = find_work(l);
        if (!todo)
            return;
        work_once(l, todo);
    }
}

cvy_status cvy_loader_get(cvy_loader *l, int64_t step, const cvy_rows **rows_out, double *wait_s_out)
{
    const double start = cvy_clock_s();
    CVY_CHECK(step == l->next_get, CVY_E_ARGUMENT, "the loader's next step is %lld, asked for %lld",
              (long long)l->next_get, (long long)step);
    pthread_mutex_lock(&l->lock);
    wait_for(l, step);
    struct slot *s = slot_of(l, step);
    cvy_status status = CVY_OK;
    if (step >= l->end_step)
        status = CVY_END;
    else if (s->state != READY || s->step != step)
        status = cvy_error_set(CVY_E_ARGUMENT, "rows of an earlier step must be released before step %lld is asked for",
                               (long long)step);
    else if (s->status != CVY_OK)
        status = cvy_error_set(s->status, "%s", s->error);
    if (status == CVY_OK) {
        s->state = HELD;
        l->next_get++;
        l->nbad += s->rows.nbad;
        *rows_out = &s->rows;
    }
    pthread_mutex_unlock(&l->lock);
    if (wait_s_out)
        *wait_s_out = cvy_clock_s() - start;
    return status;
}

int cvy_loader_has_next(cvy_loader *l)
{
    pthread_mutex_lock(&l->lock);
    const struct slot *s = slot_of(l, l->next_get);
    const int has = l->nthread > 0 && l->next_get < l->next_step && s->state == READY && s->step == l->next_get;
    pthread_mutex_unlock(&l->lock);
    return has;
}

int cvy_loader_ready(cvy_loader *l)
{
    int ready = 0;
    pthread_mutex_lock(&l->lock);
    for (int i = 0; i < l->nslot; i++)
        ready += l->slot[i].state == READY;
    pthread_mutex_unlock(&l->lock);
    return ready;
}

void cvy_loader_release(cvy_loader *l, const cvy_rows *rows)
{
    struct slot *s = (struct slot *)rows;
    pthread_mutex_lock(&l->lock);
    s->state = EMPTY;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
}

int64_t cvy_loader_nbad(const cvy_loader *l)
{
    return l->nbad;
}

void cvy_loader_bad_text(cvy_loader *l, char *text, size_t room)
{
    pthread_mutex_lock(&l->lock);
    snprintf(text, room, "%s", l->bad_text);
    pthread_mutex_unlock(&l->lock);
}
