/*
 * test_data_order.c: the order of an epoch, for every kind of shuffle.
 *
 * Each sample comes once, whether or not the numbers divide. The global batches are the same for any number of ranks,
 * and other epochs and seeds give other orders. For a window shuffle it checks how far the samples of a block move
 * apart and how many blocks a rank reads in a step. In a balanced epoch classes are equally frequent, samples are used
 * evenly, and each draw of a sample has keys of its own for random numbers, so it is augmented anew.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "data/load/data_order.h"
#include "test_data_support.h"

static cvy_dataset *open_numbers(int64_t n)
{
    cvy_dataset *d = NULL;
    char text[128];
    snprintf(text, sizeof text, "{format: synthetic, shape: [1, 1, 1], samples: %lld}", (long long)n);
    OK(open_text(text, NULL, 0, &d));
    return d;
}

/* Collects an epoch in batches, each divided over the ranks. */
static void get_draws(cvy_epoch_order *o, uint64_t epoch, int64_t n, int64_t batch, int nranks, int64_t *out,
                      int64_t *repeat)
{
    for (int64_t from = 0; from < n; from += batch) {
        const int64_t count = CVY_MIN(batch, n - from);
        for (int r = 0; r < nranks; r++) {
            const int64_t a = count * r / nranks, b = count * (r + 1) / nranks;
            cvy_epoch_order_get(o, epoch, from, count, a, b - a, out + from + a, repeat ? repeat + from + a : NULL);
        }
    }
}

static void get_epoch(cvy_epoch_order *o, uint64_t epoch, int64_t n, int64_t batch, int nranks, int64_t *out)
{
    get_draws(o, epoch, n, batch, nranks, out, NULL);
}

static int64_t *numbers(int64_t n)
{
    int64_t *x = calloc((size_t)n, sizeof *x);
    TRUE_THAT(x);
    return x;
}

static void expect_each_once(const int64_t *number, int64_t n)
{
    char *seen = calloc((size_t)n, 1);
    TRUE_THAT(seen);
    for (int64_t i = 0; i < n; i++) {
        TRUE_THAT(number[i] >= 0 && number[i] < n && !seen[number[i]]);
        seen[number[i]] = 1;
    }
    free(seen);
}

static void check_order(int64_t n, cvy_shuffle shuffle, int64_t window, int64_t batch, int most_ranks)
{
    cvy_dataset *d = open_numbers(n);
    cvy_epoch_order *o = NULL, *other = NULL;
    int64_t *one = numbers(n), *many = numbers(n), *next = numbers(n);
    OK(cvy_epoch_order_create(d, &(cvy_order_opts){.shuffle = shuffle, .window = window, .seed = 3}, &o));
    OK(cvy_epoch_order_create(d, &(cvy_order_opts){.shuffle = shuffle, .window = window, .seed = 4}, &other));
    get_epoch(o, 2, n, batch, 1, one);
    expect_each_once(one, n);
    for (int nranks = 2; nranks <= most_ranks; nranks++) {
        get_epoch(o, 2, n, batch, nranks, many);
        TRUE_THAT(memcmp(one, many, (size_t)n * sizeof *one) == 0);
    }
    get_epoch(o, 3, n, batch, 1, next);
    expect_each_once(next, n);
    get_epoch(other, 2, n, batch, 1, many);
    if (shuffle != CVY_SHUFFLE_NONE && n >= 100) { /* with fewer samples, two orders may be equal by chance */
        TRUE_THAT(memcmp(one, next, (size_t)n * sizeof *one) != 0);
        TRUE_THAT(memcmp(one, many, (size_t)n * sizeof *one) != 0);
    }
    for (int64_t i = 0; i < n && shuffle == CVY_SHUFFLE_NONE; i++)
        TRUE_THAT(one[i] == i);
    cvy_epoch_order_destroy(&o);
    cvy_epoch_order_destroy(&other);
    cvy_dataset_destroy(&d);
    free(one);
    free(many);
    free(next);
}

