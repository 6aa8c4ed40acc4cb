/* ranks: 1 2 3 */
/*
 * own_gradients.c: a program with its own model and its own backward pass; convoy only adds up its gradients over the
 * ranks.
 *
 *     mpicc own_gradients.c $(pkg-config --cflags --libs convoy) -lm -o own_gradients
 *     mpiexec -n 4 ./own_gradients
 *
 * A perceptron with one hidden layer, written out in plain C, learns to distinguish four sectors of a disk. Every rank
 * has a share of the points. Each gradient is written into the reducer's buffer, and its reduction is started as soon
 * as it is complete. So the gradients of the second layer are reduced while those of the first layer are being
 * computed. The first part of the training uses delayed updates: a step applies the sums of the step before, which had
 * a whole step to arrive. The second part uses plain synchronous updates. To show that the number of ranks changes
 * nothing, each rank then trains once more alone, on all points.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { POINTS = 600, HIDDEN = 24, CLASSES = 4, STEPS = 300, PIPELINED = 200, LARGEST = CLASSES * HIDDEN };

enum { W2, B2, W1, B1, PARTS }; /* in the order in which backward makes their gradients */
static const struct {
    const char *name;
    int count;
} part[PARTS] = {{"w2", CLASSES *HIDDEN}, {"b2", CLASSES}, {"w1", HIDDEN * 2}, {"b1", HIDDEN}};

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        if ((call) < 0) {                                                                                              \
            fprintf(stderr, "own_gradients: %s\n", cvy_error_text());                                                  \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                              \
        }                                                                                                              \
    } while (0)

/* ---- the data: points of a disk; the angle is turned more the farther out a point is ---- */

struct point {
    float x[2];
    int class;
};

static void make_points(struct point *p)
{
    const double tau = 6.283185307179586;
    for (int n = 0; n < POINTS; n++) {
        const double radius = sqrt((n + 0.5) / POINTS), angle = fmod(n * 2.399963229728653, tau); /* the golden angle */
        p[n].class = (int)(angle / tau * CLASSES);
        p[n].x[0] = (float)(2 * radius * cos(angle + radius));
        p[n].x[1] = (float)(2 * radius * sin(angle + radius));
    }
}

/* ---- the model ---- */

struct net {
    float weight[PARTS][LARGEST], speed[PARTS][LARGEST];
};

static void make_weights(struct net *net, unsigned random)
{
    memset(net, 0, sizeof *net);
    for (int i = 0; i < part[W2].count + part[W1].count; i++) {
        random = random * 1664525u + 1013904223u;
        const float draw = (float)(random >> 8) * 0x1p-23f - 1;
        if (i < part[W2].count)
            net->weight[W2][i] = 0.3f * draw;
        else
            net->weight[W1][i - part[W2].count] = draw;
    }
}

/* Computes hidden values and probabilities of one point; returns its loss. */
static double forward(const struct net *net, const struct point *p, float hidden[HIDDEN], float probability[CLASSES])
{
    double sum = 0, top = -1e30, logit[CLASSES];
    for (int h = 0; h < HIDDEN; h++)
        hidden[h] = tanhf(net->weight[W1][h * 2] * p->x[0] + net->weight[W1][h * 2 + 1] * p->x[1] + net->weight[B1][h]);
    for (int k = 0; k < CLASSES; k++) {
        logit[k] = net->weight[B2][k];
        for (int h = 0; h < HIDDEN; h++)
            logit[k] += net->weight[W2][k * HIDDEN + h] * hidden[h];
        top = fmax(top, logit[k]);
    }
    for (int k = 0; k < CLASSES; k++)
        sum += exp(logit[k] - top);
    for (int k = 0; k < CLASSES; k++)
        probability[k] = (float)(exp(logit[k] - top) / sum);
    return log(sum) + top - logit[p->class];
}

static float *fresh(cvy_reducer *r, int i)
{
    float *gradient = cvy_reducer_buffer(r, i);
    if (!gradient)
        CHECK(CVY_E_ARGUMENT);
    memset(gradient, 0, (size_t)part[i].count * sizeof *gradient);
    return gradient;
}

