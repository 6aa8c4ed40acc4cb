/* rows: clang asan */
/*
 * test_data_collider.c: the generated events are reproducible, and their reader refuses bad options.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test_data_support.h"

#include <math.h>

static float image[2][3 * 64 * 64];

static void test_reproducible(void)
{
    cvy_dataset *d = NULL, *later = NULL, *small = NULL;
    int32_t label[2];
    void *const a[] = {image[0], &label[0]}, *const b[] = {image[1], &label[1]};
    OK(open_text("collider", NULL, 0, &d));
    OK(open_text("{format: collider, first: 100, events: 10}", NULL, 0, &later));
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    TRUE_THAT(info->nsamples == 20000 && info->nclasses == 2 && strcmp(info->class_name[1], "signal") == 0);
    TRUE_THAT(strcmp(cvy_shape_text(&info->field[0].shape), "3x64x64") == 0);
    for (int i = 0; i < 10; i++) {
        OK(cvy_dataset_read(d, 100 + i, 0, a));
        OK(cvy_dataset_read(later, i, 9, b));
        TRUE_THAT(label[0] == label[1] && memcmp(image[0], image[1], sizeof image[0]) == 0);
        double sum = 0;
        for (int k = 0; k < 2 * 64 * 64; k++) {
            TRUE_THAT(image[0][k] >= 0 && isfinite(image[0][k]));
            sum += image[0][k];
        }
        TRUE_THAT(sum > 200);
        OK(cvy_dataset_read(d, 100 + i, 1, b));
        TRUE_THAT(memcmp(image[0], image[1], sizeof image[0]) == 0);
    }
    TRUE_THAT(cvy_dataset_hash(d) != cvy_dataset_hash(later));
    cvy_dataset_destroy(&later);
    OK(open_text("{format: collider, cells: 16, events: 3}", "[log]", 0, &small));
    OK(cvy_dataset_read(small, 2, 0, a));
    cvy_dataset_destroy(&small);
    FAILS(open_text("{format: collider, ht_min: 900, ht_max: 800}", NULL, 0, &small), CVY_E_CONFIG,
          "ht_min 900 is not below ht_max 800");
    FAILS(open_text("{format: collider, pile_up: 3}", NULL, 0, &small), CVY_E_CONFIG, "pileup");
    cvy_dataset_destroy(&d);
}

int main(void)
{
    scratch_make();
    test_reproducible();
    scratch_remove();
    return 0;
}
