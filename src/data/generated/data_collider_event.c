/*
 * data_collider_event.c: one generated collider event: from the hard scatter to the cells of the detector.
 *
 * Hard scatter: the scalar sum of transverse momenta follows one falling power law for both classes, so energy alone
 * tells nothing. background  two partons back to back; hard emissions (dz/z, dR/R) split them further: few jets, mostly
 * of gluons signal      two heavy particles (gluinos whose decays break R-parity) recoil against each other; each
 * decays to three quarks, or to five by a cascade, flat in phase space: many jets, of quarks Jets: partons become
 * hadrons; their number grows with ln pT, more and softer for gluons; a hadron leaves the axis by jT / pT, so cores are
 * narrower at high pT. Then pile-up, a magnetic field that turns charged ones in phi, showers, resolution, noise, zero
 * suppression. Everything comes from the stream (seed, "collider", event number). A sketch of the real thing with its
 * scales (Particle Data Group reviews; ATLAS and CMS detector papers), not a Monte Carlo to publish with.
 * docs/reference/collider.md says what each parameter does.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/number/base_rng.h"
#include "data/generated/data_collider.h"

#include <math.h>
#include <string.h>

#define PI_F 3.14159265f
enum { PARTONS_MAX = 32 };

/* ---- random numbers: four words of each Philox block in turn ---- */

struct draw {
    cvy_rng rng;
    uint64_t block;
    uint32_t word[4];
    int left;
    float spare; /* second normal of a pair */
    int has_spare;
};

static inline uint32_t draw_word(struct draw *d)
{
    if (d->left == 0) {
        cvy_rng_block(&d->rng, d->block++, d->word);
        d->left = 4;
    }
    return d->word[--d->left];
}

/* (0, 1): never the ends, so that its logarithm is finite. */
static inline float uniform(struct draw *d)
{
    return ((float)(draw_word(d) >> 9) + 0.5f) * 0x1p-23f;
}

static inline float between(struct draw *d, float a, float b)
{
    return a + (b - a) * uniform(d);
}

static inline float exponential(struct draw *d)
{
    return -logf(uniform(d));
}

static float normal(struct draw *d)
{
    if (d->has_spare) {
        d->has_spare = 0;
        return d->spare;
    }
    const float r = sqrtf(2 * exponential(d)), angle = 2 * PI_F * uniform(d);
    d->spare = r * sinf(angle);
    d->has_spare = 1;
    return r * cosf(angle);
}

/* Products of uniforms for small means; the normal limit above, where nobody sees the difference. */
static int poisson(struct draw *d, float mean)
{
    if (mean > 30)
        return (int)fmaxf(0, roundf(mean + sqrtf(mean) * normal(d)));
    const float limit = expf(-mean);
    float product = uniform(d);
    int n = 0;
    for (; product > limit; n++)
        product *= uniform(d);
    return n;
}

/* x^-slope between a and b. */
static float power_law(struct draw *d, float a, float b, float slope)
{
    const float e = 1 - slope, u = uniform(d);
    if (fabsf(e) < 1e-4f)
        return a * powf(b / a, u);
    return powf(powf(a, e) + u * (powf(b, e) - powf(a, e)), 1 / e);
}

/* ---- the hard scatter ---- */

struct parton {
    float px, py, eta;
    int gluon;
};

struct event {
    const cvy_collider *c;
    struct draw draw;
    struct parton parton[PARTONS_MAX];
    int nparton;
    int cells;
    float *em, *had, *tracks;
};

static void add_parton(struct event *e, float pt, float eta, float phi, int gluon)
{
    if (e->nparton < PARTONS_MAX)
        e->parton[e->nparton++] =
            (struct parton){.px = pt * cosf(phi), .py = pt * sinf(phi), .eta = eta, .gluon = gluon};
}

