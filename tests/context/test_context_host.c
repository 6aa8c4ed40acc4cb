/* ranks: 1 2 */
/* rows: mpich */
/*
 * test_context_host.c: a host program that trains with the library finds everything as it was: handlers and masks of
 * signals, floating-point mode, OpenMP settings, locale, random numbers, working directory, environment, file
 * descriptors and standard output. A thousand lives of a context take no more memory than a hundred. Two contexts on
 * two communicators work in turns.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include <dirent.h>
#include <fenv.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(_OPENMP)
#include <omp.h>
#endif

#include "test_util.h"

extern char **environ;

enum { SIGNALS = 32, ROWS = 8, INPUTS = 6, CONTEXTS = 1000, FIRST_CONTEXTS = 100 };

/* ---- a training ---- */

struct training {
    cvy_context *context;
    cvy_program *program;
    int task;
};

static void begin(struct training *t, MPI_Comm comm)
{
    const cvy_context_opts opts = {.size = sizeof opts, .threads = 1};
    const cvy_program_opts program = {.size = sizeof program, .seed = 1, .wisdom = "off"};
    cvy_model *m = NULL;
    *t = (struct training){0};
    EXPECT_OK(cvy_context_create_mpi(comm, &opts, &t->context));
    EXPECT_OK(cvy_model_create("host", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){1, {INPUTS}}));
    EXPECT_OK(cvy_model_add_input(m, "y", CVY_DTYPE_F32, &(cvy_shape){1, {1}}));
    EXPECT_OK(cvy_model_add(m, "fc", "hidden", "channels: 8", "x"));
    EXPECT_OK(cvy_model_add(m, "tanh", NULL, NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "fc", "fc", "channels: 1", NULL));
    EXPECT_OK(cvy_model_add(m, "mse", "loss", NULL, "fc, y"));
    EXPECT_OK(cvy_program_create(t->context, &program, &t->program));
    EXPECT_OK(cvy_program_add_training(t->program, m, ROWS * cvy_context_nranks(t->context), NULL, &t->task));
    EXPECT_OK(cvy_program_plan(t->program));
    cvy_model_destroy(&m);
}

static double step(struct training *t)
{
    double loss = 0;
    float x[ROWS * INPUTS], y[ROWS];
    for (int i = 0; i < ROWS * INPUTS; i++)
        x[i] = (float)sin(0.3 * i);
    for (int i = 0; i < ROWS; i++)
        y[i] = (float)(i % 2);
    EXPECT_OK(cvy_program_write_input(t->program, t->task, "x", CVY_DTYPE_F32, x, ROWS * INPUTS));
    EXPECT_OK(cvy_program_write_input(t->program, t->task, "y", CVY_DTYPE_F32, y, ROWS));
    EXPECT_OK(cvy_program_step(t->program, t->task, 0.1));
    EXPECT_OK(cvy_program_loss(t->program, t->task, "loss", &loss));
    return loss;
}

static void end(struct training *t)
{
    cvy_program_destroy(&t->program);
    cvy_context_destroy(&t->context);
}

static void train(void)
{
    struct training t;
    begin(&t, MPI_COMM_WORLD);
    const double first = step(&t);
    for (int i = 0; i < 20; i++)
        step(&t);
    EXPECT(step(&t) < first);
    cvy_model *wrong = NULL; /* a fault changes nothing either */
    EXPECT_OK(cvy_model_create("wrong", &wrong));
    EXPECT(cvy_model_add(wrong, "no_such_layer", NULL, NULL, NULL) < 0);
    cvy_model_destroy(&wrong);
    end(&t);
}

/* ---- what the host has set ---- */

struct state {
    struct sigaction handler[SIGNALS];
    sigset_t mask;
    int rounding, exceptions, threads, dynamic, nfile;
    double denormal;
    char locale[200], folder[500];
    mode_t umask;
    size_t environment; /* a checksum */
};

