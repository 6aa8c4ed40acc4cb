/*
 * collider_features.c: what an analysis without a network computes from an event's image: jets and ten numbers.
 *
 * A cell that is the largest of its 3x3 neighbourhood and above 5 GeV is a seed. From the hardest seed on, each takes
 * the energy of the 5x5 cells around it that no earlier jet took, less the mean level of pile-up. Jets count from
 * 30 GeV. The features are: total transverse energy, number of jets, transverse momenta of the first, second and fourth
 * jet, missing transverse momentum, electromagnetic share, number of tracks, distance of the first two jets in
 * pseudorapidity, sphericity in the transverse plane.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "collider.h"

#define PI_F 3.14159265f
#define SEED_GEV 5.0f
#define JET_GEV 30.0f
enum { SEEDS_MAX = 64, REACH = 2 };

const char *const feature_name[FEATURES] = {
    "ht", "njet", "jet1_pt", "jet2_pt", "jet4_pt", "met", "em_share", "ntrack", "deta12", "sphericity",
};

struct seed {
    float et;
    int row, col;
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Azimuth is periodic. */
static int wrap(int64_t col, int64_t n)
{
    return (int)((col % n + n) % n);
}

/* Whether a cell is the largest of its neighbourhood. Of equal cells the first one is. */
static int is_peak(const float *et, int64_t neta, int64_t nphi, int64_t row, int64_t col)
{
    const float here = et[row * nphi + col];
    for (int64_t y = larger(row - 1, 0); y <= smaller(row + 1, neta - 1); y++) {
        for (int64_t dx = -1; dx <= 1; dx++) {
            const int64_t x = wrap(col + dx, nphi);
            const float there = et[y * nphi + x];
            if (there > here || (there == here && y * nphi + x < row * nphi + col))
                return 0;
        }
    }
    return 1;
}

/* Finds the seeds, the hardest first, and gives their number. */
static int find_seeds(const float *et, int64_t neta, int64_t nphi, struct seed *seed)
{
    int n = 0;
    for (int64_t row = 0; row < neta; row++) {
        for (int64_t col = 0; col < nphi; col++) {
            const float here = et[row * nphi + col];
            if (here < SEED_GEV || !is_peak(et, neta, nphi, row, col))
                continue;
            if (n == SEEDS_MAX && here <= seed[n - 1].et)
                continue;
            int at = n < SEEDS_MAX ? n++ : n - 1;
            for (; at > 0 && seed[at - 1].et < here; at--)
                seed[at] = seed[at - 1];
            seed[at] = (struct seed){here, (int)row, (int)col};
        }
    }
    return n;
}

/* Takes the cells around the seed out of et. Gives the jet's transverse momentum. */
static float take_jet(float *et, int64_t neta, int64_t nphi, const struct seed *s, float level)
{
    float sum = 0;
    int cells = 0;
    for (int64_t y = larger(s->row - REACH, 0); y <= smaller(s->row + REACH, neta - 1); y++) {
        for (int dx = -REACH; dx <= REACH; dx++) {
            float *cell = &et[y * nphi + wrap(s->col + dx, nphi)];
            sum += *cell;
            *cell = 0;
            cells++;
        }
    }
    return sum - level * (float)cells;
}

/* Computes the features that are sums over all cells, and et, the transverse energy of each cell. */
static void global_features(const float *image, int64_t neta, int64_t nphi, float *et, float *f)
{
    const int64_t n = neta * nphi;
    double sum = 0, em = 0, tracks = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0;
    for (int64_t col = 0; col < nphi; col++) {
        const double phi = 2 * PI_F * ((double)col + 0.5) / (double)nphi, c = cos(phi), s = sin(phi);
        double here = 0, square = 0;
        for (int64_t row = 0; row < neta; row++) {
            const int64_t i = row * nphi + col;
            et[i] = image[CHANNEL_EM * n + i] + image[CHANNEL_HAD * n + i];
            em += image[CHANNEL_EM * n + i];
            tracks += image[CHANNEL_TRACKS * n + i];
            here += et[i];
            square += et[i] * et[i];
        }
        sum += here;
        x += here * c;
        y += here * s;
        xx += square * c * c;
        yy += square * s * s;
        xy += square * c * s;
    }
    const double spread = sqrt((xx - yy) * (xx - yy) + 4 * xy * xy), trace = xx + yy;
    f[FEATURE_HT] = (float)sum;
    f[FEATURE_MET] = (float)hypot(x, y);
    f[FEATURE_EM_SHARE] = sum > 0 ? (float)(em / sum) : 0;
    f[FEATURE_NTRACK] = (float)tracks;
    f[FEATURE_SPHERICITY] = trace > 0 ? (float)(1 - spread / trace) : 0;
}

void features_of(const float *image, int64_t neta, int64_t nphi, float *work, float *f)
{
    struct seed seed[SEEDS_MAX];
    float pt[SEEDS_MAX], row[SEEDS_MAX];
    int njet = 0;
    global_features(image, neta, nphi, work, f);
    const int nseed = find_seeds(work, neta, nphi, seed);
    /* The mean level of pile-up is what is left if every hard cell is cut off at 2 GeV. */
    float level = 0;
    for (int64_t i = 0; i < neta * nphi; i++)
        level += fminf(work[i], 2);
    level /= (float)(neta * nphi);
    for (int i = 0; i < nseed; i++) {
        const float jet = take_jet(work, neta, nphi, &seed[i], level);
        if (jet < JET_GEV)
            continue;
        int at = njet++;
        for (; at > 0 && pt[at - 1] < jet; at--) {
            pt[at] = pt[at - 1];
            row[at] = row[at - 1];
        }
        pt[at] = jet;
        row[at] = (float)seed[i].row;
    }
    f[FEATURE_NJET] = (float)njet;
    f[FEATURE_LEAD] = njet > 0 ? pt[0] : 0;
    f[FEATURE_SECOND] = njet > 1 ? pt[1] : 0;
    f[FEATURE_FOURTH] = njet > 3 ? pt[3] : 0;
    f[FEATURE_DETA] = njet > 1 ? fabsf(row[0] - row[1]) * (2 * ETA_MAX) / (float)neta : 0;
}
