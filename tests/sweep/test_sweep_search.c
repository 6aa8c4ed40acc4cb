/*
 * test_sweep_search.c: the decisions of a search: grids are complete, Sobol points are those of another implementation
 * and fill boxes evenly, random points depend on seed and number only, and successive halving and hyperband let the
 * same trials go on in whatever order results come; so do populations, also after kills, whose worst members become
 * copies of the best ones; failed trials are tried again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* rows: asan clang */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/number/base_rng.h"
#include "base/tree_confusion.h"
#include "sweep/sweep_search.h"

#include "test_util.h"

static char folder[] = "/tmp/cvy-sweep-XXXXXX";

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    EXPECT(file && fputs(text, file) >= 0);
    if (file)
        fclose(file);
}

/* A search of this space; the job is not read. */
static cvy_status open_sweep(const char *text, cvy_sweep *s)
{
    *s = (cvy_sweep){0};
    write_file("sweep_job.yaml", "name: job\n");
    write_file("sweep_test.yaml", text);
    CVY_TRY(cvy_sweep_spec_read("sweep_test.yaml", NULL, 0, &s->spec));
    return cvy_sweep_plan(s);
}

static void grid_is_complete(void)
{
    cvy_sweep s;
    EXPECT_OK(open_sweep(
        "{job: sweep_job.yaml, metric: loss, space: {a: [1, x], b: {log_uniform: [1, 100], points: 3}}}", &s));
    static const char *const values[][2] = {{"1", "1"}, {"1", "10"}, {"1", "100"},
                                            {"x", "1"}, {"x", "10"}, {"x", "100"}};
    EXPECT(s.ntrials == CVY_COUNT(values) && s.nbrackets == 1);
    for (int i = 0; i < s.ntrials && i < CVY_COUNT(values); i++)
        for (int k = 0; k < 2; k++)
            if (strcmp(s.trial[i].value[k], values[i][k]) != 0)
                TEST_FAIL("trial %d has %s", i, s.trial[i].value[k]);
    EXPECT(s.nset == 2 && strcmp(s.trial[4].set[1], "b=10") == 0);
    cvy_pool_destroy(&s.spec.pool);
}

/* torch.quasirandom.SobolEngine(10).draw(1024) of PyTorch 2, which has the numbers of Joe and Kuo, too; times 1024. */
static void sobol_is_that_of_pytorch(void)
{
    static const struct {
        uint32_t number, at[CVY_SOBOL_DIMS];
    } points[] = {{1, {512, 512, 512, 512, 512, 512, 512, 512, 512, 512}},
                  {2, {768, 256, 256, 256, 768, 768, 256, 768, 768, 768}},
                  {5, {896, 896, 128, 384, 896, 640, 896, 384, 384, 128}},
                  {7, {128, 640, 384, 128, 128, 384, 640, 640, 640, 896}},
                  {100, {424, 264, 792, 744, 904, 760, 24, 488, 648, 712}},
                  {1023, {1, 771, 627, 149, 191, 449, 143, 633, 353, 871}}};
    for (int i = 0; i < CVY_COUNT(points); i++)
        for (int d = 0; d < CVY_SOBOL_DIMS; d++)
            if (cvy_sobol(d, points[i].number) >> 22 != points[i].at[d])
                TEST_FAIL("point %u, dimension %d: %u, expected %u", points[i].number, d,
                          cvy_sobol(d, points[i].number) >> 22, points[i].at[d]);
}

/* 16 points in two dimensions: one in each of 16 equal intervals of each key, whatever the shift. */
static void sobol_fills_intervals(void)
{
    for (int seed = 0; seed < 5; seed++) {
        cvy_sweep s;
        char text[256];
        int seen[2][16] = {{0}};
        snprintf(text, sizeof text,
                 "{job: sweep_job.yaml, metric: loss, search: {sobol: 16}, seed: %d, space: {a: {uniform: [0, 16]}, b: "
                 "{int_uniform: [0, 15]}}}",
                 seed);
        EXPECT_OK(open_sweep(text, &s));
        for (int i = 0; i < s.ntrials; i++)
            for (int k = 0; k < 2; k++)
                seen[k][atoi(s.trial[i].value[k]) & 15]++;
        for (int i = 0; i < 16; i++)
            EXPECT(seen[0][i] == 1 && seen[1][i] == 1);
        cvy_pool_destroy(&s.spec.pool);
    }
}

