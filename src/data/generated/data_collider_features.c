/*
 * data_collider_features.c: what an analysis without a network computes from an event's image: jets by a simple cluster
 * finder, and ten numbers.
 *
 * Jets: each cell that is the largest of its 3x3 neighbourhood and above 5 GeV is a seed; from the hardest on, a seed
 * takes the energy of the 5x5 cells round it (as far as no earlier jet took it), less the median level of pile-up
 * there. Jets count from 30 GeV. The features: total transverse energy, number of jets, transverse momenta of the
 * first, second and fourth jet, missing transverse momentum, electromagnetic share, number of tracks, distance of the
 * first two jets in eta, sphericity in the transverse plane.
 */
#include "data/generated/data_collider.h"

#include <math.h>
#include <string.h>

#define PI_F 3.14159265f
#define SEED_GEV 5.0f
#define JET_GEV 30.0f
enum { SEEDS_MAX = 64, REACH = 2 };

const char *const cvy_collider_feature_name[COLLIDER_FEATURES] = {
    "ht", "njet", "jet1_pt", "jet2_pt", "jet4_pt", "met", "em_share", "ntrack", "deta12", "sphericity",
};

struct seed {
    float et;
    int row, col;
};

static int wrap(int64_t col, int64_t n)
{
    return (int)((col % n + n) % n);
}

/* The largest of its neighbourhood; of equal ones the first. */
static int is_peak(const float *et, int64_t neta, int64_t nphi, int64_t row, int64_t col)
{
    const float here = et[row * nphi + col];
    for (int64_t y = CVY_MAX(row - 1, 0); y <= CVY_MIN(row + 1, neta - 1); y++) {
        for (int64_t dx = -1; dx <= 1; dx++) {
            const int64_t x = wrap(col + dx, nphi);
            const float there = et[y * nphi + x];
            if (there > here || (there == here && y * nphi + x < row * nphi + col))
                return 0;
        }
    }
    return 1;
}

/* Seeds, hardest first. */
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

/* Takes the cells round the seed out of et: the jet's transverse momentum. */
static float take_jet(float *et, int64_t neta, int64_t nphi, const struct seed *s, float level)
{
    float sum = 0;
    int cells = 0;
    for (int64_t y = CVY_MAX(s->row - REACH, 0); y <= CVY_MIN(s->row + REACH, neta - 1); y++) {
        for (int dx = -REACH; dx <= REACH; dx++) {
            float *cell = &et[y * nphi + wrap(s->col + dx, nphi)];
            sum += *cell;
            *cell = 0;
            cells++;
        }
    }
    return sum - level * (float)cells;
}

/* Sums over all cells. */
static void global_features(const float *image, int64_t neta, int64_t nphi, float *et, float *f)
{
    const int64_t n = neta * nphi;
    double sum = 0, em = 0, tracks = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0;
    for (int64_t col = 0; col < nphi; col++) {
        const double phi = 2 * PI_F * ((double)col + 0.5) / (double)nphi, c = cos(phi), s = sin(phi);
        double here = 0, square = 0;
        for (int64_t row = 0; row < neta; row++) {
            const int64_t i = row * nphi + col;
            et[i] = image[COLLIDER_EM * n + i] + image[COLLIDER_HAD * n + i];
            em += image[COLLIDER_EM * n + i];
            tracks += image[COLLIDER_TRACKS * n + i];
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
    f[COLLIDER_HT] = (float)sum;
    f[COLLIDER_MET] = (float)hypot(x, y);
    f[COLLIDER_EM_SHARE] = sum > 0 ? (float)(em / sum) : 0;
    f[COLLIDER_NTRACK] = (float)tracks;
    f[COLLIDER_SPHERICITY] = trace > 0 ? (float)(1 - spread / trace) : 0;
}

void cvy_collider_features_of(const float *image, int64_t neta, int64_t nphi, float *work, float *f)
{
    struct seed seed[SEEDS_MAX];
    float pt[SEEDS_MAX], row[SEEDS_MAX];
    int njet = 0;
    global_features(image, neta, nphi, work, f);
    const int nseed = find_seeds(work, neta, nphi, seed);
    /* Pile-up's mean level: what is left when every hard spot is cut off at 2 GeV. */
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
    f[COLLIDER_NJET] = (float)njet;
    f[COLLIDER_LEAD] = njet > 0 ? pt[0] : 0;
    f[COLLIDER_SECOND] = njet > 1 ? pt[1] : 0;
    f[COLLIDER_FOURTH] = njet > 3 ? pt[3] : 0;
    f[COLLIDER_DETA] = njet > 1 ? fabsf(row[0] - row[1]) * (2 * COLLIDER_ETA_MAX) / (float)neta : 0;
}
