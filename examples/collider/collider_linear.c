/*
 * collider_linear.c: logistic regression on features, by Newton's method with a small ridge term.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collider.h"

enum { TERMS_MAX = FEATURES + 1 };

struct linear {
    int n; /* features used */
    int feature[FEATURES];
    double mean[FEATURES], sd[FEATURES];
    double weight[TERMS_MAX]; /* the last is the offset */
};

static void standardise(struct linear *l, const events *t)
{
    for (int k = 0; k < l->n; k++) {
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < t->n; i++)
            sum += t->feature[i * FEATURES + l->feature[k]];
        l->mean[k] = sum / (double)t->n;
        for (int64_t i = 0; i < t->n; i++)
            squares += pow(t->feature[i * FEATURES + l->feature[k]] - l->mean[k], 2);
        const double var = squares / (double)t->n;
        l->sd[k] = var > 1e-12 ? sqrt(var) : 1;
    }
}

static double logit(const struct linear *l, const float *feature, double *term)
{
    double sum = l->weight[l->n];
    term[l->n] = 1;
    for (int k = 0; k < l->n; k++) {
        term[k] = (feature[l->feature[k]] - l->mean[k]) / l->sd[k];
        sum += l->weight[k] * term[k];
    }
    return sum;
}

/* Solves H x = g in place by Cholesky factorisation. H is symmetric and, with the ridge, positive definite. */
static void solve(double H[TERMS_MAX][TERMS_MAX], double *g, int n)
{
    for (int i = 0; i < n; i++) {
        for (int j = 0; j <= i; j++) {
            double sum = H[i][j];
            for (int k = 0; k < j; k++)
                sum -= H[i][k] * H[j][k];
            H[i][j] = i == j ? sqrt(fmax(sum, 1e-30)) : sum / H[j][j];
        }
        for (int k = 0; k < i; k++)
            g[i] -= H[i][k] * g[k];
        g[i] /= H[i][i];
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++)
            g[i] -= H[k][i] * g[k];
        g[i] /= H[i][i];
    }
}

static void fit(struct linear *l, const events *t)
{
    standardise(l, t);
    for (int round = 0; round < 25; round++) {
        double H[TERMS_MAX][TERMS_MAX] = {{0}}, g[TERMS_MAX] = {0}, term[TERMS_MAX], largest = 0;
        const int n = l->n + 1;
        for (int64_t i = 0; i < t->n; i++) {
            const double p = 1 / (1 + exp(-logit(l, t->feature + i * FEATURES, term)));
            for (int a = 0; a < n; a++) {
                g[a] += ((t->label[i] == 1) - p) * term[a];
                for (int b = 0; b <= a; b++)
                    H[a][b] += p * (1 - p) * term[a] * term[b];
            }
        }
        for (int a = 0; a < n; a++) {
            H[a][a] += 1e-6 * (double)t->n;
            g[a] -= 1e-6 * (double)t->n * l->weight[a];
        }
        solve(H, g, n);
        for (int a = 0; a < n; a++) {
            l->weight[a] += g[a];
            largest = fmax(largest, fabs(g[a]));
        }
        if (largest < 1e-8)
            break;
    }
}

classifier linear_fit(const char *name, const char *text, const events *train, const events *test, const int *feature,
                      int n)
{
    struct linear l = {.n = n};
    double term[TERMS_MAX];
    float *score = allocate(test->n, sizeof *score);
    memcpy(l.feature, feature, (size_t)n * sizeof *feature);
    fit(&l, train);
    for (int64_t i = 0; i < test->n; i++)
        score[i] = (float)logit(&l, test->feature + i * FEATURES, term);
    const classifier c = classifier_by_score(name, text, score, test->label, test->n);
    free(score);
    return c;
}