/* More trials begin with the same ones, and another seed gives others. */
static void random_depends_on_seed_and_number(void)
{
    cvy_sweep few, many, other;
    static const char *const format =
        "{job: sweep_job.yaml, metric: loss, search: {random: %d}, seed: %d, space: {a: {log_uniform: [1e-4, 0.1]}}}";
    char text[256];
    int below = 0;
    snprintf(text, sizeof text, format, 10, 1);
    EXPECT_OK(open_sweep(text, &few));
    snprintf(text, sizeof text, format, 1000, 1);
    EXPECT_OK(open_sweep(text, &many));
    snprintf(text, sizeof text, format, 10, 2);
    EXPECT_OK(open_sweep(text, &other));
    for (int i = 0; i < 10; i++) {
        EXPECT(strcmp(few.trial[i].value[0], many.trial[i].value[0]) == 0);
        EXPECT(strcmp(few.trial[i].value[0], other.trial[i].value[0]) != 0);
    }
    for (int i = 0; i < 1000; i++) {
        const double x = atof(many.trial[i].value[0]);
        EXPECT(x >= 1e-4 && x <= 0.1);
        below += x < 1e-3; /* a third, as the values are even in their logarithm; 5 standard deviations are 75 */
    }
    EXPECT(below > 333 - 75 && below < 333 + 75);
    cvy_pool_destroy(&few.spec.pool);
    cvy_pool_destroy(&many.spec.pool);
    cvy_pool_destroy(&other.spec.pool);
}

static int is_done(cvy_sweep *s)
{
    int done = 1;
    EXPECT_OK(cvy_sweep_settle(s, &done));
    return done;
}

/* The number of trials with a score, and all trials in the order of their ranks. */
static int rank_all(const cvy_sweep *s, int *order)
{
    int nscored = -1;
    EXPECT_OK(cvy_sweep_rank(s, order, &nscored));
    return nscored;
}

/* Plays a search in which up to `groups` trials run at once and end in random order. The score of a trial is its
 * number, changed a little by the rung; trial `broken` fails. Returns the best trial. */
static int play(const char *text, int groups, int broken, uint64_t seed, int *begun_out)
{
    const cvy_rng rng = cvy_rng_make(seed, "play", 0, 0);
    cvy_sweep s;
    int running[16], n = 0, order[128];
    EXPECT_OK(open_sweep(text, &s));
    s.higher = 1;
    *begun_out = 0;
    for (uint64_t i = 0; !is_done(&s); i++) {
        int64_t epochs = 0;
        const int next = n < groups ? cvy_sweep_next(&s, &epochs) : -1;
        if (next >= 0) {
            s.trial[next].state = CVY_TRIAL_RUNNING;
            running[n++] = next;
            ++*begun_out;
            continue;
        }
        if (n == 0) {
            TEST_FAIL("nothing runs, and nothing can begin");
            break;
        }
        const int at = (int)cvy_rng_below(&rng, i, (uint64_t)n), trial = running[at];
        running[at] = running[--n];
        if (trial == broken)
            EXPECT_OK(cvy_sweep_note_failure(&s, trial, "it broke"));
        else
            cvy_sweep_note(&s, trial, (double)(trial * 7 % s.ntrials) + 0.01 * s.trial[trial].nscores);
    }
    EXPECT(rank_all(&s, order) == s.ntrials - (broken >= 0));
    const int best = order[0];
    for (int i = 0; i < s.ntrials; i++) /* who has ended the last rung is in front */
        if (s.trial[order[i]].nscores == s.bracket[s.trial[order[i]].bracket].nrungs)
            EXPECT(i < 32);
    cvy_pool_destroy(&s.spec.pool);
    return best;
}

#define SPACE "space: {a: {uniform: [0, 1]}}, job: sweep_job.yaml, metric: loss"
static const char halving[] =
    "{" SPACE ", search: {successive_halving: {trials: 27, eta: 3, min: 1 epoch, max: 9 epochs}}}";