static void test_once(void)
{
    static const int64_t n[] = {1, 2, 7, 16, 100, 1000, 4097}, window[] = {1, 8, 100000}, batch[] = {5, 32, 300};
    for (int i = 0; i < CVY_COUNT(n); i++)
        for (int b = 0; b < CVY_COUNT(batch); b++) {
            check_order(n[i], CVY_SHUFFLE_NONE, 0, batch[b], 4);
            check_order(n[i], CVY_SHUFFLE_ALL, 0, batch[b], 4);
            for (int w = 0; w < CVY_COUNT(window); w++)
                check_order(n[i], CVY_SHUFFLE_WINDOW, window[w], batch[b], 4);
        }
}

/* The order is not stored, so a million samples take no more memory than ten. */
static void test_million(void)
{
    check_order(1000000, CVY_SHUFFLE_ALL, 0, 4096, 1);
    check_order(200003, CVY_SHUFFLE_WINDOW, 64, 4096, 1);
}

enum { BLOCK = 64, NBLOCK = 512, SPAN = 16 * BLOCK, BATCH = 256, RANKS = 4 };

static int64_t distinct_blocks(const int64_t *number, int64_t n)
{
    char seen[NBLOCK] = {0};
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        count += !seen[number[i] / BLOCK];
        seen[number[i] / BLOCK] = 1;
    }
    return count;
}

static void test_window(void)
{
    const int64_t n = (int64_t)BLOCK * NBLOCK;
    cvy_dataset *d = open_numbers(n);
    cvy_epoch_order *o = NULL;
    int64_t *number = numbers(n), low[NBLOCK], high[NBLOCK], blocks = 0, moved = 0;
    OK(cvy_epoch_order_create(d, &(cvy_order_opts){.shuffle = CVY_SHUFFLE_WINDOW, .window = BLOCK, .seed = 1}, &o));
    get_epoch(o, 0, n, BATCH, 1, number);
    for (int b = 0; b < NBLOCK; b++)
        low[b] = n, high[b] = -1;
    for (int64_t i = 0; i < n; i++) {
        const int64_t b = number[i] / BLOCK;
        low[b] = CVY_MIN(low[b], i);
        high[b] = CVY_MAX(high[b], i);
        moved += llabs(number[i] - i);
    }
    for (int b = 0; b < NBLOCK; b++) /* within one window, and not next to each other in it */
        TRUE_THAT(low[b] / SPAN == high[b] / SPAN && high[b] - low[b] > SPAN / 2);
    TRUE_THAT(moved / n > n / 4 && moved / n < n * 5 / 12); /* n / 3 if positions are independent */
    for (int64_t from = 0; from < n; from += BATCH) {
        TRUE_THAT(distinct_blocks(number + from, BATCH) >= 12); /* a batch is drawn from the whole window */
        for (int r = 0; r < RANKS; r++) {
            const int64_t own = distinct_blocks(number + from + r * (BATCH / RANKS), BATCH / RANKS);
            TRUE_THAT(own <= 12);
            blocks += own;
        }
    }
    TRUE_THAT(blocks <= n / BATCH * RANKS * 8); /* on average within two of four lanes of four blocks */
    cvy_epoch_order_destroy(&o);
    cvy_dataset_destroy(&d);
    free(number);
}

/* ---- balance ---- */

enum { PIXELS = 3072, COUNT = 60 };

/* Writes in CIFAR's format 2 samples of class 3, 10 of class 5 and 48 of class 7, mixed. */
static void put_skewed(void)
{
    static uint8_t record[COUNT][PIXELS + 1];
    for (int i = 0; i < COUNT; i++)
        record[i][0] = (uint8_t)(i % 30 == 4 ? 3 : i % 6 == 1 ? 5 : 7);
    for (int i = 0; i < COUNT * PIXELS; i++)
        record[i / PIXELS][1 + i % PIXELS] = (uint8_t)(i * 2654435761u >> 24);
    put_file(in_scratch("data_batch_1.bin"), record, sizeof record);
}

