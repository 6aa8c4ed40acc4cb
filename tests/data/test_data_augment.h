/*
 * test_data_augment.h: makes augmenters from the text of a list, for the tests of augmentation.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef TEST_DATA_AUGMENT_H
#define TEST_DATA_AUGMENT_H

#include "test_data_support.h"

#include <math.h>

enum { C = 2, H = 5, W = 7, N = C * H * W };

/* A CIFAR-like source can only give bytes of 3x32x32, so these tests call the augmenter directly. */
static cvy_augment_scratch turn;
static const cvy_reader_info info = {.dtype = CVY_DTYPE_U8, .shape = {3, {C, H, W}}};

static inline cvy_status make(const char *text, int random, const cvy_reader_info *of, cvy_augment **out)
{
    cvy_pool *pool = NULL;
    cvy_tree *steps = NULL;
    OK(cvy_pool_create(&pool));
    OK(cvy_tree_parse_text(pool, "job.yaml", text, strlen(text), &steps));
    const cvy_status status = cvy_augment_create(steps, random, 11, of, out);
    cvy_pool_destroy(&pool);
    return status;
}

static inline int near(float a, double b)
{
    return fabs(a - b) <= 1e-5 * (1 + fabs(b));
}

#endif
