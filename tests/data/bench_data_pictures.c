/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_data_pictures.c: measures the parts of the time that a picture takes. It prints microseconds for reading, for
 * decoding the whole picture, for decoding only what a random resized crop to 224 needs, and for the augmentation after
 * that; on one thread, the best of five rounds over the files.
 *
 * bench_data_pictures FOLDER      (a folder of JPEGs, or of class folders) */
#include <stdio.h>

#include "base/machine/base_clock.h"
#include "test_data_support.h"

enum { READ, WHOLE, PART, AUGMENT, STAGES };

struct sample {
    const cvy_augment *a;
    uint64_t epoch;
    int64_t number;
};

static int want(void *user, int64_t H, int64_t W, cvy_picture_window *out)
{
    const struct sample *s = user;
    return cvy_augment_window(s->a, s->epoch, s->number, H, W, out);
}

int main(int argc, char **argv)
{
    static const char steps[] = "[{random_resized_crop: 224}, mirror, {normalize: {mean: [0.485, 0.456, 0.406], std: "
                                "[0.229, 0.224, 0.225]}}]";
    static const char *const name[] = {"read", "decode whole", "decode what is needed", "augment"};
    static float x[3 * 224 * 224];
    double best[STAGES] = {1e9, 1e9, 1e9, 1e9};
    cvy_pool *pool = NULL;
    cvy_tree *list = NULL;
    cvy_dataset *d = NULL;
    cvy_augment *a = NULL;
    cvy_raw raw = {0};
    cvy_bytes room = {0}, rows = {0};
    cvy_augment_scratch turn = {0};
    cvy_picture p;
    if (argc != 2)
        return 2;
    OK(cvy_pool_create(&pool));
    OK(cvy_tree_parse_text(pool, "steps", steps, strlen(steps), &list));
    OK(open_text(argv[1], NULL, 0, &d));
    OK(cvy_augment_create(list, 1, 1, cvy_dataset_reader_info(d), &a));
    const int64_t n = CVY_MIN(cvy_dataset_describe(d)->nsamples, 200);
    for (uint64_t epoch = 0; epoch < 5; epoch++) {
        double took[STAGES] = {0};
        for (int64_t i = 0; i < n; i++) {
            struct sample s = {a, epoch, i};
            double t[STAGES + 1];
            t[0] = cvy_clock_s();
            OK(cvy_dataset_read_raw(d, i, &raw));
            t[1] = cvy_clock_s();
            OK(cvy_picture_decode(raw.coding, raw.x.data, raw.x.bytes, 3, &room, &rows, &p));
            t[2] = cvy_clock_s();
            OK(cvy_picture_decode_part(raw.coding, raw.x.data, raw.x.bytes, 3, want, &s, &room, &rows, &p));
            t[3] = cvy_clock_s();
            OK(cvy_augment_apply(a, p, epoch, i, &turn, x));
            t[4] = cvy_clock_s();
            for (int k = 0; k < STAGES; k++)
                took[k] += t[k + 1] - t[k];
        }
        for (int k = 0; k < STAGES; k++)
            best[k] = CVY_MIN(best[k], took[k] * 1e6 / (double)n);
    }
    for (int k = 0; k < STAGES; k++)
        printf("%-22s %8.1f us\n", name[k], best[k]);
    cvy_raw_free(&raw);
    cvy_mem_free(&room.data);
    cvy_mem_free(&rows.data);
    cvy_augment_scratch_free(&turn);
    cvy_augment_destroy(&a);
    cvy_dataset_destroy(&d);
    cvy_pool_destroy(&pool);
    return 0;
}
