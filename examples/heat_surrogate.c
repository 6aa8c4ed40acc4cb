/* ranks: 1 2 4 */
/*
 * heat_surrogate.c: a simulation that trains a network on its own fields while it runs.
 *
 *     mpicc heat_surrogate.c $(pkg-config --cflags --libs convoy) -lm -o heat_surrogate
 *     mpiexec -n 4 ./heat_surrogate
 *
 * The host program owns MPI: it calls MPI_Init, splits the ranks into teams, and hands convoy a team's communicator.
 * Every rank steps a few plates by the heat equation, du/dt = a (d2u/dx2 + d2u/dy2) with u = 0 at the rim and a source
 * that moves at random. Each team has its own a. In every time step the surrogate (two small convolutions) first
 * predicts the next state, then learns from the true one: the arrays change all the time and are written directly into
 * the program's feeds. A host may also stop using convoy and start again: here it destroys and re-creates context and
 * program a hundred times, carrying all variables over by name, and checks each time that the library has given all
 * memory back.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 16, CELLS = SIDE * SIDE, PLATES = 4, LIVES = 100, STEPS_A_LIFE = 8, VARIABLES = 16 };

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        if ((call) < 0) {                                                                                              \
            fprintf(stderr, "heat_surrogate: %s\n", cvy_error_text());                                                 \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                              \
        }                                                                                                              \
    } while (0)

/* ---- the simulation ---- */

struct plates {
    float now[PLATES][CELLS], next[PLATES][CELLS];
    float diffusivity;
    unsigned random;
};

static float draw(struct plates *p)
{
    p->random = p->random * 1664525u + 1013904223u;
    return (float)(p->random >> 8) * 0x1p-24f;
}

static float at(const float *u, int y, int x)
{
    return y < 0 || y >= SIDE || x < 0 || x >= SIDE ? 0 : u[y * SIDE + x];
}

/* One explicit step of every plate, from now to next. */
static void diffuse(struct plates *p)
{
    for (int n = 0; n < PLATES; n++) {
        const float *u = p->now[n];
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++)
                p->next[n][y * SIDE + x] =
                    at(u, y, x) + p->diffusivity * (at(u, y - 1, x) + at(u, y + 1, x) + at(u, y, x - 1) +
                                                    at(u, y, x + 1) - 4 * at(u, y, x));
    }
}

/* The next state becomes the current one. Then one random cell is heated or cooled. */
static void advance(struct plates *p)
{
    memcpy(p->now, p->next, sizeof p->now);
    for (int n = 0; n < PLATES; n++) {
        const int y = (int)(draw(p) * SIDE), x = (int)(draw(p) * SIDE);
        p->now[n][y * SIDE + x] += 4 * draw(p) - 2;
    }
}

/* ---- the surrogate, which computes the next state from the current one ---- */

struct surrogate {
    cvy_context *context;
    cvy_program *program;
    int predict, learn; /* tasks of the program */
};

static void describe(cvy_model **model_out)
{
    const cvy_shape plate = {3, {1, SIDE, SIDE}};
    cvy_model *m = NULL;
    CHECK(cvy_model_create("heat", &m));
    CHECK(cvy_model_add_input(m, "now", CVY_DTYPE_F32, &plate));
    CHECK(cvy_model_add_input(m, "next", CVY_DTYPE_F32, &plate));
    CHECK(cvy_model_add(m, "conv", "inner", "channels: 8, kernel: 3, pad: 1", "now"));
    CHECK(cvy_model_add(m, "leaky_relu", "bend", "slope: 0.3", NULL));
    CHECK(cvy_model_add(m, "conv", "change", "channels: 1, kernel: 3, pad: 1", NULL));
    CHECK(cvy_model_add(m, "add", "future", NULL, "now, change"));
    CHECK(cvy_model_add(m, "mse", "error", NULL, "future, next"));
    *model_out = m;
}

static void create(MPI_Comm team, struct surrogate *s)
{
    const cvy_training_opts sgd = {.size = sizeof sgd, .optimizer_options = "momentum: 0.9"};
    cvy_model *model = NULL;
    describe(&model);
    CHECK(cvy_context_create_mpi(team, NULL, &s->context));
    CHECK(cvy_program_create(s->context, NULL, &s->program));
    const int64_t batch = (int64_t)PLATES * cvy_context_nranks(s->context);
    CHECK(cvy_program_add_forward(s->program, model, batch, "future", &s->predict));
    CHECK(cvy_program_add_training(s->program, model, batch, &sgd, &s->learn));
    CHECK(cvy_program_plan(s->program));
    cvy_model_destroy(&model);
}

