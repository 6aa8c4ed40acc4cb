/*
 * data_collider.c: the reader of generated collider events, the embedded default data set: as many events as asked for,
 * from a seed.
 *
 * In the step: below the data set; an event is made anew each time it is read, in the loader's threads (about 0.1 ms
 * each). Images are in GeV and counts: put `log` into data.augment. Training and test sets take different ranges of
 * events (`first`) of one seed. docs/reference/collider.md states the physics and what each parameter does.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/generated/data_collider.h"

#include <stdio.h>
#include <string.h>

#include "base/base_file.h"
#include "base/base_hash.h"

#define ROW(key, type, fallback, valid, unit, help)                                                                    \
    {                                                                                                                  \
#key, type, CVY_FIELD(cvy_collider, key), fallback, valid, unit, help                                          \
    }
const cvy_option cvy_collider_opts[] = {
    ROW(events, CVY_TYPE_INT, "20000", "1..", "events", "number of events"),
    ROW(first, CVY_TYPE_INT, "0", "0..", "",
        "number of the first event: sets of one seed with ranges apart share no event"),
    ROW(cells, CVY_TYPE_INT, "64", "8..1024", "cells", "cells along eta (-3.2 to 3.2) and along phi (once round)"),
    ROW(seed, CVY_TYPE_INT, "1", "0..", "", "seed of all random numbers"),
    ROW(signal, CVY_TYPE_REAL, "0.5", "0..1", "", "share of signal events"),
    ROW(ht_min, CVY_TYPE_REAL, "500", ">0", "GeV", "least transverse energy of the hard scatter, of both classes"),
    ROW(ht_max, CVY_TYPE_REAL, "4000", ">0", "GeV", "largest transverse energy of the hard scatter"),
    ROW(slope, CVY_TYPE_REAL, "5", "0..20", "", "power by which that energy falls"),
    ROW(emissions, CVY_TYPE_REAL, "3", "0..12", "", "mean number of hard emissions in the background: more jets there"),
    ROW(cascade, CVY_TYPE_REAL, "0.7", "0..1", "",
        "chance that a leg of a gluino's decay is a light resonance of two quarks"),
    ROW(resonance, CVY_TYPE_REAL, "0.08", "0.001..0.3", "gluino masses",
        "mass of that resonance: the angle between its quarks"),
    ROW(boost, CVY_TYPE_REAL, "1.4", "0..20", "gluino masses",
        "mean transverse momentum of a gluino: larger means narrower decays, so fewer jets apart"),
    ROW(gluons, CVY_TYPE_REAL, "0.85", "0..1", "", "share of gluon jets (wide, soft) in the background"),
    ROW(signal_gluons, CVY_TYPE_REAL, "0.05", "0..1", "", "share of gluon jets in the signal"),
    ROW(pileup, CVY_TYPE_REAL, "15", "0..200", "", "mean number of other interactions in a crossing"),
    ROW(pileup_jets, CVY_TYPE_REAL, "0.1", "0..1", "", "mean number of jets above 20 GeV in each of them"),
    ROW(pileup_tracks, CVY_TYPE_REAL, "0.35", "0..1", "",
        "share of their tracks that pass for tracks of the hard scatter"),
    ROW(noise, CVY_TYPE_REAL, "120", "0..4096", "cells", "mean number of noisy cells in each calorimeter, of 64 x 64"),
    {0},
};

struct reader {
    cvy_collider c;
    cvy_shape shape;
};

static int collider_probe(const char *path)
{
    return strcmp(path, "collider") == 0 && !cvy_file_exists(path) ? 100 : 0;
}

static cvy_status collider_open(const cvy_reader_args *args, cvy_reader_info *info, void **state_out)
{
    static const char *const classes[] = {"background", "signal"};
    struct reader *r = NULL;
    CVY_TRY(cvy_pool_alloc(info->pool, sizeof *r, &r));
    r->c = *(const cvy_collider *)args->options;
    CVY_CHECK(r->c.ht_min < r->c.ht_max, CVY_E_CONFIG, "collider events: ht_min %g is not below ht_max %g", r->c.ht_min,
              r->c.ht_max);
    r->shape = (cvy_shape){3, {COLLIDER_CHANNELS, r->c.cells, r->c.cells}};
    info->nsamples = r->c.events;
    info->dtype = CVY_DTYPE_F32;
    info->shape = r->shape;
    info->has_label = 1;
    info->nclasses = 2;
    info->class_name = classes;
    *state_out = r;
    return CVY_OK;
}

static cvy_status collider_read(void *state, int64_t number, cvy_raw *raw)
{
    const struct reader *r = state;
    CVY_TRY(cvy_bytes_need(&raw->x, (size_t)cvy_shape_elems(&r->shape) * sizeof(float)));
    raw->coding = CVY_CODING_PLAIN;
    raw->dtype = CVY_DTYPE_F32;
    raw->shape = r->shape;
    raw->label = cvy_collider_label(&r->c, r->c.first + number);
    cvy_collider_event(&r->c, r->c.first + number, raw->x.data);
    return CVY_OK;
}

static cvy_status collider_label(void *state, int64_t number, int32_t *label_out)
{
    const struct reader *r = state;
    *label_out = cvy_collider_label(&r->c, r->c.first + number);
    return CVY_OK;
}

static void collider_where(void *state, int64_t number, char *text, size_t room)
{
    snprintf(text, room, "collider event %lld", (long long)(((const struct reader *)state)->c.first + number));
}

static void collider_hash(void *state, cvy_hasher *h)
{
    const struct reader *r = state;
    cvy_hash_add(h, &r->c, sizeof r->c);
}

CVY_READER_DEFINE(collider) = {
    .name = "collider",
    .summary = "generated collider events: many jets against few",
    .options = cvy_collider_opts,
    .options_size = sizeof(cvy_collider),
    .probe = collider_probe,
    .open = collider_open,
    .read = collider_read,
    .label = collider_label,
    .where = collider_where,
    .hash = collider_hash,
};