static void test_balance(void)
{
    cvy_dataset *d = NULL;
    cvy_epoch_order *o = NULL;
    int64_t one[COUNT], many[COUNT], next[COUNT];
    put_skewed();
    OK(open_text(in_scratch("data_batch_1.bin"), NULL, 0, &d));
    OK(cvy_epoch_order_create(d, &(cvy_order_opts){.shuffle = CVY_SHUFFLE_ALL, .balance = 1, .seed = 1}, &o));
    get_epoch(o, 0, COUNT, 16, 1, one);
    get_epoch(o, 0, COUNT, 16, 3, many);
    get_epoch(o, 1, COUNT, 16, 1, next);
    TRUE_THAT(memcmp(one, many, sizeof one) == 0 && memcmp(one, next, sizeof one) != 0);
    int used[COUNT] = {0}, of_class[10] = {0};
    for (int i = 0; i < COUNT; i++) {
        int32_t label = -1;
        OK(cvy_dataset_label(d, one[i], &label));
        used[one[i]]++;
        of_class[label]++;
    }
    TRUE_THAT(of_class[3] == 20 && of_class[5] == 20 && of_class[7] == 20);
    for (int i = 0; i < COUNT; i++) {
        int32_t label = -1;
        OK(cvy_dataset_label(d, i, &label));
        TRUE_THAT(label == 3 ? used[i] == 10 : label == 5 ? used[i] == 2 : used[i] <= 1);
    }
    cvy_epoch_order_destroy(&o);
    FAILS(cvy_epoch_order_create(d, &(cvy_order_opts){.shuffle = CVY_SHUFFLE_WINDOW, .balance = 1}, &o), CVY_E_CONFIG,
          "needs data.shuffle: true");
    cvy_dataset_destroy(&d);
    OK(open_text("{format: synthetic, targets: 1}", NULL, 0, &d));
    FAILS(cvy_epoch_order_create(d, &(cvy_order_opts){.shuffle = CVY_SHUFFLE_ALL, .balance = 1}, &o), CVY_E_CONFIG,
          "has no classes");
    cvy_dataset_destroy(&d);
}

/* The draws of a sample are numbered from 0, and each number comes once, also if ranks share the batches. */
static void test_draws(void)
{
    cvy_dataset *d = NULL;
    cvy_epoch_order *o = NULL;
    int64_t number[COUNT], repeat[COUNT], shared[COUNT], shared_repeat[COUNT];
    int used[COUNT] = {0}, of_draw[COUNT][COUNT] = {{0}};
    put_skewed();
    OK(open_text(in_scratch("data_batch_1.bin"), NULL, 0, &d));
    OK(cvy_epoch_order_create(d, &(cvy_order_opts){.shuffle = CVY_SHUFFLE_ALL, .balance = 1, .seed = 2}, &o));
    get_draws(o, 3, COUNT, 16, 1, number, repeat);
    get_draws(o, 3, COUNT, 16, 3, shared, shared_repeat);
    TRUE_THAT(memcmp(number, shared, sizeof number) == 0 && memcmp(repeat, shared_repeat, sizeof repeat) == 0);
    for (int i = 0; i < COUNT; i++) {
        TRUE_THAT(repeat[i] >= 0 && repeat[i] < COUNT && !of_draw[number[i]][repeat[i]]);
        of_draw[number[i]][repeat[i]] = 1;
        used[number[i]]++;
    }
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < COUNT; k++)
            TRUE_THAT(of_draw[i][k] == (k < used[i]));
    cvy_epoch_order_destroy(&o);
    OK(cvy_epoch_order_create(d, &(cvy_order_opts){.shuffle = CVY_SHUFFLE_ALL, .seed = 2}, &o));
    get_draws(o, 3, COUNT, 16, 1, number, repeat);
    for (int i = 0; i < COUNT; i++)
        TRUE_THAT(repeat[i] == 0);
    cvy_epoch_order_destroy(&o);
    cvy_dataset_destroy(&d);
    for (int64_t n = 0; n < 4; n++) /* keys of the first draw are those of an epoch that repeats no sample */
        TRUE_THAT(cvy_repeat_key((uint64_t)n, 0) == (uint64_t)n && cvy_repeat_key((uint64_t)n, 1) > 1u << 31);
}

static cvy_status share_all(void *user, int64_t step, cvy_share *out, int max, int *nshare_out)
{
    if (step > 0 || max < 1)
        return CVY_END;
    out[0] = (cvy_share){.n = *(int *)user};
    *nshare_out = 1;
    return CVY_OK;
}

/* Loads a balanced epoch with an augmentation: two draws of a sample have other keys and other pixels, and a sample's
 * first draw has the pixels that it has in an epoch without repeats. */
