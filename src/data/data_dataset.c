/*
 * data_dataset.c: a data set: one call that returns a sample by its number. It combines a reader, decoding and
 * augmentation.
 *
 * It runs in the loader's threads. A part (validation share) is a list of numbers in a whole set that stays open. The
 * augmentation of a sample depends on its number in the whole set, so it does not change with the share. The buffers of
 * a read come from a list of idle ones: after the first reads of each thread nothing is allocated.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_hash.h"
#include "base/number/base_rng.h"
#include "data/data_finite.h"
#include "data/data_sources.h"
#include "data/load/data_cache.h"

#include <pthread.h>
#include <string.h>

struct scratch { /* what one read in progress needs */
    cvy_raw raw;
    cvy_bytes decoded, rows, augmented[2], whole[2]; /* whole: x and y, of which only parts are wanted */
    struct scratch *next;
};

struct cvy_dataset {
    cvy_pool *pool;
    cvy_dataset_info info;
    const cvy_reader_def *reader;
    void *state;
    cvy_reader_info stored;
    int borrows; /* 1: a view; reader and state belong to another data set */
    cvy_augment *augment;
    pthread_mutex_t lock; /* protects idle */
    int lock_made;
    struct scratch *idle;
    cvy_dataset *whole; /* of a part: the whole set, and the part's numbers in it; else NULL */
    int64_t *number;
};

const cvy_dataset_info *cvy_dataset_describe(const cvy_dataset *d)
{
    return &d->info;
}

const cvy_field *cvy_dataset_target(const cvy_dataset_info *info)
{
    if (info->target_is_input)
        return &info->field[0];
    for (int i = 1; i < info->nfield; i++)
        if (strcmp(info->field[i].name, "weight") != 0)
            return &info->field[i];
    return NULL;
}

const cvy_reader_info *cvy_dataset_reader_info(const cvy_dataset *d)
{
    return d->whole ? cvy_dataset_reader_info(d->whole) : &d->stored;
}

/* ---- opening ---- */

static void add_field(cvy_dataset_info *info, const char *name, cvy_dtype dtype, const cvy_shape *shape)
{
    info->field[info->nfield++] = (cvy_field){.name = (char *)name, .dtype = dtype, .shape = *shape};
}

/* Names the classes "0", "1", ... */
static cvy_status number_classes(cvy_dataset *d)
{
    const char **names = NULL;
    CVY_TRY(cvy_pool_alloc(d->pool, (size_t)d->info.nclasses * sizeof *names, &names));
    for (int64_t i = 0; i < d->info.nclasses; i++) {
        char *name = NULL;
        CVY_TRY(cvy_pool_printf(d->pool, &name, "%lld", (long long)i));
        names[i] = name;
    }
    d->info.class_name = names;
    return CVY_OK;
}

static cvy_status describe(cvy_dataset *d)
{
    static const cvy_shape scalar = {0};
    cvy_dataset_info *info = &d->info;
    const cvy_reader_info *r = &d->stored;
    const cvy_target_info *y = cvy_augment_target(d->augment);
    CVY_CHECK(r->nsamples > 0, CVY_E_FORMAT, "%s: holds no samples", info->path ? info->path : d->reader->name);
    info->nsamples = r->nsamples;
    info->format = d->reader->name;
    info->note = r->note;
    add_field(info, "x", CVY_DTYPE_F32, cvy_augment_shape(d->augment));
    if (r->has_label)
        add_field(info, "label", CVY_DTYPE_I32, &scalar);
    if (r->has_y)
        add_field(info, "y", y->dtype, &y->shape);
    info->target_channels = y->nchannels;
    info->scaling = y->scaling;
    info->may_be_left = y->may_be_left;
    if (r->has_weight)
        add_field(info, "weight", CVY_DTYPE_F32, cvy_augment_weight_shape(d->augment));
    CVY_CHECK(!r->has_label || y->nclasses == 0, CVY_E_CONFIG,
              "%s: y is a map of labels, but the samples have labels, too: leave one of them out (label: none)",
              info->path ? info->path : d->reader->name);
    info->target_is_input = y->is_input;
    info->nclasses = y->is_input ? 0 : r->has_label ? r->nclasses : y->nclasses;
    info->class_name = r->has_label ? r->class_name : NULL;
    return info->nclasses > 0 && !info->class_name ? number_classes(d) : CVY_OK;
}

