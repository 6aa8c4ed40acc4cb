/*
 * fuzz_where.c: fuzzes conditions that choose samples ("met > 50 and njet >= 2"), and evaluates them for some numbers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "data/data_where.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cvy_pool *pool = NULL;
    char *text = NULL;
    double *value = NULL;
    cvy_where *w = NULL;
    if (cvy_pool_create(&pool) != CVY_OK || cvy_pool_alloc(pool, size + 1, &text) != CVY_OK)
        return 0;
    memcpy(text, data, size);
    const cvy_status status = cvy_where_parse(pool, text, &w);
    if (status < CVY_OK && !cvy_error_text()[0])
        abort();
    if (status == CVY_OK &&
        cvy_pool_alloc(pool, ((size_t)cvy_where_name_count(w) + 1) * sizeof *value, &value) == CVY_OK) {
        for (int i = 0; i < cvy_where_name_count(w); i++)
            value[i] = (double)strlen(cvy_where_name(w, i));
        cvy_where_holds(w, value);
    }
    cvy_pool_destroy(&pool);
    return 0;
}
