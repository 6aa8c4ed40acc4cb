/*
 * data_collider.h: the generated collider events, shared by their reader, the classic features and the classic
 * baselines. The physics is stated in docs/reference/collider.md and in data_collider_event.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_COLLIDER_H
#define CVY_DATA_COLLIDER_H

#include "data/data_reader.h"

/* Channels of an event's image [3, cells in eta, cells in phi]. */
enum { COLLIDER_EM, COLLIDER_HAD, COLLIDER_TRACKS, COLLIDER_CHANNELS };
#define COLLIDER_ETA_MAX 3.2f /* of the image; tracks reach 2.5 */

typedef struct cvy_collider { /* the options of the reader; the rows in data_collider.c say what each is */
    int64_t events, first, cells, seed;
    double signal;
    double ht_min, ht_max, slope;
    double emissions;
    double cascade, resonance, boost;
    double gluons, signal_gluons;
    double pileup, pileup_jets, pileup_tracks;
    double noise;
} cvy_collider;

extern const cvy_option cvy_collider_opts[];

/* 1: signal. A function of (seed, number) alone, as the event. */
int32_t cvy_collider_label(const cvy_collider *c, int64_t number);
/* Fills image [3, cells, cells]: transverse energies in GeV and track counts. */
void cvy_collider_event(const cvy_collider *c, int64_t number, float *image);

#endif