/* Takes the imbalance out of all partons, by their share of momentum, then scales their scalar sum to ht. */
static void balance(struct event *e, float ht)
{
    for (int round = 0; round < 2; round++) {
        float x = 0, y = 0, sum = 0;
        for (int i = 0; i < e->nparton; i++) {
            x += e->parton[i].px;
            y += e->parton[i].py;
            sum += hypotf(e->parton[i].px, e->parton[i].py);
        }
        for (int i = 0; i < e->nparton; i++) {
            struct parton *p = &e->parton[i];
            const float share = hypotf(p->px, p->py) / sum;
            p->px = (p->px - x * share) * ht / sum;
            p->py = (p->py - y * share) * ht / sum;
        }
    }
}

/* Replaces parton i by two: shares z and 1 - z of its momentum, R apart in a random direction of the eta-phi plane. */
static void split(struct event *e, int i, float z, float R, int gluon)
{
    const struct parton p = e->parton[i];
    const float pt = hypotf(p.px, p.py), phi = atan2f(p.py, p.px), turn = 2 * PI_F * uniform(&e->draw);
    const float deta = R * cosf(turn), dphi = R * sinf(turn);
    if (e->nparton == PARTONS_MAX)
        return;
    e->parton[i] = e->parton[--e->nparton];
    add_parton(e, z * pt, p.eta + (1 - z) * deta, phi + (1 - z) * dphi, gluon);
    add_parton(e, (1 - z) * pt, p.eta - z * deta, phi - z * dphi, p.gluon);
}

static void background(struct event *e, float ht)
{
    struct draw *d = &e->draw;
    const float boost = 0.7f * normal(d), star = between(d, -0.9f, 0.9f), phi = 2 * PI_F * uniform(d);
    add_parton(e, ht / 2, boost + star, phi, uniform(d) < e->c->gluons);
    add_parton(e, ht / 2, boost - star, phi + PI_F, uniform(d) < e->c->gluons);
    for (int n = poisson(d, (float)e->c->emissions); n > 0; n--) {
        float at = ht * uniform(d); /* who emits: by momentum */
        int i = 0;
        for (; i < e->nparton - 1; i++) {
            at -= hypotf(e->parton[i].px, e->parton[i].py);
            if (at < 0)
                break;
        }
        split(e, i, power_law(d, 0.08f, 0.5f, 1), power_law(d, 0.25f, 2.0f, 1), uniform(d) < e->c->gluons);
    }
}

/* A four-momentum, of a massless particle where nothing else is said. */
struct four {
    float E, x, y, z;
};

static struct four isotropic(struct draw *d, float E, float mass)
{
    const float c = between(d, -1, 1), phi = 2 * PI_F * uniform(d), p = sqrtf(fmaxf(E * E - mass * mass, 0)),
                s = sqrtf(1 - c * c);
    return (struct four){E, p * s * cosf(phi), p * s * sinf(phi), p * c};
}

/* p, given in the rest frame of `of` (mass m), in the frame where `of` is what it is. */
static struct four boosted(struct four p, struct four of, float m)
{
    const float dot = of.x * p.x + of.y * p.y + of.z * p.z, f = dot / (m * (of.E + m)) + p.E / m;
    return (struct four){(of.E * p.E + dot) / m, p.x + f * of.x, p.y + f * of.y, p.z + f * of.z};
}

static float four_pt(struct four p)
{
    return hypotf(p.x, p.y);
}

static void add_quark(struct event *e, struct four p)
{
    const float pt = fmaxf(four_pt(p), 1e-6f);
    add_parton(e, pt, asinhf(p.z / pt), atan2f(p.y, p.x), uniform(&e->draw) < e->c->signal_gluons);
}

/* Decay of a particle of mass m, at rest in its own frame, to masses a and b. */
static void two_body(struct draw *d, struct four mother, float m, float a, float b, struct four *one, struct four *two)
{
    const float E = (m * m + a * a - b * b) / (2 * m);
    const struct four p = isotropic(d, E, a);
    *one = boosted(p, mother, m);
    *two = boosted((struct four){m - E, -p.x, -p.y, -p.z}, mother, m);
}

