/*
 * optim_init.c: fills a variable before step 0 with the initialiser that it names.
 * Each element depends on (seed, the variable's name, the element's row-major index in the whole variable) only. So it
 * is the same on every rank, for any layout, any order of creation, and any part.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/number/base_rng.h"
#include "base/text/base_table.h"
#include "optim/optim.h"

static cvy_status find(const cvy_variable *v, const cvy_init_def **out)
{
    static const cvy_table_query query = {.what = "initialiser"};
    int count = 0;
    const cvy_init_def *const *table = cvy_init_table(&count);
    const cvy_status status = cvy_table_find(table, count, &query, v->init.method, out);
    return status == CVY_OK ? CVY_OK : cvy_error_prefix(status, "variable %s", v->name);
}

static void fill(const cvy_init_def *def, const void *options, const cvy_variable *v, uint64_t seed, int64_t first,
                 int64_t n, void *plain)
{
    const cvy_rng rng = cvy_rng_make(seed, v->name, 0, 0);
#pragma omp parallel for schedule(static) if (n > 65536)
    for (int64_t i = 0; i < n; i++) {
        const double x = def->value(options, &v->init, &rng, (uint64_t)cvy_tile_index(v->tile, &v->shape, first + i));
        if (v->dtype == CVY_DTYPE_F32)
            ((float *)plain)[i] = (float)x;
        else
            ((double *)plain)[i] = x;
    }
}

cvy_status cvy_init_fill(const cvy_variable *v, uint64_t seed, int64_t first, int64_t n, void *plain)
{
    if (!v->init.method) {
        memset(plain, 0, (size_t)n * cvy_dtype_bytes(v->dtype));
        return CVY_OK;
    }
    const cvy_init_def *def = NULL;
    CVY_TRY(find(v, &def));
    CVY_CHECK(v->dtype == CVY_DTYPE_F32 || v->dtype == CVY_DTYPE_F64, CVY_E_UNSUPPORTED,
              "variable %s: only f32 and f64 can be initialised, it is %s", v->name, cvy_dtype_text(v->dtype));
    CVY_CHECK(!def->needs_fans || (v->init.fan_in > 0 && v->init.fan_out > 0), CVY_E_CONFIG,
              "variable %s: initialiser %s needs numbers of inputs and outputs, which it does not have; use constant "
              "or gaussian",
              v->name, def->name);
    cvy_pool *pool = NULL;
    void *options = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_pool_create(&pool));
    CVY_TRY_OUT(cvy_pool_alloc(pool, def->options_size, &options));
    CVY_TRY_OUT(cvy_options_parse_text(pool, v->name, def->options, v->init.options, options, def->options_size));
    fill(def, options, v, seed, first, n, plain);
out:
    cvy_pool_destroy(&pool);
    return status;
}