static void halving_is_equal_on_any_number_of_groups(void)
{
    for (int groups = 1; groups <= 9; groups += 4)
        for (uint64_t seed = 0; seed < 4; seed++) {
            int begun = 0;
            /* 27 + 9 + 3 rungs; 7 i mod 27 is largest for i = 23, then for i = 19 */
            EXPECT(play(halving, groups, -1, seed, &begun) == 23 && begun == 39);
            EXPECT(play(halving, groups, 23, seed, &begun) == 19 && begun == 39);
        }
}

static void hyperband_has_its_brackets(void)
{
    static const char text[] = "{" SPACE ", search: {hyperband: {eta: 3, min: 1 epoch, max: 9 epochs}}}";
    /* table 1 of Li et al. 2018, for R = 9 */
    static const struct {
        int count, nrungs;
        int64_t first;
    } brackets[] = {{9, 3, 1}, {5, 2, 3}, {3, 1, 9}};
    cvy_sweep s;
    int begun = 0;
    EXPECT_OK(open_sweep(text, &s));
    EXPECT(s.nbrackets == 3 && s.ntrials == 17);
    for (int b = 0; b < 3; b++) {
        EXPECT(s.bracket[b].count == brackets[b].count && s.bracket[b].nrungs == brackets[b].nrungs);
        EXPECT(s.bracket[b].epochs[0] == brackets[b].first && s.bracket[b].epochs[s.bracket[b].nrungs - 1] == 9);
    }
    cvy_pool_destroy(&s.spec.pool);
    const int best = play(text, 1, -1, 0, &begun);
    for (uint64_t seed = 1; seed < 8; seed++)
        EXPECT(play(text, 4, -1, seed, &begun) == best && begun == 9 + 3 + 1 + 5 + 1 + 3);
}

/* Lets a search go on until nothing is left to do, one trial after the other. */
static void finish(cvy_sweep *s)
{
    int64_t epochs = 0;
    while (!is_done(s)) {
        const int next = cvy_sweep_next(s, &epochs);
        EXPECT(next >= 0);
        if (next < 0)
            return;
        cvy_sweep_note(s, next, (double)(next * 7 % s->ntrials) + 0.01 * s->trial[next].nscores);
    }
}

/* A failed trial that is tried again takes part in all decisions again. */
static void failed_trials_are_tried_again(void)
{
    cvy_sweep s;
    int order[32];
    EXPECT_OK(open_sweep(halving, &s));
    s.higher = 1;
    EXPECT_OK(cvy_sweep_note_failure(&s, 23, "it broke"));
    finish(&s);
    EXPECT(rank_all(&s, order) == 26 && order[0] == 19 && s.trial[23].error);
    EXPECT(cvy_sweep_retry(&s) == 1 && !s.trial[23].error && !is_done(&s));
    finish(&s);
    EXPECT(rank_all(&s, order) == 27 && order[0] == 23 && order[1] == 19);
    EXPECT(cvy_sweep_retry(&s) == 0 && is_done(&s));
    cvy_pool_destroy(&s.spec.pool);
}

static const char population[] =
    "{job: sweep_job.yaml, metric: loss, seed: 3,\n"
    " space: {a: {log_uniform: [1e-3, 1]}, b: [x, y, z, u], c: {int_uniform: [1, 9]}},\n"
    " search: {population: {size: 8, interval: 2 epochs, max: 7 epochs, share: 0.25, factors: [0.5, 2]}}}";

/* Plays a population of which up to `groups` members train at once, and end in random order. Member 5 fails in its
 * second rung. Every 11th event is a kill, up to `kills` of them: the search is read from its file again. */
