/*
 * fuzz_network.c: fuzzes the description of a network in the metadata of a file of weights. One that is accepted must
 * describe a sample with a shape, fields with names, and as many names of classes as it has classes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "network/network_spec.h"

static void check(const cvy_network_spec *s)
{
    if (!s->job || s->data.nfield < 1 || s->data.nclasses < 0 || cvy_shape_elems(&s->stored.shape) < 1)
        abort();
    for (int i = 0; i < s->data.nfield; i++)
        if (!s->data.field[i].name || cvy_shape_elems(&s->data.field[i].shape) < 1)
            abort();
    for (int64_t i = 0; s->data.class_name && i < s->data.nclasses; i++)
        if (strlen(s->data.class_name[i]) > 1 << 20)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = NULL;
    cvy_network_spec spec = {0};
    if (cvy_mem_alloc(size + 1, &text) != CVY_OK)
        return 0;
    memcpy(text, data, size);
    const cvy_status status = cvy_network_spec_read("weights.safetensors", text, &spec);
    if (status < CVY_OK && !cvy_error_text()[0])
        abort();
    if (status == CVY_OK)
        check(&spec);
    cvy_network_spec_end(&spec);
    cvy_mem_free(&text);
    return 0;
}