static cvy_status open_source(cvy_dataset *d, const cvy_tree *source)
{
    cvy_source s;
    CVY_TRY(cvy_source_open(d->pool, source, &s));
    d->reader = s.reader;
    d->state = s.state;
    d->stored = s.info;
    d->info.path = s.path;
    return CVY_OK;
}

static cvy_status make_empty(cvy_dataset **out)
{
    cvy_dataset *d = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *d, &d));
    const cvy_status status = cvy_pool_create(&d->pool);
    if (status == CVY_OK)
        d->lock_made = pthread_mutex_init(&d->lock, NULL) == 0;
    if (status != CVY_OK || !d->lock_made) {
        cvy_dataset_destroy(&d);
        return status != CVY_OK ? status : cvy_error_set(CVY_E_MEMORY, "cannot create a lock for a data set");
    }
    *out = d;
    return CVY_OK;
}

static cvy_status open_dataset(const cvy_tree *source, const cvy_tree *augment, int random, uint64_t seed,
                               int with_target, cvy_dataset **out)
{
    cvy_dataset *d = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(make_empty(&d));
    CVY_TRY_OUT(open_source(d, source));
    d->stored.has_y &= with_target;
    CVY_TRY_OUT(cvy_augment_create(augment, random, seed, &d->stored, &d->augment));
    CVY_TRY_OUT(describe(d));
    *out = d;
    return CVY_OK;
out:
    cvy_dataset_destroy(&d);
    return status;
}

cvy_status cvy_dataset_open(const cvy_tree *source, const cvy_tree *augment, int random, uint64_t seed,
                            cvy_dataset **out)
{
    return open_dataset(source, augment, random, seed, 1, out);
}

cvy_status cvy_dataset_open_inputs(const cvy_tree *source, const cvy_tree *augment, uint64_t seed, cvy_dataset **out)
{
    return open_dataset(source, augment, 0, seed, 0, out);
}

cvy_status cvy_dataset_view(cvy_dataset *d, const cvy_tree *augment, int random, uint64_t seed, cvy_dataset **out)
{
    cvy_dataset *view = NULL;
    cvy_status status = CVY_OK;
    CVY_EXPECT(!d->whole);
    CVY_TRY_OUT(make_empty(&view));
    view->borrows = 1;
    view->reader = d->reader;
    view->state = d->state;
    view->stored = d->stored;
    view->info.path = d->info.path;
    CVY_TRY_OUT(cvy_augment_create(augment, random, seed, &view->stored, &view->augment));
    CVY_TRY_OUT(describe(view));
    *out = view;
    return CVY_OK;
out:
    cvy_dataset_destroy(&view);
    return status;
}

cvy_status cvy_dataset_cache(cvy_dataset *d, cvy_cache_budget *budget, int decoded)
{
    CVY_EXPECT(!d->whole && !d->borrows);
    return cvy_cache_wrap(&d->stored, budget, decoded, &d->reader, &d->state);
}