static void destroy(struct surrogate *s)
{
    cvy_program_destroy(&s->program);
    cvy_context_destroy(&s->context);
}

/* error[0]: the sum of squared differences between the predicted and the true next state. error[1]: the same between
 * the current and the next state, which is the error of predicting "no change". */
static void predict(struct surrogate *s, const struct plates *p, double error[2])
{
    const void *future = NULL;
    memcpy(cvy_program_feed(s->program, s->predict, "now"), p->now, sizeof p->now);
    CHECK(cvy_program_step(s->program, s->predict, 0));
    CHECK(cvy_program_output(s->program, s->predict, "future", &future, NULL));
    for (int i = 0; i < PLATES * CELLS; i++) {
        const double next = p->next[i / CELLS][i % CELLS], off = ((const float *)future)[i] - next,
                     still = p->now[i / CELLS][i % CELLS] - next;
        error[0] += off * off;
        error[1] += still * still;
    }
}

static void learn(struct surrogate *s, const struct plates *p)
{
    memcpy(cvy_program_feed(s->program, s->learn, "now"), p->now, sizeof p->now);
    memcpy(cvy_program_feed(s->program, s->learn, "next"), p->next, sizeof p->next);
    CHECK(cvy_program_step(s->program, s->learn, 0.1));
}

/* ---- what is carried over from one program to the next: weights and momentum, by name ---- */

struct keepsake {
    char name[VARIABLES][64];
    float *data[VARIABLES];
    int64_t elems[VARIABLES];
    int count;
};

static void keep(const cvy_program *program, struct keepsake *k)
{
    const char *name = NULL;
    cvy_shape shape;
    for (k->count = 0; k->count < VARIABLES && cvy_program_variable(program, k->count, &name, &shape) == CVY_OK;
         k->count++) {
        int64_t elems = 1;
        for (int d = 0; d < shape.ndim; d++)
            elems *= shape.dim[d];
        float *data = realloc(k->data[k->count], (size_t)elems * sizeof *data);
        if (!data)
            MPI_Abort(MPI_COMM_WORLD, 1);
        snprintf(k->name[k->count], sizeof k->name[0], "%s", name);
        k->data[k->count] = data;
        k->elems[k->count] = elems;
        CHECK(cvy_program_get(program, name, data, elems));
    }
}

static void bring_back(cvy_program *program, const struct keepsake *k)
{
    for (int i = 0; i < k->count; i++)
        CHECK(cvy_program_set(program, k->name[i], k->data[i], k->elems[i]));
}

/* ---- the host ---- */

int main(int argc, char **argv)
{
    static struct plates plates;
    struct keepsake memory = {.count = 0};
    int rank, nranks;
    MPI_Comm team;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);

    /* From four ranks on there are two teams, each with its own material and surrogate. */
    const int colour = nranks >= 4 && rank >= nranks / 2;
    MPI_Comm_split(MPI_COMM_WORLD, colour, rank, &team);
    plates.diffusivity = colour ? 0.15f : 0.2f;
    plates.random = (unsigned)rank + 1;

    double error[2][2] = {{0}}; /* sums over the first and over the second half of the run */
    double left_bytes = 0;      /* the most that the library still held after a program was destroyed */
    for (int life = 0; life < LIVES; life++) {
        struct surrogate s = {0};
        create(team, &s);
        bring_back(s.program, &memory);
        for (int step = 0; step < STEPS_A_LIFE; step++) {
            diffuse(&plates);
            predict(&s, &plates, error[life >= LIVES / 2]);
            learn(&s, &plates);
            advance(&plates);
        }
        keep(s.program, &memory);
        destroy(&s);
        left_bytes = fmax(left_bytes, fabs((double)cvy_memory_bytes()));
    }

    MPI_Allreduce(MPI_IN_PLACE, error, 4, MPI_DOUBLE, MPI_SUM, team);
    MPI_Allreduce(MPI_IN_PLACE, &left_bytes, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    const double early = error[0][0] / error[0][1], late = error[1][0] / error[1][1];
    int team_rank;
    MPI_Comm_rank(team, &team_rank);
    if (team_rank == 0)
        printf("diffusivity %.2f: error of the surrogate over that of \"no change\": %.4f in the first half, %.4f in "
               "the second\n",
               (double)plates.diffusivity, early, late);
    if (rank == 0)
        printf("%d contexts: none left more than %.0f bytes of the library's memory\n", LIVES, left_bytes);
    const int good = late < 0.2 && late < early && left_bytes == 0;
    for (int i = 0; i < memory.count; i++)
        free(memory.data[i]);
    MPI_Comm_free(&team);
    MPI_Finalize();
    return good ? 0 : 1;
}
