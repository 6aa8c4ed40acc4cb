/* rows: clang asan */
/*
 * test_data_loader.c: the loader: a step holds the same for the shares of 1 to 4 ranks, 0 to 3 threads and any depth;
 * bad samples are skipped and counted or fail the step with their name; the end; splits are stratified and seeded.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/number/base_rng.h"
#include "data/data_guard.h"
#include "test_data_support.h"

struct plan {
    int64_t n, batch, micro, epochs;
    int rank, nranks;
};

/* Gives the shares of this rank: a step has `batch` samples in `micro` parts, and each part is split over ranks. The
 * tail is used. */
static cvy_status share(void *user, int64_t step, cvy_share *out, int max, int *nshare_out)
{
    const struct plan *p = user;
    const int64_t per_epoch = (p->n + p->batch - 1) / p->batch, epoch = step / per_epoch,
                  first = step % per_epoch * p->batch;
    if (epoch >= p->epochs)
        return CVY_END;
    const int64_t batch = CVY_MIN(p->batch, p->n - first);
    TRUE_THAT(max >= p->micro);
    for (int64_t m = 0; m < p->micro; m++) {
        const int64_t from = batch * m / p->micro, to = batch * (m + 1) / p->micro, n = to - from;
        const int64_t a = n * p->rank / p->nranks, b = n * (p->rank + 1) / p->nranks;
        out[m] = (cvy_share){.epoch = epoch, .first_position = first + from + a, .n = b - a};
    }
    *nshare_out = (int)p->micro;
    return CVY_OK;
}

enum { N = 53, BATCH = 12, ELEMS = 3 * 8 * 8, STEPS = 10 };
static float want_x[N * 2][ELEMS];
static int64_t want_id[N * 2];

static cvy_loader_opts options(struct plan *p, int threads, int depth)
{
    return (cvy_loader_opts){
        .shuffle = 1, .seed = 5, .threads = threads, .depth = depth, .share = share, .share_user = p};
}

/* Reads directly, as one rank without threads: the expected samples by their position in the run. */
static void make_truth(cvy_dataset *d)
{
    int32_t label;
    for (int64_t i = 0; i < 2 * N; i++) {
        const cvy_permutation order = cvy_permutation_make(5, (uint64_t)(i / N), N);
        want_id[i] = (int64_t)cvy_permutation_at(&order, (uint64_t)(i % N));
        void *const field[] = {want_x[i], &label};
        OK(cvy_dataset_read(d, want_id[i], (uint64_t)(i / N), field));
    }
}

static void check_run(cvy_dataset *d, int nranks, int rank, int64_t micro, int threads, int depth, int *seen)
{
    struct plan p = {.n = N, .batch = BATCH, .micro = micro, .epochs = 2, .rank = rank, .nranks = nranks};
    const cvy_loader_opts o = options(&p, threads, depth);
    cvy_loader *l = NULL;
    const cvy_rows *rows = NULL;
    static cvy_share shares[CVY_SHARE_MAX];
    OK(cvy_loader_create(d, &o, &l));
    int64_t step = 0;
    for (;; step++) {
        double wait = -1;
        const cvy_status status = cvy_loader_get(l, step, &rows, &wait);
        if (status == CVY_END)
            break;
        OK(status);
        TRUE_THAT(wait >= 0);
        int nshare = 0;
        int64_t row = 0;
        OK(share(&p, step, shares, CVY_SHARE_MAX, &nshare));
        for (int s = 0; s < nshare; s++) {
            for (int64_t k = 0; k < shares[s].n; k++, row++) {
                const int64_t at = shares[s].epoch * N + shares[s].first_position + k;
                TRUE_THAT(rows->id[row] == want_id[at] && rows->weight[row] == 1);
                TRUE_THAT(memcmp((float *)rows->field[0] + row * ELEMS, want_x[at], sizeof want_x[at]) == 0);
                TRUE_THAT(((int32_t *)rows->field[1])[row] == (int32_t)(want_id[at] % 10));
                seen[at]++;
            }
        }
        TRUE_THAT(row == rows->n && rows->nbad == 0);
        cvy_loader_release(l, rows);
    }
    TRUE_THAT(step == STEPS);
    TRUE_THAT(cvy_loader_get(l, step, &rows, NULL) == CVY_END);
    cvy_loader_destroy(&l);
}

static void test_equal(void)
{
    cvy_dataset *d = NULL;
    OK(open_text("{format: synthetic, shape: [3, 8, 8], samples: 53}",
                 "[mirror, {random_crop: {pad: 2}}, {mean: [0.1, 0.2, 0.3]}]", 1, &d));
    make_truth(d);
    for (int nranks = 1; nranks <= 4; nranks++) {
        for (int64_t micro = 1; micro <= 3; micro += 2) {
            for (int threads = 0; threads <= 2; threads++) {
                int seen[2 * N] = {0};
                for (int rank = 0; rank < nranks; rank++)
                    check_run(d, nranks, rank, micro, threads, 1 + threads, seen);
                for (int i = 0; i < 2 * N; i++)
                    TRUE_THAT(seen[i] == 1);
            }
        }
    }
    cvy_dataset_destroy(&d);
}

