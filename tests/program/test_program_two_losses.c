/*
 * test_program_two_losses.c: a program with two losses, each with its own trainable weights and optimiser, over one set
 * of variables; compared with plain C in double. A loss that would apply softmax or sigmoid a second time is named.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>

#include "program/program_util.h"
#include "program/program_view.h"

/* ---- two losses: a generator and a critic, after Goodfellow et al. 2014 ----
 *
 *     gen:    x = G z + g                           z [3], x [2]
 *     critic: s = C tanh(B x + b) + c               hidden [4], s [1]
 *     loss    mean over samples of log(1 + exp(s)) - t s
 *
 * Three steps work on the variables. "fool" trains G and g with SGD and momentum towards t = 1. "spot" trains the
 * critic with Adam on generated samples towards t = 0. "know" trains it with the same Adam on real samples
 * towards t = 1. The same is computed in plain C below.
 */
enum { Z = 3, X = 2, H = 4, BATCH = 5, REAL = 4 };

struct gan { /* used for variables and for gradients */
    double G[X][Z], g[X], B[H][X], b[H], C[1][H], c[1];
};

enum { GEN = X * Z + X, CRITIC = H * X + H + H + 1 }; /* sizes of the two sets; G, g come first, then B, b, C, c */

static double critic(const struct gan *v, const double x[X], double hidden[H])
{
    double s = v->c[0];
    for (int h = 0; h < H; h++) {
        double a = v->b[h];
        for (int i = 0; i < X; i++)
            a += v->B[h][i] * x[i];
        hidden[h] = tanh(a);
        s += v->C[0][h] * hidden[h];
    }
    return s;
}

static void generate(const struct gan *v, const double z[Z], double x[X])
{
    for (int i = 0; i < X; i++) {
        x[i] = v->g[i];
        for (int k = 0; k < Z; k++)
            x[i] += v->G[i][k] * z[k];
    }
}

/* Adds one sample's part of the gradient of the mean over n to d, and returns its part of the loss. z may be NULL, for
 * a real x. */
static double backward(const struct gan *v, const double *z, const double x[X], double t, int n, struct gan *d)
{
    double hidden[H], s = critic(v, x, hidden), ds = (1 / (1 + exp(-s)) - t) / n;
    d->c[0] += ds;
    for (int h = 0; h < H; h++) {
        const double da = ds * v->C[0][h] * (1 - hidden[h] * hidden[h]);
        d->C[0][h] += ds * hidden[h];
        d->b[h] += da;
        for (int i = 0; i < X; i++) {
            d->B[h][i] += da * x[i];
            d->g[i] += da * v->B[h][i];
            for (int k = 0; z && k < Z; k++)
                d->G[i][k] += da * v->B[h][i] * z[k];
        }
    }
    return (log1p(exp(s)) - t * s) / n;
}

static double mean_loss(const struct gan *v, int made, const double *data, int n, double t, struct gan *d)
{
    double loss = 0;
    memset(d, 0, sizeof *d);
    for (int i = 0; i < n; i++) {
        double x[X];
        if (made)
            generate(v, data + i * Z, x);
        else
            memcpy(x, data + i * X, sizeof x);
        loss += backward(v, made ? data + i * Z : NULL, x, t, n, d);
    }
    return loss;
}

struct moments {
    double m[sizeof(struct gan) / sizeof(double)], v[sizeof(struct gan) / sizeof(double)];
    int t;
};

static void momentum_step(double *w, const double *d, int n, double lr, struct moments *s)
{
    for (int i = 0; i < n; i++) {
        s->m[i] = 0.9 * s->m[i] + d[i];
        w[i] -= lr * s->m[i];
    }
}

static void adam_step(double *w, const double *d, int n, double lr, struct moments *s)
{
    s->t++;
    for (int i = 0; i < n; i++) {
        s->m[i] = 0.5 * s->m[i] + 0.5 * d[i];
        s->v[i] = 0.9 * s->v[i] + 0.1 * d[i] * d[i];
        w[i] -= lr * s->m[i] / (1 - pow(0.5, s->t)) / (sqrt(s->v[i] / (1 - pow(0.9, s->t))) + 1e-8);
    }
}

static const struct {
    const char *name;
    int64_t at, elems;
} gan_variable[] = {
    {"gen.weight", 0, X *Z},
    {"gen.bias", X *Z, X},
    {"hidden.weight", GEN, H *X},
    {"hidden.bias", GEN + H *X, H},
    {"score.weight", GEN + H *X + H, H},
    {"score.bias", GEN + H *X + 2 * H, 1},
};