/* One of a gluino's three legs: a quark, or a light resonance that decays to two quarks close to each other. */
static void leg(struct event *e, struct four p, float mass)
{
    struct four one, two;
    if (mass == 0) {
        add_quark(e, p);
        return;
    }
    two_body(&e->draw, p, mass, 0, 0, &one, &two);
    add_quark(e, one);
    add_quark(e, two);
}

/* To three legs, by a chain of two-body decays with an intermediate mass drawn evenly in its square. */
static void gluino_decay(struct event *e, struct four gluino)
{
    struct draw *d = &e->draw;
    struct four first, rest, second, third;
    float mass[3];
    for (int i = 0; i < 3; i++)
        mass[i] = uniform(d) < e->c->cascade ? (float)e->c->resonance : 0;
    const float pair = mass[1] + mass[2], low = pair * pair, high = (1 - mass[0]) * (1 - mass[0]);
    const float between_mass = sqrtf(between(d, low + 0.1f * (high - low), low + 0.9f * (high - low)));
    two_body(d, gluino, 1, mass[0], between_mass, &first, &rest);
    two_body(d, rest, between_mass, mass[1], mass[2], &second, &third);
    leg(e, first, mass[0]);
    leg(e, second, mass[1]);
    leg(e, third, mass[2]);
}

/* Masses are in units of the gluino's; balance() sets the scale. */
static void signal(struct event *e)
{
    struct draw *d = &e->draw;
    const float pt = (float)e->c->boost * exponential(d), phi = 2 * PI_F * uniform(d);
    const float mt = sqrtf(1 + pt * pt), y0 = 0.6f * normal(d), dy = 0.5f * normal(d);
    for (int side = -1; side <= 1; side += 2) {
        const float y = y0 + (float)side * dy, s = (float)side * pt;
        gluino_decay(e, (struct four){mt * coshf(y), s * cosf(phi), s * sinf(phi), mt * sinhf(y)});
    }
}

/* ---- the detector ---- */

/* A transverse energy into the cell at (eta, phi); phi goes round, what leaves in eta is lost. */
static void deposit(struct event *e, float *plane, float et, float eta, float phi)
{
    const float n = (float)e->cells;
    const float y = (eta + COLLIDER_ETA_MAX) * (n / (2 * COLLIDER_ETA_MAX)), turn = phi * (1 / (2 * PI_F));
    if (!(y >= 0 && y < n) || et <= 0)
        return;
    const int row = (int)y, col = (int)((turn - floorf(turn)) * n);
    plane[row * e->cells + CVY_MIN(col, e->cells - 1)] += et;
}

/* Resolution: stochastic and constant term, in quadrature. */
static float measured(struct draw *d, float et, float stochastic, float constant)
{
    return et + normal(d) * sqrtf(stochastic * stochastic * et + constant * constant * et * et);
}

/* One final particle. vertex: it comes from the hard scatter, so its track is counted. */
static void particle(struct event *e, float pt, float eta, float phi, int vertex)
{
    struct draw *d = &e->draw;
    const float kind = uniform(d);
    const int charged = kind < 0.6f;
    if (charged) {
        if (vertex && fabsf(eta) < 2.5f && pt > 0.5f)
            deposit(e, e->tracks, 1, eta, phi);
        phi += (draw_word(d) & 1 ? 0.5f : -0.5f) / fmaxf(pt, 0.5f); /* the field's turn up to the calorimeter */
    }
    if (!charged && kind < 0.88f) { /* photons, mostly from neutral pions */
        deposit(e, e->em, measured(d, pt, 0.1f, 0.01f), eta, phi);
        return;
    }
    const float in_em = pt * 0.5f * uniform(d), in_had = measured(d, pt - in_em, 0.7f, 0.05f);
    deposit(e, e->em, in_em, eta, phi);
    deposit(e, e->had, 0.7f * in_had, eta, phi); /* hadron showers are wide */
    deposit(e, e->had, 0.3f * in_had, eta + 0.08f * normal(d), phi + 0.08f * normal(d));
}