/* A start in the middle gives the same as reading up to there. A loader with work in progress can be destroyed. Steps
 * must be taken in order. */
/* A rank that needs labels or numbers only gets the same rows without the other fields. */
static void test_needs(void)
{
    struct plan p = {.n = N, .batch = BATCH, .micro = 2, .epochs = 2, .nranks = 1};
    cvy_dataset *d = NULL;
    OK(open_text("{format: synthetic, shape: [3, 8, 8], samples: 53}", "[mirror]", 1, &d));
    make_truth(d);
    for (int needs = CVY_NEEDS_LABELS; needs <= CVY_NEEDS_NUMBERS; needs++)
        for (int threads = 0; threads < 2; threads++) {
            cvy_loader_opts o = options(&p, threads, 2);
            const cvy_rows *rows = NULL;
            cvy_loader *l = NULL;
            o.needs = (cvy_row_needs)needs;
            OK(cvy_loader_create(d, &o, &l));
            OK(cvy_loader_get(l, 0, &rows, NULL));
            TRUE_THAT(rows->n == BATCH && !rows->field[0] && (rows->field[1] != NULL) == (needs == CVY_NEEDS_LABELS));
            for (int64_t r = 0; r < rows->n; r++) {
                TRUE_THAT(rows->id[r] == want_id[r] && rows->weight[r] == 1);
                TRUE_THAT(!rows->field[1] || ((int32_t *)rows->field[1])[r] == (int32_t)(want_id[r] % 10));
            }
            cvy_loader_release(l, rows);
            cvy_loader_destroy(&l);
        }
    cvy_dataset_destroy(&d);
}

static void test_resume_and_misuse(void)
{
    cvy_dataset *d = NULL;
    OK(open_text("{format: synthetic, shape: [3, 8, 8], samples: 53}", NULL, 1, &d));
    struct plan p = {.n = N, .batch = BATCH, .micro = 1, .epochs = 2, .nranks = 1};
    cvy_loader_opts o = options(&p, 2, 3);
    cvy_loader *l = NULL;
    const cvy_rows *rows = NULL, *more = NULL;
    o.first_step = 6;
    OK(cvy_loader_create(d, &o, &l));
    FAILS(cvy_loader_get(l, 0, &rows, NULL), CVY_E_ARGUMENT, "next step is 6");
    OK(cvy_loader_get(l, 6, &rows, NULL));
    TRUE_THAT(rows->id[0] == want_id[N + BATCH]);
    for (int64_t step = 7; step < 10; step++)
        OK(cvy_loader_get(l, step, &more, NULL));
    cvy_loader_destroy(&l);
    o.first_step = 0;
    OK(cvy_loader_create(d, &o, &l));
    for (int64_t step = 0; step < 4; step++)
        OK(cvy_loader_get(l, step, &more, NULL));
    FAILS(cvy_loader_get(l, 4, &more, NULL), CVY_E_ARGUMENT, "must be released");
    cvy_loader_destroy(&l);
    cvy_dataset_destroy(&d);
}

static void test_bad_samples(void)
{
    enum { PIXELS = 3072, COUNT = 6 };
    static uint8_t bytes[COUNT * (PIXELS + 1)];
    memset(bytes, 1, sizeof bytes);
    bytes[2 * (PIXELS + 1)] = 99;
    bytes[5 * (PIXELS + 1)] = 98;
    put_file(in_scratch("data_batch_1.bin"), bytes, sizeof bytes);
    for (int threads = 0; threads <= 2; threads++) {
        cvy_dataset *d = NULL;
        cvy_loader *l = NULL;
        const cvy_rows *rows = NULL;
        struct plan p = {.n = COUNT, .batch = COUNT, .micro = 1, .epochs = 1, .nranks = 1};
        OK(open_text(in_scratch("data_batch_1.bin"), NULL, 1, &d));
        cvy_loader_opts o = options(&p, threads, 1);
        o.shuffle = 0;
        OK(cvy_loader_create(d, &o, &l));
        FAILS(cvy_loader_get(l, 0, &rows, NULL), CVY_E_FORMAT, "data_batch_1.bin, record 2: label 99");
        cvy_loader_destroy(&l);
        o.skip_bad = 1;
        OK(cvy_loader_create(d, &o, &l));
        OK(cvy_loader_get(l, 0, &rows, NULL));
        TRUE_THAT(rows->n == COUNT && rows->nbad == 2 && cvy_loader_nbad(l) == 2);
        for (int i = 0; i < COUNT; i++) {
            const int bad = i == 2 || i == 5;
            TRUE_THAT(rows->weight[i] == (bad ? 0 : 1));
            TRUE_THAT((((float *)rows->field[0])[i * PIXELS] == 0) == bad);
        }
        char text[256];
        cvy_loader_bad_text(l, text, sizeof text);
        TRUE_THAT(strstr(text, "is out of range"));
        cvy_loader_release(l, rows);
        cvy_loader_destroy(&l);
        cvy_dataset_destroy(&d);
    }
}

