/*
 * data_dataset_read.c: reads a sample of a data set by its number: the reader, decoding and augmentation, of whole
 * samples or of parts.
 *
 * It runs in the loader's threads. The augmentation of a sample depends on its number in the whole set, so it does not
 * change with the share. The buffers of a read come from a list of idle ones: after the first reads of each thread
 * nothing is allocated.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "data/data_dataset.h"
#include "data/data_finite.h"
#include "data/data_guard.h"
#include "data/data_seen.h"

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
static cvy_status borrow_scratch(cvy_dataset *d, cvy_dataset_scratch **out)
{
    pthread_mutex_lock(&d->lock);
    cvy_dataset_scratch *s = d->idle;
    if (s)
        d->idle = s->next;
    pthread_mutex_unlock(&d->lock);
    if (!s)
        CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *out = s;
    return CVY_OK;
}

static void return_scratch(cvy_dataset *d, cvy_dataset_scratch *s)
{
    pthread_mutex_lock(&d->lock);
    s->next = d->idle;
    d->idle = s;
    pthread_mutex_unlock(&d->lock);
}

void cvy_dataset_free_scratch(cvy_dataset *d)
{
    for (cvy_dataset_scratch *s = d->idle, *next; s; s = next) {
        cvy_bytes *const room[] = {&s->decoded, &s->rows, &s->whole[0], &s->whole[1], &s->guarded};
        next = s->next;
        cvy_raw_free(&s->raw);
        cvy_augment_scratch_free(&s->augmented);
        for (int i = 0; i < CVY_COUNT(room); i++)
            cvy_mem_free(&room[i]->data);
        cvy_mem_free(&s);
    }
    d->idle = NULL;
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
    const int64_t in_source = cvy_dataset_number_in_source(d, number);
    while (d->whole)
        d = d->whole;
    d->reader->where(d->state, in_source, text, room);
}

void cvy_dataset_file(const cvy_dataset *d, int64_t number, char *text, size_t room)
{
    const int64_t in_source = cvy_dataset_number_in_source(d, number);
    while (d->whole)
        d = d->whole;
    cvy_reader_name_sample(d->reader, d->state, in_source, text, room);
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
    cvy_dataset_scratch *s = NULL;
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
static cvy_status to_picture(const cvy_dataset *d, cvy_dataset_scratch *s, int64_t number, uint64_t epoch,
                             cvy_picture *out)
{
    const cvy_reader_info *set = &d->stored;
    const cvy_raw *raw = &s->raw;
    struct sample sample = {d->augment, epoch, number};
    CVY_CHECK(raw->coding == CVY_CODING_PLAIN || set->shape.ndim == 3, CVY_E_FORMAT,
              "a picture among samples of the shape %s", cvy_shape_text(&set->shape));
    if (raw->coding != CVY_CODING_PLAIN)
        return cvy_picture_decode_part(raw->coding, raw->x.data, raw->x.bytes, set->shape.dim[0], ask_augment, &sample,
                                       &s->decoded, &s->rows, out);
    const int is_deep = set->varying && raw->dtype == CVY_DTYPE_F32; /* a PNG of 16 bits, from the cache */
    CVY_CHECK((raw->dtype == set->dtype || is_deep) && (set->varying || cvy_shape_equal(&raw->shape, &set->shape)),
              CVY_E_FORMAT, "%s of %s, expected %s of %s as in the rest of the set", cvy_dtype_text(raw->dtype),
              cvy_shape_text(&raw->shape), cvy_dtype_text(set->dtype), cvy_shape_text(&set->shape));
    *out = cvy_raw_planes(raw);
    return CVY_OK;
}

/* Whether the weight is an array and not one number. */
static int is_mask(const cvy_reader_info *set)
{
    return set->has_weight && set->weight_shape.ndim > 0;
}

static cvy_status check_numbers(const cvy_dataset *d, const cvy_dataset_scratch *s, const cvy_picture *p,
                                int64_t y_elems)
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
static struct arrays write_scalars(const cvy_dataset *d, const cvy_dataset_scratch *s, void *const *field_out)
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