/* Computes this rank's part of the gradients of the mean loss over the points of all ranks. */
static void backward(const struct net *net, const struct point *p, int count, cvy_reducer *r)
{
    static float hidden[POINTS][HIDDEN], dlogit[POINTS][CLASSES];
    float *dw2 = fresh(r, W2), *db2 = fresh(r, B2);
    for (int n = 0; n < count; n++) {
        forward(net, &p[n], hidden[n], dlogit[n]);
        for (int k = 0; k < CLASSES; k++) {
            dlogit[n][k] = (dlogit[n][k] - (k == p[n].class)) / POINTS;
            db2[k] += dlogit[n][k];
            for (int h = 0; h < HIDDEN; h++)
                dw2[k * HIDDEN + h] += dlogit[n][k] * hidden[n][h];
        }
    }
    CHECK(cvy_reducer_start(r, W2));
    CHECK(cvy_reducer_start(r, B2));

    float *dw1 = fresh(r, W1), *db1 = fresh(r, B1);
    for (int n = 0; n < count; n++) {
        for (int h = 0; h < HIDDEN; h++) {
            float d = 0;
            for (int k = 0; k < CLASSES; k++)
                d += dlogit[n][k] * net->weight[W2][k * HIDDEN + h];
            d *= 1 - hidden[n][h] * hidden[n][h];
            db1[h] += d;
            dw1[h * 2] += d * p[n].x[0];
            dw1[h * 2 + 1] += d * p[n].x[1];
        }
        if (n % 64 == 0)
            CHECK(cvy_reducer_progress(r));
    }
    CHECK(cvy_reducer_start(r, W1));
    CHECK(cvy_reducer_start(r, B1));
}

static void update(struct net *net, cvy_reducer *r)
{
    for (int i = 0; i < PARTS; i++) {
        const float *sum = cvy_reducer_sum(r, i);
        for (int j = 0; j < part[i].count; j++) {
            net->speed[i][j] = 0.9f * net->speed[i][j] + sum[j];
            net->weight[i][j] -= 0.2f * net->speed[i][j];
        }
    }
}

/* ---- training on the ranks of a context, each with its share of the points ---- */

static void train(cvy_context *context, const struct point *all, struct net *net)
{
    const cvy_reducer_opts opts = {.size = sizeof opts, .depth = 2}; /* 2: room for a step that is not yet applied */
    const int rank = cvy_context_rank(context), nranks = cvy_context_nranks(context);
    const int first = POINTS * rank / nranks, end = POINTS * (rank + 1) / nranks;
    int index = 0, applied = 0;
    cvy_reducer *r = NULL;
    CHECK(cvy_reducer_create(context, &opts, &r));
    for (int i = 0; i < PARTS; i++)
        CHECK(cvy_reducer_add(r, part[i].name, part[i].count, CVY_DTYPE_F32, &index)); /* index is i */
    CHECK(cvy_reducer_ready(r));
    CHECK(cvy_context_broadcast(context, net, sizeof *net, 0)); /* all begin with the weights of rank 0 */
    for (int step = 0; step < STEPS; step++) {
        const int late = step < PIPELINED;
        backward(net, all + first, end - first, r);
        for (; applied + late <= step; applied++) {
            CHECK(cvy_reducer_wait(r, CVY_REDUCER_ALL));
            update(net, r);
        }
    }
    cvy_reducer_destroy(&r);
}

/* ---- the result ---- */

static double mean_loss(const struct net *net, const struct point *all, double *accuracy_out)
{
    double loss = 0;
    int right = 0;
    for (int n = 0; n < POINTS; n++) {
        float hidden[HIDDEN], probability[CLASSES];
        int best = 0;
        loss += forward(net, &all[n], hidden, probability);
        for (int k = 1; k < CLASSES; k++)
            best = probability[k] > probability[best] ? k : best;
        right += best == all[n].class;
    }
    *accuracy_out = (double)right / POINTS;
    return loss / POINTS;
}

static double largest_difference(const struct net *a, const struct net *b)
{
    double most = 0;
    for (int i = 0; i < PARTS; i++)
        for (int j = 0; j < part[i].count; j++)
            most = fmax(most, fabs((double)a->weight[i][j] - (double)b->weight[i][j]));
    return most;
}

int main(int argc, char **argv)
{
    static struct point points[POINTS];
    static struct net first, together, alone, of_root;
    cvy_context *ranks = NULL, *own = NULL;
    double accuracy = 0;
    MPI_Init(&argc, &argv);
    CHECK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &ranks));
    CHECK(cvy_context_create(NULL, &own));
    const int rank = cvy_context_rank(ranks);
    make_points(points);
    make_weights(&first, (unsigned)rank + 1); /* other weights on each rank, until those of rank 0 are sent */

    together = first;
    train(ranks, points, &together);
    CHECK(cvy_context_broadcast(ranks, &first, sizeof first, 0));
    alone = first;
    train(own, points, &alone);
    of_root = together;
    CHECK(cvy_context_broadcast(ranks, &of_root, sizeof of_root, 0));

    const double loss = mean_loss(&together, points, &accuracy), apart = largest_difference(&together, &alone);
    const int same = memcmp(&together, &of_root, sizeof together) == 0; /* to the bit */
    if (rank == 0)
        printf("%d ranks: loss %.4f, accuracy %.3f; weights %.1e from those of one rank\n", cvy_context_nranks(ranks),
               loss, accuracy, apart);
    cvy_context_destroy(&own);
    cvy_context_destroy(&ranks);
    MPI_Finalize();
    return same && accuracy > 0.95 && apart < 1e-3 ? 0 : 1;
}