static void test_no_allocation_in_the_step(void)
{
    cvy_dataset *d = NULL;
    cvy_loader *l = NULL;
    const cvy_rows *rows = NULL;
    struct plan p = {.n = N, .batch = BATCH, .micro = 1, .epochs = 2, .nranks = 1};
    OK(open_text("{format: synthetic, shape: [3, 8, 8], samples: 53}", "[mirror, {random_crop: {pad: 2}}, {log: {}}]",
                 1, &d));
    const cvy_loader_opts o = options(&p, 0, 1);
    OK(cvy_loader_create(d, &o, &l));
    int64_t before = 0;
    for (int64_t step = 0; step < STEPS; step++) {
        OK(cvy_loader_get(l, step, &rows, NULL));
        cvy_loader_release(l, rows);
        if (step == 1)
            before = cvy_mem_count();
    }
    TRUE_THAT(cvy_mem_count() == before);
    cvy_loader_destroy(&l);
    cvy_dataset_destroy(&d);
}

static void test_split(void)
{
    cvy_dataset *d = NULL, *val = NULL, *rest = NULL, *again = NULL;
    OK(open_text("{format: synthetic, shape: [2], samples: 104, classes: 8}", NULL, 0, &d));
    OK(cvy_dataset_split(d, 0.25, 3, 1, &val));
    OK(cvy_dataset_split(d, 0.25, 3, 0, &rest));
    OK(cvy_dataset_split(d, 0.25, 4, 1, &again));
    TRUE_THAT(cvy_dataset_describe(val)->nsamples == 26 && cvy_dataset_describe(rest)->nsamples == 78);
    int count[8] = {0};
    for (int64_t i = 0; i < 26; i++) {
        int32_t label = -1;
        OK(cvy_dataset_label(val, i, &label));
        count[label]++;
    }
    for (int c = 0; c < 8; c++)
        TRUE_THAT(count[c] == 3 || count[c] == 4);
    TRUE_THAT(cvy_dataset_hash(val) != cvy_dataset_hash(rest) && cvy_dataset_hash(val) != cvy_dataset_hash(again));
    cvy_dataset_destroy(&again);
    OK(cvy_dataset_split(d, 0.25, 3, 1, &again));
    TRUE_THAT(cvy_dataset_hash(val) == cvy_dataset_hash(again));
    FAILS(cvy_dataset_split(d, 1.5, 3, 1, &rest), CVY_E_CONFIG, "between 0 and 1");
    cvy_dataset_destroy(&again);
    cvy_dataset_destroy(&val);
    cvy_dataset_destroy(&rest);
    cvy_dataset_destroy(&d);
}

/* A write past a field or before the first one is found; what lies inside is copied. */
static void test_guard(void)
{
    static const size_t bytes[] = {100, 4, 64};
    char row[3][100] = {{0}};
    void *const whole[] = {row[0], NULL, row[2]};
    void *field[3];
    cvy_bytes room = {0};
    cvy_guard g;
    for (int fault = 0; fault < 4; fault++) {
        OK(cvy_guard_begin(&g, &room, 3, bytes, whole, field));
        memset(field[0], 1, 100);
        memset(field[2], 2, 64);
        TRUE_THAT(!field[1]);
        if (fault == 1)
            ((char *)field[0])[100] = 1;
        if (fault == 2)
            ((char *)field[0])[-1] = 1;
        if (fault == 3)
            ((char *)field[2])[64 + 63] = 1;
        if (fault == 0) {
            OK(cvy_guard_take(&g, whole));
            TRUE_THAT(row[0][99] == 1 && row[2][63] == 2);
        } else {
            FAILS(cvy_guard_take(&g, whole), CVY_E_INTERNAL,
                  fault == 1   ? "past the 100 bytes of field 0"
                  : fault == 2 ? "before field 0"
                               : "past the 64 bytes of field 2");
        }
    }
    cvy_mem_free(&room.data);
}

int main(void)
{
    scratch_make();
    test_equal();
    test_needs();
    test_resume_and_misuse();
    test_bad_samples();
    test_no_allocation_in_the_step();
    test_split();
    test_guard();
    scratch_remove();
    return 0;
}
