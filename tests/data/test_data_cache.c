/*
 * test_data_cache.c: samples in memory: a sample that was read once is read again although its file has lost its
 * content; labels, views and the limit; a data set that is closed gives its memory back to the budget; encoded
 * pictures, stored as they are and decoded, give the same pixels as without a cache.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test_data_pictures.h"

enum { PIXELS = 3072, COUNT = 8 };

static void put_records(const char *path)
{
    static uint8_t record[COUNT][PIXELS + 1];
    for (int i = 0; i < COUNT; i++) {
        memset(record[i], 10 * i, sizeof record[i]);
        record[i][0] = (uint8_t)(i % 10);
    }
    put_file(path, record, sizeof record);
}

static float x[PIXELS];
static int32_t label;
static void *const field[] = {x, &label};

static void released(cvy_cache_budget *budget)
{
    const cvy_cache_state s = cvy_cache_budget_state(budget);
    TRUE_THAT(s.samples == 0 && s.bytes == 0);
}

static void test_limit(int64_t limit, int nkept)
{
    cvy_dataset *d = NULL, *view = NULL;
    cvy_cache_budget *budget = NULL;
    const char *path = in_scratch("data_batch_1.bin");
    put_records(path);
    OK(open_text(path, "[{scale: 1}]", 0, &d));
    const uint64_t hash = cvy_dataset_hash(d);
    OK(cvy_cache_budget_create(limit, &budget));
    OK(cvy_dataset_cache(d, budget, 0));
    OK(cvy_dataset_view(d, NULL, 0, 1, &view));
    TRUE_THAT(cvy_dataset_hash(d) == hash && strcmp(cvy_dataset_describe(view)->format, "cifar") == 0);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < COUNT; i++)
            OK(cvy_dataset_read(d, i, 0, field));
    const cvy_cache_state s = cvy_cache_budget_state(budget);
    TRUE_THAT(s.samples == nkept && s.bytes <= limit && s.full == (nkept < COUNT) && s.limit == limit);
    TRUE_THAT(truncate(path, 0) == 0);
    for (int i = 0; i < nkept; i++) {
        OK(cvy_dataset_read(d, i, 0, field));
        TRUE_THAT(x[0] == (float)(10 * i) && x[PIXELS - 1] == x[0] && label == i);
        OK(cvy_dataset_read(view, i, 0, field));
        TRUE_THAT(x[0] == (float)(10 * i) * (1.0f / 255.0f));
    }
    if (nkept < COUNT)
        FAILS(cvy_dataset_read(d, nkept, 0, field), CVY_E_FORMAT, "data_batch_1.bin");
    cvy_dataset_destroy(&view);
    cvy_dataset_destroy(&d);
    released(budget);
    cvy_cache_budget_destroy(&budget);
}

#if CVY_HAVE_JPEG && CVY_HAVE_SPNG
static void test_pictures(int decoded)
{
    enum { N = 4, SIDE = 8, ELEMS = 3 * SIDE * SIDE };
    static float want[N][ELEMS];
    cvy_dataset *d = NULL;
    cvy_cache_budget *budget = NULL;
    int32_t want_label[N];
    const char *augment = "[{random_crop: 8}, mirror]";
    OK(cvy_file_make_folder(in_scratch("set/a")));
    OK(cvy_file_make_folder(in_scratch("set/b")));
    put_jpeg(in_scratch("set/a/1.jpg"), 0, 12, 16, 3);
    put_png(in_scratch("set/a/2.png"), 1, 10, 9, 3);
    put_jpeg(in_scratch("set/b/1.jpg"), 2, 8, 8, 1);
    put_png(in_scratch("set/b/2.png"), 3, 20, 8, 1);
    OK(open_text(in_scratch("set"), augment, 1, &d));
    for (int i = 0; i < N; i++)
        OK(cvy_dataset_read(d, i, 3, (void *const[]){want[i], &want_label[i]}));
    cvy_dataset_destroy(&d);
    OK(open_text(in_scratch("set"), augment, 1, &d));
    OK(cvy_cache_budget_create(1 << 20, &budget));
    OK(cvy_dataset_cache(d, budget, decoded));
    for (int epoch = 0; epoch < 4; epoch++)
        for (int i = 0; i < N; i++)
            OK(cvy_dataset_read(d, i, (uint64_t)epoch, field));
    OK(cvy_file_remove_tree(in_scratch("set")));
    for (int i = 0; i < N; i++) {
        OK(cvy_dataset_read(d, i, 3, field));
        TRUE_THAT(memcmp(x, want[i], sizeof want[i]) == 0 && label == want_label[i]);
    }
    TRUE_THAT(cvy_cache_budget_state(budget).samples == N);
    cvy_dataset_destroy(&d);
    released(budget);
    cvy_cache_budget_destroy(&budget);
}
#endif

int main(void)
{
    scratch_make();
    test_limit(1 << 20, COUNT);
    test_limit(3 * (PIXELS + 200), 3);
    test_limit(100, 0);
#if CVY_HAVE_JPEG && CVY_HAVE_SPNG
    test_pictures(0);
    test_pictures(1);
#endif
    scratch_remove();
    return 0;
}