static void check_drawn(const char *augment)
{
    static float want[3 * 32 * 32];
    cvy_dataset *d = NULL;
    cvy_loader *l = NULL;
    const cvy_rows *rows = NULL;
    int n = COUNT, same = 0, pairs = 0;
    int32_t label = 0;
    OK(open_text(in_scratch("data_batch_1.bin"), augment, 1, &d));
    OK(cvy_loader_create(
        d,
        &(cvy_loader_opts){.shuffle = CVY_SHUFFLE_ALL, .balance = 1, .depth = 1, .share = share_all, .share_user = &n},
        &l));
    OK(cvy_loader_get(l, 0, &rows, NULL));
    for (int64_t i = 0; i < COUNT; i++) {
        const char *mine = (char *)rows->field[0] + (size_t)i * sizeof want;
        if (rows->draw[i] == rows->id[i]) {
            OK(cvy_dataset_read(d, rows->id[i], 0, (void *const[]){want, &label}));
            TRUE_THAT(memcmp(want, mine, sizeof want) == 0);
        }
        for (int64_t k = 0; k < i; k++) {
            TRUE_THAT(rows->draw[i] != rows->draw[k]);
            if (rows->id[i] != rows->id[k])
                continue;
            pairs++;
            same += memcmp(mine, (char *)rows->field[0] + (size_t)k * sizeof want, sizeof want) == 0;
        }
    }
    TRUE_THAT(pairs > 90 && same < pairs * 2 / 3); /* of two mirrored pictures half the pairs are alike */
    cvy_loader_release(l, rows);
    cvy_loader_destroy(&l);
    cvy_dataset_destroy(&d);
}

/* The loader delivers samples in the positions that the order gives, although it reads them in the order of the
 * files. */
static cvy_status share(void *user, int64_t step, cvy_share *out, int max, int *nshare_out)
{
    const int rank = *(int *)user, nranks = 2;
    const int64_t n = 100, from = step * 32, count = CVY_MIN(32, n - from);
    if (from >= n || max < 1)
        return CVY_END;
    const int64_t a = count * rank / nranks, b = count * (rank + 1) / nranks;
    out[0] = (cvy_share){.first_position = from + a, .n = b - a, .batch_first = from, .batch_n = count};
    *nshare_out = 1;
    return CVY_OK;
}

static void test_loader(void)
{
    cvy_dataset *d = open_numbers(100);
    cvy_epoch_order *o = NULL;
    int64_t want[100], got = 0;
    OK(cvy_epoch_order_create(d, &(cvy_order_opts){.shuffle = CVY_SHUFFLE_WINDOW, .window = 4, .seed = 9}, &o));
    get_epoch(o, 0, 100, 32, 1, want);
    for (int rank = 0; rank < 2; rank++) {
        cvy_loader *l = NULL;
        const cvy_rows *rows = NULL;
        const cvy_loader_opts opts = {.shuffle = CVY_SHUFFLE_WINDOW,
                                      .window = 4,
                                      .seed = 9,
                                      .threads = 1,
                                      .depth = 2,
                                      .share = share,
                                      .share_user = &rank};
        OK(cvy_loader_create(d, &opts, &l));
        for (int64_t step = 0; step * 32 < 100; step++) {
            const int64_t count = CVY_MIN(32, 100 - step * 32), a = count * rank / 2;
            OK(cvy_loader_get(l, step, &rows, NULL));
            for (int64_t i = 0; i < rows->n; i++, got++) {
                float x = 0;
                int32_t label = 0;
                OK(cvy_dataset_read(d, rows->id[i], 0, (void *const[]){&x, &label}));
                TRUE_THAT(rows->id[i] == want[step * 32 + a + i]);
                TRUE_THAT(((float *)rows->field[0])[i] == x && ((int32_t *)rows->field[1])[i] == label);
            }
            cvy_loader_release(l, rows);
        }
        cvy_loader_destroy(&l);
    }
    TRUE_THAT(got == 100);
    cvy_epoch_order_destroy(&o);
    cvy_dataset_destroy(&d);
}

int main(void)
{
    scratch_make();
    test_once();
    test_million();
    test_window();
    test_balance();
    test_draws();
    check_drawn("[{random_crop: {size: 32, pad: 4}}]");
    check_drawn("[mirror, {cutout: 8}]");
    check_drawn("[mirror]");
    test_loader();
    scratch_remove();
    return 0;
}
