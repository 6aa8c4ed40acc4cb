/*
 * fuzz_safetensors.c: fuzzes files of weights: the file is opened and every tensor is read, as for a checkpoint.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "fuzz_files.h"

#include "format/format.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    fuzz_make_folder();
    return 0;
}

static void read_tensor(const cvy_safetensors *f, int i)
{
    const cvy_tensor_entry *e = cvy_safetensors_at(f, i);
    const char *stored = cvy_safetensors_dtype(f, i);
    const cvy_dtype dtype = e->dtype == CVY_DTYPE_COUNT || e->dtype == CVY_DTYPE_F32 ? CVY_DTYPE_F64 : e->dtype;
    void *out = NULL;
    if (!e->name || !stored || cvy_safetensors_find(f, e->name) != e)
        abort();
    if (cvy_mem_alloc((size_t)cvy_shape_elems(&e->shape) * cvy_dtype_bytes(dtype), &out) == CVY_OK &&
        cvy_safetensors_read(f, i, dtype, out) < CVY_OK && !cvy_error_text()[0])
        abort();
    cvy_mem_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[512];
    cvy_safetensors *f = NULL;
    fuzz_put_file("x.safetensors", data, size);
    snprintf(path, sizeof path, "%s/x.safetensors", fuzz_folder);
    if (cvy_safetensors_open(path, &f) < CVY_OK && !cvy_error_text()[0])
        abort();
    for (int i = 0; f && i < cvy_safetensors_count(f); i++)
        read_tensor(f, i);
    if (f)
        cvy_safetensors_meta(f, "step");
    cvy_safetensors_close(&f);
    return 0;
}