static void live(int groups, uint64_t seed, int kills, cvy_sweep *s)
{
    const cvy_rng rng = cvy_rng_make(seed, "live", 0, 0);
    int running[8], n = 0;
    EXPECT_OK(open_sweep(population, s));
    s->higher = 1;
    for (uint64_t i = 1; !is_done(s) && i < 1000; i++) {
        int64_t epochs = 0;
        const int next = n < groups ? cvy_sweep_next(s, &epochs) : -1;
        if (i % 11 == 0 && kills-- > 0) {
            EXPECT_OK(cvy_sweep_save(s, "."));
            cvy_pool_destroy(&s->spec.pool);
            EXPECT_OK(open_sweep(population, s));
            EXPECT_OK(cvy_sweep_load(s, "."));
            s->higher = 1;
            n = 0;
            continue;
        }
        if (next >= 0) {
            s->trial[next].state = CVY_TRIAL_RUNNING;
            running[n++] = next;
            continue;
        }
        EXPECT(n > 0);
        const int at = n > 0 ? (int)cvy_rng_below(&rng, i, (uint64_t)n) : 0, trial = running[at];
        running[at] = running[--n];
        if (trial == 5 && s->trial[trial].nscores == 1)
            EXPECT_OK(cvy_sweep_note_failure(s, trial, "it broke"));
        else
            cvy_sweep_note(s, trial, log(s->trial[trial].place[0]) + 0.01 * trial + s->trial[trial].nscores);
    }
    remove(CVY_SWEEP_STATE);
}

/* The generations of all members as a text. */
static cvy_text tell(const cvy_sweep *s)
{
    cvy_text text = {0};
    for (int i = 0; i < s->ntrials; i++)
        for (int r = 0; r <= s->trial[i].rung; r++) {
            const cvy_generation *g = &s->trial[i].generation[r];
            cvy_text_add(&text, "%d %d: %d %s %s %s %.17g\n", i, r, g->parent, g->value[0], g->value[1], g->value[2],
                         s->trial[i].score[r]);
        }
    return text;
}

static void population_is_equal_in_any_order_and_after_kills(void)
{
    cvy_sweep s;
    live(1, 0, 0, &s);
    cvy_text first = tell(&s);
    cvy_pool_destroy(&s.spec.pool);
    for (int groups = 1; groups <= 8; groups += 3)
        for (int kills = 0; kills <= 4; kills += 2) {
            live(groups, (uint64_t)(groups + kills), kills, &s);
            cvy_text other = tell(&s);
            if (strcmp(first.data, other.data) != 0)
                TEST_FAIL("%d groups, %d kills:\n%s\nexpected\n%s", groups, kills, other.data, first.data);
            cvy_text_free(&other);
            cvy_pool_destroy(&s.spec.pool);
        }
    cvy_text_free(&first);
}

/* The number of members that were better than this one at the end of a rung. */
static int count_better(const cvy_sweep *s, int number, int rung)
{
    int n = 0;
    for (int i = 0; i < s->ntrials; i++)
        n += i != number && cvy_sweep_is_better(s, i, number, rung);
    return n;
}

/* In each rung the two worst of eight, and nobody else, become copies of one of the two best, with values that differ
 * by one step and stay in the space. */
static void population_copies_the_best(void)
{
    cvy_sweep s;
    live(2, 1, 0, &s);
    EXPECT(s.ntrials == 8 && s.bracket[0].nrungs == 4 && s.bracket[0].epochs[0] == 2 && s.bracket[0].epochs[3] == 7);
    EXPECT(isnan(s.trial[5].score[1]) && s.trial[5].generation[2].parent >= 0 && isfinite(s.trial[5].score[2]));
    for (int r = 1; r < 4; r++)
        for (int i = 0; i < 8; i++) {
            const cvy_generation *g = &s.trial[i].generation[r];
            EXPECT((g->parent >= 0) == (count_better(&s, i, r - 1) >= 6));
            if (g->parent < 0)
                continue;
            EXPECT(count_better(&s, g->parent, r - 1) < 2);
            const char **from = s.trial[g->parent].generation[r - 1].value;
            const double a = atof(g->value[0]), factor = a / atof(from[0]);
            const int c = atoi(g->value[2]);
            EXPECT(a >= 1e-3 && a <= 1 &&
                   (fabs(factor - 0.5) < 1e-4 || fabs(factor - 2) < 1e-4 || a == 1 || a == 1e-3));
            EXPECT(strchr("xyzu", *g->value[1]) && c >= 1 && c <= 9);
        }
    cvy_pool_destroy(&s.spec.pool);
}