static void read_gan(const cvy_program *p, struct gan *out)
{
    for (int i = 0; i < CVY_COUNT(gan_variable); i++)
        EXPECT_OK(cvy_program_get(p, gan_variable[i].name, (double *)out + gan_variable[i].at, gan_variable[i].elems));
}

static void add_critic(cvy_model *m, const char *from)
{
    EXPECT_OK(cvy_model_add(m, "fc", "hidden", "channels: 4", from));
    EXPECT_OK(cvy_model_add(m, "tanh", "hidden_tanh", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "fc", "score", "channels: 1", NULL));
}

struct gan_steps {
    int fool, spot, know, make;
};

static cvy_program *new_gan(struct gan_steps *step)
{
    cvy_model *made = new_model("made"), *real = new_model("real");
    cvy_program *p = NULL;
    const cvy_program_opts opts = {.size = sizeof opts, .dtype = CVY_DTYPE_F64, .seed = 3};
    const cvy_training_opts sgd = {
        .size = sizeof sgd, .losses = "loss_fool", .trains = "gen.*", .optimizer_options = "momentum: 0.9"};
    cvy_training_opts adam = {.size = sizeof adam,
                              .losses = "loss_spot",
                              .trains = "hidden.*, score.*",
                              .optimizer = "adam",
                              .optimizer_options = "beta1: 0.5, beta2: 0.9"};
    add_input(made, "z", Z);
    add_input(made, "wanted", 1);
    add_input(made, "truth", 1);
    EXPECT_OK(cvy_model_add(made, "fc", "gen", "channels: 2", "z"));
    add_critic(made, "gen");
    EXPECT_OK(cvy_model_add(made, "bce", "loss_fool", NULL, "score, wanted"));
    EXPECT_OK(cvy_model_add(made, "bce", "loss_spot", NULL, "score, truth"));
    add_input(real, "x", X);
    add_input(real, "truth", 1);
    add_critic(real, "x");
    EXPECT_OK(cvy_model_add(real, "bce", "loss_know", NULL, "score, truth"));
    EXPECT_OK(cvy_program_create(context, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, made, BATCH, &sgd, &step->fool));
    EXPECT_OK(cvy_program_add_training(p, made, BATCH, &adam, &step->spot));
    adam.losses = NULL;
    EXPECT_OK(cvy_program_add_training(p, real, REAL, &adam, &step->know));
    EXPECT_OK(cvy_program_add_forward(p, made, BATCH, "gen", &step->make));
    EXPECT_OK(cvy_program_plan(p));
    cvy_model_destroy(&made);
    cvy_model_destroy(&real);
    return p;
}

static void expect_gan(const cvy_program *p, const struct gan *expected, const char *after)
{
    struct gan got;
    double worst = 0;
    read_gan(p, &got);
    for (size_t i = 0; i < sizeof got / sizeof(double); i++)
        worst = fmax(worst, fabs(((double *)&got)[i] - ((const double *)expected)[i]));
    test_checks++;
    if (!(worst < 1e-13)) {
        test_failures++;
        printf("after %s the variables are off by %.3g\n", after, worst);
    }
}

static void set_all(cvy_program *p, int step, const char *input, int64_t n, double value)
{
    double *feed = cvy_program_feed(p, step, input);
    EXPECT(feed != NULL);
    for (int64_t i = 0; feed && i < n; i++)
        feed[i] = value;
}