void cvy_dataset_destroy(cvy_dataset **d)
{
    cvy_dataset *x = *d;
    if (!x)
        return;
    if (x->state && x->reader->close && !x->borrows)
        x->reader->close(x->state);
    for (struct scratch *s = x->idle, *next; s; s = next) {
        next = s->next;
        cvy_raw_free(&s->raw);
        cvy_mem_free(&s->decoded.data);
        cvy_mem_free(&s->rows.data);
        cvy_mem_free(&s->augmented[0].data);
        cvy_mem_free(&s->augmented[1].data);
        cvy_mem_free(&s->whole[0].data);
        cvy_mem_free(&s->whole[1].data);
        cvy_mem_free(&s);
    }
    cvy_augment_destroy(&x->augment);
    if (x->lock_made)
        pthread_mutex_destroy(&x->lock);
    cvy_pool_destroy(&x->pool);
    cvy_mem_free(&x->number);
    cvy_mem_free(d);
}

/* ---- parts ---- */

/* How many of the first `count` samples belong to the share. It rounds running sums, so the counts are right for each
 * class and for the whole set. */
static int64_t share_of(int64_t count, double share)
{
    return (int64_t)((double)count * share + 0.5);
}

/* Fills sorted[] with the numbers sorted by class, and first[] with the start of each class. Without labels there is
 * one class. */
static cvy_status sort_by_class(cvy_dataset *d, int64_t nclasses, int64_t *sorted, int64_t *first, int32_t *label)
{
    const int64_t n = d->info.nsamples;
    for (int64_t i = 0; i < n && cvy_dataset_reader_info(d)->has_label; i++)
        CVY_TRY(cvy_dataset_label(d, i, &label[i]));
    for (int64_t i = 0; i < n; i++)
        first[label[i] + 1]++;
    for (int64_t c = 0; c < nclasses; c++)
        first[c + 1] += first[c];
    for (int64_t i = 0; i < n; i++)
        sorted[first[label[i]]++] = i;
    for (int64_t c = nclasses; c > 0; c--)
        first[c] = first[c - 1];
    first[0] = 0;
    return CVY_OK;
}

static cvy_status choose(cvy_dataset *d, double share, uint64_t seed, int part, int64_t **number_out,
                         int64_t *count_out)
{
    const int64_t n = d->info.nsamples, nclasses = cvy_dataset_reader_info(d)->has_label ? d->info.nclasses : 1;
    int64_t *sorted = NULL, *first = NULL, *number = NULL, count = 0, at = 0;
    int32_t *label = NULL;
    uint8_t *chosen = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_mem_alloc((size_t)n * sizeof *sorted, &sorted));
    CVY_TRY_OUT(cvy_mem_alloc((size_t)(nclasses + 1) * sizeof *first, &first));
    CVY_TRY_OUT(cvy_mem_alloc((size_t)n * sizeof *label, &label));
    CVY_TRY_OUT(cvy_mem_alloc((size_t)n, &chosen));
    CVY_TRY_OUT(sort_by_class(d, nclasses, sorted, first, label));
    for (int64_t c = 0; c < nclasses; c++) {
        const int64_t take = share_of(first[c + 1], share) - share_of(first[c], share);
        const cvy_permutation p = cvy_permutation_make(seed, (uint64_t)c, (uint64_t)(first[c + 1] - first[c]));
        for (int64_t i = 0; i < take; i++)
            chosen[sorted[first[c] + (int64_t)cvy_permutation_at(&p, (uint64_t)i)]] = 1;
    }
    for (int64_t i = 0; i < n; i++)
        count += chosen[i] == (part != 0);
    CVY_TRY_OUT(cvy_mem_alloc((size_t)count * sizeof *number, &number));
    for (int64_t i = 0; i < n; i++)
        if (chosen[i] == (part != 0))
            number[at++] = i;
    *number_out = number;
    *count_out = count;
out:
    cvy_mem_free(&sorted);
    cvy_mem_free(&first);
    cvy_mem_free(&label);
    cvy_mem_free(&chosen);
    return status;
}