/* If all members fail in a rung, the search ends, and may be tried again. */
static void a_population_may_fail_as_a_whole(void)
{
    cvy_sweep s;
    int order[8];
    EXPECT_OK(open_sweep(population, &s));
    for (int i = 0; i < 8; i++)
        EXPECT_OK(cvy_sweep_note_failure(&s, i, "it broke"));
    EXPECT(is_done(&s) && rank_all(&s, order) == 0 && s.trial[7].state == CVY_TRIAL_FAILED && is_done(&s));
    EXPECT(s.trial[7].rung == 0 && s.trial[7].nscores == 0);
    EXPECT(cvy_sweep_retry(&s) == 8 && !is_done(&s));
    finish(&s);
    EXPECT(rank_all(&s, order) == 8 && s.trial[7].rung == 3);
    cvy_pool_destroy(&s.spec.pool);
}

/* If all trials of a rung fail, the search ends. */
static void failures_end_a_search(void)
{
    cvy_sweep s;
    int64_t epochs = 0;
    int order[32];
    EXPECT_OK(open_sweep(halving, &s));
    for (int i = 0; i < s.ntrials; i++)
        s.trial[i].state = CVY_TRIAL_FAILED;
    EXPECT(is_done(&s) && cvy_sweep_next(&s, &epochs) == -1 && rank_all(&s, order) == 0);
    cvy_pool_destroy(&s.spec.pool);
}

/* What a search writes, it reads back; a running trial waits again, and another search is refused. */
static void state_is_read_back(void)
{
    cvy_sweep s, t;
    EXPECT_OK(open_sweep(halving, &s));
    cvy_sweep_note(&s, 3, 0.25);
    cvy_sweep_note(&s, 4, NAN);
    s.trial[5].state = CVY_TRIAL_RUNNING;
    s.trial[6].state = CVY_TRIAL_FAILED;
    s.trial[6].error = "it \"broke\"";
    s.trial[3].seconds = 1.5;
    EXPECT_OK(cvy_sweep_save(&s, "."));
    EXPECT_OK(open_sweep(halving, &t));
    EXPECT_OK(cvy_sweep_load(&t, "."));
    EXPECT(t.trial[3].nscores == 1 && t.trial[3].score[0] == 0.25 && t.trial[3].seconds == 1.5);
    EXPECT(t.trial[4].nscores == 1 && isnan(t.trial[4].score[0]));
    EXPECT(t.trial[5].state == CVY_TRIAL_WAITING && t.trial[6].state == CVY_TRIAL_FAILED);
    EXPECT(t.trial[6].error && strcmp(t.trial[6].error, "it \"broke\"") == 0);
    cvy_pool_destroy(&t.spec.pool);
    EXPECT_OK(open_sweep("{" SPACE ", search: {random: 27}}", &t));
    EXPECT(cvy_sweep_load(&t, ".") == CVY_E_CONFIG && strstr(cvy_error_text(), "its search is"));
    cvy_pool_destroy(&t.spec.pool);
    cvy_pool_destroy(&s.spec.pool);
    remove(CVY_SWEEP_STATE);
}

static const char pair[] = "{" SPACE ", search: {random: 2}}";

static cvy_status load_state(cvy_pool *pool, const char *text)
{
    cvy_sweep s;
    (void)pool;
    EXPECT_OK(open_sweep(pair, &s));
    write_file(CVY_SWEEP_STATE, text);
    const cvy_status status = cvy_sweep_load(&s, ".");
    cvy_pool_destroy(&s.spec.pool);
    return status;
}

/* Each kind of value in place of each value of a state that a search continues. */
static void kinds_of_a_state(void)
{
    cvy_sweep s;
    char *text = NULL;
    size_t bytes = 0;
    EXPECT_OK(open_sweep(pair, &s));
    cvy_sweep_note(&s, 0, 0.25);
    EXPECT_OK(cvy_sweep_note_failure(&s, 1, "it broke"));
    EXPECT_OK(cvy_sweep_save(&s, "."));
    cvy_pool_destroy(&s.spec.pool);
    EXPECT_OK(cvy_file_read(CVY_SWEEP_STATE, 1 << 20, &text, &bytes));
    confuse(text, load_state);
    cvy_mem_free(&text);
    remove(CVY_SWEEP_STATE);
}