static int count_files(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static void look(struct state *s)
{
    volatile double small = 0x1p-1000;
    memset(s, 0, sizeof *s);
    for (int i = 1; i < SIGNALS; i++)
        sigaction(i, NULL, &s->handler[i]);
    sigprocmask(SIG_BLOCK, NULL, &s->mask);
    s->rounding = fegetround();
    s->exceptions = fetestexcept(FE_DIVBYZERO | FE_INVALID);
    s->denormal = small * 0x1p-60; /* 0 if denormals are flushed */
#if defined(_OPENMP)
    s->threads = omp_get_max_threads();
    s->dynamic = omp_get_dynamic();
#endif
    s->nfile = count_files();
    snprintf(s->locale, sizeof s->locale, "%s", setlocale(LC_ALL, NULL));
    EXPECT(getcwd(s->folder, sizeof s->folder) != NULL);
    umask(s->umask = umask(0));
    for (char **e = environ; *e; e++)
        for (const char *c = *e; *c; c++)
            s->environment = s->environment * 31 + (unsigned char)*c;
}

static void host_handler(int number)
{
    (void)number;
}

static void everything_stays(void)
{
    struct state before, after;
    struct sigaction own = {.sa_handler = host_handler};
    sigset_t blocked;
    sigemptyset(&own.sa_mask);
    sigaction(SIGTERM, &own, NULL);
    sigaction(SIGUSR1, &own, NULL);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    fesetround(FE_UPWARD);
    train(); /* what MPI and OpenMP open at the first use stays open */
    srand(7);
    srandom(7);
    const int first = rand(), first_long = (int)random(), second = rand(), second_long = (int)random();
    srand(7);
    srandom(7);
    feclearexcept(FE_ALL_EXCEPT);
    look(&before);
    EXPECT_INT(rand(), first);
    EXPECT_INT((int)random(), first_long);
    train();
    EXPECT_INT(rand(), second);
    EXPECT_INT((int)random(), second_long);
    look(&after);
    for (int i = 1; i < SIGNALS; i++) {
        EXPECT(after.handler[i].sa_handler == before.handler[i].sa_handler);
        EXPECT_INT(after.handler[i].sa_flags, before.handler[i].sa_flags);
        EXPECT_INT(sigismember(&after.mask, i), sigismember(&before.mask, i));
    }
    EXPECT_INT(after.rounding, FE_UPWARD);
    EXPECT_INT(after.exceptions, before.exceptions);
    EXPECT(after.denormal == before.denormal && after.denormal > 0);
    EXPECT_INT(after.threads, before.threads);
    EXPECT_INT(after.dynamic, before.dynamic);
    EXPECT_INT(after.nfile, before.nfile);
    EXPECT(strcmp(after.locale, before.locale) == 0);
    EXPECT(strcmp(after.folder, before.folder) == 0);
    EXPECT_INT((int)after.umask, (int)before.umask);
    EXPECT(after.environment == before.environment);
    fesetround(FE_TONEAREST);
}

/* ---- many contexts ---- */

static double resident_mb(void)
{
    long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%ld %ld", &pages, &resident) != 2)
        resident = 0;
    if (f)
        fclose(f);
    return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

static void contexts_leave_nothing(void)
{
    struct training t;
    double early = 0;
    for (int i = 0; i < CONTEXTS; i++) {
        begin(&t, MPI_COMM_WORLD);
        step(&t);
        end(&t);
        if (i == FIRST_CONTEXTS)
            early = resident_mb();
    }
    if (resident_mb() > early + 1)
        printf("%.1f MB after %d contexts, %.1f after %d\n", resident_mb(), CONTEXTS, early, FIRST_CONTEXTS);
    EXPECT(resident_mb() <= early + 1);
}

/* ---- two communicators ---- */

static void two_in_turns(void)
{
    struct training all, half;
    MPI_Comm part;
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &part); /* each rank alone */
    begin(&all, MPI_COMM_WORLD);
    begin(&half, part);
    MPI_Comm_free(&part); /* the library has its own copy */
    EXPECT_INT(cvy_context_nranks(half.context), 1);
    double alone = 0, together = 0;
    for (int i = 0; i < 10; i++) {
        together = step(&all);
        alone = step(&half);
    }
    /* all ranks have the same rows, so the mean gradient is that of each rank */
    EXPECT_NEAR(alone, together, 1e-6);
    end(&half);
    step(&all);
    end(&all);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    TEST(everything_stays);
    TEST(two_in_turns);
    TEST(contexts_leave_nothing);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