cvy_status cvy_dataset_split(cvy_dataset *d, double share, uint64_t seed, int part, cvy_dataset **out)
{
    cvy_dataset *piece = NULL;
    CVY_CHECK(share > 0 && share < 1, CVY_E_CONFIG, "a share of a data set lies between 0 and 1, got %g", share);
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(make_empty(&piece));
    piece->whole = d;
    piece->info = d->info;
    CVY_TRY_OUT(choose(d, share, seed, part, &piece->number, &piece->info.nsamples));
    if (piece->info.nsamples == 0)
        CVY_FAIL_OUT(CVY_E_CONFIG, "%s: a share of %g leaves one part of the %lld samples empty",
                     d->info.path ? d->info.path : d->info.format, share, (long long)d->info.nsamples);
    *out = piece;
    return CVY_OK;
out:
    cvy_dataset_destroy(&piece);
    return status;
}

static int64_t number_in_source(const cvy_dataset *d, int64_t number)
{
    for (; d->whole; d = d->whole)
        number = d->number[number];
    return number;
}

/* The numbers of a part ascend with those of the whole set, so a block of the whole set is a block of the part with
 * fewer samples. */
cvy_status cvy_dataset_blocks(const cvy_dataset *d, cvy_blocks *out)
{
    const cvy_blocks *stored = &cvy_dataset_reader_info(d)->blocks;
    cvy_blocks b = {0};
    *out = b;
    if (stored->count == 0)
        return CVY_OK;
    CVY_TRY(cvy_mem_alloc((size_t)stored->count * sizeof *b.first, &b.first));
    for (int64_t i = 0, k = 0; i < d->info.nsamples && k < stored->count; i++) {
        const int64_t number = number_in_source(d, i);
        if (number >= stored->first[k])
            cvy_blocks_add(&b, i);
        while (k < stored->count && number >= stored->first[k])
            k++;
    }
    *out = b;
    return CVY_OK;
}

/* ---- axes ---- */

cvy_status cvy_dataset_coordinates(const cvy_dataset *d, cvy_along along, int axis, cvy_pool *pool,
                                   cvy_coordinates *out)
{
    const cvy_shape *stored = along == CVY_ALONG_X ? &d->stored.shape : &d->stored.y_shape;
    *out = (cvy_coordinates){0};
    if (d->whole || !d->reader->coordinates || (along == CVY_ALONG_Y && !d->stored.has_y))
        return CVY_OK;
    if (along != CVY_ALONG_SAMPLES) {
        const cvy_shape *shape =
            along == CVY_ALONG_X ? cvy_augment_shape(d->augment) : &cvy_augment_target(d->augment)->shape;
        if (shape->ndim != stored->ndim || axis >= stored->ndim || shape->dim[axis] != stored->dim[axis])
            return CVY_OK;
    }
    return d->reader->coordinates(d->state, along, axis, pool, out);
}

/* ---- identity ---- */

static void hash_shape(cvy_hasher *h, const cvy_shape *s)
{
    const char *text = cvy_shape_text(s);
    cvy_hash_add(h, text, strlen(text) + 1);
}

static void hash_into(const cvy_dataset *d, cvy_hasher *h)
{
    cvy_hash_add(h, &d->info.nsamples, sizeof d->info.nsamples);
    if (d->whole) {
        hash_into(d->whole, h);
        cvy_hash_add(h, d->number, (size_t)d->info.nsamples * sizeof *d->number);
        return;
    }
    cvy_hash_add(h, d->info.format, strlen(d->info.format) + 1);
    for (int i = 0; i < d->info.nfield; i++) {
        const cvy_field *f = &d->info.field[i];
        const int dtype = f->dtype;
        cvy_hash_add(h, f->name, strlen(f->name) + 1);
        cvy_hash_add(h, &dtype, sizeof dtype);
        hash_shape(h, &f->shape);
    }
    hash_shape(h, &d->stored.shape);
    cvy_hash_add(h, &d->info.nclasses, sizeof d->info.nclasses);
    for (int64_t i = 0; i < d->info.nclasses; i++)
        cvy_hash_add(h, d->info.class_name[i], strlen(d->info.class_name[i]) + 1);
    if (d->reader->hash)
        d->reader->hash(d->state, h);
}

