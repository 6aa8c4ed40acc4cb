/*
 * fuzz_text.c: YAML and JSON, of which job files, manifests and descriptions are made, as libFuzzer makes them up.
 */
#include "base/base.h"
#include "base/base_tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cvy_pool *pool = NULL;
    cvy_tree *tree = NULL;
    if (cvy_pool_create(&pool) == CVY_OK && cvy_tree_parse_text(pool, "text", (const char *)data, size, &tree) < CVY_OK && !cvy_error_text()[0])
        __builtin_trap();
    cvy_pool_destroy(&pool);
    return 0;
}