/* Hadrons of a parton: shares by a log-normal law, angles by jT / pT. */
static void fragment(struct event *e, float pt, float eta, float phi, int gluon, int vertex)
{
    struct draw *d = &e->draw;
    float share[96], sum = 0;
    const float mean = (gluon ? 7.6f : 4.6f) * logf(fmaxf(pt, 8) / 5), spread = gluon ? 0.9f : 1.25f,
                jt = gluon ? 1.1f : 0.75f;
    const int n = CVY_MIN(1 + poisson(d, mean), CVY_COUNT(share));
    for (int i = 0; i < n; i++)
        sum += share[i] = expf(spread * normal(d));
    for (int i = 0; i < n; i++) {
        const float p = pt * share[i] / sum, r = fminf(jt * expf(0.7f * normal(d)) / p, 0.9f),
                    turn = 2 * PI_F * uniform(d);
        if (p > 0.2f)
            particle(e, p, eta + r * cosf(turn), phi + r * sinf(turn), vertex);
    }
}

/* Other interactions of the same crossing: soft particles everywhere, now and then a jet. Their tracks point to other
 * vertices. */
static void pile_up(struct event *e)
{
    struct draw *d = &e->draw;
    const int extra = poisson(d, (float)e->c->pileup);
    for (int n = poisson(d, 20.0f * (float)extra); n > 0; n--)
        particle(e, 0.2f + 0.6f * exponential(d), between(d, -COLLIDER_ETA_MAX, COLLIDER_ETA_MAX),
                 2 * PI_F * uniform(d), uniform(d) < e->c->pileup_tracks);
    for (int n = poisson(d, (float)e->c->pileup_jets * (float)extra); n > 0; n--)
        fragment(e, power_law(d, 20, 200, 4), between(d, -COLLIDER_ETA_MAX, COLLIDER_ETA_MAX), 2 * PI_F * uniform(d), 1,
                 0);
}

static void noise_and_suppression(struct event *e)
{
    struct draw *d = &e->draw;
    const int cells = e->cells * e->cells;
    const float mean = (float)e->c->noise * (float)cells / 4096;
    for (int plane = 0; plane < 2; plane++) {
        float *p = plane ? e->had : e->em;
        for (int n = poisson(d, mean); n > 0; n--)
            p[draw_word(d) % (uint32_t)cells] += (plane ? 0.5f : 0.3f) * (1 + exponential(d));
        for (int i = 0; i < cells; i++)
            p[i] = p[i] < 0.25f ? 0 : p[i];
    }
}

/* ---- the event ---- */

static void begin(struct event *e, const cvy_collider *c, int64_t number)
{
    *e = (struct event){.c = c, .cells = (int)c->cells};
    e->draw.rng = cvy_rng_make((uint64_t)c->seed, "collider", 0, (uint64_t)number);
}

int32_t cvy_collider_label(const cvy_collider *c, int64_t number)
{
    struct event e;
    begin(&e, c, number);
    return uniform(&e.draw) < c->signal;
}

void cvy_collider_event(const cvy_collider *c, int64_t number, float *image)
{
    struct event e;
    const size_t cells = (size_t)(c->cells * c->cells);
    begin(&e, c, number);
    memset(image, 0, COLLIDER_CHANNELS * cells * sizeof *image);
    e.em = image + COLLIDER_EM * cells;
    e.had = image + COLLIDER_HAD * cells;
    e.tracks = image + COLLIDER_TRACKS * cells;
    const int is_signal = uniform(&e.draw) < c->signal;
    const float ht = power_law(&e.draw, (float)c->ht_min, (float)c->ht_max, (float)c->slope);
    if (is_signal)
        signal(&e);
    else
        background(&e, ht);
    balance(&e, ht);
    for (int i = 0; i < e.nparton; i++)
        fragment(&e, hypotf(e.parton[i].px, e.parton[i].py), e.parton[i].eta, atan2f(e.parton[i].py, e.parton[i].px),
                 e.parton[i].gluon, 1);
    pile_up(&e);
    noise_and_suppression(&e);
}