uint64_t cvy_dataset_hash(const cvy_dataset *d)
{
    cvy_hasher h;
    cvy_hash_begin(&h);
    hash_into(d, &h);
    return cvy_hash_end(&h);
}

/* ---- reading ---- */

static cvy_status name_sample(const cvy_dataset *d, int64_t number, cvy_status status)
{
    char where[1024];
    if (status == CVY_OK)
        return status;
    d->reader->where(d->state, number, where, sizeof where);
    return cvy_error_prefix(status, "%s", where);
}

static cvy_status check_number(const cvy_dataset *d, int64_t number)
{
    CVY_CHECK(number >= 0 && number < d->info.nsamples, CVY_E_ARGUMENT,
              "sample %lld is out of range, the data set %s has %lld", (long long)number,
              d->info.path ? d->info.path : d->info.format, (long long)d->info.nsamples);
    return CVY_OK;
}

static cvy_status check_label(const cvy_dataset *d, int64_t number, int32_t label)
{
    if (!d->stored.has_label || (label >= 0 && label < d->stored.nclasses))
        return CVY_OK;
    return name_sample(d, number,
                       cvy_error_set(CVY_E_FORMAT, "label %d is out of range, expected 0 .. %lld", label,
                                     (long long)d->stored.nclasses - 1));
}

/* Gets the buffers of a read; reads use the same few again. */
static cvy_status borrow_scratch(cvy_dataset *d, struct scratch **out)
{
    pthread_mutex_lock(&d->lock);
    struct scratch *s = d->idle;
    if (s)
        d->idle = s->next;
    pthread_mutex_unlock(&d->lock);
    if (!s)
        CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *out = s;
    return CVY_OK;
}

static void return_scratch(cvy_dataset *d, struct scratch *s)
{
    pthread_mutex_lock(&d->lock);
    s->next = d->idle;
    d->idle = s;
    pthread_mutex_unlock(&d->lock);
}

/* Reads a sample, or what the reader can read of these parts of it (see cvy_reader_def.read_part). */
static cvy_status read_raw(cvy_dataset *d, int64_t number, const cvy_field_part *x, const cvy_field_part *y,
                           cvy_raw *raw)
{
    raw->weight = 1;
    const int in_parts = d->reader->read_part && (cvy_is_part(x) || cvy_is_part(y));
    CVY_TRY(name_sample(d, number,
                        in_parts ? d->reader->read_part(d->state, number, x, y, raw)
                                 : d->reader->read(d->state, number, raw)));
    return check_label(d, number, raw->label);
}

cvy_status cvy_dataset_read_raw(cvy_dataset *d, int64_t number, cvy_raw *raw)
{
    CVY_TRY(check_number(d, number));
    return d->whole ? cvy_dataset_read_raw(d->whole, d->number[number], raw) : read_raw(d, number, NULL, NULL, raw);
}

void cvy_dataset_where(const cvy_dataset *d, int64_t number, char *text, size_t room)
{
    const int64_t in_source = number_in_source(d, number);
    while (d->whole)
        d = d->whole;
    d->reader->where(d->state, in_source, text, room);
}

cvy_status cvy_dataset_name_sample(const cvy_dataset *d, int64_t number, cvy_status status)
{
    return d->whole ? cvy_dataset_name_sample(d->whole, d->number[number], status) : name_sample(d, number, status);
}

cvy_status cvy_dataset_stored_bytes(cvy_dataset *d, int64_t probes, double *mean_out)
{
    const int64_t nsamples = cvy_dataset_describe(d)->nsamples, n = CVY_MIN(probes, nsamples);
    cvy_raw raw = {0};
    cvy_status status = CVY_OK;
    int64_t count = 0;
    double sum = 0;
    for (int64_t k = 0; k < n && status != CVY_E_MEMORY; k++) {
        status = cvy_dataset_read_raw(d, k * nsamples / n, &raw);
        sum += status == CVY_OK ? (double)raw.x.bytes : 0;
        count += status == CVY_OK;
    }
    cvy_raw_free(&raw);
    if (status == CVY_E_MEMORY)
        return status;
    *mean_out = count > 0 ? sum / (double)count : 0;
    return CVY_OK;
}