static void two_losses(void)
{
    struct gan_steps step;
    struct gan v, d;
    struct moments generator = {.t = 0}, critic_moments = {.t = 0};
    double loss = 0;
    cvy_program *p = new_gan(&step);
    read_gan(p, &v);
    EXPECT(v.G[0][0] != 0 && v.B[0][0] != 0);
    set_all(p, step.fool, "wanted", BATCH, 1);
    set_all(p, step.spot, "truth", BATCH, 0);
    set_all(p, step.know, "truth", REAL, 1);
    EXPECT(cvy_program_feed(p, step.fool, "truth") == NULL || step.fool != step.spot);
    for (int turn = 0; turn < 6; turn++) {
        /* The critic sees real samples and then generated ones; Adam's moments continue. The generator's weights do not
         * change. */
        fill(p, step.know, "x", REAL * X, (uint64_t)turn * 3);
        double expected = mean_loss(&v, 0, cvy_program_feed(p, step.know, "x"), REAL, 1, &d);
        adam_step(&v.B[0][0], &d.B[0][0], CRITIC, 0.05, &critic_moments);
        EXPECT_OK(cvy_program_step(p, step.know, 0.05));
        EXPECT_OK(cvy_program_loss(p, step.know, "loss_know", &loss));
        EXPECT_NEAR(loss, expected, 1e-13);
        expect_gan(p, &v, "know");

        fill(p, step.spot, "z", BATCH * Z, (uint64_t)turn * 3 + 1);
        expected = mean_loss(&v, 1, cvy_program_feed(p, step.spot, "z"), BATCH, 0, &d);
        adam_step(&v.B[0][0], &d.B[0][0], CRITIC, 0.05, &critic_moments);
        EXPECT_OK(cvy_program_step(p, step.spot, 0.05));
        EXPECT_OK(cvy_program_loss(p, step.spot, "loss_spot", &loss));
        EXPECT_NEAR(loss, expected, 1e-13);
        expect_gan(p, &v, "spot");

        fill(p, step.fool, "z", BATCH * Z, (uint64_t)turn * 3 + 2);
        expected = mean_loss(&v, 1, cvy_program_feed(p, step.fool, "z"), BATCH, 1, &d);
        momentum_step(&v.G[0][0], &d.G[0][0], GEN, 0.1, &generator);
        EXPECT_OK(cvy_program_step(p, step.fool, 0.1));
        EXPECT_OK(cvy_program_loss(p, step.fool, "loss_fool", &loss));
        EXPECT_NEAR(loss, expected, 1e-13);
        expect_gan(p, &v, "fool");
    }
    /* A forward step over the same variables. */
    const void *data = NULL;
    cvy_shape shape;
    double x[X], z[BATCH * Z];
    fill(p, step.make, "z", BATCH * Z, 99);
    memcpy(z, cvy_program_feed(p, step.make, "z"), sizeof z);
    EXPECT_OK(cvy_program_step(p, step.make, 0));
    EXPECT_OK(cvy_program_output(p, step.make, "gen", &data, &shape));
    EXPECT_TEXT(cvy_shape_text(&shape), "5x2");
    for (int i = 0; i < BATCH; i++) {
        generate(&v, z + i * Z, x);
        for (int k = 0; k < X; k++)
            EXPECT_NEAR(((const double *)data)[i * X + k], x[k], 1e-14);
    }
    expect_gan(p, &v, "make");
    cvy_program_destroy(&p);
}

/* ---- losses on probabilities ---- */

static char said[512];

static void keep_log(void *user, cvy_log_level level, const char *line)
{
    (void)user;
    if (level == CVY_LOG_WARN && strstr(line, "has made already"))
        snprintf(said, sizeof said, "%s", line);
}

/* Returns the warning of a program that trains with a loss on the last of two layers. */
static const char *warning_of(const char *function, const char *loss)
{
    const cvy_context_opts opts = {.size = sizeof opts, .log_level = CVY_LOG_WARN, .log = keep_log};
    const cvy_training_opts training = {.size = sizeof training, .optimizer = "sgd"};
    cvy_context *own = NULL;
    cvy_program *p = NULL;
    cvy_model *m = NULL;
    int task = 0;
    *said = 0;
    EXPECT_OK(cvy_context_create(&opts, &own));
    EXPECT_OK(cvy_model_create("net", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){1, {4}}));
    EXPECT_OK(cvy_model_add_input(m, "t", strcmp(loss, "bce") == 0 ? CVY_DTYPE_F32 : CVY_DTYPE_I32,
                                  &(cvy_shape){strcmp(loss, "bce") == 0, {3}}));
    EXPECT_OK(cvy_model_add(m, "fc", "z", "channels: 3", "x"));
    EXPECT_OK(cvy_model_add(m, function, "p", NULL, "z"));
    EXPECT_OK(cvy_model_add(m, loss, "loss", NULL, "p, t"));
    EXPECT_OK(cvy_program_create(own, NULL, &p));
    EXPECT_OK(cvy_program_add_training(p, m, 2, &training, &task));
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
    cvy_context_destroy(&own);
    return said;
}

static void losses_on_probabilities(void)
{
    EXPECT(
        strstr(warning_of("softmax", "softmax_cross_entropy"), "applies softmax to p, whose numbers the softmax 'p'"));
    EXPECT(strstr(warning_of("sigmoid", "bce"), "applies sigmoid to p"));
    EXPECT(strstr(warning_of("sigmoid", "focal"), "the loss loss (focal) applies softmax to p"));
    EXPECT_TEXT(warning_of("log_softmax", "softmax_cross_entropy"), ""); /* whose softmax is the probabilities */
    EXPECT_TEXT(warning_of("softmax", "hinge"), "");
    EXPECT_TEXT(warning_of("relu", "softmax_cross_entropy"), "");
}

int main(void)
{
    EXPECT_OK(cvy_context_create(NULL, &context));
    TEST(two_losses);
    TEST(losses_on_probabilities);
    cvy_context_destroy(&context);
    return test_end();
}