/* A trial that ends the search each time is given up, unless it comes further. */
static void a_trial_that_kills_is_given_up(void)
{
    cvy_sweep s;
    for (int further = 0; further < 2; further++)
        for (int start = 0; start <= CVY_SWEEP_TRIES + 1; start++) {
            EXPECT_OK(open_sweep(halving, &s));
            if (start > 0)
                EXPECT_OK(cvy_sweep_load(&s, "."));
            const int given_up = !further && start >= CVY_SWEEP_TRIES;
            EXPECT((s.trial[0].state == CVY_TRIAL_FAILED) == given_up && (s.trial[0].error != NULL) == given_up);
            EXPECT(s.trial[1].state == CVY_TRIAL_WAITING);
            if (!given_up) {
                s.trial[0].state = CVY_TRIAL_RUNNING;
                s.trial[0].tries++;
            }
            EXPECT_OK(cvy_sweep_save(&s, "."));
            cvy_pool_destroy(&s.spec.pool);
            if (further) {
                char line[64];
                snprintf(line, sizeof line, "{\"kind\": \"step\", \"step\": %d, \"loss\": 1}\n", start + 1);
                (void)mkdir("trial-0001", 0777);
                write_file("trial-0001/metrics.jsonl", line);
            }
        }
    remove("trial-0001/metrics.jsonl");
    remove("trial-0001/lock");
    remove("trial-0001");
    remove(CVY_SWEEP_STATE);
}

/* A process of an earlier start that still trains, because it has survived the kill of rank 0, is waited for. */
static void a_trial_that_still_runs_is_awaited(void)
{
    cvy_sweep s;
    int ready[2];
    char byte = 0;
    EXPECT_OK(open_sweep(halving, &s));
    s.trial[0].state = CVY_TRIAL_RUNNING;
    EXPECT_OK(cvy_sweep_save(&s, "."));
    cvy_pool_destroy(&s.spec.pool);
    EXPECT(mkdir("trial-0001", 0777) == 0 && pipe(ready) == 0);
    const pid_t child = fork();
    if (child == 0) {
        const int lock = open("trial-0001/lock", O_RDWR | O_CREAT, 0666);
        const int is_locked = lock >= 0 && flock(lock, LOCK_EX) == 0 && write(ready[1], "1", 1) == 1;
        usleep(300000);
        _exit(!is_locked);
    }
    EXPECT(read(ready[0], &byte, 1) == 1);
    EXPECT_OK(open_sweep(halving, &s));
    EXPECT_OK(cvy_sweep_load(&s, "."));
    int status = -1;
    usleep(100000); /* the lock is released a moment before the process can be waited for */
    EXPECT(waitpid(child, &status, WNOHANG) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(ready[0]);
    close(ready[1]);
    cvy_pool_destroy(&s.spec.pool);
    remove("trial-0001/lock");
    remove("trial-0001");
    remove(CVY_SWEEP_STATE);
}

int main(void)
{
    EXPECT(mkdtemp(folder) != NULL && chdir(folder) == 0);
    TEST(grid_is_complete);
    TEST(sobol_is_that_of_pytorch);
    TEST(sobol_fills_intervals);
    TEST(random_depends_on_seed_and_number);
    TEST(halving_is_equal_on_any_number_of_groups);
    TEST(hyperband_has_its_brackets);
    TEST(failures_end_a_search);
    TEST(failed_trials_are_tried_again);
    TEST(population_is_equal_in_any_order_and_after_kills);
    TEST(population_copies_the_best);
    TEST(a_population_may_fail_as_a_whole);
    TEST(state_is_read_back);
    TEST(kinds_of_a_state);
    TEST(a_trial_that_kills_is_given_up);
    TEST(a_trial_that_still_runs_is_awaited);
    remove("sweep_job.yaml");
    remove("sweep_test.yaml");
    EXPECT(rmdir(folder) == 0);
    return test_end();
}