cvy_status cvy_dataset_label(cvy_dataset *d, int64_t number, int32_t *label_out)
{
    struct scratch *s = NULL;
    CVY_TRY(check_number(d, number));
    if (d->whole)
        return cvy_dataset_label(d->whole, d->number[number], label_out);
    if (d->reader->label) {
        int32_t label = 0;
        CVY_TRY(name_sample(d, number, d->reader->label(d->state, number, &label)));
        CVY_TRY(check_label(d, number, label));
        *label_out = label;
        return CVY_OK;
    }
    CVY_TRY(borrow_scratch(d, &s));
    const cvy_status status = cvy_dataset_read_raw(d, number, &s->raw);
    if (status == CVY_OK)
        *label_out = s->raw.label;
    return_scratch(d, s);
    return status;
}

struct sample { /* the sample that is being decoded; ask_augment() needs it */
    const cvy_augment *augment;
    uint64_t epoch;
    int64_t number;
};

static int ask_augment(void *user, int64_t H, int64_t W, cvy_picture_window *out)
{
    const struct sample *s = user;
    return cvy_augment_window(s->augment, s->epoch, s->number, H, W, out);
}

/* The stored x as a picture with the set's dtype and channels. Of an encoded picture only the part is decoded that this
 * epoch's augmentation needs. */
static cvy_status to_picture(const cvy_dataset *d, struct scratch *s, int64_t number, uint64_t epoch, cvy_picture *out)
{
    const cvy_reader_info *set = &d->stored;
    const cvy_raw *raw = &s->raw;
    struct sample sample = {d->augment, epoch, number};
    CVY_CHECK(raw->coding == CVY_CODING_PLAIN || set->shape.ndim == 3, CVY_E_FORMAT,
              "a picture among samples of the shape %s", cvy_shape_text(&set->shape));
    if (raw->coding != CVY_CODING_PLAIN)
        return cvy_picture_decode_part(raw->coding, raw->x.data, raw->x.bytes, set->shape.dim[0], ask_augment, &sample,
                                       &s->decoded, &s->rows, out);
    CVY_CHECK(raw->dtype == set->dtype && (set->varying || cvy_shape_equal(&raw->shape, &set->shape)), CVY_E_FORMAT,
              "%s of %s, expected %s of %s as in the rest of the set", cvy_dtype_text(raw->dtype),
              cvy_shape_text(&raw->shape), cvy_dtype_text(set->dtype), cvy_shape_text(&set->shape));
    *out = cvy_raw_planes(raw);
    return CVY_OK;
}

/* Whether the weight is an array and not one number. */
static int is_mask(const cvy_reader_info *set)
{
    return set->has_weight && set->weight_shape.ndim > 0;
}

static cvy_status check_numbers(const cvy_dataset *d, const struct scratch *s, const cvy_picture *p, int64_t y_elems)
{
    const cvy_reader_info *set = &d->stored;
    if (is_mask(set)) {
        const int64_t elems = cvy_shape_elems(&set->weight_shape);
        CVY_TRY(cvy_check_mask(s->raw.mask.data, elems));
        if (set->has_y)
            cvy_clear_masked(s->raw.y.data, y_elems, s->raw.mask.data, elems);
    } else if (set->has_weight)
        CVY_TRY(cvy_check_finite("weight", &s->raw.weight, 1));
    if (p->dtype == CVY_DTYPE_F32)
        CVY_TRY(cvy_check_finite("x", p->data, p->C * p->H * p->W));
    return set->has_y ? cvy_check_finite("y", (const float *)s->raw.y.data, y_elems) : CVY_OK;
}