static cvy_status read_whole(cvy_dataset *d, cvy_dataset_scratch *s, int64_t number, uint64_t epoch, void *x, void *y,
                             void *mask)
{
    cvy_picture picture = {0};
    CVY_TRY(to_picture(d, s, number, epoch, &picture));
    CVY_TRY(check_numbers(d, s, &picture, cvy_shape_elems(&d->stored.y_shape)));
    return cvy_augment_apply_all(d->augment, picture, s->raw.y.data, s->raw.mask.data, epoch, number, &s->augmented, x,
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
static cvy_status read_stored_parts(cvy_dataset *d, cvy_dataset_scratch *s, int64_t number, uint64_t epoch,
                                    const cvy_field_part *x, const cvy_field_part *y, void *const *field_out)
{
    CVY_TRY(read_raw(d, number, x, y, &s->raw));
    if (d->seen)
        cvy_seen_note_part(d->seen);
    CVY_TRY(name_sample(d, number, cut_raw(d, x, y, &s->raw)));
    const cvy_picture picture = cvy_raw_planes(&s->raw);
    const int64_t y_elems = cvy_shape_elems(cvy_is_part(y) ? &y->shape : &d->stored.y_shape);
    CVY_TRY(name_sample(d, number, check_numbers(d, s, &picture, y_elems)));
    const struct arrays at = write_scalars(d, s, field_out);
    return name_sample(d, number,
                       cvy_augment_apply_parts(d->augment, picture, s->raw.y.data, y_elems, epoch, number,
                                               &s->augmented, field_out[0], at.y > 0 ? field_out[at.y] : NULL));
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
static cvy_status cut_augmented(cvy_dataset *d, cvy_dataset_scratch *s, int64_t number, uint64_t epoch,
                                const cvy_field_part *part, void *const *field_out)
{
    void *x = NULL, *y = NULL;
    CVY_TRY(read_raw(d, number, NULL, NULL, &s->raw));
    if (d->seen)
        cvy_seen_note(d->seen, number, &d->stored, &s->raw);
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

static cvy_status read_fields(cvy_dataset *d, cvy_dataset_scratch *s, int64_t number, uint64_t epoch,
                              const cvy_field_part *part, int checks_all, void *const *field_out)
{
    const cvy_field_part *x = part, *y = NULL;
    for (int f = 1; f < d->info.nfield && part; f++)
        if (strcmp(d->info.field[f].name, "y") == 0)
            y = &part[f];
    return (cvy_is_part(x) || cvy_is_part(y)) && !checks_all && cuts_stored(d, x, y)
               ? read_stored_parts(d, s, number, epoch, x, y, field_out)
               : cut_augmented(d, s, number, epoch, part, field_out);
}

/* The same with a guard zone around each field. */
static cvy_status read_guarded(cvy_dataset *d, cvy_dataset_scratch *s, int64_t number, uint64_t epoch,
                               const cvy_field_part *part, int checks_all, void *const *field_out)
{
    size_t bytes[CVY_FIELD_MAX];
    void *guarded[CVY_FIELD_MAX];
    cvy_guard guard;
    for (int f = 0; f < d->info.nfield; f++) {
        const cvy_field *field = &d->info.field[f];
        const int is_part = part && part[f].is_part;
        bytes[f] = (size_t)cvy_shape_elems(is_part ? &part[f].shape : &field->shape) * cvy_dtype_bytes(field->dtype);
    }
    CVY_TRY(cvy_guard_begin(&guard, &s->guarded, d->info.nfield, bytes, field_out, guarded));
    CVY_TRY(read_fields(d, s, number, epoch, part, checks_all, guarded));
    return name_sample(d, number, cvy_guard_take(&guard, field_out));
}

cvy_status cvy_dataset_read_parts(cvy_dataset *d, int64_t number, uint64_t epoch, const cvy_field_part *part,
                                  int checks_all, void *const *field_out)
{
    cvy_dataset_scratch *s = NULL;
    CVY_TRY(check_number(d, number));
    if (d->whole)
        return cvy_dataset_read_parts(d->whole, d->number[number], epoch, part, checks_all, field_out);
    CVY_TRY(borrow_scratch(d, &s));
    const cvy_status status = CVY_SAMPLES_GUARDED ? read_guarded(d, s, number, epoch, part, checks_all, field_out)
                                                  : read_fields(d, s, number, epoch, part, checks_all, field_out);
    return_scratch(d, s);
    return status;
}

cvy_status cvy_dataset_read(cvy_dataset *d, int64_t number, uint64_t epoch, void *const *field_out)
{
    return cvy_dataset_read_parts(d, number, epoch, NULL, 0, field_out);
}