/* The fields that are arrays besides x; 0: there is none. */
struct arrays {
    int y, mask;
};

/* Writes label and weight, and says which fields are left. */
static struct arrays write_scalars(const cvy_dataset *d, const struct scratch *s, void *const *field_out)
{
    const cvy_reader_info *set = &d->stored;
    struct arrays at = {0};
    int field = 1;
    if (set->has_label)
        memcpy(field_out[field++], &s->raw.label, sizeof s->raw.label);
    if (set->has_y)
        at.y = field++;
    if (is_mask(set))
        at.mask = field++;
    else if (set->has_weight)
        memcpy(field_out[field++], &s->raw.weight, sizeof s->raw.weight);
    return at;
}

static cvy_status read_whole(cvy_dataset *d, struct scratch *s, int64_t number, uint64_t epoch, void *x, void *y,
                             void *mask)
{
    cvy_picture picture = {0};
    CVY_TRY(to_picture(d, s, number, epoch, &picture));
    CVY_TRY(check_numbers(d, s, &picture, cvy_shape_elems(&d->stored.y_shape)));
    return cvy_augment_apply_all(d->augment, picture, s->raw.y.data, s->raw.mask.data, epoch, number, s->augmented, x,
                                 y, mask);
}

/* ---- parts ---- */

/* Whether parts can be cut out of the sample as it is stored, before it is augmented. Channels of a target that have a
 * scaling of their own must stay whole. */
static int cuts_stored(const cvy_dataset *d, const cvy_field_part *x, const cvy_field_part *y)
{
    const cvy_target_info *target = cvy_augment_target(d->augment);
    const int has_channels = !cvy_is_part(y) || target->scaling.n <= 1 || y->shape.dim[0] == y->tile.whole.dim[0];
    return !d->stored.varying && !is_mask(&d->stored) && cvy_augment_is_pointwise(d->augment) && has_channels &&
           (!cvy_is_part(x) || x->shape.dim[0] == x->tile.whole.dim[0]);
}

/* Leaves only the wanted part of what was read. */
static cvy_status cut_raw(const cvy_dataset *d, const cvy_field_part *x, const cvy_field_part *y, cvy_raw *raw)
{
    const cvy_reader_info *set = &d->stored;
    const size_t elem = cvy_dtype_bytes(raw->dtype);
    const cvy_shape *expected = cvy_is_part(x) ? &x->shape : &set->shape;
    CVY_CHECK(raw->coding == CVY_CODING_PLAIN && raw->dtype == set->dtype &&
                  (cvy_shape_equal(&raw->shape, &set->shape) || cvy_shape_equal(&raw->shape, expected)),
              CVY_E_FORMAT, "%s of %s, expected %s of %s as in the rest of the set", cvy_dtype_text(raw->dtype),
              cvy_shape_text(&raw->shape), cvy_dtype_text(set->dtype), cvy_shape_text(&set->shape));
    if (!cvy_shape_equal(&raw->shape, expected)) {
        cvy_part_cut(x, elem, raw->x.data, raw->x.data);
        raw->shape = *expected;
        raw->x.bytes = (size_t)cvy_shape_elems(expected) * elem;
    }
    if (cvy_is_part(y) && raw->y.bytes == (size_t)cvy_shape_elems(&set->y_shape) * sizeof(float)) {
        cvy_part_cut(y, sizeof(float), raw->y.data, raw->y.data);
        raw->y.bytes = (size_t)cvy_shape_elems(&y->shape) * sizeof(float);
    }
    return CVY_OK;
}

/* Reads the parts, and augments them. */
static cvy_status read_stored_parts(cvy_dataset *d, struct scratch *s, int64_t number, uint64_t epoch,
                                    const cvy_field_part *x, const cvy_field_part *y, void *const *field_out)
{
    CVY_TRY(read_raw(d, number, x, y, &s->raw));
    CVY_TRY(name_sample(d, number, cut_raw(d, x, y, &s->raw)));
    const cvy_picture picture = cvy_raw_planes(&s->raw);
    const int64_t y_elems = cvy_shape_elems(cvy_is_part(y) ? &y->shape : &d->stored.y_shape);
    CVY_TRY(name_sample(d, number, check_numbers(d, s, &picture, y_elems)));
    const struct arrays at = write_scalars(d, s, field_out);
    return name_sample(d, number,
                       cvy_augment_apply_parts(d->augment, picture, s->raw.y.data, y_elems, epoch, number, s->augmented,
                                               field_out[0], at.y > 0 ? field_out[at.y] : NULL));
}

/* Memory for a whole field of which a part is wanted; the field's own memory if all of it is wanted. */
static cvy_status whole_room(const cvy_dataset *d, int field, const cvy_field_part *part, cvy_bytes *room,
                             void *const *field_out, void **out)
{
    const cvy_field *f = &d->info.field[field];
    *out = field_out[field];
    if (!cvy_is_part(part))
        return CVY_OK;
    CVY_TRY(cvy_bytes_need(room, (size_t)cvy_shape_elems(&f->shape) * cvy_dtype_bytes(f->dtype)));
    *out = room->data;
    return CVY_OK;
}

/* Reads and augments the whole sample, and cuts the parts out. Masks have no parts: pass_split.c leaves them whole. */
static cvy_status cut_augmented(cvy_dataset *d, struct scratch *s, int64_t number, uint64_t epoch,
                                const cvy_field_part *part, void *const *field_out)
{
    void *x = NULL, *y = NULL;
    CVY_TRY(read_raw(d, number, NULL, NULL, &s->raw));
    const struct arrays at = write_scalars(d, s, field_out);
    CVY_TRY(whole_room(d, 0, part ? &part[0] : NULL, &s->whole[0], field_out, &x));
    if (at.y > 0)
        CVY_TRY(whole_room(d, at.y, part ? &part[at.y] : NULL, &s->whole[1], field_out, &y));
    CVY_TRY(name_sample(d, number, read_whole(d, s, number, epoch, x, y, at.mask > 0 ? field_out[at.mask] : NULL)));
    if (x != field_out[0])
        cvy_part_cut(&part[0], sizeof(float), x, field_out[0]);
    if (at.y > 0 && y != field_out[at.y])
        cvy_part_cut(&part[at.y], cvy_dtype_bytes(d->info.field[at.y].dtype), y, field_out[at.y]);
    return CVY_OK;
}

cvy_status cvy_dataset_read_parts(cvy_dataset *d, int64_t number, uint64_t epoch, const cvy_field_part *part,
                                  int checks_all, void *const *field_out)
{
    struct scratch *s = NULL;
    const cvy_field_part *x = part, *y = NULL;
    CVY_TRY(check_number(d, number));
    if (d->whole)
        return cvy_dataset_read_parts(d->whole, d->number[number], epoch, part, checks_all, field_out);
    for (int f = 1; f < d->info.nfield && part; f++)
        if (strcmp(d->info.field[f].name, "y") == 0)
            y = &part[f];
    CVY_TRY(borrow_scratch(d, &s));
    const cvy_status status = (cvy_is_part(x) || cvy_is_part(y)) && !checks_all && cuts_stored(d, x, y)
                                  ? read_stored_parts(d, s, number, epoch, x, y, field_out)
                                  : cut_augmented(d, s, number, epoch, part, field_out);
    return_scratch(d, s);
    return status;
}

cvy_status cvy_dataset_read(cvy_dataset *d, int64_t number, uint64_t epoch, void *const *field_out)
{
    return cvy_dataset_read_parts(d, number, epoch, NULL, 0, field_out);
}
